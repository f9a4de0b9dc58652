/* See named_change.h. */
#include "core/config/named_change.h"

#include "core/config/invariants.h"

#include <string.h>

static const struct {
    const char *name;
    const char *may;
} named_changes[] = {
#define CHANGE(name, callers, place, fence, may, doc) {#name, may},
#include "proto/changes.def"
#undef CHANGE
};

static const char *may_of(const char *name)
{
    for (guint i = 0; i < G_N_ELEMENTS(named_changes); i++) {
        if (!strcmp(named_changes[i].name, name))
            return named_changes[i].may;
    }
    return NULL;
}

bool named_change_exists(const char *name)
{
    return may_of(name) != NULL;
}

/* --- words of a row --- */

/* `instance.task_*` says instance.task_owner. */
static bool word_says(const char *word, size_t len, const char *wanted)
{
    if (len > 0 && word[len - 1] == '*')
        return strncmp(word, wanted, len - 1) == 0;
    return strlen(wanted) == len && memcmp(word, wanted, len) == 0;
}

static bool may_says(const char *may, const char *wanted)
{
    while (*may) {
        size_t len = strcspn(may, " ");
        if (word_says(may, len, wanted))
            return true;
        may += len;
        may += strspn(may, " ");
    }
    return false;
}

/* --- one object --- */

static bool refuse(const char *name, const struct change *change, const void *old, const char *what,
                   GError **error)
{
    g_autofree char *subject = invariants_subject(change->kind, change->key, old);
    fettle_set_error(error, PERMISSION, "%s: %s may not %s", subject, name, what);
    return false;
}

static bool field_differs(const struct field *field, const void *old, const void *new)
{
    json_autoptr before = record_field_to_json(field, old);
    json_autoptr after = record_field_to_json(field, new);
    return !(before && after ? json_equal(before, after) : before == after);
}

static const json_t *unknown_fields(const struct record *record, const void *value)
{
    return *(json_t *const *)(const void *)((const char *)value + record->extra_offset);
}

static bool same_unknown(const struct record *record, const void *old, const void *new)
{
    const json_t *before = unknown_fields(record, old);
    const json_t *after = unknown_fields(record, new);
    return before && after ? json_equal(before, after) : before == after;
}

static bool check_fields(const char *name, const char *may, const struct change *change,
                         const struct record *record, const void *old, const void *new,
                         GError **error)
{
    for (const struct field *field = record->fields(); field->name; field++) {
        g_autofree char *wanted = g_strconcat(change->kind, ".", field->name, NULL);
        if (may_says(may, wanted) || !field_differs(field, old, new))
            continue;
        g_autofree char *what = g_strdup_printf("change its %s", field->name);
        return refuse(name, change, old, what, error);
    }
    return same_unknown(record, old, new) ||
           refuse(name, change, old, "change fields that this version does not know", error);
}

static bool check_change(const char *name, const char *may, const struct config *before,
                         const struct change *change, GError **error)
{
    const struct record *record = object_record(change->kind);
    guint64 version = 0;
    const void *old = record ? config_get(before, change->kind, change->key, &version) : NULL;
    if (!record || version != change->version)
        return true;
    bool gone = change->op == CHANGE_DELETE;
    g_autofree char *wanted = g_strconcat(gone ? "-" : "+", change->kind, NULL);
    if (gone || !old)
        return may_says(may, wanted) ||
               refuse(name, change, old, gone ? "delete it" : "make it", error);
    if (may_says(may, change->kind))
        return true;
    void *new = record_parse(record, change->object, RECORD_KEEP, NULL);
    bool good = !new || check_fields(name, may, change, record, old, new, error);
    record_free(record, new);
    return good;
}

bool named_change_check(const char *name, const struct config *before, const GPtrArray *changes,
                        GError **error)
{
    const char *may = may_of(name);
    g_assert(may);
    for (guint i = 0; i < changes->len; i++) {
        if (!check_change(name, may, before, changes->pdata[i], error))
            return false;
    }
    return true;
}
