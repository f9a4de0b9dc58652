/* What is left of a dead job's task when it is in ERROR, is to be finished, or is settled by a
 * person: faults, if_task, OP_RECOVERY_RESET (docs/design/recovery.md). */
#include <string.h>

#include "core/config/fault.h"
#include "core/ops/op.h"
#include "proto/task_table.h"
#include "unit/core/world/ops_case.h"

#define FAULT "instance/" WEB

static struct ops_world *world;

static void begin(bool running)
{
    ops_world_free(world);
    world = ops_world_new();
    ops_put_web(world, "in-sync", running);
    world->image_bytes = 1024;
}

static void put_fault(const char *task)
{
    ops_put(world, "fault", FAULT,
            json_make("{ss ss sI ss ss si si}", "subject_kind", "instance", "subject", WEB, "at_us",
                      (json_int_t)1700000000000000, "message", "nobody knows", "task", task,
                      "owner", 7, "since", 1600000000));
}

static void put_mark(const char *task)
{
    ops_set(world, "instance", WEB, "task_state", json_string(task));
    ops_set(world, "instance", WEB, "task_owner", json_integer(7));
    ops_set(world, "instance", WEB, "task_since", json_integer(1600000000));
}

static const struct fault *fault(void)
{
    return fault_of(world->config, "instance", WEB);
}

static json_t *opcode(const char *id)
{
    json_t *json = json_make("{ss ss}", "OP_ID", id, "instance_name", "web1");
    if (!strcmp(id, "OP_INSTANCE_GROW_DISK"))
        json_object_update_new(json,
                               json_make("{si si sb}", "disk", 0, "amount", 1000, "absolute", 1));
    else if (!strcmp(id, "OP_INSTANCE_REPLACE_DISKS"))
        json_object_set_new(json, "mode", json_string("replace_new_secondary"));
    else if (!strcmp(id, "OP_INSTANCE_REINSTALL"))
        json_object_set_new(json, "os_type", json_string("debian"));
    else if (!strcmp(id, "OP_INSTANCE_SET_PARAMS"))
        json_object_set_new(json, "vnc_bind_address", json_string("127.0.0.1"));
    return json;
}

/* --- a fault keeps in force what its task forbade --- */

static bool acts_on_one(const struct opcode *row)
{
    const struct op_impl *impl = op_impl_find(row->id);
    return impl && impl->sees == SEES_NAMED && g_str_has_prefix(row->id, "OP_INSTANCE_") &&
           record_field(row->params, "instance_name") && strcmp(row->id, "OP_INSTANCE_CREATE") != 0;
}

struct seen {
    char *result, *calls;
    bool there;
    enum task_state mark;
    enum admin_state wish;
    guint64 generation;
};

/* Calls to nodes; commits differ in where the mark stands. */
static char *calls_of(const char *trace)
{
    g_auto(GStrv) lines = g_strsplit(trace, "\n", -1);
    GString *calls = g_string_new(NULL);
    for (guint i = 0; lines[i]; i++) {
        if (g_str_has_prefix(lines[i], "node"))
            g_string_append_printf(calls, "%s\n", lines[i]);
    }
    return g_string_free(calls, FALSE);
}

static struct seen run(const char *id)
{
    struct seen seen = {.result = g_strdup(ops_run_one(world, opcode(id)))};
    const struct instance *web = ops_web(world);
    seen.calls = calls_of(world->trace->str);
    seen.there = web != NULL;
    seen.mark = web ? fault_mark(world->config, web, NULL) : TASK_NONE;
    seen.wish = web ? web->admin_state : ADMIN_DOWN;
    seen.generation = web ? web->generation : 0;
    return seen;
}

static void seen_clear(struct seen *seen)
{
    g_free(seen->result);
    g_free(seen->calls);
}

/* The words of the mark, and that there is a fault. */
static bool drop_tail(char *text)
{
    char *since = strstr(text, "; it is in ERROR since "), *quote = NULL;
    if (since)
        quote = strstr(since, ": fettle recovery show instance web1");
    if (!quote)
        return false;
    quote += strlen(": fettle recovery show instance web1");
    memmove(since, quote, strlen(quote) + 1);
    return true;
}

