/*
 * What the random tests share: their arguments, files of seeds, what a seed has found.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

/* The number that `variable` of the environment holds, else that of `text`: to spread a long
 * campaign over several runs. */
guint64 seeds_number(const char *variable, const char *text);

/* Calls `run` for each line of a file that begins with a number, with that and the words behind it.
 * Seeds that have found something stay for ever; "#" begins a comment. False: one of them failed,
 * or there is none. */
bool seeds_each(const char *path, bool (*run)(guint64 seed, const char *rest, void *data),
                void *data);

/* From here on what is logged is printed (FETTLE_SIM_LOG), and goes into digests
 * (FETTLE_SIM_DIGEST), without the time of day that it begins with. */
void seeds_log(void);
/* Prints the digest of what was logged since the last one, and how many steps there were: the same
 * seed has the same, alone and after others, today and tomorrow. */
void seeds_digest(guint64 seed, guint64 steps);

/* Says what a seed has found (NULL: nothing); `shape` may be "". False: something. */
bool seeds_passed(guint64 seed, const char *shape, const char *why);
