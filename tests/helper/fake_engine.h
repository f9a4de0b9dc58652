/*
 * An engine in memory for unit tests: what it has stored outlives the wconfd that used it, as a
 * store on disk does. The test decides when and how commits end.
 */
#pragma once

#include "proto/env.h"

struct fake_engine;

/* Stores `changes` (GPtrArray of struct change, may be NULL) as serial 1, as a bootstrap does. */
struct fake_engine *fake_engine_new(guint64 history, const GPtrArray *changes);
void fake_engine_free(struct fake_engine *engine);
struct engine *fake_engine_base(struct fake_engine *engine);

/* While held, commits and barriers queue up; fake_engine_release() lets them end in order
 * (callbacks are posted). */
void fake_engine_hold(struct fake_engine *engine);
void fake_engine_release(struct fake_engine *engine);
guint fake_engine_queued(const struct fake_engine *engine);
/* How the next commit ends. UNKNOWN with `stored`: it is stored, but the answer is lost. */
void fake_engine_fail_next(struct fake_engine *engine, enum engine_result result, bool stored);
/* Mastership is lost: barriers say so, commits are refused. */
void fake_engine_depose(struct fake_engine *engine, bool deposed);
/* From now on a replicated one, which the processes of several nodes share: the seat is one node's
 * until it resigns, or its lease is over. */
void fake_engine_replicate(struct fake_engine *engine);
void fake_engine_expire(struct fake_engine *engine);
/* It does not answer who asks for the seat. */
void fake_engine_silence(struct fake_engine *engine, bool silent);
/* How the next resign() fails; 0: it does not. */
void fake_engine_fail_resign(struct fake_engine *engine, enum fettle_error code);
/* Its last commit was stored by leave(). */
bool fake_engine_left(const struct fake_engine *engine);
/* It was left for the store of this node (struct engine_left): nobody campaigns any more. */
void fake_engine_move(struct fake_engine *engine, const struct engine_left *to);
/* What was found damaged of its store (engine_ops.damage); a literal. NULL: nothing is. */
void fake_engine_rot(struct fake_engine *engine, const char *what);
/* A kill of the process that used it: queued commits and callbacks are forgotten. */
void fake_engine_crash(struct fake_engine *engine);

/* After a crash: what was committed after `serial` is lost with its master. The next one begins
 * with `changes` (struct change), at a serial that leaps. */
void fake_engine_lose(struct fake_engine *engine, guint64 serial, const GPtrArray *changes);

guint64 fake_engine_serial(const struct fake_engine *engine);
guint64 fake_engine_epoch(const struct fake_engine *engine);
guint fake_engine_commits(const struct fake_engine *engine);
/* All that was committed after serial `since`, oldest first: GPtrArray of struct change, added. */
void fake_engine_changes(const struct fake_engine *engine, guint64 since, GPtrArray *ret_changes);
