/* Back ends in memory; see fake_volumes.h. */
#include "helper/fake_volumes.h"

#include <string.h>

#define FULL_MIB (1024u * 1024)
#define LOOK_MS 100
#define GIB (1024 * MIB(1))

struct thing {
    char *backend;
    struct volume_data data;
    guint64 content;
    bool locked;
};

struct fake_volumes {
    GPtrArray *things;  /* struct thing */
    GPtrArray *drivers; /* struct fake_driver */
    GHashTable *marked; /* UUID of a back end -> of its cluster */
    GHashTable *hanging;
    GHashTable *unmounted; /* nodes */
    GPtrArray *calls;
    GHashTable *spaces; /* UUID of a back end -> GiB (guint64) */
    char *failing;      /* op; NULL: any */
    enum fettle_error code;
    bool late;
    guint failures, halves, delay_ms;
    guint64 writes;
    GPtrArray *transfers; /* struct fake_transfer, that have not been ended */
    fake_volumes_step step;
    void *step_data;
    fake_volumes_goes goes;
    void *goes_data;
};

struct fake_driver {
    struct volume_driver driver; /* first */
    struct fake_volumes *volumes;
    const struct env *env;
    GHashTable *given_up; /* UUID of a back end -> calls that were given up, and hang */
};

struct fake_transfer {
    struct volume_transfer seen; /* first */
    struct fake_driver *fake;
    enum volume_transfer_state state;
};

static void thing_free(void *data)
{
    struct thing *thing = data;
    g_free(thing->backend);
    g_free(thing->data.name);
    g_free(thing);
}

static void driver_free(void *data)
{
    struct fake_driver *driver = data;
    g_hash_table_unref(driver->given_up);
    g_free(driver);
}

struct fake_volumes *fake_volumes_new(void)
{
    struct fake_volumes *volumes = g_new0(struct fake_volumes, 1);
    volumes->things = g_ptr_array_new_with_free_func(thing_free);
    volumes->drivers = g_ptr_array_new_with_free_func(driver_free);
    volumes->marked = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    volumes->hanging = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    volumes->unmounted = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    volumes->calls = g_ptr_array_new_with_free_func(g_free);
    volumes->transfers = g_ptr_array_new();
    volumes->spaces = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    return volumes;
}

void fake_volumes_free(struct fake_volumes *volumes)
{
    g_ptr_array_unref(volumes->things);
    g_ptr_array_unref(volumes->drivers);
    g_hash_table_unref(volumes->marked);
    g_hash_table_unref(volumes->hanging);
    g_hash_table_unref(volumes->unmounted);
    g_ptr_array_unref(volumes->calls);
    g_ptr_array_unref(volumes->transfers);
    g_hash_table_unref(volumes->spaces);
    g_free(volumes->failing);
    g_free(volumes);
}

/* --- what goes wrong --- */

void fake_volumes_fail(struct fake_volumes *volumes, const char *op, enum fettle_error code,
                       bool late, guint count)
{
    g_free(volumes->failing);
    volumes->failing = g_strdup(op);
    volumes->code = code;
    volumes->late = late;
    volumes->failures = count;
}

void fake_volumes_make_half(struct fake_volumes *volumes, guint count)
{
    volumes->halves = count;
}

static void put_word(GHashTable *set, const char *word, bool in)
{
    if (in)
        g_hash_table_add(set, g_strdup(word));
    else
        g_hash_table_remove(set, word);
}

void fake_volumes_hang(struct fake_volumes *volumes, const char *backend, bool hang)
{
    put_word(volumes->hanging, backend, hang);
    for (guint i = 0; !hang && i < volumes->drivers->len; i++)
        g_hash_table_remove(((struct fake_driver *)volumes->drivers->pdata[i])->given_up, backend);
}

void fake_volumes_delay(struct fake_volumes *volumes, guint ms)
{
    volumes->delay_ms = ms;
}

void fake_volumes_unmount(struct fake_volumes *volumes, const char *node, bool away)
{
    put_word(volumes->unmounted, node, away);
}

void fake_volumes_set_step(struct fake_volumes *volumes, fake_volumes_step step, void *data)
{
    volumes->step = step;
    volumes->step_data = data;
}

