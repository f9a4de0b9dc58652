/*
 * ConfD's answers (core/confd): every type of request on a small cluster, with the words and shapes
 * of exchanges that were recorded with Ganeti 3.0; what is dropped, and that it is counted.
 */
#include "core/confd/confd.h"

#include <string.h>

#define NODE1 "aaaaaaaa-0000-4000-8000-000000000001"
#define NODE2 "aaaaaaaa-0000-4000-8000-000000000002"
#define NODE3 "aaaaaaaa-0000-4000-8000-000000000003"
#define CLUSTER "cccccccc-0000-4000-8000-000000000001"
#define GROUP "99999999-0000-4000-8000-000000000001"
#define WEB "bbbbbbbb-0000-4000-8000-000000000001"
#define DISK "dddddddd-0000-4000-8000-000000000001"
#define NIC "eeeeeeee-0000-4000-8000-000000000001"
#define KEY "00112233445566778899aabbccddeeff"
#define NOW 1795191280
#define SERIAL 77

static void apply(struct confd_copy *copy, enum change_op op, const char *kind, const char *key,
                  json_t *object)
{
    g_autoptr(GError) error = NULL;
    const struct config *config = confd_copy_config(copy);
    record_autoptr(change) change =
        op == CHANGE_PUT ? config_put(config, kind, key, object) : config_delete(config, kind, key);
    change->version = 16;
    confd_copy_apply(copy, change, &error);
    g_assert_no_error(error);
}

static void put_node(struct confd_copy *copy, const char *uuid, const char *name, const char *ip,
                     const char *flag)
{
    json_t *object =
        json_make("{ss ss ss ss}", "uuid", uuid, "name", name, "primary_ip", ip, "group", GROUP);
    if (flag)
        json_object_set_new(object, flag, json_true());
    apply(copy, CHANGE_PUT, "node", uuid, object);
}

static void put_web(struct confd_copy *copy, const char *primary, const char *ip)
{
    apply(copy, CHANGE_PUT, "instance", WEB,
          json_make("{ss ss ss si ss ss s[{ss si}] s[{ss ss ss ss}] ss si ss si}", "uuid", WEB,
                    "name", "web", "disk_template", "mirror", "memory", 128, "primary_node",
                    primary, "secondary_node", NODE3, "disks", "uuid", DISK, "size", 16, "nics",
                    "uuid", NIC, "mac", "aa:00:00:00:00:01", "link", "br0", "ip", ip, "admin_state",
                    "up", "ctime", 1795190036, "vnc_bind_address", "127.0.0.1", "network_port",
                    11000));
}

static struct confd *make_confd(const char *self)
{
    struct confd *confd = confd_new(self);
    struct confd_copy *copy = confd_copy_new();
    apply(copy, CHANGE_PUT, "cluster", CLUSTER,
          json_make("{ss ss ss}", "uuid", CLUSTER, "name", "c1", "master_node", NODE1));
    put_node(copy, NODE1, "node1", "10.99.9.10", "master_candidate");
    put_node(copy, NODE2, "node2", "10.99.9.11", "master_candidate");
    put_node(copy, NODE3, "node3", "10.99.9.12", NULL);
    put_web(copy, NODE1, "10.0.0.5");
    apply(copy, CHANGE_PUT, "secret", "confd", json_make("{ss}", "value", KEY));
    confd_copy_set_position(copy, 1, SERIAL);
    confd_set_copy(confd, copy);
    return confd;
}

static void remove_confd(struct confd **confd)
{
    confd_free(*confd);
}
#define confd_auto __attribute__((cleanup(remove_confd))) struct confd *

/* Somebody who has no node's address. */
#define ELSEWHERE "192.0.2.9"

/* The request as text, signed for `salt`; the reply's datagram or NULL. */
static char *send_as(struct confd *confd, const char *from, const char *secret, const char *msg,
                     const char *salt, size_t *ret_len)
{
    g_autoptr(confd_key_t) key = confd_key_new(secret, strlen(secret));
    size_t len;
    g_autofree char *datagram = confd_seal(key, salt, msg, &len);
    return confd_handle(confd, NOW, from, datagram, len, ret_len);
}

static char *send(struct confd *confd, const char *msg, const char *salt, size_t *ret_len)
{
    return send_as(confd, ELSEWHERE, KEY, msg, salt, ret_len);
}

/* The whole inner message of the reply, which is signed with the key of the question; "silence" if
 * there is none. */
