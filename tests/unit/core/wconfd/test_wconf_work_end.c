/* The end of work: what the volume is then, and its row gone, item by item (CLN-02, SAF-50). */
#include <string.h>

#include "core/wconfd/wconf_private.h"
#include "proto/change.h"
#include "proto/storage/volume_driver.h"
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

static char *data_of(const char *key, guint64 claim)
{
    return volume_data_name(strchr(key, '/') + 1, claim);
}

static json_t *failed(const char *key, guint64 claim, const char *why)
{
    return with(with(storage_end(key, claim), "failed", json_true()), "why", json_string(why));
}

static json_t *made_item(const char *key, guint64 claim)
{
    g_autofree char *data = data_of(key, claim);
    return with(storage_end(key, claim), "data", json_string(data));
}

static char *end(guint64 generation, json_t *item)
{
    return storage_end_all(1, generation, json_make("[o]", item));
}

static void unname(guint64 generation, const char *key, guint64 claim)
{
    json_t *args = json_make("{s:s,s:i,s:s,s:i,s:b}", "service", service_key(NODE1), "generation",
                             generation, "key", key, "claim", claim, "unname", 1);
    g_assert_cmpuint(storage_number(storage_ask(volumed[0], "step_work", args), "serial"), >, 0);
}

static void reset(const char *volume, const char *status)
{
    json_t *args =
        json_make("{s:s,s:s,s:s}", "resource_type", "Volume", "resource", volume, "status", status);
    g_assert_cmpuint(storage_number(storage_ask(storage_cli, "reset_state", args), "serial"), >, 0);
}

/* A person has made another node the master, which has all up to now, and not what followed. */
static void lose_changes(void)
{
    g_autoptr(GPtrArray) first = change_list_new();
    guint64 last = serial();
    fake_engine_lose(world.engine, last, first);
    storage_restart();
    g_assert_cmpuint(serial(), >, last + LIMIT_SERIAL_LEAP);
}

/* The row of node 1's former process, claimed by the present one; its claim. */
static guint64 claim_left(guint64 *generation, const char *key)
{
    guint64 version = 0;
    *generation = storage_register(1);
    config_get(world.wconf->committed, "worker", key, &version);
    json_t *args = json_make("{s:s,s:i,s:[{s:s,s:i}]}", "service", service_key(NODE1), "generation",
                             *generation, "items", "key", key, "version", version);
    return storage_number(storage_ask(volumed[0], "claim_work", args), "serial");
}

static const struct decision *only_decision(void)
{
    g_autoptr(GPtrArray) told = config_list(world.wconf->committed, "decision");
    g_assert_cmpuint(told->len, ==, 1);
    return told->pdata[0];
}

static void test_create(void)
{
    storage_set_up(NULL);
    guint64 generation = storage_register(1);
    const char *key = storage_create("data1");
    guint64 claim = storage_take(1, generation, key);
    g_autofree char *data = data_of(key, claim);
    assert_says(end(generation, made_item(key, claim)), "passed");
    g_assert_cmpstr(status_of(key), ==, "available");
    g_assert_cmpstr(storage_volume(key)->data, ==, data);
    g_assert_cmpstr(storage_volume(key)->host, ==, "node1@dir1");
    g_assert_null(storage_row(key));
    g_assert_cmpuint(config_count(world.wconf->committed, "decision"), ==, 0);
    world_tear_down();
}

static void test_create_fails(void)
{
    storage_set_up(NULL);
    guint64 generation = storage_register(1);
    const char *key = storage_create("data1");
    guint64 claim = storage_take(1, generation, key);
    assert_says(end(generation, failed(key, claim, "the disk is full")), "passed");
    g_assert_cmpstr(status_of(key), ==, "error");
    g_assert_cmpstr(storage_volume(key)->status_why, ==, "the disk is full");
    g_assert_cmpstr(storage_volume(key)->data, ==, "");
    g_assert_null(storage_row(key));
    g_assert_cmpstr(only_decision()->summary, ==,
                    "cinder-volume node1@dir1: volume data1: creating -> error: the disk is full.");
    world_tear_down();
}

