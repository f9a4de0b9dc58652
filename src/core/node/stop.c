/*
 * Stopping a generation (SAF-11): powerdown, pause, every mirror ended in sync, killed, synced.
 * What it answers is remembered, so that a repeated question gets the same answer, and a generation
 * that never came here can never come later. Two facts are told apart: whether both copies are
 * equal (clean), and whether the guest's own images are worth a copy at all (sound, SAF-24).
 */
#include "base/log.h"
#include "core/node/cancel.h"
#include "core/node/deadline.h"
#include "core/node/lifecycle.h"
#include "core/node/migration/incoming.h"
#include "core/node/migration/outgoing.h"
#include "core/node/mirror_watch.h"
#include "core/node/reconcile.h"
#include "core/node/room.h"

#define STOP_POLL_MS 100
#define STOP_QUERY_MS 1000
#define PRESS_AGAIN_MS 4000  /* the button of a guest that has not listened yet */
#define SETTLE_WAIT_MS 15000 /* for the stale procedure of a lost replica */
#define END_MS 1500          /* for all that its process is asked once its time is over … */
#define LAST_WORD_MS 300     /* … and for what its disks have answered */
/* A process that keeps silent for so long stands still, and holds what the guest has not been told
 * (SAF-15). One that has answered until then, with a promised copy, may take so long to drain. */
#define SILENCE_MS 5000

/* One end of a guest. It is over at its moment also if the process never answers: then it ends as
 * by a power cut. */
struct stopping {
    struct guest *guest;
    const struct epoch_fence_op *op;
    guint64 timeout_ms; /* of the guest; 0: it gets none */
    gint64 shutdown_by; /* its time is over then … */
    gint64 over_by;     /* … and everybody's then … */
    gint64 drained_by;  /* … but that of a copy which may be closed clean */
    gint64 silent_ms;   /* since when the process has not answered; 0: it has */
};

/* --- asking --- */

static gint64 now_ms(const struct stopping *stopping)
{
    const struct env *env = stopping->guest->node->env;
    return env->ops->boot_ms(env);
}

static struct stopping stopping_begin(struct guest *guest, const struct epoch_fence_op *op,
                                      guint64 timeout_ms)
{
    struct stopping stopping = {.guest = guest, .op = op, .timeout_ms = timeout_ms};
    stopping.shutdown_by = now_ms(&stopping) + (gint64)timeout_ms;
    stopping.over_by = stopping.shutdown_by + END_MS;
    return stopping;
}

static bool ask(struct stopping *stopping, gint64 until_ms, deadline_fn fn, GError **error)
{
    g_autoptr(GError) why = NULL;
    gint64 asked = now_ms(stopping);
    bool answer = deadline_ask(stopping->guest, until_ms, fn, &why);
    if (answer)
        stopping->silent_ms = 0;
    else if (fettle_error_is(why, TIMEOUT) && stopping->silent_ms == 0)
        stopping->silent_ms = asked;
    if (why)
        g_propagate_error(error, g_steal_pointer(&why));
    return answer;
}

static bool ask_state(struct guest *guest, GError **error)
{
    if (guest_query(guest))
        return true;
    fettle_set_error(error, TIMEOUT, "it does not answer");
    return false;
}

static bool ask_io(struct guest *guest, GError **error)
{
    return guest_look_io(guest);
}

static bool ask_powerdown(struct guest *guest, GError **error)
{
    struct hypervisor *hv = guest->node->hv;
    return hv->ops->powerdown(hv, guest->record->instance, guest->record->generation, error);
}

static bool ask_pause(struct guest *guest, GError **error)
{
    struct hypervisor *hv = guest->node->hv;
    return hv->ops->pause(hv, guest->record->instance, guest->record->generation, error);
}

static bool ask_finish(struct guest *guest, GError **error)
{
    struct hypervisor *hv = guest->node->hv;
    return hv->ops->mirror_finish(hv, guest->record->instance, guest->record->generation, error);
}

/* --- how it ended --- */

/* Whether it ends without a replica in sync, as far as is known. */
static bool ends_alone(const struct guest *guest)
{
    bool told = guest->replica_sync > 0;
    return !guest->record->target || (told && guest->replica_state != REPLICA_IN_SYNC);
}

/* Whether its file says that this generation was used here: then it never starts here again, also
 * if what has become of it cannot be written. */
