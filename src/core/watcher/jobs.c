/* How the watcher submits jobs and reads their outcome; see watcher_private.h. */
#include "core/watcher/watcher_private.h"

#include "base/log.h"
#include "base/text.h"

#include <string.h>

struct watcher_jobs {
    GHashTable *unseen;    /* ids of jobs that were submitted and are not in the copy yet */
    GHashTable *by_repair; /* repair id -> GArray of guint64, of this pass; NULL: not needed yet */
    guint running, begun;  /* repairs: under way; begun within the last hour; with by_repair */
};

struct watcher_jobs *watcher_jobs_new(void)
{
    struct watcher_jobs *jobs = g_new0(struct watcher_jobs, 1);
    jobs->unseen = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
    return jobs;
}

void watcher_jobs_free(struct watcher_jobs *jobs)
{
    g_clear_pointer(&jobs->by_repair, g_hash_table_unref);
    g_hash_table_unref(jobs->unseen);
    g_free(jobs);
}

bool watcher_job_ended(const struct job *job)
{
    return strcmp(job->status, "success") == 0 || strcmp(job->status, "error") == 0 ||
           strcmp(job->status, "canceled") == 0;
}

/* Errors that pass by themselves. JOB_FAILED is what luxid says of a job whose process died
 * or never began: what it may have done is seen by looking at the instance. */
static const enum fettle_error passing[] = {
    FETTLE_ERROR_JOB_FAILED,  FETTLE_ERROR_TEMPORARY,        FETTLE_ERROR_UNREACHABLE,
    FETTLE_ERROR_TIMEOUT,     FETTLE_ERROR_VERSION_CONFLICT, FETTLE_ERROR_LOCK_BLOCKED,
    FETTLE_ERROR_STALE_EPOCH,
};

/* The result of the opcode that failed: [class, [message, code, changed]], or a plain string for a
 * job found dead. What opcodes before it did is a change. */
static enum job_outcome judge_error(const struct job *job, char **ret_message)
{
    for (guint i = 0; i < job->ops->len; i++) {
        const struct job_op *op = job->ops->pdata[i];
        if (strcmp(op->status, "error") != 0)
            continue;
        if (json_is_string(op->result)) {
            *ret_message = g_strdup(json_string_value(op->result));
            return i == 0 ? JOB_SAFE : JOB_FAILED;
        }
        const json_t *args = json_array_get(op->result, 1);
        const char *message = json_string_value(json_array_get(args, 0));
        const char *code = json_string_value(json_array_get(args, 1));
        bool changed = i > 0 || json_is_true(json_array_get(args, 2));
        *ret_message = g_strdup(message != NULL ? message : "no reason given");
        if (code == NULL || changed)
            return JOB_FAILED;
        if (fettle_error_from_name(code) == FETTLE_ERROR_NO_RESOURCES)
            return JOB_NO_ROOM;
        if (fettle_error_from_name(code) == FETTLE_ERROR_PARTED)
            return JOB_AWAY;
        for (guint j = 0; j < G_N_ELEMENTS(passing); j++)
            if (fettle_error_from_name(code) == passing[j])
                return JOB_SAFE;
        return JOB_FAILED;
    }
    *ret_message = g_strdup_printf("job %" G_GUINT64_FORMAT " failed without a reason", job->id);
    return JOB_FAILED;
}

enum job_outcome watcher_job_outcome(const struct watcher *watcher, guint64 id, char **ret_message)
{
    g_autofree char *key = g_strdup_printf("%" G_GUINT64_FORMAT, id);
    const struct job *job = config_get(follow_config(watcher->follow), "job", key, NULL);
    *ret_message = NULL;
    if (job == NULL) {
        if (g_hash_table_contains(watcher->jobs->unseen, &id))
            return JOB_UNDER_WAY;
        *ret_message = g_strdup_printf("job %s is not known any more", key);
        return JOB_LOST;
    }
    g_hash_table_remove(watcher->jobs->unseen, &id);
    if (!watcher_job_ended(job))
        return JOB_UNDER_WAY;
    if (strcmp(job->status, "success") == 0)
        return JOB_SUCCEEDED;
    if (strcmp(job->status, "canceled") == 0) {
        *ret_message = g_strdup_printf("job %s was canceled", key);
        return JOB_FAILED;
    }
    return judge_error(job, ret_message);
}

