/* Starting a job process: starter.c, nursery.c and the program fettle-job, through the real
 * environment (real_env.c). This program itself, as "TEST --as WHAT", stands in for a nursery that
 * does something wrong. */
#include "starter_world.h"

#include "io/files.h"
#include "io/livelock.h"
#include "io/nursery.h"
#include "io/real_env.h"

#include <errno.h>
#include <gio/gio.h>
#include <glib/gstdio.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static char *test_program;

static void put_stand_in(struct fixture *fixture, const char *what)
{
    g_autofree char *script = g_strdup_printf("#!/bin/sh\nexec %s --as %s\n", test_program, what);
    put_program(fixture, script);
}

static void test_starts(struct fixture *fixture, gconstpointer unused)
{
    begin(fixture, 17);
    g_assert_cmpuint(fixture->named, ==, 1);
    g_assert_true(g_str_has_prefix(fixture->name, "job-17-"));
    /* The same process, and it says which. */
    g_auto(GStrv) words = words_of(fixture->pid);
    g_assert_cmpuint(g_strv_length(words), ==, 5);
    g_assert_true(g_str_has_suffix(words[0], "/" NURSERY_PROGRAM));
    g_assert_cmpstr(words[1], ==, "--root");
    g_assert_cmpstr(words[2], ==, fixture->paths->root);
    g_assert_cmpstr(words[3], ==, "17");
    g_assert_cmpstr(words[4], ==, fixture->name);
    g_assert_cmpint(fixture->env->ops->livelock_probe(fixture->env, fixture->name), ==,
                    LIVELOCK_ALIVE);
    g_assert_cmpint(getpgid((pid_t)fixture->pid), ==,
                    (pid_t)fixture->pid); /* a session of its own */
    g_autofree char *stat_path = g_strdup_printf("/proc/%u/stat", (guint)fixture->pid);
    g_autofree char *stat_text = NULL;
    g_assert_true(g_file_get_contents(stat_path, &stat_text, NULL, NULL));
    g_autofree char *ticks = g_strdup_printf(" %u ", (guint)fixture->ticks);
    g_assert_nonnull(strstr(stat_text, ticks));
    end(fixture);
    world_pause(20);
    g_assert_cmpuint(fixture->broken, ==, 1);
    /* No zombie is left. */
    while (g_file_test(stat_path, G_FILE_TEST_EXISTS))
        world_pause(5);
}

static void wait_text(const char *path, const char *part)
{
    g_autofree char *text = NULL;

    while (text == NULL || strstr(text, part) == NULL) {
        g_clear_pointer(&text, g_free);
        world_pause(5);
        g_file_get_contents(path, &text, NULL, NULL);
    }
}

/* Every descriptor of the process but the three plain ones, its lock file and its loop's. */
static void test_nothing_inherited(struct fixture *fixture, gconstpointer unused)
{
    guint sockets = 0;

    begin(fixture, 1);
    g_autofree char *folder = g_strdup_printf("/proc/%u/fd", (guint)fixture->pid);
    g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
    for (const char *each; (each = g_dir_read_name(dir)) != NULL;) {
        g_autofree char *path = g_build_filename(folder, each, NULL);
        g_autofree char *target = g_file_read_link(path, NULL);
        sockets += target != NULL && g_str_has_prefix(target, "socket:");
    }
    g_assert_cmpuint(sockets, <=, 1); /* its connection to wconfd */
    g_autofree char *status_path = g_strdup_printf("/proc/%u/status", (guint)fixture->pid);
    g_autofree char *status = NULL;
    g_assert_true(g_file_get_contents(status_path, &status, NULL, NULL));
    const char *ignored = strstr(status, "SigIgn:");
    /* SIGPIPE is ignored, SIGCHLD (17) is not. */
    g_assert_cmpuint(g_ascii_strtoull(ignored + strlen("SigIgn:\t"), NULL, 16) & (1 << 16), ==, 0);
    end(fixture);
}

/* Without the confirmation there is no job; the end of luxid stands in for a closed channel. The
 * nursery ends with it. */
