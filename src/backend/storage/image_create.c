/*
 * Planning, filling and naming new images. See image_create.h.
 */
#include "backend/storage/image_create.h"

#include "backend/storage/shared.h"
#include "base/limits.h"
#include "io/crash.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NEW_SUFFIX ".new"

bool images_is_temporary(const char *name)
{
    return g_str_has_suffix(name, ".raw" NEW_SUFFIX) || g_str_has_suffix(name, ".qcow2" NEW_SUFFIX);
}

void images_sweep(const char *folder, const char *instance)
{
    g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
    const char *name;
    while (dir != NULL && (name = g_dir_read_name(dir)) != NULL) {
        g_autofree char *path = g_build_filename(folder, name, NULL);
        if (images_is_temporary(name) && (instance == NULL || g_str_has_prefix(name, instance)))
            unlink(path);
    }
}

/* --- the plan --- */

static void planned_free(void *data)
{
    struct planned_image *image = data;
    g_free(image->path);
    g_free(image->temporary);
    g_free(image);
}

static void plan_clear(void *data)
{
    struct image_plan *plan = data;
    g_free(plan->folder);
    g_ptr_array_unref(plan->planned);
    image_source_free(plan->source);
}

struct image_plan *image_plan_ref(struct image_plan *plan)
{
    return g_atomic_rc_box_acquire(plan);
}

void image_plan_unref(struct image_plan *plan)
{
    if (plan != NULL)
        g_atomic_rc_box_release_full(plan, plan_clear);
}

static bool check_template(const char *instance, const char *replica,
                           enum disk_template disk_template, const GPtrArray *disks, GError **error)
{
    if (disk_template == TEMPLATE_SHAREDFILE && replica[0] != '\0') {
        fettle_set_error(error, WRONG_INPUT,
                         "instance %s: images in a shared folder have no replicas", instance);
        return false;
    }
    for (guint i = 0; i < disks->len; i++)
        if (disk_template == TEMPLATE_MIRROR &&
            ((const struct disk *)disks->pdata[i])->format != FORMAT_RAW) {
            fettle_set_error(error, WRONG_INPUT,
                             "disk %u of instance %s: a mirrored disk must have the format raw, "
                             "not qcow2",
                             i, instance);
            return false;
        }
    return true;
}

/* Images of the instance in the other folder would be found instead of, or beside, the new ones. */
static bool check_elsewhere(const struct images *images, const char *other, const char *instance,
                            const char *replica, GError **error)
{
    g_autoptr(GPtrArray) found = images_find(images, other, instance, replica, error);
    if (found == NULL)
        return false;
    if (found->len == 0)
        return true;
    fettle_set_error(error, ALREADY_EXISTS,
                     "instance %s has images of another template: %s; remove them first", instance,
                     ((const struct disk_image *)found->pdata[0])->path);
    return false;
}

static bool check_folder(const struct images *images, enum disk_template disk_template,
                         const char *instance, const char *replica, const char **ret_folder,
                         GError **error)
{
    *ret_folder = images->disks;
    if (disk_template != TEMPLATE_SHAREDFILE)
        return replica[0] != '\0' ||
               check_elsewhere(images, images->shared, instance, replica, error);
    *ret_folder = images->shared;
    if (g_file_test(images->shared, G_FILE_TEST_IS_DIR))
        return check_elsewhere(images, images->disks, instance, replica, error) &&
               shared_mark(images->shared, error);
    fettle_set_error(error, ENVIRONMENT,
                     "the shared folder %s is missing: mount it on every node, or name another one "
                     "as shared_dir in etc/node.json",
                     images->shared);
    return false;
}

static bool check_fits(const struct image_source *source, guint64 first_mib, GError **error)
{
    guint64 mib = (image_source_top(source)->bytes + MIB(1) - 1) / MIB(1);
    if (mib <= first_mib)
        return true;
    fettle_set_error(error, WRONG_INPUT,
                     "image \"%s\" is %" G_GUINT64_FORMAT " MiB, disk 0 only %" G_GUINT64_FORMAT
                     " MiB",
                     source->name, mib, first_mib);
    return false;
}

