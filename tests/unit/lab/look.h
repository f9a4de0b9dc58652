/* What a test of the lab sees of it from outside: files, processes, what is left. */
#pragma once

#include "base/error.h"
#include "base/json.h"

#include <glib.h>
#include <stdbool.h>
#include <string.h>
#include <sys/types.h>

#define PATIENCE_MS 60000

#define check(call)                                                                                \
    do {                                                                                           \
        g_autoptr(GError) check_error = NULL;                                                      \
        bool check_ok = (call);                                                                    \
        g_assert_no_error(check_error);                                                            \
        g_assert_true(check_ok);                                                                   \
    } while (0)
#define check_fails(call, CODE, part)                                                              \
    do {                                                                                           \
        g_autoptr(GError) check_error = NULL;                                                      \
        g_assert_false(call);                                                                      \
        g_assert_error(check_error, FETTLE_ERROR, FETTLE_ERROR_##CODE);                            \
        g_assert_nonnull(strstr(check_error->message, part));                                      \
    } while (0)

char *look_path(const char *dir, const char *node, const char *name);
char *look_content(const char *dir, const char *node, const char *name);
int look_open_new(const char *dir, const char *node, const char *name);
void look_write_text(int fd, const char *text, bool synced);
/* The state of a daemon; its numbers by name. */
json_t *look_daemon_status(const char *dir, const char *node, const char *name);
int look_daemon_number(const char *dir, const char *node, const char *field);
char *look_node_text(const char *dir, guint index, const char *field);
int look_hold_process(const char *dir, const char *node, const char *file);
bool look_has_ended(int pidfd);
/* Writes so much, synced. What is written in part, as the last bit of a disk is, is gone on with:
 * that says why. */
bool look_write_mib(int fd, guint mib);
/* A process that writes a file there, once that can be written to; exit code 1: it could not. */
pid_t look_writer(const char *path);
bool look_waits_in_kernel(pid_t pid);
bool look_mentions(const char *file, const char *text);
/* No mount, loop device or namespace of a lab in `dir` is left. */
void look_no_trace(const char *dir);
