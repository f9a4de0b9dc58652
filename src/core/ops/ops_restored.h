/*
 * The end of a restore, as part of OP_REPAIR_CONTINUE (ops_advice.c): the record is older than what
 * the nodes have, so it is compared with all of them, and where they differ reality is taken over
 * in the transaction that releases the brake (core/config/restored.h).
 */
#pragma once

#include "core/ops/op.h"

/* WRONG_STATE: the opcode would act on guests or images, of which the restored record may be wrong.
 */
bool restored_allows(const struct op *op, const char *id, GError **error);
/* Asks all nodes that are not offline. UNREACHABLE: one does not answer. UNSAFE: what the nodes
 * have cannot be one instance, with what a person has to do. */
bool restored_gather(struct op *op, GError **error);
/* Adds what has to change; tells `said` (GPtrArray of char *) each difference in a sentence. */
bool restored_adopt(struct op *op, GPtrArray *changes, GPtrArray *said, GError **error);
