/*
 * What must hold after every commit, of what is stored, as the engine's side knows it: what the
 * commit changes is compared with what was there before. See storage_sim.h.
 */
#include "storage_front.h"

#include <string.h>

#include "core/config/attachments.h"
#include "core/config/resource.h"
#include "proto/change.h"
#include "proto/storage/volume_driver.h"

struct commit {
    struct storage_world *storage;
    struct ms *ms;
    const char *id;
    guint64 serial;
    bool resets;
    const GPtrArray *changes;
};

#define WRONG(commit, format, ...)                                                                 \
    ms_problem((commit)->ms, "serial %" G_GUINT64_FORMAT ": " format, (commit)->serial, __VA_ARGS__)

static bool is_resource(const char *kind)
{
    return resource_type_named(kind) >= 0;
}

static const struct change *change_of(const struct commit *commit, const char *kind,
                                      const char *key)
{
    for (guint i = 0; i < commit->changes->len; i++) {
        const struct change *change = commit->changes->pdata[i];
        if (!strcmp(change->kind, kind) && !strcmp(change->key, key))
            return change;
    }
    return NULL;
}

/* --- the log --- */

void storage_tell(const struct storage_world *storage, const char *format, ...)
{
    if (!storage->log)
        return;
    va_list args;
    va_start(args, format);
    g_autofree char *text = g_strdup_vprintf(format, args);
    va_end(args);
    gint64 now = storage->ms->world ? ms_now(storage->ms) : 0;
    g_string_append_printf(storage->log, "[%" G_GINT64_FORMAT ".%" G_GINT64_FORMAT "] %s\n",
                           now / 1000, now / 100 % 10, text);
}

static char *service_name(const struct config *truth, guint64 id)
{
    const struct storage_service *service = config_storage_service_of(truth, id);
    return service ? config_storage_service_name(truth, service) : g_strdup("nobody");
}

static void tell_resource(const struct storage_world *storage, const struct resource *old,
                          const struct resource *new)
{
    const char *name = resource_name(new->exists ? new : old);
    if (!old->exists || strcmp(old->status, new->status) != 0)
        storage_tell(storage, "%s: %s -> %s", name, old->exists ? old->status : "-", new->status);
    if (old->exists && new->exists && strcmp(old->data, new->data) != 0)
        storage_tell(storage, "%s: %s", name, *new->data ? "has data" : "names its data no more");
}

static void tell_row(const struct storage_world *storage, const struct worker *old,
                     const struct worker *new)
{
    if (!old || !new || (old->claim == new->claim && old->service_id == new->service_id))
        return;
    struct resource resource = resource_of_row(storage->truth, new);
    g_autofree char *owner = service_name(storage->truth, new->service_id);
    g_autofree char *former = service_name(storage->truth, old->service_id);
    const char *name = resource_name(&resource);
    if (!*old->backend && *new->backend) {
        const struct backend *chosen = config_get(storage->truth, "backend", new->backend, NULL);
        storage_tell(storage, "%s: is handed on to %s", name, chosen->name);
        return;
    }
    if (!old->service_id)
        storage_tell(storage, "%s: taken by %s", name, owner);
    else if (new->claim != old->claim)
        storage_tell(storage, "%s: claimed by %s, to be cleaned for %s", name, owner, former);
    else
        storage_tell(storage, "%s: given back to %s", name, owner);
}

static void tell_service(const struct storage_world *storage, const struct storage_service *old,
                         const struct storage_service *new)
{
    const struct storage_service *any = new ? new : old;
    g_autofree char *name = config_storage_service_name(storage->truth, any);
    if (new && (!old || old->generation != new->generation))
        storage_tell(storage, "%s is registered", name);
    else if (old && new && old->state != new->state)
        storage_tell(storage, "%s is %s", name, new->state == STORAGE_DOWN ? "down" : "up again");
}

static void tell_cleanup(const struct storage_world *storage, const struct cleanup *old,
                         const struct cleanup *new)
{
    const struct cleanup *any = new ? new : old;
    g_autofree char *name = service_name(storage->truth, any->service_id);
    g_autofree char *by = service_name(storage->truth, any->by);
    if (!new)
        storage_tell(storage, "cleanup for %s is off record", name);
    else if (!old || old->state != new->state || old->by != new->by ||
             old->requested_us != new->requested_us)
        storage_tell(storage, "cleanup for %s is %s by %s%s", name,
                     enum_word(&cleanup_state_words, (int)new->state), by,
                     new->manual ? ", for a person" : "");
}

