/* See volume_scheduler.h. */
#include "core/storage/volume_scheduler.h"

#include <string.h>

#include "base/log.h"
#include "core/config/restored.h"
#include "core/storage/volume_choose.h"
#include "core/storage/volume_private.h"

#define AGAIN_MS 10000 /* after a call that was refused, or changed nothing */
#define IDLE_MS (60 * 1000)

struct volume_scheduler {
    struct volume_caller caller;
    guint references;
    struct volume_beats beats;
    void (*ended)(const GError *error, void *data);
    void *data;
    guint64 epoch;        /* of the mastership that was logged last */
    GPtrArray *spaces;    /* struct backend_space */
    gint64 looked_ms;     /* boot clock: the last automatic pass; 0: none yet */
    GHashTable *stood_in; /* key of a cleanup -> boot clock (gint64), not to be asked before */
};

static void scheduler_unref(struct volume_scheduler *scheduler)
{
    if (--scheduler->references > 0)
        return;
    volume_caller_clear(&scheduler->caller);
    g_ptr_array_unref(scheduler->spaces);
    g_hash_table_unref(scheduler->stood_in);
    g_free(scheduler);
}

/* What it has a copy of. */
static bool wants(const char *kind)
{
    static const char *const kinds[] = {
        "cluster", "node",  "backend",      "storage_service", "worker",      "volume", "snapshot",
        "backup",  "image", "repair_brake", "cleanup",         "volume_type", NULL};
    return g_strv_contains(kinds, kind);
}

static void changed_cb(const GPtrArray *changes, void *data)
{
    struct volume_scheduler *scheduler = data;
    guint64 epoch = follow_epoch(scheduler->caller.follow);
    env_pause_end(&scheduler->caller.pause);
    if (epoch == scheduler->epoch)
        return;
    scheduler->epoch = epoch;
    const struct config *config = volume_scheduler_config(scheduler);
    log_info("",
             "the scheduler follows history %" G_GUINT64_FORMAT ", epoch %" G_GUINT64_FORMAT
             " from serial %" G_GUINT64_FORMAT " on",
             config_history(config), epoch, config_serial(config));
}

/* --- a row that has no back end --- */

static void tell_once(struct volume_seen *seen, const char *key, const char *why)
{
    if (g_strcmp0(seen->why, why) == 0)
        return;
    log_info("", "%s waits: %s", key, why);
    g_free(seen->why);
    seen->why = g_strdup(why);
}

/* How long it still waits for one that could hold it to come on record. */
static guint never_rest_ms(const struct volume_scheduler *scheduler, struct volume_seen *seen)
{
    const struct cluster *cluster = config_cluster(volume_scheduler_config(scheduler));
    gint64 now = volume_caller_ms(&scheduler->caller);
    seen->never_ms = seen->never_ms ? seen->never_ms : now;
    return (guint)MAX(seen->never_ms + (gint64)cluster->service_down_time * 1000 - now, 0);
}

static bool hand_on(struct volume_caller *caller, const char *key, const char *backend,
                    GError **error)
{
    g_autofree char *commit_id = env_uuid(caller->env);
    g_autofree char *uuid = g_strdup(backend);
    struct hand_on_args args = {.commit_id = commit_id,
                                .key = (char *)key,
                                .service = caller->uuid,
                                .generation = caller->generation,
                                .backend = uuid};
    return volume_call_commit(caller, NULL, "hand_on", &args, error);
}

/* For what has no back end nobody has made data, so there is nothing to remove: it ends, or has
 * failed (`why`). */
static bool end_here(struct volume_caller *caller, const char *key, const char *why, GError **error)
{
    struct volume_work *work = volume_work_take(caller, key, error);
    if (!work)
        return false;
    g_autoptr(GPtrArray) items = g_ptr_array_new();
    record_autoptr(work_end) end = volume_work_end(work);
    end->moved_on = !volume_work_stands(work);
    if (!end->moved_on && why)
        volume_work_fails(end, why);
    g_ptr_array_add(items, end);
    bool ended = volume_work_finish(caller, work, items, "", error);
    volume_work_free(work);
    return ended;
}

