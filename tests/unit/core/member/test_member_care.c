/* The care for a node's member of etcd: core/member member_care.c and member_maintenance.c, with a
 * member in memory.
 */
#include "core/member/member_care.h"
#include "core/member/member_maintenance.h"
#include "core/node/node_private.h"
#include "helper/fake_members.h"
#include "helper/node_world.h"

#include <string.h>

#define TOKEN "77777777-0000-4000-8000-000000000001"
#define OTHER_TOKEN "77777777-0000-4000-8000-000000000002"
#define MINUTE_MS 60000

struct fixture {
    struct node_world *nw;
    struct fake_members *fake; /* of node A */
};

static void restart(struct fixture *fixture)
{
    nw_daemon_kill(fixture->nw, &fixture->nw->a);
    nw_daemon_start(fixture->nw, &fixture->nw->a);
    g_assert_true(nw_announce(fixture->nw, &fixture->nw->a, NULL));
}

static void set_up(struct fixture *fixture, gconstpointer unused)
{
    fixture->fake = fake_members_new();
    fixture->nw = node_world_new(1);
    fixture->nw->a.members = &fixture->fake->base;
    restart(fixture);
}

static void tear_down(struct fixture *fixture, gconstpointer unused)
{
    node_world_free(fixture->nw);
    fake_members_free(fixture->fake);
}

/* A call of the master's wconfd; `args` is stolen. */
static json_t *call(struct fixture *fixture, const char *method, json_t *args, GError **error)
{
    struct node_world *nw = fixture->nw;
    struct fake_reply reply;
    fake_call_start_stamped(nw->master, 0, nw->stamp, NODE_A, ROLE_NODED, method, args, &reply);
    nw_until(nw, reply.done);
    if (reply.error)
        g_propagate_error(error, reply.error);
    return reply.result;
}

static void must(struct fixture *fixture, const char *method, json_t *args)
{
    g_autoptr(GError) error = NULL;
    json_autoptr answer = call(fixture, method, args, &error);
    g_assert_no_error(error);
    g_assert_nonnull(answer);
}

static json_t *config_args(const char *token)
{
    return json_make("{s:{s:s, s:s, s:s, s:[{s:s, s:s, s:s, s:s}]}}", "config", "kind", "etcd",
                     "state", "preparing", "token", token, "members", "node", NODE_A, "name", "a",
                     "peer_url", "https://10.0.0.1:2380", "client_url", "https://10.0.0.1:2379");
}

static json_t *new_member(void)
{
    return json_make("{s:s}", "initial", "new");
}

static struct member_status *status(struct fixture *fixture)
{
    json_autoptr answer = call(fixture, "engine_status", json_object(), NULL);
    record_autoptr(engine_report) report = engine_report_parse(answer, RECORD_STRICT, NULL);
    g_assert_nonnull(report);
    return member_status_copy(report->member);
}

#define assert_status(fixture, STATE, text)                                                        \
    do {                                                                                           \
        record_autoptr(member_status) now = status(fixture);                                       \
        g_assert_cmpint(now->state, ==, STATE);                                                    \
        g_assert_cmpstr(now->why, ==, text);                                                       \
    } while (0)

#define assert_did(fixture, text)                                                                  \
    do {                                                                                           \
        g_assert_cmpstr((fixture)->fake->did->str, ==, text);                                      \
        g_string_truncate((fixture)->fake->did, 0);                                                \
    } while (0)

static void start_member(struct fixture *fixture)
{
    must(fixture, "engine_set", config_args(TOKEN));
    must(fixture, "member_prepare", json_object());
    must(fixture, "member_certify", json_make("{s:s, s:s}", "member", "x", "client", "y"));
    must(fixture, "member_start", new_member());
    assert_did(fixture, " start-new");
    fixture->fake->says->healthy = true;
    nw_pass(fixture->nw, 2 * MEMBER_FIRST_LOOK_MS);
}

/* --- tests --- */

