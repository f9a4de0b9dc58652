/* See resource.h. */
#include "core/config/resource.h"

#include <string.h>

struct kind_of_resource {
    const char *kind;
    enum task_kind task_kind;
    const struct record *record;
    const struct enum_words *statuses;
    size_t uuid, name, description, status, status_why, backend, host, data, project, size,
        created_us, updated_us;
};

#define RESOURCE(NAME, k, word)                                                                    \
    [RESOURCE_##NAME] = {.kind = #k,                                                               \
                         .task_kind = TASK_KIND_##k,                                               \
                         .record = &k##_record,                                                    \
                         .statuses = &k##_status_words,                                            \
                         .uuid = offsetof(struct k, uuid),                                         \
                         .name = offsetof(struct k, name),                                         \
                         .description = offsetof(struct k, description),                           \
                         .status = offsetof(struct k, status),                                     \
                         .status_why = offsetof(struct k, status_why),                             \
                         .backend = offsetof(struct k, backend),                                   \
                         .host = offsetof(struct k, host),                                         \
                         .data = offsetof(struct k, data),                                         \
                         .project = offsetof(struct k, project),                                   \
                         .size = offsetof(struct k, size),                                         \
                         .created_us = offsetof(struct k, created_us),                             \
                         .updated_us = offsetof(struct k, updated_us)},
static const struct kind_of_resource kinds[] = {
#include "proto/storage/resources.def"
};

#define RESOURCE(NAME, k, word) ", " #k
const char resource_kinds_listed[] =
#include "proto/storage/resources.def"
    ;

const char *resource_kind(enum resource_type type)
{
    return kinds[type].kind;
}

const char *resource_article(enum resource_type type)
{
    return type == RESOURCE_IMAGE ? "an" : "a";
}

enum task_kind resource_task_kind(enum resource_type type)
{
    return kinds[type].task_kind;
}

int resource_type_named(const char *kind)
{
    for (guint i = 0; i < G_N_ELEMENTS(kinds); i++)
        if (strcmp(kinds[i].kind, kind) == 0)
            return (int)i;
    return -1;
}

enum resource_type resource_type_of(const char *kind)
{
    int type = resource_type_named(kind);
    g_assert(type >= 0);
    return (enum resource_type)type;
}

enum resource_type resource_type_of_task(enum task_kind kind)
{
    for (guint i = 0; i < G_N_ELEMENTS(kinds); i++)
        if (kinds[i].task_kind == kind)
            return (enum resource_type)i;
    g_assert_not_reached();
}

/* Where a record says which volume it is of; NULL: it says none. */
static char **volume_at(enum resource_type type, const void *record)
{
    switch (type) {
    case RESOURCE_SNAPSHOT:
        return &((struct snapshot *)record)->volume;
    case RESOURCE_BACKUP:
        return &((struct backup *)record)->volume;
    case RESOURCE_VOLUME:
    case RESOURCE_IMAGE:
    default:
        return NULL;
    }
}

static const char *text_at(const void *record, size_t offset)
{
    return G_STRUCT_MEMBER(const char *, record, offset);
}

#define GIB ((guint64)1024 * MIB(1))

/* What only files have. */
static void read_file(struct resource *resource, const void *record)
{
    const struct backup *backup = record;
    const struct image *image = record;
    if (resource->type == RESOURCE_BACKUP) {
        resource->bytes = backup->bytes;
        resource->sum = backup->sum;
        return;
    }
    resource->bytes = image->size;
    resource->sum = image->os_hash_value;
    resource->virtual_size = image->virtual_size;
    resource->checksum = image->checksum;
    resource->disk_format = image->disk_format;
    resource->size = (image->virtual_size + GIB - 1) / GIB;
}

