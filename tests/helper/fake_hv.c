/*
 * Hosts without QEMU: guests, their writes and their mirrors; see fake_hv.h.
 */
#include "helper/fake_hv_private.h"

#define OP_MS 1
#define COMMAND_TIMEOUT_MS 2000
#define DRAIN_TICKS 3

/* --- hosts --- */

struct fake_hosts *fake_hosts_new(guint64 seed)
{
    struct fake_hosts *hosts = g_new0(struct fake_hosts, 1);
    hosts->all = g_ptr_array_new();
    hosts->touched = g_ptr_array_new_with_free_func(g_free);
    hosts->shared = g_ptr_array_new_with_free_func(fake_image_free);
    hosts->truths = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, fake_truth_free);
    hosts->random = g_rand_new_with_seed((guint32)seed);
    hosts->last_port = 10000;
    return hosts;
}

static void guest_free(void *data)
{
    struct fake_guest *guest = data;
    const struct env *env = guest->host->env;
    if (guest->tick)
        env->ops->timer_cancel(env, guest->tick);
    if (guest->powerdown)
        env->ops->timer_cancel(env, guest->powerdown);
    fake_migration_clear(guest);
    g_hash_table_remove(guest->host->hangs, guest->instance);
    g_array_unref(guest->writes);
    export_target_free(guest->target);
    g_free(guest->copied);
    g_free(guest->dirty);
    g_free(guest->since);
    g_string_free(guest->console, TRUE);
    g_clear_pointer(&guest->volumes, g_ptr_array_unref);
    g_free(guest->instance);
    g_free(guest);
}

void fake_hosts_free(struct fake_hosts *hosts)
{
    for (guint i = 0; i < hosts->all->len; i++) {
        struct fake_host *host = hosts->all->pdata[i];
        g_ptr_array_unref(host->guests);
        fake_storage_clear(host);
        fake_strays_clear(host);
        fake_network_clear(host);
        g_free(host->version);
        g_hash_table_unref(host->faults);
        g_hash_table_unref(host->hangs);
        g_hash_table_unref(host->stood);
        g_ptr_array_unref(host->calls);
        g_ptr_array_unref(host->untold);
        g_free(host->node);
        g_free(host);
    }
    g_ptr_array_unref(hosts->all);
    g_ptr_array_unref(hosts->touched);
    g_ptr_array_unref(hosts->shared);
    g_hash_table_unref(hosts->truths);
    g_rand_free(hosts->random);
    g_free(hosts->problem);
    g_free(hosts);
}

struct fake_host *fake_host_find(const struct fake_hosts *hosts, const char *node_uuid)
{
    for (guint i = 0; i < hosts->all->len; i++) {
        struct fake_host *host = hosts->all->pdata[i];
        if (strcmp(host->node, node_uuid) == 0)
            return host;
    }
    return NULL;
}

void fake_hosts_set_path(struct fake_hosts *hosts,
                         bool (*passes)(const char *from, const char *to, void *data), void *data)
{
    hosts->passes = passes;
    hosts->passes_data = data;
}

void fake_hosts_forget_calls(struct fake_hosts *hosts)
{
    hosts->forgets = true;
}

const char *fake_hosts_problem(const struct fake_hosts *hosts)
{
    return hosts->problem;
}

struct fake_guest *fake_guest_find(const struct fake_host *host, const char *instance)
{
    for (guint i = 0; i < host->guests->len; i++) {
        struct fake_guest *guest = host->guests->pdata[i];
        if (strcmp(guest->instance, instance) == 0)
            return guest;
    }
    return NULL;
}

guint fake_hosts_running(const struct fake_hosts *hosts, const char *instance)
{
    guint running = 0;
    for (guint i = 0; i < hosts->all->len; i++) {
        const struct fake_guest *guest = fake_guest_find(hosts->all->pdata[i], instance);
        running += guest && guest->state == GUEST_RUNNING;
    }
    return running;
}

guint64 fake_host_memory(const struct fake_host *host, const char *instance)
{
    const struct fake_guest *guest = fake_guest_find(host, instance);
    return guest ? guest->memory : 0;
}