bool watcher_job_broke_off(const struct watcher *watcher, guint64 id)
{
    g_autofree char *key = g_strdup_printf("%" G_GUINT64_FORMAT, id);
    const struct job *job = config_get(follow_config(watcher->follow), "job", key, NULL);
    if (job == NULL || !watcher_job_ended(job) || strcmp(job->status, "success") == 0)
        return false;
    for (guint i = 0; i < job->ops->len; i++) {
        const struct job_op *op = job->ops->pdata[i];
        if (strcmp(op->status, "success") == 0 || json_is_string(op->result) ||
            json_is_true(json_array_get(json_array_get(op->result, 1), 2)))
            return true;
    }
    return false;
}

/* Each opcode says why it runs. The time is that of the cause, not of now: a repeated submission
 * must have the same body (SAF-31). */
static void explain(json_t *opcodes, const char *request_id, const char *reason, gint64 reason_time)
{
    size_t index;
    json_t *opcode;
    g_autofree char *shown = text_shown(reason); /* it may quote what a node has said */
    json_array_foreach(opcodes, index, opcode) {
        json_object_set_new(opcode, "reason",
                            json_make("[[ssI]]", "fettle:watcher", shown != NULL ? shown : reason,
                                      (json_int_t)(reason_time * 1000000000)));
    }
    json_object_set_new(json_array_get(opcodes, 0), "request_id", json_string(request_id));
}

guint64 watcher_submit(struct watcher *watcher, json_t *opcodes, const char *request_id,
                       const char *reason, gint64 reason_time, GError **error)
{
    explain(opcodes, request_id, reason, reason_time);
    struct rpc_call call = {.to_node = NODE_LOCAL,
                            .to_role = ROLE_LUXID,
                            .method = "SubmitJob",
                            .args = json_make("[o]", opcodes)};
    json_autoptr answer = env_call_wait(watcher->env, &call, error);
    if (answer == NULL)
        return 0;
    if (!json_is_integer(answer) || json_integer_value(answer) < 1) {
        fettle_set_error(error, PROTOCOL,
                         "luxid answered SubmitJob with something that is no job id");
        return 0;
    }
    guint64 id = (guint64)json_integer_value(answer);
    guint64 *key = g_new(guint64, 1);
    *key = id;
    g_hash_table_add(watcher->jobs->unseen, key);
    return id;
}

guint64 watcher_act(struct watcher *watcher, struct decision *decision, json_t *opcodes,
                    const char *request_id, gint64 since)
{
    g_autoptr(GPtrArray) changes = watcher_changes_new();
    g_autofree char *summary = g_strdup(decision->summary);
    watcher_record(watcher, decision, changes);
    if (!watcher_commit(watcher, changes)) {
        json_decref(opcodes);
        return 0;
    }
    g_autoptr(GError) error = NULL;
    guint64 job = watcher_submit(watcher, opcodes, request_id, summary, since, &error);
    if (job == 0 && !fettle_error_is(error, KILLED))
        log_warning("", "%s could not be submitted, it is tried again: %s", request_id,
                    error->message);
    return job;
}

guint64 watcher_last_try(const struct watcher *watcher, const char *prefix, guint64 *ret_number)
{
    g_autoptr(GPtrArray) jobs = config_list(follow_config(watcher->follow), "job");
    size_t len = strlen(prefix);
    guint64 last = 0;
    *ret_number = 0;
    for (guint i = 0; i < jobs->len; i++) {
        const struct job *job = jobs->pdata[i];
        guint64 number;
        if (g_str_has_prefix(job->request_id, prefix) && job->request_id[len] == '/' &&
            g_ascii_string_to_unsigned(job->request_id + len + 1, 10, 1, G_MAXUINT, &number,
                                       NULL) &&
            number > *ret_number) {
            *ret_number = number;
            last = job->id;
        }
    }
    return last;
}

