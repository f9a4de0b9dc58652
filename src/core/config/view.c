/* See view.h. */
#include "core/config/view.h"

#include "core/config/attachments.h"
#include "core/config/fault.h"

#include <string.h>

struct view view_new(guint64 job, bool named, const GPtrArray *names)
{
    struct view view = {.job = job};
    if (!job || !named)
        return view;
    view.names = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    for (guint i = 0; names && i < names->len; i++)
        g_hash_table_add(view.names, g_strdup(names->pdata[i]));
    return view;
}

void view_clear(struct view *view)
{
    g_clear_pointer(&view->names, g_hash_table_unref);
}

/* --- kinds --- */

bool view_want(struct view *view, const GPtrArray *kinds, GError **error)
{
    for (guint i = 0; i < kinds->len; i++) {
        guint64 bit = object_bit(kinds->pdata[i]);
        if (!bit) {
            fettle_set_error(error, WRONG_INPUT, "kinds[%u]: there is no kind of object \"%s\"", i,
                             (const char *)kinds->pdata[i]);
            return false;
        }
        view->kinds |= bit;
    }
    return true;
}

bool view_has_kind(const struct view *view, const char *kind)
{
    if (view->kinds && !(view->kinds & object_bit(kind)))
        return false;
    if (view->front && !object_is_front(kind))
        return false;
    switch (object_view(kind)) {
    case VIEW_JOB_NEVER:
    case VIEW_LUXID_NEVER:
        return !view->job;
    case VIEW_COPY_ONLY:
        return view->secrets && !view->job;
    case VIEW_JOB_ALL:
    case VIEW_JOB_NAMED:
    case VIEW_JOB_OWN:
        break;
    }
    return true;
}

/* --- single objects --- */

static bool is_named(const struct view *view, const char *name, const char *uuid)
{
    return g_hash_table_contains(view->names, name) || g_hash_table_contains(view->names, uuid);
}

/* An instance that is named, or one of whose volumes is. */
static bool has_instance(const struct view *view, const struct config *config, const char *uuid)
{
    const struct instance *instance = config_get(config, "instance", uuid, NULL);
    g_autoptr(GPtrArray) volumes = config_instance_volumes(config, uuid);
    bool has = is_named(view, instance ? instance->name : uuid, uuid);
    for (guint i = 0; i < volumes->len && !has; i++) {
        const struct volume *volume = volumes->pdata[i];
        has = is_named(view, volume->name, volume->uuid);
    }
    return has;
}

static bool has_volume(const struct view *view, const struct config *config,
                       const struct volume *volume)
{
    const struct attachment *attachment = attachment_of(volume);
    return is_named(view, volume->name, volume->uuid) ||
           (attachment && has_instance(view, config, attachment->instance));
}

/* Whether a task that the job has left stands on one of the instances. */
static bool is_owner(const struct view *view, const struct config *config, guint64 job)
{
    GHashTableIter iter;
    void *name;
    if (!view->names)
        return false;
    g_hash_table_iter_init(&iter, view->names);
    while (g_hash_table_iter_next(&iter, &name, NULL)) {
        const struct instance *instance = config_find(config, "instance", name, NULL);
        if (instance && instance->task_state != TASK_NONE && instance->task_owner == job)
            return true;
    }
    return false;
}

static bool has_job(const struct view *view, const struct config *config, guint64 job)
{
    return job == view->job || is_owner(view, config, job);
}

bool view_has(const struct view *view, const struct config *config, const char *kind,
              const char *key)
{
    if (!view_has_kind(view, kind))
        return false;
    if (view->job && object_view(kind) == VIEW_JOB_OWN)
        return has_job(view, config, g_ascii_strtoull(key, NULL, 10));
    const void *value =
        view->names && config_is_part(kind) ? config_get(config, kind, key, NULL) : NULL;
    if (value && !strcmp(kind, "volume"))
        return has_volume(view, config, value);
    const char *instance = value ? config_instance_of(kind, value) : NULL;
    return !instance || has_instance(view, config, instance);
}

bool view_loses(const struct view *view, const char *kind)
{
    return view->names && view_has_kind(view, kind) && !strcmp(kind, "volume");
}

/* --- all of them --- */

struct walk {
    const struct view *view;
    const struct config *config;
    config_visit visit;
    void *data;
};

static void visit_any(const char *kind, const char *key, guint64 version, const void *value,
                      void *data)
{
    const struct walk *walk = data;
    if (view_has(walk->view, walk->config, kind, key))
        walk->visit(kind, key, version, value, walk->data);
}

