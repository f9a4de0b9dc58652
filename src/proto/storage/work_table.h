/*
 * Which operations have a row of work, and what becomes of what its owner leaves behind: the WORK
 * rows of tasks.def, read. Nothing else says which statuses are tracked (CLN-12); who accepts,
 * steps, cleans or resets takes a table, so that a test can bring one of its own.
 */
#pragma once

#include "proto/task_table.h"

/* What a service does with a resource whose row has lost its owner. */
enum work_routine {
    WORK_DROP_MADE, /* removes what that claim has made */
    WORK_DO_AGAIN,  /* carries the operation out again */
    WORK_LOOK       /* what is really there decides between `done` and `cleaned` */
};

/* One WORK. Texts live for ever. */
struct work_row {
    enum task_kind kind;
    enum task_operation operation;
    const char *status; /* of the resource meanwhile */
    guint from; /* bits of enum task_final in which it is accepted; 0: it makes the resource */
    enum task_final done; /* what it is then; TASK_FINAL_REMOVED: the record goes */
    enum work_routine routine;
    enum task_final cleaned;
    /* Of its partner, another resource that is in that status meanwhile (SAF-121); NULL: it has
     * none. */
    const char *partner_status;
    enum task_kind partner_kind;
    bool makes_partners; /* the data that it makes is the partner's, not the resource's */
};

extern const struct work_row work_rows[]; /* ends with a row without a status */

/* NULL: the table has no such row; the operation is a word of OPERATION. */
const struct work_row *work_row_of(const struct work_row *table, enum task_kind kind,
                                   const char *operation);
/* Whether a resource in that status (a word) may be asked for it. */
bool work_accepts(const struct work_row *row, const char *status);
/* `available, error or error_deleting`, for messages; free with g_free(). */
char *work_accepted_words(const struct work_row *row);