void fake_volumes_set_goes(struct fake_volumes *volumes, fake_volumes_goes goes, void *data)
{
    volumes->goes = goes;
    volumes->goes_data = data;
}

/* --- what is there --- */

static struct thing *find(const struct fake_volumes *volumes, const char *name)
{
    for (guint i = 0; i < volumes->things->len; i++) {
        struct thing *thing = volumes->things->pdata[i];
        if (strcmp(thing->data.name, name) == 0)
            return thing;
    }
    return NULL;
}

void fake_volumes_lock(struct fake_volumes *volumes, const char *name, bool locked)
{
    find(volumes, name)->locked = locked;
}

bool fake_volumes_locked(const struct fake_volumes *volumes, const char *name)
{
    const struct thing *thing = find(volumes, name);
    return thing && thing->locked;
}

void fake_volumes_mark(struct fake_volumes *volumes, const char *backend, const char *cluster)
{
    g_hash_table_insert(volumes->marked, g_strdup(backend), g_strdup(cluster));
}

void fake_volumes_put_as(struct fake_volumes *volumes, const char *backend, enum resource_type type,
                         const char *name, guint64 bytes, bool whole)
{
    struct thing *thing = g_new0(struct thing, 1);
    *thing = (struct thing){.backend = g_strdup(backend),
                            .data = {type, g_strdup(name), bytes, whole, false}};
    g_ptr_array_add(volumes->things, thing);
}

void fake_volumes_put(struct fake_volumes *volumes, const char *backend, const char *name,
                      guint64 bytes, bool whole)
{
    struct thing *there = find(volumes, name);
    if (there)
        there->data.bytes = bytes;
    else
        fake_volumes_put_as(volumes, backend, RESOURCE_VOLUME, name, bytes, whole);
}

bool fake_volumes_has(const struct fake_volumes *volumes, const char *name)
{
    return find(volumes, name) != NULL;
}

guint64 fake_volumes_bytes(const struct fake_volumes *volumes, const char *name)
{
    const struct thing *thing = find(volumes, name);
    return thing ? thing->data.bytes : 0;
}

bool fake_volumes_is_on(const struct fake_volumes *volumes, const char *name, const char *backend)
{
    const struct thing *thing = find(volumes, name);
    return thing && strcmp(thing->backend, backend) == 0;
}

bool fake_volumes_whole(const struct fake_volumes *volumes, const char *name)
{
    const struct thing *thing = find(volumes, name);
    return thing && thing->data.whole;
}

guint64 fake_volumes_content(const struct fake_volumes *volumes, const char *name)
{
    const struct thing *thing = find(volumes, name);
    return thing ? thing->content : 0;
}

void fake_volumes_write(struct fake_volumes *volumes, const char *name)
{
    struct thing *thing = find(volumes, name);
    if (thing)
        thing->content = ++volumes->writes;
}

void fake_volumes_set_content(struct fake_volumes *volumes, const char *name, guint64 content)
{
    find(volumes, name)->content = content;
}

guint fake_volumes_count(const struct fake_volumes *volumes)
{
    return volumes->things->len;
}

void fake_volumes_set_space(struct fake_volumes *volumes, const char *backend, guint64 gib)
{
    g_hash_table_replace(volumes->spaces, g_strdup(backend), g_memdup2(&gib, sizeof gib));
}

const GPtrArray *fake_volumes_calls(const struct fake_volumes *volumes)
{
    return volumes->calls;
}

guint fake_volumes_count_calls(const struct fake_volumes *volumes, const char *op)
{
    guint count = 0;
    g_autofree char *part = g_strdup_printf(" %s ", op);
    for (guint i = 0; i < volumes->calls->len; i++)
        count += strstr(volumes->calls->pdata[i], part) != NULL;
    return count;
}

/* --- the driver --- */

static struct fake_driver *fake_of(struct volume_driver *driver)
{
    return (struct fake_driver *)driver;
}

static bool ended(GError **error)
{
    return fettle_set_ended(error, "the process that waited for a back end");
}

static guint given_up(const struct fake_driver *fake, const char *backend)
{
    return GPOINTER_TO_UINT(g_hash_table_lookup(fake->given_up, backend));
}

static void give_up(struct fake_driver *fake, const struct backend *backend)
{
    g_hash_table_insert(fake->given_up, g_strdup(backend->uuid),
                        GUINT_TO_POINTER(given_up(fake, backend->uuid) + 1));
}