enum guest_state fake_host_state(const struct fake_host *host, const char *instance,
                                 guint64 *ret_generation)
{
    const struct fake_guest *guest = fake_guest_find(host, instance);
    if (ret_generation)
        *ret_generation = guest ? guest->generation : 0;
    return guest ? guest->state : GUEST_ABSENT;
}

enum mirror_state fake_host_mirror(const struct fake_host *host, const char *instance)
{
    const struct fake_guest *guest = fake_guest_find(host, instance);
    return guest ? guest->mirror : MIRROR_NONE;
}

void fake_host_set_powerdown_ms(struct fake_host *host, guint ms)
{
    host->powerdown_ms = ms;
}

void fake_host_set_quiet(struct fake_host *host, bool quiet)
{
    host->quiet = quiet;
}

void fake_host_set_deaf(struct fake_host *host, bool deaf)
{
    host->deaf = deaf;
}

void fake_host_set_version(struct fake_host *host, const char *version)
{
    g_free(host->version);
    host->version = g_strdup(version);
}

/* --- calls: log, faults, hook --- */

const GPtrArray *fake_host_calls(const struct fake_host *host)
{
    return host->calls;
}

guint fake_host_count(const struct fake_host *host, const char *prefix)
{
    guint count = 0;
    for (guint i = 0; i < host->calls->len; i++)
        count += g_str_has_prefix(host->calls->pdata[i], prefix) ? 1 : 0;
    return count;
}

void fake_host_fault(struct fake_host *host, const char *op, enum fake_fault fault, guint count)
{
    struct made_fault *row = g_new0(struct made_fault, 1);
    row->kind = fault;
    row->count = count;
    g_hash_table_insert(host->faults, g_strdup(op), row);
}

void fake_host_clear_faults(struct fake_host *host)
{
    g_hash_table_remove_all(host->faults);
}

void fake_host_set_hook(struct fake_host *host, fake_host_hook hook, void *data)
{
    host->hook = hook;
    host->hook_data = data;
}

static bool op_killed(const char *op, GError **error)
{
    fettle_set_error(error, KILLED, "%s: the calling process has ended", op);
    return false;
}

/* The caller's process is about to be killed by the test; it gets no further. */
static bool op_dies_here(struct fake_host *host, const char *op, bool after)
{
    if (!host->hook || !host->hook(host, op, after, host->hook_data))
        return false;
    while (task_wait())
        ;
    return true;
}

/* --- the node daemon is stopped --- */

/* Its ops get no further until it goes on; false: it was killed. */
static bool goes_on(const struct fake_host *host)
{
    while (host->paused)
        if (!env_sleep(host->env, FAKE_TICK_MS))
            return false;
    return true;
}

static bool op_silent(const struct fake_host *host, const char *op, GError **error)
{
    if (!env_sleep(host->env, COMMAND_TIMEOUT_MS))
        return op_killed(op, error);
    fettle_set_error(error, TIMEOUT, "%s: no answer in %d ms", op, COMMAND_TIMEOUT_MS);
    return false;
}

/* The connection ends with the process. */
static bool op_hangs(const struct fake_host *host, const char *op, const char *instance,
                     GError **error)
{
    for (guint waited = 0; waited < COMMAND_TIMEOUT_MS; waited += FAKE_TICK_MS) {
        if (!env_sleep(host->env, FAKE_TICK_MS))
            return op_killed(op, error);
        if (!fake_guest_find(host, instance)) {
            fettle_set_error(error, UNREACHABLE, "%s: the process of %s has ended", op, instance);
            return false;
        }
    }
    fettle_set_error(error, TIMEOUT, "%s: no answer in %d ms", op, COMMAND_TIMEOUT_MS);
    return false;
}

