/*
 * A small cluster for tests of queries: what is in it, what its node daemons answer, and asking.
 */
#pragma once

#include "unit/core/world/queue_world.h"

#define WEB1 "dddddddd-0000-4000-8000-000000000001"
#define WEB2 "dddddddd-0000-4000-8000-000000000002"
#define WEB10 "dddddddd-0000-4000-8000-000000000010"
#define REPLICA1 "eeeeeeee-0000-4000-8000-000000000001"
#define DISK1 "ffffffff-0000-4000-8000-000000000001"
#define BACKEND1 "dddddddd-1111-4000-8000-000000000001"
#define VOLUME1 "eeeeeeee-1111-4000-8000-000000000001"
#define VOLUME2 "eeeeeeee-1111-4000-8000-000000000002"
#define REPAIR "12345678-0000-4000-8000-000000000001"

/* Three instances on three nodes, of which node3 is offline; free with queue_world_free(). */
struct queue_world *query_world_new(void);
/* One more tag of an instance. */
void query_put_tag(struct queue_world *w, const char *uuid, const char *tag);
/* A decision about web1. */
void query_put_decision(struct queue_world *w, guint number, int at_us, const char *verdict,
                        const char *event);
/* An instance is in ERROR since second 90; looks at its task have failed since second 80. */
void query_put_fault(struct queue_world *w, const char *uuid);
void query_put_stuck(struct queue_world *w, const char *uuid);

/* The back end dir1 on the first two nodes, whose services are up and down; data1, which node1
 * deletes, and data2, which waits to be extended. */
void query_put_storage(struct queue_world *w);

/* A node's report with one guest, or, with `instance` NULL, with none. */
json_t *query_report(const char *node, const char *instance, const char *state);
/* For query_script_nodes(): node1 runs web1; node2 answers and runs nothing. */
json_t *query_answer_report(const struct rpc_request *request, const char *to_node, void *data,
                            GError **error);
/* What all node daemons answer when they are asked for their report. */
void query_script_nodes(struct queue_world *w, fake_answer answer);
/* How often one was asked. */
guint query_node_calls(struct queue_world *w);
/* For fake_serve(): keeps the request in `data`, a GPtrArray, and says nothing. */
void query_never_answer(struct rpc_request *request, void *data);

/* Rows of a query as text, "status:value" joined by spaces, one line each; free with g_free(). */
char *query_ask(struct queue_world *w, const char *what, const char *fields, const char *filter);
void query_check(struct queue_world *w, const char *what, const char *fields, const char *filter,
                 const char *expected);
