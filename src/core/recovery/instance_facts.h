/*
 * What hosts show of an instance, in the words of the table of tasks (proto/tasks.def). Pure.
 * Absent is a proof over all hosts that may have it; of disks only the primary's count.
 */
#pragma once

#include "core/recovery/sights.h"
#include "core/report/reports.h"
#include "proto/task_table.h"

struct recovery_view {
    const struct config *config;
    const struct reports *reports; /* regular ones: they may add a guest, never take one away */
    const struct sights *sights;
};

enum look_end {
    LOOK_SEEN,
    LOOK_BUSY,  /* something is being done there: again later, which uses up no try */
    LOOK_BLIND, /* a host that may have it could not be asked: RCV-35 */
};

/* Hosts that may have it: UUIDs (char *) of its record, the primary first; to be unreffed. `task`
 * NULL: all that its record names, and so all that a job of its may have sent to: they are to
 * refuse it, also where what they show counts for nothing (SAF-81). */
GPtrArray *recovery_hosts(const struct instance *instance, const struct task_row *task);
/* Whether a person's word says that the host is dead. */
bool recovery_host_dead(const struct config *config, const char *node);
/* `evidence`: a line for each host is added. `ret_why`: of the other ends, continues "it is not
 * known how it is: ". Free with g_free(). */
enum look_end instance_facts(const struct recovery_view *view, const struct instance *instance,
                             const struct task_row *task, struct task_facts *ret,
                             GPtrArray *evidence, char **ret_why);
/* Whether a replica that is not on record as stale lacks an image, or may. */
bool instance_replica_gone(const struct recovery_view *view, const struct instance *instance);
/* The same as words, for records: "guest running at source, disks whole". Free with g_free(). */
char *instance_facts_text(const struct task_facts *facts);
