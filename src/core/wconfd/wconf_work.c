/*
 * Requests for work on what is stored (docs/design/storage.md). A request is one commit: the
 * resource in its status meanwhile, and its row, with nobody yet. Nothing is sent to anybody:
 * members follow the changes. What may be asked for in which status says the table
 * (proto/tasks.def) alone.
 */
#include <string.h>

#include "core/config/attachments.h"
#include "core/config/usage.h"
#include "core/storage/volume_choose.h"
#include "core/wconfd/wconf_work_private.h"
#include "proto/change.h"

/* --- accept_work --- */

static const struct work_row *find_work(const struct wconf *wconf,
                                        const struct accept_work_args *args, GError **error)
{
    enum task_kind kind = resource_task_kind(args->resource_type);
    const struct work_row *row = work_row_of(wconf->work_table, kind, args->operation);
    g_autoptr(GString) words = g_string_new(NULL);
    if (row)
        return row;
    for (row = wconf->work_table; row->status; row++)
        if (row->kind == kind)
            g_string_append_printf(words, "%s%s", words->len ? ", " : "",
                                   task_operation_words[row->operation]);
    fettle_set_error(error, WRONG_INPUT, "operation: there is no \"%s\" of %s %s; there is %s",
                     args->operation, resource_article(args->resource_type),
                     enum_word(&resource_type_words, (int)args->resource_type), words->str);
    return NULL;
}

/* Which stays when the row is gone, for who looks for it then, and for who sends an image again. */
static void say_request(const struct accept_work_args *args, struct change *put)
{
    json_object_set_new(put->object, "request_id", json_string(args->request_id));
    if (args->promised)
        json_object_set_new(put->object, "promised", json_integer(args->promised));
}

/* The row's partner in its status meanwhile (SAF-121); one that is not there yet is made. */
static void add_partner(struct wconf *wconf, const struct accept_work_args *args,
                        const struct work_row *work, struct resource *partner, struct worker *row,
                        GPtrArray *changes)
{
    if (!*partner->uuid)
        return;
    row->partner_type = partner->type;
    text_set(&row->partner_id, partner->uuid);
    if (!partner->exists)
        partner->created_us = row->created_us;
    partner->status = work->partner_status;
    partner->status_why = "";
    g_ptr_array_add(changes, resource_put(wconf->head, partner));
    say_request(args, changes->pdata[changes->len - 1]);
    if (!partner->exists)
        wconf_work_say(args, partner->type, NULL, changes->pdata[changes->len - 1]);
}

/* Whose guest may write, and in which of its lives (SAF-120). */
static void note_guest(const struct config *head, struct work_source *source)
{
    guint64 generation;
    const char *attachment = attachment_of_source(head, source, &generation);
    text_set(&source->attachment, attachment);
    source->generation = generation;
}

static void add_work(struct wconf *wconf, const struct accept_work_args *args,
                     const struct work_row *work, struct work_request *request, GPtrArray *changes)
{
    guint64 stamp = wconf_stamp(wconf);
    record_autoptr(worker) row = worker_new();
    struct resource *resource = &request->resource;
    const struct resource *source = &request->source;
    resource->status = work->status;
    resource->status_why = "";
    if (!work->from)
        resource->created_us = stamp;
    row->id = wconf_work_serial(wconf);
    row->created_us = row->updated_us = stamp;
    row->resource_type = resource->type;
    text_set(&row->resource_id, resource->uuid);
    text_set(&row->operation, task_operation_words[work->operation]);
    text_set(&row->status, work->status);
    text_set(&row->backend, request->backend);
    text_set(&row->volume_type, request->volume_type);
    text_set(&row->request_id, args->request_id);
    row->size = work->operation == TASK_OPERATION_EXTEND_VOLUME ? args->size : 0;
    if (source->exists) {
        row->source = work_source_new();
        row->source->resource_type = source->type;
        text_set(&row->source->resource_id, source->uuid);
        text_set(&row->source->data, source->data);
        note_guest(wconf->head, row->source);
    }
    g_ptr_array_add(changes, resource_put(wconf->head, resource));
    say_request(args, changes->pdata[changes->len - 1]);
    if (!work->from)
        wconf_work_say(args, resource->type, source, changes->pdata[changes->len - 1]);
    add_partner(wconf, args, work, &request->partner, row, changes);
    wconf_work_put_row(wconf, row, changes);
}

