/*
 * Cleaning rows whose owner's process is gone, by the routine of each one's WORK row: those that
 * the caller's own former process had, and those of others for which it was asked (`cleanup`). None
 * is resumed: who has died does not say how far it came. What fails goes back, and comes again.
 */
#include <string.h>

#include "core/storage/cleanup_plan.h"
#include "core/storage/volume_private.h"

#define AGAIN_MS 10000                 /* after a place or a call that was refused */
#define CLEAN_AGAIN_MS (5 * 60 * 1000) /* after rows that could not be cleaned */

struct cleaning {
    struct volume_caller *caller;
    const char *cleanup; /* its key; "": own rows */
    GPtrArray *works;    /* struct volume_work */
    GPtrArray *ends;     /* struct work_end */
    GPtrArray *names;    /* struct volume_data: what the back end has; NULL: not asked yet */
    struct volume_proof proof;
    GError *failed; /* the first */
};

/* --- claims --- */

static struct work_claim *claim_of(const struct volume_caller *caller, const struct worker *row)
{
    struct work_claim *claim = work_claim_new();
    g_free(claim->key);
    claim->key = config_work_key(row->resource_type, row->resource_id);
    config_get(volume_caller_config(caller), "worker", claim->key, &claim->version);
    return claim;
}

/* Those of them that it has got, under one new claim. */
static GPtrArray *claim_rows(struct volume_caller *caller, GPtrArray *claims, const char *cleanup,
                             GError **error)
{
    g_autofree char *commit_id = env_uuid(caller->env);
    const struct claim_work_args args = {.commit_id = commit_id,
                                         .service = caller->uuid,
                                         .generation = caller->generation,
                                         .items = claims,
                                         .cleanup = (char *)cleanup};
    g_autoptr(GPtrArray) works = g_ptr_array_new_with_free_func(volume_work_free);
    record_autoptr(work_verdicts) verdicts = volume_call(caller, NULL, "claim_work", &args, error);
    if (!verdicts || !follow_wait(caller->follow, verdicts->serial, error))
        return NULL;
    for (guint i = 0; i < verdicts->items->len; i++) {
        const struct work_verdict *verdict = verdicts->items->pdata[i];
        struct volume_work *work = verdict->answer == WORK_PASSED
                                       ? volume_work_new(caller, verdict->key, verdicts->serial)
                                       : NULL;
        if (work)
            g_ptr_array_add(works, work);
    }
    return g_steal_pointer(&works);
}

static void give_back(const struct cleaning *cleaning, const struct volume_work *work,
                      const GError *why)
{
    struct volume_caller *caller = work->caller;
    g_autofree char *commit_id = env_uuid(caller->env);
    g_autofree char *words =
        g_utf8_substring(why->message, 0, MIN(g_utf8_strlen(why->message, -1), 256));
    struct give_back_args args = {.commit_id = commit_id,
                                  .key = work->key,
                                  .claim = work->claim,
                                  .service = caller->uuid,
                                  .generation = caller->generation,
                                  .why = words,
                                  .cleanup = (char *)cleaning->cleanup};
    volume_call_commit(caller, work, "give_back", &args, NULL);
}

/* --- routines --- */

#define HAS_ENDED "the service that worked on it has ended"

/* What it copied under a guest is ended, and goes with the next sweep where it was only on the way
 * to something else. */
static void end_point(const struct volume_work *work)
{
    struct volume_member *from = volume_reads_from(work->member, work->row);
    if (!work->row->source || !from)
        return;
    volume_member_ref(from);
    if (volume_point_close(work, from) && !task_killed()) {
        from->sweep_ms = 0;
        volume_member_wake(from);
    }
    volume_member_unref(from);
}

/* What somebody has open stays for the sweep: an owner that is cut off and lives has a process of
 * its own there. Its name has the claim in it, which is over: no end of work under it is taken, and
 * whoever begins again makes another name. */
