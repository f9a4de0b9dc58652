/* The copy of the configuration: following through restarts, refreshing, committing with unknown
 * results. */
#include "core/config/follow.h"

#include <string.h>

#include "proto/records.h"
#include "unit/core/world/config_world.h"

struct follower {
    struct config_world world;
    struct follow *follow;
    guint batches;
    guint changes;
    guint snapshots;
};

static void changed(const GPtrArray *changes, void *data)
{
    struct follower *f = data;
    f->batches++;
    f->changes += changes ? changes->len : 0;
    f->snapshots += changes ? 0 : 1;
}

static void start_task(void *data)
{
    struct follower *f = data;
    g_autoptr(GError) error = NULL;
    follow_start(f->follow, &error);
    g_assert_no_error(error);
}

static void follower_init(struct follower *f, bool start)
{
    *f = (struct follower){0};
    config_world_init(&f->world, initial_changes());
    config_world_start(&f->world);
    f->follow = follow_new(f->world.luxid, changed, f);
    if (start)
        fake_run(f->world.luxid, start_task, f);
}

static void follower_clear(struct follower *f)
{
    fake_kill(f->world.luxid);
    follow_free(f->follow);
    config_world_clear(&f->world);
}

static GPtrArray *tag(const char *text)
{
    g_autofree char *key = g_strdup_printf("instance/" WEB1 "/%s", text);
    return changes_of(
        put("tag", key, 0,
            json_make("{s:s,s:s,s:s}", "kind", "instance", "object", WEB1, "tag", text)),
        NULL);
}

static guint64 copy_serial(const struct follower *f)
{
    return config_serial(follow_config(f->follow));
}

static guint tag_count(const struct follower *f)
{
    return config_count(follow_config(f->follow), "tag");
}

/* --- following --- */

static void test_follows(void)
{
    struct follower f;
    follower_init(&f, true);
    g_assert_cmpuint(copy_serial(&f), ==, 1);
    g_assert_cmpuint(config_history(follow_config(f.follow)), ==, 5);
    g_assert_cmpuint(follow_epoch(f.follow), ==, f.world.epoch);
    g_assert_cmpuint(f.snapshots, ==, 1);
    assert_says(job_commit(&f.world, 17, tag("a")), "{\"serial\":2}");
    fake_advance(f.world.world, 1);
    g_assert_cmpuint(copy_serial(&f), ==, 2);
    g_assert_cmpuint(tag_count(&f), ==, 1);
    assert_says(job_commit(&f.world, 17, changes_of(del("tag", "instance/" WEB1 "/a", 2), NULL)),
                "{\"serial\":3}");
    fake_advance(f.world.world, 1);
    g_assert_cmpuint(tag_count(&f), ==, 0);
    g_assert_cmpuint(f.snapshots, ==, 1);
    g_assert_cmpuint(f.changes, ==, 2);
    /* Long quiet, then news again. */
    fake_advance(f.world.world, 100000);
    assert_says(job_commit(&f.world, 17, tag("b")), "{\"serial\":4}");
    fake_advance(f.world.world, 1);
    g_assert_cmpuint(copy_serial(&f), ==, 4);
    follower_clear(&f);
}

static void test_sees_committed_only(void)
{
    struct follower f;
    struct fake_reply reply;
    follower_init(&f, true);
    fake_engine_hold(f.world.engine);
    fake_call_start_stamped(
        f.world.job, 17, (struct stamp){5, f.world.epoch}, NODE1, ROLE_WCONFD, "commit",
        json_make("{s:o,s:s,s:[{s:s,s:s,s:s,s:{s:s,s:s,s:s}}]}", "owner", owner_json(17),
                  "commit_id", "00000000-0000-4000-8000-00000000000a", "changes", "op", "put",
                  "kind", "tag", "key", "instance/" WEB1 "/a", "object", "kind", "instance",
                  "object", WEB1, "tag", "a"),
        &reply);
    fake_advance(f.world.world, 1000);
    g_assert_false(reply.done);
    g_assert_cmpuint(copy_serial(&f), ==, 1);
    fake_engine_release(f.world.engine);
    fake_advance(f.world.world, 1);
    g_assert_cmpuint(copy_serial(&f), ==, 2);
    fake_reply_clear(&reply);
    follower_clear(&f);
}

