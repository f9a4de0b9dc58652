/* Queries: fields, live values, statuses, filters, order, and every refusal. */
#include "unit/core/world/query_world.h"

#include "core/query/query.h"

#include <string.h>

/* --- instances --- */

static void test_static(void)
{
    struct queue_world *w = query_world_new();

    query_check(w, "instance", "name pnode snodes disk.sizes", NULL,
                "0:\"web1\" 0:\"node1\" 0:[\"node2\"] 0:[64]\n"
                "0:\"web10\" 0:\"node3\" 0:[] 0:[64]\n"
                "0:\"web2\" 0:\"node2\" 0:[] 0:[64]\n");
    query_check(
        w, "instance", "uuid admin_state be/memory be/vcpus disk_usage disk_template tags holder",
        "[\"=\", \"name\", \"web1\"]",
        "0:\"" WEB1 "\" 0:\"up\" 0:256 0:1 0:64 0:\"mirror\" 0:[\"owner:mail\"] 0:\"node1\"\n");
    query_check(w, "instance",
                "replica.state replica.sync replica.why generation task_state clean sound",
                "[\"=\", \"name\", \"web1\"]",
                "0:\"in-sync\" 0:7 0:\"ready\" 0:3 0:\"\" 0:false 0:\"unknown\"\n");
    query_check(w, "instance", "replica.state holder", "[\"=\", \"name\", \"web2\"]",
                "2:null 2:null\n");
    g_assert_cmpuint(query_node_calls(w), ==, 0);
    queue_world_free(w);
}

static void test_live(void)
{
    struct queue_world *w = query_world_new();

    query_script_nodes(w, query_answer_report);
    query_check(w, "instance", "name status oper_state oper_ram mirror.progress", NULL,
                "0:\"web1\" 0:\"running\" 0:true 0:256 0:40\n"
                "0:\"web10\" 0:\"ERROR_nodeoffline\" 4:null 4:null 4:null\n"
                "0:\"web2\" 0:\"ADMIN_down\" 0:false 2:null 2:null\n");
    /* Offline nodes are not asked, the others once each. */
    g_assert_cmpuint(query_node_calls(w), ==, 2);
    queue_world_free(w);
}

static void test_live_of_matching_rows_only(void)
{
    struct queue_world *w = query_world_new();

    query_script_nodes(w, query_answer_report);
    query_check(w, "instance", "name status", "[\"=\", \"name\", \"web2\"]",
                "0:\"web2\" 0:\"ADMIN_down\"\n");
    g_assert_cmpuint(query_node_calls(w), ==, 1);
    queue_world_free(w);
}

/* An instance that a node tells of twice is what is told first. */
static json_t *answer_twice(const struct rpc_request *request, const char *to_node, void *data,
                            GError **error)
{
    json_t *first = query_report(to_node, WEB1, "running");
    json_autoptr second = query_report(to_node, WEB1, "incoming");

    json_array_extend(json_object_get(first, "guests"), json_object_get(second, "guests"));
    return first;
}

static void test_told_twice(void)
{
    struct queue_world *w = query_world_new();

    query_script_nodes(w, answer_twice);
    query_check(w, "instance", "guest.state", "[\"=\", \"name\", \"web1\"]", "0:\"running\"\n");
    queue_world_free(w);
}

static void test_live_filter(void)
{
    struct queue_world *w = query_world_new();

    query_script_nodes(w, query_answer_report);
    query_check(w, "instance", "name", "[\"=\", \"status\", \"running\"]", "0:\"web1\"\n");
    query_check(w, "instance", "name", "[\"?\", \"oper_state\"]", "0:\"web1\"\n");
    queue_world_free(w);
}

static json_t *answer_wrong_node(const struct rpc_request *request, const char *to_node, void *data,
                                 GError **error)
{
    return strcmp(to_node, NODE2) == 0 ? query_report(to_node, WEB1, "running")
                                       : query_report(to_node, NULL, NULL);
}

static json_t *answer_web2(const struct rpc_request *request, const char *to_node, void *data,
                           GError **error)
{
    return strcmp(to_node, NODE2) == 0 ? query_report(to_node, WEB2, "paused")
                                       : query_report(to_node, WEB1, "shutdown");
}

static void test_status_words(void)
{
    struct queue_world *w = query_world_new();

    query_script_nodes(w, answer_wrong_node);
    query_check(w, "instance", "status", "[\"=\", \"name\", \"web1\"]", "0:\"ERROR_wrongnode\"\n");
    query_script_nodes(w, answer_web2);
    query_check(w, "instance", "status guest.state", "[\"=\", \"name\", \"web1\"]",
                "0:\"ERROR_down\" 0:\"shutdown\"\n");
    query_check(w, "instance", "status", "[\"=\", \"name\", \"web2\"]", "0:\"ERROR_up\"\n");
    queue_world_free(w);
}

static json_t *answer_held(const struct rpc_request *request, const char *to_node, void *data,
                           GError **error)
{
    const char *const *io_stop = data;
    json_t *report = query_report(to_node, strcmp(to_node, MASTER) == 0 ? WEB1 : NULL, "running");
    json_t *guest = json_array_get(json_object_get(report, "guests"), 0);
    if (guest != NULL)
        json_object_update_new(guest,
                               json_make("{ss si si ss}", "io_stop", *io_stop, "io_errors", 3,
                                         "io_disk", 1, "held", "var: Read-only file system"));
    return report;
}

