/* See parts.h. A part that answers with an error is as good as one that does not answer: nothing is
 * known of it now. */
#include "core/node/parts.h"

#include "core/node/guest.h"
#include "core/report/late.h"

#include <string.h>

#define WHY_CHARS 512 /* as the record has it */

struct part {
    struct look look;
    bool known;      /* it has answered */
    gint64 heard_ms; /* boot clock: when the look began that it answered last */
    char *why;       /* the error of the last look; NULL: it has answered, or not yet */
};

struct parts {
    gint64 since_ms; /* boot clock */
    struct part disks, shared, sources, bridges, taps;

    struct storage_space space;
    GPtrArray *images, *aside; /* struct image_set */
    char *marker;              /* of the shared folder */
    struct storage_space shared_space;
    GPtrArray *source_names; /* NULL: there are too many */
    GPtrArray *bridge_names;
    GPtrArray *tap_texts; /* as parts_taps() tells them */
};

struct parts *parts_new(const struct env *env)
{
    struct parts *parts = g_new0(struct parts, 1);
    parts->since_ms = env->ops->boot_ms(env);
    return parts;
}

static void part_clear(struct part *part)
{
    look_clear(&part->look);
    g_free(part->why);
}

void parts_free(struct parts *parts)
{
    part_clear(&parts->disks);
    part_clear(&parts->shared);
    part_clear(&parts->sources);
    part_clear(&parts->bridges);
    part_clear(&parts->taps);
    g_clear_pointer(&parts->images, g_ptr_array_unref);
    g_clear_pointer(&parts->aside, g_ptr_array_unref);
    g_clear_pointer(&parts->source_names, g_ptr_array_unref);
    g_clear_pointer(&parts->bridge_names, g_ptr_array_unref);
    g_clear_pointer(&parts->tap_texts, g_ptr_array_unref);
    g_free(parts->marker);
    g_free(parts);
}

/* --- looking --- */

static gint64 now_ms(const struct node_core *node)
{
    return node->env->ops->boot_ms(node->env);
}

static void take_list(GPtrArray **list, GPtrArray **seen)
{
    g_clear_pointer(list, g_ptr_array_unref);
    *list = g_steal_pointer(seen);
}

/* Whether there was an answer, which began at `began`. */
static bool part_heard(struct part *part, gint64 began, const GError *error)
{
    g_free(part->why);
    part->why = error ? text_head(error->message, WHY_CHARS) : NULL;
    if (error)
        return false;
    part->known = true;
    part->heard_ms = began;
    return true;
}

static bool look_at_disks(struct node_core *node, void *thing)
{
    struct parts *parts = thing;
    struct storage *storage = node->storage;
    struct storage_space space = {0};
    gint64 began = now_ms(node);
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) images = storage->ops->space(storage, &space, &error)
                                      ? storage->ops->list(storage, false, &error)
                                      : NULL;
    g_autoptr(GPtrArray) aside = images ? storage->ops->list(storage, true, &error) : NULL;
    if (task_killed() || !part_heard(&parts->disks, began, error))
        return false;
    parts->space = space;
    take_list(&parts->images, &images);
    take_list(&parts->aside, &aside);
    return true;
}

static bool look_at_shared(struct node_core *node, void *thing)
{
    struct parts *parts = thing;
    struct storage_space space = {0};
    gint64 began = now_ms(node);
    g_autofree char *marker = g_strdup(node->storage->ops->shared(node->storage, &space));
    if (task_killed() || !marker || !part_heard(&parts->shared, began, NULL))
        return false;
    g_free(parts->marker);
    parts->marker = g_steal_pointer(&marker);
    parts->shared_space = space;
    return true;
}

static bool look_at_sources(struct node_core *node, void *thing)
{
    struct parts *parts = thing;
    gint64 began = now_ms(node);
    g_autoptr(GPtrArray) names = node->storage->ops->sources(node->storage);
    if (task_killed() || !part_heard(&parts->sources, began, NULL))
        return false;
    take_list(&parts->source_names, &names);
    return true;
}

static bool look_at_bridges(struct node_core *node, void *thing)
{
    struct parts *parts = thing;
    gint64 began = now_ms(node);
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) names = node->env->network->ops->bridges(node->env->network, &error);
    if (task_killed() || !part_heard(&parts->bridges, began, error))
        return false;
    take_list(&parts->bridge_names, &names);
    return true;
}

static bool look_at_taps(struct node_core *node, void *thing)
{
    struct parts *parts = thing;
    gint64 began = now_ms(node);
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) taps = node->env->network->ops->taps(node->env->network, &error);
    if (task_killed() || !part_heard(&parts->taps, began, error))
        return false;
    take_list(&parts->tap_texts, &taps);
    return true;
}

void parts_ask_images(struct parts *parts, struct look_round *round, bool shared)
{
    if (shared)
        look_round_add(round, &parts->shared.look, look_at_shared, parts);
    else
        look_round_add(round, &parts->disks.look, look_at_disks, parts);
}

