/*
 * The copies of other candidates, as the master sees them: what they are told, what is waited for,
 * who is counted out. core/wconfd/wconf_followers.c, wconf_stream.c.
 */
#include <string.h>

#include "core/wconfd/wconf_private.h"
#include "proto/change.h"
#include "unit/core/world/copies_world.h"

/* "SERIAL: n changes", "refill: why", or the error. */
static char *said(struct fake_reply *reply)
{
    fake_advance(world.world, 1); /* a batch of commits is told at the next turn of the loop */
    g_assert_true(reply->done);
    char *text;
    if (reply->error)
        text = g_strdup_printf("%s: %s", fettle_error_name(reply->error), reply->error->message);
    else if (json_is_true(json_object_get(reply->result, "snapshot")))
        text =
            g_strdup_printf("refill: %s", json_string_value(json_object_get(reply->result, "why")));
    else
        text = g_strdup_printf("%d: %zu changes",
                               (int)json_integer_value(json_object_get(reply->result, "serial")),
                               json_array_size(json_object_get(reply->result, "changes")));
    fake_reply_clear(reply);
    return text;
}

static void expect(struct env *from, guint64 history, guint64 serial, const char *of,
                   const char *expected)
{
    struct fake_reply reply;
    ask_start(from, history, serial, of, 0, &reply);
    assert_says(said(&reply), expected);
}

/* --- tests --- */

static void test_refill(void)
{
    copies_set_up();
    g_autofree char *now = digest();
    expect(node2, 5, 1, now, "1: 0 changes");
    expect(node2, 0, 0, "0", "refill: it is empty");
    expect(node2, 4, 1, now, "refill: it is of history 4, the master's is 5");
    expect(node2, 5, 9, now,
           "refill: it is at serial 9, the master only at 1: it has changes that were lost with an "
           "earlier master");
    expect(node2, 5, 1, "1234", "refill: its content at serial 1 differs from the master's");
    expect(node2, 5, 0, "0", "refill: the log of changes begins behind its serial 0");
    expect(node2, 5, 1, now, "1: 0 changes");
    world_tear_down();
}

/* It neither goes back to what an earlier master has nor vouches for it: not with the same serial
 * either, whose content the earlier one may have forgotten. */
static void test_later_copy(void)
{
    static const char over[] =
        "not_master: this is the master of epoch 1, and the copy is of epoch 2: another node has "
        "become master since";
    copies_set_up();
    g_autofree char *now = digest();
    struct fake_reply ahead, same, empty, stranger;
    ask_start_of(node2, 2, 5, 9, now, 0, &ahead);
    assert_says(said(&ahead), over);
    ask_start_of(node2, 2, 5, 1, now, 0, &same);
    assert_says(said(&same), over);
    ask_start_of(node2, 2, 5, 0, "0", 0, &empty);
    assert_says(said(&empty), over);
    g_free(job_locks(&world, 17, "x node-param/" NODE2, false));
    assert_says(job_commit(&world, 17, changes_of(put("node", NODE2, 1, object_node(NODE2)), NULL)),
                "{\"serial\":2}");
    ask_start_of(node2, 2, 5, 2, now, 0, &stranger); /* the later master may have made it one */
    assert_says(said(&stranger), over);
    world_tear_down();
}

/* A record of some 32 KiB. */
static void commit_large(guint number)
{
    g_autofree char *id = g_strdup_printf("00000000-0000-4000-8000-00000001%04x", number);
    g_autofree char *line = g_strnfill(1000, 'x');
    json_t *lines = json_array();
    struct fake_reply reply;
    for (guint i = 0; i < 32; i++)
        json_array_append_new(lines, json_string(line));
    json_t *decision = json_make("{s:s,s:s,s:s,s:s,s:i,s:s,s:s,s:o}", "uuid", id, "author", "test",
                                 "subject_kind", "node", "subject", NODE1, "at_us", 1, "verdict",
                                 "act", "summary", "x", "evidence", lines);
    watcher_commit_start(id, changes_of(put("decision", id, 0, decision), NULL), &reply);
    if (!reply.done)
        fake_advance(world.world, 1000); /* nobody follows */
    g_autofree char *stored = world_reply(&reply);
    g_assert_true(g_str_has_prefix(stored, "{\"serial\":"));
}

