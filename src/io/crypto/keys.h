/* The file of keys; for crypto.c and tests. */
#pragma once

#include "base/error.h"

#include <sys/stat.h>

#define API_KEYS 2
#define API_KEY_BYTES 32

struct keys {
    guchar bytes[API_KEYS][API_KEY_BYTES]; /* the first one seals */
    struct stat stat;                      /* of the file that they were read from */
};
bool keys_read(const char *path, struct keys *ret, GError **error);
/* Whether the file is another one now, or cannot be looked at. */
bool keys_changed(const char *path, const struct keys *keys);
