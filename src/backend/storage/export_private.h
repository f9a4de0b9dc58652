/*
 * What the files of exports share: export.c (openings, settling, adoption) and export_start.c (how
 * the server of each disk is started).
 */
#pragma once

#include "backend/storage/export_state.h"
#include "backend/storage/storage_private.h"
#include "io/process.h"

struct export
{
    struct file_storage *storage;
    struct export_state *state;
    GPtrArray *processes; /* struct process, one per disk that was started */
    guint32 user;         /* that they run as; 0: ours, or adopted and of no interest */
    bool closing;         /* by us: an exit is no news */
    bool ended;           /* one has ended by itself */
    bool durable;         /* since it began; unknown, and so false, of an adopted one */
};

/* Starts the server of each of `images`, in their order, on free ports, which it writes into the
 * target. Returns when all have greeted. On failure what was started is left in `processes`, for
 * the caller to close. */
bool export_start(struct export *export, const GPtrArray *images, GError **error);

/* Where file `kind` of one disk's server lies. */
char *export_disk_path(const struct export *export, const char *kind, guint disk);

/* The `exited` of its processes: one that ends by itself ends the others, and is told. */
void export_process_exited(struct process *process, void *data);
