/* Documents that are laid over a configuration: what is taken, what stays, what is refused and in
 * which words; and write_config, which carries a plan out. */
#include <string.h>

#include "core/import/import.h"
#include "unit/core/world/storage_world.h"

#define TAG1 "instance/" WEB1 "/red"

static struct config *now;

static void set_up(void)
{
    g_autoptr(GPtrArray) start = initial_changes();
    now = config_new();
    for (guint i = 0; i < start->len; i++)
        g_assert_true(config_apply(now, start->pdata[i], NULL));
    g_autoptr(GPtrArray) tag = changes_of(
        put("tag", TAG1, 1,
            json_make("{s:s,s:s,s:s}", "kind", "instance", "object", WEB1, "tag", "red")),
        put("counter", "job", 1, json_make("{s:i}", "value", 7)), NULL);
    for (guint i = 0; i < tag->len; i++)
        g_assert_true(config_apply(now, tag->pdata[i], NULL));
}

static void tear_down(void)
{
    config_free(now);
}

static void add_object(const char *kind, const char *key, guint64 version, const void *value,
                       void *data)
{
    json_t *objects = json_object_get(data, kind);
    if (!objects) {
        objects = json_object();
        json_object_set_new(data, kind, objects);
    }
    json_object_set_new(objects, key, config_object_json(now, kind, key));
}

/* As `fettle cluster export` writes it. */
static json_t *document(void)
{
    json_t *objects = json_object();
    config_each(now, add_object, objects);
    return json_make("{s:s,s:i,s:{s:s,s:s},s:o}", "format", "fettle-configuration", "version", 1,
                     "cluster", "uuid", CLUSTER, "name", "c1", "objects", objects);
}

static json_t *object_in(json_t *doc, const char *kind, const char *key)
{
    return json_object_get(json_object_get(json_object_get(doc, "objects"), kind), key);
}

static char *joined(const char *mark, const GPtrArray *lines)
{
    GString *text = g_string_new(NULL);
    for (guint i = 0; i < lines->len; i++)
        g_string_append_printf(text, "%s%s\n", mark, (const char *)lines->pdata[i]);
    return g_string_free(text, FALSE);
}

/* The plan as text; `doc` is stolen. */
static char *plan_of(json_t *doc)
{
    json_autoptr owned = doc;
    g_autoptr(import_t) import = import_new();
    g_autoptr(GError) error = NULL;
    if (!import_document(import, now, owned, &error))
        return g_strdup_printf("%s: %s", fettle_error_name(error), error->message);
    g_autofree char *lines = joined("", import->lines);
    g_autofree char *notes = joined("note: ", import->notes);
    g_autofree char *problems = joined("problem: ", import->problems);
    return g_strconcat(lines, notes, problems, NULL);
}

#define OWN                                                                                        \
    "note: not taken from the file, because the cluster has its own: replica (1), counter (1)\n"

static json_t *without_own(json_t *doc)
{
    json_object_del(json_object_get(doc, "objects"), "replica");
    json_object_del(json_object_get(doc, "objects"), "counter");
    return doc;
}

static void test_same(void)
{
    set_up();
    g_autofree char *said = plan_of(document());
    g_assert_nonnull(strstr(said, "replica (1)"));
    g_assert_nonnull(strstr(said, "counter (1)"));
    g_assert_null(strstr(said, "change "));
    assert_says(plan_of(without_own(document())), "");
    tear_down();
}

static void test_wishes_are_taken(void)
{
    static const char group[] = "99999999-0000-4000-8000-000000000002";
    set_up();
    json_t *doc = without_own(document());
    json_t *objects = json_object_get(doc, "objects");
    json_object_set_new(object_in(doc, "instance", WEB1), "memory", json_integer(512));
    json_object_set_new(object_in(doc, "node", NODE3), "group", json_string(group));
    json_object_set_new(object_in(doc, "cluster", CLUSTER), "name", json_string("c2"));
    json_object_set_new(json_object_get(objects, "nodegroup"), group,
                        json_make("{s:s,s:s}", "uuid", group, "name", "east"));
    json_object_set_new(objects, "tag",
                        json_make("{s:{s:s,s:s,s:s}}", "node/" NODE1 "/blue", "kind", "node",
                                  "object", NODE1, "tag", "blue"));
    assert_says(plan_of(doc), "add nodegroup east\n"
                              "change cluster c1: name: c1 -> c2\n"
                              "change node node3: group: " GROUP " -> "
                              "99999999-0000-4000-8000-000000000002\n"
                              "change instance web1: memory: 128 -> 512\n"
                              "add tag blue of node node1\n"
                              "remove tag red of instance web1\n");
    tear_down();
}

