/*
 * Types of volumes: what one asks of a back end. Pure; for who accepts a request, and for who
 * chooses a back end.
 */
#pragma once

#include "core/config/model.h"

/* The value of an extra spec, or NULL if the type has none of that key. */
const char *volume_type_spec(const struct volume_type *type, const char *key);
/* Whether volumes of that type (NULL: of none) may be on that back end. `volume_backend_name` is
 * its name; of any other key no back end says anything, so it fits none; what is scoped, as
 * `vendor:key`, is for others. */
bool volume_type_fits(const struct volume_type *type, const struct backend *backend);
