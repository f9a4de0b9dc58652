/*
 * `fettle event`: what recovery tells people, once each (docs/design/recovery.md, "Faults,
 * counters, events"). `watch` is woken by LUXI's WatchChanges and then asks for what is new, so
 * nothing is lost when luxid or the master is another one.
 */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

#include "base/time_text.h"
#include "cli/commands/list.h"
#include "cli/filter_text.h"
#include "cli/foreign.h"
#include "cli/interrupt.h"
#include "cli/pattern.h"
#include "io/output.h"
#include "proto/records.h"

/* --- what is chosen --- */

static bool since_filter(const char *text, json_t **filter, GError **error)
{
    gint64 ms;
    if (!time_text_duration(text, 1000, &ms)) {
        fettle_set_error(error, WRONG_INPUT,
                         "--since: \"%s\" is no duration such as 90s, 10m, 2h or 3d", text);
        return false;
    }
    gint64 from_us = g_get_real_time() - ms * 1000;
    *filter = filter_text_both(*filter, json_make("[ssI]", ">=", "at_us", (json_int_t)from_us));
    return true;
}

/* That level and what matters more. */
static bool level_filter(const char *text, json_t **filter, GError **error)
{
    int level = enum_parse(&event_level_words, text);
    if (level < 0) {
        g_autofree char *words = g_strjoinv(", ", (char **)event_level_words.words);
        fettle_set_error(error, WRONG_INPUT, "--level: must be one of %s, not \"%s\"", words, text);
        return false;
    }
    json_t *any = json_make("[s]", "|");
    for (const char *const *word = event_level_words.words + level; *word != NULL; word++)
        json_array_append_new(any, json_make("[sss]", "=", "level", *word));
    *filter = filter_text_both(*filter, any);
    return true;
}

/* Takes --level, and --since if it may be given, out of the command line. */
static bool take_choice(int *argc, char **argv, bool since, json_t **ret_filter, GError **error)
{
    GError *bad = NULL;
    const char *from = since ? cli_take_option(argc, argv, "--since", &bad) : NULL;
    const char *level = bad == NULL ? cli_take_option(argc, argv, "--level", &bad) : NULL;
    json_t *filter = NULL;
    if (bad == NULL && (from == NULL || since_filter(from, &filter, &bad)) &&
        (level == NULL || level_filter(level, &filter, &bad))) {
        *ret_filter = filter;
        return true;
    }
    json_decref(filter);
    g_propagate_error(error, bad);
    return false;
}

static int event_list(struct cli *cli, int argc, char **argv, GError **error)
{
    json_t *filter = NULL;
    if (!take_choice(&argc, argv, true, &filter, error))
        return -1;
    return cli_list(cli, "event", "list", "event", filter, argc, argv, error);
}

/* --- following --- */

static const char *const fields[] = {"serial_no",    "uuid",         "at",      "level", "event",
                                     "subject_kind", "subject_name", "task",    "old",   "new",
                                     "rule",         "host",         "summary", NULL};
enum { SERIAL, UUID, AT, LEVEL, EVENT, SUBJECT_KIND, SUBJECT, TASK, OLD, NEW, RULE, HOST, SUMMARY };

struct following {
    struct cli *cli;
    json_t *filter; /* NULL: all */
    char *stream;
    json_int_t position;
    json_int_t from;   /* serial of the configuration: what was before is not shown */
    GHashTable *shown; /* uuids of those of that serial that were */
    bool begun;
};

static void print_event(const struct cli *cli, const json_t *row)
{
    if (cli->json) {
        json_autoptr object = json_object();
        for (size_t i = AT; fields[i] != NULL; i++) {
            const json_t *value = cli_cell_value(row, i);
            json_object_set_new(object, fields[i],
                                value != NULL ? json_deep_copy(value) : json_null());
        }
        g_autofree char *text = foreign_json(json_to_text(object));
        printf("%s\n", text);
        return;
    }
    g_autofree char *at = cli_time_text((gint64)json_number_value(cli_cell_value(row, AT)));
    printf("%s  %-8s  %s: %s\n", at, cli_cell_string(row, LEVEL), cli_cell_string(row, SUBJECT),
           cli_cell_string(row, SUMMARY));
}

