/*
 * The document inside a frame of the internal protocol: requests, replies, and the hello that opens
 * a connection and settles its version. Pure functions on JSON; sockets are io/'s.
 *
 *   hello    {"hello":{"versions":[min,max],"from":"NODE/role[/job]"}}
 *   welcome  {"welcome":{"version":V,"from":"NODE/role"}} or
 * {"welcome":{"error":{"code":…,"message":…}}} request
 * {"v":V,"history":H,"epoch":E,"id":N,"from":"NODE/role[/job]","to":"NODE/role","method":"…","args":{…}}
 * and, of what a node daemon passes on to its daemons: "signed_by":"SHA-256"
 *   reply    {"v":V,"id":N,"result":{…}} or {"v":V,"id":N,"error":{"code":…,"message":…}}
 *
 * `to` is left out for this very process's peer (NODE_LOCAL). Unknown members are ignored: a newer
 * peer may send them. Any number of requests may be in flight in both directions; ids belong to the
 * side that asks.
 */
#pragma once

#include "proto/rpc.h"

/* Range of versions that this program speaks. One version back is always understood. */
#define PROTOCOL_VERSION_MIN 1
#define PROTOCOL_VERSION_MAX 1

/* `NODE/role` or `NODE/role/job`. */
struct peer_name {
    char *node;
    char *role;
    guint job; /* 0: none */
};
bool peer_name_parse(const char *text, struct peer_name *ret_name, GError **error);
char *peer_name_format(const char *node, const char *role, guint job);
void peer_name_clear(struct peer_name *name);

/* --- opening --- */

/* `min`, `max`: the range to offer. */
json_t *envelope_hello(int min, int max, const char *node, const char *role, guint job);
/* Reads the peer's hello and chooses the highest common version of its range and [min, max].
 * PROTOCOL: malformed, or no common version: `no common version: here 1 to 1, peer 2 to 3`; answer
 * it with envelope_refusal() and close. */
bool envelope_hello_parse(const json_t *json, int min, int max, struct peer_name *ret_from,
                          int *ret_version, GError **error);
json_t *envelope_welcome(int version, const char *node, const char *role);
json_t *envelope_refusal(const GError *error);
/* The version that the other side chose, or why it refused. */
bool envelope_welcome_parse(const json_t *json, int min, int max, int *ret_version, GError **error);

/* --- calls --- */

struct envelope {
    bool is_reply;
    guint64 id;
    /* request */
    struct stamp stamp;
    struct peer_name from;
    char *signed_by; /* as in struct rpc_request */
    char *to_node;   /* "" for NODE_LOCAL */
    char *to_role;   /* "" then */
    char *method;
    json_t *args;             /* NULL if `record` is there */
    const struct method *row; /* of a request that was read at once: its method, */
    void *record;             /* and its arguments */
    /* reply: exactly one of both */
    json_t *result;
    GError *error;
};

json_t *envelope_request(int version, guint64 id, const struct rpc_call *call,
                         const char *from_node, const char *from_role);
/* Passes a request on, to another node or a local daemon, under an id of the one who passes it on;
 * `from_node` is what the certificate or this host proves. */
json_t *envelope_forward(int version, guint64 id, const struct envelope *request,
                         const char *from_node);
/* `result` is borrowed; NULL: {}. Exactly one of result and error counts. */
json_t *envelope_reply(int version, guint64 id, json_t *result, const GError *error);

/* PROTOCOL with what is wrong. Free with envelope_free(). */
struct envelope *envelope_parse(const json_t *json, int version, GError **error);
/* A request to `role`, straight from the text, arguments and all (reader.h). NULL for everything
 * that is not plainly right and in the order in which we write it: then envelope_parse() says what
 * it is. */
struct envelope *envelope_read(const char *text, size_t len, int version, const char *role);
/* For answering a request that envelope_parse() refused: its id, 0 if it has none. */
guint64 envelope_id(const json_t *json);
void envelope_free(struct envelope *envelope);
typedef struct envelope envelope_t;
G_DEFINE_AUTOPTR_CLEANUP_FUNC(envelope_t, envelope_free)
