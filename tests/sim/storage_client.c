/* Clients of the API: what they ask for, of which front end, and again; see storage_front.h. */
#include "storage_front.h"

#include <string.h>

#define NEWEST_TRIES 3u

/* One who asks. */
struct client {
    struct storage_world *storage;
    const struct env *env;
    struct storage_front *front;
    bool is_admin;
    bool works; /* what is asked for next is */
    char *name; /* that a volume gets by what is asked for next; NULL: none */
};

static guint chance(const struct client *client, guint below)
{
    return ms_random(client->storage->ms, below);
}

static char *new_name(const struct client *client)
{
    return g_strdup_printf("a%u", ++client->storage->last_name);
}

/* --- asking --- */

/* Whose token is good for all front ends, until one says that it is not. */
static const char *token_of(const struct client *client)
{
    char **token = &client->storage->fronts->tokens[client->is_admin];
    const char *user = client->is_admin ? "admin" : "member";
    g_autofree char *password = g_strconcat("pw-", user, NULL);
    const struct storage_exchange exchange = {.front = client->front};
    json_autoptr text = NULL;
    if (*token)
        return *token;
    storage_front_ask(client->env, &exchange, NULL, "POST", "/identity/v3/auth/tokens",
                      json_make("{s:{s:{s:[s], s:{s:{s:s, s:s}}}, s:{s:{s:s}}}}", "auth",
                                "identity", "methods", "password", "password", "user", "id", user,
                                "password", password, "scope", "project", "id", FRONT_PROJECT),
                      &text);
    if (text && !*token)
        *token = g_strdup(json_string_value(text));
    return *token;
}

/* The status, 0: there is no answer; `body` is stolen, `ret` may be NULL. */
static guint ask(struct client *client, const char *method, json_t *body, json_t **ret,
                 const char *format, ...) G_GNUC_PRINTF(5, 6);

static guint ask(struct client *client, const char *method, json_t *body, json_t **ret,
                 const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_autofree char *path = g_strdup_vprintf(format, args);
    va_end(args);
    g_autofree char *token = g_strdup(token_of(client));
    const struct storage_exchange exchange = {
        .front = client->front, .works = client->works, .name = client->name};
    if (!token || task_killed()) {
        json_decref(body);
        return 0;
    }
    guint status = storage_front_ask(client->env, &exchange, token, method, path, body, ret);
    char **kept = &client->storage->fronts->tokens[client->is_admin];
    if (status == 401 && !g_strcmp0(*kept, token))
        g_clear_pointer(kept, g_free);
    client->works = false;
    return status;
}

/* The same for work. */
#define WORK(client, method, body, ret, ...)                                                       \
    ((client)->works = true, ask(client, method, body, ret, __VA_ARGS__))

static void move_on(struct client *client)
{
    struct storage_world *storage = client->storage;
    client->front = &storage->fronts->fronts[chance(client, storage->ms->hosts_count)];
}

/* Nothing speaks against asking once more. */
static bool may_again(struct client *client, guint status, guint tries)
{
    bool again = (!status || status == 503 || status == 401) && tries < NEWEST_TRIES;
    if (again && chance(client, 2))
        move_on(client);
    return again && env_sleep(client->env, 200);
}

/* --- what there is --- */

static const void *any_of(const struct client *client, const char *kind)
{
    g_autoptr(GPtrArray) all = config_list(client->storage->truth, kind);
    return all->len ? all->pdata[chance(client, all->len)] : NULL;
}

/* One of the project's, who is no administrator sees no others; "": there is none. */
static char *any_id(const struct client *client, const char *kind)
{
    for (guint i = 0; i < 5; i++) {
        const void *record = any_of(client, kind);
        const struct resource is = resource_read(resource_type_of(kind), record);
        if (record && (client->is_admin || !strcmp(is.project, FRONT_PROJECT)))
            return g_strdup(is.uuid);
    }
    return g_strdup("");
}

static guint64 size_of(const struct client *client, const char *volume)
{
    const struct volume *is = config_get(client->storage->truth, "volume", volume, NULL);
    return is ? is->size : 1;
}

/* --- volumes --- */

static void look(struct client *client, const char *id)
{
    json_autoptr json = NULL;
    ask(client, "GET", NULL, &json, "/volumes/%s", id);
}

/* And looks at it at once, where it was asked for. */
static void create(struct client *client)
{
    static const char *const sources[] = {"volume", "snapshot", "image", "backup"};
    static const char *const words[] = {"source_volid", "snapshot_id", "imageRef", "backup_id"};
    g_autofree char *name = new_name(client);
    guint which = chance(client, 12);
    json_t *volume =
        json_make("{s:s, s:i}", "name", name, "size", which < 4 ? 5 : 1 + (int)chance(client, 4));
    g_autofree char *source = which < 4 ? any_id(client, sources[which]) : NULL;
    json_autoptr made = NULL;
    if (source && *source)
        json_object_set_new(volume, words[which], json_string(source));
    WORK(client, "POST", json_make("{s:o}", "volume", volume), &made, "/volumes");
    const char *id = json_string_value(json_object_get(json_object_get(made, "volume"), "id"));
    if (id && chance(client, 2))
        look(client, id);
}

static void rename_volume(struct client *client, const char *id)
{
    g_autofree char *name = new_name(client);
    client->name = name;
    guint status, tries = 0;
    do
        status = ask(client, "PUT", json_make("{s:{s:s}}", "volume", "name", name), NULL,
                     "/volumes/%s", id);
    while (may_again(client, status, ++tries));
    client->name = NULL;
    look(client, id);
}

/* Only one of the requests that are one to who asks may be done: then the others are refused. */
static void delete (struct client *client, const char *path)
{
    guint status, tries = 0;
    do
        status = WORK(client, "DELETE", NULL, NULL, "%s", path);
    while (may_again(client, status, ++tries));
}

