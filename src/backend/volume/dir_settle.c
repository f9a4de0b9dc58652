/* See dir_settle.h. */
#include "backend/volume/dir_settle.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define NOT_SAID "-"

char *dir_settle_text(enum disk_format format, const struct image_sums *said)
{
    return g_strdup_printf("%s %s %s", enum_word(&disk_format_words, (int)format),
                           *said->checksum ? said->checksum : NOT_SAID,
                           *said->os_hash_value ? said->os_hash_value : NOT_SAID);
}

char *dir_settle_parse(const char *text, guint64 bytes, struct image_sums *ret_said)
{
    char format[16] = "";
    *ret_said = (struct image_sums){.size = bytes};
    sscanf(text, "%15s %32[0-9a-f] %128[0-9a-f]", format, ret_said->checksum,
           ret_said->os_hash_value);
    sscanf(text, "%*s " NOT_SAID " %128[0-9a-f]", ret_said->os_hash_value);
    return g_strdup(format);
}

bool dir_settle_cut(int fd, guint64 there, guint64 bytes, GError **error)
{
    if (there < bytes)
        fettle_set_error(error, CORRUPT,
                         "%" G_GUINT64_FORMAT
                         " bytes were to come, and there is room for %" G_GUINT64_FORMAT,
                         bytes, there);
    else if (!bytes || ftruncate(fd, (off_t)bytes) == 0)
        return true;
    else
        fettle_set_error(error, STORAGE, "cannot size it: %s", g_strerror(errno));
    return false;
}

static bool is_same(const char *what, const char *said, const char *there, GError **error)
{
    if (!*said || strcmp(said, there) == 0)
        return true;
    fettle_set_error(error, CORRUPT,
                     "what came is not what was sent: its %s is %.16s…, and not %.16s…", what,
                     there, said);
    return false;
}

bool dir_settle_fits(const struct image_sums *said, const char *md5, const char *sha512,
                     GError **error)
{
    return is_same("SHA-512", said->os_hash_value, sha512, error) &&
           is_same("MD5", said->checksum, md5, error);
}
