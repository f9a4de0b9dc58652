/* How volumes are shown, by microversion; for who answers with one. */
#pragma once

#include "core/api/volume_common.h"

/* As Cinder's create and update show one; `whole`: as its show does, with what is about hosts and
 * tenants. */
json_t *volume_view(const struct api_call *call, const struct config *config,
                    const struct volume *volume, bool whole);
/* Its status, as attachments say it. */
const char *volume_view_status(const struct volume *volume);
