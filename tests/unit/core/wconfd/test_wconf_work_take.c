/* Whose a row is: taken, stepped, claimed by the next process, given back; trash (SAF-50 to 53). */
#include <string.h>

#include "core/wconfd/wconf_private.h"
#include "proto/storage/volume_driver.h"
#include "unit/core/world/storage_world.h"

static guint64 serial(void)
{
    return config_serial(world.wconf->committed);
}

static json_t *call_of(const char *node, guint64 generation)
{
    return json_make("{s:s,s:i}", "service", service_key(node), "generation", generation);
}

static json_t *of_row(const char *node, guint64 generation, const char *key)
{
    return with(call_of(node, generation), "key", json_string(key));
}

static char *take(guint from, const char *node, guint64 generation, const char *key)
{
    return storage_ask(volumed[from - 1], "take_work", of_row(node, generation, key));
}

static char *step(guint64 generation, const char *key, guint64 claim, bool unname)
{
    return storage_ask(
        volumed[0], "step_work",
        with(with(of_row(NODE1, generation, key), "claim", json_integer((json_int_t)claim)),
             "unname", json_boolean(unname)));
}

static char *give_back(guint64 generation, const char *key, guint64 claim, const char *why)
{
    return storage_ask(
        volumed[0], "give_back",
        with(with(of_row(NODE1, generation, key), "claim", json_integer((json_int_t)claim)), "why",
             json_string(why)));
}

static guint64 version_of(const char *key)
{
    guint64 version = 0;
    config_get(world.wconf->committed, "worker", key, &version);
    return version;
}

static json_t *claiming(const char *key, guint64 version)
{
    return json_make("{s:s,s:i}", "key", key, "version", version);
}

static char *claim_said(guint node, guint64 generation, json_t *items, const char *id)
{
    json_t *args = with(call_of(node == 1 ? NODE1 : NODE2, generation), "items", items);
    if (id)
        json_object_set_new(args, "commit_id", json_string(id));
    return storage_ask(volumed[node - 1], "claim_work", args);
}

static char *claim(guint node, guint64 generation, json_t *items)
{
    return storage_verdicts(claim_said(node, generation, items, NULL));
}

/* --- take --- */

static void test_take(void)
{
    storage_set_up(NULL);
    guint64 generation = storage_register(1);
    const char *key = storage_create("data1");
    guint64 accepted = storage_row(key)->updated_us;
    g_autofree char *expected = g_strdup_printf("{\"claim\":%" G_GUINT64_FORMAT "}", serial() + 1);
    assert_says(take(1, NODE1, generation, key), expected);
    const struct worker *row = storage_row(key);
    g_assert_cmpuint(row->service_id, ==, 1);
    g_assert_cmpuint(row->claim, ==, serial());
    g_assert_cmpuint(row->created_us, ==, accepted);
    g_assert_cmpuint(row->updated_us, >, accepted);
    world_tear_down();
}

/* CLN-10: who works on it, and not who has made it. */
static void test_another_member(void)
{
    storage_set_up(NULL);
    guint64 first = storage_register(1);
    guint64 second = storage_register(2);
    const char *key = storage_create("data1");
    storage_made(key, first);
    g_assert_cmpstr(storage_volume(key)->host, ==, "node1@dir1");
    storage_accept("delete-volume", "data1", 0);
    storage_take(2, second, key);
    g_assert_cmpuint(storage_row(key)->service_id, ==, 2);
    world_tear_down();
}

