/* What the files of core/rapi that answer requests share. */
#pragma once

#include "core/rapi/events/event_hub.h"
#include "core/rapi/rapi.h"
#include "proto/metrics/request_tally.h"
#include "proto/rapi/rapi_route.h"

#define LIMIT_RAPI_VALUES 50000 /* of a body */
#define LIMIT_RAPI_QUERY 1024   /* arguments behind "?": as many tags as one job adds */
#define LIMIT_RAPI_PAGE 2000    /* objects of a list that are asked for at once */

struct rapi {
    const struct env *env;
    struct rapi_luxid *luxid;
    struct rapi_users *users;
    struct request_tally *tally;
    struct event_hub *hub; /* who follows events */
    struct http_bytes *(*gzip)(struct http_bytes *plain);
};

/* One request that is being answered, in a task. */
struct rapi_call {
    struct rapi *rapi;
    const struct http_request *request;
    const struct rapi_route *route;
    GPtrArray *vars;  /* of its path: names and values by turns */
    GPtrArray *query; /* what stands behind "?", likewise */
    char *user;       /* who asks; "": anybody */
    json_t *body;     /* NULL: it has none */
};

/* Rows of kind OWN and JOB: an answer, or NULL with an error, of which rapi_answer_error() makes
 * one. */
typedef struct http_answer *rapi_own_fn(struct rapi_call *call, GError **error);
#define RAPI_OWN_OP(what)
#define RAPI_OWN_LIST(what)
#define RAPI_OWN_ONE(what)
#define RAPI_OWN_LUXI(what)
#define RAPI_OWN_NONE(what)
#define RAPI_OWN_OWN(what) rapi_own_fn rapi_own_##what;
#define RAPI_OWN_JOB(what) rapi_own_fn rapi_own_##what;
#define RAPI_ROUTE(METHOD, path, need, kind, what, name, doc) RAPI_OWN_##kind(what)
#define RAPI_PART(kind, from, to, doc)
#include "proto/rapi/rapi_routes.def"

/* --- the request (rapi.c) --- */

/* Of its path; "": it has no such name. */
const char *rapi_var(const struct rapi_call *call, const char *name);
/* Behind "?", the first of that name; NULL: not given. */
const char *rapi_query(const struct rapi_call *call, const char *name);
/* The same as a number that is 0 or not. WRONG_INPUT. */
bool rapi_query_flag(const struct rapi_call *call, const char *name, bool *ret, GError **error);
/* A member of its body; NULL: there is none. */
json_t *rapi_member(const struct rapi_call *call, const char *name);
/* Asks luxid in the words of the route's face, for whoever asks. */
json_t *rapi_ask(const struct rapi_call *call, const char *method, json_t *args, GError **error);

/* The same with the text of the result, of which no tree is made; free it with g_free(). */
char *rapi_ask_text(const struct rapi_call *call, const char *method, json_t *args, GError **error);

/* --- the answer (rapi_answer.c) --- */

/* 200; `json` is stolen. */
struct http_answer *rapi_answer(json_t *json);
/* The same of a text of JSON. */
struct http_answer *rapi_answer_text(char *text);
/* 200 of the master alone, for what luxid need not be asked: whoever finds the master by what is
 * answered must not find another node. `json` is stolen. */
struct http_answer *rapi_answer_master(struct rapi_call *call, json_t *json, GError **error);
/* 401 */
struct http_answer *rapi_answer_unknown(void);
/* {"code", "message", "explain"} */
struct http_answer *rapi_refuse(guint status, const char *format, ...) G_GNUC_PRINTF(2, 3);
struct http_answer *rapi_answer_error(const GError *error);

/* --- kinds of rows --- */

/* OP (rapi_op.c). */
struct http_answer *rapi_run_op(struct rapi_call *call, GError **error);
/* The opcode's parameters as the route's parts say them; `body` false: without what is in the body.
 */
json_t *rapi_op_parameters(struct rapi_call *call, bool body, GError **error);
/* A member of the body that any opcode has. */
bool rapi_is_common(const char *name);
/* Queues a job of such opcodes, a list, which is stolen: each gets OP_ID from `ids`, the reason
 * trail and what is asked for of any opcode. */
struct http_answer *rapi_submit(struct rapi_call *call, json_t *ops, GError **error);

/* LIST, ONE (rapi_query.c), LUXI (rapi_own.c). */
struct http_answer *rapi_run_list(struct rapi_call *call, GError **error);
struct http_answer *rapi_run_one(struct rapi_call *call, GError **error);
struct http_answer *rapi_run_luxi(struct rapi_call *call, GError **error);

/* A list with all fields of its objects (rapi_bulk.c): of those keys, JSON texts in their order,
 * which it takes. */
struct http_answer *rapi_bulk(struct rapi_call *call, GPtrArray *keys, GError **error);
/* How a list is asked for: arguments, stolen by rapi_ask(), and the method; rows of plain values,
 * or (`pairs`) of [status, value]. NULL in `from`: all, else from that key on to before `until`. */
struct rapi_page {
    const char *method;
    bool pairs;
};
struct rapi_page rapi_page_of(enum face face, const char *resource);
/* JSON to a filter of Query, or null. */
json_t *rapi_fields_json(const GPtrArray *names);
