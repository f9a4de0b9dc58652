/*
 * First content of a node (prepare.h).
 */
#include "lab/prepare.h"

#include "base/error.h"
#include "base/limits.h"
#include "io/files.h"
#include "io/net/certs.h"
#include "io/node_config.h"
#include "lab/tick.h"
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define TICK_IMAGE_MIB 2
#define TICK_DELAY 4 /* of tick.raw, in units of TICK_DELAY_MS; tick-fast.raw has none */

/* Folders that even a lab without an identity has. */
static bool make_folders(const struct layout *layout, guint node, GError **error)
{
    static const struct {
        const char *name;
        guint mode;
    } folders[] = {
        {"etc", 0755}, {"var", 0755}, {"var/images", 0755}, {"log", 0755}, {"log/guests", 0700}};
    for (guint i = 0; i < G_N_ELEMENTS(folders); i++) {
        g_autofree char *path = layout_below_root(layout, node, folders[i].name);
        if (!files_make_folder(path, folders[i].mode, error))
            return false;
    }
    return true;
}

bool prepare_authority(const struct layout *layout, GError **error)
{
    if (!layout->identity)
        return true;
    g_autofree char *etc = layout_below_root(layout, 1, "etc");
    g_autofree char *certificate = g_build_filename(etc, "ca.crt", NULL);
    g_autofree char *key = g_build_filename(etc, "ca.key", NULL);
    return make_folders(layout, 1, error) &&
           certs_make_ca(certificate, key, layout->cluster_uuid, error);
}

static bool copy_certificate(const char *from, const char *to, GError **error)
{
    size_t len;
    g_autofree char *text = files_read_path(from, LIMIT_LAB_JSON_BYTES, &len, error);
    return text && files_write_path(to, text, len, 0644, true, error);
}

static bool make_certificates(const struct layout *layout, guint node, GError **error)
{
    g_autofree char *authority = layout_below_root(layout, 1, "etc/ca.crt");
    g_autofree char *authority_key = layout_below_root(layout, 1, "etc/ca.key");
    g_autofree char *authority_copy = layout_below_root(layout, node, "etc/ca.crt");
    g_autofree char *certificate = layout_below_root(layout, node, "etc/node.crt");
    g_autofree char *key = layout_below_root(layout, node, "etc/node.key");
    if (node != 1 && !copy_certificate(authority, authority_copy, error))
        return false;
    return certs_make_node(authority, authority_key, layout->cluster_uuid,
                           g_ptr_array_index(layout->node_uuids, node - 1), certificate, key,
                           error);
}

static bool write_config(const struct layout *layout, guint node, GError **error)
{
    g_autofree char *root = layout_root(layout, node);
    g_autoptr(node_paths_t) paths = node_paths_new(root, error);
    if (!paths)
        return false;
    record_autoptr(node_config) config = node_config_new();
    g_free(config->node_uuid);
    config->node_uuid = g_strdup(g_ptr_array_index(layout->node_uuids, node - 1));
    g_free(config->name);
    config->name = g_strdup_printf("node%u", node);
    g_free(config->cluster_uuid);
    config->cluster_uuid = g_strdup(layout->cluster_uuid);
    g_free(config->address);
    config->address = layout_address(layout, node);
    return node_paths_make(paths, error) && node_config_write(paths, config, error);
}

static bool make_images(const struct layout *layout, guint node, GError **error)
{
    g_autofree char *slow = layout_below_root(layout, node, "var/images/tick.raw");
    g_autofree char *fast = layout_below_root(layout, node, "var/images/tick-fast.raw");
    return tick_image_write(slow, "tick", TICK_DELAY, TICK_IMAGE_MIB, error) &&
           tick_image_write(fast, "tick-fast", 0, TICK_IMAGE_MIB, error);
}

static bool sync_folder(const char *folder, GError **error)
{
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool ok = fd >= 0 && syncfs(fd) == 0;
    if (!ok)
        fettle_set_error(error, STORAGE, "cannot sync %s: %s", folder, g_strerror(errno));
    if (fd >= 0)
        close(fd);
    return ok;
}

bool prepare_node(const struct layout *layout, guint node, GError **error)
{
    if (!make_folders(layout, node, error))
        return false;
    if (layout->identity &&
        !(make_certificates(layout, node, error) && write_config(layout, node, error) &&
          make_images(layout, node, error)))
        return false;
    g_autofree char *root = layout_root(layout, node);
    g_autofree char *disks = layout_below_root(layout, node, "var/disks");
    return sync_folder(root, error) && sync_folder(disks, error);
}
