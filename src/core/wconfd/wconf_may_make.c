/*
 * The first object of a new kind (objects.def): a configuration daemon of the version before cannot
 * load a store that has one, and a candidate of it may have to become the master. So it is not made
 * while one is on record that has told this master its version; who has not asked yet is not waited
 * for. Here, because whoever makes one commits through here.
 */
#include <string.h>

#include "core/wconfd/wconf_private.h"

const char *wconf_older_candidate(const struct wconf *wconf)
{
    g_autoptr(GPtrArray) nodes = config_list(wconf->head, "node");
    for (guint i = 0; i < nodes->len; i++) {
        const struct node *node = nodes->pdata[i];
        if (node->master_candidate && !node->offline && wconf_followers_older(wconf, node->uuid))
            return node->name;
    }
    return NULL;
}

bool wconf_may_make(const struct wconf *wconf, const GPtrArray *changes, GError **error)
{
    for (guint i = 0; i < changes->len; i++) {
        const struct change *change = changes->pdata[i];
        if (change->op != CHANGE_PUT || !object_is_new(change->kind) ||
            config_count(wconf->head, change->kind) > 0)
            continue;
        const char *older = wconf_older_candidate(wconf);
        if (!older)
            return true;
        fettle_set_error(error, TEMPORARY,
                         "%s %s: not put on record while the master candidate %s runs another "
                         "version, which could not load it; bring that to version %s",
                         change->kind, change->key, older, FETTLE_VERSION);
        return false;
    }
    return true;
}
