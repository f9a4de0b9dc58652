/* Events, tasks that were left behind, and what is in ERROR. core/query/query_task.c */
#include "unit/core/world/query_world.h"

#include <string.h>

static void mark(struct queue_world *w, const char *uuid, const char *name, const char *word,
                 int owner)
{
    store_put(w->store, "instance", uuid,
              json_make("{ss ss ss si ss ss si si}", "uuid", uuid, "name", name, "disk_template",
                        "diskless", "memory", 256, "primary_node", MASTER, "task_state", word,
                        "task_owner", owner, "task_since", 70));
}

/* In the order in which they were made, although the clock was set back in between (SAF-93). */
static void test_decisions(void)
{
    struct queue_world *w = query_world_new();

    query_put_decision(w, 1, 2000000, "act", "none");
    query_put_decision(w, 2, 1000000, "wait", "none");
    fake_settle(w->world);
    query_check(w, "decision", "subject_name verdict at evidence summary", NULL,
                "0:\"web1\" 0:\"act\" 0:2 0:[\"node3 is offline\"] 0:\"because\"\n"
                "0:\"web1\" 0:\"wait\" 0:1 0:[\"node3 is offline\"] 0:\"because\"\n");
    query_check(w, "decision", "verdict", "[\"=\", \"subject\", \"" WEB2 "\"]", "");
    queue_world_free(w);
}

static void test_events(void)
{
    struct queue_world *w = query_world_new();
    query_put_decision(w, 1, 1000000, "wait", "none");
    store_put(w->store, "decision", "11111111-0000-4000-8000-000000000002",
              json_make("{ss ss ss ss ss sI ss ss ss ss ss ss ss ss ss}", "uuid",
                        "11111111-0000-4000-8000-000000000002", "author", "watcher/recovery",
                        "subject_kind", "instance", "subject", WEB1, "subject_name", "web1",
                        "at_us", (json_int_t)3000000, "verdict", "act", "summary", "settled",
                        "event", "recovered", "level", "warning", "task", "starting", "old",
                        "starting", "new", "active", "rule", "RCV-54", "host", "node1"));
    fake_settle(w->world);
    query_check(w, "event", "subject_name event level at task old new rule host summary", NULL,
                "0:\"web1\" 0:\"recovered\" 0:\"warning\" 0:3 0:\"starting\" 0:\"starting\" "
                "0:\"active\" 0:\"RCV-54\" 0:\"node1\" 0:\"settled\"\n");
    query_check(w, "decision", "event rule", NULL,
                "0:\"none\" 0:\"\"\n0:\"recovered\" 0:\"RCV-54\"\n");
    queue_world_free(w);
}

/* What is left behind, what is in ERROR, and what is only under way. */
static void test_tasks(void)
{
    struct queue_world *w = query_world_new();
    const char *fields = "subject_name task owner owner_state stuck looks error_since why next";
    query_check(w, "task", fields, NULL, "");
    store_put(w->store, "counter", "job", json_make("{si}", "value", 9));
    store_put(w->store, "job", "8",
              json_make("{si ss s[{s{ss} ss}]}", "id", 8, "status", "queued", "ops", "input",
                        "OP_ID", "OP_TEST_DELAY", "status", "queued"));
    mark(w, WEB1, "web1", "starting", 7);
    mark(w, WEB10, "web10", "stopping", 8);
    query_put_fault(w, WEB2);
    query_put_stuck(w, WEB1);
    fake_settle(w->world);
    query_check(w, "task", fields, NULL,
                "0:\"web1\" 0:\"starting\" 0:7 0:\"dead\" 0:true 0:2 2:null "
                "0:\"node1 is silent\" 0:\"when its nodes answer\"\n"
                "0:\"web10\" 0:\"stopping\" 0:8 0:\"lives\" 0:false 0:0 2:null 0:\"\" "
                "0:\"when job 8 ends\"\n"
                "0:\"web2\" 0:\"starting\" 0:7 0:\"dead\" 0:true 0:0 0:90 "
                "0:\"node2 is silent\" 0:\"ERROR: nodes are silent\"\n");
    query_check(w, "fault", "subject_name at message task owner since rule evidence blind again",
                NULL,
                "0:\"web2\" 0:90 0:\"node2 is silent\" 0:\"starting\" 0:7 0:60 0:\"RCV-36\" "
                "0:[\"6 looks\"] 0:true 0:false\n");
    query_check(w, "stuck", "subject_name task since looks alerts why", NULL,
                "0:\"web1\" 0:\"starting\" 0:80 0:2 0:0 0:\"node1 is silent\"\n");
    /* ERROR is seen wherever its status is. */
    query_check(w, "instance", "status fault.message fault.task fault.since fault.rule",
                "[\"=\", \"name\", \"web2\"]",
                "0:\"ERROR_task\" 0:\"node2 is silent\" 0:\"starting\" 0:90 0:\"RCV-36\"\n");
    query_check(w, "instance", "name", "[\"?\", \"fault.message\"]", "0:\"web2\"\n");
    queue_world_free(w);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/query/decisions#ARP-68", test_decisions);
    g_test_add_func("/query/events#RCV-27,RCV-33", test_events);
    g_test_add_func("/query/tasks#RCV-29", test_tasks);
    return g_test_run();
}
