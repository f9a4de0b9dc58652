/* Joining and revoking: tokens, the configuration daemon's side of a join, against a fake
 * authority. */
#include <string.h>

#include "core/wconfd/wconf_private.h"
#include "proto/invitation.h"
#include "proto/records.h"
#include "unit/core/world/wconf_world.h"

#define TOKEN "77777777-0000-4000-8000-000000000007"
#define SECRET "1234567890abcdef1234567890abcdef1234567890abcdef1234567890abcdef"
#define WRONG "0234567890abcdef1234567890abcdef1234567890abcdef1234567890abcdef"
#define NODE4 "44444444-0000-4000-8000-000000000004"
#define ANOTHER "make another with `fettle node invite`"

/* --- a fake authority: a request is "key K", its certificate "K CLUSTER NODE" --- */

struct fake_authority {
    struct authority base;
    guint signed_count;
    bool broken;
    bool turns; /* another authority signs, and is shown, from the next signature on */
} authority;

static bool fake_read_request(struct authority *self, const char *request, char **ret_key_hash,
                              GError **error)
{
    if (!env_sleep(world.wconfd, 5)) {
        fettle_set_error(error, KILLED, "killed");
        return false;
    }
    if (!g_str_has_prefix(request, "key ")) {
        fettle_set_error(error, WRONG_INPUT, "request: is no certificate request");
        return false;
    }
    *ret_key_hash = g_strdup(request + 4);
    return true;
}

static bool fake_sign(struct authority *self, const char *request, const char *cluster_uuid,
                      const char *node_uuid, char **ret_certificate, GError **error)
{
    if (!env_sleep(world.wconfd, 5)) {
        fettle_set_error(error, KILLED, "killed");
        return false;
    }
    if (authority.broken) {
        fettle_set_error(error, STORAGE, "etc/ca.key: gone");
        return false;
    }
    authority.signed_count++;
    *ret_certificate = g_strdup_printf("%s %s %s", request + 4, cluster_uuid, node_uuid);
    return true;
}

static bool fake_show(struct authority *self, char **ret_certificate, char **ret_fingerprint,
                      GError **error)
{
    *ret_certificate = g_strdup(authority.turns && authority.signed_count ? "CA2" : "CA");
    *ret_fingerprint = g_strnfill(64, 'f');
    return true;
}

static bool fake_has_key(struct authority *self)
{
    return !authority.broken;
}

static bool fake_sign_text(struct authority *self, const char *text, char **ret_signature,
                           GError **error)
{
    *ret_signature = g_strdup("signed");
    return true;
}

static const struct authority_ops fake_ops = {.sign_text = fake_sign_text,
                                              .read_request = fake_read_request,
                                              .sign = fake_sign,
                                              .show = fake_show,
                                              .has_key = fake_has_key};

/* --- the world with one token --- */

static struct env *joiner;

static json_t *object_token(const char *name, const char *address, guint64 lives_s)
{
    g_autofree char *hash = invitation_secret_hash(SECRET);
    guint64 now = (guint64)(world.job->ops->wall_us(world.job) / G_USEC_PER_SEC);
    return json_make("{s:s,s:s,s:s,s:s,s:s,s:I}", "uuid", TOKEN, "secret_hash", hash, "node_name",
                     name, "primary_ip", address, "group", GROUP, "expires",
                     (json_int_t)(now + lives_s));
}

static void restart(void)
{
    config_world_restart(&world);
    world.wconfd->authority = &authority.base;
    config_world_start(&world);
}

static void set_up_with(GPtrArray *objects, const char *name, const char *address)
{
    authority = (struct fake_authority){.base.ops = &fake_ops};
    config_world_init(&world, objects);
    config_world_start(&world);
    world.wconfd->authority = &authority.base;
    joiner = fake_process(world.world, NODE1, ROLE_JOINING);
    g_autofree char *said = job_commit(
        &world, 17, changes_of(put("join_token", TOKEN, 0, object_token(name, address, 60)), NULL));
    g_assert_cmpstr(said, ==, "{\"serial\":2}");
}