static void compare(const struct task_row *task, const char *id, bool running)
{
    begin(running);
    put_mark(task->word);
    struct seen mark = run(id);
    begin(running);
    put_fault(task->word);
    struct seen kept = run(id);
    bool told = drop_tail(kept.result);
    g_test_message("%s of %s, %s: %s", id, task->word, running ? "runs" : "stopped", mark.result);
    bool refused = strstr(mark.result, "job 7 ended while") != NULL;
    /* What is found out about it is another sentence. */
    if (strcmp(id, "OP_INSTANCE_VERIFY") != 0)
        g_assert_cmpstr(kept.result, ==, mark.result);
    g_assert_cmpint(told, ==, refused);
    g_assert_cmpstr(kept.calls, ==, mark.calls);
    g_assert_cmpint(kept.there, ==, mark.there);
    g_assert_cmpint(kept.mark, ==, mark.mark);
    g_assert_cmpint(kept.wish, ==, mark.wish);
    g_assert_cmpuint(kept.generation, ==, mark.generation);
    const struct instance *web = ops_web(world);
    /* Never both: a mark on record is of a job of its own. */
    g_assert_false(web && web->task_state != TASK_NONE && fault());
    if (web && web->task_state != TASK_NONE)
        g_assert_cmpuint(web->task_owner, ==, JOB);
    seen_clear(&mark);
    seen_clear(&kept);
}

static void test_fault_as_mark(void)
{
    size_t count = 0;
    const struct opcode *table = opcode_table(&count);
    guint compared = 0;
    for (const struct task_row *task = task_rows; task->word; task++) {
        if (task->kind != TASK_KIND_instance || !(task->flags & TASK_KEEPS_OFF))
            continue;
        for (size_t i = 0; i < count; i++) {
            for (guint running = 0; running < 2 && acts_on_one(&table[i]); running++, compared++)
                compare(task, table[i].id, running == 1);
        }
    }
    g_assert_cmpuint(compared, >=, 8 * 15 * 2);
}

/* It is told, and keeps nobody off: the next operation that succeeds ends it, one that fails does
 * not. */
static void test_fault_that_keeps_nobody_off(void)
{
    static const char *const tasks[] = {"failing-over", "replacing-disks", ""};
    for (guint i = 0; i < G_N_ELEMENTS(tasks); i++) {
        begin(false);
        put_fault(tasks[i]);
        ops_fail(world, NODE1, "guest_start", FETTLE_ERROR_STORAGE, "no", 100);
        g_assert_nonnull(strstr(ops_run_one(world, opcode("OP_INSTANCE_STARTUP")), "Error"));
        g_assert_nonnull(fault());
        begin(false);
        put_fault(tasks[i]);
        g_assert_cmpstr(ops_run_one(world, opcode("OP_INSTANCE_STARTUP")), ==, "null");
        g_assert_null(fault());
        begin(true);
        put_fault(tasks[i]);
        g_assert_cmpstr(ops_run_one(world, opcode("OP_INSTANCE_STARTUP")), ==, "null");
        g_assert_null(fault());
    }
}

/* --- the door behind a job that removed images --- */

#define OPENED "node2 replica_open"
#define ASKED "node2 collect job 7\n"

static const char *replace_auto(void)
{
    return ops_run_one(world, json_make("{ss ss ss}", "OP_ID", "OP_INSTANCE_REPLACE_DISKS",
                                        "instance_name", "web1", "mode", "replace_auto"));
}

static void put_blind(void)
{
    put_fault("replacing-disks");
    ops_set(world, "fault", FAULT, "blind", json_true());
}

/* Its node opens no replica before it has refused the dead job. What that job may have asked for
 * still, `disks_remove`, would else take a copy that is in sync again. */
static void check_refused_first(void)
{
    const char *asked = strstr(world->trace->str, ASKED),
               *opened = strstr(world->trace->str, OPENED);
    g_test_message("%s", world->trace->str);
    g_assert_nonnull(asked);
    g_assert_nonnull(opened);
    g_assert_true(asked < opened);
}

