/*
 * The program fettle-job: what a job's process makes of a job file and a node with every fault, and
 * that its lock file is gone in the end. Its nursery: tests/unit/io/test_starter.c. FETTLE_JOB
 * names the program.
 */
#include <gio/gio.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "io/files.h"
#include "io/livelock.h"
#include "io/starter.h"

struct host {
    char *root;
    struct node_paths *paths;
};

static void write_file(const struct host *host, const char *name, const char *text)
{
    g_autofree char *path = g_build_filename(host->root, name, NULL);
    g_autofree char *folder = g_path_get_dirname(path);
    g_assert_cmpint(g_mkdir_with_parents(folder, 0755), ==, 0);
    g_assert_true(g_file_set_contents(path, text, -1, NULL));
}

static void host_init(struct host *host)
{
    g_autoptr(GError) error = NULL;
    *host = (struct host){.root = g_dir_make_tmp("job-XXXXXX", NULL)};
    write_file(host, "etc/node.json",
               "{\"node_uuid\":\"11111111-1111-4111-8111-111111111111\",\"name\":\"node1\","
               "\"cluster_uuid\":\"cccccccc-cccc-4ccc-8ccc-cccccccccccc\","
               "\"address\":\"127.0.0.1\"}");
    host->paths = node_paths_new(host->root, &error);
    g_assert_no_error(error);
    g_assert_true(node_paths_make(host->paths, &error));
}

static void put_job(const struct host *host, const char *text)
{
    g_autoptr(GError) error = NULL;
    g_assert_true(files_write(host->paths, FILE_QUEUE, "job-17", text, strlen(text), &error));
}

static void send_descriptor(int fd, const char *text, int descriptor)
{
    char control[CMSG_SPACE(sizeof(int))]
        __attribute__((aligned(__alignof__(struct cmsghdr)))) = {0};
    struct iovec part = {(char *)text, strlen(text)};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = sizeof control};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
    g_assert_cmpint(sendmsg(fd, &message, 0), ==, (ssize_t)strlen(text));
}

static void host_clear(struct host *host)
{
    g_autofree char *command = g_strdup_printf("rm -rf '%s'", host->root);
    node_paths_free(host->paths);
    g_assert_true(g_spawn_command_line_sync(command, NULL, NULL, NULL, NULL));
    g_free(host->root);
}

static char *log_of(const struct host *host)
{
    return g_build_filename(host->root, "log", "luxid.log", NULL);
}

/* The process is asked to give up when it has been confirmed, and has not done anything since. */
static void ask_to_give_up(const char *named, int channel)
{
    g_auto(GStrv) words = g_strsplit(named, " ", 3);
    pid_t pid = (pid_t)g_ascii_strtoll(words[1], NULL, 10);
    g_assert_cmpint(pid, >, 1);
    g_assert_cmpint(kill(pid, SIGSTOP), ==, 0);
    g_assert_cmpint(write(channel, "\n", 1), ==, 1);
    g_assert_cmpint(kill(pid, SIGTERM), ==, 0);
    g_assert_cmpint(kill(pid, SIGCONT), ==, 0);
}

/* A nursery of those words with one request, whose confirmation is given: the text that the job's
 * process named itself with. */
static char *request(const struct host *host, const char *words, const char *job, bool give_up)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GSubprocessLauncher) launcher = g_subprocess_launcher_new(G_SUBPROCESS_FLAGS_NONE);
    g_autofree char *log = log_of(host);
    char line[STARTER_LINE_BYTES + 1] = "";
    int requests[2], channel[2];
    g_assert_cmpint(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, requests), ==, 0);
    g_assert_cmpint(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, channel), ==, 0);
    unlink(log);
    g_subprocess_launcher_set_stderr_file_path(launcher, log);
    g_subprocess_launcher_take_fd(launcher, requests[1], NURSERY_REQUESTS_FD);
    g_autoptr(GSubprocess) nursery = g_subprocess_launcher_spawn(
        launcher, &error, g_getenv("FETTLE_JOB"), "--root", host->root, words, NULL);
    g_assert_no_error(error);
    send_descriptor(requests[0], job, channel[1]);
    close(channel[1]);
    g_assert_cmpint(read(channel[0], line, STARTER_LINE_BYTES), >, 0);
    if (give_up)
        ask_to_give_up(line, channel[0]);
    else
        g_assert_cmpint(write(channel[0], "\n", 1), ==, 1);
    g_assert_cmpint(read(channel[0], line + STARTER_LINE_BYTES, 1), ==, 0); /* it is the job's */
    close(channel[0]);
    close(requests[0]);
    g_assert_true(g_subprocess_wait_check(nursery, NULL, &error)); /* it goes, the job stays */
    return g_strdup(line);
}