/* All in pieces, then what has come since the first: that is what the master has. */
static void test_pieces(void)
{
    copies_set_up();
    struct config *copy = config_new();
    g_autofree char *kind = g_strdup(""), *key = g_strdup("");
    bool more = true;
    guint pieces = 0;
    for (guint i = 0; i < 40; i++)
        commit_large(i);
    guint64 serial = 0;
    while (more) {
        g_autoptr(GError) error = NULL;
        json_autoptr piece = fake_call(node2, NODE1, ROLE_WCONFD, "snapshot",
                                       json_make("{s:s,s:s}", "kind", kind, "key", key), &error);
        g_assert_no_error(error);
        record_autoptr(snapshot_piece) part = snapshot_piece_parse(piece, RECORD_LAX, &error);
        g_assert_no_error(error);
        for (guint i = 0; i < part->changes->len; i++)
            g_assert_true(config_apply(copy, part->changes->pdata[i], NULL));
        const struct change *last = part->changes->pdata[part->changes->len - 1];
        g_free(kind);
        g_free(key);
        kind = g_strdup(last->kind);
        key = g_strdup(last->key);
        serial = part->serial;
        more = part->more;
        pieces++;
    }
    g_assert_cmpuint(pieces, >=, 2);
    g_assert_cmpuint(config_digest(copy), ==, config_digest(wconf_config(world.wconf)));
    g_assert_cmpuint(serial, ==, config_serial(wconf_config(world.wconf)));
    config_free(copy);
    world_tear_down();
}

/* Asks for what has come since `*serial`, part by part, into the copy; how many parts it were. */
static guint take_parts(struct config *copy, guint64 *serial)
{
    bool more = true;
    guint parts = 0;
    for (; more; parts++) {
        g_autoptr(GError) error = NULL;
        json_autoptr answer = fake_call(
            node2, NODE1, ROLE_WCONFD, "wait_changes",
            json_make("{s:i,s:I,s:b}", "history", 5, "serial", (json_int_t)*serial, "part", true),
            &error);
        g_assert_no_error(error);
        record_autoptr(changes) part = changes_parse(answer, RECORD_LAX, &error);
        g_assert_no_error(error);
        g_assert_false(part->snapshot);
        g_assert_cmpuint(part->serial, >, *serial);
        for (guint i = 0; i < part->changes->len; i++)
            g_assert_true(config_apply(copy, part->changes->pdata[i], NULL));
        *serial = part->serial;
        more = part->more;
    }
    return parts;
}

/* More has changed since than one answer takes, some of it twice, some of it is gone: whoever asks
 * on has what the master has in the end. */
static void test_parts(void)
{
    enum { LARGE = 280 };
    copies_set_up();
    struct config *copy = config_new();
    guint64 serial = config_serial(wconf_config(world.wconf));
    config_share(wconf_config(world.wconf), copy);
    struct fake_reply commit;
    commit_start(ID_A, "a", &commit);
    fake_advance(world.world, 2000);
    g_free(world_reply(&commit));
    for (guint i = 0; i < LARGE; i++)
        commit_large(i);
    json_autoptr whole =
        fake_call(node2, NODE1, ROLE_WCONFD, "wait_changes",
                  json_make("{s:i,s:I}", "history", 5, "serial", (json_int_t)serial), NULL);
    g_assert_true(json_is_true(json_object_get(whole, "pieces")));
    g_free(job_locks(&world, 17, "x node-param/" NODE2, false));
    g_free(job_commit(
        &world, 17,
        changes_of(put("node", NODE2, 1, with(object_node(NODE2), "master_candidate", json_true())),
                   NULL)));
    g_assert_cmpuint(take_parts(copy, &serial), >=, 8);
    g_assert_cmpuint(serial, ==, config_serial(wconf_config(world.wconf)));
    g_assert_cmpuint(config_digest(copy), ==, config_digest(wconf_config(world.wconf)));
    config_free(copy);
    world_tear_down();
}

