/* What clients say of an image, member by member: of one that is made, and what is to be different
 * about one. */
#pragma once

#include "proto/records.h"

/* `key` of a body; null asks for nothing. WRONG_INPUT; PERMISSION: nobody sets that. */
bool image_field_add(struct add_image_args *args, const char *key, const json_t *value,
                     GError **error);
/* `value` NULL: it goes. Likewise. */
bool image_field_change(struct change_image_args *args, const struct image *image, const char *key,
                        const json_t *value, GError **error);
