/* Nodes with real certificates over loopback, for tests of the bus. */
#pragma once

#include "world.h"

#include "io/net/bus.h"
#include "io/net/rpc_client.h"
#include "io/net/rpc_server.h"

#define OTHER_CLUSTER "88888888-0000-4000-8000-000000000008"
#define PING_MS 50
#define DEAD_MS 3000
#define PATIENT_MS 60000 /* no link ends because a busy machine has had no time for it */
#define MOST_HANDSHAKES 8

/* A node with its noded's bus, a wconfd of its own, and a job process that calls. */
struct host {
    const char *uuid;
    guint dead_ms; /* of its links */
    struct node_paths *paths;
    struct node_config *config;
    struct bus *bus;
    struct rpc_server *wconfd;
    struct rpc_client *job;
    GPtrArray *members;
    const char *master;
    GPtrArray *lines;
    GPtrArray *kept; /* requests that are not answered */
    guint served, master_seen;
    char *served_from, *signed_by; /* the last that wconfd was asked */
    bool refuse_epoch;
};

/* Two nodes that know each other; the first is the master. */
struct pair {
    struct host *a, *b;
};

/* The authority of all of them, and the folder that it is in. */
extern char *bus_ca_folder, *bus_ca_cert, *bus_ca_key;
void bus_make_authority(void);
void bus_remove_authority(void);

void host_write_certificates(struct host *node, const char *authority, const char *authority_key,
                             const char *cluster, const char *uuid);
struct host *host_new(const char *uuid);
/* With which it starts its bus. */
struct bus_options host_options(struct host *node);
void host_start(struct host *node);
void host_stop(struct host *node);
void host_free(struct host *node);
void host_introduce(struct host *node, const struct host *other);
/* `dead_ms`: after which time of silence links end; NULL: PATIENT_MS. */
void pair_set_up(struct pair *pair, gconstpointer dead_ms);
void pair_tear_down(struct pair *pair, gconstpointer unused);
void host_call(struct host *from, const char *to, const char *role, const char *method,
               json_t *args, struct answer *answer);
void host_ask_report(struct host *from, const char *to, struct answer *answer);
json_t *host_guest_args(void);
