/* What a candidate's copy takes from whoever answers as the master: nothing that is older than what
 * it has. The answers are the test's own, so that they can be what no master of today would say. */
#include "core/candidate/replication.h"

#include <string.h>

#include "helper/fake_copy.h"
#include "helper/fake_engine.h"
#include "proto/records.h"
#include "unit/core/world/config_world.h"

/* Who is asked. Each answer names a mastership of its own, as if another one answered. */
struct master {
    guint64 history;
    guint64 followed, pieces, rest; /* the epochs of its answers */
    guint64 serial;
    bool snapshot; /* the copy is to be filled anew */
    bool too_much; /* what has changed while it is filled is too much for one answer */
    guint parts;   /* in which it is told then; 0: in one */
    bool told;     /* it has answered; another question finds nobody */
    guint64 more;  /* there is a second piece, of this epoch; 0: there is none */
};

static struct fake_world *world;
static struct env *wconfd;
static struct fake_copy *copy;
static struct replication *copying;
static struct master master;

static json_t *changes_json(guint64 epoch, bool snapshot)
{
    return json_make("{sI sI sI sb sb}", "history", (json_int_t)master.history, "epoch",
                     (json_int_t)epoch, "serial", (json_int_t)master.serial, "snapshot", snapshot,
                     "pieces", snapshot);
}

static json_t *answer_follow(const struct rpc_request *request, const char *to_node, void *data,
                             GError **error)
{
    if (master.told) {
        fettle_set_error(error, UNREACHABLE, "it asks again");
        return NULL;
    }
    master.told = true;
    return changes_json(master.followed, master.snapshot);
}

static json_t *answer_snapshot(const struct rpc_request *request, const char *to_node, void *data,
                               GError **error)
{
    bool first = json_string_length(json_object_get(request->args, "key")) == 0;
    const char *node = first ? NODE1 : NODE2;
    return json_make("{sI sI sI sb s[{ss ss ss sI so}]}", "history", (json_int_t)master.history,
                     "epoch", (json_int_t)(first ? master.pieces : master.more), "serial",
                     (json_int_t)master.serial, "more", first && master.more, "changes", "op",
                     "put", "kind", "node", "key", node, "version", (json_int_t)master.serial,
                     "object", object_node(node));
}

/* With parts: a node more in each, up to the serial that it comes to. */
static json_t *answer_rest(const struct rpc_request *request, const char *to_node, void *data,
                           GError **error)
{
    json_int_t since = json_integer_value(json_object_get(request->args, "serial"));
    if (!master.parts)
        return changes_json(master.rest, master.too_much);
    g_assert_true(json_is_true(json_object_get(request->args, "part")));
    json_int_t left = (json_int_t)master.serial + master.parts - since;
    if (left <= 0)
        return json_make("{sI sI sI}", "history", (json_int_t)master.history, "epoch",
                         (json_int_t)master.rest, "serial", since);
    g_autofree char *key = g_strdup_printf("11111111-0000-4000-8000-%012d", (int)since);
    return json_make("{sI sI sI sb s[{ss ss ss sI so}]}", "history", (json_int_t)master.history,
                     "epoch", (json_int_t)master.rest, "serial", since + 1, "more", left > 1,
                     "changes", "op", "put", "kind", "node", "key", key, "version", since + 1,
                     "object", object_node(NODE1));
}

static json_t *answer_ids(const struct rpc_request *request, const char *to_node, void *data,
                          GError **error)
{
    return json_make("{sI sI}", "history", (json_int_t)master.history, "epoch",
                     (json_int_t)master.rest);
}

/* A master of a version that knew nothing of them, as rpc.c and wconf.c answer; or one that fails.
 */
static json_t *answer_no_ids(const struct rpc_request *request, const char *to_node, void *data,
                             GError **error)
{
    if (data)
        fettle_set_error(error, PROTOCOL, "wconfd has no method commit_ids");
    else
        fettle_set_error(error, TEMPORARY, "not now");
    return NULL;
}

/* What the copy is at: "history epoch serial", then how often it was filled, then why it does not
 * go on; g_free() it. */
static char *at(void)
{
    struct copy_position position;
    struct replication_state state;
    struct copy *base = fake_copy_base(copy);
    base->ops->position(base, &position);
    replication_state(copying, &state);
    return g_strdup_printf(
        "%" G_GUINT64_FORMAT " %" G_GUINT64_FORMAT " %" G_GUINT64_FORMAT ", %u refills%s%s",
        position.history, position.epoch, position.serial, fake_copy_refills(copy),
        state.why ? ": " : "", state.why ? state.why : "");
}

/* Between two questions after a failure the copy waits for so long. */
#define PAUSE_MS 300

/* The next question is answered by this one; then what the copy is at is as expected. */
static void expect(struct master answering, const char *expected)
{
    master = answering;
    fake_advance(world, PAUSE_MS);
    g_autofree char *found = at();
    g_assert_cmpstr(found, ==, expected);
}

