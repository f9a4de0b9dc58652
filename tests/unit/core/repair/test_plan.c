/* Which repair is allowed on an instance, and which operation comes first: the tables of the
 * requirements. */
#include "core/repair/plan.h"
#include "core/repair/policy.h"

#define P "ganeti:watcher:autorepair:"
#define CLUSTER "00000000-0000-4000-8000-0000000000c1"
#define GROUP "00000000-0000-4000-8000-0000000000a1"
#define OTHER_GROUP "00000000-0000-4000-8000-0000000000a2"
#define NODE1 "00000000-0000-4000-8000-000000000001"
#define NODE2 "00000000-0000-4000-8000-000000000002"
#define NODE3 "00000000-0000-4000-8000-000000000003"
#define WEB "00000000-0000-4000-8000-0000000000b1"
#define REPLICA "00000000-0000-4000-8000-0000000000d1"
#define NOW 1700000000
#define TRIAL "cannot write to its disks: Input/output error"
#define ANSWERED "has answered its guest with I/O errors from disk 0"
#define UNWRITTEN "cannot write its state: var: Read-only file system"

static void put(struct config *config, const char *kind, const char *key, json_t *object)
{
    g_autoptr(GError) error = NULL;
    record_autoptr(change) change = config_put(config, kind, key, object);
    change->version = 1;
    config_apply(config, change, &error);
    g_assert_no_error(error);
}

static void put_node(struct config *config, const char *uuid, const char *name, const char *group,
                     const char *state)
{
    put(config, "node", uuid,
        json_make("{ss ss ss ss sb sb}", "uuid", uuid, "name", name, "primary_ip", "10.0.0.1",
                  "group", group, "offline", g_str_equal(state, "offline"), "drained",
                  g_str_equal(state, "drained")));
}

static void put_instance(struct config *config, const char *disk_template,
                         const char *replica_state)
{
    put(config, "instance", WEB,
        json_make("{ss ss ss s[{ss si}{ss si}] si ss ss ss si ss}", "uuid", WEB, "name", "web1",
                  "disk_template", disk_template, "disks", "uuid", NODE1, "size", 8, "uuid", NODE2,
                  "size", 8, "memory", 4, "primary_node", NODE1, "secondary_node",
                  replica_state != NULL ? NODE2 : "", "replica",
                  replica_state != NULL ? REPLICA : "", "generation", 3, "holder", NODE1));
    if (replica_state != NULL)
        put(config, "replica", REPLICA,
            json_make("{ss ss ss si si ss}", "uuid", REPLICA, "instance", WEB, "node", NODE2,
                      "generation", 3, "sync", 7, "state", replica_state));
}

static struct config *make_config(const char *primary, const char *secondary,
                                  const char *disk_template, const char *replica_state)
{
    struct config *config = config_new();
    put(config, "cluster", CLUSTER,
        json_make("{ss ss ss}", "uuid", CLUSTER, "name", "c", "master_node", NODE3));
    put(config, "nodegroup", GROUP, json_make("{ss ss}", "uuid", GROUP, "name", "default"));
    put_node(config, NODE1, "node1", GROUP, primary);
    put_node(config, NODE2, "node2", OTHER_GROUP, secondary);
    put_node(config, NODE3, "node3", GROUP, "online");
    put_instance(config, disk_template, replica_state);
    return config;
}

static void put_tag(struct config *config, enum tag_kind kind, const char *object, const char *text)
{
    g_autofree char *key = config_tag_key(kind, object, text);
    put(config, "tag", key,
        json_make("{ss ss ss}", "kind", enum_word(&tag_kind_words, (int)kind), "object", object,
                  "tag", text));
}

static struct repair_policy policy(const struct config *config, gint64 now)
{
    return repair_policy_of(config, config_get(config, "instance", WEB, NULL), now);
}

/* --- policy --- */

