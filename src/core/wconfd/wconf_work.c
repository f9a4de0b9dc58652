/*
 * Requests for work on what is stored (docs/design/storage.md). A request is one commit: the
 * resource in its status meanwhile, and its row, with nobody yet. Nothing is sent to anybody:
 * members follow the changes. What may be asked for in which status says the table
 * (proto/tasks.def) alone.
 */
#include <string.h>

#include "core/config/attachments.h"
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
static struct volume *make_volume(struct wconf *wconf, const struct accept_work_args *args,
                                  GError **error)
{
    const struct config *head = wconf->head;
    if (*args->resource) {
        fettle_set_error(error, WRONG_INPUT, "resource: %s makes it", args->operation);
        return NULL;
    }
    if (config_get(head, "volume", args->commit_id, NULL)) {
        fettle_set_error(error, ALREADY_EXISTS, "volume %s exists already", args->commit_id);
        return NULL;
    }
    if (!args->size) {
        fettle_set_error(error, WRONG_INPUT, "size: %s needs one, 1 GiB at least", args->operation);
        return NULL;
    }
    const struct backend *backend = *args->backend
                                        ? config_find(head, "backend", args->backend, error)
                                        : only_backend(head, error);
    if (!backend)
        return NULL;
    struct volume *volume = volume_new();
    text_set(&volume->uuid, args->commit_id);
    text_set(&volume->name, args->name);
    text_set(&volume->description, args->description);
    text_set(&volume->backend, backend->uuid);
    volume->size = args->size;
    return volume;
}

/* `it is being deleted`, of deleting. */
static char *under_way(const char *status)
{
    return g_str_has_suffix(status, "ing")
               ? g_strdup_printf("being %.*sed", (int)strlen(status) - 3, status)
               : g_strdup(status);
}

static bool is_free(const struct config *head, const struct volume *volume, GError **error)
{
    g_autofree char *key = config_work_key(RESOURCE_VOLUME, volume->uuid);
    const struct worker *row = config_get(head, "worker", key, NULL);
    if (!row)
        return true;
    g_autofree char *status = under_way(row->status);
    fettle_set_error(error, WRONG_STATE, "volume %s: it is %s; wait, or reset its state",
                     config_volume_name(volume), status);
    return false;
}

static bool status_allows(const struct work_row *row, const struct volume *volume,
                          const char *operation, GError **error)
{
    const char *status = enum_word(&volume_status_words, (int)volume->status);
    if (work_accepts(row, status))
        return true;
    g_autofree char *words = work_accepted_words(row);
    fettle_set_error(error, WRONG_STATE, "volume %s is %s; %s needs %s", config_volume_name(volume),
                     status, operation, words);
    return false;
}

static bool size_fits(const struct work_row *row, const struct volume *volume,
                      const struct accept_work_args *args, GError **error)
{
    bool extends = row->operation == TASK_OPERATION_EXTEND_VOLUME;
    if (!extends && args->size)
        fettle_set_error(error, WRONG_INPUT, "size: %s takes none", args->operation);
    else if (extends && args->size <= volume->size)
        fettle_set_error(error, WRONG_INPUT,
                         "extend: %" G_GUINT64_FORMAT " GiB is not larger than %" G_GUINT64_FORMAT
                         " GiB",
                         args->size, volume->size);
    return !args->size == !extends && (!extends || args->size > volume->size);
}

static struct volume *take_volume(struct wconf *wconf, const struct work_row *row,
                                  const struct accept_work_args *args, GError **error)
{
    if (*args->name || *args->description || *args->backend) {
        fettle_set_error(error, WRONG_INPUT, "%s: %s takes none",
                         *args->name          ? "name"
                         : *args->description ? "description"
                                              : "backend",
                         args->operation);
        return NULL;
    }
    const struct volume *volume = config_find(wconf->head, "volume", args->resource, error);
    bool good = volume && is_free(wconf->head, volume, error) &&
                attachment_need_none(wconf->head, volume, error) &&
                status_allows(row, volume, args->operation, error) &&
                size_fits(row, volume, args, error);
    return good ? volume_copy(volume) : NULL;
}

static const struct work_row *find_work(const struct wconf *wconf,
                                        const struct accept_work_args *args, GError **error)
{
    const struct work_row *row = work_row_of(wconf->work_table, TASK_KIND_volume, args->operation);
    g_autoptr(GString) words = g_string_new(NULL);
    if (row)
        return row;
    for (row = wconf->work_table; row->status; row++)
        g_string_append_printf(words, "%s%s", words->len ? ", " : "",
                               task_operation_words[row->operation]);
    fettle_set_error(error, WRONG_INPUT, "operation: there is no \"%s\" of a %s; there is %s",
                     args->operation, enum_word(&resource_type_words, (int)args->resource_type),
                     words->str);
    return NULL;
}

