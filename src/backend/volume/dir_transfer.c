/* See dir_transfer.h. */
#include "backend/volume/dir_transfer.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/psk.h"
#include "backend/storage/image_tool.h"
#include "backend/tool.h"
#include "backend/unprivileged.h"
#include "backend/volume/dir_text.h"
#include "backend/volume/volume_user.h"
#include "base/limits.h"
#include "base/task.h"
#include "io/files.h"
#include "io/loop.h"
#include "io/net/tcp_moved.h"

#define READY "ready\n" /* what the child says before it becomes qemu-nbd */
#define READY_LOOK_MS 20u
#define KEY_FILE "/proc/self/fd/4" /* 3 is the socket, as systemd hands one over */

struct transfer {
    struct volume_transfer seen; /* first */
    struct child *child;
    bool outside;
    guint greet_ms, stall_ms;
    guint64 before, bytes; /* that its process had read when nobody was there, and moved so far */
    gint64 moved_ms;       /* boot clock: when that grew */
};

static struct transfer *of(const struct volume_transfer *transfer)
{
    return (struct transfer *)transfer;
}

/* --- the door --- */

/* One that was made by somebody else may let nobody pass. */
static bool let_pass(const char *folder)
{
    struct stat about;
    return stat(folder, &about) == 0 &&
           ((about.st_mode & 0777) == 0711 || chmod(folder, 0711) == 0);
}

/* What qemu-nbd looks for when it is asked for a key: the one of its own process. */
static bool make_folder(const char *folder, GError **error)
{
    g_autofree char *keys = g_build_filename(folder, PSK_KEYS, NULL);
    g_autofree char *group = g_build_filename(folder, PSK_GROUP, NULL);
    if (!files_make_folder(folder, 0711, error))
        return false;
    if (let_pass(folder) && (symlink(KEY_FILE, keys) == 0 || errno == EEXIST))
        return files_write_path(group, psk_group, strlen(psk_group), 0644, false, error);
    fettle_set_error(error, ENVIRONMENT, "cannot make %s: %s", folder, g_strerror(errno));
    return false;
}

void dir_transfer_clear(const char *folder)
{
    g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
    for (const char *name; dir && (name = g_dir_read_name(dir));) {
        g_autofree char *path = g_build_filename(folder, name, NULL);
        unlink(path);
    }
}

/* Who is gone without a word is noticed. */
static void keep_alive(int fd)
{
    int on = 1, idle = 20, each = 10, probes = 4;
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &each, sizeof each);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
}

static guint64 port_of(int fd)
{
    struct sockaddr_storage bound = {0};
    socklen_t length = sizeof bound;
    if (getsockname(fd, (struct sockaddr *)&bound, &length) != 0)
        return 0;
    return ntohs(bound.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&bound)->sin6_port
                                             : ((struct sockaddr_in *)&bound)->sin_port);
}

static int listen_at(const char *address, guint64 *ret_port, GError **error)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST};
    struct addrinfo *found = NULL;
    int failure = getaddrinfo(address, "0", &hints, &found);
    if (failure) {
        fettle_set_error(error, WRONG_INPUT, "address \"%s\" of a transfer: %s", address,
                         gai_strerror(failure));
        return -1;
    }
    int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool ok = fd >= 0 && bind(fd, found->ai_addr, found->ai_addrlen) == 0 && listen(fd, 1) == 0;
    freeaddrinfo(found);
    if (ok) {
        keep_alive(fd);
        *ret_port = port_of(fd);
        return fd;
    }
    fettle_set_error(error, ENVIRONMENT, "cannot listen on %s for a transfer: %s", address,
                     g_strerror(errno));
    if (fd >= 0)
        close(fd);
    return -1;
}

/* The folder's, where that is not root's: that of the API's user. The unit of volumed need not be
 * in that group: it may not be there yet while packages are put on a host. */
static void let_group_in(const char *folder, const char *path)
{
    struct stat about;
    if (stat(folder, &about) == 0 && about.st_gid && lchown(path, (uid_t)-1, about.st_gid) == 0)
        chmod(path, 0660);
}

static int open_door(struct volume_transfer *door, const char *folder, const char *address,
                     GError **error)
{
    if (!make_folder(folder, error))
        return -1;
    if (address) {
        door->address = g_strdup(address);
        door->key = psk_new();
        return listen_at(address, &door->port, error);
    }
    g_autofree char *random = psk_new();
    random[16] = '\0';
    door->path = g_strdup_printf("%s/%s", folder, random);
    int fd = unprivileged_listen(door->path, 1, 0, error);
    let_group_in(folder, door->path);
    return fd;
}

/* --- its life --- */

