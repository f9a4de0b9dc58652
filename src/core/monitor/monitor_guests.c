/* The collectors that tell what is in run/stats: guests, replicas, relay, volumes, services; see
 * monitor.h. */
#include "core/monitor/monitor_private.h"

#include <string.h>

#define NODED "fettle-noded"
#define VOLUMED "fettle-volumed"

/* A list that is told, and the worst that is in it. */
struct telling {
    json_t *list;
    enum monitor_status code;
    GString *message;
};

static struct telling telling_new(void)
{
    return (struct telling){json_array(), MONITOR_OK, g_string_new(NULL)};
}

/* The first of the worst has the word. */
static void note(struct telling *telling, enum monitor_status code, const char *message)
{
    if (code > telling->code)
        g_string_assign(telling->message, message);
    telling->code = MAX(telling->code, code);
}

static void add(struct telling *telling, json_t *object, enum monitor_status code,
                const char *message)
{
    json_object_set_new(object, "status", monitor_status_json(code, message));
    json_array_append_new(telling->list, object);
    note(telling, code, message);
}

static json_t *told(struct telling *telling, const char *name)
{
    json_t *data = json_make("{so so}", name, telling->list, "status",
                             monitor_status_json(telling->code, telling->message->str));
    g_string_free(telling->message, TRUE);
    return data;
}

static void add_broken(struct telling *telling, const struct guest_file *file)
{
    add(telling, json_make("{ss}", "file", file->file), MONITOR_FAILED, file->why);
}

static void set_age(json_t *object, gint64 age_ms)
{
    json_object_set_new(object, "age_us", json_integer((json_int_t)age_ms * 1000));
}

/* --- guests --- */

static enum monitor_status judge_guest(const struct guest_file *file, char **ret_message)
{
    const struct guest_stats *stats = file->stats;
    enum monitor_status age = monitor_age_status(NODED, file->age_ms, ret_message);
    const char *message = NULL;
    if (age == MONITOR_OK && stats->io_stop == IO_STOP_NO_SPACE)
        message = "it stands still: a disk or volume of it finds no room";
    else if (age == MONITOR_OK && stats->io_stop == IO_STOP_FAILED)
        message = "it stands still: a disk of it fails";
    if (message) {
        g_free(*ret_message);
        *ret_message = g_strdup(message);
        return MONITOR_BAD;
    }
    if (age == MONITOR_OK && stats->late) {
        g_free(*ret_message);
        *ret_message =
            g_strdup_printf("its hypervisor has not answered for %" G_GUINT64_FORMAT " s",
                            stats->heard_age_ms / 1000);
        return MONITOR_UNKNOWN;
    }
    return age;
}

static void add_waits(const struct guest_stats *stats, json_t *guest)
{
    json_t *list = json_object_get(guest, "drives");
    for (guint i = 0; i < stats->drives->len; i++) {
        const struct drive_stats *drive = stats->drives->pdata[i];
        json_object_set_new(
            json_array_get(list, i), "wait_us",
            json_integer((json_int_t)(drive->read_us + drive->write_us + drive->flush_us)));
    }
}

/* Without what other collectors tell of it. */
static json_t *guest_json(const struct guest_file *file)
{
    static const char *const others[] = {"format",       "replica",      "replica_state", "mirror",
                                         "progress",     "lag_bytes",    "held",          "relay",
                                         "relay_starts", "relay_away_ms"};
    json_t *guest = guest_stats_to_json(file->stats);
    for (guint i = 0; i < G_N_ELEMENTS(others); i++)
        json_object_del(guest, others[i]);
    add_waits(file->stats, guest);
    set_age(guest, file->age_ms);
    return guest;
}

