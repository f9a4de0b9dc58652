/*
 * Hosts without QEMU: what guests write, and the mirrors that copy it; see fake_hv.h.
 */
#include "helper/fake_hv_private.h"

#define WRITES_IN_FLIGHT 2

bool fake_guest_mirrors(const struct fake_guest *guest)
{
    return guest->mirror == MIRROR_SYNCING || guest->mirror == MIRROR_READY;
}

struct fake_export *fake_guest_replica(const struct fake_guest *guest)
{
    return fake_export_reach(guest->host, guest->target, false);
}

bool fake_host_held(const struct fake_host *host, const char *instance)
{
    const struct fake_guest *guest = fake_guest_find(host, instance);
    return guest && fake_guest_under_way(guest) > 0 && fake_guest_mirrors(guest) &&
           !fake_guest_replica(guest);
}

guint64 fake_host_io_errors(const struct fake_host *host, const char *instance)
{
    const struct fake_guest *guest = fake_guest_find(host, instance);
    return guest ? guest->io.errors : 0;
}

/* Its own disk fails: the guest is told so, nothing is acknowledged, and the replica is sent
 * nothing more of it. What it has of it already may be found there or not. */
static bool write_fails(struct fake_guest *guest, const struct fake_write *write)
{
    if (write->local || write->stopped || !fake_disks_fail(guest->host, guest->image))
        return false;
    guest->io.errors++;
    guest->io.disk = write->block / FAKE_BLOCKS;
    return true;
}

bool fake_guest_coin(const struct fake_guest *guest)
{
    return g_rand_boolean(guest->host->hosts->random);
}

/* --- what was written since the replica had everything --- */

static char *key_of(const struct export_target *target)
{
    return g_strdup_printf("%s %s", target->replica, target->images);
}

static bool remembers(const struct fake_guest *guest, const struct export_target *target)
{
    g_autofree char *key = key_of(target);
    return guest->dirty && guest->since && strcmp(guest->since, key) == 0;
}

static void forget(struct fake_guest *guest)
{
    g_clear_pointer(&guest->dirty, g_free);
    g_clear_pointer(&guest->since, g_free);
    guest->current = false;
}

/* A guest without it, or whose replica may lose what it has confirmed, notes what it writes. */
static void note_write(struct fake_guest *guest, guint block)
{
    if (guest->dirty && (!guest->current || !fake_guest_mirrors(guest)))
        guest->dirty[block] = true;
}

void fake_mirror_remember(struct fake_guest *guest)
{
    if (guest->mirror != MIRROR_READY || guest->current || !*guest->target->images)
        return;
    forget(guest);
    guest->dirty = g_new0(bool, guest->image->count + 1);
    guest->since = key_of(guest->target);
    guest->current = true;
}

/* Writes that are under way may have missed the replica, or got there only. */
static void note_missing(struct fake_guest *guest)
{
    guest->current = false;
    for (guint i = 0; i < guest->writes->len; i++)
        note_write(guest, g_array_index(guest->writes, struct fake_write, i).block);
}

void fake_guest_unmirror(struct fake_guest *guest, enum mirror_state state)
{
    if (fake_guest_mirrors(guest))
        note_missing(guest);
    guest->mirror = state;
}

guint fake_host_spared(const struct fake_host *host, const char *instance)
{
    const struct fake_guest *guest = fake_guest_find(host, instance);
    return guest ? guest->spared : 0;
}

static bool block_is_busy(const struct fake_guest *guest, guint block)
{
    for (guint i = 0; i < guest->writes->len; i++) {
        const struct fake_write *write = &g_array_index(guest->writes, struct fake_write, i);
        if (write->block == block && !write->stopped)
            return true;
    }
    return false;
}

