/* Storage services: who may register, and who is up (SAF-51, 55, 56). */
#include <string.h>

#include "core/wconfd/wconf_private.h"
#include "unit/core/world/storage_world.h"

static json_t *registering(const char *host)
{
    return json_make("{s:s,s:s,s:s,s:i,s:s}", "binary", "cinder-volume", "host", host, "backend",
                     DIR1, "wire", 1, "version", "0.1");
}

static char *registers(guint node, json_t *args)
{
    return storage_ask(volumed[node - 1], "register_storage", args);
}

static char *beat(guint node, const char *of, guint64 generation)
{
    return storage_ask(volumed[node - 1], "beat",
                       json_make("{s:[{s:s,s:i}]}", "services", "service", service_key(of),
                                 "generation", generation));
}

static const struct storage_service *record(const char *node)
{
    return config_get(world.wconf->committed, "storage_service", service_key(node), NULL);
}

static bool is_up(const char *node)
{
    return record(node)->state == STORAGE_UP;
}

static void wait_s(guint seconds)
{
    for (guint i = 0; i < seconds; i++)
        fake_advance(world.world, 1000);
    fake_settle(world.world);
}

#define NOTHING_OVER "{\"measure\":[],\"over\":[],\"spaces\":[]}"
#define OVER(node) "{\"measure\":[],\"over\":[\"%s\"],\"spaces\":[]}", service_key(node)

static void test_register(void)
{
    storage_set_up(NULL);
    g_autofree char *said = registers(1, registering("node1"));
    g_autofree char *expected =
        g_strdup_printf("{\"generation\":2,\"id\":1,\"service\":\"%s\"}", service_key(NODE1));
    g_assert_cmpstr(said, ==, expected);
    const struct storage_service *service = record(NODE1);
    g_assert_cmpstr(service->node, ==, NODE1);
    g_assert_cmpstr(service->version, ==, "0.1");
    g_assert_cmpuint(service->state_since_us, >, 0);
    guint64 since = service->state_since_us;
    /* Its next process: the same number, another generation, up since the same moment. */
    g_assert_cmpuint(storage_register(1), ==, 3);
    g_assert_cmpuint(record(NODE1)->id, ==, 1);
    g_assert_cmpuint(record(NODE1)->state_since_us, ==, since);
    g_assert_cmpuint(storage_register(2), ==, 4);
    g_assert_cmpuint(record(NODE2)->id, ==, 2);
    world_tear_down();
}

static void test_bad_input(void)
{
    storage_set_up(NULL);
    assert_says(registers(3, registering("node3")),
                "permission_denied: back end dir1: node3 is none of its nodes");
    assert_says(registers(1, with(registering("node1"), "backend", json_string(DISK1))),
                "unknown_entity: backend: there is no backend " DISK1);
    assert_says(registers(1, with(registering("node1"), "binary", json_string("cinder-scheduler"))),
                "permission_denied: binary: volumed is no cinder-scheduler");
    assert_says(registers(1, with(registering("node1"), "binary", json_string("cinder-backup"))),
                "wrong_input: binary: must be one of cinder-volume, cinder-scheduler");
    g_assert_cmpuint(fake_engine_commits(world.engine), ==, 0);
    world_tear_down();
}

/* CLN-27's other half: the name is free when the one that has it is down. */
static void test_one_of_a_name(void)
{
    storage_set_up(NULL);
    guint64 first = storage_register(1);
    assert_says(registers(2, registering("node1")),
                "superseded: cinder-volume node1@dir1 is up on node1");
    wait_s(58);
    assert_says(beat(1, NODE1, first), NOTHING_OVER);
    wait_s(58);
    assert_says(registers(2, registering("node1")),
                "superseded: cinder-volume node1@dir1 is up on node1");
    wait_s(3);
    g_assert_false(is_up(NODE1));
    guint64 second = storage_number(registers(2, registering("node1")), "generation");
    g_assert_cmpuint(second, >, first);
    g_assert_true(is_up(NODE1));
    g_assert_cmpstr(record(NODE1)->node, ==, NODE2);
    g_autofree char *over = g_strdup_printf(OVER(NODE1));
    assert_says(beat(1, NODE1, first), over);
    assert_says(beat(1, NODE1, second), over);     /* that is node2's */
    assert_says(beat(2, NODE1, second + 7), over); /* lost, with a master or by a restore */
    assert_says(beat(2, NODE1, second), NOTHING_OVER);
    assert_says(registers(1, registering("node1")),
                "superseded: cinder-volume node1@dir1 is up on node2");
    world_tear_down();
}

