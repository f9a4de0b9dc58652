/*
 * See sum.h. GnuTLS is loaded with the first sum: whatever is done to a volume is a short process
 * of volumed's program, which takes twice as long to begin when it is linked with it.
 */
#include "io/crypto/sum.h"

#include <dlfcn.h>
#include <gnutls/crypto.h>

#define LIBRARY "libgnutls.so.30"

struct sum {
    gnutls_digest_algorithm_t algorithm;
    gnutls_hash_hd_t hash;
};

static struct {
    __typeof__(&gnutls_hash_init) init;
    __typeof__(&gnutls_hash) add;
    __typeof__(&gnutls_hash_deinit) end;
    __typeof__(&gnutls_hash_get_len) length;
} library;

static void *find(void *handle, const char *name)
{
    void *found = handle ? dlsym(handle, name) : NULL;
    if (!found)
        g_error("%s in " LIBRARY ": %s", name, dlerror());
    return found;
}

static void load(void)
{
    static gsize loaded;
    if (!g_once_init_enter(&loaded))
        return;
    void *handle = dlopen(LIBRARY, RTLD_NOW); /* for as long as the process lives */
    library.init = find(handle, "gnutls_hash_init");
    library.add = find(handle, "gnutls_hash");
    library.end = find(handle, "gnutls_hash_deinit");
    library.length = find(handle, "gnutls_hash_get_len");
    g_once_init_leave(&loaded, 1);
}

struct sum *sum_new(enum sum_kind kind)
{
    struct sum *sum = g_new0(struct sum, 1);
    load();
    sum->algorithm = kind == SUM_MD5 ? GNUTLS_DIG_MD5 : GNUTLS_DIG_SHA512;
    if (library.init(&sum->hash, sum->algorithm) < 0)
        g_error("GnuTLS has no %s", kind == SUM_MD5 ? "MD5" : "SHA-512");
    return sum;
}

void sum_add(struct sum *sum, const void *bytes, gsize length)
{
    library.add(sum->hash, bytes, length);
}

void sum_end(struct sum *sum, char *ret)
{
    guint8 digest[(SUM_TEXT - 1) / 2];
    library.end(sum->hash, digest);
    for (guint i = 0; i < library.length(sum->algorithm); i++)
        g_snprintf(ret + 2 * i, 3, "%02x", digest[i]);
    g_free(sum);
}