/* An import may be more than any frame takes: who asks on begins anew, and finds it in pieces. */
static void test_part_too_large(void)
{
    enum { OBJECTS = 520 };
    copies_set_up();
    g_autofree char *text = g_strnfill(KIB(32), 'x');
    GPtrArray *changes = change_list_new();
    for (guint i = 0; i < OBJECTS; i++) {
        g_autofree char *id = g_strdup_printf("00000000-0000-4000-8000-00000002%04x", i);
        json_t *lines = json_array();
        for (guint j = 0; j < 32; j++)
            json_array_append_new(lines, json_stringn(text, 1000));
        g_ptr_array_add(changes,
                        put("decision", id, 0,
                            json_make("{s:s,s:s,s:s,s:s,s:i,s:s,s:s,s:o}", "uuid", id, "author",
                                      "test", "subject_kind", "node", "subject", NODE1, "at_us", 1,
                                      "verdict", "act", "summary", "x", "evidence", lines)));
    }
    g_assert_true(wconf_commit(world.wconf, ID_A, changes, NULL, AUTHOR_COMMIT, NULL, NULL, NULL));
    fake_advance(world.world, 2000);
    json_autoptr part =
        fake_call(node2, NODE1, ROLE_WCONFD, "wait_changes",
                  json_make("{s:i,s:i,s:b}", "history", 5, "serial", 1, "part", true), NULL);
    g_assert_true(json_is_true(json_object_get(part, "snapshot")));
    g_assert_cmpuint(json_array_size(json_object_get(part, "changes")), ==, 0);
    world_tear_down();
}

/* A change is answered when one of the copies in reach has it on its disk. */
static void test_waits(void)
{
    struct fake_reply commit, two, three;
    copies_set_up();
    commit_start(ID_A, "a", &commit);
    /* A master that has just begun cannot know yet who follows. */
    g_assert_false(commit.done);
    fake_advance(world.world, 990);
    g_assert_false(commit.done);
    fake_advance(world.world, 10);
    g_assert_true(commit.done);
    fake_reply_clear(&commit);
    g_autofree char *now = digest();
    ask_start(node2, 5, 2, now, 10000, &two);
    ask_start(node3, 5, 2, now, 10000, &three);
    commit_start(ID_B, "b", &commit);
    assert_says(said(&two), "3: 1 changes");
    assert_says(said(&three), "3: 1 changes");
    g_assert_false(commit.done);
    g_autofree char *next = digest();
    ask_start(node3, 5, 3, next, 10000, &three);
    g_assert_true(commit.done);
    assert_says(world_reply(&commit), "{\"serial\":3}");
    fake_advance(world.world, 20000);
    fake_reply_clear(&three);
    world_tear_down();
}

static char *reach(void)
{
    return world_status("copies");
}

/* The same question to another process: what the one before had stored may be on no copy yet. */
static void test_repeated_replica(void)
{
    struct fake_reply first, again, two;
    const char *question = "{\"instance\":\"" WEB1 "\",\"replica\":\"" REPLICA1
                           "\",\"generation\":4,\"sync\":7,\"state\":\"stale\"}";
    copies_set_up();
    fake_call_start(world.noded[0], 0, NODE1, ROLE_WCONFD, "set_replica_state",
                    json_loads(question, 0, NULL), &first);
    fake_settle(world.world);
    g_assert_false(first.done);
    config_world_restart(&world);
    fake_settle(world.world);
    g_assert_true(first.done && first.error);
    fake_reply_clear(&first);
    config_world_start(&world);
    fake_call_start(world.noded[0], 0, NODE1, ROLE_WCONFD, "set_replica_state",
                    json_loads(question, 0, NULL), &again);
    fake_settle(world.world);
    g_assert_false(again.done);
    g_autofree char *now = digest();
    ask_start(node2, 5, config_serial(wconf_config(world.wconf)), now, 0, &two);
    g_assert_true(again.done);
    assert_says(world_reply(&again), "{\"sync\":8}");
    fake_advance(world.world, 2000);
    fake_reply_clear(&two);
    world_tear_down();
}

static void confirm_start(const char *role, const char *instance, const char *replica,
                          struct fake_reply *reply)
{
    fake_call_start(world.noded[0], 0, NODE1, ROLE_WCONFD, "confirm",
                    json_make("{s:[{s:s,s:s,s:i,s:s}]}", "items", "role", role, "instance",
                              instance, "generation", 4, "replica", replica),
                    reply);
    fake_settle(world.world);
}

