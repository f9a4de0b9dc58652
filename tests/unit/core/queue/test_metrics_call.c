/* QueryMetrics: what is counted, what nodes have said, what is missing; and that none of it grows
 * with the cluster. */
#include "unit/core/world/query_world.h"

#include <string.h>

#include "base/text.h"
#include "core/queue/metrics/node_figures.h"
#include "proto/metrics/metric_text.h"

#define SERIES_MOST 1500
#define P "ganeti:watcher:autorepair:"

/* --- asking --- */

static json_t *ask(struct queue_world *w)
{
    g_autoptr(GError) error = NULL;
    json_t *document = queue_call(w, "QueryMetrics", json_array(), &error);
    g_assert_no_error(error);
    return document;
}

static char *page(struct queue_world *w)
{
    json_autoptr document = ask(w);
    const char *type;
    size_t len;
    return metrics_of_samples((struct metric_document[]){{"cluster", document}, {NULL, NULL}}, "",
                              &type, &len);
}

static void expect_lines(struct queue_world *w, const char *const *lines)
{
    g_autofree char *text = page(w);
    for (; *lines; lines++) {
        g_autofree char *line = g_strdup_printf("\n%s\n", *lines);
        if (!strstr(text, line))
            g_error("no %s in:\n%s", *lines, text);
    }
}

static void expect_none(struct queue_world *w, const char *name)
{
    g_autofree char *text = page(w);
    g_assert_null(strstr(text, name));
}

/* --- what is on record --- */

static void test_record(void)
{
    struct queue_world *w = query_world_new();
    query_script_nodes(w, query_answer_report);
    query_put_fault(w, WEB10);
    query_put_stuck(w, WEB2);
    query_put_storage(w);
    store_set_locks(w->store, json_loads("[{\"name\": \"instance/web1\", \"mode\": \"shared\", "
                                         "\"owner\": {\"job\": \"7\", \"livelock\": \"a\"}}, "
                                         "{\"name\": \"instance/web1\", \"mode\": \"exclusive\", "
                                         "\"owner\": {\"job\": \"8\", \"livelock\": \"b\"}, "
                                         "\"waiting\": true}]",
                                         0, NULL));
    query_put_tag(w, WEB1, P "pending:migrate:" REPAIR ":100:7");
    fake_settle(w->world);
    static const char *const lines[] = {
        "fettle_cluster_instances{status=\"down\"} 1",
        "fettle_cluster_instances{status=\"error\"} 1",
        "fettle_cluster_instances{status=\"up\"} 1",
        "fettle_cluster_replicas{state=\"in-sync\"} 1",
        "fettle_cluster_replicas{state=\"stale\"} 0",
        "fettle_cluster_nodes{role=\"master\",state=\"well\"} 1",
        "fettle_cluster_nodes{role=\"regular\",state=\"well\"} 1",
        "fettle_cluster_nodes{role=\"regular\",state=\"offline\"} 1",
        "fettle_cluster_jobs{status=\"queued\"} 0",
        "fettle_cluster_locks_held 1",
        "fettle_cluster_locks_waiting 1",
        "fettle_cluster_repairs_pending{type=\"migrate\"} 1",
        "fettle_cluster_repairs_pending{type=\"failover\"} 0",
        "fettle_cluster_repair_brake 0",
        "fettle_cluster_recovery_stuck 1",
        "fettle_cluster_faults{level=\"error\"} 1",
        "fettle_cluster_storage_work 2",
        "fettle_cluster_engine_up{engine=\"sqlite\"} 1",
        "fettle_cluster_candidates{state=\"current\"} 0",
        "fettle_cluster_group_memory_bytes{group=\"default\"} 16777216000",
        "fettle_cluster_group_memory_promised_bytes{group=\"default\"} 805306368",
        "fettle_cluster_group_disk_promised_bytes{group=\"default\"} 268435456",
        "fettle_cluster_group_vcpus_promised{group=\"default\"} 3",
        NULL};
    expect_lines(w, lines);
    expect_none(w, "fettle_cluster_engine_members");
    store_put(w->store, "repair_brake", "cluster", json_make("{si, ss}", "since", 7, "why", "x"));
    fake_settle(w->world);
    expect_lines(w, (const char *const[]){"fettle_cluster_repair_brake 1", NULL});
    queue_world_free(w);
}

