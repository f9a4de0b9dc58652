/* Volumes of instances: who may say that a guest has given one up, what a node may open, and what
 * an attachment forbids (SAF-53, SAF-57, SAF-124). */
#include "core/config/resource.h"
#include "unit/core/world/storage_world.h"

#include <string.h>

#define ATTACHMENT "ffffffff-0000-4000-8000-000000000001"

static json_t *attached(const char *state, bool leaving)
{
    return with(object_volume1(), "attachments",
                json_make("[{s:s,s:s,s:i,s:s,s:i}]", "uuid", ATTACHMENT, "instance", WEB1, "slot",
                          30, "state", state, "leaving_us", leaving ? 5 : 0));
}

static void set_up(const char *state, bool leaving)
{
    storage_set_up(changes_of(put("volume", VOLUME1, 1, attached(state, leaving)), NULL));
}

static guint64 generation_of_web1(void)
{
    json_autoptr web1 = object_web1();
    return (guint64)json_integer_value(json_object_get(web1, "generation"));
}

static char *given_up(guint node, guint64 generation)
{
    return ask_wconf(&world, world.noded[node], "set_attachment",
                     json_make("{s:s,s:I,s:s,s:s}", "instance", WEB1, "generation",
                               (json_int_t)generation, "volume", VOLUME1, "attachment",
                               ATTACHMENT));
}

static bool is_attached(void)
{
    return storage_volume(ROW1)->attachments->len > 0;
}

static void test_given_up(void)
{
    guint64 generation = generation_of_web1();
    set_up("attached", true);
    /* Another node, another generation. */
    g_autofree char *other = given_up(1, generation);
    g_assert_null(strstr(other, "serial"));
    g_autofree char *older = given_up(0, generation - 1);
    g_assert_true(g_str_has_prefix(older, "superseded") || g_str_has_prefix(older, "wrong"));
    g_assert_true(is_attached());
    g_autofree char *said = given_up(0, generation);
    g_assert_nonnull(strstr(said, "\"serial\":"));
    g_assert_false(is_attached());
    /* The answer was lost. */
    g_autofree char *again = given_up(0, generation);
    g_assert_cmpstr(again, ==, said);
    world_tear_down();
}

/* Clients choose ids of images, and the end of an attachment is a commit of its id. */
static void test_image_of_its_id(void)
{
    set_up("attached", true);
    g_autofree char *said = storage_ask(
        storage_cli, "add_image",
        json_make("{s:s,s:s,s:s}", "commit_id", ATTACHMENT, "name", "tick", "disk_format", "raw"));
    g_assert_cmpstr(said, ==,
                    "already_exists: an image cannot have the id " ATTACHMENT
                    ": an attachment of volume data1 has it; choose another one");
    g_free(storage_ask(storage_cli, "change_volume",
                       json_make("{s:s,s:s,s:s}", "commit_id", ATTACHMENT, "volume", VOLUME1,
                                 "description", "by whoever may read ids")));
    g_free(given_up(0, generation_of_web1()));
    g_assert_false(is_attached());
    world_tear_down();
}

static char *open_by(guint node, guint64 generation, const char *clients)
{
    return ask_wconf(&world, world.noded[node], "set_attachment",
                     json_make("{s:s,s:I,s:s,s:s,s:s}", "instance", WEB1, "generation",
                               (json_int_t)generation, "volume", VOLUME1, "attachment", ATTACHMENT,
                               "clients", clients));
}

static const char *clients(void)
{
    return ((const struct attachment *)storage_volume(ROW1)->attachments->pdata[0])->clients;
}

/* SAF-58: by its node alone, of this generation; said again it is what was said last. */
static void test_clients(void)
{
    guint64 generation = generation_of_web1();
    set_up("attached", false);
    g_autofree char *other = open_by(1, generation, "192.0.2.1:0/1");
    g_assert_null(strstr(other, "serial"));
    g_autofree char *older = open_by(0, generation - 1, "192.0.2.1:0/1");
    g_assert_null(strstr(older, "serial"));
    g_assert_cmpstr(clients(), ==, "");
    g_autofree char *said = open_by(0, generation, "192.0.2.1:0/1,192.0.2.1:0/2");
    g_assert_nonnull(strstr(said, "\"serial\":"));
    g_assert_cmpstr(clients(), ==, "192.0.2.1:0/1,192.0.2.1:0/2");
    g_autofree char *again = open_by(0, generation, "192.0.2.1:0/3");
    g_assert_nonnull(strstr(again, "\"serial\":"));
    g_assert_cmpstr(clients(), ==, "192.0.2.1:0/3");
    g_assert_true(is_attached());
    world_tear_down();
}

