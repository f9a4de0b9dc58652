/* See etcd_compare.h. */
#include "io/etcd/etcd_compare.h"

#include "base/error.h"
#include "base/limits.h"
#include "io/etcd/etcd_kv.h"

#define HASH "/v3/maintenance/hash"

void etcd_content_parse(const json_t *answer, struct etcd_content *ret)
{
    *ret = (struct etcd_content){.known = answer != NULL};
    ret->hash = (guint64)json_integer_value(json_object_get(answer, "hash"));
    ret->compacted = (guint64)etcd_number(answer, "compact_revision");
}

bool etcd_content_ask(struct etcd_client *client, guint64 revision, struct etcd_content *ret,
                      GError **error)
{
    json_t *body = json_make("{s:o}", "revision", json_sprintf("%" G_GUINT64_FORMAT, revision));
    json_autoptr answer = etcd_call_wait(client, HASH, body, ETCD_CHANGE_MS, error);
    etcd_content_parse(answer, ret);
    return ret->known;
}
