/* See model_etcd.h. */
#include "model_etcd.h"

#include <string.h>

#include "io/etcd/etcd_kv.h"

struct version {
    gint64 mod, create, lease;
    char *value; /* NULL: deleted */
};

struct lease {
    gint64 id, ttl_ms, ends_ms;
};

struct model_etcd {
    gint64 revision, last_lease;
    GHashTable *keys; /* key -> GArray of struct version */
    GArray *leases;   /* struct lease */
    GArray *writes;   /* struct model_write, of the transaction under way */
    gint64 no_leader; /* since when; -1: there is one */
    model_written written;
    void *data;
};

static void version_clear(void *data)
{
    g_free(((struct version *)data)->value);
}

static void versions_free(void *data)
{
    g_array_unref(data);
}

struct model_etcd *model_etcd_new(model_written written, void *data)
{
    struct model_etcd *etcd = g_new0(struct model_etcd, 1);
    etcd->revision = 1;
    etcd->last_lease = 7000;
    etcd->keys = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, versions_free);
    etcd->leases = g_array_new(FALSE, FALSE, sizeof(struct lease));
    etcd->writes = g_array_new(FALSE, FALSE, sizeof(struct model_write));
    etcd->no_leader = -1;
    etcd->written = written;
    etcd->data = data;
    return etcd;
}

void model_etcd_free(struct model_etcd *etcd)
{
    g_hash_table_unref(etcd->keys);
    g_array_unref(etcd->leases);
    g_array_unref(etcd->writes);
    g_free(etcd);
}

/* --- keys --- */

/* As it was at a revision (0: now); NULL: there was none. */
static const struct version *find_at(const GArray *versions, gint64 revision)
{
    for (guint i = versions ? versions->len : 0; i > 0; i--) {
        const struct version *version = &g_array_index(versions, struct version, i - 1);
        if (revision == 0 || version->mod <= revision)
            return version->value ? version : NULL;
    }
    return NULL;
}

static const struct version *find(const struct model_etcd *etcd, const char *key)
{
    return find_at(g_hash_table_lookup(etcd->keys, key), 0);
}

/* Under the next revision, which the whole transaction shares. */
static void set(struct model_etcd *etcd, const char *key, const char *value, gint64 lease)
{
    void *name, *found = NULL;
    if (!g_hash_table_lookup_extended(etcd->keys, key, &name, &found)) {
        found = g_array_new(FALSE, FALSE, sizeof(struct version));
        g_array_set_clear_func(found, version_clear);
        name = g_strdup(key);
        g_hash_table_insert(etcd->keys, name, found);
    }
    GArray *versions = found;
    const struct version *old = find_at(versions, 0);
    struct version version = {.mod = etcd->revision + 1,
                              .create = old ? old->create : etcd->revision + 1,
                              .lease = lease,
                              .value = g_strdup(value)};
    g_array_append_val(versions, version);
    struct model_write write = {name, version.value, lease};
    g_array_append_val(etcd->writes, write);
}

static void finish(struct model_etcd *etcd, gint64 now_ms, void *writer)
{
    if (etcd->writes->len == 0)
        return;
    etcd->revision++;
    if (etcd->written)
        etcd->written(now_ms, writer, (const struct model_write *)(const void *)etcd->writes->data,
                      etcd->writes->len, etcd->data);
    g_array_set_size(etcd->writes, 0);
}

/* --- leases --- */

static struct lease *lease_find(const struct model_etcd *etcd, gint64 id)
{
    for (guint i = 0; i < etcd->leases->len; i++) {
        struct lease *lease = &g_array_index(etcd->leases, struct lease, i);
        if (lease->id == id)
            return lease;
    }
    return NULL;
}

static void lease_end(struct model_etcd *etcd, gint64 now_ms, gint64 id)
{
    GHashTableIter iter;
    void *key, *versions;
    g_hash_table_iter_init(&iter, etcd->keys);
    while (g_hash_table_iter_next(&iter, &key, &versions)) {
        const struct version *version = find_at(versions, 0);
        if (version && version->lease == id)
            set(etcd, key, NULL, 0);
    }
    finish(etcd, now_ms, NULL);
    g_array_remove_index_fast(
        etcd->leases, (guint)(lease_find(etcd, id) - (struct lease *)(void *)etcd->leases->data));
}

static void end_leases(struct model_etcd *etcd, gint64 now_ms)
{
    for (guint i = etcd->leases->len; etcd->no_leader < 0 && i > 0; i--) {
        const struct lease *lease = &g_array_index(etcd->leases, struct lease, i - 1);
        if (lease->ends_ms <= now_ms)
            lease_end(etcd, now_ms, lease->id);
    }
}

