/*
 * Whether disks have failed: what a node's trial of its own disks and of that of its state says,
 * and what guests were answered by theirs. It is told by a look that began after the question,
 * again and again, for LIMIT_REPAIR_FAULT_S and in LIMIT_REPAIR_FAULT_PASSES passes (SAF-25). What
 * nobody knows, what does not answer and what an older version does not tell is no failure. See
 * repair_private.h.
 */
#include "core/repair/repair_private.h"
#include "core/report/faults.h"

#include <string.h>

/* `text` is stolen. */
static void suspect(const struct watcher *watcher, struct suspicion *suspicion, char *text)
{
    gint64 now_ms = watcher->env->ops->boot_ms(watcher->env);
    if (suspicion->passes == 0) {
        suspicion->since_ms = now_ms;
        suspicion->text = g_steal_pointer(&text);
    }
    g_free(text);
    suspicion->passes++;
    suspicion->pass = watcher->pass;
    suspicion->last_ms = now_ms;
}

static bool is_certain(const struct suspicion *suspicion)
{
    return suspicion->passes >= LIMIT_REPAIR_FAULT_PASSES &&
           suspicion->last_ms - suspicion->since_ms >=
               LIMIT_REPAIR_FAULT_S * G_GINT64_CONSTANT(1000);
}

static const char *certain_text(const struct suspicion *suspicion)
{
    return is_certain(suspicion) ? suspicion->text : NULL;
}

/* --- looking --- */

static void look_at_node(const struct watcher *watcher, struct suspicion *suspicion,
                         const char *kind, const struct node_report *report)
{
    const struct node_fault *fault = faults_find(report, kind);
    if (faults_proven(report, kind) != NULL)
        suspect(watcher, suspicion, g_strdup(fault->text));
    else if (fault == NULL && report->faults_known)
        suspicion_clear(suspicion);
}

/* What its hypervisor holds for ever is an error too, that nobody was told of. */
static char *guest_text(const struct guest_report *guest)
{
    if (guest->io_stop == IO_STOP_FAILED)
        return g_strdup_printf("holds its guest for ever, although there is room: requests of disk "
                               "%" G_GUINT64_FORMAT " fail",
                               guest->io_disk);
    return g_strdup_printf("has answered its guest with I/O errors from disk %" G_GUINT64_FORMAT,
                           guest->io_disk);
}

/* The count of errors is that of its whole life: what it counts anew fails now, what it had before
 * may be over, and is when nothing was added for as long as it takes to be certain. */
static void take_in_guest(const struct watcher *watcher, struct watched *watched,
                          const struct guest_report *guest)
{
    gint64 now_ms = watcher->env->ops->boot_ms(watcher->env);
    if (watched->disks_generation != guest->generation) {
        suspicion_clear(&watched->disks);
        watched->disks_errors = 0;
    }
    bool anew = guest->io_errors > watched->disks_errors || guest->io_stop == IO_STOP_FAILED;
    watched->disks_generation = guest->generation;
    watched->disks_errors = guest->io_errors;
    if (anew)
        suspect(watcher, &watched->disks, guest_text(guest));
    else if (guest->io_errors == 0 ||
             now_ms - watched->disks.last_ms >= LIMIT_REPAIR_FAULT_S * G_GINT64_CONSTANT(1000))
        suspicion_clear(&watched->disks);
}

static bool guest_fails(const struct guest_report *guest)
{
    return guest->io_errors > 0 || guest->io_stop == IO_STOP_FAILED;
}

/* Only of the generation on record, on the node that is to have it. */
static void look_at_failing(struct watcher *watcher, const struct node_report *report)
{
    const struct config *config = follow_config(watcher->follow);
    for (guint i = 0; i < report->guests->len; i++) {
        const struct guest_report *guest = report->guests->pdata[i];
        if (guest->late || !guest_fails(guest))
            continue;
        const struct instance *instance = config_get(config, "instance", guest->instance, NULL);
        if (instance != NULL && strcmp(instance->primary_node, report->node) == 0 &&
            instance->generation == guest->generation)
            take_in_guest(watcher, watcher_watched(watcher, guest->instance), guest);
    }
}

/* What failed before: its guest may be well again, and another generation has another process,
 * which may run from other disks. Of one that has ended, how its images are is known with its close
 * (SAF-24), and nobody will tell of its errors any more. */
static void look_at_failed(const struct watcher *watcher)
{
    const struct config *config = follow_config(watcher->follow);
    GHashTableIter iter;
    gpointer uuid, value;
    g_hash_table_iter_init(&iter, watcher->repair->instances);
    while (g_hash_table_iter_next(&iter, &uuid, &value)) {
        struct watched *watched = value;
        bool reported = false;
        if (watched->disks.passes == 0 && watched->disks_errors == 0)
            continue;
        const struct instance *instance = config_get(config, "instance", uuid, NULL);
        const struct guest_report *guest =
            instance != NULL ? watcher_guest(watcher, instance, &reported) : NULL;
        if (guest != NULL && !guest->late && !guest_fails(guest))
            take_in_guest(watcher, watched, guest);
        bool over = instance == NULL || instance->generation != watched->disks_generation ||
                    (reported && watcher_guest_absent(instance, guest));
        if (watched->disks.passes > 0 && over)
            suspicion_clear(&watched->disks);
    }
}

