/*
 * set_attachment: the holder's node daemon has seen device and node of a volume go that its guest
 * was asked to give up (SAF-124), so the volume is nobody's any more. A compare-and-set on
 * (generation, attachment).
 *
 * Or who has it open in a pool of a Ceph, before it may write there (SAF-58): said again it is the
 * same. An attachment ends once, so its UUID is the id of this commit: a question that comes again
 * finds it. One that is gone otherwise meanwhile, with a job's commit, is WRONG_STATE, which tells
 * the node as much.
 */
#include <string.h>

#include "core/config/attachments.h"
#include "core/wconfd/wconf_private.h"
#include "proto/change.h"

static bool is_on_record(const struct config *head, const struct set_attachment_args *args)
{
    const struct volume *volume = config_get(head, "volume", args->volume, NULL);
    const struct attachment *attachment = volume ? attachment_of(volume) : NULL;
    return attachment && !strcmp(attachment->uuid, args->attachment);
}

static const struct volume *find_volume(const struct config *head,
                                        const struct set_attachment_args *args, GError **error)
{
    const struct volume *volume = config_get(head, "volume", args->volume, NULL);
    const struct attachment *attachment = volume ? attachment_of(volume) : NULL;
    if (!attachment || strcmp(attachment->uuid, args->attachment) != 0 ||
        strcmp(attachment->instance, args->instance) != 0)
        fettle_set_error(error, WRONG_STATE, "attachment %s is not on record any more",
                         args->attachment);
    else if (*args->clients || attachment->leaving_us || attachment->state == ATTACHMENT_DETACHING)
        return volume;
    else
        fettle_set_error(error, UNSAFE, "volume %s: nobody has asked for it to be given up",
                         config_volume_name(volume));
    return NULL;
}

/* Where it goes has the volume open already: it is given up there, if the guest goes on there. */
static bool stays_where_it_is(const struct config *head, const char *uuid, GError **error)
{
    const struct instance *instance = config_get(head, "instance", uuid, NULL);
    if (!*instance->migration)
        return true;
    fettle_set_error(error, TEMPORARY, "instance \"%s\" is being migrated; its volumes are its own",
                     instance->name);
    return false;
}

static void set_attachment(struct wconf *wconf, struct rpc_request *request,
                           const struct set_attachment_args *args)
{
    GError *error = NULL;
    if (!*args->clients && !is_on_record(wconf->head, args) &&
        wconf_answer_repeated(wconf, args->attachment, request))
        return;
    g_autofree char *commit_id =
        *args->clients ? env_uuid(wconf->env) : wconf_commit_id(wconf, args->attachment);
    const struct volume *volume = NULL;
    if (wconf_held_instance(wconf->head, args->instance, args->generation, request->from_node,
                            &error) &&
        (*args->clients || stays_where_it_is(wconf->head, args->instance, &error)))
        volume = find_volume(wconf->head, args, &error);
    if (volume) {
        record_autoptr(volume) left = volume_copy(volume);
        GPtrArray *changes = change_list_new();
        if (*args->clients)
            text_set(&((struct attachment *)left->attachments->pdata[0])->clients, args->clients);
        else
            g_ptr_array_set_size(left->attachments, 0);
        g_ptr_array_add(changes,
                        config_put(wconf->head, "volume", left->uuid, volume_to_json(left)));
        if (wconf_commit(wconf, commit_id, changes, NULL, AUTHOR_HOLDER, request, NULL, &error))
            return;
    }
    guint64 version = 0;
    config_get(wconf->head, "volume", args->volume, &version);
    guint64 newest = wconf_newest_change(wconf->head, args->instance, "", "");
    wconf_refuse_after_barrier(wconf, request, MAX(newest, version), error);
}

void wconf_handle_set_attachment(struct wconf *wconf, struct rpc_request *request)
{
    g_autoptr(GError) error = NULL;
    record_autoptr(set_attachment_args) args =
        rpc_request_args(request, &set_attachment_args_record, &error);
    if (args)
        set_attachment(wconf, request, args);
    else
        rpc_fail(request, error);
}
