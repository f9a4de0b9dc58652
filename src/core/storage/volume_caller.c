/* See volume_caller.h. */
#include "core/storage/volume_caller.h"

#include <string.h>

#include "base/log.h"
#include "core/storage/volume_private.h"
#include "proto/envelope.h"

#define CALL_AGAIN_MS 200
#define REFUSED_PAUSE_MS 5000 /* while this node is none that may ask */
#define LOOK_MS 1000          /* at the interval of beats, which may be changed meanwhile */
#define FIRST_BEAT_MS 1000    /* until there is a copy that says how often */

void volume_caller_init(struct volume_caller *caller, const struct env *env, struct follow *follow,
                        enum storage_binary binary, const char *backend)
{
    caller->env = env;
    caller->follow = follow;
    caller->binary = binary;
    caller->backend = g_strdup(backend);
    caller->busy = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    caller->tried = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    caller->seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, volume_seen_free);
}

void volume_caller_clear(struct volume_caller *caller)
{
    g_hash_table_unref(caller->busy);
    g_hash_table_unref(caller->tried);
    g_hash_table_unref(caller->seen);
    g_free(caller->host);
    g_free(caller->backend);
    g_free(caller->label);
    g_free(caller->uuid);
    g_free(caller->cleanup);
    g_free(caller->complaint);
}

const struct config *volume_caller_config(const struct volume_caller *caller)
{
    return follow_config(caller->follow);
}

gint64 volume_caller_ms(const struct volume_caller *caller)
{
    return caller->env->ops->boot_ms(caller->env);
}

void volume_caller_complain(struct volume_caller *caller, const GError *error)
{
    const char *words = error ? error->message : NULL;
    if (task_killed() || g_strcmp0(caller->complaint, words) == 0)
        return;
    if (words)
        log_warning("", "%s", words);
    g_free(caller->complaint);
    caller->complaint = g_strdup(words);
}

/* --- calls --- */

