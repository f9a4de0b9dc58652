/*
 * Whether an unprivileged user can get at a file. See reach.h.
 */
#include "backend/reach.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool lets_pass(const struct stat *folder, guint32 uid)
{
    if (folder->st_uid == uid)
        return (folder->st_mode & S_IXUSR) != 0;
    if (folder->st_gid == uid)
        return (folder->st_mode & S_IXGRP) != 0;
    return (folder->st_mode & S_IXOTH) != 0;
}

bool reach_check(const char *path, guint32 uid, GError **error)
{
    g_autofree char *at = g_path_get_dirname(path);
    while (uid != 0) {
        struct stat folder;
        if (stat(at, &folder) != 0) {
            fettle_set_error(error, ENVIRONMENT, "cannot look at folder %s: %s", at,
                             g_strerror(errno));
            return false;
        }
        if (!lets_pass(&folder, uid)) {
            fettle_set_error(error, ENVIRONMENT,
                             "folder %s lets user %u, as which guests run, not pass to %s; add the "
                             "mode o+x to it",
                             at, uid, path);
            return false;
        }
        if (strcmp(at, "/") == 0)
            return true;
        char *parent = g_path_get_dirname(at);
        g_free(at);
        at = parent;
    }
    return true;
}
