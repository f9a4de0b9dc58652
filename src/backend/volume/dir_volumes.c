/* Volumes in a directory, by children; see dir_volumes.h. */
#include "backend/volume/dir_volumes.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "backend/tool.h"
#include "backend/volume/dir_call.h"
#include "backend/volume/volume_children.h"
#include "base/limits.h"

/* Whose the back ends are, since they were opened: by UUID. */
struct owner_name {
    char *uuid, *name;
};

struct dir_volumes {
    struct volume_driver driver; /* first */
    char *program;
    struct volume_children *children;
    struct owner_name cluster;
};

static struct dir_volumes *dir_of(struct volume_driver *driver)
{
    return (struct dir_volumes *)driver;
}

#define QEMU_IMG "qemu-img: "

/* What the child said went wrong. */
static void judge(int code, const char *said, GError **error)
{
    const char *line = strchr(said, '\n');
    if (g_str_has_prefix(said, QEMU_IMG)) {
        g_autofree char *words = tool_last_words(said);
        bool full = strstr(words, g_strerror(ENOSPC)) || strstr(words, g_strerror(EDQUOT));
        g_set_error(error, FETTLE_ERROR, full ? FETTLE_ERROR_NO_RESOURCES : FETTLE_ERROR_STORAGE,
                    QEMU_IMG "%s", words);
        return;
    }
    if (code != 1 || !line) {
        g_autofree char *words = tool_last_words(said);
        fettle_set_error(error, STORAGE, "a call at it ended with %d: %s", code, words);
        return;
    }
    g_autofree char *name = g_strndup(said, (gsize)(line - said));
    g_autofree char *message = g_strchomp(g_strdup(line + 1));
    g_set_error_literal(error, FETTLE_ERROR, (gint)fettle_error_from_name(name), message);
}

/* One call: of what is said here the verb needs some. */
struct asked {
    const char *verb;
    enum resource_type type, source_type;
    const char *name, *source; /* NULL: none */
    guint64 number, more_ms;
    const struct backend *from; /* of the source, if that is another one; or NULL */
    const char *sum;            /* NULL: none */
};

static char *name_of(enum resource_type type, const char *name)
{
    return name ? g_strdup_printf("%s/%s", dir_folder(type), name) : g_strdup("");
}

/* What the child said; NULL with the error. */
static char *call(struct volume_driver *driver, const struct backend *backend,
                  const struct asked *asked, GError **error)
{
    struct dir_volumes *dir = dir_of(driver);
    g_autofree char *digits = g_strdup_printf("%" G_GUINT64_FORMAT, asked->number);
    g_autofree char *name = name_of(asked->type, asked->name);
    g_autofree char *source = name_of(asked->source_type, asked->source);
    /* Another back end is opened while this call waits for its turn. */
    g_autofree char *cluster = g_strdup(dir->cluster.uuid ? dir->cluster.uuid : "-");
    g_autofree char *cluster_name = g_strdup(dir->cluster.name ? dir->cluster.name : "-");
    bool elsewhere = asked->from && strcmp(asked->from->uuid, backend->uuid) != 0;
    const char *from_path = elsewhere ? asked->from->path : "";
    const char *from_uuid = elsewhere ? asked->from->uuid : "";
    const char *sum = asked->sum ? asked->sum : "";
    const char *argv[] = {dir->program, DIR_CALL_OPTION, asked->verb, backend->path, backend->uuid,
                          cluster,      cluster_name,    name,        digits,        source,
                          from_path,    from_uuid,       sum,         NULL};
    g_autofree char *said = NULL;
    int code = volume_children_run(dir->children, backend->uuid, elsewhere ? from_uuid : NULL, argv,
                                   asked->more_ms, &said, error);
    if (code > 0)
        judge(code, said, error);
    if (code != 0)
        g_prefix_error(error, "%s: ", backend->name);
    return code == 0 ? g_steal_pointer(&said) : NULL;
}

static bool call_done(struct volume_driver *driver, const struct backend *backend,
                      const struct asked *asked, GError **error)
{
    g_autofree char *said = call(driver, backend, asked, error);
    return said != NULL;
}

