/*
 * Guests and their node daemons, as far as volumes go (SAF-57, 59, 124): what core/node/volume does
 * of it is modelled here, the master's part is real. What a node daemon has noted, and the guest
 * itself, outlive it; a power cut ends the guest. See storage_sim.h.
 */
#include "storage_sim.h"

#include <string.h>

#include "core/config/attachments.h"
#include "proto/change.h"

#define LOOK_MS 50u
#define WRITE_MS 600u
#define ASK_MS 4000u
#define TRAVELS 100u /* so often a frame waits for a node daemon that is not there */

static struct ms_host *host_of(const struct storage_guest *guest)
{
    return guest->host->host;
}

void storage_open_free(void *data)
{
    struct storage_open *open = data;
    g_free(open->volume);
    g_free(open->attachment);
    g_free(open->data);
    g_free(open->point.name);
    g_free(open);
}

struct storage_open *storage_open_copy(const struct storage_open *from)
{
    struct storage_open *open = g_new0(struct storage_open, 1);
    open->volume = g_strdup(from->volume);
    open->attachment = g_strdup(from->attachment);
    open->data = g_strdup(from->data);
    open->plugged = from->plugged;
    open->leaving = from->leaving;
    return open;
}

static struct storage_open *noted(const struct storage_guest *guest, const char *attachment)
{
    for (guint i = 0; i < guest->opens->len; i++) {
        struct storage_open *open = guest->opens->pdata[i];
        if (!strcmp(open->attachment, attachment))
            return open;
    }
    return NULL;
}

const struct storage_guest *storage_opened(const struct storage_world *storage, const char *data)
{
    for (guint i = 0; i < STORAGE_GUESTS; i++)
        for (guint k = 0; k < storage->guests[i].opens->len; k++) {
            const struct storage_open *open = storage->guests[i].opens->pdata[k];
            if (open->plugged && !strcmp(open->data, data))
                return &storage->guests[i];
        }
    return NULL;
}

static void set_lock(const struct storage_world *storage, const char *data, bool locked)
{
    if (fake_volumes_has(storage->volumes, data))
        fake_volumes_lock(storage->volumes, data, locked);
}

/* --- its end --- */

static void end_point(const struct storage_guest *guest, struct storage_open *open)
{
    if (open->point.name)
        set_lock(guest->storage, open->point.name, false);
    g_free(open->point.name);
    open->point = (struct storage_point){0};
}

static void unplug(const struct storage_guest *guest, struct storage_open *open)
{
    end_point(guest, open);
    if (open->plugged)
        set_lock(guest->storage, open->data, false);
    open->plugged = false;
}

/* The process is gone; the note stays. */
static void guest_ends(struct storage_guest *guest)
{
    for (guint i = 0; i < guest->opens->len; i++)
        unplug(guest, guest->opens->pdata[i]);
    guest->runs = guest->stray = false;
}

void storage_guests_end(struct storage_host *host)
{
    for (guint i = 0; i < STORAGE_GUESTS; i++)
        if (host->storage->guests[i].host == host)
            guest_ends(&host->storage->guests[i]);
}

/* --- questions to the master --- */

enum word { WORD_NONE, WORD_YES, WORD_NO };

static enum word ask(const struct storage_guest *guest, const char *role, guint64 generation,
                     const char *attachment, guint64 claim)
{
    const struct env *env = host_of(guest)->noded;
    struct rpc_call call = {.to_node = NODE_MASTER,
                            .to_role = ROLE_WCONFD,
                            .method = "confirm",
                            .args = json_make("{s:[{s:s,s:s,s:I,s:s,s:I}]}", "items", "role", role,
                                              "instance", guest->uuid, "generation",
                                              (json_int_t)generation, "replica", attachment,
                                              "claim", (json_int_t)claim)};
    json_autoptr answer = env_call_wait(env, &call, NULL);
    const json_t *first = json_array_get(json_object_get(answer, "items"), 0);
    const char *text = json_string_value(json_object_get(first, "answer"));
    return !text ? WORD_NONE : strcmp(text, "confirmed") ? WORD_NO : WORD_YES;
}

