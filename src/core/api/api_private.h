/* What the files of core/api share. */
#pragma once

#include "core/api/api.h"
#include "proto/api/route.h"

#define LIMIT_API_PAGE 1000 /* of one list, and if nobody says how many */
#define LIMIT_API_QUERY 64  /* names behind "?": each is looked at for each item of a list */

struct identity; /* identity_model.h */

struct api {
    const struct env *env;
    struct cell *cell;
    struct crypto *crypto;
    struct image_pipe *images;
    struct identity *identity;
    char *public_url, *region, *address;
    void (*audit)(const char *line, void *data);
    void *data;
    struct request_tally *tally;
};

/* Who asks, as his token says and as he is now. */
struct api_token {
    char *user_id, *user_name;
    char *project_id, *project_name; /* "": of no project */
    enum api_need highest;           /* of his roles there: NEED_TOKEN, READER, MEMBER, ADMIN */
    GPtrArray *roles;                /* char *, names */
    GPtrArray *methods;              /* char *: "password", "token" … */
    GPtrArray *audit_ids;
    gint64 issued_us, expires_us;
    char *credential_id; /* of the application credential that it was got by; "": by none */
};
void api_token_free(struct api_token *token);

/* One request that is being answered. */
struct api_call {
    struct api *api;
    const struct http_request *request;
    enum api_service service;
    const char *counted_as; /* its service; NULL: none is known */
    gint64 since_ms;
    const struct route *route;
    GPtrArray *vars;         /* of its path */
    GHashTable *query;       /* name -> value, decoded; of several the last one */
    guint minor;             /* its microversion */
    char *request_id;        /* "req-UUID" */
    char *base;              /* "http://HOST:PORT", for links */
    struct api_token *token; /* NULL: it needs none */
    json_t *json;            /* its body as it came; NULL: it has none */
    void *body;              /* the record of its route; NULL: that has none */
    char *resource;          /* what it is about, for the audit; NULL */
    char *note;              /* what the audit says besides; NULL */
    bool guarded; /* on record is how many bytes it has of an image: others are refused now */
};

/* One for each row of routes.def. An answer, or NULL with an error, which becomes the answer that
 * api_answer_error() makes of it. In a task; may wait. */
#define ROUTE(service, METHOD, path, action, min, max, need, body, wrapper, status, name, doc)     \
    struct http_answer *api_##name(struct api_call *call, GError **error);
#include "proto/api/routes.def"

/* --- the request --- */

/* What stands behind "?"; unref it. */
GHashTable *api_query_parse(const char *query);
/* Of its path; "" if that has no such name. */
const char *api_var(const struct api_call *call, const char *name);
/* NULL: not given. */
const char *api_query(const struct api_call *call, const char *name);
/* True, False, 1, 0, yes, no …, as clients write them; absent: `otherwise`. WRONG_INPUT. */
bool api_query_bool(const struct api_call *call, const char *name, bool otherwise, bool *ret,
                    GError **error);
/* The copy of the configuration; TEMPORARY: there is none yet. */
const struct config *api_config(const struct api_call *call, GError **error);
/* Whether it asks, and may ask, for those of all projects; of others it is ignored. */
bool api_all_tenants(const struct api_call *call);
bool api_is_admin(const struct api_call *call);

/* WRONG_INPUT: a list is asked for by times. It would be whole, or empty, and who asks acts on it.
 */
bool api_no_times(const struct api_call *call, GError **error);

/* An object of texts as KEY=VALUE; NULL: none. Unref it. WRONG_INPUT, names field and key. */
GPtrArray *api_words(const json_t *json, const char *field, GError **error);

/* --- the answer (api_answer.c) --- */

/* With the route's status; `json` is stolen, NULL: no body. */
struct http_answer *api_answer(const struct api_call *call, json_t *json);
/* A refusal in the form of its service, with a status of its own. */
struct http_answer *api_refuse(const struct api_call *call, guint status, const char *format, ...)
    G_GNUC_PRINTF(3, 4);
/* By the error's code: WRONG_STATE of a volume 400, as clients know it; LIMIT 413; what may work
 * later 503 with Retry-After. */
struct http_answer *api_answer_error(const struct api_call *call, const GError *error);
/* "2026-11-28T00:26:11.000000", of block storage; with "Z", of identity, as texts of JSON. 0: null.
 */
json_t *api_time(gint64 us);
json_t *api_time_utc(gint64 us);

/* --- metrics (api_metrics.c) --- */

#define API_METRICS_PATH "/metrics"

struct request_tally *api_tally_new(void);
/* It has been answered so. */
void api_count(const struct api_call *call, guint status);
/* To administrators, and whoever asks from this host. As handlers. */
struct http_answer *api_metrics(struct api_call *call, GError **error);

/* --- lists --- */

/* A page of a list: sorted by whoever calls, cut by `limit`, `offset` and `marker`. */
struct api_page {
    guint from, until; /* of the items */
    char *next; /* path and query of the next one, which may be empty; NULL: it is the last */
};
/* `ids`: of all items in their order. WRONG_INPUT: limit, offset; the marker is none of them: 404
 * of block storage, as Cinder has it, and 400 of images, as Glance. */
bool api_page(const struct api_call *call, const GPtrArray *ids, struct api_page *ret,
              GError **error);
void api_page_clear(struct api_page *page);

/* --- who asks (identity_token.c) --- */

/* Sets call->token by X-Auth-Token. PERMISSION: there is none, or none that is good: 401. */
bool api_authenticate(struct api_call *call, GError **error);
/* Its 401. */
struct http_answer *api_unauthorized(const struct api_call *call, const char *why);
