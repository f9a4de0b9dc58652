/* See crypto.h. */
#include "io/crypto/crypto.h"

#include <crypt.h>
#include <gnutls/crypto.h>
#include <string.h>

#include "io/crypto/keys.h"
#include "io/pool.h"

#define PASSWORD_THREADS 2
#define PASSWORDS_WAITING 64 /* about a second's */
#define NONCE_BYTES 12
#define TAG_BYTES 16
#define SEAL_PREFIX "f"                   /* so that none begins as an option of a command does */
#define SEAL_PURPOSE "fettle api token 1" /* sealed with it: it is nothing else */

struct key_ring {
    struct crypto base;
    char *keys_path;
    struct keys keys;
    gnutls_aead_cipher_hd_t ciphers[API_KEYS];
    struct pool *pool;
};

/* --- passwords --- */

struct hashing {
    char *password, *setting; /* NULL: a fresh one */
    char *result;             /* NULL: it could not be done */
};

static void wipe_free(char *text)
{
    if (text)
        gnutls_memset(text, 0, strlen(text));
    g_free(text);
}

static void hashing_free(void *data)
{
    struct hashing *hashing = data;
    wipe_free(hashing->password);
    g_free(hashing->setting);
    g_free(hashing->result);
    g_free(hashing);
}

static void hash_in_thread(void *data)
{
    struct hashing *hashing = data;
    char salt[CRYPT_GENSALT_OUTPUT_SIZE];
    const char *setting = hashing->setting ? hashing->setting
                                           : crypt_gensalt_rn("$y$", 0, NULL, 0, salt, sizeof salt);
    struct crypt_data *room = g_new0(struct crypt_data, 1);
    const char *result = setting ? crypt_r(hashing->password, setting, room) : NULL;
    hashing->result = result && result[0] != '*' ? g_strdup(result) : NULL;
    gnutls_memset(room, 0, sizeof *room);
    g_free(room);
}

/* Waits. Free it. */
static struct hashing *hash(struct crypto *base, const char *password, const char *setting,
                            GError **error)
{
    struct key_ring *crypto = (struct key_ring *)base;
    struct hashing *hashing = g_new0(struct hashing, 1);
    hashing->password = g_strdup(password);
    hashing->setting = g_strdup(setting);
    return pool_run(crypto->pool, hash_in_thread, hashing_free, hashing, error) ? hashing : NULL;
}

static char *password_keep(struct crypto *base, const char *password, GError **error)
{
    if (strlen(password) >= CRYPT_MAX_PASSPHRASE_SIZE) {
        fettle_set_error(error, WRONG_INPUT, "a password has less than %d bytes",
                         CRYPT_MAX_PASSPHRASE_SIZE);
        return NULL;
    }
    struct hashing *hashing = hash(base, password, NULL, error);
    if (!hashing)
        return NULL;
    char *kept = g_steal_pointer(&hashing->result);
    hashing_free(hashing);
    if (!kept)
        fettle_set_error(error, INTERNAL, "libcrypt makes no hash of a password by yescrypt");
    return kept;
}

static bool password_is(struct crypto *base, const char *kept, const char *password, bool *ret_is,
                        GError **error)
{
    struct hashing *hashing = hash(base, password, kept, error);
    if (!hashing)
        return false;
    size_t len = strlen(kept);
    *ret_is = hashing->result && strlen(hashing->result) == len &&
              gnutls_memcmp(hashing->result, kept, len) == 0;
    hashing_free(hashing);
    return true;
}

/* --- seals --- */

static void close_ciphers(gnutls_aead_cipher_hd_t *ciphers)
{
    for (guint i = 0; i < API_KEYS; i++)
        if (ciphers[i])
            gnutls_aead_cipher_deinit(ciphers[i]);
}

static bool open_ciphers(const struct keys *keys, gnutls_aead_cipher_hd_t *ret, GError **error)
{
    for (guint i = 0; i < API_KEYS; i++) {
        gnutls_datum_t key = {(guchar *)keys->bytes[i], API_KEY_BYTES};
        int failed = gnutls_aead_cipher_init(&ret[i], GNUTLS_CIPHER_AES_256_GCM, &key);
        if (failed < 0) {
            fettle_set_error(error, INTERNAL, "GnuTLS makes no cipher: %s",
                             gnutls_strerror(failed));
            return false;
        }
    }
    return true;
}

/* What cannot be read now leaves the keys as they were: who holds tokens shall not pay for it. */
static bool look_at_keys(struct key_ring *crypto, GError **error)
{
    struct keys keys;
    if (crypto->ciphers[0] && !keys_changed(crypto->keys_path, &crypto->keys))
        return true;
    if (!keys_read(crypto->keys_path, &keys, error))
        return false;
    gnutls_aead_cipher_hd_t ciphers[API_KEYS] = {NULL};
    bool good = open_ciphers(&keys, ciphers, error);
    close_ciphers(good ? crypto->ciphers : ciphers);
    if (good) {
        memcpy(crypto->ciphers, ciphers, sizeof ciphers);
        crypto->keys = keys;
    }
    gnutls_memset(&keys, 0, sizeof keys);
    return good;
}

