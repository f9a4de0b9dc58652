/*
 * Who may ask the REST daemon of whatever candidate: put on record, changed and taken off it on a
 * person's word, each in one commit. Names and hashes are judged by the invariants.
 */
#include "core/wconfd/wconf_work_private.h"
#include "proto/change.h"

static const struct rapi_user *find(const struct wconf *wconf, const char *name, GError **error)
{
    return config_find(wconf->head, "rapi_user", name, error);
}

/* One change, or the refusal that `error` is. Both are stolen. */
static void commit(struct wconf *wconf, struct rpc_request *request, const char *commit_id,
                   struct change *change, GError *error)
{
    if (error) {
        wconf_work_refuse(wconf, request, error);
        return;
    }
    GPtrArray *changes = change_list_new();
    g_ptr_array_add(changes, change);
    wconf_work_commit(wconf, request, commit_id, changes, NULL);
}

static struct change *put(const struct wconf *wconf, const struct rapi_user *user)
{
    return config_put(wconf->head, "rapi_user", user->uuid, rapi_user_to_json(user));
}

void wconf_handle_add_rapi_user(struct wconf *wconf, struct rpc_request *request)
{
    GError *error = NULL;
    struct change *change = NULL;
    record_autoptr(add_rapi_user_args) args =
        rpc_request_args(request, &add_rapi_user_args_record, &error);
    if (args && wconf_answer_repeated(wconf, args->commit_id, request))
        return;
    if (args && find(wconf, args->name, NULL))
        fettle_set_error(&error, ALREADY_EXISTS,
                         "REST user \"%s\" exists already; change it with: fettle rapi user modify",
                         args->name);
    else if (args)
        change = put(wconf, &(struct rapi_user){.uuid = args->commit_id,
                                                .name = args->name,
                                                .hash = args->hash,
                                                .write = args->write});
    commit(wconf, request, args ? args->commit_id : "", change, error);
}

void wconf_handle_change_rapi_user(struct wconf *wconf, struct rpc_request *request)
{
    GError *error = NULL;
    struct change *change = NULL;
    record_autoptr(change_rapi_user_args) args =
        rpc_request_args(request, &change_rapi_user_args_record, &error);
    if (args && wconf_answer_repeated(wconf, args->commit_id, request))
        return;
    const struct rapi_user *old = args ? find(wconf, args->user, &error) : NULL;
    if (old)
        change = put(wconf,
                     &(struct rapi_user){.uuid = old->uuid,
                                         .name = old->name,
                                         .hash = *args->hash ? args->hash : old->hash,
                                         .write = args->write < 0 ? old->write : args->write > 0});
    commit(wconf, request, args ? args->commit_id : "", change, error);
}

void wconf_handle_remove_rapi_user(struct wconf *wconf, struct rpc_request *request)
{
    GError *error = NULL;
    record_autoptr(remove_rapi_user_args) args =
        rpc_request_args(request, &remove_rapi_user_args_record, &error);
    if (args && wconf_answer_repeated(wconf, args->commit_id, request))
        return;
    const struct rapi_user *user = args ? find(wconf, args->user, &error) : NULL;
    struct change *change = user ? config_delete(wconf->head, "rapi_user", user->uuid) : NULL;
    commit(wconf, request, args ? args->commit_id : "", change, error);
}
