/*
 * See authority.h. openssl works on files, in a folder of run/ (tmpfs), which only root may enter:
 * what a host asks for, what it gets, a key that came. All of them are removed again.
 */
#include "io/net/authority.h"
#include "io/engine_file.h"
#include "io/files.h"
#include "io/net/authority_private.h"
#include "io/net/certs.h"
#include "io/process.h"

#include <errno.h>
#include <glib/gstdio.h>
#include <string.h>

/* --- files --- */

static bool make_folder(const struct real_authority *self, GError **error)
{
    if (g_mkdir_with_parents(self->folder, 0700) == 0)
        return true;
    int code = errno;
    fettle_set_error(error, STORAGE, "cannot make the folder %s: %s", self->folder,
                     g_strerror(code));
    return false;
}

static void empty_folder(const struct real_authority *self)
{
    g_autoptr(GDir) dir = g_dir_open(self->folder, 0, NULL);
    const char *name;

    while (dir != NULL && (name = g_dir_read_name(dir)) != NULL) {
        g_autofree char *path = g_build_filename(self->folder, name, NULL);
        g_unlink(path);
    }
}

static struct desk *desk_new(struct real_authority *self)
{
    struct desk *desk = g_new0(struct desk, 1);
    guint number = ++self->count;

    desk->request = g_strdup_printf("%s/%u.request", self->folder, number);
    desk->extensions = g_strdup_printf("%s/%u.extensions", self->folder, number);
    desk->issuer = g_strdup_printf("%s/%u.issuer", self->folder, number);
    desk->product = g_strdup_printf("%s/%u.product", self->folder, number);
    desk->complaint = g_strdup_printf("%s/%u.complaint", self->folder, number);
    return desk;
}

static void clear_file(char *path)
{
    g_unlink(path);
    g_free(path);
}

void authority_desk_free(struct desk *desk)
{
    clear_file(desk->request);
    clear_file(desk->extensions);
    clear_file(desk->issuer);
    clear_file(desk->product);
    clear_file(desk->complaint);
    g_free(desk);
}

/* --- openssl --- */

static void complain(const struct desk *desk, const char *command, GError **error)
{
    g_autofree char *text = files_read_path(desk->complaint, LIMIT_COMPLAINT_BYTES, NULL, NULL);

    fettle_set_error(error, ENVIRONMENT, "openssl %s failed: %s", command,
                     text != NULL ? g_strstrip(text) : "it said nothing");
}

char *authority_run(const struct desk *desk, const char *const *argv, GError **error)
{
    const struct process_options options = {.argv = argv, .errors_path = desk->complaint};
    struct process *process = process_spawn(&options, error);
    char *product = NULL;

    if (process == NULL)
        return NULL;
    if (!process_wait(process, JOIN_SIGN_MS)) {
        process_kill(process, NULL);
        fettle_set_error(error, TEMPORARY, "openssl %s does not come to an end; try again",
                         argv[1]);
    } else if (process_exit_code(process) != 0) {
        complain(desk, argv[1], error);
    } else {
        product = files_read_path(desk->product, LIMIT_PEM_CHARS, NULL, error);
    }
    process_free(process);
    return product;
}

struct desk *authority_desk(struct real_authority *self, const char *request,
                            const char *extensions, GError **error)
{
    g_autoptr(desk_t) desk = desk_new(self);

    if (!make_folder(self, error) ||
        !files_write_path(desk->request, request, strlen(request), 0600, false, error) ||
        !files_write_path(desk->extensions, extensions, strlen(extensions), 0600, false, error))
        return NULL;
    return g_steal_pointer(&desk);
}

/* --- what wconfd asks --- */