/* One that its hypervisor has stopped is there, and does not run. */
static void test_stands_still(void)
{
    struct queue_world *w = query_world_new();
    const char *io_stop = "no-space";

    fake_script(w->world, NULL, ROLE_NODED, "node_report", answer_held, &io_stop);
    query_check(w, "instance", "status io.stop io.errors io.disk", "[\"=\", \"name\", \"web1\"]",
                "0:\"ERROR_nospace\" 0:\"no-space\" 0:3 0:1\n");
    query_check(w, "instance", "io.why io.volume", "[\"=\", \"name\", \"web1\"]",
                "0:\"there is no room for its disks on node1\" 0:\"\"\n");
    io_stop = "failed";
    query_check(w, "instance", "status io.stop", "[\"=\", \"name\", \"web1\"]",
                "0:\"ERROR_diskfailed\" 0:\"failed\"\n");
    io_stop = "none";
    query_check(w, "instance", "status io.stop guest.held", "[\"=\", \"name\", \"web1\"]",
                "0:\"running\" 0:\"none\" 0:\"var: Read-only file system\"\n");
    query_script_nodes(w, query_answer_report); /* of a version before */
    query_check(w, "instance", "status io.stop io.errors io.disk guest.held",
                "[\"=\", \"name\", \"web1\"]", "0:\"running\" 0:\"none\" 0:0 2:null 0:\"\"\n");
    queue_world_free(w);
}

static json_t *answer_with_error(const struct rpc_request *request, const char *to_node, void *data,
                                 GError **error)
{
    const enum fettle_error *code = data;

    if (strcmp(to_node, MASTER) != 0)
        return query_report(to_node, NULL, NULL);
    g_set_error_literal(error, FETTLE_ERROR, (int)*code, "the disks of this node do not answer");
    return NULL;
}

/* Nothing but its silence is the silence of a node: one that answers with an error says so. */
static void test_refusing_node(void)
{
    struct queue_world *w = query_world_new();
    enum fettle_error code = FETTLE_ERROR_TEMPORARY;

    fake_script(w->world, NULL, ROLE_NODED, "node_report", answer_with_error, &code);
    query_check(w, "instance", "status oper_state guest.late", "[\"=\", \"name\", \"web1\"]",
                "2:null 2:null 0:\"is not told of by node1, which answers with an error: the disks "
                "of this node do not answer\"\n");
    query_check(w, "node", "mfree late", "[\"=\", \"name\", \"node1\"]",
                "2:null 0:[\"report: its node daemon answers with an error: the disks of this node "
                "do not answer\"]\n");
    code = FETTLE_ERROR_UNREACHABLE;
    query_check(w, "instance", "status oper_state guest.late", "[\"=\", \"name\", \"web1\"]",
                "0:\"ERROR_nodedown\" 3:null 3:null\n");
    query_check(w, "node", "mfree late", "[\"=\", \"name\", \"node1\"]", "3:null 3:null\n");
    queue_world_free(w);
}

/* A node that hangs costs the query its bound, no more; the others' values are there. */
static void test_silent_node(void)
{
    struct queue_world *w = query_world_new();
    struct env *hanging = fake_process(w->world, NODE2, ROLE_NODED);
    g_autoptr(GPtrArray) kept = g_ptr_array_new();
    gint64 before;

    fake_script(w->world, MASTER, ROLE_NODED, "node_report", query_answer_report, NULL);
    fake_serve(hanging, query_never_answer, kept);
    before = fake_now_ms(w->world);
    query_check(
        w, "node", "name offline mfree", NULL,
        "0:\"node1\" 0:false 0:6000\n0:\"node2\" 0:false 3:null\n0:\"node3\" 0:true 4:null\n");
    g_assert_cmpint(fake_now_ms(w->world) - before, <=, LIMIT_REPORT_WAIT_MS);
    query_check(w, "instance", "status oper_state", "[\"=\", \"name\", \"web2\"]",
                "0:\"ERROR_nodedown\" 3:null\n");
    for (guint i = 0; i < kept->len; i++)
        rpc_request_free(g_ptr_array_index(kept, i));
    queue_world_free(w);
}

/* --- nodes and groups --- */

static void test_nodes(void)
{
    struct queue_world *w = query_world_new();

    query_check(w, "node", "unheard_since", "[\"=\", \"name\", \"node1\"]", "0:0\n");
    query_check(w, "node", "name role pinst_cnt sinst_cnt pinst_list sinst_list group master", NULL,
                "0:\"node1\" 0:\"M\" 0:1 0:0 0:[\"web1\"] 0:[] 0:\"default\" 0:true\n"
                "0:\"node2\" 0:\"R\" 0:1 0:1 0:[\"web2\"] 0:[\"web1\"] 0:\"default\" 0:false\n"
                "0:\"node3\" 0:\"O\" 0:1 0:0 0:[\"web10\"] 0:[] 0:\"default\" 0:false\n");
    query_check(w, "group", "name node_cnt node_list pinst_cnt pinst_list", NULL,
                "0:\"default\" 0:3 0:[\"node1\",\"node2\",\"node3\"] 0:3 "
                "0:[\"web1\",\"web10\",\"web2\"]\n");
    g_assert_cmpuint(query_node_calls(w), ==, 0);
    queue_world_free(w);
}