/* A node acts on what is confirmed, and the next master has to know it: so it is answered like the
 * commit that it rests on. What copies have long had is answered at once. */
static void test_confirm(void)
{
    struct fake_reply state, mirror, other, two;
    copies_set_up();
    confirm_start("mirror", WEB1, REPLICA1, &mirror); /* nobody has said yet what it has */
    g_assert_false(mirror.done);
    g_autofree char *first = digest();
    ask_start(node2, 5, 1, first, 10000, &two);
    g_assert_true(mirror.done && !mirror.error);
    fake_reply_clear(&mirror);
    fake_call_start(world.noded[0], 0, NODE1, ROLE_WCONFD, "set_replica_state",
                    json_make("{s:s,s:s,s:i,s:i,s:s}", "instance", WEB1, "replica", REPLICA1,
                              "generation", 4, "sync", 7, "state", "stale"),
                    &state);
    assert_says(said(&two), "2: 1 changes");
    confirm_start("mirror", WEB1, REPLICA1, &mirror);
    g_assert_false(mirror.done || state.done);
    confirm_start("run", WEB1, REPLICA2, &other); /* another replica, another change */
    g_assert_true(other.done && !other.error);
    fake_reply_clear(&other);
    g_autofree char *now = digest();
    ask_start(node2, 5, 2, now, 0, &two);
    g_assert_true(mirror.done && state.done);
    assert_says(world_reply(&mirror),
                "{\"items\":[{\"answer\":\"confirmed\",\"generation\":4,\"holder\":\"\",\"kept\":"
                "false,\"other\":"
                "false,\"primary_"
                "node\":\"" NODE1 "\",\"removed\":false,\"replica_state\":\"stale\",\"sync\":8}]}");
    assert_says(world_reply(&state), "{\"sync\":8}");
    /* Asked when the copy has it: this master is not the only one who knows it. */
    confirm_start("mirror", WEB1, REPLICA1, &mirror);
    assert_says(
        world_reply(&mirror),
        "{\"items\":[{\"answer\":\"confirmed\",\"generation\":4,\"holder\":\"\",\"kept\":true,"
        "\"other\":false,\"primary_node\":\"" NODE1
        "\",\"removed\":false,\"replica_state\":\"stale\",\"sync\":8}]}");
    fake_advance(world.world, 2000);
    fake_reply_clear(&two);
    world_tear_down();
}

/* It is no master any more when the copies have it. */
static void test_confirm_step_down(void)
{
    struct fake_reply mirror, refused;
    copies_set_up();
    confirm_start("mirror", WEB1, REPLICA1, &mirror);
    g_assert_false(mirror.done);
    fake_engine_depose(world.engine, true);
    commit_start(ID_B, "b", &refused);
    g_assert_true(mirror.done && mirror.error);
    fake_reply_clear(&mirror);
    fake_reply_clear(&refused);
    world_tear_down();
}

/* The store rots, memory is whole: what is answered then is what a copy has, so nothing is changed
 * without one. */
static void test_damaged_store(void)
{
    struct fake_reply commit, two;
    copies_set_up();
    g_autofree char *first = digest();
    ask_start(node2, 5, 1, first, 10000, &two);
    fake_engine_rot(world.engine, "the store is damaged");
    g_autofree char *problems = world_status("problems");
    g_assert_nonnull(strstr(problems, "the store is damaged"));
    commit_start(ID_A, "a", &commit);
    assert_says(said(&two), "2: 1 changes");
    fake_advance(world.world, 5000); /* nobody is in reach any more, and it waits all the same */
    g_assert_false(commit.done);
    g_autofree char *now = digest();
    ask_start(node2, 5, 2, now, 0, &two);
    g_assert_true(commit.done);
    assert_says(world_reply(&commit), "{\"serial\":2}");
    fake_reply_clear(&two);
    commit_start(ID_B, "b", &commit);
    fake_advance(world.world, 2000);
    g_assert_false(commit.done);
    struct fake_reply refused;
    commit_start(ID_C, "c", &refused);
    g_assert_true(refused.done);
    assert_says(said(&refused),
                "resource_not_available: nothing is changed while the store of the master is "
                "damaged and no "
                "other candidate with a copy is in reach: it would be lost. the store is damaged");
    fake_reply_clear(&commit);
    world_tear_down();
}

