/* See rules.h. */
#include "core/job/rules.h"

#include <string.h>

#include "base/log.h"
#include "core/job/filter.h"
#include "core/job/reason.h"
#include "proto/nearest.h"

#define OWN_LIMIT "rate-limit:"

enum about { ABOUT_JOBID, ABOUT_OPCODE, ABOUT_REASON, ABOUT_USER };

static const struct {
    const char *word;
    const char *fields[4]; /* empty: any */
} abouts[] = {
    [ABOUT_JOBID] = {"jobid", {"id"}},
    [ABOUT_OPCODE] = {"opcode", {NULL}},
    [ABOUT_REASON] = {"reason", {"source", "reason", "timestamp"}},
    [ABOUT_USER] = {"user", {"user"}},
};

static const char *const actions[] = {[RULE_ACCEPT] = "ACCEPT",
                                      [RULE_CONTINUE] = "CONTINUE",
                                      [RULE_PAUSE] = "PAUSE",
                                      [RULE_REJECT] = "REJECT",
                                      [RULE_RATE_LIMIT] = "RATE_LIMIT"};

struct predicate {
    enum about about;
    struct filter *filter;
};

struct rules {
    GPtrArray *rules;    /* struct rule, in order */
    GStringChunk *names; /* of fields */
};

/* --- parsing --- */

struct naming {
    enum about about;
    GStringChunk *names;
};

static const void *resolve(const char *name, void *data)
{
    const struct naming *naming = data;
    const char *const *known = abouts[naming->about].fields;
    bool found = !known[0];
    for (guint i = 0; i < G_N_ELEMENTS(abouts[0].fields) && known[i]; i++)
        found = found || g_str_equal(known[i], name);
    return found ? g_string_chunk_insert_const(naming->names, name) : NULL;
}

/* The word "watermark" in the place of a value becomes the number. */
static json_t *with_watermark(const json_t *filter, guint64 watermark, guint depth)
{
    if (!json_is_array(filter) || depth > LIMIT_FILTER_DEPTH)
        return json_deep_copy(filter);
    json_t *copy = json_array();
    size_t i;
    const json_t *part;
    json_array_foreach(filter, i, part) {
        bool word =
            i == 2 && json_is_string(part) && g_str_equal(json_string_value(part), "watermark");
        json_array_append_new(copy, word ? json_integer((json_int_t)watermark)
                                         : with_watermark(part, watermark, depth + 1));
    }
    return copy;
}

static void predicate_free(gpointer data)
{
    struct predicate *predicate = data;
    filter_free(predicate->filter);
    g_free(predicate);
}

static bool parse_about(const json_t *json, enum about *ret_about, GError **error)
{
    const char *word = json_string_value(json_array_get(json, 0));
    for (guint i = 0; word && i < G_N_ELEMENTS(abouts); i++) {
        if (g_str_equal(abouts[i].word, word)) {
            *ret_about = (enum about)i;
            return true;
        }
    }
    fettle_set_error(error, WRONG_INPUT, "[0]: must be jobid, opcode, reason or user");
    return false;
}

static struct predicate *parse_predicate(const json_t *json, guint64 watermark, GStringChunk *names,
                                         GError **error)
{
    struct naming naming = {.names = names};
    GError *bad = NULL;
    if (json_array_size(json) != 2) {
        fettle_set_error(error, WRONG_INPUT, ": must be [what, filter]");
        return NULL;
    }
    if (!parse_about(json, &naming.about, error))
        return NULL;
    json_autoptr filter = naming.about == ABOUT_JOBID
                              ? with_watermark(json_array_get(json, 1), watermark, 0)
                              : json_incref(json_array_get(json, 1));
    struct predicate *predicate = g_new0(struct predicate, 1);
    predicate->about = naming.about;
    predicate->filter = filter_parse(filter, resolve, &naming, &bad);
    if (!bad)
        return predicate;
    predicate_free(predicate);
    g_propagate_prefixed_error(error, bad, "[1]: ");
    return NULL;
}

static bool parse_predicates(struct rule *rule, const json_t *predicates, guint64 watermark,
                             GStringChunk *names, GError **error)
{
    if (!json_is_array(predicates) || json_array_size(predicates) > LIMIT_RULE_PREDICATES) {
        fettle_set_error(error, WRONG_INPUT,
                         "predicates: must be a list of at most %d of [what, filter]",
                         LIMIT_RULE_PREDICATES);
        return false;
    }
    size_t i;
    const json_t *json;
    json_array_foreach(predicates, i, json) {
        struct predicate *predicate = parse_predicate(json, watermark, names, error);
        if (!predicate) {
            g_prefix_error(error, "predicates[%zu]", i);
            return false;
        }
        g_ptr_array_add(rule->predicates, predicate);
    }
    return true;
}

