/* Reservations at the configuration daemon: who may, what they exclude, how they end. */
#include <string.h>

#include "unit/core/world/wconf_world.h"

#define FRESH "aaaaaaaa-0000-4000-8000-000000000009"
#define OTHER "aaaaaaaa-0000-4000-8000-000000000010"
#define THIRD "aaaaaaaa-0000-4000-8000-000000000011"
#define MAC "aa:00:00:00:00:09"

static struct change *reserve(const char *uuid, const char *name, guint job, const char *mac,
                              const char *ip)
{
    json_t *object = json_make("{s:s,s:s,s:o,s:[{s:s,s:i,s:i}],s:[s],s:[s]}", "uuid", uuid, "name",
                               name, "owner", owner_json(job), "rooms", "node", NODE3, "memory",
                               6144, "disk", 100, "macs", mac, "ips", ip);
    return put("reservation", uuid, 0, object);
}

static struct change *new_instance(void)
{
    return put("instance", FRESH, 0,
               json_make("{s:s,s:s,s:s,s:i,s:s,s:[{s:s,s:s,s:s}]}", "uuid", FRESH, "name", "fresh",
                         "disk_template", "diskless", "memory", 6144, "primary_node", NODE3, "nics",
                         "uuid", OTHER, "mac", MAC, "link", "br0"));
}

static guint64 reserved_mib(void)
{
    json_autoptr args = json_make("{s:i}", "serial", 0);
    g_autofree char *text = ask_wconf(&world, world.luxid, "wait_changes", json_incref(args));
    json_autoptr answer = json_loads(text, 0, NULL);
    guint64 sum = 0;
    size_t index;
    json_t *change;
    json_array_foreach(json_object_get(answer, "changes"), index, change) {
        const json_t *object = json_object_get(change, "object");
        if (strcmp(json_string_value(json_object_get(change, "kind")), "reservation") != 0)
            continue;
        const json_t *room = json_array_get(json_object_get(object, "rooms"), 0);
        sum += (guint64)json_integer_value(json_object_get(room, "memory"));
    }
    return sum;
}

static void take_locks(guint job, const char *name)
{
    g_autofree char *list = g_strdup_printf("x instance/%s, x node-res/" NODE3, name);
    assert_says(job_locks(&world, job, list, false), GRANTED);
}

static void unlock_room(guint job)
{
    assert_says(job_locks(&world, job, "r node-res/" NODE3, false), GRANTED);
}

static void test_covered(void)
{
    world_set_up();
    assert_says(job_locks(&world, 17, "x instance/fresh", false), GRANTED);
    assert_says(job_change(&world, 17, "reserve",
                           changes_of(reserve(FRESH, "fresh", 17, MAC, "10.0.0.9@br0"), NULL)),
                "lock_missing: reservation fresh (" FRESH
                "): job 17 does not hold the lock node-res/" NODE3 " exclusively");
    take_locks(17, "fresh");
    assert_says(job_change(&world, 17, "reserve",
                           changes_of(reserve(FRESH, "fresh", 18, MAC, "10.0.0.9@br0"), NULL)),
                "permission_denied: the reservation for fresh is that of job 18, not of job 17");
    assert_says(job_change(&world, 17, "reserve",
                           changes_of(reserve(FRESH, "fresh", 17, MAC, "10.0.0.9@br0"), NULL)),
                "{\"serial\":2}");
    g_assert_cmpuint(reserved_mib(), ==, 6144);
    world_tear_down();
}

