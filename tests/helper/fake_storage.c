/*
 * Hosts without disks: images, what is kept aside, exports of replicas; see fake_hv.h.
 */
#include "helper/fake_env.h"
#include "helper/fake_hv_private.h"

#define SOURCE_BYTES (1024u * 1024)
#define SHARED_FOLDER "5a5a5a5a-0000-4000-8000-000000000001"

static struct fake_host *host_of(struct storage *storage)
{
    return (struct fake_host *)((char *)storage - G_STRUCT_OFFSET(struct fake_host, storage));
}

void fake_image_free(void *data)
{
    struct fake_image *image = data;
    g_free(image->instance);
    g_free(image->replica);
    g_free(image->blocks);
    g_free(image->stable);
    g_free(image);
}

static void image_settle(struct fake_image *image)
{
    if (image)
        memcpy(image->stable, image->blocks, image->count * sizeof *image->stable);
}

void fake_images_lose(struct fake_host *host)
{
    for (guint i = 0; i < host->images->len; i++) {
        struct fake_image *image = host->images->pdata[i];
        fake_hosts_touch(host->hosts, image->instance);
        for (guint j = 0; j < image->count; j++)
            if (image->blocks[j] != image->stable[j] && g_rand_boolean(host->hosts->random))
                image->blocks[j] = image->stable[j];
        image_settle(image);
    }
}

bool fake_disks_fail(const struct fake_host *host, const struct fake_image *image)
{
    return host->disks_failed && (!image || image->disk_template != TEMPLATE_SHAREDFILE);
}

/* An op that writes to the images of an instance. */
static bool begin_writing(struct fake_host *host, const char *op, const char *instance,
                          const char *replica, bool *ret_late, GError **error)
{
    if (!fake_op_begin(host, op, instance, ret_late, error))
        return false;
    if (!fake_disks_fail(host, fake_image_find(host, instance, replica)))
        return true;
    fettle_set_error(error, STORAGE, "%s: Input/output error", op);
    return false;
}

static void export_free(void *data)
{
    struct fake_export *export = data;
    g_free(export->instance);
    g_free(export->replica);
    export_target_free(export->target);
    g_free(export);
}

struct fake_image *fake_image_find(const struct fake_host *host, const char *instance,
                                   const char *replica)
{
    for (guint i = 0; i < host->images->len; i++) {
        struct fake_image *image = host->images->pdata[i];
        if (strcmp(image->instance, instance) == 0 && strcmp(image->replica, replica) == 0)
            return image;
    }
    for (guint i = 0; !*replica && !host->shared_away && i < host->hosts->shared->len; i++) {
        struct fake_image *image = host->hosts->shared->pdata[i];
        if (strcmp(image->instance, instance) == 0)
            return image;
    }
    return NULL;
}

bool fake_host_has_image(const struct fake_host *host, const char *instance, const char *replica)
{
    return fake_image_find(host, instance, replica) != NULL;
}

bool fake_host_has_disks(const struct fake_host *host, const char *instance, const char *replica)
{
    const struct fake_image *image = fake_image_find(host, instance, replica);
    return image && image->lost == 0;
}

static struct fake_export *export_find(const struct fake_host *host, const char *instance,
                                       const char *replica)
{
    for (guint i = 0; i < host->exports->len; i++) {
        struct fake_export *export = host->exports->pdata[i];
        if (strcmp(export->instance, instance) == 0 && !export->server &&
            (!replica || strcmp(export->replica, replica) == 0))
            return export;
    }
    return NULL;
}

bool fake_host_exports(const struct fake_host *host, const char *instance)
{
    const struct fake_export *export = export_find(host, instance, NULL);
    return export && export->alive;
}

static bool same_exports(const struct export_target *a, const struct export_target *b)
{
    const struct export_disk *first = a->disks->pdata[0];
    const struct export_disk *second = b->disks->pdata[0];
    return first->port == second->port && strcmp(a->replica, b->replica) == 0 &&
           strcmp(a->psk, b->psk) == 0 && strcmp(first->name, second->name) == 0;
}

bool fake_path_passes(const struct fake_host *from, const struct fake_host *to)
{
    const struct fake_hosts *hosts = from->hosts;
    return !hosts->passes || hosts->passes(from->node, to->node, hosts->passes_data);
}

