/*
 * What the methods of work share (docs/design/storage.md). Each builds its records on the head,
 * under the serial that its commit gets, and commits once; a refusal rests on what is committed.
 *   wconf_work.c        accept_work, reset_state, change_volume, change_snapshot, change_backup
 *   wconf_work_make.c   what accept_work is about
 *   wconf_work_backup.c the same where backups are
 *   wconf_work_image.c  the same where images are; add_image, change_image
 *   wconf_work_move.c   the same of what is moved, or gets another type
 *   wconf_work_common.c what follows here
 *   wconf_work_take.c   take_work, step_work, empty_trash
 *   wconf_work_clean.c  claim_work, give_back
 *   wconf_work_end.c    end_work
 *   wconf_hand_on.c     hand_on
 *   wconf_settle.c      settle_resources
 *   wconf_cleanup.c     request_cleanup, stand_in, end_cleanup
 * and wconf_services.c, where those register who calls them.
 */
#pragma once

#include "core/config/resource.h"
#include "core/wconfd/wconf_private.h"

/* The serial of the next commit: the claim, the id, the generation that it gives. */
guint64 wconf_work_serial(const struct wconf *wconf);
/* Commits for a request, with `answer` (borrowed; NULL: commit_result). `changes` is stolen. False:
 * it was answered with why not. */
bool wconf_work_commit(struct wconf *wconf, struct rpc_request *request, const char *commit_id,
                       GPtrArray *changes, json_t *answer);
/* Answers with a refusal; `error` is stolen. */
void wconf_work_refuse(struct wconf *wconf, struct rpc_request *request, GError *error);
/* Whether a call came again whose commit is on its way: it is answered then. Else `*ret_serial` is
 * what it is stored as; 0: it is not. */
bool wconf_work_again(struct wconf *wconf, struct rpc_request *request, const char *commit_id,
                      guint64 *ret_serial);

/* WRONG_STATE while a restored configuration is not compared with the nodes (SAF-122). */
bool wconf_work_allowed(const struct wconf *wconf, GError **error);
/* PERMISSION: the back end is not that node's. */
bool wconf_work_serves(const struct config *head, const struct backend *backend, const char *node,
                       GError **error);
/* The service that calls, if it has this generation and the caller is its node (SAF-56), and work
 * is allowed. REFUSED: it is over; WRONG_STATE, PERMISSION. */
const struct storage_service *wconf_work_caller(const struct wconf *wconf,
                                                const struct rpc_request *request,
                                                const char *service, guint64 generation,
                                                GError **error);
/* The row that this service has under this claim. REFUSED: there is none, or under another. */
const struct worker *wconf_work_claimed(const struct wconf *wconf,
                                        const struct storage_service *service, const char *key,
                                        guint64 claim, GError **error);
/* What the table says of its operation; NULL: nothing. */
const struct work_row *wconf_work_row(const struct wconf *wconf, const struct worker *row);
/* `volume data1`, of the resource of a row; free with g_free(). */
char *wconf_work_name(const struct config *head, const struct worker *row);
/* `volume data1: delete-volume (deleting)`; free with g_free(). */
char *wconf_work_said(const struct wconf *wconf, const struct worker *row);

void wconf_work_put_row(struct wconf *wconf, const struct worker *row, GPtrArray *changes);
/* A touch, and a new owner. */
void wconf_work_give(struct wconf *wconf, struct worker *row,
                     const struct storage_service *service);
/* Whether work of that row may begin on a resource that there is: nothing else is done to it.
 * WRONG_STATE. */
bool wconf_work_may_begin(const struct config *head, const struct work_row *row,
                          const struct resource *resource, GError **error);
/* Whether it may go whatever is being done to it: no guest has it, and nobody copies it; with
 * `cascade` nobody but its own snapshots, which end with it. WRONG_STATE, WRONG_INPUT. */
bool wconf_work_may_force(const struct config *head, const struct work_row *row,
                          const struct resource *resource, bool cascade, GError **error);
/* Whether a resource may have that name. WRONG_INPUT: a person could not use it; ALREADY_EXISTS:
 * `unique`, and another one has it. */
bool wconf_work_name_fits(const struct config *head, const struct resource *resource,
                          const char *name, bool unique, GError **error);
/* WRONG_STATE of a volume that is an instance's (SAF-53). */
bool wconf_work_unattached(const struct config *head, const struct resource *resource,
                           GError **error);
/* What a request says of what it makes, beside what everybody knows of resources; `change` puts
 * that, and `source` is what it is made of
 * (NULL: no volume or snapshot). */
void wconf_work_say(const struct accept_work_args *args, enum resource_type type,
                    const struct resource *source, struct change *change);
/* The volume that `change` puts is reserved for nobody. */
void wconf_work_unreserve(struct change *change);
/* What a request is about. */
struct work_request {
    struct resource resource; /* that gets the row */
    struct resource source;   /* what it copies; one that does not exist: nothing */
    struct resource partner;  /* one without a UUID: none; one that does not exist: it is made */
    const char *backend;      /* UUID: whose members are to do it; "": a scheduler is to choose */
    const char *volume_type;  /* UUID: that it gets at the end; "": it keeps its own */
    bool at_once;             /* there is no work to do: the resource is as it says */
    bool withdrawn;           /* nobody has begun what it was to be made by: it goes with its row */
};
/* About nothing yet. */
struct work_request wconf_work_request(void);
/* About a resource that there is, or one that it makes, with the commit's id as its UUID, so that
 * the same request again is about the same one. */
