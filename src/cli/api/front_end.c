/* See front_end.h. */
#include "cli/api/front_end.h"

#include <gio/gio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/endpoint.h"
#include "io/api_conf.h"
#include "io/files.h"
#include "io/tree.h"

void front_end_free(struct front_end *end)
{
    if (!end)
        return;
    g_free(end->node);
    g_free(end->lab);
    node_paths_free(end->paths);
    node_config_free(end->config);
    g_free(end);
}

/* The folder of the lab whose node has that root; NULL: it is none's. */
static char *lab_of(const char *root)
{
    g_autofree char *above = g_path_get_dirname(root);
    g_autofree char *file = g_build_filename(above, "lab.json", NULL);
    return g_file_test(file, G_FILE_TEST_EXISTS) ? g_steal_pointer(&above) : NULL;
}

static bool read_node(struct front_end *end, const char *root, GError **error)
{
    g_clear_pointer(&end->paths, node_paths_free);
    g_clear_pointer(&end->config, node_config_free);
    end->paths = node_paths_new(root, error);
    end->config = end->paths ? node_config_read(end->paths, error) : NULL;
    return end->config;
}

static bool is_it(const struct front_end *end, const char *node)
{
    return !strcmp(end->config->name, node) || !strcmp(end->config->node_uuid, node);
}

static bool find_in_lab(struct front_end *end, const char *node, GError **error)
{
    g_autofree char *root = g_build_filename(end->lab, node, NULL);
    return !strchr(node, '/') && g_file_test(root, G_FILE_TEST_IS_DIR) &&
           read_node(end, root, error) && is_it(end, node);
}

struct front_end *front_end_find(const struct cli *cli, const char *node, GError **error)
{
    g_autoptr(front_end_t) end = g_new0(struct front_end, 1);
    if (!read_node(end, cli->root, error))
        return NULL;
    end->lab = lab_of(end->paths->root);
    end->elsewhere = node && !is_it(end, node) && !(end->lab && find_in_lab(end, node, NULL));
    if (end->elsewhere && !read_node(end, cli->root, error))
        return NULL;
    end->node = g_strdup(end->elsewhere ? node : end->config->name);
    return g_steal_pointer(&end);
}

/* --- files --- */

static GPtrArray *paths_of(const struct front_end *end)
{
    GPtrArray *paths = g_ptr_array_new_with_free_func(g_free);
    g_ptr_array_add(paths, api_conf_path(end->paths));
    g_ptr_array_add(paths, api_keys_path(end->paths));
    g_ptr_array_add(paths, api_store_path(end->paths));
    return paths;
}

bool front_end_is_whole(const struct front_end *end)
{
    g_autoptr(GPtrArray) paths = paths_of(end);
    bool whole = true;
    for (guint i = 0; i < paths->len; i++)
        whole = whole && g_file_test(paths->pdata[i], G_FILE_TEST_EXISTS);
    return whole;
}

bool front_end_is_of(const struct front_end *end, const struct api_owner *owner)
{
    g_autofree char *keys = api_keys_path(end->paths), *store = api_store_path(end->paths);
    g_autofree char *folder = g_path_get_dirname(store);
    g_autofree char *pem = api_pem_path(end->paths); /* which not every one has */
    const char *const paths[] = {keys, store, folder, pem};
    bool is = true;
    for (guint i = 0; i < G_N_ELEMENTS(paths); i++) {
        struct stat about;
        is = is && (lstat(paths[i], &about) == 0 ? about.st_uid == owner->uid : paths[i] == pem);
    }
    return is;
}

/* With all groups that its user has. */
static bool can_read(const struct api_owner *owner, const char *path, GError **error)
{
    g_autofree char *uid = g_strdup_printf("--reuid=%u", owner->uid);
    g_autofree char *gid = g_strdup_printf("--regid=%u", owner->gid);
    const char *const argv[] = {"setpriv", uid,  gid, "--init-groups", "--", "test",
                                "-r",      path, NULL};
    int status = 0;
    if (!g_spawn_sync(NULL, (char **)argv, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL, NULL, NULL,
                      &status, error))
        return false;
    if (status)
        fettle_set_error(error, WRONG_STATE,
                         "%s cannot be read by user %u, whose the front end is: chgrp %u, mode "
                         "0640, in folders that it may enter; then try again",
                         path, owner->uid, owner->gid);
    return !status;
}

bool front_end_can_show(const struct front_end *end, const struct api_conf *conf,
                        const struct api_owner *owner, GError **error)
{
    g_autofree char *pem = api_pem_path(end->paths);
    const char *const files[] = {conf->certificate, conf->key};
    bool can = true;
    for (guint i = 0; owner->uid && i < G_N_ELEMENTS(files); i++)
        can = can && (!*files[i] || !strcmp(files[i], pem) || can_read(owner, files[i], error));
    return can;
}

char *front_end_left(const struct front_end *end)
{
    g_autoptr(GPtrArray) paths = paths_of(end);
    g_autoptr(GString) left = g_string_new(NULL);
    for (guint i = 0; i < paths->len; i++)
        if (g_file_test(paths->pdata[i], G_FILE_TEST_EXISTS))
            g_string_append_printf(left, "%s%s", left->len ? ", " : "", (char *)paths->pdata[i]);
    return g_string_free(g_steal_pointer(&left), FALSE);
}

bool front_end_remove(const struct front_end *end, GError **error)
{
    static const char *const beside[] = {"", "-wal", "-shm"};
    g_autoptr(GPtrArray) paths = paths_of(end);
    for (guint i = 0; i < paths->len; i++)
        for (guint k = 0; k < G_N_ELEMENTS(beside); k++) {
            g_autofree char *path = g_strconcat(paths->pdata[i], beside[k], NULL);
            if (!files_remove_path(path, true, error))
                return false;
        }
    g_autofree char *pem = api_pem_path(end->paths), *store = api_store_path(end->paths);
    g_autofree char *folder = g_path_get_dirname(store);
    if (!files_remove_path(pem, true, error))
        return false;
    rmdir(folder); /* whose it is says whose the front end is */
    return true;
}

char *front_end_url(const struct front_end *end, const struct api_conf *conf)
{
    if (*conf->public_url)
        return g_strdup(conf->public_url);
    g_autoptr(GInetAddress) address = g_inet_address_new_from_string(conf->listen);
    bool any = !address || g_inet_address_get_is_any(address);
    g_autofree char *place = endpoint_text(any ? end->config->address : conf->listen, conf->port);
    return g_strconcat(*conf->certificate ? "https://" : "http://", place, NULL);
}
