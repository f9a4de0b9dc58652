/*
 * Decision records: what was seen, decided, rejected, and when it is looked at next (ARP-68). A
 * record is written when it says something new, not in every pass: each author's newest record
 * about a subject is compared with what it would write now. The newest LIMIT_DECISIONS_PER_SUBJECT
 * stay, and with them the newest of each author.
 *
 * One that says so (`event`) is a message too, to whoever follows events: each time that something
 * happens is one, whatever the record before says. They stay for LIMIT_EVENT_AGE_S if they are
 * among the newest LIMIT_EVENTS, beside the others of their subject.
 */
#pragma once

#include "core/config/ages.h"
#include "core/config/model.h"

#define RECOVERY_AUTHOR "watcher/recovery" /* of what is on record about tasks */
#define ALERT_AUTHOR "watcher/alert"       /* of what a person should look at */

struct decisions;

/* An index of the records of a configuration, kept from pass to pass. */
struct decisions *decisions_new(void);
void decisions_free(struct decisions *decisions);
/* Follows the configuration: `changes` as follow.h gives them, NULL after a snapshot. */
void decisions_update(struct decisions *decisions, const struct config *config,
                      const GPtrArray *changes);

/* The newest record of an author about a subject, borrowed from `config`; NULL if there is none. */
const struct decision *decisions_latest(const struct decisions *decisions,
                                        const struct config *config, const char *subject,
                                        const char *author);
/* The newest that is an event. */
const struct decision *decisions_latest_event(const struct decisions *decisions,
                                              const struct config *config, const char *subject,
                                              const char *author);

/* Whether the newest record of an author says anything but that all is well. From the index alone:
 * for looks at many subjects. */
bool decisions_open(const struct decisions *decisions, const char *subject, const char *author);

/* Those of which decisions_open() is true: char *, borrowed until the next update; to be unreffed.
 */
GPtrArray *decisions_open_subjects(const struct decisions *decisions, const char *author);

/* Adds to `changes` what it takes to have `decision` (stolen; at_us, and uuid if it has none, are
 * filled in here, texts that are too long are cut) on record, unless its author's newest record of
 * its subject says the same. Returns whether it is new. */
bool decisions_record(const struct decisions *decisions, const struct config *config,
                      const struct env *env, struct decision *decision, GPtrArray *changes);

/* The same for one that is written in any case: an event, or what a commit tells of itself. Once
 * for each change that it tells of, in its commit: a repetition of that is refused with it. */
void decisions_add(const struct decisions *decisions, const struct config *config,
                   const struct env *env, struct decision *decision, GPtrArray *changes);
/* Events that nobody needs any more, the oldest first: const struct decision *, borrowed from
 * `config`; to be unreffed. What says that something without a record is there (subject_kind
 * `thing`) stays until that is gone. */
GPtrArray *decisions_old_events(const struct decisions *decisions, const struct config *config,
                                struct ages *ages);
/* How many there are. */
guint decisions_events(const struct decisions *decisions);
/* How long ago it was made. */
gint64 decision_age_us(struct ages *ages, const struct decision *decision);

/* A record about an object, summary and everything else left to the caller. */
struct decision *decision_about(const char *kind, const char *uuid, const char *name,
                                const char *author, enum verdict verdict, const char *state);
struct decision *decision_about_instance(const struct instance *instance, const char *author,
                                         enum verdict verdict, const char *state);
/* Sets a text of a record. */
void decision_set(char **text, const char *format, ...) G_GNUC_PRINTF(2, 3);
