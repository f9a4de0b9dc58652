/* What each method of LUXI writes: none has a way to the configuration but a job (LUX-05). */
#include "unit/core/world/query_world.h"

#include <string.h>

#include "proto/luxi.h"

#define RULE "99999999-0000-4000-8000-000000000001"
#define OTHER_RULE "99999999-0000-4000-8000-000000000002"
#define OPCODE "{\"OP_ID\": \"OP_TEST_DELAY\", \"duration\": 1, \"reason\": []}"

/* A call that does what it can do, and the kinds of objects that it changes. Job 1 has ended, job 2
 * is under way, job 3 is queued. */
static const struct row {
    const char *method, *args, *kinds;
    enum fettle_error error; /* 0: none */
} rows[] = {
    {"SubmitJob", "[[" OPCODE "]]", "counter job"},
    {"SubmitJobToDrainedQueue", "[[" OPCODE "]]", "counter job"},
    {"SubmitManyJobs", "[[[" OPCODE "], [" OPCODE "]]]", "counter job"},
    {"QueryJobs", "[null, [\"id\", \"status\"]]", ""},
    {"WaitForJobChange", "[2, [\"status\"], null, null, 0]", ""},
    {"CancelJob", "[2, true]", "job"},
    {"CancelJob", "[3]", "job"},
    {"ChangeJobPriority", "[3, -5]", "job"},
    {"ArchiveJob", "[1]", "job"},
    {"AutoArchiveJobs", "[-1, 5]", "job"},
    {"PickupJob", "[3]", "", FETTLE_ERROR_PERMISSION},
    {"ReplaceFilter", "[null, 5, [[\"jobid\", [\">\", \"id\", \"watermark\"]]], \"PAUSE\", []]",
     "job_filter"},
    {"ReplaceFilter", "[\"" OTHER_RULE "\", 5, [], \"PAUSE\", []]", "job_filter"},
    {"DeleteFilter", "[\"" OTHER_RULE "\"]", "job_filter"},
    {"QueryFilters", "[[], [\"uuid\"]]", ""},
    {"SetDrainFlag", "[true]", "switches"},
    {"SetWatcherPause", "[9000000000]", "switches"},
    {"QueryConfigValues", "[[\"cluster_name\", \"watcher_pause\"]]", ""},
    {"QueryInstances", "[[\"web1\"], [\"name\"], true]", ""},
    {"QueryNodes", "[[], [\"name\"], true]", ""},
    {"QueryGroups", "[[], [\"name\"], true]", ""},
    {"QueryNetworks", "[[], [\"name\"], true]", ""},
    {"QueryExports", "[[], true]", ""},
    {"Query", "[\"instance\", [\"name\", \"oper_state\"], null]", ""},
    {"Query", "[\"node\", [\"name\", \"mfree\"], null]", ""},
    {"Query", "[\"lock\", [\"name\"], null]", ""},
    {"QueryFields", "[\"instance\"]", ""},
    {"QueryClusterInfo", "[]", ""},
    {"QueryMetrics", "[]", ""},
    {"QueryRapiUsers", "[]", ""},
    {"QueryWebhooks", "[]", ""},
    {"QueryHappened", "[0]", ""},
    {"TakeWebhooks", "[]", "", FETTLE_ERROR_PERMISSION},
    {"KeepWebhookMarks", "[[]]", "", FETTLE_ERROR_PERMISSION},
    {"CheckRenewal", "[\"node2\"]", "", FETTLE_ERROR_PROTOCOL},
    {"WhatNext", "[\"node\", \"node3\"]", ""},
    {"WhatNext", "[\"instance\", \"web1\"]", ""},
    {"QueryTags", "[\"instance\", \"web1\"]", ""},
    {"Verify", "[\"\"]", ""},
    {"VerifyBackends", "[]", ""},
    {"RetryRecovery", "[\"instance\", \"web10\"]", "fault"},
    {"PlanRecovery", "[]", ""},
    {"ReceiveImage", "[\"tick\"]", "", FETTLE_ERROR_UNKNOWN_ENTITY},
    {"FinishImage", "[\"tick\", 17, 4096]", "", FETTLE_ERROR_UNKNOWN_ENTITY},
    {"SendImage", "[\"tick\"]", "", FETTLE_ERROR_UNKNOWN_ENTITY},
    {"PlanNode", "[\"node1\", \"fail\"]", ""},
    {"Verify", "[\"node1\"]", ""},
    {"ConsoleRead", "[\"web1\"]", ""},
    {"ConsoleWrite", "[\"web1\", \"bHMK\"]", ""},
    {"WatchChanges", "[{\"instance\": [\"name\"]}, \"\", 0, 0]", ""},
    {"WatchChanges", "[{\"lock\": [\"name\"]}, \"\", 0, 0]", ""},
};

