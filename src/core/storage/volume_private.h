/* What the files of the volume services share; see volume_service.h. */
#pragma once

#include "core/config/follow.h"
#include "core/config/resource.h"
#include "core/storage/volume_service.h"
#include "proto/storage/work_table.h"

struct volume_service {
    const struct env *env;
    struct follow *follow;
    void (*ended)(const GError *error, void *data);
    void *data;
    GHashTable *members; /* UUID of a back end -> struct volume_member */
    guint working;       /* operations of all members */
    bool over;           /* it has ended, or is freed */
};

/* One back end of this node. Lives as long as one of its tasks. */
struct volume_member {
    struct volume_service *service;
    guint references;
    struct backend
        *backend; /* as it was when the member began: what may change is asked of the copy */
    bool over;    /* the back end is this node's no more */
    char *uuid;   /* of its storage_service */
    guint64 id, generation; /* 0: not registered */
    guint working;
    GHashTable
        *busy; /* keys of rows that its tasks work on, as far as the copy does not show more */
    GHashTable *seen; /* key of a row without an owner -> struct volume_seen */
    bool sweeping;
    gint64 sweep_ms, clean_ms; /* boot clock: not before */
    guint left;                /* that the last sweep could not prove to be nobody's */
    char *complaint;           /* the last one that was logged */
    struct env_pause pause;
};

/* A row under a claim of the member's, with the resource as the copy had it then. */
struct volume_work {
    struct volume_member *member;
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
/* Logs it unless it was the last thing that was said; NULL: all is well again. */
void volume_member_complain(struct volume_member *member, const GError *error);
const struct config *volume_member_config(const struct volume_member *member);
/* Its registration went with a master, or is later than a backup: it registers again. */
bool volume_member_lost(const struct volume_member *member);

/* --- volume_take.c --- */

/* Whether a row is not to be begun yet, or cleaned: a volume goes after its snapshots, whose rows
 * others may have (CLN-60). */
bool volume_work_waits(const struct config *config, const struct worker *row);
/* Begins what it may begin; how long nothing else is due, in ms. */
guint volume_take(struct volume_member *member);

/* --- volume_work.c --- */

/* One call to the master's wconfd, by its methods; repeated until it is answered. `work`: as long
 * as the copy shows that claim; NULL: nobody's. */
void *volume_call(struct volume_member *member, const struct volume_work *work, const char *method,
                  const void *args, GError **error);
/* The row as the copy has it, which has at least the serial `claim`; NULL: it is another's. */
struct volume_work *volume_work_new(struct volume_member *member, const char *key, guint64 claim);
void volume_work_free(void *work);
/* What ends it; the caller fills in the rest. */
struct work_end *volume_work_end(const struct volume_work *work);
/* Takes the resource's data out of the record; the copy knows of it then. */
bool volume_work_unname(const struct volume_work *work, GError **error);
/* Ends rows, at most LIMIT_WORK_ITEMS struct work_end. With the first one's claim as that of all
 * calls. The copy shows what came of it, if it was answered. False: nobody knows. */
bool volume_work_finish(struct volume_member *member, const struct volume_work *first,
                        GPtrArray *items, GError **error);
/* Whether the resource is what the row says; else only the row goes (CLN-17, 18). */
bool volume_work_stands(const struct volume_work *work);

/* --- operations: each fills in `end`; of resources of every kind --- */

enum work_done volume_create(const struct volume_work *work, struct work_end *end, GError **error);
enum work_done volume_delete(const struct volume_work *work, struct work_end *end, GError **error);
enum work_done volume_extend(const struct volume_work *work, struct work_end *end, GError **error);
/* By the word of its row (volume_take.c). */
enum work_done volume_operate(const struct volume_work *work, struct work_end *end, GError **error);

/* --- volume_clean.c --- */

/* Whether the copy has rows of this service on which none of its tasks works; `covered`: that were
 * touched before its registration. */
bool volume_clean_needed(const struct volume_member *member, bool covered);
/* One batch of those that were touched before the registration, so that new work has its turn.
 * False: not all could be cleaned. */
bool volume_clean(struct volume_member *member, GError **error);

/* --- volume_sweep.c --- */

/* A task of its own; takes a reference. */
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