/* --- what has ended --- */

/* A job that ends as its process commits it: it waited for 2 s, and its opcode took 5 s. */
static void end_job(struct queue_world *w, guint64 id)
{
    g_autofree char *key = g_strdup_printf("%" G_GUINT64_FORMAT, id);
    record_autoptr(job) record = queue_record(w, id);
    struct job_op *op = record->ops->pdata[0];
    record->start_us = record->received_us + 2000000;
    op->start_us = record->start_us;
    op->end_us = record->end_us = op->start_us + 5000000;
    text_set(&op->status, "success");
    text_set(&record->status, "success");
    store_put(w->store, "job", key, job_to_json(record));
    fake_settle(w->world);
}

/* What had ended before this process began, or is read once more, is not counted. */
static void test_ended(void)
{
    struct queue_world *w = query_world_new();
    query_script_nodes(w, query_answer_report);
    end_job(w, queue_submit_running(w));
    query_put_decision(w, 1, 5, "act", "alert");
    query_put_tag(w, WEB1, P "result:migrate:" REPAIR ":100:success:1");
    fake_settle(w->world);
    static const char *const lines[] = {
        "fettle_cluster_jobs{status=\"success\"} 1",
        "fettle_cluster_jobs_ended_total{opcode=\"OP_TEST_DELAY\",status=\"success\"} 1",
        "fettle_cluster_job_seconds_bucket{opcode=\"OP_TEST_DELAY\",le=\"1.0\"} 0",
        "fettle_cluster_job_seconds_bucket{opcode=\"OP_TEST_DELAY\",le=\"10.0\"} 1",
        "fettle_cluster_job_seconds_bucket{opcode=\"OP_TEST_DELAY\",le=\"+Inf\"} 1",
        "fettle_cluster_job_seconds_sum{opcode=\"OP_TEST_DELAY\"} 5",
        "fettle_cluster_job_seconds_count{opcode=\"OP_TEST_DELAY\"} 1",
        "fettle_cluster_queue_wait_seconds_bucket{le=\"1.0\"} 0",
        "fettle_cluster_queue_wait_seconds_sum 2",
        "fettle_cluster_queue_wait_seconds_count 1",
        "fettle_cluster_repairs_total{type=\"migrate\",result=\"success\"} 1",
        "fettle_cluster_repairs_total{type=\"failover\",result=\"failure\"} 0",
        "fettle_cluster_events_total{event=\"alert\",level=\"info\"} 1",
        NULL};
    expect_lines(w, lines);
    expect_lines(w, lines);
    queue_world_restart_luxid(w);
    expect_none(w, "OP_TEST_DELAY");
    expect_lines(w, (const char *const[]){"fettle_cluster_jobs{status=\"success\"} 1",
                                          "fettle_cluster_repairs_total{type=\"migrate\",result="
                                          "\"success\"} 0",
                                          "fettle_cluster_queue_wait_seconds_count 0", NULL});
    queue_world_free(w);
}

/* One that never ran took no time. */
static void test_canceled(void)
{
    struct queue_world *w = query_world_new();
    g_autoptr(GError) error = NULL;
    query_script_nodes(w, query_answer_report);
    store_put(w->store, "switches", "switches", json_make("{sb}", "drained", 1));
    for (guint i = 0; i < 6; i++)
        json_decref(queue_call(w, "SubmitJobToDrainedQueue", json_make("[[o]]", queue_delay(NULL)),
                               &error));
    g_assert_no_error(error);
    json_autoptr answer = queue_call(w, "CancelJob", json_make("[i]", 6), &error);
    g_assert_no_error(error);
    fake_settle(w->world);
    expect_lines(
        w, (const char *const[]){"fettle_cluster_jobs_ended_total{opcode=\"OP_TEST_DELAY\",status="
                                 "\"canceled\"} 1",
                                 "fettle_cluster_queue_drained 1", NULL});
    expect_none(w, "fettle_cluster_job_seconds_count");
    queue_world_free(w);
}

/* --- what nodes have said --- */

static bool node2_hangs;

