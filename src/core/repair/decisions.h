/*
 * Decision records: what was seen, decided, rejected, and when it is looked at next (ARP-68). A
 * record is written when it says something new about its subject, not in every pass; the newest
 * LIMIT_DECISIONS_PER_SUBJECT stay.
 */
#pragma once

#include "core/config/model.h"
#include "proto/env.h"

struct decisions;

/* An index of the records in `config`; valid while the configuration does not change. */
struct decisions *decisions_new(const struct config *config);
void decisions_free(struct decisions *decisions);

/* The newest record about a subject; NULL if there is none. */
const struct decision *decisions_latest(const struct decisions *decisions, const char *subject);

/* Adds to `changes` what it takes to have `decision` (stolen; uuid and at_us are filled in here) on
 * record, unless the newest record of its subject says the same. Returns whether it is new. */
bool decisions_record(struct decisions *decisions, const struct env *env, struct decision *decision,
                      GPtrArray *changes);

/* A record about an instance, everything else left to the caller. */
struct decision *decision_about_instance(const struct instance *instance, const char *author,
                                         enum verdict verdict, const char *state);
