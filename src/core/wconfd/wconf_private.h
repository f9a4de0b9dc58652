/*
 * Insides of wconfd's thinking. One struct with what all need, and one file for each duty, which
 * keeps to itself what it alone needs:
 *   wconf.c                  life, stepping down
 *   wconf_calls.c            which calls there are
 *   wconf_barrier.c          answers that need a barrier
 *   wconf_bootstrap.c        the store of a new cluster
 *   wconf_campaign.c         taking the seat; promises.c: what the candidates promise for it
 *   wconf_handover.c         giving it to another candidate
 *   wconf_commit.c           transactions: from the request to the engine and back
 *   wconf_replica.c          set_replica_state
 *   wconf_migrated.c         set_migrated
 *   wconf_lock_cover.c       owners, what they may change, and do they hold its locks?
 *   wconf_stream.c           wait_changes: deltas and snapshots
 *   wconf_followers.c        follow: the copies of other candidates, and waiting for them
 *   wconf_flush.c            flush_config: until all candidates in reach have the newest change
 *   wconf_commit_ids.c       which commits are known by their ids, for copies and another engine
 *   wconf_engine.c           change_engine, engine_progress
 *   engine_change.c          the steps of that; engine_nodes.c: what it asks of the nodes
 *   key_renewal.c            another authority, with all that it signs
 *   engine_members.c         the members of etcd, as candidates come and go
 *   wconf_promise_watch.c    does every candidate still follow this mastership?
 *   wconf_confirm.c          confirm
 *   wconf_locks.c            lock calls
 *   wconf_owners.c           death of owners, sweeps
 *   wconf_import.c           write_config
 *   wconf_reserve.c          reservations of dead owners
 *   wconf_join.c             hosts that become nodes
 *   wconf_authority_key.c    the authority's key, for other candidates
 *   wconf_announce.c         telling nodes who is master, and which have answered
 *   wconf_stated.c           what they tell with it, if words of the master before may be lost
 *   wconf_services.c         storage services: registered, up, down; stamps
 *   wconf_work.c             requests for work on what is stored; wconf_work_private.h: its parts
 */
#pragma once

#include "core/config/decisions.h"
#include "core/config/invariants.h"
#include "core/config/model.h"
#include "core/locks/locks.h"
#include "core/locks/locks_journal.h"
#include "core/wconfd/promises.h"
#include "core/wconfd/wconf.h"
#include "proto/storage/work_table.h"

struct wconf {
    const struct env *env;
    struct engine *engine;
    struct config *committed; /* what everybody is told */
    struct config *head;      /* with the commits that are on their way */
    guint64 epoch;
    bool serving;
    bool leaving; /* the seat is being handed to another node */
    GError *down; /* why it has stepped down */
    void (*on_down)(const GError *reason, void *data);
    void *on_down_data;

    GQueue pending;              /* struct commit, in order of serial */
    GHashTable *pending_ids;     /* commit id -> struct commit */
    bool held;                   /* they wait for a change of engine */
    struct decisions *decisions; /* those of the head; NULL: no commit has carried one yet */
    GPtrArray *problems; /* of what is committed, in words; NULL: nobody has asked yet … */
    guint64 problems_history, problems_serial; /* … at this one */
    struct locks *locks;
    struct locks_journal *journal;

    /* What only the file of a duty sees into. */
    struct wconf_announce *announce;
    struct wconf_barrier *barrier;
    struct wconf_campaign *campaign;
    struct wconf_engine *changing; /* changes of the engine */
    struct wconf_flush *flush;
    struct wconf_followers *followers;
    struct wconf_commit_ids *ids;
    struct wconf_join *join;
    struct wconf_lock_waits *lock_waits;
    struct wconf_owners *owners;
    struct wconf_services *services;
    struct wconf_stream *stream;
    const struct work_row *work_table; /* work_rows, unless a test brings its own (CLN-12) */
    struct tending *tending;           /* of the members of etcd; NULL: the engine has none */
    struct key_renewal *renewal; /* NULL: this process has no authority, or is no master yet */
    struct watch *watch;         /* of the candidates' promises; NULL: not begun */
};

