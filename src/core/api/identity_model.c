/* See identity_model.h. */
#include "core/api/identity_model.h"

#include <string.h>

#include "base/task.h"

#define LIMIT_IDENTITY_TRIES 16 /* of a change, while others change the store */

/* Kinds that the store has, and so records of identity_records.def. */
static const struct record *const kinds[] = {
    &api_assignment_record,   &api_credential_record, &api_project_record, &api_quota_record,
    &api_default_type_record, &api_revoked_record,    &api_role_record,    &api_user_record,
};

struct identity {
    struct identity_store *store;
    guint64 version;                          /* of the store, that this is of; 0: of none */
    GHashTable *objects[G_N_ELEMENTS(kinds)]; /* key -> record */
    struct task_mutex changing;
};

/* -1: there is no such kind. */
static int index_of(const char *kind)
{
    for (guint i = 0; i < G_N_ELEMENTS(kinds); i++)
        if (!strcmp(kinds[i]->name, kind))
            return (int)i;
    return -1;
}

static GHashTable *objects_of(const struct identity *identity, const char *kind)
{
    int index = index_of(kind);
    g_assert(index >= 0);
    return identity->objects[index];
}

static const char *name_of(const struct record *record, const void *value)
{
    const struct field *field = record_field(record, "name");
    return field ? *(char *const *)((const char *)value + field->offset) : NULL;
}

/* --- from the store --- */

struct loading {
    GHashTable *objects[G_N_ELEMENTS(kinds)];
    GError *error;
};

static void load_object(const char *kind, const char *key, json_t *object, void *data)
{
    struct loading *loading = data;
    json_autoptr json = object;
    if (loading->error)
        return;
    int index = index_of(kind);
    g_autoptr(GError) why = NULL;
    void *value = NULL;
    if (index < 0)
        fettle_set_error(&why, CORRUPT, "no such kind is known");
    else
        value = record_parse(kinds[index], json, RECORD_KEEP, &why);
    if (value)
        g_hash_table_replace(loading->objects[index], g_strdup(key), value);
    else
        fettle_set_error(&loading->error, CORRUPT,
                         "%s %s of the identities cannot be read: %s; put api.db back from a copy, "
                         "or run the version that wrote it",
                         kind, key, why->message);
}

static bool load(struct identity *identity, GError **error)
{
    struct loading loading = {.error = NULL};
    for (guint i = 0; i < G_N_ELEMENTS(kinds); i++)
        loading.objects[i] =
            g_hash_table_new_full(g_str_hash, g_str_equal, g_free, kinds[i]->destroy);
    guint64 version;
    bool loaded =
        identity->store->ops->load(identity->store, load_object, &loading, &version, error);
    if (loading.error && !loaded) {
        g_clear_error(&loading.error);
    } else if (loading.error) {
        g_propagate_error(error, loading.error);
        loaded = false;
    }
    if (loaded)
        identity->version = version;
    for (guint i = 0; i < G_N_ELEMENTS(kinds); i++) {
        if (loaded) {
            GHashTable *old = identity->objects[i];
            identity->objects[i] = loading.objects[i];
            loading.objects[i] = old;
        }
        g_clear_pointer(&loading.objects[i], g_hash_table_unref);
    }
    return loaded;
}

struct identity *identity_new(struct identity_store *store, GError **error)
{
    struct identity *identity = g_new0(struct identity, 1);
    identity->store = store;
    if (load(identity, error))
        return identity;
    identity_free(identity);
    return NULL;
}

void identity_free(struct identity *identity)
{
    for (guint i = 0; i < G_N_ELEMENTS(kinds); i++)
        g_clear_pointer(&identity->objects[i], g_hash_table_unref);
    g_free(identity);
}

bool identity_refresh(struct identity *identity, GError **error)
{
    guint64 version;
    if (!identity->store->ops->version(identity->store, &version, error))
        return false;
    return version == identity->version || load(identity, error);
}

/* --- what is there --- */

const void *identity_get(const struct identity *identity, const char *kind, const char *key)
{
    return g_hash_table_lookup(objects_of(identity, kind), key);
}

