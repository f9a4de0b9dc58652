/* What the files of image v2 share (image_*.c, one for each thing that clients speak of). */
#pragma once

#include "core/api/api_private.h"
#include "core/config/resource.h"

/* That of the path, if who asks sees it; UNKNOWN_ENTITY. Valid until the next wait. */
const struct image *image_found(struct api_call *call, GError **error);
/* The same, if it is his to change; PERMISSION. */
const struct image *image_owned(struct api_call *call, GError **error);
/* Whether it is the asking project's, or an administrator asks. */
bool image_is_own(const struct api_call *call, const struct image *image);
/* Whether who asks may know of it: it is his, shared with him, or of all. */
bool image_is_seen(const struct api_call *call, const struct image *image);
/* How a project takes an image that is shared with it; NULL: that is not. */
const char *image_member_status(const struct image *image, const char *project);

/* What an image is, as Glance shows it. */
json_t *image_view(const struct image *image);
/* "active", "deactivated" … */
const char *image_status_shown(const struct image *image);
/* The value of a property; NULL: there is none. */
const char *image_property(const struct image *image, const char *key);
/* Whether images have a member of that name which is none of their properties. */
bool image_is_base(const char *key);

/* --- what is asked of wconfd --- */

/* Work on an image; its row is on record then. `promised`: as that of accept_work. The answer is to
 * be freed. */
struct accepted_work *image_work(struct api_call *call, enum task_operation operation,
                                 const char *image, gint64 promised, GError **error);
/* For change_image: nothing is to be different yet. Its commit id is set. */
struct change_image_args *image_change_new(const struct api_call *call);
/* `args` is stolen; what is so already is done, too. */
bool image_change(struct api_call *call, struct change_image_args *args, GError **error);
