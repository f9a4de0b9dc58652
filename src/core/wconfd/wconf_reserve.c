/*
 * Reservations of dead owners (FUT-06). A job makes one and turns it into an instance by named
 * changes like others; here they end with it. They stand in the store, so that another master knows
 * them, and finds their owners dead.
 */
#include <string.h>

#include "base/log.h"
#include "core/wconfd/wconf_private.h"
#include "proto/change.h"

/* Also those that are on their way to the store. */
static GPtrArray *all_of(const struct wconf *wconf, const char *livelock)
{
    GPtrArray *list = config_list(wconf->head, "reservation");
    for (guint i = list->len; livelock && i > 0; i--) {
        const struct reservation *reservation = list->pdata[i - 1];
        if (strcmp(reservation->owner->livelock, livelock) != 0)
            g_ptr_array_remove_index(list, i - 1);
    }
    return list;
}

void wconf_end_reservations(struct wconf *wconf, const char *livelock)
{
    g_autoptr(GPtrArray) dead = all_of(wconf, livelock);
    g_autoptr(GPtrArray) changes = change_list_new();
    g_autoptr(GError) error = NULL;
    if (dead->len == 0 || wconf->down)
        return;
    for (guint i = 0; i < dead->len; i++) {
        const struct reservation *reservation = dead->pdata[i];
        log_info("", "what job %s has reserved for %s is free: nobody holds its lock file %s",
                 reservation->owner->job, reservation->name, livelock);
        g_ptr_array_add(changes, config_delete(wconf->head, "reservation", reservation->uuid));
    }
    g_autofree char *id = env_uuid(wconf->env);
    if (!wconf_commit(wconf, id, g_steal_pointer(&changes), NULL, AUTHOR_COMMIT, NULL, NULL,
                      &error))
        log_error("", "reservations with the lock file %s stay: %s", livelock, error->message);
}

bool wconf_has_reservation(const struct wconf *wconf, const char *livelock)
{
    g_autoptr(GPtrArray) list = all_of(wconf, livelock);
    return list->len > 0;
}

GPtrArray *wconf_reserved_livelocks(const struct wconf *wconf)
{
    g_autoptr(GPtrArray) all = all_of(wconf, NULL);
    GPtrArray *names = g_ptr_array_new_with_free_func(g_free);
    for (guint i = 0; i < all->len; i++) {
        const char *livelock = ((const struct reservation *)all->pdata[i])->owner->livelock;
        if (!g_ptr_array_find_with_equal_func(names, livelock, g_str_equal, NULL))
            g_ptr_array_add(names, g_strdup(livelock));
    }
    return names;
}
