/* The etcd engine against a real etcd of its own: etcd_client.c, etcd_kv.c, etcd_engine.c, … */
#include "world.h"

#include "base/task.h"
#include "io/etcd_engine.h"
#include "io/etcd_internal.h"
#include "io/etcd_kv.h"
#include "io/etcd_value.h"
#include "io/loop.h"
#include "proto/change.h"
#include "proto/records.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define JOURNAL "66666666-7777-4888-8999-000000000000"

struct fixture {
    struct node_paths *paths;
    char *data, *client_url, *peer_url;
    GPid member;
    struct etcd_client *client;
    struct engine *engine;
    struct mastership me;
};

/* --- a member --- */

static void start_member(struct fixture *fixture)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *cluster = g_strdup_printf("default=%s", fixture->peer_url);
    char *argv[] = {"etcd",
                    "--data-dir",
                    fixture->data,
                    "--listen-client-urls",
                    fixture->client_url,
                    "--advertise-client-urls",
                    fixture->client_url,
                    "--listen-peer-urls",
                    fixture->peer_url,
                    "--initial-advertise-peer-urls",
                    fixture->peer_url,
                    "--initial-cluster",
                    cluster,
                    "--max-txn-ops",
                    "8192",
                    "--max-request-bytes",
                    "33554432",
                    "--heartbeat-interval",
                    "20",
                    "--election-timeout",
                    "200",
                    NULL};

    g_spawn_async(NULL, argv, NULL,
                  G_SPAWN_SEARCH_PATH | G_SPAWN_DO_NOT_REAP_CHILD | G_SPAWN_STDOUT_TO_DEV_NULL |
                      G_SPAWN_STDERR_TO_DEV_NULL,
                  NULL, NULL, &fixture->member, &error);
    g_assert_no_error(error);
}

static void stop_member(struct fixture *fixture)
{
    if (fixture->member == 0)
        return;
    kill(fixture->member, SIGKILL);
    waitpid(fixture->member, NULL, 0);
    fixture->member = 0;
}

/* --- in a task, from a test --- */

struct step {
    struct fixture *fixture;
    bool (*fn)(struct fixture *fixture, GError **error);
    bool done, ok;
    GError *error;
};

static void step_task(void *data)
{
    struct step *step = data;
    step->ok = step->fn(step->fixture, &step->error);
    step->done = true;
}

static bool run_step(struct fixture *fixture, bool (*fn)(struct fixture *, GError **),
                     GError **error)
{
    struct step step = {.fixture = fixture, .fn = fn};
    struct task_group *group = task_group_new();

    task_spawn(group, step_task, &step);
    world_wait(&step.done);
    task_group_unref(group);
    if (step.error != NULL)
        g_propagate_error(error, step.error);
    return step.ok;
}

/* --- what is stored --- */

static void import_objects(void (*each)(const char *kind, const char *key, guint64 version,
                                        json_t *object, void *data),
                           void *data, void *source)
{
    for (guint i = 0; i < 2500; i++) {
        g_autofree char *key = g_strdup_printf("n%u", i);
        json_autoptr object = json_make("{s:i}", "number", (int)i);
        each("node", key, 1, object, data);
    }
}

/* More than one page of them. */
#define CARRIED (LIMIT_IDS_PIECE + 10)

static guint64 import_serial = 7;
static guint64 import_last; /* of the ids; 0: the one before that */
static const char *import_next;

static void import_ids(void (*each)(const char *commit_id, guint64 serial, void *data), void *data,
                       void *source)
{
    guint64 last = import_last ? import_last : import_serial - 1;
    for (guint64 serial = last > CARRIED ? last - CARRIED + 1 : 4; serial <= last; serial++) {
        g_autofree char *id = g_strdup_printf("before-%" G_GUINT64_FORMAT, serial);
        each(id, serial, data);
    }
}

static bool import(struct fixture *fixture, GError **error)
{
    struct etcd_import all = {.history = 4,
                              .serial = import_serial,
                              .epoch_base = 100,
                              .next = import_next,
                              .objects = import_objects,
                              .ids = import_ids};
    return etcd_engine_import(fixture->client, CLUSTER, &all, error);
}

