/* RetryRecovery: whose wish is noted, and each refusal. core/queue/recovery_calls.c */
#include "unit/core/world/queue_world.h"

#include <string.h>

#define WEB1 "dddddddd-0000-4000-8000-000000000001"
#define KEY "instance/" WEB1

static void put_web1(struct queue_world *w, const char *word, guint64 owner)
{
    store_put(w->store, "instance", WEB1,
              json_make("{ss, ss, ss, si, ss, ss, sI, sI}", "uuid", WEB1, "name", "web1",
                        "disk_template", "diskless", "memory", 8, "primary_node", MASTER,
                        "task_state", word, "task_owner", (json_int_t)owner, "task_since",
                        (json_int_t)1700000000));
    fake_settle(w->world);
}

static json_t *object(struct queue_world *w, const char *kind)
{
    return store_get(w->store, kind, KEY);
}

static void retry(struct queue_world *w)
{
    g_autoptr(GError) error = NULL;
    json_autoptr answer =
        queue_call(w, "RetryRecovery", json_make("[s, s]", "instance", "web1"), &error);
    g_assert_no_error(error);
    g_assert_true(json_is_true(answer));
}

static void refuse(struct queue_world *w, const char *kind, const char *name,
                   enum fettle_error code, const char *message)
{
    queue_refuse(w, "RetryRecovery", json_make("[s, s]", kind, name), code, message);
}

/* A mark that was left behind gets what is counted of it, and keeps that. */
static void test_mark(struct queue_world *w)
{
    put_web1(w, "starting", 0);
    retry(w);
    json_autoptr first = json_deep_copy(object(w, "stuck"));
    g_assert_true(json_is_true(json_object_get(first, "again")));
    g_assert_cmpstr(json_string_value(json_object_get(first, "task")), ==, "starting");
    store_put(w->store, "stuck", KEY,
              json_make("{ss, ss, ss, si, si}", "subject_kind", "instance", "subject", WEB1, "task",
                        "starting", "since_us", 5, "looks", 3));
    fake_settle(w->world);
    retry(w);
    const json_t *second = object(w, "stuck");
    g_assert_true(json_is_true(json_object_get(second, "again")));
    g_assert_cmpint(json_integer_value(json_object_get(second, "looks")), ==, 3);
}

static void test_fault(struct queue_world *w)
{
    put_web1(w, "", 0);
    store_put(w->store, "fault", KEY,
              json_make("{ss, ss, si, ss, ss}", "subject_kind", "instance", "subject", WEB1,
                        "at_us", 5, "message", "node2 is silent", "task", "creating"));
    fake_settle(w->world);
    retry(w);
    const json_t *fault = object(w, "fault");
    g_assert_true(json_is_true(json_object_get(fault, "again")));
    g_assert_cmpstr(json_string_value(json_object_get(fault, "task")), ==, "creating");
    g_assert_null(object(w, "stuck"));
}

static void test_nothing(struct queue_world *w)
{
    refuse(w, "instance", "nix", FETTLE_ERROR_UNKNOWN_ENTITY, "instance \"nix\" does not exist");
    refuse(w, "network", "n", FETTLE_ERROR_WRONG_INPUT,
           "RetryRecovery: kind: must be one of instance, volume, snapshot, backup, image, not "
           "\"network\"");
    put_web1(w, "", 0);
    refuse(w, "instance", "web1", FETTLE_ERROR_WRONG_STATE,
           "instance \"web1\": nothing is stuck; it has no task");
    store_put(w->store, "job", "5",
              json_make("{si, ss, sI, s[{s{ss, ss}, ss}]}", "id", 5, "status", "success", "end_us",
                        (json_int_t)1700000000 * 1000000, "ops", "input", "OP_ID",
                        "OP_INSTANCE_STARTUP", "instance_name", "web1", "status", "success"));
    fake_settle(w->world);
    refuse(w, "instance", "web1", FETTLE_ERROR_WRONG_STATE,
           "instance \"web1\": nothing is stuck; its last task ended at 2023-11-14 22:13:20 UTC");
}

