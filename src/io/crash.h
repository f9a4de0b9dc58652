/*
 * Crash points: every call to the outside (write, sync, send, spawn, QMP command) is numbered, so
 * that a test can end the process right before the n-th one and see what the others and a restart
 * make of it. Used by all of io and backend, with one line before each such call.
 *
 * FETTLE_CRASH_AT=n   the process kills itself (SIGKILL) at its n-th crash point, counted from 1;
 * or at the first one of that name ("engine: leave") FETTLE_CRASH_LOG=F  each point appends "n
 * what" to the file F, so that a test can count them FETTLE_CRASH_ONCE=F crash only if the file F
 * does not exist yet; it is made then FETTLE_CRASH_SINCE=F count only from the moment on at which
 * the file F exists: points of one operation in a daemon
 *
 * They are read once, and taken out of the environment of child processes by the spawner. What has
 * to do with jobs is given its variables by name, in luxid's environment: FETTLE_CRASH_AT_NURSERY=n
 * for the nursery of job processes, …_JOB_START=n for each process that it forks, up to the
 * confirmation, …_JOB=n from then on; the same for _LOG, _ONCE and _SINCE.
 */
#pragma once

#include <glib.h>

/* `what` is a short fixed text: "fsync var/node/state.json" is too much, "files: fsync" is right.
 * Any thread. */
void crash_point(const char *what);

/* How many points this process has passed; 0 if neither variable is set. */
guint64 crash_count(void);

/* The environment for a child process, without the variables; free with g_strfreev(). */
char **crash_environment(void);
/* The same for a child that can be given variables of its own; `child` is "NURSERY". */
char **crash_environment_for(const char *child);

/* From now on the process is what these variables call `part`, "JOB_START" or "JOB": it counts from
 * 1. Before any other thread is there. */
void crash_become(const char *part);
