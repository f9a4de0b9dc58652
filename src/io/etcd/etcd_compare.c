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

static void count(const struct etcd_content *contents, guint len, struct etcd_content *one,
                  guint *ret_same, guint *ret_other)
{
    *ret_same = *ret_other = 0;
    for (guint i = 0; i < len; i++)
        if (contents[i].known && contents[i].compacted == one->compacted) {
            *ret_same += contents[i].hash == one->hash;
            *ret_other += contents[i].hash != one->hash;
        }
}

static enum etcd_verdict nobody_knows(struct etcd_content *contents, guint len)
{
    for (guint i = 0; i < len; i++)
        contents[i].odd = false;
    return ETCD_CONTENTS_UNDECIDED;
}

enum etcd_verdict etcd_contents_judge(struct etcd_content *contents, guint len)
{
    bool differ = false, odd = false, right = false;
    for (guint i = 0; i < len; i++) {
        guint same, other;
        contents[i].odd = false;
        if (!contents[i].known)
            continue;
        count(contents, len, &contents[i], &same, &other);
        contents[i].odd = other > same;
        differ = differ || other > 0;
        odd = odd || other > same;
        right = right || other < same;
    }
    if (!differ)
        return ETCD_CONTENTS_SAME;
    return odd && right ? ETCD_CONTENTS_ODD : nobody_knows(contents, len);
}