/* What was lost may have ended the row, and the data was swept then: nobody names it. */
static void test_create_lost(void)
{
    storage_set_up(NULL);
    guint64 generation = storage_register(1);
    const char *key = storage_create("data1");
    guint64 claim = storage_take(1, generation, key);
    lose_changes();
    assert_says(end(generation, made_item(key, claim)), "passed");
    g_assert_cmpstr(status_of(key), ==, "error");
    g_assert_cmpstr(storage_volume(key)->data, ==, "");
    g_assert_true(g_str_has_prefix(storage_volume(key)->status_why,
                                   "changes were lost after it was begun, so "));
    g_assert_null(storage_row(key));
    g_assert_cmpuint(config_count(world.wconf->committed, "trash"), ==, 0);
    /* What is begun after the loss is as ever. */
    key = storage_create("data2");
    claim = storage_take(1, generation, key);
    assert_says(end(generation, made_item(key, claim)), "passed");
    g_assert_cmpstr(status_of(key), ==, "available");
    world_tear_down();
}

static void test_extend(void)
{
    storage_set_up(NULL);
    guint64 generation = storage_register(1);
    const char *key = storage_create("data1");
    storage_made(key, generation);
    storage_accept("extend-volume", "data1", 5);
    guint64 claim = storage_take(1, generation, key);
    assert_says(end(generation, with(storage_end(key, claim), "size", json_integer(1))),
                "refused: size: 1 GiB is smaller than 2 GiB");
    assert_says(end(generation, with(storage_end(key, claim), "size", json_integer(5))), "passed");
    g_assert_cmpuint(storage_volume(key)->size, ==, 5);
    g_assert_cmpstr(status_of(key), ==, "available");
    storage_accept("extend-volume", "data1", 6);
    claim = storage_take(1, generation, key);
    assert_says(end(generation, failed(key, claim, "full")), "passed");
    g_assert_cmpuint(storage_volume(key)->size, ==, 5);
    g_assert_cmpstr(status_of(key), ==, "error_extending");
    world_tear_down();
}

static void test_delete(void)
{
    storage_set_up(NULL);
    guint64 generation = storage_register(1);
    const char *key = storage_create("data1");
    storage_made(key, generation);
    g_autofree char *data = g_strdup(storage_volume(key)->data);
    storage_accept("delete-volume", "data1", 0);
    guint64 claim = storage_take(1, generation, key);
    g_autofree char *named =
        g_strdup_printf("refused: volume data1 names %s still; that is a step before", data);
    assert_says(end(generation, storage_end(key, claim)), named);
    unname(generation, key, claim);
    assert_says(end(generation, made_item(key, claim)),
                "refused: data: delete-volume that removes names none");
    assert_says(end(generation, failed(key, claim, "busy")), "passed");
    g_assert_cmpstr(status_of(key), ==, "error_deleting");
    g_assert_cmpuint(config_count(world.wconf->committed, "trash"), ==, 1);
    /* Once more, and with the rest of it: what is off the trash already is no matter. */
    storage_accept("delete-volume", "data1", 0);
    claim = storage_take(1, generation, key);
    assert_says(end(generation, with(storage_end(key, claim), "removed",
                                     json_make("[s,s,s]", data, data, VOLUME1 ".9"))),
                "passed");
    g_assert_cmpstr(status_of(key), ==, "gone");
    g_assert_cmpuint(config_count(world.wconf->committed, "trash"), ==, 0);
    g_assert_null(storage_row(key));
    world_tear_down();
}

/* SAF-52: by the claim of this very work. */
static void test_wrong_data(void)
{
    storage_set_up(NULL);
    guint64 generation = storage_register(1);
    const char *key = storage_create("data1");
    guint64 claim = storage_take(1, generation, key);
    g_autofree char *right = data_of(key, claim);
    g_autofree char *wrong = data_of(key, claim - 1);
    const char *const names[] = {wrong, VOLUME1 ".4", "x"};
    for (guint i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autofree char *said =
            g_strdup_printf("refused: data: %s is not %s, by its claim (SAF-52)", names[i], right);
        assert_says(end(generation, with(storage_end(key, claim), "data", json_string(names[i]))),
                    said);
    }
    assert_says(end(generation, storage_end(key, claim)),
                "refused: data: at the end of create-volume volume data1 has some");
    assert_says(end(generation, with(failed(key, claim, "x"), "data", json_string(right))),
                "refused: data: create-volume that failed names none");
    assert_says(end(generation, with(storage_end(key, claim), "moved_on", json_true())),
                "refused: volume data1 is creating still");
    assert_says(end(generation, made_item(key, claim)), "passed");
    world_tear_down();
}

