/* Lock files: livelock.c. */
#include "world.h"

#include "io/livelock.h"
#include "io/process.h"

#include <fcntl.h>
#include <glib/gstdio.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

struct fixture {
    struct node_paths *paths;
    char *folder;
};

static void set_up(struct fixture *fixture, gconstpointer unused)
{
    fixture->paths = world_new(NODE_A);
    fixture->folder = g_build_filename(fixture->paths->run, "livelocks", NULL);
}

static void tear_down(struct fixture *fixture, gconstpointer unused)
{
    g_free(fixture->folder);
    world_remove(fixture->paths);
}

static char *path_of(struct fixture *fixture, const char *name)
{
    return g_build_filename(fixture->folder, name, NULL);
}

static struct livelock *make(struct fixture *fixture, const char *stem)
{
    g_autoptr(GError) error = NULL;
    struct livelock *livelock = livelock_make(fixture->paths, stem, &error);

    g_assert_no_error(error);
    return livelock;
}

/* A child that holds a lock file until it is killed; its name comes through a pipe. */
struct holder {
    pid_t pid;
    char *name;
};

static char *read_name(int fd)
{
    char name[256] = "";
    ssize_t len = 0, got;

    while ((got = read(fd, name + len, sizeof name - 1 - (size_t)len)) > 0 &&
           name[len + got - 1] != '\n')
        len += got;
    g_assert_cmpint(got, >, 0);
    name[len + got - 1] = '\0';
    return g_strdup(name);
}

/* `helper`: the owner starts a process of its own first, which lives on. */
static struct holder holder_start(struct fixture *fixture, int *ret_helper_stop)
{
    int name_pipe[2], stop_pipe[2];
    struct holder owner;

    g_assert_cmpint(pipe2(name_pipe, O_CLOEXEC), ==, 0);
    g_assert_cmpint(pipe2(stop_pipe, O_CLOEXEC), ==, 0);
    owner.pid = fork();
    if (owner.pid == 0) {
        struct livelock *livelock = livelock_make(fixture->paths, "job-7", NULL);
        char byte;
        if (livelock == NULL)
            _exit(1);
        dprintf(name_pipe[1], "%s\n", livelock_name(livelock));
        /* The helper keeps running when its parent is killed; exec closes what is close-on-exec. */
        if (ret_helper_stop != NULL && fork() == 0) {
            dup2(stop_pipe[0], 0);
            execlp("cat", "cat", NULL);
            _exit(1);
        }
        close(stop_pipe[1]);
        (void)!read(stop_pipe[0], &byte, ret_helper_stop != NULL ? 0 : 1);
        for (;;)
            pause();
    }
    close(name_pipe[1]);
    close(stop_pipe[0]);
    owner.name = read_name(name_pipe[0]);
    close(name_pipe[0]);
    if (ret_helper_stop != NULL)
        *ret_helper_stop = stop_pipe[1];
    else
        close(stop_pipe[1]);
    return owner;
}

static void holder_kill(struct holder *owner)
{
    kill(owner->pid, SIGKILL);
    g_assert_cmpint(waitpid(owner->pid, NULL, 0), ==, owner->pid);
}

static enum livelock_verdict probe(struct fixture *fixture, const char *name)
{
    return livelock_probe(fixture->paths, name);
}

/* --- verdicts --- */

static void test_life(struct fixture *fixture, gconstpointer unused)
{
    struct livelock *livelock = make(fixture, "watcher");
    g_autofree char *name = g_strdup(livelock_name(livelock));
    g_autofree char *path = path_of(fixture, name);
    struct stat info;

    g_assert_true(g_str_has_prefix(name, "watcher-"));
    g_assert_cmpint(g_stat(path, &info), ==, 0);
    g_assert_cmpint(info.st_size, ==, 0);
    for (int i = 0; i < 10000; i++)
        g_assert_cmpint(probe(fixture, name), ==, LIVELOCK_ALIVE);
    g_autoptr(GPtrArray) names = livelock_list(fixture->paths);
    g_assert_cmpuint(names->len, ==, 1);
    g_assert_cmpstr(names->pdata[0], ==, name);
    livelock_remove(fixture->paths, name); /* a live one stays */
    g_assert_cmpint(probe(fixture, name), ==, LIVELOCK_ALIVE);
    livelock_drop(livelock);
    g_assert_cmpint(probe(fixture, name), ==, LIVELOCK_GONE);
}

