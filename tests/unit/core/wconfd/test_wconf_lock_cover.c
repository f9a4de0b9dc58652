/* Whether the locks of an owner cover what it changes: which lock for what, and both settings. */
#include <string.h>

#include "base/log.h"
#include "proto/records.h"
#include "unit/core/world/wconf_world.h"

static void test_locks_cover_changes(void)
{
    world_set_up();
    static const char fresh[] = "aaaaaaaa-0000-4000-8000-000000000009";
    assert_says(job_commit(&world, 17, changes_of(put_memory(1, 256), NULL)),
                "lock_missing: instance web1 (" WEB1
                "): job 17 does not hold the lock instance/web1 exclusively");
    assert_says(job_locks(&world, 17, "s instance/web1", false), GRANTED);
    assert_says(job_commit(&world, 17, changes_of(put_memory(1, 256), NULL)),
                "lock_missing: instance web1 (" WEB1
                "): job 17 does not hold the lock instance/web1 exclusively");
    assert_says(job_commit(&world, 17,
                           changes_of(put("replica", REPLICA1, 1,
                                          with(object_replica1(), "sync", json_integer(8))),
                                      NULL)),
                "lock_missing: replica " REPLICA1
                ": job 17 does not hold the lock instance/web1 exclusively");
    assert_says(job_commit(&world, 17, changes_of(put("node", NODE3, 1, object_node(NODE3)), NULL)),
                "lock_missing: node node3 (" NODE3 "): job 17 does not hold the lock node/" NODE3
                " exclusively");
    assert_says(job_commit(&world, 17,
                           changes_of(put("nodegroup", GROUP, 1,
                                          json_make("{s:s,s:s}", "uuid", GROUP, "name", "g")),
                                      NULL)),
                "lock_missing: nodegroup g (" GROUP
                "): job 17 does not hold the lock cluster/BGL exclusively");
    assert_says(job_commit(&world, 17,
                           changes_of(put("removed", fresh, 0,
                                          json_make("{s:s,s:s,s:i}", "uuid", fresh, "name", "old",
                                                    "generation", 3)),
                                      NULL)),
                "lock_missing: removed old (aaaaaaaa-0000-4000-8000-000000000009): job 17 does not "
                "hold the lock "
                "instance/old exclusively");
    /* A new name needs its lock too; an instance that goes takes its replica with it under one. */
    assert_says(job_locks(&world, 17, "x instance/web1", false), GRANTED);
    assert_says(job_commit(&world, 17,
                           changes_of(put("instance", WEB1, 1,
                                          with(object_web1(), "name", json_string("web2"))),
                                      NULL)),
                "lock_missing: instance web2 (" WEB1
                "): job 17 does not hold the lock instance/web2 exclusively");
    struct change *removed =
        put("removed", WEB1, 0,
            json_make("{s:s,s:s,s:i}", "uuid", WEB1, "name", "web1", "generation", 5));
    assert_says(job_commit(&world, 17,
                           changes_of(del("replica", REPLICA1, 1), del("instance", WEB1, 1),
                                      removed, NULL)),
                "{\"serial\":2}");
    world_tear_down();
}

/* Beside a job that acts on the node a parameter changes; being online does not. */
static void test_finer_locks(void)
{
    struct fake_reply waits;
    world_set_up();
    json_t *drained = with(object_node(NODE3), "drained", json_true());
    json_object_set_new(drained, "master_capable", json_false());
    json_t *offline = with(object_node(NODE3), "offline", json_true());
    assert_says(job_locks(&world, 1, "s node/" NODE3, false), GRANTED);
    assert_says(job_locks(&world, 2, "x node-param/" NODE3, false), GRANTED);
    assert_says(job_commit(&world, 2, changes_of(put("node", NODE3, 1, offline), NULL)),
                "lock_missing: node node3 (" NODE3 "): job 2 does not hold the lock node/" NODE3
                " exclusively");
    assert_says(job_commit(&world, 2, changes_of(put("node", NODE3, 1, drained), NULL)),
                "{\"serial\":2}");
    job_locks_start(3, "node/" NODE3, 60000, &waits);
    fake_advance(world.world, 5000);
    g_assert_false(waits.done);
    assert_says(
        ask_wconf(&world, world.luxid, "free_locks", json_make("{s:o}", "owner", owner_json(1))),
        "{}");
    fake_settle(world.world);
    assert_says(world_reply(&waits), GRANTED);
    world_tear_down();
}

static void test_group_lock_covers(void)
{
    world_set_up();
    assert_says(job_locks(&world, 17, "x instance/[lockset]", false), GRANTED);
    assert_says(job_commit(&world, 17, changes_of(put_memory(1, 256), NULL)), "{\"serial\":2}");
    world_tear_down();
}

