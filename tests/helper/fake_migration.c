/*
 * Hosts without QEMU: guests that move to another host while they run; see fake_hv.h.
 */
#include "helper/fake_hv_private.h"

#define MEMORY_TICKS 6
#define MIB_PER_TICK 16
#define HANDING_TICKS 2

/* --- the incoming side --- */

/* The image that a file of a guest_spec names: "/fake/INSTANCE.REPLICA.disk0.raw". */
static struct fake_image *image_of_file(const struct fake_host *host, const char *instance,
                                        const char *file)
{
    g_autofree char *prefix = g_strdup_printf("/fake/%s.", instance);
    g_assert_true(g_str_has_prefix(file, prefix));
    const char *rest = file + strlen(prefix);
    g_autofree char *replica = g_strndup(rest, (gsize)(strstr(rest, ".disk") - rest));
    return fake_image_find(host, instance, *replica == '.' ? "" : replica);
}

static struct migration_target *target_new(struct fake_guest *guest,
                                           const struct incoming_spec *incoming)
{
    struct fake_host *host = guest->host;
    struct migration_target *target = migration_target_new();
    g_free(target->migration);
    g_free(target->address);
    g_free(target->psk);
    target->migration = g_strdup(incoming->migration);
    target->address = g_strdup(incoming->address);
    target->port = ++host->hosts->last_port;
    target->psk = g_strdup_printf("%032x", ++host->hosts->last_port);
    if (!incoming->serve_disks || !guest->image)
        return target;
    struct fake_export *export = g_new0(struct fake_export, 1);
    export->host = host;
    export->instance = g_strdup(guest->instance);
    export->replica = g_strdup(guest->image->replica);
    export->generation = guest->generation;
    export->alive = true;
    export->server = guest;
    export->target = fake_target_new(host, 1, incoming->migration, guest->generation,
                                     guest->image->count / FAKE_BLOCKS, incoming->address);
    g_ptr_array_add(host->exports, export);
    target->disks = export_target_copy(export->target);
    return target;
}

static void end_own_exports(const struct fake_guest *guest)
{
    GPtrArray *exports = guest->host->exports;
    for (guint i = exports->len; i > 0; i--)
        if (((struct fake_export *)exports->pdata[i - 1])->server == guest)
            g_ptr_array_remove_index(exports, i - 1);
}

static bool incoming_prepare_now(struct fake_host *host, const struct guest_spec *spec,
                                 const struct incoming_spec *incoming, GError **error)
{
    const struct instance *instance = spec->instance;
    const struct fake_guest *other = fake_guest_find(host, instance->uuid);
    if (other && other->waits && other->generation == instance->generation &&
        strcmp(other->migration, incoming->migration) == 0)
        return true;
    if (other) {
        fake_truth_problem(host->hosts, "a second process of %s on %s", instance->name, host->node);
        fettle_set_error(error, HYPERVISOR, "%s: a process lives already", instance->name);
        return false;
    }
    struct fake_image *image = NULL;
    if (instance->disks->len > 0) {
        image = image_of_file(host, instance->uuid, spec->images->pdata[0]);
        if (!image) {
            fettle_set_error(error, HYPERVISOR, "%s: no image", instance->name);
            return false;
        }
    }
    struct fake_guest *guest = fake_guest_add(host, instance, image);
    fake_guest_give_volumes(guest, spec);
    guest->state = GUEST_INCOMING;
    guest->migration = g_strdup(incoming->migration);
    guest->waits = target_new(guest, incoming);
    return true;
}

static bool op_incoming_prepare(struct hypervisor *hv, const struct guest_spec *spec,
                                const struct incoming_spec *incoming,
                                struct migration_target **ret_target, GError **error)
{
    struct fake_host *host = fake_host_of_hv(hv);
    const char *uuid = spec->instance->uuid;
    bool late;
    if (!fake_op_begin(host, "incoming_prepare", uuid, &late, error))
        return false;
    bool ok = incoming_prepare_now(host, spec, incoming, error);
    if (!fake_op_end(host, "incoming_prepare", late, ok, error))
        return false;
    const struct fake_guest *guest = fake_guest_find(host, uuid);
    if (!guest || !guest->waits) {
        fettle_set_error(error, HYPERVISOR, "%s: the process has ended", uuid);
        return false;
    }
    *ret_target = migration_target_copy(guest->waits);
    return true;
}

static bool incoming_check(const struct fake_guest *guest, const char *migration, GError **error)
{
    if (!guest->waits || strcmp(guest->migration, migration) != 0) {
        fettle_set_error(error, WRONG_STATE, "%s does not wait for migration %s", guest->instance,
                         migration);
        return false;
    }
    if (guest->broken) {
        fettle_set_error(error, HYPERVISOR, "the migration to %s failed", guest->instance);
        return false;
    }
    if (!guest->whole) {
        fettle_set_error(error, TEMPORARY, "%s has not everything yet", guest->instance);
        return false;
    }
    return true;
}

