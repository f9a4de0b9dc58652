/* Volumes that are attached to instances, and taken back: what is on record before what, exact
 * refusals, and what jobs that are cut off leave behind. */
#include "unit/core/world/ops_case.h"

#include <string.h>

#define BACKEND "00000000-0000-4000-8000-0000000000f1"
#define DATA1 "00000000-0000-4000-8000-0000000000f2"
#define ATTACHMENT "00000000-0000-4000-8000-0000000000f3"
#define CLIENTS "192.0.2.1:0/17"
#define DATA2 "00000000-0000-4000-8000-0000000000f4"
#define ATTACHMENT2 "00000000-0000-4000-8000-0000000000f5"
#define PATH "/mnt/a/volumes/" DATA1 ".7"
#define WEB_IS "instance web1 g1 up @node1 node1/node2"

static struct ops_world *world;

static void put_backend(const char *node)
{
    ops_put(world, "backend", BACKEND,
            json_make("{ss ss ss ss s[ss]}", "uuid", BACKEND, "name", "dir1", "kind", "dir", "path",
                      "/mnt/a", "nodes", NODE1, node));
}

static json_t *attachment(const char *state, bool leaving)
{
    return json_make("{ss ss si ss si}", "uuid", ATTACHMENT, "instance", WEB, "slot", 30, "state",
                     state, "leaving_us", (int)leaving);
}

/* NULL: free. */
static void put_volume(json_t *attached)
{
    json_t *volume = json_make("{ss ss si ss ss ss}", "uuid", DATA1, "name", "data1", "size", 1,
                               "status", "available", "backend", BACKEND, "data", DATA1 ".7");
    if (attached)
        json_object_set_new(volume, "attachments", json_make("[o]", attached));
    ops_put(world, "volume", DATA1, volume);
}

static void prepare(void)
{
    put_backend(NODE2);
    put_volume(NULL);
}

static const struct volume *data1(void)
{
    return config_get(world->config, "volume", DATA1, NULL);
}

static const struct attachment *attached(void)
{
    return data1()->attachments->len ? data1()->attachments->pdata[0] : NULL;
}

static json_t *attach(void)
{
    return json_make("{ss ss ss}", "OP_ID", "OP_INSTANCE_ATTACH_VOLUME", "volume", "data1",
                     "instance_name", "web1");
}

static json_t *detach(void)
{
    return json_make("{ss ss}", "OP_ID", "OP_INSTANCE_DETACH_VOLUME", "volume", "data1");
}

static const char *run(json_t *opcode)
{
    g_string_truncate(world->trace, 0);
    return ops_run_one(world, opcode);
}

/* --- attach --- */

static void test_attach_running(void)
{
    ops_put_web(world, "in-sync", true);
    g_assert_cmpstr(run(attach()), ==, "null");
    ops_expect(world, "commit volume data1 attaching; " WEB_IS " attaching-volume\n"
                      "node1 volume_attach g1 at 30 " PATH "\n"
                      "commit volume data1 attached; " WEB_IS "\n"
                      "commit job success\n");
    g_assert_cmpstr(attached()->instance, ==, WEB);
    g_assert_cmpstr(attached()->device, ==, "virtio-00000000-0000-4000-8");
    g_assert_cmpuint(attached()->job, ==, 0);
}

/* Its node is told which image of which Ceph it is. */
static void test_attach_pool(void)
{
    ops_put(world, "backend", BACKEND,
            json_make("{ss ss ss ss ss ss s[s]}", "uuid", BACKEND, "name", "ceph1", "kind", "rbd",
                      "pool", "rbd", "conf", "/etc/ceph/ceph.conf", "user", "fettle", "nodes",
                      NODE1));
    ops_put_web(world, "in-sync", true);
    g_assert_cmpstr(run(attach()), ==, "null");
    ops_expect(world, "commit volume data1 attaching; " WEB_IS " attaching-volume\n"
                      "node1 volume_attach g1 at 30 rbd/volumes." DATA1 ".7\n"
                      "commit volume data1 attached; " WEB_IS "\n"
                      "commit job success\n");
}

/* Between the two commits of the job its node says who has it open: that stays on record. */
static void tell_clients(struct ops_world *told, guint number)
{
    json_autoptr volume = volume_to_json(data1());
    json_t *attachments = json_object_get(volume, "attachments");
    if (number != 2)
        return;
    json_object_set_new(json_array_get(attachments, 0), "clients", json_string(CLIENTS));
    ops_set(told, "volume", DATA1, "attachments", json_incref(attachments));
}

