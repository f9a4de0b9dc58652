/*
 * Accepts TCP connections and gives each to its owner when it may begin with it, as with the
 * handshake of TLS. That occupies one of the few threads that GIO has for it, for as long as the
 * peer lets it wait. So a connection begins only when its peer has said something, and of all
 * strangers only LIMIT_SHAKING are at it at once, so that the others' have threads. The turn is
 * that of whose address has the fewest open, and while somebody waits for it nobody has it for
 * longer than LIMIT_SHAKING_MS: who begins many handshakes and ends none takes little time of who
 * begins one. Who keeps how many open is limited by address (acceptor_pots.h). Where owners say
 * which of theirs wait for their peers, one of these gives way to a new one when there are too
 * many: of the address that has the most open the one that has waited longest. So who opens many
 * and uses none keeps nobody out.
 */
#pragma once

#include "io/net/acceptor_pots.h"

#include <gio/gio.h>

#define LIMIT_SHAKING_MS 2000 /* of one handshake, while others wait for their turn */

struct acceptor;
/* One connection that was accepted, until arrival_end(). */
struct arrival;

struct acceptor_events {
    /* Whether a member has that address; NULL: none has. */
    bool (*is_member)(const char *address, void *data);
    /* It may begin. Its owner ends it, now or later. */
    void (*begin)(struct arrival *arrival, GSocketConnection *base, void *data);
    /* It has begun, and was not settled within LIMIT_TLS_MS since it came, or within
     * LIMIT_SHAKING_MS since it began while others wait; or it has settled, and gives way. */
    void (*late)(struct arrival *arrival, void *data);
    /* Since when, by the boot clock, one that has settled does nothing but wait for its peer; 0: it
     * does more. NULL: none gives way, and who comes when there are too many is refused. */
    gint64 (*idle_since_ms)(struct arrival *arrival, void *data);
    /* Why one is refused; NULL: nobody wants to know. */
    void (*complain)(const char *line, void *data);
};

struct acceptor_options {
    const char *address; /* an IP address */
    guint port;
    int fd;               /* of a socket that listens there already, taken over; 0: none does */
    const char *name;     /* begins lines of complaint: "bus" */
    const char *settings; /* where address and port can be changed, for messages */
    struct acceptor_limits limits;
};

/* WRONG_INPUT: no address; ENVIRONMENT: it cannot be listened on. The texts of the limits and
 * `name` stay the caller's. */
struct acceptor *acceptor_new(const struct acceptor_options *options,
                              const struct acceptor_events *events, void *data, GError **error);
/* Nothing comes any more; those that have begun are still their owners' to end. */
void acceptor_free(struct acceptor *acceptor);
/* The limit of strangers, from now on. */
void acceptor_limit(struct acceptor *acceptor, guint strangers);

/* TLS over one, to be shaken. `authority`: whose certificates it takes; NULL: it asks for none. GIO
 * would read all authorities of the host for each, for whoever says a byte. NULL: an error. */
GIOStream *acceptor_tls(GSocketConnection *base, GTlsCertificate *certificate,
                        GTlsDatabase *authority, GError **error);

/* Its owner's; NULL at first. */
void arrival_set_owner(struct arrival *arrival, void *owner);
void *arrival_owner(const struct arrival *arrival);
/* "192.0.2.7:41234" */
const char *arrival_place(const struct arrival *arrival);
/* It has done what it had to begin with: others have their turn, and it is late no more. It goes on
 * to count for its address. */
void arrival_settle(struct arrival *arrival);
/* It is gone. */
void arrival_end(struct arrival *arrival);
/* Of one that has proven who it is each line is written, of others one an address and minute. */
void arrival_complain(const struct arrival *arrival, bool proven, const char *why);