static bool op_incoming_finish(struct hypervisor *hv, const char *instance, guint64 generation,
                               const char *migration, GError **error)
{
    struct fake_host *host = fake_host_of_hv(hv);
    bool late;
    if (!fake_op_begin(host, "incoming_finish", instance, &late, error))
        return false;
    struct fake_guest *guest = fake_guest_for(host, instance, generation, error);
    bool ok = guest && incoming_check(guest, migration, error);
    if (ok)
        end_own_exports(guest);
    return fake_op_end(host, "incoming_finish", late, ok, error);
}

bool fake_migration_may_run(struct fake_guest *guest, GError **error)
{
    if (!guest->waits || guest->state == GUEST_RUNNING || guest->whole)
        return true;
    fake_truth_problem(guest->host->hosts, "%s was told to run on %s before everything was there",
                       guest->instance, guest->host->node);
    fettle_set_error(error, HYPERVISOR, "%s waits for a migration", guest->instance);
    return false;
}

/* --- the outgoing side --- */

/* The process that waits for this guest, wherever it is; `*ret_cut`: it may be there, unreachable.
 */
static struct fake_guest *peer_of(const struct fake_guest *guest, bool *ret_cut)
{
    const struct fake_hosts *hosts = guest->host->hosts;
    *ret_cut = false;
    for (guint i = 0; i < hosts->all->len; i++) {
        const struct fake_host *host = hosts->all->pdata[i];
        struct fake_guest *peer = fake_guest_find(host, guest->instance);
        if (host == guest->host)
            continue;
        if (!*ret_cut &&
            (!fake_path_passes(guest->host, host) || !fake_path_passes(host, guest->host)))
            *ret_cut = true;
        if (peer && peer->waits && peer->waits->port == guest->to->port &&
            strcmp(peer->waits->psk, guest->to->psk) == 0)
            return peer;
    }
    return NULL;
}

/* It had stopped for the switch only. */
static void resume(struct fake_guest *guest)
{
    if (guest->resumes && guest->state != GUEST_RUNNING) {
        fake_truth_resume(guest);
        guest->state = GUEST_RUNNING;
    }
    guest->resumes = false;
}

static void end_sending(struct fake_guest *guest, enum migration_step step, const char *why)
{
    guest->step = step;
    g_free(guest->why);
    guest->why = g_strdup(why);
    guest->handing = 0;
    if (guest->to && guest->to->disks && step != STEP_DONE)
        fake_guest_unmirror(guest, MIRROR_NONE);
    g_clear_pointer(&guest->to, migration_target_free);
    if (step != STEP_DONE) {
        guest->finished = false;
        resume(guest);
    }
}

static void break_incoming(struct fake_guest *peer)
{
    if (peer && !peer->whole)
        peer->broken = true;
}

/* Everything but the last has been sent: it stops, and what is in flight ends first. */
static void tick_stopping(struct fake_guest *guest)
{
    if (guest->state == GUEST_RUNNING) {
        guest->resumes = true;
        guest->state = GUEST_PAUSED;
        guest->stopped_ms = guest->host->env->ops->boot_ms(guest->host->env);
    }
    guest->frozen = fake_host_held(guest->host, guest->instance);
    if (fake_guest_under_way(guest) == 0)
        guest->step = STEP_STOPPED;
}

static void tick_copying(struct fake_guest *guest)
{
    bool cut = false;
    struct fake_guest *peer = peer_of(guest, &cut);
    if (guest->memory_left == 0) {
        tick_stopping(guest);
    } else if (cut) {
        return; /* the connection stalls */
    } else if (!peer || peer->broken) {
        end_sending(guest, STEP_FAILED, "connection reset by peer");
    } else if (guest->to->disks && guest->mirror == MIRROR_LOST) {
        break_incoming(peer);
        end_sending(guest, STEP_FAILED, "the copy of a disk has ended");
    } else if (!guest->to->disks || guest->mirror == MIRROR_READY) {
        guest->memory_left--;
    }
}

static bool is_exported(const struct fake_guest *guest)
{
    for (guint i = 0; i < guest->host->exports->len; i++) {
        const struct fake_export *export = guest->host->exports->pdata[i];
        if (export->alive && !export->server && guest->image &&
            strcmp(export->instance, guest->instance) == 0 &&
            strcmp(export->replica, guest->image->replica) == 0)
            return true;
    }
    return false;
}

/* What is held for lack of room goes with it, and is repeated when it runs there. */
static void become_whole(struct fake_guest *peer, const struct fake_guest *guest)
{
    peer->whole = true;
    peer->state = GUEST_PAUSED;
    g_array_append_vals(peer->writes, guest->writes->data, guest->writes->len);
}