static void test_through_restart(void)
{
    struct follower f;
    follower_init(&f, true);
    config_world_restart(&f.world);
    fake_advance(f.world.world, 3000);
    g_assert_cmpuint(copy_serial(&f), ==, 1);
    config_world_start(&f.world);
    assert_says(job_commit(&f.world, 17, tag("a")), "{\"serial\":2}");
    fake_advance(f.world.world, 1000);
    g_assert_cmpuint(copy_serial(&f), ==, 2);
    follower_clear(&f);
}

static void test_waits_for_the_first_copy(void)
{
    struct follower f = {0};
    config_world_init(&f.world, initial_changes());
    f.follow = follow_new(f.world.luxid, changed, &f);
    task_spawn(f.world.luxid->tasks, start_task, &f);
    fake_advance(f.world.world, 5000);
    g_assert_cmpuint(f.snapshots, ==, 0);
    config_world_start(&f.world);
    fake_advance(f.world.world, 200);
    g_assert_cmpuint(f.snapshots, ==, 1);
    follower_clear(&f);
}

static void fail_to_start(void *data)
{
    struct follower *f = data;
    g_autoptr(GError) error = NULL;
    g_assert_false(follow_start(f->follow, &error));
    g_assert_true(fettle_error_is(error, PERMISSION));
}

static void test_start_fails_for_good(void)
{
    struct follower f = {0};
    config_world_init(&f.world, initial_changes());
    config_world_start(&f.world);
    struct env *cli = fake_process(f.world.world, NODE1, ROLE_CLI); /* a role that may not ask */
    f.follow = follow_new(cli, changed, &f);
    fake_run(cli, fail_to_start, &f);
    follow_free(f.follow);
    config_world_clear(&f.world);
}

static json_t *bad_snapshot(const struct rpc_request *request, const char *to_node, void *data,
                            GError **error)
{
    return json_make("{s:i,s:i,s:i,s:b,s:[{s:s,s:s,s:s,s:i,s:{s:s}}]}", "history", 5, "epoch", 1,
                     "serial", 9, "snapshot", 1, "changes", "op", "put", "kind", "node", "key",
                     NODE1, "version", 9, "object", "uuid", NODE1);
}

static void refresh_task(void *data)
{
    struct follower *f = data;
    g_autoptr(GError) error = NULL;
    follow_refresh(f->follow, &error);
    g_assert_no_error(error);
}

static void refresh_fails(void *data)
{
    struct follower *f = data;
    g_autoptr(GError) error = NULL;
    g_assert_false(follow_refresh(f->follow, &error));
    g_assert_true(fettle_error_is(error, WRONG_INPUT));
    g_assert_nonnull(strstr(error->message, "node " NODE1 ": "));
}

static void test_bad_snapshot_keeps_the_copy(void)
{
    struct follower f;
    follower_init(&f, false);
    fake_run(f.world.luxid, refresh_task, &f);
    fake_script(f.world.world, NULL, ROLE_WCONFD, "wait_changes", bad_snapshot, NULL);
    fake_run(f.world.luxid, refresh_fails, &f);
    g_assert_cmpuint(copy_serial(&f), ==, 1);
    g_assert_cmpuint(config_count(follow_config(f.follow), "node"), ==, 3);
    fake_script(f.world.world, NULL, ROLE_WCONFD, "wait_changes", NULL, NULL);
    fake_run(f.world.luxid, refresh_task, &f);
    follower_clear(&f);
}

/* A master whose configuration comes in pieces of serial 5, and that has come to serial 9 since;
 * `data`: it says that there is more, and no more than that. */
static json_t *in_parts(const struct rpc_request *request, const char *to_node, void *data,
                        GError **error)
{
    json_int_t since = json_integer_value(json_object_get(request->args, "serial"));
    bool part = json_is_true(json_object_get(request->args, "part"));
    bool stuck = data && since == 7;
    if (!part)
        return json_make("{s:i,s:i,s:i,s:b,s:b}", "history", 5, "epoch", 1, "serial", 5, "snapshot",
                         true, "pieces", true);
    g_autofree char *text = g_strdup_printf("t%d", (int)since);
    g_autofree char *key = g_strdup_printf("instance/" WEB1 "/%s", text);
    return json_make("{s:i,s:i,s:I,s:b,s:[{s:s,s:s,s:s,s:I,s:{s:s,s:s,s:s}}]}", "history", 5,
                     "epoch", 1, "serial", stuck ? since : since + 1, "more", since < 8, "changes",
                     "op", "put", "kind", "tag", "key", key, "version", since + 1, "object", "kind",
                     "instance", "object", WEB1, "tag", text);
}

