/* Reading everything that is in etcd, and filling it when a cluster moves in. */
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "io/etcd/etcd_private.h"
#include "io/etcd/etcd_value.h"
#include "proto/records.h"

/* --- pages of keys --- */

typedef bool (*take_fn)(const struct etcd_kv *kv, void *data, GError **error);

/* Keys come in order without being asked to; a range that is to be sorted is read to its end by
 * etcd before the page is cut off it. */
static bool take_page(const GPtrArray *kvs, const char *from, take_fn take, void *data,
                      GError **error)
{
    for (guint i = 0; i < kvs->len; i++) {
        const struct etcd_kv *kv = kvs->pdata[i];
        if (strcmp(kv->key, from) <= 0) {
            fettle_set_error(error, PROTOCOL, "etcd answered the key %s out of order", kv->key);
            return false;
        }
        if (!take(kv, data, error))
            return false;
        from = kv->key;
    }
    return true;
}

/* Whether all are what was asked for: all of our keys have what is before their names. */
static bool are_below(const GPtrArray *kvs, const char *prefix, GError **error)
{
    for (guint i = 0; i < kvs->len; i++) {
        const struct etcd_kv *kv = kvs->pdata[i];
        if (g_str_has_prefix(kv->key, prefix))
            continue;
        g_autofree char *key = etcd_words(kv->key);
        fettle_set_error(error, PROTOCOL, "etcd answered the key %s, which is not below %s", key,
                         prefix);
        return false;
    }
    return true;
}

/* The first one that is not what was stored; NULL: none. */
static const struct etcd_kv *find_wrong(const struct etcd_engine *engine, const GPtrArray *kvs)
{
    for (guint i = 0; i < kvs->len; i++) {
        const struct etcd_kv *kv = kvs->pdata[i];
        const char *name = kv->key + strlen(engine->prefix);
        bool sound = g_str_has_prefix(name, "o/")
                         ? etcd_object_sound(name + strlen("o/"), kv->value)
                         : etcd_list_sound(name, kv->value);
        if (!sound)
            return kv;
    }
    return NULL;
}

static char *describe_wrong(const struct etcd_kv *kv)
{
    return g_strdup_printf(etcd_value_is_checked(kv->value)
                               ? "the value of %s does not match its checksum, whichever member "
                                 "is asked"
                               : "the value of %s cannot be read",
                           kv->key);
}

/* A page of a fixed revision is the same at every member: what one answers wrongly is asked of the
 * next. `range` is stolen. */
static json_t *read_page(struct etcd_engine *engine, json_t *range, const char *prefix,
                         GPtrArray **ret_kvs, bool *ret_more, GError **error)
{
    json_autoptr question = range;
    g_autofree char *why = NULL;
    guint left = engine->closed ? 1 : etcd_client_count(engine->client); /* closed: is told so */
    if (engine->lost_why != NULL) { /* a slow etcd is not read to its end for nothing (SAF-08) */
        fettle_set_error(error, NOT_MASTER, "mastership is lost: %s", engine->lost_why);
        return NULL;
    }
    for (; left > 0; left--) {
        json_autoptr answer = etcd_engine_call(engine, ETCD_RANGE, json_incref(question), error);
        g_autoptr(GPtrArray) kvs = answer != NULL ? etcd_kvs(answer, ret_more, error) : NULL;
        if (kvs == NULL || !are_below(kvs, prefix, error))
            return NULL;
        const struct etcd_kv *wrong = find_wrong(engine, kvs);
        if (wrong == NULL) {
            *ret_kvs = g_steal_pointer(&kvs);
            return json_steal(&answer);
        }
        g_free(why);
        why = describe_wrong(wrong);
        etcd_engine_distrust(engine, wrong->key);
    }
    fettle_set_error(error, CORRUPT, "etcd: %s; restore a backup",
                     why != NULL ? why : "no member can be asked");
    return NULL;
}

/* Every key below `name`, as it was at `revision` (0: at the first page's, which is returned). */
static gint64 read_all(struct etcd_engine *engine, const char *name, gint64 revision, take_fn take,
                       void *data, GError **error)
{
    g_autofree char *prefix = etcd_engine_key(engine, name);
    g_autofree char *from = NULL;
    bool more = true;

    while (more) {
        g_autoptr(GPtrArray) kvs = NULL;
        json_autoptr answer =
            read_page(engine, etcd_range_prefix(prefix, from, LIMIT_ETCD_PAGE, revision), prefix,
                      &kvs, &more, error);
        if (answer == NULL)
            return 0;
        revision = revision != 0 ? revision : etcd_revision(answer);
        if (!take_page(kvs, from != NULL ? from : prefix, take, data, error))
            return 0;
        more = more && kvs->len > 0;
        if (more) {
            const struct etcd_kv *last = kvs->pdata[kvs->len - 1];
            g_free(from);
            from = g_strconcat(last->key, "\x01", NULL); /* behind it, before every other key */
        }
    }
    return revision;
}

