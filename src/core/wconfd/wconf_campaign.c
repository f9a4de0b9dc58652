/*
 * How wconfd takes its seat: what the store has, the promises of the other candidates if the engine
 * is this node's store (docs/design/mastership.md), the mastership record, the lock journal, and
 * the first changes of a new master.
 */
#include <string.h>

#include "base/log.h"
#include "core/config/unheard.h"
#include "core/config/voucher.h"
#include "core/wconfd/wconf_private.h"
#include "proto/change.h"

struct wconf_campaign {
    struct promise_wish wish; /* of an engine that is this node's store */
    guint64 leap;             /* the serial before that of a person's word; or 0 */
    GPtrArray *word;          /* struct change: what a person's word puts on record then; or NULL */
    guint64 unheard_since;    /* with it: no node has told what it runs (SAF-09); 0: as they are */
    char signature[LIMIT_VOUCHER_CHARS + 1]; /* over the mastership; "": none */
};

struct wconf_campaign *wconf_campaign_new(void)
{
    return g_new0(struct wconf_campaign, 1);
}

void wconf_campaign_free(struct wconf_campaign *campaign)
{
    if (campaign->word)
        g_ptr_array_unref(campaign->word);
    g_free(campaign);
}

guint64 wconf_campaign_since(const struct wconf *wconf)
{
    return wconf->campaign->wish.since;
}

const char *wconf_signature(const struct wconf *wconf)
{
    return wconf->campaign->signature;
}

/* What is read, and which serial has changed what. */
struct reading {
    struct config_loading loading;
    bool logged;
    GArray *entries; /* struct entry; strings are owned */
};

struct entry {
    guint64 serial;
    char *kind, *key;
};

static void entry_clear(void *data)
{
    struct entry *entry = data;
    g_free(entry->kind);
    g_free(entry->key);
}

static void note_entry(struct reading *reading, const char *kind, const char *key, guint64 version)
{
    if (!reading->logged)
        return;
    struct entry entry = {version, g_strdup(kind), g_strdup(key)};
    g_array_append_val(reading->entries, entry);
}

static void read_object(const char *kind, const char *key, guint64 version, json_t *object,
                        void *data)
{
    struct reading *reading = data;
    note_entry(reading, kind, key, version);
    if (object)
        config_load_object(kind, key, version, object, &reading->loading);
}

static bool read_text(const char *kind, const char *key, guint64 version, const char *text,
                      void *data)
{
    struct reading *reading = data;
    note_entry(reading, kind, key, version);
    return !text || config_load_text(kind, key, version, text, &reading->loading);
}

static int compare_serials(const void *a, const void *b)
{
    const struct entry *left = a, *right = b;
    return left->serial < right->serial ? -1 : left->serial > right->serial;
}

/* The log of changes begins where the engine knows them all, so that who was behind with the master
 * before is not filled anew. */
static void begin_log(struct wconf *wconf, const struct reading *reading)
{
    struct engine *engine = wconf->engine;
    guint64 epoch = 0;
    guint64 from = reading->logged ? engine->ops->log_from(engine, &epoch) : 0;
    wconf_stream_begin(wconf, from ? from : config_serial(wconf->committed), epoch);
    if (!from)
        return;
    g_array_sort(reading->entries, compare_serials);
    for (guint i = 0; i < reading->entries->len; i++) {
        const struct entry *entry = &g_array_index(reading->entries, struct entry, i);
        if (entry->serial > from)
            wconf_stream_add(wconf, entry->serial, entry->kind, entry->key);
    }
}

static bool read_all(struct wconf *wconf, struct reading *reading, GError **error)
{
    guint64 history = 0, serial = 0;
    struct engine *engine = wconf->engine;
    bool ok = engine->ops->load_text
                  ? engine->ops->load_text(engine, &history, &serial, read_text, reading, error)
                  : engine->ops->load(engine, &history, &serial, read_object, reading, error);
    g_autoptr(GError) unreadable = g_steal_pointer(&reading->loading.error);
    if (ok && unreadable)
        fettle_set_error(error, CORRUPT,
                         "the store has an object that cannot be read: %s; restore a copy",
                         unreadable->message);
    if (!ok || unreadable)
        return false;
    config_set_position(wconf->committed, history, serial);
    config_set_position(wconf->head, history, serial);
    return true;
}