/* Rows come in the order in which they were made. */
static bool show_new(struct following *following, GError **error)
{
    json_t *new = json_make("[ssI]", ">=", "serial_no", following->from);
    json_autoptr rows = cli_query(following->cli, "event", fields,
                                  filter_text_both(new, json_incref(following->filter)), error);
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        json_int_t serial = json_integer_value(cli_cell_value(row, SERIAL));
        if (serial > following->from) {
            following->from = serial;
            g_hash_table_remove_all(following->shown);
        }
        if (g_hash_table_add(following->shown, g_strdup(cli_cell_string(row, UUID))))
            print_event(following->cli, row);
    }
    return rows != NULL;
}

static bool begin(struct following *following, GError **error)
{
    json_autoptr info = cli_call(following->cli, "QueryClusterInfo", json_array(), error);
    if (info == NULL)
        return false;
    following->from = json_integer_value(json_object_get(info, "serial")) + 1;
    following->begun = true;
    return true;
}

/* One question, and what follows from its answer. */
static bool follow(struct following *following, GError **error)
{
    if (!following->begun && !begin(following, error))
        return false;
    json_autoptr answer = cli_call(
        following->cli, "WatchChanges",
        json_make("[{s[]} s I i]", "event", following->stream, following->position, LIVE_WAIT_S),
        error);
    bool news = json_is_true(json_object_get(answer, "anew")) ||
                json_array_size(json_object_get(answer, "changes")) > 0;
    if (answer == NULL || (news && !show_new(following, error)))
        return false;
    const char *stream = json_string_value(json_object_get(answer, "stream"));
    g_free(following->stream);
    following->stream = g_strdup(stream != NULL ? stream : "");
    following->position = json_integer_value(json_object_get(answer, "serial"));
    g_clear_pointer(&following->cli->away, g_free);
    return output_is_read(error);
}

static int follow_until_left(struct following *following, GError **error)
{
    for (;;) {
        g_autoptr(GError) reason = NULL;
        if (follow(following, &reason))
            continue;
        if (fettle_error_is(reason, DETACHED))
            return 0;
        if (!following->begun || !cli_is_passing(reason)) {
            g_propagate_error(error, g_steal_pointer(&reason));
            return -1;
        }
        if (!cli_wait_for_luxid(following->cli, false, reason))
            return 0;
    }
}

static json_t *named(int argc, char **argv)
{
    json_t *any = argc > 0 ? json_make("[s]", "|") : NULL;
    for (int i = 0; i < argc; i++)
        json_array_append_new(any, pattern_filter("subject_name", argv[i]));
    return any;
}

static int event_watch(struct cli *cli, int argc, char **argv, GError **error)
{
    json_t *filter = NULL;
    if (!take_choice(&argc, argv, false, &filter, error))
        return -1;
    if (!cli_expect(argc, argv, argc, "event watch [--level LEVEL] [NAME…]", error)) {
        json_decref(filter);
        return -1;
    }
    struct following following = {.cli = cli,
                                  .filter = filter_text_both(filter, named(argc, argv)),
                                  .stream = g_strdup(""),
                                  .shown =
                                      g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL)};
    cli_interrupt_catch();
    cli->interruptible = true;
    int code = follow_until_left(&following, error);
    cli->interruptible = false;
    g_hash_table_unref(following.shown);
    json_decref(following.filter);
    g_free(following.stream);
    return code;
}

#define LEVELS "--level info|warning|error|critical: that, and what matters more."

const struct command event_commands[] = {
    {"event", "list",
     "[--since TIME] [--level LEVEL] [--filter FILTER] [--sort FIELD,…] [--limit N] [NAME…]",
     "List events: what was recovered, what a person should look at, what was found without a "
     "record. " LEVELS,
     event_list},
    {"event", "watch", "[--level LEVEL] [NAME…]", "Show events as they come, until Ctrl-C. " LEVELS,
     event_watch},
    {0},
};
