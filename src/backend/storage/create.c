/*
 * Creating and growing images, as tasks: the steps of image_create.c in worker threads, and
 * qemu-img between them for whatever is qcow2.
 */
#include "backend/storage/image_tool.h"
#include "backend/storage/qcow2.h"
#include "backend/storage/storage_private.h"
#include "base/limits.h"
#include "io/crash.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- creating --- */

static bool do_plan(struct image_call *call, GError **error)
{
    call->plan = image_plan_new(&call->images, call->instance, call->replica, call->disk_template,
                                call->disks, call->disk, call->os_type, error);
    return call->plan != NULL;
}

static bool do_fill(struct image_call *call, GError **error)
{
    return image_plan_fill(&call->images, call->plan, error);
}

static bool do_finish(struct image_call *call, GError **error)
{
    return image_plan_finish(&call->images, call->plan, error);
}

static bool do_undo(struct image_call *call, GError **error)
{
    image_plan_undo(call->plan);
    return true;
}

static bool run_step(struct file_storage *storage, struct image_plan *plan,
                     bool (*step)(struct image_call *call, GError **error), GError **error)
{
    struct image_call *call = image_call_new(&storage->images, step, "", "");
    call->plan = image_plan_ref(plan);
    call->shared = plan->shared;
    return image_call_finish(call, error);
}

/* Each layer is looked through before any of it is used. Clusters that leak (3) are harmless. */
static bool check_source(const struct image_plan *plan, GError **error)
{
    const struct image_source *source = plan->source;
    for (guint i = 0; i < source->layers->len; i++) {
        const struct source_layer *layer = source->layers->pdata[i];
        if (layer->format != FORMAT_QCOW2)
            continue;
        g_autofree char *name = g_path_get_basename(layer->path);
        g_autofree char *doing = g_strdup_printf("image \"%s\" is damaged", name);
        g_autofree char *image = image_source_argument(source, i);
        const char *arguments[] = {"check", "-q", "--output=human", image, NULL};
        const struct tool_run run = {.arguments = arguments,
                                     .doing = doing,
                                     .ok_code = 3,
                                     .canceled = &plan->progress.canceled};
        if (!image_tool_run(&run, error))
            return false;
    }
    return true;
}

static bool make_qcow2(const struct planned_image *image, GError **error)
{
    g_autofree char *doing = g_strdup_printf("cannot create %s", image->temporary);
    g_autofree char *size = g_strdup_printf("%" G_GUINT64_FORMAT "M", image->mib);
    const char *arguments[] = {"create", "-q", "-f", "qcow2", image->temporary, size, NULL};
    const struct tool_run run = {.arguments = arguments, .doing = doing, .writes = true};
    unlink(image->temporary);
    return image_tool_run(&run, error);
}

static void converted(double percent, void *data)
{
    struct copy_progress *progress = data;
    progress->done = (guint64)((double)progress->total * CLAMP(percent, 0, 100) / 100);
}

/* Into the file that is there already in its full size and reads as zeros. */
static bool convert(struct image_plan *plan, GError **error)
{
    const struct planned_image *image = plan->planned->pdata[0];
    g_autofree char *doing =
        g_strdup_printf("cannot copy image \"%s\" to %s", plan->source->name, image->temporary);
    g_autofree char *source = image_source_argument(plan->source, 0);
    const char *arguments[] = {"convert", "-p",
                               "-n",      "--target-is-zero",
                               "-O",      enum_word(&disk_format_words, (int)image->format),
                               source,    image->temporary,
                               NULL};
    const struct tool_run run = {.arguments = arguments,
                                 .doing = doing,
                                 .writes = true,
                                 .progress = converted,
                                 .data = &plan->progress,
                                 .canceled = &plan->progress.canceled};
    return check_source(plan, error) && image_tool_run(&run, error);
}

