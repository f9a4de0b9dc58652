/*
 * See record.h: from JSON. Texts of a command line and defaults are turned into JSON first, so that
 * there is one set of checks.
 */
#include "proto/record.h"

#include "proto/record_private.h"

#include <string.h>

static void *parse_at(const struct record *record, const json_t *json, enum record_mode mode,
                      const struct place *place, GError **error);

static bool is_allowed(const char *text, enum record_mode mode, const struct place *place,
                       GError **error)
{
    return mode != RECORD_STRICT || record_check_line(text, place, error);
}

/* The index of a place is the place in the list, also when a setting appends to it. */
static bool parse_elements(const struct field *field, GPtrArray *list, const json_t *json,
                           enum record_mode mode, const struct place *place, GError **error)
{
    size_t i;
    json_t *element;
    json_array_foreach(json, i, element) {
        const struct place at = {.outer = place, .index = list->len};
        void *taken = NULL;
        if (field->type == FIELD_TYPE_OBJECTS)
            taken = parse_at(field->record, element, mode, &at, error);
        else if (record_check_text(element, &at, error) &&
                 is_allowed(json_string_value(element), mode, &at, error))
            taken = g_strdup(json_string_value(element));
        if (taken == NULL)
            return false;
        g_ptr_array_add(list, taken);
    }
    return true;
}

/* Checks a JSON value that is there and puts it into the member; lists append, everything else
 * replaces. */
static bool parse_field(const struct field *field, void *value, const json_t *json,
                        enum record_mode mode, const struct place *place, GError **error)
{
    if (!record_check(field, json, place, error))
        return false;
    switch (field->type) {
    case FIELD_TYPE_STRING:
    case FIELD_TYPE_NAME:
    case FIELD_TYPE_UUID:
        if (!is_allowed(json_string_value(json), mode, place, error))
            return false;
        g_free(MEMBER(value, field, char *));
        MEMBER(value, field, char *) = g_strdup(json_string_value(json));
        return true;
    case FIELD_TYPE_UINT:
        MEMBER(value, field, guint64) = (guint64)json_integer_value(json);
        return true;
    case FIELD_TYPE_INT:
        MEMBER(value, field, gint64) = json_integer_value(json);
        return true;
    case FIELD_TYPE_FLOAT:
        MEMBER(value, field, double) = json_number_value(json);
        return true;
    case FIELD_TYPE_BOOL:
        MEMBER(value, field, bool) = json_is_true(json);
        return true;
    case FIELD_TYPE_ENUM:
        MEMBER(value, field, int) = enum_parse(field->words, json_string_value(json));
        return true;
    case FIELD_TYPE_JSON:
        json_decref(MEMBER(value, field, json_t *));
        MEMBER(value, field, json_t *) = record_json_copy(field, json);
        return true;
    case FIELD_TYPE_STRINGS:
    case FIELD_TYPE_OBJECTS: {
        GPtrArray *list = MEMBER(value, field, GPtrArray *);
        return record_check_count(field, list->len + json_array_size(json), place, error) &&
               parse_elements(field, list, json, mode, place, error);
    }
    case FIELD_TYPE_OBJECT: {
        void *object = parse_at(field->record, json, mode, place, error);
        if (object == NULL)
            return false;
        record_free(field->record, MEMBER(value, field, void *));
        MEMBER(value, field, void *) = object;
        return true;
    }
    }
    g_assert_not_reached();
}

static bool asks_for_something(const json_t *member, enum record_mode mode)
{
    if (mode != RECORD_FILLED)
        return !json_is_null(member);
    return json_is_true(member) || (json_is_number(member) && json_number_value(member) != 0) ||
           (json_is_string(member) && json_string_length(member) > 0) ||
           json_array_size(member) > 0 || json_object_size(member) > 0;
}

/* Fields that the record does not have. What asks for nothing is no reason to refuse a request. */
static bool parse_unknown(const struct record *record, void *value, const json_t *json,
                          enum record_mode mode, const struct place *place, GError **error)
{
    const char *name;
    json_t *member;
    json_object_foreach((json_t *)json, name, member) {
        const struct place at = {.outer = place, .name = name};
        if (record_field(record, name) != NULL)
            continue;
        if (mode <= RECORD_FILLED && asks_for_something(member, mode))
            return record_refuse(error, &at, "is not known");
        if (mode == RECORD_KEEP) {
            json_t **extra = record_extra(record, value);
            if (*extra == NULL)
                *extra = json_object();
            json_object_set_new(*extra, name, json_deep_copy(member));
        }
    }
    return true;
}

/* The members of an object in the order of its fields. Objects that we have written are in that
 * order already, and need not be searched. */
struct walk {
    const json_t *json;
    void *next;
};

static const json_t *walk_to(struct walk *walk, const char *name)
{
    if (walk->next == NULL || strcmp(json_object_iter_key(walk->next), name) != 0)
        return json_object_get(walk->json, name);
    const json_t *member = json_object_iter_value(walk->next);
    walk->next = json_object_iter_next((json_t *)walk->json, walk->next);
    return member;
}

/* Every member that is there, or else its default, of a struct that is all zero. */
static bool parse_fields(const struct record *record, void *value, const json_t *json,
                         enum record_mode mode, const struct place *place, GError **error)
{
    size_t seen = 0;
    struct walk walk = {json, json_object_iter((json_t *)json)};
    for (const struct field *field = record->fields(); field->name != NULL; field++) {
        const json_t *member = walk_to(&walk, field->name);
        if (member != NULL)
            seen++;
        const struct place at = {.outer = place, .name = field->name};
        bool absent = member == NULL || json_is_null(member);
        if (absent && field->required)
            return record_refuse(error, &at, "is missing");
        if (absent || field->type == FIELD_TYPE_STRINGS || field->type == FIELD_TYPE_OBJECTS)
            record_init_field(record, field, value);
        if (!absent && !parse_field(field, value, member, mode, &at, error))
            return false;
    }
    return seen == json_object_size(json) || parse_unknown(record, value, json, mode, place, error);
}

static void *parse_at(const struct record *record, const json_t *json, enum record_mode mode,
                      const struct place *place, GError **error)
{
    const struct place itself = {.name = record->name};
    if (!json_is_object(json)) {
        record_refuse(error, place != NULL ? place : &itself, "must be an object");
        return NULL;
    }
    void *value = g_malloc0(record->size);
    if (parse_fields(record, value, json, mode, place, error))
        return value;
    record_free(record, value);
    return NULL;
}

void *record_parse(const struct record *record, const json_t *json, enum record_mode mode,
                   GError **error)
{
    return parse_at(record, json, mode, NULL, error);
}

/* --- settings as text --- */

bool record_set_text(const struct record *record, void *value, const char *name, const char *text,
                     GError **error)
{
    const struct field *field = record_field(record, name);
    if (field == NULL) {
        fettle_set_error(error, WRONG_INPUT, "%s: is not known", name);
        return false;
    }
    json_autoptr json = record_text_to_json(field, text, name, error);
    const struct place place = {.name = name};
    return json != NULL && parse_field(field, value, json, RECORD_STRICT, &place, error);
}
