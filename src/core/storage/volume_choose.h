/*
 * Which back end a new volume is put on, and whether one that is named has room: reckoned from what
 * is on record and what its members have said of their space. Pure; for the scheduler
 * (volume_scheduler.h) and for who accepts a request (wconf_work.c).
 */
#pragma once

#include "core/config/model.h"

enum volume_choice {
    VOLUME_CHOSEN,
    VOLUME_WAITS,     /* for a member, for space, for word of it */
    VOLUME_NEVER_FITS /* no back end is on record that could ever hold it */
};

/* Of those that are for the type that a volume has, or is to get by its `row`, and have a member
 * that is up and not disabled, the one with the most space left that may be promised. One of its
 * nodes serves the back end that the row reads; if that moves the volume, it is another one.
 * `spaces`: struct backend_space, one for a back end at most. `ret_uuid`: set only if one is
 * chosen, the copy's; `ret_why`: set if none is, to be freed with g_free(). */
enum volume_choice volume_choose(const struct config *config, const GPtrArray *spaces,
                                 const struct volume *volume, const struct worker *row,
                                 const char **ret_uuid, char **ret_why);

/* NO_RESOURCES, with the numbers and what to do: that back end could never hold something of
 * `size_gib`, or has not `more_gib` left of what it may promise. What is not known refuses nothing:
 * without word of its space (NULL), or with word that may be old as nobody serves it, a row waits.
 */
bool volume_has_room(const struct config *config, const struct backend *backend,
                     const struct backend_space *space, guint64 size_gib, guint64 more_gib,
                     GError **error);

/* How long the file of an image may be that is to come in: as was said, or, where nobody knows it
 * yet (`bytes` 0), half of what is left, so that there is room for another one meanwhile. 0 with
 * NO_RESOURCES: there is not so much. */
guint64 volume_room_of_image(const struct config *config, const struct backend *backend,
                             const struct backend_space *space, guint64 bytes, GError **error);
