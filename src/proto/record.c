/*
 * See record.h: parsing and writing. One function per direction, driven by the description of the
 * fields; texts of a command line and defaults are turned into JSON first, so that there is one set
 * of checks.
 */
#include "proto/record.h"

#include "proto/record_internal.h"

#include <string.h>

#define MEMBER(value, field, type) (*(type *)(void *)((char *)(value) + (field)->offset))
#define CONST_MEMBER(value, field, type)                                                           \
    (*(const type *)(const void *)((const char *)(value) + (field)->offset))

static json_t **extra_of(const struct record *record, void *value)
{
    return (json_t **)(void *)((char *)value + record->extra_offset);
}

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

/* --- parsing --- */

static void *parse_at(const struct record *record, const json_t *json, enum record_mode mode,
                      const struct place *place, GError **error);

/* The index of a place is the place in the list, also when a setting appends to it. */
static bool parse_elements(const struct field *field, GPtrArray *list, const json_t *json,
                           enum record_mode mode, const struct place *place, GError **error)
{
    size_t i;
    json_t *element;
    json_array_foreach(json, i, element)
    {
        const struct place at = {.outer = place, .index = list->len};
        void *taken = NULL;
        if (field->type == FIELD_TYPE_OBJECTS)
            taken = parse_at(field->record, element, mode, &at, error);
        else if (record_check_text(element, &at, error))
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
        MEMBER(value, field, json_t *) = json_deep_copy(json);
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

/* Fields that the record does not have. A null asks for nothing, so it is no reason to refuse a
 * request. */
static bool parse_unknown(const struct record *record, void *value, const json_t *json,
                          enum record_mode mode, const struct place *place, GError **error)
{
    const char *name;
    json_t *member;
    json_object_foreach((json_t *)json, name, member)
    {
        const struct place at = {.outer = place, .name = name};
        if (record_field(record, name) != NULL)
            continue;
        if (mode == RECORD_STRICT && !json_is_null(member))
            return record_refuse(error, &at, "is not known");
        if (mode == RECORD_KEEP) {
            json_t **extra = extra_of(record, value);
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
    json_decref(*extra_of(record, value));
    g_free(value);
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
            MEMBER(result, field, json_t *) = json_deep_copy(CONST_MEMBER(value, field, json_t *));
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
    *extra_of(record, result) = json_deep_copy(*extra_of(record, result));
    return result;
}

/* --- writing --- */

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
        return json_deep_copy(CONST_MEMBER(value, field, json_t *));
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

void record_field_append(const struct field *field, const void *value, GString *out)
{
    if (field->type == FIELD_TYPE_STRING || field->type == FIELD_TYPE_NAME ||
        field->type == FIELD_TYPE_UUID) {
        append_text(out, CONST_MEMBER(value, field, char *));
    } else if (field->type == FIELD_TYPE_UINT) {
        json_append_integer(out, (gint64)CONST_MEMBER(value, field, guint64));
    } else if (field->type == FIELD_TYPE_ENUM) {
        json_append_string(out, enum_word(field->words, CONST_MEMBER(value, field, int)));
    } else {
        json_autoptr json = write_field(field, value);
        if (json != NULL)
            json_append(out, json);
        else
            g_string_append(out, "null");
    }
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
    const json_t *extra = *extra_of(record, (void *)value);
    const char *name;
    json_t *member;
    json_object_foreach((json_t *)extra, name, member)
        json_object_set_new(json, name, json_deep_copy(member));
    return json;
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
