/*
 * Clients: what people ask for at the master's node. A request whose answer is lost is asked again,
 * with the id of its commit, here or at the next master. See storage_sim.h.
 */
#include "storage_front.h"

#include <string.h>

#define CLIENTS 3
#define MOST_VOLUMES 40u

static bool is_passing(const GError *error)
{
    return env_no_answer(error) || fettle_error_is(error, UNKNOWN_RESULT) ||
           fettle_error_is(error, TEMPORARY) || fettle_error_is(error, NOT_MASTER) ||
           fettle_error_is(error, STALE_EPOCH);
}

/* As one who looks who the master is before each try; `args` is stolen. */
static void ask(struct storage_host *host, const char *method, json_t *args)
{
    struct ms *ms = host->storage->ms;
    guint tries = 1 + ms_random(ms, 30);
    for (guint i = 0; i < tries; i++) {
        g_autoptr(GError) error = NULL;
        struct rpc_call call = {.to_node = NODE_MASTER,
                                .to_role = ROLE_WCONFD,
                                .method = method,
                                .args = json_incref(args),
                                .stamp = {ms->history, host->host->epoch}};
        json_autoptr answer = env_call_wait(host->cli, &call, &error);
        host->storage->counts->accepted += answer && !strcmp(method, "accept_work");
        if (error && !is_passing(error))
            ms_tell(ms, "%s: %s", method, error->message);
        if (answer || !is_passing(error) || !env_sleep(host->cli, 200))
            break;
    }
    json_decref(args);
}

/* One that work is under way on, if there is any; else, or of all, any. NULL: there is none. */
static char *pick(struct storage_world *storage, bool busy)
{
    g_autoptr(GPtrArray) rows = config_list(storage->truth, "worker");
    g_autoptr(GPtrArray) all = config_list(storage->truth, "volume");
    if (busy && rows->len) {
        const struct worker *row = rows->pdata[ms_random(storage->ms, rows->len)];
        if (row->resource_type == RESOURCE_VOLUME)
            return g_strdup(row->resource_id);
    }
    const struct volume *volume = all->len ? all->pdata[ms_random(storage->ms, all->len)] : NULL;
    return volume ? g_strdup(volume->uuid) : NULL;
}

static void create(struct storage_host *host, const char *id)
{
    struct storage_world *storage = host->storage;
    g_autofree char *name = g_strdup_printf("v%u", ++storage->last_name);
    guint which = ms_random(storage->ms, STORAGE_BACKENDS + 1);
    g_autofree char *backend = which ? g_strdup_printf("b%u", which) : g_strdup("");
    ask(host, "accept_work",
        json_make("{s:s,s:s,s:s,s:s,s:i,s:s}", "commit_id", id, "resource_type", "Volume",
                  "operation", "create-volume", "name", name, "size",
                  1 + (int)ms_random(storage->ms, 4), "backend", backend));
}

/* --- copies --- */

/* Any record of that kind; NULL: there is none. */
static const void *any_of(const struct storage_world *storage, const char *kind)
{
    g_autoptr(GPtrArray) all = config_list(storage->truth, kind);
    return all->len ? all->pdata[ms_random(storage->ms, all->len)] : NULL;
}

/* Any volume; often one that a guest has. */
static const struct volume *any_volume(const struct storage_world *storage)
{
    const struct volume *volume = any_of(storage, "volume");
    for (guint i = 0; i < 8 && volume && storage_has_guests(storage->ms); i++)
        if (!storage_opened(storage, volume->data))
            volume = any_of(storage, "volume");
    return volume;
}

/* Of a resource, or of what makes one by the name (`resource` is NULL); `more` is stolen. */
static void accept(struct storage_host *host, const char *id, const char *type,
                   const char *operation, const char *resource, json_t *more)
{
    g_autofree char *name = g_strdup_printf("c%u", ++host->storage->last_name);
    json_t *args =
        json_make("{s:s,s:s,s:s,s:s}", "commit_id", id, "resource_type", type, "operation",
                  operation, resource ? "resource" : "name", resource ? resource : name);
    if (more)
        json_object_update(args, more);
    json_decref(more);
    ask(host, "accept_work", args);
}

