/*
 * Jobs that start and stop instances, attach volumes to them and detach them, as core/ops has it
 * (docs/design/procedures.md, "Volumes of instances"); any of them may die at any step, and what it
 * has asked of a node may come later than that. Recovery settles what they leave (RCV-75). See
 * storage_sim.h.
 */
#include "storage_sim.h"

#include <string.h>

#include "core/config/attachments.h"

#define MOST_VOLUMES 3u /* of a guest, so that others have some */
#define LOOK_MS 50u
#define WAIT_MS 20000u
#define LATE_MS 9000u
#define ALSO_DIES 6u /* of a hundred steps */

struct guest_job {
    struct storage_world *storage;
    struct ms_host *host;
    const struct env *env;
    struct storage_guest *guest;
    guint number;
    guint64 history, epoch;
    char *owner, *livelock;
    bool dead;
};

/* --- asking the master --- */

static bool is_passing(const GError *error)
{
    return env_no_answer(error) || fettle_error_is(error, UNKNOWN_RESULT) ||
           fettle_error_is(error, TEMPORARY) || fettle_error_is(error, NOT_MASTER);
}

static json_t *owner_json(const struct guest_job *job)
{
    return json_make("{s:s,s:s}", "job", job->owner, "livelock", job->livelock);
}

/* Again while that may help; `args` is stolen. */
static json_t *ask(const struct guest_job *job, const char *method, json_t *args, guint tries,
                   GError **ret_error)
{
    g_autoptr(GError) error = NULL;
    json_t *answer = NULL;
    json_object_set_new(args, "owner", owner_json(job));
    for (guint i = 0; i < tries && !answer; i++) {
        g_clear_error(&error);
        struct rpc_call call = {.to_node = NODE_LOCAL,
                                .to_role = ROLE_WCONFD,
                                .method = method,
                                .args = json_incref(args),
                                .stamp = {job->history, job->epoch},
                                .job = job->number};
        answer = env_call_wait(job->env, &call, &error);
        if (answer || !is_passing(error) || !env_sleep(job->env, 100))
            break;
    }
    json_decref(args);
    if (error)
        ms_tell(job->storage->ms, "job %u: %s: %s", job->number, method, error->message);
    if (!answer && ret_error)
        *ret_error = g_steal_pointer(&error);
    return answer;
}

static bool take_locks(const struct guest_job *job, guint first, guint count, guint wait_ms)
{
    json_t *locks = json_array();
    for (guint i = first; i < first + count; i++) {
        g_autofree char *lock = g_strdup_printf("instance/web%u", i + 1);
        json_array_append_new(locks, json_make("{s:s,s:s}", "name", lock, "mode", "exclusive"));
    }
    json_autoptr answer = ask(
        job, "update_locks",
        json_make("{s:o,s:b,s:i}", "locks", locks, "wait", wait_ms > 0, "wait_ms", (int)wait_ms), 3,
        NULL);
    return json_is_true(json_object_get(answer, "granted"));
}

static bool take_lock(const struct guest_job *job, guint wait_ms)
{
    return take_locks(job, job->guest->index, 1, wait_ms);
}

/* --- changes --- */

static const struct instance *instance_of(const struct guest_job *job)
{
    return config_get(job->storage->truth, "instance", job->guest->uuid, NULL);
}

static void put(const struct guest_job *job, json_t *changes, const char *kind, const char *key,
                json_t *object)
{
    guint64 version = 0;
    config_get(job->storage->truth, kind, key, &version);
    json_array_append_new(changes,
                          json_make("{s:s,s:s,s:s,s:I,s:o}", "op", "put", "kind", kind, "key", key,
                                    "version", (json_int_t)version, "object", object));
}

static void put_volume(const struct guest_job *job, json_t *changes, const struct volume *volume,
                       const struct attachment *becomes)
{
    record_autoptr(volume) after = volume_copy(volume);
    g_ptr_array_set_size(after->attachments, 0);
    if (becomes)
        g_ptr_array_add(after->attachments, attachment_copy(becomes));
    put(job, changes, "volume", after->uuid, volume_to_json(after));
}

static void put_mark(const struct guest_job *job, json_t *changes, enum task_state mark)
{
    record_autoptr(instance) after = instance_copy(instance_of(job));
    if (after->task_state == mark && (mark == TASK_NONE || after->task_owner == job->number))
        return;
    after->task_state = mark;
    after->task_owner = mark == TASK_NONE ? 0 : job->number;
    after->task_since = mark == TASK_NONE ? 0 : 1;
    put(job, changes, "instance", after->uuid, instance_to_json(after));
}

