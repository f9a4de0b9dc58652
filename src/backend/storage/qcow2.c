/*
 * Reading qcow2 headers. See qcow2.h. Nothing that stands in a header is trusted: every offset and
 * length is compared with what was read.
 */
#include "backend/storage/qcow2.h"

#include "base/limits.h"

#include <string.h>

#define MAGIC "QFI\xfb"
#define V2_BYTES 72
#define V3_BYTES 104
#define MIN_CLUSTER_BITS 9
#define MAX_CLUSTER_BITS 21
#define MAX_NAME_BYTES 1023

#define INCOMPATIBLE_CORRUPT (G_GUINT64_CONSTANT(1) << 1)
#define INCOMPATIBLE_DATA_FILE (G_GUINT64_CONSTANT(1) << 2)
#define INCOMPATIBLE_KNOWN G_GUINT64_CONSTANT(0x1f)

#define EXTENSION_END 0u
#define EXTENSION_BACKING_FORMAT 0xe2792acau
#define EXTENSION_DATA_FILE 0x44415441u

static guint32 read_u32(const guint8 *at)
{
    guint32 value;
    memcpy(&value, at, sizeof value);
    return GUINT32_FROM_BE(value);
}

static guint64 read_u64(const guint8 *at)
{
    guint64 value;
    memcpy(&value, at, sizeof value);
    return GUINT64_FROM_BE(value);
}

bool qcow2_has_magic(const guint8 *bytes, gsize len)
{
    return len >= strlen(MAGIC) && memcmp(bytes, MAGIC, strlen(MAGIC)) == 0;
}

static bool damaged(const char *what, GError **error)
{
    fettle_set_error(error, CORRUPT, "is damaged: %s", what);
    return false;
}

static char *read_name(const guint8 *bytes, gsize len)
{
    return memchr(bytes, 0, len) == NULL && g_utf8_validate((const char *)bytes, (gssize)len, NULL)
               ? g_strndup((const char *)bytes, len)
               : NULL;
}

static bool parse_backing(const guint8 *bytes, gsize len, struct qcow2_header *header,
                          GError **error)
{
    guint64 offset = read_u64(bytes + 8);
    guint32 size = read_u32(bytes + 16);
    if (offset == 0)
        return true;
    if (size == 0 || size > MAX_NAME_BYTES || offset > len || size > len - offset)
        return damaged("the name of its backing file lies outside of its header", error);
    header->backing = read_name(bytes + offset, size);
    return header->backing != NULL || damaged("the name of its backing file is no text", error);
}

static bool parse_extensions(const guint8 *bytes, gsize len, gsize at, struct qcow2_header *header,
                             GError **error)
{
    while (at + 8 <= len) {
        guint32 type = read_u32(bytes + at), size = read_u32(bytes + at + 4);
        at += 8;
        if (type == EXTENSION_END)
            return true;
        if (size > len - at)
            return damaged("an extension lies outside of its header", error);
        char **name = type == EXTENSION_BACKING_FORMAT ? &header->backing_format
                      : type == EXTENSION_DATA_FILE    ? &header->data_file
                                                       : NULL;
        if (name != NULL && *name != NULL)
            return damaged("it names a file twice", error);
        if (name != NULL &&
            (size == 0 || size > MAX_NAME_BYTES || (*name = read_name(bytes + at, size)) == NULL))
            return damaged("a name in its header is no text", error);
        at += MIN((gsize)size + (8 - size % 8) % 8, len - at);
    }
    return true;
}

/* Where the extensions begin, and what the features of version 3 mean. */
static bool parse_version(const guint8 *bytes, gsize len, gsize *ret_extensions,
                          bool *ret_data_file, GError **error)
{
    guint32 version = read_u32(bytes + 4);
    *ret_extensions = V2_BYTES;
    *ret_data_file = false;
    if (version == 2)
        return true;
    if (version != 3) {
        fettle_set_error(error, CORRUPT, "has version %u of qcow2; 2 and 3 are known", version);
        return false;
    }
    if (len < V3_BYTES)
        return damaged("its header is cut short", error);
    guint64 incompatible = read_u64(bytes + 72);
    guint32 header_bytes = read_u32(bytes + 100);
    if (incompatible & INCOMPATIBLE_CORRUPT) {
        fettle_set_error(error, CORRUPT,
                         "is marked as corrupt; see whether `qemu-img check -r all` mends it");
        return false;
    }
    if (incompatible & ~INCOMPATIBLE_KNOWN) {
        fettle_set_error(error, CORRUPT,
                         "needs features that are not known here (0x%" G_GINT64_MODIFIER "x)",
                         incompatible & ~INCOMPATIBLE_KNOWN);
        return false;
    }
    if (header_bytes < V3_BYTES || header_bytes > len)
        return damaged("the length of its header is impossible", error);
    *ret_extensions = header_bytes;
    *ret_data_file = (incompatible & INCOMPATIBLE_DATA_FILE) != 0;
    return true;
}

static bool parse_sizes(const guint8 *bytes, struct qcow2_header *header, GError **error)
{
    guint32 cluster_bits = read_u32(bytes + 20);
    header->size = read_u64(bytes + 24);
    if (cluster_bits < MIN_CLUSTER_BITS || cluster_bits > MAX_CLUSTER_BITS)
        return damaged("the size of its clusters is impossible", error);
    if (header->size == 0 || header->size / MIB(1) > LIMIT_DISK_MIB) {
        fettle_set_error(error, CORRUPT,
                         "claims a disk of %" G_GUINT64_FORMAT " bytes; 1 to %" G_GUINT64_FORMAT
                         " are possible",
                         header->size, (guint64)LIMIT_DISK_MIB * MIB(1));
        return false;
    }
    if (read_u32(bytes + 32) != 0) {
        fettle_set_error(error, WRONG_INPUT,
                         "is encrypted; decrypt it first with `qemu-img convert`");
        return false;
    }
    return true;
}

static bool parse(const guint8 *bytes, gsize len, struct qcow2_header *header, GError **error)
{
    gsize extensions;
    bool data_file;
    if (!qcow2_has_magic(bytes, len))
        return damaged("it does not begin as a qcow2 file does", error);
    if (len < V2_BYTES)
        return damaged("its header is cut short", error);
    if (!parse_version(bytes, len, &extensions, &data_file, error) ||
        !parse_sizes(bytes, header, error) || !parse_backing(bytes, len, header, error) ||
        !parse_extensions(bytes, len, extensions, header, error))
        return false;
    if (data_file && header->data_file == NULL)
        return damaged("its data is in another file that it does not name", error);
    if (!data_file)
        g_clear_pointer(&header->data_file, g_free); /* the name alone means nothing */
    return true;
}

bool qcow2_parse(const guint8 *bytes, gsize len, struct qcow2_header *ret_header, GError **error)
{
    struct qcow2_header header = {0};
    bool ok = parse(bytes, len, &header, error);
    if (ok)
        *ret_header = header;
    else
        qcow2_header_clear(&header);
    return ok;
}

void qcow2_header_clear(struct qcow2_header *header)
{
    g_free(header->backing);
    g_free(header->backing_format);
    g_free(header->data_file);
    *header = (struct qcow2_header){0};
}
