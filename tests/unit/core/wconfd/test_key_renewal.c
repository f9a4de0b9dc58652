/*
 * The renewal of the cluster's keys at the master, against nodes that let in whom they trust:
 * deaths of the master at every question, silent and offline nodes, lost keys.
 * core/wconfd/key_renewal.c.
 */
#include <string.h>

#include "core/wconfd/key_renewal.h"
#include "unit/core/world/keys_world.h"

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
    keys_world_set_up();
    g_autofree char *before = keys_world_secret_now();
    assert_says(keys_world_state(), "none");
    keys_world_begin();
    fake_advance(world.world, 20000);
    assert_says(keys_world_state(), "none");
    keys_world_assert_all_by("ca2");
    g_autofree char *after = keys_world_secret_now();
    g_assert_cmpstr(after, !=, before);
    g_assert_cmpuint(strlen(after), ==, 64);
    g_assert_cmpstr(wconf_signature(world.wconf), ==, "by ca2");
    keys_world_begin();
    fake_advance(world.world, 20000);
    keys_world_assert_all_by("ca3");
    keys_world_tear_down();
}

/* An invitation of before opens nothing by the new authority, whether it was used or not. */
static void test_tokens(void)
{
    keys_world_set_up();
    const char *const unused = "77777777-0000-4000-8000-000000000001";
    const char *const used = "77777777-0000-4000-8000-000000000002";
    const char *const later = "77777777-0000-4000-8000-000000000003";
    g_free(job_commit(&world, 17,
                      changes_of(put("join_token", unused, 0, object_token(unused, "", 1)),
                                 put("join_token", used, 0, object_token(used, NODE3, 1)),
                                 put("join_token", later, 0, object_token(later, "", 4000000000)),
                                 NULL)));
    g_assert_cmpuint(config_count(world.wconf->committed, "join_token"), ==, 3);
    keys_world_begin();
    while (config_cluster(world.wconf->committed)->renewal != RENEWAL_REISSUE) {
        g_assert_nonnull(config_get(world.wconf->committed, "join_token", used, NULL));
        fake_advance(world.world, 10);
    }
    /* Its host is a node, and is told like all others; it could ask again, and what signs now is
     * the new authority. */
    g_assert_null(config_get(world.wconf->committed, "join_token", used, NULL));
    g_assert_nonnull(config_get(world.wconf->committed, "join_token", unused, NULL));
    fake_advance(world.world, 20000);
    assert_says(keys_world_state(), "none");
    g_assert_cmpuint(config_count(world.wconf->committed, "join_token"), ==, 1);
    g_assert_nonnull(config_get(world.wconf->committed, "join_token", later, NULL));
    keys_world_tear_down();
}

/* Old links, of whom the old authority has signed, may live until all have confirmed that it is
 * gone. */
static void test_secret_goes_last(void)
{
    keys_world_set_up();
    g_autofree char *before = keys_world_secret_now();
    keys_world_begin();
    while (config_cluster(world.wconf->committed)->renewal != RENEWAL_DROP)
        fake_advance(world.world, 100);
    keys_world.silent[2] = true;
    fake_advance(world.world, 10000);
    assert_says(keys_world_state(), "drop: node node3: no answer");
    assert_says(keys_world_secret_now(), before);
    keys_world.silent[2] = false;
    fake_advance(world.world, 10000);
    assert_says(keys_world_state(), "none");
    g_autofree char *after = keys_world_secret_now();
    g_assert_cmpstr(after, !=, before);
    keys_world_tear_down();
}

/* The master dies at each question in turn, before or after it was carried out; a new one goes on.
 * False: there are no more questions. */
