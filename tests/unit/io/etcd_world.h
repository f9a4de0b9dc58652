/*
 * A member of etcd of its own, with the configuration of a cluster, and the engine against it; for
 * tests of the engine.
 */
#pragma once

#include "world.h"

#include "base/task.h"
#include "io/etcd/etcd_engine.h"
#include "io/etcd/etcd_kv.h"
#include "io/etcd/etcd_private.h"
#include "io/loop.h"

#define JOURNAL "66666666-7777-4888-8999-000000000000"
#define LEASE_S 12    /* of the engine; its calls may take nine */
#define CALL_MS 30000 /* for an answer of the member */

struct fixture {
    struct node_paths *paths;
    char *data, *client_url, *peer_url;
    GPid member;
    struct etcd_client *client;
    struct engine *engine;
    struct mastership me;
};

void set_up(struct fixture *fixture, gconstpointer unused);
void tear_down(struct fixture *fixture, gconstpointer unused);
/* One more member, that knows nothing of the first; `paths` is set. */
void fill_member(struct fixture *fixture, const char *folder);
void end_member(struct fixture *fixture);
void open_engine(struct fixture *fixture, const char *node, const char *boot);
void close_engine(struct fixture *fixture);

/* In a task, from a test. */
bool run_step(struct fixture *fixture, bool (*fn)(struct fixture *, GError **), GError **error);

/* More than one page of ids. */
#define CARRIED (LIMIT_IDS_PIECE + 10)

extern guint64 import_serial;
extern guint64 import_last; /* of the ids; 0: the one before that */
extern const char *import_next;
/* Tried until the member takes it, which may have just started, or be choosing itself. */
void import(struct fixture *fixture);
bool campaign(struct fixture *fixture, GError **error);
bool observe(struct fixture *fixture, GError **error);

struct loaded {
    guint count, deleted;
    guint64 last_deleted;
    GString *text; /* of what is not a node */
};
extern struct loaded loaded;
extern guint64 loaded_serial, loaded_history;
bool load(struct fixture *fixture, GError **error);
