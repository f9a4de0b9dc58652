/* What a request is refused for that is not in the resource itself: no room on its back end. */
#include <string.h>

#include "core/wconfd/wconf_private.h"
#include "unit/core/world/storage_world.h"

static guint64 generation;

static guint64 serial(void)
{
    return config_serial(world.wconf->committed);
}

static json_t *wish(const char *operation, const char *resource, guint size)
{
    return json_make("{s:s,s:s,s:s,s:i}", "resource_type", "Volume", "operation", operation,
                     "resource", resource, "size", size);
}

static json_t *creation(const char *name, guint size)
{
    return with(with(wish("create-volume", "", size), "name", json_string(name)), "backend",
                json_string("dir1"));
}

static json_t *snapping(const char *name, const char *volume)
{
    return json_make("{s:s,s:s,s:s,s:s}", "resource_type", "Snapshot", "operation",
                     "create-snapshot", "name", name, "source", volume);
}

static char *accept(json_t *args)
{
    return storage_ask(storage_cli, "accept_work", args);
}

#define assert_accepts(args)                                                                       \
    do {                                                                                           \
        guint64 next_ = serial() + 1;                                                              \
        g_assert_cmpuint(storage_number(accept(args), "serial"), ==, next_);                       \
    } while (0)

/* --- room --- */

/* Node N's member of dir1 says what it has. */
static void beat(guint node, guint64 of, guint free_gib, guint total_gib)
{
    json_t *one =
        json_make("{s:s,s:i,s:i,s:i}", "service", service_key(node == 1 ? NODE1 : NODE2),
                  "generation", of, "free_mib", free_gib * 1024, "total_mib", total_gib * 1024);
    assert_says(storage_ask(volumed[node - 1], "beat", json_make("{s:[o]}", "services", one)),
                "{\"over\":[],\"spaces\":[]}");
}

#define NEVER(size)                                                                                \
    "insufficient_resources: back end dir1 holds 10 GiB at most, not " size                        \
    " GiB: it has 10 GiB (reserved 0 %, overcommit 100 %); take a smaller size or another back "   \
    "end, or have it promise more: fettle backend modify dir1 --overcommit PERCENT"
#define LEFT(left, more, free, promised)                                                           \
    "insufficient_resources: back end dir1 has " left " left, not " more                           \
    " GiB: of its 10 GiB " free " GiB are free, and " promised                                     \
    " GiB are promised (reserved 0 %, overcommit 100 %); delete what is not needed there, take "   \
    "another back end, or have it promise more: fettle backend modify dir1 --overcommit PERCENT"

/* What nobody has told of waits, as do requests while nobody is up. */
static void test_room_unknown(void)
{
    storage_set_up(NULL);
    assert_accepts(creation("data1", 5000));
    storage_register(1);
    assert_accepts(creation("data2", 5000));
    world_tear_down();
}

static void test_room(void)
{
    storage_set_up(NULL);
    generation = storage_register(1);
    storage_made(storage_create("data1"), generation); /* 2 GiB */
    beat(1, generation, 9, 10);
    guint64 before = serial();
    assert_says(accept(creation("data2", 5000)), NEVER("5000"));
    assert_says(accept(creation("data2", 11)), NEVER("11"));
    assert_says(accept(wish("extend-volume", "data1", 11)), NEVER("11"));
    assert_says(accept(creation("data2", 9)), LEFT("8 GiB", "9", "9", "2"));
    g_assert_cmpuint(serial(), ==, before);
    world_tear_down();
}

/* Each promise counts from the commit that makes it: of an extension too, and of snapshots. */
static void test_room_promised(void)
{
    storage_set_up(NULL);
    generation = storage_register(1);
    storage_made(storage_create("data1"), generation);
    storage_made(storage_create("data2"), generation);
    beat(1, generation, 9, 10);
    assert_accepts(wish("extend-volume", "data1", 7));
    assert_says(accept(wish("extend-volume", "data2", 4)), LEFT("1 GiB", "2", "9", "9"));
    assert_says(accept(snapping("before", "data2")), LEFT("1 GiB", "2", "9", "9"));
    assert_accepts(wish("extend-volume", "data2", 3));
    assert_says(accept(creation("data3", 1)), LEFT("0 MiB", "1", "9", "10"));
    world_tear_down();
}

/* A volume of a snapshot is made where that is. */
static void test_room_of_copies(void)
{
    storage_set_up(changes_of(put("volume", VOLUME1, 1, object_volume1()),
                              put("snapshot", VOLUME2, 1, object_snapshot2()), NULL));
    generation = storage_register(1);
    beat(1, generation, 9, 10);
    json_t *args = with(with(wish("create-volume", "", 7), "name", json_string("data2")), "source",
                        json_string("before"));
    assert_says(accept(json_deep_copy(args)), LEFT("6 GiB", "7", "9", "4"));
    assert_accepts(with(args, "size", json_integer(6)));
    world_tear_down();
}

/* With several and none named a scheduler chooses, and waits. */
static void test_room_chosen(void)
{
    storage_set_up(NULL);
    generation = storage_register(1);
    beat(1, generation, 9, 10);
    assert_accepts(with(creation("data1", 5000), "backend", json_string("")));
    g_assert_cmpuint(config_count(world.wconf->committed, "worker"), ==, 1);
    world_tear_down();
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/wconf_work_limits/room/unknown#CLN-25", test_room_unknown);
    g_test_add_func("/wconf_work_limits/room", test_room);
    g_test_add_func("/wconf_work_limits/room/promised", test_room_promised);
    g_test_add_func("/wconf_work_limits/room/copies", test_room_of_copies);
    g_test_add_func("/wconf_work_limits/room/chosen#CLN-25", test_room_chosen);
    return g_test_run();
}
