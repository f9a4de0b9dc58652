/* Volumes in a directory, by children; see dir_volumes.h. */
#include "backend/volume/dir_volumes.h"

#include <string.h>

#include "backend/volume/dir_call.h"
#include "backend/volume/dir_settle.h"
#include "backend/volume/dir_text.h"
#include "backend/volume/dir_transfer.h"
#include "backend/volume/volume_children.h"
#include "base/limits.h"

/* Whose the back ends are, since they were opened: by UUID. */
struct owner_name {
    char *uuid, *name;
};

struct dir_volumes {
    struct volume_driver driver; /* first */
    char *program, *folder;
    guint limit_ms, greet_ms, stall_ms;
    struct volume_children *children; /* others': shared with them */
    struct owner_name cluster;
};

#define GREET_MS 10000u /* for the client of a transfer, to show its key */

static struct dir_volumes *dir_of(struct volume_driver *driver)
{
    return (struct dir_volumes *)driver;
}

/* One call: of what is said here the verb needs some. */
struct asked {
    const char *verb;
    enum resource_type type, source_type;
    const char *name, *source; /* NULL: none */
    guint64 number, more_ms;
    const struct backend *from;        /* of the source, if that is another one; or NULL */
    const char *word;                  /* a sum, a format; NULL: none */
    const struct dir_outside *outside; /* NULL: nothing is */
};

static char *name_of(enum resource_type type, const char *name)
{
    return name ? g_strdup_printf("%s/%s", dir_folder(type), name) : g_strdup("");
}

/* Of the source; NULL: this one. */
static const struct backend *other_place(const struct backend *backend, const struct asked *asked)
{
    return asked->from && strcmp(asked->from->uuid, backend->uuid) != 0 ? asked->from : NULL;
}

/* Its words, ended by NULL. */
static GPtrArray *words_of(const struct dir_volumes *dir, const struct backend *backend,
                           const struct asked *asked)
{
    GPtrArray *words = g_ptr_array_new_with_free_func(g_free);
    const struct backend *from = other_place(backend, asked);
    const char *const before[] = {dir->program, DIR_CALL_OPTION, asked->verb, backend->path,
                                  backend->uuid};
    for (guint i = 0; i < G_N_ELEMENTS(before); i++)
        g_ptr_array_add(words, g_strdup(before[i]));
    g_ptr_array_add(words, g_strdup(dir->cluster.uuid ? dir->cluster.uuid : "-"));
    g_ptr_array_add(words, g_strdup(dir->cluster.name ? dir->cluster.name : "-"));
    g_ptr_array_add(words, name_of(asked->type, asked->name));
    g_ptr_array_add(words, g_strdup_printf("%" G_GUINT64_FORMAT, asked->number));
    g_ptr_array_add(words, name_of(asked->source_type, asked->source));
    g_ptr_array_add(words, g_strdup(from ? from->path : ""));
    g_ptr_array_add(words, g_strdup(from ? from->uuid : ""));
    g_ptr_array_add(words, g_strdup(asked->word ? asked->word : ""));
    g_ptr_array_add(words, g_strdup(asked->outside ? asked->outside->file : ""));
    g_ptr_array_add(words, NULL);
    return words;
}