bool fake_op_begin(struct fake_host *host, const char *op, const char *instance, bool *ret_late,
                   GError **error)
{
    if (ret_late)
        *ret_late = false;
    if (task_killed())
        return op_killed(op, error);
    if (host->hosts->witness)
        host->hosts->witness(host->node, op, instance, host->hosts->witness_data);
    if (!host->hosts->forgets)
        g_ptr_array_add(host->calls, g_strdup_printf("%s %s", op, instance));
    if (op_dies_here(host, op, false) || !env_sleep(host->env, OP_MS) || !goes_on(host))
        return op_killed(op, error);
    if (!fake_op_comes_back(host, op))
        return op_killed(op, error);
    if (fake_op_hangs(host, op, instance))
        return op_hangs(host, op, instance, error);
    struct made_fault *fault =
        g_hash_table_size(host->faults) > 0 ? g_hash_table_lookup(host->faults, op) : NULL;
    if (!fault || fault->count == 0)
        return true;
    fault->count--;
    switch (fault->kind) {
    case FAKE_FAULT_FAILS:
        fettle_set_error(error, HYPERVISOR, "%s: failed as the test wanted", op);
        return false;
    case FAKE_FAULT_LATE:
        if (ret_late)
            *ret_late = true;
        return true;
    case FAKE_FAULT_SILENT:
        break;
    }
    return op_silent(host, op, error);
}

bool fake_op_end(struct fake_host *host, const char *op, bool late, bool ok, GError **error)
{
    if (op_dies_here(host, op, true))
        return ok && op_killed(op, error);
    if (!goes_on(host))
        return op_killed(op, error);
    if (!ok || !late)
        return ok;
    if (!env_sleep(host->env, COMMAND_TIMEOUT_MS))
        return op_killed(op, error);
    fettle_set_error(error, TIMEOUT, "%s: no answer in %d ms", op, COMMAND_TIMEOUT_MS);
    return false;
}

/* --- the hypervisor's ops --- */

struct fake_host *fake_host_of_hv(struct hypervisor *hv)
{
    return (struct fake_host *)((char *)hv - G_STRUCT_OFFSET(struct fake_host, hv));
}

static bool refuse_other(const struct fake_guest *guest, guint64 generation, GError **error)
{
    fettle_set_error(error, REFUSED,
                     "generation %" G_GUINT64_FORMAT " of %s lives, not %" G_GUINT64_FORMAT,
                     guest->generation, guest->instance, generation);
    return false;
}

struct fake_guest *fake_guest_for(struct fake_host *host, const char *instance, guint64 generation,
                                  GError **error)
{
    struct fake_guest *guest = fake_guest_find(host, instance);
    if (!guest) {
        fettle_set_error(error, WRONG_STATE, "%s has no process", instance);
        return NULL;
    }
    if (guest->generation != generation) {
        refuse_other(guest, generation, error);
        return NULL;
    }
    if (!guest->frozen)
        return guest;
    if (!env_sleep(host->env, COMMAND_TIMEOUT_MS)) {
        op_killed("monitor", error);
        return NULL;
    }
    fettle_set_error(error, TIMEOUT, "the monitor of %s is frozen", instance);
    return NULL;
}

static void op_set_events(struct hypervisor *hv, const struct hypervisor_events *events)
{
    struct fake_host *host = fake_host_of_hv(hv);
    host->guest_events = *events;
    g_ptr_array_set_size(host->untold, 0); /* they were for another process */
}

/* Held by QEMU's lock; a process that waits, or has handed over, holds none. */
static bool image_in_use(const struct fake_hosts *hosts, const struct fake_image *image)
{
    for (guint i = 0; i < hosts->all->len; i++) {
        const struct fake_host *host = hosts->all->pdata[i];
        for (guint j = 0; j < host->guests->len; j++) {
            const struct fake_guest *guest = host->guests->pdata[j];
            if (guest->image == image && guest->state != GUEST_INCOMING &&
                guest->state != GUEST_MIGRATED)
                return true;
        }
    }
    return false;
}

struct fake_guest *fake_guest_add(struct fake_host *host, const struct instance *instance,
                                  struct fake_image *image)
{
    struct fake_guest *guest = g_new0(struct fake_guest, 1);
    guest->host = host;
    guest->instance = g_strdup(instance->uuid);
    guest->generation = instance->generation;
    guest->memory = instance->memory;
    guest->state = GUEST_PREPARED;
    guest->image = image;
    guest->writes = g_array_new(FALSE, TRUE, sizeof(struct fake_write));
    guest->console = g_string_new("");
    g_ptr_array_add(host->guests, guest);
    fake_guest_tick(guest);
    return guest;
}