static bool load_store(struct wconf *wconf, GError **error)
{
    g_autoptr(GArray) entries = g_array_new(FALSE, FALSE, sizeof(struct entry));
    bool logged = wconf->engine->ops->log_from != NULL;
    struct reading reading = {{wconf->committed, NULL}, logged, entries};
    g_array_set_clear_func(entries, entry_clear);
    if (!read_all(wconf, &reading, error))
        return false;
    if (!wconf_commit_ids_load(wconf, error))
        return false;
    config_share(wconf->committed, wconf->head);
    begin_log(wconf, &reading);
    wconf_followers_note(wconf);
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
    struct promise_wish *wish = &wconf->campaign->wish;
    struct mastership record;
    if (!wconf->engine->ops->observe(wconf->engine, &record, error))
        return false;
    wconf_engine_clear(wconf, record.epoch);
    wish->epoch = record.epoch + 1;
    wish->since = record.epoch;
    if (goes_on(&record, me)) {
        g_autoptr(GError) local = NULL;
        if (promises_go_on(wconf->env, wconf->committed, record.epoch, &local))
            return true;
        if (fettle_error_is(local, TEMPORARY))
            wconf_replaced(wconf, local);
        g_propagate_error(error, g_steal_pointer(&local));
        return false;
    }
    if (!promises_get(wconf->env, wconf->committed, wish, error))
        return false;
    me->epoch = wish->epoch;
    me->leap = wconf->campaign->leap;
    return true;
}

/* Where the store stands now. */
static void leapt(struct wconf *wconf, guint64 serial)
{
    config_set_position(wconf->committed, config_history(wconf->committed), serial);
    config_set_position(wconf->head, config_history(wconf->head), serial);
    wconf_stream_begin(wconf, serial, 0);
    wconf_followers_note(wconf);
}

/* SAF-01. The locks of another epoch are nobody's. */
static bool campaign(struct wconf *wconf, GError **error)
{
    struct mastership me = {0};
    g_strlcpy(me.node, wconf->env->node_uuid, sizeof me.node);
    g_strlcpy(me.boot_id, wconf->env->boot_id, sizeof me.boot_id);
    g_strlcpy(me.journal_id, locks_journal_id(wconf->journal), sizeof me.journal_id);
    if ((!wconf->engine->replicated && !ask_for_promises(wconf, &me, error)) ||
        !wconf->engine->ops->campaign(wconf->engine, &me, error))
        return false;
    wconf->epoch = me.epoch;
    if (me.leap)
        leapt(wconf, me.leap);
    if (me.epoch != locks_journal_epoch(wconf->journal))
        locks_reset(wconf->locks);
    return locks_journal_begin(wconf->journal, wconf->locks, me.epoch, error);
}

/* A node that was taken off the list while no master could tell it. */
static bool check_is_candidate(const struct wconf *wconf, GError **error)
{
    const struct node *node = config_get(wconf->committed, "node", wconf->env->node_uuid, NULL);
    if (node && node->master_candidate)
        return true;
    fettle_set_error(error, PERMISSION,
                     "node %s is no master candidate on record: the seat is left to another one",
                     config_node_name(wconf->committed, wconf->env->node_uuid));
    return false;
}

/* What cannot be given back is kept: the process ends, and the next one tries again. */
static void give_seat_back(struct wconf *wconf)
{
    g_autoptr(GError) error = NULL;
    if (wconf->engine->ops->resign(wconf->engine, "", &error))
        wconf->epoch = 0;
    else
        log_warning("", "the seat cannot be given back: %s", error->message);
}

