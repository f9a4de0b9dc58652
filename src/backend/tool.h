/*
 * Programs that do one thing for us and end (qemu-img, ip, ovs-vsctl): started, given a text to
 * read, listened to, waited for. They die with us. Used in tasks.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>

struct tool;

/* `argv` is ended by NULL; argv[0] is looked up in PATH. `input` (may be NULL) can be read by it as
 * the file TOOL_INPUT. ENVIRONMENT if it cannot be started. */
#define TOOL_INPUT "/proc/self/fd/3"
struct tool *tool_start(const char *const *argv, const char *input, GError **error);
/* The same of a program that is handed these descriptors, as 3, 4, …; and a file in memory with a
 * text that can be handed on, -1 with ENVIRONMENT. */
struct tool *tool_start_with(const char *const *argv, const int *fds, guint count, GError **error);
int tool_text(const char *text, GError **error);
guint64 tool_pid(const struct tool *tool);
/* Ends it if it still runs. NULL is allowed. */
void tool_free(struct tool *tool);

/* Waits at most `timeout_ms`; false if it still runs, or we were killed (task_killed()). */
bool tool_wait(struct tool *tool, guint timeout_ms);
bool tool_ended(const struct tool *tool);
/* SIGKILL, and the exit seen. */
bool tool_kill(struct tool *tool, GError **error);
/* As process_exit_code(). */
int tool_exit_code(const struct tool *tool);
/* The last `max` bytes of its standard output and error so far, as valid UTF-8. */
char *tool_output(const struct tool *tool, gsize max);
/* The last line of an output that says something, without the program's name; for messages. */
char *tool_last_words(const char *output);

/* All of it at once: runs the program to its end, at most `timeout_ms` (then TIMEOUT). Returns its
 * exit code, -1 with an error if it did not come to one. `ret_output` may be NULL. */
int tool_run(const char *const *argv, const char *input, guint timeout_ms, char **ret_output,
             GError **error);
