/*
 * Names of sources in var/images: NAME stands for the file NAME, NAME.raw or NAME.qcow2, the first
 * of them that is there. For the storage, which opens them, and for whoever chooses a node that has
 * them.
 */
#pragma once

#include <stdbool.h>

/* What may follow the name, in order; ends with NULL. */
extern const char *const source_endings[];

/* Whether `file` is one of the files that `name` may stand for. */
bool source_name_is(const char *file, const char *name);