static void tell(const struct commit *commit, const char *kind, const void *old, const void *new)
{
    if (!strcmp(kind, "worker"))
        tell_row(commit->storage, old, new);
    else if (!strcmp(kind, "cleanup"))
        tell_cleanup(commit->storage, old, new);
    else if (!strcmp(kind, "storage_service"))
        tell_service(commit->storage, old, new);
}

/* --- who may --- */

static guint64 last_reset(const struct storage_world *storage, const char *uuid)
{
    const guint64 *serial = g_hash_table_lookup(storage->resets, uuid);
    return serial ? *serial : 0;
}

#define OTHER_DATA "other data"

/* Another row comes in its place, by force: a deletion. */
static bool is_forced(const struct change *change, const struct worker *row)
{
    const json_t *id = json_object_get(change->object, "id");
    return change->op == CHANGE_PUT && (guint64)json_integer_value(id) != row->id;
}

/* A person takes a request back that nobody has begun. */
static bool is_withdrawn(const struct commit *commit, const struct worker *row)
{
    g_autofree char *key = config_work_key(row->resource_type, row->resource_id);
    const struct change *change = change_of(commit, "worker", key);
    return !row->service_id && change && (change->op == CHANGE_DELETE || is_forced(change, row));
}

/* What a resource is says its row's owner, whose claim is later than the last reset, or a person,
 * or the request. */
static void check_cause(const struct commit *commit, const struct resource *resource,
                        const char *what)
{
    const struct worker *row = storage_row_of(commit->storage->truth, resource);
    const char *kind = resource_kind(resource->type);
    guint64 reset = last_reset(commit->storage, resource->uuid);
    if (commit->resets)
        return;
    if (!row)
        WRONG(commit, "%s of %s %s, on which nobody works", what, kind, resource->uuid);
    else if (!row->service_id && (!strcmp(what, OTHER_DATA) || !is_withdrawn(commit, row)))
        WRONG(commit, "%s of %s %s, whose work nobody has", what, kind, resource->uuid);
    else if (row->service_id && row->claim <= reset)
        WRONG(commit,
              "%s of %s %s under claim %" G_GUINT64_FORMAT ", which its reset at %" G_GUINT64_FORMAT
              " has ended",
              what, kind, resource->uuid, row->claim, reset);
}

/* --- resources --- */

static void check_data(const struct commit *commit, const struct resource *new)
{
    const struct fake_volumes *volumes = commit->storage->volumes;
    if (!*new->data || g_hash_table_contains(commit->storage->forsaken, new->data))
        return;
    if (!g_str_has_prefix(new->data, new->uuid))
        WRONG(commit, "%s %s names %s, which is another's", resource_kind(new->type), new->uuid,
              new->data);
    else if (g_hash_table_contains(commit->storage->beside, new->data))
        WRONG(commit, "%s %s names %s, of which a backup was made", resource_kind(new->type),
              new->uuid, new->data);
    else if (!fake_volumes_has(volumes, new->data))
        WRONG(commit, "%s %s names %s, which is not there", resource_kind(new->type), new->uuid,
              new->data);
    else if (!fake_volumes_whole(volumes, new->data))
        WRONG(commit, "%s %s names %s, which is not whole", resource_kind(new->type), new->uuid,
              new->data);
    else if (fake_volumes_bytes(volumes, new->data) < resource_full_bytes(new))
        WRONG(commit, "%s %s is larger on record than %s", resource_kind(new->type), new->uuid,
              new->data);
}

/* What was written to the source since the copy was asked for is in none that ended well (SAF-120).
 */
static void check_copy(const struct commit *commit, const struct worker *row,
                       const struct resource *new)
{
    const struct fake_volumes *volumes = commit->storage->volumes;
    struct storage_counts *counts = commit->storage->counts;
    const char *source = row && row->source ? row->source->data : NULL;
    bool restored = row && !strcmp(row->operation, "restore-backup");
    bool uploaded = row && !strcmp(row->operation, "upload-volume");
    if (restored || uploaded)
        source = resource_of_row(commit->storage->truth, row).data;
    if (!source || !fake_volumes_has(volumes, source))
        return;
    counts->copies++;
    counts->backups += new->type == RESOURCE_BACKUP;
    counts->restores += restored;
    counts->moves += resource_is_moved(row);
    counts->uploads += uploaded;
    counts->downloads += row->source && row->source->resource_type == RESOURCE_IMAGE;
    guint64 claim = row->claim;
    const guint64 *moment = g_hash_table_lookup(commit->storage->moments, &claim);
    if (fake_volumes_content(volumes, new->data) !=
        (moment ? *moment : fake_volumes_content(volumes, source)))
        WRONG(commit, "%s %s is no moment of its source %s", resource_kind(new->type), new->uuid,
              source);
}

