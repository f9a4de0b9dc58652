/*
 * What a job asks of all instances when its own copy has only some (view.h): sums for placement,
 * and who has an address. Whoever takes what it finds free holds the lock that keeps it so
 * (FUT-08), and the commit checks it again. The cost does not grow with the number of instances,
 * but for a search in a full network. Pure.
 */
#pragma once

#include "core/config/model.h"

/* The answer to `promised`, `address_user`, `draw_address`, `draw_port` or `backend_empty`
 * (methods.def), from a configuration that has everything. `args`: the method's record.
 * UNKNOWN_ENTITY; LIMIT. */
json_t *view_questions_answer(const struct config *config, const char *method, const void *args,
                              GError **error);
