/* What a job's process is given of the configuration, and what it asks for in place of the rest. */
#include "core/config/view.h"

#include <string.h>

#include "core/config/allocated.h"
#include "core/config/follow.h"
#include "core/ops/op.h"
#include "unit/core/world/wconf_world.h"

#define WEB2 "aaaaaaaa-0000-4000-8000-000000000003"
#define OLD "aaaaaaaa-0000-4000-8000-000000000009"
#define MAC "aa:00:00:00:00:09"
#define VOLUME "eeeeeeee-1111-4000-8000-000000000001"
#define BACKEND "dddddddd-1111-4000-8000-000000000001"
#define NET "eeeeeeee-0000-4000-8000-000000000001"

/* --- copies --- */

static json_t *tag_on(const char *kind, const char *object, const char *tag)
{
    return json_make("{s:s,s:s,s:s}", "kind", kind, "object", object, "tag", tag);
}

static json_t *job_with(int id, json_t *input)
{
    return json_make("{s:i,s:[{s:o}]}", "id", id, "ops", "input", input);
}

static void add(GPtrArray *objects, const char *kind, const char *key, json_t *object)
{
    g_ptr_array_add(objects, put(kind, key, 1, object));
}

/* Besides the usual ones: tags on either instance and on a node, what is left of two instances that
 * had their names, two jobs and a network. */
static void set_up(void)
{
    GPtrArray *objects = initial_changes();
    add(objects, "tag", "instance/" WEB1 "/mine", tag_on("instance", WEB1, "mine"));
    add(objects, "tag", "instance/" DB1 "/other", tag_on("instance", DB1, "other"));
    add(objects, "tag", "node/" NODE2 "/rack", tag_on("node", NODE2, "rack"));
    add(objects, "removed", OLD,
        json_make("{s:s,s:s,s:i}", "uuid", OLD, "name", "old", "generation", 9));
    g_autofree char *service = config_service_key(NODE1, "luxid");
    add(objects, "service", service,
        json_make("{s:s,s:s,s:s,s:s}", "uuid", service, "name", "luxid", "node", NODE1, "version",
                  "1"));
    add(objects, "job", "17", job_with(17, json_object()));
    add(objects, "job", "18", job_with(18, json_object()));
    add(objects, "network", NET,
        json_make("{s:s,s:s,s:s,s:s,s:s}", "uuid", NET, "name", "lan", "network", "192.0.2.0/29",
                  "gateway", "192.0.2.1", "link", "br0"));
    config_world_init(&world, objects);
    config_world_start(&world);
}