static bool real_read_request(struct authority *authority, const char *request, char **ret_key_hash,
                              GError **error)
{
    g_autoptr(desk_t) desk =
        authority_desk(authority_real(authority), request, certs_extensions, error);
    g_autoptr(GError) failure = NULL;

    if (desk == NULL)
        return false;
    const char *const argv[] = {"openssl", "req",     "-in",  desk->request, "-verify",
                                "-noout",  "-pubkey", "-out", desk->product, NULL};
    g_autofree char *key = authority_run(desk, argv, &failure);
    if (key == NULL && fettle_error_is(failure, ENVIRONMENT)) {
        fettle_set_error(error, WRONG_INPUT, "request: is no certificate request");
        return false;
    }
    if (key == NULL) {
        g_propagate_error(error, g_steal_pointer(&failure));
        return false;
    }
    *ret_key_hash = g_compute_checksum_for_string(G_CHECKSUM_SHA256, key, -1);
    return true;
}

/* The file; NULL with an error if there is none. */
static char *find_key(struct real_authority *self, GError **error)
{
    g_autofree char *key = g_build_filename(self->paths->etc, "ca.key", NULL);

    if (!authority_settle(self, error))
        return NULL;
    if (g_file_test(key, G_FILE_TEST_EXISTS))
        return g_steal_pointer(&key);
    fettle_set_error(error, STORAGE,
                     "the key of the cluster's authority is not here: there is no %s; put it back",
                     key);
    return NULL;
}

/* By the cluster's authority itself. */
static bool sign_as(struct authority *authority, const char *request, const char *extensions,
                    const char *cluster_uuid, const char *name, char **ret_certificate,
                    GError **error)
{
    struct real_authority *self = authority_real(authority);
    g_autoptr(desk_t) desk = authority_desk(self, request, extensions, error);
    g_autofree char *certificate = g_build_filename(self->paths->etc, "ca.crt", NULL);
    g_autofree char *key = desk != NULL ? find_key(self, error) : NULL;

    if (key == NULL)
        return false;
    g_auto(GStrv) argv = certs_sign_command(certificate, key, desk->request, desk->extensions,
                                            cluster_uuid, name, desk->product);
    *ret_certificate = authority_run(desk, (const char *const *)argv, error);
    return *ret_certificate != NULL;
}

static bool real_sign(struct authority *authority, const char *request, const char *cluster_uuid,
                      const char *node_uuid, char **ret_certificate, GError **error)
{
    return sign_as(authority, request, certs_extensions, cluster_uuid, node_uuid, ret_certificate,
                   error);
}

static bool real_sign_api(struct authority *authority, const char *request,
                          const char *cluster_uuid, const char *const *names,
                          char **ret_certificate, GError **error)
{
    g_autofree char *extensions = certs_api_extensions(names);
    return sign_as(authority, request, extensions, cluster_uuid, CERTS_API, ret_certificate, error);
}

char *authority_issuer(const struct desk *desk, const char *key, const char *cluster_uuid,
                       GError **error)
{
    g_auto(GStrv) argv = certs_etcd_authority_command(key, cluster_uuid, desk->product);
    g_autofree char *issuer = authority_run(desk, (const char *const *)argv, error);

    if (issuer == NULL ||
        !files_write_path(desk->issuer, issuer, strlen(issuer), 0600, false, error))
        return NULL;
    return g_steal_pointer(&issuer);
}

static bool real_sign_etcd(struct authority *authority, const char *request,
                           const char *cluster_uuid, const char *address, char **ret_certificate,
                           GError **error)
{
    struct real_authority *self = authority_real(authority);
    g_autofree char *extensions = certs_etcd_extensions(address);
    const char *name = address != NULL ? CERTS_ETCD_MEMBER : CERTS_ETCD_CLIENT;
    g_autoptr(desk_t) desk = authority_desk(self, request, extensions, error);
    g_autofree char *key = desk != NULL ? find_key(self, error) : NULL;
    g_autofree char *issuer = key != NULL ? authority_issuer(desk, key, cluster_uuid, error) : NULL;

    if (issuer == NULL)
        return false;
    g_auto(GStrv) argv = certs_sign_command(desk->issuer, key, desk->request, desk->extensions,
                                            cluster_uuid, name, desk->product);
    g_autofree char *certificate = authority_run(desk, (const char *const *)argv, error);
    if (certificate == NULL)
        return false;
    *ret_certificate = g_strconcat(certificate, issuer, NULL);
    return true;
}