/* --- opening --- */

/* SAF-57: it is this one's on record, and nobody else has it. */
static void check_open(const struct storage_guest *guest, const struct storage_open *open,
                       gint64 asked_ms)
{
    const struct storage_world *storage = guest->storage;
    const struct volume *volume = config_get(storage->truth, "volume", open->volume, NULL);
    const struct instance *instance = config_get(storage->truth, "instance", guest->uuid, NULL);
    const struct attachment *attachment = volume ? attachment_of(volume) : NULL;
    if (storage_lost_since(storage, asked_ms))
        return;
    if (storage_is_held(storage))
        ms_problem(storage->ms, "guest %u opens %s before anybody says continue", guest->index + 1,
                   open->data);
    if (!attachment || strcmp(attachment->uuid, open->attachment) != 0 ||
        strcmp(attachment->instance, guest->uuid) != 0 || strcmp(volume->data, open->data) != 0)
        ms_problem(storage->ms, "guest %u opens %s, which is not its own on record",
                   guest->index + 1, open->data);
    if (instance->generation != guest->generation ||
        strcmp(instance->holder, host_of(guest)->uuid) != 0)
        ms_problem(storage->ms, "guest %u opens %s in a generation that is over", guest->index + 1,
                   open->data);
    if (storage_opened(storage, open->data))
        ms_problem(storage->ms, "guest %u opens %s, which another one has", guest->index + 1,
                   open->data);
}

/* Confirmed, noted, opened; a node daemon may die between any two. */
static bool plug_in(struct storage_guest *guest, guint64 generation,
                    const struct storage_open *told)
{
    struct storage_world *storage = guest->storage;
    const struct env *env = host_of(guest)->noded;
    gint64 asked_ms = ms_now(storage->ms);
    struct storage_open *open = noted(guest, told->attachment);
    if (open && (open->plugged || open->leaving))
        return open->plugged && !open->leaving;
    if (ask(guest, "attach", generation, told->attachment, 0) != WORD_YES || task_killed())
        return false;
    open = noted(guest, told->attachment);
    if (!open) {
        open = storage_open_copy(told);
        open->plugged = open->leaving = false;
        g_ptr_array_add(guest->opens, open);
    }
    bool alive = env_sleep(env, ms_random(storage->ms, 40));
    open = noted(guest, told->attachment);
    if (!alive || !guest->runs || !open)
        return false;
    if (!fake_volumes_has(storage->volumes, open->data) ||
        fake_volumes_locked(storage->volumes, open->data))
        return false; /* that is lost with commits; another one's lock */
    check_open(guest, open, asked_ms);
    open->plugged = true;
    set_lock(storage, open->data, true);
    storage->counts->opened++;
    return true;
}

static void forget(struct storage_guest *guest, const char *attachment)
{
    struct storage_open *open = noted(guest, attachment);
    if (open)
        unplug(guest, open);
    if (open)
        g_ptr_array_remove(guest->opens, open);
}

/* --- what it does --- */

static void writes_cb(void *data)
{
    struct storage_guest *guest = data;
    struct storage_world *storage = guest->storage;
    guest->writes = guest->runs && !storage->ms->over;
    if (!guest->writes)
        return;
    for (guint i = 0; !host_of(guest)->paused && i < guest->opens->len; i++) {
        const struct storage_open *open = guest->opens->pdata[i];
        if (!open->plugged)
            continue;
        if (!fake_volumes_has(storage->volumes, open->data))
            ms_problem(storage->ms, "guest %u writes to %s, which is gone", guest->index + 1,
                       open->data);
        fake_volumes_write(storage->volumes, open->data);
        storage->counts->writes++;
    }
    ms_timer(storage->ms, 50 + ms_random(storage->ms, WRITE_MS), writes_cb, guest);
}