static bool prepare_now(struct fake_host *host, const struct guest_spec *spec, GError **error)
{
    const struct instance *instance = spec->instance;
    struct fake_guest *other = fake_guest_find(host, instance->uuid);
    if (other && other->generation == instance->generation)
        return true;
    struct fake_image *image =
        instance->disks->len > 0 ? fake_image_find(host, instance->uuid, "") : NULL;
    if (other || (image && image_in_use(host->hosts, image))) {
        fake_truth_problem(host->hosts, "a second opener of the images of %s on %s", instance->name,
                           host->node);
        fettle_set_error(error, HYPERVISOR, "%s: failed to get \"write\" lock", instance->name);
        return false;
    }
    if (instance->disks->len > 0 && (!image || fake_disks_fail(host, image))) {
        fettle_set_error(error, HYPERVISOR, "%s: %s", instance->name,
                         image ? "Input/output error" : "no image");
        return false;
    }
    for (guint i = 0; spec->taps && i < spec->taps->len; i++)
        if (fake_host_taps(host, instance->uuid) <= i)
            fake_truth_problem(host->hosts, "%s has no tap device %s on %s", instance->name,
                               (const char *)spec->taps->pdata[i], host->node);
    fake_guest_give_volumes(fake_guest_add(host, instance, image), spec);
    return true;
}

static bool op_prepare(struct hypervisor *hv, const struct guest_spec *spec, GError **error)
{
    struct fake_host *host = fake_host_of_hv(hv);
    bool late;
    if (!fake_op_begin(host, "prepare", spec->instance->uuid, &late, error))
        return false;
    if (host->prepare_ms > 0 && !env_sleep(host->env, host->prepare_ms))
        return op_killed("prepare", error);
    return fake_op_end(host, "prepare", late, prepare_now(host, spec, error), error);
}

static bool op_run(struct hypervisor *hv, const char *instance, guint64 generation, GError **error)
{
    struct fake_host *host = fake_host_of_hv(hv);
    bool late;
    if (!fake_op_begin(host, "run", instance, &late, error))
        return false;
    struct fake_guest *guest = fake_guest_for(host, instance, generation, error);
    bool ok = guest && fake_migration_may_run(guest, error);
    if (ok && guest->state != GUEST_RUNNING) {
        fake_truth_run(guest);
        guest->state = GUEST_RUNNING;
        fake_guest_repeat(guest);
    }
    return fake_op_end(host, "run", late, ok, error);
}

/* Commands that drain wait until no write is in flight; a held write freezes the monitor. */
static bool guest_drain(struct fake_host *host, const char *instance, guint64 generation,
                        GError **error)
{
    for (guint waited = 0; waited < COMMAND_TIMEOUT_MS; waited += FAKE_TICK_MS) {
        struct fake_guest *guest = fake_guest_find(host, instance);
        if (!guest || guest->generation != generation) {
            fettle_set_error(error, HYPERVISOR, "%s: the process has ended", instance);
            return false;
        }
        guest->drains = fake_guest_under_way(guest) > 0 ? DRAIN_TICKS : 0;
        if (guest->drains == 0)
            return true;
        guest->frozen = fake_host_held(host, instance);
        if (!env_sleep(host->env, FAKE_TICK_MS)) {
            guest = fake_guest_find(host, instance);
            if (guest)
                guest->drains = false;
            return op_killed("drain", error);
        }
    }
    struct fake_guest *stuck = fake_guest_find(host, instance);
    if (stuck)
        stuck->drains = 0;
    fettle_set_error(error, TIMEOUT, "the monitor of %s is frozen", instance);
    return false;
}

static bool op_pause(struct hypervisor *hv, const char *instance, guint64 generation,
                     GError **error)
{
    struct fake_host *host = fake_host_of_hv(hv);
    bool late;
    if (!fake_op_begin(host, "pause", instance, &late, error))
        return false;
    struct fake_guest *guest = fake_guest_for(host, instance, generation, error);
    if (!guest)
        return fake_op_end(host, "pause", late, false, error);
    if (guest->state == GUEST_RUNNING)
        guest->state = GUEST_PAUSED;
    bool ok = guest_drain(host, instance, generation, error);
    return fake_op_end(host, "pause", late, ok, error);
}

