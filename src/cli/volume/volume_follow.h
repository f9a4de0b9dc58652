/*
 * Work on a volume or a snapshot that was asked for, followed to its end by LUXI: until its row is
 * gone, and the resource says what has come of it.
 */
#pragma once

#include "cli/cli.h"

struct volume_request {
    const char *kind;      /* "volume", "snapshot" */
    const char *operation; /* "create-volume", … */
    const char *name;      /* as the person has named it */
    const char *into;      /* of a restore the volume, of a retype the type; NULL: neither */
    char *uuid;            /* of the resource */
    guint64 row;           /* id of the row: serial of the commit that made it */
    guint64 size;          /* that it is to have (GiB); 0: not asked for */
};

void volume_request_clear(struct volume_request *work);
/* Says what is true now, or sets the error with the reason on record. DETACHED after Ctrl-C: the
 * work goes on. -1 with an error. */
int volume_follow(struct cli *cli, const struct volume_request *work, GError **error);
