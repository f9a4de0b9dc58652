/*
 * A host of its own under /tmp on which tests run the program fettle-wconfd, which FETTLE_WCONFD
 * names.
 */
#pragma once

#include <gio/gio.h>
#include <stdbool.h>

#define NODE "11111111-1111-4111-8111-111111111111"
#define CLUSTER "cccccccc-cccc-4ccc-8ccc-cccccccccccc"
#define INIT                                                                                       \
    "{\"OP_ID\":\"OP_CLUSTER_INIT\",\"cluster_name\":\"c1\",\"node_name\":\"node1\","              \
    "\"primary_ip\":\"127.0.0.1\"}"

struct host {
    char *root;
    GSubprocess *daemon; /* NULL: it does not run */
};

/* `joined`: it has etc/node.json. */
void host_init(struct host *host, bool joined);
void host_clear(struct host *host);
/* Free with g_free(). */
char *host_path(const struct host *host, const char *name);
void host_write(const struct host *host, const char *name, const char *text);

/* A new cluster c1 of this node alone. */
void host_bootstrap(const struct host *host);

bool daemon_is_ready(const struct host *host);
/* Until it says that it is ready. */
void daemon_start(struct host *host);
/* Its exit code, or the number of the signal that ended it. */
int daemon_end(struct host *host, int signal_number);
