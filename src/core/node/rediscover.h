/*
 * What outlived the node daemon: processes of guests and exports are held against what is on record
 * here. What cannot be of use is ended; all else is asked about by reconcile.c before it may go on
 * (SAF-19).
 */
#pragma once

#include "core/node/node_private.h"

/* In a task, after the guests' files were loaded and before anything else. What could not be ended
 * is logged and stays; an error is one of reading or writing what is on record, or KILLED. */
bool rediscover(struct node_core *node, GError **error);
