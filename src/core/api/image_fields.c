/* See image_fields.h. */
#include "core/api/image_fields.h"

#include <string.h>

#include "base/limits.h"
#include "core/api/image_common.h"

/* What every member's value is read into. */
struct said {
    const char *text;
    gint64 number;
    bool truth;
};

enum said_type { SAID_TEXT, SAID_NUMBER, SAID_TRUTH, SAID_TAGS };

static bool is_base_type(const char *key, enum said_type *ret)
{
    static const struct {
        const char *key;
        enum said_type type;
    } rows[] = {
        {"name", SAID_TEXT},        {"description", SAID_TEXT},      {"visibility", SAID_TEXT},
        {"disk_format", SAID_TEXT}, {"container_format", SAID_TEXT}, {"min_disk", SAID_NUMBER},
        {"min_ram", SAID_NUMBER},   {"protected", SAID_TRUTH},       {"os_hidden", SAID_TRUTH},
        {"tags", SAID_TAGS}};
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++)
        if (!strcmp(rows[i].key, key)) {
            *ret = rows[i].type;
            return true;
        }
    return false;
}

static bool read_only(const char *key, GError **error)
{
    fettle_set_error(error, PERMISSION, "Attribute '%s' is read-only.", key);
    return false;
}

static bool wrong_type(const char *key, const char *what, GError **error)
{
    fettle_set_error(error, WRONG_INPUT, "%s: must be %s", key, what);
    return false;
}

static bool read_value(const char *key, enum said_type type, const json_t *value, struct said *ret,
                       GError **error)
{
    guint64 most = !strcmp(key, "min_disk") ? LIMIT_VOLUME_GIB : LIMIT_MEMORY_MIB;
    *ret = (struct said){.text = ""};
    switch (type) {
    case SAID_TEXT:
        if (!json_is_string(value) || g_utf8_strlen(json_string_value(value), -1) > 255)
            return wrong_type(key, "a text of 255 letters at most", error);
        ret->text = json_string_value(value);
        return true;
    case SAID_NUMBER:
        ret->number = json_integer_value(value);
        if (!json_is_integer(value) || ret->number < 0 || (guint64)ret->number > most)
            return wrong_type(key, "a number, and not larger than anything here has", error);
        return true;
    case SAID_TRUTH:
        ret->truth = json_is_true(value);
        return json_is_boolean(value) || wrong_type(key, "true or false", error);
    case SAID_TAGS:
    default:
        for (size_t i = 0; i < json_array_size(value); i++)
            if (!json_is_string(json_array_get(value, i)) ||
                g_utf8_strlen(json_string_value(json_array_get(value, i)), -1) > 255)
                return wrong_type(key, "a list of texts of 255 letters at most", error);
        return json_is_array(value) || wrong_type(key, "a list of texts", error);
    }
}

static bool read_word(const char *key, const struct enum_words *words, const char *listed,
                      const char *text, int *ret, GError **error)
{
    *ret = enum_parse(words, text);
    if (*ret >= 0)
        return true;
    fettle_set_error(error, WRONG_INPUT, "%s: must be %s, not \"%s\"", key, listed, text);
    return false;
}

#define FORMATS_LISTED "raw or qcow2"
#define VISIBILITIES_LISTED "private, public, shared or community"

static bool is_bare(const char *key, const char *text, GError **error)
{
    return !strcmp(text, "bare") ||
           wrong_type(key, "bare: an image is its bytes, and nothing is around them", error);
}

/* KEY=VALUE; NULL with the error. */
static char *property_of(const char *key, const json_t *value, GError **error)
{
    g_autofree char *control = text_control(key);
    if (!*key || strchr(key, '=') || control || g_utf8_strlen(key, -1) > 255)
        fettle_set_error(error, WRONG_INPUT,
                         "\"%s\": a property's name has 1 to 255 letters, none of which is =", key);
    else if (!json_is_string(value))
        fettle_set_error(error, WRONG_INPUT, "%s: a property is a text", key);
    else if (strlen(key) + strlen(json_string_value(value)) >= LIMIT_STRING_CHARS)
        fettle_set_error(error, WRONG_INPUT, "%s: a property has %d letters at most", key,
                         LIMIT_STRING_CHARS - 1);
    else
        return g_strconcat(key, "=", json_string_value(value), NULL);
    return NULL;
}

static void add_tags(GPtrArray *tags, const json_t *value)
{
    for (size_t i = 0; i < json_array_size(value); i++) {
        const char *tag = json_string_value(json_array_get(value, i));
        if (!g_ptr_array_find_with_equal_func(tags, tag, g_str_equal, NULL))
            g_ptr_array_add(tags, g_strdup(tag));
    }
}

/* --- one that is made --- */

