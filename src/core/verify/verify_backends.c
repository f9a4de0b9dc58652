/* Back ends: nodes of theirs that do not serve them, types of volumes that are for none; see
 * verify_look.h. */
#include "core/config/volume_types.h"
#include "core/verify/verify_look.h"
#include "proto/storage/backend_place.h"

#include <string.h>

/* What a node's volume service sees of the place is known by whether it serves it: it registers
 * when it has read the marker there. */
#define FULL_PERCENT 95

static const struct storage_service *service_at(const GPtrArray *services,
                                                const struct backend *backend, const char *node)
{
    for (guint i = 0; i < services->len; i++) {
        const struct storage_service *service = services->pdata[i];
        if (!strcmp(service->backend, backend->uuid) && !strcmp(service->node, node))
            return service;
    }
    return NULL;
}

/* What its service sees of the place: ", the same directory as on node1"; "" if none serves it. */
static char *beside(struct look *look, const GPtrArray *services, const struct backend *backend)
{
    for (guint i = 0; i < backend->nodes->len; i++) {
        const char *node = backend->nodes->pdata[i];
        const struct storage_service *service = service_at(services, backend, node);
        if (service && service->state == STORAGE_UP)
            return g_strdup_printf(backend->kind == BACKEND_DIR ? ", the same directory as on %s"
                                                                : ", as on %s",
                                   look_node_name(look, node));
    }
    return g_strdup("");
}

/* Guests write there, and stand still once there is no room. */
static void verify_room(struct look *look, const struct backend *backend)
{
    const struct cluster_status *status = look->status;
    g_autofree char *place = backend_place(backend);
    for (guint i = 0; i < status->spaces->len; i++) {
        const struct backend_space *space = status->spaces->pdata[i];
        if (strcmp(space->backend, backend->uuid) != 0 ||
            space->free_mib * 100 > space->total_mib * (100 - FULL_PERCENT))
            continue;
        look_problem(look,
                     "back end %s: %" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT
                     " MiB are left; make room in %s, or move volumes from there: guests stand "
                     "still when there is none",
                     backend->name, space->free_mib, space->total_mib, place);
    }
}

static void verify_hanging(struct look *look, const struct storage_service *service,
                           const struct backend *backend)
{
    g_autofree char *place = backend_place(backend);
    if (service && service->hanging)
        look_problem(look,
                     "node %s: %" G_GUINT64_FORMAT
                     " calls of its volume service hang in back end %s; see whether %s answers "
                     "there",
                     look_node_name(look, service->node), service->hanging, backend->name, place);
}

static void verify_backend(struct look *look, const GPtrArray *services,
                           const struct backend *backend)
{
    g_autofree char *as = beside(look, services, backend);
    g_autofree char *what =
        backend->kind == BACKEND_DIR
            ? g_strdup_printf("%s is mounted", backend->path)
            : g_strdup_printf("%s, and the key of client.%s, are", backend->conf, backend->user);
    verify_room(look, backend);
    for (guint i = 0; i < backend->nodes->len && look_pause(look); i++) {
        const char *node = backend->nodes->pdata[i];
        const struct storage_service *service = service_at(services, backend, node);
        if (look_concerns(look, node))
            verify_hanging(look, service, backend);
        /* Of a node that is silent or offline is said that. */
        if (!look_concerns(look, node) || !reports_of(look->reports, node) ||
            (service && service->state == STORAGE_UP))
            continue;
        look_problem(look,
                     "node %s: does not serve back end %s: its volume service %s; see whether %s "
                     "there%s, and what the log of its fettle-volumed says",
                     look_node_name(look, node), backend->name,
                     service ? "is down" : "has not registered", what, as);
    }
}

/* A volume of it would wait, and end in error. */
static void verify_type(struct look *look, const GPtrArray *backends,
                        const struct volume_type *type)
{
    for (guint i = 0; i < backends->len; i++)
        if (volume_type_fits(type, backends->pdata[i]))
            return;
    look_problem(look,
                 "volume type %s: no back end is for it; see its extra specs: fettle volume-type "
                 "list %s",
                 type->name, type->name);
}

/* A volume for which none is named would be refused. */
static void verify_default_type(struct look *look)
{
    const char *name = look->cluster->default_volume_type;
    if (*name && !config_find(look->config, "volume_type", name, NULL))
        look_problem(
            look,
            "cluster: there is no volume type \"%s\", which is the default one; make it, or "
            "choose another one: fettle cluster modify --default-volume-type TYPE, or none",
            name);
}

void verify_backends(struct look *look)
{
    g_autoptr(GPtrArray) backends = config_list(look->config, "backend");
    g_autoptr(GPtrArray) services = config_list(look->config, "storage_service");
    for (guint i = 0; i < backends->len; i++)
        verify_backend(look, services, backends->pdata[i]);
    g_autoptr(GPtrArray) types = config_list(look->config, "volume_type");
    for (guint i = 0; i < types->len && backends->len; i++)
        verify_type(look, backends, types->pdata[i]);
    verify_default_type(look);
}
