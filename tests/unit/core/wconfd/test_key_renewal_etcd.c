/*
 * The renewal of the cluster's keys with the engine etcd, against members that let in whom they
 * were started with: which one is started anew when, and what is waited for.
 * core/wconfd/key_renewal_etcd.c.
 */
#include <string.h>

#include "unit/core/world/keys_world.h"

static const char *const uuids[KEYS_WORLD_NODES] = {NODE1, NODE2, NODE3};

static struct {
    char *trusts[KEYS_WORLD_NODES];  /* etc/etcd/authority.crt */
    char *started[KEYS_WORLD_NODES]; /* the same when it was started */
    char *issuer[KEYS_WORLD_NODES];  /* issuer of its certificates: "ca1" */
    bool ill[KEYS_WORLD_NODES], silent[KEYS_WORLD_NODES], absent[KEYS_WORLD_NODES];
    bool learner[KEYS_WORLD_NODES];
    bool old[KEYS_WORLD_NODES]; /* of a version that knows no such renewal */
    bool put_back;              /* one has keys of another time, and nobody lets it in */
    guint questions, dies_at;
    GString *restarts;
} etcd;

static char *pem(const char *name)
{
    g_autofree char *text = g_base64_encode((const guchar *)name, strlen(name));
    return g_strdup_printf("-----BEGIN CERTIFICATE-----%s-----END CERTIFICATE-----", text);
}

/* A member takes whom it was started with, and who asks whom its file names. */
static bool takes(guint by, guint other)
{
    g_autofree char *issuer = pem(etcd.issuer[other]);
    return strstr(etcd.started[by], issuer) && strstr(etcd.trusts[by], issuer);
}

static void assert_nobody_out(void)
{
    if (etcd.put_back)
        return;
    for (guint i = 0; i < KEYS_WORLD_NODES; i++)
        for (guint k = 0; k < KEYS_WORLD_NODES; k++)
            g_assert_true(takes(i, k));
}

static char *digest_of(const char *text)
{
    return g_compute_checksum_for_string(G_CHECKSUM_SHA256, text, -1);
}

static json_t *status_of(guint node)
{
    g_autofree char *first = pem(etcd.issuer[node]);
    record_autoptr(engine_report) report = engine_report_new();
    report->config = engine_config_sqlite();
    report->member = member_status_new();
    report->member->state = etcd.absent[node] ? MEMBER_ABSENT : MEMBER_RUNNING;
    report->member->healthy = !etcd.ill[node];
    report->member->learner = etcd.learner[node];
    g_autofree char *trusts = digest_of(etcd.trusts[node]);
    g_autofree char *started = digest_of(etcd.started[node]);
    text_set(&report->member->trusts, etcd.old[node] ? "" : trusts);
    text_set(&report->member->started_with, etcd.old[node] ? "" : started);
    report->member->by_first = g_str_has_prefix(etcd.trusts[node], first);
    return engine_report_to_json(report);
}

static json_t *restart(guint node, GError **error)
{
    for (guint i = 0; i < KEYS_WORLD_NODES; i++)
        if (i != node && etcd.ill[i]) {
            fettle_set_error(error, TEMPORARY, "others are not well");
            return NULL;
        }
    g_string_append_printf(etcd.restarts, "%u", node + 1);
    text_set(&etcd.started[node], etcd.trusts[node]);
    return json_object();
}

static const char *text_of(const struct rpc_request *request, const char *name)
{
    return json_string_value(json_object_get(request->args, name));
}

static json_t *act(const struct rpc_request *request, guint node, GError **error)
{
    if (!strcmp(request->name, "member_restart"))
        return restart(node, error);
    if (!strcmp(request->name, "member_prepare")) {
        g_assert_true(json_is_true(json_object_get(request->args, "anew")));
        return json_make("{s:s,s:s}", "member", "m", "client", "c");
    }
    g_autofree char *own = pem(etcd.issuer[node]);
    bool certify = !strcmp(request->name, "member_certify");
    if (!certify && !strstr(text_of(request, "authority"), own)) {
        fettle_set_error(error, WRONG_STATE, "none of these has issued the certificate");
        return NULL;
    }
    text_set(&etcd.trusts[node], text_of(request, "authority"));
    if (certify)
        text_set(&etcd.issuer[node], text_of(request, "client"));
    return json_object();
}

