/*
 * Lock files: the one proof of a process's life and death (DTH rows, SAF-32). A process makes an
 * empty file of its own, locks it exclusively and keeps it open; when the process ends, in whatever
 * way, the kernel drops the lock, and whoever probes the file knows. No pid, no connection and no
 * timeout is ever asked.
 *
 * Locks are open-file-description locks: closing another descriptor of the file does not drop them.
 * The file is made under a temporary name, locked, then renamed: nobody ever meets a lock file that
 * is not locked yet. Used by wconfd, luxid, the watcher and job processes.
 */
#pragma once

#include "io/node_config.h"
#include "proto/env.h"

struct livelock; /* one that this process holds */

/* `ROOT/run/livelocks/STEM-PID-RANDOM`, made, locked and in place; a stem that begins with
 * API_FOLDER, and names of its kind: in that folder of run/. WRONG_INPUT for a stem that is
 * no plain file name, STORAGE otherwise. */
struct livelock *livelock_make(const struct node_paths *paths, const char *stem, GError **error);
const char *livelock_name(const struct livelock *livelock);
/* Removes the file and gives up the lock. */
void livelock_drop(struct livelock *livelock);

/* One non-blocking test for a shared lock on a file opened read-only. Any failure but "no such
 * file" is UNSURE. */
enum livelock_verdict livelock_probe(const struct node_paths *paths, const char *name);
/* Names of all lock files, sorted; files that are being born are not among them. */
GPtrArray *livelock_list(const struct node_paths *paths);
/* Which process has it, by its name, as long as that process has the file open and runs the program
 * fettle-job: whoever else looks into the folder is not taken for it. */
bool livelock_find_holder(const struct node_paths *paths, const char *name, guint64 *ret_pid,
                          guint64 *ret_start_ticks);
/* Removes a file if its owner is proven dead; whatever else it is stays. */
void livelock_remove(const struct node_paths *paths, const char *name);

/* Watching many lock files with one inotify descriptor. */
struct livelock_watcher;
struct livelock_watcher *livelock_watcher_new(const struct node_paths *paths, GError **error);
void livelock_watcher_free(struct livelock_watcher *watcher);
/* Calls released(name) once, from the loop, when a probe does not say ALIVE any more; also if that
 * is so already. */
void livelock_watcher_add(struct livelock_watcher *watcher, const char *name,
                          void (*released)(const char *name, void *data), void *data);