static void test_death(struct fixture *fixture, gconstpointer unused)
{
    struct holder owner = holder_start(fixture, NULL);

    g_assert_cmpint(probe(fixture, owner.name), ==, LIVELOCK_ALIVE);
    kill(owner.pid, SIGSTOP);
    g_assert_cmpint(probe(fixture, owner.name), ==, LIVELOCK_ALIVE);
    holder_kill(&owner);
    g_assert_cmpint(probe(fixture, owner.name), ==, LIVELOCK_DEAD);
    /* The probe leaves nothing behind: the file can be locked exclusively at once. */
    g_autofree char *path = path_of(fixture, owner.name);
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int fd = open(path, O_RDWR | O_CLOEXEC);
    g_assert_cmpint(fcntl(fd, F_OFD_SETLK, &lock), ==, 0);
    close(fd);
    g_assert_cmpint(probe(fixture, owner.name), ==, LIVELOCK_DEAD);
    livelock_remove(fixture->paths, owner.name);
    g_assert_cmpint(probe(fixture, owner.name), ==, LIVELOCK_GONE);
    g_free(owner.name);
}

/* Two owners in one process: releasing one does not touch the other, nor does probing from inside.
 */
static void test_two_in_one(struct fixture *fixture, gconstpointer unused)
{
    struct livelock *first = make(fixture, "job-1");
    struct livelock *second = make(fixture, "job-2");
    g_autofree char *first_name = g_strdup(livelock_name(first));

    g_assert_cmpint(probe(fixture, first_name), ==, LIVELOCK_ALIVE);
    livelock_drop(first);
    g_assert_cmpint(probe(fixture, first_name), ==, LIVELOCK_GONE);
    g_assert_cmpint(probe(fixture, livelock_name(second)), ==, LIVELOCK_ALIVE);
    livelock_drop(second);
}

static void test_unsure(struct fixture *fixture, gconstpointer unused)
{
    static const char *const strange[] = {"loop", "folder", "pipe", "../node.json",
                                          "a/b",  "",       ".x"};
    g_autofree char *loop = path_of(fixture, "loop");
    g_autofree char *folder = path_of(fixture, "folder");
    g_autofree char *fifo = path_of(fixture, "pipe");

    g_assert_cmpint(symlink("loop", loop), ==, 0);
    g_assert_cmpint(g_mkdir(folder, 0700), ==, 0);
    g_assert_cmpint(mkfifo(fifo, 0600), ==, 0);
    for (size_t i = 0; i < G_N_ELEMENTS(strange); i++)
        g_assert_cmpint(probe(fixture, strange[i]), ==, LIVELOCK_UNSURE);
    /* Proof of nothing: they stay. */
    for (size_t i = 0; i < 3; i++) {
        g_autofree char *path = path_of(fixture, strange[i]);
        struct stat info;
        livelock_remove(fixture->paths, strange[i]);
        g_assert_cmpint(lstat(path, &info), ==, 0);
    }
    g_assert_cmpint(probe(fixture, "nobody"), ==, LIVELOCK_GONE);
}

static void test_bad_stems(struct fixture *fixture, gconstpointer unused)
{
    static const char *const bad[] = {"", "a/b", "../x", ".hidden"};
    g_autofree char *longest = g_strnfill(64, 'x');
    g_autoptr(GError) error = NULL;

    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_assert_null(livelock_make(fixture->paths, bad[i], &error));
        assert_error(&error, WRONG_INPUT, "must be a plain file name");
    }
    g_assert_null(livelock_make(fixture->paths, longest, &error));
    assert_error(&error, WRONG_INPUT, "must be a plain file name");
    g_assert_cmpint(rmdir(fixture->folder), ==, 0);
    g_assert_null(livelock_make(fixture->paths, "job-1", &error));
    assert_error(&error, STORAGE, "cannot make the lock file");
}

