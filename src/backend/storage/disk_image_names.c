/*
 * Names of image files, and finding them (disk_images.h).
 */
#include "backend/storage/disk_images.h"
#include "backend/storage/image_create.h"
#include "backend/storage/shared.h"
#include "base/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* Bytes that QEMU locks in an image that it has open: one for each permission (block/file-posix.c).
 */
#define QEMU_LOCK_FIRST 100
#define QEMU_LOCK_COUNT 200

bool images_fail(const char *what, const char *path, GError **error)
{
    int code = errno;
    bool full = code == ENOSPC || code == EDQUOT;
    g_set_error(error, FETTLE_ERROR, full ? FETTLE_ERROR_NO_RESOURCES : FETTLE_ERROR_STORAGE,
                "cannot %s %s: %s", what, path, g_strerror(code));
    return false;
}

bool images_check_names(const char *instance, const char *replica, GError **error)
{
    if (g_uuid_string_is_valid(instance) && (replica[0] == '\0' || g_uuid_string_is_valid(replica)))
        return true;
    fettle_set_error(error, WRONG_INPUT,
                     "images of \"%s\", replica \"%s\": both are named by UUIDs", instance,
                     replica);
    return false;
}

char *images_path(const char *folder, const char *instance, const char *replica, guint disk,
                  enum disk_format format)
{
    return g_strdup_printf("%s/%s%s%s.disk%u.%s", folder, instance, replica[0] != '\0' ? "." : "",
                           replica, disk, enum_word(&disk_format_words, (int)format));
}

static void disk_image_free(void *data)
{
    struct disk_image *image = data;
    g_free(image->path);
    g_free(image->instance);
    g_free(image->replica);
    g_free(image);
}

static bool disk_number(const char *part, guint *ret_disk)
{
    guint64 number;
    if (!g_str_has_prefix(part, "disk") ||
        !g_ascii_string_to_unsigned(part + strlen("disk"), 10, 0, LIMIT_DISKS - 1, &number, NULL))
        return false;
    *ret_disk = (guint)number;
    return true;
}

/* INSTANCE[.REPLICA][.gN].diskN.FORMAT; NULL for a file that is no image. */
static struct disk_image *disk_image_parse(const char *folder, const char *name)
{
    g_auto(GStrv) parts = g_strsplit(name, ".", 6);
    guint count = g_strv_length(parts);
    guint at = 1, disk = 0;
    if (count < 3 || !g_uuid_string_is_valid(parts[0]) || !disk_number(parts[count - 2], &disk))
        return NULL;
    int format = enum_parse(&disk_format_words, parts[count - 1]);
    bool replica = g_uuid_string_is_valid(parts[at]);
    if (replica)
        at++;
    const char *aside = parts[at][0] == 'g' ? parts[at++] + 1 : "0";
    if (at != count - 2 || format < 0)
        return NULL;
    struct disk_image *image = g_new0(struct disk_image, 1);
    image->path = g_build_filename(folder, name, NULL);
    image->instance = g_strdup(parts[0]);
    image->replica = g_strdup(replica ? parts[1] : "");
    image->disk = disk;
    image->generation = g_ascii_strtoull(aside, NULL, 10); /* g7-1: kept aside once more */
    image->format = (enum disk_format)format;
    return image;
}

static gint compare_images(gconstpointer a, gconstpointer b)
{
    const struct disk_image *const *one = a, *const *two = b;
    return strcmp((*one)->path, (*two)->path);
}

GPtrArray *images_find(const struct images *images, const char *folder, const char *instance,
                       const char *replica, GError **error)
{
    g_autoptr(GPtrArray) found = g_ptr_array_new_with_free_func(disk_image_free);
    g_autoptr(GError) failure = NULL;
    g_autoptr(GDir) dir = g_dir_open(folder, 0, &failure);
    const char *name;
    if (dir == NULL && folder == images->shared &&
        g_error_matches(failure, G_FILE_ERROR, G_FILE_ERROR_NOENT))
        return g_steal_pointer(&found);
    if (dir == NULL) {
        fettle_set_error(error, STORAGE, "%s", failure->message);
        return NULL;
    }
    while ((name = g_dir_read_name(dir)) != NULL) {
        struct disk_image *image = disk_image_parse(folder, name);
        if (image == NULL)
            continue;
        if ((instance == NULL || strcmp(image->instance, instance) == 0) &&
            (replica == NULL || strcmp(image->replica, replica) == 0))
            g_ptr_array_add(found, image);
        else
            disk_image_free(image);
    }
    g_ptr_array_sort(found, compare_images);
    return g_steal_pointer(&found);
}

/* What stands for an image that is being made, or belongs there though it is none. `.nfs…` is what
 * a server keeps of a file that is open and has no name any more. */
