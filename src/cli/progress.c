/* See progress.h. */
#include "cli/progress.h"

#include <string.h>

#define BAR_SHORTEST 10
#define BAR_LONGEST 40

void progress_clear(struct progress *progress)
{
    g_free(progress->what);
    g_free(progress->unit);
    *progress = (struct progress){0};
}

static void add_sample(struct progress *progress, gint64 at_us)
{
    if (progress->count == PROGRESS_SAMPLES) {
        memmove(progress->samples, progress->samples + 1,
                sizeof(progress->samples[0]) * (PROGRESS_SAMPLES - 1));
        progress->count--;
    }
    progress->samples[progress->count].at_us = at_us;
    progress->samples[progress->count++].done = progress->done;
}

bool progress_take(struct progress *progress, const json_t *entry)
{
    const char *type = json_string_value(json_array_get(entry, 2));
    const json_t *state = json_array_get(entry, 3), *at = json_array_get(entry, 1);
    const char *what = json_string_value(json_object_get(state, "what"));
    const char *unit = json_string_value(json_object_get(state, "unit"));
    json_int_t done = json_integer_value(json_object_get(state, "done"));
    json_int_t total = json_integer_value(json_object_get(state, "total"));

    if (g_strcmp0(type, "progress") != 0 || what == NULL || done < 0 || total <= 0)
        return false;
    if (g_strcmp0(progress->what, what) != 0) {
        progress_clear(progress);
        progress->what = g_strdup(what);
    }
    g_free(progress->unit);
    progress->unit = g_strdup(unit != NULL ? unit : "");
    progress->total = (guint64)total;
    progress->done = (guint64)MIN(done, total);
    add_sample(progress, json_integer_value(json_array_get(at, 0)) * G_USEC_PER_SEC +
                             json_integer_value(json_array_get(at, 1)));
    return true;
}

double progress_rate(const struct progress *progress)
{
    if (progress->count < 2)
        return 0;
    guint last = progress->count - 1;
    gint64 us = progress->samples[last].at_us - progress->samples[0].at_us;
    if (us <= 0 || progress->samples[last].done <= progress->samples[0].done)
        return 0;
    return (double)(progress->samples[last].done - progress->samples[0].done) * G_USEC_PER_SEC /
           (double)us;
}

static guint percent(const struct progress *progress)
{
    return (guint)((double)progress->done / (double)progress->total * 100);
}

char *progress_time(guint64 seconds)
{
    if (seconds < 60)
        return g_strdup_printf("%u s", (guint)seconds);
    if (seconds < 3600)
        return g_strdup_printf("%u min %u s", (guint)(seconds / 60), (guint)(seconds % 60));
    return g_strdup_printf("%" G_GUINT64_FORMAT " h %u min", seconds / 3600,
                           (guint)(seconds % 3600 / 60));
}

/* "  42 %  430 of 1000 MiB  112 MiB/s  6 s left" */
static char *figures(const struct progress *progress)
{
    GString *text = g_string_new(NULL);
    double rate = progress_rate(progress);
    g_string_append_printf(text, "  %3u %%  %" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT " %s",
                           percent(progress), progress->done, progress->total, progress->unit);
    if (rate > 0)
        g_string_append_printf(text, rate < 10 ? "  %.1f %s/s" : "  %.0f %s/s", rate,
                               progress->unit);
    if (rate > 0 && progress->done < progress->total) {
        double left = (double)(progress->total - progress->done) / rate;
        g_autofree char *time = progress_time(MAX((guint64)(left + 0.5), 1));
        g_string_append_printf(text, "  %s left", time);
    }
    return g_string_free(text, FALSE);
}

char *progress_bar(const struct progress *progress, int columns)
{
    g_autofree char *numbers = figures(progress);
    int taken = (int)(g_utf8_strlen(progress->what, -1) + g_utf8_strlen(numbers, -1)) + 4;
    int width = MIN(columns - 1 - taken, BAR_LONGEST);
    if (width < BAR_SHORTEST)
        return g_strconcat(progress->what, numbers, NULL);
    int full = (int)((double)progress->done / (double)progress->total * width);
    g_autofree char *done = g_strnfill((gsize)full, '#');
    g_autofree char *left = g_strnfill((gsize)(width - full), '.');
    return g_strdup_printf("%s  [%s%s]%s", progress->what, done, left, numbers);
}

char *progress_tenth(struct progress *progress)
{
    guint tenth = percent(progress) / 10;
    if (tenth <= progress->told)
        return NULL;
    progress->told = tenth;
    return g_strdup_printf("%s: %u %% (%" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT " %s)",
                           progress->what, tenth * 10, progress->done, progress->total,
                           progress->unit);
}
