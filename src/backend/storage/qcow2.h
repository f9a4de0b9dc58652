/*
 * The header of a qcow2 file, read without QEMU: what the file claims to be and which other files
 * it refers to is known, and refused if need be, before any program follows it. For image_source.c.
 *
 * Format: docs/interop/qcow2.txt of QEMU.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>

struct qcow2_header {
    guint64 size;         /* of the disk inside, in bytes */
    char *backing;        /* name of its backing file as written there; NULL: none */
    char *backing_format; /* "raw", "qcow2"; NULL: not said */
    char *data_file;      /* name of the file that has its data; NULL: itself */
};

/* Whether the bytes begin as a qcow2 file does. */
bool qcow2_has_magic(const guint8 *bytes, gsize len);

/* Reads a header from the first bytes of a file. CORRUPT: damaged, marked as corrupt, or of a kind
 * that nobody knows; WRONG_INPUT: encrypted. The messages are phrases that go on after the image's
 * name: "is encrypted". */
bool qcow2_parse(const guint8 *bytes, gsize len, struct qcow2_header *ret_header, GError **error);
void qcow2_header_clear(struct qcow2_header *header);