struct fake_export *fake_export_reach(const struct fake_host *from,
                                      const struct export_target *target, bool one_way)
{
    struct fake_hosts *hosts = from->hosts;
    for (guint i = 0; i < hosts->all->len; i++) {
        const struct fake_host *host = hosts->all->pdata[i];
        for (guint j = 0; j < host->exports->len; j++) {
            struct fake_export *export = host->exports->pdata[j];
            if (export->alive && same_exports(export->target, target) &&
                fake_path_passes(from, host) && (one_way || fake_path_passes(host, from)))
                return export;
        }
    }
    return NULL;
}

/* --- ops --- */

static void op_set_events(struct storage *storage, const struct storage_events *events)
{
    host_of(storage)->export_events = *events;
}

static bool op_space(struct storage *storage, struct storage_space *ret_space, GError **error)
{
    const struct fake_host *host = host_of(storage);
    if (!fake_op_begin(host_of(storage), "space", "", NULL, error))
        return false;
    /* The longest look of a report: the more guests, the longer. */
    guint more_ms = 1;
    for (guint i = 0; i < host->guests->len; i++)
        more_ms += !((const struct fake_guest *)host->guests->pdata[i])->waits;
    if (!env_sleep(host->env, more_ms)) {
        fettle_set_error(error, KILLED, "space: the calling process has ended");
        return false;
    }
    guint64 mib = host->disks_failed ? 0 : 1024 * 1024;
    *ret_space = (struct storage_space){mib, host->full && !host->space_lies ? 0 : mib};
    return true;
}

static bool op_trial(struct storage *storage, GError **error)
{
    if (!fake_descriptor_left(host_of(storage)->env, error))
        return false;
    if (!host_of(storage)->disks_failed)
        return true;
    fettle_set_error(error, STORAGE, "disks: Input/output error");
    return false;
}

static bool op_source_size(struct storage *storage, const char *os_type, guint64 *ret_bytes,
                           GError **error)
{
    if (!fake_op_begin(host_of(storage), "source_size", os_type, NULL, error))
        return false;
    if (strchr(os_type, '/')) {
        fettle_set_error(error, WRONG_INPUT, "%s: names lie in the folder of images", os_type);
        return false;
    }
    if (strcmp(os_type, "tick") != 0) {
        fettle_set_error(error, UNKNOWN_ENTITY, "image %s does not exist", os_type);
        return false;
    }
    *ret_bytes = SOURCE_BYTES;
    return true;
}

static void image_remove(const struct fake_host *host, struct fake_image *image)
{
    if (!image)
        return;
    fake_hosts_touch(host->hosts, image->instance);
    if (!g_ptr_array_remove(host->images, image))
        g_ptr_array_remove(host->hosts->shared, image);
}

static bool op_create(struct storage *storage, const char *instance, const char *replica,
                      enum disk_template disk_template, const GPtrArray *disks, const char *os_type,
                      GError **error)
{
    struct fake_host *host = host_of(storage);
    bool late;
    if (!fake_op_begin(host, "create", instance, &late, error))
        return false;
    host->creating = g_strdup(instance);
    host->create_given_up = false;
    bool alive = host->create_ms == 0 || env_pause(host->env, &host->create_pause, host->create_ms);
    g_clear_pointer(&host->creating, g_free);
    if (!alive) {
        fettle_set_error(error, KILLED, "create: the calling process has ended");
        return false;
    }
    if (host->create_given_up) {
        fettle_set_error(error, CANCELED, "given up before the images were whole");
        return false;
    }
    if (host->full || (host->disks_failed && disk_template != TEMPLATE_SHAREDFILE)) {
        fettle_set_error(error, STORAGE, host->full ? "no room" : "create: Input/output error");
        return fake_op_end(host, "create", late, false, error);
    }
    fake_hosts_touch(host->hosts, instance);
    guint count = disks->len * FAKE_BLOCKS;
    struct fake_image *image = fake_image_find(host, instance, replica);
    if (image && image->count > count) {
        /* Only the disks that are named are made anew. */
        memset(image->blocks, 0, count * sizeof(guint64));
        image->lost &= ~((G_GUINT64_CONSTANT(1) << disks->len) - 1);
        image_settle(image);
        return fake_op_end(host, "create", late, true, error);
    }
    image_remove(host, image);
    image = g_new0(struct fake_image, 1);
    image->instance = g_strdup(instance);
    image->replica = g_strdup(replica);
    image->disk_template = disk_template;
    image->count = count;
    image->blocks = g_new0(guint64, image->count + 1);
    image->stable = g_new0(guint64, image->count + 1);
    for (guint i = 0; i < disks->len; i++)
        image->size_mib[i] = ((const struct disk *)disks->pdata[i])->size;
    g_ptr_array_add(disk_template == TEMPLATE_SHAREDFILE ? host->hosts->shared : host->images,
                    image);
    return fake_op_end(host, "create", late, true, error);
}

