/* See rapid_place.h. */
#include "io/rapid_place.h"

#include <pwd.h>
#include <unistd.h>

#include "io/files.h"
#include "proto/rpc.h"

#define PEM "rapi.pem"
#define READ_MODE 0750 /* its group enters; what is in it says who reads it */
#define OWN_MODE 0700

struct rapid_owner rapid_user(void)
{
    const struct passwd *user = geteuid() == 0 ? getpwnam(RAPID_USER) : NULL;
    return user ? (struct rapid_owner){user->pw_uid, user->pw_gid}
                : (struct rapid_owner){geteuid(), getegid()};
}

bool rapid_place_make(const struct node_paths *paths, GError **error)
{
    const struct rapid_owner owner = rapid_user();
    g_autofree char *var = g_build_filename(paths->var, RAPID_FOLDER_VAR, NULL);
    g_autofree char *run = g_build_filename(paths->run, ROLE_RAPID, NULL);
    return files_give_folder(var, READ_MODE, geteuid(), owner.gid, error) &&
           files_give_folder(run, OWN_MODE, owner.uid, owner.gid, error);
}

char *rapid_pem_path(const struct node_paths *paths)
{
    return g_build_filename(paths->etc, PEM, NULL);
}

char *rapid_own_pem_path(const struct node_paths *paths)
{
    return g_build_filename(paths->var, RAPID_FOLDER_VAR, PEM, NULL);
}