/* A process that the job started lives on: it has not inherited the lock. */
static void test_helper_process(struct fixture *fixture, gconstpointer unused)
{
    int helper_stop = -1;
    struct holder owner = holder_start(fixture, &helper_stop);

    world_pause(100);
    g_assert_cmpint(probe(fixture, owner.name), ==, LIVELOCK_ALIVE);
    holder_kill(&owner);
    while (probe(fixture, owner.name) == LIVELOCK_ALIVE)
        world_pause(1); /* the helper may still be on its way to its exec */
    g_assert_cmpint(probe(fixture, owner.name), ==, LIVELOCK_DEAD);
    close(helper_stop);
    g_free(owner.name);
}

static void test_eight_probers(struct fixture *fixture, gconstpointer unused)
{
    struct livelock *alive = make(fixture, "job-1");
    struct holder owner = holder_start(fixture, NULL);
    pid_t probers[8];

    holder_kill(&owner);
    for (int i = 0; i < 8; i++) {
        probers[i] = fork();
        if (probers[i] != 0)
            continue;
        for (int j = 0; j < 5000; j++)
            if (probe(fixture, livelock_name(alive)) != LIVELOCK_ALIVE ||
                probe(fixture, owner.name) != LIVELOCK_DEAD)
                _exit(1);
        _exit(0);
    }
    for (int i = 0; i < 8; i++) {
        int status = 1;
        g_assert_cmpint(waitpid(probers[i], &status, 0), ==, probers[i]);
        g_assert_cmpint(status, ==, 0);
    }
    livelock_drop(alive);
    g_free(owner.name);
}

static pid_t busy_process(void)
{
    pid_t pid = fork();
    volatile guint64 count = 0;
    while (pid == 0)
        count++;
    return pid;
}

/* However busy the machine: one that stands still is alive, one that was killed is dead, by the
 * first probe. The long run has fifty busy processes for each processor. */
static void test_load(struct fixture *fixture, gconstpointer unused)
{
    guint count = g_test_quick() ? 8 : 50 * g_get_num_processors();
    guint looks = g_test_quick() ? 2000 : 200000;
    g_autofree pid_t *busy = g_new(pid_t, count);
    struct holder owner = holder_start(fixture, NULL);

    for (guint i = 0; i < count; i++)
        busy[i] = busy_process();
    kill(owner.pid, SIGSTOP);
    for (guint i = 0; i < looks; i++)
        g_assert_cmpint(probe(fixture, owner.name), ==, LIVELOCK_ALIVE);
    holder_kill(&owner);
    g_assert_cmpint(probe(fixture, owner.name), ==, LIVELOCK_DEAD);
    for (guint i = 0; i < count; i++) {
        kill(busy[i], SIGKILL);
        g_assert_cmpint(waitpid(busy[i], NULL, 0), ==, busy[i]);
    }
    g_free(owner.name);
}

/* A name never comes back: what is probed is always that very owner. */
static void test_names_are_new(struct fixture *fixture, gconstpointer unused)
{
    g_autoptr(GHashTable) seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);

    for (int i = 0; i < 1000; i++) {
        struct livelock *livelock = make(fixture, "job-1");
        g_assert_true(g_hash_table_add(seen, g_strdup(livelock_name(livelock))));
        livelock_drop(livelock);
    }
}

