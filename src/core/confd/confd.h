/*
 * The thinking of fettle-rconfd: a datagram in, a datagram or silence out
 * (docs/design/procedures.md, "ConfD"). It answers from one copy of the configuration and asks
 * nobody. Whatever is not signed with the cluster's key, or not of these minutes, is dropped and
 * counted.
 */
#pragma once

#include "core/confd/copy.h"

struct confd;

/* `node_uuid`: of this host. */
struct confd *confd_new(const char *node_uuid);
void confd_free(struct confd *confd);

/* From now on it answers from this copy, which it owns; NULL: it has none. */
void confd_set_copy(struct confd *confd, struct confd_copy *copy);
/* The present one, to be brought up to date; NULL: none. */
struct confd_copy *confd_copy_of(const struct confd *confd);

/* What is called when a signed request has come, before it is answered: it may bring the copy up to
 * date, or set another. */
void confd_on_request(struct confd *confd, void (*catch_up)(void *data), void *data);

/* NULL if it answers; else why it does not, as the end of a sentence: "this node is no master
 * candidate". */
const char *confd_silent_because(const struct confd *confd);

/* The reply to a datagram that came from that address, to be freed; NULL: silence. It is signed
 * with the key that has signed the question: the cluster's, or, from a node's own address, that of
 * its monitoring, which is answered less. */
char *confd_handle(struct confd *confd, gint64 now_s, const char *from, const char *data,
                   size_t len, size_t *ret_len);

struct confd_counters {
    guint64 answered;                   /* replies of status ok */
    guint64 failed;                     /* replies of another status */
    guint64 dropped[CONFD_FAULT_COUNT]; /* no reply */
};
const struct confd_counters *confd_counters(const struct confd *confd);
guint64 confd_dropped(const struct confd *confd);
