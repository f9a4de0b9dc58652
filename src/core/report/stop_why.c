/* See stop_why.h. */
#include "core/report/stop_why.h"

static char *volume_why(const struct config *config, const char *uuid)
{
    const struct volume *volume = config_get(config, "volume", uuid, NULL);
    const struct backend *backend =
        volume ? config_get(config, "backend", volume->backend, NULL) : NULL;
    return g_strdup_printf("there is no room for its volume %s on back end %s",
                           volume ? config_volume_name(volume) : uuid,
                           backend ? backend->name : "unknown");
}

char *stop_why(const struct config *config, const struct guest_report *guest, const char *node)
{
    if (guest->io_stop == IO_STOP_NONE)
        return NULL;
    if (*guest->io_volume)
        return volume_why(config, guest->io_volume);
    return g_strdup_printf(guest->io_stop == IO_STOP_FAILED
                               ? "its disk on %s fails though there is room"
                               : "there is no room for its disks on %s",
                           config_node_name(config, node));
}
