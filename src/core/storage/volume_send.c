/*
 * Sending an image: whoever asks reads its data by NBD, once. There is no row: nothing changes, and
 * data that is read is not removed meanwhile, by QEMU's lock on it.
 */
#include <string.h>

#include "base/log.h"
#include "core/storage/volume_private.h"

#define LOOK_MS 250

struct sending {
    struct volume_member *member;
    struct rpc_request *request;
    char *image; /* UUID */
};

/* What the newest record names. NULL with the error. Free with g_free(). */
static char *data_of(const struct sending *sending, GError **error)
{
    struct volume_member *member = sending->member;
    if (!follow_refresh(member->service->follow, error))
        return NULL;
    struct resource image =
        resource_find(volume_member_config(member), RESOURCE_IMAGE, sending->image, error);
    if (!image.exists)
        return NULL;
    if (resource_is_ready(&image) && *image.data &&
        strcmp(image.backend, member->backend->uuid) == 0)
        return g_strdup(image.data);
    fettle_set_error(error, WRONG_STATE, "image %s is %s; only an active one is saved",
                     resource_name(&image), image.status);
    return NULL;
}

static void send(struct sending *sending)
{
    struct volume_member *member = sending->member;
    const struct env *env = member->service->env;
    struct env_pause pause = {0};
    g_autoptr(GError) error = NULL;
    g_autofree char *data = data_of(sending, &error);
    struct volume_transfer *transfer =
        data ? volume_transfer_begin(member, data, 0, sending->request->from_node, &error) : NULL;
    if (task_killed())
        fettle_set_ended(&error, "the volume service");
    if (error) {
        rpc_fail(sending->request, error);
        env->volumes->ops->transfer_end(transfer);
        return;
    }
    volume_transfer_answer(sending->request, transfer);
    gint64 until_ms = volume_caller_ms(&member->caller) + LIMIT_TRANSFER_WAIT_MS;
    bool came = false;
    while (volume_transfer_goes_on(member, transfer, until_ms, &came, NULL) &&
           env_pause(env, &pause, LOOK_MS))
        continue;
    env->volumes->ops->transfer_end(transfer);
}

static void send_task(void *data)
{
    struct sending *sending = data;
    struct volume_member *member = sending->member;
    send(sending);
    if (!task_killed()) {
        volume_member_wake(member);
        member->service->working--;
    }
    member->reading--;
    volume_member_unref(member);
    g_free(sending->image);
    g_free(sending);
}

bool volume_send(struct volume_service *service, struct rpc_request *request, GError **error)
{
    record_autoptr(send_image_args) args =
        rpc_request_args(request, &send_image_args_record, error);
    struct volume_member *member =
        args ? volume_member_of(service, args->backend, false, error) : NULL;
    if (member && !volume_has_place(member)) {
        fettle_set_error(error, TEMPORARY, "%s: as much is under way as may be; try again",
                         member->backend->name);
        member = NULL;
    }
    if (!member)
        return false;
    struct sending *sending = g_new(struct sending, 1);
    *sending = (struct sending){member, request, g_strdup(args->image)};
    member->reading++;
    service->working++;
    volume_member_ref(member);
    task_spawn(service->env->tasks, send_task, sending);
    return true;
}
