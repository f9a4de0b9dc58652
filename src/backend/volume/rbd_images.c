/*
 * Backups of what is in a pool, and images that are kept in one; see rbd_volumes.h. An image is as
 * many sectors as its bytes need, and is read through `rbd export` by a child of ours
 * (rbd_export.h).
 */
#include <stdio.h>
#include <string.h>

#include "backend/volume/dir_settle.h"
#include "backend/volume/dir_text.h"
#include "backend/volume/dir_transfer.h"
#include "backend/volume/dir_volumes.h"
#include "backend/volume/rbd_export.h"
#include "backend/volume/rbd_private.h"

static bool refuse(const struct backend *backend, const char *why, GError **error)
{
    fettle_set_error(error, WRONG_STATE, "%s: a pool of a Ceph %s", backend->name, why);
    return false;
}

/* What is read to fill an image. */
struct filling {
    const struct rbd_call *call;
    const struct backend *from;
    const struct backup *backup;
    const struct image *image;
    guint64 size_gib;
};

static bool fill_from_backup(struct volume_driver *driver, const char *target, void *data,
                             GError **error)
{
    const struct filling *filling = data;
    g_autofree char *conf = rbd_conf_text(filling->call->confs, filling->call->backend, error);
    const struct dir_outside outside = {filling->call->backend->uuid, target, conf};
    return conf && dir_volumes_unpack(rbd_of(driver)->directories, filling->from, filling->backup,
                                      &outside, filling->size_gib, error);
}

static bool fill_from_download(struct volume_driver *driver, const char *target, void *data,
                               GError **error)
{
    const struct filling *filling = data;
    g_autofree char *conf = rbd_conf_text(filling->call->confs, filling->call->backend, error);
    const struct dir_outside outside = {filling->call->backend->uuid, target, conf};
    return conf && dir_volumes_download(rbd_of(driver)->directories, filling->from, filling->image,
                                        &outside, filling->size_gib, error);
}

/* --- backups --- */

bool rbd_back_up(struct volume_driver *driver, const struct backend *from,
                 enum resource_type source_type, const char *source, const struct backend *backend,
                 const char *name, guint64 size_gib, guint64 *ret_bytes, char **ret_sum,
                 GError **error)
{
    struct rbd_call call = rbd_call_at(driver, from);
    struct moment moment;
    if (backend->kind == BACKEND_RBD)
        return refuse(backend, "keeps no backups", error);
    if (!rbd_check_marker(driver, &call, error) ||
        !rbd_take_moment(&call, source_type, source, name, &moment, error))
        return false;
    g_autofree char *file = rbd_file(from, moment.spec, CHILD_TEXT);
    g_autofree char *conf = rbd_conf_text(call.confs, from, error);
    const struct dir_outside outside = {from->uuid, file, conf};
    bool ok = conf && dir_volumes_pack(rbd_of(driver)->directories, &outside, backend, name,
                                       size_gib, ret_bytes, ret_sum, error);
    return rbd_end_moment(&call, &moment, ok, error);
}

bool rbd_restore(struct volume_driver *driver, const struct backend *from,
                 const struct backup *backup, const struct backend *backend, const char *name,
                 guint64 size_gib, GError **error)
{
    struct rbd_call call = rbd_call_at(driver, backend);
    struct filling filling = {.call = &call, .from = from, .backup = backup, .size_gib = size_gib};
    bool ok =
        rbd_check_marker(driver, &call, error) &&
        rbd_fill(driver, &call, RESOURCE_VOLUME, name, size_gib, fill_from_backup, &filling, error);
    return rbd_or_full(driver, backend, ok, error);
}

/* --- images: read --- */

/* What a child says that reads one through; the words are its own, up to the program that it has
 * read for it. */