/* `changes` is stolen. */
static bool commit(const struct guest_job *job, const char *method, json_t *changes, GError **error)
{
    g_autofree char *id = env_uuid(job->env);
    if (!json_array_size(changes)) {
        json_decref(changes);
        return true;
    }
    json_autoptr answer =
        ask(job, method, json_make("{s:s,s:o}", "commit_id", id, "changes", changes), 40, error);
    return answer != NULL;
}

/* Of whose attachment it was (NULL: nobody's); one that has ended meanwhile has ended. */
static bool change_attachment(const struct guest_job *job, const char *uuid, const char *was,
                              const struct attachment *becomes, enum task_state mark)
{
    g_autoptr(GError) error = NULL;
    for (guint i = 0; i < 6 && !task_killed(); i++) {
        const struct volume *volume = config_get(job->storage->truth, "volume", uuid, NULL);
        const struct attachment *now = volume ? attachment_of(volume) : NULL;
        json_t *changes = json_array();
        if (now ? g_strcmp0(now->uuid, was) != 0 : !was && !volume) {
            json_decref(changes);
            return false;
        }
        put_mark(job, changes, mark);
        if (now || !was)
            put_volume(job, changes, volume, becomes);
        g_clear_error(&error);
        if (commit(job, "change_attachment", changes, &error))
            return true;
        if (!fettle_error_is(error, VERSION_CONFLICT) || !env_sleep(job->env, 50))
            break;
    }
    return false;
}

/* The next generation; it settles what dead jobs have left of the volumes. */
static bool next_generation(const struct guest_job *job, bool starts)
{
    g_autoptr(GError) error = NULL;
    for (guint i = 0; i < 6 && !task_killed(); i++) {
        record_autoptr(instance) after = instance_copy(instance_of(job));
        g_autoptr(GPtrArray) volumes = config_list(job->storage->truth, "volume");
        json_t *changes = json_array();
        after->generation++;
        text_set(&after->holder, starts ? after->primary_node : "");
        after->admin_state = starts ? ADMIN_UP : ADMIN_DOWN;
        after->task_state = TASK_NONE;
        after->task_owner = after->task_since = 0;
        put(job, changes, "instance", after->uuid, instance_to_json(after));
        for (guint k = 0; k < volumes->len; k++) {
            const struct volume *volume = volumes->pdata[k];
            const struct attachment *is = attachment_of(volume);
            if (!is || strcmp(is->instance, after->uuid) != 0 ||
                (is->state == ATTACHMENT_ATTACHED && !is->leaving_us))
                continue;
            record_autoptr(attachment) next = attachment_copy(is);
            next->state = ATTACHMENT_ATTACHED;
            next->job = 0;
            bool over = is->leaving_us || is->state == ATTACHMENT_DETACHING;
            put_volume(job, changes, volume, over ? NULL : next);
        }
        g_clear_error(&error);
        if (commit(job, starts ? "start_instance" : "stop_instance", changes, &error))
            return true;
        if (!fettle_error_is(error, VERSION_CONFLICT) || !env_sleep(job->env, 50))
            break;
    }
    return false;
}

/* --- asking the node --- */

static void tell_volume(struct storage_frame *frame, const struct volume *volume)
{
    const struct attachment *attachment = attachment_of(volume);
    struct storage_open told = {.volume = volume->uuid,
                                .attachment = attachment->uuid,
                                .data = volume->data,
                                .leaving = attachment->leaving_us > 0};
    g_ptr_array_add(frame->opens, storage_open_copy(&told));
}

static bool dies(struct guest_job *job)
{
    job->dead = job->dead || task_killed() ||
                (!job->storage->ms->calm && ms_random(job->storage->ms, 100) < ALSO_DIES);
    return job->dead;
}

/* Whether it was answered. Who dies here has asked all the same. */
static bool act(struct guest_job *job, struct storage_frame *frame)
{
    struct ms *ms = job->storage->ms;
    bool dead = dies(job) || (frame->kind == FRAME_ATTACH && !ms->calm && ms_random(ms, 5) == 0);
    job->dead = dead;
    frame->from = job->host;
    frame->stamp = (struct stamp){job->history, job->epoch};
    frame->job = job->number;
    frame->generation = instance_of(job)->generation;
    storage_frame_send(frame, dead ? LATE_MS : 0);
    for (guint waited = 0; !dead && !frame->done && waited < WAIT_MS; waited += LOOK_MS)
        if (!env_sleep(job->env, LOOK_MS))
            return false;
    return !dead && frame->done;
}

/* --- what jobs do --- */