static void note_failure(struct node_memory *memory, const struct suspicion *suspicion)
{
    gint64 *const since[] = {&memory->suspect_ms, &memory->failed_ms};
    gint64 first_ms = MAX(suspicion->since_ms, 1);
    for (guint i = 0; i < (is_certain(suspicion) ? 2 : 1) && suspicion->passes > 0; i++)
        *since[i] = *since[i] == 0 ? first_ms : MIN(*since[i], first_ms);
}

/* For the storm brake. */
static void note_failed_nodes(const struct watcher *watcher)
{
    const struct config *config = follow_config(watcher->follow);
    GHashTableIter iter;
    gpointer uuid, value;
    g_hash_table_iter_init(&iter, watcher->nodes);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        struct node_memory *memory = value;
        memory->suspect_ms = memory->failed_ms = 0;
        note_failure(memory, &memory->disks);
    }
    g_hash_table_iter_init(&iter, watcher->repair->instances);
    while (g_hash_table_iter_next(&iter, &uuid, &value)) {
        const struct watched *watched = value;
        const struct instance *instance =
            watched->disks.passes > 0 ? config_get(config, "instance", uuid, NULL) : NULL;
        struct node_memory *memory =
            instance != NULL && !repair_template_shared(instance->disk_template)
                ? g_hash_table_lookup(watcher->nodes, instance->primary_node)
                : NULL;
        if (memory != NULL)
            note_failure(memory, &watched->disks);
    }
}

void watcher_disks_update(struct watcher *watcher)
{
    GHashTableIter iter;
    gpointer uuid, value;
    g_hash_table_iter_init(&iter, watcher->nodes);
    while (g_hash_table_iter_next(&iter, &uuid, &value)) {
        struct node_memory *memory = value;
        const struct node_report *report = reports_of(watcher->reports, uuid);
        if (report == NULL)
            continue;
        look_at_node(watcher, &memory->disks, FAULT_DISKS, report);
        look_at_node(watcher, &memory->state, FAULT_STATE, report);
        look_at_failing(watcher, report);
    }
    look_at_failed(watcher);
    note_failed_nodes(watcher);
}

/* --- what is known --- */

static const struct suspicion none = {0};

static const struct suspicion *of_node(const struct watcher *watcher, const char *node)
{
    const struct node_memory *memory = g_hash_table_lookup(watcher->nodes, node);
    return memory != NULL ? &memory->disks : &none;
}

static const struct suspicion *of_guest(const struct watcher *watcher,
                                        const struct instance *instance)
{
    const struct watched *watched = g_hash_table_lookup(watcher->repair->instances, instance->uuid);
    return watched != NULL ? &watched->disks : &none;
}

void watcher_disks_tell(const struct watcher *watcher, const struct instance *instance,
                        const struct replica *replica, struct repair_evidence *sight)
{
    sight->guest_failed = certain_text(of_guest(watcher, instance));
    sight->primary_failed = certain_text(of_node(watcher, instance->primary_node));
    sight->secondary_failed =
        replica != NULL ? certain_text(of_node(watcher, replica->node)) : NULL;
}

static bool is_open(const struct suspicion *suspicion)
{
    return suspicion->passes > 0 && !is_certain(suspicion);
}

bool watcher_disks_doubted(const struct watcher *watcher, const struct instance *instance,
                           const struct replica *replica)
{
    bool own = !repair_template_shared(instance->disk_template);
    return is_open(of_guest(watcher, instance)) ||
           (own && is_open(of_node(watcher, instance->primary_node))) ||
           (replica != NULL && is_open(of_node(watcher, replica->node)));
}

bool watcher_disks_seen_now(const struct watcher *watcher, const struct instance *instance)
{
    return of_guest(watcher, instance)->pass == watcher->pass ||
           of_node(watcher, instance->primary_node)->pass == watcher->pass;
}

bool watcher_disks_fail(const struct watcher *watcher, const struct instance *instance)
{
    return instance->disks->len > 0 && !repair_template_shared(instance->disk_template) &&
           of_node(watcher, instance->primary_node)->passes > 0;
}

static const struct suspicion *state_of(const struct watcher *watcher, const char *node)
{
    const struct node_memory *memory = g_hash_table_lookup(watcher->nodes, node);
    return memory != NULL ? &memory->state : &none;
}

const char *watcher_state_failed(const struct watcher *watcher, const char *node)
{
    return certain_text(state_of(watcher, node));
}

bool watcher_state_seen_now(const struct watcher *watcher, const char *node)
{
    return state_of(watcher, node)->pass == watcher->pass;
}