/* The target has it open already, and nobody would take it from there. */
static void test_in_a_migration(void)
{
    json_t *moving = with(with(with(object_web1(), "migration", json_string(ATTACHMENT)),
                               "migration_node", json_string(NODE2)),
                          "task_state", json_string("migrating"));
    storage_set_up(changes_of(put("instance", WEB1, 1, moving),
                              put("volume", VOLUME1, 1, attached("attached", true)), NULL));
    g_autofree char *said = given_up(0, generation_of_web1());
    g_assert_cmpstr(
        said, ==,
        "resource_not_available: instance \"web1\" is being migrated; its volumes are its own");
    g_assert_true(is_attached());
    world_tear_down();
}

static void test_nobody_has_asked(void)
{
    set_up("attached", false);
    assert_says(given_up(0, generation_of_web1()),
                "unsafe: volume data1: nobody has asked for it to be given up");
    g_assert_true(is_attached());
    world_tear_down();
}

static char *confirmed(guint node, guint64 generation)
{
    g_autofree char *said =
        ask_wconf(&world, world.noded[node], "confirm",
                  json_make("{s:[{s:s,s:s,s:I,s:s}]}", "items", "role", "attach", "instance", WEB1,
                            "generation", (json_int_t)generation, "replica", ATTACHMENT));
    return g_strdup(strstr(said, "\"answer\":\"confirmed\"") ? "confirmed" : "refused");
}

/* What is being detached may be known to be gone already. */
static void test_confirm(void)
{
    static const char *const states[][2] = {{"reserved", "refused"},
                                            {"attaching", "confirmed"},
                                            {"attached", "confirmed"},
                                            {"detaching", "refused"}};
    guint64 generation = generation_of_web1();
    for (guint i = 0; i < G_N_ELEMENTS(states); i++) {
        set_up(states[i][0], false);
        assert_says(confirmed(0, generation), states[i][1]);
        assert_says(confirmed(1, generation), "refused");
        assert_says(confirmed(0, generation + 1), "refused");
        world_tear_down();
    }
    storage_set_up(changes_of(put("volume", VOLUME1, 1, object_volume1()), NULL));
    assert_says(confirmed(0, generation), "refused");
    world_tear_down();
    /* A person has said that its node is dead. */
    storage_set_up(changes_of(
        put("volume", VOLUME1, 1, attached("attached", false)),
        put("node", NODE1, 1, with(object_node(NODE1), "offline", json_boolean(true))), NULL));
    assert_says(confirmed(0, generation), "refused");
    world_tear_down();
}

static void test_forbids(void)
{
    const char *sentence = "wrong_state: volume data1 is attached to web1; detach it first";
    set_up("attached", false);
    assert_says(storage_ask(storage_cli, "accept_work",
                            json_make("{s:s,s:s,s:s}", "resource_type", "Volume", "operation",
                                      "delete-volume", "resource", "data1")),
                sentence);
    assert_says(storage_ask(storage_cli, "reset_state",
                            json_make("{s:s,s:s,s:s}", "resource_type", "Volume", "resource",
                                      "data1", "status", "error")),
                sentence);
    world_tear_down();
}

static char *ask_snapshot(const char *name)
{
    return storage_ask(storage_cli, "accept_work",
                       json_make("{s:s,s:s,s:s,s:s,s:s}", "resource_type", "Snapshot", "operation",
                                 "create-snapshot", "source", "data1", "name", name, "commit_id",
                                 VOLUME2));
}

static char *point_confirmed(guint node, guint64 generation, guint64 claim)
{
    g_autofree char *said =
        ask_wconf(&world, world.noded[node], "confirm",
                  json_make("{s:[{s:s,s:s,s:I,s:s,s:I}]}", "items", "role", "point", "instance",
                            WEB1, "generation", (json_int_t)generation, "replica", ATTACHMENT,
                            "claim", (json_int_t)claim));
    return g_strdup(strstr(said, "\"answer\":\"confirmed\"") ? "confirmed" : "refused");
}

#define SNAPSHOT_ROW "Snapshot/" VOLUME2