static guint after(struct volume_caller *caller, const char *key, bool done, const GError *error)
{
    if (done)
        return 0;
    volume_put_off(caller, key);
    volume_caller_complain(caller, error);
    return AGAIN_MS;
}

static guint choose(struct volume_scheduler *scheduler, const char *key,
                    const struct volume *volume, const struct worker *row)
{
    struct volume_caller *caller = &scheduler->caller;
    struct volume_seen *seen = g_hash_table_lookup(caller->seen, key);
    const char *backend = NULL;
    g_autofree char *why = NULL;
    g_autoptr(GError) error = NULL;
    enum volume_choice choice =
        volume_choose(volume_caller_config(caller), scheduler->spaces, volume, row, &backend, &why);
    guint rest_ms = choice == VOLUME_NEVER_FITS ? never_rest_ms(scheduler, seen) : VOLUME_NEVER_MS;
    if (choice != VOLUME_NEVER_FITS)
        seen->never_ms = 0;
    if (choice != VOLUME_CHOSEN && rest_ms) {
        tell_once(seen, key, why);
        return rest_ms;
    }
    bool done = choice == VOLUME_CHOSEN ? hand_on(caller, key, backend, &error)
                                        : end_here(caller, key, why, &error);
    return after(caller, key, done, error);
}

static bool removes(const struct worker *row)
{
    const struct work_row *table =
        work_row_of(work_rows, resource_task_kind(row->resource_type), row->operation);
    return table && table->done == TASK_FINAL_REMOVED;
}

static guint place(struct volume_caller *caller, const char *key, void *data)
{
    const struct config *config = volume_caller_config(caller);
    const struct worker *row = config_get(config, "worker", key, NULL);
    const struct volume *volume = row ? config_get(config, "volume", row->resource_id, NULL) : NULL;
    g_autoptr(GError) error = NULL;
    if (!row || row->service_id || *row->backend)
        return VOLUME_NEVER_MS;
    if (volume && !removes(row))
        return choose(data, key, volume, row);
    bool done = end_here(caller, key, NULL, &error);
    return after(caller, key, done, error);
}

static guint place_all(struct volume_scheduler *scheduler)
{
    g_autoptr(GPtrArray) rows = config_backend_work(volume_scheduler_config(scheduler), "");
    for (guint i = rows->len; i > 0; i--)
        if (((const struct worker *)rows->pdata[i - 1])->service_id)
            g_ptr_array_remove_index(rows, i - 1);
    return volume_turns(&scheduler->caller, rows, place, scheduler);
}

/* --- cleanups that nobody does --- */

static bool is_up(const struct storage_service *service)
{
    return service && service->state == STORAGE_UP;
}

/* Somebody could be asked instead: of the same binary and back end, and up. */
static bool has_other(const struct config *config, const struct cleanup *cleanup)
{
    const struct storage_service *dead = config_storage_service_of(config, cleanup->service_id);
    g_autoptr(GPtrArray) all = config_list(config, "storage_service");
    for (guint i = 0; dead && i < all->len; i++) {
        const struct storage_service *other = all->pdata[i];
        if (is_up(other) && other->id != dead->id && other->binary == dead->binary &&
            !strcmp(other->backend, dead->backend))
            return true;
    }
    return false;
}

static bool needs_other(const struct config *config, const struct cleanup *cleanup)
{
    return cleanup->state != CLEANUP_DONE &&
           (cleanup->state == CLEANUP_UNAVAILABLE || !cleanup->by ||
            !is_up(config_storage_service_of(config, cleanup->by))) &&
           has_other(config, cleanup);
}