static void serve_node2(struct rpc_request *request, void *data)
{
    if (node2_hangs)
        query_never_answer(request, data);
    else
        rpc_answer(request, query_report(NODE2, NULL, NULL));
}

/* Who asks does not wait for nodes that were asked lately: they are asked for the next question. */
static void test_nodes(void)
{
    struct queue_world *w = query_world_new();
    struct env *node2 = fake_process(w->world, NODE2, ROLE_NODED);
    g_autoptr(GPtrArray) kept = g_ptr_array_new();
    fake_script(w->world, MASTER, ROLE_NODED, "node_report", query_answer_report, NULL);
    fake_serve(node2, serve_node2, kept);
    g_free(page(w));
    guint first = query_node_calls(w);
    g_free(page(w));
    g_assert_cmpuint(query_node_calls(w), ==, first);
    fake_advance(w->world, NODE_FIGURES_OLD_MS + 1000);
    node2_hangs = true;
    gint64 before = fake_now_ms(w->world);
    expect_lines(w, (const char *const[]){"fettle_cluster_nodes{role=\"regular\",state=\"well\"} 1",
                                          "fettle_cluster_nodes_asked_seconds 11", NULL});
    g_assert_cmpint(fake_now_ms(w->world), ==, before);
    fake_advance(w->world, LIMIT_REPORT_WAIT_MS + 1000);
    g_assert_cmpuint(query_node_calls(w), >, first);
    expect_lines(w, (const char *const[]){
                        "fettle_cluster_nodes{role=\"regular\",state=\"silent\"} 1",
                        "fettle_cluster_group_memory_bytes{group=\"default\"} 8388608000", NULL});
    /* What is as old as that tells nothing any more. */
    fake_advance(w->world, NODE_FIGURES_STALE_MS + 1000);
    before = fake_now_ms(w->world);
    expect_lines(w, (const char *const[]){
                        "fettle_cluster_nodes{role=\"regular\",state=\"silent\"} 1", NULL});
    g_assert_cmpint(fake_now_ms(w->world) - before, ==, LIMIT_REPORT_WAIT_MS);
    for (guint i = 0; i < kept->len; i++)
        rpc_request_free(kept->pdata[i]);
    queue_world_free(w);
}

/* --- how much it is --- */

static void put_many(struct queue_world *w, guint count)
{
    for (guint i = 0; i < count; i++) {
        g_autofree char *uuid = g_strdup_printf("dddddddd-2222-4000-8000-%012u", i);
        g_autofree char *name = g_strdup_printf("many%u", i);
        store_put(w->store, "instance", uuid,
                  json_make("{ss, ss, ss, si, ss}", "uuid", uuid, "name", name, "disk_template",
                            "diskless", "memory", 1, "primary_node", MASTER));
    }
    fake_settle(w->world);
}

static guint count_series(const char *text)
{
    guint count = 0;
    for (const char *line = text; *line; line = strchr(line, '\n') + 1)
        count += *line != '#';
    return count;
}

/* Also when each opcode has ended in each way: as many series for ten instances as for thousands.
 */
static void test_series(void)
{
    struct queue_world *w = query_world_new();
    query_script_nodes(w, query_answer_report);
    g_autofree char *few = page(w);
    put_many(w, g_getenv("FETTLE_LONG") ? 10000 : 1000);
    g_autofree char *many = page(w);
    g_assert_cmpuint(count_series(many), ==, count_series(few));
    /* A histogram of six buckets and three ways to end for each opcode. */
    size_t opcodes;
    opcode_table(&opcodes);
    guint most = count_series(many) + (guint)opcodes * (8 + 3);
    g_test_message("%u series, %u at most", count_series(many), most);
    g_assert_cmpuint(most, <=, SERIES_MOST);
    g_assert_cmpuint(strlen(many), <, 200000);
    queue_world_free(w);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/metrics-call/record", test_record);
    g_test_add_func("/metrics-call/ended", test_ended);
    g_test_add_func("/metrics-call/canceled", test_canceled);
    g_test_add_func("/metrics-call/nodes", test_nodes);
    g_test_add_func("/metrics-call/series", test_series);
    return g_test_run();
}
