/* What a node's loss would do (repair/forecast.h), the call PlanNode, and promises counted once. */
#include "core/repair/forecast.h"

#include "core/placement/placement.h"
#include "unit/core/world/queue_world.h"

#define P "ganeti:watcher:autorepair:"
#define NOW 1700000000
#define UUID(kind, n) "00000000-0000-4000-8000-0000000" kind n

/* --- a cluster of four nodes --- */

struct place {
    struct config *config;
    GPtrArray *reports;
};

static void put(struct config *config, const char *kind, const char *key, json_t *object)
{
    g_autoptr(GError) error = NULL;
    record_autoptr(change) change = config_put(config, kind, key, object);
    change->version = 1;
    config_apply(config, change, &error);
    g_assert_no_error(error);
}

static void drop(struct config *config, const char *kind, const char *key)
{
    record_autoptr(change) change = config_delete(config, kind, key);
    g_assert_true(config_apply(config, change, NULL));
}

static char *uuid_of(const char *kind, guint number)
{
    return g_strdup_printf("00000000-0000-4000-8000-0000000%s%03u", kind, number);
}

static void put_tag(struct place *place, const char *kind, const char *object, const char *text)
{
    g_autofree char *tag = g_strconcat(P, text, NULL);
    g_autofree char *key = g_strdup_printf("%s/%s/%s", kind, object, tag);
    put(place->config, "tag", key,
        json_make("{ss ss ss}", "kind", kind, "object", object, "tag", tag));
}

static void place_init(struct place *place, int memory)
{
    place->config = config_new();
    place->reports = g_ptr_array_new_with_free_func((GDestroyNotify)node_report_free);
    put(place->config, "cluster", UUID("c0", "001"),
        json_make("{ss ss ss}", "uuid", UUID("c0", "001"), "name", "c", "master_node",
                  UUID("a0", "004")));
    put(place->config, "nodegroup", UUID("90", "001"),
        json_make("{ss ss}", "uuid", UUID("90", "001"), "name", "default"));
    for (guint i = 1; i <= 4; i++) {
        g_autofree char *uuid = uuid_of("a0", i), *name = g_strdup_printf("node%u", i);
        put(place->config, "node", uuid,
            json_make("{ss ss ss ss}", "uuid", uuid, "name", name, "primary_ip", "10.0.0.1",
                      "group", UUID("90", "001")));
        json_autoptr json = json_make("{ss si si si si}", "node", uuid, "memory_total", memory,
                                      "memory_free", memory, "disk_total", 9000, "disk_free", 9000);
        g_ptr_array_add(place->reports, node_report_parse(json, RECORD_LAX, NULL));
    }
}

static void set(struct place *place, const char *kind, const char *key, const char *field,
                json_t *value)
{
    json_t *object = config_object_json(place->config, kind, key);
    json_object_set_new(object, field, value);
    put(place->config, kind, key, object);
}

static void place_clear(struct place *place)
{
    config_free(place->config);
    g_ptr_array_unref(place->reports);
}

static void put_instance(struct place *place, guint number, const char *disk_template,
                         guint primary, guint secondary)
{
    g_autofree char *uuid = uuid_of("b0", number), *replica = uuid_of("d0", number);
    g_autofree char *first = uuid_of("a0", primary), *second = uuid_of("a0", secondary);
    g_autofree char *name = g_strdup_printf("web%u", number);
    put(place->config, "instance", uuid,
        json_make("{ss ss ss si ss ss ss si ss s[{ss si}] ss}", "uuid", uuid, "name", name,
                  "disk_template", disk_template, "memory", 100, "primary_node", first,
                  "secondary_node", secondary != 0 ? second : "", "replica",
                  secondary != 0 ? replica : "", "generation", 3, "holder", first, "disks", "uuid",
                  uuid, "size", 10, "admin_state", "up"));
    if (secondary != 0)
        put(place->config, "replica", replica,
            json_make("{ss ss ss si si ss}", "uuid", replica, "instance", uuid, "node", second,
                      "generation", 3, "sync", 1, "state", "in-sync"));
}

static char *ask(const struct place *place, const char *node, enum forecast_event event)
{
    json_autoptr answer = forecast_node(place->config, place->reports,
                                        config_find(place->config, "node", node, NULL), event, NOW);
    return json_dumps(answer, JSON_COMPACT | JSON_SORT_KEYS);
}

static void assert_has(const char *text, const char *part)
{
    if (strstr(text, part) == NULL)
        g_error("%s\nis not in\n%s", part, text);
}

/* --- the forecast --- */