static char *ask_as(struct confd *confd, const char *from, const char *secret, int type,
                    const char *query)
{
    g_autofree char *msg = g_strdup_printf(
        "{\"protocol\": 1, \"type\": %d, \"query\": %s, \"rsalt\": \"r-1\"}", type, query);
    g_autoptr(confd_key_t) key = confd_key_new(secret, strlen(secret));
    struct confd_reply opened;
    enum confd_fault fault;
    size_t len;
    g_autofree char *reply = send_as(confd, from, secret, msg, "1795191280", &len);
    if (!reply)
        return g_strdup("silence");
    g_assert_true(confd_reply_open(key, reply, len, "r-1", &opened, &fault));
    json_decref(opened.answer);
    json_autoptr envelope = json_loadb(reply + 4, len - 4, 0, NULL);
    g_assert_nonnull(envelope);
    g_assert_cmpstr(json_string_value(json_object_get(envelope, "salt")), ==, "r-1");
    return g_strdup(json_string_value(json_object_get(envelope, "msg")));
}

static char *ask(struct confd *confd, int type, const char *query)
{
    return ask_as(confd, ELSEWHERE, KEY, type, query);
}

static void expect(struct confd *confd, int type, const char *query, const char *msg)
{
    g_autofree char *found = ask(confd, type, query);
    g_assert_cmpstr(found, ==, msg);
}

#define OK(answer) "{\"protocol\":1,\"status\":0,\"answer\":" answer ",\"serial\":77}"
#define BAD(answer) "{\"protocol\":1,\"status\":1,\"answer\":" answer ",\"serial\":77}"
#define NOT_FOUND(what)                                                                            \
    BAD("\"Failure: prerequisites not met for this operation:\\nerror type: ECodeNoEnt, error "    \
        "details:\\n" what " not found\"")

static void test_answers(void)
{
    confd_auto confd = make_confd(NODE1);
    expect(confd, 0, "null", OK("3000000"));
    expect(confd, 1, "\"node1\"", OK("0"));
    expect(confd, 1, "\"node2\"", OK("1"));
    expect(confd, 1, "\"node3\"", OK("4"));
    expect(confd, 1, "\"nosuch\"", NOT_FOUND("Node name nosuch"));
    expect(confd, 1, "null", BAD("\"Invalid query type EmptyQuery\""));
    expect(confd, 2, "{\"1\": \"10.0.0.5\"}", OK("\"10.99.9.10\""));
    expect(confd, 2, "{\"0\": \"br1\", \"1\": \"10.0.0.5\"}", BAD("0"));
    expect(confd, 2, "{\"2\": [\"10.0.0.5\", \"10.0.0.6\"]}", OK("[[0,\"10.99.9.10\"],[1,0]]"));
    expect(confd, 2, "\"10.0.0.5\"", BAD("2"));
    expect(confd, 3, "null", OK("\"node1\""));
    expect(confd, 3, "{\"0\": [\"0\"]}", OK("[]"));
    expect(confd, 3, "{\"3\": [0, 1, 2]}", OK("[\"node1\",\"10.99.9.10\",\"10.99.9.10\"]"));
    expect(confd, 3, "\"node1\"", BAD("2"));
    expect(confd, 4, "null", OK("[\"10.99.9.10\",\"10.99.9.11\",\"10.99.9.12\"]"));
    expect(confd, 5, "null", OK("[\"10.99.9.10\",\"10.99.9.11\"]"));
    expect(confd, 6, "null", OK("[\"10.0.0.5\"]"));
    expect(confd, 6, "\"br9\"", OK("[]"));
    expect(confd, 6, "{}", BAD("\"Invalid query type\""));
    expect(confd, 7, "\"node1\"", OK("[]"));
    expect(confd, 7, "\"nosuch\"", NOT_FOUND("Node name nosuch"));
    expect(confd, 8, "\"node2\"", OK("[[],[]]"));
    expect(confd, 9, "\"nosuch\"", NOT_FOUND("Instance name nosuch"));
    expect(confd, 10, "null", BAD("\"Invalid query type EmptyQuery\""));
    expect(confd, 10, "\"cluster/cluster_name\"", OK("\"c1\""));
    expect(confd, 10, "\"/nodes/node2/primary_ip\"", OK("\"10.99.9.11\""));
    expect(confd, 10, "\"instances/web/beparams/vcpus\"", OK("1"));
    expect(confd, 10, "\"instances/web/network_port\"", OK("11000"));
    expect(confd, 10, "\"instances/web/hvparams/vnc_bind_address\"", OK("\"127.0.0.1\""));
    expect(confd, 10, "\"serial_no\"", OK("77"));
    expect(confd, 10, "\"cluster/nosuch\"", BAD("2"));
    expect(confd, 10, "\"\"", BAD("2"));
    g_autofree char *found = ask(confd, 11, "null");
    g_assert_true(g_str_has_prefix(
        found, "{\"protocol\":1,\"status\":0,\"answer\":{\"cpu-avg-load\":{\"active\":true,"
               "\"interval\":5000000},\"host\":"));
    expect(confd, 12, "null",
           "{\"protocol\":1,\"status\":2,\"answer\":\"There is no such request type\",\"serial\":"
           "77}");
}

