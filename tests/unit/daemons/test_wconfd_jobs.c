/*
 * Several processes at one real fettle-wconfd: every lock operation, changes at the same time, what
 * a restart keeps and what death frees. FETTLE_WCONFD names the program.
 */
#include <glib/gstdio.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "proto/rpc.h"
#include "wconfd_client.h"

#define GRANTED "{\"blockers\":[],\"granted\":true,\"pending_nodes\":[],\"ticket\":0}"
#define LOCK(mode, name) "{\"name\":\"" name "\",\"mode\":\"" mode "\"}"
#define UPDATE(locks) "update_locks {\"owner\":1,\"locks\":[" locks "]}"
#define WAIT(locks, more) "update_locks {\"owner\":1,\"wait\":true,\"locks\":[" locks "]" more "}"
#define NOTHING "{\"locks\":[]}"

static struct host host;

static void begin(void)
{
    host_init(&host, true);
    host_bootstrap(&host);
    daemon_start(&host);
}

static void end(void)
{
    g_assert_cmpint(daemon_end(&host, SIGTERM), ==, 0);
    host_clear(&host);
}

static void kill_and_start(void)
{
    g_autofree char *ready = host_path(&host, "run/wconfd.ready");
    g_assert_cmpint(daemon_end(&host, SIGKILL), ==, SIGKILL);
    g_unlink(ready);
    daemon_start(&host);
}

/* Asks until the answer has, or lacks, that text. */
static void wait_answer(struct client *client, const char *line, const char *part, bool there)
{
    for (;;) {
        g_autofree char *answer = client_ask(client, line);
        if ((strstr(answer, part) != NULL) == there)
            return;
        g_usleep(5000);
    }
}

static void wait_waiters(struct client *client, const char *owner)
{
    g_autofree char *part = g_strdup_printf("\"job\":\"%s\"", owner);
    wait_answer(client, "list_lock_waiters", part, true);
}

/* --- every lock operation --- */