/* What counts as equal from now on must be so, however little of it was copied. */
static void become_ready(struct fake_guest *guest, const struct fake_export *export)
{
    const guint64 *replica =
        fake_image_find(export->host, export->instance, export->replica)->blocks;
    for (guint i = 0; i < guest->image->count; i++)
        if (!block_is_busy(guest, i) && replica[i] != guest->image->blocks[i])
            fake_truth_problem(guest->host->hosts,
                               "block %u of instance %s was not copied to replica %s", i,
                               guest->instance, guest->target->replica);
    guest->mirror = MIRROR_READY;
}

static void guest_copy(struct fake_guest *guest)
{
    struct fake_export *replica =
        guest->mirror == MIRROR_SYNCING ? fake_guest_replica(guest) : NULL;
    guint left = 0;
    if (!replica)
        return;
    if (fake_disks_fail(guest->host, guest->image)) { /* what is to be copied cannot be read */
        fake_guest_unmirror(guest, MIRROR_LOST);
        return;
    }
    for (guint i = 0; i < guest->image->count; i++) {
        if (!guest->copied[i] && !block_is_busy(guest, i) && fake_guest_coin(guest)) {
            guest->copied[i] = fake_export_write(replica, i, guest->image->blocks[i]);
        }
        left += !guest->copied[i];
    }
    if (left == 0)
        become_ready(guest, replica);
}

static void guest_advance_writes(struct fake_guest *guest)
{
    bool mirrors = fake_guest_mirrors(guest);
    struct fake_export *replica = mirrors ? fake_guest_replica(guest) : NULL;
    struct fake_export *unheard =
        mirrors && !replica ? fake_export_reach(guest->host, guest->target, true) : NULL;
    for (guint i = guest->writes->len; i > 0; i--) {
        struct fake_write *write = &g_array_index(guest->writes, struct fake_write, i - 1);
        if (!write->local && !write->remote && fake_guest_lacks_room(guest) && !write->stopped)
            fake_guest_finds_no_room(guest, write);
        if (write->stopped)
            continue;
        if (write_fails(guest, write)) {
            note_write(guest, write->block);
            g_array_remove_index(guest->writes, i - 1);
            continue;
        }
        if (!write->local && fake_guest_coin(guest)) {
            fake_image_write(guest->host, guest->image, write->block, write->value, true);
            write->local = true;
        }
        if (!write->remote && replica && fake_guest_coin(guest)) {
            write->remote = fake_export_write(replica, write->block, write->value);
            guest->copied[write->block] |= write->remote;
        }
        if (unheard && !write->remote && fake_guest_coin(guest))
            fake_export_write(unheard, write->block, write->value); /* its answer is lost */
        note_write(guest, write->block);
        if (write->local && (write->remote || !fake_guest_mirrors(guest))) {
            fake_truth_acknowledge(guest, write);
            g_array_remove_index(guest->writes, i - 1);
        }
    }
    guest->stuck = guest->stuck && fake_guest_mirrors(guest) && !replica;
    if (fake_guest_under_way(guest) == 0 && !guest->stuck)
        guest->frozen = false;
    else if (guest->io.stop != IO_STOP_NONE)
        guest->frozen = fake_host_held(guest->host, guest->instance);
}

static void guest_issue(struct fake_guest *guest)
{
    struct fake_hosts *hosts = guest->host->hosts;
    if (guest->state != GUEST_RUNNING || guest->host->quiet || guest->powerdown ||
        guest->drains > 0 || guest->writes->len >= WRITES_IN_FLIGHT)
        return;
    guint block = (guint)g_rand_int_range(hosts->random, 0, (gint32)guest->image->count);
    if (block_is_busy(guest, block))
        return;
    struct fake_write write = {.block = block, .value = ++hosts->last_value};
    g_array_append_val(guest->writes, write);
    fake_truth_issue(guest, &write);
    fake_guest_wake(guest);
}