static bool stop_is_used(const struct guest *guest)
{
    struct stamp used = {guest->record->history, guest->record->generation};
    return stamp_compare(guest->kept, used) == 0;
}

/* The guest is over, and its exit was seen. A node that can write nothing any more says so all the
 * same: the end is a fact, and without it nothing could go on elsewhere. What it cannot keep, it
 * does not promise. */
static bool stop_record(struct guest *guest, bool clean, enum soundness sound, bool alone,
                        const char *why, GError **error)
{
    g_autoptr(GError) local = NULL;
    guest->record->clean = clean;
    guest->record->sound = sound;
    guest->record->ended_alone = alone;
    export_target_free(g_steal_pointer(&guest->record->target));
    guest->record->attached = false;
    guest_move(guest, PHASE_STOPPED, why);
    if (guest_save_end(guest, &local))
        return true;
    if (fettle_error_is(local, KILLED) || !stop_is_used(guest)) {
        g_propagate_error(error, g_steal_pointer(&local));
        return false;
    }
    log_error("", "the end of generation %" G_GUINT64_FORMAT " of instance %s cannot be kept: %s",
              guest->record->generation, guest->record->instance, local->message);
    guest->record->clean = false;
    guest->record->sound = SOUND_NO;
    return true;
}

/* What the guest's own images are worth now that nothing writes to them (SAF-24): whatever was told
 * to it as written is on the disk, and the disk gives it back. `before` is what is known of them
 * already; a disk that fails is not asked twice. */
static enum soundness stop_sound(const struct guest *guest, enum soundness before)
{
    struct storage *storage = guest->node->storage;
    const struct guest_record *record = guest->record;
    g_autoptr(GError) why = NULL;
    guint disks = record->spec ? record->spec->disks->len : 0;
    if (record->spec && disks == 0)
        return SOUND_YES;
    if (before == SOUND_NO)
        return SOUND_NO;
    if (storage->ops->sync(storage, record->instance, "", &why) &&
        (disks == 0 || storage->ops->check(storage, record->instance, "", disks, &why)))
        return record->spec ? before : SOUND_UNKNOWN;
    if (!task_killed())
        log_error("", "images of instance %s: %s", record->instance, why->message);
    return SOUND_NO;
}

/* The generation never ran here: from now on it never will (a delayed start is refused). */
static bool stop_never_started(struct guest *guest, const struct epoch_fence_op *op,
                               guint64 generation, GError **error)
{
    struct guest_record *record = guest->record;
    if (!outgoing_drop(guest))
        return node_killed(error);
    if (!incoming_end(guest, error) || (guest->live && !guest_kill(guest, error)))
        return false;
    if (!mirror_watch_stop(guest))
        return node_killed(error);
    /* As the one before has left them, unless that had found them bad. */
    enum soundness sound = stop_sound(guest, record->sound == SOUND_NO ? SOUND_NO : SOUND_YES);
    if (task_killed())
        return node_killed(error);
    record->history = epoch_fence_op_stamp(op).history;
    record->generation = generation;
    text_set(&record->boot_id, guest->node->env->boot_id);
    return stop_record(guest, false, sound, false, "it was never started", error);
}

/* --- the guest's own time --- */

/* Whether it has a copy that somebody may go on from. */
static bool is_promised(const struct guest *guest)
{
    return guest->record->target && guest->replica_state == REPLICA_IN_SYNC;
}

static bool stop_is_down(const struct stopping *stopping)
{
    return stopping->guest->shutdown || !stopping->guest->live;
}

/* A pause, if there is time for it; whether there is more. */
static bool stop_waits(const struct stopping *stopping)
{
    return now_ms(stopping) < stopping->shutdown_by && !epoch_fence_overtaken(stopping->op) &&
           !cancel_asked(stopping->guest) && env_sleep(stopping->guest->node->env, STOP_POLL_MS) &&
           now_ms(stopping) < stopping->shutdown_by;
}

/* Asks how it is until it says so. One that nobody waits for is asked once. */
static void stop_hear(struct stopping *stopping)
{
    gint64 once = now_ms(stopping) + (is_promised(stopping->guest) ? SILENCE_MS : END_MS);
    gint64 until = stopping->timeout_ms > 0 ? stopping->shutdown_by : once;
    while (!ask(stopping, until, ask_state, NULL) && stopping->silent_ms && stop_waits(stopping))
        ;
}