static void test_door_before_copy(void)
{
    begin(true);
    ops_set(world, "replica", REPLICA, "state", json_string("stale"));
    put_blind();
    g_assert_cmpstr(replace_auto(), ==, "null");
    check_refused_first();
    begin(false);
    put_blind();
    g_assert_cmpstr(ops_run_one(world, opcode("OP_INSTANCE_STARTUP")), ==, "null");
    check_refused_first();
    /* Recovery did not get so far: the mark is on record still, and is taken over. */
    begin(true);
    ops_set(world, "replica", REPLICA, "state", json_string("stale"));
    put_mark("replacing-disks");
    g_assert_cmpstr(replace_auto(), ==, "null");
    check_refused_first();
    g_assert_true(g_str_has_prefix(world->trace->str, ASKED));
    begin(false);
    put_mark("replacing-disks");
    g_assert_cmpstr(ops_run_one(world, opcode("OP_INSTANCE_STARTUP")), ==, "null");
    check_refused_first();
}

/* And while it does not answer nothing of it is used, and who is not to be let in stays known. */
static void test_door_stays_open(void)
{
    for (guint marked = 0; marked < 2; marked++) {
        begin(true);
        ops_set(world, "replica", REPLICA, "state", json_string("stale"));
        marked ? put_mark("replacing-disks") : put_blind();
        ops_fail(world, NODE2, "collect", FETTLE_ERROR_UNREACHABLE, "cut", 1000);
        g_string_truncate(world->trace, 0);
        const char *result = replace_auto();
        g_assert_nonnull(strstr(
            result,
            "node2: cut; job 7 ended in the middle of its work on instance "
            "\\\"web1\\\", and node2 has to refuse first what that job may have asked it for; "
            "try again when it answers"));
        g_assert_nonnull(strstr(result, "\"resource_not_available\""));
        g_assert_null(strstr(world->trace->str, OPENED));
        g_assert_null(strstr(world->trace->str, "commit instance"));
        g_assert_cmpuint(ops_web(world)->task_owner, ==, marked ? 7 : 0);
        g_assert_cmpint(fault() != NULL, ==, !marked);
    }
    for (guint marked = 0; marked < 2; marked++) {
        begin(false);
        marked ? put_mark("replacing-disks") : put_blind();
        ops_fail(world, NODE2, "collect", FETTLE_ERROR_UNREACHABLE, "cut", 1000);
        g_assert_cmpstr(ops_run_one(world, opcode("OP_INSTANCE_STARTUP")), ==, "null");
        g_assert_null(strstr(world->trace->str, OPENED));
        const struct replica *replica = config_get(world->config, "replica", REPLICA, NULL);
        g_assert_cmpint(replica->state, ==, REPLICA_STALE);
        g_assert_true(marked || fault()->owner == 7);
    }
}

/* Whatever opens one: no opcode does without that. */
static void test_door_of_all(void)
{
    size_t count = 0;
    guint opened = 0;
    const struct opcode *table = opcode_table(&count);
    for (guint i = 0; i < 2 * count; i++) {
        if (!acts_on_one(&table[i / 2]))
            continue;
        begin(i % 2 == 1);
        ops_run_one(world, opcode(table[i / 2].id));
        opened += strstr(world->trace->str, "replica_open") != NULL;
        begin(i % 2 == 1);
        put_blind();
        ops_fail(world, NODE2, "collect", FETTLE_ERROR_UNREACHABLE, "cut", 1000);
        ops_run_one(world, opcode(table[i / 2].id));
        g_test_message("%s: %s", table[i / 2].id, world->trace->str);
        g_assert_null(strstr(world->trace->str, OPENED));
    }
    g_assert_cmpuint(opened, >=, 4);
}

/* A disk half written: neither started nor moved until it is installed anew. */
static void test_half_written(void)
{
    begin(false);
    put_fault("reinstalling");
    g_autofree char *time = text_time(1700000000);
    g_autofree char *refusal = g_strdup_printf(
        "job 7 ended while reinstalling instance \"web1\"; that is settled first, by itself, or "
        "by: fettle instance reinstall web1; it is in ERROR since %s: fettle recovery show "
        "instance web1",
        time);
    ops_expect_refusal(world, ops_run_one(world, opcode("OP_INSTANCE_STARTUP")), refusal,
                       "resource_not_available");
    /* Not for its replica, which is stale because of that. */
    ops_set(world, "replica", REPLICA, "state", json_string("stale"));
    ops_expect_refusal(world, ops_run_one(world, opcode("OP_INSTANCE_FAILOVER")), refusal,
                       "resource_not_available");
    g_assert_cmpstr(ops_run_one(world, opcode("OP_INSTANCE_REINSTALL")), ==, "null");
    g_assert_null(fault());
    g_assert_cmpstr(ops_run_one(world, opcode("OP_INSTANCE_STARTUP")), ==, "null");
}

