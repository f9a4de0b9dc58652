/*
 * The users that guests run as on this node (SAF-106): each guest that is started here, and each
 * replica that is exported, gets one of its own. They are numbers from a pool, without a name or a
 * group but the same number, and own nothing but sockets and keys of one process: images stay
 * root's and are handed over open (unprivileged.h). So nothing is kept on disk: which of them are
 * in use is what processes there are.
 *
 * Before a number is given out a look at all processes of this host has found none of it: neither
 * of another node daemon's guests, nor of those that an earlier life of this one has started.
 */
#pragma once

#include "proto/records.h"

struct guest_users;

/* What etc/node.json says of them, 0: the default. If we are not root there is no other user, and
 * all run as what we are. */
struct guest_users *guest_users_new(const struct node_config *config);
/* A killed task lets its guest go after all else has gone. */
struct guest_users *guest_users_ref(struct guest_users *users);
/* NULL is allowed. */
void guest_users_unref(struct guest_users *users);

/* One that no process has. The shared one if none is free; 0 if we are not root. */
guint32 guest_users_take(struct guest_users *users);
/* Of what was taken, when nothing more is started as it. Others are passed over. */
void guest_users_give_back(struct guest_users *users, guint32 uid);
/* The one for what needs none of its own: all that a full pool leaves without, and trials of
 * accelerators. */
guint32 guest_users_shared(const struct guest_users *users);
/* How many there are (0: we are not root), and how many were not free at the last look. */
guint guest_users_count(struct guest_users *users, guint *ret_used);
