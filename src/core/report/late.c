/* See late.h. */
#include "core/report/late.h"

#include <string.h>

json_t *late_known(void)
{
    return json_make("{s:b}", "looks", 1);
}

json_t *late_known_to_actor(void)
{
    return json_make("{s:b, s:b}", "looks", 1, "acts", 1);
}

const struct late_part *late_part_of(const struct node_report *report, const char *part)
{
    for (guint i = 0; report->late && i < report->late->len; i++) {
        const struct late_part *late = report->late->pdata[i];
        if (!strcmp(late->part, part))
            return late;
    }
    return NULL;
}

static char *age_words(guint64 age_ms)
{
    guint64 seconds = age_ms / 1000;
    if (seconds < 120)
        return g_strdup_printf("%" G_GUINT64_FORMAT " s", seconds);
    if (seconds < 7200)
        return g_strdup_printf("%" G_GUINT64_FORMAT " min", seconds / 60);
    return g_strdup_printf("%" G_GUINT64_FORMAT " h", seconds / 3600);
}

char *late_part_words(const struct late_part *part)
{
    g_autofree char *age = age_words(part->age_ms);
    if (*part->why)
        return g_strdup_printf("cannot be read: %s", part->why);
    if (part->unknown)
        return g_strdup_printf("no answer since its node daemon began %s ago", age);
    return g_strdup_printf("no answer, last heard %s ago", age);
}

char *late_guest_words(const struct guest_report *guest)
{
    g_autofree char *age = age_words(guest->age_ms);
    return g_strdup_printf("does not answer, last heard %s ago", age);
}