static void guest_shut_down(struct fake_guest *guest, bool held)
{
    struct fake_host *host = guest->host;
    if (guest->state != GUEST_RUNNING)
        return;
    guest->state = GUEST_SHUTDOWN;
    guest->frozen = held; /* QEMU waits for its writes */
    fake_host_tell(host, FAKE_SHUTDOWN, guest->instance, "", guest->generation);
}

static void powerdown_cb(void *data)
{
    struct fake_guest *guest = data;
    const struct env *env = guest->host->env;
    guest->powerdown = 0;
    bool held = fake_host_held(guest->host, guest->instance);
    if (fake_guest_under_way(guest) > 0 && !held) /* it writes its caches back first */
        guest->powerdown = env->ops->timer(env, FAKE_TICK_MS, powerdown_cb, guest);
    else
        guest_shut_down(guest, held);
}

static bool op_powerdown(struct hypervisor *hv, const char *instance, guint64 generation,
                         GError **error)
{
    struct fake_host *host = fake_host_of_hv(hv);
    bool late;
    if (!fake_op_begin(host, "powerdown", instance, &late, error))
        return false;
    struct fake_guest *guest = fake_guest_for(host, instance, generation, error);
    if (guest && host->powerdown_ms > 0 && !guest->powerdown)
        guest->powerdown =
            host->env->ops->timer(host->env, host->powerdown_ms, powerdown_cb, guest);
    return fake_op_end(host, "powerdown", late, guest != NULL, error);
}

static bool op_reset(struct hypervisor *hv, const char *instance, guint64 generation,
                     GError **error)
{
    struct fake_host *host = fake_host_of_hv(hv);
    bool late;
    if (!fake_op_begin(host, "reset", instance, &late, error))
        return false;
    bool ok = fake_guest_for(host, instance, generation, error) &&
              guest_drain(host, instance, generation, error);
    return fake_op_end(host, "reset", late, ok, error);
}

static void guest_end(struct fake_guest *guest)
{
    struct fake_host *host = guest->host;
    g_autofree char *instance = g_strdup(guest->instance);
    guint64 generation = guest->generation;
    fake_guest_stands_no_more(guest);
    g_ptr_array_remove(host->guests, guest);
    fake_host_tell(host, FAKE_EXITED, instance, "", generation);
}

static bool op_kill(struct hypervisor *hv, const char *instance, guint64 generation, GError **error)
{
    struct fake_host *host = fake_host_of_hv(hv);
    bool late;
    if (!fake_op_begin(host, "kill", instance, &late, error))
        return false;
    struct fake_guest *guest = fake_guest_find(host, instance);
    bool ok = true;
    if (guest && guest->generation != generation)
        ok = refuse_other(guest, generation, error);
    else if (guest)
        guest_end(guest);
    return fake_op_end(host, "kill", late, ok, error);
}

static guint guest_progress(const struct fake_guest *guest)
{
    guint done = 0;
    if (guest->mirror == MIRROR_READY)
        return 100;
    for (guint i = 0; fake_guest_mirrors(guest) && i < guest->image->count; i++)
        done += guest->copied[i];
    return guest->image && guest->image->count ? done * 100 / guest->image->count : 0;
}

static bool op_query(struct hypervisor *hv, const char *instance, guint64 generation,
                     enum guest_state *ret_state, struct mirror_info *ret_mirror, GError **error)
{
    struct fake_host *host = fake_host_of_hv(hv);
    if (!fake_op_begin(host, "query", instance, NULL, error))
        return false;
    if (!fake_guest_find(host, instance)) {
        *ret_state = GUEST_ABSENT;
        *ret_mirror = (struct mirror_info){MIRROR_NONE, 0};
        return true;
    }
    struct fake_guest *guest = fake_guest_for(host, instance, generation, error);
    if (!guest)
        return false;
    *ret_state = fake_guest_told(guest);
    *ret_mirror = (struct mirror_info){guest->mirror, guest_progress(guest)};
    return true;
}