/* --- jobs that finish what a dead one began --- */

static json_t *finisher(const char *id, const char *if_task)
{
    json_t *json = opcode(id);
    if (!strcmp(id, "OP_INSTANCE_MIGRATE"))
        json_object_set_new(json, "cleanup", json_true());
    json_object_set_new(json, "if_task", json_string(if_task));
    return json;
}

static bool has_condition(const struct opcode *row)
{
    return record_field(row->params, "if_task") != NULL;
}

static void expect_nothing_done(json_t *job, const char *why)
{
    json_autoptr before = config_object_json(world->config, "instance", WEB);
    g_string_truncate(world->trace, 0);
    g_assert_cmpstr(ops_run_one(world, job), ==, "null");
    json_autoptr after = config_object_json(world->config, "instance", WEB);
    g_assert_true(json_equal(before, after));
    g_autofree char *log = ops_log(world, 0);
    g_autofree char *words = g_strdup_printf("nothing is done: instance web1 %s ", why);
    g_assert_true(g_str_has_prefix(log, words));
    ops_expect(world, "commit job success\n");
}

static void test_condition(void)
{
    static const char *const others[] = {"creating/8/1", "creating/7/2", "removing/7/1",
                                         "creating/7/0"};
    size_t count = 0;
    guint found = 0;
    const struct opcode *table = opcode_table(&count);
    for (size_t i = 0; i < count; i++) {
        if (!has_condition(&table[i]))
            continue;
        found++;
        for (guint k = 0; k < G_N_ELEMENTS(others); k++) {
            begin(true);
            put_mark("creating");
            expect_nothing_done(finisher(table[i].id, others[k]), "has no longer the task");
            begin(true);
            put_fault("creating");
            expect_nothing_done(finisher(table[i].id, others[k]), "has no longer the task");
        }
        begin(true);
        expect_nothing_done(finisher(table[i].id, "creating/7/1"), "has no longer the task");
        ops_delete_object(world, "instance", WEB);
        g_assert_cmpstr(ops_run_one(world, finisher(table[i].id, "creating/7/1")), ==, "null");
    }
    g_assert_cmpuint(found, ==, 7);
}

/* Without a task: as long as nobody is at work on it, and nobody has started it anew. */
static void test_condition_without_task(void)
{
    static const struct {
        const char *mark, *condition;
    } others[] = {{NULL, "/0/2"}, {NULL, "/0/0"}, {"stopping", "/0/1"}};
    for (guint i = 0; i < G_N_ELEMENTS(others); i++) {
        begin(true);
        if (others[i].mark)
            put_mark(others[i].mark);
        expect_nothing_done(finisher("OP_INSTANCE_SHUTDOWN", others[i].condition),
                            "is in another generation than");
        g_assert_cmpstr(world->guest_node, ==, NODE1);
    }
    begin(true);
    g_assert_cmpstr(ops_run_one(world, finisher("OP_INSTANCE_SHUTDOWN", "/0/1")), ==, "null");
    g_assert_cmpstr(ops_web(world)->holder, ==, "");
    /* That finishes nobody's work: a guest that has switched itself off is to be down. */
    g_assert_cmpint(ops_web(world)->admin_state, ==, ADMIN_DOWN);
    /* Its user wanted it to be down meanwhile. */
    expect_nothing_done(finisher("OP_INSTANCE_STARTUP", "/0/1"),
                        "is in another generation than 1 now, has a task, or");
    g_assert_cmpint(ops_web(world)->admin_state, ==, ADMIN_DOWN);
    /* A person's word of ERROR keeps off as a mark does. */
    begin(true);
    put_fault("reinstalling");
    expect_nothing_done(finisher("OP_INSTANCE_SHUTDOWN", "/0/1"), "is in another generation than");
    begin(false);
    ops_set(world, "instance", WEB, "admin_state", json_string("up"));
    g_autofree char *now = g_strdup_printf("/0/%" G_GUINT64_FORMAT, ops_web(world)->generation);
    g_assert_cmpstr(ops_run_one(world, finisher("OP_INSTANCE_STARTUP", now)), ==, "null");
    g_assert_cmpstr(ops_web(world)->holder, ==, NODE1);
}

