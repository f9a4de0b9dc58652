/*
 * Clients that send images, and the doors that they send through (docs/design/storage.md,
 * "Streams"): any of them may die, stand still, come never, or say what it has not sent; and what
 * stands at a door may write on when the volume service is dead. See storage_sim.h.
 */
#include "storage_sim.h"

#include <string.h>

#define LOOK_MS 100u
#define WAIT_MS 40000u
#define BYTES 8192u

/* One side of the transfer is the driver's, the other one's the client's. */
struct door {
    struct volume_transfer seen; /* first */
    struct storage_world *storage;
    char *name;
    enum volume_transfer_state state;
    bool left; /* its driver has ended it, or is dead */
};

/* --- the driver's side --- */

struct volume_transfer *storage_door_new(struct storage_world *storage,
                                         const struct backend *backend, const char *name,
                                         guint64 bytes)
{
    struct door *door = g_new0(struct door, 1);
    *door = (struct door){.storage = storage, .name = g_strdup(name), .state = TRANSFER_WAITS};
    door->seen.path = (char *)"/run/door";
    fake_volumes_put_as(storage->volumes, backend->uuid, RESOURCE_IMAGE, name, bytes, false);
    fake_volumes_lock(storage->volumes, name, true);
    g_ptr_array_add(storage->doors, door);
    return &door->seen;
}

enum volume_transfer_state storage_door_state(const struct volume_transfer *seen)
{
    return ((const struct door *)seen)->state;
}

static void door_goes(void *data)
{
    struct door *door = data;
    door->state = TRANSFER_OVER;
    door->left = true;
    if (fake_volumes_has(door->storage->volumes, door->name))
        fake_volumes_lock(door->storage->volumes, door->name, false);
}

/* With a volume service that is dead it goes some time later. */
bool storage_door_end(struct volume_transfer *seen)
{
    struct door *door = (struct door *)seen;
    if (!door)
        return true;
    struct ms *ms = door->storage->ms;
    if (task_killed() && !ms->over)
        ms_timer(ms, ms_random(ms, 8000), door_goes, door);
    else
        door_goes(door);
    return true;
}

void storage_door_free(void *data)
{
    struct door *door = data;
    g_free(door->name);
    g_free(door);
}

/* --- the client's side --- */

struct sender {
    struct storage_world *storage;
    struct storage_host *host;
    char *image, *key;
    guint64 claim, content;
    const char *node;
};

static struct door *door_of(const struct sender *sender)
{
    g_autofree char *name = volume_data_name(sender->image, sender->claim);
    for (guint i = 0; i < sender->storage->doors->len; i++) {
        struct door *door = sender->storage->doors->pdata[i];
        if (!strcmp(door->name, name))
            return door;
    }
    return NULL;
}

/* Whoever has the row by now. */
static bool await_taken(struct sender *sender)
{
    struct storage_world *storage = sender->storage;
    for (guint waited = 0; waited < WAIT_MS; waited += LOOK_MS) {
        const struct worker *row = config_get(storage->truth, "worker", sender->key, NULL);
        const struct storage_service *owner =
            row ? config_storage_service_of(storage->truth, row->service_id) : NULL;
        if (!row)
            return false;
        for (guint i = 0; owner && !row->was_service_id && i < storage->ms->hosts_count; i++)
            if (!strcmp(storage->hosts[i].host->uuid, owner->node)) {
                sender->node = storage->hosts[i].host->uuid;
                sender->claim = row->claim;
                return true;
            }
        if (!env_sleep(sender->host->host->luxid, LOOK_MS))
            return false;
    }
    return false;
}

/* `args` is stolen. */
static bool tell(const struct sender *sender, const char *method, json_t *args)
{
    bool done = false;
    json_object_set_new(args, "key", json_string(sender->key));
    json_object_set_new(args, "claim", json_integer((json_int_t)sender->claim));
    for (guint i = 0; i < 20 && !done; i++) {
        g_autoptr(GError) error = NULL;
        struct rpc_call call = {.to_node = sender->node,
                                .to_role = ROLE_VOLUMED,
                                .method = method,
                                .args = json_incref(args)};
        json_autoptr answer = env_call_wait(sender->host->host->luxid, &call, &error);
        done = answer != NULL;
        if (!done && (!(env_no_answer(error) || fettle_error_is(error, TEMPORARY)) ||
                      !env_sleep(sender->host->host->luxid, 300)))
            break;
    }
    json_decref(args);
    return done;
}

/* What came is what was written last; false: it stops before the end. */
static bool send_bytes(struct sender *sender)
{
    struct storage_world *storage = sender->storage;
    struct ms *ms = storage->ms;
    struct door *door = door_of(sender);
    guint blocks = 1 + ms_random(ms, 6), dies = ms_random(ms, 4) ? blocks : ms_random(ms, blocks);
    if (!door || ms_random(ms, 12) == 0)
        return false; /* it never comes */
    for (guint i = 0; i < blocks; i++) {
        door->state = door->left ? TRANSFER_OVER : TRANSFER_STANDS;
        if (i == dies && ms_random(ms, 4) > 0)
            door->state = TRANSFER_OVER;
        else if (i == dies)
            door->state = TRANSFER_STUCK;
        if (i == dies || door->left || !fake_volumes_has(storage->volumes, door->name))
            return false;
        fake_volumes_write(storage->volumes, door->name);
        sender->content = fake_volumes_content(storage->volumes, door->name);
        if (!env_sleep(sender->host->host->luxid, ms_random(ms, ms_random(ms, 4) ? 300 : 4000)))
            return false;
    }
    return true;
}

/* Now and then it says what it has not sent. */
static bool finish(const struct sender *sender)
{
    struct storage_world *storage = sender->storage;
    struct image_sums sums;
    bool lies = ms_random(storage->ms, 12) == 0;
    fake_volumes_sums(sender->content + lies, &sums);
    if (lies)
        g_hash_table_add(storage->lies, volume_data_name(sender->image, sender->claim));
    return tell(sender, "finish_image",
                json_make("{s:i,s:s}", "bytes", (int)BYTES, "sum", sums.os_hash_value));
}

/* Its connection ends with it, if it has got that far. */
static void leave(const struct sender *sender)
{
    struct door *door = door_of(sender);
    if (door && door->state == TRANSFER_STANDS)
        door->state = TRANSFER_OVER;
}

static void send_task(void *data)
{
    struct sender *sender = data;
    if (await_taken(sender) &&
        tell(sender, "receive_image", json_make("{s:i}", "bytes", (int)BYTES)) &&
        (!send_bytes(sender) || !finish(sender)))
        leave(sender);
    g_free(sender->image);
    g_free(sender->key);
    g_free(sender);
}

void storage_send_image(struct storage_host *host, const char *image)
{
    struct sender *sender = g_new0(struct sender, 1);
    *sender = (struct sender){.storage = host->storage,
                              .host = host,
                              .image = g_strdup(image),
                              .key = config_work_key(RESOURCE_IMAGE, image)};
    host->storage->counts->sent++;
    task_spawn(host->host->luxid->tasks, send_task, sender);
}