static void keep_line(const char *line, void *ctx)
{
    g_ptr_array_add(ctx, g_strdup(strchr(line, ' ') + 1));
}

static struct change *put_cluster(guint64 version, const char *coverage)
{
    return put("cluster", CLUSTER, version,
               json_make("{s:s,s:s,s:s,s:s}", "uuid", CLUSTER, "name", "c1", "master_node", NODE1,
                         "lock_coverage", coverage));
}

static struct change *put_node3(guint64 version, bool drained)
{
    return put("node", NODE3, version, with(object_node(NODE3), "drained", json_boolean(drained)));
}

/* One line for each object that no lock covers, with its job; others are not told of. */
static void test_log_only(void)
{
    g_autoptr(GPtrArray) lines = g_ptr_array_new_with_free_func(g_free);
    world_set_up();
    assert_says(job_locks(&world, 17, "x cluster/BGL", false), GRANTED);
    assert_says(job_change(&world, 17, "change_cluster", changes_of(put_cluster(1, "log"), NULL)),
                "{\"serial\":2}");
    log_set_sink(keep_line, lines);
    assert_says(job_change(&world, 17, "change_cluster", changes_of(put_cluster(2, "log"), NULL)),
                "{\"serial\":3}");
    g_assert_cmpuint(lines->len, ==, 0);
    assert_says(job_commit(&world, 18,
                           changes_of(put_memory(1, 256), put_node3(1, true), put_tag("x"), NULL)),
                "{\"serial\":4}");
    /* What no lock would allow is refused as before. */
    assert_says(job_commit(&world, 18, changes_of(put_memory(1, 512), NULL)),
                "version_conflict: instance web1 (" WEB1
                "): was read at version 1, it is at 4 now");
    log_set_sink(NULL, NULL);
    g_assert_cmpuint(lines->len, ==, 4);
    g_assert_nonnull(strstr(lines->pdata[1], "changed without its lock: instance web1 (" WEB1
                                             "): job 18 does not hold the lock instance/web1 "
                                             "exclusively JOB=18"));
    g_assert_nonnull(strstr(lines->pdata[2],
                            "changed without its lock: node node3 (" NODE3
                            "): job 18 does not hold the lock node/" NODE3 " exclusively JOB=18"));
    /* And a job that does not name what it changes is told of each time (WCF-22). */
    g_assert_nonnull(strstr(lines->pdata[0], "job 18 uses the wide commit: 3 changes, the first of "
                                             "the kind instance JOB=18"));
    g_assert_nonnull(strstr(lines->pdata[3], "job 18 uses the wide commit: 1 changes, "));
    world_tear_down();
}

/* The setting that is in force counts, not one that comes with the change. */
static void test_mandatory_again(void)
{
    static const char refused[] = "lock_missing: instance web1 (" WEB1
                                  "): job 18 does not hold the lock instance/web1 exclusively";
    world_set_up();
    assert_says(job_commit(&world, 18, changes_of(put_cluster(1, "log"), NULL)),
                "lock_missing: cluster c1 (" CLUSTER
                "): job 18 does not hold the lock cluster/BGL exclusively");
    assert_says(job_locks(&world, 18, "x cluster/BGL", false), GRANTED);
    assert_says(job_commit(&world, 18, changes_of(put_cluster(1, "log"), put_memory(1, 256), NULL)),
                refused);
    assert_says(job_commit(&world, 18, changes_of(put_cluster(1, "log"), NULL)), "{\"serial\":2}");
    assert_says(job_commit(&world, 18, changes_of(put_memory(1, 256), NULL)), "{\"serial\":3}");
    assert_says(job_commit(&world, 18, changes_of(put_cluster(2, "mandatory"), NULL)),
                "{\"serial\":4}");
    assert_says(job_commit(&world, 18, changes_of(put_memory(3, 512), NULL)), refused);
    world_tear_down();
}

/* --- who writes what (SAF-101) --- */

/* What a test expects of objects.def, so that a new kind is thought about twice. */
static const struct {
    const char *kind, *writers;
} expected[] = {{"service", "watcher"},
                {"tag", "luxid job watcher"},
                {"counter", "luxid"},
                {"job", "luxid job"},
                {"decision", "job luxid watcher"},
                {"fault", "job luxid watcher"},
                {"stuck", "job luxid watcher"},
                {"advice", "job watcher"},
                {"repair_brake", "job watcher"},
                {"join_token", "job watcher"},
                {"secret", ""},
                {"job_filter", "luxid"},
                {"switches", "luxid"},
                {"backend", "job"},
                {"volume_type", ""},
                {"storage_service", ""},
                {"worker", ""},
                {"snapshot", ""},
                {"backup", ""},
                {"image", ""},
                {"trash", ""},
                {"cleanup", ""},
                {"api_front_end", ""},
                {"rapi_user", ""},
                {"webhook", ""},
                {"webhook_mark", "luxid"}};

