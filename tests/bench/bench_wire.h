/*
 * The real fettle-wconfd as a process, and clients that speak to it over its Unix socket with
 * prepared frames, so that almost all that is measured is the daemon: for bench_locks.c and
 * bench_config.c. Whatever goes wrong ends the program with a message.
 */
#pragma once

#include "bench_figure.h"

#include <stdbool.h>

#define BENCH_NODE "a0000000-0000-4000-8000-000000000000" /* this host */
#define BENCH_CLUSTER_UUID "cccccccc-cccc-4ccc-8ccc-cccccccccccc"

void bench_must(bool ok, const char *what);
double bench_since_s(gint64 start_us);

/* --- the daemon --- */

struct bench_daemon {
    char *root; /* its folder, on a disk */
    GPid pid;
    double ready_ms; /* from its start until it served */
};

/* A folder with the etc/ of a node; free with bench_root_free(). */
char *bench_root_new(void);
void bench_root_free(char *root);
/* Returns when it serves. */
void bench_daemon_start(struct bench_daemon *daemon, const char *program, char *root);
void bench_daemon_stop(struct bench_daemon *daemon);
/* Processor time that it has used so far. */
double bench_daemon_cpu_us(const struct bench_daemon *daemon);
double bench_daemon_resident_mb(const struct bench_daemon *daemon);

/* Makes the lock file of an owner; this process holds it until it ends. */
void bench_livelock_take(const struct bench_daemon *daemon, const char *name);

/* --- clients --- */

struct bench_client {
    int fd;
    const char *role;
    GString *in;  /* what was read and not looked at */
    guint64 last; /* id of the last request */
};

/* Says hello in that role (kept by reference). */
void bench_client_open(struct bench_client *client, const struct bench_daemon *daemon,
                       const char *role);
void bench_client_close(struct bench_client *client);
void bench_send(struct bench_client *client, const char *text, size_t len);
/* Reads until so many frames have come; the last of them, without its end. To be freed. */
char *bench_read(struct bench_client *client, guint count);
/* Puts one request behind `text`. `from` NULL: of this host. `args`: JSON. */
void bench_add_request(struct bench_client *client, GString *text, const char *from,
                       const char *method, const char *args);
/* One request and its answer, which must have `part` in it. */
void bench_call(struct bench_client *client, const GString *frame, const char *part);
void bench_expect(const char *frame, const char *part);