static void test_not_confirmed(struct fixture *fixture, gconstpointer unused)
{
    g_autofree char *log = g_build_filename(fixture->paths->log, "luxid.log", NULL);
    int status = 0;
    int alive[2];
    char byte;
    pid_t luxid;

    put_job_file(fixture, 18);
    g_assert_cmpint(pipe(alive), ==, 0); /* the nursery has the writing end as long as it lives */
    luxid = fork();
    if (luxid == 0) {
        if (freopen(log, "a", stderr) == NULL)
            _exit(2);
        start(fixture, 18);
        world_wait_count(&fixture->named, 1);
        /* Held back: nothing begins in that time. */
        _exit(has_begun(fixture, 300) ? 1 : 0);
    }
    close(alive[1]);
    g_assert_cmpint(waitpid(luxid, &status, 0), ==, luxid);
    g_assert_cmpint(status, ==, 0);
    wait_text(log, "fettle-job 18: job 18 does not start: the channel to fettle-luxid ended");
    for (;;) {
        g_autoptr(GPtrArray) names = fixture->env->ops->livelock_list(fixture->env);
        if (names->len == 0)
            break;
        world_pause(5);
    }
    g_assert_cmpint(read(alive[0], &byte, 1), ==, 0);
    close(alive[0]);
    g_assert_false(has_begun(fixture, 0));
}

static void test_child_dies_first(struct fixture *fixture, gconstpointer unused)
{
    put_stand_in(fixture, "one-that-dies");
    start(fixture, 1);
    world_wait_count(&fixture->broken, 1);
    g_assert_false(fixture->confirmed);
    g_assert_cmpuint(fixture->named, ==, 0);
}

/* Given up before it has its confirmation: it ends by that, and nothing has run. */
static void test_dropped(struct fixture *fixture, gconstpointer unused)
{
    static const struct starter_events waiting = {named_cb, broken_cb};
    g_autoptr(GError) error = NULL;
    struct starter *starter;

    put_job_file(fixture, 6);
    starter = fixture->env->ops->starter_spawn(fixture->env, 6, &waiting, fixture, &error);
    g_assert_no_error(error);
    world_wait_count(&fixture->named, 1);
    fixture->env->ops->starter_drop(fixture->env, starter);
    world_wait_count(&fixture->broken, 1);
    g_assert_false(fixture->confirmed);
    while (fixture->env->ops->livelock_probe(fixture->env, fixture->name) == LIVELOCK_ALIVE)
        world_pause(5);
}

static void named_and_kill_cb(struct starter *starter, const char *livelock, guint64 pid,
                              guint64 ticks, void *data)
{
    struct fixture *fixture = data;

    fixture->named++;
    kill((pid_t)pid, SIGKILL);
    world_pause(100);
    /* The pipe is broken already, or breaks: either way it is told once. */
    fixture->env->ops->starter_confirm(fixture->env, starter);
}

static void test_child_killed(struct fixture *fixture, gconstpointer unused)
{
    static const struct starter_events killing = {named_and_kill_cb, broken_cb};
    g_autoptr(GError) error = NULL;

    put_job_file(fixture, 5);
    fixture->env->ops->starter_spawn(fixture->env, 5, &killing, fixture, &error);
    g_assert_no_error(error);
    world_wait_count(&fixture->broken, 1);
    world_pause(50);
    g_assert_cmpuint(fixture->broken, ==, 1);
    g_assert_false(fixture->confirmed);
    g_assert_false(has_begun(fixture, 0));
}

static void test_bad_lines(struct fixture *fixture, gconstpointer unused)
{
    static const char *const lines[] = {"only-a-name", "job-1,nought,7", "job-1,1,7,8", "long",
                                        "nothing"};

    for (size_t i = 0; i < G_N_ELEMENTS(lines); i++) {
        real_env_free(fixture->env);
        fixture->env = real_env_new(fixture->paths->root, ROLE_LUXID, NULL, NULL);
        fixture->broken = 0;
        put_stand_in(fixture, lines[i]);
        start(fixture, 3);
        world_wait_count(&fixture->broken, 1);
        g_assert_cmpuint(fixture->named, ==, 0);
    }
}