static void guest_begins(struct storage_guest *guest, guint64 generation)
{
    g_ptr_array_set_size(guest->opens, 0); /* of the process before */
    guest->generation = generation;
    guest->over = false;
    guest->runs = true;
    if (!guest->writes)
        ms_timer(guest->storage->ms, 50, writes_cb, guest);
    guest->writes = true;
}

/* --- what jobs ask --- */

/* One generation is begun once, whatever has become of its process (SAF-10). */
static bool start(struct storage_guest *guest, struct storage_frame *frame)
{
    if (frame->generation <= guest->generation)
        return guest->runs && frame->generation == guest->generation;
    if (guest->runs)
        return false;
    if (ask(guest, "start", frame->generation, "", 0) != WORD_YES || task_killed())
        return false;
    guest_begins(guest, frame->generation);
    for (guint i = 0; i < frame->opens->len; i++)
        if (!plug_in(guest, frame->generation, frame->opens->pdata[i])) {
            guest_ends(guest);
            return false;
        }
    return true;
}

static bool stop(struct storage_guest *guest, struct storage_frame *frame)
{
    if (frame->generation < guest->generation)
        return false;
    guest_ends(guest);
    guest->generation = frame->generation;
    guest->over = true;
    g_ptr_array_set_size(guest->opens, 0);
    return true;
}

static bool attach(struct storage_guest *guest, struct storage_frame *frame)
{
    return guest->runs && guest->generation == frame->generation &&
           plug_in(guest, frame->generation, frame->opens->pdata[0]);
}

/* A guest takes its time, or does not answer the wish for long. */
static bool gives_up(struct storage_guest *guest, struct storage_open *open)
{
    struct ms *ms = guest->storage->ms;
    if (!open->plugged)
        return true;
    if (!ms->calm && ms_random(ms, 4) == 0)
        guest->stubborn_ms = ms_now(ms) + ms_random(ms, 15000);
    if (ms_now(ms) < guest->stubborn_ms)
        return false;
    unplug(guest, open);
    return true;
}

static bool detach(struct storage_guest *guest, struct storage_frame *frame)
{
    const struct storage_open *told = frame->opens->pdata[0];
    struct storage_open *open = noted(guest, told->attachment);
    frame->gone = !open || (!guest->runs && guest->generation <= frame->generation);
    if (!frame->gone && (!guest->runs || guest->generation != frame->generation))
        return false;
    if (!frame->gone) {
        end_point(guest, open);
        open->leaving = true;
        env_sleep(host_of(guest)->noded, ms_random(guest->storage->ms, 300));
        open = noted(guest, told->attachment);
        frame->gone = !task_killed() && (!open || gives_up(guest, open));
    }
    if (frame->gone)
        forget(guest, told->attachment);
    return !task_killed();
}

/* What is there; the job whose work it was does nothing here any more (RCV-75). */
static bool look(struct storage_guest *guest, struct storage_frame *frame)
{
    frame->runs = guest->runs;
    frame->knows = guest->generation;
    guest->ended_job = MAX(guest->ended_job, frame->ends);
    for (guint i = 0; i < guest->opens->len; i++)
        g_ptr_array_add(frame->opens, storage_open_copy(guest->opens->pdata[i]));
    return true;
}

static bool lock_guest(struct storage_guest *guest)
{
    while (guest->locked)
        if (!env_sleep(host_of(guest)->noded, LOOK_MS))
            return false;
    guest->locked = true;
    return true;
}

/* An attach of a dead job is told by its question to the master alone. */
static bool is_ended(const struct storage_frame *frame)
{
    return frame->kind != FRAME_ATTACH && frame->kind != FRAME_LOOK &&
           frame->job <= frame->guest->ended_job;
}

static void carry_out(struct storage_frame *frame)
{
    static bool (*const all[])(struct storage_guest * guest,
                               struct storage_frame * frame) = {[FRAME_START] = start,
                                                                [FRAME_STOP] = stop,
                                                                [FRAME_ATTACH] = attach,
                                                                [FRAME_DETACH] = detach,
                                                                [FRAME_LOOK] = look};
    if (!lock_guest(frame->guest))
        return;
    frame->ok = !is_ended(frame) && all[frame->kind](frame->guest, frame);
    frame->guest->locked = false;
}

