/*
 * See record.h: the life of a record, from its defaults to its end, driven by the description of
 * its fields.
 */
#include "proto/record.h"

#include "proto/record_private.h"

#include <string.h>

const struct field *record_field(const struct record *record, const char *name)
{
    for (const struct field *field = record->fields(); field->name != NULL; field++)
        if (strcmp(field->name, name) == 0)
            return field;
    return NULL;
}

/* --- words --- */

int enum_parse(const struct enum_words *words, const char *text)
{
    for (int i = 0; words->words[i] != NULL; i++)
        if (g_strcmp0(words->words[i], text) == 0)
            return i;
    return -1;
}

const char *enum_word(const struct enum_words *words, int value)
{
    for (int i = 0; words->words[i] != NULL; i++)
        if (i == value)
            return words->words[i];
    g_error("%s has no word for %d", words->name, value);
}

/* --- defaults --- */

static bool is_number(const char *text)
{
    const char *digits = *text == '-' ? text + 1 : text;
    return *digits != '\0' && strspn(digits, "0123456789") == strlen(digits);
}

static void init_member(const struct field *field, void *value)
{
    switch (field->type) {
    case FIELD_TYPE_STRING:
    case FIELD_TYPE_NAME:
    case FIELD_TYPE_UUID:
        MEMBER(value, field, char *) = g_strdup(field->def != NULL ? field->def : "");
        break;
    case FIELD_TYPE_STRINGS:
        MEMBER(value, field, GPtrArray *) = g_ptr_array_new_with_free_func(g_free);
        break;
    case FIELD_TYPE_OBJECTS:
        MEMBER(value, field, GPtrArray *) = g_ptr_array_new_with_free_func(field->record->destroy);
        break;
    case FIELD_TYPE_UINT:
    case FIELD_TYPE_INT:
    case FIELD_TYPE_FLOAT:
    case FIELD_TYPE_BOOL:
    case FIELD_TYPE_JSON:
    case FIELD_TYPE_ENUM:
    case FIELD_TYPE_OBJECT:
        break;
    }
}

/* The member of a new struct, all zero, gets its default. Records are made all the time: what needs
 * no JSON is not turned into it. */
void record_init_field(const struct record *record, const struct field *field, void *value)
{
    g_autoptr(GError) error = NULL;
    init_member(field, value);
    if (field->def == NULL)
        return;
    switch (field->type) {
    case FIELD_TYPE_STRING:
    case FIELD_TYPE_NAME:
    case FIELD_TYPE_UUID:
        return;
    case FIELD_TYPE_ENUM:
        MEMBER(value, field, int) = enum_parse(field->words, field->def);
        if (MEMBER(value, field, int) >= 0)
            return;
        break;
    case FIELD_TYPE_UINT:
    case FIELD_TYPE_INT:
        MEMBER(value, field, gint64) = g_ascii_strtoll(field->def, NULL, 10);
        if (is_number(field->def))
            return;
        break;
    case FIELD_TYPE_BOOL:
        MEMBER(value, field, bool) = strcmp(field->def, "true") == 0;
        if (MEMBER(value, field, bool) || strcmp(field->def, "false") == 0)
            return;
        break;
    case FIELD_TYPE_FLOAT:
    case FIELD_TYPE_JSON:
    case FIELD_TYPE_STRINGS:
    case FIELD_TYPE_OBJECT:
    case FIELD_TYPE_OBJECTS:
        break;
    }
    if (!record_set_text(record, value, field->name, field->def, &error))
        g_error("default of %s.%s: %s", record->name, field->name, error->message);
}

void *record_new(const struct record *record)
{
    void *value = g_malloc0(record->size);
    for (const struct field *field = record->fields(); field->name != NULL; field++)
        record_init_field(record, field, value);
    return value;
}

/* --- free, copy --- */

static void free_list(GPtrArray *list, GDestroyNotify destroy)
{
    if (list == NULL)
        return;
    g_ptr_array_set_free_func(list, destroy); /* also if somebody made the list without */
    g_ptr_array_unref(list);
}

void record_free(const struct record *record, void *value)
{
    if (value == NULL)
        return;
    for (const struct field *field = record->fields(); field->name != NULL; field++) {
        switch (field->type) {
        case FIELD_TYPE_STRING:
        case FIELD_TYPE_NAME:
        case FIELD_TYPE_UUID:
            g_free(MEMBER(value, field, char *));
            break;
        case FIELD_TYPE_STRINGS:
            free_list(MEMBER(value, field, GPtrArray *), g_free);
            break;
        case FIELD_TYPE_OBJECTS:
            free_list(MEMBER(value, field, GPtrArray *), field->record->destroy);
            break;
        case FIELD_TYPE_JSON:
            json_decref(MEMBER(value, field, json_t *));
            break;
        case FIELD_TYPE_OBJECT:
            record_free(field->record, MEMBER(value, field, void *));
            break;
        case FIELD_TYPE_UINT:
        case FIELD_TYPE_INT:
        case FIELD_TYPE_FLOAT:
        case FIELD_TYPE_BOOL:
        case FIELD_TYPE_ENUM:
            break;
        }
    }
    json_decref(*record_extra(record, value));
    g_free(value);
}

json_t *record_json_copy(const struct field *field, const json_t *json)
{
    return field->max == 0 ? json_incref((json_t *)json) : json_deep_copy(json);
}

static void *copy_string_cb(const void *text, void *unused)
{
    return g_strdup(text);
}

static void *copy_object_cb(const void *object, void *record)
{
    return record_copy(record, object);
}

static GPtrArray *copy_list(const GPtrArray *list, GDestroyNotify destroy, GCopyFunc copy,
                            const struct record *record)
{
    GPtrArray *result = g_ptr_array_new_with_free_func(destroy);
    for (guint i = 0; list != NULL && i < list->len; i++)
        g_ptr_array_add(result, copy(g_ptr_array_index(list, i), (void *)record));
    return result;
}

void *record_copy(const struct record *record, const void *value)
{
    if (value == NULL)
        return NULL;
    char *result = g_memdup2(value, record->size);
    for (const struct field *field = record->fields(); field->name != NULL; field++) {
        switch (field->type) {
        case FIELD_TYPE_STRING:
        case FIELD_TYPE_NAME:
        case FIELD_TYPE_UUID:
            MEMBER(result, field, char *) = g_strdup(CONST_MEMBER(value, field, char *));
            break;
        case FIELD_TYPE_STRINGS:
            MEMBER(result, field, GPtrArray *) =
                copy_list(CONST_MEMBER(value, field, GPtrArray *), g_free, copy_string_cb, NULL);
            break;
        case FIELD_TYPE_OBJECTS:
            MEMBER(result, field, GPtrArray *) =
                copy_list(CONST_MEMBER(value, field, GPtrArray *), field->record->destroy,
                          copy_object_cb, field->record);
            break;
        case FIELD_TYPE_JSON:
            MEMBER(result, field, json_t *) =
                record_json_copy(field, CONST_MEMBER(value, field, json_t *));
            break;
        case FIELD_TYPE_OBJECT:
            MEMBER(result, field, void *) =
                record_copy(field->record, CONST_MEMBER(value, field, void *));
            break;
        case FIELD_TYPE_UINT:
        case FIELD_TYPE_INT:
        case FIELD_TYPE_FLOAT:
        case FIELD_TYPE_BOOL:
        case FIELD_TYPE_ENUM:
            break;
        }
    }
    *record_extra(record, result) = json_deep_copy(*record_extra(record, result));
    return result;
}