/* The answer was lost; and somebody has registered since. */
static void test_repeated(void)
{
    storage_set_up(NULL);
    json_t *args = with(registering("node1"), "commit_id", json_string(ID_A));
    g_autofree char *first = registers(1, json_incref(args));
    assert_says(registers(1, json_incref(args)), first);
    storage_restart();
    assert_says(registers(1, json_incref(args)), first);
    g_assert_cmpuint(fake_engine_commits(world.engine), ==, 1);
    storage_register(1);
    assert_says(registers(1, args), "superseded: registration 2 is over, 3 is on record");
    world_tear_down();
}

/* Both at once: the second is refused by what is not stored yet, so it is not told before. */
static void test_race(void)
{
    struct fake_reply one, other;
    storage_set_up(NULL);
    fake_engine_hold(world.engine);
    const struct stamp stamp = {5, world.epoch};
    fake_call_start_stamped(volumed[0], 0, stamp, NODE1, ROLE_WCONFD, "register_storage",
                            with(registering("node1"), "commit_id", json_string(ID_A)), &one);
    fake_settle(world.world);
    fake_call_start_stamped(volumed[1], 0, stamp, NODE1, ROLE_WCONFD, "register_storage",
                            with(registering("node1"), "commit_id", json_string(ID_B)), &other);
    fake_settle(world.world);
    g_assert_false(one.done || other.done);
    fake_engine_release(world.engine);
    fake_settle(world.world);
    g_autofree char *first = world_reply(&one);
    g_assert_nonnull(strstr(first, "\"generation\":2"));
    assert_says(world_reply(&other), "superseded: cinder-volume node1@dir1 is up on node1");
    world_tear_down();
}

static void test_down_and_up(void)
{
    storage_set_up(NULL);
    guint64 generation = storage_register(1);
    guint before = fake_engine_commits(world.engine);
    for (guint i = 0; i < 12; i++) {
        wait_s(10);
        assert_says(beat(1, NODE1, generation), NOTHING_OVER);
    }
    g_assert_cmpuint(fake_engine_commits(world.engine), ==, before);
    wait_s(59);
    g_assert_true(is_up(NODE1));
    wait_s(2);
    g_assert_false(is_up(NODE1));
    guint64 down = record(NODE1)->state_since_us;
    g_assert_cmpuint(fake_engine_commits(world.engine), ==, before + 1);
    wait_s(120);
    g_assert_cmpuint(fake_engine_commits(world.engine), ==, before + 1);
    assert_says(beat(1, NODE1, generation), NOTHING_OVER);
    fake_settle(world.world);
    g_assert_true(is_up(NODE1));
    g_assert_cmpuint(record(NODE1)->state_since_us, >, down);
    world_tear_down();
}

/* CLN-45: registering counts as the first beat. */
static void test_never_beat(void)
{
    storage_set_up(NULL);
    storage_register(1);
    wait_s(59);
    g_assert_true(is_up(NODE1));
    wait_s(2);
    g_assert_false(is_up(NODE1));
    /* What nobody goes on with is told of. */
    g_assert_cmpuint(config_count(world.wconf->committed, "decision"), ==, 0);
    guint64 generation = storage_register(1);
    storage_take(1, generation, storage_create("data1"));
    wait_s(61);
    g_assert_false(is_up(NODE1));
    g_autoptr(GPtrArray) told = config_list(world.wconf->committed, "decision");
    g_assert_cmpuint(told->len, ==, 1);
    const struct decision *decision = told->pdata[0];
    g_assert_cmpstr(decision->summary, ==,
                    "cinder-volume node1@dir1 is down: no beat for 60 s. Rows of work that nobody "
                    "goes on with: 1.");
    g_assert_cmpstr(decision->evidence->pdata[0], ==, "volume data1: create-volume (creating)");
    g_assert_cmpint(decision->event, ==, EVENT_ALERT);
    world_tear_down();
}

/* A new master has heard nobody, and says so of nobody before its time. */
static void test_restart(void)
{
    storage_set_up(NULL);
    storage_register(1);
    wait_s(50);
    storage_restart();
    wait_s(58);
    g_assert_true(is_up(NODE1));
    wait_s(3);
    g_assert_false(is_up(NODE1));
    world_tear_down();
}

/* Nor does one that was stopped itself. */
static void test_gap(void)
{
    storage_set_up(NULL);
    storage_register(1);
    wait_s(50);
    fake_pause(world.wconfd);
    fake_advance(world.world, 300 * 1000);
    fake_resume(world.wconfd);
    wait_s(58);
    g_assert_true(is_up(NODE1));
    wait_s(4);
    g_assert_false(is_up(NODE1));
    world_tear_down();
}

