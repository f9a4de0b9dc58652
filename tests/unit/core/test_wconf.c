/* The configuration daemon against a fake engine: commits on their way, epoch, stream,
 * confirmations, locks, nodes. */
#include <string.h>

#include "config_world.h"
#include "proto/records.h"

static struct config_world world;

static void set_up(void)
{
    config_world_init(&world, initial_changes());
    config_world_start(&world);
}

static void tear_down(void)
{
    config_world_clear(&world);
}

static char *status_of(const char *member)
{
    g_autofree char *text = ask_wconf(&world, world.luxid, "cluster_status", json_object());
    json_autoptr json = json_parse_limited(text, strlen(text), KIB(64), NULL);
    return json ? json_to_text(json_object_get(json, member)) : g_strdup(text);
}

static struct change *memory(guint64 version, int mib)
{
    return put("instance", WEB1, version, with(object_web1(), "memory", json_integer(mib)));
}

static struct change *tag(const char *text)
{
    g_autofree char *key = g_strdup_printf("instance/" WEB1 "/%s", text);
    return put("tag", key, 0,
               json_make("{s:s,s:s,s:s}", "kind", "instance", "object", WEB1, "tag", text));
}

/* A commit by luxid that is not waited for. */
static void start_commit(const char *commit_id, GPtrArray *changes, struct fake_reply *reply)
{
    record_autoptr(commit_args) args = commit_args_new();
    g_free(args->commit_id);
    args->commit_id = g_strdup(commit_id);
    g_ptr_array_unref(args->changes);
    args->changes = changes;
    json_t *json = commit_args_to_json(args);
    json_object_set_new(json, "owner",
                        json_make("{s:s,s:s}", "job", "luxid", "livelock", "luxid-1"));
    fake_call_start(world.luxid, 0, NODE1, ROLE_WCONFD, "commit", json, reply);
    fake_settle(world.world);
}

/* What came: "", the answer, or the error. Clears it. */
static char *reply_text(struct fake_reply *reply)
{
    char *text = !reply->done   ? g_strdup("")
                 : reply->error ? g_strdup_printf("%s: %s", fettle_error_name(reply->error),
                                                  reply->error->message)
                                : json_to_text(reply->result);
    if (reply->done)
        fake_reply_clear(reply);
    return text;
}

#define ID_A "00000000-0000-4000-8000-00000000000a"
#define ID_B "00000000-0000-4000-8000-00000000000b"
#define ID_C "00000000-0000-4000-8000-00000000000c"

/* --- commits --- */

static void test_commit(void)
{
    set_up();
    assert_says(job_locks(&world, 17, "x instance/web1", false),
                "{\"blockers\":[],\"granted\":true,\"pending_nodes\":[]}");
    assert_says(job_commit(&world, 17, changes_of(memory(1, 256), tag("a"), NULL)),
                "{\"serial\":2}");
    assert_says(job_commit(&world, 17, changes_of(memory(2, 512), NULL)), "{\"serial\":3}");
    g_assert_cmpuint(fake_engine_serial(world.engine), ==, 3);
    assert_says(status_of("serial"), "3");
    tear_down();
}

static void test_version_conflicts(void)
{
    set_up();
    assert_says(job_locks(&world, 17, "x instance/web1", false),
                "{\"blockers\":[],\"granted\":true,\"pending_nodes\":[]}");
    assert_says(job_commit(&world, 17, changes_of(memory(1, 256), NULL)), "{\"serial\":2}");
    assert_says(job_commit(&world, 17, changes_of(memory(1, 512), NULL)),
                "version_conflict: instance web1 (" WEB1
                "): was read at version 1, it is at 2 now");
    assert_says(job_commit(&world, 17, changes_of(tag("x"), memory(0, 512), NULL)),
                "version_conflict: instance web1 (" WEB1 "): exists already (version 2)");
    assert_says(job_commit(&world, 17, changes_of(del("tag", "instance/" WEB1 "/x", 2), NULL)),
                "version_conflict: tag instance/" WEB1
                "/x: was read at version 2, it does not exist now");
    assert_says(job_commit(&world, 17, changes_of(tag("x"), tag("x"), NULL)),
                "wrong_input: changes[1]: tag instance/" WEB1
                "/x is changed twice in one transaction");
    assert_says(job_commit(&world, 17, changes_of(put("gadget", "x", 0, json_object()), NULL)),
                "wrong_input: changes[0].kind: \"gadget\" is no kind of object");
    g_assert_cmpuint(fake_engine_serial(world.engine), ==, 2);
    tear_down();
}

static void test_bad_object_changes_nothing(void)
{
    set_up();
    assert_says(job_locks(&world, 17, "x instance/web1", false),
                "{\"blockers\":[],\"granted\":true,\"pending_nodes\":[]}");
    g_autofree char *said = job_commit(&world, 17, changes_of(tag("x"), memory(1, 0), NULL));
    g_assert_true(g_str_has_prefix(said, "wrong_input: changes[1]: instance " WEB1 ": memory: "));
    assert_says(job_commit(&world, 17, changes_of(tag("x"), memory(1, 256), NULL)),
                "{\"serial\":2}");
    tear_down();
}

static void test_locks_cover_changes(void)
{
    set_up();
    static const char fresh[] = "aaaaaaaa-0000-4000-8000-000000000009";
    assert_says(job_commit(&world, 17, changes_of(memory(1, 256), NULL)),
                "lock_missing: instance web1 (" WEB1
                "): job 17 does not hold the lock instance/web1 exclusively");
    assert_says(job_locks(&world, 17, "s instance/web1", false),
                "{\"blockers\":[],\"granted\":true,\"pending_nodes\":[]}");
    assert_says(job_commit(&world, 17, changes_of(memory(1, 256), NULL)),
                "lock_missing: instance web1 (" WEB1
                "): job 17 does not hold the lock instance/web1 exclusively");
    assert_says(job_commit(&world, 17,
                           changes_of(put("replica", REPLICA1, 1,
                                          with(object_replica1(), "sync", json_integer(8))),
                                      NULL)),
                "lock_missing: replica " REPLICA1
                ": job 17 does not hold the lock instance/web1 exclusively");
    assert_says(job_commit(&world, 17, changes_of(put("node", NODE3, 1, object_node(NODE3)), NULL)),
                "lock_missing: node node3 (" NODE3 "): job 17 does not hold the lock node/" NODE3
                " exclusively");
    assert_says(job_commit(&world, 17,
                           changes_of(put("nodegroup", GROUP, 1,
                                          json_make("{s:s,s:s}", "uuid", GROUP, "name", "g")),
                                      NULL)),
                "lock_missing: nodegroup g (" GROUP
                "): job 17 does not hold the lock cluster/BGL exclusively");
    assert_says(job_commit(&world, 17,
                           changes_of(put("removed", fresh, 0,
                                          json_make("{s:s,s:s,s:i}", "uuid", fresh, "name", "old",
                                                    "generation", 3)),
                                      NULL)),
                "lock_missing: removed old (aaaaaaaa-0000-4000-8000-000000000009): job 17 does not "
                "hold the lock "
                "instance/old exclusively");
    /* A new name needs its lock too; an instance that goes takes its replica with it under one. */
    assert_says(job_locks(&world, 17, "x instance/web1", false),
                "{\"blockers\":[],\"granted\":true,\"pending_nodes\":[]}");
    assert_says(job_commit(&world, 17,
                           changes_of(put("instance", WEB1, 1,
                                          with(object_web1(), "name", json_string("web2"))),
                                      NULL)),
                "lock_missing: instance web2 (" WEB1
                "): job 17 does not hold the lock instance/web2 exclusively");
    struct change *removed =
        put("removed", WEB1, 0,
            json_make("{s:s,s:s,s:i}", "uuid", WEB1, "name", "web1", "generation", 5));
    assert_says(job_commit(&world, 17,
                           changes_of(del("replica", REPLICA1, 1), del("instance", WEB1, 1),
                                      removed, NULL)),
                "{\"serial\":2}");
    tear_down();
}

