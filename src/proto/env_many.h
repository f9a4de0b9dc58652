/*
 * One question put to several nodes at once, from a task. For what needs a majority, or a look at
 * everybody, without waiting for one dead node after the other.
 */
#pragma once

#include "proto/env.h"

/* An answer (borrowed record), or NULL with the error. True: that is enough, the others are not
 * waited for. */
typedef bool (*gather_fn)(guint index, void *answer, const GError *error, void *data);

/* `nodes`: UUIDs (char *); `args` as for env_call_record(). Returns when all have answered, or when
 * it was enough. False: the process has ended. */
bool gather(const struct env *env, const GPtrArray *nodes, const char *role, const char *method,
            const void *args, struct stamp stamp, gather_fn fn, void *data);
/* The same, each question for at most `limit_ms`; 0: as long as its method allows. */
bool gather_within(const struct env *env, const GPtrArray *nodes, const char *role,
                   const char *method, const void *args, struct stamp stamp, guint limit_ms,
                   gather_fn fn, void *data);