static const struct snapshot *snapshot_of(void)
{
    return config_get(wconf_config(world.wconf), "snapshot", VOLUME2, NULL);
}

/* Under its guest one copy is made at a time, and only for the claim that has it. */
static void test_copies(void)
{
    guint64 generation = generation_of_web1();
    set_up("attached", false);
    guint64 member = storage_register(1);
    g_free(ask_snapshot("before"));
    guint64 claim = storage_take(1, member, SNAPSHOT_ROW);
    assert_says(point_confirmed(0, generation, claim), "confirmed");
    assert_says(point_confirmed(0, generation, claim - 1), "refused");
    assert_says(point_confirmed(0, generation, 0), "refused");
    assert_says(point_confirmed(1, generation, claim), "refused");
    assert_says(point_confirmed(0, generation + 1, claim), "refused");
    assert_says(storage_ask(storage_cli, "accept_work",
                            json_make("{s:s,s:s,s:s}", "resource_type", "Snapshot", "operation",
                                      "create-snapshot", "source", "data1")),
                "wrong_state: volume data1 is being read by snapshot before; wait, or reset that");
    assert_says(storage_ask(storage_cli, "accept_work",
                            json_make("{s:s,s:s,s:s,s:i}", "resource_type", "Volume", "operation",
                                      "extend-volume", "resource", "data1", "size", 4)),
                "wrong_state: volume data1 is being read by snapshot before; wait, or reset that");
    world_tear_down();
}

static void next_generation(void)
{
    guint64 version = 0;
    config_get(wconf_config(world.wconf), "instance", WEB1, &version);
    assert_says(job_locks(&world, 17, "x instance/web1", false), GRANTED);
    json_t *stale =
        with(with(object_replica1(), "state", json_string("stale")), "sync", json_integer(8));
    json_t *later =
        with(with(object_web1(), "generation", json_integer((json_int_t)generation_of_web1() + 1)),
             "holder", json_string(""));
    g_autofree char *said = job_commit(&world, 17,
                                       changes_of(put("instance", WEB1, version, later),
                                                  put("replica", REPLICA1, 1, stale), NULL));
    if (!strstr(said, "serial"))
        g_error("%s", said);
}

/* A copy that is no point in time counts only if its guest had no life meanwhile (SAF-120): not if
 * it may run, or if it did, or did not, when the copy was accepted. */
static void test_copy_counts(void)
{
    static const struct {
        bool point, runs, moves;
        const char *status;
    } cases[] = {{false, true, false, "error"},      {true, true, false, "available"},
                 {false, true, true, "error"},       {true, true, true, "available"},
                 {false, false, false, "available"}, {true, false, false, "available"}};
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        set_up("attached", false);
        guint64 member = storage_register(1);
        if (!cases[i].runs)
            next_generation();
        g_free(ask_snapshot("before"));
        guint64 claim = storage_take(1, member, SNAPSHOT_ROW);
        if (cases[i].moves)
            next_generation();
        g_autofree char *data = g_strdup_printf(VOLUME2 ".%" G_GUINT64_FORMAT, claim);
        json_t *item = with(with(storage_end(SNAPSHOT_ROW, claim), "data", json_string(data)),
                            "point", json_boolean(cases[i].point));
        assert_says(storage_end_all(1, member, json_make("[o]", item)), "passed");
        g_assert_cmpstr(resource_read(RESOURCE_SNAPSHOT, snapshot_of()).status, ==,
                        cases[i].status);
        g_assert_true(!strcmp(cases[i].status, "available") ||
                      !strcmp(snapshot_of()->status_why, "volume data1 was written meanwhile"));
        world_tear_down();
    }
}

/* It may become larger under its guest, which may begin anew meanwhile, or give it up; nobody else
 * gets it. */
