/*
 * Configurations that have only some instances and what belongs to them, as a job's copy does, or
 * some kinds. See model.h.
 */
#include "core/config/attachments.h"
#include "core/config/model_private.h"

#include <string.h>

/* --- what belongs to an instance --- */

static const char *instance_of_instance(const void *value)
{
    return ((const struct instance *)value)->uuid;
}

static const char *instance_of_replica(const void *value)
{
    return ((const struct replica *)value)->instance;
}

static const char *instance_of_tag(const void *value)
{
    const struct tag *tag = value;
    return tag->kind == TAG_INSTANCE ? tag->object : NULL;
}

static const char *instance_of_removed(const void *value)
{
    return ((const struct removed *)value)->uuid;
}

static const char *instance_of_fault(const void *value)
{
    const struct fault *fault = value;
    return strcmp(fault->subject_kind, "instance") == 0 ? fault->subject : NULL;
}

static const char *instance_of_stuck(const void *value)
{
    const struct stuck *stuck = value;
    return strcmp(stuck->subject_kind, "instance") == 0 ? stuck->subject : NULL;
}

/* Who names it, or its instance, is given it (view.c). */
static const char *instance_of_volume(const void *value)
{
    const struct attachment *attachment = attachment_of(value);
    return attachment ? attachment->instance : "";
}

/* Of each kind that proto/objects.def calls JOB_NAMED its function. */
#define PART_JOB_ALL(kind)
#define PART_JOB_NAMED(kind) {#kind, instance_of_##kind},
#define PART_JOB_OWN(kind)
#define PART_JOB_NEVER(kind)
#define PART_LUXID_NEVER(kind)
#define PART_COPY_ONLY(kind)
static const struct {
    const char *kind;
    const char *(*instance)(const void *value);
} parts[] = {
#define OBJECT(kind, cover, view, writers, since, reach) PART_##view(kind)
#include "proto/objects.def"
#undef OBJECT
};

bool config_is_part(const char *kind)
{
    for (guint i = 0; i < G_N_ELEMENTS(parts); i++) {
        if (!strcmp(parts[i].kind, kind))
            return true;
    }
    return false;
}

const char *config_instance_of(const char *kind, const void *value)
{
    for (guint i = 0; i < G_N_ELEMENTS(parts); i++) {
        if (!strcmp(parts[i].kind, kind))
            return parts[i].instance(value);
    }
    return NULL;
}

/* --- limits of such a configuration --- */

void config_set_names(struct config *config, GHashTable *names)
{
    g_clear_pointer(&config->names, g_hash_table_unref);
    config->names = names ? g_hash_table_ref(names) : NULL;
}

void config_need_all(const struct config *config, const char *what)
{
    if (config->names)
        g_error("%s: this copy of the configuration has only the instances that the job names",
                what);
}

void config_set_kinds(struct config *config, bool (*has)(const char *kind))
{
    config->has_kind = has;
}

void config_need_kind(const struct config *config, const char *kind)
{
    if (config->has_kind && !config->has_kind(kind))
        g_error("%s: this copy of the configuration has no objects of that kind", kind);
}

void config_need_all_of(const struct config *config, const char *kind)
{
    config_need_kind(config, kind);
    if (config_is_part(kind))
        config_need_all(config, kind);
}
