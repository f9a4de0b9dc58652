/*
 * Requests for work on what is stored (docs/design/storage.md). A request is one commit: the
 * resource in its status meanwhile, and its row, with nobody yet. Nothing is sent to anybody:
 * members follow the changes. What may be asked for in which status says the table
 * (proto/tasks.def) alone.
 */
#include <string.h>

#include "core/wconfd/wconf_work_private.h"
#include "proto/change.h"

/* --- accept_work --- */

static const struct backend *only_backend(const struct config *head, GError **error)
{
    g_autoptr(GPtrArray) all = config_list(head, "backend");
    g_autoptr(GString) names = g_string_new(NULL);
    if (all->len == 1)
        return all->pdata[0];
    for (guint i = 0; i < all->len; i++)
        g_string_append_printf(names, "%s%s", i ? ", " : "",
                               ((const struct backend *)all->pdata[i])->name);
    if (all->len)
        fettle_set_error(error, WRONG_INPUT, "backend: name one of %s", names->str);
    else
        fettle_set_error(error, WRONG_STATE, "there is no back end; add one: fettle backend add");
    return NULL;
}

/* Its UUID is the commit's id, so the same request again is about the same one. */
static bool make_resource(struct wconf *wconf, const struct accept_work_args *args,
                          struct resource *ret_resource, GError **error)
{
    struct resource resource = resource_of(wconf->head, args->resource_type, args->commit_id);
    const struct config *head = wconf->head;
    if (*args->resource) {
        fettle_set_error(error, WRONG_INPUT, "resource: %s makes it", args->operation);
        return false;
    }
    if (resource.exists) {
        fettle_set_error(error, ALREADY_EXISTS, "%s %s exists already",
                         resource_kind(resource.type), args->commit_id);
        return false;
    }
    if (!args->size) {
        fettle_set_error(error, WRONG_INPUT, "size: %s needs one, 1 GiB at least", args->operation);
        return false;
    }
    const struct backend *backend = *args->backend
                                        ? config_find(head, "backend", args->backend, error)
                                        : only_backend(head, error);
    if (!backend)
        return false;
    resource.name = args->name;
    resource.description = args->description;
    resource.backend = backend->uuid;
    resource.size = args->size;
    *ret_resource = resource;
    return true;
}

/* `it is being deleted`, of deleting. */
static char *under_way(const char *status)
{
    return g_str_has_suffix(status, "ing")
               ? g_strdup_printf("being %.*sed", (int)strlen(status) - 3, status)
               : g_strdup(status);
}

static bool is_free(const struct config *head, const struct resource *resource, GError **error)
{
    g_autofree char *key = config_work_key(resource->type, resource->uuid);
    const struct worker *row = config_get(head, "worker", key, NULL);
    if (!row)
        return true;
    g_autofree char *status = under_way(row->status);
    fettle_set_error(error, WRONG_STATE, "%s %s: it is %s; wait, or reset its state",
                     resource_kind(resource->type), resource_name(resource), status);
    return false;
}

static bool status_allows(const struct work_row *row, const struct resource *resource,
                          const char *operation, GError **error)
{
    if (work_accepts(row, resource->status))
        return true;
    g_autofree char *words = work_accepted_words(row);
    fettle_set_error(error, WRONG_STATE, "%s %s is %s; %s needs %s", resource_kind(resource->type),
                     resource_name(resource), resource->status, operation, words);
    return false;
}

static bool size_fits(const struct work_row *row, const struct resource *resource,
                      const struct accept_work_args *args, GError **error)
{
    bool extends = row->operation == TASK_OPERATION_EXTEND_VOLUME;
    if (!extends && args->size)
        fettle_set_error(error, WRONG_INPUT, "size: %s takes none", args->operation);
    else if (extends && args->size <= resource->size)
        fettle_set_error(error, WRONG_INPUT,
                         "extend: %" G_GUINT64_FORMAT " GiB is not larger than %" G_GUINT64_FORMAT
                         " GiB",
                         args->size, resource->size);
    return !args->size == !extends && (!extends || args->size > resource->size);
}

static bool find_resource(struct wconf *wconf, const struct work_row *row,
                          const struct accept_work_args *args, struct resource *ret_resource,
                          GError **error)
{
    if (*args->name || *args->description || *args->backend) {
        fettle_set_error(error, WRONG_INPUT, "%s: %s takes none",
                         *args->name          ? "name"
                         : *args->description ? "description"
                                              : "backend",
                         args->operation);
        return false;
    }
    struct resource resource =
        resource_find(wconf->head, args->resource_type, args->resource, error);
    *ret_resource = resource;
    return resource.exists && is_free(wconf->head, &resource, error) &&
           status_allows(row, &resource, args->operation, error) &&
           size_fits(row, &resource, args, error);
}

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
    fettle_set_error(error, WRONG_INPUT, "operation: there is no \"%s\" of a %s; there is %s",
                     args->operation, enum_word(&resource_type_words, (int)args->resource_type),
                     words->str);
    return NULL;
}