static void test_take_refused(void)
{
    storage_set_up(NULL);
    guint64 old = storage_register(1);
    guint64 generation = storage_register(1);
    guint64 other = storage_register(2);
    const char *key = storage_create("data1");
    guint64 before = serial();
    g_autofree char *over =
        g_strdup_printf("superseded: cinder-volume node1@dir1: generation %" G_GUINT64_FORMAT
                        " is over, %" G_GUINT64_FORMAT " is on record",
                        old, generation);
    assert_says(take(1, NODE1, old, key), over);
    g_autofree char *never =
        g_strdup_printf("wrong_state: cinder-volume node1@dir1: generation 99 was never committed, "
                        "%" G_GUINT64_FORMAT " is on record",
                        generation);
    assert_says(take(1, NODE1, 99, key), never);
    assert_says(take(2, NODE1, generation, key),
                "permission_denied: cinder-volume node1@dir1: it is registered from node1, not "
                "from node2");
    g_autofree char *stranger =
        g_strdup_printf("superseded: storage service %s is off record", service_key("9"));
    assert_says(take(1, "9", 1, key), stranger);
    assert_says(take(1, NODE1, generation, ROW1),
                "superseded: " ROW1 ": no work on it is on record");
    g_assert_cmpuint(serial(), ==, before);
    storage_take(1, generation, key);
    assert_says(take(2, NODE2, other, key),
                "superseded: volume data1: cinder-volume node1@dir1 works on it");
    world_tear_down();
}

static void test_take_of_another_back_end(void)
{
    storage_set_up(NULL);
    guint64 generation = storage_register(1);
    json_t *args =
        json_make("{s:s,s:s,s:s,s:s,s:i,s:s}", "commit_id", ID_A, "resource_type", "Volume",
                  "operation", "create-volume", "name", "data2", "size", 1, "backend", "dir2");
    g_free(storage_ask(storage_cli, "accept_work", args));
    assert_says(take(1, NODE1, generation, "Volume/" ID_A),
                "superseded: volume data2: its work is for dir2, not for cinder-volume node1@dir1");
    world_tear_down();
}

static char *serve(json_t *nodes)
{
    guint64 version = 0;
    config_get(world.wconf->committed, "backend", DIR1, &version);
    return job_change(
        &world, 17, "change_backend",
        changes_of(put("backend", DIR1, version, with(object_backend(DIR1), "nodes", nodes)),
                   NULL));
}

/* With work it stays; then its service goes with it. */
static void test_node_leaves(void)
{
    storage_set_up(NULL);
    guint64 generation = storage_register(1);
    const char *key = storage_create("data1");
    guint64 claim = storage_take(1, generation, key);
    const char *next = storage_create("data3");
    assert_says(serve(json_make("[s]", NODE2)),
                "wrong_state: backend dir1 (" DIR1 "): nodes: node1 cannot leave, the work of "
                "cinder-volume node1@dir1 on volume data1 is under way: fettle volume reset-state "
                "data1 --status error, or wait for a service of that name to clean it");
    g_autofree char *data = volume_data_name(strchr(key, '/') + 1, claim);
    assert_says(
        storage_end_all(1, generation,
                        json_make("[o]", with(storage_end(key, claim), "data", json_string(data)))),
        "passed");
    /* The only one stays: its place was seen. */
    g_assert_cmpuint(storage_number(serve(json_make("[s]", NODE2)), "serial"), >, 0);
    g_assert_cmpuint(config_count(world.wconf->committed, "storage_service"), ==, 1);
    storage_register(2);
    g_assert_cmpuint(storage_number(serve(json_make("[s,s]", NODE2, NODE3)), "serial"), >, 0);
    g_assert_cmpuint(config_count(world.wconf->committed, "storage_service"), ==, 1);
    g_autofree char *over =
        g_strdup_printf("superseded: storage service %s is off record", service_key(NODE1));
    assert_says(take(1, NODE1, generation, next), over);
    world_tear_down();
}

/* Two at once: one has it. The other is told when that is stored. */
static void test_take_race(void)
{
    struct fake_reply one, other;
    storage_set_up(NULL);
    guint64 first = storage_register(1);
    guint64 second = storage_register(2);
    const char *key = storage_create("data1");
    fake_engine_hold(world.engine);
    const struct stamp stamp = {5, world.epoch};
    fake_call_start_stamped(volumed[1], 0, stamp, NODE1, ROLE_WCONFD, "take_work",
                            with(of_row(NODE2, second, key), "commit_id", json_string(ID_A)), &one);
    fake_settle(world.world);
    fake_call_start_stamped(volumed[0], 0, stamp, NODE1, ROLE_WCONFD, "take_work",
                            with(of_row(NODE1, first, key), "commit_id", json_string(ID_B)),
                            &other);
    fake_settle(world.world);
    g_assert_false(one.done || other.done);
    fake_engine_release(world.engine);
    fake_settle(world.world);
    g_autofree char *said = world_reply(&one);
    g_assert_nonnull(strstr(said, "claim"));
    assert_says(world_reply(&other),
                "superseded: volume data1: cinder-volume node2@dir1 works on it");
    world_tear_down();
}

