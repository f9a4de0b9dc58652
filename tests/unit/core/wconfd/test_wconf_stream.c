/*
 * The change stream, as subscribers and the copies of other candidates get it: who is told first,
 * and what is too much for one answer. core/wconfd/wconf_stream.c.
 */
#include <string.h>

#include "core/config/follow.h"
#include "unit/core/world/copies_world.h"

enum { DECISION_BYTES = 32 * 1000, MANY = LIMIT_CHANGES_BYTES / DECISION_BYTES + 2 };

static struct change *put_decision(guint number)
{
    g_autofree char *id = g_strdup_printf("00000000-0000-4000-8000-%012u", number);
    g_autofree char *line = g_strnfill(1000, 'x');
    json_t *lines = json_array();
    for (guint i = 0; i < DECISION_BYTES / 1000; i++)
        json_array_append_new(lines, json_string(line));
    return put("decision", id, 0,
               json_make("{s:s,s:s,s:s,s:s,s:i,s:s,s:s,s:o}", "uuid", id, "author", "test",
                         "subject_kind", "node", "subject", NODE1, "at_us", 1, "verdict", "act",
                         "summary", "x", "evidence", lines));
}

/* `count` of them in one commit. */
static void commit_decisions(guint first, guint count)
{
    g_autofree char *id = g_strdup_printf("00000000-0000-4000-8000-%012u", first + 1000000);
    GPtrArray *changes = changes_of(put_decision(first), NULL);
    struct fake_reply reply;
    for (guint i = 1; i < count; i++)
        g_ptr_array_add(changes, put_decision(first + i));
    watcher_commit_start(id, changes, &reply);
    if (!reply.done)
        fake_advance(world.world, 1000); /* nobody follows */
    g_autofree char *stored = world_reply(&reply);
    g_assert_true(g_str_has_prefix(stored, "{\"serial\":"));
}

static void wait_start(guint64 serial, guint wait_ms, struct fake_reply *reply)
{
    fake_call_start(
        world.luxid, 0, NODE1, ROLE_WCONFD, "wait_changes",
        json_make("{s:i,s:I,s:i}", "history", 5, "serial", (json_int_t)serial, "wait_ms", wait_ms),
        reply);
    fake_settle(world.world);
}

/* "SERIAL: n changes", or "pieces: why". */
static char *said(struct fake_reply *reply)
{
    fake_advance(world.world, 1);
    g_assert_true(reply->done);
    g_assert_no_error(reply->error);
    const json_t *answer = reply->result;
    json_int_t serial = json_integer_value(json_object_get(answer, "serial"));
    size_t changes = json_array_size(json_object_get(answer, "changes"));
    const char *why = json_string_value(json_object_get(answer, "why"));
    bool pieces = json_is_true(json_object_get(answer, "pieces"));
    g_assert_true(!pieces || (changes == 0 && json_is_true(json_object_get(answer, "snapshot"))));
    char *text = pieces ? g_strdup_printf("pieces: %s", why)
                        : g_strdup_printf("%d: %zu changes", (int)serial, changes);
    fake_reply_clear(reply);
    return text;
}

static const char too_much[] = "pieces: what has changed is too much for one answer";

/* What a copy or a subscriber lacks may be more than a frame takes: then all comes in pieces. */
static void test_too_much(void)
{
    struct fake_reply reply;
    copies_set_up();
    g_autofree char *first = digest();
    commit_decisions(0, MANY / 2);
    ask_start(node2, 5, 1, first, 0, &reply);
    g_autofree char *half = g_strdup_printf("2: %u changes", MANY / 2);
    assert_says(said(&reply), half);
    commit_decisions(MANY / 2, MANY - MANY / 2);
    ask_start(node2, 5, 1, first, 0, &reply);
    assert_says(said(&reply), too_much);
    wait_start(1, 0, &reply);
    assert_says(said(&reply), too_much);
    wait_start(0, 0, &reply); /* a snapshot of few objects */
    assert_says(said(&reply), too_much);
    wait_start(2, 0, &reply);
    g_autofree char *rest = g_strdup_printf("3: %u changes", MANY - MANY / 2);
    assert_says(said(&reply), rest);
    world_tear_down();
}

