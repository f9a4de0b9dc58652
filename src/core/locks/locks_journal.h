/*
 * The lock journal (FILE_RUN, locks.journal): what wconfd's locks were, so that a restarted wconfd
 * knows them. Text; every batch of lock changes is one line, appended before anybody is answered: a
 * checksum of 16 hexadecimal digits, a space, a JSON document. It lives on a tmpfs: a reboot ends
 * it, and with it every owner.
 *
 *   … {"journal":"UUID","epoch":3,"version":3}
 *   … [["17","job-17-x",4711,"instance/web1","exclusive",1791000000000000]]   holds it since then
 *   … [{"owner":{…},"locks":[…],"priority":0,"ticket":7,…}]                   waits (lock_waiter)
 *   … [{"over":{…}},["18","job-18-x",4712,"node/U","shared",1791000000000000]]   waits no more,
 *                                                                               holds
 *
 * A request that waits keeps its place over a restart: its client asks again and takes it over. A
 * waiting union is not here: it reserves nothing, so its client loses nothing by asking again.
 *
 * A last line without its end was never answered: it is ignored. Any other damage makes the journal
 * worthless: it is replaced by a new one under a new id, and thus a new epoch begins without locks
 * (SAF-01).
 */
#pragma once

#include "core/locks/locks.h"
#include "proto/env.h"

#define JOURNAL_FILE "locks.journal"

struct locks_journal;

/* Reads the journal into `locks` (empty before). `ret_note` says what was wrong with it, NULL if
 * nothing was: "none", "line 7 is damaged"; then `locks` is empty and the id is new. Error:
 * STORAGE, it cannot be read at all. */
struct locks_journal *locks_journal_open(const struct env *env, struct locks *locks,
                                         char **ret_note, GError **error);
void locks_journal_free(struct locks_journal *journal);

const char *locks_journal_id(const struct locks_journal *journal);
/* Epoch under which it was written last; 0 for a new one. */
guint64 locks_journal_epoch(const struct locks_journal *journal);

/* Writes it anew from `locks`, under this epoch: once after the campaign. */
bool locks_journal_begin(struct locks_journal *journal, struct locks *locks, guint64 epoch,
                         GError **error);
/* Appends one batch (GPtrArray of struct locks_event; nothing if it is empty), and makes the file
 * shorter when it has grown far beyond what it says. Error: nobody may be told of these changes. */
bool locks_journal_append(struct locks_journal *journal, struct locks *locks,
                          const GPtrArray *events, GError **error);
