/* Volumes as images of a Ceph; see rbd_volumes.h. */
#include "backend/volume/rbd_volumes.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "backend/storage/image_tool.h"
#include "backend/tool.h"
#include "backend/volume/dir_text.h"
#include "backend/volume/dir_transfer.h"
#include "backend/volume/dir_volumes.h"
#include "backend/volume/rbd_private.h"
#include "backend/volume/volume_user.h"
#include "base/limits.h"

#define WHOLE "fettle.whole" /* CLAIM BYTES */
#define REMOVE_MS 10000u     /* besides, for each GiB: Ceph removes its objects one by one */
#define FEATURES "layering,exclusive-lock,object-map,fast-diff"

struct rbd_call rbd_call_at(struct volume_driver *driver, const struct backend *backend)
{
    const struct rbd_volumes *rbd = rbd_of(driver);
    return (struct rbd_call){.children = rbd->children, .confs = rbd->confs, .backend = backend};
}

/* --- names --- */

char *rbd_image_name(enum resource_type type, const char *name)
{
    return g_strdup_printf("%s.%s", dir_folder(type), name);
}

/* Whether it is an image of ours; `*ret_name` is in `image`. */
static bool parse_image(const char *image, enum resource_type *ret_type, const char **ret_name)
{
    g_autofree char *uuid = NULL;
    guint64 claim;
    g_autofree char *path = g_strdup(image);
    char *dot = strchr(path, '.');
    const char *name;
    if (!dot)
        return false;
    *dot = '/';
    if (!dir_name_parse(path, ret_type, &name) || !volume_data_parse(name, &uuid, &claim))
        return false;
    *ret_name = image + (name - path);
    return true;
}

/* --- the marker --- */

bool rbd_check_marker(struct volume_driver *driver, const struct rbd_call *call, GError **error)
{
    const struct backend *backend = call->backend;
    char uuid[37] = "", cluster[37] = "", name[256] = "";
    g_autofree char *text = NULL;
    if (!rbd_read_marker(call, &text, error))
        return false;
    if (!text ||
        sscanf(text, "backend %36[0-9a-f-] cluster %36[0-9a-f-] %255s", uuid, cluster, name) != 3) {
        fettle_set_error(error, ENVIRONMENT,
                         "%s: pool %s has no marker of back end %s; a new one gets it while there "
                         "is no image",
                         backend->name, backend->pool, backend->uuid);
        return false;
    }
    if (strcmp(uuid, backend->uuid) == 0 && g_strcmp0(cluster, rbd_of(driver)->cluster) == 0)
        return true;
    fettle_set_error(error, UNSAFE, "%s: pool %s belongs to back end %s of cluster %s",
                     backend->name, backend->pool, uuid, name);
    return false;
}

static bool make_marker(const struct rbd_call *call, const struct cluster *cluster, GError **error)
{
    g_autofree char *text = NULL;
    g_autofree char *made = g_strdup_printf("backend %s cluster %s %s", call->backend->uuid,
                                            cluster->uuid, cluster->name);
    if (!rbd_read_marker(call, &text, error))
        return false;
    json_autoptr images = text ? NULL : rbd_list_images(call, error);
    if (!text && !images)
        return false;
    bool free_place = json_is_array(images) && json_array_size(images) == 0;
    return !free_place || rbd_make_marker(call, made, error);
}

static bool rbd_open(struct volume_driver *driver, const struct backend *backend,
                     const struct cluster *cluster, bool make, GError **error)
{
    struct rbd_volumes *rbd = rbd_of(driver);
    struct rbd_call call = rbd_call_at(driver, backend);
    g_free(rbd->cluster);
    rbd->cluster = g_strdup(cluster->uuid);
    return (!make || make_marker(&call, cluster, error)) && rbd_check_marker(driver, &call, error);
}

/* --- space --- */

