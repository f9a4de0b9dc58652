/*
 * Configurations that have only some instances and what belongs to them, as a job's copy does. See
 * model.h.
 */
#include "core/config/model_private.h"

#include <string.h>

/* --- what belongs to an instance --- */

static const char *instance_itself(const void *value)
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

static const char *instance_removed(const void *value)
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

static const struct {
    const char *kind;
    const char *(*instance)(const void *value);
} parts[] = {
    {"instance", instance_itself}, {"replica", instance_of_replica}, {"tag", instance_of_tag},
    {"removed", instance_removed}, {"fault", instance_of_fault},     {"stuck", instance_of_stuck},
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

void config_need_all_of(const struct config *config, const char *kind)
{
    if (config_is_part(kind))
        config_need_all(config, kind);
}
