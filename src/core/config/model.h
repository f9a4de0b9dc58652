/*
 * The configuration in memory: objects by kind and key, each a typed struct (records.def) with its
 * version, at one serial. wconfd has the authoritative one; luxid, the watcher and jobs have copies
 * that follow it (follow.h). Pointers returned are valid until the object is next put or deleted.
 */
#pragma once

#include "proto/records.h"

typedef struct config config_t;

struct config *config_new(void);
/* The same, which stays as its owner has left it until the config_free() that goes with this: for
 * who waits with it in his hands. */
struct config *config_hold(struct config *config);
void config_free(struct config *config);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(config_t, config_free)
/* Removes every object; serial and history become 0. */
void config_reset(struct config *config);

guint64 config_history(const struct config *config);
guint64 config_serial(const struct config *config);
/* Of all its objects (proto/digest.h). */
guint64 config_digest(const struct config *config);
void config_set_position(struct config *config, guint64 history, guint64 serial);

/* Puts or deletes one object; does not touch the serial. WRONG_INPUT with kind, key and field path
 * if the object does not parse; the configuration is unchanged then. */
bool config_apply(struct config *config, const struct change *change, GError **error);
/* What stores are read with (`load` of proto/engine.h and proto/copy.h); the first error stays. */
struct config_loading {
    struct config *config;
    GError *error;
};
void config_load_object(const char *kind, const char *key, guint64 version, json_t *object,
                        void *loading);
/* For `load_text`. */
bool config_load_text(const char *kind, const char *key, guint64 version, const char *text,
                      void *loading);
/* Kinds whose objects are instances or may belong to one. */
bool config_is_part(const char *kind);
/* UUID of the instance that an object of such a kind is or belongs to, borrowed; NULL: of none, as
 * the tag of a node. */
const char *config_instance_of(const char *kind, const void *value);
/* Of instances and of what belongs to them it has only those of these names and UUIDs (a set of
 * texts, referenced; view.h). What it would answer wrongly then it does not answer: lists, counts,
 * users of addresses, sums and the question whether another instance exists end the process. */
void config_set_names(struct config *config, GHashTable *names);
/* It has objects of these kinds alone; asked for others, all or by name, it ends the process. */
void config_set_kinds(struct config *config, bool (*has)(const char *kind));
/* Puts everything of one into the other; objects are shared, the position stays. */
void config_share(const struct config *from, struct config *to);

/* The object as its typed struct; NULL if there is none. */
const void *config_get(const struct config *config, const char *kind, const char *key,
                       guint64 *ret_version);
/* By UUID or name, for kinds that have names; UNKNOWN_ENTITY: `instance "x" does not exist`. What
 * several have the name of, as volumes may, is found by UUID alone: WRONG_INPUT. */
const void *config_find(const struct config *config, const char *kind, const char *name_or_uuid,
                        GError **error);
/* UUIDs of all that have that name but of that one ("": none is left out), joined by ", ", at most
 * eight of them; "": nobody has it. Free with g_free(). */
char *config_keys_of_name(const struct config *config, const char *kind, const char *name,
                          const char *but);
/* All that have that name, and what has that UUID; array of borrowed pointers; unref it. */
GPtrArray *config_find_all(const struct config *config, const char *kind, const char *name_or_uuid);
/* All of a kind: keys sorted by name where there is one, else by key. Array of borrowed pointers;
 * unref it. */
GPtrArray *config_list(const struct config *config, const char *kind);
guint config_count(const struct config *config, const char *kind);
/* Whether this copy, of whatever part, has one. */
bool config_has_any(const struct config *config, const char *kind);
/* Objects of all kinds. */
guint config_total(const struct config *config);
/* Kinds of which there are objects, in the order of their bytes; array of borrowed char *; unref
 * it. */
GPtrArray *config_kinds(const struct config *config);
/* Keys of a kind in the order of their bytes; array of borrowed char *; unref it. */
GPtrArray *config_keys(const struct config *config, const char *kind);
json_t *config_object_json(const struct config *config, const char *kind,
                           const char *key); /* new reference */

const struct cluster *config_cluster(const struct config *config); /* NULL before the first load */
/* What is switched off for a while; NULL: nothing ever was. */
const struct switches *config_switches(const struct config *config);
/* Tags of one object, sorted; array of borrowed char *; unref it. */
GPtrArray *config_tags(const struct config *config, enum tag_kind kind, const char *object);
bool config_has_tags(const struct config *config, enum tag_kind kind, const char *object);
char *config_tag_key(enum tag_kind kind, const char *object, const char *tag);
/* A UUID that follows from another one and a text, so that the same is made of the same. Free with
 * g_free(). */
char *config_derived_uuid(const char *of, const char *text);
/* UUID of the service of that name on a node (UUID). Free with g_free(). */
char *config_service_key(const char *node, const char *name);
/* UUID of the storage service of these three, the key of its record; `backend` "": a scheduler's.
 * Free with g_free(). */
char *config_storage_service_key(enum storage_binary binary, const char *host, const char *backend);
/* Keys of a row of work, `Volume/UUID`, and of trash, `BACKEND/NAME`. Free with g_free(). */
char *config_work_key(enum resource_type type, const char *resource);
char *config_trash_key(const char *backend, const char *name);
/* Of a cleanup, `SERVICE_ID`, or `SERVICE_ID/TYPE/UUID` where it is of that resource alone; of a
 * kind alone, `SERVICE_ID/TYPE`. Free with g_free(). */