static bool stops(struct guest_job *job)
{
    struct storage_frame *frame = storage_frame_new(job->guest, FRAME_STOP);
    return act(job, frame) && frame->ok && !dies(job) && next_generation(job, false);
}

static void starts(struct guest_job *job)
{
    if (!next_generation(job, true) || dies(job))
        return;
    struct storage_frame *frame = storage_frame_new(job->guest, FRAME_START);
    g_autoptr(GPtrArray) volumes = config_instance_volumes(job->storage->truth, job->guest->uuid);
    for (guint i = 0; i < volumes->len; i++)
        tell_volume(frame, volumes->pdata[i]);
    if (act(job, frame) && !frame->ok)
        stops(job);
}

/* Asked once: whether its node answers, and says that it is gone. */
static bool ask_for_it(struct guest_job *job, const char *uuid, bool *ret_gone)
{
    struct storage_frame *frame = storage_frame_new(job->guest, FRAME_DETACH);
    const struct volume *volume = config_get(job->storage->truth, "volume", uuid, NULL);
    *ret_gone = !volume || !attachment_of(volume);
    if (*ret_gone)
        return true;
    tell_volume(frame, volume);
    bool answered = act(job, frame);
    *ret_gone = answered && frame->ok && frame->gone;
    return answered && frame->ok;
}

static void set_state(const struct guest_job *job, struct attachment *attachment,
                      enum attachment_state state)
{
    attachment->state = state;
    attachment->job = state == ATTACHMENT_ATTACHED ? 0 : job->number;
    attachment->since_us = 1;
}

static void plug_in(struct guest_job *job, const char *uuid, struct attachment *attachment)
{
    struct storage_frame *frame = storage_frame_new(job->guest, FRAME_ATTACH);
    const struct volume *volume = config_get(job->storage->truth, "volume", uuid, NULL);
    bool gone = false;
    if (!volume || !attachment_of(volume))
        return;
    tell_volume(frame, volume);
    if (!act(job, frame) || dies(job))
        return;
    set_state(job, attachment, ATTACHMENT_ATTACHED);
    if (frame->ok)
        change_attachment(job, uuid, attachment->uuid, attachment, TASK_NONE);
    else if (ask_for_it(job, uuid, &gone) && gone)
        change_attachment(job, uuid, attachment->uuid, NULL, TASK_NONE);
}

static bool is_worked_on(const struct storage_world *storage, const struct volume *volume)
{
    g_autoptr(GPtrArray) held = config_held_work(storage->truth, RESOURCE_VOLUME, volume->uuid);
    const struct resource resource = resource_read(RESOURCE_VOLUME, volume);
    return held->len || storage_row_of(storage->truth, &resource);
}

/* One that could be had, or one that is worked on. */
static const struct volume *pick_free(struct storage_world *storage)
{
    g_autoptr(GPtrArray) all = config_list(storage->truth, "volume");
    g_autoptr(GPtrArray) fit = g_ptr_array_new();
    bool busy = ms_random(storage->ms, 3) == 0;
    for (guint i = 0; i < all->len; i++) {
        const struct volume *volume = all->pdata[i];
        if (!attachment_of(volume) && is_worked_on(storage, volume) == busy &&
            (busy || volume->status == VOLUME_AVAILABLE))
            g_ptr_array_add(fit, all->pdata[i]);
    }
    return fit->len ? fit->pdata[ms_random(storage->ms, fit->len)] : NULL;
}

static void attaches(struct guest_job *job)
{
    struct storage_world *storage = job->storage;
    const struct instance *instance = instance_of(job);
    const struct volume *volume = pick_free(storage);
    record_autoptr(attachment) attachment = attachment_new();
    if (!volume || !attachment_free_slot(storage->truth, instance, &attachment->slot, NULL))
        return;
    bool runs = *instance->holder, busy = is_worked_on(storage, volume);
    g_autofree char *uuid = g_strdup(volume->uuid);
    g_autofree char *id = env_uuid(job->env);
    text_set(&attachment->uuid, id);
    text_set(&attachment->instance, instance->uuid);
    set_state(job, attachment, runs ? ATTACHMENT_ATTACHING : ATTACHMENT_ATTACHED);
    storage->counts->in_copy += busy;
    bool ok =
        change_attachment(job, uuid, NULL, attachment, runs ? TASK_ATTACHING_VOLUME : TASK_NONE);
    storage->counts->attached += ok;
    storage->counts->refused_attach += !ok && busy;
    if (ok && runs && !dies(job))
        plug_in(job, uuid, attachment);
}

