/* See etcd_contents.h. */
#include "proto/engine/etcd_contents.h"

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

const char *etcd_contents_who_is_right(const struct etcd_content *contents, guint len)
{
    for (guint i = 0; i < len; i++)
        if (!contents[i].known)
            return "bring the other members back first, then ask again";
    return "the log of the fettle-wconfd that was master names a member that answered what was "
           "never stored: renew that one";
}
