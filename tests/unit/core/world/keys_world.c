/*
 * See keys_world.h.
 */
#include "keys_world.h"

#include <string.h>

#include "proto/invitation.h"

static const char *const uuids[KEYS_WORLD_NODES] = {NODE1, NODE2, NODE3};

struct keys_world keys_world;

/* The certificate of an authority, in one line: the world takes no other. */
static char *pem(const char *name)
{
    g_autofree char *text = g_base64_encode((const guchar *)name, strlen(name));
    return g_strdup_printf("-----BEGIN CERTIFICATE-----%s-----END CERTIFICATE-----", text);
}

char *keys_world_fingerprint_of(const char *name)
{
    g_autofree char *certificate = pem(name);
    return invitation_fingerprint(certificate);
}

bool keys_world_is_trusted(guint by, const char *name)
{
    g_autofree char *certificate = pem(name);
    return strstr(keys_world.trusts[by], certificate);
}

bool keys_world_is_first(guint node, const char *name)
{
    g_autofree char *certificate = pem(name);
    return g_str_has_prefix(keys_world.trusts[node], certificate);
}

bool keys_world_hear_each_other(guint one, guint other)
{
    return keys_world_is_trusted(one, keys_world.issuer[other]) &&
           keys_world_is_trusted(other, keys_world.issuer[one]);
}

/* Nobody is locked out, at any moment. */
void keys_world_assert_nobody_out(void)
{
    for (guint i = 0; i < KEYS_WORLD_NODES; i++)
        for (guint k = 0; k < KEYS_WORLD_NODES; k++)
            g_assert_true(keys_world.away[i] || keys_world.away[k] ||
                          keys_world_hear_each_other(i, k));
}

/* --- the authority --- */

static bool is_dead(GError **error)
{
    if (keys_world.dead)
        fettle_set_error(error, TEMPORARY, "dead");
    return keys_world.dead;
}

static bool make_next(struct authority *self, const char *cluster_uuid, char **ret_certificate,
                      char **ret_issuer, GError **error)
{
    if (is_dead(error))
        return false;
    g_free(keys_world.next);
    keys_world.next = g_strdup_printf("ca%u", ++keys_world.made);
    *ret_certificate = pem(keys_world.next);
    *ret_issuer = pem(keys_world.next);
    return true;
}

static bool has_key_of(struct authority *self, const char *certificate, bool *ret_has,
                       GError **error)
{
    g_autofree char *own = keys_world.key ? pem(keys_world.key) : NULL;
    g_autofree char *next = keys_world.next ? pem(keys_world.next) : NULL;
    keys_world.looks++;
    *ret_has = g_strcmp0(certificate, own) == 0 || g_strcmp0(certificate, next) == 0;
    return !is_dead(error);
}

static void settle(void)
{
    if (!keys_world.next || !keys_world_is_first(0, keys_world.next))
        return;
    g_free(keys_world.key);
    keys_world.key = g_steal_pointer(&keys_world.next);
}

static char *hash_of(const char *key)
{
    return g_compute_checksum_for_string(G_CHECKSUM_SHA256, key, -1);
}

static bool read_request(struct authority *self, const char *request, char **ret_key_hash,
                         GError **error)
{
    *ret_key_hash = hash_of(request);
    return !is_dead(error);
}

static bool check_proof(struct authority *self, const struct keys_request *asked,
                        char **ret_key_hash, GError **error)
{
    g_autofree char *wanted = g_strdup_printf("by %s", asked->key);
    if (strcmp(asked->proof, wanted) != 0) {
        fettle_set_error(error, PERMISSION, "proof: is none");
        return false;
    }
    *ret_key_hash = hash_of(asked->key);
    return true;
}

static bool sign(struct authority *self, const char *request, const char *cluster_uuid,
                 const char *node_uuid, char **ret_certificate, GError **error)
{
    if (is_dead(error))
        return false;
    settle();
    if (!keys_world.key) {
        fettle_set_error(error, STORAGE, "ca.key: gone");
        return false;
    }
    g_assert_true(keys_world_is_first(0, keys_world.key));
    g_assert_cmpstr(request, !=, "forged");
    *ret_certificate = g_strdup(keys_world.key);
    return true;
}