static void test_policy_each_object(void)
{
    const struct {
        enum tag_kind kind;
        const char *object;
        bool counts;
    } rows[] = {
        {TAG_INSTANCE, WEB, true},    {TAG_NODEGROUP, GROUP, true},
        {TAG_CLUSTER, CLUSTER, true}, {TAG_NODEGROUP, OTHER_GROUP, false},
        {TAG_NODE, NODE1, false},
    };
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        struct config *config = make_config("online", "online", "mirror", "in-sync");
        g_assert_cmpint(policy(config, NOW).kind, ==, REPAIR_POLICY_ABSENT);
        put_tag(config, rows[i].kind, rows[i].object, P "failover");
        struct repair_policy found = policy(config, NOW);
        g_assert_cmpint(found.kind, ==,
                        rows[i].counts ? REPAIR_POLICY_ENABLED : REPAIR_POLICY_ABSENT);
        if (rows[i].counts)
            g_assert_cmpint((int)found.type, ==, REPAIR_FAILOVER);
        config_free(config);
    }
}

static void test_policy_least_and_nearest(void)
{
    struct config *config = make_config("online", "online", "mirror", "in-sync");
    put_tag(config, TAG_CLUSTER, CLUSTER, P "reinstall");
    put_tag(config, TAG_CLUSTER, CLUSTER, P "fix-storage");
    g_assert_cmpint((int)policy(config, NOW).type, ==, REPAIR_FIX_STORAGE);
    put_tag(config, TAG_INSTANCE, WEB, P "failover");
    g_assert_cmpint((int)policy(config, NOW).type, ==, REPAIR_FAILOVER);
    g_assert_cmpstr(policy(config, NOW).text, ==, "failover, by a tag of the instance");
    config_free(config);
}

static void test_policy_unknown_word(void)
{
    struct config *config = make_config("online", "online", "mirror", "in-sync");
    put_tag(config, TAG_INSTANCE, WEB, P "reboot");
    g_assert_cmpint(policy(config, NOW).kind, ==, REPAIR_POLICY_ABSENT);
    config_free(config);
}

static void test_policy_suspend_ends(void)
{
    struct config *config = make_config("online", "online", "mirror", "in-sync");
    put_tag(config, TAG_CLUSTER, CLUSTER, P "failover");
    put_tag(config, TAG_INSTANCE, WEB, P "reinstall");
    g_autofree char *early = g_strdup_printf(P "suspend:%d", NOW + 10);
    g_autofree char *late = g_strdup_printf(P "suspend:%d", NOW + 100);
    put_tag(config, TAG_INSTANCE, WEB, early);
    put_tag(config, TAG_INSTANCE, WEB, late);
    g_assert_cmpint(policy(config, NOW).kind, ==, REPAIR_POLICY_SUSPENDED);
    g_assert_cmpint(policy(config, NOW).until, ==, NOW + 100);
    g_assert_cmpint(policy(config, NOW + 50).kind, ==, REPAIR_POLICY_SUSPENDED);
    g_assert_cmpint(policy(config, NOW + 50).until, ==, NOW + 100);
    g_assert_cmpint(policy(config, NOW + 100).kind, ==, REPAIR_POLICY_ENABLED);
    g_assert_cmpint((int)policy(config, NOW + 100).type, ==, REPAIR_REINSTALL);
    config_free(config);
}

static void test_policy_suspend_wins_on_its_object(void)
{
    struct config *config = make_config("online", "online", "mirror", "in-sync");
    put_tag(config, TAG_CLUSTER, CLUSTER, P "suspend");
    put_tag(config, TAG_CLUSTER, CLUSTER, P "failover");
    g_autofree char *past = g_strdup_printf(P "suspend:%d", NOW - 5);
    put_tag(config, TAG_CLUSTER, CLUSTER, past);
    g_assert_cmpint(policy(config, NOW).kind, ==, REPAIR_POLICY_SUSPENDED);
    g_assert_true(policy(config, NOW).forever);
    /* Enabled again nearer by. */
    put_tag(config, TAG_NODEGROUP, GROUP, P "failover");
    g_assert_cmpint(policy(config, NOW).kind, ==, REPAIR_POLICY_ENABLED);
    put_tag(config, TAG_INSTANCE, WEB, P "suspend:never");
    g_assert_cmpint(policy(config, NOW).kind, ==, REPAIR_POLICY_SUSPENDED);
    config_free(config);
}