/* By a guest or an export; a guest that waits keeps its files open, whatever they are called. */
static bool is_used(const struct fake_host *host, const struct fake_image *image, bool renamed)
{
    const struct fake_guest *guest = fake_guest_find(host, image->instance);
    const struct fake_export *export = export_find(host, image->instance, image->replica);
    if (export && export->alive)
        return true;
    return guest && guest->image == image && !(renamed && guest->waits);
}

static void check_unused(const struct fake_host *host, const struct fake_image *image,
                         const char *what)
{
    if (is_used(host, image, strcmp(what, "promote") == 0))
        fake_truth_problem(host->hosts, "%s of images of %s on %s while they are in use", what,
                           image->instance, host->node);
}

static bool op_renew(struct storage *storage, const char *instance, const char *replica,
                     enum disk_template disk_template, const GPtrArray *disks, guint first,
                     GError **error)
{
    struct fake_host *host = host_of(storage);
    bool late;
    if (!begin_writing(host, "renew", instance, replica, &late, error))
        return false;
    struct fake_image *image = fake_image_find(host, instance, replica);
    if (!image) {
        fettle_set_error(error, UNKNOWN_ENTITY, "instance %s has no images here", instance);
        return fake_op_end(host, "renew", late, false, error);
    }
    check_unused(host, image, "renew");
    fake_hosts_touch(host->hosts, instance);
    guint count = disks->len * FAKE_BLOCKS, kept = MIN(first * FAKE_BLOCKS, image->count);
    guint64 *blocks = g_new0(guint64, count + 1);
    memcpy(blocks, image->blocks, MIN(kept, count) * sizeof *blocks);
    g_free(image->blocks);
    g_free(image->stable);
    image->blocks = blocks;
    image->stable = g_memdup2(blocks, (count + 1) * sizeof *blocks);
    image->count = count;
    image->lost &= (G_GUINT64_CONSTANT(1) << first) - 1;
    for (guint i = first; i < LIMIT_DISKS; i++)
        image->size_mib[i] = i < disks->len ? ((const struct disk *)disks->pdata[i])->size : 0;
    return fake_op_end(host, "renew", late, true, error);
}

static bool op_progress(struct storage *storage, const char *instance, guint64 *ret_done,
                        guint64 *ret_total)
{
    const struct fake_host *host = host_of(storage);
    if (!host->creating || strcmp(host->creating, instance) != 0)
        return false;
    *ret_done = 1;
    *ret_total = 2;
    return true;
}

static void op_give_up(struct storage *storage, const char *instance)
{
    struct fake_host *host = host_of(storage);
    if (!host->creating || strcmp(host->creating, instance) != 0)
        return;
    host->create_given_up = true;
    env_pause_end(&host->create_pause);
}

static bool op_grow(struct storage *storage, const char *instance, const char *replica, guint disk,
                    guint64 size_mib, GError **error)
{
    struct fake_host *host = host_of(storage);
    bool late;
    if (!begin_writing(host, "grow", instance, replica, &late, error))
        return false;
    struct fake_image *image = fake_image_find(host, instance, replica);
    bool ok = image && disk * FAKE_BLOCKS < image->count;
    if (!ok) {
        fettle_set_error(error, UNKNOWN_ENTITY, "instance %s has no disk %u here", instance, disk);
    } else if (size_mib < image->size_mib[disk]) { /* never smaller */
        fettle_set_error(error, WRONG_INPUT, "size: disk %u has %" G_GUINT64_FORMAT " MiB already",
                         disk, image->size_mib[disk]);
        ok = false;
    } else {
        image->size_mib[disk] = size_mib;
    }
    return fake_op_end(host, "grow", late, ok, error);
}