static bool show(struct authority *self, char **ret_certificate, char **ret_fingerprint,
                 GError **error)
{
    *ret_certificate = g_strdup(keys_world.trusts[0]);
    *ret_fingerprint = invitation_fingerprint(keys_world.trusts[0]);
    return true;
}

static bool has_key(struct authority *self)
{
    return keys_world.key;
}

static bool read_key(struct authority *self, char **ret_key, GError **error)
{
    settle();
    *ret_key = g_strdup_printf("key of %s", keys_world.key);
    return true;
}

static bool sign_text(struct authority *self, const char *text, char **ret_signature,
                      GError **error)
{
    settle();
    *ret_signature = g_strdup_printf("by %s", keys_world.key ? keys_world.key : "nobody");
    return true;
}

static bool status(struct authority *self, struct keys_status *keys, GError **error)
{
    keys->authority_ends = 4711;
    return true;
}

static const struct authority_ops authority_ops = {.make_next = make_next,
                                                   .has_key_of = has_key_of,
                                                   .read_request = read_request,
                                                   .check_proof = check_proof,
                                                   .sign = sign,
                                                   .show = show,
                                                   .has_key = has_key,
                                                   .read_key = read_key,
                                                   .sign_text = sign_text,
                                                   .status = status};

/* --- node daemons --- */

static json_t *status_of(guint node)
{
    record_autoptr(keys_status) keys = keys_status_new();
    g_auto(GStrv) parts = g_strsplit(keys_world.trusts[node], "-----BEGIN", -1);
    g_autofree char *issuer = keys_world_fingerprint_of(keys_world.issuer[node]);
    for (char **part = parts + 1; *part; part++) {
        g_autofree char *one = g_strconcat("-----BEGIN", *part, NULL);
        g_ptr_array_add(keys->trusts, invitation_fingerprint(one));
    }
    text_set(&keys->issuer, issuer);
    return keys_status_to_json(keys);
}

static char *next_key(guint node)
{
    return g_strdup_printf("%s'", keys_world.node_key[node]);
}

static json_t *request_of(guint node)
{
    enum forgery forged = keys_world.forged[node];
    g_autofree char *next = next_key(node);
    const char *key = forged == FORGED_KEY ? "other" : keys_world.node_key[node];
    g_autofree char *proof = g_strdup_printf("by %s", forged == FORGED_PROOF ? "other" : key);
    return json_make("{s:s,s:s,s:s}", "request", forged ? "forged" : next, "key", key, "proof",
                     forged == FORGED_NO_PROOF ? "" : proof);
}

static void act(guint node, const struct rpc_request *request)
{
    if (!strcmp(request->name, "keys_trust"))
        text_set(&keys_world.trusts[node],
                 json_string_value(json_object_get(request->args, "authority")));
    else if (!strcmp(request->name, "keys_certify") && !keys_world.forged[node]) {
        g_autofree char *next = next_key(node);
        const char *issuer = json_string_value(json_object_get(request->args, "certificate"));
        if (strcmp(issuer, keys_world.issuer[node]) != 0)
            text_set(&keys_world.node_key[node], next);
        text_set(&keys_world.issuer[node], issuer);
    }
    keys_world_assert_nobody_out();
}

json_t *keys_world_answer(const struct rpc_request *request, const char *to_node, void *data,
                          GError **error)
{
    guint node = 0;
    while (strcmp(uuids[node], to_node) != 0)
        node++;
    bool dies = ++keys_world.questions == keys_world.dies_at;
    if (keys_world.dead || keys_world.silent[node] || !keys_world_hear_each_other(0, node)) {
        fettle_set_error(error, UNREACHABLE, "no answer");
        return NULL;
    }
    if (keys_world.old[node]) {
        fettle_set_error(error, PROTOCOL, "the node daemon has no method %s", request->name);
        return NULL;
    }
    if (!dies || keys_world.acts)
        act(node, request);
    if (dies) {
        keys_world.dead = true;
        fettle_set_error(error, UNREACHABLE, "no answer");
        return NULL;
    }
    return !strcmp(request->name, "keys_request") ? request_of(node) : status_of(node);
}