static void test_life(struct fixture *fixture, gconstpointer unused)
{
    g_autoptr(GError) error = NULL;
    assert_status(fixture, MEMBER_ABSENT, "");
    json_t *answer = call(fixture, "member_start", new_member(), &error);
    assert_refused(answer, error, WRONG_STATE,
                   "etc/engine.json has no member for this node; it is to be written first");
    start_member(fixture);
    assert_status(fixture, MEMBER_RUNNING, "");
    must(fixture, "member_start", new_member()); /* the answer was lost: again */
    must(fixture, "member_stop", json_object());
    must(fixture, "member_stop", json_object());
    assert_did(fixture, " start-new stop");
    nw_pass(fixture->nw, 2 * MINUTE_MS);
    restart(fixture);
    nw_pass(fixture->nw, 2 * MINUTE_MS);
    assert_did(fixture, ""); /* it stays down */
    assert_status(fixture, MEMBER_STOPPED, "");
    must(fixture, "member_start", new_member());
    must(fixture, "member_remove", json_object());
    assert_did(fixture, " start-new stop aside forget");
    assert_status(fixture, MEMBER_ABSENT, "");
    must(fixture, "engine_set", json_object());
    g_assert_null(fixture->fake->config);
}

/* Pauses grow up to their limit, and begin anew after a minute of quiet. */
static void test_pauses(struct fixture *fixture, gconstpointer unused)
{
    struct fake_members *fake = fixture->fake;
    start_member(fixture);
    nw_pass(fixture->nw, 2 * MINUTE_MS);
    fake_members_die(fake, "etcd ended with exit code 137");
    assert_status(fixture, MEMBER_WAITING, "etcd ended with exit code 137");
    nw_pass(fixture->nw, MEMBER_FIRST_PAUSE_MS + 10);
    assert_did(fixture, " start-new");
    fake->fail_starts = 12;
    fake_members_die(fake, "etcd ended again");
    for (guint pause = 2 * MEMBER_FIRST_PAUSE_MS; pause < MEMBER_LONGEST_PAUSE_MS; pause *= 2) {
        nw_pass(fixture->nw, pause - 5);
        assert_did(fixture, "");
        nw_pass(fixture->nw, 5);
        assert_did(fixture, " start-new");
    }
    assert_status(fixture, MEMBER_WAITING, "the program etcd is missing on this node");
    fake->fail_starts = 0;
    nw_pass(fixture->nw, MEMBER_LONGEST_PAUSE_MS + 100);
    assert_did(fixture, " start-new");
    nw_pass(fixture->nw, 3 * MINUTE_MS);
    record_autoptr(member_status) quiet = status(fixture);
    g_assert_cmpuint(quiet->restarts, ==, 0);
    g_assert_cmpstr(quiet->why, ==, "");
}

/* "state restarts since-is-known (why)" of the member among the services of the node; "" if it is
 * not one of them. */
static char *service(struct fixture *fixture)
{
    g_autoptr(GError) error = NULL;
    json_autoptr answer = call(fixture, "node_report", json_object(), &error);
    g_assert_no_error(error);
    record_autoptr(node_report) report = node_report_parse(answer, RECORD_STRICT, &error);
    g_assert_no_error(error);
    for (guint i = 0; i < report->services->len; i++) {
        const struct service_report *line = report->services->pdata[i];
        if (strcmp(line->name, "etcd") == 0)
            return g_strdup_printf("%s %d %d (%s)",
                                   enum_word(&service_state_words, (int)line->state),
                                   (int)line->restarts, line->since > 0, line->why);
    }
    return g_strdup("");
}

#define assert_service(fixture, text)                                                              \
    do {                                                                                           \
        g_autofree char *service_ = service(fixture);                                              \
        g_assert_cmpstr(service_, ==, text);                                                       \
    } while (0)