static void test_fail(void)
{
    struct place place;
    place_init(&place, 4000);
    put_tag(&place, "cluster", UUID("c0", "001"), "failover");
    put_instance(&place, 1, "mirror", 1, 2);
    put_instance(&place, 2, "mirror", 3, 1);
    put_instance(&place, 3, "sharedfile", 1, 0);
    put_instance(&place, 4, "file", 1, 0);
    put_instance(&place, 5, "mirror", 2, 3); /* has nothing to do with it */
    g_autofree char *text = ask(&place, "node1", FORECAST_FAIL);
    assert_has(text, "{\"from\":[\"node1\",\"node2\"],\"instance\":\"web1\",\"operations\":["
                     "\"failover\",\"replace-disks\"],\"policy\":\"failover, by a tag of the "
                     "cluster\",\"to\":[\"node2\",\"node");
    assert_has(text, "{\"from\":[\"node3\",\"node1\"],\"instance\":\"web2\",\"operations\":["
                     "\"replace-disks\"]");
    assert_has(text, "\"instance\":\"web3\",\"operations\":[\"failover\"]");
    assert_has(text, "\"blocked\":[{\"from\":[\"node1\"],\"instance\":\"web4\",\"operations\":[],"
                     "\"policy\":\"failover, by a tag of the cluster\",\"reason\":\"it needs "
                     "reinstall, the policy allows failover\",\"type\":\"reinstall\"}]");
    g_assert_null(strstr(text, "web5"));
    place_clear(&place);
}

static void test_drain(void)
{
    struct place place;
    place_init(&place, 4000);
    put_tag(&place, "cluster", UUID("c0", "001"), "migrate");
    put_tag(&place, "instance", UUID("b0", "003"), "suspend");
    put_instance(&place, 1, "mirror", 1, 2);
    put_instance(&place, 2, "file", 1, 0);
    put_instance(&place, 3, "diskless", 1, 0);
    g_autofree char *text = ask(&place, "node1", FORECAST_DRAIN);
    assert_has(text, "\"instance\":\"web1\",\"operations\":[\"migrate\",\"replace-disks\"]");
    assert_has(text, "\"instance\":\"web2\",\"operations\":[],\"policy\":\"migrate, by a tag of "
                     "the cluster\",\"reason\":\"Its only data is there and alive:");
    assert_has(text, "\"reason\":\"repair is suspended, by a tag of the instance\"");
    /* Nothing was changed. */
    const struct node *node = config_find(place.config, "node", "node1", NULL);
    g_assert_false(node->drained);
    place_clear(&place);
}

/* What is refused by the watcher is no move of the plan; a repair that has begun goes on, as far as
 * its own type, without a policy. */
static void test_tags_of_repairs(void)
{
    struct place place;
    place_init(&place, 4000);
    for (guint i = 1; i <= 5; i++)
        put_instance(&place, i, "mirror", 1, 2);
    put_tag(&place, "instance", UUID("b0", "001"), "failover");
    put_tag(&place, "instance", UUID("b0", "001"), "result:failover:one:1600000000:failure:7");
    put_tag(&place, "instance", UUID("b0", "001"), "result:failover:two:1600000000:failure:");
    put_tag(&place, "instance", UUID("b0", "001"), "pending:failover:three:1600000000:");
    put_tag(&place, "instance", UUID("b0", "002"), "pending:failover:four:1600000000:");
    put_tag(&place, "instance", UUID("b0", "003"), "pending:migrate:five:1600000000:");
    put_tag(&place, "instance", UUID("b0", "004"), "pending:failover:six:1600000000:");
    put_tag(&place, "instance", UUID("b0", "004"), "suspend");
    put_tag(&place, "instance", UUID("b0", "005"), "failover");
    put_tag(&place, "instance", UUID("b0", "005"), "result:failover:seven:1600000000:enoperm:");
    g_autofree char *text = ask(&place, "node1", FORECAST_FAIL);
    assert_has(text, "\"instance\":\"web1\",\"operations\":[],\"policy\":\"failover, by a tag of "
                     "the instance\",\"reason\":\"an earlier repair failed, and nothing is touched "
                     "until you have looked into that and taken its tag away: fettle tag remove "
                     "instance web1 " P "result:failover:one:1600000000:failure:7 " P
                     "result:failover:two:1600000000:failure:\"");
    assert_has(text, "\"instance\":\"web2\",\"operations\":[\"failover\",\"replace-disks\"],"
                     "\"policy\":\"failover, by a pending repair\"");
    assert_has(text, "\"instance\":\"web3\",\"operations\":[],\"policy\":\"not enabled: no policy "
                     "tag on the instance, its node group or the cluster\",\"reason\":\"repair is "
                     "not enabled");
    assert_has(text, "\"instance\":\"web4\",\"operations\":[],\"policy\":\"suspended, by a tag of "
                     "the instance\",\"reason\":\"repair is suspended");
    assert_has(text, "\"instance\":\"web5\",\"operations\":[\"failover\",\"replace-disks\"]");
    place_clear(&place);
}

