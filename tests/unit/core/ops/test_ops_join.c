/* OP_NODE_INVITE, and what the removal of a node leaves. */
#include "unit/core/world/ops_case.h"

#include <string.h>

#define HASH "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define OLD_TOKEN "00000000-0000-4000-8000-0000000000e1"

static struct ops_world *world;

static json_t *answer_ca(const struct rpc_request *request, const char *to_node, void *data,
                         GError **error)
{
    g_autofree char *fingerprint = g_strnfill(64, 'f');
    return json_make("{ss}", "fingerprint", fingerprint);
}

static const char *invite(const char *name, const char *address, const char *hash)
{
    return ops_run_one(world, json_make("{ss ss ss ss si ss}", "OP_ID", "OP_NODE_INVITE",
                                        "node_name", name, "primary_ip", address, "secret_hash",
                                        hash, "expires_s", 60, "author", "anna@node1"));
}

static const struct join_token *only_token(void)
{
    g_autoptr(GPtrArray) tokens = config_list(world->config, "join_token");
    g_assert_cmpuint(tokens->len, ==, 1);
    return tokens->pdata[0];
}

static void test_invite(void)
{
    world->trace_locks = true;
    const char *said = invite("node4", "10.0.0.4", HASH);
    json_autoptr result = json_parse_limited(said, strlen(said), KIB(4), NULL);
    const struct join_token *token = only_token();
    g_assert_cmpstr(json_string_value(json_object_get(result, "token")), ==, token->uuid);
    g_assert_cmpstr(json_string_value(json_object_get(result, "address")), ==, "10.0.0.1");
    g_assert_cmpint(json_integer_value(json_object_get(result, "port")), ==, 1811);
    g_assert_cmpint(json_integer_value(json_object_get(result, "expires")), ==,
                    (gint64)token->expires);
    g_assert_cmpstr(token->secret_hash, ==, HASH);
    g_assert_cmpstr(token->node_name, ==, "node4");
    g_assert_cmpstr(token->group, ==, GROUP);
    g_assert_cmpstr(token->node_uuid, ==, "");
    gint64 now = world->env->ops->wall_us(world->env) / G_USEC_PER_SEC;
    g_assert_cmpint((gint64)token->expires, >, now);
    g_assert_cmpint((gint64)token->expires, <=, now + 60);
    g_assert_cmpuint(token->expires - token->made, ==, 60);
    g_assert_cmpuint(token->job, ==, JOB);
    g_assert_cmpstr(token->author, ==, "anna@node1");
    g_assert_true(token->master_capable);
    /* It takes no lock. */
    ops_expect(world, "commit join_token \ncommit job success\n");
}

static void test_invite_not_capable(void)
{
    const char *said = ops_run_one(world, json_make("{ss ss ss ss sb}", "OP_ID", "OP_NODE_INVITE",
                                                    "node_name", "node4", "primary_ip", "10.0.0.4",
                                                    "secret_hash", HASH, "master_capable", 0));
    g_assert_true(g_str_has_prefix(said, "{"));
    g_assert_false(only_token()->master_capable);
}

static void put_token(const char *name, const char *node, gint64 ended_s)
{
    gint64 now = world->env->ops->wall_us(world->env) / G_USEC_PER_SEC;
    ops_put(world, "join_token", OLD_TOKEN,
            json_make("{ss ss ss ss ss sI ss}", "uuid", OLD_TOKEN, "secret_hash", HASH, "node_name",
                      name, "primary_ip", "10.0.0.9", "group", GROUP, "expires",
                      (json_int_t)(now - ended_s), "node_uuid", node));
}

static void test_replaces(void)
{
    put_token("node4", "", -30);
    invite("node4", "10.0.0.4", HASH);
    g_assert_cmpstr(only_token()->uuid, !=, OLD_TOKEN);
    ops_expect(world, "commit delete join_token; join_token \ncommit job success\n");
}

/* A used one is kept, so that a second use is told who used it. */
static void test_used_is_kept(void)
{
    put_token("node4", NODE3, 100);
    invite("node4", "10.0.0.4", HASH);
    g_autoptr(GPtrArray) both = config_list(world->config, "join_token");
    g_assert_cmpuint(both->len, ==, 2);
}

