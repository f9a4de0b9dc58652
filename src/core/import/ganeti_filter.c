/*
 * Job filters of a config.data as rules about jobs; see ganeti.h and core/job/rules.h. The two
 * speak one language, with small differences: Ganeti says no for a whole predicate when a part of
 * it asks for a parameter that the opcode has not, or compares job ids and reasons other than by
 * their order. A rule that would decide otherwise here than there is not taken over.
 */
#include <string.h>

#include "core/import/ganeti_private.h"
#include "core/job/rules.h"

/* What orders rules in Ganeti. */
struct taken {
    const char *uuid; /* borrowed */
    guint64 priority;
    json_int_t watermark; /* theirs */
};

struct filter_reader {
    struct reader *reader;
    const char *uuid;
    char *subject;
    bool watermark; /* a predicate compares with it */
};

static bool differs(GError **error, const char *format, ...) G_GNUC_PRINTF(2, 3);
static bool differs(GError **error, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_autofree char *text = g_strdup_vprintf(format, args);
    va_end(args);
    fettle_set_error(error, WRONG_INPUT, "%s", text);
    return false;
}

/* --- parts of a filter, which rules_check_filter() has found in order --- */

static const char *word_of(const json_t *filter)
{
    const char *word = json_string_value(json_array_get(filter, 0));
    return word ? word : "";
}

static bool is_branch(const json_t *filter)
{
    static const char *const branches[] = {"&", "|", "!", NULL};
    return g_strv_contains(branches, word_of(filter));
}

static const char *field_of(const json_t *leaf)
{
    const char *field = json_string_value(json_array_get(leaf, 1));
    return field ? field : "";
}

/* Its comparisons, borrowed. */
static void add_leaves(const json_t *filter, GPtrArray *leaves)
{
    if (!is_branch(filter)) {
        if (json_is_array(filter))
            g_ptr_array_add(leaves, (json_t *)filter);
        return;
    }
    for (size_t i = 1; i < json_array_size(filter); i++)
        add_leaves(json_array_get(filter, i), leaves);
}

static GPtrArray *leaves_of(const json_t *filter)
{
    GPtrArray *leaves = g_ptr_array_new();
    add_leaves(filter, leaves);
    return leaves;
}

/* --- jobid and reason --- */

static bool is_order(const json_t *leaf)
{
    static const char *const orders[] = {"=", "==", "!=", "<", ">", "<=", ">=", NULL};
    return g_strv_contains(orders, word_of(leaf));
}

static bool ordered_fits(const json_t *leaf, const char *about, GError **error)
{
    return is_order(leaf) ||
           differs(error, "in Ganeti a predicate about %s never holds with \"%s\"", about,
                   word_of(leaf));
}

static bool jobid_fits(struct filter_reader *filter, const json_t *leaf, GError **error)
{
    const json_t *value = json_array_get(leaf, 2);
    if (!ordered_fits(leaf, "jobid", error))
        return false;
    if (json_is_string(value) && !strcmp(json_string_value(value), "watermark")) {
        filter->watermark = true;
        return true;
    }
    g_autofree char *text = ganeti_value_text(value);
    return differs(error, "it asks for the job id %s, and jobs have other ids here", text);
}

/* --- opcode --- */

static bool is_id(const char *field)
{
    return !strcmp(field, "OP_ID");
}

static bool has_parameter(const struct opcode *opcode, const char *field)
{
    return is_id(field) || record_field(opcode->params, field);
}

static bool some_has_parameter(const char *field)
{
    size_t count = 0;
    const struct opcode *opcodes = opcode_table(&count);
    for (size_t i = 0; i < count; i++) {
        if (has_parameter(&opcodes[i], field))
            return true;
    }
    return false;
}

/* Whether all that is asked for is one field. */
static bool is_of_one_field(const GPtrArray *leaves)
{
    for (guint i = 1; i < leaves->len; i++) {
        if (strcmp(field_of(leaves->pdata[i]), field_of(leaves->pdata[0])) != 0)
            return false;
    }
    return true;
}

/* A parameter without which the filter can hold here; NULL: there is none. What asks for one that
 * is missing does not hold, and with it no "&" of it, and no "|" that asks for nothing else. */