static void test_locks(void)
{
    struct client a, b, c;
    begin();
    client_start(&a, &host, ROLE_JOB, 1);
    client_start(&b, &host, ROLE_JOB, 2);
    client_start(&c, &host, ROLE_JOB, 3);
    /* update: three kinds at once, order, what others block, no owner. */
    assert_answer(&a, UPDATE(LOCK("exclusive", "instance/a") "," LOCK("shared", "network/m")),
                  GRANTED);
    assert_answer(&a,
                  UPDATE(LOCK("shared", "instance/a") "," LOCK("release", "network/m") "," LOCK(
                      "exclusive", "network/n")),
                  GRANTED);
    assert_answer(&a, "list_locks {\"owner\":1}",
                  "{\"locks\":[{\"mode\":\"shared\",\"name\":\"instance/a\",*},{\"mode\":"
                  "\"exclusive\",\"name\":\"network/n\",*}]}");
    assert_answer(&a, UPDATE(LOCK("shared", "instance/b")),
                  "lock_order: order violation: requesting instance/b shared while holding "
                  "network/n exclusive");
    assert_answer(&b, UPDATE(LOCK("exclusive", "instance/b") "," LOCK("exclusive", "network/n")),
                  "{\"blockers\":[{\"job\":\"1\",*}],\"granted\":false,*}");
    assert_answer(&b, "list_locks {\"owner\":1}", NOTHING);
    assert_answer(&b, "update_locks {\"locks\":[]}",
                  "wrong_input: wconfd/update_locks: owner: is missing");
    /* unions: what can be had of a list; enough or nothing. */
    assert_answer(&b,
                  "union_locks {\"owner\":1,\"locks\":[" LOCK("shared", "instance/a") "," LOCK(
                      "exclusive", "network/n") "," LOCK("exclusive", "network/o") "]}",
                  "{\"locks\":[\"instance/a\",\"network/o\"]}");
    assert_answer(&b,
                  "guarded_union_locks {\"owner\":1,\"count\":2,\"locks\":[" LOCK(
                      "exclusive", "network/n") "," LOCK("exclusive", "network/p") "]}",
                  NOTHING);
    assert_answer(&b,
                  "guarded_union_locks {\"owner\":1,\"count\":1,\"locks\":[" LOCK(
                      "exclusive", "network/n") "," LOCK("exclusive", "network/p") "]}",
                  "{\"locks\":[\"network/p\"]}");
    /* intersection, one level, downgrade. */
    assert_answer(&b, "intersect_locks {\"owner\":1,\"locks\":[\"network/o\",\"network/p\",\"x\"]}",
                  "{\"locks\":[{\"mode\":\"exclusive\",\"name\":\"network/o\",*},{*\"network/p\"*}]"
                  "}");
    assert_answer(&c, UPDATE(LOCK("shared", "network/o")), "{*\"granted\":false*}");
    assert_answer(&b, "downgrade_locks_level {\"owner\":1,\"level\":\"network\"}", "{}");
    assert_answer(&c, UPDATE(LOCK("shared", "network/o")), GRANTED);
    assert_answer(&b, "free_locks_level {\"owner\":1,\"level\":\"network\"}", "{}");
    assert_answer(&b, "list_locks {\"owner\":1}", NOTHING);
    /* A waiting request is shown, gets another priority, and is granted. */
    client_tell(&b, WAIT(LOCK("exclusive", "network/n"), ""));
    wait_waiters(&c, "2");
    assert_answer(&c, "set_lock_priority {\"owner\":1,\"priority\":-3}",
                  "wrong_state: job 3 does not wait for locks");
    g_autofree char *other =
        g_strdup_printf("set_lock_priority {\"owner\":{\"job\":\"2\",\"livelock\":\"%s\"},"
                        "\"priority\":-3}",
                        b.livelock[0]);
    assert_answer(&c, other, "{}");
    assert_answer(&c, "list_all_locks", "*\"name\":\"network/n\"*\"waiting\":true*");
    assert_answer(&a, "free_locks {\"owner\":1}", "{}");
    g_autofree char *granted = client_hear(&b);
    g_assert_cmpstr(granted, ==, GRANTED);
    /* Groups. */
    assert_answer(&a, UPDATE(LOCK("shared", "network/[lockset]")),
                  "{\"blockers\":[{\"job\":\"2\",*}],\"granted\":false,*}");
    /* Crosswise out of order: the second one is refused with the circle. */
    assert_answer(&a, UPDATE(LOCK("exclusive", "instance/z")), GRANTED);
    client_tell(&a, WAIT(LOCK("exclusive", "network/n"), ",\"out_of_order\":true"));
    wait_waiters(&c, "1");
    assert_answer(&b, WAIT(LOCK("exclusive", "instance/z"), ",\"out_of_order\":true"),
                  "lock_cycle: *job 2*job 1*");
    assert_answer(&b, "free_locks {\"owner\":1}", "{}");
    g_autofree char *crosswise = client_hear(&a);
    g_assert_cmpstr(crosswise, ==, GRANTED);
    client_clear(&a);
    client_clear(&b);
    client_clear(&c);
    end();
}

/* --- changes --- */

static json_t *whole(struct client *client)
{
    g_autofree char *text = client_ask(client, "wait_changes {\"serial\":0}");
    json_t *answer = json_loads(text, 0, NULL);
    g_assert_nonnull(answer);
    return answer;
}

static guint count_kind(const json_t *answer, const char *kind)
{
    guint count = 0;
    size_t index;
    json_t *change;
    json_array_foreach(json_object_get(answer, "changes"), index, change)
        count += !strcmp(json_string_value(json_object_get(change, "kind")), kind);
    return count;
}

