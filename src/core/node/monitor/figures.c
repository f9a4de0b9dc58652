/* See figures.h. */
#include "core/node/monitor/figures.h"

#include <string.h>

#include "base/log.h"
#include "core/host/services.h"

#define ENDING ".stats"
#define NODE_FILE "node" ENDING

/* One guest, as its last look has it. */
struct guest_figures {
    bool under_way;
    guint64 generation;
    gint64 asked_ms;          /* when the last look that was answered began */
    struct guest_stats *last; /* of that; NULL: none of this generation */
};

struct figures {
    struct node_core *node;
    GHashTable *guests; /* instance -> struct guest_figures */
    gint64 heard_ms;
    char *said; /* the last complaint */
    struct env_pause pause;
    guint users; /* the owner, and each task */
    bool ended;
};

struct looking {
    struct figures *figures;
    struct guest *guest;
    struct guest_figures *of;
};

static gint64 now_ms(const struct figures *figures)
{
    return figures->node->env->ops->boot_ms(figures->node->env);
}

static guint64 wall_us(const struct figures *figures)
{
    return (guint64)MAX(figures->node->env->ops->wall_us(figures->node->env), 0);
}

/* --- lifetime --- */

static void guest_figures_free(void *data)
{
    struct guest_figures *of = data;
    guest_stats_free(of->last);
    g_free(of);
}

struct figures *figures_new(struct node_core *node)
{
    struct figures *figures = g_new0(struct figures, 1);
    figures->node = node;
    figures->guests = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, guest_figures_free);
    figures->heard_ms = now_ms(figures);
    figures->users = 1;
    return figures;
}

static void hold(struct figures *figures)
{
    figures->users++;
    node_hold(figures->node);
}

static void unref(struct figures *figures)
{
    if (--figures->users > 0)
        return;
    g_hash_table_unref(figures->guests);
    g_free(figures->said);
    g_free(figures);
}

static void release(struct figures *figures)
{
    struct node_core *node = figures->node;
    unref(figures);
    node_release(node);
}

void figures_free(struct figures *figures)
{
    if (!figures)
        return;
    figures->ended = true;
    env_pause_end(&figures->pause);
    unref(figures);
}

void figures_heard(struct figures *figures)
{
    if (figures)
        figures->heard_ms = now_ms(figures);
}

/* --- writing --- */

static void write_file(struct figures *figures, const char *file, const struct record *record,
                       const void *stats)
{
    const struct env *env = figures->node->env;
    g_autoptr(GString) text = g_string_new(NULL);
    g_autoptr(GError) error = NULL;
    record_append(record, stats, text);
    bool ok = env->ops->file_write(env, FILE_STATS, file, text->str, text->len, &error);
    if (!ok && !fettle_error_is(error, KILLED) && g_strcmp0(figures->said, error->message) != 0)
        log_warning("", "figures for monitoring are not written: %s", error->message);
    text_set(&figures->said, ok ? "" : error->message);
}

/* --- guests --- */

/* One that it should have and does not mirror to is told too: it lacks what was written since. */
static void fill_lost_replica(const struct instance *spec, struct guest_stats *stats)
{
    if (!spec || spec->disk_template != TEMPLATE_MIRROR)
        return;
    text_set(&stats->replica, spec->replica);
    stats->replica_state = REPLICA_STALE;
}

static void fill_replica(const struct guest *guest, struct guest_stats *stats)
{
    if (!guest->record->target) {
        fill_lost_replica(guest->record->spec, stats);
        return;
    }
    text_set(&stats->replica, guest->record->target->replica);
    text_set(&stats->held, guest->held ? guest->held : "");
    stats->replica_state = guest->replica_state;
    stats->mirror = guest->last_mirror.state;
    stats->progress = MIN(guest->last_mirror.progress, 100);
}

