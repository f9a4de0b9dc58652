/* The daemons of a node; see services.h. */
#include "core/host/services.h"

#include <string.h>

#include "base/log.h"
#include "proto/api/place.h"
#include "proto/rpc.h"

#define FOLDER "services"
#define ENDING ".json"
#define WHY_CHARS 512 /* as the records have it */

struct own_service {
    const struct env *env;
    struct service_file *file;
};

/* Whether it may be of another user than root, who has a folder of its own. */
static bool has_place(const char *name)
{
    return *place_of_daemon(name);
}

static char *file_name(const char *name)
{
    return g_strconcat(has_place(name) ? place_of_daemon(name) : FOLDER "/", name, ENDING, NULL);
}

static guint64 now_s(const struct env *env)
{
    return (guint64)(env->ops->wall_us(env) / G_USEC_PER_SEC);
}

static void set_text(char **text, const char *value)
{
    g_free(*text);
    *text = g_utf8_substring(value, 0, MIN(g_utf8_strlen(value, -1), WHY_CHARS));
}

/* --- the daemon's own word --- */

static struct service_file *load(const struct env *env, const char *name, GError **error)
{
    g_autofree char *path = file_name(name);
    size_t len = 0;
    g_autofree char *text =
        env->ops->file_read(env, FILE_RUN, path, LIMIT_SERVICE_FILE_BYTES, &len, error);
    json_autoptr json =
        text != NULL ? json_parse_limited(text, len, LIMIT_SERVICE_FILE_BYTES, error) : NULL;
    record_autoptr(service_file) file =
        json != NULL ? service_file_parse(json, RECORD_KEEP, error) : NULL;
    if (file == NULL)
        return NULL;
    if (strcmp(file->name, name) != 0) {
        fettle_set_error(error, CORRUPT, "it is the file of %s", file->name);
        return NULL;
    }
    return g_steal_pointer(&file);
}

static bool save(const struct own_service *service, GError **error)
{
    const struct env *env = service->env;
    json_autoptr json = service_file_to_json(service->file);
    g_autofree char *text = json_to_text(json);
    g_autofree char *path = file_name(service->file->name);
    return env->ops->file_write(env, FILE_RUN, path, text, strlen(text), error);
}

/* How often it was started again without having been asked to end; what its last process has left
 * of a lock file is of no use to anybody. */
static guint64 take_over(const struct env *env, const char *name)
{
    record_autoptr(service_file) before = load(env, name, NULL);
    if (before == NULL)
        return 0;
    env->ops->livelock_remove(env, before->livelock);
    return before->restarts + (before->asked ? 0 : 1);
}

/* A second process, which somebody has started beside the first, is not what the node runs. */
static bool is_alone(const struct env *env, const char *name, GError **error)
{
    record_autoptr(service_file) before = load(env, name, NULL);
    if (before == NULL || env->ops->livelock_probe(env, before->livelock) != LIVELOCK_ALIVE)
        return true;
    fettle_set_error(error, WRONG_STATE, "process %" G_GUINT64_FORMAT " of %s is there already",
                     before->pid, name);
    return false;
}

struct own_service *service_begin(const struct env *env, const char *name, guint64 pid,
                                  GError **error)
{
    if (!is_alone(env, name, error))
        return NULL;
    g_autofree char *stem = g_strconcat(place_of_daemon(name), "service-", name, NULL);
    g_autofree char *livelock = env->ops->livelock_make(env, stem, error);
    if (livelock == NULL)
        return NULL;
    struct own_service *service = g_new0(struct own_service, 1);
    service->env = env;
    service->file = service_file_new();
    set_text(&service->file->name, name);
    set_text(&service->file->version, FETTLE_VERSION);
    set_text(&service->file->livelock, livelock);
    service->file->pid = pid;
    service->file->started = now_s(env);
    service->file->restarts = take_over(env, name);
    if (save(service, error))
        return service;
    env->ops->livelock_drop(env, livelock);
    service_file_free(service->file);
    g_free(service);
    return NULL;
}

