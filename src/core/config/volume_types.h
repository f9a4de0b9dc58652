/*
 * Types of volumes: what one asks of a back end. Pure; for who accepts a request, and for who
 * chooses a back end.
 */
#pragma once

#include "core/config/model.h"

/* The value of an extra spec, or NULL if the type has none of that key. */
const char *volume_type_spec(const struct volume_type *type, const char *key);
/* What a back end says of itself by that key, as pools of the API do: volume_backend_name,
 * vendor_name, storage_protocol; NULL: nothing. */
const char *volume_type_capability(const struct backend *backend, const char *key);
/* Whether volumes of that type (NULL: of none) may be on that back end: it says just that of
 * itself by each key. Of any other key no back end says anything, so that fits none; what is
 * scoped, as `vendor:key`, is for others. */
bool volume_type_fits(const struct volume_type *type, const struct backend *backend);