/* One that was taken over fails no other; what is told of the commit is told once. */
static void test_many(void)
{
    storage_set_up(NULL);
    guint64 generation = storage_register(1);
    guint64 other = storage_register(2);
    const char *one = storage_create("one");
    const char *theirs = storage_create("theirs");
    const char *two = storage_create("two");
    guint64 first = storage_take(1, generation, one);
    guint64 not_mine = storage_take(2, other, theirs);
    guint64 second = storage_take(1, generation, two);
    guint64 before = serial();
    g_autofree char *expected = g_strdup_printf(
        "passed; refused: volume theirs: claim %" G_GUINT64_FORMAT
        " is not on record, %" G_GUINT64_FORMAT
        " of cinder-volume node2@dir1 is; passed; refused: %s: is named twice; look: " ROW1
        ": no work on it is on record",
        not_mine, not_mine, one);
    assert_says(storage_end_all(1, generation,
                                json_make("[o,o,o,o,o]", made_item(one, first),
                                          made_item(theirs, not_mine), failed(two, second, "full"),
                                          made_item(one, first), storage_end(ROW1, 1))),
                expected);
    g_assert_cmpuint(serial(), ==, before + 1);
    g_assert_cmpstr(status_of(one), ==, "available");
    g_assert_cmpstr(status_of(theirs), ==, "creating");
    g_assert_cmpstr(status_of(two), ==, "error");
    world_tear_down();
}

/* CLN-23's side here: the late owner of before finds another claim. */
static void test_late(void)
{
    storage_set_up(NULL);
    guint64 generation = storage_register(1);
    const char *key = storage_create("data1");
    guint64 late = storage_take(1, generation, key);
    guint64 now = generation;
    guint64 claim = claim_left(&now, key);
    g_autofree char *over =
        g_strdup_printf("superseded: cinder-volume node1@dir1: generation %" G_GUINT64_FORMAT
                        " is over, %" G_GUINT64_FORMAT " is on record",
                        generation, now);
    assert_says(end(generation, made_item(key, late)), over);
    g_autofree char *other =
        g_strdup_printf("refused: volume data1: claim %" G_GUINT64_FORMAT
                        " is not on record, %" G_GUINT64_FORMAT " of cinder-volume node1@dir1 is",
                        late, claim);
    assert_says(end(now, made_item(key, late)), other);
    assert_says(end(now, failed(key, claim, "its service ended")), "passed");
    g_assert_cmpstr(status_of(key), ==, "error");
    const struct decision *decision = only_decision();
    g_assert_cmpstr(
        decision->summary, ==,
        "cinder-volume node1@dir1: volume data1: creating -> error: its service ended.");
    g_assert_cmpstr(decision->state, ==, "Cleaned");
    g_assert_cmpint(decision->event, ==, EVENT_RECOVERED);
    world_tear_down();
}

/* CLN-65: the end comes after a reset. */
static void test_after_reset(void)
{
    storage_set_up(NULL);
    guint64 generation = storage_register(1);
    const char *key = storage_create("data1");
    guint64 claim = storage_take(1, generation, key);
    reset("data1", "error");
    guint64 before = serial();
    g_autofree char *gone = g_strdup_printf("look: %s: no work on it is on record", key);
    assert_says(end(generation, made_item(key, claim)), gone);
    g_assert_cmpuint(serial(), ==, before);
    g_assert_cmpstr(status_of(key), ==, "error");
    g_assert_null(storage_row(key));
    /* Nor does it end what was asked for since. */
    storage_accept("delete-volume", "data1", 0);
    assert_says(end(generation, made_item(key, claim)),
                "refused: volume data1: claim 4 is not on record, nobody has its work");
    g_assert_cmpstr(status_of(key), ==, "deleting");
    world_tear_down();
}