/* --- work that ends before its time --- */

#define RESET_WITH "a person has reset what it was worked on with"

/* Work of another one that holds it as its partner ends with it (SAF-121). */
static void end_partners(struct wconf *wconf, const struct resource *partner, GPtrArray *changes)
{
    g_autoptr(GPtrArray) rows = config_held_work(wconf->head, partner->type, partner->uuid);
    for (guint i = 0; i < rows->len; i++) {
        const struct worker *row = rows->pdata[i];
        const struct work_row *work = wconf_work_row(wconf, row);
        struct resource resource = resource_of_row(wconf->head, row);
        g_autofree char *key = config_work_key(row->resource_type, row->resource_id);
        if (strcmp(row->partner_id, partner->uuid) != 0)
            continue;
        g_ptr_array_add(changes, config_delete(wconf->head, "worker", key));
        if (!work || strcmp(resource.status, row->status) != 0)
            continue;
        resource.status = task_final_words[work->cleaned];
        resource.status_why = RESET_WITH;
        g_ptr_array_add(changes, resource_put(wconf->head, &resource));
    }
}

/* The work on it ends, and what it was worked on with is released. */
static void end_work_on(struct wconf *wconf, const struct resource *resource,
                        const struct worker *row, GPtrArray *changes)
{
    if (row) {
        struct resource partner = resource_partner(wconf->head, row);
        wconf_work_release(wconf, row, &partner, RESET_WITH, changes);
    }
    end_partners(wconf, resource, changes);
}

/* What is done to it ends with the row that this puts in its place: nobody's late word counts any
 * more (CLN-65). */
static void force(struct wconf *wconf, const struct resource *old, GPtrArray *changes)
{
    const char *kind = resource_kind(old->type), *name = resource_name(old);
    g_autofree char *key = config_work_key(old->type, old->uuid);
    const struct worker *row = config_get(wconf->head, "worker", key, NULL);
    end_work_on(wconf, old, row, changes);
    if (old->type == RESOURCE_VOLUME)
        wconf_work_unreserve(changes->pdata[0]);
    if (!row)
        return;
    struct decision *decision =
        decision_about(kind, old->uuid, name, "person", VERDICT_ACT, "Forced");
    decision_set(&decision->summary,
                 "A person has deleted %s %s by force, and that ended the work on it.", kind, name);
    g_ptr_array_add(decision->evidence, wconf_work_said(wconf, row));
    wconf_decide(wconf, decision, changes);
}

/* Its snapshots, each by a row of its own; one that is being deleted already has one. */
static bool add_snapshots(struct wconf *wconf, const struct accept_work_args *args,
                          const struct resource *volume, GPtrArray *changes, GError **error)
{
    static const char *const operation = "delete-snapshot";
    const struct work_row *work = work_row_of(wconf->work_table, TASK_KIND_snapshot, operation);
    g_autoptr(GPtrArray) snapshots = config_volume_snapshots(wconf->head, volume->uuid);
    for (guint i = 0; i < snapshots->len && work; i++) {
        struct work_request about = wconf_work_request();
        about.resource = resource_read(RESOURCE_SNAPSHOT, snapshots->pdata[i]);
        about.backend = about.resource.backend;
        g_autofree char *key = config_work_key(RESOURCE_SNAPSHOT, about.resource.uuid);
        const struct worker *row = config_get(wconf->head, "worker", key, NULL);
        if (!args->force && row && !strcmp(row->operation, operation))
            continue;
        if (!(args->force ? wconf_work_may_force(wconf->head, work, &about.resource, false, error)
                          : wconf_work_may_begin(wconf->head, work, &about.resource, error)))
            return false;
        add_work(wconf, args, work, &about, changes);
        if (args->force)
            force(wconf, &about.resource, changes);
    }
    return true;
}

