/* Jobs go into the archive and are found there: on record until every candidate has them, in any
 * order of deaths. */
#include "unit/core/world/queue_world.h"

#include "core/job/archive.h"
#include "core/node/archive_calls.h"

#include <string.h>

#define WEB1 "dddddddd-0000-4000-8000-000000000001"
#define HOUR 3600

/* --- node daemons that do nothing but this --- */

struct member_care {
    struct env *env;
    struct rpc_request *request;
};

static void serve_task(void *data)
{
    struct member_care *keeper = data;
    struct node_core node = {.env = keeper->env};
    struct rpc_request *request = keeper->request;
    g_autoptr(GError) error = NULL;
    void *args = record_parse(request->method->args, request->args, RECORD_LAX, &error);
    json_t *answer = NULL;

    if (args != NULL && g_str_equal(request->name, "archive_put"))
        answer = archive_calls_put(&node, NULL, args, &error);
    else if (args != NULL && g_str_equal(request->name, "archive_list"))
        answer = archive_calls_list(&node, NULL, args, &error);
    else if (args != NULL && g_str_equal(request->name, "archive_get"))
        answer = archive_calls_get(&node, NULL, args, &error);
    record_free(request->method->args, args);
    if (answer != NULL)
        rpc_answer(request, answer);
    else
        rpc_fail(request, error);
    g_free(keeper);
}

static void serve(struct rpc_request *request, void *data)
{
    const struct member_care keeper = {data, request};

    task_spawn(((struct env *)data)->tasks, serve_task, g_memdup2(&keeper, sizeof(keeper)));
}

static struct env *add_noded(struct queue_world *w, const char *node)
{
    struct env *noded = fake_process(w->world, node, ROLE_NODED);

    fake_serve(noded, serve, noded);
    return noded;
}

static void put_node(struct queue_world *w, const char *uuid, const char *name, bool candidate,
                     bool offline)
{
    store_put(w->store, "node", uuid,
              json_make("{ss, ss, ss, ss, sb, sb}", "uuid", uuid, "name", name, "primary_ip",
                        "192.0.2.2", "group", GROUP, "master_candidate", candidate, "offline",
                        offline));
    fake_settle(w->world);
}

/* node1 is the master, node2 a candidate, node3 none. */
static struct queue_world *world_new(void)
{
    struct queue_world *w = queue_world_new(5);

    put_node(w, MASTER, "node1", true, false);
    put_node(w, NODE2, "node2", true, false);
    put_node(w, NODE3, "node3", false, false);
    add_noded(w, MASTER);
    add_noded(w, NODE2);
    return w;
}

static guint64 run_job(struct queue_world *w, json_t *extra)
{
    guint64 id = queue_submit(w, extra);

    queue_job_runs(w, id);
    return id;
}

/* A job that ended `age_s` ago. */
static void put_ended(struct queue_world *w, guint64 id, gint64 age_s, json_t *extra)
{
    g_autofree char *key = g_strdup_printf("%" G_GUINT64_FORMAT, id);
    guint64 end_us = (guint64)(w->luxid->ops->wall_us(w->luxid) - age_s * (gint64)G_USEC_PER_SEC);
    json_t *job = json_make("{sI, s[{so, ss, sI}], ss, sI}", "id", (json_int_t)id, "ops", "input",
                            queue_delay(NULL), "status", "success", "end_us", (json_int_t)end_us,
                            "status", "success", "end_us", (json_int_t)end_us);

    json_object_update(job, extra);
    json_decref(extra);
    store_put(w->store, "job", key, job);
    fake_settle(w->world);
}

static bool on_record(struct queue_world *w, guint64 id)
{
    g_autofree char *key = g_strdup_printf("%" G_GUINT64_FORMAT, id);

    return store_get(w->store, "job", key) != NULL;
}

static bool archived_on(struct queue_world *w, const char *node, guint64 id)
{
    g_autofree char *name = g_strdup_printf(
        "queue/archive/%" G_GUINT64_FORMAT "/job-%" G_GUINT64_FORMAT, id / 10000, id);

    return fake_file(w->world, node, FILE_STATE, name) != NULL;
}

static void expect(struct queue_world *w, const char *method, json_t *args, const char *text)
{
    g_autoptr(GError) error = NULL;
    json_autoptr result = queue_call(w, method, args, &error);
    g_autofree char *said = NULL;

    g_assert_no_error(error);
    said = json_dumps(result, JSON_COMPACT | JSON_ENCODE_ANY);
    g_assert_cmpstr(said, ==, text);
}