/* Nothing of it is under way: it may look again later. */
static bool is_idle(const struct fake_guest *guest)
{
    return fake_guest_under_way(guest) == 0 && guest->mirror != MIRROR_SYNCING &&
           guest->drains == 0 && !guest->frozen && !guest->stuck && !guest->to &&
           guest->state != GUEST_INCOMING && !guest->powerdown;
}

/* For as long as its writes are held it need not look so often. */
static bool waits_for_replica(const struct fake_guest *guest)
{
    return guest->host->hosts->idle_ms > 0 && guest->mirror == MIRROR_READY && !guest->to &&
           fake_guest_under_way(guest) > 0 && !fake_guest_replica(guest);
}

static void tick_cb(void *data)
{
    fake_guest_tick(data);
}

static void tick_after(struct fake_guest *guest, guint ms)
{
    const struct env *env = guest->host->env;
    guest->sleeps = ms > FAKE_TICK_MS;
    guest->tick = env->ops->timer(env, ms, tick_cb, guest);
}

void fake_guest_wake(struct fake_guest *guest)
{
    const struct env *env = guest->host->env;
    if (!guest->sleeps)
        return;
    env->ops->timer_cancel(env, guest->tick);
    tick_after(guest, FAKE_TICK_MS);
}

void fake_hosts_set_idle_ms(struct fake_hosts *hosts, guint ms)
{
    hosts->idle_ms = ms;
    for (guint i = 0; ms == 0 && i < hosts->all->len; i++) {
        const struct fake_host *host = hosts->all->pdata[i];
        for (guint j = 0; j < host->guests->len; j++)
            fake_guest_wake(host->guests->pdata[j]);
    }
}

void fake_guest_tick(struct fake_guest *guest)
{
    struct fake_hosts *hosts = guest->host->hosts;
    bool idle = is_idle(guest), slept = guest->sleeps;
    guint most = idle ? hosts->idle_ms : waits_for_replica(guest) ? hosts->idle_ms / 20 : 0;
    tick_after(guest, MAX(most, FAKE_TICK_MS));
    if (fake_host_hangs(guest->host, guest->instance))
        return;
    if (guest->image) {
        guest_copy(guest);
        guest_advance_writes(guest);
        if (slept || hosts->idle_ms == 0)
            guest_issue(guest);
    }
    fake_migration_tick(guest);
}

bool fake_mirror_begin(struct fake_guest *guest, const struct export_target *target,
                       enum mirror_copy copy, GError **error)
{
    if (fake_guest_mirrors(guest)) {
        fettle_set_error(error, HYPERVISOR, "Need a root block node");
        return false;
    }
    if (!guest->image || !fake_export_reach(guest->host, target, false)) {
        fettle_set_error(error, HYPERVISOR, "%s: connection refused", target->address);
        return false;
    }
    fake_guest_wake(guest);
    export_target_free(guest->target);
    guest->target = export_target_copy(target);
    g_free(guest->copied);
    guest->copied = g_new0(bool, guest->image->count);
    bool known = copy == COPY_WRITTEN_SINCE && remembers(guest, target);
    guest->spared = 0;
    for (guint i = 0; known && i < guest->image->count; i++)
        guest->spared += guest->copied[i] = !guest->dirty[i];
    if (!known)
        forget(guest);
    if (copy == COPY_WRITTEN_SINCE && guest->host->guest_events.resyncing != NULL)
        guest->host->guest_events.resyncing(guest->instance, guest->generation,
                                            known ? NULL : "it is not known what was written",
                                            guest->host->guest_events.data);
    guest->current = false;
    guest->mirror = MIRROR_SYNCING;
    if (copy == COPY_NOTHING)
        become_ready(guest, fake_guest_replica(guest));
    return true;
}

void fake_host_mirror_vanish(struct fake_host *host, const char *instance)
{
    struct fake_guest *guest = fake_guest_find(host, instance);
    if (guest && fake_guest_mirrors(guest))
        fake_guest_unmirror(guest, MIRROR_LOST);
}