static void set_up(const char *name, const char *address)
{
    set_up_with(initial_changes(), name, address);
}

static char *join_with(const char *token, const char *secret, const char *request)
{
    return ask_wconf(
        &world, joiner, "join",
        json_make("{s:s,s:s,s:s}", "token", token, "secret", secret, "request", request));
}

static char *join_at(gint64 clock_s)
{
    return ask_wconf(&world, joiner, "join",
                     json_make("{s:s,s:s,s:s,s:I}", "token", TOKEN, "secret", SECRET, "request",
                               "key K", "clock_us", (json_int_t)(clock_s * G_USEC_PER_SEC)));
}

static struct join_result *parse(const char *text)
{
    g_autoptr(GError) error = NULL;
    json_autoptr json = json_parse_limited(text, strlen(text), JOIN_ANSWER_BYTES, &error);
    struct join_result *result = json ? join_result_parse(json, RECORD_STRICT, &error) : NULL;
    if (!result)
        g_error("%s: %s", text, error->message);
    return result;
}

static char *stored(const char *kind, const char *key, const char *member)
{
    json_autoptr since = json_make("{s:i,s:i}", "history", 0, "serial", 0);
    g_autofree char *text = ask_wconf(&world, world.luxid, "wait_changes", json_incref(since));
    json_autoptr json = json_parse_limited(text, strlen(text), MIB(1), NULL);
    size_t i;
    const json_t *change;
    json_array_foreach(json_object_get(json, "changes"), i, change) {
        if (strcmp(json_string_value(json_object_get(change, "kind")), kind) != 0 ||
            strcmp(json_string_value(json_object_get(change, "key")), key) != 0)
            continue;
        return json_to_text(json_object_get(json_object_get(change, "object"), member));
    }
    return g_strdup("none");
}

/* --- tests --- */

static void test_join(void)
{
    set_up("node4", "10.0.0.4");
    g_autofree char *said = join_with(TOKEN, SECRET, "key A");
    record_autoptr(join_result) result = parse(said);
    const char *uuid = result->config->node_uuid;
    g_autofree char *certificate = g_strdup_printf("A " CLUSTER " %s", uuid);
    g_assert_cmpstr(result->certificate, ==, certificate);
    g_assert_cmpstr(result->authority, ==, "CA");
    g_assert_cmpstr(result->config->name, ==, "node4");
    g_assert_cmpstr(result->config->cluster_uuid, ==, CLUSTER);
    g_assert_cmpstr(result->config->address, ==, "10.0.0.4");
    g_assert_cmpstr(result->announcement->master_node, ==, NODE1);
    g_assert_cmpuint(result->announcement->epoch, ==, world.epoch);
    g_assert_cmpuint(result->announcement->members->len, ==, 4);
    /* Node and used token are one transaction, and the secret is nowhere. */
    g_assert_cmpuint(fake_engine_serial(world.engine), ==, 3);
    assert_says(stored("node", uuid, "name"), "\"node4\"");
    assert_says(stored("node", uuid, "master_capable"), "true");
    assert_says(stored("node", uuid, "key_hash"), "\"A\"");
    g_autofree char *quoted = g_strdup_printf("\"%s\"", uuid);
    assert_says(stored("join_token", TOKEN, "node_uuid"), quoted);
    g_autofree char *all = ask_wconf(&world, world.luxid, "wait_changes",
                                     json_make("{s:i,s:i}", "history", 0, "serial", 0));
    g_assert_null(strstr(all, SECRET));
    world_tear_down();
}