static json_t *only_piece(const struct rpc_request *request, const char *to_node, void *data,
                          GError **error)
{
    return json_make("{s:i,s:i,s:i,s:[{s:s,s:s,s:s,s:i,s:o}]}", "history", 5, "epoch", 1, "serial",
                     5, "changes", "op", "put", "kind", "node", "key", NODE1, "version", 5,
                     "object", object_node(NODE1));
}

static void refresh_is_stuck(void *data)
{
    struct follower *f = data;
    g_autoptr(GError) error = NULL;
    g_assert_false(follow_refresh(f->follow, &error));
    g_assert_true(fettle_error_is(error, TEMPORARY));
}

/* What has changed while the pieces came is asked for until there is no more of it. */
static void test_in_parts(void)
{
    struct follower f;
    follower_init(&f, false);
    fake_script(f.world.world, NULL, ROLE_WCONFD, "wait_changes", in_parts, &f);
    fake_script(f.world.world, NULL, ROLE_WCONFD, "snapshot", only_piece, NULL);
    fake_run(f.world.luxid, refresh_is_stuck, &f);
    g_assert_cmpuint(copy_serial(&f), ==, 0);
    fake_script(f.world.world, NULL, ROLE_WCONFD, "wait_changes", in_parts, NULL);
    fake_run(f.world.luxid, refresh_task, &f);
    g_assert_cmpuint(copy_serial(&f), ==, 9);
    g_assert_cmpuint(tag_count(&f), ==, 4);
    g_assert_cmpuint(config_count(follow_config(f.follow), "node"), ==, 1);
    follower_clear(&f);
}

/* Epochs of whoever gives the first piece, the second one, and what has changed since. */
static struct {
    int first, second, rest;
} masters;

static json_t *rest_of_two(const struct rpc_request *request, const char *to_node, void *data,
                           GError **error)
{
    if (json_is_true(json_object_get(request->args, "part")))
        return json_make("{s:i,s:i,s:i,s:[]}", "history", 5, "epoch", masters.rest, "serial", 6,
                         "changes");
    return json_make("{s:i,s:i,s:i,s:b,s:b}", "history", 5, "epoch", masters.first, "serial", 5,
                     "snapshot", true, "pieces", true);
}

static json_t *pieces_of_two(const struct rpc_request *request, const char *to_node, void *data,
                             GError **error)
{
    bool first = json_string_length(json_object_get(request->args, "key")) == 0;
    const char *node = first ? NODE1 : NODE2;
    return json_make("{s:i,s:i,s:i,s:b,s:[{s:s,s:s,s:s,s:i,s:o}]}", "history", 5, "epoch",
                     first ? masters.first : masters.second, "serial", 5, "more", first, "changes",
                     "op", "put", "kind", "node", "key", node, "version", 5, "object",
                     object_node(node));
}

/* What two masters say together was never true. */
static void test_two_masters(void)
{
    struct follower f;
    follower_init(&f, false);
    fake_script(f.world.world, NULL, ROLE_WCONFD, "wait_changes", rest_of_two, NULL);
    fake_script(f.world.world, NULL, ROLE_WCONFD, "snapshot", pieces_of_two, NULL);
    masters.first = masters.rest = 1;
    masters.second = 2;
    fake_run(f.world.luxid, refresh_is_stuck, &f);
    masters.second = 1;
    masters.rest = 2;
    fake_run(f.world.luxid, refresh_is_stuck, &f);
    g_assert_cmpuint(copy_serial(&f), ==, 0);
    masters.rest = 1;
    fake_run(f.world.luxid, refresh_task, &f);
    g_assert_cmpuint(copy_serial(&f), ==, 6);
    g_assert_cmpuint(config_count(follow_config(f.follow), "node"), ==, 2);
    follower_clear(&f);
}

/* `data`: it is a snapshot. */
static json_t *of_serial_2(const struct rpc_request *request, const char *to_node, void *data,
                           GError **error)
{
    return json_make("{s:i,s:i,s:i,s:b,s:[{s:s,s:s,s:s,s:i,s:o}]}", "history", 5, "epoch", 1,
                     "serial", 2, "snapshot", data != NULL, "changes", "op", "put", "kind", "node",
                     "key", NODE1, "version", 2, "object", object_node(NODE1));
}

