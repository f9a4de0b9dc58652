/* `fettle why volume|snapshot|storage-service`: what was done about it, as decisions tell it, and
 * how it stands now. For why.c. */
#pragma once

#include "cli/cli.h"

/* Whether that is a kind of resource: volume, snapshot. */
bool why_storage_knows(const char *kind);
/* Name or UUID. */
int why_storage_resource(struct cli *cli, const char *kind, const char *name, GError **error);
/* HOST@BACKEND, or HOST of a scheduler. */
int why_storage_of_service(struct cli *cli, const char *host, GError **error);