static void test_attach_keeps_clients(void)
{
    ops_put_web(world, "in-sync", true);
    world->on_commit = tell_clients;
    g_assert_cmpstr(run(attach()), ==, "null");
    g_assert_cmpint(attached()->state, ==, ATTACHMENT_ATTACHED);
    g_assert_cmpstr(attached()->clients, ==, CLIENTS);
}

static void test_attach_stopped(void)
{
    ops_put_web(world, "in-sync", false);
    g_assert_cmpstr(run(attach()), ==, "null");
    ops_expect(world, "commit volume data1 attached; instance web1 g1 down @- node1/node2 clean\n"
                      "commit job success\n");
}

/* Its node says that it is not there: then it is free again. */
/* What a client has reserved is its own, under the id that it was promised. */
static void test_attach_reserved(void)
{
    ops_put_web(world, "in-sync", true);
    ops_set(world, "volume", DATA1, "reserved", json_string(ATTACHMENT));
    ops_expect_refusal(world, run(attach()),
                       "volume data1 is reserved for an attachment; unreserve it, or reset its "
                       "state to available, first",
                       "wrong_state");
    json_t *promised = attach();
    json_object_set_new(promised, "attachment", json_string(ATTACHMENT));
    g_assert_cmpstr(run(promised), ==, "null");
    g_assert_cmpstr(attached()->uuid, ==, ATTACHMENT);
    g_assert_cmpstr(data1()->reserved, ==, "");
}

static void test_attach_fails(void)
{
    ops_put_web(world, "in-sync", true);
    ops_fail(world, NODE1, "volume_attach", FETTLE_ERROR_HYPERVISOR, "no such file", 1);
    g_assert_nonnull(strstr(run(attach()), "node1: no such file"));
    ops_expect(world, "commit volume data1 attaching; " WEB_IS " attaching-volume\n"
                      "node1 volume_attach g1 at 30 " PATH "\n"
                      "node1 volume_detach g1 at 30 " PATH "\n"
                      "commit volume data1 free; " WEB_IS "\n"
                      "commit job error\n");
}

/* It may be there: whoever says that it is free would have it opened twice. */
static void test_attach_unknown(void)
{
    ops_put_web(world, "in-sync", true);
    world->keeps_volume = true;
    ops_fail(world, NODE1, "volume_attach", FETTLE_ERROR_HYPERVISOR, "late", 1);
    run(attach());
    g_assert_cmpint(attached()->state, ==, ATTACHMENT_ATTACHING);
    g_assert_cmpint(ops_web(world)->task_state, ==, TASK_ATTACHING_VOLUME);
    /* The same again, once recovery has seen to the mark, or before. */
    g_assert_cmpstr(run(attach()), ==, "null");
    g_assert_cmpint(attached()->state, ==, ATTACHMENT_ATTACHED);
    g_assert_cmpint(ops_web(world)->task_state, ==, TASK_NONE);
}

/* A job that died at one volume has left its mark; what is done to another one would end that, and
 * nobody would ever settle the first. */
static void test_mark_of_another(void)
{
    static const struct {
        const char *state, *mark, *word;
    } cases[] = {{"attaching", "attaching-volume", "attaching"},
                 {"detaching", "detaching-volume", "detaching"}};
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *left = g_strdup_printf(
            "volume data2 of instance \"web1\" is %s, and the job that did that has ended; say: "
            "fettle volume detach data2",
            cases[i].word);
        ops_put_web(world, "in-sync", true);
        ops_set(world, "instance", WEB, "task_state", json_string(cases[i].mark));
        ops_set(world, "instance", WEB, "task_owner", json_integer(7));
        json_t *other = attachment(cases[i].state, false);
        json_object_set_new(other, "job", json_integer(7));
        json_object_set_new(other, "uuid", json_string(ATTACHMENT2));
        ops_put(world, "volume", DATA2,
                json_make("{ss ss si ss ss ss s[o]}", "uuid", DATA2, "name", "data2", "size", 1,
                          "status", "available", "backend", BACKEND, "data", DATA2 ".8",
                          "attachments", other));
        json_t *first = attachment("attached", false);
        json_object_set_new(first, "slot", json_integer(29));
        put_volume(first);
        ops_expect_refusal(world, run(detach()), left, "resource_not_available");
        put_volume(NULL);
        if (!i)
            ops_expect_refusal(world, run(attach()), left, "resource_not_available");
        /* The one that it stands for is finished, and then it is the other's turn. */
        json_t *same = detach();
        json_object_set_new(same, "volume", json_string("data2"));
        g_assert_cmpstr(run(same), ==, "null");
        g_assert_cmpint(ops_web(world)->task_state, ==, TASK_NONE);
        g_assert_cmpstr(run(attach()), ==, "null");
    }
}

