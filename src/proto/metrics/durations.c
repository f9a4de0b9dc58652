/* See durations.h. */
#include "proto/metrics/durations.h"

struct durations {
    const struct durations_bound *bounds;
    guint64 *counts; /* each in the first place that has room for it */
    guint64 sum_us;
};

struct durations *durations_new(const struct durations_bound *bounds)
{
    guint count = 1;
    while (bounds[count - 1].us != G_MAXUINT64)
        count++;
    struct durations *durations = g_new(struct durations, 1);
    *durations = (struct durations){bounds, g_new0(guint64, count), 0};
    return durations;
}

void durations_free(void *data)
{
    struct durations *durations = data;
    g_free(durations->counts);
    g_free(durations);
}

void durations_add(struct durations *durations, guint64 us)
{
    guint at = 0;
    while (us > durations->bounds[at].us)
        at++;
    durations->counts[at]++;
    durations->sum_us += us;
}

json_t *durations_tell(const struct durations *durations)
{
    const struct durations_bound *bounds = durations->bounds;
    json_t *buckets = json_array();
    guint64 sum = 0;
    for (guint i = 0; i == 0 || bounds[i - 1].us != G_MAXUINT64; i++) {
        sum += durations->counts[i];
        json_array_append_new(buckets, json_make("[s, I]", bounds[i].text, (json_int_t)sum));
    }
    return json_make("{so, sf}", "buckets", buckets, "sum", (double)durations->sum_us / 1e6);
}