static bool resign_to_nobody(struct fixture *fixture, GError **error)
{
    return fixture->engine->ops->resign(fixture->engine, "", error);
}

static bool resign_to_a(struct fixture *fixture, GError **error)
{
    return fixture->engine->ops->resign(fixture->engine, NODE_A, error);
}

static bool campaign(struct fixture *fixture, GError **error)
{
    return fixture->engine->ops->campaign(fixture->engine, &fixture->me, error);
}

static bool observe(struct fixture *fixture, GError **error)
{
    struct mastership master;
    return fixture->engine->ops->observe(fixture->engine, &master, error);
}

struct loaded {
    guint count, deleted;
    guint64 last_deleted;
    GString *text; /* of what is not a node */
};
static struct loaded loaded;
static guint64 loaded_serial, loaded_history;

static void each_cb(const char *kind, const char *key, guint64 version, json_t *object, void *data)
{
    loaded.count += object != NULL;
    if (object == NULL) {
        loaded.deleted++;
        loaded.last_deleted = version;
        g_assert_cmpstr(kind, ==, "tag");
        g_assert_cmpstr(key, ==, "a");
        return;
    }
    if (strcmp(kind, "node") == 0)
        return;
    g_autofree char *text = json_to_text(object);
    g_string_append_printf(loaded.text, "%s %s %u %s\n", kind, key, (guint)version, text);
}

static bool load(struct fixture *fixture, GError **error)
{
    loaded.count = loaded.deleted = 0;
    if (loaded.text != NULL)
        g_string_free(loaded.text, TRUE);
    loaded.text = g_string_new(NULL);
    return fixture->engine->ops->load(fixture->engine, &loaded_history, &loaded_serial, each_cb,
                                      NULL, error);
}

static void open_engine(struct fixture *fixture, const char *node, const char *boot)
{
    const char *urls[] = {fixture->client_url, NULL};
    g_autoptr(GError) error = NULL;

    fixture->client = etcd_client_new(&(struct etcd_options){.urls = urls}, &error);
    g_assert_no_error(error);
    fixture->engine = etcd_engine_new(fixture->client, CLUSTER);
    g_strlcpy(fixture->me.node, node, sizeof fixture->me.node);
    g_strlcpy(fixture->me.boot_id, boot, sizeof fixture->me.boot_id);
    g_strlcpy(fixture->me.journal_id, JOURNAL, sizeof fixture->me.journal_id);
}

static void close_engine(struct fixture *fixture)
{
    fixture->engine->ops->close(fixture->engine);
    etcd_client_free(fixture->client);
}

static void set_up(struct fixture *fixture, gconstpointer unused)
{
    g_autoptr(GError) error = NULL;

    fixture->paths = world_new(NODE_A);
    fixture->data = g_build_filename(fixture->paths->var, "etcd", NULL);
    fixture->client_url = g_strdup_printf("http://127.0.0.1:%u", world_free_port());
    fixture->peer_url = g_strdup_printf("http://127.0.0.1:%u", world_free_port());
    start_member(fixture);
    open_engine(fixture, NODE_A, "boot1");
    for (guint i = 0; i < 300 && !run_step(fixture, import, &error); i++) {
        g_clear_error(&error);
        world_pause(100);
    }
    g_assert_no_error(error);
}

static void tear_down(struct fixture *fixture, gconstpointer unused)
{
    close_engine(fixture);
    stop_member(fixture);
    world_pause(10);
    world_remove(fixture->paths);
    g_free(fixture->data);
    g_free(fixture->client_url);
    g_free(fixture->peer_url);
    if (loaded.text != NULL)
        g_string_free(g_steal_pointer(&loaded.text), TRUE);
}

/* --- commits --- */

struct outcome {
    bool done;
    enum engine_result result;
    char *why;
};