/* A guest writes to what it might have: no work is under way on it, and no copy of it is made. */
static void write_volume(const struct storage_world *storage, const struct volume *volume)
{
    g_autoptr(GPtrArray) rows = config_list(storage->truth, "worker");
    for (guint i = 0; i < rows->len; i++) {
        const struct worker *row = rows->pdata[i];
        if (!strcmp(row->resource_id, volume->uuid) || !strcmp(row->partner_id, volume->uuid) ||
            (row->source && !strcmp(row->source->resource_id, volume->uuid)))
            return;
    }
    if (volume->status != VOLUME_AVAILABLE || volume->attachments->len)
        return;
    storage->counts->writes++;
    fake_volumes_write(storage->volumes, volume->data);
}

/* A backup of it, on any of the back ends; or of a snapshot. */
static void back_up(struct storage_host *host, const char *id, const struct volume *volume,
                    const struct snapshot *snapshot)
{
    g_autofree char *backend =
        g_strdup_printf("b%u", 1 + ms_random(host->storage->ms, STORAGE_BACKENDS));
    accept(host, id, "Backup", "back-up-volume", NULL,
           json_make("{s:s,s:s,s:s}", "source", snapshot ? snapshot->volume : volume->uuid,
                     "snapshot", snapshot ? snapshot->uuid : "", "backend", backend));
}

/* Over any volume, its own or another one, or into a new one. */
static void restore(struct storage_host *host, const char *id, const struct backup *backup,
                    const struct volume *volume)
{
    g_autofree char *name = g_strdup_printf("r%u", ++host->storage->last_name);
    accept(host, id, "Backup", "restore-backup", backup->uuid,
           volume ? json_make("{s:s}", "target", volume->uuid)
                  : json_make("{s:s,s:s}", "name", name, "backend", "b1"));
}

static void one_of_backups(struct storage_host *host, const char *id, const struct volume *volume)
{
    struct storage_world *storage = host->storage;
    const struct snapshot *snapshot = any_of(storage, "snapshot");
    const struct backup *backup = any_of(storage, "backup");
    bool full = config_count(storage->truth, "volume") >= MOST_VOLUMES;
    guint what = ms_random(storage->ms, 100);
    if (what < 45 || !backup)
        back_up(host, id, volume, what % 3 ? NULL : snapshot);
    else if (what < 80)
        restore(host, id, backup, full || what < 65 ? volume : NULL);
    else
        accept(host, id, "Backup", "delete-backup", backup->uuid, NULL);
}

static void reset(struct storage_host *host, const char *id, const char *type, const char *resource,
                  const char *status)
{
    struct storage_world *storage = host->storage;
    g_hash_table_add(storage->reset_ids, g_strdup(id));
    ask(host, "reset_state",
        json_make("{s:s,s:s,s:s,s:s}", "commit_id", id, "resource_type", type, "resource", resource,
                  "status", status));
}

/* --- images --- */

/* With the bytes by whoever asked for it, who may send none of them. */
static void receive(struct storage_host *host, const char *id)
{
    g_autofree char *backend =
        g_strdup_printf("b%u", 1 + ms_random(host->storage->ms, STORAGE_BACKENDS));
    g_autofree char *again = env_uuid(host->cli);
    g_autofree char *name = g_strdup_printf("i%u", ++host->storage->last_name);
    ask(host, "add_image",
        json_make("{s:s,s:s,s:s,s:s}", "commit_id", id, "name", name, "backend", backend,
                  "disk_format", "raw"));
    accept(host, again, "Image", "save-image", id, NULL);
    storage_send_image(host, id);
}

