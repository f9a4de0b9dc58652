/*
 * The reason trail of an opcode: a list of [source, text, nanoseconds since 1970], oldest first.
 * Who submits a job begins it; luxid adds what itself does, in Ganeti's words: one entry when it
 * takes the job, one when it finds its process dead. Used where luxid puts jobs on record.
 */
#pragma once

#include "proto/records.h"

/* The job has its id: which opcode of which job each trail is of. */
void reason_add_submitted(struct job *job);
/* The trail of each opcode that has not ended says what has been found. */
void reason_add_death(struct job *job, const char *found, guint64 now_us);

/* What whoever submitted it has said first; NULL: nothing. Borrowed. */
const char *reason_given(const json_t *reason);

/* Shape of a reason trail: a list of [source, text, nanoseconds], or null. */
bool reason_check(const json_t *reason, GError **error);
/* A trail that has that shape, and is new: without control characters (SAF-108). */
bool reason_check_lines(const json_t *reason, GError **error);