static void test_group_lock_covers(void)
{
    set_up();
    assert_says(job_locks(&world, 17, "x instance/[lockset]", false),
                "{\"blockers\":[],\"granted\":true,\"pending_nodes\":[]}");
    assert_says(job_commit(&world, 17, changes_of(memory(1, 256), NULL)), "{\"serial\":2}");
    tear_down();
}

static void test_invariants_are_enforced(void)
{
    set_up();
    assert_says(job_locks(&world, 17, "x instance/web1", false),
                "{\"blockers\":[],\"granted\":true,\"pending_nodes\":[]}");
    assert_says(job_commit(&world, 17,
                           changes_of(put("instance", WEB1, 1,
                                          with(object_web1(), "generation", json_integer(3))),
                                      NULL)),
                "unsafe: instance web1 (" WEB1 "): generation: goes from 4 to 3; a step is 0 or 1");
    assert_says(job_commit(&world, 17, changes_of(memory(1, 256), NULL)), "{\"serial\":2}");
    assert_says(status_of("problems"), "[]");
    tear_down();
}

static void test_pipeline(void)
{
    struct fake_reply first, second, late;
    set_up();
    fake_engine_hold(world.engine);
    start_commit(ID_A, changes_of(tag("a"), NULL), &first);
    /* Built on the first, which nobody has seen stored yet. */
    start_commit(
        ID_B,
        changes_of(put("tag", "instance/" WEB1 "/a", 2,
                       json_make("{s:s,s:s,s:s}", "kind", "instance", "object", WEB1, "tag", "a")),
                   NULL),
        &second);
    start_commit(ID_C, changes_of(tag("a"), NULL), &late);
    g_assert_cmpuint(fake_engine_queued(world.engine), ==, 2);
    assert_says(reply_text(&late),
                "version_conflict: tag instance/" WEB1 "/a: exists already (version 3)");
    assert_says(reply_text(&first), "");
    /* Nobody is told of what is not stored. */
    assert_says(status_of("serial"), "1");
    fake_engine_release(world.engine);
    fake_settle(world.world);
    assert_says(reply_text(&first), "{\"serial\":2}");
    assert_says(reply_text(&second), "{\"serial\":3}");
    assert_says(status_of("serial"), "3");
    tear_down();
}

static void test_same_id_once(void)
{
    struct fake_reply one, again, later;
    set_up();
    fake_engine_hold(world.engine);
    start_commit(ID_A, changes_of(tag("a"), NULL), &one);
    start_commit(ID_A, changes_of(tag("a"), NULL), &again);
    g_assert_cmpuint(fake_engine_queued(world.engine), ==, 1);
    fake_engine_release(world.engine);
    fake_settle(world.world);
    assert_says(reply_text(&one), "{\"serial\":2}");
    assert_says(reply_text(&again), "{\"serial\":2}");
    config_world_restart(&world);
    config_world_start(&world);
    start_commit(ID_A, changes_of(tag("a"), NULL), &later);
    assert_says(reply_text(&later), "{\"serial\":2}");
    g_assert_cmpuint(fake_engine_commits(world.engine), ==, 1);
    tear_down();
}

static void test_refused_commit_steps_down(void)
{
    struct fake_reply first, second;
    set_up();
    fake_engine_hold(world.engine);
    start_commit(ID_A, changes_of(tag("a"), NULL), &first);
    start_commit(ID_B, changes_of(tag("b"), NULL), &second);
    fake_engine_fail_next(world.engine, ENGINE_REFUSED, false);
    fake_engine_release(world.engine);
    fake_settle(world.world);
    assert_says(reply_text(&first),
                "resource_not_available: the commit was not stored: disk full (made by the test)");
    g_assert_cmpstr(world.stepped_down, ==,
                    "resource_not_available: serial 2: the commit was not stored: disk full (made "
                    "by the test)");
    assert_says(status_of("serial"), "resource_not_available: serial 2: the commit was not stored: "
                                     "disk full (made by the test)");
    g_assert_true(second.done && second.error);
    fake_reply_clear(&second);
    tear_down();
}

static void test_unknown_result_is_looked_up(void)
{
    struct fake_reply first, again;
    set_up();
    fake_engine_fail_next(world.engine, ENGINE_UNKNOWN, true);
    start_commit(ID_A, changes_of(tag("a"), NULL), &first);
    assert_says(reply_text(&first),
                "unknown_result: whether the commit is stored is unknown (disk full (made by the "
                "test)); repeat it with its id");
    g_assert_nonnull(world.stepped_down);
    config_world_restart(&world);
    config_world_start(&world);
    start_commit(ID_A, changes_of(tag("a"), NULL), &again);
    assert_says(reply_text(&again), "{\"serial\":2}");
    g_assert_cmpuint(fake_engine_commits(world.engine), ==, 1);
    tear_down();
}

