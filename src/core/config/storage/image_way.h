/*
 * The way to the bytes of an image: which node's volume service opens its door (receive_image,
 * finish_image, send_image of proto/storage/methods.def), and under which row.
 */
#pragma once

#include "core/config/resource.h"

/* Texts are borrowed of the configuration. */
struct image_way {
    const char *node;            /* UUID */
    const char *image, *backend; /* UUIDs */
    const struct worker *row;    /* of one that is received; else NULL */
};

/* To the one that receives an image (name or UUID). UNKNOWN_ENTITY; WRONG_STATE: nobody receives
 * it; TEMPORARY: nobody has begun with it yet, or its node is gone. */
bool image_way_in(const struct config *config, const char *image, struct image_way *ret,
                  GError **error);
/* To one that serves an active image; on `own_node`, if that has one that is up. WRONG_STATE: it is
 * not active; TEMPORARY: none is up. */
bool image_way_out(const struct config *config, const char *image, const char *own_node,
                   struct image_way *ret, GError **error);
