/*
 * Three candidates with the engine sqlite, for tests of their seats: a master of node1, followers
 * of node2 and node3 with copies of their own. Of node daemons only the fence counts.
 */
#pragma once

#include "core/candidate/seat.h"
#include "core/epoch/epoch_fence.h"
#include "helper/fake_authority.h"
#include "helper/fake_copy.h"
#include "proto/records.h"
#include "unit/core/world/config_world.h"

#define NODES 3

struct host {
    struct env *noded, *wconfd, *cli;
    struct epoch_fence *fence;
    struct fake_engine *engine; /* node1 */
    struct fake_copy *copy;     /* the others */
    struct fake_authority *authority;
    struct seat *seat;
    char *ended; /* why its wconfd has */
};

extern const char *const uuids[NODES];
extern struct fake_world *world;
extern struct host hosts[NODES];

void set_up(void);
void tear_down(void);
/* Of a node daemon: to be given to fake_serve() with its host. */
void noded_handle(struct rpc_request *request, void *data);
void wconfd_start(struct host *host);
/* Whoever waits for its role meanwhile is answered to the last. */
void wconfd_kill(struct host *host);

/* Node1 has lost its power. */
void lose_master(void);
void reboot_node1(void); /* it is in reach again */
/* After a power cut of all, only node1, which has the engine, comes back. */
void reboot_alone(void);
/* The wconfd of node1 starts, and hears that node2 has become master meanwhile. */
void assert_replaced(void);

/* By a job of node1. */
void commit_tag(const char *text);
const char *last_commit_id(void);
void set_candidate(const char *node, bool candidate, guint version);
/* Of the copy of a node. */
guint64 digest_of(guint node);
/* What the wconfd of a node says of itself, as the tests write it; g_free() it. */
char *role_of(guint node);
/* A person on a node: "node SERIAL", or the error; g_free() it. */
char *take_over(guint node, const char *to, const char *statement);

#define assert_role(node, expected)                                                                \
    do {                                                                                           \
        g_autofree char *said_ = role_of(node);                                                    \
        g_assert_cmpstr(said_, ==, expected);                                                      \
    } while (0)

#define assert_taken(node, to, statement, expected)                                                \
    do {                                                                                           \
        g_autofree char *said_ = take_over(node, to, statement);                                   \
        g_assert_cmpstr(said_, ==, expected);                                                      \
    } while (0)