static void test_node_live(void)
{
    struct queue_world *w = query_world_new();

    query_script_nodes(w, query_answer_report);
    query_check(w, "node", "mtotal mfree mnode dtotal dfree", "[\"=\", \"name\", \"node1\"]",
                "0:8000 0:6000 0:2000 0:100000 0:50000\n");
    queue_world_free(w);
}

/* --- jobs --- */

static void test_jobs(void)
{
    struct queue_world *w = query_world_new();
    guint64 id = queue_submit(w, json_make("{sf, si}", "duration", 0.5, "priority", -10));

    queue_submit(w, NULL);
    queue_job_runs(w, id);
    query_check(w, "job", "id status summary priority opstatus", NULL,
                "0:1 0:\"success\" 0:[\"TEST_DELAY(0.5)\"] 0:0 0:[\"success\"]\n"
                "0:2 0:\"waiting\" 0:[\"TEST_DELAY(0)\"] 0:0 0:[\"queued\"]\n");
    query_check(w, "job", "id end_ts", "[\"=\", \"id\", 2]", "0:2 2:null\n");
    query_check(w, "job", "id", "[\">\", \"id\", 2]", "");
    queue_submit(w, json_make("{sb}", "dry_run", true));
    query_check(w, "job", "summary", "[\"=\", \"id\", 3]", "0:[\"TEST_DELAY(0) (dry run)\"]\n");
    queue_world_free(w);
}

/* By name, whatever they were called by, also of what is gone. */
static void test_subjects(void)
{
    struct queue_world *w = query_world_new();
    g_autoptr(GError) error = NULL;
    json_autoptr id = queue_call(w, "SubmitJob",
                                 json_make("[[{ss, ss, ss}]]", "OP_ID", "OP_INSTANCE_MIGRATE",
                                           "instance_name", WEB1, "target_node", "gone"),
                                 &error);
    g_assert_no_error(error);
    query_check(w, "job", "subjects", "[\"=[]\", \"subjects\", \"web1\"]",
                "0:[\"web1\",\"gone\"]\n");
    query_check(w, "job", "id", "[\"=[]\", \"subjects\", \"web2\"]", "");
    queue_world_free(w);
}

static void test_query_jobs(void)
{
    struct queue_world *w = query_world_new();
    g_autoptr(GError) error = NULL;
    guint64 id = queue_submit(w, NULL);
    json_autoptr answer = NULL;
    json_autoptr unknown = NULL;
    json_autoptr expected = json_make("[[i, s, [n], [n]]]", 1, "waiting");
    json_autoptr nobody = json_make("[[i, n]]", 999999);
    json_autoptr all = NULL;

    answer = queue_call(
        w, "QueryJobs",
        json_make("[[I], [ssss]]", (json_int_t)id, "id", "status", "opresult", "opend"), &error);
    g_assert_no_error(error);
    g_assert_true(json_equal(answer, expected));
    unknown = queue_call(w, "QueryJobs", json_make("[[i], [ss]]", 999999, "id", "status"), &error);
    g_assert_true(json_equal(unknown, nobody));
    all = queue_call(w, "QueryJobs", json_make("[n, [s]]", "id"), &error);
    g_assert_cmpuint(json_array_size(all), ==, 1);
    queue_world_free(w);
}

/* --- repairs, decisions, locks --- */

static void test_repairs(void)
{
    struct queue_world *w = query_world_new();

    query_put_tag(w, WEB1,
                  "ganeti:watcher:autorepair:result:failover:" REPAIR ":200:success:12+15");
    query_put_tag(w, WEB1, "ganeti:watcher:autorepair:pending:fix-storage:" REPAIR ":100:");
    query_put_tag(w, WEB1, "ganeti:watcher:autorepair:failover");
    query_put_tag(w, WEB1, "ganeti:watcher:autorepair:pending:nonsense");
    fake_settle(w->world);
    query_check(w, "repair", "id instance type state started ended jobs", NULL,
                "0:\"" REPAIR "\" 0:\"web1\" 0:\"fix-storage\" 0:\"pending\" 0:100 2:null 0:[]\n"
                "0:\"" REPAIR
                "\" 0:\"web1\" 0:\"failover\" 0:\"success\" 2:null 0:200 0:[12,15]\n");
    query_check(w, "repair", "type", "[\"=\", \"state\", \"pending\"]", "0:\"fix-storage\"\n");
    /* Its jobs keep the time of the cause. */
    store_put(w->store, "job", "12",
              json_make("{si, ss, s[{s{ss, s[[ssI][ssI]]}, ss}]}", "id", 12, "status", "success",
                        "ops", "input", "OP_ID", "OP_TEST_DELAY", "reason", "user", "x",
                        (json_int_t)0, "fettle:watcher", "repair", (json_int_t)90 * 1000000000,
                        "status", "success"));
    fake_settle(w->world);
    query_check(w, "repair", "started ended", "[\"=\", \"state\", \"success\"]", "0:90 0:200\n");
    queue_world_free(w);
}

