/*
 * run/guests/UUID/state.json: what the node daemon must know of a guest that outlived it.
 */
#include "backend/hypervisor/qemu_private.h"
#include "base/limits.h"
#include "io/files.h"

#include <string.h>

#define FORMAT 1

static char *state_name(const char *instance)
{
    return g_strdup_printf("guests/%s/state.json", instance);
}

bool guest_state_write(const struct guest *guest, GError **error)
{
    guint64 pid = guest->process != NULL ? process_pid(guest->process) : 0;
    guint64 start = guest->process != NULL ? process_start_ticks(guest->process) : 0;
    json_autoptr json = json_make(
        "{s:i,s:s,s:I,s:I,s:i,s:I,s:I,s:i,s:b,s:s}", "format", FORMAT, "name", guest->name,
        "generation", (json_int_t)guest->generation, "memory", (json_int_t)guest->memory, "disks",
        (int)guest->disks, "pid", (json_int_t)pid, "start", (json_int_t)start, "attachment",
        (int)guest->attachment, "mirrored", guest->mirrored, "replica", guest->replica);
    g_autofree char *text = json_to_text(json);
    g_autofree char *name = state_name(guest->instance);
    return files_write(guest->qemu->paths, FILE_RUN, name, text, strlen(text), error);
}

/* The process by its name; by its pid file's name among its arguments if the daemon died before it
 * could write that. */
static void adopt(struct guest *guest, guint64 pid, guint64 start)
{
    if (pid == 0) {
        g_autofree char *pid_file = guest_path(guest, "pid");
        pid = process_find_by_argument(pid_file);
        start = pid != 0 ? process_read_start_ticks(pid) : 0;
    }
    guest->process = process_adopt(pid, start, guest_exited, guest, NULL);
}

static struct guest *state_parse(struct qemu *qemu, const char *instance, json_t *json,
                                 GError **error)
{
    json_int_t generation, memory, pid, start;
    int format, disks, attachment, mirrored;
    const char *name, *replica;
    if (json_unpack(json, "{s:i,s:s,s:I,s:I,s:i,s:I,s:I,s:i,s:b,s:s}", "format", &format, "name",
                    &name, "generation", &generation, "memory", &memory, "disks", &disks, "pid",
                    &pid, "start", &start, "attachment", &attachment, "mirrored", &mirrored,
                    "replica", &replica) != 0 ||
        format != FORMAT || generation < 0 || memory < 0 || disks < 0 || disks > LIMIT_DISKS ||
        pid < 0 || start < 0 || attachment < 0) {
        fettle_set_error(error, CORRUPT, "a field is missing or out of range");
        return NULL;
    }
    struct guest *guest = guest_new(qemu, instance, (guint64)generation);
    g_free(guest->name);
    g_free(guest->replica);
    guest->name = g_strdup(name);
    guest->replica = g_strdup(replica);
    guest->memory = (guint64)memory;
    guest->disks = (guint)disks;
    guest->attachment = (guint)attachment;
    guest->mirrored = mirrored != 0;
    adopt(guest, (guint64)pid, (guint64)start);
    return guest;
}

bool guest_state_exists(const struct qemu *qemu, const char *instance)
{
    g_autofree char *name = state_name(instance);
    g_autofree char *path = g_build_filename(qemu->paths->run, name, NULL);
    return g_file_test(path, G_FILE_TEST_EXISTS);
}

struct guest *guest_state_read(struct qemu *qemu, const char *instance, GError **error)
{
    g_autofree char *name = state_name(instance);
    g_autoptr(GError) failure = NULL;
    size_t len = 0;
    g_autofree char *text =
        files_read(qemu->paths, FILE_RUN, name, LIMIT_STATE_FILE_BYTES, &len, &failure);
    json_autoptr json =
        text != NULL ? json_parse_limited(text, len, LIMIT_STATE_FILE_BYTES, &failure) : NULL;
    struct guest *guest = json != NULL ? state_parse(qemu, instance, json, &failure) : NULL;
    if (guest == NULL)
        fettle_set_error(error, CORRUPT, "%s/%s: %s; end its QEMU process and remove the folder",
                         qemu->paths->run, name, failure->message);
    return guest;
}