static void test_refusals(void)
{
    ops_put_web(world, "in-sync", true);
    ops_expect_refusal(world, run(detach()), "volume data1 is not attached to anything",
                       "wrong_state");
    put_volume(attachment("attached", false));
    json_t *of_another = detach();
    json_object_set_new(of_another, "instance_name", json_string("web2"));
    ops_expect_refusal(world, run(of_another), "volume data1 is attached to web1, and not to web2",
                       "wrong_state");
    ops_expect_refusal(world, run(attach()), "volume data1 is attached to web1; detach it first",
                       "wrong_state");
    put_volume(NULL);
    ops_set(world, "volume", DATA1, "status", json_string("error"));
    ops_expect_refusal(world, run(attach()),
                       "volume data1 is error; only an available one can be attached",
                       "wrong_state");
    put_volume(NULL);
    ops_put(world, "backend", BACKEND,
            json_make("{ss ss ss ss s[s]}", "uuid", BACKEND, "name", "dir1", "kind", "dir", "path",
                      "/mnt/a", "nodes", NODE3));
    ops_expect_refusal(world, run(attach()),
                       "node1, where instance \"web1\" is, does not serve back end dir1, where "
                       "volume data1 is",
                       "wrong_state");
    put_backend(NODE2);
}

/* Disks, cards and screen fill the bus from below, volumes from above. */
static void test_no_place(void)
{
    ops_put_web(world, "in-sync", true);
    json_t *cards = json_array(), *disks = json_array();
    for (guint i = 0; i < LIMIT_NICS; i++)
        json_array_append_new(cards,
                              json_make("{ss ss}", "uuid", DATA1, "mac", "aa:00:00:00:00:01"));
    for (guint i = 0; i < LIMIT_DISKS; i++)
        json_array_append_new(disks, json_make("{ss si}", "uuid", DATA1, "size", 8));
    ops_set(world, "instance", WEB, "nics", cards);
    ops_set(world, "instance", WEB, "disks", disks);
    for (guint i = 0; i < 5; i++) {
        g_autofree char *uuid = g_strdup_printf("00000000-0000-4000-8000-0000000001f%u", i);
        json_t *volume = volume_to_json(data1());
        json_object_set_new(volume, "uuid", json_string(uuid));
        json_t *other = attachment("attached", false);
        json_object_set_new(other, "slot", json_integer(30 - i));
        json_object_set_new(volume, "attachments", json_make("[o]", other));
        json_object_set_new(volume, "name", json_string("other"));
        ops_put(world, "volume", uuid, volume);
    }
    ops_expect_refusal(world, run(attach()),
                       "web1 has no free place on its bus: 16 disks, 8 cards and 5 volumes",
                       "insufficient_resources");
}

/* --- detach --- */

static void test_detach_running(void)
{
    ops_put_web(world, "in-sync", true);
    put_volume(attachment("attached", false));
    g_assert_cmpstr(run(detach()), ==, "null");
    ops_expect(world, "commit volume data1 detaching; " WEB_IS " detaching-volume\n"
                      "node1 volume_detach g1 at 30 " PATH "\n"
                      "commit volume data1 free; " WEB_IS "\n"
                      "commit job success\n");
}

static void test_detach_stopped(void)
{
    ops_put_web(world, "in-sync", false);
    put_volume(attachment("attached", false));
    g_assert_cmpstr(run(detach()), ==, "null");
    ops_expect(world, "commit volume data1 free; instance web1 g1 down @- node1/node2 clean\n"
                      "commit job success\n");
}

/* A wish without an owner is left; the volume is nobody else's. */
static void test_leaving(void)
{
    ops_put_web(world, "in-sync", true);
    put_volume(attachment("attached", false));
    world->keeps_volume = true;
    const char *said = run(detach());
    g_assert_nonnull(strstr(said, "the guest of instance \\\"web1\\\" was asked to give volume "
                                  "data1 up, and has not yet"));
    g_assert_nonnull(strstr(said, "resource_not_available"));
    g_assert_cmpint(attached()->state, ==, ATTACHMENT_ATTACHED);
    g_assert_cmpuint(attached()->leaving_us, >, 0);
    g_assert_cmpint(ops_web(world)->task_state, ==, TASK_NONE);
    /* Its node has seen it go meanwhile. */
    world->keeps_volume = false;
    g_assert_cmpstr(run(detach()), ==, "null");
    g_assert_null(attached());
}

