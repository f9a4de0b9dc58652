/*
 * Members of a real etcd with TLS: three processes on loopback that are added, lost, removed and
 * asked (etcd_member.c), with certificates of a real authority (authority.c, certs.c).
 */
#include "etcd_side.h"
#include "world.h"

#include "base/task.h"
#include "helper/patience.h"
#include "io/engine_file.h"
#include "io/etcd/etcd_compare.h"
#include "io/etcd/etcd_kv.h"
#include "io/etcd/etcd_member.h"
#include "io/files.h"
#include "io/net/authority.h"
#include "io/net/certs.h"

#include <glib/gstdio.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MEMBERS 3
#define PATIENCE_MS 40000
#define CALL_MS 30000

struct fixture {
    struct node_paths *paths;
    struct authority *authority;
    struct etcd_side sides[MEMBERS];
};

static struct fixture *world; /* of the test that runs */

/* --- tasks --- */

struct body {
    void (*fn)(void);
    bool done;
};

static void body_task(void *data)
{
    struct body *body = data;
    body->fn();
    body->done = true;
}

/* Runs a test in a task, as all calls want it. */
static void run(void (*fn)(void))
{
    struct body body = {.fn = fn};
    struct task_group *group = task_group_new();
    task_spawn(group, body_task, &body);
    g_assert_true(patience_run_until(&body.done, 100000));
    task_group_unref(group);
}

/* Repeats what etcd refuses for a passing reason. */
#define until_done(call)                                                                           \
    do {                                                                                           \
        until((g_clear_error(&error), call) || !fettle_error_is(error, TEMPORARY));                \
        g_assert_no_error(error);                                                                  \
    } while (0)

/* --- processes --- */

static char *path_of(const char *name)
{
    return etcd_side_path(world->paths, name);
}

static void make_certificates(void)
{
    etcd_side_certificates(world->paths, world->authority);
}

static void start_as(guint index, guint count, const char *initial, const char *stem)
{
    etcd_side_start(world->paths, world->sides, index, count, initial, stem);
}

static void start(guint index, guint count, const char *initial)
{
    start_as(index, count, initial, "member");
}

static void stop(guint index)
{
    etcd_side_stop(&world->sides[index]);
}

static void found_all(void)
{
    make_certificates();
    for (guint i = 0; i < MEMBERS; i++)
        start(i, MEMBERS, "new");
}

/* --- clients --- */

static struct etcd_client *client_as(const char *const *urls, const char *stem, const char *ca,
                                     guint member_ms)
{
    return etcd_side_client(world->paths, urls, stem, ca, member_ms);
}

static struct etcd_client *client_of(guint index)
{
    const char *urls[] = {world->sides[index].client_url, NULL};
    return client_as(urls, "client", "authority.crt", 2000);
}

static struct etcd_client *client_of_all(void)
{
    const char *urls[MEMBERS + 1] = {world->sides[0].client_url, world->sides[1].client_url,
                                     world->sides[2].client_url, NULL};
    return client_as(urls, "client", "authority.crt", 2000);
}

/* New status of a member; free with member_status_free(). */
static struct member_status *ask(guint index)
{
    struct etcd_client *client = client_of(index);
    struct member_status *status = member_status_new();
    g_assert_true(etcd_member_ask(client, status, NULL));
    etcd_client_free(client);
    return status;
}

/* The same of one that is well, however long it takes to say so. */
static struct member_status *ask_well(guint index)
{
    struct member_status *status = ask(index);
    until(status->healthy || (member_status_free(status), status = ask(index))->healthy);
    return status;
}

static bool is_healthy(guint index)
{
    record_autoptr(member_status) status = ask(index);
    return status->healthy;
}

static guint count_leaders(void)
{
    guint leaders = 0;
    for (guint i = 0; i < MEMBERS; i++) {
        record_autoptr(member_status) status = ask(i);
        leaders += status->healthy && status->leads;
    }
    return leaders;
}