const void *identity_named(const struct identity *identity, const char *kind, const char *name)
{
    const struct record *record = kinds[index_of(kind)];
    GHashTableIter iter;
    void *value;
    g_hash_table_iter_init(&iter, objects_of(identity, kind));
    while (g_hash_table_iter_next(&iter, NULL, &value))
        if (!g_strcmp0(name_of(record, value), name))
            return value;
    return NULL;
}

struct entry {
    const char *order;
    void *value;
};

static int compare_entries(const void *a, const void *b)
{
    return strcmp(((const struct entry *)a)->order, ((const struct entry *)b)->order);
}

GPtrArray *identity_list(const struct identity *identity, const char *kind)
{
    const struct record *record = kinds[index_of(kind)];
    g_autoptr(GArray) entries = g_array_new(FALSE, FALSE, sizeof(struct entry));
    GHashTableIter iter;
    void *key, *value;
    g_hash_table_iter_init(&iter, objects_of(identity, kind));
    while (g_hash_table_iter_next(&iter, &key, &value)) {
        const char *name = name_of(record, value);
        struct entry entry = {name ? name : key, value};
        g_array_append_val(entries, entry);
    }
    g_array_sort(entries, compare_entries);
    GPtrArray *list = g_ptr_array_new();
    for (guint i = 0; i < entries->len; i++)
        g_ptr_array_add(list, g_array_index(entries, struct entry, i).value);
    return list;
}

/* --- changes --- */

/* What could not be read again would be the end of every request. */
static bool can_be_read(const GPtrArray *changes, GError **error)
{
    for (guint i = 0; i < changes->len; i++) {
        const struct change *change = changes->pdata[i];
        if (change->op != CHANGE_PUT)
            continue;
        const struct record *record = kinds[index_of(change->kind)];
        g_autoptr(GError) why = NULL;
        void *value = record_parse(record, change->object, RECORD_KEEP, &why);
        if (!value) {
            fettle_set_error(error, WRONG_INPUT, "%s.%s", change->kind + strlen("api_"),
                             why->message);
            return false;
        }
        record_free(record, value);
    }
    return true;
}

static bool try_change(struct identity *identity,
                       bool (*decide)(struct identity *identity, GPtrArray *changes, void *data,
                                      GError **error),
                       void *data, GError **error)
{
    g_autoptr(GPtrArray) changes = change_list_new();
    guint64 version;
    if (!identity_refresh(identity, error) || !decide(identity, changes, data, error) ||
        !can_be_read(changes, error))
        return false;
    if (!changes->len)
        return true;
    return identity->store->ops->commit(identity->store, changes, identity->version, &version,
                                        error) &&
           identity_refresh(identity, error);
}

bool identity_failures(struct identity *identity, const char *user_id, gint64 note_us,
                       gint64 ret_us[IDENTITY_FAILURES], GError **error)
{
    return identity->store->ops->failures(identity->store, user_id, note_us, ret_us, error);
}

bool identity_change(struct identity *identity,
                     bool (*decide)(struct identity *identity, GPtrArray *changes, void *data,
                                    GError **error),
                     void *data, GError **error)
{
    if (!task_mutex_lock(&identity->changing))
        return fettle_set_ended(error, "the front end");
    bool changed = false;
    for (guint try = 0; !changed && try < LIMIT_IDENTITY_TRIES; try++) {
        g_autoptr(GError) why = NULL;
        changed = try_change(identity, decide, data, &why);
        if (changed)
            break;
        if (!fettle_error_is(why, VERSION_CONFLICT) || task_killed()) {
            g_propagate_error(error, g_steal_pointer(&why));
            break;
        }
        if (try == LIMIT_IDENTITY_TRIES - 1)
            fettle_set_error(error, TEMPORARY,
                             "other front ends change the identities all the time; try again");
    }
    task_mutex_unlock(&identity->changing);
    return changed;
}

void identity_put(GPtrArray *changes, const struct record *record, const char *key,
                  const void *value)
{
    g_ptr_array_add(changes,
                    change_make(CHANGE_PUT, record->name, key, 0, record_to_json(record, value)));
}

void identity_drop(GPtrArray *changes, const char *kind, const char *key)
{
    g_ptr_array_add(changes, change_make(CHANGE_DELETE, kind, key, 0, NULL));
}
