/*
 * What a person can do about an object as it stands, as far as auto-repair is concerned: what
 * LUXI's WhatNext answers (core/queue/what_next_call.h), and `fettle why`, `fettle repair show` and
 * `fettle repair history` end with. Nothing, where nothing waits for a person.
 *
 * Each answer is a list of {about, text, commands}: a sentence, and what to type then. Where a text
 * has "{since}" its member `since` is meant, in seconds since 1970, in the words of who shows it.
 */
#pragma once

#include "core/report/reports.h"

/* Which repair is suspended, needs more than it may do, or has failed. `now` in seconds since 1970.
 */
json_t *what_next_instance(const struct config *config, const struct instance *instance,
                           gint64 now);
/* How the suspensions end that count for the object, its own and, as far as it has no other policy
 * of its own, those of what it is in; whatever else counts there. `name` NULL: the cluster. */
json_t *what_next_suspended(const struct config *config, enum tag_kind kind, const char *uuid,
                            const char *name);
/* Of a node that is offline, silent or not well. `reports`: of all nodes, as some faults show
 * beside others only. */
json_t *what_next_node(const struct node *node, const struct reports *reports);