/* --- objects --- */

typedef bool (*text_fn)(const char *kind, const char *key, guint64 version, const char *text,
                        void *data);

struct loading {
    struct etcd_engine *engine;
    bool logged; /* a batch was read */
    text_fn each;
    void *data;
};

static bool take_object(const struct etcd_kv *kv, void *data, GError **error)
{
    const struct loading *loading = data;
    const char *name = kv->key + strlen(loading->engine->prefix) + strlen("o/");
    const char *slash = strchr(name, '/');
    guint64 version = 0;
    g_autofree char *object = etcd_object_parse(kv->value, &version);
    g_autofree char *kind = slash != NULL ? g_strndup(name, (gsize)(slash - name)) : NULL;

    if (kind != NULL && object != NULL && version > 0 && version <= G_MAXINT64 &&
        loading->each(kind, slash + 1, version, object, loading->data))
        return true;
    fettle_set_error(error, CORRUPT, "etcd: the value of %s cannot be read; restore a backup",
                     kv->key);
    return false;
}

/* `name` is "KIND/KEY". */
static void give_deleted(const char *name, guint64 serial, void *data)
{
    const struct loading *loading = data;
    const char *slash = strchr(name, '/');
    g_autofree char *kind = slash != NULL ? g_strndup(name, (gsize)(slash - name)) : NULL;
    if (kind != NULL)
        loading->each(kind, slash + 1, serial, NULL, loading->data);
}

/* Of a batch: each of its serials has an id. */
guint64 etcd_ids_first(const json_t *ids, guint64 last)
{
    guint64 first = last + 1;
    size_t index;
    json_t *item;
    json_array_foreach((json_t *)ids, index, item) {
        const char *id;
        json_int_t serial;
        if (json_unpack(item, "[s, I]", &id, &serial) == 0 && serial > 0)
            first = MIN(first, (guint64)serial);
    }
    return first;
}

static void give_id(const char *id, guint64 serial, void *data)
{
    const struct loading *loading = data;
    etcd_remember_id(loading->engine, id, serial);
}

static void give_carried(const char *id, guint64 serial, void *data)
{
    struct etcd_engine *engine = ((const struct loading *)data)->engine;
    if (serial == 0 || serial > G_MAXINT64)
        return;
    etcd_remember_id(engine, id, serial);
    engine->carried = MAX(engine->carried, serial);
}

void etcd_ids_each(const json_t *list, etcd_id_fn id_fn, etcd_id_fn deleted_fn, void *data)
{
    size_t index;
    json_t *item;
    json_array_foreach((json_t *)list, index, item) {
        const char *id;
        json_int_t serial;
        if (json_unpack(item, "[s, I]", &id, &serial) == 0)
            id_fn(id, (guint64)serial, data);
        else if (deleted_fn != NULL &&
                 json_unpack(item, "{s:s, s:I}", "deleted", &id, "serial", &serial) == 0)
            deleted_fn(id, (guint64)serial, data);
    }
}

/* The ids of a batch, and what it has deleted. */
static bool take_ids(const struct etcd_kv *kv, void *data, GError **error)
{
    struct loading *loading = data;
    struct etcd_engine *engine = loading->engine;
    guint64 last = g_ascii_strtoull(kv->key + strlen(engine->prefix) + strlen("c/"), NULL, 10);
    json_autoptr ids = json_parse_limited(kv->value, strlen(kv->value), LIMIT_FRAME_BYTES, NULL);

    if (!loading->logged)
        engine->log_from = MAX(etcd_ids_first(ids, last) - 1, 1);
    loading->logged = true;
    etcd_ids_each(ids, give_id, give_deleted, loading);
    return true;
}

/* A page of ids that come from the engine before. */
static bool take_carried(const struct etcd_kv *kv, void *data, GError **error)
{
    json_autoptr ids = json_parse_limited(kv->value, strlen(kv->value), LIMIT_FRAME_BYTES, NULL);
    etcd_ids_each(ids, give_carried, NULL, data);
    return true;
}

