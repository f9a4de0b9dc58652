/*
 * What is done with whole sets of images but their creation (image_create.c). Names are in
 * disk_image_names.c.
 */
#include "backend/storage/disk_images.h"

#include "backend/storage/image_create.h"
#include "io/crash.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define STAT_BLOCK_BYTES 512u /* of st_blocks, whatever the file system has */

bool images_sync_file(const char *path, int flags, GError **error)
{
    int fd = open(path, flags | O_CLOEXEC);
    crash_point("images: sync");
    bool synced = fd >= 0 && fsync(fd) == 0;
    if (!synced)
        fettle_set_error(error, STORAGE, "cannot sync %s: %s", path, g_strerror(errno));
    if (fd >= 0)
        close(fd);
    return synced;
}

bool images_sync_folder(const char *folder, GError **error)
{
    return images_sync_file(folder, O_RDONLY | O_DIRECTORY, error);
}

/* The folder that a set lies in: of all its images the same. */
static const char *folder_of(const struct images *images, const GPtrArray *set)
{
    return set->len > 0 && image_is_shared(images, set->pdata[0]) ? images->shared : images->disks;
}

bool images_sync(const struct images *images, const char *instance, const char *replica,
                 GError **error)
{
    g_autoptr(GPtrArray) set = images_find_set(images, instance, replica, error);
    if (set == NULL)
        return false;
    for (guint i = 0; i < set->len; i++)
        if (!images_sync_file(((struct disk_image *)set->pdata[i])->path, O_RDWR, error))
            return false;
    return images_sync_folder(folder_of(images, set), error);
}

static bool rename_image(const char *from, const char *to, GError **error)
{
    crash_point("images: rename");
    if (rename(from, to) == 0)
        return true;
    fettle_set_error(error, STORAGE, "cannot rename %s to %s: %s", from, to, g_strerror(errno));
    return false;
}

/* A name aside that is not taken: what is kept aside is never overwritten. */
static char *aside_path(const struct images *images, const struct disk_image *image,
                        guint64 generation)
{
    const char *dot = image->replica[0] != '\0' ? "." : "";
    for (guint again = 0;; again++) {
        g_autofree char *repeat = again > 0 ? g_strdup_printf("-%u", again) : g_strdup("");
        char *path =
            g_strdup_printf("%s/%s%s%s.g%" G_GUINT64_FORMAT "%s.disk%u.%s", images->aside,
                            image->instance, dot, image->replica, generation, repeat, image->disk,
                            enum_word(&disk_format_words, (int)image->format));
        if (!g_file_test(path, G_FILE_TEST_EXISTS))
            return path;
        g_free(path);
    }
}

static bool move_aside(const struct images *images, const struct disk_image *image,
                       guint64 generation, GError **error)
{
    g_autofree char *to = aside_path(images, image, generation);
    return rename_image(image->path, to, error);
}

static bool sync_folders(const struct images *images, GError **error)
{
    return images_sync_folder(images->aside, error) && images_sync_folder(images->disks, error);
}

bool images_set_aside(const struct images *images, const char *instance, const char *replica,
                      guint64 generation, GError **error)
{
    g_autoptr(GPtrArray) set = images_find(images, images->disks, instance, replica, error);
    if (set == NULL)
        return false;
    for (guint i = 0; i < set->len; i++)
        if (!move_aside(images, set->pdata[i], generation, error))
            return false;
    return sync_folders(images, error);
}

/* Of the set, what is an image of that disk. */
static bool move_disk_aside(const struct images *images, const GPtrArray *set, guint disk,
                            guint64 generation, GError **error)
{
    for (guint i = 0; i < set->len; i++) {
        const struct disk_image *image = set->pdata[i];
        if (image->disk == disk && !move_aside(images, image, generation, error))
            return false;
    }
    return true;
}

/* Disk by disk, so that a repetition after a death in the middle goes on where it stopped: a disk
 * whose replica is gone has been promoted already, and what bears the primary's name is it. */
static bool promote_disk(const struct images *images, const struct disk_image *from,
                         const GPtrArray *standing, guint64 aside_generation, GError **error)
{
    g_autofree char *to = images_path(images->disks, from->instance, "", from->disk, from->format);
    return images_sync_file(from->path, O_RDWR, error) &&
           move_disk_aside(images, standing, from->disk, aside_generation, error) &&
           rename_image(from->path, to, error);
}

static bool fail_without_images(const struct images *images, const char *instance,
                                const char *replica, GError **error)
{
    fettle_set_error(error, UNKNOWN_ENTITY, "replica %s of instance %s has no images in %s",
                     replica, instance, images->disks);
    return false;
}

bool images_promote(const struct images *images, const char *instance, const char *replica,
                    guint64 aside_generation, GError **error)
{
    g_autoptr(GPtrArray) from = images_find(images, images->disks, instance, replica, error);
    g_autoptr(GPtrArray) to =
        from != NULL ? images_find(images, images->disks, instance, "", error) : NULL;
    if (to == NULL)
        return false;
    if (from->len == 0 && to->len == 0)
        return fail_without_images(images, instance, replica, error);
    for (guint i = 0; i < from->len; i++)
        if (!promote_disk(images, from->pdata[i], to, aside_generation, error))
            return false;
    return sync_folders(images, error);
}

