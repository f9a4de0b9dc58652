/*
 * What follows when a task was left behind: the rows of tasks.def, read (docs/design/recovery.md;
 * docs/requirements/requirements-recovery.md, RCV-46 to 88). Pure: it is given what was found, and
 * answers what the record becomes. Every combination has exactly one outcome.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

#include "proto/records.h"

/* What was found of one side of a resource: PLACE_…, of the sets of tasks.def. */
#define FACT_BEGIN(set)                                                                            \
    enum task_##set                                                                                \
    {
#define FACT(NAME, word) TASK_FACT_##NAME,
#define FACT_END(set)                                                                              \
    TASK_FACTS_##set                                                                               \
    }                                                                                              \
    ;
#include "proto/tasks.def"

#define TASK_FACTS_none 1
#define TASK_FACT_SETS 4 /* at most so many sets of facts are asked of a kind */

#define KIND(kind, ...) TASK_KIND_##kind,
enum task_kind {
#include "proto/tasks.def"
    TASK_KINDS
};

#define OPERATION(NAME, word) TASK_OPERATION_##NAME,
enum task_operation {
#include "proto/tasks.def"
    TASK_OPERATIONS
};

#define FINAL(NAME, word) TASK_FINAL_##NAME,
enum task_final {
#include "proto/tasks.def"
    TASK_FINALS
};

/* Whose word says whether it is still under way. */
enum task_owner_kind { TASK_BY_JOB, TASK_BY_ROW, TASK_BY_REQUEST };
enum task_place_asked { TASK_AT_HOLDER, TASK_BOTH_ENDS, TASK_ALL_MEMBERS, TASK_HOSTS_OF_NETWORK };

enum task_flags {
    TASK_KEEPS_OFF = 1 << 0, /* what it forbids stays forbidden while a fault names it (SAF-84) */
    TASK_FENCE_ALL = 1 << 1  /* every host that its owner may have sent to refuses it first */
};

enum outcome_flags {
    OUTCOME_ALERT = 1 << 0,
    OUTCOME_ALERT_HIGH = 1 << 1,
    OUTCOME_HALF = 1 << 2,  /* the task's opcode finishes it */
    OUTCOME_CLOSE = 1 << 3, /* as HALF: what is there of the guest is closed */
    OUTCOME_MOVES = 1 << 4, /* it counts only with a migration on record */
    OUTCOME_RELEASE_SOURCE = 1 << 5,
    OUTCOME_RELEASE_TARGET = 1 << 6,
    OUTCOME_RELEASE_ALL = 1 << 7,
    OUTCOME_TAKE_TARGET = 1 << 8 /* place, size, image or type that were meant are on record now */
};

/* One TASK. Texts live for ever. */
struct task_row {
    enum task_kind kind;
    const char *word;
    enum task_operation operation;
    const char *rules;    /* tasks of one kind with the same ones share their outcomes */
    const char *api_word; /* "": the API shows none */
    enum task_owner_kind owner;
    enum task_place_asked asked;
    const char *finisher; /* opcode; "": nothing finishes it */
    guint flags;          /* enum task_flags */
};

struct task_kind_row {
    const char *word, *doc;
    guint values[TASK_FACT_SETS]; /* how many values each set of its facts has; 1: not asked */
    const char *const *words[TASK_FACT_SETS];
};

/* What was found: a value of each set of the kind, in the order of its KIND; 0 where unused. */
struct task_facts {
    guint values[TASK_FACT_SETS];
};

struct task_outcome {
    const char *rule;
    enum task_final final; /* what the record says if `finisher` is NULL */
    guint flags;           /* enum outcome_flags */
    const char *finisher;  /* opcode of the job that is submitted instead; NULL: none */
    bool crashed;          /* it counted as shut off (RCV-80) */
};

extern const struct task_row task_rows[]; /* ends with a row without a word */
extern const struct task_kind_row task_kind_rows[TASK_KINDS];
extern const char *const task_operation_words[TASK_OPERATIONS];
extern const char *const task_final_words[TASK_FINALS];

/* NULL: the table does not know the word, or it is empty. */
const struct task_row *task_row_of(enum task_kind kind, const char *word);
/* `moves`: a migration is on record. */
struct task_outcome task_outcome_of(const struct task_row *row, const struct task_facts *facts,
                                    bool moves, enum rectify_unstable rectify);

/* For the test of the table: how many OUTCOME rows there are, which of them says it (-1: none, so
 * RCV-82), and the rule of one. */
guint task_outcome_count(void);
int task_outcome_index(const struct task_row *row, const struct task_facts *facts, bool moves);
const char *task_outcome_rule(guint index);