/* Who lets changes wait too long is not waited for until it has caught up. */
static void test_patience(void)
{
    struct fake_reply commit, reply;
    copies_set_up();
    g_autofree char *first = digest();
    ask_start(node2, 5, 1, first, 10000, &reply);
    commit_start(ID_A, "a", &commit);
    fake_advance(world.world, 1);
    fake_reply_clear(&reply);
    fake_advance(world.world, 900);
    g_assert_false(commit.done);
    fake_advance(world.world, 200);
    g_assert_true(commit.done);
    assert_says(world_reply(&commit), "{\"serial\":2}");
    assert_says(reach(), "[{\"authority\":false,\"filling\":false,\"node\":\"" NODE2
                         "\",\"reachable\":false,\"serial\":1},"
                         "{\"authority\":false,\"filling\":false,\"node\":\"" NODE3
                         "\",\"reachable\":false,\"serial\":0}]");
    commit_start(ID_B, "b", &commit);
    g_assert_true(commit.done);
    fake_reply_clear(&commit);

    /* Part of it is not enough. */
    expect(node2, 5, 1, first, "3: 2 changes");
    commit_start(ID_C, "c", &commit);
    g_assert_true(commit.done);
    fake_reply_clear(&commit);
    g_autofree char *now = digest();
    ask_start(node2, 5, 4, now, 10000, &reply);
    assert_says(reach(), "[{\"authority\":false,\"filling\":false,\"node\":\"" NODE2
                         "\",\"reachable\":true,\"serial\":4},"
                         "{\"authority\":false,\"filling\":false,\"node\":\"" NODE3
                         "\",\"reachable\":false,\"serial\":0}]");
    fake_advance(world.world, 20000);
    fake_reply_clear(&reply);
    world_tear_down();
}

/* One that keeps up is enough for the answer; the other is counted out all the same. */
static void test_slow_one(void)
{
    struct fake_reply commit, two, three;
    copies_set_up();
    g_autofree char *first = digest();
    ask_start(node2, 5, 1, first, 10000, &two);
    ask_start(node3, 5, 1, first, 10000, &three);
    commit_start(ID_A, "a", &commit);
    fake_advance(world.world, 1);
    fake_reply_clear(&two);
    fake_reply_clear(&three);
    g_autofree char *second = digest();
    ask_start(node2, 5, 2, second, 100000, &two);
    g_assert_true(commit.done);
    fake_reply_clear(&commit);
    fake_advance(world.world, 1100);
    assert_says(reach(), "[{\"authority\":false,\"filling\":false,\"node\":\"" NODE2
                         "\",\"reachable\":true,\"serial\":2},"
                         "{\"authority\":false,\"filling\":false,\"node\":\"" NODE3
                         "\",\"reachable\":false,\"serial\":1}]");
    fake_advance(world.world, 120000);
    fake_reply_clear(&two);
    world_tear_down();
}

/* The ids that an answer has: "ID of SERIAL" for each, of which the last four digits; "…" if there
 * are more behind them. */
static char *ids_of(const json_t *answer)
{
    g_autoptr(GString) text = g_string_new(NULL);
    size_t index;
    json_t *item;
    json_array_foreach(json_object_get(answer, "commits"), index, item) {
        const char *id = json_string_value(json_object_get(item, "id"));
        g_string_append_printf(text, "%s%s of %d", text->len ? ", " : "", id + strlen(id) - 4,
                               (int)json_integer_value(json_object_get(item, "serial")));
    }
    return g_strdup_printf("%s%s", text->str,
                           json_is_true(json_object_get(answer, "more")) ? " …" : "");
}

static char *ask_ids(const char *args)
{
    g_autoptr(GError) error = NULL;
    json_autoptr json =
        fake_call(node2, NODE1, ROLE_WCONFD, "commit_ids", json_loads(args, 0, NULL), &error);
    return json ? ids_of(json)
                : g_strdup_printf("%s: %s", fettle_error_name(error), error->message);
}

/* A copy is told of each commit by its id, all other subscribers are not; one that is filled anew
 * fetches those that came before. */
