/*
 * `fettle cluster engine renew NODE`: the member of etcd there is removed from the members, which
 * the others do; then it is what the master finds at every change of candidates: one without a
 * member. It ends what runs there, puts the data aside and adds the node as a new member
 * (core/wconfd/engine_members.c). So it is safe whatever the old member has forgotten (SAF-07).
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/task.h"
#include "cli/commands/engine.h"
#include "cli/wconfd.h"
#include "io/loop.h"

#define BACK_PATIENCE_MS 120000
#define OUT_PATIENCE_MS 30000
#define MASTER_PATIENCE_MS 10000
#define PAUSE_MS 500

static struct asked *find(const struct survey *survey, const char *node)
{
    for (guint i = 0; i < survey->members->len; i++) {
        struct asked *asked = survey->members->pdata[i];
        if (strcmp(asked->member->name, node) == 0 || strcmp(asked->member->node, node) == 0)
            return asked;
    }
    return NULL;
}

static bool is_known(const struct survey *survey, const char *node, GError **error)
{
    g_autoptr(GString) names = g_string_new(NULL);
    for (guint i = 0; i < survey->config->members->len; i++) {
        const struct engine_member *member = survey->config->members->pdata[i];
        if (strcmp(member->name, node) == 0 || strcmp(member->node, node) == 0)
            return true;
        g_string_append_printf(names, "%s%s", names->len > 0 ? ", " : "", member->name);
    }
    if (names->len == 0)
        fettle_set_error(error, WRONG_STATE,
                         "the engine is sqlite: there are no members of etcd; a damaged copy of a "
                         "candidate is made anew by itself");
    else
        fettle_set_error(error, UNKNOWN_ENTITY,
                         "node \"%s\" has no member of etcd; there are those of %s", node,
                         names->str);
    return false;
}

/* Who lets it in again; an election may be under way. */
static bool has_master(const struct cli *cli, GError **error)
{
    g_autoptr(wconfd_line_t) line = wconfd_open(cli, error);
    gint64 until = loop_boot_ms() + MASTER_PATIENCE_MS;
    bool never = false;
    while (line != NULL) {
        record_autoptr(role_status) status = wconfd_role(line, error);
        if (status == NULL)
            return false;
        if (engine_has_master(status, wconfd_node(line)))
            return true;
        if (loop_boot_ms() >= until) {
            fettle_set_error(
                error, WRONG_STATE,
                "this node sees no master, who would let the member come in again%s%s; "
                "nothing has changed; run it on the master, or see fettle cluster "
                "engine status and the log of fettle-wconfd",
                *status->why ? ": " : "", status->why);
            return false;
        }
        loop_run_until(&never, PAUSE_MS);
    }
    return false;
}

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
    const struct survey *survey;
    struct asked *one;
    const struct asked *other;
    GError *error;
    bool done;
};

static guint64 id_before(const struct renewal *renewal)
{
    const struct etcd_listed *listed =
        etcd_members_find(renewal->other->listed, renewal->one->member->peer_url);
    return listed != NULL ? listed->id : 0;
}

/* etcd takes no change of members in the first seconds after one has come back. */
static bool take_out(const struct renewal *renewal, guint64 id, GError **error)
{
    gint64 until = loop_boot_ms() + OUT_PATIENCE_MS;
    g_autoptr(GError) why = NULL;
    while (id != 0 && !etcd_member_remove(renewal->other->client, id, &why)) {
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
    g_autoptr(GPtrArray) members = etcd_members(renewal->other->client, NULL);
    const struct etcd_listed *listed =
        members != NULL ? etcd_members_find(members, renewal->one->member->peer_url) : NULL;
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
                     renewal->one->member->name, BACK_PATIENCE_MS / 1000);
    return false;
}

static void renew_task(void *data)
{
    struct renewal *renewal = data;
    guint64 before = id_before(renewal);
    if (take_out(renewal, before, &renewal->error))
        wait_back(renewal, before, &renewal->error);
    renewal->done = true;
}

/* --- the command --- */

static bool renew(struct survey *survey, struct cli *cli, const char *node, bool yes,
                  GError **error)
{
    struct renewal renewal = {.survey = survey, .one = find(survey, node)};
    const char *name = renewal.one->member->name;
    bool disputed = false;
    renewal.other = survey_other(survey, renewal.one);
    if (!survey_may_leave(survey, renewal.one, &disputed, error) || !has_master(cli, error) ||
        (!yes && !is_sure(cli, name, disputed, error)))
        return false;
    struct task_group *group = task_group_new();
    task_spawn(group, renew_task, &renewal);
    loop_run_until(&renewal.done, BACK_PATIENCE_MS * 2);
    task_group_kill(group);
    task_group_unref(group);
    if (renewal.error != NULL)
        g_propagate_error(error, renewal.error);
    else if (!renewal.done)
        fettle_set_error(error, TIMEOUT,
                         "whether the member of %s has left is not known: no answer within %d s; "
                         "see fettle cluster engine status",
                         name, BACK_PATIENCE_MS * 2 / 1000);
    return renewal.done && renewal.error == NULL;
}

int engine_renew(struct cli *cli, const char *node, bool yes, GError **error)
{
    g_autoptr(node_paths_t) paths = node_paths_new(cli->root, error);
    struct survey *survey = survey_new();
    cli_join_lab(cli);
    bool ok = paths && survey_read(survey, paths, error) && is_known(survey, node, error) &&
              survey_ask(survey, paths, error) && renew(survey, cli, node, yes, error);
    if (ok)
        cli_say(cli, json_make("{ss}", "node", find(survey, node)->member->name),
                "The member of etcd on %s has fresh data and a vote.",
                find(survey, node)->member->name);
    survey_free(survey);
    return ok ? 0 : -1;
}