/* Of two answers on their way the older one may come last. */
static void test_older_answer(void)
{
    struct follower f;
    follower_init(&f, false);
    assert_says(job_commit(&f.world, 17, tag("a")), "{\"serial\":2}");
    assert_says(job_commit(&f.world, 17, tag("b")), "{\"serial\":3}");
    fake_run(f.world.luxid, refresh_task, &f);
    for (guint i = 0; i < 2; i++) {
        fake_script(f.world.world, NULL, ROLE_WCONFD, "wait_changes", of_serial_2,
                    i == 0 ? NULL : &f);
        fake_run(f.world.luxid, refresh_task, &f);
        g_assert_cmpuint(copy_serial(&f), ==, 3);
        g_assert_cmpuint(tag_count(&f), ==, 2);
        g_assert_cmpuint(config_count(follow_config(f.follow), "node"), ==, 3);
    }
    follower_clear(&f);
}

/* One of the history before, of whatever epoch, to a question that was under way. */
static json_t *of_older_history(const struct rpc_request *request, const char *to_node, void *data,
                                GError **error)
{
    return json_make("{s:i,s:i,s:i,s:b,s:[{s:s,s:s,s:s,s:i,s:o}]}", "history", 4, "epoch", 99,
                     "serial", 9, "snapshot", 0, "changes", "op", "put", "kind", "node", "key",
                     NODE1, "version", 9, "object", object_node(NODE1));
}

static void test_older_history(void)
{
    struct follower f;
    follower_init(&f, false);
    assert_says(job_commit(&f.world, 17, tag("a")), "{\"serial\":2}");
    fake_run(f.world.luxid, refresh_task, &f);
    fake_script(f.world.world, NULL, ROLE_WCONFD, "wait_changes", of_older_history, NULL);
    fake_run(f.world.luxid, refresh_task, &f);
    g_assert_cmpuint(copy_serial(&f), ==, 2);
    g_assert_cmpuint(config_history(follow_config(f.follow)), ==, 5);
    g_assert_cmpuint(tag_count(&f), ==, 1);
    follower_clear(&f);
}

/* What a later mastership says; it knows of no loss. */
static json_t *of_next_master(const struct rpc_request *request, const char *to_node, void *data,
                              GError **error)
{
    bool whole = json_integer_value(json_object_get(request->args, "serial")) == 0;
    if (whole)
        ++*(guint *)data;
    return json_make("{s:i,s:i,s:i,s:b,s:[{s:s,s:s,s:s,s:i,s:o}]}", "history", 5, "epoch", 9,
                     "serial", whole ? 2 : 4, "snapshot", whole, "changes", "op", "put", "kind",
                     "node", "key", NODE1, "version", 2, "object", object_node(NODE1));
}

/* The next master may lack what the one before has told, and have used its serials anew: the copy
 * is fetched whole, even if it is older then. What the former says after that is dropped. */
static void test_next_master(void)
{
    struct follower f;
    guint whole = 0;
    follower_init(&f, false);
    assert_says(job_commit(&f.world, 17, tag("a")), "{\"serial\":2}");
    assert_says(job_commit(&f.world, 17, tag("b")), "{\"serial\":3}");
    fake_run(f.world.luxid, refresh_task, &f);
    g_assert_cmpuint(tag_count(&f), ==, 2);
    fake_script(f.world.world, NULL, ROLE_WCONFD, "wait_changes", of_next_master, &whole);
    fake_run(f.world.luxid, refresh_task, &f);
    g_assert_cmpuint(whole, ==, 1);
    g_assert_cmpuint(copy_serial(&f), ==, 2);
    g_assert_cmpuint(tag_count(&f), ==, 0);
    g_assert_cmpuint(follow_epoch(f.follow), ==, 9);
    fake_script(f.world.world, NULL, ROLE_WCONFD, "wait_changes", NULL, NULL);
    fake_run(f.world.luxid, refresh_task, &f);
    g_assert_cmpuint(follow_epoch(f.follow), ==, 9);
    g_assert_cmpuint(tag_count(&f), ==, 0);
    follower_clear(&f);
}

/* --- some kinds --- */