/* So many nodes on record, with the longest names and addresses; all but three are dead. */
static GPtrArray *many_nodes(guint count)
{
    GPtrArray *objects = initial_changes();
    for (guint i = 3; i < count; i++) {
        g_autofree char *uuid = g_strdup_printf("99999999-0000-4000-8000-%012u", i);
        g_autofree char *name = g_strdup_printf("node%059u", i);
        g_autofree char *address =
            g_strdup_printf("2001:1db8:1111:2222:3333:4444:5555:%x", 4096 + i);
        g_ptr_array_add(objects,
                        put("node", uuid, 1,
                            json_make("{ss ss ss ss sb}", "uuid", uuid, "name", name, "primary_ip",
                                      address, "group", GROUP, "offline", 1)));
    }
    return objects;
}

/* The last one that fits gets an answer that names them all, and so do the nodes that live; none
 * comes after it. */
static void test_as_many_as_allowed(void)
{
    set_up_with(many_nodes(LIMIT_NODES - 1), "node4", "10.0.0.4");
    g_autofree char *said = join_with(TOKEN, SECRET, "key A");
    g_assert_cmpuint(strlen(said) + 2 * LIMIT_PEM_CHARS, <, JOIN_ANSWER_BYTES);
    record_autoptr(join_result) result = parse(said);
    g_assert_cmpuint(result->announcement->members->len, ==, LIMIT_NODES);
    fake_settle(world.world);
    g_autofree char *uuid = g_strdup_printf("\"%s\"", result->config->node_uuid);
    const GPtrArray *calls = fake_calls(world.world);
    const char *last = calls->pdata[calls->len - 1];
    g_assert_nonnull(strstr(last, "/noded announce {"));
    g_assert_nonnull(strstr(last, uuid));
    /* A carrier that refuses what is told would leave them pending. */
    assert_says(world_status("nodes_pending"), "[]");
    json_t *token = with(object_token("node5", "10.0.0.5", 60), "uuid", json_string(ID_B));
    assert_says(job_commit(&world, 17, changes_of(put("join_token", ID_B, 0, token), NULL)),
                "{\"serial\":4}");
    assert_says(join_with(ID_B, SECRET, "key B"),
                "limit_exceeded: the cluster has 4096 nodes, which is the limit");
    world_tear_down();
}

/* What was said of the host before it came holds from the moment on that it is there. */
static void test_not_capable(void)
{
    set_up("node4", "10.0.0.4");
    json_t *token = with(object_token("node4", "10.0.0.4", 60), "master_capable", json_false());
    assert_says(job_commit(&world, 17, changes_of(put("join_token", TOKEN, 2, token), NULL)),
                "{\"serial\":3}");
    g_autofree char *said = join_with(TOKEN, SECRET, "key A");
    record_autoptr(join_result) result = parse(said);
    assert_says(stored("node", result->config->node_uuid, "master_capable"), "false");
    assert_says(stored("node", result->config->node_uuid, "master_candidate"), "false");
    world_tear_down();
}

static void test_lost_answer(void)
{
    set_up("node4", "10.0.0.4");
    g_autofree char *first = join_with(TOKEN, SECRET, "key A");
    g_autofree char *again = join_with(TOKEN, SECRET, "key A");
    g_assert_cmpuint(fake_engine_serial(world.engine), ==, 3);
    record_autoptr(join_result) one = parse(first);
    record_autoptr(join_result) other = parse(again);
    g_assert_cmpstr(one->certificate, ==, other->certificate);
    g_assert_cmpstr(one->config->node_uuid, ==, other->config->node_uuid);
    /* Also after a restart, and when the token has expired meanwhile. */
    fake_advance(world.world, 61000);
    restart();
    g_autofree char *late = join_with(TOKEN, SECRET, "key A");
    record_autoptr(join_result) third = parse(late);
    g_assert_cmpstr(one->certificate, ==, third->certificate);
    g_assert_cmpuint(authority.signed_count, ==, 3); /* by the authority that is now */
    world_tear_down();
}