/* It is known by what it has, and what its sender said (SAF-60). */
static void check_image(const struct commit *commit, const struct resource *new)
{
    const struct storage_world *storage = commit->storage;
    struct image_sums sums;
    fake_volumes_sums(fake_volumes_content(storage->volumes, new->data), &sums);
    if (strcmp(sums.os_hash_value, new->sum) != 0)
        WRONG(commit, "image %s is not known by what %s has", new->uuid, new->data);
    if (g_hash_table_contains(storage->lies, new->data))
        WRONG(commit, "image %s has what its sender has not sent", new->uuid);
    commit->storage->counts->images++;
}

static void check_named(const struct commit *commit, const struct resource *old,
                        const struct resource *new)
{
    const struct worker *row = storage_row_of(commit->storage->truth, new);
    g_autofree char *name = row ? volume_data_name(new->uuid, row->claim) : NULL;
    if (!strcmp(old->data, new->data))
        return;
    check_cause(commit, new, OTHER_DATA);
    if (*new->data && g_strcmp0(name, new->data) != 0)
        WRONG(commit, "%s %s names %s under claim %" G_GUINT64_FORMAT, resource_kind(new->type),
              new->uuid, new->data, row ? row->claim : 0);
    if (*new->data)
        check_copy(commit, row, new);
    if (*new->data &&new->type == RESOURCE_IMAGE)
        check_image(commit, new);
    if (!*old->data)
        return;
    g_autofree char *key = config_trash_key(old->backend, old->data);
    commit->storage->counts->unnamed++;
    if (!change_of(commit, "trash", key))
        WRONG(commit, "%s %s names %s no more, and that is no trash", resource_kind(new->type),
              new->uuid, old->data);
}

/* The commit begins work on it, or with it as the partner. */
static bool is_accepted(const struct commit *commit, const struct resource *resource)
{
    bool is = false;
    for (guint i = 0; i < commit->changes->len && !is; i++) {
        const struct change *change = commit->changes->pdata[i];
        if (strcmp(change->kind, "worker") != 0 || change->op != CHANGE_PUT ||
            config_get(commit->storage->truth, "worker", change->key, NULL))
            continue;
        struct worker *row =
            record_parse(object_record("worker"), change->object, RECORD_KEEP, NULL);
        is = (row->resource_type == resource->type && !strcmp(row->resource_id, resource->uuid)) ||
             (row->partner_type == resource->type && !strcmp(row->partner_id, resource->uuid));
        worker_free(row);
    }
    return is;
}

static void check_resource(const struct commit *commit, const struct resource *old,
                           const struct resource *new)
{
    check_named(commit, old, new);
    check_data(commit, new);
    bool waits = new->type == RESOURCE_IMAGE && !old->exists; /* for its bytes */
    if (strcmp(old->status, new->status) != 0 && !waits && !is_accepted(commit, new))
        check_cause(commit, new, "another status");
    if (old->exists && new->size < old->size &&new->type != RESOURCE_IMAGE)
        WRONG(commit, "%s %s is smaller than before", resource_kind(new->type), new->uuid);
}

static void check_gone(const struct commit *commit, const struct resource *old)
{
    check_cause(commit, old, "the end");
    if (*old->data)
        WRONG(commit, "%s %s is gone, and named %s", resource_kind(old->type), old->uuid,
              old->data);
}

/* --- rows --- */

