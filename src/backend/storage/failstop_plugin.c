/*
 * The fail-stop export of one disk of a replica (SAF-14), as an nbdkit plugin. It either answers
 * that a write is on stable storage, or it ends: an NBD error reply would let the guest go on
 * without the replica, a lost connection makes it wait. nbdkit runs it in a process of its own for
 * each disk. Told to end (SIGTERM) it is gone at once, with nothing more answered; it does not end
 * with the node daemon.
 *
 *   file=PATH [file_fd=FD] history=N replica=UUID generation=N disk=N
 *   [control=SOCKET | control_fd=FD] [lazy=BOOL]
 *
 * It needs no right to open the image, or to make the socket, if it is handed both open.
 *
 * A replica that is still copied to is promised to nobody, so its export may be lazy: a write is
 * answered before it is on stable storage. Whoever connects to the control socket settles it: when
 * the answer SETTLED comes, everything that was answered before is on stable storage, and from then
 * on every write is before its own answer. There is no way back.
 *
 * A client must ask for the export HISTORY.REPLICA.GENERATION.DISK; every other name is refused.
 */
#define NBDKIT_API_VERSION 2
/* Requests are taken one at a time under our own lock, not nbdkit's: those of a connection that was
 * superseded are held for ever (see hold_superseded), which must not hold up the others. */
#define THREAD_MODEL NBDKIT_THREAD_MODEL_PARALLEL

#include "backend/plugin.h"
#include "backend/storage/settle.h"

#include <nbdkit-plugin.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define STUCK_SECONDS 30 /* a disk that answers nothing for so long has failed */
#define EXIT_FAULT 3
/* Written lazily before the kernel is told to begin with it; of what it was told before, everything
 * must be done by then. So no more than twice this much is ever left for settling. */
#define LAZY_BYTES (16u * 1024 * 1024)

static char *file_name, *history, *replica, *generation, *disk, *control, *lazy_word;
static char *file_word, *control_word; /* descriptors */
static char export_name[256];
static int fd = -1;
static int64_t size;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned long newest; /* connection that may write; guarded by lock */
static bool lazy;            /* and so is this: a write may be answered before it is synced */
static uint64_t unsynced;    /* bytes written lazily since the kernel was last told to begin */

static int control_fd = -1;

/* No clean-up on the way out: nothing may answer anybody any more. */
_Noreturn static void fail_stop(const char *what)
{
    nbdkit_error("%s: %s: %s; ending, so that the writer waits", file_name, what, strerror(errno));
    _exit(EXIT_FAULT);
}

static char **parameter(const char *key)
{
    static const struct {
        const char *key;
        char **value;
    } known[] = {
        {"file", &file_name},        {"history", &history},   {"replica", &replica},
        {"generation", &generation}, {"disk", &disk},         {"control", &control},
        {"lazy", &lazy_word},        {"file_fd", &file_word}, {"control_fd", &control_word}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(key, known[i].key) == 0)
            return known[i].value;
    return NULL;
}

static int failstop_config(const char *key, const char *value)
{
    char **slot = parameter(key);
    if (slot == NULL) {
        nbdkit_error("unknown parameter %s; known are file, history, replica, generation, disk, "
                     "control, lazy, file_fd, control_fd",
                     key);
        return -1;
    }
    if (*slot != NULL || value[0] == '\0') {
        nbdkit_error("parameter %s is %s", key, *slot != NULL ? "given twice" : "empty");
        return -1;
    }
    *slot = strdup(value);
    return *slot != NULL ? 0 : -1;
}

static int check_parameters(void)
{
    uint64_t number;
    if (file_name == NULL || history == NULL || replica == NULL || generation == NULL ||
        disk == NULL) {
        nbdkit_error("parameters file, history, replica, generation and disk are all needed");
        return -1;
    }
    if (nbdkit_parse_uint64_t("history", history, &number) < 0 ||
        nbdkit_parse_uint64_t("generation", generation, &number) < 0 ||
        nbdkit_parse_uint64_t("disk", disk, &number) < 0)
        return -1;
    int length = snprintf(export_name, sizeof export_name, "%s.%s.%s.%s", history, replica,
                          generation, disk);
    if (length >= (int)sizeof export_name) {
        nbdkit_error("the export's name would be longer than %zu bytes", sizeof export_name - 1);
        return -1;
    }
    int wanted = lazy_word != NULL ? nbdkit_parse_bool(lazy_word) : 0;
    if (wanted > 0 && control == NULL && control_word == NULL) {
        nbdkit_error("a lazy export needs a control socket, or it would stay so for ever");
        return -1;
    }
    lazy = wanted > 0;
    return wanted < 0 ? -1 : 0;
}

