/* The bus between nodes while the keys of the cluster are renewed: bus.c, bus_tls.c. */
#include "bus_world.h"

#include "helper/patience.h"
#include "io/net/certs.h"

#include <gio/gio.h>
#include <string.h>

#define PATIENCE_MS 30000

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

/* The same where it is to be dialled first. */
static void await_answers(struct host *from, const char *to)
{
    bool answers = false;
    for (gint64 since = loop_boot_ms(); !answers; world_pause(50)) {
        struct answer answer = {0};
        g_assert_false(patience_is_over(since, PATIENCE_MS));
        host_ask_report(from, to, &answer);
        world_wait(&answer.done);
        answers = !answer.error;
        answer_clear(&answer);
    }
}

/* The one that all have, and another one. */
struct authorities {
    char *old, *next;
    char *crt, *key; /* files of the other one */
};

static void make_other(struct authorities *both, const char *name)
{
    g_autofree char *crt = g_strconcat(name, ".crt", NULL);
    g_autofree char *key = g_strconcat(name, ".key", NULL);
    both->crt = g_build_filename(bus_ca_folder, crt, NULL);
    both->key = g_build_filename(bus_ca_folder, key, NULL);
    both->next = other_authority(both->crt, both->key);
    g_assert_true(g_file_get_contents(bus_ca_cert, &both->old, NULL, NULL));
}

static void authorities_clear(struct authorities *both)
{
    g_free(both->old);
    g_free(both->next);
    g_free(both->crt);
    g_free(both->key);
}
typedef struct authorities authorities_t;
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(authorities_t, authorities_clear)

/* Another authority beside the one that is there, then in its place: nobody is cut off in between,
 * and with the old one go the connections that rest on it. */
