/* The certificates of this node, and whom it trusts. See authority_private.h. */
#include <string.h>

#include "base/limits.h"
#include "io/api_conf.h"
#include "io/api_place.h"
#include "io/files.h"
#include "io/net/authority_private.h"
#include "io/net/certs.h"
#include "io/net/node_keys.h"
#include "proto/records.h"
#include "proto/rpc.h"

/* --- what they are --- */

/* What is not there is all zeros. */
static void look_at_front_end(const struct node_paths *paths, struct stat ret[2])
{
    g_autofree char *conf = api_conf_path(paths), *pem = api_pem_path(paths);
    memset(ret, 0, 2 * sizeof *ret);
    stat(conf, &ret[0]);
    stat(pem, &ret[1]);
}

static bool is_same_file(const struct stat *one, const struct stat *other)
{
    return one->st_ino == other->st_ino && one->st_size == other->st_size &&
           one->st_mtim.tv_sec == other->st_mtim.tv_sec &&
           one->st_mtim.tv_nsec == other->st_mtim.tv_nsec;
}

bool authority_is_stale(struct authority *authority)
{
    const struct real_authority *self = authority_real(authority);
    struct stat now[2];
    look_at_front_end(self->paths, now);
    return !is_same_file(&now[0], &self->front_end[0]) ||
           !is_same_file(&now[1], &self->front_end[1]);
}

/* An operator's own certificate is none of ours. */
static void say_front_end(struct real_authority *self, const GPtrArray *trusted,
                          struct keys_status *status)
{
    g_autofree char *pem = api_pem_path(self->paths);
    look_at_front_end(self->paths, self->front_end); /* before it is read */
    record_autoptr(api_conf) conf = api_conf_read(self->paths, NULL);
    g_autofree char *text = conf && !strcmp(conf->certificate, pem)
                                ? files_read_path(pem, LIMIT_PEM_CHARS, NULL, NULL)
                                : NULL;
    status->front_end_ends = text ? certs_end(text) : 0;
    status->front_end_strange = status->front_end_ends && !certs_issuer(text, trusted);
}

bool authority_status(struct authority *authority, struct keys_status *status, GError **error)
{
    const struct node_paths *paths = authority_real(authority)->paths;
    g_autoptr(GPtrArray) trusted = node_keys_trusted(paths, error);
    g_autofree char *own = trusted != NULL ? node_keys_certificate(paths, error) : NULL;
    if (own == NULL)
        return false;
    const char *issuer = certs_issuer(own, trusted);
    g_autofree char *fingerprint = issuer != NULL ? certs_fingerprint(issuer, NULL) : NULL;
    text_set(&status->issuer, fingerprint != NULL ? fingerprint : "");
    g_ptr_array_set_size(status->trusts, 0);
    for (guint i = 0; i < trusted->len; i++)
        g_ptr_array_add(status->trusts, certs_fingerprint(trusted->pdata[i], NULL));
    status->ends = certs_end(own);
    status->authority_ends = certs_end(trusted->pdata[0]);
    say_front_end(authority_real(authority), trusted, status);
    return true;
}

static bool put_in_use(struct real_authority *self, GError **error)
{
    self->unused = self->renewed != NULL && !self->renewed(error, self->data);
    return !self->unused;
}

/* --- whom it trusts --- */

/* A node that is told so by mistake would be out of the cluster. */
static bool may_trust(const struct real_authority *self, const char *certificates, GError **error)
{
    g_autoptr(GPtrArray) wanted = certs_split(certificates, error);
    if (wanted == NULL) {
        g_prefix_error(error, "authority: ");
        return false;
    }
    g_autofree char *own = node_keys_certificate(self->paths, error);
    if (own == NULL || certs_issuer(own, wanted) != NULL)
        return own != NULL;
    fettle_set_error(error, WRONG_STATE,
                     "authority: none of these has signed the certificate of this node");
    return false;
}

bool authority_trust(struct authority *authority, const char *certificates, GError **error)
{
    struct real_authority *self = authority_real(authority);
    g_autofree char *path = node_keys_path(self->paths, "ca.crt");
    g_autofree char *now = files_read_path(path, LIMIT_TRUST_CHARS, NULL, NULL);
    if (g_strcmp0(now, certificates) == 0)
        return !self->unused || put_in_use(self, error);
    if (!may_trust(self, certificates, error))
        return false;
    self->unused = true;
    return files_write_path(path, certificates, strlen(certificates), 0644, true, error) &&
           put_in_use(self, error);
}

/* --- its own --- */

/* The key's file; made if it is not there. */
static char *next_key(struct real_authority *self, GError **error)
{
    g_autofree char *path = node_keys_path(self->paths, NODE_KEYS_NEXT_KEY);
    g_autoptr(desk_t) desk = authority_desk(self, "", "", error);
    if (desk == NULL || !node_keys_settle(self->paths, error))
        return NULL;
    const char *const argv[] = {"openssl", "genpkey",     "-algorithm",
                                "EC",      "-pkeyopt",    "ec_paramgen_curve:P-256",
                                "-out",    desk->product, NULL};
    if (g_file_test(path, G_FILE_TEST_EXISTS))
        return g_steal_pointer(&path);
    g_autofree char *key = authority_run(desk, argv, error);
    return key != NULL && files_write_path(path, key, strlen(key), 0600, true, error)
               ? g_steal_pointer(&path)
               : NULL;
}

