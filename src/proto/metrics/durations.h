/*
 * How long things took, as a histogram of metric.def. Who counts has the bounds.
 */
#pragma once

#include "base/json.h"

struct durations_bound {
    const char *text; /* in seconds, as OpenMetrics writes it */
    guint64 us;
};

struct durations;

/* `bounds`: ascending, the last one {"+Inf", G_MAXUINT64}; the caller's. */
struct durations *durations_new(const struct durations_bound *bounds);
void durations_free(void *durations);
void durations_add(struct durations *durations, guint64 us);
/* {"buckets": [[bound, how many up to it], …], "sum": seconds} */
json_t *durations_tell(const struct durations *durations);