static void visit_key(const struct walk *walk, const char *kind, const char *key)
{
    guint64 version = 0;
    const void *value = config_get(walk->config, kind, key, &version);
    if (value && view_has_kind(walk->view, kind))
        walk->visit(kind, key, version, value, walk->data);
}

static void visit_tags(const struct walk *walk, enum tag_kind kind, const char *object)
{
    g_autoptr(GPtrArray) tags = config_tags(walk->config, kind, object);
    for (guint i = 0; i < tags->len; i++) {
        g_autofree char *key = config_tag_key(kind, object, tags->pdata[i]);
        visit_key(walk, "tag", key);
    }
}

static void visit_kind(const struct walk *walk, const char *kind)
{
    static const struct {
        const char *kind;
        enum tag_kind tags;
    } tagged[] = {{"cluster", TAG_CLUSTER}, {"nodegroup", TAG_NODEGROUP}, {"node", TAG_NODE}};
    g_autoptr(GPtrArray) keys = config_keys(walk->config, kind);
    for (guint i = 0; i < keys->len; i++) {
        visit_key(walk, kind, keys->pdata[i]);
        for (guint k = 0; k < G_N_ELEMENTS(tagged); k++) {
            if (!strcmp(tagged[k].kind, kind))
                visit_tags(walk, tagged[k].tags, keys->pdata[i]);
        }
    }
}

static void visit_job(const struct walk *walk, guint64 job)
{
    g_autofree char *key = g_strdup_printf("%" G_GUINT64_FORMAT, job);
    visit_key(walk, "job", key);
}

/* It names its only replica, as the replica names it (invariants.c). */
static void visit_instance(const struct walk *walk, const struct instance *instance)
{
    visit_key(walk, "instance", instance->uuid);
    visit_key(walk, "replica", instance->replica);
    visit_tags(walk, TAG_INSTANCE, instance->uuid);
    g_autofree char *key = fault_key("instance", instance->uuid);
    visit_key(walk, "fault", key);
    visit_key(walk, "stuck", key);
    g_autoptr(GPtrArray) volumes = config_instance_volumes(walk->config, instance->uuid);
    for (guint i = 0; i < volumes->len; i++)
        visit_key(walk, "volume", ((const struct volume *)volumes->pdata[i])->uuid);
    if (instance->task_state != TASK_NONE && instance->task_owner != walk->view->job)
        visit_job(walk, instance->task_owner);
}

static void visit_volume(const struct walk *walk, const struct volume *volume, GHashTable *seen)
{
    const struct attachment *attachment = attachment_of(volume);
    const struct instance *instance =
        attachment ? config_get(walk->config, "instance", attachment->instance, NULL) : NULL;
    if (!instance)
        visit_key(walk, "volume", volume->uuid);
    else if (g_hash_table_add(seen, (void *)instance))
        visit_instance(walk, instance);
}

static void visit_volumes(const struct walk *walk, const char *name, GHashTable *seen)
{
    g_autoptr(GPtrArray) volumes = config_find_all(walk->config, "volume", name);
    for (guint i = 0; i < volumes->len; i++)
        visit_volume(walk, volumes->pdata[i], seen);
}

static void visit_named(const struct walk *walk)
{
    g_autoptr(GHashTable) seen = g_hash_table_new(g_direct_hash, g_direct_equal);
    GHashTableIter iter;
    void *name;
    g_hash_table_iter_init(&iter, walk->view->names);
    while (g_hash_table_iter_next(&iter, &name, NULL)) {
        const struct instance *instance = config_find(walk->config, "instance", name, NULL);
        visit_key(walk, "removed", name);
        if (instance && g_hash_table_add(seen, (void *)instance))
            visit_instance(walk, instance);
        visit_volumes(walk, name, seen);
    }
}

void view_each(const struct view *view, const struct config *config, config_visit visit, void *data)
{
    struct walk walk = {view, config, visit, data};
    if (!view->names) {
        config_each(config, visit_any, &walk);
        return;
    }
    g_autoptr(GPtrArray) kinds = config_kinds(config);
    for (guint i = 0; i < kinds->len; i++) {
        if (object_view(kinds->pdata[i]) == VIEW_JOB_ALL)
            visit_kind(&walk, kinds->pdata[i]);
    }
    visit_job(&walk, view->job);
    visit_named(&walk);
}

guint view_count(const struct view *view, const struct config *config)
{
    g_autoptr(GPtrArray) kinds = config_kinds(config);
    guint count = 0;
    for (guint i = 0; i < kinds->len; i++) {
        bool others = view->job && object_view(kinds->pdata[i]) == VIEW_JOB_OWN;
        if (view_has_kind(view, kinds->pdata[i]) && !others)
            count += config_count(config, kinds->pdata[i]);
    }
    return count;
}