/* --- one job --- */

static void test_one(void)
{
    struct queue_world *w = world_new();
    guint64 id = run_job(w, NULL), other = run_job(w, NULL);

    expect(w, "ArchiveJob", json_make("[I]", (json_int_t)id), "true");
    g_assert_false(on_record(w, id));
    g_assert_true(archived_on(w, MASTER, id));
    g_assert_true(archived_on(w, NODE2, id));
    g_assert_false(archived_on(w, NODE3, id));
    /* It is there, as often as one asks. */
    expect(w, "ArchiveJob", json_make("[I]", (json_int_t)id), "true");
    /* By its id it is found as before; lists have it only if they ask for it. */
    expect(w, "QueryJobs", json_make("[[I], [sss]]", (json_int_t)id, "id", "status", "archived"),
           "[[1,\"success\",true]]");
    expect(w, "QueryJobs", json_make("[n, [s]]", "id"), "[[2]]");
    expect(w, "QueryJobs", json_make("[n, [ss]]", "id", "archived"), "[[1,true],[2,false]]");
    expect(w, "QueryJobs", json_make("[[i], [ss]]", 99, "id", "status"), "[[99,null]]");
    expect(w, "WaitForJobChange", json_make("[I, [s], n, n, i]", (json_int_t)id, "status", 5),
           "[[\"success\"],[]]");
    expect(w, "WaitForJobChange", json_make("[i, [s], n, n, i]", 99, "status", 5), "null");
    g_assert_cmpuint(other, ==, 2);
    queue_world_free(w);
}

/* The rows of Query, without the description of the fields. */
static void expect_rows(struct queue_world *w, json_t *fields, json_t *filter, const char *text)
{
    g_autoptr(GError) error = NULL;
    json_autoptr result =
        queue_call(w, "Query", json_make("[s, o, o]", "job", fields, filter), &error);
    g_autofree char *said = NULL;

    g_assert_no_error(error);
    said = json_dumps(json_object_get(result, "data"), JSON_COMPACT);
    g_assert_cmpstr(said, ==, text);
}

static void test_query(void)
{
    struct queue_world *w = world_new();

    for (guint i = 0; i < 4; i++)
        run_job(w, NULL);
    expect(w, "ArchiveJob", json_make("[i]", 3), "true");
    expect(w, "ArchiveJob", json_make("[i]", 1), "true");
    expect_rows(w, json_make("[s]", "id"), json_null(), "[[[0,2]],[[0,4]]]");
    expect_rows(w, json_make("[ss]", "id", "archived"), json_null(),
                "[[[0,1],[0,true]],[[0,2],[0,false]],[[0,3],[0,true]],[[0,4],[0,false]]]");
    expect_rows(w, json_make("[s]", "id"), json_make("[ss]", "?", "archived"), "[[[0,1]],[[0,3]]]");
    /* Named ones, in the order of their ids, each once. */
    expect_rows(w, json_make("[s]", "id"),
                json_make("[s[ssi][ssi][ssi][ssi]]", "|", "=", "id", 4, "=", "id", 3, "=", "id", 3,
                          "=", "id", 9),
                "[[[0,3]],[[0,4]]]");
    expect_rows(w, json_make("[s]", "id"),
                json_make("[s[ssi][sss]]", "&", "=", "id", 3, "=", "status", "error"), "[]");
    expect_rows(w, json_make("[s]", "id"), json_make("[ssi]", ">", "id", 2), "[[[0,4]]]");
    queue_world_free(w);
}

static void test_not_yet(void)
{
    struct queue_world *w = world_new();
    guint64 id = queue_submit(w, NULL);

    expect(w, "ArchiveJob", json_make("[I]", (json_int_t)id), "false");
    queue_child_named(w, id);
    queue_job_writes(w, id, "running");
    expect(w, "ArchiveJob", json_make("[I]", (json_int_t)id), "false");
    queue_job_writes(w, id, "success");
    queue_job_commits(w, id);
    /* The end is on record, its process is not gone yet. */
    expect(w, "ArchiveJob", json_make("[I]", (json_int_t)id), "false");
    queue_job_gone(w, id, true);
    expect(w, "ArchiveJob", json_make("[I]", (json_int_t)id), "true");
    expect(w, "ArchiveJob", json_make("[i]", 99), "false");
    queue_refuse(w, "ArchiveJob", json_make("[s]", "x"), FETTLE_ERROR_WRONG_INPUT,
                 "ArchiveJob: job: must be a number");
    queue_refuse(w, "AutoArchiveJobs", json_make("[i]", -2), FETTLE_ERROR_WRONG_INPUT,
                 "AutoArchiveJobs: age: must be at least -1");
    queue_refuse(w, "AutoArchiveJobs", json_make("[ii]", 1, -1), FETTLE_ERROR_WRONG_INPUT,
                 "AutoArchiveJobs: timeout: must be at least 0");
    queue_world_free(w);
}

