/* The configuration in memory, and the lock journal's reading of damaged files. */
#include "core/config/model.h"

#include <string.h>

#include "core/locks/locks_journal.h"
#include "proto/seal.h"
#include "unit/core/world/config_world.h"

static struct config *make_config(void)
{
    struct config *config = config_new();
    g_autoptr(GPtrArray) changes = initial_changes();
    for (guint i = 0; i < changes->len; i++) {
        g_autoptr(GError) error = NULL;
        config_apply(config, changes->pdata[i], &error);
        g_assert_no_error(error);
    }
    return config;
}

static char *apply(struct config *config, struct change *change)
{
    g_autoptr(GError) error = NULL;
    bool ok = config_apply(config, change, &error);
    change_free(change);
    return ok ? g_strdup("ok")
              : g_strdup_printf("%s: %s", fettle_error_name(error), error->message);
}

static void test_find(void)
{
    struct config *config = make_config();
    g_autoptr(GError) error = NULL;
    const struct instance *by_name = config_find(config, "instance", "web1", NULL);
    const struct instance *by_uuid = config_find(config, "instance", WEB1, NULL);
    guint64 version = 9;
    g_assert_nonnull(by_name);
    g_assert_true(by_name == by_uuid);
    g_assert_cmpuint(by_name->memory, ==, 128);
    g_assert_null(config_find(config, "instance", "x", &error));
    g_assert_cmpstr(error->message, ==, "instance \"x\" does not exist");
    g_assert_true(fettle_error_is(error, UNKNOWN_ENTITY));
    g_assert_nonnull(config_get(config, "replica", REPLICA1, &version));
    g_assert_cmpuint(version, ==, 1);
    g_assert_null(config_get(config, "replica", REPLICA2, &version));
    g_assert_cmpuint(version, ==, 0);
    g_assert_null(config_get(config, "removed", WEB1, NULL));
    g_assert_cmpstr(config_node_name(config, NODE2), ==, "node2");
    g_assert_cmpstr(config_node_name(config, ""), ==, "nobody");
    g_assert_cmpstr(config_node_name(config, WEB1), ==, WEB1);
    g_assert_cmpstr(config_cluster(config)->name, ==, "c1");
    config_free(config);
}

static void test_rename_and_delete(void)
{
    struct config *config = make_config();
    json_t *renamed = with(object_web1(), "name", json_string("web9"));
    assert_says(apply(config, put("instance", WEB1, 2, renamed)), "ok");
    g_assert_null(config_find(config, "instance", "web1", NULL));
    g_assert_nonnull(config_find(config, "instance", "web9", NULL));
    assert_says(
        apply(config, put("instance", WEB1, 3, with(object_web1(), "name", json_string("db1")))),
        "ok");
    g_assert_cmpuint(config_count_name(config, "instance", "db1"), ==, 2);
    assert_says(apply(config, del("instance", DB1, 3)), "ok");
    g_assert_cmpuint(config_count_name(config, "instance", "db1"), ==, 1);
    g_assert_cmpuint(config_count(config, "instance"), ==, 1);
    config_reset(config);
    g_assert_cmpuint(config_count(config, "instance"), ==, 0);
    config_free(config);
}

static void test_refusals(void)
{
    struct config *config = make_config();
    assert_says(apply(config, put("gadget", "x", 1, json_object())),
                "wrong_input: kind: \"gadget\" is no kind of object");
    assert_says(apply(config, put("instance", WEB1, 1, NULL)),
                "wrong_input: instance " WEB1 ": object: is missing in a put");
    assert_says(apply(config, put("instance", DB1, 1, object_web1())),
                "wrong_input: instance " DB1 ": the object says that its key is " WEB1);
    g_autofree char *said =
        apply(config, put("instance", WEB1, 1, with(object_web1(), "memory", json_integer(0))));
    g_assert_true(g_str_has_prefix(said, "wrong_input: instance " WEB1 ": memory: "));
    const struct instance *web1 = config_get(config, "instance", WEB1, NULL);
    g_assert_cmpuint(web1->memory, ==, 128);
    config_free(config);
}