/* --- plan --- */

/* The table A-14, row by row as it stands there: primary, secondary, then the first operation and
 * the type that finishing needs, of mirror, shared and local. */
#define NONE                                                                                       \
    {                                                                                              \
        REPAIR_STEP_NONE, REPAIR_FIX_STORAGE                                                       \
    }
#define REPLACE(needed)                                                                            \
    {                                                                                              \
        REPAIR_STEP_REPLACE_DISKS, REPAIR_##needed                                                 \
    }
#define MIGRATE                                                                                    \
    {                                                                                              \
        REPAIR_STEP_MIGRATE, REPAIR_MIGRATE                                                        \
    }
#define FAILOVER                                                                                   \
    {                                                                                              \
        REPAIR_STEP_FAILOVER, REPAIR_FAILOVER                                                      \
    }
#define REINSTALL                                                                                  \
    {                                                                                              \
        REPAIR_STEP_REINSTALL, REPAIR_REINSTALL                                                    \
    }

struct operation {
    enum repair_step step;
    enum repair_type needed;
};

static const struct table_row {
    const char *primary, *secondary;
    struct operation mirror, shared, local;
} table[] = {
    {"online", "online", NONE, NONE, NONE},
    {"online", "drained", REPLACE(FIX_STORAGE), NONE, NONE},
    {"online", "offline", REPLACE(FIX_STORAGE), NONE, NONE},
    {"drained", "online", MIGRATE, MIGRATE, NONE},
    {"drained", "drained", REPLACE(MIGRATE), MIGRATE, NONE},
    {"drained", "offline", REPLACE(MIGRATE), MIGRATE, NONE},
    {"offline", "online", FAILOVER, FAILOVER, REINSTALL},
    {"offline", "drained", FAILOVER, FAILOVER, REINSTALL},
    {"offline", "offline", REINSTALL, FAILOVER, REINSTALL},
};

static struct repair_plan plan_of(const struct config *config, const struct repair_evidence *sight)
{
    const struct instance *instance = config_get(config, "instance", WEB, NULL);
    const struct repair_evidence nothing = {0};
    return repair_plan_of(
        config, instance,
        *instance->replica ? config_get(config, "replica", instance->replica, NULL) : NULL,
        sight != NULL ? sight : &nothing);
}

static void check_operation(const struct table_row *row, const char *disk_template,
                            const struct operation *expected)
{
    bool mirror = g_str_equal(disk_template, "mirror");
    struct config *config =
        make_config(row->primary, row->secondary, disk_template, mirror ? "in-sync" : NULL);
    struct repair_plan plan = plan_of(config, NULL);
    bool online =
        g_str_equal(row->primary, "online") && (!mirror || g_str_equal(row->secondary, "online"));
    g_test_message("%s: %s, %s", disk_template, row->primary, row->secondary);
    g_assert_cmpint((int)plan.step, ==, (int)expected->step);
    g_assert_cmpint((int)plan.needed, ==, (int)expected->needed);
    g_assert_cmpint(plan.healthy, ==, online);
    g_assert_cmpint(plan.evidence->len > 0, ==, !online);
    /* Where the table has no operation for what is broken, the record says why. */
    g_assert_cmpint(plan.left != NULL, ==, !online && expected->step == REPAIR_STEP_NONE);
    repair_plan_clear(&plan);
    config_free(config);
}

static void test_plan_table(void)
{
    for (guint i = 0; i < G_N_ELEMENTS(table); i++) {
        check_operation(&table[i], "mirror", &table[i].mirror);
        check_operation(&table[i], "sharedfile", &table[i].shared);
        check_operation(&table[i], "diskless", &table[i].shared);
        check_operation(&table[i], "file", &table[i].local);
    }
}