static char *seal(struct crypto *base, const void *data, size_t len, GError **error)
{
    struct key_ring *crypto = (struct key_ring *)base;
    look_at_keys(crypto, NULL);
    size_t room = len + TAG_BYTES;
    g_autofree guchar *sealed = g_malloc(NONCE_BYTES + room);
    int failed = gnutls_rnd(GNUTLS_RND_NONCE, sealed, NONCE_BYTES);
    if (failed >= 0)
        failed = gnutls_aead_cipher_encrypt(crypto->ciphers[0], sealed, NONCE_BYTES, SEAL_PURPOSE,
                                            strlen(SEAL_PURPOSE), TAG_BYTES, data, len,
                                            sealed + NONCE_BYTES, &room);
    if (failed < 0) {
        fettle_set_error(error, INTERNAL, "GnuTLS seals no token: %s", gnutls_strerror(failed));
        return NULL;
    }
    g_autofree char *text = g_base64_encode(sealed, NONCE_BYTES + room);
    g_strdelimit(g_strdelimit(text, "+", '-'), "/", '_')[strcspn(text, "=")] = '\0';
    return g_strconcat(SEAL_PREFIX, text, NULL);
}

/* The bytes of URL-safe base64 without padding; NULL: it is none. */
static guchar *decode(const char *text, size_t *ret_len)
{
    size_t len = strlen(text);
    if (len % 4 == 1)
        return NULL;
    for (const char *c = text; *c; c++)
        if (!g_ascii_isalnum(*c) && *c != '-' && *c != '_')
            return NULL;
    g_autofree char *plain = g_strconcat(text, "===", NULL);
    plain[(len + 3) / 4 * 4] = '\0';
    g_strdelimit(g_strdelimit(plain, "-", '+'), "_", '/');
    return g_base64_decode(plain, ret_len);
}

static char *open_seal(struct crypto *base, const char *text, size_t *ret_len, GError **error)
{
    struct key_ring *crypto = (struct key_ring *)base;
    size_t len;
    look_at_keys(crypto, NULL);
    g_autofree guchar *sealed =
        g_str_has_prefix(text, SEAL_PREFIX) ? decode(text + strlen(SEAL_PREFIX), &len) : NULL;
    if (sealed && len >= NONCE_BYTES + TAG_BYTES) {
        g_autofree char *data = g_malloc(len);
        for (guint i = 0; i < API_KEYS; i++) {
            size_t room = len - NONCE_BYTES - TAG_BYTES;
            if (gnutls_aead_cipher_decrypt(crypto->ciphers[i], sealed, NONCE_BYTES, SEAL_PURPOSE,
                                           strlen(SEAL_PURPOSE), TAG_BYTES, sealed + NONCE_BYTES,
                                           len - NONCE_BYTES, data, &room) < 0)
                continue;
            *ret_len = room;
            return g_steal_pointer(&data);
        }
    }
    fettle_set_error(error, PERMISSION, "it was sealed with none of the keys, or changed");
    return NULL;
}

static void random_bytes(struct crypto *base, void *ret_bytes, size_t len)
{
    g_assert(gnutls_rnd(GNUTLS_RND_KEY, ret_bytes, len) == 0);
}

static const struct crypto_ops ops = {password_keep, password_is, seal, open_seal, random_bytes};

struct crypto *crypto_open(const char *keys_path, GError **error)
{
    struct key_ring *crypto = g_new0(struct key_ring, 1);
    crypto->base.ops = &ops;
    crypto->keys_path = g_strdup(keys_path);
    crypto->pool = pool_new("logins", PASSWORD_THREADS, PASSWORDS_WAITING);
    if (look_at_keys(crypto, error))
        return &crypto->base;
    crypto_close(&crypto->base);
    return NULL;
}

struct crypto *crypto_open_passwords(void)
{
    static const struct crypto_ops passwords = {
        .password_keep = password_keep, .password_is = password_is, .random = random_bytes};
    struct key_ring *crypto = g_new0(struct key_ring, 1);
    crypto->base.ops = &passwords;
    crypto->pool = pool_new("logins", PASSWORD_THREADS, PASSWORDS_WAITING);
    return &crypto->base;
}

void crypto_close(struct crypto *base)
{
    struct key_ring *crypto = (struct key_ring *)base;
    pool_free(crypto->pool);
    close_ciphers(crypto->ciphers);
    gnutls_memset(&crypto->keys, 0, sizeof crypto->keys);
    g_free(crypto->keys_path);
    g_free(crypto);
}