/* The answer was lost; also so long ago that the id is forgotten. */
static void test_take_repeated(void)
{
    storage_set_up(NULL);
    guint64 generation = storage_register(1);
    const char *key = storage_create("data1");
    json_t *args = with(of_row(NODE1, generation, key), "commit_id", json_string(ID_A));
    g_autofree char *first = storage_ask(volumed[0], "take_work", json_deep_copy(args));
    guint64 before = serial();
    storage_restart();
    assert_says(storage_ask(volumed[0], "take_work", args), first);
    assert_says(take(1, NODE1, generation, key), first);
    g_assert_cmpuint(serial(), ==, before);
    /* Not so the next process of its name: that cleans it. */
    generation = storage_register(1);
    assert_says(take(1, NODE1, generation, key),
                "superseded: volume data1: cinder-volume node1@dir1 works on it");
    world_tear_down();
}

/* --- step --- */

static void test_step(void)
{
    storage_set_up(NULL);
    guint64 generation = storage_register(1);
    const char *key = storage_create("data1");
    storage_made(key, generation);
    g_autofree char *data = g_strdup(storage_volume(key)->data);
    g_autofree char *trash = config_trash_key(DIR1, data);
    storage_accept("delete-volume", "data1", 0);
    guint64 claim = storage_take(1, generation, key);
    guint64 touched = storage_row(key)->updated_us;
    g_assert_cmpuint(storage_number(step(generation, key, claim, false), "serial"), ==, serial());
    g_assert_cmpstr(storage_volume(key)->data, ==, data);
    g_assert_cmpuint(storage_row(key)->updated_us, >, touched);
    g_assert_cmpuint(storage_row(key)->claim, ==, claim);
    g_assert_cmpuint(storage_number(step(generation, key, claim, true), "serial"), ==, serial());
    g_assert_cmpstr(storage_volume(key)->data, ==, "");
    const struct trash *gone = config_get(world.wconf->committed, "trash", trash, NULL);
    g_assert_cmpstr(gone->name, ==, data);
    g_assert_cmpuint(gone->since_us, >, touched);
    /* Once more changes nothing but the time. */
    g_assert_cmpuint(storage_number(step(generation, key, claim, true), "serial"), ==, serial());
    g_assert_cmpuint(config_count(world.wconf->committed, "trash"), ==, 1);
    /* Past the point of no return a person can promise nothing. */
    assert_says(storage_ask(storage_cli, "reset_state",
                            json_make("{s:s,s:s,s:s}", "resource_type", "Volume", "resource",
                                      "data1", "status", "available")),
                "wrong_state: volume data1 has no data; it can be error or be deleted");
    world_tear_down();
}

static void test_step_refused(void)
{
    storage_set_up(NULL);
    guint64 generation = storage_register(1);
    const char *key = storage_create("data1");
    guint64 claim = storage_take(1, generation, key);
    assert_says(step(generation, key, claim, true),
                "wrong_input: unname: create-volume does not remove volume data1");
    g_autofree char *other =
        g_strdup_printf("superseded: volume data1: claim 1 is not on record, %" G_GUINT64_FORMAT
                        " of cinder-volume node1@dir1 is",
                        claim);
    assert_says(step(generation, key, 1, false), other);
    g_autofree char *over =
        g_strdup_printf("superseded: cinder-volume node1@dir1: generation 1 is over, "
                        "%" G_GUINT64_FORMAT " is on record",
                        generation);
    assert_says(step(1, key, claim, false), over);
    /* CLN-65: reset meanwhile; the late step finds no row. */
    g_free(storage_ask(storage_cli, "reset_state",
                       json_make("{s:s,s:s,s:s}", "resource_type", "Volume", "resource", "data1",
                                 "status", "error")));
    g_autofree char *gone = g_strdup_printf("superseded: %s: no work on it is on record", key);
    assert_says(step(generation, key, claim, false), gone);
    world_tear_down();
}

