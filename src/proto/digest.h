/*
 * The digest of a set of objects: what tells whether two copies at one serial are the same. Within
 * one history a version is the serial of the one change that wrote it, so kind, key and version say
 * all; whether a row is whole is for its own checksum to say. The digest of a set is the xor of
 * those of its objects, so a change costs nothing but itself.
 */
#pragma once

#include <glib.h>

/* FNV-1a, 64 bits. */
#define DIGEST_START G_GUINT64_CONSTANT(0xcbf29ce484222325)

static inline guint64 digest_bytes(guint64 sum, const void *data, size_t len)
{
    const guint8 *byte = data;
    for (size_t i = 0; i < len; i++)
        sum = (sum ^ byte[i]) * G_GUINT64_CONSTANT(0x100000001b3);
    return sum;
}

/* With the NUL, so that texts do not run together. */
static inline guint64 digest_text(guint64 sum, const char *text)
{
    guint64 result = sum;
    do
        result = digest_bytes(result, text, 1);
    while (*text++ != '\0');
    return result;
}

static inline guint64 digest_object(const char *kind, const char *key, guint64 version)
{
    guint64 sum = digest_text(digest_text(DIGEST_START, kind), key);
    return digest_bytes(sum, &version, sizeof version);
}