static bool die_at(guint number, bool acts)
{
    keys_world_set_up();
    keys_world.dies_at = number;
    keys_world.acts = acts;
    keys_world_begin();
    fake_advance(world.world, 20000);
    bool died = keys_world.dead;
    keys_world.dead = false;
    keys_world.dies_at = 0;
    config_world_restart(&world);
    keys_world_give();
    config_world_start(&world);
    fake_advance(world.world, 30000);
    assert_says(keys_world_state(), "none");
    keys_world_assert_all_by("ca2");
    keys_world_tear_down();
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
    keys_world_set_up();
    keys_world.silent[2] = true;
    keys_world_begin();
    fake_advance(world.world, 20000);
    assert_says(keys_world_state(), "spread: node node3: no answer");
    g_assert_cmpuint(keys_world.looks, ==, 1); /* each is a process or two */
    g_assert_true(keys_world_is_trusted(1, "ca2"));
    g_assert_cmpstr(keys_world.issuer[1], ==, "ca1"); /* it would not be believed there */
    keys_world_assert_nobody_out();
    keys_world.silent[2] = false;
    keys_world.silent[1] = true;
    fake_advance(world.world, 5000);
    keys_world_assert_nobody_out();
    keys_world.silent[1] = false;
    fake_advance(world.world, 20000);
    assert_says(keys_world_state(), "none");
    keys_world_assert_all_by("ca2");
    keys_world_tear_down();
}

static void test_older(void)
{
    keys_world_set_up();
    keys_world.old[1] = true;
    keys_world_begin();
    fake_advance(world.world, 20000);
    assert_says(keys_world_state(),
                "spread: node node2: its version knows no renewal of keys; upgrade it");
    keys_world.old[1] = false;
    fake_advance(world.world, 20000);
    keys_world_assert_all_by("ca2");
    keys_world_tear_down();
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
    keys_world_set_up_with(objects);
    keys_world.silent[2] = keys_world.away[2] = true;
    keys_world_begin();
    for (guint i = 0; i < 40 && !missed(); i++)
        fake_advance(world.world, 500);
    g_assert_true(missed());
    /* It stands on record before anybody has what it would not believe. */
    g_assert_true(keys_world_is_first(0, "ca1"));
    g_assert_cmpstr(keys_world.issuer[0], ==, "ca1");
    fake_advance(world.world, 20000);
    assert_says(keys_world_state(), "none");
    json_autoptr shown = keys_world_progress();
    const json_t *names = json_object_get(shown, "missed");
    g_assert_cmpstr(json_string_value(json_array_get(names, 0)), ==, "node3");
    g_assert_false(keys_world_hear_each_other(0, 2));
    text_set(&keys_world.trusts[2], keys_world.trusts[0]); /* it has joined again */
    text_set(&keys_world.issuer[2], keys_world.issuer[0]);
    keys_world.silent[2] = keys_world.away[2] = false;
    fake_advance(world.world, 20000);
    g_assert_true(missed()); /* nobody has asked it yet: it is offline */
    keys_world_tear_down();
}

/* A node that is offline on record, and there all the same, misses nothing. */
static void test_offline_and_there(void)
{
    GPtrArray *objects = initial_changes();
    g_ptr_array_add(objects, node3_offline(1, true));
    keys_world_set_up_with(objects);
    keys_world_begin();
    fake_advance(world.world, 20000);
    assert_says(keys_world_state(), "none");
    keys_world_assert_all_by("ca2");
    g_assert_false(missed());
    keys_world_tear_down();
}

/* The key that was to sign is gone with the disk of the master that made it. */
static void test_lost_before_it_signs(void)
{
    keys_world_set_up();
    keys_world.silent[2] = true;
    keys_world_begin();
    fake_advance(world.world, 5000);
    config_world_restart(&world);
    g_clear_pointer(&keys_world.next, g_free);
    keys_world_give();
    config_world_start(&world);
    fake_advance(world.world, 5000);
    /* Whoever had it may have signed with it, whatever this master's record says. */
    g_assert_true(keys_world_is_trusted(1, "ca2") && keys_world_is_trusted(1, "ca3"));
    keys_world.silent[2] = false;
    fake_advance(world.world, 30000);
    assert_says(keys_world_state(), "none");
    keys_world_assert_all_by("ca3");
    keys_world_tear_down();
}

