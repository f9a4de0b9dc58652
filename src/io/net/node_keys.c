/* See node_keys.h. */
#include "io/net/node_keys.h"

#include <string.h>

#include "io/files.h"
#include "io/net/certs.h"

char *node_keys_path(const struct node_paths *paths, const char *name)
{
    return g_build_filename(paths->etc, name, NULL);
}

/* What `from` says is said by `to` from now on, and `from` is gone; nothing if it is gone. */
static bool move(const struct node_paths *paths, const char *from, const char *to, guint mode,
                 GError **error)
{
    g_autofree char *source = node_keys_path(paths, from);
    g_autofree char *target = node_keys_path(paths, to);
    if (!g_file_test(source, G_FILE_TEST_EXISTS))
        return true;
    g_autofree char *text = files_read_path(source, LIMIT_PEM_CHARS, NULL, error);
    return text != NULL && files_write_path(target, text, strlen(text), mode, true, error) &&
           files_remove_path(source, true, error);
}

/* The certificate goes last: as long as it lies there, this is to be finished. */
bool node_keys_settle(const struct node_paths *paths, GError **error)
{
    g_autofree char *certificate = node_keys_path(paths, NODE_KEYS_NEXT_CRT);
    if (!g_file_test(certificate, G_FILE_TEST_EXISTS))
        return true;
    return move(paths, NODE_KEYS_NEXT_KEY, "node.key", 0600, error) &&
           move(paths, NODE_KEYS_NEXT_CRT, "node.crt", 0644, error);
}

GPtrArray *node_keys_trusted(const struct node_paths *paths, GError **error)
{
    g_autofree char *path = node_keys_path(paths, "ca.crt");
    g_autofree char *text = files_read_path(path, LIMIT_TRUST_CHARS, NULL, error);
    GPtrArray *found = text != NULL ? certs_split(text, error) : NULL;
    if (text != NULL && found == NULL)
        g_prefix_error(error, "%s: ", path);
    return found;
}

char *node_keys_certificate(const struct node_paths *paths, GError **error)
{
    g_autofree char *path = node_keys_path(paths, "node.crt");
    return node_keys_settle(paths, error) ? files_read_path(path, LIMIT_PEM_CHARS, NULL, error)
                                          : NULL;
}

bool node_keys_take(const struct node_paths *paths, const char *certificate, GError **error)
{
    g_autofree char *path = node_keys_path(paths, NODE_KEYS_NEXT_CRT);
    return files_write_path(path, certificate, strlen(certificate), 0644, true, error) &&
           node_keys_settle(paths, error);
}