static bool parse_action(struct rule *rule, const json_t *action, GError **error)
{
    const char *word = json_string_value(action);
    if (json_array_size(action) == 2) {
        const json_t *limit = json_array_get(action, 1);
        word = json_string_value(json_array_get(action, 0));
        if (word && g_str_equal(word, actions[RULE_RATE_LIMIT]) && json_is_integer(limit) &&
            json_integer_value(limit) > 0) {
            rule->action = RULE_RATE_LIMIT;
            rule->limit = (guint64)json_integer_value(limit);
            return true;
        }
        word = NULL;
    }
    for (guint i = 0; word && i < RULE_RATE_LIMIT; i++) {
        if (g_str_equal(actions[i], word)) {
            rule->action = (enum rule_action)i;
            return true;
        }
    }
    fettle_set_error(error, WRONG_INPUT,
                     "action: must be ACCEPT, CONTINUE, PAUSE, REJECT or [\"RATE_LIMIT\", n] with "
                     "n of at least 1");
    return false;
}

static void rule_free(gpointer data)
{
    struct rule *rule = data;
    g_ptr_array_unref(rule->predicates);
    g_free(rule);
}

static struct rule *rule_new(const json_t *predicates, const json_t *action, guint64 watermark,
                             GStringChunk *names, GError **error)
{
    struct rule *rule = g_new0(struct rule, 1);
    rule->predicates = g_ptr_array_new_with_free_func(predicate_free);
    if (parse_predicates(rule, predicates, watermark, names, error) &&
        parse_action(rule, action, error))
        return rule;
    rule_free(rule);
    return NULL;
}

bool rules_check(const json_t *predicates, const json_t *action, GError **error)
{
    GStringChunk *names = g_string_chunk_new(64);
    struct rule *rule = rule_new(predicates, action, 0, names, error);
    bool good = rule != NULL;
    if (good)
        rule_free(rule);
    g_string_chunk_free(names);
    return good;
}

static bool check_size(const struct job_filter *filter, GError **error)
{
    size_t bytes = json_dumpb(filter->predicates, NULL, 0, JSON_COMPACT | JSON_ENCODE_ANY) +
                   json_dumpb(filter->reason, NULL, 0, JSON_COMPACT | JSON_ENCODE_ANY);
    if (bytes <= LIMIT_RULE_BYTES)
        return true;
    fettle_set_error(error, LIMIT, "the filter has %zu bytes, at most %zu are taken", bytes,
                     LIMIT_RULE_BYTES);
    return false;
}

bool rules_check_filter(const struct job_filter *filter, GError **error)
{
    return check_size(filter, error) && rules_check(filter->predicates, filter->action, error) &&
           reason_check(filter->reason, error);
}

static bool is_known_opcode(const char *id, GError **error)
{
    size_t count;
    const struct opcode *table = opcode_table(&count);
    g_autoptr(GPtrArray) ids = g_ptr_array_new();
    if (opcode_find(id))
        return true;
    for (size_t i = 0; i < count; i++)
        g_ptr_array_add(ids, (void *)table[i].id);
    g_ptr_array_add(ids, NULL);
    const char *nearest = nearest_word(id, (const char *const *)ids->pdata);
    fettle_set_error(error, WRONG_INPUT, "there is no opcode \"%s\"%s%s%s", id,
                     nearest ? "; did you mean " : "", nearest ? nearest : "", nearest ? "?" : "");
    return false;
}

/* Of a filter that rules_check() has found in order. */
static bool names_opcodes(const json_t *filter, GError **error)
{
    const char *field = json_string_value(json_array_get(filter, 1));
    const char *sign = json_string_value(json_array_get(filter, 0));
    const char *value = json_string_value(json_array_get(filter, 2));
    size_t i;
    const json_t *part;
    if (field && value && g_str_equal(field, "OP_ID") &&
        (g_str_equal(sign, "=") || g_str_equal(sign, "==")))
        return is_known_opcode(value, error);
    json_array_foreach(filter, i, part)
        if (!names_opcodes(part, error))
            return false;
    return true;
}

bool rules_check_opcodes(const struct job_filter *filter, GError **error)
{
    size_t i;
    const json_t *predicate;
    json_array_foreach(filter->predicates, i, predicate)
        if (!names_opcodes(json_array_get(predicate, 1), error)) {
            g_prefix_error(error, "predicates[%zu]: ", i);
            return false;
        }
    return true;
}

/* --- all of them --- */

int rules_compare(const struct job_filter *a, const struct job_filter *b)
{
    if (a->priority != b->priority)
        return a->priority < b->priority ? -1 : 1;
    if (a->watermark != b->watermark)
        return a->watermark < b->watermark ? -1 : 1;
    return strcmp(a->uuid, b->uuid);
}

