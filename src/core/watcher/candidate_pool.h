/*
 * Whether there are enough master candidates, and which node should become one (ARP-71). It only
 * judges, from the record and from what the watcher has heard; candidates.c acts. The rules and
 * their reasons: docs/design/mastership.md, "Too few candidates".
 */
#pragma once

#include "core/config/model.h"

/* One node, as the watcher sees it. */
struct candidate_pool_node {
    const struct node *node;
    gint64 unheard_ms;  /* for how long it has not answered; 0: it does */
    bool disks_failed;  /* it answers that its disks fail */
    const char *unable; /* why nothing can be written there (faults_forbids); NULL: it can */
    guint faults;       /* faults_rank() of what it answers */
    guint failures;     /* jobs that were to promote it, and did not */
};

enum candidate_pool_verdict {
    POOL_FULL,    /* there are enough; more than enough is left alone */
    POOL_UNSURE,  /* too few, and `node`, which should become one, is silent for a moment */
    POOL_PROMOTE, /* too few, and `node` should become one */
    POOL_EVEN,    /* too few, but with `node` a majority would only need one more of them */
    POOL_BLOCKED, /* too few, but etcd takes nobody in beside a member that does not answer */
    POOL_NOBODY,  /* too few, and no other node can become one */
};

struct candidate_pool_judgement {
    enum candidate_pool_verdict verdict;
    guint usable; /* candidates that are, or were a moment ago, as they should be */
    guint goal;   /* so many there should be */
    const struct node *node;
    GPtrArray *replaced;       /* const struct node *, offline: they are to be none any more */
    const struct node *silent; /* a candidate that has been silent for long; NULL: there is none */
    GPtrArray *evidence;       /* sentences about candidates that are not usable */
    GPtrArray *rejected;       /* sentences about nodes that cannot become one */
};

/* `nodes`: struct candidate_pool_node of every node on record, in any order. `now` in seconds since
 * 1970, for advice that ends. The judgement borrows nodes. */
struct candidate_pool_judgement candidate_pool_judge(const struct config *config, GArray *nodes,
                                                     gint64 now);
void candidate_pool_judgement_clear(struct candidate_pool_judgement *judgement);
