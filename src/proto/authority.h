/*
 * The cluster's certificate authority as wconfd's core sees it. Its key lies on master candidates
 * and is read by wconfd alone (docs/design/architecture.md, 9); noded checks signatures, with the
 * certificate. io/net/authority.c is the real one.
 *
 * What does not say otherwise is called in a task and waits; a wait that was killed is a KILLED
 * error.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>

struct authority;
struct keys_status;
struct keys_request;

struct authority_ops {
    /* Checks a certificate request (PEM): it must be signed by the key that it is for. Gives the
     * SHA-256 of the public key, in hexadecimal digits. WRONG_INPUT if it is none. */
    bool (*read_request)(struct authority *authority, const char *request, char **ret_key_hash,
                         GError **error);
    /* A node's certificate for that key, in PEM. STORAGE or ENVIRONMENT if it cannot be made. */
    bool (*sign)(struct authority *authority, const char *request, const char *cluster_uuid,
                 const char *node_uuid, char **ret_certificate, GError **error);
    /* A certificate of etcd for that key: for the member at a numeric address, or, NULL, for those
     * who ask members. Behind it, in the same text, stands that of its issuer, which members trust
     * instead of the cluster's authority: that signs for every node. */
    bool (*sign_etcd)(struct authority *authority, const char *request, const char *cluster_uuid,
                      const char *address, char **ret_certificate, GError **error);
    /* A certificate for what a front end of the API shows: of a server with these names and
     * addresses, under a subject that no node has. */
    bool (*sign_api)(struct authority *authority, const char *request, const char *cluster_uuid,
                     const char *const *names, char **ret_certificate, GError **error);
    /* Its own certificate in PEM, and the SHA-256 of it (of the DER form). Does not wait. */
    bool (*show)(struct authority *authority, char **ret_certificate, char **ret_fingerprint,
                 GError **error);

    /* --- its key, on its way between candidates --- */
    /* Whether there is a key; whether it is the right one is known when it is read. Does not
     * wait. */
    bool (*has_key)(struct authority *authority);
    /* The key (PEM), which fits its certificate. STORAGE if there is none, CORRUPT if it does not
     * fit. Must not be logged. */
    bool (*read_key)(struct authority *authority, char **ret_key, GError **error);
    /* Keeps a key, synced and for root alone; WRONG_INPUT if it does not fit the certificate. */
    bool (*take_key)(struct authority *authority, const char *key, GError **error);
    /* Removes it, for good; no error if there is none. */
    bool (*drop_key)(struct authority *authority, GError **error);
    /* The key's signature over a text, in base64. STORAGE, ENVIRONMENT, TEMPORARY. */
    bool (*sign_text)(struct authority *authority, const char *text, char **ret_signature,
                      GError **error);
    /* Whether it is that, by the certificate alone, which every node has. PERMISSION: it is not.
     * STORAGE, ENVIRONMENT, TEMPORARY: that is not known. */
    bool (*check_text)(struct authority *authority, const char *text, const char *signature,
                       GError **error);

    /* --- its renewal, at the master (procedures.md, "Keys") --- */
    /* A key for another authority, and its certificate (PEM), which signs itself. The key lies
     * beside the one in use, and takes its place once that certificate is the first that this node
     * trusts. One that was made before, and is none yet, goes. `*ret_issuer`: the issuer under
     * that key whom members of etcd trust. */
    bool (*make_next)(struct authority *authority, const char *cluster_uuid, char **ret_certificate,
                      char **ret_issuer, GError **error);
    /* Whom members of etcd trust, as this node has it (PEM). STORAGE, CORRUPT; WRONG_STATE if one
     * is under no key of those that this node trusts. */
    bool (*etcd_issuers)(struct authority *authority, char **ret_issuers, GError **error);
    /* Whether the key of that certificate lies here, as the one in use or beside it. */
    bool (*has_key_of)(struct authority *authority, const char *certificate, bool *ret_has,
                       GError **error);
    /* The SHA-256 of the public key that a node proves to have now, beside the one that it asks a
     * certificate for, as read_request() gives it. PERMISSION: it proves none. */
    bool (*check_proof)(struct authority *authority, const struct keys_request *asked,
                        char **ret_key_hash, GError **error);

    /* --- a node's own certificates --- */
    /* What they are. Does not wait. CORRUPT, STORAGE. */
    bool (*status)(struct authority *authority, struct keys_status *status, GError **error);
    /* Whether the certificate of its front end may be another one than status() has told last:
     * others write it. */
    bool (*is_stale)(struct authority *authority);
    /* Trusts these authorities (PEM, in order) and no other, synced; the first one signs. The same
     * again does nothing. WRONG_INPUT: the text; WRONG_STATE: none of them has signed the node's
     * own certificate. */
    bool (*trust)(struct authority *authority, const char *certificates, GError **error);
    /* A request for the node's next certificate, with a key that is made now or was before, and the
     * proof that it comes from who has the key of now. */
    bool (*request)(struct authority *authority, struct keys_request *ret_request, GError **error);
    /* Takes the certificate for that request, synced: key and certificate change together. The same
     * again does nothing. WRONG_INPUT: it is not for that key, not of this node, or of nobody that
     * is trusted here. */
    bool (*certify)(struct authority *authority, const char *certificate, GError **error);
};

struct authority {
    const struct authority_ops *ops;
};