/* Who waits is told the same. */
static void test_too_much_at_once(void)
{
    struct fake_reply waiting, commits[2];
    copies_set_up();
    wait_start(1, 10000, &waiting);
    fake_engine_hold(world.engine);
    for (guint i = 0; i < 2; i++) {
        GPtrArray *changes = changes_of(put_tag(i ? "b" : "a"), NULL);
        for (guint k = 0; k < MANY / 2 + 1; k++)
            g_ptr_array_add(changes, put_decision(1000 * i + k));
        watcher_commit_start(i ? ID_B : ID_A, changes, &commits[i]);
    }
    g_assert_false(waiting.done);
    fake_engine_release(world.engine);
    fake_advance(world.world, 2000); /* nobody follows */
    assert_says(said(&waiting), too_much);
    for (guint i = 0; i < 2; i++)
        fake_reply_clear(&commits[i]);
    world_tear_down();
}

/* What clients are told of a change outlives this node as surely as the answer to it. */
static void test_copies_first(void)
{
    struct fake_reply commit, two, waiting, late, whole;
    copies_set_up();
    g_autofree char *first = digest();
    ask_start(node2, 5, 1, first, 10000, &two);
    wait_start(1, 10000, &waiting);
    commit_start(ID_A, "a", &commit);
    assert_says(said(&two), "2: 1 changes");
    wait_start(1, 0, &late);
    wait_start(0, 0, &whole);
    fake_advance(world.world, 500);
    g_assert_false(commit.done || waiting.done || late.done || whole.done);
    g_autofree char *second = digest();
    ask_start(node2, 5, 2, second, 10000, &two);
    assert_says(world_reply(&commit), "{\"serial\":2}");
    assert_says(said(&waiting), "2: 1 changes");
    assert_says(said(&late), "2: 1 changes");
    g_assert_true(whole.done);
    fake_reply_clear(&whole);

    /* Nobody has it before the patience is over; a copy that is filled is not waited for. */
    wait_start(2, 10000, &waiting);
    commit_start(ID_B, "b", &commit);
    assert_says(said(&two), "3: 1 changes");
    fake_call_start_stamped(node3, 0, (struct stamp){5, world.epoch}, NODE1, ROLE_WCONFD,
                            "wait_changes", json_make("{s:i,s:i}", "history", 5, "serial", 2),
                            &late);
    assert_says(said(&late), "3: 1 changes");
    fake_advance(world.world, 900);
    g_assert_false(commit.done || waiting.done);
    fake_advance(world.world, 200);
    assert_says(world_reply(&commit), "{\"serial\":3}");
    assert_says(said(&waiting), "3: 1 changes");
    world_tear_down();
}

/* A mastership that ends in between: nobody is told what may be lost with it. */
static void test_end_before_copies(void)
{
    struct fake_reply commit, two, waiting, refused;
    copies_set_up();
    g_autofree char *first = digest();
    ask_start(node2, 5, 1, first, 10000, &two);
    wait_start(1, 10000, &waiting);
    commit_start(ID_A, "a", &commit);
    fake_advance(world.world, 1);
    fake_reply_clear(&two);
    g_assert_false(waiting.done);
    fake_engine_depose(world.engine, true);
    commit_start(ID_B, "b", &refused);
    g_assert_true(commit.done && refused.done && waiting.done);
    g_assert_nonnull(waiting.error);
    fake_reply_clear(&commit);
    fake_reply_clear(&refused);
    fake_reply_clear(&waiting);
    world_tear_down();
}

static void start_cb(void *data)
{
    g_autoptr(GError) error = NULL;
    follow_start(data, &error);
    g_assert_no_error(error);
}

/* A subscriber that begins, and one that is behind: both have all of it in the end. */
static void test_subscriber(void)
{
    copies_set_up();
    struct follow *follow = follow_new(world.luxid, NULL, NULL);
    commit_decisions(0, MANY);
    fake_run(world.luxid, start_cb, follow);
    g_assert_cmpuint(config_count(follow_config(follow), "decision"), ==, MANY);
    commit_decisions(MANY, MANY);
    fake_advance(world.world, 2000);
    g_assert_cmpuint(config_count(follow_config(follow), "decision"), ==, 2 * MANY);
    g_assert_cmpuint(config_digest(follow_config(follow)), ==,
                     config_digest(wconf_config(world.wconf)));
    fake_kill(world.luxid);
    follow_free(follow);
    world_tear_down();
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/stream/copies-first#SAF-07,SAF-30", test_copies_first);
    g_test_add_func("/stream/end-before-copies#SAF-07,SAF-08", test_end_before_copies);
    g_test_add_func("/stream/too-much#SAF-07,WCF-18", test_too_much);
    g_test_add_func("/stream/too-much/at-once#WCF-18", test_too_much_at_once);
    g_test_add_func("/stream/too-much/subscriber#WCF-18", test_subscriber);
    return g_test_run();
}
