/* See key_proof.h. */
#include "core/wconfd/key_proof.h"

#include <string.h>

static bool is_its_key(struct authority *authority, const struct node *node,
                       const struct keys_request *asked, const char *key_hash, GError **error)
{
    g_autofree char *proven = NULL;
    if (!*node->key_hash || !strcmp(node->key_hash, key_hash))
        return true;
    if (!*asked->proof) {
        fettle_set_error(error, PERMISSION,
                         "does not prove that it has the key on record; upgrade it");
        return false;
    }
    if (!authority->ops->check_proof(authority, asked, &proven, error))
        return false;
    if (!strcmp(node->key_hash, proven))
        return true;
    fettle_set_error(error, PERMISSION,
                     "asks with another key than the one on record: somebody else may speak in its "
                     "name; a host that has lost its keys is marked offline, invited by its name, "
                     "and joins with --new-keys");
    return false;
}

bool key_proof_check(struct authority *authority, const struct node *node,
                     const struct keys_request *asked, char **ret_key_hash, GError **error)
{
    g_autofree char *key_hash = NULL;
    if (!authority->ops->read_request(authority, asked->request, &key_hash, error) ||
        !is_its_key(authority, node, asked, key_hash, error))
        return false;
    *ret_key_hash = g_steal_pointer(&key_hash);
    return true;
}
