/* What all operations say to wconfd; see volume_private.h. */
#include <string.h>

#include "core/storage/volume_private.h"

struct volume_work *volume_work_take(struct volume_caller *caller, const char *key, GError **error)
{
    g_autofree char *commit_id = env_uuid(caller->env);
    struct take_work_args args = {.commit_id = commit_id,
                                  .key = (char *)key,
                                  .service = caller->uuid,
                                  .generation = caller->generation};
    record_autoptr(taken_work) taken = volume_call(caller, NULL, "take_work", &args, error);
    if (!taken || !follow_wait(caller->follow, taken->claim, error))
        return NULL;
    return volume_work_new(caller, key, taken->claim);
}

struct volume_work *volume_work_new(struct volume_caller *caller, const char *key, guint64 claim)
{
    const struct config *config = volume_caller_config(caller);
    const struct worker *row = config_get(config, "worker", key, NULL);
    if (!row || row->claim != claim)
        return NULL;
    struct volume_work *work = g_new0(struct volume_work, 1);
    *work = (struct volume_work){
        .caller = caller,
        .member = caller->member,
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

void volume_work_fails(struct work_end *end, const char *why)
{
    end->failed = true;
    g_free(end->why);
    end->why = g_utf8_substring(why, 0, MIN(g_utf8_strlen(why, -1), 256));
}

bool volume_work_stands(const struct volume_work *work)
{
    return strcmp(work->resource.status, work->row->status) == 0;
}

static bool step(const struct volume_work *work, bool unname, const char *status, guint64 bytes,
                 GError **error)
{
    struct volume_caller *caller = work->caller;
    g_autofree char *commit_id = env_uuid(caller->env);
    struct step_work_args args = {.commit_id = commit_id,
                                  .key = work->key,
                                  .claim = work->claim,
                                  .service = caller->uuid,
                                  .generation = caller->generation,
                                  .unname = unname,
                                  .status = (char *)status,
                                  .bytes = bytes};
    return volume_call_commit(caller, work, "step_work", &args, error);
}

bool volume_work_unname(const struct volume_work *work, GError **error)
{
    return step(work, true, "", 0, error);
}

bool volume_work_becomes(const struct volume_work *work, const char *status, GError **error)
{
    return step(work, false, status, 0, error);
}

bool volume_work_promises(const struct volume_work *work, guint64 bytes, GError **error)
{
    return step(work, false, "", bytes, error);
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

bool volume_work_finish(struct volume_caller *caller, const struct volume_work *first,
                        GPtrArray *items, const char *cleanup, GError **error)
{
    g_autofree char *commit_id = env_uuid(caller->env);
    struct end_work_args args = {.commit_id = commit_id,
                                 .service = caller->uuid,
                                 .generation = caller->generation,
                                 .items = items,
                                 .cleanup = (char *)cleanup};
    g_autoptr(GError) refused = NULL;
    record_autoptr(work_verdicts) verdicts = volume_call(caller, first, "end_work", &args, error);
    if (!verdicts || !follow_wait(caller->follow, verdicts->serial, error))
        return false;
    judge(verdicts, &refused);
    if (refused)
        g_propagate_error(error, g_steal_pointer(&refused));
    return !refused;
}
