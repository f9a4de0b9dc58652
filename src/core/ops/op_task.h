/*
 * A job that finishes what a dead one began acts only while what it was made for stands: its field
 * `if_task` names a mark, or the fault that keeps it in force (SAF-83). The runner asks for every
 * opcode that has the field, so no body has to know of it.
 */
#pragma once

#include "core/ops/op.h"

#define FAULT_BY_PERSON "reset" /* `rule` of a fault that OP_RECOVERY_RESET has put */

/* Whether that is so no more, by the configuration as it is known; the log says so then. `input`:
 * the opcode. WRONG_INPUT names the field. */
bool op_task_over(struct op *op, const json_t *input, bool *ret_over, GError **error);
