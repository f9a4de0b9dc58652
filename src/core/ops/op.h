/*
 * One opcode under way: what the runner (runner.c) gives to an opcode's body and the body's
 * helpers. A body is a row {id, declare, check, exec} in one of the ops_*.c files; op_impl_find()
 * knows them all.
 *
 *   declare  names the locks that are needed, from the configuration as it is now. Runs without
 *            locks and again with them (FUT-05). May ask nodes, changes nothing.
 *   check    refuses what cannot be done (OpPrereqError). Changes nothing; ends a dry run.
 *   exec     acts (OpExecError).
 *
 * Every step may be the last one: the process can be killed after any call. So the record says what
 * is about to happen before it happens, and each call to a node can be repeated (SAF-20).
 */
#pragma once

#include "core/report/reports.h"

struct op;
struct placement_sums;

typedef bool (*op_step)(struct op *op, GError **error);

/* Which instances the steps look at: a job's process is given no others (core/config/view.h). Room
 * and addresses, which depend on all, are asked for: op_gather_room(), op_address_user(). */
enum op_sees {
    SEES_ALL,   /* lists them, or counts on their being all there */
    SEES_NAMED, /* that of its field instance_name, and what its field volume names; none, if it has
                   no such field */
    SEES_TAGGED, /* the one that is tagged, if it is one; all with a filter */
};

struct op_impl {
    const char *id; /* "OP_INSTANCE_STARTUP" */
    op_step declare, check, exec;
    enum op_sees sees;
    bool urgent; /* its locks go before all that wait */
    bool
        submits; /* its result has `jobs`, lists of opcodes that are queued when it has succeeded */
};

/* NULL for an opcode that jobs cannot run. */
const struct op_impl *op_impl_find(const char *id);

/* The jobs that an opcode asks for which has ended well and `submits`: a list of lists of opcodes;
 * NULL: none. Borrowed from it. */
json_t *op_wanted_jobs(const struct job_op *op);
/* Whether one of the job's does: however those after it ended, but not if the job was canceled.
 * luxid puts them on record with the job's end (core/queue/child_jobs.h). */
bool op_wants_jobs(const struct job *job);

/* Names and UUIDs of the instances that a job's opcodes look at: array of char * borrowed from the
 * job; unref it. NULL: all. */
GPtrArray *op_names_seen(const struct job *job);

struct op {
    const struct env *env;
    struct follow *follow;
    const struct op_common *common;
    const void *params; /* the opcode's own record */
    guint64 job;
    struct owner owner;
    struct stamp stamp;
    GPtrArray *locks;  /* of struct lock_request; emptied before each declare */
    json_t *result;    /* exec may set it; NULL stands for null */
    bool changed;      /* something has, or may have, been changed outside of this process */
    bool repeated;     /* a call of op_act() ended without telling what it has done */
    bool asks_nobody;  /* only declares, from the configuration alone (predict_locks.h) */
    const bool *asked; /* whether the job has been asked to give up; NULL: it never is */
    void (*log)(const char *message, void *data);
    /* `state`: {"what", "done", "total", "unit"}; stolen. NULL: nobody is told. */
    void (*progress)(json_t *state, void *data);
    void *log_data;
    gint64 progress_ms; /* boot time of the last op_progress() that was logged */
    char *progress_what;

    /* What the body carries from one step to the next; freed by the runner. */
    char *primary;               /* chosen node */
    char *secondary;             /* chosen node */
    struct reports *reports;     /* of the nodes that were asked last; NULL: none were */
    struct placement_sums *sums; /* what is promised of these nodes; NULL: not asked for */
    char *reservation;           /* UUID of what op_reserve_room() has made; NULL: nothing */
    struct instance *taken_over; /* with a dead job's mark, before this one's replaced it */
    GPtrArray *enforced;         /* records that op_find_instance() has given out which are not as
                                  * they stand in the configuration; op_init() makes it */
};

/* After the members that its user sets. */
void op_init(struct op *op);
void op_clear(struct op *op);

void op_log(struct op *op, const char *format, ...) G_GNUC_PRINTF(2, 3);
/* How far something that takes long has come: one entry of type "progress" in the job's log, of
 * which only the newest for `what` is kept. Call it as often as you like: what comes less than
 * PROGRESS_PAUSE_MS after the last one is dropped, unless it is the end. `what` is a phrase for
 * people ("copy to node2"), `unit` a word ("MiB"); `total` 0: unknown, nothing is logged. */