static void test_nothing_is_lost(void)
{
    enum { CLIENTS = 20, TAGS = 50 };
    struct client clients[CLIENTS];
    begin();
    for (guint i = 0; i < CLIENTS; i++)
        client_start(&clients[i], &host, ROLE_JOB, i + 1);
    json_autoptr before = whole(&clients[0]);
    for (guint i = 0; i < CLIENTS; i++) {
        g_autofree char *line = g_strdup_printf("!tags by%u %u", i, TAGS);
        client_tell(&clients[i], line);
    }
    for (guint i = 0; i < CLIENTS; i++) {
        g_autofree char *said = client_hear(&clients[i]);
        g_assert_cmpstr(said, ==, "done");
    }
    json_autoptr after = whole(&clients[0]);
    g_assert_cmpuint(count_kind(after, "tag"), ==, CLIENTS * TAGS);
    g_assert_cmpint(json_integer_value(json_object_get(after, "serial")) -
                        json_integer_value(json_object_get(before, "serial")),
                    ==, CLIENTS * TAGS);
    for (guint i = 0; i < CLIENTS; i++)
        client_clear(&clients[i]);
    end();
}

static json_t *cluster_of(const json_t *answer, json_int_t *ret_version)
{
    size_t index;
    json_t *change;
    json_array_foreach(json_object_get(answer, "changes"), index, change) {
        if (strcmp(json_string_value(json_object_get(change, "kind")), "cluster") != 0)
            continue;
        *ret_version = json_integer_value(json_object_get(change, "version"));
        return json_object_get(change, "object");
    }
    return NULL;
}

/* Lock, read, change, write, release; what it has read in `field`, then adds `add` to. */
static json_int_t add_to_setting(struct client *client, const char *field, json_int_t add)
{
    json_int_t version = 0;
    assert_answer(client, UPDATE(LOCK("exclusive", "cluster/BGL")), GRANTED);
    json_autoptr answer = whole(client);
    json_t *cluster = cluster_of(answer, &version);
    json_int_t was = json_integer_value(json_object_get(cluster, field));
    json_object_set_new(cluster, field, json_integer(was + add));
    json_autoptr args = json_make("{s:i,s:b,s:[{s:s,s:s,s:s,s:I,s:O}]}", "owner", 1, "commit_id", 1,
                                  "changes", "op", "put", "kind", "cluster", "key", CLUSTER,
                                  "version", version, "object", cluster);
    g_autofree char *text = json_to_text(args);
    g_autofree char *line = g_strconcat("change_cluster ", text, NULL);
    assert_answer(client, line, "{\"serial\":*}");
    assert_answer(client, "free_locks {\"owner\":1}", "{}");
    return was;
}

static void test_in_turn(void)
{
    struct client a, b;
    begin();
    client_start(&a, &host, ROLE_JOB, 1);
    client_start(&b, &host, ROLE_JOB, 2);
    g_assert_cmpint(add_to_setting(&a, "max_running_jobs", 1), ==, 20);
    g_assert_cmpint(add_to_setting(&b, "max_running_jobs", 10), ==, 21);
    g_assert_cmpint(add_to_setting(&a, "max_running_jobs", 0), ==, 31);
    client_clear(&a);
    client_clear(&b);
    end();
}

/* --- the configuration as a whole --- */

static void test_config_lock(void)
{
    struct client a, b, c;
    begin();
    client_start(&a, &host, ROLE_JOB, 1);
    client_start(&b, &host, ROLE_JOB, 2);
    client_start(&c, &host, ROLE_CLI, 3);
    assert_answer(&a, UPDATE(LOCK("shared", "cluster/config")), GRANTED);
    assert_answer(&b, UPDATE(LOCK("shared", "cluster/config")), GRANTED);
    assert_answer(&c, UPDATE(LOCK("exclusive", "cluster/config")),
                  "{\"blockers\":[{\"job\":\"1\",*},{\"job\":\"2\",*}],\"granted\":false,*}");
    assert_answer(&a, "free_locks {\"owner\":1}", "{}");
    assert_answer(&b, "free_locks {\"owner\":1}", "{}");
    assert_answer(&c, UPDATE(LOCK("exclusive", "cluster/config")), GRANTED);
    assert_answer(&a, UPDATE(LOCK("shared", "cluster/config")),
                  "{\"blockers\":[{\"job\":\"cli\",*}],\"granted\":false,*}");
    client_clear(&a);
    client_clear(&b);
    client_clear(&c);
    end();
}

