/*
 * The file storage: images by worker threads (copies and syncs take their time), exports by
 * export.c.
 */
#include "backend/reach.h"
#include "backend/storage/probe.h"
#include "backend/storage/storage_private.h"
#include "base/limits.h"
#include "base/task.h"
#include "io/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* One call on images, done in a worker thread. Owns copies of everything: its task may be killed
 * while it runs. */
struct image_call {
    bool (*fn)(struct image_call *call, GError **error);
    struct images images;
    char *instance;
    char *replica;
    char *os_type;
    GArray *sizes_mib;
    guint64 generation;
    bool aside;

    bool ok;
    GError *error;
    guint64 bytes;
    GPtrArray *list;

    struct promise done;
    bool abandoned;
};

static void images_copy(const struct images *from, struct images *to)
{
    *to = (struct images){
        .disks = g_strdup(from->disks),
        .aside = g_strdup(from->aside),
        .sources = g_strdup(from->sources),
        .uid = from->uid,
    };
}

static void images_clear(struct images *images)
{
    g_free(images->disks);
    g_free(images->aside);
    g_free(images->sources);
}

static struct image_call *call_new(struct storage *storage,
                                   bool (*fn)(struct image_call *call, GError **error),
                                   const char *instance, const char *replica)
{
    struct image_call *call = g_new0(struct image_call, 1);
    call->fn = fn;
    images_copy(&((struct file_storage *)storage)->images, &call->images);
    call->instance = g_strdup(instance);
    call->replica = g_strdup(replica);
    return call;
}

static void call_free(struct image_call *call)
{
    images_clear(&call->images);
    g_free(call->instance);
    g_free(call->replica);
    g_free(call->os_type);
    g_clear_pointer(&call->sizes_mib, g_array_unref);
    g_clear_pointer(&call->list, g_ptr_array_unref);
    g_clear_error(&call->error);
    g_free(call);
}

static void call_done(void *data)
{
    struct image_call *call = data;
    if (call->abandoned)
        call_free(call);
    else
        promise_complete(&call->done);
}

static void call_in_thread(void *data, void *unused)
{
    struct image_call *call = data;
    call->ok = call->fn(call, &call->error);
    loop_post(call_done, call);
}

static GThreadPool *image_threads(void)
{
    static GThreadPool *pool;
    if (pool == NULL)
        pool = g_thread_pool_new(call_in_thread, NULL, LIMIT_IMAGE_THREADS, FALSE, NULL);
    return pool;
}

/* Waits for the call; NULL with the error if it failed, else it is to be freed. */
static struct image_call *call_run(struct image_call *call, GError **error)
{
    g_thread_pool_push(image_threads(), call, NULL);
    if (!promise_wait(&call->done)) {
        call->abandoned = true;
        fettle_set_error(error, KILLED, "the process that waited for a disk has ended");
        return NULL;
    }
    if (call->ok)
        return call;
    g_propagate_error(error, g_steal_pointer(&call->error));
    call_free(call);
    return NULL;
}

