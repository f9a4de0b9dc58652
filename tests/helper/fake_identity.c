/* See fake_identity.h. */
#include "helper/fake_identity.h"

#include <string.h>

static void unref_json(void *json)
{
    json_decref(json);
}

static void call_meanwhile(void (**meanwhile)(void *), void *data)
{
    void (*fn)(void *) = *meanwhile;
    *meanwhile = NULL;
    if (fn)
        fn(data);
}

static bool is_broken(const struct fake_identity *fake, GError **error)
{
    if (fake->broken)
        fettle_set_error(error, STORAGE, "%s", fake->broken);
    return fake->broken;
}

static bool load(struct identity_store *store,
                 void (*visit)(const char *kind, const char *key, json_t *object, void *data),
                 void *data, guint64 *ret_version, GError **error)
{
    struct fake_identity *fake = (struct fake_identity *)store;
    if (is_broken(fake, error))
        return false;
    GHashTableIter iter;
    void *name, *object;
    g_hash_table_iter_init(&iter, fake->objects);
    while (g_hash_table_iter_next(&iter, &name, &object)) {
        g_auto(GStrv) words = g_strsplit(name, "/", 2);
        visit(words[0], words[1], json_deep_copy(object), data);
    }
    *ret_version = fake->version;
    return true;
}

static bool version(struct identity_store *store, guint64 *ret_version, GError **error)
{
    struct fake_identity *fake = (struct fake_identity *)store;
    *ret_version = fake->version;
    return !is_broken(fake, error);
}

static void put(struct fake_identity *fake, const char *kind, const char *key, json_t *object)
{
    char *name = g_strconcat(kind, "/", key, NULL);
    if (object) {
        g_hash_table_replace(fake->objects, name, object);
        return;
    }
    g_hash_table_remove(fake->objects, name);
    g_free(name);
}

static bool commit(struct identity_store *store, GPtrArray *changes, guint64 at,
                   guint64 *ret_version, GError **error)
{
    struct fake_identity *fake = (struct fake_identity *)store;
    call_meanwhile(&fake->meanwhile, fake->data);
    if (is_broken(fake, error))
        return false;
    if (fake->conflicts) {
        fake->conflicts--;
        fake->version++;
    }
    if (at != fake->version) {
        fettle_set_error(error, VERSION_CONFLICT, "it is at %" G_GUINT64_FORMAT, fake->version);
        return false;
    }
    for (guint i = 0; i < changes->len; i++) {
        const struct change *change = changes->pdata[i];
        put(fake, change->kind, change->key,
            change->op == CHANGE_PUT ? json_deep_copy(change->object) : NULL);
    }
    *ret_version = ++fake->version;
    return true;
}

static bool failures(struct identity_store *store, const char *user, gint64 note_us,
                     gint64 ret_us[IDENTITY_FAILURES], GError **error)
{
    struct fake_identity *fake = (struct fake_identity *)store;
    const size_t size = IDENTITY_FAILURES * sizeof *ret_us;
    if (is_broken(fake, error))
        return false;
    gint64 *kept = g_hash_table_lookup(fake->failures, user);
    if (!kept && note_us) {
        kept = g_malloc0(size);
        g_hash_table_insert(fake->failures, g_strdup(user), kept);
    }
    if (note_us) {
        memmove(kept + 1, kept, size - sizeof *kept);
        kept[0] = note_us;
    }
    memset(ret_us, 0, size);
    if (kept)
        memcpy(ret_us, kept, size);
    return true;
}

static const struct identity_ops identity_ops = {load, version, commit, failures};

struct fake_identity *fake_identity_new(void)
{
    struct fake_identity *fake = g_new0(struct fake_identity, 1);
    fake->store.ops = &identity_ops;
    fake->version = 1;
    fake->objects = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, unref_json);
    fake->failures = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    return fake;
}

void fake_identity_free(struct fake_identity *fake)
{
    g_hash_table_unref(fake->failures);
    g_hash_table_unref(fake->objects);
    g_free(fake);
}

void fake_identity_put(struct fake_identity *fake, const char *kind, const char *key,
                       json_t *object)
{
    put(fake, kind, key, object);
    fake->version++;
}

/* --- secrets --- */

static bool is_full(const struct fake_crypto *fake, GError **error)
{
    if (fake->full)
        fettle_set_error(error, TEMPORARY, "too many logins wait; try again");
    return fake->full;
}

static char *password_keep(struct crypto *crypto, const char *password, GError **error)
{
    struct fake_crypto *fake = (struct fake_crypto *)crypto;
    call_meanwhile(&fake->meanwhile, fake->data);
    return is_full(fake, error) ? NULL : g_strconcat("kept ", password, NULL);
}

static bool password_is(struct crypto *crypto, const char *kept, const char *password, bool *ret_is,
                        GError **error)
{
    struct fake_crypto *fake = (struct fake_crypto *)crypto;
    call_meanwhile(&fake->meanwhile, fake->data);
    if (is_full(fake, error))
        return false;
    fake->checked++;
    *ret_is = g_str_has_prefix(kept, "kept ") && !strcmp(kept + strlen("kept "), password);
    return true;
}

static char *seal(struct crypto *crypto, const void *data, size_t len, GError **error)
{
    const struct fake_crypto *fake = (const struct fake_crypto *)crypto;
    g_autofree char *text = g_strdelimit(g_base64_encode(data, len), "+", '-');
    return g_strdup_printf("%c%s", fake->key, g_strdelimit(text, "/", '_'));
}

static char *open_seal(struct crypto *crypto, const char *text, size_t *ret_len, GError **error)
{
    const struct fake_crypto *fake = (const struct fake_crypto *)crypto;
    if (text[0] != fake->key) {
        fettle_set_error(error, PERMISSION, "sealed with none of our keys");
        return NULL;
    }
    g_autofree char *base64 = g_strdelimit(g_strdelimit(g_strdup(text + 1), "-", '+'), "_", '/');
    return (char *)g_base64_decode(base64, ret_len);
}

static void random_bytes(struct crypto *crypto, void *ret_bytes, size_t len)
{
    struct fake_crypto *fake = (struct fake_crypto *)crypto;
    memset(ret_bytes, 0, len);
    fake->serial++;
    memcpy(ret_bytes, &fake->serial, MIN(len, sizeof fake->serial));
}

static const struct crypto_ops crypto_ops = {password_keep, password_is, seal, open_seal,
                                             random_bytes};

struct fake_crypto *fake_crypto_new(void)
{
    struct fake_crypto *fake = g_new0(struct fake_crypto, 1);
    fake->crypto.ops = &crypto_ops;
    fake->key = 'a';
    return fake;
}

void fake_crypto_free(struct fake_crypto *fake)
{
    g_free(fake);
}
