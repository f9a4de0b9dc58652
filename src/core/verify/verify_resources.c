/* What is stored and in an error status, with what a person can do; see verify_look.h. */
#include <string.h>

#include "core/config/resource.h"
#include "core/verify/verify_look.h"

/* Continues "is error_deleting; ". */
static char *what_next(const struct resource *resource, const char *kind)
{
    const char *name = resource_name(resource);
    if (!strcmp(resource->status, "error_extending"))
        return g_strdup_printf("its data is as it was; ask again: fettle %s extend %s --size …",
                               kind, name);
    if (!strcmp(resource->status, "error_deleting") || !*resource->data)
        return g_strdup_printf("fettle %s delete %s", kind, name);
    return g_strdup_printf("if you know its data to be well: fettle %s reset-state %s --status "
                           "%s; else: fettle %s delete %s",
                           kind, name, resource_ready_status(resource->type), kind, name);
}

static void verify_resource(struct look *look, const struct resource *resource)
{
    const char *kind = resource_kind(resource->type);
    if (!g_str_has_prefix(resource->status, "error") &&
        strcmp(resource->status, resource_error_status(resource->type)) != 0)
        return;
    g_autofree char *next = what_next(resource, kind), *why = g_strdup(resource->status_why);
    if (g_str_has_suffix(why, ".")) /* recovery speaks in sentences */
        why[strlen(why) - 1] = '\0';
    look_problem(look, "%s %s: is %s%s%s; %s", kind, resource_name(resource), resource->status,
                 *why ? ": " : "", why, next);
}

void verify_resources(struct look *look)
{
    static const enum resource_type types[] = {
#define RESOURCE(NAME, kind, word) RESOURCE_##NAME,
#include "proto/storage/resources.def"
    };
    for (guint type = 0; type < G_N_ELEMENTS(types) && look_whole(look); type++) {
        g_autoptr(GPtrArray) records = config_list(look->config, resource_kind(types[type]));
        for (guint i = 0; i < records->len && look_pause(look); i++) {
            struct resource resource = resource_read(types[type], records->pdata[i]);
            verify_resource(look, &resource);
        }
    }
}
