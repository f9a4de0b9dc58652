/* The job queue as a whole: what it takes, and rules of operators about jobs; see cli.h. */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

#include "base/time_text.h"
#include "proto/nearest.h"

#define FILTER_USAGE                                                                               \
    "[--priority N] [--opcode OPCODE] [--for-reason TEXT] [--user NAME] [--predicates JSON] "      \
    "[--reason TEXT] ACCEPT|CONTINUE|PAUSE|REJECT|RATE_LIMIT:N"

/* --- what it takes --- */

static json_t *queue_state(struct cli *cli, GError **error)
{
    json_autoptr values = cli_call(cli, "QueryConfigValues",
                                   json_make("[[ss]]", "drain_flag", "watcher_pause"), error);
    json_autoptr info =
        values != NULL ? cli_call(cli, "QueryClusterInfo", json_array(), error) : NULL;
    if (info == NULL)
        return NULL;
    return json_make("{sO sO sO sO sO}", "drained", json_array_get(values, 0), "queued",
                     json_object_get(info, "jobs_queued"), "running",
                     json_object_get(info, "jobs_running"), "max_running_jobs",
                     json_object_get(info, "max_running_jobs"), "watcher_paused_until",
                     json_array_get(values, 1));
}

static int queue_info(struct cli *cli, int argc, char **argv, GError **error)
{
    if (!cli_expect(argc, argv, 0, "queue info", error))
        return -1;
    json_autoptr state = queue_state(cli, error);
    if (state == NULL)
        return -1;
    if (cli->json) {
        cli_print_json(state);
        return 0;
    }
    bool drained = json_is_true(json_object_get(state, "drained"));
    const json_t *pause = json_object_get(state, "watcher_paused_until");
    g_autofree char *until =
        json_is_integer(pause) ? cli_time_text(json_integer_value(pause)) : NULL;
    json_int_t queued = json_integer_value(json_object_get(state, "queued"));
    json_int_t running = json_integer_value(json_object_get(state, "running"));
    printf("The queue %s. %" JSON_INTEGER_FORMAT " job%s queued, %" JSON_INTEGER_FORMAT
           " of at most %" JSON_INTEGER_FORMAT " run%s.\n",
           drained ? "is drained: it takes no jobs until `fettle queue undrain`" : "takes jobs",
           queued, queued == 1 ? " is" : "s are", running,
           json_integer_value(json_object_get(state, "max_running_jobs")), running == 1 ? "s" : "");
    if (until != NULL)
        printf("The watcher is paused until %s.\n", until);
    return 0;
}

static int set_drained(struct cli *cli, bool drained, GError **error)
{
    json_autoptr done = cli_call(cli, "SetDrainFlag", json_make("[b]", drained), error);
    if (done == NULL)
        return -1;
    if (drained)
        cli_say(cli, NULL,
                "The queue takes no more jobs, also none of the watcher; those that are in it go "
                "on. Back: fettle queue undrain");
    else
        cli_say(cli, NULL, "The queue takes jobs.");
    return 0;
}

static int queue_drain(struct cli *cli, int argc, char **argv, GError **error)
{
    return cli_expect(argc, argv, 0, "queue drain", error) ? set_drained(cli, true, error) : -1;
}

static int queue_undrain(struct cli *cli, int argc, char **argv, GError **error)
{
    return cli_expect(argc, argv, 0, "queue undrain", error) ? set_drained(cli, false, error) : -1;
}

/* --- rules --- */

struct rule {
    gint64 priority;
    json_t *predicates, *action, *reason;
};

static void rule_clear(struct rule *rule)
{
    json_decref(rule->predicates);
    json_decref(rule->action);
    json_decref(rule->reason);
}

