/*
 * Which services' rows are to be cleaned, and by whom (CLN-28 to 43, 45 to 56): a configuration and
 * filters in, a plan out. wconfd asks it on its head and puts on record what it says; nothing else
 * decides who is cleaned for. Pure.
 */
#pragma once

#include "core/config/model.h"

/* How long a service has been up, or down, on the boot clock of who asks (ms). */
struct cleanup_clock {
    gint64 (*state_ms)(const void *data, const struct storage_service *service);
    const void *data;
};

/* One service that fits. */
struct cleanup_item {
    const struct storage_service *service; /* borrowed, as `by` */
    const struct storage_service *by;      /* NULL: nobody can do it now */
    guint found;                           /* rows to clean */
    struct cleanup *cleanup; /* that is to be on record, but for its stamp; NULL: it is as it was,
                                or there is nothing to clean */
};

/* By the words of a request. Array of struct cleanup_item * in the order of their numbers, to be
 * unreffed. WRONG_INPUT: a bad word, by its field (CLN-42), or an upgrade is under way (CLN-43).
 *
 * A request of a person names each service that fits, whether it has rows or not. An automatic one
 * those that have some, were down for auto_cleanup_checks times service_down_time, and are not
 * being cleaned for in this death: so what failed is tried again, and what is done is not. */
GPtrArray *cleanup_plan(const struct config *config, const struct request_cleanup_args *args,
                        const struct cleanup_clock *clock, GError **error);

/* Whether a row is one of those that a cleanup is to clean. */
bool cleanup_covers(const struct cleanup *cleanup, const struct worker *row);
/* How many there are. */
guint cleanup_left(const struct config *config, const struct cleanup *cleanup);
/* Another one to clean, as the present one is gone, or there was none; NULL: it stays as it is
 * (CLN-24, 56). */
const struct storage_service *cleanup_next(const struct config *config,
                                           const struct cleanup *cleanup,
                                           const struct cleanup_clock *clock);
/* Whether a service that is up again is left alone. */
bool cleanup_is_void(const struct config *config, const struct cleanup *cleanup);
/* Whether nobody needs the object any more: the service is gone, or is up again and nobody cleans
 * for it. */
bool cleanup_is_over(const struct config *config, const struct cleanup *cleanup);
