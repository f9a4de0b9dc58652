/*
 * A way back for a node that has taken a mastership over that nobody else follows (SAF-103):
 * `fettle-noded --forget-mastership`, while its node daemon does not run. It asks every node that
 * this one knows for the highest (history, epoch) that was seen there, and lowers this one's to the
 * highest that another candidate follows.
 */
#pragma once

#include "proto/env.h"

/* What a person says must say something. WRONG_INPUT. */
bool forget_check_statement(const char *statement, GError **error);
/* In a task. The result says what was done, for a person; to be freed. `alone`: the statement
 * stands for nodes that are silent. WRONG_INPUT: of the statement. WRONG_STATE: no other candidate
 * follows what is lower; UNSAFE: nodes are silent, or a guest here is of a later history. CORRUPT,
 * STORAGE. */
char *forget_mastership(const struct env *env, const char *cluster_uuid, bool alone,
                        const char *statement, GError **error);