/* A replica that is stale, lost in the middle of a copy or not there counts as offline, and is
 * never promoted. */
static void test_plan_replica_not_in_sync(void)
{
    static const char *const states[] = {"stale", "syncing", NULL};
    const struct {
        const char *primary;
        struct operation expected;
    } rows[] = {
        {"online", REPLACE(FIX_STORAGE)}, {"drained", REPLACE(MIGRATE)}, {"offline", REINSTALL}};
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        for (guint k = 0; k < G_N_ELEMENTS(states); k++) {
            struct config *config = make_config(rows[i].primary, "online", "mirror", states[k]);
            struct repair_plan plan = plan_of(config, NULL);
            g_assert_cmpint((int)plan.step, ==, (int)rows[i].expected.step);
            g_assert_cmpint((int)plan.needed, ==, (int)rows[i].expected.needed);
            g_assert_false(plan.healthy);
            repair_plan_clear(&plan);
            config_free(config);
        }
    }
}

/* Everything that is wrong is evidence, not only what decides. */
static void test_plan_causes(void)
{
    const struct repair_evidence failed = {.primary_failed = TRIAL};
    struct config *config = make_config("drained", "offline", "mirror", "stale");
    struct repair_plan plan = plan_of(config, &failed);
    g_autofree char *causes = repair_plan_causes(&plan);
    g_assert_cmpstr(causes, ==,
                    "primary node node1 is drained; primary node node1 " TRIAL
                    "; secondary node node2 is offline: a person's word, without a statement; its "
                    "replica on node2 is stale");
    g_assert_cmpint((int)plan.step, ==, (int)REPAIR_STEP_REPLACE_DISKS);
    repair_plan_clear(&plan);
    config_free(config);
}

/* A word that its node was answered may be lost, and it cannot say it: a person decides. */
static void test_plan_unheard(void)
{
    static const char *const states[] = {"in-sync", "stale"};
    for (guint i = 0; i < G_N_ELEMENTS(states); i++) {
        struct config *config = make_config("offline", "online", "mirror", states[i]);
        json_t *node = config_object_json(config, "node", NODE1);
        json_object_set_new(node, "unheard_since", json_integer(86400));
        put(config, "node", NODE1, node);
        struct repair_plan plan = plan_of(config, NULL);
        g_autofree char *causes = repair_plan_causes(&plan);
        if (i == 0)
            g_assert_cmpstr(causes, ==,
                            "primary node node1 is offline: a person's word, without a statement; "
                            "node1 has not told what it runs since "
                            "a person's word made the master: what was answered to it from "
                            "1970-01-02 00:00:00 UTC on may be lost, if no copy was in reach then");
        g_assert_cmpint((int)plan.step, ==, i == 0 ? REPAIR_STEP_NONE : REPAIR_STEP_REINSTALL);
        g_assert_cmpstr(plan.left, ==,
                        i == 0 ? "A master that is lost may have put on record that its replica is "
                                 "stale, and its node cannot tell: if that may be promoted all the "
                                 "same, say: fettle instance failover."
                               : NULL);
        repair_plan_clear(&plan);
        config_free(config);
    }
}