static bool rbd_space(struct volume_driver *driver, const struct backend *backend,
                      guint64 *ret_free, guint64 *ret_total, GError **error)
{
    static const char *const words[] = {"ceph", "df", "detail", "--format", "json", NULL};
    struct rbd_call call = rbd_call_at(driver, backend);
    json_autoptr answer = rbd_ask(&call, words, error);
    size_t i;
    json_t *pool;
    if (!answer)
        return false;
    json_array_foreach(json_object_get(answer, "pools"), i, pool) {
        const char *name = "";
        json_int_t stored = 0, left = 0, quota = 0;
        if (json_unpack(pool, "{s:s, s:{s:I, s:I, s?I}}", "name", &name, "stats", "stored", &stored,
                        "max_avail", &left, "quota_bytes", &quota) != 0 ||
            strcmp(name, backend->pool) != 0)
            continue;
        if (quota > 0)
            left = MIN(left, quota - stored);
        *ret_free = (guint64)MAX(left, 0) / MIB(1);
        *ret_total = *ret_free + (guint64)MAX(stored, 0) / MIB(1);
        return true;
    }
    fettle_set_error(error, STORAGE,
                     "%s: Ceph does not say how much room pool %s has; one that has just "
                     "begun does after some seconds",
                     backend->name, backend->pool);
    return false;
}

bool rbd_or_full(struct volume_driver *driver, const struct backend *backend, bool ok,
                 GError **error)
{
    guint64 room, total;
    if (ok || !fettle_error_is(*error, TIMEOUT) ||
        !rbd_space(driver, backend, &room, &total, NULL) || room > 0)
        return ok;
    g_clear_error(error);
    fettle_set_error(error, NO_RESOURCES, "%s: pool %s is full", backend->name, backend->pool);
    return false;
}

/* --- data --- */

static void no_such(const struct rbd_call *call, const char *name, GError **error)
{
    fettle_set_error(error, UNKNOWN_ENTITY, "%s: there is no %s", call->backend->name, name);
}

/* False: an error, of which ENOENT is UNKNOWN_ENTITY, and EEXIST is ALREADY_EXISTS, of `name`. */
static bool run_on(const struct rbd_call *call, const char *const *words, const char *name,
                   GError **error)
{
    g_autofree char *said = NULL;
    int code = rbd_run(call, words, &said, error);
    if (code == ENOENT)
        no_such(call, name, error);
    else if (code == EEXIST)
        fettle_set_error(error, ALREADY_EXISTS, "%s: %s is there already", call->backend->name,
                         name);
    else if (code > 0)
        rbd_judge(call, code, said, error);
    return code == 0;
}

bool rbd_read_size(const struct rbd_call *call, enum resource_type type, const char *name,
                   guint64 *ret_bytes, GError **error)
{
    g_autofree char *image = rbd_image_name(type, name);
    g_autoptr(GError) local = NULL;
    json_autoptr about = rbd_ask(call, RBD("info", image, "--format", "json"), &local);
    json_int_t size = json_integer_value(json_object_get(about, "size"));
    if (!about && fettle_error_is(local, UNKNOWN_ENTITY))
        no_such(call, name, error);
    else if (!about)
        g_propagate_error(error, g_steal_pointer(&local));
    else if (size <= 0)
        fettle_set_error(error, STORAGE, "%s: Ceph does not say how large %s is",
                         call->backend->name, name);
    else
        *ret_bytes = (guint64)size;
    return about && size > 0;
}

bool rbd_say_whole(const struct rbd_call *call, enum resource_type type, const char *name,
                   guint64 bytes, GError **error)
{
    g_autofree char *image = rbd_image_name(type, name);
    g_autofree char *text = g_strdup_printf("%s %" G_GUINT64_FORMAT, strchr(name, '.') + 1, bytes);
    return rbd_do(call, RBD("image-meta", "set", image, WHOLE, text), error);
}

static bool read_whole(const struct rbd_call *call, const struct volume_data *data, bool *ret_whole,
                       GError **error)
{
    g_autofree char *image = rbd_image_name(data->type, data->name), *said = NULL;
    guint64 claim = 0, bytes = 0;
    int code = rbd_run(call, RBD("image-meta", "get", image, WHOLE), &said, error);
    if (code > 0 && code != ENOENT)
        rbd_judge(call, code, said, error);
    g_autofree char *words = tool_last_words(said ? said : "");
    *ret_whole = code == 0 &&
                 sscanf(words, "%" G_GUINT64_FORMAT " %" G_GUINT64_FORMAT, &claim, &bytes) == 2 &&
                 g_ascii_strtoull(strchr(data->name, '.') + 1, NULL, 10) == claim &&
                 data->bytes >= bytes;
    return code == 0 || code == ENOENT;
}