static void test_no_program(struct fixture *fixture, gconstpointer unused)
{
    g_autofree char *path = g_build_filename(fixture->bin, NURSERY_PROGRAM, NULL);
    g_autoptr(GError) error = NULL;

    g_unlink(path);
    g_assert_null(fixture->env->ops->starter_spawn(fixture->env, 1, &events, fixture, &error));
    assert_error(&error, ENVIRONMENT, "cannot start");
}

/* The system's call that opens a descriptor of a process fails in this process from now on. */
static void refuse_pidfds(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pidfd_open, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EMFILE),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {G_N_ELEMENTS(filter), filter};

    g_assert_cmpint(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), ==, 0);
    g_assert_cmpint(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), ==, 0);
}

/* A nursery whose end nobody would see is none: nothing is left of it, and the job is told of. */
static void test_not_watched(struct fixture *fixture, gconstpointer unused)
{
    int status = 0;
    pid_t luxid = fork();

    if (luxid == 0) {
        g_autoptr(GError) error = NULL;
        refuse_pidfds();
        g_assert_null(fixture->env->ops->starter_spawn(fixture->env, 1, &events, fixture, &error));
        assert_error(&error, ENVIRONMENT,
                     "/" NURSERY_PROGRAM " cannot be watched, so it was ended again: Too many "
                     "open files");
        g_assert_cmpint(waitpid(-1, NULL, WNOHANG), ==, -1);
        g_assert_cmpint(errno, ==, ECHILD);
        _exit(0);
    }
    g_assert_cmpint(waitpid(luxid, &status, 0), ==, luxid);
    g_assert_cmpint(status, ==, 0);
}

/* --- the nursery --- */

/* What it has made lives on, and the next job gets another one. */
static void test_nursery_killed(struct fixture *fixture, gconstpointer unused)
{
    begin(fixture, 1);
    guint64 first = fixture->pid, nursery = parent_of(first);
    g_autofree char *first_name = g_steal_pointer(&fixture->name);
    g_auto(GStrv) words = words_of(nursery);
    g_assert_true(g_str_has_suffix(words[0], "/" NURSERY_PROGRAM NURSERY_SUFFIX));
    g_assert_cmpstr(words[3], ==, NURSERY_WORDS);
    kill((pid_t)nursery, SIGKILL);
    wait_no_child();
    g_assert_cmpuint(parent_of(first), !=, nursery);
    fixture->broken = 0;
    begin(fixture, 2);
    g_assert_cmpuint(parent_of(fixture->pid), !=, nursery);
    g_assert_cmpint(fixture->env->ops->livelock_probe(fixture->env, first_name), ==,
                    LIVELOCK_ALIVE);
    kill((pid_t)first, SIGKILL);
    end(fixture);
}

/* A request that it had taken is lost with it, and that is seen. */
static void test_nursery_dies_before_fork(struct fixture *fixture, gconstpointer unused)
{
    g_autofree char *once = g_build_filename(fixture->paths->root, "once", NULL);

    g_setenv("FETTLE_CRASH_AT_NURSERY", "nursery: fork", TRUE);
    g_setenv("FETTLE_CRASH_ONCE_NURSERY", once, TRUE);
    start(fixture, 1);
    world_wait_count(&fixture->broken, 1);
    g_assert_cmpuint(fixture->named, ==, 0);
    g_assert_false(fixture->confirmed);
    g_assert_true(g_file_test(once, G_FILE_TEST_EXISTS));
    wait_no_child();
    fixture->broken = 0;
    begin(fixture, 2);
    end(fixture);
    g_unsetenv("FETTLE_CRASH_AT_NURSERY");
    g_unsetenv("FETTLE_CRASH_ONCE_NURSERY");
}