void service_end(struct own_service *service, const char *why)
{
    g_autoptr(GError) error = NULL;
    if (service == NULL)
        return;
    service->file->ended = now_s(service->env);
    service->file->asked = why == NULL;
    set_text(&service->file->why, why != NULL ? why : "");
    if (!save(service, &error))
        log_warning("", "the end of %s is not written down: %s", service->file->name,
                    error->message);
    service->env->ops->livelock_drop(service->env, service->file->livelock);
    service_file_free(service->file);
    g_free(service);
}

/* --- the node's report --- */

/* What such a user says of itself has its own lock file, and no other's. */
static enum service_state state_of(const struct env *env, const struct service_file *file)
{
    if (strcmp(place_of_livelock(file->livelock), place_of_daemon(file->name)) != 0)
        return SERVICE_UNKNOWN;
    switch (env->ops->livelock_probe(env, file->livelock)) {
    case LIVELOCK_ALIVE:
        return SERVICE_RUNNING;
    case LIVELOCK_UNSURE:
        return SERVICE_UNKNOWN;
    case LIVELOCK_DEAD:
    case LIVELOCK_GONE:
        break;
    }
    return file->asked ? SERVICE_STOPPED : SERVICE_RESTARTING;
}

static void fill_dead(struct service_report *line, const struct service_file *file)
{
    line->since = file->ended;
    if (file->ended == 0)
        set_text(&line->why, "it ended without a word: it was killed, or has crashed");
    else
        set_text(&line->why, file->why);
}

static void fill(struct service_report *line, const struct env *env,
                 const struct service_file *file)
{
    line->state = state_of(env, file);
    line->restarts = file->restarts;
    set_text(&line->version, file->version);
    if (line->state == SERVICE_RUNNING) {
        line->since = file->started;
        line->pid = file->pid;
    } else if (line->state == SERVICE_UNKNOWN) {
        set_text(&line->why, "its lock file cannot be probed");
    } else {
        fill_dead(line, file);
    }
}

static struct service_report *report_one(const struct env *env, const char *name)
{
    g_autoptr(GError) error = NULL;
    record_autoptr(service_file) file = load(env, name, &error);
    struct service_report *line = service_report_new();
    set_text(&line->name, name);
    if (file != NULL) {
        fill(line, env, file);
        return line;
    }
    g_autofree char *path = file_name(name);
    g_autofree char *why = g_strdup_printf("run/%s: %s", path, error->message);
    line->state = SERVICE_UNKNOWN;
    set_text(&line->why, why);
    return line;
}

/* One with a place of its own, if it has ever run here. */
static void report_placed(const struct env *env, const char *name, GPtrArray *ret_to)
{
    g_autofree char *path = file_name(name);
    g_autoptr(GError) error = NULL;
    size_t len;
    g_autofree char *text =
        env->ops->file_read(env, FILE_RUN, path, LIMIT_SERVICE_FILE_BYTES, &len, &error);
    if (text != NULL || !fettle_error_is(error, UNKNOWN_ENTITY))
        g_ptr_array_add(ret_to, report_one(env, name));
}

static int compare_names(const void *a, const void *b)
{
    const struct service_report *one = *(const struct service_report *const *)a;
    const struct service_report *other = *(const struct service_report *const *)b;
    return strcmp(one->name, other->name);
}

void services_report(const struct env *env, GPtrArray *ret_to)
{
    g_autoptr(GPtrArray) files = env->ops->file_list(env, FILE_RUN, FOLDER, NULL);
    report_placed(env, ROLE_APID, ret_to);
    report_placed(env, ROLE_MOND, ret_to);
    report_placed(env, ROLE_RAPID, ret_to);
    for (guint i = 0; files != NULL && i < files->len && ret_to->len < LIMIT_SERVICES; i++) {
        const char *file = files->pdata[i];
        size_t len = strlen(file);
        if (!g_str_has_suffix(file, ENDING) || len == strlen(ENDING) ||
            len > LIMIT_SERVICE_CHARS + strlen(ENDING))
            continue;
        g_autofree char *name = g_strndup(file, len - strlen(ENDING));
        if (has_place(name))
            continue;
        g_ptr_array_add(ret_to, report_one(env, name));
    }
    g_ptr_array_sort(ret_to, compare_names);
}
