/* Life and mastership; see etcd_engine.h. Commits are etcd_commit.c, reading everything is
 * etcd_load.c. */
#include "io/etcd/etcd_private.h"

#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "io/etcd/etcd_value.h"
#include "io/loop.h"
#include "proto/seal.h"

void etcd_engine_ref(struct etcd_engine *engine)
{
    engine->refs++;
}

void etcd_engine_unref(struct etcd_engine *engine)
{
    if (--engine->refs > 0)
        return;
    g_queue_clear(&engine->id_order);
    g_hash_table_unref(engine->ids);
    task_group_unref(engine->tasks);
    g_free(engine->lost_why);
    g_free(engine->prefix);
    g_free(engine);
}

/* A lease is longer than a call. */
json_t *etcd_engine_call(struct etcd_engine *engine, const char *path, json_t *body, GError **error)
{
    if (!engine->closed)
        return etcd_call_wait(engine->client, path, body, engine->lease_s * 750, error);
    json_decref(body);
    fettle_set_error(error, KILLED, "the engine was closed");
    return NULL;
}

void etcd_engine_set_lease(struct engine *base, guint seconds)
{
    ((struct etcd_engine *)base)->lease_s = seconds;
}

void etcd_engine_on_damaged(struct engine *base, void (*tell)(const char *what))
{
    ((struct etcd_engine *)base)->tell_damaged = tell;
}

void etcd_engine_distrust(struct etcd_engine *engine, const char *key)
{
    if (engine->closed)
        return;
    g_autofree char *what = g_strdup_printf(
        "the member of etcd at %s answered a value of %s that was never stored: its data is "
        "damaged; %s",
        etcd_client_url(engine->client), key,
        etcd_client_count(engine->client) > 1
            ? "another member is asked. Give it fresh data: fettle cluster engine renew NODE"
            : "there is no other one to ask; restore a backup");
    if (engine->tell_damaged != NULL)
        engine->tell_damaged(what);
    etcd_client_next(engine->client);
}

bool etcd_engine_ask_each(struct etcd_engine *engine,
                          bool (*ask)(struct etcd_engine *engine, void *data, GError **error),
                          void *data, GError **error)
{
    guint left = engine->closed ? 1 : etcd_client_count(engine->client);
    for (;;) {
        g_autoptr(GError) why = NULL;
        if (ask(engine, data, &why))
            return true;
        if (--left > 0 && fettle_error_is(why, CORRUPT))
            continue;
        g_propagate_error(error, g_steal_pointer(&why));
        return false;
    }
}

char *etcd_engine_key(const struct etcd_engine *engine, const char *name)
{
    return g_strconcat(engine->prefix, name, NULL);
}

/* --- mastership: held, lost --- */

bool etcd_engine_holds(const struct etcd_engine *engine)
{
    return engine->created != 0 && engine->lost_why == NULL &&
           loop_boot_ms() < engine->held_until_ms;
}

guint64 etcd_engine_epoch(const struct etcd_engine *engine)
{
    return engine->created != 0 ? engine->epoch_base + (guint64)engine->created : 0;
}

json_t *etcd_engine_is_master(const struct etcd_engine *engine)
{
    g_autofree char *key = etcd_engine_key(engine, "master");
    return json_make("[o, o]", etcd_compare(key, ETCD_CREATE_REVISION, engine->created),
                     etcd_compare(key, ETCD_MOD_REVISION, engine->taken));
}

static void end_mastership(struct etcd_engine *engine)
{
    loop_timer_cancel(engine->lease_timer);
    engine->lease_timer = 0;
    engine->held_until_ms = 0;
}

void etcd_engine_lose(struct etcd_engine *engine, const char *format, ...)
{
    if (engine->lost_why != NULL || engine->created == 0)
        return;
    va_list args;
    va_start(args, format);
    engine->lost_why = g_strdup_vprintf(format, args);
    va_end(args);
    end_mastership(engine);
    etcd_queue_fail(engine);
    if (engine->lost != NULL)
        engine->lost(engine->lost_why, engine->lost_data);
}

static void lease_cb(void *data)
{
    struct etcd_engine *engine = data;
    gint64 left = engine->held_until_ms - loop_boot_ms();

    engine->lease_timer = 0;
    if (left <= 0)
        etcd_engine_lose(engine, "the lease could not be renewed in time: etcd does not answer, or "
                                 "this process stood still");
    else
        engine->lease_timer = loop_timer((guint)left, lease_cb, engine);
}

