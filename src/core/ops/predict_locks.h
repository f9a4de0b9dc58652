/*
 * Which locks an opcode will ask for, as far as the configuration alone tells: for the scheduler,
 * which gives no slot to a job that would only wait (LUX-13); without those that are held for a
 * moment only. A guess: the job itself declares anew
 * when it runs, and what it gets is wconfd's word.
 */
#pragma once

#include "core/config/follow.h"

/* GPtrArray of struct lock_request, to be unreffed; NULL: it cannot be told, because nodes would
 * have to be asked or the opcode will be refused. Does not wait. */
GPtrArray *predict_locks(const struct env *env, struct follow *follow, const json_t *input);
/* Whether its locks go before all that wait. */
bool predict_locks_urgent(const json_t *input);
