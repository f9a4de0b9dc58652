/* Inside of a migration's source: outgoing_requests.c (what noded is asked), outgoing.c (the task),
 * outgoing_switch.c (the moment at which the guest stands still), outgoing_tell.c (the master gets
 * to know). */
#pragma once

#include "core/node/migration/outgoing.h"

struct outgoing {
    struct guest *guest;
    guint64 generation;
    char *migration;
    char *target_node;
    struct export_target *disks; /* copied by the migration itself; NULL: none */
    gint64 began_ms, deadline_ms;
    gint64 moved_ms; /* last time that more had been sent */
    guint64 moved_bytes;
    gint64 probed_ms, failing_ms; /* the target's own exports */
    gint64 frozen_ms;             /* since when the monitor takes no cancel; 0: it does */
    char *give_up;                /* why it is to be given up; NULL: it is not */
    bool canceled;                /* by a wish, not by a failure */
    bool done;                    /* it is known that the other side has everything */
    bool dropped;                 /* the guest is another's concern now */
    bool stale_asked;             /* the master was asked to record the replica as stale */
};

gint64 outgoing_now(const struct outgoing *out);
/* Remembers why, if nothing was remembered before. */
void outgoing_give_up(struct outgoing *out, const char *why, const char *detail);
/* Asks how far it is; false: no answer. `ret_info` is to be cleared with g_free(info.why). */
bool outgoing_look(struct outgoing *out, struct migration_info *ret_info);
/* The guest's generation is not here any more, or not this migration's concern. */
bool outgoing_is_over(const struct outgoing *out);
/* One try to give it up. True: the guest is here as before, with `out` ended. Sets out->done
 * instead if it is too late. A monitor that stays frozen costs the guest its process. */
bool outgoing_take_back(struct outgoing *out);

/* With the guest locked and standing still: hands over. On return the guest is in phase migrated,
 * or out->give_up is set and it is here as before, or neither: look again. */
void outgoing_switch(struct outgoing *out);
/* With the guest locked, the other side having everything: this side ends. False: not yet. */
bool outgoing_leave(struct outgoing *out);

/* A guest that is gone from here, with that on disk: tells the master until it answers, and keeps
 * what came of it. */
void outgoing_tell(struct outgoing *out);

/* Its end, for the record and for those who ask; not on disk yet. */
void outgoing_note_end(struct outgoing *out, enum migration_state state, const char *why);
void outgoing_save(struct guest *guest);

/* For a guest that has none, with the migration in its record; and lets it begin. */
struct outgoing *outgoing_task_new(struct guest *guest);
void outgoing_task_start(struct outgoing *out);
/* Until that task has ended. False: killed, or it took longer than `wait_ms`. */
bool outgoing_await_end(struct guest *guest, const struct outgoing *out, guint wait_ms);