static void accept(struct wconf *wconf, struct rpc_request *request,
                   const struct accept_work_args *args, const struct work_row *work,
                   struct volume *volume)
{
    guint64 stamp = wconf_stamp(wconf);
    GPtrArray *changes = change_list_new();
    record_autoptr(worker) row = worker_new();
    volume->status = (enum volume_status)enum_parse(&volume_status_words, work->status);
    if (!work->from)
        volume->created_us = stamp;
    text_set(&volume->status_why, "");
    row->id = wconf_work_serial(wconf);
    row->created_us = row->updated_us = stamp;
    row->resource_type = args->resource_type;
    text_set(&row->resource_id, volume->uuid);
    text_set(&row->operation, args->operation);
    text_set(&row->status, work->status);
    text_set(&row->backend, volume->backend);
    text_set(&row->request_id, args->request_id);
    row->size = work->from ? args->size : 0;
    wconf_work_put_volume(wconf, volume, changes);
    wconf_work_put_row(wconf, row, changes);
    const struct accepted_work accepted = {.resource = volume->uuid, .serial = row->id};
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
    const struct volume *volume = config_find(wconf->head, "volume", args->resource, NULL);
    const char *uuid = work && !work->from                      ? args->commit_id
                       : keys->len                              ? strchr(keys->pdata[0], '/') + 1
                       : g_uuid_string_is_valid(args->resource) ? args->resource
                       : volume                                 ? volume->uuid
                                                                : NULL;
    if (uuid) {
        const struct accepted_work accepted = {.resource = (char *)uuid, .serial = serial};
        wconf_answer_when_stored(wconf, serial, request, accepted_work_to_json(&accepted));
        return;
    }
    fettle_set_error(&error, UNKNOWN_ENTITY,
                     "volume \"%s\" does not exist; the request was accepted as %" G_GUINT64_FORMAT
                     " before, and may be done",
                     args->resource, serial);
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
    record_autoptr(volume) volume = !work || !wconf_work_allowed(wconf, &error) ? NULL
                                    : work->from ? take_volume(wconf, work, args, &error)
                                                 : make_volume(wconf, args, &error);
    if (volume)
        accept(wconf, request, args, work, volume);
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

static const char *const settled[] = {
#define SETTLED(kind, FINAL, word) word,
#include "proto/tasks.def"
    NULL};
static const char *const of_attachments[] = {"attaching", "detaching", "reserved", "in-use", NULL};

static bool may_be(const struct volume *volume, const char *status, GError **error)
{
    if (!strcmp(status, "available") && !*volume->data) {
        fettle_set_error(error, WRONG_STATE, "volume %s has no data; it can be error or be deleted",
                         config_volume_name(volume));
        return false;
    }
    if (g_strv_contains(settled, status))
        return true;
    g_autofree char *words = g_strjoinv(", ", (char **)settled);
    if (g_strv_contains(of_attachments, status))
        fettle_set_error(error, WRONG_INPUT,
                         "status: %s is what an attachment says; a volume can be set to %s", status,
                         words);
    else
        fettle_set_error(error, WRONG_INPUT, "status: a volume can be set to %s, not to \"%s\"",
                         words, status);
    return false;
}

static void decide_reset(struct wconf *wconf, const struct volume *volume, const char *old,
                         const struct worker *row, GPtrArray *changes)
{
    const char *new = enum_word(&volume_status_words, (int)volume->status);
    struct decision *decision = decision_about("volume", volume->uuid, config_volume_name(volume),
                                               "person", VERDICT_ACT, "Reset");
    decision_set(&decision->summary, "A person has set the state of volume %s from %s to %s%s.",
                 config_volume_name(volume), old, new,
                 row ? ", and that ended the work on it" : "");
    decision_set(&decision->old, "%s", old);
    decision_set(&decision->new, "%s", new);
    if (row)
        g_ptr_array_add(decision->evidence, wconf_work_said(wconf, row));
    wconf_decide(wconf, decision, changes);
}

static void reset(struct wconf *wconf, struct rpc_request *request,
                  const struct reset_state_args *args, const struct volume *old)
{
    GPtrArray *changes = change_list_new();
    record_autoptr(volume) volume = volume_copy(old);
    g_autofree char *key = config_work_key(args->resource_type, old->uuid);
    const struct worker *row = config_get(wconf->head, "worker", key, NULL);
    volume->status = (enum volume_status)enum_parse(&volume_status_words, args->status);
    text_set(&volume->status_why, volume->status == VOLUME_AVAILABLE ? "" : "set by a person");
    wconf_work_put_volume(wconf, volume, changes);
    if (row)
        g_ptr_array_add(changes, config_delete(wconf->head, "worker", key));
    decide_reset(wconf, volume, enum_word(&volume_status_words, (int)old->status), row, changes);
    wconf_work_commit(wconf, request, args->commit_id, changes, NULL);
}

void wconf_handle_reset_state(struct wconf *wconf, struct rpc_request *request)
{
    GError *error = NULL;
    record_autoptr(reset_state_args) args =
        rpc_request_args(request, &reset_state_args_record, &error);
    if (args && wconf_answer_repeated(wconf, args->commit_id, request))
        return;
    const struct volume *volume =
        args ? config_find(wconf->head, "volume", args->resource, &error) : NULL;
    if (volume && may_be(volume, args->status, &error) &&
        attachment_need_none(wconf->head, volume, &error))
        reset(wconf, request, args, volume);
    else
        wconf_work_refuse(wconf, request, error);
}

/* --- change_volume --- */

static void change_volume(struct wconf *wconf, struct rpc_request *request,
                          const struct change_volume_args *args, const struct volume *old)
{
    GPtrArray *changes = change_list_new();
    record_autoptr(volume) volume = volume_copy(old);
    if (*args->name)
        text_set(&volume->name, args->name);
    if (*args->description)
        text_set(&volume->description, args->description);
    wconf_work_put_volume(wconf, volume, changes);
    wconf_work_commit(wconf, request, args->commit_id, changes, NULL);
}

void wconf_handle_change_volume(struct wconf *wconf, struct rpc_request *request)
{
    GError *error = NULL;
    record_autoptr(change_volume_args) args =
        rpc_request_args(request, &change_volume_args_record, &error);
    if (args && wconf_answer_repeated(wconf, args->commit_id, request))
        return;
    const struct volume *volume =
        args ? config_find(wconf->head, "volume", args->volume, &error) : NULL;
    if (volume && !*args->name && !*args->description)
        fettle_set_error(&error, WRONG_INPUT, "name, description: nothing is to change");
    if (volume && !error)
        change_volume(wconf, request, args, volume);
    else
        wconf_work_refuse(wconf, request, error);
}