static void give_card(struct place *place, guint number, const char *bridge)
{
    g_autofree char *uuid = uuid_of("b0", number);
    json_t *instance = config_object_json(place->config, "instance", uuid);
    json_object_set_new(instance, "nics",
                        json_make("[{ss ss ss ss}]", "uuid", UUID("e0", "001"), "mac",
                                  "aa:00:00:12:34:56", "mode", "bridged", "link", bridge));
    put(place->config, "instance", uuid, instance);
}

/* A replica goes where the guest could run. */
static void test_bridges(void)
{
    struct place place;
    place_init(&place, 4000);
    put_tag(&place, "cluster", UUID("c0", "001"), "reinstall");
    put_instance(&place, 1, "mirror", 2, 1);
    give_card(&place, 1, "br7");
    put_instance(&place, 2, "mirror", 1, 0);
    give_card(&place, 2, "br8");
    for (guint i = 1; i < place.reports->len; i++) { /* 2 and 4 have the one, 4 the other */
        struct node_report *report = place.reports->pdata[i];
        if (i != 2)
            g_ptr_array_add(report->bridges, g_strdup("br7"));
        if (i == 3)
            g_ptr_array_add(report->bridges, g_strdup("br8"));
    }
    g_autofree char *text = ask(&place, "node1", FORECAST_FAIL);
    assert_has(text, "\"instance\":\"web1\",\"operations\":[\"replace-disks\"],\"policy\":"
                     "\"reinstall, by a tag of the cluster\",\"to\":[\"node2\",\"node4\"]");
    assert_has(text,
               "\"instance\":\"web2\",\"left\":\"no node can be a new secondary node: node1 is "
               "offline; node2 has no bridge \\\"br8\\\"; node3 has no bridge \\\"br8\\\"; node4 "
               "is its primary node\",\"operations\":[\"recreate-disks\",\"reinstall\"],"
               "\"policy\":\"reinstall, by a tag of the cluster\",\"to\":[\"node4\"]");
    assert_has(text, "\"blocked\":[]");
    place_clear(&place);
}

/* What a guest is booted from has to be where it goes, if it is to run there. */
static void test_kernels(void)
{
    static const char *const sources[] = {"vmlinuz", "other", "vmlinuz", "other"};
    struct place place;
    place_init(&place, 4000);
    put_tag(&place, "cluster", UUID("c0", "001"), "failover");
    put_instance(&place, 1, "sharedfile", 1, 0);
    put_instance(&place, 2, "mirror", 1, 2);
    put_instance(&place, 3, "mirror", 1, 2); /* is down */
    put_instance(&place, 4, "mirror", 4, 1);
    for (guint i = 1; i <= 4; i++) {
        g_autofree char *uuid = uuid_of("b0", i);
        set(&place, "instance", uuid, "kernel_path", json_string(i == 4 ? "other" : "vmlinuz"));
    }
    set(&place, "instance", UUID("b0", "003"), "admin_state", json_string("down"));
    for (guint i = 0; i < place.reports->len; i++) {
        struct node_report *report = place.reports->pdata[i];
        g_ptr_array_add(report->sources, g_strdup(sources[i]));
        report->sources_whole = true;
        report->memory_free = report->memory_total = i == 2 ? 2000 : 4000;
    }
    g_autofree char *text = ask(&place, "node1", FORECAST_FAIL);
    assert_has(text,
               "\"instance\":\"web1\",\"operations\":[\"failover\"],\"policy\":\"failover, by "
               "a tag of the cluster\",\"to\":[\"node3\"]");
    assert_has(text,
               "\"instance\":\"web2\",\"operations\":[],\"policy\":\"failover, by a tag of the "
               "cluster\",\"reason\":\"it cannot go to node2: it does not have "
               "\\\"vmlinuz\\\" in var/images\"");
    assert_has(text,
               "\"instance\":\"web3\",\"operations\":[\"failover\",\"replace-disks\"],"
               "\"policy\":\"failover, by a tag of the cluster\",\"to\":[\"node2\",\"node3\"]");
    assert_has(text, "\"instance\":\"web4\",\"operations\":[\"replace-disks\"],\"policy\":"
                     "\"failover, by a tag of the cluster\",\"to\":[\"node4\",\"node2\"]");
    place_clear(&place);
}

