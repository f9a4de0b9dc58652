/*
 * What tests of the remote API share: query_world, whose luxid answers, and who asks it by HTTP.
 * Who that is is said by the test: no password is looked at here.
 */
#pragma once

#include "core/rapi/rapi.h"
#include "unit/core/world/query_world.h"

/* Runs a test in such a world. */
void rapi_case(const char *path, void (*test)(struct queue_world *w));
/* Who asks from now on, and what he may; "alice", who may write, at first. */
void rapi_be(const char *name, enum rapi_access access);
/* The next call fails so; or one after that many others. */
void rapi_fail_next(enum fettle_error code, const char *message);
void rapi_fail_after(guint calls, enum fettle_error code, const char *message);
/* … and so do those after it, `times` in all. */
void rapi_fail_times(guint calls, guint times, enum fettle_error code, const char *message);
/* That one, and all after it until the next of these, fail after so long. */
void rapi_fail_on(guint calls, guint after_ms, enum fettle_error code, const char *message);
/* Asks, and reads all of the answer: "200 {…}"; free it. `body` NULL: none; `target`: path and what
 * stands behind "?". */
char *rapi_say(const char *method, const char *target, const char *body);
/* The body of an answer, which must have that status. */
json_t *rapi_get(guint status, const char *method, const char *target, const char *body);
/* It must be refused with that status and that explanation. */
void rapi_refused(guint status, const char *explain, const char *method, const char *target,
                  const char *body);
/* Follows what happens; what is said at once is added to `text`. Free it by its own function. */
struct http_feed *rapi_follow(const char *target, GString *text);
/* Each so long behind the one before, while that is being answered; `feeds` gets one of each. How
 * many calls that wait for changes luxid had at once. */
guint rapi_follow_all(const GPtrArray *targets, guint apart_ms, GPtrArray *feeds);
/* What it has to say by now; false: it is over. */
bool rapi_read(struct http_feed *feed, GString *text);
/* The header Last-Event-ID of requests from now on; NULL: they have none. */
void rapi_last_id(const char *id);
/* A header of the last answer; "": it had none. */
const char *rapi_header(const char *name);
/* The type that bodies say they are of. */
void rapi_type(const char *type);
/* A look at who somebody is takes that long from now on. */
void rapi_users_last(guint ms);
/* Calls that were made of luxid. */
guint rapi_calls(void);
/* Of the last call: whom it was for ("": nobody), and the longest text that one has answered. */
const char *rapi_last_user(void);
gsize rapi_longest_text(void);
/* What clients take from now on (Accept-Encoding), borrowed; "" at first. How many answers were
 * handed on to become gzip, which the text of rapi_say() does not show. */
void rapi_take(const char *encodings);
guint rapi_packed(void);
/* Fails if no request has been answered well by some row of the table (501 by those of kind NONE).
 */
void rapi_assert_seen(void);