bool wconf_work_find(const struct config *head, const struct work_row *row,
                     const struct accept_work_args *args, struct work_request *request,
                     GError **error);
bool wconf_work_make(const struct config *head, const struct accept_work_args *args,
                     struct work_request *request, GError **error);
/* Whether what is whole may be read (SAF-120), or be the partner of a row besides (SAF-121). */
bool wconf_work_may_read(const struct config *head, const char *operation,
                         const struct resource *source, GError **error);
bool wconf_work_may_hold(const struct config *head, const char *operation,
                         const struct resource *partner, GError **error);
/* Whether it may get more than a look: it has no row, is held by none, and has a status that allows
 * it. */
bool wconf_work_is_free(const struct config *head, const struct work_row *row,
                        const struct resource *resource, GError **error);
/* WRONG_STATE: no node serves both back ends (UUIDs). */
bool wconf_work_one_sees_both(const struct config *head, const char *first, const char *second,
                              GError **error);
/* The type of that name or UUID, as who has that project sees it. */
const struct volume_type *wconf_work_type(const struct config *head, const char *name,
                                          const char *project, GError **error);
/* Of a volume, `request->resource`, that is to be moved, or to get another type. */
bool wconf_work_moves(const struct work_row *row);
bool wconf_work_find_move(const struct config *head, const struct work_row *row,
                          const struct accept_work_args *args, struct work_request *request,
                          GError **error);
/* Of a new backup, `request->resource`: the rest. */
bool wconf_work_make_backup(const struct config *head, const struct accept_work_args *args,
                            struct work_request *request, GError **error);
/* Of a backup that may be restored, `request->resource`: into what. */
bool wconf_work_find_restore(const struct config *head, const struct accept_work_args *args,
                             struct work_request *request, GError **error);
/* The back end that is to hold a new backup, or image: the one that is named, or `own` (UUID; "":
 * none) if that may, or the only one that may. NULL with an error. */
const struct backend *wconf_work_holder(const struct config *head, enum resource_type type,
                                        const char *name, const char *own, GError **error);
/* WRONG_STATE: no node serves both back ends (UUIDs), so no member can read here and write there.
 */
bool wconf_work_one_sees_both(const struct config *head, const char *first, const char *second,
                              GError **error);
/* Of a new volume, `resource`: how large it is by that image, which it gives. */
bool wconf_work_make_of_image(const struct config *head, const struct accept_work_args *args,
                              struct resource *resource, struct resource *ret_image,
                              GError **error);
/* Of a volume that may be uploaded, `request->resource`: the image that is made. */
bool wconf_work_find_upload(const struct config *head, const struct accept_work_args *args,
                            struct work_request *request, GError **error);
/* WRONG_STATE: of an image that is protected. */
bool wconf_work_may_delete(const struct config *head, const struct work_row *row,
                           const struct resource *resource, GError **error);
/* WRONG_STATE: what a client is about to send of an image may be the rest of what it has begun to
 * send before. */
bool wconf_work_may_send(const struct config *head, const struct work_row *row,
                         const struct accept_work_args *args, const struct resource *resource,
                         GError **error);
/* The partner of a row that ends is free again; if it has no data, it is in error, or an image
 * queued (`why`). One that has another status than the row gave it stays (SAF-121). */
void wconf_work_release(struct wconf *wconf, const struct worker *row, struct resource *partner,
                        const char *why, GPtrArray *changes);
/* The resource names its data no more: that is trash. */
void wconf_work_unname(struct wconf *wconf, struct resource *resource, const char *operation,
                       GPtrArray *changes);
/* Whether records of its kind can be in that status with nobody at work. */
bool wconf_work_settled(const struct resource *resource, const char *status);
/* What recovery has on record of resources whose status changes here goes with that. */
void wconf_work_drop_told(const struct config *head, GPtrArray *changes);
/* What comes again each time that a row is tried: only what is new is told. `decision` is stolen.
 */
void wconf_work_tell_once(struct wconf *wconf, struct decision *decision, GPtrArray *changes);
/* Adds what has become of an item; `error` NULL: it has passed. */
void wconf_work_verdict(struct work_verdicts *verdicts, const char *key, enum work_answer answer,
                        const GError *error);
/* All that a call of many came to, of which its commit was stored before: each that `passed` says
 * has, and of the others it is to look at its copy. */
void wconf_work_answer_again(struct wconf *wconf, struct rpc_request *request, guint64 serial,
                             struct work_verdicts *verdicts);
/* Commits what has passed, or answers that nothing has. `changes` is stolen. */
void wconf_work_finish(struct wconf *wconf, struct rpc_request *request, const char *commit_id,
                       GPtrArray *changes, struct work_verdicts *verdicts);

/* --- wconf_cleanup.c --- */

/* What has become of rows in one commit. */
struct cleanup_counts {
    guint cleaned, skipped, failed;
};

/* The cleanup of that key that this service does. REFUSED: it does not, any more. */
const struct cleanup *wconf_cleanup_of(const struct wconf *wconf, const char *key,
                                       const struct storage_service *by, GError **error);
void wconf_cleanup_put(struct wconf *wconf, const struct cleanup *cleanup, GPtrArray *changes);
/* Has the cleanup count them, if there is that one and it is this service's still: which end a row
 * has does not depend on it. */
void wconf_cleanup_count(struct wconf *wconf, const char *key, const struct storage_service *by,
                         const struct cleanup_counts *counts, GPtrArray *changes);