static bool call_finish(struct image_call *call, GError **error)
{
    struct image_call *done = call_run(call, error);
    if (done != NULL)
        call_free(done);
    return done != NULL;
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

static bool file_storage_space(struct storage *storage, struct storage_space *ret_space,
                               GError **error)
{
    const char *disks = ((struct file_storage *)storage)->images.disks;
    struct statvfs space;
    if (statvfs(disks, &space) != 0) {
        fettle_set_error(error, STORAGE, "cannot see the space of %s: %s", disks,
                         g_strerror(errno));
        return false;
    }
    if (disks_fail(disks)) {
        *ret_space = (struct storage_space){0};
        return true;
    }
    ret_space->total_mib = (guint64)space.f_blocks * space.f_frsize / MIB(1);
    ret_space->free_mib = (guint64)space.f_bavail * space.f_frsize / MIB(1);
    return true;
}

static bool do_source_size(struct image_call *call, GError **error)
{
    return images_source_size(&call->images, call->os_type, &call->bytes, error);
}

static bool file_storage_source_size(struct storage *storage, const char *os_type,
                                     guint64 *ret_bytes, GError **error)
{
    struct image_call *call = call_new(storage, do_source_size, "", "");
    call->os_type = g_strdup(os_type);
    call = call_run(call, error);
    if (call == NULL)
        return false;
    *ret_bytes = call->bytes;
    call_free(call);
    return true;
}

static bool do_create(struct image_call *call, GError **error)
{
    return images_create(&call->images, call->instance, call->replica, call->sizes_mib,
                         call->os_type, error);
}

/* What is exported or about to be replaced under a live export would diverge without anybody
 * noticing. */
static bool check_not_exported(struct storage *storage, const char *replica, GError **error)
{
    if (replica[0] == '\0' || !export_is_open((struct file_storage *)storage, replica))
        return true;
    fettle_set_error(error, WRONG_STATE, "replica %s is exported; close its exports first",
                     replica);
    return false;
}

static bool file_storage_create(struct storage *storage, const char *instance, const char *replica,
                                enum disk_template disk_template, const GPtrArray *disks,
                                const char *os_type, GError **error)
{
    if (!images_check_names(instance, replica, error) ||
        !check_not_exported(storage, replica, error))
        return false;
    struct image_call *call = call_new(storage, do_create, instance, replica);
    call->os_type = g_strdup(os_type != NULL ? os_type : "");
    call->sizes_mib = g_array_new(FALSE, FALSE, sizeof(guint64));
    for (guint i = 0; disks != NULL && i < disks->len; i++) {
        guint64 size = ((const struct disk *)disks->pdata[i])->size;
        g_array_append_val(call->sizes_mib, size);
    }
    return call_finish(call, error);
}

GPtrArray *file_storage_files(struct storage *storage, const char *instance, const char *replica,
                              guint count, GError **error)
{
    const struct images *images = &((struct file_storage *)storage)->images;
    if (!images_check_names(instance, replica, error))
        return NULL;
    g_autoptr(GPtrArray) files = g_ptr_array_new_with_free_func(g_free);
    for (guint i = 0; i < count; i++) {
        g_autofree char *path = images_path(images, instance, replica, i);
        if (!g_file_test(path, G_FILE_TEST_IS_REGULAR)) {
            fettle_set_error(error, UNKNOWN_ENTITY, "image %s is missing", path);
            return NULL;
        }
        g_ptr_array_add(files, g_steal_pointer(&path));
    }
    return g_steal_pointer(&files);
}

static bool do_sync(struct image_call *call, GError **error)
{
    return images_sync(&call->images, call->instance, call->replica, error);
}

bool file_storage_sync(struct storage *storage, const char *instance, const char *replica,
                       GError **error)
{
    return images_check_names(instance, replica, error) &&
           call_finish(call_new(storage, do_sync, instance, replica), error);
}

static bool do_promote(struct image_call *call, GError **error)
{
    return images_promote(&call->images, call->instance, call->replica, call->generation, error);
}

static bool file_storage_promote(struct storage *storage, const char *instance, const char *replica,
                                 guint64 aside_generation, GError **error)
{
    if (!images_check_names(instance, replica, error) ||
        !check_not_exported(storage, replica, error))
        return false;
    if (replica[0] == '\0') {
        fettle_set_error(error, WRONG_INPUT, "instance %s: a replica must be named to be promoted",
                         instance);
        return false;
    }
    struct image_call *call = call_new(storage, do_promote, instance, replica);
    call->generation = aside_generation;
    return call_finish(call, error);
}

static bool do_set_aside(struct image_call *call, GError **error)
{
    return images_set_aside(&call->images, call->instance, call->replica, call->generation, error);
}

static bool file_storage_set_aside(struct storage *storage, const char *instance,
                                   const char *replica, guint64 generation, GError **error)
{
    if (!images_check_names(instance, replica, error) ||
        !check_not_exported(storage, replica, error))
        return false;
    struct image_call *call = call_new(storage, do_set_aside, instance, replica);
    call->generation = generation;
    return call_finish(call, error);
}

static bool do_remove(struct image_call *call, GError **error)
{
    return images_remove(&call->images, call->instance, call->replica, error);
}

static bool file_storage_remove(struct storage *storage, const char *instance, const char *replica,
                                GError **error)
{
    return images_check_names(instance, replica, error) &&
           check_not_exported(storage, replica, error) &&
           call_finish(call_new(storage, do_remove, instance, replica), error);
}

static bool do_remove_aside(struct image_call *call, GError **error)
{
    return images_remove_aside(&call->images, call->instance, error);
}

static bool file_storage_remove_aside(struct storage *storage, const char *instance, GError **error)
{
    return images_check_names(instance, "", error) &&
           call_finish(call_new(storage, do_remove_aside, instance, ""), error);
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
    call = call_run(call, error);
    GPtrArray *list = call != NULL ? g_steal_pointer(&call->list) : NULL;
    if (call != NULL)
        call_free(call);
    return list;
}

static bool file_storage_probe(struct storage *storage, const struct export_target *target,
                               guint timeout_ms)
{
    return nbd_probe(target, timeout_ms);
}

static const struct storage_ops file_storage_ops = {
    .set_events = file_storage_set_events,
    .space = file_storage_space,
    .source_size = file_storage_source_size,
    .create = file_storage_create,
    .files = file_storage_files,
    .sync = file_storage_sync,
    .promote = file_storage_promote,
    .set_aside = file_storage_set_aside,
    .remove = file_storage_remove,
    .remove_aside = file_storage_remove_aside,
    .list = file_storage_list,
    .export_open = export_open,
    .export_close = export_close,
    .export_rediscover = export_rediscover,
    .probe = file_storage_probe,
};

struct storage *file_storage_new(const struct node_paths *paths, guint32 qemu_uid)
{
    struct file_storage *storage = g_new0(struct file_storage, 1);
    storage->base.ops = &file_storage_ops;
    storage->paths = paths;
    storage->images.disks = g_build_filename(paths->var, "disks", NULL);
    storage->images.aside = g_build_filename(paths->var, "disks", "aside", NULL);
    storage->images.sources = g_build_filename(paths->var, "images", NULL);
    storage->images.uid = reach_effective_uid(qemu_uid);
    storage->exports = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, export_free);
    g_queue_init(&storage->opening.waiters);
    g_mkdir_with_parents(storage->images.aside, 0755);
    images_sweep(&storage->images);
    return &storage->base;
}

void file_storage_free(struct storage *base)
{
    struct file_storage *storage = (struct file_storage *)base;
    if (storage == NULL)
        return;
    g_hash_table_unref(storage->exports);
    images_clear(&storage->images);
    g_free(storage);
}
