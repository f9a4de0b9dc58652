/* Which services are cleaned for, and by whom (CLN-28 to 43, 47, 52, 56). */
#include "core/storage/cleanup_plan.h"

#include <string.h>

#include "unit/core/world/storage_world.h"

static struct config *config;
static GHashTable *ages; /* number of a service -> how long its state is so (s) */
static struct request_cleanup_args *args;

static void apply(struct change *change)
{
    g_autoptr(GError) error = NULL;
    config_apply(config, change, &error);
    g_assert_no_error(error);
    change_free(change);
}

static void set_service(guint id, const char *host, const char *backend, const char *members,
                        guint age_s)
{
    bool scheduler = !*backend;
    g_autofree char *key =
        config_storage_service_key(scheduler ? STORAGE_SCHEDULER : STORAGE_VOLUME, host, backend);
    json_t *json =
        json_make("{s:s,s:i,s:s,s:s,s:s,s:s,s:i,s:i,s:i}", "uuid", key, "id", id, "binary",
                  scheduler ? "cinder-scheduler" : "cinder-volume", "host", host, "backend",
                  backend, "node", NODE1, "generation", 1, "state_since_us", 50 + id, "wire", 1);
    json_autoptr more = json_parse_limited(members, strlen(members), 1000, NULL);
    json_object_update(json, more);
    apply(put("storage_service", key, 1, json));
    g_hash_table_insert(ages, GUINT_TO_POINTER(id), GUINT_TO_POINTER(age_s));
}

#define UP "{\"state\":\"up\"}"
#define DOWN "{\"state\":\"down\"}"
#define DISABLED "{\"state\":\"down\",\"disabled\":true}"

/* Number `n` of its resource. */
static char *resource(guint n)
{
    return g_strdup_printf("eeeeeeee-0000-4000-8000-%012u", n);
}

static void set_row(guint n, guint service_id, guint64 updated_us)
{
    g_autofree char *uuid = resource(n);
    g_autofree char *key = config_work_key(RESOURCE_VOLUME, uuid);
    json_t *row = json_make("{s:i,s:i,s:i,s:s,s:s,s:s,s:s,s:s,s:i,s:i}", "id", 9, "created_us", 1,
                            "updated_us", updated_us, "resource_type", "Volume", "resource_id",
                            uuid, "operation", "delete-volume", "status", "deleting", "backend",
                            DIR1, "service_id", service_id, "claim", 9);
    apply(put("worker", key, 1, row));
}

static void set_cleanup(const char *key, json_t *json)
{
    apply(put("cleanup", key, 1, json));
}

/* Four of six are down; rows of 1 (two), 4 and 6. */
static void set_up(void)
{
    config = config_new();
    ages = g_hash_table_new(NULL, NULL);
    args = request_cleanup_args_new();
    g_autoptr(GPtrArray) all = initial_storage();
    for (guint i = 0; i < all->len; i++)
        g_assert_true(config_apply(config, all->pdata[i], NULL));
    set_service(1, "node1", DIR1, DOWN, 1000);
    set_service(2, "node2", DIR1, UP, 1000);
    set_service(3, "node3", DIR1, DISABLED, 1000);
    set_service(4, "node2", DIR2, DOWN, 1000);
    set_service(5, "node1", "", UP, 1000);
    set_service(6, "node2", "", DOWN, 1000);
    set_row(1, 1, 100);
    set_row(2, 1, 101);
    set_row(4, 4, 102);
    set_row(6, 6, 103);
}

static void tear_down(void)
{
    request_cleanup_args_free(args);
    g_hash_table_unref(ages);
    config_free(config);
}

static gint64 state_ms(const void *data, const struct storage_service *service)
{
    gpointer age_s = g_hash_table_lookup(ages, GUINT_TO_POINTER((guint)service->id));
    return (gint64)GPOINTER_TO_UINT(age_s) * 1000;
}

static const struct cleanup_clock clock_of_test = {state_ms, NULL};