/* --- every candidate first --- */

static void test_candidates(void)
{
    struct queue_world *w = world_new();
    const guint64 id = 1;

    put_ended(w, id, 0, NULL);
    fake_advance(w->world, ARCHIVE_LOOK_MS + 1000); /* compared once */
    fake_cut(w->world, NODE2, true);
    queue_refuse(w, "ArchiveJob", json_make("[I]", (json_int_t)id), FETTLE_ERROR_UNREACHABLE,
                 "jobs stay on record until candidate node2 has them in its archive, or is "
                 "marked offline: the node cannot be reached");
    g_assert_true(on_record(w, id));
    g_assert_false(archived_on(w, NODE2, id));
    /* Nothing can be lost with a node that is said to be dead. */
    put_node(w, NODE2, "node2", true, true);
    expect(w, "ArchiveJob", json_make("[I]", (json_int_t)id), "true");
    g_assert_false(on_record(w, id));
    /* It comes back, and gets what it has missed as soon as it answers. */
    put_node(w, NODE2, "node2", true, false);
    fake_advance(w->world, 1000);
    fake_cut(w->world, NODE2, false);
    g_assert_false(archived_on(w, NODE2, id));
    fake_advance(w->world, ARCHIVE_RETRY_MS + 1000);
    g_assert_true(archived_on(w, NODE2, id));
    queue_world_free(w);
}

/* Both ways, in all folders: what only one of them has. */
static void test_new_candidate(void)
{
    struct queue_world *w = world_new();
    static const guint64 ids[] = {7, 9999, 10000, 123456};

    for (guint i = 0; i < G_N_ELEMENTS(ids); i++)
        put_ended(w, ids[i], HOUR, NULL);
    expect(w, "AutoArchiveJobs", json_make("[ii]", -1, 5), "[4,0]");
    fake_file_put(w->world, NODE3, FILE_STATE, "queue/archive/2/job-20001",
                  "{\"id\": 20001, \"status\": \"error\", \"new\": 1, \"ops\": [{\"input\": "
                  "{\"OP_ID\": \"OP_TEST_DELAY\"}, \"status\": \"error\"}]}");
    add_noded(w, NODE3);
    put_node(w, NODE3, "node3", true, false);
    fake_advance(w->world, 1000);
    for (guint i = 0; i < G_N_ELEMENTS(ids); i++)
        g_assert_true(archived_on(w, NODE3, ids[i]));
    g_assert_true(archived_on(w, MASTER, 20001));
    /* Fields of a newer version go along. */
    g_assert_nonnull(
        strstr(fake_file(w->world, MASTER, FILE_STATE, "queue/archive/2/job-20001"), "\"new\":1"));
    g_assert_cmpstr(queue_status(w, 20001), ==, "error");
    queue_world_free(w);
}

static void test_full_disk(void)
{
    struct queue_world *w = world_new();
    guint64 id = run_job(w, NULL);

    fake_fail_files(w->world, NODE2 "/state/queue/archive/0/job-1", 2);
    queue_refuse(w, "ArchiveJob", json_make("[I]", (json_int_t)id), FETTLE_ERROR_STORAGE,
                 "jobs stay on record until candidate node2 has them in its archive, or is marked "
                 "offline: archive: job 1: " NODE2
                 "/state/queue/archive/0/job-1: input/output error (made by the test)");
    g_assert_true(on_record(w, id));
    expect(w, "ArchiveJob", json_make("[I]", (json_int_t)id), "true");
    queue_world_free(w);
}

/* The files are there, the commit was not made: the job is in both places, counted once. */
static void test_death_before_commit(void)
{
    struct queue_world *w = world_new();
    guint64 id = run_job(w, NULL);
    struct fake_reply reply = {0};

    store_hold(w->store, true);
    fake_call_start(w->cli, 0, MASTER, ROLE_LUXID, "ArchiveJob", json_make("[I]", (json_int_t)id),
                    &reply);
    fake_settle(w->world);
    g_assert_false(reply.done);
    g_assert_true(archived_on(w, NODE2, id));
    queue_world_kill_luxid(w);
    /* What had not begun there never does. */
    store_hold(w->store, false);
    fake_settle(w->world);
    fake_reply_clear(&reply);
    if (!on_record(w, id))
        put_ended(w, id, HOUR, NULL);
    queue_world_start_luxid(w);
    expect(w, "QueryJobs", json_make("[n, [ss]]", "id", "archived"), "[[1,false]]");
    expect(w, "ArchiveJob", json_make("[I]", (json_int_t)id), "true");
    expect(w, "QueryJobs", json_make("[n, [ss]]", "id", "archived"), "[[1,true]]");
    queue_world_free(w);
}

