/*
 * Children that touch back ends in a process's place: a back end that hangs has a few of them, and
 * nobody else. Each is a program run to its end (backend/tool.h), dies with us, and is killed after
 * its time; one that the kernel does not let go counts on until it is gone
 * (proto/storage/volume_driver.h).
 */
#pragma once

#include "base/error.h"

struct volume_children;

struct volume_children *volume_children_new(guint limit_ms);
void volume_children_free(struct volume_children *children);

/* In a task: waits for a place among those of that back end (UUID), and of the other one that is
 * read (`from`; NULL: none), runs the program and gives what it has said. `texts` (NULL: none;
 * ended by NULL, as are the words): it can read them as the files CHILD_TEXT, CHILD_TEXT_2.
 * `more_ms`: so much longer than usual it may take once it runs. Its exit code; -1 with an error if
 * it came to none: TIMEOUT after the time, or while it waits for a place; KILLED; ENVIRONMENT. */
#define CHILD_TEXT "/proc/self/fd/3"
#define CHILD_TEXT_2 "/proc/self/fd/4"
#define CHILD_TEXTS 2
int volume_children_run(struct volume_children *children, const char *backend, const char *from,
                        const char *const *argv, const char *const *texts, guint64 more_ms,
                        char **ret_output, GError **error);
/* One that lives on, and counts until it is ended. In a task; NULL with an error as above. It is
 * handed these descriptors (backend/tool.h). */
struct child;
struct child *volume_children_start(struct volume_children *children, const char *backend,
                                    const char *const *argv, const int *fds, guint count,
                                    GError **error);
struct tool *volume_child_tool(const struct child *child);
/* In a task: it is killed if it still lives, and its exit seen, by which it is freed; one that the
 * kernel does not let go counts on. False: that is so. NULL is allowed. */
bool volume_child_end(struct child *child);
/* How many were killed and are not gone. One that touched two back ends counts at both, until
 * another call at one of them has come back. */
guint volume_children_hanging(const struct volume_children *children, const char *backend);