static json_t *answer(const struct rpc_request *request, const char *to_node, void *data,
                      GError **error)
{
    guint node = 0;
    while (strcmp(uuids[node], to_node) != 0)
        node++;
    bool dies = ++etcd.questions == etcd.dies_at;
    keys_world.dead = keys_world.dead || dies;
    if (keys_world.dead || etcd.silent[node]) {
        fettle_set_error(error, UNREACHABLE, "no answer");
        return NULL;
    }
    if (!strcmp(request->name, "engine_status"))
        return status_of(node);
    if (etcd.old[node]) {
        fettle_set_error(error, PROTOCOL, "the node daemon has no method %s", request->name);
        return NULL;
    }
    json_t *said = act(request, node, error);
    assert_nobody_out();
    return said;
}

static bool sign_etcd(struct authority *self, const char *request, const char *cluster_uuid,
                      const char *address, char **ret_certificate, GError **error)
{
    *ret_certificate = g_strdup(keys_world.key);
    return true;
}

static bool etcd_issuers(struct authority *self, char **ret_issuers, GError **error)
{
    *ret_issuers = g_strdup(etcd.trusts[0]);
    return true;
}

static struct authority_ops with_etcd;

static void use_etcd(void)
{
    with_etcd = *keys_world.authority.ops;
    with_etcd.sign_etcd = sign_etcd;
    with_etcd.etcd_issuers = etcd_issuers;
    keys_world.authority.ops = &with_etcd;
    fake_engine_base(world.engine)->replicated = true;
}

static void set_up_with(bool offline)
{
    static const char *const methods[] = {"engine_status", "member_trust", "member_prepare",
                                          "member_certify", "member_restart"};
    GPtrArray *objects = initial_changes();
    for (guint i = 0; i < KEYS_WORLD_NODES; i++) {
        json_t *node = with(object_node(uuids[i]), "master_candidate", json_true());
        if (offline && i == 2)
            node = with(with(node, "offline", json_true()), "offline_statement", json_string("x"));
        g_ptr_array_add(objects, put("node", uuids[i], 1, node));
    }
    json_object_set_new(((struct change *)objects->pdata[0])->object, "commit_copies",
                        json_integer(0));
    memset(&etcd, 0, sizeof etcd);
    etcd.restarts = g_string_new(NULL);
    for (guint i = 0; i < KEYS_WORLD_NODES; i++) {
        etcd.trusts[i] = pem("ca1");
        etcd.started[i] = pem("ca1");
        etcd.issuer[i] = g_strdup("ca1");
    }
    keys_world_set_up_with(objects);
    use_etcd();
    for (guint i = 0; i < G_N_ELEMENTS(methods); i++)
        fake_script(world.world, NULL, ROLE_NODED, methods[i], answer, NULL);
}

static void tear_down(void)
{
    keys_world_tear_down();
    for (guint i = 0; i < KEYS_WORLD_NODES; i++) {
        g_free(etcd.trusts[i]);
        g_free(etcd.started[i]);
        g_free(etcd.issuer[i]);
    }
    g_string_free(etcd.restarts, TRUE);
}

/* Candidates fetch the key with their certificates: here none of them asks. */
static const char waits_for_candidates[] =
    "reissue: node node2: its configuration daemon does not have the new authority's key yet";

/* The configuration daemon of that candidate asks for what is new. */
static void follow(guint node, const char *key_of, const char *version)
{
    static struct env *from[KEYS_WORLD_NODES];
    const struct config *config = world.wconf->committed;
    g_autofree char *digest = g_strdup_printf("%" G_GINT64_MODIFIER "x", config_digest(config));
    struct fake_reply reply = {0};
    from[node] = fake_process(world.world, uuids[node], ROLE_WCONFD);
    fake_call_start_stamped(from[node], 0, (struct stamp){5, world.epoch}, NODE1, ROLE_WCONFD,
                            "follow",
                            json_make("{s:i,s:I,s:s,s:b,s:s,s:s}", "history", 5, "serial",
                                      (json_int_t)config_serial(config), "digest", digest,
                                      "authority", true, "key_of", key_of, "version", version),
                            &reply);
    fake_advance(world.world, 3000);
    fake_reply_clear(&reply);
}