static void test_policies(void)
{
    struct queue_world *w = query_world_new();

    query_put_tag(w, WEB1, "ganeti:watcher:autorepair:migrate");
    query_put_tag(w, WEB1, "ganeti:watcher:autorepair:failover");
    query_put_tag(w, WEB1, "ganeti:watcher:autorepair:result:failover:x:200:success:");
    query_put_tag(w, WEB2, "ganeti:watcher:autorepair:suspend:4102444800");
    fake_settle(w->world);
    query_check(w, "policy", "kind state type until tags policy", "[\"=\", \"name\", \"web1\"]",
                "0:\"instance\" 0:\"enabled\" 0:\"migrate\" 2:null "
                "0:[\"ganeti:watcher:autorepair:failover\",\"ganeti:watcher:autorepair:migrate\"] "
                "0:\"migrate, by a tag of the instance\"\n");
    query_check(w, "policy", "state type until policy", "[\"=\", \"name\", \"web2\"]",
                "0:\"suspended\" 2:null 0:4102444800 "
                "0:\"suspended until 2100-01-01 00:00:00 UTC, by a tag of the instance\"\n");
    query_check(
        w, "policy", "state tags policy", "[\"=\", \"kind\", \"cluster\"]",
        "0:\"none\" 0:[] 0:\"not enabled: no policy tag on the instance, its node group or the "
        "cluster\"\n");
    queue_world_free(w);
}

static void put_advice(struct queue_world *w, const char *uuid, const char *author,
                       const char *node)
{
    store_put(w->store, "advice", uuid,
              json_make("{ss, ss, ss, ss, ss}", "uuid", uuid, "author", author, "subject_kind",
                        "node", "subject", node, "advice", "avoid"));
}

static void test_brake_and_advice(void)
{
    struct queue_world *w = query_world_new();

    query_check(w, "brake", "why", NULL, "");
    store_put(w->store, "repair_brake", "cluster",
              json_make("{si, ss, s[s]}", "since", 5, "why", "two of three", "nodes", NODE2));
    store_put(w->store, "advice", REPAIR,
              json_make("{ss, ss, ss, ss, ss, ss, si}", "uuid", REPAIR, "author", "ops",
                        "subject_kind", "node", "subject", NODE2, "advice", "avoid", "reason",
                        "new disks", "until", 5));
    put_advice(w, "11111111-0000-4000-8000-000000000001", "zoe", NODE2);
    put_advice(w, "11111111-0000-4000-8000-000000000002", "zoe", MASTER);
    put_advice(w, "ffffffff-0000-4000-8000-000000000003", "amy", NODE2);
    fake_settle(w->world);
    query_check(w, "brake", "since why nodes", NULL, "0:5 0:\"two of three\" 0:[\"node2\"]\n");
    query_check(w, "advice", "author node advice reason until", "[\"=\", \"author\", \"ops\"]",
                "0:\"ops\" 0:\"node2\" 0:\"avoid\" 0:\"new disks\" 0:5\n");
    query_check(w, "advice", "node author", NULL,
                "0:\"node1\" 0:\"zoe\"\n0:\"node2\" 0:\"amy\"\n0:\"node2\" 0:\"ops\"\n"
                "0:\"node2\" 0:\"zoe\"\n");
    queue_world_free(w);
}

static void put_reservation(struct queue_world *w, int port)
{
    store_put(w->store, "reservation", REPAIR,
              json_make("{ss ss s{ss ss} s[{ss si si}] s[s] s[s] si si}", "uuid", REPAIR, "name",
                        "web9", "owner", "job", "18", "livelock", "job-18", "rooms", "node", NODE2,
                        "memory", 512, "disk", 1000, "macs", "aa:00:00:00:00:09", "ips",
                        "10.0.0.9@br0", "port", port, "since", 7));
}

static void test_reservations(void)
{
    struct queue_world *w = query_world_new();

    query_check(w, "reservation", "name", NULL, "");
    put_reservation(w, 11003);
    fake_settle(w->world);
    query_check(w, "reservation", "name job nodes macs ips port since", NULL,
                "0:\"web9\" 0:\"18\" 0:[[\"node2\",512,1000]] 0:[\"aa:00:00:00:00:09\"] "
                "0:[\"10.0.0.9@br0\"] 0:11003 0:7\n");
    put_reservation(w, 0);
    fake_settle(w->world);
    query_check(w, "reservation", "name port", NULL, "0:\"web9\" 2:null\n");
    queue_world_free(w);
}

static void put_network(struct queue_world *w)
{
    store_put(w->store, "network", REPAIR,
              json_make("{ss ss ss ss ss s[s]}", "uuid", REPAIR, "name", "prod", "network",
                        "10.0.0.0/28", "gateway", "10.0.0.1", "link", "br0", "reserved",
                        "10.0.0.3-10.0.0.4"));
}

