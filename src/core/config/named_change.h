/*
 * Named changes of the configuration: what a job (luxid, the watcher) may commit under which name,
 * and nothing else, stands in proto/changes.def. wconfd asks here before it looks at locks and
 * invariants; those say whether a change is right, this says whether it is the one that was named.
 * The method `commit` has no such limit: callers of the version before have nothing else.
 */
#pragma once

#include "core/config/model.h"

/* Whether a method of wconfd is a named change. */
bool named_change_exists(const char *name);

/* PERMISSION with the object and the field that `name` may not touch. `before`: the configuration
 * that the changes (GPtrArray of struct change) are for. Changes that are of an older version or
 * cannot be read pass: the commit itself refuses them, with the better reason. */
bool named_change_check(const char *name, const struct config *before, const GPtrArray *changes,
                        GError **error);