static void set_up(void)
{
    world = fake_world_new();
    fake_world_set_master(world, NODE1);
    wconfd = fake_process(world, NODE2, ROLE_WCONFD);
    fake_script(world, NODE1, ROLE_WCONFD, "follow", answer_follow, NULL);
    fake_script(world, NODE1, ROLE_WCONFD, "snapshot", answer_snapshot, NULL);
    fake_script(world, NODE1, ROLE_WCONFD, "wait_changes", answer_rest, NULL);
    fake_script(world, NODE1, ROLE_WCONFD, "commit_ids", answer_ids, NULL);
    copy = fake_copy_new();
    copying = replication_new(wconfd, fake_copy_base(copy), NULL, NULL);
    replication_start(copying);
    expect((struct master){5, 4, 4, 4, 7, .snapshot = true}, "5 4 7, 1 refills: it asks again");
}

static void tear_down(void)
{
    fake_kill(wconfd);
    replication_free(copying);
    fake_copy_free(copy);
    fake_world_free(world);
}

#define OLDER "who was asked is master of epoch 3, and the copy is of epoch 4 already"

#define TOO_MUCH                                                                                   \
    "while the copy was filled the master has changed, or more has changed than it can tell; it "  \
    "is filled again"

/* A master that was deposed and has not heard so. */
static void test_no_older_refill(void)
{
    set_up();
    expect((struct master){5, 3, 3, 3, 9, .snapshot = true}, "5 4 7, 1 refills: " OLDER);
    /* Nothing was asked for that is thrown away then. */
    g_assert_cmpuint(fake_count_calls(world, NODE1 "/wconfd snapshot"), ==, 1);
    /* It is replaced meanwhile by one that knows better, or the other way round. */
    expect((struct master){5, 4, 3, 3, 9, .snapshot = true}, "5 4 7, 1 refills: " OLDER);
    expect((struct master){5, 3, 4, 4, 9, .snapshot = true}, "5 4 7, 1 refills: " OLDER);
    expect((struct master){5, 4, 4, 3, 9, .snapshot = true}, "5 4 7, 1 refills: " TOO_MUCH);
    tear_down();
}

/* Then it is filled once more, from the beginning. */
static void test_too_much_meanwhile(void)
{
    set_up();
    expect((struct master){5, 4, 4, 4, 9, .snapshot = true, .too_much = true},
           "5 4 7, 1 refills: " TOO_MUCH);
    expect((struct master){5, 4, 4, 4, 10, .snapshot = true}, "5 4 10, 2 refills: it asks again");
    g_assert_cmpuint(fake_count_calls(world, NODE1 "/wconfd snapshot"), ==, 3);
    tear_down();
}

static void count_object(const char *kind, const char *key, guint64 version, json_t *object,
                         void *data)
{
    ++*(guint *)data;
}

/* However much it is, it comes in parts, and there is an end to it. */
static void test_in_parts(void)
{
    set_up();
    expect((struct master){5, 4, 4, 4, 9, .snapshot = true, .parts = 20},
           "5 4 29, 2 refills: it asks again");
    guint count = 0;
    struct copy *base = fake_copy_base(copy);
    g_assert_true(base->ops->load(base, count_object, &count, NULL));
    g_assert_cmpuint(count, ==, 21);
    tear_down();
}

/* What two masters say is of no moment that there ever was. */
static void test_pieces_of_two(void)
{
    set_up();
    expect((struct master){5, 4, 4, 4, 9, .snapshot = true, .more = 5},
           "5 4 7, 1 refills: the master has changed while the copy was filled");
    expect((struct master){5, 4, 4, 4, 10, .snapshot = true, .more = 4},
           "5 4 10, 2 refills: it asks again");
    tear_down();
}

/* A copy is filled by a master of the version before, which has no ids of commits to give; any
 * other failure fills none. */
static void test_master_without_ids(void)
{
    set_up();
    fake_script(world, NODE1, ROLE_WCONFD, "commit_ids", answer_no_ids, NULL);
    expect((struct master){5, 4, 4, 4, 8, .snapshot = true}, "5 4 7, 1 refills: not now");
    fake_script(world, NODE1, ROLE_WCONFD, "commit_ids", answer_no_ids, wconfd);
    expect((struct master){5, 4, 4, 4, 9, .snapshot = true}, "5 4 9, 2 refills: it asks again");
    expect((struct master){5, 4, 4, 4, 10}, "5 4 10, 2 refills: it asks again");
    tear_down();
}

static void test_no_older_changes(void)
{
    set_up();
    expect((struct master){5, 3, 3, 3, 9}, "5 4 7, 1 refills: " OLDER);
    expect((struct master){5, 3, 3, 3, 7}, "5 4 7, 1 refills: " OLDER);
    tear_down();
}