/* Of what is stored a document has the wishes: names, and which nodes serve a back end. */
static void test_volumes(void)
{
    set_up();
    g_autoptr(GPtrArray) stored = changes_of(put("backend", DIR1, 1, object_backend(DIR1)),
                                             put("volume", VOLUME1, 1, object_volume1()),
                                             put("snapshot", VOLUME2, 1, object_snapshot2()), NULL);
    for (guint i = 0; i < stored->len; i++)
        g_assert_true(config_apply(now, stored->pdata[i], NULL));
    json_t *doc = without_own(document());
    assert_says(plan_of(json_deep_copy(doc)), "");
    json_t *volume = object_in(doc, "volume", VOLUME1);
    json_object_set_new(volume, "name", json_string("data9"));
    json_object_set_new(volume, "status", json_string("error"));
    json_object_set_new(volume, "data", json_string(VOLUME1 ".3"));
    json_object_set_new(volume, "size", json_integer(9));
    json_object_set_new(object_in(doc, "snapshot", VOLUME2), "name", json_string("first"));
    json_object_set_new(object_in(doc, "snapshot", VOLUME2), "data", json_string(VOLUME2 ".9"));
    json_object_set_new(object_in(doc, "backend", DIR1), "nodes", json_make("[s]", NODE1));
    json_object_set_new(object_in(doc, "backend", DIR1), "path", json_string("/mnt/c"));
    assert_says(plan_of(doc),
                "change backend dir1: nodes: [\"" NODE1 "\",\"" NODE2 "\"] -> [\"" NODE1 "\"]\n"
                "change volume data1: name: data1 -> data9\n"
                "change snapshot before: name: before -> first\n"
                "note: backend dir1: path stays /mnt/a (the file has /mnt/c)\n"
                "note: volume data1: size stays 2 (the file has 9)\n");
    doc = without_own(document());
    json_object_del(json_object_get(json_object_get(doc, "objects"), "volume"), VOLUME1);
    json_object_set_new(json_object_get(json_object_get(doc, "objects"), "backend"), DIR2,
                        object_backend(DIR2));
    assert_says(plan_of(doc),
                "problem: backend dir2 (" DIR2 "): is not in this cluster; its nodes are asked "
                "first: make it with `fettle backend add`, and take it out of the file\n"
                "problem: volume data1 (" VOLUME1 "): is not in the file; an import deletes no "
                "volume; use `fettle volume delete`, or put it into the file\n");
    tear_down();
}

/* Networks come and go with the document; one that cards are in does not go. */
static void test_networks(void)
{
    static const char net[] = "77777777-0000-4000-8000-000000000001";
    set_up();
    json_t *network = json_make("{s:s,s:s,s:s,s:s}", "uuid", net, "name", "prod", "network",
                                "192.0.2.0/24", "link", "br0");
    json_t *doc = without_own(document());
    json_object_set_new(json_object_get(doc, "objects"), "network",
                        json_make("{s:O}", net, network));
    assert_says(plan_of(doc), "add network prod\n");
    g_autoptr(GPtrArray) made = changes_of(put("network", net, 1, network), NULL);
    g_assert_true(config_apply(now, made->pdata[0], NULL));
    doc = without_own(document());
    json_object_del(json_object_get(doc, "objects"), "network");
    assert_says(plan_of(doc), "remove network prod\n");
    g_autoptr(GPtrArray) card =
        changes_of(put("instance", DB1, 1,
                       with(object_db1(), "nics",
                            json_make("[{s:s,s:s,s:s,s:s}]", "uuid", REPLICA2, "mac",
                                      "aa:00:00:00:00:01", "link", "br0", "network", net))),
                   NULL);
    g_assert_true(config_apply(now, card->pdata[0], NULL));
    doc = without_own(document());
    json_object_del(json_object_get(doc, "objects"), "network");
    assert_says(plan_of(doc), "remove network prod\nproblem: network prod (77777777-0000-4000-8000-"
                              "000000000001): cannot be deleted, instance db1 refers to it\n");
    tear_down();
}