static bool put(struct etcd_client *client, const char *key, const char *value)
{
    json_autoptr answer = etcd_call_wait(
        client, ETCD_TXN, etcd_txn(json_array(), json_make("[o]", etcd_put(key, value, 0)), NULL),
        CALL_MS, NULL);
    return answer != NULL;
}

static char *get(struct etcd_client *client, const char *key)
{
    json_autoptr answer = etcd_call_wait(client, ETCD_RANGE, etcd_range(key), CALL_MS, NULL);
    g_autoptr(GPtrArray) kvs = answer != NULL ? etcd_kvs(answer, NULL, NULL) : NULL;
    return kvs != NULL && kvs->len == 1 ? g_strdup(((struct etcd_kv *)kvs->pdata[0])->value) : NULL;
}

/* --- the fixture --- */

static void set_up(struct fixture *fixture, gconstpointer unused)
{
    g_autoptr(GError) error = NULL;
    world = fixture;
    fixture->paths = world_new(NODE_A);
    fixture->authority = authority_new(fixture->paths, "authority");
    g_autofree char *ca = path_of("ca.crt");
    g_autofree char *key = path_of("ca.key");
    g_assert_true(certs_make_ca(ca, key, CLUSTER, &error));
    for (guint i = 0; i < MEMBERS; i++)
        etcd_side_init(&fixture->sides[i], fixture->paths, i);
}

static void tear_down(struct fixture *fixture, gconstpointer unused)
{
    for (guint i = 0; i < MEMBERS; i++)
        etcd_side_clear(&fixture->sides[i]);
    authority_free(fixture->authority);
    world_remove(fixture->paths);
}

/* --- members come and go --- */

/* Adds member `index` to those before it, starts it, gives it a vote. */
static guint64 grow(guint index)
{
    struct etcd_client *client = client_of(0);
    const char *url = world->sides[index].peer_url;
    guint64 id = 0;
    g_autoptr(GError) error = NULL;
    until_done(etcd_member_add(client, url, &id, &error));
    start(index, index + 1, "existing");
    until_done(etcd_member_promote(client, id, &error));
    until(is_healthy(index));
    etcd_client_free(client);
    return id;
}

static void grow_and_shrink(void)
{
    g_autoptr(GError) error = NULL;
    make_certificates();
    start(0, 1, "new");
    until(is_healthy(0));
    grow(1);
    guint64 third = grow(2), again = 0;
    until(count_leaders() == 1);

    struct etcd_client *client = client_of(0);
    g_autoptr(GPtrArray) members = NULL;
    until_done((members = etcd_members(client, &error)) != NULL);
    g_assert_cmpuint(members->len, ==, 3);
    const struct etcd_listed *listed = etcd_members_find(members, world->sides[2].peer_url);
    g_assert_nonnull(listed);
    g_assert_cmpuint(listed->id, ==, third);
    g_assert_cmpstr(listed->name, ==, "node3");
    g_assert_cmpstr(listed->client_url, ==, world->sides[2].client_url);
    g_assert_false(listed->learner);

    /* What is repeated is done already. */
    g_assert_true(etcd_member_add(client, world->sides[2].peer_url, &again, &error));
    g_assert_cmpuint(again, ==, third);
    g_assert_true(etcd_member_promote(client, third, &error));
    g_assert_false(etcd_member_promote(client, 5, &error));
    assert_error(&error, UNKNOWN_ENTITY,
                 "giving member 0000000000000005 a vote: there is no such member");

    /* A removed one ends, and does not come back with its data. */
    until_done(etcd_member_remove(client, third, &error));
    g_assert_true(etcd_member_remove(client, third, &error));
    until(waitpid(world->sides[2].pid, NULL, WNOHANG) != 0);
    world->sides[2].pid = 0;
    start(2, 3, "existing");
    until(waitpid(world->sides[2].pid, NULL, WNOHANG) != 0);
    world->sides[2].pid = 0;
    g_clear_pointer(&members, g_ptr_array_unref);
    until_done((members = etcd_members(client, &error)) != NULL);
    g_assert_cmpuint(members->len, ==, 2);
    until(is_healthy(0) && is_healthy(1));
    etcd_client_free(client);
}

