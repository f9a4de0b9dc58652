/*
 * Volumes of guests in pools of a Ceph (SAF-58): QEMU opens them itself, whoever else has them open
 * is shut out by Ceph's blocklist. In tasks.
 */
#pragma once

#include "base/error.h"
#include "base/json.h"
#include "proto/records.h"

/* A file in memory that has all that QEMU needs to get in, the key too: nobody else can open it by
 * a name, and no argument has it. It is opened as /proc/self/fd/FD, once. -1: an error. */
int pool_conf(const struct guest_volume *volume, GError **error);
json_t *pool_blockdev(const struct guest_volume *volume, const char *node, int fd);

/* Shuts out, for ten years, whoever is on record as having it open, has its lock, or watches it. */
bool pool_fence(const struct guest_volume *volume, GError **error);
/* As proto/hypervisor.h. */
struct hypervisor;
bool pool_look(struct hypervisor *hv, const struct guest_volume *volume, guint64 *ret_bytes,
               char **ret_clients, GError **error);
