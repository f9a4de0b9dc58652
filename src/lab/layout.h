/*
 * What a lab is made of, as data: names and paths, all derived from its folder, and the file
 * DIR/lab.json that says how it was asked for. Used by the library and by the supervisor.
 */
#pragma once

#include "base/json.h"
#include <glib.h>
#include <stdbool.h>

/* A daemon to keep running. */
struct layout_daemon {
    char *name;
    char **command;
    bool master_only;
};

struct layout {
    char *dir;    /* absolute, without symbolic links */
    char *prefix; /* of its namespaces: "ft3a9c21" */
    guint nodes;
    guint candidates; /* node1 to this one may be master */
    guint root_mib;
    guint disks_mib;
    bool made_dir; /* DIR was made by the lab and goes with it */
    bool identity; /* nodes get certificates */
    bool ipv6;     /* nodes have IPv6 addresses, and no others */
    bool ceph;     /* there is a Ceph */
    char *cluster_uuid;
    GPtrArray *node_uuids; /* char *; node N's is at N - 1 */
    GPtrArray *daemons;    /* struct layout_daemon * */
};

/* An empty lab in `dir`, which must be absolute: random UUIDs, no daemons. */
struct layout *layout_new(const char *dir, guint nodes);
void layout_free(struct layout *layout);
#define layout_autoptr __attribute__((cleanup(layout_free_ptr))) struct layout *
void layout_free_ptr(struct layout **layout);

void layout_add_daemon(struct layout *layout, const char *name, const char *const *command,
                       bool master_only);

/* Makes DIR/lab.lock, for the supervisor, and writes DIR/lab.json; ALREADY_EXISTS if there is one.
 */
bool layout_save(const struct layout *layout, GError **error);
/* Reads it. UNKNOWN_ENTITY if there is no lab in `dir`, CORRUPT if the file is damaged. */
struct layout *layout_load(const char *dir, GError **error);

/* `dir` as an absolute path without symbolic links; its last part need not exist. WRONG_INPUT if it
 * is unusable. */
char *layout_resolve(const char *dir, GError **error);
/* First part of the names of all namespaces of the lab in `dir` (as resolved): so labs live side by
 * side. */
char *layout_prefix(const char *dir);
bool layout_exists(const char *dir);

/* Number of "node3", 0 if it is no such name. */
guint layout_node_number(const char *name);

/* Paths and names; free with g_free(). Nodes count from 1. */
char *layout_file(const struct layout *layout, const char *name);
char *layout_root(const struct layout *layout, guint node);
char *layout_below_root(const struct layout *layout, guint node, const char *name);
char *layout_log(const struct layout *layout, guint node);
char *layout_root_image(const struct layout *layout, guint node);
char *layout_disks_image(const struct layout *layout, guint node);
/* The folder that all nodes mount, outside of them; the file system in it; where a node has it. */
char *layout_shared(const struct layout *layout);
char *layout_shared_image(const struct layout *layout);
/* The folder of the lab's Ceph. */
char *layout_ceph(const struct layout *layout);
char *layout_shared_in(const struct layout *layout, guint node);
/* Folder whose programs a node's daemons find before all others. */
char *layout_programs(const struct layout *layout, guint node);
char *layout_netns(const struct layout *layout, guint node);
char *layout_switch(const struct layout *layout);
char *layout_address(const struct layout *layout, guint node);
/* The same of the switch, for whoever wants to talk to guests from outside of all nodes. */
char *layout_switch_address(const struct layout *layout);
/* With the length of its prefix: "10.99.0.1/24". */
char *layout_with_prefix(const struct layout *layout, const char *address);