/* In pieces or at once: the same objects, at one serial. */
static void test_whole_read(void)
{
    struct client a;
    begin();
    client_start(&a, &host, ROLE_JOB, 1);
    assert_answer(&a, "!tags t 3", "done");
    json_autoptr once = whole(&a);
    g_autofree char *text = client_ask(&a, "snapshot {}");
    json_autoptr pieces = json_loads(text, 0, NULL);
    json_autoptr objects = json_object();
    json_autoptr same = json_object();
    g_assert_true(json_equal(json_object_get(once, "serial"), json_object_get(pieces, "serial")));
    size_t index;
    json_t *change;
    json_array_foreach(json_object_get(once, "changes"), index, change)
        json_object_set(objects, json_string_value(json_object_get(change, "key")), change);
    json_array_foreach(json_object_get(pieces, "changes"), index, change)
        json_object_set(same, json_string_value(json_object_get(change, "key")), change);
    g_assert_cmpuint(json_object_size(objects), >=, 6);
    g_assert_true(json_equal(objects, same));
    client_clear(&a);
    end();
}

/* The document of `fettle cluster export`, with another number of jobs. */
static json_t *document(struct client *client, int jobs)
{
    json_autoptr answer = whole(client);
    json_t *objects = json_object();
    size_t index;
    json_t *change;
    json_array_foreach(json_object_get(answer, "changes"), index, change) {
        const char *kind = json_string_value(json_object_get(change, "kind"));
        json_t *object = json_object_get(change, "object");
        if (!strcmp(kind, "cluster"))
            json_object_set_new(object, "max_running_jobs", json_integer(jobs));
        if (!json_object_get(objects, kind))
            json_object_set_new(objects, kind, json_object());
        json_object_set(json_object_get(objects, kind),
                        json_string_value(json_object_get(change, "key")), object);
    }
    return json_make("{s:s,s:i,s:{s:s,s:s},s:o}", "format", "fettle-configuration", "version", 1,
                     "cluster", "uuid", CLUSTER, "name", "c1", "objects", objects);
}

static char *write_config(struct client *client, json_t *whole_document, const char *plan)
{
    json_autoptr args = json_make("{s:i,s:o,s:s,s:b}", "owner", 1, "document", whole_document,
                                  "plan", plan, "commit_id", 1);
    g_autofree char *text = json_to_text(args);
    g_autofree char *line = g_strconcat("write_config ", text, NULL);
    return client_ask(client, line);
}

static char *plan_of(const char *answer)
{
    json_autoptr json = json_loads(answer, 0, NULL);
    g_assert_nonnull(json);
    return g_strdup(json_string_value(json_object_get(json, "plan")));
}

static void assert_said(char *said, const char *pattern)
{
    if (!g_pattern_match_simple(pattern, said))
        g_assert_cmpstr(said, ==, pattern);
    g_free(said);
}

