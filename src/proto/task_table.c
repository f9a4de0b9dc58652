/* See task_table.h. */
#include "proto/task_table.h"

#include <string.h>

/* --- words --- */

static const char *const none_words[] = {""};
#define FACT_BEGIN(set) static const char *const set##_words[] = {
#define FACT(NAME, word) word,
#define FACT_END(set)                                                                              \
    }                                                                                              \
    ;
#include "proto/tasks.def"

#define KIND(kind, doc, a, b, c, d)                                                                \
    {#kind,                                                                                        \
     doc,                                                                                          \
     {TASK_FACTS_##a, TASK_FACTS_##b, TASK_FACTS_##c, TASK_FACTS_##d},                             \
     {a##_words, b##_words, c##_words, d##_words}},
const struct task_kind_row task_kind_rows[TASK_KINDS] = {
#include "proto/tasks.def"
};

#define OPERATION(NAME, word) word,
const char *const task_operation_words[TASK_OPERATIONS] = {
#include "proto/tasks.def"
};

#define FINAL(NAME, word) word,
const char *const task_final_words[TASK_FINALS] = {
#include "proto/tasks.def"
};

/* --- tasks --- */

enum { KEEPS_OFF = TASK_KEEPS_OFF, FENCE_ALL = TASK_FENCE_ALL };

#define TASK(kind, NAME, word, operation, rules, api, owner, asked, finisher, flags)               \
    {TASK_KIND_##kind, word, TASK_OPERATION_##operation, #rules, api, TASK_##owner, TASK_##asked,  \
     finisher,         flags},
const struct task_row task_rows[] = {
#include "proto/tasks.def"
    {0}};

const struct task_row *task_row_of(enum task_kind kind, const char *word)
{
    for (const struct task_row *row = task_rows; row->word; row++)
        if (row->kind == kind && strcmp(row->word, word) == 0)
            return row;
    return NULL;
}

/* --- outcomes --- */

struct outcome_row {
    const char *rule;
    enum task_kind kind;
    const char *rules;           /* "ANY_RULES": of every task of the kind */
    guint facts[TASK_FACT_SETS]; /* bits of the values that fit */
    enum task_final final;
    guint flags;
};

/* The facts of a row are bits; a name is in one set only. */
#define FACT_BEGIN(set)
#define FACT(NAME, word) NAME = 1u << TASK_FACT_##NAME,
#define FACT_END(set)
#define GROUP(NAME, facts) NAME = facts,
enum fact_bits {
#include "proto/tasks.def"
};
#define ANY (~0u)

enum {
    ALERT = OUTCOME_ALERT,
    ALERT_HIGH = OUTCOME_ALERT_HIGH,
    HALF = OUTCOME_HALF,
    CLOSE = OUTCOME_CLOSE,
    MOVES = OUTCOME_MOVES,
    RELEASE_SOURCE = OUTCOME_RELEASE_SOURCE,
    RELEASE_TARGET = OUTCOME_RELEASE_TARGET,
    RELEASE_ALL = OUTCOME_RELEASE_ALL,
    TAKE_TARGET = OUTCOME_TAKE_TARGET
};

#define OUTCOME(rule, kind, rules, a, b, c, d, final, flags)                                       \
    {rule, TASK_KIND_##kind, #rules, {a, b, c, d}, TASK_FINAL_##final, flags},
static const struct outcome_row outcomes[] = {
#include "proto/tasks.def"
};

/* What no row names (RCV-82). */
static const struct outcome_row no_row = {
    .rule = "RCV-82", .final = TASK_FINAL_ERROR, .flags = OUTCOME_ALERT};

static bool fits(const struct outcome_row *outcome, const struct task_row *row,
                 const struct task_facts *facts, bool moves)
{
    if ((outcome->flags & OUTCOME_MOVES) && !moves)
        return false;
    if (outcome->kind != row->kind ||
        (strcmp(outcome->rules, "ANY_RULES") != 0 && strcmp(outcome->rules, row->rules) != 0))
        return false;
    for (guint i = 0; i < TASK_FACT_SETS; i++)
        if (!(outcome->facts[i] & (1u << facts->values[i])))
            return false;
    return true;
}

int task_outcome_index(const struct task_row *row, const struct task_facts *facts, bool moves)
{
    for (guint i = 0; i < G_N_ELEMENTS(outcomes); i++)
        if (fits(&outcomes[i], row, facts, moves))
            return (int)i;
    return -1;
}

guint task_outcome_count(void)
{
    return G_N_ELEMENTS(outcomes);
}

const char *task_outcome_rule(guint index)
{
    return outcomes[index].rule;
}

/* A service's half made data is finished only where everything is allowed (RCV-23). */
static bool may_finish(const struct task_row *row, enum rectify_unstable rectify)
{
    return rectify == RECTIFY_ALL || (rectify == RECTIFY_JOBS && row->owner == TASK_BY_JOB);
}

static const char *finisher_of(const struct task_row *row, guint flags)
{
    if (flags & OUTCOME_CLOSE)
        return "OP_INSTANCE_SHUTDOWN";
    return (flags & OUTCOME_HALF) && *row->finisher ? row->finisher : NULL;
}

struct task_outcome task_outcome_of(const struct task_row *row, const struct task_facts *facts,
                                    bool moves, enum rectify_unstable rectify)
{
    struct task_facts judged = *facts;
    bool crashed = row->kind == TASK_KIND_instance && facts->values[1] == TASK_FACT_CRASHED &&
                   facts->values[2] == TASK_FACT_WHOLE;
    if (crashed)
        judged.values[1] = TASK_FACT_SHUT_OFF;
    int index = task_outcome_index(row, &judged, moves);
    const struct outcome_row *found = index < 0 ? &no_row : &outcomes[index];
    struct task_outcome outcome = {.rule = found->rule,
                                   .final = found->final,
                                   .flags = found->flags | (crashed ? OUTCOME_ALERT : 0),
                                   .crashed = crashed};
    if (may_finish(row, rectify))
        outcome.finisher = finisher_of(row, outcome.flags);
    return outcome;
}
