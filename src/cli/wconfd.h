/*
 * The few commands that speak to fettle-wconfd of this host itself, because they replace what
 * everything else rests on. Its socket is open to root only, which is who runs them.
 */
#pragma once

#include "cli/cli.h"

struct wconfd_line;

/* Makes a lock file, so that what is locked is free again when this process ends in whatever way.
 * UNKNOWN_ENTITY: this host belongs to no cluster. */
struct wconfd_line *wconfd_open(const struct cli *cli, GError **error);
void wconfd_close(struct wconfd_line *line);
typedef struct wconfd_line wconfd_line_t;
G_DEFINE_AUTOPTR_CLEANUP_FUNC(wconfd_line_t, wconfd_close)

/* UUID of this host's node; borrowed. */
const char *wconfd_node(const struct wconfd_line *line);
/* One call; `args` is stolen, the answer a new reference. NOT_MASTER and UNREACHABLE say what to
 * do. */
json_t *wconfd_call(struct wconfd_line *line, const char *method, json_t *args, GError **error);
/* What it is in the cluster; free with role_status_free(). Calls from then on are made in the name
 * of its history and epoch. */
struct role_status *wconfd_role(struct wconfd_line *line, GError **error);
/* As owner of locks; a new reference. */
json_t *wconfd_owner(const struct wconfd_line *line);
/* Takes one lock exclusively, or fails with LOCK_BLOCKED and who has it. */
bool wconfd_lock(struct wconfd_line *line, const char *name, GError **error);
