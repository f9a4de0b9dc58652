/* See engine.h. */
#include "proto/engine.h"

#include "base/error.h"

bool engine_commit_follows(guint64 epoch, guint64 serial, guint64 stored_epoch,
                           guint64 stored_serial, GError **error)
{
    if (epoch != stored_epoch)
        fettle_set_error(error, NOT_MASTER,
                         "the commit is of epoch %" G_GUINT64_FORMAT
                         ", the engine of epoch %" G_GUINT64_FORMAT,
                         epoch, stored_epoch);
    else if (serial != stored_serial + 1)
        fettle_set_error(error, INTERNAL,
                         "serial %" G_GUINT64_FORMAT " does not follow %" G_GUINT64_FORMAT, serial,
                         stored_serial);
    else
        return true;
    return false;
}
