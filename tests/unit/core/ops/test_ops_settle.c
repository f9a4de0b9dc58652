/* What a job that died while it created or removed an instance has left: every mark with every
 * state of the guest, of the images and of the replica (procedures.md, "Marks of dead jobs"). */
#include "unit/core/world/ops_case.h"

#include <string.h>

static struct ops_world *world;

static const char *settle(void)
{
    return ops_run_one(
        world, json_make("{ss ss}", "OP_ID", "OP_INSTANCE_SETTLE", "instance_name", "web1"));
}

static void put_marked(const char *mark, const char *replica)
{
    ops_put_web(world, replica, true);
    ops_set(world, "instance", WEB, "task_state", json_string(mark));
    ops_set(world, "instance", WEB, "task_owner", json_integer(7));
}

/* --- the table --- */

enum images { WHOLE, PART, NONE, ALL_IMAGES };
enum second { HAS_IT, LACKS_IT, IS_SILENT, IS_OFFLINE, ALL_SECONDS };
enum outcome { KEPT, UNDONE, UNTOUCHED };

static const char *const marks[] = {"creating", "removing"};
static const char *const states[] = {"absent",   "running",  "older",   "paused",
                                     "prepared", "shutdown", "incoming"};
static const char *const replicas[] = {NULL, "syncing", "in-sync"};

struct cell {
    const char *mark, *state, *replica;
    enum images images;
    enum second second;
    bool up; /* the wish on record */
};

static bool is(const struct cell *cell, const char *state)
{
    return !strcmp(cell->state, state);
}

static void put_cell(const struct cell *cell)
{
    put_marked(cell->mark, cell->replica);
    ops_set(world, "instance", WEB, "admin_state", json_string(cell->up ? "up" : "down"));
    ops_add_disk(world);
    if (is(cell, "absent"))
        world->guest_node = NULL;
    world->guest_state = is(cell, "older") ? "running" : cell->state;
    world->guest_generation = is(cell, "older") ? 0 : 1;
    if (cell->images == PART)
        world->lost_disk = NODE1;
    if (cell->images == NONE)
        g_ptr_array_add(world->lost, (char *)NODE1);
    if (cell->second == LACKS_IT)
        g_ptr_array_add(world->lost, (char *)NODE2);
    if (cell->second == IS_OFFLINE)
        ops_node_offline(world, NODE2);
    for (guint i = 0; cell->second == IS_SILENT && i < 4; i++) {
        static const char *const methods[] = {"node_report", "disks_remove", "replica_close",
                                              "collect"};
        ops_fail(world, NODE2, methods[i], FETTLE_ERROR_UNREACHABLE, "gone", 100000);
    }
}

static enum outcome expected(const struct cell *cell)
{
    bool promised = !g_strcmp0(cell->replica, "in-sync");
    bool answers = cell->second == HAS_IT || cell->second == LACKS_IT;
    if (is(cell, "older") || is(cell, "incoming"))
        return UNTOUCHED;
    /* What the dead removal may have asked of it might come after all (SAF-81). */
    if (cell->replica && cell->second == IS_SILENT && !strcmp(cell->mark, "removing"))
        return UNTOUCHED;
    if (!is(cell, "absent") || cell->images == WHOLE)
        return KEPT;
    if (promised && answers)
        return cell->second == HAS_IT ? KEPT : UNDONE;
    if (promised)
        return UNTOUCHED;
    return cell->replica && cell->second == IS_SILENT ? UNTOUCHED : UNDONE;
}