json_t *monitor_guests(struct monitor *monitor, GError **error)
{
    const GPtrArray *files = monitor_guest_files(monitor, error);
    if (!files)
        return NULL;
    struct telling telling = telling_new();
    for (guint i = 0; i < files->len; i++) {
        const struct guest_file *file = files->pdata[i];
        g_autofree char *message = NULL;
        if (!file->stats) {
            add_broken(&telling, file);
            continue;
        }
        enum monitor_status code = judge_guest(file, &message);
        add(&telling, guest_json(file), code, message);
    }
    return told(&telling, "guests");
}

/* --- replicas, relay --- */

static enum monitor_status judge_replica(const struct guest_stats *stats, const char **ret_message)
{
    *ret_message = "";
    if (*stats->held) {
        *ret_message = stats->held;
        return MONITOR_BAD;
    }
    if (stats->replica_state == REPLICA_IN_SYNC)
        return MONITOR_OK;
    bool copies = stats->mirror == MIRROR_SYNCING || stats->mirror == MIRROR_READY;
    *ret_message = copies ? "it is being copied" : "it is stale, and is not being copied";
    return copies ? MONITOR_TEMPORARY : MONITOR_BAD;
}

static json_t *replica_json(const struct guest_file *file)
{
    const struct guest_stats *stats = file->stats;
    json_t *replica = json_make(
        "{ss ss ss ss ss sI sI ss sb}", "instance", stats->instance, "name", stats->name, "replica",
        stats->replica, "state", enum_word(&replica_state_words, (int)stats->replica_state),
        "mirror", enum_word(&mirror_state_words, (int)stats->mirror), "progress",
        (json_int_t)stats->progress, "lag_bytes", (json_int_t)stats->lag_bytes, "held", stats->held,
        "is_held", *stats->held != '\0');
    set_age(replica, file->age_ms);
    return replica;
}

static enum monitor_status judge_relay(const struct guest_stats *stats, const char **ret_message)
{
    *ret_message = "";
    if (stats->relay == RELAY_FORWARDING)
        return MONITOR_OK;
    *ret_message = stats->relay == RELAY_REFUSING
                       ? "it refuses what its guest writes: the replica was given up"
                       : "there is none that is well; another one is being started";
    return MONITOR_TEMPORARY;
}

static json_t *relay_json(const struct guest_file *file)
{
    const struct guest_stats *stats = file->stats;
    json_t *relay = json_make("{ss ss ss sI sI}", "instance", stats->instance, "name", stats->name,
                              "relay", enum_word(&relay_state_words, (int)stats->relay),
                              "relay_starts", (json_int_t)stats->relay_starts, "relay_away_ms",
                              (json_int_t)stats->relay_away_ms);
    set_age(relay, file->age_ms);
    return relay;
}

/* What is told of those guests of which there is something to tell. */
static bool tell_guests(struct monitor *monitor, bool relays, struct telling *telling,
                        GError **error)
{
    const GPtrArray *files = monitor_guest_files(monitor, error);
    for (guint i = 0; files && i < files->len; i++) {
        const struct guest_file *file = files->pdata[i];
        const struct guest_stats *stats = file->stats;
        if (!stats) {
            add_broken(telling, file);
            continue;
        }
        if (relays ? stats->relay == RELAY_NONE : !*stats->replica)
            continue;
        const char *message = "";
        g_autofree char *old = NULL;
        enum monitor_status code = monitor_age_status(NODED, file->age_ms, &old);
        if (code == MONITOR_OK)
            code = relays ? judge_relay(stats, &message) : judge_replica(stats, &message);
        else
            message = old;
        add(telling, relays ? relay_json(file) : replica_json(file), code, message);
    }
    return files;
}

json_t *monitor_relay(struct monitor *monitor, GError **error)
{
    struct telling telling = telling_new();
    bool ok = tell_guests(monitor, true, &telling, error);
    json_autoptr data = told(&telling, "relays");
    return ok ? json_steal(&data) : NULL;
}

static json_t *kept_json(const struct node_stats *stats)
{
    json_t *list = json_array();
    for (guint i = 0; i < stats->replicas->len; i++)
        json_array_append_new(list, replica_report_to_json(stats->replicas->pdata[i]));
    return list;
}

