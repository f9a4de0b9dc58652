/* See nursery.h. */
#include "io/nursery.h"
#include "io/crash.h"

#include <errno.h>
#include <fcntl.h>
#include <glib-unix.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

struct nursery {
    char *root;
    char *bin_folder;
    int fd;              /* our end; -1: it does not run */
    struct child *child; /* the process; NULL as well then */
    char *program;
    struct stat file; /* which that was when it was started */
};

struct nursery *nursery_new(const struct node_paths *paths, const char *bin_folder)
{
    struct nursery *nursery = g_new(struct nursery, 1);

    *nursery = (struct nursery){
        .root = g_strdup(paths->root), .bin_folder = g_strdup(bin_folder), .fd = -1};
    return nursery;
}

/* A nursery's process, until it is reaped. */
struct child {
    int pidfd;
    struct nursery *nursery; /* whose it is; NULL: it was let go */
};

static void let_go(struct nursery *nursery)
{
    if (nursery->fd < 0)
        return;
    close(nursery->fd);
    nursery->fd = -1;
    nursery->child->nursery = NULL;
    nursery->child = NULL;
}

void nursery_free(struct nursery *nursery)
{
    if (nursery == NULL)
        return;
    let_go(nursery);
    g_free(nursery->program);
    g_free(nursery->root);
    g_free(nursery->bin_folder);
    g_free(nursery);
}

/* --- its end, seen so that it leaves no zombie --- */

/* What it had ready for the next job has our requests still, and would take one: it ends by this.
 */
static gboolean exited_cb(gint fd, GIOCondition condition, gpointer data)
{
    struct child *child = data;
    siginfo_t info;

    waitid(P_PIDFD, (id_t)fd, &info, WEXITED | WNOHANG);
    close(fd);
    if (child->nursery != NULL)
        let_go(child->nursery);
    g_free(child);
    return G_SOURCE_REMOVE;
}

/* It may not have been told of yet. */
static bool has_ended(const struct nursery *nursery)
{
    struct pollfd ended = {.fd = nursery->child->pidfd, .events = POLLIN};

    return poll(&ended, 1, 0) > 0;
}

/* One that cannot be watched is ended at once: it has forked nothing yet. Only its parent reaps it,
 * so the pid is still its own. */
static struct child *watch_end(pid_t pid, const char *program, GError **error)
{
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);

    if (fd >= 0) {
        struct child *child = g_new(struct child, 1);
        *child = (struct child){.pidfd = fd};
        g_unix_fd_add(fd, G_IO_IN, exited_cb, child);
        return child;
    }
    fettle_set_error(error, ENVIRONMENT, "%s cannot be watched, so it was ended again: %s", program,
                     g_strerror(errno));
    crash_point("nursery: kill");
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    return NULL;
}

/* --- spawning --- */

/* Also found where the build leaves it, in a folder job/ beside. */
static char *program_of(const struct nursery *nursery)
{
    g_autofree char *path = g_build_filename(nursery->bin_folder, NURSERY_PROGRAM, NULL);

    if (g_file_test(path, G_FILE_TEST_IS_EXECUTABLE))
        return g_steal_pointer(&path);
    g_autofree char *built =
        g_build_filename(nursery->bin_folder, "..", "job", NURSERY_PROGRAM, NULL);
    if (g_file_test(built, G_FILE_TEST_IS_EXECUTABLE))
        return g_steal_pointer(&built);
    return g_steal_pointer(&path);
}