static const char *loose_parameter(const json_t *filter)
{
    g_autoptr(GPtrArray) leaves = leaves_of(filter);
    const char *word = word_of(filter), *found = NULL;
    if (!is_branch(filter))
        return !strcmp(word, "!=") && !is_id(field_of(filter)) ? field_of(filter) : NULL;
    bool strict = !strcmp(word, "&") || (!strcmp(word, "|") && is_of_one_field(leaves));
    for (size_t i = 1; strict && !found && i < json_array_size(filter); i++)
        found = loose_parameter(json_array_get(filter, i));
    for (guint i = 0; !strict && !found && i < leaves->len; i++) {
        if (!is_id(field_of(leaves->pdata[i])))
            found = field_of(leaves->pdata[i]);
    }
    return found;
}

/* Whether the filter holds for one opcode only, which has all that is asked for. */
static bool is_of_one_opcode(const json_t *filter, const GPtrArray *leaves)
{
    const struct opcode *opcode = NULL;
    bool all = !strcmp(word_of(filter), "&");
    for (size_t i = 1; all && !opcode && i < json_array_size(filter); i++) {
        const json_t *part = json_array_get(filter, i);
        const char *id = json_string_value(json_array_get(part, 2));
        if (id && (!strcmp(word_of(part), "=") || !strcmp(word_of(part), "==")) &&
            is_id(field_of(part)))
            opcode = opcode_find(id);
    }
    for (guint i = 0; opcode && i < leaves->len; i++) {
        if (!has_parameter(opcode, field_of(leaves->pdata[i])))
            return false;
    }
    return opcode != NULL;
}

static bool opcode_fits(const json_t *filter, const GPtrArray *leaves, GError **error)
{
    for (guint i = 0; i < leaves->len; i++) {
        const char *field = field_of(leaves->pdata[i]);
        if (!some_has_parameter(field))
            return differs(error, "no opcode here has a parameter \"%s\"", field);
    }
    const char *loose = is_of_one_opcode(filter, leaves) ? NULL : loose_parameter(filter);
    return !loose || differs(error,
                             "here it can hold for opcodes without a parameter \"%s\" as well, in "
                             "Ganeti it does not",
                             loose);
}

static void note_opcodes(struct filter_reader *filter, const GPtrArray *leaves)
{
    for (guint i = 0; i < leaves->len; i++) {
        const char *id = json_string_value(json_array_get(leaves->pdata[i], 2));
        if (id && is_id(field_of(leaves->pdata[i])) && strcmp(word_of(leaves->pdata[i]), "=~") &&
            !opcode_find(id))
            import_note(filter->reader->import, "%s: there is no opcode %s here", filter->subject,
                        id);
    }
}

/* --- a whole rule --- */

static bool predicate_fits(struct filter_reader *filter, const json_t *predicate, GError **error)
{
    const char *about = json_string_value(json_array_get(predicate, 0));
    const json_t *asked = json_array_get(predicate, 1);
    g_autoptr(GPtrArray) leaves = leaves_of(asked);
    if (!strcmp(about, "opcode"))
        return opcode_fits(asked, leaves, error);
    for (guint i = 0; i < leaves->len; i++) {
        const json_t *leaf = leaves->pdata[i];
        if (!strcmp(about, "jobid") ? !jobid_fits(filter, leaf, error)
                                    : !ordered_fits(leaf, about, error))
            return false;
    }
    return true;
}

static bool predicates_fit(struct filter_reader *filter, const json_t *predicates, GError **error)
{
    size_t index;
    const json_t *predicate;
    json_array_foreach(predicates, index, predicate) {
        if (predicate_fits(filter, predicate, error))
            continue;
        g_prefix_error(error, "predicates[%zu]: ", index);
        return false;
    }
    return true;
}

static guint64 newest_job(const struct reader *reader)
{
    const struct counter *counter = config_get(reader->now, "counter", "job", NULL);
    return counter ? counter->value : 0;
}

static json_t *make_filter(const struct filter_reader *filter, const json_t *from)
{
    static const char *const members[][2] = {{"priority", "priority"},
                                             {"predicates", "predicates"},
                                             {"action", "action"},
                                             {"reason", "reason_trail"}};
    json_t *made = json_make("{s:s,s:I}", "uuid", filter->uuid, "watermark",
                             (json_int_t)newest_job(filter->reader));
    for (guint i = 0; i < G_N_ELEMENTS(members); i++) {
        json_t *value = json_object_get(from, members[i][1]);
        if (value)
            json_object_set(made, members[i][0], value);
    }
    return made;
}