/* The wall clock orders, and measures nothing. */
static void test_clock(void)
{
    storage_set_up(NULL);
    storage_register(1);
    guint64 first = record(NODE1)->state_since_us;
    fake_set_clock(world.world, NODE1, -3600 * 1000);
    wait_s(58);
    g_assert_true(is_up(NODE1));
    wait_s(4);
    g_assert_false(is_up(NODE1));
    g_assert_cmpuint(record(NODE1)->state_since_us, ==, first + 1);
    storage_restart();
    storage_register(1);
    g_assert_cmpuint(record(NODE1)->state_since_us, ==, first + 2);
    world_tear_down();
}

#define MANY 100

/* 100 members for ten minutes: their beats reach no disk. */
static void test_many(void)
{
    storage_set_up(NULL);
    json_autoptr all = json_array();
    for (guint i = 0; i < MANY; i++) {
        g_autofree char *host = g_strdup_printf("host%u", i);
        g_autofree char *key = config_storage_service_key(STORAGE_VOLUME, host, DIR1);
        guint64 generation = storage_number(registers(1, registering(host)), "generation");
        json_array_append_new(all,
                              json_make("{s:s,s:i}", "service", key, "generation", generation));
    }
    guint before = fake_engine_commits(world.engine);
    for (guint i = 0; i < 60; i++) {
        wait_s(10);
        assert_says(storage_ask(volumed[0], "beat", json_make("{s:O}", "services", all)),
                    NOTHING_OVER);
    }
    g_assert_cmpuint(fake_engine_commits(world.engine), ==, before);
    /* They go down together, in one commit. */
    wait_s(62);
    g_assert_cmpuint(fake_engine_commits(world.engine), ==, before + 1);
    assert_says(storage_ask(volumed[0], "beat", json_make("{s:O}", "services", all)), NOTHING_OVER);
    fake_settle(world.world);
    g_assert_cmpuint(fake_engine_commits(world.engine), ==, before + 2);
    world_tear_down();
}

/* Back end and node go with their services. */
static void test_gone(void)
{
    storage_set_up(NULL);
    guint64 generation = storage_register(1);
    guint64 serial = config_serial(world.wconf->committed);
    assert_says(job_change(&world, 17, "remove_backend", changes_of(del("backend", DIR1, 1), NULL)),
                "{\"serial\":3}");
    g_assert_cmpuint(storage_writes(serial, "storage_service"), ==, 1);
    g_autofree char *over = g_strdup_printf(OVER(NODE1));
    assert_says(beat(1, NODE1, generation), over);
    world_tear_down();
}

/* As many as lists of them may have. */
static void test_limit(void)
{
    GPtrArray *many = changes_of(
        put("counter", "storage-service", 1, json_make("{s:i}", "value", LIMIT_STORAGE_SERVICES)),
        NULL);
    for (guint i = 1; i <= LIMIT_STORAGE_SERVICES; i++) {
        g_autofree char *host = g_strdup_printf("host%u", i);
        g_autofree char *key = config_storage_service_key(STORAGE_VOLUME, host, DIR1);
        json_t *service = with(
            with(with(object_service(NODE1), "uuid", json_string(key)), "host", json_string(host)),
            "id", json_integer(i));
        g_ptr_array_add(many, put("storage_service", key, 1, service));
    }
    storage_set_up(many);
    assert_says(registers(1, registering("node1")),
                "limit_exceeded: there are 1024 storage services on record already");
    g_assert_cmpuint(storage_number(registers(1, registering("host7")), "id"), ==, 7);
    world_tear_down();
}

/* --- what a beat says --- */

static char *beat_with(guint node, const char *of, guint64 generation, const char *more)
{
    json_t *one = json_make("{s:s,s:i}", "service", service_key(of), "generation", generation);
    json_autoptr said = json_parse_limited(more, strlen(more), 1000, NULL);
    json_object_update(one, said);
    return storage_ask(volumed[node - 1], "beat", json_make("{s:[o]}", "services", one));
}

/* A commit only where another number hangs; up since the same moment. */
static void test_hanging(void)
{
    storage_set_up(NULL);
    guint64 generation = storage_register(1);
    guint64 since = record(NODE1)->state_since_us;
    guint64 before = config_serial(world.wconf->committed);
    for (guint i = 0; i < 3; i++)
        assert_says(beat_with(1, NODE1, generation, "{\"hanging\":3}"), NOTHING_OVER);
    g_assert_cmpuint(record(NODE1)->hanging, ==, 3);
    g_assert_cmpuint(record(NODE1)->state_since_us, ==, since);
    g_assert_cmpuint(config_serial(world.wconf->committed), ==, before + 1);
    assert_says(beat_with(1, NODE1, generation, "{}"), NOTHING_OVER);
    g_assert_cmpuint(record(NODE1)->hanging, ==, 0);
    assert_says(beat_with(1, NODE1, generation, "{\"hanging\":2}"), NOTHING_OVER);
    storage_register(1); /* another process has other children */
    g_assert_cmpuint(record(NODE1)->hanging, ==, 0);
    world_tear_down();
}