static void test_unknown_fields_are_kept(void)
{
    struct config *config = make_config();
    json_t *newer = with(object_db1(), "colour", json_string("blue"));
    assert_says(apply(config, put("instance", DB1, 2, newer)), "ok");
    json_autoptr json = config_object_json(config, "instance", DB1);
    g_assert_cmpstr(json_string_value(json_object_get(json, "colour")), ==, "blue");
    config_free(config);
}

static void put_tag(struct config *config, const char *tag)
{
    g_autofree char *key = config_tag_key(TAG_INSTANCE, WEB1, tag);
    json_t *object = json_make("{s:s,s:s,s:s}", "kind", "instance", "object", WEB1, "tag", tag);
    assert_says(apply(config, put("tag", key, 2, object)), "ok");
}

static char *tags_text(const struct config *config)
{
    g_autoptr(GPtrArray) tags = config_tags(config, TAG_INSTANCE, WEB1);
    g_autoptr(GString) text = g_string_new(NULL);
    for (guint i = 0; i < tags->len; i++)
        g_string_append_printf(text, "%s ", (char *)tags->pdata[i]);
    return g_strdup(text->str);
}

static void test_tags(void)
{
    struct config *config = make_config();
    put_tag(config, "b");
    put_tag(config, "a:1/2");
    put_tag(config, "c");
    assert_says(tags_text(config), "a:1/2 b c ");
    g_autofree char *key = config_tag_key(TAG_INSTANCE, WEB1, "b");
    g_assert_cmpstr(key, ==, "instance/" WEB1 "/b");
    assert_says(apply(config, del("tag", key, 3)), "ok");
    assert_says(tags_text(config), "a:1/2 c ");
    assert_says(apply(config, put("tag", "instance/" WEB1 "/z", 3,
                                  json_make("{s:s,s:s,s:s}", "kind", "instance", "object", WEB1,
                                            "tag", "y"))),
                "wrong_input: tag instance/" WEB1
                "/z: the object says that its key is instance/" WEB1 "/y");
    config_free(config);
}

static void test_list_is_sorted(void)
{
    struct config *config = make_config();
    static const char *const ids[] = {"10", "9", "100"};
    for (guint i = 0; i < G_N_ELEMENTS(ids); i++)
        assert_says(apply(config, put("job", ids[i], 1,
                                      json_make("{s:i,s:[]}", "id", atoi(ids[i]), "ops"))),
                    "ok");
    g_autoptr(GPtrArray) instances = config_list(config, "instance");
    g_autoptr(GPtrArray) jobs = config_list(config, "job");
    g_autoptr(GPtrArray) none = config_list(config, "decision");
    g_assert_cmpstr(((struct instance *)instances->pdata[0])->name, ==, "db1");
    g_assert_cmpstr(((struct instance *)instances->pdata[1])->name, ==, "web1");
    g_assert_cmpuint(((struct job *)jobs->pdata[0])->id, ==, 9);
    g_assert_cmpuint(((struct job *)jobs->pdata[2])->id, ==, 100);
    g_assert_cmpuint(none->len, ==, 0);
    config_free(config);
}

static char *names_of(const struct config *config)
{
    g_autoptr(GPtrArray) nodes = config_list(config, "node");
    GString *names = g_string_new(NULL);
    for (guint i = 0; i < nodes->len; i++)
        g_string_append_printf(names, "%s ", ((const struct node *)nodes->pdata[i])->name);
    return g_string_free(names, FALSE);
}

static char *change_node(struct config *config, guint number, const char *name)
{
    g_autofree char *uuid = g_strdup_printf("%08u-0000-4000-8000-000000000000", number);
    if (name == NULL)
        return apply(config, del("node", uuid, 1));
    return apply(config, put("node", uuid, 1, with(object_node(uuid), "name", json_string(name))));
}

