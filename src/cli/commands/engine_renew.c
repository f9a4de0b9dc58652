/*
 * `fettle cluster engine renew NODE`: the member of etcd there is removed from the members, which
 * the others do; then it is what the master finds at every change of candidates: one without a
 * member. It ends what runs there, puts the data aside and adds the node as a new member
 * (core/wconfd/engine_members.c). So it is safe whatever the old member has forgotten (SAF-07).
 * Whether it may leave fettle-wconfd of this candidate says (core/candidate/renewal.h).
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/task.h"
#include "cli/commands/engine.h"
#include "cli/wconfd.h"
#include "io/loop.h"
#include "proto/engine_config.h"

#define BACK_PATIENCE_MS 120000
#define OUT_PATIENCE_MS 30000
#define PAUSE_MS 500

static bool is_sure(const struct cli *cli, const char *name, bool disputed, GError **error)
{
    bool asks = !cli->json && isatty(STDIN_FILENO) && isatty(STDERR_FILENO);
    if (!asks && !disputed)
        return true;
    if (!asks) {
        fettle_set_error(error, WRONG_STATE,
                         "the data of the member of %s differs from the others', and nobody can "
                         "say which is right; if it is known that theirs is, say so with --yes",
                         name);
        return false;
    }
    g_autofree char *question = g_strdup_printf(
        "The member of etcd on %s leaves, its data is put aside there, and it comes in again with "
        "that of the others. Until then they bear one loss less.%s",
        name, disputed ? " Nobody can say whether its data is right, or theirs." : "");
    return cli_is_sure(question, error);
}

/* --- in a task --- */

struct renewal {
    const struct check_renewal_result *check;
    struct etcd_client *other; /* a member that stays */
    GError *error;
    bool done;
};

static bool id_before(const struct renewal *renewal, guint64 *ret_id, GError **error)
{
    g_autoptr(GPtrArray) members = etcd_members(renewal->other, error);
    const struct etcd_listed *listed =
        members != NULL ? etcd_members_find(members, renewal->check->peer_url) : NULL;
    *ret_id = listed != NULL ? listed->id : 0;
    return members != NULL;
}

/* etcd takes no change of members in the first seconds after one has come back. */
static bool take_out(const struct renewal *renewal, guint64 id, GError **error)
{
    gint64 until = loop_boot_ms() + OUT_PATIENCE_MS;
    g_autoptr(GError) why = NULL;
    while (id != 0 && !etcd_member_remove(renewal->other, id, &why)) {
        if (!fettle_error_is(why, TEMPORARY) || loop_boot_ms() > until || !loop_sleep(PAUSE_MS)) {
            g_propagate_error(error, g_steal_pointer(&why));
            return false;
        }
        g_clear_error(&why);
    }
    return true;
}

static bool is_back(const struct renewal *renewal, guint64 before)
{
    g_autoptr(GPtrArray) members = etcd_members(renewal->other, NULL);
    const struct etcd_listed *listed =
        members != NULL ? etcd_members_find(members, renewal->check->peer_url) : NULL;
    return listed != NULL && listed->id != before && !listed->learner && *listed->name != '\0';
}

static bool wait_back(struct renewal *renewal, guint64 before, GError **error)
{
    gint64 until = loop_boot_ms() + BACK_PATIENCE_MS;
    while (loop_boot_ms() < until) {
        if (is_back(renewal, before))
            return true;
        if (!loop_sleep(PAUSE_MS))
            break;
    }
    fettle_set_error(error, TIMEOUT,
                     "the member of %s is out, and has not come in again within %d s; the master "
                     "goes on trying, and the log of its fettle-wconfd says what is in the way",
                     renewal->check->member, BACK_PATIENCE_MS / 1000);
    return false;
}

static void renew_task(void *data)
{
    struct renewal *renewal = data;
    guint64 before;
    if (id_before(renewal, &before, &renewal->error) && take_out(renewal, before, &renewal->error))
        wait_back(renewal, before, &renewal->error);
    renewal->done = true;
}

/* --- the command --- */

static bool renew(struct renewal *renewal, GError **error)
{
    struct task_group *group = task_group_new();
    task_spawn(group, renew_task, renewal);
    loop_run_until(&renewal->done, BACK_PATIENCE_MS * 2);
    task_group_kill(group);
    task_group_unref(group);
    if (renewal->error != NULL)
        g_propagate_error(error, renewal->error);
    else if (!renewal->done)
        fettle_set_error(error, TIMEOUT,
                         "whether the member of %s has left is not known: no answer within %d s; "
                         "see fettle cluster engine status",
                         renewal->check->member, BACK_PATIENCE_MS * 2 / 1000);
    return renewal->done && renewal->error == NULL;
}

/* NULL with an error: it may not. */
static struct check_renewal_result *check(const struct cli *cli, const char *node, GError **error)
{
    g_autoptr(wconfd_line_t) line = wconfd_open(cli, error);
    json_autoptr answer =
        line != NULL ? wconfd_call(line, "check_renewal", json_make("{ss}", "node", node), error)
                     : NULL;
    return answer != NULL ? check_renewal_result_parse(answer, RECORD_LAX, error) : NULL;
}

static bool renew_checked(struct cli *cli, const struct node_paths *paths,
                          const struct engine_config *config,
                          const struct check_renewal_result *check, bool yes, GError **error)
{
    guint other;
    if ((!yes && !is_sure(cli, check->member, check->disputed, error)) ||
        !engine_config_find(config, check->other, &other, error))
        return false;
    struct renewal renewal = {.check = check,
                              .other = survey_client(paths, config->members->pdata[other], error)};
    bool ok = renewal.other != NULL && renew(&renewal, error);
    etcd_client_free(renewal.other);
    return ok;
}

int engine_renew(struct cli *cli, const char *node, bool yes, GError **error)
{
    g_autoptr(node_paths_t) paths = node_paths_new(cli->root, error);
    struct survey *survey = survey_new();
    guint number;
    cli_join_lab(cli);
    loop_init();
    bool known = paths && survey_read(survey, paths, error) &&
                 engine_config_find(survey->config, node, &number, error) &&
                 survey_may_ask(paths, error);
    record_autoptr(check_renewal_result) result = known ? check(cli, node, error) : NULL;
    bool ok = result != NULL && renew_checked(cli, paths, survey->config, result, yes, error);
    if (ok)
        cli_say(cli, json_make("{ss}", "node", result->member),
                "The member of etcd on %s has fresh data and a vote.", result->member);
    survey_free(survey);
    return ok ? 0 : -1;
}
