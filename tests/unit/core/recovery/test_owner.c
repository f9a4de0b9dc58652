/* Who counts as the owner of a task, and as what. core/recovery/owner.c */
#include "core/recovery/owner.h"

static void put(struct config *config, const char *kind, const char *key, json_t *object)
{
    g_autoptr(GError) error = NULL;
    record_autoptr(change) change = config_put(config, kind, key, object);
    change->version = config_serial(config) + 1;
    config_apply(config, change, &error);
    g_assert_no_error(error);
}

/* As the store has them: of a job that was started nothing further is committed until its end, so
 * its word is no proof of anything but that. */
static void put_job(struct config *config, guint id, const char *status, bool started)
{
    g_autofree char *key = g_strdup_printf("%u", id);
    put(config, "job", key,
        json_make("{si s[{s{} ss}] ss sb sI}", "id", id, "ops", "input", "status", status, "status",
                  status, "started", started, "end_us", (json_int_t)1700000000 * 1000000));
}

static void test_owner(void)
{
    static const struct {
        const char *status;
        bool started;
        enum recovery_owner owner;
    } cases[] = {
        {"queued", false, OWNER_QUEUED},  {"waiting", true, OWNER_LIVES},
        {"queued", true, OWNER_LIVES},    {"running", true, OWNER_LIVES},
        {"canceling", true, OWNER_LIVES}, {"success", true, OWNER_DEAD},
        {"error", true, OWNER_DEAD},      {"canceled", false, OWNER_DEAD},
    };
    struct config *config = config_new();
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        put_job(config, i + 1, cases[i].status, cases[i].started);
        g_assert_cmpint(recovery_owner_of(config, i + 1), ==, cases[i].owner);
    }
    config_free(config);
}

static void test_nobody_knows_it(void)
{
    struct config *config = config_new();
    g_assert_cmpint(recovery_owner_of(config, 17), ==, OWNER_UNKNOWN);
    g_assert_cmpint(recovery_owner_of(config, 0), ==, OWNER_DEAD);
    put(config, "counter", "job", json_make("{si}", "value", 17));
    g_assert_cmpint(recovery_owner_of(config, 17), ==, OWNER_DEAD);
    g_assert_cmpint(recovery_owner_of(config, 18), ==, OWNER_UNKNOWN);
    config_free(config);
}

static void assert_text(const struct config *config, guint64 job, const char *expected)
{
    g_autofree char *text = recovery_owner_text(config, job);
    g_assert_cmpstr(text, ==, expected);
}

/* Why it counts as that. */
static void test_text(void)
{
    struct config *config = config_new();
    put(config, "counter", "job", json_make("{si}", "value", 4));
    put_job(config, 1, "error", true);
    put_job(config, 2, "running", true);
    put_job(config, 3, "queued", false);
    assert_text(config, 1, "it ended at 2023-11-14 22:13:20 UTC (error)");
    assert_text(config, 2, "it has been started, and has not ended");
    assert_text(config, 3, "it has not been started");
    assert_text(config, 4, "it was archived after its end");
    assert_text(config, 5, "no job of that number is known");
    assert_text(config, 0, "no job is on record as its owner");
    config_free(config);
}

static void test_words(void)
{
    g_assert_cmpstr(recovery_owner_word(OWNER_DEAD), ==, "dead");
    g_assert_cmpstr(recovery_owner_word(OWNER_LIVES), ==, "lives");
    g_assert_cmpstr(recovery_owner_word(OWNER_QUEUED), ==, "queued");
    g_assert_cmpstr(recovery_owner_word(OWNER_UNKNOWN), ==, "unknown");
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/recovery/owner/by-its-record#RCV-03,RCV-12", test_owner);
    g_test_add_func("/recovery/owner/without-a-record#RCV-03", test_nobody_knows_it);
    g_test_add_func("/recovery/owner/why#RCV-33", test_text);
    g_test_add_func("/recovery/owner/words", test_words);
    return g_test_run();
}