/* `1 by 2: 2; 4 -: 1`; with `*` what is put on record. */
static char *plan(void)
{
    g_autoptr(GError) error = NULL;
    GString *text = g_string_new(NULL);
    g_autoptr(GPtrArray) items = cleanup_plan(config, args, &clock_of_test, &error);
    if (!items) {
        g_string_append_printf(text, "%s: %s", fettle_error_name(error), error->message);
        return g_string_free(text, FALSE);
    }
    for (guint i = 0; i < items->len; i++) {
        const struct cleanup_item *item = items->pdata[i];
        g_string_append_printf(text, "%s%" G_GUINT64_FORMAT, i ? "; " : "", item->service->id);
        if (item->by)
            g_string_append_printf(text, " by %" G_GUINT64_FORMAT, item->by->id);
        g_string_append_printf(text, ": %u%s", item->found, item->cleanup ? "*" : "");
    }
    return g_string_free(text, FALSE);
}

/* With one word of the request, for this once. */
static void assert_plan(char **word, const char *text, const char *expected)
{
    if (word)
        text_set(word, text);
    assert_says(plan(), expected);
    if (word)
        text_set(word, "");
}

/* --- requests --- */

static void test_all_that_are_down(void)
{
    set_up();
    assert_plan(NULL, NULL, "1 by 2: 2*; 3 by 2: 0; 4: 1*; 6 by 5: 1*");
    tear_down();
}

static void test_filters(void)
{
    set_up();
    assert_plan(&args->service_id, "1", "1 by 2: 2*");
    assert_plan(&args->service_id, "2", "");
    assert_plan(&args->service_id, "99", "");
    assert_plan(&args->cluster_name, "fettle@dir1", "1 by 2: 2*; 3 by 2: 0");
    assert_plan(&args->cluster_name, "dir1", "");
    assert_plan(&args->host, "node2@dir2", "4: 1*");
    assert_plan(&args->host, "node2", "4: 1*; 6 by 5: 1*");
    assert_plan(&args->binary, "cinder-scheduler", "6 by 5: 1*");
    assert_plan(&args->disabled, "true", "3 by 2: 0");
    assert_plan(&args->disabled, "False", "1 by 2: 2*; 4: 1*; 6 by 5: 1*");
    assert_plan(&args->is_up, "0", "1 by 2: 2*; 3 by 2: 0; 4: 1*; 6 by 5: 1*");
    assert_plan(&args->is_up, "yes", "2: 0; 5: 0"); /* nobody is there beside them */
    text_set(&args->cluster_name, "fettle@dir1");
    assert_plan(&args->disabled, "no", "1 by 2: 2*");
    assert_plan(&args->binary, "cinder-scheduler", "");
    tear_down();
}

static void test_resources(void)
{
    set_up();
    g_autofree char *first = resource(1);
    g_autofree char *upper = g_ascii_strup(first, -1);
    g_autofree char *fourth = resource(4);
    assert_plan(&args->resource_type, "volume", "1 by 2: 2*; 3 by 2: 0; 4: 1; 6 by 5: 1*");
    assert_plan(&args->resource_id, first, "1 by 2: 1*");
    assert_plan(&args->resource_id, upper, "1 by 2: 1*");
    assert_plan(&args->resource_id, fourth, "4: 1");
    text_set(&args->binary, "cinder-volume");
    assert_plan(&args->resource_id, first, "1 by 2: 1*");
    text_set(&args->binary, "cinder-scheduler");
    assert_plan(&args->resource_id, first, "");
    tear_down();
}

/* CLN-42: what is bad is named. */
static void test_bad(void)
{
    set_up();
    assert_plan(&args->service_id, "abc",
                "wrong_input: service_id: \"abc\" is not the number of a service");
    assert_plan(&args->service_id, "0",
                "wrong_input: service_id: \"0\" is not the number of a service");
    assert_plan(&args->binary, "cinder-backup",
                "wrong_input: binary: \"cinder-backup\" is not valid, must be cinder-volume or "
                "cinder-scheduler");
    assert_plan(&args->is_up, "maybe", "wrong_input: is_up: \"maybe\" is neither true nor false");
    assert_plan(&args->disabled, "2", "wrong_input: disabled: \"2\" is neither true nor false");
    assert_plan(&args->resource_id, "7", "wrong_input: resource_id: \"7\" is not a UUID");
    assert_plan(&args->resource_id, DISK1,
                "wrong_input: resource_id: no work is under way on " DISK1);
    g_autofree char *words = g_strjoinv(" or ", (char **)resource_type_words.words);
    g_autofree char *group =
        g_strdup_printf("wrong_input: resource_type: \"Group\" is not valid, must be %s", words);
    assert_plan(&args->resource_type, "Group", group);
    tear_down();
}

