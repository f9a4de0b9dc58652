/*
 * Power of a node (power.h).
 */
#include "lab/power.h"

#include "base/error.h"
#include "base/limits.h"
#include "io/files.h"
#include "lab/disk.h"
#include "lab/net.h"
#include "lab/proc.h"
#include <sys/stat.h>

/* Images are few and large. Below the root each archived job, and each guest that a node has had,
 * is a small file: one for each 8 KiB. */
#define DISKS_FILES 4096u
#define ROOT_FILES(mib) MAX(DISKS_FILES, (mib) * (guint)(MIB(1) / KIB(8)))

/* The users of guests pass through them to their images. */
static bool make_folder(const char *path, GError **error)
{
    return files_make_folder(path, 0755, error);
}

bool power_make_shared(const struct layout *layout, GError **error)
{
    g_autofree char *image = layout_shared_image(layout);
    g_autofree char *folder = layout_shared(layout);
    return make_folder(folder, error) &&
           disk_create(image, layout->disks_mib, DISKS_FILES, error) &&
           disk_mount(image, folder, error);
}

bool power_make_disks(const struct layout *layout, guint node, GError **error)
{
    g_autofree char *root = layout_root(layout, node);
    g_autofree char *log = layout_log(layout, node);
    g_autofree char *root_image = layout_root_image(layout, node);
    g_autofree char *disks_image = layout_disks_image(layout, node);
    g_autofree char *programs = layout_programs(layout, node);
    return make_folder(root, error) && make_folder(log, error) && make_folder(programs, error) &&
           disk_create(root_image, layout->root_mib, ROOT_FILES(layout->root_mib), error) &&
           disk_create(disks_image, layout->disks_mib, DISKS_FILES, error);
}

static bool mount_all(const struct layout *layout, guint node, GError **error)
{
    g_autofree char *root = layout_root(layout, node);
    g_autofree char *root_image = layout_root_image(layout, node);
    g_autofree char *disks = layout_below_root(layout, node, "var/disks");
    g_autofree char *disks_image = layout_disks_image(layout, node);
    g_autofree char *shared = layout_shared_in(layout, node);
    g_autofree char *shared_outside = layout_shared(layout);
    g_autofree char *run = layout_below_root(layout, node, "run");
    g_autofree char *log = layout_below_root(layout, node, "log");
    g_autofree char *log_outside = layout_log(layout, node);
    return disk_mount(root_image, root, error) && make_folder(disks, error) &&
           make_folder(shared, error) && make_folder(run, error) && make_folder(log, error) &&
           disk_mount(disks_image, disks, error) && disk_bind(shared_outside, shared, error) &&
           disk_mount_tmpfs(run, error) && disk_bind(log_outside, log, error);
}

bool power_on(const struct layout *layout, guint node, bool link, GError **error)
{
    g_autofree char *root = layout_root(layout, node);
    if (!mount_all(layout, node, error)) {
        disk_unmount_below(root, NULL);
        return false;
    }
    if (!net_plug_node(layout, node, link, error)) {
        net_cut_node(layout, node, NULL);
        net_remove_node(layout, node, NULL);
        disk_unmount_below(root, NULL);
        return false;
    }
    return true;
}

bool power_off(const struct layout *layout, guint node, GError **error)
{
    g_autofree char *root = layout_root(layout, node);
    g_autofree char *disks = layout_below_root(layout, node, "var/disks");
    g_autofree char *root_image = layout_root_image(layout, node);
    g_autofree char *disks_image = layout_disks_image(layout, node);
    g_autoptr(GPtrArray) space = g_ptr_array_new_with_free_func(g_free);
    g_ptr_array_add(space, layout_netns(layout, node));
    /* Every step is tried, whatever became of the one before; the first error is the one to tell.
     */
    GError *first = NULL;
    net_cut_node(layout, node, &first);
    disk_cut(disks, first ? NULL : &first);
    disk_cut(root, first ? NULL : &first);
    proc_kill_netns(space, first ? NULL : &first);
    disk_unmount_below(root, first ? NULL : &first);
    net_remove_node(layout, node, first ? NULL : &first);
    disk_wait_detached(disks_image, first ? NULL : &first);
    disk_wait_detached(root_image, first ? NULL : &first);
    if (!first)
        return true;
    g_propagate_error(error, first);
    return false;
}
