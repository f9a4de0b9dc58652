/* Sample values for any record, made from its description: so that a test can walk every row of
 * every table. */
#pragma once

#include "proto/records.h"

/* A good value of a field that is not its default; `full`: parts have every field, else the
 * required ones. */
static inline json_t *sample_field(const struct field *field, bool full);

static inline json_t *sample_record(const struct record *record, bool full)
{
    json_t *json = json_object();
    for (const struct field *field = record->fields(); field->name != NULL; field++)
        if (full || field->required)
            json_object_set_new(json, field->name, sample_field(field, full));
    return json;
}

static inline json_t *sample_text(const struct field *field)
{
    g_autofree char *text = g_strnfill((gsize)MAX(field->min, 1), 's');
    return json_string(text);
}

static inline json_t *sample_field(const struct field *field, bool full)
{
    switch (field->type) {
    case FIELD_TYPE_STRING:
        return sample_text(field);
    case FIELD_TYPE_NAME:
        return json_string("sample-1");
    case FIELD_TYPE_UUID:
        return json_string("5a3b1e00-0000-4000-8000-0123456789ab");
    case FIELD_TYPE_UINT:
    case FIELD_TYPE_INT:
        return json_integer((json_int_t)MIN(MAX(field->min, 0) + 1, field->max));
    case FIELD_TYPE_FLOAT:
        return json_real(MAX(field->min, 0) + 0.5);
    case FIELD_TYPE_BOOL:
        return json_boolean(g_strcmp0(field->def, "true") != 0);
    case FIELD_TYPE_JSON:
        return json_make("[{s:i}, s]", "a", 1, "b");
    case FIELD_TYPE_ENUM: {
        int last = 0;
        while (field->words->words[last + 1] != NULL)
            last++;
        bool same = g_strcmp0(field->def, field->words->words[last]) == 0;
        return json_string(field->words->words[same ? 0 : last]);
    }
    case FIELD_TYPE_STRINGS:
        return json_make("[s]", "element");
    case FIELD_TYPE_OBJECT:
        return sample_record(field->record, full);
    case FIELD_TYPE_OBJECTS:
        return json_make("[o]", sample_record(field->record, full));
    }
    g_assert_not_reached();
}