static void test_bad_requests(void)
{
    set_up();
    assert_says(
        ask_wconf(&world, world.luxid, "commit",
                  json_make("{s:{s:s,s:s},s:s,s:[]}", "owner", "job", "luxid", "livelock",
                            "../etc/passwd", "commit_id", ID_A, "changes")),
        "wrong_input: owner.livelock: \"../etc/passwd\" is not the plain name of a lock file");
    assert_says(ask_wconf(&world, world.luxid, "commit",
                          json_make("{s:{s:s,s:s},s:s,s:[]}", "owner", "job", "luxid", "livelock",
                                    "luxid-1", "commit_id", ID_A, "changes")),
                "wrong_input: changes: must have at least 1 element");
    assert_says(ask_wconf(&world, world.luxid, "commit",
                          json_make("{s:s,s:[]}", "commit_id", ID_A, "changes")),
                "wrong_input: owner: is missing");
    assert_says(ask_wconf(&world, world.noded[0], "commit", json_object()),
                "permission_denied: role noded may not call wconfd.commit");
    tear_down();
}

/* --- epoch --- */

static void test_restart_keeps_epoch_and_locks(void)
{
    set_up();
    guint64 epoch = world.epoch;
    assert_says(job_locks(&world, 17, "x instance/web1, s node/" NODE1, false),
                "{\"blockers\":[],\"granted\":true,\"pending_nodes\":[]}");
    assert_says(job_locks(&world, 18, "x instance/db1", false),
                "{\"blockers\":[],\"granted\":true,\"pending_nodes\":[]}");
    config_world_restart(&world);
    fake_livelock(world.world, NODE1, "job-18", LIVELOCK_DEAD);
    config_world_start(&world);
    g_assert_cmpuint(world.epoch, ==, epoch);
    assert_says(
        ask_wconf(&world, world.luxid, "list_all_locks", json_object()),
        "{\"locks\":[{\"mode\":\"exclusive\",\"name\":\"instance/"
        "web1\",\"owner\":{\"job\":\"17\",\"livelock\":\"job-17\",\"pid\":0},\"waiting\":false},"
        "{\"mode\":\"shared\",\"name\":\"node/" NODE1
        "\",\"owner\":{\"job\":\"17\",\"livelock\":\"job-17\",\"pid\":0},\"waiting\":false}]}");
    assert_says(job_commit(&world, 17, changes_of(memory(1, 256), NULL)), "{\"serial\":2}");
    tear_down();
}

static void test_reboot_is_a_new_epoch(void)
{
    set_up();
    guint64 epoch = world.epoch;
    assert_says(job_locks(&world, 17, "x instance/web1", false),
                "{\"blockers\":[],\"granted\":true,\"pending_nodes\":[]}");
    fake_kill(world.wconfd);
    fake_reboot(world.world, NODE1);
    config_world_restart(&world);
    config_world_start(&world);
    g_assert_cmpuint(world.epoch, ==, epoch + 1);
    assert_says(ask_wconf(&world, world.luxid, "list_all_locks", json_object()), "{\"locks\":[]}");
    /* What belonged to the old epoch may change nothing any more. */
    world.epoch = epoch;
    assert_says(job_locks(&world, 17, "x instance/web1", false),
                "stale_epoch: update_locks of job 17: it belongs to history 5 epoch 1, the master "
                "is at history 5 epoch 2");
    assert_says(job_commit(&world, 17, changes_of(tag("late"), NULL)),
                "stale_epoch: commit of job 17: it belongs to history 5 epoch 1, the master is at "
                "history 5 epoch 2");
    tear_down();
}

static void test_damaged_journal_is_a_new_epoch(void)
{
    set_up();
    guint64 epoch = world.epoch;
    assert_says(job_locks(&world, 17, "x instance/web1", false),
                "{\"blockers\":[],\"granted\":true,\"pending_nodes\":[]}");
    config_world_restart(&world);
    fake_file_put(world.world, NODE1, FILE_RUN, "locks.journal", "rubbish\n");
    config_world_start(&world);
    g_assert_cmpuint(world.epoch, ==, epoch + 1);
    assert_says(ask_wconf(&world, world.luxid, "list_all_locks", json_object()), "{\"locks\":[]}");
    tear_down();
}

static void start_and_fail(void *data)
{
    g_autoptr(GError) error = NULL;
    g_assert_false(wconf_start(world.wconf, &error));
    *(char **)data = g_strdup_printf("%s: %s", fettle_error_name(error), error->message);
}

static char *start_fails(GPtrArray *objects)
{
    char *said = NULL;
    config_world_init(&world, objects);
    fake_run(world.wconfd, start_and_fail, &said);
    assert_says(status_of("serial"),
                "resource_not_available: the configuration daemon is starting; try again");
    tear_down();
    return said;
}

static void test_start_refuses(void)
{
    GPtrArray *other_master = initial_changes();
    struct change *cluster = other_master->pdata[0];
    json_object_set_new(cluster->object, "master_node", json_string(NODE2));
    assert_says(start_fails(other_master), "not_master: the master is node2, this is node " NODE1);
    GPtrArray *damaged = initial_changes();
    struct change *web1 = damaged->pdata[5];
    json_object_set_new(web1->object, "memory", json_string("much"));
    g_autofree char *said = start_fails(damaged);
    g_assert_true(g_str_has_prefix(
        said, "corrupt: the store has an object that cannot be read: instance " WEB1 ": memory: "));
    assert_says(
        start_fails(changes_of(put("counter", "job", 1, json_make("{s:i}", "value", 1)), NULL)),
        "corrupt: the store has no cluster in it; restore a copy");
}

static void test_lost_mastership(void)
{
    set_up();
    fake_engine_depose(world.engine, true);
    assert_says(ask_wconf(&world, world.noded[0], "confirm",
                          json_make("{s:[{s:s,s:s,s:i}]}", "items", "role", "run", "instance", WEB1,
                                    "generation", 4)),
                "not_master: mastership is lost: the engine says that another is master");
    g_assert_nonnull(world.stepped_down);
    assert_says(status_of("serial"),
                "not_master: mastership is lost: the engine says that another is master");
    tear_down();
}

/* --- change stream --- */

static json_t *since(guint64 serial, guint wait_ms)
{
    return json_make("{s:i,s:I,s:i}", "history", 5, "serial", (json_int_t)serial, "wait_ms",
                     wait_ms);
}

