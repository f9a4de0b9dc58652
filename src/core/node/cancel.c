/*
 * See cancel.h.
 */
#include "core/node/cancel.h"

#include "core/epoch/epoch_fence.h"

void cancel_begin(struct guest *guest, const struct epoch_fence_op *op)
{
    guest->cancelable_job = epoch_fence_op_job(op);
    guest->canceled = false;
}

void cancel_end(struct guest *guest)
{
    guest->cancelable_job = 0;
    guest->canceled = false;
}

bool cancel_asked(const struct guest *guest)
{
    return guest->canceled;
}

static void give_up(struct guest *guest)
{
    struct storage *storage = guest->node->storage;
    guest->canceled = true;
    storage->ops->give_up(storage, guest->record->instance);
}

void cancel_dead(struct guest *guest)
{
    if (guest->cancelable_job != 0)
        give_up(guest);
}

void cancel_job(struct guest *guest, guint64 job)
{
    if (job != 0 && guest->cancelable_job == job)
        give_up(guest);
}

json_t *cancel_work(struct node_core *node, struct epoch_fence_op *op, const void *args,
                    GError **error)
{
    const struct work_cancel_args *work = args;
    struct guest *guest = guest_lookup(node, work->instance);
    if (guest)
        cancel_job(guest, epoch_fence_op_job(op));
    return json_object();
}
