/*
 * Cleaning rows that the former process of a member had, by the routine of each one's WORK row.
 * None is resumed: who has died does not say how far it came. What fails goes back, and comes
 * again.
 */
#include <string.h>

#include "core/storage/volume_private.h"

struct cleaning {
    struct volume_member *member;
    GPtrArray *works; /* struct volume_work */
    GPtrArray *ends;  /* struct work_end */
    GPtrArray *names; /* struct volume_data: what the back end has; NULL: not asked yet */
    struct volume_proof proof;
    GError *failed; /* the first */
};

/* No task of its own works on it, and nothing has to come before it. */
static bool is_left(const struct volume_member *member, const struct worker *row)
{
    g_autofree char *key = config_work_key(row->resource_type, row->resource_id);
    return !g_hash_table_contains(member->busy, key) &&
           !volume_work_waits(volume_member_config(member), row);
}

/* Only of these a later touch does not tell that somebody has begun to work on them. */
static bool is_covered(const struct volume_member *member, const struct worker *row)
{
    guint64 version = 0;
    g_autofree char *key = config_work_key(row->resource_type, row->resource_id);
    config_get(volume_member_config(member), "worker", key, &version);
    return version < member->generation;
}

bool volume_clean_needed(const struct volume_member *member, bool covered)
{
    g_autoptr(GPtrArray) rows = config_service_work(volume_member_config(member), member->id);
    for (guint i = 0; i < rows->len; i++)
        if (is_left(member, rows->pdata[i]) && (!covered || is_covered(member, rows->pdata[i])))
            return true;
    return false;
}

static void add_claim(const struct volume_member *member, const struct worker *row,
                      GPtrArray *claims)
{
    struct work_claim *claim = work_claim_new();
    g_free(claim->key);
    claim->key = config_work_key(row->resource_type, row->resource_id);
    config_get(volume_member_config(member), "worker", claim->key, &claim->version);
    g_ptr_array_add(claims, claim);
}

/* The next rows, under one new claim. */
static GPtrArray *claim_rows(struct volume_member *member, GError **error)
{
    g_autofree char *commit_id = env_uuid(member->service->env);
    record_autoptr(claim_work_args) args = claim_work_args_new();
    g_autoptr(GPtrArray) works = g_ptr_array_new_with_free_func(volume_work_free);
    g_autoptr(GPtrArray) rows = config_service_work(volume_member_config(member), member->id);
    for (guint i = 0; i < rows->len && args->items->len < LIMIT_WORK_ITEMS; i++)
        if (is_left(member, rows->pdata[i]) && is_covered(member, rows->pdata[i]))
            add_claim(member, rows->pdata[i], args->items);
    if (!args->items->len)
        return g_steal_pointer(&works);
    g_free(args->commit_id);
    g_free(args->service);
    args->commit_id = g_steal_pointer(&commit_id);
    args->service = g_strdup(member->uuid);
    args->generation = member->generation;
    record_autoptr(work_verdicts) verdicts = volume_call(member, NULL, "claim_work", args, error);
    if (!verdicts || !follow_wait(member->service->follow, verdicts->serial, error))
        return NULL;
    for (guint i = 0; i < verdicts->items->len; i++) {
        const struct work_verdict *verdict = verdicts->items->pdata[i];
        struct volume_work *work = verdict->answer == WORK_PASSED
                                       ? volume_work_new(member, verdict->key, verdicts->serial)
                                       : NULL;
        if (work)
            g_ptr_array_add(works, work);
    }
    return g_steal_pointer(&works);
}

static void give_back(const struct volume_work *work, const GError *why)
{
    struct volume_member *member = work->member;
    g_autofree char *commit_id = env_uuid(member->service->env);
    g_autofree char *words =
        g_utf8_substring(why->message, 0, MIN(g_utf8_strlen(why->message, -1), 256));
    struct give_back_args args = {.commit_id = commit_id,
                                  .key = work->key,
                                  .claim = work->claim,
                                  .service = member->uuid,
                                  .generation = member->generation,
                                  .why = words};
    record_autoptr(commit_result) result = volume_call(member, work, "give_back", &args, NULL);
    if (result)
        follow_wait(member->service->follow, result->serial, NULL);
}

/* --- routines --- */

static void fails(struct work_end *end, const char *why)
{
    end->failed = true;
    g_free(end->why);
    end->why = g_strdup(why);
}