guint64 fake_host_disk_mib(const struct fake_host *host, const char *instance, const char *replica,
                           guint disk)
{
    const struct fake_image *image = fake_image_find(host, instance, replica);
    return image && disk < LIMIT_DISKS ? image->size_mib[disk] : 0;
}

static bool has_disk(const struct fake_image *image, guint disk)
{
    return image && image->count >= (disk + 1) * FAKE_BLOCKS && !(image->lost >> disk & 1);
}

static GPtrArray *op_files(struct storage *storage, const char *instance, const char *replica,
                           guint count, GError **error)
{
    struct fake_host *host = host_of(storage);
    if (!fake_op_begin(host, "files", instance, NULL, error))
        return NULL;
    const struct fake_image *image = fake_image_find(host, instance, replica);
    for (guint i = 0; i < count; i++)
        if (!has_disk(image, i)) {
            fettle_set_error(error, UNKNOWN_ENTITY, "instance %s has no disk %u here", instance, i);
            return NULL;
        }
    GPtrArray *files = g_ptr_array_new_with_free_func(g_free);
    for (guint i = 0; i < count; i++)
        g_ptr_array_add(files, g_strdup_printf("/fake/%s.%s.disk%u.raw", instance, replica, i));
    return files;
}

static bool op_sync(struct storage *storage, const char *instance, const char *replica,
                    GError **error)
{
    struct fake_host *host = host_of(storage);
    bool late;
    if (!begin_writing(host, "sync", instance, replica, &late, error))
        return false;
    image_settle(fake_image_find(host, instance, replica));
    return fake_op_end(host, "sync", late, true, error);
}

static bool op_check(struct storage *storage, const char *instance, const char *replica,
                     guint count, GError **error)
{
    struct fake_host *host = host_of(storage);
    if (!fake_op_begin(host, "check", instance, NULL, error))
        return false;
    const struct fake_image *image = fake_image_find(host, instance, replica);
    for (guint i = 0; i < count; i++)
        if (!has_disk(image, i)) {
            fettle_set_error(error, UNKNOWN_ENTITY, "instance %s has no disk %u here", instance, i);
            return false;
        }
    if (!fake_disks_fail(host, image))
        return true;
    fettle_set_error(error, STORAGE, "cannot read the images of %s: Input/output error", instance);
    return false;
}

static void move_aside(struct fake_host *host, struct fake_image *image, guint64 generation)
{
    guint at = 0;
    if (image->disk_template == TEMPLATE_SHAREDFILE)
        return; /* belongs to no node */
    check_unused(host, image, "set_aside");
    fake_hosts_touch(host->hosts, image->instance);
    g_free(image->replica);
    image->replica = g_strdup_printf("%" G_GUINT64_FORMAT, generation);
    if (g_ptr_array_find(host->images, image, &at))
        g_ptr_array_add(host->aside, g_ptr_array_steal_index_fast(host->images, at));
}

static bool op_promote(struct storage *storage, const char *instance, const char *replica,
                       guint64 aside_generation, GError **error)
{
    struct fake_host *host = host_of(storage);
    bool late;
    if (!begin_writing(host, "promote", instance, replica, &late, error))
        return false;
    struct fake_image *image = fake_image_find(host, instance, replica);
    struct fake_image *old = fake_image_find(host, instance, "");
    fake_hosts_touch(host->hosts, instance);
    if (image) {
        check_unused(host, image, "promote");
        if (old)
            move_aside(host, old, aside_generation);
        g_free(image->replica);
        image->replica = g_strdup("");
    } else if (!old) {
        fettle_set_error(error, UNKNOWN_ENTITY, "replica %s has no images here", replica);
        return fake_op_end(host, "promote", late, false, error);
    }
    return fake_op_end(host, "promote", late, true, error);
}

