/*
 * Inside of the certificate authority (authority.h): authority.c signs and keeps its key,
 * authority_node.c keeps the certificates of this node, authority_next.c begins another authority.
 */
#pragma once

#include <sys/stat.h>

#include "io/net/authority.h"

struct real_authority {
    struct authority base;
    const struct node_paths *paths;
    char *folder;
    guint count;
    bool (*renewed)(GError **error, void *data); /* this node's certificates have changed */
    void *data;
    bool unused;              /* ca.crt may say what this process does not go by yet */
    struct stat front_end[2]; /* apid.conf and apid.pem, as status() has read them last */
};

/* Files of one piece of work. */
struct desk {
    char *request;
    char *extensions;
    char *issuer; /* of etcd's certificates */
    char *product;
    char *complaint;
};

static inline struct real_authority *authority_real(struct authority *authority)
{
    return (struct real_authority *)authority;
}

/* --- authority.c --- */

/* With a request and extensions in its files. */
struct desk *authority_desk(struct real_authority *self, const char *request,
                            const char *extensions, GError **error);
void authority_desk_free(struct desk *desk);
typedef struct desk desk_t;
G_DEFINE_AUTOPTR_CLEANUP_FUNC(desk_t, authority_desk_free)
/* etcd's issuer under a key in a file, which is also in the desk's file of that name. */
char *authority_issuer(const struct desk *desk, const char *key, const char *cluster_uuid,
                       GError **error);
/* Runs openssl and waits for it; the result is what it wrote into the desk's product. */
char *authority_run(const struct desk *desk, const char *const *argv, GError **error);
/* Whether a key is that of a certificate, both in PEM. WRONG_INPUT: it is not, or cannot be read.
 * What openssl says of a key is not passed on. */
bool authority_fits(struct real_authority *self, const char *key, const char *certificate,
                    GError **error);
/* The public part, in PEM, of the key, or of the certificate, in a file: the first one there. */
char *authority_public_part(const struct desk *desk, const char *path, bool of_key, GError **error);
/* The signature of the key in a file over the desk's request, in base64. */
char *authority_signature(const struct desk *desk, const char *key, GError **error);
/* Whether a signature in base64 over the desk's request is that of a public key (PEM). PERMISSION,
 * with `what`: it is not. */
bool authority_verify(const struct desk *desk, const char *key, const char *signature,
                      const char *what, GError **error);

/* --- authority_node.c --- */

bool authority_status(struct authority *authority, struct keys_status *status, GError **error);
bool authority_is_stale(struct authority *authority);
bool authority_trust(struct authority *authority, const char *certificates, GError **error);
bool authority_request(struct authority *authority, struct keys_request *ret_request,
                       GError **error);
bool authority_check_proof(struct authority *authority, const struct keys_request *asked,
                           char **ret_key_hash, GError **error);
bool authority_certify(struct authority *authority, const char *certificate, GError **error);

/* --- authority_next.c --- */

bool authority_make_next(struct authority *authority, const char *cluster_uuid,
                         char **ret_certificate, char **ret_issuer, GError **error);
bool authority_has_key_of(struct authority *authority, const char *certificate, bool *ret_has,
                          GError **error);
/* The key of the authority that signs takes its name, if it still lies beside. */
bool authority_settle(struct real_authority *self, GError **error);
