/* See tls_files.h. */
#include "io/http/tls_files.h"

#include <errno.h>
#include <gnutls/gnutls.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/text.h"

struct tls_files {
    char **certificates, *key;
    char *stamp; /* of what was read last, be it good or not */
    GTlsCertificate *read;
    char *shown; /* file that it was read from */
};

/* One that cannot be reached is there. */
static bool is_there(const char *path)
{
    struct stat about;
    return lstat(path, &about) == 0 || errno != ENOENT;
}

bool tls_files_are_there(const char *const *certificates)
{
    bool any = false;
    for (guint i = 0; certificates[i]; i++)
        any = any || is_there(certificates[i]);
    return any;
}

/* The first that is there; if none is, the last is missed. */
static const char *certificate_of(const struct tls_files *files)
{
    char **path = files->certificates;
    while (path[1] && !is_there(*path))
        path++;
    return *path;
}

static const char *key_of(const struct tls_files *files, const char *certificate)
{
    return *files->key ? files->key : certificate;
}

static void add_stamp(GString *stamp, const char *path)
{
    struct stat about = {0};
    stat(path, &about); /* what is not there has a stamp, too */
    g_string_append_printf(
        stamp, "%s %ju %ju %jd %jd.%09ld %jd.%09ld\n", path, (uintmax_t)about.st_dev,
        (uintmax_t)about.st_ino, (intmax_t)about.st_size, (intmax_t)about.st_mtim.tv_sec,
        about.st_mtim.tv_nsec, (intmax_t)about.st_ctim.tv_sec, about.st_ctim.tv_nsec);
}

static char *stamp_of(const struct tls_files *files, const char *certificate)
{
    GString *stamp = g_string_new(NULL);
    add_stamp(stamp, certificate);
    add_stamp(stamp, key_of(files, certificate));
    return g_string_free(stamp, FALSE);
}

/* GIO takes a key that is another certificate's, and each handshake fails then. */
static bool belong_together(const char *certificate, const char *key, GError **error)
{
    gnutls_certificate_credentials_t pair = NULL;
    int code = gnutls_certificate_allocate_credentials(&pair);
    if (code >= 0)
        code = gnutls_certificate_set_x509_key_file(pair, certificate, key, GNUTLS_X509_FMT_PEM);
    if (pair)
        gnutls_certificate_free_credentials(pair);
    if (code < 0)
        fettle_set_error(error, ENVIRONMENT, "certificate: %s, key: %s: %s", certificate, key,
                         gnutls_strerror(code));
    return code >= 0;
}

static bool read_files(struct tls_files *files, const char *certificate, GError **error)
{
    g_autoptr(GError) local = NULL;
    const char *key = key_of(files, certificate);
    g_autoptr(GTlsCertificate) read = g_tls_certificate_new_from_files(certificate, key, &local);
    if (!read) {
        fettle_set_error(error, ENVIRONMENT, "certificate: %s: %s", certificate, local->message);
        return false;
    }
    if (!belong_together(certificate, key, error))
        return false;
    g_set_object(&files->read, read);
    text_set(&files->shown, certificate);
    return true;
}

struct tls_files *tls_files_open(const char *const *certificates, const char *key, GError **error)
{
    struct tls_files *files = g_new0(struct tls_files, 1);
    files->certificates = g_strdupv((char **)certificates);
    files->key = g_strdup(key);
    const char *certificate = certificate_of(files);
    /* before they are read: what changes meanwhile shows */
    files->stamp = stamp_of(files, certificate);
    if (!read_files(files, certificate, error))
        g_clear_pointer(&files, tls_files_free);
    return files;
}

void tls_files_free(struct tls_files *files)
{
    if (!files)
        return;
    g_strfreev(files->certificates);
    g_free(files->key);
    g_free(files->stamp);
    g_free(files->shown);
    g_clear_object(&files->read);
    g_free(files);
}

bool tls_files_look(struct tls_files *files, GError **error)
{
    const char *certificate = certificate_of(files);
    g_autofree char *stamp = stamp_of(files, certificate);
    if (!strcmp(stamp, files->stamp))
        return false;
    text_set(&files->stamp, stamp);
    return read_files(files, certificate, error);
}

GTlsCertificate *tls_files_certificate(const struct tls_files *files)
{
    return files->read;
}

const char *tls_files_shown(const struct tls_files *files)
{
    return files->shown;
}
