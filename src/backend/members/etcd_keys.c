/*
 * Keys and certificates of a member, made with the openssl command in a child process; see
 * etcd_private.h. Keys never leave the node.
 */
#include "backend/members/etcd_private.h"
#include "backend/tool.h"
#include "base/limits.h"
#include "io/crash.h"
#include "io/engine_file.h"
#include "io/files.h"
#include "io/net/certs.h"

#include <errno.h>
#include <gio/gio.h>
#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

static const char *const owners[] = {ENGINE_FILE_MEMBER, ENGINE_FILE_CLIENT};
/* Their next ones: the certificate, once it lies there, says that the key counts. */
static const char *const nexts[] = {ENGINE_FILE_MEMBER "-next", ENGINE_FILE_CLIENT "-next"};

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

/* The member's key is read by the user etcd, for each connection. */
static bool give_away(const char *path, GError **error)
{
    uid_t uid = 0;
    gid_t gid = 0;
    if (!etcd_user(&uid, &gid, error))
        return false;
    crash_point("keys: give away");
    if (uid == 0 || lchown(path, uid, gid) == 0)
        return true;
    fettle_set_error(error, STORAGE, "cannot change the owner of %s: %s", path, g_strerror(errno));
    return false;
}

/* It is its reader's before it has its name. What follows, in the same folder, is synced. */
static bool move_key(const char *from, const char *to, bool give, GError **error)
{
    if (!g_file_test(from, G_FILE_TEST_EXISTS))
        return true;
    if (give && !give_away(from, error))
        return false;
    crash_point("keys: rename");
    return rename(from, to) == 0 || files_error("rename into place", to, error);
}

static bool move_certificate(const char *from, const char *to, GError **error)
{
    g_autofree char *text = files_read_path(from, LIMIT_PEM_CHARS, NULL, error);
    return text != NULL && files_write_synced(to, text, strlen(text), 0644, error) &&
           files_remove_synced(from, error);
}

/* The certificate goes last: as long as it lies there, this is to be finished. */
static bool settle(const struct etcd_host *host, guint owner, GError **error)
{
    g_autofree char *next = engine_file_certificate(host->paths, nexts[owner]);
    g_autofree char *next_key = engine_file_key(host->paths, nexts[owner]);
    g_autofree char *certificate = engine_file_certificate(host->paths, owners[owner]);
    g_autofree char *key = engine_file_key(host->paths, owners[owner]);
    if (!g_file_test(next, G_FILE_TEST_EXISTS))
        return true;
    return move_key(next_key, key, strcmp(owners[owner], ENGINE_FILE_MEMBER) == 0, error) &&
           move_certificate(next, certificate, error);
}

bool etcd_settle_keys(const struct etcd_host *host, GError **error)
{
    for (guint i = 0; i < G_N_ELEMENTS(owners); i++)
        if (!settle(host, i, error))
            return false;
    return true;
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
    return key != NULL && files_write_synced(path, key, strlen(key), 0600, error);
}

static char *make_request(const struct etcd_host *host, guint owner, bool anew, GError **error)
{
    const char *whose = anew ? nexts[owner] : owners[owner];
    g_autofree char *key = engine_file_key(host->paths, whose);
    const char *const argv[] = {"openssl", "req", "-new", "-key", key, "-subj", "/CN=etcd", NULL};
    bool give = strcmp(whose, ENGINE_FILE_MEMBER) == 0;
    if (!make_key(key, error) || (give && !give_away(key, error)))
        return NULL;
    return pem_of(openssl(argv, NULL, error), error);
}