static void prepare_files(posix_spawn_file_actions_t *actions, int requests)
{
    posix_spawn_file_actions_init(actions);
    posix_spawn_file_actions_addopen(actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    /* Also clears close-on-exec if the descriptor happens to have that very number. */
    posix_spawn_file_actions_adddup2(actions, requests, NURSERY_REQUESTS_FD);
}

/* A session of its own and plain signals: what happens to luxid does not happen to its jobs. */
static void prepare_attributes(posix_spawnattr_t *attributes)
{
    sigset_t none, plain;

    sigemptyset(&none);
    sigemptyset(&plain);
    sigaddset(&plain, SIGPIPE);
    sigaddset(&plain, SIGTERM);
    sigaddset(&plain, SIGINT);
    posix_spawnattr_init(attributes);
    posix_spawnattr_setsigmask(attributes, &none);
    posix_spawnattr_setsigdefault(attributes, &plain);
    posix_spawnattr_setflags(attributes,
                             POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
}

/* Its own name in the list of processes tells it from the jobs. */
static int spawn(const struct nursery *nursery, const char *program, int requests, pid_t *ret_pid)
{
    g_autofree char *name = g_strconcat(program, NURSERY_SUFFIX, NULL);
    g_auto(GStrv) environment = crash_environment_for("NURSERY");
    char *argv[] = {name, (char *)"--root", nursery->root, (char *)NURSERY_WORDS, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;

    prepare_files(&actions, requests);
    prepare_attributes(&attributes);
    crash_point("nursery: spawn");
    int code = posix_spawn(ret_pid, program, &actions, &attributes, argv, environment);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    return code;
}

/* As many requests as jobs may run at once wait while it is slow, each for what the kernel counts
 * for one at most; nothing in luxid waits for it. */
static bool make_socket(int *ret_ends, GError **error)
{
    int room = LIMIT_NURSERY_REQUESTS * LIMIT_NURSERY_REQUEST_COST;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ret_ends) != 0) {
        fettle_set_error(error, ENVIRONMENT, "cannot make a channel: %s", g_strerror(errno));
        return false;
    }
    g_unix_set_fd_nonblocking(ret_ends[0], TRUE, NULL);
    if (setsockopt(ret_ends[0], SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof room) != 0)
        setsockopt(ret_ends[0], SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
    return true;
}

static bool start(struct nursery *nursery, GError **error)
{
    g_autofree char *program = program_of(nursery);
    struct stat file = {0};
    int ends[2];
    pid_t pid = 0;

    if (!make_socket(ends, error))
        return false;
    (void)!stat(program, &file); /* before: one that is put there meanwhile is another */
    int code = spawn(nursery, program, ends[1], &pid);
    close(ends[1]);
    if (code != 0) {
        close(ends[0]);
        fettle_set_error(error, ENVIRONMENT, "cannot start %s: %s", program, g_strerror(code));
        return false;
    }
    struct child *child = watch_end(pid, program, error);
    if (child == NULL) {
        close(ends[0]);
        return false;
    }
    let_go(nursery); /* of the one before: it makes what it was asked for, and ends */
    nursery->fd = ends[0];
    nursery->child = child;
    child->nursery = nursery;
    nursery->file = file;
    g_free(nursery->program);
    nursery->program = g_steal_pointer(&program);
    return true;
}

/* --- an upgrade --- */

/* One that is not there, or not now, takes nobody's place. */
static bool is_replaced(const struct nursery *nursery)
{
    const struct stat *then = &nursery->file;
    struct stat now;

    return nursery->fd >= 0 && stat(nursery->program, &now) == 0 &&
           (now.st_dev != then->st_dev || now.st_ino != then->st_ino ||
            now.st_size != then->st_size || now.st_mtim.tv_sec != then->st_mtim.tv_sec ||
            now.st_mtim.tv_nsec != then->st_mtim.tv_nsec);
}

/* --- requests --- */

/* 0, or why it was not taken. */
static int send_request(const struct nursery *nursery, guint64 job, int channel)
{
    char text[NURSERY_REQUEST_BYTES];
    char control[CMSG_SPACE(sizeof(int))]
        __attribute__((aligned(__alignof__(struct cmsghdr)))) = {0};
    struct iovec part = {text, (size_t)g_snprintf(text, sizeof text, "%" G_GUINT64_FORMAT, job)};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = sizeof control};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);

    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(header), &channel, sizeof channel);
    crash_point("nursery: ask");
    return sendmsg(nursery->fd, &message, MSG_NOSIGNAL) < 0 ? errno : 0;
}

static bool has_died(int code)
{
    return code == EPIPE || code == ECONNRESET || code == ENOTCONN;
}

/* It is behind with its work. */
static bool is_full(int code)
{
    return code == EAGAIN || code == ENOBUFS || code == ETOOMANYREFS;
}

bool nursery_ask(struct nursery *nursery, guint64 job, int channel, GError **error)
{
    if (nursery->fd >= 0 && has_ended(nursery))
        let_go(nursery);
    if (is_replaced(nursery))
        start(nursery, NULL); /* if the new one cannot be, the old one goes on */
    bool fresh = nursery->fd < 0;
    if (fresh && !start(nursery, error))
        return false;
    int code = send_request(nursery, job, channel);
    if (has_died(code)) {
        let_go(nursery);
        if (!fresh && !start(nursery, error))
            return false;
        if (!fresh)
            code = send_request(nursery, job, channel);
    }
    if (code == 0)
        return true;
    if (is_full(code)) {
        fettle_set_error(error, TEMPORARY, "%s has not made the processes of earlier jobs yet",
                         NURSERY_PROGRAM);
        return false;
    }
    fettle_set_error(error, ENVIRONMENT, "%s of the folder %s takes no job: %s", NURSERY_PROGRAM,
                     nursery->bin_folder, g_strerror(code));
    return false;
}
