/*
 * Files of run/stats from any bytes: whatever stands in one, all reports are there, each a whole
 * one, and metrics are lines that Prometheus reads. The first byte says which file it is.
 */
#include <string.h>

#include "fuzz.h"
#include "monitor_world.h"
#include "proto/monitor/collector_table.h"

static void check_reports(void)
{
    struct http_answer *answer = monitor_world_get("/1/report/all", "");
    json_autoptr all = json_loads(answer->body, 0, NULL);
    g_assert_cmpuint(answer->status, ==, 200);
    g_assert_cmpuint(json_array_size(all), ==, COLLECTOR_COUNT);
    for (guint i = 0; i < COLLECTOR_COUNT; i++) {
        const json_t *report = json_array_get(all, i);
        g_assert_cmpstr(json_string_value(json_object_get(report, "name")), ==, collectors[i].name);
        g_assert_true(json_is_object(json_object_get(report, "data")) ||
                      json_is_array(json_object_get(report, "data")));
    }
    http_answer_free(answer);
}

/* NAME{LABEL="TEXT",…} NUMBER, where a text has no bare quote or line feed. */
static void check_sample(const char *line)
{
    const char *at = line + strspn(line, "abcdefghijklmnopqrstuvwxyz_0123456789");
    g_assert_true(at > line && (*at == '{' || *at == ' '));
    while (*at == '{' || *at == ',') {
        at += 1 + strcspn(at + 1, "=");
        g_assert_true(g_str_has_prefix(at, "=\""));
        for (at += 2; *at != '"'; at++) {
            g_assert_cmpint(*at, !=, '\0');
            at += *at == '\\';
        }
        at++;
    }
    at += *at == '}';
    char *end;
    g_assert_cmpint(*at, ==, ' ');
    g_ascii_strtod(at + 1, &end);
    g_assert_true(end > at + 1 && *end == '\0');
}

static void check_metrics(void)
{
    struct http_answer *answer = monitor_world_get("/metrics", "application/openmetrics-text");
    g_auto(GStrv) lines = g_strsplit(answer->body, "\n", -1);
    g_assert_true(g_str_has_suffix(answer->body, "\n# EOF\n"));
    for (char **line = lines; *line; line++)
        if (**line && **line != '#')
            check_sample(*line);
    http_answer_free(answer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static const char *const files[] = {MONITOR_GUEST ".stats", "node.stats", "volumed.stats"};
    if (len == 0)
        return 0;
    g_autofree char *text = g_strndup((const char *)data + 1, len - 1);
    monitor_world_put(FILE_STATS, files[data[0] % G_N_ELEMENTS(files)], text);
    monitor_world_pass();
    check_reports();
    check_metrics();
    return 0;
}