static void test_stream(void)
{
    struct fake_reply reply;
    set_up();
    fake_call_start(world.luxid, 0, NODE1, ROLE_WCONFD, "wait_changes", since(1, 10000), &reply);
    fake_settle(world.world);
    g_assert_false(reply.done);
    fake_engine_hold(world.engine);
    struct fake_reply one, two;
    start_commit(ID_A, changes_of(tag("a"), NULL), &one);
    start_commit(ID_B, changes_of(tag("b"), NULL), &two);
    fake_advance(world.world, 100);
    g_assert_false(reply.done);
    fake_engine_release(world.engine);
    fake_advance(world.world, 1);
    assert_says(reply_text(&reply),
                "{\"changes\":[{\"key\":\"instance/" WEB1
                "/a\",\"kind\":\"tag\",\"object\":{\"kind\":\"instance\",\"object\":\"" WEB1
                "\",\"tag\":\"a\"},\"op\":\"put\",\"version\":2},"
                "{\"key\":\"instance/" WEB1
                "/b\",\"kind\":\"tag\",\"object\":{\"kind\":\"instance\",\"object\":\"" WEB1
                "\",\"tag\":\"b\"},\"op\":\"put\",\"version\":3}],"
                "\"epoch\":1,\"history\":5,\"serial\":3,\"snapshot\":false}");
    fake_reply_clear(&one);
    fake_reply_clear(&two);
    /* Put and deleted since: only the deletion is told. */
    start_commit(ID_C, changes_of(del("tag", "instance/" WEB1 "/a", 2), NULL), &one);
    fake_reply_clear(&one);
    g_autofree char *said = ask_wconf(&world, world.luxid, "wait_changes", since(1, 0));
    g_assert_nonnull(strstr(said, "{\"key\":\"instance/" WEB1
                                  "/a\",\"kind\":\"tag\",\"op\":\"delete\",\"version\":4}"));
    g_assert_null(strstr(said, "\"tag\":\"a\""));
    tear_down();
}

static void test_stream_wait_is_over(void)
{
    struct fake_reply reply;
    set_up();
    fake_call_start(world.luxid, 0, NODE1, ROLE_WCONFD, "wait_changes", since(1, 10000), &reply);
    fake_advance(world.world, 9999);
    g_assert_false(reply.done);
    fake_advance(world.world, 1);
    assert_says(reply_text(&reply),
                "{\"changes\":[],\"epoch\":1,\"history\":5,\"serial\":1,\"snapshot\":false}");
    tear_down();
}

static guint snapshot_size(json_t *args)
{
    g_autofree char *said = ask_wconf(&world, world.luxid, "wait_changes", args);
    json_autoptr json = json_parse_limited(said, strlen(said), MIB(1), NULL);
    g_assert_nonnull(json);
    return json_is_true(json_object_get(json, "snapshot"))
               ? (guint)json_array_size(json_object_get(json, "changes"))
               : 0;
}

static void test_snapshots(void)
{
    struct fake_reply reply;
    set_up();
    g_assert_cmpuint(snapshot_size(since(0, 0)), ==, 8);
    g_assert_cmpuint(snapshot_size(since(99, 5000)), ==, 8);
    g_assert_cmpuint(snapshot_size(json_make("{s:i,s:i}", "history", 4, "serial", 1)), ==, 8);
    start_commit(ID_A, changes_of(tag("a"), NULL), &reply);
    fake_reply_clear(&reply);
    g_assert_cmpuint(snapshot_size(since(1, 0)), ==, 0);
    config_world_restart(&world);
    config_world_start(&world);
    /* A new wconfd does not know what came before it. */
    g_assert_cmpuint(snapshot_size(since(1, 0)), ==, 9);
    g_assert_cmpuint(snapshot_size(since(2, 0)), ==, 0);
    tear_down();
}

static void test_change_log_is_bounded(void)
{
    set_up();
    for (guint i = 0; i < LIMIT_CHANGE_LOG / 4096 + 1; i++) {
        GPtrArray *changes = changes_of(tag("first"), NULL);
        struct fake_reply reply;
        g_ptr_array_set_size(changes, 0);
        for (guint j = 0; j < 4096; j++) {
            g_autofree char *text = g_strdup_printf("t%u-%u", i, j);
            g_ptr_array_add(changes, tag(text));
        }
        g_autofree char *id = g_strdup_printf("00000000-0000-4000-8000-%012u", i);
        start_commit(id, changes, &reply);
        g_assert_no_error(reply.error);
        fake_reply_clear(&reply);
    }
    g_autofree char *old = ask_wconf(&world, world.luxid, "wait_changes", since(1, 0));
    g_assert_nonnull(strstr(old, "\"snapshot\":true"));
    g_autofree char *recent = ask_wconf(&world, world.luxid, "wait_changes",
                                        since(fake_engine_serial(world.engine) - 1, 0));
    g_assert_nonnull(strstr(recent, "\"snapshot\":false"));
    tear_down();
}

/* --- confirmations --- */

static char *confirm(guint node, const char *role, const char *instance, int generation,
                     const char *replica)
{
    return ask_wconf(&world, world.noded[node], "confirm",
                     json_make("{s:[{s:s,s:s,s:i,s:s}]}", "items", "role", role, "instance",
                               instance, "generation", generation, "replica", replica));
}

#define ANSWER(word, rest) "{\"items\":[{\"answer\":\"" word "\"," rest "}]}"
#define AT4                                                                                        \
    "\"generation\":4,\"primary_node\":\"" NODE1                                                   \
    "\",\"removed\":false,\"replica_state\":\"in-sync\",\"sync\":7"
#define AT4_OTHER                                                                                  \
    "\"generation\":4,\"primary_node\":\"" NODE1                                                   \
    "\",\"removed\":false,\"replica_state\":\"\",\"sync\":0"

static void test_confirm(void)
{
    set_up();
    assert_says(confirm(0, "run", WEB1, 4, ""), ANSWER("confirmed", AT4));
    assert_says(confirm(0, "mirror", WEB1, 4, REPLICA1), ANSWER("confirmed", AT4));
    assert_says(confirm(1, "export", WEB1, 4, REPLICA1), ANSWER("confirmed", AT4));
    /* Another node, another replica, a generation that is over, or that never was. */
    assert_says(confirm(1, "run", WEB1, 4, ""), ANSWER("refused", AT4));
    assert_says(confirm(2, "export", WEB1, 4, REPLICA1), ANSWER("refused", AT4));
    assert_says(confirm(1, "export", WEB1, 4, REPLICA2), ANSWER("refused", AT4_OTHER));
    assert_says(confirm(0, "mirror", WEB1, 4, REPLICA2), ANSWER("refused", AT4_OTHER));
    assert_says(confirm(0, "run", WEB1, 3, ""), ANSWER("refused", AT4));
    assert_says(confirm(0, "run", WEB1, 5, ""), ANSWER("refused", AT4));
    assert_says(confirm(0, "run", NODE1, 4, ""),
                ANSWER("refused", "\"generation\":0,\"primary_node\":\"\",\"removed\":false,"
                                  "\"replica_state\":\"\",\"sync\":0"));
    tear_down();
}