static void test_ids(void)
{
    struct fake_reply commit, two, three;
    copies_set_up();
    g_autofree char *first = digest();
    assert_says(ask_ids("{\"after\":0}"), "");
    ask_start(node2, 5, 1, first, 10000, &two);
    commit_start(ID_A, "a", &commit);
    fake_advance(world.world, 1);
    assert_says(ids_of(two.result), "000a of 2");
    fake_reply_clear(&two);
    g_autofree char *second = digest();
    ask_start(node2, 5, 2, second, 10000, &two);
    g_free(world_reply(&commit));
    commit_start(ID_B, "b", &commit);
    fake_advance(world.world, 1);
    assert_says(ids_of(two.result), "000b of 3");
    fake_reply_clear(&two);
    ask_start(node3, 5, 1, first, 0, &three);
    fake_advance(world.world, 1);
    assert_says(ids_of(three.result), "000a of 2, 000b of 3");
    fake_reply_clear(&three);
    fake_call_start(world.luxid, 0, NODE1, ROLE_WCONFD, "wait_changes",
                    json_make("{s:i,s:i}", "history", 5, "serial", 1), &three);
    fake_advance(world.world, 2000);
    g_assert_true(three.done);
    assert_says(ids_of(three.result), "");
    fake_reply_clear(&three);
    g_free(world_reply(&commit));
    assert_says(ask_ids("{\"after\":0}"), "000a of 2, 000b of 3");
    assert_says(ask_ids("{\"after\":2}"), "000b of 3");
    assert_says(ask_ids("{\"after\":99}"), "");
    assert_says(ask_ids("{}"), "wrong_input: after: is missing");
    assert_says(ask_ids("{\"after\":-1}"), "wrong_input: after: must be at least 0");
    world_tear_down();
}

static void wait_start(guint64 serial, struct fake_reply *reply)
{
    fake_call_start(
        world.luxid, 0, NODE1, ROLE_WCONFD, "wait_changes",
        json_make("{s:i,s:I,s:i}", "history", 5, "serial", (json_int_t)serial, "wait_ms", 10000),
        reply);
}

/* Copies and others wait in turn, all from the same serial: each gets what is for its sort, the
 * others when the copies have it or have let it wait too long. */
static void test_sorts_of_listeners(void)
{
    struct fake_reply commit, waiting[5];
    copies_set_up();
    g_autofree char *first = digest();
    wait_start(1, &waiting[0]);
    ask_start(node2, 5, 1, first, 10000, &waiting[1]);
    wait_start(1, &waiting[2]);
    ask_start(node3, 5, 1, first, 10000, &waiting[3]);
    wait_start(1, &waiting[4]);
    fake_settle(world.world);
    commit_start(ID_A, "a", &commit);
    fake_advance(world.world, 1);
    for (guint i = 0; i < G_N_ELEMENTS(waiting); i++)
        g_assert_true(waiting[i].done == (i % 2 == 1));
    fake_advance(world.world, 2000);
    for (guint i = 0; i < G_N_ELEMENTS(waiting); i++) {
        g_assert_true(waiting[i].done);
        assert_says(ids_of(waiting[i].result), i % 2 ? "000a of 2" : "");
        g_assert_cmpuint(json_array_size(json_object_get(waiting[i].result, "changes")), ==, 1);
        g_assert_true(i < 2 || json_equal(waiting[i].result, waiting[i - 2].result));
    }
    for (guint i = 0; i < G_N_ELEMENTS(waiting); i++)
        fake_reply_clear(&waiting[i]);
    fake_advance(world.world, 2000);
    fake_reply_clear(&commit);
    world_tear_down();
}

