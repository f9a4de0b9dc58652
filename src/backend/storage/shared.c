/*
 * See shared.h.
 */
#include "backend/storage/shared.h"

#include "backend/storage/disk_images.h"
#include "base/limits.h"
#include "io/files.h"

#include <errno.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

char *shared_read(const char *folder)
{
    g_autofree char *path = g_build_filename(folder, SHARED_MARKER, NULL);
    g_autofree char *text = files_read_path(path, SHARED_MARKER_BYTES, NULL, NULL);
    if (text == NULL || !g_uuid_string_is_valid(g_strchomp(text)))
        return NULL;
    return g_steal_pointer(&text);
}

/* A link, so that of two nodes that make it at once one does. */
static bool link_marker(const char *folder, const char *temporary, GError **error)
{
    g_autofree char *path = g_build_filename(folder, SHARED_MARKER, NULL);
    int failed = link(temporary, path) != 0 ? errno : 0;
    unlink(temporary);
    if (failed == 0 || failed == EEXIST)
        return images_sync_folder(folder, error);
    errno = failed;
    return images_fail("make", path, error);
}

bool shared_mark(const char *folder, GError **error)
{
    g_autofree char *there = shared_read(folder);
    if (there != NULL)
        return true;
    g_autofree char *uuid = g_uuid_string_random();
    g_autofree char *line = g_strconcat(uuid, "\n", NULL);
    g_autofree char *temporary = g_strconcat(folder, "/" SHARED_MARKER ".", uuid, NULL);
    return files_write_path(temporary, line, strlen(line), 0644, true, error) &&
           link_marker(folder, temporary, error);
}

struct storage_space shared_space(const struct statvfs *space)
{
    return (struct storage_space){(guint64)space->f_blocks * space->f_frsize / MIB(1),
                                  (guint64)space->f_bavail * space->f_frsize / MIB(1)};
}

char *shared_look(const char *folder, struct storage_space *ret_space)
{
    char *marker = shared_read(folder);
    struct statvfs space;
    *ret_space = (struct storage_space){0};
    if (marker == NULL || statvfs(folder, &space) != 0)
        return marker;
    *ret_space = shared_space(&space);
    return marker;
}
