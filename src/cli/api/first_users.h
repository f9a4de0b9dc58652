/*
 * Who may ask the API, as commands on the front end's own node make and mend it: the first
 * administrator, and passwords that nobody knows any more. What the store keeps says
 * proto/api/identity_records.def.
 */
#pragma once

#include "cli/api/front_end.h"

/* Makes keys and store, with the project admin, the roles admin, member and reader, and the user
 * admin, who is administrator there; his password, to be freed. */
char *first_users_make(const struct front_end *end, GError **error);
/* Gives a user (by name) another password, which ends his tokens; it, to be freed. UNKNOWN_ENTITY:
 * there is no such user. */
char *first_users_reset(const struct front_end *end, const char *name, GError **error);