static void transfer_free(struct transfer *transfer)
{
    if (transfer->seen.path)
        unlink(transfer->seen.path);
    g_free(transfer->seen.path);
    g_free(transfer->seen.address);
    g_free(transfer->seen.key);
    g_free(transfer);
}

static struct child *start(const struct dir_transfer_call *call, int listener, const char *key,
                           GError **error)
{
    g_autofree char *line = g_strdup_printf("qemu:%s\n", key ? key : "");
    int fds[] = {listener, tool_text(line, error), -1};
    if (fds[1] >= 0 && call->conf)
        fds[2] = tool_text(call->conf, error);
    struct child *child = NULL;
    if (fds[1] >= 0 && (fds[2] >= 0 || !call->conf))
        child = volume_children_start(call->children, call->backend, call->words, fds,
                                      call->conf ? 3 : 2, error);
    for (guint i = 1; i < G_N_ELEMENTS(fds); i++)
        if (fds[i] >= 0)
            close(fds[i]);
    return child;
}

static bool await_ready(const struct child *child, guint limit_ms, GError **error)
{
    struct tool *tool = volume_child_tool(child);
    gint64 deadline = loop_boot_ms() + limit_ms;
    while (!tool_wait(tool, READY_LOOK_MS)) {
        g_autofree char *said = tool_output(tool, LIMIT_COMPLAINT_BYTES);
        if (g_str_has_prefix(said, READY))
            return true;
        if (task_killed())
            return fettle_set_ended(error, "the process that waited for a back end");
        if (loop_boot_ms() < deadline)
            continue;
        fettle_set_error(error, TIMEOUT, "no answer within %u s", limit_ms / 1000);
        return false;
    }
    g_autofree char *said = tool_output(tool, LIMIT_COMPLAINT_BYTES);
    dir_failure_parse(tool_exit_code(tool), said, error);
    return false;
}

struct volume_transfer *dir_transfer_start(const struct dir_transfer_call *call,
                                           const char *address, GError **error)
{
    struct transfer *transfer = g_new0(struct transfer, 1);
    transfer->outside = call->conf != NULL;
    transfer->greet_ms = call->greet_ms;
    transfer->stall_ms = call->stall_ms;
    int listener = open_door(&transfer->seen, call->folder, address, error);
    if (listener >= 0) {
        transfer->child = start(call, listener, transfer->seen.key, error);
        close(listener);
    }
    if (transfer->child && await_ready(transfer->child, call->limit_ms, error))
        return &transfer->seen;
    volume_child_end(transfer->child);
    transfer_free(transfer);
    return NULL;
}

/* The socket of a client, beside the one that listens. */
static bool has_socket(guint64 pid)
{
    g_autofree char *path = g_strdup_printf("/proc/%" G_GUINT64_FORMAT "/fd", pid);
    guint sockets = 0;
    volume_user_become();
    DIR *dir = opendir(path);
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        char target[16] = "";
        ssize_t length = readlinkat(dirfd(dir), entry->d_name, target, sizeof target - 1);
        sockets += length > 0 && g_str_has_prefix(target, "socket:");
    }
    volume_user_return();
    if (dir)
        closedir(dir);
    return sockets > 1;
}

/* Whether a line of /proc/net is a connection that came by that door. */
static bool came_by(const struct volume_transfer *door, const char *line)
{
    guint port = 0, state = 0;
    int before = 0;
    if (door->path)
        return sscanf(line, "%*s %*s %*s %*s %*s %x %*u %n", &state, &before) == 1 && state == 3 &&
               before && strcmp(line + before, door->path) == 0;
    return sscanf(line, " %*d: %*[0-9A-F]:%x %*[0-9A-F]:%*x %x", &port, &state) == 2 &&
           port == door->port && state == 1;
}

/* Of an image in a pool: qemu-nbd has sockets of its own to a Ceph. */
static bool has_connection(const struct volume_transfer *door)
{
    const char *const tables[] = {"unix", "tcp", "tcp6"};
    bool found = false;
    for (guint i = door->path ? 0 : 1; i < (door->path ? 1 : G_N_ELEMENTS(tables)); i++) {
        g_autofree char *file = g_strconcat("/proc/self/net/", tables[i], NULL), *text = NULL;
        if (!g_file_get_contents(file, &text, NULL, NULL))
            continue;
        g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
        for (guint j = 0; lines[j]; j++)
            found = found || came_by(door, lines[j]);
    }
    return found;
}

/* What it has read and written: of the image, and of the key when somebody shows his, but not of
 * what passes by its sockets. 0: that cannot be seen. */
