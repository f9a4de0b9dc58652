/*
 * What it costs to believe a token, with the real keys and the real file of identities, in
 * processor time; prints one line a figure: name and the median of its runs. scripts/bench shows
 * them beside the others.
 *
 *   token_check_us    the store is asked whether it is as it was, the token opened, its user,
 * project and roles looked up
 *   floor_aead_us     the same token opened, and nothing else
 */
#include "bench_figure.h"
#include "core/api/api_private.h"
#include "core/api/identity_private.h"
#include "io/crypto/crypto.h"
#include "io/sqlite/identity_store.h"
#include "proto/change.h"
#include "unit/core/world/storage_world.h"

#include <glib/gstdio.h>

#define RUNS 9
#define CHECKS 2000u
#define USER "bbbbbbbb-0000-4000-8000-000000000001"
#define PROJECT "cccccccc-0000-4000-8000-000000000001"

static void or_die(const GError *error)
{
    if (error)
        g_error("%s", error->message);
}

static void add(GPtrArray *changes, const char *kind, const char *key, json_t *object)
{
    g_ptr_array_add(changes, change_make(CHANGE_PUT, kind, key, 0, object));
}

static struct identity_store *make_store(const char *path)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) changes = change_list_new();
    add(changes, "api_role", "member", json_make("{s:s, s:s}", "id", "member", "name", "member"));
    add(changes, "api_user", USER, json_make("{s:s, s:s}", "id", USER, "name", "ann"));
    add(changes, "api_project", PROJECT, json_make("{s:s, s:s}", "id", PROJECT, "name", "demo"));
    add(changes, "api_assignment", USER "/" PROJECT "/member",
        json_make("{s:s, s:s, s:s}", "user_id", USER, "project_id", PROJECT, "role_id", "member"));
    identity_store_create(path, changes, &error);
    or_die(error);
    struct identity_store *store = identity_store_open(path, &error);
    or_die(error);
    return store;
}

static char *seal(struct api *api)
{
    g_autoptr(GError) error = NULL;
    struct api_token *token = token_new(USER, PROJECT, "");
    g_ptr_array_add(token->methods, g_strdup("password"));
    token_stamp(api, token);
    char *text = token_seal(api, token, &error);
    or_die(error);
    api_token_free(token);
    return text;
}

static void check(struct api *api, const char *text)
{
    g_autoptr(GError) error = NULL;
    identity_refresh(api->identity, &error);
    or_die(error);
    struct api_token *token = token_open(api, text, &error);
    or_die(error);
    api_token_free(token);
}

static void open_alone(struct api *api, const char *text)
{
    g_autoptr(GError) error = NULL;
    size_t length;
    g_autofree char *plain = api->crypto->ops->open(api->crypto, text, &length, &error);
    or_die(error);
}

static void measure(const char *name, struct api *api, void (*run)(struct api *, const char *))
{
    g_autofree char *text = seal(api);
    double runs[RUNS];
    for (guint i = 0; i < RUNS; i++) {
        double start = bench_cpu_ms();
        for (guint j = 0; j < CHECKS; j++)
            run(api, text);
        runs[i] = (bench_cpu_ms() - start) * 1000 / CHECKS;
    }
    bench_print_median(name, runs, RUNS);
}

static void remove_all(const char *folder)
{
    g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
    for (const char *name; dir && (name = g_dir_read_name(dir));) {
        g_autofree char *path = g_build_filename(folder, name, NULL);
        g_unlink(path);
    }
    g_rmdir(folder);
}

int main(void)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *folder = g_dir_make_tmp("fettle-bench-token-XXXXXX", &error);
    or_die(error);
    g_autofree char *keys = g_build_filename(folder, "keys", NULL);
    g_autofree char *path = g_build_filename(folder, "api.db", NULL);
    crypto_keys_make(keys, &error);
    or_die(error);
    storage_set_up(NULL);
    struct env *env = fake_process(world.world, NODE2, ROLE_APID);
    struct cell *cell = cell_new(env);
    struct identity_store *store = make_store(path);
    struct crypto *crypto = crypto_open(keys, &error);
    or_die(error);
    const struct api_options options = {.env = env,
                                        .cell = cell,
                                        .identity = store,
                                        .crypto = crypto,
                                        .public_url = "http://api:8774",
                                        .region = "RegionOne"};
    struct api *api = api_new(&options, &error);
    or_die(error);
    measure("token_check_us", api, check);
    measure("floor_aead_us", api, open_alone);
    fake_kill(env);
    api_free(api);
    cell_free(cell);
    identity_store_close(store);
    crypto_close(crypto);
    config_world_clear(&world);
    remove_all(folder);
    return 0;
}
