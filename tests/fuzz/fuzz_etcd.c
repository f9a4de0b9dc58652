/* Answers of etcd's gateway from any bytes: keys with values or words, never both; a head that is
 * accepted is written and read back as it was. */
#include "fuzz.h"
#include "io/etcd_internal.h"

#include <string.h>

static void check_head(const GPtrArray *kvs)
{
    g_autoptr(GError) error = NULL;
    struct etcd_head head = {0}, again = {0};
    if (!etcd_head_parse(kvs, &head, &error)) {
        g_assert_nonnull(error);
        return;
    }
    g_assert_no_error(error);
    if (kvs->len == 0) {
        g_assert_cmpint(head.revision, ==, 0);
        return;
    }
    const struct etcd_kv *first = kvs->pdata[0];
    g_autofree char *text = etcd_head_text(&head);
    struct etcd_kv kv = *first;
    kv.value = text;
    g_autoptr(GPtrArray) written = g_ptr_array_new();
    g_ptr_array_add(written, &kv);
    g_assert_true(etcd_head_parse(written, &again, &error));
    g_assert_cmpuint(again.history, ==, head.history);
    g_assert_cmpuint(again.serial, ==, head.serial);
    g_assert_cmpint(again.revision, ==, head.revision);
    g_assert_cmpstr(again.batch, ==, head.batch);
}

static void check_kvs(GPtrArray *kvs, GError *error)
{
    g_assert_true((kvs != NULL) != (error != NULL));
    for (guint i = 0; kvs != NULL && i < kvs->len; i++) {
        const struct etcd_kv *kv = kvs->pdata[i];
        g_assert_nonnull(kv->key);
        g_assert_nonnull(kv->value);
    }
    if (kvs != NULL) {
        check_head(kvs);
        g_ptr_array_unref(kvs);
    }
    g_clear_error(&error);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    json_autoptr answer = json_parse_limited((const char *)data, len, MIB(1), NULL);
    if (answer == NULL)
        return 0;
    (void)etcd_revision(answer);
    (void)etcd_succeeded(answer);
    (void)etcd_number(answer, "ID");
    GError *error = NULL;
    bool more = false;
    GPtrArray *kvs = etcd_kvs(answer, &more, &error);
    check_kvs(kvs, error);
    for (guint i = 0; i < 3; i++) {
        error = NULL;
        kvs = etcd_txn_kvs(answer, i, &error);
        check_kvs(kvs, error);
    }
    return 0;
}