static void test_whole_write(void)
{
    struct client cli, job;
    begin();
    client_start(&cli, &host, ROLE_CLI, 9);
    client_start(&job, &host, ROLE_JOB, 1);
    g_autofree char *first = write_config(&cli, document(&job, 7), "");
    g_autofree char *plan = plan_of(first);
    g_assert_nonnull(strstr(first, "max_running_jobs: 20 -> 7"));
    assert_said(write_config(&cli, document(&job, 7), plan),
                "lock_missing: cli does not hold the lock cluster/config exclusively");
    assert_answer(&cli, UPDATE(LOCK("exclusive", "cluster/config")), GRANTED);
    /* What was read is old: somebody changed it since. */
    g_assert_cmpint(add_to_setting(&job, "max_running_jobs", 1), ==, 20);
    assert_said(write_config(&cli, document(&job, 7), plan), "version_conflict: *");
    /* An object that is none. */
    json_t *broken = document(&job, 7);
    json_t *clusters = json_object_get(json_object_get(broken, "objects"), "cluster");
    json_object_del(json_object_get(clusters, CLUSTER), "name");
    g_autofree char *bad = write_config(&cli, json_incref(broken), "");
    g_autofree char *bad_plan = plan_of(bad);
    g_assert_nonnull(strstr(bad, "name: is missing"));
    assert_said(write_config(&cli, broken, bad_plan), "wrong_input: *name: is missing");
    /* Nothing of that has changed anything; the right one does. */
    g_assert_cmpint(add_to_setting(&job, "max_running_jobs", 0), ==, 21);
    g_autofree char *second = write_config(&cli, document(&job, 7), "");
    g_autofree char *good = plan_of(second);
    assert_said(write_config(&cli, document(&job, 7), good), "{*\"serial\":*}");
    g_assert_cmpint(add_to_setting(&job, "max_running_jobs", 0), ==, 7);
    client_clear(&cli);
    client_clear(&job);
    end();
}

/* --- what a client has --- */

#define MAC "aa:00:00:00:00:77"
#define FRESH "aaaaaaaa-0000-4000-8000-000000000009"

static void reserve(struct client *client, guint job)
{
    g_autofree char *line = g_strdup_printf(
        "reserve {\"owner\":1,\"commit_id\":true,\"changes\":[{\"op\":\"put\",\"kind\":"
        "\"reservation\",\"key\":\"" FRESH "\",\"object\":{\"uuid\":\"" FRESH
        "\",\"name\":\"a\",\"owner\":{\"job\":\"%u\",\"livelock\":\"%s\"},\"macs\":[\"" MAC
        "\"]}}]}",
        job, client->livelock[0]);
    assert_answer(client, line, "{\"serial\":*}");
}

/* Without the times: who waits asks again. */
static char *all_locks(struct client *client)
{
    g_autofree char *text = client_ask(client, "list_all_locks");
    g_autoptr(GRegex) since = g_regex_new("\"since\":[0-9]+,", 0, 0, NULL);
    return g_regex_replace(since, text, -1, 0, "", 0, NULL);
}

/* A client with one of each: locks, the configuration lock, a reservation, a waiting request.
 * wconfd is killed, and everything is as before; the queue's folder is no part of it. Then the
 * client is killed, and all of it is gone, and nothing of others. */
static void test_one_of_each(void)
{
    struct client a, b, c, look;
    begin();
    client_start(&a, &host, ROLE_JOB, 1);
    client_start(&b, &host, ROLE_JOB, 2);
    client_start(&c, &host, ROLE_JOB, 3);
    client_start(&look, &host, ROLE_JOB, 1); /* the same job id, another lock file */
    assert_answer(&c, UPDATE(LOCK("exclusive", "network/n")), GRANTED);
    assert_answer(&a, UPDATE(LOCK("exclusive", "instance/a") "," LOCK("shared", "cluster/config")),
                  GRANTED);
    reserve(&a, 1);
    client_tell(&a, WAIT(LOCK("exclusive", "network/n"), ",\"out_of_order\":true"));
    wait_waiters(&look, "1");
    client_tell(&b, WAIT(LOCK("exclusive", "instance/a"), ""));
    wait_waiters(&look, "2");
    g_autofree char *before = all_locks(&look);
    g_autofree char *queue = g_strdup_printf("rm -rf '%s/run/queue'", host.root);
    g_assert_true(g_spawn_command_line_sync(queue, NULL, NULL, NULL, NULL));
    kill_and_start();
    g_autofree char *after = all_locks(&look);
    g_assert_cmpstr(after, ==, before);
    wait_answer(&look, "wait_changes {\"serial\":0}", MAC, true);
    assert_answer(&look, "list_locks {\"owner\":1}", NOTHING);
    client_kill(&a);
    g_autofree char *granted = client_hear(&b); /* what it waited for is free */
    g_assert_cmpstr(granted, ==, GRANTED);
    wait_answer(&look, "wait_changes {\"serial\":0}", MAC, false);
    g_autofree char *left = client_ask(&look, "list_all_locks");
    g_assert_null(strstr(left, a.livelock[0]));
    g_assert_null(strstr(left, "cluster/config"));
    g_assert_nonnull(strstr(left, c.livelock[0]));
    g_assert_nonnull(strstr(left, b.livelock[0]));
    client_clear(&a);
    client_clear(&b);
    client_clear(&c);
    client_clear(&look);
    end();
}