static void frame_task(void *data)
{
    struct storage_frame *frame = data;
    struct ms_host *host = host_of(frame->guest);
    struct ms *ms = host->ms;
    struct epoch_fence_op *op = epoch_fence_enter(host->fence, frame->stamp, frame->from->uuid,
                                                  frame->job, "volume_attach", NULL);
    if (op) {
        carry_out(frame);
        epoch_fence_leave(op);
    }
    frame->done = !task_killed() && ms_linked(ms, host->index, frame->from->index);
}

static void frame_arrives(void *data)
{
    struct storage_frame *frame = data;
    struct ms_host *host = host_of(frame->guest);
    struct ms *ms = host->ms;
    if (ms->over || !ms_linked(ms, frame->from->index, host->index))
        return;
    if (host->noded && host->fence_ready && !host->paused)
        task_spawn(host->noded->tasks, frame_task, frame);
    else if (frame->travels++ < TRAVELS)
        ms_timer(ms, 300, frame_arrives, frame);
}

void storage_frame_free(void *data)
{
    struct storage_frame *frame = data;
    g_ptr_array_unref(frame->opens);
    g_free(frame);
}

struct storage_frame *storage_frame_new(struct storage_guest *guest, enum storage_frame_kind kind)
{
    struct storage_frame *frame = g_new0(struct storage_frame, 1);
    frame->kind = kind;
    frame->guest = guest;
    frame->opens = g_ptr_array_new_with_free_func(storage_open_free);
    g_ptr_array_add(guest->storage->frames, frame);
    return frame;
}

void storage_frame_send(struct storage_frame *frame, guint late_ms)
{
    struct ms *ms = frame->guest->storage->ms;
    ms_timer(ms, ms_random(ms, 2 + ms->delay_ms + late_ms), frame_arrives, frame);
}

/* --- points in time --- */

static struct storage_guest *guest_with(const struct storage_host *host, const char *volume,
                                        struct storage_open **ret_open)
{
    struct storage_world *storage = host->storage;
    for (guint i = 0; i < STORAGE_GUESTS; i++)
        for (guint k = 0; k < storage->guests[i].opens->len; k++) {
            struct storage_open *open = storage->guests[i].opens->pdata[k];
            *ret_open = open;
            if (storage->guests[i].host == host && storage->guests[i].runs && open->plugged &&
                !strcmp(open->volume, volume))
                return &storage->guests[i];
        }
    *ret_open = NULL;
    return NULL;
}

/* What is copied becomes so at the end, whatever was written meanwhile. */
static const char *point_state(const struct storage_guest *guest, struct storage_open *open,
                               guint64 claim)
{
    struct storage_world *storage = guest->storage;
    struct storage_point *point = &open->point;
    if (!point->claim || point->claim != claim)
        return "none";
    if (!point->copied && ms_now(storage->ms) < point->ready_ms)
        return "copying";
    if (point->breaks || !fake_volumes_has(storage->volumes, point->name))
        return "failed";
    if (!point->copied)
        fake_volumes_set_content(storage->volumes, point->name, point->content);
    point->copied = true;
    return "copied";
}

static json_t *point_answer(struct storage_host *host, const char *volume, guint64 claim)
{
    struct storage_open *open = NULL;
    const struct storage_guest *guest = guest_with(host, volume, &open);
    return json_make("{s:b,s:s}", "here", guest != NULL, "state",
                     guest ? point_state(guest, open, claim) : "none");
}