static void test_grow_and_shrink(struct fixture *fixture, gconstpointer unused)
{
    run(grow_and_shrink);
}

/* --- losses --- */

static void losses(void)
{
    found_all();
    for (guint i = 0; i < MEMBERS; i++)
        until(is_healthy(i));
    struct etcd_client *client = client_of_all();
    until(put(client, "a", "before"));

    /* One: the others go on. */
    stop(0);
    until(is_healthy(1) && is_healthy(2));
    until(put(client, "a", "between"));

    /* Two: the last one answers nothing that needs a majority, and says so. */
    stop(1);
    until(!is_healthy(2));
    record_autoptr(member_status) lonely = ask(2);
    g_assert_false(lonely->healthy);
    g_assert_cmpstr(lonely->version, !=, "");
    g_assert_cmpuint(strlen(lonely->why), >, 0);
    g_assert_false(put(client, "a", "never"));

    /* A process that is not there. */
    record_autoptr(member_status) gone = ask(0);
    g_assert_false(gone->healthy);
    g_assert_nonnull(strstr(gone->why, "Connection refused"));
    g_assert_cmpstr(gone->id, ==, "");

    /* They come back with what they had. */
    start(0, MEMBERS, "existing");
    start(1, MEMBERS, "new"); /* said at the founding; data decides */
    for (guint i = 0; i < MEMBERS; i++)
        until(is_healthy(i));
    until(count_leaders() == 1);
    g_autofree char *value = get(client, "a");
    g_assert_true(g_strcmp0(value, "between") == 0 || g_strcmp0(value, "never") == 0);
    etcd_client_free(client);
}

static void test_losses(struct fixture *fixture, gconstpointer unused)
{
    run(losses);
}

/* --- certificates --- */

static void must_refuse(const char *stem, const char *ca)
{
    const char *urls[] = {world->sides[0].client_url, NULL};
    struct etcd_client *client = client_as(urls, stem, ca, 2000);
    g_autoptr(GError) error = NULL;
    GPtrArray *members = etcd_members(client, &error);
    g_assert_null(members);
    g_assert_nonnull(error);
    g_test_message("%s: %s", stem, error->message);
    etcd_client_free(client);
}

/* A certificate of this authority that was valid yesterday. */
static void make_expired(void)
{
    g_autofree char *etc = g_shell_quote(world->paths->etc);
    g_autofree char *script = g_strdup_printf(
        "cd %s && cp client.key expired.key && mkdir old && : >old/index && echo 01 >old/serial && "
        "printf '[ca]\\ndefault_ca=d\\n[d]\\ndatabase=old/index\\nserial=old/serial\\n"
        "new_certs_dir=old\\ndefault_md=sha256\\npolicy=p\\n[p]\\ncommonName=supplied\\n' "
        ">old/conf && openssl ca -config old/conf -batch -in client.request -cert authority.crt "
        "-keyfile "
        "ca.key -startdate 20200101000000Z -enddate 20200102000000Z -out expired.crt -notext",
        etc);
    const char *argv[] = {"sh", "-c", script, NULL};
    g_autoptr(GError) error = NULL;
    g_autofree char *complaint = NULL;
    int status = -1;
    g_spawn_sync(NULL, (char **)argv, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL, NULL, &complaint,
                 &status, &error);
    g_assert_no_error(error);
    if (status != 0)
        g_error("openssl ca: %s", complaint);
}