static bool dir_open(struct volume_driver *driver, const struct backend *backend,
                     const struct cluster *cluster, bool make, GError **error)
{
    struct dir_volumes *dir = dir_of(driver);
    g_free(dir->cluster.uuid);
    g_free(dir->cluster.name);
    dir->cluster = (struct owner_name){g_strdup(cluster->uuid), g_strdup(cluster->name)};
    return call_done(driver, backend, &(struct asked){.verb = "open", .number = make}, error);
}

static bool dir_space(struct volume_driver *driver, const struct backend *backend,
                      guint64 *ret_free, guint64 *ret_total, GError **error)
{
    g_autofree char *said = call(driver, backend, &(struct asked){.verb = "space"}, error);
    return said &&
           sscanf(said, "%" G_GUINT64_FORMAT " %" G_GUINT64_FORMAT, ret_free, ret_total) == 2;
}

static bool dir_create(struct volume_driver *driver, const struct backend *backend,
                       enum resource_type type, const char *name, guint64 size_gib, GError **error)
{
    const struct asked asked = {
        .verb = "create", .type = type, .name = name, .number = size_gib * 1024 * MIB(1)};
    return call_done(driver, backend, &asked, error);
}

static bool dir_prepare(struct volume_driver *driver, const struct backend *backend,
                        enum resource_type type, const char *name, guint64 size_gib, GError **error)
{
    const struct asked asked = {
        .verb = "prepare", .type = type, .name = name, .number = size_gib * 1024 * MIB(1)};
    return call_done(driver, backend, &asked, error);
}

/* Much of it may not be on the disk yet. */
static bool dir_settle(struct volume_driver *driver, const struct backend *backend,
                       enum resource_type type, const char *name, guint64 size_gib, GError **error)
{
    const struct asked asked = {.verb = "settle",
                                .type = type,
                                .name = name,
                                .number = size_gib * 1024 * MIB(1),
                                .more_ms = size_gib * LIMIT_VOLUME_COPY_MS};
    return call_done(driver, backend, &asked, error);
}

static bool dir_copy(struct volume_driver *driver, const struct backend *backend,
                     enum resource_type source_type, const char *source, enum resource_type type,
                     const char *name, guint64 size_gib, GError **error)
{
    const struct asked asked = {.verb = "copy",
                                .type = type,
                                .source_type = source_type,
                                .name = name,
                                .source = source,
                                .number = size_gib * 1024 * MIB(1),
                                .more_ms = size_gib * LIMIT_VOLUME_COPY_MS};
    return call_done(driver, backend, &asked, error);
}

/* The call that becomes qemu-img, and the one that sees to what it has made. */
static bool dir_back_up(struct volume_driver *driver, const struct backend *from,
                        enum resource_type source_type, const char *source,
                        const struct backend *backend, const char *name, guint64 size_gib,
                        guint64 *ret_bytes, char **ret_sum, GError **error)
{
    char sum[129] = "";
    struct asked asked = {.verb = "pack",
                          .type = RESOURCE_BACKUP,
                          .source_type = source_type,
                          .name = name,
                          .source = source,
                          .number = size_gib * 1024 * MIB(1),
                          .more_ms = size_gib * LIMIT_VOLUME_BACKUP_MS,
                          .from = from};
    if (!call_done(driver, backend, &asked, error))
        return false;
    asked.verb = "pack-end";
    g_autofree char *said = call(driver, backend, &asked, error);
    if (!said)
        return false;
    if (sscanf(said, "%" G_GUINT64_FORMAT " %128[0-9a-f]", ret_bytes, sum) != 2) {
        fettle_set_error(error, STORAGE, "%s: the end of %s said nothing", backend->name, name);
        return false;
    }
    *ret_sum = g_strdup(sum);
    return true;
}

static bool dir_restore(struct volume_driver *driver, const struct backend *from,
                        const struct backup *backup, const struct backend *backend,
                        const char *name, guint64 size_gib, GError **error)
{
    struct asked asked = {.verb = "unpack",
                          .type = RESOURCE_VOLUME,
                          .source_type = RESOURCE_BACKUP,
                          .name = name,
                          .source = backup->data,
                          .number = size_gib * 1024 * MIB(1),
                          .more_ms = size_gib * LIMIT_VOLUME_BACKUP_MS,
                          .from = from,
                          .sum = backup->sum};
    if (!call_done(driver, backend, &asked, error))
        return false;
    asked.verb = "unpack-end";
    return call_done(driver, backend, &asked, error);
}

