/*
 * Rules of operators about jobs (Ganeti's job filters; FUT-13): which may run, wait or are refused,
 * by id, opcode, reason or user. Parsed once from the configuration's job_filter objects, then
 * asked for each job.
 *
 * Rules are taken in the order of (priority, watermark, uuid). The first one whose predicates all
 * hold decides, unless it says CONTINUE; none: the job may run. A predicate is [what, filter], with
 * a filter as of queries (filter.h) over these fields:
 *   jobid   id; the word "watermark" as the value: the newest job when the rule was made
 *   opcode  OP_ID and every parameter; holds if it does for one opcode of the job
 *   reason  source, reason, timestamp (ns); holds if it does for one entry of an opcode's trail
 *   user    user: who submitted it, the name of an account of the master
 * An action is "ACCEPT", "CONTINUE", "PAUSE", "REJECT" or ["RATE_LIMIT", n]: at most n jobs for
 * which this rule decides run at once.
 */
#pragma once

#include "core/config/model.h"

enum rule_action { RULE_ACCEPT, RULE_CONTINUE, RULE_PAUSE, RULE_REJECT, RULE_RATE_LIMIT };

struct rule {
    const struct job_filter *filter; /* borrowed of the configuration */
    enum rule_action action;
    guint64 limit;         /* of RULE_RATE_LIMIT */
    GPtrArray *predicates; /* struct predicate */
};

struct rules;

/* WRONG_INPUT with the path of what is wrong, LIMIT. */
bool rules_check(const json_t *predicates, const json_t *action, GError **error);
/* The same of a whole rule: its size and the shape of its reason too. */
bool rules_check_filter(const struct job_filter *filter, GError **error);

/* WRONG_INPUT, with the nearest, for an opcode that the rule asks for by a name that there is not:
 * it would protect nothing. For rules that people make. */
bool rules_check_opcodes(const struct job_filter *filter, GError **error);

/* The order in which rules are asked. */
int rules_compare(const struct job_filter *a, const struct job_filter *b);
/* Of all job_filter objects; one that this version cannot read is passed over, with a warning. It
 * is to be made anew when one of them has changed. */
struct rules *rules_new(const struct config *config);
void rules_free(struct rules *rules);
guint rules_count(const struct rules *rules);
/* The rule that decides about the job; NULL: none does. Borrowed. */
const struct rule *rules_judge(const struct rules *rules, const struct job *job);

/* Limits in the reasons of the job itself: an entry whose text is "rate-limit:N:NAME" means that
 * at most N jobs with just that text run at once. GPtrArray of these texts, borrowed of the job; to
 * be unreffed. */
GPtrArray *rules_own_limits(const struct job *job);
/* N of such a text; 0: it is none. */
guint64 rules_own_limit(const char *text);
