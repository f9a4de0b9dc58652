/*
 * What is read of a directory as text: names and marks in it, and what the children at it say. All
 * of it may have been written by whoever can write to the directory.
 */
#pragma once

#include "base/error.h"
#include "proto/storage/volume_driver.h"

#define DIR_SUM_CHARS 128 /* of a SHA-512 in hexadecimal */

enum {
#define RESOURCE(NAME, kind, word) DIR_FOLDER_##NAME,
#include "proto/storage/resources.def"
    DIR_FOLDERS
};

/* Folder of a kind of resource in the directory; names below are FOLDER/UUID.CLAIM. */
const char *dir_folder(enum resource_type type);
/* The parts of such a name, of which the second may be anything; false: it is none. `*ret_name` is
 * in `text`. */
bool dir_name_parse(const char *text, enum resource_type *ret_type, const char **ret_name);

struct dir_marker {
    char backend[37], cluster[37]; /* UUIDs */
    char name[256];                /* of the cluster */
};
bool dir_marker_parse(const char *text, struct dir_marker *ret);
/* Whether the attribute `fettle.whole` (CLAIM BYTES) says that data of that name and length is. */
bool dir_whole_parse(const char *text, const char *name, guint64 bytes);

/* --- what children say (dir_call.h) --- */

/* What went wrong; always an error. */
void dir_failure_parse(int code, const char *said, GError **error);
/* The same, of qemu-img. */
void dir_qemu_failure_parse(const char *said, GError **error);
/* WHOLE OPEN BYTES FOLDER/NAME, each on a line: GPtrArray of struct volume_data. WHOLE is 0, 1, or
 * where nothing can be marked DIR_MUTE. */
#define DIR_MUTE 2
GPtrArray *dir_list_parse(const char *said);
bool dir_space_parse(const char *said, guint64 *ret_free, guint64 *ret_total);
bool dir_sum_parse(const char *said, guint64 *ret_bytes, char ret_sum[DIR_SUM_CHARS + 1]);
/* SIZE VIRTUAL-SIZE MD5 SHA-512, of `name`. */
bool dir_sums_parse(const struct backend *backend, const char *name, const char *said,
                    struct image_sums *ret, GError **error);
/* Lines of dir_check.h. */
void dir_check_parse(const char *said, struct volume_check *check);
