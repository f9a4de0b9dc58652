/*
 * A client of etcd's JSON gateway (etcd 3.4, paths below /v3/), over HTTPS with a client
 * certificate of the cluster. It knows members, time limits and what an answer proves; keys and
 * transactions are etcd_kv.h's.
 *
 * Every request may reach etcd more than once: members are tried in turn, beginning with the last
 * that answered, and the HTTP library repeats what a dying connection may have swallowed. So only
 * what is harmless to repeat may be sent: reads, and transactions that compare what they change.
 * What an end of a call means:
 *   UNREACHABLE     no member took the request: surely not done
 *   UNKNOWN_RESULT  it was sent, and no answer came: perhaps done, perhaps done later
 *   STORAGE         etcd has no space for it (alarm NOSPACE), which it also says of what it has
 * just done: read whether it has PROTOCOL        etcd refused it (its own words are in the
 * message): surely not done LIMIT           the answer is larger than LIMIT_ETCD_ANSWER_BYTES
 *   KILLED          the client was freed
 */
#pragma once

#include "base/json.h"

struct etcd_client;

struct etcd_options {
    const char *const *urls; /* of the members, "https://10.0.0.1:2379"; NULL-terminated */
    /* PEM files, absolute: the authority of the members' certificates, ours and its key; others
     * that take their place count from the next question on. NULL for members that speak plain
     * HTTP. */
    const char *ca, *certificate, *key;
    guint member_ms; /* one member's time for a call; 0: ETCD_MEMBER_MS */
};

/* How many times as long as usual etcd and whoever waits for it may take: 1, or what
 * FETTLE_ETCD_PATIENCE says, up to 20. For labs on a machine that has much else to do: a member
 * calls for no election so soon, and a master keeps its lease. */
guint etcd_patience(void);

/* CORRUPT or STORAGE with the file's name. */
struct etcd_client *etcd_client_new(const struct etcd_options *options, GError **error);
/* Calls under way end with KILLED before it returns. */
void etcd_client_free(struct etcd_client *client);

/* The member that is asked first, which is the one that answered last; borrowed. */
const char *etcd_client_url(const struct etcd_client *client);
/* Another one is asked first from the next call on: what that one answered is wrong. */
void etcd_client_next(struct etcd_client *client);
guint etcd_client_count(const struct etcd_client *client);
/* Other members from the next call on; as in the options. */
void etcd_client_set_urls(struct etcd_client *client, const char *const *urls);

/* Exactly one of the two is set, as in rpc_reply_fn. */
typedef void (*etcd_reply_fn)(json_t *answer, const GError *error, void *data);

/* Posts `body` (stolen) to `path`; `done` comes exactly once, from the loop. `timeout_ms` is for
 * the call as a whole; each member gets at most `member_ms` of it. */
#define ETCD_MEMBER_MS 1000u
void etcd_call(struct etcd_client *client, const char *path, json_t *body, guint timeout_ms,
               etcd_reply_fn done, void *data);
/* The same from a task, which waits; a new reference. */
json_t *etcd_call_wait(struct etcd_client *client, const char *path, json_t *body, guint timeout_ms,
                       GError **error);

/* What a member says that answers with another HTTP status than 200: `answer` is its body, NULL: no
 * JSON. True: the request was refused. False: whether it was done is unknown. */
bool etcd_refusal(guint status, const json_t *answer, const char *path, bool sent,
                  GError **ret_reason);
