/*
 * run/guests/UUID/state.json: what the node daemon must know of a guest that outlived it.
 */
#include "backend/hypervisor/qemu_private.h"
#include "base/limits.h"
#include "io/files.h"

#include <string.h>
#include <unistd.h>

#define FORMAT 1

static char *state_name(const char *instance)
{
    return g_strdup_printf("guests/%s/state.json", instance);
}

/* Numbers of sets of jobs: 0 if there is none. */
static int set_number(const struct job_set *set)
{
    return set->attached ? (int)set->number : 0;
}

/* `uri`: an older version wants it, to know a connection by. */
static json_t *migration_json(const struct migration *migration)
{
    return json_make("{s:i,s:i,s:s,s:s,s:b,s:b,s:b,s:b,s:b}", "side", (int)migration->side,
                     "number", (int)migration->number, "uuid", migration->uuid, "uri", "", "resume",
                     migration->resume, "paused", migration->paused, "sent", migration->sent,
                     "serving", migration->serving, "arrived", migration->arrived);
}

static json_t *images_json(const struct guest *guest)
{
    json_t *list = json_array();
    for (guint i = 0; i < guest->disks; i++)
        json_array_append_new(list, json_make("[I,I]", (json_int_t)guest->images[i].device,
                                              (json_int_t)guest->images[i].inode));
    return list;
}

static json_t *incremental_json(const struct guest *guest)
{
    return json_make("{s:s,s:i,s:b,s:o}", "words", guest->replica_images, "written",
                     (int)guest->written.number, "active", guest->incremental.active, "images",
                     images_json(guest));
}

bool guest_state_write(const struct guest *guest, GError **error)
{
    guint64 pid = guest->process != NULL ? process_pid(guest->process) : 0;
    guint64 start = guest->process != NULL ? process_start_ticks(guest->process) : 0;
    json_autoptr json = json_make(
        "{s:i,s:s,s:I,s:I,s:i,s:I,s:I,s:i,s:b,s:i,s:i,s:s,s:b,s:o}", "format", FORMAT, "name",
        guest->name, "generation", (json_int_t)guest->generation, "memory",
        (json_int_t)guest->memory, "disks", (int)guest->disks, "pid", (json_int_t)pid, "start",
        (json_int_t)start, "attachment", (int)guest->attachment, "mirrored", guest->mirror.attached,
        "mirror", set_number(&guest->mirror), "copy", set_number(&guest->copy), "replica",
        guest->replica, "resume", guest->resume, "migration", migration_json(&guest->migration));
    json_object_set_new(json, "console", json_integer((json_int_t)guest->console));
    json_object_set_new(json, "user", json_integer(guest->user));
    json_object_set_new(json, "incremental", incremental_json(guest));
    g_autofree char *text = json_to_text(json);
    g_autofree char *name = state_name(guest->instance);
    return files_write(guest->qemu->paths, FILE_RUN, name, text, strlen(text), error);
}

/* One whose number the daemon could not write down any more. An older version told its process by
 * the name of a file. */
static guint64 find_process(const struct guest *guest)
{
    g_autofree char *argument = qemu_own_argument(guest);
    g_autofree char *before = guest_path(guest, "pid");
    guint64 pid = process_find_by_argument(argument);
    return pid != 0 ? pid : process_find_by_argument(before);
}

/* An older version has not written whose it is: all of its guests had one user. */
static void adopt(struct guest *guest, guint64 pid, guint64 start, json_int_t user)
{
    if (pid == 0) {
        pid = find_process(guest);
        start = pid != 0 ? process_read_start_ticks(pid) : 0;
    }
    guest->process = process_adopt(pid, start, guest_exited, guest, NULL);
    guest->user = guest_users_shared(guest->users);
    if (user >= 0 && user < G_MAXUINT32)
        guest->user = (guint32)user;
    else if (geteuid() == 0 && guest->process != NULL)
        process_user(guest->process, &guest->user);
}

static void parse_set(struct job_set *set, int number)
{
    set->number = (guint)MAX(number, 0);
    set->attached = number > 0;
}