static bool begin_point(struct storage_guest *guest, const char *attachment, guint64 claim,
                        const char *name, GError **error)
{
    struct storage_world *storage = guest->storage;
    struct ms *ms = storage->ms;
    enum word word = ask(guest, "point", guest->generation, attachment, claim);
    struct storage_open *open = noted(guest, attachment);
    if (word != WORD_YES || !open || !open->plugged || open->leaving ||
        !fake_volumes_has(storage->volumes, name)) {
        fettle_set_error(error, WRONG_STATE, "no copy under this claim");
        return false;
    }
    end_point(guest, open);
    open->point =
        (struct storage_point){.claim = claim,
                               .name = g_strdup(name),
                               .content = fake_volumes_content(storage->volumes, open->data),
                               .ready_ms = ms_now(ms) + ms_random(ms, 4000),
                               .breaks = ms_random(ms, 20) == 0};
    set_lock(storage, name, true);
    storage_moment(storage, claim, open->point.content);
    storage->counts->points++;
    return true;
}

static json_t *point_open(struct storage_host *host, const char *volume, guint64 claim,
                          const char *name, GError **error)
{
    struct storage_open *open = NULL;
    struct storage_guest *guest = guest_with(host, volume, &open);
    if (!guest || open->point.claim == claim)
        return point_answer(host, volume, claim);
    g_autofree char *attachment = g_strdup(open->attachment);
    bool newer = open->point.claim > claim;
    if (newer)
        fettle_set_error(error, REFUSED, "claim is over");
    if (newer || !lock_guest(guest))
        return NULL;
    bool ok = begin_point(guest, attachment, claim, name, error);
    guest->locked = false;
    return ok ? point_answer(host, volume, claim) : NULL;
}

static json_t *point_close(struct storage_host *host, const char *volume, guint64 claim)
{
    struct storage_open *open = NULL;
    struct storage_guest *guest = guest_with(host, volume, &open);
    guint64 under_way = guest ? open->point.claim : 0;
    if (!under_way || under_way > claim)
        return json_object();
    g_autofree char *attachment = g_strdup(open->attachment);
    if (under_way < claim &&
        ask(guest, "point", guest->generation, attachment, under_way) != WORD_NO)
        return json_object();
    if (!lock_guest(guest))
        return NULL;
    open = noted(guest, attachment);
    if (open && open->point.claim == under_way)
        end_point(guest, open);
    guest->locked = false;
    return json_object();
}

json_t *storage_noded(struct ms_host *base, const struct rpc_request *request, GError **error)
{
    struct storage_host *host = &storage_of(base->ms)->hosts[base->index];
    g_autofree char *volume = g_strdup(json_string_value(json_object_get(request->args, "volume")));
    g_autofree char *name = g_strdup(json_string_value(json_object_get(request->args, "name")));
    guint64 claim = (guint64)json_integer_value(json_object_get(request->args, "claim"));
    json_t *answer = json_object();
    if (!strcmp(request->name, "point_open") || !strcmp(request->name, "point_look") ||
        !strcmp(request->name, "point_close"))
        json_decref(answer);
    if (!strcmp(request->name, "point_open"))
        answer = point_open(host, volume, claim, name, error);
    else if (!strcmp(request->name, "point_look"))
        answer = point_answer(host, volume, claim);
    else if (!strcmp(request->name, "point_close"))
        answer = point_close(host, volume, claim);
    if (!answer && error && !*error)
        fettle_set_error(error, KILLED, "the node daemon has ended");
    return answer;
}

/* --- what a node daemon does by itself --- */

/* Device and node are gone: the master hears of it, then the note goes (SAF-124). */
static bool finish(struct storage_guest *guest, const struct storage_open *open)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *attachment = g_strdup(open->attachment);
    struct rpc_call call = {.to_node = NODE_MASTER,
                            .to_role = ROLE_WCONFD,
                            .method = "set_attachment",
                            .args = json_make("{s:s,s:I,s:s,s:s}", "instance", guest->uuid,
                                              "generation", (json_int_t)guest->generation, "volume",
                                              open->volume, "attachment", attachment)};
    json_autoptr told = env_call_wait(host_of(guest)->noded, &call, &error);
    guest->storage->counts->given_up += told != NULL;
    bool over = told || fettle_error_is(error, WRONG_STATE);
    if (over)
        forget(guest, attachment);
    return over || task_killed() || !noted(guest, attachment);
}