static bool remove_made(struct volume_member *member, const struct volume_data *data,
                        GError **error)
{
    struct volume_driver *driver = member->service->env->volumes;
    g_autoptr(GError) local = NULL;
    if (driver->ops->remove(driver, member->backend, data->type, data->name, &local)) {
        volume_member_measures(member);
        return true;
    }
    if (fettle_error_is(local, WRONG_STATE))
        return true;
    g_propagate_error(error, g_steal_pointer(&local));
    return false;
}

/* All that has the resource's name and that no record names (SAF-54). */
static enum work_done drop_made(struct cleaning *cleaning, const struct volume_work *work,
                                struct work_end *end, GError **error)
{
    struct volume_member *member = work->member;
    struct volume_driver *driver = member->service->env->volumes;
    end_point(work);
    if (task_killed())
        return WORK_IS_LOST;
    if (!cleaning->names) {
        cleaning->proof = volume_proof_of(member);
        cleaning->names = driver->ops->list(driver, member->backend, error);
    }
    if (!cleaning->names)
        return WORK_HAS_FAILED;
    bool ok = true;
    struct resource made = resource_made(volume_member_config(member), work->row, work->table);
    g_autofree char *uuid = g_strdup(made.uuid);
    for (guint i = 0; i < cleaning->names->len && ok; i++) {
        const struct volume_data *data = cleaning->names->pdata[i];
        if (data->type == made.type && g_str_has_prefix(data->name, uuid) &&
            volume_sweep_may(member, &cleaning->proof, data->type, data->name, NULL) &&
            volume_proof_asked(member, &cleaning->proof) &&
            volume_sweep_may(member, &cleaning->proof, data->type, data->name, NULL))
            ok = remove_made(member, data, error);
    }
    volume_work_fails(end, HAS_ENDED);
    if (!volume_proof_holds(member, &cleaning->proof))
        return WORK_IS_LOST;
    return ok ? WORK_IS_DONE : WORK_HAS_FAILED;
}

/* What was made larger is told, and looked at, as if nobody had died. */
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
    bool large = data && data->bytes >= work->row->size * 1024 * MIB(1);
    if (!large)
        volume_work_fails(end, data ? HAS_ENDED " before it was larger" : local->message);
    g_clear_pointer(&data, volume_data_free);
    return large ? volume_extend(work, end, error) : WORK_IS_DONE;
}

static enum work_done clean_one(struct cleaning *cleaning, const struct volume_work *work,
                                struct work_end *end, GError **error)
{
    end->moved_on = !volume_work_stands(work);
    if (end->moved_on)
        return WORK_IS_DONE;
    if (!work->member) { /* without a back end there is nothing */
        if (!work->table || work->table->routine != WORK_DO_AGAIN)
            volume_work_fails(end, HAS_ENDED);
        return WORK_IS_DONE;
    }
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
        give_back(cleaning, work, error);
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
    volume_work_finish(cleaning->caller, NULL, cleaning->ends, cleaning->cleanup, &error);
    if (error && !cleaning->failed)
        cleaning->failed = g_steal_pointer(&error);
}

/* False: not all could be cleaned. `works`: stolen. */
static bool clean(struct volume_caller *caller, GPtrArray *works_in, const char *cleanup,
                  GError **error)
{
    g_autoptr(GPtrArray) works = works_in;
    g_autoptr(GPtrArray) ends = g_ptr_array_new_with_free_func(end_work_free);
    struct cleaning cleaning = {.caller = caller, .cleanup = cleanup, .works = works, .ends = ends};
    clean_batch(&cleaning);
    g_clear_pointer(&cleaning.names, g_ptr_array_unref);
    if (!cleaning.failed)
        return true;
    g_propagate_error(error, cleaning.failed);
    return false;
}

/* A place that is away would fail each row: nothing is claimed. */
static bool is_ready(struct volume_caller *caller, GError **error)
{
    return !caller->member || volume_member_open(caller->member, error);
}

static void claim_free(void *claim)
{
    work_claim_free(claim);
}

/* Something has to come before it. */
static bool work_waits(const struct volume_caller *caller, const struct worker *row)
{
    g_autofree char *before = volume_work_before(volume_caller_config(caller), row);
    return before != NULL;
}

/* --- own rows --- */

/* The next of them on which none of its tasks works; `covered`: that are not of this life, by their
 * last touch, or by their claim: who had them to clean has given them back. */