/* CLN-17, CLN-18: by hand in the store, as a restore may leave it. */
static void test_moved_on(void)
{
    storage_set_up(changes_of(
        put("counter", "storage-service", 1, json_make("{s:i}", "value", 1)),
        put("storage_service", service_key(NODE1), 1, object_service(NODE1)),
        put("volume", VOLUME1, 1, object_volume1()),
        put("worker", ROW1, 1,
            with(with(with(object_row1(), "service_id", json_integer(1)), "claim", json_integer(1)),
                 "id", json_integer(1))),
        put("worker", "Volume/" VOLUME2, 1,
            with(with(with(with(object_row1(), "service_id", json_integer(1)), "claim",
                           json_integer(1)),
                      "id", json_integer(1)),
                 "resource_id", json_string(VOLUME2))),
        NULL));
    assert_says(end(1, storage_end(ROW1, 1)),
                "refused: volume data1 is available, and not deleting as its work says");
    assert_says(end(1, storage_end("Volume/" VOLUME2, 1)),
                "refused: volume " VOLUME2 " is gone, and not deleting as its work says");
    guint64 before = serial();
    assert_says(storage_end_all(
                    1, 1,
                    json_make("[o,o]", with(storage_end(ROW1, 1), "moved_on", json_true()),
                              with(storage_end("Volume/" VOLUME2, 1), "moved_on", json_true()))),
                "passed; passed");
    g_assert_cmpuint(storage_writes(before, "volume"), ==, 0);
    g_assert_cmpuint(config_count(world.wconf->committed, "worker"), ==, 0);
    world_tear_down();
}

static struct change *row_of(const char *volume)
{
    g_autofree char *key = config_work_key(RESOURCE_VOLUME, volume);
    json_t *row =
        with(with(object_row1(), "service_id", json_integer(1)), "claim", json_integer(1));
    row = with(with(row, "id", json_integer(1)), "status", json_string("creating"));
    row = with(with(row, "resource_id", json_string(volume)), "operation",
               json_string("create-volume"));
    return put("worker", key, 1, row);
}

static struct change *being_made(const char *volume)
{
    json_t *json =
        with(with(object_volume1(), "uuid", json_string(volume)), "data", json_string(""));
    return put("volume", volume, 1, with(json, "status", json_string("creating")));
}

/* What a rule does not let pass, by a trash that is there all the same, holds up no other. */
static void test_rule(void)
{
    storage_set_up(
        changes_of(put("counter", "storage-service", 1, json_make("{s:i}", "value", 1)),
                   put("storage_service", service_key(NODE1), 1, object_service(NODE1)),
                   being_made(VOLUME1), row_of(VOLUME1), being_made(VOLUME2), row_of(VOLUME2),
                   put("trash", DIR1 "/" VOLUME1 ".1", 1, object_trash(VOLUME1 ".1")), NULL));
    guint64 before = serial();
    assert_says(storage_end_all(
                    1, 1, json_make("[o,o]", made_item(ROW1, 1), made_item("Volume/" VOLUME2, 1))),
                "refused: volume data1 (" VOLUME1 "): data: " VOLUME1
                ".1 is in the trash (SAF-53); passed");
    g_assert_cmpuint(serial(), ==, before + 1);
    g_assert_cmpstr(status_of(ROW1), ==, "creating");
    g_assert_nonnull(storage_row(ROW1));
    g_assert_cmpstr(status_of("Volume/" VOLUME2), ==, "available");
    g_assert_null(storage_row("Volume/" VOLUME2));
    assert_says(end(1, failed(ROW1, 1, "its name is used up")), "passed");
    world_tear_down();
}