static void test_service(struct fixture *fixture, gconstpointer unused)
{
    assert_service(fixture, "");
    start_member(fixture);
    assert_service(fixture, "running 0 1 ()");
    fake_members_die(fixture->fake, "etcd ended with exit code 137");
    assert_service(fixture, "restarting 0 0 (etcd ended with exit code 137)");
    nw_pass(fixture->nw, 3 * MINUTE_MS);
    assert_service(fixture, "running 1 1 ()");
    must(fixture, "member_stop", json_object());
    assert_service(fixture, "stopped 1 0 ()");
    must(fixture, "member_start", new_member());
    assert_service(fixture, "running 1 1 ()"); /* as it had been asked to end */
    fixture->fake->data = false;
    fake_members_die(fixture->fake, "etcd ended");
    g_autofree char *lost = service(fixture);
    g_assert_true(g_str_has_prefix(lost, "stopped 1 0 (its data is gone: "));
    must(fixture, "member_remove", json_object());
    assert_service(fixture, "");
}

/* It outlives the node daemon; after a boot it is started. */
static void test_restarts(struct fixture *fixture, gconstpointer unused)
{
    start_member(fixture);
    restart(fixture);
    nw_pass(fixture->nw, 2 * MINUTE_MS);
    assert_did(fixture, " adopt give-turn");
    nw_power_cut(fixture->nw, &fixture->nw->a);
    fixture->fake->running = false;
    nw_daemon_start(fixture->nw, &fixture->nw->a);
    nw_pass(fixture->nw, MEMBER_FIRST_LOOK_MS);
    assert_did(fixture, " start-new give-turn");
    assert_status(fixture, MEMBER_RUNNING, "");
}

/* A member that has lost its data would vote for what it has forgotten. */
static void test_lost_data(struct fixture *fixture, gconstpointer unused)
{
    static const char lost[] = "its data is gone: var/etcd is not there; it must not begin anew as "
                               "the member that it was (SAF-07): remove it from the members and "
                               "add it as a new one";
    g_autoptr(GError) error = NULL;
    start_member(fixture);
    fixture->fake->data = false;
    fake_members_die(fixture->fake, "etcd ended");
    nw_pass(fixture->nw, 10 * MINUTE_MS);
    assert_did(fixture, "");
    assert_status(fixture, MEMBER_LOST, lost);
    json_t *answer = call(fixture, "member_start", new_member(), &error);
    assert_refused(answer, error, WRONG_STATE, lost);
    must(fixture, "member_aside", json_object());
    must(fixture, "member_start", json_make("{s:s}", "initial", "existing"));
    assert_did(fixture, " start-existing");
}

static void test_old_data(struct fixture *fixture, gconstpointer unused)
{
    g_autoptr(GError) error = NULL;
    start_member(fixture);
    must(fixture, "member_stop", json_object());
    must(fixture, "engine_set", config_args(OTHER_TOKEN));
    json_t *answer = call(fixture, "member_start", new_member(), &error);
    assert_refused(answer, error, WRONG_STATE,
                   "var/etcd has data of the founding " TOKEN ", not of the founding " OTHER_TOKEN
                   "; put it aside first");
    json_autoptr aside = call(fixture, "member_aside", json_object(), &error);
    g_assert_cmpstr(json_string_value(json_object_get(aside, "folder")), ==, "etcd.aside-1");
    fixture->fake->data = true; /* of nobody knows whom */
    answer = call(fixture, "member_start", new_member(), &error);
    assert_refused(answer, error, WRONG_STATE,
                   "var/etcd has data of an unknown founding, not of the founding " OTHER_TOKEN
                   "; put it aside first");
    must(fixture, "member_aside", json_object());
    must(fixture, "member_start", new_member());
}

static void test_refusals(struct fixture *fixture, gconstpointer unused)
{
    g_autoptr(GError) error = NULL;
    json_t *bad = config_args("none");
    json_t *answer = call(fixture, "engine_set", bad, &error);
    assert_refused(answer, error, WRONG_INPUT, "token: must be a UUID for etcd, not \"none\"");
    answer = call(fixture, "member_certify", json_make("{s:s, s:s}", "member", "x", "client", "y"),
                  &error);
    assert_refused(answer, error, WRONG_STATE, "the member is to be prepared first");
    start_member(fixture);
    answer = call(fixture, "member_aside", json_object(), &error);
    assert_refused(answer, error, WRONG_STATE, "the member runs");

    /* A job may look, not touch; a node without members says so. */
    answer = nw_call(fixture->nw, &fixture->nw->a, "member_stop", json_object(), &error);
    g_assert_null(answer);
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_PERMISSION);
    g_clear_error(&error);
    answer = nw_call(fixture->nw, &fixture->nw->b, "engine_status", json_object(), &error);
    assert_refused(answer, error, WRONG_STATE, "this node daemon cares for no member of etcd");

    /* What is not on disk is not done, and what was refused has changed nothing. */
    must(fixture, "member_stop", json_object());
    assert_status(fixture, MEMBER_STOPPED, "");
    must(fixture, "member_aside", json_object());
    g_string_truncate(fixture->fake->did, 0);
    fake_fail_files(fixture->nw->world, "node/member.json", 1);
    answer = call(fixture, "member_start", new_member(), &error);
    g_assert_null(answer);
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_STORAGE);
    assert_did(fixture, "");
}

