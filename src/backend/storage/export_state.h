/*
 * What run/exports/REPLICA.json keeps about the exports of one replica, so that they are found
 * again after a restart of the node daemon. It holds the transfer's key, so its mode is 0600.
 */
#pragma once

#include "io/node_config.h"
#include "proto/records.h"

struct export_process {
    guint64 pid; /* 0: not started yet, or started a moment before the daemon died */
    guint64 start_ticks;
};

struct export_state {
    char *instance;
    guint64 history;
    guint64 generation;
    struct export_target *target;
    GArray *processes; /* struct export_process, one per disk */
};

/* Takes `target`. */
struct export_state *export_state_new(const char *instance, guint64 history, guint64 generation,
                                      struct export_target *target);
void export_state_free(struct export_state *state);

bool export_state_write(const struct node_paths *paths, const struct export_state *state,
                        GError **error);
/* Files beside it: of the replica, and of each disk (a socket's name must be short). */
#define EXPORT_KEY "psk"
#define EXPORT_TLS "tls"
#define EXPORT_LOG "log"
#define EXPORT_CONTROL "ctl"
/* Free with g_free(). */
char *export_state_path(const struct node_paths *paths, const char *replica, const char *kind);
char *export_state_disk_path(const struct node_paths *paths, const char *replica, const char *kind,
                             guint disk);

/* Also all that is beside it. */
void export_state_remove(const struct node_paths *paths, const struct export_state *state);

/* All of them: GPtrArray of struct export_state. A file that cannot be used is CORRUPT with its
 * name and the reason. */
GPtrArray *export_state_read_all(const struct node_paths *paths, GError **error);