/* What is replicated may change until the seat is taken; who may not have it is known then. */
static bool campaign_replicated(struct wconf *wconf, GError **error)
{
    if (!campaign(wconf, error) || !load_store(wconf, error) || !check_is_cluster(wconf, error))
        return false;
    if (check_is_candidate(wconf, error))
        return true;
    give_seat_back(wconf);
    return false;
}

static bool campaign_store(struct wconf *wconf, GError **error)
{
    return load_store(wconf, error) && check_is_cluster(wconf, error) &&
           check_is_ours(wconf, error) && campaign(wconf, error);
}

void wconf_take_signature(struct wconf *wconf, const char *signature)
{
    g_strlcpy(wconf->campaign->signature, signature, sizeof(wconf->campaign->signature));
}

bool wconf_campaign(struct wconf *wconf, GError **error)
{
    if (!(wconf->engine->replicated ? campaign_replicated : campaign_store)(wconf, error))
        return false;
    struct stamp stamp = {config_history(wconf->committed), wconf->epoch};
    voucher_sign(wconf->env, config_cluster(wconf->committed)->uuid, stamp, true,
                 wconf->campaign->signature);
    return true;
}

/* The first change of a new master: everybody reads here who it is. */
static bool record_master(struct wconf *wconf, GError **error)
{
    const struct cluster *cluster = config_cluster(wconf->committed);
    if (!strcmp(cluster->master_node, wconf->env->node_uuid))
        return true;
    g_autofree char *id = env_uuid(wconf->env);
    GPtrArray *changes = change_list_new();
    json_t *object = config_object_json(wconf->committed, "cluster", cluster->uuid);
    json_object_set_new(object, "master_node", json_string(wconf->env->node_uuid));
    g_ptr_array_add(changes, config_put(wconf->head, "cluster", cluster->uuid, object));
    return wconf_commit(wconf, id, changes, NULL, AUTHOR_COMMIT, NULL, NULL, error);
}

void wconf_put_on_record(struct wconf *wconf, GPtrArray *changes, guint64 unheard_since)
{
    struct wconf_campaign *campaign = wconf->campaign;
    campaign->unheard_since = unheard_since;
    if (campaign->word)
        g_ptr_array_unref(campaign->word);
    campaign->word = changes;
}

void wconf_go_alone(struct wconf *wconf, GPtrArray *changes, guint64 leap)
{
    wconf->campaign->leap = leap;
    wconf_put_on_record(wconf, changes, 0);
    promises_alone(wconf->env, &wconf->campaign->wish);
}

/* Before the word itself: with that on record the next master would not do it. */
static bool record_unheard(struct wconf *wconf, GError **error)
{
    g_autoptr(GPtrArray) nodes = config_list(wconf->head, "node");
    for (guint i = 0; i < nodes->len;) {
        g_autofree char *id = env_uuid(wconf->env);
        GPtrArray *changes = change_list_new();
        for (; i < nodes->len && changes->len < wconf_most_changes(wconf); i++) {
            const struct node *node = nodes->pdata[i];
            json_t *object = unheard_node(wconf->head, node, wconf->campaign->unheard_since);
            g_ptr_array_add(changes, config_put(wconf->head, "node", node->uuid, object));
        }
        if (!wconf_commit(wconf, id, changes, NULL, AUTHOR_COMMIT, NULL, NULL, error))
            return false;
    }
    return true;
}

static bool record_word(struct wconf *wconf, GError **error)
{
    struct wconf_campaign *campaign = wconf->campaign;
    g_autofree char *id = env_uuid(wconf->env);
    if (!campaign->word)
        return true;
    if (campaign->unheard_since && !record_unheard(wconf, error))
        return false;
    for (guint i = 0; i < campaign->word->len; i++) {
        struct change *change = campaign->word->pdata[i];
        change->version = 0;
        config_get(wconf->head, change->kind, change->key, &change->version);
    }
    return wconf_commit(wconf, id, g_steal_pointer(&campaign->word), NULL, AUTHOR_COMMIT, NULL,
                        NULL, error);
}

bool wconf_record_seat(struct wconf *wconf, GError **error)
{
    return record_master(wconf, error) && record_word(wconf, error);
}
