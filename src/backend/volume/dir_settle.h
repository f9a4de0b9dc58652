/*
 * Whether a file that came is the image that was said (SAF-60): its length and its sums. For
 * dir_volumes.c, which asks, and dir_call.c, whose child looks.
 */
#pragma once

#include "proto/storage/volume_driver.h"

/* FORMAT MD5 SHA-512, - for what was not said; free with g_free(). */
char *dir_settle_text(enum disk_format format, const struct image_sums *said);
/* The same read, and the length beside it; the format, to be freed. WRONG_INPUT: a sum that nothing
 * could be held against counts as none that was not said. */
char *dir_settle_parse(const char *text, guint64 bytes, struct image_sums *ret_said,
                       GError **error);
void dir_settle_short(guint64 said, guint64 there, GError **error); /* CORRUPT */
/* To that length, if it was said. CORRUPT: there is less. */
bool dir_settle_cut(int fd, guint64 there, guint64 bytes, GError **error);
/* CORRUPT with the first sum that differs. */
bool dir_settle_fits(const struct image_sums *said, const char *md5, const char *sha512,
                     GError **error);