/* The address of the cluster is the master IP, where there is one. */
static void test_master_ip(void)
{
    confd_auto confd = make_confd(NODE1);
    expect(confd, 10, "\"cluster/master_ip\"", OK("\"10.99.9.10\""));
    expect(confd, 10, "\"cluster/master_netdev\"", BAD("2"));
    apply(confd_copy_of(confd), CHANGE_PUT, "cluster", CLUSTER,
          json_make("{ss ss ss ss si ss}", "uuid", CLUSTER, "name", "c1", "master_node", NODE1,
                    "master_ip", "10.99.9.200", "master_netmask", 24, "master_netdev", "br0"));
    expect(confd, 3, "{\"3\": [0, 1, 2]}", OK("[\"node1\",\"10.99.9.200\",\"10.99.9.10\"]"));
    expect(confd, 10, "\"cluster/master_ip\"", OK("\"10.99.9.200\""));
    expect(confd, 10, "\"cluster/master_netmask\"", OK("24"));
    expect(confd, 10, "\"cluster/master_netdev\"", OK("\"br0\""));
}

/* Every field that the recorded instance has. */
static void test_shapes(void)
{
    confd_auto confd = make_confd(NODE1);
    static const char *const fields[] = {"name",         "primary_node",
                                         "os",           "hypervisor",
                                         "hvparams",     "beparams",
                                         "osparams",     "osparams_private",
                                         "admin_state",  "admin_state_source",
                                         "nics",         "disks",
                                         "disks_active", "ctime",
                                         "mtime",        "uuid",
                                         "serial_no",    "tags"};
    g_autofree char *text = ask(confd, 8, "\"node1\"");
    json_autoptr msg = json_loads(text, 0, NULL);
    const json_t *lists = json_object_get(msg, "answer");
    const json_t *web = json_array_get(json_array_get(lists, 0), 0);
    for (guint i = 0; i < G_N_ELEMENTS(fields); i++)
        g_assert_nonnull(json_object_get(web, fields[i]));
    g_assert_cmpuint(json_array_size(json_array_get(lists, 1)), ==, 0);
    expect(confd, 9, "\"web\"",
           OK("[{\"dev_type\":\"mirror\",\"logical_id\":[\"raw\",\"" WEB ".disk0.raw\"],"
              "\"children\":[],\"nodes\":[\"" NODE1 "\",\"" NODE3 "\"],\"iv_name\":\"disk/0\","
              "\"size\":16,\"mode\":\"rw\",\"params\":{},\"uuid\":\"" DISK
              "\",\"serial_no\":16}]"));
}

static void test_changes(void)
{
    confd_auto confd = make_confd(NODE1);
    struct confd_copy *copy = confd_copy_of(confd);
    put_web(copy, NODE2, "10.0.0.6");
    expect(confd, 2, "{\"1\": \"10.0.0.5\"}", BAD("0"));
    expect(confd, 2, "{\"1\": \"10.0.0.6\"}", OK("\"10.99.9.11\""));
    expect(confd, 8, "\"node1\"", OK("[[],[]]"));
    apply(copy, CHANGE_DELETE, "instance", WEB, NULL);
    expect(confd, 8, "\"node2\"", OK("[[],[]]"));
    expect(confd, 6, "null", OK("[]"));
}

