/*
 * The API of the outside: what stock clients of identity v3, block storage v3 and image v2 ask and
 * are answered. A face: it decides nothing that wconfd does not decide. It knows no sockets and no
 * HTTP library: a request comes as a value and is answered by one (proto/http/http.h). One file for
 * each thing that clients speak of; what they share is api_private.h.
 *   api.c          from a request to its handler: route, microversion, token, role, body
 *   api_answer.c   answers and errors in the form of each service
 *   api_query.c    what stands behind "?", lists by pages
 *   cell.h         where the configuration is read, and changed
 *   identity_*.c   identity v3 and its model;  volume_*.c  block storage v3;  image_*.c  image v2
 */
#pragma once

#include "core/api/cell.h"
#include "proto/api/crypto.h"
#include "proto/api/identity.h"
#include "proto/api/image_pipe.h"
#include "proto/http/http.h"

struct api;

struct api_options {
    const struct env *env;
    struct cell *cell; /* borrowed, like the next two */
    struct identity_store *identity;
    struct crypto *crypto;
    struct image_pipe *images;
    const char *public_url; /* "https://api.example.org:8774", for catalogs and links; "": as the
                               client has called it */
    const char *region;     /* of catalogs */
    const char *address; /* an IP address of this host, at which it listens; NULL: no single one */
    /* One line of JSON per login and writing request (SAF: no secrets); NULL: nobody keeps them. */
    void (*audit)(const char *line, void *data);
    void *data;
};

/* CORRUPT, STORAGE: the identities cannot be read. */
struct api *api_new(const struct api_options *options, GError **error);
/* Nothing is being served any more. */
void api_free(struct api *api);
/* Whether the body of that request is to come in pieces (`stream`), and is not gathered. */
bool api_wants_stream(const struct http_request *request);
/* `request` stays until `done`, which comes once, from a task, and takes the answer; not if the
 * environment's tasks are killed first. */
void api_serve(struct api *api, const struct http_request *request,
               void (*done)(struct http_answer *answer, void *data), void *data);