static gint compare_rules(gconstpointer left, gconstpointer right)
{
    return rules_compare((*(const struct rule *const *)left)->filter,
                         (*(const struct rule *const *)right)->filter);
}

struct rules *rules_new(const struct config *config)
{
    struct rules *rules = g_new0(struct rules, 1);
    g_autoptr(GPtrArray) filters = config_list(config, "job_filter");
    rules->rules = g_ptr_array_new_with_free_func(rule_free);
    rules->names = g_string_chunk_new(256);
    for (guint i = 0; i < filters->len; i++) {
        const struct job_filter *filter = filters->pdata[i];
        g_autoptr(GError) error = NULL;
        struct rule *rule =
            rule_new(filter->predicates, filter->action, filter->watermark, rules->names, &error);
        if (!rule) {
            log_warning("", "filter %s is passed over: %s", filter->uuid, error->message);
            continue;
        }
        rule->filter = filter;
        g_ptr_array_add(rules->rules, rule);
    }
    g_ptr_array_sort(rules->rules, compare_rules);
    return rules;
}

void rules_free(struct rules *rules)
{
    if (!rules)
        return;
    g_ptr_array_unref(rules->rules);
    g_string_chunk_free(rules->names);
    g_free(rules);
}

guint rules_count(const struct rules *rules)
{
    return rules->rules->len;
}

/* --- judging --- */

static json_t *id_value(const void *field, void *data)
{
    return json_integer((json_int_t)((const struct job *)data)->id);
}

static json_t *user_value(const void *field, void *data)
{
    return json_string(((const struct job *)data)->user);
}

static json_t *member_value(const void *field, void *data)
{
    return json_incref(json_object_get(data, field));
}

/* Of [source, text, nanoseconds]. */
static json_t *entry_value(const void *field, void *data)
{
    for (size_t i = 0; i < 3; i++) {
        if (g_str_equal(abouts[ABOUT_REASON].fields[i], field))
            return json_incref(json_array_get(data, i));
    }
    return NULL;
}

static bool reason_matches(const struct filter *filter, const json_t *input)
{
    size_t i;
    json_t *entry;
    json_array_foreach(json_object_get(input, "reason"), i, entry) {
        if (filter_match(filter, entry_value, entry, NULL))
            return true;
    }
    return false;
}

static bool some_op_matches(const struct predicate *predicate, const struct job *job)
{
    for (guint i = 0; i < job->ops->len; i++) {
        json_t *input = ((const struct job_op *)job->ops->pdata[i])->input;
        if (predicate->about == ABOUT_OPCODE
                ? filter_match(predicate->filter, member_value, input, NULL)
                : reason_matches(predicate->filter, input))
            return true;
    }
    return false;
}

static bool holds(const struct predicate *predicate, const struct job *job)
{
    switch (predicate->about) {
    case ABOUT_JOBID:
        return filter_match(predicate->filter, id_value, (void *)job, NULL);
    case ABOUT_USER:
        return filter_match(predicate->filter, user_value, (void *)job, NULL);
    case ABOUT_OPCODE:
    case ABOUT_REASON:
        return some_op_matches(predicate, job);
    }
    g_assert_not_reached();
}

static bool all_hold(const struct rule *rule, const struct job *job)
{
    for (guint i = 0; i < rule->predicates->len; i++) {
        if (!holds(rule->predicates->pdata[i], job))
            return false;
    }
    return true;
}

const struct rule *rules_judge(const struct rules *rules, const struct job *job)
{
    for (guint i = 0; i < rules->rules->len; i++) {
        const struct rule *rule = rules->rules->pdata[i];
        if (rule->action != RULE_CONTINUE && all_hold(rule, job))
            return rule;
    }
    return NULL;
}

/* --- limits that jobs bring along --- */

guint64 rules_own_limit(const char *text)
{
    char *end = NULL;
    if (!g_str_has_prefix(text, OWN_LIMIT))
        return 0;
    guint64 limit = g_ascii_strtoull(text + strlen(OWN_LIMIT), &end, 10);
    return end && *end == ':' && end[1] != '\0' ? limit : 0;
}

GPtrArray *rules_own_limits(const struct job *job)
{
    GPtrArray *found = g_ptr_array_new();
    for (guint i = 0; i < job->ops->len; i++) {
        const struct job_op *op = job->ops->pdata[i];
        size_t at;
        const json_t *entry;
        json_array_foreach(json_object_get(op->input, "reason"), at, entry) {
            const char *text = json_string_value(json_array_get(entry, 1));
            if (text && rules_own_limit(text) > 0 &&
                !g_ptr_array_find_with_equal_func(found, text, g_str_equal, NULL))
                g_ptr_array_add(found, (void *)text);
        }
    }
    return found;
}
