/*
 * Ctrl-C while a command waits for a job: the first one leaves the job alone, the second ends the
 * program at once.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

/* From now on SIGINT is counted, and looked at only in cli_wait_readable(). */
void cli_interrupt_catch(void);
bool cli_interrupted(void);
/* Puts before an error that these jobs are not followed to their end because of it; `error` may
 * point to NULL. */
void cli_prefix_followed(const guint64 *jobs, guint count, GError **error);
/* DETACHED, with what a person types to see these jobs again; at least one. */
void cli_set_detached(const guint64 *jobs, guint count, GError **error);

enum cli_wait { CLI_WAIT_READABLE, CLI_WAIT_TIMEOUT, CLI_WAIT_INTERRUPTED };
/* Waits until a descriptor can be read, or an error stands on it. `timeout_ms` negative: for ever.
 * INTERRUPTED only if `stop`, also for a Ctrl-C that came before. */
enum cli_wait cli_wait_readable(int fd, int timeout_ms, bool stop);
