/*
 * A small Ceph: one monitor, one manager, one OSD that keeps its objects in memory, with keys
 * (cephx) and a pool `rbd`. Who starts its daemons, and in which network, is the caller's matter:
 * the lab's supervisor, or a test.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

#define CEPH_PACKAGES "ceph-mon ceph-mgr ceph-osd ceph-common qemu-block-extra"
#define CEPH_USER "fettle" /* its client, who may use images and nothing else */
#define CEPH_POOL "rbd"
#define CEPH_DAEMONS 3

/* ENVIRONMENT, with what installs it, if a program or QEMU's part is missing. */
bool ceph_check(GError **error);

/* Makes DIR, which must not be there, with all that the daemons need; `address` is the monitor's.
 */
bool ceph_make(const char *dir, const char *address, GError **error);

/* Name and command of daemon `number`, in the order in which they are started; g_strfreev() it. */
const char *ceph_daemon(guint number);
char **ceph_command(const char *dir, guint number);

/* The words that run `words` in a namespace, or, without one (NULL), here; g_strfreev() them. */
char **ceph_inside(const char *netns, const char *const *words);

/* Once they run: waits until they work, and makes the pool. `netns`: the namespace that they are
 * in, or NULL. */
bool ceph_settle(const char *dir, const char *netns, GError **error);

/* What clients read: g_free() it. The key of CEPH_USER lies beside it. */
char *ceph_conf(const char *dir);
