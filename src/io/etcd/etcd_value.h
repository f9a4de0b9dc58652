/*
 * Values in etcd that must not lie. etcd checks its log, and the form of its file, but no value in
 * that file: a bit that flips there is answered as if it had been stored. So what a master takes
 * for the configuration carries a checksum, together with the name of its key.
 *
 * Values without one are of a version before, and are taken as they are; a version before reads
 * those that have one.
 */
#pragma once

#include "base/json.h"

/* The object KIND/KEY as a value; g_free(). */
char *etcd_object_text(const char *kind, const char *key, guint64 version, const json_t *object);
/* False: it is not what was stored. `name` is "KIND/KEY". */
bool etcd_object_sound(const char *name, const char *value);
/* Whether an object or a list carries a checksum. */
bool etcd_value_is_checked(const char *value);
/* The text of the object in a value, g_free(); NULL: it cannot be read. */
char *etcd_object_parse(const char *value, guint64 *ret_version);

/* A number, the value of the key `name`; g_free(). */
char *etcd_count_text(const char *name, guint64 count);
/* False: it is not what was stored. */
bool etcd_count_parse(const char *name, const char *value, guint64 *ret_count);

/* A JSON array that is not empty, the value of the key `name`; g_free(). The checksum is one more
 * item of a form that no item has, which a version before passes over. */
char *etcd_list_text(const char *name, const json_t *list);
/* False: it is not what was stored. */
bool etcd_list_sound(const char *name, const char *value);
