/* See engine_file.h. */
#include "io/engine_file.h"

#include "io/files.h"
#include "proto/seal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static char *path_of(const struct node_paths *paths)
{
    return g_build_filename(paths->etc, ENGINE_FILE_NAME, NULL);
}

static struct engine_config *parse(const char *text, size_t len, GError **error)
{
    json_autoptr json = seal_from_text(text, len, LIMIT_ENGINE_FILE_BYTES, error);
    record_autoptr(engine_config) config =
        json != NULL ? engine_config_parse(json, RECORD_KEEP, error) : NULL;
    if (config == NULL || !engine_config_check(config, error))
        return NULL;
    return g_steal_pointer(&config);
}

struct engine_config *engine_file_read(const struct node_paths *paths, GError **error)
{
    g_autofree char *path = path_of(paths);
    g_autoptr(GError) why = NULL;
    size_t len = 0;
    g_autofree char *text = files_read_path(path, LIMIT_ENGINE_FILE_BYTES, &len, &why);

    if (text == NULL && fettle_error_is(why, UNKNOWN_ENTITY))
        return engine_config_sqlite();
    struct engine_config *config = text != NULL ? parse(text, len, &why) : NULL;
    if (config == NULL)
        fettle_set_error(error, CORRUPT, "%s: %s; put back the file as it was", path, why->message);
    return config;
}

bool engine_file_write(const struct node_paths *paths, const struct engine_config *config,
                       GError **error)
{
    g_autofree char *path = path_of(paths);

    if (!engine_config_check(config, error))
        return false;
    json_autoptr json = engine_config_to_json(config);
    g_autofree char *text = seal_to_text(json);
    return files_write_synced(path, text, strlen(text), 0644, error);
}

static bool sync_folder(const char *folder, GError **error)
{
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool ok = fd >= 0 && fsync(fd) == 0;
    if (!ok)
        fettle_set_error(error, STORAGE, "cannot sync the folder %s: %s", folder,
                         g_strerror(errno));
    if (fd >= 0)
        close(fd);
    return ok;
}

bool engine_file_remove(const struct node_paths *paths, GError **error)
{
    g_autofree char *path = path_of(paths);
    if (unlink(path) != 0 && errno != ENOENT) {
        fettle_set_error(error, STORAGE, "cannot remove %s: %s", path, g_strerror(errno));
        return false;
    }
    return sync_folder(paths->etc, error);
}

/* --- certificates --- */

static char *below(const struct node_paths *paths, const char *whose, const char *ending)
{
    g_autofree char *name = g_strconcat(whose, ending, NULL);
    return g_build_filename(paths->etc, "etcd", name, NULL);
}

char *engine_file_certificate(const struct node_paths *paths, const char *whose)
{
    return below(paths, whose, ".crt");
}

char *engine_file_key(const struct node_paths *paths, const char *whose)
{
    return below(paths, whose, ".key");
}

char *engine_file_authority(const struct node_paths *paths)
{
    return below(paths, "authority", ".crt");
}