/* Who asked for it has thought better of it: nobody has begun. */
static void withdraw(struct wconf *wconf, const struct resource *resource, GPtrArray *changes)
{
    g_autofree char *key = config_work_key(resource->type, resource->uuid);
    const struct worker *row = config_get(wconf->head, "worker", key, NULL);
    struct resource partner = resource_partner(wconf->head, row);
    wconf_work_release(wconf, row, &partner, "it was withdrawn", changes);
    g_ptr_array_add(changes, config_delete(wconf->head, "worker", key));
    g_ptr_array_add(changes,
                    config_delete(wconf->head, resource_kind(resource->type), resource->uuid));
}

static void accept(struct wconf *wconf, struct rpc_request *request,
                   const struct accept_work_args *args, const struct work_row *work,
                   struct work_request *about)
{
    GError *error = NULL;
    GPtrArray *changes = change_list_new();
    if (about->withdrawn)
        withdraw(wconf, &about->resource, changes);
    else if (about->at_once)
        g_ptr_array_add(changes, resource_put(wconf->head, &about->resource));
    else
        add_work(wconf, args, work, about, changes);
    if (args->force && !about->withdrawn)
        force(wconf, &about->resource, changes);
    if (args->cascade && !about->withdrawn &&
        !add_snapshots(wconf, args, &about->resource, changes, &error)) {
        g_ptr_array_unref(changes);
        wconf_work_refuse(wconf, request, error);
        return;
    }
    const struct accepted_work accepted = {.resource = (char *)about->resource.uuid,
                                           .serial = wconf_work_serial(wconf)};
    json_autoptr answer = accepted_work_to_json(&accepted);
    wconf_work_commit(wconf, request, args->commit_id, changes, answer);
}

/* UUID of the resource of that type that has got a row with that serial; NULL: none has. */
static const char *resource_in(GPtrArray *keys, enum resource_type type)
{
    g_autofree char *start = config_work_key(type, "");
    for (guint i = 0; i < keys->len; i++)
        if (g_str_has_prefix(keys->pdata[i], start))
            return (const char *)keys->pdata[i] + strlen(start);
    return NULL;
}

/* The answer was lost. Which resource it was, that may be gone by now, says the log; and if that
 * has gone on, the request itself. */
static void accepted_before(struct wconf *wconf, struct rpc_request *request,
                            const struct accept_work_args *args, const struct work_row *work,
                            guint64 serial)
{
    GError *error = NULL;
    g_autoptr(GPtrArray) keys = wconf_stream_keys(wconf, serial, "worker");
    struct resource resource =
        resource_find(wconf->head, args->resource_type, args->resource, NULL);
    const char *of_row = resource_in(keys, args->resource_type);
    const char *uuid = work && !work->from                      ? args->commit_id
                       : of_row                                 ? of_row
                       : g_uuid_string_is_valid(args->resource) ? args->resource
                       : resource.exists                        ? resource.uuid
                                                                : NULL;
    if (uuid) {
        const struct accepted_work accepted = {.resource = (char *)uuid, .serial = serial};
        wconf_answer_when_stored(wconf, serial, request, accepted_work_to_json(&accepted));
        return;
    }
    fettle_set_error(&error, UNKNOWN_ENTITY,
                     "%s \"%s\" does not exist; the request was accepted as %" G_GUINT64_FORMAT
                     " before, and may be done",
                     resource_kind(resource.type), args->resource, serial);
    wconf_work_refuse(wconf, request, error);
}

/* What is made, or grows, and by how much. Of a backup nobody knows before what it takes; an image
 * takes what its volume has at most. */