/* The list that is kept in order is the one that would be made anew. */
static void test_list_stays_sorted(void)
{
    struct config *config = config_new();
    g_autofree char *empty = names_of(config);
    g_assert_cmpstr(empty, ==, "");
    static const char *const names[] = {"n4", "12", "n1", "7", "n20", "n3"};
    for (guint i = 0; i < G_N_ELEMENTS(names); i++)
        assert_says(change_node(config, i, names[i]), "ok");
    g_autofree char *first = names_of(config);
    g_assert_cmpstr(first, ==, "7 12 n1 n20 n3 n4 ");
    assert_says(change_node(config, 2, "n9"), "ok");
    assert_says(change_node(config, 3, NULL), "ok");
    assert_says(change_node(config, 6, "100"), "ok");
    g_autofree char *second = names_of(config);
    g_assert_cmpstr(second, ==, "12 100 n20 n3 n4 n9 ");
    /* 9 < 10 < 1a < 9: in no order, but all there, and none twice. */
    static const char *const odd[] = {"9", "10", "1a", "2", "11", "1b", "90"};
    for (guint round = 0; round < 3; round++)
        for (guint i = 0; i < G_N_ELEMENTS(odd); i++) {
            assert_says(change_node(config, 10 + i, odd[(i + round) % G_N_ELEMENTS(odd)]), "ok");
            if (i % 2 == 0)
                assert_says(change_node(config, 10 + i, NULL), "ok");
            g_autoptr(GPtrArray) nodes = config_list(config, "node");
            g_assert_cmpuint(nodes->len, ==, config_count(config, "node"));
            for (guint n = 0; n < nodes->len; n++)
                g_assert_true(config_get(config, "node",
                                         ((const struct node *)nodes->pdata[n])->uuid,
                                         NULL) == nodes->pdata[n]);
        }
    config_free(config);
}

static void test_shared_objects(void)
{
    struct config *config = make_config();
    struct config *other = config_new();
    struct config_object *old = config_object_ref(config_peek(config, "instance", WEB1));
    config_set(other, "instance", WEB1, old);
    assert_says(
        apply(config, put("instance", WEB1, 2, with(object_web1(), "memory", json_integer(256)))),
        "ok");
    g_assert_cmpuint(((const struct instance *)config_get(config, "instance", WEB1, NULL))->memory,
                     ==, 256);
    g_assert_cmpuint(((const struct instance *)config_get(other, "instance", WEB1, NULL))->memory,
                     ==, 128);
    config_set(config, "instance", WEB1, old);
    guint64 version;
    g_assert_true(config_get(config, "instance", WEB1, &version) ==
                  config_get(other, "instance", WEB1, NULL));
    g_assert_cmpuint(version, ==, 1);
    config_object_unref(old);
    config_free(other);
    config_free(config);
}

static void test_changes_carry_versions(void)
{
    struct config *config = make_config();
    record_autoptr(change) known = config_put(config, "instance", WEB1, object_web1());
    record_autoptr(change) unknown = config_delete(config, "instance", NODE1);
    g_assert_cmpuint(known->version, ==, 1);
    g_assert_cmpuint(unknown->version, ==, 0);
    g_assert_cmpint(unknown->op, ==, CHANGE_DELETE);
    config_free(config);
}

/* --- the lock journal --- */

struct journal_world {
    struct fake_world *world;
    struct env *env;
};

static void journal_world_init(struct journal_world *world)
{
    world->world = fake_world_new();
    world->env = fake_process(world->world, NODE1, ROLE_WCONFD);
}

