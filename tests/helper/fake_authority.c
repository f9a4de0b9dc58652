/* See fake_authority.h. */
#include "helper/fake_authority.h"

#include <string.h>

struct fake_authority {
    struct authority base;
    char *name, *key;
    bool shared; /* it keeps what it has */
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

/* A signature names the authority, so one by another does not pass. */
static char *signature_of(const struct fake_authority *self, const char *text)
{
    g_autofree char *sum = g_compute_checksum_for_string(G_CHECKSUM_SHA256, text, -1);
    return g_strdup_printf("%s/%s", self->name, sum);
}

static bool sign_text(struct authority *authority, const char *text, char **ret_signature,
                      GError **error)
{
    *ret_signature = signature_of(fake(authority), text);
    return true;
}

static bool check_text(struct authority *authority, const char *text, const char *signature,
                       GError **error)
{
    g_autofree char *expected = signature_of(fake(authority), text);
    if (strcmp(signature, expected) == 0)
        return true;
    fettle_set_error(error, PERMISSION, "the signature is not the authority's");
    return false;
}

static const struct authority_ops ops = {.show = show,
                                         .sign_text = sign_text,
                                         .check_text = check_text,
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
    if (authority->shared)
        return;
    g_free(authority->key);
    authority->key = g_strdup(key);
}

void fake_authority_fail(struct fake_authority *authority, guint count)
{
    authority->failing = count;
}

struct authority *fake_authority_of(bool key)
{
    static struct fake_authority with, without;
    with = (struct fake_authority){.base = {&ops}, .name = (char *)"ca", .key = (char *)"ca key"};
    without = (struct fake_authority){.base = {&ops}, .name = (char *)"ca"};
    with.shared = without.shared = true;
    return key ? &with.base : &without.base;
}