/* --- wconf.c --- */

/* Ends everything that waits, now and later, with this error. */
void wconf_step_down(struct wconf *wconf, enum fettle_error code, const char *format, ...)
    G_GNUC_PRINTF(3, 4);
/* Steps down because a node follows, or is about to follow, a later mastership. */
void wconf_replaced(struct wconf *wconf, const GError *why);

/* --- wconf_barrier.c --- */
struct wconf_barrier *wconf_barrier_new(void);
/* After wconf_barriers_end(). */
void wconf_barrier_free(struct wconf_barrier *barrier);

/* Calls fn(data) after a barrier begun from now on, while still master (SAF-03). If mastership is
 * lost instead, `fn` is called all the same and finds wconf->down set. */
void wconf_barrier(struct wconf *wconf, void (*fn)(struct wconf *wconf, void *data), void *data);
/* Answers after a barrier; `result` is stolen. */
void wconf_answer_after_barrier(struct wconf *wconf, struct rpc_request *request, json_t *result);
/* A refusal rests on what is committed and on being the master, as an answer does; `error` is
 * stolen. `serial` is the newest change of the head by which it was judged; if that is not stored
 * by then it is TEMPORARY instead; it waits for the copies too. */
void wconf_refuse_after_barrier(struct wconf *wconf, struct rpc_request *request, guint64 serial,
                                GError *error);
/* The same for an answer that refuses; `result` is stolen. */
void wconf_answer_judged(struct wconf *wconf, struct rpc_request *request, guint64 serial,
                         json_t *result);
/* All that wait are called, to find wconf->down. The engine is closed before, so no barrier comes
 * back any more. */
void wconf_barriers_end(struct wconf *wconf);

/* --- wconf_campaign.c --- */
struct wconf_campaign *wconf_campaign_new(void);
void wconf_campaign_free(struct wconf_campaign *campaign);
/* The newest mastership whose changes it had when it asked for promises; 0: it has not asked. */
guint64 wconf_campaign_since(const struct wconf *wconf);
/* Over this mastership (SAF-102); "": none. */
const char *wconf_signature(const struct wconf *wconf);
/* It was signed anew, by another authority. */
void wconf_take_signature(struct wconf *wconf, const char *signature);
/* Loads the store and takes the mastership: locks and journal are those of its epoch then. May wait
 * for other candidates. NOT_MASTER, STALE_EPOCH, CORRUPT, STORAGE, KILLED; PERMISSION: this node is
 * no candidate on record. */
bool wconf_campaign(struct wconf *wconf, GError **error);
/* Puts on record what came with it: the master's name, a person's word. */
bool wconf_record_seat(struct wconf *wconf, GError **error);

/* --- wconf_commit.c --- */

void wconf_handle_commit(struct wconf *wconf, struct rpc_request *request);
/* So many changes one commit takes, of whoever. */
guint wconf_most_changes(const struct wconf *wconf);
/* Commits `changes` (GPtrArray of struct change, stolen) for a request that is answered when it is
 * done: with `answer` (borrowed), or with commit_result if that is NULL. `owner` NULL: no lock is
 * asked for. `request` NULL: nobody waits. False: nothing was changed, the request is still the
 * caller's. */
bool wconf_commit(struct wconf *wconf, const char *commit_id, GPtrArray *changes,
                  const struct owner *owner, enum invariants_author author,
                  struct rpc_request *request, json_t *answer, GError **error);
/* Whether the rules let such changes pass, by the head; nothing is changed. */
bool wconf_would_commit(struct wconf *wconf, GPtrArray *changes, enum invariants_author author,
                        GError **error);
/* Has the commit of `changes` carry a decision about what it does, and lets the oldest of its
 * subject go. `decision` is stolen; what decisions_add() fills in is filled in. After the last
 * commit before this one. */
void wconf_decide(struct wconf *wconf, struct decision *decision, GPtrArray *changes);
void wconf_commit_free_all(struct wconf *wconf);
/* From now on commits wait, checked but unknown to the engine; nothing is on its way to it any more
 * once it is still. Then they go on, in order, or are refused: they are surely not stored. */
