/* Files, node.json, folders, crash points, timers: files.c, node_config.c, crash.c, loop.c. */
#include "world.h"

#include "base/task.h"
#include "io/crash.h"
#include "io/files.h"

#include <errno.h>
#include <glib/gstdio.h>
#include <signal.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

struct fixture {
    struct node_paths *paths;
    struct task_group *tasks;
};

static void set_up(struct fixture *fixture, gconstpointer unused)
{
    fixture->paths = world_new(NODE_A);
    fixture->tasks = task_group_new();
}

static void tear_down(struct fixture *fixture, gconstpointer unused)
{
    task_group_unref(fixture->tasks);
    world_remove(fixture->paths);
}

/* --- files --- */

static void check_area(struct fixture *fixture, enum file_area area, const char *place)
{
    g_autofree char *path = g_build_filename(fixture->paths->root, place, "a/b", NULL);
    g_autofree char *data = NULL;
    g_autoptr(GError) error = NULL;
    size_t len = 0;
    struct stat info;

    g_assert_null(files_read(fixture->paths, area, "a/b", 100, &len, &error));
    assert_error(&error, UNKNOWN_ENTITY, "there is no file");
    g_assert_true(files_write(fixture->paths, area, "a/b", "one\0two", 7, &error));
    g_assert_cmpint(g_stat(path, &info), ==, 0);
    g_assert_cmpuint(info.st_mode & 0777, ==, 0600);
    g_assert_true(files_append(fixture->paths, area, "a/b", "!", 1, &error));
    data = files_read(fixture->paths, area, "a/b", 8, &len, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(len, ==, 8);
    g_assert_true(memcmp(data, "one\0two!", 9) == 0); /* with the NUL beyond */
    g_assert_null(files_read(fixture->paths, area, "a/b", 7, &len, &error));
    assert_error(&error, LIMIT, "has 8 bytes; at most 7 are read");
    g_assert_true(files_write(fixture->paths, area, "a/c", "", 0, &error));
    g_autoptr(GPtrArray) names = files_list(fixture->paths, area, "a", &error);
    g_assert_cmpuint(names->len, ==, 2); /* and no temporary ones */
    g_assert_cmpstr(names->pdata[0], ==, "b");
    g_assert_cmpstr(names->pdata[1], ==, "c");
    g_assert_true(files_remove(fixture->paths, area, "a/b", &error));
    g_assert_true(files_remove(fixture->paths, area, "a/b", &error));
    g_assert_cmpint(g_stat(path, &info), ==, -1);
    g_assert_no_error(error);
}

static void test_areas(struct fixture *fixture, gconstpointer unused)
{
    check_area(fixture, FILE_STATE, "var");
    check_area(fixture, FILE_QUEUE, "run/queue");
    check_area(fixture, FILE_RUN, "run");
}

static void test_bad_names(struct fixture *fixture, gconstpointer unused)
{
    static const char *const bad[] = {"",   "/etc/passwd", "..", "../x", "a/../b", "a//b",
                                      "a/", ".hidden",     ".",  "a/.b", "a/./b"};
    g_autoptr(GError) error = NULL;

    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_assert_false(files_write(fixture->paths, FILE_RUN, bad[i], "x", 1, &error));
        assert_error(&error, WRONG_INPUT, "must be relative, without empty parts");
        g_assert_false(files_remove(fixture->paths, FILE_RUN, bad[i], &error));
        assert_error(&error, WRONG_INPUT, "must be relative");
        g_assert_null(files_read(fixture->paths, FILE_RUN, bad[i], 10, NULL, &error));
        assert_error(&error, WRONG_INPUT, "must be relative");
    }
    g_autoptr(GPtrArray) none = files_list(fixture->paths, FILE_RUN, "no-such-folder", &error);
    g_assert_no_error(error);
    g_assert_cmpuint(none->len, ==, 0);
    g_assert_null(files_read(fixture->paths, FILE_STATE, "queue", 10, NULL, &error));
    assert_error(&error, STORAGE, "cannot read");
    /* A folder stands where a file should. */
    g_assert_false(files_write(fixture->paths, FILE_STATE, "queue", "x", 1, &error));
    assert_error(&error, STORAGE, "cannot rename into place");
}