/* So do types of volumes; one that a volume has stays. */
static void test_volume_types(void)
{
    set_up();
    json_t *doc = without_own(document());
    json_object_set_new(json_object_get(doc, "objects"), "volume_type",
                        json_make("{s:o}", TYPE1, object_type(NULL)));
    assert_says(plan_of(doc), "add volume_type fast\n");
    g_autoptr(GPtrArray) made = changes_of(
        put("volume_type", TYPE1, 1, object_type(NULL)),
        put("backend", DIR1, 1, object_backend(DIR1)),
        put("volume", VOLUME1, 1, with(object_volume1(), "volume_type", json_string(TYPE1))), NULL);
    for (guint i = 0; i < made->len; i++)
        g_assert_true(config_apply(now, made->pdata[i], NULL));
    doc = without_own(document());
    json_object_set_new(object_in(doc, "volume", VOLUME1), "volume_type", json_string(""));
    json_object_set_new(object_in(doc, "volume", VOLUME1), "project", json_string("acme"));
    json_object_del(json_object_get(doc, "objects"), "volume_type");
    assert_says(plan_of(doc), "remove volume_type fast\nproblem: volume_type fast (" TYPE1
                              "): cannot be deleted, volume data1 refers to it\n");
    tear_down();
}

#define FILTER1 "78000000-0000-4000-8000-000000000001"

static json_t *job_filter(const char *uuid, json_t *predicates)
{
    return json_make("{s:s,s:i,s:o,s:s}", "uuid", uuid, "priority", 1, "predicates", predicates,
                     "action", "PAUSE");
}

/* A document with this one rule about jobs. */
static json_t *with_filter(json_t *filter)
{
    json_t *doc = without_own(document());
    json_object_set_new(json_object_get(doc, "objects"), "job_filter",
                        json_make("{s:o}", FILTER1, filter));
    return doc;
}

/* Rules about jobs come and go with the document, if they can be asked. */
static void test_job_filters(void)
{
    set_up();
    json_t *of_user = json_make("[[s,[s,s,s]]]", "user", "=", "user", "anna");
    assert_says(plan_of(with_filter(job_filter(FILTER1, of_user))), "add job_filter " FILTER1 "\n");
    g_autoptr(GPtrArray) made =
        changes_of(put("job_filter", FILTER1, 1, job_filter(FILTER1, json_array())), NULL);
    g_assert_true(config_apply(now, made->pdata[0], NULL));
    assert_says(plan_of(without_own(document())), "");
    assert_says(
        plan_of(with_filter(with(job_filter(FILTER1, json_array()), "priority", json_integer(7)))),
        "change job_filter " FILTER1 ": priority: 1 -> 7\n");
    json_t *doc = without_own(document());
    json_object_del(json_object_get(doc, "objects"), "job_filter");
    assert_says(plan_of(doc), "remove job_filter " FILTER1 "\n");
    tear_down();
}

static json_t *rest_user(const char *uuid, const char *name)
{
    return json_make("{s:s,s:s,s:s}", "uuid", uuid, "name", name, "hash", "$y$x");
}

/* Users of REST are in a document that has secrets; any other one says nothing of them. */
static void test_rest_users(void)
{
    static const char alice[] = "99999999-0000-4000-8000-000000000003";
    static const char bob[] = "99999999-0000-4000-8000-000000000004";
    set_up();
    g_autoptr(GPtrArray) made = changes_of(put("rapi_user", alice, 1, rest_user(alice, "alice")),
                                           put("rapi_user", bob, 1, rest_user(bob, "bob")), NULL);
    for (guint i = 0; i < made->len; i++)
        g_assert_true(config_apply(now, made->pdata[i], NULL));
    json_t *doc = without_own(document());
    json_t *objects = json_object_get(doc, "objects");
    assert_says(plan_of(json_deep_copy(doc)), "");
    json_object_del(json_object_get(objects, "rapi_user"), bob);
    assert_says(plan_of(json_deep_copy(doc)), "remove rapi_user bob\n");
    json_object_clear(json_object_get(objects, "rapi_user"));
    assert_says(plan_of(json_deep_copy(doc)), "remove rapi_user alice\nremove rapi_user bob\n");
    json_object_del(objects, "rapi_user");
    assert_says(plan_of(doc), "");
    tear_down();
}

