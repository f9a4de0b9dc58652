/* See watch_changes_kinds.h. */
#include "core/queue/watch_changes_kinds.h"

#include <string.h>

#include "core/query/query_rows.h"

/* Each is a resource of Query; most are objects of the configuration, of the same name or another.
 * An event is a decision that is one. */
static const struct watched {
    const char *kind;
    const char *object; /* of the configuration; NULL: none is that and nothing else */
} kinds[] = {
    {"job", "job"},         {"instance", "instance"},  {"node", "node"},
    {"group", "nodegroup"}, {"network", "network"},    {"service", "service"},
    {"lock", NULL},         {"brake", "repair_brake"}, {"decision", "decision"},
    {"event", NULL},        {"volume", "volume"},      {"snapshot", "snapshot"},
    {"backup", "backup"},   {"image", "image"},
};

#define KINDS_TEXT                                                                                 \
    "job, instance, node, group, network, service, lock, brake, decision, event, volume, "         \
    "snapshot, backup, image"

G_STATIC_ASSERT(G_N_ELEMENTS(kinds) == WATCHED_KINDS);

const char *watch_changes_kinds_name(size_t kind)
{
    return kinds[kind].kind;
}

size_t watch_changes_kinds_find(const char *kind)
{
    size_t i = 0;
    while (i < WATCHED_KINDS && strcmp(kinds[i].kind, kind) != 0)
        i++;
    return i;
}

size_t watch_changes_kinds_of_object(const char *object)
{
    size_t i = 0;
    while (i < WATCHED_KINDS && g_strcmp0(kinds[i].object, object) != 0)
        i++;
    return i;
}

static const void *event_row(const struct config *config, const char *key)
{
    const struct decision *decision = config_get(config, "decision", key, NULL);
    return decision && decision->event != EVENT_NONE ? decision : NULL;
}

const void *watch_changes_kinds_row(const struct watched_world *world, size_t kind, const char *key,
                                    void **ret_made)
{
    const struct config *config = follow_config(world->context->follow);
    const char *name = kinds[kind].kind;
    *ret_made = NULL;
    if (strcmp(name, "job") == 0)
        return context_view(world->context, g_ascii_strtoull(key, NULL, 10));
    if (strcmp(name, "lock") == 0)
        return lock_watch_row(world->locks, key);
    if (strcmp(name, "event") == 0)
        return event_row(config, key);
    if (strcmp(name, "service") == 0)
        return *ret_made = query_service_row(config, key);
    return config_get(config, kinds[kind].object, key, NULL);
}

/* --- what is asked --- */

static bool take_field(GPtrArray *fields, const char *kind, const char *name, GError **error)
{
    const struct query_field *field = query_field_find(kind, name);
    if (!field) {
        fettle_set_error(error, WRONG_INPUT, "kinds.%s: there is no field \"%s\"", kind, name);
        return false;
    }
    if (field->live) {
        fettle_set_error(error, WRONG_INPUT,
                         "kinds.%s: the nodes are asked for \"%s\", so it changes untold; it can "
                         "be had by Query only",
                         kind, name);
        return false;
    }
    g_ptr_array_add(fields, (void *)field);
    return true;
}

static bool take_kind(GPtrArray **fields, const char *kind, const json_t *names, GError **error)
{
    size_t index = watch_changes_kinds_find(kind);
    if (index == WATCHED_KINDS) {
        fettle_set_error(error, WRONG_INPUT,
                         "kinds: \"%s\" cannot be watched; what can is " KINDS_TEXT, kind);
        return false;
    }
    if (!json_is_array(names) || json_array_size(names) > LIMIT_QUERY_FIELDS) {
        fettle_set_error(error, WRONG_INPUT, "kinds.%s: must be a list of at most %d fields", kind,
                         LIMIT_QUERY_FIELDS);
        return false;
    }
    fields[index] = g_ptr_array_new();
    size_t at;
    const json_t *name;
    json_array_foreach(names, at, name) {
        if (!json_is_string(name)) {
            fettle_set_error(error, WRONG_INPUT, "kinds.%s[%zu]: must be a text", kind, at);
            return false;
        }
        if (!take_field(fields[index], kind, json_string_value(name), error))
            return false;
    }
    return true;
}

bool watch_changes_kinds_parse(const json_t *asked, GPtrArray *ret_fields[WATCHED_KINDS],
                               GError **error)
{
    if (!json_is_object(asked) || json_object_size(asked) == 0) {
        fettle_set_error(error, WRONG_INPUT,
                         "kinds: must be {kind: [fields], …}, with at least one of " KINDS_TEXT);
        return false;
    }
    const char *kind;
    json_t *names;
    json_object_foreach((json_t *)asked, kind, names)
        if (!take_kind(ret_fields, kind, names, error))
            return false;
    return true;
}
