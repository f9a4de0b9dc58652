/* The certificates of a node, and the key of another authority, as files: what is taken and what is
 * refused, and a death between any two writes. io/net/node_keys.c, authority_node.c,
 * authority_next.c. */
#include "world.h"

#include <glib/gstdio.h>
#include <string.h>

#include "io/files.h"
#include "io/loop.h"
#include "io/net/authority.h"
#include "io/net/certs.h"
#include "io/net/node_keys.h"
#include "proto/records.h"
#include "proto/rpc.h"

static struct {
    struct node_paths *paths;
    struct authority *authority;
    guint renewed;
    bool unusable; /* what lies there cannot be put in use now */
} it;

static char *path_of(const char *name)
{
    return node_keys_path(it.paths, name);
}

static char *content(const char *name)
{
    g_autofree char *path = path_of(name);
    return files_read_path(path, MIB(1), NULL, NULL);
}

static void put(const char *name, const char *text)
{
    g_autofree char *path = path_of(name);
    g_assert_true(g_file_set_contents(path, text, -1, NULL));
}

static bool renewed_cb(GError **error, void *data)
{
    it.renewed++;
    if (it.unusable)
        fettle_set_error(error, STORAGE, "not now");
    return !it.unusable;
}

static void set_up(void)
{
    g_autoptr(GError) error = NULL;
    it.paths = world_new(NODE_A);
    g_autofree char *ca = path_of("ca.crt"), *ca_key = path_of("ca.key");
    g_autofree char *cert = path_of("node.crt"), *key = path_of("node.key");
    g_assert_true(certs_make_ca(ca, ca_key, CLUSTER, &error) &&
                  certs_make_node(ca, ca_key, CLUSTER, NODE_A, cert, key, &error));
    it.authority = authority_new(it.paths, "authority");
    authority_on_renewed(it.authority, renewed_cb, NULL);
    it.renewed = 0;
    it.unusable = false;
}

static void tear_down(void)
{
    authority_free(it.authority);
    world_remove(it.paths);
}

static void assert_refused(bool ok, GError **error, enum fettle_error code, const char *message)
{
    g_assert_false(ok);
    g_assert_error(*error, FETTLE_ERROR, (int)code);
    g_assert_cmpstr((*error)->message, ==, message);
    g_clear_error(error);
}

/* What is there now; its authorities by number. */
static struct keys_status *status(void)
{
    g_autoptr(GError) error = NULL;
    struct keys_status *status = keys_status_new();
    g_assert_true(it.authority->ops->status(it.authority, status, &error));
    return status;
}

/* What etc/apid.pem has counts where etc/apid.conf names it; whose it is, is looked at by whoever
 * trusts another authority. */
static void test_front_end(void)
{
    set_up();
    const struct authority_ops *ops = it.authority->ops;
    g_autoptr(GError) error = NULL;
    g_autofree char *crt = content("node.crt"), *pem = path_of("apid.pem");
    g_autofree char *conf = g_strdup_printf("port = 8774\ncertificate = %s\n", pem);
    record_autoptr(keys_status) none = status();
    g_assert_cmpuint(none->front_end_ends, ==, 0);
    g_assert_false(none->front_end_strange);
    g_assert_false(ops->is_stale(it.authority));
    put("apid.pem", crt);
    g_assert_true(ops->is_stale(it.authority));
    record_autoptr(keys_status) unused = status(); /* nothing shows it */
    g_assert_cmpuint(unused->front_end_ends, ==, 0);
    put("apid.conf", conf);
    g_assert_true(ops->is_stale(it.authority));
    record_autoptr(keys_status) ours = status();
    g_assert_false(ops->is_stale(it.authority));
    g_assert_cmpuint(ours->front_end_ends, ==, ours->ends);
    g_assert_false(ours->front_end_strange);
    g_autofree char *other_ca = path_of("other.crt"), *other_key = path_of("other.key");
    g_autofree char *strange = path_of("strange.crt"), *key = path_of("strange.key");
    g_assert_true(certs_make_ca(other_ca, other_key, CLUSTER, &error) &&
                  certs_make_node(other_ca, other_key, CLUSTER, NODE_A, strange, key, &error));
    g_autofree char *text = content("strange.crt");
    put("apid.pem", text);
    g_assert_true(ops->is_stale(it.authority));
    record_autoptr(keys_status) other = status();
    g_assert_cmpuint(other->front_end_ends, >, 0);
    g_assert_true(other->front_end_strange);
    tear_down();
}