#define PAGER "99999999-0000-4000-8000-000000000005"

static json_t *webhook(const char *secret)
{
    return json_make("{ss ss ss ss s[s]}", "uuid", PAGER, "name", "pager", "url",
                     "https://a.example/", "secret", secret, "events", "*");
}

/* The lines of a plan are evidence of a decision, which whoever may read reads. */
static void test_secrets_are_not_told(void)
{
    static const char alice[] = "99999999-0000-4000-8000-000000000003";
    set_up();
    g_autoptr(GPtrArray) made = changes_of(put("rapi_user", alice, 1, rest_user(alice, "alice")),
                                           put("webhook", PAGER, 1, webhook("0ld")), NULL);
    for (guint i = 0; i < made->len; i++)
        g_assert_true(config_apply(now, made->pdata[i], NULL));
    json_t *doc = without_own(document());
    json_object_set_new(object_in(doc, "rapi_user", alice), "hash", json_string("$n$w"));
    json_object_set_new(object_in(doc, "webhook", PAGER), "secret", json_string("n3w"));
    json_object_set_new(object_in(doc, "webhook", PAGER), "paused", json_true());
    assert_says(plan_of(doc), "change rapi_user alice: hash: another one\n"
                              "change webhook pager: secret: another one, paused: false -> true\n");
    tear_down();
}

/* What nobody refers to any more goes with it. */
static void test_webhook_goes_with_its_mark(void)
{
    set_up();
    g_autoptr(GPtrArray) made = changes_of(
        put("webhook", PAGER, 1, webhook("s")),
        put("webhook_mark", PAGER, 1, json_make("{ss sI}", "uuid", PAGER, "serial", (json_int_t)7)),
        NULL);
    for (guint i = 0; i < made->len; i++)
        g_assert_true(config_apply(now, made->pdata[i], NULL));
    json_autoptr doc = without_own(document());
    json_object_clear(json_object_get(json_object_get(doc, "objects"), "webhook"));
    json_object_del(json_object_get(doc, "objects"), "webhook_mark");
    g_autoptr(import_t) import = import_new();
    g_assert_true(import_document(import, now, doc, NULL));
    assert_says(joined("", import->problems), "");
    assert_says(joined("", import->lines), "remove webhook pager\n");
    for (guint i = 0; i < import->changes->len; i++)
        g_assert_true(config_apply(now, import->changes->pdata[i], NULL));
    g_assert_cmpuint(config_count(now, "webhook"), ==, 0);
    g_assert_cmpuint(config_count(now, "webhook_mark"), ==, 0);
    tear_down();
}

static void test_bad_job_filters(void)
{
    set_up();
    assert_says(plan_of(with_filter(job_filter(FILTER1, json_make("[[s,n]]", "planet")))),
                "problem: job_filter " FILTER1
                ": predicates[0][0]: must be jobid, opcode, reason or user\n");
    assert_says(
        plan_of(
            with_filter(with(job_filter(FILTER1, json_array()), "action", json_string("STOP")))),
        "problem: job_filter " FILTER1
        ": action: must be ACCEPT, CONTINUE, PAUSE, REJECT or [\"RATE_LIMIT\", n] with n of at "
        "least 1\n");
    assert_says(plan_of(with_filter(
                    with(job_filter(FILTER1, json_array()), "reason", json_make("[i]", 1)))),
                "problem: job_filter " FILTER1
                ": reason[0]: must be [source, text, nanoseconds]\n");
    g_autofree char *text = g_strnfill(LIMIT_RULE_BYTES, 'x');
    json_t *large = json_make("[[s,s,i]]", "anna", text, 1);
    assert_says(plan_of(with_filter(with(job_filter(FILTER1, json_array()), "reason", large))),
                "problem: job_filter " FILTER1
                ": the filter has 32785 bytes, at most 32768 are taken\n");
    tear_down();
}