/* As promotion the other way, and as repeatable: a disk without a primary's image is a replica
 * already. Nothing is overwritten, and nothing moved before that is certain. */
static bool check_demotion(const GPtrArray *from, const GPtrArray *to, GError **error)
{
    for (guint i = 0; i < from->len; i++)
        for (guint j = 0; j < to->len; j++) {
            const struct disk_image *primary = from->pdata[i], *replica = to->pdata[j];
            if (primary->disk != replica->disk)
                continue;
            fettle_set_error(error, WRONG_STATE,
                             "%s cannot become an image of replica %s, which has %s already",
                             primary->path, replica->replica, replica->path);
            return false;
        }
    return true;
}

bool images_demote(const struct images *images, const char *instance, const char *replica,
                   GError **error)
{
    g_autoptr(GPtrArray) from = images_find(images, images->disks, instance, "", error);
    g_autoptr(GPtrArray) to =
        from != NULL ? images_find(images, images->disks, instance, replica, error) : NULL;
    if (to == NULL || !check_demotion(from, to, error))
        return false;
    if (from->len == 0 && to->len == 0)
        return fail_without_images(images, instance, replica, error);
    for (guint i = 0; i < from->len; i++) {
        const struct disk_image *image = from->pdata[i];
        g_autofree char *path =
            images_path(images->disks, instance, replica, image->disk, image->format);
        if (!images_sync_file(image->path, O_RDWR, error) ||
            !rename_image(image->path, path, error))
            return false;
    }
    return images_sync_folder(images->disks, error);
}

static bool remove_set(const GPtrArray *set, const char *folder, GError **error)
{
    for (guint i = 0; i < set->len; i++) {
        const struct disk_image *image = set->pdata[i];
        crash_point("images: unlink");
        if (unlink(image->path) != 0 && errno != ENOENT) {
            fettle_set_error(error, STORAGE, "cannot remove %s: %s", image->path,
                             g_strerror(errno));
            return false;
        }
    }
    return set->len == 0 || images_sync_folder(folder, error);
}

static bool check_set_unused(const struct images *images, const GPtrArray *set, GError **error)
{
    for (guint i = 0; i < set->len; i++) {
        const struct disk_image *image = set->pdata[i];
        if (image_is_shared(images, image) && !images_check_unused(image->path, error))
            return false;
    }
    return true;
}

bool images_trim(const struct images *images, const char *instance, const char *replica,
                 guint first, GError **error)
{
    g_autoptr(GPtrArray) set = images_find_set(images, instance, replica, error);
    if (set == NULL)
        return false;
    for (guint i = set->len; i > 0; i--)
        if (((const struct disk_image *)set->pdata[i - 1])->disk < first)
            g_ptr_array_remove_index(set, i - 1);
    return check_set_unused(images, set, error) && remove_set(set, folder_of(images, set), error);
}

bool images_remove(const struct images *images, const char *instance, const char *replica,
                   GError **error)
{
    g_autoptr(GPtrArray) set = images_find_set(images, instance, replica, error);
    if (set == NULL || !check_set_unused(images, set, error))
        return false;
    images_sweep(images->disks, instance);
    if (replica[0] == '\0' && (set->len == 0 || folder_of(images, set) == images->shared))
        images_sweep(images->shared, instance);
    return remove_set(set, folder_of(images, set), error);
}

bool images_remove_aside(const struct images *images, const char *instance, GError **error)
{
    g_autoptr(GPtrArray) set = images_find(images, images->aside, instance, NULL, error);
    return set != NULL && remove_set(set, images->aside, error);
}

static gint compare_sets(gconstpointer a, gconstpointer b)
{
    const struct image_set *const *one = a, *const *two = b;
    int order = strcmp((*one)->instance, (*two)->instance);
    return order != 0 ? order : strcmp((*one)->replica, (*two)->replica);
}

/* The set that the image is of; a new one if there is none yet. */
static struct image_set *set_of(GPtrArray *list, const struct disk_image *image)
{
    for (guint i = 0; i < list->len; i++) {
        struct image_set *known = list->pdata[i];
        if (strcmp(known->instance, image->instance) == 0 &&
            strcmp(known->replica, image->replica) == 0)
            return known;
    }
    struct image_set *set = image_set_new();
    g_free(set->instance);
    set->instance = g_strdup(image->instance);
    g_free(set->replica);
    set->replica = g_strdup(image->replica);
    g_ptr_array_add(list, set);
    return set;
}

GPtrArray *images_list(const struct images *images, bool aside, GError **error)
{
    g_autoptr(GPtrArray) all =
        images_find(images, aside ? images->aside : images->disks, NULL, NULL, error);
    if (all == NULL)
        return NULL;
    GPtrArray *list = g_ptr_array_new_with_free_func((GDestroyNotify)image_set_free);
    for (guint i = 0; i < all->len; i++) {
        const struct disk_image *image = all->pdata[i];
        struct image_set *set = set_of(list, image);
        struct stat status;
        set->disks |= G_GUINT64_CONSTANT(1) << image->disk;
        set->generation = MAX(set->generation, image->generation);
        if (stat(image->path, &status) == 0)
            set->space += (guint64)status.st_blocks * STAT_BLOCK_BYTES;
    }
    g_ptr_array_sort(list, compare_sets);
    return list;
}
