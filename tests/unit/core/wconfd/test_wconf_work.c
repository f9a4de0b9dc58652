/* Requests for work on volumes: what is accepted, what a person resets, what costs a row. */
#include <string.h>

#include "core/wconfd/wconf_private.h"
#include "unit/core/world/storage_world.h"

static guint64 serial(void)
{
    return config_serial(world.wconf->committed);
}

static const char *status_of(const char *key)
{
    const struct volume *volume = storage_volume(key);
    return volume ? enum_word(&volume_status_words, (int)volume->status) : "gone";
}

static json_t *wish(const char *operation, const char *resource, guint size)
{
    return json_make("{s:s,s:s,s:s,s:i}", "resource_type", "Volume", "operation", operation,
                     "resource", resource, "size", size);
}

static json_t *creation(void)
{
    return with(with(wish("create-volume", "", 2), "name", json_string("data1")), "backend",
                json_string("dir1"));
}

static char *accept(json_t *args)
{
    return storage_ask(storage_cli, "accept_work", args);
}

/* data1, available. */
static const char *made(void)
{
    guint64 generation = storage_register(1);
    const char *key = storage_create("data1");
    storage_made(key, generation);
    return key;
}

/* CLN-01: with every member away. */
static void test_create(void)
{
    storage_set_up(NULL);
    assert_says(accept(with(with(creation(), "request_id", json_string("req-1")), "commit_id",
                            json_string(ID_A))),
                "{\"resource\":\"" ID_A "\",\"serial\":2}");
    const struct volume *volume = storage_volume("Volume/" ID_A);
    const struct worker *row = storage_row("Volume/" ID_A);
    g_assert_cmpstr(volume->name, ==, "data1");
    g_assert_cmpstr(status_of("Volume/" ID_A), ==, "creating");
    g_assert_cmpstr(volume->backend, ==, DIR1);
    g_assert_cmpuint(volume->size, ==, 2);
    g_assert_cmpstr(volume->data, ==, "");
    g_assert_cmpuint(volume->created_us, ==, row->created_us);
    g_assert_cmpuint(row->id, ==, 2);
    g_assert_cmpuint(row->service_id, ==, 0);
    g_assert_cmpuint(row->claim, ==, 0);
    g_assert_cmpuint(row->updated_us, ==, row->created_us);
    g_assert_cmpuint(row->deleted_us, ==, 0);
    g_assert_cmpstr(row->operation, ==, "create-volume");
    g_assert_cmpstr(row->status, ==, "creating");
    g_assert_cmpstr(row->backend, ==, DIR1);
    g_assert_cmpstr(row->request_id, ==, "req-1");
    world_tear_down();
}

/* Another service may ask as well. */
static void test_asked_by_a_service(void)
{
    storage_set_up(NULL);
    const char *key = made();
    guint64 before = serial();
    g_assert_cmpuint(
        storage_number(storage_ask(volumed[1], "accept_work", wish("delete-volume", "data1", 0)),
                       "serial"),
        ==, before + 1);
    g_assert_cmpuint(storage_row(key)->id, ==, before + 1);
    world_tear_down();
}