static void test_refused_commit(void)
{
    struct queue_world *w = world_new();
    guint64 id = run_job(w, NULL);

    store_fail_next(w->store, FETTLE_ERROR_STORAGE, "the disk is full");
    queue_refuse(w, "ArchiveJob", json_make("[I]", (json_int_t)id), FETTLE_ERROR_STORAGE,
                 "the disk is full");
    expect(w, "QueryJobs", json_make("[n, [ss]]", "id", "archived"), "[[1,false]]");
    queue_world_free(w);
}

/* --- by age --- */

static void test_auto(void)
{
    struct queue_world *w = world_new();
    guint64 under_way = queue_submit(w, NULL);

    put_ended(w, 11, 3 * HOUR, NULL);
    put_ended(w, 12, HOUR, NULL);
    expect(w, "AutoArchiveJobs", json_make("[ii]", 2 * HOUR, 5), "[1,0]");
    g_assert_false(on_record(w, 11));
    g_assert_true(on_record(w, 12));
    expect(w, "AutoArchiveJobs", json_make("[ii]", 0, 5), "[1,0]");
    expect(w, "AutoArchiveJobs", json_make("[ii]", -1, 5), "[0,0]");
    g_assert_true(on_record(w, under_way));
    queue_world_free(w);
}

static void test_auto_in_steps(void)
{
    struct queue_world *w = world_new();
    guint before;

    for (guint64 id = 1; id <= 150; id++)
        put_ended(w, id, HOUR, NULL);
    fake_settle(w->world);
    before = store_commits(w->store);
    /* No time for more than one step. */
    expect(w, "AutoArchiveJobs", json_make("[ii]", -1, 0), "[64,86]");
    g_assert_false(on_record(w, 64));
    g_assert_true(on_record(w, 65));
    expect(w, "AutoArchiveJobs", json_make("[ii]", -1, 5), "[86,0]");
    g_assert_cmpuint(store_commits(w->store) - before, ==, 3);
    queue_world_free(w);
}

static void set_age(struct queue_world *w, int age_s)
{
    json_t *cluster = json_deep_copy(store_get(w->store, "cluster", CLUSTER));

    json_object_set_new(cluster, "job_archive_age_s", json_integer(age_s));
    store_put(w->store, "cluster", CLUSTER, cluster);
}

static void test_by_itself(void)
{
    struct queue_world *w = world_new();

    /* Six hours, if nobody says otherwise. */
    for (guint64 id = 1; id <= 100; id++)
        put_ended(w, id, 6 * HOUR + 1, NULL);
    put_ended(w, 101, 5 * HOUR, NULL);
    fake_advance(w->world, ARCHIVE_LOOK_MS + 5000);
    g_assert_false(on_record(w, 1));
    g_assert_false(on_record(w, 100));
    g_assert_true(on_record(w, 101));
    set_age(w, 0);
    fake_advance(w->world, 2 * HOUR * 1000);
    g_assert_true(on_record(w, 101));
    set_age(w, HOUR);
    fake_advance(w->world, 1000);
    g_assert_false(on_record(w, 101));
    queue_world_free(w);
}

/* --- who stays --- */

static void put_tag(struct queue_world *w, const char *tag)
{
    g_autofree char *key = g_strdup_printf("instance/" WEB1 "/%s", tag);

    store_put(w->store, "tag", key,
              json_make("{ss, ss, ss}", "kind", "instance", "object", WEB1, "tag", tag));
}

static void put_instance(struct queue_world *w, int generation, const char *task, int owner)
{
    store_put(w->store, "instance", WEB1,
              json_make("{ss, ss, ss, ss, si, ss, si, ss, si}", "uuid", WEB1, "name", "web1",
                        "admin_state", "up", "disk_template", "diskless", "memory", 64,
                        "primary_node", MASTER, "generation", generation, "task_state", task,
                        "task_owner", owner));
}