static bool is_tag(const char *kind)
{
    return !strcmp(kind, "tag");
}

static void tags_init(struct follower *f, bool start)
{
    follower_init(f, false);
    follow_only(f->follow, is_tag);
    if (start)
        fake_run(f->world.luxid, start_task, f);
}

static GPtrArray *memory(guint mib, guint64 version)
{
    return changes_of(
        put("instance", DB1, version, with(object_db1(), "memory", json_integer(mib))), NULL);
}

/* It keeps up with what it is not told, at once. */
static void test_only_some_kinds(void)
{
    struct follower f;
    tags_init(&f, true);
    g_assert_cmpuint(copy_serial(&f), ==, 1);
    g_assert_cmpuint(config_total(follow_config(f.follow)), ==, 0);
    g_free(job_locks(&f.world, 17, "x instance/db1", false));
    assert_says(job_commit(&f.world, 17, memory(65, 1)), "{\"serial\":2}");
    fake_advance(f.world.world, 1);
    g_assert_cmpuint(copy_serial(&f), ==, 2);
    g_assert_cmpuint(f.changes, ==, 0);
    assert_says(job_commit(&f.world, 17, tag("a")), "{\"serial\":3}");
    fake_advance(f.world.world, 1);
    g_assert_cmpuint(f.changes, ==, 1);
    config_world_restart(&f.world);
    config_world_start(&f.world);
    fake_advance(f.world.world, 3000);
    assert_says(job_commit(&f.world, 17, tag("b")), "{\"serial\":4}");
    fake_advance(f.world.world, 1000);
    g_assert_cmpuint(copy_serial(&f), ==, 4);
    g_assert_cmpuint(tag_count(&f), ==, 2);
    g_assert_cmpuint(config_total(follow_config(f.follow)), ==, 2);
    follower_clear(&f);
}

/* One that knows no `kinds` sends everything, at once and in pieces. */
static void test_older_master(void)
{
    struct follower f;
    tags_init(&f, false);
    fake_script(f.world.world, NULL, ROLE_WCONFD, "wait_changes", of_serial_2, &f);
    fake_run(f.world.luxid, refresh_task, &f);
    g_assert_cmpuint(copy_serial(&f), ==, 2);
    g_assert_cmpuint(config_total(follow_config(f.follow)), ==, 0);
    fake_script(f.world.world, NULL, ROLE_WCONFD, "wait_changes", in_parts, NULL);
    fake_script(f.world.world, NULL, ROLE_WCONFD, "snapshot", only_piece, NULL);
    fake_run(f.world.luxid, refresh_task, &f);
    g_assert_cmpuint(copy_serial(&f), ==, 9);
    g_assert_cmpuint(tag_count(&f), ==, 4);
    g_assert_cmpuint(config_total(follow_config(f.follow)), ==, 4);
    follower_clear(&f);
}

struct refusing {
    guint refused;
    int epoch, serial;
};

/* One to whom a kind is new that the subscriber knows. */
static json_t *refuses_kinds(const struct rpc_request *request, const char *to_node, void *data,
                             GError **error)
{
    struct refusing *master = data;
    if (json_array_size(json_object_get(request->args, "kinds"))) {
        master->refused++;
        fettle_set_error(error, WRONG_INPUT, "kinds[0]: there is no kind of object \"tag\"");
        return NULL;
    }
    g_autofree char *text = g_strdup_printf("t%d", master->serial);
    g_autofree char *key = g_strdup_printf("instance/" WEB1 "/%s", text);
    return json_make("{s:i,s:i,s:i,s:[{s:s,s:s,s:s,s:i,s:{s:s,s:s,s:s}}]}", "history", 5, "epoch",
                     master->epoch, "serial", master->serial, "changes", "op", "put", "kind", "tag",
                     "key", key, "version", master->serial, "object", "kind", "instance", "object",
                     WEB1, "tag", text);
}

/* Its refusal is asked for once, and once again when another has become the master. */
static void test_kinds_refused(void)
{
    struct refusing master = {.epoch = 7};
    struct follower f;
    tags_init(&f, false);
    fake_run(f.world.luxid, refresh_task, &f);
    fake_script(f.world.world, NULL, ROLE_WCONFD, "wait_changes", refuses_kinds, &master);
    guint refused[5];
    for (int i = 0; i < 5; i++) {
        master.serial = 10 + i;
        master.epoch = i < 3 ? 7 : 8;
        fake_run(f.world.luxid, refresh_task, &f);
        refused[i] = master.refused;
        g_assert_cmpint((int)copy_serial(&f), ==, 10 + i);
    }
    g_assert_cmpuint(tag_count(&f), ==, 5);
    g_assert_cmpuint(refused[2], ==, refused[1]);
    g_assert_cmpuint(refused[4], >, refused[2]);
    follower_clear(&f);
}