/* Signed for them, and for no others; the order and the spelling say nothing. */
static void names(void *data)
{
    static const char *const wanted[] = {"node1", "2001:db8::1", "c1.example", "192.0.2.10", NULL};
    static const char *const same[] = {"192.0.2.10", "C1.example", "2001:DB8:0::1",
                                       "node1",      "node1",      NULL};
    static const char *const other[] = {"node1", "2001:db8::1", "c1.example", "192.0.2.11", NULL};
    static const char *const fewer[] = {"node1", "2001:db8::1", "c1.example", NULL};
    static const char *const more[] = {"node1",      "2001:db8::1", "c1.example",
                                       "192.0.2.10", "localhost",   NULL};
    g_autoptr(GError) error = NULL;
    g_autofree char *key = path_of("rest.key"), *request = path_of("rest.request");
    g_assert_true(certs_make_key(key, &error) && certs_make_request(key, request, &error));
    g_autofree char *text = content("rest.request"), *own = content("node.crt"), *made = NULL;
    it.authority->ops->sign_api(it.authority, text, CLUSTER, wanted, &made, &error);
    g_assert_no_error(error);
    g_assert_true(certs_is_for(made, wanted) && certs_is_for(made, same));
    g_assert_false(certs_is_for(made, other) || certs_is_for(made, fewer) ||
                   certs_is_for(made, more));
    g_assert_false(certs_is_for(own, wanted));
    g_assert_false(certs_is_for("none", wanted));
}

static void test_names(void)
{
    set_up();
    world_in_task(names);
    tear_down();
}

/* All of a renewal, on one node that is its master too. */
static void whole(void *data)
{
    const struct authority_ops *ops = it.authority->ops;
    g_autoptr(GError) error = NULL;
    g_autofree char *old = content("ca.crt"), *old_key = content("node.key");
    g_autofree char *signed_before = NULL, *signed_after = NULL;
    char *next = NULL, *certificate = NULL;
    g_autofree char *issuer = NULL;
    record_autoptr(keys_request) asked = keys_request_new();
    bool has = false;
    g_assert_true(ops->sign_text(it.authority, "text", &signed_before, &error));
    g_assert_true(ops->make_next(it.authority, CLUSTER, &next, &issuer, &error));
    g_assert_true(ops->has_key_of(it.authority, next, &has, &error) && has);
    g_autofree char *both = g_strconcat(old, next, NULL), *turned = g_strconcat(next, old, NULL);
    g_assert_true(ops->trust(it.authority, both, &error));
    record_autoptr(keys_status) first = status();
    g_assert_cmpuint(first->trusts->len, ==, 2);
    g_assert_cmpstr(first->issuer, ==, first->trusts->pdata[0]);
    g_assert_cmpuint(first->ends, >, 4000000000);
    g_assert_true(ops->trust(it.authority, turned, &error));
    g_assert_true(ops->request(it.authority, asked, &error));
    g_assert_true(ops->sign(it.authority, asked->request, CLUSTER, NODE_A, &certificate, &error));
    g_assert_true(ops->certify(it.authority, certificate, &error));
    record_autoptr(keys_status) second = status();
    g_assert_cmpstr(second->issuer, ==, first->trusts->pdata[1]);
    g_assert_cmpstr(second->issuer, ==, second->trusts->pdata[0]);
    g_assert_true(ops->sign_text(it.authority, "text", &signed_after, &error));
    g_assert_true(ops->check_text(it.authority, "text", signed_before, &error));
    g_assert_true(ops->check_text(it.authority, "text", signed_after, &error));
    g_assert_true(ops->trust(it.authority, next, &error));
    g_assert_true(ops->check_text(it.authority, "text", signed_after, &error));
    assert_refused(ops->check_text(it.authority, "text", signed_before, &error), &error,
                   FETTLE_ERROR_PERMISSION, "the signature is not the authority's");
    assert_refused(ops->trust(it.authority, old, &error), &error, FETTLE_ERROR_WRONG_STATE,
                   "authority: none of these has signed the certificate of this node");
    g_assert_true(ops->has_key_of(it.authority, old, &has, &error) && !has);
    g_autofree char *key = content("node.key"), *left = content("ca-next.key");
    g_assert_cmpstr(key, !=, old_key);
    g_assert_null(left);
    g_assert_cmpuint(it.renewed, ==, 4);
    g_free(next);
    g_free(certificate);
}

