/*
 * The fail-stop export of one disk of a replica (SAF-14), as an nbdkit plugin. It either answers
 * that a write is on stable storage, or it ends: an NBD error reply would let the guest go on
 * without the replica, a lost connection makes it wait. nbdkit runs it in a process of its own for
 * each disk.
 *
 *   file=PATH history=N replica=UUID generation=N disk=N
 *
 * A client must ask for the export HISTORY.REPLICA.GENERATION.DISK; every other name is refused.
 */
#define NBDKIT_API_VERSION 2
/* Requests are taken one at a time under our own lock, not nbdkit's: those of a connection that was
 * superseded are held for ever (see hold_superseded), which must not hold up the others. */
#define THREAD_MODEL NBDKIT_THREAD_MODEL_PARALLEL

#include <nbdkit-plugin.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define STUCK_SECONDS 30 /* a disk that answers nothing for so long has failed */
#define EXIT_FAULT 3

static char *file_name, *history, *replica, *generation, *disk;
static char export_name[256];
static int fd = -1;
static int64_t size;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned long newest; /* connection that may write; guarded by lock */

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
    } known[] = {{"file", &file_name},
                 {"history", &history},
                 {"replica", &replica},
                 {"generation", &generation},
                 {"disk", &disk}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(key, known[i].key) == 0)
            return known[i].value;
    return NULL;
}

static int failstop_config(const char *key, const char *value)
{
    char **slot = parameter(key);
    if (slot == NULL) {
        nbdkit_error("unknown parameter %s; known are file, history, replica, generation, disk",
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
    return 0;
}

/* The image is opened once, as root; requests come after nbdkit has become an unprivileged user.
 * The lock covers every byte, so also those that QEMU locks: an image that is exported cannot be
 * run, and the other way round. */
static int failstop_config_complete(void)
{
    if (check_parameters() < 0)
        return -1;
    struct stat status;
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    fd = open(file_name, O_RDWR | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &status) != 0) {
        nbdkit_error("%s: %s", file_name, strerror(errno));
        return -1;
    }
    if (fcntl(fd, F_OFD_SETLK, &whole) != 0) {
        nbdkit_error("%s: is in use by another process", file_name);
        return -1;
    }
    size = status.st_size;
    return 0;
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

static void sync_or_stop(void)
{
    if (fdatasync(fd) != 0)
        fail_stop("fdatasync");
}

static int failstop_pwrite(void *handle, const void *buffer, uint32_t count, uint64_t offset,
                           uint32_t flags)
{
    begin(handle);
    for (const char *at = buffer; count > 0;) {
        ssize_t put = pwrite(fd, at, count, (off_t)offset);
        if (put <= 0)
            fail_stop("write");
        at += put;
        count -= (uint32_t)put;
        offset += (uint64_t)put;
    }
    sync_or_stop(); /* QEMU's mirror passes no flush on, so every write is synced */
    return end();
}

/* False: this file system cannot do it, and nothing was done. */
static bool punch(int mode, uint32_t count, uint64_t offset)
{
    if (fallocate(fd, mode | FALLOC_FL_KEEP_SIZE, (off_t)offset, (off_t)count) == 0) {
        sync_or_stop();
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
    punch(FALLOC_FL_PUNCH_HOLE, count, offset);
    return end();
}

/* EOPNOTSUPP makes nbdkit write the zeros itself; it is the one error that is answered, and not to
 * the client. */
static int failstop_zero(void *handle, uint32_t count, uint64_t offset, uint32_t flags)
{
    begin(handle);
    bool done =
        punch((flags & NBDKIT_FLAG_MAY_TRIM) != 0 ? FALLOC_FL_PUNCH_HOLE : FALLOC_FL_ZERO_RANGE,
              count, offset);
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
    .config = failstop_config,
    .config_complete = failstop_config_complete,
    .config_help = "file=PATH history=N replica=UUID generation=N disk=N (all needed)",
    .magic_config_key = "file",
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