static guint64 highest_stamp(const struct config *truth)
{
    guint64 highest = 0;
    g_autoptr(GPtrArray) rows = config_list(truth, "worker");
    g_autoptr(GPtrArray) services = config_list(truth, "storage_service");
    g_autoptr(GPtrArray) trash = config_list(truth, "trash");
    for (guint i = 0; i < rows->len; i++)
        highest = MAX(highest, ((const struct worker *)rows->pdata[i])->updated_us);
    for (guint i = 0; i < services->len; i++)
        highest =
            MAX(highest, ((const struct storage_service *)services->pdata[i])->state_since_us);
    for (guint i = 0; i < trash->len; i++)
        highest = MAX(highest, ((const struct trash *)trash->pdata[i])->since_us);
    g_autoptr(GPtrArray) cleanups = config_list(truth, "cleanup");
    for (guint i = 0; i < cleanups->len; i++)
        highest = MAX(highest, ((const struct cleanup *)cleanups->pdata[i])->requested_us);
    return highest;
}

/* Behind all that are on record, whatever the clock says. */
static void check_stamp(const struct commit *commit, const char *key, guint64 stamp)
{
    guint64 highest = highest_stamp(commit->storage->truth);
    if (stamp <= highest)
        WRONG(commit, "%s gets stamp %" G_GUINT64_FORMAT ", behind %" G_GUINT64_FORMAT, key, stamp,
              highest);
}

/* Somebody asked for it after the row was touched last, and of the one that claims it. */
static void check_stand_in(const struct commit *commit, const char *key, const struct worker *old,
                           const struct worker *new)
{
    g_autoptr(GPtrArray) all = config_list(commit->storage->truth, "cleanup");
    commit->storage->counts->stood_in++;
    for (guint i = 0; i < all->len; i++) {
        const struct cleanup *cleanup = all->pdata[i];
        if (cleanup->service_id == old->service_id && cleanup->by == new->service_id &&
            cleanup->requested_us > old->updated_us)
            return;
    }
    WRONG(commit, "%s is claimed for another service, and no cleanup asks for that", key);
}

static bool is_asked_up(const struct commit *commit, guint64 service)
{
    g_autoptr(GPtrArray) all = config_list(commit->storage->truth, "cleanup");
    for (guint i = 0; i < all->len; i++)
        if (((const struct cleanup *)all->pdata[i])->service_id == service &&
            ((const struct cleanup *)all->pdata[i])->is_up)
            return true;
    return false;
}

/* Its former owner is dead on record, or another process of its name is, also one that has got the
 * row back from who had claimed it: by its claim. */
static void check_dead(const struct commit *commit, const char *key, const struct worker *old,
                       guint64 version, const struct worker *new)
{
    const struct config *truth = commit->storage->truth;
    const struct storage_service *was = config_storage_service_of(truth, old->service_id);
    bool own = old->service_id == new->service_id;
    commit->storage->counts->claimed++;
    if (!own)
        check_stand_in(commit, key, old, new);
    if (was && own && was->generation <= MIN(version, old->claim))
        WRONG(commit, "%s is claimed to be cleaned by the process that works on it", key);
    if (was && !own && was->state != STORAGE_DOWN && !is_asked_up(commit, was->id))
        WRONG(commit, "%s is claimed to be cleaned, and its owner lives", key);
}

static void check_owner(const struct commit *commit, const char *key, const struct worker *old,
                        guint64 version, const struct worker *new)
{
    const struct storage_service *owner =
        config_storage_service_of(commit->storage->truth, new->service_id);
    if (new->claim != commit->serial)
        WRONG(commit, "%s gets claim %" G_GUINT64_FORMAT, key, new->claim);
    if (!owner || strcmp(owner->backend, new->backend) != 0)
        WRONG(commit, "%s is for another back end than its owner's", key);
    if (old->service_id)
        check_dead(commit, key, old, version, new);
    else
        commit->storage->counts->taken++;
}

static void check_row(const struct commit *commit, const char *key, const struct worker *old,
                      guint64 version, const struct worker *new)
{
    bool forced = old && old->id != new->id; /* another one in its place */
    if (forced && !g_str_has_prefix(new->operation, "delete-"))
        WRONG(commit, "%s takes the place of another", key);
    old = forced ? NULL : old;
    bool back = old && old->was_service_id && !new->was_service_id;
    if (!old && (new->id != commit->serial || new->service_id || new->claim))
        WRONG(commit, "%s does not begin with nobody", key);
    if (old && new->claim != old->claim)
        check_owner(commit, key, old, version, new);
    else if (old && !*old->backend && *new->backend)
        commit->storage->counts->handed_on++;
    else if (old && !back && new->service_id != old->service_id)
        WRONG(commit, "%s has another owner under the same claim", key);
    if (back && new->updated_us != old->was_updated_us)
        WRONG(commit, "%s goes back with another stamp than it had", key);
    if (!back)
        check_stamp(commit, key, new->updated_us);
    commit->storage->counts->given_back += back;
}

