/*
 * Who may ask REST, and what: those of this node's file var/rapi/users, which has the form of
 * Ganeti's and is read anew when it changes, and those on record, whom all candidates have. Who is
 * in the file is that one, whatever is on record. Passwords are checked by proto/api/crypto.h, a
 * few at once, and of one address, or a /64 of IPv6, few that are wrong.
 */
#pragma once

#include "core/rapi/luxid.h"
#include "proto/api/crypto.h"
#include "proto/env.h"
#include "proto/http/http.h"

#define RAPI_REALM "Ganeti Remote API" /* of a password, and in a part of those that are kept */
#define RAPI_FAILURES 10 /* of one address, in RAPI_FAILURES_MS; then it has to wait */
#define RAPI_FAILURES_MS 60000
#define LIMIT_RAPI_ADDRESSES 4096            /* that are remembered, and those that wait */
#define LIMIT_RAPI_USERS_BYTES (1024 * 1024) /* of its file */

struct rapi_users;

enum rapi_access {
    RAPI_FAILED,  /* it cannot be told: an error says why */
    RAPI_UNKNOWN, /* 401: nobody, or not with that password */
    RAPI_BARRED,  /* 429: its address had too many wrong ones; for RAPI_FAILURES_MS at most */
    RAPI_READ,
    RAPI_WRITE,
};

struct rapi_users *rapi_users_new(const struct env *env, struct rapi_luxid *luxid,
                                  struct crypto *crypto);
void rapi_users_free(struct rapi_users *users);
/* In a task; waits. What whoever has sent it may do; for RAPI_READ and RAPI_WRITE `ret_name` is his
 * name, to be freed: "": anybody, who may read. RAPI_FAILED: as rapi_luxid's call (he is not in the
 * file), TEMPORARY: too many passwords wait to be checked. */
enum rapi_access rapi_users_check(struct rapi_users *users, const struct http_request *request,
                                  char **ret_name, GError **error);
/* In a task; waits. What changes when he is another one, or has another password; NULL: nobody has
 * that name ("": not everybody may read), or an error as rapi_luxid's call. Free with g_free(). */
char *rapi_users_mark(struct rapi_users *users, const char *name, GError **error);
