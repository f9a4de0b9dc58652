/* See backend_place.h. */
#include "proto/storage/backend_place.h"

#include <string.h>

#define CEPH_LETTERS G_CSET_A_2_Z G_CSET_a_2_z G_CSET_DIGITS "_.-"

char *backend_place(const struct backend *backend)
{
    if (backend->kind == BACKEND_DIR)
        return g_strdup(backend->path);
    return *backend->namespace ? g_strdup_printf("%s/%s", backend->pool, backend->namespace)
                               : g_strdup(backend->pool);
}

/* What one of the other kind has. */
static bool lacks(const char *field, const char *value, const char *kind, GError **error)
{
    if (!*value)
        return true;
    fettle_set_error(error, WRONG_INPUT, "%s: a back end of kind %s has none, and \"%s\" is named",
                     field, kind, value);
    return false;
}

static bool is_path(const char *field, const char *path, const char *what, GError **error)
{
    g_autofree char *shortest = g_canonicalize_filename(path, "/");
    if (strcmp(shortest, path) == 0 && strcmp(shortest, "/") != 0)
        return true;
    fettle_set_error(error, WRONG_INPUT,
                     "%s: \"%s\" is not the path of a %s below /, as short as can be", field, path,
                     what);
    return false;
}

static bool dir_rule(const struct backend *backend, GError **error)
{
    return lacks("pool", backend->pool, "dir", error) &&
           lacks("namespace", backend->namespace, "dir", error) &&
           lacks("conf", backend->conf, "dir", error) &&
           lacks("user", backend->user, "dir", error) &&
           is_path("path", backend->path, "directory", error);
}

/* They are words of commands, and parts of an image's name. */
static bool is_word(const char *field, const char *word, GError **error)
{
    if (strspn(word, CEPH_LETTERS) == strlen(word) && *word != '-' && *word != '.')
        return true;
    fettle_set_error(
        error, WRONG_INPUT,
        "%s: \"%s\" must be made of letters, digits, \"_\", \".\" and \"-\", and begin "
        "with none of the last two",
        field, word);
    return false;
}

static bool rbd_rule(const struct backend *backend, GError **error)
{
    if (!*backend->pool || !*backend->user) {
        fettle_set_error(error, WRONG_INPUT, "%s: a back end of kind rbd needs one",
                         *backend->pool ? "user" : "pool");
        return false;
    }
    if (backend->backups) {
        fettle_set_error(error, WRONG_INPUT,
                         "backups: they are files, which a back end of kind rbd does not keep; one "
                         "of kind dir does");
        return false;
    }
    return lacks("path", backend->path, "rbd", error) && is_word("pool", backend->pool, error) &&
           is_word("namespace", backend->namespace, error) &&
           is_word("user", backend->user, error) && is_path("conf", backend->conf, "file", error);
}

bool backend_place_check(const struct backend *backend, GError **error)
{
    return (backend->kind == BACKEND_DIR ? dir_rule : rbd_rule)(backend, error);
}

bool backend_same_place(const struct backend *one, const struct backend *other)
{
    return one->kind == other->kind && strcmp(one->path, other->path) == 0 &&
           strcmp(one->pool, other->pool) == 0 && strcmp(one->namespace, other->namespace) == 0 &&
           strcmp(one->conf, other->conf) == 0;
}
