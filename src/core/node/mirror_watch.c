/*
 * The task beside each running guest that has a mirror; see mirror_watch.h.
 */
#include "core/node/mirror_watch.h"

#include "base/log.h"
#include "core/node/confirm.h"
#include "core/node/migration/outgoing.h"
#include "core/node/reconcile.h"

#define WATCH_INTERVAL_MS 200
#define PROBE_INTERVAL_MS 500
#define PROBE_TIMEOUT_MS 500
#define RETRY_MS 500
#define SETTLE_TIMEOUT_MS 2000 /* then the replica is looked at again, and it is asked again */

struct mirror_watch {
    struct guest *guest;
    guint64 generation;
    bool stopping; /* a procedure waits for the end */
    struct promise ended;
    char *lost;             /* why the replica counts as lost; NULL: it does not */
    gint64 probed_ms;       /* 0: not yet */
    gint64 failing_ms;      /* since when the probe fails; 0: it does not */
    gint64 told_in_sync_ms; /* last try to record in-sync that was in vain */
    bool settled;           /* the exports have everything on stable storage, and keep it so */
    bool complained;        /* they had not, which was told once */
};

static gint64 now_ms(const struct guest *guest)
{
    return guest->node->env->ops->boot_ms(guest->node->env);
}

static guint64 lost_limit_ms(const struct guest *guest)
{
    return epoch_fence_announced(guest->node->fence)->replica_lost_ms;
}

static bool watch_is_over(const struct mirror_watch *watch)
{
    const struct guest *guest = watch->guest;
    return watch->stopping || !guest->live || guest->record->generation != watch->generation ||
           !guest->record->target || task_killed();
}

static void watch_log(const struct guest *guest, const char *what, const char *why)
{
    g_autofree char *fields = g_strdup_printf(
        "INSTANCE=%s GENERATION=%" G_GUINT64_FORMAT " REPLICA=%s", guest->record->instance,
        guest->record->generation, guest->record->target ? guest->record->target->replica : "-");
    log_info(fields, "%s%s%s", what, why ? ": " : "", why ? why : "");
}

bool mirror_reachable(struct guest *guest)
{
    struct storage *storage = guest->node->storage;
    return storage->ops->probe(storage, guest->record->target, PROBE_TIMEOUT_MS);
}

/* A higher generation is on record: what runs here is over. Its images are judged by the next
 * question to the master (reconcile.c). */
static void watch_superseded(struct guest *guest)
{
    g_autoptr(GError) error = NULL;
    watch_log(guest, "guest superseded, ended", NULL);
    if (!guest_end_process(guest, &error) && !task_killed())
        log_error("", "%s", error->message);
    reconcile_kick(guest->node);
}

/* Lets the guest go on without its replica; repeated by the caller while it fails. */
static bool mirror_release(struct guest *guest, GError **error)
{
    struct hypervisor *hv = guest->node->hv;
    if (!hv->ops->mirror_release(hv, guest->record->instance, guest->record->generation, error))
        return false;
    watch_log(guest, "replica given up, guest goes on without it", NULL);
    guest_forget_mirror(guest);
    return true;
}

static enum replica_word stale_on_record(struct guest *guest, const char *why)
{
    if (guest->replica_state == REPLICA_STALE)
        return REPLICA_WORD_ACCEPTED;
    enum replica_word word = confirm_replica_state(guest, REPLICA_STALE, why);
    if (word == REPLICA_WORD_CHANGED)
        word = confirm_replica_state(guest, REPLICA_STALE, why);
    if (word == REPLICA_WORD_GONE) {
        guest->replica_state = REPLICA_STALE;
        return REPLICA_WORD_ACCEPTED;
    }
    return word == REPLICA_WORD_CHANGED ? REPLICA_WORD_NO_ANSWER : word;
}

/* That word has to outlive the loss of its master and a power cut here: it is in this node's own
 * file, or another candidate has it (SAF-09). What the file may say decides, whatever is under way
 * to it. False: why it does not. */
static bool stale_outlives(struct guest *guest, GError **error)
{
    g_autoptr(GError) why = NULL;
    guest->record->attached = false;
    if (!guest->note.perhaps || guest_save(guest, &why))
        return true;
    if (!task_killed() && confirm_replica_kept(guest))
        return true;
    if (task_killed())
        return node_killed(error);
    g_free(guest->held);
    guest->held = g_strdup(why->message);
    g_autofree char *name = guest_name(guest);
    fettle_set_error(error, TEMPORARY,
                     "%s cannot go on without its replica: only the master has on record that it "
                     "is stale, and that cannot be noted here (%s)",
                     name, why->message);
    return false;
}

/* One try to get on record, and kept, that nobody will use the replica: ACCEPTED, REFUSED,
 * NO_ANSWER, with an error if it is not kept. */
