/*
 * The renewal of the cluster's keys at the master, against nodes that let in whom they trust:
 * deaths of the master at every question, silent and offline nodes, lost keys.
 * core/wconfd/key_renewal.c.
 */
#include <string.h>

#include "core/wconfd/key_renewal.h"
#include "core/wconfd/wconf_private.h"
#include "proto/invitation.h"
#include "proto/records.h"
#include "unit/core/world/wconf_world.h"

#define NODES 3

static const char *const uuids[NODES] = {NODE1, NODE2, NODE3};

/* --- nodes, and the authority of the master's; all of it outlives a wconfd --- */

enum forgery { FORGED_NOT, FORGED_KEY, FORGED_PROOF, FORGED_NO_PROOF };

static struct {
    char *trusts[NODES]; /* etc/ca.crt */
    char *issuer[NODES]; /* whose certificate it has: "ca1" */
    bool silent[NODES];
    bool away[NODES]; /* it is offline on record, and misses what happens */
    bool old[NODES];  /* of a version that knows no renewal */
    char *node_key[NODES];
    enum forgery forged[NODES]; /* who asks in its name has another key */
    char *key, *next;
    guint made;
    struct authority authority;
    struct env *cli;
    guint questions;
    guint looks;   /* for a key */
    guint dies_at; /* at this question, counted from 1, the master dies; 0: never */
    bool acts;     /* the question was carried out all the same */
    bool dead;
    GString *asked;
} it;

/* The certificate of an authority, in one line: the world takes no other. */
static char *pem(const char *name)
{
    g_autofree char *text = g_base64_encode((const guchar *)name, strlen(name));
    return g_strdup_printf("-----BEGIN CERTIFICATE-----%s-----END CERTIFICATE-----", text);
}

static char *fingerprint_of(const char *name)
{
    g_autofree char *certificate = pem(name);
    return invitation_fingerprint(certificate);
}

static bool is_trusted(guint by, const char *name)
{
    g_autofree char *certificate = pem(name);
    return strstr(it.trusts[by], certificate);
}

static bool is_first(guint node, const char *name)
{
    g_autofree char *certificate = pem(name);
    return g_str_has_prefix(it.trusts[node], certificate);
}

static bool hear_each_other(guint one, guint other)
{
    return is_trusted(one, it.issuer[other]) && is_trusted(other, it.issuer[one]);
}

/* Nobody is locked out, at any moment. */
static void assert_nobody_out(void)
{
    for (guint i = 0; i < NODES; i++)
        for (guint k = 0; k < NODES; k++)
            g_assert_true(it.away[i] || it.away[k] || hear_each_other(i, k));
}

/* --- the authority --- */

static bool is_dead(GError **error)
{
    if (it.dead)
        fettle_set_error(error, TEMPORARY, "dead");
    return it.dead;
}

static bool make_next(struct authority *self, const char *cluster_uuid, char **ret_certificate,
                      GError **error)
{
    if (is_dead(error))
        return false;
    g_free(it.next);
    it.next = g_strdup_printf("ca%u", ++it.made);
    *ret_certificate = pem(it.next);
    return true;
}

static bool has_key_of(struct authority *self, const char *certificate, bool *ret_has,
                       GError **error)
{
    g_autofree char *own = it.key ? pem(it.key) : NULL;
    g_autofree char *next = it.next ? pem(it.next) : NULL;
    it.looks++;
    *ret_has = g_strcmp0(certificate, own) == 0 || g_strcmp0(certificate, next) == 0;
    return !is_dead(error);
}

static void settle(void)
{
    if (!it.next || !is_first(0, it.next))
        return;
    g_free(it.key);
    it.key = g_steal_pointer(&it.next);
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
    if (!it.key) {
        fettle_set_error(error, STORAGE, "ca.key: gone");
        return false;
    }
    g_assert_true(is_first(0, it.key));
    g_assert_cmpstr(request, !=, "forged");
    *ret_certificate = g_strdup(it.key);
    return true;
}

static bool show(struct authority *self, char **ret_certificate, char **ret_fingerprint,
                 GError **error)
{
    *ret_certificate = g_strdup(it.trusts[0]);
    *ret_fingerprint = invitation_fingerprint(it.trusts[0]);
    return true;
}

static bool has_key(struct authority *self)
{
    return it.key;
}

