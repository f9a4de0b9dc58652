/*
 * See room.h.
 */
#include "core/node/room.h"

#include "base/log.h"
#include "core/node/volume/volumes.h"

#define LOOK_MS 5000    /* between two looks at a guest that is thought to run */
#define WAIT_MS 1000    /* and while one stands still */
#define SETTLE_MS 500   /* one that stops again within that has not got on */
#define LATE_MS 10000   /* before one whose monitor was silent is asked again */
#define STEADY_MS 10000 /* then what was tried before is forgotten */

static gint64 now_ms(const struct guest *guest)
{
    return guest->node->env->ops->boot_ms(guest->node->env);
}

static void say(const struct guest *guest, bool bad, const char *what)
{
    g_autofree char *fields = g_strdup_printf("INSTANCE=%s GENERATION=%" G_GUINT64_FORMAT,
                                              guest->record->instance, guest->record->generation);
    if (bad)
        log_error(fields, "%s", what);
    else
        log_info(fields, "%s", what);
}

/* Where its images are. `unknown`: what counts if that is not known. */
static bool has_room(struct guest *guest, bool unknown)
{
    struct storage *storage = guest->node->storage;
    const struct instance *spec = guest->record->spec;
    struct storage_space space = {0};
    if (spec && spec->disk_template == TEMPLATE_SHAREDFILE)
        storage->ops->shared(storage, &space);
    else if (!storage->ops->space(storage, &space, NULL))
        return unknown;
    return space.total_mib > 0 ? space.free_mib >= LIMIT_ROOM_LEAST_MIB : unknown;
}

/* A copy in sync on record has every acknowledged write only while the guest mirrors to it. */
static bool mirror_stands(const struct guest *guest)
{
    enum mirror_state mirror = guest->last_mirror.state;
    if (!guest->record->target || guest->replica_state == REPLICA_STALE)
        return true;
    return guest->watch && (mirror == MIRROR_READY || mirror == MIRROR_SYNCING);
}

/* Of a generation that the master has confirmed, that was not stopped, has not left and does not
 * leave. */
static bool may_go_on(const struct guest *guest)
{
    const struct guest_record *record = guest->record;
    guint64 history = epoch_fence_stamp(guest->node->fence).history;
    return guest->live && guest->adopted && record->history == history &&
           record->phase == PHASE_STARTED && record->run && !guest->shutdown && !guest->outgoing &&
           guest_io_stop(guest) == IO_STOP_NO_SPACE && mirror_stands(guest);
}

/* With the guest locked: everything is looked at once more. */
static bool go_on_locked(struct guest *guest)
{
    struct hypervisor *hv = guest->node->hv;
    g_autoptr(GError) error = NULL;
    if (!guest_query(guest) || !guest->live || !guest_look_io(guest) || !may_go_on(guest))
        return false;
    guest->went_on_ms = now_ms(guest);
    if (hv->ops->go_on(hv, guest->record->instance, guest->record->generation, &error))
        return true;
    if (!task_killed())
        say(guest, true, error->message);
    return false;
}

/* What stops again at once, with room there, is not helped by room. */
static void settle(struct guest *guest)
{
    if (!env_sleep(guest->node->env, SETTLE_MS) || !guest->live || !guest_look_io(guest))
        return;
    if (guest->last_io.stop == IO_STOP_NONE) {
        say(guest, false, "there is room for its disks again, guest goes on");
    } else if (has_room(guest, false) && ++guest->go_on_tries == GO_ON_TRIES) {
        say(guest, true,
            "there is room for its disks, but guest stops at once each time it goes on: it stays "
            "as it is, its disk counts as failed");
    }
}

/* With a guest that a procedure is busy with it is tried again later. */
static void help(struct guest *guest)
{
    if (!has_room(guest, true) || guest->procedure.locked || guest->outgoing ||
        !guest_lock(guest, NULL, NULL))
        return;
    bool tried = go_on_locked(guest);
    guest_unlock(guest);
    if (tried)
        settle(guest);
}

static void look(struct guest *guest)
{
    enum io_stop before = guest->last_io.stop;
    if (!guest_query(guest) || !guest->live || !guest_look_io(guest))
        return;
    if (guest->last_io.stop == IO_STOP_NONE) {
        if (guest->go_on_tries > 0 && now_ms(guest) - guest->went_on_ms >= STEADY_MS)
            guest->go_on_tries = 0;
        return;
    }
    if (before == IO_STOP_NONE)
        say(guest, true, "there is no room for its disks, guest stands still");
    if (guest_io_stop(guest) == IO_STOP_NO_SPACE)
        help(guest);
}

static void look_run(void *data)
{
    struct guest *guest = data;
    struct node_core *node = guest->node;
    look(guest);
    volumes_finish(guest);
    guest->looked_at = false;
    node_release(node);
}

static bool may_look(const struct guest *guest)
{
    bool silent = guest->query_late && now_ms(guest) - guest->query_late_ms < LATE_MS;
    return guest->live && guest->record->phase == PHASE_STARTED && !silent && !guest->looked_at;
}

/* Each in a task of its own: one whose monitor is silent holds up nobody else. Returns whether one
 * stands still and may be helped. */
static bool room_round(struct node_core *node)
{
    GHashTableIter iter;
    void *value;
    bool waits = false;
    g_hash_table_iter_init(&iter, node->guests);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        struct guest *guest = value;
        waits = waits || guest_io_stop(guest) == IO_STOP_NO_SPACE;
        if (!may_look(guest))
            continue;
        guest->looked_at = true;
        node_hold(node);
        task_spawn(node->env->tasks, look_run, guest);
    }
    return waits;
}

static void room_run(void *data)
{
    struct node_core *node = data;
    while (!node->ended && env_sleep(node->env, room_round(node) ? WAIT_MS : LOOK_MS))
        ;
    node_release(node);
}

void room_start(struct node_core *node)
{
    node_hold(node);
    task_spawn(node->env->tasks, room_run, node);
}

bool room_check(struct guest *guest, const char *what, GError **error)
{
    enum io_stop stop = guest_io_stop(guest);
    if (stop == IO_STOP_NONE)
        return true;
    g_autofree char *name = guest_name(guest);
    fettle_set_error(error, WRONG_STATE,
                     stop == IO_STOP_FAILED
                         ? "%s stands still, because its disk on this node fails though it has "
                           "room: %s; with --timeout 0 it is ended as by a power cut"
                         : "%s stands still, because there is no room for its disks on this node: "
                           "%s; make room and it goes on by itself, or end it as by a power cut "
                           "with --timeout 0",
                     name, what);
    return false;
}
