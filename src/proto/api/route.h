/*
 * Routes: what the API answers to, rows of routes.def. A route says who may ask, in which
 * microversions, and which record its body is; who answers it is core/api's (api_private.h).
 */
#pragma once

#include "proto/http/http.h"
#include "proto/record.h"

/* Each stands below a prefix of its own: /identity, /volume, /image. */
enum api_service { API_IDENTITY, API_VOLUME, API_IMAGE, API_SERVICES };

/* Who may ask. TOKEN: whoever has one, of whatever scope; READER, MEMBER, ADMIN: who has such a
 * role, or one above it, in the project that his token is for. */
enum api_need { NEED_NOBODY, NEED_TOKEN, NEED_READER, NEED_MEMBER, NEED_ADMIN };

struct route {
    const char *name; /* "volumes_list": of its row and its handler */
    enum api_service service;
    const char *method;
    const char *path;   /* behind the prefix; "{name}" stands for one segment */
    const char *action; /* the only key of the body, of a POST to …/action; else "" */
    guint min, max;     /* microversions, of those of its service: 27 is 3.27 */
    enum api_need need;
    const struct record *body; /* NULL: it has none, or its handler reads it */
    const char *wrapper;       /* the only key of the body, whose value is the record; "": none */
    guint status;              /* of an answer that says yes */
    const char *doc;
};

const struct route *route_table(size_t *ret_count);
/* "volume": also the type in catalogs, microversion headers and prefixes. */
const char *api_service_name(enum api_service service);
/* The highest microversion of a service; its major number. */
guint api_service_newest(enum api_service service);
guint api_service_major(enum api_service service);
const char *api_need_name(enum api_need need);
/* The service whose prefix a path has, and what stands behind it ("" or "/…", borrowed); false: it
 * is nobody's. */
bool route_service(const char *path, enum api_service *ret_service, const char **ret_rest);

/* What a path and a method lead to. */
struct route_found {
    const struct route *route; /* NULL: to nothing; of actions any of their path */
    guint methods;             /* ways by which the path can be asked: 0: there is no such path */
    char *allowed;             /* "GET, POST": these, for 405 */
    GPtrArray *vars;           /* char *: name and value by turns */
};
void route_find(enum api_service service, const char *method, const char *rest, guint minor,
                struct route_found *ret);
void route_found_clear(struct route_found *found);
/* Of the same path as an action; NULL: there is none of that name in that microversion. */
const struct route *route_action(const struct route *route, const char *action, guint minor);