static bool has_locks(const struct host *host)
{
    g_autoptr(GPtrArray) names = livelock_list(host->paths);
    return names->len > 0;
}

/* Runs job 17 to its end, with its lock file: all that it said. */
static char *run_as(const struct host *host, const char *words, bool give_up)
{
    g_autofree char *name = request(host, words, "17", give_up);
    g_autofree char *path = log_of(host);
    char *said = NULL;
    g_assert_true(g_str_has_prefix(name, "job-17-"));
    g_autofree char *lock = g_strndup(name, strcspn(name, " "));
    while (livelock_probe(host->paths, lock) == LIVELOCK_ALIVE)
        g_usleep(2000);
    g_assert_false(has_locks(host)); /* who is killed leaves it behind */
    g_assert_true(g_file_get_contents(path, &said, NULL, NULL));
    return g_strchomp(said);
}

static char *run_from(const struct host *host, const char *words)
{
    return run_as(host, words, false);
}

/* The last line of what a run said, without time. */
static char *last_line(const char *said)
{
    const char *line = strrchr(said, '\n');
    const char *text = strstr(line ? line : said, "fettle-job 17: ");
    g_assert_nonnull(text);
    return g_strdup(text + strlen("fettle-job 17: "));
}

static char *run(const struct host *host)
{
    g_autofree char *said = run_from(host, NURSERY_WORDS);
    return last_line(said);
}

#define assert_run(host, expected)                                                                 \
    do {                                                                                           \
        g_autofree char *said_ = run(host);                                                        \
        g_assert_cmpstr(said_, ==, expected);                                                      \
    } while (0)

static void test_job_file(void)
{
    struct host host;
    host_init(&host);
    g_autofree char *missing = run(&host);
    g_assert_true(g_str_has_prefix(missing, "there is no file "));
    g_assert_true(g_str_has_suffix(missing, "/queue/job-17"));
    put_job(&host, "{\"id\":17,\"ops\":[{\"inp");
    assert_run(&host,
               "job-17: broken JSON at byte 21 (line 1): premature end of input near '\"inp'");
    put_job(&host, "{\"id\":18,\"ops\":[]}");
    assert_run(&host, "job-17 is the file of job 18");
    put_job(&host, "{\"id\":17,\"ops\":[{\"input\":{},\"status\":\"running\"}]}");
    assert_run(&host, "job 17 has run before; it is not run twice");
    host_clear(&host);
}

/* A signal between the confirmation and the beginning kills nobody: the process hears it when it
 * can, and goes as every job does, without leaving its lock file behind. */
static void test_asked_early(void)
{
    struct host host;
    host_init(&host);
    for (guint i = 0; i < 20; i++) {
        g_autofree char *said = run_as(&host, NURSERY_WORDS, true);
        g_autofree char *last = last_line(said);
        g_assert_true(g_str_has_prefix(last, "there is no file "));
    }
    host_clear(&host);
}

static void test_no_node(void)
{
    struct host host;
    host_init(&host);
    g_autofree char *config = g_build_filename(host.root, "etc", "node.json", NULL);
    unlink(config);
    g_autofree char *said = run(&host);
    g_assert_true(g_str_has_prefix(said, "this host belongs to no cluster"));
    host_clear(&host);
}

/* Without room for its own words in the list of processes it runs all the same, and says so. */
static void test_no_room(void)
{
    struct host host;
    host_init(&host);
    put_job(&host, "{\"id\":18,\"ops\":[]}");
    g_autofree char *said = run_from(&host, "words");
    g_assert_nonnull(strstr(said, "fettle-job 17: ps shows this process under the words of its "
                                  "nursery, not as job 17: those were too short for its own\n"));
    g_assert_true(g_str_has_suffix(said, "job-17 is the file of job 18"));
    g_autofree char *plain = run_from(&host, NURSERY_WORDS);
    g_assert_null(strstr(plain, "ps shows"));
    host_clear(&host);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/fettle-job/job-file#SAF-32", test_job_file);
    g_test_add_func("/fettle-job/asked-early#SAF-32", test_asked_early);
    g_test_add_func("/fettle-job/no-node", test_no_node);
    g_test_add_func("/fettle-job/no-room", test_no_room);
    return g_test_run();
}
