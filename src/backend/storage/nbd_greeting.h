/*
 * Servers that speak first: what an export says to whoever connects is how noded learns that it
 * lives (nbd_probe.h), or that it has settled (settle.h).
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

struct greeting {
    const char *begins; /* what it must begin with */
    gsize bytes;        /* how long it is; at most LIMIT_GREETING_BYTES */
    const char *leave;  /* said before hanging up, so that the server's log stays quiet */
    gsize leave_bytes;
};

/* In a task: waits until every one of the sockets (non-blocking, connected or about to be; -1 for
 * one that could not be, which is a no) has greeted, at most `timeout_ms` in all. Closes them. */
bool nbd_greeting_await(const struct greeting *greeting, const int *fds, guint count,
                        guint timeout_ms);
