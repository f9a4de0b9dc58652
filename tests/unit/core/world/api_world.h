/*
 * What tests of the API share: storage_world with its wconfd, a front end on node2 with its cell,
 * and who asks it: fixed tokens.
 */
#pragma once

#include "proto/api/image_pipe.h"
#include "unit/core/world/storage_world.h"

#define PROJECT1 "10000000000040008000000000000001"
#define PROJECT2 "20000000000040008000000000000002"

/* Started, with a copy; `more` as in storage_set_up(). A member is registered: node1's. */
void api_set_up(GPtrArray *more);
void api_tear_down(void);
/* The front end's process. */
const struct env *api_front(void);
/* Who asks from now on: admin, member and reader are PROJECT1's, other is a member of PROJECT2; ""
 * has no token. "admin" at first. */
void api_be(const char *who);
/* In microversion 3.MINOR from now on; 0 at first. */
void api_at(guint minor);
/* From where the requests from now on come; NULL: from a host of its own, as at first. */
void api_from(const char *peer);
/* A header more of the requests from now on, in place of one of that name; NULL: none any more. */
void api_with(const char *name, const char *value);
/* "202 {…}"; `path` stands behind /volume/v3/PROJECT, or is a whole one of /image/ or /volume/, or
 * /metrics.
 * `body` "": none. */
char *api_ask(const char *method, const char *path, const char *body);
/* The last one. */
const struct http_answer *api_answered(void);
/* Bytes that are had in small pieces; of a text that ends so the client goes at its end. */
struct http_bytes *api_stream(const char *text);
#define API_CLIENT_GONE "(gone)"
/* What front ends get; NULL at first. */
extern struct image_pipe *api_images;
/* The body of an answer, which must have that status; NULL: it has none. */
json_t *api_get(guint status, const char *method, const char *path, const char *body);
/* One text of that, by a path of names with dots: "volume.status"; numbers as texts, null as "". */
char *api_text(const json_t *json, const char *path);
/* Must be refused with that status and that message. */
void api_refused(guint status, const char *message, const char *method, const char *path,
                 const char *body);
/* A header of the last answer; "": it had none. */
const char *api_header(const char *name);
/* Node1's member does all that is asked of it, well. */
void api_work(void);
/* It takes one row: the claim; and ends one, as storage_end_all(). */
guint64 api_take(const char *key);
char *api_end(json_t *item);
/* Called again and again while an answer is waited for; NULL at first. */
extern void (*api_meanwhile)(void);
/* No news of the configuration comes to the front end, or it comes again. */
void api_deafen(bool deaf);
/* A blank volume of that name, made; its id, kept for ever. */
const char *api_volume(const char *name);
#define api_says(json, path, expected)                                                             \
    do {                                                                                           \
        g_autofree char *text_ = api_text(json, path);                                             \
        g_assert_cmpstr(text_, ==, expected);                                                      \
    } while (0)
