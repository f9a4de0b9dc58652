/* The table of metrics, and the text that Prometheus reads. proto/metrics/. */
#include <math.h>
#include <string.h>

#include "proto/metrics/metric_text.h"
#include "proto/metrics/request_tally.h"
#include "proto/monitor/collector_table.h"

/* --- the table --- */

static bool is_word(const char *text)
{
    return *text && strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_") == strlen(text);
}

/* What would let a number that grows with what happens be a label. */
static bool grows(const char *label)
{
    static const char *const bad[] = {"job", "generation", "pid", "path", "serial", "epoch"};
    for (guint i = 0; i < G_N_ELEMENTS(bad); i++)
        if (strcmp(label, bad[i]) == 0)
            return true;
    return false;
}

static void check_labels(const struct metric *metric)
{
    g_autoptr(GPtrArray) labels = metric_labels(metric);
    for (guint i = 0; i < labels->len; i++) {
        g_assert_true(is_word(labels->pdata[i]));
        g_assert_false(grows(labels->pdata[i]));
        for (guint k = 0; k < i; k++)
            g_assert_cmpstr(labels->pdata[i], !=, labels->pdata[k]);
    }
}

static void test_table(void)
{
    g_autoptr(GHashTable) names = g_hash_table_new(g_str_hash, g_str_equal);
    for (guint i = 0; i < metrics_count; i++) {
        const struct metric *metric = &metrics[i];
        g_test_message("%s", metric->name);
        g_assert_true(g_str_has_prefix(metric->name, "fettle_") && is_word(metric->name));
        g_assert_false(g_str_has_suffix(metric->name, "_total"));
        g_assert_true(g_str_has_suffix(metric->name, metric->unit));
        g_assert_true(g_str_has_suffix(metric->help, ".") && !strchr(metric->help, '\n'));
        g_assert_true(g_hash_table_add(names, (void *)metric->name));
        g_assert_true(
            collector_find(metric->source) >= 0 ||
            g_strv_contains((const char *const[]){"mond", "cluster", "rapid", "apid", NULL},
                            metric->source));
        check_labels(metric);
    }
}

/* --- finding --- */

static void append_sample(const struct metric *metric, const char *suffix,
                          const char *const *labels, double value, void *data)
{
    g_string_append_printf(data, "%s%s", metric->name, suffix);
    for (guint i = 0; labels[i]; i += 2)
        g_string_append_printf(data, " %s=%s", labels[i], labels[i + 1]);
    g_string_append_printf(data, " %g\n", value);
}

static char *found(const struct metric *metric, const char *document)
{
    json_autoptr json = json_loads(document, JSON_DECODE_ANY, NULL);
    GString *text = g_string_new(NULL);
    g_assert_nonnull(json);
    metric_find(metric, json, append_sample, text);
    return g_string_free(text, FALSE);
}

#define assert_found(labels, path, value, factor, document, expected)                              \
    do {                                                                                           \
        const struct metric metric = {                                                             \
            "m", METRIC_GAUGE, "", labels, "", path, value, factor, "M."};                         \
        g_autofree char *text = found(&metric, document);                                          \
        g_assert_cmpstr(text, ==, expected);                                                       \
    } while (0)

static void test_find(void)
{
    assert_found("", "", "n", 2, "{\"n\": 4}", "m 8\n");
    assert_found("", "", "n", 1, "{}", "");
    assert_found("", "", "n", 1, "{\"n\": null}", "");
    assert_found("", "", "n", 1, "{\"n\": \"4\"}", "");
    assert_found("", "", "n", 1, "{\"n\": true}", "m 1\n");
    assert_found("", "", "s=up", 1, "{\"s\": \"up\"}", "m 1\n");
    assert_found("", "", "s=up", 1, "{\"s\": \"upper\"}", "m 0\n");
    assert_found("", "", "s=up", 1, "{}", "");
    assert_found("", "a", "n", 1, "{\"a\": [{\"n\": 1}, {}, 5, {\"n\": 2}]}", "m 1\nm 2\n");
    assert_found("", "a", "n", 1, "{\"a\": {\"n\": 1}}", "");
    assert_found("d=x", "*", "n", 1, "[{\"x\": \"sda\", \"n\": 0.5}]", "m d=sda 0.5\n");
    assert_found("i=x,u=y/k=z", "a/b", "n", 1,
                 "{\"a\": [{\"x\": \"web1\", \"y\": 7, \"b\": [{\"z\": 0, \"n\": 1}, {\"n\": 2}]}, "
                 "{\"x\": \"w2\", \"b\": [{\"z\": 1, \"n\": 3}]}, {\"b\": []}]}",
                 "m i=web1 u=7 k=0 1\nm i=web1 u=7 k= 2\nm i=w2 u= k=1 3\n");
    const struct metric any = {"m", METRIC_GAUGE, "", "", "", "a/b", "n", 1, "M."};
    g_autofree char *none = found(&any, "null");
    g_assert_cmpstr(none, ==, "");
}

