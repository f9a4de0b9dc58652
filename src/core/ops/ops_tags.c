/*
 * OP_TAGS_SET, OP_TAGS_DEL, of one object or of all instances that match a filter (ARP-72). A tag
 * is an object of its own, so tags need no lock: two jobs that set different tags do not meet, and
 * one that meets another looks again.
 */
#include "core/ops/ops.h"
#include "core/query/query_select.h"
#include "core/repair/tags.h"

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
static char *subject_text(const struct op *op, enum tag_kind kind, const char *uuid)
{
    const char *name = uuid;
    const void *object = config_get(op_config(op), object_kind(kind), uuid, NULL);
    if (kind == TAG_CLUSTER)
        return g_strdup("the cluster");
    if (object && kind == TAG_NODEGROUP)
        name = ((const struct nodegroup *)object)->name;
    else if (object && kind == TAG_NODE)
        name = ((const struct node *)object)->name;
    else if (object)
        name = ((const struct instance *)object)->name;
    return g_strdup_printf("%s \"%s\"", object_kind(kind), name);
}

/* What both opcodes say about what they work on. */
struct wanted {
    enum tag_kind kind;
    const char *name;
    const json_t *filter; /* NULL or null: by name */
    const GPtrArray *tags;
};

static bool by_filter(const struct wanted *wanted)
{
    return wanted->filter && !json_is_null(wanted->filter);
}

/* UUIDs of the objects: GPtrArray of char *. */
static GPtrArray *find_objects(const struct op *op, const struct wanted *wanted, GError **error)
{
    if (by_filter(wanted) && wanted->kind != TAG_INSTANCE)
        fettle_set_error(error, WRONG_INPUT,
                         "filter: chooses instances, so the kind must be instance, not %s",
                         object_kind(wanted->kind));
    else if (by_filter(wanted) && *wanted->name)
        fettle_set_error(error, WRONG_INPUT, "name: give a name or a filter, not both");
    else if (by_filter(wanted))
        return query_select_instances(op_config(op), wanted->filter, error);
    else {
        const char *uuid = object_uuid(op, wanted->kind, wanted->name, error);
        GPtrArray *one = uuid ? g_ptr_array_new_with_free_func(g_free) : NULL;
        if (one)
            g_ptr_array_add(one, g_strdup(uuid));
        return one;
    }
    return NULL;
}

void op_warn_tags(struct op *op, const GPtrArray *tags)
{
    for (guint i = 0; tags && i < tags->len; i++) {
        g_autoptr(GError) unread = NULL;
        if (!repair_tag_check(tags->pdata[i], &unread))
            op_log(op, "%s", unread->message);
    }
}

/* A part of the objects that fits one transaction. */
struct part {
    const struct wanted *wanted;
    GPtrArray *objects;
    guint from, to;
    guint changed; /* out: objects with changes in it */
};

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

/* Adds a change for each tag of an object that has it not (set) or has it (delete). */
static guint change_object(struct op *op, GPtrArray *changes, const struct wanted *wanted,
                           const char *uuid, bool set)
{
    g_autoptr(GHashTable) seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    guint before = changes->len;
    for (guint i = 0; i < wanted->tags->len; i++) {
        const char *word = wanted->tags->pdata[i];
        char *key = config_tag_key(wanted->kind, uuid, word);
        struct tag tag = {.kind = wanted->kind, .object = (char *)uuid, .tag = (char *)word};
        bool change = has_tag(op, key) != set && !g_hash_table_contains(seen, key);
        if (change && set)
            op_put(op, changes, "tag", key, tag_to_json(&tag));
        else if (change)
            op_delete(op, changes, "tag", key);
        g_hash_table_add(seen, key);
    }
    return changes->len - before;
}

/* An object that is gone since it was looked up has no tags; a tag that somebody else has set or
 * removed meanwhile is as wanted. */
static bool build_part(struct op *op, GPtrArray *changes, struct part *part, bool set)
{
    part->changed = 0;
    for (guint i = part->from; i < part->to; i++) {
        const char *uuid = part->objects->pdata[i];
        bool there = config_get(op_config(op), object_kind(part->wanted->kind), uuid, NULL);
        if (there && change_object(op, changes, part->wanted, uuid, set))
            part->changed++;
    }
    return true;
}