/* Space is no commit; a scheduler is told what was said last of each back end, others are not. */
static void test_spaces(void)
{
    storage_set_up(NULL);
    guint64 first = storage_register(1);
    guint64 second = storage_register(2);
    guint64 scheduler = storage_register_scheduler(3);
    guint64 before = config_serial(world.wconf->committed);
    json_autoptr beat_of = json_make("{s:[o]}", "services", storage_of_scheduler(3, scheduler));
    assert_says(storage_ask(schedulers[2], "beat", json_incref(beat_of)), NOTHING_OVER);
    assert_says(beat_with(1, NODE1, first, "{\"free_mib\":5,\"total_mib\":9}"), NOTHING_OVER);
    wait_s(1);
    assert_says(beat_with(2, NODE2, second, "{\"free_mib\":4,\"total_mib\":9}"), NOTHING_OVER);
    const char *last = "{\"measure\":[],\"over\":[],\"spaces\":[{\"backend\":\"" DIR1
                       "\",\"free_mib\":4,\"total_mib\":9}]}";
    assert_says(storage_ask(schedulers[2], "beat", json_incref(beat_of)), last);
    /* One that could not look says nothing of it; an older look than that is none that counts. */
    wait_s(1);
    assert_says(
        beat_with(1, NODE1, first, "{\"free_mib\":0,\"total_mib\":9,\"space_age_ms\":5000}"),
        NOTHING_OVER);
    assert_says(storage_ask(schedulers[2], "beat", json_incref(beat_of)), last);
    assert_says(beat_with(1, NODE1, first, "{}"), NOTHING_OVER);
    assert_says(storage_ask(schedulers[2], "beat", json_incref(beat_of)), last);
    g_assert_cmpuint(config_serial(world.wconf->committed), ==, before);
    world_tear_down();
}

/* By whose word a request was refused looks again: whoever made room does not wait for long. */
static void test_doubt(void)
{
    storage_set_up(NULL);
    guint64 first = storage_register(1);
    const char *full = "{\"free_mib\":0,\"total_mib\":9216}";
    const char *again = "{\"measure\":[\"%s\"],\"over\":[],\"spaces\":[]}";
    g_autofree char *doubted = g_strdup_printf(again, service_key(NODE1));
    wait_s(100);
    assert_says(beat_with(1, NODE1, first, full), NOTHING_OVER);
    wait_s(1);
    json_t *args = json_make("{s:s,s:s,s:s,s:i,s:s}", "resource_type", "Volume", "operation",
                             "create-volume", "name", "data1", "size", 1, "backend", "dir1");
    g_autofree char *refused = storage_ask(storage_cli, "accept_work", args);
    g_assert_nonnull(strstr(refused, "back end dir1 has 0 MiB left"));
    wait_s(1);
    const char *old = "{\"free_mib\":0,\"total_mib\":9216,\"space_age_ms\":3000}";
    assert_says(beat_with(1, NODE1, first, old), doubted);
    assert_says(beat_with(1, NODE1, first, old), doubted); /* the first answer may be lost */
    assert_says(beat_with(1, NODE1, first, full), NOTHING_OVER);
    world_tear_down();
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/wconf_services/register#SAF-51,SAF-56", test_register);
    g_test_add_func("/wconf_services/bad-input", test_bad_input);
    g_test_add_func("/wconf_services/one-of-a-name#SAF-56", test_one_of_a_name);
    g_test_add_func("/wconf_services/repeated#SAF-04", test_repeated);
    g_test_add_func("/wconf_services/race#SAF-56", test_race);
    g_test_add_func("/wconf_services/down-and-up#SAF-55", test_down_and_up);
    g_test_add_func("/wconf_services/never-beat#CLN-45,SAF-55", test_never_beat);
    g_test_add_func("/wconf_services/restart#SAF-55", test_restart);
    g_test_add_func("/wconf_services/gap#SAF-55", test_gap);
    g_test_add_func("/wconf_services/clock#CLN-22,SAF-51,SAF-55", test_clock);
    g_test_add_func("/wconf_services/many#SAF-55", test_many);
    g_test_add_func("/wconf_services/gone", test_gone);
    g_test_add_func("/wconf_services/limit", test_limit);
    g_test_add_func("/wconf_services/hanging", test_hanging);
    g_test_add_func("/wconf_services/spaces", test_spaces);
    g_test_add_func("/wconf_services/doubt#SAF-27", test_doubt);
    return g_test_run();
}
