/*
 * What keeps nodes from their work, as whoever asks them for reports sees it (SAF-92): the faults
 * that they tell themselves, and those that only show beside the others, which are added to the
 * reports here: a clock that differs from the median of all, a copy of the configuration that lacks
 * what others have had for long. Used by core/report/reports.c, for whoever asks.
 *
 * A node of an older version tells none of it, which is no fault.
 */
#pragma once

#include "core/config/model.h"
#include "proto/env.h"

#define FAULT_STATE "state"   /* it cannot write what it must remember: starts nothing */
#define FAULT_DISKS "disks"   /* its disks fail: takes no images */
#define FAULT_MEMBER "member" /* of etcd */
#define FAULT_COPY "copy"     /* of the configuration */
#define FAULT_CLOCK "clock"
#define FAULT_DESCRIPTORS "descriptors" /* of its node daemon */
#define FAULT_MEMORY "memory"
#define FAULT_USERS "users"     /* for guests: takes no new instance */
#define FAULT_VOLUMES "volumes" /* open in a guest that they are not on record for */
#define FAULT_REST "rest"       /* its certificate */

/* One round of questions. */
struct faults_round;
/* Just before nodes are asked. */
struct faults_round *faults_round_new(const struct env *env);
/* Each report as it comes; borrowed until faults_round_end(). */
void faults_round_heard(struct faults_round *round, struct node_report *report);
/* All have answered, or will not: adds what shows beside each other. Frees the round. */
void faults_round_end(struct faults_round *round, const struct config *config);
/* Nobody waits any more. */
void faults_round_free(struct faults_round *round);

/* The fault of that kind; NULL: there is none, or it is not known. */
const struct node_fault *faults_find(const struct node_report *report, const char *kind);
/* The same if it is evidence (auto-repair): seen itself, by a look that began after the question.
 * `report` may be NULL. */
const struct node_fault *faults_proven(const struct node_report *report, const char *kind);
/* Why nothing can be started there, or (`images`) no image be kept, for certain: continues the
 * node's name; NULL. What does not answer proves nothing. */
const char *faults_forbids(const struct node_report *report, bool images);
/* For choices: 0: well, or not known; else the higher the worse. */
guint faults_rank(const struct node_report *report);
/* One fault: "cannot write its state: … (for 12 s)". Free with g_free(). */
char *faults_one_text(const struct node_fault *fault);
/* All of them, with "; " between; NULL: it is well. Free with g_free(). */
char *faults_text(const struct node_report *report);