static void follow_all(const char *name)
{
    g_autofree char *of = keys_world_fingerprint_of(name);
    for (guint i = 1; i < KEYS_WORLD_NODES; i++)
        follow(i, of, FETTLE_VERSION);
}

static void assert_members_by(const char *name)
{
    g_autofree char *only = pem(name);
    for (guint i = 0; i < KEYS_WORLD_NODES; i++) {
        g_assert_cmpstr(etcd.trusts[i], ==, only);
        g_assert_cmpstr(etcd.started[i], ==, only);
        g_assert_cmpstr(etcd.issuer[i], ==, name);
    }
}

static void finish(const char *name)
{
    for (guint i = 0; i < 10 && config_cluster(world.wconf->committed)->renewal; i++)
        follow_all(name);
    assert_says(keys_world_state(), "none");
    keys_world_assert_all_by(name);
    assert_members_by(name);
}

/* --- tests --- */

static void test_whole(void)
{
    set_up_with(false);
    keys_world_begin();
    fake_advance(world.world, 20000);
    assert_says(keys_world_state(), waits_for_candidates);
    g_assert_cmpstr(etcd.restarts->str, ==, "231");
    finish("ca2");
    g_assert_cmpstr(etcd.restarts->str, ==, "231231");
    keys_world_begin();
    fake_advance(world.world, 20000);
    finish("ca3");
    tear_down();
}

/* While one is not well no other one is started anew. */
static void test_ill(void)
{
    set_up_with(false);
    etcd.ill[2] = true;
    keys_world_begin();
    fake_advance(world.world, 20000);
    assert_says(keys_world_state(), "spread: node node2: others are not well");
    g_assert_cmpstr(etcd.restarts->str, ==, "3"); /* which takes none away */
    etcd.ill[2] = false;
    fake_advance(world.world, 20000);
    g_assert_cmpstr(etcd.restarts->str, ==, "321");
    finish("ca2");
    tear_down();
}

static void test_named(void)
{
    set_up_with(false);
    etcd.silent[1] = true;
    keys_world_begin();
    fake_advance(world.world, 20000);
    assert_says(keys_world_state(), "spread: node node2: no answer");
    etcd.silent[1] = false;
    etcd.absent[1] = true;
    fake_advance(world.world, 5000);
    assert_says(keys_world_state(),
                "spread: node node2: its member of etcd is not there yet; what it waits for is in "
                "the log of the master's fettle-wconfd");
    etcd.absent[1] = false;
    etcd.learner[1] = true;
    fake_advance(world.world, 5000);
    assert_says(keys_world_state(), "spread: node node2: its member of etcd is to be started anew");
    g_assert_cmpstr(etcd.restarts->str, ==, ""); /* of two that have a vote, one would be away */
    etcd.learner[1] = false;
    etcd.old[1] = true;
    fake_advance(world.world, 5000);
    assert_says(keys_world_state(),
                "spread: node node2: its version knows no renewal of keys of etcd; upgrade it");
    etcd.old[1] = false;
    fake_advance(world.world, 20000);
    finish("ca2");
    tear_down();
}

/* As the master it would go on without the members, and say that it is over: their old keys would
 * open etcd for ever. */
static void test_older(void)
{
    static const char refused[] =
        "resource_not_available: the keys of etcd are not renewed while the master candidate node2 "
        "runs another version, which as the master may leave them as they are; bring all to one "
        "version";
    set_up_with(false);
    follow(1, "", "0.0.1");
    assert_says(ask_wconf(&world, keys_world.cli, "renew_keys", json_object()), refused);
    follow(1, "", FETTLE_VERSION);
    keys_world_begin();
    follow(1, "", "0.0.1"); /* it is put back meanwhile */
    fake_advance(world.world, 20000);
    assert_says(keys_world_state(),
                "spread: the keys of etcd are not renewed while the master candidate node2 runs "
                "another version, which as the master may leave them as they are; bring all to one "
                "version");
    follow(1, "", FETTLE_VERSION);
    fake_advance(world.world, 20000);
    finish("ca2");
    tear_down();
}

