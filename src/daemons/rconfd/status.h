/*
 * What fettle-rconfd tells the people of its host: run/rconfd.status, a line a minute about
 * datagrams that it dropped, and var/confd.key for tools that ask.
 */
#pragma once

#include "core/confd/confd.h"
#include "io/node_config.h"

struct rconfd_status {
    const struct node_paths *paths;
    const struct confd *confd;
    const char *address;
    guint port;
    char *why;     /* it does not answer; NULL: it does */
    char *written; /* what stands in the file */
    gint64 written_ms;
    gint64 complained_ms;
    struct confd_counters complained; /* what was told */
};

/* Sets `why` (copied; NULL: it answers), logs the change, and writes the file at once. */
void rconfd_status_set(struct rconfd_status *status, const char *why);
/* Each CONFD_LOOK_MS: writes and tells what is due. */
void rconfd_status_tick(struct rconfd_status *status);
void rconfd_status_clear(struct rconfd_status *status);
