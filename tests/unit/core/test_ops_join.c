/* OP_NODE_INVITE, and what the removal of a node leaves. */
#include "ops_case.h"

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
    return ops_run_one(world,
                       json_make("{ss ss ss ss si}", "OP_ID", "OP_NODE_INVITE", "node_name", name,
                                 "primary_ip", address, "secret_hash", hash, "expires_s", 60));
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
    /* It takes no lock. */
    ops_expect(world, "commit join_token \ncommit job success\n");
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

/* A used one is kept, so that a second use is told who used it; but not for ever. */
static void test_forgets(void)
{
    put_token("node4", NODE3, 100);
    invite("node4", "10.0.0.4", HASH);
    g_autoptr(GPtrArray) both = config_list(world->config, "join_token");
    g_assert_cmpuint(both->len, ==, 2);
    put_token("node9", NODE3, JOIN_TOKEN_KEPT_S + 10);
    invite("node5", "10.0.0.5", HASH);
    g_assert_null(config_get(world->config, "join_token", OLD_TOKEN, NULL));
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
    add("/invite/forgets", test_forgets);
    add("/invite/refused", test_refused);
    add("/invite/no-authority", test_no_authority);
    add("/invite/remove-revokes", test_remove_revokes);
    add("/invite/add-revokes-nothing", test_add_revokes_nothing);
    return g_test_run();
}