static bool real_show(struct authority *authority, char **ret_certificate, char **ret_fingerprint,
                      GError **error)
{
    g_autofree char *path = g_build_filename(authority_real(authority)->paths->etc, "ca.crt", NULL);
    g_autofree char *text = files_read_path(path, LIMIT_TRUST_CHARS, NULL, error);
    g_autofree char *fingerprint = text != NULL ? certs_fingerprint(text, error) : NULL;

    if (fingerprint == NULL) {
        g_prefix_error(error, "%s: ", path);
        return false;
    }
    *ret_certificate = g_steal_pointer(&text);
    *ret_fingerprint = g_steal_pointer(&fingerprint);
    return true;
}

/* --- its key --- */

static char *key_path(const struct real_authority *self)
{
    return g_build_filename(self->paths->etc, "ca.key", NULL);
}

static bool real_has_key(struct authority *authority)
{
    g_autofree char *path = key_path(authority_real(authority));

    return g_file_test(path, G_FILE_TEST_IS_REGULAR);
}

char *authority_public_part(const struct desk *desk, const char *path, bool of_key, GError **error)
{
    const char *const key_argv[] = {"openssl", "pkey", "-in",         path,
                                    "-pubout", "-out", desk->product, NULL};
    const char *const crt_argv[] = {"openssl", "x509", "-in",         path, "-noout",
                                    "-pubkey", "-out", desk->product, NULL};

    g_unlink(desk->product);
    return authority_run(desk, of_key ? key_argv : crt_argv, error);
}

static char *key_of(const struct desk *desk, const char *certificate, GError **error)
{
    return files_write_path(desk->extensions, certificate, strlen(certificate), 0600, false, error)
               ? authority_public_part(desk, desk->extensions, false, error)
               : NULL;
}

static bool is_key_of_one(const struct desk *desk, const char *key, const GPtrArray *certificates,
                          GError **error)
{
    for (guint i = 0; i < certificates->len; i++) {
        g_autofree char *other = key_of(desk, certificates->pdata[i], error);
        if (other == NULL)
            return false;
        if (strcmp(key, other) == 0)
            return true;
    }
    fettle_set_error(error, WRONG_STATE,
                     "members of etcd trust an issuer under a key that is none of the cluster's "
                     "authority (etc/etcd/authority.crt): they have missed a renewal of the keys; "
                     "make theirs anew first: fettle cluster engine sqlite, then etcd");
    return false;
}

/* Nodes would refuse a list with one that is under no authority of theirs, for ever. */
static bool are_ours(struct real_authority *self, const GPtrArray *issuers, GError **error)
{
    g_autofree char *path = g_build_filename(self->paths->etc, "ca.crt", NULL);
    g_autofree char *text = files_read_path(path, LIMIT_TRUST_CHARS, NULL, error);
    g_autoptr(GPtrArray) authorities = text != NULL ? certs_split(text, error) : NULL;
    g_autoptr(desk_t) desk = authorities != NULL ? authority_desk(self, "", "", error) : NULL;

    for (guint i = 0; desk != NULL && i < issuers->len; i++) {
        g_autofree char *key = key_of(desk, issuers->pdata[i], error);
        if (key == NULL || !is_key_of_one(desk, key, authorities, error))
            return false;
    }
    return desk != NULL;
}

static bool real_etcd_issuers(struct authority *authority, char **ret_issuers, GError **error)
{
    struct real_authority *self = authority_real(authority);
    g_autofree char *path = engine_file_authority(self->paths);
    g_autofree char *text = files_read_path(path, LIMIT_TRUST_CHARS, NULL, error);
    g_autoptr(GPtrArray) found = text != NULL ? certs_split(text, error) : NULL;

    if (found == NULL)
        g_prefix_error(error, "%s: ", path);
    if (found == NULL || !are_ours(self, found, error))
        return false;
    *ret_issuers = g_steal_pointer(&text);
    return true;
}