#define VOLUME1 "eeeeeeee-1111-4000-8000-000000000001"
#define VOLUME_KEY "volume/" VOLUME1

static void put_volume(struct queue_world *w, const char *status)
{
    store_put(w->store, "volume", VOLUME1,
              json_make("{ss, ss, si, ss}", "uuid", VOLUME1, "name", "data1", "size", 2, "status",
                        status));
    fake_settle(w->world);
}

/* Of what is stored: work that nobody has; with a row it is cleanup's (RCV-13). */
static void test_stored(struct queue_world *w)
{
    refuse(w, "volume", "data1", FETTLE_ERROR_UNKNOWN_ENTITY, "volume \"data1\" does not exist");
    put_volume(w, "error");
    refuse(w, "volume", "data1", FETTLE_ERROR_WRONG_STATE,
           "volume \"data1\": nothing is stuck; it is error");
    put_volume(w, "creating");
    g_autoptr(GError) error = NULL;
    json_decref(queue_call(w, "RetryRecovery", json_make("[ss]", "volume", "data1"), &error));
    g_assert_no_error(error);
    json_t *stuck = store_get(w->store, "stuck", VOLUME_KEY);
    g_assert_true(json_is_true(json_object_get(stuck, "again")));
    g_assert_cmpstr(json_string_value(json_object_get(stuck, "task")), ==, "creating");
    put_volume(w, "error");
    store_put(w->store, "fault", VOLUME_KEY,
              json_make("{ss, ss, si, ss, ss}", "subject_kind", "volume", "subject", VOLUME1,
                        "at_us", 5, "message", "nobody can look", "task", "creating"));
    fake_settle(w->world);
    json_decref(queue_call(w, "RetryRecovery", json_make("[ss]", "volume", "data1"), &error));
    g_assert_no_error(error);
    g_assert_true(json_is_true(json_object_get(store_get(w->store, "fault", VOLUME_KEY), "again")));
    put_volume(w, "creating");
    store_put(w->store, "worker", "Volume/" VOLUME1,
              json_make("{si, ss, ss, ss, ss}", "id", 9, "resource_type", "Volume", "resource_id",
                        VOLUME1, "operation", "create-volume", "status", "creating"));
    fake_settle(w->world);
    refuse(
        w, "volume", "data1", FETTLE_ERROR_WRONG_STATE,
        "volume \"data1\": its work (creating) is on record, and is that of cleanup; see: fettle "
        "why volume data1");
}

/* Its owner lives, or will: nothing is noted. */
static void test_owner_lives(struct queue_world *w)
{
    guint64 running = queue_submit_running(w), queued = queue_submit(w, NULL);
    put_web1(w, "creating", running);
    record_autoptr(job) job = queue_file(w, running);
    guint64 since = job && job->start_us ? job->start_us / G_USEC_PER_SEC : 0;
    g_autoptr(GDateTime) time = g_date_time_new_from_unix_utc((gint64)since);
    g_autofree char *when = g_date_time_format(time, "%Y-%m-%d %H:%M:%S UTC");
    g_autofree char *lives = g_strdup_printf(
        "instance \"web1\": job %" G_GUINT64_FORMAT " is creating it and lives (running since %s); "
        "end it first: fettle job cancel %" G_GUINT64_FORMAT " --kill",
        running, when, running);
    refuse(w, "instance", "web1", FETTLE_ERROR_WRONG_STATE, lives);
    put_web1(w, "creating", queued);
    g_autofree char *waits = g_strdup_printf("instance \"web1\": job %" G_GUINT64_FORMAT
                                             ", which is creating it, is queued; end it "
                                             "first: fettle job cancel %" G_GUINT64_FORMAT,
                                             queued, queued);
    refuse(w, "instance", "web1", FETTLE_ERROR_WRONG_STATE, waits);
    g_assert_null(object(w, "stuck"));
}

