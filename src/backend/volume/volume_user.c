/* See volume_user.h. */
#include "backend/volume/volume_user.h"

#include <errno.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/unprivileged.h"
#include "io/volume_user.h"

#define ALONE 0600
#define READS 0040
#define WRITES 0060

static bool is_root(void)
{
    return geteuid() == 0;
}

void volume_user_words(GPtrArray *argv)
{
    if (!is_root())
        return;
    unprivileged_words(argv, VOLUME_USER, NULL);
    /* The change of the user has cleared that we end with our parent, so it is said again, and
     * looked whether it is still there. */
    const char *const words[] = {"--pdeathsig", "KILL", "sh", "-c",
                                 "[ $PPID = \"$0\" ] && exec \"$@\""};
    for (guint i = 0; i < G_N_ELEMENTS(words); i++)
        g_ptr_array_add(argv, g_strdup(words[i]));
    g_ptr_array_add(argv, g_strdup_printf("%d", (int)getppid()));
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