/* A guest that runs migrates to the same QEMU or a newer one; what is down, or fails over, goes
 * anywhere. */
static void test_versions(void)
{
    static const char *const versions[] = {"99.1.0", "7.2.22", "99.1.0", "7.2.22"};
    struct place place;
    place_init(&place, 4000);
    put_tag(&place, "cluster", UUID("c0", "001"), "failover");
    put_instance(&place, 1, "diskless", 1, 0);
    put_instance(&place, 2, "mirror", 1, 2);
    put_instance(&place, 3, "mirror", 1, 4); /* does not run */
    struct node_report *report = place.reports->pdata[0];
    for (guint i = 1; i <= 2; i++) {
        g_autofree char *uuid = uuid_of("b0", i);
        json_autoptr json =
            json_make("{ss si ss}", "instance", uuid, "generation", 3, "state", "running");
        g_ptr_array_add(report->guests, guest_report_parse(json, RECORD_LAX, NULL));
    }
    for (guint i = 0; i < place.reports->len; i++) {
        report = place.reports->pdata[i];
        report->memory_free = i == 2 ? 2000 : 4000; /* the one that fits has the least */
        report->memory_total = report->memory_free;
        g_free(report->qemu_version);
        report->qemu_version = g_strdup(versions[i]);
    }
    g_autofree char *drained = ask(&place, "node1", FORECAST_DRAIN);
    assert_has(drained,
               "\"instance\":\"web1\",\"operations\":[\"migrate\"],\"policy\":\"failover, by "
               "a tag of the cluster\",\"to\":[\"node3\"]");
    assert_has(drained,
               "\"instance\":\"web2\",\"operations\":[],\"policy\":\"failover, by a tag of "
               "the cluster\",\"reason\":\"it cannot go to node2: it has QEMU 7.2.22, and "
               "the guest runs under 99.1.0, which is newer\"");
    assert_has(drained, "\"instance\":\"web3\",\"operations\":[\"migrate\",\"replace-disks\"]");
    g_autofree char *lost = ask(&place, "node1", FORECAST_FAIL);
    assert_has(lost, "\"blocked\":[]");
    place_clear(&place);
}

/* Those that come first take the room. */
static void test_no_room(void)
{
    struct place place;
    place_init(&place, 250); /* two guests for each node */
    put_tag(&place, "cluster", UUID("c0", "001"), "failover");
    for (guint i = 1; i <= 8; i++)
        put_instance(&place, i, "diskless", i <= 2 ? 1 : 2 + i % 3, 0);
    for (guint i = 0; i < place.reports->len; i++) {
        struct node_report *report = place.reports->pdata[i];
        report->memory_free = 9000;
    }
    g_autofree char *text = ask(&place, "node1", FORECAST_FAIL);
    assert_has(text, "\"moves\":[]");
    assert_has(text, "\"instance\":\"web1\"");
    assert_has(text, "no node can be its new primary node: node1 is its primary node now; node2 "
                     "has 50 MiB of memory left, 100 MiB are needed");
    place_clear(&place);
    place_init(&place, 350); /* one more for each */
    put_tag(&place, "cluster", UUID("c0", "001"), "failover");
    for (guint i = 1; i <= 12; i++)
        put_instance(&place, i, "diskless", i <= 4 ? 1 : 2 + i % 3, 0);
    g_autofree char *some = ask(&place, "node1", FORECAST_FAIL);
    json_autoptr answer = json_loads(some, 0, NULL);
    g_assert_cmpuint(json_array_size(json_object_get(answer, "moves")) +
                         json_array_size(json_object_get(answer, "blocked")),
                     ==, 4);
    place_clear(&place);
}

/* Nodes 1 to `count` and the master, node4. */
static void make_candidates(struct place *place, guint count)
{
    set(place, "node", UUID("a0", "004"), "master_candidate", json_true());
    for (guint i = 1; i <= count; i++) {
        g_autofree char *uuid = uuid_of("a0", i);
        set(place, "node", uuid, "master_candidate", json_true());
    }
}

#define AWAY                                                                                       \
    "\"notes\":[\"node4 is the master. While there is none no job runs and nobody repairs "        \
    "anything, on no node: guests elsewhere run on, but one that ends is not started again, and "  \
    "one that loses its replica writes nothing until a master has put that on record.\",\"What "   \
    "to "                                                                                          \
    "do: bring node4 back, with its disk"