/* As one member answers it. */
static bool ask_head(struct etcd_engine *engine, void *ret_revision, GError **error)
{
    g_autofree char *key = etcd_engine_key(engine, "head");
    g_autoptr(GError) why = NULL;
    json_autoptr answer = etcd_engine_call(engine, ETCD_RANGE, etcd_range(key), &why);
    g_autoptr(GPtrArray) kvs = answer != NULL ? etcd_kvs(answer, NULL, &why) : NULL;
    *(gint64 *)ret_revision = answer != NULL ? etcd_revision(answer) : 0;
    if (kvs != NULL && etcd_head_parse(kvs, &engine->head, &why))
        return true;
    if (fettle_error_is(why, CORRUPT))
        etcd_engine_distrust(engine, key);
    g_propagate_error(error, g_steal_pointer(&why));
    return false;
}

static bool read_head(struct etcd_engine *engine, gint64 *ret_revision, GError **error)
{
    if (!etcd_engine_ask_each(engine, ask_head, ret_revision, error))
        return false;
    if (engine->head.revision == 0) {
        fettle_set_error(error, CORRUPT, "etcd has no configuration of this cluster below %s",
                         engine->prefix);
        return false;
    }
    return true;
}

static bool load(struct etcd_engine *engine, struct loading *loading, GError **error)
{
    gint64 revision = 0;
    return read_head(engine, &revision, error) &&
           read_all(engine, "o/", revision, take_object, loading, error) != 0 &&
           read_all(engine, "i/", revision, take_carried, loading, error) != 0 &&
           read_all(engine, "c/", revision, take_ids, loading, error) != 0;
}

bool etcd_load_text(struct engine *base, guint64 *ret_history, guint64 *ret_serial, text_fn each,
                    void *data, GError **error)
{
    struct etcd_engine *engine = (struct etcd_engine *)base;
    struct loading loading = {engine, false, each, data};

    etcd_engine_ref(engine);
    engine->log_from = engine->carried = 0;
    bool ok = load(engine, &loading, error);
    if (ok) {
        *ret_history = engine->head.history;
        *ret_serial = engine->head.serial;
    }
    etcd_engine_unref(engine);
    return ok;
}

struct json_loading {
    void (*each)(const char *kind, const char *key, guint64 version, json_t *object, void *data);
    void *data;
};

static bool each_json(const char *kind, const char *key, guint64 version, const char *text,
                      void *data)
{
    const struct json_loading *loading = data;
    json_autoptr object =
        text != NULL ? json_parse_limited(text, strlen(text), LIMIT_FRAME_BYTES, NULL) : NULL;
    if (text != NULL && object == NULL)
        return false;
    loading->each(kind, key, version, object, loading->data);
    return true;
}

bool etcd_load(struct engine *base, guint64 *ret_history, guint64 *ret_serial,
               void (*each)(const char *kind, const char *key, guint64 version, json_t *object,
                            void *data),
               void *data, GError **error)
{
    struct json_loading loading = {each, data};
    return etcd_load_text(base, ret_history, ret_serial, each_json, &loading, error);
}

/* --- moving in --- */

struct filling {
    const char *prefix;
    GPtrArray *transactions; /* json_t *: arrays of operations */
    size_t bytes;            /* of the last one */
    json_t *ids;             /* of the page that is being filled; NULL: none is */
    guint64 last_id;         /* serial of its last one */
};

static void free_json(void *data)
{
    json_decref(data);
}

static void fill_object(const char *kind, const char *key, guint64 version, json_t *object,
                        void *data)
{
    struct filling *filling = data;
    g_autofree char *name = g_strdup_printf("%so/%s/%s", filling->prefix, kind, key);
    g_autofree char *text = etcd_object_text(kind, key, version, object);
    GPtrArray *all = filling->transactions;
    json_t *last = all->len > 0 ? all->pdata[all->len - 1] : NULL;

    if (last == NULL || json_array_size(last) >= LIMIT_ETCD_OPERATIONS ||
        filling->bytes + strlen(text) > LIMIT_ETCD_BATCH_BYTES) {
        last = json_array();
        g_ptr_array_add(all, last);
        filling->bytes = 0;
    }
    filling->bytes += strlen(text);
    json_array_append_new(last, etcd_put(name, text, 0));
}

