/*
 * Which daemons nodes run, of which version and since when, on record: that is what is known of a
 * node while it does not answer. A daemon that is new is put there at once; of one that has begun
 * anew the last word counts, once in LIMIT_SERVICE_RECORD_S for each node, so that one that falls
 * again and again does not fill the history. All of that is one commit of a pass. See
 * watcher_private.h.
 */
#include "base/log.h"
#include "core/watcher/watcher_private.h"

#include <string.h>

struct watcher_services {
    gint64 after_ms; /* boot clock: not before, as the last record of them failed */
};

struct watcher_services *watcher_services_new(void)
{
    return g_new0(struct watcher_services, 1);
}

void watcher_services_free(struct watcher_services *services)
{
    g_free(services);
}

/* `since` is what the daemon wrote down when it began: it does not change while it runs. */
static bool is_same(const struct service *known, const struct service_report *line)
{
    return known->since == line->since && strcmp(known->version, line->version) == 0;
}

static bool was_told(const struct node_report *report, guint before, const char *name)
{
    for (guint i = 0; i < before; i++) {
        const struct service_report *line = report->services->pdata[i];
        if (strcmp(line->name, name) == 0)
            return true;
    }
    return false;
}

/* One that does not run says nothing new; one without a version, which is etcd, is none of ours. */
static bool has_to_be_known(const struct node_report *report, guint at)
{
    const struct service_report *line = report->services->pdata[at];
    return line->state == SERVICE_RUNNING && *line->version != '\0' &&
           !was_told(report, at, line->name);
}

static void add_put(const struct config *config, const char *node,
                    const struct service_report *line, const char *key, GPtrArray *changes)
{
    const struct service service = {.uuid = (char *)key,
                                    .name = line->name,
                                    .node = (char *)node,
                                    .version = line->version,
                                    .since = line->since};
    g_ptr_array_add(changes, config_put(config, "service", key, service_to_json(&service)));
}

/* Whether the record of the node may change, and not only grow. */
static bool is_due(const struct watcher *watcher, const struct node_memory *memory)
{
    gint64 now_ms = watcher->env->ops->boot_ms(watcher->env);
    return memory->services_ms == 0 ||
           now_ms - memory->services_ms >= LIMIT_SERVICE_RECORD_S * G_GINT64_CONSTANT(1000);
}

static void add_node(const struct watcher *watcher, const struct node *node, GPtrArray *changes)
{
    const struct config *config = follow_config(watcher->follow);
    const struct node_report *report = reports_of(watcher->reports, node->uuid);
    struct node_memory *memory = g_hash_table_lookup(watcher->nodes, node->uuid);
    if (report == NULL || memory == NULL)
        return;
    bool due = is_due(watcher, memory);
    for (guint i = 0; i < report->services->len; i++) {
        const struct service_report *line = report->services->pdata[i];
        g_autofree char *key = config_service_key(node->uuid, line->name);
        const struct service *known = config_get(config, "service", key, NULL);
        if (!has_to_be_known(report, i) || (known != NULL && (!due || is_same(known, line))))
            continue;
        if (known != NULL)
            memory->services_pass = watcher->pass;
        add_put(config, node->uuid, line, key, changes);
    }
}

static const char *version_of(const struct node_report *report, const char *name)
{
    for (guint i = 0; report != NULL && i < report->services->len; i++) {
        const struct service_report *line = report->services->pdata[i];
        if (strcmp(line->name, name) == 0)
            return line->version;
    }
    return NULL;
}

bool watcher_may_make(const struct watcher *watcher, const char *kind)
{
    const struct config *config = follow_config(watcher->follow);
    if (!object_is_new(kind) || config_count(config, kind) > 0)
        return true;
    g_autoptr(GPtrArray) nodes = config_list(config, "node");
    for (guint i = 0; i < nodes->len; i++) {
        const struct node *node = nodes->pdata[i];
        const struct node_report *report = reports_of(watcher->reports, node->uuid);
        const char *version = node->master_candidate ? version_of(report, "wconfd") : NULL;
        if (version != NULL && strcmp(version, FETTLE_VERSION) != 0)
            return false;
    }
    return true;
}

/* What could not be stored has not used up its minute. */
static void note_renewed(const struct watcher *watcher)
{
    GHashTableIter iter;
    gpointer value;
    g_hash_table_iter_init(&iter, watcher->nodes);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        struct node_memory *memory = value;
        if (memory->services_pass == watcher->pass)
            memory->services_ms = watcher->env->ops->boot_ms(watcher->env);
    }
}

/* Somebody else was first, or has just removed a node: the next pass sees what is there now. */
static bool is_overtaken(const GError *error)
{
    return fettle_error_is(error, VERSION_CONFLICT) || fettle_error_is(error, UNKNOWN_ENTITY);
}

/* What is refused otherwise will be refused again, as by a configuration daemon of an older
 * version. */
static void commit(struct watcher *watcher, GPtrArray *changes)
{
    g_autoptr(GError) error = NULL;
    if (follow_commit(watcher->follow, "register_services", watcher->owner, changes,
                      follow_stamp(watcher->follow), 0, &error)) {
        note_renewed(watcher);
        return;
    }
    if (fettle_error_is(error, KILLED) || is_overtaken(error))
        return;
    watcher->services->after_ms =
        watcher->env->ops->boot_ms(watcher->env) + LIMIT_SERVICE_RECORD_S * G_GINT64_CONSTANT(1000);
    log_warning("", "the daemons of the nodes could not be put on record, tried again in %d s: %s",
                LIMIT_SERVICE_RECORD_S, error->message);
}

void watcher_register_services(struct watcher *watcher)
{
    if (task_killed() || watcher->env->ops->boot_ms(watcher->env) < watcher->services->after_ms)
        return;
    g_autoptr(GPtrArray) changes = watcher_changes_new();
    g_autoptr(GPtrArray) nodes = config_list(follow_config(watcher->follow), "node");
    if (!watcher_may_make(watcher, "service"))
        return;
    for (guint i = 0; i < nodes->len && changes->len + LIMIT_SERVICES <= LIMIT_REPAIR_BATCH; i++)
        add_node(watcher, nodes->pdata[i], changes);
    if (changes->len > 0)
        commit(watcher, changes);
}
