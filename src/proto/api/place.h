/*
 * Where daemons that may be of another user than root have what only they may write, below run/: a
 * front end of the API (io/api_place.h), monitoring (io/mond_place.h), REST (io/rapid_place.h).
 * Names of their lock files begin with that, too. What such a user says of itself is believed of it
 * alone.
 */
#pragma once

#include <glib.h>
#include <string.h>

#include "proto/rpc.h"

#define API_FOLDER "api/"
#define MOND_FOLDER ROLE_MOND "/"
#define RAPID_FOLDER ROLE_RAPID "/"

/* Of a daemon, by its name; "": it is root's, and has none. */
static inline const char *place_of_daemon(const char *name)
{
    return strcmp(name, ROLE_APID) == 0    ? API_FOLDER
           : strcmp(name, ROLE_MOND) == 0  ? MOND_FOLDER
           : strcmp(name, ROLE_RAPID) == 0 ? RAPID_FOLDER
                                           : "";
}

/* That a name of a lock file begins with; "": it is one of root's. */
static inline const char *place_of_livelock(const char *name)
{
    return g_str_has_prefix(name, API_FOLDER)     ? API_FOLDER
           : g_str_has_prefix(name, MOND_FOLDER)  ? MOND_FOLDER
           : g_str_has_prefix(name, RAPID_FOLDER) ? RAPID_FOLDER
                                                  : "";
}
