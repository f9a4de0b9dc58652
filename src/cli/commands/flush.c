/*
 * `fettle cluster flush`: waits until every candidate in reach has the newest change on its disk,
 * and says which have it. To be given before a host is switched off on purpose. It asks
 * fettle-wconfd of this node, which must be the master's.
 */
#include "cli/cli.h"

#include "cli/wconfd.h"
#include "proto/records.h"

#define WAIT_MOST_MS 600000
#define USAGE "cluster flush [--timeout-ms MS]"

static bool take_timeout(int *argc, char **argv, json_t *args, GError **error)
{
    guint64 ms;
    g_autoptr(GError) bad = NULL;
    const char *text = cli_take_option(argc, argv, "--timeout-ms", &bad);
    if (bad != NULL) {
        g_propagate_error(error, g_steal_pointer(&bad));
        return false;
    }
    if (text == NULL)
        return true;
    if (!g_ascii_string_to_unsigned(text, 10, 0, WAIT_MOST_MS, &ms, NULL)) {
        fettle_set_error(error, WRONG_INPUT,
                         "--timeout-ms: \"%s\" is no number of milliseconds from 0 to %d", text,
                         WAIT_MOST_MS);
        return false;
    }
    json_object_set_new(args, "wait_ms", json_integer((json_int_t)ms));
    return true;
}

static void show(const struct cli *cli, const struct flush_config_result *result)
{
    static const char *const heads[] = {"node", "serial", "newest change", NULL};
    json_autoptr rows = json_array();
    for (guint i = 0; i < result->copies->len; i++) {
        const struct flushed_copy *copy = result->copies->pdata[i];
        json_array_append_new(
            rows, json_make("[[is][iI][is]]", 0, copy->name, 0, (json_int_t)copy->serial, 0,
                            copy->reachable ? "has it" : "not up to date, or out of reach"));
    }
    if (!cli->json && result->copies->len > 0)
        cli_print_rows(cli, NULL, heads, rows);
}

/* Names of those that are in reach, or that are not; free with g_free(). */
static char *names_of(const struct flush_config_result *result, bool reachable)
{
    g_autoptr(GString) names = g_string_new(NULL);
    for (guint i = 0; i < result->copies->len; i++) {
        const struct flushed_copy *copy = result->copies->pdata[i];
        if (copy->reachable == reachable)
            g_string_append_printf(names, "%s%s", names->len > 0 ? ", " : "", copy->name);
    }
    return g_string_free(g_steal_pointer(&names), FALSE);
}

static void say(const struct cli *cli, const struct flush_config_result *result)
{
    g_autofree char *have = names_of(result, true);
    g_autofree char *out = names_of(result, false);
    json_t *object = flush_config_result_to_json(result);
    if (result->copies->len == 0)
        cli_say(cli, object,
                "Serial %" G_GUINT64_FORMAT " is the newest; there is no other candidate that "
                "could have it.",
                result->serial);
    else
        cli_say(cli, object, "Serial %" G_GUINT64_FORMAT " is on the disk of %s.%s%s%s",
                result->serial, *have ? have : "no other candidate",
                *out ? " Not up to date, or out of reach, and not waited for: " : "", out,
                *out ? "." : "");
}

static int cluster_flush(struct cli *cli, int argc, char **argv, GError **error)
{
    json_autoptr args = json_object();
    if (!take_timeout(&argc, argv, args, error) || !cli_expect(argc, argv, 0, USAGE, error))
        return -1;
    g_autoptr(wconfd_line_t) line = wconfd_open(cli, error);
    json_autoptr answer =
        line != NULL ? wconfd_call(line, "flush_config", json_incref(args), error) : NULL;
    record_autoptr(flush_config_result) result =
        answer != NULL ? flush_config_result_parse(answer, RECORD_LAX, error) : NULL;
    if (result == NULL)
        return -1;
    show(cli, result);
    say(cli, result);
    return 0;
}

const struct command flush_commands[] = {
    {"cluster", "flush", "[--timeout-ms MS]",
     "Wait until every candidate in reach has the newest change on its disk, and say which have it "
     "(30000 ms at most, if not said otherwise); run it on the master.",
     cluster_flush},
    {0},
};