static bool op_demote(struct storage *storage, const char *instance, const char *replica,
                      GError **error)
{
    struct fake_host *host = host_of(storage);
    bool late;
    if (!begin_writing(host, "demote", instance, "", &late, error))
        return false;
    struct fake_image *image = fake_image_find(host, instance, "");
    bool ok = image || fake_image_find(host, instance, replica);
    fake_hosts_touch(host->hosts, instance);
    if (image && image->disk_template != TEMPLATE_SHAREDFILE) {
        check_unused(host, image, "demote");
        image_remove(host, fake_image_find(host, instance, replica));
        g_free(image->replica);
        image->replica = g_strdup(replica);
    } else if (!ok) {
        fettle_set_error(error, UNKNOWN_ENTITY, "instance %s has no images here", instance);
    }
    return fake_op_end(host, "demote", late, ok, error);
}

static bool op_set_aside(struct storage *storage, const char *instance, const char *replica,
                         guint64 generation, GError **error)
{
    struct fake_host *host = host_of(storage);
    bool late;
    if (!begin_writing(host, "set_aside", instance, replica, &late, error))
        return false;
    struct fake_image *image = fake_image_find(host, instance, replica);
    if (image)
        move_aside(host, image, generation);
    return fake_op_end(host, "set_aside", late, true, error);
}

static bool op_remove(struct storage *storage, const char *instance, const char *replica,
                      GError **error)
{
    struct fake_host *host = host_of(storage);
    bool late;
    if (!begin_writing(host, "remove", instance, replica, &late, error))
        return false;
    struct fake_image *image = fake_image_find(host, instance, replica);
    if (image) {
        check_unused(host, image, "remove");
        image_remove(host, image);
    }
    return fake_op_end(host, "remove", late, true, error);
}

static bool op_remove_aside(struct storage *storage, const char *instance, GError **error)
{
    struct fake_host *host = host_of(storage);
    if (!begin_writing(host, "remove_aside", instance, "", NULL, error))
        return false;
    for (guint i = host->aside->len; i > 0; i--)
        if (strcmp(((struct fake_image *)host->aside->pdata[i - 1])->instance, instance) == 0)
            g_ptr_array_remove_index(host->aside, i - 1);
    return true;
}

static GPtrArray *op_list(struct storage *storage, bool aside, GError **error)
{
    struct fake_host *host = host_of(storage);
    if (!fake_op_begin(host, "list", "", NULL, error))
        return NULL;
    const GPtrArray *from = aside ? host->aside : host->images;
    GPtrArray *sets = g_ptr_array_new_with_free_func((GDestroyNotify)image_set_free);
    for (guint i = 0; i < from->len; i++) {
        const struct fake_image *image = from->pdata[i];
        struct image_set *set = image_set_new();
        g_free(set->instance);
        set->instance = g_strdup(image->instance);
        g_free(set->replica);
        set->replica = g_strdup(image->replica);
        set->disks = ((G_GUINT64_CONSTANT(1) << image->count / FAKE_BLOCKS) - 1) & ~image->lost;
        g_ptr_array_add(sets, set);
    }
    return sets;
}

struct export_target *fake_target_new(struct fake_host *host, guint64 history, const char *replica,
                                      guint64 generation, guint disks, const char *address)
{
    struct export_target *target = export_target_new();
    g_free(target->replica);
    g_free(target->address);
    g_free(target->psk);
    target->replica = g_strdup(replica);
    target->address = g_strdup(address);
    target->psk = g_strdup_printf("%032x", ++host->hosts->last_port);
    for (guint i = 0; i < disks; i++) {
        struct export_disk *disk = export_disk_new();
        disk->port = ++host->hosts->last_port;
        g_free(disk->name);
        disk->name = g_strdup_printf("%" G_GUINT64_FORMAT ".%s.%" G_GUINT64_FORMAT ".%u", history,
                                     replica, generation, i);
        g_ptr_array_add(target->disks, disk);
    }
    return target;
}

void fake_image_write(const struct fake_host *host, struct fake_image *image, guint block,
                      guint64 value, bool stable)
{
    fake_hosts_touch(host->hosts, image->instance);
    image->blocks[block] = value;
    if (stable)
        image->stable[block] = value;
}