/* Of 16 addresses 14 are for hosts; the gateway, two reserved ones and that of a job are not free.
 */
static void test_networks(void)
{
    struct queue_world *w = query_world_new();

    put_network(w);
    put_reservation(w, 11003);
    fake_settle(w->world);
    query_check(w, "network", "name network gateway mode link external_reservations", NULL,
                "0:\"prod\" 0:\"10.0.0.0/28\" 0:\"10.0.0.1\" 0:\"bridged\" 0:\"br0\" "
                "0:[\"10.0.0.3-10.0.0.4\"]\n");
    query_check(w, "network", "map", NULL, "0:\"XX.XX....X.....X\"\n");
    query_check(w, "network", "free_count reserved_count inst_cnt inst_list used", NULL,
                "0:10 0:6 0:0 0:[] 0:[[\"10.0.0.9\",\"job 18 for instance \\\"web9\\\"\"]]\n");
    queue_world_free(w);
}

static void put_invitation(struct queue_world *w, guint number, const char *name, guint64 expires,
                           guint wrong_secrets, const char *node)
{
    g_autofree char *uuid = g_strdup_printf("12121212-0000-4000-8000-%012u", number);
    g_autofree char *hash = g_strnfill(64, 'a');

    store_put(w->store, "join_token", uuid,
              json_make("{ss, ss, ss, ss, ss, sI, si, ss, ss, si, si}", "uuid", uuid, "secret_hash",
                        hash, "node_name", name, "primary_ip", "192.0.2.9", "group", GROUP,
                        "expires", (json_int_t)expires, "wrong_secrets", wrong_secrets, "node_uuid",
                        node, "author", "anna@node1", "job", 7, "made", 5));
}

/* What is on record of invitations, but for the hashes of their secrets. */
static void test_invitations(void)
{
    struct queue_world *w = query_world_new();
    guint64 later = (guint64)(w->luxid->ops->wall_us(w->luxid) / G_USEC_PER_SEC) + 60;

    put_invitation(w, 1, "beta", later, 0, "");
    put_invitation(w, 2, "alpha", 6, 4, "");
    put_invitation(w, 3, "gamma", later, LIMIT_JOIN_TRIES, "");
    put_invitation(w, 4, "delta", 6, 0, NODE2);
    fake_settle(w->world);
    query_check(w, "invitation", "name state wrong_secrets", NULL,
                "0:\"alpha\" 0:\"expired\" 0:4\n0:\"beta\" 0:\"open\" 0:0\n"
                "0:\"delta\" 0:\"used\" 0:0\n0:\"gamma\" 0:\"void\" 0:5\n");
    query_check(w, "invitation", "author job made pip port group used",
                "[\"=\", \"state\", \"open\"]",
                "0:\"anna@node1\" 0:7 0:5 0:\"192.0.2.9\" 0:1811 0:\"default\" 0:0\n");
    query_check(w, "invitation", "secret_hash certificate", "[\"=\", \"state\", \"open\"]",
                "1:null 1:null\n");
    queue_world_free(w);
}

static void put_filter(struct queue_world *w, guint number, guint priority, const char *action)
{
    g_autofree char *uuid = g_strdup_printf("eeeeeeee-0000-4000-8000-%012u", number);
    store_put(w->store, "job_filter", uuid,
              json_make("{ss, si, si, s[[s, [s, s]]], ss, s[[s, s, i]]}", "uuid", uuid, "priority",
                        (int)priority, "watermark", 4, "predicates", "opcode", "?", "OP_ID",
                        "action", action, "reason", "user", "why", 1));
}

/* In the order in which they are asked. */
static void test_filters(void)
{
    struct queue_world *w = query_world_new();
    g_autoptr(GError) error = NULL;
    json_autoptr rows = NULL;
    g_autofree char *text = NULL;

    put_filter(w, 1, 9, "PAUSE");
    put_filter(w, 2, 3, "ACCEPT");
    fake_settle(w->world);
    query_check(w, "filter", "priority action watermark reason_trail", NULL,
                "0:3 0:\"ACCEPT\" 0:4 0:[[\"user\",\"why\",1]]\n"
                "0:9 0:\"PAUSE\" 0:4 0:[[\"user\",\"why\",1]]\n");
    rows = queue_call(w, "QueryFilters",
                      json_make("[[s], [s, s]]", "eeeeeeee-0000-4000-8000-000000000001", "priority",
                                "predicates"),
                      &error);
    g_assert_no_error(error);
    text = json_to_text(rows);
    g_assert_cmpstr(text, ==, "[[9,[[\"opcode\",[\"?\",\"OP_ID\"]]]]]");
    queue_refuse(w, "QueryFilters", json_make("[[s], [s]]", REPAIR, "uuid"),
                 FETTLE_ERROR_UNKNOWN_ENTITY, "filter " REPAIR " does not exist");
    queue_world_free(w);
}

/* --- the old calls --- */

static void plain(struct queue_world *w, const char *method, json_t *names, json_t *fields,
                  const char *expected)
{
    g_autoptr(GError) error = NULL;
    json_autoptr rows = queue_call(w, method, json_make("[o, o, b]", names, fields, 0), &error);
    g_autofree char *text = json_to_text(rows);

    g_assert_no_error(error);
    g_assert_cmpstr(text, ==, expected);
}