static void committed(enum engine_result result, const GError *error, void *data)
{
    struct outcome *outcome = data;
    outcome->done = true;
    outcome->result = result;
    outcome->why = error != NULL ? g_strdup(error->message) : NULL;
}

static void commit(struct fixture *fixture, const char *id, guint64 serial, enum change_op op,
                   const char *key, struct outcome *outcome)
{
    g_autoptr(GPtrArray) changes = change_list_new();
    json_t *object = op == CHANGE_PUT ? json_make("{s:s}", "id", id) : NULL;

    g_ptr_array_add(changes, change_make(op, "tag", key, serial, object));
    fixture->engine->ops->commit(fixture->engine,
                                 &(struct engine_commit){id, fixture->me.epoch, serial, changes},
                                 committed, outcome);
}

static void passed(bool still_master, void *data)
{
    struct outcome *outcome = data;
    outcome->done = true;
    outcome->result = still_master ? ENGINE_DONE : ENGINE_REFUSED;
}

/* From which serial on the engine knows all that was changed. */
static guint64 log_from(const struct fixture *fixture)
{
    guint64 epoch = 0;
    guint64 from = fixture->engine->ops->log_from(fixture->engine, &epoch);
    g_assert_cmpuint(epoch, ==, 100); /* the last one before etcd */
    return from;
}

static void test_keeps(struct fixture *fixture, gconstpointer unused)
{
    enum { COMMITS = 600 };
    struct outcome *outcomes = g_new0(struct outcome, COMMITS);
    struct outcome barrier = {0};
    g_autoptr(GError) error = NULL;

    g_assert_true(run_step(fixture, campaign, &error));
    g_assert_cmpuint(fixture->me.epoch, >, 100);
    g_assert_true(run_step(fixture, load, &error));
    g_assert_cmpuint(loaded.count, ==, 2500);
    g_assert_cmpuint(loaded_serial, ==, 7);
    g_assert_cmpuint(loaded_history, ==, 4);
    g_assert_cmpuint(loaded.deleted, ==, 0);
    g_assert_cmpuint(log_from(fixture), ==, 6); /* copies that lack the step alone are not filled */
    for (guint i = 0; i < COMMITS; i++) {
        g_autofree char *id = g_strdup_printf("commit-%u", i);
        commit(fixture, id, 8 + i, i % 3 == 2 ? CHANGE_DELETE : CHANGE_PUT, i % 3 ? "a" : "b/c",
               &outcomes[i]);
    }
    fixture->engine->ops->barrier(fixture->engine, passed, &barrier);
    world_wait(&barrier.done);
    g_assert_cmpint(barrier.result, ==, ENGINE_DONE);
    for (guint i = 0; i < COMMITS; i++) {
        g_assert_true(outcomes[i].done);
        g_assert_cmpint(outcomes[i].result, ==, ENGINE_DONE);
    }
    g_assert_true(run_step(fixture, load, &error));
    g_assert_cmpuint(loaded_serial, ==, 7 + COMMITS);
    g_assert_cmpstr(loaded.text->str, ==, "tag b/c 605 {\"id\":\"commit-597\"}\n");
    g_assert_cmpuint(fixture->engine->ops->lookup(fixture->engine, "commit-3"), ==, 11);
    g_assert_cmpuint(loaded.deleted, ==, COMMITS / 3);
    g_assert_cmpuint(loaded.last_deleted, ==, 7 + COMMITS);
    g_assert_cmpuint(log_from(fixture), ==, 6);
    g_free(outcomes);

    /* A successor of the same boot keeps the epoch, and knows the commits. */
    guint64 epoch = fixture->me.epoch;
    close_engine(fixture);
    open_engine(fixture, NODE_A, "boot1");
    g_assert_true(run_step(fixture, campaign, &error));
    g_assert_cmpuint(fixture->me.epoch, ==, epoch);
    g_assert_true(run_step(fixture, load, &error));
    g_assert_cmpuint(fixture->engine->ops->lookup(fixture->engine, "commit-599"), ==, 607);
    g_assert_cmpuint(fixture->engine->ops->lookup(fixture->engine, "never"), ==, 0);
    g_assert_cmpuint(fixture->engine->ops->lookup(fixture->engine, "before-6"), ==, 6);
}