/* It answers nobody meanwhile, so all others are well first; what does not come is started again.
 */
static void test_started_anew(struct fixture *fixture, gconstpointer unused)
{
    g_autoptr(GError) error = NULL;
    json_t *answer = call(fixture, "member_restart", json_object(), &error);
    assert_refused(answer, error, WRONG_STATE, "the member of this node is not to run");
    start_member(fixture);
    fixture->fake->others = (struct members_others){.count = 2, .silent = 1};
    answer = call(fixture, "member_restart", json_object(), &error);
    assert_refused(answer, error, TEMPORARY,
                   "its member of etcd is not started anew: of 2 others 1 are not well");
    assert_did(fixture, " turn give-turn");
    fixture->fake->others.silent = 0;
    must(fixture, "member_restart", json_object());
    assert_did(fixture, " turn stop start-new");
    nw_pass(fixture->nw, 2 * MEMBER_FIRST_LOOK_MS);
    assert_did(fixture, " give-turn");
    fixture->fake->fail_starts = 1;
    answer = call(fixture, "member_restart", json_object(), &error);
    assert_refused(answer, error, ENVIRONMENT, "the program etcd is missing on this node");
    assert_did(fixture, " turn stop start-new");
    nw_pass(fixture->nw, 3 * MEMBER_FIRST_LOOK_MS);
    assert_did(fixture, " start-new give-turn");
    g_assert_true(fixture->fake->running);
}

/* Its turn lasts until it is well again: till then no other one rewrites its file, and it is not
 * started anew while another one does. Who is not well takes none away. */
static void test_started_in_turn(struct fixture *fixture, gconstpointer unused)
{
    g_autoptr(GError) error = NULL;
    start_member(fixture);
    fixture->fake->others_turn = true;
    json_t *answer = call(fixture, "member_restart", json_object(), &error);
    assert_refused(answer, error, TEMPORARY,
                   "its member of etcd is not started anew: it is the turn of node2");
    assert_did(fixture, " turn");
    fixture->fake->says->healthy = false;
    must(fixture, "member_restart", json_object());
    assert_did(fixture, " stop start-new");
    fixture->fake->says->healthy = true;
    fixture->fake->others_turn = false;
    must(fixture, "member_restart", json_object());
    fixture->fake->says->healthy = false;
    nw_pass(fixture->nw, 10 * MEMBER_FIRST_LOOK_MS);
    assert_did(fixture, " turn stop start-new");
    fixture->fake->says->healthy = true;
    nw_pass(fixture->nw, 2 * MEMBER_FIRST_LOOK_MS);
    assert_did(fixture, " give-turn");
    nw_pass(fixture->nw, 2 * MINUTE_MS);
    assert_did(fixture, "");
}

/* A node daemon that has died has its turn still: the next one gives it back, once the member is
 * well, and others need not wait for the end of its lease. */
