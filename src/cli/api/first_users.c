/* See first_users.h. */
#include "cli/api/first_users.h"

#include <string.h>

#include "io/api_conf.h"
#include "io/crypto/crypto.h"
#include "io/files.h"
#include "io/loop.h"
#include "io/sqlite/identity_store.h"
#include "proto/records.h"

#define PASSWORD_BYTES 18 /* 24 letters */
#define PATIENCE_MS 60000

/* What is done in a task, as secrets and store wait. */
struct work {
    const char *name; /* of the user */
    struct crypto *crypto;
    struct identity_store *store; /* NULL: it is made of these: */
    GPtrArray *changes;
    char *password;
    GError *error;
    bool done;
};

static char *random_text(struct crypto *crypto, bool id)
{
    guint8 bytes[PASSWORD_BYTES];
    crypto->ops->random(crypto, bytes, sizeof bytes);
    if (!id)
        return g_strdelimit(g_base64_encode(bytes, sizeof bytes), "+/", '-');
    GString *text = g_string_new(NULL);
    for (guint i = 0; i < 16; i++)
        g_string_append_printf(text, "%02x", bytes[i]);
    return g_string_free(text, FALSE);
}

static void put(GPtrArray *changes, const struct record *record, const char *key, const void *value)
{
    g_ptr_array_add(changes,
                    change_make(CHANGE_PUT, record->name, key, 0, record_to_json(record, value)));
}

/* --- the first ones --- */

static char *put_role(struct crypto *crypto, GPtrArray *changes, const char *name)
{
    char *id = random_text(crypto, true);
    const struct api_role role = {.id = id, .name = (char *)name, .description = (char *)""};
    put(changes, &api_role_record, id, &role);
    return id;
}

static void put_admin(struct work *work, const char *role, char *kept)
{
    char name[] = "admin", none[] = "";
    g_autofree char *project_id = random_text(work->crypto, true);
    g_autofree char *user_id = random_text(work->crypto, true);
    const struct api_project project = {
        .id = project_id, .name = name, .description = none, .enabled = true};
    const struct api_user user = {.id = user_id,
                                  .name = name,
                                  .description = none,
                                  .email = none,
                                  .default_project_id = project_id,
                                  .enabled = true,
                                  .password = kept};
    const struct api_assignment assignment = {
        .user_id = user_id, .project_id = project_id, .role_id = (char *)role};
    g_autofree char *key = g_strdup_printf("%s/%s/%s", user_id, project_id, role);
    put(work->changes, &api_project_record, project_id, &project);
    put(work->changes, &api_user_record, user_id, &user);
    put(work->changes, &api_assignment_record, key, &assignment);
}

static void make_task(void *data)
{
    struct work *work = data;
    g_autofree char *member = put_role(work->crypto, work->changes, "member");
    g_autofree char *reader = put_role(work->crypto, work->changes, "reader");
    g_autofree char *admin = put_role(work->crypto, work->changes, "admin");
    work->password = random_text(work->crypto, false);
    g_autofree char *kept =
        work->crypto->ops->password_keep(work->crypto, work->password, &work->error);
    if (kept)
        put_admin(work, admin, kept);
    work->done = true;
}

/* --- another password --- */

struct search {
    const char *name;
    struct api_user *found;
};

static void visit(const char *kind, const char *key, json_t *object, void *data)
{
    struct search *search = data;
    if (!strcmp(kind, "api_user") && !search->found &&
        !g_strcmp0(json_string_value(json_object_get(object, "name")), search->name))
        search->found = api_user_parse(object, RECORD_KEEP, NULL);
    json_decref(object);
}

static bool reset(struct work *work, struct api_user *user, guint64 version)
{
    g_autoptr(GPtrArray) changes = change_list_new();
    g_autofree char *kept =
        work->crypto->ops->password_keep(work->crypto, work->password, &work->error);
    if (!kept)
        return false;
    text_set(&user->password, kept);
    user->tokens_before_us = (guint64)loop_wall_us();
    put(changes, &api_user_record, user->id, user);
    return work->store->ops->commit(work->store, changes, version, &version, &work->error);
}

/* Another front end may be first. */
static void reset_task(void *data)
{
    struct work *work = data;
    bool over = false;
    work->password = random_text(work->crypto, false);
    while (!over) {
        struct search search = {.name = work->name};
        guint64 version = 0;
        g_clear_error(&work->error);
        bool loaded = work->store->ops->load(work->store, visit, &search, &version, &work->error);
        over = !loaded || !search.found || reset(work, search.found, version) ||
               !fettle_error_is(work->error, VERSION_CONFLICT);
        if (loaded && !search.found)
            fettle_set_error(&work->error, UNKNOWN_ENTITY, "there is no user \"%s\"", work->name);
        api_user_free(search.found);
    }
    work->done = true;
}

/* --- their frame --- */

static char *run(struct work *work, task_fn task, GError **error)
{
    struct task_group *group = task_group_new();
    loop_init();
    task_spawn(group, task, work);
    loop_run_until(&work->done, PATIENCE_MS);
    task_group_kill(group);
    task_group_unref(group);
    if (!work->done && !work->error)
        fettle_set_error(&work->error, TIMEOUT, "it is not done after %d s", PATIENCE_MS / 1000);
    if (!work->error)
        return g_steal_pointer(&work->password);
    g_propagate_error(error, work->error);
    g_free(work->password);
    return NULL;
}

char *first_users_make(const struct front_end *end, GError **error)
{
    g_autofree char *keys = api_keys_path(end->paths);
    g_autofree char *path = api_store_path(end->paths);
    g_autofree char *folder = g_path_get_dirname(path);
    if (!files_make_folder(folder, 0700, error) || !crypto_keys_make(keys, error))
        return NULL;
    struct work work = {.crypto = crypto_open(keys, error)};
    if (!work.crypto)
        return NULL;
    work.changes = change_list_new();
    g_autofree char *password = run(&work, make_task, error);
    bool made = password && identity_store_create(path, work.changes, error);
    g_ptr_array_unref(work.changes);
    crypto_close(work.crypto);
    return made ? g_steal_pointer(&password) : NULL;
}

char *first_users_reset(const struct front_end *end, const char *name, GError **error)
{
    g_autofree char *keys = api_keys_path(end->paths);
    g_autofree char *path = api_store_path(end->paths);
    struct work work = {.name = name};
    work.store = identity_store_open(path, error);
    work.crypto = work.store ? crypto_open(keys, error) : NULL;
    char *password = work.crypto ? run(&work, reset_task, error) : NULL;
    g_clear_pointer(&work.crypto, crypto_close);
    g_clear_pointer(&work.store, identity_store_close);
    return password;
}
