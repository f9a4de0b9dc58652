/*
 * Members of etcd on this host (proto/members.h): one process of Debian's etcd-server, which
 * outlives the node daemon, talks TLS only and only at the address in its URLs, and runs as the
 * user `etcd`. Used by fettle-noded.
 *
 *   etc/engine.json         which members there are (io/engine_file.h)
 *   etc/etcd/member.*       key and certificate of the member; the key is the user's
 *   etc/etcd/client.*       of this host's daemons
 *   etc/etcd/NAME-next.…    other ones, while the cluster's keys are renewed (etcd_keys.c)
 *   etc/etcd/authority.crt  issuers of both, and of nobody else: whom members let in
 *   var/etcd                its data, mode 0700, the user's; var/etcd.aside-TIME: what was put
 * aside run/etcd.json           its process log/etcd.log            what it says, at most
 * LIMIT_ETCD_LOG_BYTES
 */
#pragma once

#include "io/node_config.h"
#include "proto/members.h"

/* `paths` and `config` are kept by reference. Never fails: what is missing is said by the first
 * call that needs it. */
struct members *etcd_host_new(const struct node_paths *paths, const struct node_config *config);
/* The process lives on. */
void etcd_host_free(struct members *members);