/* --- ids of the engine before --- */

static guint64 serial_of(struct fixture *fixture, const char *id)
{
    return fixture->engine->ops->lookup(fixture->engine, id);
}

static void count_id(const char *id, guint64 serial, void *count)
{
    ++*(guint *)count;
}

/* Commits that were stored before the cluster moved in are known, and are no part of the log. They
 * are dropped when they are older than ids are kept. */
static void test_carried_ids(struct fixture *fixture, gconstpointer unused)
{
    struct outcome outcomes[2] = {0};
    g_autoptr(GError) error = NULL;
    guint count = 0;

    import_serial = 200000;
    import_last = import_serial + 1 - LIMIT_COMMIT_IDS;
    g_assert_true(run_step(fixture, import, &error));
    g_assert_true(run_step(fixture, campaign, &error));
    g_assert_true(run_step(fixture, load, &error));
    g_assert_cmpuint(import_last, ==, 134465);
    g_assert_cmpuint(serial_of(fixture, "before-134465"), ==, 134465);
    g_assert_cmpuint(serial_of(fixture, "before-130360"), ==, 130360);
    g_assert_cmpuint(serial_of(fixture, "before-130359"), ==, 0);
    g_assert_cmpuint(serial_of(fixture, "before-6"), ==, 0); /* of an earlier filling */
    g_assert_true(fixture->engine->ops->each_id(fixture->engine, count_id, &count, &error));
    g_assert_cmpuint(count, ==, CARRIED + 1); /* and the step itself */
    g_assert_cmpuint(log_from(fixture), ==, 199999);
    commit(fixture, "near", 200001, CHANGE_PUT, "a", &outcomes[0]);
    world_wait(&outcomes[0].done);
    g_assert_true(run_step(fixture, load, &error));
    g_assert_cmpuint(serial_of(fixture, "before-130360"), ==, 130360);
    commit(fixture, "far", 200002, CHANGE_PUT, "a", &outcomes[1]);
    world_wait(&outcomes[1].done);
    close_engine(fixture);
    open_engine(fixture, NODE_A, "boot1");
    g_assert_true(run_step(fixture, campaign, &error));
    g_assert_true(run_step(fixture, load, &error));
    g_assert_cmpuint(serial_of(fixture, "before-134465"), ==, 0);
    g_assert_cmpuint(serial_of(fixture, "near"), ==, 200001);
    g_assert_cmpuint(serial_of(fixture, "far"), ==, 200002);
    import_serial = 7;
    import_last = 0;
}

/* --- values --- */

static const char *value_put; /* of the key o/tag/v */

static bool put_value(struct fixture *fixture, GError **error)
{
    json_t *puts = json_make("[o]", etcd_put("/fettle/" CLUSTER "/o/tag/v", value_put, 0));
    json_t *answer = etcd_call_wait(fixture->client, "/v3/kv/txn",
                                    etcd_txn(json_array(), puts, NULL), 5000, error);
    json_decref(answer);
    return answer != NULL;
}

