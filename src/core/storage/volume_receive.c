/*
 * Receiving an image (SAF-60): its bytes come from a client, by NBD, into data of its own under a
 * name that has the claim in it. Who asks for the door (`receive_image`) is let in once; what came
 * counts only when he has said what it was to be (`finish_image`), and it was that. A sender that
 * goes before, or never comes, has sent nothing.
 */
#include <string.h>

#include "core/storage/volume_choose.h"
#include "core/storage/volume_private.h"

#define LOOK_MS 250
#define ENDED "the volume service"
#define NOBODY "nobody has come to send it"
#define GONE "its sender has gone before the end"

/* One that is being worked on, in the service's `receiving` by the key of its row. */
struct receiving {
    const struct volume_work *work;
    char *name; /* of its data */
    struct env_pause pause;
    gint64 until_ms;                  /* boot clock: somebody has to come before */
    bool came;                        /* somebody has */
    struct rpc_request *request;      /* for the door, that is to be answered; NULL: none */
    struct receive_image_args *asked; /* the same, until the door stands; NULL: nobody asks */
    struct volume_transfer *transfer; /* NULL: nobody has asked for it yet */
    struct finish_image_args *finish; /* NULL: he has not said that this was all */
};

/* --- the door --- */

void volume_transfer_answer(struct rpc_request *request, const struct volume_transfer *transfer)
{
    record_autoptr(image_door) door = image_door_new();
    text_set(&door->path, transfer->path ? transfer->path : "");
    text_set(&door->address, transfer->address ? transfer->address : "");
    text_set(&door->psk, transfer->key ? transfer->key : "");
    door->port = transfer->port;
    rpc_answer(request, image_door_to_json(door));
}

struct volume_transfer *volume_transfer_begin(const struct volume_member *member, const char *name,
                                              guint64 bytes, const char *client, GError **error)
{
    const struct env *env = member->service->env;
    const struct node *own = config_get(volume_member_config(member), "node", env->node_uuid, NULL);
    bool here = strcmp(client, env->node_uuid) == 0;
    g_autofree char *address = here || !own ? NULL : g_strdup(own->primary_ip);
    return env->volumes->ops->transfer(env->volumes, member->backend, name, bytes, address, error);
}

/* A full back end stops every guest that has a volume there (SAF-27), so it promises the room
 * before anything comes: of two doors at once the head lets in who fits. 0: there is no room. */
static guint64 room_for(const struct volume_work *work, guint64 bytes, GError **error)
{
    const struct volume_member *member = work->member;
    struct volume_driver *driver = member->service->env->volumes;
    struct backend_space space = {0};
    if (!driver->ops->space(driver, member->backend, &space.free_mib, &space.total_mib, error))
        return 0;
    const struct config *config = volume_member_config(member);
    const struct backend *backend = config_get(config, "backend", member->backend->uuid, NULL);
    guint64 room =
        volume_room_of_image(config, backend ? backend : member->backend, &space, bytes, error);
    return room && !task_killed() && volume_work_promises(work, room, error) ? room : 0;
}

/* False: it cannot be opened, which is the end. */
static bool open_door(struct receiving *receiving, GError **error)
{
    struct rpc_request *request = g_steal_pointer(&receiving->request);
    g_autoptr(GError) local = NULL;
    const struct volume_member *member = receiving->work->member;
    guint64 bytes = room_for(receiving->work, receiving->asked->bytes, &local);
    if (bytes && !task_killed())
        receiving->transfer =
            volume_transfer_begin(member, receiving->name, bytes, request->from_node, &local);
    g_clear_pointer(&receiving->asked, receive_image_args_free);
    if (task_killed())
        fettle_set_ended(&local, ENDED);
    receiving->until_ms = volume_caller_ms(receiving->work->caller) + LIMIT_TRANSFER_WAIT_MS;
    if (!local) {
        volume_transfer_answer(request, receiving->transfer);
        return true;
    }
    rpc_fail(request, local);
    g_propagate_error(error, g_steal_pointer(&local));
    return false;
}

/* --- while it stands --- */