bool authority_fits(struct real_authority *self, const char *key, const char *certificate,
                    GError **error)
{
    g_autoptr(desk_t) desk = authority_desk(self, key, certificate, error);
    g_autoptr(GError) failure = NULL;
    g_autofree char *wanted =
        desk != NULL ? authority_public_part(desk, desk->extensions, false, error) : NULL;

    if (wanted == NULL)
        return false;
    g_autofree char *given = authority_public_part(desk, desk->request, true, &failure);
    if (given != NULL && strcmp(given, wanted) == 0)
        return true;
    if (given == NULL && !fettle_error_is(failure, ENVIRONMENT)) {
        g_propagate_error(error, g_steal_pointer(&failure));
        return false;
    }
    fettle_set_error(error, WRONG_INPUT, "the key %s",
                     given != NULL ? "does not fit" : "cannot be read, and so does not fit");
    return false;
}

/* Whether it is that of the authority which signs. */
static bool fits(struct real_authority *self, const char *key, GError **error)
{
    g_autofree char *path = g_build_filename(self->paths->etc, "ca.crt", NULL);
    g_autofree char *text = files_read_path(path, LIMIT_TRUST_CHARS, NULL, error);
    g_autoptr(GError) failure = NULL;

    if (text == NULL || authority_fits(self, key, text, &failure))
        return text != NULL;
    if (fettle_error_is(failure, WRONG_INPUT))
        fettle_set_error(error, WRONG_INPUT, "%s the authority's certificate %s", failure->message,
                         path);
    else
        g_propagate_error(error, g_steal_pointer(&failure));
    return false;
}

static bool real_read_key(struct authority *authority, char **ret_key, GError **error)
{
    struct real_authority *self = authority_real(authority);
    g_autofree char *path = find_key(self, error);
    g_autofree char *key =
        path != NULL ? files_read_path(path, LIMIT_PEM_CHARS, NULL, error) : NULL;
    g_autoptr(GError) failure = NULL;

    if (key == NULL)
        return false;
    if (fits(self, key, &failure)) {
        *ret_key = g_steal_pointer(&key);
        return true;
    }
    if (fettle_error_is(failure, WRONG_INPUT))
        fettle_set_error(error, CORRUPT, "%s: %s", path, failure->message);
    else
        g_propagate_error(error, g_steal_pointer(&failure));
    return false;
}

static bool real_take_key(struct authority *authority, const char *key, GError **error)
{
    struct real_authority *self = authority_real(authority);
    g_autofree char *path = key_path(self);
    g_autofree char *next = g_build_filename(self->paths->etc, "ca-next.key", NULL);

    /* Of a renewal that this node began as the master, and that another one has finished. */
    return fits(self, key, error) && files_write_path(path, key, strlen(key), 0600, true, error) &&
           files_remove_path(next, true, error);
}

static bool real_drop_key(struct authority *authority, GError **error)
{
    struct real_authority *self = authority_real(authority);
    g_autofree char *path = key_path(self);
    g_autofree char *next = g_build_filename(self->paths->etc, "ca-next.key", NULL);

    return files_remove_path(path, true, error) && files_remove_path(next, true, error);
}

/* --- signatures --- */

char *authority_signature(const struct desk *desk, const char *key, GError **error)
{
    size_t len = 0;
    const char *const argv[] = {"openssl", "dgst",        "-sha256",     "-sign", key,
                                "-out",    desk->product, desk->request, NULL};
    g_autofree char *whole = authority_run(desk, argv, error);
    g_autofree char *product =
        whole != NULL ? files_read_path(desk->product, LIMIT_PEM_CHARS, &len, error) : NULL;

    return product != NULL ? g_base64_encode((const guchar *)product, len) : NULL;
}