/* However a value is written, it is read; what is none is refused with its key. */
static void test_values(struct fixture *fixture, gconstpointer unused)
{
    static const char *const good[] = {
        "{\"object\":{\"id\":\"x\"},\"version\":5}",
        "{\"version\":5,\"object\":{\"id\":\"x\"}}",
        " { \"object\" : { \"id\" : \"x\" } , \"version\" : 5 } ",
        "{\"more\":[1,2],\"object\":{\"id\":\"x\"},\"version\":5}",
    };
    static const char *const bad[] = {
        "{\"object\":{\"id\":\"x\"},\"version\":0}",
        "{\"object\":{\"id\":\"x\"},\"version\":-5}",
        "{\"object\":{\"id\":\"x\"},\"version\":99999999999999999999}",
        "{\"object\":{\"id\":\"x\"},\"version\":5",
        "{\"object\":{\"id\":\"x\",\"version\":5}",
        "{\"object\":{\"id\":\"x\"}",
        "{\"object\":,\"version\":5}",
        "{\"object\":{\"id\":\"x\"},\"version\":4,\"version\":5}",
        "",
    };
    g_autoptr(GError) error = NULL;

    g_assert_true(run_step(fixture, campaign, &error));
    for (guint i = 0; i < G_N_ELEMENTS(good); i++) {
        value_put = good[i];
        g_assert_true(run_step(fixture, put_value, &error));
        g_assert_true(run_step(fixture, load, &error));
        g_assert_cmpstr(loaded.text->str, ==, "tag v 5 {\"id\":\"x\"}\n");
    }
    for (guint i = 0; i < G_N_ELEMENTS(bad); i++) {
        value_put = bad[i];
        g_assert_true(run_step(fixture, put_value, &error));
        g_assert_false(run_step(fixture, load, &error));
        g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_CORRUPT);
        g_assert_cmpstr(error->message, ==,
                        "etcd: the value of /fettle/" CLUSTER
                        "/o/tag/v cannot be read; restore a backup");
        g_clear_error(&error);
    }
}

static char *told; /* of damaged data */
static guint times_told;

static void tell_damaged(const char *what)
{
    g_free(told);
    told = g_strdup(what);
    times_told++;
}

static const char *key_put;

static bool put_key(struct fixture *fixture, GError **error)
{
    json_t *puts = json_make("[o]", etcd_put(key_put, value_put, 0));
    json_t *answer = etcd_call_wait(fixture->client, "/v3/kv/txn",
                                    etcd_txn(json_array(), puts, NULL), 5000, error);
    json_decref(answer);
    return answer != NULL;
}

/* A bit of what is stored has flipped in the file of a member, which answers it. */
static void test_damaged(struct fixture *fixture, gconstpointer unused)
{
    static const char *const keys[] = {"o/tag/v", "head", "epoch_base"};
    json_autoptr object = json_make("{s:s}", "id", "x");
    g_autofree char *whole = etcd_object_text("tag", "v", 5, object);
    g_autofree char *count = etcd_count_text("epoch_base", 100);
    struct etcd_head head = {.history = 4, .serial = 7, .batch = "b"};
    g_autofree char *head_text = etcd_head_text(&head);
    const char *const values[] = {whole, head_text, count};
    g_autoptr(GError) error = NULL;

    etcd_engine_on_damaged(fixture->engine, tell_damaged);
    g_assert_true(run_step(fixture, campaign, &error));
    for (guint i = 0; i < G_N_ELEMENTS(keys); i++) {
        g_autofree char *key = g_strconcat("/fettle/" CLUSTER "/", keys[i], NULL);
        g_autofree char *wrong = g_strdup(values[i]);
        *strpbrk(wrong, "x45107") ^= 1;
        key_put = key;
        value_put = values[i];
        g_assert_true(run_step(fixture, put_key, &error));
        g_assert_true(run_step(fixture, i == 2 ? observe : load, &error));
        value_put = wrong;
        g_assert_true(run_step(fixture, put_key, &error));
        times_told = 0;
        g_assert_false(run_step(fixture, i == 2 ? observe : load, &error));
        g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_CORRUPT);
        g_assert_nonnull(strstr(error->message, key));
        g_assert_cmpuint(times_told, ==, 1);
        g_assert_nonnull(strstr(told, key));
        g_assert_nonnull(strstr(told, fixture->client_url));
        g_clear_error(&error);
        value_put = values[i];
        g_assert_true(run_step(fixture, put_key, &error));
    }
    g_assert_true(run_step(fixture, load, &error));
    g_assert_cmpstr(loaded.text->str, ==, "tag v 5 {\"id\":\"x\"}\n");
    g_clear_pointer(&told, g_free);
}

static void lost_cb(const char *why, void *data)
{
    *(char **)data = g_strdup(why);
}