static void write_file(const struct resource *resource, void *record)
{
    struct backup *backup = record;
    struct image *image = record;
    if (resource->type == RESOURCE_BACKUP) {
        backup->bytes = resource->bytes;
        text_set(&backup->snapshot, resource->snapshot);
        text_set(&backup->sum, resource->sum);
        return;
    }
    image->size = resource->bytes;
    image->virtual_size = image->status == IMAGE_QUEUED ? 0 : resource->virtual_size;
    image->disk_format = resource->disk_format;
    text_set(&image->os_hash_value, resource->sum);
    text_set(&image->checksum, resource->checksum);
}

struct resource resource_read(enum resource_type type, const void *record)
{
    const struct kind_of_resource *kind = &kinds[type];
    if (!record)
        return (struct resource){.type = type,
                                 .uuid = "",
                                 .name = "",
                                 .description = "",
                                 .status = "gone",
                                 .status_why = "",
                                 .backend = "",
                                 .host = "",
                                 .data = "",
                                 .volume = "",
                                 .project = "",
                                 .snapshot = "",
                                 .volume_type = "",
                                 .sum = "",
                                 .checksum = ""};
    char *const *volume = volume_at(type, record);
    struct resource resource = {
        .type = type,
        .exists = true,
        .uuid = text_at(record, kind->uuid),
        .name = text_at(record, kind->name),
        .description = text_at(record, kind->description),
        .status = enum_word(kind->statuses, G_STRUCT_MEMBER(int, record, kind->status)),
        .status_why = text_at(record, kind->status_why),
        .backend = text_at(record, kind->backend),
        .host = text_at(record, kind->host),
        .data = text_at(record, kind->data),
        .volume = volume ? *volume : "",
        .project = text_at(record, kind->project),
        .snapshot = type == RESOURCE_BACKUP ? ((const struct backup *)record)->snapshot : "",
        .volume_type = type == RESOURCE_VOLUME ? ((const struct volume *)record)->volume_type : "",
        .size = G_STRUCT_MEMBER(guint64, record, kind->size),
        .created_us = G_STRUCT_MEMBER(guint64, record, kind->created_us),
        .updated_us = G_STRUCT_MEMBER(guint64, record, kind->updated_us),
        .sum = "",
        .checksum = ""};
    if (resource_is_file(type))
        read_file(&resource, record);
    return resource;
}

struct resource resource_of(const struct config *config, enum resource_type type, const char *uuid)
{
    struct resource resource =
        resource_read(type, config_get(config, kinds[type].kind, uuid, NULL));
    resource.uuid = uuid;
    return resource;
}

struct resource resource_of_row(const struct config *config, const struct worker *row)
{
    return resource_of(config, row->resource_type, row->resource_id);
}

struct resource resource_partner(const struct config *config, const struct worker *row)
{
    return resource_of(config, row->partner_type, row->partner_id);
}

struct resource resource_made(const struct config *config, const struct worker *row,
                              const struct work_row *work)
{
    return work && work->makes_partners ? resource_partner(config, row)
                                        : resource_of_row(config, row);
}

bool resource_is_moved(const struct worker *row)
{
    return row->source && row->source->resource_type == row->resource_type &&
           strcmp(row->source->resource_id, row->resource_id) == 0;
}

const char *resource_read_from(const struct config *config, const struct worker *row)
{
    struct resource read =
        row->source ? resource_of(config, row->source->resource_type, row->source->resource_id)
                    : resource_of_row(config, row);
    return strcmp(read.backend, row->backend) != 0 ? read.backend : "";
}

bool resource_backends_meet(const struct config *config, const char *one, const char *other)
{
    const struct backend *first = config_get(config, "backend", one, NULL);
    const struct backend *second = config_get(config, "backend", other, NULL);
    for (guint i = 0; first && second && i < first->nodes->len; i++)
        if (g_ptr_array_find_with_equal_func(second->nodes, first->nodes->pdata[i], g_str_equal,
                                             NULL))
            return true;
    return false;
}