static guint64 more_gib(const struct accept_work_args *args, const struct work_request *about,
                        const struct resource **ret_what)
{
    const struct resource *resource = &about->resource, *partner = &about->partner;
    *ret_what = !partner->exists && partner->size ? partner : resource;
    if (!(*ret_what)->exists)
        return (*ret_what)->type == RESOURCE_BACKUP ? 0 : (*ret_what)->size;
    return resource->type == RESOURCE_VOLUME && args->size > resource->size
               ? args->size - resource->size
               : 0;
}

/* Whether it is a backup of what a guest may write to: it is made of a copy beside that. */
static bool needs_point(const struct config *head, const struct work_request *about)
{
    return about->resource.type == RESOURCE_BACKUP && !about->resource.exists &&
           about->source.type == RESOURCE_VOLUME &&
           attachment_may_run(head, config_get(head, "volume", about->source.uuid, NULL));
}

/* The back end's view of that. What is restored over a volume, or moved, is made beside what it
 * has. */
static guint64 room_gib(const struct config *head, const struct accept_work_args *args,
                        const struct work_request *about, const char **ret_backend,
                        guint64 *ret_size)
{
    const struct resource *resource = &about->resource, *partner = &about->partner, *what = NULL;
    guint64 more = more_gib(args, about, &what);
    bool restores = resource->type == RESOURCE_BACKUP && resource->exists && partner->exists;
    bool moves = about->source.exists && !strcmp(about->source.uuid, resource->uuid);
    if (needs_point(head, about)) {
        *ret_backend = about->source.backend;
        *ret_size = 0;
        return about->source.size;
    }
    what = restores ? partner : what;
    *ret_backend = moves ? about->backend : what->backend;
    *ret_size = restores || moves || !what->exists ? what->size : what->size + more;
    return restores || moves ? what->size : more;
}

/* Of a back end that is known already; for what has none yet a scheduler chooses one that has it.
 */
static bool has_room(struct wconf *wconf, const struct accept_work_args *args,
                     const struct work_request *about, GError **error)
{
    const char *uuid = "";
    guint64 size = 0, more = room_gib(wconf->head, args, about, &uuid, &size);
    const struct backend *backend = config_get(wconf->head, "backend", uuid, NULL);
    if (!backend || !more)
        return true;
    record_autoptr(backend_space) space = wconf_services_space(wconf, backend->uuid);
    bool has = volume_has_room(wconf->head, backend, space, size, more, error);
    if (!has)
        wconf_services_doubt(wconf, backend->uuid);
    return has;
}

static bool has_quota(const struct wconf *wconf, const struct accept_work_args *args,
                      const struct work_request *about, GError **error)
{
    const struct resource *what = NULL;
    guint64 more = more_gib(args, about, &what);
    if (!args->quota)
        return true;
    if (!*what->project) {
        fettle_set_error(error, WRONG_INPUT, "quota: %s is no project's",
                         what->exists ? resource_name(what) : "what is made");
        return false;
    }
    bool backs_up = what->type == RESOURCE_BACKUP && !what->exists;
    bool of_volume = what->type == RESOURCE_VOLUME && more;
    const struct usage usage = {.volumes = !what->exists && what->type == RESOURCE_VOLUME,
                                .snapshots = !what->exists && what->type == RESOURCE_SNAPSHOT,
                                .backups = backs_up,
                                .backup_gigabytes = backs_up ? what->size : 0,
                                .per_volume_gigabytes =
                                    of_volume ? (what->exists ? args->size : more) : 0,
                                .gigabytes = what->type == RESOURCE_IMAGE ? 0 : more};
    return usage_fits(wconf->head, what->project, args->quota, &usage, error);
}

