/* See certs.h. */
#include "io/net/certs.h"

#include "base/limits.h"
#include "proto/invitation.h"

#include <gio/gio.h>
#include <glib/gstdio.h>
#include <string.h>

#define VALIDITY_DAYS                                                                              \
    "36500" /* a cluster's certificates are replaced by a person, never by a date that passes */

/* Runs openssl; `argv` ends with NULL. */
static bool openssl(const char *const *argv, GError **error)
{
    g_autoptr(GError) local = NULL;
    g_autofree char *output = NULL;
    g_autofree char *complaint = NULL;
    int status = 0;

    if (!g_spawn_sync(NULL, (char **)argv, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL, &output,
                      &complaint, &status, &local)) {
        fettle_set_error(
            error, ENVIRONMENT,
            "certificates are made with the openssl command, which cannot be run (%s); "
            "install the package openssl",
            local->message);
        return false;
    }
    if (!g_spawn_check_wait_status(status, NULL)) {
        fettle_set_error(error, ENVIRONMENT, "openssl %s failed: %s", argv[1],
                         g_strstrip(complaint));
        return false;
    }
    return true;
}

bool certs_make_key(const char *key, GError **error)
{
    const char *const argv[] = {"openssl", "genpkey",  "-algorithm",
                                "EC",      "-pkeyopt", "ec_paramgen_curve:P-256",
                                "-out",    key,        NULL};

    return openssl(argv, error) && g_chmod(key, 0600) == 0;
}

/* The command that makes a certificate which signs itself, and others. */
static char **authority_command(const char *key, const char *subject, const char *constraints,
                                const char *usage, const char *cert)
{
    const char *const argv[] = {"openssl",   "req",     "-x509",       "-new",  "-key",  key,
                                "-sha256",   "-days",   VALIDITY_DAYS, "-subj", subject, "-addext",
                                constraints, "-addext", usage,         "-out",  cert,    NULL};

    return g_strdupv((char **)argv);
}

bool certs_make_ca(const char *ca_cert, const char *ca_key, const char *cluster_uuid,
                   GError **error)
{
    g_autofree char *subject = g_strdup_printf("/O=%s/CN=ca", cluster_uuid);
    g_auto(GStrv) argv = authority_command(ca_key, subject, "basicConstraints=critical,CA:TRUE",
                                           "keyUsage=critical,keyCertSign,cRLSign", ca_cert);

    return certs_make_key(ca_key, error) && openssl((const char *const *)argv, error) &&
           g_chmod(ca_cert, 0644) == 0;
}

char **certs_authority_command(const char *ca_key, const char *cluster_uuid, const char *cert)
{
    g_autofree char *id = g_uuid_string_random();
    g_autofree char *subject = g_strdup_printf("/O=%s/CN=ca-%.8s", cluster_uuid, id);

    return authority_command(ca_key, subject, "basicConstraints=critical,CA:TRUE",
                             "keyUsage=critical,keyCertSign,cRLSign", cert);
}

const char certs_extensions[] = "basicConstraints=critical,CA:FALSE\n"
                                "keyUsage=critical,digitalSignature\n"
                                "extendedKeyUsage=serverAuth,clientAuth\n";

char *certs_etcd_extensions(const char *address)
{
    /* A member talks to others, and to itself, as a client with the same certificate. */
    if (address != NULL)
        return g_strdup_printf("%ssubjectAltName=IP:%s\n", certs_extensions, address);
    return g_strdup("basicConstraints=critical,CA:FALSE\n"
                    "keyUsage=critical,digitalSignature\n"
                    "extendedKeyUsage=clientAuth\n");
}

char *certs_api_extensions(const char *const *names)
{
    g_autoptr(GString) text = g_string_new("basicConstraints=critical,CA:FALSE\n"
                                           "keyUsage=critical,digitalSignature\n"
                                           "extendedKeyUsage=serverAuth\n"
                                           "subjectAltName=");
    for (guint i = 0; names[i]; i++)
        g_string_append_printf(text, "%s%s:%s", i ? "," : "",
                               g_hostname_is_ip_address(names[i]) ? "IP" : "DNS", names[i]);
    g_string_append_c(text, '\n');
    return g_string_free(g_steal_pointer(&text), FALSE);
}

