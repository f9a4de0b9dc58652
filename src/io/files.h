/*
 * The files of a node by what they must survive (enum file_area of proto/env.h): var/ is synced,
 * run/ with run/queue/ is not. A file is replaced as a whole: temporary name, rename; nobody ever
 * reads half of one. Names are relative to the area, may have folders (made where missing), and
 * never leave it: "..", "." and absolute names are WRONG_INPUT.
 *
 * In a task, whatever syncs runs in a worker thread and the task waits; everywhere else it blocks.
 */
#pragma once

#include "io/node_config.h"
#include "proto/env.h"

bool files_write(const struct node_paths *paths, enum file_area area, const char *name,
                 const char *data, size_t len, GError **error);
/* A failed append leaves the file as it was. */
bool files_append(const struct node_paths *paths, enum file_area area, const char *name,
                  const char *data, size_t len, GError **error);
/* UNKNOWN_ENTITY if there is none; LIMIT if it is larger than `max`. The result ends with a NUL
 * beyond its length. */
char *files_read(const struct node_paths *paths, enum file_area area, const char *name, size_t max,
                 size_t *ret_len, GError **error);
/* A file that is not there counts as removed. */
bool files_remove(const struct node_paths *paths, enum file_area area, const char *name,
                  GError **error);
/* Removes what writers that have died left in a folder of no area: it may be a part of a key. */
void files_sweep(const char *folder);
/* Sorted names without temporary ones, of which those of dead writers are removed; empty if there
 * is no such folder. Array of char *, frees them. */
GPtrArray *files_list(const struct node_paths *paths, enum file_area area, const char *folder,
                      GError **error);

/* STORAGE: "cannot DOING PATH: …", by errno; false. */
bool files_error(const char *doing, const char *path, GError **error);

/* Absolute path of a name; NULL and WRONG_INPUT if the name may not be used. */
char *files_path(const struct node_paths *paths, enum file_area area, const char *name,
                 GError **error);

/* The same for a folder; "" is the area itself. */
char *files_folder(const struct node_paths *paths, enum file_area area, const char *folder,
                   GError **error);

/* Any absolute path, synced; in a task others run meanwhile, as with those above. */
bool files_write_synced(const char *path, const char *data, size_t len, guint mode, GError **error);
bool files_remove_synced(const char *path, GError **error);

/* The same for any absolute path, blocking: for certificates, node.json, the lab. `mode` is what it
 * gets, whatever the umask. */
bool files_write_path(const char *path, const char *data, size_t len, guint mode, bool sync,
                      GError **error);
/* The same with mode 0600, and synced, for a name that a person has typed: its folder must be
 * there, and what is no plain file (a device, a link, a pipe) is not replaced. WRONG_INPUT. */
bool files_write_typed(const char *path, const char *data, size_t len, GError **error);
/* For another user to read, whose it is before it has its name; not synced. `uid` 0: ours. */
bool files_give_path(const char *path, const char *data, size_t len, guint32 uid, GError **error);
/* A folder and those above it that are missing, each made with that very mode (SAF-107). One that
 * is there keeps its own. */
bool files_make_folder(const char *path, guint mode, GError **error);
/* A folder with that mode, of that user and group; one of ours with our files, if it is there. */
bool files_give_folder(const char *path, guint mode, guint32 uid, guint32 gid, GError **error);
bool files_remove_path(const char *path, bool sync, GError **error);
char *files_read_path(const char *path, size_t max, size_t *ret_len, GError **error);