/* --- services, trash --- */

static void check_service(const struct commit *commit, const struct storage_service *old,
                          const struct storage_service *new)
{
    if (old && new->generation < old->generation)
        WRONG(commit, "service %s has an older generation than before", new->host);
    if (new->state == STORAGE_DOWN && old && old->state != STORAGE_DOWN)
        commit->storage->counts->down++;
    if (!old || old->state_since_us != new->state_since_us)
        check_stamp(commit, new->host, new->state_since_us);
}

static void check_trash_gone(const struct commit *commit, const struct trash *old)
{
    if (fake_volumes_has(commit->storage->volumes, old->name))
        WRONG(commit, "%s is trash no more, and still there", old->name);
}

/* --- calls that have become commits --- */

static void check_claim(const struct commit *commit, const json_t *item)
{
    const char *key = json_string_value(json_object_get(item, "key"));
    const json_t *claim = json_object_get(item, "claim");
    const json_t *version = json_object_get(item, "version");
    guint64 is = 0;
    const struct worker *row = config_get(commit->storage->truth, "worker", key, &is);
    if (!change_of(commit, "worker", key))
        return;
    if (claim && (!row || row->claim != (guint64)json_integer_value(claim)))
        WRONG(commit, "%s is written under claim %d; it has %d", key,
              (int)json_integer_value(claim), row ? (int)row->claim : 0);
    if (version && (guint64)json_integer_value(version) != is)
        WRONG(commit, "%s is claimed as it was at %d; it is at %d", key,
              (int)json_integer_value(version), (int)is);
}

static void check_asked(const struct commit *commit)
{
    const json_t *args =
        commit->id ? g_hash_table_lookup(commit->storage->asked, commit->id) : NULL;
    size_t i;
    json_t *item;
    json_array_foreach(json_object_get(args, "items"), i, item)
        check_claim(commit, item);
    if (json_object_get(args, "key") && json_object_get(args, "claim"))
        check_claim(commit, args);
}

/* --- a commit --- */

static bool is_ours(const char *kind)
{
    static const char *const kinds[] = {
        "cluster", "backend", "storage_service", "worker", "volume",       "snapshot", "backup",
        "trash",   "cleanup", "instance",        "image",  "repair_brake", NULL};
    return g_strv_contains(kinds, kind);
}

/* A guest that began, ended or let go meanwhile spoils a copy that is no point in time. */
static bool is_spoilt(const struct commit *commit, const struct worker *row)
{
    guint64 generation = 0;
    if (!row->source || commit->resets || row->was_service_id)
        return false;
    const char *attachment = attachment_of_source(commit->storage->truth, row->source, &generation);
    return strcmp(attachment, row->source->attachment) != 0 ||
           generation != row->source->generation;
}

static void check_end(const struct commit *commit, const char *kind, const void *old)
{
    if (!strcmp(kind, "trash") && old)
        check_trash_gone(commit, old);
    if (strcmp(kind, "worker") != 0 || !old)
        return;
    commit->storage->counts->cleaned +=
        ((const struct worker *)old)->was_service_id && !commit->resets;
    commit->storage->counts->torn += is_spoilt(commit, old);
}

/* Another request has another stamp, behind all that were there. */
static void check_cleanup(const struct commit *commit, const char *key, const struct cleanup *old,
                          const struct cleanup *new)
{
    if (old && old->requested_us == new->requested_us)
        return;
    commit->storage->counts->cleanups++;
    check_stamp(commit, key, new->requested_us);
}

/* What a guest has, or may open, stays where and what it is (SAF-53, 57). */
static void check_attached(const struct commit *commit, const struct volume *old,
                           const struct volume *new)
{
    if (!old || !old->attachments->len)
        return;
    if (!new || strcmp(old->data, new->data) != 0 || strcmp(old->backend, new->backend) != 0)
        WRONG(commit, "volume %s is attached, and its data changes", old->uuid);
    else if (commit->resets && new->status != VOLUME_AVAILABLE)
        WRONG(commit, "volume %s is attached, and is reset", old->uuid);
}