/* Who has it open watches it. */
static bool read_open(const struct rbd_call *call, const char *image, bool *ret_open,
                      GError **error)
{
    json_autoptr status = rbd_ask(call, RBD("status", image, "--format", "json"), error);
    json_t *watchers = json_object_get(status, "watchers");
    *ret_open = json_array_size(watchers) > 0;
    if (status && !json_is_array(watchers))
        fettle_set_error(error, CORRUPT, "%s: Ceph does not say who has %s open",
                         call->backend->name, image);
    return json_is_array(watchers);
}

static struct volume_data *look_at(const struct rbd_call *call, enum resource_type type,
                                   const char *name, GError **error)
{
    struct volume_data *data = g_new0(struct volume_data, 1);
    *data = (struct volume_data){.type = type, .name = g_strdup(name)};
    if (rbd_read_size(call, type, name, &data->bytes, error) &&
        read_whole(call, data, &data->whole, error))
        return data;
    volume_data_free(data);
    return NULL;
}

bool rbd_make_image(const struct rbd_call *call, enum resource_type type, const char *name,
                    guint64 bytes, GError **error)
{
    g_autofree char *image = rbd_image_name(type, name);
    g_autofree char *size = g_strdup_printf("%" G_GUINT64_FORMAT "B", bytes);
    return run_on(call, RBD("create", "--size", size, "--image-feature", FEATURES, image), name,
                  error);
}

static bool rbd_create(struct volume_driver *driver, const struct backend *backend,
                       enum resource_type type, const char *name, guint64 size_gib, GError **error)
{
    struct rbd_call call = rbd_call_at(driver, backend);
    bool ok = rbd_check_marker(driver, &call, error) &&
              rbd_make_image(&call, type, name, GIB_BYTES(size_gib), error) &&
              rbd_say_whole(&call, type, name, GIB_BYTES(size_gib), error);
    return rbd_or_full(driver, backend, ok, error);
}

/* --- copies --- */

static void moment_clear(struct moment *moment)
{
    g_free(moment->image);
    g_free(moment->spec);
}

bool rbd_take_moment(const struct rbd_call *call, enum resource_type type, const char *source,
                     const char *name, struct moment *ret_moment, GError **error)
{
    g_autofree char *image = rbd_image_name(type, source);
    g_autofree char *spec = g_strdup_printf("%s@fettle.%s", image, name);
    if (!run_on(call, RBD("snap", "create", "--no-progress", spec), source, error))
        return false;
    *ret_moment = (struct moment){g_steal_pointer(&image), g_steal_pointer(&spec)};
    return true;
}

bool rbd_end_moment(const struct rbd_call *call, struct moment *moment, bool ok, GError **error)
{
    ok = rbd_do(call, RBD("snap", "rm", "--no-progress", moment->spec), ok ? error : NULL) && ok;
    moment_clear(moment);
    return ok;
}

bool rbd_set_size(const struct rbd_call *call, enum resource_type type, const char *name,
                  guint64 bytes, GError **error)
{
    guint64 there;
    g_autofree char *image = rbd_image_name(type, name);
    g_autofree char *size = g_strdup_printf("%" G_GUINT64_FORMAT "B", bytes);
    if (!rbd_read_size(call, type, name, &there, error))
        return false;
    return there == bytes ||
           rbd_do(call, RBD("resize", "--no-progress", "--allow-shrink", "--size", size, image),
                  error);
}

static bool clone_moment(const struct rbd_call *call, const struct moment *moment,
                         enum resource_type type, const char *name, guint64 size_gib,
                         GError **error)
{
    const struct backend *backend = call->backend;
    g_autofree char *image = rbd_image_name(type, name);
    const char *where = *backend->namespace ? "--dest-namespace" : NULL;
    return run_on(call,
                  RBD("clone", "--rbd-default-clone-format", "2", "--image-feature", FEATURES,
                      moment->spec, "--dest-pool", backend->pool, "--dest", image, where,
                      backend->namespace),
                  name, error) &&
           rbd_set_size(call, type, name, GIB_BYTES(size_gib), error);
}