/* Who is no candidate is silent, and is none any more by a change of its own copy. */
static void test_candidates_only(void)
{
    confd_auto confd = make_confd(NODE3);
    struct confd_copy *copy = confd_copy_of(confd);
    g_assert_cmpstr(confd_silent_because(confd), ==, "this node is no master candidate");
    expect(confd, 0, "null", "silence");
    put_node(copy, NODE3, "node3", "10.99.9.12", "master_candidate");
    g_assert_null(confd_silent_because(confd));
    expect(confd, 0, "null", OK("3000000"));
    confd_copy_set_retired(copy, true);
    g_assert_cmpstr(confd_silent_because(confd), ==, "its copy of the configuration is retired");
    expect(confd, 0, "null", "silence");
    confd_copy_set_retired(copy, false);
    apply(copy, CHANGE_DELETE, "secret", "confd", NULL);
    g_assert_cmpstr(confd_silent_because(confd), ==, "the configuration has no key for ConfD");
    apply(copy, CHANGE_DELETE, "node", NODE3, NULL);
    g_assert_cmpstr(confd_silent_because(confd), ==, "this node is not in the configuration");
    confd_set_copy(confd, NULL);
    g_assert_cmpstr(confd_silent_because(confd), ==, "there is no copy of the configuration here");
    expect(confd, 0, "null", "silence");
}

/* --- the monitoring of a node --- */

static void expect_as(struct confd *confd, const char *from, const char *secret, int type,
                      const char *query, const char *msg)
{
    g_autofree char *found = ask_as(confd, from, secret, type, query);
    g_assert_cmpstr(found, ==, msg);
}

#define NO_MORE(node)                                                                              \
    BAD("\"With the key of its monitoring node " node                                              \
        " may ask for the data collectors and for its own instances alone\"")
#define INSTANCES "[[{\"name\":\"web\",\"uuid\":\"" WEB "\",\"admin_state\":\"up\"}],[]]"

/* A node's own key opens, from its address, what its monitoring needs, and nothing else. */
static void test_node_key(void)
{
    confd_auto confd = make_confd(NODE2);
    g_autofree char *key1 = confd_node_key(KEY, NODE1);
    g_autofree char *key3 = confd_node_key(KEY, NODE3);
    g_autofree char *key9 = confd_node_key(KEY, CLUSTER);
    g_autofree char *other = confd_node_key("another secret of theirs", NODE1);
    g_assert_cmpuint(strlen(key1), ==, 64);
    expect_as(confd, "10.99.9.10", key1, 0, "null", OK("3000000"));
    expect_as(confd, "10.99.9.10", key1, 8, "\"node1\"", OK(INSTANCES));
    expect_as(confd, "10.99.9.10", key1, 8, "\"" NODE1 "\"", OK(INSTANCES));
    expect_as(confd, "10.99.9.12", key3, 8, "\"node3\"", OK("[[],[]]")); /* no candidate, either */
    g_autofree char *settings = ask_as(confd, "10.99.9.12", key3, 11, "null");
    g_assert_nonnull(strstr(settings, "\"status\":0,\"answer\":{\"cpu-avg-load\""));
    for (int type = 0; type <= 12; type++) {
        const char *query = type == 8 ? "\"node3\"" : type == 10 ? "\"cluster\"" : "\"node1\"";
        if (type != CONFD_TYPE_ping && type != CONFD_TYPE_data_collectors)
            expect_as(confd, "10.99.9.10", key1, type, query, NO_MORE("node1"));
    }
    expect_as(confd, "10.99.9.10", key1, 8, "null", NO_MORE("node1"));
    expect_as(confd, "10.99.9.12", key1, 0, "null", "silence"); /* another node's address */
    expect_as(confd, ELSEWHERE, key1, 0, "null", "silence");
    expect_as(confd, "", key1, 0, "null", "silence");
    expect_as(confd, "10.99.9.10", key3, 0, "null", "silence");
    expect_as(confd, "10.99.9.10", key9, 0, "null", "silence");
    expect_as(confd, "10.99.9.10", other, 0, "null", "silence");
    g_assert_cmpuint(confd_counters(confd)->dropped[CONFD_FAULT_HMAC], ==, 6);
    expect_as(confd, "10.99.9.10", KEY, 3, "null", OK("\"node1\"")); /* who has the cluster's */
}

