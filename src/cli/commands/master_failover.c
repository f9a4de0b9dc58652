/*
 * `fettle cluster master-failover`: a person makes another candidate the master, in the place of
 * one that is gone, or with the engine etcd of one that hands over. It works without luxid and
 * without a master: it asks fettle-wconfd of this node, which keeps a copy of the configuration
 * (docs/design/mastership.md).
 */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

#include "cli/wconfd.h"
#include "proto/records.h"

/* --- what is shown --- */

static json_t *cell(json_t *value)
{
    return json_make("[io]", 0, value);
}

static json_t *copy_row(const struct seat_candidate *candidate)
{
    const struct role_status *status = candidate->status;
    if (status == NULL)
        return json_make("[ooooo]", cell(json_string(candidate->name)),
                         cell(json_string("does not answer")), cell(json_string("-")),
                         cell(json_string("-")), cell(json_string("-")));
    g_autofree char *heard =
        status->contact ? g_strdup_printf("%" G_GUINT64_FORMAT " s ago", status->contact_ms / 1000)
                        : g_strdup("not since it began");
    return json_make("[ooooo]", cell(json_string(candidate->name)),
                     cell(json_string(enum_word(&seat_role_words, (int)status->seat))),
                     cell(json_integer((json_int_t)status->epoch)),
                     cell(json_integer((json_int_t)status->serial)),
                     cell(json_string(status->seat == SEAT_MASTER ? "-" : heard)));
}

static void show(const struct cli *cli, const struct seat_candidates *candidates)
{
    static const char *const heads[] = {"node", "is", "epoch", "serial", "heard of its master",
                                        NULL};
    json_autoptr rows = json_array();
    for (guint i = 0; i < candidates->nodes->len; i++)
        json_array_append_new(rows, copy_row(candidates->nodes->pdata[i]));
    if (!cli->json)
        cli_print_rows(cli, NULL, heads, rows);
}

/* --- the person's word --- */

static bool is_etcd(const struct seat_candidates *candidates)
{
    for (guint i = 0; i < candidates->nodes->len; i++) {
        const struct seat_candidate *candidate = candidates->nodes->pdata[i];
        if (candidate->status != NULL && candidate->status->engine == ENGINE_KIND_ETCD)
            return true;
    }
    return false;
}

static bool is_undecided(const struct seat_candidates *candidates)
{
    for (guint i = 0; i < candidates->nodes->len; i++) {
        const struct seat_candidate *candidate = candidates->nodes->pdata[i];
        if (candidate->status != NULL && candidate->status->undecided != 0)
            return true;
    }
    return false;
}

/* What may be lost, and what must not be; g_free() it. */
static char *warning(const struct seat_candidates *candidates)
{
    if (is_undecided(candidates))
        return g_strdup_printf(
            "\nNode %s has begun to change the engine to etcd, and nobody in reach knows whether "
            "it "
            "was made. From\nnow on it is: nothing that was stored before is lost. If it was not "
            "made, whatever node %s has stored\nsince is lost, for good: at most what it answered "
            "while no copy was in reach. It must not run any more: power it off.\n\n",
            candidates->master_name, candidates->master_name);
    if (is_etcd(candidates))
        return g_strdup_printf("\nThe master is %s. With the engine etcd no change is lost, and "
                               "guests are not touched; "
                               "waiting jobs go on.\nJobs that run on the master at this moment "
                               "end with an error.\n\n",
                               candidates->master_name);
    for (guint i = 0; i < candidates->nodes->len; i++) {
        const struct seat_candidate *candidate = candidates->nodes->pdata[i];
        if (candidate->status != NULL && candidate->status->seat == SEAT_CAMPAIGNS)
            return g_strdup_printf(
                "\nNode %s has the store of the last master, so nothing is lost unless another one "
                "became master\nafter it. The candidates that do not answer must not run any "
                "more: power them off.\n\n",
                candidate->name);
    }
    g_autofree char *since = cli_time_text((gint64)candidates->alone_since);
    return g_strdup_printf(
        "\nThe master is %s. Whatever it has stored since the newest of these copies is lost, for "
        "good:\nat most what it answered from %s on, while no copy was in reach. Nodes that are "
        "not\noffline tell the new master what they run; of guests whose node is dead a replica "
        "may be on record as in sync\nthat the old one knew to be stale. It must not run any "
        "more: power it off.\n\n",
        candidates->master_name, since);
}

