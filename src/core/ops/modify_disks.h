/*
 * Disks that come to a stopped instance, or go: part of OP_INSTANCE_SET_PARAMS (ops_modify.c). Only
 * the last ones go, because a disk is known to its guest by its number.
 */
#pragma once

#include "core/ops/instance.h"

/* Whether anything is asked for. */
bool modify_disks_asked(const struct op_instance_set_params *params);
/* The room that will be looked for, for a declaration. */
void modify_disks_lock_room(struct op *op, const struct instance *instance);
/* Reports are gathered. WRONG_INPUT, WRONG_STATE, LIMIT, NO_RESOURCES. */
bool modify_disks_check(struct op *op, const struct instance *instance, GError **error);
/* With the instance stopped and settled. Cut off after any call it has the disks that it had, the
 * first of them, or those that were asked for; images that no record names are made anew by the
 * next addition and removed by the next removal. */
bool modify_disks(struct op *op, const char *uuid, GError **error);
