/* Recovery in the watcher's loop: marks of dead jobs against what hosts show. */
#include "core/config/fault.h"
#include "unit/core/world/watcher_world.h"

#include <string.h>

#define RECOVERY "watcher/recovery"
#define ALERTS "watcher/alert"

static json_t *mark_of(const char *mark)
{
    return json_make("{s:s,s:i,s:i}", "task_state", mark, "task_owner", 900, "task_since",
                     1600000000);
}

static struct watcher_world *fresh(void)
{
    struct watcher_world *w = watcher_world_new();
    json_t *counter = json_make("{s:s,s:i}", "name", "job", "value", 901);
    look(w);
    g_free(daemon_commit(&w->base, w->base.luxid,
                         changes_of(config_put(w->view, "counter", "job", counter), NULL)));
    return w;
}

/* web1 gets the mark of job 900, which has ended; and what else its record has then. */
static void stick_as(struct watcher_world *w, const char *mark, json_t *more)
{
    json_t *patch = mark_of(mark);
    g_test_message("%s", mark);
    json_object_update(patch, more);
    json_decref(more);
    patch_web1(w, patch);
}

static void stick(struct watcher_world *w, const char *mark)
{
    stick_as(w, mark, json_object());
}

static const struct instance *web1(struct watcher_world *w)
{
    look(w);
    return config_get(w->view, "instance", WEB1, NULL);
}

static const struct fault *fault(struct watcher_world *w)
{
    look(w);
    return fault_of(w->view, "instance", WEB1);
}

static const struct stuck *stuck(struct watcher_world *w)
{
    g_autofree char *key = fault_key("instance", WEB1);
    look(w);
    return config_get(w->view, "stuck", key, NULL);
}

static const struct decision *told(struct watcher_world *w)
{
    return latest_about(w, WEB1, RECOVERY);
}

static guint events(struct watcher_world *w, enum event_kind kind)
{
    look(w);
    g_autoptr(GPtrArray) all = config_list(w->view, "decision");
    guint count = 0;
    for (guint i = 0; i < all->len; i++)
        count += ((const struct decision *)all->pdata[i])->event == kind;
    return count;
}

/* Records about web1's tasks. */
static guint records(struct watcher_world *w)
{
    look(w);
    g_autoptr(GPtrArray) all = config_list(w->view, "decision");
    guint count = 0;
    for (guint i = 0; i < all->len; i++) {
        const struct decision *decision = all->pdata[i];
        count += g_str_equal(decision->subject, WEB1) && g_str_equal(decision->author, RECOVERY);
    }
    return count;
}

/* --- the record first --- */

/* What runs is on record as that, whatever the dead job was about, and nobody submits a job. */
static void test_running_is_settled(void)
{
    static const char *const marks[] = {"creating",     "starting",        "stopping",
                                        "failing-over", "replacing-disks", "growing-disk"};
    for (guint i = 0; i < G_N_ELEMENTS(marks); i++) {
        struct watcher_world *w = fresh();
        stick(w, marks[i]);
        passes(w, 2);
        g_assert_cmpuint(jobs(w), ==, 0);
        g_assert_cmpint(web1(w)->task_state, ==, TASK_NONE);
        g_assert_cmpuint(web1(w)->task_owner, ==, 0);
        g_assert_cmpuint(w->refused, ==, 900);
        g_assert_cmpint(told(w)->event, ==, EVENT_RECOVERED);
        g_assert_cmpstr(told(w)->task, ==, marks[i]);
        g_assert_cmpstr(told(w)->new, ==, "active");
        g_assert_nonnull(fault(w) == NULL ? w : NULL);
        passes(w, 20);
        g_assert_cmpuint(events(w, EVENT_RECOVERED), ==, 1);
        watcher_world_free(w);
    }
}

/* A removal that did not happen: it lives, is to run, and somebody is told. */
static void test_removing_that_runs(void)
{
    struct watcher_world *w = fresh();
    stick_as(w, "removing", json_make("{s:s}", "admin_state", "down"));
    passes(w, 2);
    g_assert_cmpint(web1(w)->task_state, ==, TASK_NONE);
    g_assert_cmpint(web1(w)->admin_state, ==, ADMIN_UP);
    g_assert_cmpstr(told(w)->rule, ==, "RCV-70");
    g_assert_cmpuint(events(w, EVENT_ALERT), ==, 1);
    g_assert_cmpuint(jobs(w), ==, 0);
    watcher_world_free(w);
}