static void test_too_many_job_filters(void)
{
    set_up();
    json_t *filters = json_object();
    json_t *doc = without_own(document());
    for (guint i = 0; i <= LIMIT_RULES; i++) {
        g_autofree char *uuid = g_strdup_printf("78000000-0000-4000-8000-%012u", i);
        json_object_set_new(filters, uuid, job_filter(uuid, json_array()));
    }
    json_object_set_new(json_object_get(doc, "objects"), "job_filter", filters);
    g_autofree char *said = plan_of(doc);
    g_assert_true(g_str_has_suffix(said, "\nproblem: job_filter: there would be 1025 rules about "
                                         "jobs; at most 1024 are taken\n"));
    tear_down();
}

/* An old document does not make an old generation, a stale replica or other images valid. */
static void test_reality_stays(void)
{
    set_up();
    json_t *doc = without_own(document());
    json_t *web1 = object_in(doc, "instance", WEB1);
    json_object_set_new(web1, "generation", json_integer(2));
    json_object_set_new(web1, "holder", json_string(""));
    json_object_set_new(web1, "clean", json_true());
    json_object_set_new(web1, "primary_node", json_string(NODE2));
    json_object_set_new(object_in(doc, "node", NODE2), "primary_ip", json_string("10.9.9.9"));
    json_object_set_new(object_in(doc, "cluster", CLUSTER), "engine", json_string("etcd"));
    g_autofree char *said = plan_of(doc);
    g_assert_nonnull(strstr(said, "note: cluster c1: engine stays sqlite (the file has etcd)\n"));
    g_assert_nonnull(strstr(said, "note: node node2: primary_ip stays "));
    g_assert_nonnull(strstr(said, " (the file has 10.9.9.9)\n"));
    g_assert_nonnull(strstr(said, "note: instance web1: primary_node stays " NODE1
                                  " (the file has " NODE2 ")\n"));
    g_assert_null(strstr(said, "change "));
    tear_down();
}

#define STAYS(name, port)                                                                          \
    "note: instance " name ": vnc_bind_address stays nothing (the file has 0.0.0.0)\n"             \
    "note: instance " name ": network_port stays 0 (the file has " port ")\n"

static json_t *shown(json_t *instance, int port)
{
    return with(with(instance, "vnc_bind_address", json_string("0.0.0.0")), "network_port",
                json_integer(port));
}

/* One that may run keeps its display; a port that is not of the range is not taken. */
static void test_displays(void)
{
    set_up();
    json_t *doc = without_own(document());
    shown(object_in(doc, "instance", WEB1), 11000);
    shown(object_in(doc, "instance", DB1), 15000);
    assert_says(plan_of(doc), STAYS("web1", "11000") STAYS("db1", "15000"));
    tear_down();
}

static void test_new_instance(void)
{
    static const char uuid[] = "aaaaaaaa-0000-4000-8000-000000000007";
    set_up();
    json_t *doc = without_own(document());
    json_t *fresh = with(object_db1(), "uuid", json_string(uuid));
    json_object_set_new(fresh, "name", json_string("db7"));
    json_object_set_new(fresh, "admin_state", json_string("up"));
    json_object_set_new(fresh, "holder", json_string(NODE1));
    json_object_set_new(fresh, "generation", json_integer(5));
    json_object_del(fresh, "nics");
    json_object_set_new(json_object_get(json_object_get(doc, "objects"), "instance"), uuid, fresh);
    json_autoptr kept = json_incref(doc);
    shown(fresh, 15000);
    assert_says(plan_of(doc), "add instance db7\n" STAYS("db7", "15000"));
    g_autoptr(import_t) import = import_new();
    g_assert_true(import_document(import, now, kept, NULL));
    const struct change *change = import->changes->pdata[0];
    g_assert_cmpstr(json_string_value(json_object_get(change->object, "admin_state")), ==, "down");
    g_assert_cmpstr(json_string_value(json_object_get(change->object, "holder")), ==, "");
    g_assert_cmpint(json_integer_value(json_object_get(change->object, "generation")), ==, 0);
    tear_down();
}