bool volume_transfer_goes_on(const struct volume_member *member,
                             const struct volume_transfer *transfer, gint64 until_ms, bool *came,
                             GError **error)
{
    const struct env *env = member->service->env;
    enum volume_transfer_state state =
        transfer ? env->volumes->ops->transfer_state(transfer) : TRANSFER_WAITS;
    *came = *came || state == TRANSFER_STANDS;
    if (state == TRANSFER_STUCK)
        fettle_set_error(error, TIMEOUT, "whoever came to send it got no further for too long");
    else if (state == TRANSFER_STANDS ||
             (state == TRANSFER_WAITS && volume_caller_ms(&member->caller) < until_ms))
        return true;
    else if (state == TRANSFER_OVER || *came)
        fettle_set_error(error, WRONG_STATE, GONE);
    else
        fettle_set_error(error, WRONG_STATE, NOBODY " within %d s", LIMIT_TRANSFER_WAIT_MS / 1000);
    return false;
}

/* Until all of it has come; false: it will not. */
static bool await_finish(struct receiving *receiving, GError **error)
{
    const struct volume_work *work = receiving->work;
    while (!receiving->finish) {
        if (!volume_work_is_had(work)) {
            fettle_set_error(error, REFUSED, "the row is another's by now");
            return false;
        }
        if (receiving->request
                ? !open_door(receiving, error)
                : !volume_transfer_goes_on(work->member, receiving->transfer, receiving->until_ms,
                                           &receiving->came, error))
            return false;
        if (task_killed() || !env_pause(work->caller->env, &receiving->pause, LOOK_MS))
            return false;
    }
    return true;
}

/* --- the end --- */

/* What is on stable storage is held against what was said. */
static bool judge(const struct receiving *receiving, struct image_sums *ret_sums, GError **error)
{
    const struct volume_work *work = receiving->work;
    struct volume_driver *driver = work->caller->env->volumes;
    const struct finish_image_args *finish = receiving->finish;
    struct image_sums said = {.size = finish->bytes};
    g_strlcpy(said.os_hash_value, finish->sum, sizeof said.os_hash_value);
    g_strlcpy(said.checksum, finish->checksum, sizeof said.checksum);
    return driver->ops->measure(driver, work->member->backend, receiving->name,
                                work->resource.disk_format, &said, ret_sums, error);
}

static void forget(struct receiving *receiving)
{
    const struct volume_work *work = receiving->work;
    if (!task_killed()) /* else nobody is there to ask */
        g_hash_table_remove(work->member->service->receiving, work->key);
    if (receiving->request)
        rpc_fail_new(receiving->request, FETTLE_ERROR_TEMPORARY, "%s is received no more",
                     work->key);
    g_clear_pointer(&receiving->asked, receive_image_args_free);
    g_clear_pointer(&receiving->finish, finish_image_args_free);
    g_free(receiving->name);
}

enum work_done volume_receive(const struct volume_work *work, struct work_end *end, GError **error)
{
    struct volume_driver *driver = work->caller->env->volumes;
    struct receiving receiving = {.work = work,
                                  .name = volume_data_name(work->resource.uuid, work->claim),
                                  .until_ms =
                                      volume_caller_ms(work->caller) + LIMIT_TRANSFER_WAIT_MS};
    struct image_sums sums = {0};
    g_hash_table_insert(work->member->service->receiving, work->key, &receiving);
    bool ok = await_finish(&receiving, error);
    bool ended = driver->ops->transfer_end(receiving.transfer);
    if (ok && !ended)
        fettle_set_error(error, TIMEOUT, "its transfer hangs in the back end");
    ok = ok && ended && judge(&receiving, &sums, error);
    if (ok)
        volume_work_measured(end, receiving.name, &sums);
    bool lost = !task_killed() && !volume_work_is_had(work);
    if (lost)
        work->member->sweep_ms = 0; /* which decides over what has come */
    forget(&receiving);
    return lost ? WORK_IS_LOST : volume_done(ok);
}

/* --- requests --- */

