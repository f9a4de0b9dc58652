/*
 * Secrets of the API as core/api asks for them: passwords that are checked slowly, tokens that are
 * sealed, sums of bytes. io/crypto stands behind it, tests have a fake.
 */
#pragma once

#include "base/error.h"

#include <glib.h>
#include <stdbool.h>

struct crypto;

struct crypto_ops {
    /* In tasks; wait. A password as it is kept: yescrypt, with a salt of its own; and whether one
     * is it. TEMPORARY: too many wait already. */
    char *(*password_keep)(struct crypto *crypto, const char *password, GError **error);
    bool (*password_is)(struct crypto *crypto, const char *kept, const char *password, bool *ret_is,
                        GError **error);
    /* A text (URL-safe base64) that only holders of the keys can make or read, over bytes that
     * nobody can change. */
    char *(*seal)(struct crypto *crypto, const void *data, size_t len, GError **error);
    /* What it was made of; NULL with PERMISSION: with none of our keys, or changed. */
    char *(*open)(struct crypto *crypto, const char *text, size_t *ret_len, GError **error);
    /* Fresh random bytes for secrets. */
    void (*random)(struct crypto *crypto, void *ret_bytes, size_t len);
};

struct crypto {
    const struct crypto_ops *ops;
};