/* An instance of which much was decided before: the event and the alert, in one commit, both make
 * room. */
static void test_much_on_record(void)
{
    struct watcher_world *w = fresh();
    for (guint i = 0; i < LIMIT_DECISIONS_PER_SUBJECT + 5; i++) {
        g_autofree char *uuid = g_strdup_printf("dddddddd-0000-4000-8000-0000000000%02u", i);
        json_t *decision =
            json_make("{ss ss ss ss ss sI ss ss ss}", "uuid", uuid, "author", "watcher/test",
                      "subject_kind", "instance", "subject", WEB1, "subject_name", "web1", "at_us",
                      (json_int_t)i + 1, "state", "Some", "verdict", "wait", "summary", uuid);
        look(w);
        g_autofree char *said = daemon_commit(
            &w->base, w->env, changes_of(config_put(w->view, "decision", uuid, decision), NULL));
        g_assert_nonnull(strstr(said, "serial"));
    }
    stick_as(w, "removing", json_make("{s:s}", "admin_state", "down"));
    passes(w, 2);
    g_assert_cmpint(web1(w)->task_state, ==, TASK_NONE);
    g_assert_cmpuint(events(w, EVENT_ALERT), ==, 1);
    g_assert_cmpuint(events(w, EVENT_RECOVERED), ==, 1);
    watcher_world_free(w);
}

/* Off and whole: settled, and then started, as its wish says. */
static void test_off_is_started_by_its_wish(void)
{
    struct watcher_world *w = fresh();
    w->guest_node = NULL;
    stick(w, "starting");
    passes(w, 4);
    g_assert_cmpint(web1(w)->task_state, ==, TASK_NONE);
    g_assert_cmpstr(told(w)->new, ==, "stopped");
    g_assert_cmpuint(jobs(w), ==, 1);
    g_assert_cmpstr(job(w, 0)->op_id, ==, "OP_INSTANCE_STARTUP");
    g_assert_true(g_str_has_prefix(job(w, 0)->request_id, "restart/"));
    watcher_world_free(w);
}

/* Nothing of it on any host: the record goes, its proof stays. */
static void test_all_gone(void)
{
    struct watcher_world *w = fresh();
    w->guest_node = NULL;
    w->own_disks = 0;
    w->replica_gone = true;
    stick(w, "removing");
    passes(w, 2);
    g_assert_null(web1(w));
    g_assert_nonnull(config_get(w->view, "removed", WEB1, NULL));
    g_assert_cmpuint(jobs(w), ==, 0);
    watcher_world_free(w);
}

/* --- jobs second --- */

static void check_finish(const char *mark, const char *opcode, guint own_disks)
{
    struct watcher_world *w = fresh();
    w->guest_node = NULL;
    w->own_disks = own_disks;
    w->disk_mib = 1;
    stick(w, mark);
    passes(w, 2);
    g_assert_cmpuint(jobs(w), ==, 1);
    g_assert_cmpstr(job(w, 0)->op_id, ==, opcode);
    g_assert_cmpstr(job(w, 0)->request_id, ==, "finish/" WEB1 "/900/4/1");
    g_autofree char *task = g_strdup_printf("\"if_task\":\"%s/900/4\"", mark);
    g_assert_nonnull(strstr(job(w, 0)->body, task));
    g_assert_cmpint(told(w)->event, ==, EVENT_RECOVERED);
    g_assert_cmpstr(told(w)->new, ==, "finishing");
    passes(w, 10);
    g_assert_cmpuint(jobs(w), ==, 1); /* it is under way */
    w->busy = NODE1;                  /* that it waits is told in between */
    end_job(w, 0, "error", json_string("detected death of job 1"));
    passes(w, 5);
    w->busy = NULL;
    passes(w, 5);
    g_assert_cmpuint(jobs(w), ==, 2);
    g_assert_cmpuint(events(w, EVENT_RECOVERED), ==, 1);
    watcher_world_free(w);
}

static void test_half_made_is_finished(void)
{
    check_finish("creating", "OP_INSTANCE_SETTLE", 0);
    check_finish("removing", "OP_INSTANCE_SETTLE", 0);
    check_finish("growing-disk", "OP_INSTANCE_GROW_DISK", 3);
    check_finish("recreating-disks", "OP_INSTANCE_RECREATE_DISKS", 0);
}

