/* See dir_backup.h. */
#include "backend/volume/dir_backup.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "backend/storage/image_tool.h"
#include "backend/storage/qcow2.h"
#include "backend/volume/volume_user.h"
#include "base/limits.h"
#include "io/crypto/sum.h"

#define PIECE_BYTES MIB(1)

/* One pass through a whole file. */
struct pass {
    int fd;
    struct sum *sum;
    guint64 bytes;
    int failure; /* errno; 0: it was read to its end */
};

static gpointer go_through(gpointer data)
{
    struct pass *pass = data;
    g_autofree guchar *piece = g_malloc(PIECE_BYTES);
    ssize_t got;
    while ((got = pread(pass->fd, piece, PIECE_BYTES, (off_t)pass->bytes)) > 0) {
        sum_add(pass->sum, piece, (gsize)got);
        pass->bytes += (guint64)got;
    }
    pass->failure = got < 0 ? errno : 0;
    return NULL;
}

char *dir_backup_sum(int fd, guint64 *ret_bytes)
{
    struct pass pass = {.fd = fd, .sum = sum_new(SUM_SHA512)};
    char digits[SUM_TEXT];
    go_through(&pass);
    sum_end(pass.sum, digits);
    *ret_bytes = pass.bytes;
    errno = pass.failure;
    return pass.failure ? NULL : g_strdup(digits);
}

/* Each by a pass of its own, beside each other: whoever has sent the image waits for them, and the
 * second to come by a piece finds it in memory. */
bool dir_image_sums(int fd, guint64 *ret_bytes, char *ret_md5, char *ret_sha512)
{
    struct pass beside = {.fd = fd, .sum = sum_new(SUM_MD5)};
    struct pass pass = {.fd = fd, .sum = sum_new(SUM_SHA512)};
    GThread *thread = g_thread_new("md5", go_through, &beside);
    go_through(&pass);
    g_thread_join(thread);
    sum_end(beside.sum, ret_md5);
    sum_end(pass.sum, ret_sha512);
    *ret_bytes = pass.bytes;
    errno = pass.failure ? pass.failure : beside.failure;
    return !errno;
}

static bool rests_on_nothing(const struct qcow2_header *header, GError **error)
{
    const char *other = header->data_file ? header->data_file : header->backing;
    if (other)
        fettle_set_error(error, CORRUPT, "refers to another file, \"%s\", and is to rest on none",
                         other);
    return !other;
}

bool dir_backup_check(int fd, guint64 bytes, guint64 *ret_size, GError **error)
{
    g_autofree guint8 *start = g_malloc(LIMIT_QCOW2_HEADER_BYTES);
    ssize_t len = pread(fd, start, LIMIT_QCOW2_HEADER_BYTES, 0);
    return dir_backup_check_start(start, (gsize)MAX(len, 0), bytes, ret_size, error);
}

bool dir_backup_check_start(const guint8 *start, gsize len, guint64 bytes, guint64 *ret_size,
                            GError **error)
{
    g_autoptr(GError) local = NULL;
    struct qcow2_header header = {0};
    if (!qcow2_has_magic(start, len)) {
        fettle_set_error(error, CORRUPT, "is no qcow2 file");
        return false;
    }
    if (!qcow2_parse(start, len, &header, &local)) {
        fettle_set_error(error, CORRUPT, "%s", local->message);
        return false;
    }
    bool fits = rests_on_nothing(&header, error);
    if (fits && header.size > bytes) {
        fettle_set_error(error, CORRUPT,
                         "has a disk of %" G_GUINT64_FORMAT " bytes, and not of %" G_GUINT64_FORMAT
                         " at most",
                         header.size, bytes);
        fits = false;
    }
    *ret_size = header.size;
    qcow2_header_clear(&header);
    return fits;
}

