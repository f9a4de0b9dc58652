/*
 * Finding and judging sources. See image_source.h.
 */
#include "backend/storage/image_source.h"

#include "backend/storage/qcow2.h"
#include "base/limits.h"
#include "proto/source_name.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void layer_free(void *data)
{
    struct source_layer *layer = data;
    g_free(layer->path);
    g_free(layer->data_path);
    g_free(layer);
}

void image_source_free(struct image_source *source)
{
    if (source == NULL)
        return;
    g_free(source->name);
    g_ptr_array_unref(source->layers);
    g_free(source);
}

const struct source_layer *image_source_top(const struct image_source *source)
{
    return source->layers->pdata[0];
}

static char *source_path(const struct images *images, const char *os_type, GError **error)
{
    if (os_type[0] == '\0' || os_type[0] == '.' || strchr(os_type, '/') != NULL) {
        fettle_set_error(error, WRONG_INPUT,
                         "image \"%s\": a name without slashes that begins with no dot is needed",
                         os_type);
        return NULL;
    }
    for (guint i = 0; source_endings[i] != NULL; i++) {
        g_autofree char *path =
            g_strdup_printf("%s/%s%s", images->sources, os_type, source_endings[i]);
        if (g_file_test(path, G_FILE_TEST_IS_REGULAR))
            return g_steal_pointer(&path);
    }
    fettle_set_error(error, UNKNOWN_ENTITY, "image \"%s\" is not in %s", os_type, images->sources);
    return NULL;
}

/* Whether it can be told: no other name is asked for (source_path()) or fits into a report. */
static bool can_be_told(const char *folder, const char *name)
{
    if (name[0] == '.' || strlen(name) > LIMIT_SOURCE_CHARS || !g_utf8_validate(name, -1, NULL))
        return false;
    g_autofree char *path = g_build_filename(folder, name, NULL);
    return g_file_test(path, G_FILE_TEST_IS_REGULAR);
}

GPtrArray *image_source_names(const char *folder)
{
    g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    const char *name;
    while (dir != NULL && (name = g_dir_read_name(dir)) != NULL) {
        if (!can_be_told(folder, name))
            continue;
        if (names->len >= LIMIT_SOURCES)
            return NULL;
        g_ptr_array_add(names, g_strdup(name));
    }
    return dir != NULL ? g_steal_pointer(&names) : NULL;
}

/* First bytes and size of a file; what the name ends with decides nothing here. */
static guint8 *read_start(const char *path, gsize *ret_len, guint64 *ret_size, GError **error)
{
    g_autofree guint8 *bytes = g_malloc(LIMIT_QCOW2_HEADER_BYTES);
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t len = -1;
    if (fd >= 0 && fstat(fd, &status) == 0)
        len = pread(fd, bytes, LIMIT_QCOW2_HEADER_BYTES, 0);
    int failure = errno;
    if (fd >= 0)
        close(fd);
    errno = failure;
    if (len < 0) {
        images_fail("read", path, error);
        return NULL;
    }
    *ret_len = (gsize)len;
    *ret_size = (guint64)status.st_size;
    return g_steal_pointer(&bytes);
}

/* --- files that an image refers to --- */

/* QEMU takes a name with a colon before its first slash for a protocol: nbd://, json:, ssh:. */
static bool is_protocol(const char *name)
{
    return name[strcspn(name, ":/")] == ':';
}

static bool is_below(const char *path, const char *folder)
{
    size_t len = strlen(folder);
    return strncmp(path, folder, len) == 0 && path[len] == '/';
}

/* Absolute path, without symbolic links, of a file that an image refers to. */
static char *resolve_reference(const struct images *images, const struct image_source *source,
                               const char *from, const char *kind, const char *name, GError **error)
{
    g_autofree char *folder = g_path_get_dirname(from);
    g_autofree char *joined =
        name[0] == '/' ? g_strdup(name) : g_build_filename(folder, name, NULL);
    char *home = realpath(images->sources, NULL);
    char *real = is_protocol(name) ? NULL : realpath(joined, NULL);
    g_autofree char *lexical = g_canonicalize_filename(joined, "/");
    char *result = NULL;
    bool inside = home != NULL && !is_protocol(name) &&
                  (real != NULL ? is_below(real, home)
                                : is_below(lexical, home) || is_below(lexical, images->sources));
    if (!inside)
        fettle_set_error(error, WRONG_INPUT, "image \"%s\": its %s \"%s\" is outside of %s",
                         source->name, kind, name, images->sources);
    else if (real == NULL || !g_file_test(real, G_FILE_TEST_IS_REGULAR))
        fettle_set_error(error, UNKNOWN_ENTITY, "image \"%s\": its %s \"%s\" is not in %s",
                         source->name, kind, name, images->sources);
    else
        result = g_strdup(real);
    free(home);
    free(real);
    return result;
}

/* --- the chain --- */

static struct source_layer *layer_add(struct image_source *source, const char *path, guint64 bytes,
                                      enum disk_format format)
{
    struct source_layer *layer = g_new0(struct source_layer, 1);
    layer->path = g_strdup(path);
    layer->bytes = bytes;
    layer->format = format;
    g_ptr_array_add(source->layers, layer);
    return layer;
}

