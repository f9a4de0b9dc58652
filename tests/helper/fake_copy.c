/* See fake_copy.h. */
#include "helper/fake_copy.h"

#include "base/error.h"
#include "proto/digest.h"
#include "proto/records.h"

struct fake_copy {
    struct copy base;
    struct copy_position at;
    GHashTable *objects, *filling; /* "kind key" -> struct change */
    GHashTable *ids;               /* commit id -> serial (pointer) */
    guint fail, refills;
    char *damage;
};

static void free_change(void *data)
{
    change_free(data);
}

static GHashTable *table_new(void)
{
    return g_hash_table_new_full(g_str_hash, g_str_equal, g_free, free_change);
}

static struct fake_copy *of(struct copy *base)
{
    return (struct fake_copy *)base;
}

static bool may_write(struct fake_copy *copy, GError **error)
{
    if (copy->fail == 0)
        return true;
    copy->fail--;
    fettle_set_error(error, STORAGE, "the disk has failed");
    return false;
}

static void put_all(GHashTable *table, const GPtrArray *changes)
{
    for (guint i = 0; i < changes->len; i++) {
        const struct change *change = changes->pdata[i];
        char *name = g_strdup_printf("%s %s", change->kind, change->key);
        if (change->op == CHANGE_PUT) {
            g_hash_table_replace(table, name, change_copy(change));
        } else {
            g_hash_table_remove(table, name);
            g_free(name);
        }
    }
}

static void take_ids(struct fake_copy *copy, const GPtrArray *ids)
{
    for (guint i = 0; ids && i < ids->len; i++) {
        const struct stored_commit *commit = ids->pdata[i];
        g_hash_table_replace(copy->ids, g_strdup(commit->id),
                             GUINT_TO_POINTER((guint)commit->serial));
    }
}

static guint64 digest_of(GHashTable *table)
{
    guint64 digest = 0;
    GHashTableIter iter;
    void *value;
    g_hash_table_iter_init(&iter, table);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        const struct change *change = value;
        digest ^= digest_object(change->kind, change->key, change->version);
    }
    return digest;
}

/* --- the interface --- */

static void position(struct copy *base, struct copy_position *ret_position)
{
    *ret_position = of(base)->at;
    ret_position->digest = digest_of(of(base)->objects);
}

static bool load(struct copy *base,
                 void (*each)(const char *kind, const char *key, guint64 version, json_t *object,
                              void *data),
                 void *data, GError **error)
{
    GHashTableIter iter;
    void *value;
    g_hash_table_iter_init(&iter, of(base)->objects);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        const struct change *change = value;
        each(change->kind, change->key, change->version, change->object, data);
    }
    return true;
}

static bool apply(struct copy *base, const struct copy_batch *batch, GError **error)
{
    struct fake_copy *copy = of(base);
    if (!may_write(copy, error))
        return false;
    g_assert_cmpuint(batch->history, ==, copy->at.history);
    g_assert_true(batch->serial > copy->at.serial ||
                  (batch->serial == copy->at.serial && batch->changes->len == 0));
    put_all(copy->objects, batch->changes);
    take_ids(copy, batch->ids);
    copy->at.serial = batch->serial;
    copy->at.epoch = batch->epoch;
    return true;
}

static bool refill_begin(struct copy *base, GError **error)
{
    struct fake_copy *copy = of(base);
    g_hash_table_remove_all(copy->filling);
    return may_write(copy, error);
}

static bool refill_piece(struct copy *base, const GPtrArray *changes, GError **error)
{
    if (!may_write(of(base), error))
        return false;
    put_all(of(base)->filling, changes);
    return true;
}

static bool refill_end(struct copy *base, const struct copy_batch *end, GError **error)
{
    struct fake_copy *copy = of(base);
    if (!may_write(copy, error))
        return false;
    g_hash_table_unref(copy->objects);
    copy->objects = copy->filling;
    copy->filling = table_new();
    copy->at = (struct copy_position){COPY_FOLLOWS, end->history, end->epoch, end->serial, 0};
    g_hash_table_remove_all(copy->ids);
    take_ids(copy, end->ids);
    copy->refills++;
    return true;
}

static bool set_role(struct copy *base, enum copy_role role, const struct copy_batch *last,
                     GError **error)
{
    if (last ? !apply(base, last, error) : !may_write(of(base), error))
        return false;
    of(base)->at.role = role;
    return true;
}

static bool scrub(struct copy *base, GError **error)
{
    if (of(base)->damage)
        fettle_set_error(error, CORRUPT, "%s", of(base)->damage);
    return !of(base)->damage;
}

static bool renew(struct copy *base, GError **error)
{
    struct fake_copy *copy = of(base);
    if (!may_write(copy, error))
        return false;
    g_clear_pointer(&copy->damage, g_free);
    g_hash_table_remove_all(copy->objects);
    g_hash_table_remove_all(copy->ids);
    copy->at = (struct copy_position){.role = COPY_FOLLOWS};
    return true;
}

static void close_copy(struct copy *base)
{
}

static const struct copy_ops ops = {position,   load,     apply, refill_begin, refill_piece,
                                    refill_end, set_role, scrub, renew,        close_copy};

struct fake_copy *fake_copy_new(void)
{
    struct fake_copy *copy = g_new0(struct fake_copy, 1);
    copy->base.ops = &ops;
    copy->at.role = COPY_FOLLOWS;
    copy->objects = table_new();
    copy->filling = table_new();
    copy->ids = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    return copy;
}

void fake_copy_free(struct fake_copy *copy)
{
    g_hash_table_unref(copy->objects);
    g_hash_table_unref(copy->filling);
    g_hash_table_unref(copy->ids);
    g_free(copy->damage);
    g_free(copy);
}

struct copy *fake_copy_base(struct fake_copy *copy)
{
    return &copy->base;
}

void fake_copy_fail(struct fake_copy *copy, guint count)
{
    copy->fail = count;
}

guint64 fake_copy_lookup(const struct fake_copy *copy, const char *commit_id)
{
    return GPOINTER_TO_UINT(g_hash_table_lookup(copy->ids, commit_id));
}

guint fake_copy_refills(const struct fake_copy *copy)
{
    return copy->refills;
}

void fake_copy_corrupt(struct fake_copy *copy)
{
    GHashTableIter iter;
    void *value;
    g_hash_table_iter_init(&iter, copy->objects);
    g_assert_true(g_hash_table_iter_next(&iter, NULL, &value));
    ((struct change *)value)->version++;
}

void fake_copy_rot(struct fake_copy *copy, const char *what)
{
    g_free(copy->damage);
    copy->damage = g_strdup(what);
}