/* Three owners; one dies while wconfd is away. Its process id, and its connections, are others' by
 * then: neither proves life, and the loss of connections proves no death. */
static void test_only_the_lock_file_counts(void)
{
    struct client a, b, look;
    begin();
    client_start(&a, &host, ROLE_JOB, 1);
    client_start(&b, &host, ROLE_JOB, 2);
    client_start(&look, &host, ROLE_JOB, 3);
    /* The id of a process that lives on, in the name of the one that dies. */
    g_autofree char *line = g_strdup_printf(
        "update_locks {\"owner\":{\"job\":\"2\",\"livelock\":\"%s\",\"pid\":%d},\"locks\":[" LOCK(
            "exclusive", "instance/b") "]}",
        b.livelock[0], (int)getpid());
    assert_answer(&b, line, GRANTED);
    assert_answer(&a, UPDATE(LOCK("exclusive", "instance/a")), GRANTED);
    assert_answer(&a, "!cut", "done");
    g_autofree char *keeper = client_ask(&b, "!keep");
    client_kill(&b);
    wait_answer(&look, "list_all_locks", b.livelock[0], false);
    g_assert_cmpint(kill((pid_t)atoi(keeper), 0), ==, 0); /* the connection is open still */
    kill((pid_t)atoi(keeper), SIGKILL);
    assert_answer(&look, "list_all_locks",
                  "{\"locks\":[{\"mode\":\"exclusive\",\"name\":"
                  "\"instance/a\",*}]}");
    assert_answer(&a, "list_locks {\"owner\":1}", "{\"locks\":[{*\"instance/a\"*}]}");
    client_clear(&a);
    client_clear(&b);
    client_clear(&look);
    end();
}

/* Two jobs in one process: each dies by its own lock file. */
static void test_two_in_one(void)
{
    struct client a, look;
    begin();
    client_start(&a, &host, ROLE_JOB, 1);
    client_start(&look, &host, ROLE_JOB, 3);
    assert_answer(&a, UPDATE(LOCK("exclusive", "instance/a")), GRANTED);
    assert_answer(&a, "update_locks {\"owner\":2,\"locks\":[" LOCK("exclusive", "instance/b") "]}",
                  GRANTED);
    assert_answer(&a, "!drop", "done");
    wait_answer(&look, "list_all_locks", "instance/b", false);
    assert_answer(&look, "list_all_locks", "{\"locks\":[{*\"instance/a\"*}]}");
    client_kill(&a);
    wait_answer(&look, "list_all_locks", "instance/a", false);
    client_clear(&a);
    client_clear(&look);
    end();
}

/* --- sweeps --- */

/* Of clients: wconfd has one of its own. */
static guint count_files(void)
{
    g_autofree char *folder = host_path(&host, "run/livelocks");
    g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
    const char *name;
    guint count = 0;
    while ((name = g_dir_read_name(dir)))
        count += g_str_has_prefix(name, "service-") ? 0 : 1;
    return count;
}

