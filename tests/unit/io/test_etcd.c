/* The etcd engine against a real etcd of its own: etcd_client.c, etcd_kv.c, etcd_engine.c, … */
#include "etcd_world.h"

#include "helper/patience.h"
#include "proto/change.h"
#include "proto/records.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

static bool resign_to_nobody(struct fixture *fixture, GError **error)
{
    return fixture->engine->ops->resign(fixture->engine, "", error);
}

static bool resign_to_a(struct fixture *fixture, GError **error)
{
    return fixture->engine->ops->resign(fixture->engine, NODE_A, error);
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
    import(fixture);
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

static void close_at_first(const char *kind, const char *key, guint64 version, json_t *object,
                           void *data)
{
    struct fixture *fixture = data;
    if (fixture->engine != NULL)
        fixture->engine->ops->close(fixture->engine);
    fixture->engine = NULL;
}

static bool load_closed(struct fixture *fixture, GError **error)
{
    guint64 history = 0, serial = 0;
    return fixture->engine->ops->load(fixture->engine, &history, &serial, close_at_first, fixture,
                                      error);
}

/* Between two pages: that is no word about the values. */
static void test_closed_while_loading(struct fixture *fixture, gconstpointer unused)
{
    struct fixture other = {.client_url = fixture->client_url};
    g_autoptr(GError) error = NULL;

    open_engine(&other, NODE_B, "boot1");
    g_assert_false(run_step(&other, load_closed, &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_KILLED);
    etcd_client_free(other.client);
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
    usleep((LEASE_S + 2) * G_USEC_PER_SEC);
    commit(fixture, "late", 8, CHANGE_PUT, "late", &outcome);
    world_wait(&outcome.done);
    g_assert_cmpint(outcome.result, !=, ENGINE_DONE);
    g_assert_nonnull(why);
    g_assert_false(run_step(fixture, load, &error)); /* nor does it read on for nothing */
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_NOT_MASTER);
    g_clear_error(&error);
    g_assert_true(run_step(&other, campaign, &error));
    g_assert_cmpuint(other.me.epoch, >, fixture->me.epoch);
    g_assert_true(run_step(&other, load, &error));
    g_assert_cmpuint(loaded_serial, ==, 7);
    g_free(outcome.why);
    close_engine(&other);
}

#define SEAT "/fettle/" CLUSTER "/master"
static bool seat_is_made_anew; /* with its lease; else it is only written, and without one */

static bool rewrite_seat(struct fixture *fixture, GError **error)
{
    json_autoptr found =
        etcd_call_wait(fixture->client, ETCD_RANGE, etcd_range(SEAT), CALL_MS, error);
    g_autoptr(GPtrArray) kvs = etcd_kvs(found, NULL, error);
    const struct etcd_kv *seat = kvs->pdata[0];
    json_t *removal = seat_is_made_anew ? json_make("[o]", etcd_delete(SEAT)) : json_array();
    json_autoptr removed = etcd_call_wait(fixture->client, ETCD_TXN,
                                          etcd_txn(json_array(), removal, NULL), CALL_MS, error);
    json_t *put = etcd_put(SEAT, seat->value, seat_is_made_anew ? seat->lease : 0);
    json_autoptr written =
        etcd_call_wait(fixture->client, ETCD_TXN,
                       etcd_txn(json_array(), json_make("[o]", put), NULL), CALL_MS, error);
    return removed != NULL && written != NULL;
}

/* A seat that is not the very one that was taken is another's, whatever stands in it. */
static void test_seat_rewritten(struct fixture *fixture, gconstpointer made_anew)
{
    struct outcome outcome = {0};
    g_autoptr(GError) error = NULL;

    g_assert_true(run_step(fixture, campaign, &error));
    g_assert_true(run_step(fixture, load, &error));
    seat_is_made_anew = made_anew != NULL;
    g_assert_true(run_step(fixture, rewrite_seat, &error));
    commit(fixture, "late", 8, CHANGE_PUT, "late", &outcome);
    world_wait(&outcome.done);
    g_assert_cmpint(outcome.result, ==, ENGINE_REFUSED);
    g_free(outcome.why);
}

/* A process has ended while a transaction of its was on its way, and the next one of that seat has
 * read everything: what comes late is refused, and makes nobody lose the seat. */
static void test_late_request(struct fixture *fixture, gconstpointer unused)
{
    struct fixture next = {.client_url = fixture->client_url};
    struct outcome late = {0}, first = {0}, barrier = {0};
    g_autofree char *why = NULL;
    g_autoptr(GError) error = NULL;

    g_assert_true(run_step(fixture, campaign, &error));
    g_assert_true(run_step(fixture, load, &error));
    open_engine(&next, NODE_A, "boot1");
    g_assert_true(run_step(&next, campaign, &error));
    g_assert_cmpuint(next.me.epoch, ==, fixture->me.epoch);
    g_assert_true(run_step(&next, load, &error));
    next.engine->ops->on_lost(next.engine, lost_cb, &why);
    commit(fixture, "late", 8, CHANGE_PUT, "late", &late);
    world_wait(&late.done);
    g_assert_cmpint(late.result, ==, ENGINE_REFUSED);
    commit(&next, "first", 8, CHANGE_PUT, "first", &first);
    world_wait(&first.done);
    g_assert_cmpstr(first.why, ==, NULL);
    g_assert_cmpint(first.result, ==, ENGINE_DONE);
    next.engine->ops->barrier(next.engine, passed, &barrier);
    world_wait(&barrier.done);
    g_assert_cmpint(barrier.result, ==, ENGINE_DONE);
    g_assert_null(why);
    g_assert_true(run_step(&next, load, &error));
    g_assert_cmpstr(loaded.text->str, ==, "tag first 8 {\"id\":\"first\"}\n");
    g_free(late.why);
    close_engine(&next);
}

/* While the member is away results are unknown; before the lease ends they become known. */
static const char *alarm_action;

/* The alarm of the member that its file has reached its limit, which nobody else can tell from a
 * real one. */
static bool set_alarm(struct fixture *fixture, GError **error)
{
    json_autoptr status =
        etcd_call_wait(fixture->client, "/v3/maintenance/status", json_object(), CALL_MS, error);
    const char *id =
        json_string_value(json_object_get(json_object_get(status, "header"), "member_id"));
    g_assert_nonnull(id);
    json_autoptr answer = etcd_call_wait(
        fixture->client, "/v3/maintenance/alarm",
        json_make("{s:s, s:s, s:s}", "action", alarm_action, "memberID", id, "alarm", "NOSPACE"),
        CALL_MS, error);
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
    import(fixture);
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
    patience_stop(fixture->member);
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
    patience_stop(fixture->member);
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
    g_test_add("/etcd/closed-while-loading", struct fixture, NULL, set_up,
               test_closed_while_loading, tear_down);
    g_test_add("/etcd/one-master#SAF-01,SAF-08", struct fixture, NULL, set_up, test_one_master,
               tear_down);
    g_test_add("/etcd/seat-without-lease#SAF-07", struct fixture, NULL, set_up, test_seat_rewritten,
               tear_down);
    g_test_add("/etcd/seat-made-anew#SAF-07", struct fixture, "anew", set_up, test_seat_rewritten,
               tear_down);
    g_test_add("/etcd/late-request-of-the-process-before#SAF-04,SAF-07", struct fixture, NULL,
               set_up, test_late_request, tear_down);
    g_test_add("/etcd/handed-over#SAF-07", struct fixture, NULL, set_up, test_handed_over,
               tear_down);
    g_test_add("/etcd/full#SAF-04,SAF-08", struct fixture, NULL, set_up, test_full, tear_down);
    g_test_add("/etcd/member-away#SAF-04,SAF-08", struct fixture, NULL, set_up, test_member_away,
               tear_down);
    return g_test_run();
}