/* Waits for the guest to switch itself off. Events may be lost, so it is asked, too; and so may the
 * button be, if it is pressed before the guest has come so far as to look at it. */
static void stop_wait_powerdown(struct stopping *stopping)
{
    gint64 asked = now_ms(stopping), pressed = asked;
    while (!stop_is_down(stopping) && stop_waits(stopping)) {
        gint64 now = now_ms(stopping);
        if (now - asked >= STOP_QUERY_MS) {
            asked = now;
            ask(stopping, stopping->shutdown_by, ask_state, NULL);
        }
        if (now - pressed >= PRESS_AGAIN_MS && !stopping->silent_ms && !stop_is_down(stopping)) {
            pressed = now;
            ask(stopping, stopping->shutdown_by, ask_powerdown, NULL);
        }
    }
    if (stop_is_down(stopping))
        stopping->silent_ms = 0; /* it has just said so */
}

/* Asks the guest to shut down, if its disks can take it. True: it has, or is gone. */
static bool stop_powerdown(struct stopping *stopping)
{
    if (stop_is_down(stopping))
        return true;
    if (stopping->timeout_ms == 0 || stopping->guest->last_state != GUEST_RUNNING)
        return false;
    if (ask(stopping, stopping->shutdown_by, ask_powerdown, NULL) || stopping->silent_ms)
        stop_wait_powerdown(stopping);
    return stop_is_down(stopping);
}

/* Whether it may be ended now that it has had its time. */
static bool stop_goes_on(const struct guest *guest, const struct epoch_fence_op *op, bool down,
                         bool given_up, GError **error)
{
    g_autofree char *name = guest_name(guest);
    if (task_killed())
        return node_killed(error);
    if (!down && epoch_fence_overtaken(op))
        fettle_set_error(error, STALE_EPOCH,
                         "a new master announced itself while the guest was shutting down; the "
                         "guest was left alone");
    else if (!down && given_up)
        fettle_set_error(error, CANCELED,
                         "%s was asked to shut down and has not done so; it was left alone, as its "
                         "job was canceled",
                         name);
    else
        return true;
    return false;
}

/* Why the copies cannot be told to be equal, for whoever wonders. */
static bool stop_unclean(const struct guest *guest, const char *why)
{
    g_autofree char *fields = g_strdup_printf("INSTANCE=%s GENERATION=%" G_GUINT64_FORMAT,
                                              guest->record->instance, guest->record->generation);
    if (!task_killed())
        log_warning(fields, "the guest ends without a clean close: %s", why);
    return false;
}

/* Whether its process stands still, as far as can be told. With a promised copy it gets the time
 * that an answer may take, as far as whoever has set a time waits for it. */
static bool stop_is_silent(struct stopping *stopping)
{
    struct guest *guest = stopping->guest;
    gint64 until = stopping->silent_ms + SILENCE_MS;
    if (stopping->timeout_ms > 0)
        until = MIN(until, stopping->over_by);
    while (stopping->silent_ms && guest->live && is_promised(guest) && now_ms(stopping) < until &&
           env_sleep(guest->node->env, STOP_POLL_MS))
        ask(stopping, until, ask_state, NULL);
    return stopping->silent_ms != 0;
}

/* A mirror that has ended by itself has let the guest go on: what it was told since then is not on
 * the replica. That is on record before the end is told (SAF-13). A monitor that does not answer
 * holds what it has, and tells the guest nothing. */
static bool stop_without_mirror(struct stopping *stopping, GError **error)
{
    struct guest *guest = stopping->guest;
    if (!is_promised(guest) || stop_is_silent(stopping) ||
        !ask(stopping, stopping->drained_by, ask_state, NULL) ||
        guest->last_mirror.state == MIRROR_READY || guest->last_mirror.state == MIRROR_SYNCING ||
        !guest->live)
        return true;
    return mirror_record_stale(guest, "its mirror has ended", SETTLE_WAIT_MS, error);
}

/* With the watch stopped: paused and every mirror ended in sync, with in-sync on record. A failure
 * costs the clean close, nothing else: every acknowledged write is on the replica all the same. */