/* Without a master, and with nobody who could be, nobody does anything, here and elsewhere. */
static void test_fail_of_the_master(void)
{
    struct place place;
    place_init(&place, 4000);
    put_tag(&place, "cluster", UUID("c0", "001"), "reinstall");
    put_instance(&place, 1, "mirror", 4, 2);
    put_instance(&place, 2, "mirror", 3, 4);
    put_instance(&place, 3, "sharedfile", 4, 0);
    put_instance(&place, 4, "mirror", 1, 4);
    put_instance(&place, 5, "mirror", 2, 3); /* has nothing to do with it */
    set(&place, "instance", UUID("b0", "004"), "holder", json_string(""));
    g_autofree char *text = ask(&place, "node4", FORECAST_FAIL);
    assert_has(text, "\"moves\":[]");
    assert_has(text, "{\"from\":[\"node4\",\"node2\"],\"instance\":\"web1\",\"operations\":[],"
                     "\"policy\":\"reinstall, by a tag of the cluster\",\"reason\":\"it is down "
                     "until its node, the master, is back\",\"type\":\"failover\"}");
    assert_has(text, "\"instance\":\"web2\",\"operations\":[],\"policy\":\"reinstall, by a tag of "
                     "the cluster\",\"reason\":\"it runs, but what it writes waits until the "
                     "master, which has its replica, is back\",\"type\":\"fix-storage\"}");
    assert_has(text, "\"instance\":\"web3\"");
    assert_has(text, "\"instance\":\"web4\",\"operations\":[],\"policy\":\"reinstall, by a tag of "
                     "the cluster\",\"reason\":\"it stays as it is: the master, which would do "
                     "something about it, is away\"");
    g_assert_null(strstr(text, "web5"));
    assert_has(text, AWAY "; no other node has a copy of the configuration. Then it starts its own "
                          "guests again, and the repair of all others goes on by itself. So that "
                          "another node can take its place, have another candidate before: fettle "
                          "node modify NODE --master-candidate yes.\"]");
    g_autofree char *drained = ask(&place, "node4", FORECAST_DRAIN); /* it can do that itself */
    assert_has(drained, "\"instance\":\"web1\",\"operations\":[\"migrate\"");
    assert_has(drained, "\"notes\":[]");
    place_clear(&place);
}

/* With the engine sqlite it takes a person to make a candidate the master. */
static void test_fail_of_the_master_by_word(void)
{
    struct place place;
    place_init(&place, 4000);
    make_candidates(&place, 1);
    put_tag(&place, "cluster", UUID("c0", "001"), "reinstall");
    put_instance(&place, 1, "mirror", 4, 2);
    put_instance(&place, 2, "mirror", 3, 4);
    g_autofree char *text = ask(&place, "node4", FORECAST_FAIL);
    assert_has(text, "\"moves\":[]");
    assert_has(text, "\"reason\":\"it is down until its node, the master, is back, or you make "
                     "another node the master and say that this one is dead\",");
    assert_has(text, "\"reason\":\"it runs, but what it writes waits until the master, which has "
                     "its replica, is back, or you make another node the master\",");
    assert_has(text,
               AWAY ": it starts its own guests again, and the repair of all others goes on "
                    "by itself. If it is gone for longer, power it off and make another "
                    "candidate the master, on that one: fettle cluster master-failover "
                    "--alone --statement \\\"…\\\", as those that are left are no majority of "
                    "the candidates. Then say that node4 is dead: fettle node modify node4 "
                    "--offline yes --statement \\\"…\\\".\"]");
    set(&place, "node", UUID("a0", "002"), "master_candidate", json_true());
    g_autofree char *two = ask(&place, "node4", FORECAST_FAIL);
    assert_has(two, "on that one: fettle cluster master-failover. Then say that node4 is dead");
    /* One that is on record as offline is not asked, so two of three are a majority. */
    set(&place, "node", UUID("a0", "003"), "master_candidate", json_true());
    set(&place, "node", UUID("a0", "003"), "offline", json_true());
    g_autofree char *three = ask(&place, "node4", FORECAST_FAIL);
    assert_has(three, "on that one: fettle cluster master-failover. Then say that node4 is dead");
    set(&place, "node", UUID("a0", "003"), "master_candidate", json_false());
    set(&place, "node", UUID("a0", "003"), "offline", json_false());
    set(&place, "node", UUID("a0", "002"), "master_candidate", json_false());
    /* The only other one is offline: there is nobody. */
    set(&place, "node", UUID("a0", "001"), "offline", json_true());
    g_autofree char *alone = ask(&place, "node4", FORECAST_FAIL);
    assert_has(alone, AWAY "; no other node has a copy of the configuration.");
    place_clear(&place);
}