void op_progress(struct op *op, const char *what, guint64 done, guint64 total, const char *unit);
const struct config *op_config(const struct op *op);
guint64 op_now_seconds(const struct op *op);

/* Whether somebody has asked for the job's end (CancelJob), by a signal or on record; brings the
 * copy of the configuration up to date. A body that can be given up in the middle asks, and ends
 * with CANCELED then; before an opcode begins, and while it waits for its locks, the runner does.
 */
bool op_canceled(struct op *op);
/* The same as far as is known without asking; does not wait. */
bool op_is_asked(const struct op *op);

/* Adds a lock to the declaration; `node_uuid` "" adds nothing. */
void op_lock(struct op *op, const char *name, enum lock_mode mode);
void op_lock_instance(struct op *op, const char *instance_name);
void op_lock_node(struct op *op, const char *node_uuid, enum lock_mode mode);
/* What changes an instance declares at least: it, and both its nodes shared. NULL: it does not
 * exist. Borrowed, as from op_find_instance(). */
const struct instance *op_declare_instance(struct op *op, const char *name, GError **error);
/* Whoever looks for room on a node and takes it holds its node-res lock, exclusively, until what it
 * takes is on record, so that no two take the same (FUT-08); "" adds nothing. */
void op_lock_room(struct op *op, const char *node_uuid);
/* It is on record, or not needed: others may look. A failure is no harm, they wait longer. */
void op_unlock_room(struct op *op);
/* Puts that it will be taken on record, and unlocks it: for an instance that goes there after
 * something that can take long. */
bool op_reserve_room(struct op *op, const char *instance_name, const char *node_uuid,
                     guint64 memory, GError **error);
/* Ends that reservation, if there is one, in the very change that takes the room (FUT-07). */
void op_use_room(struct op *op, GPtrArray *changes);
/* It was not needed. A failure is no harm: it ends with this process. */
void op_release_room(struct op *op);
/* Shared by whoever puts a card into the network, exclusive for a change of it. */
void op_lock_network(struct op *op, const char *network_uuid, enum lock_mode mode);
/* The cards are on record: networks may change. As op_unlock_room(). */
void op_unlock_networks(struct op *op);
/* For a change of what no job relies on while it acts on the node (FUT-01); exclusive. */
void op_lock_node_params(struct op *op, const char *node_uuid);

/* Objects; UNKNOWN_ENTITY. Borrowed until the copy of the configuration changes: not across calls
 * that commit or refresh. What a fault keeps in force is the instance's mark here (SAF-84): so no
 * opcode has to know of it. */
const struct instance *op_find_instance(const struct op *op, const char *name, GError **error);
const struct node *op_find_node(const struct op *op, const char *name, GError **error);
const struct replica *op_replica_of(const struct op *op, const struct instance *instance);
/* Whether a value is "yes", "no", or "" of a flag that is not given. WRONG_INPUT. */
bool op_is_answer(const char *flag, const char *value, GError **error);
/* True for a node that is unknown or was said to be dead. */
bool op_node_offline(const struct op *op, const char *node_uuid);
/* UUIDs of all nodes that are not offline, but for `except` (NULL: all), as copies: GPtrArray of
 * char *, to be unreffed. */
GPtrArray *op_online_nodes(const struct op *op, const char *except);
const char *op_node_name(const struct op *op, const char *node_uuid);

/* Asks a node; for questions only, once. The answer is the method's record. */
void *op_ask(struct op *op, const char *node_uuid, const char *method, const void *args,
             guint timeout_ms, GError **error);
/* Makes a node act, and remembers that something may have changed. Calls are idempotent, so one
 * whose fate is unknown is repeated; one that did not arrive or was refused for now is repeated
 * for `patience_ms`. The error is prefixed with the node's name. */
void *op_act(struct op *op, const char *node_uuid, const char *method, const void *args,
             guint patience_ms, GError **error);

/* Reports of all these nodes, asked at the same time (GPtrArray of char *, borrowed); those who do
 * not answer are left out. Kept in op->reports. False: the process is killed. */