static void accept_work(struct wconf *wconf, struct rpc_request *request,
                        const struct accept_work_args *args)
{
    GError *error = NULL;
    guint64 serial = 0;
    if (wconf_work_again(wconf, request, args->commit_id, &serial))
        return;
    const struct work_row *work = find_work(wconf, args, serial ? NULL : &error);
    if (serial) {
        accepted_before(wconf, request, args, work, serial);
        return;
    }
    struct work_request about = wconf_work_request();
    if (work && wconf_work_allowed(wconf, &error) &&
        (work->from ? wconf_work_find(wconf->head, work, args, &about, &error)
                    : wconf_work_make(wconf->head, args, &about, &error)) &&
        has_quota(wconf, args, &about, &error) && has_room(wconf, args, &about, &error))
        accept(wconf, request, args, work, &about);
    else
        wconf_work_refuse(wconf, request, error);
}

void wconf_handle_accept_work(struct wconf *wconf, struct rpc_request *request)
{
    g_autoptr(GError) error = NULL;
    record_autoptr(accept_work_args) args =
        rpc_request_args(request, &accept_work_args_record, &error);
    if (!args) {
        rpc_fail(request, error);
        return;
    }
    /* Front ends of the version before do not say it, and their clients repeat the rest as well. */
    if (!args->promised && !strcmp(request->from_role, ROLE_APID) &&
        !strcmp(args->operation, task_operation_words[TASK_OPERATION_SAVE_IMAGE]))
        args->promised = -1;
    accept_work(wconf, request, args);
}

/* --- reset_state --- */

static const struct {
    enum task_kind kind;
    const char *word;
} settled[] = {
#define SETTLED(kind, FINAL, word) {TASK_KIND_##kind, word},
#include "proto/tasks.def"
};

bool wconf_work_settled(const struct resource *resource, const char *status)
{
    for (guint i = 0; i < G_N_ELEMENTS(settled); i++)
        if (settled[i].kind == resource_task_kind(resource->type) &&
            !strcmp(settled[i].word, status))
            return true;
    return false;
}

static const char *const of_attachments[] = {"attaching", "detaching", "reserved", "in-use", NULL};

static bool may_be(const struct resource *resource, const char *status, GError **error)
{
    const char *kind = resource_kind(resource->type);
    const char *ready = resource_ready_status(resource->type);
    const char *failed = resource_error_status(resource->type);
    if (!strcmp(status, ready) && !*resource->data) {
        fettle_set_error(error, WRONG_STATE, "%s %s has no data; it can be %s or be deleted", kind,
                         resource_name(resource), failed);
        return false;
    }
    if (!strcmp(status, task_final_words[TASK_FINAL_QUEUED]) && *resource->data) {
        fettle_set_error(error, WRONG_STATE, "%s %s has data; it can be %s or %s, or be deleted",
                         kind, resource_name(resource), ready, failed);
        return false;
    }
    if (wconf_work_settled(resource, status))
        return true;
    g_autoptr(GString) words = g_string_new(NULL);
    for (guint i = 0; i < G_N_ELEMENTS(settled); i++) {
        if (settled[i].kind != resource_task_kind(resource->type))
            continue;
        g_string_append_printf(words, "%s%s", words->len ? ", " : "", settled[i].word);
    }
    if (resource->type == RESOURCE_VOLUME && g_strv_contains(of_attachments, status))
        fettle_set_error(error, WRONG_INPUT,
                         "status: %s is what an attachment says; a volume can be set to %s", status,
                         words->str);
    else
        fettle_set_error(error, WRONG_INPUT, "status: %s %s can be set to %s, not to \"%s\"",
                         resource_article(resource->type), kind, words->str, status);
    return false;
}

static void decide_reset(struct wconf *wconf, const struct resource *old, const char *status,
                         const struct worker *row, GPtrArray *changes)
{
    const char *kind = resource_kind(old->type), *name = resource_name(old);
    struct decision *decision =
        decision_about(kind, old->uuid, name, "person", VERDICT_ACT, "Reset");
    decision_set(&decision->summary, "A person has set the state of %s %s from %s to %s%s.", kind,
                 name, old->status, status, row ? ", and that ended the work on it" : "");
    decision_set(&decision->old, "%s", old->status);
    decision_set(&decision->new, "%s", status);
    if (row)
        g_ptr_array_add(decision->evidence, wconf_work_said(wconf, row));
    wconf_decide(wconf, decision, changes);
}