static void test_repair(struct queue_world *w)
{
    put_web1(w, "starting", 0);
    store_put(w->store, "tag",
              "instance/" WEB1 "/ganeti:watcher:autorepair:pending:failover:r-7:100:",
              json_make("{ss, ss, ss}", "kind", "instance", "object", WEB1, "tag",
                        "ganeti:watcher:autorepair:pending:failover:r-7:100:"));
    fake_settle(w->world);
    refuse(w, "instance", "web1", FETTLE_ERROR_WRONG_STATE,
           "instance \"web1\": repair r-7 is under way; it is looked at when that has ended");
}

/* --- PlanRecovery --- */

static void refuse_plan(struct queue_world *w, const char *kind, const char *name, bool hosts,
                        enum fettle_error code, const char *message)
{
    queue_refuse(w, "PlanRecovery", json_make("[s, s, b]", kind, name, hosts), code, message);
}

/* One row, whose owner and outcome are these, or none; the node daemon of the only node is away. */
static void expect_plan(struct queue_world *w, json_t *args, const char *owner_why,
                        const char *outcome, size_t hosts)
{
    g_autoptr(GError) error = NULL;
    json_autoptr answer = queue_call(w, "PlanRecovery", args, &error);
    g_assert_no_error(error);
    const json_t *rows = json_object_get(answer, "rows"), *row = json_array_get(rows, 0);
    g_assert_cmpuint(json_array_size(rows), ==, outcome ? 1 : 0);
    g_assert_cmpstr(json_string_value(json_object_get(row, "outcome")), ==, outcome);
    g_assert_cmpstr(json_string_value(json_object_get(row, "owner_why")), ==, owner_why);
    g_assert_cmpuint(json_array_size(json_object_get(row, "hosts")), ==, hosts);
}

static void test_plan(struct queue_world *w)
{
    put_web1(w, "starting", 0);
    expect_plan(w, json_array(), "no job is on record as its owner", "unknown", 0);
    expect_plan(w, json_make("[s, s]", "instance", WEB1), "no job is on record as its owner",
                "unknown", 0);
    g_assert_null(object(w, "stuck"));
    put_web1(w, "starting", queue_submit_running(w));
    expect_plan(w, json_array(), NULL, NULL, 0);
    expect_plan(w, json_make("[s, s]", "instance", "web1"),
                "it has been started, and has not ended", "left", 0);
}

/* What hosts show may be asked of everything that exists. */
static void test_plan_of_nothing(struct queue_world *w)
{
    refuse_plan(w, "instance", "nix", false, FETTLE_ERROR_UNKNOWN_ENTITY,
                "instance \"nix\" does not exist");
    refuse_plan(w, "instance", "nix", true, FETTLE_ERROR_UNKNOWN_ENTITY,
                "instance \"nix\" does not exist");
    refuse_plan(w, "network", "n", true, FETTLE_ERROR_WRONG_INPUT,
                "PlanRecovery: kind: must be one of instance, volume, snapshot, backup, image, not "
                "\"network\"");
    refuse_plan(
        w, "", "", true, FETTLE_ERROR_WRONG_INPUT,
        "PlanRecovery: kind: must be one of instance, volume, snapshot, backup, image, not \"\"");
    put_web1(w, "", 0);
    refuse_plan(w, "instance", "web1", false, FETTLE_ERROR_WRONG_STATE,
                "instance \"web1\": nothing is stuck; it has no task");
    expect_plan(w, json_make("[s, s, b]", "instance", "web1", true), "", "left", 1);
    expect_plan(w, json_array(), NULL, NULL, 0);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    queue_case("/recovery-calls/mark#RCV-30", 1, test_mark);
    queue_case("/recovery-calls/fault#RCV-30", 1, test_fault);
    queue_case("/recovery-calls/nothing", 1, test_nothing);
    queue_case("/recovery-calls/stored#RCV-30,RCV-13", 1, test_stored);
    queue_case("/recovery-calls/owner-lives#RCV-10,RCV-12", 1, test_owner_lives);
    queue_case("/recovery-calls/repair#RCV-42", 1, test_repair);
    queue_case("/recovery-calls/plan#RCV-33", 1, test_plan);
    queue_case("/recovery-calls/plan-of-nothing#RCV-15", 1, test_plan_of_nothing);
    return g_test_run();
}