static bool copy_here(const struct rbd_call *call, enum resource_type source_type,
                      const char *source, enum resource_type type, const char *name,
                      guint64 size_gib, GError **error)
{
    struct moment moment;
    if (!rbd_take_moment(call, source_type, source, name, &moment, error))
        return false;
    bool ok = clone_moment(call, &moment, type, name, size_gib, error);
    return rbd_end_moment(call, &moment, ok, error) &&
           rbd_say_whole(call, type, name, GIB_BYTES(size_gib), error);
}

char *rbd_file(const struct backend *backend, const char *spec, const char *conf)
{
    g_auto(GStrv) parts = g_strsplit(spec, "@", 2);
    json_autoptr file = json_make("{s:s, s:s, s:s, s:s}", "driver", "rbd", "pool", backend->pool,
                                  "image", parts[0], "conf", conf);
    if (parts[1])
        json_object_set_new(file, "snapshot", json_string(parts[1]));
    if (*backend->namespace)
        json_object_set_new(file, "namespace", json_string(backend->namespace));
    if (*backend->user)
        json_object_set_new(file, "user", json_string(backend->user));
    return json_to_text(file);
}

const char *rbd_source_conf(const struct backend *backend)
{
    return backend->kind == BACKEND_RBD ? CHILD_TEXT_2 : CHILD_TEXT;
}

/* Between two pools, or two Cephs: qemu-img opens both. */
static bool convert(const struct rbd_call *call, const struct backend *from, const char *file,
                    guint64 bytes, const char *target, GError **error)
{
    g_autoptr(GPtrArray) argv = g_ptr_array_new_with_free_func(g_free);
    g_autofree char *said = NULL;
    g_autofree char *conf = rbd_conf_text(call->confs, call->backend, error);
    g_autofree char *other = conf ? rbd_conf_text(call->confs, from, error) : NULL;
    if (!other)
        return false;
    volume_user_words(argv, POOL_USER, getpid());
    image_tool_limits(argv);
    static const char *const words[] = {"qemu-img", "convert",         "-U", "-O", "raw",
                                        "-n",       "--target-is-zero"};
    for (guint i = 0; i < G_N_ELEMENTS(words); i++)
        g_ptr_array_add(argv, g_strdup(words[i]));
    g_ptr_array_add(argv, g_strdup_printf("json:{\"driver\":\"raw\",\"size\":%" G_GUINT64_FORMAT
                                          ",\"file\":%s}",
                                          bytes, file));
    g_ptr_array_add(argv, g_strdup_printf("json:{\"driver\":\"raw\",\"file\":%s}", target));
    g_ptr_array_add(argv, NULL);
    int code = volume_children_run(
        call->children, call->backend->uuid, call->from, (const char *const *)argv->pdata,
        (const char *const[]){conf, other, NULL}, call->more_ms, &said, error);
    if (code > 0)
        dir_qemu_failure_parse(said, error);
    if (code != 0)
        g_prefix_error(error, "%s: ", call->backend->name);
    return code == 0;
}

bool rbd_fill(struct volume_driver *driver, const struct rbd_call *call, enum resource_type type,
              const char *name, guint64 size_gib,
              bool (*fill)(struct volume_driver *driver, const char *target, void *data,
                           GError **error),
              void *data, GError **error)
{
    g_autofree char *image = rbd_image_name(type, name);
    g_autofree char *target = rbd_file(call->backend, image, CHILD_TEXT);
    g_autoptr(GError) local = NULL;
    if (!rbd_make_image(call, type, name, GIB_BYTES(size_gib), error))
        return false;
    if (fill(driver, target, data, &local))
        return rbd_say_whole(call, type, name, GIB_BYTES(size_gib), error);
    if (!fettle_error_is(local, TIMEOUT) && !fettle_error_is(local, KILLED))
        rbd_do(call, RBD("rm", "--no-progress", image), NULL);
    g_propagate_error(error, g_steal_pointer(&local));
    return false;
}

/* What is read to fill an image. */
struct filling {
    const struct rbd_call *call;
    const struct backend *from;
    enum resource_type source_type;
    const char *source; /* its name; or what qemu-img opens */
    guint64 bytes, size_gib;
};