/* … and after it has signed for some: they are believed until the one after it is through. */
static void test_lost_after(void)
{
    keys_world_set_up();
    keys_world.dies_at = 6;
    keys_world.acts = true;
    keys_world_begin();
    fake_advance(world.world, 20000);
    g_assert_cmpstr(keys_world.issuer[0], ==, "ca2");
    g_assert_cmpstr(keys_world.issuer[2], ==, "ca1");
    keys_world.dead = false;
    config_world_restart(&world);
    g_clear_pointer(&keys_world.key, g_free);
    g_clear_pointer(&keys_world.next, g_free);
    keys_world_give();
    config_world_start(&world);
    fake_advance(world.world, 30000);
    assert_says(keys_world_state(), "none");
    keys_world_assert_all_by("ca3");
    keys_world_tear_down();
}

/* … and under a master that has found it there before. */
static void test_lost_meanwhile(void)
{
    keys_world_set_up();
    keys_world_begin();
    while (config_cluster(world.wconf->committed)->renewal != RENEWAL_REISSUE)
        fake_advance(world.world, 10);
    keys_world.silent[2] = true;
    fake_advance(world.world, 5000);
    g_assert_cmpstr(keys_world.issuer[0], ==, "ca2");
    g_assert_cmpstr(keys_world.issuer[2], ==, "ca1");
    g_clear_pointer(&keys_world.key, g_free);
    keys_world.silent[2] = false;
    fake_advance(world.world, 40000);
    assert_says(keys_world_state(), "none");
    keys_world_assert_all_by("ca3");
    keys_world_tear_down();
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
    keys_world_set_up_with(objects);
    return fake_process(world.world, NODE2, ROLE_WCONFD);
}

/* A candidate that would be master without the key keeps the old authority alive. */
static void test_candidate(void)
{
    struct env *other = set_up_candidate();
    keys_world_begin();
    for (guint i = 0; i < 5; i++)
        follow(other, "");
    assert_says(keys_world_state(),
                "reissue: node node2: its configuration daemon does not have the new "
                "authority's key yet");
    g_autofree char *of = keys_world_fingerprint_of("ca2");
    for (guint i = 0; i < 5; i++)
        follow(other, of);
    assert_says(keys_world_state(), "none");
    keys_world_assert_all_by("ca2");
    keys_world_tear_down();
}

/* A phase that no other candidate knows of does nothing yet: it would be taken for one that never
 * began. */
static void test_not_copied(void)
{
    struct env *other = set_up_candidate();
    keys_world_begin();
    fake_advance(world.world, 20000);
    assert_says(keys_world_state(), "spread: no other candidate has a copy of this phase yet");
    g_assert_false(keys_world_is_trusted(0, "ca2") || keys_world_is_trusted(1, "ca2"));
    follow(other, "");
    fake_advance(world.world, 20000);
    assert_says(keys_world_state(), "reissue: no other candidate has a copy of this phase yet");
    g_assert_true(keys_world_is_first(0, "ca1") && keys_world_is_trusted(1, "ca2"));
    g_assert_cmpstr(keys_world.issuer[0], ==, "ca1");
    for (guint i = 0; i < 6; i++)
        follow(other, "");
    g_assert_cmpstr(keys_world.issuer[1], ==, "ca2");
    keys_world_tear_down();
}

/* A node has no other key once its certificate is out: a master that does not know that one would
 * not believe it. */
static void test_key_not_copied(void)
{
    struct env *other = set_up_candidate();
    keys_world_begin();
    while (config_cluster(world.wconf->committed)->renewal != RENEWAL_REISSUE)
        follow(other, "");
    follow(other, "");
    fake_advance(world.world, 20000);
    assert_says(keys_world_state(),
                "reissue: node node1: no other candidate has a copy of its new key yet");
    g_assert_cmpstr(keys_world.issuer[0], ==, "ca1");
    follow(other, "");
    g_assert_cmpstr(keys_world.issuer[0], ==, "ca2");
    keys_world_tear_down();
}