static void test_force(void)
{
    ops_put_web(world, "in-sync", true);
    put_volume(attachment("detaching", false));
    json_t *forced = detach();
    json_object_set_new(forced, "force", json_true());
    ops_expect_refusal(world, run(json_incref(forced)),
                       "--force: instance \"web1\" may run on node1; stop it first, or detach "
                       "without --force",
                       "wrong_state");
    ops_node_offline(world, NODE1);
    g_assert_cmpstr(run(forced), ==, "null");
    g_assert_null(attached());
}

/* --- generations --- */

static json_t *power(const char *opcode)
{
    return json_make("{ss ss}", "OP_ID", opcode, "instance_name", "web1");
}

/* What a dead job left half attached the next generation has; what was to go it has not. */
static void test_next_generation(void)
{
    static const struct {
        const char *state;
        bool leaving;
        const char *then;
    } cases[] = {{"attached", false, "attached"},
                 {"attaching", false, "attached"},
                 {"detaching", false, "free"},
                 {"attached", true, "free"}};
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        ops_put_web(world, NULL, false);
        put_volume(attachment(cases[i].state, cases[i].leaving));
        g_assert_cmpstr(run(power("OP_INSTANCE_STARTUP")), ==, "null");
        bool has = !strcmp(cases[i].then, "attached");
        g_assert_cmpint(attached() != NULL, ==, has);
        g_assert_true(!has || attached()->state == ATTACHMENT_ATTACHED);
        g_assert_cmpint(strstr(world->trace->str, "with 1 volume") != NULL, ==, has);
        ops_put_web(world, NULL, true);
        put_volume(attachment(cases[i].state, cases[i].leaving));
        g_assert_cmpstr(run(power("OP_INSTANCE_SHUTDOWN")), ==, "null");
        g_assert_cmpint(attached() != NULL, ==, has);
    }
}

static void test_start_is_served(void)
{
    ops_put_web(world, NULL, false);
    put_volume(attachment("attached", false));
    ops_put(world, "backend", BACKEND,
            json_make("{ss ss ss ss s[s]}", "uuid", BACKEND, "name", "dir1", "kind", "dir", "path",
                      "/mnt/a", "nodes", NODE3));
    g_assert_nonnull(strstr(run(power("OP_INSTANCE_STARTUP")),
                            "node1 does not serve back end dir1, where volumes of instance"));
}

/* Both sides have the same devices, and a node that does not see them is none. */
static void test_migrate(void)
{
    ops_put_web(world, "in-sync", true);
    put_volume(attachment("attached", true));
    g_assert_cmpstr(run(power("OP_INSTANCE_MIGRATE")), ==, "null");
    g_assert_nonnull(strstr(world->trace->str, "node2 incoming_open g1 with 1 volume\n"));
    g_assert_nonnull(
        strstr(world->trace->str, "node2 guest_start g2 mirror no-copy incoming with 1 volume\n"));
    g_assert_cmpuint(attached()->leaving_us, >, 0);
}

static void test_migrate_refused(void)
{
    ops_put_web(world, "in-sync", true);
    put_volume(attachment("detaching", false));
    g_assert_nonnull(strstr(run(power("OP_INSTANCE_MIGRATE")),
                            "volume data1 of instance \\\"web1\\\" is detaching, and the job that "
                            "did that has ended; say: fettle volume detach data1"));
    put_volume(attachment("attached", false));
    put_backend(NODE3);
    g_assert_nonnull(strstr(run(power("OP_INSTANCE_MIGRATE")),
                            "cannot go to node2: it does not serve back end dir1"));
}

/* What is down there could not be started there either. */
static void test_failover_refused(void)
{
    ops_put_web(world, "in-sync", false);
    put_volume(attachment("attached", false));
    put_backend(NODE3);
    g_assert_nonnull(strstr(run(power("OP_INSTANCE_FAILOVER")),
                            "node2 does not serve back end dir1, where volumes of instance"));
    g_assert_cmpstr(ops_web(world)->primary_node, ==, NODE1);
}

/* --- the end of the instance --- */

static const char *remove_web(bool ignore)
{
    json_t *opcode = power("OP_INSTANCE_REMOVE");
    json_object_set_new(opcode, "ignore_failures", json_boolean(ignore));
    return run(opcode);
}