static bool belongs_there(const struct images *images, const char *name)
{
    g_autofree char *aside = g_path_get_basename(images->aside);
    return strcmp(name, aside) == 0 || strcmp(name, "lost+found") == 0 ||
           g_str_has_prefix(name, ".nfs") || images_is_temporary(name);
}

static gint compare_names(gconstpointer a, gconstpointer b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

GPtrArray *images_strays(const struct images *images, guint most, GError **error)
{
    g_autoptr(GPtrArray) found = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GError) failure = NULL;
    g_autoptr(GDir) dir = g_dir_open(images->disks, 0, &failure);
    const char *name;
    if (dir == NULL) {
        fettle_set_error(error, STORAGE, "%s", failure->message);
        return NULL;
    }
    while (found->len <= most && (name = g_dir_read_name(dir)) != NULL) {
        struct disk_image *image = disk_image_parse(images->disks, name);
        if (image == NULL && !belongs_there(images, name))
            g_ptr_array_add(found, g_strdup(name));
        else if (image != NULL)
            disk_image_free(image);
    }
    g_ptr_array_sort(found, compare_names);
    return g_steal_pointer(&found);
}

GPtrArray *images_find_set(const struct images *images, const char *instance, const char *replica,
                           GError **error)
{
    g_autoptr(GPtrArray) own = images_find(images, images->disks, instance, replica, error);
    if (own == NULL || own->len > 0 || replica[0] != '\0')
        return g_steal_pointer(&own);
    return images_find(images, images->shared, instance, replica, error);
}

bool image_is_shared(const struct images *images, const struct disk_image *image)
{
    size_t len = strlen(images->shared);
    return strncmp(image->path, images->shared, len) == 0 && image->path[len] == '/';
}

/* --- the files of a guest --- */

static void say_missing(const struct images *images, const char *instance, guint disk,
                        GError **error)
{
    g_autofree char *marker = shared_read(images->shared);
    bool mounted = marker != NULL || !g_file_test(images->shared, G_FILE_TEST_IS_DIR);
    fettle_set_error(error, UNKNOWN_ENTITY,
                     "disk %u of instance %s has no image in %s, nor in %s%s", disk, instance,
                     images->disks, images->shared,
                     mounted ? ""
                             : ", which lacks the file " SHARED_MARKER
                               " of the folder that all nodes share: mount that there");
}

char *images_file(const struct images *images, const char *instance, const char *replica,
                  guint disk, bool shared, GError **error)
{
    const char *const folders[] = {images->disks, images->shared};
    bool own = replica[0] != '\0'; /* replicas are always a node's own */
    g_autofree char *found = NULL;
    for (guint i = 0; i < (own || !shared ? 1 : G_N_ELEMENTS(folders)); i++)
        for (int format = FORMAT_RAW; format <= FORMAT_QCOW2; format++) {
            g_autofree char *path =
                images_path(folders[i], instance, replica, disk, (enum disk_format)format);
            if (!g_file_test(path, G_FILE_TEST_IS_REGULAR))
                continue;
            if (found != NULL) {
                fettle_set_error(error, CORRUPT,
                                 "disk %u of instance %s has two images, %s and %s: move away the "
                                 "one that is not current",
                                 disk, instance, found, path);
                return NULL;
            }
            found = g_steal_pointer(&path);
        }
    if (found == NULL && own)
        fettle_set_error(error, UNKNOWN_ENTITY,
                         "disk %u of replica %s of instance %s has no image in %s", disk, replica,
                         instance, images->disks);
    else if (found == NULL && !shared)
        fettle_set_error(error, TEMPORARY,
                         "disk %u of instance %s has no image in %s, and the shared folder %s does "
                         "not answer",
                         disk, instance, images->disks, images->shared);
    else if (found == NULL)
        say_missing(images, instance, disk, error);
    return g_steal_pointer(&found);
}

GPtrArray *images_files(const struct images *images, const char *instance, const char *replica,
                        guint count, bool shared, GError **error)
{
    g_autoptr(GPtrArray) files = g_ptr_array_new_with_free_func(g_free);
    for (guint i = 0; i < count; i++) {
        char *path = images_file(images, instance, replica, i, shared, error);
        if (path == NULL)
            return NULL;
        g_ptr_array_add(files, path);
    }
    return g_steal_pointer(&files);
}

bool images_check_unused(const char *path, GError **error)
{
    struct flock lock = {.l_type = F_WRLCK,
                         .l_whence = SEEK_SET,
                         .l_start = QEMU_LOCK_FIRST,
                         .l_len = QEMU_LOCK_COUNT};
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 && errno == ENOENT)
        return true;
    bool asked = fd >= 0 && fcntl(fd, F_OFD_GETLK, &lock) == 0;
    if (!asked)
        images_fail("look at the locks of", path, error);
    else if (lock.l_type != F_UNLCK)
        fettle_set_error(error, WRONG_STATE, "image %s is open in a running guest", path);
    if (fd >= 0)
        close(fd);
    return asked && lock.l_type == F_UNLCK;
}