/* Whichever of the two hangs (`from` NULL: there is one), it counts at both. */
static bool await(struct fake_driver *fake, const struct backend *backend,
                  const struct backend *from, GError **error)
{
    struct fake_volumes *volumes = fake->volumes;
    if (volumes->delay_ms > 0 && !env_sleep(fake->env, volumes->delay_ms))
        return ended(error);
    for (guint waited = 0; g_hash_table_contains(volumes->hanging, backend->uuid) ||
                           (from && g_hash_table_contains(volumes->hanging, from->uuid));
         waited += LOOK_MS) {
        if (waited >= FAKE_VOLUME_LIMIT_MS) {
            give_up(fake, backend);
            if (from)
                give_up(fake, from);
            fettle_set_error(error, TIMEOUT, "%s: no answer within %u s", backend->name,
                             FAKE_VOLUME_LIMIT_MS / 1000);
            return false;
        }
        if (!env_sleep(fake->env, LOOK_MS))
            return ended(error);
    }
    g_hash_table_remove(fake->given_up, backend->uuid);
    return !task_killed() || ended(error);
}

static bool step(struct fake_driver *fake, GError **error)
{
    if (fake->volumes->step)
        fake->volumes->step(fake->env, fake->volumes->step_data);
    return !task_killed() || ended(error);
}

static bool fails(struct fake_volumes *volumes, const char *op, bool late, GError **error)
{
    if (volumes->failures == 0 || volumes->late != late ||
        (volumes->failing && strcmp(volumes->failing, op) != 0))
        return false;
    volumes->failures--;
    g_set_error(error, FETTLE_ERROR, (gint)volumes->code, "the back end fails");
    return true;
}

static bool is_ours(struct fake_driver *fake, const struct backend *backend, GError **error)
{
    struct fake_volumes *volumes = fake->volumes;
    if (!g_hash_table_contains(volumes->unmounted, fake->env->node_uuid) &&
        g_hash_table_contains(volumes->marked, backend->uuid))
        return true;
    fettle_set_error(error, ENVIRONMENT, "%s: %s has no marker of back end %s; is it mounted?",
                     backend->name, backend->path, backend->uuid);
    return false;
}

/* `from`: what it reads, which may be the same; NULL: nothing. */
static bool begin_from(struct fake_driver *fake, const char *op, const struct backend *from,
                       const struct backend *backend, const char *name, GError **error)
{
    bool elsewhere = from && strcmp(from->uuid, backend->uuid) != 0;
    g_ptr_array_add(fake->volumes->calls,
                    g_strdup_printf("%s %s %s", fake->env->node_uuid, op, name));
    return step(fake, error) && await(fake, backend, elsewhere ? from : NULL, error) &&
           !fails(fake->volumes, op, false, error) &&
           (strcmp(op, "open") == 0 || is_ours(fake, backend, error)) &&
           (!elsewhere || is_ours(fake, from, error));
}

static bool begin(struct fake_driver *fake, const char *op, const struct backend *backend,
                  const char *name, GError **error)
{
    return begin_from(fake, op, NULL, backend, name, error);
}

static bool end(struct fake_driver *fake, const char *op, GError **error)
{
    return step(fake, error) && !fails(fake->volumes, op, true, error);
}

static bool fake_open(struct volume_driver *driver, const struct backend *backend,
                      const struct cluster *cluster, bool make, GError **error)
{
    struct fake_driver *fake = fake_of(driver);
    GHashTable *marked = fake->volumes->marked;
    if (!begin(fake, "open", backend, "", error))
        return false;
    if (make && !g_hash_table_contains(fake->volumes->unmounted, fake->env->node_uuid) &&
        !g_hash_table_contains(marked, backend->uuid))
        fake_volumes_mark(fake->volumes, backend->uuid, cluster->uuid);
    if (!is_ours(fake, backend, error))
        return false;
    const char *owner = g_hash_table_lookup(marked, backend->uuid);
    if (strcmp(owner, cluster->uuid) != 0) {
        fettle_set_error(error, UNSAFE, "%s: %s belongs to back end %s of cluster %s",
                         backend->name, backend->path, backend->uuid, owner);
        return false;
    }
    return end(fake, "open", error);
}

