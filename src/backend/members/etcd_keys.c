/*
 * Keys and certificates of a member, made with the openssl command in a child process; see
 * etcd_private.h. Keys never leave the node.
 */
#include "backend/members/etcd_private.h"
#include "backend/tool.h"
#include "base/limits.h"
#include "io/engine_file.h"
#include "io/files.h"

#include <errno.h>
#include <gio/gio.h>
#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

static const char *const owners[] = {ENGINE_FILE_MEMBER, ENGINE_FILE_CLIENT};

/* --- openssl --- */

/* Its output, if it succeeds. */
static char *openssl(const char *const *argv, const char *input, GError **error)
{
    g_autofree char *output = NULL;
    int code = tool_run(argv, input, ETCD_KEYS_MS, &output, error);
    if (code == 0)
        return g_steal_pointer(&output);
    if (code > 0) {
        g_autofree char *words = tool_last_words(output);
        fettle_set_error(error, ENVIRONMENT, "openssl %s failed: %s", argv[1], words);
    }
    return NULL;
}

/* The part of an output that is PEM; NULL with an error. */
static char *pem_of(char *output, GError **error)
{
    g_autofree char *text = output;
    const char *begin = text != NULL ? strstr(text, "-----BEGIN ") : NULL;
    if (begin != NULL)
        return g_strdup(begin);
    if (text != NULL)
        fettle_set_error(error, ENVIRONMENT, "openssl answered something that is not PEM");
    return NULL;
}

/* --- keys and requests --- */

/* The member's key is read by the user etcd, once, when it starts. */
static bool give_away(const char *path, GError **error)
{
    uid_t uid = 0;
    gid_t gid = 0;
    if (!etcd_user(&uid, &gid, error))
        return false;
    if (uid == 0 || lchown(path, uid, gid) == 0)
        return true;
    fettle_set_error(error, STORAGE, "cannot change the owner of %s: %s", path, g_strerror(errno));
    return false;
}

static bool make_folder(const struct etcd_host *host, GError **error)
{
    g_autofree char *folder = g_build_filename(host->paths->etc, "etcd", NULL);
    return files_make_folder(folder, 0711, error);
}

static bool make_key(const char *path, GError **error)
{
    const char *const argv[] = {
        "openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", NULL};
    if (g_file_test(path, G_FILE_TEST_EXISTS))
        return true;
    g_autofree char *key = pem_of(openssl(argv, NULL, error), error);
    return key != NULL && files_write_path(path, key, strlen(key), 0600, true, error);
}

static char *make_request(const struct etcd_host *host, const char *whose, GError **error)
{
    g_autofree char *key = engine_file_key(host->paths, whose);
    const char *const argv[] = {"openssl", "req", "-new", "-key", key, "-subj", "/CN=etcd", NULL};
    if (!make_key(key, error) || (strcmp(whose, ENGINE_FILE_MEMBER) == 0 && !give_away(key, error)))
        return NULL;
    return pem_of(openssl(argv, NULL, error), error);
}

bool etcd_prepare(struct members *members, char **ret_member, char **ret_client, GError **error)
{
    const struct etcd_host *host = (const struct etcd_host *)members;
    if (!make_folder(host, error))
        return false;
    g_autofree char *member = make_request(host, ENGINE_FILE_MEMBER, error);
    g_autofree char *client = member != NULL ? make_request(host, ENGINE_FILE_CLIENT, error) : NULL;
    if (client == NULL)
        return false;
    *ret_member = g_steal_pointer(&member);
    *ret_client = g_steal_pointer(&client);
    return true;
}

/* --- certificates --- */

/* What stands behind the certificate itself; NULL if there is nothing. */
static const char *issuer_of(const char *certificate)
{
    static const char head[] = "-----BEGIN CERTIFICATE-----";
    const char *first = strstr(certificate, head);
    return first != NULL ? strstr(first + 1, head) : NULL;
}

static char *public_key(const char *certificate, GError **error)
{
    const char *const argv[] = {"openssl", "x509", "-in", TOOL_INPUT, "-noout", "-pubkey", NULL};
    return pem_of(openssl(argv, certificate, error), error);
}

/* The issuer that came along: the cluster's authority under its other name. */
static bool is_issuer(const struct etcd_host *host, const char *whose, const char *issuer,
                      GError **error)
{
    g_autofree char *path = g_build_filename(host->paths->etc, "ca.crt", NULL);
    g_autofree char *authority = files_read_path(path, LIMIT_PEM_CHARS, NULL, error);
    if (authority == NULL)
        return false;
    g_autofree char *one = issuer != NULL ? public_key(issuer, NULL) : NULL;
    g_autofree char *other = public_key(authority, error);
    if (other == NULL)
        return false;
    if (g_strcmp0(one, other) == 0)
        return true;
    fettle_set_error(error, WRONG_INPUT,
                     "%s: is no certificate of this cluster's authority (%s), with its issuer "
                     "behind it",
                     whose, path);
    return false;
}

