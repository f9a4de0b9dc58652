/*
 * Members of a real etcd with TLS on loopback, for tests of io: certificates of a real authority,
 * processes that end with the test.
 */
#pragma once

#include "io/etcd/etcd_client.h"
#include "io/net/authority.h"
#include "io/node_config.h"

struct etcd_side {
    GPid pid; /* 0: it does not run */
    char *name, *data, *client_url, *peer_url;
};

/* "node1" for index 0, its data below var/, its ports free a moment ago. */
void etcd_side_init(struct etcd_side *side, const struct node_paths *paths, guint index);
/* Kills it. */
void etcd_side_stop(struct etcd_side *side);
void etcd_side_clear(struct etcd_side *side);

/* A file in etc/; to be freed. */
char *etcd_side_path(const struct node_paths *paths, const char *name);
/* "member" and "client" (.key, .crt) by this authority, and authority.crt that both trust. */
void etcd_side_certificates(const struct node_paths *paths, struct authority *authority);
/* Starts sides[index] with the certificate `stem`; it is told of the first `count`, and that it is
 * of a "new" or an "existing" cluster. */
void etcd_side_start(const struct node_paths *paths, struct etcd_side *sides, guint index,
                     guint count, const char *initial, const char *stem);
/* `urls`: NULL at the end; `ca`: the file of whom the client trusts. */
struct etcd_client *etcd_side_client(const struct node_paths *paths, const char *const *urls,
                                     const char *stem, const char *ca, guint member_ms);