/* What the nodes answer: images that are gone, disks that fail. */
static void test_plan_sight(void)
{
    const struct repair_evidence gone = {.replica_broken = true};
    const struct repair_evidence lacks = {.replica_broken = true, .replica_images = 1};
    const struct repair_evidence trial = {.primary_failed = TRIAL},
                                 guest = {.guest_failed = ANSWERED};
    const struct repair_evidence second = {.secondary_failed = TRIAL};
    const struct {
        const char *disk_template;
        const struct repair_evidence *sight;
        struct operation expected;
        bool healthy;
        const char *evidence;
    } rows[] = {
        {"mirror", &gone, REPLACE(FIX_STORAGE), false,
         "node2 answers that it does not have the images of the replica"},
        {"mirror", &lacks, REPLACE(FIX_STORAGE), false,
         "node2 answers that it does not have the image of disk 1 of the replica"},
        {"mirror", &trial, FAILOVER, false, "primary node node1 " TRIAL},
        {"mirror", &guest, FAILOVER, false, "primary node node1 " ANSWERED},
        {"mirror", &second, REPLACE(FIX_STORAGE), false, "secondary node node2 " TRIAL},
        {"file", &trial, NONE, false, "primary node node1 " TRIAL},
        {"file", &guest, NONE, false, "primary node node1 " ANSWERED},
        {"sharedfile", &trial, NONE, true, NULL},
        {"sharedfile", &guest, NONE, false, "primary node node1 " ANSWERED},
        {"diskless", &trial, NONE, true, NULL},
    };
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        bool mirror = g_str_equal(rows[i].disk_template, "mirror");
        struct config *config =
            make_config("online", "online", rows[i].disk_template, mirror ? "in-sync" : NULL);
        struct repair_plan plan = plan_of(config, rows[i].sight);
        g_assert_cmpint((int)plan.step, ==, (int)rows[i].expected.step);
        g_assert_cmpint((int)plan.needed, ==, (int)rows[i].expected.needed);
        g_assert_cmpint(plan.healthy, ==, rows[i].healthy);
        if (rows[i].evidence != NULL)
            g_assert_cmpstr(plan.evidence->pdata[0], ==, rows[i].evidence);
        repair_plan_clear(&plan);
        config_free(config);
    }
}

/* Disks that have failed under the guest, beside every state of its replica: another node's copy, a
 * copy of what they still give, a person; never new disks, and no migration. */
static void test_plan_failed(void)
{
    const struct repair_evidence failed = {.guest_failed = ANSWERED};
    const struct repair_evidence both = {.guest_failed = ANSWERED, .secondary_failed = TRIAL};
    const struct repair_evidence gone = {.guest_failed = ANSWERED, .replica_broken = true};
    const struct {
        const char *primary, *secondary, *replica;
        const struct repair_evidence *sight;
        struct operation expected;
        bool elsewhere, failed;
    } rows[] = {
        {"online", "online", "in-sync", &failed, FAILOVER, false, true},
        {"drained", "online", "in-sync", &failed, FAILOVER, false, true},
        {"online", "drained", "in-sync", &failed, FAILOVER, true, true},
        {"online", "offline", "in-sync", &failed, REPLACE(FAILOVER), false, true},
        {"online", "online", "stale", &failed, REPLACE(FAILOVER), false, true},
        {"online", "online", NULL, &failed, REPLACE(FAILOVER), false, true},
        {"online", "online", "in-sync", &gone, REPLACE(FAILOVER), false, true},
        {"online", "online", "in-sync", &both, {REPAIR_STEP_NONE, REPAIR_FAILOVER}, true, true},
        {"online", "online", "stale", &both, REPLACE(FAILOVER), true, true},
        {"offline", "online", "in-sync", &both, FAILOVER, true, false},
    };
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        struct config *config =
            make_config(rows[i].primary, rows[i].secondary, "mirror", rows[i].replica);
        struct repair_plan plan = plan_of(config, rows[i].sight);
        g_test_message("row %u", i);
        g_assert_cmpint((int)plan.step, ==, (int)rows[i].expected.step);
        g_assert_cmpint((int)plan.needed, ==, (int)rows[i].expected.needed);
        g_assert_cmpint(plan.elsewhere, ==, rows[i].elsewhere);
        g_assert_cmpint(plan.failed, ==, rows[i].failed);
        g_assert_false(plan.healthy);
        g_assert_cmpint(plan.left != NULL, ==, plan.step == REPAIR_STEP_NONE);
        repair_plan_clear(&plan);
        config_free(config);
    }
}

