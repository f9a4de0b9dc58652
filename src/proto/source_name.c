/* See source_name.h. */
#include "proto/source_name.h"

#include <stddef.h>
#include <string.h>

const char *const source_endings[] = {"", ".raw", ".qcow2", NULL};

bool source_name_is(const char *file, const char *name)
{
    size_t len = strlen(name);
    bool found = false;
    for (const char *const *ending = source_endings; !found && *ending != NULL; ending++)
        found = strncmp(file, name, len) == 0 && strcmp(file + len, *ending) == 0;
    return found;
}
