/*
 * What is found in a configuration other than by kind and key: a file for each family of objects,
 * model_index_address.c, model_index_node.c, model_index_storage.c, model_index_tag.c. A new index
 * is a word of the enum, and in model_index.c how its table is made and which records are put into
 * it. Inside of the configuration (model_private.h).
 */
#pragma once

#include "proto/records.h"

struct config_object;

enum config_index {
    INDEX_ADDRESSES, /* config_address_user()'s texts -> list: instances and reservations */
    INDEX_TAGS,      /* of each tag_kind: uuid -> set */
    INDEX_NODES = INDEX_TAGS + TAG_INSTANCE + 1, /* uuid of a node -> struct node_use */
    INDEX_SERVICES,                              /* number of a storage service -> list: itself */
    INDEX_SERVICE_WORK,    /* number of a storage service -> set: rows of work that it has */
    INDEX_BACKEND_WORK,    /* uuid of a back end -> set: rows of work for it */
    INDEX_HELD_WORK,       /* config_work_key() of a resource -> set: rows of others that hold it */
    INDEX_BACKEND_VOLUMES, /* uuid of a back end -> set */
    INDEX_BACKEND_SNAPSHOTS, /* … -> set */
    INDEX_BACKEND_BACKUPS,   /* … -> set */
    INDEX_BACKEND_IMAGES,    /* … -> set */
    INDEX_VOLUME_SNAPSHOTS,  /* uuid of a volume -> set */
    INDEX_BACKEND_TRASH,     /* uuid of a back end -> set */
    INDEX_INSTANCE_VOLUMES,  /* uuid of an instance -> set: volumes attached to it */
    INDEX_PROJECT_VOLUMES,   /* a project -> set: its volumes */
    INDEX_PROJECT_SNAPSHOTS, /* a project -> set */
    INDEX_PROJECT_BACKUPS,   /* a project -> set */
    INDEX_TYPE_VOLUMES,      /* uuid of a volume type -> set: volumes that have it */
    INDEX_TAKES,             /* uuid of a back end -> its sum (storage/takes.h) */
    INDEX_COUNT
};

/* They hold borrowed objects. */
struct config_indexes {
    GHashTable *tables[INDEX_COUNT];
};

void config_indexes_init(struct config_indexes *indexes);
void config_indexes_clear(struct config_indexes *indexes);
void config_indexes_free(struct config_indexes *indexes);
/* Puts an object into all that have its kind, or takes it out. */
void config_indexes_change(struct config_indexes *indexes, struct config_object *object, bool add);

/* Text -> GSList of struct config_object: where a text nearly always has one. */
GHashTable *index_lists_new(void);
void index_lists_change(GHashTable *index, const char *text, struct config_object *object,
                        bool add);
/* Set of struct config_object, each of a key of its own. In the order that it comes in there are no
 * addresses: who goes through it does the same in each run. */
GHashTable *index_set_new(void);
/* Text -> such a set, for any number. */
GHashTable *index_sets_new(void);
void index_sets_change(GHashTable *index, const char *text, struct config_object *object, bool add);
/* Values of the objects in a set (NULL: none) as they come; array of borrowed pointers; unref
 * it. */
GPtrArray *index_set_values(GHashTable *set);

/* --- model_index_address.c --- */
void index_addresses(struct config_indexes *indexes, struct config_object *object, bool add);
void index_reserved_addresses(struct config_indexes *indexes, struct config_object *object,
                              bool add);

/* --- model_index_node.c --- */
GHashTable *index_nodes_new(void);
void index_nodes(struct config_indexes *indexes, struct config_object *object, bool add);
void index_rooms(struct config_indexes *indexes, struct config_object *object, bool add);

/* --- model_index_storage.c --- */
void index_storage_service(struct config_indexes *indexes, struct config_object *object, bool add);
void index_worker(struct config_indexes *indexes, struct config_object *object, bool add);
void index_volume(struct config_indexes *indexes, struct config_object *object, bool add);
void index_snapshot(struct config_indexes *indexes, struct config_object *object, bool add);
void index_backup(struct config_indexes *indexes, struct config_object *object, bool add);
void index_image(struct config_indexes *indexes, struct config_object *object, bool add);
void index_trash(struct config_indexes *indexes, struct config_object *object, bool add);

/* --- model_index_tag.c --- */
void index_tag(struct config_indexes *indexes, struct config_object *object, bool add);