static bool fake_space(struct volume_driver *driver, const struct backend *backend,
                       guint64 *ret_free, guint64 *ret_total, GError **error)
{
    struct fake_driver *fake = fake_of(driver);
    const guint64 *gib = g_hash_table_lookup(fake->volumes->spaces, backend->uuid);
    *ret_free = *ret_total = gib ? *gib * 1024 : FULL_MIB;
    return begin(fake, "space", backend, "", error) && end(fake, "space", error);
}

static bool make(struct fake_driver *fake, const char *op, const struct backend *backend,
                 enum resource_type type, const char *name, guint64 bytes, GError **error)
{
    struct fake_volumes *volumes = fake->volumes;
    if (find(volumes, name)) {
        fettle_set_error(error, ALREADY_EXISTS, "%s: %s is there already", backend->name, name);
        return false;
    }
    bool half = volumes->halves > 0;
    volumes->halves -= half;
    fake_volumes_put_as(volumes, backend->uuid, type, name, half ? 1 : bytes, false);
    if (half) {
        fettle_set_error(error, STORAGE, "%s: it was made by half", backend->name);
        return false;
    }
    if (!step(fake, error))
        return false;
    struct thing *made = find(volumes, name); /* NULL: somebody was faster */
    if (made)
        made->data.whole = true;
    return end(fake, op, error);
}

static bool fake_create(struct volume_driver *driver, const struct backend *backend,
                        enum resource_type type, const char *name, guint64 size_gib, GError **error)
{
    struct fake_driver *fake = fake_of(driver);
    return begin(fake, "create", backend, name, error) &&
           make(fake, "create", backend, type, name, size_gib * GIB, error);
}

static bool fake_prepare(struct volume_driver *driver, const struct backend *backend,
                         enum resource_type type, const char *name, guint64 size_gib,
                         GError **error)
{
    struct fake_driver *fake = fake_of(driver);
    if (!begin(fake, "prepare", backend, name, error) ||
        !make(fake, "prepare", backend, type, name, size_gib * GIB, error))
        return false;
    find(fake->volumes, name)->data.whole = false;
    return true;
}

static struct thing *known(struct fake_volumes *volumes, const struct backend *backend,
                           enum resource_type type, const char *name, GError **error)
{
    struct thing *thing = find(volumes, name);
    if (thing && thing->data.type == type && strcmp(thing->backend, backend->uuid) == 0)
        return thing;
    fettle_set_error(error, UNKNOWN_ENTITY, "%s: there is no %s", backend->name, name);
    return NULL;
}

/* Known, and open nowhere. */
static bool is_unused(const struct thing *thing, const struct backend *backend, GError **error)
{
    if (thing && thing->locked)
        fettle_set_error(error, WRONG_STATE, "%s: %s is open in a running guest", backend->name,
                         thing->data.name);
    return thing && !thing->locked;
}

static bool fake_settle_data(struct volume_driver *driver, const struct backend *backend,
                             enum resource_type type, const char *name, guint64 size_gib,
                             GError **error)
{
    struct fake_driver *fake = fake_of(driver);
    struct thing *thing = begin(fake, "settle", backend, name, error)
                              ? known(fake->volumes, backend, type, name, error)
                              : NULL;
    if (!is_unused(thing, backend, error))
        return false;
    thing->data.bytes = size_gib * GIB;
    thing->data.whole = type != RESOURCE_VOLUME;
    return end(fake, "settle", error);
}

static bool fake_copy(struct volume_driver *driver, const struct backend *from,
                      enum resource_type source_type, const char *source,
                      const struct backend *backend, enum resource_type type, const char *name,
                      guint64 size_gib, GError **error)
{
    struct fake_driver *fake = fake_of(driver);
    const struct thing *read = begin_from(fake, "copy", from, backend, name, error)
                                   ? known(fake->volumes, from, source_type, source, error)
                                   : NULL;
    guint64 content = read ? read->content : 0;
    if (!is_unused(read, from, error) ||
        !make(fake, "copy", backend, type, name, size_gib * GIB, error))
        return false;
    struct thing *made = find(fake->volumes, name);
    if (made)
        made->content = content;
    return true;
}