static const struct {
    const char *kind, *cover, *writers;
} kinds[] = {
#define OBJECT(kind, cover, view, writers, since, reach) {#kind, #cover, writers},
#include "proto/objects.def"
#undef OBJECT
};

static bool is_among(const char *word, const char *list, const char *mark)
{
    g_auto(GStrv) words = g_strsplit(list, mark, -1);
    return g_strv_contains((const char *const *)words, word);
}

static void test_kinds_without_lock(void)
{
    guint found = 0;
    for (guint i = 0; i < G_N_ELEMENTS(kinds); i++) {
        if (strcmp(kinds[i].cover, "nothing") != 0) {
            bool recovered = is_among(kinds[i].kind, "instance replica removed volume", " ");
            g_assert_cmpstr(kinds[i].writers, ==, recovered ? "job|watcher" : "job");
            continue;
        }
        g_auto(GStrv) writers = g_strsplit(kinds[i].writers, "|", -1);
        g_autofree char *names = g_strjoinv(" ", writers);
        g_assert_cmpuint(found, <, G_N_ELEMENTS(expected));
        g_assert_cmpstr(kinds[i].kind, ==, expected[found].kind);
        g_assert_cmpstr(names, ==, expected[found++].writers);
    }
    g_assert_cmpuint(found, ==, G_N_ELEMENTS(expected));
}

/* Of every word of every row: who may call it may write it. */
static void test_named_changes_fit(void)
{
    static const struct {
        const char *name, *callers, *may;
    } rows[] = {
#define CHANGE(name, callers, place, fence, may, doc) {#name, callers, may},
#include "proto/changes.def"
#undef CHANGE
    };
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_auto(GStrv) callers = g_strsplit(rows[i].callers, "|", -1);
        g_auto(GStrv) words = g_strsplit(rows[i].may, " ", -1);
        for (guint w = 0; words[w]; w++) {
            const char *word = words[w] + strspn(words[w], "+-");
            g_autofree char *kind = g_strndup(word, strcspn(word, "."));
            for (guint k = 0; k < G_N_ELEMENTS(kinds); k++)
                for (guint c = 0; !strcmp(kinds[k].kind, kind) && callers[c]; c++)
                    if (!is_among(callers[c], kinds[k].writers, "|"))
                        g_error("%s: %s may not write %s", rows[i].name, callers[c], kind);
        }
    }
}

/* Every role and every kind, as far as the word of the table goes: by the wide commit. */
static void test_writers(void)
{
    world_set_up();
    const struct env *const roles[] = {world.luxid, world.job, world.watcher};
    for (guint i = 0; i < G_N_ELEMENTS(kinds); i++)
        for (guint r = 0; r < G_N_ELEMENTS(roles); r++) {
            const struct env *from = roles[r];
            GPtrArray *changes = changes_of(put(kinds[i].kind, "1", 0, json_object()), NULL);
            g_autofree char *said = from == world.job ? job_commit(&world, 1, changes)
                                                      : daemon_commit(&world, from, changes);
            g_autofree char *refusal = g_strdup_printf("%s may not change it; ", from->role);
            g_assert_cmpint(g_str_has_prefix(said, "permission_denied: ") &&
                                strstr(said, refusal) != NULL,
                            !=, is_among(from->role, kinds[i].writers, "|"));
        }
    world_tear_down();
}

static void test_writers_words(void)
{
    json_t *secret = json_make("{s:s}", "value", "0123456789abcdef");
    world_set_up();
    assert_says(job_commit(&world, 17, changes_of(put("secret", "confd", 0, secret), NULL)),
                "permission_denied: secret confd: job may not change it; no commit may");
    assert_says(
        job_commit(&world, 17,
                   changes_of(put("counter", "job", 0, json_make("{s:i}", "value", 9)), NULL)),
        "permission_denied: counter job: job may not change it; luxid may");
    assert_says(daemon_commit(&world, world.luxid,
                              changes_of(put("advice", NODE1, 0, json_object()), NULL)),
                "permission_denied: advice " NODE1
                ": luxid may not change it; job and watcher may");
    assert_says(job_commit(&world, 17, changes_of(put("job", "18", 0, json_object()), NULL)),
                "permission_denied: job 18: job 17 may change no record of another job");
    world_tear_down();
}

/* --- whose owner (SAF-101) --- */