static void end_if_over(struct storage_guest *guest, const struct storage_open *open)
{
    g_autofree char *attachment = g_strdup(open->attachment);
    guint64 claim = open->point.claim;
    if (ask(guest, "point", guest->generation, attachment, claim) != WORD_NO)
        return;
    struct storage_open *now = noted(guest, attachment);
    if (now && now->point.claim == claim)
        end_point(guest, now);
}

static void watch(struct storage_guest *guest)
{
    for (guint i = 0; guest->runs && i < guest->opens->len; i++) {
        struct storage_open *open = guest->opens->pdata[i];
        if (open->leaving && gives_up(guest, open) && finish(guest, open))
            return;
        open = guest->opens->pdata[i];
        if (open->point.claim) {
            end_if_over(guest, open);
            return;
        }
    }
}

static void watch_task(void *data)
{
    struct storage_guest *guest = data;
    const struct env *env = host_of(guest)->noded;
    while (env_sleep(env, ASK_MS / 2 + ms_random(guest->storage->ms, ASK_MS))) {
        if (!lock_guest(guest))
            return;
        watch(guest);
        guest->locked = false;
    }
}

void storage_noded_starts(struct ms_host *base)
{
    struct storage_world *storage = storage_of(base->ms);
    for (guint i = 0; i < STORAGE_GUESTS; i++)
        if (storage->guests[i].host == &storage->hosts[base->index])
            task_spawn(base->noded->tasks, watch_task, &storage->guests[i]);
}

/* --- what must hold --- */

/* Until it is seen to be gone it is on record (SAF-57, 124), and so is what it has (SAF-53). */
static void check_guest(const struct storage_guest *guest)
{
    const struct storage_world *storage = guest->storage;
    if (guest->stray)
        return;
    const struct instance *instance = config_get(storage->truth, "instance", guest->uuid, NULL);
    if (guest->runs && instance->generation != guest->generation)
        ms_problem(storage->ms, "guest %u runs, and its generation is over", guest->index + 1);
    for (guint i = 0; i < guest->opens->len; i++) {
        const struct storage_open *open = guest->opens->pdata[i];
        const struct volume *volume = config_get(storage->truth, "volume", open->volume, NULL);
        const struct attachment *attachment = volume ? attachment_of(volume) : NULL;
        if (open->plugged && (!attachment || strcmp(attachment->uuid, open->attachment) != 0))
            ms_problem(storage->ms, "guest %u has %s, which is not its own on record any more",
                       guest->index + 1, open->data);
        else if (open->plugged && strcmp(volume->data, open->data) != 0)
            ms_problem(storage->ms, "guest %u has %s, and its volume names \"%s\"",
                       guest->index + 1, open->data, volume->data);
    }
}

void storage_guests_check(const struct storage_world *storage)
{
    for (guint i = 0; i < STORAGE_GUESTS; i++)
        check_guest(&storage->guests[i]);
}

/* What a lost master had begun somebody ends by the power switch. */
void storage_guests_reloaded(struct storage_world *storage)
{
    for (guint i = 0; i < STORAGE_GUESTS; i++) {
        struct storage_guest *guest = &storage->guests[i];
        const struct instance *instance = config_get(storage->truth, "instance", guest->uuid, NULL);
        bool same = instance->generation == guest->generation;
        for (guint k = 0; k < guest->opens->len && same; k++) {
            const struct storage_open *open = guest->opens->pdata[k];
            const struct volume *volume = config_get(storage->truth, "volume", open->volume, NULL);
            const struct attachment *attachment = volume ? attachment_of(volume) : NULL;
            same = attachment && !strcmp(attachment->uuid, open->attachment) &&
                   !strcmp(volume->data, open->data);
        }
        guest->stray = storage->restored && guest->runs && (guest->stray || !same);
        if (same || guest->stray)
            continue;
        guest_ends(guest);
        g_ptr_array_set_size(guest->opens, 0);
        guest->over = guest->over && guest->generation <= instance->generation;
        guest->generation = MIN(guest->generation, instance->generation);
    }
}
