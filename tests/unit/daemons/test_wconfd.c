/*
 * The program fettle-wconfd: its flags and its input with every fault, its sign of readiness, its
 * end, and that it comes back from SIGKILL with its epoch and its locks. FETTLE_WCONFD names the
 * program.
 */
#include <gio/gio.h>
#include <glib/gstdio.h>
#include <signal.h>
#include <string.h>

#include "io/loop.h"
#include "io/real_env.h"
#include "proto/records.h"
#include "wconfd_host.h"

/* Runs the program to its end: "CODE last line of what it said", the root's name taken out. */
static char *run(const struct host *host, const char *input, const char *flag, const char *value)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *said = NULL;
    g_autoptr(GSubprocess) child = g_subprocess_new(
        G_SUBPROCESS_FLAGS_STDIN_PIPE | G_SUBPROCESS_FLAGS_STDERR_PIPE |
            G_SUBPROCESS_FLAGS_STDOUT_SILENCE,
        &error, g_getenv("FETTLE_WCONFD"), "--root", host->root, flag, value, NULL);
    g_assert_no_error(error);
    g_subprocess_communicate_utf8(child, input, NULL, NULL, &said, &error);
    g_assert_no_error(error);
    g_strchomp(said);
    const char *line = strrchr(said, '\n');
    g_autoptr(GString) text = g_string_new(line ? line + 1 : said);
    g_string_replace(text, host->root, "ROOT", 0);
    g_assert_true(g_subprocess_get_if_exited(child));
    return g_strdup_printf("%d %s", g_subprocess_get_exit_status(child), text->str);
}

#define assert_run(host, input, flag, value, expected)                                             \
    do {                                                                                           \
        g_autofree char *said_ = run(host, input, flag, value);                                    \
        g_assert_cmpstr(said_, ==, expected);                                                      \
    } while (0)

/* --- flags and input --- */

static void test_flags(void)
{
    struct host host;
    host_init(&host, true);
    assert_run(&host, "", "--bogus", NULL,
               "2 fettle-wconfd: Unknown option --bogus; see fettle-wconfd --help");
    assert_run(&host, "", "now", NULL,
               "2 fettle-wconfd: unexpected argument \"now\"; see fettle-wconfd --help");
    assert_run(&host, "", "--root", "/nonexistent",
               "2 fettle-wconfd: root folder /nonexistent: there is no such folder");
    assert_run(&host, "", "--version", NULL, "0 ");
    host_clear(&host);
}

static void test_bootstrap_input(void)
{
    struct host host;
    host_init(&host, true);
    assert_run(
        &host, "{\"OP_ID\":\"OP_TEST_DELAY\",\"duration\":1}", "--bootstrap", NULL,
        "2 fettle-wconfd: standard input: OP_ID: must be OP_CLUSTER_INIT, not OP_TEST_DELAY");
    assert_run(&host, "{\"cluster_name\":\"c1\"}", "--bootstrap", NULL,
               "2 fettle-wconfd: standard input: node_name: is missing");
    g_autofree char *broken = run(&host, "{\"cluster_name\":", "--bootstrap", NULL);
    g_assert_true(g_str_has_prefix(broken, "21 fettle-wconfd: standard input: "));
    g_autofree char *padding = g_strnfill(LIMIT_HELLO_BYTES + 1, ' ');
    g_autofree char *large = run(&host, padding, "--bootstrap", NULL);
    g_assert_true(g_str_has_prefix(large, "22 fettle-wconfd: standard input: "));
    assert_run(&host, INIT, "--bootstrap", NULL, "0 ");
    assert_run(&host, INIT, "--bootstrap", NULL,
               "4 fettle-wconfd: ROOT/var/store.db exists: this node has a cluster; it is not "
               "overwritten");
    host_clear(&host);
}