/* They come in pieces, and the oldest are forgotten. */
static void test_many_ids(void)
{
    enum { MANY = LIMIT_COMMIT_IDS + 2 * LIMIT_IDS_PIECE };
    copies_set_up();
    for (guint i = 0; i < MANY; i++) {
        g_autofree char *id = g_strdup_printf("00000000-0000-4000-8000-%012u", i);
        wconf_commit_ids_note(world.wconf, id, 2 + i);
    }
    guint64 after = 0;
    guint count = 0, pieces = 0;
    bool more = true;
    while (more) {
        g_autoptr(GError) error = NULL;
        json_autoptr json = fake_call(node2, NODE1, ROLE_WCONFD, "commit_ids",
                                      json_make("{s:I}", "after", (json_int_t)after), &error);
        g_assert_no_error(error);
        json_t *commits = json_object_get(json, "commits");
        json_t *last = json_array_get(commits, json_array_size(commits) - 1);
        g_assert_cmpuint(json_array_size(commits), <=, LIMIT_IDS_PIECE);
        after = (guint64)json_integer_value(json_object_get(last, "serial"));
        count += (guint)json_array_size(commits);
        more = json_is_true(json_object_get(json, "more"));
        pieces++;
    }
    g_assert_cmpuint(after, ==, 1 + MANY);
    g_assert_cmpuint(count, >=, LIMIT_COMMIT_IDS);
    g_assert_cmpuint(count, <=, LIMIT_COMMIT_IDS + LIMIT_IDS_PIECE);
    g_assert_cmpuint(pieces, ==, (count + LIMIT_IDS_PIECE - 1) / LIMIT_IDS_PIECE);
    world_tear_down();
}

/* A node that is no candidate any more gets nothing, wherever it says that its copy is: not even
 * the change by which it is none. */
static void test_no_candidate(void)
{
    copies_set_up();
    g_autofree char *first = digest();
    g_free(job_locks(&world, 17, "x node-param/" NODE2, false));
    assert_says(job_commit(&world, 17, changes_of(put("node", NODE2, 1, object_node(NODE2)), NULL)),
                "{\"serial\":2}");
    g_autofree char *now = digest();
    const char *refusal = "permission_denied: node node2 is no master candidate: it keeps no copy "
                          "of the configuration";
    expect(node2, 5, 1, first, refusal);
    expect(node2, 5, 2, now, refusal);
    expect(node2, 0, 0, "0", refusal);
    expect(node3, 5, 2, now, "2: 0 changes");
    world_tear_down();
}

/* A mastership ends: who waits for copies does not wait for ever. */
static void test_step_down(void)
{
    struct fake_reply commit, two;
    copies_set_up();
    g_autofree char *first = digest();
    ask_start(node2, 5, 1, first, 10000, &two);
    commit_start(ID_A, "a", &commit);
    fake_advance(world.world, 1);
    fake_reply_clear(&two);
    g_assert_false(commit.done);
    fake_engine_depose(world.engine, true);
    struct fake_reply refused;
    commit_start(ID_B, "b", &refused);
    g_assert_true(commit.done && refused.done);
    g_autofree char *unknown = world_reply(&commit);
    g_assert_true(g_str_has_prefix(unknown, "unknown_result: repeat the commit with its id: "));
    fake_reply_clear(&refused);
    world_tear_down();
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/copies/refill#SAF-07", test_refill);
    g_test_add_func("/copies/later-copy#SAF-03,SAF-07", test_later_copy);
    g_test_add_func("/copies/pieces#SAF-07", test_pieces);
    g_test_add_func("/copies/parts#SAF-07", test_parts);
    g_test_add_func("/copies/waits#SAF-07,WCF-05", test_waits);
    g_test_add_func("/copies/repeated-replica#SAF-07,SAF-13", test_repeated_replica);
    g_test_add_func("/copies/confirm#SAF-03,SAF-07", test_confirm);
    g_test_add_func("/copies/confirm-step-down#SAF-03,SAF-08", test_confirm_step_down);
    g_test_add_func("/copies/patience#SAF-07", test_patience);
    g_test_add_func("/copies/slow-one#SAF-07", test_slow_one);
    g_test_add_func("/copies/ids#SAF-04", test_ids);
    g_test_add_func("/copies/sorts-of-listeners#SAF-04", test_sorts_of_listeners);
    g_test_add_func("/copies/damaged-store#SAF-07,SAF-08", test_damaged_store);
    g_test_add_func("/copies/part-too-large#SAF-07", test_part_too_large);
    g_test_add_func("/copies/many-ids#SAF-04", test_many_ids);
    g_test_add_func("/copies/no-candidate#WCF-04", test_no_candidate);
    g_test_add_func("/copies/step-down#SAF-04,SAF-08", test_step_down);
    return g_test_run();
}
