/* Choosing a back end: rows of the schedulers, handed on once (CLN-25, 31, 66; SAF-50, 51). */
#include <string.h>

#include "core/wconfd/wconf_private.h"
#include "proto/storage/volume_driver.h"
#include "unit/core/world/storage_world.h"

static guint64 serial(void)
{
    return config_serial(world.wconf->committed);
}

static json_t *handing(guint node, guint64 generation, const char *key, const char *backend)
{
    return with(with(storage_of_scheduler(node, generation), "key", json_string(key)), "backend",
                json_string(backend));
}

static char *hand_on(guint node, json_t *args)
{
    return storage_ask(schedulers[node - 1], "hand_on", args);
}

static json_t *claimed(json_t *args, guint64 claim)
{
    return with(args, "claim", json_integer((json_int_t)claim));
}

static char *take(guint node, guint64 generation, const char *key)
{
    return storage_ask(schedulers[node - 1], "take_work",
                       with(storage_of_scheduler(node, generation), "key", json_string(key)));
}

static guint64 taken(guint node, guint64 generation, const char *key)
{
    return storage_number(take(node, generation, key), "claim");
}

static char *committed(guint64 at)
{
    return g_strdup_printf("{\"serial\":%" G_GUINT64_FORMAT "}", at);
}

#define assert_hands_on(node, args)                                                                \
    do {                                                                                           \
        g_autofree char *next_ = committed(serial() + 1);                                          \
        assert_says(hand_on(node, args), next_);                                                   \
    } while (0)

/* Who is a scheduler is one by its role, and has no back end. */
static void test_register(void)
{
    storage_set_up(NULL);
    guint64 generation = storage_register_scheduler(1);
    const struct storage_service *service =
        config_get(world.wconf->committed, "storage_service", scheduler_key(1), NULL);
    g_assert_cmpuint(service->generation, ==, generation);
    g_assert_cmpint(service->binary, ==, STORAGE_SCHEDULER);
    g_assert_cmpstr(service->backend, ==, "");
    json_t *args = json_make("{s:s,s:s,s:i,s:s}", "binary", "cinder-scheduler", "host", "node2",
                             "wire", 1, "version", "0.1");
    assert_says(storage_ask(schedulers[1], "register_storage",
                            with(json_deep_copy(args), "binary", json_string("cinder-volume"))),
                "permission_denied: binary: scheduler is no cinder-volume");
    g_autofree char *none =
        storage_ask(schedulers[1], "register_storage", with(args, "backend", json_string(DIR1)));
    g_assert_nonnull(strstr(none, "backend: a scheduler has none"));
    g_assert_cmpuint(storage_register_scheduler(1), >, generation);
    world_tear_down();
}

/* CLN-66: accepted, handed on, taken, ended: four writes, and each touch is later (CLN-08). */
static void test_hand_on(void)
{
    storage_set_up(NULL);
    guint64 member = storage_register(1);
    guint64 generation = storage_register_scheduler(2);
    guint64 before = serial();
    const char *key = storage_create_anywhere("data1");
    guint64 accepted = storage_row(key)->updated_us;
    g_assert_cmpstr(storage_row(key)->backend, ==, "");
    g_assert_cmpstr(storage_volume(key)->backend, ==, "");
    assert_hands_on(2, handing(2, generation, key, DIR1));
    g_assert_cmpstr(storage_row(key)->backend, ==, DIR1);
    g_assert_cmpstr(storage_volume(key)->backend, ==, DIR1);
    g_assert_cmpuint(storage_row(key)->service_id, ==, 0);
    g_assert_cmpuint(storage_row(key)->claim, ==, 0);
    g_assert_cmpuint(storage_row(key)->created_us, ==, accepted);
    g_assert_cmpuint(storage_row(key)->updated_us, >, accepted);
    storage_made(key, member);
    g_assert_cmpuint(storage_writes(before, "worker"), ==, 4);
    g_assert_cmpstr(storage_volume(key)->host, ==, "node1@dir1");
    world_tear_down();
}

/* Two schedulers hand it to two back ends no more than one hands it on twice. */
static void test_once(void)
{
    storage_set_up(NULL);
    guint64 one = storage_register_scheduler(1);
    guint64 other = storage_register_scheduler(2);
    const char *key = storage_create_anywhere("data1");
    json_t *first = with(handing(1, one, key, DIR1), "commit_id", json_string(ID_A));
    g_autofree char *done = committed(serial() + 1);
    assert_says(hand_on(1, json_incref(first)), done);
    assert_says(hand_on(1, first), done);
    assert_says(hand_on(2, handing(2, other, key, DIR2)),
                "superseded: volume data1: its work is for dir1");
    g_assert_cmpstr(storage_volume(key)->backend, ==, DIR1);
    world_tear_down();
}

/* One that has to wait has the row; then it alone hands it on, and has it no more. */
static void test_claimed(void)
{
    storage_set_up(NULL);
    guint64 member = storage_register(1);
    guint64 one = storage_register_scheduler(1);
    guint64 other = storage_register_scheduler(2);
    const char *key = storage_create_anywhere("data1");
    assert_says(storage_ask(volumed[0], "take_work",
                            json_make("{s:s,s:i,s:s}", "service", service_key(NODE1), "generation",
                                      member, "key", key)),
                "superseded: volume data1: its work is for a scheduler, not for cinder-volume "
                "node1@dir1");
    guint64 claim = taken(1, one, key);
    g_assert_cmpuint(storage_row(key)->claim, ==, claim);
    assert_says(take(2, other, key),
                "superseded: volume data1: cinder-scheduler node1 works on it");
    assert_says(hand_on(2, handing(2, other, key, DIR1)),
                "superseded: volume data1: cinder-scheduler node1 works on it");
    assert_says(hand_on(1, handing(1, one, key, DIR1)),
                "superseded: volume data1: cinder-scheduler node1 works on it");
    g_autofree char *not_its =
        g_strdup_printf("superseded: volume data1: claim %" G_GUINT64_FORMAT
                        " is not on record, %" G_GUINT64_FORMAT " of cinder-scheduler node1 is",
                        claim, claim);
    assert_says(hand_on(2, claimed(handing(2, other, key, DIR1), claim)), not_its);
    assert_hands_on(1, claimed(handing(1, one, key, DIR1), claim));
    g_assert_cmpuint(storage_row(key)->service_id, ==, 0);
    g_assert_cmpuint(storage_row(key)->claim, >, claim);
    storage_made(key, member);
    world_tear_down();
}

