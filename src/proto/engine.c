/* See engine.h. */
#include "proto/engine.h"

#include "base/error.h"
#include "base/limits.h"

guint64 engine_leap(guint64 serial, gint64 wall_us)
{
    guint64 seconds = (guint64)MAX(wall_us / G_USEC_PER_SEC, 0);
    /* The last digits go on. */
    guint64 now = (seconds + 1) * LIMIT_SERIALS_PER_SECOND + serial % LIMIT_SERIALS_PER_SECOND;
    return MAX(serial + LIMIT_SERIAL_LEAP, now) + 1;
}

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
