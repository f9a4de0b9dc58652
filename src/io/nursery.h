/*
 * luxid's side of the nursery: one process of the program fettle-job that stays, and is forked once
 * for each job, and once more for the next one (architecture.md 6). An exec for each job would cost
 * most of what a short job costs: finding and relocating libraries, and what the C library asks the
 * processor at each start. luxid itself cannot be forked, because it has threads; the nursery never
 * has any.
 *
 * The nursery reads requests from descriptor NURSERY_REQUESTS_FD, a SOCK_SEQPACKET socket: each is
 * the job's id as text, and one descriptor, the channel of the new process (starter.h). It answers
 * nothing: what becomes of the new process is told by its channel, which breaks too if the nursery
 * dies before the fork. It ends when luxid does; processes of jobs that it has made do not, and it
 * reaps them. When another file has taken the place of the program, at an upgrade, the next job is
 * of that one: by another nursery. Used by real_env.c.
 */
#pragma once

#include "io/node_config.h"

#define NURSERY_PROGRAM "fettle-job"
#define NURSERY_SUFFIX "-nursery" /* of its name in the list of processes */
#define NURSERY_REQUESTS_FD 3
#define NURSERY_REQUEST_BYTES 32
/* Says what it is in the list of processes, and is room for the words of a job's process, which
 * writes its own there: JOB LOCK-NAME. */
#define NURSERY_WORDS                                                                              \
    "forks-one-process-for-each-job,-which-writes-its-id-and-the-name-of-its-lock-file-here"

struct nursery;

/* Nothing runs before the first job does. `bin_folder`: of the program. */
struct nursery *nursery_new(const struct node_paths *paths, const char *bin_folder);
void nursery_free(struct nursery *nursery);

/* Asks for a process for a job; `channel` is its end of the channel, and stays the caller's. A
 * nursery that has died is started again. ENVIRONMENT: it cannot be run; TEMPORARY: it is behind
 * with its work, and takes no more for now. */
bool nursery_ask(struct nursery *nursery, guint64 job, int channel, GError **error);
