/* See tls_files.h. */
#include "io/http/tls_files.h"

#include <gnutls/gnutls.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/text.h"

struct tls_files {
    char *certificate, *key;
    char *stamp; /* of what was read last, be it good or not */
    GTlsCertificate *read;
};

static void add_stamp(GString *stamp, const char *path)
{
    struct stat about = {0};
    stat(path, &about); /* what is not there has a stamp, too */
    g_string_append_printf(stamp, "%ju %ju %jd %jd.%09ld %jd.%09ld\n", (uintmax_t)about.st_dev,
                           (uintmax_t)about.st_ino, (intmax_t)about.st_size,
                           (intmax_t)about.st_mtim.tv_sec, about.st_mtim.tv_nsec,
                           (intmax_t)about.st_ctim.tv_sec, about.st_ctim.tv_nsec);
}

static char *stamp_of(const struct tls_files *files)
{
    GString *stamp = g_string_new(NULL);
    add_stamp(stamp, files->certificate);
    add_stamp(stamp, files->key);
    return g_string_free(stamp, FALSE);
}

/* GIO takes a key that is another certificate's, and each handshake fails then. */
static bool belong_together(const struct tls_files *files, GError **error)
{
    gnutls_certificate_credentials_t pair = NULL;
    int code = gnutls_certificate_allocate_credentials(&pair);
    if (code >= 0)
        code = gnutls_certificate_set_x509_key_file(pair, files->certificate, files->key,
                                                    GNUTLS_X509_FMT_PEM);
    if (pair)
        gnutls_certificate_free_credentials(pair);
    if (code < 0)
        fettle_set_error(error, ENVIRONMENT, "certificate: %s, key: %s: %s", files->certificate,
                         files->key, gnutls_strerror(code));
    return code >= 0;
}

static bool read_files(struct tls_files *files, GError **error)
{
    g_autoptr(GError) local = NULL;
    g_autoptr(GTlsCertificate) read =
        g_tls_certificate_new_from_files(files->certificate, files->key, &local);
    if (!read) {
        fettle_set_error(error, ENVIRONMENT, "certificate: %s: %s", files->certificate,
                         local->message);
        return false;
    }
    if (!belong_together(files, error))
        return false;
    g_set_object(&files->read, read);
    return true;
}

struct tls_files *tls_files_open(const char *certificate, const char *key, GError **error)
{
    struct tls_files *files = g_new0(struct tls_files, 1);
    files->certificate = g_strdup(certificate);
    files->key = g_strdup(*key ? key : certificate);
    files->stamp = stamp_of(files); /* before they are read: what changes meanwhile shows */
    if (!read_files(files, error))
        g_clear_pointer(&files, tls_files_free);
    return files;
}

void tls_files_free(struct tls_files *files)
{
    if (!files)
        return;
    g_free(files->certificate);
    g_free(files->key);
    g_free(files->stamp);
    g_clear_object(&files->read);
    g_free(files);
}

bool tls_files_look(struct tls_files *files, GError **error)
{
    g_autofree char *stamp = stamp_of(files);
    if (!strcmp(stamp, files->stamp))
        return false;
    text_set(&files->stamp, stamp);
    return read_files(files, error);
}

GTlsCertificate *tls_files_certificate(const struct tls_files *files)
{
    return files->read;
}
