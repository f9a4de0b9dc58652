/*
 * Work for a job that the job can give up in the middle: the making of images (disks.c), the wait
 * for a guest that shuts down (stop.c). The procedure says when it can be, and asks whether it is.
 */
#pragma once

#include "core/node/guest.h"

/* From now on, with the guest's lock, until cancel_end(). */
void cancel_begin(struct guest *guest, const struct epoch_fence_op *op);
void cancel_end(struct guest *guest);
/* Whether that job has said so since. */
bool cancel_asked(const struct guest *guest);

/* Gives up whatever is under way so: by a job that holds the instance, when the one that asked for
 * it is dead. Does not wait for the lock. */
void cancel_dead(struct guest *guest);
/* Only what that job (0: none) has asked for. */
void cancel_job(struct guest *guest, guint64 job);

/* work_cancel: does not wait for the lock. What another job has under way goes on. */
json_t *cancel_work(struct node_core *node, struct epoch_fence_op *op, const void *args,
                    GError **error);