static void test_upgrade(void)
{
    const char *said = "wrong_input: Cannot perform workers cleanup during system upgrade.";
    set_up();
    set_service(1, "node1", DIR1, "{\"state\":\"down\",\"wire\":2}", 1000);
    assert_plan(NULL, NULL, "1 by 2: 2*; 3 by 2: 0; 4: 1*; 6 by 5: 1*");
    set_service(5, "node1", "", "{\"state\":\"up\",\"wire\":2}", 1000);
    assert_plan(NULL, NULL, said);
    tear_down();
}

/* --- who --- */

static void test_stand_in(void)
{
    set_up();
    text_set(&args->service_id, "1");
    /* Whoever the lot says, the same in each version. */
    set_service(7, "node7", DIR1, UP, 1000);
    set_service(8, "node8", DIR1, UP, 1000);
    assert_plan(NULL, NULL, "1 by 8: 2*");
    set_service(8, "node8", DIR1, DOWN, 1000);
    assert_plan(NULL, NULL, "1 by 2: 2*");
    /* One that is to take nothing new comes last. */
    set_service(2, "node2", DIR1, "{\"state\":\"up\",\"disabled\":true}", 1000);
    assert_plan(NULL, NULL, "1 by 7: 2*");
    set_service(7, "node7", DIR1, DOWN, 1000);
    assert_plan(NULL, NULL, "1 by 2: 2*");
    tear_down();
}

/* --- by itself --- */

static void test_automatic(void)
{
    set_up();
    args->automatic = true;
    assert_plan(NULL, NULL, "1 by 2: 2*; 4: 1*; 6 by 5: 1*");
    set_service(1, "node1", DIR1, DOWN, 179);
    assert_plan(NULL, NULL, "4: 1*; 6 by 5: 1*");
    set_service(1, "node1", DIR1, DOWN, 180);
    /* SAF-55: who was cut off with the other had the same time to come back. */
    set_service(2, "node2", DIR1, UP, 19);
    assert_plan(NULL, NULL, "1: 2*; 4: 1*; 6 by 5: 1*");
    set_service(2, "node2", DIR1, UP, 20);
    assert_plan(NULL, NULL, "1 by 2: 2*; 4: 1*; 6 by 5: 1*");
    tear_down();
}

static json_t *cleanup_in(const char *state, guint64 died_us, guint by)
{
    return json_make("{s:i,s:s,s:i,s:i,s:i}", "service_id", 1, "state", state, "died_us",
                     (int)died_us, "requested_us", 200, "by", by);
}

/* CLN-21, 52, 54, 56: what is in hand stays so; what failed, what nobody could do, what was about
 * another death is asked for again. A person asks again whatever there is. */
static void test_asked_before(void)
{
    static const struct {
        const char *state;
        guint64 died_us;
        guint by;
        const char *expected;
    } cases[] = {
        {"asked", 51, 2, ""},
        {"running", 51, 2, ""},
        {"running", 40, 2, "1 by 2: 2*"},
        {"done", 51, 2, "1 by 2: 2*"},
        {"unavailable", 51, 0, "1 by 2: 2*"},
    };
    set_up();
    text_set(&args->service_id, "1");
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        set_cleanup("1", cleanup_in(cases[i].state, cases[i].died_us, cases[i].by));
        args->automatic = true;
        assert_plan(NULL, NULL, cases[i].expected);
        args->automatic = false;
        assert_plan(NULL, NULL, "1 by 2: 2*");
    }
    set_service(2, "node2", DIR1, DOWN, 10);
    args->automatic = true;
    assert_plan(NULL, NULL, "1: 2");
    args->automatic = false;
    assert_plan(NULL, NULL, "1: 2*");
    tear_down();
}

/* --- a cleanup --- */

static struct cleanup *read_cleanup(const char *key)
{
    return cleanup_copy(config_get(config, "cleanup", key, NULL));
}