static bool is_signed(const char *whose, const char *certificate, GError **error)
{
    g_autoptr(GTlsCertificate) authority =
        g_tls_certificate_new_from_pem(issuer_of(certificate), -1, error);
    if (authority == NULL)
        return false;
    g_autoptr(GTlsCertificate) own = g_tls_certificate_new_from_pem(certificate, -1, NULL);
    const GTlsCertificateFlags dates = G_TLS_CERTIFICATE_EXPIRED | G_TLS_CERTIFICATE_NOT_ACTIVATED;
    GTlsCertificateFlags wrong = own != NULL ? g_tls_certificate_verify(own, NULL, authority)
                                             : G_TLS_CERTIFICATE_BAD_IDENTITY;
    if (wrong == 0)
        return true;
    if ((wrong & ~dates) == 0)
        fettle_set_error(error, WRONG_INPUT,
                         "%s: the certificate is not valid at the time of this node; set its clock",
                         whose);
    else
        fettle_set_error(error, WRONG_INPUT,
                         "%s: the certificate is not signed by the issuer that stands behind it",
                         whose);
    return false;
}

static bool fits_key(const char *whose, const char *key, const char *certificate, GError **error)
{
    const char *const of_key[] = {"openssl", "pkey", "-in", key, "-pubout", NULL};
    g_autofree char *one = public_key(certificate, error);
    g_autofree char *other = one != NULL ? pem_of(openssl(of_key, NULL, error), error) : NULL;
    if (other == NULL)
        return false;
    if (strcmp(one, other) == 0)
        return true;
    fettle_set_error(error, WRONG_INPUT, "%s: the certificate is not for the key of this node",
                     whose);
    return false;
}

static bool check(const struct etcd_host *host, const char *whose, const char *certificate,
                  GError **error)
{
    g_autofree char *key = engine_file_key(host->paths, whose);
    if (!g_file_test(key, G_FILE_TEST_EXISTS)) {
        fettle_set_error(error, WRONG_STATE, "there is no %s; the member is to be prepared first",
                         key);
        return false;
    }
    return is_issuer(host, whose, issuer_of(certificate), error) &&
           is_signed(whose, certificate, error) && fits_key(whose, key, certificate, error);
}

bool etcd_certify(struct members *members, const char *member, const char *client, GError **error)
{
    const struct etcd_host *host = (const struct etcd_host *)members;
    const char *const certificates[] = {member, client};
    for (guint i = 0; i < G_N_ELEMENTS(owners); i++)
        if (!check(host, owners[i], certificates[i], error))
            return false;
    const char *issuer = issuer_of(member);
    g_autofree char *authority = engine_file_authority(host->paths);
    if (!files_write_path(authority, issuer, strlen(issuer), 0644, true, error))
        return false;
    for (guint i = 0; i < G_N_ELEMENTS(owners); i++) {
        g_autofree char *path = engine_file_certificate(host->paths, owners[i]);
        if (!files_write_path(path, certificates[i], strlen(certificates[i]), 0644, true, error))
            return false;
    }
    return true;
}

bool etcd_has_keys(const struct etcd_host *host, GError **error)
{
    for (guint i = 0; i < G_N_ELEMENTS(owners); i++) {
        g_autofree char *path = engine_file_certificate(host->paths, owners[i]);
        g_autofree char *key = engine_file_key(host->paths, owners[i]);
        bool there = g_file_test(path, G_FILE_TEST_EXISTS);
        if (there && g_file_test(key, G_FILE_TEST_EXISTS))
            continue;
        fettle_set_error(error, WRONG_STATE,
                         "there is no %s; the member is to be prepared and certified first",
                         there ? key : path);
        return false;
    }
    return true;
}

bool etcd_forget(struct members *members, GError **error)
{
    const struct etcd_host *host = (const struct etcd_host *)members;
    if (!etcd_is_down(host, "its keys cannot be removed", error))
        return false;
    for (guint i = 0; i < G_N_ELEMENTS(owners); i++) {
        g_autofree char *path = engine_file_certificate(host->paths, owners[i]);
        g_autofree char *key = engine_file_key(host->paths, owners[i]);
        if ((unlink(path) != 0 && errno != ENOENT) || (unlink(key) != 0 && errno != ENOENT)) {
            fettle_set_error(error, STORAGE, "cannot remove %s or %s: %s", path, key,
                             g_strerror(errno));
            return false;
        }
    }
    g_autofree char *authority = engine_file_authority(host->paths);
    unlink(authority);
    g_autofree char *folder = g_build_filename(host->paths->etc, "etcd", NULL);
    rmdir(folder);
    return true;
}