/* What the child said; NULL with the error. */
static char *call(struct volume_driver *driver, const struct backend *backend,
                  const struct asked *asked, GError **error)
{
    struct dir_volumes *dir = dir_of(driver);
    g_autoptr(GPtrArray) words = words_of(dir, backend, asked);
    const struct backend *from = other_place(backend, asked);
    const char *other = asked->outside ? asked->outside->backend : from ? from->uuid : NULL;
    const char *const texts[] = {asked->outside ? asked->outside->conf : NULL, NULL};
    g_autofree char *said = NULL;
    int code =
        volume_children_run(dir->children, backend->uuid, other, (const char *const *)words->pdata,
                            texts, asked->more_ms, &said, error);
    if (code > 0)
        dir_failure_parse(code, said, error);
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
    return said && dir_space_parse(said, ret_free, ret_total);
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
static bool dir_settle_data(struct volume_driver *driver, const struct backend *backend,
                            enum resource_type type, const char *name, guint64 size_gib,
                            GError **error)
{
    const struct asked asked = {.verb = "fill-end",
                                .type = type,
                                .name = name,
                                .number = size_gib * 1024 * MIB(1),
                                .more_ms = size_gib * LIMIT_VOLUME_COPY_MS};
    return call_done(driver, backend, &asked, error);
}

static bool dir_copy(struct volume_driver *driver, const struct backend *from,
                     enum resource_type source_type, const char *source,
                     const struct backend *backend, enum resource_type type, const char *name,
                     guint64 size_gib, GError **error)
{
    const struct asked asked = {.verb = "copy",
                                .type = type,
                                .source_type = source_type,
                                .name = name,
                                .source = source,
                                .number = size_gib * 1024 * MIB(1),
                                .more_ms = size_gib * LIMIT_VOLUME_COPY_MS,
                                .from = from};
    return call_done(driver, backend, &asked, error);
}

/* The call that becomes qemu-img, and the one that sees to what it has made. */
static bool pack(struct volume_driver *driver, const struct backend *backend, struct asked *asked,
                 guint64 *ret_bytes, char **ret_sum, GError **error)
{
    char sum[DIR_SUM_CHARS + 1] = "";
    asked->verb = "pack";
    if (!call_done(driver, backend, asked, error))
        return false;
    asked->verb = "pack-end";
    g_autofree char *said = call(driver, backend, asked, error);
    if (!said)
        return false;
    if (!dir_sum_parse(said, ret_bytes, sum)) {
        fettle_set_error(error, STORAGE, "%s: the end of %s said nothing", backend->name,
                         asked->name);
        return false;
    }
    *ret_sum = g_strdup(sum);
    return true;
}

static bool dir_back_up(struct volume_driver *driver, const struct backend *from,
                        enum resource_type source_type, const char *source,
                        const struct backend *backend, const char *name, guint64 size_gib,
                        guint64 *ret_bytes, char **ret_sum, GError **error)
{
    struct asked asked = {.type = RESOURCE_BACKUP,
                          .source_type = source_type,
                          .name = name,
                          .source = source,
                          .number = size_gib * 1024 * MIB(1),
                          .more_ms = size_gib * LIMIT_VOLUME_BACKUP_MS,
                          .from = from};
    return pack(driver, backend, &asked, ret_bytes, ret_sum, error);
}

bool dir_volumes_pack(struct volume_driver *driver, const struct dir_outside *outside,
                      const struct backend *backend, const char *name, guint64 size_gib,
                      guint64 *ret_bytes, char **ret_sum, GError **error)
{
    struct asked asked = {.type = RESOURCE_BACKUP,
                          .name = name,
                          .number = size_gib * 1024 * MIB(1),
                          .more_ms = size_gib * LIMIT_VOLUME_BACKUP_MS,
                          .outside = outside};
    return pack(driver, backend, &asked, ret_bytes, ret_sum, error);
}

static struct asked unpack_of(const struct backup *backup, guint64 size_gib)
{
    return (struct asked){.verb = "unpack",
                          .type = RESOURCE_VOLUME,
                          .source_type = RESOURCE_BACKUP,
                          .source = backup->data,
                          .number = size_gib * 1024 * MIB(1),
                          .more_ms = size_gib * LIMIT_VOLUME_BACKUP_MS,
                          .word = backup->sum};
}

static bool dir_restore(struct volume_driver *driver, const struct backend *from,
                        const struct backup *backup, const struct backend *backend,
                        const char *name, guint64 size_gib, GError **error)
{
    struct asked asked = unpack_of(backup, size_gib);
    asked.name = name;
    asked.from = from;
    if (!call_done(driver, backend, &asked, error))
        return false;
    asked.verb = "unpack-end";
    return call_done(driver, backend, &asked, error);
}

bool dir_volumes_unpack(struct volume_driver *driver, const struct backend *from,
                        const struct backup *backup, const struct dir_outside *outside,
                        guint64 size_gib, GError **error)
{
    struct asked asked = unpack_of(backup, size_gib);
    asked.outside = outside;
    return call_done(driver, from, &asked, error);
}

bool dir_volumes_take(struct volume_driver *driver, const struct dir_outside *outside,
                      const struct backend *backend, enum resource_type type, const char *name,
                      guint64 bytes, guint64 size_gib, GError **error)
{
    struct asked asked = {.verb = "take",
                          .type = type,
                          .name = name,
                          .number = bytes,
                          .more_ms = size_gib * LIMIT_VOLUME_COPY_MS,
                          .outside = outside};
    if (!call_done(driver, backend, &asked, error))
        return false;
    asked.verb = "unpack-end";
    asked.number = size_gib * 1024 * MIB(1);
    return call_done(driver, backend, &asked, error);
}

bool dir_volumes_give(struct volume_driver *driver, const struct backend *from,
                      enum resource_type source_type, const char *source,
                      const struct dir_outside *outside, guint64 size_gib, GError **error)
{
    struct asked asked = {.verb = "give",
                          .source_type = source_type,
                          .source = source,
                          .number = size_gib * 1024 * MIB(1),
                          .more_ms = size_gib * LIMIT_VOLUME_COPY_MS,
                          .outside = outside};
    if (!call_done(driver, from, &asked, error))
        return false;
    asked.verb = "unused";
    return call_done(driver, from, &asked, error);
}

static bool measure(struct volume_driver *driver, const struct backend *backend,
                    struct asked *asked, struct image_sums *ret_sums, GError **error)
{
    asked->verb = "measure";
    g_autofree char *said = call(driver, backend, asked, error);
    return said && dir_sums_parse(backend, asked->name, said, ret_sums, error);
}

static struct asked upload_of(const char *name, enum disk_format format, guint64 size_gib)
{
    return (struct asked){.verb = "upload",
                          .type = RESOURCE_IMAGE,
                          .name = name,
                          .number = size_gib * 1024 * MIB(1),
                          .more_ms = size_gib * LIMIT_VOLUME_BACKUP_MS,
                          .word = enum_word(&disk_format_words, (int)format)};
}

static bool dir_upload(struct volume_driver *driver, const struct backend *from, const char *source,
                       const struct backend *backend, const char *name, enum disk_format format,
                       guint64 size_gib, struct image_sums *ret_sums, GError **error)
{
    struct asked asked = upload_of(name, format, size_gib);
    asked.source_type = RESOURCE_VOLUME;
    asked.source = source;
    asked.from = from;
    return call_done(driver, backend, &asked, error) &&
           measure(driver, backend, &asked, ret_sums, error);
}

bool dir_volumes_upload(struct volume_driver *driver, const struct dir_outside *outside,
                        const struct backend *backend, const char *name, enum disk_format format,
                        guint64 size_gib, struct image_sums *ret_sums, GError **error)
{
    struct asked asked = upload_of(name, format, size_gib);
    asked.outside = outside;
    if (!call_done(driver, backend, &asked, error))
        return false;
    asked.outside = NULL;
    return measure(driver, backend, &asked, ret_sums, error);
}

/* Reading what is said to be so long; without a length nobody knows before how long it takes. */
guint64 dir_measure_ms(guint64 bytes)
{
    return MAX(LIMIT_IMAGE_MEASURE_MS, bytes / (1024 * MIB(1)) * LIMIT_VOLUME_BACKUP_MS);
}

static bool dir_measure(struct volume_driver *driver, const struct backend *backend,
                        const char *name, enum disk_format format, const struct image_sums *said,
                        struct image_sums *ret_sums, GError **error)
{
    g_autofree char *word = dir_settle_text(format, said);
    const struct asked asked = {.verb = "settle",
                                .type = RESOURCE_IMAGE,
                                .name = name,
                                .number = said->size,
                                .more_ms = dir_measure_ms(said->size),
                                .word = word};
    g_autofree char *output = call(driver, backend, &asked, error);
    return output && dir_sums_parse(backend, name, output, ret_sums, error);
}

static struct asked convert_of(const struct image *image, guint64 size_gib)
{
    return (struct asked){.verb = "convert",
                          .type = RESOURCE_VOLUME,
                          .source_type = RESOURCE_IMAGE,
                          .source = image->data,
                          .number = size_gib * 1024 * MIB(1),
                          .more_ms = size_gib * LIMIT_VOLUME_BACKUP_MS};
}

static bool dir_download(struct volume_driver *driver, const struct backend *from,
                         const struct image *image, const struct backend *backend, const char *name,
                         guint64 size_gib, GError **error)
{
    if (image->disk_format == FORMAT_RAW)
        return dir_copy(driver, from, RESOURCE_IMAGE, image->data, backend, RESOURCE_VOLUME, name,
                        size_gib, error);
    struct asked asked = convert_of(image, size_gib);
    asked.name = name;
    asked.from = from;
    if (!call_done(driver, backend, &asked, error))
        return false;
    asked.verb = "unpack-end";
    return call_done(driver, backend, &asked, error);
}

bool dir_volumes_download(struct volume_driver *driver, const struct backend *from,
                          const struct image *image, const struct dir_outside *outside,
                          guint64 size_gib, GError **error)
{
    if (image->disk_format == FORMAT_RAW)
        return dir_volumes_give(driver, from, RESOURCE_IMAGE, image->data, outside, size_gib,
                                error);
    struct asked asked = convert_of(image, size_gib);
    asked.outside = outside;
    return call_done(driver, from, &asked, error);
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

static struct volume_data *dir_look(struct volume_driver *driver, const struct backend *backend,
                                    enum resource_type type, const char *name, GError **error)
{
    const struct asked asked = {.verb = "look", .type = type, .name = name};
    g_autofree char *said = call(driver, backend, &asked, error);
    g_autoptr(GPtrArray) list = said ? dir_list_parse(said) : NULL;
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
    return said ? dir_list_parse(said) : NULL;
}

static GPtrArray *dir_list(struct volume_driver *driver, const struct backend *backend,
                           GError **error)
{
    g_autofree char *said = call(driver, backend, &(struct asked){.verb = "list"}, error);
    return said ? dir_list_parse(said) : NULL;
}

static bool dir_check(struct volume_driver *driver, const struct backend *backend,
                      struct volume_check *check, GError **error)
{
    const struct asked asked = {.verb = check->place ? "check-try" : "check-hold",
                                .number = check->place ? check->place : check->nodes - 1,
                                .word = check->token};
    g_autofree char *said = call(driver, backend, &asked, error);
    if (!said)
        return false;
    dir_check_parse(said, check);
    g_autofree char *tool = backend->backups ? g_find_program_in_path("qemu-img") : NULL;
    if (backend->backups && !tool)
        g_ptr_array_add(check->problems,
                        g_strdup("there is no qemu-img, which makes backups; install qemu-utils"));
    return true;
}

static struct volume_transfer *serve(struct volume_driver *driver, const struct backend *backend,
                                     const char *const *words, const char *conf,
                                     const char *address, GError **error)
{
    struct dir_volumes *dir = dir_of(driver);
    const struct dir_transfer_call call = {.children = dir->children,
                                           .folder = dir->folder,
                                           .backend = backend->uuid,
                                           .words = words,
                                           .conf = conf,
                                           .limit_ms = dir->limit_ms,
                                           .greet_ms = dir->greet_ms,
                                           .stall_ms = dir->stall_ms};
    struct volume_transfer *transfer = dir_transfer_start(&call, address, error);
    if (!transfer)
        g_prefix_error(error, "%s: ", backend->name);
    return transfer;
}

struct volume_transfer *dir_volumes_serve(struct volume_driver *driver,
                                          const struct backend *backend, const char *const *words,
                                          const char *conf, const char *address, GError **error)
{
    g_autoptr(GPtrArray) all = g_ptr_array_new();
    while (*words)
        g_ptr_array_add(all, (char *)*words++);
    g_ptr_array_add(all, address ? dir_of(driver)->folder : (char *)"");
    g_ptr_array_add(all, NULL);
    return serve(driver, backend, (const char *const *)all->pdata, conf, address, error);
}

static struct volume_transfer *dir_transfer(struct volume_driver *driver,
                                            const struct backend *backend, const char *name,
                                            guint64 bytes, const char *address, GError **error)
{
    struct dir_volumes *dir = dir_of(driver);
    const struct asked asked = {.verb = bytes ? "receive" : "send",
                                .type = RESOURCE_IMAGE,
                                .name = name,
                                .number = bytes,
                                .word = address ? dir->folder : NULL};
    g_autoptr(GPtrArray) words = words_of(dir, backend, &asked);
    return serve(driver, backend, (const char *const *)words->pdata, NULL, address, error);
}

static guint dir_hanging(struct volume_driver *driver, const struct backend *backend)
{
    return volume_children_hanging(dir_of(driver)->children, backend->uuid);
}

static const struct volume_driver_ops dir_ops = {.open = dir_open,
                                                 .space = dir_space,
                                                 .create = dir_create,
                                                 .prepare = dir_prepare,
                                                 .settle = dir_settle_data,
                                                 .copy = dir_copy,
                                                 .back_up = dir_back_up,
                                                 .restore = dir_restore,
                                                 .upload = dir_upload,
                                                 .measure = dir_measure,
                                                 .download = dir_download,
                                                 .grow = dir_grow,
                                                 .remove = dir_remove,
                                                 .look = dir_look,
                                                 .find = dir_find,
                                                 .list = dir_list,
                                                 .check = dir_check,
                                                 .transfer = dir_transfer,
                                                 .transfer_state = dir_transfer_state,
                                                 .transfer_end = dir_transfer_end,
                                                 .hanging = dir_hanging};

void dir_volumes_set_patience(struct volume_driver *driver, guint greet_ms, guint stall_ms)
{
    dir_of(driver)->greet_ms = greet_ms;
    dir_of(driver)->stall_ms = stall_ms;
}

void dir_volumes_clear(const struct volume_driver *driver)
{
    dir_transfer_clear(((const struct dir_volumes *)driver)->folder);
}

struct volume_driver *dir_volumes_new(const char *program, const char *folder,
                                      struct volume_children *children, guint limit_ms)
{
    struct dir_volumes *dir = g_new0(struct dir_volumes, 1);
    dir->driver.ops = &dir_ops;
    dir->program = g_strdup(program);
    dir->folder = g_strdup(folder);
    dir->limit_ms = limit_ms;
    dir_volumes_set_patience(&dir->driver, GREET_MS, LIMIT_TRANSFER_STALL_MS);
    dir->children = children;
    return &dir->driver;
}

void dir_volumes_free(struct volume_driver *driver)
{
    if (!driver)
        return;
    struct dir_volumes *dir = dir_of(driver);
    g_free(dir->program);
    g_free(dir->folder);
    g_free(dir->cluster.uuid);
    g_free(dir->cluster.name);
    g_free(dir);
}
