/*
 * Back ends as children of a volume service see them: slow, hanging, failing, away. A child goes on
 * when who started it has died or has given it up: what it was told it does, late (the real ones
 * hang in a dead file system, and do not even die by SIGKILL). See storage_sim.h.
 */
#include "storage_sim.h"

#include <string.h>

#define CALL_LIMIT_MS 20000u /* after which a call that hangs is given up */
#define LOOK_MS 500u

struct place {
    struct volume_driver base;
    struct storage_host *host;
    const struct env *env;
    struct volume_driver *fake;
    guint given_up[STORAGE_BACKENDS]; /* children that still hang */
};

enum act_kind {
    ACT_NONE,
    ACT_CREATE,
    ACT_PREPARE,
    ACT_SETTLE,
    ACT_COPY,
    ACT_BACK_UP,
    ACT_RESTORE,
    ACT_UPLOAD,
    ACT_DOWNLOAD,
    ACT_MEASURE,
    ACT_GROW,
    ACT_REMOVE
};

/* What a child does to data. */
struct act {
    enum act_kind kind;
    struct place *place;
    struct backend *backend, *from; /* from: of the source of a copy; else the same */
    enum resource_type type;
    char *name, *source; /* source: of what is a copy, else NULL */
    enum resource_type source_type;
    struct backup *backup;  /* of a restore, else NULL */
    struct image *image;    /* of a download, else NULL */
    struct image_sums said; /* of what is measured */
    enum disk_format format;
    guint64 size_gib, content; /* content: of the source when the copy began */
    gint64 asked_ms, begun_ms;
    bool counted; /* it hangs, and was given up */
};

static guint index_of(const struct storage_world *storage, const struct backend *backend)
{
    return !strcmp(storage->backends[1], backend->uuid);
}

static bool hangs(const struct act *act)
{
    const struct storage_world *storage = act->place->host->storage;
    return storage->hanging[index_of(storage, act->backend)] ||
           storage->hanging[index_of(storage, act->from)];
}

/* One that touches two counts at both. */
static void count_hanging(const struct act *act, int more)
{
    const struct storage_world *storage = act->place->host->storage;
    guint here = index_of(storage, act->backend), there = index_of(storage, act->from);
    act->place->given_up[here] += (guint)more;
    if (there != here)
        act->place->given_up[there] += (guint)more;
}

static bool ended(GError **error)
{
    return fettle_set_ended(error, "the process that waited for a back end");
}

/* --- acts --- */

/* What a backup is, for who has it made. */
struct made {
    guint64 bytes;
    char *sum;
    struct image_sums sums;
};

/* Of a child whose starter hears of it, or of one that goes on alone (`made` is NULL). */
static bool copy_bytes(const struct act *act, struct made *made, GError **error)
{
    struct volume_driver *fake = act->place->fake;
    struct made unheard = {0};
    bool ok;
    if (!made)
        made = &unheard;
    if (act->kind == ACT_COPY)
        ok = fake->ops->copy(fake, act->from, act->source_type, act->source, act->backend,
                             act->type, act->name, act->size_gib, error);
    else if (act->kind == ACT_BACK_UP)
        ok = fake->ops->back_up(fake, act->from, act->source_type, act->source, act->backend,
                                act->name, act->size_gib, &made->bytes, &made->sum, error);
    else if (act->kind == ACT_UPLOAD)
        ok = fake->ops->upload(fake, act->from, act->source, act->backend, act->name, act->format,
                               act->size_gib, &made->sums, error);
    else if (act->kind == ACT_DOWNLOAD)
        ok = fake->ops->download(fake, act->from, act->image, act->backend, act->name,
                                 act->size_gib, error);
    else
        ok = fake->ops->restore(fake, act->from, act->backup, act->backend, act->name,
                                act->size_gib, error);
    g_free(unheard.sum);
    return ok;
}

