/*
 * The ConfD protocol on the wire: signed datagrams (docs/guide/confd.md). Both ends use it:
 * core/confd answers, io/net/confd_client.c asks. A datagram is "plj0" and a JSON object {"msg",
 * "salt", "hmac"}: msg is itself JSON text, hmac the HMAC-SHA1 over salt and msg. The salt of a
 * request is the time, that of its reply what the request wanted (`rsalt`): so a reply is known to
 * be new.
 */
#pragma once

#include "base/error.h"
#include "base/json.h"
#include "base/limits.h"

#define CONFD_MAGIC "plj0"
#define CONFD_PROTOCOL 1
#define CONFD_CONFIG_VERSION 3000000 /* answers have the shapes of Ganeti 3.0 */

enum confd_type {
#define CONFD(number, name, verb, usage, doc) CONFD_TYPE_##name = number,
#include "proto/confd.def"
#undef CONFD
};

enum confd_status { CONFD_OK, CONFD_ERROR, CONFD_NOT_IMPLEMENTED };
/* What an answer of status CONFD_ERROR is if it is no text. */
enum confd_error { CONFD_UNKNOWN_ENTRY, CONFD_INTERNAL, CONFD_ARGUMENT };
enum confd_field { CONFD_FIELD_NAME, CONFD_FIELD_IP, CONFD_FIELD_NODE_IP, CONFD_FIELD_COUNT };

/* Why a datagram is dropped. */
enum confd_fault {
    CONFD_FAULT_SIZE,    /* larger than one may be */
    CONFD_FAULT_MAGIC,   /* does not begin with "plj0" */
    CONFD_FAULT_FORM,    /* no object of msg, salt and hmac */
    CONFD_FAULT_HMAC,    /* signed with another key, or changed */
    CONFD_FAULT_SALT,    /* too old or too new; of a reply: not to this question */
    CONFD_FAULT_REQUEST, /* signed well, but no request of this protocol */
    CONFD_FAULT_COUNT
};
/* "size", "magic", "form", "hmac", "salt", "request" */
const char *confd_fault_name(enum confd_fault fault);

/* A key ready for signing. */
struct confd_key;
struct confd_key *confd_key_new(const void *bytes, size_t len);
void confd_key_free(struct confd_key *key);
typedef struct confd_key confd_key_t;
G_DEFINE_AUTOPTR_CLEANUP_FUNC(confd_key_t, confd_key_free)

/* The key of a node's own monitoring, made of the cluster's and the node's UUID: 64 hexadecimal
 * digits, to be freed. It opens what confd.h says, to that node's address alone. */
char *confd_node_key(const char *secret, const char *node_uuid);

/* --- datagrams --- */

/* The datagram that carries `msg`; free with g_free(). */
char *confd_seal(const struct confd_key *key, const char *salt, const char *msg, size_t *ret_len);
/* Takes one apart and checks size, magic, form and HMAC, in this order: an unsigned byte costs no
 * more than that. False with the fault. */
bool confd_open(const struct confd_key *key, const char *data, size_t len, size_t max_len,
                json_t **ret_msg, char **ret_salt, enum confd_fault *ret_fault);

/* --- requests --- */

enum confd_query_kind { CONFD_QUERY_EMPTY, CONFD_QUERY_PLAIN, CONFD_QUERY_DICT };

struct confd_request {
    guint64 type; /* may be none of enum confd_type */
    enum confd_query_kind kind;
    char *plain;
    char *link;           /* NULL: not given */
    char *ip;             /* NULL: not given */
    GPtrArray *addresses; /* char * */
    GArray *fields;       /* enum confd_field */
    char *rsalt;
};

/* A signed request of a time within CONFD_SALT_WINDOW_S of `now_s`; NULL with the fault. */
struct confd_request *confd_request_open(const struct confd_key *key, gint64 now_s,
                                         const char *data, size_t len, enum confd_fault *ret_fault);
void confd_request_free(struct confd_request *request);
typedef struct confd_request confd_request_t;
G_DEFINE_AUTOPTR_CLEANUP_FUNC(confd_request_t, confd_request_free)

/* A datagram that asks; `query` (borrowed) is null, a text, or an object of "0" link, "1" address,
 * "2" list of addresses, "3" fields. */
char *confd_request_seal(const struct confd_key *key, gint64 now_s, enum confd_type type,
                         const json_t *query, const char *rsalt, size_t *ret_len);

/* --- replies --- */

struct confd_reply {
    enum confd_status status;
    json_t *answer; /* owned */
    guint64 serial; /* of the whole configuration that the answer was taken from */
};

/* `answer` is borrowed. */
char *confd_reply_seal(const struct confd_key *key, const struct confd_reply *reply,
                       const char *rsalt, size_t *ret_len);
/* The reply to a request that wanted `rsalt`. */
bool confd_reply_open(const struct confd_key *key, const char *data, size_t len, const char *rsalt,
                      struct confd_reply *ret_reply, enum confd_fault *ret_fault);
