/* What a test of the lab sees of it from outside: files, processes, what is left. */
#pragma once

#include "base/json.h"

#include <glib.h>
#include <stdbool.h>

#define PATIENCE_MS 60000

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
bool look_mentions(const char *file, const char *text);
/* No mount, loop device or namespace of a lab in `dir` is left. */
void look_no_trace(const char *dir);
