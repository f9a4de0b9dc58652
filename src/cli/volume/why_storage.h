/* `fettle why volume|storage-service`: what was done about it, as decisions tell it, and how it
 * stands now. For why.c. */
#pragma once

#include "cli/cli.h"

/* Name or UUID. */
int why_storage_volume(struct cli *cli, const char *name, GError **error);
/* HOST@BACKEND, or HOST of a scheduler. */
int why_storage_of_service(struct cli *cli, const char *host, GError **error);