/* At each of its points, before the confirmation and after: by the variables of its own. */
static void test_child_crashes(struct fixture *fixture, gconstpointer unused)
{
    g_setenv("FETTLE_CRASH_AT_JOB_START", "job-start: wait for confirmation", TRUE);
    fixture->dying = true;
    start(fixture, 1);
    world_wait_count(&fixture->broken, 1);
    g_assert_cmpuint(fixture->named, ==, 1);
    g_assert_false(fixture->confirmed);
    g_clear_pointer(&fixture->name, g_free);
    g_unsetenv("FETTLE_CRASH_AT_JOB_START");

    g_setenv("FETTLE_CRASH_AT_JOB", "1", TRUE);
    real_env_free(fixture->env);
    fixture->env = real_env_new(fixture->paths->root, ROLE_LUXID, NULL, NULL);
    fixture->broken = 0;
    fixture->dying = false;
    fixture->confirm_at_once = true;
    start(fixture, 2); /* without a job file: its first point is the end of its lock file */
    world_wait_count(&fixture->broken, 1);
    g_assert_true(fixture->confirmed);
    wait_gone(fixture);
    g_assert_cmpint(fixture->env->ops->livelock_probe(fixture->env, fixture->name), ==,
                    LIVELOCK_DEAD);
    g_unsetenv("FETTLE_CRASH_AT_JOB");
}

/* One that takes nothing: as many as may run at once wait, then luxid is told; it never waits. */
static void test_nursery_stands_still(struct fixture *fixture, gconstpointer unused)
{
    g_autoptr(GError) error = NULL;
    guint asked = 0;

    put_stand_in(fixture, "one-that-stands-still");
    while (fixture->env->ops->starter_spawn(fixture->env, 1, &events, fixture, &error) != NULL)
        asked++;
    assert_error(&error, TEMPORARY, "has not made the processes of earlier jobs yet");
    g_assert_cmpuint(asked, >=, LIMIT_NURSERY_REQUESTS);
    real_env_free(fixture->env); /* ends it */
    fixture->env = real_env_new(fixture->paths->root, ROLE_LUXID, NULL, NULL);
    world_wait_count(&fixture->broken, asked);
}

static void assert_complaint(const char *const *words, int requests, const char *part)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *said = NULL;
    g_autoptr(GSubprocessLauncher) launcher =
        g_subprocess_launcher_new(G_SUBPROCESS_FLAGS_STDERR_PIPE);

    if (requests >= 0)
        g_subprocess_launcher_take_fd(launcher, requests, NURSERY_REQUESTS_FD);
    g_autoptr(GSubprocess) child = g_subprocess_launcher_spawnv(launcher, words, &error);
    g_assert_no_error(error);
    g_assert_true(g_subprocess_communicate_utf8(child, NULL, NULL, NULL, &said, &error));
    g_assert_true(g_subprocess_get_if_exited(child));
    g_assert_cmpint(g_subprocess_get_exit_status(child) != 0, ==, part != NULL);
    if (part != NULL && strstr(said, part) == NULL)
        g_error("%s instead of %s", said, part);
}

/* The program's own bad input. */
static void test_program_usage(struct fixture *fixture, gconstpointer unused)
{
    const char *root = fixture->paths->root;
    const char *const rows[][5] = {
        {job_program, NULL},
        {job_program, "--root", root, NULL},
        {job_program, "root", root, "words", NULL},
        {job_program, "--root", "/nonexistent", "words", NULL},
        {job_program, "--root", root, "words", NULL}, /* no socket */
    };
    static const char *const parts[] = {
        "usage: fettle-job --root DIR WORDS; it is started by fettle-luxid only",
        "usage: fettle-job --root DIR WORDS; it is started by fettle-luxid only",
        "usage: fettle-job --root DIR WORDS; it is started by fettle-luxid only",
        "there is no such folder", "no requests of fettle-luxid come as descriptor 3: "};

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++)
        assert_complaint(rows[i], -1, parts[i]);
}