static void test_remove(void)
{
    ops_put_web(world, "in-sync", true);
    put_volume(attachment("attached", false));
    g_assert_cmpstr(remove_web(false), ==, "null");
    g_assert_null(ops_web(world));
    g_assert_null(attached());
}

/* Whoever may have it open has to be heard, or be off on a person's word. */
static void test_remove_silent(void)
{
    static const char *const silent =
        "node1, which may run instance \\\"web1\\\" with its volumes, does not answer; try again, "
        "or if "
        "its power is off: fettle node modify node1 --offline yes --statement";
    ops_put_web(world, "in-sync", true);
    put_volume(attachment("attached", false));
    ops_fail(world, NODE1, "node_report", FETTLE_ERROR_TIMEOUT, "late", 1);
    g_assert_nonnull(strstr(remove_web(true), silent));
    ops_expect(world, "commit job error\n");
    /* It answers, and falls silent later. */
    ops_fail(world, NODE1, "guest_stop", FETTLE_ERROR_TIMEOUT, "late", 9);
    ops_fail(world, NODE1, "disks_remove", FETTLE_ERROR_TIMEOUT, "late", 9);
    g_assert_nonnull(strstr(remove_web(true), "late"));
    g_assert_nonnull(ops_web(world));
    g_assert_nonnull(attached());
    ops_node_offline(world, NODE1);
    g_assert_cmpstr(remove_web(true), ==, "null");
    g_assert_null(ops_web(world));
    g_assert_null(attached());
}

/* --- a job that is cut off --- */

/* At no moment is the volume free while the node may have been asked to open it, and the same again
 * finishes it. */
static void test_cut_off(void)
{
    bool cut = true;
    guint at = 0;
    for (; cut; at++) {
        g_clear_pointer(&world, ops_world_free);
        world = ops_world_new();
        prepare();
        ops_put_web(world, "in-sync", true);
        cut = ops_run_and_kill(world, json_make("[o]", attach()), at);
        bool asked = strstr(world->trace->str, "volume_attach") != NULL;
        g_assert_true(!asked || attached());
        if (!attached() || attached()->state == ATTACHMENT_ATTACHING)
            g_assert_cmpstr(run(attach()), ==, "null");
        g_assert_cmpint(attached()->state, ==, ATTACHMENT_ATTACHED);
        g_assert_cmpint(ops_web(world)->task_state, ==, TASK_NONE);
    }
    g_assert_cmpuint(at, >, 5);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    ops_case("/ops/volume/attach-running#SAF-57", test_attach_running, &world, prepare);
    ops_case("/ops/volume/attach-of-a-pool#SAF-57", test_attach_pool, &world, prepare);
    ops_case("/ops/volume/attach-keeps-who-has-it-open#SAF-58", test_attach_keeps_clients, &world,
             prepare);
    ops_case("/ops/volume/attach-stopped", test_attach_stopped, &world, prepare);
    ops_case("/ops/volume/attach-reserved", test_attach_reserved, &world, prepare);
    ops_case("/ops/volume/attach-fails#SAF-57", test_attach_fails, &world, prepare);
    ops_case("/ops/volume/attach-unknown#SAF-57", test_attach_unknown, &world, prepare);
    ops_case("/ops/volume/mark-of-another#SAF-57", test_mark_of_another, &world, prepare);
    ops_case("/ops/volume/refusals", test_refusals, &world, prepare);
    ops_case("/ops/volume/no-place", test_no_place, &world, prepare);
    ops_case("/ops/volume/detach-running#SAF-57", test_detach_running, &world, prepare);
    ops_case("/ops/volume/detach-stopped", test_detach_stopped, &world, prepare);
    ops_case("/ops/volume/leaving#SAF-124", test_leaving, &world, prepare);
    ops_case("/ops/volume/force", test_force, &world, prepare);
    ops_case("/ops/volume/next-generation#SAF-124", test_next_generation, &world, prepare);
    ops_case("/ops/volume/start-is-served", test_start_is_served, &world, prepare);
    ops_case("/ops/volume/migrate#SAF-124", test_migrate, &world, prepare);
    ops_case("/ops/volume/migrate-refused", test_migrate_refused, &world, prepare);
    ops_case("/ops/volume/failover-refused", test_failover_refused, &world, prepare);
    ops_case("/ops/volume/remove#SAF-57", test_remove, &world, prepare);
    ops_case("/ops/volume/remove-silent#SAF-57", test_remove_silent, &world, prepare);
    ops_case("/ops/volume/cut-off#SAF-57", test_cut_off, &world, prepare);
    return g_test_run();
}
