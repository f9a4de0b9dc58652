/* What the files of the volume services share; see volume_service.h. */
#pragma once

#include "core/config/resource.h"
#include "core/storage/volume_caller.h"
#include "core/storage/volume_service.h"

struct volume_service {
    const struct env *env;
    struct follow *follow;
    struct volume_beats beats;
    void (*ended)(const GError *error, void *data);
    void *data;
    GHashTable *members;   /* UUID of a back end -> struct volume_member */
    guint working;         /* operations of all members, and images that are sent */
    GHashTable *receiving; /* key of a row -> what volume_receive.c has of it */
};

/* One back end of this node. Lives as long as one of its tasks. */
struct volume_member {
    struct volume_caller caller;
    struct volume_service *service;
    guint references;
    struct backend
        *backend;  /* as it was when the member began: what may change is asked of the copy */
    guint reading; /* operations of other members that read from it, and images that are sent */
    bool over;     /* the back end is this node's no more */
    bool sweeping, measuring;
    gint64 sweep_ms, space_ms; /* boot clock: not before */
    gint64 trash_ms;      /* the same, of a sweep for the sake of new trash; 0: there is none */
    guint64 swept;        /* serial of the copy when the last sweep began */
    guint sweep_pause_ms; /* after the last sweep, which has failed; 0: it has not */
    bool stayed;          /* something that it would have removed did */
    guint left;           /* that the last sweep could not prove to be nobody's */
};

/* A row under a claim of the caller's, with the resource as the copy had it then. */
struct volume_work {
    struct volume_caller *caller;
    struct volume_member *member; /* that it is; NULL: a scheduler */
    char *key;
    guint64 history, claim;
    struct worker *row;
    void *record; /* NULL: it is gone */
    struct resource resource;
    const struct work_row *table;
};

enum work_done {
    WORK_IS_DONE,
    WORK_HAS_FAILED, /* the error says why */
    WORK_IS_LOST     /* refused, or without an answer: no data is touched any more (SAF-50) */
};

/* --- volume_member.c --- */

void volume_member_ref(struct volume_member *member);
void volume_member_unref(struct volume_member *member);
/* The task of a member; takes a reference. */
void volume_member_run(void *member);
/* There is something to look at. */
void volume_member_wake(struct volume_member *member);
/* It asks what its back end has left, now: what it knew of that is old. Nothing, if the process of
 * the task has ended. */
void volume_member_measures(struct volume_member *member);
const struct config *volume_member_config(const struct volume_member *member);
/* The place is there, and is what the record says. */
bool volume_member_open(struct volume_member *member, GError **error);

/* --- volume_turn.c --- */

#define VOLUME_NEVER_MS G_MAXUINT

/* What a caller notes of a row that nobody has. */
struct volume_seen {
    guint64 row;
    gint64 since_ms;
    gint64 never_ms; /* boot clock: since when no back end could ever hold it; 0: one could */
    char *why;       /* that was logged last */
};
void volume_seen_free(void *seen);
/* Called for each row whose turn it is, in their order; how long nothing is due of it, in ms. */
typedef guint (*volume_due_fn)(struct volume_caller *caller, const char *key, void *data);
/* Of rows that nobody has. How long nothing else is due, in ms. */
guint volume_turns(struct volume_caller *caller, const GPtrArray *rows, volume_due_fn due,
                   void *data);
/* It was refused, or the master does not know how: others and later times have their turn. */
void volume_put_off(struct volume_caller *caller, const char *key);

/* --- volume_take.c --- */

/* Key of a row that has to end before work on this one may begin: a volume goes after its
 * snapshots, whose rows others may have (CLN-60). NULL: there is none. Free with g_free(). */
char *volume_work_before(const struct config *config, const struct worker *row);
/* The member of this process for the back end that a row reads from, which may be `member` itself;
 * NULL: there is none. */
struct volume_member *volume_reads_from(struct volume_member *member, const struct worker *row);
/* One more may be begun there. */
bool volume_has_place(const struct volume_member *member);
/* Begins what it may begin; how long nothing else is due, in ms. */
guint volume_take(struct volume_member *member);

/* --- volume_work.c --- */

/* A row that nobody has is the caller's from now on. NULL: it is not. */
struct volume_work *volume_work_take(struct volume_caller *caller, const char *key, GError **error);
/* The row as the copy has it, which has at least the serial `claim`; NULL: it is another's. */
struct volume_work *volume_work_new(struct volume_caller *caller, const char *key, guint64 claim);
void volume_work_free(void *work);
/* What ends it; the caller fills in the rest. */
struct work_end *volume_work_end(const struct volume_work *work);
/* That it has failed, with the reason. */
void volume_work_fails(struct work_end *end, const char *why);
/* Takes the resource's data out of the record; the copy knows of it then. */
bool volume_work_unname(const struct volume_work *work, GError **error);
/* Resource and row have another status of the same operation from now on (CLN-09). */
bool volume_work_becomes(const struct volume_work *work, const char *status, GError **error);
/* So much of its back end is promised to the image that comes in. NO_RESOURCES: it is not. */
bool volume_work_promises(const struct volume_work *work, guint64 bytes, GError **error);
/* Ends rows, at most LIMIT_WORK_ITEMS struct work_end. With the first one's claim as that of all
 * calls; `cleanup`: that they were claimed for, or "". The copy shows what came of it, if it was
 * answered. False: nobody knows. */
bool volume_work_finish(struct volume_caller *caller, const struct volume_work *first,
                        GPtrArray *items, const char *cleanup, GError **error);
/* The member of this process for the back end that is read, referred to; NULL: there is none. */
struct volume_member *volume_work_from(const struct volume_work *work, GError **error);
/* Whether the resource is what the row says; else only the row goes (CLN-17, 18). */
bool volume_work_stands(const struct volume_work *work);

