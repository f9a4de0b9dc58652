/* What a renewal of keys asks of one node; see key_renewal_private.h. */
#include <string.h>

#include "core/wconfd/key_proof.h"
#include "core/wconfd/key_renewal_private.h"
#include "proto/change.h"

#define KEY_STORE_MS 20
#define KEY_STORE_LOOKS 250

static bool trusts_these(const struct key_pass *pass, const struct keys_status *status)
{
    guint count = g_strv_length(pass->wanted);
    if (!status || status->trusts->len != count)
        return false;
    for (guint i = 0; i < count; i++)
        if (strcmp(status->trusts->pdata[i], pass->wanted[i]) != 0)
            return false;
    return true;
}

static bool is_reissued(const struct key_pass *pass, const struct keys_status *status)
{
    return status && strcmp(status->issuer, pass->wanted[0]) == 0;
}

bool key_renewal_confirmed(const struct key_pass *pass, const char *uuid)
{
    const struct keys_status *status = g_hash_table_lookup(pass->keeper->heard, uuid);
    return trusts_these(pass, status) &&
           (pass->cluster->renewal == RENEWAL_SPREAD || is_reissued(pass, status));
}

static void *call(const struct key_pass *pass, const struct node *node, const char *method,
                  const void *args, GError **error)
{
    return env_call_record(pass->keeper->env, node->uuid, ROLE_NODED, method, args,
                           pass->keeper->stamp, 0, 0, error);
}

static struct keys_status *tell_trust(const struct key_pass *pass, const struct node *node,
                                      GError **error)
{
    const struct keys_trust_args args = {.authority = pass->cluster->authority};
    return call(pass, node, "keys_trust", &args, error);
}

static bool has_on_record(const struct key_pass *pass, const struct node *node,
                          const char *key_hash)
{
    const struct node *now = config_get(pass->keeper->wconf->committed, "node", node->uuid, NULL);
    return now && !strcmp(now->key_hash, key_hash);
}

/* A master that is lost now would leave one that refuses the node. */
static bool is_shared(const struct key_pass *pass, const struct node *node)
{
    const struct wconf *wconf = pass->keeper->wconf;
    guint64 serial = 0;
    config_get(wconf->committed, "node", node->uuid, &serial);
    return wconf_followers_share(wconf, serial);
}

static bool wait_until_shared(const struct key_pass *pass, const struct node *node,
                              const char *key_hash, GError **error)
{
    const struct key_renewal *keeper = pass->keeper;
    bool stored = false;
    for (guint i = 0; i < KEY_STORE_LOOKS && key_renewal_alive(keeper); i++) {
        stored = has_on_record(pass, node, key_hash);
        if (stored && is_shared(pass, node))
            return true;
        env_sleep(keeper->env, KEY_STORE_MS);
    }
    fettle_set_error(error, TEMPORARY, "%s",
                     stored ? "no other candidate has a copy of its new key yet"
                            : "its new key is not on record yet");
    return false;
}

/* Stored before the node has the certificate: afterwards it has no other key to prove itself. */
static bool record_key(const struct key_pass *pass, const struct node *node, const char *key_hash,
                       GError **error)
{
    const struct key_renewal *keeper = pass->keeper;
    json_t *object = config_object_json(keeper->wconf->head, "node", node->uuid);
    if (!object) {
        fettle_set_error(error, TEMPORARY, "was removed");
        return false;
    }
    g_autofree char *id = env_uuid(keeper->env);
    GPtrArray *changes = change_list_new();
    json_object_set_new(object, "key_hash", json_string(key_hash));
    g_ptr_array_add(changes, config_put(keeper->wconf->head, "node", node->uuid, object));
    return wconf_commit(keeper->wconf, id, changes, NULL, AUTHOR_COMMIT, NULL, NULL, error);
}

static bool may_certify(const struct key_pass *pass, const struct node *node,
                        const struct keys_request *asked, GError **error)
{
    g_autofree char *key_hash = NULL;
    return key_proof_check(key_renewal_authority(pass->keeper), node, asked, &key_hash, error) &&
           key_renewal_alive(pass->keeper) &&
           (has_on_record(pass, node, key_hash) || record_key(pass, node, key_hash, error)) &&
           wait_until_shared(pass, node, key_hash, error);
}

static struct keys_status *reissue(const struct key_pass *pass, const struct node *node,
                                   GError **error)
{
    struct authority *authority = key_renewal_authority(pass->keeper);
    record_autoptr(keys_request) asked = call(pass, node, "keys_request", NULL, error);
    g_autofree char *certificate = NULL;
    if (!asked || !may_certify(pass, node, asked, error))
        return NULL;
    if (!authority->ops->sign(authority, asked->request, pass->cluster->uuid, node->uuid,
                              &certificate, error)) {
        g_clear_pointer(&pass->keeper->has_key_of, g_free);
        return NULL;
    }
    const struct keys_certify_args args = {.certificate = certificate};
    return call(pass, node, "keys_certify", &args, error);
}

static void note(const struct key_pass *pass, const struct node *node, struct keys_status *status)
{
    if (status)
        g_hash_table_insert(pass->keeper->heard, g_strdup(node->uuid), status);
}

void key_renewal_bring(const struct key_pass *pass, const struct node *node, GError **error)
{
    struct key_renewal *keeper = pass->keeper;
    if (!trusts_these(pass, g_hash_table_lookup(keeper->heard, node->uuid)))
        note(pass, node, tell_trust(pass, node, error));
    const struct keys_status *status = g_hash_table_lookup(keeper->heard, node->uuid);
    if (key_renewal_alive(keeper) && pass->cluster->renewal == RENEWAL_REISSUE &&
        trusts_these(pass, status) && !is_reissued(pass, status))
        note(pass, node, reissue(pass, node, error));
}