/* The lease counts from the sending of what renewed it (SAF-08). */
static void lease_renewed(struct etcd_engine *engine, gint64 sent_ms)
{
    engine->held_until_ms = sent_ms + engine->lease_s * 1000 - ETCD_LEASE_MARGIN_MS;
    if (engine->lease_timer == 0)
        lease_cb(engine);
}

/* Whether the lease was renewed; `ret_gone`: etcd knows it no more. */
static bool keep_lease(struct etcd_engine *engine, gint64 lease, bool *ret_gone, GError **error)
{
    gint64 sent = loop_boot_ms();
    json_t *body = json_make("{s:o}", "ID", json_sprintf("%" G_GINT64_FORMAT, lease));
    json_autoptr answer = etcd_engine_call(engine, ETCD_LEASE_KEEP, body, error);

    *ret_gone = false;
    if (answer == NULL)
        return false;
    *ret_gone = etcd_lease_left(answer) <= 0;
    if (*ret_gone) {
        fettle_set_error(error, NOT_MASTER, "etcd does not know the lease any more");
        return false;
    }
    lease_renewed(engine, sent);
    return true;
}

static void keep_task(void *data)
{
    struct etcd_engine *engine = data;

    while (loop_sleep(engine->lease_s * 1000 / 3) && engine->lost_why == NULL &&
           engine->created != 0) {
        g_autoptr(GError) error = NULL;
        bool gone = false;
        if (!keep_lease(engine, engine->lease, &gone, &error) && gone)
            etcd_engine_lose(engine, "the lease has ended: %s", error->message);
    }
    etcd_engine_unref(engine);
}

/* --- observing --- */

/* The keys that tell who may be master, read at one moment. */
struct standing {
    struct mastership master; /* epoch 0: nobody */
    gint64 created, written, lease;
    guint64 epoch_base;
    char next[37];
    char *moved; /* NULL: not */
};

bool etcd_mastership_parse(const char *text, struct mastership *ret)
{
    const char *node, *boot_id, *journal_id;
    json_autoptr value = seal_from_text(text, strlen(text), KIB(4), NULL);

    if (value == NULL || json_unpack(value, "{s:s, s:s, s:s}", "node", &node, "boot_id", &boot_id,
                                     "journal_id", &journal_id) != 0)
        return false;
    g_strlcpy(ret->node, node, sizeof ret->node);
    g_strlcpy(ret->boot_id, boot_id, sizeof ret->boot_id);
    g_strlcpy(ret->journal_id, journal_id, sizeof ret->journal_id);
    return true;
}

static bool parse_mastership(struct etcd_engine *engine, const struct etcd_kv *kv,
                             struct mastership *ret, GError **error)
{
    if (etcd_mastership_parse(kv->value, ret))
        return true;
    g_autofree char *key = etcd_words(kv->key), *value = etcd_words(kv->value);
    etcd_engine_distrust(engine, key);
    fettle_set_error(error, CORRUPT, "etcd: the value of %s is no mastership: %s", key, value);
    return false;
}

static bool wrong_value(struct etcd_engine *engine, const struct etcd_kv *kv, GError **error)
{
    g_autofree char *key = etcd_words(kv->key), *value = etcd_words(kv->value);
    fettle_set_error(error, CORRUPT, "etcd: the value of %s does not match its checksum: %s", key,
                     value);
    etcd_engine_distrust(engine, key);
    return false;
}

/* `name`: what was asked for; the key that a member says it is of is its own word. */
static bool standing_take(struct etcd_engine *engine, const char *name, const struct etcd_kv *kv,
                          struct standing *standing, GError **error)
{
    if (strcmp(name, "master") == 0) {
        standing->created = kv->create_revision;
        standing->written = kv->mod_revision;
        standing->lease = kv->lease;
        return parse_mastership(engine, kv, &standing->master, error);
    }
    if (strcmp(name, "epoch_base") == 0)
        return etcd_count_parse(name, kv->value, &standing->epoch_base) ||
               wrong_value(engine, kv, error);
    if (strcmp(name, "next") == 0)
        g_strlcpy(standing->next, kv->value, sizeof standing->next);
    else if (strcmp(name, "moved") == 0)
        standing->moved = g_strdup(kv->value);
    return true;
}

