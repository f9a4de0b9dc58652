/*
 * Where a node keeps its things, and what it knows about itself (etc/node.json, record
 * node_config). Used by every daemon's main, by `fettle cluster init` and by the lab.
 */
#pragma once

#include "proto/records.h"

/* The folders of a node (docs/design/procedures.md, "Folders of a node"). All absolute, none ends
 * with a slash. */
struct node_paths {
    char *root; /* "/" on a real host */
    char *etc;
    char *var;
    char *run;
    char *log;
};

/* `option` is what --root said, NULL if it was not given; then FETTLE_ROOT, then "/". A relative
 * folder is taken from the current one. WRONG_INPUT if the folder does not exist or its name is too
 * long for a Unix socket in run/. */
struct node_paths *node_paths_new(const char *option, GError **error);
void node_paths_free(struct node_paths *paths);
typedef struct node_paths node_paths_t;
G_DEFINE_AUTOPTR_CLEANUP_FUNC(node_paths_t, node_paths_free)

/* Makes etc, var, var/queue, var/node, var/node/guests, var/disks, var/disks/aside, var/images,
 * run/queue, run, run/livelocks, run/guests, run/exports, log, log/guests where they are missing.
 * What writers that have died left in etc, beside keys, is removed.
 * STORAGE with the folder's name. */
bool node_paths_make(const struct node_paths *paths, GError **error);

/* "ROOT/run/ROLE.sock"; free with g_free(). */
char *node_paths_socket(const struct node_paths *paths, const char *role);
/* What a daemon makes when it is ready, below run/: "NAME.ready", of apid, which may be another
 * user than root, in its own folder; free with g_free(). */
char *node_ready_name(const char *daemon);
/* Where luxid listens for those that come with that face; the same. */
char *node_paths_face(const struct node_paths *paths, enum face face);

/* Reads etc/node.json. UNKNOWN_ENTITY if there is none ("this host belongs to no cluster"), CORRUPT
 * with the file, the field and the reason if it cannot be used. Free with node_config_free() of
 * proto/records.h. */
struct node_config *node_config_read(const struct node_paths *paths, GError **error);
/* Writes it so that it survives a power cut. */
bool node_config_write(const struct node_paths *paths, const struct node_config *config,
                       GError **error);