static void make_foreign(void)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *ca = path_of("foreign-ca.crt");
    g_autofree char *ca_key = path_of("foreign-ca.key");
    g_autofree char *crt = path_of("foreign.crt");
    g_autofree char *key = path_of("foreign.key");
    g_assert_true(certs_make_ca(ca, ca_key, CLUSTER, &error) &&
                  certs_make_node(ca, ca_key, CLUSTER, NODE_B, crt, key, &error));
}

static void certificates(void)
{
    make_certificates();
    make_foreign();
    make_expired();
    start(0, 1, "new");
    until(is_healthy(0));
    must_refuse("foreign", "authority.crt"); /* ours is of another authority */
    must_refuse("client", "foreign-ca.crt"); /* theirs is */
    must_refuse("expired", "authority.crt");

    /* A node's own certificate is no member's: it is of another issuer, by name. */
    g_autoptr(GError) error = NULL;
    g_autofree char *ca = path_of("ca.crt");
    g_autofree char *ca_key = path_of("ca.key");
    g_autofree char *crt = path_of("node.crt");
    g_autofree char *key = path_of("node.key");
    g_assert_true(certs_make_node(ca, ca_key, CLUSTER, NODE_B, crt, key, &error));
    struct etcd_client *client = client_of(0);
    guint64 id = 0;
    until_done(etcd_member_add(client, world->sides[1].peer_url, &id, &error));
    start_as(1, 2, "existing", "node");
    g_assert_true(loop_sleep(3000));
    g_autoptr(GPtrArray) members = NULL;
    until_done((members = etcd_members(client, &error)) != NULL);
    const struct etcd_listed *listed = etcd_members_find(members, world->sides[1].peer_url);
    g_assert_cmpstr(listed->name, ==, ""); /* it has never joined */
    g_assert_false(etcd_member_promote(client, id, &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_TEMPORARY);
    until(is_healthy(0));
    etcd_client_free(client);
}

/* libsoup 3.2 warns of a connection that the server ends right after the handshake, as TLS 1.3
 * makes it do with a certificate that it refuses; the message still fails as it should. */
static void test_certificates(struct fixture *fixture, gconstpointer unused)
{
    GLogLevelFlags fatal = g_log_set_always_fatal(G_LOG_FATAL_MASK);
    run(certificates);
    g_log_set_always_fatal(fatal);
}

/* --- upkeep --- */

static bool is_half_free(guint index)
{
    record_autoptr(member_status) status = ask_well(index);
    return status->used_bytes < status->store_bytes / 2;
}

static void upkeep(void)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *value = g_strnfill(200000, 'x');
    make_certificates();
    start(0, 1, "new");
    until(is_healthy(0));
    const char *urls[] = {world->sides[0].client_url, NULL};
    struct etcd_client *client = client_as(urls, "client", "authority.crt", 30000);
    for (guint i = 0; i < 60; i++)
        g_assert_true(put(client, "big", value));
    record_autoptr(member_status) full = ask_well(0);
    g_assert_cmpuint(full->revision, ==, 61);
    g_assert_cmpuint(full->store_bytes, >, 10000000);

    g_assert_true(etcd_compact(client, 60, &error));
    g_assert_true(etcd_compact(client, 60, &error)); /* once more is no error */
    g_assert_false(etcd_compact(client, 1000, &error));
    assert_error(&error, PROTOCOL,
                 "compaction: etcd refused /v3/kv/compaction: etcdserver: mvcc: "
                 "required revision is a future revision (HTTP 400)");
    /* Pages count as free when something is written after the compaction. */
    until(put(client, "small", "x") && is_half_free(0));
    g_assert_true(etcd_defragment(client, &error));
    record_autoptr(member_status) tight = ask_well(0);
    g_assert_cmpuint(tight->store_bytes, <, full->store_bytes / 4);
    g_autofree char *kept = get(client, "big");
    g_assert_cmpstr(kept, ==, value);
    g_assert_true(etcd_alarm_disarm(client, etcd_id_parse(tight->id), "NOSPACE", &error));

    static const char turn[] = "/fettle/t/upkeep";
    g_assert_true(etcd_turn_take(client, turn, "node1", 60, &error));
    g_assert_false(etcd_turn_take(client, turn, "node2", 60, &error));
    assert_error(&error, TEMPORARY, "/fettle/t/upkeep is the turn of node1");
    /* Left by a process of its own that has died. */
    g_assert_true(etcd_turn_take(client, turn, "node1", 60, &error));
    etcd_turn_give(client, turn, "node2"); /* it is not that one's */
    g_assert_false(etcd_turn_take(client, turn, "node2", 60, &error));
    assert_error(&error, TEMPORARY, "/fettle/t/upkeep is the turn of node1");
    etcd_turn_give(client, turn, "node1");
    etcd_turn_give(client, turn, "node1"); /* nobody's: nothing */
    g_assert_true(etcd_turn_take(client, turn, "node2", 60, &error));
    etcd_turn_give(client, turn, "node2");
    etcd_client_free(client);
}