static bool dir_grow(struct volume_driver *driver, const struct backend *backend, const char *name,
                     guint64 size_gib, GError **error)
{
    const struct asked asked = {
        .verb = "grow", .type = RESOURCE_VOLUME, .name = name, .number = size_gib * 1024 * MIB(1)};
    return call_done(driver, backend, &asked, error);
}

static bool dir_remove(struct volume_driver *driver, const struct backend *backend,
                       enum resource_type type, const char *name, GError **error)
{
    const struct asked asked = {.verb = "remove", .type = type, .name = name};
    return call_done(driver, backend, &asked, error);
}

/* WHOLE OPEN BYTES FOLDER/NAME, each on a line. */
static GPtrArray *read_list(const char *said)
{
    GPtrArray *list = g_ptr_array_new_with_free_func(volume_data_free);
    g_auto(GStrv) lines = g_strsplit(said, "\n", -1);
    for (guint i = 0; lines[i]; i++) {
        int whole, open;
        guint64 bytes;
        int before = 0;
        enum resource_type type;
        const char *name;
        if (sscanf(lines[i], "%d %d %" G_GUINT64_FORMAT " %n", &whole, &open, &bytes, &before) !=
                3 ||
            !dir_name_parse(lines[i] + before, &type, &name))
            continue;
        struct volume_data *data = g_new0(struct volume_data, 1);
        *data = (struct volume_data){type, g_strdup(name), bytes, whole == 1, open == 1};
        g_ptr_array_add(list, data);
    }
    return list;
}

static struct volume_data *dir_look(struct volume_driver *driver, const struct backend *backend,
                                    enum resource_type type, const char *name, GError **error)
{
    const struct asked asked = {.verb = "look", .type = type, .name = name};
    g_autofree char *said = call(driver, backend, &asked, error);
    g_autoptr(GPtrArray) list = said ? read_list(said) : NULL;
    if (list && list->len == 1)
        return g_ptr_array_steal_index(list, 0);
    if (list)
        fettle_set_error(error, STORAGE, "%s: a look at %s said nothing", backend->name, name);
    return NULL;
}

static GPtrArray *dir_find(struct volume_driver *driver, const struct backend *backend,
                           enum resource_type type, const char *uuid, GError **error)
{
    const struct asked asked = {.verb = "find", .type = type, .name = uuid};
    g_autofree char *said = call(driver, backend, &asked, error);
    return said ? read_list(said) : NULL;
}

static GPtrArray *dir_list(struct volume_driver *driver, const struct backend *backend,
                           GError **error)
{
    g_autofree char *said = call(driver, backend, &(struct asked){.verb = "list"}, error);
    return said ? read_list(said) : NULL;
}

static guint dir_hanging(struct volume_driver *driver, const struct backend *backend)
{
    return volume_children_hanging(dir_of(driver)->children, backend->uuid);
}

static const struct volume_driver_ops dir_ops = {.open = dir_open,
                                                 .space = dir_space,
                                                 .create = dir_create,
                                                 .prepare = dir_prepare,
                                                 .settle = dir_settle,
                                                 .copy = dir_copy,
                                                 .back_up = dir_back_up,
                                                 .restore = dir_restore,
                                                 .grow = dir_grow,
                                                 .remove = dir_remove,
                                                 .look = dir_look,
                                                 .find = dir_find,
                                                 .list = dir_list,
                                                 .hanging = dir_hanging};

struct volume_driver *dir_volumes_new(const char *program, guint limit_ms)
{
    struct dir_volumes *dir = g_new0(struct dir_volumes, 1);
    dir->driver.ops = &dir_ops;
    dir->program = g_strdup(program);
    dir->children = volume_children_new(limit_ms);
    return &dir->driver;
}

void dir_volumes_free(struct volume_driver *driver)
{
    if (!driver)
        return;
    struct dir_volumes *dir = dir_of(driver);
    volume_children_free(dir->children);
    g_free(dir->program);
    g_free(dir->cluster.uuid);
    g_free(dir->cluster.name);
    g_free(dir);
}