static void export_end(struct fake_export *export)
{
    if (!export->alive)
        return;
    export->alive = false;
    if (!export->server)
        fake_host_tell(export->host, FAKE_EXPORT_ENDED, export->instance, export->replica,
                       export->generation);
}

bool fake_export_write(struct fake_export *export, guint block, guint64 value)
{
    if (export->host->full || export->host->disks_failed || !export->alive) {
        export_end(export);
        return false;
    }
    fake_image_write(export->host, fake_image_find(export->host, export->instance, export->replica),
                     block, value, !export->lazy);
    return true;
}

static void export_become_durable(struct fake_export *export)
{
    export->lazy = false;
    image_settle(fake_image_find(export->host, export->instance, export->replica));
}

static bool op_export_open(struct storage *storage, guint64 history, const char *instance,
                           const char *replica, guint64 generation, const GPtrArray *disks,
                           const char *address, bool durable, struct export_target **ret_target,
                           GError **error)
{
    struct fake_host *host = host_of(storage);
    bool late;
    if (!begin_writing(host, "export_open", instance, replica, &late, error))
        return false;
    struct fake_export *export = export_find(host, instance, replica);
    for (guint i = 0; i < disks->len; i++)
        if (!has_disk(fake_image_find(host, instance, replica), i)) {
            fettle_set_error(error, UNKNOWN_ENTITY, "disk %u of replica %s has no image here", i,
                             replica);
            return fake_op_end(host, "export_open", late, false, error);
        }
    if (export && (!export->alive || export->generation != generation)) {
        g_ptr_array_remove(host->exports, export);
        export = NULL;
    }
    if (!export) {
        export = g_new0(struct fake_export, 1);
        export->host = host;
        export->instance = g_strdup(instance);
        export->replica = g_strdup(replica);
        export->generation = generation;
        export->alive = true;
        export->lazy = true;
        export->target = fake_target_new(host, history, replica, generation, disks->len, address);
        g_ptr_array_add(host->exports, export);
    }
    if (durable)
        export_become_durable(export);
    struct export_target *target = export_target_copy(export->target);
    if (!fake_op_end(host, "export_open", late, true, error)) {
        export_target_free(target);
        return false;
    }
    *ret_target = target;
    return true;
}

static bool op_export_settle(struct storage *storage, const struct export_target *target,
                             GError **error)
{
    struct fake_host *host = host_of(storage);
    bool late;
    if (!fake_op_begin(host, "export_settle", target->replica, &late, error))
        return false;
    if (host->disks_failed) {
        fettle_set_error(error, STORAGE, "export_settle: Input/output error");
        return fake_op_end(host, "export_settle", late, false, error);
    }
    for (guint i = 0; i < host->exports->len; i++) {
        struct fake_export *export = host->exports->pdata[i];
        if (!export->alive || !same_exports(export->target, target))
            continue;
        if (!host->settle_lies)
            export_become_durable(export);
        return fake_op_end(host, "export_settle", late, true, error);
    }
    fettle_set_error(error, WRONG_STATE, "replica %s is not exported so any more", target->replica);
    return fake_op_end(host, "export_settle", late, false, error);
}

static bool op_export_close(struct storage *storage, const char *instance, const char *replica,
                            GError **error)
{
    struct fake_host *host = host_of(storage);
    bool late;
    if (!fake_op_begin(host, "export_close", instance, &late, error))
        return false;
    struct fake_export *export = export_find(host, instance, replica);
    if (export)
        g_ptr_array_remove(host->exports, export);
    image_settle(fake_image_find(host, instance, replica));
    return fake_op_end(host, "export_close", late, true, error);
}

static void report_free(void *data)
{
    replica_report_free(data);
}

static GPtrArray *op_export_rediscover(struct storage *storage, GError **error)
{
    struct fake_host *host = host_of(storage);
    if (!fake_op_begin(host, "export_rediscover", "", NULL, error))
        return NULL;
    GPtrArray *found = g_ptr_array_new_with_free_func(report_free);
    for (guint i = 0; i < host->exports->len; i++) {
        const struct fake_export *export = host->exports->pdata[i];
        if (export->server)
            continue;
        struct replica_report *line = replica_report_new();
        g_free(line->instance);
        g_free(line->replica);
        line->instance = g_strdup(export->instance);
        line->replica = g_strdup(export->replica);
        line->generation = export->generation;
        line->exported = export->alive;
        g_ptr_array_add(found, line);
    }
    return found;
}