static void test_limit(void)
{
    for (guint i = 0; i < LIMIT_JOIN_TOKENS; i++) {
        g_autofree char *uuid = g_strdup_printf("00000000-0000-4000-8000-%012x", 0xf0000 + i);
        g_autofree char *name = g_strdup_printf("host%u", i);
        ops_put(world, "join_token", uuid,
                json_make("{ss ss ss ss ss si}", "uuid", uuid, "secret_hash", HASH, "node_name",
                          name, "primary_ip", "10.0.0.9", "group", GROUP, "expires", 1));
    }
    const char *said = invite("node4", "10.0.0.4", HASH);
    g_assert_cmpstr(said, ==,
                    "[\"OpExecError\", [\"4096 invitations are on record, which is the limit; "
                    "withdraw some: fettle node invite --list\", \"limit_exceeded\", false]]");
    /* One in place of another of the same host is no more than before. */
    g_assert_true(g_str_has_prefix(invite("host7", "10.0.0.4", HASH), "{"));
}

/* --- withdraw --- */

static const char *withdraw(const char *which)
{
    return ops_run_one(
        world, json_make("{ss ss}", "OP_ID", "OP_NODE_WITHDRAW_INVITATION", "invitation", which));
}

static void test_withdraw(void)
{
    put_token("node4", "", -30);
    world->trace_locks = true;
    g_assert_cmpstr(withdraw("node4"), ==, "null");
    g_assert_null(config_get(world->config, "join_token", OLD_TOKEN, NULL));
    ops_expect(world, "commit delete join_token\ncommit job success\n");
    put_token("node4", "", 30); /* expired */
    g_assert_cmpstr(withdraw(OLD_TOKEN), ==, "null");
    g_assert_null(config_get(world->config, "join_token", OLD_TOKEN, NULL));
}

#define USED                                                                                       \
    "invitation " OLD_TOKEN " was used: the host is node \"node4\" (" NODE3                        \
    "), or was; a member leaves by fettle node remove"

static void test_withdraw_refused(void)
{
    ops_expect_refusal(world, withdraw("node4"),
                       "there is no invitation \"node4\"; see fettle node invite --list",
                       "unknown_entity");
    put_token("node4", NODE3, -30);
    ops_expect_refusal(world, withdraw("node4"), USED, "wrong_state");
    ops_expect_refusal(world, withdraw(OLD_TOKEN), USED, "wrong_state");
    g_assert_nonnull(config_get(world->config, "join_token", OLD_TOKEN, NULL));
}

/* Of a used and an open one of the same host the open one is meant. */
static void test_withdraw_open_one(void)
{
    put_token("node4", NODE3, 100);
    invite("node4", "10.0.0.4", HASH);
    g_assert_cmpstr(withdraw("node4"), ==, "null");
    g_assert_cmpstr(only_token()->uuid, ==, OLD_TOKEN);
}

static void host_comes(struct ops_world *of, guint number)
{
    if (number == 1)
        ops_set(of, "join_token", OLD_TOKEN, "node_uuid", json_string(NODE3));
}

/* The host is let in between the look and the commit: it is a member, and the withdrawal says so.
 */
static void test_withdraw_too_late(void)
{
    put_token("node4", "", -30);
    world->on_commit = host_comes;
    g_autofree char *expected =
        g_strdup_printf("[\"OpExecError\", [\"%s\", \"wrong_state\", false]]",
                        "invitation " OLD_TOKEN " was used: the host is node \\\"node4\\\" (" NODE3
                        "), or was; a member leaves by fettle node remove");
    g_assert_cmpstr(withdraw("node4"), ==, expected);
    g_assert_cmpstr(only_token()->node_uuid, ==, NODE3);
}

static void test_refused(void)
{
    ops_expect_refusal(world, invite("node2", "10.0.0.4", HASH), "node \"node2\" exists already",
                       "already_exists");
    ops_expect_refusal(world, invite("node4", "10.0.0.2", HASH),
                       "primary_ip: 10.0.0.2 port 1811 is the address of node \"node2\"",
                       "already_exists");
    ops_expect_refusal(world, invite("node4", "over there", HASH),
                       "primary_ip: \"over there\" is no IP address", "wrong_input");
    g_autofree char *no_hash = g_strnfill(64, 'x');
    ops_expect_refusal(world, invite("node4", "10.0.0.4", no_hash),
                       "secret_hash: must be 64 hexadecimal digits in lower case", "wrong_input");
}

