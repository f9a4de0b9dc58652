/* See horizon.h. */
#include "proto/horizon.h"

#include "base/limits.h"
#include "proto/build_date.h"

static const struct {
    const char *name;
    guint64 per_second;
} kinds[] = {
    [HORIZON_HISTORY] = {"history", 1},
    [HORIZON_EPOCH] = {"epoch", 1000},
    [HORIZON_SERIAL] = {"serial", G_USEC_PER_SEC},
};

guint64 horizon_of(enum horizon kind, guint64 stored, gint64 wall_us)
{
    guint64 now = MAX((guint64)MAX(wall_us / G_USEC_PER_SEC, 0), (guint64)FETTLE_BUILD_S);
    return MAX((now + LIMIT_HORIZON_S) * kinds[kind].per_second, stored + LIMIT_HORIZON_STORED);
}

bool horizon_check(enum horizon kind, guint64 number, guint64 stored, gint64 wall_us,
                   GError **error)
{
    if (number <= horizon_of(kind, stored, wall_us))
        return true;
    fettle_set_error(error, WRONG_INPUT, "%s %" G_GUINT64_FORMAT " is beyond any clock",
                     kinds[kind].name, number);
    return false;
}