/* A second candidate waits until the lease is over; the first, woken, commits nothing more. */
static void test_one_master(struct fixture *fixture, gconstpointer unused)
{
    struct fixture other = {.client_url = fixture->client_url};
    g_autofree char *why = NULL;
    struct outcome outcome = {0};
    g_autoptr(GError) error = NULL;

    g_assert_true(run_step(fixture, campaign, &error));
    g_assert_true(run_step(fixture, load, &error));
    fixture->engine->ops->on_lost(fixture->engine, lost_cb, &why);
    open_engine(&other, NODE_B, "boot1");
    g_assert_false(run_step(&other, campaign, &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_NOT_MASTER);
    g_assert_cmpstr(error->message, ==, "the master is node " NODE_A);
    g_clear_error(&error);

    /* The whole process stands still for longer than its lease. */
    usleep((ETCD_LEASE_TTL_S + 2) * G_USEC_PER_SEC);
    commit(fixture, "late", 8, CHANGE_PUT, "late", &outcome);
    world_wait(&outcome.done);
    g_assert_cmpint(outcome.result, !=, ENGINE_DONE);
    g_assert_nonnull(why);
    g_assert_true(run_step(&other, campaign, &error));
    g_assert_cmpuint(other.me.epoch, >, fixture->me.epoch);
    g_assert_true(run_step(&other, load, &error));
    g_assert_cmpuint(loaded_serial, ==, 7);
    g_free(outcome.why);
    close_engine(&other);
}

/* While the member is away results are unknown; before the lease ends they become known. */
static const char *alarm_action;

/* The alarm of the member that its file has reached its limit, which nobody else can tell from a
 * real one. */
static bool set_alarm(struct fixture *fixture, GError **error)
{
    json_autoptr status =
        etcd_call_wait(fixture->client, "/v3/maintenance/status", json_object(), 5000, error);
    const char *id =
        json_string_value(json_object_get(json_object_get(status, "header"), "member_id"));
    g_assert_nonnull(id);
    json_autoptr answer = etcd_call_wait(
        fixture->client, "/v3/maintenance/alarm",
        json_make("{s:s, s:s, s:s}", "action", alarm_action, "memberID", id, "alarm", "NOSPACE"),
        5000, error);
    return answer != NULL;
}

/* Nothing of the commit is there, and it is said why; a successor within the lease is no master
 * either, until there is room. */
static void test_full(struct fixture *fixture, gconstpointer unused)
{
    static const char full[] = "etcd takes no changes: the file of a member has reached its limit "
                               "(etcdserver: mvcc: database space exceeded); its node makes room, "
                               "see fettle cluster engine status";
    struct outcome before = {0}, refused = {0};
    g_autofree char *why = NULL;
    g_autoptr(GError) error = NULL;

    g_assert_true(run_step(fixture, campaign, &error));
    g_assert_true(run_step(fixture, load, &error));
    fixture->engine->ops->on_lost(fixture->engine, lost_cb, &why);
    commit(fixture, "before", 8, CHANGE_PUT, "before", &before);
    world_wait(&before.done);
    g_assert_cmpint(before.result, ==, ENGINE_DONE);
    alarm_action = "ACTIVATE";
    g_assert_true(run_step(fixture, set_alarm, &error));
    commit(fixture, "refused", 9, CHANGE_PUT, "refused", &refused);
    world_wait(&refused.done);
    g_assert_cmpint(refused.result, ==, ENGINE_UNKNOWN);
    g_assert_cmpstr(refused.why, ==,
                    "etcd takes no changes: a member's file has reached its limit; see fettle "
                    "cluster engine status");
    g_assert_cmpstr(why, ==, refused.why);
    for (guint i = 0; i < 2; i++) {
        close_engine(fixture);
        open_engine(fixture, NODE_A, "boot1");
        g_assert_false(run_step(fixture, campaign, &error));
        g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_TEMPORARY);
        g_assert_cmpstr(error->message, ==, full);
        g_clear_error(&error);
    }
    alarm_action = "DEACTIVATE";
    g_assert_true(run_step(fixture, set_alarm, &error));
    g_assert_true(run_step(fixture, campaign, &error));
    g_assert_true(run_step(fixture, load, &error));
    g_assert_cmpuint(loaded_serial, ==, 8);
    g_assert_cmpuint(serial_of(fixture, "before"), ==, 8);
    g_assert_cmpuint(serial_of(fixture, "refused"), ==, 0);
    g_free(refused.why);
}