/* Asks for the authority's key with a certificate that `name` has signed; NULL: not told. */
static char *key_for(struct env *candidate, const char *name)
{
    g_autofree char *by = name ? keys_world_fingerprint_of(name) : NULL;
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
    keys_world_begin();
    while (config_cluster(world.wconf->committed)->renewal != RENEWAL_REISSUE)
        follow(other, "");
    assert_says(key_for(other, NULL), refused);
    for (guint i = 0; i < 3; i++)
        follow(other, "");
    g_assert_cmpstr(keys_world.key, ==, "ca2");
    assert_says(key_for(other, "ca1"), refused);
    assert_says(key_for(other, NULL), refused);
    assert_says(key_for(other, "ca2"), "key of ca2");
    g_autofree char *of = keys_world_fingerprint_of("ca2");
    for (guint i = 0; i < 5; i++)
        follow(other, of);
    assert_says(keys_world_state(), "none");
    assert_says(key_for(other, "ca1"), refused);
    assert_says(key_for(other, "ca2"), "key of ca2");
    keys_world_tear_down();
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
        keys_world_set_up();
        keys_world.forged[2] = (enum forgery)i;
        keys_world_begin();
        fake_advance(world.world, 20000);
        g_autofree char *expected = g_strdup_printf("reissue: node node3: %s", says[i]);
        assert_says(keys_world_state(), expected);
        g_assert_cmpstr(keys_world.issuer[1], ==, "ca2");
        g_assert_cmpstr(keys_world.issuer[2], ==, "ca1");
        keys_world.forged[2] = FORGED_NOT;
        fake_advance(world.world, 20000);
        assert_says(keys_world_state(), "none");
        keys_world_assert_all_by("ca2");
        keys_world_tear_down();
    }
}

/* Of one that the cluster has signed for before it kept that on record the first key is taken. */
static void test_key_not_known(void)
{
    GPtrArray *objects = initial_changes();
    keys_world_set_up_with(objects);
    const struct node *node = config_get(world.wconf->committed, "node", NODE3, NULL);
    guint64 version = 0;
    config_get(world.wconf->committed, "node", NODE3, &version);
    json_t *object = with(node_to_json(node), "key_hash", json_string(""));
    g_free(job_commit(&world, 17, changes_of(put("node", NODE3, version, object), NULL)));
    keys_world_begin();
    fake_advance(world.world, 20000);
    assert_says(keys_world_state(), "none");
    keys_world_assert_all_by("ca2");
    keys_world_tear_down();
}

/* From the word on, not from the commit on, the engine stays as it is. */
static void test_being_begun(void)
{
    keys_world_set_up();
    struct fake_reply first = {0}, second = {0};
    g_autoptr(GError) error = NULL;
    g_assert_true(key_renewal_over(world.wconf, "x", &error));
    fake_engine_hold(world.engine);
    fake_call_start(keys_world.cli, 0, NODE1, ROLE_WCONFD, "renew_keys", json_object(), &first);
    fake_settle(world.world);
    for (guint i = 0; i < 5; i++) {
        g_assert_false(first.done || key_renewal_over(world.wconf, "x", &error));
        g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_WRONG_STATE);
        g_clear_error(&error);
        fake_advance(world.world, 1000);
    }
    /* Who asks once more meanwhile begins no other. */
    fake_call_start(keys_world.cli, 0, NODE1, ROLE_WCONFD, "renew_keys", json_object(), &second);
    fake_engine_release(world.engine);
    fake_advance(world.world, 20000);
    g_assert_true(first.result && second.result);
    fake_reply_clear(&first);
    fake_reply_clear(&second);
    assert_says(keys_world_state(), "none");
    keys_world_assert_all_by("ca2");
    g_assert_true(key_renewal_over(world.wconf, "x", &error));
    keys_world_tear_down();
}

static void test_refused(void)
{
    keys_world_set_up();
    g_clear_pointer(&keys_world.key, g_free);
    assert_says(ask_wconf(&world, keys_world.cli, "renew_keys", json_object()),
                "wrong_state: the key of the cluster's authority is not on this node: copy "
                "etc/ca.key from another candidate, with mode 0600, or make that one the master");
    keys_world_tear_down();
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
    g_test_add_func("/key-renewal/key-not-copied#SAF-94", test_key_not_copied);
    g_test_add_func("/key-renewal/being-begun", test_being_begun);
    g_test_add_func("/key-renewal/refused", test_refused);
    return g_test_run();
}