static void expect_kept(const struct cell *cell)
{
    const struct instance *web = ops_web(world);
    const struct replica *replica = config_get(world->config, "replica", REPLICA, NULL);
    bool runs = is(cell, "running");
    bool closed = !runs && (!cell->up || is(cell, "prepared"));
    g_assert_cmpint(web->task_state, ==, TASK_NONE);
    g_assert_cmpuint(web->task_owner, ==, 0);
    g_assert_cmpint(web->admin_state, ==, runs || cell->up ? ADMIN_UP : ADMIN_DOWN);
    g_assert_cmpstr(web->holder, ==, closed ? "" : NODE1);
    g_assert_cmpuint(web->generation, ==, closed ? 2 : 1);
    g_assert_null(strstr(world->trace->str, "disks_remove"));
    bool gone =
        cell->second == LACKS_IT || (cell->second != HAS_IT && !strcmp(cell->mark, "removing"));
    if (replica && gone)
        g_assert_cmpint(replica->state, ==, REPLICA_STALE);
    else if (replica && !closed)
        g_assert_cmpstr(enum_word(&replica_state_words, (int)replica->state), ==, cell->replica);
}

static void expect_untouched(const struct cell *cell)
{
    const struct instance *web = ops_web(world);
    g_assert_cmpstr(enum_word(&task_state_words, (int)web->task_state), ==, cell->mark);
    g_assert_cmpuint(web->task_owner, ==, 7);
    g_assert_cmpuint(web->generation, ==, 1);
    g_assert_null(strstr(world->trace->str, "disks_remove"));
    g_assert_null(strstr(world->trace->str, "guest_stop"));
}

static void check_cell(const struct cell *cell)
{
    enum outcome outcome = expected(cell);
    g_test_message("%s: %s, images %d; replica %s, its node %d; wish %s: %d", cell->mark,
                   cell->state, cell->images, cell->replica ? cell->replica : "none", cell->second,
                   cell->up ? "up" : "down", outcome);
    ops_world_free(world);
    world = ops_world_new();
    put_cell(cell);
    const char *result = settle();
    bool fails = outcome == UNTOUCHED;
    g_assert_cmpint(strcmp(result, "null") != 0, ==, fails);
    if (outcome == KEPT)
        expect_kept(cell);
    else if (outcome == UNTOUCHED)
        expect_untouched(cell);
    else
        g_assert_null(ops_web(world));
}

static void check_seconds(struct cell *cell)
{
    for (guint i = 0; i < G_N_ELEMENTS(replicas); i++) {
        cell->replica = replicas[i];
        guint most = cell->replica ? ALL_SECONDS : 1;
        for (guint k = 0; k < most; k++) {
            cell->second = (enum second)k;
            for (guint up = 0; up < 2; up++) {
                cell->up = up == 1;
                check_cell(cell);
            }
        }
    }
}

static void test_table(void)
{
    for (guint i = 0; i < G_N_ELEMENTS(marks); i++)
        for (guint k = 0; k < G_N_ELEMENTS(states); k++)
            for (guint images = 0; images < ALL_IMAGES; images++) {
                struct cell cell = {
                    .mark = marks[i], .state = states[k], .images = (enum images)images};
                check_seconds(&cell);
            }
}

/* --- the rest --- */

/* The issue itself: the guest runs, its first copy is under way. */
static void test_first_copy(void)
{
    put_marked("creating", "syncing");
    g_assert_cmpstr(settle(), ==, "null");
    ops_expect(world, "node1 disks_undo g1\n"
                      "commit instance web1 g1 up @node1 node1/node2\n"
                      "commit job success\n");
}

/* Of a removal that died after the power button nothing is gone; it is closed as it is. */
static void test_removal_after_the_stop(void)
{
    put_marked("removing", "in-sync");
    ops_set(world, "instance", WEB, "admin_state", json_string("down"));
    world->guest_node = NULL;
    g_assert_cmpstr(settle(), ==, "null");
    ops_expect(world,
               "node2 collect job 7\n"
               "node1 collect job 7\n"
               "node1 disks_undo g1\n"
               "commit instance web1 g1 down @node1 node1/node2 removing\n"
               "node1 guest_stop g1\n"
               "node2 replica_close g2\n"
               "commit instance web1 g2 down @- node1/node2 clean removing; replica node2 g2 s4 "
               "in-sync\n"
               "commit instance web1 g2 down @- node1/node2 clean\n"
               "commit job success\n");
}