/* All of them at once, each with object and field. */
static void test_problems(void)
{
    static const char stranger[] = "33333333-0000-4000-8000-000000000009";
    set_up();
    json_t *doc = without_own(document());
    json_t *objects = json_object_get(doc, "objects");
    json_object_set_new(object_in(doc, "instance", WEB1), "memory", json_integer(0));
    json_object_set_new(object_in(doc, "cluster", CLUSTER), "max_running_jobs",
                        json_string("many"));
    json_object_del(json_object_get(objects, "instance"), DB1);
    json_object_set_new(json_object_get(objects, "node"), stranger,
                        with(object_node(NODE3), "uuid", json_string(stranger)));
    json_object_set_new(json_object_get(objects, "tag"), "x", json_integer(1));
    assert_says(plan_of(doc),
                "problem: cluster c1: max_running_jobs: must be a number\n"
                "problem: node node3 (33333333-0000-4000-8000-000000000009): is not in this "
                "cluster; a host becomes a node with a token of `fettle node invite`; take it out "
                "of the file\n"
                "problem: instance web1: memory: must be at least 1 (MiB)\n"
                "problem: tag x: must be an object\n"
                "problem: instance db1 (" DB1
                "): is not in the file; an import removes no instance; use `fettle instance "
                "remove`, or put it into the file\n");
    tear_down();
}

/* What no field shows by itself, the invariants of every commit do. */
static void test_invariants_hold(void)
{
    set_up();
    json_t *doc = without_own(document());
    json_object_set_new(object_in(doc, "instance", WEB1), "name", json_string("db1"));
    g_autofree char *said = plan_of(doc);
    g_assert_nonnull(strstr(said, "problem: instance db1 (" WEB1
                                  "): name: another instance has the name \"db1\" already\n"));
    doc = without_own(document());
    json_object_del(json_object_get(json_object_get(doc, "objects"), "nodegroup"), GROUP);
    assert_says(plan_of(doc), "remove nodegroup default\n"
                              "problem: nodegroup default (" GROUP
                              "): cannot be deleted, node node1 refers to it\n");
    tear_down();
}

static void test_heads(void)
{
    set_up();
    assert_says(plan_of(json_object()),
                "wrong_input: format: is not \"fettle-configuration\"; this is no file of `fettle "
                "cluster export`");
    assert_says(plan_of(with(document(), "version", json_integer(2))),
                "wrong_input: version: is 2; this version of Fettle reads 1 and older: import it "
                "with the newer Fettle that wrote it");
    assert_says(plan_of(with(document(), "version", json_string("1"))),
                "wrong_input: version: must be a number from 1 on");
    assert_says(
        plan_of(with(document(), "cluster", json_make("{s:s,s:s}", "uuid", WEB1, "name", "other"))),
        "wrong_input: cluster.uuid: is " WEB1 " (other), and this is the cluster " CLUSTER
        " (c1); a document goes back only into the cluster that it came from");
    assert_says(plan_of(with(document(), "objects", json_array())),
                "wrong_input: objects: must be an object");
    assert_says(plan_of(with(document(), "objects", json_make("{s:{}}", "gadget"))),
                "wrong_input: objects.gadget: is no kind of object");
    assert_says(plan_of(with(document(), "objects", json_make("{s:[]}", "node"))),
                "wrong_input: objects.node: must be an object");
    tear_down();
}

/* --- write_config --- */

static char *livelock; /* of the command */

static const struct env *cli(void)
{
    struct env *env = fake_process(world.world, NODE1, ROLE_CLI);
    livelock = env->ops->livelock_make(env, "import", NULL);
    g_assert_nonnull(livelock);
    return env;
}

static void finish(void)
{
    g_clear_pointer(&livelock, g_free);
    world_tear_down();
    tear_down();
}

static json_t *write_args(json_t *doc, const char *plan)
{
    return json_make("{s:{s:s,s:s},s:o,s:s,s:s}", "owner", "job", "import", "livelock", livelock,
                     "document", doc, "plan", plan, "commit_id", ID_A);
}

static char *take_lock(const struct env *from)
{
    return ask_wconf(&world, from, "update_locks",
                     json_make("{s:{s:s,s:s},s:[{s:s,s:s}]}", "owner", "job", "import", "livelock",
                               livelock, "locks", "name", "cluster/config", "mode", "exclusive"));
}