static bool make_all(struct file_storage *storage, struct image_plan *plan, GError **error)
{
    if (!run_step(storage, plan, do_fill, error))
        return false;
    for (guint i = 0; i < plan->planned->len; i++) {
        const struct planned_image *image = plan->planned->pdata[i];
        if (image->format == FORMAT_QCOW2 && !make_qcow2(image, error))
            return false;
    }
    return (!image_plan_converts(plan) || convert(plan, error)) &&
           run_step(storage, plan, do_finish, error);
}

static struct image_plan *plan_creation(struct file_storage *storage, const char *instance,
                                        const char *replica, enum disk_template disk_template,
                                        const GPtrArray *disks, guint first, const char *os_type,
                                        GError **error)
{
    struct image_call *call = image_call_new(&storage->images, do_plan, instance, replica);
    call->disk = first;
    call->os_type = g_strdup(os_type != NULL ? os_type : "");
    call->disk_template = disk_template;
    call->shared = disk_template == TEMPLATE_SHAREDFILE;
    call->disks = g_ptr_array_new_with_free_func((GDestroyNotify)disk_free);
    for (guint i = 0; disks != NULL && i < disks->len; i++)
        g_ptr_array_add(call->disks, disk_copy(disks->pdata[i]));
    call = image_call_run(call, error);
    if (call == NULL)
        return NULL;
    struct image_plan *plan = image_plan_ref(call->plan);
    image_call_free(call);
    return plan;
}

static bool make_planned(struct file_storage *storage, const char *instance,
                         struct image_plan *plan, GError **error)
{
    g_hash_table_insert(storage->creating, g_strdup(instance), image_plan_ref(plan));
    bool made = make_all(storage, plan, error);
    if (!made)
        run_step(storage, plan, do_undo, NULL);
    if (g_hash_table_lookup(storage->creating, instance) == plan)
        g_hash_table_remove(storage->creating, instance);
    image_plan_unref(plan);
    return made;
}

bool storage_create(struct storage *base, const char *instance, const char *replica,
                    enum disk_template disk_template, const GPtrArray *disks, const char *os_type,
                    GError **error)
{
    struct file_storage *storage = (struct file_storage *)base;
    if (!storage_check_not_exported(storage, replica, error))
        return false;
    struct image_plan *plan =
        plan_creation(storage, instance, replica, disk_template, disks, 0, os_type, error);
    return plan != NULL && make_planned(storage, instance, plan, error);
}

static bool do_trim(struct image_call *call, GError **error)
{
    return images_trim(&call->images, call->instance, call->replica, call->disk, error);
}

static bool trim(struct file_storage *storage, const char *instance, const char *replica,
                 guint first, GError **error)
{
    struct image_call *call = image_call_new(&storage->images, do_trim, instance, replica);
    call->disk = first;
    call->shared = storage_may_be_shared(&storage->base, instance, replica);
    return image_call_finish(call, error);
}

/* What goes is gone before anything is made: its room may be needed. */
bool storage_renew(struct storage *base, const char *instance, const char *replica,
                   enum disk_template disk_template, const GPtrArray *disks, guint first,
                   GError **error)
{
    struct file_storage *storage = (struct file_storage *)base;
    if (!images_check_names(instance, replica, error) ||
        !storage_check_not_exported(storage, replica, error) ||
        !trim(storage, instance, replica, first, error))
        return false;
    if (first >= disks->len)
        return true;
    struct image_plan *plan =
        plan_creation(storage, instance, replica, disk_template, disks, first, "", error);
    return plan != NULL && make_planned(storage, instance, plan, error);
}

bool storage_progress(struct storage *base, const char *instance, guint64 *ret_done,
                      guint64 *ret_total)
{
    const struct image_plan *plan =
        g_hash_table_lookup(((struct file_storage *)base)->creating, instance);
    if (plan == NULL)
        return false;
    *ret_done = __atomic_load_n(&plan->progress.done, __ATOMIC_RELAXED) / MIB(1);
    *ret_total = plan->progress.total / MIB(1);
    return true;
}