/* --- jobs of repairs --- */

/* "ID/2-failover/1": repair, number and name of the step, number of the try. */
struct request {
    char *repair, *step;
    guint64 number, attempt;
};

static bool parse_request(const char *request_id, struct request *ret)
{
    const char *last = strrchr(request_id, '/');
    const char *middle = last == NULL ? NULL : g_strrstr_len(request_id, last - request_id, "/");
    const char *dash = middle == NULL ? NULL : strchr(middle, '-');
    if (dash == NULL || dash > last ||
        !g_ascii_string_to_unsigned(last + 1, 10, 1, G_MAXUINT, &ret->attempt, NULL))
        return false;
    g_autofree char *number = g_strndup(middle + 1, (gsize)(dash - middle - 1));
    if (!g_ascii_string_to_unsigned(number, 10, 1, G_MAXUINT, &ret->number, NULL))
        return false;
    ret->repair = g_strndup(request_id, (gsize)(middle - request_id));
    ret->step = g_strndup(dash + 1, (gsize)(last - dash - 1));
    return true;
}

char *watcher_request_step(const char *request_id)
{
    struct request request;
    if (!parse_request(request_id, &request))
        return NULL;
    g_free(request.repair);
    return request.step;
}

/* Also of those that lie in the future, and however the clock was set since (SAF-93). */
static bool began_within_the_hour(struct watcher *watcher, const struct job *job)
{
    g_autofree char *key = g_strdup_printf("begun/%" G_GUINT64_FORMAT, job->id);
    return ages_us(watcher->ages, key, job->received_us) < 3600 * (gint64)G_USEC_PER_SEC;
}

static void index_job(struct watcher *watcher, const struct job *job)
{
    struct request request;
    if (*job->request_id == '\0' || !parse_request(job->request_id, &request))
        return;
    struct watcher_jobs *jobs = watcher->jobs;
    GArray *ids = g_hash_table_lookup(jobs->by_repair, request.repair);
    if (ids == NULL)
        ids = g_array_new(false, false, sizeof(guint64));
    else
        g_array_ref(ids);
    g_array_append_val(ids, job->id);
    g_hash_table_replace(jobs->by_repair, request.repair, ids);
    jobs->running += !watcher_job_ended(job);
    jobs->begun +=
        request.number == 1 && request.attempt == 1 && began_within_the_hour(watcher, job);
    g_free(request.step);
}

const GArray *watcher_repair_jobs(struct watcher *watcher, const char *repair_id)
{
    struct watcher_jobs *jobs = watcher->jobs;
    if (jobs->by_repair == NULL) {
        jobs->by_repair =
            g_hash_table_new_full(g_str_hash, g_str_equal, g_free, (GDestroyNotify)g_array_unref);
        jobs->running = jobs->begun = 0;
        g_autoptr(GPtrArray) all = config_list(follow_config(watcher->follow), "job");
        for (guint i = 0; i < all->len; i++)
            index_job(watcher, all->pdata[i]);
    }
    return g_hash_table_lookup(jobs->by_repair, repair_id);
}

void watcher_jobs_begin(struct watcher *watcher)
{
    g_clear_pointer(&watcher->jobs->by_repair, g_hash_table_unref);
}

void watcher_count_repairs(struct watcher *watcher, guint *ret_running, guint *ret_begun)
{
    watcher_repair_jobs(watcher, ""); /* counts */
    *ret_running = watcher->jobs->running;
    *ret_begun = watcher->jobs->begun;
}

void watcher_count_step(struct watcher *watcher, bool first)
{
    watcher->jobs->running++;
    watcher->jobs->begun += first;
}