/* What one is known by: made of what it has, which is in no other. */
static char *sum_of(guint64 content)
{
    g_autofree char *text = g_strdup_printf("%" G_GUINT64_FORMAT, content);
    return g_compute_checksum_for_string(G_CHECKSUM_SHA512, text, -1);
}

void fake_volumes_sums(guint64 content, struct image_sums *ret)
{
    g_autofree char *text = g_strdup_printf("%" G_GUINT64_FORMAT, content);
    g_autofree char *sum = sum_of(content);
    g_autofree char *md5 = g_compute_checksum_for_string(G_CHECKSUM_MD5, text, -1);
    *ret = (struct image_sums){.size = FAKE_BACKUP_BYTES};
    g_strlcpy(ret->checksum, md5, sizeof ret->checksum);
    g_strlcpy(ret->os_hash_value, sum, sizeof ret->os_hash_value);
}

static bool fake_back_up(struct volume_driver *driver, const struct backend *from,
                         enum resource_type source_type, const char *source,
                         const struct backend *backend, const char *name, guint64 size_gib,
                         guint64 *ret_bytes, char **ret_sum, GError **error)
{
    struct fake_driver *fake = fake_of(driver);
    const struct thing *read = begin_from(fake, "back_up", from, backend, name, error)
                                   ? known(fake->volumes, from, source_type, source, error)
                                   : NULL;
    guint64 content = read ? read->content : 0;
    if (!is_unused(read, from, error) ||
        !make(fake, "back_up", backend, RESOURCE_BACKUP, name, FAKE_BACKUP_BYTES, error))
        return false;
    struct thing *made = find(fake->volumes, name);
    if (made)
        made->content = content;
    *ret_bytes = FAKE_BACKUP_BYTES;
    *ret_sum = sum_of(content);
    return true;
}

static bool fake_restore(struct volume_driver *driver, const struct backend *from,
                         const struct backup *backup, const struct backend *backend,
                         const char *name, guint64 size_gib, GError **error)
{
    struct fake_driver *fake = fake_of(driver);
    const struct thing *read =
        begin_from(fake, "restore", from, backend, name, error)
            ? known(fake->volumes, from, RESOURCE_BACKUP, backup->data, error)
            : NULL;
    guint64 content = read ? read->content : 0;
    g_autofree char *sum = sum_of(content);
    if (read && strcmp(sum, backup->sum) != 0) {
        fettle_set_error(error, CORRUPT, "%s: backup %s is not what was written", backend->name,
                         backup->data);
        return false;
    }
    if (!read || !make(fake, "restore", backend, RESOURCE_VOLUME, name, size_gib * GIB, error))
        return false;
    struct thing *made = find(fake->volumes, name);
    if (made)
        made->content = content;
    return true;
}

static bool fake_upload(struct volume_driver *driver, const struct backend *from,
                        const char *source, const struct backend *backend, const char *name,
                        enum disk_format format, guint64 size_gib, struct image_sums *ret_sums,
                        GError **error)
{
    struct fake_driver *fake = fake_of(driver);
    const struct thing *read = begin_from(fake, "upload", from, backend, name, error)
                                   ? known(fake->volumes, from, RESOURCE_VOLUME, source, error)
                                   : NULL;
    guint64 content = read ? read->content : 0;
    if (!is_unused(read, from, error) ||
        !make(fake, "upload", backend, RESOURCE_IMAGE, name, FAKE_BACKUP_BYTES, error))
        return false;
    struct thing *made = find(fake->volumes, name);
    if (made)
        made->content = content;
    fake_volumes_sums(content, ret_sums);
    ret_sums->virtual_size = size_gib * GIB;
    return true;
}

static bool fake_measure(struct volume_driver *driver, const struct backend *backend,
                         const char *name, enum disk_format format, const struct image_sums *said,
                         struct image_sums *ret_sums, GError **error)
{
    struct fake_driver *fake = fake_of(driver);
    if (!begin(fake, "measure", backend, name, error))
        return false;
    struct thing *thing = known(fake->volumes, backend, RESOURCE_IMAGE, name, error);
    if (!thing)
        return false;
    fake_volumes_sums(thing->content, ret_sums);
    if (*said->os_hash_value && strcmp(said->os_hash_value, ret_sums->os_hash_value) != 0) {
        fettle_set_error(error, CORRUPT, "what came is not what was sent");
        return false;
    }
    thing->data.whole = true;
    thing->data.bytes = said->size ? said->size : thing->data.bytes;
    ret_sums->size = ret_sums->virtual_size = thing->data.bytes;
    return end(fake, "measure", error);
}