static guint stand_in(struct volume_scheduler *scheduler, const char *key)
{
    struct volume_caller *caller = &scheduler->caller;
    gint64 now = volume_caller_ms(caller);
    const gint64 *not_before = g_hash_table_lookup(scheduler->stood_in, key);
    if (not_before && *not_before > now)
        return (guint)(*not_before - now);
    g_autofree char *commit_id = env_uuid(caller->env);
    struct stand_in_args args = {.commit_id = commit_id, .cleanup = (char *)key};
    gint64 next = now + AGAIN_MS;
    g_hash_table_insert(scheduler->stood_in, g_strdup(key), g_memdup2(&next, sizeof next));
    g_autoptr(GError) error = NULL;
    if (!volume_call_commit(caller, NULL, "stand_in", &args, &error))
        volume_caller_complain(caller, error);
    return AGAIN_MS;
}

/* Each time that it is due again, whatever auto_cleanup_enabled says: somebody has asked for it. */
static guint stand_in_all(struct volume_scheduler *scheduler)
{
    const struct config *config = volume_scheduler_config(scheduler);
    g_autoptr(GPtrArray) keys = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GPtrArray) all = config_list(config, "cleanup");
    for (guint i = 0; i < all->len; i++) {
        const struct cleanup *cleanup = all->pdata[i];
        if (needs_other(config, cleanup))
            g_ptr_array_add(keys, config_cleanup_key(cleanup->service_id, cleanup->resource_type,
                                                     cleanup->resource_id));
    }
    if (!keys->len)
        g_hash_table_remove_all(scheduler->stood_in);
    guint rest_ms = VOLUME_NEVER_MS;
    for (guint i = 0; i < keys->len && !task_killed(); i++) {
        guint next_ms = stand_in(scheduler, keys->pdata[i]);
        rest_ms = MIN(rest_ms, next_ms);
    }
    return rest_ms;
}

/* --- the automatic pass --- */

static void ask(struct volume_scheduler *scheduler)
{
    struct volume_caller *caller = &scheduler->caller;
    g_autofree char *commit_id = env_uuid(caller->env);
    g_autoptr(GError) error = NULL;
    record_autoptr(request_cleanup_args) args = request_cleanup_args_new();
    g_free(args->commit_id);
    args->commit_id = g_steal_pointer(&commit_id);
    args->automatic = true;
    g_free(args->requester);
    args->requester = g_strdup_printf("scheduler of %s", caller->host);
    record_autoptr(cleanup_requested) answer =
        volume_call(caller, NULL, "request_cleanup", args, &error);
    if (answer)
        log_info("",
                 "the scheduler has looked for services that are down: cleaning for %u, nobody can "
                 "for %u",
                 answer->cleaning->len, answer->unavailable->len);
    else if (!task_killed())
        log_warning("", "the scheduler has looked for services that are down: %s", error->message);
}

/* The first one of a copy that the master has confirmed by the registration: what others have asked
 * for is known (CLN-53). */
static guint look(struct volume_scheduler *scheduler)
{
    const struct cluster *cluster = config_cluster(volume_scheduler_config(scheduler));
    gint64 every_ms = (gint64)cluster->service_down_time * 1000;
    gint64 now = volume_caller_ms(&scheduler->caller);
    if (!cluster->auto_cleanup_enabled)
        return VOLUME_NEVER_MS;
    if (scheduler->looked_ms && now < scheduler->looked_ms + every_ms)
        return (guint)(scheduler->looked_ms + every_ms - now);
    scheduler->looked_ms = now;
    ask(scheduler);
    return (guint)every_ms;
}

/* --- turns --- */

/* A cluster without a back end has no services of storage either. */
static bool is_needed(const struct config *config)
{
    return config_has_any(config, "backend") || config_has_any(config, "worker");
}

static bool join(struct volume_caller *caller)
{
    g_autoptr(GError) error = NULL;
    bool ok = volume_caller_register(caller, &error);
    volume_caller_complain(caller, error);
    return ok;
}

