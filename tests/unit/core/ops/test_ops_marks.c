/* The mark of a dead job, met by every opcode that could be run on its instance: only what finishes
 * or undoes that job's work, or a person's word on whether the guest is to run, takes it away. */
#include "unit/core/world/ops_case.h"

#include <string.h>

static struct ops_world *world;

static const char *const opcodes[] = {"STARTUP",        "SHUTDOWN",       "REBOOT",
                                      "FAILOVER",       "MIGRATE",        "REPLACE_DISKS",
                                      "GROW_DISK",      "ACTIVATE_DISKS", "DEACTIVATE_DISKS",
                                      "RECREATE_DISKS", "REINSTALL",      "SET_PARAMS"};

/* For each opcode: R refuses because of the mark, - for another reason, E ends the mark, K does its
 * own work and keeps it. */
static const struct row {
    const char *mark;
    bool running;
    const char *by; /* what is named to settle it */
    const char *outcomes;
} rows[] = {
    {"starting", true, "shutdown web1", "EERERRRR--RR"},
    {"stopping", true, "shutdown web1", "EERERRRR--RR"},
    {"failing-over", true, "shutdown web1", "EERERRRR--RR"},
    {"replacing-disks", true, "shutdown web1", "EERERERR--RR"},
    {"growing-disk", true, "grow-disk web1 0 1000 --absolute", "EERERRERR-RR"},
    {"starting", false, "shutdown web1", "EERERRRRR-RR"},
    {"growing-disk", false, "grow-disk web1 0 1000 --absolute", "EERERRERR-RR"},
    {"reinstalling", false, "reinstall web1", "RKRKRRRRR-ER"},
};

static const char *run(const char *name)
{
    g_autofree char *id = g_strdup_printf("OP_INSTANCE_%s", name);
    json_t *json = json_make("{ss ss}", "OP_ID", id, "instance_name", "web1");
    if (!strcmp(name, "GROW_DISK"))
        json_object_update_new(json,
                               json_make("{si si sb}", "disk", 0, "amount", 1000, "absolute", 1));
    else if (!strcmp(name, "REPLACE_DISKS"))
        json_object_set_new(json, "mode", json_string("replace_new_secondary"));
    else if (!strcmp(name, "REINSTALL"))
        json_object_set_new(json, "os_type", json_string("debian"));
    else if (!strcmp(name, "SET_PARAMS"))
        json_object_set_new(json, "vnc_bind_address", json_string("127.0.0.1"));
    return ops_run_one(world, json);
}

static void put_marked(const struct row *row)
{
    ops_put_web(world, "in-sync", row->running);
    ops_set(world, "instance", WEB, "task_state", json_string(row->mark));
    ops_set(world, "instance", WEB, "task_owner", json_integer(7));
    ops_set(world, "instance", WEB, "admin_state", json_string("down"));
    world->image_bytes = 1024;
}

static void expect_one(const struct row *row, const char *name, char expected)
{
    put_marked(row);
    enum task_state mark = ops_web(world)->task_state;
    g_autofree char *result = g_strdup(run(name));
    g_autofree char *refusal =
        g_strdup_printf("[\"OpPrereqError\", [\"job 7 ended while %s instance \\\"web1\\\"; that "
                        "is settled first, by itself, or by: fettle instance %s\", "
                        "\"resource_not_available\"]]",
                        row->mark, row->by);
    g_test_message("%s over %s (%s): %s", name, row->mark, row->running ? "runs" : "stopped",
                   result);
    bool refused = expected == 'R' || expected == '-';
    g_assert_cmpint(!strcmp(result, refusal), ==, expected == 'R');
    g_assert_cmpint(strstr(result, "Error") != NULL, ==, refused);
    g_assert_cmpint(ops_web(world)->task_state, ==, expected == 'E' ? TASK_NONE : mark);
    if (refused)
        ops_expect(world, "commit job error\n");
}

static void test_rows(void)
{
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_assert_cmpuint(strlen(rows[i].outcomes), ==, G_N_ELEMENTS(opcodes));
        for (guint k = 0; k < G_N_ELEMENTS(opcodes); k++) {
            ops_world_free(world);
            world = ops_world_new();
            expect_one(&rows[i], opcodes[k], rows[i].outcomes[k]);
        }
    }
}

/* Power has to work, also where a disk cannot be finished: it is said that nobody will. */
static void test_growth_dropped(void)
{
    put_marked(&rows[4]);
    g_assert_cmpstr(run("STARTUP"), ==, "null");
    g_autofree char *log = ops_log(world, 0);
    g_assert_nonnull(strstr(log, "job 7 ended while it made a disk of web1 larger; whether each "
                                 "has the size on record tells, and sees to: fettle instance "
                                 "grow-disk web1 DISK SIZE --absolute\n"));
}

/* An image half written to a shared disk does not start elsewhere either; it waits there to be
 * written anew. */
static void test_half_installed_moves(void)
{
    ops_put_web(world, NULL, false);
    world->image_bytes = 1024;
    ops_set(world, "instance", WEB, "disk_template", json_string("sharedfile"));
    ops_set(world, "instance", WEB, "primary_node", json_string(NODE3));
    ops_set(world, "instance", WEB, "admin_state", json_string("up"));
    ops_set(world, "instance", WEB, "task_state", json_string("reinstalling"));
    ops_set(world, "instance", WEB, "task_owner", json_integer(7));
    ops_node_offline(world, NODE3);
    for (guint i = 0; i < 3; i++)
        world->shared[i] = SHARED;
    g_assert_cmpstr(run("FAILOVER"), ==, "null");
    g_assert_cmpstr(ops_web(world)->primary_node, !=, NODE3);
    g_assert_cmpstr(ops_web(world)->holder, ==, "");
    g_assert_cmpint(ops_web(world)->task_state, ==, TASK_REINSTALLING);
    g_assert_null(strstr(world->trace->str, "guest_start"));
    g_assert_cmpstr(run("REINSTALL"), ==, "null");
    g_assert_cmpint(ops_web(world)->task_state, ==, TASK_NONE);
}

static void add(const char *path, void (*fn)(void))
{
    ops_case(path, fn, &world, NULL);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    add("/marks/rows", test_rows);
    add("/marks/growth-dropped", test_growth_dropped);
    add("/marks/half-installed-moves", test_half_installed_moves);
    return g_test_run();
}