static void take_out(struct guest_job *job, const char *uuid, struct attachment *attachment)
{
    bool gone = false;
    for (guint i = 0; i < 4 && !gone; i++)
        if (!ask_for_it(job, uuid, &gone) || (!gone && !env_sleep(job->env, 500)))
            return; /* the mark stays */
    /* Whatever comes to the node now comes too late. */
    guint slow_ms = ms_random(job->storage->ms, ms_random(job->storage->ms, 2) ? 100 : 5000);
    if (!env_sleep(job->env, slow_ms) || dies(job))
        return;
    set_state(job, attachment, ATTACHMENT_ATTACHED);
    attachment->leaving_us = 1;
    job->storage->counts->wishes += !gone;
    change_attachment(job, uuid, attachment->uuid, gone ? NULL : attachment, TASK_NONE);
}

static void detaches(struct guest_job *job)
{
    struct storage_world *storage = job->storage;
    g_autoptr(GPtrArray) all = config_instance_volumes(storage->truth, job->guest->uuid);
    if (!all->len)
        return;
    const struct volume *volume = all->pdata[ms_random(storage->ms, all->len)];
    for (guint i = 0; i < all->len; i++)
        if (attachment_of(all->pdata[i])->state == ATTACHMENT_ATTACHING)
            volume = all->pdata[i];
    record_autoptr(attachment) attachment = attachment_copy(attachment_of(volume));
    g_autofree char *uuid = g_strdup(volume->uuid);
    bool asks = *instance_of(job)->holder;
    set_state(job, attachment, ATTACHMENT_DETACHING);
    if (change_attachment(job, uuid, attachment->uuid, asks ? attachment : NULL,
                          asks ? TASK_DETACHING_VOLUME : TASK_NONE) &&
        asks && !dies(job))
        take_out(job, uuid, attachment);
}

static void works(struct guest_job *job)
{
    const struct instance *instance = instance_of(job);
    g_autoptr(GPtrArray) has = config_instance_volumes(job->storage->truth, job->guest->uuid);
    guint what = ms_random(job->storage->ms, 100);
    bool marked = instance->task_state != TASK_NONE;
    if (*instance->holder && (what < 12 || (marked && what < 50)))
        stops(job);
    else if (!*instance->holder && what < 60)
        starts(job);
    else if (marked && what < 60)
        return; /* recovery's */
    else if (marked)
        detaches(job); /* what may come yet */
    else if (has->len < MOST_VOLUMES && what < 92 - 10 * has->len)
        attaches(job);
    else
        detaches(job);
}

/* --- after a restore --- */

/* What runs, as its node says; false: that does not answer. */
static bool adopt(struct guest_job *job, struct storage_guest *guest, json_t *changes)
{
    job->guest = guest;
    struct storage_frame *frame = storage_frame_new(guest, FRAME_LOOK);
    record_autoptr(instance) after = instance_copy(instance_of(job));
    frame->ends = 0;
    if (!act(job, frame) || !frame->ok || (frame->runs && frame->knows < after->generation))
        return false;
    if (frame->runs)
        after->generation = frame->knows;
    else if (*after->holder)
        after->generation++;
    text_set(&after->holder, frame->runs ? after->primary_node : "");
    after->admin_state = frame->runs ? ADMIN_UP : after->admin_state;
    put(job, changes, "instance", after->uuid, instance_to_json(after));
    return true;
}

/* `repair continue`, by a person who has waited for a while. */
static void continues(struct guest_job *job)
{
    struct storage_world *storage = job->storage;
    json_autoptr changes = json_array();
    if (!env_sleep(job->env, 2000 + ms_random(storage->ms, 9000)) ||
        !take_locks(job, 0, STORAGE_GUESTS, 5000) || !storage_is_held(storage))
        return;
    for (guint i = 0; i < STORAGE_GUESTS; i++)
        if (!adopt(job, &storage->guests[i], changes))
            return;
    guint64 version = 0;
    if (config_get(storage->truth, "repair_brake", "cluster", &version))
        json_array_append_new(changes,
                              json_make("{s:s,s:s,s:s,s:I}", "op", "delete", "kind", "repair_brake",
                                        "key", "cluster", "version", (json_int_t)version));
    storage->counts->continued += commit(job, "adopt_restored", json_incref(changes), NULL);
}

/* --- life --- */

