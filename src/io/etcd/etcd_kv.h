/*
 * Requests and answers of etcd's key-value store as the JSON gateway has them: keys and values in
 * base64, 64-bit numbers as text, absent members for zero. Nothing here talks to anybody.
 */
#pragma once

#include "base/json.h"

#define ETCD_RANGE "/v3/kv/range"
#define ETCD_TXN "/v3/kv/txn"
#define ETCD_LEASE_GRANT "/v3/lease/grant"
#define ETCD_LEASE_KEEP "/v3/lease/keepalive"
#define ETCD_LEASE_REVOKE "/v3/lease/revoke"
#define ETCD_COMPACT "/v3/kv/compaction"

/* One key as it was read. Strings are owned. */
struct etcd_kv {
    char *key;
    char *value;
    gint64 create_revision, mod_revision, lease;
};
void etcd_kv_free(struct etcd_kv *kv);

/* --- requests; new references --- */

json_t *etcd_range(const char *key);
/* Every key that begins with `prefix` from `from` on (NULL: from the first), at most `limit`, as it
 * was at `revision` (0: now), in the order of keys. */
json_t *etcd_range_prefix(const char *prefix, const char *from, guint limit, gint64 revision);

/* A transaction is put together from these and sent as etcd_txn(). */
enum etcd_target { ETCD_CREATE_REVISION, ETCD_MOD_REVISION };
json_t *etcd_compare(const char *key, enum etcd_target target, gint64 equal);
/* Reads a key within a transaction. */
json_t *etcd_get(const char *key);
json_t *etcd_put(const char *key, const char *value, gint64 lease);
json_t *etcd_delete(const char *key);
json_t *etcd_delete_prefix(const char *prefix);
/* Keys from `from` on that come before `end`. */
json_t *etcd_delete_range(const char *from, const char *end);
/* Arrays, stolen; `otherwise` NULL: nothing. */
json_t *etcd_txn(json_t *compares, json_t *then, json_t *otherwise);

/* --- answers --- */

/* What a member said, or has as a value, for a message: its first 200 characters. Free
 * with g_free(). */
char *etcd_words(const char *text);
/* PROTOCOL if the answer is not of the form that etcd promises. */
gint64 etcd_revision(const json_t *answer);
bool etcd_succeeded(const json_t *answer);
/* Keys of a range, or of operation `index` of a transaction's answer; GPtrArray of struct etcd_kv.
 * `ret_more` may be NULL. */
GPtrArray *etcd_kvs(const json_t *answer, bool *ret_more, GError **error);
GPtrArray *etcd_txn_kvs(const json_t *answer, guint index, GError **error);
/* What a lease that was kept alive has left, in seconds; 0, or less: etcd does not know it. */
gint64 etcd_lease_left(const json_t *answer);
/* A number that the gateway writes as text; 0 if it is absent. */
gint64 etcd_number(const json_t *object, const char *name);
