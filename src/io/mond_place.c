/* See mond_place.h. */
#include "io/mond_place.h"

#include <pwd.h>
#include <unistd.h>

#include "io/files.h"
#include "proto/rpc.h"

#define READ_MODE 0750 /* its group enters; what is in them says who reads it */
#define OWN_MODE 0700

static bool make(const char *above, const char *name, mode_t mode, uid_t uid, gid_t gid,
                 GError **error)
{
    g_autofree char *path = g_build_filename(above, name, NULL);
    return files_give_folder(path, mode, uid, gid, error);
}

bool mond_place_make(const struct node_paths *paths, GError **error)
{
    const struct passwd *user = geteuid() == 0 ? getpwnam(MOND_USER) : NULL;
    uid_t uid = user ? user->pw_uid : geteuid();
    gid_t gid = user ? user->pw_gid : getegid();
    return make(paths->run, "stats", READ_MODE, geteuid(), gid, error) &&
           make(paths->var, ROLE_MOND, READ_MODE, geteuid(), gid, error) &&
           make(paths->run, ROLE_MOND, OWN_MODE, uid, gid, error);
}
