/*
 * `fettle why INSTANCE|NODE`: what people and tools have had done to it, as jobs tell it, and how
 * it stands now. For why.c.
 */
#pragma once

#include "cli/cli.h"

/* Fields of a decision, which rows of jobs have too: one entry of the answer. */
extern const char *const why_fields[];
enum {
    WHY_AT,
    WHY_NAME,
    WHY_STATE,
    WHY_VERDICT,
    WHY_SUMMARY,
    WHY_EVIDENCE,
    WHY_POLICY,
    WHY_REJECTED,
    WHY_REPAIR,
    WHY_JOB_IDS,
    WHY_NEXT,
    WHY_SERIAL,
    WHY_EVENT,
    WHY_LEVEL,
    WHY_TASK,
    WHY_OLD,
    WHY_NEW,
    WHY_RULE,
    WHY_HOST
};
/* The verdict of an entry that is a job. */
#define WHY_OF_JOB "job"

/* The jobs that are about `name`, archived ones too, as entries, newest first; without those that a
 * decision of `decisions` has submitted. The value null, and a line on standard error, if luxid is
 * of a version that cannot tell. */
json_t *why_jobs_about(struct cli *cli, const char *name, const json_t *decisions, GError **error);
/* Decisions and jobs as one list, newest first. */
json_t *why_merge(const json_t *decisions, const json_t *jobs);

/* Says who has drained the node, when and why, if it is; `said` whether. `jobs`: those about it. */
bool why_print_drained(struct cli *cli, const char *node, const json_t *jobs, bool *said,
                       GError **error);
/* Names the jobs that wait for the node to answer. */
bool why_print_waiting(struct cli *cli, const char *node, bool *said, GError **error);
/* That nothing is decided while a person has paused the watcher, if it is so. */
bool why_print_pause(struct cli *cli, GError **error);