/* "RATE_LIMIT:3" is ["RATE_LIMIT", 3]. What it may be is luxid's to say. */
/* NULL with an error. */
static json_t *parse_action(const char *text, GError **error)
{
    static const char *const plain[] = {"ACCEPT", "CONTINUE", "PAUSE", "REJECT", NULL};
    static const char *const all[] = {"ACCEPT", "CONTINUE",     "PAUSE",
                                      "REJECT", "RATE_LIMIT:N", NULL};
    guint64 limit;
    if (g_str_has_prefix(text, "RATE_LIMIT:") &&
        g_ascii_string_to_unsigned(text + strlen("RATE_LIMIT:"), 10, 1, G_MAXINT32, &limit, NULL))
        return json_make("[sI]", "RATE_LIMIT", (json_int_t)limit);
    if (g_strv_contains(plain, text))
        return json_string(text);
    const char *near = nearest_word(text, all);
    fettle_set_error(error, WRONG_INPUT,
                     "\"%s\": must be ACCEPT, CONTINUE, PAUSE, REJECT or RATE_LIMIT:N, such as "
                     "RATE_LIMIT:5%s%s%s",
                     text, near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
    return NULL;
}

static bool take_predicates(int *argc, char **argv, struct rule *rule, GError **error)
{
    static const struct {
        const char *flag, *about, *field;
    } equals[] = {{"--opcode", "opcode", "OP_ID"},
                  {"--for-reason", "reason", "reason"},
                  {"--user", "user", "user"}};
    g_autoptr(GError) bad = NULL;
    const char *text = cli_take_option(argc, argv, "--predicates", &bad);
    rule->predicates = text != NULL ? json_parse_limited(text, strlen(text), LIMIT_RULE_BYTES, &bad)
                                    : json_array();
    for (guint i = 0; bad == NULL && i < G_N_ELEMENTS(equals); i++) {
        const char *value = cli_take_option(argc, argv, equals[i].flag, &bad);
        if (value != NULL && json_is_array(rule->predicates))
            json_array_append_new(rule->predicates, json_make("[s[sss]]", equals[i].about, "=",
                                                              equals[i].field, value));
    }
    if (bad == NULL)
        return true;
    g_propagate_prefixed_error(error, g_steal_pointer(&bad), text != NULL ? "--predicates: " : "");
    return false;
}

static bool take_rule(int *argc, char **argv, struct rule *rule, GError **error)
{
    g_autoptr(GError) bad = NULL;
    const char *priority = cli_take_option(argc, argv, "--priority", &bad);
    const char *why = bad == NULL ? cli_take_option(argc, argv, "--reason", &bad) : NULL;
    guint64 number = 0;
    if (bad == NULL && priority != NULL &&
        !g_ascii_string_to_unsigned(priority, 10, 0, 1000000, &number, NULL))
        fettle_set_error(&bad, WRONG_INPUT, "--priority: \"%s\" is no number from 0 to 1000000",
                         priority);
    if (bad != NULL) {
        g_propagate_error(error, g_steal_pointer(&bad));
        return false;
    }
    rule->priority = (gint64)number;
    rule->reason = why == NULL ? json_array()
                               : json_make("[[ssI]]", "fettle:user", why,
                                           (json_int_t)(g_get_real_time() * 1000));
    return take_predicates(argc, argv, rule, error);
}

static int put_rule(struct cli *cli, const char *uuid, int argc, char **argv, const char *usage,
                    GError **error)
{
    struct rule rule = {0};
    json_t *answer = NULL;
    if (take_rule(&argc, argv, &rule, error) && cli_expect(argc, argv, 1, usage, error)) {
        rule.action = parse_action(argv[0], error);
        answer = rule.action == NULL
                     ? NULL
                     : cli_call(cli, "ReplaceFilter",
                                json_make("[s?, I, O, O, O]", uuid, (json_int_t)rule.priority,
                                          rule.predicates, rule.action, rule.reason),
                                error);
    }
    rule_clear(&rule);
    if (answer == NULL)
        return -1;
    cli_say(cli, json_make("{sO}", "uuid", answer), "Filter %s is in force.",
            json_string_value(answer));
    json_decref(answer);
    return 0;
}

static int filter_add(struct cli *cli, int argc, char **argv, GError **error)
{
    return put_rule(cli, NULL, argc, argv, "queue filter add " FILTER_USAGE, error);
}

static int filter_replace(struct cli *cli, int argc, char **argv, GError **error)
{
    static const char usage[] = "queue filter replace UUID " FILTER_USAGE;
    if (argc < 1) {
        cli_expect(argc, argv, 1, usage, error);
        return -1;
    }
    return put_rule(cli, argv[0], argc - 1, argv + 1, usage, error);
}

static int filter_list(struct cli *cli, int argc, char **argv, GError **error)
{
    if (!cli_expect(argc, argv, 0, "queue filter list", error))
        return -1;
    g_auto(GStrv) names =
        cli_choose_fields(cli, "filter", "uuid,priority,predicates,action,watermark,reason_trail");
    if (!cli_check_fields(cli, "filter", (const char *const *)names, error))
        return -1;
    json_autoptr rows = cli_query(cli, "filter", (const char *const *)names, NULL, error);
    if (rows == NULL)
        return -1;
    cli_print_rows(cli, "filter", (const char *const *)names, rows);
    return 0;
}

static int filter_remove(struct cli *cli, int argc, char **argv, GError **error)
{
    if (!cli_expect(argc, argv, 1, "queue filter remove UUID", error))
        return -1;
    json_autoptr done = cli_call(cli, "DeleteFilter", json_make("[s]", argv[0]), error);
    if (done == NULL)
        return -1;
    cli_say(cli, NULL, "Filter %s is gone.", argv[0]);
    return 0;
}

/* --- the watcher --- */

#define LONGEST_PAUSE_MS (G_GINT64_CONSTANT(365) * 86400 * 1000)

static int watcher_pause(struct cli *cli, int argc, char **argv, GError **error)
{
    gint64 ms, seconds;
    if (!cli_expect(argc, argv, 1, "queue pause-watcher TIME", error))
        return -1;
    if (!time_text_duration(argv[0], 1000, &ms) || ms > LONGEST_PAUSE_MS) {
        fettle_set_error(error, WRONG_INPUT,
                         "\"%s\" is no time of at most 365d, such as 90s, 10m, 2h or 3d", argv[0]);
        return -1;
    }
    seconds = ms / 1000;
    gint64 until = seconds > 0 ? g_get_real_time() / G_USEC_PER_SEC + seconds : 0;
    json_autoptr done =
        cli_call(cli, "SetWatcherPause", json_make("[I]", (json_int_t)until), error);
    if (done == NULL)
        return -1;
    g_autofree char *text = cli_time_text(until);
    if (seconds > 0)
        cli_say(cli, NULL, "The watcher does nothing until %s.", text);
    else
        cli_say(cli, NULL, "The watcher works.");
    return 0;
}

const struct command queue_commands[] = {
    {"queue", "info", "", "Whether the queue takes jobs, and how many there are.", queue_info},
    {"queue", "drain", "", "Take no more jobs; those that are queued go on.", queue_drain},
    {"queue", "undrain", "", "Take jobs again.", queue_undrain},
    {"queue", "filter add", FILTER_USAGE,
     "Make a rule about jobs: which may run, wait, are refused or limited. All predicates must "
     "hold; the first rule in the order of priorities that does not say CONTINUE decides.",
     filter_add},
    {"queue", "filter replace", "UUID " FILTER_USAGE, "Replace a rule.", filter_replace},
    {"queue", "filter list", "", "List the rules, in the order in which they are asked.",
     filter_list},
    {"queue", "filter remove", "UUID", "Remove a rule.", filter_remove},
    {"queue", "pause-watcher", "TIME", "Let the watcher do nothing for a while; 0: it works again.",
     watcher_pause},
    {0},
};