/* Down where nothing can be started, or standing still there: another node's copy, or nobody's. */
static void test_plan_barred(void)
{
    const struct repair_evidence barred = {.primary_barred = UNWRITTEN};
    const struct repair_evidence failed = {.primary_barred = UNWRITTEN, .guest_failed = ANSWERED};
    const struct repair_evidence both = {.primary_barred = UNWRITTEN, .secondary_failed = TRIAL};
    const struct {
        const char *primary, *secondary, *disk_template, *replica;
        const struct repair_evidence *sight;
        struct operation expected;
        bool barred;
    } rows[] = {
        {"online", "online", "mirror", "in-sync", &barred, FAILOVER, true},
        {"online", "drained", "mirror", "in-sync", &barred, FAILOVER, true},
        {"drained", "online", "mirror", "in-sync", &barred, FAILOVER, true},
        {"online", "online", "mirror", "in-sync", &failed, FAILOVER, false},
        {"online", "online", "mirror", "in-sync", &both, {REPAIR_STEP_NONE, REPAIR_FAILOVER}, true},
        {"online", "online", "mirror", "stale", &barred, {REPAIR_STEP_NONE, REPAIR_FAILOVER}, true},
        {"offline", "online", "mirror", "in-sync", &barred, FAILOVER, false},
        {"online", "online", "sharedfile", NULL, &barred, FAILOVER, true},
        {"online", "online", "diskless", NULL, &barred, FAILOVER, true},
        {"online", "online", "file", NULL, &barred, NONE, true},
    };
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        struct config *config =
            make_config(rows[i].primary, rows[i].secondary, rows[i].disk_template, rows[i].replica);
        struct repair_plan plan = plan_of(config, rows[i].sight);
        g_test_message("row %u", i);
        g_assert_cmpint((int)plan.step, ==, (int)rows[i].expected.step);
        g_assert_cmpint((int)plan.needed, ==, (int)rows[i].expected.needed);
        g_assert_cmpint(plan.barred, ==, rows[i].barred);
        g_assert_false(plan.healthy);
        g_assert_cmpint(plan.left != NULL, ==, plan.step == REPAIR_STEP_NONE);
        if (rows[i].barred && g_str_equal(rows[i].primary, "online"))
            g_assert_cmpstr(plan.evidence->pdata[0], ==, "primary node node1 " UNWRITTEN);
        repair_plan_clear(&plan);
        config_free(config);
    }
}

/* An end after which the own images are not known to be whole: the replica is, and nothing else is
 * started. While somebody holds it, after a clean close, or beside a replica that is not in sync
 * there is no such thing. */
