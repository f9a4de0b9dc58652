/*
 * Whether a member of etcd may leave, to be added anew with the data of the others
 * (docs/design/mastership.md, "Damaged data of a member"): the method check_renewal of each
 * candidate's wconfd, which the command line and luxid ask. What makes it come in again is the
 * master's (core/wconfd/engine_members.h).
 */
#pragma once

#include "proto/ensemble.h"
#include "proto/records.h"

/* Which of the members stays and is to be asked, by its number; -1: none answers. */
gint renewal_other(const struct ensemble_seen *seen, guint count, guint one);
/* Those that stay must be able to go on without it, and agree about what it gets from them: else
 * WRONG_STATE. `seen` as the members of `config`, with this verdict. `ret_disputed`: they do agree,
 * but whether they are right, or the one that leaves, only a person can know. */
bool renewal_may_leave(const struct engine_config *config, const struct ensemble_seen *seen,
                       enum etcd_verdict verdict, guint one, bool *ret_disputed, GError **error);
