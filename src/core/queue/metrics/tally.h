/*
 * What has come to its end since luxid was started, as metrics tell it: jobs and their opcodes, how
 * long those took, repairs; and events. It knows no clock: how long something took is on its
 * record. luxi.c tells of each, metrics_call.c asks.
 */
#pragma once

#include "proto/records.h"

struct tally;

struct tally *tally_new(void);
void tally_free(struct tally *tally);
/* Its record has just become final. */
void tally_job(struct tally *tally, const struct job *record);
/* It was just put on record. */
void tally_tag(struct tally *tally, const char *tag);
void tally_decision(struct tally *tally, const struct decision *decision);
/* Sets jobs_ended, job_seconds, queue_wait, repairs_ended and events of the document. */
void tally_tell(const struct tally *tally, json_t *document);