/* One that ended without having started goes like any other. */
static void test_never_started(void)
{
    struct queue_world *w = world_new();
    guint64 first = run_job(w, NULL);
    guint64 doomed =
        queue_submit(w, json_make("{s[[I, [s]]]}", "depends", (json_int_t)first, "error"));

    g_assert_cmpstr(queue_status(w, doomed), ==, "error");
    expect(w, "ArchiveJob", json_make("[I]", (json_int_t)doomed), "true");
    g_assert_false(on_record(w, doomed));
    queue_world_free(w);
}

static json_t *after(guint64 id)
{
    return json_make("[[o]]",
                     queue_delay(json_make("{s[[I, [s]]]}", "depends", (json_int_t)id, "success")));
}

/* A job comes that depends on one which is just being archived. */
static void test_dependent_comes(void)
{
    struct queue_world *w = queue_world_new(1);
    struct fake_reply archive = {0}, submit = {0};
    guint64 first, second;

    put_node(w, MASTER, "node1", true, false);
    add_noded(w, MASTER);
    first = run_job(w, NULL);
    queue_submit(w, NULL); /* takes the only slot */
    fake_call_start(w->cli, 0, MASTER, ROLE_LUXID, "ArchiveJob",
                    json_make("[I]", (json_int_t)first), &archive);
    fake_call_start(w->cli, 0, MASTER, ROLE_LUXID, "SubmitJob", after(first), &submit);
    fake_advance(w->world, 3000);
    g_assert_true(archive.done && submit.done);
    g_assert_no_error(submit.error);
    g_assert_true(json_is_false(archive.result));
    g_assert_true(on_record(w, first));
    second = (guint64)json_integer_value(submit.result);
    queue_world_restart_luxid(w);
    g_assert_cmpstr(queue_status(w, second), !=, "error");
    fake_reply_clear(&archive);
    fake_reply_clear(&submit);
    queue_world_free(w);
}

/* Both in one transaction, in this order. */
static void check_beside(struct queue_world *w, bool archive_first)
{
    struct fake_reply other = {0}, archive = {0}, submit = {0};
    guint64 first = run_job(w, NULL);

    store_hold(w->store, true);
    fake_call_start(w->cli, 0, MASTER, ROLE_LUXID, "SubmitJob",
                    json_make("[[o]]", queue_delay(NULL)), &other);
    fake_settle(w->world);
    if (!archive_first)
        fake_call_start(w->cli, 0, MASTER, ROLE_LUXID, "SubmitJob", after(first), &submit);
    fake_call_start(w->cli, 0, MASTER, ROLE_LUXID, "ArchiveJob",
                    json_make("[I]", (json_int_t)first), &archive);
    fake_settle(w->world);
    if (archive_first)
        fake_call_start(w->cli, 0, MASTER, ROLE_LUXID, "SubmitJob", after(first), &submit);
    fake_settle(w->world);
    store_hold(w->store, false);
    fake_settle(w->world);
    g_assert_true(archive.done && submit.done);
    g_assert_no_error(archive.error);
    g_assert_cmpint(json_is_true(archive.result), ==, !on_record(w, first));
    if (archive_first)
        g_assert_error(submit.error, FETTLE_ERROR, FETTLE_ERROR_WRONG_STATE);
    else
        g_assert_true(on_record(w, first));
    fake_reply_clear(&other);
    fake_reply_clear(&archive);
    fake_reply_clear(&submit);
}

static void test_dependent_beside(void)
{
    struct queue_world *w = queue_world_new(5);

    put_node(w, MASTER, "node1", true, false);
    add_noded(w, MASTER);
    check_beside(w, false);
    check_beside(w, true);
    queue_world_free(w);
}

/* The store stands still for so long that luxid gives the submission up, and is stored after all:
 * what was built without it is not. */
static void test_dependent_late(void)
{
    struct queue_world *w = queue_world_new(5);
    struct fake_reply submit = {0}, archive = {0};
    guint64 first;

    put_node(w, MASTER, "node1", true, false);
    add_noded(w, MASTER);
    first = run_job(w, NULL);
    store_hold(w->store, true);
    fake_call_start(
        w->cli, 0, MASTER, ROLE_LUXID, "SubmitJob",
        json_make("[[o]]", queue_delay(json_make("{s[[I, []]]}", "depends", (json_int_t)first))),
        &submit);
    fake_advance(w->world, 100 * 1000);
    g_assert_true(submit.done);
    g_assert_error(submit.error, FETTLE_ERROR, FETTLE_ERROR_UNKNOWN_RESULT);
    fake_call_start(w->cli, 0, MASTER, ROLE_LUXID, "ArchiveJob",
                    json_make("[I]", (json_int_t)first), &archive);
    fake_advance(w->world, 1000);
    store_hold(w->store, false);
    fake_advance(w->world, 2000);
    g_assert_true(archive.done);
    g_assert_true(json_is_false(archive.result));
    g_assert_true(on_record(w, first));
    g_assert_true(on_record(w, first + 1));
    fake_reply_clear(&submit);
    fake_reply_clear(&archive);
    queue_world_free(w);
}