static void begin(struct guest_job *job, struct storage_host *host, struct storage_guest *guest,
                  guint number)
{
    *job = (struct guest_job){.storage = host->storage,
                              .host = host->host,
                              .env = host->host->job,
                              .guest = guest,
                              .number = number,
                              .history = host->storage->ms->history,
                              .epoch = host->host->epoch,
                              .owner = g_strdup_printf("%u", number),
                              .livelock = g_strdup_printf("job-%u", number)};
    fake_livelock(job->storage->ms->world, job->host->uuid, job->livelock, LIVELOCK_ALIVE);
    g_hash_table_add(job->storage->jobs, GUINT_TO_POINTER(number));
}

static void end(struct guest_job *job)
{
    if (!job->dead && !task_killed())
        json_decref(ask(job, "free_locks", json_object(), 3, NULL));
    g_hash_table_remove(job->storage->jobs, GUINT_TO_POINTER(job->number));
    ms_saw_end(job->storage->ms, job->number);
    fake_livelock(job->storage->ms->world, job->host->uuid, job->livelock, LIVELOCK_DEAD);
    g_free(job->owner);
    g_free(job->livelock);
}

static void job_task(void *data)
{
    struct storage_host *host = data;
    struct storage_world *storage = host->storage;
    struct ms *ms = storage->ms;
    while (env_sleep(host->host->job, 100 + ms_random(ms, 600))) {
        struct guest_job job;
        bool held = storage_is_held(storage);
        if ((ms->calm && !held) || !host->host->epoch)
            continue;
        begin(&job, host, &storage->guests[ms_random(ms, STORAGE_GUESTS)], ++ms->last_job);
        if (held)
            continues(&job);
        else if (take_lock(&job, 1000 + ms_random(ms, 8000)) && !dies(&job))
            works(&job);
        end(&job);
    }
}

/* --- recovery --- */

static const struct storage_open *seen(const struct storage_frame *frame, const char *attachment)
{
    for (guint i = 0; i < frame->opens->len; i++) {
        const struct storage_open *open = frame->opens->pdata[i];
        if (!strcmp(open->attachment, attachment))
            return open;
    }
    return NULL;
}

/* As recovery_settle_volumes(). */
static void settle_volumes(const struct guest_job *job, const struct storage_frame *frame,
                           guint64 owner, json_t *changes)
{
    g_autoptr(GPtrArray) volumes = config_instance_volumes(job->storage->truth, job->guest->uuid);
    for (guint i = 0; i < volumes->len; i++) {
        const struct attachment *left = attachment_of(volumes->pdata[i]);
        const struct storage_open *open = seen(frame, left->uuid);
        bool leaving = open && open->leaving, has = open && open->plugged;
        if (left->job != owner || left->state == ATTACHMENT_ATTACHED || (open && !leaving && !has))
            continue;
        record_autoptr(attachment) after = attachment_copy(left);
        after->state = ATTACHMENT_ATTACHED;
        after->job = 0;
        after->leaving_us = leaving;
        put_volume(job, changes, volumes->pdata[i], open ? after : NULL);
    }
}

static void recover(struct guest_job *job)
{
    guint64 owner = instance_of(job)->task_owner;
    struct storage_frame *frame = storage_frame_new(job->guest, FRAME_LOOK);
    frame->ends = (guint)owner;
    if (!act(job, frame) || !frame->ok || instance_of(job)->task_owner != owner)
        return;
    json_t *changes = json_array();
    settle_volumes(job, frame, owner, changes);
    put_mark(job, changes, TASK_NONE);
    job->storage->counts->recovered += commit(job, "recover", changes, NULL);
}

static void recovery_task(void *data)
{
    struct storage_host *host = data;
    struct storage_world *storage = host->storage;
    const struct env *env = host->recovery;
    guint next = 0;
    while (env_sleep(env, 500 + ms_random(storage->ms, 2000))) {
        struct storage_guest *guest = &storage->guests[next++ % STORAGE_GUESTS];
        if (storage_is_held(storage) || !host->host->epoch)
            continue;
        storage_reset_left(host);
        const struct instance *instance = config_get(storage->truth, "instance", guest->uuid, NULL);
        if (instance->task_state == TASK_NONE ||
            g_hash_table_contains(storage->jobs, GUINT_TO_POINTER((guint)instance->task_owner)))
            continue;
        struct guest_job job;
        begin(&job, host, guest, ++storage->ms->last_job);
        text_set(&job.owner, ROLE_WATCHER);
        job.env = env;
        if (take_lock(&job, 0) && instance_of(&job)->task_state != TASK_NONE)
            recover(&job);
        end(&job);
    }
}

void storage_jobs_start(struct storage_host *host)
{
    task_spawn(host->host->job->tasks, job_task, host);
    task_spawn(host->host->job->tasks, job_task, host);
    task_spawn(host->recovery->tasks, recovery_task, host);
}