static void accept(struct wconf *wconf, struct rpc_request *request,
                   const struct accept_work_args *args, const struct work_row *work,
                   struct resource *resource)
{
    guint64 stamp = wconf_stamp(wconf);
    GPtrArray *changes = change_list_new();
    record_autoptr(worker) row = worker_new();
    resource->status = work->status;
    resource->status_why = "";
    if (!work->from)
        resource->created_us = stamp;
    row->id = wconf_work_serial(wconf);
    row->created_us = row->updated_us = stamp;
    row->resource_type = args->resource_type;
    text_set(&row->resource_id, resource->uuid);
    text_set(&row->operation, args->operation);
    text_set(&row->status, work->status);
    text_set(&row->backend, resource->backend);
    text_set(&row->request_id, args->request_id);
    row->size = work->from ? args->size : 0;
    g_ptr_array_add(changes, resource_put(wconf->head, resource));
    wconf_work_put_row(wconf, row, changes);
    const struct accepted_work accepted = {.resource = (char *)resource->uuid, .serial = row->id};
    json_autoptr answer = accepted_work_to_json(&accepted);
    wconf_work_commit(wconf, request, args->commit_id, changes, answer);
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
    const char *uuid = work && !work->from                      ? args->commit_id
                       : keys->len                              ? strchr(keys->pdata[0], '/') + 1
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
    struct resource resource;
    if (work && wconf_work_allowed(wconf, &error) &&
        (work->from ? find_resource(wconf, work, args, &resource, &error)
                    : make_resource(wconf, args, &resource, &error)))
        accept(wconf, request, args, work, &resource);
    else
        wconf_work_refuse(wconf, request, error);
}

void wconf_handle_accept_work(struct wconf *wconf, struct rpc_request *request)
{
    g_autoptr(GError) error = NULL;
    record_autoptr(accept_work_args) args =
        rpc_request_args(request, &accept_work_args_record, &error);
    if (args)
        accept_work(wconf, request, args);
    else
        rpc_fail(request, error);
}

/* --- reset_state --- */

static const struct {
    enum task_kind kind;
    const char *word;
} settled[] = {
#define SETTLED(kind, FINAL, word) {TASK_KIND_##kind, word},
#include "proto/tasks.def"
};
static const char *const of_attachments[] = {"attaching", "detaching", "reserved", "in-use", NULL};

static bool may_be(const struct resource *resource, const char *status, GError **error)
{
    const char *kind = resource_kind(resource->type);
    if (!strcmp(status, "available") && !*resource->data) {
        fettle_set_error(error, WRONG_STATE, "%s %s has no data; it can be error or be deleted",
                         kind, resource_name(resource));
        return false;
    }
    g_autoptr(GString) words = g_string_new(NULL);
    for (guint i = 0; i < G_N_ELEMENTS(settled); i++) {
        if (settled[i].kind != resource_task_kind(resource->type))
            continue;
        if (!strcmp(settled[i].word, status))
            return true;
        g_string_append_printf(words, "%s%s", words->len ? ", " : "", settled[i].word);
    }
    if (resource->type == RESOURCE_VOLUME && g_strv_contains(of_attachments, status))
        fettle_set_error(error, WRONG_INPUT,
                         "status: %s is what an attachment says; a volume can be set to %s", status,
                         words->str);
    else
        fettle_set_error(error, WRONG_INPUT, "status: a %s can be set to %s, not to \"%s\"", kind,
                         words->str, status);
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
    resource.status_why = strcmp(args->status, "available") != 0 ? "set by a person" : "";
    g_ptr_array_add(changes, resource_put(wconf->head, &resource));
    if (row)
        g_ptr_array_add(changes, config_delete(wconf->head, "worker", key));
    decide_reset(wconf, old, args->status, row, changes);
    wconf_work_commit(wconf, request, args->commit_id, changes, NULL);
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
    if (resource.exists && may_be(&resource, args->status, &error))
        reset(wconf, request, args, &resource);
    else
        wconf_work_refuse(wconf, request, error);
}

/* --- change_volume --- */

/* What is empty stays as it is. */
static void change(struct wconf *wconf, struct rpc_request *request, const char *commit_id,
                   const char *name, const char *description, struct resource *resource)
{
    GError *error = NULL;
    if (!*name && !*description) {
        fettle_set_error(&error, WRONG_INPUT, "name, description: nothing is to change");
        wconf_work_refuse(wconf, request, error);
        return;
    }
    GPtrArray *changes = change_list_new();
    resource->name = *name ? name : resource->name;
    resource->description = *description ? description : resource->description;
    g_ptr_array_add(changes, resource_put(wconf->head, resource));
    wconf_work_commit(wconf, request, commit_id, changes, NULL);
}

void wconf_handle_change_volume(struct wconf *wconf, struct rpc_request *request)
{
    GError *error = NULL;
    record_autoptr(change_volume_args) args =
        rpc_request_args(request, &change_volume_args_record, &error);
    if (args && wconf_answer_repeated(wconf, args->commit_id, request))
        return;
    struct resource resource =
        args ? resource_find(wconf->head, RESOURCE_VOLUME, args->volume, &error)
             : resource_read(RESOURCE_VOLUME, NULL);
    if (resource.exists)
        change(wconf, request, args->commit_id, args->name, args->description, &resource);
    else
        wconf_work_refuse(wconf, request, error);
}