static void test_whole(void)
{
    set_up();
    world_in_task(whole);
    tear_down();
}

/* What is written, and could not be put in use, is not what this node goes by. */
static void unusable(void *data)
{
    const struct authority_ops *ops = it.authority->ops;
    g_autoptr(GError) error = NULL;
    g_autofree char *old = content("ca.crt"), *next = NULL, *issuer = NULL;
    g_assert_true(ops->make_next(it.authority, CLUSTER, &next, &issuer, &error));
    g_autofree char *both = g_strconcat(old, next, NULL);
    it.unusable = true;
    for (guint tries = 1; tries <= 2; tries++) {
        assert_refused(ops->trust(it.authority, both, &error), &error, FETTLE_ERROR_STORAGE,
                       "not now");
        g_assert_cmpuint(it.renewed, ==, tries);
    }
    it.unusable = false;
    g_assert_true(ops->trust(it.authority, both, &error));
    g_assert_true(ops->trust(it.authority, both, &error));
    g_assert_cmpuint(it.renewed, ==, 3);
}

static void test_unusable(void)
{
    set_up();
    world_in_task(unusable);
    tear_down();
}

static void assert_unproven(const struct keys_request *asked, const char *message)
{
    g_autoptr(GError) error = NULL;
    char *hash = NULL;
    assert_refused(it.authority->ops->check_proof(it.authority, asked, &hash, &error), &error,
                   FETTLE_ERROR_PERMISSION, message);
    g_assert_null(hash);
}

/* A request is proven by the key that the node has, and the one that it is for is the next. */
static void proven(void *data)
{
    static const char none[] = "proof: is no signature of that key over the request";
    const struct authority_ops *ops = it.authority->ops;
    g_autoptr(GError) error = NULL;
    record_autoptr(keys_request) first = keys_request_new();
    record_autoptr(keys_request) second = keys_request_new();
    g_autofree char *certificate = NULL, *by_first = NULL, *of_first = NULL, *by_second = NULL;
    g_assert_true(ops->request(it.authority, first, &error));
    g_assert_true(ops->check_proof(it.authority, first, &by_first, &error));
    g_assert_true(ops->read_request(it.authority, first->request, &of_first, &error));
    g_assert_cmpstr(by_first, !=, of_first);
    g_assert_true(ops->sign(it.authority, first->request, CLUSTER, NODE_A, &certificate, &error));
    g_assert_true(ops->certify(it.authority, certificate, &error));
    g_assert_true(ops->request(it.authority, second, &error));
    g_assert_true(ops->check_proof(it.authority, second, &by_second, &error));
    g_assert_cmpstr(by_second, ==, of_first);
    g_autofree char *proof = g_strdup(second->proof);
    text_set(&second->proof, first->proof);
    assert_unproven(second, none);
    text_set(&second->proof, "");
    assert_unproven(second, none);
    text_set(&second->proof, proof);
    text_set(&second->key, first->key);
    assert_unproven(second, none);
    text_set(&second->key, "no key");
    assert_unproven(second, "key: is no public key");
    text_set(&second->key, "");
    assert_unproven(second, "key: is no public key");
}

static void test_proven(void)
{
    set_up();
    world_in_task(proven);
    tear_down();
}

