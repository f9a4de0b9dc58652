/* How test programs of opcodes are put together: each test in a world of its own. */
#pragma once

#include "unit/core/world/ops_world.h"

/* Registers a test: `*world` is new when it runs, `prepare` (NULL: nothing) comes first. */
void ops_case(const char *path, void (*fn)(void), struct ops_world **world, void (*prepare)(void));

/* The result of a job that was refused before any change: its whole text, and that nothing but its
 * end was committed. */
void ops_expect_refusal(struct ops_world *world, const char *result, const char *message,
                        const char *code);

/* Kills the job process after so many milliseconds. Each message travels for one, so that a step of
 * the clock is a step of the procedure. False: the job had ended by itself before. */
bool ops_run_and_kill(struct ops_world *world, json_t *opcodes, guint after_ms);