/* What is installed anew is held by nobody until it is whole; then it is settled like any other. */
static void test_reinstalling(void)
{
    struct watcher_world *w = fresh();
    change_object(w, "instance", WEB1, json_make("{s:s}", "admin_state", "down"));
    end_guest(w, 0, true, "yes");
    stick(w, "reinstalling");
    passes(w, 2);
    g_assert_cmpstr(job(w, 0)->op_id, ==, "OP_INSTANCE_REINSTALL");
    g_assert_cmpstr(job(w, 0)->request_id, ==, "finish/" WEB1 "/900/5/1");
    watcher_world_free(w);
    w = fresh();
    stick(w, "reinstalling");
    passes(w, 2);
    g_assert_cmpuint(jobs(w), ==, 0);
    g_assert_cmpint(web1(w)->task_state, ==, TASK_NONE);
    watcher_world_free(w);
}

/* Where nothing may be finished it is in ERROR, with an alert, and its task is off the record. */
static void test_half_made_with_no(void)
{
    struct watcher_world *w = fresh();
    change_object(w, "cluster", CLUSTER, json_make("{s:s}", "recovery_rectify_unstable", "no"));
    w->guest_node = NULL;
    w->own_disks = 0;
    stick(w, "creating");
    passes(w, 2);
    g_assert_cmpuint(jobs(w), ==, 0);
    g_assert_cmpint(web1(w)->task_state, ==, TASK_NONE);
    g_assert_nonnull(fault(w));
    g_assert_cmpstr(fault(w)->task, ==, "creating");
    g_assert_cmpstr(fault(w)->rule, ==, "RCV-47");
    g_assert_false(fault(w)->blind);
    g_assert_cmpuint(events(w, EVENT_ALERT), ==, 1);
    passes(w, 20);
    g_assert_cmpuint(jobs(w), ==, 0);
    g_assert_cmpuint(events(w, EVENT_ALERT), ==, 1);
    watcher_world_free(w);
}

/* The replica of what was to be removed is gone: only a job may say so of it. */
static void test_replica_is_settled_by_a_job(void)
{
    struct watcher_world *w = fresh();
    w->replica_gone = true;
    stick(w, "removing");
    passes(w, 2);
    g_assert_cmpuint(jobs(w), ==, 1);
    g_assert_cmpstr(job(w, 0)->op_id, ==, "OP_INSTANCE_SETTLE");
    g_assert_cmpint(web1(w)->task_state, ==, TASK_REMOVING);
    watcher_world_free(w);
}

/* A migration that died is settled by its job, whoever answers. */
static void test_migration(void)
{
    struct watcher_world *w = fresh();
    w->silent = NODE1;
    stick_as(w, "migrating",
             json_make("{s:s,s:s}", "migration", REPLICA2, "migration_node", NODE2));
    passes(w, 2);
    g_assert_cmpuint(jobs(w), ==, 1);
    g_assert_cmpstr(job(w, 0)->op_id, ==, "OP_INSTANCE_MIGRATE");
    g_assert_nonnull(strstr(job(w, 0)->body, "\"cleanup\":true"));
    watcher_world_free(w);
}

static json_t *two_disks(void)
{
    return json_make("{s:[{ss si},{ss si}]}", "disks", "uuid", DISK1, "size", 64, "uuid", REPLICA2,
                     "size", 64);
}

/* Parts of two sets of images are no disk; one that waits to be promoted is. */
static void test_one_set_of_images(void)
{
    struct watcher_world *w = fresh();
    w->guest_node = NULL;
    w->own_disks = 1;
    w->left_disks = 2;
    stick_as(w, "creating", two_disks());
    passes(w, 2);
    g_assert_cmpuint(jobs(w), ==, 1);
    g_assert_cmpstr(job(w, 0)->op_id, ==, "OP_INSTANCE_SETTLE");
    watcher_world_free(w);
    w = fresh();
    w->guest_node = NULL;
    w->own_disks = 1;
    w->left_disks = 3;
    stick_as(w, "failing-over", two_disks());
    passes(w, 2);
    g_assert_cmpint(web1(w)->task_state, ==, TASK_NONE);
    watcher_world_free(w);
}

/* Between two tries nobody is asked, but for a look now and then; it is told once, whatever is on
 * record in between. */
