/*
 * A change of engine (docs/design/mastership.md, "Change of engine"), carried out by the master in
 * one task. wconf_engine.c begins it, keeps what it says and answers those who ask; the steps are
 * engine_change.c.
 */
#pragma once

#include "core/wconfd/engine_nodes.h"
#include "core/wconfd/wconf_private.h"

struct engine_change {
    guint users;         /* its wconf, and its task */
    struct wconf *wconf; /* NULL: it has ended */
    struct engine_asker asker;
    enum engine_kind to;
    GPtrArray *nodes;             /* struct node: the candidates, this one first */
    struct engine_config *config; /* of etcd */
    GPtrArray *lines;             /* char *: what was done */
    GPtrArray *waits;             /* struct progress_wait (wconf_engine.c) */
    bool running;
    bool stepped; /* the step was done, or may have been: only forward from here */
    GError *error;
};

/* Whether it may begin; nothing was asked of any node yet. WRONG_STATE, UNSAFE. */
bool engine_change_check(const struct wconf *wconf, enum engine_kind to, GError **error);
/* What the commit of the step says: the cluster has that engine. Free it. */
GPtrArray *engine_change_commit(const struct config *config, enum engine_kind to);
/* In its task. False before the step: everything is as it was, but for what engine_change_clear()
 * takes away. After it `stepped` is set, and wconf has to end whatever comes back. */
bool engine_change_run(struct engine_change *change, GError **error);
/* One pass over the nodes that are not clear yet, which are those that are left in `nodes` then;
 * this node's engine.json, by which a restart knows of it, goes last. True: none is. */
bool engine_change_clear(const struct engine_asker *asker, GPtrArray *nodes, GError **error);

/* Adds a line of what was done. */
void engine_change_say(struct engine_change *change, const char *format, ...) G_GNUC_PRINTF(2, 3);
