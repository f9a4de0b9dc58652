/*
 * REST as Ganeti has it (RAPI 2), and ours below /fettle/v1: a face. A request comes as a value and
 * is answered by one (proto/http/http.h); everything that it wants is asked of LuxiD (luxid.h). It
 * knows no sockets and no HTTP library.
 */
#pragma once

#include "core/rapi/luxid.h"
#include "core/rapi/rapi_users.h"
#include "proto/env.h"
#include "proto/http/http.h"

struct rapi;

struct rapi_options {
    const struct env *env;
    struct rapi_luxid *luxid; /* borrowed, like the next one */
    struct rapi_users *users;
    /* Bytes as gzip, which takes them (io/http/http_gzip.h); NULL: nothing is. */
    struct http_bytes *(*gzip)(struct http_bytes *plain);
};

struct rapi *rapi_new(const struct rapi_options *options, GError **error);
/* Nothing is being served any more. */
void rapi_free(struct rapi *rapi);
/* `request` stays until `done`, which comes once, from a task, and takes the answer; not if the
 * environment's tasks are killed first. */
void rapi_serve(struct rapi *rapi, const struct http_request *request,
                void (*done)(struct http_answer *answer, void *data), void *data);
