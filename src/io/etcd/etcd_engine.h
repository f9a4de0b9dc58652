/*
 * The replicated engine: etcd, one transaction for the waiting commits of everybody, each comparing
 * the mastership key and the head (docs/design/mastership.md, "etcd"; SAF-01, 03, 04, 07, 08).
 */
#pragma once

#include "io/etcd/etcd_client.h"
#include "proto/engine.h"

#define ETCD_LEASE_TTL_S 4
#define ETCD_LEASE_MARGIN_MS 500
#define ETCD_IMPORT_NEXT_S 20

/* `client` is borrowed, and must live until the engine was closed. `cluster`: UUID; keys stand
 * below /fettle/CLUSTER/. */
struct engine *etcd_engine_new(struct etcd_client *client, const char *cluster);
/* Before it is used, in place of ETCD_LEASE_TTL_S: whatever it waits for has more time then, too.
 * For tests, whose process is the only candidate, and may stand still for longer where a machine
 * has much to do. */
void etcd_engine_set_lease(struct engine *engine, guint seconds);

/* `tell` hears, in words, when a member answers what was never stored. Another one is asked then.
 */
void etcd_engine_on_damaged(struct engine *engine, void (*tell)(const char *what));

/* What a whole cluster is when it moves into etcd: objects as struct store_row would have them. */
struct etcd_import {
    guint64 history;
    guint64 serial;
    guint64 epoch_base; /* the last epoch of the engine before */
    /* UUID of the node that others leave the first try to, for ETCD_IMPORT_NEXT_S; NULL: to nobody.
     */
    const char *next;
    /* Calls `each` for every object. */
    void (*objects)(void (*each)(const char *kind, const char *key, guint64 version, json_t *object,
                                 void *data),
                    void *data, void *source);
    /* The same for the ids of commits, in order of serial; NULL: there are none. */
    void (*ids)(void (*each)(const char *commit_id, guint64 serial, void *data), void *data,
                void *source);
    void *source;
};
/* In a task: empties the cluster's keys and fills them; nobody may be master. */
bool etcd_engine_import(struct etcd_client *client, const char *cluster,
                        const struct etcd_import *import, GError **error);