static bool check_unused(const struct image_plan *plan, GError **error)
{
    for (guint i = 0; plan->shared && i < plan->planned->len; i++)
        if (!images_check_unused(((struct planned_image *)plan->planned->pdata[i])->path, error))
            return false;
    return true;
}

static void plan_images(struct image_plan *plan, const char *instance, const char *replica,
                        const GPtrArray *disks, guint first)
{
    for (guint i = first; i < disks->len; i++) {
        const struct disk *disk = disks->pdata[i];
        struct planned_image *image = g_new0(struct planned_image, 1);
        image->path = images_path(plan->folder, instance, replica, i, disk->format);
        image->temporary = g_strconcat(image->path, NEW_SUFFIX, NULL);
        image->format = disk->format;
        image->mib = disk->size;
        g_ptr_array_add(plan->planned, image);
    }
}

static bool plan_source(const struct images *images, struct image_plan *plan, const char *os_type,
                        GError **error)
{
    if (os_type[0] == '\0' || plan->planned->len == 0)
        return true;
    plan->source = image_source_open(images, os_type, error);
    if (plan->source == NULL)
        return false;
    plan->progress.total = image_source_top(plan->source)->bytes;
    return check_fits(plan->source, ((struct planned_image *)plan->planned->pdata[0])->mib, error);
}

struct image_plan *image_plan_new(const struct images *images, const char *instance,
                                  const char *replica, enum disk_template disk_template,
                                  const GPtrArray *disks, guint first, const char *os_type,
                                  GError **error)
{
    const char *folder;
    if (!images_check_names(instance, replica, error) ||
        !check_template(instance, replica, disk_template, disks, error) ||
        !check_folder(images, disk_template, instance, replica, &folder, error))
        return NULL;
    struct image_plan *plan = g_atomic_rc_box_new0(struct image_plan);
    plan->folder = g_strdup(folder);
    plan->shared = folder == images->shared;
    plan->planned = g_ptr_array_new_with_free_func(planned_free);
    plan_images(plan, instance, replica, disks, first);
    if (plan_source(images, plan, os_type, error) && check_unused(plan, error))
        return plan;
    image_plan_unref(plan);
    return NULL;
}

bool image_plan_converts(const struct image_plan *plan)
{
    return plan->source != NULL &&
           (image_source_top(plan->source)->format != FORMAT_RAW ||
            ((struct planned_image *)plan->planned->pdata[0])->format != FORMAT_RAW);
}

/* --- giving up --- */

static bool give_up(GError **error)
{
    fettle_set_error(error, CANCELED, "given up before the images were whole; nothing is left");
    return false;
}

bool image_plan_goes_on(const struct image_plan *plan, GError **error)
{
    return !__atomic_load_n(&plan->progress.canceled, __ATOMIC_RELAXED) || give_up(error);
}

/* --- content --- */

/* One run of data. copy_file_range() shares blocks where the file system can; where it cannot copy
 * at all (between file systems of different kinds) bytes are read and written. */
static bool copy_run(int from, int to, off_t offset, off_t end, struct copy_progress *progress)
{
    char buffer[65536];
    bool by_kernel = true;
    while (offset < end) {
        if (__atomic_load_n(&progress->canceled, __ATOMIC_RELAXED)) {
            errno = ECANCELED;
            return false;
        }
        off_t in = offset, out = offset;
        ssize_t done = -1;
        if (by_kernel)
            done = copy_file_range(from, &in, to, &out,
                                   MIN((size_t)(end - offset), LIMIT_IMAGE_COPY_BYTES), 0);
        if (done <= 0 && by_kernel &&
            (done == 0 || errno == EXDEV || errno == EINVAL || errno == EOPNOTSUPP ||
             errno == ENOSYS))
            by_kernel = false;
        if (!by_kernel) {
            done = pread(from, buffer, MIN(sizeof buffer, (size_t)(end - offset)), offset);
            if (done > 0)
                done = pwrite(to, buffer, (size_t)done, offset);
        }
        if (done < 0)
            return false;
        if (done == 0)
            break; /* the source was cut short meanwhile: the rest reads as zeros */
        offset += done;
        __atomic_store_n(&progress->done, (guint64)offset, __ATOMIC_RELAXED);
    }
    return true;
}

