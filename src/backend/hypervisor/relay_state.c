/*
 * What is kept of a guest's relay in run/guests/UUID/relay/; see relay.h and relay_private.h.
 */
#include "backend/hypervisor/relay_private.h"

#include "backend/reach.h"
#include "base/limits.h"
#include "io/files.h"
#include "io/tree.h"

#include <string.h>

#define FORMAT 1

struct relay *relay_new(void)
{
    return g_new0(struct relay, 1);
}

void relay_free(struct relay *relay)
{
    if (relay == NULL)
        return;
    process_free(relay->process);
    export_target_free(relay->target);
    g_free(relay);
}

char *relay_numbered(const struct guest *guest, guint number)
{
    g_autofree char *name = g_strdup_printf(RELAY_FOLDER "/%u", number);
    return guest_path(guest, name);
}

char *relay_argument(const struct guest *guest, guint number, const char *word)
{
    g_autofree char *path = relay_numbered(guest, number);
    return g_strconcat(word, path, NULL);
}

/* --- what is kept --- */

static char *state_name(const struct guest *guest)
{
    return g_strdup_printf("guests/%s/" RELAY_FOLDER "/state.json", guest->instance);
}

bool relay_state_write(const struct guest *guest, GError **error)
{
    const struct relay *relay = guest->relay;
    json_t *bytes = json_array();
    for (guint i = 0; i < relay->target->disks->len; i++)
        json_array_append_new(bytes, json_integer((json_int_t)relay->bytes[i]));
    json_autoptr json = json_make("{s:i,s:o,s:o,s:b,s:i,s:b,s:I,s:I,s:b}", "format", FORMAT,
                                  "target", export_target_to_json(relay->target), "bytes", bytes,
                                  "refuse", relay->refuse, "number", (int)relay->number, "placed",
                                  relay->placed, "pid", (json_int_t)relay->pid, "start",
                                  (json_int_t)relay->start_ticks, "refusing", relay->refusing);
    g_autofree char *text = json_to_text(json);
    g_autofree char *name = state_name(guest);
    g_autofree char *path = files_path(guest->qemu->paths, FILE_RUN, name, error);
    return path != NULL && files_write_path(path, text, strlen(text), 0600, false, error);
}

static bool parse_bytes(const json_t *list, struct relay *relay)
{
    if (!json_is_array(list) || relay->target->disks->len > LIMIT_DISKS ||
        json_array_size(list) != relay->target->disks->len)
        return false;
    for (guint i = 0; i < relay->target->disks->len; i++) {
        json_int_t bytes = json_integer_value(json_array_get(list, i));
        if (bytes <= 0)
            return false;
        relay->bytes[i] = (guint64)bytes;
    }
    return true;
}

static bool parse_state(json_t *json, struct relay *relay)
{
    int format, refuse, number, placed, refusing;
    json_int_t pid, start;
    json_t *target, *bytes;
    if (json_unpack(json, "{s:i,s:o,s:o,s:b,s:i,s:b,s:I,s:I,s:b}", "format", &format, "target",
                    &target, "bytes", &bytes, "refuse", &refuse, "number", &number, "placed",
                    &placed, "pid", &pid, "start", &start, "refusing", &refusing) != 0 ||
        format != FORMAT || number < 0 || pid < 0 || start < 0)
        return false;
    relay->target = export_target_parse(target, RECORD_LAX, NULL);
    relay->refuse = refuse != 0;
    relay->number = (guint)number;
    relay->placed = placed != 0;
    relay->pid = (guint64)pid;
    relay->start_ticks = (guint64)start;
    relay->refusing = refusing != 0;
    return relay->target != NULL && parse_bytes(bytes, relay);
}

/* False: there is none. */
static bool take_folder(const struct guest *guest)
{
    static const char *const keep[] = {"state.json", "keys.psk", "sock", NULL};
    g_autofree char *folder = guest_path(guest, RELAY_FOLDER);
    return g_file_test(folder, G_FILE_TEST_IS_DIR) &&
           tree_take(folder, GUEST_FOLDER_MODE, keep, NULL);
}

struct relay *relay_state_read(const struct guest *guest)
{
    size_t len = 0;
    g_autofree char *name = state_name(guest);
    g_autofree char *text = take_folder(guest) ? files_read(guest->qemu->paths, FILE_RUN, name,
                                                            LIMIT_STATE_FILE_BYTES, &len, NULL)
                                               : NULL;
    json_autoptr json =
        text != NULL ? json_parse_limited(text, len, LIMIT_STATE_FILE_BYTES, NULL) : NULL;
    struct relay *relay = relay_new();
    if (json != NULL && parse_state(json, relay))
        return relay;
    relay_free(relay);
    return NULL;
}

/* --- files --- */

bool relay_files_make(const struct guest *guest, GError **error)
{
    guint32 uid = guest->user;
    g_autofree char *folder = guest_path(guest, RELAY_FOLDER);
    g_autofree char *key = guest_path(guest, RELAY_KEY);
    g_autofree char *line = g_strdup_printf("qemu:%s\n", guest->relay->target->psk);
    return reach_check(folder, uid, error) && tree_take(folder, GUEST_FOLDER_MODE, NULL, error) &&
           files_give_path(key, line, strlen(line), uid, error);
}

void relay_files_remove(const struct guest *guest)
{
    g_autofree char *folder = guest_path(guest, RELAY_FOLDER);
    tree_remove(folder, NULL);
}