void parts_ask_taps(struct parts *parts, struct look_round *round)
{
    look_round_add(round, &parts->taps.look, look_at_taps, parts);
}

void parts_ask(struct parts *parts, struct look_round *round)
{
    look_round_add(round, &parts->disks.look, look_at_disks, parts);
    look_round_add(round, &parts->shared.look, look_at_shared, parts);
    look_round_add(round, &parts->sources.look, look_at_sources, parts);
    look_round_add(round, &parts->bridges.look, look_at_bridges, parts);
}

/* --- telling --- */

static void add_texts(GPtrArray *ret_to, const GPtrArray *texts)
{
    for (guint i = 0; texts && i < texts->len; i++)
        g_ptr_array_add(ret_to, g_strdup(texts->pdata[i]));
}

/* The sets, and the same without the disks, which is all that a master of an older version
 * understands. */
static void add_sets(GPtrArray *ret_sets, GPtrArray *ret_names, const GPtrArray *sets)
{
    for (guint i = 0; sets && i < sets->len; i++) {
        const struct image_set *set = sets->pdata[i];
        g_ptr_array_add(ret_sets, image_set_copy(set));
        g_ptr_array_add(ret_names, g_strdup_printf("%s%s%s", set->instance,
                                                   *set->replica ? " " : "", set->replica));
    }
}

static void tell_late(const struct parts *parts, const struct part *part, const char *name,
                      gint64 now, struct node_report *report)
{
    struct late_part *late = late_part_new();
    text_set(&late->part, name);
    late->unknown = !part->known;
    late->age_ms = (guint64)MAX(now - (part->known ? part->heard_ms : parts->since_ms), 0);
    text_set(&late->why, part->why ? part->why : "");
    g_ptr_array_add(report->late, late);
}

static void tell_disks(const struct parts *parts, struct node_report *report)
{
    report->disk_total = parts->space.total_mib;
    report->disk_free = parts->space.free_mib;
    add_sets(report->image_sets, report->images, parts->images);
    add_sets(report->aside_sets, report->leftovers, parts->aside);
}

static void tell_shared(const struct parts *parts, struct node_report *report)
{
    text_set(&report->shared, parts->marker ? parts->marker : "");
    report->shared_total = parts->shared_space.total_mib;
    report->shared_free = parts->shared_space.free_mib;
}

bool parts_report(const struct parts *parts, const struct look_round *round, bool looks,
                  struct node_report *report, GError **error)
{
    static const char *const names[] = {PART_DISKS, PART_SHARED, PART_SOURCES, PART_BRIDGES};
    const struct part *all[] = {&parts->disks, &parts->shared, &parts->sources, &parts->bridges};
    bool late[G_N_ELEMENTS(all)];
    gint64 now = look_round_now(round);
    for (guint i = 0; i < G_N_ELEMENTS(all); i++) {
        late[i] = !look_round_answered(round, &all[i]->look);
        if (late[i] && looks)
            tell_late(parts, all[i], names[i], now, report);
    }
    if (late[0] && !looks) {
        fettle_set_error(error, TEMPORARY, "the disks of this node %s%s",
                         parts->disks.why ? "cannot be read: " : "do not answer",
                         parts->disks.why ? parts->disks.why : "");
        return false;
    }
    tell_disks(parts, report);
    if (looks || !late[1])
        tell_shared(parts, report);
    report->sources_whole = !late[2] && parts->source_names;
    add_texts(report->sources, parts->source_names);
    add_texts(report->bridges, parts->bridge_names);
    return true;
}

bool parts_tell_images(const struct parts *parts, const struct look_round *round, bool shared,
                       GError **error)
{
    const struct part *part = shared ? &parts->shared : &parts->disks;
    const char *why = NULL;
    if (!look_round_answered(round, &part->look))
        why = shared      ? "the shared folder does not answer here"
              : part->why ? "the disks here cannot be read"
                          : "the disks do not answer here";
    else if (shared && !*parts->marker)
        why = "the shared folder is not mounted here, or its server does not answer";
    else if (!shared && parts->space.total_mib == 0)
        why = "the disks here do not work";
    if (!why)
        return true;
    fettle_set_error(error, TEMPORARY, "%s%s%s: " IMAGES_NOT_KNOWN, why, part->why ? ": " : "",
                     part->why ? part->why : "");
    return false;
}

const GPtrArray *parts_taps(const struct parts *parts, const struct look_round *round,
                            GError **error)
{
    if (look_round_answered(round, &parts->taps.look))
        return parts->tap_texts;
    fettle_set_error(error, TEMPORARY, "the network here does not tell its tap devices%s%s",
                     parts->taps.why ? ": " : "", parts->taps.why ? parts->taps.why : "");
    return NULL;
}

const GPtrArray *parts_images(const struct parts *parts)
{
    return parts->images;
}