static void test_malformed_condition(void)
{
    static const char *const texts[] = {"creating",      "creating/7",  "creating/7/1/2",
                                        "creating/x/1",  "creating/7/", "flying/7/1",
                                        "creating/-7/1", "/0",          "/7/1"};
    for (guint i = 0; i < G_N_ELEMENTS(texts); i++) {
        begin(true);
        put_mark("creating");
        g_autofree char *refusal = g_strdup_printf(
            "if_task: must be TASK/OWNER/GENERATION, such as creating/17/3, not \"%s\"", texts[i]);
        ops_expect_refusal(world, ops_run_one(world, finisher("OP_INSTANCE_SETTLE", texts[i])),
                           refusal, "wrong_input");
    }
}

static void lose_images(void)
{
    g_ptr_array_add(world->lost, (char *)NODE1);
    g_ptr_array_add(world->lost, (char *)NODE2);
}

static void reset_meanwhile(struct ops_world *at)
{
    ops_set(at, "instance", WEB, "task_state", json_string(""));
    ops_set(at, "instance", WEB, "task_owner", json_integer(0));
}

static void removed_meanwhile(struct ops_world *at)
{
    ops_delete_object(at, "instance", WEB);
}

/* It waited for its locks, and somebody was faster. */
static void test_condition_under_locks(void)
{
    begin(false);
    put_mark("creating");
    lose_images();
    world->on_locks = reset_meanwhile;
    g_assert_cmpstr(ops_run_one(world, finisher("OP_INSTANCE_SETTLE", "creating/7/1")), ==, "null");
    g_assert_nonnull(ops_web(world));
    ops_expect(world, "commit job success\n");
    begin(false);
    put_mark("creating");
    world->on_locks = removed_meanwhile;
    g_assert_cmpstr(ops_run_one(world, finisher("OP_INSTANCE_SETTLE", "creating/7/1")), ==, "null");
}

/* What it was made for stands: as without the condition. */
static void test_condition_stands(void)
{
    for (guint faulty = 0; faulty < 2; faulty++) {
        begin(false);
        (faulty ? put_fault : put_mark)("creating");
        lose_images();
        g_assert_cmpstr(ops_run_one(world, finisher("OP_INSTANCE_SETTLE", "creating/7/1")), ==,
                        "null");
        g_assert_null(ops_web(world));
    }
}

/* A dead creation has left it prepared: that is closed, the wish and the mark stay, for whoever
 * looks at what is there then. */
static void test_close_of_a_creation(void)
{
    begin(true);
    put_mark("creating");
    world->guest_state = "prepared";
    g_assert_nonnull(strstr(ops_run_one(world, opcode("OP_INSTANCE_SHUTDOWN")),
                            "job 7 ended while creating instance"));
    g_assert_cmpstr(ops_run_one(world, finisher("OP_INSTANCE_SHUTDOWN", "creating/7/1")), ==,
                    "null");
    const struct instance *web = ops_web(world);
    g_assert_cmpstr(web->holder, ==, "");
    g_assert_cmpint(web->task_state, ==, TASK_CREATING);
    g_assert_cmpuint(web->task_owner, ==, JOB);
    g_assert_cmpint(web->admin_state, ==, ADMIN_UP);
    begin(true);
    put_mark("creating");
    g_assert_nonnull(strstr(ops_run_one(world, finisher("OP_INSTANCE_SHUTDOWN", "creating/7/1")),
                            "not stopped"));
    g_assert_cmpstr(ops_web(world)->holder, ==, NODE1);
    g_assert_cmpuint(ops_web(world)->task_owner, ==, 7);
    /* Nothing else is loosened. */
    begin(true);
    put_mark("removing");
    world->guest_state = "prepared";
    g_assert_nonnull(strstr(ops_run_one(world, finisher("OP_INSTANCE_SHUTDOWN", "removing/7/1")),
                            "job 7 ended while"));
}

/* The wish is the user's. */
static void test_finished_stop_keeps_the_wish(void)
{
    begin(true);
    put_mark("stopping");
    g_assert_cmpstr(ops_run_one(world, finisher("OP_INSTANCE_SHUTDOWN", "stopping/7/1")), ==,
                    "null");
    g_assert_cmpint(ops_web(world)->admin_state, ==, ADMIN_UP);
    g_assert_cmpint(ops_web(world)->task_state, ==, TASK_NONE);
    g_assert_cmpstr(ops_web(world)->holder, ==, "");
}