static void test_confirm_removed(void)
{
    set_up();
    struct change *removed = put(
        "removed", DB1, 0, json_make("{s:s,s:s,s:i}", "uuid", DB1, "name", "db1", "generation", 3));
    assert_says(job_locks(&world, 17, "x instance/db1", false),
                "{\"blockers\":[],\"granted\":true,\"pending_nodes\":[]}");
    assert_says(job_commit(&world, 17, changes_of(del("instance", DB1, 1), removed, NULL)),
                "{\"serial\":2}");
    assert_says(confirm(0, "run", DB1, 2, ""),
                ANSWER("refused", "\"generation\":3,\"primary_node\":\"\",\"removed\":true,"
                                  "\"replica_state\":\"\",\"sync\":0"));
    tear_down();
}

static void test_confirm_waits_for_barrier(void)
{
    struct fake_reply stop, question;
    set_up();
    assert_says(job_locks(&world, 17, "x instance/web1", false),
                "{\"blockers\":[],\"granted\":true,\"pending_nodes\":[]}");
    fake_engine_hold(world.engine);
    json_t *web1 =
        with(with(object_web1(), "generation", json_integer(5)), "holder", json_string(""));
    json_t *stale =
        with(with(with(object_replica1(), "generation", json_integer(5)), "sync", json_integer(8)),
             "state", json_string("stale"));
    record_autoptr(commit_args) args = commit_args_new();
    g_free(args->commit_id);
    args->commit_id = g_strdup(ID_A);
    g_ptr_array_unref(args->changes);
    args->changes =
        changes_of(put("instance", WEB1, 1, web1), put("replica", REPLICA1, 1, stale), NULL);
    json_t *json = commit_args_to_json(args);
    json_object_set_new(json, "owner", owner_json(17));
    fake_call_start_stamped(world.job, 17, (struct stamp){5, world.epoch}, NODE1, ROLE_WCONFD,
                            "commit", json, &stop);
    fake_settle(world.world);
    /* Asked while the stop is on its way: the answer comes after it, and shows it. */
    fake_call_start(
        world.noded[0], 0, NODE1, ROLE_WCONFD, "confirm",
        json_make("{s:[{s:s,s:s,s:i}]}", "items", "role", "run", "instance", WEB1, "generation", 4),
        &question);
    fake_settle(world.world);
    g_assert_false(question.done);
    fake_engine_release(world.engine);
    fake_settle(world.world);
    assert_says(reply_text(&stop), "{\"serial\":2}");
    assert_says(reply_text(&question),
                ANSWER("refused", "\"generation\":5,\"primary_node\":\"" NODE1
                                  "\",\"removed\":false,\"replica_state\":\"stale\",\"sync\":8"));
    tear_down();
}

static void test_confirms_share_a_barrier(void)
{
    enum { QUESTIONS = 20 };
    struct fake_reply replies[QUESTIONS];
    set_up();
    fake_engine_hold(world.engine);
    for (guint i = 0; i < QUESTIONS; i++) {
        fake_call_start(world.noded[0], 0, NODE1, ROLE_WCONFD, "confirm",
                        json_make("{s:[{s:s,s:s,s:i}]}", "items", "role", "run", "instance", WEB1,
                                  "generation", 4),
                        &replies[i]);
        fake_settle(world.world);
    }
    g_assert_cmpuint(fake_engine_queued(world.engine), ==, 1);
    fake_engine_release(world.engine);
    fake_settle(world.world);
    for (guint i = 0; i < QUESTIONS; i++)
        assert_says(reply_text(&replies[i]), ANSWER("confirmed", AT4));
    tear_down();
}

/* --- replica states --- */

static char *set_replica(guint node, const char *replica, int generation, int sync,
                         const char *state)
{
    return ask_wconf(&world, world.noded[node], "set_replica_state",
                     json_make("{s:s,s:s,s:i,s:i,s:s,s:s}", "instance", WEB1, "replica", replica,
                               "generation", generation, "sync", sync, "state", state, "why",
                               "test"));
}

static void test_set_replica_state(void)
{
    set_up();
    assert_says(set_replica(0, REPLICA1, 4, 7, "stale"), "{\"sync\":8}");
    assert_says(set_replica(0, REPLICA1, 4, 7, "stale"), "{\"sync\":8}");
    assert_says(set_replica(0, REPLICA1, 4, 7, "syncing"),
                "version_conflict: instance web1: replica " REPLICA1
                ": was known at sync 7, it is stale at sync 8 now");
    assert_says(set_replica(0, REPLICA1, 4, 8, "in-sync"),
                "wrong_state: instance web1: replica " REPLICA1
                ": is stale, only a syncing one becomes in-sync (SAF-12)");
    assert_says(set_replica(0, REPLICA1, 4, 8, "syncing"), "{\"sync\":9}");
    /* The late repeat of the first: its time is over. */
    assert_says(set_replica(0, REPLICA1, 4, 7, "stale"),
                "version_conflict: instance web1: replica " REPLICA1
                ": was known at sync 7, it is syncing at sync 9 now");
    assert_says(set_replica(0, REPLICA1, 4, 9, "in-sync"), "{\"sync\":10}");
    g_assert_cmpuint(fake_engine_commits(world.engine), ==, 3);
    assert_says(confirm(0, "mirror", WEB1, 4, REPLICA1),
                ANSWER("confirmed",
                       "\"generation\":4,\"primary_node\":\"" NODE1
                       "\",\"removed\":false,\"replica_state\":\"in-sync\",\"sync\":10"));
    tear_down();
}

static void test_set_replica_state_refusals(void)
{
    set_up();
    assert_says(set_replica(1, REPLICA1, 4, 7, "stale"),
                "permission_denied: instance web1: node2 does not hold generation 4, node1 does");
    assert_says(set_replica(0, REPLICA1, 3, 7, "stale"),
                "superseded: instance web1: generation 3 is over, 4 is on record (holder: node1)");
    assert_says(set_replica(0, REPLICA1, 5, 7, "stale"),
                "wrong_state: instance web1: generation 5 was never committed, 4 is on record");
    assert_says(set_replica(0, REPLICA2, 4, 7, "stale"),
                "unknown_entity: instance web1: replica " REPLICA2 " is not on record (" REPLICA1
                " is)");
    assert_says(ask_wconf(&world, world.noded[0], "set_replica_state",
                          json_make("{s:s,s:s,s:i,s:i,s:s}", "instance", NODE3, "replica", REPLICA1,
                                    "generation", 4, "sync", 7, "state", "stale")),
                "unknown_entity: instance " NODE3 " does not exist");
    g_assert_cmpuint(fake_engine_commits(world.engine), ==, 0);
    tear_down();
}