static void test_dependencies(void)
{
    struct queue_world *w = queue_world_new(1);
    guint64 first, blocker, second;

    put_node(w, MASTER, "node1", true, false);
    add_noded(w, MASTER);
    first = run_job(w, NULL);
    blocker = queue_submit(w, NULL); /* takes the only slot */
    second = queue_submit(w, json_make("{s[[I, [s]]]}", "depends", (json_int_t)first, "success"));
    expect(w, "ArchiveJob", json_make("[I]", (json_int_t)first), "false");
    expect(w, "AutoArchiveJobs", json_make("[ii]", -1, 5), "[0,0]");
    /* So a luxid that starts anew still knows how it has ended. */
    queue_world_restart_luxid(w);
    g_assert_cmpstr(queue_status(w, blocker), ==, "error"); /* its start was cut off */
    g_assert_cmpstr(queue_status(w, second), ==, "waiting");
    queue_job_runs(w, second);
    g_assert_cmpstr(queue_status(w, second), ==, "success");
    expect(w, "ArchiveJob", json_make("[I]", (json_int_t)first), "true");
    queue_refuse(w, "SubmitJob",
                 json_make("[[o]]", queue_delay(json_make("{s[[I, [s]]]}", "depends",
                                                          (json_int_t)first, "success"))),
                 FETTLE_ERROR_WRONG_STATE, "depends: job 1 is archived; it ended in state success");
    queue_world_free(w);
}

static void test_repairs_stay(void)
{
    struct queue_world *w = world_new();
    static const char *const requests[] = {"0e-1/1-failover/1", "0e-2/1-failover/1",
                                           "restart/" WEB1 "/3/1", "restart/" WEB1 "/2/1",
                                           "finish/" WEB1 "/4/3/1"};

    put_instance(w, 3, "", 0);
    put_tag(w, "ganeti:watcher:autorepair:pending:failover:0e-1:1700000000:6+7");
    put_tag(w, "ganeti:watcher:autorepair:result:failover:0e-9:1700000000:success:8");
    for (guint64 id = 1; id <= 5; id++)
        put_ended(w, id, HOUR, json_make("{ss}", "request_id", requests[id - 1]));
    for (guint64 id = 6; id <= 9; id++)
        put_ended(w, id, HOUR, NULL);
    put_ended(w, 10, 60,
              json_make("{ss, sI}", "request_id", "0e-3/1-migrate/1", "received_us",
                        (json_int_t)w->luxid->ops->wall_us(w->luxid)));
    /* The job of the pending repair, the tries of this generation, the repair of the last hour. */
    expect(w, "AutoArchiveJobs", json_make("[ii]", -1, 5), "[4,0]");
    expect(w, "QueryJobs", json_make("[n, [s]]", "id"), "[[1],[3],[5],[6],[7],[10]]");
    /* A mark on an instance names its job. */
    put_instance(w, 4, "starting", 3);
    expect(w, "AutoArchiveJobs", json_make("[ii]", -1, 5), "[1,0]");
    expect(w, "QueryJobs", json_make("[n, [s]]", "id"), "[[1],[3],[6],[7],[10]]");
    queue_world_free(w);
}

/* --- request ids --- */

static json_t *once(double duration)
{
    return json_make(
        "[[o]]", queue_delay(json_make("{ss, sf}", "request_id", "once", "duration", duration)));
}

static void test_request_id(void)
{
    struct queue_world *w = world_new();
    guint64 id = run_job(w, json_make("{ss}", "request_id", "once"));

    expect(w, "ArchiveJob", json_make("[I]", (json_int_t)id), "true");
    expect(w, "SubmitJob", once(0.0), "1");
    queue_refuse(w, "SubmitJob", once(1.0), FETTLE_ERROR_ALREADY_EXISTS,
                 "request id \"once\" belongs to job 1, which asks for something else");
    queue_world_restart_luxid(w);
    expect(w, "SubmitJob", once(0.0), "1");
    expect(w, "SubmitManyJobs",
           json_make("[[[o], [o]]]", queue_delay(NULL),
                     queue_delay(json_make("{ss}", "request_id", "once"))),
           "[[true,2],[true,1]]");
    queue_world_free(w);
}