static void test_upkeep(struct fixture *fixture, gconstpointer unused)
{
    run(upkeep);
}

static void test_ids(void)
{
    g_autofree char *text = etcd_id_text(15684665043166021200u);
    g_assert_cmpstr(text, ==, "d9ab1fc17ee5c650");
    g_assert_cmpuint(etcd_id_parse(text), ==, 15684665043166021200u);
    g_assert_cmpuint(etcd_id_parse(""), ==, 0);
    g_assert_cmpuint(etcd_id_parse("0"), ==, 0);
    g_assert_cmpuint(etcd_id_parse("d9ab1fc17ee5c6500"), ==, 0);
}

/* Who is wrong when contents differ: one letter is one content, "-" who is silent, and capitals are
 * of another compaction. */
static void test_contents(void)
{
    static const struct {
        const char *hashes, *odd;
        enum etcd_verdict verdict;
    } cases[] = {
        {"aaa", "   ", ETCD_CONTENTS_SAME},      {"aba", " x ", ETCD_CONTENTS_ODD},
        {"abc", "   ", ETCD_CONTENTS_UNDECIDED}, {"a-b", "   ", ETCD_CONTENTS_UNDECIDED},
        {"--b", "   ", ETCD_CONTENTS_SAME},      {"---", "   ", ETCD_CONTENTS_SAME},
        {"aB", "  ", ETCD_CONTENTS_SAME},        {"aabb", "    ", ETCD_CONTENTS_UNDECIDED},
        {"aabab", "  x x", ETCD_CONTENTS_ODD},   {"", "", ETCD_CONTENTS_SAME},
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        struct etcd_content contents[8] = {0};
        guint count = (guint)strlen(cases[i].hashes);
        for (guint k = 0; k < count; k++)
            contents[k] = (struct etcd_content){
                .known = cases[i].hashes[k] != '-',
                .hash = (guint64)g_ascii_tolower(cases[i].hashes[k]),
                .compacted = g_ascii_isupper(cases[i].hashes[k]), /* cannot be compared */
            };
        g_assert_cmpint(etcd_contents_judge(contents, count), ==, cases[i].verdict);
        for (guint k = 0; k < count; k++)
            g_assert_cmpint(contents[k].odd, ==, cases[i].odd[k] == 'x');
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    loop_init();
    g_test_add_func("/etcd-member/ids", test_ids);
    g_test_add_func("/etcd-member/contents", test_contents);
    g_test_add("/etcd-member/grow-and-shrink#SAF-07", struct fixture, NULL, set_up,
               test_grow_and_shrink, tear_down);
    g_test_add("/etcd-member/losses", struct fixture, NULL, set_up, test_losses, tear_down);
    g_test_add("/etcd-member/certificates", struct fixture, NULL, set_up, test_certificates,
               tear_down);
    g_test_add("/etcd-member/upkeep", struct fixture, NULL, set_up, test_upkeep, tear_down);
    return g_test_run();
}