static bool stop_finish(struct stopping *stopping)
{
    struct guest *guest = stopping->guest;
    g_autoptr(GError) error = NULL;
    if (guest->record->target && guest->replica_state == REPLICA_STALE)
        return stop_unclean(guest, "its mirror had ended");
    if (guest->record->target && guest->replica_state != REPLICA_IN_SYNC)
        return stop_unclean(guest, "its replica is not on record as in sync yet");
    return guest->record->target && (ask(stopping, stopping->drained_by, ask_finish, &error) ||
                                     stop_unclean(guest, error->message));
}

/* False: the guest is left to its watch, which lets it go on. */
static bool stop_mirror(struct stopping *stopping, bool *ret_finished, GError **error)
{
    struct guest *guest = stopping->guest;
    g_autoptr(GError) why = NULL;
    if (guest->record->target && guest->replica_state == REPLICA_STALE)
        return !stop_unclean(guest, "its replica is on record as stale");
    bool held = guest->record->target && !mirror_reachable(guest); /* a pause would hang (SAF-15) */
    gint64 patience = is_promised(guest) ? SILENCE_MS : 0;
    stopping->drained_by = MAX(stopping->over_by, now_ms(stopping) + patience);
    bool paused = !held && ask(stopping, stopping->drained_by, ask_pause, &why);
    if (!stop_without_mirror(stopping, error))
        return false;
    if (!paused)
        stop_unclean(guest, held ? "its replica does not answer" : why->message);
    *ret_finished = paused && stop_finish(stopping);
    return true;
}

/* Whether a request of the process has failed, as it says at its end. One that is gone tells
 * nothing more; what was seen of it while it lived counts. */
static enum soundness stop_writes(struct stopping *stopping)
{
    struct guest *guest = stopping->guest;
    gint64 until = MAX(stopping->over_by, now_ms(stopping) + LAST_WORD_MS);
    bool failed = guest->last_io.errors > 0;
    bool told = guest->live && !stopping->silent_ms && ask(stopping, until, ask_io, NULL);
    if (failed || guest->last_io.errors > 0)
        return SOUND_NO;
    return told || !guest->live ? SOUND_YES : SOUND_UNKNOWN;
}

/* What is held for lack of room is lost with the process: that takes a person's word. One that has
 * stopped so while it shut down may still do it when there is room. */
static bool stop_is_no_power_cut(struct stopping *stopping, GError **error)
{
    if (stopping->timeout_ms == 0 || stop_is_down(stopping))
        return true;
    if (!stopping->silent_ms)
        ask(stopping, stopping->over_by, ask_io, NULL);
    return stop_is_down(stopping) || room_check(stopping->guest, "it cannot shut down", error);
}

/* It was killed and is still there: it waits in the kernel, for a disk as a rule, and may write
 * yet. Whoever asked is told what ends it for sure. */
static bool stop_lives_on(GError **error)
{
    if (!error || !fettle_error_is(*error, TIMEOUT))
        return false;
    char *text = g_strdup_printf("%s; while it lives it may write, so nothing is started in its "
                                 "place. If it stays, cut the power of its node and say so: fettle "
                                 "node modify NODE --offline yes --statement \"…\"",
                                 (*error)->message);
    g_free((*error)->message);
    (*error)->message = text;
    return false;
}

/* Asks the guest, and gives it its time. False: it is not to be ended. */
static bool stop_orderly(struct stopping *stopping, bool *ret_down, GError **error)
{
    struct guest *guest = stopping->guest;
    guint settle_ms = SETTLE_WAIT_MS;
    if (stopping->timeout_ms > 0)
        cancel_begin(guest, stopping->op);
    stop_hear(stopping);
    if (stopping->timeout_ms > 0)
        settle_ms = (guint)CLAMP(stopping->shutdown_by - now_ms(stopping), 0, SETTLE_WAIT_MS);
    /* Of what does not answer no orderly end can be had, and none is asked for. */
    bool settled = !stopping->silent_ms && mirror_watch_settle(guest, settle_ms);
    stopping->over_by = MAX(stopping->over_by, now_ms(stopping) + END_MS); /* of what answers */
    bool may = stop_is_no_power_cut(stopping, error);
    *ret_down = may && settled && stop_powerdown(stopping);
    bool given_up = cancel_asked(guest);
    cancel_end(guest);
    return may && stop_goes_on(guest, stopping->op, *ret_down, given_up, error) &&
           (*ret_down || stop_is_no_power_cut(stopping, error));
}