static char *member_of(const char *text, const char *member)
{
    json_autoptr json = json_parse_limited(text, strlen(text), KIB(64), NULL);
    const char *value = json_string_value(json_object_get(json, member));
    return g_strdup(value ? value : text);
}

/* web1 gets more memory. */
static json_t *wish(void)
{
    json_t *doc = without_own(document());
    json_object_set_new(object_in(doc, "instance", WEB1), "memory", json_integer(512));
    json_object_del(json_object_get(doc, "objects"), "tag");
    return doc;
}

static char *plan_by(const struct env *from)
{
    g_autofree char *answer = ask_wconf(&world, from, "write_config", write_args(wish(), ""));
    return member_of(answer, "plan");
}

static void test_write(void)
{
    set_up();
    world_set_up();
    const struct env *from = cli();
    g_autofree char *plan = plan_by(from);
    g_assert_cmpuint(strlen(plan), ==, 64);
    assert_says(world_status("serial"), "1");
    assert_says(ask_wconf(&world, from, "write_config", write_args(wish(), plan)),
                "lock_missing: import does not hold the lock cluster/config exclusively");
    assert_says(take_lock(from), GRANTED);
    assert_says(ask_wconf(&world, from, "write_config", write_args(wish(), ID_B)),
                "version_conflict: the configuration has changed since the plan was made; nothing "
                "was imported, look at the new plan");
    g_autofree char *answer = ask_wconf(&world, from, "write_config", write_args(wish(), plan));
    g_assert_nonnull(strstr(answer, "change instance web1: memory: 128 -> 512"));
    assert_says(world_status("serial"), "2");
    assert_says(world_status("problems"), "[]");
    /* The answer was lost: the same call does it once. */
    g_autofree char *again = ask_wconf(&world, from, "write_config", write_args(wish(), plan));
    g_assert_nonnull(strstr(again, "\"serial\":2"));
    assert_says(world_status("serial"), "2");
    finish();
}

static void test_write_waits_for_nobody(void)
{
    set_up();
    world_set_up();
    const struct env *from = cli();
    g_autofree char *plan = plan_by(from);
    assert_says(take_lock(from), GRANTED);
    assert_says(job_locks(&world, 17, "s instance/db1", false), GRANTED);
    g_autofree char *held = ask_wconf(&world, from, "write_config", write_args(wish(), plan));
    g_assert_true(g_str_has_prefix(held, "wrong_state: job 17 holds the lock instance/"));
    g_assert_nonnull(strstr(held, "nothing is imported while others have locks"));
    assert_says(
        ask_wconf(&world, world.luxid, "free_locks", json_make("{s:o}", "owner", owner_json(17))),
        "{}");
    json_t *job =
        json_make("{s:i,s:[{s:{s:s}}],s:s,s:b,s:i,s:i}", "id", 18, "ops", "input", "OP_ID",
                  "OP_TEST_DELAY", "status", "running", "started", 1, "history", 1, "epoch", 1);
    struct fake_reply reply;
    luxid_commit_start(ID_B, changes_of(put("job", "18", 0, job), NULL), &reply);
    assert_says(world_reply(&reply), "{\"serial\":2}");
    assert_says(ask_wconf(&world, from, "write_config", write_args(wish(), plan)),
                "wrong_state: job 18 is under way; nothing is imported while jobs run. Wait for "
                "its end (fettle job watch 18) and try again");
    assert_says(world_status("serial"), "2");
    finish();
}

/* Groups, which are nobody's but the document's. */
static json_t *with_groups(guint count)
{
    json_t *doc = without_own(document());
    json_t *groups = json_object_get(json_object_get(doc, "objects"), "nodegroup");
    for (guint i = 0; i < count; i++) {
        g_autofree char *uuid = g_strdup_printf("99999999-0000-4000-8000-1%011u", i);
        g_autofree char *name = g_strdup_printf("g%u", i);
        json_object_set_new(groups, uuid, json_make("{s:s,s:s}", "uuid", uuid, "name", name));
    }
    json_object_del(json_object_get(doc, "objects"), "tag");
    return doc;
}

/* One more than a transaction takes: that is said with the plan, and nothing is tried. With the
 * record of the import as many as it takes are done. */
