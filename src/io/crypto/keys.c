/* See keys.h, crypto.h: a line that says what it is, then a line of digits for each key. */
#include "io/crypto/keys.h"

#include <errno.h>
#include <fcntl.h>
#include <gnutls/crypto.h>
#include <string.h>
#include <unistd.h>

#include "io/crypto/crypto.h"
#include "io/files.h"

#define KEYS_TITLE "fettle api keys 1"
#define KEYS_MODE 0600
#define KEYS_MAX_BYTES 4096

static bool parse_key(const char *line, guchar *ret)
{
    if (!line || strlen(line) != 2 * API_KEY_BYTES)
        return false;
    for (guint i = 0; i < API_KEY_BYTES; i++) {
        int high = g_ascii_xdigit_value(line[2 * i]), low = g_ascii_xdigit_value(line[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        ret[i] = (guchar)(high * 16 + low);
    }
    return true;
}

static bool parse(const char *path, const char *text, struct keys *ret, GError **error)
{
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    bool good = g_strv_length(lines) == 1 + API_KEYS + 1 && !strcmp(lines[0], KEYS_TITLE);
    for (guint i = 0; good && i < API_KEYS; i++)
        good = parse_key(lines[1 + i], ret->bytes[i]);
    if (!good)
        fettle_set_error(error, CORRUPT,
                         "%s: these are no keys of the API (%u lines of %u digits behind \"%s\"); "
                         "copy it from another front end, or remove it and run `fettle api "
                         "rotate-keys`, which makes every token worthless",
                         path, API_KEYS, 2 * API_KEY_BYTES, KEYS_TITLE);
    return good;
}

static bool read_open(const char *path, int fd, struct keys *ret, GError **error)
{
    if (fstat(fd, &ret->stat) < 0)
        return files_error("look at", path, error);
    if (ret->stat.st_mode & 077) {
        fettle_set_error(error, PERMISSION,
                         "%s: others may read it (mode %04o), and who has can make tokens of "
                         "anybody; run `chmod 600 %s`, then `fettle api rotate-keys` twice",
                         path, ret->stat.st_mode & 07777, path);
        return false;
    }
    char text[KEYS_MAX_BYTES + 1];
    ssize_t len = read(fd, text, KEYS_MAX_BYTES);
    if (len < 0)
        return files_error("read", path, error);
    text[len] = '\0';
    bool good = parse(path, text, ret, error);
    gnutls_memset(text, 0, sizeof text);
    return good;
}

bool keys_read(const char *path, struct keys *ret, GError **error)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT) {
        fettle_set_error(
            error, UNKNOWN_ENTITY,
            "%s: there are no keys for tokens; run `fettle api init`, or copy the file "
            "from another front end",
            path);
        return false;
    }
    if (fd < 0)
        return files_error("open", path, error);
    bool good = read_open(path, fd, ret, error);
    close(fd);
    return good;
}

bool keys_changed(const char *path, const struct keys *keys)
{
    struct stat now;
    return stat(path, &now) < 0 || now.st_ino != keys->stat.st_ino ||
           now.st_mtim.tv_sec != keys->stat.st_mtim.tv_sec ||
           now.st_mtim.tv_nsec != keys->stat.st_mtim.tv_nsec;
}

/* --- written --- */

static void append_key(GString *text, const guchar *key)
{
    for (guint i = 0; i < API_KEY_BYTES; i++)
        g_string_append_printf(text, "%02x", key[i]);
    g_string_append_c(text, '\n');
}

static void fresh_key(guchar *ret)
{
    g_assert(gnutls_rnd(GNUTLS_RND_KEY, ret, API_KEY_BYTES) == 0);
}

static bool write_keys(const char *path, const struct keys *keys, GError **error)
{
    g_autoptr(GString) text = g_string_new(KEYS_TITLE "\n");
    for (guint i = 0; i < API_KEYS; i++)
        append_key(text, keys->bytes[i]);
    bool written = keys->stat.st_uid != geteuid()
                       ? files_give_path(path, text->str, text->len, keys->stat.st_uid, error)
                       : files_write_synced(path, text->str, text->len, KEYS_MODE, error);
    gnutls_memset(text->str, 0, text->len);
    return written;
}

bool crypto_keys_make(const char *path, GError **error)
{
    if (g_file_test(path, G_FILE_TEST_EXISTS)) {
        fettle_set_error(error, ALREADY_EXISTS, "%s: there are keys already", path);
        return false;
    }
    struct keys keys = {.stat = {.st_uid = geteuid()}};
    for (guint i = 0; i < API_KEYS; i++)
        fresh_key(keys.bytes[i]);
    return write_keys(path, &keys, error);
}

bool crypto_keys_rotate(const char *path, GError **error)
{
    struct keys keys;
    if (!keys_read(path, &keys, error))
        return false;
    memcpy(keys.bytes[1], keys.bytes[0], API_KEY_BYTES);
    fresh_key(keys.bytes[0]);
    return write_keys(path, &keys, error);
}