static void reset(struct wconf *wconf, struct rpc_request *request,
                  const struct reset_state_args *args, const struct resource *old)
{
    GPtrArray *changes = change_list_new();
    struct resource resource = *old;
    g_autofree char *key = config_work_key(args->resource_type, old->uuid);
    const struct worker *row = config_get(wconf->head, "worker", key, NULL);
    resource.status = args->status;
    resource.status_why = resource_is_ready(&resource) ? "" : "set by a person";
    g_ptr_array_add(changes, resource_put(wconf->head, &resource));
    if (resource.type == RESOURCE_VOLUME)
        wconf_work_unreserve(changes->pdata[changes->len - 1]);
    if (row)
        g_ptr_array_add(changes, config_delete(wconf->head, "worker", key));
    end_work_on(wconf, old, row, changes);
    decide_reset(wconf, old, args->status, row, changes);
    wconf_work_commit(wconf, request, args->commit_id, changes, NULL);
}

/* The row that is named, if one is. */
static bool is_there(const struct wconf *wconf, const struct reset_state_args *args,
                     const struct resource *resource, GError **error)
{
    g_autofree char *key = config_work_key(args->resource_type, resource->uuid);
    const struct worker *row = config_get(wconf->head, "worker", key, NULL);
    if (!args->row || (row && row->id == args->row))
        return true;
    fettle_set_error(error, REFUSED, "%s %s: its work %" G_GUINT64_FORMAT " has ended",
                     resource_kind(resource->type), resource_name(resource), args->row);
    return false;
}

void wconf_handle_reset_state(struct wconf *wconf, struct rpc_request *request)
{
    GError *error = NULL;
    record_autoptr(reset_state_args) args =
        rpc_request_args(request, &reset_state_args_record, &error);
    if (args && wconf_answer_repeated(wconf, args->commit_id, request))
        return;
    struct resource resource =
        args ? resource_find(wconf->head, args->resource_type, args->resource, &error)
             : resource_read(RESOURCE_VOLUME, NULL);
    const struct volume *volume = resource.type == RESOURCE_VOLUME && resource.exists
                                      ? config_get(wconf->head, "volume", resource.uuid, NULL)
                                      : NULL;
    if (resource.exists && is_there(wconf, args, &resource, &error) &&
        may_be(&resource, args->status, &error) &&
        (!volume || !attachment_of(volume) || attachment_need_none(wconf->head, volume, &error)))
        reset(wconf, request, args, &resource);
    else
        wconf_work_refuse(wconf, request, error);
}

/* --- what is said of one that is made --- */

static void say_all(json_t *object, const char *field, const GPtrArray *words)
{
    json_t *list = json_array();
    for (guint i = 0; i < words->len; i++)
        json_array_append_new(list, json_string(words->pdata[i]));
    json_object_set_new(object, field, list);
}

void wconf_work_say(const struct accept_work_args *args, enum resource_type type,
                    const struct resource *source, struct change *change)
{
    if (type == RESOURCE_IMAGE)
        return;
    json_object_set_new(change->object, "user", json_string(args->user));
    say_all(change->object, "metadata", args->metadata);
    if (type == RESOURCE_BACKUP && source && source->type == RESOURCE_SNAPSHOT)
        json_object_set_new(change->object, "snapshot_id", json_string(source->uuid));
    if (type != RESOURCE_VOLUME)
        return;
    say_all(change->object, "image_metadata", args->image_metadata);
    json_object_set_new(change->object, "bootable", json_boolean(args->bootable));
    if (source && (source->type == RESOURCE_SNAPSHOT || source->type == RESOURCE_VOLUME))
        json_object_set_new(change->object,
                            source->type == RESOURCE_VOLUME ? "from_volume" : "from_snapshot",
                            json_string(source->uuid));
}

