/* See unheard.h. */
#include "core/config/unheard.h"

json_t *unheard_node(const struct config *config, const struct node *node, guint64 since)
{
    json_t *object = config_object_json(config, "node", node->uuid);
    if (!node->unheard_since)
        json_object_set_new(object, "unheard_since", json_integer((json_int_t)MAX(since, 1)));
    return object;
}

guint64 unheard_since(const struct config *config, const struct instance *instance,
                      const struct replica *replica)
{
    const struct node *node = config_get(config, "node", instance->primary_node, NULL);
    bool mute = node && node->offline && replica && replica->state == REPLICA_IN_SYNC;
    return mute ? node->unheard_since : 0;
}

bool instance_is_stated(const struct instance *instance)
{
    return *instance->holder && instance->stated > 0 && instance->stated == instance->generation;
}

char *unheard_time(guint64 seconds)
{
    g_autoptr(GDateTime) time = g_date_time_new_from_unix_utc((gint64)seconds);
    return time ? g_date_time_format(time, "%Y-%m-%d %H:%M:%S UTC") : g_strdup("an unknown time");
}
