/* See backup.h. */
#include "io/sqlite/backup.h"

#include <string.h>

#include "io/files.h"

#define MAGIC "fettle-backup "
#define SUM_CHARS 64

static void unref_bytes(void *data)
{
    g_bytes_unref(data);
}

struct store_backup *store_backup_new(void)
{
    struct store_backup *backup = g_new0(struct store_backup, 1);
    backup->header = backup_header_new();
    backup->parts = g_ptr_array_new_with_free_func(unref_bytes);
    return backup;
}

void store_backup_free(struct store_backup *backup)
{
    if (backup == NULL)
        return;
    backup_header_free(backup->header);
    g_ptr_array_unref(backup->parts);
    g_free(backup);
}

static char *sum_of(const void *data, size_t len)
{
    return g_compute_checksum_for_data(G_CHECKSUM_SHA256, data, len);
}

void backup_add(struct store_backup *backup, const char *name, GBytes *data)
{
    size_t len = 0;
    const void *bytes = g_bytes_get_data(data, &len);
    struct backup_part *part = backup_part_new();
    g_free(part->name);
    part->name = g_strdup(name);
    part->bytes = len;
    g_free(part->sum);
    part->sum = sum_of(bytes, len);
    g_ptr_array_add(backup->header->parts, part);
    g_ptr_array_add(backup->parts, data);
}

GBytes *backup_part(const struct store_backup *backup, const char *name)
{
    for (guint i = 0; i < backup->parts->len; i++) {
        const struct backup_part *part = backup->header->parts->pdata[i];
        if (strcmp(part->name, name) == 0)
            return backup->parts->pdata[i];
    }
    return NULL;
}

bool backup_write(const struct store_backup *backup, const char *path, GError **error)
{
    json_autoptr json = backup_header_to_json(backup->header);
    g_autofree char *header = json_to_text(json);
    g_autofree char *sum = sum_of(header, strlen(header));
    g_autoptr(GByteArray) all = g_byte_array_new();
    g_autofree char *head = g_strdup_printf(MAGIC "%d\n%s %s\n", BACKUP_VERSION, sum, header);
    g_byte_array_append(all, (const guint8 *)head, (guint)strlen(head));
    for (guint i = 0; i < backup->parts->len; i++) {
        size_t len = 0;
        const void *bytes = g_bytes_get_data(backup->parts->pdata[i], &len);
        if (all->len + len > LIMIT_BACKUP_BYTES) {
            fettle_set_error(error, LIMIT, "the backup would be larger than %zu MiB",
                             LIMIT_BACKUP_BYTES / MIB(1));
            return false;
        }
        g_byte_array_append(all, bytes, (guint)len);
    }
    return files_write_typed(path, (const char *)all->data, all->len, error);
}

/* --- reading --- */

struct reading {
    const char *path;
    const char *at;
    size_t left;
};

static bool corrupt(const struct reading *reading, const char *what, GError **error)
{
    fettle_set_error(error, CORRUPT, "%s is damaged: %s; nothing was changed, take another backup",
                     reading->path, what);
    return false;
}

/* The line up to the next end of one, without it; NULL: there is none within `max`. */
static char *take_line(struct reading *reading, size_t max)
{
    const char *end = memchr(reading->at, '\n', MIN(reading->left, max));
    if (end == NULL)
        return NULL;
    char *line = g_strndup(reading->at, (gsize)(end - reading->at));
    reading->left -= (size_t)(end - reading->at) + 1;
    reading->at = end + 1;
    return line;
}

static bool read_magic(struct reading *reading, GError **error)
{
    g_autofree char *line = take_line(reading, strlen(MAGIC) + 12);
    guint64 version = 0;
    if (line == NULL || !g_str_has_prefix(line, MAGIC) ||
        !g_ascii_string_to_unsigned(line + strlen(MAGIC), 10, 1, G_MAXUINT32, &version, NULL)) {
        fettle_set_error(error, WRONG_INPUT,
                         "%s is no backup of Fettle: it does not begin with \"" MAGIC "1\"",
                         reading->path);
        return false;
    }
    if (version == BACKUP_VERSION)
        return true;
    fettle_set_error(error, WRONG_INPUT,
                     "%s is a backup of version %" G_GUINT64_FORMAT
                     ", and this Fettle reads version %d: restore it with the newer Fettle that "
                     "wrote it",
                     reading->path, version, BACKUP_VERSION);
    return false;
}

static struct backup_header *read_header(struct reading *reading, GError **error)
{
    g_autofree char *line = take_line(reading, LIMIT_BACKUP_HEADER_BYTES);
    if (line == NULL || strlen(line) <= SUM_CHARS || line[SUM_CHARS] != ' ') {
        corrupt(reading, "its header is cut off", error);
        return NULL;
    }
    const char *text = line + SUM_CHARS + 1;
    g_autofree char *sum = sum_of(text, strlen(text));
    if (strncmp(sum, line, SUM_CHARS) != 0) {
        corrupt(reading, "its header does not match its checksum", error);
        return NULL;
    }
    json_autoptr json = json_parse_limited(text, strlen(text), LIMIT_BACKUP_HEADER_BYTES, error);
    struct backup_header *header =
        json != NULL ? backup_header_parse(json, RECORD_KEEP, error) : NULL;
    if (header == NULL)
        g_prefix_error(error, "%s: its header: ", reading->path);
    return header;
}

/* The header is sound by now, so its lengths are. */
static bool check_length(const struct reading *reading, const struct backup_header *header,
                         GError **error)
{
    guint64 wanted = 0;
    for (guint i = 0; i < header->parts->len; i++) {
        guint64 bytes = ((const struct backup_part *)header->parts->pdata[i])->bytes;
        wanted += MIN(bytes, LIMIT_BACKUP_BYTES);
    }
    if (wanted == reading->left)
        return true;
    g_autofree char *what =
        reading->left < wanted
            ? g_strdup_printf("it is cut off, %" G_GUINT64_FORMAT " bytes are missing",
                              wanted - reading->left)
            : g_strdup_printf("it has %" G_GUINT64_FORMAT " bytes behind its end",
                              reading->left - wanted);
    return corrupt(reading, what, error);
}

static bool read_parts(struct reading *reading, struct store_backup *backup, GError **error)
{
    for (guint i = 0; i < backup->header->parts->len; i++) {
        const struct backup_part *part = backup->header->parts->pdata[i];
        g_autofree char *sum = sum_of(reading->at, part->bytes);
        if (strcmp(sum, part->sum) != 0) {
            g_autofree char *what =
                g_strdup_printf("its part %s does not match its checksum", part->name);
            return corrupt(reading, what, error);
        }
        g_ptr_array_add(backup->parts, g_bytes_new(reading->at, part->bytes));
        reading->at += part->bytes;
        reading->left -= part->bytes;
    }
    return true;
}

struct store_backup *backup_read(const char *path, GError **error)
{
    size_t len = 0;
    g_autofree char *text = files_read_path(path, LIMIT_BACKUP_BYTES, &len, error);
    if (text == NULL)
        return NULL;
    struct reading reading = {path, text, len};
    if (!read_magic(&reading, error))
        return NULL;
    struct backup_header *header = read_header(&reading, error);
    if (header == NULL)
        return NULL;
    g_autoptr(store_backup_t) backup = store_backup_new();
    backup_header_free(backup->header);
    backup->header = header;
    if (!check_length(&reading, header, error) || !read_parts(&reading, backup, error))
        return NULL;
    return g_steal_pointer(&backup);
}