static void one_of_images(struct storage_host *host, const char *id)
{
    struct storage_world *storage = host->storage;
    const struct volume *volume = any_of(storage, "volume");
    const struct image *image = any_of(storage, "image");
    guint what = ms_random(storage->ms, 100);
    bool full = config_count(storage->truth, "volume") >= MOST_VOLUMES;
    g_autofree char *backend = g_strdup_printf("b%u", 1 + what % STORAGE_BACKENDS);
    g_autofree char *uuid = g_strdup(image ? image->uuid : "");
    if (what < 35 || !image)
        receive(host, id);
    else if (what < 55 && volume)
        accept(host, id, "Volume", "upload-volume", volume->uuid,
               json_make("{s:s,s:s}", "name", "u", "backend", backend));
    else if (what < 75 && !full)
        accept(host, id, "Volume", "create-volume", NULL,
               json_make("{s:s,s:s,s:i}", "image", uuid, "backend", backend, "size", 4));
    else if (what < 88)
        accept(host, id, "Image", "delete-image", uuid, NULL);
    else if (what < 94)
        reset(host, id, "Image", uuid, "killed");
    else {
        accept(host, id, "Image", "save-image", uuid, NULL);
        storage_send_image(host, uuid);
    }
}

static void one_of_copies(struct storage_host *host, const char *id)
{
    struct storage_world *storage = host->storage;
    const struct volume *volume = any_volume(storage);
    const struct snapshot *snapshot = any_of(storage, "snapshot");
    guint what = ms_random(storage->ms, 100);
    bool full = config_count(storage->truth, "volume") >= MOST_VOLUMES;
    if (what < 30 && volume)
        write_volume(storage, volume);
    else if (what < 55 && volume)
        one_of_backups(host, id, volume);
    else if (what < 62 && volume)
        accept(host, id, "Volume", "migrate-volume", volume->uuid, NULL);
    else if (what < 75 && volume)
        accept(host, id, "Snapshot", "create-snapshot", NULL,
               json_make("{s:s}", "source", volume->uuid));
    else if (what < 85 && snapshot && !full)
        accept(host, id, "Volume", "create-volume", NULL,
               json_make("{s:s}", "source", snapshot->uuid));
    else if (what < 93 && snapshot)
        accept(host, id, "Snapshot", "delete-snapshot", snapshot->uuid, NULL);
    else if (volume)
        accept(host, id, "Volume", "delete-volume", volume->uuid, json_make("{s:b}", "cascade", 1));
}

static void work(struct storage_host *host, const char *id, const char *operation,
                 const char *resource)
{
    const struct volume *volume = config_get(host->storage->truth, "volume", resource, NULL);
    int size = strcmp(operation, "extend-volume") || !volume
                   ? 0
                   : (int)volume->size + (int)ms_random(host->storage->ms, 3);
    ask(host, "accept_work",
        json_make("{s:s,s:s,s:s,s:s,s:i}", "commit_id", id, "resource_type", "Volume", "operation",
                  operation, "resource", resource, "size", size));
}

/* Nobody works on it since a restore. */
static bool is_left(const struct storage_world *storage, const struct resource *resource)
{
    return task_row_of(resource_task_kind(resource->type), resource->status) &&
           !storage_row_of(storage->truth, resource);
}

void storage_reset_left(struct storage_host *host)
{
    struct storage_world *storage = host->storage;
    for (guint type = 0; storage->restored && resource_type_words.words[type]; type++) {
        g_autoptr(GPtrArray) all = config_list(storage->truth, resource_kind(type));
        g_autoptr(GPtrArray) left = g_ptr_array_new_with_free_func(g_free);
        for (guint i = 0; i < all->len; i++) {
            const struct resource resource = resource_read(type, all->pdata[i]);
            if (is_left(storage, &resource))
                g_ptr_array_add(left, g_strdup(resource.uuid));
        }
        for (guint i = 0; i < left->len && host->cli && !task_killed(); i++) {
            g_autofree char *id = env_uuid(host->cli);
            storage->counts->left++;
            reset(host, id, resource_type_words.words[type], left->pdata[i],
                  resource_error_status(type));
        }
    }
}

/* --- what a member works on is reset --- */

bool storage_works_on(const struct storage_world *storage, const struct storage_host *host,
                      const struct worker *row)
{
    const struct storage_service *service =
        config_storage_service_of(storage->truth, row->service_id);
    return service && !strcmp(service->node, host->host->uuid);
}

