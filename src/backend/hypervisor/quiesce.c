/*
 * See quiesce.h.
 */
#include "backend/hypervisor/quiesce.h"

#include "base/limits.h"

#include <string.h>

static bool lock(struct guest *guest, GError **error)
{
    if (task_mutex_lock(&guest->standing))
        return true;
    fettle_set_error(error, KILLED, "the process that waited for guest %s has ended", guest->name);
    return false;
}

/* Whether it stands still and can go on: nobody has let it, and it needs no reset. */
static bool ask(struct guest *guest, bool *ret_paused, GError **error)
{
    g_autofree char *status = NULL;
    if (!guest_status(guest, &status, error))
        return false;
    *ret_paused = strcmp(status, "paused") == 0;
    return true;
}

static bool go_on(struct guest *guest, bool paused, GError **error)
{
    if (paused && !guest->off && !guest_command(guest, "cont", NULL, LIMIT_QMP_DRAIN_MS, error))
        return false;
    guest->resume = false;
    return guest_state_write(guest, error);
}

/* QEMU drains its disks whenever it is told to stop, also if the guest does not run. */
static bool stand(struct guest *guest, GError **error)
{
    g_autofree char *status = NULL;
    if (!guest_status(guest, &status, error))
        return false;
    if (strcmp(status, "running") == 0) {
        /* Recorded first: a node daemon that comes back must let it go on. */
        guest->resume = true;
        if (!guest_state_write(guest, error))
            return false;
    }
    guest->disturbed = false;
    return guest_command(guest, "stop", NULL, LIMIT_QMP_DRAIN_MS, error);
}

/* In whatever state it is. */
static bool recover(struct guest *guest, GError **error)
{
    bool paused = false;
    return !guest->resume || (ask(guest, &paused, error) && go_on(guest, paused, error));
}

bool quiesce_begin(struct guest *guest, GError **error)
{
    if (!lock(guest, error))
        return false;
    if (stand(guest, error))
        return true;
    recover(guest, NULL);
    task_mutex_unlock(&guest->standing);
    return false;
}

bool quiesce_end(struct guest *guest, GError **error)
{
    /* It was us who stopped it, so it is not asked: each question holds it up. If it cannot go on
     * QEMU says so, and quiesce_recover() asks. */
    bool ok = !guest->resume || go_on(guest, true, error);
    task_mutex_unlock(&guest->standing);
    return ok;
}

bool quiesce_recover(struct guest *guest, GError **error)
{
    if (!guest->resume)
        return true;
    if (!lock(guest, error))
        return false;
    bool ok = recover(guest, error);
    task_mutex_unlock(&guest->standing);
    return ok;
}

bool quiesce_check(const struct guest *guest, GError **error)
{
    if (!guest->disturbed)
        return true;
    fettle_set_error(error, HYPERVISOR, "guest %s was let go on by somebody else", guest->name);
    return false;
}

bool quiesce_hold(struct guest *guest, GError **error)
{
    return lock(guest, error);
}

bool quiesce_take_over(struct guest *guest, GError **error)
{
    if (!lock(guest, error))
        return false;
    if (!guest->resume)
        return true;
    guest->resume = false;
    if (guest_state_write(guest, error))
        return true;
    task_mutex_unlock(&guest->standing);
    return false;
}

void quiesce_hand_back(struct guest *guest)
{
    task_mutex_unlock(&guest->standing);
}
