/* What is not as it should be (core/verify): each part of a look, and what concerns one node. */
#include "core/config/model.h"
#include "unit/core/world/query_world.h"

#define BRAKE "cluster"

/* --- asking --- */

static void append(GString *text, const char *prefix, const json_t *list)
{
    size_t i;
    const json_t *line;
    json_array_foreach(list, i, line)
        g_string_append_printf(text, "%s%s\n", prefix, json_string_value(line));
}

/* Problems and notes, one a line; free with g_free(). */
static char *ask(struct queue_world *w, const char *node)
{
    g_autoptr(GError) error = NULL;
    json_autoptr found = queue_call(w, "Verify", json_make("[s]", node), &error);
    GString *text = g_string_new(NULL);
    g_assert_no_error(error);
    append(text, "", json_object_get(found, "problems"));
    append(text, "note: ", json_object_get(found, "notes"));
    return g_string_free(text, FALSE);
}

static void check(struct queue_world *w, const char *node, const char *expected)
{
    g_autofree char *text = ask(w, node);
    g_assert_cmpstr(text, ==, expected);
}

/* --- what nodes say --- */

static json_t *services(const char *const *names)
{
    json_t *list = json_array();
    for (; *names; names++)
        json_array_append_new(
            list, json_make("{ss, ss, ss}", "name", *names, "state", "running", "version", "1.0"));
    return list;
}

/* Every node answers, web1 runs where it should; node2 tells of what the test has put into
 * `data`. */
static json_t *answer_well(const struct rpc_request *request, const char *to_node, void *data,
                           GError **error)
{
    static const char *const of_master[] = {"luxid", "noded", "rconfd", "watcher", "wconfd", NULL};
    static const char *const of_others[] = {"noded", "rconfd", NULL};
    bool master = g_str_equal(to_node, MASTER);
    json_t *report = query_report(to_node, master ? WEB1 : NULL, "running");
    json_object_set_new(report, "services", services(master ? of_master : of_others));
    if (g_str_equal(to_node, NODE2))
        json_object_update(report, data);
    return report;
}

/* web10 lies on a node that is offline, and web2 has never had a replica. */
#define ALWAYS                                                                                     \
    "node node3: is offline\n"                                                                     \
    "instance web10: status is ERROR_nodeoffline\ninstance web10: has no replica\n"                \
    "instance web2: has no replica\n"

static struct queue_world *world_new(json_t *of_node2)
{
    struct queue_world *w = query_world_new();
    fake_script(w->world, NULL, ROLE_NODED, "node_report", answer_well, of_node2);
    store_set_status(w->store, json_make("{sb}", "authority", true));
    return w;
}

/* --- the master --- */

static void test_master(void)
{
    struct queue_world *w = world_new(NULL);
    check(w, "", ALWAYS);
    store_set_status(w->store, json_make("{s[ss]}", "problems", "one", "two"));
    store_set_pending(w->store, NODE2);
    check(w, "",
          "configuration: one\nconfiguration: two\n"
          "node node2: has not answered this epoch yet; no lock that covers it is granted\n"
          "master: /etc/fettle/ca.key is missing, so no host can join; put it back from a backup "
          "or from a node that has it, with mode 0600\n" ALWAYS);
    queue_world_free(w);
}

static void test_copies(void)
{
    struct queue_world *w = world_new(NULL);
    store_set_status(w->store,
                     json_make("{sb s[{ss si sb sb}]}", "authority", true, "copies", "node", NODE2,
                               "serial", 17, "reachable", true, "authority", false));
    check(w, "",
          "node node2: does not have the key of the cluster's authority, so as master it could "
          "let no host in; the log of its fettle-wconfd says why\n" ALWAYS);
    store_set_status(w->store, json_make("{sb s[{ss si sb}]}", "authority", true, "copies", "node",
                                         NODE2, "serial", 17, "reachable", false));
    check(w, "node2",
          "node node2: its copy of the configuration stands at serial 17, and no change waits for "
          "it: as master it would lack what has changed since. See whether its fettle-wconfd "
          "runs, and what its log says\n"
          "instance web2: has no replica\n");
    queue_world_free(w);
}

/* --- nodes --- */

static void test_node_faults(void)
{
    json_autoptr node2 = json_make(
        "{si si s[{ss ss si}] s[{ss si}] s[s] ss}", "disk_total", 1000, "disk_free", 40, "faults",
        "kind", "disks", "text", "has disks that fail", "age_s", 7, "late", "part", "shared",
        "age_ms", 12000, "leftovers", WEB1 " 3", "without_kvm", "it is broken");
    struct queue_world *w = world_new(node2);
    check(w, NODE2,
          "node node2: shared: no answer, last heard 12 s ago\n"
          "node node2: has disks that fail (for 7 s)\n"
          "node node2: 96 % of its disk space are used (40 MiB left), guests there stand still "
          "when there is none left; make room, or: fettle node evacuate node2\n"
          "instance web2: has no replica\n"
          "note: node node2: keeps images aside of " WEB1 " 3 (instance, generation); they go when "
          "it holds an in-sync replica again, or remove them from var/disks/aside\n"
          "note: node node2: has /dev/kvm, and its guests run without it: it is broken. If that "
          "is how it shall be: fettle cluster modify --accelerator tcg\n");
    queue_world_free(w);
}