static bool fill_from_image(struct volume_driver *driver, const char *target, void *data,
                            GError **error)
{
    const struct filling *filling = data;
    return convert(filling->call, filling->from, filling->source, filling->bytes, target, error);
}

static bool fill_from_file(struct volume_driver *driver, const char *target, void *data,
                           GError **error)
{
    const struct filling *filling = data;
    g_autofree char *conf = rbd_conf_text(filling->call->confs, filling->call->backend, error);
    const struct dir_outside outside = {filling->call->backend->uuid, target, conf};
    return conf &&
           dir_volumes_give(rbd_of(driver)->directories, filling->from, filling->source_type,
                            filling->source, &outside, filling->size_gib, error);
}

bool rbd_put(struct volume_driver *driver, const struct backend *from, const char *file,
             guint64 bytes, const struct backend *backend, enum resource_type type,
             const char *name, guint64 size_gib, GError **error)
{
    struct rbd_call call = rbd_call_at(driver, backend);
    bytes = MIN(SECTORS(bytes), GIB_BYTES(size_gib));
    if (backend->kind != BACKEND_RBD) {
        g_autofree char *conf = rbd_conf_text(call.confs, from, error);
        const struct dir_outside outside = {from->uuid, file, conf};
        return conf && dir_volumes_take(rbd_of(driver)->directories, &outside, backend, type, name,
                                        bytes, size_gib, error);
    }
    call.from = from->uuid;
    call.more_ms = size_gib * LIMIT_VOLUME_COPY_MS;
    struct filling filling = {.call = &call, .from = from, .source = file, .bytes = bytes};
    return rbd_fill(driver, &call, type, name, size_gib, fill_from_image, &filling, error);
}

/* To another back end, of either kind. */
static bool copy_elsewhere(struct volume_driver *driver, const struct backend *from,
                           enum resource_type source_type, const char *source,
                           const struct backend *backend, enum resource_type type, const char *name,
                           guint64 size_gib, GError **error)
{
    struct rbd_call there = rbd_call_at(driver, from);
    struct moment moment;
    guint64 bytes;
    if (!rbd_check_marker(driver, &there, error) ||
        !rbd_read_size(&there, source_type, source, &bytes, error) ||
        !rbd_take_moment(&there, source_type, source, name, &moment, error))
        return false;
    g_autofree char *file = rbd_file(from, moment.spec, rbd_source_conf(backend));
    bool ok = rbd_put(driver, from, file, bytes, backend, type, name, size_gib, error);
    return rbd_end_moment(&there, &moment, ok, error);
}

bool rbd_copy(struct volume_driver *driver, const struct backend *from,
              enum resource_type source_type, const char *source, const struct backend *backend,
              enum resource_type type, const char *name, guint64 size_gib, GError **error)
{
    struct rbd_call call = rbd_call_at(driver, backend);
    bool ok;
    if (backend->kind != BACKEND_RBD)
        return copy_elsewhere(driver, from, source_type, source, backend, type, name, size_gib,
                              error);
    if (!rbd_check_marker(driver, &call, error))
        return false;
    struct filling filling = {.call = &call,
                              .from = from,
                              .source_type = source_type,
                              .source = source,
                              .size_gib = size_gib};
    if (strcmp(from->uuid, backend->uuid) == 0)
        ok = copy_here(&call, source_type, source, type, name, size_gib, error);
    else if (from->kind == BACKEND_RBD)
        ok =
            copy_elsewhere(driver, from, source_type, source, backend, type, name, size_gib, error);
    else
        ok = rbd_fill(driver, &call, type, name, size_gib, fill_from_file, &filling, error);
    return rbd_or_full(driver, backend, ok, error);
}

/* --- changes, and looks --- */

static bool rbd_prepare(struct volume_driver *driver, const struct backend *backend,
                        enum resource_type type, const char *name, guint64 size_gib, GError **error)
{
    struct rbd_call call = rbd_call_at(driver, backend);
    bool ok = rbd_check_marker(driver, &call, error) &&
              rbd_make_image(&call, type, name, GIB_BYTES(size_gib), error);
    return rbd_or_full(driver, backend, ok, error);
}

