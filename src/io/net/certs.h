/*
 * Certificates of a cluster, made with the openssl command: a CA of its own, and one certificate
 * for each node whose subject is O=<cluster uuid>, CN=<node uuid> and nothing else (architecture.md
 * 9). Used by `fettle cluster init`, by the lab and by tests. Keys are EC P-256, files of keys have
 * mode 0600.
 *
 * Blocking: for commands and tests, not for a daemon's loop; io/net/authority.h signs for a daemon.
 */
#pragma once

#include "base/error.h"

#include <glib.h>
#include <stdbool.h>

/* Makes `ca_cert` and `ca_key`. ENVIRONMENT if openssl is missing or fails, with what it said. */
bool certs_make_ca(const char *ca_cert, const char *ca_key, const char *cluster_uuid,
                   GError **error);

/* Makes `cert` and `key` for a node, signed by the CA. */
bool certs_make_node(const char *ca_cert, const char *ca_key, const char *cluster_uuid,
                     const char *node_uuid, const char *cert, const char *key, GError **error);

/* Makes a private key; the file has mode 0600. */
bool certs_make_key(const char *key, GError **error);
/* Makes a certificate request for a key. Its subject means nothing: who signs it says which. */
bool certs_make_request(const char *key, const char *request, GError **error);

/* The arguments with which openssl signs a request, and what the file `extensions` must say; free
 * with g_strfreev(). */
char **certs_sign_command(const char *ca_cert, const char *ca_key, const char *request,
                          const char *extensions, const char *cluster_uuid, const char *node_uuid,
                          const char *cert);
extern const char certs_extensions[];

/* Certificates of etcd are issued under a name of their own, with the key of the cluster's
 * authority: members trust that name alone. A certificate chains to its issuer by name (RFC 5280,
 * 6.1.3), so that of a node, which every node has, opens no member. [etcd 3.4 could compare names
 * of clients instead, with `client-cert-allowed-hostname`; its JSON gateway then refuses itself,
 * and its roles by subject do not work through the gateway.] */
#define CERTS_ETCD_AUTHORITY "etcd-authority"
/* Subjects of etcd's certificates; no node has such a name, so neither is taken for the other. */
#define CERTS_ETCD_MEMBER "etcd-member"
#define CERTS_ETCD_CLIENT "etcd-client"
/* Subject of what a front end of the API shows, which opens nothing: no node has that name, and it
 * is no client's certificate. */
#define CERTS_API "api"
/* What stands in the file `extensions` for it, under these names and numeric addresses. Free with
 * g_free(). */
char *certs_api_extensions(const char *const *names);
/* The arguments with which openssl makes that issuer's certificate; free with g_strfreev(). Made
 * again it has the same name and key, so any of them serves for all that was ever issued. */
char **certs_etcd_authority_command(const char *ca_key, const char *cluster_uuid, const char *cert);
/* What stands in the file `extensions` for a member at a numeric address, or, NULL, for those who
 * ask members. Free with g_free(). */
char *certs_etcd_extensions(const char *address);

/* The arguments with which openssl makes the certificate of another authority of the cluster, which
 * signs itself; free with g_strfreev(). Each has a name of its own: who verifies finds an issuer by
 * its name. */
char **certs_authority_command(const char *ca_key, const char *cluster_uuid, const char *cert);

/* The certificates in a text, each by itself: GPtrArray of char *, which it owns. CORRUPT: there is
 * none, one that cannot be read, or more than LIMIT_AUTHORITIES. */
GPtrArray *certs_split(const char *text, GError **error);
/* Which of `authorities` (as certs_split() gives them) has signed a certificate, dates aside; NULL:
 * none. Borrowed. */
const char *certs_issuer(const char *certificate, const GPtrArray *authorities);
/* When it ends, in seconds since 1970; 0: that cannot be read. */
guint64 certs_end(const char *certificate);
/* Whether it is a server's with exactly these names and numeric addresses, in whatever order and
 * spelling. */
bool certs_is_for(const char *certificate, const char *const *names);
/* "CN=…,O=…" as GLib writes it; NULL: it cannot be read. Free with g_free(). */
char *certs_subject(const char *certificate);

/* SHA-256 of a certificate (PEM) in its DER form, in hexadecimal digits. CORRUPT if it is none. */
char *certs_fingerprint(const char *certificate, GError **error);

/* Takes a subject as GLib writes it ("CN=…,O=…") apart. PERMISSION if it is not exactly one O and
 * one CN, both UUIDs. Both results are new strings. */
bool certs_parse_subject(const char *subject, char **ret_cluster_uuid, char **ret_node_uuid,
                         GError **error);