static bool op_probe(struct storage *storage, const struct export_target *target, guint timeout_ms)
{
    struct fake_host *host = host_of(storage);
    if (!fake_op_begin(host, "probe", target->replica, NULL, NULL))
        return false;
    return fake_export_reach(host, target, false) || (env_sleep(host->env, timeout_ms), false);
}

static const char *op_shared(struct storage *storage, struct storage_space *ret_space)
{
    if (!fake_op_comes_back(host_of(storage), "shared"))
        return NULL;
    if (ret_space)
        *ret_space = (struct storage_space){0};
    return host_of(storage)->shared_away ? "" : SHARED_FOLDER;
}

static GPtrArray *op_sources(struct storage *storage)
{
    const struct fake_host *host = host_of(storage);
    if (!fake_op_comes_back(host, "sources") || !host->sources)
        return NULL;
    GPtrArray *list = g_ptr_array_new_with_free_func(g_free);
    g_auto(GStrv) names = g_strsplit(host->sources, " ", -1);
    for (guint i = 0; names[i]; i++)
        g_ptr_array_add(list, g_strdup(names[i]));
    return list;
}

void fake_host_set_sources(struct fake_host *host, const char *names)
{
    host->sources = names;
}

void fake_host_set_shared(struct fake_host *host, bool there)
{
    host->shared_away = !there;
}

static const struct storage_ops storage_ops = {
    .set_events = op_set_events,
    .space = op_space,
    .look_at = fake_room_look_at,
    .trial = op_trial,
    .source_size = op_source_size,
    .create = op_create,
    .renew = op_renew,
    .progress = op_progress,
    .give_up = op_give_up,
    .grow = op_grow,
    .demote = op_demote,
    .files = op_files,
    .sizes = fake_op_sizes,
    .sync = op_sync,
    .check = op_check,
    .promote = op_promote,
    .set_aside = op_set_aside,
    .remove = op_remove,
    .remove_aside = op_remove_aside,
    .list = op_list,
    .strays = fake_storage_strays,
    .shared = op_shared,
    .sources = op_sources,
    .export_open = op_export_open,
    .export_settle = op_export_settle,
    .export_close = op_export_close,
    .export_rediscover = op_export_rediscover,
    .probe = op_probe,
};

void fake_storage_init(struct fake_host *host)
{
    host->storage.ops = &storage_ops;
    host->images = g_ptr_array_new_with_free_func(fake_image_free);
    host->aside = g_ptr_array_new_with_free_func(fake_image_free);
    host->exports = g_ptr_array_new_with_free_func(export_free);
}

void fake_storage_clear(struct fake_host *host)
{
    g_ptr_array_unref(host->exports);
    g_ptr_array_unref(host->aside);
    g_ptr_array_unref(host->images);
}

void fake_host_set_create_ms(struct fake_host *host, guint ms)
{
    host->create_ms = ms;
}

void fake_host_export_fail(struct fake_host *host, const char *instance)
{
    struct fake_export *export = export_find(host, instance, NULL);
    if (export)
        export_end(export);
}

void fake_host_lose_images(struct fake_host *host, const char *instance, const char *replica)
{
    struct fake_image *image = fake_image_find(host, instance, replica);
    const struct fake_guest *guest = fake_guest_find(host, instance);
    g_assert(!image || !guest || guest->image != image); /* an open file stays */
    if (*replica)
        fake_host_export_fail(host, instance);
    image_remove(host, image);
}

void fake_host_lose_disk(struct fake_host *host, const char *instance, const char *replica,
                         guint disk)
{
    struct fake_image *image = fake_image_find(host, instance, replica);
    g_assert_true(has_disk(image, disk));
    image->lost |= G_GUINT64_CONSTANT(1) << disk;
}

void fake_host_set_settle_lies(struct fake_host *host, bool lies)
{
    host->settle_lies = lies;
}