/* How long it may rest then. */
static guint turn(struct volume_scheduler *scheduler)
{
    struct volume_caller *caller = &scheduler->caller;
    const struct config *config = volume_scheduler_config(scheduler);
    if (!config_cluster(config) || restored_brake(config))
        return IDLE_MS;
    if (volume_caller_lost(caller))
        caller->generation = 0;
    if (!caller->generation && (!is_needed(config) || !join(caller)))
        return AGAIN_MS;
    if (!volume_clean_own(caller) || task_killed())
        return AGAIN_MS;
    guint place_ms = place_all(scheduler);
    guint own_ms = task_killed() ? 0 : volume_clean_own_rest(caller);
    guint asked_ms = task_killed() ? 0 : volume_clean_asked(caller);
    guint others_ms = task_killed() ? 0 : stand_in_all(scheduler);
    guint look_ms = task_killed() ? 0 : look(scheduler);
    return MIN(MIN(MIN(place_ms, IDLE_MS), MIN(own_ms, asked_ms)), MIN(others_ms, look_ms));
}

static void run(void *data)
{
    struct volume_scheduler *scheduler = data;
    bool alive = true;
    while (alive && !scheduler->beats.over) {
        guint rest_ms = turn(scheduler);
        alive =
            !task_killed() && env_pause(scheduler->caller.env, &scheduler->caller.pause, rest_ms);
    }
    scheduler_unref(scheduler);
}

/* --- beats --- */

static void gather(GPtrArray *callers, void *data)
{
    struct volume_scheduler *scheduler = data;
    if (scheduler->caller.generation)
        g_ptr_array_add(callers, &scheduler->caller);
}

static void space_free(void *space)
{
    backend_space_free(space);
}

static void answered_cb(const struct beat_result *result, void *data)
{
    struct volume_scheduler *scheduler = data;
    g_ptr_array_set_size(scheduler->spaces, 0);
    for (guint i = 0; i < result->spaces->len; i++)
        g_ptr_array_add(scheduler->spaces, backend_space_copy(result->spaces->pdata[i]));
    env_pause_end(&scheduler->caller.pause);
}

static void ended_cb(const GError *error, void *data)
{
    struct volume_scheduler *scheduler = data;
    scheduler->ended(error, scheduler->data);
}

/* --- life --- */

struct volume_scheduler *volume_scheduler_new(const struct env *env,
                                              void (*ended)(const GError *error, void *data),
                                              void *data)
{
    struct volume_scheduler *scheduler = g_new0(struct volume_scheduler, 1);
    struct follow *follow = follow_new(env, changed_cb, scheduler);
    /* All that its copy is for is said here. */
    follow_from_anywhere(follow);
    follow_only(follow, wants);
    scheduler->references = 1;
    volume_caller_init(&scheduler->caller, env, follow, STORAGE_SCHEDULER, "");
    scheduler->caller.label = g_strdup("what has no back end yet");
    scheduler->spaces = g_ptr_array_new_with_free_func(space_free);
    scheduler->stood_in = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    scheduler->ended = ended;
    scheduler->data = data;
    scheduler->beats = (struct volume_beats){.env = env,
                                             .follow = follow,
                                             .who = "the scheduler waits",
                                             .gather = gather,
                                             .answered = answered_cb,
                                             .ended = ended_cb,
                                             .data = scheduler};
    return scheduler;
}

void volume_scheduler_start(struct volume_scheduler *scheduler)
{
    const struct env *env = scheduler->caller.env;
    task_spawn(env->tasks, volume_beats_run, &scheduler->beats);
    scheduler->references++;
    task_spawn(env->tasks, run, scheduler);
}

void volume_scheduler_free(struct volume_scheduler *scheduler)
{
    if (!scheduler)
        return;
    scheduler->beats.over = true;
    follow_free(scheduler->caller.follow);
    scheduler_unref(scheduler);
}

const struct config *volume_scheduler_config(const struct volume_scheduler *scheduler)
{
    return follow_config(scheduler->caller.follow);
}