static bool carry_out(const struct act *act, struct made *made, GError **error)
{
    struct storage_world *storage = act->place->host->storage;
    struct volume_driver *fake = act->place->fake;
    bool ok = true;
    if (act->kind == ACT_CREATE) {
        storage_makes(storage, act->place->env, act->name);
        ok = fake->ops->create(fake, act->backend, act->type, act->name, act->size_gib, error);
        storage->counts->made += ok;
    } else if (act->source) {
        storage_makes(storage, act->place->env, act->name);
        ok = copy_bytes(act, made, error);
        if (fake_volumes_content(storage->volumes, act->source) != act->content)
            fake_volumes_write(storage->volumes, act->name); /* it is torn */
    } else if (act->kind == ACT_PREPARE) {
        (act->type == RESOURCE_VOLUME ? storage_makes_beside
                                      : storage_makes)(storage, act->place->env, act->name);
        ok = fake->ops->prepare(fake, act->backend, act->type, act->name, act->size_gib, error);
    } else if (act->kind == ACT_SETTLE) {
        ok = fake->ops->settle(fake, act->backend, act->type, act->name, act->size_gib, error);
    } else if (act->kind == ACT_MEASURE) {
        struct image_sums sums;
        ok = fake->ops->measure(fake, act->backend, act->name, act->format, &act->said,
                                made ? &made->sums : &sums, error);
    } else if (act->kind == ACT_GROW) {
        ok = fake->ops->grow(fake, act->backend, act->name, act->size_gib, error);
    } else if (act->kind == ACT_REMOVE) {
        storage->counts->removed += fake_volumes_has(storage->volumes, act->name);
        storage_removes(storage, act->place->host, act->place->env, act->asked_ms, act->begun_ms,
                        act->name);
        ok = fake->ops->remove(fake, act->backend, act->type, act->name, error);
    }
    return ok;
}

static void orphan_cb(void *data)
{
    struct act *act = data;
    struct storage_world *storage = act->place->host->storage;
    if (hangs(act)) {
        ms_timer(storage->ms, LOOK_MS, orphan_cb, act);
        return;
    }
    carry_out(act, NULL, NULL);
    if (act->counted)
        count_hanging(act, -1);
    backend_free(act->backend);
    backend_free(act->from);
    backup_free(act->backup);
    image_free(act->image);
    g_free(act->name);
    g_free(act->source);
    g_free(act);
}

/* Its starter is gone, or waits no more. */
static void goes_on_alone(const struct act *act, bool counted)
{
    struct ms *ms = act->place->host->storage->ms;
    struct act *orphan = g_new(struct act, 1);
    *orphan = *act;
    orphan->backend = backend_copy(act->backend);
    orphan->from = backend_copy(act->from);
    orphan->backup = act->backup ? backup_copy(act->backup) : NULL;
    orphan->image = act->image ? image_copy(act->image) : NULL;
    orphan->name = g_strdup(act->name);
    orphan->source = g_strdup(act->source);
    orphan->counted = counted;
    if (counted)
        count_hanging(act, 1);
    act->place->host->storage->counts->orphans++;
    ms_timer(ms, ms_random(ms, 8000), orphan_cb, orphan);
}

/* --- calls --- */

static guint delay_ms(struct ms *ms)
{
    guint lot = ms_random(ms, 100);
    return ms_random(ms, lot < 60 ? 40 : lot < 92 ? 1200 : 9000);
}

static bool wait_out(const struct act *act, GError **error)
{
    struct place *place = act->place;
    const struct storage_world *storage = place->host->storage;
    if (!env_sleep(place->env, storage->slow_ms + delay_ms(storage->ms)))
        return ended(error);
    for (guint waited = 0; hangs(act); waited += LOOK_MS) {
        if (waited >= CALL_LIMIT_MS) {
            goes_on_alone(act, true);
            fettle_set_error(error, TIMEOUT, "%s: no answer", act->backend->name);
            return false;
        }
        if (!env_sleep(place->env, LOOK_MS))
            return ended(error);
    }
    return true;
}

static bool fails(const struct place *place, GError **error)
{
    struct storage_world *storage = place->host->storage;
    if (ms_random(storage->ms, 100) >= storage->failing)
        return false;
    storage->counts->failures++;
    fettle_set_error(error, STORAGE, "the back end fails");
    return true;
}

static bool run(const struct act *act, struct made *made, GError **error)
{
    struct ms *ms = act->place->host->storage->ms;
    /* QEMU's lock is asked before and after. */
    if (act->source && fake_volumes_locked(act->place->host->storage->volumes, act->source)) {
        fettle_set_error(error, WRONG_STATE, "%s is open in a guest", act->source);
        return false;
    }
    if (!wait_out(act, error)) {
        if (task_killed() && act->kind != ACT_NONE && !ms->over && ms_random(ms, 2) == 0)
            goes_on_alone(act, false);
        return false;
    }
    if (fails(act->place, error) || !carry_out(act, made, error))
        return false;
    /* It is done, and its starter hears of it later, or never. */
    if (!env_sleep(act->place->env, ms_random(ms, ms_random(ms, 2) ? 20 : 600)))
        return ended(error);
    return !fails(act->place, error);
}

static bool run_act(struct volume_driver *driver, enum act_kind kind, const struct backend *backend,
                    enum resource_type type, const char *name, guint64 size_gib, GError **error)
{
    struct place *place = (struct place *)driver;
    struct ms *ms = place->host->storage->ms;
    const struct act act = {.kind = kind,
                            .place = place,
                            .backend = (struct backend *)backend,
                            .from = (struct backend *)backend,
                            .type = type,
                            .name = (char *)name,
                            .size_gib = size_gib,
                            .asked_ms = place->host->asked_ms,
                            .begun_ms = ms_now(ms)};
    return run(&act, NULL, error);
}