static bool build_set(struct op *op, GPtrArray *changes, void *data, GError **error)
{
    return build_part(op, changes, data, true);
}

static bool build_del(struct op *op, GPtrArray *changes, void *data, GError **error)
{
    return build_part(op, changes, data, false);
}

/* One transaction, unless there are more changes than one can have. */
static bool change_all(struct op *op, const struct wanted *wanted, bool set, GError **error)
{
    g_autoptr(GPtrArray) objects = find_objects(op, wanted, error);
    if (!objects)
        return false;
    guint step = MAX(LIMIT_CHANGES_PER_COMMIT / MAX(wanted->tags->len, 1), 1);
    guint changed = 0;
    for (guint from = 0; from < objects->len; from += step) {
        struct part part = {wanted, objects, from, MIN(from + step, objects->len), 0};
        if (!op_commit_built(op, "change_tags", set ? build_set : build_del, &part, error))
            return false;
        changed += part.changed;
    }
    if (by_filter(wanted))
        op_log(op, "%u instances match; %u were %s", objects->len, changed,
               set ? "tagged" : "untagged");
    return true;
}

/* --- set --- */

static struct wanted set_wanted(const struct op *op)
{
    const struct op_tags_set *params = op->params;
    return (struct wanted){params->kind, params->name, params->filter, params->tags};
}

static bool set_check(struct op *op, GError **error)
{
    struct wanted wanted = set_wanted(op);
    for (guint i = 0; i < wanted.tags->len; i++) {
        if (!op_check_tag(wanted.tags->pdata[i], error))
            return false;
    }
    g_autoptr(GPtrArray) objects = find_objects(op, &wanted, error);
    for (guint i = 0; objects && i < objects->len; i++) {
        const char *uuid = objects->pdata[i];
        g_autoptr(GPtrArray) known = config_tags(op_config(op), wanted.kind, uuid);
        if (known->len + wanted.tags->len <= LIMIT_TAGS_PER_OBJECT)
            continue;
        g_autofree char *subject = subject_text(op, wanted.kind, uuid);
        fettle_set_error(error, LIMIT, "%s would have more than %d tags", subject,
                         LIMIT_TAGS_PER_OBJECT);
        return false;
    }
    return objects != NULL;
}

static bool set_exec(struct op *op, GError **error)
{
    struct wanted wanted = set_wanted(op);
    op_warn_tags(op, wanted.tags);
    return change_all(op, &wanted, true, error);
}

/* --- delete --- */

static struct wanted del_wanted(const struct op *op)
{
    const struct op_tags_del *params = op->params;
    return (struct wanted){params->kind, params->name, params->filter, params->tags};
}

/* Of one object every tag must be there; of many each gives up what it has. */
static bool del_check(struct op *op, GError **error)
{
    struct wanted wanted = del_wanted(op);
    g_autoptr(GPtrArray) objects = find_objects(op, &wanted, error);
    for (guint i = 0; objects && !by_filter(&wanted) && i < wanted.tags->len; i++) {
        const char *tag = wanted.tags->pdata[i];
        g_autofree char *key = config_tag_key(wanted.kind, objects->pdata[0], tag);
        if (has_tag(op, key))
            continue;
        g_autofree char *subject = subject_text(op, wanted.kind, objects->pdata[0]);
        fettle_set_error(error, UNKNOWN_ENTITY, "%s has no tag \"%s\"", subject, tag);
        return false;
    }
    return objects != NULL;
}

static bool del_exec(struct op *op, GError **error)
{
    struct wanted wanted = del_wanted(op);
    return change_all(op, &wanted, false, error);
}

const struct op_impl ops_tags[] = {
    {"OP_TAGS_SET", tags_declare, set_check, set_exec, SEES_TAGGED},
    {"OP_TAGS_DEL", tags_declare, del_check, del_exec, SEES_TAGGED},
    {NULL},
};