/* An address is given out once, whether it is reserved or in use. */
static void test_never_twice(void)
{
    world_set_up();
    take_locks(17, "fresh");
    assert_says(job_change(&world, 17, "reserve",
                           changes_of(reserve(FRESH, "fresh", 17, MAC, "10.0.0.9@br0"), NULL)),
                "{\"serial\":2}");
    unlock_room(17);
    take_locks(18, "other");
    assert_says(job_change(&world, 18, "reserve",
                           changes_of(reserve(OTHER, "other", 18, MAC, "10.0.0.8@br0"), NULL)),
                "already_exists: reservation other (" OTHER "): macs[0]: " MAC
                " is taken by job 17 for instance \"fresh\"");
    assert_says(
        job_change(
            &world, 18, "reserve",
            changes_of(reserve(OTHER, "other", 18, "aa:00:00:00:00:08", "10.0.0.9@br0"), NULL)),
        "already_exists: reservation other (" OTHER
        "): ips[0]: 10.0.0.9@br0 is taken by job 17 for instance \"fresh\"");
    assert_says(
        job_change(
            &world, 18, "reserve",
            changes_of(reserve(OTHER, "other", 18, "aa:00:00:00:00:08", "10.0.0.9@br1"), NULL)),
        "{\"serial\":3}");
    world_tear_down();
}

/* It turns into its instance in one change: counted once before, during and after. */
static void test_conversion(void)
{
    world_set_up();
    take_locks(17, "fresh");
    g_free(job_change(&world, 17, "reserve",
                      changes_of(reserve(FRESH, "fresh", 17, MAC, "10.0.0.9@br0"), NULL)));
    unlock_room(17);
    assert_says(job_change(&world, 17, "create_instance", changes_of(new_instance(), NULL)),
                "wrong_state: reservation fresh (" FRESH
                "): the instance is there; a reservation ends when it turns into one");
    assert_says(job_change(&world, 17, "create_instance",
                           changes_of(new_instance(), del("reservation", FRESH, 2), NULL)),
                "{\"serial\":3}");
    g_assert_cmpuint(reserved_mib(), ==, 0);
    take_locks(18, "other");
    assert_says(job_change(&world, 18, "reserve",
                           changes_of(reserve(OTHER, "other", 18, MAC, "10.0.0.8@br0"), NULL)),
                "already_exists: reservation other (" OTHER "): macs[0]: " MAC
                " is taken by instance \"fresh\"");
    world_tear_down();
}

/* fresh by job 17, other by job 18. */
static void reserve_two(void)
{
    take_locks(17, "fresh");
    g_free(job_change(&world, 17, "reserve",
                      changes_of(reserve(FRESH, "fresh", 17, MAC, "10.0.0.9@br0"), NULL)));
    unlock_room(17);
    take_locks(18, "other");
    g_free(job_change(
        &world, 18, "reserve",
        changes_of(reserve(OTHER, "other", 18, "aa:00:00:00:00:08", "10.0.0.8@br0"), NULL)));
}

/* Who looks for an address sees what another job is about to take, while that is on its way to the
 * store; if it does not get there it is free again. */
static void test_on_its_way(void)
{
    struct fake_reply taken = {0};
    g_autoptr(GPtrArray) changes =
        changes_of(reserve(FRESH, "fresh", 17, MAC, "10.0.0.9@br0"), NULL);
    world_set_up();
    take_locks(17, "fresh");
    assert_says(ask_wconf(&world, world.job, "address_user", json_make("{s:s}", "address", MAC)),
                "{\"user\":\"\"}");
    fake_engine_hold(world.engine);
    job_change_start(&world, 17, "reserve", changes, &taken);
    fake_settle(world.world);
    g_assert_false(taken.done);
    assert_says(ask_wconf(&world, world.job, "address_user", json_make("{s:s}", "address", MAC)),
                "{\"user\":\"job 17 for instance \\\"fresh\\\"\"}");
    g_assert_cmpuint(reserved_mib(), ==, 0); /* those who follow hear of it when it is stored */
    g_assert_false(taken.done);
    fake_engine_release(world.engine);
    fake_settle(world.world);
    assert_says(world_reply(&taken), "{\"serial\":2}");
    g_assert_cmpuint(reserved_mib(), ==, 6144);
    world_tear_down();
}