struct write_task {
    struct fixture *fixture;
    guint *running;
    char *path; /* NULL: of the state */
    bool ok, killed, done;
};

static void write_in_task(void *data)
{
    struct write_task *task = data;
    g_autoptr(GError) error = NULL;

    (*task->running)++;
    task->ok = task->path ? files_write_synced(task->path, "{}", 2, 0600, &error) &&
                                files_remove_synced(task->path, &error)
                          : files_write(task->fixture->paths, FILE_STATE, "node/state.json", "{}",
                                        2, &error);
    task->killed = error != NULL && fettle_error_is(error, KILLED);
    task->done = true;
    (*task->running)--;
}

/* While one task waits for its disk, others run. */
static void overlap(struct fixture *fixture, char *path)
{
    struct write_task tasks[8] = {0};
    guint running = 0, most = 0;

    for (int i = 0; i < 8; i++) {
        tasks[i] = (struct write_task){.fixture = fixture, .running = &running, .path = path};
        task_spawn(fixture->tasks, write_in_task, &tasks[i]);
    }
    for (int i = 0; i < 8; i++)
        while (!tasks[i].done) {
            g_main_context_iteration(NULL, TRUE);
            most = MAX(most, running);
        }
    for (int i = 0; i < 8; i++)
        g_assert_true(tasks[i].ok);
    g_assert_cmpuint(most, >, 1);
}

static void test_in_tasks(struct fixture *fixture, gconstpointer unused)
{
    g_autofree char *key = g_build_filename(fixture->paths->etc, "member.key", NULL);
    overlap(fixture, NULL);
    overlap(fixture, key);
    g_assert_false(g_file_test(key, G_FILE_TEST_EXISTS));
}

static void test_killed_task(struct fixture *fixture, gconstpointer unused)
{
    guint running = 0;
    struct write_task task = {.fixture = fixture, .running = &running};

    task_spawn(fixture->tasks, write_in_task, &task);
    while (running == 0)
        g_main_context_iteration(NULL, TRUE);
    task_group_kill(fixture->tasks);
    world_wait(&task.done);
    g_assert_false(task.ok);
    g_assert_true(task.killed);
    world_pause(50); /* the worker finishes, and finds nobody */
}

static void expect_content(struct fixture *fixture, const char *name, const char *content)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *text = files_read(fixture->paths, FILE_RUN, name, 100, NULL, &error);
    g_assert_no_error(error);
    g_assert_cmpstr(text, ==, content);
}

static void append_to(struct fixture *fixture, const char *name, const char *text)
{
    g_autoptr(GError) error = NULL;
    files_append(fixture->paths, FILE_RUN, name, text, strlen(text), &error);
    g_assert_no_error(error);
}

/* What is appended is in the file of that name, also when another one has taken its place. */
static void test_append(struct fixture *fixture, gconstpointer unused)
{
    g_autoptr(GError) error = NULL;
    append_to(fixture, "j", "one ");
    append_to(fixture, "j", "two ");
    expect_content(fixture, "j", "one two ");
    g_assert_true(files_write(fixture->paths, FILE_RUN, "j", "anew ", 5, &error));
    append_to(fixture, "j", "three ");
    append_to(fixture, "other", "else");
    append_to(fixture, "j", "four");
    expect_content(fixture, "j", "anew three four");
    expect_content(fixture, "other", "else");
    g_assert_true(files_remove(fixture->paths, FILE_RUN, "j", &error));
    append_to(fixture, "j", "five");
    expect_content(fixture, "j", "five");
}

