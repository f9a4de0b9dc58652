/*
 * Whether the members of etcd hold the same. etcd's own check at a start looks at nobody before a
 * member's first snapshot, and its check from time to time stops all members when one is wrong, so
 * neither is used: their contents are asked for here, at one revision, and most of them are right.
 */
#pragma once

#include "io/etcd/etcd_client.h"

/* What one member holds at a revision. */
struct etcd_content {
    bool known; /* it has answered */
    guint64 hash;
    guint64 compacted; /* revision from which on it has everything: others cannot be compared */
    bool odd;          /* more members have another content than the same */
};

/* From the member at the end of `client` (one URL). */
bool etcd_content_ask(struct etcd_client *client, guint64 revision, struct etcd_content *ret,
                      GError **error);

/* From an answer; NULL: there is none. */
void etcd_content_parse(const json_t *answer, struct etcd_content *ret);

enum etcd_verdict {
    ETCD_CONTENTS_SAME,
    ETCD_CONTENTS_ODD,       /* the odd ones are wrong */
    ETCD_CONTENTS_UNDECIDED, /* they differ, and as many say the one as the other */
};
/* Sets `odd` of each. */
enum etcd_verdict etcd_contents_judge(struct etcd_content *contents, guint count);