/* `new` NULL: it goes. */
static void check_one(const struct commit *commit, const char *kind, const char *key,
                      const void *new_record)
{
    enum resource_type type = resource_type_of(kind);
    if (type == RESOURCE_VOLUME)
        check_attached(commit, config_get(commit->storage->truth, kind, key, NULL), new_record);
    const struct resource old = resource_of(commit->storage->truth, type, key);
    struct resource new = resource_read(type, new_record);
    if (new.exists)
        check_resource(commit, &old, &new);
    else if (old.exists)
        check_gone(commit, &old);
    if (old.exists || new.exists)
        tell_resource(commit->storage, &old, &new);
}

static void check_change(const struct commit *commit, const struct change *change)
{
    guint64 version = 0;
    const void *old = config_get(commit->storage->truth, change->kind, change->key, &version);
    if (change->op == CHANGE_DELETE && is_resource(change->kind)) {
        check_one(commit, change->kind, change->key, NULL);
        return;
    }
    if (change->op == CHANGE_DELETE) {
        check_end(commit, change->kind, old);
        tell(commit, change->kind, old, NULL);
        return;
    }
    const struct record *record = object_record(change->kind);
    void *new = record_parse(record, change->object, RECORD_KEEP, NULL);
    if (is_resource(change->kind))
        check_one(commit, change->kind, change->key, new);
    else if (!strcmp(change->kind, "worker"))
        check_row(commit, change->key, old, version, new);
    else if (!strcmp(change->kind, "cleanup"))
        check_cleanup(commit, change->key, old, new);
    else if (!strcmp(change->kind, "storage_service"))
        check_service(commit, old, new);
    tell(commit, change->kind, old, new);
    record_free(record, new);
}

/* The status of a row of work, or of its partner, is a tracked one. */
static bool is_tracked(const struct resource *resource)
{
    enum task_kind kind = resource_task_kind(resource->type);
    for (const struct work_row *row = work_rows; row->status; row++)
        if ((row->kind == kind && !strcmp(row->status, resource->status)) ||
            (row->partner_status && row->partner_kind == kind &&
             !strcmp(row->partner_status, resource->status)))
            return true;
    return false;
}

/* A resource in a tracked status has its row. */
static void check_tracked(const struct commit *commit, const struct resource *resource)
{
    const struct worker *row = storage_row_of(commit->storage->truth, resource);
    bool own =
        row && row->resource_type == resource->type && !strcmp(row->resource_id, resource->uuid);
    if (!row && g_hash_table_contains(commit->storage->left, resource->uuid))
        return;
    if (resource->exists && is_tracked(resource) &&
        (!row || (own && strcmp(row->status, resource->status) != 0)))
        WRONG(commit, "%s %s is %s, and no row says so", resource_kind(resource->type),
              resource->uuid, resource->status);
}

static void check_tracked_after(const struct commit *commit, const struct change *change)
{
    const struct config *truth = commit->storage->truth;
    bool row = !strcmp(change->kind, "worker");
    if (!row && !is_resource(change->kind))
        return;
    g_auto(GStrv) words = row ? g_strsplit(change->key, "/", 2) : NULL;
    int type = row ? enum_parse(&resource_type_words, words[0]) : resource_type_named(change->kind);
    struct resource resource =
        resource_of(truth, (enum resource_type)type, row ? words[1] : change->key);
    check_tracked(commit, &resource);
}

static void apply(const struct commit *commit, const struct change *change)
{
    struct change stored = *change;
    stored.version = commit->serial;
    config_apply(commit->storage->truth, &stored, NULL);
}

static void note_reset(const struct commit *commit)
{
    for (guint i = 0; i < commit->changes->len; i++) {
        const struct change *change = commit->changes->pdata[i];
        if (!is_resource(change->kind))
            continue;
        struct resource resource =
            resource_of(commit->storage->truth, resource_type_of(change->kind), change->key);
        commit->storage->counts->resets++;
        commit->storage->counts->resets_in_work +=
            storage_row_of(commit->storage->truth, &resource) != NULL;
        g_hash_table_replace(commit->storage->resets, g_strdup(change->key),
                             g_memdup2(&commit->serial, sizeof commit->serial));
    }
}

/* SAF-122. */
static void check_held(const struct commit *commit)
{
    const struct config *truth = commit->storage->truth;
    bool held = commit->id && storage_is_held(commit->storage) && !commit->resets &&
                !change_of(commit, "repair_brake", "cluster");
    for (guint i = 0; held && i < commit->changes->len; i++) {
        const struct change *change = commit->changes->pdata[i];
        if (!storage_may_hold(truth, change))
            WRONG(commit, "%s %s changes before anybody says continue", change->kind, change->key);
    }
}

