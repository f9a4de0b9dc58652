/*
 * The cluster's certificate authority as wconfd's core sees it. Its key lies on master candidates
 * and is read by wconfd alone (docs/design/architecture.md, 9). io/authority.c is the real one.
 *
 * Both procedures are called in a task and wait; a wait that was killed is a KILLED error.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>

struct authority;

struct authority_ops {
    /* Checks a certificate request (PEM): it must be signed by the key that it is for. Gives the
     * SHA-256 of the public key, in hexadecimal digits. WRONG_INPUT if it is none. */
    bool (*read_request)(struct authority *authority, const char *request, char **ret_key_hash,
                         GError **error);
    /* A node's certificate for that key, in PEM. STORAGE or ENVIRONMENT if it cannot be made. */
    bool (*sign)(struct authority *authority, const char *request, const char *cluster_uuid,
                 const char *node_uuid, char **ret_certificate, GError **error);
    /* A certificate of etcd for that key: for the member at a numeric address, or, NULL, for those
     * who ask members. */
    bool (*sign_etcd)(struct authority *authority, const char *request, const char *cluster_uuid,
                      const char *address, char **ret_certificate, GError **error);
    /* Its own certificate in PEM, and the SHA-256 of it (of the DER form). Does not wait. */
    bool (*show)(struct authority *authority, char **ret_certificate, char **ret_fingerprint,
                 GError **error);
};

struct authority {
    const struct authority_ops *ops;
};