void wconf_hold_commits(struct wconf *wconf);
bool wconf_is_still(const struct wconf *wconf);
void wconf_release_commits(struct wconf *wconf);
void wconf_refuse_held_commits(struct wconf *wconf);

/* The same commit again: one answer more for the one that is on its way, or the serial that it got
 * (SAF-04). False: there is none with that id. */
bool wconf_answer_repeated(struct wconf *wconf, const char *id, struct rpc_request *request);
/* Of a commit that is named by what it ends, which the record shows as it was: that name, or
 * another one if somebody has committed something else by it. Free it. */
char *wconf_commit_id(const struct wconf *wconf, const char *named);
/* Of that only the first: the answer is the same as the first call's, whatever that is. */
bool wconf_answer_pending(struct wconf *wconf, const char *id, struct rpc_request *request);

/* What the commit of this serial has done is asked for once more: `answer` (stolen) is given when
 * that commit is stored and copied, like the answer to the commit itself; what is on its way may
 * still be refused. */
void wconf_answer_when_stored(struct wconf *wconf, guint64 serial, struct rpc_request *request,
                              json_t *answer);

/* --- wconf_replica.c --- */
void wconf_handle_set_replica_state(struct wconf *wconf, struct rpc_request *request);
/* The instance, if `node` holds this very generation of it. REFUSED if that is over (SAF-04),
 * UNKNOWN_ENTITY, WRONG_STATE, PERMISSION. */
const struct instance *wconf_held_instance(const struct config *head, const char *uuid,
                                           guint64 generation, const char *node, GError **error);
/* The serial of the newest change of what a judgement about an instance looks at, its own record of
 * removal included; 0: none is known. An empty key is no object. */
guint64 wconf_newest_change(const struct config *config, const char *instance, const char *replica,
                            const char *node);

/* --- wconf_attachment.c --- */
void wconf_handle_set_attachment(struct wconf *wconf, struct rpc_request *request);

/* --- wconf_migrated.c --- */
void wconf_handle_set_migrated(struct wconf *wconf, struct rpc_request *request);

/* --- wconf_lock_cover.c --- */
/* Whether the caller may speak for that owner (SAF-101). PERMISSION: it is on another node,
 * whatever it names; WRONG_INPUT: the lock file's name is not a plain name. */
bool wconf_check_owner(const struct wconf *wconf, const struct rpc_request *request,
                       const struct owner *owner, GError **error);
/* PERMISSION with the object that such a caller's commits may not touch (SAF-101). */
bool wconf_may_write(const struct wconf *wconf, const struct rpc_request *request,
                     const GPtrArray *changes, GError **error);
/* LOCK_MISSING with the object and the lock; the head has the changes in it. With
 * cluster.lock_coverage = log it is one line in the log for each object, and true. */
bool wconf_covered(const struct wconf *wconf, const struct owner *owner, const GPtrArray *deltas,
                   GError **error);

/* --- wconf_stream.c --- */
struct wconf_stream *wconf_stream_new(void);
/* After wconf_stream_end(). */
void wconf_stream_free(struct wconf_stream *stream);
void wconf_handle_wait_changes(struct wconf *wconf, struct rpc_request *request);
void wconf_handle_snapshot(struct wconf *wconf, struct rpc_request *request);
/* The log has every change after the serial `floor`. What copies of a mastership before `epoch`
 * have may have been lost; 0: before this one. */
void wconf_stream_begin(struct wconf *wconf, guint64 floor, guint64 epoch);
guint64 wconf_stream_epoch(const struct wconf *wconf);
/* Whether deltas from there can be had. */
bool wconf_stream_reaches(const struct wconf *wconf, guint64 history, guint64 serial);
/* What somebody is told who asks for deltas. */
struct stream_wish {
    guint64 since; /* a serial that it reaches */
    guint64 kinds; /* bits, as in struct view; 0: all */
    bool ids;      /* with the ids of the commits that made them, for a candidate */
};
/* Now, or when there is something newer, of whatever kind. */
void wconf_stream_answer(struct wconf *wconf, struct rpc_request *request,
                         const struct stream_wish *wish, guint wait_ms);