/* What it depends on is archived since: it is the same job all the same. */
static void test_request_id_depends(void)
{
    struct queue_world *w = world_new();
    guint64 first = run_job(w, NULL);
    json_autoptr args =
        json_make("[[o]]", queue_delay(json_make("{ss, s[[I, [s]]]}", "request_id", "once",
                                                 "depends", (json_int_t)first, "success")));

    expect(w, "SubmitJob", json_deep_copy(args), "2");
    queue_job_runs(w, 2);
    expect(w, "ArchiveJob", json_make("[I]", (json_int_t)first), "true");
    expect(w, "SubmitJob", json_deep_copy(args), "2");
    queue_world_free(w);
}

/* --- files --- */

static void test_damaged(void)
{
    struct queue_world *w = world_new();
    guint64 id = run_job(w, NULL);

    expect(w, "ArchiveJob", json_make("[I]", (json_int_t)id), "true");
    fake_file_put(w->world, MASTER, FILE_STATE, "queue/archive/0/job-1", "{\"id\": 1, ");
    fake_file_put(w->world, MASTER, FILE_STATE, "queue/archive/0/job-x", "{}");
    fake_file_put(w->world, MASTER, FILE_STATE, "queue/archive/0/job-5",
                  "{\"id\": 6, \"ops\": []}");
    expect(w, "QueryJobs", json_make("[[i, i], [ss]]", 1, 5, "id", "status"),
           "[[1,null],[5,null]]");
    expect(w, "QueryJobs", json_make("[n, [ss]]", "id", "archived"), "[[1,null],[5,null]]");
    expect_rows(w, json_make("[ss]", "id", "archived"), json_null(), "[]");
    queue_world_free(w);
}

static void refuse_put(struct queue_world *w, struct env *luxid, json_t *args,
                       enum fettle_error code, const char *message)
{
    g_autoptr(GError) error = NULL;
    json_autoptr answer = fake_call(luxid, NODE2, ROLE_NODED, "archive_put", args, &error);

    g_assert_null(answer);
    g_assert_error(error, FETTLE_ERROR, (gint)code);
    g_assert_cmpstr(error->message, ==, message);
}

static void test_bad_puts(void)
{
    struct queue_world *w = world_new();
    json_t *many = json_array();
    g_autoptr(GError) error = NULL;
    json_autoptr answer = NULL;

    for (guint i = 0; i < 65; i++)
        json_array_append_new(many, json_integer(i));
    refuse_put(w, w->luxid, json_make("{si}", "jobs", 1), FETTLE_ERROR_WRONG_INPUT,
               "jobs: must be a list of at most 64");
    refuse_put(w, w->luxid, json_make("{so}", "jobs", many), FETTLE_ERROR_WRONG_INPUT,
               "jobs: must be a list of at most 64");
    refuse_put(w, w->luxid, json_make("{s[i]}", "jobs", 1), FETTLE_ERROR_WRONG_INPUT,
               "archive: job: must be an object");
    refuse_put(w, w->luxid,
               json_make("{s[{sI, s[{s{}}]}]}", "jobs", "id", (json_int_t)5, "ops", "input"),
               FETTLE_ERROR_WRONG_STATE,
               "archive: job 5 is queued; only a job that has ended can be archived");
    answer = fake_call(w->luxid, NODE2, ROLE_NODED, "archive_get",
                       json_make("{s[siI]}", "ids", "x", -1, (json_int_t)77), &error);
    g_assert_no_error(error);
    g_assert_cmpuint(json_array_size(json_object_get(answer, "jobs")), ==, 0);
    queue_world_free(w);
}

/* One of an earlier version, whose log had no limit: what can be put into the archive can be read
 * there. */
static void test_large(void)
{
    struct queue_world *w = world_new();
    g_autofree char *big = g_strnfill(LIMIT_JOB_FILE_BYTES + MIB(1), 'x');
    json_t *op =
        json_make("{so, ss, sI, s[[i, [i, i], s, s]]}", "input", queue_delay(NULL), "status",
                  "success", "end_us", (json_int_t)1000, "log", 1, 1, 1, "message", big);

    put_ended(w, 7, HOUR, json_make("{s[o], ss}", "ops", op, "request_id", "large"));
    expect(w, "ArchiveJob", json_make("[i]", 7), "true");
    g_assert_false(on_record(w, 7));
    g_assert_true(archived_on(w, NODE2, 7));
    expect(w, "QueryJobs", json_make("[[i], [s]]", 7, "status"), "[[\"success\"]]");
    queue_world_free(w);
}

