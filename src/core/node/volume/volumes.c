/*
 * See volumes.h.
 */
#include "core/node/volume/volumes.h"

#include "base/log.h"
#include "core/node/confirm.h"
#include "core/node/node_private.h"
#include "core/node/reconcile.h"
#include "core/node/volume/points.h"

#define OWN_ASK_MS 30000    /* between two questions whether what it has open is its own */
#define DETACH_WAIT_MS 2000 /* of one call; who wants more asks again */

void volumes_copy(GPtrArray *to, const GPtrArray *volumes)
{
    g_ptr_array_set_size(to, 0);
    for (guint i = 0; volumes && i < volumes->len; i++)
        g_ptr_array_add(to, guest_volume_copy(volumes->pdata[i]));
}

static struct guest_volume *find(const struct guest *guest, const char *attachment)
{
    const GPtrArray *volumes = guest->record->volumes;
    for (guint i = 0; i < volumes->len; i++) {
        struct guest_volume *volume = volumes->pdata[i];
        if (strcmp(volume->attachment, attachment) == 0)
            return volume;
    }
    return NULL;
}

static bool forget(struct guest *guest, const char *attachment, GError **error)
{
    struct guest_volume *volume = find(guest, attachment);
    if (!volume)
        return true;
    g_ptr_array_remove(guest->record->volumes, volume);
    return guest_save(guest, error);
}

bool volumes_confirm(struct node_core *node, const struct epoch_fence_op *op,
                     const struct guest_start_args *args, GError **error)
{
    const struct instance *instance = args->instance;
    for (guint i = 0; i < args->volumes->len; i++) {
        const struct guest_volume *volume = args->volumes->pdata[i];
        if (!confirm_one(node, op, CONFIRM_ATTACH, instance->uuid, instance->generation,
                         volume->attachment, error))
            return false;
    }
    return true;
}

/* --- attach --- */

/* A process that was made here and is to stay. */
static bool takes_part(struct guest *guest, guint64 generation, GError **error)
{
    return guest_check_generation(guest, generation, error) && reconcile_adopt(guest, error) &&
           guest_check_stays(guest, error);
}

/* In the note before the hypervisor opens it, so that no node daemon forgets it. */
static bool note_one(struct guest *guest, const struct guest_volume *volume, GError **error)
{
    if (find(guest, volume->attachment))
        return true;
    g_ptr_array_add(guest->record->volumes, guest_volume_copy(volume));
    if (guest_save(guest, error))
        return true;
    g_ptr_array_set_size(guest->record->volumes, (gint)guest->record->volumes->len - 1);
    return false;
}

/* Before it may write there, so that it can be shut out (SAF-58). */
static bool tell_clients(struct guest *guest, const struct guest_volume *volume, GError **error)
{
    struct node_core *node = guest->node;
    struct hypervisor *hv = node->hv;
    guint64 bytes;
    g_autofree char *clients = NULL;
    if (!hv->ops->pool_look(hv, volume, &bytes, &clients, error))
        return false;
    struct set_attachment_args args = {.instance = guest->record->instance,
                                       .generation = guest->record->generation,
                                       .volume = volume->volume,
                                       .attachment = volume->attachment,
                                       .clients = clients};
    struct commit_result *result =
        env_call_record(node->env, NODE_MASTER, ROLE_WCONFD, "set_attachment", &args,
                        epoch_fence_stamp(node->fence), 0, TIMEOUT_NORMAL_MS, error);
    commit_result_free(result);
    return result != NULL;
}

bool volumes_tell_clients(struct guest *guest, GError **error)
{
    g_autoptr(GPtrArray) volumes =
        g_ptr_array_new_with_free_func((GDestroyNotify)guest_volume_free);
    volumes_copy(volumes, guest->record->volumes);
    for (guint i = 0; i < volumes->len; i++) {
        const struct guest_volume *volume = volumes->pdata[i];
        if (*volume->conf && !tell_clients(guest, volume, error))
            return false;
    }
    return true;
}

