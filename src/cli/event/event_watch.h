/*
 * `fettle event watch`: what happens, as it happens. Events are on record: WatchChanges is only the
 * bell for them, and Query is asked for what is new by its serial, so none is lost or told twice
 * when luxid or the master is another one. Of other kinds what is shown is what WatchChanges tells:
 * each object as it is now.
 */
#pragma once

#include "cli/cli.h"

/* `kinds`: words with a comma between. `filter` (stolen, may be NULL) is asked of all kinds,
 * `of_events` (the same) of events alone. */
int event_watch_run(struct cli *cli, const char *kinds, json_t *filter, json_t *of_events,
                    GError **error);
/* Whether these are events and nothing else. */
bool event_watch_is_plain(const char *kinds);
