/*
 * Threads for work that blocks, or keeps a processor busy for long: a task hands it over and waits,
 * and the loop goes on. So many wait at most; who comes then is told to come again.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

struct pool;

/* `what` waits ("logins"), for messages. */
struct pool *pool_new(const char *what, guint threads, guint waiting);
/* Nobody waits any more; what runs is waited for. */
void pool_free(struct pool *pool);
/* Calls fn(work) in a thread, and waits for its end; outside of a task it is called here. True: it
 * has ended, `work` is the caller's again. False: the pool frees it, with `free_work`. TEMPORARY:
 * too many wait. KILLED. */
bool pool_run(struct pool *pool, void (*fn)(void *work), void (*free_work)(void *work), void *work,
              GError **error);
