/*
 * Names of image files, and what is done with whole sets of them but their creation
 * (image_create.c).
 */
#include "backend/storage/images.h"

#include "io/crash.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool images_check_names(const char *instance, const char *replica, GError **error)
{
    if (g_uuid_string_is_valid(instance) && (replica[0] == '\0' || g_uuid_string_is_valid(replica)))
        return true;
    fettle_set_error(error, WRONG_INPUT,
                     "images of \"%s\", replica \"%s\": both are named by UUIDs", instance,
                     replica);
    return false;
}

char *images_path(const struct images *images, const char *instance, const char *replica,
                  guint disk)
{
    const char *dot = replica[0] != '\0' ? "." : "";
    return g_strdup_printf("%s/%s%s%s.disk%u.raw", images->disks, instance, dot, replica, disk);
}

/* A file name taken apart. */
struct image {
    char *path;
    char *instance;
    char *replica; /* "" */
    guint disk;
};

static void image_free(void *data)
{
    struct image *image = data;
    g_free(image->path);
    g_free(image->instance);
    g_free(image->replica);
    g_free(image);
}

/* INSTANCE[.REPLICA][.gN].diskN.raw; NULL for a file that is no image. */
static struct image *image_parse(const char *folder, const char *name)
{
    g_auto(GStrv) parts = g_strsplit(name, ".", 6);
    guint count = g_strv_length(parts);
    guint at = 1;
    if (count < 3 || !g_uuid_string_is_valid(parts[0]) || strcmp(parts[count - 1], "raw") != 0 ||
        !g_str_has_prefix(parts[count - 2], "disk"))
        return NULL;
    bool replica = g_uuid_string_is_valid(parts[at]);
    if (replica)
        at++;
    if (parts[at][0] == 'g')
        at++;
    if (at != count - 2)
        return NULL;
    struct image *image = g_new0(struct image, 1);
    image->path = g_build_filename(folder, name, NULL);
    image->instance = g_strdup(parts[0]);
    image->replica = g_strdup(replica ? parts[1] : "");
    image->disk = (guint)g_ascii_strtoull(parts[count - 2] + strlen("disk"), NULL, 10);
    return image;
}

/* Images in a folder; `instance` and `replica` NULL: of all. */
static GPtrArray *images_find(const char *folder, const char *instance, const char *replica,
                              GError **error)
{
    g_autoptr(GPtrArray) found = g_ptr_array_new_with_free_func(image_free);
    g_autoptr(GError) failure = NULL;
    g_autoptr(GDir) dir = g_dir_open(folder, 0, &failure);
    const char *name;
    if (dir == NULL) {
        fettle_set_error(error, STORAGE, "%s", failure->message);
        return NULL;
    }
    while ((name = g_dir_read_name(dir)) != NULL) {
        struct image *image = image_parse(folder, name);
        if (image == NULL)
            continue;
        if ((instance == NULL || strcmp(image->instance, instance) == 0) &&
            (replica == NULL || strcmp(image->replica, replica) == 0))
            g_ptr_array_add(found, image);
        else
            image_free(image);
    }
    return g_steal_pointer(&found);
}

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

bool images_sync(const struct images *images, const char *instance, const char *replica,
                 GError **error)
{
    g_autoptr(GPtrArray) set = images_find(images->disks, instance, replica, error);
    if (set == NULL)
        return false;
    for (guint i = 0; i < set->len; i++)
        if (!images_sync_file(((struct image *)set->pdata[i])->path, O_RDWR, error))
            return false;
    return images_sync_folder(images->disks, error);
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
static char *aside_path(const struct images *images, const struct image *image, guint64 generation)
{
    const char *dot = image->replica[0] != '\0' ? "." : "";
    for (guint again = 0;; again++) {
        g_autofree char *repeat = again > 0 ? g_strdup_printf("-%u", again) : g_strdup("");
        char *path =
            g_strdup_printf("%s/%s%s%s.g%" G_GUINT64_FORMAT "%s.disk%u.raw", images->aside,
                            image->instance, dot, image->replica, generation, repeat, image->disk);
        if (!g_file_test(path, G_FILE_TEST_EXISTS))
            return path;
        g_free(path);
    }
}

static bool move_aside(const struct images *images, const struct image *image, guint64 generation,
                       GError **error)
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
    g_autoptr(GPtrArray) set = images_find(images->disks, instance, replica, error);
    if (set == NULL)
        return false;
    for (guint i = 0; i < set->len; i++)
        if (!move_aside(images, set->pdata[i], generation, error))
            return false;
    return sync_folders(images, error);
}