/* The note of journal_open, or what it restored. */
static char *reopen(struct journal_world *world)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *note = NULL;
    struct locks *locks = locks_new(NULL, NULL);
    struct locks_journal *journal = locks_journal_open(world->env, locks, &note, &error);
    g_autoptr(GString) text = g_string_new(note ? note : "");
    if (!journal) {
        g_string_printf(text, "%s: %s", fettle_error_name(error), error->message);
    } else if (!note) {
        g_autoptr(GPtrArray) held = locks_list(locks, NULL);
        g_string_printf(text, "epoch %" G_GUINT64_FORMAT ":", locks_journal_epoch(journal));
        for (guint i = 0; i < held->len; i++) {
            const struct lock_state *state = held->pdata[i];
            g_string_append_printf(text, " %s %s %s;", state->owner->job, state->name,
                                   enum_word(&lock_mode_words, (int)state->mode));
        }
    }
    locks_journal_free(journal);
    locks_free(locks);
    return g_strdup(text->str);
}

static void take(struct locks *locks, struct locks_journal *journal, const char *job,
                 const char *name, enum lock_mode mode)
{
    struct owner owner = {.job = (char *)job, .livelock = (char *)"file", .pid = 4711};
    struct lock_request request = {.name = (char *)name, .mode = mode};
    g_autoptr(GPtrArray) requests = g_ptr_array_new();
    g_autoptr(GError) error = NULL;
    enum locks_outcome outcome;
    g_ptr_array_add(requests, &request);
    g_assert_true(locks_update(locks, &owner, requests, NULL, &outcome, &error));
    g_autoptr(GPtrArray) events = locks_take_events(locks);
    locks_journal_append(journal, locks, events, &error);
    g_assert_no_error(error);
}

static void write_journal(struct journal_world *world, guint rounds)
{
    g_autofree char *note = NULL;
    struct locks *locks = locks_new(NULL, NULL);
    struct locks_journal *journal = locks_journal_open(world->env, locks, &note, NULL);
    g_assert_cmpstr(note, ==, "none");
    g_assert_true(locks_journal_begin(journal, locks, 3, NULL));
    take(locks, journal, "1", "instance/a", LOCK_EXCLUSIVE);
    take(locks, journal, "2", "node/n", LOCK_SHARED);
    for (guint i = 0; i < rounds; i++) {
        take(locks, journal, "1", "node/m", LOCK_EXCLUSIVE);
        take(locks, journal, "1", "node/m", LOCK_RELEASE);
    }
    locks_journal_free(journal);
    locks_free(locks);
}

static void test_journal_restores(void)
{
    struct journal_world world;
    journal_world_init(&world);
    write_journal(&world, 1);
    assert_says(reopen(&world), "epoch 3: 1 instance/a exclusive; 2 node/n shared;");
    fake_world_free(world.world);
}

static void test_journal_is_compacted(void)
{
    struct journal_world world;
    journal_world_init(&world);
    write_journal(&world, LIMIT_JOURNAL_SLACK * 2);
    assert_says(reopen(&world), "epoch 3: 1 instance/a exclusive; 2 node/n shared;");
    size_t bytes = strlen(fake_file(world.world, NODE1, FILE_RUN, JOURNAL_FILE));
    g_assert_cmpuint(bytes, <, 81 * (LIMIT_JOURNAL_SLACK + 100));
    fake_world_free(world.world);
}

static struct lock_request *long_request(guint number)
{
    struct lock_request *request = lock_request_new();
    g_free(request->name);
    request->name = g_strdup_printf("node/%060u", number);
    request->mode = LOCK_EXCLUSIVE;
    return request;
}

static void free_request(void *data)
{
    lock_request_free(data);
}

/* Few entries can be large, and what is larger than LIMIT_JOURNAL_BYTES is read no more: then all
 * locks would be nobody's. */