static bool op_mirror_start(struct hypervisor *hv, const char *instance, guint64 generation,
                            const struct export_target *target, enum mirror_copy copy,
                            GError **error)
{
    struct fake_host *host = fake_host_of_hv(hv);
    bool late;
    if (!fake_op_begin(host, "mirror_start", instance, &late, error))
        return false;
    bool ok = fake_guest_for(host, instance, generation, error) &&
              guest_drain(host, instance, generation, error);
    struct fake_guest *guest = ok ? fake_guest_find(host, instance) : NULL;
    ok = guest && fake_mirror_begin(guest, target, copy, error);
    if (ok)
        guest->finished = false;
    return fake_op_end(host, "mirror_start", late, ok, error);
}

static bool op_mirror_finish(struct hypervisor *hv, const char *instance, guint64 generation,
                             GError **error)
{
    struct fake_host *host = fake_host_of_hv(hv);
    bool late;
    if (!fake_op_begin(host, "mirror_finish", instance, &late, error))
        return false;
    bool ok = fake_guest_for(host, instance, generation, error) &&
              guest_drain(host, instance, generation, error);
    struct fake_guest *guest = ok ? fake_guest_find(host, instance) : NULL;
    if (guest && (guest->mirror != MIRROR_READY || !fake_guest_replica(guest))) {
        /* Ending it waits for the replica, and the monitor with it (SAF-15). */
        guest->stuck = guest->frozen = guest->step == STEP_STOPPED && guest->mirror == MIRROR_READY;
        fettle_set_error(error, HYPERVISOR, "the mirror did not complete");
        ok = false;
    }
    if (ok) {
        fake_guest_unmirror(guest, MIRROR_NONE);
        guest->finished = true;
    }
    return fake_op_end(host, "mirror_finish", late, ok, error);
}

static void op_mirror_remember(struct hypervisor *hv, const char *instance, guint64 generation)
{
    struct fake_guest *guest = fake_guest_find(fake_host_of_hv(hv), instance);
    if (guest && guest->generation == generation)
        fake_mirror_remember(guest);
}

static bool op_mirror_release(struct hypervisor *hv, const char *instance, guint64 generation,
                              GError **error)
{
    struct fake_host *host = fake_host_of_hv(hv);
    bool late;
    if (!fake_op_begin(host, "mirror_release", instance, &late, error))
        return false;
    struct fake_guest *guest = fake_guest_find(host, instance);
    bool ok = guest && guest->generation == generation;
    if (ok)
        fake_guest_unmirror(guest, MIRROR_NONE);
    else
        fettle_set_error(error, WRONG_STATE, "%s has no such process", instance);
    return fake_op_end(host, "mirror_release", late, ok, error);
}

static void report_free(void *data)
{
    guest_report_free(data);
}

static GPtrArray *op_rediscover(struct hypervisor *hv, GError **error)
{
    struct fake_host *host = fake_host_of_hv(hv);
    if (!fake_op_begin(host, "rediscover", "", NULL, error))
        return NULL;
    GPtrArray *found = g_ptr_array_new_with_free_func(report_free);
    for (guint i = 0; i < host->guests->len; i++) {
        const struct fake_guest *guest = host->guests->pdata[i];
        struct guest_report *line = guest_report_new();
        g_free(line->instance);
        line->instance = g_strdup(guest->instance);
        line->generation = guest->generation;
        line->state = fake_guest_told(guest);
        line->mirror = guest->mirror;
        line->progress = guest_progress(guest);
        if (fake_guest_mirrors(guest)) {
            g_free(line->replica);
            line->replica = g_strdup(guest->target->replica);
        }
        line->memory = guest->memory;
        if (guest->migration) {
            g_free(line->migration);
            line->migration = g_strdup(guest->migration);
            line->migrating = fake_migration_report(guest);
        }
        g_ptr_array_add(found, line);
    }
    return found;
}

static bool op_host(struct hypervisor *hv, guint64 *ret_memory_total, guint64 *ret_memory_free,
                    guint *ret_cpus)
{
    const struct fake_host *host = fake_host_of_hv(hv);
    guint64 used = 0;
    for (guint i = 0; i < host->guests->len; i++)
        used += ((struct fake_guest *)host->guests->pdata[i])->memory;
    *ret_memory_total = 16384;
    *ret_memory_free = 16384 - MIN(used, 16384);
    *ret_cpus = 8;
    return true;
}

