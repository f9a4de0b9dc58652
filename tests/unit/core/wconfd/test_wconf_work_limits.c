/* What a request is refused for that is not in the resource itself: no room on its back end, a name
 * that another one has, a type that is for another place, a quota. */
#include <string.h>

#include "core/wconfd/wconf_private.h"
#include "proto/storage/volume_driver.h"
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

#define assert_done(said)                                                                          \
    do {                                                                                           \
        guint64 next_ = serial() + 1;                                                              \
        g_assert_cmpuint(storage_number(said, "serial"), ==, next_);                               \
    } while (0)

/* --- room --- */

/* Node N's member of dir1 says what it has. */
static void beat(guint node, guint64 of, guint free_gib, guint total_gib)
{
    json_t *one =
        json_make("{s:s,s:i,s:i,s:i}", "service", service_key(node == 1 ? NODE1 : NODE2),
                  "generation", of, "free_mib", free_gib * 1024, "total_mib", total_gib * 1024);
    assert_says(storage_ask(volumed[node - 1], "beat", json_make("{s:[o]}", "services", one)),
                "{\"measure\":[],\"over\":[],\"spaces\":[]}");
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
    /* What is only read has no row. */
    g_autoptr(GPtrArray) rows = config_list(world.wconf->committed, "worker");
    g_assert_cmpuint(rows->len, ==, 1);
    g_assert_cmpint(((const struct worker *)rows->pdata[0])->resource_type, ==, RESOURCE_VOLUME);
    world_tear_down();
}

static json_t *restoring(const char *backup, const char *what, const char *name)
{
    return json_make("{s:s,s:s,s:s,s:s}", "resource_type", "Backup", "operation", "restore-backup",
                     "resource", backup, what, name);
}

/* What is restored is made beside what is there: each time anew, over a volume too. */
static void test_room_of_restores(void)
{
    storage_set_up(changes_of(put("volume", VOLUME1, 1, object_volume1()),
                              put("backup", ID_A, 1, object_backup(ID_A, 1)),
                              put("backup", ID_B, 1, object_backup(ID_B, 1)),
                              put("backup", ID_C, 1, object_backup(ID_C, 1)), NULL));
    generation = storage_register(1);
    beat(1, generation, 10, 10);
    assert_accepts(with(restoring(ID_A, "name", "data2"), "size", json_integer(5)));
    assert_says(accept(with(restoring(ID_B, "name", "data3"), "size", json_integer(4))),
                LEFT("3 GiB", "4", "10", "7"));
    assert_accepts(restoring(ID_B, "target", "data1"));
    assert_says(accept(restoring(ID_C, "name", "data3")), LEFT("1 GiB", "2", "10", "9"));
    world_tear_down();
}

static void test_room_of_restores_over(void)
{
    storage_set_up(changes_of(put("volume", VOLUME1, 1, object_volume1()),
                              put("backup", ID_A, 1, object_backup(ID_A, 1)), NULL));
    generation = storage_register(1);
    assert_accepts(creation("data2", 7));
    beat(1, generation, 10, 10);
    assert_says(accept(restoring(ID_A, "target", "data1")), LEFT("1 GiB", "2", "10", "9"));
    world_tear_down();
}

static json_t *attached(const char *uuid, const char *name, guint slot)
{
    g_autofree char *data = volume_data_name(uuid, 7);
    json_t *volume = with(object_volume1(), "uuid", json_string(uuid));
    json_object_set_new(volume, "data", json_string(data));
    return with(with(volume, "name", json_string(name)), "attachments",
                json_make("[{s:s,s:s,s:i,s:s}]", "uuid", uuid, "instance", WEB1, "slot", slot,
                          "state", "attached"));
}

static json_t *backing_up(const char *volume)
{
    return json_make("{s:s,s:s,s:s,s:s}", "resource_type", "Backup", "operation", "back-up-volume",
                     "name", volume + 10, "source", volume);
}