static void wait_files(guint wanted)
{
    while (count_files() != wanted)
        g_usleep(5000);
}

/* Ten that die while wconfd sweeps, ten while it is away; the files of the living stay. */
static void test_sweeps(void)
{
    enum { DYING = 10 };
    struct client live, dying[2 * DYING];
    begin();
    client_start(&live, &host, ROLE_JOB, 1);
    /* 100 ms from the next start on. */
    g_assert_cmpint(add_to_setting(&live, "sweep_interval_ms", -9900), ==, 10000);
    for (guint i = 0; i < 2 * DYING; i++)
        client_start(&dying[i], &host, ROLE_JOB, i + 2);
    g_assert_cmpuint(count_files(), ==, 2 + 4 * DYING);
    kill_and_start();
    for (guint i = 0; i < DYING; i++)
        client_kill(&dying[i]);
    wait_files(2 + 2 * DYING);
    g_autofree char *ready = host_path(&host, "run/wconfd.ready");
    g_assert_cmpint(daemon_end(&host, SIGKILL), ==, SIGKILL);
    g_unlink(ready);
    for (guint i = DYING; i < 2 * DYING; i++)
        client_kill(&dying[i]);
    g_assert_cmpuint(count_files(), ==, 2 + 2 * DYING);
    daemon_start(&host);
    wait_files(2);
    assert_answer(&live, UPDATE(LOCK("exclusive", "instance/a")), GRANTED);
    for (guint i = 0; i < 2 * DYING; i++)
        client_clear(&dying[i]);
    client_clear(&live);
    end();
}

/* A field that a later version's client sends is no fault. */
static void test_later_client(void)
{
    struct client a;
    begin();
    client_start(&a, &host, ROLE_JOB, 1);
    assert_answer(&a,
                  "update_locks {\"owner\":1,\"colour\":\"blue\",\"locks\":[{\"name\":"
                  "\"instance/a\",\"mode\":\"exclusive\",\"mood\":1}]}",
                  GRANTED);
    assert_answer(&a, "list_locks {\"owner\":1}", "{\"locks\":[{*\"instance/a\"*}]}");
    client_clear(&a);
    end();
}

int main(int argc, char **argv)
{
    if (argc == 5 && !strcmp(argv[1], "--client"))
        return client_main(argv + 2);
    g_test_init(&argc, &argv, NULL);
    g_assert_nonnull(g_getenv("FETTLE_WCONFD"));
    g_test_add_func("/wconfd-jobs/locks#LCK-23,LCK-05,LCK-06,LCK-11,LCK-13,LCK-17,DTH-08,DTH-20,"
                    "FUT-09",
                    test_locks);
    g_test_add_func("/wconfd-jobs/nothing-is-lost#WCF-03", test_nothing_is_lost);
    g_test_add_func("/wconfd-jobs/in-turn#WCF-21", test_in_turn);
    g_test_add_func("/wconfd-jobs/config-lock#WCF-17", test_config_lock);
    g_test_add_func("/wconfd-jobs/whole-read#WCF-18", test_whole_read);
    g_test_add_func("/wconfd-jobs/whole-write#WCF-19", test_whole_write);
    g_test_add_func("/wconfd-jobs/one-of-each#WCF-12,WCF-13,WCF-15,WCF-08,FUT-06,DTH-02,DTH-22",
                    test_one_of_each);
    g_test_add_func("/wconfd-jobs/only-the-lock-file#DTH-06,WCF-14,WCF-15",
                    test_only_the_lock_file_counts);
    g_test_add_func("/wconfd-jobs/two-in-one#DTH-04", test_two_in_one);
    g_test_add_func("/wconfd-jobs/sweeps#DTH-18,DTH-19", test_sweeps);
    g_test_add_func("/wconfd-jobs/later-client#FUT-12", test_later_client);
    return g_test_run();
}