static void refusals(void *data)
{
    const struct authority_ops *ops = it.authority->ops;
    g_autoptr(GError) error = NULL;
    g_autofree char *old = content("ca.crt"), *own = content("node.crt"), *next = NULL,
                    *issuer = NULL;
    char *other = NULL, *stray = NULL;
    record_autoptr(keys_request) asked = keys_request_new();
    assert_refused(ops->trust(it.authority, "nothing", &error), &error, FETTLE_ERROR_CORRUPT,
                   "authority: has 0 certificates; 1 to 4 can be");
    g_autofree char *many = g_strconcat(old, old, old, old, old, NULL);
    assert_refused(ops->trust(it.authority, many, &error), &error, FETTLE_ERROR_CORRUPT,
                   "authority: has 5 certificates; 1 to 4 can be");
    g_autofree char *cut = g_strndup(old, strlen(old) - 30);
    assert_refused(ops->trust(it.authority, cut, &error), &error, FETTLE_ERROR_CORRUPT,
                   "authority: certificate 1 cannot be read");
    assert_refused(ops->certify(it.authority, "nothing", &error), &error, FETTLE_ERROR_WRONG_INPUT,
                   "certificate: cannot be read");
    g_assert_true(ops->request(it.authority, asked, &error));
    g_assert_true(ops->sign(it.authority, asked->request, CLUSTER, NODE_B, &other, &error));
    assert_refused(ops->certify(it.authority, other, &error), &error, FETTLE_ERROR_WRONG_INPUT,
                   "certificate: is of O=" CLUSTER ",CN=" NODE_B ", this node is O=" CLUSTER
                   ",CN=" NODE_A);
    g_assert_true(ops->sign(it.authority, asked->request, CLUSTER, NODE_A, &stray, &error));
    g_autofree char *key = path_of(NODE_KEYS_NEXT_KEY);
    g_unlink(key);
    assert_refused(ops->certify(it.authority, stray, &error), &error, FETTLE_ERROR_WRONG_INPUT,
                   "certificate: is not for the key of this node");
    g_assert_true(ops->make_next(it.authority, CLUSTER, &next, &issuer, &error));
    put("ca.crt", next);
    assert_refused(ops->certify(it.authority, stray, &error), &error, FETTLE_ERROR_WRONG_INPUT,
                   "certificate: is signed by nobody whom this node trusts");
    g_autofree char *still = content("node.crt");
    g_assert_cmpstr(still, ==, own);
    g_assert_cmpuint(it.renewed, ==, 0);
    g_free(other);
    g_free(stray);
}

static void test_refusals(void)
{
    set_up();
    world_in_task(refusals);
    tear_down();
}

/* What lies there after a death at each step; key and certificate belong together afterwards. */
static void test_cut_in_between(void)
{
    set_up();
    g_autoptr(GError) error = NULL;
    g_autofree char *ca = path_of("ca.crt"), *ca_key = path_of("ca.key");
    g_autofree char *next_crt = path_of(NODE_KEYS_NEXT_CRT), *next_key = path_of("made.key");
    g_assert_true(certs_make_node(ca, ca_key, CLUSTER, NODE_A, next_crt, next_key, &error));
    g_autofree char *new_crt = content(NODE_KEYS_NEXT_CRT), *new_key = content("made.key");
    g_autofree char *old_crt = content("node.crt"), *old_key = content("node.key");
    for (guint step = 0; step < 4; step++) {
        put("node.key", step >= 2 ? new_key : old_key);
        put("node.crt", step >= 3 ? new_crt : old_crt);
        put(NODE_KEYS_NEXT_CRT, new_crt);
        g_autofree char *path = path_of(NODE_KEYS_NEXT_KEY);
        if (step < 2)
            put(NODE_KEYS_NEXT_KEY, new_key);
        else
            g_unlink(path);
        g_autofree char *found = node_keys_certificate(it.paths, &error);
        g_autofree char *key = content("node.key");
        g_autofree char *crt = content("node.crt");
        g_assert_no_error(error);
        g_assert_cmpstr(found, ==, new_crt);
        g_assert_cmpstr(crt, ==, new_crt);
        g_assert_cmpstr(key, ==, new_key);
        g_assert_false(g_file_test(path, G_FILE_TEST_EXISTS) ||
                       g_file_test(next_crt, G_FILE_TEST_EXISTS));
    }
    /* A key that was made, and no certificate for it yet: nothing counts. */
    put("node.key", old_key);
    put("node.crt", old_crt);
    put(NODE_KEYS_NEXT_KEY, new_key);
    g_autofree char *found = node_keys_certificate(it.paths, &error);
    g_autofree char *key = content("node.key");
    g_assert_cmpstr(found, ==, old_crt);
    g_assert_cmpstr(key, ==, old_key);
    tear_down();
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    loop_init();
    g_test_add_func("/node-keys/proven#SAF-94", test_proven);
    g_test_add_func("/node-keys/whole#SAF-94", test_whole);
    g_test_add_func("/node-keys/front-end#SAF-94", test_front_end);
    g_test_add_func("/node-keys/names-of-a-server#SAF-100", test_names);
    g_test_add_func("/node-keys/unusable#SAF-94", test_unusable);
    g_test_add_func("/node-keys/refusals#SAF-94", test_refusals);
    g_test_add_func("/node-keys/cut-in-between#SAF-94", test_cut_in_between);
    return g_test_run();
}