static char *read_through(struct volume_driver *driver, const struct backend *backend,
                          const char *verb, const char *name, enum disk_format format,
                          guint64 bytes, guint64 more_ms, GError **error)
{
    const struct rbd_call call = rbd_call_at(driver, backend);
    g_autofree char *image = rbd_image_name(RESOURCE_IMAGE, name), *said = NULL;
    g_autofree char *length = g_strdup_printf("%" G_GUINT64_FORMAT, bytes);
    g_autofree char *conf = rbd_conf_text(call.confs, backend, error);
    g_autoptr(GPtrArray) words = g_ptr_array_new_with_free_func(g_free);
    const char *const own[] = {rbd_of(driver)->program, RBD_EXPORT_OPTION, verb,
                               enum_word(&disk_format_words, (int)format), length};
    if (!conf)
        return NULL;
    for (guint i = 0; i < G_N_ELEMENTS(own); i++)
        g_ptr_array_add(words, g_strdup(own[i]));
    rbd_words(&call, RBD("export", "--no-progress", image, "-"), words);
    int code =
        volume_children_run(call.children, backend->uuid, NULL, (const char *const *)words->pdata,
                            (const char *const[]){conf, NULL}, more_ms, &said, error);
    if (code > 0)
        dir_failure_parse(code, said, error);
    if (code != 0)
        g_prefix_error(error, "%s: image %s ", backend->name, name);
    return code == 0 ? g_steal_pointer(&said) : NULL;
}

/* Cut, so that nothing is behind it, and then whole sectors: QEMU 7.2 ends by an assertion where an
 * image has others. */
static bool settle_size(const struct rbd_call *call, const char *name, guint64 said,
                        guint64 *ret_bytes, GError **error)
{
    if (!rbd_read_size(call, RESOURCE_IMAGE, name, ret_bytes, error))
        return false;
    if (*ret_bytes < said) {
        dir_settle_short(said, *ret_bytes, error);
        return false;
    }
    if (said)
        *ret_bytes = said;
    return rbd_set_size(call, RESOURCE_IMAGE, name, *ret_bytes, error) &&
           rbd_set_size(call, RESOURCE_IMAGE, name, SECTORS(*ret_bytes), error);
}

bool rbd_measure(struct volume_driver *driver, const struct backend *backend, const char *name,
                 enum disk_format format, const struct image_sums *said,
                 struct image_sums *ret_sums, GError **error)
{
    const struct rbd_call call = rbd_call_at(driver, backend);
    guint64 bytes = 0;
    if (!rbd_check_marker(driver, &call, error) ||
        !settle_size(&call, name, said->size, &bytes, error))
        return false;
    g_autofree char *output =
        read_through(driver, backend, "measure", name, format, bytes, dir_measure_ms(bytes), error);
    return output && dir_sums_parse(backend, name, output, ret_sums, error) &&
           dir_settle_fits(said, ret_sums->checksum, ret_sums->os_hash_value, error) &&
           rbd_say_whole(&call, RESOURCE_IMAGE, name, ret_sums->size, error);
}

/* A qcow2 image: looked at each time, as whoever can write to the pool is to have no other file
 * read. */
static bool convert_image(struct volume_driver *driver, const struct backend *from,
                          const struct image *image, const struct backend *backend,
                          const char *name, guint64 size_gib, GError **error)
{
    const struct rbd_call call = rbd_call_at(driver, from);
    g_autofree char *spec = rbd_image_name(RESOURCE_IMAGE, image->data);
    g_autofree char *file = rbd_file(from, spec, rbd_source_conf(backend));
    g_autofree char *disk =
        g_strdup_printf("{\"driver\":\"qcow2\",\"backing\":null,\"file\":%s}", file);
    guint64 bytes = 0;
    if (!rbd_check_marker(driver, &call, error) ||
        !rbd_read_size(&call, RESOURCE_IMAGE, image->data, &bytes, error))
        return false;
    g_autofree char *said =
        read_through(driver, from, "header", image->data, image->disk_format, bytes, 0, error);
    if (!said)
        return false;
    bytes = g_ascii_strtoull(said, NULL, 10);
    if (bytes <= GIB_BYTES(size_gib))
        return rbd_put(driver, from, disk, bytes, backend, RESOURCE_VOLUME, name, size_gib, error);
    fettle_set_error(error, CORRUPT, "%s: image %s has a disk of %" G_GUINT64_FORMAT " bytes",
                     from->name, image->data, bytes);
    return false;
}