static void test_pause_of_a_finishing_job(void)
{
    struct watcher_world *w = fresh();
    w->guest_node = NULL;
    w->own_disks = 0;
    stick(w, "creating");
    for (guint i = 0; i < 6; i++) {
        passes(w, 1u << i);
        g_assert_cmpuint(jobs(w), ==, i + 1);
        end_job(w, i, "error", job_error("the node is full", "NORES", false));
    }
    guint before = w->collects;
    passes(w, 50); /* of 64 */
    g_assert_cmpuint(w->collects, ==, before);
    w->busy = NODE1;
    passes(w, 20);
    g_assert_cmpuint(w->collects, >, before);
    g_assert_cmpint(told(w)->verdict, ==, VERDICT_WAIT);
    w->busy = NULL;
    passes(w, 20);
    g_assert_cmpuint(jobs(w), ==, 7);
    g_assert_cmpuint(events(w, EVENT_RECOVERED), ==, 1);
    /* A look now and then: what is whole by itself needs no job, however long the pause is. */
    end_job(w, 6, "error", job_error("the node is full", "NORES", false));
    w->own_disks = 3;
    passes(w, 62);
    g_assert_cmpint(web1(w)->task_state, ==, TASK_NONE);
    watcher_world_free(w);
}

static void put_stuck_guest(struct watcher_world *w, guint number, bool up)
{
    g_autofree char *uuid = g_strdup_printf("aaaaaaaa-0000-4000-8000-0000000001%02u", number);
    g_autofree char *name = g_strdup_printf("more%u", number);
    g_autofree char *lock = g_strdup_printf("r instance/%s", name);
    look(w);
    g_autofree char *said = job_commit(
        &w->base, 17,
        changes_of(config_put(w->view, "instance", uuid,
                              json_make("{ss ss ss si ss si ss ss si}", "uuid", uuid, "name", name,
                                        "disk_template", "diskless", "memory", 64, "primary_node",
                                        NODE1, "generation", 1, "admin_state", up ? "up" : "down",
                                        "task_state", "recreating-disks", "task_owner", 900)),
                   NULL));
    g_assert_nonnull(strstr(said, "serial"));
    g_free(job_locks(&w->base, 17, lock, false));
}

/* So many at once, guests that are down first; the others wait, and nobody is asked for them. */
static void test_so_many_jobs(void)
{
    struct watcher_world *w = fresh();
    change_object(w, "cluster", CLUSTER, json_make("{s:i}", "recovery_max_jobs", 2));
    watcher_world_kill(w);
    for (guint i = 1; i <= 5; i++)
        put_stuck_guest(w, i, i >= 4);
    watcher_world_start(w);
    passes(w, 5);
    g_assert_cmpuint(jobs(w), ==, 2);
    g_assert_cmpuint(events(w, EVENT_RECOVERED), ==, 5);
    g_assert_cmpint(job(w, 0)->instance[4] + job(w, 1)->instance[4], ==, '4' + '5');
    guint asked = w->collects;
    passes(w, 100);
    g_assert_cmpuint(jobs(w), ==, 2);
    g_assert_cmpuint(w->collects, <=, asked + 2);
    end_job(w, 0, "error", job_error("no", "NORES", false));
    passes(w, 2);
    g_assert_cmpuint(jobs(w), ==, 3);
    g_assert_cmpuint(events(w, EVENT_RECOVERED), ==, 5);
    watcher_world_free(w);
}

/* Told, and nothing else: nobody is asked, so nobody closes a door. */
static void test_shadow(void)
{
    struct watcher_world *w = fresh();
    change_object(w, "cluster", CLUSTER, json_make("{s:b}", "repair_shadow", 1));
    stick(w, "starting");
    passes(w, 20);
    g_assert_cmpint(web1(w)->task_state, ==, TASK_STARTING);
    g_assert_nonnull(strstr(told(w)->summary, "shadow mode"));
    g_assert_cmpuint(w->collects, ==, 0);
    g_assert_cmpuint(events(w, EVENT_RECOVERED), ==, 0);
    change_object(w, "cluster", CLUSTER, json_make("{s:b}", "repair_shadow", 0));
    g_free(job_locks(&w->base, 17, "r instance/web1", false));
    passes(w, 3);
    g_assert_cmpint(web1(w)->task_state, ==, TASK_NONE);
    watcher_world_free(w);
}

/* --- hosts that cannot be asked --- */