static bool add_base(struct add_image_args *args, const char *key, const struct said *said,
                     GError **error)
{
    int word;
    if (!strcmp(key, "name"))
        text_set(&args->name, said->text);
    else if (!strcmp(key, "description"))
        text_set(&args->description, said->text);
    else if (!strcmp(key, "min_disk"))
        args->min_disk = (guint64)said->number;
    else if (!strcmp(key, "min_ram"))
        args->min_ram = (guint64)said->number;
    else if (!strcmp(key, "protected"))
        args->protected = said->truth;
    else if (!strcmp(key, "os_hidden"))
        args->hidden = said->truth;
    else if (!strcmp(key, "container_format"))
        return is_bare(key, said->text, error);
    else if (!strcmp(key, "disk_format")) {
        if (!read_word(key, &disk_format_words, FORMATS_LISTED, said->text, &word, error))
            return false;
        args->disk_format = (enum disk_format)word;
    } else {
        if (!read_word(key, &image_visibility_words, VISIBILITIES_LISTED, said->text, &word, error))
            return false;
        args->visibility = (enum image_visibility)word;
    }
    return true;
}

bool image_field_add(struct add_image_args *args, const char *key, const json_t *value,
                     GError **error)
{
    enum said_type type;
    struct said said;
    if (json_is_null(value))
        return true;
    if (is_base_type(key, &type)) {
        if (!read_value(key, type, value, &said, error))
            return false;
        if (type != SAID_TAGS)
            return add_base(args, key, &said, error);
        add_tags(args->tags, value);
        return true;
    }
    if (!strcmp(key, "owner") || image_is_base(key))
        return read_only(key, error);
    char *property = property_of(key, value, error);
    if (property)
        g_ptr_array_add(args->properties, property);
    return property;
}

/* --- what is to be different --- */

static bool change_text(struct change_image_args *args, char **field, const char *name,
                        const char *text)
{
    text_set(field, text);
    if (!*text)
        g_ptr_array_add(args->clear, g_strdup(name));
    return true;
}

static bool change_base(struct change_image_args *args, const char *key, const struct said *said,
                        GError **error)
{
    int word;
    if (!strcmp(key, "name"))
        return change_text(args, &args->name, key, said->text);
    if (!strcmp(key, "description"))
        return change_text(args, &args->description, key, said->text);
    if (!strcmp(key, "container_format"))
        return is_bare(key, said->text, error);
    if (!strcmp(key, "min_disk"))
        args->min_disk = said->number;
    else if (!strcmp(key, "min_ram"))
        args->min_ram = said->number;
    else if (!strcmp(key, "protected"))
        args->protected = said->truth;
    else if (!strcmp(key, "os_hidden"))
        args->hidden = said->truth;
    else if (!strcmp(key, "disk_format")) {
        if (!read_word(key, &disk_format_words, FORMATS_LISTED, said->text, &word, error))
            return false;
        text_set(&args->disk_format, said->text);
    } else {
        if (!read_word(key, &image_visibility_words, VISIBILITIES_LISTED, said->text, &word, error))
            return false;
        text_set(&args->visibility, said->text);
    }
    return true;
}

/* Those that it has and is not to have go. */
static void replace_tags(struct change_image_args *args, const struct image *image,
                         const json_t *value)
{
    g_ptr_array_set_size(args->add_tags, 0);
    g_ptr_array_set_size(args->remove_tags, 0);
    add_tags(args->add_tags, value);
    for (guint i = 0; i < image->tags->len; i++)
        if (!g_ptr_array_find_with_equal_func(args->add_tags, image->tags->pdata[i], g_str_equal,
                                              NULL))
            g_ptr_array_add(args->remove_tags, g_strdup(image->tags->pdata[i]));
}

static bool change_property(struct change_image_args *args, const char *key, const json_t *value,
                            GError **error)
{
    char *property = value ? property_of(key, value, error) : g_strdup(key);
    if (property)
        g_ptr_array_add(value ? args->properties : args->remove_properties, property);
    return property;
}

bool image_field_change(struct change_image_args *args, const struct image *image, const char *key,
                        const json_t *value, GError **error)
{
    enum said_type type;
    struct said said = {.text = ""};
    if (!is_base_type(key, &type))
        return image_is_base(key) ? read_only(key, error)
                                  : change_property(args, key, value, error);
    if (!value && strcmp(key, "description") != 0) {
        fettle_set_error(error, PERMISSION, "Attribute '%s' cannot be removed.", key);
        return false;
    }
    bool empties = json_is_null(value) && type == SAID_TEXT;
    if (value && !empties && !read_value(key, type, value, &said, error))
        return false;
    if (type != SAID_TAGS)
        return change_base(args, key, &said, error);
    replace_tags(args, image, value);
    return true;
}