static void send_bad(int fd, const char *text, const int *descriptors, guint count)
{
    char control[CMSG_SPACE(4 * sizeof(int))]
        __attribute__((aligned(__alignof__(struct cmsghdr)))) = {0};
    struct iovec part = {(char *)text, strlen(text)};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

    if (count > 0) {
        message.msg_control = control;
        message.msg_controllen = CMSG_SPACE(count * sizeof(int));
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(count * sizeof(int));
        memcpy(CMSG_DATA(header), descriptors, count * sizeof(int));
    }
    g_assert_cmpint(sendmsg(fd, &message, 0), ==, (ssize_t)strlen(text));
}

static void test_bad_requests(struct fixture *fixture, gconstpointer unused)
{
    static const struct {
        const char *text;
        guint descriptors;
    } rows[] = {{"zero", 1},
                {"0", 1},
                {"17 ", 1},
                {"-1", 1},
                {"17", 0},
                {"17", 3},
                {"0000000000000000000000000000000000000000017", 1}};
    const char *const words[] = {job_program, "--root", fixture->paths->root, "words", NULL};
    const int descriptors[] = {1, 1, 1};

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        int ends[2];
        g_assert_cmpint(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), ==, 0);
        send_bad(ends[0], rows[i].text, descriptors, rows[i].descriptors);
        close(ends[0]);
        assert_complaint(words, ends[1],
                         "a request of fettle-luxid is no job id with one descriptor");
    }
    /* Nothing at all: luxid has ended. */
    int ends[2];
    g_assert_cmpint(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), ==, 0);
    close(ends[0]);
    assert_complaint(words, ends[1], NULL);
}

/* --- the rest of the real environment --- */

static void changed_cb(const char *name, void *data)
{
    g_ptr_array_add(data, g_strdup(name));
}

static void test_environment(struct fixture *fixture, gconstpointer unused)
{
    const struct env *env = fixture->env;
    const struct env_ops *ops = env->ops;
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GError) error = NULL;

    g_assert_cmpstr(env->node_uuid, ==, NODE_A);
    g_assert_cmpstr(env->role, ==, ROLE_LUXID);
    g_assert_cmpuint(strlen(env->boot_id), >, 0);
    g_assert_cmpint(ops->boot_ms(env), >, 0);
    g_assert_cmpint(ops->wall_us(env), >, 0);
    g_autofree char *first = env_uuid(env);
    g_autofree char *second = env_uuid(env);
    g_assert_true(g_uuid_string_is_valid(first));
    g_assert_cmpstr(first, !=, second);
    ops->file_watch(env, FILE_QUEUE, "", changed_cb, names);
    g_assert_true(ops->file_write(env, FILE_QUEUE, "job-9", "x", 1, &error));
    world_wait_line(names, "job-9");
    g_autofree char *livelock = ops->livelock_make(env, ROLE_LUXID, &error);
    g_assert_cmpint(ops->livelock_probe(env, livelock), ==, LIVELOCK_ALIVE);
    ops->livelock_drop(env, livelock);
    g_assert_cmpint(ops->livelock_probe(env, livelock), ==, LIVELOCK_GONE);

    g_autofree char *config = g_build_filename(fixture->paths->etc, "node.json", NULL);
    g_unlink(config);
    g_assert_null(real_env_new(fixture->paths->root, ROLE_JOB, NULL, &error));
    assert_error(&error, UNKNOWN_ENTITY, "this host belongs to no cluster");
}

/* As wconfd does, but without a pause. */
static pid_t sweep_for_ever(struct fixture *fixture)
{
    pid_t pid = fork();
    while (pid == 0) {
        g_autoptr(GPtrArray) names = livelock_list(fixture->paths);
        for (guint i = 0; i < names->len; i++)
            livelock_remove(fixture->paths, names->pdata[i]);
    }
    return pid;
}