/* Six looks, at their distance, then ERROR with an alert; counted across a death of the watcher. */
static void test_six_looks(void)
{
    struct watcher_world *w = fresh();
    w->silent = NODE1;
    stick(w, "starting");
    passes(w, 2);
    g_assert_nonnull(stuck(w));
    g_assert_cmpuint(stuck(w)->looks, ==, 1);
    passes(w, 50);
    g_assert_cmpuint(stuck(w)->looks, ==, 1);
    passes(w, 12);
    g_assert_cmpuint(stuck(w)->looks, ==, 2);
    watcher_world_kill(w);
    watcher_world_start(w);
    passes(w, 3);
    g_assert_cmpint(web1(w)->task_state, ==, TASK_STARTING);
    g_assert_cmpuint(stuck(w)->looks, <=, 3);
    g_assert_cmpuint(stuck(w)->looks, >=, 2);
    passes(w, 62 * 3);
    g_assert_null(fault(w));
    passes(w, 62 * 2);
    g_assert_nonnull(fault(w));
    g_assert_true(fault(w)->blind);
    g_assert_null(stuck(w));
    g_assert_cmpint(web1(w)->task_state, ==, TASK_NONE);
    g_assert_cmpuint(events(w, EVENT_ALERT), ==, 1);
    g_assert_cmpuint(jobs(w), ==, 0);
    /* The host is back, long after: judged anew by it. */
    passes(w, 3600);
    g_assert_nonnull(fault(w));
    w->silent = NULL;
    passes(w, 3);
    g_assert_null(fault(w));
    g_assert_cmpstr(told(w)->old, ==, "error");
    g_assert_cmpstr(told(w)->new, ==, "active");
    g_assert_cmpuint(events(w, EVENT_RECOVERED), ==, 2);
    watcher_world_free(w);
}

/* A removal over the mark of a disk that is half written, and nobody could be asked for long: when
 * the hosts are back and it is whole, that mark stands again. */
static void test_mark_over_a_mark(void)
{
    struct watcher_world *w = fresh();
    change_object(w, "instance", WEB1, json_make("{s:s}", "admin_state", "down"));
    end_guest(w, 0, true, "yes");
    w->silent = "all";
    stick_as(w, "removing", json_make("{s:s}", "task_over", "reinstalling"));
    passes(w, 400);
    g_assert_nonnull(fault(w));
    g_assert_cmpint(web1(w)->task_state, ==, TASK_NONE);
    w->silent = NULL;
    passes(w, 3);
    g_assert_null(fault(w));
    g_assert_cmpint(web1(w)->task_state, ==, TASK_REINSTALLING);
    g_assert_cmpuint(web1(w)->task_owner, ==, 900);
    g_assert_cmpuint(jobs(w), ==, 1);
    g_assert_cmpstr(job(w, 0)->op_id, ==, "OP_INSTANCE_REINSTALL");
    watcher_world_free(w);
}

/* Another job died over an instance of which a silent host has not refused the first one: what is
 * settled of that leaves the first one's ERROR, until that host has. */
static void test_mark_over_an_open_door(void)
{
    struct watcher_world *w = fresh();
    g_autofree char *key = fault_key("instance", WEB1);
    look(w);
    g_free(daemon_commit(
        &w->base, w->base.luxid,
        changes_of(config_put(w->view, "fault", key,
                              json_make("{ss ss sI ss ss si sb}", "subject_kind", "instance",
                                        "subject", WEB1, "at_us", (json_int_t)1700000000000000,
                                        "message", "nobody knows", "task", "replacing-disks",
                                        "owner", 899, "blind", 1)),
                   NULL)));
    w->silent = NODE2;
    stick(w, "starting");
    passes(w, 10);
    g_assert_cmpint(web1(w)->task_state, ==, TASK_NONE);
    g_assert_nonnull(fault(w));
    g_assert_cmpuint(fault(w)->owner, ==, 899);
    w->silent = NULL;
    passes(w, 70);
    g_assert_null(fault(w));
    g_assert_cmpuint(w->refused, ==, 899);
    watcher_world_free(w);
}

/* Back before the last attempt: settled at once, no attempt is waited for. */
static void test_host_is_back(void)
{
    struct watcher_world *w = fresh();
    w->silent = NODE1;
    stick(w, "starting");
    passes(w, 70);
    g_assert_cmpuint(stuck(w)->looks, ==, 2);
    w->silent = NULL;
    passes(w, 3);
    g_assert_null(stuck(w));
    g_assert_cmpint(web1(w)->task_state, ==, TASK_NONE);
    watcher_world_free(w);
}