static json_t *answer_refusing(const struct rpc_request *request, const char *to_node, void *data,
                               GError **error)
{
    if (g_str_equal(to_node, MASTER))
        fettle_set_error(error, ENVIRONMENT, "no memory");
    else
        fettle_set_error(error, UNREACHABLE, "no link");
    return NULL;
}

static void test_silent(void)
{
    struct queue_world *w = world_new(NULL);
    fake_script(w->world, NULL, ROLE_NODED, "node_report", answer_refusing, NULL);
    check(w, "",
          "node node1: report: its node daemon answers with an error: no memory\n"
          "node node2: does not answer\nnode node3: is offline\n"
          "instance web1: status is unknown\n"
          "instance web1: is not told of by node1, which answers with an error: no memory\n"
          "instance web10: status is ERROR_nodeoffline\ninstance web10: has no replica\n"
          "instance web2: status is ERROR_nodedown\ninstance web2: has no replica\n");
    queue_world_free(w);
}

/* --- locks --- */

static json_t *lock(const char *name, const char *job)
{
    return json_make("{ss ss s{ss ss}}", "name", name, "mode", "exclusive", "owner", "job", job,
                     "livelock", "job-1-x");
}

static void test_locks(void)
{
    struct queue_world *w = world_new(NULL);
    guint64 id = queue_submit_running(w);
    g_autofree char *job = g_strdup_printf("%" G_GUINT64_FORMAT, id);
    store_set_locks(w->store,
                    json_make("[o, o, o]", lock("node/node2", job),
                              lock("instance/web1", "watcher"), lock("node/node1", "99")));
    check(w, "", ALWAYS "lock node/node1: is held by job 99, which has ended\n");
    check(w, "node2", "instance web2: has no replica\n");
    queue_job_ends(w, id);
    g_autofree char *text = g_strdup_printf("instance web2: has no replica\n"
                                            "lock node/node2: is held by job %s, which has ended\n",
                                            job);
    check(w, "node2", text);
    queue_world_free(w);
}

/* --- notes, which only the whole cluster has --- */

static void test_notes(void)
{
    struct queue_world *w = world_new(NULL);
    store_put(
        w->store, "switches", "switches",
        json_make("{ss sb si}", "uuid", "switches", "drained", true, "watcher_paused_until", 0));
    store_put(w->store, "repair_brake", BRAKE,
              json_make("{si ss}", "since", 1700000000, "why", "Two nodes were lost at once."));
    fake_settle(w->world);
    g_autofree char *text = ask(w, "");
    g_assert_nonnull(strstr(text, ALWAYS "note: auto-repair stands still, its storm brake is on "
                                         "since 2023-11-"));
    g_assert_nonnull(strstr(text, ": Two nodes were lost at once. Look around, then: fettle "
                                  "repair continue\n"
                                  "note: the queue is drained: no job is taken, none of "
                                  "auto-repair either, until: fettle queue undrain\n"));
    check(w, "node2", "instance web2: has no replica\n");
    queue_world_free(w);
}

/* --- parts --- */

static void check_part(struct queue_world *w, const char *group, bool no_node, const char *expected)
{
    g_autoptr(GError) error = NULL;
    json_autoptr found =
        queue_call(w, "Verify", json_make("[s, s, b]", "", group, (int)no_node), &error);
    g_autoptr(GString) text = g_string_new(NULL);
    g_assert_no_error(error);
    append(text, "", json_object_get(found, "problems"));
    append(text, "note: ", json_object_get(found, "notes"));
    g_assert_cmpstr(text->str, ==, expected);
}

/* What belongs to no node, and what belongs to the nodes of a group, is the whole, and nothing
 * twice. */
static void test_parts(void)
{
    struct queue_world *w = world_new(NULL);
    store_set_status(w->store, json_make("{sb s[s]}", "authority", true, "problems", "one"));
    store_put(
        w->store, "switches", "switches",
        json_make("{ss sb si}", "uuid", "switches", "drained", true, "watcher_paused_until", 0));
    fake_settle(w->world);
    check_part(w, "default", false, ALWAYS);
    check_part(w, "", true,
               "configuration: one\nnote: the queue is drained: no job is taken, none of "
               "auto-repair either, until: fettle queue undrain\n");
    queue_world_free(w);
}

/* --- bad input --- */

static void test_bad_input(void)
{
    struct queue_world *w = world_new(NULL);
    queue_refuse(w, "Verify", json_make("[s]", "nix"), FETTLE_ERROR_UNKNOWN_ENTITY,
                 "node \"nix\" does not exist");
    queue_refuse(w, "Verify", json_make("[s, s]", "", "nix"), FETTLE_ERROR_UNKNOWN_ENTITY,
                 "nodegroup \"nix\" does not exist");
    queue_refuse(w, "Verify", json_make("[i]", 7), FETTLE_ERROR_WRONG_INPUT,
                 "Verify: node: must be a text");
    queue_world_free(w);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/verify/master#ARP-70", test_master);
    g_test_add_func("/verify/copies#ARP-70", test_copies);
    g_test_add_func("/verify/node-faults#ARP-70,SAF-92", test_node_faults);
    g_test_add_func("/verify/silent#ARP-70,SAF-91", test_silent);
    g_test_add_func("/verify/locks#ARP-70", test_locks);
    g_test_add_func("/verify/notes#ARP-70", test_notes);
    g_test_add_func("/verify/parts#ARP-70", test_parts);
    g_test_add_func("/verify/bad-input#ARP-70", test_bad_input);
    return g_test_run();
}
