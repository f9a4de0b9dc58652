/* See bench_figure.h. */
#include "bench_figure.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static int compare(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return left < right ? -1 : left > right;
}

double bench_median(double *values, guint count)
{
    qsort(values, count, sizeof *values, compare);
    return values[count / 2];
}

void bench_print_median(const char *name, double *values, guint count)
{
    printf("%s %.3f\n", name, bench_median(values, count));
    fflush(stdout);
}

double bench_cpu_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1000 + (double)now.tv_nsec / 1000000;
}
