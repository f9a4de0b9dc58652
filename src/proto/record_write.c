/*
 * See record.h: to JSON.
 */
#include "proto/record.h"

#include "proto/record_private.h"

#include <string.h>

/* Texts from outside JSON (file names, messages of the kernel) may hold any bytes. */
static json_t *write_text(const char *text)
{
    size_t len = text != NULL ? strlen(text) : 0;
    if (len == 0)
        return json_stringn_nocheck("", 0);
    if (g_utf8_validate_len(text, len, NULL))
        return json_stringn_nocheck(text, len);
    g_autofree char *valid = g_utf8_make_valid(text, -1);
    return json_string(valid);
}

static json_t *write_strings(const GPtrArray *list)
{
    json_t *array = json_array();
    for (guint i = 0; list != NULL && i < list->len; i++)
        json_array_append_new(array, write_text(g_ptr_array_index(list, i)));
    return array;
}

static json_t *write_objects(const struct record *record, const GPtrArray *list)
{
    json_t *array = json_array();
    for (guint i = 0; list != NULL && i < list->len; i++)
        json_array_append_new(array, record_to_json(record, g_ptr_array_index(list, i)));
    return array;
}

/* NULL: nothing to write. */
static json_t *write_field(const struct field *field, const void *value)
{
    switch (field->type) {
    case FIELD_TYPE_STRING:
    case FIELD_TYPE_NAME:
    case FIELD_TYPE_UUID:
        return write_text(CONST_MEMBER(value, field, char *));
    case FIELD_TYPE_UINT:
        return json_integer((json_int_t)CONST_MEMBER(value, field, guint64));
    case FIELD_TYPE_INT:
        return json_integer(CONST_MEMBER(value, field, gint64));
    case FIELD_TYPE_FLOAT:
        return json_real(CONST_MEMBER(value, field, double));
    case FIELD_TYPE_BOOL:
        return json_boolean(CONST_MEMBER(value, field, bool));
    case FIELD_TYPE_ENUM:
        return json_string_nocheck(enum_word(field->words, CONST_MEMBER(value, field, int)));
    case FIELD_TYPE_JSON:
        return record_json_copy(field, CONST_MEMBER(value, field, json_t *));
    case FIELD_TYPE_STRINGS:
        return write_strings(CONST_MEMBER(value, field, GPtrArray *));
    case FIELD_TYPE_OBJECTS:
        return write_objects(field->record, CONST_MEMBER(value, field, GPtrArray *));
    case FIELD_TYPE_OBJECT:
        return record_to_json(field->record, CONST_MEMBER(value, field, void *));
    }
    g_assert_not_reached();
}

json_t *record_field_to_json(const struct field *field, const void *value)
{
    return write_field(field, value);
}

static void append_text(GString *out, const char *text)
{
    g_autofree char *valid =
        text == NULL || g_utf8_validate(text, -1, NULL) ? NULL : g_utf8_make_valid(text, -1);
    json_append_string(out, valid != NULL ? valid : text != NULL ? text : "");
}

static void append_strings(const GPtrArray *list, GString *out)
{
    g_string_append_c(out, '[');
    for (guint i = 0; list != NULL && i < list->len; i++) {
        if (i > 0)
            g_string_append_c(out, ',');
        append_text(out, g_ptr_array_index(list, i));
    }
    g_string_append_c(out, ']');
}

static void append_objects(const struct record *record, const GPtrArray *list, GString *out)
{
    g_string_append_c(out, '[');
    for (guint i = 0; list != NULL && i < list->len; i++) {
        if (i > 0)
            g_string_append_c(out, ',');
        record_append(record, g_ptr_array_index(list, i), out);
    }
    g_string_append_c(out, ']');
}

static void append_json(GString *out, const json_t *json)
{
    if (json != NULL)
        json_append(out, json);
    else
        g_string_append(out, "null");
}

void record_field_append(const struct field *field, const void *value, GString *out)
{
    switch (field->type) {
    case FIELD_TYPE_STRING:
    case FIELD_TYPE_NAME:
    case FIELD_TYPE_UUID:
        append_text(out, CONST_MEMBER(value, field, char *));
        return;
    case FIELD_TYPE_UINT:
        json_append_integer(out, (gint64)CONST_MEMBER(value, field, guint64));
        return;
    case FIELD_TYPE_INT:
        json_append_integer(out, CONST_MEMBER(value, field, gint64));
        return;
    case FIELD_TYPE_BOOL:
        g_string_append(out, CONST_MEMBER(value, field, bool) ? "true" : "false");
        return;
    case FIELD_TYPE_ENUM:
        json_append_string(out, enum_word(field->words, CONST_MEMBER(value, field, int)));
        return;
    case FIELD_TYPE_JSON:
        append_json(out, CONST_MEMBER(value, field, json_t *));
        return;
    case FIELD_TYPE_STRINGS:
        append_strings(CONST_MEMBER(value, field, GPtrArray *), out);
        return;
    case FIELD_TYPE_OBJECTS:
        append_objects(field->record, CONST_MEMBER(value, field, GPtrArray *), out);
        return;
    case FIELD_TYPE_OBJECT:
        record_append(field->record, CONST_MEMBER(value, field, void *), out);
        return;
    case FIELD_TYPE_FLOAT: {
        json_autoptr json = write_field(field, value);
        append_json(out, json);
        return;
    }
    }
    g_assert_not_reached();
}

static bool is_absent(const struct field *field, const void *value)
{
    return (field->type == FIELD_TYPE_JSON && CONST_MEMBER(value, field, json_t *) == NULL) ||
           (field->type == FIELD_TYPE_OBJECT && CONST_MEMBER(value, field, void *) == NULL);
}

void record_append(const struct record *record, const void *value, GString *out)
{
    if (value == NULL) {
        g_string_append(out, "null");
        return;
    }
    char before = '{';
    for (const struct field *field = record->fields(); field->name != NULL; field++) {
        if (is_absent(field, value))
            continue;
        g_string_append_c(out, before);
        json_append_string(out, field->name);
        g_string_append_c(out, ':');
        record_field_append(field, value, out);
        before = ',';
    }
    const char *name;
    json_t *member;
    json_object_foreach(*record_extra(record, (void *)value), name, member) {
        g_string_append_c(out, before);
        json_append_string(out, name);
        g_string_append_c(out, ':');
        json_append(out, member);
        before = ',';
    }
    g_string_append(out, before == '{' ? "{}" : "}");
}

json_t *record_to_json(const struct record *record, const void *value)
{
    if (value == NULL)
        return NULL;
    json_t *json = json_object();
    for (const struct field *field = record->fields(); field->name != NULL; field++) {
        json_t *member = write_field(field, value);
        if (member != NULL && json_object_set_new_nocheck(json, field->name, member) != 0)
            g_error("%s.%s cannot be written", record->name, field->name);
        if (member == NULL)
            g_assert(field->type == FIELD_TYPE_JSON || field->type == FIELD_TYPE_OBJECT);
    }
    const json_t *extra = *record_extra(record, (void *)value);
    const char *name;
    json_t *member;
    json_object_foreach((json_t *)extra, name, member)
        json_object_set_new(json, name, json_deep_copy(member));
    return json;
}