static void test_turn_of_the_dead(struct fixture *fixture, gconstpointer unused)
{
    start_member(fixture);
    must(fixture, "member_restart", json_object());
    assert_did(fixture, " turn stop start-new");
    fixture->fake->says->healthy = false;
    restart(fixture);
    nw_pass(fixture->nw, 10 * MEMBER_FIRST_LOOK_MS);
    assert_did(fixture, " adopt");
    fixture->fake->says->healthy = true;
    nw_pass(fixture->nw, 2 * MEMBER_FIRST_LOOK_MS);
    assert_did(fixture, " give-turn");
    nw_pass(fixture->nw, 2 * MINUTE_MS);
    assert_did(fixture, "");
    /* One that stays unwell is not asked more often than others. */
    fixture->fake->says->healthy = false;
    restart(fixture);
    nw_pass(fixture->nw, MEMBER_SETTLED_MS + MEMBER_LOOK_MS);
    fixture->fake->asks = 0;
    nw_pass(fixture->nw, 5 * MEMBER_LOOK_MS);
    g_assert_cmpuint(fixture->fake->asks, <=, 6);
    fixture->fake->says->healthy = true;
    nw_pass(fixture->nw, 2 * MEMBER_LOOK_MS);
    assert_did(fixture, " adopt give-turn");
    must(fixture, "member_restart", json_object());
    assert_did(fixture, " turn stop start-new");
    fixture->fake->running = false; /* it came no further than its end */
    restart(fixture);
    nw_pass(fixture->nw, 3 * MEMBER_FIRST_LOOK_MS);
    assert_did(fixture, " start-new give-turn");
}

/* A damaged record keeps no guest from its node daemon. */
static void test_damaged(struct fixture *fixture, gconstpointer unused)
{
    nw_daemon_kill(fixture->nw, &fixture->nw->a);
    fake_file_put(fixture->nw->world, NODE_A, FILE_STATE, "node/member.json", "{\"run\":1}");
    nw_daemon_start(fixture->nw, &fixture->nw->a);
    assert_status(fixture, MEMBER_ABSENT,
                  "var/node/member.json is damaged (run: must be true or false); put back the file "
                  "as it was");
}

static void test_upkeep(struct fixture *fixture, gconstpointer unused)
{
    struct fake_members *fake = fixture->fake;
    fake->says->leads = true;
    fake->says->revision = 1000;
    start_member(fixture);
    fake->says->revision = 5000;
    nw_pass(fixture->nw, 50 * MINUTE_MS);
    assert_did(fixture, "");
    nw_pass(fixture->nw, 15 * MINUTE_MS);
    assert_did(fixture, " compact");
    g_assert_cmpuint(fake->compacted, ==, 5000);
    fake->says->store_bytes = MIB(100);
    fake->says->used_bytes = MIB(49);
    fake->others_turn = true;
    nw_pass(fixture->nw, 2 * MINUTE_MS + 1000);
    assert_did(fixture, " turn turn");
    fake->others_turn = false;
    fake->others = (struct members_others){.count = 2, .silent = 1};
    nw_pass(fixture->nw, 30 * MINUTE_MS); /* it would take the majority away */
    assert_did(fixture, "");
    fake->others.silent = 0;
    nw_pass(fixture->nw, 5 * MINUTE_MS);
    assert_did(fixture, " turn defragment give-turn");
}

/* Several files at their limit: one after the other, and none waits for ever. */
static void test_full_together(struct fixture *fixture, gconstpointer unused)
{
    struct fake_members *fake = fixture->fake;
    fake->says->revision = 1000;
    start_member(fixture);
    g_ptr_array_add(fake->says->alarms, g_strdup("NOSPACE"));
    fake->says->store_bytes = LIMIT_ETCD_STORE_BYTES;
    fake->says->used_bytes = LIMIT_ETCD_STORE_BYTES / 2;
    fake->others = (struct members_others){.count = 2, .full_before = 1};
    nw_pass(fixture->nw, 2 * MINUTE_MS);
    g_assert_null(strstr(fake->did->str, "defragment"));
    g_assert_nonnull(strstr(fake->did->str, "compact"));
    fake->others.full_before = 0; /* its turn, within a second */
    g_string_truncate(fake->did, 0);
    nw_pass(fixture->nw, 2 * MEMBER_FIRST_LOOK_MS + 100);
    assert_did(fixture, " compact defragment disarm");

    /* Nobody before it makes room: it goes on without them. */
    nw_pass(fixture->nw, 2 * MINUTE_MS);
    g_ptr_array_add(fake->says->alarms, g_strdup("NOSPACE"));
    fake->says->store_bytes = LIMIT_ETCD_STORE_BYTES;
    fake->others = (struct members_others){.count = 2, .silent = 1, .full_before = 1};
    while (fake->did->len == 0)
        nw_pass(fixture->nw, 1000);
    nw_pass(fixture->nw, 2 * UPKEEP_TURN_S * 1000 - 5000);
    g_assert_null(strstr(fake->did->str, "defragment"));
    nw_pass(fixture->nw, 10000);
    g_assert_nonnull(strstr(fake->did->str, "defragment"));
}