static GPtrArray *own_rows(const struct volume_caller *caller, bool covered, guint most)
{
    GPtrArray *claims = g_ptr_array_new_with_free_func(claim_free);
    g_autoptr(GPtrArray) rows = config_service_work(volume_caller_config(caller), caller->id);
    for (guint i = 0; i < rows->len && claims->len < most; i++) {
        const struct worker *row = rows->pdata[i];
        struct work_claim *claim = claim_of(caller, row);
        if (!g_hash_table_contains(caller->busy, claim->key) && !work_waits(caller, row) &&
            (!covered || MIN(claim->version, row->claim) < caller->generation))
            g_ptr_array_add(claims, claim);
        else
            work_claim_free(claim);
    }
    return claims;
}

static bool has_own(const struct volume_caller *caller, bool covered)
{
    g_autoptr(GPtrArray) one = own_rows(caller, covered, 1);
    return one->len > 0;
}

static bool clean_covered(struct volume_caller *caller, GError **error)
{
    g_autoptr(GPtrArray) claims = own_rows(caller, true, LIMIT_WORK_ITEMS);
    GPtrArray *works = claims->len ? claim_rows(caller, claims, "", error) : NULL;
    if (works && works->len)
        return clean(caller, works, "", error);
    g_clear_pointer(&works, g_ptr_array_unref);
    return false;
}

/* Rows of its own on which it does not work are those of its former process, or such whose answer
 * never came. Only a new registration proves that nobody works on them any more. */
bool volume_clean_own(struct volume_caller *caller)
{
    g_autoptr(GError) error = NULL;
    if (!has_own(caller, false) || volume_caller_ms(caller) < caller->clean_ms)
        return true;
    bool covered = has_own(caller, true);
    if (!covered && caller->working > 0)
        return false;
    if (!is_ready(caller, &error) || (!covered && !volume_caller_register(caller, &error)) ||
        !clean_covered(caller, &error)) {
        if (task_killed())
            return false;
        /* What comes after a batch with failures does not wait for it. */
        covered = !caller->generation || has_own(caller, true);
        caller->clean_ms = volume_caller_ms(caller) + (covered ? AGAIN_MS : CLEAN_AGAIN_MS);
    }
    volume_caller_complain(caller, error);
    return caller->generation > 0;
}

guint volume_clean_own_rest(const struct volume_caller *caller)
{
    return has_own(caller, true) ? (guint)MAX(caller->clean_ms - volume_caller_ms(caller), 0)
                                 : VOLUME_NEVER_MS;
}

/* --- what it was asked for --- */

static bool is_asked(const struct volume_caller *caller, const struct cleanup *cleanup)
{
    return cleanup && cleanup->by == caller->id &&
           (cleanup->state == CLEANUP_ASKED || cleanup->state == CLEANUP_RUNNING);
}

static char *key_of(const struct cleanup *cleanup)
{
    return config_cleanup_key(cleanup->service_id, cleanup->resource_type, cleanup->resource_id);
}

/* Keys of all that it is to clean; what it has begun comes first. */
static GPtrArray *asked_keys(const struct volume_caller *caller)
{
    GPtrArray *keys = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GPtrArray) all = config_list(volume_caller_config(caller), "cleanup");
    for (guint i = 0; i < all->len; i++) {
        g_autofree char *key = is_asked(caller, all->pdata[i]) ? key_of(all->pdata[i]) : NULL;
        bool begun = key && g_strcmp0(key, caller->cleanup) == 0;
        if (key)
            g_ptr_array_insert(keys, begun ? 0 : -1, g_steal_pointer(&key));
    }
    return keys;
}

static bool has_begun(const struct volume_caller *caller, const char *key,
                      const struct cleanup *cleanup)
{
    return g_strcmp0(caller->cleanup, key) == 0 && caller->cleanup_us == cleanup->requested_us;
}

/* Of its rows one that was tried comes again with another request only (CLN-21), and so does what
 * waits for that. */
static bool is_tried(const struct volume_caller *caller, const char *key, const char *before)
{
    return g_hash_table_contains(caller->tried, key) ||
           (before && g_hash_table_contains(caller->tried, before));
}

