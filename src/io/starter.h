/*
 * luxid's side of starting a job process (architecture.md 6): has the nursery fork one, with a
 * two-way channel to luxid, reads the name of its lock file from that, sends the confirmation, and
 * sees when the channel breaks: after the confirmation, when the process has become the job's, or
 * by the end of either side before.
 *
 * On the channel: the child sends one line "NAME PID START_TICKS\n", the parent one byte.
 */
#pragma once

#include "io/nursery.h"
#include "proto/env.h"

#define STARTER_LINE_BYTES 256
#define STARTER_CONFIRMATION '\n'

/* As nursery_ask() for what can fail. The starter is gone after broken(). */
struct starter *starter_spawn(struct nursery *nursery, guint64 job,
                              const struct starter_events *events, void *data, GError **error);
bool starter_confirm(struct starter *starter);
/* Breaks the channel: the child ends by that, unless it has the confirmation. */
void starter_drop(struct starter *starter);

/* Folder of the programs: `option`, else FETTLE_BINDIR, else that of this program; g_free() it. */
char *starter_bin_folder(const char *option);