struct resource resource_find(const struct config *config, enum resource_type type,
                              const char *name_or_uuid, GError **error)
{
    return resource_read(type, config_find(config, kinds[type].kind, name_or_uuid, error));
}

const char *resource_name(const struct resource *resource)
{
    return *resource->name ? resource->name : resource->uuid;
}

const char *resource_ready_status(enum resource_type type)
{
    return task_final_words[type == RESOURCE_IMAGE ? TASK_FINAL_ACTIVE : TASK_FINAL_AVAILABLE];
}

const char *resource_empty_status(enum resource_type type)
{
    return task_final_words[type == RESOURCE_IMAGE ? TASK_FINAL_QUEUED : TASK_FINAL_ERROR];
}

const char *resource_error_status(enum resource_type type)
{
    return task_final_words[type == RESOURCE_IMAGE ? TASK_FINAL_KILLED : TASK_FINAL_ERROR];
}

bool resource_is_ready(const struct resource *resource)
{
    return strcmp(resource->status, resource_ready_status(resource->type)) == 0;
}

bool resource_is_file(enum resource_type type)
{
    return type == RESOURCE_BACKUP || type == RESOURCE_IMAGE;
}

guint64 resource_full_bytes(const struct resource *resource)
{
    return resource_is_file(resource->type) ? resource->bytes : resource->size * GIB;
}

bool resource_is_full(const struct resource *resource, guint64 bytes)
{
    guint64 full = resource_full_bytes(resource);
    return resource_is_file(resource->type) ? full && bytes == full : bytes >= full;
}

char *resource_share_text(const struct resource *resource, guint64 bytes)
{
    if (resource_is_file(resource->type))
        return g_strdup_printf("%" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT " bytes", bytes,
                               resource->bytes);
    return g_strdup_printf("%" G_GUINT64_FORMAT " MiB of %" G_GUINT64_FORMAT " GiB", bytes / MIB(1),
                           resource->size);
}

void *resource_copy(const struct config *config, enum resource_type type, const char *uuid)
{
    const void *record = config_get(config, kinds[type].kind, uuid, NULL);
    return record ? record_copy(kinds[type].record, record) : NULL;
}

void resource_free(enum resource_type type, void *record)
{
    record_free(kinds[type].record, record);
}

struct change *resource_put(const struct config *config, const struct resource *resource)
{
    const struct kind_of_resource *kind = &kinds[resource->type];
    const struct {
        size_t offset;
        const char *text;
    } texts[] = {{kind->uuid, resource->uuid},
                 {kind->name, resource->name},
                 {kind->description, resource->description},
                 {kind->status_why, resource->status_why},
                 {kind->backend, resource->backend},
                 {kind->host, resource->host},
                 {kind->data, resource->data},
                 {kind->project, resource->project}};
    const void *old = config_get(config, kind->kind, resource->uuid, NULL);
    void *record = old ? record_copy(kind->record, old) : record_new(kind->record);
    int status = enum_parse(kind->statuses, resource->status);
    g_assert(status >= 0);
    for (guint i = 0; i < G_N_ELEMENTS(texts); i++)
        text_set(&G_STRUCT_MEMBER(char *, record, texts[i].offset), texts[i].text);
    if (volume_at(resource->type, record))
        text_set(volume_at(resource->type, record), resource->volume);
    if (resource->type == RESOURCE_VOLUME)
        text_set(&((struct volume *)record)->volume_type, resource->volume_type);
    G_STRUCT_MEMBER(int, record, kind->status) = status;
    G_STRUCT_MEMBER(guint64, record, kind->size) = resource->size;
    if (resource_is_file(resource->type))
        write_file(resource, record);
    G_STRUCT_MEMBER(guint64, record, kind->created_us) = resource->created_us;
    struct change *change =
        config_put(config, kind->kind, resource->uuid, record_to_json(kind->record, record));
    record_free(kind->record, record);
    return change;
}