/* Whoever takes back what he has asked for ends that, and nothing that others have asked for since.
 */
static char *reset_row(guint64 row)
{
    return storage_ask(storage_cli, "reset_state",
                       json_make("{s:s,s:s,s:s,s:I}", "resource_type", "Volume", "resource",
                                 "data1", "status", "error", "row", (json_int_t)row));
}

static void test_reset_names_the_row(void)
{
    storage_set_up(NULL);
    const char *key = storage_create("data1");
    guint64 id = storage_row(key)->id;
    g_autofree char *other = g_strdup_printf(
        "superseded: volume data1: its work %" G_GUINT64_FORMAT " has ended", id + 1);
    assert_says(reset_row(id + 1), other);
    g_assert_cmpuint(storage_row(key)->id, ==, id);
    g_assert_cmpuint(storage_number(reset_row(id), "serial"), >, 0);
    g_assert_null(storage_row(key));
    g_autofree char *gone =
        g_strdup_printf("superseded: volume data1: its work %" G_GUINT64_FORMAT " has ended", id);
    assert_says(reset_row(id), gone);
    world_tear_down();
}

/* --- claim --- */

static void test_claim(void)
{
    storage_set_up(NULL);
    guint64 old = storage_register(1);
    const char *key = storage_create("data1");
    guint64 late = storage_take(1, old, key);
    guint64 touched = storage_row(key)->updated_us;
    guint64 generation = storage_register(1);
    guint64 number = storage_number(
        claim_said(1, generation, json_make("[o]", claiming(key, version_of(key))), NULL),
        "serial");
    const struct worker *row = storage_row(key);
    g_assert_cmpuint(number, ==, serial());
    g_assert_cmpuint(row->claim, ==, number);
    g_assert_cmpuint(row->service_id, ==, 1);
    g_assert_cmpuint(row->was_service_id, ==, 1);
    g_assert_cmpuint(row->was_updated_us, ==, touched);
    g_assert_cmpuint(row->updated_us, >, touched);
    /* CLN-16: again nothing is found; and who had it before has it no more. */
    assert_says(claim(1, generation, json_make("[o]", claiming(key, number))),
                "refused: volume data1: its work was touched since registration 5");
    g_autofree char *over =
        g_strdup_printf("superseded: volume data1: claim %" G_GUINT64_FORMAT
                        " is not on record, %" G_GUINT64_FORMAT " of cinder-volume node1@dir1 is",
                        late, number);
    assert_says(step(generation, key, late, false), over);
    world_tear_down();
}