/* With etcd the next master does what is listed, if a majority of the members is left. */
static void test_fail_of_the_master_by_itself(void)
{
    struct place place;
    place_init(&place, 4000);
    make_candidates(&place, 2);
    set(&place, "cluster", UUID("c0", "001"), "engine", json_string("etcd"));
    put_tag(&place, "cluster", UUID("c0", "001"), "reinstall");
    put_instance(&place, 1, "mirror", 4, 2);
    g_autofree char *text = ask(&place, "node4", FORECAST_FAIL);
    assert_has(text, "\"blocked\":[]");
    assert_has(text, "{\"from\":[\"node4\",\"node2\"],\"instance\":\"web1\",\"operations\":["
                     "\"failover\",");
    assert_has(text, "\"notes\":[\"node4 is the master. The other candidates choose the next one, "
                     "within seconds; jobs that run end with an error, waiting ones go on. That "
                     "master does what is listed here once you say that node4 is dead.\"]");
    set(&place, "node", UUID("a0", "001"), "offline", json_true());
    g_autofree char *minority = ask(&place, "node4", FORECAST_FAIL);
    assert_has(minority, "\"moves\":[]");
    assert_has(minority, "\"reason\":\"it is down until its node, the master, is back\",");
    assert_has(minority, AWAY "; no majority of the members of etcd is left without it, so nobody "
                              "becomes the master. Then it starts its own guests again, and the "
                              "repair of all others goes on by itself. So that another node can "
                              "take its place, have three candidates that run before: fettle node "
                              "modify NODE --master-candidate yes.\"]");
    place_clear(&place);
}

/* What nodes say of their daemons and copies counts, not only what is on record of them. */
static void say(struct place *place, guint node, const char *service, const char *state,
                guint64 copy_history)
{
    struct node_report *report = place->reports->pdata[node - 1];
    struct service_report *line = service_report_new();
    text_set(&line->name, service);
    line->state = (enum service_state)enum_parse(&service_state_words, state);
    g_ptr_array_add(report->services, line);
    report->faults_known = true;
    report->copy_history = copy_history;
}

/* It is a candidate, and may have its copy: that it does not show it is another thing than having
 * none. */
#define LAME                                                                                       \
    "; no other candidate (node1) shows a whole copy of the configuration now; what is wrong "     \
    "with "                                                                                        \
    "them: fettle cluster verify. Then it starts its own guests again, and the repair of all "     \
    "others goes on by itself. So that another node can take its place, mend one of those before."

static void test_who_is_left(void)
{
    struct place place;
    place_init(&place, 4000);
    make_candidates(&place, 1);
    put_tag(&place, "cluster", UUID("c0", "001"), "failover");
    put_instance(&place, 1, "diskless", 4, 0);
    say(&place, 1, "wconfd", "running", 0); /* it has no copy yet */
    g_autofree char *empty = ask(&place, "node4", FORECAST_FAIL);
    assert_has(empty, AWAY LAME);
    assert_has(empty, "\"held\":true");
    g_ptr_array_set_size(((struct node_report *)place.reports->pdata[0])->services, 0);
    say(&place, 1, "wconfd", "stopped", 1);
    g_autofree char *down = ask(&place, "node4", FORECAST_FAIL);
    assert_has(down, AWAY LAME);
    g_ptr_array_set_size(((struct node_report *)place.reports->pdata[0])->services, 0);
    say(&place, 1, "wconfd", "running", 1);
    g_autofree char *well = ask(&place, "node4", FORECAST_FAIL);
    assert_has(well, "make another candidate the master");
    place_clear(&place);
}

/* One of three members is away already: with a second one, whoever it is, nothing can be changed.
 */
static void test_fail_of_a_member(void)
{
    struct place place;
    place_init(&place, 4000);
    make_candidates(&place, 2);
    set(&place, "cluster", UUID("c0", "001"), "engine", json_string("etcd"));
    put_tag(&place, "cluster", UUID("c0", "001"), "failover");
    put_instance(&place, 1, "diskless", 2, 0);
    say(&place, 1, "etcd", "restarting", 1);
    g_autofree char *text = ask(&place, "node2", FORECAST_FAIL);
    assert_has(text, "\"held\":true,\"moves\":[],\"node\":\"node2\",\"notes\":[\"Without node2 no "
                     "majority of etcd's members is left: nothing can be changed, and nobody "
                     "repairs anything, on no node, until more of them are back. How they are: "
                     "fettle cluster engine status.\"]");
    assert_has(text, "\"reason\":\"nothing can be put on record without a majority of etcd's "
                     "members, so it stays as it is until there is one again\"");
    g_autofree char *master = ask(&place, "node4", FORECAST_FAIL);
    assert_has(master, "no majority of the members of etcd is left without it");
    g_autofree char *other = ask(&place, "node3", FORECAST_FAIL); /* no member */
    assert_has(other, "\"held\":false");
    place_clear(&place);
}