static bool attach_locked(struct guest *guest, const struct epoch_fence_op *op,
                          const struct volume_attach_args *args, GError **error)
{
    struct hypervisor *hv = guest->node->hv;
    const struct guest_volume *known = find(guest, args->volume->attachment);
    if (!takes_part(guest, args->generation, error))
        return false;
    if (known && known->leaving) {
        fettle_set_error(error, WRONG_STATE, "the guest is asked to give this volume up");
        return false;
    }
    return confirm_one(guest->node, op, CONFIRM_ATTACH, args->instance, args->generation,
                       args->volume->attachment, error) &&
           note_one(guest, args->volume, error) &&
           (!*args->volume->conf ||
            (hv->ops->volume_open(hv, args->instance, args->generation, args->volume, error) &&
             tell_clients(guest, args->volume, error))) &&
           hv->ops->volume_attach(hv, args->instance, args->generation, args->volume, error);
}

json_t *volumes_attach(struct node_core *node, struct epoch_fence_op *op, const void *args,
                       GError **error)
{
    const struct volume_attach_args *attach = args;
    struct guest *guest = guest_get(node, attach->instance, error);
    if (!guest || !guest_lock(guest, op, error))
        return NULL;
    bool ok = attach_locked(guest, op, attach, error);
    guest_unlock(guest);
    return ok ? json_object() : NULL;
}

/* --- detach --- */

/* On disk before the guest is asked: whoever comes next asks on. */
static bool note_leaving(struct guest *guest, const char *attachment, GError **error)
{
    struct guest_volume *volume = find(guest, attachment);
    if (!volume || volume->leaving)
        return true;
    volume->leaving = true;
    return guest_save(guest, error);
}

static bool detach_locked(struct guest *guest, const struct volume_detach_args *args,
                          bool *ret_gone, GError **error)
{
    struct hypervisor *hv = guest->node->hv;
    const char *attachment = args->volume->attachment;
    *ret_gone = false;
    if (!guest->live && guest->record->generation <= args->generation) {
        *ret_gone = true;
        return forget(guest, attachment, error);
    }
    return takes_part(guest, args->generation, error) &&
           points_end(guest, args->volume->volume, error) &&
           note_leaving(guest, attachment, error) &&
           hv->ops->volume_detach(hv, args->instance, args->generation, args->volume,
                                  DETACH_WAIT_MS, ret_gone, error) &&
           (!*ret_gone || forget(guest, attachment, error));
}

json_t *volumes_detach(struct node_core *node, struct epoch_fence_op *op, const void *args,
                       GError **error)
{
    const struct volume_detach_args *detach = args;
    struct volume_detach_result result = {false};
    struct guest *guest = guest_get(node, detach->instance, error);
    if (!guest || !guest_lock(guest, op, error))
        return NULL;
    bool ok = detach_locked(guest, detach, &result.gone, error);
    guest_unlock(guest);
    return ok ? volume_detach_result_to_json(&result) : NULL;
}

/* --- growing --- */

struct guest_volume *volumes_find(const struct guest *guest, const char *uuid)
{
    const GPtrArray *volumes = guest->record->volumes;
    for (guint i = 0; i < volumes->len; i++) {
        struct guest_volume *volume = volumes->pdata[i];
        if (strcmp(volume->volume, uuid) == 0)
            return volume;
    }
    return NULL;
}

struct guest *volumes_guest_with(struct node_core *node, const char *volume)
{
    GHashTableIter iter;
    void *guest;
    g_hash_table_iter_init(&iter, node->guests);
    while (g_hash_table_iter_next(&iter, NULL, &guest))
        if (((struct guest *)guest)->live && volumes_find(guest, volume))
            return guest;
    return NULL;
}

static bool grown_locked(struct guest *guest, const char *uuid, guint64 bytes, GError **error)
{
    struct hypervisor *hv = guest->node->hv;
    const struct guest_volume *volume = volumes_find(guest, uuid);
    return !guest->live || !volume ||
           (guest_check_stays(guest, error) &&
            hv->ops->volume_resize(hv, guest->record->instance, guest->record->generation, volume,
                                   bytes, error));
}

