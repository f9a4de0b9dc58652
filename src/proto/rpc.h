/*
 * Calls inside a cluster, as values: what core asks for and what a daemon or the simulator
 * delivers. The bytes are envelope.h and frame.h; who carries them is io/ (sockets, TLS) or the
 * simulated network.
 */
#pragma once

#include "proto/face.h"
#include "proto/record.h"

/* Roles of processes; what `from` and `to` name beside the node. */
#define ROLE_WCONFD "wconfd"
#define ROLE_LUXID "luxid"
#define ROLE_JOB "job"
#define ROLE_NODED "noded"
#define ROLE_WATCHER "watcher"
#define ROLE_SCHEDULER "scheduler" /* of volumes: a part of the watcher, on every candidate */
#define ROLE_RCONFD "rconfd"
#define ROLE_CLI "cli"
#define ROLE_VOLUMED "volumed"
#define ROLE_APID "apid"
#define ROLE_MOND "mond"       /* calls nobody; a name for what it has in run/ */
#define ROLE_RAPID "rapid"     /* asks luxid as any client; the same */
#define ROLE_JOINING "joining" /* a host that is no node yet; has no certificate */

/* Special values of `to_node`. */
#define NODE_LOCAL ""        /* this host */
#define NODE_MASTER "master" /* whatever node the local node daemon knows as master */

/* History and epoch of the job or role that a frame comes from (SAF-02, 05). */
struct stamp {
    guint64 history;
    guint64 epoch;
};

/* Negative, 0, positive: order of (history, epoch), and of (history, generation). */
int stamp_compare(struct stamp a, struct stamp b);

enum timeout_class {
    TIMEOUT_QUICK,
    TIMEOUT_NORMAL,
    TIMEOUT_COPY,
    TIMEOUT_WAIT,
    TIMEOUT_FRESH, /* also says by which connection it is asked (io/net/bus.h) */
};

/* Of which node a request may come (SAF-100). */
enum method_place {
    PLACE_BY_ROLE, /* as method_place_of() says */
    PLACE_HERE,    /* the one that is asked */
    PLACE_MASTER,
    PLACE_CANDIDATE,
    PLACE_MEMBER,
    PLACE_STRANGER, /* none yet: without a certificate */
};

/* Whose copy of the configuration must be of the master's history and epoch. */
enum method_fence { METHOD_OPEN, METHOD_JOB_FENCED, METHOD_FENCED };

struct method {
    const char *server; /* role */
    const char *name;
    const struct record *args;
    const struct record *answer;
    const char *callers; /* "job|luxid" */
    enum method_place place;
    enum method_fence fence;
    enum timeout_class timeout;
    const char *doc;
};

/* NULL for an unknown method. */
const struct method *method_find(const char *server, const char *name);
const struct method *method_table(size_t *ret_count);
bool method_allows(const struct method *method, const char *role);
/* Never PLACE_BY_ROLE. A role that nobody knows has no place but this node. */
enum method_place method_place_of(const struct method *method, const char *role);

/* Whether a call of that role must come from a copy of the master's history and epoch. */
bool method_fences(const struct method *method, const char *role);

/* One outgoing call. Strings are borrowed for the duration of env_call(); `args` is stolen. For
 * role luxid the method is a LUXI method and `args` the positional array. */
struct rpc_call {
    const char *to_node;
    const char *to_role;
    const char *method;
    json_t *args;
    struct stamp stamp;
    guint job;        /* calling job; 0 for a daemon */
    guint timeout_ms; /* 0: by the method's class */
    const char *user; /* LUXI: for whom; NULL: for the account that this runs as */
};

/* Exactly one of `result` (borrowed) and `error` is set. Errors: what the peer answered;
 * UNREACHABLE (surely not delivered), TIMEOUT or UNKNOWN_RESULT (perhaps delivered), KILLED. */
typedef void (*rpc_reply_fn)(json_t *result, const GError *error, void *data);

/* One incoming call, owned by the handler until it answers; answering frees it. Every request is
 * answered once. */
struct rpc_request {
    const struct method *method; /* NULL for LUXI requests */
    char *name;                  /* method name */
    char *from_node;             /* UUID, proven by certificate or being this host */
    char *signed_by; /* SHA-256 of the authority that has signed that certificate; NULL: it is of
                        this host, or its node daemon does not tell */
    char *from_role;
    char *user;     /* LUXI: the account behind the connection, or whom that speaks for
                       (luxi_server.h); NULL: unknown */
    bool is_rest;   /* LUXI: it comes from the REST daemon */
    enum face face; /* LUXI: of the connection */
    guint from_job;
    struct stamp stamp;
    json_t *args; /* already checked against method->args; NULL: there is only the struct */
    void *record; /* the same as a struct, as long as nobody has taken it; NULL: none */
    /* The carrier's: sends one of the two (`result` is stolen) and frees the request. */
    void (*answer)(struct rpc_request *request, json_t *result, const GError *error);
    /* The same with a result that is JSON text already; NULL: this carrier takes none. */
    void (*answer_text)(struct rpc_request *request, const char *text);
    /* The carrier's: looks out for the caller's end from now on; NULL: it cannot. */
    void (*watch_caller)(struct rpc_request *request);
    /* The handler's, by rpc_on_gone(). */
    void (*gone)(struct rpc_request *request, void *data);
    void *gone_data;
    void *carrier;
};
/* For handlers that let a request wait long: `fn` is called from the loop when the caller has gone,
 * as far as the carrier finds out, but not after the answer. Nobody takes the answer then; the
 * request wants it nevertheless, at once or later. */
void rpc_on_gone(struct rpc_request *request, void (*fn)(struct rpc_request *request, void *data),
                 void *data);
/* For carriers: the caller has gone. */
void rpc_request_gone(struct rpc_request *request);
/* For carriers: finds the method among those of `role`, checks that the caller's role may call it
 * (PERMISSION) and that the arguments fit (WRONG_INPUT with the field's path); sets
 * request->method. PROTOCOL: no such method. What has its struct and its method already is looked
 * at for its caller only. */
bool rpc_request_check(struct rpc_request *request, const char *role, GError **error);
/* For handlers: the arguments as a struct of `record`, which is the method's; free it with
 * record_free(). Can be taken once; `request->args` is gone then. Error: as rpc_request_check(), if
 * nobody has checked. */
void *rpc_request_args(struct rpc_request *request, const struct record *record, GError **error);
/* For carriers: how long a call may take, by its own wish or its method's class; 0: as long as the
 * connection lives. */
guint rpc_call_timeout_ms(const struct rpc_call *call);

/* `result` is stolen; NULL stands for an empty answer. */
void rpc_answer(struct rpc_request *request, json_t *result);
/* For answers that are given often, or to many: `text` is JSON as json_to_text() makes it. */
void rpc_answer_text(struct rpc_request *request, const char *text);
void rpc_fail(struct rpc_request *request, const GError *error);
void rpc_fail_new(struct rpc_request *request, enum fettle_error code, const char *format, ...)
    G_GNUC_PRINTF(3, 4);
void rpc_request_free(struct rpc_request *request); /* for carriers */