/* What a person has switched off holds everything up. */
static void test_held(void)
{
    struct place place;
    place_init(&place, 4000);
    put_tag(&place, "cluster", UUID("c0", "001"), "failover");
    put_instance(&place, 1, "diskless", 2, 0);
    put(place.config, "switches", "switches",
        json_make("{sb si}", "drained", 1, "watcher_paused_until", NOW + 60));
    g_autofree char *text = ask(&place, "node2", FORECAST_FAIL);
    assert_has(text, "\"held\":true,\"moves\":[{");
    assert_has(text, "\"notes\":[\"The watcher is paused until 2023-11-14 22:14:20 UTC, and does "
                     "nothing before; to end that: fettle queue pause-watcher 0.\",\"The queue is "
                     "drained: no job is taken, none of auto-repair either, until: fettle queue "
                     "undrain.\"]");
    place_clear(&place);
}

static void test_notes(void)
{
    struct place place;
    place_init(&place, 4000);
    put(place.config, "repair_brake", "cluster",
        json_make("{si ss}", "since", 5, "why", "2 of 3 nodes were lost."));
    json_t *cluster = config_object_json(place.config, "cluster", UUID("c0", "001"));
    json_object_set_new(cluster, "repair_shadow", json_true());
    put(place.config, "cluster", UUID("c0", "001"), cluster);
    g_autofree char *text = ask(&place, "node1", FORECAST_FAIL);
    assert_has(text, "The storm brake is on, nothing is done until a person says: fettle repair "
                     "continue. 2 of 3 nodes were lost.");
    assert_has(text, "Shadow mode is on");
    place_clear(&place);
}

/* Two of three that could take it are away: it comes up on the last one, and its replica waits. */
static void test_one_left(void)
{
    struct place place;
    place_init(&place, 4000);
    put_tag(&place, "cluster", UUID("c0", "001"), "reinstall");
    put_instance(&place, 1, "mirror", 1, 2);
    set(&place, "node", UUID("a0", "002"), "offline", json_true());
    set(&place, "node", UUID("a0", "003"), "offline", json_true());
    g_autofree char *text = ask(&place, "node1", FORECAST_FAIL);
    assert_has(
        text, "\"left\":\"no node can be a new secondary node: node1 is offline; node2 is offline; "
              "node3 is offline; node4 is its primary node\",\"operations\":[\"recreate-disks\","
              "\"reinstall\"],\"policy\":\"reinstall, by a tag of the cluster\",\"to\":["
              "\"node4\"]");
    place_clear(&place);
}

/* What the watcher would do at the third loss of four: by what is offline, or silent, since then;
 * not by what a person has said go on after. */
static void test_storm(void)
{
    static const char wanted[] =
        "This would pull the storm brake: 3 of 4 nodes were lost within 600 s, more than 50 %. "
        "(node1 is offline since 2023-11-14 22:11:40 UTC; node2 does not answer since 2023-11-14 "
        "22:13:20 UTC; node3 is offline since 2023-11-14 22:13:20 UTC.) Nothing of what is listed "
        "here would be done before a person says: fettle repair continue.";
    static const char pull[] = "pull the storm brake";
    struct place place;
    place_init(&place, 4000);
    g_autofree char *alone = ask(&place, "node3", FORECAST_FAIL);
    g_assert_null(strstr(alone, pull));
    set(&place, "node", UUID("a0", "001"), "offline", json_true());
    set(&place, "node", UUID("a0", "001"), "offline_since", json_integer(NOW - 100));
    g_ptr_array_remove_index(place.reports, 1);
    g_autofree char *third = ask(&place, "node3", FORECAST_FAIL);
    assert_has(third, wanted);
    g_autofree char *drained = ask(&place, "node3", FORECAST_DRAIN);
    g_assert_null(strstr(drained, pull));
    g_autofree char *again = ask(&place, "node1", FORECAST_FAIL);
    g_assert_null(strstr(again, pull)); /* it was lost before */
    set(&place, "node", UUID("a0", "002"), "offline", json_true());
    set(&place, "node", UUID("a0", "002"), "offline_since", json_integer(NOW - 100));
    put(place.config, "decision", UUID("e0", "001"),
        json_make("{ss ss ss ss ss ss sI}", "uuid", UUID("e0", "001"), "author", "watcher/brake",
                  "subject_kind", "cluster", "summary", "x", "verdict", "done", "subject",
                  UUID("c0", "001"), "at_us", (json_int_t)(NOW - 50) * G_USEC_PER_SEC));
    g_autofree char *forgiven = ask(&place, "node3", FORECAST_FAIL);
    g_assert_null(strstr(forgiven, pull));
    place_clear(&place);
}