/* The page has a transaction of its own. */
static void end_page(struct filling *filling)
{
    if (filling->ids == NULL)
        return;
    g_autofree char *name =
        g_strdup_printf("%si/%020" G_GUINT64_FORMAT, filling->prefix, filling->last_id);
    g_autofree char *text = etcd_list_text(name + strlen(filling->prefix), filling->ids);
    g_ptr_array_add(filling->transactions, json_make("[o]", etcd_put(name, text, 0)));
    json_decref(g_steal_pointer(&filling->ids));
}

static void fill_id(const char *commit_id, guint64 serial, void *data)
{
    struct filling *filling = data;
    if (filling->ids == NULL)
        filling->ids = json_array();
    json_array_append_new(filling->ids, json_make("[s, I]", commit_id, (json_int_t)serial));
    filling->last_id = serial;
    if (json_array_size(filling->ids) >= LIMIT_IDS_PIECE)
        end_page(filling);
}

static bool run_txn(struct etcd_client *client, const char *prefix, json_t *operations,
                    GError **error)
{
    g_autofree char *master = g_strconcat(prefix, "master", NULL);
    json_t *compares = json_make("[o]", etcd_compare(master, ETCD_CREATE_REVISION, 0));
    json_autoptr answer = etcd_call_wait(client, ETCD_TXN, etcd_txn(compares, operations, NULL),
                                         TIMEOUT_NORMAL_MS * etcd_patience(), error);
    if (answer == NULL || etcd_succeeded(answer))
        return answer != NULL;
    fettle_set_error(error, WRONG_STATE, "a master uses the configuration in etcd");
    return false;
}

/* Whoever carries the change out goes on as the master, if it lives. */
static bool put_next(struct etcd_client *client, const char *prefix, const char *next,
                     GError **error)
{
    g_autofree char *key = g_strconcat(prefix, "next", NULL);
    json_t *body = json_make("{s:s}", "TTL", G_STRINGIFY(ETCD_IMPORT_NEXT_S));
    json_autoptr answer =
        etcd_call_wait(client, ETCD_LEASE_GRANT, body, TIMEOUT_NORMAL_MS * etcd_patience(), error);
    return answer != NULL &&
           run_txn(client, prefix, json_make("[o]", etcd_put(key, next, etcd_number(answer, "ID"))),
                   error);
}

/* The head comes last: without it nobody takes what is there for a configuration. The log of
 * changes begins with this serial, which deletes nothing: the copies have the one before. */
static json_t *last_operations(const char *prefix, const struct etcd_import *import)
{
    struct etcd_head head = {.history = import->history, .serial = import->serial};
    g_autofree char *id = g_uuid_string_random();
    g_autofree char *head_key = g_strconcat(prefix, "head", NULL);
    g_autofree char *base_key = g_strconcat(prefix, "epoch_base", NULL);
    g_autofree char *ids_key = g_strdup_printf("%sc/%020" G_GUINT64_FORMAT, prefix, import->serial);
    g_autofree char *base = etcd_count_text("epoch_base", import->epoch_base);
    json_autoptr ids = json_make("[[s, I]]", id, (json_int_t)import->serial);
    g_autofree char *ids_text = etcd_list_text(ids_key + strlen(prefix), ids);

    g_strlcpy(head.batch, id, sizeof head.batch);
    g_autofree char *text = etcd_head_text(&head);
    return json_make("[o, o, o]", etcd_put(base_key, base, 0), etcd_put(ids_key, ids_text, 0),
                     etcd_put(head_key, text, 0));
}

bool etcd_engine_import(struct etcd_client *client, const char *cluster,
                        const struct etcd_import *import, GError **error)
{
    g_autofree char *prefix = g_strdup_printf("/fettle/%s/", cluster);
    g_autoptr(GPtrArray) transactions = g_ptr_array_new_with_free_func(free_json);
    struct filling filling = {.prefix = prefix, .transactions = transactions};

    import->objects(fill_object, &filling, import->source);
    if (import->ids != NULL)
        import->ids(fill_id, &filling, import->source);
    end_page(&filling);
    if (!run_txn(client, prefix, json_make("[o]", etcd_delete_prefix(prefix)), error))
        return false;
    for (guint i = 0; i < transactions->len; i++)
        if (!run_txn(client, prefix, json_incref(transactions->pdata[i]), error))
            return false;
    return (import->next == NULL || put_next(client, prefix, import->next, error)) &&
           run_txn(client, prefix, last_operations(prefix, import), error);
}
