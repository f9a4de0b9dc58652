/*
 * A model of an etcd cluster as the JSON gateway shows it: keys with all their revisions,
 * transactions that are done whole and one after the other, leases that end by the leader's clock.
 * Who gets through to it, and when, is model_client.c's.
 */
#pragma once

#include "base/json.h"

struct model_etcd;

/* What a transaction has written, in order. */
struct model_write {
    const char *key;
    const char *value; /* NULL: deleted */
    gint64 lease;
};

/* After each transaction of `writer` (see model_etcd_run) that has written something, and with
 * `writer` NULL after a lease has ended. */
typedef void (*model_written)(gint64 now_ms, void *writer, const struct model_write *writes,
                              guint count, void *data);

struct model_etcd *model_etcd_new(model_written written, void *data);
void model_etcd_free(struct model_etcd *etcd);

/* Does a request: its answer, or NULL if etcd refuses it. `now_ms` is the leader's clock and never
 * goes back; `writer` is told on. */
json_t *model_etcd_run(struct model_etcd *etcd, gint64 now_ms, void *writer, const char *path,
                       const json_t *body);
/* Leases end only while there is a leader; a new one gives each of them its whole time again. */
void model_etcd_leader_lost(struct model_etcd *etcd, gint64 now_ms);
void model_etcd_leader_new(struct model_etcd *etcd, gint64 now_ms);

/* The key as it is at this moment; NULL: there is none. `ret_create` may be NULL. Leases that are
 * over have ended. */
const char *model_etcd_value(struct model_etcd *etcd, gint64 now_ms, const char *key,
                             gint64 *ret_create);
/* Every present key that begins with `prefix`, in no order. */
void model_etcd_each(struct model_etcd *etcd, const char *prefix,
                     void (*each)(const char *key, const char *value, void *data), void *data);
