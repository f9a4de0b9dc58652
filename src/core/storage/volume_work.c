/* What all operations say to wconfd; see volume_private.h. */
#include <string.h>

#include "core/storage/volume_private.h"

#define CALL_AGAIN_MS 200

/* Whether the copy shows the claim: what is said under it is decided on that copy. */
static bool has_claim(const struct volume_work *work)
{
    const struct config *config = volume_member_config(work->member);
    const struct worker *row = config_get(config, "worker", work->key, NULL);
    return config_history(config) == work->history && row && row->claim == work->claim;
}

/* It may be answered yet. A master that is none any more, or has lost its copy's place to a later
 * one, is asked again under the next one. */
static bool is_passing(const GError *error)
{
    return env_no_answer(error) || fettle_error_is(error, TEMPORARY) ||
           fettle_error_is(error, NOT_MASTER) || fettle_error_is(error, STALE_EPOCH);
}

void *volume_call(struct volume_member *member, const struct volume_work *work, const char *method,
                  const void *args, GError **error)
{
    struct volume_service *service = member->service;
    guint64 history = config_history(volume_member_config(member));
    for (;;) {
        g_autoptr(GError) local = NULL;
        if ((work && !has_claim(work)) || config_history(volume_member_config(member)) != history) {
            fettle_set_error(error, REFUSED, "%s: the row is another's by now", method);
            return NULL;
        }
        void *answer = env_call_record(service->env, NODE_MASTER, ROLE_WCONFD, method, args,
                                       follow_stamp(service->follow), 0, 0, &local);
        if (answer)
            return answer;
        if (fettle_error_is(local, STALE_EPOCH))
            follow_refresh(service->follow, NULL);
        if (is_passing(local) && env_sleep(service->env, CALL_AGAIN_MS))
            continue;
        g_propagate_error(error, g_steal_pointer(&local));
        return NULL;
    }
}

struct volume_work *volume_work_new(struct volume_member *member, const char *key, guint64 claim)
{
    const struct config *config = volume_member_config(member);
    const struct worker *row = config_get(config, "worker", key, NULL);
    if (!row || row->claim != claim)
        return NULL;
    struct volume_work *work = g_new0(struct volume_work, 1);
    *work = (struct volume_work){
        .member = member,
        .key = g_strdup(key),
        .history = config_history(config),
        .claim = claim,
        .row = worker_copy(row),
        .record = resource_copy(config, row->resource_type, row->resource_id),
        .table = work_row_of(work_rows, resource_task_kind(row->resource_type), row->operation)};
    work->resource = resource_read(row->resource_type, work->record);
    return work;
}

void volume_work_free(void *data)
{
    struct volume_work *work = data;
    g_free(work->key);
    resource_free(work->row->resource_type, work->record);
    worker_free(work->row);
    g_free(work);
}

struct work_end *volume_work_end(const struct volume_work *work)
{
    struct work_end *end = work_end_new();
    g_free(end->key);
    end->key = g_strdup(work->key);
    end->claim = work->claim;
    return end;
}

bool volume_work_stands(const struct volume_work *work)
{
    return strcmp(work->resource.status, work->row->status) == 0;
}

bool volume_work_unname(const struct volume_work *work, GError **error)
{
    struct volume_member *member = work->member;
    g_autofree char *commit_id = env_uuid(member->service->env);
    struct step_work_args args = {.commit_id = commit_id,
                                  .key = work->key,
                                  .claim = work->claim,
                                  .service = member->uuid,
                                  .generation = member->generation,
                                  .unname = true};
    record_autoptr(commit_result) result = volume_call(member, work, "step_work", &args, error);
    return result && follow_wait(member->service->follow, result->serial, error);
}

/* What was not refused, and did not pass, the copy tells. */
static void judge(const struct work_verdicts *verdicts, GError **error)
{
    for (guint i = 0; i < verdicts->items->len; i++) {
        const struct work_verdict *verdict = verdicts->items->pdata[i];
        if (verdict->answer == WORK_PASSED || (error && *error))
            continue;
        fettle_set_error(error, REFUSED, "%s: %s", verdict->key,
                         verdict->why[0] ? verdict->why : "what has become of it the copy tells");
    }
}

bool volume_work_finish(struct volume_member *member, const struct volume_work *first,
                        GPtrArray *items, GError **error)
{
    g_autofree char *commit_id = env_uuid(member->service->env);
    struct end_work_args args = {.commit_id = commit_id,
                                 .service = member->uuid,
                                 .generation = member->generation,
                                 .items = items};
    g_autoptr(GError) refused = NULL;
    record_autoptr(work_verdicts) verdicts = volume_call(member, first, "end_work", &args, error);
    if (!verdicts || !follow_wait(member->service->follow, verdicts->serial, error))
        return false;
    judge(verdicts, &refused);
    if (refused)
        g_propagate_error(error, g_steal_pointer(&refused));
    return !refused;
}
