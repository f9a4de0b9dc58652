/*
 * A service on record as it speaks to the master's wconfd: what a member of a back end and a
 * scheduler have in common. Embedded in both; see volume_private.h.
 */
#pragma once

#include "core/config/follow.h"
#include "proto/storage/work_table.h"

struct volume_member;
struct volume_work;

struct volume_caller {
    const struct env *env;
    struct follow *follow;
    struct volume_member *member; /* that it is; NULL: it is a scheduler */
    enum storage_binary binary;
    char *host;             /* as it registers */
    char *backend;          /* UUID; "": a scheduler's */
    char *label;            /* for logs: `back end dir1` */
    char *uuid;             /* of its storage_service */
    guint64 id, generation; /* 0: not registered */
    guint working;
    GHashTable *busy; /* keys of rows that its tasks work on, and what those of their partners would
                         be, as far as the copy does not show more */
    GHashTable *seen; /* key of a row without an owner -> struct volume_seen */
    gint64 clean_ms;  /* boot clock: own rows are not cleaned before */
    gint64 asked_ms;  /* likewise those that it was asked for */
    char *cleanup;    /* key of the one whose rows it cleans; NULL: of none */
    guint64 cleanup_us; /* its stamp */
    GHashTable *tried;  /* keys of its rows that were had, or refused */
    char *complaint;    /* the last one that was logged */
    guint hanging;      /* for its beats */
    guint64 free_mib, total_mib;
    gint64 measured_ms; /* boot clock: when that was so */
    struct env_pause pause;
};

void volume_caller_init(struct volume_caller *caller, const struct env *env, struct follow *follow,
                        enum storage_binary binary, const char *backend);
void volume_caller_clear(struct volume_caller *caller);
const struct config *volume_caller_config(const struct volume_caller *caller);
/* Boot clock. */
gint64 volume_caller_ms(const struct volume_caller *caller);
/* Logs it unless it was the last thing that was said; NULL: all is well again. */
void volume_caller_complain(struct volume_caller *caller, const GError *error);
/* One call to the master's wconfd, by its methods; repeated until it is answered. `work`: as long
 * as the copy shows that claim; NULL: nobody's. */
void *volume_call(struct volume_caller *caller, const struct volume_work *work, const char *method,
                  const void *args, GError **error);
/* The same of a method whose answer is a commit's serial alone: the copy has it then. */
bool volume_call_commit(struct volume_caller *caller, const struct volume_work *work,
                        const char *method, const void *args, GError **error);
/* Ends the rights of whoever had the name before, and names those whose rows are to be cleaned. */
bool volume_caller_register(struct volume_caller *caller, GError **error);
/* Its registration went with a master, or is later than a backup: it registers again. */
bool volume_caller_lost(const struct volume_caller *caller);

/* --- beats of one process --- */

struct volume_beats {
    const struct env *env;
    struct follow *follow;
    const char *who; /* for logs: `the scheduler waits` */
    /* Adds its registered struct volume_caller; what their beats carry is up to date. */
    void (*gather)(GPtrArray *callers, void *data);
    /* NULL: nobody wants to know. */
    void (*answered)(const struct beat_result *result, void *data);
    /* Called at most once: the process has lost a name, and must end. */
    void (*ended)(const GError *error, void *data);
    void *data;
    bool now;  /* the next one is due at once */
    bool over; /* no more: it has ended, or its owner goes */
};

/* A task: waits for the first copy, and beats from then on each report_interval. Touches nothing of
 * it once the process is killed. */
void volume_beats_run(void *beats);
