/* WhatNext: what a person can do about an object as it stands, by what is on record and what nodes
 * say; every refusal with its words. */
#include "unit/core/world/query_world.h"

#include <string.h>

#define P "ganeti:watcher:autorepair:"
#define RESULT P "result:"

static void expect(struct queue_world *w, const char *kind, const char *name, const char *expected)
{
    g_autoptr(GError) error = NULL;
    json_autoptr answer = queue_call(w, "WhatNext", json_make("[s, s]", kind, name), &error);
    g_assert_no_error(error);
    GString *text = g_string_new(NULL);
    size_t i, k;
    const json_t *one, *command;
    json_array_foreach(answer, i, one) {
        g_string_append_printf(text, "%s: %s\n", json_string_value(json_object_get(one, "about")),
                               json_string_value(json_object_get(one, "text")));
        json_array_foreach(json_object_get(one, "commands"), k, command)
            g_string_append_printf(text, "    %s\n", json_string_value(command));
    }
    g_autofree char *found = g_string_free(text, FALSE);
    g_assert_cmpstr(found, ==, expected);
}

static void put_tag(struct queue_world *w, const char *kind, const char *uuid, const char *tag)
{
    g_autofree char *key = g_strdup_printf("%s/%s/%s", kind, uuid, tag);
    store_put(w->store, "tag", key,
              json_make("{ss, ss, ss}", "kind", kind, "object", uuid, "tag", tag));
    fake_settle(w->world);
}

/* The nearest counts; another policy there hides what is farther away. */
static void test_suspended(void)
{
    struct queue_world *w = query_world_new();
    expect(w, "instance", "web1", "");
    expect(w, "cluster", "", "");
    put_tag(w, "cluster", CLUSTER, P "suspend");
    expect(w, "instance", WEB1,
           "suspension: Repair of web1 goes on when you say:\n    fettle repair resume cluster\n");
    expect(w, "cluster", "",
           "suspension: Repair of the cluster goes on when you say:\n"
           "    fettle repair resume cluster\n");
    put_tag(w, "nodegroup", GROUP, P "suspend");
    put_tag(w, "instance", WEB1, P "suspend");
    expect(w, "instance", "web1",
           "suspension: Repair of web1 goes on when you say:\n"
           "    fettle repair resume instance web1\n    fettle repair resume nodegroup default\n"
           "    fettle repair resume cluster\n");
    expect(w, "nodegroup", "default",
           "suspension: Repair of default goes on when you say:\n"
           "    fettle repair resume nodegroup default\n    fettle repair resume cluster\n");
    put_tag(w, "nodegroup", GROUP, P "migrate");
    expect(w, "instance", "web1",
           "suspension: Repair of web1 goes on when you say:\n"
           "    fettle repair resume instance web1\n    fettle repair resume nodegroup default\n");
    put_tag(w, "instance", WEB2, P "failover");
    expect(w, "instance", "web2", "");
    queue_world_free(w);
}

/* Each failure stands in the way; of what is forbidden the newest result tells. */
static void test_results(void)
{
    struct queue_world *w = query_world_new();
    query_put_tag(w, WEB1, RESULT "migrate:a:100:enoperm:1");
    fake_settle(w->world);
    expect(w, "instance", "web1",
           "permission: To allow the repair that it needs:\n"
           "    fettle repair policy instance web1 migrate\n");
    query_put_tag(w, WEB1, RESULT "fix-storage:b:90:failure:2");
    fake_settle(w->world);
    expect(w, "instance", "web1",
           "failure: Nothing more is done for web1 until you have looked into the failure and "
           "taken its tag away:\n"
           "    fettle tag remove instance web1 " RESULT "fix-storage:b:90:failure:2\n"
           "permission: To allow the repair that it needs:\n"
           "    fettle repair policy instance web1 migrate\n");
    query_put_tag(w, WEB2, RESULT "failover:c:100:enoperm:1");
    query_put_tag(w, WEB2, RESULT "failover:d:101:success:1");
    fake_settle(w->world);
    expect(w, "instance", "web2", "");
    queue_world_free(w);
}

/* --- nodes --- */

/* node1 has a fault, node2 answers with an error. */
static json_t *answer_badly(const struct rpc_request *request, const char *to_node, void *data,
                            GError **error)
{
    if (strcmp(to_node, MASTER) != 0) {
        fettle_set_error(error, STORAGE, "its disk is gone");
        return NULL;
    }
    json_t *report = query_report(to_node, NULL, NULL);
    json_object_set_new(report, "faults",
                        json_make("[{ss, ss}]", "kind", "disks", "text", "its disks fail"));
    return report;
}

static void test_nodes(void)
{
    struct queue_world *w = query_world_new();
    query_script_nodes(w, query_answer_report);
    expect(w, "node", "node1", "");
    expect(w, "node", NODE3,
           "offline: node3 is offline since {since}: a person's word, without a statement\n"
           "offline: When it works again:\n    fettle node modify node3 --offline no\n");
    query_script_nodes(w, answer_badly);
    expect(
        w, "node", "node1",
        "faults: node1 its disks fail\n"
        "faults: While that lasts it is chosen last for guests and replicas. What runs there is "
        "left alone, but for guests whose disks there have failed, if their policy allows it.\n");
    expect(w, "node", "node2",
           "unknown: While that lasts it is not known what node2 has and runs. It is not dead.\n");
    queue_world_free(w);
}

static json_t *answer_nothing(const struct rpc_request *request, const char *to_node, void *data,
                              GError **error)
{
    fettle_set_error(error, UNREACHABLE, "no route");
    return NULL;
}

static void test_silent(void)
{
    struct queue_world *w = query_world_new();
    query_script_nodes(w, answer_nothing);
    expect(w, "node", "node2",
           "silent: node2 does not answer. What runs there may still run, so nothing is done until "
           "it answers, or you say that it is dead:\n"
           "    fettle node modify node2 --offline yes --statement \"…\"\n"
           "silent: What would be done then:\n    fettle plan fail node2\n");
    queue_world_free(w);
}

static void test_bad_input(void)
{
    struct queue_world *w = query_world_new();
    queue_refuse(w, "WhatNext", json_make("[s, s]", "volume", "x"), FETTLE_ERROR_WRONG_INPUT,
                 "WhatNext: kind: must be one of instance, node, nodegroup, cluster, not "
                 "\"volume\"");
    queue_refuse(w, "WhatNext", json_make("[s, s]", "instance", "web9"),
                 FETTLE_ERROR_UNKNOWN_ENTITY, "instance \"web9\" does not exist");
    queue_refuse(w, "WhatNext", json_make("[s, s]", "node", "node9"), FETTLE_ERROR_UNKNOWN_ENTITY,
                 "node \"node9\" does not exist");
    queue_world_free(w);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/what-next/suspended", test_suspended);
    g_test_add_func("/what-next/results", test_results);
    g_test_add_func("/what-next/nodes", test_nodes);
    g_test_add_func("/what-next/silent", test_silent);
    g_test_add_func("/what-next/bad-input", test_bad_input);
    return g_test_run();
}
