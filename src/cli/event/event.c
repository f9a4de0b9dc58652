/*
 * `fettle event`: what recovery tells people, once each (docs/design/recovery.md, "Faults,
 * counters, events"). `watch` is event_watch.c.
 */
#include "cli/cli.h"

#include "base/time_text.h"
#include "cli/commands/list.h"
#include "cli/event/event_watch.h"
#include "cli/filter_text.h"
#include "cli/pattern.h"
#include "proto/records.h"

#define WATCH_USAGE "[--kinds KIND,…] [--level LEVEL] [--filter FILTER] [NAME…]"

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

static json_t *named(int argc, char **argv)
{
    json_t *any = argc > 0 ? json_make("[s]", "|") : NULL;
    for (int i = 0; i < argc; i++)
        json_array_append_new(any, pattern_filter("subject_name", argv[i]));
    return any;
}

/* Names and levels are events' alone. */
static bool is_for_events(const char *kinds, int argc, const json_t *levels, GError **error)
{
    if (event_watch_is_plain(kinds) || (argc == 0 && levels == NULL))
        return true;
    fettle_set_error(error, WRONG_INPUT,
                     "--level and names choose among events alone; with --kinds %s say what you "
                     "want by --filter",
                     kinds);
    return false;
}

static int event_watch(struct cli *cli, int argc, char **argv, GError **error)
{
    GError *bad = NULL;
    json_t *levels = NULL, *filter = NULL;
    const char *kinds = cli_take_option(&argc, argv, "--kinds", &bad);
    const char *text = bad == NULL ? cli_take_option(&argc, argv, "--filter", &bad) : NULL;
    if (text != NULL)
        filter = filter_text_parse(text, &bad);
    if (bad == NULL && take_choice(&argc, argv, false, &levels, &bad) &&
        cli_expect(argc, argv, argc, "event watch " WATCH_USAGE, &bad) &&
        is_for_events(kinds != NULL ? kinds : "event", argc, levels, &bad))
        return event_watch_run(cli, kinds != NULL ? kinds : "event", filter,
                               filter_text_both(levels, named(argc, argv)), error);
    json_decref(levels);
    json_decref(filter);
    g_propagate_error(error, bad);
    return -1;
}

#define LEVELS "--level info|warning|error|critical: that, and what matters more."

const struct command event_commands[] = {
    {"event", "list",
     "[--since TIME] [--level LEVEL] [--filter FILTER] [--sort FIELD,…] [--limit N] [NAME…]",
     "List events: what was recovered, what a person should look at, what was found without a "
     "record. " LEVELS,
     event_list},
    {"event", "watch", WATCH_USAGE,
     "Show events as they come, until Ctrl-C. " LEVELS " --kinds: other things than events, with a "
     "comma between: job, instance, node, group, network, service, lock, brake, decision, volume, "
     "snapshot, backup, image; each as it is once it has changed. --filter: only those of which it "
     "holds, by the fields of query-fields.",
     event_watch},
    {0},
};