/* CLN-14, 15: each item for itself. */
static void test_claim_refused(void)
{
    storage_set_up(NULL);
    guint64 old = storage_register(1);
    guint64 other = storage_register(2);
    const char *mine = storage_create("mine");
    const char *theirs = storage_create("theirs");
    const char *nobodys = storage_create("nobodys");
    const char *changed = storage_create("changed");
    storage_take(1, old, mine);
    storage_take(1, old, changed);
    storage_take(2, other, theirs);
    guint64 read = version_of(changed);
    g_free(step(old, changed, storage_row(changed)->claim, false));
    guint64 generation = storage_register(1);
    assert_says(claim(1, old, json_make("[o]", claiming(mine, version_of(mine)))),
                "superseded: cinder-volume node1@dir1: generation 2 is over, 12 is on record");
    json_t *items =
        json_make("[o,o,o,o,o,o]", claiming(mine, version_of(mine)),
                  claiming(theirs, version_of(theirs)), claiming(nobodys, version_of(nobodys)),
                  claiming(changed, read), claiming(ROW1, 1), claiming(mine, version_of(mine)));
    g_autofree char *twice = g_strdup_printf("refused: %s: is named twice", mine);
    g_autofree char *expected = g_strconcat(
        "passed; refused: volume theirs: service 2 has its work; refused: volume nobodys: service "
        "0 has its work; refused: volume changed: its work was read at version 9, it is at 11 now; "
        "refused: " ROW1 ": no work on it is on record; ",
        twice, NULL);
    guint64 before = serial();
    assert_says(claim(1, generation, items), expected);
    g_assert_cmpuint(serial(), ==, before + 1);
    g_assert_cmpuint(storage_row(theirs)->service_id, ==, 2);
    /* Where nothing passes nothing is committed. */
    assert_says(
        storage_ask(volumed[0], "claim_work",
                    with(call_of(NODE1, generation), "items", json_make("[o]", claiming(ROW1, 1)))),
        "{\"items\":[{\"answer\":\"refused\",\"key\":\"" ROW1 "\",\"why\":\"" ROW1
        ": no work on it is on record\"}],\"serial\":0}");
    g_assert_cmpuint(serial(), ==, before + 1);
    world_tear_down();
}

static void test_claim_repeated(void)
{
    storage_set_up(NULL);
    guint64 generation = storage_register(1);
    const char *key = storage_create("data1");
    const char *other = storage_create("data2");
    storage_take(1, generation, key);
    generation = storage_register(1);
    json_t *items = json_make("[o,o]", claiming(key, version_of(key)), claiming(other, 1));
    guint64 number =
        storage_number(claim_said(1, generation, json_deep_copy(items), ID_A), "serial");
    storage_restart();
    g_autofree char *again = claim_said(1, generation, json_deep_copy(items), ID_A);
    g_assert_cmpuint(storage_number(g_strdup(again), "serial"), ==, number);
    assert_says(storage_verdicts(g_steal_pointer(&again)), "passed; look");
    /* And when the row has gone on. */
    assert_says(
        storage_end_all(1, generation,
                        json_make("[o]", with(storage_end(key, number), "failed", json_true()))),
        "passed");
    assert_says(storage_verdicts(claim_said(1, generation, items, ID_A)), "look; look");
    world_tear_down();
}

/* CLN-21, and a cleaner that dies in turn: its rows are its own. */
static void test_give_back(void)
{
    storage_set_up(NULL);
    guint64 generation = storage_register(1);
    const char *key = storage_create("data1");
    guint64 taken = storage_take(1, generation, key);
    guint64 touched = storage_row(key)->updated_us;
    assert_says(give_back(generation, key, taken, "x"),
                "wrong_state: volume data1: its work is not being cleaned");
    guint64 numbers[2];
    for (guint i = 0; i < G_N_ELEMENTS(numbers); i++) {
        generation = storage_register(1);
        numbers[i] = storage_number(
            claim_said(1, generation, json_make("[o]", claiming(key, version_of(key))), NULL),
            "serial");
    }
    g_assert_cmpuint(storage_row(key)->was_updated_us, ==, touched);
    assert_says(
        give_back(generation, key, numbers[0], "x"),
        "superseded: volume data1: claim 6 is not on record, 8 of cinder-volume node1@dir1 is");
    g_assert_cmpuint(
        storage_number(give_back(generation, key, numbers[1], "the disk fails"), "serial"), ==,
        serial());
    const struct worker *row = storage_row(key);
    g_assert_cmpuint(row->service_id, ==, 1);
    g_assert_cmpuint(row->updated_us, ==, touched);
    g_assert_cmpuint(row->was_service_id, ==, 0);
    g_assert_cmpuint(row->was_updated_us, ==, 0);
    g_assert_cmpuint(row->claim, ==, numbers[1]);
    g_autoptr(GPtrArray) told = config_list(world.wconf->committed, "decision");
    g_assert_cmpuint(told->len, ==, 1);
    g_assert_cmpstr(((const struct decision *)told->pdata[0])->summary, ==,
                    "cinder-volume node1@dir1 could not clean volume data1: the disk fails.");
    /* The next process finds it; what is said anew of it is told, what was said before is not. */
    static const char *const why[] = {"the disk fails", "the disk is full"};
    for (guint i = 0; i < G_N_ELEMENTS(why); i++) {
        generation = storage_register(1);
        guint64 claim = storage_number(
            claim_said(1, generation, json_make("[o]", claiming(key, version_of(key))), NULL),
            "serial");
        g_assert_cmpuint(storage_number(give_back(generation, key, claim, why[i]), "serial"), ==,
                         serial());
        g_assert_cmpuint(config_count(world.wconf->committed, "decision"), ==, 1 + i);
    }
    world_tear_down();
}