/* What the dead one had reserved is free: its room, and its addresses, which another job gets. */
static void test_ends_with_its_owner(void)
{
    world_set_up();
    reserve_two();
    g_assert_cmpuint(reserved_mib(), ==, 2 * 6144);
    assert_says(ask_wconf(&world, world.job, "address_user", json_make("{s:s}", "address", MAC)),
                "{\"user\":\"job 17 for instance \\\"fresh\\\"\"}");
    fake_livelock(world.world, NODE1, "job-17", LIVELOCK_DEAD);
    fake_advance(world.world, 100);
    g_assert_cmpuint(reserved_mib(), ==, 6144);
    assert_says(ask_wconf(&world, world.job, "address_user", json_make("{s:s}", "address", MAC)),
                "{\"user\":\"\"}");
    unlock_room(18);
    take_locks(19, "third");
    g_autofree char *said = job_change(
        &world, 19, "reserve", changes_of(reserve(THIRD, "third", 19, MAC, "10.0.0.9@br0"), NULL));
    g_assert_nonnull(strstr(said, "serial"));
    g_assert_cmpuint(reserved_mib(), ==, 2 * 6144);
    world_tear_down();
}

/* Also one that holds no lock, and had reserved before this wconfd began. */
static void test_ends_after_a_restart(void)
{
    world_set_up();
    reserve_two();
    for (guint job = 17; job <= 18; job++)
        g_free(ask_wconf(&world, world.luxid, "free_locks",
                         json_make("{s:o}", "owner", owner_json(job))));
    config_world_restart(&world);
    config_world_start(&world);
    fake_livelock(world.world, NODE1, "job-17", LIVELOCK_DEAD);
    fake_advance(world.world, 100);
    g_assert_cmpuint(reserved_mib(), ==, 6144);
    world_tear_down();
}

/* A wconfd that was away finds out at its start, before it answers anybody. */
static void test_owner_dies_meanwhile(void)
{
    world_set_up();
    reserve_two();
    config_world_restart(&world);
    fake_livelock(world.world, NODE1, "job-18", LIVELOCK_GONE);
    config_world_start(&world);
    fake_advance(world.world, 100);
    g_assert_cmpuint(reserved_mib(), ==, 6144);
    world_tear_down();
}

static void test_bad_reservations(void)
{
    world_set_up();
    take_locks(17, "fresh");
    assert_says(
        job_change(
            &world, 17, "reserve",
            changes_of(reserve(FRESH, "fresh", 17, "AA:00:00:00:00:09", "10.0.0.9@br0"), NULL)),
        "wrong_input: reservation fresh (" FRESH
        "): macs[0]: \"AA:00:00:00:00:09\" is not the address of one card");
    struct change *twice = reserve(FRESH, "fresh", 17, MAC, "10.0.0.9@br0");
    json_t *rooms = json_object_get(twice->object, "rooms");
    json_array_append(rooms, json_array_get(rooms, 0));
    assert_says(job_change(&world, 17, "reserve", changes_of(twice, NULL)),
                "wrong_input: reservation fresh (" FRESH "): rooms[1].node: node3 is named twice");
    world_tear_down();
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/reserve/covered#FUT-04,FUT-06", test_covered);
    g_test_add_func("/reserve/never-twice#WCF-22", test_never_twice);
    g_test_add_func("/reserve/conversion#FUT-07", test_conversion);
    g_test_add_func("/reserve/on-its-way#FUT-06,SAF-03", test_on_its_way);
    g_test_add_func("/reserve/owner-dies#FUT-06,RCV-24,RCV-88,WCF-15", test_ends_with_its_owner);
    g_test_add_func("/reserve/ends-after-a-restart#FUT-06", test_ends_after_a_restart);
    g_test_add_func("/reserve/owner-dies-meanwhile#FUT-06,WCF-12", test_owner_dies_meanwhile);
    g_test_add_func("/reserve/bad-requests", test_bad_reservations);
    return g_test_run();
}
