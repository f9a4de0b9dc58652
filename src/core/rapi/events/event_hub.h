/*
 * Who follows events by HTTP (GET /fettle/v1/events): one call of WatchChanges for all of them,
 * from the first to the last, and one window of what has happened (event_window.h). Nothing is kept
 * for a reader but his place. For core/rapi/rapi_events.c.
 */
#pragma once

#include "core/rapi/luxid.h"
#include "core/rapi/rapi_users.h"
#include "proto/env.h"
#include "proto/http/http.h"

#define LIMIT_EVENT_READERS 1000
#define EVENT_WATCH_S 2      /* of one call of WatchChanges */
#define EVENT_ALIVE_MS 10000 /* after which a reader to whom nothing happens hears that */
#define EVENT_TEND_MS 2500   /* between two looks at who has to */
#define EVENT_USERS_MS 20000 /* between two looks at who may still read */
#define EVENT_AWAY_MS 60000  /* luxid has not answered for so long: readers are let go */
#define EVENT_RETRY_MS 500   /* until it is asked again */

struct event_hub;

struct event_hub *event_hub_new(const struct env *env, struct rapi_luxid *luxid,
                                struct rapi_users *users);
/* Readers are gone. Tasks of it may be left, which do nothing more. */
void event_hub_free(struct event_hub *hub);

struct event_wish {
    guint32 kinds;        /* of event_bit() */
    const json_t *filter; /* of Query, borrowed; NULL: all */
    const char *place;    /* where it was, as its client says; "": nowhere */
    const char *user;     /* who reads; "": anybody */
    const char *mark;     /* of rapi_users_mark(), from before he was admitted */
};

/* In a task; waits. A reader, to be freed by whoever reads. WRONG_INPUT: the filter is none, or has
 * fields that a kind has not, or which change untold; TEMPORARY: too many read, or luxid has too
 * much to do; else as rapi_luxid's call. */
struct http_feed *event_hub_join(struct event_hub *hub, const struct event_wish *wish,
                                 GError **error);
/* The same without a reader: whether there would be one. */
bool event_hub_check(struct event_hub *hub, const struct event_wish *wish, GError **error);
guint event_hub_readers(const struct event_hub *hub);