static void test_journal_of_large_entries(void)
{
    struct journal_world world;
    struct owner owner = {.job = (char *)"2", .livelock = (char *)"file", .pid = 4711};
    struct locks_wait wait = {.tag = &world};
    g_autofree char *note = NULL;
    g_autoptr(GPtrArray) requests = g_ptr_array_new_with_free_func(free_request);
    struct locks *locks = locks_new(NULL, NULL);
    enum locks_outcome outcome;
    size_t written = 0;
    journal_world_init(&world);
    struct locks_journal *journal = locks_journal_open(world.env, locks, &note, NULL);
    g_assert_true(locks_journal_begin(journal, locks, 3, NULL));
    for (guint i = 0; i < LIMIT_LOCKS_PER_CALL; i++)
        g_ptr_array_add(requests, long_request(i));
    g_autofree char *first = g_strdup(((struct lock_request *)requests->pdata[0])->name);
    take(locks, journal, "1", first, LOCK_EXCLUSIVE);
    while (written < LIMIT_JOURNAL_BYTES / 4 + MIB(4)) {
        g_assert_true(locks_update(locks, &owner, requests, &wait, &outcome, NULL));
        g_assert_cmpint(outcome, ==, LOCKS_WAITS);
        g_autoptr(GPtrArray) events = locks_take_events(locks);
        g_assert_true(locks_journal_append(journal, locks, events, NULL));
        g_assert_true(locks_withdraw(locks, &owner) == &world);
        g_autoptr(GPtrArray) over = locks_take_events(locks);
        g_assert_true(locks_journal_append(journal, locks, over, NULL));
        written += 80 * (size_t)LIMIT_LOCKS_PER_CALL;
        size_t bytes = strlen(fake_file(world.world, NODE1, FILE_RUN, JOURNAL_FILE));
        g_assert_cmpuint(bytes, <, LIMIT_JOURNAL_BYTES / 4 + MIB(1));
    }
    g_autofree char *expected = g_strdup_printf("epoch 3: 1 %s exclusive;", first);
    assert_says(reopen(&world), expected);
    locks_journal_free(journal);
    locks_free(locks);
    fake_world_free(world.world);
}

/* Cut at every byte: either the last answered state is there, or an earlier one whose answers were
 * all given; never a part of a line. */
static void test_journal_torn(void)
{
    struct journal_world world;
    journal_world_init(&world);
    write_journal(&world, 0);
    g_autofree char *whole = g_strdup(fake_file(world.world, NODE1, FILE_RUN, JOURNAL_FILE));
    const char *head_end = strchr(whole, '\n');
    const char *first_end = strchr(head_end + 1, '\n');
    for (size_t len = 0; len < strlen(whole); len++) {
        g_autofree char *part = g_strndup(whole, len);
        fake_file_put(world.world, NODE1, FILE_RUN, JOURNAL_FILE, part);
        const char *expected = whole + len <= head_end    ? "it has no first line"
                               : whole + len <= first_end ? "epoch 3:"
                                                          : "epoch 3: 1 instance/a exclusive;";
        assert_says(reopen(&world), expected);
    }
    fake_world_free(world.world);
}

static void test_journal_damaged(void)
{
    static const char *const bad[] = {
        "[[\"1\",\"f\",0,\"instance/a\",\"exclusive\"",
        "[[\"1\",\"f\",0,\"instance/a\",\"forever\"]]",
        "[[\"1\",\"f\",0,\"nonsense\",\"exclusive\"]]",
        "[[\"1\",\"f\",-1,\"instance/a\",\"exclusive\"]]",
        "[[\"1\",\"f\",0,\"instance/a\",\"exclusive\",-1]]",
        "[[\"1\",\"f\",0,\"instance/a\",\"exclusive\",1,2]]",
        "[{\"owner\":{\"job\":\"1\",\"livelock\":\"f\"},\"locks\":[],\"ticket\":0}]",
        "[{\"over\":{\"job\":\"1\"}}]",
        "{}",
    };
    struct journal_world world;
    journal_world_init(&world);
    write_journal(&world, 0);
    g_autofree char *whole = g_strdup(fake_file(world.world, NODE1, FILE_RUN, JOURNAL_FILE));
    for (guint i = 0; i < G_N_ELEMENTS(bad); i++) {
        char digits[SEAL_DIGITS + 1];
        seal_digits(bad[i], strlen(bad[i]), digits);
        g_autofree char *text = g_strdup_printf("%s%s %s\n", whole, digits, bad[i]);
        fake_file_put(world.world, NODE1, FILE_RUN, JOURNAL_FILE, text);
        assert_says(reopen(&world), "line 4 is damaged");
    }
    fake_file_put(world.world, NODE1, FILE_RUN, JOURNAL_FILE,
                  "{\"journal\":\"x\",\"epoch\":1,\"version\":1}\n");
    assert_says(reopen(&world), "line 1 is damaged");
    fake_file_put(world.world, NODE1, FILE_RUN, JOURNAL_FILE,
                  "{\"journal\":\"" WEB1 "\",\"epoch\":1,\"version\":4}\n");
    assert_says(reopen(&world), "line 1 is damaged");
    fake_fail_files(world.world, JOURNAL_FILE, 1);
    assert_says(reopen(&world), "storage_error: lock journal: " NODE1 "/run/" JOURNAL_FILE
                                ": input/output error (made by the test)");
    fake_world_free(world.world);
}

