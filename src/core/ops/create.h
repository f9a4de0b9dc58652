/*
 * The two halves of OP_INSTANCE_CREATE: what is asked for is judged in create_check.c, and made in
 * ops_create.c.
 */
#pragma once

#include "core/ops/ops.h"

bool create_is_mirror(const struct op_instance_create *params);
/* The image of its first disk; "": none. One without disks needs none, whatever is said: Ganeti's
 * clients always name one. */
const char *create_image(const struct op_instance_create *params);
/* MiB of a node's own space: images in the folder that all nodes mount take none. */
guint64 create_wanted_space(const struct op_instance_create *params);
/* MiB of that folder. */
guint64 create_shared_space(const struct op_instance_create *params);
/* ALREADY_EXISTS if an instance has the name by now. */
bool create_name_is_free(const struct op *op, GError **error);
/* Whether the chosen nodes still take it, by the newest configuration and the gathered reports. */
bool create_room_is_there(struct op *op, GError **error);
bool create_declare(struct op *op, GError **error);
/* Refuses, or has chosen op->primary and op->secondary. */
bool create_check(struct op *op, GError **error);