static void test_no_cluster(void)
{
    struct host host;
    host_init(&host, false);
    g_autofree char *stranger = run(&host, INIT, "--bootstrap", NULL);
    g_assert_true(g_str_has_prefix(stranger, "3 fettle-wconfd: "));
    g_assert_nonnull(strstr(stranger, "ROOT/etc/node.json"));
    host_clear(&host);
    host_init(&host, true);
    assert_run(&host, "", NULL, NULL,
               "3 fettle-wconfd: no cluster here: there is no ROOT/var/store.db. Make one: fettle "
               "cluster init; join one: fettle node invite, there; put one back: fettle cluster "
               "restore FILE");
    host_clear(&host);
}

static void test_torn_store(void)
{
    struct host host;
    host_init(&host, true);
    assert_run(&host, INIT, "--bootstrap", NULL, "0 ");
    g_autofree char *store = host_path(&host, "var/store.db");
    g_autofree char *bytes = NULL;
    gsize len = 0;
    g_assert_true(g_file_get_contents(store, &bytes, &len, NULL));
    g_assert_true(g_file_set_contents(store, bytes, (gssize)(len / 2), NULL));
    g_autofree char *said = run(&host, "", NULL, NULL);
    g_assert_true(g_str_has_prefix(said, "23 fettle-wconfd: "));
    g_assert_nonnull(strstr(said, "ROOT/var/store.db"));
    g_assert_false(daemon_is_ready(&host));
    host_clear(&host);
}

#define ANNOUNCED                                                                                  \
    "{\"history\":1,\"epoch\":1,\"cluster\":\"" CLUSTER "\",\"master_node\":\"%s\",\"serial\":1,"  \
    "\"members\":[]}"

/* What cannot be read is the engine's or a copy: who the master is tells which. */
static void test_torn_copy(void)
{
    static const char *const masters[] = {NODE, "22222222-2222-4222-8222-222222222222"};
    for (guint i = 0; i < G_N_ELEMENTS(masters); i++) {
        struct host host;
        host_init(&host, true);
        g_autofree char *announced = g_strdup_printf(ANNOUNCED, masters[i]);
        g_autofree char *aside = host_path(&host, "var/store.db.damaged");
        host_write(&host, "var/node/state.json", announced);
        host_write(&host, "var/store.db", "SQLite format 3");
        if (i == 0) {
            g_autofree char *said = run(&host, "", NULL, NULL);
            g_assert_true(g_str_has_prefix(said, "23 fettle-wconfd: ROOT/var/store.db is damaged"));
        } else {
            daemon_start(&host);
            g_assert_cmpint(daemon_end(&host, SIGTERM), ==, 0);
        }
        g_assert_cmpint(g_file_test(aside, G_FILE_TEST_EXISTS), ==, i == 1);
        host_clear(&host);
    }
}

/* --- life --- */

static void test_ready_and_end(void)
{
    struct host host;
    host_init(&host, true);
    assert_run(&host, INIT, "--bootstrap", NULL, "0 ");
    daemon_start(&host);
    g_autofree char *second = run(&host, "", NULL, NULL);
    g_assert_true(g_str_has_prefix(second, "5 fettle-wconfd: "));
    g_assert_cmpint(daemon_end(&host, SIGTERM), ==, 0);
    g_assert_false(daemon_is_ready(&host));
    host_clear(&host);
}

struct answer {
    bool done;
    json_t *result;
    char *error;
};

static void answer_cb(json_t *result, const GError *error, void *data)
{
    struct answer *answer = data;
    answer->done = true;
    answer->result = json_incref(result);
    answer->error =
        error ? g_strdup_printf("%s: %s", fettle_error_name(error), error->message) : NULL;
}