/* Whatever is swept meanwhile: each started job has its file, locked, of the name that was told. */
static void test_starts_under_sweeps(struct fixture *fixture, gconstpointer unused)
{
    guint starts = g_test_quick() ? 100 : 10000;
    pid_t sweeper;
    int status;

    sweeper = sweep_for_ever(fixture);
    for (guint i = 0; i < starts; i++) {
        fixture->broken = 0;
        begin(fixture, i + 1);
        g_autofree char *path =
            g_build_filename(fixture->paths->run, "livelocks", fixture->name, NULL);
        g_assert_cmpint(access(path, F_OK), ==, 0);
        g_assert_cmpint(fixture->env->ops->livelock_probe(fixture->env, fixture->name), ==,
                        LIVELOCK_ALIVE);
        kill((pid_t)fixture->pid, SIGKILL);
        wait_gone(fixture);
        g_clear_pointer(&fixture->name, g_free);
    }
    kill(sweeper, SIGKILL);
    g_assert_cmpint(waitpid(sweeper, &status, 0), ==, sweeper);
    g_assert_true(WIFSIGNALED(status));
}

#define ADD(path, fn) g_test_add(path, struct fixture, NULL, set_up, fn, tear_down)

/* --- in place of the nursery --- */

static int take_request(void)
{
    char text[NURSERY_REQUEST_BYTES];
    char control[CMSG_SPACE(sizeof(int))] __attribute__((aligned(__alignof__(struct cmsghdr))));
    struct iovec part = {text, sizeof text};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = sizeof control};
    int channel;

    g_assert_cmpint(recvmsg(NURSERY_REQUESTS_FD, &message, 0), >, 0);
    memcpy(&channel, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof channel);
    return channel;
}

static int stand_in(const char *what)
{
    g_autofree char *line = g_strdelimit(g_strdup_printf("%s\n", what), ",", ' ');
    char byte;

    if (!strcmp(what, "one-that-stands-still")) {
        struct pollfd luxid = {.fd = NURSERY_REQUESTS_FD, .events = POLLRDHUP};
        poll(&luxid, 1, -1);
        return 0;
    }
    int channel = take_request();
    if (!strcmp(what, "one-that-dies") || !strcmp(what, "nothing"))
        return 3;
    if (!strcmp(what, "long")) {
        g_free(line);
        line = g_strnfill(1000, 'x');
    }
    g_assert_cmpint(write(channel, line, strlen(line)), >, 0);
    return read(channel, &byte, 1) == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
    if (argc == 3 && !strcmp(argv[1], "--as"))
        return stand_in(argv[2]);
    g_test_init(&argc, &argv, NULL);
    g_assert_cmpint(argc, ==, 2);
    job_program = g_canonicalize_filename(argv[1], NULL);
    test_program = g_file_read_link("/proc/self/exe", NULL);
    ADD("/starter/starts#LUX-18,LUX-19,LUX-21,LUX-24,DTH-09", test_starts);
    ADD("/starter/not-confirmed#LUX-21,LUX-22", test_not_confirmed);
    ADD("/starter/child-dies-first#LUX-23", test_child_dies_first);
    ADD("/starter/child-killed#LUX-23", test_child_killed);
    ADD("/starter/dropped#LUX-22", test_dropped);
    ADD("/starter/bad-lines", test_bad_lines);
    ADD("/starter/no-program", test_no_program);
    ADD("/starter/not-watched#LUX-23", test_not_watched);
    ADD("/starter/nothing-is-inherited#LUX-18", test_nothing_inherited);
    ADD("/starter/nursery-killed#LUX-07,LUX-28", test_nursery_killed);
    ADD("/starter/nursery-dies-before-the-fork#LUX-23", test_nursery_dies_before_fork);
    ADD("/starter/child-crashes#LUX-23,LUX-25", test_child_crashes);
    ADD("/starter/nursery-stands-still", test_nursery_stands_still);
    ADD("/starter/program-usage", test_program_usage);
    ADD("/starter/bad-requests", test_bad_requests);
    ADD("/starter/sweeps#DTH-19,LUX-19", test_starts_under_sweeps);
    ADD("/real-env/parts", test_environment);
    int code = g_test_run();
    g_free(job_program);
    g_free(test_program);
    return code;
}
