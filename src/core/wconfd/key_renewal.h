/*
 * The renewal of the cluster's keys (docs/design/procedures.md, "Keys"; SAF-94 to 96): a new
 * authority with an overlap, certificates of all nodes, ConfD's key. The phases are on record, in
 * the cluster's object, each committed before its acts, and each act may be repeated: so a new
 * master goes on from the record. Once keys were renewed every node is asked once in a mastership
 * whom it trusts, so that one which was away hears of the end as well.
 */
#pragma once

#include "core/wconfd/wconf.h"
#include "proto/rpc.h"

/* From now on this is the master. */
void key_renewal_start(struct wconf *wconf);
void key_renewal_end(struct wconf *wconf);
/* WRONG_STATE while one is under way: `what` waits for its end. */
bool key_renewal_over(const struct wconf *wconf, const char *what, GError **error);

/* How far it is, and when the authority ends; NULL: this process has none. Free with
 * keys_progress_free(). */
struct keys_progress *key_renewal_progress(const struct wconf *wconf);

void key_renewal_handle_begin(struct wconf *wconf, struct rpc_request *request);
void key_renewal_handle_progress(struct wconf *wconf, struct rpc_request *request);
