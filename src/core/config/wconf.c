/* wconfd's thinking: its life, the dispatch of calls, barriers, stepping down. See wconf.h and
 * wconf_private.h. */
#include <string.h>

#include "base/log.h"
#include "core/config/look.h"
#include "core/config/narrow.h"
#include "core/config/wconf_private.h"

struct barrier_wait {
    void (*fn)(struct wconf *wconf, void *data);
    void *data;
};

struct late_answer {
    struct rpc_request *request;
    json_t *result;
};

/* --- stepping down --- */

void wconf_on_step_down(struct wconf *wconf, void (*fn)(const GError *reason, void *data),
                        void *data)
{
    wconf->on_down = fn;
    wconf->on_down_data = data;
}

void wconf_step_down(struct wconf *wconf, enum fettle_error code, const char *format, ...)
{
    if (wconf->down)
        return;
    va_list args;
    va_start(args, format);
    wconf->down = g_error_new_valist(FETTLE_ERROR, (gint)code, format, args);
    va_end(args);
    wconf->serving = false;
    log_error("", "stepping down: %s", wconf->down->message);
    wconf_stream_end(wconf);
    wconf_join_end(wconf);
    wconf_owners_end(wconf);
    wconf_locks_end(wconf);
    wconf_announce_end(wconf);
    wconf_watch_end(wconf);
    wconf_copies_end(wconf);
    wconf_refuse_held_commits(wconf);
    wconf_engine_end(wconf);
    if (wconf->on_down)
        wconf->on_down(wconf->down, wconf->on_down_data);
}

/* This boot's mastership cannot go on: without its journal the next one begins under a new epoch,
 * if the other candidates let it. */
void wconf_replaced(struct wconf *wconf, const GError *why)
{
    g_autoptr(GError) error = NULL;
    if (wconf->down)
        return;
    if (!wconf->env->ops->file_remove(wconf->env, FILE_RUN, JOURNAL_FILE, &error))
        log_error("", "run/" JOURNAL_FILE ": %s", error->message);
    wconf_step_down(wconf, FETTLE_ERROR_NOT_MASTER, "%s", why->message);
}

/* --- barriers --- */

static void barrier_start(struct wconf *wconf);

/* Those that wait for the barrier under way; lives until the engine calls back. */
struct barrier_round {
    struct wconf *wconf;
    GPtrArray *waits;
};

static void run_waits(struct wconf *wconf, GPtrArray *waits)
{
    for (guint i = 0; i < waits->len; i++) {
        struct barrier_wait *wait = waits->pdata[i];
        wait->fn(wconf, wait->data);
    }
    g_ptr_array_unref(waits);
}

static void barrier_start_cb(bool still_master, void *data)
{
    struct barrier_round *round = data;
    struct wconf *wconf = round->wconf;
    wconf->barrier_round = NULL;
    if (!still_master)
        wconf_step_down(wconf, FETTLE_ERROR_NOT_MASTER,
                        "mastership is lost: the engine says that another is master");
    run_waits(wconf, round->waits);
    g_free(round);
    if (wconf->barrier_next->len > 0)
        barrier_start(wconf);
}

/* Questions that come while a barrier is under way share the next one: it must begin after they
 * were asked. */
static void barrier_start(struct wconf *wconf)
{
    struct barrier_round *round = g_new(struct barrier_round, 1);
    *round = (struct barrier_round){wconf, wconf->barrier_next};
    wconf->barrier_next = g_ptr_array_new_with_free_func(g_free);
    wconf->barrier_round = round;
    wconf->engine->ops->barrier(wconf->engine, barrier_start_cb, round);
}

void wconf_barrier(struct wconf *wconf, void (*fn)(struct wconf *wconf, void *data), void *data)
{
    struct barrier_wait *wait = g_new(struct barrier_wait, 1);
    *wait = (struct barrier_wait){fn, data};
    g_ptr_array_add(wconf->barrier_next, wait);
    if (!wconf->barrier_round)
        barrier_start(wconf);
}

/* The engine is closed before, so no barrier comes back any more. */
static void barriers_end(struct wconf *wconf)
{
    if (wconf->barrier_round) {
        run_waits(wconf, wconf->barrier_round->waits);
        g_free(wconf->barrier_round);
    }
    run_waits(wconf, wconf->barrier_next);
}

static void answer_late(struct wconf *wconf, void *data)
{
    struct late_answer *late = data;
    if (wconf->down) {
        json_decref(late->result);
        rpc_fail(late->request, wconf->down);
    } else {
        rpc_answer(late->request, late->result);
    }
    g_free(late);
}

void wconf_answer_after_barrier(struct wconf *wconf, struct rpc_request *request, json_t *result)
{
    struct late_answer *late = g_new(struct late_answer, 1);
    *late = (struct late_answer){request, result};
    wconf_barrier(wconf, answer_late, late);
}

/* --- owners --- */

char *wconf_owner_name(const struct owner *owner)
{
    return locks_owner_name(owner);
}

bool wconf_check_owner(const struct owner *owner, GError **error)
{
    if (!strchr(owner->livelock, '/') && owner->livelock[0] != '.')
        return true;
    fettle_set_error(error, WRONG_INPUT,
                     "owner.livelock: \"%s\" is not the plain name of a lock file",
                     owner->livelock);
    return false;
}

/* --- calls --- */

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
    wconf_copies_list(wconf, status->copies);
    struct authority *authority = wconf->env->authority;
    status->authority = authority && authority->ops->has_key(authority);
    rpc_answer(request, cluster_status_to_json(status));
}