static guint64 bytes_moved(guint64 pid, guint64 *ret_read)
{
    g_autofree char *path = g_strdup_printf("/proc/%" G_GUINT64_FORMAT "/io", pid);
    g_autofree char *text = NULL;
    guint64 in = 0, out = 0;
    volume_user_become();
    bool seen = g_file_get_contents(path, &text, NULL, NULL);
    volume_user_return();
    if (seen)
        sscanf(text, "rchar: %" G_GUINT64_FORMAT " wchar: %" G_GUINT64_FORMAT, &in, &out);
    *ret_read = in;
    return in + out;
}

/* Of what a pool has nothing passes by files: by the port it is seen at least from outside, with
 * one more than there was, as 0 is that it cannot be seen. Who comes by a path is root of this
 * node. */
static guint64 bytes_passed(const struct volume_transfer *door, guint64 *ret_received)
{
    guint64 sent = 0;
    *ret_received = 0;
    return door->port && tcp_moved(door->port, ret_received, &sent) ? *ret_received + sent + 1 : 0;
}

/* One who says nothing has the only place. */
static bool is_stuck(struct transfer *transfer, guint64 bytes, guint64 read)
{
    if (bytes != transfer->bytes || !bytes)
        transfer->moved_ms = loop_boot_ms();
    transfer->bytes = bytes;
    const char *key = transfer->seen.key; /* which is read then; what wakes it is some bytes, too */
    bool greets = key && read < transfer->before + strlen(key);
    return loop_boot_ms() >=
           transfer->moved_ms + (greets ? transfer->greet_ms : transfer->stall_ms);
}

/* Whoever leaves before he is let in does not end qemu-nbd: the place is another's again. */
enum volume_transfer_state dir_transfer_state(const struct volume_transfer *seen)
{
    struct transfer *transfer = of(seen);
    struct tool *tool = volume_child_tool(transfer->child);
    if (tool_ended(tool))
        return TRANSFER_OVER;
    bool outside = transfer->outside;
    guint64 read, bytes = outside ? bytes_passed(seen, &read) : bytes_moved(tool_pid(tool), &read);
    if (outside ? has_connection(seen) : has_socket(tool_pid(tool)))
        return is_stuck(transfer, bytes, read) ? TRANSFER_STUCK : TRANSFER_STANDS;
    transfer->before = read;
    transfer->bytes = bytes;
    transfer->moved_ms = loop_boot_ms();
    return TRANSFER_WAITS;
}

bool dir_transfer_end(struct volume_transfer *seen)
{
    if (!seen)
        return true;
    bool gone = volume_child_end(of(seen)->child);
    transfer_free(of(seen));
    return gone;
}

/* --- the child --- */

/* A comma ends a value, unless there are two. */
static char *credentials(const char *folder)
{
    g_auto(GStrv) parts = g_strsplit(folder, ",", -1);
    g_autofree char *escaped = g_strjoinv(",,", parts);
    return g_strdup_printf("tls-creds-psk,id=t0,endpoint=server,dir=%s", escaped);
}

static void serve(const char *image, bool writes, guint32 user, const char *folder, GError **error)
{
    g_autoptr(GPtrArray) argv = g_ptr_array_new_with_free_func(g_free);
    g_autofree char *pid = g_strdup_printf("%d", (int)getpid());
    volume_user_words(argv, user, getppid());
    image_tool_limits(argv);
    g_ptr_array_add(argv, g_strdup("qemu-nbd"));
    if (!writes)
        g_ptr_array_add(argv, g_strdup("-r"));
    if (*folder) {
        g_ptr_array_add(argv, g_strdup("--object"));
        g_ptr_array_add(argv, credentials(folder));
        g_ptr_array_add(argv, g_strdup("--tls-creds=t0"));
    }
    g_ptr_array_add(argv, g_strdup_printf("json:{\"driver\":\"raw\",\"file\":%s}", image));
    g_ptr_array_add(argv, NULL);
    if (setenv("LISTEN_PID", pid, 1) == 0 && setenv("LISTEN_FDS", "1", 1) == 0 &&
        printf(READY) > 0 && fflush(stdout) == 0)
        execvp(argv->pdata[0], (char **)argv->pdata);
    fettle_set_error(error, ENVIRONMENT, "cannot start qemu-nbd: %s", g_strerror(errno));
}

void dir_transfer_serve(int fd, bool writes, const char *folder, GError **error)
{
    g_autofree char *image =
        g_strdup_printf("{\"driver\":\"file\",\"filename\":\"/proc/self/fd/%d\"}", fd);
    if (fcntl(fd, F_SETFD, 0) != 0)
        fettle_set_error(error, ENVIRONMENT, "cannot hand it on: %s", g_strerror(errno));
    else if (volume_user_lend(fd, writes, error))
        serve(image, writes, VOLUME_USER, folder, error);
}

void dir_transfer_serve_file(const char *file, bool writes, const char *folder, GError **error)
{
    serve(file, writes, POOL_USER, folder, error);
}