static bool place_open(struct volume_driver *driver, const struct backend *backend,
                       const struct cluster *cluster, bool make, GError **error)
{
    struct volume_driver *fake = ((struct place *)driver)->fake;
    return run_act(driver, ACT_NONE, backend, RESOURCE_VOLUME, "", 0, error) &&
           fake->ops->open(fake, backend, cluster, make, error);
}

static bool place_space(struct volume_driver *driver, const struct backend *backend,
                        guint64 *ret_free, guint64 *ret_total, GError **error)
{
    struct volume_driver *fake = ((struct place *)driver)->fake;
    return run_act(driver, ACT_NONE, backend, RESOURCE_VOLUME, "", 0, error) &&
           fake->ops->space(fake, backend, ret_free, ret_total, error);
}

static bool place_create(struct volume_driver *driver, const struct backend *backend,
                         enum resource_type type, const char *name, guint64 size_gib,
                         GError **error)
{
    return run_act(driver, ACT_CREATE, backend, type, name, size_gib, error);
}

static bool place_prepare(struct volume_driver *driver, const struct backend *backend,
                          enum resource_type type, const char *name, guint64 size_gib,
                          GError **error)
{
    return run_act(driver, ACT_PREPARE, backend, type, name, size_gib, error);
}

static bool place_settle(struct volume_driver *driver, const struct backend *backend,
                         enum resource_type type, const char *name, guint64 size_gib,
                         GError **error)
{
    return run_act(driver, ACT_SETTLE, backend, type, name, size_gib, error);
}

static bool place_copy(struct volume_driver *driver, const struct backend *from,
                       enum resource_type source_type, const char *source,
                       const struct backend *backend, enum resource_type type, const char *name,
                       guint64 size_gib, GError **error)
{
    struct place *place = (struct place *)driver;
    struct storage_world *storage = place->host->storage;
    const struct act act = {.kind = ACT_COPY,
                            .place = place,
                            .backend = (struct backend *)backend,
                            .from = (struct backend *)from,
                            .type = type,
                            .name = (char *)name,
                            .source = (char *)source,
                            .source_type = source_type,
                            .size_gib = size_gib,
                            .content = fake_volumes_content(storage->volumes, source)};
    return run(&act, NULL, error);
}

static bool place_back_up(struct volume_driver *driver, const struct backend *from,
                          enum resource_type source_type, const char *source,
                          const struct backend *backend, const char *name, guint64 size_gib,
                          guint64 *ret_bytes, char **ret_sum, GError **error)
{
    struct place *place = (struct place *)driver;
    struct storage_world *storage = place->host->storage;
    struct made made = {0};
    const struct act act = {.kind = ACT_BACK_UP,
                            .place = place,
                            .backend = (struct backend *)backend,
                            .from = (struct backend *)from,
                            .type = RESOURCE_BACKUP,
                            .name = (char *)name,
                            .source = (char *)source,
                            .source_type = source_type,
                            .size_gib = size_gib,
                            .content = fake_volumes_content(storage->volumes, source)};
    bool ok = run(&act, &made, error);
    *ret_bytes = made.bytes;
    *ret_sum = ok ? made.sum : NULL;
    if (!ok)
        g_free(made.sum);
    return ok;
}

static bool place_restore(struct volume_driver *driver, const struct backend *from,
                          const struct backup *backup, const struct backend *backend,
                          const char *name, guint64 size_gib, GError **error)
{
    struct place *place = (struct place *)driver;
    struct storage_world *storage = place->host->storage;
    const struct act act = {.kind = ACT_RESTORE,
                            .place = place,
                            .backend = (struct backend *)backend,
                            .from = (struct backend *)from,
                            .type = RESOURCE_VOLUME,
                            .name = (char *)name,
                            .source = backup->data,
                            .source_type = RESOURCE_BACKUP,
                            .backup = (struct backup *)backup,
                            .size_gib = size_gib,
                            .content = fake_volumes_content(storage->volumes, backup->data)};
    return run(&act, NULL, error);
}

static bool place_upload(struct volume_driver *driver, const struct backend *from,
                         const char *source, const struct backend *backend, const char *name,
                         enum disk_format format, guint64 size_gib, struct image_sums *ret_sums,
                         GError **error)
{
    struct place *place = (struct place *)driver;
    struct made made = {0};
    const struct act act = {.kind = ACT_UPLOAD,
                            .place = place,
                            .backend = (struct backend *)backend,
                            .from = (struct backend *)from,
                            .type = RESOURCE_IMAGE,
                            .name = (char *)name,
                            .source = (char *)source,
                            .source_type = RESOURCE_VOLUME,
                            .format = format,
                            .size_gib = size_gib,
                            .content = fake_volumes_content(place->host->storage->volumes, source)};
    bool ok = run(&act, &made, error);
    *ret_sums = made.sums;
    return ok;
}