/* --- change_volume, change_snapshot, change_backup ---
 *
 * What needs no work: names, descriptions, metadata, reservations. On the head, so of two that
 * change it at once neither undoes the other. */

/* What all three methods have. */
struct words {
    enum resource_type type;
    const char *commit_id, *resource;
    const char *name, *description;
    bool unique_name, no_name, no_description;
    const GPtrArray *metadata, *drop_metadata;
    bool only_metadata;
    const struct change_volume_args *volume; /* NULL: it is about none */
};

static bool is_of_key(const char *word, const char *key)
{
    size_t length = strcspn(key, "=");
    return strcspn(word, "=") == length && !strncmp(word, key, length);
}

static json_t *without(const json_t *list, const char *key)
{
    json_t *left = json_array(), *word;
    size_t i;
    json_array_foreach(list, i, word)
        if (!is_of_key(json_string_value(word), key))
            json_array_append(left, word);
    return left;
}

/* FALSE: there would be too much. */
static bool set_words(json_t *object, const char *field, const GPtrArray *set,
                      const GPtrArray *drop, bool only, GError **error)
{
    json_t *list = only ? json_array() : json_deep_copy(json_object_get(object, field));
    if (!list)
        list = json_array();
    for (guint pass = 0; pass < 2; pass++) {
        const GPtrArray *keys = pass ? set : drop;
        for (guint i = 0; i < keys->len; i++) {
            json_t *left = without(list, keys->pdata[i]);
            json_decref(list);
            list = left;
            if (pass)
                json_array_append_new(list, json_string(keys->pdata[i]));
        }
    }
    bool fits = json_array_size(list) <= LIMIT_METADATA;
    if (!fits)
        fettle_set_error(error, LIMIT, "%s: there would be more than %d keys", field,
                         LIMIT_METADATA);
    json_object_set_new(object, field, list);
    return fits;
}

void wconf_work_unreserve(struct change *change)
{
    json_object_set_new(change->object, "reserved", json_string(""));
    json_object_set_new(change->object, "reserved_for", json_string(""));
}

/* For one client at a time, and of what is nobody's. */
static bool may_reserve(const struct config *head, const char *uuid, GError **error)
{
    const struct volume *volume = config_get(head, "volume", uuid, NULL);
    if (!attachment_need_none(head, volume, error))
        return false;
    if (volume->status == VOLUME_AVAILABLE)
        return true;
    fettle_set_error(error, WRONG_STATE, "volume %s is %s; only an available one can be reserved",
                     config_volume_name(volume), attachment_status_word(volume));
    return false;
}

static bool set_reserved(const struct config *head, const char *uuid, struct change *put,
                         const struct change_volume_args *args, GError **error)
{
    const struct volume *volume = config_get(head, "volume", uuid, NULL);
    bool by_it =
        args && (!*args->reserved || (volume && !strcmp(volume->reserved, args->reserved)));
    if (by_it && args->unreserve)
        wconf_work_unreserve(put);
    if (!args || !*args->reserve)
        return true;
    json_object_set_new(put->object, "reserved", json_string(args->reserve));
    json_object_set_new(put->object, "reserved_for", json_string(args->reserve_for));
    return may_reserve(head, uuid, error);
}

/* While none has it: what a guest has opened, it goes on with. */
static bool set_readonly(const struct config *head, const char *uuid, json_t *object,
                         const struct change_volume_args *args, GError **error)
{
    if (!args || args->readonly < 0)
        return true;
    json_object_set_new(object, "readonly", json_boolean(args->readonly > 0));
    return attachment_need_none(head, config_get(head, "volume", uuid, NULL), error);
}

static bool set_of_volume(json_t *object, const struct change_volume_args *args, GError **error)
{
    if (args && args->bootable >= 0)
        json_object_set_new(object, "bootable", json_boolean(args->bootable > 0));
    return !args || set_words(object, "image_metadata", args->image_metadata,
                              args->drop_image_metadata, false, error);
}