static void test_kind_not_had(void)
{
    struct follower f;
    if (g_test_subprocess()) {
        tags_init(&f, false);
        config_find(follow_config(f.follow), "node", "node1", NULL);
        return;
    }
    g_test_trap_subprocess(NULL, 0, 0);
    g_test_trap_assert_failed();
    g_test_trap_assert_stderr("*node: this copy of the configuration has no objects of that kind*");
}

/* --- committing --- */

struct commit_call {
    struct follower *f;
    const char *tag;
    char *said;
    bool done;
    bool last; /* follow_commit_last() */
};

static void commit_task(void *data)
{
    struct commit_call *call = data;
    struct owner owner = {.job = (char *)"luxid", .livelock = (char *)"luxid-1"};
    struct stamp stamp = {5, call->f->world.epoch};
    g_autoptr(GPtrArray) changes = tag(call->tag);
    g_autoptr(GError) error = NULL;
    bool ok = (call->last ? follow_commit_last : follow_commit)(call->f->follow, "commit", &owner,
                                                                changes, stamp, 0, &error);
    call->said =
        ok ? g_strdup("ok") : g_strdup_printf("%s: %s", fettle_error_name(error), error->message);
    call->done = true;
}

static char *commit_tag(struct follower *f, const char *text)
{
    struct commit_call call = {.f = f, .tag = text};
    fake_run(f->world.luxid, commit_task, &call);
    return call.said;
}

static void test_commit_brings_the_copy_along(void)
{
    for (int following = 0; following <= 1; following++) {
        struct follower f;
        follower_init(&f, following);
        if (!following)
            fake_run(f.world.luxid, refresh_task, &f);
        assert_says(commit_tag(&f, "a"), "ok");
        g_assert_cmpuint(copy_serial(&f), ==, 2);
        g_assert_cmpuint(tag_count(&f), ==, 1);
        assert_says(commit_tag(&f, "a"),
                    "version_conflict: tag instance/" WEB1 "/a: exists already (version 2)");
        follower_clear(&f);
    }
}

/* Stored, and nothing more is asked. */
static void test_last_commit_leaves_the_copy(void)
{
    struct follower f;
    follower_init(&f, false);
    fake_run(f.world.luxid, refresh_task, &f);
    struct commit_call call = {.f = &f, .tag = "a", .last = true};
    fake_run(f.world.luxid, commit_task, &call);
    assert_says(call.said, "ok");
    g_assert_cmpuint(copy_serial(&f), ==, 1);
    fake_run(f.world.luxid, refresh_task, &f);
    g_assert_cmpuint(copy_serial(&f), ==, 2);
    g_assert_cmpuint(tag_count(&f), ==, 1);
    fake_run(f.world.luxid, commit_task, &call);
    assert_says(call.said, "version_conflict: tag instance/" WEB1 "/a: exists already (version 2)");
    follower_clear(&f);
}

static void start_commit(struct follower *f, struct commit_call *call, const char *text)
{
    *call = (struct commit_call){.f = f, .tag = text};
    task_spawn(f->world.luxid->tasks, commit_task, call);
    fake_settle(f->world.world);
}

/* wconfd dies after the engine has stored the commit, before the answer. */
static void test_lost_answer_is_asked_for_again(void)
{
    struct follower f;
    struct commit_call call;
    follower_init(&f, true);
    fake_engine_fail_next(f.world.engine, ENGINE_UNKNOWN, true);
    start_commit(&f, &call, "a");
    g_assert_nonnull(f.world.stepped_down);
    config_world_restart(&f.world);
    config_world_start(&f.world);
    fake_advance(f.world.world, 5000);
    g_assert_true(call.done);
    assert_says(call.said, "ok");
    g_assert_cmpuint(fake_engine_commits(f.world.engine), ==, 1);
    g_assert_cmpuint(tag_count(&f), ==, 1);
    follower_clear(&f);
}

