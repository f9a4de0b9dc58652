/* See rbd_call.h. */
#include "backend/volume/rbd_call.h"

#include <string.h>
#include <unistd.h>

#include "backend/tool.h"
#include "backend/volume/volume_user.h"
#include "base/limits.h"

#define MARKER "fettle-backend"
#define MARKER_LOCK "fettle"

/* `ceph` asks the cluster, and not a pool of it. */
static void add_place(GPtrArray *argv, const struct backend *backend, bool pool)
{
    const char *const words[] = {"--conf",
                                 CHILD_TEXT,
                                 "--id",
                                 backend->user,
                                 pool ? "--pool" : "",
                                 pool ? backend->pool : "",
                                 "--namespace",
                                 pool ? backend->namespace : ""};
    for (guint i = 0; i < G_N_ELEMENTS(words); i += 2)
        if (*words[i] && *words[i + 1]) {
            g_ptr_array_add(argv, g_strdup(words[i]));
            g_ptr_array_add(argv, g_strdup(words[i + 1]));
        }
}

void rbd_words(const struct rbd_call *call, const char *const *words, GPtrArray *ret)
{
    g_ptr_array_add(ret, g_strdup(words[0]));
    add_place(ret, call->backend, strcmp(words[0], "ceph") != 0);
    while (*++words)
        g_ptr_array_add(ret, g_strdup(*words));
    g_ptr_array_add(ret, NULL);
}

int rbd_run(const struct rbd_call *call, const char *const *words, char **ret_said, GError **error)
{
    const struct backend *backend = call->backend;
    g_autoptr(GPtrArray) argv = g_ptr_array_new_with_free_func(g_free);
    g_autofree char *said = NULL, *conf = rbd_conf_text(call->confs, backend, error);
    if (ret_said)
        *ret_said = NULL;
    if (!conf)
        return -1;
    volume_user_words(argv, POOL_USER, getpid());
    rbd_words(call, words, argv);
    int code = volume_children_run(call->children, backend->uuid, call->from,
                                   (const char *const *)argv->pdata,
                                   (const char *const[]){conf, NULL}, call->more_ms, &said, error);
    if (code < 0)
        g_prefix_error(error, "%s: ", backend->name);
    if (ret_said)
        *ret_said = g_steal_pointer(&said);
    return code;
}

void rbd_judge(const struct rbd_call *call, int code, const char *said, GError **error)
{
    g_autofree char *words = tool_last_words(said);
    enum fettle_error kind = code == ENOENT                     ? FETTLE_ERROR_UNKNOWN_ENTITY
                             : code == ENOSPC || code == EDQUOT ? FETTLE_ERROR_NO_RESOURCES
                             : code == ETIMEDOUT                ? FETTLE_ERROR_TIMEOUT
                                                                : FETTLE_ERROR_STORAGE;
    g_set_error(error, FETTLE_ERROR, (gint)kind, "%s: %s", call->backend->name, words);
}

bool rbd_do(const struct rbd_call *call, const char *const *words, GError **error)
{
    g_autofree char *said = NULL;
    int code = rbd_run(call, words, &said, error);
    if (code > 0)
        rbd_judge(call, code, said, error);
    return code == 0;
}

/* It is on one line; what else is said stands on others. */
json_t *rbd_parse(const struct rbd_call *call, const char *said, GError **error)
{
    g_autoptr(GError) local = NULL;
    const char *line = said;
    while (line && *line != '{' && *line != '[') {
        line = strchr(line, '\n');
        line = line ? line + 1 : NULL;
    }
    json_t *json = json_parse_limited(line ? line : "", line ? strcspn(line, "\n") : 0,
                                      LIMIT_TOOL_OUTPUT_BYTES, &local);
    if (!json)
        fettle_set_error(error, CORRUPT, "%s: what Ceph's commands say cannot be read: %s",
                         call->backend->name, local->message);
    return json;
}

json_t *rbd_ask(const struct rbd_call *call, const char *const *words, GError **error)
{
    g_autofree char *said = NULL;
    int code = rbd_run(call, words, &said, error);
    if (code > 0)
        rbd_judge(call, code, said, error);
    return code == 0 ? rbd_parse(call, said, error) : NULL;
}

/* --- lists --- */

