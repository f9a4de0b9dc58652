/*
 * What every daemon's main() shares: options, the root folder, the loop, the start task, the sign of readiness, exit
 * codes. A daemon is a table of callbacks, so that all of them read alike:
 *
 *   parse --root (or FETTLE_ROOT, else "/") -> setup() -> start() in a task -> ready -> loop -> stop()
 *
 * Ready means: the line "fettle-NAME: ready" on standard error, and run/NAME.ready, an empty file that is there exactly
 * while the daemon is ready (supervisors and the lab wait for it; it is removed at the next start).
 * SIGTERM and SIGINT end the loop with exit code 0; every other end names its reason and uses the code of error.def.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

struct daemon {
    const char *name; /* "wconfd": program fettle-wconfd, run/wconfd.ready */
    const char *summary;           /* one line for --help */
    const GOptionEntry *options;   /* of its own, NULL for none */
    /* Before the loop: build the environment, listen. `root` is absolute or "/". */
    bool (*setup)(const char *root, GError **error);
    /* In a task, while the loop runs. */
    bool (*start)(GError **error);
    /* Frees everything; also after a failed setup or start. */
    void (*stop)(void);
    /* May be NULL. Runs instead of all above and returns the exit code, if it says so in `ret_done`: for one-shot
     * modes like --bootstrap. */
    bool (*once)(const char *root, bool *ret_done, GError **error);
};

/* The whole of main(). */
int daemon_main(int argc, char **argv, const struct daemon *daemon);

/* Ends the loop: NULL as after SIGTERM, else the error is named once and its exit code used (copied). May be called from
 * any callback. */
void daemon_quit(const GError *error);