static void test_plain(void)
{
    struct queue_world *w = query_world_new();

    plain(w, "QueryInstances", json_make("[s]", "web1"), json_make("[s, s]", "name", "admin_state"),
          "[[\"web1\",\"up\"]]");
    plain(w, "QueryNodes", json_make("[s]", NODE2), json_make("[s]", "name"), "[[\"node2\"]]");
    plain(w, "QueryGroups", json_array(), json_make("[s, s]", "name", "node_cnt"),
          "[[\"default\",3]]");
    queue_refuse(w, "QueryInstances", json_make("[[s], [s], b]", "web9", "name", 0),
                 FETTLE_ERROR_UNKNOWN_ENTITY, "instance \"web9\" does not exist");
    queue_refuse(w, "QueryNodes", json_make("[[], [s], b]", "planet", 0), FETTLE_ERROR_WRONG_INPUT,
                 "Unknown output fields selected: planet");
    queue_world_free(w);
}

static void test_config_values(void)
{
    struct queue_world *w = query_world_new();
    g_autoptr(GError) error = NULL;
    json_autoptr drained = queue_call(w, "SetDrainFlag", json_make("[b]", 1), &error);
    json_autoptr paused =
        queue_call(w, "SetWatcherPause", json_make("[I]", (json_int_t)9999999999), &error);
    fake_settle(w->world);
    json_autoptr values = queue_call(w, "QueryConfigValues",
                                     json_make("[[s, s, s, s, s]]", "cluster_name", "master_node",
                                               "drain_flag", "watcher_pause", "planet"),
                                     &error);
    g_autofree char *text = json_to_text(values);

    g_assert_no_error(error);
    g_assert_true(json_is_true(drained));
    g_assert_cmpint(json_integer_value(paused), ==, 9999999999);
    g_assert_cmpstr(text, ==, "[\"lab\",\"node1\",true,9999999999,null]");
    queue_world_free(w);
}

/* [LUX-01] A pause that is over is none. */
static void test_pause_over(void)
{
    struct queue_world *w = query_world_new();
    g_autoptr(GError) error = NULL;
    gint64 now = w->luxid->ops->wall_us(w->luxid) / G_USEC_PER_SEC;
    json_autoptr paused =
        queue_call(w, "SetWatcherPause", json_make("[I]", (json_int_t)now + 60), &error);
    fake_settle(w->world);
    json_autoptr then =
        queue_call(w, "QueryConfigValues", json_make("[[s]]", "watcher_pause"), &error);
    fake_advance(w->world, 61000);
    json_autoptr later =
        queue_call(w, "QueryConfigValues", json_make("[[s]]", "watcher_pause"), &error);

    g_assert_no_error(error);
    g_assert_cmpint(json_integer_value(json_array_get(then, 0)), ==, now + 60);
    g_assert_true(json_is_null(json_array_get(later, 0)));
    queue_world_free(w);
}

static json_t *lock(const char *name, const char *mode, const char *job, bool waiting)
{
    return json_make("{ss, ss, s{ss, ss}, sb}", "name", name, "mode", mode, "owner", "job", job,
                     "livelock", "x", "waiting", waiting);
}

static void test_locks(void)
{
    struct queue_world *w = query_world_new();

    store_set_locks(w->store, json_make("[o, o, o, o]", lock("node/n1", "shared", "8", false),
                                        lock("instance/web1", "exclusive", "7", false),
                                        lock("node/n1", "shared", "7", false),
                                        lock("instance/web1", "shared", "9", true)));
    query_check(w, "lock", "name mode owner pending", NULL,
                "0:\"instance/web1\" 0:\"exclusive\" 0:[\"7\"] 0:[[\"shared\",[\"9\"]]]\n"
                "0:\"node/n1\" 0:\"shared\" 0:[\"8\",\"7\"] 0:[]\n");
    queue_world_free(w);
}

static json_t *waiter(void)
{
    json_t *wanted = json_make("{ss, ss}", "name", "instance/web1", "mode", "exclusive");
    json_t *blocker =
        json_make("{s{ss, ss}, ss, ss, sb, sI}", "owner", "job", "7", "livelock", "x", "name",
                  "instance/web1", "mode", "shared", "waiting", 0, "since", (json_int_t)5000000);
    return json_make("{s{ss, ss}, s[o], si, sI, si, sb, s[o], s[s]}", "owner", "job", "9",
                     "livelock", "y", "locks", wanted, "priority", -5, "since", (json_int_t)7000000,
                     "ticket", 3, "out_of_order", 1, "blockers", blocker, "pending_nodes",
                     "unknown-node");
}

static void test_waiters(void)
{
    struct queue_world *w = query_world_new();

    store_set_waiters(w->store, json_make("[o]", waiter()));
    query_check(w, "waiter", "job locks priority since out_of_order blockers nodes", NULL,
                "0:\"9\" 0:[[\"instance/web1\",\"exclusive\"]] 0:-5 0:7 0:true "
                "0:[[\"7\",\"instance/web1\",\"shared\",false,5]] 0:[\"unknown-node\"]\n");
    queue_world_free(w);
}