/* --- promises counted once --- */

/* They give the same as counting anew, whatever moves. */
static void test_sums(void)
{
    struct place place;
    place_init(&place, 1000);
    for (guint i = 1; i <= 12; i++)
        put_instance(&place, i, i % 3 == 0 ? "diskless" : "mirror", 1 + i % 4,
                     i % 3 == 0 ? 0 : 1 + (i + 1) % 4);
    struct placement_sums *sums = placement_sums_new(place.config, place.reports);
    for (guint i = 1; i <= 12; i++) {
        g_autofree char *uuid = uuid_of("b0", i);
        const struct instance *instance = config_get(place.config, "instance", uuid, NULL);
        struct placement_need need = {.what = "x", .memory = 650, .disk = 20};
        struct placement_need quick = need;
        g_autoptr(GError) anew = NULL, once = NULL;
        json_t *json = config_object_json(place.config, "instance", uuid);
        quick.sums = sums;
        placement_sums_move(sums, instance, NULL);
        drop(place.config, "instance", uuid);
        const struct node *left = placement_choose(place.config, place.reports, &need, &anew);
        const struct node *right = placement_choose(place.config, place.reports, &quick, &once);
        g_assert_true(left == right);
        g_assert_cmpstr(anew != NULL ? anew->message : "", ==, once != NULL ? once->message : "");
        /* And it comes back on another node, in the record and in the sums. */
        g_autofree char *elsewhere = uuid_of("a0", 1 + (i + 2) % 4);
        json_object_set_new(json, "primary_node", json_string(elsewhere));
        put(place.config, "instance", uuid, json);
        placement_sums_move(sums, NULL, config_get(place.config, "instance", uuid, NULL));
    }
    placement_sums_free(sums);
    place_clear(&place);
}

/* --- the call --- */

static void test_call(void)
{
    struct queue_world *w = queue_world_new(5);
    g_autoptr(GError) error = NULL;
    json_autoptr answer = queue_call(w, "PlanNode", json_make("[s, s]", "node1", "drain"), &error);
    g_assert_no_error(error);
    g_assert_cmpstr(json_string_value(json_object_get(answer, "node")), ==, "node1");
    g_assert_cmpstr(json_string_value(json_object_get(answer, "event")), ==, "drain");
    g_assert_cmpuint(json_array_size(json_object_get(answer, "moves")), ==, 0);
    queue_refuse(w, "PlanNode", json_make("[s, s]", "node1", "explode"), FETTLE_ERROR_WRONG_INPUT,
                 "PlanNode: event: \"explode\" is neither fail nor drain");
    queue_refuse(w, "PlanNode", json_make("[s, s]", "nope", "fail"), FETTLE_ERROR_UNKNOWN_ENTITY,
                 "node \"nope\" does not exist");
    queue_world_free(w);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/plan-node/fail", test_fail);
    g_test_add_func("/plan-node/drain", test_drain);
    g_test_add_func("/plan-node/tags-of-repairs", test_tags_of_repairs);
    g_test_add_func("/plan-node/bridges", test_bridges);
    g_test_add_func("/plan-node/kernels", test_kernels);
    g_test_add_func("/plan-node/versions", test_versions);
    g_test_add_func("/plan-node/no-room", test_no_room);
    g_test_add_func("/plan-node/fail-of-the-master", test_fail_of_the_master);
    g_test_add_func("/plan-node/fail-of-the-master/who-is-left", test_who_is_left);
    g_test_add_func("/plan-node/fail-of-a-member", test_fail_of_a_member);
    g_test_add_func("/plan-node/held", test_held);
    g_test_add_func("/plan-node/fail-of-the-master/by-word", test_fail_of_the_master_by_word);
    g_test_add_func("/plan-node/fail-of-the-master/by-itself", test_fail_of_the_master_by_itself);
    g_test_add_func("/plan-node/notes", test_notes);
    g_test_add_func("/plan-node/one-left", test_one_left);
    g_test_add_func("/plan-node/storm", test_storm);
    g_test_add_func("/plan-node/sums", test_sums);
    g_test_add_func("/plan-node/call", test_call);
    return g_test_run();
}
