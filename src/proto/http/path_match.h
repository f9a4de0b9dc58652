/*
 * Paths of routes: "/2/jobs/{job}", in which "{name}" stands for one segment. Read by whoever has a
 * table of routes: the API (proto/api) and the remote API of Ganeti (proto/rapi).
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

/* Whether a path, decoded, is of that pattern; one that ends in "/" is also found without that.
 * `vars` (NULL: nobody asks) gets names and values by turns, char *. */
bool path_match(const char *pattern, const char *path, GPtrArray *vars);
/* Puts a method on a list, as "GET, POST" for the header Allow; false: it is there already. */
bool path_allow(GString *allowed, const char *method);