/* --- the cluster --- */

static json_t *promise(const struct rpc_request *request, const char *to_node, void *data,
                       GError **error)
{
    return json_make("{s:b}", "granted", true);
}

void keys_world_give(void)
{
    world.wconfd->authority = &keys_world.authority;
}

/* The cluster has signed for all of them before. */
static void put_keys(GPtrArray *objects)
{
    for (guint i = 0; i < objects->len; i++) {
        const struct change *change = objects->pdata[i];
        for (guint k = 0; k < KEYS_WORLD_NODES; k++) {
            g_autofree char *hash = hash_of(keys_world.node_key[k]);
            if (!strcmp(change->kind, "node") && !strcmp(change->key, uuids[k]))
                json_object_set_new(change->object, "key_hash", json_string(hash));
        }
    }
}

void keys_world_set_up_with(GPtrArray *objects)
{
    static const char *const methods[] = {"keys_trust", "keys_request", "keys_certify"};
    memset(&keys_world, 0, sizeof keys_world);
    keys_world.asked = g_string_new(NULL);
    keys_world.made = 1;
    keys_world.key = g_strdup("ca1");
    for (guint i = 0; i < KEYS_WORLD_NODES; i++) {
        keys_world.trusts[i] = pem("ca1");
        keys_world.issuer[i] = g_strdup("ca1");
        keys_world.node_key[i] = g_strdup_printf("key%u", i + 1);
    }
    put_keys(objects);
    keys_world.authority.ops = &authority_ops;
    config_world_init(&world, objects);
    for (guint i = 0; i < G_N_ELEMENTS(methods); i++)
        fake_script(world.world, NULL, ROLE_NODED, methods[i], keys_world_answer, NULL);
    fake_script(world.world, NULL, ROLE_NODED, "promise_epoch", promise, NULL);
    keys_world.cli = fake_process(world.world, NODE1, ROLE_CLI);
    keys_world_give();
    config_world_start(&world);
}

void keys_world_set_up(void)
{
    keys_world_set_up_with(initial_changes());
}

void keys_world_tear_down(void)
{
    config_world_clear(&world);
    g_string_free(keys_world.asked, TRUE);
    for (guint i = 0; i < KEYS_WORLD_NODES; i++) {
        g_free(keys_world.trusts[i]);
        g_free(keys_world.issuer[i]);
        g_free(keys_world.node_key[i]);
    }
    g_free(keys_world.key);
    g_free(keys_world.next);
}

json_t *keys_world_progress(void)
{
    g_autofree char *text = ask_wconf(&world, keys_world.cli, "keys_progress", json_object());
    return json_parse_limited(text, strlen(text), KIB(64), NULL);
}

/* "PHASE: first of what it waits for" */
char *keys_world_state(void)
{
    json_autoptr now = keys_world_progress();
    const char *wait = json_string_value(json_array_get(json_object_get(now, "waits"), 0));
    const char *phase = json_string_value(json_object_get(now, "phase"));
    return wait ? g_strdup_printf("%s: %s", phase, wait) : g_strdup(phase);
}

void keys_world_begin(void)
{
    g_autofree char *said = ask_wconf(&world, keys_world.cli, "renew_keys", json_object());
    g_assert_true(g_str_has_prefix(said, "{"));
}

/* Every node has what this authority has signed, and trusts it alone. */
void keys_world_assert_all_by(const char *name)
{
    g_autofree char *only = pem(name);
    for (guint i = 0; i < KEYS_WORLD_NODES; i++) {
        g_assert_cmpstr(keys_world.trusts[i], ==, only);
        g_assert_cmpstr(keys_world.issuer[i], ==, name);
        const struct node *node = config_get(world.wconf->committed, "node", uuids[i], NULL);
        g_autofree char *hash = hash_of(keys_world.node_key[i]);
        g_assert_cmpstr(node->key_hash, ==, hash);
    }
    g_assert_cmpstr(keys_world.key, ==, name);
    g_assert_null(keys_world.next);
}

char *keys_world_secret_now(void)
{
    const struct secret *secret = config_get(world.wconf->committed, "secret", "confd", NULL);
    return g_strdup(secret ? secret->value : "");
}
