/*
 * Faults: why a subject is in ERROR (record `fault`), and what its task forbade as long as that
 * names it (SAF-84); docs/design/recovery.md.
 */
#pragma once

#include "core/config/model.h"

/* Key of a fault or of what is counted as stuck: `instance/UUID`. Free with g_free(). */
char *fault_key(const char *subject_kind, const char *subject);
/* NULL: it has none. */
const struct fault *fault_of(const struct config *config, const char *subject_kind,
                             const char *subject);
/* What counts as its mark: its own, or, in ERROR, that of a task which keeps others off. NULL in
 * place of the fault (`ret_fault` may be NULL) if it is its own. */
enum task_state fault_mark(const struct config *config, const struct instance *instance,
                           const struct fault **ret_fault);
/* The same on a copy of its record: as if the mark were still there. Whether it was not. */
bool fault_enforce(const struct config *config, struct instance *instance);
/* Whether hosts have not been heard since, and still have to refuse its owner (SAF-81). Nothing but
 * it knows whom: it stays until recovery has judged it. */
bool fault_leaves_door_open(const struct fault *fault);
