/* See watch_changes_kinds.h. */
#include "core/queue/watch_changes_kinds.h"

#include <string.h>

#include "core/query/query.h"

#define KINDS_TEXT "job, instance, decision, event, volume, snapshot, backup, image"

static const void *job_row(const struct queue_context *context, const char *key)
{
    return context_view(context, g_ascii_strtoull(key, NULL, 10));
}

static const void *instance_row(const struct queue_context *context, const char *key)
{
    return config_get(follow_config(context->follow), "instance", key, NULL);
}

static const void *decision_row(const struct queue_context *context, const char *key)
{
    return config_get(follow_config(context->follow), "decision", key, NULL);
}

static const void *event_row(const struct queue_context *context, const char *key)
{
    const struct decision *decision = decision_row(context, key);
    return decision && decision->event != EVENT_NONE ? decision : NULL;
}

static const void *volume_row(const struct queue_context *context, const char *key)
{
    return config_get(follow_config(context->follow), "volume", key, NULL);
}

static const void *snapshot_row(const struct queue_context *context, const char *key)
{
    return config_get(follow_config(context->follow), "snapshot", key, NULL);
}

static const void *backup_row(const struct queue_context *context, const char *key)
{
    return config_get(follow_config(context->follow), "backup", key, NULL);
}

static const void *image_row(const struct queue_context *context, const char *key)
{
    return config_get(follow_config(context->follow), "image", key, NULL);
}

/* Kinds are those of the configuration and resources of Query at once; an event is a decision that
 * is one. */
static const struct watched {
    const char *kind;
    /* The object as it is now; NULL: it is gone. */
    const void *(*row)(const struct queue_context *context, const char *key);
} kinds[] = {{"job", job_row},       {"instance", instance_row}, {"decision", decision_row},
             {"event", event_row},   {"volume", volume_row},     {"snapshot", snapshot_row},
             {"backup", backup_row}, {"image", image_row}};

G_STATIC_ASSERT(G_N_ELEMENTS(kinds) == WATCHED_KINDS);

const char *watch_changes_kinds_name(size_t kind)
{
    return kinds[kind].kind;
}

const void *watch_changes_kinds_row(const struct queue_context *context, size_t kind,
                                    const char *key)
{
    return kinds[kind].row(context, key);
}

size_t watch_changes_kinds_find(const char *kind)
{
    size_t i = 0;
    while (i < WATCHED_KINDS && strcmp(kinds[i].kind, kind) != 0)
        i++;
    return i;
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