static json_t *need_list(const struct rbd_call *call, json_t *images, GError **error)
{
    if (!images || json_is_array(images))
        return images;
    fettle_set_error(error, CORRUPT, "%s: what Ceph calls its images is no list",
                     call->backend->name);
    json_decref(images);
    return NULL;
}

json_t *rbd_list_images(const struct rbd_call *call, GError **error)
{
    const struct backend *backend = call->backend;
    g_autoptr(GError) local = NULL;
    json_t *images = rbd_ask(call, RBD("ls", "--format", "json"), &local);
    if (!images && fettle_error_is(local, UNKNOWN_ENTITY))
        fettle_set_error(error, ENVIRONMENT,
                         "%s: pool %s has no namespace %s; this makes it: rbd namespace create "
                         "%s/%s",
                         backend->name, backend->pool, backend->namespace, backend->pool,
                         backend->namespace);
    else if (!images)
        g_propagate_error(error, g_steal_pointer(&local));
    return need_list(call, images, error);
}

json_t *rbd_list_sizes(const struct rbd_call *call, GError **error)
{
    g_autofree char *said = NULL;
    int code = rbd_run(call, RBD("ls", "-l", "--format", "json"), &said, error);
    if (code > 0 && code != ENOENT)
        rbd_judge(call, code, said, error);
    if (code != 0 && code != ENOENT)
        return NULL;
    json_autoptr images = need_list(call, rbd_parse(call, said, error), error);
    json_t *sizes = images ? json_object() : NULL;
    size_t i;
    json_t *item;
    json_array_foreach(images, i, item) {
        const char *image = json_string_value(json_object_get(item, "image"));
        if (image && !json_object_get(item, "snapshot"))
            json_object_set(sizes, image, json_object_get(item, "size"));
    }
    return sizes;
}

/* --- the marker --- */

/* `rados` ends with 1 whatever it was. */
static void judge_rados(const struct rbd_call *call, const char *said, GError **error)
{
    const struct backend *backend = call->backend;
    g_autofree char *words = tool_last_words(said);
    if (strstr(said, "error opening pool"))
        fettle_set_error(error, ENVIRONMENT, "%s: there is no pool %s in the Ceph of %s",
                         backend->name, backend->pool, backend->conf);
    else if (strstr(said, "mon config") || strstr(said, "connect"))
        fettle_set_error(error, ENVIRONMENT,
                         "%s: the Ceph of %s does not let client.%s in (%s); is its key beside "
                         "that file, or where that says?",
                         backend->name, backend->conf, *backend->user ? backend->user : "admin",
                         words);
    else
        fettle_set_error(error, STORAGE, "%s: %s", backend->name, words);
}

bool rbd_read_marker(const struct rbd_call *call, char **ret_text, GError **error)
{
    static const char *const words[] = {"rados",     "lock",     "info", MARKER,
                                        MARKER_LOCK, "--format", "json", NULL};
    g_autofree char *said = NULL;
    const char *type = "", *cookie = NULL;
    *ret_text = NULL;
    int code = rbd_run(call, words, &said, error);
    if (code > 0 && strstr(said, "lock_info(): (2)"))
        return true;
    if (code > 0)
        judge_rados(call, said, error);
    json_autoptr lock = code == 0 ? rbd_parse(call, said, error) : NULL;
    if (!lock)
        return false;
    json_t *lockers = json_object_get(lock, "lockers");
    if (json_is_array(lockers) && json_array_size(lockers) == 0)
        return true;
    if (json_unpack(lock, "{s:s, s:[{s:s}]}", "type", &type, "lockers", "cookie", &cookie) == 0 &&
        strcmp(type, "exclusive") == 0) {
        *ret_text = g_strdup(cookie);
        return true;
    }
    fettle_set_error(error, CORRUPT, "%s: the lock of its marker is none that Fettle has made",
                     call->backend->name);
    return false;
}

bool rbd_make_marker(const struct rbd_call *call, const char *text, GError **error)
{
    const char *const words[] = {"rados",     "lock",          "get", MARKER,
                                 MARKER_LOCK, "--lock-cookie", text,  NULL};
    g_autofree char *said = NULL;
    int code = rbd_run(call, words, &said, error);
    bool ok = code == 0 || (code > 0 && strstr(said, "(16)"));
    if (!ok && code > 0)
        judge_rados(call, said, error);
    return ok;
}