/* The answer as text; asked again while nobody listens. */
static char *ask(struct env *env, const char *method, json_t *args)
{
    json_autoptr kept = args;
    for (;;) {
        struct answer answer = {false};
        struct rpc_call call = {.to_node = NODE_LOCAL,
                                .to_role = ROLE_WCONFD,
                                .method = method,
                                .args = json_incref(kept)};
        env->ops->call(env, &call, answer_cb, &answer);
        while (!answer.done)
            loop_run_until(&answer.done, 1000);
        if (answer.error && !g_str_has_prefix(answer.error, "unreachable"))
            return answer.error;
        g_free(answer.error);
        if (answer.result) {
            char *text = json_to_text(answer.result);
            json_decref(answer.result);
            return text;
        }
    }
}

static json_t *take_lock(const char *livelock)
{
    return json_make("{s:{s:s,s:s},s:[{s:s,s:s}]}", "owner", "job", "luxid", "livelock", livelock,
                     "locks", "name", "instance/web1", "mode", "exclusive");
}

static char *first_line(const struct host *host)
{
    g_autofree char *path = host_path(host, "run/locks.journal");
    char *text = NULL;
    g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
    *strchr(text, '\n') = '\0';
    return text;
}

#define GRANTED "{\"blockers\":[],\"granted\":true,\"pending_nodes\":[],\"ticket\":0}"

static void test_comes_back(void)
{
    struct host host;
    g_autoptr(GError) error = NULL;
    host_init(&host, true);
    assert_run(&host, INIT, "--bootstrap", NULL, "0 ");
    daemon_start(&host);
    struct env *env = real_env_new(host.root, ROLE_LUXID, NULL, &error);
    g_assert_no_error(error);
    g_autofree char *livelock = env->ops->livelock_make(env, "luxid", &error);
    g_assert_no_error(error);
    g_autofree char *granted = ask(env, "update_locks", take_lock(livelock));
    g_assert_cmpstr(granted, ==, GRANTED);
    g_autofree char *journal = first_line(&host);
    g_autofree char *locks = ask(env, "list_all_locks", json_object());
    g_autofree char *path = host_path(&host, "run/wconfd.ready");
    g_assert_cmpint(daemon_end(&host, SIGKILL), ==, SIGKILL);
    g_unlink(path); /* left behind; the next start removes it too */
    daemon_start(&host);
    g_autofree char *journal_again = first_line(&host);
    g_autofree char *locks_again = ask(env, "list_all_locks", json_object());
    g_assert_cmpstr(journal_again, ==, journal);
    g_assert_cmpstr(locks_again, ==, locks);
    g_assert_nonnull(strstr(locks, "instance/web1"));
    /* The kernel lets go of the lock file: nobody has to tell. */
    env->ops->livelock_drop(env, livelock);
    g_autofree char *left = NULL;
    do {
        g_free(left);
        left = ask(env, "list_all_locks", json_object());
    } while (strcmp(left, "{\"locks\":[]}") != 0);
    real_env_free(env);
    g_assert_cmpint(daemon_end(&host, SIGTERM), ==, 0);
    host_clear(&host);
}

static void test_stale_ready_file(void)
{
    struct host host;
    host_init(&host, true);
    host_write(&host, "run/wconfd.ready", "");
    g_autofree char *said = run(&host, "", NULL, NULL);
    g_assert_true(g_str_has_prefix(said, "3 "));
    g_assert_false(daemon_is_ready(&host));
    host_clear(&host);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_assert_nonnull(g_getenv("FETTLE_WCONFD"));
    loop_init();
    g_test_add_func("/wconfd/flags", test_flags);
    g_test_add_func("/wconfd/bootstrap#WCF-11", test_bootstrap_input);
    g_test_add_func("/wconfd/no-cluster", test_no_cluster);
    g_test_add_func("/wconfd/torn-store", test_torn_store);
    g_test_add_func("/wconfd/torn-copy#SAF-07", test_torn_copy);
    g_test_add_func("/wconfd/ready", test_ready_and_end);
    g_test_add_func("/wconfd/comes-back#SAF-01,WCF-08,WCF-12,WCF-15,DTH-09", test_comes_back);
    g_test_add_func("/wconfd/stale-ready-file", test_stale_ready_file);
    return g_test_run();
}