/* Its mirror is ended in sync, if it is asked and answers. False: the guest is left alone. */
static bool stop_process(struct stopping *stopping, bool *ret_finished, GError **error)
{
    struct guest *guest = stopping->guest;
    *ret_finished = false;
    /* Its watch waits for the process as we did, and ends with it. */
    if (guest->live && stop_is_silent(stopping))
        return !stop_unclean(guest, "it does not answer");
    if (!mirror_watch_stop(guest))
        return node_killed(error);
    return !guest->live || stop_mirror(stopping, ret_finished, error);
}

static bool stop_live(struct guest *guest, const struct epoch_fence_op *op,
                      const struct guest_stop_args *args, bool *ret_forced, GError **error)
{
    if (!reconcile_adopt(guest, error) ||
        !outgoing_stop(guest, "the guest is being stopped", error))
        return false;
    struct stopping stopping = stopping_begin(guest, op, args->timeout_ms);
    bool down = false, finished = false;
    if (!stop_orderly(&stopping, &down, error) || !stop_process(&stopping, &finished, error))
        return false;
    enum soundness sound = stop_writes(&stopping);
    if (task_killed() || !guest_kill(guest, error))
        return task_killed() ? node_killed(error) : stop_lives_on(error);
    sound = stop_sound(guest, sound);
    if (task_killed())
        return node_killed(error);
    *ret_forced = !down && guest->record->run; /* one that only copied had nothing to shut down */
    /* A write that failed here, or is held for lack of room, may be on the replica all the same:
     * that is not equal. */
    bool equal = finished && sound == SOUND_YES && guest->last_io.stop == IO_STOP_NONE;
    return stop_record(guest, equal, sound, ends_alone(guest), *ret_forced ? "forced" : "shut down",
                       error);
}

/* After an error of stop_live() the guest may run on: somebody must watch its mirror again. */
static void stop_resume_watch(struct guest *guest)
{
    if (guest->live && guest->adopted && guest->record->target && !guest->watch && !task_killed())
        mirror_watch_start(guest, NULL);
}

static bool stop_locked(struct guest *guest, const struct epoch_fence_op *op,
                        const struct guest_stop_args *args, bool *ret_forced, GError **error)
{
    struct guest_record *record = guest->record;
    if (!reconcile_renew(guest, error))
        return false;
    struct stamp used = {record->history, record->generation};
    struct stamp wanted = {epoch_fence_op_stamp(op).history, args->generation};
    if (stamp_compare(wanted, used) > 0)
        return stop_never_started(guest, op, args->generation, error);
    if (args->generation < record->generation)
        return guest_check_generation(guest, args->generation, error);
    if (record->phase == PHASE_STOPPED) /* said before; record->clean tells how */
        return stop_is_used(guest) || guest_save(guest, error);
    if (record->phase == PHASE_MIGRATED) {
        g_autofree char *name = guest_name(guest);
        fettle_set_error(error, WRONG_STATE, "%s has been handed over to node %s by migration %s",
                         name, record->migration_node, record->migration);
        return false;
    }
    if (guest->live) {
        bool ok = stop_live(guest, op, args, ret_forced, error);
        if (!ok)
            stop_resume_watch(guest);
        return ok;
    }
    *ret_forced = true;
    bool failed = guest->last_io.errors > 0; /* as was seen while it lived */
    enum soundness sound = stop_sound(guest, failed ? SOUND_NO : SOUND_YES);
    if (task_killed())
        return node_killed(error);
    return stop_record(guest, false, sound, ends_alone(guest), "it was gone already", error);
}

json_t *lifecycle_stop(struct node_core *node, struct epoch_fence_op *op, const void *args,
                       GError **error)
{
    const struct guest_stop_args *stop = args;
    bool forced = false;
    struct guest *guest = guest_get(node, stop->instance, error);
    if (!guest || !guest_lock(guest, op, error))
        return NULL;
    bool ok = stop_locked(guest, op, stop, &forced, error);
    struct guest_stop_result result = {
        .clean = guest->record->clean, .sound = guest->record->sound, .forced = forced};
    guest_unlock(guest);
    return ok ? guest_stop_result_to_json(&result) : NULL;
}