/* Asked again while it is on its way: a host is no node before that is stored. */
static void test_asked_again(void)
{
    static struct fake_reply replies[2];
    set_up("node4", "10.0.0.4");
    wconf_hold_commits(world.wconf);
    for (guint i = 0; i < 2; i++) {
        fake_call_start(
            joiner, 0, NODE1, ROLE_WCONFD, "join",
            json_make("{s:s,s:s,s:s}", "token", TOKEN, "secret", SECRET, "request", "key A"),
            &replies[i]);
        fake_advance(world.world, 1000);
    }
    g_assert_false(replies[0].done || replies[1].done);
    wconf_release_commits(world.wconf);
    fake_advance(world.world, 1000);
    g_autofree char *first = world_reply(&replies[0]);
    g_autofree char *again = world_reply(&replies[1]);
    g_assert_cmpstr(first, ==, again);
    g_assert_cmpuint(fake_engine_serial(world.engine), ==, 3);
    world_tear_down();
}

static void test_used_twice(void)
{
    set_up("node4", "10.0.0.4");
    g_autofree char *said = join_with(TOKEN, SECRET, "key A");
    record_autoptr(join_result) result = parse(said);
    g_autofree char *refused = join_with(TOKEN, SECRET, "key B");
    g_assert_true(
        g_str_has_prefix(refused, "wrong_state: token " TOKEN " was used by node node4 at "));
    g_assert_true(g_str_has_suffix(refused, " UTC; " ANOTHER));
    assert_says(job_locks(&world, 17, "x node/[lockset]", false), GRANTED);
    g_autofree char *gone =
        job_commit(&world, 17, changes_of(del("node", result->config->node_uuid, 3), NULL));
    g_assert_cmpstr(gone, ==, "{\"serial\":4}");
    g_autofree char *removed = join_with(TOKEN, SECRET, "key A");
    g_assert_nonnull(strstr(removed, ", which was removed since; " ANOTHER));
    world_tear_down();
}

/* Two hosts with one token at the same moment: one is let in. */
static void test_race(void)
{
    static struct fake_reply replies[2];
    set_up("node4", "10.0.0.4");
    for (guint i = 0; i < 2; i++)
        fake_call_start(joiner, 0, NODE1, ROLE_WCONFD, "join",
                        json_make("{s:s,s:s,s:s}", "token", TOKEN, "secret", SECRET, "request",
                                  i ? "key A" : "key B"),
                        &replies[i]);
    fake_advance(world.world, 1000);
    g_autofree char *one = world_reply(&replies[0]);
    g_autofree char *other = world_reply(&replies[1]);
    bool first = one[0] == '{';
    g_assert_cmpint(first, !=, other[0] == '{');
    g_assert_true(g_str_has_prefix(first ? other : one,
                                   "wrong_state: token " TOKEN " was used by node node4 at "));
    g_assert_cmpuint(fake_engine_serial(world.engine), ==, 3);
    world_tear_down();
}

static void test_refused(void)
{
    set_up("node4", "10.0.0.4");
    assert_says(join_with(ID_A, SECRET, "key A"),
                "unknown_entity: token " ID_A
                " is not known to this cluster: it was withdrawn or replaced, or has ended long "
                "ago; " ANOTHER);
    assert_says(join_with(TOKEN, SECRET, "no request"),
                "wrong_input: request: is no certificate request");
    authority.broken = true;
    assert_says(join_with(TOKEN, SECRET, "key A"), "storage_error: etc/ca.key: gone");
    fake_advance(world.world, 60000); /* it lives so long */
    g_autofree char *late = join_with(TOKEN, SECRET, "key A");
    g_assert_true(g_str_has_prefix(late, "wrong_state: token " TOKEN " expired at "));
    g_assert_true(g_str_has_suffix(late, " UTC; " ANOTHER));
    g_assert_cmpuint(fake_engine_serial(world.engine), ==, 2);
    assert_says(stored("join_token", TOKEN, "node_uuid"), "\"\"");
    world_tear_down();
}

