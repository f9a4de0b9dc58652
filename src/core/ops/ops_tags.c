/*
 * OP_TAGS_SET, OP_TAGS_DEL. A tag is an object of its own, so tags need no lock: two jobs that set
 * different tags do not meet, and one that meets another looks again.
 */
#include "core/ops/ops.h"

#include <string.h>

static const char *object_kind(enum tag_kind kind)
{
    return enum_word(&tag_kind_words, (int)kind);
}

/* UUID of the tagged object; NULL with UNKNOWN_ENTITY. */
static const char *object_uuid(const struct op *op, enum tag_kind kind, const char *name,
                               GError **error)
{
    const struct config *config = op_config(op);
    const void *object = kind == TAG_CLUSTER ? config_cluster(config)
                                             : config_find(config, object_kind(kind), name, error);
    if (!object) {
        if (kind == TAG_CLUSTER)
            fettle_set_error(error, UNKNOWN_ENTITY, "there is no cluster yet");
        return NULL;
    }
    switch (kind) {
    case TAG_CLUSTER:
        return ((const struct cluster *)object)->uuid;
    case TAG_NODEGROUP:
        return ((const struct nodegroup *)object)->uuid;
    case TAG_NODE:
        return ((const struct node *)object)->uuid;
    case TAG_INSTANCE:
        return ((const struct instance *)object)->uuid;
    }
    return NULL;
}

/* For messages; the cluster needs no name. */
static char *subject_text(enum tag_kind kind, const char *name)
{
    return kind == TAG_CLUSTER ? g_strdup("the cluster")
                               : g_strdup_printf("%s \"%s\"", object_kind(kind), name);
}

bool op_check_tag(const char *tag, GError **error)
{
    if (!*tag) {
        fettle_set_error(error, WRONG_INPUT, "tags: a tag must not be empty");
        return false;
    }
    if (strlen(tag) > LIMIT_TAG_CHARS) {
        fettle_set_error(error, WRONG_INPUT, "tags: \"%.32s…\" is longer than %d characters", tag,
                         LIMIT_TAG_CHARS);
        return false;
    }
    for (const char *c = tag; *c; c++) {
        if (!g_ascii_isalnum(*c) && !strchr("_.+*/:@-", *c)) {
            fettle_set_error(error, WRONG_INPUT,
                             "tags: \"%s\" has characters other than letters, digits and "
                             "_ . + * / : @ -",
                             tag);
            return false;
        }
    }
    return true;
}

static bool tags_declare(struct op *op, GError **error)
{
    return true;
}

static bool has_tag(const struct op *op, const char *key)
{
    return config_get(op_config(op), "tag", key, NULL) != NULL;
}

/* --- set --- */

static bool set_check(struct op *op, GError **error)
{
    const struct op_tags_set *params = op->params;
    for (guint i = 0; i < params->tags->len; i++) {
        if (!op_check_tag(params->tags->pdata[i], error))
            return false;
    }
    const char *uuid = object_uuid(op, params->kind, params->name, error);
    if (!uuid)
        return false;
    g_autoptr(GPtrArray) known = config_tags(op_config(op), params->kind, uuid);
    if (known->len + params->tags->len <= LIMIT_TAGS_PER_OBJECT)
        return true;
    g_autofree char *subject = subject_text(params->kind, params->name);
    fettle_set_error(error, LIMIT, "%s would have more than %d tags", subject,
                     LIMIT_TAGS_PER_OBJECT);
    return false;
}

static bool build_set(struct op *op, GPtrArray *changes, void *data, GError **error)
{
    const struct op_tags_set *params = op->params;
    const char *uuid = object_uuid(op, params->kind, params->name, error);
    if (!uuid)
        return false;
    g_autoptr(GHashTable) seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    for (guint i = 0; i < params->tags->len; i++) {
        const char *word = params->tags->pdata[i];
        char *key = config_tag_key(params->kind, uuid, word);
        bool known = has_tag(op, key) || g_hash_table_contains(seen, key);
        if (!known) {
            struct tag tag = {.kind = params->kind, .object = (char *)uuid, .tag = (char *)word};
            op_put(op, changes, "tag", key, tag_to_json(&tag));
        }
        g_hash_table_add(seen, key);
    }
    return true;
}

static bool set_exec(struct op *op, GError **error)
{
    return op_commit_built(op, build_set, NULL, error);
}

/* --- delete --- */

static bool del_check(struct op *op, GError **error)
{
    const struct op_tags_del *params = op->params;
    const char *uuid = object_uuid(op, params->kind, params->name, error);
    if (!uuid)
        return false;
    for (guint i = 0; i < params->tags->len; i++) {
        const char *tag = params->tags->pdata[i];
        g_autofree char *key = config_tag_key(params->kind, uuid, tag);
        if (!has_tag(op, key)) {
            g_autofree char *subject = subject_text(params->kind, params->name);
            fettle_set_error(error, UNKNOWN_ENTITY, "%s has no tag \"%s\"", subject, tag);
            return false;
        }
    }
    return true;
}

/* A tag that somebody else has removed since the check is gone as wanted. */
static bool build_del(struct op *op, GPtrArray *changes, void *data, GError **error)
{
    const struct op_tags_del *params = op->params;
    const char *uuid = object_uuid(op, params->kind, params->name, error);
    if (!uuid)
        return false;
    g_autoptr(GHashTable) seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    for (guint i = 0; i < params->tags->len; i++) {
        char *key = config_tag_key(params->kind, uuid, params->tags->pdata[i]);
        if (has_tag(op, key) && !g_hash_table_contains(seen, key))
            op_delete(op, changes, "tag", key);
        g_hash_table_add(seen, key);
    }
    return true;
}

static bool del_exec(struct op *op, GError **error)
{
    return op_commit_built(op, build_del, NULL, error);
}

const struct op_impl ops_tags[] = {
    {"OP_TAGS_SET", tags_declare, set_check, set_exec},
    {"OP_TAGS_DEL", tags_declare, del_check, del_exec},
    {NULL},
};
