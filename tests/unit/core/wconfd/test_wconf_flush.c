/*
 * flush_config: waiting until every candidate in reach has the newest change.
 * core/wconfd/wconf_flush.c.
 */
#include "core/wconfd/wconf_private.h"
#include "unit/core/world/copies_world.h"

static void flush_start(const char *args, struct fake_reply *reply)
{
    fake_call_start(person, 0, NODE1, ROLE_WCONFD, "flush_config", json_loads(args, 0, NULL),
                    reply);
    fake_settle(world.world);
}

/* "SERIAL: NAME SERIAL, NAME SERIAL out", or the error. */
static char *flushed(struct fake_reply *reply)
{
    g_autoptr(GString) text = g_string_new(NULL);
    g_assert_true(reply->done);
    if (reply->error) {
        g_string_printf(text, "%s: %s", fettle_error_name(reply->error), reply->error->message);
        fake_reply_clear(reply);
        return g_string_free(g_steal_pointer(&text), FALSE);
    }
    g_autoptr(GError) error = NULL;
    record_autoptr(flush_config_result) result =
        flush_config_result_parse(reply->result, RECORD_STRICT, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(result->history, ==, 5);
    g_assert_cmpuint(result->epoch, ==, world.epoch);
    g_string_printf(text, "%" G_GUINT64_FORMAT ":", result->serial);
    for (guint i = 0; i < result->copies->len; i++) {
        const struct flushed_copy *copy = result->copies->pdata[i];
        g_string_append_printf(text, "%s %s %" G_GUINT64_FORMAT "%s", i ? "," : "", copy->name,
                               copy->serial, copy->reachable ? "" : " out");
    }
    fake_reply_clear(reply);
    return g_string_free(g_steal_pointer(&text), FALSE);
}

/* A commit is answered when one of two has it; this waits for the other too. */
static void test_all(void)
{
    struct fake_reply commit, two, three, flush;
    copies_set_up();
    g_autofree char *first = digest();
    ask_start(node2, 5, 1, first, 10000, &two);
    ask_start(node3, 5, 1, first, 10000, &three);
    flush_start("{}", &flush);
    assert_says(flushed(&flush), "1: node2 1, node3 1");
    commit_start(ID_A, "a", &commit);
    fake_advance(world.world, 1);
    fake_reply_clear(&two);
    fake_reply_clear(&three);
    g_autofree char *second = digest();
    ask_start(node2, 5, 2, second, 10000, &two);
    g_assert_true(commit.done);
    fake_reply_clear(&commit);
    flush_start("{}", &flush);
    g_assert_false(flush.done);
    ask_start(node3, 5, 2, second, 10000, &three);
    assert_says(flushed(&flush), "2: node2 2, node3 2");
    fake_advance(world.world, 20000);
    fake_reply_clear(&two);
    fake_reply_clear(&three);
    world_tear_down();
}

/* Who is out of reach is not waited for, and named; also behind a master that has just begun, for
 * whose candidates no commit waits. */
static void test_out_of_reach(void)
{
    struct fake_reply flush, two;
    copies_set_up();
    g_autofree char *first = digest();
    ask_start(node2, 5, 1, first, 0, &two);
    fake_advance(world.world, 1);
    fake_reply_clear(&two);
    flush_start("{\"wait_ms\":100}", &flush);
    g_assert_false(flush.done);
    fake_advance(world.world, 100);
    assert_says(flushed(&flush),
                "timeout: serial 1 is stored, but after 100 ms not on the disk of every candidate "
                "in reach: node3 has not been heard of yet; they get it by themselves, ask again");
    flush_start("{}", &flush);
    g_assert_false(flush.done);
    fake_advance(world.world, 900); /* the patience for node3 began with the first question */
    assert_says(flushed(&flush), "1: node2 1, node3 0 out");
    world_tear_down();
}

/* With a replicated engine nothing counts a silent copy out but the time. */
static void test_replicated(void)
{
    struct fake_reply flush, commit, two, three;
    copies_set_up();
    fake_engine_base(world.engine)->replicated = true;
    g_autofree char *first = digest();
    ask_start(node2, 5, 1, first, 10000, &two);
    ask_start(node3, 5, 1, first, 10000, &three);
    commit_start(ID_A, "a", &commit);
    fake_advance(world.world, 1);
    g_assert_true(commit.done);
    fake_reply_clear(&commit);
    fake_reply_clear(&two);
    fake_reply_clear(&three);
    g_autofree char *second = digest();
    ask_start(node2, 5, 2, second, 100000, &two);
    flush_start("{\"wait_ms\":1000}", &flush);
    fake_advance(world.world, 1000);
    assert_says(flushed(&flush),
                "timeout: serial 2 is stored, but after 1000 ms not on the disk of every candidate "
                "in reach: node3 is at serial 1; they get it by themselves, ask again");
    fake_advance(world.world, 20000);
    ask_start(node2, 5, 2, second, 0, &three);
    fake_advance(world.world, 1);
    fake_reply_clear(&three);
    flush_start("{}", &flush);
    g_assert_false(flush.done);
    fake_advance(world.world, 5000);
    assert_says(flushed(&flush), "2: node2 2, node3 1 out");
    fake_advance(world.world, 100000);
    fake_reply_clear(&two);
    fake_engine_base(world.engine)->replicated = false;
    world_tear_down();
}

/* Bad input, callers that may not, too many at once; and a master that is over answers nobody. */
static void test_refused(void)
{
    struct fake_reply flush, many[LIMIT_FLUSHES];
    copies_set_up();
    flush_start("{\"wait_ms\":600001}", &flush);
    assert_says(flushed(&flush), "wrong_input: wait_ms: must be at most 600000");
    flush_start("{\"wait_ms\":\"long\"}", &flush);
    assert_says(flushed(&flush), "wrong_input: wait_ms: must be a number");
    assert_says(ask_wconf(&world, world.luxid, "flush_config", json_object()),
                "permission_denied: role luxid may not call wconfd.flush_config");
    for (guint i = 0; i < LIMIT_FLUSHES; i++)
        flush_start("{}", &many[i]);
    flush_start("{}", &flush);
    assert_says(flushed(&flush), "limit_exceeded: 64 calls wait for the copies of all candidates "
                                 "already; try again later");
    fake_engine_depose(world.engine, true);
    struct fake_reply refused;
    commit_start(ID_A, "a", &refused);
    fake_reply_clear(&refused);
    for (guint i = 0; i < LIMIT_FLUSHES; i++)
        assert_says(flushed(&many[i]),
                    "resource_not_available: serial 2: the commit was not stored: "
                    "another node is the master");
    world_tear_down();
}

/* Nobody else is a candidate: there is nothing to wait for. */
static void test_alone(void)
{
    struct fake_reply flush;
    world_set_up();
    person = fake_process(world.world, NODE1, ROLE_CLI);
    flush_start("{}", &flush);
    assert_says(flushed(&flush), "1:");
    world_tear_down();
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/flush/all#WCF-04", test_all);
    g_test_add_func("/flush/out-of-reach#WCF-04", test_out_of_reach);
    g_test_add_func("/flush/replicated#WCF-04", test_replicated);
    g_test_add_func("/flush/refused#WCF-04", test_refused);
    g_test_add_func("/flush/alone#WCF-04", test_alone);
    return g_test_run();
}