/* Others leave the first try to whom the seat was handed, until that one has taken it: if it is
 * lost soon after, nobody waits for it. */
static void test_handed_over(struct fixture *fixture, gconstpointer unused)
{
    static const char handed[] = "mastership was handed to node " NODE_A;
    struct fixture other = {.client_url = fixture->client_url};
    g_autoptr(GError) error = NULL;

    import_next = NODE_A;
    g_assert_true(run_step(fixture, import, &error));
    import_next = NULL;
    open_engine(&other, NODE_B, "boot1");
    for (guint i = 0; i < 2; i++) {
        g_assert_false(run_step(&other, campaign, &error));
        g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_NOT_MASTER);
        g_assert_cmpstr(error->message, ==, handed);
        g_clear_error(&error);
        g_assert_true(run_step(fixture, campaign, &error));
        g_assert_true(run_step(fixture, resign_to_nobody, &error));
        g_assert_true(run_step(&other, campaign, &error));
        g_assert_true(run_step(&other, resign_to_a, &error));
    }
    g_assert_no_error(error);
    close_engine(&other);
}

static void test_member_away(struct fixture *fixture, gconstpointer unused)
{
    struct outcome first = {0}, second = {0};
    g_autoptr(GError) error = NULL;

    g_assert_true(run_step(fixture, campaign, &error));
    g_assert_true(run_step(fixture, load, &error));
    kill(fixture->member, SIGSTOP);
    commit(fixture, "held", 8, CHANGE_PUT, "held", &first);
    world_pause(1500);
    commit(fixture, "behind", 9, CHANGE_PUT, "behind", &second);
    g_assert_false(first.done);
    kill(fixture->member, SIGCONT);
    world_wait(&second.done);
    g_assert_cmpint(first.result, ==, ENGINE_DONE);
    g_assert_cmpint(second.result, ==, ENGINE_DONE);
    g_assert_true(run_step(fixture, load, &error));
    g_assert_cmpuint(loaded_serial, ==, 9);
    g_assert_cmpstr(loaded.text->str, ==,
                    "tag behind 9 {\"id\":\"behind\"}\ntag held 8 {\"id\":\"held\"}\n");

    /* And for longer than the lease: the commit is unknown, mastership over. */
    struct outcome third = {0};
    kill(fixture->member, SIGSTOP);
    commit(fixture, "lost", 10, CHANGE_PUT, "lost", &third);
    world_wait(&third.done);
    kill(fixture->member, SIGCONT);
    g_assert_cmpint(third.result, ==, ENGINE_UNKNOWN);
    g_free(third.why);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    loop_init();
    g_test_add("/etcd/keeps#SAF-01,SAF-04", struct fixture, NULL, set_up, test_keeps, tear_down);
    g_test_add("/etcd/carried-ids#SAF-04", struct fixture, NULL, set_up, test_carried_ids,
               tear_down);
    g_test_add("/etcd/values#SAF-04", struct fixture, NULL, set_up, test_values, tear_down);
    g_test_add("/etcd/damaged-values#SAF-04,SAF-07", struct fixture, NULL, set_up, test_damaged,
               tear_down);
    g_test_add("/etcd/one-master#SAF-01,SAF-08", struct fixture, NULL, set_up, test_one_master,
               tear_down);
    g_test_add("/etcd/handed-over#SAF-07", struct fixture, NULL, set_up, test_handed_over,
               tear_down);
    g_test_add("/etcd/full#SAF-04,SAF-08", struct fixture, NULL, set_up, test_full, tear_down);
    g_test_add("/etcd/member-away#SAF-04,SAF-08", struct fixture, NULL, set_up, test_member_away,
               tear_down);
    return g_test_run();
}