static void test_half_made(void)
{
    put_marked("creating", "stale");
    ops_set(world, "instance", WEB, "holder", json_string(""));
    world->guest_node = NULL;
    g_ptr_array_add(world->lost, (char *)NODE1);
    g_assert_cmpstr(settle(), ==, "null");
    ops_expect(world, "node1 disks_undo g1\n"
                      "node1 disks_undo g1\n"
                      "node2 disks_remove g1\n"
                      "commit removed web1 g2; delete replica; delete instance\n"
                      "commit job success\n");
}

/* Its primary has only a half of it, and the guest is on another node that may have it. */
static void put_elsewhere(const char *mark, const char *node, const char *state)
{
    ops_world_free(world);
    world = ops_world_new();
    put_marked(mark, "stale");
    g_ptr_array_add(world->lost, (char *)NODE1);
    world->guest_node = node;
    world->guest_state = state;
    if (strcmp(node, NODE3) != 0)
        return;
    ops_set(world, "instance", WEB, "migration", json_string(SHARED));
    ops_set(world, "instance", WEB, "migration_node", json_string(NODE3));
}

/* Of one that any host may have running nothing is removed, nor while one of them is silent. */
static void test_guest_elsewhere(void)
{
    static const char *const nodes[] = {NODE2, NODE3};
    for (guint i = 0; i < G_N_ELEMENTS(marks); i++)
        for (guint k = 0; k < G_N_ELEMENTS(nodes); k++) {
            for (guint s = 1; s < G_N_ELEMENTS(states); s++) {
                const char *state = !strcmp(states[s], "older") ? "migrated" : states[s];
                put_elsewhere(marks[i], nodes[k], state);
                g_test_message("%s: %s on %s", marks[i], state, nodes[k]);
                /* What only waits on the target of its migration is no guest: it is ended. */
                bool waits = !strcmp(state, "incoming") && nodes[k] == nodes[1];
                g_assert_cmpint(strstr(settle(), "has a process of instance") != NULL, ==, !waits);
                g_assert_cmpint(ops_web(world) != NULL, ==, !waits);
                g_assert_cmpint(strstr(world->trace->str, "disks_remove") != NULL, ==, waits);
            }
            put_elsewhere(marks[i], nodes[k], "running");
            world->guest_node = NULL;
            ops_fail(world, nodes[k], "node_report", FETTLE_ERROR_UNREACHABLE, "gone", 100000);
            g_assert_nonnull(strstr(settle(), "OpPrereqError") ?: strstr(settle(), "OpExecError"));
            g_assert_cmpuint(ops_web(world)->task_owner, ==, 7);
            g_assert_null(strstr(world->trace->str, "disks_remove"));
        }
}

/* What was never started, and is held by nobody, needs no close. */
static void test_made_but_not_started(void)
{
    ops_put_web(world, "stale", false);
    ops_set(world, "instance", WEB, "task_state", json_string("creating"));
    ops_set(world, "instance", WEB, "generation", json_integer(0));
    g_assert_cmpstr(settle(), ==, "null");
    ops_expect(world, "node1 disks_undo g0\n"
                      "commit instance web1 g0 down @- node1/node2\n"
                      "commit job success\n");
}

static void test_primary_does_not_answer(void)
{
    static const char *const methods[] = {"node_report", "disks_undo"};
    for (guint i = 0; i < G_N_ELEMENTS(methods); i++) {
        put_marked("removing", "in-sync");
        world->guest_node = NULL;
        ops_fail(world, NODE1, methods[i], FETTLE_ERROR_UNREACHABLE, "gone", 100000);
        g_assert_nonnull(strstr(settle(), "Error"));
        g_assert_cmpint(ops_web(world)->task_state, ==, TASK_REMOVING);
        g_assert_null(strstr(world->trace->str, "disks_remove"));
        ops_world_free(world);
        world = ops_world_new();
    }
    put_marked("creating", "in-sync");
    ops_node_offline(world, NODE1);
    g_assert_nonnull(strstr(settle(), "the primary node of instance \\\"web1\\\", is offline"));
    g_assert_cmpint(ops_web(world)->task_state, ==, TASK_CREATING);
}

