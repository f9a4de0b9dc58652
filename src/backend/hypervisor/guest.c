/*
 * One guest: its process, its QMP connection, what its events tell.
 */
#include "backend/hypervisor/qemu_private.h"
#include "backend/hypervisor/relay.h"
#include "base/limits.h"
#include "io/files.h"
#include "io/tree.h"

#include <string.h>

struct guest *guest_new(struct qemu *qemu, const char *instance, guint64 generation)
{
    struct guest *guest = g_new0(struct guest, 1);
    guest->refs = 1;
    guest->qemu = qemu;
    guest->users = guest_users_ref(qemu->users);
    guest->instance = g_strdup(instance);
    guest->name = g_strdup("");
    guest->replica = g_strdup("");
    guest->replica_images = g_strdup("");
    migration_init(&guest->migration);
    guest->mirror.kind = 'm';
    guest->copy.kind = 'c';
    guest->generation = generation;
    g_queue_init(&guest->connecting.waiters);
    g_queue_init(&guest->typing.waiters);
    g_queue_init(&guest->relaying.waiters);
    g_queue_init(&guest->standing.waiters);
    guest->outcomes = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    return guest;
}

struct guest *guest_ref(struct guest *guest)
{
    guest->refs++;
    return guest;
}

void guest_unref(struct guest *guest)
{
    if (--guest->refs > 0)
        return;
    qmp_close(guest->qmp);
    process_free(guest->process);
    relay_free(guest->relay);
    g_hash_table_unref(guest->outcomes);
    g_free(guest->instance);
    g_free(guest->name);
    g_free(guest->replica);
    g_free(guest->replica_images);
    migration_clear(&guest->migration);
    guest_users_give_back(guest->users, guest->user);
    guest_users_unref(guest->users);
    g_free(guest);
}

struct guest *guest_find(struct qemu *qemu, const char *instance, guint64 generation,
                         GError **error)
{
    struct guest *guest = g_hash_table_lookup(qemu->guests, instance);
    if (guest == NULL) {
        fettle_set_error(error, UNKNOWN_ENTITY, "no guest of instance %s is on this node",
                         instance);
        return NULL;
    }
    if (guest->generation != generation) {
        fettle_set_error(error, REFUSED,
                         "guest %s is of generation %" G_GUINT64_FORMAT ", not %" G_GUINT64_FORMAT,
                         guest->name, guest->generation, generation);
        return NULL;
    }
    return guest_ref(guest);
}

char *guest_path(const struct guest *guest, const char *name)
{
    return g_build_filename(guest->qemu->paths->run, "guests", guest->instance, name, NULL);
}

void guest_remove_folder(const struct guest *guest)
{
    g_autofree char *folder = guest_path(guest, NULL);
    tree_remove(folder, NULL);
}

void guest_remove_leftovers(const struct guest *guest)
{
    if (g_hash_table_lookup(guest->qemu->guests, guest->instance) == NULL)
        guest_remove_folder(guest);
}

/* Read before its folder goes; all of it, as the last line alone often says little. */
static char *last_words(const struct guest *guest)
{
    g_autofree char *path = guest_path(guest, "stderr.log");
    g_autofree char *said =
        guest->killed ? NULL : files_read_path(path, LIMIT_COMPLAINT_BYTES, NULL, NULL);
    if (said == NULL)
        return g_strdup("");
    g_autofree char *valid = g_utf8_make_valid(g_strstrip(said), -1);
    g_auto(GStrv) lines = g_strsplit(valid, "\n", -1);
    return g_strjoinv("; ", lines);
}

void guest_exited(struct process *process, void *data)
{
    struct guest *guest = data;
    struct qemu *qemu = guest->qemu;
    g_autofree char *said = last_words(guest);
    guest->gone = true;
    g_clear_pointer(&guest->qmp, qmp_close);
    if (!guest->prepared)
        return; /* whoever starts it sees to the rest */
    const struct hypervisor_events *events = &qemu->events;
    relay_abandon(guest);
    guest_remove_folder(guest);
    guest_ref(guest);
    g_hash_table_remove(qemu->guests, guest->instance);
    if (events->exited != NULL)
        events->exited(guest->instance, guest->generation, said, events->data);
    guest_unref(guest);
}

static void guest_event(const char *name, const json_t *data, void *user)
{
    struct guest *guest = user;
    const struct hypervisor_events *events = &guest->qemu->events;
    const char *job = json_string_value(json_object_get(data, "device"));
    if (strcmp(name, "SHUTDOWN") == 0) {
        guest->off = json_is_true(json_object_get(data, "guest"));
        if (guest->off && events->shutdown != NULL)
            events->shutdown(guest->instance, guest->generation, events->data);
    } else if (strcmp(name, "BLOCK_JOB_COMPLETED") == 0 && job != NULL) {
        const json_t *failure = json_object_get(data, "error");
        bool failed = failure != NULL;
        if (failed && guest->migration.side == SIDE_SOURCE) {
            g_free(guest->migration.copy_failure);
            guest->migration.copy_failure = g_strdup(json_string_value(failure));
        }
        g_hash_table_replace(guest->outcomes, g_strdup(job),
                             GINT_TO_POINTER(failed ? JOB_FAILED : JOB_DONE));
    } else if (strcmp(name, "BLOCK_JOB_READY") == 0 && job != NULL) {
        g_hash_table_replace(guest->outcomes, g_strdup(job), GINT_TO_POINTER(JOB_READY));
    } else if (strcmp(name, "MIGRATION") == 0) {
        migrate_event(guest, json_string_value(json_object_get(data, "status")));
    } else if (strcmp(name, "RESUME") == 0) {
        guest->finished = guest->off = false;
        guest->disturbed = true;
    } else if (strcmp(name, "BLOCK_JOB_CANCELLED") == 0 && job != NULL) {
        g_hash_table_replace(guest->outcomes, g_strdup(job), GINT_TO_POINTER(JOB_FAILED));
    }
}