static bool says_anything(const struct words *words)
{
    const struct change_volume_args *volume = words->volume;
    return *words->name || *words->description || words->no_name || words->no_description ||
           words->metadata->len || words->drop_metadata->len || words->only_metadata ||
           (volume &&
            (volume->bootable >= 0 || volume->readonly >= 0 || *volume->reserve ||
             volume->unreserve || volume->image_metadata->len || volume->drop_image_metadata->len));
}

/* What is empty stays as it is. */
static void change(struct wconf *wconf, struct rpc_request *request, const struct words *words)
{
    GError *error = NULL;
    if (wconf_answer_repeated(wconf, words->commit_id, request))
        return;
    struct resource resource = resource_find(wconf->head, words->type, words->resource, &error);
    if (resource.exists && !says_anything(words))
        fettle_set_error(&error, WRONG_INPUT, "name, description: nothing is to change");
    if (error ||
        !wconf_work_name_fits(wconf->head, &resource, words->name, words->unique_name, &error)) {
        wconf_work_refuse(wconf, request, error);
        return;
    }
    GPtrArray *changes = change_list_new();
    resource.name = words->no_name ? "" : *words->name ? words->name : resource.name;
    resource.description = words->no_description ? ""
                           : *words->description ? words->description
                                                 : resource.description;
    struct change *put = resource_put(wconf->head, &resource);
    g_ptr_array_add(changes, put);
    if (set_words(put->object, "metadata", words->metadata, words->drop_metadata,
                  words->only_metadata, &error) &&
        set_of_volume(put->object, words->volume, &error) &&
        set_readonly(wconf->head, resource.uuid, put->object, words->volume, &error) &&
        set_reserved(wconf->head, resource.uuid, put, words->volume, &error)) {
        wconf_work_commit(wconf, request, words->commit_id, changes, NULL);
        return;
    }
    g_ptr_array_unref(changes);
    wconf_work_refuse(wconf, request, error);
}

#define WORDS_OF(args, kind, resource_type)                                                        \
    {                                                                                              \
        .type = resource_type, .commit_id = args->commit_id, .resource = args->kind,               \
        .name = args->name, .description = args->description, .unique_name = args->unique_name,    \
        .no_name = args->no_name, .no_description = args->no_description,                          \
        .metadata = args->metadata, .drop_metadata = args->drop_metadata,                          \
        .only_metadata = args->only_metadata                                                       \
    }

void wconf_handle_change_volume(struct wconf *wconf, struct rpc_request *request)
{
    g_autoptr(GError) error = NULL;
    record_autoptr(change_volume_args) args =
        rpc_request_args(request, &change_volume_args_record, &error);
    if (!args) {
        rpc_fail(request, error);
        return;
    }
    struct words words = WORDS_OF(args, volume, RESOURCE_VOLUME);
    words.volume = args;
    change(wconf, request, &words);
}

void wconf_handle_change_snapshot(struct wconf *wconf, struct rpc_request *request)
{
    g_autoptr(GError) error = NULL;
    record_autoptr(change_snapshot_args) args =
        rpc_request_args(request, &change_snapshot_args_record, &error);
    if (!args) {
        rpc_fail(request, error);
        return;
    }
    const struct words words = WORDS_OF(args, snapshot, RESOURCE_SNAPSHOT);
    change(wconf, request, &words);
}

void wconf_handle_change_backup(struct wconf *wconf, struct rpc_request *request)
{
    g_autoptr(GError) error = NULL;
    record_autoptr(change_backup_args) args =
        rpc_request_args(request, &change_backup_args_record, &error);
    if (!args) {
        rpc_fail(request, error);
        return;
    }
    const struct words words = WORDS_OF(args, backup, RESOURCE_BACKUP);
    change(wconf, request, &words);
}