/* The link is cut in the middle of it: what the one side knows the other may not. */
static void tick_handing_cut(struct fake_guest *guest, struct fake_guest *peer)
{
    if (!fake_guest_coin(guest) || !fake_guest_coin(guest))
        return;
    if (peer && !is_exported(peer) && fake_guest_coin(guest))
        become_whole(peer, guest);
    else
        break_incoming(peer);
    end_sending(guest, STEP_FAILED, "the connection timed out");
}

static void tick_handing(struct fake_guest *guest)
{
    bool cut = false;
    struct fake_guest *peer = peer_of(guest, &cut);
    if (cut) {
        tick_handing_cut(guest, peer);
    } else if (!peer || peer->broken || is_exported(peer)) {
        break_incoming(peer); /* of an image that is exported it does not get the lock */
        end_sending(guest, STEP_FAILED, "connection reset by peer");
    } else if (--guest->handing == 0) {
        become_whole(peer, guest);
        guest->state = GUEST_MIGRATED;
        end_sending(guest, STEP_DONE, NULL);
    }
}

void fake_migration_tick(struct fake_guest *guest)
{
    if (!guest->to)
        return;
    if (guest->step == STEP_COPYING)
        tick_copying(guest);
    else if (guest->handing > 0)
        tick_handing(guest);
}

static bool migrate_start_now(struct fake_guest *guest, const struct migration_target *target,
                              const struct migration_limits *limits, GError **error)
{
    if (guest->to || guest->step == STEP_DONE) {
        fettle_set_error(error, HYPERVISOR, "There's a migration process in progress");
        return false;
    }
    if (guest->state == GUEST_INCOMING) {
        fettle_set_error(error, HYPERVISOR, "Guest is waiting for an incoming migration");
        return false;
    }
    if (target->disks && !fake_mirror_begin(guest, target->disks, COPY_EVERYTHING, error))
        return false;
    fake_guest_wake(guest);
    g_free(guest->migration);
    guest->migration = g_strdup(target->migration);
    guest->to = migration_target_copy(target);
    guest->limits = *limits;
    guest->step = STEP_COPYING;
    guest->memory_left = MEMORY_TICKS + guest->host->slow_ms / FAKE_TICK_MS;
    guest->resumes = false;
    g_clear_pointer(&guest->why, g_free);
    if (!limits->live && guest->state == GUEST_RUNNING) {
        guest->state = GUEST_PAUSED;
        guest->resumes = true;
    }
    return true;
}

static bool op_migrate_start(struct hypervisor *hv, const char *instance, guint64 generation,
                             const struct migration_target *target,
                             const struct migration_limits *limits, GError **error)
{
    struct fake_host *host = fake_host_of_hv(hv);
    bool late;
    if (!fake_op_begin(host, "migrate_start", instance, &late, error))
        return false;
    struct fake_guest *guest = fake_guest_for(host, instance, generation, error);
    bool ok = guest && migrate_start_now(guest, target, limits, error);
    return fake_op_end(host, "migrate_start", late, ok, error);
}

static bool op_migrate_query(struct hypervisor *hv, const char *instance, guint64 generation,
                             struct migration_info *ret_info, GError **error)
{
    struct fake_host *host = fake_host_of_hv(hv);
    if (!fake_op_begin(host, "migrate_query", instance, NULL, error))
        return false;
    const struct fake_guest *guest = fake_guest_for(host, instance, generation, error);
    if (!guest)
        return false;
    guint64 mib = 1024 * 1024;
    gint64 now = host->env->ops->boot_ms(host->env);
    *ret_info = (struct migration_info){.step = guest->step, .why = g_strdup(guest->why)};
    if (guest->step == STEP_NONE)
        return true;
    ret_info->total = (MEMORY_TICKS + guest->host->slow_ms / FAKE_TICK_MS) * MIB_PER_TICK * mib;
    ret_info->remaining = guest->memory_left * MIB_PER_TICK * mib;
    ret_info->transferred = ret_info->total - ret_info->remaining;
    ret_info->bytes_per_s = MIN(guest->limits.bandwidth_mib, 1024) * mib;
    ret_info->downtime_ms = guest->stopped_ms ? (guint)(now - guest->stopped_ms) : 0;
    return true;
}

static bool migrate_continue_now(struct fake_guest *guest, GError **error)
{
    if (guest->step != STEP_STOPPED) {
        fettle_set_error(error, HYPERVISOR, "Migration not in expected state");
        return false;
    }
    if (fake_guest_mirrors(guest))
        fake_truth_problem(guest->host->hosts, "%s was handed over with its mirror attached",
                           guest->instance);
    if (guest->handing == 0)
        guest->handing = HANDING_TICKS;
    return true;
}