/* Adds a qcow2 layer; `*ret_next` is the file that it rests on, NULL if none. */
static bool add_qcow2(const struct images *images, struct image_source *source, const char *path,
                      const guint8 *bytes, gsize len, char **ret_next, char **ret_next_format,
                      GError **error)
{
    struct qcow2_header header = {0};
    if (!qcow2_parse(bytes, len, &header, error)) {
        g_autofree char *name = g_path_get_basename(path);
        g_prefix_error(error, "image \"%s\" ", name);
        return false;
    }
    struct source_layer *layer = layer_add(source, path, header.size, FORMAT_QCOW2);
    bool ok = true;
    if (header.data_file != NULL) {
        layer->data_path =
            resolve_reference(images, source, path, "external data file", header.data_file, error);
        ok = layer->data_path != NULL;
    }
    if (ok && header.backing != NULL) {
        *ret_next = resolve_reference(images, source, path, "backing file", header.backing, error);
        *ret_next_format = g_steal_pointer(&header.backing_format);
        ok = *ret_next != NULL;
    }
    qcow2_header_clear(&header);
    return ok;
}

/* "raw" and "qcow2" are believed; a file of which nothing is said is judged by its name and first
 * bytes. */
static bool layer_format(const struct image_source *source, const char *path, const char *claimed,
                         const guint8 *bytes, gsize len, enum disk_format *ret_format,
                         GError **error)
{
    int word = claimed != NULL ? enum_parse(&disk_format_words, claimed) : -1;
    if (claimed != NULL && word < 0) {
        fettle_set_error(error, WRONG_INPUT,
                         "image \"%s\": its backing file %s has the format %s; raw and qcow2 are "
                         "possible",
                         source->name, path, claimed);
        return false;
    }
    bool magic = !g_str_has_suffix(path, ".raw") && qcow2_has_magic(bytes, len);
    if (word < 0 && !magic && g_str_has_suffix(path, ".qcow2"))
        word = FORMAT_QCOW2; /* which then says what is wrong with it */
    *ret_format = word >= 0 ? (enum disk_format)word : magic ? FORMAT_QCOW2 : FORMAT_RAW;
    return true;
}

static bool add_layer(const struct images *images, struct image_source *source, const char *path,
                      const char *claimed, char **ret_next, char **ret_next_format, GError **error)
{
    gsize len;
    guint64 size;
    enum disk_format format;
    g_autofree guint8 *bytes = read_start(path, &len, &size, error);
    if (bytes == NULL || !layer_format(source, path, claimed, bytes, len, &format, error))
        return false;
    if (format == FORMAT_QCOW2)
        return add_qcow2(images, source, path, bytes, len, ret_next, ret_next_format, error);
    layer_add(source, path, size, FORMAT_RAW);
    return true;
}

static bool add_layers(const struct images *images, struct image_source *source, char *path,
                       GError **error)
{
    g_autofree char *at = path;
    g_autofree char *format = NULL;
    while (at != NULL) {
        char *next = NULL, *next_format = NULL;
        if (source->layers->len == LIMIT_IMAGE_LAYERS) {
            fettle_set_error(error, LIMIT,
                             "image \"%s\" rests on more than %d others; flatten it with `qemu-img "
                             "convert`",
                             source->name, LIMIT_IMAGE_LAYERS - 1);
            return false;
        }
        bool ok = add_layer(images, source, at, format, &next, &next_format, error);
        g_free(at);
        g_free(format);
        at = next;
        format = next_format;
        if (!ok)
            return false;
    }
    return true;
}

struct image_source *image_source_open(const struct images *images, const char *os_type,
                                       GError **error)
{
    char *path = source_path(images, os_type, error);
    if (path == NULL)
        return NULL;
    g_autoptr(image_source_t) source = g_new0(struct image_source, 1);
    source->name = g_strdup(os_type);
    source->layers = g_ptr_array_new_with_free_func(layer_free);
    return add_layers(images, source, path, error) ? g_steal_pointer(&source) : NULL;
}

/* --- for QEMU --- */

static json_t *file_node(const char *path)
{
    return json_make("{s:s, s:s}", "driver", "file", "filename", path);
}

static json_t *layer_node(const struct image_source *source, guint from)
{
    const struct source_layer *layer = source->layers->pdata[from];
    json_t *node =
        json_make("{s:s, s:o}", "driver", enum_word(&disk_format_words, (int)layer->format), "file",
                  file_node(layer->path));
    if (layer->data_path != NULL)
        json_object_set_new(node, "data-file", file_node(layer->data_path));
    if (layer->format == FORMAT_QCOW2)
        json_object_set_new(node, "backing",
                            from + 1 < source->layers->len ? layer_node(source, from + 1)
                                                           : json_null());
    return node;
}

char *image_source_argument(const struct image_source *source, guint from)
{
    json_autoptr node = layer_node(source, from);
    g_autofree char *text = json_to_text(node);
    return g_strconcat("json:", text, NULL);
}