/* Nobody ever meets a lock file that is not locked yet, or takes one away under its process. */
static void test_birth(struct fixture *fixture, gconstpointer unused)
{
    pid_t sweeper = fork();

    if (sweeper == 0)
        for (;;) {
            g_autoptr(GPtrArray) names = livelock_list(fixture->paths);
            /* One that is dead now, because it was dropped between open and probe, never lives
             * again. */
            for (guint i = 0; i < names->len; i++) {
                if (probe(fixture, names->pdata[i]) == LIVELOCK_DEAD &&
                    probe(fixture, names->pdata[i]) == LIVELOCK_ALIVE)
                    _exit(1);
                livelock_remove(fixture->paths, names->pdata[i]); /* as the sweep does */
            }
        }
    for (int i = 0; i < 10000; i++) {
        struct livelock *livelock = make(fixture, "job-1");
        g_autofree char *path = path_of(fixture, livelock_name(livelock));
        g_assert_cmpint(probe(fixture, livelock_name(livelock)), ==, LIVELOCK_ALIVE);
        g_assert_cmpint(access(path, F_OK), ==, 0);
        livelock_drop(livelock);
    }
    kill(sweeper, SIGKILL);
    int status = 0;
    g_assert_cmpint(waitpid(sweeper, &status, 0), ==, sweeper);
    g_assert_true(WIFSIGNALED(status));
}

/* --- watching --- */

static void released_cb(const char *name, void *data)
{
    (*(guint *)data)++;
}

static void test_kills_are_seen(struct fixture *fixture, gconstpointer unused)
{
    enum { KILLS = 500 };
    g_autoptr(GError) error = NULL;
    struct livelock_watcher *watcher = livelock_watcher_new(fixture->paths, &error);

    g_assert_no_error(error);
    for (int i = 0; i < KILLS; i++) {
        struct holder owner = holder_start(fixture, NULL);
        guint seen = 0;
        livelock_watcher_add(watcher, owner.name, released_cb, &seen);
        if (i < 5)
            world_pause(20); /* not before it is dead */
        g_assert_cmpuint(seen, ==, 0);
        holder_kill(&owner);
        world_wait_count(&seen, 1);
        g_assert_cmpint(probe(fixture, owner.name), ==, LIVELOCK_DEAD);
        livelock_remove(fixture->paths, owner.name);
        world_pause(0);
        g_assert_cmpuint(seen, ==, 1);
        g_free(owner.name);
    }
    livelock_watcher_free(watcher);
}

static void test_watch_kinds(struct fixture *fixture, gconstpointer unused)
{
    g_autoptr(GError) error = NULL;
    struct livelock_watcher *watcher = livelock_watcher_new(fixture->paths, &error);
    struct holder dead = holder_start(fixture, NULL);
    struct livelock *clean = make(fixture, "job-2");
    struct livelock *never = make(fixture, "job-3");
    guint seen_gone = 0, seen_dead = 0, seen_clean = 0, seen_twice = 0, seen_never = 0;

    holder_kill(&dead);
    livelock_watcher_add(watcher, "never-was", released_cb, &seen_gone);
    livelock_watcher_add(watcher, dead.name, released_cb, &seen_dead);
    livelock_watcher_add(watcher, livelock_name(clean), released_cb, &seen_clean);
    livelock_watcher_add(watcher, livelock_name(clean), released_cb, &seen_twice);
    livelock_watcher_add(watcher, livelock_name(never), released_cb, &seen_never);
    g_assert_cmpuint(seen_gone, ==, 0); /* never from inside the call */
    world_wait_count(&seen_gone, 1);
    world_wait_count(&seen_dead, 1);
    /* Probes open and close the file too; that is no death. */
    for (int i = 0; i < 100; i++)
        probe(fixture, livelock_name(clean));
    world_pause(50);
    g_assert_cmpuint(seen_clean, ==, 0);
    livelock_drop(clean);
    world_wait_count(&seen_clean, 1);
    world_wait_count(&seen_twice, 1);
    world_pause(50);
    g_assert_cmpuint(seen_gone + seen_dead + seen_clean + seen_twice, ==, 4);
    g_assert_cmpuint(seen_never, ==, 0);
    livelock_watcher_free(watcher);
    livelock_drop(never);
    g_free(dead.name);
}

#define ADD(path, fn) g_test_add(path, struct fixture, NULL, set_up, fn, tear_down)

