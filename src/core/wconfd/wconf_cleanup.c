/*
 * Cleanup on request and by itself: which services' rows somebody else is to clean, and who
 * (docs/design/storage.md). See wconf_work_private.h.
 */
#include "core/wconfd/wconf_work_private.h"

static void unfinished(struct rpc_request *request)
{
    g_autoptr(GError) error = NULL;
    fettle_set_error(&error, ENVIRONMENT, "unfinished");
    rpc_fail(request, error);
}

void wconf_handle_request_cleanup(struct wconf *wconf, struct rpc_request *request)
{
    unfinished(request);
}

void wconf_handle_stand_in(struct wconf *wconf, struct rpc_request *request)
{
    unfinished(request);
}

void wconf_handle_end_cleanup(struct wconf *wconf, struct rpc_request *request)
{
    unfinished(request);
}
