/* The bus between nodes while the keys of the cluster are renewed: bus.c, bus_tls.c. */
#include "bus_world.h"

#include "io/net/certs.h"

#include <gio/gio.h>
#include <string.h>

static char *etc_of(const struct host *node, const char *name)
{
    return g_build_filename(node->paths->etc, name, NULL);
}

static void trust(const struct host *node, const char *first, const char *second)
{
    g_autofree char *path = etc_of(node, "ca.crt");
    g_autofree char *both = g_strconcat(first, second, NULL);
    g_autoptr(GError) error = NULL;
    g_assert_true(g_file_set_contents(path, both, -1, NULL));
    g_assert_true(bus_renew(node->bus, &error));
}

/* With a name of its own, as that of a renewal has. */
static char *other_authority(const char *certificate, const char *key)
{
    g_auto(GStrv) argv = certs_authority_command(key, CLUSTER, certificate);
    char *text = NULL;
    g_assert_true(certs_make_key(key, NULL));
    g_assert_true(
        g_spawn_sync(NULL, argv, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL, NULL, NULL, NULL, NULL));
    g_assert_true(g_file_get_contents(certificate, &text, NULL, NULL));
    return text;
}

static void assert_answers(struct host *from, const char *to)
{
    struct answer answer = {0};
    host_ask_report(from, to, &answer);
    world_wait(&answer.done);
    g_assert_no_error(answer.error);
    answer_clear(&answer);
}

/* Another authority beside the one that is there, then in its place: nobody is cut off in between,
 * and with the old one go the connections that rest on it. */
static void test_renewed(struct pair *pair, gconstpointer unused)
{
    g_autofree char *crt = g_build_filename(bus_ca_folder, "next.crt", NULL);
    g_autofree char *key = g_build_filename(bus_ca_folder, "next.key", NULL);
    g_autofree char *next = other_authority(crt, key);
    g_autofree char *old = NULL;
    struct host *const nodes[] = {pair->a, pair->b};
    struct answer refused = {0};
    g_assert_true(g_file_get_contents(bus_ca_cert, &old, NULL, NULL));
    assert_answers(pair->b, NODE_A);
    for (guint i = 0; i < 2; i++)
        trust(nodes[i], old, next);
    assert_answers(pair->b, NODE_A);
    host_write_certificates(pair->a, crt, key, CLUSTER, NODE_A);
    trust(pair->a, next, old);
    assert_answers(pair->b, NODE_A);
    assert_answers(pair->a, NODE_B);
    g_assert_true(bus_connected(pair->a->bus, NODE_B));
    trust(pair->a, next, NULL);
    world_wait_line(pair->b->lines, "link to node");
    g_assert_false(bus_connected(pair->a->bus, NODE_B));
    host_ask_report(pair->b, NODE_A, &refused);
    world_wait(&refused.done);
    g_assert_error(refused.error, FETTLE_ERROR, FETTLE_ERROR_UNREACHABLE);
    answer_clear(&refused);
    world_wait_line(pair->a->lines, "it is signed by another CA");
    host_write_certificates(pair->b, crt, key, CLUSTER, NODE_B);
    trust(pair->b, next, NULL);
    world_pause(1500); /* until it dials again */
    assert_answers(pair->b, NODE_A);
}

/* Which authority is behind who asks is what the certificate proves, whatever the frame says, and
 * whichever side has dialled; of this host's daemons nobody is. */
static void assert_asks_by(struct pair *pair, const char *certificate)
{
    g_autofree char *fingerprint = *certificate ? certs_fingerprint(certificate, NULL) : NULL;
    struct answer answer = {0};
    host_call(pair->b, NODE_A, ROLE_WCONFD, "cluster_status", json_object(), &answer);
    world_wait(&answer.done);
    g_assert_no_error(answer.error);
    g_assert_cmpstr(pair->a->signed_by, ==, fingerprint ? fingerprint : "");
    answer_clear(&answer);
}

/* The links of before end, and others are made. */
static void await_asks_by(struct pair *pair, const char *certificate)
{
    g_autofree char *fingerprint = certs_fingerprint(certificate, NULL);
    for (guint i = 0; i < 600 && g_strcmp0(pair->a->signed_by, fingerprint) != 0; i++) {
        struct answer answer = {0};
        world_pause(50);
        host_call(pair->b, NODE_A, ROLE_WCONFD, "cluster_status", json_object(), &answer);
        world_wait(&answer.done);
        answer_clear(&answer);
    }
    g_assert_cmpstr(pair->a->signed_by, ==, fingerprint);
}

static void test_signed_by(struct pair *pair, gconstpointer unused)
{
    g_autofree char *crt = g_build_filename(bus_ca_folder, "other.crt", NULL);
    g_autofree char *key = g_build_filename(bus_ca_folder, "other.key", NULL);
    g_autofree char *next = other_authority(crt, key);
    g_autofree char *old = NULL;
    struct answer own = {0};
    g_assert_true(g_file_get_contents(bus_ca_cert, &old, NULL, NULL));
    assert_asks_by(pair, old);
    trust(pair->a, next, old);
    trust(pair->b, old, next);
    assert_asks_by(pair, old);
    host_write_certificates(pair->b, crt, key, CLUSTER, NODE_B);
    trust(pair->b, next, old);
    await_asks_by(pair, next);
    host_call(pair->a, NODE_LOCAL, ROLE_WCONFD, "cluster_status", json_object(), &own);
    world_wait(&own.done);
    g_assert_no_error(own.error);
    g_assert_cmpstr(pair->a->signed_by, ==, "");
    answer_clear(&own);
}

/* A link that never falls idle is left all the same, by both sides, and nobody goes back to it. */
static void test_renewed_while_busy(struct pair *pair, gconstpointer unused)
{
    g_autofree char *crt = g_build_filename(bus_ca_folder, "busy.crt", NULL);
    g_autofree char *key = g_build_filename(bus_ca_folder, "busy.key", NULL);
    g_autofree char *next = other_authority(crt, key);
    g_autofree char *old = NULL;
    struct answer kept = {0};
    g_assert_true(g_file_get_contents(bus_ca_cert, &old, NULL, NULL));
    trust(pair->b, old, next);
    trust(pair->a, old, next);
    assert_answers(pair->a, NODE_B); /* it is this side that has dialled, and whose links win */
    host_call(pair->a, NODE_B, ROLE_NODED, "guest_reset", host_guest_args(), &kept);
    while (pair->b->kept->len == 0)
        world_pause(10);
    host_write_certificates(pair->b, crt, key, CLUSTER, NODE_B);
    trust(pair->b, next, old);
    assert_asks_by(pair, next);
    assert_answers(pair->a, NODE_B);
    for (guint i = 0; i < 14; i++) { /* longer than one that stands back lives */
        world_pause(500);
        assert_asks_by(pair, next);
    }
    g_assert_false(kept.done);
    rpc_answer(g_ptr_array_index(pair->b->kept, 0), NULL);
    g_ptr_array_set_size(pair->b->kept, 0);
    world_wait(&kept.done);
    g_assert_no_error(kept.error);
    answer_clear(&kept);
}
#define ADD(path, fn) g_test_add(path, struct pair, NULL, pair_set_up, fn, pair_tear_down)

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    bus_make_authority();
    ADD("/bus/renewed#SAF-94", test_renewed);
    ADD("/bus/renewed-while-busy#SAF-94", test_renewed_while_busy);
    ADD("/bus/signed-by#SAF-94", test_signed_by);
    int result = g_test_run();
    bus_remove_authority();
    return result;
}