static void test_write_too_much(void)
{
    static const char said[] =
        "40001 objects would change, and one import changes 39999 at most. Import in parts: take "
        "some of what is new out of the file, import it, put that back, and import it again";
    set_up();
    world_set_up();
    const struct env *from = cli();
    guint most = LIMIT_STORE_CHANGES - 1;
    g_autofree char *refused =
        ask_wconf(&world, from, "write_config", write_args(with_groups(most + 2), ""));
    g_assert_nonnull(strstr(refused, said));
    json_autoptr answer = json_parse_limited(refused, strlen(refused), MIB(4), NULL);
    const char *digest = json_string_value(json_object_get(answer, "plan"));
    assert_says(take_lock(from), GRANTED);
    g_autofree char *wanted = g_strconcat("wrong_input: ", said, NULL);
    assert_says(ask_wconf(&world, from, "write_config", write_args(with_groups(most + 2), digest)),
                wanted);
    assert_says(world_status("serial"), "1");
    g_autofree char *plan =
        ask_wconf(&world, from, "write_config", write_args(with_groups(most), ""));
    json_autoptr taken = json_parse_limited(plan, strlen(plan), MIB(4), NULL);
    digest = json_string_value(json_object_get(taken, "plan"));
    g_free(ask_wconf(&world, from, "write_config", write_args(with_groups(most), digest)));
    assert_says(world_status("serial"), "2");
    finish();
}

/* With etcd it is less; the way round is said. */
static void test_write_too_much_for_etcd(void)
{
    set_up();
    world_set_up();
    const struct env *from = cli();
    fake_engine_base(world.engine)->replicated = true;
    g_autofree char *refused = ask_wconf(&world, from, "write_config",
                                         write_args(with_groups(LIMIT_COMMIT_CHANGES + 1), ""));
    g_assert_nonnull(strstr(
        refused, "8001 objects would change, and with the engine etcd one import changes 7999 "
                 "at most, because a transaction of etcd takes no more. Import with the "
                 "engine sqlite, which takes 39999, and change it after that: fettle cluster "
                 "engine sqlite, fettle cluster engine etcd"));
    fake_engine_base(world.engine)->replicated = false;
    finish();
}

/* Others than a person on this host have no business with it. */
static void test_write_is_for_people(void)
{
    set_up();
    world_set_up();
    cli();
    g_autofree char *said = ask_wconf(&world, world.luxid, "write_config", write_args(wish(), ""));
    g_assert_true(g_str_has_prefix(said, "permission_denied: "));
    finish();
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/import/volumes", test_volumes);
    g_test_add_func("/import/networks#WCF-19", test_networks);
    g_test_add_func("/import/volume-types", test_volume_types);
    g_test_add_func("/import/job-filters#FUT-13", test_job_filters);
    g_test_add_func("/import/rest-users", test_rest_users);
    g_test_add_func("/import/secrets-are-not-told", test_secrets_are_not_told);
    g_test_add_func("/import/webhook-goes-with-its-mark", test_webhook_goes_with_its_mark);
    g_test_add_func("/import/job-filters/bad#FUT-13", test_bad_job_filters);
    g_test_add_func("/import/job-filters/too-many#FUT-13", test_too_many_job_filters);
    g_test_add_func("/import/nothing-changed", test_same);
    g_test_add_func("/import/wishes-are-taken", test_wishes_are_taken);
    g_test_add_func("/import/reality-stays", test_reality_stays);
    g_test_add_func("/import/displays", test_displays);
    g_test_add_func("/import/new-instance-is-stopped", test_new_instance);
    g_test_add_func("/import/all-problems-at-once", test_problems);
    g_test_add_func("/import/invariants-hold", test_invariants_hold);
    g_test_add_func("/import/heads", test_heads);
    g_test_add_func("/import/write", test_write);
    g_test_add_func("/import/write-waits-for-nobody", test_write_waits_for_nobody);
    g_test_add_func("/import/write-too-much#SAF-08", test_write_too_much);
    g_test_add_func("/import/write-too-much-for-etcd#WCF-19", test_write_too_much_for_etcd);
    g_test_add_func("/import/write-is-for-people", test_write_is_for_people);
    return g_test_run();
}