static void test_taken(void)
{
    set_up("node3", "10.0.0.4");
    assert_says(join_with(TOKEN, SECRET, "key A"), "already_exists: node \"node3\" exists already");
    world_tear_down();
    set_up("node4", "10.0.0.3");
    assert_says(join_with(TOKEN, SECRET, "key A"),
                "already_exists: 10.0.0.3 port 1811 is the address of node \"node3\"");
    g_assert_cmpuint(fake_engine_serial(world.engine), ==, 2);
    world_tear_down();
}

static void test_wrong_secret(void)
{
    set_up("node4", "10.0.0.4");
    for (guint i = 1; i <= LIMIT_JOIN_TRIES; i++) {
        if (i == 3) /* a restart gives nobody more tries */
            restart();
        g_autofree char *expected =
            g_strdup_printf("permission_denied: token " TOKEN
                            ": the secret is wrong (try %u of %d, then the token is void)",
                            i, LIMIT_JOIN_TRIES);
        assert_says(join_with(TOKEN, WRONG, "key A"), expected);
    }
    assert_says(join_with(TOKEN, SECRET, "key A"),
                "permission_denied: token " TOKEN
                " is void: it came with a wrong secret 5 times; " ANOTHER);
    g_assert_cmpuint(authority.signed_count, ==, 0);
    world_tear_down();
}

/* The token is withdrawn while the certificate is signed: nobody is let in. */
static void test_withdrawn_in_the_middle(void)
{
    static struct fake_reply reply;
    set_up("node4", "10.0.0.4");
    fake_call_start(
        joiner, 0, NODE1, ROLE_WCONFD, "join",
        json_make("{s:s,s:s,s:s}", "token", TOKEN, "secret", SECRET, "request", "key A"), &reply);
    fake_advance(world.world, 7);
    assert_says(job_commit(&world, 17, changes_of(del("join_token", TOKEN, 2), NULL)),
                "{\"serial\":3}");
    fake_advance(world.world, 100);
    assert_says(world_reply(&reply), "unknown_entity: token " TOKEN
                                     " is not known to this cluster: it was withdrawn or replaced, "
                                     "or has ended long ago; " ANOTHER);
    g_assert_cmpuint(fake_engine_serial(world.engine), ==, 3);
    world_tear_down();
}

/* Each of them takes memory and the authority's time, and nobody knows yet who they are. */
static void test_too_many_at_once(void)
{
    static struct fake_reply replies[LIMIT_JOINERS + 1];
    set_up("node4", "10.0.0.4");
    for (guint i = 0; i <= LIMIT_JOINERS; i++)
        fake_call_start(
            joiner, 0, NODE1, ROLE_WCONFD, "join",
            json_make("{s:s,s:s,s:s}", "token", TOKEN, "secret", SECRET, "request", "key A"),
            &replies[i]);
    fake_settle(world.world);
    for (guint i = 0; i < LIMIT_JOINERS; i++)
        g_assert_false(replies[i].done);
    assert_says(world_reply(&replies[LIMIT_JOINERS]),
                "resource_not_available: 8 hosts are joining already; try again");
    fake_advance(world.world, 1000);
    for (guint i = 0; i < LIMIT_JOINERS; i++) {
        g_autofree char *said = world_reply(&replies[i]);
        g_assert_cmpint(said[0], ==, '{');
    }
    world_tear_down();
}

/* A join is in the middle of the signing when wconfd ends: answered, nothing stored. */
static void test_killed_in_the_middle(void)
{
    static struct fake_reply reply;
    set_up("node4", "10.0.0.4");
    fake_call_start(
        joiner, 0, NODE1, ROLE_WCONFD, "join",
        json_make("{s:s,s:s,s:s}", "token", TOKEN, "secret", SECRET, "request", "key A"), &reply);
    fake_advance(world.world, 7);
    g_assert_false(reply.done);
    restart();
    fake_advance(world.world, 100);
    g_assert_true(reply.done && reply.error);
    fake_reply_clear(&reply);
    g_assert_cmpuint(fake_engine_serial(world.engine), ==, 2);
    g_autofree char *said = join_with(TOKEN, SECRET, "key A");
    g_assert_true(said[0] == '{');
    world_tear_down();
}

