/*
 * Objects of a configuration that match a filter of Query (filter.h), outside of luxid: what jobs
 * use that work on everything that matches. Pure, without live values: only what is on record can
 * be matched.
 */
#pragma once

#include "core/config/model.h"

/* UUIDs of all instances that match, in the order of their names: GPtrArray of char *. NULL with
 * WRONG_INPUT and the path in the filter if it is none, names a field that does not exist, or one
 * that nodes would have to be asked for. JSON null matches everything. */
GPtrArray *query_select_instances(const struct config *config, const json_t *filter,
                                  GError **error);