bool rbd_download(struct volume_driver *driver, const struct backend *from,
                  const struct image *image, const struct backend *backend, const char *name,
                  guint64 size_gib, GError **error)
{
    struct rbd_call call = rbd_call_at(driver, backend);
    struct filling filling = {.call = &call, .from = from, .image = image, .size_gib = size_gib};
    if (backend->kind == BACKEND_RBD && !rbd_check_marker(driver, &call, error))
        return false;
    bool ok;
    if (from->kind != BACKEND_RBD)
        ok = rbd_fill(driver, &call, RESOURCE_VOLUME, name, size_gib, fill_from_download, &filling,
                      error);
    else if (image->disk_format == FORMAT_RAW)
        ok = rbd_copy(driver, from, RESOURCE_IMAGE, image->data, backend, RESOURCE_VOLUME, name,
                      size_gib, error);
    else
        ok = convert_image(driver, from, image, backend, name, size_gib, error);
    return backend->kind == BACKEND_RBD ? rbd_or_full(driver, backend, ok, error) : ok;
}

/* --- images: made --- */

static bool upload_out(struct volume_driver *driver, const struct backend *from, const char *source,
                       const struct backend *backend, const char *name, enum disk_format format,
                       guint64 size_gib, struct image_sums *ret_sums, GError **error)
{
    struct rbd_call call = rbd_call_at(driver, from);
    struct moment moment;
    if (!rbd_check_marker(driver, &call, error) ||
        !rbd_take_moment(&call, RESOURCE_VOLUME, source, name, &moment, error))
        return false;
    g_autofree char *file = rbd_file(from, moment.spec, CHILD_TEXT);
    g_autofree char *conf = rbd_conf_text(call.confs, from, error);
    const struct dir_outside outside = {from->uuid, file, conf};
    bool ok = conf && dir_volumes_upload(rbd_of(driver)->directories, &outside, backend, name,
                                         format, size_gib, ret_sums, error);
    return rbd_end_moment(&call, &moment, ok, error);
}

bool rbd_upload(struct volume_driver *driver, const struct backend *from, const char *source,
                const struct backend *backend, const char *name, enum disk_format format,
                guint64 size_gib, struct image_sums *ret_sums, GError **error)
{
    if (backend->kind != BACKEND_RBD)
        return upload_out(driver, from, source, backend, name, format, size_gib, ret_sums, error);
    if (format != FORMAT_RAW)
        return refuse(backend, "has raw images of its volumes: ask for --disk-format raw", error);
    return rbd_copy(driver, from, RESOURCE_VOLUME, source, backend, RESOURCE_IMAGE, name, size_gib,
                    error) &&
           rbd_measure(driver, backend, name, format, &(struct image_sums){0}, ret_sums, error);
}

struct volume_transfer *rbd_transfer(struct volume_driver *driver, const struct backend *backend,
                                     const char *name, guint64 bytes, const char *address,
                                     GError **error)
{
    const struct rbd_call call = rbd_call_at(driver, backend);
    guint64 room = SECTORS(bytes);
    g_autofree char *image = rbd_image_name(RESOURCE_IMAGE, name);
    g_autofree char *file = rbd_file(backend, image, TRANSFER_CONF);
    g_autofree char *conf = rbd_conf_text(call.confs, backend, error);
    if (!conf || !rbd_check_marker(driver, &call, error) ||
        !(bytes ? rbd_make_image(&call, RESOURCE_IMAGE, name, room, error)
                : rbd_read_size(&call, RESOURCE_IMAGE, name, &room, error)))
        return NULL;
    const char *const words[] = {rbd_of(driver)->program, RBD_EXPORT_OPTION,
                                 bytes ? "receive" : "send", file, NULL};
    return dir_volumes_serve(rbd_of(driver)->directories, backend, words, conf, address, error);
}
