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
        json_make("{si s[{s{} ss}] ss sb}", "id", id, "ops", "input", "status", status, "status",
                  status, "started", started));
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
    g_test_add_func("/recovery/owner/words", test_words);
    return g_test_run();
}