/* One look at each volume at a time, as it may hang: who comes meanwhile may not wait for it, and
 * what it sees may be older than what he asks for. */
static bool look_at(struct node_core *node, const struct guest_volume *volume,
                    struct storage_file *ret_file, GError **error)
{
    if (g_hash_table_contains(node->volume_looks, volume->volume)) {
        fettle_set_error(error, TEMPORARY, "an earlier look at %s has not come back yet",
                         volume->path);
        return false;
    }
    g_hash_table_add(node->volume_looks, g_strdup(volume->volume));
    bool ok = *volume->conf
                  ? node->hv->ops->pool_look(node->hv, volume, &ret_file->bytes, NULL, error)
                  : node->storage->ops->look_at(node->storage, volume->path, ret_file, error);
    g_hash_table_remove(node->volume_looks, volume->volume);
    return ok;
}

/* Looked at before the lock is taken. What is old by then does no harm: the guest is told nothing
 * that is not more than it knows. What fails is looked at once more by the node itself. */
static bool grow(struct guest *guest, const struct guest_volume *volume, GError **error)
{
    struct storage_file file = {0};
    bool ok = look_at(guest->node, volume, &file, error) && guest_lock(guest, NULL, error);
    if (ok) {
        ok = grown_locked(guest, volume->volume, file.bytes, error);
        guest_unlock(guest);
    }
    guest->volumes_looked = guest->volumes_looked && ok;
    return ok;
}

json_t *volumes_grown(struct node_core *node, struct epoch_fence_op *op, const void *args,
                      GError **error)
{
    const struct volume_grown_args *grown = args;
    struct guest *guest = volumes_guest_with(node, grown->volume);
    if (!guest)
        return json_object();
    record_autoptr(guest_volume) volume = guest_volume_copy(volumes_find(guest, grown->volume));
    return grow(guest, volume, error) ? json_object() : NULL;
}

struct catch_up {
    struct guest *guest;
    struct guest_volume *volume;
};

static void catch_up_run(void *data)
{
    struct catch_up *catch_up = data;
    struct node_core *node = catch_up->guest->node;
    grow(catch_up->guest, catch_up->volume, NULL);
    guest_volume_free(catch_up->volume);
    g_free(catch_up);
    node_release(node);
}

/* Noted before the looks begin: what is refused meanwhile takes it back. */
void volumes_catch_up(struct guest *guest)
{
    const GPtrArray *volumes = guest->record->volumes;
    if (guest->volumes_looked || guest->outgoing || !guest->live || !guest->adopted ||
        guest->record->phase != PHASE_STARTED)
        return;
    guest->volumes_looked = true;
    for (guint i = 0; i < volumes->len; i++) {
        struct catch_up *catch_up = g_new0(struct catch_up, 1);
        *catch_up = (struct catch_up){guest, guest_volume_copy(volumes->pdata[i])};
        node_hold(guest->node);
        task_spawn(guest->node->env->tasks, catch_up_run, catch_up);
    }
}

/* --- a guest that has taken its time --- */

bool volumes_leave(const struct guest *guest)
{
    const GPtrArray *volumes = guest->record->volumes;
    for (guint i = 0; i < volumes->len; i++)
        if (((const struct guest_volume *)volumes->pdata[i])->leaving)
            return true;
    return false;
}

/* What is on record otherwise by now is not there any more either. */
static bool tell(struct guest *guest, const struct guest_volume *volume)
{
    struct node_core *node = guest->node;
    struct set_attachment_args args = {.instance = guest->record->instance,
                                       .generation = guest->record->generation,
                                       .volume = volume->volume,
                                       .attachment = volume->attachment,
                                       .clients = (char *)""};
    g_autoptr(GError) error = NULL;
    struct commit_result *result =
        env_call_record(node->env, NODE_MASTER, ROLE_WCONFD, "set_attachment", &args,
                        epoch_fence_stamp(node->fence), 0, TIMEOUT_QUICK_MS, &error);
    bool told = result || fettle_error_is(error, WRONG_STATE);
    commit_result_free(result);
    return told;
}