static bool rbd_settle(struct volume_driver *driver, const struct backend *backend,
                       enum resource_type type, const char *name, guint64 size_gib, GError **error)
{
    struct rbd_call call = rbd_call_at(driver, backend);
    g_autofree char *image = rbd_image_name(type, name);
    bool open = false;
    if (!rbd_check_marker(driver, &call, error) || !read_open(&call, image, &open, error))
        return false;
    if (open)
        fettle_set_error(error, WRONG_STATE, "%s: %s is open still", backend->name, name);
    return !open && rbd_set_size(&call, type, name, GIB_BYTES(size_gib), error) &&
           (type == RESOURCE_VOLUME ||
            rbd_say_whole(&call, type, name, GIB_BYTES(size_gib), error));
}

/* It is refused where it would be the same size, or a smaller one. */
static bool rbd_grow(struct volume_driver *driver, const struct backend *backend, const char *name,
                     guint64 size_gib, GError **error)
{
    struct rbd_call call = rbd_call_at(driver, backend);
    g_autofree char *image = rbd_image_name(RESOURCE_VOLUME, name), *said = NULL;
    g_autofree char *size = g_strdup_printf("%" G_GUINT64_FORMAT "G", size_gib);
    guint64 bytes = 0;
    if (!rbd_check_marker(driver, &call, error) ||
        !rbd_read_size(&call, RESOURCE_VOLUME, name, &bytes, error))
        return false;
    if (bytes >= GIB_BYTES(size_gib))
        return true;
    int code = rbd_run(&call, RBD("resize", "--no-progress", "--size", size, image), &said, error);
    bool refused = code == EINVAL && rbd_read_size(&call, RESOURCE_VOLUME, name, &bytes, NULL) &&
                   bytes >= GIB_BYTES(size_gib);
    if (code > 0 && !refused)
        rbd_judge(&call, code, said, error);
    return rbd_or_full(driver, backend, code == 0 || refused, error);
}

static bool rbd_remove(struct volume_driver *driver, const struct backend *backend,
                       enum resource_type type, const char *name, GError **error)
{
    struct rbd_call call = rbd_call_at(driver, backend);
    g_autofree char *image = rbd_image_name(type, name), *said = NULL;
    const char *const *words = RBD("rm", "--no-progress", image);
    guint64 bytes = 0;
    if (!rbd_check_marker(driver, &call, error))
        return false;
    if (rbd_read_size(&call, type, name, &bytes, NULL))
        call.more_ms = bytes / GIB_BYTES((guint64)1) * REMOVE_MS;
    int code = rbd_run(&call, words, &said, error);
    if (code == ENOTEMPTY && rbd_do(&call, RBD("snap", "purge", "--no-progress", image), NULL)) {
        g_free(g_steal_pointer(&said));
        code = rbd_run(&call, words, &said, error);
    }
    if (code == ENOTEMPTY)
        fettle_set_error(error, WRONG_STATE, "%s: copies of %s still share its data", backend->name,
                         name);
    else if (code == EBUSY)
        fettle_set_error(error, WRONG_STATE, "%s: %s is open, or was half a minute ago",
                         backend->name, name);
    else if (code > 0 && code != ENOENT)
        rbd_judge(&call, code, said, error);
    return code == 0 || code == ENOENT;
}

static struct volume_data *rbd_look(struct volume_driver *driver, const struct backend *backend,
                                    enum resource_type type, const char *name, GError **error)
{
    struct rbd_call call = rbd_call_at(driver, backend);
    return rbd_check_marker(driver, &call, error) ? look_at(&call, type, name, error) : NULL;
}

/* Also if it has gone meanwhile. */
static bool find_one(const struct rbd_call *call, enum resource_type type, const char *name,
                     GPtrArray *found, GError **error)
{
    g_autoptr(GError) local = NULL;
    g_autofree char *image = rbd_image_name(type, name);
    struct volume_data *data = look_at(call, type, name, &local);
    bool gone = !data && fettle_error_is(local, UNKNOWN_ENTITY);
    if (data)
        g_ptr_array_add(found, data);
    else if (!gone)
        g_propagate_error(error, g_steal_pointer(&local));
    return gone || (data && read_open(call, image, &data->open, error));
}