void storage_give_up(struct storage *base, const char *instance)
{
    struct image_plan *plan =
        g_hash_table_lookup(((struct file_storage *)base)->creating, instance);
    if (plan != NULL)
        __atomic_store_n(&plan->progress.canceled, 1, __ATOMIC_RELAXED);
}

/* --- growing --- */

static bool fail_smaller(const char *path, guint64 have, guint64 want, GError **error)
{
    fettle_set_error(error, WRONG_INPUT,
                     "image %s has %" G_GUINT64_FORMAT
                     " MiB; it cannot become smaller, %" G_GUINT64_FORMAT " MiB",
                     path, (have + MIB(1) - 1) / MIB(1), want / MIB(1));
    return false;
}

static bool grow_raw(const char *path, guint64 want, GError **error)
{
    struct stat status;
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool ok = fd >= 0 && fstat(fd, &status) == 0;
    if (ok && (guint64)status.st_size > want) {
        close(fd);
        return fail_smaller(path, (guint64)status.st_size, want, error);
    }
    crash_point("images: grow");
    ok = ok && ftruncate(fd, (off_t)want) == 0 && fsync(fd) == 0;
    if (!ok)
        images_fail("grow", path, error);
    if (fd >= 0)
        close(fd);
    return ok;
}

/* A raw image is made larger here, a qcow2 one is only looked at: `bytes` is then what it has. */
static bool do_grow(struct image_call *call, GError **error)
{
    guint64 want = call->bytes;
    call->path = images_file(&call->images, call->instance, call->replica, call->disk, true, error);
    if (call->path == NULL)
        return false;
    if (g_str_has_suffix(call->path, ".raw"))
        return grow_raw(call->path, want, error);
    call->format = FORMAT_QCOW2;
    if (!images_check_header(call->path, &call->bytes, error))
        return false;
    if (call->bytes > want)
        return fail_smaller(call->path, call->bytes, want, error);
    return call->bytes == want ? images_sync_file(call->path, O_RDWR, error)
                               : images_check_unused(call->path, error);
}

static bool do_sync_path(struct image_call *call, GError **error)
{
    return images_sync_file(call->path, O_RDWR, error);
}

static bool resize_qcow2(struct file_storage *storage, const char *path, guint64 bytes,
                         GError **error)
{
    g_autofree char *doing = g_strdup_printf("cannot grow %s", path);
    g_autofree char *size = g_strdup_printf("%" G_GUINT64_FORMAT, bytes);
    const char *arguments[] = {"resize", "-q", "-f", "qcow2", path, size, NULL};
    const struct tool_run run = {.arguments = arguments, .doing = doing, .writes = true};
    if (!image_tool_run(&run, error))
        return false;
    struct image_call *call = image_call_new(&storage->images, do_sync_path, "", "");
    call->path = g_strdup(path);
    return image_call_finish(call, error);
}

bool storage_grow(struct storage *base, const char *instance, const char *replica, guint disk,
                  guint64 size_mib, GError **error)
{
    struct file_storage *storage = (struct file_storage *)base;
    guint64 bytes = size_mib * MIB(1);
    if (!images_check_names(instance, replica, error) ||
        !storage_check_not_exported(storage, replica, error))
        return false;
    if (disk >= LIMIT_DISKS || size_mib == 0 || size_mib > LIMIT_DISK_MIB) {
        fettle_set_error(error, WRONG_INPUT,
                         "disk %u: %" G_GUINT64_FORMAT
                         " MiB: must be disk 0 to %d with 1 to %u MiB",
                         disk, size_mib, LIMIT_DISKS - 1, LIMIT_DISK_MIB);
        return false;
    }
    struct image_call *call = image_call_new(&storage->images, do_grow, instance, replica);
    call->disk = disk;
    call->bytes = bytes;
    call->format = FORMAT_RAW;
    call->shared = storage_may_be_shared(base, instance, replica);
    call = image_call_run(call, error);
    if (call == NULL)
        return false;
    bool done = call->format == FORMAT_RAW || call->bytes == bytes ||
                resize_qcow2(storage, call->path, bytes, error);
    image_call_free(call);
    return done;
}