/* The next of its rows; `ret_wait`: there are some whose turn comes after others. */
static GPtrArray *asked_rows(const struct volume_caller *caller, const struct cleanup *cleanup,
                             bool *ret_wait)
{
    GPtrArray *claims = g_ptr_array_new_with_free_func(claim_free);
    g_autofree char *key = key_of(cleanup);
    bool begun = has_begun(caller, key, cleanup);
    g_autoptr(GPtrArray) rows =
        config_service_work(volume_caller_config(caller), cleanup->service_id);
    for (guint i = 0; i < rows->len && claims->len < LIMIT_WORK_ITEMS; i++) {
        if (!cleanup_covers(cleanup, rows->pdata[i]))
            continue;
        struct work_claim *claim = claim_of(caller, rows->pdata[i]);
        g_autofree char *before = volume_work_before(volume_caller_config(caller), rows->pdata[i]);
        bool tried = begun && is_tried(caller, claim->key, before);
        *ret_wait = *ret_wait || (before && !tried);
        if (!before && !tried)
            g_ptr_array_add(claims, claim);
        else
            work_claim_free(claim);
    }
    return claims;
}

static void begin_cleanup(struct volume_caller *caller, const char *key,
                          const struct cleanup *cleanup)
{
    if (has_begun(caller, key, cleanup))
        return;
    g_free(caller->cleanup);
    caller->cleanup = g_strdup(key);
    caller->cleanup_us = cleanup->requested_us;
    g_hash_table_remove_all(caller->tried);
}

static bool end_cleanup(struct volume_caller *caller, GError **error)
{
    g_autofree char *commit_id = env_uuid(caller->env);
    g_autofree char *key = g_strdup(caller->cleanup);
    struct end_cleanup_args args = {.commit_id = commit_id,
                                    .cleanup = key,
                                    .requested_us = caller->cleanup_us,
                                    .service = caller->uuid,
                                    .generation = caller->generation};
    return volume_call_commit(caller, NULL, "end_cleanup", &args, error);
}

/* What failed went back, and is told of there; it holds up nothing. False: none could be claimed.
 */
static bool clean_some(struct volume_caller *caller, GPtrArray *claims, GError **error)
{
    g_autofree char *key = g_strdup(caller->cleanup);
    GPtrArray *works = is_ready(caller, error) ? claim_rows(caller, claims, key, error) : NULL;
    if (!works)
        return false;
    for (guint i = 0; i < claims->len; i++)
        g_hash_table_add(caller->tried,
                         g_strdup(((const struct work_claim *)claims->pdata[i])->key));
    clean(caller, works, key, NULL);
    return true;
}

/* False: there is nothing to do for it now, or it cannot be done. */
static bool go_on(struct volume_caller *caller, const char *key, GError **error)
{
    bool wait = false;
    const struct cleanup *cleanup = config_get(volume_caller_config(caller), "cleanup", key, NULL);
    if (!is_asked(caller, cleanup))
        return false;
    g_autoptr(GPtrArray) claims = asked_rows(caller, cleanup, &wait);
    if (!claims->len && wait)
        return false;
    begin_cleanup(caller, key, cleanup);
    return claims->len ? clean_some(caller, claims, error) : end_cleanup(caller, error);
}

/* One batch of one of them; one that waits, or is refused, holds up no other. */
guint volume_clean_asked(struct volume_caller *caller)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) keys = asked_keys(caller);
    gint64 now = volume_caller_ms(caller);
    if (!keys->len || now < caller->asked_ms)
        return keys->len ? (guint)(caller->asked_ms - now) : VOLUME_NEVER_MS;
    bool done = false;
    for (guint i = 0; i < keys->len && !done && !task_killed(); i++)
        done = go_on(caller, keys->pdata[i], error ? NULL : &error);
    if (task_killed())
        return VOLUME_NEVER_MS;
    if (!done)
        caller->asked_ms = volume_caller_ms(caller) + AGAIN_MS;
    volume_caller_complain(caller, done ? NULL : error);
    return done ? 0 : AGAIN_MS;
}