/* The answer that tells a subscriber to fetch everything; a new reference. */
json_t *wconf_snapshot_in_pieces(const struct wconf *wconf, const char *why);
/* One committed change. */
void wconf_stream_add(struct wconf *wconf, guint64 serial, const char *kind, const char *key);
/* Keys of a kind that the commit of this serial has changed, as far as the log reaches; GPtrArray
 * of borrowed char *; unref it. */
GPtrArray *wconf_stream_keys(const struct wconf *wconf, guint64 serial, const char *kind);
/* After a commit: listeners are told at the next turn of the loop, so that a batch of commits is
 * one answer. */
void wconf_stream_wake(struct wconf *wconf);
void wconf_stream_end(struct wconf *wconf);

/* --- wconf_followers.c --- */
struct wconf_followers *wconf_followers_new(void);
/* After wconf_followers_end(). */
void wconf_followers_free(struct wconf_followers *followers);
void wconf_handle_follow(struct wconf *wconf, struct rpc_request *request);
/* Before the first commit: all candidates count as in reach for now. */
void wconf_followers_begin(struct wconf *wconf);
/* Calls fn(data) once so many candidates' copies have this serial as cluster.commit_copies wants of
 * those in reach; at once if none is. In order of the calls. */
void wconf_followers_wait(struct wconf *wconf, guint64 serial, void (*fn)(void *data), void *data);
/* Whether they have it already. */
bool wconf_followers_have(const struct wconf *wconf, guint64 serial);
/* Whether the loss of this master alone does not take it away. */
bool wconf_followers_keep(const struct wconf *wconf, guint64 serial);
/* Whether another candidate has it, of those that are not offline on record, if there is one. */
bool wconf_followers_share(const struct wconf *wconf, guint64 serial);
/* What of the engine's store is damaged; NULL: nothing that is known. */
const char *wconf_damage(const struct wconf *wconf);
/* Whether what is committed now would outlive this process. TEMPORARY: not now. */
bool wconf_outlives(const struct wconf *wconf, GError **error);
/* Who is in reach and lacks the serial is counted out when its patience is over, also if no commit
 * waits for it. With a replicated engine nobody is. */
void wconf_followers_hurry(struct wconf *wconf, guint64 serial);
/* Everybody who waits is called. */
void wconf_followers_end(struct wconf *wconf);
/* Remembers what the content at the committed serial is. */
void wconf_followers_note(struct wconf *wconf);
/* Adds a struct copy_status of each other candidate on record. */
void wconf_followers_list(const struct wconf *wconf, GPtrArray *copies);
/* A piece of a refill was given to the copy of a node. */
void wconf_followers_filling(struct wconf *wconf, const char *node);
/* How far the copy of a node is, on its disk; 0: nothing is known of it. */
guint64 wconf_followers_serial(const struct wconf *wconf, const char *node);
/* SHA-256 of the authority whose key that candidate has; "": of none that is known. */
const char *wconf_followers_key_of(const struct wconf *wconf, const char *node);
/* Whether that candidate has said that it runs another version, or an older one that says none. */
bool wconf_followers_older(const struct wconf *wconf, const char *node);
/* How many are in reach. */
guint wconf_followers_reachable(const struct wconf *wconf);
/* The name of a candidate that may have to become the master, and has told this one that it runs
 * another version; NULL: there is none. Valid until the next change. */
const char *wconf_older_candidate(const struct wconf *wconf);
/* Whether all candidates can load a store that has what is put: TEMPORARY, with the candidate. */
bool wconf_may_make(const struct wconf *wconf, const GPtrArray *changes, GError **error);

/* --- wconf_flush.c --- */
struct wconf_flush *wconf_flush_new(void);
/* After wconf_followers_end(), by which all have been answered. */
void wconf_flush_free(struct wconf_flush *flush);
void wconf_handle_flush_config(struct wconf *wconf, struct rpc_request *request);
/* A copy has gone on or has been counted out, or this is the master no more: answers what can be
 * answered. */
void wconf_flush_look(struct wconf *wconf);

