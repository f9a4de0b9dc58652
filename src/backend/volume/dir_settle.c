/* See dir_settle.h. */
#include "backend/volume/dir_settle.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "backend/storage/qcow2.h"
#include "base/limits.h"

#define PIECE_BYTES MIB(1)
#define NOT_SAID "-"

char *dir_settle_text(const struct volume_image_facts *facts)
{
    return g_strdup_printf("%s %" G_GUINT64_FORMAT " %s %s",
                           enum_word(&disk_format_words, (int)facts->format), facts->virtual_size,
                           *facts->sum ? facts->sum : NOT_SAID,
                           *facts->checksum ? facts->checksum : NOT_SAID);
}

bool dir_settle_parse(const char *text, guint64 bytes, struct volume_image_facts *ret_facts)
{
    char format[16];
    struct volume_image_facts facts = {.bytes = bytes};
    if (sscanf(text, "%15s %" G_GUINT64_FORMAT " %128[0-9a-f-] %32[0-9a-f-]", format,
               &facts.virtual_size, facts.sum, facts.checksum) != 4)
        return false;
    int found = enum_parse(&disk_format_words, format);
    facts.format = (enum disk_format)MAX(found, 0);
    if (strcmp(facts.sum, NOT_SAID) == 0)
        *facts.sum = '\0';
    if (strcmp(facts.checksum, NOT_SAID) == 0)
        *facts.checksum = '\0';
    *ret_facts = facts;
    return found >= 0;
}

void dir_settle_print(const struct volume_image_facts *facts)
{
    g_autofree char *text = dir_settle_text(facts);
    printf("%s\n", text);
}

bool dir_settle_cut(int fd, guint64 there, guint64 bytes, GError **error)
{
    if (there < bytes)
        fettle_set_error(error, CORRUPT,
                         "%" G_GUINT64_FORMAT
                         " bytes were to come, and there is room for %" G_GUINT64_FORMAT,
                         bytes, there);
    else if (ftruncate(fd, (off_t)bytes) == 0)
        return true;
    else
        fettle_set_error(error, STORAGE, "cannot size it: %s", g_strerror(errno));
    return false;
}

/* --- sums --- */

/* Of what is there, into a buffer of 129 and one of 33 bytes. */
static bool take_sums(int fd, char *sum, char *checksum, GError **error)
{
    g_autoptr(GChecksum) long_one = g_checksum_new(G_CHECKSUM_SHA512);
    g_autoptr(GChecksum) short_one = g_checksum_new(G_CHECKSUM_MD5);
    g_autofree guchar *piece = g_malloc(PIECE_BYTES);
    off_t at = 0;
    for (;;) {
        ssize_t got = pread(fd, piece, PIECE_BYTES, at);
        if (got < 0) {
            fettle_set_error(error, STORAGE, "cannot read it: %s", g_strerror(errno));
            return false;
        }
        if (got == 0)
            break;
        g_checksum_update(long_one, piece, got);
        g_checksum_update(short_one, piece, got);
        at += got;
    }
    g_strlcpy(sum, g_checksum_get_string(long_one), 129);
    g_strlcpy(checksum, g_checksum_get_string(short_one), 33);
    return true;
}

static bool is_same(const char *what, const char *said, const char *there, GError **error)
{
    if (*said && strcmp(said, there) != 0)
        fettle_set_error(error, CORRUPT,
                         "what came is not what was sent: its %s is %.16s…, and not %.16s…", what,
                         there, said);
    return !*said || strcmp(said, there) == 0;
}

/* --- the header --- */

static bool rests_on_nothing(const struct qcow2_header *header, GError **error)
{
    const char *other = header->data_file ? header->data_file : header->backing;
    if (other)
        fettle_set_error(error, CORRUPT,
                         "it refers to another file, \"%s\", and an image has to be all of itself",
                         other);
    return !other;
}

static bool read_header(int fd, struct volume_image_facts *facts, GError **error)
{
    g_autofree guint8 *start = g_malloc(LIMIT_QCOW2_HEADER_BYTES);
    g_autoptr(GError) local = NULL;
    struct qcow2_header header = {0};
    ssize_t length = pread(fd, start, LIMIT_QCOW2_HEADER_BYTES, 0);
    if (length < 0 || !qcow2_has_magic(start, (gsize)length)) {
        fettle_set_error(error, CORRUPT, "it is no qcow2 file, as it was said to be");
        return false;
    }
    if (!qcow2_parse(start, (gsize)length, &header, &local)) {
        fettle_set_error(error, CORRUPT, "it %s", local->message);
        return false;
    }
    bool ok = rests_on_nothing(&header, error);
    facts->virtual_size = header.size;
    qcow2_header_clear(&header);
    return ok;
}

bool dir_settle_check(int fd, struct volume_image_facts *facts, GError **error)
{
    char sum[sizeof facts->sum] = "", checksum[sizeof facts->checksum] = "";
    if (!take_sums(fd, sum, checksum, error) || !is_same("SHA-512", facts->sum, sum, error) ||
        !is_same("MD5", facts->checksum, checksum, error))
        return false;
    memcpy(facts->sum, sum, sizeof sum);
    memcpy(facts->checksum, checksum, sizeof checksum);
    facts->virtual_size = facts->bytes;
    return facts->format != FORMAT_QCOW2 || read_header(fd, facts, error);
}