static struct volume_transfer *fake_transfer(struct volume_driver *driver,
                                             const struct backend *backend, const char *name,
                                             guint64 bytes, const char *address, GError **error)
{
    struct fake_driver *fake = fake_of(driver);
    if (!begin(fake, bytes ? "receive" : "send", backend, name, error) ||
        (!bytes && !known(fake->volumes, backend, RESOURCE_IMAGE, name, error)))
        return NULL;
    if (bytes)
        fake_volumes_put_as(fake->volumes, backend->uuid, RESOURCE_IMAGE, name, bytes, false);
    if (!end(fake, bytes ? "receive" : "send", error))
        return NULL;
    struct fake_transfer *transfer = g_new0(struct fake_transfer, 1);
    *transfer = (struct fake_transfer){.fake = fake, .state = TRANSFER_WAITS};
    if (address)
        transfer->seen = (struct volume_transfer){
            .address = g_strdup(address), .port = 10809, .key = g_strdup("00")};
    else
        transfer->seen = (struct volume_transfer){.path = g_strdup("/run/door")};
    g_ptr_array_add(fake->volumes->transfers, transfer);
    return &transfer->seen;
}

static enum volume_transfer_state fake_transfer_state(const struct volume_transfer *transfer)
{
    return ((const struct fake_transfer *)transfer)->state;
}

static bool fake_transfer_end(struct volume_transfer *seen)
{
    struct fake_transfer *transfer = (struct fake_transfer *)seen;
    if (!transfer)
        return true;
    g_ptr_array_remove(transfer->fake->volumes->transfers, transfer);
    g_free(seen->path);
    g_free(seen->address);
    g_free(seen->key);
    g_free(transfer);
    return true;
}

guint fake_volumes_transfers(const struct fake_volumes *volumes)
{
    return volumes->transfers->len;
}

void fake_volumes_set_client(struct fake_volumes *volumes, enum volume_transfer_state state)
{
    for (guint i = 0; i < volumes->transfers->len; i++)
        ((struct fake_transfer *)volumes->transfers->pdata[i])->state = state;
}

void fake_volumes_client(struct fake_volumes *volumes, bool there)
{
    fake_volumes_set_client(volumes, there ? TRANSFER_STANDS : TRANSFER_OVER);
}

static bool fake_download(struct volume_driver *driver, const struct backend *from,
                          const struct image *image, const struct backend *backend,
                          const char *name, guint64 size_gib, GError **error)
{
    struct fake_driver *fake = fake_of(driver);
    const struct thing *read = begin_from(fake, "download", from, backend, name, error)
                                   ? known(fake->volumes, from, RESOURCE_IMAGE, image->data, error)
                                   : NULL;
    guint64 content = read ? read->content : 0;
    if (!read || !make(fake, "download", backend, RESOURCE_VOLUME, name, size_gib * GIB, error))
        return false;
    struct thing *made = find(fake->volumes, name);
    if (made)
        made->content = content;
    return true;
}

static bool fake_grow(struct volume_driver *driver, const struct backend *backend, const char *name,
                      guint64 size_gib, GError **error)
{
    struct fake_driver *fake = fake_of(driver);
    if (!begin(fake, "grow", backend, name, error))
        return false;
    struct thing *thing = known(fake->volumes, backend, RESOURCE_VOLUME, name, error);
    if (!thing)
        return false;
    thing->data.bytes = MAX(thing->data.bytes, size_gib * GIB);
    return end(fake, "grow", error);
}

static bool fake_remove(struct volume_driver *driver, const struct backend *backend,
                        enum resource_type type, const char *name, GError **error)
{
    struct fake_driver *fake = fake_of(driver);
    struct fake_volumes *volumes = fake->volumes;
    if (!begin(fake, "remove", backend, name, error))
        return false;
    struct thing *thing = known(volumes, backend, type, name, NULL);
    if (thing && !is_unused(thing, backend, error))
        return false;
    if (thing && volumes->goes)
        volumes->goes(name, volumes->goes_data);
    if (thing)
        g_ptr_array_remove(volumes->things, thing);
    return end(fake, "remove", error);
}

