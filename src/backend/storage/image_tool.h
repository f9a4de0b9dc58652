/*
 * qemu-img as a child process with limits on its processor time, memory, output and patience: it
 * reads images that somebody else made. It dies with the node daemon. Used by create.c and
 * file_storage.c, in a task.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>

struct tool_run {
    const char *const *arguments; /* of qemu-img, ended by NULL */
    const char *doing;            /* for errors: "checking image \"x\"" */
    bool writes;                  /* makes an image: may take long, and write files */
    int ok_code;                  /* exit code beside 0 that is no failure */
    /* Called with the share that is done, in percent, as far as qemu-img -p tells; may be NULL. */
    void (*progress)(double percent, void *data);
    void *data;
    const gint *canceled; /* ends it, with CANCELED, when it is set; may be NULL */
};

/* The words before the program's that bound its memory, for who starts it himself. */
void image_tool_limits(GPtrArray *argv);

/* False with the last thing that qemu-img said: NO_RESOURCES if that was about a full disk, else
 * CORRUPT (of a run that only reads) or STORAGE. TIMEOUT if it got no further for
 * LIMIT_IMAGE_STALL_MS. ENVIRONMENT if it cannot be started. */
bool image_tool_run(const struct tool_run *run, GError **error);
