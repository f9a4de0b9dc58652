/*
 * What a master answers: no commit that is not stored where the answer says, none without the
 * copies that SAF-07 promises, no lock that another holds or under which an older epoch still acts,
 * nothing that was asked for after another one had become master (SAF-03): except that a commit is
 * stored which was so already, as that is true for ever.
 */
#include <string.h>

#include "mastership.h"

struct ms_lock {
    guint job;
    guint64 epoch;
};

/* A request that is being answered: stands between wconfd and whoever asked. */
struct watched {
    struct ms_host *host;
    struct rpc_request *request;
    json_t *args;
    guint64 newest_epoch; /* when it came */
    guint64 last_serial;  /* then, too */
    void (*answer)(struct rpc_request *request, json_t *result, const GError *error);
    void *carrier;
};

static bool is_over(const struct watched *watched)
{
    return watched->host->epoch < watched->newest_epoch;
}

static void too_late(const struct watched *watched)
{
    ms_problem(watched->host->ms,
               "%s answers %s in epoch %" G_GUINT64_FORMAT
               ", which was asked for after epoch %" G_GUINT64_FORMAT " had begun",
               watched->host->uuid, watched->request->name, watched->host->epoch,
               watched->newest_epoch);
}

/* --- commits --- */

static void check_commit(const struct watched *watched, const json_t *result)
{
    struct ms *ms = watched->host->ms;
    guint64 serial = (guint64)json_integer_value(json_object_get(result, "serial"));
    const char *id = json_string_value(json_object_get(watched->args, "commit_id"));
    struct ms_commit *commit = ms_commit_at(ms, serial);
    if (!commit || g_strcmp0(commit->id, id) != 0) {
        ms_problem(ms,
                   "%s answers that commit %s is stored as serial %" G_GUINT64_FORMAT
                   ", which it is not",
                   watched->host->uuid, id, serial);
        return;
    }
    if (is_over(watched) && serial > watched->last_serial)
        too_late(watched);
    ms->counts->answered += !commit->answered;
    if (!commit->answered && !ms->etcd)
        ms_check_copies(ms, watched->host, serial);
    commit->answered = true;
}

/* --- locks --- */

static void check_lock(const struct watched *watched, const char *name, guint job, bool exclusive)
{
    struct ms *ms = watched->host->ms;
    struct ms_lock *held = g_hash_table_lookup(ms->locks, name);
    if (!exclusive)
        return;
    if (held && held->job != job &&
        !g_hash_table_contains(ms->ended, GUINT_TO_POINTER(held->job)) &&
        held->epoch == watched->host->epoch)
        ms_problem(ms, "%s is granted to job %u while job %u has it", name, job, held->job);
    struct ms_lock *lock = g_new(struct ms_lock, 1);
    *lock = (struct ms_lock){job, watched->host->epoch};
    g_hash_table_replace(ms->locks, g_strdup(name), lock);
}

/* SAF-06: whoever may act there is of this epoch. */
static void check_node(const struct watched *watched, const char *uuid)
{
    struct ms *ms = watched->host->ms;
    const struct ms_host *node = ms_host_of(ms, uuid);
    for (guint i = 0; i < node->operations->len; i++) {
        const struct ms_operation *operation = node->operations->pdata[i];
        if (epoch_fence_op_stamp(operation->op).epoch < watched->host->epoch)
            ms_problem(ms,
                       "a lock of %s is granted in epoch %" G_GUINT64_FORMAT
                       " while an operation of epoch %" G_GUINT64_FORMAT " is under way there",
                       uuid, watched->host->epoch, epoch_fence_op_stamp(operation->op).epoch);
    }
}

static void check_grant(const struct watched *watched, const json_t *result)
{
    struct ms *ms = watched->host->ms;
    const json_t *args = watched->args;
    guint job = watched->request->from_job;
    size_t index;
    json_t *lock;
    if (!json_is_true(json_object_get(result, "granted")))
        return;
    ms->counts->grants++;
    ms_tell(ms, "host %u grants job %u in epoch %" G_GUINT64_FORMAT, watched->host->index + 1, job,
            watched->host->epoch);
    if (watched->request->stamp.epoch != watched->host->epoch)
        ms_problem(ms,
                   "locks of epoch %" G_GUINT64_FORMAT " for job %u of epoch %" G_GUINT64_FORMAT,
                   watched->host->epoch, job, watched->request->stamp.epoch);
    json_array_foreach(json_object_get(args, "locks"), index, lock) {
        const char *name = json_string_value(json_object_get(lock, "name"));
        const char *mode = json_string_value(json_object_get(lock, "mode"));
        check_lock(watched, name, job, !strcmp(mode, "exclusive"));
        if (g_str_has_prefix(name, "node/"))
            check_node(watched, name + strlen("node/"));
    }
}

static gboolean is_of_job(void *key, void *value, void *data)
{
    return ((const struct ms_lock *)value)->job == GPOINTER_TO_UINT(data);
}

void ms_saw_release(struct ms *ms, guint job)
{
    g_hash_table_foreach_remove(ms->locks, is_of_job, GUINT_TO_POINTER(job));
}

void ms_saw_end(struct ms *ms, guint job)
{
    ms_saw_release(ms, job);
    g_hash_table_add(ms->ended, GUINT_TO_POINTER(job));
}

/* --- every answer --- */

/* A copy's question waits at the master; it may have been asked before that became one. */
static void followed(struct rpc_request *request, json_t *result, const GError *error)
{
    g_autofree struct watched *watched = request->carrier;
    request->carrier = watched->carrier;
    request->answer = watched->answer;
    json_decref(watched->args);
    ms_saw_followed(watched->host, request->from_node, error ? NULL : result);
    request->answer(request, result, error);
}

/* Answered with the serial of their own commit. */
static bool commits(const char *method)
{
    static const char *const all[] = {"commit",      "change_tags",   "accept_work", "step_work",
                                      "reset_state", "change_volume", "give_back",   NULL};
    return g_strv_contains(all, method);
}

static bool is_watched(const char *method)
{
    return commits(method) || !strcmp(method, "update_locks") || !strcmp(method, "confirm");
}

static void answer(struct rpc_request *request, json_t *result, const GError *error)
{
    g_autofree struct watched *watched = request->carrier;
    struct ms *ms = watched->host->ms;
    request->carrier = watched->carrier;
    request->answer = watched->answer;
    ms->counts->unknown += error && fettle_error_is(error, UNKNOWN_RESULT);
    if (!error && commits(request->name))
        check_commit(watched, result);
    else if (!error && is_over(watched))
        too_late(watched);
    if (!error && !strcmp(request->name, "update_locks"))
        check_grant(watched, result);
    json_decref(watched->args);
    request->answer(request, result, error);
}

void ms_saw_request(struct ms_host *host, struct rpc_request *request)
{
    if (!strcmp(request->name, "free_locks"))
        ms_saw_release(host->ms, request->from_job);
    bool follows = !strcmp(request->name, "follow");
    if (!is_watched(request->name) && !follows)
        return;
    if (follows)
        ms_saw_follow(host, request);
    struct watched *watched = g_new(struct watched, 1);
    *watched = (struct watched){.host = host,
                                .request = request,
                                .args = json_incref(request->args),
                                .newest_epoch = host->ms->newest_epoch,
                                .last_serial = ms_last_serial(host->ms),
                                .answer = request->answer,
                                .carrier = request->carrier};
    request->answer = follows ? followed : answer;
    request->carrier = watched;
}
