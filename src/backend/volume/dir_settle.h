/*
 * Whether a file that came is the image that was said (SAF-60): its length, its sums, its header.
 * The file is on stable storage when it is read. For dir_call.c, whose child does it, and
 * dir_volumes.c, which asks.
 */
#pragma once

#include "proto/storage/volume_driver.h"

/* FORMAT VIRTUAL-SIZE SHA-512 MD5, - for what was not said; free with g_free(). */
char *dir_settle_text(const struct volume_image_facts *facts);
/* The same read, and the length beside it. */
bool dir_settle_parse(const char *text, guint64 bytes, struct volume_image_facts *ret_facts);
void dir_settle_print(const struct volume_image_facts *facts);

/* CORRUPT: there is less. */
bool dir_settle_cut(int fd, guint64 there, guint64 bytes, GError **error);
/* CORRUPT with what differs; else all of it is said from now on. */
bool dir_settle_check(int fd, struct volume_image_facts *facts, GError **error);