void model_etcd_leader_lost(struct model_etcd *etcd, gint64 now_ms)
{
    end_leases(etcd, now_ms);
    if (etcd->no_leader < 0)
        etcd->no_leader = now_ms;
}

void model_etcd_leader_new(struct model_etcd *etcd, gint64 now_ms)
{
    end_leases(etcd, now_ms);
    etcd->no_leader = -1;
    for (guint i = 0; i < etcd->leases->len; i++) {
        struct lease *lease = &g_array_index(etcd->leases, struct lease, i);
        lease->ends_ms = now_ms + lease->ttl_ms;
    }
}

/* --- requests --- */

static char *text_of(const json_t *object, const char *name)
{
    gsize length = 0;
    const char *base64 = json_string_value(json_object_get(object, name));
    char *text = (char *)g_base64_decode(base64 ? base64 : "", &length);
    text = g_realloc(text, length + 1);
    text[length] = '\0';
    return text;
}

static json_t *number(gint64 value)
{
    char text[24];
    g_snprintf(text, sizeof text, "%" G_GINT64_FORMAT, value);
    return json_string(text);
}

static json_t *header(const struct model_etcd *etcd)
{
    return json_make("{s:o}", "revision", number(etcd->revision));
}

static json_t *kv_json(const char *key, const struct version *version)
{
    g_autofree char *name = g_base64_encode((const guchar *)key, strlen(key));
    g_autofree char *value =
        g_base64_encode((const guchar *)version->value, strlen(version->value));
    json_t *kv = json_make("{s:s,s:s,s:o,s:o}", "key", name, "value", value, "create_revision",
                           number(version->create), "mod_revision", number(version->mod));
    if (version->lease)
        json_object_set_new(kv, "lease", number(version->lease));
    return kv;
}

