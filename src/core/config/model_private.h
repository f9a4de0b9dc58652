/*
 * Inside of the configuration: model.c (objects by kind and key), model_load.c (objects from JSON),
 * model_list.c (all of a kind in order), model_part.c (configurations that have a part),
 * model_index*.c, storage/takes.c. Only these include this.
 *
 * The indexes are kept in step by config_set(), which is the one way in and out of a configuration:
 * an object is taken out of them before it is dropped and put in after it is there.
 */
#pragma once

#include "core/config/model.h"
#include "core/config/model_index.h"

struct config_object {
    guint refs;
    const struct record *record;
    char *key;
    guint64 version;
    void *value;
};

struct kind {
    const struct record *record;
    const struct field *name; /* NULL: they are not found by name */
    GHashTable *by_key;       /* key -> struct config_object */
    GHashTable *by_name;      /* name -> GSList of struct config_object; NULL without names */
    GPtrArray *sorted;        /* made when first asked for, kept in order from then on */
};

struct config {
    guint64 history;
    guint64 serial;
    guint64 digest;    /* of all objects (proto/digest.h) */
    GHashTable *kinds; /* name of kind -> struct kind */
    struct config_indexes indexes;
    guint holders;
    GHashTable *names; /* of the instances that it is limited to; NULL: it has all */
    bool (*has_kind)(const char *kind); /* NULL: it has all */
};

/* The text of a field of an object's value. */
static inline const char *string_member(const void *value, const struct field *field)
{
    return *(char *const *)((const char *)value + field->offset);
}

/* NULL: there are no objects of that kind. */
struct kind *kind_find(const struct config *config, const char *name);
/* Keep its sorted list in step, if there is one. An object is there until it is removed. */
void kind_sorted_add(struct kind *kind, struct config_object *object);
void kind_sorted_remove(struct kind *kind, const struct config_object *object);

/* Ends the process if the copy has not all instances: `what` asks for all. */
void config_need_all(const struct config *config, const char *what);
/* The same if it has none of a kind. */
void config_need_kind(const struct config *config, const char *kind);
/* Both, for whoever asks for all of a kind. */
void config_need_all_of(const struct config *config, const char *kind);