/* Under that claim and no other: what comes late is of a transfer that counts no more. */
static struct receiving *find(struct volume_service *service, const char *key, guint64 claim,
                              GError **error)
{
    struct receiving *receiving = g_hash_table_lookup(service->receiving, key);
    if (receiving && receiving->work->claim == claim)
        return receiving;
    if (receiving)
        fettle_set_error(error, REFUSED, "%s: claim %" G_GUINT64_FORMAT " is over", key, claim);
    else
        fettle_set_error(error, TEMPORARY, "%s is not being received here", key);
    return NULL;
}

static bool ask(struct volume_service *service, struct rpc_request *request, GError **error)
{
    struct receive_image_args *args = rpc_request_args(request, &receive_image_args_record, error);
    struct receiving *receiving = args ? find(service, args->key, args->claim, error) : NULL;
    if (receiving && (receiving->asked || receiving->transfer)) {
        fettle_set_error(error, WRONG_STATE, "somebody sends it already");
        receiving = NULL;
    }
    if (!receiving) {
        if (args)
            receive_image_args_free(args);
        return false;
    }
    receiving->asked = args;
    receiving->request = request;
    env_pause_end(&receiving->pause);
    return true;
}

static bool is_said(const struct finish_image_args *a, const struct finish_image_args *b)
{
    return a->bytes == b->bytes && strcmp(a->sum, b->sum) == 0 &&
           strcmp(a->checksum, b->checksum) == 0;
}

/* Sums that nothing can be held against would count as not said. */
static bool is_in_order(const struct finish_image_args *args, GError **error)
{
    const char *wrong = !image_sum_is_good(args->sum, IMAGE_SUM_DIGITS)             ? "sum"
                        : !image_sum_is_good(args->checksum, IMAGE_CHECKSUM_DIGITS) ? "checksum"
                                                                                    : NULL;
    if (wrong)
        fettle_set_error(error, WRONG_INPUT,
                         "field \"%s\" must be %d hexadecimal digits in lower case, or empty",
                         wrong, *wrong == 's' ? IMAGE_SUM_DIGITS : IMAGE_CHECKSUM_DIGITS);
    return !wrong;
}

/* What comes of it the record tells. Said twice, it is said once. */
static bool finish(struct volume_service *service, struct rpc_request *request, GError **error)
{
    record_autoptr(finish_image_args) args =
        rpc_request_args(request, &finish_image_args_record, error);
    struct receiving *receiving =
        args && is_in_order(args, error) ? find(service, args->key, args->claim, error) : NULL;
    if (!receiving)
        return false;
    if (!receiving->transfer || (receiving->finish && !is_said(receiving->finish, args))) {
        fettle_set_error(error, WRONG_STATE,
                         receiving->finish ? "something else was said of it before"
                                           : "nothing has come of it");
        return false;
    }
    if (!receiving->finish)
        receiving->finish = g_steal_pointer(&args);
    env_pause_end(&receiving->pause);
    rpc_answer(request, NULL);
    return true;
}

/* Role apid is heard from nodes that are on record for that (SAF-100), as wconfd hears it. */
static bool may_ask(const struct volume_service *service, const struct rpc_request *request,
                    GError **error)
{
    const struct config *config = follow_config(service->follow);
    if (strcmp(request->from_role, ROLE_APID) != 0 ||
        config_get(config, "api_front_end", request->from_node, NULL))
        return true;
    fettle_set_error(error, PERMISSION,
                     "node \"%s\" has no front end of the API on record; see: fettle api init",
                     config_node_name(config, request->from_node));
    return false;
}

bool volume_receive_handle(struct volume_service *service, struct rpc_request *request)
{
    static const struct {
        const char *method;
        bool (*run)(struct volume_service *service, struct rpc_request *request, GError **error);
    } methods[] = {{"receive_image", ask}, {"finish_image", finish}, {"send_image", volume_send}};
    for (guint i = 0; i < G_N_ELEMENTS(methods); i++) {
        g_autoptr(GError) error = NULL;
        if (strcmp(methods[i].method, request->name) != 0)
            continue;
        if (!may_ask(service, request, &error) || !methods[i].run(service, request, &error))
            rpc_fail(request, error);
        return true;
    }
    return false;
}
