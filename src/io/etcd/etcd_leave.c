/* The step from etcd to the store of one node: the key `moved`, without which nobody campaigns; see
 * etcd_private.h. */
#include "io/etcd/etcd_private.h"

#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "io/loop.h"
#include "proto/seal.h"

#define AGAIN_MS 100

static json_t *moved_value(const struct etcd_engine *engine, const char *node, guint64 epoch)
{
    return json_make("{s:s, s:I, s:I, s:I}", "node", node, "history",
                     (json_int_t)engine->head.history, "epoch", (json_int_t)epoch, "serial",
                     (json_int_t)engine->head.serial);
}

static bool parse_moved(const struct etcd_kv *kv, struct engine_left *ret_left, GError **error)
{
    const char *node = NULL;
    json_int_t history = 0, epoch = 0, serial = 0;
    json_autoptr value = seal_from_text(kv->value, strlen(kv->value), KIB(4), NULL);
    if (value == NULL ||
        json_unpack(value, "{s:s, s:I, s:I, s:I}", "node", &node, "history", &history, "epoch",
                    &epoch, "serial", &serial) != 0 ||
        strlen(node) >= sizeof ret_left->node || epoch <= 0 || serial <= 0) {
        g_autofree char *key = etcd_words(kv->key), *words = etcd_words(kv->value);
        fettle_set_error(error, CORRUPT, "etcd: the value of %s tells no node: %s", key, words);
        return false;
    }
    g_strlcpy(ret_left->node, node, sizeof ret_left->node);
    ret_left->history = (guint64)history;
    ret_left->epoch = (guint64)epoch;
    ret_left->serial = (guint64)serial;
    return true;
}

/* --- leave --- */

/* Our own node stands in the key `master`, which is compared: the value is put by etcd's word that
 * it is ours. Sent again until it is answered: it is the same whenever it arrives. */
static enum engine_result put_moved(struct etcd_engine *engine, const char *value, GError **error)
{
    g_autofree char *key = etcd_engine_key(engine, "moved");
    while (etcd_engine_holds(engine)) {
        g_autoptr(GError) reason = NULL;
        json_t *then = json_make("[o]", etcd_put(key, value, 0));
        json_autoptr answer = etcd_engine_call(
            engine, ETCD_TXN, etcd_txn(etcd_engine_is_master(engine), then, NULL), &reason);
        if (answer != NULL && etcd_succeeded(answer))
            return ENGINE_DONE;
        if (answer != NULL) {
            fettle_set_error(error, NOT_MASTER, "etcd does not know this mastership any more");
            return ENGINE_UNKNOWN; /* an earlier one may have arrived */
        }
        if (fettle_error_is(reason, KILLED) || fettle_error_is(reason, PROTOCOL) ||
            fettle_error_is(reason, STORAGE)) {
            g_propagate_error(error, g_steal_pointer(&reason));
            return ENGINE_UNKNOWN;
        }
        loop_sleep(AGAIN_MS);
    }
    fettle_set_error(error, UNKNOWN_RESULT,
                     "etcd has not answered whether the configuration may leave it");
    return ENGINE_UNKNOWN;
}

enum engine_result etcd_leave(struct engine *base, const struct engine_commit *last,
                              const char *node, GError **error)
{
    struct etcd_engine *engine = (struct etcd_engine *)base;
    if (last->serial != engine->head.serial + 1 || engine->batch != NULL) {
        fettle_set_error(error, INTERNAL, "commits are on their way to etcd");
        return ENGINE_REFUSED;
    }
    json_autoptr value = moved_value(engine, node, last->epoch);
    g_autofree char *text = seal_to_text(value);
    etcd_engine_ref(engine);
    enum engine_result result = put_moved(engine, text, error);
    etcd_engine_unref(engine);
    return result;
}

/* --- left --- */

/* As one member answers it. */
static bool ask_moved(struct etcd_engine *engine, void *ret_left, GError **error)
{
    g_autofree char *key = etcd_engine_key(engine, "moved");
    GError *reason = NULL;
    json_autoptr answer = etcd_engine_call(engine, ETCD_RANGE, etcd_range(key), &reason);
    if (answer == NULL) {
        fettle_set_error(error, TEMPORARY, "%s", reason->message);
        g_error_free(reason);
        return false;
    }
    g_autoptr(GPtrArray) kvs = etcd_kvs(answer, NULL, error);
    if (kvs == NULL || kvs->len == 0 || parse_moved(kvs->pdata[0], ret_left, error))
        return kvs != NULL;
    etcd_engine_distrust(engine, key);
    return false;
}

bool etcd_left(struct engine *base, struct engine_left *ret_left, GError **error)
{
    struct etcd_engine *engine = (struct etcd_engine *)base;
    memset(ret_left, 0, sizeof *ret_left);
    etcd_engine_ref(engine);
    bool ok = etcd_engine_ask_each(engine, ask_moved, ret_left, error);
    etcd_engine_unref(engine);
    return ok;
}
