/*
 * Memory that a daemon has freed and that the C library keeps: after a crowd of jobs or a big
 * answer that may be most of what the process has. Looked at now and then, and given back to the
 * system if it was not wanted again meanwhile. daemon.c calls it in every daemon.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Looks every SPARE_LOOK_MS from now on. */
void trim_memory_start(void);
void trim_memory_stop(void);

struct spare {
    size_t last; /* free bytes at the look before */
    size_t
        kept; /* that were free after the last time: their pages are gone, but they are counted */
};

/* One look at so many free bytes: whether they are to be given back. */
bool trim_memory_look(struct spare *spare, size_t free_bytes);