/* --- wconf_commit_ids.c --- */
struct wconf_commit_ids *wconf_commit_ids_new(void);
void wconf_commit_ids_free(struct wconf_commit_ids *ids);
/* After the store was loaded. CORRUPT. */
bool wconf_commit_ids_load(struct wconf *wconf, GError **error);
/* One more is stored. */
void wconf_commit_ids_note(struct wconf *wconf, const char *id, guint64 serial);
/* Adds a struct stored_commit of each serial behind `after`, `max` at most. */
void wconf_commit_ids_list(const struct wconf *wconf, guint64 after, guint max, GPtrArray *commits);
void wconf_handle_commit_ids(struct wconf *wconf, struct rpc_request *request);

/* --- wconf_promise_watch.c --- */
/* Asks the candidates now and then, until it has stepped down; nothing if there is no other. */
void wconf_promise_watch_start(struct wconf *wconf);
void wconf_promise_watch_end(struct wconf *wconf);

/* --- wconf_engine.c --- */
struct wconf_engine *wconf_engine_new(void);
/* After wconf_engine_end(). */
void wconf_engine_free(struct wconf_engine *changing);
void wconf_handle_change_engine(struct wconf *wconf, struct rpc_request *request);
void wconf_handle_engine_progress(struct wconf *wconf, struct rpc_request *request);
/* This node's store is the engine, whose last mastership had this epoch: clears what a change of
 * engine has left on the nodes. Before the campaign: nodes that are not clear promise nothing. */
void wconf_engine_clear(struct wconf *wconf, guint64 epoch);
/* From now on it is the master. */
void wconf_engine_start(struct wconf *wconf);
void wconf_engine_end(struct wconf *wconf);
/* One is under way, or is being taken back. */
bool wconf_engine_changing(const struct wconf *wconf);

/* --- wconf_confirm.c --- */
void wconf_handle_confirm(struct wconf *wconf, struct rpc_request *request);

/* --- wconf_import.c --- */
void wconf_handle_write_config(struct wconf *wconf, struct rpc_request *request);

/* --- wconf_join.c --- */
struct wconf_join *wconf_join_new(void);
/* After wconf_join_end(). */
void wconf_join_free(struct wconf_join *join);
void wconf_handle_ca_info(struct wconf *wconf, struct rpc_request *request);
void wconf_handle_join(struct wconf *wconf, struct rpc_request *request);
void wconf_join_end(struct wconf *wconf);

/* --- wconf_authority_key.c --- */
void wconf_handle_authority_key(struct wconf *wconf, struct rpc_request *request);
void wconf_handle_monitor_key(struct wconf *wconf, struct rpc_request *request);
/* ca_info for another candidate's wconfd: with a look at the key. */
void wconf_handle_authority_look(struct wconf *wconf, struct rpc_request *request);

/* --- wconf_locks.c --- */
struct wconf_lock_waits *wconf_lock_waits_new(void);
/* After wconf_locks_end(). */
void wconf_lock_waits_free(struct wconf_lock_waits *waits);
void wconf_handle_update_locks(struct wconf *wconf, struct rpc_request *request);
void wconf_handle_union_locks(struct wconf *wconf, struct rpc_request *request);
void wconf_handle_guarded_union_locks(struct wconf *wconf, struct rpc_request *request);
void wconf_handle_intersect_locks(struct wconf *wconf, struct rpc_request *request);
void wconf_handle_list_locks(struct wconf *wconf, struct rpc_request *request);
void wconf_handle_list_all_locks(struct wconf *wconf, struct rpc_request *request);
void wconf_handle_list_lock_waiters(struct wconf *wconf, struct rpc_request *request);
void wconf_handle_free_locks(struct wconf *wconf, struct rpc_request *request);
void wconf_handle_free_locks_level(struct wconf *wconf, struct rpc_request *request);
void wconf_handle_downgrade_locks_level(struct wconf *wconf, struct rpc_request *request);
void wconf_handle_set_lock_priority(struct wconf *wconf, struct rpc_request *request);
/* Tells the lock manager the time; before each change of locks. */
void wconf_locks_tick(struct wconf *wconf);
/* Writes down what changed in the locks, then answers who was granted. */
void wconf_locks_publish(struct wconf *wconf);
/* Answers all who wait with the reason why we are down. */
void wconf_locks_end(struct wconf *wconf);
/* The tag of a waiting request. */
struct lock_wait;
/* Answers it; NULL: nothing. */
void wconf_lock_wait_fail(struct lock_wait *wait, const GError *error);
struct lock_wait *wconf_lock_wait_of(const struct wconf *wconf, const struct owner *owner);
/* The owner that a call names; NULL: it was answered with what is wrong. */
struct owner_args *wconf_lock_owner(const struct wconf *wconf, struct rpc_request *request);

