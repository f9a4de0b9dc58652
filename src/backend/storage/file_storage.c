/*
 * The calls of the file storage but creating and growing (create.c) and exports (export.c).
 */
#include "backend/storage/nbd_probe.h"
#include "backend/storage/storage_private.h"
#include "base/limits.h"
#include "io/files.h"
#include "io/loop.h"
#include "io/trial.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

static struct image_call *call_new(struct storage *storage,
                                   bool (*fn)(struct image_call *call, GError **error),
                                   const char *instance, const char *replica)
{
    return image_call_new(&((struct file_storage *)storage)->images, fn, instance, replica);
}

/* Runs a call that only looks, and whose result is a list. */
static GPtrArray *call_list(struct image_call *call, GError **error)
{
    call = image_call_look(call, error);
    GPtrArray *list = call != NULL ? g_steal_pointer(&call->list) : NULL;
    if (call != NULL)
        image_call_free(call);
    return list;
}

static void file_storage_set_events(struct storage *storage, const struct storage_events *events)
{
    ((struct file_storage *)storage)->events = *events;
}

/* Disks that fail still tell their size; that nothing can be made on them is what counts. */
static bool disks_fail(const char *disks)
{
    int fd = open(disks, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
    if (fd >= 0)
        close(fd);
    return fd < 0 && (errno == EIO || errno == EROFS);
}

static bool do_space(struct image_call *call, GError **error)
{
    const char *disks = call->images.disks;
    struct statvfs space;
    if (statvfs(disks, &space) != 0) {
        fettle_set_error(error, STORAGE, "cannot see the space of %s: %s", disks,
                         g_strerror(errno));
        return false;
    }
    if (!disks_fail(disks))
        call->space = shared_space(&space);
    return true;
}

static bool file_storage_space(struct storage *storage, struct storage_space *ret_space,
                               GError **error)
{
    struct image_call *call = image_call_look(call_new(storage, do_space, "", ""), error);
    if (call == NULL)
        return false;
    *ret_space = call->space;
    image_call_free(call);
    return true;
}

/* Opened, as a server that another node writes to is asked anew only then. */
static bool do_look_at(struct image_call *call, GError **error)
{
    struct statvfs space;
    struct stat status;
    int fd = open(call->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    bool seen = fd >= 0 && fstat(fd, &status) == 0 && fstatvfs(fd, &space) == 0;
    if (seen) {
        call->space = shared_space(&space);
        call->bytes = (guint64)status.st_size;
    } else {
        fettle_set_error(error, STORAGE, "cannot look at %s: %s", call->path, g_strerror(errno));
    }
    if (fd >= 0)
        close(fd);
    return seen;
}

static bool file_storage_look_at(struct storage *storage, const char *path,
                                 struct storage_file *ret_file, GError **error)
{
    struct image_call *call = call_new(storage, do_look_at, "", "");
    call->path = g_strdup(path);
    call = image_call_look(call, error);
    if (call == NULL)
        return false;
    *ret_file = (struct storage_file){call->space, call->bytes};
    image_call_free(call);
    return true;
}

static bool file_storage_trial(struct storage *storage, GError **error)
{
    return trial_write(((struct file_storage *)storage)->images.disks, error);
}

static bool do_source_size(struct image_call *call, GError **error)
{
    g_autoptr(image_source_t) source = image_source_open(&call->images, call->os_type, error);
    if (source == NULL)
        return false;
    call->bytes = image_source_top(source)->bytes;
    return true;
}

static bool file_storage_source_size(struct storage *storage, const char *os_type,
                                     guint64 *ret_bytes, GError **error)
{
    struct image_call *call = call_new(storage, do_source_size, "", "");
    call->os_type = g_strdup(os_type);
    call = image_call_look(call, error);
    if (call == NULL)
        return false;
    *ret_bytes = call->bytes;
    image_call_free(call);
    return true;
}

bool storage_check_not_exported(const struct file_storage *storage, const char *replica,
                                GError **error)
{
    if (replica[0] == '\0' || !export_is_open(storage, replica))
        return true;
    fettle_set_error(error, WRONG_STATE, "replica %s is exported; close its exports first",
                     replica);
    return false;
}

static bool do_find_own(struct image_call *call, GError **error)
{
    call->list =
        images_find(&call->images, call->images.disks, call->instance, call->replica, error);
    return call->list != NULL;
}

bool storage_may_be_shared(struct storage *storage, const char *instance, const char *replica)
{
    if (replica[0] != '\0')
        return false;
    g_autoptr(GPtrArray) own = call_list(call_new(storage, do_find_own, instance, replica), NULL);
    return own == NULL || own->len == 0;
}

/* A report looks at the shared folder every few seconds; it hangs if that takes so long. */
static bool shared_hangs(const struct file_storage *storage)
{
    return storage->shared_ms != 0 && loop_boot_ms() - storage->shared_ms >= LIMIT_SHARED_MS;
}

static bool do_files(struct image_call *call, GError **error)
{
    call->list = images_files(&call->images, call->instance, call->replica, call->count,
                              call->shared, error);
    return call->list != NULL && images_check_headers(call->list, error);
}

GPtrArray *file_storage_files(struct storage *storage, const char *instance, const char *replica,
                              guint count, GError **error)
{
    if (!images_check_names(instance, replica, error))
        return NULL;
    struct image_call *call = call_new(storage, do_files, instance, replica);
    call->count = count;
    call->shared = !shared_hangs((struct file_storage *)storage);
    return call_list(call, error);
}

/* An image that cannot be told from another, or read, is there all the same. */
static void size_of(const struct image_call *call, guint disk, struct sight_disk *ret_disk)
{
    struct stat info;
    g_autoptr(GError) why = NULL;
    g_autofree char *path =
        images_file(&call->images, call->instance, "", disk, call->shared, &why);
    if (path == NULL && !fettle_error_is(why, CORRUPT))
        return;
    if (path != NULL && !g_str_has_suffix(path, ".qcow2")) {
        if (stat(path, &info) == 0)
            ret_disk->bytes = (guint64)info.st_size;
        else
            images_fail("look at", path, &why);
    } else if (path != NULL) {
        images_check_header(path, &ret_disk->bytes, &why);
    }
    g_free(ret_disk->damage);
    ret_disk->damage = text_head(why != NULL ? why->message : "", 256);
}

static bool do_sizes(struct image_call *call, GError **error)
{
    call->list = g_ptr_array_new_with_free_func((GDestroyNotify)sight_disk_free);
    for (guint i = 0; i < call->count; i++) {
        struct sight_disk *disk = sight_disk_new();
        size_of(call, i, disk);
        g_ptr_array_add(call->list, disk);
    }
    return true;
}

static GPtrArray *file_storage_sizes(struct storage *storage, const char *instance, bool shared,
                                     guint count, GError **error)
{
    if (!images_check_names(instance, "", error))
        return NULL;
    struct image_call *call = call_new(storage, do_sizes, instance, "");
    call->count = count;
    call->shared = shared;
    return call_list(call, error);
}

static bool do_sync(struct image_call *call, GError **error)
{
    return images_sync(&call->images, call->instance, call->replica, error);
}

bool file_storage_sync(struct storage *storage, const char *instance, const char *replica,
                       GError **error)
{
    if (!images_check_names(instance, replica, error))
        return false;
    struct image_call *call = call_new(storage, do_sync, instance, replica);
    call->shared = storage_may_be_shared(storage, instance, replica);
    return image_call_finish(call, error);
}

static bool do_check(struct image_call *call, GError **error)
{
    return images_check(&call->images, call->instance, call->replica, call->count, call->shared,
                        error);
}

static bool file_storage_check(struct storage *storage, const char *instance, const char *replica,
                               guint count, GError **error)
{
    if (!images_check_names(instance, replica, error))
        return false;
    struct image_call *call = call_new(storage, do_check, instance, replica);
    call->count = count;
    call->shared = !shared_hangs((struct file_storage *)storage);
    call = image_call_look(call, error);
    if (call == NULL)
        return false;
    image_call_free(call);
    return true;
}

static bool do_promote(struct image_call *call, GError **error)
{
    return images_promote(&call->images, call->instance, call->replica, call->generation, error);
}

static bool file_storage_promote(struct storage *storage, const char *instance, const char *replica,
                                 guint64 aside_generation, GError **error)
{
    if (!images_check_names(instance, replica, error) ||
        !storage_check_not_exported((struct file_storage *)storage, replica, error))
        return false;
    if (replica[0] == '\0') {
        fettle_set_error(error, WRONG_INPUT, "instance %s: a replica must be named to be promoted",
                         instance);
        return false;
    }
    struct image_call *call = call_new(storage, do_promote, instance, replica);
    call->generation = aside_generation;
    return image_call_finish(call, error);
}

static bool do_demote(struct image_call *call, GError **error)
{
    return images_demote(&call->images, call->instance, call->replica, error);
}

static bool file_storage_demote(struct storage *storage, const char *instance, const char *replica,
                                GError **error)
{
    if (!images_check_names(instance, replica, error) ||
        !storage_check_not_exported((struct file_storage *)storage, replica, error))
        return false;
    if (replica[0] == '\0') {
        fettle_set_error(error, WRONG_INPUT,
                         "instance %s: the replica that its images become must be named", instance);
        return false;
    }
    return image_call_finish(call_new(storage, do_demote, instance, replica), error);
}

static bool do_set_aside(struct image_call *call, GError **error)
{
    return images_set_aside(&call->images, call->instance, call->replica, call->generation, error);
}

static bool file_storage_set_aside(struct storage *storage, const char *instance,
                                   const char *replica, guint64 generation, GError **error)
{
    if (!images_check_names(instance, replica, error) ||
        !storage_check_not_exported((struct file_storage *)storage, replica, error))
        return false;
    struct image_call *call = call_new(storage, do_set_aside, instance, replica);
    call->generation = generation;
    return image_call_finish(call, error);
}

static bool do_remove(struct image_call *call, GError **error)
{
    return images_remove(&call->images, call->instance, call->replica, error);
}

static bool file_storage_remove(struct storage *storage, const char *instance, const char *replica,
                                GError **error)
{
    if (!images_check_names(instance, replica, error) ||
        !storage_check_not_exported((struct file_storage *)storage, replica, error))
        return false;
    struct image_call *call = call_new(storage, do_remove, instance, replica);
    call->shared = storage_may_be_shared(storage, instance, replica);
    return image_call_finish(call, error);
}

static bool do_remove_aside(struct image_call *call, GError **error)
{
    return images_remove_aside(&call->images, call->instance, error);
}

static bool file_storage_remove_aside(struct storage *storage, const char *instance, GError **error)
{
    return images_check_names(instance, "", error) &&
           image_call_finish(call_new(storage, do_remove_aside, instance, ""), error);
}

static bool do_list(struct image_call *call, GError **error)
{
    call->list = images_list(&call->images, call->aside, error);
    return call->list != NULL;
}

static GPtrArray *file_storage_list(struct storage *storage, bool aside, GError **error)
{
    struct image_call *call = call_new(storage, do_list, "", "");
    call->aside = aside;
    return call_list(call, error);
}

static bool do_strays(struct image_call *call, GError **error)
{
    call->list = images_strays(&call->images, LIMIT_STRAYS, error);
    return call->list != NULL;
}

static GPtrArray *file_storage_strays(struct storage *storage, GError **error)
{
    return call_list(call_new(storage, do_strays, "", ""), error);
}

static bool do_shared(struct image_call *call, GError **error)
{
    call->path = shared_look(call->images.shared, &call->space);
    return true;
}

static const char *file_storage_shared(struct storage *base, struct storage_space *ret_space)
{
    struct file_storage *storage = (struct file_storage *)base;
    bool first = storage->shared_ms == 0; /* else another look hangs already */
    if (first)
        storage->shared_ms = loop_boot_ms();
    struct image_call *call = image_call_look(call_new(base, do_shared, "", ""), NULL);
    if (first)
        storage->shared_ms = 0;
    if (call == NULL)
        return NULL;
    g_strlcpy(storage->marker, call->path != NULL ? call->path : "", sizeof storage->marker);
    if (ret_space != NULL)
        *ret_space = call->space;
    image_call_free(call);
    return storage->marker;
}

static bool do_sources(struct image_call *call, GError **error)
{
    call->list = image_source_names(call->images.sources);
    return true;
}

static GPtrArray *file_storage_sources(struct storage *storage)
{
    return call_list(call_new(storage, do_sources, "", ""), NULL);
}

static bool file_storage_probe(struct storage *storage, const struct export_target *target,
                               guint timeout_ms)
{
    return nbd_probe(target, timeout_ms);
}

static const struct storage_ops file_storage_ops = {
    .set_events = file_storage_set_events,
    .space = file_storage_space,
    .look_at = file_storage_look_at,
    .trial = file_storage_trial,
    .source_size = file_storage_source_size,
    .create = storage_create,
    .renew = storage_renew,
    .progress = storage_progress,
    .give_up = storage_give_up,
    .grow = storage_grow,
    .demote = file_storage_demote,
    .check = file_storage_check,
    .files = file_storage_files,
    .sizes = file_storage_sizes,
    .sync = file_storage_sync,
    .promote = file_storage_promote,
    .set_aside = file_storage_set_aside,
    .remove = file_storage_remove,
    .remove_aside = file_storage_remove_aside,
    .list = file_storage_list,
    .strays = file_storage_strays,
    .shared = file_storage_shared,
    .sources = file_storage_sources,
    .export_open = export_open,
    .export_settle = export_settle,
    .export_close = export_close,
    .export_rediscover = export_rediscover,
    .probe = file_storage_probe,
};

struct storage *file_storage_new(const struct node_paths *paths, const char *shared_dir,
                                 struct guest_users *users)
{
    struct file_storage *storage = g_new0(struct file_storage, 1);
    storage->base.ops = &file_storage_ops;
    storage->paths = paths;
    storage->images.disks = g_build_filename(paths->var, "disks", NULL);
    storage->images.aside = g_build_filename(paths->var, "disks", "aside", NULL);
    storage->images.shared = shared_dir != NULL && shared_dir[0] != '\0'
                                 ? g_canonicalize_filename(shared_dir, paths->root)
                                 : g_build_filename(paths->var, "shared", NULL);
    storage->images.sources = g_build_filename(paths->var, "images", NULL);
    storage->users = users;
    storage->creating =
        g_hash_table_new_full(g_str_hash, g_str_equal, g_free, (GDestroyNotify)image_plan_unref);
    storage->exports = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, export_free);
    g_queue_init(&storage->opening.waiters);
    files_make_folder(storage->images.disks, 0711, NULL);
    files_make_folder(storage->images.aside, 0700, NULL);
    images_sweep(storage->images.disks, NULL);
    return &storage->base;
}

void file_storage_free(struct storage *base)
{
    struct file_storage *storage = (struct file_storage *)base;
    if (storage == NULL)
        return;
    g_hash_table_unref(storage->exports);
    g_hash_table_unref(storage->creating);
    images_clear(&storage->images);
    g_free(storage);
}
