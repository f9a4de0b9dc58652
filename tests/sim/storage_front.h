/*
 * Front ends of the API in the simulator: core/api as shipped, on each host, and clients that ask
 * them; they are asked with values, as the HTTP server would ask (proto/http/http.h). The network,
 * the masters and the members behind them are those of storage_sim.h.
 *
 *   storage_front.c    front ends, and requests on their way to them and back
 *   storage_client.c   what clients ask for
 *   storage_answers.c  what must hold of what they are answered
 */
#pragma once

#include "core/api/api.h"
#include "helper/fake_identity.h"
#include "storage_sim.h"

#define FRONT_PROJECT "10000000000040008000000000000001"
/* What the project may have, however many front ends ask. */
#define FRONT_VOLUMES 24
#define FRONT_GIGABYTES 90

struct storage_front {
    struct storage_host *host;
    struct env *env; /* NULL: it does not run */
    struct cell *cell;
    struct api *api;
    bool paused; /* by itself */
    guint restart;
    guint64 floor; /* its copy is at least of that serial: its answers have shown that */
    bool astray;   /* its copy may yet be of a past that is lost */
    bool whole;    /* it has shown what is on record since the faults are over */
};

/* A request on its way, and its answer; lives until whoever asks has taken that. */
struct storage_exchange {
    struct storage_front *front;
    struct http_request *request;
    struct http_answer *answer; /* NULL: there is none, or none any more */
    bool done;
    gint64 begun_ms;
    bool works; /* it is for a row of work */
    char *name; /* that a volume which there is gets by it; NULL: none does */
};

struct storage_fronts {
    struct storage_world *storage;
    struct storage_front fronts[MS_HOSTS];
    struct fake_identity *identities; /* that all of them share, and their keys */
    struct fake_crypto *crypto;
    GPtrArray *exchanges; /* struct storage_exchange */
    char *tokens[2];      /* of an administrator and of a member; NULL: to be got */
    GHashTable *requests; /* id of a request -> the commit that has put its rows on record */
    GPtrArray *ended;     /* struct worker: rows that the commit under way ends */
    bool asked;           /* it is of a request to a front end */
    guint had_volumes;    /* before it */
    guint64 had_gigabytes;
    GHashTable *shown; /* UUID of a volume -> GArray: what it was, from which serial on */
};

/* --- storage_front.c --- */
void storage_fronts_begin(struct storage_world *storage);
void storage_fronts_end(struct storage_world *storage);
/* The objects that let them ask. */
void storage_fronts_add(const struct ms *ms, GPtrArray *changes,
                        void (*add)(GPtrArray *changes, const char *kind, const char *key,
                                    json_t *object));
/* Of that host; NULL: this theme has none. */
struct storage_front *storage_front_of(const struct storage_host *host);
void storage_front_start(struct storage_front *front);
/* Its host goes. */
void storage_front_end(struct storage_front *front);
/* It dies; its supervisor starts it anew. */
void storage_front_kill(struct storage_front *front);
void storage_front_pause(struct storage_front *front, bool paused);
/* Asks, in a task of `client`, and waits: the status; 0: no answer came. `exchange` says what is
 * asked (front, works, name); path and query stand behind /volume/v3/PROJECT, or are whole.
 * `body` is stolen; `ret` may be NULL. */
guint storage_front_ask(const struct env *client, const struct storage_exchange *exchange,
                        const char *token, const char *method, const char *path, json_t *body,
                        json_t **ret);

/* --- storage_client.c --- */
/* One request of a client, or some that belong together; in a task of that host. */
void storage_client_asks(struct storage_host *host);
/* The faults are over: whether its front end shows what is on record. */
void storage_client_looks(struct storage_host *host);

/* --- storage_answers.c --- */
/* At the moment when the front end gives it. */
void storage_answered(const struct storage_exchange *exchange);
/* Before a commit is applied to what is known to be stored, and after that. */
void storage_fronts_before(struct storage_world *storage, const char *id, guint64 serial,
                           const GPtrArray *changes);
void storage_fronts_after(struct storage_world *storage, guint64 serial, bool resets,
                          const GPtrArray *changes);
/* Something is lost. */
void storage_fronts_lost(struct storage_world *storage);
/* Why they are not at rest; NULL: they are. */
char *storage_fronts_unrest(const struct storage_world *storage);
/* Whether a list of volumes is what is on record. */
bool storage_is_on_record(const struct storage_world *storage, const json_t *volumes);
