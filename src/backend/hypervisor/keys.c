/*
 * See keys.h.
 */
#include "backend/hypervisor/keys.h"

#include "backend/reach.h"
#include "base/limits.h"
#include "io/files.h"
#include "io/tree.h"

#include <string.h>
#include <sys/random.h>

#define PSK_BYTES 32
#define KEYS "keys.psk"
#define GROUP "dh-params.pem"

/* The group ffdhe2048 of RFC 7919. A server that finds no group makes one up, which takes a
 * second. */
static const char group[] = "-----BEGIN DH PARAMETERS-----\n"
                            "MIIBCAKCAQEA//////////+t+FRYortKmq/cViAnPTzx2LnFg84tNpWp4TZBFGQz\n"
                            "+8yTnc4kmz75fS/jY2MMddj2gbICrsRhetPfHtXV/WVhJDP1H18GbtCFY2VVPe0a\n"
                            "87VXE15/V8k1mE8McODmi3fipona8+/och3xWKE2rec1MKzKT0g6eXq8CrGCsyT7\n"
                            "YdEIqUuyyOP7uWrat2DX9GgdT0Kj3jlN9K5W7edjcrsZCwenyO4KbXCeAvzhzffi\n"
                            "7MA0BM0oNC9hkXL+nOmFg/+OTxIy7vKBg8P+OxtMb61zO7X8vC7CIAXFjvGDfRaD\n"
                            "ssbzSibBsu/6iGtCOGEoXJf//////////wIBAg==\n"
                            "-----END DH PARAMETERS-----\n";

char *keys_new(void)
{
    guint8 bytes[PSK_BYTES];
    GString *text = g_string_new(NULL);
    g_assert(getrandom(bytes, sizeof bytes, 0) == (ssize_t)sizeof bytes);
    for (guint i = 0; i < sizeof bytes; i++)
        g_string_append_printf(text, "%02x", bytes[i]);
    return g_string_free(text, FALSE);
}

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
           write_for_qemu(guest, folder, KEYS, line, error) &&
           (end != KEY_SERVER || write_for_qemu(guest, folder, GROUP, group, error));
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
