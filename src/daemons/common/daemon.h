/*
 * What every daemon's main() shares: options, the root folder, the loop, the start task, the sign
 * of readiness, exit codes. A daemon is a table of callbacks, so that all of them read alike:
 *
 *   parse --root -> setup() -> start() in a task -> ready -> loop -> stop()
 *
 * Ready means: the line "fettle-NAME: ready" on standard error, and run/NAME.ready, an empty file
 * that is there exactly while the daemon is ready (supervisors and the lab wait for it; a leftover
 * is removed at the next start). What it is and how it ended stands in run/services/NAME.json, for
 * the node's report (core/host/services.h). SIGTERM and SIGINT end the loop with exit code 0;
 * every other end names its reason and uses the code of error.def.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

#include "proto/env.h"

struct daemon {
    const char *name;            /* "wconfd": program fettle-wconfd, run/wconfd.ready */
    const char *summary;         /* one line for --help */
    const GOptionEntry *options; /* of its own, NULL for none */
    /* Runs before anything else and ends the program: for one-shot modes like --bootstrap. NULL, or
     * `*ret_done` stays false: a normal start. `root` is absolute. */
    bool (*once)(const char *root, bool *ret_done, GError **error);
    /* Before the loop runs: the environment (real_env_new), core's object, the socket. Returns the
     * environment, which `stop` frees. */
    struct env *(*setup)(const char *root, GError **error);
    /* In a task, while the loop runs: core's X_start(). */
    bool (*start)(GError **error);
    /* Frees everything; called once, also after a failed setup or start. */
    void (*stop)(void);
};

/* The whole of main(). */
int daemon_main(int argc, char **argv, const struct daemon *daemon);

/* Ends the loop: NULL as after SIGTERM, else `error` is named once and gives the exit code. From
 * any callback or task of the loop's thread. */
void daemon_quit(const GError *error);