static bool read_key(struct authority *self, char **ret_key, GError **error)
{
    settle();
    *ret_key = g_strdup_printf("key of %s", it.key);
    return true;
}

static bool sign_text(struct authority *self, const char *text, char **ret_signature,
                      GError **error)
{
    settle();
    *ret_signature = g_strdup_printf("by %s", it.key ? it.key : "nobody");
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
    g_auto(GStrv) parts = g_strsplit(it.trusts[node], "-----BEGIN", -1);
    g_autofree char *issuer = fingerprint_of(it.issuer[node]);
    for (char **part = parts + 1; *part; part++) {
        g_autofree char *one = g_strconcat("-----BEGIN", *part, NULL);
        g_ptr_array_add(keys->trusts, invitation_fingerprint(one));
    }
    text_set(&keys->issuer, issuer);
    return keys_status_to_json(keys);
}

static char *next_key(guint node)
{
    return g_strdup_printf("%s'", it.node_key[node]);
}

static json_t *request_of(guint node)
{
    enum forgery forged = it.forged[node];
    g_autofree char *next = next_key(node);
    const char *key = forged == FORGED_KEY ? "other" : it.node_key[node];
    g_autofree char *proof = g_strdup_printf("by %s", forged == FORGED_PROOF ? "other" : key);
    return json_make("{s:s,s:s,s:s}", "request", forged ? "forged" : next, "key", key, "proof",
                     forged == FORGED_NO_PROOF ? "" : proof);
}

static void act(guint node, const struct rpc_request *request)
{
    if (!strcmp(request->name, "keys_trust"))
        text_set(&it.trusts[node], json_string_value(json_object_get(request->args, "authority")));
    else if (!strcmp(request->name, "keys_certify") && !it.forged[node]) {
        g_autofree char *next = next_key(node);
        const char *issuer = json_string_value(json_object_get(request->args, "certificate"));
        if (strcmp(issuer, it.issuer[node]) != 0)
            text_set(&it.node_key[node], next);
        text_set(&it.issuer[node], issuer);
    }
    assert_nobody_out();
}