char **certs_etcd_authority_command(const char *ca_key, const char *cluster_uuid, const char *cert)
{
    g_autofree char *subject = g_strdup_printf("/O=%s/CN=" CERTS_ETCD_AUTHORITY, cluster_uuid);

    return authority_command(ca_key, subject, "basicConstraints=critical,CA:TRUE,pathlen:0",
                             "keyUsage=critical,keyCertSign", cert);
}

char **certs_sign_command(const char *ca_cert, const char *ca_key, const char *request,
                          const char *extensions, const char *cluster_uuid, const char *node_uuid,
                          const char *cert)
{
    g_autofree char *id = g_uuid_string_random();
    g_autofree char *serial = g_strdup_printf("0x%.8s%.4s%.4s", id, id + 9, id + 24);
    g_autofree char *subject = g_strdup_printf("/O=%s/CN=%s", cluster_uuid, node_uuid);
    const char *const argv[] = {
        "openssl", "x509",        "-req",     "-in",      request,       "-CA",  ca_cert,
        "-CAkey",  ca_key,        "-subj",    subject,    "-set_serial", serial, "-sha256",
        "-days",   VALIDITY_DAYS, "-extfile", extensions, "-out",        cert,   NULL};

    return g_strdupv((char **)argv);
}

static bool sign(const char *ca_cert, const char *ca_key, const char *request,
                 const char *extensions, const char *cluster_uuid, const char *node_uuid,
                 const char *cert, GError **error)
{
    g_autoptr(GError) local = NULL;
    g_auto(GStrv) argv =
        certs_sign_command(ca_cert, ca_key, request, extensions, cluster_uuid, node_uuid, cert);

    if (!g_file_set_contents(extensions, certs_extensions, -1, &local)) {
        fettle_set_error(error, STORAGE, "%s", local->message);
        return false;
    }
    return openssl((const char *const *)argv, error) && g_chmod(cert, 0644) == 0;
}

bool certs_make_request(const char *key, const char *request, GError **error)
{
    const char *const argv[] = {"openssl", "req",      "-new", "-key",  key,
                                "-subj",   "/CN=node", "-out", request, NULL};

    return openssl(argv, error);
}

#define CERTS_HEAD "-----BEGIN CERTIFICATE-----"
#define CERTS_TAIL "-----END CERTIFICATE-----\n"

GPtrArray *certs_split(const char *text, GError **error)
{
    g_autoptr(GPtrArray) found = g_ptr_array_new_with_free_func(g_free);
    const char *begin = strstr(text, CERTS_HEAD);

    while (begin != NULL) {
        const char *end = strstr(begin, CERTS_TAIL);
        g_autofree char *one =
            end != NULL ? g_strndup(begin, (gsize)(end - begin) + strlen(CERTS_TAIL)) : NULL;
        g_autoptr(GTlsCertificate) read =
            one != NULL ? g_tls_certificate_new_from_pem(one, -1, NULL) : NULL;
        if (read == NULL) {
            fettle_set_error(error, CORRUPT, "certificate %u cannot be read", found->len + 1);
            return NULL;
        }
        g_ptr_array_add(found, g_steal_pointer(&one));
        begin = strstr(end, CERTS_HEAD);
    }
    if (found->len > 0 && found->len <= LIMIT_AUTHORITIES)
        return g_steal_pointer(&found);
    fettle_set_error(error, CORRUPT, "has %u certificates; 1 to %d can be", found->len,
                     LIMIT_AUTHORITIES);
    return NULL;
}

const char *certs_issuer(const char *certificate, const GPtrArray *authorities)
{
    const GTlsCertificateFlags dates = G_TLS_CERTIFICATE_EXPIRED | G_TLS_CERTIFICATE_NOT_ACTIVATED;
    g_autoptr(GTlsCertificate) own = g_tls_certificate_new_from_pem(certificate, -1, NULL);

    for (guint i = 0; own != NULL && i < authorities->len; i++) {
        g_autoptr(GTlsCertificate) authority =
            g_tls_certificate_new_from_pem(authorities->pdata[i], -1, NULL);
        if (authority != NULL && (g_tls_certificate_verify(own, NULL, authority) & ~dates) == 0)
            return authorities->pdata[i];
    }
    return NULL;
}

