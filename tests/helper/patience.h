/*
 * How long a test waits for what other processes do: for a time that is plenty on a machine that
 * has nothing else to do, and for longer while this one has more to do than it can. On a quiet
 * machine a failure is told as soon as that time is over.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <sys/types.h>

/* Whether that time is over. `since_ms`: when the wait began, by loop_boot_ms(). */
bool patience_is_over(gint64 since_ms, guint plenty_ms);
/* Turns of the loop until `*done`; false: it took too long. */
bool patience_run_until(const bool *done, guint plenty_ms);
/* In a task, with io/loop.h: waits for something that becomes true by itself; PATIENCE_MS, which a
 * test defines, is plenty. */
#define until(condition)                                                                           \
    do {                                                                                           \
        gint64 since_ms = loop_boot_ms();                                                          \
        while (!(condition)) {                                                                     \
            g_assert_false(patience_is_over(since_ms, PATIENCE_MS));                               \
            g_assert_true(loop_sleep(100));                                                        \
        }                                                                                          \
    } while (0)
/* SIGSTOP; when it returns, all threads of the process stand still. Where others have the
 * processors they run on for a while after the signal, and do what is to happen no more. */
void patience_stop(pid_t pid);