static bool is_sure(const struct seat_candidates *candidates, GError **error)
{
    g_autofree char *text = warning(candidates);
    return cli_has_typed(text, "Type the name of the cluster to go on:", candidates->cluster_name,
                         error);
}

struct wish {
    const char *to;
    const char *statement;
    bool alone, yes;
};

static json_t *wish_args(const struct wish *wish)
{
    return json_make("{ss ss sb}", "node", wish->to != NULL ? wish->to : "", "statement",
                     wish->statement != NULL ? wish->statement : "", "alone", wish->alone);
}

/* Whether somebody lives who may be the master; `to` is whom the person wants, or NULL. */
static bool has_master(const struct seat_candidates *candidates, const char *to, GError **error)
{
    for (guint i = 0; to != NULL && i < candidates->nodes->len; i++) {
        const struct seat_candidate *candidate = candidates->nodes->pdata[i];
        if (candidate->status == NULL || candidate->status->seat != SEAT_MASTER ||
            strcmp(candidate->name, to) != 0)
            continue;
        fettle_set_error(error, WRONG_STATE, "node \"%s\" is the master already", to);
        return true;
    }
    if (*candidates->master_lives == '\0' || is_etcd(candidates))
        return false;
    fettle_set_error(error, UNSAFE, "%s; power it off first if it cannot be master any more",
                     candidates->master_lives);
    return true;
}

static int fail_over(struct cli *cli, struct wconfd_line *line, const struct wish *wish,
                     GError **error)
{
    json_autoptr seen = wconfd_call(line, "candidates", json_object(), error);
    record_autoptr(seat_candidates) candidates =
        seen != NULL ? seat_candidates_parse(seen, RECORD_LAX, error) : NULL;
    if (candidates == NULL)
        return -1;
    show(cli, candidates);
    if (has_master(candidates, wish->to, error))
        return -1;
    if (!wish->yes && !is_sure(candidates, error))
        return -1;
    json_autoptr answer = wconfd_call(line, "take_over", wish_args(wish), error);
    record_autoptr(take_over_result) result =
        answer != NULL ? take_over_result_parse(answer, RECORD_LAX, error) : NULL;
    if (result == NULL)
        return -1;
    cli_say(cli, json_make("{ss sI}", "node", result->name, "serial", (json_int_t)result->serial),
            "Node %s becomes the master, with serial %" G_GUINT64_FORMAT ".", result->name,
            result->serial);
    return 0;
}

static bool take_wish(int *argc, char **argv, struct wish *wish, GError **error)
{
    g_autoptr(GError) bad = NULL;
    wish->yes = cli_take_flag(argc, argv, "--yes");
    wish->alone = cli_take_flag(argc, argv, "--alone");
    wish->to = cli_take_option(argc, argv, "--to", &bad);
    if (bad == NULL)
        wish->statement = cli_take_option(argc, argv, "--statement", &bad);
    if (bad == NULL)
        return true;
    g_propagate_error(error, g_steal_pointer(&bad));
    return false;
}

static int cluster_failover(struct cli *cli, int argc, char **argv, GError **error)
{
    struct wish wish = {0};
    if (!take_wish(&argc, argv, &wish, error) ||
        !cli_expect(argc, argv, 0,
                    "cluster master-failover [--to NODE] [--alone --statement TEXT] [--yes]",
                    error))
        return -1;
    g_autoptr(wconfd_line_t) line = wconfd_open(cli, error);
    return line != NULL ? fail_over(cli, line, &wish, error) : -1;
}

const struct command failover_commands[] = {
    {"cluster", "master-failover", "[--to NODE] [--alone --statement TEXT] [--yes]",
     "Make another candidate the master: with the engine sqlite when the master is gone, with etcd "
     "at "
     "any time; run it on a candidate.",
     cluster_failover},
    {0},
};