static char *lock_of(const struct env *from, const char *livelock)
{
    return ask_wconf(&world, from, "update_locks",
                     json_make("{s:{s:s,s:s},s:[{s:s,s:s}]}", "owner", "job", "luxid", "livelock",
                               livelock, "locks", "name", "cluster/BGL", "mode", "exclusive"));
}

static char *commit_of(const struct env *from, const char *livelock)
{
    g_autofree char *id = env_uuid(from);
    return ask_wconf(&world, from, "commit",
                     json_make("{s:{s:s,s:s},s:s,s:[{s:s,s:s,s:s,s:{s:s,s:s,s:s}}]}", "owner",
                               "job", "luxid", "livelock", livelock, "commit_id", id, "changes",
                               "op", "put", "kind", "tag", "key", "instance/" WEB1 "/x", "object",
                               "kind", "instance", "object", WEB1, "tag", "x"));
}

static void test_first_named(void)
{
    static const char dead[] = "wrong_state: luxid does not live: nobody holds its lock file l; "
                               "nothing is locked or changed for it";
    world_set_up();
    world.own_livelocks = true;
    assert_says(lock_of(world.luxid, "l"), dead);
    assert_says(commit_of(world.luxid, "l"), dead);
    fake_livelock(world.world, NODE1, "l", LIVELOCK_DEAD);
    assert_says(lock_of(world.luxid, "l"), dead);
    assert_says(commit_of(world.luxid, "l"), dead);
    fake_livelock(world.world, NODE1, "l", LIVELOCK_UNSURE);
    assert_says(lock_of(world.luxid, "l"),
                "resource_not_available: lock file l: cannot tell whether luxid lives; try again");
    /* One of another node is none of this one's. */
    fake_livelock(world.world, NODE1, "l", LIVELOCK_GONE);
    fake_livelock(world.world, NODE2, "l", LIVELOCK_ALIVE);
    assert_says(lock_of(world.luxid, "l"), dead);
    fake_livelock(world.world, NODE1, "l", LIVELOCK_ALIVE);
    assert_says(commit_of(world.luxid, "l"), "{\"serial\":2}");
    assert_says(lock_of(world.luxid, "l"), GRANTED);
    /* And its end counts also for one that had no locks. */
    assert_says(ask_wconf(&world, world.luxid, "free_locks",
                          json_make("{s:{s:s,s:s}}", "owner", "job", "luxid", "livelock", "l")),
                "{}");
    fake_livelock(world.world, NODE1, "l", LIVELOCK_GONE);
    fake_settle(world.world);
    assert_says(lock_of(world.luxid, "l"), dead);
    world_tear_down();
}

/* Whatever lock file it names, and whatever it asks for. */
static void test_owner_elsewhere(void)
{
    static const char refused[] = "permission_denied: node \"node2\" is not the master; only "
                                  "processes of the master's node own locks and changes";
    static const char *const calls[] = {"list_locks", "free_locks"};
    struct env *luxid;
    world_set_up();
    luxid = fake_process(world.world, NODE2, ROLE_LUXID);
    assert_says(job_locks(&world, 17, "x instance/web1", false), GRANTED);
    fake_livelock(world.world, NODE2, "l", LIVELOCK_ALIVE);
    assert_says(lock_of(luxid, "l"), refused);
    assert_says(lock_of(luxid, "job-17"), refused);
    assert_says(commit_of(luxid, "job-17"), refused);
    for (guint i = 0; i < G_N_ELEMENTS(calls); i++)
        assert_says(ask_wconf(&world, luxid, calls[i], json_make("{s:o}", "owner", owner_json(17))),
                    refused);
    assert_says(job_commit(&world, 17, changes_of(put_memory(1, 256), NULL)), "{\"serial\":2}");
    world_tear_down();
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/cover/levels#FUT-04", test_locks_cover_changes);
    g_test_add_func("/cover/finer#FUT-01,FUT-04", test_finer_locks);
    g_test_add_func("/cover/group#FUT-04,LCK-19", test_group_lock_covers);
    g_test_add_func("/cover/log-only#FUT-03,WCF-22", test_log_only);
    g_test_add_func("/cover/mandatory-again#FUT-03,FUT-04", test_mandatory_again);
    g_test_add_func("/cover/kinds-without-lock#SAF-101", test_kinds_without_lock);
    g_test_add_func("/cover/named-changes-fit#SAF-101,WCF-22", test_named_changes_fit);
    g_test_add_func("/cover/writers#SAF-101", test_writers);
    g_test_add_func("/cover/writers-words#SAF-101", test_writers_words);
    g_test_add_func("/cover/first-named#SAF-101", test_first_named);
    g_test_add_func("/cover/owner-elsewhere#SAF-101", test_owner_elsewhere);
    return g_test_run();
}
