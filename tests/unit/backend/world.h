/*
 * What the tests of the real backends share: nodes in a scratch folder, counting guests, tasks that
 * run to their end, and a guard process that leaves nothing behind however a test ends.
 */
#pragma once

#include "backend/hypervisor/qemu.h"
#include "backend/storage/file_storage.h"
#include "base/task.h"
#include "io/loop.h"
#include "lab/tick.h"

#define WORLD_USER_BEFORE 64100 /* all images were of one user in a version before */
#define WORLD_USER 1234567000   /* the first of a node's pool */
#define WORLD_USERS 64

/* One node: folders, drivers, and what they told. */
struct world_node {
    struct node_paths *paths;
    struct hypervisor *hypervisor;
    struct storage *storage;
    struct guest_users *users;
    guint exited;   /* events */
    char said[256]; /* by the guest that ended last */
    guint shutdowns;
    guint exports_ended;
};

/* A process has one user and group, of a node's pool, no other group, no capability, and no way to
 * any. */
void world_assert_unprivileged(guint64 pid);

/* main() of a test program: runs `tests` in a child; when that has ended in whatever way, ends
 * every process that it left, unmounts and removes what it made. */
int world_main(int argc, char **argv, int (*tests)(int argc, char **argv));
/* The same for one that only runs the tests that `add` adds. */
int world_tests(int argc, char **argv, void (*add)(void));

/* What a shell command prints, without the last newline; it has to succeed. g_free() it. */
char *world_shell(const char *format, ...) G_GNUC_PRINTF(1, 2);

/* The tests run in a network namespace of their own, whose loopback is the cable between nodes. */
void world_link(bool up);

/* Folder of this program's run; removed at the end. */
const char *world_folder(void);

/* Makes (or opens again) the node `name` in the run's folder, with the image "tick" to create
 * instances from. */
struct world_node *world_node_new(const char *name);
/* Its guests and exports live on. */
void world_node_free(struct world_node *node);

/* Runs fn in a task and turns the loop until it has ended. */
void world_run(void (*fn)(void *data), void *data);
/* Adds a test that is run so; it gets NULL. */
void world_test(const char *path, void (*fn)(void *data));
/* The same, but it gets `data`. */
void world_test_with(const char *path, void (*fn)(void *data), void *data);
/* Adds a test of one guest: it gets a node of that name, and world_instance(1, 1). */
typedef void (*world_guest_fn)(struct world_node *node, struct instance *web1);
void world_guest_test(const char *path, const char *name, world_guest_fn fn);

/* An instance "web1" with `disks` disks of 2 MiB. Free with instance_free(). */
struct instance *world_instance(guint disks, guint64 generation);
/* With the images of the primary; in a task. */
void world_prepare(struct world_node *node, const struct instance *instance, GError **error);
/* Creates its images in a task: the primary's (replica "") from "tick", a replica's empty. */
void world_create(struct world_node *node, const struct instance *instance, const char *replica);
/* In a task: makes its images and prepares it. */
void world_make(struct world_node *node, const struct instance *instance);
/* In a task: lets it run until it has printed a count above `above`. */
void world_go(struct world_node *node, const struct instance *instance, guint32 above);
/* Both: it runs, and counts. */
void world_start(struct world_node *node, const struct instance *instance);
/* In a task: kills its guest. */
void world_end(struct world_node *node, const struct instance *instance);
struct export_target *world_export(struct world_node *node, const struct instance *instance,
                                   const char *replica);

/* Highest count printed so far; count on an image. */
guint32 world_printed(const struct world_node *node, const struct instance *instance);
guint32 world_counted(const struct world_node *node, const struct instance *instance,
                      const char *replica);
/* In a task: waits until a count above `above` is printed; false after a minute. */
bool world_await_count(const struct world_node *node, const struct instance *instance,
                       guint32 above);
/* The promise of a replica (SAF-13): what `printer` has printed is on that image of `node`. The
 * guest may run. */
void world_assert_whole(const struct world_node *node, const struct instance *instance,
                        const char *replica, const struct world_node *printer);
/* In a task: whether it comes to half a second without a count, within a minute. */
bool world_is_frozen(const struct world_node *node, const struct instance *instance);
/* In a task: waits until the mirror is in `state`; false after a minute. */
bool world_await_mirror(struct world_node *node, const struct instance *instance,
                        enum mirror_state state);
enum guest_state world_state(struct world_node *node, const struct instance *instance);

/* In a task: waits until a process that was killed has ended, or a file is gone that somebody is
 * about to remove; at most a minute. */
void world_await_gone(guint64 pid);
void world_await_removed(const char *path);

/* In a task: a command to the guest's QEMU by its second socket, as a person would send it. */
json_t *world_monitor(const struct world_node *node, const struct instance *instance,
                      const char *command, json_t *arguments, GError **error);
/* In a task: a write beside those of the guest, which nobody waits for; all in KiB. */
bool world_try_write(const struct world_node *node, const struct instance *instance, guint pattern,
                     guint offset, guint count, GError **error);
void world_write(const struct world_node *node, const struct instance *instance, guint pattern,
                 guint offset, guint count);

/* Process of the export of a disk; that of the guest. */
guint64 world_export_pid(const struct world_node *node, const struct instance *instance,
                         const char *replica, guint disk);
guint64 world_guest_pid(const struct world_node *node, const struct instance *instance);
/* What that was started with, the words apart by spaces; g_free() it. */
char *world_command_line(const struct world_node *node, const struct instance *instance);

/* Mounts a tmpfs of `kib` KiB on the node's var/disks. */
void world_limit_disks(const struct world_node *node, guint kib);