static void test_only_joining_hosts_ask(void)
{
    set_up("node4", "10.0.0.4");
    assert_says(
        ask_wconf(&world, world.noded[1], "join",
                  json_make("{s:s,s:s,s:s}", "token", TOKEN, "secret", SECRET, "request", "key A")),
        "permission_denied: role noded may not call wconfd.join");
    assert_says(ask_wconf(&world, joiner, "cluster_status", json_object()),
                "permission_denied: role joining may not call wconfd.cluster_status");
    world_tear_down();
}

static void test_revoked_never_comes_back(void)
{
    set_up("node4", "10.0.0.4");
    g_autofree char *revoked = job_commit(
        &world, 17,
        changes_of(put("revoked", NODE4, 0,
                       json_make("{s:s,s:s,s:i}", "uuid", NODE4, "name", "node4", "since", 1)),
                   NULL));
    g_assert_cmpstr(revoked, ==,
                    "lock_missing: revoked node4 (" NODE4
                    "): job 17 does not hold the lock node/" NODE4 " exclusively");
    assert_says(job_locks(&world, 17, "x node/" NODE4, false), GRANTED);
    g_autofree char *said = job_commit(
        &world, 17,
        changes_of(put("revoked", NODE4, 0,
                       json_make("{s:s,s:s,s:i}", "uuid", NODE4, "name", "node4", "since", 1)),
                   NULL));
    g_assert_cmpstr(said, ==, "{\"serial\":3}");
    assert_says(job_commit(&world, 17, changes_of(put("node", NODE4, 0, object_node(NODE4)), NULL)),
                "permission_denied: node node4 (" NODE4
                "): its certificate was revoked when it was removed; the host gets a new one with "
                "a token of `fettle node invite`");
    world_tear_down();
}

/* A host whose clock is years off is refused, and its token is as good as before. */
static void test_clock_is_off(void)
{
    set_up("node4", "192.0.2.4");
    gint64 now = world.job->ops->wall_us(world.job) / G_USEC_PER_SEC;
    g_autofree char *ahead = join_at(now + 3 * 365 * 86400);
    g_assert_cmpstr(ahead, ==,
                    "wrong_input: the clock of this host shows 2026-11-13 22:13:21 UTC, the "
                    "master's 2023-11-14 22:13:21 UTC; set the one that is wrong, then run the "
                    "same command again");
    g_autofree char *behind = join_at(now - 3 * 365 * 86400);
    g_assert_true(g_str_has_prefix(
        behind, "wrong_input: the clock of this host shows 2020-11-14 22:13:21 UTC, the"));
    g_autofree char *none = stored("node", NODE4, "name");
    g_assert_cmpstr(none, ==, "none");
    g_autofree char *said = join_at(now - LIMIT_JOIN_CLOCK_S + 5);
    record_autoptr(join_result) result = parse(said);
    g_assert_cmpstr(result->config->name, ==, "node4");
    world_tear_down();
}

static char *join_as(const char *node)
{
    return ask_wconf(&world, joiner, "join",
                     json_make("{s:s,s:s,s:s,s:s}", "token", TOKEN, "secret", SECRET, "request",
                               "key K", "node", node));
}