/* The first that is gone; the others are looked at next time. */
static void finish_locked(struct guest *guest)
{
    struct hypervisor *hv = guest->node->hv;
    const GPtrArray *volumes = guest->record->volumes;
    for (guint i = 0; i < volumes->len; i++) {
        const struct guest_volume *volume = volumes->pdata[i];
        bool gone = false;
        if (!volume->leaving ||
            !hv->ops->volume_detach(hv, guest->record->instance, guest->record->generation, volume,
                                    0, &gone, NULL))
            continue;
        if (!gone || !guest->live || !tell(guest, volume))
            continue;
        g_autofree char *fields = g_strdup_printf("INSTANCE=%s", guest->record->instance);
        log_info(fields, "the guest has given volume %s up", volume->volume);
        forget(guest, volume->attachment, NULL);
        return;
    }
}

void volumes_finish(struct guest *guest)
{
    if (!volumes_leave(guest) || guest->procedure.locked || guest->outgoing ||
        !guest_lock(guest, NULL, NULL))
        return;
    if (guest->live && guest->adopted && guest->record->phase == PHASE_STARTED)
        finish_locked(guest);
    guest_unlock(guest);
}

/* --- what the record gives it --- */

/* The first that the record of this very generation does not; NULL: none, or nobody has answered.
 */
static const char *first_refused(const struct guest *guest, const GPtrArray *volumes)
{
    g_autoptr(GPtrArray) items = g_ptr_array_new_with_free_func(g_free);
    guint64 generation = guest->record->generation;
    for (guint i = 0; i < volumes->len; i++) {
        const struct guest_volume *volume = volumes->pdata[i];
        const struct confirm_item item = {CONFIRM_ATTACH, guest->record->instance, generation,
                                          volume->attachment, 0};
        g_ptr_array_add(items, g_memdup2(&item, sizeof item));
    }
    struct confirm_answers *answers = confirm_ask(guest->node, items, NULL);
    const char *refused = NULL;
    for (guint i = 0; answers && i < volumes->len && !refused; i++) {
        const struct guest_volume *volume = volumes->pdata[i];
        const struct confirm_result *answer = answers->items->pdata[i];
        if (answer->answer == CONFIRM_REFUSED && answer->generation == generation &&
            !volume->leaving)
            refused = volume->volume;
    }
    confirm_answers_free(answers);
    return refused;
}

/* What is on its way, as a detach, is no more at the second question. */
void volumes_watch(struct guest *guest)
{
    gint64 now = guest->node->env->ops->boot_ms(guest->node->env);
    if (!guest->live || !guest->adopted || guest->outgoing || guest->procedure.locked ||
        now - guest->volumes_asked_ms < OWN_ASK_MS)
        return;
    g_autoptr(GPtrArray) volumes =
        g_ptr_array_new_with_free_func((GDestroyNotify)guest_volume_free);
    volumes_copy(volumes, guest->record->volumes);
    guest->volumes_asked_ms = now;
    const char *refused = volumes->len ? first_refused(guest, volumes) : NULL;
    if (task_killed())
        return;
    bool again = refused && strcmp(guest->doubted_volume, refused) == 0;
    if (again && !*guest->strange_volume) {
        g_autofree char *fields = g_strdup_printf("INSTANCE=%s", guest->record->instance);
        log_warning(fields, "the guest has volume %s open, which the record does not give it",
                    refused);
    }
    g_strlcpy(guest->strange_volume, again ? refused : "", sizeof guest->strange_volume);
    g_strlcpy(guest->doubted_volume, refused ? refused : "", sizeof guest->doubted_volume);
}

char *volumes_strange_text(const struct node_core *node)
{
    GHashTableIter iter;
    void *value;
    g_hash_table_iter_init(&iter, node->guests);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        const struct guest *guest = value;
        if (!guest->live || !*guest->strange_volume)
            continue;
        g_autofree char *name = guest_name(guest);
        return g_strdup_printf(
            "has volume %s open in the guest of %s, to which the record does not "
            "give it; stop that guest, and attach the volume anew",
            guest->strange_volume, name);
    }
    return NULL;
}