static bool op_migrate_continue(struct hypervisor *hv, const char *instance, guint64 generation,
                                GError **error)
{
    struct fake_host *host = fake_host_of_hv(hv);
    bool late;
    if (!fake_op_begin(host, "migrate_continue", instance, &late, error))
        return false;
    struct fake_guest *guest = fake_guest_for(host, instance, generation, error);
    bool ok = guest && migrate_continue_now(guest, error);
    return fake_op_end(host, "migrate_continue", late, ok, error);
}

static bool migrate_cancel_now(struct fake_guest *guest, GError **error)
{
    if (guest->step == STEP_DONE) {
        fettle_set_error(error, WRONG_STATE, "the migration of %s is done", guest->instance);
        return false;
    }
    bool cut = false;
    struct fake_guest *peer = guest->to ? peer_of(guest, &cut) : NULL;
    if (!cut)
        break_incoming(peer);
    end_sending(guest, STEP_NONE, NULL);
    return true;
}

static bool op_migrate_cancel(struct hypervisor *hv, const char *instance, guint64 generation,
                              GError **error)
{
    struct fake_host *host = fake_host_of_hv(hv);
    bool late;
    if (!fake_op_begin(host, "migrate_cancel", instance, &late, error))
        return false;
    struct fake_guest *guest = fake_guest_for(host, instance, generation, error);
    bool ok = guest && migrate_cancel_now(guest, error);
    return fake_op_end(host, "migrate_cancel", late, ok, error);
}

static bool op_announce(struct hypervisor *hv, const char *instance, guint64 generation,
                        GError **error)
{
    struct fake_host *host = fake_host_of_hv(hv);
    bool late;
    if (!fake_op_begin(host, "announce", instance, &late, error))
        return false;
    bool ok = fake_guest_for(host, instance, generation, error) != NULL;
    return fake_op_end(host, "announce", late, ok, error);
}

/* Guests of hosts like these run under nothing that could be slow. */
static char *op_without_kvm(struct hypervisor *hv)
{
    return NULL;
}

void fake_migration_fill(struct hypervisor_ops *ops)
{
    ops->without_kvm = op_without_kvm;
    ops->incoming_prepare = op_incoming_prepare;
    ops->incoming_finish = op_incoming_finish;
    ops->migrate_start = op_migrate_start;
    ops->migrate_query = op_migrate_query;
    ops->migrate_continue = op_migrate_continue;
    ops->migrate_cancel = op_migrate_cancel;
    ops->announce = op_announce;
}

/* --- what is true, what a test does --- */

void fake_migration_clear(struct fake_guest *guest)
{
    end_own_exports(guest);
    migration_target_free(guest->waits);
    migration_target_free(guest->to);
    g_free(guest->migration);
    g_free(guest->why);
}

enum migration_state fake_migration_report(const struct fake_guest *guest)
{
    if (guest->waits)
        return guest->whole ? MIGRATION_SWITCHING : MIGRATION_COPYING;
    switch (guest->step) {
    case STEP_COPYING:
        return MIGRATION_COPYING;
    case STEP_STOPPED:
        return MIGRATION_SWITCHING;
    case STEP_DONE:
        return MIGRATION_MOVED;
    case STEP_FAILED:
        return MIGRATION_FAILED;
    case STEP_NONE:
        break;
    }
    return MIGRATION_NONE;
}

bool fake_host_waits(const struct fake_host *host, const char *instance, const char *migration)
{
    const struct fake_guest *guest = fake_guest_find(host, instance);
    return guest && guest->waits && guest->state != GUEST_RUNNING &&
           (!migration || strcmp(guest->migration, migration) == 0);
}

enum migration_step fake_host_step(const struct fake_host *host, const char *instance)
{
    const struct fake_guest *guest = fake_guest_find(host, instance);
    return guest ? guest->step : STEP_NONE;
}

const struct migration_limits *fake_host_limits(const struct fake_host *host, const char *instance)
{
    const struct fake_guest *guest = fake_guest_find(host, instance);
    g_assert_nonnull(guest);
    return &guest->limits;
}

void fake_host_migration_break(struct fake_host *host, const char *instance)
{
    struct fake_guest *guest = fake_guest_find(host, instance);
    bool cut = false;
    if (!guest || !guest->to)
        return;
    break_incoming(peer_of(guest, &cut));
    end_sending(guest, STEP_FAILED, "the connection broke (made by the test)");
}

void fake_host_set_prepare_ms(struct fake_host *host, guint ms)
{
    host->prepare_ms = ms;
}

void fake_host_set_slow(struct fake_host *host, guint ms)
{
    host->slow_ms = ms;
}