/* Of a bound that is no text the label is empty; without buckets there is nothing. */
static void test_find_histogram(void)
{
    static const struct metric metric = {"m", METRIC_HISTOGRAM, "", "o=o", "", "l", "h", 2, "M."};
    static const struct metric alone = {"m", METRIC_HISTOGRAM, "", "", "", "", "h", 1, "M."};
    g_autofree char *text = found(
        &metric, "{\"l\": [{\"o\": \"A\", \"h\": {\"buckets\": [[\"0.1\", 2], [\"+Inf\", 5]], "
                 "\"sum\": 1.5}}, {\"o\": \"B\", \"h\": 7}]}");
    g_autofree char *strange = found(&alone, "{\"h\": {\"buckets\": [7, [1, 3]], \"sum\": \"x\"}}");
    g_autofree char *none = found(&alone, "{\"h\": {\"buckets\": [], \"sum\": 4}}");
    g_assert_cmpstr(text, ==,
                    "m_bucket o=A le=0.1 2\nm_bucket o=A le=+Inf 5\nm_count o=A 5\n"
                    "m_sum o=A 3\n");
    g_assert_cmpstr(strange, ==, "m_bucket le= 0\nm_bucket le= 3\nm_count 3\nm_sum 0\n");
    g_assert_cmpstr(none, ==, "");
}

/* --- the text --- */

static const struct metric bytes = {
    "fettle_x_bytes", METRIC_COUNTER, "bytes", "a=a", "", "", "", 1, "One \\ two\n\"three\"."};
static const struct metric up = {"fettle_up", METRIC_GAUGE, "", "", "", "", "", 1, "Up."};

static char *text_in(enum metric_form form)
{
    struct metric_text *text = metric_text_new(form);
    const char *const strange[] = {"a", "q\"b\\n\nü\xe2\x80\xae", NULL}, *const none[] = {NULL};
    const char *const two[] = {"a", "1", "b", "", NULL};
    size_t len;
    metric_text_begin(text, &bytes);
    metric_text_sample(text, "_total", strange, 9007199254740992.0);
    metric_text_sample(text, "_total", two, 0.1);
    metric_text_begin(text, &up);
    metric_text_sample(text, "", none, 1);
    metric_text_sample(text, "", none, NAN);
    metric_text_sample(text, "", none, -INFINITY);
    char *result = metric_text_free(text, &len);
    g_assert_cmpuint(len, ==, strlen(result));
    return result;
}

static void test_text(void)
{
    g_autofree char *plain = text_in(METRIC_PROMETHEUS);
    g_autofree char *open = text_in(METRIC_OPENMETRICS);
    g_assert_cmpstr(plain, ==,
                    "# HELP fettle_x_bytes_total One \\\\ two\\n\"three\".\n"
                    "# TYPE fettle_x_bytes_total counter\n"
                    "fettle_x_bytes_total{a=\"q\\\"b\\\\n\\nü\xe2\x80\xae\"} 9007199254740992\n"
                    "fettle_x_bytes_total{a=\"1\",b=\"\"} 0.1\n"
                    "# HELP fettle_up Up.\n# TYPE fettle_up gauge\n"
                    "fettle_up 1\nfettle_up NaN\nfettle_up -Inf\n");
    g_assert_cmpstr(open, ==,
                    "# HELP fettle_x_bytes One \\\\ two\\n\\\"three\\\".\n"
                    "# TYPE fettle_x_bytes counter\n# UNIT fettle_x_bytes bytes\n"
                    "fettle_x_bytes_total{a=\"q\\\"b\\\\n\\nü\xe2\x80\xae\"} 9007199254740992\n"
                    "fettle_x_bytes_total{a=\"1\",b=\"\"} 0.1\n"
                    "# HELP fettle_up Up.\n# TYPE fettle_up gauge\n"
                    "fettle_up 1\nfettle_up NaN\nfettle_up -Inf\n# EOF\n");
}

static char *page_of(const char *document, const char *accept)
{
    json_autoptr json = json_loads(document, 0, NULL);
    const char *type;
    size_t len;
    char *page = metrics_of_samples((struct metric_document[]){{"cluster", json}, {NULL, NULL}},
                                    accept, &type, &len);
    g_assert_cmpuint(len, ==, strlen(page));
    g_assert_cmpint(metric_form_of(accept), ==,
                    g_str_has_suffix(page, "# EOF\n") ? METRIC_OPENMETRICS : METRIC_PROMETHEUS);
    return page;
}