/* Disk by disk, so that a repetition after a death in the middle goes on where it stopped: a disk
 * whose replica is gone has been promoted already, and what bears the primary's name is it. */
static bool promote_disk(const struct images *images, const struct image *from,
                         guint64 aside_generation, GError **error)
{
    struct image to = {
        .path = images_path(images, from->instance, "", from->disk),
        .instance = from->instance,
        .replica = (char *)"",
        .disk = from->disk,
    };
    bool ok = images_sync_file(from->path, O_RDWR, error) &&
              (!g_file_test(to.path, G_FILE_TEST_EXISTS) ||
               move_aside(images, &to, aside_generation, error)) &&
              rename_image(from->path, to.path, error);
    g_free(to.path);
    return ok;
}

bool images_promote(const struct images *images, const char *instance, const char *replica,
                    guint64 aside_generation, GError **error)
{
    g_autoptr(GPtrArray) from = images_find(images->disks, instance, replica, error);
    g_autoptr(GPtrArray) to = from != NULL ? images_find(images->disks, instance, "", error) : NULL;
    if (to == NULL)
        return false;
    if (from->len == 0 && to->len == 0) {
        fettle_set_error(error, UNKNOWN_ENTITY, "replica %s of instance %s has no images in %s",
                         replica, instance, images->disks);
        return false;
    }
    for (guint i = 0; i < from->len; i++)
        if (!promote_disk(images, from->pdata[i], aside_generation, error))
            return false;
    return sync_folders(images, error);
}

static bool remove_set(const GPtrArray *set, const char *folder, GError **error)
{
    for (guint i = 0; i < set->len; i++) {
        const struct image *image = set->pdata[i];
        crash_point("images: unlink");
        if (unlink(image->path) != 0 && errno != ENOENT) {
            fettle_set_error(error, STORAGE, "cannot remove %s: %s", image->path,
                             g_strerror(errno));
            return false;
        }
    }
    return set->len == 0 || images_sync_folder(folder, error);
}

bool images_remove(const struct images *images, const char *instance, const char *replica,
                   GError **error)
{
    g_autoptr(GPtrArray) set = images_find(images->disks, instance, replica, error);
    return set != NULL && remove_set(set, images->disks, error);
}

bool images_remove_aside(const struct images *images, const char *instance, GError **error)
{
    g_autoptr(GPtrArray) set = images_find(images->aside, instance, NULL, error);
    return set != NULL && remove_set(set, images->aside, error);
}

static gint compare_text(gconstpointer a, gconstpointer b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

GPtrArray *images_list(const struct images *images, bool aside, GError **error)
{
    g_autoptr(GPtrArray) all =
        images_find(aside ? images->aside : images->disks, NULL, NULL, error);
    if (all == NULL)
        return NULL;
    GPtrArray *list = g_ptr_array_new_with_free_func(g_free);
    for (guint i = 0; i < all->len; i++) {
        const struct image *image = all->pdata[i];
        g_autofree char *line = g_strdup_printf("%s %s", image->instance, image->replica);
        if (!g_ptr_array_find_with_equal_func(list, line, g_str_equal, NULL))
            g_ptr_array_add(list, g_steal_pointer(&line));
    }
    g_ptr_array_sort(list, compare_text);
    return list;
}