static json_t *answer(const struct rpc_request *request, const char *to_node, void *data,
                      GError **error)
{
    guint node = 0;
    while (strcmp(uuids[node], to_node) != 0)
        node++;
    bool dies = ++it.questions == it.dies_at;
    if (it.dead || it.silent[node] || !hear_each_other(0, node)) {
        fettle_set_error(error, UNREACHABLE, "no answer");
        return NULL;
    }
    if (it.old[node]) {
        fettle_set_error(error, PROTOCOL, "the node daemon has no method %s", request->name);
        return NULL;
    }
    if (!dies || it.acts)
        act(node, request);
    if (dies) {
        it.dead = true;
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

static void give(void)
{
    world.wconfd->authority = &it.authority;
}

/* The cluster has signed for all of them before. */
static void put_keys(GPtrArray *objects)
{
    for (guint i = 0; i < objects->len; i++) {
        const struct change *change = objects->pdata[i];
        for (guint k = 0; k < NODES; k++) {
            g_autofree char *hash = hash_of(it.node_key[k]);
            if (!strcmp(change->kind, "node") && !strcmp(change->key, uuids[k]))
                json_object_set_new(change->object, "key_hash", json_string(hash));
        }
    }
}

static void set_up_with(GPtrArray *objects)
{
    static const char *const methods[] = {"keys_trust", "keys_request", "keys_certify"};
    memset(&it, 0, sizeof it);
    it.asked = g_string_new(NULL);
    it.made = 1;
    it.key = g_strdup("ca1");
    for (guint i = 0; i < NODES; i++) {
        it.trusts[i] = pem("ca1");
        it.issuer[i] = g_strdup("ca1");
        it.node_key[i] = g_strdup_printf("key%u", i + 1);
    }
    put_keys(objects);
    it.authority.ops = &authority_ops;
    config_world_init(&world, objects);
    for (guint i = 0; i < G_N_ELEMENTS(methods); i++)
        fake_script(world.world, NULL, ROLE_NODED, methods[i], answer, NULL);
    fake_script(world.world, NULL, ROLE_NODED, "promise_epoch", promise, NULL);
    it.cli = fake_process(world.world, NODE1, ROLE_CLI);
    give();
    config_world_start(&world);
}

static void set_up(void)
{
    set_up_with(initial_changes());
}

static void tear_down(void)
{
    config_world_clear(&world);
    g_string_free(it.asked, TRUE);
    for (guint i = 0; i < NODES; i++) {
        g_free(it.trusts[i]);
        g_free(it.issuer[i]);
        g_free(it.node_key[i]);
    }
    g_free(it.key);
    g_free(it.next);
}

static json_t *progress(void)
{
    g_autofree char *text = ask_wconf(&world, it.cli, "keys_progress", json_object());
    return json_parse_limited(text, strlen(text), KIB(64), NULL);
}

/* "PHASE: first of what it waits for" */
static char *state(void)
{
    json_autoptr now = progress();
    const char *wait = json_string_value(json_array_get(json_object_get(now, "waits"), 0));
    const char *phase = json_string_value(json_object_get(now, "phase"));
    return wait ? g_strdup_printf("%s: %s", phase, wait) : g_strdup(phase);
}

static void begin(void)
{
    g_autofree char *said = ask_wconf(&world, it.cli, "renew_keys", json_object());
    g_assert_true(g_str_has_prefix(said, "{"));
}

/* Every node has what this authority has signed, and trusts it alone. */
static void assert_all_by(const char *name)
{
    g_autofree char *only = pem(name);
    for (guint i = 0; i < NODES; i++) {
        g_assert_cmpstr(it.trusts[i], ==, only);
        g_assert_cmpstr(it.issuer[i], ==, name);
        const struct node *node = config_get(world.wconf->committed, "node", uuids[i], NULL);
        g_autofree char *hash = hash_of(it.node_key[i]);
        g_assert_cmpstr(node->key_hash, ==, hash);
    }
    g_assert_cmpstr(it.key, ==, name);
    g_assert_null(it.next);
}

static char *secret_now(void)
{
    const struct secret *secret = config_get(world.wconf->committed, "secret", "confd", NULL);
    return g_strdup(secret ? secret->value : "");
}

static json_t *object_token(const char *uuid, const char *node_uuid, guint64 made)
{
    g_autofree char *hash = g_strnfill(64, '0');
    return json_make("{s:s,s:s,s:s,s:s,s:s,s:I,s:I,s:s}", "uuid", uuid, "secret_hash", hash,
                     "node_name", uuid, "primary_ip", "10.0.0.9", "group", GROUP, "made",
                     (json_int_t)made, "expires", (json_int_t)made + 60, "node_uuid", node_uuid);
}

/* --- tests --- */

static void test_whole(void)
{
    set_up();
    g_autofree char *before = secret_now();
    assert_says(state(), "none");
    begin();
    fake_advance(world.world, 20000);
    assert_says(state(), "none");
    assert_all_by("ca2");
    g_autofree char *after = secret_now();
    g_assert_cmpstr(after, !=, before);
    g_assert_cmpuint(strlen(after), ==, 64);
    g_assert_cmpstr(wconf_signature(world.wconf), ==, "by ca2");
    begin();
    fake_advance(world.world, 20000);
    assert_all_by("ca3");
    tear_down();
}

/* An invitation of before opens nothing by the new authority, whether it was used or not. */
static void test_tokens(void)
{
    set_up();
    const char *const unused = "77777777-0000-4000-8000-000000000001";
    const char *const used = "77777777-0000-4000-8000-000000000002";
    const char *const later = "77777777-0000-4000-8000-000000000003";
    g_free(job_commit(&world, 17,
                      changes_of(put("join_token", unused, 0, object_token(unused, "", 1)),
                                 put("join_token", used, 0, object_token(used, NODE3, 1)),
                                 put("join_token", later, 0, object_token(later, "", 4000000000)),
                                 NULL)));
    g_assert_cmpuint(config_count(world.wconf->committed, "join_token"), ==, 3);
    begin();
    while (config_cluster(world.wconf->committed)->renewal != RENEWAL_REISSUE) {
        g_assert_nonnull(config_get(world.wconf->committed, "join_token", used, NULL));
        fake_advance(world.world, 10);
    }
    /* Its host is a node, and is told like all others; it could ask again, and what signs now is
     * the new authority. */
    g_assert_null(config_get(world.wconf->committed, "join_token", used, NULL));
    g_assert_nonnull(config_get(world.wconf->committed, "join_token", unused, NULL));
    fake_advance(world.world, 20000);
    assert_says(state(), "none");
    g_assert_cmpuint(config_count(world.wconf->committed, "join_token"), ==, 1);
    g_assert_nonnull(config_get(world.wconf->committed, "join_token", later, NULL));
    tear_down();
}

/* Old links, of whom the old authority has signed, may live until all have confirmed that it is
 * gone. */
static void test_secret_goes_last(void)
{
    set_up();
    g_autofree char *before = secret_now();
    begin();
    while (config_cluster(world.wconf->committed)->renewal != RENEWAL_DROP)
        fake_advance(world.world, 100);
    it.silent[2] = true;
    fake_advance(world.world, 10000);
    assert_says(state(), "drop: node node3: no answer");
    assert_says(secret_now(), before);
    it.silent[2] = false;
    fake_advance(world.world, 10000);
    assert_says(state(), "none");
    g_autofree char *after = secret_now();
    g_assert_cmpstr(after, !=, before);
    tear_down();
}

/* The master dies at each question in turn, before or after it was carried out; a new one goes on.
 * False: there are no more questions. */
static bool die_at(guint number, bool acts)
{
    set_up();
    it.dies_at = number;
    it.acts = acts;
    begin();
    fake_advance(world.world, 20000);
    bool died = it.dead;
    it.dead = false;
    it.dies_at = 0;
    config_world_restart(&world);
    give();
    config_world_start(&world);
    fake_advance(world.world, 30000);
    assert_says(state(), "none");
    assert_all_by("ca2");
    tear_down();
    return died;
}

static void test_dies(void)
{
    guint number = 1;
    for (; die_at(number, false); number++)
        g_assert_true(die_at(number, true));
    g_assert_cmpuint(number, >, 12); /* each node is told twice, asks and gets, is told once more */
}

/* It is named in each phase that needs it, and the rest goes on when it returns. */
static void test_silent(void)
{
    set_up();
    it.silent[2] = true;
    begin();
    fake_advance(world.world, 20000);
    assert_says(state(), "spread: node node3: no answer");
    g_assert_cmpuint(it.looks, ==, 1); /* each is a process or two */
    g_assert_true(is_trusted(1, "ca2"));
    g_assert_cmpstr(it.issuer[1], ==, "ca1"); /* it would not be believed there */
    assert_nobody_out();
    it.silent[2] = false;
    it.silent[1] = true;
    fake_advance(world.world, 5000);
    assert_nobody_out();
    it.silent[1] = false;
    fake_advance(world.world, 20000);
    assert_says(state(), "none");
    assert_all_by("ca2");
    tear_down();
}

static void test_older(void)
{
    set_up();
    it.old[1] = true;
    begin();
    fake_advance(world.world, 20000);
    assert_says(state(), "spread: node node2: its version knows no renewal of keys; upgrade it");
    it.old[1] = false;
    fake_advance(world.world, 20000);
    assert_all_by("ca2");
    tear_down();
}

static struct change *node3_offline(guint64 version, bool offline)
{
    json_t *node = with(object_node(NODE3), "offline", json_boolean(offline));
    return put("node", NODE3, version,
               offline ? with(node, "offline_statement", json_string("x")) : node);
}

static bool missed(void)
{
    const struct node *node = config_get(world.wconf->committed, "node", NODE3, NULL);
    return node->keys_missed;
}

/* One that is offline on record is not waited for, and is known for what it has missed. */
static void test_offline(void)
{
    GPtrArray *objects = initial_changes();
    g_ptr_array_add(objects, node3_offline(1, true));
    set_up_with(objects);
    it.silent[2] = it.away[2] = true;
    begin();
    for (guint i = 0; i < 40 && !missed(); i++)
        fake_advance(world.world, 500);
    g_assert_true(missed());
    /* It stands on record before anybody has what it would not believe. */
    g_assert_true(is_first(0, "ca1"));
    g_assert_cmpstr(it.issuer[0], ==, "ca1");
    fake_advance(world.world, 20000);
    assert_says(state(), "none");
    json_autoptr shown = progress();
    const json_t *names = json_object_get(shown, "missed");
    g_assert_cmpstr(json_string_value(json_array_get(names, 0)), ==, "node3");
    g_assert_false(hear_each_other(0, 2));
    text_set(&it.trusts[2], it.trusts[0]); /* it has joined again */
    text_set(&it.issuer[2], it.issuer[0]);
    it.silent[2] = it.away[2] = false;
    fake_advance(world.world, 20000);
    g_assert_true(missed()); /* nobody has asked it yet: it is offline */
    tear_down();
}

/* A node that is offline on record, and there all the same, misses nothing. */
static void test_offline_and_there(void)
{
    GPtrArray *objects = initial_changes();
    g_ptr_array_add(objects, node3_offline(1, true));
    set_up_with(objects);
    begin();
    fake_advance(world.world, 20000);
    assert_says(state(), "none");
    assert_all_by("ca2");
    g_assert_false(missed());
    tear_down();
}

/* The key that was to sign is gone with the disk of the master that made it. */
static void test_lost_before_it_signs(void)
{
    set_up();
    it.silent[2] = true;
    begin();
    fake_advance(world.world, 5000);
    config_world_restart(&world);
    g_clear_pointer(&it.next, g_free);
    give();
    config_world_start(&world);
    fake_advance(world.world, 5000);
    /* Whoever had it may have signed with it, whatever this master's record says. */
    g_assert_true(is_trusted(1, "ca2") && is_trusted(1, "ca3"));
    it.silent[2] = false;
    fake_advance(world.world, 30000);
    assert_says(state(), "none");
    assert_all_by("ca3");
    tear_down();
}

/* … and after it has signed for some: they are believed until the one after it is through. */
static void test_lost_after(void)
{
    set_up();
    it.dies_at = 6;
    it.acts = true;
    begin();
    fake_advance(world.world, 20000);
    g_assert_cmpstr(it.issuer[0], ==, "ca2");
    g_assert_cmpstr(it.issuer[2], ==, "ca1");
    it.dead = false;
    config_world_restart(&world);
    g_clear_pointer(&it.key, g_free);
    g_clear_pointer(&it.next, g_free);
    give();
    config_world_start(&world);
    fake_advance(world.world, 30000);
    assert_says(state(), "none");
    assert_all_by("ca3");
    tear_down();
}

/* … and under a master that has found it there before. */
static void test_lost_meanwhile(void)
{
    set_up();
    begin();
    while (config_cluster(world.wconf->committed)->renewal != RENEWAL_REISSUE)
        fake_advance(world.world, 10);
    it.silent[2] = true;
    fake_advance(world.world, 5000);
    g_assert_cmpstr(it.issuer[0], ==, "ca2");
    g_assert_cmpstr(it.issuer[2], ==, "ca1");
    g_clear_pointer(&it.key, g_free);
    it.silent[2] = false;
    fake_advance(world.world, 40000);
    assert_says(state(), "none");
    assert_all_by("ca3");
    tear_down();
}

/* What the configuration daemon of a candidate says: its copy is as new as that of the master. */
static void follow(struct env *from, const char *key_of)
{
    const struct config *config = world.wconf->committed;
    g_autofree char *digest = g_strdup_printf("%" G_GINT64_MODIFIER "x", config_digest(config));
    struct fake_reply reply = {0};
    fake_call_start_stamped(from, 0, (struct stamp){5, world.epoch}, NODE1, ROLE_WCONFD, "follow",
                            json_make("{s:i,s:I,s:s,s:b,s:s}", "history", 5, "serial",
                                      (json_int_t)config_serial(config), "digest", digest,
                                      "authority", true, "key_of", key_of),
                            &reply);
    fake_advance(world.world, 5000);
    fake_reply_clear(&reply);
}

static struct env *set_up_candidate(void)
{
    GPtrArray *objects = initial_changes();
    g_ptr_array_add(
        objects, put("node", NODE2, 1, with(object_node(NODE2), "master_candidate", json_true())));
    json_object_set_new(((struct change *)objects->pdata[0])->object, "commit_copies",
                        json_integer(0));
    set_up_with(objects);
    return fake_process(world.world, NODE2, ROLE_WCONFD);
}

/* A candidate that would be master without the key keeps the old authority alive. */
static void test_candidate(void)
{
    struct env *other = set_up_candidate();
    begin();
    for (guint i = 0; i < 5; i++)
        follow(other, "");
    assert_says(state(), "reissue: node node2: its configuration daemon does not have the new "
                         "authority's key yet");
    g_autofree char *of = fingerprint_of("ca2");
    for (guint i = 0; i < 5; i++)
        follow(other, of);
    assert_says(state(), "none");
    assert_all_by("ca2");
    tear_down();
}

/* A phase that no other candidate knows of does nothing yet: it would be taken for one that never
 * began. */
static void test_not_copied(void)
{
    struct env *other = set_up_candidate();
    begin();
    fake_advance(world.world, 20000);
    assert_says(state(), "spread: no other candidate has a copy of this phase yet");
    g_assert_false(is_trusted(0, "ca2") || is_trusted(1, "ca2"));
    follow(other, "");
    fake_advance(world.world, 20000);
    assert_says(state(), "reissue: no other candidate has a copy of this phase yet");
    g_assert_true(is_first(0, "ca1") && is_trusted(1, "ca2"));
    g_assert_cmpstr(it.issuer[0], ==, "ca1");
    follow(other, "");
    g_assert_cmpstr(it.issuer[1], ==, "ca2");
    tear_down();
}

/* Asks for the authority's key with a certificate that `name` has signed; NULL: not told. */
static char *key_for(struct env *candidate, const char *name)
{
    g_autofree char *by = name ? fingerprint_of(name) : NULL;
    struct fake_reply reply = {0};
    fake_set_signed_by(world.world, by);
    fake_call_start_stamped(candidate, 0, (struct stamp){5, world.epoch}, NODE1, ROLE_WCONFD,
                            "authority_key", json_object(), &reply);
    fake_advance(world.world, 100);
    fake_set_signed_by(world.world, NULL);
    g_assert_true(reply.done);
    char *said = reply.error ? g_strdup_printf("%s: %s", fettle_error_name(reply.error),
                                               reply.error->message)
                             : g_strdup(json_string_value(json_object_get(reply.result, "key")));
    fake_reply_clear(&reply);
    return said;
}

/* Whoever has the key of the old authority makes a certificate of a candidate, and is believed
 * until that authority is dropped: the key of the new one it does not get by that. */
static void test_forged_candidate(void)
{
    static const char refused[] = "resource_not_available: the certificate with which node node2 "
                                  "asks is not signed by the authority "
                                  "whose key this is; it gets one of that first";
    struct env *other = set_up_candidate();
    assert_says(key_for(other, "ca1"), "key of ca1");
    assert_says(key_for(other, NULL), "key of ca1"); /* a node daemon of before */
    begin();
    while (config_cluster(world.wconf->committed)->renewal != RENEWAL_REISSUE)
        follow(other, "");
    assert_says(key_for(other, NULL), refused);
    for (guint i = 0; i < 3; i++)
        follow(other, "");
    g_assert_cmpstr(it.key, ==, "ca2");
    assert_says(key_for(other, "ca1"), refused);
    assert_says(key_for(other, NULL), refused);
    assert_says(key_for(other, "ca2"), "key of ca2");
    g_autofree char *of = fingerprint_of("ca2");
    for (guint i = 0; i < 5; i++)
        follow(other, of);
    assert_says(state(), "none");
    assert_says(key_for(other, "ca1"), refused);
    assert_says(key_for(other, "ca2"), "key of ca2");
    tear_down();
}

/* Who answers the master in the name of a node, with a certificate that the leaked key has made,
 * gets none of the new authority: it does not have that node's key. */
static void test_forged_node(void)
{
    static const char *const says[] = {
        [FORGED_KEY] = "asks with another key than the one on record: somebody else may speak in "
                       "its name; a host that has lost its keys is marked offline, invited by its "
                       "name, and joins with --new-keys",
        [FORGED_PROOF] = "proof: is none",
        [FORGED_NO_PROOF] = "does not prove that it has the key on record; upgrade it"};
    for (guint i = FORGED_KEY; i <= FORGED_NO_PROOF; i++) {
        set_up();
        it.forged[2] = (enum forgery)i;
        begin();
        fake_advance(world.world, 20000);
        g_autofree char *expected = g_strdup_printf("reissue: node node3: %s", says[i]);
        assert_says(state(), expected);
        g_assert_cmpstr(it.issuer[1], ==, "ca2");
        g_assert_cmpstr(it.issuer[2], ==, "ca1");
        it.forged[2] = FORGED_NOT;
        fake_advance(world.world, 20000);
        assert_says(state(), "none");
        assert_all_by("ca2");
        tear_down();
    }
}

/* Of one that the cluster has signed for before it kept that on record the first key is taken. */
static void test_key_not_known(void)
{
    GPtrArray *objects = initial_changes();
    set_up_with(objects);
    const struct node *node = config_get(world.wconf->committed, "node", NODE3, NULL);
    guint64 version = 0;
    config_get(world.wconf->committed, "node", NODE3, &version);
    json_t *object = with(node_to_json(node), "key_hash", json_string(""));
    g_free(job_commit(&world, 17, changes_of(put("node", NODE3, version, object), NULL)));
    begin();
    fake_advance(world.world, 20000);
    assert_says(state(), "none");
    assert_all_by("ca2");
    tear_down();
}

/* From the word on, not from the commit on, the engine stays as it is. */
static void test_being_begun(void)
{
    set_up();
    struct fake_reply first = {0}, second = {0};
    g_autoptr(GError) error = NULL;
    g_assert_true(key_renewal_over(world.wconf, "x", &error));
    fake_engine_hold(world.engine);
    fake_call_start(it.cli, 0, NODE1, ROLE_WCONFD, "renew_keys", json_object(), &first);
    fake_settle(world.world);
    for (guint i = 0; i < 5; i++) {
        g_assert_false(first.done || key_renewal_over(world.wconf, "x", &error));
        g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_WRONG_STATE);
        g_clear_error(&error);
        fake_advance(world.world, 1000);
    }
    /* Who asks once more meanwhile begins no other. */
    fake_call_start(it.cli, 0, NODE1, ROLE_WCONFD, "renew_keys", json_object(), &second);
    fake_engine_release(world.engine);
    fake_advance(world.world, 20000);
    g_assert_true(first.result && second.result);
    fake_reply_clear(&first);
    fake_reply_clear(&second);
    assert_says(state(), "none");
    assert_all_by("ca2");
    g_assert_true(key_renewal_over(world.wconf, "x", &error));
    tear_down();
}

static void test_refused(void)
{
    set_up();
    g_clear_pointer(&it.key, g_free);
    assert_says(ask_wconf(&world, it.cli, "renew_keys", json_object()),
                "wrong_state: the key of the cluster's authority is not on this node: copy "
                "etc/ca.key from another candidate, with mode 0600, or make that one the master");
    it.key = g_strdup("ca1");
    fake_engine_base(world.engine)->replicated = true;
    assert_says(ask_wconf(&world, it.cli, "renew_keys", json_object()),
                "wrong_state: the engine is etcd, whose members trust the authority that is now: "
                "say `fettle cluster engine sqlite` first, renew, and go back with `fettle cluster "
                "engine etcd`, which makes the members' keys anew, too");
    fake_engine_base(world.engine)->replicated = false;
    tear_down();
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/key-renewal/whole#SAF-94", test_whole);
    g_test_add_func("/key-renewal/tokens#SAF-96", test_tokens);
    g_test_add_func("/key-renewal/secret-goes-last#SAF-94", test_secret_goes_last);
    g_test_add_func("/key-renewal/dies-at-every-question#SAF-94", test_dies);
    g_test_add_func("/key-renewal/silent#SAF-94", test_silent);
    g_test_add_func("/key-renewal/older-version#SAF-94", test_older);
    g_test_add_func("/key-renewal/offline#SAF-96", test_offline);
    g_test_add_func("/key-renewal/offline-and-there#SAF-96", test_offline_and_there);
    g_test_add_func("/key-renewal/lost-before-it-signs#SAF-95", test_lost_before_it_signs);
    g_test_add_func("/key-renewal/lost-after#SAF-95", test_lost_after);
    g_test_add_func("/key-renewal/lost-meanwhile#SAF-95", test_lost_meanwhile);
    g_test_add_func("/key-renewal/candidate-without-the-key#SAF-95", test_candidate);
    g_test_add_func("/key-renewal/forged-candidate#SAF-94", test_forged_candidate);
    g_test_add_func("/key-renewal/forged-node#SAF-94", test_forged_node);
    g_test_add_func("/key-renewal/key-not-known#SAF-94", test_key_not_known);
    g_test_add_func("/key-renewal/not-copied#SAF-95", test_not_copied);
    g_test_add_func("/key-renewal/being-begun", test_being_begun);
    g_test_add_func("/key-renewal/refused", test_refused);
    return g_test_run();
}