static void test_refusal_needs_commit(void)
{
    struct fake_reply failover, question;
    set_up();
    assert_says(job_locks(&world, 17, "x instance/web1, x node/" NODE1, false),
                "{\"blockers\":[],\"granted\":true,\"pending_nodes\":[]}");
    fake_engine_hold(world.engine);
    json_t *moved = with(with(with(object_web1(), "generation", json_integer(5)), "primary_node",
                              json_string(NODE2)),
                         "holder", json_string(NODE2));
    moved = with(with(moved, "replica", json_string("")), "secondary_node", json_string(""));
    record_autoptr(commit_args) args = commit_args_new();
    g_free(args->commit_id);
    args->commit_id = g_strdup(ID_A);
    g_ptr_array_unref(args->changes);
    args->changes =
        changes_of(put("instance", WEB1, 1, moved), del("replica", REPLICA1, 1),
                   put("node", NODE1, 1, with(object_node(NODE1), "offline", json_true())), NULL);
    json_t *json = commit_args_to_json(args);
    json_object_set_new(json, "owner", owner_json(17));
    fake_call_start_stamped(world.job, 17, (struct stamp){5, world.epoch}, NODE1, ROLE_WCONFD,
                            "commit", json, &failover);
    fake_settle(world.world);
    fake_call_start(world.noded[0], 0, NODE1, ROLE_WCONFD, "set_replica_state",
                    json_make("{s:s,s:s,s:i,s:i,s:s}", "instance", WEB1, "replica", REPLICA1,
                              "generation", 4, "sync", 7, "state", "stale"),
                    &question);
    fake_settle(world.world);
    g_assert_false(question.done);
    /* The failover is not stored after all: then there was no refusal either. */
    fake_engine_fail_next(world.engine, ENGINE_REFUSED, false);
    fake_engine_release(world.engine);
    fake_settle(world.world);
    g_assert_true(question.done);
    g_assert_true(fettle_error_is(question.error, TEMPORARY));
    fake_reply_clear(&question);
    fake_reply_clear(&failover);
    tear_down();
}

/* --- locks --- */

#define GRANTED "{\"blockers\":[],\"granted\":true,\"pending_nodes\":[]}"

static void start_locks_as(guint job, const char *name, const char *mode, guint wait_ms,
                           struct fake_reply *reply)
{
    g_autofree char *livelock = g_strdup_printf("job-%u", job);
    fake_livelock(world.world, NODE1, livelock, LIVELOCK_ALIVE);
    fake_call_start_stamped(
        world.job, job, (struct stamp){5, world.epoch}, NODE1, ROLE_WCONFD, "update_locks",
        json_make("{s:o,s:[{s:s,s:s}],s:b,s:i}", "owner", owner_json(job), "locks", "name", name,
                  "mode", mode, "wait", 1, "wait_ms", wait_ms),
        reply);
    fake_settle(world.world);
}

static void start_locks(guint job, const char *name, guint wait_ms, struct fake_reply *reply)
{
    start_locks_as(job, name, "exclusive", wait_ms, reply);
}

static void test_lock_waits(void)
{
    struct fake_reply second, third;
    set_up();
    assert_says(job_locks(&world, 1, "x instance/web1", false), GRANTED);
    assert_says(job_locks(&world, 2, "x instance/web1", false),
                "{\"blockers\":[{\"job\":\"1\",\"livelock\":\"job-1\",\"pid\":0}],\"granted\":"
                "false,\"pending_nodes\":[]}");
    start_locks(2, "instance/web1", 60000, &second);
    start_locks(3, "instance/web1", 5000, &third);
    fake_advance(world.world, 5000);
    assert_says(reply_text(&third), "{\"blockers\":[{\"job\":\"1\",\"livelock\":\"job-1\",\"pid\":"
                                    "0},{\"job\":\"2\",\"livelock\":\"job-2\",\"pid\":0}],"
                                    "\"granted\":false,\"pending_nodes\":[]}");
    assert_says(
        ask_wconf(&world, world.luxid, "free_locks", json_make("{s:o}", "owner", owner_json(1))),
        "{}");
    fake_settle(world.world);
    assert_says(reply_text(&second), GRANTED);
    assert_says(
        ask_wconf(&world, world.luxid, "list_locks", json_make("{s:o}", "owner", owner_json(2))),
        "{\"locks\":[{\"mode\":\"exclusive\",\"name\":\"instance/"
        "web1\",\"owner\":{\"job\":\"2\",\"livelock\":\"job-2\",\"pid\":0},\"waiting\":false}]}");
    tear_down();
}

static void test_lock_errors(void)
{
    set_up();
    assert_says(job_locks(&world, 1, "s node/" NODE1, false), GRANTED);
    assert_says(
        job_locks(&world, 1, "x instance/web1", false),
        "lock_order: order violation: requesting instance/web1 exclusive while holding node/" NODE1
        " shared");
    assert_says(job_locks(&world, 1, "x shelf/web1", false),
                "wrong_input: lock \"shelf/web1\": must be LEVEL/NAME with one of the levels "
                "cluster, instance, nodegroup, "
                "node, node-res, network");
    tear_down();
}

static void test_asking_again_replaces(void)
{
    struct fake_reply lost, again;
    set_up();
    assert_says(job_locks(&world, 1, "x instance/web1", false), GRANTED);
    start_locks(2, "instance/web1", 60000, &lost);
    start_locks(2, "instance/web1", 60000, &again);
    assert_says(reply_text(&lost),
                "canceled: a newer request of the same owner has taken its place");
    assert_says(
        ask_wconf(&world, world.luxid, "free_locks", json_make("{s:o}", "owner", owner_json(1))),
        "{}");
    fake_settle(world.world);
    assert_says(reply_text(&again), GRANTED);
    tear_down();
}

static void test_journal_before_answer(void)
{
    set_up();
    fake_fail_files(world.world, "locks.journal", 1);
    assert_says(job_locks(&world, 1, "x instance/web1", false),
                "storage_error: the lock journal cannot be written: " NODE1
                "/run/locks.journal: input/output error (made by the test)");
    g_assert_nonnull(world.stepped_down);
    config_world_restart(&world);
    config_world_start(&world);
    assert_says(ask_wconf(&world, world.luxid, "list_all_locks", json_object()), "{\"locks\":[]}");
    tear_down();
}

/* --- death --- */

static void test_death_by_event(void)
{
    struct fake_reply waits;
    set_up();
    assert_says(job_locks(&world, 1, "x instance/web1", false), GRANTED);
    start_locks(2, "instance/web1", 60000, &waits);
    fake_livelock(world.world, NODE1, "job-1", LIVELOCK_DEAD);
    fake_settle(world.world);
    assert_says(reply_text(&waits), GRANTED);
    /* The file goes with the next sweep, not before. */
    g_assert_cmpint(world.wconfd->ops->livelock_probe(world.wconfd, "job-1"), ==, LIVELOCK_DEAD);
    fake_advance(world.world, 10000);
    g_assert_cmpint(world.wconfd->ops->livelock_probe(world.wconfd, "job-1"), ==, LIVELOCK_GONE);
    g_assert_cmpint(world.wconfd->ops->livelock_probe(world.wconfd, "job-2"), ==, LIVELOCK_ALIVE);
    tear_down();
}

