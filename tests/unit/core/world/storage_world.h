/*
 * What tests of stored things share: back ends dir1 (node1, node2) and dir2 (node2), a volume with
 * data and its row, as JSON.
 */
#pragma once

#include "unit/core/world/wconf_world.h"

#define DIR1 "dddddddd-1111-4000-8000-000000000001"
#define DIR2 "dddddddd-2222-4000-8000-000000000002"
#define VOLUME1 "eeeeeeee-1111-4000-8000-000000000001"
#define VOLUME2 "eeeeeeee-2222-4000-8000-000000000002"

json_t *object_backend(const char *uuid); /* of the two */
/* data1 on dir1, available, 2 GiB, with data of claim 7. */
json_t *object_volume1(void);
/* cinder-volume of node1 or node2 for dir1; number 1 or 2. */
json_t *object_service(const char *node);
/* Key of that, kept for ever. */
const char *service_key(const char *node);
/* deleting VOLUME1, with nobody; id 9. */
json_t *object_row1(void);
#define ROW1 "Volume/" VOLUME1
json_t *object_trash(const char *name); /* on dir1 */

/* The usual cluster with both back ends. */
GPtrArray *initial_storage(void);