bool volume_work_is_had(const struct volume_work *work)
{
    const struct config *config = volume_caller_config(work->caller);
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

void *volume_call(struct volume_caller *caller, const struct volume_work *work, const char *method,
                  const void *args, GError **error)
{
    guint64 history = config_history(volume_caller_config(caller));
    for (;;) {
        g_autoptr(GError) local = NULL;
        if ((work && !volume_work_is_had(work)) ||
            config_history(volume_caller_config(caller)) != history) {
            fettle_set_error(error, REFUSED, "%s: the row is another's by now", method);
            return NULL;
        }
        void *answer = env_call_record(caller->env, NODE_MASTER, ROLE_WCONFD, method, args,
                                       follow_stamp(caller->follow), 0, 0, &local);
        if (answer)
            return answer;
        if (fettle_error_is(local, STALE_EPOCH))
            follow_refresh(caller->follow, NULL);
        if (is_passing(local) && env_sleep(caller->env, CALL_AGAIN_MS))
            continue;
        g_propagate_error(error, g_steal_pointer(&local));
        return NULL;
    }
}

bool volume_call_commit(struct volume_caller *caller, const struct volume_work *work,
                        const char *method, const void *args, GError **error)
{
    record_autoptr(commit_result) result = volume_call(caller, work, method, args, error);
    return result && follow_wait(caller->follow, result->serial, error);
}

/* --- registration --- */

/* Meanwhile it has none itself: a beat of the registration that ends would look as if another
 * process had registered. */
bool volume_caller_register(struct volume_caller *caller, GError **error)
{
    const struct config *config = volume_caller_config(caller);
    const struct env *env = caller->env;
    g_autofree char *commit_id = env_uuid(env);
    g_free(caller->host);
    caller->host =
        g_strdup(!caller->member || !env->storage_host ? config_node_name(config, env->node_uuid)
                                                       : env->storage_host);
    struct register_storage_args args = {.commit_id = commit_id,
                                         .binary = caller->binary,
                                         .host = caller->host,
                                         .backend = caller->backend,
                                         .wire = PROTOCOL_VERSION_MAX,
                                         .version = (char *)FETTLE_VERSION};
    caller->generation = 0;
    record_autoptr(registered_storage) answer =
        volume_call(caller, NULL, "register_storage", &args, error);
    if (!answer || !follow_wait(caller->follow, answer->generation, error))
        return false;
    g_free(caller->uuid);
    caller->uuid = g_strdup(answer->service);
    caller->id = answer->id;
    caller->generation = answer->generation;
    log_info("", "serves %s as %s, generation %" G_GUINT64_FORMAT, caller->label, caller->host,
             caller->generation);
    return true;
}

/* Who has registered after it shows a higher one. */
bool volume_caller_lost(const struct volume_caller *caller)
{
    const struct storage_service *own =
        caller->generation
            ? config_get(volume_caller_config(caller), "storage_service", caller->uuid, NULL)
            : NULL;
    return caller->generation && (!own || own->generation < caller->generation);
}

/* --- beats --- */

static GPtrArray *gather(const struct volume_beats *beats)
{
    GPtrArray *callers = g_ptr_array_new();
    beats->gather(callers, beats->data);
    return callers;
}

static struct storage_beat *beat_of(const struct volume_caller *caller)
{
    struct storage_beat *beat = storage_beat_new();
    g_free(beat->service);
    beat->service = g_strdup(caller->uuid);
    beat->generation = caller->generation;
    beat->hanging = caller->hanging;
    beat->free_mib = caller->free_mib;
    beat->total_mib = caller->total_mib;
    beat->space_age_ms =
        caller->total_mib ? (guint64)(volume_caller_ms(caller) - caller->measured_ms) : 0;
    return beat;
}

/* A back end that was taken off record, or from this node, ends its member alone; else somebody has
 * the name. */
static void judge_over(struct volume_beats *beats, const struct storage_beat *sent)
{
    g_autoptr(GPtrArray) callers = gather(beats);
    for (guint i = 0; i < callers->len && !beats->over; i++) {
        const struct volume_caller *caller = callers->pdata[i];
        if (strcmp(caller->uuid, sent->service) != 0 || caller->generation != sent->generation ||
            volume_caller_lost(caller))
            continue;
        g_autoptr(GError) error = NULL;
        beats->over = true;
        fettle_set_error(&error, REFUSED,
                         "the registration at %s is over: another process of this name has "
                         "registered after it; this one ends",
                         caller->label);
        beats->ended(error, beats->data);
    }
}

static void beat(struct volume_beats *beats)
{
    record_autoptr(beat_args) args = beat_args_new();
    g_autoptr(GPtrArray) callers = gather(beats);
    for (guint i = 0; i < callers->len; i++)
        g_ptr_array_add(args->services, beat_of(callers->pdata[i]));
    if (!args->services->len)
        return;
    record_autoptr(beat_result) result =
        env_call_record(beats->env, NODE_MASTER, ROLE_WCONFD, "beat", args,
                        follow_stamp(beats->follow), 0, 0, NULL);
    if (!result || beats->over)
        return;
    if (beats->answered)
        beats->answered(result, beats->data);
    if (!result->over->len || !follow_refresh(beats->follow, NULL))
        return;
    for (guint i = 0; i < args->services->len; i++) {
        const struct storage_beat *sent = args->services->pdata[i];
        if (g_ptr_array_find_with_equal_func(result->over, sent->service, g_str_equal, NULL))
            judge_over(beats, sent);
    }
}

/* Until there is a first copy. On a node that may not ask yet it waits until it may. */
static bool wait_for_copy(const struct volume_beats *beats)
{
    const struct env *env = beats->env;
    for (bool told = false;; told = true) {
        g_autoptr(GError) error = NULL;
        if (follow_start(beats->follow, &error))
            return true;
        if (task_killed())
            return false;
        if (!told)
            log_info("", "%s: %s", beats->who, error->message);
        if (!env_sleep(env, REFUSED_PAUSE_MS))
            return false;
    }
}

void volume_beats_run(void *data)
{
    struct volume_beats *beats = data;
    const struct env *env = beats->env;
    gint64 last_ms = 0; /* boot clock */
    bool alive = wait_for_copy(beats);
    while (alive && !beats->over) {
        const struct cluster *cluster = config_cluster(follow_config(beats->follow));
        gint64 every_ms = cluster ? (gint64)cluster->report_interval * 1000 : FIRST_BEAT_MS;
        gint64 now = env->ops->boot_ms(env);
        if (last_ms == 0 || beats->now || now >= last_ms + every_ms) {
            last_ms = now;
            beats->now = false;
            beat(beats);
        }
        gint64 rest_ms = last_ms + every_ms - env->ops->boot_ms(env);
        alive = env_sleep(env, (guint)CLAMP(rest_ms, 1, LOOK_MS));
    }
}