/* Temporary whatever the reason: nothing was asked for. */
static bool no_answer(GError **error, GError *reason)
{
    if (fettle_error_is(reason, KILLED) || fettle_error_is(reason, CORRUPT))
        g_propagate_error(error, reason);
    else {
        fettle_set_error(error, TEMPORARY, "%s", reason->message);
        g_error_free(reason);
    }
    return false;
}

/* As one member answers it. */
static bool ask_standing(struct etcd_engine *engine, void *data, GError **error)
{
    static const char *const names[] = {"master", "epoch_base", "next", "moved"};
    struct standing *ret = data;
    GError *reason = NULL;
    json_t *gets = json_array();

    g_free(ret->moved);
    *ret = (struct standing){.moved = NULL};
    for (guint i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autofree char *key = etcd_engine_key(engine, names[i]);
        json_array_append_new(gets, etcd_get(key));
    }
    json_autoptr answer =
        etcd_engine_call(engine, ETCD_TXN, etcd_txn(json_array(), gets, NULL), &reason);
    for (guint i = 0; answer != NULL && reason == NULL && i < G_N_ELEMENTS(names); i++) {
        g_autoptr(GPtrArray) kvs = etcd_txn_kvs(answer, i, &reason);
        if (kvs != NULL && kvs->len > 0)
            standing_take(engine, names[i], kvs->pdata[0], ret, &reason);
    }
    if (reason == NULL && ret->created != 0)
        ret->master.epoch = ret->epoch_base + (guint64)ret->created;
    return reason == NULL || no_answer(error, reason);
}

static bool read_standing(struct etcd_engine *engine, struct standing *ret, GError **error)
{
    *ret = (struct standing){.moved = NULL};
    return etcd_engine_ask_each(engine, ask_standing, ret, error);
}

static bool engine_observe(struct engine *base, struct mastership *ret_master, GError **error)
{
    struct standing standing;
    struct etcd_engine *engine = (struct etcd_engine *)base;
    etcd_engine_ref(engine);
    bool ok = read_standing(engine, &standing, error);
    etcd_engine_unref(engine);

    *ret_master = standing.master;
    g_free(standing.moved);
    return ok;
}

/* --- campaign --- */

static bool same_seat(const struct mastership *a, const struct mastership *b)
{
    return strcmp(a->node, b->node) == 0 && strcmp(a->boot_id, b->boot_id) == 0 &&
           strcmp(a->journal_id, b->journal_id) == 0;
}

static char *mastership_text(const struct mastership *me)
{
    json_autoptr value = json_make("{s:s, s:s, s:s}", "node", me->node, "boot_id", me->boot_id,
                                   "journal_id", me->journal_id);
    return seal_to_text(value);
}

static void taken(struct etcd_engine *engine, struct mastership *me, const struct standing *seat)
{
    engine->created = seat->created;
    engine->taken = seat->written;
    engine->lease = seat->lease;
    engine->epoch_base = seat->epoch_base;
    me->epoch = seat->epoch_base + (guint64)seat->created;
    etcd_engine_ref(engine);
    task_spawn(engine->tasks, keep_task, engine);
}

static gint64 grant_lease(struct etcd_engine *engine, guint ttl_s, GError **error)
{
    json_t *body = json_make("{s:o}", "TTL", json_sprintf("%u", ttl_s));
    GError *reason = NULL;
    json_autoptr answer = etcd_engine_call(engine, ETCD_LEASE_GRANT, body, &reason);
    gint64 lease = answer != NULL ? etcd_number(answer, "ID") : 0;

    if (reason != NULL)
        no_answer(error, reason);
    else if (lease == 0)
        fettle_set_error(error, TEMPORARY, "etcd granted a lease without a number");
    return lease;
}

static void revoke_lease(struct etcd_engine *engine, gint64 lease)
{
    json_t *body = json_make("{s:o}", "ID", json_sprintf("%" G_GINT64_FORMAT, lease));
    json_decref(etcd_engine_call(engine, ETCD_LEASE_REVOKE, body, NULL));
}

/* The transaction that writes the key, made anew or over what was read (`seat->created`,
 * `written`: 0 or that); what stands there afterwards decides, as it may have been sent twice. To
 * whom the seat was handed is over with it: should this node be lost at once, nobody is to wait for
 * it. */