/* The third one alike: whoever is asked first. */
static void test_absent(void)
{
    set_up_with(false);
    etcd.absent[2] = true;
    keys_world_begin();
    fake_advance(world.world, 20000);
    g_assert_cmpstr(etcd.restarts->str, ==, "");
    etcd.absent[2] = false;
    fake_advance(world.world, 20000);
    g_assert_cmpstr(etcd.restarts->str, ==, "231");
    finish("ca2");
    tear_down();
}

/* Its host was put back on what it had before: a new master gives it what it has missed. */
static void test_put_back(void)
{
    set_up_with(false);
    keys_world_begin();
    fake_advance(world.world, 20000);
    finish("ca2");
    etcd.put_back = true;
    g_free(etcd.trusts[1]);
    g_free(etcd.started[1]);
    etcd.trusts[1] = pem("ca1");
    etcd.started[1] = pem("ca1");
    text_set(&etcd.issuer[1], "ca1");
    config_world_restart(&world);
    keys_world_give();
    fake_engine_base(world.engine)->replicated = true;
    config_world_start(&world);
    fake_advance(world.world, 20000);
    assert_members_by("ca2");
    tear_down();
}

static json_t *end_mastership(const struct rpc_request *request, const char *to_node, void *data,
                              GError **error)
{
    if (!world.wconf->down)
        wconf_step_down(world.wconf, FETTLE_ERROR_NOT_MASTER, "another one is");
    fettle_set_error(error, UNREACHABLE, "no answer");
    return NULL;
}

/* While nodes are asked: members are not any more. */
static void test_ends(void)
{
    set_up_with(false);
    fake_script(world.world, NULL, ROLE_NODED, "keys_trust", end_mastership, NULL);
    keys_world_begin();
    fake_advance(world.world, 20000);
    g_assert_nonnull(world.wconf->down);
    g_assert_cmpuint(etcd.questions, ==, 0);
    tear_down();
}

/* It is what would be missing while another one starts. */
static void test_offline(void)
{
    set_up_with(true);
    keys_world_begin();
    fake_advance(world.world, 20000);
    assert_says(keys_world_state(),
                "spread: node node3: is offline, and with it its member of etcd, so that no other "
                "one can be started anew: make it no candidate (fettle node modify node3 "
                "--master-candidate no)");
    g_assert_cmpstr(etcd.trusts[2], ==, etcd.started[2]);
    tear_down();
}

/* The master dies at each question to members in turn; a new one goes on. False: there are no more.
 */
static bool die_at(guint number)
{
    set_up_with(false);
    etcd.dies_at = number;
    keys_world_begin();
    fake_advance(world.world, 20000);
    for (guint i = 0; i < 10 && !keys_world.dead; i++)
        follow_all("ca2");
    bool died = keys_world.dead;
    keys_world.dead = false;
    etcd.dies_at = 0;
    config_world_restart(&world);
    keys_world_give();
    fake_engine_base(world.engine)->replicated = true;
    config_world_start(&world);
    fake_advance(world.world, 20000);
    finish("ca2");
    tear_down();
    return died;
}

static void test_dies(void)
{
    guint number = 1;
    for (; number < 500 && die_at(number); number++)
        ;
    g_assert_cmpuint(number, >, 20);
    g_assert_cmpuint(number, <, 500);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/key-renewal-etcd/whole#SAF-94", test_whole);
    g_test_add_func("/key-renewal-etcd/ill#SAF-94", test_ill);
    g_test_add_func("/key-renewal-etcd/named#SAF-94", test_named);
    g_test_add_func("/key-renewal-etcd/older-candidate#SAF-94", test_older);
    g_test_add_func("/key-renewal-etcd/absent#SAF-94", test_absent);
    g_test_add_func("/key-renewal-etcd/put-back#SAF-94", test_put_back);
    g_test_add_func("/key-renewal-etcd/ends-in-between", test_ends);
    g_test_add_func("/key-renewal-etcd/offline#SAF-94", test_offline);
    g_test_add_func("/key-renewal-etcd/dies-at-every-question#SAF-94", test_dies);
    return g_test_run();
}
