/* See api_place.h. */
#include "io/api_place.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/api_conf.h"
#include "io/files.h"
#include "proto/rpc.h"

#define FOLDER "api"
#define TRANSFERS_MODE 0711 /* programs of volume services pass it, too (SAF-110) */

char *api_audit_path(const struct node_paths *paths)
{
    return g_build_filename(paths->log, FOLDER, "audit.log", NULL);
}

char *api_pem_path(const struct node_paths *paths)
{
    return g_build_filename(paths->etc, "apid.pem", NULL);
}

/* --- whose it is --- */

bool api_user_find(const char *name, struct api_owner *ret_user, GError **error)
{
    const struct passwd *user = getpwnam(name);
    if (!user) {
        fettle_set_error(error, UNKNOWN_ENTITY,
                         "this host has no user \"%s\", whose a front end is: install the package "
                         "fettle-api, or: useradd --system --user-group %s",
                         name, name);
        return false;
    }
    *ret_user = (struct api_owner){user->pw_uid, user->pw_gid};
    return true;
}

bool api_user_of(const struct node_paths *paths, struct api_owner *ret_user)
{
    g_autofree char *folder = g_build_filename(paths->var, FOLDER, NULL);
    struct stat about;
    if (lstat(folder, &about) != 0 || !S_ISDIR(about.st_mode) || about.st_uid == 0)
        return false;
    *ret_user = (struct api_owner){about.st_uid, about.st_gid};
    return true;
}

bool api_place_check(const struct node_paths *paths, GError **error)
{
    struct api_owner user = {0};
    api_user_of(paths, &user);
    if (user.uid == geteuid())
        return true;
    fettle_set_error(error, WRONG_STATE,
                     user.uid ? "%s/" FOLDER " is of user %u, and this is user %u: start it as the "
                                "former, as its unit does"
                              : "%s/" FOLDER " is of user %u, and this is user %u: give its files "
                                "to " API_USER " by: fettle api init",
                     paths->var, user.uid, geteuid());
    return false;
}

/* --- what is that user's --- */

/* What is in a folder of another user is looked at before it is given: links and the like stay
 * whose they are. */
static bool give(int folder, const char *path, const char *name, const struct api_owner *user,
                 GError **error)
{
    struct stat about;
    int fd = openat(folder, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return true;
    bool ok = fd >= 0 && fstat(fd, &about) == 0 &&
              ((!S_ISDIR(about.st_mode) && (!S_ISREG(about.st_mode) || about.st_nlink > 1)) ||
               fchownat(fd, "", user->uid, user->gid, AT_EMPTY_PATH) == 0);
    int code = errno;
    if (fd >= 0)
        close(fd);
    errno = code;
    return ok || files_error("give away", path, error);
}

static bool give_path(const char *path, const struct api_owner *user, GError **error)
{
    return give(AT_FDCWD, path, path, user, error);
}

static bool give_folder(const char *path, const struct api_owner *user, GError **error)
{
    g_autoptr(GDir) dir = g_dir_open(path, 0, NULL);
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    bool ok = fd >= 0 || files_error("open", path, error);
    for (const char *name; ok && dir && (name = g_dir_read_name(dir));)
        ok = give(fd, path, name, user, error);
    if (fd >= 0)
        close(fd);
    return ok;
}

bool api_place_make(const struct node_paths *paths, const struct api_owner *user, GError **error)
{
    const char *const above[] = {paths->var, paths->run, paths->log};
    for (guint i = 0; i < G_N_ELEMENTS(above); i++) {
        g_autofree char *path = g_build_filename(above[i], FOLDER, NULL);
        if (!files_make_folder(path, 0700, error) || !give_path(path, user, error))
            return false;
    }
    return true;
}

bool api_place_give(const struct node_paths *paths, const struct api_owner *user, GError **error)
{
    g_autofree char *keys = api_keys_path(paths), *pem = api_pem_path(paths);
    g_autofree char *var = g_build_filename(paths->var, FOLDER, NULL);
    g_autofree char *log = g_build_filename(paths->log, FOLDER, NULL);
    return api_place_make(paths, user, error) && give_folder(var, user, error) &&
           give_folder(log, user, error) && give_path(keys, user, error) &&
           give_path(pem, user, error);
}

/* What is not there needs nothing. */
static bool open_to(const char *path, gid_t gid, mode_t mode, GError **error)
{
    if (access(path, F_OK) != 0 && errno == ENOENT)
        return true;
    return (lchown(path, 0, gid) == 0 && chmod(path, mode) == 0) ||
           files_error("open to the API", path, error);
}

bool api_place_admit(const struct node_paths *paths, GError **error)
{
    g_autofree char *path = node_paths_socket(paths, ROLE_NODED);
    g_autofree char *transfers = g_build_filename(paths->run, "transfers", NULL);
    struct api_owner user = {0};
    bool of_user = api_user_of(paths, &user);
    if (geteuid() != 0)
        return true;
    if (of_user && !api_place_make(paths, &user, error))
        return false;
    if (of_user && !files_make_folder(transfers, TRANSFERS_MODE, error))
        return false;
    return open_to(path, user.gid, of_user ? 0660 : 0600, error) &&
           open_to(transfers, user.gid, TRANSFERS_MODE, error);
}