static bool put_master(struct etcd_engine *engine, const struct mastership *me,
                       struct standing *seat, GError **error)
{
    g_autofree char *key = etcd_engine_key(engine, "master");
    g_autofree char *moved = etcd_engine_key(engine, "moved");
    g_autofree char *next = etcd_engine_key(engine, "next");
    g_autofree char *value = mastership_text(me);
    json_t *compares =
        json_make("[o, o, o]", etcd_compare(key, ETCD_CREATE_REVISION, seat->created),
                  etcd_compare(key, ETCD_MOD_REVISION, seat->written),
                  etcd_compare(moved, ETCD_CREATE_REVISION, 0));
    json_t *then =
        json_make("[o, o, o]", etcd_put(key, value, seat->lease), etcd_get(key), etcd_delete(next));
    json_t *otherwise = json_make("[o]", etcd_get(key));
    GError *reason = NULL;

    json_autoptr answer =
        etcd_engine_call(engine, ETCD_TXN, etcd_txn(compares, then, otherwise), &reason);
    if (answer == NULL)
        return no_answer(error, reason);
    g_autoptr(GPtrArray) kvs = etcd_txn_kvs(answer, etcd_succeeded(answer) ? 1 : 0, error);
    const struct etcd_kv *kv = kvs != NULL && kvs->len > 0 ? kvs->pdata[0] : NULL;
    if (kv != NULL && kv->lease == seat->lease && kv->mod_revision != seat->written) {
        seat->created = kv->create_revision;
        seat->written = kv->mod_revision;
        return true;
    }
    if (kvs != NULL)
        fettle_set_error(error, NOT_MASTER, "another candidate was faster");
    return false;
}

static bool take_free_seat(struct etcd_engine *engine, struct mastership *me, struct standing *seat,
                           GError **error)
{
    gint64 sent = loop_boot_ms();

    seat->lease = grant_lease(engine, engine->lease_s, error);
    if (seat->lease == 0)
        return false;
    if (!put_master(engine, me, seat, error)) {
        revoke_lease(engine, seat->lease);
        return false;
    }
    taken(engine, me, seat);
    lease_renewed(engine, sent);
    return true;
}

/* The process's successor within the lease: the epoch stays (SAF-01). It writes the key once more,
 * so that what its predecessor has sent cannot arrive any more (SAF-04); one that cannot write is
 * no master either (SAF-08): an etcd that is full reads, and keeps leases alive. */
static bool continue_seat(struct etcd_engine *engine, struct mastership *me, struct standing *seat,
                          GError **error)
{
    bool gone = false;
    GError *reason = NULL;

    if (!keep_lease(engine, seat->lease, &gone, &reason))
        return no_answer(error, reason);
    if (!put_master(engine, me, seat, error)) {
        end_mastership(engine);
        return false;
    }
    taken(engine, me, seat);
    return true;
}

static bool may_try(const struct standing *seat, const struct mastership *me, GError **error)
{
    if (seat->moved != NULL)
        fettle_set_error(error, NOT_MASTER,
                         "the configuration has left etcd: %s; look at that node", seat->moved);
    else if (seat->created != 0)
        fettle_set_error(error, NOT_MASTER, "the master is node %s", seat->master.node);
    else if (*seat->next != '\0' && strcmp(seat->next, me->node) != 0)
        fettle_set_error(error, NOT_MASTER, "mastership was handed to node %s", seat->next);
    else
        return true;
    return false;
}

static bool engine_campaign(struct engine *base, struct mastership *me, GError **error)
{
    struct etcd_engine *engine = (struct etcd_engine *)base;
    struct standing seat;
    bool ok = false;

    g_assert(engine->created == 0);
    etcd_engine_ref(engine);
    if (read_standing(engine, &seat, error)) {
        if (seat.moved == NULL && seat.created != 0 && same_seat(&seat.master, me))
            ok = continue_seat(engine, me, &seat, error);
        else if (may_try(&seat, me, error))
            ok = take_free_seat(engine, me, &seat, error);
    }
    g_free(seat.moved);
    etcd_engine_unref(engine);
    return ok;
}