/* One that has missed a renewal of the keys is invited by the name and address that it has. */
static void test_new_keys(void)
{
    json_t *node = config_object_json(world->config, "node", NODE2);
    json_object_set_new(node, "keys_missed", json_true());
    ops_put(world, "node", NODE2, node);
    ops_expect_refusal(world, invite("node2", "10.0.0.9", HASH),
                       "node \"node2\" exists already; with --primary-ip 10.0.0.2 --port 1811 as "
                       "on record it gets new keys",
                       "already_exists");
    const char *said = invite("node2", "10.0.0.2", HASH);
    g_assert_true(g_str_has_prefix(said, "{"));
    g_assert_cmpstr(only_token()->renews, ==, NODE2);
}

/* … and so is one that is offline, whose keys are of another time than its record. */
static void test_new_keys_offline(void)
{
    json_t *node = config_object_json(world->config, "node", NODE2);
    json_object_set_new(node, "offline", json_true());
    json_object_set_new(node, "offline_statement", json_string("x"));
    ops_put(world, "node", NODE2, node);
    g_assert_true(g_str_has_prefix(invite("node2", "10.0.0.2", HASH), "{"));
    g_assert_cmpstr(only_token()->renews, ==, NODE2);
}

static void test_no_authority(void)
{
    fake_script(world->world, NODE1, ROLE_WCONFD, "ca_info", NULL, NULL);
    const char *said = invite("node4", "10.0.0.4", HASH);
    g_assert_true(g_str_has_prefix(said, "[\"OpExecError\""));
    ops_expect(world, "commit job error\n");
}

static void test_remove_revokes(void)
{
    ops_run_one(world, json_make("{ss ss}", "OP_ID", "OP_NODE_REMOVE", "node_name", "node3"));
    const struct revoked *revoked = config_get(world->config, "revoked", NODE3, NULL);
    g_assert_nonnull(revoked);
    g_assert_cmpstr(revoked->name, ==, "node3");
    g_assert_cmpuint(revoked->since, >, 0);
    g_assert_null(config_get(world->config, "node", NODE3, NULL));
}

/* What node add takes back because the host did not answer was no removal. */
static void test_add_revokes_nothing(void)
{
    static const char uuid[] = "00000000-0000-4000-8000-000000000004";
    g_ptr_array_add(world->pending, (void *)uuid);
    ops_run_one(world, json_make("{ss ss ss ss}", "OP_ID", "OP_NODE_ADD", "node_name", "node4",
                                 "primary_ip", "10.0.0.4", "node_uuid", uuid));
    g_assert_null(config_get(world->config, "node", uuid, NULL));
    g_assert_null(config_get(world->config, "revoked", uuid, NULL));
}

static void prepare(void)
{
    fake_script(world->world, NODE1, ROLE_WCONFD, "ca_info", answer_ca, world);
}

static void add(const char *path, void (*fn)(void))
{
    ops_case(path, fn, &world, prepare);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    add("/invite", test_invite);
    add("/invite/replaces", test_replaces);
    add("/invite/used-is-kept", test_used_is_kept);
    add("/invite/limit", test_limit);
    add("/invite/withdraw", test_withdraw);
    add("/invite/withdraw/refused", test_withdraw_refused);
    add("/invite/withdraw/open-one", test_withdraw_open_one);
    add("/invite/withdraw/too-late", test_withdraw_too_late);
    add("/invite/not-capable#ARP-71", test_invite_not_capable);
    add("/invite/refused", test_refused);
    add("/invite/new-keys#SAF-96", test_new_keys);
    add("/invite/new-keys-offline#SAF-96", test_new_keys_offline);
    add("/invite/no-authority", test_no_authority);
    add("/invite/remove-revokes", test_remove_revokes);
    add("/invite/add-revokes-nothing", test_add_revokes_nothing);
    return g_test_run();
}