/* What is not in the document is not told of, nor are metrics of others. */
static void test_samples(void)
{
    g_autofree char *page =
        page_of("{\"serial\": 17, \"jobs_ended\": [{\"opcode\": \"OP_A\", \"status\": \"success\", "
                "\"count\": "
                "3}], \"queue_wait\": {\"buckets\": [[\"+Inf\", 1]], \"sum\": 0.5}, \"cpus\": 4}",
                "application/openmetrics-text");
    g_autofree char *nothing = page_of("{}", "");
    g_assert_nonnull(strstr(page, "\nfettle_cluster_config_serial 17\n"));
    g_assert_nonnull(strstr(page, "# TYPE fettle_cluster_jobs_ended counter\n"));
    g_assert_nonnull(
        strstr(page, "fettle_cluster_jobs_ended_total{opcode=\"OP_A\",status=\"success\"} 3\n"));
    g_assert_nonnull(strstr(page, "# TYPE fettle_cluster_queue_wait_seconds histogram\n"
                                  "# UNIT fettle_cluster_queue_wait_seconds seconds\n"
                                  "fettle_cluster_queue_wait_seconds_bucket{le=\"+Inf\"} 1\n"
                                  "fettle_cluster_queue_wait_seconds_count 1\n"
                                  "fettle_cluster_queue_wait_seconds_sum 0.5\n"));
    g_assert_null(strstr(page, "fettle_node_"));
    g_assert_cmpstr(nothing, ==, "");
}

/* --- what was answered --- */

static void test_requests(void)
{
    struct request_tally *tally = request_tally_new((const char *const[]){"ganeti", "other", NULL});
    request_tally_add(tally, "ganeti", 200, 1000);
    request_tally_add(tally, "ganeti", 201, 1001);
    request_tally_add(tally, "ganeti", 503, 60000000);
    request_tally_add(tally, "other", 431, 0);
    json_autoptr document = request_tally_tell(tally);
    request_tally_free(tally);
    const char *type;
    size_t len;
    g_autofree char *page = metrics_of_samples(
        (struct metric_document[]){{"rapid", document}, {NULL, NULL}}, "", &type, &len);
    static const char *const lines[] = {
        "fettle_rapid_requests_total{service=\"ganeti\",status=\"2xx\"} 2\n",
        "fettle_rapid_requests_total{service=\"ganeti\",status=\"5xx\"} 1\n",
        "fettle_rapid_requests_total{service=\"other\",status=\"2xx\"} 0\n",
        "fettle_rapid_requests_total{service=\"other\",status=\"4xx\"} 1\n",
        "fettle_rapid_request_seconds_bucket{service=\"ganeti\",le=\"0.001\"} 1\n"
        "fettle_rapid_request_seconds_bucket{service=\"ganeti\",le=\"0.01\"} 2\n",
        "fettle_rapid_request_seconds_bucket{service=\"ganeti\",le=\"10.0\"} 2\n"
        "fettle_rapid_request_seconds_bucket{service=\"ganeti\",le=\"+Inf\"} 3\n"
        "fettle_rapid_request_seconds_count{service=\"ganeti\"} 3\n"
        "fettle_rapid_request_seconds_sum{service=\"ganeti\"} 60.002001\n",
    };
    for (guint i = 0; i < G_N_ELEMENTS(lines); i++)
        if (!strstr(page, lines[i]))
            g_error("no %s in %s", lines[i], page);
}

static void test_form(void)
{
    const struct {
        const char *accept;
        enum metric_form form;
    } rows[] = {
        {"", METRIC_PROMETHEUS},
        {"*/*", METRIC_PROMETHEUS},
        {"text/plain", METRIC_PROMETHEUS},
        {"application/openmetrics-text", METRIC_OPENMETRICS},
        {"application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/"
         "*;q=0.1",
         METRIC_OPENMETRICS},
        {"application/openmetrics-text; q=0.2, text/plain", METRIC_PROMETHEUS},
        {"application/openmetrics-text;q=0", METRIC_PROMETHEUS},
        {"Application/OpenMetrics-Text ; Q=1", METRIC_OPENMETRICS},
        {",;q=;,,application/openmetrics-textual", METRIC_PROMETHEUS},
    };
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_test_message("%s", rows[i].accept);
        g_assert_cmpint(metric_form_of(rows[i].accept), ==, rows[i].form);
    }
    g_assert_true(g_str_has_prefix(metric_form_type(METRIC_PROMETHEUS), "text/plain; version=0"));
    g_assert_true(g_str_has_prefix(metric_form_type(METRIC_OPENMETRICS), "application/openmetr"));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/metrics/table", test_table);
    g_test_add_func("/metrics/find", test_find);
    g_test_add_func("/metrics/find-histogram", test_find_histogram);
    g_test_add_func("/metrics/text", test_text);
    g_test_add_func("/metrics/samples", test_samples);
    g_test_add_func("/metrics/form", test_form);
    g_test_add_func("/metrics/requests", test_requests);
    return g_test_run();
}