bool authority_verify(const struct desk *desk, const char *key, const char *signature,
                      const char *what, GError **error)
{
    g_autoptr(GError) failure = NULL;
    size_t len = 0;
    g_autofree guchar *bytes = g_base64_decode(signature, &len);
    const char *const argv[] = {"openssl",        "dgst",        "-sha256",    "-verify",
                                desk->extensions, "-signature",  desk->issuer, "-out",
                                desk->product,    desk->request, NULL};

    if (!files_write_path(desk->issuer, (const char *)bytes, len, 0600, false, error) ||
        !files_write_path(desk->extensions, key, strlen(key), 0600, false, error))
        return false;
    g_autofree char *said = authority_run(desk, argv, &failure);
    if (said != NULL)
        return true;
    if (fettle_error_is(failure, ENVIRONMENT))
        fettle_set_error(error, PERMISSION, "%s", what);
    else
        g_propagate_error(error, g_steal_pointer(&failure));
    return false;
}

static bool real_sign_text(struct authority *authority, const char *text, char **ret_signature,
                           GError **error)
{
    struct real_authority *self = authority_real(authority);
    g_autoptr(desk_t) desk = authority_desk(self, text, "", error);
    g_autofree char *key = desk != NULL ? find_key(self, error) : NULL;

    *ret_signature = key != NULL ? authority_signature(desk, key, error) : NULL;
    return *ret_signature != NULL;
}

static bool check_with(const struct desk *desk, const char *certificate, const char *signature,
                       GError **error)
{
    g_autofree char *key = key_of(desk, certificate, error);
    return key != NULL &&
           authority_verify(desk, key, signature, "the signature is not the authority's", error);
}

/* By any that is trusted: a mastership may be signed by the authority before. */
static bool check_with_all(const struct desk *desk, const GPtrArray *authorities,
                           const char *signature, GError **error)
{
    for (guint i = 0; i < authorities->len; i++) {
        g_autoptr(GError) failure = NULL;
        if (check_with(desk, authorities->pdata[i], signature, &failure))
            return true;
        if (i + 1 < authorities->len && fettle_error_is(failure, PERMISSION))
            continue;
        g_propagate_error(error, g_steal_pointer(&failure));
        break;
    }
    return false;
}

static bool real_check_text(struct authority *authority, const char *text, const char *signature,
                            GError **error)
{
    struct real_authority *self = authority_real(authority);
    g_autofree char *path = g_build_filename(self->paths->etc, "ca.crt", NULL);
    g_autofree char *trusted = files_read_path(path, LIMIT_TRUST_CHARS, NULL, error);
    g_autoptr(GPtrArray) authorities = trusted != NULL ? certs_split(trusted, error) : NULL;
    g_autoptr(desk_t) desk = authorities != NULL ? authority_desk(self, text, "", error) : NULL;

    return desk != NULL && check_with_all(desk, authorities, signature, error);
}

static const struct authority_ops ops = {
    .read_request = real_read_request,
    .sign = real_sign,
    .sign_etcd = real_sign_etcd,
    .sign_api = real_sign_api,
    .show = real_show,
    .has_key = real_has_key,
    .read_key = real_read_key,
    .take_key = real_take_key,
    .drop_key = real_drop_key,
    .sign_text = real_sign_text,
    .check_text = real_check_text,
    .make_next = authority_make_next,
    .etcd_issuers = real_etcd_issuers,
    .has_key_of = authority_has_key_of,
    .check_proof = authority_check_proof,
    .status = authority_status,
    .is_stale = authority_is_stale,
    .trust = authority_trust,
    .request = authority_request,
    .certify = authority_certify,
};

struct authority *authority_new(const struct node_paths *paths, const char *folder)
{
    struct real_authority *self = g_new0(struct real_authority, 1);

    self->base.ops = &ops;
    self->paths = paths;
    self->folder = g_build_filename(paths->run, folder, NULL);
    empty_folder(self);
    return &self->base;
}

void authority_on_renewed(struct authority *authority, bool (*fn)(GError **error, void *data),
                          void *data)
{
    authority_real(authority)->renewed = fn;
    authority_real(authority)->data = data;
}

void authority_free(struct authority *authority)
{
    if (authority == NULL)
        return;
    g_free(authority_real(authority)->folder);
    g_free(authority);
}