/* It was not stored: the same commit is made then. */
static void test_kill_before_storing(void)
{
    struct follower f;
    struct commit_call call;
    follower_init(&f, true);
    fake_engine_hold(f.world.engine);
    start_commit(&f, &call, "a");
    config_world_restart(&f.world);
    fake_advance(f.world.world, 2000);
    g_assert_false(call.done);
    config_world_start(&f.world);
    fake_advance(f.world.world, 5000);
    g_assert_true(call.done);
    assert_says(call.said, "ok");
    g_assert_cmpuint(fake_engine_commits(f.world.engine), ==, 1);
    follower_clear(&f);
}

static void test_wconfd_stays_away(void)
{
    struct follower f;
    struct commit_call call;
    follower_init(&f, true);
    fake_kill(f.world.wconfd);
    start_commit(&f, &call, "a");
    fake_advance(f.world.world, 9000);
    g_assert_false(call.done);
    fake_advance(f.world.world, 3000);
    g_assert_true(call.done);
    assert_says(call.said, "unreachable: nobody listens");
    follower_clear(&f);
}

static void test_unknown_for_ever(void)
{
    struct follower f;
    struct commit_call call;
    follower_init(&f, true);
    fake_engine_hold(f.world.engine);
    start_commit(&f, &call, "a");
    fake_kill(f.world.wconfd);
    fake_advance(f.world.world, 59000);
    g_assert_false(call.done);
    fake_advance(f.world.world, 3000);
    g_assert_true(call.done);
    assert_says(call.said,
                "unknown_result: whether the change is stored is unknown: nobody listens");
    follower_clear(&f);
}

static void test_killed_while_waiting(void)
{
    struct follower f;
    struct commit_call call;
    follower_init(&f, true);
    fake_engine_hold(f.world.engine);
    start_commit(&f, &call, "a");
    fake_kill(f.world.luxid);
    g_assert_true(call.done);
    g_assert_true(g_str_has_prefix(call.said, "killed: "));
    g_free(call.said);
    follower_clear(&f);
}

static void test_freed_while_following(void)
{
    struct follower f;
    follower_init(&f, true);
    follow_free(f.follow);
    f.follow = NULL;
    assert_says(job_commit(&f.world, 17, tag("a")), "{\"serial\":2}");
    fake_advance(f.world.world, 60000);
    g_assert_cmpuint(f.batches, ==, 1); /* the first copy, nothing after */
    follower_clear(&f);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/follow/follows", test_follows);
    g_test_add_func("/follow/committed-only#SAF-03", test_sees_committed_only);
    g_test_add_func("/follow/restart", test_through_restart);
    g_test_add_func("/follow/first-copy", test_waits_for_the_first_copy);
    g_test_add_func("/follow/start-fails", test_start_fails_for_good);
    g_test_add_func("/follow/bad-snapshot#WCF-11", test_bad_snapshot_keeps_the_copy);
    g_test_add_func("/follow/in-parts", test_in_parts);
    g_test_add_func("/follow/two-masters#SAF-03", test_two_masters);
    g_test_add_func("/follow/older-answer#SAF-03", test_older_answer);
    g_test_add_func("/follow/older-history#SAF-02", test_older_history);
    g_test_add_func("/follow/next-master", test_next_master);
    g_test_add_func("/follow/kinds#SAF-03", test_only_some_kinds);
    g_test_add_func("/follow/kinds/older-master", test_older_master);
    g_test_add_func("/follow/kinds/refused", test_kinds_refused);
    g_test_add_func("/follow/kinds/not-had", test_kind_not_had);
    g_test_add_func("/follow/commit#WCF-21", test_commit_brings_the_copy_along);
    g_test_add_func("/follow/commit/last", test_last_commit_leaves_the_copy);
    g_test_add_func("/follow/commit/lost-answer#SAF-04", test_lost_answer_is_asked_for_again);
    g_test_add_func("/follow/commit/not-stored#SAF-04,WCF-16", test_kill_before_storing);
    g_test_add_func("/follow/commit/away", test_wconfd_stays_away);
    g_test_add_func("/follow/commit/unknown#SAF-04", test_unknown_for_ever);
    g_test_add_func("/follow/commit/killed", test_killed_while_waiting);
    g_test_add_func("/follow/freed", test_freed_while_following);
    return g_test_run();
}
