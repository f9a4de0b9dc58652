/*
 * Objects from their JSON: a change that is applied, and what a store is loaded with. See model.h.
 */
#include "core/config/model_private.h"

#include <string.h>

#include "proto/change.h"
#include "proto/reader.h"

/* The key that an object of the kind must stand under; NULL: any. */
static char *natural_key(const struct record *record, const void *value)
{
    if (record == &tag_record) {
        const struct tag *tag = value;
        return config_tag_key(tag->kind, tag->object, tag->tag);
    }
    if (record == &job_record)
        return g_strdup_printf("%" G_GUINT64_FORMAT, ((const struct job *)value)->id);
    const struct field *uuid = record_field(record, "uuid");
    return uuid ? g_strdup(string_member(value, uuid)) : NULL;
}

/* Of a parsed value, which it owns from then on. */
static struct config_object *object_make(const struct change *change, const struct record *record,
                                         void *value, GError **error)
{
    g_autofree char *key = natural_key(record, value);
    if (key && strcmp(key, change->key) != 0) {
        fettle_set_error(error, WRONG_INPUT, "%s %s: the object says that its key is %s",
                         change->kind, change->key, key);
        record_free(record, value);
        return NULL;
    }
    struct config_object *object = g_new(struct config_object, 1);
    *object = (struct config_object){1, record, g_strdup(change->key), change->version, value};
    return object;
}

static struct config_object *object_parse(const struct change *change, const struct record *record,
                                          GError **error)
{
    if (!change->object) {
        fettle_set_error(error, WRONG_INPUT, "%s %s: object: is missing in a put", change->kind,
                         change->key);
        return NULL;
    }
    void *value = record_parse(record, change->object, RECORD_KEEP, error);
    if (!value) {
        g_prefix_error(error, "%s %s: ", change->kind, change->key);
        return NULL;
    }
    return object_make(change, record, value, error);
}

/* --- changes --- */

bool config_apply(struct config *config, const struct change *change, GError **error)
{
    const struct record *record = object_record(change->kind);
    if (!record) {
        fettle_set_error(error, WRONG_INPUT, "kind: \"%s\" is no kind of object", change->kind);
        return false;
    }
    if (change->op == CHANGE_DELETE) {
        config_set(config, change->kind, change->key, NULL);
        return true;
    }
    struct config_object *object = object_parse(change, record, error);
    if (!object)
        return false;
    config_set(config, change->kind, change->key, object);
    config_object_unref(object);
    return true;
}

/* --- loading --- */

/* A word that this version does not know, of a store of a newer one: which it is says what to do.
 */
static void name_word(const char *kind, const json_t *object, GError *error)
{
    const struct record *record = object_record(kind);
    for (const struct field *field = record ? record->fields() : NULL; field && field->name;
         field++) {
        const char *word = json_string_value(json_object_get(object, field->name));
        g_autofree char *says = g_strdup_printf(" %s: must be one of ", field->name);
        if (field->type != FIELD_TYPE_ENUM || !word || enum_parse(field->words, word) >= 0 ||
            !strstr(error->message, says))
            continue;
        char *whole = g_strdup_printf("%s, not \"%s\"", error->message, word);
        g_free(error->message);
        error->message = whole;
        return;
    }
}

void config_load_object(const char *kind, const char *key, guint64 version, json_t *object,
                        void *data)
{
    struct config_loading *loading = data;
    struct change change = {.op = CHANGE_PUT,
                            .kind = (char *)kind,
                            .key = (char *)key,
                            .version = version,
                            .object = object};
    if (!loading->error && !config_apply(loading->config, &change, &loading->error))
        name_word(kind, object, loading->error);
}

bool config_load_text(const char *kind, const char *key, guint64 version, const char *text,
                      void *data)
{
    struct config_loading *loading = data;
    const struct record *record = object_record(kind);
    struct reader reader = {text, text + strlen(text)};
    void *value = record && !loading->error ? record_read(record, &reader) : NULL;
    if (value && reader_is_over(&reader)) {
        struct change change = {
            .op = CHANGE_PUT, .kind = (char *)kind, .key = (char *)key, .version = version};
        struct config_object *object = object_make(&change, record, value, &loading->error);
        if (object)
            config_set(loading->config, kind, key, object);
        config_object_unref(object);
        return true;
    }
    if (value)
        record_free(record, value);
    json_autoptr json = json_parse_limited(text, strlen(text), LIMIT_FRAME_BYTES, NULL);
    if (json)
        config_load_object(kind, key, version, json, data);
    return json != NULL;
}