bool op_gather_reports(struct op *op, const GPtrArray *node_uuids, GError **error);
/* What all instances are promised of the nodes that have reported, but for `skip` (NULL: none), for
 * placement; asked of the configuration daemon. Kept in op->sums until reports are gathered anew.
 */
bool op_gather_room(struct op *op, const struct instance *skip, GError **error);
/* Whether the folder that all nodes mount has so much left; NO_RESOURCES if not, with `who` as the
 * one who needs it. What no node that has reported can tell is taken to be there. The room is
 * locked as that of a node, by SHARED_FOLDER_ROOM. */
bool op_need_shared_room(struct op *op, const char *who, guint64 mib, GError **error);
/* Who has an address, or has reserved it (config_address_user()); NULL: nobody; free with g_free().
 * False: there was no answer. */
bool op_address_user(const struct op *op, const char *address, char **ret_user, GError **error);
/* A free address of the network, none of `nics` (may be NULL); free with g_free(). */
char *op_draw_address(const struct op *op, const struct network *network, const GPtrArray *nics,
                      GError **error);
/* A free port for a display (core/config/ports.h). */
bool op_draw_port(const struct op *op, guint64 *ret_port, GError **error);
/* Whether a back end could go; WRONG_STATE with what is on it. */
bool op_backend_empty(const struct op *op, const struct backend *backend, GError **error);
/* A gathered report; NULL if the node did not answer. */
const struct node_report *op_report(const struct op *op, const char *node_uuid);
/* Whether it has answered that question with an error. */
bool op_refused(const struct op *op, const char *node_uuid);
/* Why there is none, of a node that was asked; continues its name. Nothing but its silence is its
 * silence: one that answers with an error is not dead. Free with g_free(). */
char *op_no_report(const struct op *op, const char *node_uuid);
/* Says in the log what is wrong with a node that is taken all the same (SAF-92). */
void op_log_faults(struct op *op, const char *node_uuid);

/* A job that finishes what a dead one began acts only while what it was made for stands: the field
 * `if_task` of the opcode `input` names a mark, or the fault that keeps it in force (SAF-83).
 * Whether that is so no more, by the configuration as it is known; the log says so then.
 * WRONG_INPUT names the field. The runner asks for every opcode that has it, so no body has to know
 * of it (op_task.c).
 */
bool op_task_over(struct op *op, const json_t *input, bool *ret_over, GError **error);
/* Whether that field names a task: another job's work is finished, and its wish is that job's.
 * Without one ("/0/GENERATION") it only says that nobody is at work on the instance. */
bool op_finishes(const char *if_task);
#define FAULT_BY_PERSON "reset" /* `rule` of a fault that OP_RECOVERY_RESET has put */

/* What somebody who asked for the job's end gets to read: CANCELED; returns false. */
bool op_give_up(GError **error);
/* Whether the configuration daemon, which gave that error, is away or not ready yet: its supervisor
 * restarts it. */
bool op_wconfd_away(const GError *error);
/* Asks it something by `ask`, and again while it is away, for JOB_RELEASE_MS at most. CANCELED once
 * `asked` (may be NULL) says that the job is to give up. */
typedef bool (*op_question)(void *data, GError **error);
bool op_insist(const struct env *env, const bool *asked, op_question ask, void *data,
               GError **error);

/* A transaction: GPtrArray of struct change, to be unreffed. */
GPtrArray *op_changes_new(void);
/* `object` is stolen. */
void op_put(const struct op *op, GPtrArray *changes, const char *kind, const char *key,
            json_t *object);
void op_delete(const struct op *op, GPtrArray *changes, const char *kind, const char *key);

/* Commits what `build` makes of the newest configuration, as the change of that name
 * (proto/changes.def), which says what may be in it; built anew, a few times, if an object
 * changed in between (a node daemon records replica states without a lock). */
typedef bool (*op_build)(struct op *op, GPtrArray *changes, void *data, GError **error);
bool op_commit_built(struct op *op, const char *change, op_build build, void *data, GError **error);

/* WRONG_INPUT for a tag with other characters than Ganeti allows, or too long. */
bool op_check_tag(const char *tag, GError **error);
/* Says in the log which of them auto-repair cannot read, with the nearest that it could. They are
 * set all the same, as any text may be a tag. */
void op_warn_tags(struct op *op, const GPtrArray *tags);