/* One bit at a time: the damage is found, or nothing is different. */
static void test_journal_every_bit(void)
{
    struct journal_world world;
    journal_world_init(&world);
    write_journal(&world, 0);
    g_autofree char *whole = g_strdup(fake_file(world.world, NODE1, FILE_RUN, JOURNAL_FILE));
    for (size_t bit = 0; bit < strlen(whole) * 8; bit++) {
        g_autofree char *damaged = g_strdup(whole);
        damaged[bit / 8] = (char)(damaged[bit / 8] ^ (1 << (bit % 8)));
        if (damaged[bit / 8] == '\0')
            continue;
        fake_file_put(world.world, NODE1, FILE_RUN, JOURNAL_FILE, damaged);
        g_autofree char *said = reopen(&world);
        if (!g_str_has_suffix(said, " is damaged") && strcmp(said, "it has no first line") != 0)
            g_error("with bit %zu changed: %s", bit, said);
    }
    fake_world_free(world.world);
}

/* One that the version before has written has no checksums. */
static void test_journal_of_version_2(void)
{
    struct journal_world world;
    journal_world_init(&world);
    fake_file_put(world.world, NODE1, FILE_RUN, JOURNAL_FILE,
                  "{\"journal\":\"" WEB1 "\",\"epoch\":3,\"version\":2}\n"
                  "[[\"1\",\"f\",0,\"instance/a\",\"exclusive\",7]]\n"
                  "[[\"2\",\"f\",0,\"instance/b\",\"exclu");
    assert_says(reopen(&world), "epoch 3: 1 instance/a exclusive;");
    fake_world_free(world.world);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/model/find", test_find);
    g_test_add_func("/model/rename-and-delete", test_rename_and_delete);
    g_test_add_func("/model/refusals#WCF-11", test_refusals);
    g_test_add_func("/model/unknown-fields#FUT-12", test_unknown_fields_are_kept);
    g_test_add_func("/model/tags", test_tags);
    g_test_add_func("/model/list", test_list_is_sorted);
    g_test_add_func("/model/list-kept", test_list_stays_sorted);
    g_test_add_func("/model/shared-objects", test_shared_objects);
    g_test_add_func("/model/changes", test_changes_carry_versions);
    g_test_add_func("/journal/restores#WCF-07,WCF-08,WCF-12", test_journal_restores);
    g_test_add_func("/journal/compacted#WCF-07", test_journal_is_compacted);
    g_test_add_func("/journal/large-entries#WCF-07", test_journal_of_large_entries);
    g_test_add_func("/journal/torn#WCF-16,SAF-01", test_journal_torn);
    g_test_add_func("/journal/damaged#SAF-01", test_journal_damaged);
    g_test_add_func("/journal/every-bit#SAF-01", test_journal_every_bit);
    g_test_add_func("/journal/of-version-2", test_journal_of_version_2);
    return g_test_run();
}
