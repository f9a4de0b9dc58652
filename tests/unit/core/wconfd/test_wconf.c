/* The configuration daemon against a fake engine: commits on their way, epochs, the change stream.
 */
#include <string.h>

#include "core/wconfd/wconf_private.h"
#include "proto/records.h"
#include "unit/core/world/wconf_world.h"

/* --- commits --- */

static void test_commit(void)
{
    world_set_up();
    assert_says(job_locks(&world, 17, "x instance/web1", false), GRANTED);
    assert_says(job_commit(&world, 17, changes_of(put_memory(1, 256), put_tag("a"), NULL)),
                "{\"serial\":2}");
    assert_says(job_commit(&world, 17, changes_of(put_memory(2, 512), NULL)), "{\"serial\":3}");
    g_assert_cmpuint(fake_engine_serial(world.engine), ==, 3);
    assert_says(world_status("serial"), "3");
    world_tear_down();
}

static void test_version_conflicts(void)
{
    world_set_up();
    assert_says(job_locks(&world, 17, "x instance/web1", false), GRANTED);
    assert_says(job_commit(&world, 17, changes_of(put_memory(1, 256), NULL)), "{\"serial\":2}");
    assert_says(job_commit(&world, 17, changes_of(put_memory(1, 512), NULL)),
                "version_conflict: instance web1 (" WEB1
                "): was read at version 1, it is at 2 now");
    assert_says(job_commit(&world, 17, changes_of(put_tag("x"), put_memory(0, 512), NULL)),
                "version_conflict: instance web1 (" WEB1 "): exists already (version 2)");
    assert_says(job_commit(&world, 17, changes_of(del("tag", "instance/" WEB1 "/x", 2), NULL)),
                "version_conflict: tag instance/" WEB1
                "/x: was read at version 2, it does not exist now");
    assert_says(job_commit(&world, 17, changes_of(put_tag("x"), put_tag("x"), NULL)),
                "wrong_input: changes[1]: tag instance/" WEB1
                "/x is changed twice in one transaction");
    assert_says(job_commit(&world, 17, changes_of(put("gadget", "x", 0, json_object()), NULL)),
                "wrong_input: changes[0].kind: \"gadget\" is no kind of object");
    g_assert_cmpuint(fake_engine_serial(world.engine), ==, 2);
    world_tear_down();
}

/* As when its seat has gone to another candidate: the process goes on, and nothing in it looks at
 * what is gone. */
static void test_process_goes_on(void)
{
    world_set_up();
    wconf_free(g_steal_pointer(&world.wconf));
    fake_advance(world.world, 10000);
    world_tear_down();
}

static bool commit_tags(const char *id, guint count, GError **error)
{
    GPtrArray *changes = changes_of(put_tag("t0"), NULL);
    for (guint i = 1; i < count; i++) {
        g_autofree char *tag = g_strdup_printf("t%u", i);
        g_ptr_array_add(changes, put_tag(tag));
    }
    bool taken = wconf_commit(world.wconf, id, changes, NULL, AUTHOR_COMMIT, NULL, NULL, error);
    fake_settle(world.world);
    return taken;
}