/* The answer was lost. */
static void test_repeated(void)
{
    struct fake_reply one, two;
    storage_set_up(NULL);
    guint64 generation = storage_register(1);
    const char *key = storage_create("data1");
    const char *open = storage_create("data2");
    guint64 claim = storage_take(1, generation, key);
    json_t *args =
        json_make("{s:s,s:s,s:i,s:[o,o]}", "commit_id", ID_A, "service", service_key(NODE1),
                  "generation", generation, "items", made_item(key, claim), storage_end(open, 1));
    const struct stamp stamp = {5, world.epoch};
    fake_engine_hold(world.engine);
    fake_call_start_stamped(volumed[0], 0, stamp, NODE1, ROLE_WCONFD, "end_work",
                            json_deep_copy(args), &one);
    fake_call_start_stamped(volumed[0], 0, stamp, NODE1, ROLE_WCONFD, "end_work",
                            json_deep_copy(args), &two);
    fake_settle(world.world);
    g_assert_false(one.done || two.done);
    fake_engine_release(world.engine);
    fake_settle(world.world);
    const char *refused =
        "passed; refused: volume data2: claim 1 is not on record, nobody has its work";
    assert_says(storage_verdicts(world_reply(&one)), refused);
    assert_says(storage_verdicts(world_reply(&two)), refused);
    guint64 before = serial();
    assert_says(storage_verdicts(storage_ask(volumed[0], "end_work", json_deep_copy(args))),
                "passed; look");
    /* The log of another master does not go back so far. */
    storage_restart();
    assert_says(storage_verdicts(storage_ask(volumed[0], "end_work", args)), "look; look");
    g_assert_cmpuint(serial(), ==, before);
    /* And when its id is forgotten it is told the same: never that it was refused. */
    g_autofree char *gone = g_strdup_printf("look: %s: no work on it is on record", key);
    assert_says(end(generation, made_item(key, claim)), gone);
    g_assert_cmpstr(status_of(key), ==, "available");
    world_tear_down();
}

/* As many as one call takes: one commit, and one decision that lists them as far as it can. */
static void test_batch(void)
{
    storage_set_up(NULL);
    guint64 generation = storage_register(1);
    const char *keys[LIMIT_WORK_ITEMS];
    json_t *items = json_array();
    for (guint i = 0; i < G_N_ELEMENTS(keys); i++) {
        g_autofree char *name = g_strdup_printf("data%03u", i);
        keys[i] = storage_create(name);
        json_array_append_new(items, failed(keys[i], storage_take(1, generation, keys[i]), "full"));
    }
    guint64 before = serial();
    g_autofree char *said = storage_end_all(1, generation, items);
    g_assert_null(strstr(said, "refused"));
    g_assert_cmpuint(serial(), ==, before + 1);
    g_assert_cmpuint(config_count(world.wconf->committed, "worker"), ==, 0);
    const struct decision *decision = only_decision();
    g_assert_cmpstr(decision->subject_kind, ==, "storage_service");
    g_assert_cmpstr(
        decision->summary, ==,
        "cinder-volume node1@dir1: rows of work that were cleaned, or have failed: 256.");
    g_assert_cmpuint(decision->evidence->len, ==, LIMIT_REPAIR_EVIDENCE);
    g_assert_cmpstr(decision->evidence->pdata[0], ==, "volume data000: creating -> error: full");
    world_tear_down();
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/wconf_work_end/create#CLN-02,SAF-52", test_create);
    g_test_add_func("/wconf_work_end/create-fails#CLN-02", test_create_fails);
    g_test_add_func("/wconf_work_end/create-lost#SAF-52,SAF-120", test_create_lost);
    g_test_add_func("/wconf_work_end/extend#SAF-53", test_extend);
    g_test_add_func("/wconf_work_end/delete#SAF-53", test_delete);
    g_test_add_func("/wconf_work_end/wrong-data#SAF-52", test_wrong_data);
    g_test_add_func("/wconf_work_end/many#SAF-50", test_many);
    g_test_add_func("/wconf_work_end/late#CLN-14,SAF-50,SAF-56", test_late);
    g_test_add_func("/wconf_work_end/after-reset#CLN-64,CLN-65", test_after_reset);
    g_test_add_func("/wconf_work_end/moved-on#CLN-17,CLN-18", test_moved_on);
    g_test_add_func("/wconf_work_end/rule#SAF-50,SAF-53", test_rule);
    g_test_add_func("/wconf_work_end/repeated#SAF-04", test_repeated);
    g_test_add_func("/wconf_work_end/batch", test_batch);
    return g_test_run();
}
