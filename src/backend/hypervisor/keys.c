/*
 * See keys.h.
 */
#include "backend/hypervisor/keys.h"

#include "backend/psk.h"
#include "backend/reach.h"
#include "base/limits.h"
#include "io/files.h"
#include "io/tree.h"

#include <string.h>

static char *key_folder(const struct guest *guest, enum key_end end)
{
    return guest_path(guest, end == KEY_SERVER ? "psk-server" : "psk");
}

static bool write_for_qemu(const struct guest *guest, const char *folder, const char *name,
                           const char *text, GError **error)
{
    g_autofree char *file = g_build_filename(folder, name, NULL);
    return files_give_path(file, text, strlen(text), guest->user, error);
}

bool keys_write(const struct guest *guest, enum key_end end, const char *psk, GError **error)
{
    g_autofree char *folder = key_folder(guest, end);
    g_autofree char *line = g_strdup_printf("qemu:%s\n", psk);
    return reach_check(folder, guest->user, error) &&
           tree_take(folder, GUEST_FOLDER_MODE, NULL, error) &&
           write_for_qemu(guest, folder, PSK_KEYS, line, error) &&
           (end != KEY_SERVER || write_for_qemu(guest, folder, PSK_GROUP, psk_group, error));
}

void keys_remove(const struct guest *guest, enum key_end end)
{
    g_autofree char *folder = key_folder(guest, end);
    tree_remove(folder, NULL);
}

bool keys_add(struct guest *guest, enum key_end end, const char *id, GError **error)
{
    g_autofree char *folder = key_folder(guest, end);
    json_autoptr arguments =
        json_make("{s:s,s:s,s:s,s:s}", "qom-type", "tls-creds-psk", "id", id, "endpoint",
                  end == KEY_SERVER ? "server" : "client", "dir", folder);
    if (end == KEY_CLIENT)
        json_object_set_new(arguments, "username", json_string("qemu"));
    return guest_command(guest, "object-add", json_incref(arguments), LIMIT_QMP_COMMAND_MS, error);
}
