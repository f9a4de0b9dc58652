/*
 * Whether this node can do its work (SAF-92): its state and its disks can be written, its member of
 * etcd runs, its copy of the configuration keeps up, its daemon has descriptors and the host has
 * memory left, its REST daemon a certificate. What is wrong becomes the `faults` of its report;
 * what only shows beside others – a clock, a copy that lags – whoever asks finds out
 * (core/report/faults.h), from what is told here.
 *
 * Each look is a task of its own, so that one that does not come back holds up nothing but itself,
 * which is a fault, too. What was well is looked at anew after HEALTH_PAUSE_MS, or for somebody who
 * acts on it; what was not for every report.
 */
#pragma once

#include "core/node/node_private.h"

struct health;
struct health *health_new(struct node_core *node);
/* Looks under way keep what they need until they end. */
void health_free(struct health *health);

/* In a task: begins the looks that are due, all of them for somebody who `acts` on it, waits for
 * them for at most HEALTH_WAIT_MS, and fills in faults, clock_us and copy_…; the report's memory
 * must be in it already. */
void health_report(struct node_core *node, bool acts, struct node_report *report);
/* See node_core_set_rest_fault(). */
void health_set_rest_fault(struct health *health, const char *text);
