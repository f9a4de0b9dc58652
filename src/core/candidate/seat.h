/*
 * What the wconfd of a candidate is: follower of a master, campaigner, master
 * (docs/design/mastership.md, "wconfd's states"). It owns the struct wconf while it is master, and
 * answers what every candidate answers. A master never becomes a follower again: the process ends
 * and is started anew.
 */
#pragma once

#include "proto/copy.h"
#include "proto/env.h"

struct seat;

/* `env->engine` NULL: the cluster has the engine of another node's store, and this node follows;
 * not replicated: this node's store is the engine, and `copy` is NULL. */
struct seat *seat_new(const struct env *env, struct copy *copy);
/* Before the start, of a node with a copy: the engine that the cluster has by what this node was
 * told, and why this node must not become master by itself, nor by a person's word; NULL: it may.
 * `undecided`: that holds until its copy names the engine, or the engine a master. */
void seat_set_engine(struct seat *seat, enum engine_kind kind, const char *barred, bool undecided);
/* The serial whose commit decides it; 0: not known. */
void seat_set_step(struct seat *seat, guint64 serial);
/* Whether a copy proves that a change to etcd, which that serial was to decide, was not made: it
 * has the serial, and sqlite is the engine. */
bool seat_not_made(struct copy *copy, guint64 serial);
/* In a task. False: this process is of no use as it is, with the reason. */
bool seat_start(struct seat *seat, GError **error);
/* Called once when this process must end, and be started anew. */
void seat_on_end(struct seat *seat, void (*fn)(const GError *reason, void *data), void *data);
void seat_handle(struct seat *seat, struct rpc_request *request);
bool seat_is_master(const struct seat *seat);
/* After the engine was closed, and before the copy is. */
void seat_free(struct seat *seat);