json_t *monitor_replicas(struct monitor *monitor, GError **error)
{
    gint64 age_ms = 0;
    record_autoptr(node_stats) node =
        monitor_stats_read(monitor, &node_stats_record, "node.stats", &age_ms, error);
    if (!node)
        return NULL;
    struct telling telling = telling_new();
    g_autofree char *old = NULL;
    enum monitor_status code = monitor_age_status(NODED, age_ms, &old);
    note(&telling, code, old);
    bool ok = tell_guests(monitor, false, &telling, error);
    json_autoptr data = told(&telling, "replicas");
    json_object_set_new(data, "kept", kept_json(node));
    return ok ? json_steal(&data) : NULL;
}

/* --- services --- */

static enum monitor_status judge_service(const struct service_report *service, char **ret_message)
{
    *ret_message = NULL;
    if (service->state == SERVICE_RUNNING || service->state == SERVICE_STOPPED)
        return MONITOR_OK;
    *ret_message = g_strdup_printf("%s: %s", service->name, service->why);
    return service->state == SERVICE_RESTARTING ? MONITOR_TEMPORARY : MONITOR_UNKNOWN;
}

json_t *monitor_services(struct monitor *monitor, GError **error)
{
    gint64 age_ms = 0;
    record_autoptr(node_stats) node =
        monitor_stats_read(monitor, &node_stats_record, "node.stats", &age_ms, error);
    if (!node)
        return NULL;
    struct telling telling = telling_new();
    g_autofree char *old = NULL;
    enum monitor_status age = monitor_age_status(NODED, age_ms, &old);
    note(&telling, age, old);
    for (guint i = 0; i < node->services->len; i++) {
        const struct service_report *service = node->services->pdata[i];
        g_autofree char *message = NULL;
        enum monitor_status code = judge_service(service, &message);
        add(&telling, service_report_to_json(service), code, message ? message : "");
    }
    json_t *data = told(&telling, "services");
    json_object_set_new(data, "master_heard_ms",
                        json_integer((json_int_t)node->master_heard_ms + age_ms));
    set_age(data, age_ms);
    return data;
}

/* --- volumes --- */

static json_t *no_volumes(void)
{
    return json_make("{s[] so}", "backends", "status",
                     monitor_status_json(MONITOR_OK, "none here: " VOLUMED " has told nothing"));
}

json_t *monitor_volumes(struct monitor *monitor, GError **error)
{
    const struct env *env = monitor->env;
    g_autoptr(GPtrArray) names = env->ops->file_list(env, FILE_STATS, "", error);
    gint64 age_ms = 0;
    bool there = false;
    for (guint i = 0; names && i < names->len; i++)
        there = there || strcmp(names->pdata[i], "volumed.stats") == 0;
    if (!names || !there)
        return names ? no_volumes() : NULL;
    record_autoptr(volumed_stats) stats =
        monitor_stats_read(monitor, &volumed_stats_record, "volumed.stats", &age_ms, error);
    if (!stats)
        return NULL;
    struct telling telling = telling_new();
    g_autofree char *old = NULL;
    enum monitor_status age = monitor_age_status(VOLUMED, age_ms, &old);
    note(&telling, age, old);
    for (guint i = 0; i < stats->backends->len; i++) {
        const struct volume_stats *backend = stats->backends->pdata[i];
        const char *message = backend->hanging       ? "calls of it do not come back"
                              : !backend->registered ? "its service is not on record (yet)"
                                                     : "";
        enum monitor_status code = backend->hanging       ? MONITOR_BAD
                                   : !backend->registered ? MONITOR_TEMPORARY
                                                          : MONITOR_OK;
        add(&telling, volume_stats_to_json(backend), code, message);
    }
    json_t *data = told(&telling, "backends");
    set_age(data, age_ms);
    return data;
}