/* All that has the resource's name and that no record names (SAF-54). */
static enum work_done drop_made(struct cleaning *cleaning, const struct volume_work *work,
                                struct work_end *end, GError **error)
{
    struct volume_member *member = work->member;
    struct volume_driver *driver = member->service->env->volumes;
    if (!cleaning->names) {
        cleaning->proof = volume_proof_of(member);
        cleaning->names = driver->ops->list(driver, member->backend, error);
    }
    if (!cleaning->names)
        return WORK_HAS_FAILED;
    bool ok = true;
    for (guint i = 0; i < cleaning->names->len && ok; i++) {
        const struct volume_data *data = cleaning->names->pdata[i];
        if (data->type == work->resource.type &&
            g_str_has_prefix(data->name, work->row->resource_id) &&
            volume_sweep_may(member, &cleaning->proof, data->type, data->name, NULL) &&
            volume_proof_asked(member, &cleaning->proof) &&
            volume_sweep_may(member, &cleaning->proof, data->type, data->name, NULL))
            ok = driver->ops->remove(driver, member->backend, data->type, data->name, error);
    }
    fails(end, "the service that worked on it has ended");
    if (!volume_proof_holds(member, &cleaning->proof))
        return WORK_IS_LOST;
    return ok ? WORK_IS_DONE : WORK_HAS_FAILED;
}

static enum work_done look(const struct volume_work *work, struct work_end *end, GError **error)
{
    struct volume_member *member = work->member;
    struct volume_driver *driver = member->service->env->volumes;
    g_autoptr(GError) local = NULL;
    struct volume_data *data = driver->ops->look(driver, member->backend, work->resource.type,
                                                 work->resource.data, &local);
    if (!data && !fettle_error_is(local, UNKNOWN_ENTITY)) {
        g_propagate_error(error, g_steal_pointer(&local));
        return WORK_HAS_FAILED;
    }
    if (data && data->bytes >= work->row->size * 1024 * MIB(1))
        end->size = work->row->size;
    else
        fails(end, data ? "the service that worked on it has ended before it was larger"
                        : local->message);
    g_clear_pointer(&data, volume_data_free);
    return WORK_IS_DONE;
}

static enum work_done clean_one(struct cleaning *cleaning, const struct volume_work *work,
                                struct work_end *end, GError **error)
{
    end->moved_on = !volume_work_stands(work);
    if (end->moved_on)
        return WORK_IS_DONE;
    if (work->table && work->table->routine == WORK_DROP_MADE)
        return drop_made(cleaning, work, end, error);
    if (work->table && work->table->routine == WORK_LOOK)
        return look(work, end, error);
    return volume_operate(work, end, error);
}

/* --- a batch --- */

static void clean_row(struct cleaning *cleaning, const struct volume_work *work)
{
    g_autoptr(GError) error = NULL;
    struct work_end *end = volume_work_end(work);
    enum work_done done = clean_one(cleaning, work, end, &error);
    if (done == WORK_IS_DONE && !task_killed()) {
        g_ptr_array_add(cleaning->ends, end);
        return;
    }
    work_end_free(end);
    if (done == WORK_HAS_FAILED && !task_killed())
        give_back(work, error);
    if (!cleaning->failed)
        cleaning->failed = g_steal_pointer(&error);
}

static void end_work_free(void *end)
{
    work_end_free(end);
}

static void clean_batch(struct cleaning *cleaning)
{
    GPtrArray *works = cleaning->works;
    for (guint i = 0; i < works->len && !task_killed(); i++)
        clean_row(cleaning, works->pdata[i]);
    if (!cleaning->ends->len || task_killed())
        return;
    g_autoptr(GError) error = NULL;
    volume_work_finish(cleaning->member, NULL, cleaning->ends, &error);
    if (error && !cleaning->failed)
        cleaning->failed = g_steal_pointer(&error);
}

bool volume_clean(struct volume_member *member, GError **error)
{
    g_autoptr(GPtrArray) works = claim_rows(member, error);
    g_autoptr(GPtrArray) ends = g_ptr_array_new_with_free_func(end_work_free);
    if (!works || !works->len)
        return false;
    struct cleaning cleaning = {.member = member, .works = works, .ends = ends};
    clean_batch(&cleaning);
    g_clear_pointer(&cleaning.names, g_ptr_array_unref);
    if (!cleaning.failed)
        return true;
    g_propagate_error(error, cleaning.failed);
    return false;
}