static void reset_task(void *data)
{
    struct storage_host *busy = data;
    struct storage_world *storage = busy->storage;
    const struct ms *ms = storage->ms;
    struct storage_host *here = ms->newest_host >= 0 ? &storage->hosts[ms->newest_host] : busy;
    g_autoptr(GPtrArray) rows = config_list(storage->truth, "worker");
    g_autoptr(GPtrArray) keys = g_ptr_array_new_with_free_func(g_free);
    for (guint i = 0; i < rows->len; i++) {
        const struct worker *row = rows->pdata[i];
        if (storage_works_on(storage, busy, row))
            g_ptr_array_add(keys, config_work_key(row->resource_type, row->resource_id));
    }
    for (guint i = 0; i < keys->len && here->cli && !task_killed(); i++) {
        g_autofree char *id = env_uuid(here->cli);
        g_auto(GStrv) words = g_strsplit(keys->pdata[i], "/", 2);
        reset(here, id, words[0], words[1], "error");
    }
}

void storage_reset_work(struct storage_host *busy)
{
    const struct ms *ms = busy->storage->ms;
    const struct env *cli = ms->newest_host >= 0 ? busy->storage->hosts[ms->newest_host].cli : NULL;
    if (cli)
        task_spawn(cli->tasks, reset_task, busy);
}

struct wish {
    struct storage_host *host;
    const char *method;
    json_t *args;
};

static void wish_task(void *data)
{
    g_autofree struct wish *wish = data;
    g_autofree char *id = env_uuid(wish->host->cli);
    json_object_set_new(wish->args, "commit_id", json_string(id));
    if (!strcmp(wish->method, "reset_state"))
        g_hash_table_add(wish->host->storage->reset_ids, g_strdup(id));
    ask(wish->host, wish->method, wish->args);
}

void storage_person(struct storage_world *storage, const char *method, json_t *args)
{
    struct wish *wish = g_new(struct wish, 1);
    *wish = (struct wish){&storage->hosts[storage->ms->newest_host], method, args};
    task_spawn(wish->host->cli->tasks, wish_task, wish);
}

/* --- clients --- */

static void clean_up(struct storage_host *host, const char *id)
{
    static const char *const up[] = {"", "", "false", "true"};
    struct ms *ms = host->storage->ms;
    ask(host, "request_cleanup",
        json_make("{s:s,s:s,s:s}", "commit_id", id, "is_up", up[ms_random(ms, 4)], "requester",
                  "client"));
}

static void one_request(struct storage_host *host)
{
    static const char *const words[] = {"available", "available", "error", "error_deleting",
                                        "error_extending"};
    struct storage_world *storage = host->storage;
    if (storage->fronts && ms_random(storage->ms, 10) > 0) {
        storage_client_asks(host);
        return;
    }
    g_autofree char *id = env_uuid(host->cli);
    guint what = ms_random(storage->ms, 100);
    if (ms_random(storage->ms, 40) == 0) {
        clean_up(host, id);
        return;
    }
    if (storage->ms->theme == &storage_images_theme && ms_random(storage->ms, 3) == 0) {
        one_of_images(host, id);
        return;
    }
    if (storage->ms->theme != &storage_theme && ms_random(storage->ms, 2)) {
        one_of_copies(host, id);
        return;
    }
    bool full = config_count(storage->truth, "volume") >= MOST_VOLUMES;
    g_autofree char *resource = pick(storage, what >= 97);
    if (!resource || (what < 40 && !full))
        create(host, id);
    else if (what < 66)
        work(host, id, "delete-volume", resource);
    else if (what < 94)
        work(host, id, "extend-volume", resource);
    else if (what < 97)
        ask(host, "change_volume",
            json_make("{s:s,s:s,s:s}", "commit_id", id, "volume", resource, "name", "other"));
    else
        reset(host, id, "Volume", resource, words[ms_random(storage->ms, G_N_ELEMENTS(words))]);
}

static void client_task(void *data)
{
    struct storage_host *host = data;
    struct ms *ms = host->storage->ms;
    while (env_sleep(host->cli, 20 + ms_random(ms, 600)))
        if (ms->calm && host->storage->fronts)
            storage_client_looks(host);
        else if (!ms->calm && (host->host->epoch || host->storage->fronts))
            one_request(host);
}

void storage_load_start(struct storage_host *host)
{
    for (guint i = 0; i < CLIENTS && !host->storage->ms->theme->plain; i++)
        task_spawn(host->cli->tasks, client_task, host);
}