static bool op_disk_resize(struct hypervisor *hv, const char *instance, guint64 generation,
                           guint disk, guint64 bytes, GError **error)
{
    struct fake_host *host = fake_host_of_hv(hv);
    bool late;
    if (!fake_op_begin(host, "disk_resize", instance, &late, error))
        return false;
    struct fake_guest *guest = fake_guest_for(host, instance, generation, error);
    bool ok = guest != NULL;
    if (guest && fake_guest_mirrors(guest)) {
        fettle_set_error(error, HYPERVISOR, "Op blocker: a mirror is attached");
        ok = false;
    } else if (guest && (!guest->image || disk * FAKE_BLOCKS >= guest->image->count ||
                         guest->image->size_mib[disk] * 1024 * 1024 < bytes)) {
        fettle_set_error(error, HYPERVISOR, "disk %u has not that size", disk);
        ok = false;
    }
    return fake_op_end(host, "disk_resize", late, ok, error);
}

static const char *op_version(struct hypervisor *hv)
{
    return fake_host_of_hv(hv)->version;
}

static const struct hypervisor_ops *hv_ops(void)
{
    static struct hypervisor_ops ops = {
        .set_events = op_set_events,
        .prepare = op_prepare,
        .run = op_run,
        .pause = op_pause,
        .powerdown = op_powerdown,
        .reset = op_reset,
        .kill = op_kill,
        .query = op_query,
        .mirror_start = op_mirror_start,
        .mirror_finish = op_mirror_finish,
        .mirror_release = op_mirror_release,
        .mirror_remember = op_mirror_remember,
        .disk_resize = op_disk_resize,
        .version = op_version,
        .rediscover = op_rediscover,
        .strays = fake_hv_strays,
        .host = op_host,
    };
    fake_migration_fill(&ops);
    fake_room_fill(&ops);
    fake_console_fill(&ops);
    return &ops;
}

struct fake_host *fake_host_add(struct fake_hosts *hosts, const char *node_uuid,
                                const struct env *env)
{
    struct fake_host *host = g_new0(struct fake_host, 1);
    host->hv.ops = hv_ops();
    host->hosts = hosts;
    host->env = env;
    host->node = g_strdup(node_uuid);
    host->guests = g_ptr_array_new_with_free_func(guest_free);
    host->faults = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    host->hangs = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    host->stood = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    host->calls = g_ptr_array_new_with_free_func(g_free);
    host->untold = g_ptr_array_new_with_free_func(fake_event_free);
    host->powerdown_ms = 20;
    host->version = g_strdup("7.2.22");
    fake_storage_init(host);
    fake_strays_init(host);
    fake_network_init(host);
    g_ptr_array_add(hosts->all, host);
    return host;
}

struct hypervisor *fake_host_hypervisor(struct fake_host *host)
{
    return &host->hv;
}

struct storage *fake_host_storage(struct fake_host *host)
{
    return &host->storage;
}

struct network_driver *fake_host_network(struct fake_host *host)
{
    return &host->network;
}

/* --- what a test does --- */

void fake_host_power_off(struct fake_host *host)
{
    g_hash_table_remove_all(host->hangs);
    host->paused = false;
    host->guest_events = (struct hypervisor_events){0};
    host->export_events = (struct storage_events){0};
    g_ptr_array_set_size(host->guests, 0);
    g_ptr_array_set_size(host->exports, 0);
    g_ptr_array_set_size(host->addresses, 0);
    g_ptr_array_set_size(host->taps, 0);
    fake_images_lose(host);
    g_clear_pointer(&host->creating, g_free);
}

void fake_host_guest_poweroff(struct fake_host *host, const char *instance)
{
    struct fake_guest *guest = fake_guest_find(host, instance);
    if (guest && !guest->powerdown)
        guest->powerdown = host->env->ops->timer(host->env, FAKE_TICK_MS, powerdown_cb, guest);
}

void fake_host_guest_crash(struct fake_host *host, const char *instance)
{
    struct fake_guest *guest = fake_guest_find(host, instance);
    if (guest)
        guest_end(guest);
}