/* What an older version has not written is as it was then: no migration. */
static bool parse_migration(struct migration *migration, const json_t *json)
{
    int side, number, resume, paused = -1, sent, serving, arrived;
    const char *uuid;
    if (json == NULL)
        return true;
    if (json_unpack((json_t *)json, "{s:i,s:i,s:s,s:b,s:b,s:b,s:b,s?b}", "side", &side, "number",
                    &number, "uuid", &uuid, "resume", &resume, "sent", &sent, "serving", &serving,
                    "arrived", &arrived, "paused", &paused) != 0 ||
        side < SIDE_NONE || side > SIDE_TARGET)
        return false;
    migration_reset(migration);
    g_free(migration->uuid);
    migration->uuid = g_strdup(uuid);
    migration->side = (enum migration_side)side;
    migration->number = (guint)MAX(number, 0);
    migration->resume = resume != 0;
    migration->paused = paused >= 0 ? paused != 0 : resume == 0;
    migration->sent = sent != 0;
    migration->serving = serving != 0;
    migration->arrived = arrived != 0;
    /* It was to be followed by a node daemon that is dead. */
    if (migration->side == SIDE_SOURCE && !migration->sent)
        migration->failure = g_strdup("the node daemon was restarted before it began to send");
    return true;
}

/* What an older version has not written is unknown: then everything is copied. A task that copied
 * has died with its node daemon. */
static bool parse_incremental(struct guest *guest, const json_t *json)
{
    int written, active;
    const char *words;
    const json_t *images;
    if (json == NULL)
        return true;
    if (json_unpack((json_t *)json, "{s:s,s:i,s:b,s:o}", "words", &words, "written", &written,
                    "active", &active, "images", &images) != 0 ||
        written < 0 || json_array_size(images) != guest->disks)
        return false;
    for (guint i = 0; i < guest->disks; i++) {
        json_int_t device, inode;
        if (json_unpack(json_array_get(images, i), "[I,I]", &device, &inode) != 0)
            return false;
        guest->images[i] = (struct image_file){(guint64)device, (guint64)inode};
    }
    g_free(guest->replica_images);
    guest->replica_images = g_strdup(words);
    guest->written.number = (guint)written;
    guest->incremental.active = guest->incremental.failed = active != 0;
    return true;
}

static struct guest *state_parse(struct qemu *qemu, const char *instance, json_t *json,
                                 GError **error)
{
    json_int_t generation, memory, pid, start;
    int format, disks, attachment, mirrored, mirror = -1, copy = 0, resume = 0;
    const json_t *migration = NULL;
    const char *name, *replica;
    if (json_unpack(json, "{s:i,s:s,s:I,s:I,s:i,s:I,s:I,s:i,s:b,s:s,s?i,s?i,s?b,s?o}", "format",
                    &format, "name", &name, "generation", &generation, "memory", &memory, "disks",
                    &disks, "pid", &pid, "start", &start, "attachment", &attachment, "mirrored",
                    &mirrored, "replica", &replica, "mirror", &mirror, "copy", &copy, "resume",
                    &resume, "migration", &migration) != 0 ||
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
    parse_set(&guest->mirror, mirror >= 0 ? mirror : mirrored ? attachment : 0);
    parse_set(&guest->copy, copy);
    guest->resume = resume != 0;
    if (!parse_migration(&guest->migration, migration)) {
        fettle_set_error(error, CORRUPT, "what it says about a migration cannot be used");
        guest_unref(guest);
        return NULL;
    }
    guest->console = (guint64)MAX(json_integer_value(json_object_get(json, "console")), 0);
    if (!parse_incremental(guest, json_object_get(json, "incremental"))) {
        fettle_set_error(error, CORRUPT, "what it says about its replica cannot be used");
        guest_unref(guest);
        return NULL;
    }
    const json_t *user = json_object_get(json, "user");
    adopt(guest, (guint64)pid, (guint64)start, user != NULL ? json_integer_value(user) : -1);
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
