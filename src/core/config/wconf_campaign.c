/*
 * How wconfd takes its seat: what the store has, the promises of the other candidates if the engine
 * is this node's store (docs/design/mastership.md), the mastership record, the lock journal, and
 * the first changes of a new master.
 */
#include <string.h>

#include "core/config/wconf_private.h"

static void free_change(void *data)
{
    change_free(data);
}

static bool load_store(struct wconf *wconf, GError **error)
{
    struct config_loading loading = {wconf->committed, NULL};
    guint64 history;
    guint64 serial;
    if (!wconf->engine->ops->load(wconf->engine, &history, &serial, config_load_object, &loading,
                                  error)) {
        g_clear_error(&loading.error);
        return false;
    }
    if (loading.error) {
        fettle_set_error(error, CORRUPT,
                         "the store has an object that cannot be read: %s; restore a copy",
                         loading.error->message);
        g_error_free(loading.error);
        return false;
    }
    config_set_position(wconf->committed, history, serial);
    config_set_position(wconf->head, history, serial);
    config_share(wconf->committed, wconf->head);
    wconf->log_floor = serial;
    wconf_copies_note(wconf);
    return true;
}

static bool check_is_cluster(const struct wconf *wconf, GError **error)
{
    if (config_cluster(wconf->committed))
        return true;
    fettle_set_error(error, CORRUPT, "the store has no cluster in it; restore a copy");
    return false;
}

/* The store of another node, put here by hand, is no way to become master. */
static bool check_is_ours(const struct wconf *wconf, GError **error)
{
    const struct cluster *cluster = config_cluster(wconf->committed);
    if (!strcmp(cluster->master_node, wconf->env->node_uuid))
        return true;
    fettle_set_error(error, NOT_MASTER, "the master is %s, this is node %s",
                     config_node_name(wconf->committed, cluster->master_node),
                     wconf->env->node_uuid);
    return false;
}

/* Whether the mastership on record is that of this boot and journal, which goes on (SAF-01). */
static bool goes_on(const struct mastership *record, const struct mastership *me)
{
    return record->epoch && !strcmp(record->node, me->node) &&
           !strcmp(record->boot_id, me->boot_id) && !strcmp(record->journal_id, me->journal_id);
}

static bool ask_for_promises(struct wconf *wconf, struct mastership *me, GError **error)
{
    struct mastership record;
    if (!wconf->engine->ops->observe(wconf->engine, &record, error))
        return false;
    wconf->wish.epoch = record.epoch + 1;
    wconf->wish.since = record.epoch;
    if (goes_on(&record, me)) {
        g_autoptr(GError) local = NULL;
        if (promises_go_on(wconf->env, wconf->committed, record.epoch, &local))
            return true;
        if (fettle_error_is(local, TEMPORARY))
            wconf_replaced(wconf, local);
        g_propagate_error(error, g_steal_pointer(&local));
        return false;
    }
    if (!promises_get(wconf->env, wconf->committed, &wconf->wish, error))
        return false;
    me->epoch = wconf->wish.epoch;
    return true;
}

/* SAF-01. The locks of another epoch are nobody's. */
static bool campaign(struct wconf *wconf, GError **error)
{
    struct mastership me = {0};
    g_strlcpy(me.node, wconf->env->node_uuid, sizeof me.node);
    g_strlcpy(me.boot_id, wconf->env->boot_id, sizeof me.boot_id);
    g_strlcpy(me.journal_id, journal_id(wconf->journal), sizeof me.journal_id);
    if ((!wconf->engine->replicated && !ask_for_promises(wconf, &me, error)) ||
        !wconf->engine->ops->campaign(wconf->engine, &me, error))
        return false;
    wconf->epoch = me.epoch;
    if (me.epoch != journal_epoch(wconf->journal))
        locks_reset(wconf->locks);
    return journal_begin(wconf->journal, wconf->locks, me.epoch, error);
}

/* What is replicated may change until the seat is taken. */
bool wconf_campaign(struct wconf *wconf, GError **error)
{
    if (wconf->engine->replicated)
        return campaign(wconf, error) && load_store(wconf, error) && check_is_cluster(wconf, error);
    return load_store(wconf, error) && check_is_cluster(wconf, error) &&
           check_is_ours(wconf, error) && campaign(wconf, error);
}

/* The first change of a new master: everybody reads here who it is. */
static bool record_master(struct wconf *wconf, GError **error)
{
    const struct cluster *cluster = config_cluster(wconf->committed);
    if (!strcmp(cluster->master_node, wconf->env->node_uuid))
        return true;
    g_autofree char *id = env_uuid(wconf->env);
    GPtrArray *changes = g_ptr_array_new_with_free_func(free_change);
    json_t *object = config_object_json(wconf->committed, "cluster", cluster->uuid);
    json_object_set_new(object, "master_node", json_string(wconf->env->node_uuid));
    g_ptr_array_add(changes, config_put(wconf->head, "cluster", cluster->uuid, object));
    return wconf_commit(wconf, id, changes, NULL, AUTHOR_COMMIT, NULL, NULL, error);
}

void wconf_go_alone(struct wconf *wconf, GPtrArray *changes)
{
    if (wconf->word)
        g_ptr_array_unref(wconf->word);
    wconf->word = changes;
    wconf->wish.alone = true;
}

static bool record_word(struct wconf *wconf, GError **error)
{
    g_autofree char *id = env_uuid(wconf->env);
    if (!wconf->word)
        return true;
    for (guint i = 0; i < wconf->word->len; i++) {
        struct change *change = wconf->word->pdata[i];
        change->version = 0;
        config_get(wconf->head, change->kind, change->key, &change->version);
    }
    return wconf_commit(wconf, id, g_steal_pointer(&wconf->word), NULL, AUTHOR_COMMIT, NULL, NULL,
                        error);
}

bool wconf_record_seat(struct wconf *wconf, GError **error)
{
    return record_master(wconf, error) && record_word(wconf, error);
}
