/* What must be true of cleanups on record, and of every step of one. */
#include <string.h>

#include "unit/core/world/storage_world.h"

#define BACKEND put("backend", DIR1, 1, object_backend(DIR1))
#define SERVICES                                                                                   \
    put("counter", "storage-service", 1, json_make("{s:i}", "value", 2)),                          \
        put("storage_service", service_key(NODE1), 1, object_service(NODE1)),                      \
        put("storage_service", service_key(NODE2), 1, object_service(NODE2))
#define TEXT(text) json_string(text)
#define NUMBER(number) json_integer(number)

static char *work(GPtrArray *setup, GPtrArray *changes)
{
    return check_as(setup, changes, AUTHOR_WORK);
}

/* Node2 cleans for node1, asked for at 100. */
static json_t *cleanup1(void)
{
    return json_make("{s:i,s:i,s:s,s:i,s:i,s:i}", "service_id", 1, "by", 2, "state", "running",
                     "requested_us", 100, "found", 3, "cleaned", 1);
}

static struct change *cleanup_now(const char *member, json_t *value)
{
    return put("cleanup", "1", 9, with(cleanup1(), member, value));
}

static char *cleanup_step(const char *member, json_t *value)
{
    return work(changes_of(BACKEND, SERVICES, put("cleanup", "1", 1, cleanup1()), NULL),
                changes_of(cleanup_now(member, value), NULL));
}

static void test_cleanup(void)
{
    const struct {
        const char *member;
        json_t *value;
        const char *said;
    } cases[] = {
        {"resource_type", TEXT("Volume"), "its key is not 1/Volume"},
        {"by", NUMBER(0), "by: 0, but it is running"},
        {"state", TEXT("unavailable"), "by: 2, but it is unavailable"},
        {"by", NUMBER(1), "by: nobody stands in for himself"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *said =
            work(changes_of(BACKEND, SERVICES, NULL),
                 changes_of(cleanup_now(cases[i].member, cases[i].value), NULL));
        if (!g_str_has_prefix(said, "wrong_input: ") || !g_str_has_suffix(said, cases[i].said))
            g_error("%s: %s, and not %s", cases[i].member, said, cases[i].said);
    }
    assert_says(work(changes_of(BACKEND, SERVICES, NULL),
                     changes_of(put("cleanup", "1/Volume/" VOLUME1, 9,
                                    with(with(cleanup1(), "resource_type", TEXT("Volume")),
                                         "resource_id", TEXT(VOLUME1))),
                                NULL)),
                "ok");
}

static void test_cleanup_steps(void)
{
    const struct {
        const char *member;
        json_t *value;
        const char *said;
    } cases[] = {
        {"cleaned", NUMBER(2), "ok"},
        {"state", TEXT("done"), "ok"},
        {"requested_us", NUMBER(101), "ok"},
        {"requested_us", NUMBER(99), "requested_us: "},
        {"cleaned", NUMBER(0), "cleaned: "},
        {"skipped", NUMBER(1), "ok"},
        {"found", NUMBER(4), "found: never changes"},
        {"died_us", NUMBER(4), "died_us: never changes"},
        {"manual", json_true(), "manual: never changes"},
        {"state", TEXT("asked"), "state: from running to asked without being asked for anew"},
        {"by", NUMBER(3), "by: service 3 cannot clean for 1"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *said = cleanup_step(cases[i].member, cases[i].value);
        if (!strstr(said, cases[i].said))
            g_error("%s: %s, and not %s", cases[i].member, said, cases[i].said);
    }
    assert_says(check_as(changes_of(BACKEND, SERVICES, NULL),
                         changes_of(put("cleanup", "1", 9, cleanup1()), NULL), AUTHOR_COMMIT),
                "unsafe: cleanup 1: is written only by the methods of work (SAF-50)");
    /* Who is to clean is up, and of that back end. */
    json_t *down = with(object_service(NODE2), "state", TEXT("down"));
    g_autofree char *said = work(
        changes_of(BACKEND, SERVICES, put("storage_service", service_key(NODE2), 1, down), NULL),
        changes_of(put("cleanup", "1", 9, cleanup1()), NULL));
    g_assert_nonnull(strstr(said, "by: service 2 cannot clean for 1"));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/cleanup_rules/cleanup", test_cleanup);
    g_test_add_func("/cleanup_rules/steps#CLN-16,CLN-30", test_cleanup_steps);
    return g_test_run();
}
