/* See wconfd.h. */
#include "cli/wconfd.h"

#include <string.h>
#include <unistd.h>

#include "cli/call.h"
#include "cli/foreign.h"
#include "io/livelock.h"
#include "io/loop.h"
#include "io/node_config.h"

#define OWNER "import"

struct wconfd_line {
    struct node_paths *paths;
    struct node_config *config;
    struct rpc_client *client;
    struct livelock *livelock;
    struct stamp stamp; /* of its last word on what it is */
    bool exact;         /* answers are printed as JSON */
};

struct wconfd_line *wconfd_open(const struct cli *cli, GError **error)
{
    g_autoptr(wconfd_line_t) line = g_new0(struct wconfd_line, 1);
    line->exact = cli->json;
    line->paths = node_paths_new(cli->root, error);
    line->config = line->paths ? node_config_read(line->paths, error) : NULL;
    if (!line->config)
        return NULL;
    loop_init();
    line->livelock = livelock_make(line->paths, OWNER, error);
    if (!line->livelock)
        return NULL;
    line->client = rpc_client_new(line->paths, line->config->node_uuid, ROLE_CLI);
    return g_steal_pointer(&line);
}

void wconfd_close(struct wconfd_line *line)
{
    if (!line)
        return;
    rpc_client_free(line->client);
    if (line->livelock)
        livelock_drop(line->livelock);
    node_config_free(line->config);
    node_paths_free(line->paths);
    g_free(line);
}

const char *wconfd_node(const struct wconfd_line *line)
{
    return line->config->node_uuid;
}

json_t *wconfd_owner(const struct wconfd_line *line)
{
    return json_make("{s:s,s:s,s:I}", "job", OWNER, "livelock", livelock_name(line->livelock),
                     "pid", (json_int_t)getpid());
}

json_t *wconfd_call(struct wconfd_line *line, const char *method, json_t *args, GError **error)
{
    const struct rpc_call call = {.to_node = NODE_LOCAL,
                                  .to_role = ROLE_WCONFD,
                                  .method = method,
                                  .args = args,
                                  .stamp = line->stamp};
    g_autoptr(GError) failure = NULL;
    json_t *result = cli_call_rpc(line->client, &call, &failure);
    if (failure && fettle_error_is(failure, UNREACHABLE)) {
        g_autofree char *other = cli_other_master(line->paths);
        g_prefix_error(&failure,
                       "fettle-wconfd of this node does not answer (%s%s is this node a master "
                       "candidate, and are you root?): ",
                       other && *other ? other : "is this the right host,",
                       other && *other ? ";" : "");
    }
    if (failure)
        g_propagate_error(error, g_steal_pointer(&failure));
    if (!line->exact)
        foreign_show(result);
    return result;
}

struct role_status *wconfd_role(struct wconfd_line *line, GError **error)
{
    json_autoptr answer = wconfd_call(line, "wait_role", json_object(), error);
    struct role_status *status =
        answer != NULL ? role_status_parse(answer, RECORD_LAX, error) : NULL;
    if (status != NULL)
        line->stamp = (struct stamp){.history = status->history, .epoch = status->epoch};
    return status;
}

bool wconfd_lock(struct wconfd_line *line, const char *name, GError **error)
{
    json_t *args = json_make("{s:o,s:[{s:s,s:s}]}", "owner", wconfd_owner(line), "locks", "name",
                             name, "mode", "exclusive");
    json_autoptr result = wconfd_call(line, "update_locks", args, error);
    if (!result)
        return false;
    if (json_is_true(json_object_get(result, "granted")))
        return true;
    const json_t *owner = json_array_get(json_object_get(result, "blockers"), 0);
    const char *who = json_string_value(json_object_get(owner, "job"));
    fettle_set_error(error, LOCK_BLOCKED, "%s is held by %s; try again when that has ended", name,
                     who ? who : "somebody");
    return false;
}
