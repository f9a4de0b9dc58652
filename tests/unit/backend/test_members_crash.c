/*
 * A node daemon that dies before each single outside call while its member of etcd gets other keys:
 * whom it trusts, the start with that, keys and certificates, whom it trusts alone. The next one
 * finds the member, or starts it, and goes on in that phase; what was renewed is in use then.
 */
#include "places.h"
#include "world.h"

#include "io/crash.h"
#include "io/engine_file.h"
#include "io/files.h"
#include "io/process.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define EXIT_DONE 42

static char *self;

/* --- what wconfd knows --- */

enum { SPREAD, REISSUE, DROP, OVER };

static char *in_folder(const char *name)
{
    return g_build_filename(world_folder(), name, NULL);
}

static char *read_text(const char *name)
{
    g_autofree char *path = in_folder(name);
    g_autoptr(GError) error = NULL;
    char *text = files_read_path(path, LIMIT_TRUST_CHARS, NULL, &error);
    g_assert_no_error(error);
    return text;
}

static void write_text(const char *name, const char *text)
{
    g_autofree char *path = in_folder(name);
    g_assert_true(g_file_set_contents(path, text, -1, NULL));
}

/* Whom members are to trust in a phase. */
static char *list_of(int phase)
{
    g_autofree char *old = read_text("old-issuer");
    g_autofree char *next = read_text("next-issuer");
    if (phase == DROP)
        return g_steal_pointer(&next);
    return phase == SPREAD ? g_strconcat(old, next, NULL) : g_strconcat(next, old, NULL);
}

/* --- a renewal: what is asked of the node daemon in each phase --- */

static void start_member(void)
{
    record_autoptr(engine_config) config = places_config(1, 23460);
    g_autoptr(GError) error = NULL;
    nodes[0].members->ops->start(nodes[0].members, config, MEMBER_NEW, &error);
    g_assert_no_error(error);
}

static void start_anew(void)
{
    record_autoptr(member_status) status = places_ask(0);
    if (strcmp(status->started_with, status->trusts) == 0)
        return;
    g_assert_true(nodes[0].members->ops->stop(nodes[0].members, NULL));
    start_member();
}

static void reissue(const char *list)
{
    struct members *members = nodes[0].members;
    g_autofree char *member = NULL, *client = NULL, *crt = NULL, *other = NULL;
    g_autoptr(GError) error = NULL;
    members->ops->prepare(members, true, &member, &client, &error);
    g_assert_no_error(error);
    authority->ops->sign_etcd(authority, member, CLUSTER, "127.0.0.1", &crt, &error);
    g_assert_no_error(error);
    authority->ops->sign_etcd(authority, client, CLUSTER, NULL, &other, &error);
    g_assert_no_error(error);
    members->ops->certify(members, crt, other, list, &error);
    g_assert_no_error(error);
}

static void renew(void)
{
    g_autofree char *begun = read_text("phase");
    g_autoptr(GError) error = NULL;
    for (int phase = atoi(begun); phase < OVER; phase++) {
        g_autofree char *list = list_of(phase);
        g_autofree char *next = g_strdup_printf("%d", phase + 1);
        if (phase == REISSUE) {
            reissue(list);
        } else {
            nodes[0].members->ops->trust(nodes[0].members, list, &error);
            g_assert_no_error(error);
            start_anew();
        }
        write_text("phase", next);
    }
}

static void live(void *unused)
{
    places_make();
    start_member();
    renew();
    _exit(EXIT_DONE); /* what is still allocated is no leak here */
}

/* Exit code of a daemon that dies at this point; `log`: where it notes those that it passes. */
static int die_at(const char *at, const char *log)
{
    const char *argv[] = {self, "live", at, log, NULL};
    struct process_options options = {.argv = argv, .errors_fd = STDERR_FILENO};
    struct process *process = process_spawn(&options, NULL);
    g_assert_true(process_wait(process, 60000));
    int code = process_exit_code(process);
    process_free(process);
    return code;
}

/* --- before and after --- */

