/*
 * What core/api costs by itself, in memory, without HTTP, in processor time; prints one line a
 * figure: name and the median of its runs. scripts/bench shows them beside the others.
 *
 *   api_get_cpu_us        one volume of 1,000
 *   api_list_1000_cpu_ms    a page of 1,000 volumes with all that is said of them, of 1,000
 *   api_list_short_cpu_ms    the same in short
 *   …_10000               the same of 10,000
 *   floor_api_json_ms     the text of that page parsed, and written again
 */
#include "bench_figure.h"
#include "proto/change.h"
#include "unit/core/world/api_world.h"

#include <string.h>

#define RUNS 5
#define GETS 400u

static char *volume_key(guint number)
{
    return g_strdup_printf("eeeeeeee-1111-4000-8000-%012u", number);
}

static GPtrArray *volumes_of(guint count)
{
    GPtrArray *all = change_list_new();
    for (guint i = 0; i < count; i++) {
        g_autofree char *key = volume_key(i), *name = g_strdup_printf("data%u", i);
        json_t *volume = with(object_volume1(), "uuid", json_string(key));
        volume = with(with(volume, "name", json_string(name)), "project", json_string(PROJECT1));
        g_ptr_array_add(
            all, put("volume", key, 1, with(volume, "created_us", json_integer(1000000 + (int)i))));
    }
    return all;
}

static double time_of(const char *path, guint times)
{
    double runs[RUNS];
    for (guint run = 0; run < RUNS; run++) {
        double start = bench_cpu_ms();
        for (guint i = 0; i < times; i++) {
            g_autofree char *said = api_ask("GET", path, "");
            if (!g_str_has_prefix(said, "200 "))
                g_error("%s: %.300s", path, said);
        }
        runs[run] = (bench_cpu_ms() - start) / times;
    }
    return bench_median(runs, RUNS);
}

static void show(const char *name, const char *more, double value)
{
    g_autofree char *whole = g_strconcat(name, more, NULL);
    bench_print_median(whole, &value, 1);
}

static double json_ms(void)
{
    g_autofree char *text = api_ask("GET", "/volumes/detail?limit=1000", "");
    double runs[RUNS];
    for (guint run = 0; run < RUNS; run++) {
        double start = bench_cpu_ms();
        json_autoptr json = json_parse_limited(text + 4, strlen(text + 4), MIB(16), NULL);
        g_assert_nonnull(json);
        g_autofree char *again = json_to_text(json);
        runs[run] = bench_cpu_ms() - start;
    }
    return bench_median(runs, RUNS);
}

static void measure(guint count, const char *more)
{
    g_autofree char *key = volume_key(7), *path = g_strconcat("/volumes/", key, NULL);
    api_set_up(volumes_of(count));
    api_at(70);
    show("api_get_cpu_us", more, time_of(path, GETS) * 1000);
    show("api_list_1000_cpu_ms", more, time_of("/volumes/detail?limit=1000", 3));
    show("api_list_short_cpu_ms", more, time_of("/volumes?limit=1000", 3));
    if (!*more)
        show("floor_api_json_ms", more, json_ms());
    api_tear_down();
}

int main(void)
{
    measure(1000, "");
    measure(10000, "_10000");
    return 0;
}