/* --- a person's word --- */

static const char *reset(const char *state, const char *reason)
{
    return ops_run_one(world, json_make("{ss ss ss s[[ssi]]}", "OP_ID", "OP_RECOVERY_RESET",
                                        "instance_name", "web1", "state", state, "reason",
                                        "gnt:client:fettle", reason, 1));
}

/* Of what is stored another command says it. */
static void test_reset_of_kinds(void)
{
    static const char *const refusals[][2] = {
        {"backup", "kind: must be instance; of a backup say: fettle backup reset-state"},
        {"image", "kind: must be instance; of an image say: fettle image reset-state"},
        {"network", "kind: must be instance, not \"network\""}};
    begin(true);
    for (guint i = 0; i < G_N_ELEMENTS(refusals); i++)
        ops_expect_refusal(
            world,
            ops_run_one(world, json_make("{ss ss ss ss s[[ssi]]}", "OP_ID", "OP_RECOVERY_RESET",
                                         "kind", refusals[i][0], "instance_name", "web1", "state",
                                         "stopped", "reason", "gnt:client:fettle", "I saw it", 1)),
            refusals[i][1], "wrong_input");
}

static void put_owner(const char *status)
{
    ops_put(world, "job", "7",
            json_make("{si ss s[{s{ss} ss}]}", "id", 7, "status", status, "ops", "input", "OP_ID",
                      "OP_TEST_DELAY", "status", status));
}

static const struct decision *decided(void)
{
    g_autoptr(GPtrArray) all = config_list(world->config, "decision");
    g_assert_cmpuint(all->len, ==, 1);
    return all->pdata[0];
}

static void test_reset_refuses(void)
{
    begin(true);
    ops_expect_refusal(world, reset("flying", "I saw it"),
                       "state: must be one of active, stopped, error", "wrong_input");
    ops_expect_refusal(world, reset("stopped", ""),
                       "reason: is required: what was seen, and by whom", "wrong_input");
    ops_expect_refusal(world, reset("stopped", "I saw it"), "instance \"web1\": nothing is stuck",
                       "wrong_state");
    put_mark("creating");
    ops_expect_refusal(world, reset("stopped", "I saw it"),
                       "instance \"web1\": node1 reports that it runs; stop it: fettle instance "
                       "shutdown web1",
                       "wrong_state");
    world->guest_node = NODE2;
    g_assert_nonnull(strstr(reset("stopped", "I saw it"), "node2 reports that it runs"));
    g_assert_nonnull(strstr(reset("active", "I saw it"), "node1, where it is on record, reports no "
                                                         "process of it"));
    g_assert_cmpuint(ops_web(world)->task_owner, ==, 7);
    g_string_truncate(world->trace, 0);
    put_owner("running");
    ops_expect_refusal(
        world, reset("stopped", "I saw it"),
        "instance \"web1\": job 7 is creating it and has not ended (running); end it "
        "first: fettle job cancel 7 --kill",
        "resource_not_available");
}

/* The nodes alone know who goes on with a migration, and only its settling finds that out: without
 * its mark nobody would (SAF-17). */
static void test_reset_of_a_migration(void)
{
    begin(true);
    put_mark("migrating");
    ops_set(world, "instance", WEB, "migration", json_string(REPLICA));
    ops_set(world, "instance", WEB, "migration_node", json_string(NODE2));
    ops_expect_refusal(world, reset("active", "I saw it"),
                       "a migration of instance \"web1\" has not been settled, which finds out "
                       "where it runs; say: fettle instance migrate web1 --cleanup",
                       "wrong_state");
    g_assert_cmpint(ops_web(world)->task_state, ==, TASK_MIGRATING);
    g_assert_cmpstr(reset("error", "I saw it"), ==, "null");
    g_assert_cmpstr(fault()->task, ==, "migrating");
}