/* The rescue socket is for when another client sits on the first one, which then greets nobody. */
static struct qmp *guest_open_qmp(struct guest *guest, guint timeout_ms, GError **error)
{
    const struct qmp_events events = {.event = guest_event, .user = guest};
    g_autofree char *usual = guest_path(guest, "qmp.sock");
    g_autofree char *rescue = guest_path(guest, "rescue.sock");
    g_autoptr(GError) failure = NULL;
    struct qmp *qmp = qmp_connect(usual, timeout_ms, &events, &failure);
    if (qmp == NULL && !guest->gone)
        qmp = qmp_connect(rescue, timeout_ms, &events, NULL);
    if (qmp == NULL)
        g_propagate_error(error, g_steal_pointer(&failure));
    return qmp;
}

static bool guest_connect_locked(struct guest *guest, guint timeout_ms, GError **error)
{
    if (guest->qmp != NULL && qmp_is_open(guest->qmp))
        return true;
    g_clear_pointer(&guest->qmp, qmp_close);
    struct qmp *qmp = guest->gone ? NULL : guest_open_qmp(guest, timeout_ms, error);
    if (qmp != NULL && !guest->gone) {
        guest->qmp = qmp;
        return true;
    }
    qmp_close(qmp);
    if (guest->gone) {
        g_clear_error(error);
        fettle_set_error(error, UNREACHABLE, "its process has ended");
    }
    return false;
}

bool guest_connect(struct guest *guest, guint timeout_ms, GError **error)
{
    if (!task_mutex_lock(&guest->connecting)) {
        fettle_set_error(error, KILLED, "the process that waited for QEMU has ended");
        return false;
    }
    bool connected = guest_connect_locked(guest, timeout_ms, error);
    task_mutex_unlock(&guest->connecting);
    return connected;
}

json_t *guest_execute(struct guest *guest, const char *command, json_t *arguments, guint timeout_ms,
                      GError **error)
{
    json_autoptr held = arguments;
    json_t *answer = NULL;
    if (guest_connect(guest, LIMIT_QMP_COMMAND_MS, error))
        answer = qmp_execute(guest->qmp, command, json_incref(held), timeout_ms, error);
    if (answer == NULL)
        g_prefix_error(error, "guest %s: ", guest->name);
    return answer;
}

bool guest_command(struct guest *guest, const char *command, json_t *arguments, guint timeout_ms,
                   GError **error)
{
    json_autoptr answer = guest_execute(guest, command, arguments, timeout_ms, error);
    return answer != NULL;
}

bool guest_give_descriptor(struct guest *guest, const char *command, json_t *arguments, int fd,
                           GError **error)
{
    json_autoptr held = arguments;
    json_autoptr answer = NULL;
    if (guest_connect(guest, LIMIT_QMP_COMMAND_MS, error))
        answer = qmp_give_descriptor(guest->qmp, command, json_incref(held), fd,
                                     LIMIT_QMP_COMMAND_MS, error);
    if (answer == NULL)
        g_prefix_error(error, "guest %s: ", guest->name);
    return answer != NULL;
}

bool guest_yank_any(struct guest *guest, json_t *what, GError **error)
{
    json_autoptr held = what;
    json_autoptr answer = NULL;
    if (guest_connect(guest, LIMIT_QMP_COMMAND_MS, error))
        answer = qmp_execute_oob(guest->qmp, "yank", json_make("{s:[O]}", "instances", held),
                                 LIMIT_QMP_COMMAND_MS, error);
    if (answer == NULL)
        g_prefix_error(error, "guest %s: ", guest->name);
    return answer != NULL;
}

bool guest_yank(struct guest *guest, const char *node, GError **error)
{
    return guest_yank_any(guest, json_make("{s:s,s:s}", "type", "block-node", "node-name", node),
                          error);
}

bool guest_status(struct guest *guest, char **ret_word, GError **error)
{
    json_autoptr status = guest_execute(guest, "query-status", NULL, LIMIT_QMP_COMMAND_MS, error);
    const char *word = json_string_value(json_object_get(status, "status"));
    if (status == NULL)
        return false;
    *ret_word = g_strdup(word != NULL ? word : "");
    return true;
}

struct background {
    struct guest *guest;
    void (*fn)(struct guest *guest);
};

static void run_background(void *data)
{
    struct background *background = data;
    background->fn(background->guest);
    guest_unref(background->guest);
    g_free(background);
}

void guest_spawn(struct guest *guest, void (*fn)(struct guest *guest))
{
    struct background *background = g_new0(struct background, 1);
    background->guest = guest_ref(guest);
    background->fn = fn;
    task_spawn(guest->qemu->tasks, run_background, background);
}
