/*
 * See giving_up.h.
 */
#include "core/node/giving_up.h"

#include "core/epoch/fence.h"

void giving_up_begin(struct guest *guest, const struct fence_op *op)
{
    guest->cancelable_job = fence_op_job(op);
    guest->canceled = false;
}

void giving_up_end(struct guest *guest)
{
    guest->cancelable_job = 0;
    guest->canceled = false;
}

bool giving_up_asked(const struct guest *guest)
{
    return guest->canceled;
}

static void give_up(struct guest *guest)
{
    struct storage *storage = guest->node->storage;
    guest->canceled = true;
    storage->ops->give_up(storage, guest->record->instance);
}

void giving_up_dead(struct guest *guest)
{
    if (guest->cancelable_job != 0)
        give_up(guest);
}

json_t *giving_up_work(struct node_core *node, struct fence_op *op, const void *args,
                       GError **error)
{
    const struct work_cancel_args *work = args;
    struct guest *guest = guest_lookup(node, work->instance);
    if (guest && guest->cancelable_job != 0 && guest->cancelable_job == fence_op_job(op))
        give_up(guest);
    return json_object();
}
