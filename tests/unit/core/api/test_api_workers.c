/* workers/cleanup and workers/auto_cleanup over HTTP (CLN-34 to 43, 50, 51): what fits is proven in
 * test_cleanup_plan.c, that it is cleaned in test_volume_cleanup.c; here: who may, the words of
 * refusals, the form of answers. core/api/volume_workers.c */
#include <string.h>

#include "unit/core/world/api_world.h"
#include "unit/core/world/routes_seen.h"

#define CLEANUP "/workers/cleanup"
#define AUTO "/workers/auto_cleanup"

/* node2's member of dir1 and a scheduler of node2 are down since the beginning, node1's is up, and
 * volume data1 is stuck at node2's, and so are so many `more`. */
static void set_up_with(guint wire2, guint more)
{
    json_t *row =
        with(with(object_row1(), "service_id", json_integer(2)), "claim", json_integer(9));
    g_autofree char *key2 = config_storage_service_key(STORAGE_SCHEDULER, "node2", "");
    json_t *scheduler = json_make("{s:s,s:i,s:s,s:s,s:s,s:i,s:s,s:i}", "uuid", key2, "id", 3,
                                  "binary", "cinder-scheduler", "host", "node2", "node", NODE2,
                                  "generation", 1, "state", "down", "wire", 1);
    json_t *two = with(with(object_service(NODE2), "state", json_string(wire2 > 1 ? "up" : "down")),
                       "wire", json_integer((json_int_t)wire2));
    GPtrArray *changes = changes_of(
        put("counter", "storage-service", 1,
            json_make("{s:s,s:i}", "name", "storage-service", "value", 3)),
        put("volume", VOLUME1, 1, with(object_volume1(), "status", json_string("deleting"))),
        put("storage_service", service_key(NODE2), 1, two),
        put("storage_service", key2, 1, scheduler), put("worker", ROW1, 1, row), NULL);
    for (guint i = 1; i <= more; i++) {
        g_autofree char *uuid = g_strdup_printf("ffffffff-1111-4000-8000-%012u", i);
        g_autofree char *data = g_strconcat(uuid, ".7", NULL);
        g_autofree char *name = g_strdup_printf("more%u", i);
        g_autofree char *key = g_strconcat("Volume/", uuid, NULL);
        json_t *volume = with(with(object_volume1(), "uuid", json_string(uuid)), "status",
                              json_string("deleting"));
        json_t *stuck =
            with(with(object_row1(), "service_id", json_integer(2)), "claim", json_integer(9));
        with(with(volume, "data", json_string(data)), "name", json_string(name));
        with(with(stuck, "resource_id", json_string(uuid)), "id", json_integer(9 + i));
        g_ptr_array_add(changes, put("volume", uuid, 1, volume));
        g_ptr_array_add(changes, put("worker", key, 1, stuck));
    }
    api_set_up(changes);
    api_at(24);
}

static void set_up(guint wire2)
{
    set_up_with(wire2, 0);
}

static json_t *post(const char *path, const char *body)
{
    return api_get(202, "POST", path, body);
}

/* Names in a list, joined by spaces; each of its elements has the keys of D1, of their types. */
static char *names_in(const json_t *answer, const char *list)
{
    GString *names = g_string_new(NULL);
    json_t *services = json_object_get(answer, list), *service;
    size_t i;
    g_assert_cmpuint(json_object_size(answer), ==, 2);
    g_assert_true(json_is_array(services));
    json_array_foreach(services, i, service) {
        const json_t *cluster = json_object_get(service, "cluster_name");
        g_assert_cmpuint(json_object_size(service), ==, 6);
        g_assert_true(json_is_integer(json_object_get(service, "id")));
        g_assert_true(json_is_string(json_object_get(service, "host")));
        g_assert_true(json_is_string(json_object_get(service, "binary")));
        g_assert_true(json_is_string(cluster) || json_is_null(cluster));
        g_assert_cmpstr(json_string_value(json_object_get(service, "state")), ==, "down");
        g_string_append_printf(names, "%s%s", i ? " " : "",
                               json_string_value(json_object_get(service, "name")));
    }
    return g_string_free(names, FALSE);
}

static void assert_lists(const char *path, const char *body, const char *cleaning,
                         const char *unavailable)
{
    json_autoptr answer = post(path, body);
    assert_says(names_in(answer, "cleaning"), cleaning);
    assert_says(names_in(answer, "unavailable"), unavailable);
}

#define MEMBER "cinder-volume:node2@dir1"
#define SCHEDULER "cinder-scheduler:node2"

static void test_answers(void)
{
    static const struct {
        const char *body, *cleaning, *unavailable;
    } rows[] = {{"", SCHEDULER " " MEMBER, ""},
                {"{}", SCHEDULER " " MEMBER, ""},
                {"{\"service_id\": 2}", MEMBER, ""},
                {"{\"service_id\": \"2\"}", MEMBER, ""},
                {"{\"host\": \"node2@dir1\"}", MEMBER, ""},
                {"{\"cluster_name\": \"fettle@dir1\"}", MEMBER, ""},
                {"{\"binary\": \"cinder-scheduler\"}", SCHEDULER, ""},
                {"{\"is_up\": \"false\", \"disabled\": \"False\"}", SCHEDULER " " MEMBER, ""},
                {"{\"disabled\": true}", "", ""},
                {"{\"resource_type\": \"volume\", \"host\": \"node2\", \"binary\": "
                 "\"cinder-volume\"}",
                 MEMBER, ""},
                {"{\"resource_id\": \"" VOLUME1 "\", \"binary\": \"cinder-volume\"}", MEMBER, ""}};
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        set_up(1);
        json_autoptr answer = post(CLEANUP, rows[i].body);
        g_autofree char *cleaning = names_in(answer, "cleaning");
        g_auto(GStrv) wanted = g_strsplit(rows[i].cleaning, " ", -1);
        for (char **name = wanted; *name; name++)
            if (!strstr(cleaning, *name))
                g_error("%s: %s", rows[i].body, cleaning);
        g_assert_cmpuint(strlen(cleaning), ==, strlen(rows[i].cleaning));
        assert_says(names_in(answer, "unavailable"), rows[i].unavailable);
        api_tear_down();
    }
}