static GPtrArray *rbd_find(struct volume_driver *driver, const struct backend *backend,
                           enum resource_type type, const char *uuid, GError **error)
{
    struct rbd_call call = rbd_call_at(driver, backend);
    json_autoptr names =
        rbd_check_marker(driver, &call, error) ? rbd_list_images(&call, error) : NULL;
    g_autoptr(GPtrArray) found = g_ptr_array_new_with_free_func(volume_data_free);
    bool ok = names != NULL;
    size_t i;
    json_t *item;
    json_array_foreach(names, i, item) {
        const char *name, *image = json_string_value(item);
        enum resource_type kind;
        if (ok && image && parse_image(image, &kind, &name) && kind == type &&
            g_str_has_prefix(name, uuid))
            ok = find_one(&call, type, name, found, error);
    }
    return ok ? g_steal_pointer(&found) : NULL;
}

/* Also what has no size: only the half of it is there. */
static GPtrArray *rbd_list(struct volume_driver *driver, const struct backend *backend,
                           GError **error)
{
    struct rbd_call call = rbd_call_at(driver, backend);
    json_autoptr images =
        rbd_check_marker(driver, &call, error) ? rbd_list_images(&call, error) : NULL;
    json_autoptr sizes = images ? rbd_list_sizes(&call, error) : NULL;
    g_autoptr(GPtrArray) list = g_ptr_array_new_with_free_func(volume_data_free);
    size_t i;
    json_t *item;
    json_array_foreach(images, i, item) {
        const char *image = json_string_value(item), *name;
        enum resource_type type;
        if (!image || !parse_image(image, &type, &name))
            continue;
        json_int_t size = json_integer_value(json_object_get(sizes, image));
        struct volume_data *data = g_new0(struct volume_data, 1);
        *data = (struct volume_data){
            .type = type, .name = g_strdup(name), .bytes = (guint64)MAX(size, 0)};
        g_ptr_array_add(list, data);
    }
    return sizes ? g_steal_pointer(&list) : NULL;
}

/* Ceph itself sees to it that all nodes mean one pool. */
static bool rbd_check(struct volume_driver *driver, const struct backend *backend,
                      struct volume_check *check, GError **error)
{
    guint64 room, total;
    struct rbd_call call = rbd_call_at(driver, backend);
    json_autoptr images =
        rbd_check_marker(driver, &call, error) ? rbd_list_images(&call, error) : NULL;
    return images && rbd_space(driver, backend, &room, &total, error);
}

static guint rbd_hanging(struct volume_driver *driver, const struct backend *backend)
{
    return volume_children_hanging(rbd_of(driver)->children, backend->uuid);
}

static const struct volume_driver_ops rbd_ops = {.open = rbd_open,
                                                 .space = rbd_space,
                                                 .create = rbd_create,
                                                 .prepare = rbd_prepare,
                                                 .settle = rbd_settle,
                                                 .copy = rbd_copy,
                                                 .back_up = rbd_back_up,
                                                 .restore = rbd_restore,
                                                 .upload = rbd_upload,
                                                 .measure = rbd_measure,
                                                 .download = rbd_download,
                                                 .grow = rbd_grow,
                                                 .remove = rbd_remove,
                                                 .look = rbd_look,
                                                 .find = rbd_find,
                                                 .list = rbd_list,
                                                 .check = rbd_check,
                                                 .transfer = rbd_transfer,
                                                 .transfer_state = dir_transfer_state,
                                                 .transfer_end = dir_transfer_end,
                                                 .hanging = rbd_hanging};

struct volume_driver *rbd_volumes_new(const char *program, struct volume_driver *directories,
                                      struct volume_children *children)
{
    struct rbd_volumes *rbd = g_new0(struct rbd_volumes, 1);
    rbd->driver.ops = &rbd_ops;
    rbd->program = program;
    rbd->directories = directories;
    rbd->children = children;
    rbd->confs = rbd_confs_new();
    return &rbd->driver;
}

void rbd_volumes_free(struct volume_driver *driver)
{
    if (!driver)
        return;
    rbd_confs_free(rbd_of(driver)->confs);
    g_free(rbd_of(driver)->cluster);
    g_free(driver);
}