bool etcd_prepare(struct members *members, bool anew, char **ret_member, char **ret_client,
                  GError **error)
{
    const struct etcd_host *host = (const struct etcd_host *)members;
    if (!make_folder(host, error) || !etcd_settle_keys(host, error))
        return false;
    g_autofree char *member = make_request(host, 0, anew, error);
    g_autofree char *client = member != NULL ? make_request(host, 1, anew, error) : NULL;
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
    g_autofree char *authority = files_read_path(path, LIMIT_TRUST_CHARS, NULL, error);
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

static bool is_of_key(const char *wanted, const char *key, bool *ret_is, GError **error)
{
    const char *const of_key[] = {"openssl", "pkey", "-in", key, "-pubout", NULL};
    bool there = g_file_test(key, G_FILE_TEST_EXISTS);
    g_autofree char *found = there ? pem_of(openssl(of_key, NULL, error), error) : NULL;
    *ret_is = g_strcmp0(found, wanted) == 0;
    return !there || found != NULL;
}

/* `*ret_name`: by which name of the two its key goes now, and so the certificate is to. */
static bool fits_key(const struct etcd_host *host, guint owner, const char *certificate,
                     const char **ret_name, GError **error)
{
    g_autofree char *key = engine_file_key(host->paths, owners[owner]);
    g_autofree char *next = engine_file_key(host->paths, nexts[owner]);
    g_autofree char *wanted = public_key(certificate, error);
    bool of_key = false, of_next = false;
    if (wanted == NULL || !is_of_key(wanted, next, &of_next, error) ||
        !is_of_key(wanted, key, &of_key, error))
        return false;
    if (!of_key && !of_next)
        fettle_set_error(error, WRONG_INPUT, "%s: the certificate is not for the key of this node",
                         owners[owner]);
    *ret_name = of_next ? nexts[owner] : owners[owner];
    return of_key || of_next;
}

static bool check(const struct etcd_host *host, guint owner, const char *certificate,
                  const char **ret_name, GError **error)
{
    const char *whose = owners[owner];
    g_autofree char *key = engine_file_key(host->paths, whose);
    if (!g_file_test(key, G_FILE_TEST_EXISTS)) {
        fettle_set_error(error, WRONG_STATE, "there is no %s; the member is to be prepared first",
                         key);
        return false;
    }
    return is_issuer(host, whose, issuer_of(certificate), error) &&
           is_signed(whose, certificate, error) &&
           fits_key(host, owner, certificate, ret_name, error);
}

/* --- whom members trust --- */

static bool is_of(const struct etcd_host *host, const GPtrArray *authorities, const char *issuer,
                  guint number, GError **error)
{
    g_autofree char *subject = certs_subject(issuer);
    g_autofree char *key = public_key(issuer, error);
    bool ours = false;
    if (key == NULL)
        return false;
    for (guint i = 0; !ours && i < authorities->len; i++) {
        g_autofree char *other = public_key(authorities->pdata[i], error);
        if (other == NULL)
            return false;
        ours = strcmp(key, other) == 0;
    }
    if (ours && subject != NULL && strstr(subject, "CN=" CERTS_ETCD_AUTHORITY))
        return true;
    fettle_set_error(error, WRONG_INPUT,
                     "authority: certificate %u is no issuer of etcd under the key of an authority "
                     "that this node trusts (%s/ca.crt)",
                     number, host->paths->etc);
    return false;
}

/* What is to be trusted, as a list; NULL with an error. */
static GPtrArray *read_issuers(const struct etcd_host *host, const char *authority, GError **error)
{
    g_autofree char *path = g_build_filename(host->paths->etc, "ca.crt", NULL);
    g_autofree char *text = files_read_path(path, LIMIT_TRUST_CHARS, NULL, error);
    g_autoptr(GPtrArray) authorities = text != NULL ? certs_split(text, error) : NULL;
    g_autoptr(GError) why = NULL;
    if (authorities == NULL)
        return NULL;
    g_autoptr(GPtrArray) issuers = certs_split(authority, &why);
    if (issuers == NULL)
        fettle_set_error(error, WRONG_INPUT, "authority: %s", why->message);
    for (guint i = 0; issuers != NULL && i < issuers->len; i++)
        if (!is_of(host, authorities, issuers->pdata[i], i + 1, error))
            return NULL;
    return g_steal_pointer(&issuers);
}

static char *read_certificate(const struct etcd_host *host, guint owner, GError **error)
{
    g_autofree char *path = engine_file_certificate(host->paths, owners[owner]);
    return files_read_path(path, LIMIT_PEM_CHARS, NULL, error);
}

static bool write_authority(const struct etcd_host *host, const char *authority, GError **error)
{
    g_autofree char *path = engine_file_authority(host->paths);
    g_autofree char *now = files_read_path(path, LIMIT_TRUST_CHARS, NULL, NULL);
    return g_strcmp0(now, authority) == 0 ||
           files_write_synced(path, authority, strlen(authority), 0644, error);
}

bool etcd_trust(struct members *members, const char *authority, GError **error)
{
    const struct etcd_host *host = (const struct etcd_host *)members;
    g_autoptr(GPtrArray) issuers =
        etcd_settle_keys(host, error) ? read_issuers(host, authority, error) : NULL;
    for (guint i = 0; issuers != NULL && i < G_N_ELEMENTS(owners); i++) {
        g_autofree char *own = read_certificate(host, i, error);
        if (own == NULL)
            return false;
        if (certs_issuer(own, issuers) != NULL)
            continue;
        fettle_set_error(error, WRONG_STATE,
                         "authority: none of these has issued the certificate of this node's %s",
                         owners[i]);
        return false;
    }
    return issuers != NULL && write_authority(host, authority, error);
}

static bool take(const struct etcd_host *host, const char *name, const char *certificate,
                 GError **error)
{
    g_autofree char *path = engine_file_certificate(host->paths, name);
    return files_write_synced(path, certificate, strlen(certificate), 0644, error);
}

bool etcd_certify(struct members *members, const char *member, const char *client,
                  const char *authority, GError **error)
{
    const struct etcd_host *host = (const struct etcd_host *)members;
    const char *const certificates[] = {member, client};
    const char *names[G_N_ELEMENTS(owners)];
    if (!etcd_settle_keys(host, error))
        return false;
    for (guint i = 0; i < G_N_ELEMENTS(owners); i++)
        if (!check(host, i, certificates[i], &names[i], error))
            return false;
    g_autoptr(GPtrArray) issuers = *authority != '\0' ? read_issuers(host, authority, error) : NULL;
    for (guint i = 0; issuers != NULL && i < G_N_ELEMENTS(owners); i++) {
        if (certs_issuer(certificates[i], issuers) != NULL)
            continue;
        fettle_set_error(error, WRONG_INPUT, "%s: is issued by none that members are to trust",
                         owners[i]);
        return false;
    }
    if ((*authority != '\0' && issuers == NULL) ||
        !write_authority(host, issuers != NULL ? authority : issuer_of(member), error))
        return false;
    for (guint i = 0; i < G_N_ELEMENTS(owners); i++)
        if (!take(host, names[i], certificates[i], error) || !settle(host, i, error))
            return false;
    return true;
}

char *etcd_trust_digest(const struct etcd_host *host)
{
    g_autofree char *path = engine_file_authority(host->paths);
    g_autofree char *text = files_read_path(path, LIMIT_TRUST_CHARS, NULL, NULL);
    return text != NULL ? g_compute_checksum_for_string(G_CHECKSUM_SHA256, text, -1) : g_strdup("");
}

bool etcd_is_by_first(const struct etcd_host *host)
{
    g_autofree char *path = engine_file_authority(host->paths);
    g_autofree char *text = files_read_path(path, LIMIT_TRUST_CHARS, NULL, NULL);
    g_autoptr(GPtrArray) issuers = text != NULL ? certs_split(text, NULL) : NULL;
    bool is = issuers != NULL;
    for (guint i = 0; is && i < G_N_ELEMENTS(owners); i++) {
        g_autofree char *own = read_certificate(host, i, NULL);
        is = own != NULL && certs_issuer(own, issuers) == issuers->pdata[0];
    }
    return is;
}

bool etcd_has_keys(const struct etcd_host *host, GError **error)
{
    if (!etcd_settle_keys(host, error))
        return false;
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
    const char *const all[] = {nexts[0], nexts[1], owners[0], owners[1]};
    for (guint i = 0; i < G_N_ELEMENTS(all); i++) {
        g_autofree char *path = engine_file_certificate(host->paths, all[i]);
        g_autofree char *key = engine_file_key(host->paths, all[i]);
        crash_point("keys: unlink");
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