static enum replica_word stale_once(struct guest *guest, const char *why, GError **error)
{
    enum replica_word word = stale_on_record(guest, why);
    bool kept = word != REPLICA_WORD_ACCEPTED || stale_outlives(guest, error);
    return kept ? word : REPLICA_WORD_NO_ANSWER;
}

/* The same error comes with each try. */
static void complain(char **told, const GError *error)
{
    if (!error || task_killed() || !g_strcmp0(*told, error->message))
        return;
    g_free(*told);
    *told = g_strdup(error->message);
    log_warning("", "%s", error->message);
}

/* The replica is lost: stale on record, then release. Ends only with the mirror, the guest or the
 * watch: until then the guest's writes stay held. */
static void watch_give_up(struct mirror_watch *watch)
{
    struct guest *guest = watch->guest;
    watch_log(guest, "replica lost", watch->lost);
    outgoing_lost(guest, watch->lost);
    g_autofree char *told = NULL;
    while (!watch_is_over(watch)) {
        g_autoptr(GError) error = NULL;
        enum replica_word word = stale_once(guest, watch->lost, &error);
        if (watch_is_over(watch))
            return;
        if (word == REPLICA_WORD_REFUSED)
            watch_superseded(guest);
        if (word == REPLICA_WORD_ACCEPTED && mirror_release(guest, &error))
            return;
        complain(&told, error);
        if (!env_sleep(guest->node->env, RETRY_MS))
            return;
    }
}

/* A copy is written without waiting for the disk. Before anybody may promote it, all of it is on
 * stable storage there, and from then on every write before its answer (SAF-12, 13). */
static bool watch_settle(struct mirror_watch *watch)
{
    struct guest *guest = watch->guest;
    const struct guest_record *record = guest->record;
    struct node_core *node = guest->node;
    g_autofree char *exporter = g_strdup(record->target->node);
    struct replica_settle_args args = {.instance = record->instance,
                                       .replica = record->target->replica,
                                       .generation = record->generation,
                                       .target = record->target};
    g_autoptr(GError) error = NULL;
    record_autoptr(nothing) done =
        env_call_record(node->env, exporter, ROLE_NODED, "replica_settle", &args,
                        epoch_fence_stamp(node->fence), 0, SETTLE_TIMEOUT_MS, &error);
    if (!done && !watch->complained && !watch_is_over(watch)) {
        watch_log(guest, "replica not promised yet", error->message);
        watch->complained = true;
    }
    return done != NULL;
}

/* All disks are ready: the exports settle, then the master gets to know. */
static void watch_record_in_sync(struct mirror_watch *watch)
{
    struct guest *guest = watch->guest;
    gint64 now = now_ms(guest);
    if (watch->told_in_sync_ms && now - watch->told_in_sync_ms < RETRY_MS)
        return;
    enum replica_word word = REPLICA_WORD_NO_ANSWER;
    watch->settled = watch->settled || watch_settle(watch);
    if (watch->settled && !watch_is_over(watch))
        word = confirm_replica_state(guest, REPLICA_IN_SYNC, "every disk is ready");
    watch->told_in_sync_ms = now_ms(guest);
    if (watch_is_over(watch))
        return;
    if (word == REPLICA_WORD_ACCEPTED)
        watch_log(guest, "replica in sync", NULL);
    else if (word == REPLICA_WORD_REFUSED)
        watch_superseded(guest);
    else if (word == REPLICA_WORD_GONE)
        watch->lost = g_strdup("it is not this instance's replica any more");
    else if (word == REPLICA_WORD_CHANGED && guest->replica_state == REPLICA_STALE)
        watch->lost = g_strdup("it is on record as stale");
}

/* What the guest's own disks answer with errors may be whole on its replica alone. Before it is
 * given up there is time to see whether they have failed, and to fail over to it (SAF-25); its
 * writes wait as long. */
static bool own_disks_fail(struct guest *guest)
{
    if (!guest->query_late)
        guest_look_io(guest);
    return guest->replica_state == REPLICA_IN_SYNC && guest->io_failed_ms != 0 &&
           now_ms(guest) - guest->io_failed_ms < LIMIT_OWN_DISK_MS;
}

static void watch_probe(struct mirror_watch *watch)
{
    struct guest *guest = watch->guest;
    gint64 began = now_ms(guest);
    if (watch->probed_ms && began - watch->probed_ms < PROBE_INTERVAL_MS)
        return;
    bool reachable = mirror_reachable(guest);
    watch->probed_ms = now_ms(guest);
    if (reachable)
        watch->failing_ms = 0;
    else if (!watch->failing_ms)
        watch->failing_ms = began;
    bool over = watch->failing_ms &&
                (guint64)(watch->probed_ms - watch->failing_ms) >= lost_limit_ms(guest);
    if (over && !watch->lost && !own_disks_fail(guest) && !watch_is_over(watch))
        watch->lost = g_strdup_printf("no answer from its export for %" G_GINT64_FORMAT " ms",
                                      watch->probed_ms - watch->failing_ms);
}

