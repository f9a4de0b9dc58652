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

/* NOT_SAID is said by no digits. */
static bool read_sum(const char *word, char *ret, gsize room)
{
    const char *sum = strcmp(word, NOT_SAID) == 0 ? "" : word;
    g_strlcpy(ret, sum, room);
    return (*sum || sum != word) && image_sum_is_good(sum, room - 1);
}

char *dir_settle_parse(const char *text, guint64 bytes, struct image_sums *ret_said, GError **error)
{
    g_auto(GStrv) words = g_strsplit(text, " ", -1);
    *ret_said = (struct image_sums){.size = bytes};
    if (g_strv_length(words) == 3 &&
        read_sum(words[1], ret_said->checksum, sizeof ret_said->checksum) &&
        read_sum(words[2], ret_said->os_hash_value, sizeof ret_said->os_hash_value))
        return g_strdup(words[0]);
    fettle_set_error(error, WRONG_INPUT, "\"%s\" is no format with two sums", text);
    return NULL;
}

void dir_settle_short(guint64 said, guint64 there, GError **error)
{
    fettle_set_error(error, CORRUPT,
                     "%" G_GUINT64_FORMAT
                     " bytes were to come, and there is room for %" G_GUINT64_FORMAT,
                     said, there);
}

bool dir_settle_cut(int fd, guint64 there, guint64 bytes, GError **error)
{
    if (there < bytes)
        dir_settle_short(bytes, there, error);
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
