/* Tokens of strangers, with keys that are known here: what opens says what was sealed. */
#include "fuzz.h"

#include "io/crypto/crypto.h"

#include <glib/gstdio.h>
#include <string.h>

#define KEY "0000000000000000000000000000000000000000000000000000000000000000\n"
#define SEALED "{\"user_id\":\"me\"}" /* in the corpus, by that key */

static struct crypto *make_crypto(void)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *folder = g_dir_make_tmp("fettle-XXXXXX", NULL);
    g_autofree char *path = g_build_filename(folder, "api-keys", NULL);
    g_file_set_contents_full(path, "fettle api keys 1\n" KEY KEY, -1, G_FILE_SET_CONTENTS_NONE,
                             0600, NULL);
    struct crypto *crypto = crypto_open(path, &error);
    g_assert_no_error(error);
    g_unlink(path); /* it keeps what it has read */
    g_rmdir(folder);
    return crypto;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    if (len == 0)
        return 0;
    static struct crypto *crypto;
    if (!crypto)
        crypto = make_crypto();
    g_autofree char *text = g_strndup((const char *)data, len);
    g_autoptr(GError) error = NULL;
    size_t opened_len;
    g_autofree char *opened = crypto->ops->open(crypto, text, &opened_len, &error);
    if (opened) {
        g_assert_cmpuint(opened_len, ==, strlen(SEALED));
        g_assert_cmpint(memcmp(opened, SEALED, opened_len), ==, 0);
    } else {
        g_assert_true(fettle_error_is(error, PERMISSION));
    }
    return 0;
}
