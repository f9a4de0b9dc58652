/*
 * What REST sees of LuxiD: calls of LUXI that are answered, so that it needs no socket, and a test
 * no daemon. Behind it stand connections to this node's two sockets (daemons/rapid/luxid_calls.h).
 */
#pragma once

#include "proto/face.h"

struct rapi_luxid {
    /* In a task; waits, `timeout_ms` at most, and never longer than LIMIT_RAPI_CALL_MS, which 0
     * stands for. `args`: the positional arguments, stolen. `user`: whom a job is for, as
     * "rapi:NAME"; NULL: nobody. The result, a new reference; NULL with what luxid answers, or
     * UNREACHABLE: it does not answer; NOT_MASTER, with the name of the master; TIMEOUT and
     * UNKNOWN_RESULT: nobody knows whether it happened; TEMPORARY: too many wait already. */
    json_t *(*call)(struct rapi_luxid *luxid, enum face face, const char *method, json_t *args,
                    const char *user, guint timeout_ms, GError **error);
    /* The same with the text of the result, of which no tree is made; free it with g_free(). */
    char *(*call_text)(struct rapi_luxid *luxid, enum face face, const char *method, json_t *args,
                       const char *user, guint timeout_ms, GError **error);
};