/* A file at its limit, with which no member takes changes: room is made without a turn, and the
 * alarm is taken back once the file fits, and not before. */
static void test_full(struct fixture *fixture, gconstpointer unused)
{
    struct fake_members *fake = fixture->fake;
    fake->says->revision = 1000;
    start_member(fixture);
    g_ptr_array_add(fake->says->alarms, g_strdup("NOSPACE"));
    fake->says->store_bytes = LIMIT_ETCD_STORE_BYTES;
    fake->says->used_bytes = LIMIT_ETCD_STORE_BYTES;
    fake->others_turn = true;
    nw_pass(fixture->nw, MINUTE_MS + 1000);
    assert_did(fixture, " compact defragment");
    g_assert_cmpuint(fake->compacted, ==, 1000);
    nw_pass(fixture->nw, 8 * MINUTE_MS);
    assert_did(fixture, "");
    fake->says->used_bytes = LIMIT_ETCD_STORE_BYTES / 2;
    nw_pass(fixture->nw, 3 * MINUTE_MS);
    assert_did(fixture, " compact defragment disarm");
    g_assert_cmpuint(fake->says->alarms->len, ==, 0);

    /* Somebody has made room by hand. Other alarms are for a person. */
    g_ptr_array_add(fake->says->alarms, g_strdup("CORRUPT"));
    g_ptr_array_add(fake->says->alarms, g_strdup("NOSPACE"));
    nw_pass(fixture->nw, MINUTE_MS);
    assert_did(fixture, " disarm");
    g_ptr_array_add(fake->says->alarms, g_strdup("CORRUPT"));
    nw_pass(fixture->nw, 5 * MINUTE_MS);
    assert_did(fixture, "");
}

/* --- upkeep alone --- */

static void test_due(void)
{
    struct member_maintenance upkeep = {.limit = LIMIT_ETCD_STORE_BYTES};
    g_autoptr(GPtrArray) alarms = g_ptr_array_new();
    struct member_status say = {.healthy = true, .leads = true, .revision = 100, .alarms = alarms};
    g_assert_cmpuint(member_maintenance_look(&upkeep, &say, 0).compact, ==, 0);
    say.revision = 100 + COMPACT_REVISIONS;
    g_assert_cmpuint(member_maintenance_look(&upkeep, &say, 60000).compact, ==,
                     0); /* seen before: 100 */
    say.revision += 7;
    g_assert_cmpuint(member_maintenance_look(&upkeep, &say, 120000).compact, ==,
                     100 + COMPACT_REVISIONS);
    member_maintenance_compacted(&upkeep, 100 + COMPACT_REVISIONS, 120000);
    g_assert_cmpuint(member_maintenance_look(&upkeep, &say, 180000).compact, ==, 0);
    g_assert_cmpuint(member_maintenance_look(&upkeep, &say, 120000 + COMPACT_INTERVAL_MS).compact,
                     ==, 107 + COMPACT_REVISIONS);

    /* Not healthy: nothing. No leader: nothing; leader again: the count begins. */
    say.healthy = false;
    g_assert_cmpuint(member_maintenance_look(&upkeep, &say, 20 * COMPACT_INTERVAL_MS).compact, ==,
                     0);
    say.healthy = true;
    say.leads = false;
    g_assert_cmpuint(member_maintenance_look(&upkeep, &say, 21 * COMPACT_INTERVAL_MS).compact, ==,
                     0);
    say.leads = true;
    g_assert_cmpuint(member_maintenance_look(&upkeep, &say, 22 * COMPACT_INTERVAL_MS).compact, ==,
                     0);

    /* More than half, and worth it; once an hour. */
    say.store_bytes = DEFRAGMENT_LEAST_BYTES - 1;
    g_assert_false(member_maintenance_look(&upkeep, &say, 0).defragment);
    say.store_bytes = 2 * DEFRAGMENT_LEAST_BYTES;
    say.used_bytes = DEFRAGMENT_LEAST_BYTES;
    g_assert_false(member_maintenance_look(&upkeep, &say, 0).defragment);
    say.used_bytes--;
    g_assert_true(member_maintenance_look(&upkeep, &say, 0).defragment);
    member_maintenance_defragmented(&upkeep, 0);
    g_assert_false(member_maintenance_look(&upkeep, &say, DEFRAGMENT_INTERVAL_MS - 1).defragment);
    g_assert_true(member_maintenance_look(&upkeep, &say, DEFRAGMENT_INTERVAL_MS).defragment);
}