/* Frozen clock, and one that goes back: each touch is later than the one before. */
static void test_clock(void)
{
    storage_set_up(NULL);
    guint64 generation = storage_register(1);
    const char *key = storage_create("data1");
    guint64 claim = storage_take(1, generation, key);
    for (guint i = 0; i < 3; i++) {
        guint64 before = storage_row(key)->updated_us;
        if (i == 1)
            fake_set_clock(world.world, NODE1, -3600 * 1000);
        if (i == 2)
            storage_restart();
        g_assert_cmpuint(storage_number(step(generation, key, claim, false), "serial"), ==,
                         serial());
        g_assert_cmpuint(storage_row(key)->updated_us, >, before);
    }
    world_tear_down();
}

/* --- trash --- */

static void test_empty_trash(void)
{
    storage_set_up(changes_of(put("trash", DIR1 "/" VOLUME1 ".3", 1, object_trash(VOLUME1 ".3")),
                              put("trash", DIR2 "/" VOLUME1 ".3", 1,
                                  with(object_trash(VOLUME1 ".3"), "backend", json_string(DIR2))),
                              NULL));
    guint64 generation = storage_register(1);
    json_t *args = with(call_of(NODE1, generation), "names",
                        json_make("[s,s,s]", VOLUME1 ".3", VOLUME1 ".3", VOLUME2 ".3"));
    g_assert_cmpuint(
        storage_number(storage_ask(volumed[0], "empty_trash", json_deep_copy(args)), "serial"), ==,
        serial());
    g_assert_cmpuint(config_count(world.wconf->committed, "trash"), ==, 1);
    guint64 before = serial();
    g_assert_cmpuint(storage_number(storage_ask(volumed[0], "empty_trash", args), "serial"), ==,
                     before);
    g_assert_cmpuint(serial(), ==, before);
    world_tear_down();
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/wconf_work_take/take#CLN-08,SAF-51", test_take);
    g_test_add_func("/wconf_work_take/another-member#CLN-10", test_another_member);
    g_test_add_func("/wconf_work_take/refused#SAF-50,SAF-56", test_take_refused);
    g_test_add_func("/wconf_work_take/another-back-end", test_take_of_another_back_end);
    g_test_add_func("/wconf_work_take/node-leaves", test_node_leaves);
    g_test_add_func("/wconf_work_take/race#CLN-14,SAF-50", test_take_race);
    g_test_add_func("/wconf_work_take/repeated#SAF-04", test_take_repeated);
    g_test_add_func("/wconf_work_take/step#SAF-53", test_step);
    g_test_add_func("/wconf_work_take/step-refused#CLN-65,SAF-50", test_step_refused);
    g_test_add_func("/wconf_work/reset-names-the-row#SAF-50", test_reset_names_the_row);
    g_test_add_func("/wconf_work_take/claim#CLN-14,CLN-16,CLN-26", test_claim);
    g_test_add_func("/wconf_work_take/claim-refused#CLN-14,CLN-15", test_claim_refused);
    g_test_add_func("/wconf_work_take/claim-repeated#SAF-04", test_claim_repeated);
    g_test_add_func("/wconf_work_take/give-back#CLN-21", test_give_back);
    g_test_add_func("/wconf_work_take/clock#CLN-22,SAF-51", test_clock);
    g_test_add_func("/wconf_work_take/empty-trash#SAF-53", test_empty_trash);
    return g_test_run();
}