static void act(struct client *client, const char *id, json_t *body)
{
    WORK(client, "POST", body, NULL, "/volumes/%s/action", id);
}

static void migrate(struct client *client, const char *id)
{
    g_autofree char *host =
        g_strdup_printf("node1@b%1$u#b%1$u", 1 + chance(client, STORAGE_BACKENDS));
    act(client, id, json_make("{s:{s:s}}", "os-migrate_volume", "host", host));
}

static void upload(struct client *client, const char *id)
{
    g_autofree char *name = new_name(client);
    act(client, id,
        json_make("{s:{s:s, s:s, s:s}}", "os-volume_upload_image", "image_name", name,
                  "disk_format", "raw", "container_format", "bare"));
}

/* A person says what it is; that is no work. */
static void reset(struct client *client, const char *plural, const char *id)
{
    static const char *const words[] = {"available", "available", "error", "error_deleting"};
    ask(client, "POST",
        json_make("{s:{s:s}}", "os-reset_status", "status",
                  words[chance(client, G_N_ELEMENTS(words))]),
        NULL, "/%s/%s/action", plural, id);
}

static void one_of_volumes(struct client *client)
{
    g_autofree char *id = any_id(client, "volume");
    g_autofree char *path =
        g_strdup_printf("/volumes/%s%s", id, chance(client, 3) ? "" : "?cascade=true");
    guint what = chance(client, 100);
    bool full = config_count(client->storage->truth, "volume") > FRONT_VOLUMES + 10;
    if (!*id || (what < 38 && !full))
        create(client);
    else if (what < 60)
        delete (client, path);
    else if (what < 74)
        act(client, id,
            json_make("{s:{s:I}}", "os-extend", "new_size",
                      (json_int_t)size_of(client, id) + 1 + chance(client, 2)));
    else if (what < 84)
        rename_volume(client, id);
    else if (what < 88)
        look(client, id);
    else if (what < 92)
        upload(client, id);
    else if (what < 95 && client->is_admin)
        migrate(client, id);
    else if (what < 97 && client->is_admin)
        act(client, id, json_make("{s:{}}", "os-force_delete"));
    else if (client->is_admin)
        reset(client, "volumes", id);
}

/* --- what is made of volumes --- */

static void one_of_snapshots(struct client *client)
{
    g_autofree char *volume = any_id(client, "volume"), *id = any_id(client, "snapshot");
    g_autofree char *name = new_name(client), *path = g_strconcat("/snapshots/", id, NULL);
    if (!*id || (*volume && chance(client, 2)))
        WORK(client, "POST",
             json_make("{s:{s:s, s:s, s:b}}", "snapshot", "volume_id", volume, "name", name,
                       "force", 1),
             NULL, "/snapshots");
    else if (chance(client, 4) || !client->is_admin)
        delete (client, path);
    else
        reset(client, "snapshots", id);
}

static void one_of_backups(struct client *client)
{
    g_autofree char *volume = any_id(client, "volume"), *id = any_id(client, "backup");
    g_autofree char *name = new_name(client), *path = g_strconcat("/backups/", id, NULL);
    g_autofree char *place = g_strdup_printf("b%u", 1 + chance(client, STORAGE_BACKENDS));
    guint what = chance(client, 100);
    if (!*id || (*volume && what < 45))
        WORK(client, "POST",
             json_make("{s:{s:s, s:s, s:s, s:b}}", "backup", "volume_id", volume, "name", name,
                       "container", place, "force", 1),
             NULL, "/backups");
    else if (what < 75)
        WORK(client, "POST",
             json_make("{s:{s:s}}", "restore", what < 55 ? "name" : "volume_id",
                       what < 55 ? name : volume),
             NULL, "/backups/%s/restore", id);
    else
        delete (client, path);
}

static void one_of_images(struct client *client)
{
    g_autofree char *id = any_id(client, "image");
    g_autofree char *path = g_strconcat("/image/v2/images/", id, NULL);
    if (*id && chance(client, 2))
        delete (client, path);
    else
        ask(client, "GET", NULL, NULL, "/image/v2/images");
}

/* --- what administrators ask for --- */

static void clean_up(struct client *client)
{
    guint what = chance(client, 4);
    if (what == 0)
        ask(client, "POST", json_object(), NULL, "/workers/auto_cleanup");
    else
        ask(client, "POST", what == 1 ? json_object() : json_make("{s:b}", "is_up", what == 2),
            NULL, "/workers/cleanup");
}

void storage_client_asks(struct storage_host *host)
{
    struct storage_world *storage = host->storage;
    struct client client = {.storage = storage, .env = host->cli, .front = storage_front_of(host)};
    client.is_admin = chance(&client, 3) > 0;
    if (chance(&client, 3) == 0)
        move_on(&client);
    guint what = chance(&client, 100);
    if (what < 60)
        one_of_volumes(&client);
    else if (what < 74)
        one_of_snapshots(&client);
    else if (what < 86)
        one_of_backups(&client);
    else if (what < 90)
        one_of_images(&client);
    else if (what < 96)
        ask(&client, "GET", NULL, NULL, "/volumes/detail");
    else if (client.is_admin)
        clean_up(&client);
}

void storage_client_looks(struct storage_host *host)
{
    struct storage_front *front = storage_front_of(host);
    struct client client = {
        .storage = host->storage, .env = host->cli, .front = front, .is_admin = true};
    json_autoptr json = NULL;
    if (front->whole)
        return;
    ask(&client, "GET", NULL, &json, "/volumes/detail?all_tenants=1");
    front->whole = json && storage_is_on_record(host->storage, json_object_get(json, "volumes"));
}