static void test_bad_requests(void)
{
    storage_set_up(NULL);
    made();
    guint64 before = serial();
    const struct {
        json_t *args;
        const char *said;
    } cases[] = {
        {wish("fly", "data1", 0), "wrong_input: operation: there is no \"fly\" of a Volume; there "
                                  "is create-volume, delete-volume, extend-volume, "
                                  "migrate-volume, retype-volume, upload-volume"},
        {wish("create-volume", "data1", 2), "wrong_input: resource: create-volume makes it"},
        {with(creation(), "size", json_integer(0)),
         "wrong_input: size: create-volume needs one, 1 GiB at least"},
        {with(creation(), "size", json_integer(65537)),
         "wrong_input: size: must be at most 65536 (GiB)"},
        {with(creation(), "name", json_string(VOLUME2)),
         "wrong_input: name: it is a UUID; choose another one"},
        {with(creation(), "name", json_string("a\x1b[2J")),
         "wrong_input: name: must have no control characters, has \\x1b"},
        {with(creation(), "backend", json_string("dir9")),
         "unknown_entity: backend \"dir9\" does not exist"},
        {wish("delete-volume", "data2", 0), "unknown_entity: volume \"data2\" does not exist"},
        {wish("delete-volume", "", 0), "unknown_entity: volume \"\" does not exist"},
        {wish("delete-volume", "data1", 3), "wrong_input: size: delete-volume takes none"},
        {with(wish("delete-volume", "data1", 0), "name", json_string("x")),
         "wrong_input: name: delete-volume takes none"},
        {with(wish("delete-volume", "data1", 0), "unique_name", json_true()),
         "wrong_input: unique_name: delete-volume takes none"},
        {with(wish("delete-volume", "data1", 0), "backend", json_string("dir1")),
         "wrong_input: backend: delete-volume takes none"},
        {wish("extend-volume", "data1", 2), "wrong_input: extend: 2 GiB is not larger than 2 GiB"},
        {wish("extend-volume", "data1", 1), "wrong_input: extend: 1 GiB is not larger than 2 GiB"},
        {wish("extend-volume", "data1", 0), "wrong_input: extend: 0 GiB is not larger than 2 GiB"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++)
        assert_says(accept(cases[i].args), cases[i].said);
    g_assert_cmpuint(serial(), ==, before);
    world_tear_down();
}

static void test_backends(void)
{
    config_world_init(&world, initial_changes());
    config_world_start(&world);
    storage_cli = fake_process(world.world, NODE1, ROLE_CLI);
    json_t *args = with(creation(), "backend", json_string(""));
    assert_says(accept(json_deep_copy(args)),
                "wrong_state: there is no back end; add one: fettle backend add");
    assert_says(job_change(&world, 17, "add_backend",
                           changes_of(put("backend", DIR1, 0, object_backend(DIR1)), NULL)),
                "{\"serial\":2}");
    /* The only one need not be named. */
    assert_says(accept(with(args, "commit_id", json_string(ID_A))),
                "{\"resource\":\"" ID_A "\",\"serial\":3}");
    world_tear_down();
}

/* CLN-04: one at a time. */
static void test_under_way(void)
{
    storage_set_up(NULL);
    const char *key = made();
    storage_accept("delete-volume", "data1", 0);
    g_assert_cmpstr(status_of(key), ==, "deleting");
    assert_says(accept(wish("delete-volume", "data1", 0)),
                "wrong_state: volume data1: it is being deleted; wait, or reset its state");
    assert_says(accept(wish("extend-volume", "data1", 5)),
                "wrong_state: volume data1: it is being deleted; wait, or reset its state");
    assert_says(accept(wish("extend-volume", storage_create("data2") + strlen("Volume/"), 5)),
                "wrong_state: volume data2: it is being created; wait, or reset its state");
    world_tear_down();
}

/* What nobody has begun goes with its row at once. */
static void test_withdrawn(void)
{
    storage_set_up(NULL);
    const char *key = storage_create("data1");
    g_assert_cmpuint(storage_number(accept(wish("delete-volume", "data1", 0)), "serial"), >, 0);
    g_assert_null(storage_row(key));
    g_assert_null(storage_volume(key));
    key = storage_create_anywhere("data2");
    g_assert_cmpuint(storage_number(accept(wish("delete-volume", "data2", 0)), "serial"), >, 0);
    g_assert_null(storage_row(key));
    g_assert_null(storage_volume(key));
    world_tear_down();
}

/* Two deletes of one volume at once leave one row. */
static void test_race(void)
{
    struct fake_reply one, other;
    storage_set_up(NULL);
    made();
    guint64 before = serial();
    fake_engine_hold(world.engine);
    const struct stamp stamp = {5, world.epoch};
    json_t *args = wish("delete-volume", "data1", 0);
    fake_call_start_stamped(storage_cli, 0, stamp, NODE1, ROLE_WCONFD, "accept_work",
                            with(json_deep_copy(args), "commit_id", json_string(ID_A)), &one);
    fake_settle(world.world);
    fake_call_start_stamped(storage_cli, 0, stamp, NODE1, ROLE_WCONFD, "accept_work",
                            with(args, "commit_id", json_string(ID_B)), &other);
    fake_settle(world.world);
    g_assert_false(one.done || other.done);
    fake_engine_release(world.engine);
    fake_settle(world.world);
    g_autofree char *first = world_reply(&one);
    g_assert_cmpint(*first, ==, '{');
    assert_says(world_reply(&other),
                "wrong_state: volume data1: it is being deleted; wait, or reset its state");
    g_assert_cmpuint(storage_writes(before, "worker"), ==, 1);
    world_tear_down();
}

/* A transient status that no row stands for, after a restore. */
static void test_statuses(void)
{
    storage_set_up(changes_of(
        put("volume", VOLUME1, 1, with(object_volume1(), "status", json_string("creating"))),
        NULL));
    assert_says(accept(wish("delete-volume", "data1", 0)),
                "wrong_state: volume data1 is creating; delete-volume needs error, available, "
                "error_deleting, error_extending or error_restoring");
    assert_says(accept(wish("extend-volume", "data1", 5)),
                "wrong_state: volume data1 is creating; extend-volume needs available or "
                "error_extending");
    world_tear_down();
}

/* The answer was lost: the same again, on its way, after a restart, and after the volume has gone.
 */
static void test_repeated(void)
{
    struct fake_reply one, two;
    storage_set_up(NULL);
    const struct stamp stamp = {5, world.epoch};
    json_t *args = with(creation(), "commit_id", json_string(ID_A));
    fake_engine_hold(world.engine);
    fake_call_start_stamped(storage_cli, 0, stamp, NODE1, ROLE_WCONFD, "accept_work",
                            json_deep_copy(args), &one);
    fake_call_start_stamped(storage_cli, 0, stamp, NODE1, ROLE_WCONFD, "accept_work",
                            json_deep_copy(args), &two);
    fake_settle(world.world);
    fake_engine_release(world.engine);
    fake_settle(world.world);
    assert_says(world_reply(&one), "{\"resource\":\"" ID_A "\",\"serial\":2}");
    assert_says(world_reply(&two), "{\"resource\":\"" ID_A "\",\"serial\":2}");
    storage_restart();
    assert_says(accept(args), "{\"resource\":\"" ID_A "\",\"serial\":2}");
    g_assert_cmpuint(fake_engine_commits(world.engine), ==, 1);
    /* Whose id is forgotten, and which is there still, is not made over it. */
    storage_made("Volume/" ID_A, storage_register(1));

    args = with(wish("delete-volume", "data1", 0), "commit_id", json_string(ID_B));
    g_autofree char *first = accept(json_deep_copy(args));
    g_assert_nonnull(strstr(first, "\"resource\":\"" ID_A "\""));
    assert_says(accept(json_deep_copy(args)), first);
    assert_says(storage_ask(storage_cli, "reset_state",
                            json_make("{s:s,s:s,s:s}", "resource_type", "Volume", "resource",
                                      "data1", "status", "error")),
                "{\"serial\":7}");
    assert_says(accept(args), first);
    world_tear_down();
}

static void test_uuid_of_another(void)
{
    storage_set_up(changes_of(put("volume", VOLUME1, 1, object_volume1()), NULL));
    assert_says(accept(with(creation(), "commit_id", json_string(VOLUME1))),
                "already_exists: volume " VOLUME1 " exists already");
    world_tear_down();
}

/* --- reset --- */

static char *reset(const char *volume, const char *status)
{
    return storage_ask(storage_cli, "reset_state",
                       json_make("{s:s,s:s,s:s}", "resource_type", "Volume", "resource", volume,
                                 "status", status));
}

static void test_reset(void)
{
    storage_set_up(NULL);
    const char *key = made();
    storage_accept("extend-volume", "data1", 5);
    g_assert_cmpuint(storage_row(key)->size, ==, 5);
    guint64 before = serial();
    g_assert_cmpuint(storage_number(reset("data1", "available"), "serial"), ==, before + 1);
    g_assert_null(storage_row(key));
    g_assert_cmpstr(status_of(key), ==, "available");
    g_assert_cmpuint(storage_volume(key)->size, ==, 2);
    g_autoptr(GPtrArray) told = config_list(world.wconf->committed, "decision");
    g_assert_cmpuint(told->len, ==, 1);
    g_assert_cmpstr(((const struct decision *)told->pdata[0])->summary, ==,
                    "A person has set the state of volume data1 from extending to available, and "
                    "that ended the work on it.");
    /* It can be asked for again. */
    storage_accept("extend-volume", "data1", 5);
    world_tear_down();
}

#define CAN_BE "available, error, error_deleting, error_extending, error_restoring"

static void test_reset_refused(void)
{
    storage_set_up(NULL);
    const char *key = storage_create("big");
    guint64 before = serial();
    assert_says(reset("big", "available"),
                "wrong_state: volume big has no data; it can be error or be deleted");
    assert_says(reset("big", "attaching"),
                "wrong_input: status: attaching is what an attachment says; a volume can be set "
                "to " CAN_BE);
    assert_says(reset("big", "in-use"),
                "wrong_input: status: in-use is what an attachment says; a volume can be set "
                "to " CAN_BE);
    assert_says(reset("big", "deleting"),
                "wrong_input: status: a volume can be set to " CAN_BE ", not to \"deleting\"");
    assert_says(reset("small", "error"), "unknown_entity: volume \"small\" does not exist");
    g_assert_cmpuint(serial(), ==, before);
    g_assert_nonnull(storage_row(key));
    g_assert_cmpuint(storage_number(reset("big", "error"), "serial"), ==, before + 1);
    g_assert_cmpstr(storage_volume(key)->status_why, ==, "set by a person");
    storage_accept("delete-volume", "big", 0);
    g_assert_cmpstr(storage_volume(key)->status_why, ==, "");
    world_tear_down();
}

/* --- no work --- */

static char *change(const char *volume, const char *name, const char *description)
{
    return storage_ask(
        storage_cli, "change_volume",
        json_make("{s:s,s:s,s:s}", "volume", volume, "name", name, "description", description));
}

static void test_change(void)
{
    storage_set_up(NULL);
    const char *key = made();
    guint64 before = serial();
    g_assert_cmpuint(storage_number(change("data1", "data2", ""), "serial"), ==, before + 1);
    g_assert_cmpuint(storage_number(change("data2", "", "of web1"), "serial"), ==, before + 2);
    g_assert_cmpstr(storage_volume(key)->name, ==, "data2");
    g_assert_cmpstr(storage_volume(key)->description, ==, "of web1");
    assert_says(change("data2", "", ""), "wrong_input: name, description: nothing is to change");
    assert_says(change("data1", "x", ""), "unknown_entity: volume \"data1\" does not exist");
    /* While work is under way as well. */
    storage_accept("delete-volume", "data2", 0);
    before = serial();
    g_assert_cmpuint(storage_number(change("data2", "data3", ""), "serial"), ==, before + 1);
    g_assert_cmpuint(storage_writes(before, "worker"), ==, 0);
    const char *other = storage_create("data3");
    const char *one = strchr(key, '/') + 1, *two = strchr(other, '/') + 1;
    bool in_order = strcmp(one, two) < 0;
    g_autofree char *both = g_strdup_printf(
        "wrong_input: volume \"data3\" is the name of 2 volumes: %s, %s; use a UUID",
        in_order ? one : two, in_order ? two : one);
    assert_says(change("data3", "x", ""), both);
    world_tear_down();
}

/* CLN-66, CLN-03: what tracking costs, and what stays of it. */
static void test_cost(void)
{
    storage_set_up(NULL);
    guint64 generation = storage_register(1);
    guint64 before = serial();
    const char *key = storage_create("data1");
    storage_made(key, generation);
    g_assert_cmpuint(storage_writes(before, "worker"), ==, 3); /* accept, take, end */
    before = serial();
    g_free(change("data1", "data2", ""));
    g_assert_cmpuint(storage_writes(before, "worker"), ==, 0);
    storage_accept("delete-volume", "data2", 0);
    guint64 claim = storage_take(1, generation, key);
    g_autofree char *data = g_strdup(storage_volume(key)->data);
    g_assert_cmpuint(
        storage_number(
            storage_ask(volumed[0], "step_work",
                        json_make("{s:s,s:i,s:s,s:i,s:b}", "key", key, "claim", claim, "service",
                                  service_key(NODE1), "generation", generation, "unname", 1)),
            "serial"),
        >, 0);
    assert_says(storage_end_all(1, generation,
                                json_make("[o]", with(storage_end(key, claim), "removed",
                                                      json_make("[s]", data)))),
                "passed");
    g_assert_cmpuint(storage_writes(before, "worker"), ==, 4); /* and the step */
    static const char *const kinds[] = {"worker", "volume", "trash"};
    for (guint i = 0; i < G_N_ELEMENTS(kinds); i++)
        g_assert_cmpuint(config_count(world.wconf->committed, kinds[i]), ==, 0);
    world_tear_down();
}

/* --- a table of its own --- */

/* CLN-12: one more status, by one row of the table. */
static void test_table(void)
{
    static const struct work_row table[] = {
        {TASK_KIND_volume, TASK_OPERATION_CREATE_VOLUME, "creating", 0, TASK_FINAL_AVAILABLE,
         WORK_DROP_MADE, TASK_FINAL_ERROR},
        {TASK_KIND_volume, TASK_OPERATION_UPLOAD_VOLUME, "uploading", 1u << TASK_FINAL_AVAILABLE,
         TASK_FINAL_AVAILABLE, WORK_LOOK, TASK_FINAL_ERROR_RESTORING},
        {0}};
    storage_set_up(NULL);
    world.wconf->work_table = table;
    guint64 generation = storage_register(1);
    const char *key = storage_create("data1");
    storage_made(key, generation);
    assert_says(accept(wish("delete-volume", "data1", 0)),
                "wrong_input: operation: there is no \"delete-volume\" of a Volume; there is "
                "create-volume, upload-volume");
    storage_accept("upload-volume", "data1", 0);
    g_assert_cmpstr(status_of(key), ==, "uploading");
    storage_take(1, generation, key);
    /* Its next process cleans it. */
    generation = storage_register(1);
    guint64 version = 0;
    config_get(world.wconf->committed, "worker", key, &version);
    guint64 claim = storage_number(
        storage_ask(volumed[0], "claim_work",
                    json_make("{s:s,s:i,s:[{s:s,s:i}]}", "service", service_key(NODE1),
                              "generation", generation, "items", "key", key, "version", version)),
        "serial");
    assert_says(
        storage_end_all(1, generation,
                        json_make("[o]", with(storage_end(key, claim), "failed", json_true()))),
        "passed");
    g_assert_cmpstr(status_of(key), ==, "error_restoring");
    g_assert_null(storage_row(key));
    world_tear_down();
}

/* SAF-122 */
static void test_restored(void)
{
    static const char *const refused =
        "wrong_state: the configuration was restored from a backup and is not compared with the "
        "nodes yet, so nothing starts, stops or moves: look at `fettle cluster verify`, then say "
        "`fettle repair continue`";
    storage_set_up(changes_of(
        put("volume", VOLUME1, 1, with(object_volume1(), "status", json_string("deleting"))),
        put("worker", ROW1, 1, with(object_row1(), "id", json_integer(1))),
        put("repair_brake", "cluster", 1,
            json_make("{s:s,s:i,s:b}", "why", "x", "since", 1, "restored", 1)),
        NULL));
    guint64 generation = storage_register(1); /* who serves may be known */
    assert_says(accept(creation()), refused);
    const struct {
        const char *method;
        json_t *args;
    } calls[] = {
        {"take_work", json_make("{s:s}", "key", ROW1)},
        {"step_work", json_make("{s:s,s:i}", "key", ROW1, "claim", 1)},
        {"end_work", json_make("{s:[{s:s,s:i}]}", "items", "key", ROW1, "claim", 1)},
        {"claim_work", json_make("{s:[{s:s,s:i}]}", "items", "key", ROW1, "version", 1)},
        {"give_back", json_make("{s:s,s:i}", "key", ROW1, "claim", 1)},
        {"empty_trash", json_make("{s:[s]}", "names", VOLUME1 ".7")},
    };
    for (guint i = 0; i < G_N_ELEMENTS(calls); i++)
        assert_says(
            storage_ask(volumed[0], calls[i].method,
                        with(with(calls[i].args, "service", json_string(service_key(NODE1))),
                             "generation", json_integer((json_int_t)generation))),
            refused);
    /* A person may say what it is; and with the brake every row of before goes. */
    g_autofree char *said = job_change(&world, 17, "adopt_restored",
                                       changes_of(del("repair_brake", "cluster", 1), NULL));
    g_assert_cmpint(*said, ==, '{');
    g_assert_null(storage_row(ROW1));
    g_assert_cmpstr(status_of(ROW1), ==, "deleting");
    g_assert_cmpuint(storage_number(reset("data1", "available"), "serial"), >, 0);
    storage_accept("delete-volume", "data1", 0);
    world_tear_down();
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/wconf_work/create#CLN-01,CLN-07,CLN-08,CLN-10", test_create);
    g_test_add_func("/wconf_work/asked-by-a-service#CLN-01", test_asked_by_a_service);
    g_test_add_func("/wconf_work/bad-requests", test_bad_requests);
    g_test_add_func("/wconf_work/back-ends", test_backends);
    g_test_add_func("/wconf_work/under-way#CLN-04", test_under_way);
    g_test_add_func("/wconf_work/race#CLN-04", test_race);
    g_test_add_func("/wconf_work/statuses", test_statuses);
    g_test_add_func("/wconf_work/repeated#SAF-04", test_repeated);
    g_test_add_func("/wconf_work/uuid-of-another", test_uuid_of_another);
    g_test_add_func("/wconf_work/reset#CLN-64", test_reset);
    g_test_add_func("/wconf_work/reset-refused#CLN-64", test_reset_refused);
    g_test_add_func("/wconf_work/change#CLN-05", test_change);
    g_test_add_func("/wconf_work/cost#CLN-02,CLN-03,CLN-05,CLN-66", test_cost);
    g_test_add_func("/wconf_work/table#CLN-12", test_table);
    g_test_add_func("/wconf_work/restored#SAF-122", test_restored);
    g_test_add_func("/wconf_work/withdrawn", test_withdrawn);
    return g_test_run();
}
