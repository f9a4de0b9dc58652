/* Webhooks as text: events, receivers, addresses. proto/webhook/webhook.h. */
#include "proto/webhook/webhook.h"

#include "base/error.h"

static GPtrArray *list(const char *words)
{
    GPtrArray *texts = g_ptr_array_new_with_free_func(g_free);
    g_auto(GStrv) split = g_strsplit(words, " ", -1);
    for (char **word = split; *word; word++)
        if (**word)
            g_ptr_array_add(texts, g_strdup(*word));
    return texts;
}

static void test_events(void)
{
    static const struct {
        const char *patterns, *word;
        bool wants;
    } rows[] = {{"job.error", "job.error", true},
                {"job.error", "job.success", false},
                {"job.*", "job.success", true},
                {"job.*", "jobs.success", false},
                {"repair.* job.error", "job.error", true},
                {"*", "event.alert", true},
                {"", "event.alert", true},
                {"job.*", "decision.act", false}};
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autoptr(GPtrArray) patterns = list(rows[i].patterns);
        g_assert_cmpint(webhook_wants(patterns, rows[i].word), ==, rows[i].wants);
    }
    for (const char *const *word = webhook_words; *word; word++)
        g_assert_true(webhook_pattern_check(*word, NULL));
    static const char *const bad[] = {"", "job", "job.", "job.errors", ".*", "jobs.*", "job.e*"};
    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autoptr(GError) error = NULL;
        g_autofree char *said = g_strdup_printf("events: there is no event \"%s\"; there are "
                                                "job.success, ",
                                                bad[i]);
        g_assert_false(webhook_pattern_check(bad[i], &error));
        g_assert_true(g_str_has_prefix(error->message, said));
    }
}

static void test_urls(void)
{
    static const struct {
        const char *text, *host, *authority, *target;
        guint port;
        bool tls;
    } good[] = {
        {"https://a.example", "a.example", "a.example", "/", 443, true},
        {"http://a.example", "a.example", "a.example", "/", 80, false},
        {"HTTPS://a.example:8443/x/y?z=1&q=%20", "a.example", "a.example:8443", "/x/y?z=1&q=%20",
         8443, true},
        {"http://[2001:db8::1]:80/", "2001:db8::1", "[2001:db8::1]:80", "/", 80, false},
        {"http://192.0.2.1?a", "192.0.2.1", "192.0.2.1", "/?a", 80, false},
    };
    static const struct {
        const char *text, *said;
    } bad[] = {
        {"", "url: must begin with https:// or http://"},
        {"ftp://a", "url: must begin with https:// or http://"},
        {"a.example/x", "url: must begin with https:// or http://"},
        {"https://", "url: must name a host, as https://receiver.example/path"},
        {"https:///x", "url: must name a host, as https://receiver.example/path"},
        {"https://[fe80::1%25eth0]/", "url: must name a host, as https://receiver.example/path"},
        {"https://a\r\nHost: b/", "url: may have no blank, no control character, and nothing but "
                                  "ASCII"},
        {"https://a/\xc3\xa4", "url: may have no blank, no control character, and nothing but "
                               "ASCII"},
        {"https://a/#b", "url: may have no \"#\""},
        {"https://u:p@a/", "url: may have no user and no password: it is shown in lists; the "
                           "signature says who sends"},
        {"https://a:0/", "url: 0 is no port"},
        {"https://a:99999/", "url: must begin with https:// or http://"},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(good); i++) {
        g_autoptr(webhook_url_t) url = webhook_url_parse(good[i].text, NULL);
        g_assert_nonnull(url);
        g_assert_cmpstr(url->host, ==, good[i].host);
        g_assert_cmpstr(url->authority, ==, good[i].authority);
        g_assert_cmpstr(url->target, ==, good[i].target);
        g_assert_cmpuint(url->port, ==, good[i].port);
        g_assert_cmpint(url->tls, ==, good[i].tls);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autoptr(GError) error = NULL;
        g_assert_null(webhook_url_parse(bad[i].text, &error));
        g_assert_cmpstr(error->message, ==, bad[i].said);
    }
}

static void test_addresses(void)
{
    static const struct {
        const char *address, *allowed;
        bool good;
    } rows[] = {
        {"203.0.113.9", "", true},
        {"2001:db8::9", "", true},
        {"192.0.2.1", "", false},
        {"::ffff:192.0.2.1", "", false},
        {"2001:db8::1", "", false},
        {"2001:0db8:0::1", "", false},
        {"127.0.0.1", "", false},
        {"127.9.9.9", "", false},
        {"::1", "", false},
        {"::", "", false},
        {"0.0.0.0", "", false},
        {"0.1.2.3", "", false},
        {"169.254.169.254", "", false},
        {"fe80::1", "", false},
        {"febf::1", "", false},
        {"ff02::1", "", false},
        {"224.0.0.1", "", false},
        {"255.255.255.255", "", false},
        {"::ffff:127.0.0.1", "", false},
        {"::ffff:7f00:1", "", false},
        {"::127.0.0.1", "", false},
        {"64:ff9b::127.0.0.1", "", false},
        {"64:ff9b::203.0.113.9", "", true},
        {"2002:7f00:1::1", "", false},
        {"64:ff9b:1::127.0.0.1", "", false},
        {"64:ff9b:1:7f00:0:100::", "", false},
        {"::ffff:0:127.0.0.1", "", false},
        {"::ffff:0:203.0.113.9", "", true},
        {"2001:0:c000:201::80ff:fffe", "", false}, /* Teredo, of 127.0.0.1 */
        {"2001:db8::5efe:127.0.0.1", "", false},
        {"2001:db8::200:5efe:192.0.2.1", "", false},
        {"2001:db8::200:5efe:203.0.113.9", "", true},
        {"2001:db8::5efe:127.0.0.1", "127.0.0.0/8", true},
        {"fe80::1%eth0", "", false},
        {"x", "", false},
        {"127.0.0.1", "127.0.0.0/8", true},
        {"::ffff:127.0.0.1", "127.0.0.1", true},
        {"127.0.0.2", "127.0.0.1", false},
        {"::1", "::1", true},
        {"::1", "127.0.0.0/8", false},
        {"192.0.2.1", "198.51.100.0/24 192.0.0.0/9", true},
        {"192.0.2.1", "192.128.0.0/9", false},
        {"2001:db8::1", "2001:db8::/32", true},
        {"127.0.0.1", "::/0", true},
    };
    g_autoptr(GPtrArray) refused = list("192.0.2.1 2001:db8::1");
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autoptr(GPtrArray) allowed = list(rows[i].allowed);
        if (webhook_address_is_good(rows[i].address, refused, allowed) != rows[i].good)
            g_error("%s, allowed: %s", rows[i].address, rows[i].allowed);
    }
    static const char *const bad[] = {"",           "x",      "192.0.2.0/33", "192.0.2.0/",
                                      "192.0.2/24", "::/129", "192.0.2.0/-1", "192.0.2.0/24/1"};
    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autoptr(GError) error = NULL;
        g_autofree char *said = g_strdup_printf(
            "webhook_allow: \"%s\" is no network such as 192.0.2.0/24 or 2001:db8::/32", bad[i]);
        g_assert_false(webhook_network_check(bad[i], &error));
        g_assert_cmpstr(error->message, ==, said);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/webhook/events", test_events);
    g_test_add_func("/webhook/urls", test_urls);
    g_test_add_func("/webhook/addresses", test_addresses);
    return g_test_run();
}