/* The same mastership, a later one, and one of another history, which a restore has begun. */
static void test_others_are_taken(void)
{
    set_up();
    expect((struct master){5, 4, 4, 4, 8}, "5 4 8, 1 refills: it asks again");
    expect((struct master){5, 4, 4, 4, 8, .snapshot = true}, "5 4 8, 2 refills: it asks again");
    expect((struct master){5, 6, 6, 6, 8, .snapshot = true}, "5 6 8, 3 refills: it asks again");
    expect((struct master){5, 7, 7, 7, 9}, "5 7 9, 3 refills: it asks again");
    expect((struct master){6, 1, 1, 1, 2, .snapshot = true}, "6 1 2, 4 refills: it asks again");
    tear_down();
}

/* A master that has something new whenever it is asked. */
static json_t *answer_busy(const struct rpc_request *request, const char *to_node, void *data,
                           GError **error)
{
    master.serial++;
    json_t *answer = changes_json(master.followed, false);
    json_object_set_new(answer, "changes",
                        json_make("[{ss ss ss sI so}]", "op", "put", "kind", "node", "key", NODE1,
                                  "version", (json_int_t)master.serial, "object",
                                  object_node(NODE1)));
    return answer;
}

#define FOLLOWED fake_count_calls(world, NODE1 "/wconfd follow")

/* With an engine that has stored everything on other nodes already a copy does not ask for each
 * commit; it has them all in the end. */
static void test_gathers(void)
{
    g_autoptr(GPtrArray) nothing = g_ptr_array_new();
    set_up();
    struct fake_engine *engine = fake_engine_new(5, nothing);
    fake_engine_replicate(engine);
    wconfd->engine = fake_engine_base(engine);
    master = (struct master){5, 4, 4, 4, 7};
    fake_script(world, NODE1, ROLE_WCONFD, "follow", answer_busy, NULL);
    fake_advance(world, PAUSE_MS);
    guint begun = FOLLOWED;
    fake_advance(world, 1000);
    g_assert_cmpuint(FOLLOWED, <=, begun + 10);
    g_assert_cmpuint(FOLLOWED, >=, begun + 5);
    struct copy_position position;
    fake_copy_base(copy)->ops->position(fake_copy_base(copy), &position);
    g_assert_cmpuint(position.serial, ==, master.serial);
    wconfd->engine = NULL;
    tear_down();
    fake_engine_free(engine);
}

#define ROTTEN "object tag a does not match its checksum"

/* A copy that rots while nobody asks for anything is found, and counts for nobody; but it may be
 * all that is left, so it stays until there is a master that gives another. */
static void test_rots(void)
{
    set_up();
    fake_copy_rot(copy, ROTTEN);
    fake_advance(world, SCRUB_STEP_MS + PAUSE_MS);
    struct replication_state state;
    replication_state(copying, &state);
    g_assert_true(state.damaged);
    g_autofree char *found = at();
    g_assert_cmpstr(found, ==, "5 4 7, 1 refills: " ROTTEN);
    expect((struct master){5, 4, 4, 4, 9, .snapshot = true}, "5 4 9, 2 refills: it asks again");
    replication_state(copying, &state);
    g_assert_false(state.damaged);
    tear_down();
}

/* The question says that it has nothing, so that the master does not count it. */
static json_t *answer_rotten(const struct rpc_request *request, const char *to_node, void *data,
                             GError **error)
{
    if (!master.told)
        g_assert_cmpint(json_integer_value(json_object_get(request->args, "history")), ==, 0);
    return answer_follow(request, to_node, data, error);
}

/* It is not thrown away when it cannot be made anew, and is tried again. */
static void test_rots_on_a_full_disk(void)
{
    set_up();
    replication_damaged(copying, ROTTEN);
    fake_script(world, NODE1, ROLE_WCONFD, "follow", answer_rotten, NULL);
    fake_copy_fail(copy, 1);
    expect((struct master){5, 4, 4, 4, 9, .snapshot = true}, "5 4 7, 1 refills: " ROTTEN);
    expect((struct master){5, 4, 4, 4, 9, .snapshot = true}, "5 4 9, 2 refills: it asks again");
    tear_down();
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/copying/no-older-refill#SAF-03,SAF-07", test_no_older_refill);
    g_test_add_func("/copying/master-without-ids#SAF-04", test_master_without_ids);
    g_test_add_func("/copying/no-older-changes#SAF-03,SAF-07", test_no_older_changes);
    g_test_add_func("/copying/too-much-meanwhile#SAF-07", test_too_much_meanwhile);
    g_test_add_func("/copying/in-parts#SAF-07", test_in_parts);
    g_test_add_func("/copying/pieces-of-two#SAF-03,SAF-07", test_pieces_of_two);
    g_test_add_func("/copying/others-are-taken#SAF-07", test_others_are_taken);
    g_test_add_func("/copying/gathers", test_gathers);
    g_test_add_func("/copying/rots#SAF-07", test_rots);
    g_test_add_func("/copying/rots-on-a-full-disk#SAF-07", test_rots_on_a_full_disk);
    return g_test_run();
}
