/*
 * etcd's members: who they are, how one is, changes of them, and the upkeep that etcd leaves to its
 * users. On top of etcd_client.h; everything is called in a task.
 *
 * Changes may be repeated: each looks at what is there when etcd refuses it, and is done if that is
 * what was wanted. Errors are those of etcd_client.h, with these of etcd's words sorted out:
 *   TEMPORARY       etcd would do it a little later: members that have started just now (5 s), a
 *                   learner that is not up to date, another learner, no leader
 *   UNKNOWN_ENTITY  no such member
 * etcd takes a change of members only if a majority would stay healthy after it, and lets a member
 * that was removed never come back under its id (SAF-07).
 */
#pragma once

#include "io/etcd/etcd_client.h"
#include "proto/records.h"

/* A member as etcd lists it. Ids are 64-bit numbers; in texts 16 hexadecimal digits. */
struct etcd_listed {
    guint64 id;
    char *name; /* empty: it was added and has not started yet */
    char *peer_url;
    char *client_url; /* empty as well */
    bool learner;
};
/* GPtrArray of struct etcd_listed. Answered from what the asked member has applied: one that is cut
 * off may list an older state. */
GPtrArray *etcd_members(struct etcd_client *client, GError **error);
const struct etcd_listed *etcd_members_find(const GPtrArray *members, const char *peer_url);
char *etcd_id_text(guint64 id);
/* 0 if it is none. */
guint64 etcd_id_parse(const char *text);

/* Adds a member without a vote (a learner), which is promoted when it is up to date; etcd takes one
 * learner at a time. There already: its id. */
bool etcd_member_add(struct etcd_client *client, const char *peer_url, guint64 *ret_id,
                     GError **error);
bool etcd_member_promote(struct etcd_client *client, guint64 id, GError **error);
/* Not there: done. */
bool etcd_member_remove(struct etcd_client *client, guint64 id, GError **error);

/* How the member at the end of `client` (which must have one URL only) is: fills what it says of
 * itself. A member that answers nobody is no error; `healthy` is false then, and `why` says so.
 * Otherwise `healthy` says whether a linearizable read through it succeeds. False: we were killed.
 */
bool etcd_member_ask(struct etcd_client *client, struct member_status *status, GError **error);

/* Takes an alarm back (NOSPACE: etcd takes writes again; do it after making room). */
bool etcd_alarm_disarm(struct etcd_client *client, guint64 id, const char *alarm, GError **error);
/* Drops what is older than `revision`; dropped already: done. */
bool etcd_compact(struct etcd_client *client, guint64 revision, GError **error);
/* Rewrites the file of the member at the end of `client` (one URL; `member_ms` long enough), which
 * answers nobody meanwhile. */
/* How many members with a lower id than `id` have raised this alarm. */
bool etcd_alarms_before(struct etcd_client *client, const char *alarm, guint64 id, guint *ret_count,
                        GError **error);
bool etcd_defragment(struct etcd_client *client, GError **error);

/* A turn that at most one has, by a key with a lease: true if it is ours now, for `seconds` at
 * most. TEMPORARY: it is another's. What `who` has of before is given back first. */
bool etcd_turn_take(struct etcd_client *client, const char *key, const char *who, guint seconds,
                    GError **error);
/* If it is that of `who`, whichever process of it has taken it. */
void etcd_turn_give(struct etcd_client *client, const char *key, const char *who);

/* --- answers, whatever they are --- */

/* PROTOCOL: it is no list of members. */
GPtrArray *etcd_members_parse(const json_t *answer, GError **error);
/* What a member says of itself, and the alarms that it has raised (behind the former). */
void etcd_status_parse(const json_t *answer, struct member_status *status);
void etcd_alarms_parse(const json_t *answer, struct member_status *status);
guint etcd_alarms_count(const json_t *answer, const char *alarm, guint64 id);