/* What the node daemon knows of it without asking anybody. */
static struct guest_stats *known_of(const struct figures *figures, const struct guest *guest)
{
    const struct guest_record *record = guest->record;
    struct guest_stats *stats = guest_stats_new();
    stats->written_us = wall_us(figures);
    text_set(&stats->instance, record->instance);
    text_set(&stats->name, record->spec ? record->spec->name : "");
    stats->generation = record->generation;
    stats->state = guest->shutdown ? GUEST_SHUTDOWN : guest->last_state;
    stats->heard_age_ms = (guint64)MAX(now_ms(figures) - guest->heard_ms, 0);
    stats->memory = record->spec ? record->spec->memory : 0;
    stats->vcpus = record->spec ? record->spec->vcpus : 0;
    stats->io_stop = guest_io_stop(guest);
    fill_replica(guest, stats);
    return stats;
}

static void write_guest(struct figures *figures, const struct guest_stats *stats)
{
    g_autofree char *file = g_strconcat(stats->instance, ENDING, NULL);
    write_file(figures, file, &guest_stats_record, stats);
}

/* Its drives as they were last. */
static void take_drives(struct guest_stats *stats, const struct guest_stats *last)
{
    for (guint i = 0; last && i < last->drives->len; i++)
        g_ptr_array_add(stats->drives, drive_stats_copy(last->drives->pdata[i]));
    stats->lag_bytes = last ? last->lag_bytes : 0;
}

static bool is_there(const struct guest *guest, guint64 generation)
{
    return guest->live && guest->record->generation == generation;
}

/* Drives of volumes by their attachments, as these are on record. */
static void name_volumes(const struct guest *guest, struct guest_stats *stats)
{
    const GPtrArray *volumes = guest->record->volumes;
    for (guint i = 0; i < volumes->len; i++) {
        const struct guest_volume *volume = volumes->pdata[i];
        g_autofree char *drive = g_strdup_printf(VOLUME_DRIVE, volume->attachment);
        for (guint k = 0; k < stats->drives->len; k++) {
            struct drive_stats *one = stats->drives->pdata[k];
            if (strcmp(one->name, drive) == 0)
                text_set(&one->name, volume->attachment);
        }
    }
}

/* What only its process, or the host, can tell. */
static void look(struct figures *figures, struct guest *guest, struct guest_figures *of)
{
    struct node_core *node = figures->node;
    guint64 generation = guest->record->generation;
    g_autofree char *instance = g_strdup(guest->record->instance);
    gint64 began_ms = now_ms(figures);
    bool answers = guest_query(guest);
    if (task_killed() || !is_there(guest, generation) || guest->making)
        return;
    record_autoptr(guest_stats) stats = known_of(figures, guest);
    answers = node->hv->ops->figures(node->hv, instance, generation, stats, NULL) && answers;
    node->env->network->ops->count(node->env->network, instance, stats->cards);
    name_volumes(guest, stats);
    if (task_killed() || !is_there(guest, generation))
        return;
    if (of->generation != generation)
        g_clear_pointer(&of->last, guest_stats_free);
    of->generation = generation;
    stats->late = !answers;
    if (!answers) {
        g_ptr_array_set_size(stats->drives, 0);
        take_drives(stats, of->last);
    }
    write_guest(figures, stats);
    if (answers) {
        guest_stats_free(of->last);
        of->last = g_steal_pointer(&stats);
        of->asked_ms = began_ms;
    }
}

static void look_task(void *data)
{
    struct looking *looking = data;
    struct figures *figures = looking->figures;
    look(figures, looking->guest, looking->of);
    looking->of->under_way = false;
    g_free(looking);
    release(figures);
}

/* One look at it does not come back. */
static void tell_late(struct figures *figures, const struct guest *guest,
                      const struct guest_figures *of)
{
    bool same = of->last && of->generation == guest->record->generation;
    record_autoptr(guest_stats) stats = known_of(figures, guest);
    stats->late = true;
    take_drives(stats, same ? of->last : NULL);
    if (same) {
        stats->cpu_us = of->last->cpu_us;
        stats->resident_bytes = of->last->resident_bytes;
        stats->uptime_us = of->last->uptime_us;
    }
    write_guest(figures, stats);
}

