/*
 * Insides of the etcd engine: etcd_engine.c (life, mastership, lease), etcd_commit.c (the queue of
 * commits and barriers), etcd_leave.c (the step to another engine), etcd_load.c (reading and
 * filling everything).
 */
#pragma once

#include "base/task.h"
#include "io/etcd/etcd_engine.h"
#include "io/etcd/etcd_kv.h"

/* The key `head`: where the configuration stands, and which
 * transaction wrote it. */
struct etcd_head {
    gint64 revision; /* mod revision it was read or written at; 0: there is none */
    guint64 history, serial;
    char batch[37]; /* UUID of the transaction that wrote it */
};

struct etcd_engine {
    struct engine base;
    guint refs; /* the owner, and each task that is in it */
    struct etcd_client *client;
    char *prefix; /* "/fettle/CLUSTER/" */
    struct task_group *tasks;
    void (*tell_damaged)(const char *what); /* NULL: nobody is told */

    /* Mastership. */
    gint64 created; /* create revision of the master key; 0: not master */
    gint64 taken;   /* its mod revision, when this process took the seat */
    gint64 lease;
    guint lease_s;        /* how long it is when nobody renews it */
    guint64 epoch_base;   /* epochs of the engine before were not higher */
    gint64 held_until_ms; /* boot clock */
    guint lease_timer;
    char *lost_why;
    void (*lost)(const char *why, void *data);
    void *lost_data;

    /* Commits. */
    struct etcd_head head;
    char fence[37];   /* batch id of a rewritten head whose answer has not come */
    GQueue queue;     /* struct etcd_entry that are not on their way */
    GHashTable *ids;  /* commit id -> guint64 * */
    GQueue id_order;  /* the same ids, oldest first; borrowed from `ids` */
    guint64 carried;  /* serial of the last id of the engine before (`i/`); 0: none is left */
    guint64 log_from; /* from this serial on deletes are known too; 0: from none */
    struct etcd_batch *batch; /* on its way, or not told yet; NULL: none */
    bool closed;
};

void etcd_engine_ref(struct etcd_engine *engine);
void etcd_engine_unref(struct etcd_engine *engine);
/* A call from a task, which has a reference; KILLED once the engine was closed. `body` is stolen.
 */
json_t *etcd_engine_call(struct etcd_engine *engine, const char *path, json_t *body,
                         GError **error);
/* The member that answered last answered a wrong value of `key`: says so, and turns to the next. */
void etcd_engine_distrust(struct etcd_engine *engine, const char *key);
/* Asks until an answer is not CORRUPT, each member once; `ask` calls etcd_engine_distrust(). */
bool etcd_engine_ask_each(struct etcd_engine *engine,
                          bool (*ask)(struct etcd_engine *engine, void *data, GError **error),
                          void *data, GError **error);
char *etcd_engine_key(const struct etcd_engine *engine, const char *name);
/* What a transaction of the master compares: the key is ours, under our lease. */
json_t *etcd_engine_is_master(const struct etcd_engine *engine);
/* Ends mastership for good; once. */
void etcd_engine_lose(struct etcd_engine *engine, const char *format, ...) G_GNUC_PRINTF(2, 3);
/* Of the mastership that it has; 0: none. */
guint64 etcd_engine_epoch(const struct etcd_engine *engine);
bool etcd_engine_holds(const struct etcd_engine *engine);

/* --- etcd_commit.c --- */
void etcd_queue_commit(struct engine *base, const struct engine_commit *commit,
                       engine_commit_fn done, void *data);
void etcd_queue_barrier(struct engine *base, engine_barrier_fn done, void *data);
/* Mastership is lost: refuses what waits, after what is on its way has got its answer. */
void etcd_queue_fail(struct etcd_engine *engine);
void etcd_queue_drop(struct etcd_engine *engine);
void etcd_remember_id(struct etcd_engine *engine, const char *id, guint64 serial);
/* The head as a value; free with g_free(). */
char *etcd_head_text(const struct etcd_head *head);
/* CORRUPT if it cannot be read. `kvs` is of a range of the key; empty: revision 0. */
bool etcd_head_parse(const GPtrArray *kvs, struct etcd_head *ret_head, GError **error);

/* --- etcd_leave.c --- */
enum engine_result etcd_leave(struct engine *base, const struct engine_commit *last,
                              const char *node, GError **error);
bool etcd_left(struct engine *base, struct engine_left *ret_left, GError **error);

/* The value of the key `master`; false: it is none. */
bool etcd_mastership_parse(const char *text, struct mastership *ret);

/* --- etcd_load.c --- */
typedef void (*etcd_id_fn)(const char *id, guint64 serial, void *data);
/* The ids of commits in a list, and what they have deleted ("KIND/KEY"; `deleted_fn` NULL: nothing
 * is told). Other items are passed over. */
void etcd_ids_each(const json_t *list, etcd_id_fn id_fn, etcd_id_fn deleted_fn, void *data);
/* The first serial of a batch whose last one is `last`. */
guint64 etcd_ids_first(const json_t *ids, guint64 last);
bool etcd_load_text(struct engine *base, guint64 *ret_history, guint64 *ret_serial,
                    bool (*each)(const char *kind, const char *key, guint64 version,
                                 const char *text, void *data),
                    void *data, GError **error);
bool etcd_load(struct engine *base, guint64 *ret_history, guint64 *ret_serial,
               void (*each)(const char *kind, const char *key, guint64 version, json_t *object,
                            void *data),
               void *data, GError **error);