static bool place_download(struct volume_driver *driver, const struct backend *from,
                           const struct image *image, const struct backend *backend,
                           const char *name, guint64 size_gib, GError **error)
{
    struct place *place = (struct place *)driver;
    const struct act act = {.kind = ACT_DOWNLOAD,
                            .place = place,
                            .backend = (struct backend *)backend,
                            .from = (struct backend *)from,
                            .type = RESOURCE_VOLUME,
                            .name = (char *)name,
                            .source = image->data,
                            .source_type = RESOURCE_IMAGE,
                            .image = (struct image *)image,
                            .size_gib = size_gib,
                            .content =
                                fake_volumes_content(place->host->storage->volumes, image->data)};
    return run(&act, NULL, error);
}

static bool place_measure(struct volume_driver *driver, const struct backend *backend,
                          const char *name, enum disk_format format, const struct image_sums *said,
                          struct image_sums *ret_sums, GError **error)
{
    struct place *place = (struct place *)driver;
    struct made made = {0};
    const struct act act = {.kind = ACT_MEASURE,
                            .place = place,
                            .backend = (struct backend *)backend,
                            .from = (struct backend *)backend,
                            .type = RESOURCE_IMAGE,
                            .name = (char *)name,
                            .said = *said,
                            .format = format};
    bool ok = run(&act, &made, error);
    *ret_sums = made.sums;
    return ok;
}

/* Only what is received (what is sent changes nothing). */
static struct volume_transfer *place_transfer(struct volume_driver *driver,
                                              const struct backend *backend, const char *name,
                                              guint64 bytes, const char *address, GError **error)
{
    struct place *place = (struct place *)driver;
    if (!run_act(driver, ACT_NONE, backend, RESOURCE_IMAGE, name, 0, error))
        return NULL;
    storage_makes(place->host->storage, place->env, name);
    return storage_door_new(place->host->storage, backend, name, bytes);
}

static bool place_grow(struct volume_driver *driver, const struct backend *backend,
                       const char *name, guint64 size_gib, GError **error)
{
    return run_act(driver, ACT_GROW, backend, RESOURCE_VOLUME, name, size_gib, error);
}

static bool place_remove(struct volume_driver *driver, const struct backend *backend,
                         enum resource_type type, const char *name, GError **error)
{
    return run_act(driver, ACT_REMOVE, backend, type, name, 0, error);
}

static struct volume_data *place_look(struct volume_driver *driver, const struct backend *backend,
                                      enum resource_type type, const char *name, GError **error)
{
    struct volume_driver *fake = ((struct place *)driver)->fake;
    return run_act(driver, ACT_NONE, backend, type, name, 0, error)
               ? fake->ops->look(fake, backend, type, name, error)
               : NULL;
}

static GPtrArray *place_list(struct volume_driver *driver, const struct backend *backend,
                             GError **error)
{
    struct volume_driver *fake = ((struct place *)driver)->fake;
    return run_act(driver, ACT_NONE, backend, RESOURCE_VOLUME, "", 0, error)
               ? fake->ops->list(fake, backend, error)
               : NULL;
}

static guint place_hanging(struct volume_driver *driver, const struct backend *backend)
{
    const struct place *place = (const struct place *)driver;
    return place->given_up[index_of(place->host->storage, backend)];
}

static const struct volume_driver_ops place_ops = {.open = place_open,
                                                   .space = place_space,
                                                   .create = place_create,
                                                   .prepare = place_prepare,
                                                   .settle = place_settle,
                                                   .copy = place_copy,
                                                   .back_up = place_back_up,
                                                   .restore = place_restore,
                                                   .upload = place_upload,
                                                   .measure = place_measure,
                                                   .transfer = place_transfer,
                                                   .transfer_state = storage_door_state,
                                                   .transfer_end = storage_door_end,
                                                   .download = place_download,
                                                   .grow = place_grow,
                                                   .remove = place_remove,
                                                   .look = place_look,
                                                   .list = place_list,
                                                   .hanging = place_hanging};

struct volume_driver *storage_place_new(struct storage_host *host, const struct env *env)
{
    struct place *place = g_new0(struct place, 1);
    place->base.ops = &place_ops;
    place->host = host;
    place->env = env;
    place->fake = fake_volumes_at(host->storage->volumes, env);
    g_ptr_array_add(host->storage->places, place);
    return &place->base;
}

void storage_place_free(void *place)
{
    g_free(place);
}