/* Whether the copy shows its claim: what is said under it is decided on that copy. */
bool volume_work_is_had(const struct volume_work *work);

/* --- operations: each fills in `end`; of resources of every kind --- */

enum work_done volume_create(const struct volume_work *work, struct work_end *end, GError **error);
enum work_done volume_delete(const struct volume_work *work, struct work_end *end, GError **error);
enum work_done volume_extend(const struct volume_work *work, struct work_end *end, GError **error);
enum work_done volume_back_up(const struct volume_work *work, struct work_end *end, GError **error);
enum work_done volume_restore(const struct volume_work *work, struct work_end *end, GError **error);
enum work_done volume_upload(const struct volume_work *work, struct work_end *end, GError **error);
/* Of volume_create() that of an image. */
enum work_done volume_download(const struct volume_work *work, struct work_end *end,
                               GError **error);
/* The end of work that has made data of an image, which was measured. */
void volume_work_measured(struct work_end *end, const char *name, const struct image_sums *sums);

/* --- volume_point.c --- */

/* Nodes that serve its back end, so far as any is at work: each may have a guest with a volume. */
GPtrArray *volume_nodes(const struct volume_member *member);
/* If a guest that runs has the volume that the work reads, which is on the back end of `member`:
 * copies it as it is at one moment into new data of that name there (SAF-59); `ret_made`: whether
 * that was so. Then the data is whole, or there is an error. Otherwise nothing is done. */
bool volume_point(const struct volume_work *work, struct volume_member *member,
                  enum resource_type type, const char *name, guint64 size_gib, bool *ret_made,
                  GError **error);
/* Ends what an earlier owner of the row has begun so; false: there is nothing that it may be. */
bool volume_point_close(const struct volume_work *work, struct volume_member *member);

/* What an act that has come back `ok`, or not, comes to: nothing, if this process has ended. */
enum work_done volume_done(bool ok);
/* By the word of its row (volume_take.c). */
enum work_done volume_operate(const struct volume_work *work, struct work_end *end, GError **error);

/* --- volume_receive.c, volume_send.c --- */

enum work_done volume_receive(const struct volume_work *work, struct work_end *end, GError **error);
/* False: the request is for others. */
bool volume_receive_handle(struct volume_service *service, struct rpc_request *request);
/* False: it is not answered, the error says why. */
bool volume_send(struct volume_service *service, struct rpc_request *request, GError **error);
/* What a client is told of where it can be reached. */
void volume_transfer_answer(struct rpc_request *request, const struct volume_transfer *transfer);
/* Of data of an image; `client`: the node that it is on. */
struct volume_transfer *volume_transfer_begin(const struct volume_member *member, const char *name,
                                              guint64 bytes, const char *client, GError **error);
/* False: whoever came has gone or got stuck, or nobody is there after `until_ms` (boot clock), at
 * it or to ask for it (`transfer` NULL). `came`: whether somebody was there; kept by the caller. */
bool volume_transfer_goes_on(const struct volume_member *member,
                             const struct volume_transfer *transfer, gint64 until_ms, bool *came,
                             GError **error);

/* --- volume_clean.c --- */

/* One batch of rows that its former process had, so that new work has its turn. False: nothing else
 * is to be done yet. */
bool volume_clean_own(struct volume_caller *caller);
/* How long none of these is due, in ms. */
guint volume_clean_own_rest(const struct volume_caller *caller);
/* One batch of those that somebody has asked for (`cleanup`), or the end of one. How long nothing
 * of that is due, in ms. */
guint volume_clean_asked(struct volume_caller *caller);

/* --- volume_look.c --- */

/* The member of that back end (UUID), which has registered, so the marker was read in this life
 * (SAF-123); or `anyhow`, where that is what the question is about. NULL with an error. */
struct volume_member *volume_member_of(struct volume_service *service, const char *backend,
                                       bool anyhow, GError **error);
/* Whether nobody works on the resource, though its status says so, or recovery is to judge it anew
 * (a fault that is blind, or that somebody asks about): whatever it has stays until then. */
bool volume_is_left(const struct config *config, const struct resource *resource);

/* --- volume_sweep.c --- */

/* Whether work under that claim (0: under any, or none) is on record, of the resource, or of one
 * that makes data for it. */
bool volume_is_under_way(const struct config *config, enum resource_type type, const char *uuid,
                         guint64 claim);
#define VOLUME_SWEEP_MS (60 * 60 * 1000) /* SAF-54 */
/* A task of its own; takes a reference. One that has failed comes again soon, then later and later.
 */
void volume_sweep_run(void *member);
/* Which claims one mastership's copy proves to be of its line of commits (SAF-54). */
struct volume_proof {
    struct stamp stamp;
    guint64 floor; /* the lowest */
};
struct volume_proof volume_proof_of(const struct volume_member *member);
/* Whether the member's copy still is that mastership's, and no restored one (SAF-122). */
bool volume_proof_holds(const struct volume_member *member, const struct volume_proof *proof);
/* The same, asked of the master now, as late before an act as can be: the copy of one that is cut
 * off knows of no later mastership. */
bool volume_proof_asked(struct volume_member *member, const struct volume_proof *proof);
/* That name in the trash of the member's back end, as the copy has it; NULL: it has not. */
const struct trash *volume_trash_of(const struct volume_member *member, const char *name);
/* Whether the copy shows that a name is nobody's. `ret_unproven` (may be NULL): it would be, were
 * its claim proven. */
bool volume_sweep_may(const struct volume_member *member, const struct volume_proof *proof,
                      enum resource_type type, const char *name, bool *ret_unproven);
