/* See fake_authority.h. */
#include "helper/fake_authority.h"

#include <string.h>

struct fake_authority {
    struct authority base;
    char *name, *key;
    guint failing;
};

static struct fake_authority *fake(struct authority *authority)
{
    return (struct fake_authority *)authority;
}

static bool show(struct authority *authority, char **ret_certificate, char **ret_fingerprint,
                 GError **error)
{
    *ret_certificate = g_strdup(fake(authority)->name);
    *ret_fingerprint = g_compute_checksum_for_string(G_CHECKSUM_SHA256, fake(authority)->name, -1);
    return true;
}

static bool has_key(struct authority *authority)
{
    return fake(authority)->key != NULL;
}

static bool read_key(struct authority *authority, char **ret_key, GError **error)
{
    const struct fake_authority *self = fake(authority);
    if (self->key == NULL)
        fettle_set_error(error, STORAGE, "there is no key");
    else if (!g_str_has_prefix(self->key, self->name))
        fettle_set_error(error, CORRUPT, "the key does not fit");
    else
        *ret_key = g_strdup(self->key);
    return self->key != NULL && g_str_has_prefix(self->key, self->name);
}

static bool take_key(struct authority *authority, const char *key, GError **error)
{
    struct fake_authority *self = fake(authority);
    if (!g_str_has_prefix(key, self->name)) {
        fettle_set_error(error, WRONG_INPUT, "the key does not fit");
        return false;
    }
    if (self->failing > 0) {
        self->failing--;
        fettle_set_error(error, STORAGE, "the disk has failed");
        return false;
    }
    fake_authority_put(self, key);
    return true;
}

static bool drop_key(struct authority *authority, GError **error)
{
    fake_authority_put(fake(authority), NULL);
    return true;
}

static const struct authority_ops ops = {.show = show,
                                         .has_key = has_key,
                                         .read_key = read_key,
                                         .take_key = take_key,
                                         .drop_key = drop_key};

struct fake_authority *fake_authority_new(const char *name, const char *key)
{
    struct fake_authority *authority = g_new0(struct fake_authority, 1);
    authority->base.ops = &ops;
    authority->name = g_strdup(name);
    authority->key = g_strdup(key);
    return authority;
}

void fake_authority_free(struct fake_authority *authority)
{
    g_free(authority->name);
    g_free(authority->key);
    g_free(authority);
}

struct authority *fake_authority_base(struct fake_authority *authority)
{
    return &authority->base;
}

const char *fake_authority_key(const struct fake_authority *authority)
{
    return authority->key;
}

void fake_authority_put(struct fake_authority *authority, const char *key)
{
    g_free(authority->key);
    authority->key = g_strdup(key);
}

void fake_authority_fail(struct fake_authority *authority, guint count)
{
    authority->failing = count;
}