/* --- who holds it --- */

/* A copy of this program under that name, which holds a lock file of its own until it is killed. */
static struct holder program_start(struct fixture *fixture, const char *name)
{
    g_autofree char *path = g_build_filename(fixture->paths->run, name, NULL);
    g_autoptr(GError) error = NULL;
    g_autofree char *content = NULL;
    gsize len;
    int name_pipe[2];
    struct holder owner;

    g_assert_true(g_file_get_contents("/proc/self/exe", &content, &len, &error));
    g_assert_true(g_file_set_contents_full(path, content, (gssize)len, G_FILE_SET_CONTENTS_NONE,
                                           0755, &error));
    g_assert_cmpint(pipe2(name_pipe, O_CLOEXEC), ==, 0);
    owner.pid = fork();
    if (owner.pid == 0) {
        dup2(name_pipe[1], 1);
        execl(path, path, "--hold", fixture->paths->root, NULL);
        _exit(1);
    }
    close(name_pipe[1]);
    owner.name = read_name(name_pipe[0]);
    close(name_pipe[0]);
    return owner;
}

static int hold(const char *root)
{
    struct node_paths *paths = node_paths_new(root, NULL);
    struct livelock *livelock = livelock_make(paths, "job-7", NULL);

    if (livelock == NULL)
        return 1;
    dprintf(1, "%s\n", livelock_name(livelock));
    for (;;)
        pause();
}

static bool found(struct fixture *fixture, const char *name, pid_t pid)
{
    guint64 holder = 0, ticks = 0;

    if (!livelock_find_holder(fixture->paths, name, &holder, &ticks))
        return false;
    g_assert_cmpuint(holder, ==, (guint64)pid);
    g_assert_cmpuint(ticks, ==, process_read_start_ticks((guint64)pid));
    return true;
}

/* Only a process of a job that has the very file open: no other program, no other file of that
 * process, nobody who is gone. */
static void test_holder(struct fixture *fixture, gconstpointer unused)
{
    struct holder job = program_start(fixture, "fettle-job");
    struct holder other = program_start(fixture, "another");
    g_autofree char *mine = g_strdup_printf("job-8-%d-00000000", job.pid);
    g_autofree char *path = path_of(fixture, mine);

    g_assert_true(g_file_set_contents(path, "", 0, NULL));
    g_assert_true(found(fixture, job.name, job.pid));
    g_assert_false(found(fixture, other.name, other.pid));
    g_assert_false(found(fixture, mine, job.pid));
    g_assert_false(found(fixture, "job-9", 0));
    g_assert_false(found(fixture, "../x-1-2", 0));
    holder_kill(&job);
    g_assert_false(found(fixture, job.name, job.pid));
    holder_kill(&other);
    g_free(job.name);
    g_free(other.name);
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--hold") == 0)
        return hold(argv[2]);
    g_test_init(&argc, &argv, NULL);
    ADD("/livelock/life#DTH-07,DTH-13,DTH-14,DTH-17,SAF-32", test_life);
    ADD("/livelock/death#DTH-01,DTH-03,DTH-09,DTH-10,DTH-11,DTH-12", test_death);
    ADD("/livelock/two-in-one#DTH-04", test_two_in_one);
    ADD("/livelock/unsure#DTH-15", test_unsure);
    ADD("/livelock/bad-stems", test_bad_stems);
    ADD("/livelock/helper-process#DTH-09", test_helper_process);
    ADD("/livelock/eight-probers#DTH-16", test_eight_probers);
    ADD("/livelock/load#DTH-01,DTH-03", test_load);
    ADD("/livelock/names-are-new", test_names_are_new);
    ADD("/livelock/birth#DTH-19,SAF-32", test_birth);
    ADD("/livelock/kills-are-seen#DTH-01", test_kills_are_seen);
    ADD("/livelock/holder#LUX-08", test_holder);
    ADD("/livelock/watch-kinds", test_watch_kinds);
    return g_test_run();
}