/* #SAF-27: what a guest may write to is backed up of a copy beside it. */
static void test_room_of_points(void)
{
    for (guint runs = 0; runs < 2; runs++) {
        json_t *web = object_web1();
        if (!runs)
            json_object_set_new(web, "holder", json_string(""));
        storage_set_up(changes_of(put("instance", WEB1, 1, web),
                                  put("volume", VOLUME1, 1, attached(VOLUME1, "data1", 30)),
                                  put("volume", VOLUME2, 1, attached(VOLUME2, "data2", 29)), NULL));
        generation = storage_register(1);
        beat(1, generation, 10, 10);
        assert_accepts(creation("data3", 2));
        assert_accepts(backing_up(VOLUME1));
        if (runs)
            assert_says(accept(backing_up(VOLUME2)), LEFT("0 MiB", "2", "10", "10"));
        else
            assert_accepts(backing_up(VOLUME2));
        world_tear_down();
    }
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

/* --- names --- */

static json_t *unique(json_t *args)
{
    return with(args, "unique_name", json_true());
}

static char *rename_to(const char *kind, const char *from, const char *to, bool alone)
{
    g_autofree char *method = g_strdup_printf("change_%s", kind);
    json_t *args = json_make("{s:s,s:s,s:b}", kind, from, "name", to, "unique_name", alone);
    return storage_ask(storage_cli, method, args);
}

/* Who asks for it gets a name that nobody else has, of the same kind. */
static void test_names(void)
{
    storage_set_up(changes_of(put("volume", VOLUME1, 1, object_volume1()),
                              put("snapshot", VOLUME2, 1, object_snapshot2()), NULL));
    guint64 before = serial();
    assert_says(accept(unique(creation("data1", 1))),
                "already_exists: a volume data1 exists already: " VOLUME1 "; choose another name");
    assert_says(accept(unique(snapping("before", "data1"))),
                "already_exists: a snapshot before exists already: " VOLUME2
                "; choose another name");
    g_assert_cmpuint(serial(), ==, before);
    assert_accepts(with(unique(creation("before", 1)), "commit_id", json_string(ID_A)));
    assert_says(rename_to("volume", "before", "data1", true),
                "already_exists: a volume data1 exists already: " VOLUME1 "; choose another name");
    before = serial();
    g_assert_cmpuint(storage_number(rename_to("volume", "data1", "data1", true), "serial"), ==,
                     before + 1); /* its own */
    g_assert_cmpuint(storage_number(rename_to("snapshot", "before", "first", true), "serial"), ==,
                     before + 2);
    g_assert_cmpuint(storage_number(rename_to("volume", "before", "data1", false), "serial"), ==,
                     before + 3);
    world_tear_down();
}

/* Others may have volumes of one name, or without any; all of them are told. */
static void test_names_of_several(void)
{
    storage_set_up(changes_of(put("volume", VOLUME1, 1, object_volume1()), NULL));
    assert_accepts(with(creation("data1", 1), "commit_id", json_string(ID_A)));
    assert_accepts(unique(creation("", 1)));
    assert_accepts(unique(creation("", 1)));
    assert_says(accept(unique(creation("data1", 1))),
                "already_exists: a volume data1 exists already: " ID_A ", " VOLUME1
                "; choose another name");
    for (guint i = 0; i < 7; i++)
        assert_accepts(creation("data1", 1));
    g_autofree char *said = accept(unique(creation("data1", 1)));
    g_assert_nonnull(strstr(said, " and 1 more; choose another name"));
    world_tear_down();
}

/* The same request again is about the same volume. */
static void test_name_of_repeated(void)
{
    storage_set_up(NULL);
    json_t *args = with(unique(creation("data1", 1)), "commit_id", json_string(ID_A));
    assert_accepts(json_deep_copy(args));
    assert_says(accept(args), "{\"resource\":\"" ID_A "\",\"serial\":2}");
    world_tear_down();
}

/* --- types --- */

static json_t *typed(json_t *args, const char *type)
{
    return with(args, "volume_type", json_string(type));
}

static json_t *anywhere(json_t *args)
{
    return with(args, "backend", json_string(""));
}

static const struct volume *made_as(json_t *args, const char *uuid)
{
    assert_accepts(with(args, "commit_id", json_string(uuid)));
    return config_get(world.wconf->committed, "volume", uuid, NULL);
}

static void test_types(void)
{
    storage_set_up(changes_of(put("volume_type", TYPE1, 1, object_type("volume_backend_name=dir2")),
                              put("volume", VOLUME1, 1, object_volume1()),
                              put("snapshot", VOLUME2, 1, object_snapshot2()), NULL));
    assert_says(accept(typed(creation("a", 1), "fsat")),
                "unknown_entity: volume_type \"fsat\" does not exist");
    assert_says(accept(typed(creation("a", 1), "fast")),
                "wrong_input: volume_type: fast is not for back end dir1, by its extra specs");
    assert_says(accept(typed(snapping("b", "data1"), "fast")),
                "wrong_input: volume_type: create-snapshot takes none");
    assert_says(accept(typed(wish("delete-volume", "data1", 0), "fast")),
                "wrong_input: volume_type: delete-volume takes none");
    assert_says(
        accept(typed(with(anywhere(creation("a", 2)), "source", json_string("before")), "fast")),
        "wrong_input: volume_type: fast is not for back end dir1, by its extra specs");
    /* The only one that is for it need not be named. */
    const struct volume *volume = made_as(typed(anywhere(creation("a", 1)), TYPE1), ID_A);
    g_assert_cmpstr(volume->backend, ==, DIR2);
    g_assert_cmpstr(volume->volume_type, ==, TYPE1);
    world_tear_down();
}

static char *set_default_type(const char *name)
{
    guint64 version = 0;
    const char *uuid = config_cluster(wconf_config(world.wconf))->uuid;
    config_get(wconf_config(world.wconf), "cluster", uuid, &version);
    json_t *object = cluster_to_json(config_cluster(wconf_config(world.wconf)));
    json_object_set_new(object, "default_volume_type", json_string(name));
    g_free(job_locks(&world, 17, "x cluster/BGL", false));
    return job_change(&world, 17, "change_cluster",
                      changes_of(put("cluster", uuid, version, object), NULL));
}

/* What names no type has the cluster's, unless it is made of something. */
static void test_default_type(void)
{
    storage_set_up(changes_of(put("volume_type", TYPE1, 1, object_type(NULL)),
                              put("volume", VOLUME1, 1, object_volume1()),
                              put("snapshot", VOLUME2, 1, object_snapshot2()), NULL));
    assert_done(set_default_type("fast"));
    g_assert_cmpstr(made_as(creation("a", 1), ID_A)->volume_type, ==, TYPE1);
    json_t *copy = with(anywhere(creation("b", 2)), "source", json_string("before"));
    g_assert_cmpstr(made_as(copy, ID_B)->volume_type, ==, "");
    assert_says(
        storage_ask(storage_cli, "remove_volume_type", json_make("{s:s}", "volume_type", "fast")),
        "wrong_state: volume type fast is the default one; choose another one before: "
        "fettle cluster modify --default-volume-type TYPE, or none");
    assert_says(set_default_type("slow"), "wrong_input: cluster c1 (" CLUSTER
                                          "): default_volume_type: there is no type \"slow\"; "
                                          "see: fettle volume-type list");
    assert_done(set_default_type(TYPE1));
    assert_done(set_default_type(""));
    g_assert_cmpstr(made_as(creation("c", 1), ID_C)->volume_type, ==, "");
    world_tear_down();

    json_t *cluster = json_make("{s:s,s:s,s:s,s:s}", "uuid", CLUSTER, "name", "c1", "master_node",
                                NODE1, "default_volume_type", "slow"); /* an older version's */
    storage_set_up(changes_of(put("cluster", CLUSTER, 1, cluster), NULL));
    assert_done(set_default_type("slow"));
    assert_says(accept(creation("c", 1)),
                "unknown_entity: name a type, as the default one cannot be had (fettle cluster "
                "modify --default-volume-type): volume_type \"slow\" does not exist");
    world_tear_down();
}

/* #CLN-25: with a type that no back end has it is a scheduler's to say so. */
static void test_type_of_none(void)
{
    storage_set_up(changes_of(put("volume_type", TYPE1, 1, object_type("disks=new")), NULL));
    g_assert_cmpstr(made_as(typed(anywhere(creation("a", 1)), "fast"), ID_A)->backend, ==, "");
    world_tear_down();
}

/* A copy has the type of what it is of. */
static void test_type_of_copies(void)
{
    storage_set_up(changes_of(
        put("volume_type", TYPE1, 1, object_type(NULL)),
        put("volume", VOLUME1, 1, with(object_volume1(), "volume_type", json_string(TYPE1))),
        put("snapshot", VOLUME2, 1, object_snapshot2()), NULL));
    json_t *args = with(anywhere(creation("a", 2)), "source", json_string("before"));
    g_assert_cmpstr(made_as(args, ID_A)->volume_type, ==, TYPE1);
    world_tear_down();
}

static char *type_call(const char *method, const char *more)
{
    return storage_ask(storage_cli, method, json_parse_limited(more, strlen(more), 1000, NULL));
}

static const struct volume_type *type_now(const char *name)
{
    return config_find(world.wconf->committed, "volume_type", name, NULL);
}

static void test_types_are_made(void)
{
    storage_set_up(NULL);
    assert_done(type_call("add_volume_type",
                          "{\"name\":\"fast\",\"extra_specs\":[\"volume_backend_name=dir2\"]}"));
    assert_says(type_call("add_volume_type", "{\"name\":\"fast\"}"),
                "already_exists: volume type \"fast\" exists already");
    assert_says(type_call("add_volume_type", "{\"name\":\"" ID_A "\"}"),
                "wrong_input: name: it is a UUID; choose another one");
    assert_done(type_call("add_volume_type",
                          "{\"name\":\"own\",\"public\":false,\"projects\":[\"acme\"]}"));
    /* Whose it is not does not see it. */
    json_t *other = with(typed(creation("a", 1), "own"), "project", json_string("evil"));
    assert_says(accept(other), "unknown_entity: volume_type \"own\" does not exist");
    assert_accepts(with(typed(creation("a", 1), "own"), "project", json_string("acme")));
    assert_says(
        type_call("change_volume_type", "{\"volume_type\":\"own\",\"extra_specs\":[\"a=b\"]}"),
        "wrong_state: volume type own: its extra specs stay while a volume has it, as a "
        "does; make another type");
    assert_done(type_call("change_volume_type",
                          "{\"volume_type\":\"own\",\"name\":\"mine\",\"add_projects\":[\"x\"],"
                          "\"remove_projects\":[\"acme\"]}"));
    g_assert_cmpuint(type_now("mine")->projects->len, ==, 1);
    assert_done(type_call("change_volume_type",
                          "{\"volume_type\":\"fast\",\"extra_specs\":[\"volume_backend_name=\","
                          "\"x:y=1\"]}"));
    g_assert_cmpuint(type_now("fast")->extra_specs->len, ==, 1);
    g_assert_cmpstr(type_now("fast")->extra_specs->pdata[0], ==, "x:y=1");
    g_autofree char *used = type_call("remove_volume_type", "{\"volume_type\":\"mine\"}");
    g_assert_nonnull(strstr(used, "cannot be deleted, volume a refers to it"));
    assert_done(type_call("remove_volume_type", "{\"volume_type\":\"fast\"}"));
    assert_says(type_call("remove_volume_type", "{\"volume_type\":\"fast\"}"),
                "unknown_entity: volume_type \"fast\" does not exist");
    world_tear_down();
}

static void test_bad_types(void)
{
    storage_set_up(NULL);
    static const struct {
        const char *more, *said;
    } cases[] = {
        {"{\"name\":\"a\",\"extra_specs\":[\"b\"]}", "extra_specs: \"b\" is not KEY=VALUE"},
        {"{\"name\":\"a\",\"extra_specs\":[\"=b\"]}", "extra_specs: \"=b\" is not KEY=VALUE"},
        {"{\"name\":\"a\",\"extra_specs\":[\"b=\"]}", "extra_specs: \"b=\" is not KEY=VALUE"},
        {"{\"name\":\"a\",\"extra_specs\":[\"b=1\",\"b=2\"]}", "extra_specs: b is given twice"},
        {"{\"name\":\"a\",\"projects\":[\"p\"]}", "projects: each may use it, as it is public"},
        {"{\"name\":\"\"}", "name: "},
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *said = type_call("add_volume_type", cases[i].more);
        if (!strstr(said, cases[i].said))
            g_error("%s: %s", cases[i].said, said);
    }
    g_assert_cmpuint(config_count(world.wconf->committed, "volume_type"), ==, 0);
    world_tear_down();
}

/* --- users of REST, which are put on record in the same way --- */

static void test_rapi_users(void)
{
    static const char good[] = "{\"name\":\"alice\",\"hash\":\"$y$one\",\"write\":true}";
    const struct {
        const char *more, *said;
    } bad[] = {
        {"{\"name\":\"a b\",\"hash\":\"$y$x\"}", "name: may have no blank"},
        {"{\"name\":\"a:b\",\"hash\":\"$y$x\"}", "name: may have no blank"},
        {"{\"name\":\"#a\",\"hash\":\"$y$x\"}", "name: may have no blank"},
        {"{\"name\":\"a\",\"hash\":\"secret\"}", "hash: must be a password as crypt(3) keeps one"},
        {"{\"name\":\"\",\"hash\":\"$y$x\"}", "name: "},
    };
    storage_set_up(NULL);
    for (guint i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autofree char *said = type_call("add_rapi_user", bad[i].more);
        if (!strstr(said, bad[i].said))
            g_error("%s: %s", bad[i].said, said);
    }
    g_assert_cmpuint(config_count(world.wconf->committed, "rapi_user"), ==, 0);
    assert_done(type_call("add_rapi_user", good));
    assert_says(type_call("add_rapi_user", good),
                "already_exists: REST user \"alice\" exists already; change it with: fettle rapi "
                "user modify");
    const struct rapi_user *alice = config_find(world.wconf->committed, "rapi_user", "alice", NULL);
    g_assert_true(alice->write);
    assert_done(type_call("change_rapi_user", "{\"user\":\"alice\",\"write\":0}"));
    alice = config_find(world.wconf->committed, "rapi_user", "alice", NULL);
    g_assert_false(alice->write);
    g_assert_cmpstr(alice->hash, ==, "$y$one");
    assert_done(type_call("change_rapi_user", "{\"user\":\"alice\",\"hash\":\"$y$two\"}"));
    alice = config_find(world.wconf->committed, "rapi_user", "alice", NULL);
    g_assert_false(alice->write);
    g_assert_cmpstr(alice->hash, ==, "$y$two");
    assert_says(type_call("change_rapi_user", "{\"user\":\"bob\",\"write\":1}"),
                "unknown_entity: rapi_user \"bob\" does not exist");
    assert_done(type_call("remove_rapi_user", "{\"user\":\"alice\"}"));
    assert_says(type_call("remove_rapi_user", "{\"user\":\"alice\"}"),
                "unknown_entity: rapi_user \"alice\" does not exist");
    world_tear_down();
}

/* --- webhooks, likewise --- */

static void test_webhooks(void)
{
#define TO "\"url\":\"https://a.example/x\",\"secret\":\"s\""
    static const char good[] = "{\"name\":\"pager\"," TO ",\"events\":[\"job.*\"]}";
    const struct {
        const char *more, *said;
    } bad[] = {
        {"{\"name\":\"a b\"," TO ",\"events\":[\"*\"]}", "name: may have no blank"},
        {"{\"name\":\"-a\"," TO ",\"events\":[\"*\"]}", "name: may have no blank"},
        {"{\"name\":\"a\"," TO ",\"events\":[\"jobs\"]}", "events: there is no event \"jobs\"; "},
        {"{\"name\":\"a\"," TO ",\"events\":[]}", "events: must have at least 1 elements"},
        {"{\"name\":\"a\",\"url\":\"ftp://a\",\"secret\":\"s\",\"events\":[\"*\"]}",
         "url: must begin with https:// or http://"},
    };
    storage_set_up(NULL);
    for (guint i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autofree char *said = type_call("add_webhook", bad[i].more);
        if (!strstr(said, bad[i].said))
            g_error("%s: %s", bad[i].said, said);
    }
    assert_done(type_call("add_webhook", good));
    assert_says(type_call("add_webhook", good),
                "already_exists: webhook \"pager\" exists already; change it with: fettle webhook "
                "modify");
    const struct webhook *pager = config_find(world.wconf->committed, "webhook", "pager", NULL);
    guint64 version = 0;
    config_get(world.wconf->committed, "webhook", pager->uuid, &version);
    g_assert_cmpuint(pager->begins, ==, version); /* what is on record by then is not sent */
    assert_done(type_call("change_webhook", "{\"webhook\":\"pager\",\"pause\":1,\"test\":true}"));
    pager = config_find(world.wconf->committed, "webhook", "pager", NULL);
    g_assert_true(pager->paused);
    g_assert_cmpuint(strlen(pager->test), ==, 36);
    g_assert_cmpuint(pager->round, ==, 0);
    g_assert_cmpstr(pager->secret, ==, "s");
    assert_done(type_call("change_webhook", "{\"webhook\":\"pager\",\"pause\":0}"));
    assert_done(type_call("change_webhook", "{\"webhook\":\"pager\",\"secret\":\"t\"}"));
    assert_done(type_call("change_webhook", "{\"webhook\":\"pager\",\"events\":[\"*\"]}"));
    pager = config_find(world.wconf->committed, "webhook", "pager", NULL);
    g_assert_false(pager->paused);
    g_assert_cmpuint(pager->round, ==, 2);
    g_assert_cmpstr(pager->secret, ==, "t");
    g_assert_cmpuint(pager->events->len, ==, 1);
    for (guint i = 1; i < LIMIT_WEBHOOKS; i++) {
        g_autofree char *more = g_strdup_printf("{\"name\":\"n%u\"," TO ",\"events\":[\"*\"]}", i);
        assert_done(type_call("add_webhook", more));
    }
    g_autofree char *full =
        type_call("add_webhook", "{\"name\":\"full\"," TO ",\"events\":[\"*\"]}");
    g_assert_nonnull(strstr(full, "there are 32 webhooks already"));
    assert_done(type_call("remove_webhook", "{\"webhook\":\"pager\"}"));
    assert_says(type_call("remove_webhook", "{\"webhook\":\"pager\"}"),
                "unknown_entity: webhook \"pager\" does not exist");
    world_tear_down();
#undef TO
}

/* --- quota --- */

static json_t *of_acme(json_t *args)
{
    return with(args, "project", json_string("acme"));
}

static json_t *within(json_t *args, int volumes, int snapshots, int gigabytes)
{
    return with(args, "quota",
                json_make("{s:i,s:i,s:i}", "volumes", volumes, "snapshots", snapshots, "gigabytes",
                          gigabytes));
}

static void test_quota(void)
{
    storage_set_up(changes_of(put("volume", VOLUME1, 1, of_acme(object_volume1())), NULL));
    /* Two requests that are accepted one after the other count together. */
    assert_accepts(within(of_acme(creation("data2", 1)), 2, -1, 3));
    assert_says(accept(within(of_acme(creation("data3", 1)), 2, -1, -1)),
                "limit_exceeded: VolumeLimitExceeded: Maximum number of volumes allowed (2) "
                "exceeded for quota 'volumes'.");
    assert_says(
        accept(within(of_acme(creation("data3", 2)), -1, -1, 4)),
        "limit_exceeded: VolumeSizeExceedsAvailableQuota: Requested volume or snapshot exceeds "
        "allowed gigabytes quota. Requested 2G, quota is 4G and 3G has been consumed.");
    assert_says(accept(within(of_acme(snapping("s", "data1")), 0, 0, -1)),
                "limit_exceeded: SnapshotLimitExceeded: Maximum number of snapshots allowed (0) "
                "exceeded for quota 'snapshots'.");
    assert_says(
        accept(within(wish("extend-volume", "data1", 5), 0, 0, 5)),
        "limit_exceeded: VolumeSizeExceedsAvailableQuota: Requested volume or snapshot exceeds "
        "allowed gigabytes quota. Requested 3G, quota is 5G and 3G has been consumed.");
    assert_accepts(within(wish("extend-volume", "data1", 4), 0, 0, 5));
    /* What is promised to one that grows counts at once; others' does not. */
    assert_says(
        accept(within(of_acme(creation("data3", 1)), -1, -1, 5)),
        "limit_exceeded: VolumeSizeExceedsAvailableQuota: Requested volume or snapshot exceeds "
        "allowed gigabytes quota. Requested 1G, quota is 5G and 5G has been consumed.");
    assert_accepts(within(with(creation("data3", 9), "project", json_string("other")), 1, 0, 9));
    assert_accepts(of_acme(creation("data4", 9))); /* who says no limits has none */
    world_tear_down();
}

static void test_quota_of_less(void)
{
    storage_set_up(changes_of(put("volume", VOLUME1, 1, of_acme(object_volume1())), NULL));
    assert_accepts(within(wish("delete-volume", "data1", 0), 0, 0, 0));
    assert_says(accept(within(creation("data2", 1), 9, 9, 9)),
                "wrong_input: quota: what is made is no project's");
    assert_says(accept(within(of_acme(creation("data2", 1)), -2, 9, 9)),
                "wrong_input: quota.volumes: must be at least -1");
    assert_says(accept(of_acme(wish("delete-volume", "data1", 0))),
                "wrong_input: project: delete-volume takes none");
    world_tear_down();
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/wconf_work_limits/room/unknown#CLN-25", test_room_unknown);
    g_test_add_func("/wconf_work_limits/room", test_room);
    g_test_add_func("/wconf_work_limits/room/promised", test_room_promised);
    g_test_add_func("/wconf_work_limits/room/copies#CLN-06", test_room_of_copies);
    g_test_add_func("/wconf_work_limits/room/restores", test_room_of_restores);
    g_test_add_func("/wconf_work_limits/room/restores-over", test_room_of_restores_over);
    g_test_add_func("/wconf_work_limits/room/points#SAF-27", test_room_of_points);
    g_test_add_func("/wconf_work_limits/room/chosen#CLN-25", test_room_chosen);
    g_test_add_func("/wconf_work_limits/names", test_names);
    g_test_add_func("/wconf_work_limits/names/several", test_names_of_several);
    g_test_add_func("/wconf_work_limits/names/repeated#SAF-04", test_name_of_repeated);
    g_test_add_func("/wconf_work_limits/types", test_types);
    g_test_add_func("/wconf_work_limits/types/none#CLN-25", test_type_of_none);
    g_test_add_func("/wconf_work_limits/types/copies", test_type_of_copies);
    g_test_add_func("/wconf_work_limits/types/made", test_types_are_made);
    g_test_add_func("/wconf_work_limits/types/bad", test_bad_types);
    g_test_add_func("/wconf_work_limits/rapi-users", test_rapi_users);
    g_test_add_func("/wconf_work_limits/webhooks", test_webhooks);
    g_test_add_func("/wconf_work_limits/quota", test_quota);
    g_test_add_func("/wconf_work_limits/quota/less", test_quota_of_less);
    g_test_add_func("/wconf_work/default-type", test_default_type);
    return g_test_run();
}