/* The mirror writes to an image that nobody will find again. */
static void test_replica_image_missing_under_guest(void)
{
    put_marked("creating", "syncing");
    g_ptr_array_add(world->lost, (char *)NODE2);
    g_assert_cmpstr(settle(), ==, "null");
    ops_expect(world, "node1 disks_undo g1\n"
                      "commit instance web1 g1 up @node1 node1/node2; replica node2 g1 s4 stale\n"
                      "node1 mirror_detach g1\n"
                      "commit job success\n");
}

static void test_other_marks(void)
{
    static const char *const marked[] = {
        "",          "starting",     "stopping",     "failing-over",    "replacing-disks",
        "migrating", "growing-disk", "reinstalling", "recreating-disks"};
    for (guint i = 0; i < G_N_ELEMENTS(marked); i++) {
        put_marked(marked[i], "in-sync");
        ops_expect_refusal(world, settle(),
                           "instance \"web1\" is neither half made nor half removed; nothing is "
                           "to be settled",
                           "wrong_state");
    }
}

/* What the watcher submits for each of the other marks. */
static const struct other {
    const char *mark, *opcode, *field;
} others[] = {{"starting", "STARTUP", NULL},
              {"stopping", "SHUTDOWN", NULL},
              {"failing-over", "STARTUP", NULL},
              {"replacing-disks", "SHUTDOWN", NULL},
              {"migrating", "MIGRATE", "cleanup"},
              {"growing-disk", "GROW_DISK", "absolute"},
              {"growing-disk", "SHUTDOWN", NULL},
              {"reinstalling", "REINSTALL", NULL},
              {"recreating-disks", "RECREATE_DISKS", NULL}};

static void put_other(const struct other *other, bool runs, bool whole)
{
    ops_world_free(world);
    world = ops_world_new();
    put_marked(other->mark, "in-sync");
    ops_set(world, "instance", WEB, "os", json_string("debian"));
    world->image_bytes = 1024;
    if (!strcmp(other->mark, "migrating")) {
        ops_set(world, "instance", WEB, "migration", json_string(SHARED));
        ops_set(world, "instance", WEB, "migration_node", json_string(NODE2));
    }
    if (!runs) {
        world->guest_node = NULL;
        ops_set(world, "instance", WEB, "holder", json_string(""));
    }
    if (!whole)
        g_ptr_array_add(world->lost, (char *)NODE1);
}

/* Whatever is found, the instance stays, and no image goes; and what is half written is never
 * merely said to be well. */
static void test_other_marks_remove_nothing(void)
{
    for (guint i = 0; i < G_N_ELEMENTS(others); i++)
        for (guint found = 0; found < 4; found++) {
            const struct other *other = &others[i];
            put_other(other, found & 1, found & 2);
            g_autofree char *id = g_strdup_printf("OP_INSTANCE_%s", other->opcode);
            json_t *op = json_make("{ss ss}", "OP_ID", id, "instance_name", "web1");
            if (other->field)
                json_object_set_new(op, other->field, json_true());
            if (!g_strcmp0(other->field, "absolute"))
                json_object_update_new(op, json_make("{si si}", "disk", 0, "amount", 1000));
            bool failed = strstr(ops_run_one(world, op), "Error") != NULL;
            const struct instance *web = ops_web(world);
            g_test_message("%s by %s, %s, %s: %s", other->mark, other->opcode,
                           found & 1 ? "runs" : "at rest", found & 2 ? "whole" : "images missing",
                           failed ? "failed" : "done");
            g_assert_nonnull(web);
            g_assert_null(strstr(world->trace->str, "disks_remove"));
            if (failed && !strcmp(other->mark, "reinstalling"))
                g_assert_cmpint(web->task_state, ==, TASK_REINSTALLING);
        }
}

