/* See volume_user.h. */
#include "backend/volume/volume_user.h"

#include <errno.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <unistd.h>

#define ALONE 0600
#define READS 0040
#define WRITES 0060

static bool is_root(void)
{
    return geteuid() == 0;
}

/* The change of the user has cleared that it ends with its parent, so that is said after it, and
 * looked whether the parent is still there. */
void volume_user_words(GPtrArray *argv, guint32 user, pid_t parent)
{
    if (!is_root())
        return;
    g_autofree char *uid = g_strdup_printf("--reuid=%u", user), *gid = NULL, *pid = NULL;
    gid = g_strdup_printf("--regid=%u", VOLUME_USER);
    pid = g_strdup_printf("%d", (int)parent);
    const char *const words[] = {"setpriv",
                                 uid,
                                 gid,
                                 "--clear-groups",
                                 "--no-new-privs",
                                 "--pdeathsig",
                                 "KILL",
                                 "sh",
                                 "-c",
                                 "[ $PPID = \"$0\" ] && exec \"$@\"",
                                 pid};
    for (guint i = 0; i < G_N_ELEMENTS(words); i++)
        g_ptr_array_add(argv, g_strdup(words[i]));
}

static bool set(int fd, gid_t group, mode_t mode, const char *doing, GError **error)
{
    struct stat status;
    bool ok = fstat(fd, &status) == 0;
    /* In this order nobody has more than he is to have at any moment. */
    ok = ok && ((status.st_mode & 0777 & ~mode) == 0 || fchmod(fd, status.st_mode & mode) == 0);
    ok = ok && (status.st_gid == group || fchown(fd, (uid_t)-1, group) == 0);
    ok = ok && ((status.st_mode & 0777) == mode || fchmod(fd, mode) == 0);
    if (!ok)
        fettle_set_error(error, STORAGE,
                         "cannot %s: %s; its file system has to keep groups and "
                         "modes that root sets (NFS: no_root_squash)",
                         doing, g_strerror(errno));
    return ok;
}

bool volume_user_lend(int fd, bool writes, GError **error)
{
    return !is_root() ||
           set(fd, VOLUME_USER, ALONE | (writes ? WRITES : READS), "lend it to its program", error);
}

bool volume_user_take_back(int fd, GError **error)
{
    return !is_root() || set(fd, 0, ALONE, "take it back from its program", error);
}

void volume_user_become(void)
{
    if (!is_root())
        return;
    setfsgid(VOLUME_USER);
    setfsuid(VOLUME_USER);
}

void volume_user_return(void)
{
    setfsuid(geteuid());
    setfsgid(getegid());
}