/* --- wconf_owners.c --- */
struct wconf_owners *wconf_owners_new(void);
/* After wconf_owners_end(). */
void wconf_owners_free(struct wconf_owners *owners);
void wconf_handle_owner_gone(struct wconf *wconf, struct rpc_request *request);
/* wconf_check_owner() for calls by which an owner gets something; from then on its end is noticed.
 * When it is named first its lock file must be there and held (SAF-101): WRONG_STATE; TEMPORARY:
 * that cannot be told. */
bool wconf_admit_owner(struct wconf *wconf, const struct rpc_request *request,
                       const struct owner *owner, GError **error);
/* Frees what the dead hold, watches the living; sweeps from then on (a task). */
void wconf_owners_start(struct wconf *wconf);
void wconf_owners_end(struct wconf *wconf);

/* --- wconf_reserve.c --- */
/* Whoever had this lock file is dead: what it has reserved is free. */
void wconf_end_reservations(struct wconf *wconf, const char *livelock);
bool wconf_has_reservation(const struct wconf *wconf, const char *livelock);
/* Lock files of all who have reserved; GPtrArray of char *, each once. */
GPtrArray *wconf_reserved_livelocks(const struct wconf *wconf);

/* --- wconf_announce.c --- */
struct wconf_announce *wconf_announce_new(void);
/* After wconf_announce_end(). */
void wconf_announce_free(struct wconf_announce *announce);
/* What nodes are told now; free with announce_args_free(). */
struct announce_args *wconf_announcement(const struct wconf *wconf);
/* What nodes are told may have changed: if so, tells every one that is not offline, until it
 * answers. */
void wconf_announce(struct wconf *wconf);
/* Tells all again, also those who know: for nodes whose daemon has come back meanwhile. */
void wconf_announce_again(struct wconf *wconf);
/* The same with the list, whatever they have answered before. */
void wconf_announce_anew(struct wconf *wconf);
/* Whether the node has answered what is told now. */
bool wconf_node_told(const struct wconf *wconf, const char *uuid);
/* Whether locks of the node wait for its answer. */
bool wconf_node_gated(const struct wconf *wconf, const char *uuid);
/* Who has not answered, gated or not: UUIDs, sorted; GPtrArray of char *. */
GPtrArray *wconf_nodes_pending(const struct wconf *wconf);
/* Adds a sentence about each that refuses this mastership without a proof (SAF-102). */
void wconf_list_doubted(const struct wconf *wconf, GPtrArray *problems);
/* The gate of locks (SAF-06). */
bool wconf_gate(const char *name, void *data);
void wconf_announce_end(struct wconf *wconf);

/* --- wconf_stated.c --- */
/* Whether the node still has to tell what it runs (SAF-09). */
bool wconf_node_unheard(const struct wconf *wconf, const char *uuid);
/* It has: what the record lacks of that is committed, in the head when this returns true.
 * `statements`: struct guest_statement. */
bool wconf_stated(struct wconf *wconf, const char *node, const GPtrArray *statements,
                  GError **error);
/* The same of a node that does not know the question, by its report. */
GPtrArray *wconf_statements_of(const struct node_report *report);

/* --- wconf_services.c --- */
struct wconf_services *wconf_services_new(void);
/* After wconf_services_end(). */
void wconf_services_free(struct wconf_services *services);
void wconf_handle_register_storage(struct wconf *wconf, struct rpc_request *request);
void wconf_handle_beat(struct wconf *wconf, struct rpc_request *request);
void wconf_handle_change_storage_service(struct wconf *wconf, struct rpc_request *request);
/* From now on it is the master: nobody goes down before a whole service_down_time (SAF-55). */
void wconf_services_start(struct wconf *wconf);
void wconf_services_end(struct wconf *wconf);
/* How long it has been up or down, as it was on record at this master's last look, on its boot
 * clock; a gap of its own begins the count anew (SAF-55). */
