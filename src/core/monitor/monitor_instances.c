/*
 * inst-status-fettle, in the shape of Ganeti's collectors of that kind: what an instance on record
 * here is meant to do, which ConfD tells, beside what it does. Without an answer of ConfD it says
 * "no configuration", and what runs here all the same. See monitor.h.
 */
#include "core/monitor/monitor_private.h"

#include <string.h>

/* What runs of an instance here; NULL: nothing is known of it. */
static const struct guest_file *file_of(const GPtrArray *files, const char *uuid)
{
    for (guint i = 0; i < files->len; i++) {
        const struct guest_file *file = files->pdata[i];
        if (strncmp(file->file, uuid, strlen(uuid)) == 0)
            return file;
    }
    return NULL;
}

static const char *state_of(const struct guest_file *file)
{
    if (!file)
        return enum_word(&guest_state_words, GUEST_ABSENT);
    return file->stats ? enum_word(&guest_state_words, (int)file->stats->state) : "unknown";
}

/* --- one instance --- */

struct judgement {
    enum monitor_status code;
    bool wrong;
    char *message;
};

static bool runs(const struct guest_file *file)
{
    return file && file->stats && file->stats->state == GUEST_RUNNING;
}

/* On its way from one to the other. */
static bool is_between(const struct guest_file *file)
{
    enum guest_state state = file && file->stats ? file->stats->state : GUEST_ABSENT;
    return state == GUEST_PREPARED || state == GUEST_INCOMING || state == GUEST_MIGRATED;
}

static struct judgement judge(const char *meant, const struct guest_file *file)
{
    bool up = g_strcmp0(meant, "up") == 0;
    struct judgement judgement = {MONITOR_OK, false, NULL};
    if (file && !file->stats) {
        judgement.code = MONITOR_FAILED;
        judgement.message = g_strdup(file->why);
    } else if (file && (judgement.code = monitor_age_status("fettle-noded", file->age_ms,
                                                            &judgement.message)) != MONITOR_OK) {
        return judgement;
    } else if (is_between(file)) {
        judgement.code = MONITOR_TEMPORARY;
    } else if (up != runs(file)) {
        judgement.code = MONITOR_BAD;
        judgement.wrong = true;
        g_free(judgement.message);
        judgement.message = up ? g_strdup_printf("it is meant to run, and is %s", state_of(file))
                               : g_strdup("it is not meant to run, and does");
    }
    return judgement;
}

static json_t *optional(const json_t *object, const char *name)
{
    json_t *value = json_object_get(object, name);
    return value ? json_incref(value) : json_null();
}

static json_t *instance_json(const json_t *object, const char *uuid, const struct guest_file *file)
{
    const char *meant = json_string_value(json_object_get(object, "admin_state"));
    struct judgement judgement = judge(meant, file);
    json_t *instance = json_make(
        "{so ss so ss so so so sb so}", "name", optional(object, "name"), "uuid", uuid,
        "adminState", optional(object, "admin_state"), "actualState", state_of(file), "uptime",
        runs(file) && file->stats->uptime_us
            ? json_real((double)file->stats->uptime_us / G_USEC_PER_SEC)
            : json_null(),
        "mtime", optional(object, "mtime"), "state_reason", json_array(), "wrong", judgement.wrong,
        "status", monitor_status_json(judgement.code, judgement.message ? judgement.message : ""));
    g_free(judgement.message);
    return instance;
}

/* --- all of them --- */

static void count_worst(const json_t *list, int *ret_code, const char **ret_message)
{
    size_t i;
    const json_t *instance;
    *ret_code = MONITOR_OK;
    *ret_message = "";
    json_array_foreach(list, i, instance) {
        const json_t *status = json_object_get(instance, "status");
        int code = (int)json_integer_value(json_object_get(status, "code"));
        if (code > *ret_code) {
            *ret_code = code;
            *ret_message = json_string_value(json_object_get(status, "message"));
        }
    }
}

/* What runs here of others: it has just come or is about to go, or the answer is an old one. */
static void add_others(const GPtrArray *files, json_t *list, GHashTable *named, bool no_answer)
{
    for (guint i = 0; i < files->len; i++) {
        const struct guest_file *file = files->pdata[i];
        if (!file->stats || g_hash_table_contains(named, file->stats->instance))
            continue;
        json_autoptr object =
            *file->stats->name ? json_make("{ss}", "name", file->stats->name) : json_object();
        json_t *instance = instance_json(object, file->stats->instance, file);
        json_object_set_new(instance, "wrong", json_false());
        json_object_set_new(instance, "status",
                            no_answer ? monitor_status_json(MONITOR_UNKNOWN, "no configuration")
                                      : monitor_status_json(MONITOR_UNKNOWN,
                                                            "this node is not on record as its "
                                                            "primary"));
        json_array_append_new(list, instance);
    }
}

/* ConfD tells [those that the node is primary of, those that it is secondary of]. */
static void add_own(const json_t *answer, const GPtrArray *files, json_t *list, GHashTable *named)
{
    size_t i;
    const json_t *object;
    json_array_foreach(json_array_get(answer, 0), i, object) {
        const char *uuid = json_string_value(json_object_get(object, "uuid"));
        if (!uuid || !g_uuid_string_is_valid(uuid))
            continue;
        json_array_append_new(list, instance_json(object, uuid, file_of(files, uuid)));
        g_hash_table_add(named, (void *)uuid);
    }
}

json_t *monitor_inst_status(struct monitor *monitor, GError **error)
{
    g_autoptr(GError) why = NULL;
    json_autoptr answer =
        monitor->ask(CONFD_TYPE_node_instances, monitor->node, monitor->data, &why);
    const GPtrArray *files = monitor_guest_files(monitor, error);
    if (!files)
        return NULL;
    g_autoptr(GHashTable) named = g_hash_table_new(g_str_hash, g_str_equal);
    json_t *list = json_array();
    const char *message;
    int code;
    if (answer)
        monitor->heard_ms = monitor_now_ms(monitor);
    add_own(answer, files, list, named);
    add_others(files, list, named, !answer);
    count_worst(list, &code, &message);
    g_autofree char *nothing =
        answer ? NULL : g_strdup_printf("no configuration: %s", why ? why->message : "killed");
    return json_make("{so so}", "instances", list, "status",
                     monitor_status_json(answer ? (enum monitor_status)code : MONITOR_FAILED,
                                         answer ? message : nothing));
}