static void test_renewed(struct pair *pair, gconstpointer unused)
{
    g_auto(authorities_t) by = {0};
    struct host *const nodes[] = {pair->a, pair->b};
    struct answer refused = {0};
    make_other(&by, "next");
    assert_answers(pair->b, NODE_A);
    for (guint i = 0; i < 2; i++)
        trust(nodes[i], by.old, by.next);
    assert_answers(pair->b, NODE_A);
    host_write_certificates(pair->a, by.crt, by.key, CLUSTER, NODE_A);
    trust(pair->a, by.next, by.old);
    assert_answers(pair->b, NODE_A);
    assert_answers(pair->a, NODE_B);
    g_assert_true(bus_connected(pair->a->bus, NODE_B));
    trust(pair->a, by.next, NULL);
    world_wait_line(pair->b->lines, "link to node");
    g_assert_false(bus_connected(pair->a->bus, NODE_B));
    host_ask_report(pair->b, NODE_A, &refused);
    world_wait(&refused.done);
    g_assert_error(refused.error, FETTLE_ERROR, FETTLE_ERROR_UNREACHABLE);
    answer_clear(&refused);
    world_wait_line(pair->a->lines, "it is signed by another CA");
    host_write_certificates(pair->b, by.crt, by.key, CLUSTER, NODE_B);
    trust(pair->b, by.next, NULL);
    await_answers(pair->b, NODE_A);
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
static void await_asks_by(struct host *from, const struct host *to, const char *certificate)
{
    g_autofree char *fingerprint = certs_fingerprint(certificate, NULL);
    for (guint i = 0; i < 600 && g_strcmp0(to->signed_by, fingerprint) != 0; i++) {
        struct answer answer = {0};
        world_pause(50);
        host_call(from, to->uuid, ROLE_WCONFD, "cluster_status", json_object(), &answer);
        world_wait(&answer.done);
        answer_clear(&answer);
    }
    g_assert_cmpstr(to->signed_by, ==, fingerprint);
}

static void test_signed_by(struct pair *pair, gconstpointer unused)
{
    g_auto(authorities_t) by = {0};
    struct answer own = {0};
    make_other(&by, "other");
    assert_asks_by(pair, by.old);
    trust(pair->a, by.next, by.old);
    trust(pair->b, by.old, by.next);
    assert_asks_by(pair, by.old);
    host_write_certificates(pair->b, by.crt, by.key, CLUSTER, NODE_B);
    trust(pair->b, by.next, by.old);
    await_asks_by(pair->b, pair->a, by.next);
    host_call(pair->a, NODE_LOCAL, ROLE_WCONFD, "cluster_status", json_object(), &own);
    world_wait(&own.done);
    g_assert_no_error(own.error);
    g_assert_cmpstr(pair->a->signed_by, ==, "");
    answer_clear(&own);
}

/* A link that never falls idle is left all the same, by both sides, and nobody goes back to it. */
static void test_renewed_while_busy(struct pair *pair, gconstpointer unused)
{
    g_auto(authorities_t) by = {0};
    struct answer kept = {0};
    make_other(&by, "busy");
    trust(pair->b, by.old, by.next);
    trust(pair->a, by.old, by.next);
    assert_answers(pair->a, NODE_B); /* it is this side that has dialled, and whose links win */
    host_call(pair->a, NODE_B, ROLE_NODED, "guest_reset", host_guest_args(), &kept);
    while (pair->b->kept->len == 0)
        world_pause(10);
    host_write_certificates(pair->b, by.crt, by.key, CLUSTER, NODE_B);
    trust(pair->b, by.next, by.old);
    assert_asks_by(pair, by.next);
    assert_answers(pair->a, NODE_B);
    for (guint i = 0; i < 14; i++) { /* longer than one that stands back lives */
        world_pause(500);
        assert_asks_by(pair, by.next);
    }
    g_assert_false(kept.done);
    rpc_answer(g_ptr_array_index(pair->b->kept, 0), NULL);
    g_ptr_array_set_size(pair->b->kept, 0);
    world_wait(&kept.done);
    g_assert_no_error(kept.error);
    answer_clear(&kept);
}

/* One of the two gets a new certificate after so many steps of a link on its way; whether it was
 * on its way still. Whatever came up of it, what is asked is asked by the new one. */
static bool renew_after(guint steps, const struct authorities *by, bool of_dialler)
{
    struct pair pair;
    struct answer first = {0};
    pair_set_up(&pair, NULL);
    struct host *renewed = of_dialler ? pair.b : pair.a;
    trust(pair.a, by->old, by->next);
    trust(pair.b, by->old, by->next);
    host_write_certificates(renewed, by->crt, by->key, CLUSTER, renewed->uuid);
    host_ask_report(pair.b, NODE_A, &first);
    for (guint i = 0; i < steps; i++)
        g_main_context_iteration(NULL, TRUE);
    bool under_way = !bus_connected(pair.a->bus, NODE_B) || !bus_connected(pair.b->bus, NODE_A);
    trust(renewed, by->next, by->old);
    world_wait(&first.done);
    answer_clear(&first);
    await_asks_by(renewed, of_dialler ? pair.a : pair.b, by->next);
    pair_tear_down(&pair, NULL);
    return under_way;
}

/* A handshake that had begun with the certificate of before: what it makes is left at once. */
static void test_renewed_on_the_way(gconstpointer of_dialler)
{
    g_auto(authorities_t) by = {0};
    guint steps = 0;
    make_other(&by, of_dialler ? "dialler" : "dialled");
    while (renew_after(steps, &by, of_dialler))
        steps++;
    g_test_message("%u steps", steps);
    g_assert_cmpuint(steps, >, 3);
}

#define ADD(path, fn) g_test_add(path, struct pair, NULL, pair_set_up, fn, pair_tear_down)

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    bus_make_authority();
    ADD("/bus/renewed#SAF-94", test_renewed);
    ADD("/bus/renewed-while-busy#SAF-94", test_renewed_while_busy);
    ADD("/bus/signed-by#SAF-94", test_signed_by);
    g_test_add_data_func("/bus/renewed-on-the-way/by-who-dials#SAF-94", GINT_TO_POINTER(true),
                         test_renewed_on_the_way);
    g_test_add_data_func("/bus/renewed-on-the-way/by-who-is-dialled#SAF-94", GINT_TO_POINTER(false),
                         test_renewed_on_the_way);
    int result = g_test_run();
    bus_remove_authority();
    return result;
}