/* --- the rest --- */

static void test_unknown_field(void)
{
    struct queue_world *w = query_world_new();
    g_autoptr(GError) error = NULL;
    json_autoptr answer = queue_call(
        w, "Query",
        json_make("[s, [ss], [sss]]", "instance", "name", "nosuchfield", "=", "name", "web1"),
        &error);
    json_autoptr expected =
        json_make("{s[{ss, ss, ss, ss}, {ss, ss, ss, ss}], s[[[is], [in]]]}", "fields", "name",
                  "name", "title", "Instance", "kind", "text", "doc", "Instance name", "name",
                  "nosuchfield", "title", "nosuchfield", "kind", "unknown", "doc",
                  "Unknown field 'nosuchfield'", "data", 0, "web1", 1);

    g_assert_no_error(error);
    g_assert_true(json_equal(answer, expected));
    queue_world_free(w);
}

static void test_refusals(void)
{
    struct queue_world *w = query_world_new();

    queue_refuse(
        w, "Query", json_make("[s, [s], n]", "planet", "name"), FETTLE_ERROR_WRONG_INPUT,
        "Query: what: unknown resource \"planet\"; known are instance, node, group, job, "
        "repair, policy, brake, advice, network, reservation, invitation, decision, "
        "event, fault, stuck, task, filter, lock, "
        "waiter, export, service, backend, volume_type, volume, snapshot, backup, image, worker, "
        "storage_service");
    queue_refuse(w, "Query", json_make("[s, [s], [sss]]", "node", "name", "=", "nope", "x"),
                 FETTLE_ERROR_WRONG_INPUT, "Query: filter[1]: unknown field \"nope\"");
    queue_refuse(w, "QueryFields", json_make("[s, n]", "planet"), FETTLE_ERROR_WRONG_INPUT,
                 "QueryFields: what: unknown resource \"planet\"; known are instance, node, group, "
                 "job, repair, policy, brake, advice, network, reservation, invitation, decision, "
                 "event, fault, stuck, task, "
                 "filter, "
                 "lock, waiter, export, service, backend, volume_type, volume, snapshot, backup, "
                 "image, worker, "
                 "storage_service");
    queue_refuse(w, "QueryTags", json_make("[s, s]", "instance", "nobody"),
                 FETTLE_ERROR_UNKNOWN_ENTITY, "instance \"nobody\" does not exist");
    queue_world_free(w);
}

static void test_query_fields(void)
{
    struct queue_world *w = query_world_new();
    g_autoptr(GError) error = NULL;
    json_autoptr some = queue_call(w, "QueryFields", json_make("[s, [s]]", "lock", "mode"), &error);
    json_autoptr all = queue_call(w, "QueryFields", json_make("[s, n]", "lock"), &error);
    json_autoptr expected = json_make(
        "{s[{ss, ss, ss, ss}]}", "fields", "name", "mode", "title", "Mode", "kind", "other", "doc",
        "Mode in which the lock is currently acquired (exclusive or shared)");

    g_assert_no_error(error);
    g_assert_true(json_equal(some, expected));
    g_assert_cmpuint(json_array_size(json_object_get(all, "fields")), ==, 4);
    queue_world_free(w);
}

/* Every row of the table gives a value or says that there is none, for every object of the world.
 */
static void test_every_field(void)
{
    struct queue_world *w = query_world_new();
    size_t count;
    const struct query_field *table = query_field_table(&count);

    query_script_nodes(w, query_answer_report);
    queue_submit(w, NULL);
    query_put_tag(w, WEB1, "ganeti:watcher:autorepair:pending:fix-storage:" REPAIR ":100:");
    query_put_decision(w, 1, 2000000, "act", "alert");
    query_put_fault(w, WEB2);
    query_put_stuck(w, WEB1);
    store_put(w->store, "repair_brake", "cluster",
              json_make("{si, ss, s[s]}", "since", 5, "why", "two of three", "nodes", NODE2));
    store_put(w->store, "advice", REPAIR,
              json_make("{ss, ss, ss, ss, ss, si}", "uuid", REPAIR, "author", "ops", "subject_kind",
                        "node", "subject", NODE2, "advice", "avoid", "until", 5));
    put_invitation(w, 1, "beta", 5, 0, "");
    put_reservation(w, 11003);
    put_network(w);
    query_put_storage(w);
    store_put(w->store, "snapshot", REPAIR,
              json_make("{ss ss ss si ss}", "uuid", REPAIR, "name", "before", "volume", REPAIR,
                        "size", 2, "status", "error"));
    store_put(w->store, "backup", REPAIR,
              json_make("{ss ss ss si ss}", "uuid", REPAIR, "name", "b1", "volume", REPAIR, "size",
                        2, "status", "error"));
    store_put(w->store, "image", REPAIR,
              json_make("{ss ss ss ss}", "uuid", REPAIR, "name", "tick", "status", "queued",
                        "disk_format", "raw"));
    store_put(w->store, "volume_type", REPAIR,
              json_make("{ss ss}", "uuid", REPAIR, "name", "fast"));
    put_filter(w, 1, 9, "PAUSE");
    store_set_locks(w->store, json_make("[o]", lock("node/n1", "shared", "8", false)));
    store_set_waiters(w->store, json_make("[o]", waiter()));
    fake_settle(w->world);
    for (size_t i = 0; i < count; i++) {
        g_autofree char *text = query_ask(w, table[i].resource, table[i].name, NULL);

        if (g_str_equal(table[i].resource, "export"))
            g_assert_cmpstr(text, ==, "");
        else if (text[0] == '\0' || strstr(text, "1:") == text)
            g_error("%s %s gives nothing", table[i].resource, table[i].name);
        g_assert_cmpuint(strlen(table[i].doc), >, 0);
        for (size_t k = 0; k < i; k++)
            g_assert_false(g_str_equal(table[k].resource, table[i].resource) &&
                           g_str_equal(table[k].name, table[i].name));
    }
    queue_world_free(w);
}

