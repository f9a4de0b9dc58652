/*
 * Inside of backend/members: etcd.c (the interface, what a member is asked), etcd_process.c (its
 * process), etcd_keys.c (keys and certificates), etcd_files.c (data and log).
 */
#pragma once

#include "backend/members/etcd.h"
#include "io/process.h"

#include <sys/types.h>

struct etcd_host {
    struct members base;
    const struct node_paths *paths;
    const struct node_config *config;
    struct process *process; /* NULL: none was started or found */
    bool stopping;           /* its end is wanted, and told to nobody */
    char *started_with;      /* digest of whom it trusts; NULL: not known */
    void (*ended)(const char *why, void *data);
    void *data;
};

/* The user etcd; both 0 if we are not root. ENVIRONMENT if there is none. */
bool etcd_user(uid_t *ret_uid, gid_t *ret_gid, GError **error);
/* WRONG_STATE, saying what cannot be done, while the process runs. */
bool etcd_is_down(const struct etcd_host *host, const char *doing, GError **error);

/* --- etcd_process.c: as in proto/members.h --- */
bool etcd_start(struct members *members, const struct engine_config *config,
                enum member_initial initial, GError **error);
bool etcd_adopt(struct members *members, bool *ret_running, GError **error);
bool etcd_running(struct members *members);
bool etcd_stop(struct members *members, GError **error);

/* --- etcd_keys.c --- */
bool etcd_prepare(struct members *members, bool anew, char **ret_member, char **ret_client,
                  GError **error);
bool etcd_certify(struct members *members, const char *member, const char *client,
                  const char *authority, GError **error);
bool etcd_trust(struct members *members, const char *authority, GError **error);
/* Keys whose certificates have come take their names. */
bool etcd_settle_keys(const struct etcd_host *host, GError **error);
/* SHA-256 of whom members trust, as the file says it; "": there is none. Free with g_free(). */
char *etcd_trust_digest(const struct etcd_host *host);
/* The first of these has issued both certificates. */
bool etcd_is_by_first(const struct etcd_host *host);
bool etcd_forget(struct members *members, GError **error);
/* WRONG_STATE with the missing file. */
bool etcd_has_keys(const struct etcd_host *host, GError **error);

/* --- etcd_files.c --- */
char *etcd_data_folder(const struct etcd_host *host);
char *etcd_log_path(const struct etcd_host *host);
bool etcd_has_data(struct members *members);
/* Makes the data folder, reachable for its user and for nobody else. */
bool etcd_make_data(const struct etcd_host *host, GError **error);
bool etcd_aside(struct members *members, char **ret_folder, GError **error);
void etcd_trim_log(struct members *members);
/* What the process said last that tells why it ended; free with g_free(). */
char *etcd_last_words(const struct etcd_host *host);
/* Whether these words mean that its data is not what it was, which no new start mends. */
bool etcd_says_damaged(const char *words);