static char *make_request(struct real_authority *self, GError **error)
{
    g_autofree char *key = next_key(self, error);
    g_autoptr(desk_t) desk = key != NULL ? authority_desk(self, "", "", error) : NULL;
    if (desk == NULL)
        return NULL;
    const char *const argv[] = {"openssl", "req",      "-new", "-key",        key,
                                "-subj",   "/CN=node", "-out", desk->product, NULL};
    return authority_run(desk, argv, error);
}

/* By the key that it has now. */
static bool prove(struct real_authority *self, struct keys_request *asked, GError **error)
{
    g_autofree char *path = node_keys_path(self->paths, "node.key");
    g_autoptr(desk_t) desk = authority_desk(self, asked->request, "", error);
    g_autofree char *key = desk != NULL ? authority_public_part(desk, path, true, error) : NULL;
    g_autofree char *proof = key != NULL ? authority_signature(desk, path, error) : NULL;
    if (proof == NULL)
        return false;
    text_set(&asked->key, key);
    text_set(&asked->proof, proof);
    return true;
}

bool authority_request(struct authority *authority, struct keys_request *ret_request,
                       GError **error)
{
    struct real_authority *self = authority_real(authority);
    g_autofree char *request = make_request(self, error);
    if (request == NULL)
        return false;
    text_set(&ret_request->request, request);
    return prove(self, ret_request, error);
}

/* --- another node's --- */

/* As openssl writes it; PERMISSION: it is none. */
static char *read_public_key(const struct desk *desk, GError **error)
{
    const char *const argv[] = {"openssl", "pkey", "-pubin",      "-in", desk->extensions,
                                "-pubout", "-out", desk->product, NULL};
    g_autoptr(GError) failure = NULL;
    char *key = authority_run(desk, argv, &failure);
    if (fettle_error_is(failure, ENVIRONMENT))
        fettle_set_error(error, PERMISSION, "key: is no public key");
    else if (failure != NULL)
        g_propagate_error(error, g_steal_pointer(&failure));
    return key;
}

bool authority_check_proof(struct authority *authority, const struct keys_request *asked,
                           char **ret_key_hash, GError **error)
{
    g_autoptr(desk_t) desk =
        authority_desk(authority_real(authority), asked->request, asked->key, error);
    g_autofree char *key = desk != NULL ? read_public_key(desk, error) : NULL;
    if (key == NULL ||
        !authority_verify(desk, key, asked->proof,
                          "proof: is no signature of that key over the request", error))
        return false;
    *ret_key_hash = g_compute_checksum_for_string(G_CHECKSUM_SHA256, key, -1);
    return true;
}

static bool is_ours(const struct real_authority *self, const char *certificate, const char *own,
                    GError **error)
{
    g_autoptr(GPtrArray) trusted = node_keys_trusted(self->paths, error);
    g_autofree char *wanted = certs_subject(own);
    g_autofree char *given = certs_subject(certificate);
    if (trusted == NULL)
        return false;
    if (given == NULL)
        fettle_set_error(error, WRONG_INPUT, "certificate: cannot be read");
    else if (g_strcmp0(given, wanted) != 0)
        fettle_set_error(error, WRONG_INPUT, "certificate: is of %s, this node is %s", given,
                         wanted != NULL ? wanted : "unknown");
    else if (certs_issuer(certificate, trusted) == NULL)
        fettle_set_error(error, WRONG_INPUT,
                         "certificate: is signed by nobody whom this node trusts");
    else
        return true;
    return false;
}

static bool fits_next_key(struct real_authority *self, const char *certificate, GError **error)
{
    g_autofree char *path = node_keys_path(self->paths, NODE_KEYS_NEXT_KEY);
    g_autofree char *key = g_file_test(path, G_FILE_TEST_EXISTS)
                               ? files_read_path(path, LIMIT_PEM_CHARS, NULL, error)
                               : g_strdup("");
    g_autoptr(GError) failure = NULL;
    if (key == NULL || authority_fits(self, key, certificate, &failure))
        return key != NULL;
    if (fettle_error_is(failure, WRONG_INPUT))
        fettle_set_error(error, WRONG_INPUT, "certificate: is not for the key of this node");
    else
        g_propagate_error(error, g_steal_pointer(&failure));
    return false;
}

bool authority_certify(struct authority *authority, const char *certificate, GError **error)
{
    struct real_authority *self = authority_real(authority);
    g_autofree char *own = node_keys_certificate(self->paths, error);
    if (own == NULL)
        return false;
    if (strcmp(own, certificate) == 0)
        return put_in_use(self, error);
    return is_ours(self, certificate, own, error) && fits_next_key(self, certificate, error) &&
           node_keys_take(self->paths, certificate, error) && put_in_use(self, error);
}