static void test_plan_unsound(void)
{
    const struct {
        const char *holder, *sound, *replica;
        bool clean;
        struct operation expected;
        const char *evidence;
    } rows[] = {
        {"", "no", "in-sync", false, FAILOVER,
         "primary node node1 says that its images of it were not whole when it ended"},
        {"", "unknown", "in-sync", false, FAILOVER,
         "primary node node1 does not know whether its images of it are whole"},
        {"", "yes", "in-sync", false, NONE, NULL},
        {"", "unknown", "in-sync", true, NONE, NULL},
        {NODE1, "unknown", "in-sync", false, NONE, NULL},
        {"", "no", "stale", false, REPLACE(FIX_STORAGE), "its replica on node2 is stale"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        struct config *config = make_config("online", "online", "mirror", rows[i].replica);
        json_t *json = config_object_json(config, "instance", WEB);
        json_object_set_new(json, "holder", json_string(rows[i].holder));
        json_object_set_new(json, "sound", json_string(rows[i].sound));
        json_object_set_new(json, "clean", json_boolean(rows[i].clean));
        put(config, "instance", WEB, json);
        struct repair_plan plan = plan_of(config, NULL);
        g_test_message("row %u", i);
        g_assert_cmpint((int)plan.step, ==, (int)rows[i].expected.step);
        g_assert_cmpint(plan.healthy, ==, rows[i].evidence == NULL);
        if (rows[i].evidence != NULL)
            g_assert_cmpstr(plan.evidence->pdata[0], ==, rows[i].evidence);
        repair_plan_clear(&plan);
        config_free(config);
    }
}

/* Every step of every row has a next one, or says why there is none. */
static void test_plan_no_other(void)
{
    static const char *const states[] = {"online", "drained", "offline"};
    static const char *const templates[] = {"mirror", "sharedfile", "diskless", "file"};
    const struct repair_evidence sights[] = {{0},
                                             {.guest_failed = ANSWERED},
                                             {.guest_failed = ANSWERED, .secondary_failed = TRIAL},
                                             {.primary_barred = UNWRITTEN},
                                             {.no_room = true}};
    for (guint i = 0; i < 3 * 3 * 4 * G_N_ELEMENTS(sights); i++) {
        const char *disk_template = templates[i / 9 % 4];
        bool mirror = g_str_equal(disk_template, "mirror");
        struct config *config =
            make_config(states[i % 3], states[i / 3 % 3], disk_template, mirror ? "in-sync" : NULL);
        struct repair_plan plan = plan_of(config, &sights[i / 36]);
        g_autofree char *why =
            repair_plan_no_other(&plan, config_get(config, "instance", WEB, NULL));
        g_assert_cmpint(why == NULL, ==, plan.healthy);
        repair_plan_clear(&plan);
        config_free(config);
    }
}

/* The opcodes of each step; the body of a repetition is the same. */
static void check_opcodes_of(const struct repair_evidence *sight, const char *primary,
                             const char *secondary, const char *disk_template, const char *up,
                             const char *os, const char *expected)
{
    bool mirror = g_str_equal(disk_template, "mirror");
    struct config *config =
        make_config(primary, secondary, disk_template, mirror ? "in-sync" : NULL);
    json_t *json = config_object_json(config, "instance", WEB);
    json_object_set_new(json, "admin_state", json_string(up));
    json_object_set_new(json, "os", json_string(os));
    put(config, "instance", WEB, json);
    struct repair_plan plan = plan_of(config, sight);
    json_autoptr list = repair_plan_opcodes(&plan, config_get(config, "instance", WEB, NULL));
    g_autoptr(GString) text = g_string_new(NULL);
    size_t index;
    json_t *opcode;
    json_array_foreach(list, index, opcode) {
        g_assert_cmpstr(json_string_value(json_object_get(opcode, "instance_name")), ==, "web1");
        json_object_del(opcode, "instance_name");
        g_autofree char *body = json_dumps(opcode, JSON_COMPACT | JSON_SORT_KEYS);
        g_string_append_printf(text, "%s%s", index > 0 ? " " : "", body);
    }
    g_assert_cmpstr(text->str, ==, expected);
    repair_plan_clear(&plan);
    config_free(config);
}

static void check_opcodes(const char *primary, const char *secondary, const char *disk_template,
                          const char *up, const char *os, const char *expected)
{
    check_opcodes_of(NULL, primary, secondary, disk_template, up, os, expected);
}

static void test_plan_opcodes(void)
{
    const struct repair_evidence failed = {.guest_failed = ANSWERED};
    check_opcodes_of(&failed, "online", "online", "mirror", "up", "img",
                     "{\"OP_ID\":\"OP_INSTANCE_FAILOVER\",\"shutdown_timeout\":0}");
    const struct repair_evidence barred = {.primary_barred = UNWRITTEN};
    check_opcodes_of(&barred, "online", "online", "sharedfile", "up", "img",
                     "{\"OP_ID\":\"OP_INSTANCE_FAILOVER\",\"shutdown_timeout\":0}");

    check_opcodes("online", "offline", "mirror", "up", "img",
                  "{\"OP_ID\":\"OP_INSTANCE_REPLACE_DISKS\"}");
    check_opcodes("online", "drained", "mirror", "up", "img",
                  "{\"OP_ID\":\"OP_INSTANCE_REPLACE_DISKS\",\"mode\":\"replace_new_secondary\"}");
    check_opcodes("drained", "online", "mirror", "down", "img",
                  "{\"OP_ID\":\"OP_INSTANCE_MIGRATE\",\"allow_failover\":true}");
    check_opcodes("drained", "online", "sharedfile", "up", "img",
                  "{\"OP_ID\":\"OP_INSTANCE_MIGRATE\",\"allow_failover\":true}");
    check_opcodes("offline", "online", "mirror", "up", "img",
                  "{\"OP_ID\":\"OP_INSTANCE_FAILOVER\"}");
    check_opcodes("offline", "offline", "mirror", "up", "img",
                  "{\"OP_ID\":\"OP_INSTANCE_RECREATE_DISKS\",\"wait_for_sync\":false} "
                  "{\"OP_ID\":\"OP_INSTANCE_REINSTALL\",\"wait_for_sync\":false} "
                  "{\"OP_ID\":\"OP_INSTANCE_STARTUP\"}");
    check_opcodes("offline", "offline", "file", "down", "img",
                  "{\"OP_ID\":\"OP_INSTANCE_RECREATE_DISKS\",\"wait_for_sync\":false} "
                  "{\"OP_ID\":\"OP_INSTANCE_REINSTALL\"}");
    check_opcodes("offline", "online", "file", "up", "",
                  "{\"OP_ID\":\"OP_INSTANCE_RECREATE_DISKS\",\"wait_for_sync\":false} "
                  "{\"OP_ID\":\"OP_INSTANCE_STARTUP\"}");
    check_opcodes("drained", "online", "file", "up", "img", "");
}

/* A copy that runs is waited for; one that nobody carries on is broken. */
static void test_plan_syncing(void)
{
    const struct {
        enum mirror_state mirror;
        bool wait;
    } rows[] = {
        {MIRROR_SYNCING, true}, {MIRROR_READY, true}, {MIRROR_NONE, false}, {MIRROR_LOST, false}};
    struct config *config = make_config("online", "online", "mirror", "syncing");
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        record_autoptr(guest_report) report = guest_report_new();
        report->mirror = rows[i].mirror;
        const struct repair_evidence sight = {.guest = report};
        struct repair_plan plan = plan_of(config, &sight);
        g_assert_false(plan.healthy);
        g_assert_cmpint(plan.wait, ==, rows[i].wait);
        g_assert_cmpint((int)plan.step, ==, REPAIR_STEP_REPLACE_DISKS);
        repair_plan_clear(&plan);
    }
    config_free(config);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/repair-policy/each-object#ARP-06", test_policy_each_object);
    g_test_add_func("/repair-policy/least-and-nearest#ARP-15,ARP-16",
                    test_policy_least_and_nearest);
    g_test_add_func("/repair-policy/unknown-word", test_policy_unknown_word);
    g_test_add_func("/repair-policy/suspend-ends#ARP-24", test_policy_suspend_ends);
    g_test_add_func("/repair-policy/suspend-wins-on-its-object#ARP-23,ARP-25,ARP-26,ARP-27",
                    test_policy_suspend_wins_on_its_object);
    g_test_add_func("/repair-plan/table#ARP-03,ARP-14,ARP-41,ARP-62", test_plan_table);
    g_test_add_func("/repair-plan/replica-not-in-sync#ARP-41,ARP-62",
                    test_plan_replica_not_in_sync);
    g_test_add_func("/repair-plan/causes#ARP-68", test_plan_causes);
    g_test_add_func("/repair-plan/unheard#SAF-09", test_plan_unheard);
    g_test_add_func("/repair-plan/what-nodes-answer#ARP-70", test_plan_sight);
    g_test_add_func("/repair-plan/failed-disks#ARP-70,SAF-25", test_plan_failed);
    g_test_add_func("/repair-plan/node-that-starts-nothing#ARP-70,SAF-92", test_plan_barred);
    g_test_add_func("/repair-plan/unsound-end#SAF-24", test_plan_unsound);
    g_test_add_func("/repair-plan/why-nothing-else#ARP-68", test_plan_no_other);
    g_test_add_func("/repair-plan/opcodes#ARP-62", test_plan_opcodes);
    g_test_add_func("/repair-plan/syncing", test_plan_syncing);
    return g_test_run();
}