/* Something is being done to it there: no try is used up, however long; on record once, and the
 * node, which waits a moment for the lock each time, is not asked in each pass. */
static void test_busy(void)
{
    struct watcher_world *w = fresh();
    w->busy = NODE1;
    stick(w, "starting");
    passes(w, 1000);
    g_assert_null(stuck(w));
    g_assert_null(fault(w));
    g_assert_cmpint(told(w)->verdict, ==, VERDICT_WAIT);
    g_assert_cmpuint(records(w), ==, 1);
    g_assert_cmpuint(w->collects, >, 2 * 1000 / 5 / 2); /* two nodes */
    g_assert_cmpuint(w->collects, <=, 2 * (1000 / 5 + 1));
    w->busy = NULL;
    passes(w, 6);
    g_assert_cmpint(web1(w)->task_state, ==, TASK_NONE);
    watcher_world_free(w);
}

/* In the middle of an upgrade nobody becomes ERROR because his node cannot be asked yet. */
static void test_node_of_a_version_before(void)
{
    struct watcher_world *w = fresh();
    w->unasked = NODE1;
    stick(w, "starting");
    passes(w, 1000);
    g_assert_null(stuck(w));
    g_assert_null(fault(w));
    g_assert_nonnull(strstr(told(w)->summary, "upgrade it"));
    w->unasked = NULL;
    passes(w, 6);
    g_assert_cmpint(web1(w)->task_state, ==, TASK_NONE);
    watcher_world_free(w);
}

/* A candidate of the version before could load no count: looks are counted all the same, and it is
 * on record, or in ERROR, as soon as there is none. */
static void older_candidate(guint seconds, guint looks)
{
    struct watcher_world *w = fresh();
    w->services = json_make("{s:[{ss ss ss si}]}", NODE3, "name", "wconfd", "state", "running",
                            "version", "0.9", "since", 5);
    change_object(w, "node", NODE3, json_make("{sb}", "master_candidate", 1));
    w->silent = NODE1;
    stick(w, "replacing-disks");
    passes(w, seconds);
    g_assert_null(stuck(w));
    g_assert_null(fault(w));
    json_object_clear(w->services);
    passes(w, 65);
    g_assert_cmpuint(stuck(w) ? stuck(w)->looks : 0, ==, looks);
    g_assert_true((fault(w) != NULL) == (looks == 0));
    watcher_world_free(w);
}

static void test_older_candidate(void)
{
    older_candidate(65, 3);
    older_candidate(1000, 0);
}

/* A node may take its time: for its note, for a lock, for a disk. */
static void test_slow_node(void)
{
    struct watcher_world *w = fresh();
    w->collect_ms = 8000;
    stick(w, "starting");
    passes(w, 10);
    g_assert_cmpint(web1(w)->task_state, ==, TASK_NONE);
    g_assert_cmpuint(w->collects, ==, 2); /* each node once */
    w->collect_ms = 20000;
    stick(w, "starting");
    passes(w, 30);
    g_assert_cmpuint(stuck(w)->looks, ==, 1);
    watcher_world_free(w);
}

/* A monitor that does not answer is a look that failed, and no proof that nothing runs. */
static void test_guest_does_not_answer(void)
{
    struct watcher_world *w = fresh();
    w->late_guest = true;
    stick(w, "starting");
    passes(w, 3);
    passes(w, 50); /* the node answers all the time: attempts keep their distance */
    g_assert_cmpuint(stuck(w)->looks, ==, 1);
    g_assert_cmpint(web1(w)->task_state, ==, TASK_STARTING);
    watcher_world_free(w);
}

/* --- answers that are none --- */

struct bad_answer {
    const char *what; /* of the record */
    const char *node, *instance;
    guint sights;
};

static json_t *answer_badly(const struct rpc_request *request, const char *to_node, void *data,
                            GError **error)
{
    const struct bad_answer *bad = data;
    json_t *sights = json_array();
    for (guint i = 0; i < bad->sights; i++)
        json_array_append_new(sights,
                              json_make("{ss ss sI si}", "instance", bad->instance, "state",
                                        "running", "generation", (json_int_t)4, "taken_us", 1));
    return json_make("{ss so}", "node", bad->node, "sights", sights);
}

static json_t *answer_nonsense(const struct rpc_request *request, const char *to_node, void *data,
                               GError **error)
{
    return json_make("{ss ss}", "node", NODE1, "sights", "all is well");
}

