/*
 * luxid's side of starting a job process (architecture.md 6): spawns fettle-job-start with a
 * two-way channel, reads the name of its lock file from it, sends the confirmation, and sees when
 * the channel breaks: by the exec of fettle-job after the confirmation, by the end of either side
 * before.
 *
 * On the channel: the child sends one line "NAME PID START_TICKS\n", the parent one byte. The
 * child's channel is descriptor STARTER_CHANNEL_FD.
 */
#pragma once

#include "io/node_config.h"
#include "proto/env.h"

#define STARTER_CHANNEL_FD 3
#define STARTER_LINE_BYTES 256
#define STARTER_CONFIRMATION '\n'

/* `bin_folder`: of fettle-job-start. ENVIRONMENT if it cannot be run. The starter is gone after
 * broken(). */
struct starter *starter_spawn(const struct node_paths *paths, const char *bin_folder, guint64 job,
                              const struct starter_events *events, void *data, GError **error);
bool starter_confirm(struct starter *starter);

/* Folder of the programs: `option`, else FETTLE_BINDIR, else that of this program; g_free() it. */
char *starter_bin_folder(const char *option);
/* Path of a program in it; also found where the build leaves it, in a folder daemons/NAME beside.
 */
char *starter_program(const char *bin_folder, const char *name);