static char *file_of(const struct dir_image *image)
{
    if (image->outside)
        return g_strdup(image->outside);
    return g_strdup_printf("{\"driver\":\"file\",\"filename\":\"/proc/self/fd/%d\"}", image->fd);
}

static char *raw_of(const struct dir_image *image, guint64 bytes)
{
    g_autofree char *file = file_of(image);
    g_autofree char *size =
        bytes ? g_strdup_printf("\"size\":%" G_GUINT64_FORMAT ",", bytes) : g_strdup("");
    return g_strdup_printf("json:{\"driver\":\"raw\",%s\"file\":%s}", size, file);
}

static bool hand_on(int fd, bool writes, GError **error)
{
    if (fd < 0 || fcntl(fd, F_SETFD, 0) == 0)
        return fd < 0 || volume_user_lend(fd, writes, error);
    fettle_set_error(error, ENVIRONMENT, "cannot hand it on: %s", g_strerror(errno));
    return false;
}

/* It may open the two by the names of their descriptors alone. -U: a guest's start is not refused
 * for the sake of a copy (SAF-120). */
static void become(const char *source, const char *format, bool compressed,
                   const struct dir_image *target, int source_fd, GError **error)
{
    g_autoptr(GPtrArray) argv = g_ptr_array_new_with_free_func(g_free);
    g_autofree char *file = file_of(target);
    bool pool = target->outside || source_fd < 0;
    volume_user_words(argv, pool ? POOL_USER : VOLUME_USER, getppid());
    image_tool_limits(argv);
    const char *const words[] = {"qemu-img", "convert", "-U", "-O", format};
    for (guint i = 0; i < G_N_ELEMENTS(words); i++)
        g_ptr_array_add(argv, g_strdup(words[i]));
    if (compressed)
        g_ptr_array_add(argv, g_strdup("-c"));
    if (target->outside) {
        g_ptr_array_add(argv, g_strdup("-n"));
        g_ptr_array_add(argv, g_strdup("--target-is-zero"));
    }
    g_ptr_array_add(argv, g_strdup(source));
    g_ptr_array_add(argv, target->outside
                              ? g_strdup_printf("json:{\"driver\":\"raw\",\"file\":%s}", file)
                              : g_strdup_printf("/proc/self/fd/%d", target->fd));
    g_ptr_array_add(argv, NULL);
    if (!hand_on(source_fd, false, error) ||
        !hand_on(target->outside ? -1 : target->fd, true, error))
        return;
    execvp(argv->pdata[0], (char **)argv->pdata);
    fettle_set_error(error, ENVIRONMENT, "cannot start qemu-img: %s", g_strerror(errno));
}

static void make_file_of(const struct dir_image *source, guint64 bytes, const char *format,
                         bool compressed, int target, GError **error)
{
    g_autofree char *from = raw_of(source, bytes);
    become(from, format, compressed, &(struct dir_image){.fd = target},
           source->outside ? -1 : source->fd, error);
}

void dir_backup_pack(const struct dir_image *source, guint64 bytes, int target, GError **error)
{
    make_file_of(source, bytes, "qcow2", true, target, error);
}

void dir_backup_upload(const struct dir_image *source, guint64 bytes, const char *format,
                       int target, GError **error)
{
    make_file_of(source, bytes, format, false, target, error);
}

/* It follows no backing file, whatever the header says by now. */
void dir_backup_unpack(int source, const struct dir_image *target, GError **error)
{
    g_autofree char *file = file_of(&(struct dir_image){.fd = source});
    g_autofree char *from =
        g_strdup_printf("json:{\"driver\":\"qcow2\",\"backing\":null,\"file\":%s}", file);
    become(from, "raw", false, target, source, error);
}

void dir_backup_copy(const struct dir_image *source, guint64 bytes, const struct dir_image *target,
                     GError **error)
{
    g_autofree char *from = raw_of(source, bytes);
    become(from, "raw", false, target, source->outside ? -1 : source->fd, error);
}