static void test_reset(void)
{
    static const char *const states[] = {"active", "stopped", "error"};
    for (guint i = 0; i < 6; i++) {
        const char *state = states[i % 3];
        begin(!strcmp(state, "active"));
        (i < 3 ? put_mark : put_fault)("reinstalling");
        put_owner("error");
        g_assert_cmpstr(reset(state, "I saw it"), ==, "null");
        const struct decision *decision = decided();
        bool error = !strcmp(state, "error");
        g_assert_cmpstr(decision->author, ==, "person");
        g_assert_cmpint(decision->event, ==, EVENT_RECOVERED);
        g_assert_cmpstr(decision->task, ==, "reinstalling");
        g_assert_cmpstr(decision->new, ==, state);
        g_assert_nonnull(strstr(decision->summary, "I saw it"));
        g_assert_cmpint(ops_web(world)->task_state, ==, TASK_NONE);
        g_assert_cmpuint(ops_web(world)->task_owner, ==, 0);
        g_assert_cmpint(ops_web(world)->admin_state, ==, i % 3 == 0 ? ADMIN_UP : ADMIN_DOWN);
        g_assert_cmpint(fault() != NULL, ==, error);
        g_string_truncate(world->trace, 0);
        if (!error) {
            g_autofree char *nothing = g_strdup(reset(state, "again"));
            g_assert_nonnull(strstr(nothing, "nothing is stuck"));
            continue;
        }
        g_assert_cmpstr(fault()->message, ==, "I saw it");
        g_assert_cmpuint(fault()->owner, ==, 7);
        g_assert_nonnull(strstr(ops_run_one(world, opcode("OP_INSTANCE_STARTUP")),
                                "job 7 ended while reinstalling"));
    }
}

/* The issue of SAF-83: the removal waited in the queue, a person reset the state and started the
 * guest; then it ran. In ERROR by a person's word nothing is finished either, until that is judged
 * anew. */
static void test_person_between(void)
{
    begin(false);
    put_mark("creating");
    g_assert_cmpstr(reset("stopped", "I saw it"), ==, "null");
    g_assert_cmpstr(ops_run_one(world, opcode("OP_INSTANCE_STARTUP")), ==, "null");
    expect_nothing_done(finisher("OP_INSTANCE_SETTLE", "creating/7/1"), "has no longer the task");
    g_assert_cmpstr(world->guest_node, ==, NODE1);
    begin(false);
    put_mark("creating");
    lose_images();
    g_assert_cmpstr(reset("error", "I saw it"), ==, "null");
    expect_nothing_done(finisher("OP_INSTANCE_SETTLE", "creating/7/1"), "has no longer the task");
    ops_set(world, "fault", FAULT, "again", json_true());
    g_assert_cmpstr(ops_run_one(world, finisher("OP_INSTANCE_SETTLE", "creating/7/1")), ==, "null");
    g_assert_null(ops_web(world));
}

static void add(const char *path, void (*fn)(void))
{
    ops_case(path, fn, &world, NULL);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    add("/recovery/fault/as-its-mark#SAF-84,RCV-28", test_fault_as_mark);
    add("/recovery/fault/keeps-nobody-off#SAF-84,RCV-28", test_fault_that_keeps_nobody_off);
    add("/recovery/fault/half-written#SAF-84", test_half_written);
    add("/recovery/door/before-copy#SAF-81", test_door_before_copy);
    add("/recovery/door/silent#SAF-81", test_door_stays_open);
    add("/recovery/door/all-opcodes#SAF-81", test_door_of_all);
    add("/recovery/condition#SAF-83,RCV-23", test_condition);
    add("/recovery/condition/without-task#SAF-83", test_condition_without_task);
    add("/recovery/condition/malformed#SAF-83", test_malformed_condition);
    add("/recovery/condition/under-locks#SAF-83", test_condition_under_locks);
    add("/recovery/condition/stands#SAF-83,RCV-23", test_condition_stands);
    add("/recovery/condition/close-of-a-creation#SAF-83", test_close_of_a_creation);
    add("/recovery/condition/keeps-the-wish#SAF-83", test_finished_stop_keeps_the_wish);
    add("/recovery/reset/refuses#RCV-30", test_reset_refuses);
    add("/recovery/reset/of-kinds#RCV-30", test_reset_of_kinds);
    add("/recovery/reset/of-a-migration#RCV-30,SAF-17", test_reset_of_a_migration);
    add("/recovery/reset#SAF-84,RCV-09,RCV-30,RCV-39", test_reset);
    add("/recovery/reset/person-between#SAF-83,RCV-30", test_person_between);
    return g_test_run();
}
