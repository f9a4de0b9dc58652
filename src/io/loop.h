/*
 * The event loop of a process: GLib's default main context, with the set-up that every daemon needs
 * (tasks, signals, descriptor limit) and cheap timers: any number of them costs the loop one
 * source.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

/* Posts tasks to GLib's loop, ignores SIGPIPE, raises the limit of open files. May be called again.
 */
void loop_init(void);

/* Runs until loop_quit(), SIGTERM or SIGINT; returns the exit code given to loop_quit(), 0 after a
 * signal. */
int loop_run(void);
/* SIGTERM calls `fn` and does not end the loop; NULL: it does again. */
void loop_on_terminate(void (*fn)(void *data), void *data);
void loop_quit(int exit_code);

/* Calls fn(data) from the loop, in order of posting; may be called from any thread. */
void loop_post(void (*fn)(void *data), void *data);

/* Calls fn(data) once, when everything that is under way in the loop is done and before it waits
 * for more: for work that is worth collecting. Of this thread only; `fn` must not turn the loop. */
void loop_after_turn(void (*fn)(void *data), void *data);

/* Calls fn(data) once after `ms`; the handle is never 0 and never used again. */
guint loop_timer(guint ms, void (*fn)(void *data), void *data);
/* 0 and handles of timers that have fired are ignored. */
void loop_timer_cancel(guint handle);

gint64 loop_boot_ms(void); /* CLOCK_BOOTTIME */
/* FETTLE_CLOCK_AHEAD_MS is added to it: of a lab, whose nodes share the host's clock. */
gint64 loop_wall_us(void);

/* Watches a folder: calls changed(name) after a file in it was written and closed, renamed into
 * place or removed; with NULL if events were lost and everything in it is to be looked at again.
 * NULL on failure (STORAGE with the folder). */
struct folder_watch;
struct folder_watch *folder_watch_new(const char *folder,
                                      void (*changed)(const char *name, void *data), void *data,
                                      GError **error);
void folder_watch_free(struct folder_watch *watch);

/* In a task: waits; false if it was killed meanwhile. */
bool loop_sleep(guint ms);

/* Turns of the loop until `*done` or `timeout_ms` is over (then false). For tests and commands that
 * wait. */
bool loop_run_until(const bool *done, guint timeout_ms);
