/*
 * What must hold when the faults have stopped: one master, whose changes every candidate has, and
 * everything in it that was answered.
 */
#include <string.h>

#include "mastership.h"

/* --- who is a candidate --- */

struct listing {
    bool candidate[MS_HOSTS];
    struct ms *ms;
};

static void take_node(const char *kind, const char *key, guint64 version, json_t *object,
                      void *data)
{
    struct listing *listing = data;
    const struct ms_host *host = strcmp(kind, "node") ? NULL : ms_host_of(listing->ms, key);
    if (host)
        listing->candidate[host->index] = json_is_true(json_object_get(object, "master_candidate"));
}

/* --- contents --- */

struct comparison {
    const struct model_store *other;
    GHashTable *objects; /* "kind key" -> json_t, of the first */
    char *difference;
};

static void json_free(void *data)
{
    json_decref(data);
}

static void remember(const char *kind, const char *key, guint64 version, json_t *object, void *data)
{
    g_hash_table_replace(data, g_strdup_printf("%s %s %" G_GUINT64_FORMAT, kind, key, version),
                         json_incref(object));
}

static void compare(const char *kind, const char *key, guint64 version, json_t *object, void *data)
{
    struct comparison *comparison = data;
    g_autofree char *name = g_strdup_printf("%s %s %" G_GUINT64_FORMAT, kind, key, version);
    const json_t *other = g_hash_table_lookup(comparison->objects, name);
    if (!comparison->difference && (!other || !json_equal(other, object)))
        comparison->difference = g_steal_pointer(&name);
}

/* Digests tell versions, this tells what is in them. */
static char *difference(const struct model_store *a, const struct model_store *b)
{
    g_autoptr(GHashTable) objects =
        g_hash_table_new_full(g_str_hash, g_str_equal, g_free, json_free);
    struct comparison comparison = {b, objects, NULL};
    model_store_each(a, remember, objects);
    model_store_each(b, compare, &comparison);
    if (!comparison.difference && model_store_count(a) != model_store_count(b))
        comparison.difference = g_strdup("objects that the other lacks");
    return comparison.difference;
}

static char *tags_differ(const struct ms *ms, const struct model_store *store)
{
    GHashTableIter iter;
    void *key, *version;
    g_hash_table_iter_init(&iter, ms->tags);
    while (g_hash_table_iter_next(&iter, &key, &version))
        if (model_store_version(store, "tag", key) != GPOINTER_TO_SIZE(version))
            return g_strdup_printf("tag %s is there at version %" G_GUINT64_FORMAT
                                   ", not at %" G_GUINT64_FORMAT,
                                   (char *)key, model_store_version(store, "tag", key),
                                   (guint64)GPOINTER_TO_SIZE(version));
    return NULL;
}

/* --- rest --- */

static struct ms_host *only_master(struct ms *ms)
{
    struct ms_host *master = NULL;
    for (guint i = 0; i < ms->hosts_count; i++) {
        struct ms_host *host = &ms->hosts[i];
        if (!host->epoch)
            continue;
        if (master)
            return NULL;
        master = host;
    }
    return master && master->epoch == ms->newest_epoch ? master : NULL;
}

/* By its id a commit is known to be stored when it is repeated, whoever is the master by then
 * (SAF-04): so the engine has all of them, and each copy those up to its serial. */
static char *ids_differ(const struct ms *ms, const struct ms_host *host)
{
    const struct ms_commit *commit = NULL;
    while ((commit = ms_commit_after(ms, commit ? commit->serial : 0))) {
        guint64 serial = commit->serial;
        const char *id = commit->id;
        guint64 kept = id ? model_store_lookup(host->store, id) : serial;
        guint64 known = id && host->epoch ? host->real->ops->lookup(host->real, id) : serial;
        if (kept != serial || known != serial)
            return g_strdup_printf("the commit of serial %" G_GUINT64_FORMAT
                                   " is known as %" G_GUINT64_FORMAT " to the copy of %s"
                                   ", and as %" G_GUINT64_FORMAT " to its engine",
                                   serial, kept, host->uuid, known);
    }
    return NULL;
}

static char *copy_unrest(const struct ms *ms, const struct ms_host *host,
                         const struct ms_host *master)
{
    struct copy_position at;
    model_store_position(host->store, &at);
    const struct ms_commit *last = ms_commit_at(ms, ms_last_serial(ms));
    bool own = host == master && !ms->etcd;
    if (at.serial != last->serial || at.digest != last->digest ||
        at.role != (own ? COPY_ENGINE : COPY_FOLLOWS) || at.epoch != master->epoch)
        return g_strdup_printf("%s has serial %" G_GUINT64_FORMAT " of epoch %" G_GUINT64_FORMAT
                               ", role %d",
                               host->uuid, at.serial, at.epoch, at.role);
    char *why = tags_differ(ms, host->store);
    return why ? why : ids_differ(ms, host);
}

char *ms_unrest(struct ms *ms)
{
    struct ms_host *master = only_master(ms);
    const struct model_store *first = NULL;
    if (!master)
        return g_strdup("there is no master, or more than one");
    struct listing listing = {.ms = ms};
    for (guint i = 0; i < ms->hosts_count; i++)
        listing.candidate[i] = ms->etcd;
    if (!ms->etcd)
        model_store_each(master->store, take_node, &listing);
    for (guint i = 0; i < ms->hosts_count; i++) {
        const struct ms_host *host = &ms->hosts[i];
        char *why = listing.candidate[i] ? copy_unrest(ms, host, master)
                                         : g_strdup_printf("%s is no candidate", host->uuid);
        if (!why) {
            why = first ? difference(first, host->store) : NULL;
            first = host->store;
        }
        if (why)
            return why;
    }
    return NULL;
}