static json_t *wanted(guint64 serial, const char *names)
{
    json_t *list = json_array();
    g_auto(GStrv) words = g_strsplit(names, " ", -1);
    for (guint i = 0; words[i] && *words[i]; i++)
        json_array_append_new(list, json_string(words[i]));
    return json_make("{s:i,s:I,s:i,s:i,s:b,s:o}", "history", 5, "serial", (json_int_t)serial,
                     "wait_ms", 10000, "job", 17, "named", 1, "instances", list);
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* "put kind key, delete kind key", in the order of their letters; those of no interest left out. */
static char *changes_in(const char *said)
{
    static const char *const dull[] = {"cluster", "nodegroup", "node", "network", "counter", NULL};
    g_autofree char *text = g_strdup(said);
    json_autoptr answer = json_parse_limited(text, strlen(text), MIB(4), NULL);
    g_autoptr(GPtrArray) words = g_ptr_array_new_with_free_func(g_free);
    size_t i;
    json_t *change;
    if (!answer)
        return g_steal_pointer(&text);
    json_array_foreach(json_object_get(answer, "changes"), i, change) {
        const char *kind = json_string_value(json_object_get(change, "kind"));
        if (!g_strv_contains(dull, kind))
            g_ptr_array_add(
                words, g_strdup_printf("%s %s %s", json_string_value(json_object_get(change, "op")),
                                       kind, json_string_value(json_object_get(change, "key"))));
    }
    g_ptr_array_sort(words, compare_texts);
    g_ptr_array_add(words, NULL);
    return g_strjoinv(", ", (char **)words->pdata);
}

static char *told(json_t *args)
{
    g_autofree char *text = ask_wconf(&world, world.job, "wait_changes", args);
    return changes_in(text);
}

static void test_named_copy(void)
{
    set_up();
    assert_says(told(wanted(0, "web1")),
                "put instance " WEB1 ", put job 17, put replica " REPLICA1
                ", put tag instance/" WEB1 "/mine, put tag node/" NODE2 "/rack");
    /* By name or UUID, each once; of removed ones by UUID. */
    assert_says(told(wanted(0, "web1 " WEB1 " " OLD)),
                "put instance " WEB1 ", put job 17, put removed " OLD ", put replica " REPLICA1
                ", put tag instance/" WEB1 "/mine, put tag node/" NODE2 "/rack");
    assert_says(told(wanted(0, "nobody")), "put job 17, put tag node/" NODE2 "/rack");
    assert_says(told(wanted(0, "")), "put job 17, put tag node/" NODE2 "/rack");
    world_tear_down();
}

static json_t *fresh(const char *uuid, const char *name)
{
    return json_make("{s:s,s:s,s:s,s:i,s:s}", "uuid", uuid, "name", name, "disk_template",
                     "diskless", "memory", 8, "primary_node", NODE3);
}

static void commit(struct change *change, guint64 serial)
{
    g_autofree char *expected = g_strdup_printf("{\"serial\":%" G_GUINT64_FORMAT "}", serial);
    assert_says(job_locks(&world, 17, "x instance/db1, x instance/web2", false), GRANTED);
    assert_says(job_commit(&world, 17, changes_of(change, NULL)), expected);
}

/* Whose task stands on it: only while that stands. */
static void test_named_owner(void)
{
    set_up();
    json_t *marked = with(object_db1(), "task_state", json_string("stopping"));
    commit(put("instance", DB1, 1, with(marked, "task_owner", json_integer(18))), 2);
    assert_says(told(wanted(0, "db1")),
                "put instance " DB1 ", put job 17, put job 18, put tag instance/" DB1
                "/other, put tag node/" NODE2 "/rack");
    assert_says(told(wanted(0, "web1")),
                "put instance " WEB1 ", put job 17, put replica " REPLICA1
                ", put tag instance/" WEB1 "/mine, put tag node/" NODE2 "/rack");
    world_tear_down();
}

static void test_named_deltas(void)
{
    set_up();
    commit(put("instance", DB1, 1, with(object_db1(), "memory", json_integer(65))), 2);
    commit(put("tag", "instance/" DB1 "/new", 0, tag_on("instance", DB1, "new")), 3);
    assert_says(told(wanted(1, "web1")), "");
    assert_says(told(wanted(1, "db1")), "put instance " DB1 ", put tag instance/" DB1 "/new");
    /* One that was not there when the copy began. */
    commit(put("instance", WEB2, 0, fresh(WEB2, "web2")), 4);
    assert_says(told(wanted(3, "web2")), "put instance " WEB2);
    assert_says(told(wanted(3, "web1")), "");
    /* What is gone is gone for all: of whom it was cannot be told any more. */
    commit(del("tag", "instance/" DB1 "/new", 3), 5);
    assert_says(told(wanted(4, "web1")), "delete tag instance/" DB1 "/new");
    /* It does not wait for news. */
    assert_says(told(wanted(5, "web1")), "");
    world_tear_down();
}

static json_t *volume(const char *instance)
{
    json_t *object = json_make("{s:s,s:s,s:i,s:s,s:s,s:s}", "uuid", VOLUME, "name", "data1", "size",
                               1, "status", "available", "backend", BACKEND, "data", VOLUME ".7");
    if (instance)
        json_object_set_new(object, "attachments",
                            json_make("[{s:s,s:s,s:i,s:s}]", "uuid", OLD, "instance", instance,
                                      "slot", 30, "state", "attached"));
    return object;
}

/* A volume is its instance's; who names it has that instance, too. One that has become another's,
 * or nobody's, is gone: else a start would give it to its guest. */
static void test_named_volumes(void)
{
    GPtrArray *objects = initial_changes();
    add(objects, "backend", BACKEND,
        json_make("{s:s,s:s,s:s,s:s,s:[s]}", "uuid", BACKEND, "name", "dir1", "kind", "dir", "path",
                  "/mnt/a", "nodes", NODE1));
    add(objects, "volume", VOLUME, volume(WEB1));
    config_world_init(&world, objects);
    config_world_start(&world);
    const char *both = "put backend " BACKEND ", put instance " WEB1 ", put replica " REPLICA1
                       ", put volume " VOLUME;
    assert_says(told(wanted(0, "web1")), both);
    assert_says(told(wanted(0, "data1")), both);
    assert_says(told(wanted(0, VOLUME)), both);
    assert_says(told(wanted(0, "db1")), "put backend " BACKEND ", put instance " DB1);
    assert_says(job_locks(&world, 17, "x instance/web1, x instance/db1", false), GRANTED);
    assert_says(job_commit(&world, 17, changes_of(put("volume", VOLUME, 1, volume(NULL)), NULL)),
                "{\"serial\":2}");
    assert_says(told(wanted(1, "web1")), "delete volume " VOLUME);
    assert_says(told(wanted(1, "data1")), "put volume " VOLUME);
    world_tear_down();
}

/* What is left of a removed instance is not another's that has its name now. */
static void test_named_removed(void)
{
    set_up();
    GPtrArray *gone =
        changes_of(del("tag", "instance/" DB1 "/other", 1), del("instance", DB1, 1),
                   put("removed", DB1, 0,
                       json_make("{s:s,s:s,s:i}", "uuid", DB1, "name", "db1", "generation", 9)),
                   NULL);
    assert_says(job_locks(&world, 17, "x instance/db1", false), GRANTED);
    assert_says(job_commit(&world, 17, gone), "{\"serial\":2}");
    const char *deleted = "delete instance " DB1 ", delete tag instance/" DB1 "/other";
    g_autofree char *and_left = g_strconcat(deleted, ", put removed " DB1, NULL);
    assert_says(told(wanted(1, "db1")), deleted);
    assert_says(told(wanted(1, DB1)), and_left);
    assert_says(told(wanted(0, "db1")), "put job 17, put tag node/" NODE2 "/rack");
    assert_says(told(wanted(0, DB1)),
                "put job 17, put removed " DB1 ", put tag node/" NODE2 "/rack");
    world_tear_down();
}

/* --- a copy as a whole, and object by object --- */

static void note_object(const char *kind, const char *key, guint64 version, const void *value,
                        void *objects)
{
    g_autofree char *object = g_strconcat(kind, " ", key, NULL);
    g_assert_true(g_hash_table_add(objects, g_steal_pointer(&object))); /* each once */
}

struct single {
    const struct view *view;
    const struct config *config;
    GHashTable *objects;
};

static void note_single(const char *kind, const char *key, guint64 version, const void *value,
                        void *data)
{
    const struct single *single = data;
    if (view_has(single->view, single->config, kind, key))
        note_object(kind, key, version, value, single->objects);
}

static guint assert_same_rule_of(const struct config *config, bool named, const char *list,
                                 guint64 kinds)
{
    g_auto(GStrv) words = g_strsplit(list, " ", -1);
    g_autoptr(GPtrArray) names = g_ptr_array_new();
    for (guint i = 0; words[i] && *words[i]; i++)
        g_ptr_array_add(names, words[i]);
    struct view view = view_new(17, named, names);
    view.kinds = kinds;
    g_autoptr(GHashTable) whole = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_autoptr(GHashTable) singles = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    struct single single = {&view, config, singles};
    view_each(&view, config, note_object, whole);
    config_each(config, note_single, &single);
    GHashTableIter iter;
    void *object;
    g_hash_table_iter_init(&iter, whole);
    while (g_hash_table_iter_next(&iter, &object, NULL))
        g_assert_true(g_hash_table_contains(singles, object));
    guint size = g_hash_table_size(whole);
    g_assert_cmpuint(size, ==, g_hash_table_size(singles));
    view_clear(&view);
    return size;
}

/* Kind by kind it is the same as all at once. */
static guint assert_same_rule(const struct config *config, bool named, const char *list)
{
    guint size = assert_same_rule_of(config, named, list, 0), sum = 0;
    size_t count;
    const struct record *const *kinds = object_table(&count);
    for (size_t i = 0; i < count; i++)
        sum += assert_same_rule_of(config, named, list, object_bit(kinds[i]->name));
    g_assert_cmpuint(sum, ==, size);
    return size;
}

static void test_same_rule(void)
{
    set_up();
    const struct config *config = wconf_config(world.wconf);
    guint none = assert_same_rule(config, true, "");
    g_assert_cmpuint(assert_same_rule(config, true, "nobody old"), ==, none);
    g_assert_cmpuint(assert_same_rule(config, true, OLD), ==, none + 1);
    g_assert_cmpuint(assert_same_rule(config, true, "db1"), ==, none + 2);
    g_assert_cmpuint(assert_same_rule(config, true, "web1 " WEB1 " old"), ==, none + 3);
    g_assert_cmpuint(assert_same_rule(config, true, "web1 db1 " OLD), ==, none + 6);
    g_assert_cmpuint(assert_same_rule(config, false, ""), ==, none + 6);
    world_tear_down();
}

static void test_named_in_one_piece(void)
{
    GPtrArray *objects = initial_changes();
    for (guint i = 0; i < LIMIT_SNAPSHOT_OBJECTS; i++) {
        g_autofree char *text = g_strdup_printf("t%u", i);
        g_autofree char *key = g_strdup_printf("instance/" DB1 "/%s", text);
        add(objects, "tag", key, tag_on("instance", DB1, text));
    }
    config_world_init(&world, objects);
    config_world_start(&world);
    g_autofree char *whole = ask_wconf(&world, world.luxid, "wait_changes",
                                       json_make("{s:i,s:i}", "history", 5, "serial", 0));
    g_assert_nonnull(strstr(whole, "\"pieces\":true"));
    assert_says(told(wanted(0, "web1")), "put instance " WEB1 ", put replica " REPLICA1);
    world_tear_down();
}

static void test_named_for_nobody(void)
{
    set_up();
    assert_says(
        ask_wconf(&world, world.luxid, "wait_changes",
                  json_make("{s:i,s:b,s:[s]}", "serial", 0, "named", 1, "instances", "web1")),
        "wrong_input: named: such a copy is for a job's process; job: says for which");
    world_tear_down();
}

/* --- some kinds --- */

/* `kinds`: words; the arguments of wait_changes and of snapshot are the same here. */
static json_t *of_kinds(guint64 serial, const char *kinds)
{
    json_t *list = json_array();
    g_auto(GStrv) words = g_strsplit(kinds, " ", -1);
    for (guint i = 0; words[i] && *words[i]; i++)
        json_array_append_new(list, json_string(words[i]));
    return json_make("{s:i,s:I,s:o}", "history", 5, "serial", (json_int_t)serial, "kinds", list);
}

/* "SERIAL: changes" */
static char *luxid_told(const char *method, json_t *args)
{
    g_autofree char *text = ask_wconf(&world, world.luxid, method, args);
    g_autofree char *changes = changes_in(text);
    json_autoptr answer = json_parse_limited(text, strlen(text), MIB(4), NULL);
    return answer ? g_strdup_printf("%d: %s",
                                    (int)json_integer_value(json_object_get(answer, "serial")),
                                    changes)
                  : g_steal_pointer(&text);
}

static void test_kinds(void)
{
    set_up();
    const char *two = "1: put job 17, put job 18, put removed " OLD;
    assert_says(luxid_told("wait_changes", of_kinds(0, "job removed")), two);
    assert_says(luxid_told("snapshot", json_make("{s:[ss]}", "kinds", "job", "removed")), two);
    assert_says(luxid_told("snapshot", json_make("{s:s,s:s,s:[ss]}", "kind", "job", "key", "17",
                                                 "kinds", "job", "removed")),
                "1: put job 18, put removed " OLD);
    assert_says(luxid_told("wait_changes", of_kinds(0, "node")), "1: ");
    /* What is not for it stays so; of what is for a job's process it may want less. */
    assert_says(luxid_told("wait_changes", of_kinds(0, "secret job")), "1: put job 17, put job 18");
    assert_says(luxid_told("snapshot", json_make("{s:[s]}", "kinds", "secret")), "1: ");
    assert_says(told(with(wanted(0, "web1"), "kinds", json_make("[sss]", "tag", "job", "service"))),
                "put job 17, put tag instance/" WEB1 "/mine, put tag node/" NODE2 "/rack");
    assert_says(
        told(json_make("{s:i,s:i,s:[ss]}", "job", 17, "serial", 0, "kinds", "job", "removed")),
        "put job 17, put removed " OLD);
    world_tear_down();
}

/* However little of what has changed is told, the serial goes on. */
static void test_kinds_deltas(void)
{
    set_up();
    commit(put("instance", DB1, 1, with(object_db1(), "memory", json_integer(65))), 2);
    commit(put("tag", "instance/" DB1 "/new", 0, tag_on("instance", DB1, "new")), 3);
    assert_says(luxid_told("wait_changes", of_kinds(1, "tag")), "3: put tag instance/" DB1 "/new");
    assert_says(luxid_told("wait_changes", of_kinds(1, "replica")), "3: ");
    assert_says(luxid_told("wait_changes", with(of_kinds(1, "instance"), "part", json_true())),
                "3: put instance " DB1);
    assert_says(luxid_told("wait_changes", with(of_kinds(1, "replica"), "part", json_true())),
                "3: ");
    world_tear_down();
}

/* Who waits is told at once, each what he wants. */
static void test_kinds_waited_for(void)
{
    static const char *const kinds[] = {"tag", "instance", "", "tag", "replica"};
    static const char *const expected[] = {"put tag instance/" DB1 "/new", "",
                                           "put tag instance/" DB1 "/new",
                                           "put tag instance/" DB1 "/new", ""};
    struct fake_reply waiting[G_N_ELEMENTS(kinds)];
    set_up();
    for (guint i = 0; i < G_N_ELEMENTS(kinds); i++)
        fake_call_start(world.luxid, 0, NODE1, ROLE_WCONFD, "wait_changes",
                        with(of_kinds(1, kinds[i]), "wait_ms", json_integer(60000)), &waiting[i]);
    fake_settle(world.world);
    commit(put("tag", "instance/" DB1 "/new", 0, tag_on("instance", DB1, "new")), 2);
    fake_advance(world.world, 1);
    for (guint i = 0; i < G_N_ELEMENTS(kinds); i++) {
        g_assert_true(waiting[i].done);
        g_assert_cmpint(json_integer_value(json_object_get(waiting[i].result, "serial")), ==, 2);
        g_autofree char *text = json_to_text(waiting[i].result);
        assert_says(changes_in(text), expected[i]);
        fake_reply_clear(&waiting[i]);
    }
    world_tear_down();
}

static void test_kinds_unknown(void)
{
    set_up();
    const char *refusal = "wrong_input: kinds[1]: there is no kind of object \"wroker\"";
    assert_says(luxid_told("wait_changes", of_kinds(0, "job wroker")), refusal);
    assert_says(luxid_told("snapshot", json_make("{s:[ss]}", "kinds", "job", "wroker")), refusal);
    assert_says(luxid_told("wait_changes", json_make("{s:i,s:s}", "serial", 0, "kinds", "job")),
                "wrong_input: kinds: must be a list of texts");
    json_t *many = json_array();
    for (guint i = 0; i <= LIMIT_KINDS; i++)
        json_array_append_new(many, json_string("job"));
    assert_says(luxid_told("wait_changes", with(of_kinds(0, ""), "kinds", many)),
                "wrong_input: kinds: must have at most 64 elements, has 65");
    world_tear_down();
}

/* What few there are come at once, however many others there are. */
static void test_kinds_in_one_piece(void)
{
    GPtrArray *objects = initial_changes();
    for (guint i = 0; i < LIMIT_SNAPSHOT_OBJECTS; i++) {
        g_autofree char *key = g_strdup_printf("instance/" DB1 "/t%u", i);
        add(objects, "tag", key, tag_on("instance", DB1, strrchr(key, '/') + 1));
    }
    config_world_init(&world, objects);
    config_world_start(&world);
    assert_says(luxid_told("wait_changes", of_kinds(0, "replica")), "1: put replica " REPLICA1);
    g_autofree char *whole = ask_wconf(&world, world.luxid, "wait_changes", of_kinds(0, ""));
    g_assert_nonnull(strstr(whole, "\"pieces\":true"));
    world_tear_down();
}

/* --- what such a copy refuses --- */

struct copy {
    struct follow *follow;
    bool fresh;
};

static void refresh_task(void *data)
{
    struct copy *copy = data;
    copy->fresh = follow_refresh(copy->follow, NULL);
}

static struct follow *copy_of_web1(void)
{
    struct copy copy = {.follow = follow_new(world.job, NULL, NULL)};
    g_autoptr(GPtrArray) names = g_ptr_array_new();
    g_ptr_array_add(names, (char *)"web1");
    g_ptr_array_add(names, (char *)"web9");
    follow_for_job(copy.follow, 17, names);
    fake_run(world.job, refresh_task, &copy);
    g_assert_true(copy.fresh);
    return copy.follow;
}

static void test_copy(void)
{
    g_autoptr(GError) error = NULL;
    set_up();
    struct follow *follow = copy_of_web1();
    const struct config *config = follow_config(follow);
    g_assert_nonnull(config_find(config, "instance", "web1", NULL));
    g_assert_nonnull(config_find(config, "instance", WEB1, NULL));
    g_assert_nonnull(config_get(config, "replica", REPLICA1, NULL));
    g_assert_cmpuint(config_count(config, "node"), ==, 3);
    g_assert_null(config_find(config, "instance", "web9", &error));
    g_assert_cmpstr(error->message, ==, "instance \"web9\" does not exist");
    follow_free(follow);
    world_tear_down();
}

static void ask_list(const struct config *config)
{
    config_list(config, "instance");
}

static void ask_count(const struct config *config)
{
    config_count(config, "replica");
}

static void ask_keys(const struct config *config)
{
    config_keys(config, "tag");
}

static void ask_other(const struct config *config)
{
    config_find(config, "instance", "db1", NULL);
}

static void ask_address(const struct config *config)
{
    config_address_user(config, MAC, "");
}

static void ask_mac(const struct config *config)
{
    config_mac_user(config, MAC, "");
}

static void ask_node(const struct config *config)
{
    config_node_instances(config, NODE1);
}

static void ask_promised(const struct config *config)
{
    config_promised(config, NODE1);
}

static void ask_total(const struct config *config)
{
    config_total(config);
}

static const struct {
    const char *what;
    void (*ask)(const struct config *config);
} refused[] = {
    {"instance", ask_list},
    {"replica", ask_count},
    {"tag", ask_keys},
    {"instance", ask_other},
    {"user of an address", ask_address},
    {"user of a MAC address", ask_mac},
    {"instances of a node", ask_node},
    {"what is promised of a node", ask_promised},
    {"total", ask_total},
};

static void test_refusal(const void *data)
{
    guint row = GPOINTER_TO_UINT(data);
    if (g_test_subprocess()) {
        set_up();
        refused[row].ask(follow_config(copy_of_web1()));
        return;
    }
    g_autofree char *words = g_strdup_printf(
        "*%s: this copy of the configuration has only the instances that the job names*",
        refused[row].what);
    g_test_trap_subprocess(NULL, 0, 0);
    g_test_trap_assert_failed();
    g_test_trap_assert_stderr(words);
}

/* --- questions --- */

static char *ask(const char *method, json_t *args)
{
    return ask_wconf(&world, world.job, method, args);
}

static json_t *node_asked(const char *node, const char *guest)
{
    json_t *guests = json_array();
    if (guest)
        json_array_append_new(guests, json_string(guest));
    return json_make("{s:s,s:o}", "node", node, "guests", guests);
}

static char *promised(json_t *node)
{
    return ask("promised", json_make("{s:[o]}", "nodes", node));
}

static void test_promised(void)
{
    set_up();
    assert_says(promised(node_asked(NODE1, NULL)),
                "{\"nodes\":[{\"disk\":64,\"disk_waiting\":0,\"instances\":2,\"memory\":192,"
                "\"memory_running\":0,\"node\":\"" NODE1 "\"}]}");
    assert_says(promised(node_asked(NODE1, WEB1)),
                "{\"nodes\":[{\"disk\":64,\"disk_waiting\":0,\"instances\":2,\"memory\":192,"
                "\"memory_running\":128,\"node\":\"" NODE1 "\"}]}");
    /* A guest of an instance that is not promised anything there, and one of none. */
    assert_says(promised(node_asked(NODE2, DB1)),
                "{\"nodes\":[{\"disk\":64,\"disk_waiting\":0,\"instances\":1,\"memory\":0,"
                "\"memory_running\":0,\"node\":\"" NODE2 "\"}]}");
    assert_says(promised(node_asked(WEB2, WEB2)),
                "{\"nodes\":[{\"disk\":0,\"disk_waiting\":0,\"instances\":0,\"memory\":0,"
                "\"memory_running\":0,\"node\":\"" WEB2 "\"}]}");
    assert_says(ask("promised", json_make("{s:[{s:s}]}", "nodes", "node", "here")),
                "wrong_input: nodes[0].node: must be a UUID in lower case");
    world_tear_down();
}

static void test_addresses(void)
{
    set_up();
    json_t *nics = json_make("[{s:s,s:s,s:s,s:s,s:s}]", "uuid", NET, "mac", MAC, "link", "br0",
                             "ip", "192.0.2.2", "network", NET);
    commit(put("instance", DB1, 1, with(object_db1(), "nics", nics)), 2);
    assert_says(ask("address_user", json_make("{s:s}", "address", MAC)),
                "{\"user\":\"instance \\\"db1\\\"\"}");
    assert_says(ask("address_user", json_make("{s:s}", "address", "192.0.2.2@br0")),
                "{\"user\":\"instance \\\"db1\\\"\"}");
    assert_says(ask("address_user", json_make("{s:s}", "address", "192.0.2.2@br1")),
                "{\"user\":\"\"}");
    /* .1 is the gateway, .2 that of db1, .3 that of a card that is being made. */
    assert_says(ask("draw_address", json_make("{s:s}", "network", NET)),
                "{\"address\":\"192.0.2.3\"}");
    nics = json_make("{s:s,s:s,s:s,s:s}", "uuid", WEB2, "mac", "aa:00:00:00:00:0a", "ip",
                     "192.0.2.3", "network", NET);
    json_object_set_new(nics, "link", json_string("br0"));
    assert_says(ask("draw_address", json_make("{s:s,s:[o]}", "network", NET, "nics", nics)),
                "{\"address\":\"192.0.2.4\"}");
    assert_says(ask("draw_address", json_make("{s:s}", "network", WEB2)),
                "unknown_entity: network \"" WEB2 "\" does not exist");
    assert_says(ask("address_user", json_object()), "wrong_input: address: is missing");
    world_tear_down();
}

/* --- which names --- */

/* "all", or the names. */
static char *seen(const char *inputs)
{
    g_autoptr(GError) error = NULL;
    json_autoptr list = json_loads(inputs, 0, NULL);
    json_t *ops = json_array();
    size_t i;
    json_t *input;
    g_assert_nonnull(list);
    json_array_foreach(list, i, input)
        json_array_append_new(ops, json_make("{s:O}", "input", input));
    json_autoptr json = json_make("{s:i,s:o}", "id", 17, "ops", ops);
    record_autoptr(job) job = job_parse(json, RECORD_STRICT, &error);
    g_assert_no_error(error);
    g_autoptr(GPtrArray) names = op_names_seen(job);
    if (!names)
        return g_strdup("all");
    g_ptr_array_add(names, NULL);
    return g_strjoinv(" ", (char **)names->pdata);
}

static void test_names(void)
{
    assert_says(seen("[{\"OP_ID\":\"OP_TEST_DELAY\",\"duration\":0}]"), "");
    assert_says(seen("[{\"OP_ID\":\"OP_INSTANCE_STARTUP\",\"instance_name\":\"web1\"},"
                     "{\"OP_ID\":\"OP_INSTANCE_REMOVE\",\"instance_name\":\"" DB1 "\"}]"),
                "web1 " DB1);
    assert_says(seen("[{\"OP_ID\":\"OP_INSTANCE_STARTUP\",\"instance_name\":\"web1\"},"
                     "{\"OP_ID\":\"OP_NODE_EVACUATE\",\"node_name\":\"node1\"}]"),
                "all");
    assert_says(seen("[{\"OP_ID\":\"OP_TAGS_SET\",\"kind\":\"instance\",\"name\":\"web1\"}]"),
                "web1");
    assert_says(seen("[{\"OP_ID\":\"OP_TAGS_SET\",\"kind\":\"node\",\"name\":\"node1\"}]"), "");
    assert_says(seen("[{\"OP_ID\":\"OP_TAGS_SET\",\"kind\":\"instance\",\"filter\":[\"|\"]}]"),
                "all");
    assert_says(seen("[{\"OP_ID\":\"OP_UNHEARD_OF\",\"instance_name\":\"web1\"}]"), "all");
    assert_says(seen("[{\"OP_ID\":17}]"), "all");
    assert_says(seen("[{\"OP_ID\":\"OP_INSTANCE_STARTUP\",\"instance_name\":17}]"), "");
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/view/named#WCF-22", test_named_copy);
    g_test_add_func("/view/named/owner#WCF-22,RCV-30", test_named_owner);
    g_test_add_func("/view/named/deltas#WCF-22", test_named_deltas);
    g_test_add_func("/view/named-volumes#SAF-57", test_named_volumes);
    g_test_add_func("/view/named/removed#WCF-22", test_named_removed);
    g_test_add_func("/view/named/same-rule#WCF-22", test_same_rule);
    g_test_add_func("/view/named/one-piece#WCF-22", test_named_in_one_piece);
    g_test_add_func("/view/named/for-nobody#WCF-11", test_named_for_nobody);
    g_test_add_func("/view/kinds#SAF-101", test_kinds);
    g_test_add_func("/view/kinds/deltas#SAF-03", test_kinds_deltas);
    g_test_add_func("/view/kinds/waited-for#SAF-03", test_kinds_waited_for);
    g_test_add_func("/view/kinds/unknown#WCF-11", test_kinds_unknown);
    g_test_add_func("/view/kinds/one-piece", test_kinds_in_one_piece);
    g_test_add_func("/view/copy#WCF-22", test_copy);
    for (guint i = 0; i < G_N_ELEMENTS(refused); i++) {
        g_autofree char *path = g_strdup_printf("/view/refused/%u#WCF-22", i);
        g_test_add_data_func(path, GUINT_TO_POINTER(i), test_refusal);
    }
    g_test_add_func("/view/promised#WCF-22,FUT-08", test_promised);
    g_test_add_func("/view/addresses#WCF-22", test_addresses);
    g_test_add_func("/view/names#WCF-22", test_names);
    return g_test_run();
}
