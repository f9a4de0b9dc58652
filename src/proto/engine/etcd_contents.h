/*
 * What members of etcd hold at one revision, and who of them is right where that differs: most of
 * them. What they hold is asked for by io/etcd/etcd_compare.h.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

/* What one member holds at a revision. */
struct etcd_content {
    bool known; /* it has answered */
    guint64 hash;
    guint64 compacted; /* revision from which on it has everything: others cannot be compared */
    bool odd;          /* more members have another content than the same */
};

enum etcd_verdict {
    ETCD_CONTENTS_SAME,
    ETCD_CONTENTS_ODD,       /* the odd ones are wrong */
    ETCD_CONTENTS_UNDECIDED, /* they differ, and as many say the one as the other */
};
/* Sets `odd` of each. */
enum etcd_verdict etcd_contents_judge(struct etcd_content *contents, guint count);
/* What helps where they are undecided, as the end of a sentence. */
const char *etcd_contents_who_is_right(const struct etcd_content *contents, guint count);