/* Several members on hosts whose clocks agree on nothing but their pace: who is full begins only
 * while all others are well, and two never at once while each turn is long enough. */
static void test_turns(void)
{
    struct member_maintenance upkeep = {
        .limit = LIMIT_ETCD_STORE_BYTES, .full = true, .full_ms = 1000};
    const gint64 turn_ms = UPKEEP_TURN_S * 1000;
    struct members_others others = {.count = 2};
    g_assert_true(member_maintenance_may_defragment(&upkeep, false, &others, 1000));
    g_assert_true(member_maintenance_may_defragment(&upkeep, true, &others, 1000));
    others.silent = 1;
    g_assert_false(
        member_maintenance_may_defragment(&upkeep, false, &others, 1000 + 100 * turn_ms));
    g_assert_false(member_maintenance_may_defragment(&upkeep, true, &others, 1000 + turn_ms - 1));
    g_assert_true(member_maintenance_may_defragment(&upkeep, true, &others, 1000 + turn_ms));
    others = (struct members_others){.count = 2, .full_before = 2};
    g_assert_true(
        member_maintenance_may_defragment(&upkeep, false, &others, 1000)); /* by a turn in etcd */
    g_assert_false(
        member_maintenance_may_defragment(&upkeep, true, &others, 1000 + 3 * turn_ms - 1));
    g_assert_true(member_maintenance_may_defragment(&upkeep, true, &others, 1000 + 3 * turn_ms));
    /* Its own last try counts as the beginning. */
    member_maintenance_defragmented(&upkeep, 1000 + 3 * turn_ms);
    g_assert_false(
        member_maintenance_may_defragment(&upkeep, true, &others, 1000 + 6 * turn_ms - 1));
    g_assert_true(member_maintenance_may_defragment(&upkeep, true, &others, 1000 + 6 * turn_ms));
}

/* "yes", or why not; `file`: what etc/engine.json says, NULL: there is none. */
static char *may_promise(struct fixture *fixture, enum engine_kind kind, enum engine_phase state,
                         const char *node, const char *master, guint64 serial)
{
    struct member_care *care = fixture->nw->a.core->care;
    struct engine_config *config = engine_config_new();
    g_autoptr(GError) error = NULL;
    config->kind = kind;
    config->state = state;
    config->serial = state == ENGINE_DECIDING ? 40 : 0;
    engine_config_free(fixture->fake->config);
    fixture->fake->config = config;
    return member_care_may_promise(care, node, master, serial, &error)
               ? g_strdup("yes")
               : g_strdup_printf("%s: %s", fettle_error_name(error), error->message);
}

/* Behind a step that may have been taken nobody becomes master of a store but its own node, whose
 * store is the better witness. */