static void set_up(void)
{
    g_autofree char *old = NULL, *next = NULL, *issuer = NULL;
    g_autoptr(GError) error = NULL;
    places_make();
    places_certify(0);
    record_autoptr(engine_config) config = places_config(1, 23460);
    g_assert_true(nodes[0].members->ops->config_write(nodes[0].members, config, &error));
    g_assert_true(authority->ops->etcd_issuers(authority, &old, &error));
    g_assert_true(authority->ops->make_next(authority, CLUSTER, &next, &issuer, &error));
    g_autofree char *ca = g_build_filename(nodes[0].paths->etc, "ca.crt", NULL);
    g_autofree char *trusted = files_read_path(ca, LIMIT_PEM_CHARS, NULL, &error);
    g_autofree char *both = g_strconcat(next, trusted, NULL);
    g_assert_true(files_write_path(ca, both, strlen(both), 0644, true, &error));
    write_text("old-issuer", old);
    write_text("next-issuer", issuer);
    g_free(world_shell("cp -r --preserve=ownership %s %s/etc-before", nodes[0].paths->etc,
                       world_folder()));
}

static void put_back(void)
{
    g_free(world_shell("rm -rf %s && cp -r --preserve=ownership %s/etc-before %s",
                       nodes[0].paths->etc, world_folder(), nodes[0].paths->etc));
    write_text("phase", "0");
}

/* The next node daemon: a member that runs is well with what it reads now. */
static void come_back(void)
{
    struct members *members = nodes[0].members;
    bool running = false;
    g_autoptr(GError) error = NULL;
    g_assert_true(members->ops->adopt(members, &running, &error));
    until(!members->ops->running(members) || places_healthy(0));
    start_member();
}

static void assert_renewed(void)
{
    g_autofree char *list = list_of(DROP);
    g_autofree char *digest = g_compute_checksum_for_string(G_CHECKSUM_SHA256, list, -1);
    g_autofree char *key = engine_file_key(nodes[0].paths, ENGINE_FILE_MEMBER);
    struct stat of_key;
    until(places_healthy(0));
    record_autoptr(member_status) status = places_ask(0);
    g_assert_cmpstr(status->trusts, ==, digest);
    g_assert_cmpstr(status->started_with, ==, digest);
    g_assert_true(status->by_first);
    g_assert_cmpint(stat(key, &of_key), ==, 0);
    g_assert_cmpuint(of_key.st_uid, !=, 0);
    g_assert_cmpuint(of_key.st_mode & 0777, ==, 0600);
    g_autofree char *left = world_shell("find %s/etcd -name '*-next*'", nodes[0].paths->etc);
    g_assert_cmpstr(left, ==, "");
}

static void recover(void)
{
    g_assert_true(node_paths_make(nodes[0].paths, NULL));
    authority_free(authority);
    etcd_host_free(nodes[0].members);
    authority = authority_new(nodes[0].paths, "authority");
    places_open(&nodes[0]);
    come_back();
    renew();
    assert_renewed();
    g_assert_true(nodes[0].members->ops->stop(nodes[0].members, NULL));
}

/* --- the walk --- */

static void die_and_recover(const char *at)
{
    g_test_message("dies at %s", at);
    put_back();
    g_assert_cmpint(die_at(at, NULL), ==, 128 + 9);
    recover();
}

static guint count_points(void)
{
    g_autofree char *log = in_folder("points");
    put_back();
    g_assert_cmpint(die_at("0", log), ==, EXIT_DONE);
    recover();
    g_autofree char *lines = world_shell("wc -l < %s", log);
    return (guint)atoi(lines);
}

static void walk(void *unused)
{
    static const char *const named[] = {"keys: rename", "process: signal"};
    set_up();
    for (guint i = 0; i < G_N_ELEMENTS(named); i++)
        die_and_recover(named[i]);
    places_remove();
}

static void walk_all(void *unused)
{
    set_up();
    guint count = count_points();
    g_test_message("%u crash points", count);
    g_assert_cmpuint(count, >, 60);
    for (guint i = 1; i <= count; i++) {
        g_autofree char *at = g_strdup_printf("%u", i);
        die_and_recover(at);
    }
    places_remove();
}

static int tests(int argc, char **argv)
{
    if (argc > 2 && strcmp(argv[1], "live") == 0) {
        g_setenv("FETTLE_CRASH_AT", argv[2], TRUE);
        if (argc > 3)
            g_setenv("FETTLE_CRASH_LOG", argv[3], TRUE);
        loop_init();
        world_run(live, NULL);
        return 0;
    }
    bool all = argc > 1 && strcmp(argv[1], "all") == 0;
    loop_init();
    g_test_init(&argc, &argv, NULL);
    self = g_file_read_link("/proc/self/exe", NULL);
    world_test("/members-crash/keys#SAF-94", all ? walk_all : walk);
    return g_test_run();
}

int main(int argc, char **argv)
{
    return world_main(argc, argv, tests);
}
