/*
 * Routes of the remote API: what fettle-rapid answers to, rows of rapi_routes.def, and the fields
 * that it tells of objects, rows of rapi_fields.def. Read by core/rapi, which answers, and by who
 * tells what there is (reference, OpenAPI).
 */
#pragma once

#include "proto/face.h"
#include "proto/records.h"

enum rapi_need { RAPI_NEED_READ, RAPI_NEED_NAME, RAPI_NEED_WRITE };

enum rapi_kind { RAPI_OP, RAPI_LIST, RAPI_ONE, RAPI_LUXI, RAPI_OWN, RAPI_JOB, RAPI_NONE };

enum rapi_part_kind {
    RAPI_PATH,
    RAPI_FLAG,
    RAPI_TEXT,
    RAPI_TEXTS,
    RAPI_BODY,
    RAPI_RENAME,
    RAPI_FORBID,
    RAPI_FIXED,
    RAPI_KEY,
    RAPI_ALIAS,
    RAPI_OPCODE,
};

/* Where a value of a route comes from, and where it goes. */
struct rapi_part {
    enum rapi_part_kind kind;
    const char *from, *to, *doc;
};

struct rapi_route {
    const char *method, *path;
    enum rapi_need need;
    enum rapi_kind kind;
    const char *what; /* OP: "INSTANCE_STARTUP"; LIST, ONE: "instance"; LUXI: its method; NONE: why
                       * there is no such thing */
    const char *name; /* "instances_name_startup" */
    const char *doc;
    enum face face;                /* below /2: Ganeti's */
    const struct rapi_part *parts; /* those of its rows */
    size_t part_count;
    const struct opcode *opcode; /* of an OP */
};

const struct rapi_route *rapi_route_table(size_t *ret_count);

/* Whether it queues a job, which may be tried only. */
bool rapi_route_queues(const struct rapi_route *route);

/* Whether there is a route whose jobs have that opcode ("OP_INSTANCE_STARTUP"). */
bool rapi_routes_queue(const char *opcode);

/* What a path and a method lead to. HEAD is answered as GET. */
struct rapi_found {
    const struct rapi_route *route; /* NULL: to nothing */
    char *allowed;                  /* "GET, HEAD, PUT", for 405; "": there is no such path */
    GPtrArray *vars;                /* char *: name and value by turns */
};
void rapi_route_find(const char *method, const char *path, struct rapi_found *ret);
void rapi_found_clear(struct rapi_found *found);

/* The first part of a kind, by where its value comes from (NULL: whatever); NULL: there is none. */
const struct rapi_part *rapi_route_part(const struct rapi_route *route, enum rapi_part_kind kind,
                                        const char *from);

/* Names of a resource's fields, char * borrowed; `one`: also those of one object alone. */
GPtrArray *rapi_fields(enum face face, const char *resource, bool one);
