/*
 * Three nodes, each with a member of etcd, for the tests of real members: they share the loopback
 * of the test, and the authority of the first.
 */
#pragma once

#include "backend/members/etcd.h"
#include "helper/patience.h"
#include "io/loop.h"
#include "io/net/authority.h"
#include "proto/records.h"

#define CLUSTER "99999999-0000-4000-8000-000000000009"
#define TOKEN "77777777-0000-4000-8000-000000000007"
#define NODES 3
#define PATIENCE_MS 60000

struct place {
    struct node_paths *paths;
    struct node_config *config;
    struct members *members;
    guint ended; /* processes of its member, without being told to */
    char *why;
};

extern struct place nodes[NODES];
extern struct authority *authority;

#define assert_refused(ok, error, CODE, text)                                                      \
    do {                                                                                           \
        g_assert_false(ok);                                                                        \
        g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_##CODE);                                  \
        g_assert_cmpstr((error)->message, ==, text);                                               \
        g_clear_error(&error);                                                                     \
    } while (0)

/* Makes the nodes, or opens those that a process before has made. The others have the certificate
 * of the authority only. */
void places_make(void);
/* As a node daemon does that comes. */
void places_open(struct place *node);
/* Ends their members, and nothing is left of them. */
void places_remove(void);

/* A configuration of the first `count` nodes, each at 127.0.0.1 with ports of its own. */
struct engine_config *places_config(guint count, guint base_port);
void places_certify(guint index);
/* Founds etcd on all nodes of the configuration. */
void places_found(struct engine_config *config);
struct member_status *places_ask(guint index);
bool places_healthy(guint index);