/* Holes stay holes. */
static bool copy_data(int from, int to, struct copy_progress *progress)
{
    off_t data = 0;
    while ((data = lseek(from, data, SEEK_DATA)) >= 0) {
        off_t hole = lseek(from, data, SEEK_HOLE);
        if (hole < 0 || !copy_run(from, to, data, hole, progress))
            return false;
        data = hole;
    }
    return errno == ENXIO; /* no more data */
}

static bool copy_source(const char *source, int to, const char *temporary,
                        struct copy_progress *progress, GError **error)
{
    int from = open(source, O_RDONLY | O_CLOEXEC);
    bool copied = from >= 0 && copy_data(from, to, progress);
    int failure = errno;
    if (from >= 0)
        close(from);
    if (copied)
        return true;
    if (failure == ECANCELED)
        return give_up(error);
    errno = failure;
    g_autofree char *what = g_strdup_printf("copy %s to", source);
    return images_fail(what, temporary, error);
}

static bool make_raw(const struct planned_image *image, const char *source,
                     struct copy_progress *progress, GError **error)
{
    crash_point("images: create");
    int to = open(image->temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (to < 0)
        return images_fail("create", image->temporary, error);
    bool made = source == NULL || copy_source(source, to, image->temporary, progress, error);
    crash_point("images: fill");
    if (made && ftruncate(to, (off_t)(image->mib * MIB(1))) != 0)
        made = images_fail("write", image->temporary, error);
    close(to);
    return made;
}

bool image_plan_fill(const struct images *images, struct image_plan *plan, GError **error)
{
    const char *source = plan->source != NULL && !image_plan_converts(plan)
                             ? image_source_top(plan->source)->path
                             : NULL;
    for (guint i = 0; i < plan->planned->len; i++) {
        const struct planned_image *image = plan->planned->pdata[i];
        if (image->format == FORMAT_RAW &&
            !make_raw(image, i == 0 ? source : NULL, &plan->progress, error))
            return false;
    }
    return true;
}

/* --- names --- */

static bool sync_temporary(const char *temporary, GError **error)
{
    int fd = open(temporary, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    crash_point("images: sync");
    bool ok = (fd >= 0 && fsync(fd) == 0 && fchmod(fd, 0600) == 0) ||
              images_fail("write", temporary, error);
    if (fd >= 0)
        close(fd);
    return ok;
}

/* An image of the same disk in the other format: two would be one too many. */
static bool remove_other_format(const struct planned_image *image, GError **error)
{
    enum disk_format other = image->format == FORMAT_RAW ? FORMAT_QCOW2 : FORMAT_RAW;
    const char *dot = strrchr(image->path, '.');
    g_autofree char *path = g_strdup_printf("%.*s.%s", (int)(dot - image->path), image->path,
                                            enum_word(&disk_format_words, (int)other));
    crash_point("images: unlink");
    return unlink(path) == 0 || errno == ENOENT || images_fail("remove", path, error);
}

bool image_plan_finish(const struct images *images, struct image_plan *plan, GError **error)
{
    for (guint i = 0; i < plan->planned->len; i++)
        if (!sync_temporary(((struct planned_image *)plan->planned->pdata[i])->temporary, error))
            return false;
    if (!image_plan_goes_on(plan, error))
        return false;
    for (; plan->renamed < plan->planned->len; plan->renamed++) {
        const struct planned_image *image = plan->planned->pdata[plan->renamed];
        if (!remove_other_format(image, error))
            return false;
        crash_point("images: rename");
        if (rename(image->temporary, image->path) != 0)
            return images_fail("rename", image->temporary, error);
    }
    return images_sync_folder(plan->folder, error);
}

void image_plan_undo(const struct image_plan *plan)
{
    for (guint i = 0; i < plan->planned->len; i++) {
        const struct planned_image *image = plan->planned->pdata[i];
        unlink(image->temporary);
        if (i < plan->renamed)
            unlink(image->path);
    }
}
