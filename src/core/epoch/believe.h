/*
 * Whose word of a mastership a node believes, and how far ahead (SAF-102, 103); a part of the
 * fence, which asks before it stores anything. What a node says about its own host it says by its
 * own sockets, and is believed.
 */
#pragma once

#include "core/epoch/epoch_fence.h"

#define PROMISE_FILE "node/promise.json"

struct epoch_fence {
    const struct env *env;
    char *cluster_uuid;
    struct announce_args *announced;
    struct epoch_promise *promised;
    bool unwritten;     /* the promise on disk is an older one */
    GPtrArray *ops;     /* struct epoch_fence_op, borrowed */
    GPtrArray *waiters; /* struct promise, owned by the waiting announcements */
    struct task_mutex storing;
    void (*changed)(void *data);
    void *changed_data;
    GHashTable *doubted; /* nodes of which the log has said that they are not believed */
};

/* NULL: it is none. */
const struct member *epoch_fence_member(const struct epoch_fence *fence, const char *node);
struct stamp epoch_fence_promised(const struct epoch_fence *fence);
bool epoch_fence_is_local(const struct epoch_fence *fence, const char *node);

/* In a task; may wait. WRONG_INPUT: its numbers are beyond any clock. PERMISSION: it comes from no
 * candidate, as far as is known here, and shows no signature. */
bool epoch_fence_believes(struct epoch_fence *fence, const char *from_node,
                          const struct announce_args *args, GError **error);
/* The same of who asks for a promise that could be given. */
bool epoch_fence_trusts(struct epoch_fence *fence, const char *from_node,
                        const struct promise_epoch_args *args, GError **error);
