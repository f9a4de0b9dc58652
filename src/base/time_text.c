/* See time_text.h. */
#include "base/time_text.h"

#include <string.h>

#define LONGEST_MS (G_GINT64_CONSTANT(1000) * 86400 * 366 * 100)

/* The largest first. */
static const struct unit {
    const char *word;
    gint64 ms;
} units[] = {{"w", 604800000}, {"d", 86400000}, {"h", 3600000}, {"min", 60000},
             {"m", 60000},     {"s", 1000},     {"ms", 1}};

static const struct unit *unit_of(const char *word, size_t length)
{
    for (size_t i = 0; i < G_N_ELEMENTS(units); i++)
        if (strlen(units[i].word) == length && strncmp(units[i].word, word, length) == 0)
            return &units[i];
    return NULL;
}

/* "30m" at `*at`, which goes on behind it; negative: it is none. */
static double take_part(const char **at)
{
    char *end = NULL;
    size_t digits = strspn(*at, "0123456789.");
    g_autofree char *number = g_strndup(*at, digits);
    double value = digits > 0 && g_ascii_isdigit(number[0]) ? g_ascii_strtod(number, &end) : -1;
    const char *word = *at + digits;
    size_t length = strspn(word, "abcdefghijklmnopqrstuvwxyz");
    const struct unit *unit = unit_of(word, length);
    if (!end || *end != '\0' || !unit)
        return -1;
    *at = word + length;
    return value * (double)unit->ms;
}

bool time_text_duration(const char *text, guint64 unit_ms, gint64 *ret_ms)
{
    double sum = 0;
    guint64 number;
    const char *at = text;
    if (g_ascii_string_to_unsigned(text, 10, 0, LONGEST_MS / unit_ms, &number, NULL)) {
        *ret_ms = (gint64)(number * unit_ms);
        return true;
    }
    while (*at != '\0') {
        double part = take_part(&at);
        if (part < 0 || sum + part > (double)LONGEST_MS)
            return false;
        sum += part;
    }
    *ret_ms = (gint64)sum;
    return *text != '\0' && sum == (double)*ret_ms;
}

/* ISO 8601 as far as it is typed: a space for the T, seconds and the time of day may be missing. */
static GDateTime *date_of(const char *text)
{
    g_autofree char *copy = g_strdup(text);
    if (strlen(copy) > 10 && copy[10] == ' ')
        copy[10] = 'T';
    g_autofree char *full = strlen(copy) == 16   ? g_strconcat(copy, ":00", NULL)
                            : strlen(copy) == 10 ? g_strconcat(copy, "T00:00:00", NULL)
                                                 : g_strdup(copy);
    g_autoptr(GTimeZone) zone = g_time_zone_new_local();
    return g_date_time_new_from_iso8601(full, zone);
}

bool time_text_moment(const char *text, gint64 now, gint64 *ret_seconds)
{
    gint64 ms;
    if (g_ascii_string_to_signed(text, 10, 0, G_MAXINT32 * G_GINT64_CONSTANT(100), ret_seconds,
                                 NULL))
        return true;
    if (time_text_duration(text, 1, &ms)) {
        *ret_seconds = now + ms / 1000;
        return true;
    }
    g_autoptr(GDateTime) time = date_of(text);
    if (time)
        *ret_seconds = g_date_time_to_unix(time);
    return time != NULL;
}

char *time_text_of(gint64 ms)
{
    for (size_t i = 0; ms > 0 && i < G_N_ELEMENTS(units); i++)
        if (ms % units[i].ms == 0 && strcmp(units[i].word, "min") != 0)
            return g_strdup_printf("%" G_GINT64_FORMAT "%s", ms / units[i].ms, units[i].word);
    return g_strdup("0");
}
