/* What ops_world.c and ops_world_wconfd.c share. */
#pragma once

#include "unit/core/world/ops_world.h"

/* For the trace; "-" for "". */
const char *ops_name_of(const struct ops_world *world, const char *node);
/* Whether the call is to fail. */
bool ops_faulty(struct ops_world *world, const char *node, const char *method, GError **error);
/* Everything that a job calls the configuration daemon for. */
void ops_script_wconfd(struct ops_world *world);