/* A full disk leaves the old file, and an append leaves what was there. */
static int on_full_disk(struct fixture *fixture)
{
    g_autofree char *large = g_strnfill(300000, 'x');
    g_autoptr(GError) error = NULL;
    size_t len = 0;

    if (!files_write(fixture->paths, FILE_STATE, "a", "old", 3, &error) ||
        files_write(fixture->paths, FILE_STATE, "a", large, 300000, &error))
        return 1;
    assert_error(&error, STORAGE, "No space left on device");
    if (files_append(fixture->paths, FILE_STATE, "a", large, 300000, &error))
        return 2;
    assert_error(&error, STORAGE, "cannot append to");
    g_autofree char *text = files_read(fixture->paths, FILE_STATE, "a", 100, &len, &error);
    g_autoptr(GPtrArray) names = files_list(fixture->paths, FILE_STATE, "", &error);
    return text != NULL && strcmp(text, "old") == 0 && names->len == 1 ? 0 : 3;
}

static void test_full_disk(struct fixture *fixture, gconstpointer unused)
{
    int status = 0;
    pid_t child = fork();

    if (child == 0) {
        if (!world_own_mounts() || mount("tmpfs", fixture->paths->var, "tmpfs", 0, "size=64k") != 0)
            _exit(77);
        _exit(on_full_disk(fixture));
    }
    g_assert_cmpint(waitpid(child, &status, 0), ==, child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        g_test_skip("no mount namespace can be made here");
    else
        g_assert_cmpint(status, ==, 0);
}

/* --- crash points: killed at each of them, a file is the old one or the new one --- */

static int write_as_child(const char *root)
{
    struct node_paths *paths = node_paths_new(root, NULL);
    bool ok = files_write(paths, FILE_STATE, "node/state.json", "new", 3, NULL);

    node_paths_free(paths);
    return ok ? 0 : 1;
}

static int append_as_child(const char *root)
{
    struct node_paths *paths = node_paths_new(root, NULL);
    bool ok = files_append(paths, FILE_STATE, "node/log", "new", 3, NULL) &&
              files_remove(paths, FILE_STATE, "node/log", NULL);

    node_paths_free(paths);
    return ok ? 0 : 1;
}

static int run_child(struct fixture *fixture, const char *does, const char *const *variables)
{
    int status = 0;
    pid_t child = fork();

    if (child == 0) {
        for (int i = 0; variables[i] != NULL; i += 2)
            g_setenv(variables[i], variables[i + 1], TRUE);
        execl("/proc/self/exe", "test_files", does, fixture->paths->root, NULL);
        _exit(9);
    }
    g_assert_cmpint(waitpid(child, &status, 0), ==, child);
    return status;
}

/* Everything in a folder, hidden or not. */
static guint entries_of(const struct fixture *fixture, const char *folder)
{
    g_autofree char *path = g_build_filename(fixture->paths->root, folder, NULL);
    g_autoptr(GDir) dir = g_dir_open(path, 0, NULL);
    guint count = 0;

    while (g_dir_read_name(dir) != NULL)
        count++;
    return count;
}

static void test_crash_points(struct fixture *fixture, gconstpointer unused)
{
    g_autofree char *log = g_build_filename(fixture->paths->root, "points", NULL);
    g_autofree char *once = g_build_filename(fixture->paths->root, "once", NULL);
    g_autofree char *lines = NULL;
    g_autoptr(GError) error = NULL;
    const char *const count[] = {"FETTLE_CRASH_LOG", log, NULL};

    g_assert_cmpint(run_child(fixture, "--child", count), ==, 0);
    g_assert_true(g_file_get_contents(log, &lines, NULL, NULL));
    g_assert_cmpstr(lines, ==,
                    "1 files: create\n2 files: write\n3 files: fsync\n4 files: rename\n"
                    "5 files: fsync folder\n");
    for (int at = 1; at <= 6; at++) {
        g_autofree char *text = g_strdup_printf("%d", at);
        const char *const crash[] = {"FETTLE_CRASH_AT", text, NULL};
        g_assert_true(files_write(fixture->paths, FILE_STATE, "node/state.json", "old", 3, &error));
        int status = run_child(fixture, "--child", crash);
        if (at <= 5)
            g_assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        else
            g_assert_cmpint(status, ==, 0);
        g_autofree char *now =
            files_read(fixture->paths, FILE_STATE, "node/state.json", 10, NULL, &error);
        g_assert_cmpstr(now, ==, at <= 4 ? "old" : "new");
        g_autoptr(GPtrArray) names = files_list(fixture->paths, FILE_STATE, "node", &error);
        g_assert_cmpuint(names->len, ==, 2); /* guests/ and state.json: no remains are shown */
        g_assert_cmpuint(entries_of(fixture, "var/node"), ==, 2); /* nor left */
    }
    /* Once and never again. */
    const char *const only[] = {"FETTLE_CRASH_AT", "2", "FETTLE_CRASH_ONCE", once, NULL};
    g_assert_true(WIFSIGNALED(run_child(fixture, "--child", only)));
    g_assert_cmpint(run_child(fixture, "--child", only), ==, 0);
}

/* What is appended stays, and what is removed is gone, once that is said. */
static void test_append_and_remove_are_synced(struct fixture *fixture, gconstpointer unused)
{
    g_autofree char *log = g_build_filename(fixture->paths->root, "points", NULL);
    g_autofree char *lines = NULL;
    const char *const count[] = {"FETTLE_CRASH_LOG", log, NULL};

    g_assert_cmpint(run_child(fixture, "--append", count), ==, 0);
    g_assert_true(g_file_get_contents(log, &lines, NULL, NULL));
    g_assert_cmpstr(lines, ==,
                    "1 files: open for append\n2 files: write\n3 files: fsync\n"
                    "4 files: fsync folder\n5 files: unlink\n6 files: fsync folder\n");
}

static void test_crash_environment(void)
{
    g_setenv("FETTLE_CRASH_AT", "3", TRUE);
    g_setenv("FETTLE_CRASH_AT_JOB", "5", TRUE);
    g_setenv("FETTLE_CRASH_AT_NURSERY", "7", TRUE);
    g_auto(GStrv) plain = crash_environment();
    g_auto(GStrv) nursery = crash_environment_for("NURSERY");
    g_assert_null(g_environ_getenv(plain, "FETTLE_CRASH_AT"));
    g_assert_cmpstr(g_environ_getenv(nursery, "FETTLE_CRASH_AT"), ==, "7");
    g_assert_cmpstr(g_environ_getenv(nursery, "FETTLE_CRASH_AT_JOB"), ==, "5");
    g_unsetenv("FETTLE_CRASH_AT");
    g_unsetenv("FETTLE_CRASH_AT_JOB");
    g_unsetenv("FETTLE_CRASH_AT_NURSERY");
}

/* --- node.json and folders --- */

static void test_paths(struct fixture *fixture, gconstpointer unused)
{
    g_autofree char *longest = g_strnfill(60, 'x');
    g_autofree char *deep = g_build_filename(fixture->paths->root, longest, NULL);
    g_autoptr(GError) error = NULL;

    g_assert_null(node_paths_new("/nonexistent/root", &error));
    assert_error(&error, WRONG_INPUT, "root folder /nonexistent/root: there is no such folder");
    g_assert_cmpint(g_mkdir(deep, 0700), ==, 0);
    g_assert_null(node_paths_new(deep, &error));
    assert_error(&error, WRONG_INPUT, "because names of sockets are short");
    g_setenv("FETTLE_ROOT", fixture->paths->root, TRUE);
    struct node_paths *given = node_paths_new(NULL, &error);
    g_assert_cmpstr(given->run, ==, fixture->paths->run);
    g_autofree char *socket = node_paths_socket(given, ROLE_LUXID);
    g_assert_true(g_str_has_suffix(socket, "/run/luxid.sock"));
    node_paths_free(given);
    g_unsetenv("FETTLE_ROOT");
    struct node_paths *host = node_paths_new(NULL, &error);
    g_assert_cmpstr(host->etc, ==, "/etc/fettle");
    g_assert_cmpstr(host->var, ==, "/var/lib/fettle");
    g_assert_cmpstr(host->run, ==, "/run/fettle");
    g_assert_cmpstr(host->log, ==, "/var/log/fettle");
    node_paths_free(host);
    /* A file where a folder should be. */
    g_autofree char *log = g_build_filename(fixture->paths->log, "guests", NULL);
    g_assert_cmpint(g_rmdir(log), ==, 0);
    g_assert_true(g_file_set_contents(log, "", 0, NULL));
    g_assert_false(node_paths_make(fixture->paths, &error));
    assert_error(&error, STORAGE, "log/guests: Not a directory");
}

/* A part of a key does not stay for ever, whoever died while it was written. */
static void test_left(struct fixture *fixture, gconstpointer unused)
{
    g_autofree char *folder = g_build_filename(fixture->paths->etc, "etcd", NULL);
    const char *const folders[] = {fixture->paths->etc, folder};
    pid_t dead = fork();
    if (dead == 0)
        _exit(0);
    g_assert_cmpint(waitpid(dead, NULL, 0), ==, dead);
    g_assert_cmpint(g_mkdir(folder, 0711), ==, 0);
    for (guint i = 0; i < G_N_ELEMENTS(folders); i++) {
        g_autofree char *left = g_strdup_printf("%s/.a.key.%d-%d-17", folders[i], dead, dead);
        g_autofree char *mine = g_strdup_printf("%s/.a.key.%d-1-17", folders[i], getpid());
        g_assert_true(g_file_set_contents(left, "x", 1, NULL));
        g_assert_true(g_file_set_contents(mine, "x", 1, NULL));
        g_assert_true(node_paths_make(fixture->paths, NULL));
        g_assert_false(g_file_test(left, G_FILE_TEST_EXISTS));
        g_assert_true(g_file_test(mine, G_FILE_TEST_EXISTS));
    }
}

static void expect_config_error(struct fixture *fixture, const char *text, const char *part)
{
    g_autofree char *path = g_build_filename(fixture->paths->etc, "node.json", NULL);
    g_autoptr(GError) error = NULL;

    g_assert_true(g_file_set_contents(path, text, -1, NULL));
    g_assert_null(node_config_read(fixture->paths, &error));
    g_assert_nonnull(strstr(error->message, path));
    assert_error(&error, CORRUPT, part);
}

static void test_node_config(struct fixture *fixture, gconstpointer unused)
{
    g_autofree char *path = g_build_filename(fixture->paths->etc, "node.json", NULL);
    g_autoptr(GError) error = NULL;

    record_autoptr(node_config) config = node_config_read(fixture->paths, &error);
    g_assert_no_error(error);
    g_assert_cmpstr(config->node_uuid, ==, NODE_A);
    g_assert_cmpuint(config->qemu_uid, ==, 0);
    g_free(config->address);
    config->address = g_strdup("node1.example.com");
    g_assert_false(node_config_write(fixture->paths, config, &error));
    assert_error(&error, WRONG_INPUT, "address: \"node1.example.com\" is no IP address");
    expect_config_error(fixture, "", "put back the file as it was");
    expect_config_error(fixture, "{\"name\":", "put back the file as it was");
    expect_config_error(fixture, "{}", "node_uuid: is missing");
    expect_config_error(fixture,
                        "{\"node_uuid\":\"" NODE_A "\",\"name\":\"n\",\"cluster_uuid\":\"" CLUSTER
                        "\",\"address\":\"10.0.0.1\",\"guest_user_first\":33}",
                        "guest_user_first: 33 may be a user of the host; 65536 or more is needed");
    expect_config_error(fixture,
                        "{\"node_uuid\":\"" NODE_A "\",\"name\":\"n\",\"cluster_uuid\":\"" CLUSTER
                        "\",\"address\":\"10.0.0.1\",\"guest_user_first\":1879044095}",
                        "users 1879048190 and 1879048191 are those of the programs of volume "
                        "services, and one is among those of guests (guest_user_first, "
                        "guest_users, qemu_uid); take others in node.json, or none of the three: "
                        "as delivered they leave them out");
    expect_config_error(fixture,
                        "{\"node_uuid\":\"" NODE_A "\",\"name\":\"n\",\"cluster_uuid\":\"" CLUSTER
                        "\",\"address\":\"10.0.0.1\",\"qemu_uid\":1879048190}",
                        "and one is among those of guests");
    expect_config_error(fixture,
                        "{\"node_uuid\":\"" NODE_A "\",\"name\":\"n\",\"cluster_uuid\":\"" CLUSTER
                        "\",\"address\":\"10.0.0.1\",\"storage_host\":\"Vol 1\"}",
                        "storage_host: \"Vol 1\" is no name of a host");
    expect_config_error(fixture,
                        "{\"node_uuid\":\"" NODE_A "\",\"name\":\"n\",\"cluster_uuid\":\"" CLUSTER
                        "\",\"address\":\"10.0.0.1\",\"guest_users\":65537}",
                        "guest_users: must be at most 65536");
    expect_config_error(fixture,
                        "{\"node_uuid\":\"" NODE_A "\",\"name\":\"n\",\"cluster_uuid\":\"" CLUSTER
                        "\",\"address\":\"::1\",\"port\":65536}",
                        "port: must be");
    g_unlink(path);
    g_assert_null(node_config_read(fixture->paths, &error));
    assert_error(&error, UNKNOWN_ENTITY, "this host belongs to no cluster");
}

/* --- the loop --- */

struct ring {
    char order[8];
    guint count;
};

struct bell {
    struct ring *ring;
    char name;
};

static void ring_cb(void *data)
{
    struct bell *bell = data;
    bell->ring->order[bell->ring->count++] = bell->name;
}

static void test_timers(void)
{
    struct ring ring = {0};
    struct bell bells[] = {{&ring, 'a'}, {&ring, 'b'}, {&ring, 'c'}, {&ring, 'd'}};

    loop_init();
    loop_timer(30, ring_cb, &bells[2]);
    loop_timer(1, ring_cb, &bells[0]);
    guint cancelled = loop_timer(2, ring_cb, &bells[3]);
    loop_timer(1, ring_cb, &bells[1]);
    g_assert_cmpuint(cancelled, !=, 0);
    loop_timer_cancel(cancelled);
    loop_timer_cancel(cancelled);
    loop_timer_cancel(0);
    world_wait_count(&ring.count, 3);
    g_assert_cmpstr(ring.order, ==, "abc");
}

static void changed_cb(const char *name, void *data)
{
    g_ptr_array_add(data, g_strdup(name));
}

/* --- where others could have been --- */

/* A name that could be foreseen could be taken, by a pipe that nobody reads. */
static void test_unforeseen(struct fixture *fixture, gconstpointer unused)
{
    g_autofree char *name = g_strdup_printf(".state.%d-%d", getpid(), gettid());
    g_autofree char *pipe = g_build_filename(fixture->paths->run, name, NULL);
    g_autoptr(GError) error = NULL;
    g_assert_cmpint(mkfifo(pipe, 0600), ==, 0);
    g_assert_true(files_write(fixture->paths, FILE_RUN, "state", "x", 1, &error));
    g_assert_no_error(error);
    g_assert_true(g_file_test(pipe, G_FILE_TEST_EXISTS));
}

static void test_give(struct fixture *fixture, gconstpointer unused)
{
    guint32 uid = geteuid() == 0 ? 64100 : 0;
    g_autofree char *path = g_build_filename(fixture->paths->run, "key", NULL);
    g_autofree char *elsewhere = g_build_filename(fixture->paths->run, "elsewhere", NULL);
    g_autoptr(GError) error = NULL;
    struct stat info;
    g_assert_true(g_file_set_contents(elsewhere, "old", 3, NULL));
    g_assert_cmpint(symlink(elsewhere, path), ==, 0);
    g_assert_true(files_give_path(path, "new", 3, uid, &error));
    g_assert_no_error(error);
    g_assert_cmpint(lstat(path, &info), ==, 0);
    g_assert_true(S_ISREG(info.st_mode));
    g_assert_cmpuint(info.st_mode & 0777, ==, 0600);
    g_assert_cmpuint(info.st_uid, ==, uid != 0 ? uid : geteuid());
    g_assert_cmpint(stat(elsewhere, &info), ==, 0);
    g_assert_cmpuint(info.st_uid, ==, geteuid());
    g_assert_false(files_give_path("/proc/nonexistent/key", "new", 3, uid, &error));
    assert_error(&error, STORAGE, "cannot create /proc/nonexistent/.key.");
}

static gid_t group_of(const char *path)
{
    struct stat info;
    g_assert_cmpint(lstat(path, &info), ==, 0);
    return info.st_gid;
}

/* What was there before its user was is his group's with the folder; what is somebody else's, or
 * elsewhere, is not. */
static void test_give_folder(struct fixture *fixture, gconstpointer unused)
{
    gid_t ours = getegid(), theirs = geteuid() == 0 ? 64100 : ours;
    g_autofree char *folder = g_build_filename(fixture->paths->run, "given", NULL);
    g_autofree char *pem = g_build_filename(folder, "pem", NULL);
    g_autofree char *strange = g_build_filename(folder, "strange", NULL);
    g_autofree char *link = g_build_filename(folder, "link", NULL);
    g_autofree char *elsewhere = g_build_filename(fixture->paths->run, "elsewhere", NULL);
    g_autoptr(GError) error = NULL;
    g_assert_true(files_give_folder(folder, 0750, geteuid(), ours, &error));
    g_assert_true(g_file_set_contents(pem, "old", 3, NULL));
    g_assert_true(g_file_set_contents(strange, "old", 3, NULL));
    g_assert_true(g_file_set_contents(elsewhere, "old", 3, NULL));
    g_assert_cmpint(symlink(elsewhere, link), ==, 0);
    if (geteuid() == 0)
        g_assert_cmpint(chown(strange, 64101, ours), ==, 0);
    g_assert_true(files_give_folder(folder, 0750, geteuid(), theirs, &error));
    g_assert_no_error(error);
    g_assert_cmpuint(group_of(folder), ==, theirs);
    g_assert_cmpuint(group_of(pem), ==, theirs);
    g_assert_cmpuint(group_of(strange), ==, ours);
    g_assert_cmpuint(group_of(elsewhere), ==, ours);
    g_assert_cmpuint(group_of(link), ==, ours);
}

static void test_watch(struct fixture *fixture, gconstpointer unused)
{
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    g_autofree char *queue = g_build_filename(fixture->paths->run, "queue", NULL);
    g_autoptr(GError) error = NULL;
    struct folder_watch *watch = folder_watch_new(queue, changed_cb, names, &error);

    g_assert_no_error(error);
    g_assert_true(files_write(fixture->paths, FILE_QUEUE, "job-1", "x", 1, &error));
    world_wait_line(names, "job-1");
    g_ptr_array_set_size(names, 0);
    g_assert_true(files_append(fixture->paths, FILE_QUEUE, "job-1", "x", 1, &error));
    world_wait_line(names, "job-1");
    folder_watch_free(watch);
    g_assert_null(folder_watch_new("/nonexistent", changed_cb, names, &error));
    assert_error(&error, STORAGE, "cannot watch the folder /nonexistent");
}

#define ADD(path, fn) g_test_add(path, struct fixture, NULL, set_up, fn, tear_down)

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--child") == 0)
        return write_as_child(argv[2]);
    if (argc == 3 && strcmp(argv[1], "--append") == 0)
        return append_as_child(argv[2]);
    g_test_init(&argc, &argv, NULL);
    ADD("/files/areas", test_areas);
    ADD("/files/append", test_append);
    ADD("/files/bad-names", test_bad_names);
    ADD("/files/in-tasks", test_in_tasks);
    ADD("/files/killed-task", test_killed_task);
    ADD("/files/full-disk", test_full_disk);
    ADD("/files/crash-points", test_crash_points);
    ADD("/files/append-and-remove-synced", test_append_and_remove_are_synced);
    g_test_add_func("/files/crash-environment", test_crash_environment);
    ADD("/files/unforeseen-names#SAF-104", test_unforeseen);
    ADD("/files/given-to-another-user#SAF-104", test_give);
    ADD("/files/folder-given-to-another-user#SAF-107", test_give_folder);
    ADD("/files/paths", test_paths);
    ADD("/files/left-of-keys#SAF-94", test_left);
    ADD("/files/node-config", test_node_config);
    g_test_add_func("/loop/timers", test_timers);
    ADD("/loop/watch", test_watch);
    return g_test_run();
}