static struct volume_data *copy(const struct thing *thing, bool whole)
{
    struct volume_data *data = g_new0(struct volume_data, 1);
    *data = (struct volume_data){thing->data.type, g_strdup(thing->data.name), thing->data.bytes,
                                 whole && thing->data.whole, false};
    return data;
}

static struct volume_data *fake_look(struct volume_driver *driver, const struct backend *backend,
                                     enum resource_type type, const char *name, GError **error)
{
    struct fake_driver *fake = fake_of(driver);
    if (!begin(fake, "look", backend, name, error))
        return NULL;
    struct thing *thing = known(fake->volumes, backend, type, name, error);
    return thing && end(fake, "look", error) ? copy(thing, true) : NULL;
}

static GPtrArray *fake_find(struct volume_driver *driver, const struct backend *backend,
                            enum resource_type type, const char *uuid, GError **error)
{
    struct fake_driver *fake = fake_of(driver);
    if (!begin(fake, "find", backend, uuid, error))
        return NULL;
    g_autoptr(GPtrArray) list = g_ptr_array_new_with_free_func(volume_data_free);
    for (guint i = 0; i < fake->volumes->things->len; i++) {
        const struct thing *thing = fake->volumes->things->pdata[i];
        g_autofree char *of = NULL;
        guint64 claim;
        if (strcmp(thing->backend, backend->uuid) != 0 || thing->data.type != type ||
            !volume_data_parse(thing->data.name, &of, &claim) || strcmp(of, uuid) != 0)
            continue;
        struct volume_data *found = copy(thing, true);
        found->open = thing->locked;
        g_ptr_array_add(list, found);
    }
    return end(fake, "find", error) ? g_steal_pointer(&list) : NULL;
}

static GPtrArray *fake_list(struct volume_driver *driver, const struct backend *backend,
                            GError **error)
{
    struct fake_driver *fake = fake_of(driver);
    if (!begin(fake, "list", backend, "", error))
        return NULL;
    g_autoptr(GPtrArray) list = g_ptr_array_new_with_free_func(volume_data_free);
    for (guint i = 0; i < fake->volumes->things->len; i++) {
        const struct thing *thing = fake->volumes->things->pdata[i];
        g_autofree char *uuid = NULL;
        guint64 claim;
        if (strcmp(thing->backend, backend->uuid) == 0 &&
            volume_data_parse(thing->data.name, &uuid, &claim))
            g_ptr_array_add(list, copy(thing, false));
    }
    return end(fake, "list", error) ? g_steal_pointer(&list) : NULL;
}

/* It works wherever it is there. */
static bool fake_check(struct volume_driver *driver, const struct backend *backend,
                       struct volume_check *check, GError **error)
{
    struct fake_driver *fake = fake_of(driver);
    return begin(fake, "check", backend, check->token, error) && end(fake, "check", error);
}

static guint fake_hanging(struct volume_driver *driver, const struct backend *backend)
{
    return given_up(fake_of(driver), backend->uuid);
}

static const struct volume_driver_ops fake_ops = {.open = fake_open,
                                                  .space = fake_space,
                                                  .create = fake_create,
                                                  .prepare = fake_prepare,
                                                  .settle = fake_settle_data,
                                                  .copy = fake_copy,
                                                  .back_up = fake_back_up,
                                                  .restore = fake_restore,
                                                  .upload = fake_upload,
                                                  .measure = fake_measure,
                                                  .transfer = fake_transfer,
                                                  .transfer_state = fake_transfer_state,
                                                  .transfer_end = fake_transfer_end,
                                                  .download = fake_download,
                                                  .grow = fake_grow,
                                                  .remove = fake_remove,
                                                  .look = fake_look,
                                                  .find = fake_find,
                                                  .list = fake_list,
                                                  .check = fake_check,
                                                  .hanging = fake_hanging};

struct volume_driver *fake_volumes_at(struct fake_volumes *volumes, const struct env *env)
{
    struct fake_driver *fake = g_new0(struct fake_driver, 1);
    fake->driver.ops = &fake_ops;
    fake->volumes = volumes;
    fake->env = env;
    fake->given_up = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_ptr_array_add(volumes->drivers, fake);
    return &fake->driver;
}
