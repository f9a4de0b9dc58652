/*
 * Insides of seat.h:
 *   seat.c              life, what this wconfd is, dispatch
 *   seat_campaign.c     becoming master
 *   seat_engine_step.c  the end of a change of engine that was decided for this node's store
 *   seat_by_hand.c      the other candidates, and a person who makes one of them the master
 *   seat_handover.c     the same with a replicated engine: the master gives its seat to another one
 *   seat_renewal.c      whether a member of etcd may leave, to come in again
 */
#pragma once

#include "core/candidate/replication.h"
#include "core/candidate/seat.h"
#include "core/config/model.h"
#include "core/wconfd/wconf.h"
#include "proto/records.h"

struct seat {
    const struct env *env;
    struct copy *copy;
    enum engine_kind engine; /* also when that is closed already */
    char *barred;            /* why this node must not become master by itself; NULL: it may */
    bool undecided;          /* that, until something here proves that the engine is in use */
    guint64 step;            /* serial that decides it; 0: not known */
    GPtrArray *word;         /* struct change: a person's word that decided it; or NULL */
    guint64 word_since;      /* with it: what was answered since then may be lost */
    bool demoted;            /* no candidate on record, as nobody can change without a master … */
    gint64 demoted_ms;       /* … when it was read (boot clock) */
    char *trouble;           /* what keeps it from being chosen at this moment; NULL: nothing */
    enum { FOLLOWS, CAMPAIGNS, IS_MASTER, ENDED } state;
    struct replication *replication;
    struct wconf *wconf; /* while it campaigns and as master */
    struct mastership observed;
    GPtrArray *waits; /* struct role_wait */
    bool person;      /* a person's word is being carried out */
    guint end_timer;
    GError *end;
    void (*on_end)(const GError *reason, void *data);
    void *on_end_data;
};

/* --- seat.c --- */
struct role_status *seat_status(const struct seat *seat);
/* Answers who waits for another role. */
void seat_tell_role(struct seat *seat);
void seat_end(struct seat *seat, const GError *reason);
/* The same when an answer has to reach who asked, first; `end` is stolen. */
void seat_end_soon(struct seat *seat, GError *end);

/* --- seat_campaign.c --- */
/* In a task. NOT_MASTER and TEMPORARY: nothing has begun. */
bool seat_become_master(struct seat *seat, GError **error);
/* Looks for a free seat of a replicated engine, and takes it (a task). */
void seat_candidate_start(struct seat *seat);

/* --- seat_by_hand.c --- */
void seat_handle_candidates(struct seat *seat, struct rpc_request *request);
void seat_handle_take_over(struct seat *seat, struct rpc_request *request);
/* What this node knows; NULL with TEMPORARY: nothing yet. To be freed with config_free(). */
struct config *seat_known_config(const struct seat *seat, GError **error);

/* The same word, given to another node; its name and UUID are `to`'s. */
struct take_over_result *seat_ask_other(struct seat *seat, const struct config *config,
                                        const struct seat_candidate *to,
                                        struct take_over_args *args, GError **error);
struct take_over_result *seat_word_result(const struct seat_candidate *to);

/* --- seat_renewal.c --- */
void seat_handle_check_renewal(struct seat *seat, struct rpc_request *request);

/* --- seat_engine_step.c --- */
/* In a task: whether the replicated engine was left for the store of this node. Then that becomes
 * the engine, and the process ends. False with an error: it cannot; without: it was not. */
bool seat_take_engine(struct seat *seat, GError **error);

/* --- seat_handover.c --- */
/* In a task; `config` is what this node knows. */
struct take_over_result *seat_hand_over(struct seat *seat, const struct config *config,
                                        struct take_over_args *args, GError **error);