static void test_promises(struct fixture *fixture, gconstpointer unused)
{
    static const struct {
        enum engine_kind kind;
        enum engine_phase state;
        const char *node, *master, *said;
        guint64 serial; /* that the asker has */
    } cases[] = {
        {ENGINE_KIND_SQLITE, ENGINE_ACTIVE, NODE_B, NODE_M, "yes"},
        {ENGINE_KIND_ETCD, ENGINE_PREPARING, NODE_B, NODE_M, "yes"},
        {ENGINE_KIND_ETCD, ENGINE_DECIDING, NODE_B, NODE_M, "deciding"},
        {ENGINE_KIND_ETCD, ENGINE_DECIDING, NODE_M, NODE_M, "yes"},
        {ENGINE_KIND_ETCD, ENGINE_DECIDING, NODE_A, NODE_M, "yes"},
        /* That it was not made is proven by what came after it with the engine sqlite. */
        {ENGINE_KIND_ETCD, ENGINE_DECIDING, NODE_B, NODE_M, "deciding", 39},
        {ENGINE_KIND_ETCD, ENGINE_DECIDING, NODE_B, NODE_M, "yes", 40},
        {ENGINE_KIND_ETCD, ENGINE_DECIDING, NODE_B, NODE_M, "yes", 41},
        {ENGINE_KIND_ETCD, ENGINE_ACTIVE, NODE_B, NODE_M, "active", 41},
        {ENGINE_KIND_ETCD, ENGINE_ACTIVE, NODE_B, NODE_M, "active"},
        {ENGINE_KIND_ETCD, ENGINE_ACTIVE, NODE_M, NODE_M, "active"},
        {ENGINE_KIND_ETCD, ENGINE_ACTIVE, NODE_A, NODE_M, "yes"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *expected =
            strcmp(cases[i].said, "yes") == 0
                ? g_strdup("yes")
                : g_strdup_printf("wrong_state: this node promises no mastership of the engine "
                                  "sqlite: etc/engine.json says etcd, %s",
                                  cases[i].said);
        g_autofree char *said = may_promise(fixture, cases[i].kind, cases[i].state, cases[i].node,
                                            cases[i].master, cases[i].serial);
        g_assert_cmpstr(said, ==, expected);
    }
}

/* The same by the call: a refusal leaves no promise behind. */
static void test_promise_refused(struct fixture *fixture, gconstpointer unused)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *said =
        may_promise(fixture, ENGINE_KIND_ETCD, ENGINE_ACTIVE, NODE_M, NODE_M, 0);
    for (guint i = 0; i < 2; i++) {
        json_autoptr answer = call(fixture, "promise_epoch",
                                   json_make("{s:I, s:i, s:i, s:s, s:b}", "history",
                                             (json_int_t)fixture->nw->stamp.history, "epoch", 50,
                                             "since", 50, "node", NODE_M, "begins", 0),
                                   &error);
        if (i == 0) {
            g_assert_cmpstr(error ? error->message : "", ==, said + strlen("wrong_state: "));
            g_assert_null(answer);
            g_clear_error(&error);
            g_free(may_promise(fixture, ENGINE_KIND_SQLITE, ENGINE_ACTIVE, NODE_M, NODE_M, 0));
            continue;
        }
        g_assert_no_error(error);
        g_assert_true(json_is_true(json_object_get(answer, "granted")));
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
#define TEST(name, fn) g_test_add(name, struct fixture, NULL, set_up, fn, tear_down)
    TEST("/keeper/life", test_life);
    TEST("/keeper/service#LUX-04", test_service);
    TEST("/keeper/pauses", test_pauses);
    TEST("/keeper/restarts", test_restarts);
    TEST("/keeper/lost-data#SAF-07", test_lost_data);
    TEST("/keeper/old-data", test_old_data);
    TEST("/keeper/refusals", test_refusals);
    TEST("/keeper/started-anew#SAF-94", test_started_anew);
    TEST("/keeper/started-anew-in-turn#SAF-94", test_started_in_turn);
    TEST("/keeper/turn-of-the-dead#SAF-94", test_turn_of_the_dead);
    TEST("/keeper/damaged", test_damaged);
    TEST("/keeper/upkeep", test_upkeep);
    TEST("/keeper/full-together#SAF-08", test_full_together);
    TEST("/keeper/full", test_full);
    TEST("/keeper/promises#SAF-07", test_promises);
    TEST("/keeper/promise-refused#SAF-07", test_promise_refused);
    g_test_add_func("/keeper/due", test_due);
    g_test_add_func("/keeper/turns#SAF-08", test_turns);
    return g_test_run();
}
