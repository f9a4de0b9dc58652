/*
 * What a node can do with its member of etcd: the interface that core/member/member_care.c thinks
 * against. backend/members/ runs real etcd processes, tests have a fake (helper/fake_members.h).
 * A node has at most one member, and one process of it.
 *
 * What waits is called in a task and bounded by a time limit of its own; a wait that was killed is
 * a KILLED error.
 */
#pragma once

#include "proto/engine_config.h"

struct members;

#define ALARM_NOSPACE "NOSPACE" /* the file has reached its limit: no member takes changes */

/* How the other members are: a majority has to be left while this one does not answer. */
struct members_others {
    guint count;
    guint silent;      /* that do not answer, or have no majority */
    guint full_before; /* that have reached their limit too, with a lower id */
};

struct members_ops {
    /* `ended` is called once from the loop for each process that ends without stop(); `why` in
     * words. NULL: nobody is told. */
    void (*set_ended)(struct members *members, void (*ended)(const char *why, void *data),
                      void *data);

    /* What etc/engine.json says; SQLite if there is none. CORRUPT with the file's name. Does not
     * wait. Free with engine_config_free(). */
    struct engine_config *(*config_read)(struct members *members, GError **error);
    /* Synced; NULL: no file. WRONG_INPUT as engine_config_check(). */
    bool (*config_write)(struct members *members, const struct engine_config *config,
                         GError **error);

    /* Requests for certificates (PEM), for the member and for those who ask members; keys are made
     * where they are missing. `anew`: other keys than those in use, beside them until they are
     * certified. */
    bool (*prepare)(struct members *members, bool anew, char **ret_member, char **ret_client,
                    GError **error);
    /* Keys and certificates change together; `authority` "": the issuer that stands behind them is
     * the only one. WRONG_STATE before prepare(); WRONG_INPUT if one does not fit its key or its
     * authority. */
    bool (*certify)(struct members *members, const char *member, const char *client,
                    const char *authority, GError **error);
    /* Whom members, and those who ask them, trust from the next start or question on (PEM).
     * WRONG_INPUT: not of this cluster; WRONG_STATE: none has issued the certificates here. */
    bool (*trust)(struct members *members, const char *authority, GError **error);

    /* Whether there is data of a member. Does not wait. */
    bool (*has_data)(struct members *members);
    /* Starts the process of this node's member in `config`; the data folder is made if it is
     * missing. No error if it runs. WRONG_STATE without certificates; ENVIRONMENT. */
    bool (*start)(struct members *members, const struct engine_config *config,
                  enum member_initial initial, GError **error);
    /* Finds a process that outlived the node daemon. Does not wait for long. CORRUPT. */
    bool (*adopt)(struct members *members, bool *ret_running, GError **error);
    bool (*running)(struct members *members);
    /* SIGTERM, then SIGKILL; true when the exit was seen, also if there is no process. */
    bool (*stop)(struct members *members, GError **error);

    /* Fills what the process and the member itself know: all but state, token, restarts. A member
     * that does not answer is no error: healthy is false then, and `why` says so. */
    bool (*ask)(struct members *members, struct member_status *status, GError **error);

    /* The data folder gets a name of its own ("etcd.aside-TIME", below var/); NULL if there is
     * none. WRONG_STATE while the process runs. */
    bool (*aside)(struct members *members, char **ret_folder, GError **error);
    /* Removes keys and certificates; WRONG_STATE while the process runs. */
    bool (*forget)(struct members *members, GError **error);

    /* --- upkeep --- */
    /* Drops what is older than `revision`. */
    bool (*compact)(struct members *members, guint64 revision, GError **error);
    /* Asks all others of etc/engine.json how they are; `id`: this node's member, "": it does not
     * answer, and nothing is known of who is full. One that does not answer is no error. */
    bool (*ask_others)(struct members *members, const char *id, struct members_others *ret_others,
                       GError **error);
    /* One member at a time has the turn in which it answers nobody, for UPKEEP_TURN_S at most;
     * TEMPORARY: it is another's. Taking it is a change, so it is asked of one that is well. What
     * an earlier node daemon of this node has left is its own, to take and to give back. */
    bool (*turn_take)(struct members *members, GError **error);
    void (*turn_give)(struct members *members);
    /* Gives free pages of the member's file back; it answers nobody meanwhile. */
    bool (*defragment)(struct members *members, GError **error);
    /* Takes back the alarm of the member `id` that its file has reached its limit. */
    bool (*disarm)(struct members *members, const char *id, GError **error);
    /* Keeps the log below its limit. */
    void (*trim_log)(struct members *members);
};

struct members {
    const struct members_ops *ops;
    guint64 store_bytes; /* the limit of a member's file */
};