gint64 wconf_services_state_ms(const struct wconf *wconf, const struct storage_service *service);
/* The time for a record, higher than each before it (SAF-51). */
guint64 wconf_stamp(struct wconf *wconf);
/* What its members have said of its space: what was asked for last. NULL: this master has heard
 * none. Free with backend_space_free(). */
struct backend_space *wconf_services_space(const struct wconf *wconf, const char *backend);
/* By that a request was refused: its members ask anew, at their next beats. */
void wconf_services_doubt(struct wconf *wconf, const char *backend);
/* Adds that of each back end of which it has heard. */
void wconf_services_spaces(const struct wconf *wconf, GPtrArray *spaces);

/* --- wconf_cleanup.c --- */
void wconf_handle_request_cleanup(struct wconf *wconf, struct rpc_request *request);
void wconf_handle_stand_in(struct wconf *wconf, struct rpc_request *request);
void wconf_handle_end_cleanup(struct wconf *wconf, struct rpc_request *request);

/* --- wconf_volume_type.c --- */
void wconf_handle_add_volume_type(struct wconf *wconf, struct rpc_request *request);
void wconf_handle_change_volume_type(struct wconf *wconf, struct rpc_request *request);
void wconf_handle_remove_volume_type(struct wconf *wconf, struct rpc_request *request);

/* --- keys/wconf_rapi_user.c --- */
void wconf_handle_add_rapi_user(struct wconf *wconf, struct rpc_request *request);
void wconf_handle_change_rapi_user(struct wconf *wconf, struct rpc_request *request);
void wconf_handle_remove_rapi_user(struct wconf *wconf, struct rpc_request *request);

/* --- keys/wconf_webhook.c --- */
void wconf_handle_add_webhook(struct wconf *wconf, struct rpc_request *request);
void wconf_handle_change_webhook(struct wconf *wconf, struct rpc_request *request);
void wconf_handle_remove_webhook(struct wconf *wconf, struct rpc_request *request);

/* --- wconf_work.c, wconf_work_take.c, wconf_work_clean.c, wconf_work_end.c,
 * wconf_hand_on.c --- */
void wconf_handle_accept_work(struct wconf *wconf, struct rpc_request *request);
void wconf_handle_reset_state(struct wconf *wconf, struct rpc_request *request);
void wconf_handle_change_volume(struct wconf *wconf, struct rpc_request *request);
void wconf_handle_change_snapshot(struct wconf *wconf, struct rpc_request *request);
void wconf_handle_change_backup(struct wconf *wconf, struct rpc_request *request);
void wconf_handle_add_image(struct wconf *wconf, struct rpc_request *request);
void wconf_handle_change_image(struct wconf *wconf, struct rpc_request *request);
void wconf_handle_hand_on(struct wconf *wconf, struct rpc_request *request);
void wconf_handle_take_work(struct wconf *wconf, struct rpc_request *request);
void wconf_handle_step_work(struct wconf *wconf, struct rpc_request *request);
void wconf_handle_empty_trash(struct wconf *wconf, struct rpc_request *request);
/* --- wconf_settle.c --- */
void wconf_handle_settle_resources(struct wconf *wconf, struct rpc_request *request);
void wconf_handle_add_front_end(struct wconf *wconf, struct rpc_request *request);
void wconf_handle_remove_front_end(struct wconf *wconf, struct rpc_request *request);
void wconf_handle_certify_front_end(struct wconf *wconf, struct rpc_request *request);
void wconf_handle_discard_data(struct wconf *wconf, struct rpc_request *request);
void wconf_handle_claim_work(struct wconf *wconf, struct rpc_request *request);
void wconf_handle_give_back(struct wconf *wconf, struct rpc_request *request);
void wconf_handle_end_work(struct wconf *wconf, struct rpc_request *request);