static bool resign(struct etcd_engine *engine, const char *next, GError **error)
{
    g_autofree char *key = etcd_engine_key(engine, "master");
    g_autofree char *next_key = etcd_engine_key(engine, "next");
    json_t *then = json_make("[o]", etcd_delete(key));
    GError *reason = NULL;

    if (*next != '\0') {
        gint64 lease = grant_lease(engine, engine->lease_s + 1, error);
        if (lease == 0) {
            json_decref(then);
            return false;
        }
        json_array_append_new(then, etcd_put(next_key, next, lease));
    }
    json_autoptr answer = etcd_engine_call(
        engine, ETCD_TXN, etcd_txn(etcd_engine_is_master(engine), then, NULL), &reason);
    if (answer == NULL &&
        (fettle_error_is(reason, UNKNOWN_RESULT) || fettle_error_is(reason, STORAGE))) {
        fettle_set_error(error, UNKNOWN_RESULT, "%s", reason->message);
        g_error_free(reason);
        return false;
    }
    if (answer == NULL)
        return no_answer(error, reason);
    end_mastership(engine);
    engine->created = 0;
    return true;
}

static bool engine_resign(struct engine *base, const char *next, GError **error)
{
    struct etcd_engine *engine = (struct etcd_engine *)base;
    etcd_engine_ref(engine);
    bool ok = resign(engine, next, error);
    etcd_engine_unref(engine);
    return ok;
}

static void tell_lost(void *data)
{
    struct etcd_engine *engine = data;
    if (!engine->closed && engine->lost != NULL)
        engine->lost(engine->lost_why, engine->lost_data);
    etcd_engine_unref(engine);
}

/* Everything is read between the campaign and this, which takes its time. */
static void engine_on_lost(struct engine *base, void (*lost)(const char *why, void *data),
                           void *data)
{
    struct etcd_engine *engine = (struct etcd_engine *)base;
    engine->lost = lost;
    engine->lost_data = data;
    if (engine->lost_why == NULL)
        return;
    etcd_engine_ref(engine);
    loop_post(tell_lost, engine);
}

static guint64 engine_lookup(struct engine *base, const char *commit_id)
{
    const struct etcd_engine *engine = (struct etcd_engine *)base;
    const guint64 *serial = g_hash_table_lookup(engine->ids, commit_id);
    return serial != NULL ? *serial : 0;
}

static bool engine_each_id(struct engine *base,
                           void (*each)(const char *commit_id, guint64 serial, void *data),
                           void *data, GError **error)
{
    const struct etcd_engine *engine = (const struct etcd_engine *)base;
    for (const GList *link = engine->id_order.head; link != NULL; link = link->next)
        each(link->data, *(const guint64 *)g_hash_table_lookup(engine->ids, link->data), data);
    return true;
}

static guint64 engine_log_from(struct engine *base, guint64 *ret_epoch)
{
    const struct etcd_engine *engine = (const struct etcd_engine *)base;
    *ret_epoch = engine->epoch_base;
    return engine->log_from;
}

/* --- life --- */

static void engine_close(struct engine *base)
{
    struct etcd_engine *engine = (struct etcd_engine *)base;

    engine->closed = true;
    end_mastership(engine);
    etcd_queue_drop(engine);
    task_group_kill(engine->tasks);
    etcd_engine_unref(engine);
}

static const struct engine_ops ops = {
    .load = etcd_load,
    .load_text = etcd_load_text,
    .observe = engine_observe,
    .campaign = engine_campaign,
    .resign = engine_resign,
    .on_lost = engine_on_lost,
    .commit = etcd_queue_commit,
    .barrier = etcd_queue_barrier,
    .lookup = engine_lookup,
    .each_id = engine_each_id,
    .log_from = engine_log_from,
    .leave = etcd_leave,
    .left = etcd_left,
    .close = engine_close,
};

struct engine *etcd_engine_new(struct etcd_client *client, const char *cluster)
{
    struct etcd_engine *engine = g_new0(struct etcd_engine, 1);

    engine->base.ops = &ops;
    engine->base.replicated = true;
    engine->refs = 1;
    engine->client = client;
    engine->lease_s = ETCD_LEASE_TTL_S * etcd_patience();
    engine->prefix = g_strdup_printf("/fettle/%s/", cluster);
    engine->tasks = task_group_new();
    engine->ids = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    g_queue_init(&engine->queue);
    g_queue_init(&engine->id_order);
    return &engine->base;
}
