/*
 * Which jobs a command is about, for `fettle job cancel` and its like: ids, or --queued, --waiting,
 * --pending (either of these) and --running, which ask before they are followed.
 */
#pragma once

#include "cli/cli.h"

#define JOB_SELECT_USAGE "[--queued|--waiting|--pending|--running] [--yes] [ID…]"

/* Takes these out of the words, which all have to be ids then. `will`: what becomes of them, "will
 * be canceled". Array of guint64, unref it; empty if there is none of that kind; NULL with an
 * error. */
GArray *job_select(struct cli *cli, int *argc, char **argv, const char *usage, const char *will,
                   GError **error);

/* What is done to one job: what is true then, as an object with "job" and "message", or NULL with
 * an error. */
typedef json_t *(*job_act)(struct cli *cli, guint64 id, void *data, GError **error);
/* Does it to each. Of one job that is what the command says; of several each is a line, and those
 * that fail are lines on standard error, or with --json entries {"job", "error"} of one list; the
 * exit code is the first failure's. Unrefs `jobs`. */
int job_each(struct cli *cli, GArray *jobs, job_act act, void *data, GError **error);

/* UNKNOWN_ENTITY if there is no such job, else WRONG_STATE with what luxid has said (NULL:
 * nothing). */
void job_set_refused(struct cli *cli, guint64 id, const char *said, GError **error);
