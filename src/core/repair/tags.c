/* See tags.h. */
#include "core/repair/tags.h"

#include "base/limits.h"

#include "proto/nearest.h"
#include "proto/repair_tag.h"

#include <string.h>

#define PREFIX REPAIR_TAG_PREFIX

static const char *const outcome_names[] = {"success", "failure", "enoperm", NULL};

static int word_index(const char *const *words, const char *text)
{
    for (int i = 0; words[i] != NULL; i++)
        if (strcmp(words[i], text) == 0)
            return i;
    return -1;
}

static bool parse_seconds(const char *text, gint64 *ret_seconds)
{
    return g_ascii_string_to_signed(text, 10, 0, G_MAXINT64 / 1000000, ret_seconds, NULL);
}

/* "" or job ids joined by '+'. */
static GStrv parse_jobs(const char *text)
{
    g_auto(GStrv) jobs = *text == '\0' ? g_new0(char *, 1) : g_strsplit(text, "+", -1);
    for (guint i = 0; jobs[i] != NULL; i++)
        if (!g_ascii_string_to_unsigned(jobs[i], 10, 1, G_MAXINT64, NULL, NULL))
            return NULL;
    return g_steal_pointer(&jobs);
}

/* `rest` is what stands behind "suspend": nothing, or a colon and the end. Somebody wanted a pause:
 * an end that cannot be read means none. */
static void parse_suspend(const char *rest, struct repair_tag *tag)
{
    tag->kind = REPAIR_TAG_SUSPEND;
    tag->forever = strlen(rest) < 2 || !parse_seconds(rest + 1, &tag->timestamp);
    tag->unreadable = tag->forever && strlen(rest) > 1;
}

/* pending:TYPE:ID:TIMESTAMP:JOBS and result:TYPE:ID:TIMESTAMP:RESULT:JOBS */
static void parse_record(char **parts, guint count, bool result, struct repair_tag *tag)
{
    tag->kind = REPAIR_TAG_MALFORMED;
    if (count != (result ? 6 : 5) || *parts[2] == '\0' ||
        strlen(parts[2]) > LIMIT_REPAIR_ID_CHARS || !parse_seconds(parts[3], &tag->timestamp))
        return;
    int type = enum_parse(&repair_type_words, parts[1]);
    int outcome = result ? word_index(outcome_names, parts[4]) : 0;
    g_auto(GStrv) jobs = parse_jobs(parts[count - 1]);
    if (type < 0 || outcome < 0 || jobs == NULL)
        return;
    tag->kind = result ? REPAIR_TAG_RESULT : REPAIR_TAG_PENDING;
    tag->type = (enum repair_type)type;
    tag->outcome = (enum repair_outcome)outcome;
    tag->id = g_strdup(parts[2]);
    tag->jobs = g_steal_pointer(&jobs);
}

void repair_tag_parse(const char *text, struct repair_tag *ret_tag)
{
    *ret_tag = (struct repair_tag){.kind = REPAIR_TAG_NONE};
    if (!g_str_has_prefix(text, PREFIX))
        return;
    g_auto(GStrv) parts = g_strsplit(text + strlen(PREFIX), ":", -1);
    guint count = g_strv_length(parts);
    ret_tag->kind = REPAIR_TAG_MALFORMED;
    if (count == 0)
        return;
    int type = enum_parse(&repair_type_words, parts[0]);
    if (type >= 0 && count == 1) {
        ret_tag->kind = REPAIR_TAG_ENABLE;
        ret_tag->type = (enum repair_type)type;
    } else if (strcmp(parts[0], "suspend") == 0) {
        parse_suspend(text + strlen(PREFIX "suspend"), ret_tag);
    } else if (strcmp(parts[0], "pending") == 0) {
        parse_record(parts, count, false, ret_tag);
    } else if (strcmp(parts[0], "result") == 0) {
        parse_record(parts, count, true, ret_tag);
    }
}

void repair_tag_clear(struct repair_tag *tag)
{
    g_clear_pointer(&tag->id, g_free);
    g_clear_pointer(&tag->jobs, g_strfreev);
}

bool repair_tag_check(const char *text, GError **error)
{
    struct repair_tag tag;
    repair_tag_parse(text, &tag);
    bool fine = tag.kind != REPAIR_TAG_MALFORMED && !tag.unreadable;
    repair_tag_clear(&tag);
    if (fine)
        return true;
    g_autoptr(GPtrArray) words = g_ptr_array_new();
    g_auto(GStrv) parts = g_strsplit(text + strlen(PREFIX), ":", 2);
    for (const char *const *word = repair_type_words.words; *word != NULL; word++)
        g_ptr_array_add(words, (void *)*word);
    g_ptr_array_add(words, (void *)"suspend");
    g_ptr_array_add(words, NULL);
    g_autofree char *known = g_strjoinv(", ", (char **)words->pdata);
    const char *nearest =
        parts[0] != NULL ? nearest_word(parts[0], (const char *const *)words->pdata) : NULL;
    fettle_set_error(error, WRONG_INPUT,
                     "tags: \"%s\" says nothing to auto-repair; behind " PREFIX
                     " stands one of %s%s%s%s",
                     text, known, nearest != NULL ? "; did you mean " PREFIX : "",
                     nearest != NULL ? nearest : "", nearest != NULL ? "?" : "");
    return false;
}

const char *repair_type_name(enum repair_type type)
{
    return enum_word(&repair_type_words, (int)type);
}

const char *repair_outcome_name(enum repair_outcome outcome)
{
    return outcome_names[outcome];
}

static char *join_jobs(const char *const *jobs)
{
    return jobs == NULL ? g_strdup("") : g_strjoinv("+", (char **)jobs);
}

char *repair_tag_pending(enum repair_type type, const char *id, gint64 timestamp,
                         const char *const *jobs)
{
    g_autofree char *list = join_jobs(jobs);
    return g_strdup_printf(PREFIX "pending:%s:%s:%" G_GINT64_FORMAT ":%s", repair_type_name(type),
                           id, timestamp, list);
}

char *repair_tag_result(enum repair_type type, const char *id, gint64 timestamp,
                        enum repair_outcome outcome, const char *const *jobs)
{
    g_autofree char *list = join_jobs(jobs);
    return g_strdup_printf(PREFIX "result:%s:%s:%" G_GINT64_FORMAT ":%s:%s", repair_type_name(type),
                           id, timestamp, outcome_names[outcome], list);
}