static void test_node_key_ends(void)
{
    confd_auto confd = make_confd(NODE2);
    struct confd_copy *copy = confd_copy_of(confd);
    g_autofree char *key = confd_node_key(KEY, NODE3);
    g_autofree char *renewed = confd_node_key("another secret of theirs", NODE3);
    expect_as(confd, "10.99.9.12", key, 0, "null", OK("3000000"));
    put_node(copy, NODE3, "node3", "fd00::0:3", NULL);
    expect_as(confd, "10.99.9.12", key, 0, "null", "silence");
    expect_as(confd, "fd00::3", key, 0, "null", OK("3000000"));
    apply(copy, CHANGE_PUT, "secret", "confd",
          json_make("{ss}", "value", "another secret of theirs"));
    expect_as(confd, "fd00::3", key, 0, "null", "silence");
    expect_as(confd, "fd00::3", renewed, 0, "null", OK("3000000"));
    apply(copy, CHANGE_DELETE, "node", NODE3, NULL);
    expect_as(confd, "fd00::3", renewed, 0, "null", "silence");
}

static void remove_node(void *data)
{
    apply(data, CHANGE_DELETE, "node", NODE3, NULL);
}

/* It is removed by a change that the question itself has let in. */
static void test_node_key_ends_meanwhile(void)
{
    confd_auto confd = make_confd(NODE2);
    g_autofree char *key = confd_node_key(KEY, NODE3);
    confd_on_request(confd, remove_node, confd_copy_of(confd));
    expect_as(confd, "10.99.9.12", key, 0, "null", "silence");
}

/* --- silence --- */

static void expect_dropped(struct confd *confd, const char *data, size_t len,
                           enum confd_fault fault)
{
    guint64 before = confd_counters(confd)->dropped[fault], all = confd_dropped(confd);
    size_t reply_len;
    g_assert_null(confd_handle(confd, NOW, ELSEWHERE, data, len, &reply_len));
    g_assert_cmpuint(confd_counters(confd)->dropped[fault], ==, before + 1);
    g_assert_cmpuint(confd_dropped(confd), ==, all + 1);
}

#define PING "{\"protocol\": 1, \"type\": 0, \"query\": null, \"rsalt\": \"r\"}"

static void expect_salt(struct confd *confd, const char *salt, bool taken)
{
    size_t len;
    guint64 before = confd_counters(confd)->dropped[CONFD_FAULT_SALT];
    g_autofree char *reply = send(confd, PING, salt, &len);
    g_assert_true((reply != NULL) == taken);
    g_assert_cmpuint(confd_counters(confd)->dropped[CONFD_FAULT_SALT], ==, before + !taken);
}

static void test_window(void)
{
    confd_auto confd = make_confd(NODE1);
    expect_salt(confd, "1795191280", true);
    expect_salt(confd, "1795190980", true);
    expect_salt(confd, "1795191580", true);
    expect_salt(confd, "1795190979", false);
    expect_salt(confd, "1795191581", false);
    expect_salt(confd, "", false);
    expect_salt(confd, "now", false);
    expect_salt(confd, "-9223372036854775808", false);
}

static void expect_bad_request(struct confd *confd, const char *msg)
{
    guint64 before = confd_counters(confd)->dropped[CONFD_FAULT_REQUEST];
    size_t len;
    g_assert_null(send(confd, msg, "1795191280", &len));
    g_assert_cmpuint(confd_counters(confd)->dropped[CONFD_FAULT_REQUEST], ==, before + 1);
}

static void test_bad_requests(void)
{
    confd_auto confd = make_confd(NODE1);
    expect_bad_request(confd, "");
    expect_bad_request(confd, "[1]");
    expect_bad_request(confd, "{\"protocol\": 1, \"type\": 0, \"query\": null}");
    expect_bad_request(confd, "{\"protocol\": 2, \"type\": 0, \"rsalt\": \"r\"}");
    expect_bad_request(confd, "{\"protocol\": 1, \"type\": -1, \"rsalt\": \"r\"}");
    expect_bad_request(confd, "{\"protocol\": 1, \"type\": \"0\", \"rsalt\": \"r\"}");
    expect_bad_request(confd, "{\"protocol\": 1, \"type\": 0, \"rsalt\": \"r\", \"more\": 1}");
    expect_bad_request(confd, "{\"protocol\": 1, \"type\": 3, \"rsalt\": \"r\", \"query\": 5}");
    expect_bad_request(
        confd, "{\"protocol\": 1, \"type\": 3, \"rsalt\": \"r\", \"query\": {\"fields\": [0]}}");
    expect_bad_request(confd,
                       "{\"protocol\": 1, \"type\": 3, \"rsalt\": \"r\", \"query\": {\"3\": [3]}}");
    g_autoptr(GString) many = g_string_new("{\"protocol\": 1, \"type\": 3, \"rsalt\": \"r\", "
                                           "\"query\": {\"2\": [\"1.1.1.1\"");
    for (guint i = 0; i < LIMIT_CONFD_ADDRESSES; i++)
        g_string_append(many, ", \"1.1.1.1\"");
    g_string_append(many, "]}}");
    expect_bad_request(confd, many->str);
}