/* It is no report: a look that failed, and the record says of which host, and why. */
static void check_no_report(fake_answer answer, struct bad_answer *bad)
{
    struct watcher_world *w = fresh();
    fake_script(w->base.world, NODE1, ROLE_NODED, "collect", answer, bad);
    stick(w, "starting");
    passes(w, 3);
    g_assert_cmpint(web1(w)->task_state, ==, TASK_STARTING);
    g_assert_nonnull(stuck(w));
    g_assert_cmpuint(stuck(w)->looks, ==, 1);
    g_assert_cmpuint(events(w, EVENT_RECOVERED), ==, 0);
    if (strstr(told(w)->summary, bad->what) == NULL || strstr(told(w)->summary, "node1") == NULL)
        g_error("\"%s\" does not say of node1 that it %s", told(w)->summary, bad->what);
    watcher_world_free(w);
}

static void test_bad_answers(void)
{
    struct bad_answer another = {"answered as another node (" NODE2 ")", NODE2, WEB1, 1};
    struct bad_answer cut = {"answered about 0 of 1", NODE1, WEB1, 0};
    struct bad_answer twice = {"answered about 2 of 1", NODE1, WEB1, 2};
    struct bad_answer other = {"answered about something else", NODE1, DB1, 1};
    struct bad_answer many = {"answered: ", NODE1, WEB1, LIMIT_COLLECT + 1};
    struct bad_answer nonsense = {.what = "answered: "};
    check_no_report(answer_badly, &another);
    check_no_report(answer_badly, &cut);
    check_no_report(answer_badly, &twice);
    check_no_report(answer_badly, &other);
    check_no_report(answer_badly, &many);
    check_no_report(answer_nonsense, &nonsense);
}

/* What a removal may have been sent to has to answer, also a node that only has the replica. */
static void needs_every_host(const char *mark)
{
    struct watcher_world *w = fresh();
    w->silent = NODE2;
    stick(w, mark);
    passes(w, 3);
    g_assert_cmpint(web1(w)->task_state, !=, TASK_NONE);
    g_assert_cmpuint(stuck(w)->looks, ==, 1);
    w->silent = NULL;
    passes(w, 3);
    g_assert_cmpint(web1(w)->task_state, ==, TASK_NONE);
    watcher_world_free(w);
}

/* Also one that only was to remove what was the replica before. */
static void test_removal_needs_every_host(void)
{
    needs_every_host("removing");
    needs_every_host("replacing-disks");
}

/* --- owners --- */

/* It lives: nothing is touched, however old; somebody is told once each period. */
static void test_living_owner(void)
{
    struct watcher_world *w = fresh();
    w->guest_node = NULL;
    passes(w, 2); /* job 1 is there */
    g_assert_cmpuint(jobs(w), ==, 1);
    look(w);
    json_t *started = config_object_json(w->view, "job", "1");
    json_object_set_new(started, "started", json_true());
    json_object_set_new(started, "status", json_string("running"));
    g_free(daemon_commit(&w->base, w->base.luxid,
                         changes_of(config_put(w->view, "job", "1", started), NULL)));
    patch_web1(w, json_make("{s:s,s:i}", "task_state", "starting", "task_owner", 1));
    passes(w, 590);
    g_assert_cmpuint(events(w, EVENT_ALERT), ==, 0);
    passes(w, 80);
    g_assert_cmpuint(events(w, EVENT_ALERT), ==, 1);
    passes(w, 1200);
    g_assert_cmpuint(events(w, EVENT_ALERT), ==, 3);
    g_assert_cmpint(web1(w)->task_state, ==, TASK_STARTING);
    g_assert_cmpuint(w->collects, ==, 0);
    end_job(w, 0, "success", NULL);
    patch_web1(w, json_make("{s:s,s:i}", "task_state", "", "task_owner", 0));
    passes(w, 2);
    g_assert_null(stuck(w)); /* what was counted goes with the task */
    watcher_world_free(w);
}

/* One that has not begun looks like a dead one, and is none. */
static void test_queued_owner(void)
{
    struct watcher_world *w = fresh();
    w->guest_node = NULL;
    passes(w, 2);
    patch_web1(w, json_make("{s:s,s:i}", "task_state", "starting", "task_owner", 1));
    passes(w, 1300);
    g_assert_cmpint(web1(w)->task_state, ==, TASK_STARTING);
    g_assert_cmpuint(w->collects, ==, 0);
    g_assert_cmpuint(events(w, EVENT_ALERT), ==, 0);
    watcher_world_free(w);
}

