/*
 * The configuration daemon's thinking: transactions, epoch, change stream, confirmations, locks.
 * fettle-wconfd wires it to a socket and an engine; the simulator to its own.
 */
#pragma once

#include "proto/env.h"

struct wconf;

struct wconf *wconf_new(const struct env *env);
/* In a task: journal, load, campaign, then announces to the nodes in tasks of their own. CORRUPT,
 * STORAGE: do not serve. */
bool wconf_start(struct wconf *wconf, GError **error);
/* One call; answers now or later. */
void wconf_handle(struct wconf *wconf, struct rpc_request *request);
/* Before wconf_start(): these changes (GPtrArray of struct change, stolen; their versions do not
 * matter) are on record before anything is answered. `unheard_since` not 0: so is that no node has
 * told what it runs, since then (SAF-09). */
void wconf_put_on_record(struct wconf *wconf, GPtrArray *changes, guint64 unheard_since);
/* While wconf_start() waits for promises: a person says that the candidates that are silent are
 * gone for good. `changes` (GPtrArray of struct change, stolen; their versions do not matter) are
 * its first commit, behind the serial `leap`. */
void wconf_go_alone(struct wconf *wconf, GPtrArray *changes, guint64 leap);
/* In a task, of a replicated engine: takes nothing on any more, lets what is on its way be stored,
 * and gives the seat up in favour of the node `next` (UUID and name). True: mastership is over, all
 * that waited was answered; on_step_down is not called. TEMPORARY: it goes on as the master. When
 * nobody knows which of the two it steps down as ever, with UNKNOWN_RESULT. */
bool wconf_hand_over(struct wconf *wconf, const char *next, const char *name, GError **error);
/* Where it stands, as master or on its way to it. */
void wconf_position(const struct wconf *wconf, guint64 *ret_history, guint64 *ret_epoch,
                    guint64 *ret_serial);
/* What is committed; borrowed. */
const struct config *wconf_config(const struct wconf *wconf);
/* After the engine was closed. Whatever still waits is answered. */
void wconf_free(struct wconf *wconf);
/* Called once when it can be master no longer (SAF-08): a commit was refused or its result is
 * unknown, or mastership is lost. Everything that waited has been answered by then; the process
 * must end, a restart begins anew. */
void wconf_on_step_down(struct wconf *wconf, void (*fn)(const GError *reason, void *data),
                        void *data);

/* WRONG_INPUT or ALREADY_EXISTS with the parameter that cannot be. */
bool wconf_bootstrap_check(const struct op_cluster_init *params, GError **error);
/* The objects of a new cluster (OP_CLUSTER_INIT): GPtrArray of struct change. `node` is what
 * etc/node.json says. */
GPtrArray *wconf_bootstrap_changes(const struct op_cluster_init *params, const char *cluster_uuid,
                                   const char *node_uuid, guint port, const char *group_uuid);
/* One more of them: a secret. */
struct change *wconf_bootstrap_secret(const char *name, const char *value);