static void test_death_of_a_waiter(void)
{
    struct fake_reply waits, next;
    set_up();
    assert_says(job_locks(&world, 1, "s node/" NODE2, false), GRANTED);
    start_locks(2, "node/" NODE2, 60000, &waits);
    fake_livelock(world.world, NODE1, "job-2", LIVELOCK_GONE);
    fake_settle(world.world);
    assert_says(reply_text(&waits), "canceled: job 2 is dead: nobody holds its lock file job-2");
    assert_says(job_locks(&world, 3, "s node/" NODE2, false), GRANTED);
    start_locks(4, "node/" NODE2, 1, &next);
    fake_advance(world.world, 1);
    fake_reply_clear(&next);
    tear_down();
}

static void test_hint_is_no_proof(void)
{
    set_up();
    assert_says(job_locks(&world, 1, "x instance/web1", false), GRANTED);
    assert_says(
        ask_wconf(&world, world.luxid, "owner_gone", json_make("{s:o}", "owner", owner_json(1))),
        "{}");
    assert_says(job_locks(&world, 2, "x instance/web1", false),
                "{\"blockers\":[{\"job\":\"1\",\"livelock\":\"job-1\",\"pid\":0}],\"granted\":"
                "false,\"pending_nodes\":[]}");
    /* A probe that fails proves nothing either, in any number of sweeps. */
    fake_livelock(world.world, NODE1, "job-1", LIVELOCK_UNSURE);
    assert_says(
        ask_wconf(&world, world.luxid, "owner_gone", json_make("{s:o}", "owner", owner_json(1))),
        "{}");
    fake_advance(world.world, 50000);
    assert_says(job_locks(&world, 2, "x instance/web1", false),
                "{\"blockers\":[{\"job\":\"1\",\"livelock\":\"job-1\",\"pid\":0}],\"granted\":"
                "false,\"pending_nodes\":[]}");
    g_assert_cmpint(world.wconfd->ops->livelock_probe(world.wconfd, "job-1"), ==, LIVELOCK_UNSURE);
    tear_down();
}

static void test_sweep_takes_only_the_dead(void)
{
    set_up();
    fake_livelock(world.world, NODE1, "job-dead", LIVELOCK_DEAD);
    fake_livelock(world.world, NODE1, "job-alive", LIVELOCK_ALIVE);
    fake_livelock(world.world, NODE1, "job-unsure", LIVELOCK_UNSURE);
    fake_advance(world.world, 10000);
    g_autoptr(GPtrArray) left = world.wconfd->ops->livelock_list(world.wconfd);
    g_assert_cmpuint(left->len, ==, 2);
    g_assert_cmpstr(left->pdata[0], ==, "job-alive");
    g_assert_cmpstr(left->pdata[1], ==, "job-unsure");
    tear_down();
}

/* --- nodes --- */

static bool silent[3];

static json_t *answer_announce(const struct rpc_request *request, const char *to_node, void *data,
                               GError **error)
{
    if (!silent[to_node[0] - '1'])
        return json_object();
    fettle_set_error(error, TIMEOUT, "no answer in time");
    return NULL;
}

static void set_up_with_silent_node3(void)
{
    config_world_init(&world, initial_changes());
    fake_script(world.world, NULL, ROLE_NODED, "announce", answer_announce, NULL);
    silent[2] = true;
    config_world_start(&world);
}

static void test_gate_of_silent_node(void)
{
    struct fake_reply waits;
    set_up_with_silent_node3();
    assert_says(status_of("nodes_pending"), "[\"" NODE3 "\"]");
    assert_says(job_locks(&world, 1, "s node/" NODE2, false), GRANTED);
    assert_says(job_locks(&world, 2, "s node/" NODE3, false),
                "{\"blockers\":[],\"granted\":false,\"pending_nodes\":[\"" NODE3 "\"]}");
    assert_says(job_locks(&world, 2, "s node/[lockset]", false),
                "{\"blockers\":[],\"granted\":false,\"pending_nodes\":[\"" NODE3 "\"]}");
    assert_says(job_locks(&world, 2, "s node-res/" NODE3, false),
                "{\"blockers\":[],\"granted\":false,\"pending_nodes\":[\"" NODE3 "\"]}");
    start_locks_as(3, "node/" NODE3, "shared", 60000, &waits);
    fake_advance(world.world, 5000);
    g_assert_false(waits.done);
    g_assert_cmpuint(fake_count_calls(world.world, NODE3 "/noded announce"), >, 3);
    silent[2] = false;
    fake_advance(world.world, 1000);
    assert_says(reply_text(&waits), GRANTED);
    assert_says(status_of("nodes_pending"), "[]");
    tear_down();
}

static void test_offline_node_is_not_waited_for(void)
{
    struct fake_reply waits;
    set_up_with_silent_node3();
    start_locks_as(3, "node/[lockset]", "shared", 60000, &waits);
    /* Its record can be changed all the same, or nobody could ever say that it is dead. */
    json_t *dead = with(object_node(NODE3), "offline", json_true());
    assert_says(job_locks(&world, 1, "x node/" NODE3, false), GRANTED);
    assert_says(job_commit(&world, 1, changes_of(put("node", NODE3, 1, dead), NULL)),
                "{\"serial\":2}");
    g_assert_false(waits.done);
    assert_says(job_locks(&world, 1, "r node/" NODE3, false), GRANTED);
    fake_settle(world.world);
    assert_says(reply_text(&waits), GRANTED);
    tear_down();
    /* On record as offline from the start. */
    GPtrArray *objects = initial_changes();
    json_object_set_new(((struct change *)objects->pdata[4])->object, "offline", json_true());
    config_world_init(&world, objects);
    fake_script(world.world, NULL, ROLE_NODED, "announce", answer_announce, NULL);
    config_world_start(&world);
    assert_says(status_of("nodes_pending"), "[]");
    g_assert_cmpuint(fake_count_calls(world.world, NODE3 "/noded announce"), ==, 0);
    assert_says(job_locks(&world, 1, "x node/" NODE3, false), GRANTED);
    /* Back online it has to answer first. */
    assert_says(job_commit(&world, 1, changes_of(put("node", NODE3, 1, object_node(NODE3)), NULL)),
                "{\"serial\":2}");
    assert_says(status_of("nodes_pending"), "[\"" NODE3 "\"]");
    tear_down();
}

