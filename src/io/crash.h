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
 * They are read once, and taken out of the environment of child processes by the spawner. Job
 * processes are given theirs by name: with FETTLE_CRASH_AT_JOB=n (…_JOB_START=n) in luxid's
 * environment, each fettle-job (fettle-job-start) gets FETTLE_CRASH_AT=n; the same for _LOG, _ONCE
 * and _SINCE.
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
/* The same for a child that can be given variables of its own; `child` is "JOB" or "JOB_START". */
char **crash_environment_for(const char *child);