/* CLN-13: strictly before. */
static void test_covers(void)
{
    set_up();
    set_cleanup("1", cleanup_in("asked", 51, 2));
    record_autoptr(cleanup) cleanup = read_cleanup("1");
    cleanup->requested_us = 101;
    g_assert_cmpuint(cleanup_left(config, cleanup), ==, 1);
    cleanup->requested_us = 102;
    g_assert_cmpuint(cleanup_left(config, cleanup), ==, 2);
    g_autofree char *second = resource(2);
    text_set(&cleanup->resource_type, "Volume");
    text_set(&cleanup->resource_id, second);
    g_assert_cmpuint(cleanup_left(config, cleanup), ==, 1);
    text_set(&cleanup->resource_type, "Other");
    g_assert_cmpuint(cleanup_left(config, cleanup), ==, 0);
    tear_down();
}

static guint64 next_of(const struct cleanup *cleanup)
{
    const struct storage_service *next = cleanup_next(config, cleanup, &clock_of_test);
    return next ? next->id : 0;
}

static void test_next(void)
{
    set_up();
    set_cleanup("1", cleanup_in("running", 51, 2));
    set_service(7, "node7", DIR1, UP, 5);
    record_autoptr(cleanup) cleanup = read_cleanup("1");
    g_assert_cmpuint(next_of(cleanup), ==, 0);
    set_service(2, "node2", DIR1, DOWN, 5);
    g_assert_cmpuint(next_of(cleanup), ==, 0); /* not yet */
    cleanup->manual = true;
    g_assert_cmpuint(next_of(cleanup), ==, 7);
    cleanup->by = 99; /* off record */
    g_assert_cmpuint(next_of(cleanup), ==, 7);
    cleanup->state = CLEANUP_DONE;
    g_assert_cmpuint(next_of(cleanup), ==, 0);
    cleanup->state = CLEANUP_UNAVAILABLE;
    cleanup->by = 0;
    g_assert_cmpuint(next_of(cleanup), ==, 7);
    set_service(1, "node1", DIR1, UP, 5);
    g_assert_cmpuint(next_of(cleanup), ==, 0);
    tear_down();
}

static void test_over(void)
{
    set_up();
    set_cleanup("1", cleanup_in("done", 51, 2));
    record_autoptr(cleanup) cleanup = read_cleanup("1");
    g_assert_false(cleanup_is_over(config, cleanup));
    cleanup->service_id = 99;
    g_assert_true(cleanup_is_over(config, cleanup));
    cleanup->service_id = 1;
    set_service(1, "node1", DIR1, UP, 5);
    g_assert_true(cleanup_is_over(config, cleanup));
    cleanup->state = CLEANUP_ASKED;
    g_assert_true(cleanup_is_over(config, cleanup));
    cleanup->is_up = true;
    g_assert_false(cleanup_is_over(config, cleanup));
    cleanup->is_up = false;
    cleanup->state = CLEANUP_RUNNING; /* what is claimed is cleaned to its end */
    g_assert_false(cleanup_is_over(config, cleanup));
    set_service(2, "node2", DIR1, DOWN, 5);
    g_assert_true(cleanup_is_over(config, cleanup));
    tear_down();
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/cleanup_plan/all-that-are-down#CLN-35,CLN-38", test_all_that_are_down);
    g_test_add_func("/cleanup_plan/filters#CLN-36,CLN-41", test_filters);
    g_test_add_func("/cleanup_plan/resources#CLN-37,CLN-41", test_resources);
    g_test_add_func("/cleanup_plan/bad#CLN-42", test_bad);
    g_test_add_func("/cleanup_plan/upgrade#CLN-43", test_upgrade);
    g_test_add_func("/cleanup_plan/stand-in#CLN-28,CLN-29,CLN-30", test_stand_in);
    g_test_add_func("/cleanup_plan/automatic#CLN-47,SAF-55", test_automatic);
    g_test_add_func("/cleanup_plan/asked-before#CLN-21,CLN-52,CLN-54,CLN-56", test_asked_before);
    g_test_add_func("/cleanup_plan/covers#CLN-13", test_covers);
    g_test_add_func("/cleanup_plan/next#CLN-24,CLN-56", test_next);
    g_test_add_func("/cleanup_plan/over", test_over);
    return g_test_run();
}