static void watch_look(struct mirror_watch *watch)
{
    struct guest *guest = watch->guest;
    struct hypervisor *hv = guest->node->hv;
    bool answered = guest_query(guest);
    if (watch_is_over(watch))
        return;
    /* One that stops, be it by itself, waits for the replica, and its monitor with it (SAF-27). */
    if (!answered) {
        watch_probe(watch);
        return;
    }
    enum mirror_state state = guest->last_mirror.state;
    if (state == MIRROR_LOST || state == MIRROR_NONE) {
        watch->lost = g_strdup("its mirror has ended");
        return;
    }
    if (state == MIRROR_READY && guest->replica_state == REPLICA_SYNCING)
        watch_record_in_sync(watch);
    if (!watch_is_over(watch) && !watch->lost)
        watch_probe(watch);
    if (!watch_is_over(watch) && !watch->lost && !watch->failing_ms && state == MIRROR_READY &&
        guest->replica_state == REPLICA_IN_SYNC)
        hv->ops->mirror_remember(hv, guest->record->instance, guest->record->generation);
}

static void watch_run(void *data)
{
    struct mirror_watch *watch = data;
    struct guest *guest = watch->guest;
    struct node_core *node = guest->node;
    while (!watch_is_over(watch)) {
        if (!watch->lost)
            watch_look(watch);
        if (watch->lost && !watch_is_over(watch))
            watch_give_up(watch);
        if (!watch_is_over(watch) && !env_sleep(node->env, WATCH_INTERVAL_MS))
            break;
    }
    guest->watch = NULL;
    if (watch->stopping) {
        promise_complete(&watch->ended); /* its stopper frees it */
    } else {
        g_free(watch->lost);
        g_free(watch);
    }
    node_release(node);
}

void mirror_watch_start(struct guest *guest, const char *lost)
{
    g_assert(!guest->watch && guest->record->target);
    struct mirror_watch *watch = g_new0(struct mirror_watch, 1);
    watch->guest = guest;
    watch->generation = guest->record->generation;
    watch->lost = g_strdup(lost);
    g_clear_pointer(&guest->held, g_free);
    guest->watch = watch;
    node_hold(guest->node);
    task_spawn(guest->node->env->tasks, watch_run, watch);
}

bool mirror_watch_stop(struct guest *guest)
{
    struct mirror_watch *watch = guest->watch;
    if (!watch)
        return !task_killed();
    g_assert(!watch->stopping); /* procedures are one at a time */
    watch->stopping = true;
    if (!promise_wait(&watch->ended) && !watch->ended.done) {
        watch->stopping = false; /* the watch unwinds too, and frees itself */
        return false;
    }
    g_free(watch->lost);
    g_free(watch);
    return !task_killed();
}

bool mirror_watch_settle(struct guest *guest, guint wait_ms)
{
    gint64 deadline = now_ms(guest) + wait_ms;
    while (guest->watch && guest->live) {
        /* Seen right now, not at the watch's last round. */
        bool reachable = !guest->watch->lost && !guest->query_late && mirror_reachable(guest);
        if (reachable && guest->watch && !guest->watch->lost)
            return true;
        if (now_ms(guest) >= deadline || !env_sleep(guest->node->env, WATCH_INTERVAL_MS / 2))
            return false;
    }
    return true;
}

bool mirror_record_stale(struct guest *guest, const char *why, guint wait_ms, GError **error)
{
    gint64 deadline = now_ms(guest) + wait_ms;
    for (;;) {
        g_autoptr(GError) unkept = NULL;
        enum replica_word word = stale_once(guest, why, &unkept);
        if (word == REPLICA_WORD_ACCEPTED)
            return true;
        g_autofree char *name = guest_name(guest);
        if (word == REPLICA_WORD_REFUSED) {
            fettle_set_error(error, REFUSED, "generation %" G_GUINT64_FORMAT " of %s is superseded",
                             guest->record->generation, name);
            return false;
        }
        if (now_ms(guest) >= deadline && unkept) {
            g_propagate_error(error, g_steal_pointer(&unkept));
            return false;
        }
        if (now_ms(guest) >= deadline) {
            fettle_set_error(error, TEMPORARY,
                             "the replica of %s is lost (%s) and the master could not be asked to "
                             "record that; try again",
                             name, why);
            return false;
        }
        if (!env_sleep(guest->node->env, RETRY_MS))
            return node_killed(error);
    }
}

bool mirror_give_up(struct guest *guest, const char *why, guint wait_ms, GError **error)
{
    return mirror_record_stale(guest, why, wait_ms, error) && mirror_release(guest, error);
}