static void test_silence(void)
{
    confd_auto confd = make_confd(NODE1);
    g_autoptr(confd_key_t) key = confd_key_new(KEY, strlen(KEY));
    g_autoptr(confd_key_t) other = confd_key_new("another", 7);
    g_autofree char *large = g_malloc0(LIMIT_CONFD_REQUEST_BYTES + 1);
    size_t len, other_len;
    g_autofree char *good = confd_seal(key, "1795191280", PING, &len);
    g_autofree char *foreign = confd_seal(other, "1795191280", PING, &other_len);
    expect_dropped(confd, large, LIMIT_CONFD_REQUEST_BYTES + 1, CONFD_FAULT_SIZE);
    expect_dropped(confd, "", 0, CONFD_FAULT_MAGIC);
    expect_dropped(confd, "plj", 3, CONFD_FAULT_MAGIC);
    expect_dropped(confd, good + 1, len - 1, CONFD_FAULT_MAGIC);
    expect_dropped(confd, good, 4, CONFD_FAULT_FORM);
    expect_dropped(confd, good, len - 1, CONFD_FAULT_FORM);
    expect_dropped(confd, "plj0[]", 6, CONFD_FAULT_FORM);
    expect_dropped(confd, foreign, other_len, CONFD_FAULT_HMAC);
    /* No changed byte of a signed datagram is answered. */
    for (size_t i = 0; i < len; i++) {
        size_t reply_len;
        g_autofree char *changed = g_memdup2(good, len);
        changed[i] ^= 1;
        g_autofree char *reply = confd_handle(confd, NOW, ELSEWHERE, changed, len, &reply_len);
        g_assert_null(reply);
    }
    g_assert_cmpuint(confd_counters(confd)->answered, ==, 0);
    g_free(confd_handle(confd, NOW, ELSEWHERE, good, len, &len));
    g_assert_cmpuint(confd_counters(confd)->answered, ==, 1);
}

/* An answer that no datagram holds becomes a sentence. */
static void test_large(void)
{
    confd_auto confd = make_confd(NODE1);
    struct confd_copy *copy = confd_copy_of(confd);
    for (guint i = 0; i < 300; i++) {
        g_autofree char *uuid = g_strdup_printf("b0000000-0000-4000-8000-%012u", i);
        g_autofree char *name = g_strdup_printf("vm%u", i);
        apply(copy, CHANGE_PUT, "instance", uuid,
              json_make("{ss ss ss si ss}", "uuid", uuid, "name", name, "disk_template", "diskless",
                        "memory", 128, "primary_node", i < 200 ? NODE2 : NODE1));
    }
    g_autofree char *text = ask(confd, 8, "\"node2\"");
    g_assert_true(
        g_str_has_prefix(text, "{\"protocol\":1,\"status\":1,\"answer\":\"The answer has "));
    g_assert_nonnull(strstr(text, "and a datagram at most 61440; ask for a part of it\""));
    expect(confd, 10, "\"instances\"",
           BAD("\"instances: there are 301, and one answer has at most 256; ask for them one by "
               "one\""));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/confd/answers#RCF-02,RCF-07,D-17", test_answers);
    g_test_add_func("/confd/master-ip#RCF-07", test_master_ip);
    g_test_add_func("/confd/shapes#RCF-07", test_shapes);
    g_test_add_func("/confd/changes", test_changes);
    g_test_add_func("/confd/candidates-only", test_candidates_only);
    g_test_add_func("/confd/node-key#MON-04", test_node_key);
    g_test_add_func("/confd/node-key-ends", test_node_key_ends);
    g_test_add_func("/confd/node-key-ends-meanwhile", test_node_key_ends_meanwhile);
    g_test_add_func("/confd/time-window#RCF-07", test_window);
    g_test_add_func("/confd/bad-requests", test_bad_requests);
    g_test_add_func("/confd/silence#RCF-07", test_silence);
    g_test_add_func("/confd/too-large", test_large);
    return g_test_run();
}