/* Of what is on its way to the store too: another job may be about to take it. */
static void handle_look(struct wconf *wconf, struct rpc_request *request)
{
    g_autoptr(GError) error = NULL;
    const struct record *record = method_find(ROLE_WCONFD, request->name)->args;
    void *args = rpc_request_args(request, record, &error);
    json_t *answer = args ? look_answer(wconf->head, request->name, args, &error) : NULL;
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
    {"commit_ids", wconf_handle_commit_ids, false},
    {"commit", wconf_handle_commit, true},
    {"confirm", wconf_handle_confirm, false},
    {"set_replica_state", wconf_handle_set_replica_state, false},
    {"set_migrated", wconf_handle_set_migrated, false},
    {"cluster_status", handle_cluster_status, false},
    {"promised", handle_look, false},
    {"address_user", handle_look, false},
    {"draw_address", handle_look, false},
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
    if (!narrow_exists(request->name))
        rpc_fail_new(request, FETTLE_ERROR_PROTOCOL, "wconfd has no method %s", request->name);
    else if (!may_pass(wconf, request, &error))
        rpc_fail(request, error);
    else
        wconf_handle_commit(wconf, request);
}

/* --- start --- */

static void lost_cb(const char *why, void *data)
{
    wconf_step_down(data, FETTLE_ERROR_NOT_MASTER, "mastership is lost: %s", why);
}

bool wconf_start(struct wconf *wconf, GError **error)
{
    g_autofree char *note = NULL;
    wconf->journal = journal_open(wconf->env, wconf->locks, &note, error);
    if (!wconf->journal || !wconf_campaign(wconf, error))
        return false;
    wconf->engine->ops->on_lost(wconf->engine, lost_cb, wconf);
    log_info("",
             "master of history %" G_GUINT64_FORMAT ", epoch %" G_GUINT64_FORMAT
             ", serial %" G_GUINT64_FORMAT "; lock journal: %s, %u locks",
             config_history(wconf->committed), wconf->epoch, config_serial(wconf->committed),
             note ? note : "continued", locks_count(wconf->locks));
    wconf_copies_begin(wconf);
    if (!wconf_record_seat(wconf, error))
        return false;
    wconf_announce(wconf);
    wconf_owners_start(wconf);
    wconf_watch_start(wconf);
    if (wconf->down) {
        g_propagate_error(error, g_error_copy(wconf->down));
        return false;
    }
    wconf->serving = true;
    wconf_engine_start(wconf);
    return true;
}

void wconf_position(const struct wconf *wconf, guint64 *ret_history, guint64 *ret_epoch,
                    guint64 *ret_serial)
{
    *ret_history = config_history(wconf->committed);
    *ret_epoch = wconf->epoch ? wconf->epoch : wconf->wish.since;
    *ret_serial = config_serial(wconf->committed);
}

const struct config *wconf_config(const struct wconf *wconf)
{
    return wconf->committed;
}

struct wconf *wconf_new(const struct env *env)
{
    struct wconf *wconf = g_new0(struct wconf, 1);
    wconf->env = env;
    wconf->engine = env->engine;
    wconf->committed = config_new();
    wconf->head = config_new();
    g_queue_init(&wconf->pending);
    g_queue_init(&wconf->log);
    wconf->pending_ids = g_hash_table_new(g_str_hash, g_str_equal);
    wconf->ids = wconf_ids_new();
    wconf->listeners = g_ptr_array_new();
    wconf->barrier_next = g_ptr_array_new_with_free_func(g_free);
    wconf->locks = locks_new(wconf_gate, wconf);
    wconf->lock_waits = g_ptr_array_new();
    wconf->watched = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    wconf->nodes = g_hash_table_new(g_str_hash, g_str_equal);
    wconf->joins = g_ptr_array_new();
    wconf->followers = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    g_queue_init(&wconf->copy_waits);
    return wconf;
}

void wconf_free(struct wconf *wconf)
{
    if (!wconf)
        return;
    wconf->on_down = NULL;
    if (!wconf->down)
        wconf->down = g_error_new_literal(FETTLE_ERROR, FETTLE_ERROR_TEMPORARY,
                                          "the configuration daemon ends");
    wconf_stream_end(wconf);
    wconf_join_end(wconf);
    wconf_owners_end(wconf);
    wconf_locks_end(wconf);
    wconf_copies_end(wconf);
    wconf_engine_end(wconf);
    wconf_commit_free_all(wconf);
    barriers_end(wconf);      /* answers about locks wait there */
    locks_free(wconf->locks); /* asks the gate about nodes, so it goes before them */
    wconf_announce_end(wconf);
    g_queue_clear(&wconf->log);
    g_hash_table_unref(wconf->pending_ids);
    g_array_unref(wconf->ids);
    g_ptr_array_unref(wconf->listeners);
    g_ptr_array_unref(wconf->lock_waits);
    g_ptr_array_unref(wconf->joins);
    g_hash_table_unref(wconf->followers);
    if (wconf->word)
        g_ptr_array_unref(wconf->word);
    if (wconf->digests)
        g_array_unref(wconf->digests);
    g_hash_table_unref(wconf->watched);
    g_hash_table_unref(wconf->nodes);
    journal_free(wconf->journal);
    config_free(wconf->head);
    config_free(wconf->committed);
    g_error_free(wconf->down);
    g_free(wconf);
}
