/* See rbd_export.h. */
#include "backend/volume/rbd_export.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/volume/dir_backup.h"
#include "backend/volume/dir_transfer.h"
#include "backend/volume/volume_user.h"
#include "base/limits.h"
#include "io/crypto/sum.h"
#include "proto/records.h"

#define PIECE_BYTES MIB(1)

struct reading {
    GPid pid;
    int fd;
    guint8 *start; /* of the image: as much as a header can be */
    gsize length;
    guint64 most, bytes; /* of which it counts so many, and has so far */
    struct sum *md5, *sha512;
};

static void end_with_us(gpointer unused)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
}

/* It reads its configuration from a descriptor of ours. */
static bool begin(struct reading *reading, char **command, GError **error)
{
    g_autoptr(GError) local = NULL;
    g_autoptr(GPtrArray) argv = g_ptr_array_new_with_free_func(g_free);
    volume_user_words(argv, POOL_USER, getpid());
    while (*command)
        g_ptr_array_add(argv, g_strdup(*command++));
    g_ptr_array_add(argv, NULL);
    if (g_spawn_async_with_pipes(NULL, (char **)argv->pdata, NULL,
                                 G_SPAWN_SEARCH_PATH | G_SPAWN_DO_NOT_REAP_CHILD |
                                     G_SPAWN_LEAVE_DESCRIPTORS_OPEN | G_SPAWN_STDERR_TO_DEV_NULL,
                                 end_with_us, NULL, &reading->pid, NULL, &reading->fd, NULL,
                                 &local))
        return true;
    fettle_set_error(error, ENVIRONMENT, "cannot be read: %s", local->message);
    return false;
}

static void take(struct reading *reading, const guint8 *piece, gsize length)
{
    length = (gsize)MIN(length, reading->most - reading->bytes);
    gsize more = MIN(length, LIMIT_QCOW2_HEADER_BYTES - reading->length);
    memcpy(reading->start + reading->length, piece, more);
    reading->length += more;
    reading->bytes += length;
    sum_add(reading->md5, piece, length);
    sum_add(reading->sha512, piece, length);
}

/* All of it, or as much as its header may be. */
static bool read_all(struct reading *reading, bool header_only, GError **error)
{
    g_autofree guint8 *piece = g_malloc(PIECE_BYTES);
    ssize_t got = 1;
    int status = 0;
    while (got > 0 && !(header_only && reading->length == LIMIT_QCOW2_HEADER_BYTES)) {
        got = read(reading->fd, piece, PIECE_BYTES);
        if (got < 0 && errno == EINTR)
            got = 1;
        else if (got > 0)
            take(reading, piece, (gsize)got);
    }
    if (got > 0)
        kill(reading->pid, SIGKILL);
    close(reading->fd);
    while (waitpid(reading->pid, &status, 0) < 0 && errno == EINTR)
        continue;
    if (got > 0 || (got == 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0))
        return true;
    fettle_set_error(error, STORAGE, "cannot be read: its export ended with %d",
                     WIFEXITED(status) ? WEXITSTATUS(status) : -1);
    return false;
}

/* What a raw one begins with decides nothing. */
static bool disk_of(const struct reading *reading, const char *format, guint64 *ret_size,
                    GError **error)
{
    guint64 most = (guint64)LIMIT_VOLUME_GIB * 1024 * MIB(1);
    *ret_size = reading->bytes;
    if (strcmp(format, enum_word(&disk_format_words, FORMAT_RAW)) != 0 &&
        !dir_backup_check_start(reading->start, reading->length, most, ret_size, error))
        return false;
    if (*ret_size > 0 && *ret_size <= most)
        return true;
    fettle_set_error(error, CORRUPT, "has a disk of %" PRIu64 " bytes", (uint64_t)*ret_size);
    return false;
}

static bool read_through(bool header_only, const char *format, guint64 most, char **command,
                         GError **error)
{
    struct reading reading = {.most = most,
                              .start = g_malloc0(LIMIT_QCOW2_HEADER_BYTES),
                              .md5 = sum_new(SUM_MD5),
                              .sha512 = sum_new(SUM_SHA512)};
    char md5[SUM_TEXT], sha512[SUM_TEXT];
    guint64 disk;
    bool ok = begin(&reading, command, error) && read_all(&reading, header_only, error) &&
              disk_of(&reading, format, &disk, error);
    sum_end(reading.md5, md5);
    sum_end(reading.sha512, sha512);
    if (ok && header_only)
        printf("%" PRIu64 "\n", (uint64_t)disk);
    else if (ok)
        printf("%" PRIu64 " %" PRIu64 " %s %s\n", (uint64_t)reading.bytes, (uint64_t)disk, md5,
               sha512);
    g_free(reading.start);
    return ok;
}

int rbd_export_main(int argc, char **argv)
{
    g_autoptr(GError) error = NULL;
    bool ok = false;
    if (argc < 5)
        return 2;
    const char *verb = argv[2];
    if (strcmp(verb, "measure") == 0 || strcmp(verb, "header") == 0)
        ok = read_through(strcmp(verb, "header") == 0, argv[3], g_ascii_strtoull(argv[4], NULL, 10),
                          argv + 5, &error);
    else
        dir_transfer_serve_file(argv[3], strcmp(verb, "receive") == 0, argv[4], &error);
    if (!ok)
        printf("%s\n%s\n", fettle_error_name(error), error->message);
    return fflush(stdout) == 0 && ok ? 0 : 1;
}
