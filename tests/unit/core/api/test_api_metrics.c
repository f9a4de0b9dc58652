/* /metrics of a front end: who may see it, and what it has counted. core/api/api_metrics.c */
#include <string.h>

#include "unit/core/world/api_world.h"

static void check_counted(const char *line)
{
    g_autofree char *said = api_ask("GET", "/metrics", "");
    if (!strstr(said, line))
        g_error("no %s in %s", line, said);
}

static void test_who(void)
{
    static const char *const here[] = {"127.0.0.1:41234", "127.8.7.6:1",
                                       "[::1]:41234",     "[::ffff:127.0.0.1]:41234",
                                       "192.0.2.9:41234", "[::ffff:192.0.2.9]:1"};
    static const char *const elsewhere[] = {"192.0.2.127:41234", "[::2]:41234",
                                            "[::ffff:192.0.2.1]:41234", "127.x:1", ""};
    api_set_up(NULL);
    api_be("");
    for (guint i = 0; i < G_N_ELEMENTS(here); i++) {
        api_from(here[i]);
        g_autofree char *said = api_ask("GET", "/metrics", "");
        g_assert_true(g_str_has_prefix(said, "200 # HELP fettle_api_requests_total "));
    }
    for (guint i = 0; i < G_N_ELEMENTS(elsewhere); i++) {
        api_from(elsewhere[i]);
        g_autofree char *said = api_ask("GET", "/metrics", "");
        g_assert_true(g_str_has_prefix(said, "401 "));
    }
    api_from(NULL);
    api_be("member");
    api_refused(403, "metrics are for administrators, and for this host itself", "GET", "/metrics",
                "");
    api_be("admin");
    check_counted("fettle_api_requests_total{service=\"other\",status=\"4xx\"} 6\n");
    api_refused(405, "/metrics is answered to GET, HEAD alone", "POST", "/metrics", "{}");
    g_assert_cmpstr(api_header("Allow"), ==, "GET, HEAD");
    api_tear_down();
}

/* By services, whatever their paths; nothing of a client's words is there. */
static void test_counted(void)
{
    api_set_up(NULL);
    check_counted("fettle_api_requests_total{service=\"volume\",status=\"2xx\"} 0\n");
    json_decref(api_get(200, "GET", "/volumes", ""));
    json_decref(api_get(200, "GET", "/volumes/detail", ""));
    json_decref(api_get(404, "GET", "/volumes/of-a-stranger", ""));
    json_decref(api_get(200, "GET", "/image/v2/images", ""));
    check_counted("fettle_api_requests_total{service=\"volume\",status=\"2xx\"} 2\n");
    check_counted("fettle_api_requests_total{service=\"volume\",status=\"4xx\"} 1\n");
    check_counted("fettle_api_requests_total{service=\"image\",status=\"2xx\"} 1\n");
    check_counted("fettle_api_requests_total{service=\"identity\",status=\"5xx\"} 0\n");
    check_counted("fettle_api_request_seconds_count{service=\"volume\"} 3\n");
    check_counted("\nfettle_api_configuration_age_seconds 0\n");
    g_autofree char *said = api_ask("GET", "/metrics", "");
    g_assert_null(strstr(said, "stranger"));
    g_assert_null(strstr(said, PROJECT1));
    g_assert_true(g_str_has_prefix(api_header("Content-Type"), "text/plain; version=0.0.4"));
    api_with("accept", "application/openmetrics-text");
    check_counted("\n# EOF\n");
    g_assert_true(g_str_has_prefix(api_header("Content-Type"), "application/openmetrics-text"));
    api_with("accept", NULL);
    api_tear_down();
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/api-metrics/who", test_who);
    g_test_add_func("/api-metrics/counted", test_counted);
    return g_test_run();
}