/* What was handed to us under that number, now ours alone; -1. */
static int take_descriptor(const char *key, const char *word)
{
    int taken = -1;
    if (nbdkit_parse_int(key, word, &taken) < 0)
        return -1;
    if (taken > STDERR_FILENO && fcntl(taken, F_SETFD, FD_CLOEXEC) == 0)
        return taken;
    nbdkit_error("%s: %s is no descriptor that was handed over", key, word);
    return -1;
}

/* Only our own user, and root, may connect to what we make ourselves. */
static int listen_for_control(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (control_word != NULL) {
        control_fd = take_descriptor("control_fd", control_word);
        return control_fd >= 0 ? 0 : -1;
    }
    if (control == NULL)
        return 0;
    if (strlen(control) >= sizeof address.sun_path) {
        nbdkit_error("control: a socket's name has at most %zu bytes", sizeof address.sun_path - 1);
        return -1;
    }
    strcpy(address.sun_path, control);
    unlink(control);
    mode_t mask = umask(0177);
    control_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool ok = control_fd >= 0 &&
              bind(control_fd, (const struct sockaddr *)&address, sizeof address) == 0 &&
              listen(control_fd, SOMAXCONN) == 0;
    umask(mask);
    if (!ok)
        nbdkit_error("%s: %s", control, strerror(errno));
    return ok ? 0 : -1;
}

static int open_image(void)
{
    if (file_word != NULL)
        return take_descriptor("file_fd", file_word);
    int opened = open(file_name, O_RDWR | O_CLOEXEC);
    if (opened < 0)
        nbdkit_error("%s: %s", file_name, strerror(errno));
    return opened;
}

/* The lock covers every byte, so also those that QEMU locks: an image that is exported cannot be
 * run, and the other way round. */
static int failstop_config_complete(void)
{
    if (check_parameters() < 0)
        return -1;
    struct stat status;
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    fd = open_image();
    if (fd < 0)
        return -1;
    if (fstat(fd, &status) != 0) {
        nbdkit_error("%s: %s", file_name, strerror(errno));
        return -1;
    }
    if (fcntl(fd, F_OFD_SETLK, &whole) != 0) {
        nbdkit_error("%s: is in use by another process", file_name);
        return -1;
    }
    size = status.st_size;
    return listen_for_control();
}

static void sync_or_stop(void)
{
    if (fdatasync(fd) != 0)
        fail_stop("fdatasync");
}

/* The first of the two may take long, and holds nobody up. */
static void settle(void)
{
    sync_or_stop();
    pthread_mutex_lock(&lock);
    alarm(STUCK_SECONDS);
    sync_or_stop();
    lazy = false;
    alarm(0);
    pthread_mutex_unlock(&lock);
}

static void *serve_control(void *unused)
{
    for (;;) {
        int client = accept4(control_fd, NULL, NULL, SOCK_CLOEXEC);
        if (client < 0 && errno != EINTR && errno != ECONNABORTED)
            fail_stop("accept");
        if (client < 0)
            continue;
        settle();
        (void)!send(client, SETTLED, strlen(SETTLED), MSG_NOSIGNAL); /* or it asks again */
        close(client);
    }
    return NULL;
}

static int failstop_after_fork(void)
{
    pthread_t thread;
    plugin_end_at_once();
    if (control_fd < 0)
        return 0;
    int failure = pthread_create(&thread, NULL, serve_control, NULL);
    if (failure != 0)
        nbdkit_error("no thread for the control socket: %s", strerror(failure));
    return failure == 0 ? 0 : -1;
}

static void *failstop_open(int readonly)
{
    const char *asked = nbdkit_export_name();
    if (asked == NULL || strcmp(asked, export_name) != 0) {
        nbdkit_error("export %s was asked for, this is %s", asked != NULL ? asked : "(none)",
                     export_name);
        return NULL;
    }
    unsigned long *connection = malloc(sizeof *connection);
    if (connection == NULL)
        fail_stop("open");
    pthread_mutex_lock(&lock);
    *connection = ++newest;
    pthread_mutex_unlock(&lock);
    return connection;
}

static void failstop_close(void *handle)
{
    free(handle);
}

/* The writer has opened another connection and repeats there what it was not answered here. A late
 * write of this one could undo a newer one, and an error could be taken for a disk's. So it gets no
 * answer. */
_Noreturn static void hold_superseded(void)
{
    for (;;)
        pause();
}