/* Nobody works any more on what rows of before a restore were about, until recovery, or a person,
 * has said what it is. */
static void note_left(const struct commit *commit)
{
    g_autoptr(GPtrArray) rows = config_list(commit->storage->truth, "worker");
    for (guint i = 0; i < rows->len; i++) {
        const struct worker *row = rows->pdata[i];
        g_hash_table_add(commit->storage->left, g_strdup(row->resource_id));
        g_hash_table_add(commit->storage->left, g_strdup(row->partner_id));
    }
}

void storage_committed(struct ms *ms, const char *id, guint64 serial, const GPtrArray *changes)
{
    struct storage_world *storage = storage_of(ms);
    const struct commit commit = {.storage = storage,
                                  .ms = ms,
                                  .id = id,
                                  .serial = serial,
                                  .resets = id && g_hash_table_contains(storage->reset_ids, id),
                                  .changes = changes};
    check_asked(&commit);
    check_held(&commit);
    if (commit.resets)
        note_reset(&commit);
    bool continues = storage_is_held(storage) && change_of(&commit, "repair_brake", "cluster");
    if (continues)
        note_left(&commit);
    for (guint i = 0; id && i < changes->len; i++)
        if (is_ours(((const struct change *)changes->pdata[i])->kind))
            check_change(&commit, changes->pdata[i]);
    if (storage->fronts)
        storage_fronts_before(storage, id, serial, changes);
    for (guint i = 0; i < changes->len; i++)
        if (is_ours(((const struct change *)changes->pdata[i])->kind))
            apply(&commit, changes->pdata[i]);
    if (storage->fronts)
        storage_fronts_after(storage, serial, commit.resets, changes);
    if (continues && config_count(storage->truth, "worker"))
        WRONG(&commit, "%s stays behind continue", "a row of before the restore");
    for (guint i = 0; i < changes->len; i++)
        check_tracked_after(&commit, changes->pdata[i]);
    if (storage_has_guests(ms))
        storage_guests_check(storage);
}

/* --- commits are lost --- */

static void load_object(const char *kind, const char *key, guint64 version, json_t *object,
                        void *loading)
{
    if (is_ours(kind))
        config_load_object(kind, key, version, object, loading);
}

/* What is lost had taken the name away. */
static void forsake(struct storage_world *storage, const struct config *lost,
                    const struct resource *is)
{
    struct resource was = resource_of(lost, is->type, is->uuid);
    if (!*is->data || fake_volumes_has(storage->volumes, is->data) ||
        g_hash_table_contains(storage->forsaken, is->data))
        return;
    if (!strcmp(was.data, is->data))
        ms_problem(storage->ms, "%s is not there, and was named all the time", is->data);
    storage->counts->lost_late++;
    g_hash_table_add(storage->forsaken, g_strdup(is->data));
}

static gboolean is_lost(void *key, void *serial, void *ms)
{
    return !ms_commit_at(ms, *(const guint64 *)serial);
}

/* What was removed when a commit that is lost by now had said so is named again (SAF-53). */
void storage_reloaded(struct ms *ms, const struct model_store *store)
{
    struct storage_world *storage = storage_of(ms);
    guint64 digest = config_digest(storage->truth);
    struct config_loading loading = {.config = config_new()};
    model_store_each(store, load_object, &loading);
    struct config *before = storage->truth;
    storage->truth = loading.config;
    if (config_digest(storage->truth) == digest) {
        config_free(before);
        return;
    }
    struct storage_loss *loss = g_new(struct storage_loss, 1);
    *loss = (struct storage_loss){ms_now(ms), before};
    g_ptr_array_add(storage->losses, loss);
    g_hash_table_foreach_remove(storage->resets, is_lost, ms);
    if (storage_has_guests(ms))
        storage_guests_reloaded(storage);
    if (storage->fronts)
        storage_fronts_lost(storage);
    for (guint type = 0; resource_type_words.words[type]; type++) {
        g_autoptr(GPtrArray) all = config_list(storage->truth, resource_kind(type));
        for (guint i = 0; i < all->len; i++) {
            struct resource is = resource_read(type, all->pdata[i]);
            forsake(storage, before, &is);
        }
    }
}
