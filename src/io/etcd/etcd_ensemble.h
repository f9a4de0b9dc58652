/*
 * The members of etcd together (proto/ensemble.h), asked over HTTPS with the client certificate of
 * this node. Only fettle-wconfd has one.
 */
#pragma once

#include "io/node_config.h"
#include "proto/ensemble.h"

/* `paths` is kept by reference. Never fails: what is missing is said by the first call. */
struct ensemble *etcd_ensemble_new(const struct node_paths *paths, const char *node_uuid);
void etcd_ensemble_free(struct ensemble *ensemble);

/* A client of all members in `config`, that of `node_uuid` first, with this node's client
 * certificate. Errors as etcd_client_new(). */
struct etcd_client *etcd_ensemble_client(const struct node_paths *paths, const char *node_uuid,
                                         const struct engine_config *config, GError **error);