/* What has no task is nobody's patient, whatever became of its guest. */
static void test_no_task(void)
{
    struct watcher_world *w = fresh();
    w->guest_node = NULL;
    passes(w, 300);
    g_assert_null(told(w));
    g_assert_cmpuint(w->collects, ==, 0);
    g_assert_cmpuint(w->refused, ==, 0);
    watcher_world_free(w);
}

/* Who has its lock is not waited for, and nothing is asked of anybody. */
static void test_user_is_at_it(void)
{
    struct watcher_world *w = fresh();
    change_object(w, "instance", WEB1, mark_of("starting")); /* job 17 has all locks */
    passes(w, 20);
    g_assert_cmpint(web1(w)->task_state, ==, TASK_STARTING);
    g_assert_cmpuint(w->collects, ==, 0);
    g_free(job_locks(&w->base, 17, "r instance/web1", true));
    passes(w, 2);
    g_assert_cmpint(web1(w)->task_state, ==, TASK_NONE);
    watcher_world_free(w);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/recovery/what-runs-is-on-record#RCV-09,RCV-14,RCV-22,RCV-25,RCV-27,RCV-34",
                    test_running_is_settled);
    g_test_add_func("/recovery/a-removal-that-did-not-happen#RCV-70", test_removing_that_runs);
    g_test_add_func("/recovery/much-on-record#RCV-29,RCV-31", test_much_on_record);
    g_test_add_func("/recovery/off-is-started-by-its-wish#RCV-54", test_off_is_started_by_its_wish);
    g_test_add_func("/recovery/nothing-is-left#RCV-70,SAF-82", test_all_gone);
    g_test_add_func("/recovery/half-made-is-finished-by-a-job#RCV-23,RCV-47,SAF-83",
                    test_half_made_is_finished);
    g_test_add_func("/recovery/reinstalling#RCV-49", test_reinstalling);
    g_test_add_func("/recovery/half-made-with-no#RCV-23,RCV-28,RCV-29", test_half_made_with_no);
    g_test_add_func("/recovery/replica-is-settled-by-a-job#SAF-81",
                    test_replica_is_settled_by_a_job);
    g_test_add_func("/recovery/migration#RCV-69,SAF-17", test_migration);
    g_test_add_func("/recovery/six-looks#RCV-01,RCV-35,RCV-36,RCV-37,RCV-39,RCV-40,RCV-41",
                    test_six_looks);
    g_test_add_func("/recovery/mark-over-a-mark#SAF-84", test_mark_over_a_mark);
    g_test_add_func("/recovery/open-door/other-mark#SAF-81", test_mark_over_an_open_door);
    g_test_add_func("/recovery/host-is-back#RCV-38", test_host_is_back);
    g_test_add_func("/recovery/busy#SAF-81", test_busy);
    g_test_add_func("/recovery/candidate-of-a-version-before#RCV-36,FUT-12", test_older_candidate);
    g_test_add_func("/recovery/node-of-a-version-before#FUT-12", test_node_of_a_version_before);
    g_test_add_func("/recovery/slow-node#RCV-35", test_slow_node);
    g_test_add_func("/recovery/one-set-of-images#SAF-82", test_one_set_of_images);
    g_test_add_func("/recovery/pause-of-a-finishing-job#RCV-27", test_pause_of_a_finishing_job);
    g_test_add_func("/recovery/so-many-jobs#RCV-23", test_so_many_jobs);
    g_test_add_func("/recovery/shadow#RCV-42", test_shadow);
    g_test_add_func("/recovery/guest-does-not-answer#RCV-35", test_guest_does_not_answer);
    g_test_add_func("/recovery/answers-that-are-none#RCV-20,RCV-35", test_bad_answers);
    g_test_add_func("/recovery/removal-needs-every-host#SAF-81", test_removal_needs_every_host);
    g_test_add_func("/recovery/living-owner#RCV-02,RCV-03,RCV-10,SAF-80", test_living_owner);
    g_test_add_func("/recovery/queued-owner#RCV-12", test_queued_owner);
    g_test_add_func("/recovery/no-task#RCV-04", test_no_task);
    g_test_add_func("/recovery/user-is-at-it#RCV-21", test_user_is_at_it);
    return g_test_run();
}