static json_t *answer_console(const struct rpc_request *request, const char *node, void *data,
                              GError **error)
{
    return json_make("{ss, si}", "data", "", "offset", 0);
}

static void pause_job(struct queue_world *w, const char *rule, int id)
{
    store_put(w->store, "job_filter", rule,
              json_make("{ss, si, si, s[[s, [s, s, i]]], ss}", "uuid", rule, "priority", 9,
                        "watermark", 0, "predicates", "jobid", "=", "id", id, "action", "PAUSE"));
}

static struct queue_world *busy_world(void)
{
    struct queue_world *w = query_world_new();

    query_script_nodes(w, query_answer_report);
    fake_script(w->world, NULL, ROLE_NODED, "console_read", answer_console, NULL);
    fake_script(w->world, NULL, ROLE_NODED, "console_write", fake_answer_nothing, NULL);
    fake_script(w->world, NULL, ROLE_NODED, "archive_put", fake_answer_nothing, NULL);
    query_put_fault(w, WEB10);
    queue_submit(w, NULL);
    queue_job_runs(w, 1);
    queue_submit(w, NULL);
    pause_job(w, RULE, 3);
    pause_job(w, OTHER_RULE, 99);
    fake_settle(w->world);
    queue_submit(w, NULL);
    return w;
}

/* --- what has changed --- */

static void add_kind(GTree *kinds, const char *path)
{
    g_tree_insert(kinds, g_strndup(path, strcspn(path, "/")), kinds);
}

static gboolean append_kind(gpointer kind, gpointer unused, gpointer text)
{
    g_string_append_printf(text, "%s%s", ((GString *)text)->len > 0 ? " " : "", (char *)kind);
    return FALSE;
}

static gint compare_text(gconstpointer left, gconstpointer right, gpointer unused)
{
    return strcmp(left, right);
}

/* Kinds of the objects that differ, in the order of the alphabet. */
static char *changed_kinds(json_t *before, json_t *after)
{
    g_autoptr(GTree) kinds = g_tree_new_full(compare_text, NULL, g_free, NULL);
    GString *text = g_string_new(NULL);
    const char *path;
    json_t *object;

    json_object_foreach(before, path, object) {
        if (json_object_get(after, path) == NULL)
            add_kind(kinds, path);
    }
    json_object_foreach(after, path, object) {
        if (!json_equal(object, json_object_get(before, path)))
            add_kind(kinds, path);
    }
    g_tree_foreach(kinds, append_kind, text);
    return g_string_free(text, FALSE);
}

static void check_row(const struct row *row)
{
    struct queue_world *w = busy_world();
    g_autoptr(GError) error = NULL;
    g_autofree char *kinds = NULL;
    json_autoptr before = store_objects(w->store);
    json_autoptr answer = queue_call(w, row->method, json_loads(row->args, 0, NULL), &error);
    json_autoptr after = NULL;

    fake_settle(w->world);
    after = store_objects(w->store);
    kinds = changed_kinds(before, after);
    g_test_message("%s %s: %s", row->method, row->args, kinds);
    if (row->error != 0)
        g_assert_error(error, FETTLE_ERROR, (gint)row->error);
    else
        g_assert_no_error(error);
    g_assert_cmpstr(kinds, ==, row->kinds);
    queue_world_free(w);
}

static void test_writes(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++)
        check_row(&rows[i]);
}

static bool has_row(const char *method)
{
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++)
        if (strcmp(rows[i].method, method) == 0)
            return true;
    return false;
}

/* None of luxi.def is left out, and what may be written is the queue's own, and a person's wish
 * that is noted on a fault. */
static void test_all_methods(void)
{
    static const char *const allowed[] = {"",           "counter job", "fault", "job",
                                          "job_filter", "switches",    NULL};
    size_t count;
    const struct luxi_method *methods = luxi_method_table(&count);

    for (size_t i = 0; i < count; i++) {
        g_test_message("%s", methods[i].name);
        g_assert_true(has_row(methods[i].name));
    }
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++)
        g_assert_true(g_strv_contains(allowed, rows[i].kinds));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/luxi/writes#LUX-05", test_writes);
    g_test_add_func("/luxi/writes-of-all-methods#LUX-05", test_all_methods);
    return g_test_run();
}