/* No engine is asked for what it would not take. */
static void test_too_large(void)
{
    g_autoptr(GError) error = NULL;
    world_set_up();
    g_assert_false(commit_tags(ID_A, LIMIT_STORE_CHANGES + 1, &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_LIMIT);
    g_assert_cmpstr(error->message, ==,
                    "40001 changes in one transaction, which takes 40000: make several");
    g_assert_cmpuint(fake_engine_serial(world.engine), ==, 1);
    g_assert_true(commit_tags(ID_B, LIMIT_STORE_CHANGES, NULL));
    g_assert_cmpuint(fake_engine_serial(world.engine), ==, 2);
    world_tear_down();
}

static void test_bad_object_changes_nothing(void)
{
    world_set_up();
    assert_says(job_locks(&world, 17, "x instance/web1", false), GRANTED);
    g_autofree char *said =
        job_commit(&world, 17, changes_of(put_tag("x"), put_memory(1, 0), NULL));
    g_assert_true(g_str_has_prefix(said, "wrong_input: changes[1]: instance " WEB1 ": memory: "));
    assert_says(job_commit(&world, 17, changes_of(put_tag("x"), put_memory(1, 256), NULL)),
                "{\"serial\":2}");
    world_tear_down();
}

static void test_invariants_are_enforced(void)
{
    world_set_up();
    assert_says(job_locks(&world, 17, "x instance/web1", false), GRANTED);
    assert_says(job_commit(&world, 17,
                           changes_of(put("instance", WEB1, 1,
                                          with(object_web1(), "generation", json_integer(3))),
                                      NULL)),
                "unsafe: instance web1 (" WEB1 "): generation: goes from 4 to 3; a step is 0 or 1");
    assert_says(job_commit(&world, 17, changes_of(put_memory(1, 256), NULL)), "{\"serial\":2}");
    assert_says(world_status("problems"), "[]");
    world_tear_down();
}

/* All of the configuration is looked at for them, so once at each serial: a mark among those of one
 * serial is there until the next. */
static void test_problems_once_a_serial(void)
{
    GPtrArray *left = initial_changes();
    for (guint i = 0; i < left->len; i++) {
        struct change *change = left->pdata[i];
        if (strcmp(change->key, WEB1) != 0)
            continue;
        json_object_set_new(change->object, "migration", json_string(ID_A));
        json_object_set_new(change->object, "migration_node", json_string(NODE2));
    }
    config_world_init(&world, left);
    config_world_start(&world);
    const char *is_left =
        "[\"instance \\\"web1\\\": a migration to node2 is on record and no job is "
        "at it; settle it: fettle instance migrate web1 --cleanup\"";
    g_autofree char *first = g_strconcat(is_left, "]", NULL);
    assert_says(world_status("problems"), first);
    g_ptr_array_add(world.wconf->problems, g_strdup("mark"));
    g_autofree char *again = g_strconcat(is_left, ",\"mark\"]", NULL);
    assert_says(world_status("problems"), again);
    assert_says(world_status("problems"), again);
    assert_says(job_locks(&world, 17, "x instance/web1", false), GRANTED);
    assert_says(job_commit(&world, 17, changes_of(put_tag("a"), NULL)), "{\"serial\":2}");
    assert_says(world_status("problems"), first);
    assert_says(job_commit(&world, 17, changes_of(put_memory(1, 256), NULL)), "{\"serial\":3}");
    assert_says(world_status("problems"), "[]");
    world_tear_down();
}

static void test_pipeline(void)
{
    struct fake_reply first, second, late;
    world_set_up();
    fake_engine_hold(world.engine);
    luxid_commit_start(ID_A, changes_of(put_tag("a"), NULL), &first);
    /* Built on the first, which nobody has seen stored yet. */
    luxid_commit_start(
        ID_B,
        changes_of(put("tag", "instance/" WEB1 "/a", 2,
                       json_make("{s:s,s:s,s:s}", "kind", "instance", "object", WEB1, "tag", "a")),
                   NULL),
        &second);
    luxid_commit_start(ID_C, changes_of(put_tag("a"), NULL), &late);
    g_assert_cmpuint(fake_engine_queued(world.engine), ==, 2);
    assert_says(world_reply(&late),
                "version_conflict: tag instance/" WEB1 "/a: exists already (version 3)");
    assert_says(world_reply(&first), "");
    /* Nobody is told of what is not stored. */
    assert_says(world_status("serial"), "1");
    fake_engine_release(world.engine);
    fake_settle(world.world);
    assert_says(world_reply(&first), "{\"serial\":2}");
    assert_says(world_reply(&second), "{\"serial\":3}");
    assert_says(world_status("serial"), "3");
    world_tear_down();
}

static void test_same_id_once(void)
{
    struct fake_reply one, again, later;
    world_set_up();
    fake_engine_hold(world.engine);
    luxid_commit_start(ID_A, changes_of(put_tag("a"), NULL), &one);
    luxid_commit_start(ID_A, changes_of(put_tag("a"), NULL), &again);
    g_assert_cmpuint(fake_engine_queued(world.engine), ==, 1);
    fake_engine_release(world.engine);
    fake_settle(world.world);
    assert_says(world_reply(&one), "{\"serial\":2}");
    assert_says(world_reply(&again), "{\"serial\":2}");
    config_world_restart(&world);
    config_world_start(&world);
    luxid_commit_start(ID_A, changes_of(put_tag("a"), NULL), &later);
    assert_says(world_reply(&later), "{\"serial\":2}");
    g_assert_cmpuint(fake_engine_commits(world.engine), ==, 1);
    world_tear_down();
}

static void test_refused_commit_steps_down(void)
{
    struct fake_reply first, second;
    world_set_up();
    fake_engine_hold(world.engine);
    luxid_commit_start(ID_A, changes_of(put_tag("a"), NULL), &first);
    luxid_commit_start(ID_B, changes_of(put_tag("b"), NULL), &second);
    fake_engine_fail_next(world.engine, ENGINE_REFUSED, false);
    fake_engine_release(world.engine);
    fake_settle(world.world);
    assert_says(world_reply(&first),
                "resource_not_available: the commit was not stored: disk full (made by the test)");
    g_assert_cmpstr(world.stepped_down, ==,
                    "resource_not_available: serial 2: the commit was not stored: disk full (made "
                    "by the test)");
    assert_says(world_status("serial"),
                "resource_not_available: serial 2: the commit was not stored: "
                "disk full (made by the test)");
    g_assert_true(second.done && second.error);
    fake_reply_clear(&second);
    world_tear_down();
}

static void test_unknown_result_is_looked_up(void)
{
    struct fake_reply first, again;
    world_set_up();
    fake_engine_fail_next(world.engine, ENGINE_UNKNOWN, true);
    luxid_commit_start(ID_A, changes_of(put_tag("a"), NULL), &first);
    assert_says(world_reply(&first),
                "unknown_result: whether the commit is stored is unknown (disk full (made by the "
                "test)); repeat it with its id");
    g_assert_nonnull(world.stepped_down);
    config_world_restart(&world);
    config_world_start(&world);
    luxid_commit_start(ID_A, changes_of(put_tag("a"), NULL), &again);
    assert_says(world_reply(&again), "{\"serial\":2}");
    g_assert_cmpuint(fake_engine_commits(world.engine), ==, 1);
    world_tear_down();
}

static void test_bad_requests(void)
{
    world_set_up();
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
    world_tear_down();
}

/* --- epoch --- */

static void test_restart_keeps_epoch_and_locks(void)
{
    world_set_up();
    guint64 epoch = world.epoch;
    assert_says(job_locks(&world, 17, "x instance/web1, s node/" NODE1, false), GRANTED);
    assert_says(job_locks(&world, 18, "x instance/db1", false), GRANTED);
    config_world_restart(&world);
    fake_livelock(world.world, NODE1, "job-18", LIVELOCK_DEAD);
    config_world_start(&world);
    g_assert_cmpuint(world.epoch, ==, epoch);
    assert_says(ask_wconf(&world, world.luxid, "list_all_locks", json_object()),
                "{\"locks\":[{\"mode\":\"exclusive\",\"name\":\"instance/"
                "web1\",\"owner\":{\"job\":\"17\",\"livelock\":\"job-17\",\"pid\":0},\"since\":"
                "1700000001000000,\"waiting\":false},"
                "{\"mode\":\"shared\",\"name\":\"node/" NODE1
                "\",\"owner\":{\"job\":\"17\",\"livelock\":\"job-17\",\"pid\":0},\"since\":"
                "1700000001000000,\"waiting\":false}]}");
    assert_says(job_commit(&world, 17, changes_of(put_memory(1, 256), NULL)), "{\"serial\":2}");
    world_tear_down();
}

static void test_reboot_is_a_new_epoch(void)
{
    world_set_up();
    guint64 epoch = world.epoch;
    assert_says(job_locks(&world, 17, "x instance/web1", false), GRANTED);
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
    assert_says(job_commit(&world, 17, changes_of(put_tag("late"), NULL)),
                "stale_epoch: commit of job 17: it belongs to history 5 epoch 1, the master is at "
                "history 5 epoch 2");
    world_tear_down();
}

static void told_cb(struct rpc_request *request, json_t *result, const GError *error)
{
    char **said = request->carrier;
    *said = g_strdup(error ? error->message : "passed");
    json_decref(result);
    rpc_request_free(request);
}

/* What a frame of that role is told whose copy has this position; `fence`: of its method. */
static char *fenced(enum method_fence fence, const char *role, guint64 history, guint64 epoch)
{
    char *said = NULL;
    struct method ping = *method_find(ROLE_WCONFD, "ping");
    ping.fence = fence;
    struct rpc_request *request = g_new0(struct rpc_request, 1);
    *request = (struct rpc_request){.method = &ping,
                                    .name = g_strdup("ping"),
                                    .from_node = g_strdup(NODE2),
                                    .from_role = g_strdup(role),
                                    .from_job = 17,
                                    .stamp = {history, epoch},
                                    .args = json_object(),
                                    .answer = told_cb,
                                    .carrier = &said};
    wconf_handle(world.wconf, request);
    return said;
}

/* Who decides on a copy that a restore or another master has left behind decides nothing, whatever
 * its role. */
static void test_copy_of_another_epoch(void)
{
    static const char *const roles[] = {ROLE_WCONFD,    ROLE_LUXID, ROLE_JOB,     ROLE_NODED,
                                        ROLE_WATCHER,   ROLE_CLI,   ROLE_JOINING, ROLE_VOLUMED,
                                        ROLE_SCHEDULER, ROLE_APID};
    world_set_up();
    g_free(ask_wconf(&world, fake_process(world.world, NODE1, ROLE_CLI), "add_front_end",
                     json_make("{s:s, s:s}", "commit_id", ID_A, "node", NODE2)));
    for (guint i = 0; i < G_N_ELEMENTS(roles); i++) {
        bool job = !strcmp(roles[i], ROLE_JOB);
        g_autofree char *old = g_strdup_printf("ping of %s: it belongs to history 5 epoch 0, the "
                                               "master is at history 5 epoch 1",
                                               job ? "job 17" : roles[i]);
        g_autofree char *restored = g_strdup_printf("ping of %s: it belongs to history 4 epoch 1, "
                                                    "the master is at history 5 epoch 1",
                                                    job ? "job 17" : roles[i]);
        assert_says(fenced(METHOD_OPEN, roles[i], 4, 0), "passed");
        assert_says(fenced(METHOD_JOB_FENCED, roles[i], 5, 0), job ? old : "passed");
        assert_says(fenced(METHOD_JOB_FENCED, roles[i], 5, 1), "passed");
        assert_says(fenced(METHOD_FENCED, roles[i], 5, 0), old);
        assert_says(fenced(METHOD_FENCED, roles[i], 4, 1), restored);
        assert_says(fenced(METHOD_FENCED, roles[i], 5, 1), "passed");
    }
    world_tear_down();
}

/* The seat was lost meanwhile, whoever had it: what the journal knows was of another epoch. */
static void test_journal_of_another_epoch(void)
{
    config_world_init(&world, initial_candidates());
    fake_engine_replicate(world.engine);
    config_world_start(&world);
    guint64 epoch = world.epoch;
    assert_says(job_locks(&world, 17, "x instance/web1", false), GRANTED);
    config_world_restart(&world);
    fake_engine_expire(world.engine);
    config_world_start(&world);
    g_assert_cmpuint(world.epoch, >, epoch);
    assert_says(ask_wconf(&world, world.luxid, "list_all_locks", json_object()), "{\"locks\":[]}");
    world_tear_down();
}

static void test_damaged_journal_is_a_new_epoch(void)
{
    world_set_up();
    guint64 epoch = world.epoch;
    assert_says(job_locks(&world, 17, "x instance/web1", false), GRANTED);
    config_world_restart(&world);
    fake_file_put(world.world, NODE1, FILE_RUN, "locks.journal", "rubbish\n");
    config_world_start(&world);
    g_assert_cmpuint(world.epoch, ==, epoch + 1);
    assert_says(ask_wconf(&world, world.luxid, "list_all_locks", json_object()), "{\"locks\":[]}");
    world_tear_down();
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
    assert_says(world_status("serial"),
                "resource_not_available: the configuration daemon is starting; try again");
    world_tear_down();
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
    GPtrArray *newer = initial_changes();
    json_object_set_new(((struct change *)newer->pdata[5])->object, "task_state",
                        json_string("teleporting"));
    g_autofree char *word = start_fails(newer);
    g_assert_nonnull(strstr(word, "instance " WEB1 ": task_state: must be one of "));
    g_assert_nonnull(strstr(word, ", not \"teleporting\""));
    assert_says(
        start_fails(changes_of(put("counter", "job", 1, json_make("{s:i}", "value", 1)), NULL)),
        "corrupt: the store has no cluster in it; restore a copy");
}

static void test_lost_mastership(void)
{
    world_set_up();
    fake_engine_depose(world.engine, true);
    assert_says(ask_wconf(&world, world.noded[0], "confirm",
                          json_make("{s:[{s:s,s:s,s:i}]}", "items", "role", "run", "instance", WEB1,
                                    "generation", 4)),
                "not_master: mastership is lost: the engine says that another is master");
    g_assert_nonnull(world.stepped_down);
    assert_says(world_status("serial"),
                "not_master: mastership is lost: the engine says that another is master");
    world_tear_down();
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
    world_set_up();
    fake_call_start(world.luxid, 0, NODE1, ROLE_WCONFD, "wait_changes", since(1, 10000), &reply);
    fake_settle(world.world);
    g_assert_false(reply.done);
    fake_engine_hold(world.engine);
    struct fake_reply one, two;
    luxid_commit_start(ID_A, changes_of(put_tag("a"), NULL), &one);
    luxid_commit_start(ID_B, changes_of(put_tag("b"), NULL), &two);
    fake_advance(world.world, 100);
    g_assert_false(reply.done);
    fake_engine_release(world.engine);
    fake_advance(world.world, 1);
    assert_says(world_reply(&reply),
                "{\"changes\":[{\"key\":\"instance/" WEB1
                "/a\",\"kind\":\"tag\",\"object\":{\"kind\":\"instance\",\"object\":\"" WEB1
                "\",\"tag\":\"a\"},\"op\":\"put\",\"version\":2},"
                "{\"key\":\"instance/" WEB1
                "/b\",\"kind\":\"tag\",\"object\":{\"kind\":\"instance\",\"object\":\"" WEB1
                "\",\"tag\":\"b\"},\"op\":\"put\",\"version\":3}],"
                "\"commits\":[],\"epoch\":1,\"history\":5,\"more\":false,\"pieces\":false,"
                "\"serial\":3,\"snapshot\":false,"
                "\"why\":\"\"}");
    fake_reply_clear(&one);
    fake_reply_clear(&two);
    /* Put and deleted since: only the deletion is told. */
    luxid_commit_start(ID_C, changes_of(del("tag", "instance/" WEB1 "/a", 2), NULL), &one);
    fake_reply_clear(&one);
    g_autofree char *said = ask_wconf(&world, world.luxid, "wait_changes", since(1, 0));
    g_assert_nonnull(strstr(said, "{\"key\":\"instance/" WEB1
                                  "/a\",\"kind\":\"tag\",\"op\":\"delete\",\"version\":4}"));
    g_assert_null(strstr(said, "\"tag\":\"a\""));
    world_tear_down();
}

static void test_stream_wait_is_over(void)
{
    struct fake_reply reply;
    world_set_up();
    fake_call_start(world.luxid, 0, NODE1, ROLE_WCONFD, "wait_changes", since(1, 10000), &reply);
    fake_advance(world.world, 9999);
    g_assert_false(reply.done);
    fake_advance(world.world, 1);
    assert_says(
        world_reply(&reply),
        "{\"changes\":[],\"commits\":[],\"epoch\":1,\"history\":5,\"more\":false,\"pieces\":false,"
        "\"serial\":1,"
        "\"snapshot\":false,\"why\":\"\"}");
    world_tear_down();
}

static void release_cb(void *data)
{
    fake_engine_release(data);
}

/* The wait ends between a change and the answer that it makes: whoever is told the serial has the
 * change. */
static void test_stream_wait_is_over_with_news(void)
{
    struct fake_reply reply, commit;
    world_set_up();
    fake_engine_hold(world.engine);
    world.luxid->ops->timer(world.luxid, 10000, release_cb, world.engine);
    fake_call_start(world.luxid, 0, NODE1, ROLE_WCONFD, "wait_changes", since(1, 10000), &reply);
    luxid_commit_start(ID_A, changes_of(put_tag("a"), NULL), &commit);
    fake_advance(world.world, 10000);
    fake_reply_clear(&commit);
    g_autofree char *said = world_reply(&reply);
    g_assert_nonnull(strstr(said, "\"serial\":2"));
    g_assert_nonnull(strstr(said, "\"tag\":\"a\""));
    world_tear_down();
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
    world_set_up();
    g_assert_cmpuint(snapshot_size(since(0, 0)), ==, 8);
    g_assert_cmpuint(snapshot_size(since(99, 5000)), ==, 8);
    g_assert_cmpuint(snapshot_size(json_make("{s:i,s:i}", "history", 4, "serial", 1)), ==, 8);
    luxid_commit_start(ID_A, changes_of(put_tag("a"), NULL), &reply);
    fake_reply_clear(&reply);
    g_assert_cmpuint(snapshot_size(since(1, 0)), ==, 0);
    config_world_restart(&world);
    config_world_start(&world);
    /* A new wconfd does not know what came before it. */
    g_assert_cmpuint(snapshot_size(since(1, 0)), ==, 9);
    g_assert_cmpuint(snapshot_size(since(2, 0)), ==, 0);
    world_tear_down();
}

static void test_change_log_is_bounded(void)
{
    world_set_up();
    for (guint i = 0; i < LIMIT_CHANGE_LOG / 4096 + 1; i++) {
        GPtrArray *changes = changes_of(put_tag("first"), NULL);
        struct fake_reply reply;
        g_ptr_array_set_size(changes, 0);
        for (guint j = 0; j < 4096; j++) {
            g_autofree char *text = g_strdup_printf("t%u-%u", i, j);
            g_ptr_array_add(changes, put_tag(text));
        }
        g_autofree char *id = g_strdup_printf("00000000-0000-4000-8000-%012u", i);
        luxid_commit_start(id, changes, &reply);
        g_assert_no_error(reply.error);
        fake_reply_clear(&reply);
    }
    g_autofree char *old = ask_wconf(&world, world.luxid, "wait_changes", since(1, 0));
    g_assert_nonnull(strstr(old, "\"snapshot\":true"));
    g_autofree char *recent = ask_wconf(&world, world.luxid, "wait_changes",
                                        since(fake_engine_serial(world.engine) - 1, 0));
    g_assert_nonnull(strstr(recent, "\"snapshot\":false"));
    world_tear_down();
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
    assert_says(world_status("problems"), "[]");
    g_autofree char *said = ask_wconf(&world, world.luxid, "wait_changes", since(0, 0));
    g_assert_true(strstr(said, "\"max_running_jobs\":7") && strstr(said, "\"port\":1900") &&
                  strstr(said, "\"master_candidate\":true"));
    world_tear_down();
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/wconf/commit#WCF-03,WCF-21", test_commit);
    g_test_add_func("/wconf/commit/versions#WCF-03", test_version_conflicts);
    g_test_add_func("/wconf/process-goes-on", test_process_goes_on);
    g_test_add_func("/wconf/commit/too-large", test_too_large);
    g_test_add_func("/wconf/commit/bad-object#WCF-11,WCF-16", test_bad_object_changes_nothing);
    g_test_add_func("/wconf/commit/invariants#SAF-10", test_invariants_are_enforced);
    g_test_add_func("/wconf/problems-once-a-serial", test_problems_once_a_serial);
    g_test_add_func("/wconf/commit/pipeline#SAF-03,WCF-03", test_pipeline);
    g_test_add_func("/wconf/commit/same-id#SAF-04", test_same_id_once);
    g_test_add_func("/wconf/commit/refused#SAF-08", test_refused_commit_steps_down);
    g_test_add_func("/wconf/commit/unknown#SAF-04,SAF-08", test_unknown_result_is_looked_up);
    g_test_add_func("/wconf/commit/bad-requests#WCF-11,DTH-20", test_bad_requests);
    g_test_add_func("/wconf/epoch/restart#SAF-01,WCF-08,WCF-12,WCF-13",
                    test_restart_keeps_epoch_and_locks);
    g_test_add_func("/wconf/epoch/reboot#SAF-01,SAF-05", test_reboot_is_a_new_epoch);
    g_test_add_func("/wconf/copy-of-another-epoch#SAF-05", test_copy_of_another_epoch);
    g_test_add_func("/wconf/epoch/journal#SAF-01", test_damaged_journal_is_a_new_epoch);
    g_test_add_func("/wconf/epoch/journal-of-another#SAF-01,SAF-06", test_journal_of_another_epoch);
    g_test_add_func("/wconf/epoch/start", test_start_refuses);
    g_test_add_func("/wconf/epoch/lost#SAF-03,SAF-08", test_lost_mastership);
    g_test_add_func("/wconf/stream#SAF-03,WCF-18", test_stream);
    g_test_add_func("/wconf/stream/over", test_stream_wait_is_over);
    g_test_add_func("/wconf/stream/over-with-news#SAF-03,WCF-18",
                    test_stream_wait_is_over_with_news);
    g_test_add_func("/wconf/stream/snapshots#WCF-18,SAF-02", test_snapshots);
    g_test_add_func("/wconf/stream/bounded", test_change_log_is_bounded);
    g_test_add_func("/wconf/bootstrap", test_bootstrap);
    return g_test_run();
}