static void look_at_guest(struct figures *figures, struct guest *guest)
{
    const char *instance = guest->record->instance;
    struct guest_figures *of = g_hash_table_lookup(figures->guests, instance);
    if (!of) {
        of = g_new0(struct guest_figures, 1);
        g_hash_table_insert(figures->guests, g_strdup(instance), of);
    }
    if (of->under_way) {
        tell_late(figures, guest, of);
        return;
    }
    struct looking *looking = g_new(struct looking, 1);
    *looking = (struct looking){figures, guest, of};
    of->under_way = true;
    hold(figures);
    task_spawn(figures->node->env->tasks, look_task, looking);
}

/* --- what is beside them --- */

static void add_replica(const struct guest *guest, GPtrArray *list)
{
    const struct guest_record *record = guest->record;
    struct replica_report *line = replica_report_new();
    text_set(&line->instance, record->instance);
    text_set(&line->replica, record->replica);
    line->generation = record->exported ? record->replica_generation : 0;
    line->exported = guest->export_live;
    g_ptr_array_add(list, line);
}

static void write_node(struct figures *figures)
{
    struct node_core *node = figures->node;
    record_autoptr(node_stats) stats = node_stats_new();
    GHashTableIter iter;
    void *value;
    stats->written_us = wall_us(figures);
    stats->master_heard_ms = (guint64)MAX(now_ms(figures) - figures->heard_ms, 0);
    services_report(node->env, stats->services);
    g_hash_table_iter_init(&iter, node->guests);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        const struct guest *guest = value;
        if (*guest->record->replica)
            add_replica(guest, stats->replicas);
    }
    write_file(figures, NODE_FILE, &node_stats_record, stats);
}

/* --- a round --- */

/* Of a list of its own: writing may wait, and others may come meanwhile; none goes before the node.
 */
static void look_at_all(struct figures *figures)
{
    g_autoptr(GList) guests = g_hash_table_get_values(figures->node->guests);
    for (GList *link = guests; link && !figures->ended; link = link->next) {
        struct guest *guest = link->data;
        if (guest->live && !guest->making)
            look_at_guest(figures, guest);
    }
}

/* What was known of a guest that is not here any more. */
static void forget(struct figures *figures, const char *instance, const char *file)
{
    const struct env *env = figures->node->env;
    struct guest_figures *of = g_hash_table_lookup(figures->guests, instance);
    if (of && !of->under_way)
        g_hash_table_remove(figures->guests, instance);
    env->ops->file_remove(env, FILE_STATS, file, NULL);
}

static void sweep(struct figures *figures)
{
    const struct env *env = figures->node->env;
    g_autoptr(GPtrArray) names = env->ops->file_list(env, FILE_STATS, "", NULL);
    for (guint i = 0; names && i < names->len; i++) {
        const char *name = names->pdata[i];
        if (!g_str_has_suffix(name, ENDING))
            continue;
        g_autofree char *stem = g_strndup(name, strlen(name) - strlen(ENDING));
        const struct guest *guest = guest_lookup(figures->node, stem);
        if (g_uuid_string_is_valid(stem) && !(guest && guest->live))
            forget(figures, stem, name);
    }
}

static void run_task(void *data)
{
    struct figures *figures = data;
    bool alive = true;
    while (alive && !figures->ended) {
        write_node(figures);
        look_at_all(figures);
        sweep(figures);
        alive = env_pause(figures->node->env, &figures->pause, STATS_PERIOD_MS);
    }
    release(figures);
}

void figures_start(struct figures *figures)
{
    hold(figures);
    task_spawn(figures->node->env->tasks, run_task, figures);
}
