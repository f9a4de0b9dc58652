/*
 * What lets in at its Ceph whoever works for a back end of kind `rbd` as POOL_USER, and can read
 * neither the configuration of that nor the key: one text, kept in memory, and made anew when one
 * of the files has changed that it was made of. For rbd_call.h.
 */
#pragma once

#include "base/error.h"
#include "proto/records.h"

struct rbd_confs;
struct rbd_confs *rbd_confs_new(void);
void rbd_confs_free(struct rbd_confs *confs);

/* In a task: to be handed over by the descriptor of a file in memory, and freed with g_free().
 * NULL: an error that names the back end; without a key there is none in it, and Ceph says so. */
char *rbd_conf_text(struct rbd_confs *confs, const struct backend *backend, GError **error);