guint64 certs_end(const char *certificate)
{
    g_autoptr(GTlsCertificate) own = g_tls_certificate_new_from_pem(certificate, -1, NULL);
    g_autoptr(GDateTime) end = own != NULL ? g_tls_certificate_get_not_valid_after(own) : NULL;

    return end != NULL ? (guint64)MAX(g_date_time_to_unix(end), 0) : 0;
}

static GHashTable *name_set(void)
{
    return g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
}

/* In its one spelling. */
static void add_name(GHashTable *set, const char *name)
{
    g_autoptr(GInetAddress) address = g_inet_address_new_from_string(name);
    g_hash_table_add(set, address ? g_inet_address_to_string(address) : g_ascii_strdown(name, -1));
}

static GHashTable *names_in(GTlsCertificate *certificate)
{
    GHashTable *set = name_set();
    g_autoptr(GPtrArray) hosts = g_tls_certificate_get_dns_names(certificate);
    g_autoptr(GPtrArray) addresses = g_tls_certificate_get_ip_addresses(certificate);

    for (guint i = 0; hosts && i < hosts->len; i++) {
        gsize length = 0;
        const char *bytes = g_bytes_get_data(hosts->pdata[i], &length);
        g_autofree char *name = g_strndup(bytes, length);
        add_name(set, name);
    }
    for (guint i = 0; addresses && i < addresses->len; i++)
        g_hash_table_add(set, g_inet_address_to_string(addresses->pdata[i]));
    return set;
}

bool certs_is_for(const char *certificate, const char *const *names)
{
    g_autoptr(GTlsCertificate) own = g_tls_certificate_new_from_pem(certificate, -1, NULL);
    g_autoptr(GHashTable) wanted = name_set(), found = own ? names_in(own) : name_set();
    GHashTableIter iter;
    void *name;

    for (guint i = 0; names[i]; i++)
        add_name(wanted, names[i]);
    g_hash_table_iter_init(&iter, wanted);
    while (g_hash_table_iter_next(&iter, &name, NULL))
        if (!g_hash_table_contains(found, name))
            return false;
    return g_hash_table_size(found) == g_hash_table_size(wanted);
}

char *certs_subject(const char *certificate)
{
    g_autoptr(GTlsCertificate) own = g_tls_certificate_new_from_pem(certificate, -1, NULL);

    return own != NULL ? g_tls_certificate_get_subject_name(own) : NULL;
}

char *certs_fingerprint(const char *certificate, GError **error)
{
    char *fingerprint = invitation_fingerprint(certificate);

    if (fingerprint == NULL)
        fettle_set_error(error, CORRUPT, "there is no certificate in it");
    return fingerprint;
}

bool certs_make_node(const char *ca_cert, const char *ca_key, const char *cluster_uuid,
                     const char *node_uuid, const char *cert, const char *key, GError **error)
{
    g_autofree char *request = g_strconcat(cert, ".request", NULL);
    g_autofree char *extensions = g_strconcat(cert, ".extensions", NULL);

    bool ok = certs_make_key(key, error) && certs_make_request(key, request, error) &&
              sign(ca_cert, ca_key, request, extensions, cluster_uuid, node_uuid, cert, error);
    g_unlink(request);
    g_unlink(extensions);
    return ok;
}

bool certs_parse_subject(const char *subject, char **ret_cluster_uuid, char **ret_node_uuid,
                         GError **error)
{
    g_auto(GStrv) parts = g_strsplit(subject != NULL ? subject : "", ",", 3);
    const char *cluster = NULL;
    const char *node = NULL;

    for (guint i = 0; parts[i] != NULL; i++) {
        g_strstrip(parts[i]);
        if (g_str_has_prefix(parts[i], "O=") && cluster == NULL)
            cluster = parts[i] + 2;
        else if (g_str_has_prefix(parts[i], "CN=") && node == NULL)
            node = parts[i] + 3;
    }
    if (g_strv_length(parts) != 2 || cluster == NULL || node == NULL ||
        !g_uuid_string_is_valid(cluster) || !g_uuid_string_is_valid(node)) {
        fettle_set_error(error, PERMISSION,
                         "the certificate's subject is \"%s\"; it must be O=<cluster uuid>, "
                         "CN=<node uuid>",
                         subject != NULL ? subject : "");
        return false;
    }
    *ret_cluster_uuid = g_strdup(cluster);
    *ret_node_uuid = g_strdup(node);
    return true;
}