static void begin(void *handle)
{
    pthread_mutex_lock(&lock);
    if (*(unsigned long *)handle != newest) {
        pthread_mutex_unlock(&lock);
        hold_superseded();
    }
    alarm(STUCK_SECONDS); /* SIGALRM ends the process */
}

static int end(void)
{
    alarm(0);
    pthread_mutex_unlock(&lock);
    return 0;
}

static int64_t failstop_get_size(void *handle)
{
    return size;
}

static int failstop_pread(void *handle, void *buffer, uint32_t count, uint64_t offset,
                          uint32_t flags)
{
    begin(handle);
    for (char *at = buffer; count > 0;) {
        ssize_t got = pread(fd, at, count, (off_t)offset);
        if (got <= 0)
            fail_stop("read");
        at += got;
        count -= (uint32_t)got;
        offset += (uint64_t)got;
    }
    return end();
}

/* QEMU's mirror passes no flush on, so every write is synced; a lazy one is only sent on its way.
 */
static void written(uint32_t count, uint32_t flags)
{
    if (!lazy || (flags & NBDKIT_FLAG_FUA) != 0) {
        sync_or_stop();
        return;
    }
    unsynced += count;
    if (unsynced < LAZY_BYTES)
        return;
    unsynced = 0;
    /* It tells of a fault only once, so this is the time to end. */
    if (sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE) != 0)
        fail_stop("sync_file_range");
}

static int failstop_pwrite(void *handle, const void *buffer, uint32_t count, uint64_t offset,
                           uint32_t flags)
{
    uint32_t all = count;
    begin(handle);
    for (const char *at = buffer; count > 0;) {
        ssize_t put = pwrite(fd, at, count, (off_t)offset);
        if (put <= 0)
            fail_stop("write");
        at += put;
        count -= (uint32_t)put;
        offset += (uint64_t)put;
    }
    written(all, flags);
    return end();
}

/* False: this file system cannot do it, and nothing was done. */
static bool punch(int mode, uint32_t count, uint64_t offset, uint32_t flags)
{
    if (fallocate(fd, mode | FALLOC_FL_KEEP_SIZE, (off_t)offset, (off_t)count) == 0) {
        written(count, flags);
        return true;
    }
    if (errno != EOPNOTSUPP && errno != ENOSYS)
        fail_stop("fallocate");
    return false;
}

/* A trim that the file system cannot do may be left out: its contents are nobody's business any
 * more. */
static int failstop_trim(void *handle, uint32_t count, uint64_t offset, uint32_t flags)
{
    begin(handle);
    punch(FALLOC_FL_PUNCH_HOLE, count, offset, flags);
    return end();
}

/* EOPNOTSUPP makes nbdkit write the zeros itself; it is the one error that is answered, and not to
 * the client. */
static int failstop_zero(void *handle, uint32_t count, uint64_t offset, uint32_t flags)
{
    begin(handle);
    bool done =
        punch((flags & NBDKIT_FLAG_MAY_TRIM) != 0 ? FALLOC_FL_PUNCH_HOLE : FALLOC_FL_ZERO_RANGE,
              count, offset, flags);
    end();
    if (!done)
        nbdkit_set_error(EOPNOTSUPP);
    return done ? 0 : -1;
}

static int failstop_flush(void *handle, uint32_t flags)
{
    begin(handle);
    sync_or_stop();
    return end();
}

static int yes(void *handle)
{
    return 1;
}

static int failstop_can_fua(void *handle)
{
    return NBDKIT_FUA_NATIVE;
}

static struct nbdkit_plugin plugin = {
    .name = "fettle-failstop",
    .version = FETTLE_VERSION,
    .description = "Fail-stop export of one disk of a replica",
    .load = plugin_outlive_parent,
    .config = failstop_config,
    .config_complete = failstop_config_complete,
    .config_help = "file=PATH history=N replica=UUID generation=N disk=N (all needed) "
                   "control=SOCKET lazy=BOOL file_fd=FD control_fd=FD",
    .magic_config_key = "file",
    .after_fork = failstop_after_fork,
    .open = failstop_open,
    .close = failstop_close,
    .get_size = failstop_get_size,
    .can_write = yes,
    .can_flush = yes,
    .can_trim = yes,
    .can_zero = yes,
    .can_fua = failstop_can_fua,
    .pread = failstop_pread,
    .pwrite = failstop_pwrite,
    .trim = failstop_trim,
    .zero = failstop_zero,
    .flush = failstop_flush,
};

struct nbdkit_plugin *plugin_init(void); /* the macro defines it without a prototype */
NBDKIT_REGISTER_PLUGIN(plugin)