static const char *die_in_removal(const char *mark)
{
    put_marked(mark, "in-sync");
    if (!strcmp(mark, "migrating")) {
        ops_set(world, "instance", WEB, "migration", json_string(SHARED));
        ops_set(world, "instance", WEB, "migration_node", json_string(NODE2));
    }
    ops_fail(world, NODE1, "guest_stop", FETTLE_ERROR_TIMEOUT, "gone", 1000);
    ops_run_one(world, json_make("{ss ss si}", "OP_ID", "OP_INSTANCE_REMOVE", "instance_name",
                                 "web1", "shutdown_timeout", 0));
    g_assert_cmpint(ops_web(world)->task_state, ==, TASK_REMOVING);
    settle();
    return enum_word(&task_state_words, (int)ops_web(world)->task_state);
}

/* A removal that took the place of another dead job's work and died without having removed
 * anything: that work is finished as ever, never merely forgotten (SAF-22). */
static void test_removal_over_a_mark(void)
{
    static const char *const before[] = {"starting",     "stopping",        "failing-over",
                                         "migrating",    "growing-disk",    "replacing-disks",
                                         "reinstalling", "recreating-disks"};
    for (guint i = 0; i < G_N_ELEMENTS(before); i++) {
        ops_world_free(world);
        world = ops_world_new();
        g_assert_cmpstr(die_in_removal(before[i]), ==, before[i]);
        g_assert_cmpint(ops_web(world)->task_over, ==, TASK_NONE);
    }
    ops_world_free(world);
    world = ops_world_new();
    g_assert_cmpstr(die_in_removal("creating"), ==, "");
}

/* The job runs on node 1. */
static void put_on_dead_node3(const char *mark, const char *replica)
{
    ops_world_free(world);
    world = ops_world_new();
    put_marked(mark, replica);
    ops_set(world, "instance", WEB, "primary_node", json_string(NODE3));
    ops_set(world, "instance", WEB, "holder", json_string(NODE3));
    world->guest_node = NULL;
    ops_node_offline(world, NODE3);
}

/* Its replica has everything, and its node is dead: it is moved, not given up. */
static void test_failover_of_a_half(void)
{
    for (guint i = 0; i < G_N_ELEMENTS(marks); i++) {
        put_on_dead_node3(marks[i], "in-sync");
        json_t *op = json_make("{ss ss}", "OP_ID", "OP_INSTANCE_FAILOVER", "instance_name", "web1");
        g_assert_cmpstr(ops_run_one(world, op), ==, "null");
        g_assert_cmpstr(ops_web(world)->primary_node, ==, NODE2);
        g_assert_cmpint(ops_web(world)->task_state, ==, TASK_NONE);
    }
    put_on_dead_node3("creating", "syncing");
    json_t *op = json_make("{ss ss}", "OP_ID", "OP_INSTANCE_FAILOVER", "instance_name", "web1");
    g_assert_nonnull(strstr(ops_run_one(world, op), "job 7 ended while creating instance"));
}

static void add(const char *path, void (*fn)(void))
{
    ops_case(path, fn, &world, NULL);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    add("/settle/table#SAF-23", test_table);
    add("/settle/first-copy#SAF-23", test_first_copy);
    add("/settle/removal-after-the-stop#SAF-23", test_removal_after_the_stop);
    add("/settle/half-made#SAF-23", test_half_made);
    add("/settle/guest-elsewhere#SAF-82,RCV-23", test_guest_elsewhere);
    add("/settle/made-but-not-started#SAF-23", test_made_but_not_started);
    add("/settle/primary-does-not-answer#SAF-23", test_primary_does_not_answer);
    add("/settle/replica-image-missing#SAF-23", test_replica_image_missing_under_guest);
    add("/settle/other-marks#SAF-23", test_other_marks);
    add("/settle/other-marks/remove-nothing#SAF-22,SAF-23", test_other_marks_remove_nothing);
    add("/settle/removal-over-a-mark#SAF-22,SAF-23", test_removal_over_a_mark);
    add("/settle/failover-of-a-half#SAF-23", test_failover_of_a_half);
    return g_test_run();
}
