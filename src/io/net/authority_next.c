/* Another authority of the cluster: its key, until it is the one that signs. See
 * authority_private.h. */
#include <glib/gstdio.h>
#include <string.h>

#include "io/files.h"
#include "io/net/authority_private.h"
#include "io/net/certs.h"
#include "io/net/node_keys.h"

#define NEXT_KEY "ca-next.key"

/* NULL without an error: there is none. */
static char *read_key(const struct real_authority *self, const char *name, GError **error)
{
    g_autofree char *path = node_keys_path(self->paths, name);
    return g_file_test(path, G_FILE_TEST_EXISTS)
               ? files_read_path(path, LIMIT_PEM_CHARS, NULL, error)
               : NULL;
}

static bool write_key(const struct real_authority *self, const char *name, const char *key,
                      GError **error)
{
    g_autofree char *path = node_keys_path(self->paths, name);
    return files_write_path(path, key, strlen(key), 0600, true, error);
}

/* False without an error: the key does not fit. */
static bool is_of(struct real_authority *self, const char *key, const char *certificate,
                  GError **error)
{
    g_autoptr(GError) failure = NULL;
    if (authority_fits(self, key, certificate, &failure))
        return true;
    if (!fettle_error_is(failure, WRONG_INPUT))
        g_propagate_error(error, g_steal_pointer(&failure));
    return false;
}

bool authority_settle(struct real_authority *self, GError **error)
{
    g_autoptr(GError) failure = NULL;
    g_autofree char *key = read_key(self, NEXT_KEY, &failure);
    g_autoptr(GPtrArray) trusted = key != NULL ? node_keys_trusted(self->paths, &failure) : NULL;
    if (trusted != NULL && is_of(self, key, trusted->pdata[0], &failure)) {
        g_autofree char *next = node_keys_path(self->paths, NEXT_KEY);
        return write_key(self, "ca.key", key, error) && files_remove_path(next, true, error);
    }
    if (failure == NULL)
        return true;
    g_propagate_error(error, g_steal_pointer(&failure));
    return false;
}

static char *make_key(const struct desk *desk, GError **error)
{
    const char *const argv[] = {"openssl", "genpkey",     "-algorithm",
                                "EC",      "-pkeyopt",    "ec_paramgen_curve:P-256",
                                "-out",    desk->product, NULL};
    return authority_run(desk, argv, error);
}

bool authority_make_next(struct authority *authority, const char *cluster_uuid,
                         char **ret_certificate, char **ret_issuer, GError **error)
{
    struct real_authority *self = authority_real(authority);
    g_autoptr(desk_t) desk =
        authority_settle(self, error) ? authority_desk(self, "", "", error) : NULL;
    g_autofree char *key = desk != NULL ? make_key(desk, error) : NULL;
    if (key == NULL || !files_write_path(desk->request, key, strlen(key), 0600, false, error))
        return false;
    g_auto(GStrv) argv = certs_authority_command(desk->request, cluster_uuid, desk->product);
    g_unlink(desk->product);
    g_autofree char *certificate = authority_run(desk, (const char *const *)argv, error);
    g_autofree char *issuer =
        certificate != NULL ? authority_issuer(desk, desk->request, cluster_uuid, error) : NULL;
    if (issuer == NULL || !write_key(self, NEXT_KEY, key, error))
        return false;
    *ret_issuer = g_steal_pointer(&issuer);
    *ret_certificate = g_steal_pointer(&certificate);
    return true;
}

bool authority_has_key_of(struct authority *authority, const char *certificate, bool *ret_has,
                          GError **error)
{
    struct real_authority *self = authority_real(authority);
    static const char *const names[] = {"ca.key", NEXT_KEY};
    g_autoptr(GError) failure = NULL;
    *ret_has = false;
    for (guint i = 0; i < G_N_ELEMENTS(names) && !*ret_has && failure == NULL; i++) {
        g_autofree char *key = read_key(self, names[i], &failure);
        *ret_has = key != NULL && is_of(self, key, certificate, &failure);
    }
    if (failure == NULL)
        return true;
    g_propagate_error(error, g_steal_pointer(&failure));
    return false;
}