static void note_filter(struct filter_reader *filter, const struct job_filter *rule)
{
    const char *action = json_string_value(rule->action);
    size_t index;
    const json_t *predicate;
    if (filter->watermark)
        import_note(filter->reader->import,
                    "%s: its watermark is job %" G_GUINT64_FORMAT ", the newest one here",
                    filter->subject, rule->watermark);
    if (!json_array_size(rule->predicates) && action &&
        (!strcmp(action, "PAUSE") || !strcmp(action, "REJECT")))
        import_note(filter->reader->import,
                    "%s: %s is for every job: none runs here that no earlier rule accepts, until "
                    "it is removed (fettle queue filter remove %s)",
                    filter->subject, action, filter->uuid);
    json_array_foreach(rule->predicates, index, predicate) {
        g_autoptr(GPtrArray) leaves = leaves_of(json_array_get(predicate, 1));
        if (!strcmp(json_string_value(json_array_get(predicate, 0)), "opcode"))
            note_opcodes(filter, leaves);
    }
}

static void read_filter(struct reader *reader, const char *uuid, const json_t *from,
                        GArray *all_taken)
{
    static const char *const known[] = {"watermark", "priority",     "predicates",
                                        "action",    "reason_trail", NULL};
    g_autofree char *subject = g_strdup_printf("job filter %s", uuid);
    struct filter_reader filter = {.reader = reader, .uuid = uuid, .subject = subject};
    g_autoptr(GError) error = NULL;
    if (config_get(reader->now, "job_filter", uuid, NULL)) {
        import_note(reader->import, "%s: is here already and is left as it is", subject);
        return;
    }
    json_autoptr made = make_filter(&filter, from);
    record_autoptr(job_filter) rule = record_parse(&job_filter_record, made, RECORD_STRICT, &error);
    if (!rule || !rules_check_filter(rule, &error) ||
        !predicates_fit(&filter, rule->predicates, &error)) {
        import_note(reader->import, "%s: is not taken over: %s", subject, error->message);
        return;
    }
    const struct taken taken = {uuid, rule->priority, ganeti_number(from, "watermark", 0)};
    g_array_append_val(all_taken, taken);
    note_filter(&filter, rule);
    ganeti_note_rest(reader, subject, from, known);
    ganeti_put(reader, "job_filter", uuid, json_steal(&made));
}

/* --- all of them --- */

static int compare_taken(const void *left, const void *right)
{
    const struct taken *a = left, *b = right;
    if (a->priority != b->priority)
        return a->priority < b->priority ? -1 : 1;
    if (a->watermark != b->watermark)
        return a->watermark < b->watermark ? -1 : 1;
    return strcmp(a->uuid, b->uuid);
}

/* Their watermarks mean nothing here, so the UUID alone orders rules of one priority. */
static void note_order(struct reader *reader, GArray *all_taken)
{
    g_array_sort(all_taken, compare_taken);
    for (guint i = 1; i < all_taken->len; i++) {
        const struct taken *first = &g_array_index(all_taken, struct taken, i - 1);
        const struct taken *second = &g_array_index(all_taken, struct taken, i);
        if (first->priority == second->priority && strcmp(first->uuid, second->uuid) > 0)
            import_note(reader->import,
                        "job filter %s: is asked after %s here, which was made later and has "
                        "priority %" G_GUINT64_FORMAT " too; where that matters give one of them "
                        "another (fettle queue filter replace)",
                        first->uuid, second->uuid, first->priority);
    }
}

void ganeti_filters(struct reader *reader)
{
    const json_t *filters = json_object_get(reader->data, "filters");
    g_autoptr(GPtrArray) uuids = ganeti_names(filters);
    g_autoptr(GArray) all_taken = g_array_new(FALSE, FALSE, sizeof(struct taken));
    for (guint i = 0; i < uuids->len; i++) {
        const json_t *from = json_object_get(filters, uuids->pdata[i]);
        if (json_is_object(from))
            read_filter(reader, uuids->pdata[i], from, all_taken);
        else
            import_problem(reader->import, "filters.%s: must be an object",
                           (const char *)uuids->pdata[i]);
    }
    note_order(reader, all_taken);
}