static void wait_for(struct queue_world *w, guint64 id, const char *field, json_t *known,
                     struct fake_reply *reply)
{
    *reply = (struct fake_reply){0};
    fake_call_start(w->cli, 0, MASTER, ROLE_LUXID, "WaitForJobChange",
                    json_make("[I, [s], [o], i, i]", (json_int_t)id, field, known, 0, 60), reply);
    fake_settle(w->world);
    g_assert_true(reply->done);
}

/* Nobody waits for a job that has ended, on record or in the archive. */
static void test_waited_for(void)
{
    struct queue_world *w = world_new();
    struct fake_reply status, archived;
    g_autoptr(GError) error = NULL;
    guint64 id = run_job(w, NULL);
    json_autoptr done = NULL;
    json_autoptr expected = json_make("[[b], []]", 1);
    json_autoptr ended = json_make("[[s], []]", "success");

    wait_for(w, id, "status", json_string("success"), &status);
    g_assert_true(json_equal(status.result, ended));
    done = queue_call(w, "ArchiveJob", json_make("[I]", (json_int_t)id), &error);
    g_assert_no_error(error);
    g_assert_true(json_is_true(done));
    wait_for(w, id, "archived", json_true(), &archived);
    g_assert_true(json_equal(archived.result, expected));
    fake_reply_clear(&status);
    fake_reply_clear(&archived);
    queue_world_free(w);
}

/* There is nothing to be done to it any more, and that is what is said. */
static void test_verbs(void)
{
    struct queue_world *w = world_new();
    g_autoptr(GError) error = NULL;
    guint64 id = run_job(w, NULL);
    json_autoptr done = queue_call(w, "ArchiveJob", json_make("[I]", (json_int_t)id), &error);
    json_autoptr canceled = queue_call(w, "CancelJob", json_make("[I]", (json_int_t)id), &error);
    json_autoptr changed =
        queue_call(w, "ChangeJobPriority", json_make("[I, i]", (json_int_t)id, 5), &error);
    json_autoptr unknown = queue_call(w, "CancelJob", json_make("[i]", 99), &error);
    json_autoptr expected =
        json_make("[b, s]", 0, "Job 1 has ended already, with success, and is archived");
    json_autoptr expected_unknown = json_make("[b, s]", 0, "Job 99 not found in queue");

    g_assert_no_error(error);
    g_assert_true(json_is_true(done));
    g_assert_true(json_equal(canceled, expected));
    g_assert_true(json_equal(changed, expected));
    g_assert_true(json_equal(unknown, expected_unknown));
    queue_world_free(w);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/archive/one#LUX-06", test_one);
    g_test_add_func("/archive/query#LUX-06", test_query);
    g_test_add_func("/archive/not-yet#LUX-06", test_not_yet);
    g_test_add_func("/archive/every-candidate-first#LUX-10", test_candidates);
    g_test_add_func("/archive/new-candidate#LUX-10", test_new_candidate);
    g_test_add_func("/archive/full-disk#LUX-06", test_full_disk);
    g_test_add_func("/archive/death-before-commit#LUX-06", test_death_before_commit);
    g_test_add_func("/archive/refused-commit#LUX-06", test_refused_commit);
    g_test_add_func("/archive/auto#LUX-06", test_auto);
    g_test_add_func("/archive/auto-in-steps#LUX-06", test_auto_in_steps);
    g_test_add_func("/archive/by-itself#LUX-06", test_by_itself);
    g_test_add_func("/archive/dependencies-stay#LUX-06", test_dependencies);
    g_test_add_func("/archive/never-started#LUX-06", test_never_started);
    g_test_add_func("/archive/dependent-comes#LUX-06", test_dependent_comes);
    g_test_add_func("/archive/dependent-beside#LUX-06", test_dependent_beside);
    g_test_add_func("/archive/dependent-late#LUX-06,SAF-04", test_dependent_late);
    g_test_add_func("/archive/repairs-stay", test_repairs_stay);
    g_test_add_func("/archive/request-id#SAF-31", test_request_id);
    g_test_add_func("/archive/request-id-depends#SAF-31", test_request_id_depends);
    g_test_add_func("/archive/damaged", test_damaged);
    g_test_add_func("/archive/bad-puts", test_bad_puts);
    g_test_add_func("/archive/large#SAF-31", test_large);
    g_test_add_func("/archive/waited-for", test_waited_for);
    g_test_add_func("/archive/verbs", test_verbs);
    return g_test_run();
}
