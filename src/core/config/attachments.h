/*
 * Which volumes an instance has (docs/design/storage.md, "Attached volumes"): asked by the rules of
 * the configuration, by whoever places guests, and by jobs. Pure.
 */
#pragma once

#include "core/config/model.h"

/* Whose the volume is; NULL: nobody's. */
const struct attachment *attachment_of(const struct volume *volume);
/* Whether a guest that may run has it, so that it is copied as it is at one moment (SAF-59). */
bool attachment_may_run(const struct config *config, const struct volume *volume);
/* Of what is copied: the UUID of its attachment, "" if it has none or is no volume, and the
 * generation of the instance, or 0: who may write to it, and in which life. */
const char *attachment_of_source(const struct config *config, const struct work_source *source,
                                 guint64 *ret_generation);
/* `reserved`, `attaching`, `in-use`, `detaching`, if its status on record is available and it has
 * an attachment, or is reserved for one, which is `attaching` while that has no id; else that
 * status. */
const char *attachment_status_word(const struct volume *volume);
/* WRONG_STATE while it is somebody's, or reserved: `volume data1 is attached to web1; detach it
 * first`. */
bool attachment_need_none(const struct config *config, const struct volume *volume, GError **error);

/* Volumes attached to an instance, or about to be, in the order of their places; borrowed pointers;
 * unref it. */
GPtrArray *config_instance_volumes(const struct config *config, const char *instance);
/* Whether other nodes reach what its guest writes to (SAF-21). */
bool attachment_shares(const struct config *config, const struct instance *instance);

/* Why the instance's guest cannot run on that node for the sake of its volumes; continues the
 * node's name: "does not serve back end dir1". NULL: it can. Free with g_free(). */
char *attachment_unserved(const struct config *config, const char *instance, const char *node);
/* The same of one back end. */
char *attachment_backend_unserved(const struct config *config, const char *backend,
                                  const char *node);

/* NO_RESOURCES if disks, cards, screen and volumes do not have a place each on the guest's bus. */
bool attachment_places(const struct config *config, const struct instance *instance,
                       GError **error);
/* The place of one more; the same error. */
bool attachment_free_slot(const struct config *config, const struct instance *instance,
                          guint64 *ret_slot, GError **error);

/* The instance goes, and no node has a process of it any more, which whoever calls has seen
 * (SAF-57): its volumes are nobody's. */
void attachment_end_all(const struct config *config, const char *instance, GPtrArray *changes);
