/*
 * What wconfd has open: the store of this node, which is the engine or a copy, and with etcd the
 * engine beside it (docs/design/mastership.md). What the store says of itself comes first; what
 * etc/engine.json says decides about a copy. Blocking; used by wconfd's main() alone.
 */
#pragma once

#include "io/etcd/etcd_client.h"
#include "io/real_env.h"
#include "proto/copy.h"

struct opened {
    struct env *env;   /* its `engine` is set here */
    char *path;        /* of the store */
    struct copy *copy; /* NULL: this node's store is the engine */
    struct etcd_client *client;
    /* Of the cluster, by what this node was told; and why it must not become master: seat.h. */
    enum engine_kind kind;
    char *barred;
    bool undecided;
    guint64 step;      /* serial that decides it; 0: not known */
    gint64 changed[3]; /* etc/engine.json as it was read: time of change, inode, bytes */
};

/* CORRUPT, STORAGE: nothing can be done with the store. An engine that cannot be opened beside a
 * copy is no error: the copy is kept up to date, and `barred` says why. */
bool opened_init(struct opened *opened, struct env *env, GError **error);
/* After the seat has gone. */
void opened_close_engine(struct opened *opened);
void opened_clear(struct opened *opened);

/* Looks whether etc/engine.json was written since, and takes over what can be: other members, the
 * end of a change. False, with the reason: that takes a new process. */
bool opened_refresh(struct opened *opened, bool *ret_changed, GError **error);