static void test_extend(void)
{
    guint64 generation = generation_of_web1();
    set_up("attached", false);
    guint64 service = storage_register(1);
    storage_accept("extend-volume", "data1", 9);
    guint64 claim = storage_take(1, service, ROW1);
    assert_says(confirmed(0, generation), "confirmed");
    assert_says(
        storage_end_all(1, service,
                        json_make("[o]", with(storage_end(ROW1, claim), "size", json_integer(9)))),
        "passed");
    g_assert_cmpuint(storage_volume(ROW1)->size, ==, 9);
    g_assert_true(is_attached());
    storage_accept("extend-volume", "data1", 10);
    claim = storage_take(1, service, ROW1);
    json_t *failed =
        with(with(storage_end(ROW1, claim), "failed", json_true()), "why", json_string("full"));
    assert_says(storage_end_all(1, service, json_make("[o]", failed)), "passed");
    g_assert_cmpint(storage_volume(ROW1)->status, ==, VOLUME_ERROR_EXTENDING);
    assert_says(confirmed(0, generation), "confirmed");
    storage_accept("extend-volume", "data1", 10); /* again, where no state can be reset */
    world_tear_down();
    set_up("attached", true);
    storage_accept("extend-volume", "data1", 9);
    g_autofree char *said = given_up(0, generation);
    g_assert_nonnull(strstr(said, "\"serial\":"));
    g_assert_false(is_attached());
    world_tear_down();
}

/* Whose a volume is only he changes who has the instance, and nothing else of it. */
static void test_jobs(void)
{
    set_up("attached", false);
    g_autofree char *bare =
        job_commit(&world, 17, changes_of(put("volume", VOLUME1, 1, object_volume1()), NULL));
    g_assert_nonnull(strstr(bare, "volume data1 (" VOLUME1 "): job 17"));
    g_assert_nonnull(strstr(bare, "does not hold the lock instance/web1 exclusively"));
    assert_says(job_locks(&world, 17, "x instance/web1", false), GRANTED);
    g_autofree char *guarded =
        job_commit(&world, 17,
                   changes_of(put("volume", VOLUME1, 1,
                                  with(attached("attached", false), "size", json_integer(9))),
                              NULL));
    g_assert_nonnull(strstr(guarded, "size: changes only by the methods of work (SAF-50)"));
    g_autofree char *said =
        job_commit(&world, 17, changes_of(put("volume", VOLUME1, 1, object_volume1()), NULL));
    g_assert_nonnull(strstr(said, "serial"));
    world_tear_down();
}

static GPtrArray *without_web1(void)
{
    return changes_of(del("instance", WEB1, 1), del("replica", REPLICA1, 1),
                      put("removed", WEB1, 0,
                          json_make("{s:s,s:s,s:I}", "uuid", WEB1, "name", "web1", "generation",
                                    (json_int_t)generation_of_web1() + 1)),
                      NULL);
}

/* In the commit of its instance, by who has seen the exits and says so. */
static void test_removed(void)
{
    set_up("attached", false);
    assert_says(job_locks(&world, 17, "x instance/web1", false), GRANTED);
    g_autofree char *refused = job_commit(&world, 17, without_web1());
    g_assert_nonnull(strstr(refused, "is deleted, and volume data1 stays attached to it (SAF-57)"));
    g_assert_true(is_attached());
    GPtrArray *gone = without_web1();
    g_ptr_array_add(gone, put("volume", VOLUME1, 1, object_volume1()));
    g_autofree char *said = job_commit(&world, 17, gone);
    g_assert_nonnull(strstr(said, "serial"));
    g_assert_false(is_attached());
    g_assert_cmpint(storage_volume(ROW1)->status, ==, VOLUME_AVAILABLE);
    world_tear_down();
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/wconf/attachment/given-up#SAF-124", test_given_up);
    g_test_add_func("/wconf/attachment/image-of-its-id#SAF-124", test_image_of_its_id);
    g_test_add_func("/wconf/attachment/who-has-it-open#SAF-58", test_clients);
    g_test_add_func("/wconf/attachment/in-a-migration#SAF-57,SAF-124", test_in_a_migration);
    g_test_add_func("/wconf/attachment/nobody-has-asked#SAF-124", test_nobody_has_asked);
    g_test_add_func("/wconf/attachment/confirm#SAF-57", test_confirm);
    g_test_add_func("/wconf/attachment/forbids#SAF-53", test_forbids);
    g_test_add_func("/wconf/attachment/copied-under-its-guest#SAF-59", test_copies);
    g_test_add_func("/wconf/attachment/copy-counts#SAF-120", test_copy_counts);
    g_test_add_func("/wconf/attachment/extend#SAF-53,SAF-57", test_extend);
    g_test_add_func("/wconf/attachment/jobs#SAF-50,SAF-57", test_jobs);
    g_test_add_func("/wconf/attachment/removed#SAF-57", test_removed);
    return g_test_run();
}
