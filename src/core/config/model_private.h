/*
 * What model.c and model_index.c share. Only these two include this.
 *
 * The indexes are kept in step by config_set(), which is the one way in and out of a configuration:
 * an object is taken out of them before it is dropped and put in after it is there. They hold
 * borrowed objects.
 */
#pragma once

#include "core/config/model.h"

struct config_object {
    guint refs;
    const struct record *record;
    char *key;
    guint64 version;
    void *value;
};

struct config_indexes {
    GHashTable *addresses; /* MAC, or IP@LINK -> GSList of struct config_object: instances and
                              reservations */
    GHashTable *tags[TAG_INSTANCE + 1]; /* of each tag_kind: uuid -> set of struct config_object */
    GHashTable *uses;                   /* uuid of a node -> struct node_use */
};

void config_indexes_init(struct config_indexes *indexes);
void config_indexes_clear(struct config_indexes *indexes);
void config_indexes_free(struct config_indexes *indexes);
void config_indexes_change(struct config_indexes *indexes, struct config_object *object, bool add);
const struct config_indexes *config_indexes(const struct config *config);
/* Ends the process if the copy has not all instances: `what` asks for all. */
void config_need_all(const struct config *config, const char *what);

/* Text -> GSList of struct config_object. */
GHashTable *index_lists_new(void);
void index_lists_clear(GHashTable *index);
void index_lists_change(GHashTable *index, const char *text, struct config_object *object,
                        bool add);
