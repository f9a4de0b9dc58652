/*
 * The progress of a job, from the entries of type "progress" in its log: as a bar with rate and
 * time left for a terminal, or as a line for each tenth. Nothing here asks the clock: times are
 * those of the entries.
 */
#pragma once

#include "base/json.h"

#define PROGRESS_SAMPLES 8 /* the rate is that of the last so many entries */

struct progress {
    char *what, *unit;
    guint64 done, total;
    struct {
        gint64 at_us;
        guint64 done;
    } samples[PROGRESS_SAMPLES]; /* oldest first */
    guint count;
    guint told; /* tenths that progress_tenth() has told */
};

void progress_clear(struct progress *progress);
/* Takes in a log entry [serial, [s, us], type, message]; false if it is no progress. */
bool progress_take(struct progress *progress, const json_t *entry);
/* Units per second; 0: not known yet. */
double progress_rate(const struct progress *progress);
/* "copy to node3  [#####.....]  42 %  430 of 1000 MiB  112 MiB/s  6 s left", narrower than
 * `columns`; the figures alone if there is no room for a bar. Free with g_free(). */
char *progress_bar(const struct progress *progress, int columns);
/* "copy to node3: 40 % (400 of 1000 MiB)" whenever another tenth is done, else NULL. */
char *progress_tenth(struct progress *progress);
/* "42 s", "3 min 5 s", "2 h 10 min". */
char *progress_time(guint64 seconds);
