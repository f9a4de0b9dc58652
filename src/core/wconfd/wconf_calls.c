/* Which calls wconfd answers, and whom it lets pass. See wconf.h and wconf_private.h. */
#include <string.h>

#include "core/config/named_change.h"
#include "core/config/view_questions.h"
#include "core/wconfd/engine_members.h"
#include "core/wconfd/key_renewal.h"
#include "core/wconfd/wconf_private.h"

static void handle_cluster_status(struct wconf *wconf, struct rpc_request *request)
{
    record_autoptr(cluster_status) status = cluster_status_new();
    const struct cluster *cluster = config_cluster(wconf->committed);
    status->history = config_history(wconf->committed);
    status->epoch = wconf->epoch;
    status->serial = config_serial(wconf->committed);
    g_free(status->master_node);
    status->master_node = g_strdup(cluster->master_node);
    g_ptr_array_unref(status->nodes_pending);
    status->nodes_pending = wconf_nodes_pending(wconf);
    g_ptr_array_unref(status->problems);
    status->problems = invariants_problems(wconf->committed, LIMIT_PROBLEMS);
    const char *odd = engine_members_odd(wconf);
    if (odd)
        g_ptr_array_add(status->problems, g_strdup_printf("members of etcd: %s", odd));
    const char *damage = wconf_damage(wconf);
    if (damage)
        g_ptr_array_add(status->problems, g_strdup(damage));
    wconf_list_doubted(wconf, status->problems);
    wconf_followers_list(wconf, status->copies);
    struct authority *authority = wconf->env->authority;
    status->authority = authority && authority->ops->has_key(authority);
    keys_progress_free(status->keys);
    status->keys = key_renewal_progress(wconf);
    rpc_answer(request, cluster_status_to_json(status));
}

/* Of what is on its way to the store too: another job may be about to take it. */
static void handle_look(struct wconf *wconf, struct rpc_request *request)
{
    g_autoptr(GError) error = NULL;
    const struct record *record = method_find(ROLE_WCONFD, request->name)->args;
    void *args = rpc_request_args(request, record, &error);
    json_t *answer = args ? view_questions_answer(wconf->head, request->name, args, &error) : NULL;
    if (answer)
        rpc_answer(request, answer);
    else
        rpc_fail(request, error);
    record_free(record, args);
}

static void handle_ping(struct wconf *wconf, struct rpc_request *request)
{
    rpc_answer(request, NULL);
}

static const struct {
    const char *name;
    void (*handle)(struct wconf *wconf, struct rpc_request *request);
    bool fenced; /* a job of another epoch may not (SAF-05) */
} calls[] = {
    {"wait_changes", wconf_handle_wait_changes, false},
    {"snapshot", wconf_handle_snapshot, false},
    {"follow", wconf_handle_follow, false},
    {"flush_config", wconf_handle_flush_config, false},
    {"commit_ids", wconf_handle_commit_ids, false},
    {"commit", wconf_handle_commit, true},
    {"confirm", wconf_handle_confirm, false},
    {"set_replica_state", wconf_handle_set_replica_state, false},
    {"set_migrated", wconf_handle_set_migrated, false},
    {"cluster_status", handle_cluster_status, false},
    {"promised", handle_look, false},
    {"address_user", handle_look, false},
    {"draw_address", handle_look, false},
    {"draw_port", handle_look, false},
    {"write_config", wconf_handle_write_config, false},
    {"update_locks", wconf_handle_update_locks, true},
    {"list_locks", wconf_handle_list_locks, false},
    {"list_all_locks", wconf_handle_list_all_locks, false},
    {"list_lock_waiters", wconf_handle_list_lock_waiters, false},
    {"union_locks", wconf_handle_union_locks, true},
    {"guarded_union_locks", wconf_handle_guarded_union_locks, true},
    {"intersect_locks", wconf_handle_intersect_locks, false},
    {"free_locks", wconf_handle_free_locks, false},
    {"free_locks_level", wconf_handle_free_locks_level, false},
    {"downgrade_locks_level", wconf_handle_downgrade_locks_level, false},
    {"set_lock_priority", wconf_handle_set_lock_priority, false},
    {"ping", handle_ping, false},
    {"owner_gone", wconf_handle_owner_gone, false},
    {"ca_info", wconf_handle_ca_info, false},
    {"join", wconf_handle_join, false},
    {"change_engine", wconf_handle_change_engine, false},
    {"engine_progress", wconf_handle_engine_progress, false},
    {"renew_keys", key_renewal_handle_begin, false},
    {"keys_progress", key_renewal_handle_progress, false},
    {"authority_key", wconf_handle_authority_key, false},
};

/* SAF-05: what a job of an older mastership still wants to change is over. */
static bool may_pass(const struct wconf *wconf, const struct rpc_request *request, GError **error)
{
    guint64 history = config_history(wconf->committed);
    if (strcmp(request->from_role, ROLE_JOB) != 0 ||
        (request->stamp.history == history && request->stamp.epoch == wconf->epoch))
        return true;
    fettle_set_error(error, STALE_EPOCH,
                     "%s of job %u: it belongs to history %" G_GUINT64_FORMAT
                     " epoch %" G_GUINT64_FORMAT ", the master is at history %" G_GUINT64_FORMAT
                     " epoch %" G_GUINT64_FORMAT,
                     request->name, request->from_job, request->stamp.history, request->stamp.epoch,
                     history, wconf->epoch);
    return false;
}

void wconf_handle(struct wconf *wconf, struct rpc_request *request)
{
    g_autoptr(GError) error = NULL;
    if (wconf->down) {
        rpc_fail(request, wconf->down);
        return;
    }
    if (wconf->leaving) {
        rpc_fail_new(request, FETTLE_ERROR_TEMPORARY,
                     "the mastership is being handed to another node; try again");
        return;
    }
    if (!wconf->serving) {
        rpc_fail_new(request, FETTLE_ERROR_TEMPORARY,
                     "the configuration daemon is starting; try again");
        return;
    }
    for (guint i = 0; i < G_N_ELEMENTS(calls); i++) {
        if (strcmp(calls[i].name, request->name) != 0)
            continue;
        if (calls[i].fenced && !may_pass(wconf, request, &error))
            rpc_fail(request, error);
        else
            calls[i].handle(wconf, request);
        return;
    }
    if (!named_change_exists(request->name))
        rpc_fail_new(request, FETTLE_ERROR_PROTOCOL, "wconfd has no method %s", request->name);
    else if (!may_pass(wconf, request, &error))
        rpc_fail(request, error);
    else
        wconf_handle_commit(wconf, request);
}