static void test_members_are_told(void)
{
    set_up();
    static const char node4[] = "44444444-0000-4000-8000-000000000004";
    const GPtrArray *calls = fake_calls(world.world);
    const char *first = calls->pdata[0];
    g_assert_true(strstr(first, "/noded announce {") && strstr(first, "\"epoch\":1") &&
                  strstr(first, "\"history\":5") && strstr(first, "\"cluster\":\"" CLUSTER "\"") &&
                  strstr(first, "\"master_node\":\"" NODE1 "\"") &&
                  strstr(first, "{\"address\":\"10.0.0.3\",\"master_candidate\":false,\"name\":"
                                "\"node3\",\"port\":1811,\"uuid\":\"" NODE3 "\"}"));
    guint before = fake_count_calls(world.world, NODE2 "/noded announce");
    g_autofree char *lock = g_strdup_printf("x node/%s", node4);
    assert_says(job_locks(&world, 1, lock, false), GRANTED);
    assert_says(job_commit(&world, 1, changes_of(put("node", node4, 0, object_node(node4)), NULL)),
                "{\"serial\":2}");
    fake_settle(world.world);
    g_assert_cmpuint(fake_count_calls(world.world, NODE2 "/noded announce"), ==, before + 1);
    g_assert_cmpuint(fake_count_calls(world.world, "44444444"), ==, 1);
    /* A tag concerns no node. */
    assert_says(job_commit(&world, 1, changes_of(tag("x"), NULL)), "{\"serial\":3}");
    g_assert_cmpuint(fake_count_calls(world.world, NODE2 "/noded announce"), ==, before + 1);
    /* Who came back meanwhile hears it again. */
    fake_advance(world.world, 10000);
    g_assert_cmpuint(fake_count_calls(world.world, NODE2 "/noded announce"), ==, before + 2);
    tear_down();
}

static void test_bootstrap(void)
{
    record_autoptr(op_cluster_init) params = op_cluster_init_new();
    g_free(params->cluster_name);
    g_free(params->node_name);
    g_free(params->primary_ip);
    params->cluster_name = g_strdup("c1");
    params->node_name = g_strdup("node1");
    params->primary_ip = g_strdup("10.0.0.1");
    params->max_running_jobs = 7;
    config_world_init(&world, wconf_bootstrap_changes(params, CLUSTER, NODE1, 1900, GROUP));
    config_world_start(&world);
    assert_says(status_of("problems"), "[]");
    g_autofree char *said = ask_wconf(&world, world.luxid, "wait_changes", since(0, 0));
    g_assert_true(strstr(said, "\"max_running_jobs\":7") && strstr(said, "\"port\":1900") &&
                  strstr(said, "\"master_candidate\":true"));
    tear_down();
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/wconf/commit#WCF-03,WCF-21", test_commit);
    g_test_add_func("/wconf/commit/versions#WCF-03", test_version_conflicts);
    g_test_add_func("/wconf/commit/bad-object#WCF-11,WCF-16", test_bad_object_changes_nothing);
    g_test_add_func("/wconf/commit/cover#FUT-04", test_locks_cover_changes);
    g_test_add_func("/wconf/commit/cover-group#FUT-04,LCK-19", test_group_lock_covers);
    g_test_add_func("/wconf/commit/invariants#SAF-10", test_invariants_are_enforced);
    g_test_add_func("/wconf/commit/pipeline#SAF-03,WCF-03", test_pipeline);
    g_test_add_func("/wconf/commit/same-id#SAF-04", test_same_id_once);
    g_test_add_func("/wconf/commit/refused#SAF-08", test_refused_commit_steps_down);
    g_test_add_func("/wconf/commit/unknown#SAF-04,SAF-08", test_unknown_result_is_looked_up);
    g_test_add_func("/wconf/commit/bad-requests#WCF-11,DTH-20", test_bad_requests);
    g_test_add_func("/wconf/epoch/restart#SAF-01,WCF-08,WCF-12,WCF-13",
                    test_restart_keeps_epoch_and_locks);
    g_test_add_func("/wconf/epoch/reboot#SAF-01,SAF-05", test_reboot_is_a_new_epoch);
    g_test_add_func("/wconf/epoch/journal#SAF-01", test_damaged_journal_is_a_new_epoch);
    g_test_add_func("/wconf/epoch/start#WCF-01", test_start_refuses);
    g_test_add_func("/wconf/epoch/lost#SAF-03,SAF-08", test_lost_mastership);
    g_test_add_func("/wconf/stream#SAF-03,WCF-18", test_stream);
    g_test_add_func("/wconf/stream/over", test_stream_wait_is_over);
    g_test_add_func("/wconf/stream/snapshots#WCF-18,SAF-02", test_snapshots);
    g_test_add_func("/wconf/stream/bounded", test_change_log_is_bounded);
    g_test_add_func("/wconf/confirm#SAF-03,SAF-04", test_confirm);
    g_test_add_func("/wconf/confirm/removed#SAF-04", test_confirm_removed);
    g_test_add_func("/wconf/confirm/barrier#SAF-03", test_confirm_waits_for_barrier);
    g_test_add_func("/wconf/confirm/shared-barrier#SAF-03", test_confirms_share_a_barrier);
    g_test_add_func("/wconf/replica#SAF-12", test_set_replica_state);
    g_test_add_func("/wconf/replica/refusals#SAF-12,SAF-04", test_set_replica_state_refusals);
    g_test_add_func("/wconf/replica/barrier#SAF-03,SAF-04", test_refusal_needs_commit);
    g_test_add_func("/wconf/locks/wait#LCK-11,LCK-16,WCF-06", test_lock_waits);
    g_test_add_func("/wconf/locks/errors#LCK-06,WCF-11", test_lock_errors);
    g_test_add_func("/wconf/locks/again#WCF-13", test_asking_again_replaces);
    g_test_add_func("/wconf/locks/journal#WCF-07", test_journal_before_answer);
    g_test_add_func("/wconf/death/event#WCF-15,DTH-12,DTH-18", test_death_by_event);
    g_test_add_func("/wconf/death/waiter#WCF-15,DTH-13", test_death_of_a_waiter);
    g_test_add_func("/wconf/death/hint#DTH-15,DTH-14", test_hint_is_no_proof);
    g_test_add_func("/wconf/death/sweep#DTH-18,DTH-19", test_sweep_takes_only_the_dead);
    g_test_add_func("/wconf/nodes/gate#SAF-06", test_gate_of_silent_node);
    g_test_add_func("/wconf/nodes/offline#SAF-06", test_offline_node_is_not_waited_for);
    g_test_add_func("/wconf/nodes/members#SAF-05,SAF-06", test_members_are_told);
    g_test_add_func("/wconf/bootstrap", test_bootstrap);
    return g_test_run();
}