char *config_cleanup_key(guint64 service_id, const char *resource_type, const char *resource);
/* How messages name a storage service: `cinder-volume node1@dir1`; free with g_free(). */
char *config_storage_service_name(const struct config *config,
                                  const struct storage_service *service);
/* `node1@dir1`, or of a scheduler its host; and what OpenStack calls its cluster, `fettle@dir1`, or
 * "" of a scheduler. Free with g_free(). */
char *config_storage_service_host(const struct config *config,
                                  const struct storage_service *service);
char *config_storage_service_cluster(const struct config *config,
                                     const struct storage_service *service);
/* How they name a volume: by its name, or by its UUID if it has none. */
const char *config_volume_name(const struct volume *volume);
/* The service that rows of work name by that number; NULL: there is none. */
const struct storage_service *config_storage_service_of(const struct config *config, guint64 id);
/* Rows of work that this service has, or that are for this back end (UUID) whoever has them, in the
 * order in which they were asked for; array of borrowed struct worker *; unref it. */
GPtrArray *config_service_work(const struct config *config, guint64 service_id);
GPtrArray *config_backend_work(const struct config *config, const char *backend);
/* Rows of other resources' work that hold this one, as partner or as source (SAF-120, 121); as
 * above. */
GPtrArray *config_held_work(const struct config *config, enum resource_type type, const char *uuid);
/* Volumes, snapshots, backups and images on a back end, and trash there, in no order; arrays of
 * borrowed pointers; unref them. */
GPtrArray *config_backend_volumes(const struct config *config, const char *backend);
GPtrArray *config_backend_snapshots(const struct config *config, const char *backend);
GPtrArray *config_backend_backups(const struct config *config, const char *backend);
GPtrArray *config_backend_images(const struct config *config, const char *backend);
/* Likewise those of a project, and the volumes of a type. */
GPtrArray *config_project_volumes(const struct config *config, const char *project);
GPtrArray *config_project_snapshots(const struct config *config, const char *project);
GPtrArray *config_project_backups(const struct config *config, const char *project);
GPtrArray *config_type_volumes(const struct config *config, const char *volume_type);
/* One that has that type, or is on its way to get it; NULL: there is none. */
const struct volume *config_volume_of_type(const struct config *config, const char *volume_type);
/* The size (GiB) that a volume has, or that its row of work is to give it. */
guint64 config_volume_gib(const struct config *config, const struct volume *volume);
GPtrArray *config_backend_trash(const struct config *config, const char *backend);
/* Snapshots of a volume (UUID), in the order in which they were asked for; likewise. */
GPtrArray *config_volume_snapshots(const struct config *config, const char *volume);
/* An instance other than `except` (UUID) that has a network card with this MAC address; NULL: none.
 */
const struct instance *config_mac_user(const struct config *config, const char *mac,
                                       const char *except);
/* Who else than `except` (UUID) has an address, a MAC or one of config_ip_key(), or a port
 * (config_port_key()), or has reserved it: `instance "web1"`, `job 17 for instance "web1"`. NULL:
 * nobody; free with g_free(). */
char *config_address_user(const struct config *config, const char *address, const char *except);
/* An IP address is unique on its link: ADDRESS@LINK. Free with g_free(). */
char *config_ip_key(const struct nic *nic);
/* The port of a display is unique in the cluster: `port 11000`. Free with g_free(). */
char *config_port_key(guint64 port);
/* Instances of which a node is the primary, the secondary or the target of a migration, by name;
 * array of borrowed pointers; unref it. See also allocated.h. */
GPtrArray *config_node_instances(const struct config *config, const char *node);
/* Name of a node for messages; the UUID itself if it is unknown, "nobody" for "". */
const char *config_node_name(const struct config *config, const char *uuid);

/* A put or delete for a commit, carrying the version that `config` has (0 if it has none). `object`
 * is stolen. */
struct change *config_put(const struct config *config, const char *kind, const char *key,
                          json_t *object);
struct change *config_delete(const struct config *config, const char *kind, const char *key);
/* Adds what takes an object's tags off record. */
void config_delete_tags(const struct config *config, enum tag_kind kind, const char *object,
                        GPtrArray *changes);
/* Adds what goes with the record of an instance, which itself the caller deletes: its replica, its
 * tags. The proof for nodes that were away that their copy is over stays (SAF-04). */
void config_delete_rest(const struct config *config, const struct instance *instance,
                        GPtrArray *changes);

/* --- shared objects: for wconfd, which keeps what is committed and what is on its way side by side
 * --- */

/* One version of one object; immutable, counted. A config holds a reference to each of its objects.
 */
struct config_object;
struct config_object *config_object_ref(struct config_object *object);
void config_object_unref(struct config_object *object);
const void *config_object_value(const struct config_object *object);
/* The object of `config`, borrowed; NULL if there is none. */
struct config_object *config_peek(const struct config *config, const char *kind, const char *key);
/* Makes `config` have exactly this version; NULL: no such object. */
void config_set(struct config *config, const char *kind, const char *key,
                struct config_object *object);
/* How many objects of the kind have that name. */
guint config_count_name(const struct config *config, const char *kind, const char *name);
/* For each object of every kind: kind, key, version. */
typedef void (*config_visit)(const char *kind, const char *key, guint64 version, const void *value,
                             void *data);
void config_each(const struct config *config, config_visit visit, void *data);