/* It is on record before the answer; the same again finds it there. */
static void test_on_record(void)
{
    set_up(1);
    assert_lists(CLEANUP, "{\"service_id\": 2}", MEMBER, "");
    const struct cleanup *cleanup = config_get(storage_committed(), "cleanup", "2", NULL);
    g_assert_cmpint(cleanup->state, ==, CLEANUP_ASKED);
    g_assert_true(g_str_has_prefix(cleanup->requester, "admin, req-"));
    assert_lists(CLEANUP, "{\"service_id\": 2}", MEMBER, "");
    api_tear_down();
}

/* However many rows there are, the answer names each service once, and all of them are on record
 * as found when it comes. */
static void test_many_rows(void)
{
    guint rows = g_strcmp0(g_getenv("FETTLE_LONG"), "1") ? 500 : 10000;
    set_up_with(1, rows - 1);
    json_autoptr answer = post(CLEANUP, "{}");
    g_autofree char *cleaning = names_in(answer, "cleaning");
    g_assert_cmpuint(strlen(cleaning), ==, strlen(SCHEDULER " " MEMBER));
    g_assert_nonnull(strstr(cleaning, SCHEDULER));
    g_assert_nonnull(strstr(cleaning, MEMBER));
    assert_says(names_in(answer, "unavailable"), "");
    const struct cleanup *cleanup = config_get(storage_committed(), "cleanup", "2", NULL);
    g_assert_cmpuint(cleanup->found, ==, rows);
    api_tear_down();
}

/* By the rules of the automatic pass, also while that is off: down for a moment is not enough. */
static void test_automatic(void)
{
    set_up(1);
    assert_lists(AUTO, "{}", "", "");
    api_tear_down();
}

static void test_refusals(void)
{
    static const struct {
        const char *body, *message;
    } rows[] = {
        {"{\"x\": 1}", "Additional properties are not allowed ('x' was unexpected)"},
        {"[]", "the body must be an object"},
        {"{\"is_up\": null}", "is_up: must be a boolean"},
        {"{\"is_up\": \"maybe\"}", "is_up: must be a boolean"},
        {"{\"disabled\": 7}", "disabled: must be a boolean"},
        {"{\"service_id\": \"abc\"}", "service_id: must be an integer"},
        {"{\"service_id\": null}", "service_id: must be an integer"},
        {"{\"resource_id\": \"7\"}", "resource_id: must be a UUID"},
        {"{\"resource_type\": \"Host\"}", "resource_type: must be Volume, Snapshot or Backup"},
        {"{\"binary\": \"cinder-backup\"}", "binary: must be cinder-volume or cinder-scheduler"},
        {"{\"host\": 7}", "host: must be a text of 255 letters at most"},
        {"{\"resource_id\": \"" VOLUME2 "\"}", "resource_id: no work is under way on " VOLUME2},
    };
    set_up(1);
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        api_refused(400, rows[i].message, "POST", CLEANUP, rows[i].body);
        api_refused(400, rows[i].message, "POST", AUTO, rows[i].body);
    }
    g_assert_cmpuint(config_count(storage_committed(), "cleanup"), ==, 0);
    api_tear_down();
}

static void test_versions_and_roles(void)
{
    set_up(1);
    api_at(23);
    g_autofree char *early = api_ask("POST", CLEANUP, "{}");
    g_assert_true(g_str_has_prefix(early, "404 "));
    api_at(99);
    api_refused(406,
                "Version 3.99 is not supported by the API. Minimum is 3.0 and maximum is 3.70.",
                "POST", CLEANUP, "{}");
    api_at(24);
    api_be("member");
    g_autofree char *member = api_ask("POST", CLEANUP, "{}");
    g_assert_true(g_str_has_prefix(member, "403 {\"forbidden\":"));
    g_autofree char *automatic = api_ask("POST", AUTO, "{}");
    g_assert_true(g_str_has_prefix(automatic, "403 "));
    g_assert_cmpuint(config_count(storage_committed(), "cleanup"), ==, 0);
    api_tear_down();
}

static void test_upgrade(void)
{
    set_up(2);
    api_refused(400, "Cannot perform workers cleanup during system upgrade.", "POST", CLEANUP, "");
    api_refused(400, "Cannot perform workers cleanup during system upgrade.", "POST", AUTO, "{}");
    api_tear_down();
}

static void test_all_routes(void)
{
    static const char *const routes[] = {"workers_", NULL};
    routes_seen_assert(routes);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/api_workers/answers#CLN-35,CLN-36,CLN-37,CLN-38,CLN-39,CLN-41", test_answers);
    g_test_add_func("/api_workers/on-record#CLN-40", test_on_record);
    g_test_add_func("/api_workers/many-rows#CLN-40", test_many_rows);
    g_test_add_func("/api_workers/automatic#CLN-50,CLN-51", test_automatic);
    g_test_add_func("/api_workers/refusals#CLN-42", test_refusals);
    g_test_add_func("/api_workers/versions-and-roles#CLN-34", test_versions_and_roles);
    g_test_add_func("/api_workers/upgrade#CLN-43", test_upgrade);
    g_test_add_func("/api_workers/all-routes", test_all_routes);
    return g_test_run();
}
