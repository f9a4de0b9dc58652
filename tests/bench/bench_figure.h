/*
 * What benchmarks that print one line a figure have in common.
 */
#pragma once

#include <glib.h>

/* Sorts `values`. */
double bench_median(double *values, guint count);
/* `NAME MEDIAN`, at once: what comes later may fail. */
void bench_print_median(const char *name, double *values, guint count);
/* Of this process's own time, which what else the machine does is no part of. */
double bench_cpu_ms(void);