/* CLN-25: nothing could ever fit. The scheduler that has it says so, and makes no data. */
static void test_ends_in_error(void)
{
    storage_set_up(NULL);
    guint64 generation = storage_register_scheduler(1);
    const char *key = storage_create_anywhere("data1");
    guint64 claim = taken(1, generation, key);
    g_autofree char *data = volume_data_name(strchr(key, '/') + 1, claim);
    json_t *well = with(storage_end(key, claim), "data", json_string(data));
    g_autofree char *refused = storage_verdicts(
        storage_ask(schedulers[0], "end_work",
                    with(storage_of_scheduler(1, generation), "items", json_make("[o]", well))));
    g_assert_nonnull(strstr(refused, "is on no back end"));
    json_t *failed = with(with(storage_end(key, claim), "failed", json_true()), "why",
                          json_string("no back end has 2 GiB"));
    assert_says(storage_verdicts(storage_ask(
                    schedulers[0], "end_work",
                    with(storage_of_scheduler(1, generation), "items", json_make("[o]", failed)))),
                "passed");
    g_assert_null(storage_row(key));
    g_assert_cmpint(storage_volume(key)->status, ==, VOLUME_ERROR);
    g_assert_cmpstr(storage_volume(key)->status_why, ==, "no back end has 2 GiB");
    /* Nobody's back end has to do with its end. */
    storage_accept("delete-volume", "data1", 0);
    g_assert_cmpstr(storage_row(key)->backend, ==, "");
    claim = taken(1, generation, key);
    assert_says(storage_verdicts(storage_ask(schedulers[0], "end_work",
                                             with(storage_of_scheduler(1, generation), "items",
                                                  json_make("[o]", storage_end(key, claim))))),
                "passed");
    g_assert_null(storage_volume(key));
    world_tear_down();
}

static void disable(const char *service, bool disabled)
{
    g_free(storage_ask(storage_cli, "change_storage_service",
                       json_make("{s:s,s:b}", "service", service, "disabled", disabled)));
}

static void test_refused(void)
{
    storage_set_up(NULL);
    storage_register(1);
    storage_register(2);
    guint64 old = storage_register_scheduler(1);
    guint64 generation = storage_register_scheduler(1);
    const char *key = storage_create_anywhere("data1");
    g_autofree char *over =
        g_strdup_printf("superseded: cinder-scheduler node1: generation %" G_GUINT64_FORMAT
                        " is over, %" G_GUINT64_FORMAT " is on record",
                        old, generation);
    assert_says(hand_on(1, handing(1, old, key, DIR1)), over);
    assert_says(hand_on(1, handing(1, generation, ROW1, DIR1)),
                "superseded: " ROW1 ": no work on it is on record");
    assert_says(hand_on(1, handing(1, generation, key, DISK1)),
                "unknown_entity: backend: there is no backend " DISK1);
    /* One of two is enough. */
    disable(service_key(NODE1), true);
    disable(service_key(NODE2), true);
    assert_says(hand_on(1, handing(1, generation, key, DIR1)),
                "wrong_state: back end dir1: each of its services is disabled");
    disable(service_key(NODE2), false);
    /* What a person has set is not under way any more. */
    g_free(storage_ask(storage_cli, "reset_state",
                       json_make("{s:s,s:s,s:s}", "resource_type", "Volume", "resource", "data1",
                                 "status", "error")));
    g_autofree char *gone = g_strdup_printf("superseded: %s: no work on it is on record", key);
    assert_says(hand_on(1, handing(1, generation, key, DIR1)), gone);
    world_tear_down();
}

/* The head says whether it is for the type, whatever who chose knows of types. */
static void test_type(void)
{
    storage_set_up(
        changes_of(put("volume_type", TYPE1, 1, object_type("volume_backend_name=dir9")), NULL));
    guint64 generation = storage_register_scheduler(1);
    json_t *args = json_make("{s:s,s:s,s:s,s:i,s:s,s:s}", "resource_type", "Volume", "operation",
                             "create-volume", "name", "data1", "size", 2, "volume_type", "fast",
                             "commit_id", ID_A);
    storage_number(storage_ask(storage_cli, "accept_work", args), "serial");
    assert_says(hand_on(1, handing(1, generation, "Volume/" ID_A, DIR1)),
                "wrong_state: volume data1: its type fast is not for back end dir1");
    world_tear_down();
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/wconf_hand_on/register", test_register);
    g_test_add_func("/wconf_hand_on/hand-on#CLN-08,CLN-66", test_hand_on);
    g_test_add_func("/wconf_hand_on/once", test_once);
    g_test_add_func("/wconf_hand_on/claimed", test_claimed);
    g_test_add_func("/wconf_hand_on/ends-in-error#CLN-25", test_ends_in_error);
    g_test_add_func("/wconf_hand_on/refused", test_refused);
    g_test_add_func("/wconf_hand_on/type", test_type);
    return g_test_run();
}