/* The token of a node that has missed a renewal of the keys opens for its host alone. */
static void test_new_keys(void)
{
    GPtrArray *objects = initial_changes();
    authority = (struct fake_authority){.base.ops = &fake_ops};
    config_world_init(&world, objects);
    config_world_start(&world);
    world.wconfd->authority = &authority.base;
    joiner = fake_process(world.world, NODE1, ROLE_JOINING);
    json_t *token = with(object_token("node3", "10.0.0.3", 60), "renews", json_string(NODE3));
    g_free(job_commit(&world, 17, changes_of(put("join_token", TOKEN, 0, token), NULL)));
    assert_says(join_as(NODE3), "wrong_state: node node3 is not offline on record, and has missed "
                                "no renewal of the keys: it needs no new ones");
    json_t *missed = with(object_node(NODE3), "keys_missed", json_true());
    g_free(job_locks(&world, 17, "x node/" NODE3, false));
    g_free(job_commit(&world, 17, changes_of(put("node", NODE3, 1, missed), NULL)));
    assert_says(join_as(""), "wrong_state: token " TOKEN
                             " gives new keys to the host that is node node3, and this one is "
                             "none; if the disks of that host are lost, remove the node and "
                             "invite it anew");
    assert_says(join_as(NODE2), "wrong_state: token " TOKEN
                                " gives new keys to the host that is node node3, and this one is "
                                "another node; if the disks of that host are lost, remove the node "
                                "and invite it anew");
    g_autofree char *said = join_as(NODE3);
    record_autoptr(join_result) result = parse(said);
    g_assert_cmpstr(result->config->node_uuid, ==, NODE3);
    g_assert_cmpstr(result->certificate, ==, "K " CLUSTER " " NODE3);
    assert_says(stored("node", NODE3, "key_hash"), "\"K\"");
    g_assert_cmpuint(config_count(world.wconf->committed, "node"), ==, 3);
    world_tear_down();
}

/* A host is let in by one authority, that which is on record: else it waits. */
static void test_renewal(void)
{
    GPtrArray *objects = initial_changes();
    json_t *cluster = ((struct change *)objects->pdata[0])->object;
    json_object_set_new(cluster, "renewal", json_string("reissue"));
    json_object_set_new(cluster, "authority", json_string("CA2"));
    set_up_with(objects, "node4", "10.0.0.4");
    static const char again[] =
        "resource_not_available: the keys of the cluster are being renewed; try again";
    assert_says(join_as(""), again);
    g_assert_cmpuint(authority.signed_count, ==, 0);
    authority.turns = true;
    authority.signed_count = 1;
    g_autofree char *said = join_as("");
    record_autoptr(join_result) result = parse(said);
    g_assert_cmpstr(result->authority, ==, "CA2");
    world_tear_down();

    set_up("node4", "10.0.0.4");
    authority.turns = true;
    assert_says(join_as(""), again);
    g_assert_cmpuint(config_count(world.wconf->committed, "node"), ==, 3);
    world_tear_down();
}

static void test_is_a_node_already(void)
{
    set_up("node4", "10.0.0.4");
    assert_says(join_as(NODE2), "wrong_state: token " TOKEN
                                " is for a new host, and this one is a node already; if it was "
                                "removed, move its etc/node.json away first");
    world_tear_down();
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/join/joins", test_join);
    g_test_add_func("/join/as-many-as-allowed#SAF-06", test_as_many_as_allowed);
    g_test_add_func("/join/not-capable#ARP-71", test_not_capable);
    g_test_add_func("/join/lost-answer", test_lost_answer);
    g_test_add_func("/join/asked-again#SAF-04", test_asked_again);
    g_test_add_func("/join/used-twice", test_used_twice);
    g_test_add_func("/join/race", test_race);
    g_test_add_func("/join/refused", test_refused);
    g_test_add_func("/join/taken", test_taken);
    g_test_add_func("/join/wrong-secret", test_wrong_secret);
    g_test_add_func("/join/too-many-at-once", test_too_many_at_once);
    g_test_add_func("/join/withdrawn", test_withdrawn_in_the_middle);
    g_test_add_func("/join/killed", test_killed_in_the_middle);
    g_test_add_func("/join/callers", test_only_joining_hosts_ask);
    g_test_add_func("/join/clock-is-off#SAF-93", test_clock_is_off);
    g_test_add_func("/join/new-keys#SAF-96", test_new_keys);
    g_test_add_func("/join/renewal#SAF-94", test_renewal);
    g_test_add_func("/join/is-a-node-already#SAF-96", test_is_a_node_already);
    g_test_add_func("/join/revoked", test_revoked_never_comes_back);
    return g_test_run();
}