static int compare_keys(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Names from `from` to before `end` that were there at the revision, sorted. */
static GPtrArray *names_between(const struct model_etcd *etcd, const char *from, const char *end,
                                gint64 revision)
{
    GPtrArray *names = g_ptr_array_new();
    GHashTableIter iter;
    void *key, *versions;
    g_hash_table_iter_init(&iter, etcd->keys);
    while (g_hash_table_iter_next(&iter, &key, &versions))
        if (strcmp(key, from) >= 0 && strcmp(key, end) < 0 && find_at(versions, revision))
            g_ptr_array_add(names, key);
    g_ptr_array_sort(names, compare_keys);
    return names;
}

static json_t *range(const struct model_etcd *etcd, const json_t *request)
{
    g_autofree char *key = text_of(request, "key");
    g_autofree char *end = text_of(request, "range_end");
    gint64 revision = etcd_number(request, "revision");
    gint64 limit = etcd_number(request, "limit");
    json_t *kvs = json_array();
    json_t *answer = json_make("{s:o}", "header", header(etcd));
    g_autoptr(GPtrArray) names = NULL;
    if (*end) {
        names = names_between(etcd, key, end, revision);
    } else {
        names = g_ptr_array_new();
        if (find_at(g_hash_table_lookup(etcd->keys, key), revision))
            g_ptr_array_add(names, key);
    }
    for (guint i = 0; i < names->len && (limit == 0 || i < limit); i++) {
        const char *name = names->pdata[i];
        json_array_append_new(
            kvs, kv_json(name, find_at(g_hash_table_lookup(etcd->keys, name), revision)));
    }
    if (json_array_size(kvs) < names->len)
        json_object_set_new(answer, "more", json_true());
    if (json_array_size(kvs) > 0)
        json_object_set(answer, "kvs", kvs);
    json_decref(kvs);
    return answer;
}

static bool holds(const struct model_etcd *etcd, const json_t *compare)
{
    g_autofree char *key = text_of(compare, "key");
    const struct version *version = find(etcd, key);
    const char *target = json_string_value(json_object_get(compare, "target"));
    if (!strcmp(target, "CREATE"))
        return (version ? version->create : 0) == etcd_number(compare, "create_revision");
    g_assert_cmpstr(target, ==, "MOD");
    return (version ? version->mod : 0) == etcd_number(compare, "mod_revision");
}

static void delete_range(struct model_etcd *etcd, const json_t *request)
{
    g_autofree char *key = text_of(request, "key");
    g_autofree char *end = text_of(request, "range_end");
    if (!*end) {
        if (find(etcd, key))
            set(etcd, key, NULL, 0);
        return;
    }
    g_autoptr(GPtrArray) names = names_between(etcd, key, end, 0);
    for (guint i = 0; i < names->len; i++)
        set(etcd, names->pdata[i], NULL, 0);
}

static json_t *operate(struct model_etcd *etcd, const json_t *operation)
{
    const json_t *put = json_object_get(operation, "request_put");
    const json_t *deletes = json_object_get(operation, "request_delete_range");
    const json_t *get = json_object_get(operation, "request_range");
    if (put) {
        g_autofree char *key = text_of(put, "key");
        g_autofree char *value = text_of(put, "value");
        set(etcd, key, value, etcd_number(put, "lease"));
        return json_make("{s:{}}", "response_put");
    }
    if (deletes) {
        delete_range(etcd, deletes);
        return json_make("{s:{}}", "response_delete_range");
    }
    g_assert(get);
    return json_make("{s:o}", "response_range", range(etcd, get));
}

/* Whether a put names a lease that is not there: etcd refuses the whole transaction. */
static bool names_dead_lease(const struct model_etcd *etcd, const json_t *operations)
{
    size_t index;
    json_t *operation;
    json_array_foreach((json_t *)operations, index, operation) {
        gint64 lease = etcd_number(json_object_get(operation, "request_put"), "lease");
        if (lease && !lease_find(etcd, lease))
            return true;
    }
    return false;
}

/* A get that comes after a put of the same transaction sees it. */
static json_t *txn(struct model_etcd *etcd, gint64 now_ms, void *writer, const json_t *request)
{
    const json_t *compares = json_object_get(request, "compare");
    json_t *responses = json_array();
    bool ok = true;
    size_t index;
    json_t *item;
    json_array_foreach((json_t *)compares, index, item)
        ok = ok && holds(etcd, item);
    const json_t *operations = json_object_get(request, ok ? "success" : "failure");
    if (names_dead_lease(etcd, operations)) {
        json_decref(responses);
        return NULL;
    }
    json_array_foreach((json_t *)operations, index, item)
        json_array_append_new(responses, operate(etcd, item));
    finish(etcd, now_ms, writer);
    json_t *answer = json_make("{s:o,s:o}", "header", header(etcd), "responses", responses);
    if (ok)
        json_object_set_new(answer, "succeeded", json_true());
    return answer;
}

static json_t *grant(struct model_etcd *etcd, gint64 now_ms, const json_t *request)
{
    gint64 ttl_ms = etcd_number(request, "TTL") * 1000;
    struct lease lease = {++etcd->last_lease, ttl_ms, now_ms + ttl_ms};
    g_array_append_val(etcd->leases, lease);
    return json_make("{s:o,s:o,s:o}", "header", header(etcd), "ID", number(lease.id), "TTL",
                     number(ttl_ms / 1000));
}

static json_t *keep(struct model_etcd *etcd, gint64 now_ms, const json_t *request)
{
    gint64 id = etcd_number(request, "ID");
    struct lease *lease = lease_find(etcd, id);
    json_t *result = json_make("{s:o}", "ID", number(id));
    if (lease) {
        lease->ends_ms = now_ms + lease->ttl_ms;
        json_object_set_new(result, "TTL", number(lease->ttl_ms / 1000));
    }
    return json_make("{s:o}", "result", result);
}

json_t *model_etcd_run(struct model_etcd *etcd, gint64 now_ms, void *writer, const char *path,
                       const json_t *body)
{
    end_leases(etcd, now_ms);
    if (!strcmp(path, ETCD_TXN))
        return txn(etcd, now_ms, writer, body);
    if (!strcmp(path, ETCD_RANGE))
        return range(etcd, body);
    if (!strcmp(path, ETCD_LEASE_GRANT))
        return grant(etcd, now_ms, body);
    if (!strcmp(path, ETCD_LEASE_KEEP))
        return keep(etcd, now_ms, body);
    g_assert_cmpstr(path, ==, ETCD_LEASE_REVOKE);
    if (!lease_find(etcd, etcd_number(body, "ID")))
        return NULL;
    lease_end(etcd, now_ms, etcd_number(body, "ID"));
    return json_make("{s:o}", "header", header(etcd));
}

/* --- for checkers --- */

const char *model_etcd_value(struct model_etcd *etcd, gint64 now_ms, const char *key,
                             gint64 *ret_create)
{
    end_leases(etcd, now_ms);
    const struct version *version = find(etcd, key);
    if (ret_create)
        *ret_create = version ? version->create : 0;
    return version ? version->value : NULL;
}

void model_etcd_each(struct model_etcd *etcd, const char *prefix,
                     void (*each)(const char *key, const char *value, void *data), void *data)
{
    GHashTableIter iter;
    void *key, *versions;
    g_hash_table_iter_init(&iter, etcd->keys);
    while (g_hash_table_iter_next(&iter, &key, &versions)) {
        const struct version *version = find_at(versions, 0);
        if (version && g_str_has_prefix(key, prefix))
            each(key, version->value, data);
    }
}