static void test_cluster_info(void)
{
    struct queue_world *w = query_world_new();
    g_autoptr(GError) error = NULL;
    json_autoptr info = NULL;
    json_autoptr pending = json_make("[s]", "node2");

    store_set_pending(w->store, NODE2);
    info = queue_call(w, "QueryClusterInfo", json_make("[]"), &error);
    g_assert_no_error(error);
    g_assert_cmpstr(json_string_value(json_object_get(info, "name")), ==, "lab");
    g_assert_cmpstr(json_string_value(json_object_get(info, "master")), ==, "node1");
    g_assert_cmpint(json_integer_value(json_object_get(info, "epoch")), ==, 1);
    g_assert_cmpint(json_integer_value(json_object_get(info, "max_running_jobs")), ==, 5);
    g_assert_cmpint(json_integer_value(json_object_get(info, "protocol_version")), ==, 3000000);
    g_assert_cmpint(json_integer_value(json_object_get(info, "repair_storm_percent")), ==, 50);
    g_assert_cmpstr(json_string_value(json_object_get(info, "mac_prefix")), ==, "aa:00:00");
    g_assert_cmpuint(json_array_size(json_object_get(info, "enabled_disk_templates")), ==, 4);
    g_assert_true(json_equal(json_object_get(info, "nodes_pending"), pending));
    queue_world_free(w);
}

static void test_tags(void)
{
    struct queue_world *w = query_world_new();
    g_autoptr(GError) error = NULL;
    json_autoptr instance =
        queue_call(w, "QueryTags", json_make("[s, s]", "instance", "web1"), &error);
    json_autoptr cluster = queue_call(w, "QueryTags", json_make("[s, s]", "cluster", ""), &error);
    json_autoptr expected = json_make("[s]", "owner:mail");

    g_assert_no_error(error);
    g_assert_true(json_equal(instance, expected));
    g_assert_cmpuint(json_array_size(cluster), ==, 0);
    queue_world_free(w);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/query/static#LUX-03", test_static);
    g_test_add_func("/query/live#LUX-04", test_live);
    g_test_add_func("/query/live-of-matching-rows-only#LUX-04", test_live_of_matching_rows_only);
    g_test_add_func("/query/told-twice#LUX-04", test_told_twice);
    g_test_add_func("/query/live-filter#LUX-04", test_live_filter);
    g_test_add_func("/query/status-words#LUX-04", test_status_words);
    g_test_add_func("/query/stands-still#LUX-04", test_stands_still);
    g_test_add_func("/query/silent-node#LUX-04", test_silent_node);
    g_test_add_func("/query/refusing-node#SAF-91", test_refusing_node);
    g_test_add_func("/query/nodes#LUX-03", test_nodes);
    g_test_add_func("/query/node-live#LUX-04", test_node_live);
    g_test_add_func("/query/jobs#LUX-03", test_jobs);
    g_test_add_func("/query/what-jobs-are-about", test_subjects);
    g_test_add_func("/query/query-jobs", test_query_jobs);
    g_test_add_func("/query/repairs#ARP-68", test_repairs);
    g_test_add_func("/query/policies#ARP-15,ARP-16", test_policies);
    g_test_add_func("/query/brake-and-advice#ARP-69", test_brake_and_advice);
    g_test_add_func("/query/reservations#FUT-06", test_reservations);
    g_test_add_func("/query/networks", test_networks);
    g_test_add_func("/query/invitations", test_invitations);
    g_test_add_func("/query/filters#FUT-13", test_filters);
    g_test_add_func("/query/plain", test_plain);
    g_test_add_func("/query/config-values", test_config_values);
    g_test_add_func("/query/config-values/pause-over", test_pause_over);
    g_test_add_func("/query/locks", test_locks);
    g_test_add_func("/query/waiters", test_waiters);
    g_test_add_func("/query/unknown-field", test_unknown_field);
    g_test_add_func("/query/refusals", test_refusals);
    g_test_add_func("/query/fields", test_query_fields);
    g_test_add_func("/query/every-field", test_every_field);
    g_test_add_func("/query/cluster-info#LUX-03", test_cluster_info);
    g_test_add_func("/query/tags#LUX-03", test_tags);
    return g_test_run();
}
