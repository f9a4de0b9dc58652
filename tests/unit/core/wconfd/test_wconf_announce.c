/* What the nodes are told of the mastership, and how much of it at once.
 * core/wconfd/wconf_announce.c.
 */
#include <string.h>

#include "core/config/voucher.h"
#include "core/wconfd/wconf_private.h"
#include "helper/fake_authority.h"
#include "unit/core/world/wconf_world.h"

enum { NODES = 300, WAY_MS = 300 };

struct heard {
    guint count;
    size_t bytes; /* at one moment */
    size_t most;
    gint64 at_ms;
};

static json_t *hear(const struct rpc_request *request, const char *to_node, void *data,
                    GError **error)
{
    struct heard *heard = data;
    gint64 now = world.luxid->ops->boot_ms(world.luxid);
    heard->bytes = now == heard->at_ms ? heard->bytes : 0;
    heard->at_ms = now;
    heard->bytes += json_dumpb(request->args, NULL, 0, JSON_COMPACT);
    heard->most = MAX(heard->most, heard->bytes);
    heard->count++;
    return json_object();
}

static guint long_way(const char *from_node, const char *to_node, void *data)
{
    return strcmp(from_node, to_node) ? WAY_MS : 0;
}

/* The list of all to all is more than may be on its way at once: none is lost, and all answer. */
static void test_many_nodes(void)
{
    struct heard heard = {0};
    GPtrArray *objects = initial_changes();
    for (guint i = 0; i < NODES; i++) {
        g_autofree char *uuid = g_strdup_printf("99999999-0000-4000-8000-%012u", i);
        g_autofree char *name = g_strdup_printf("node-with-a-long-name-%u", i);
        g_autofree char *address = g_strdup_printf("10.1.%u.%u", i / 200, i % 200 + 1);
        json_t *node = with(object_node(uuid), "name", json_string(name));
        g_ptr_array_add(objects,
                        put("node", uuid, 1, with(node, "primary_ip", json_string(address))));
    }
    config_world_init(&world, objects);
    fake_forget_calls(world.world);
    fake_script(world.world, NULL, ROLE_NODED, "announce", hear, &heard);
    fake_set_delay(world.world, long_way, NULL);
    config_world_start(&world);
    fake_advance(world.world, 10000);
    g_assert_cmpuint(heard.count, >=, NODES + 3);
    g_assert_cmpuint(heard.most, <=, LIMIT_ANNOUNCE_BYTES);
    g_assert_cmpuint(heard.most, >, LIMIT_ANNOUNCE_BYTES / 2);
    fake_set_delay(world.world, NULL, NULL);
    assert_says(world_status("nodes_pending"), "[]");
    world_tear_down();
}

/* A node is told what it needs to know, not every change of a record that it is told from. */
static void test_no_news(void)
{
    struct heard heard = {0};
    world_set_up();
    fake_script(world.world, NULL, ROLE_NODED, "announce", hear, &heard);
    g_free(job_locks(&world, 17, "x node-param/" NODE2, false));
    assert_says(job_commit(&world, 17,
                           changes_of(put("node", NODE2, 1,
                                          with(object_node(NODE2), "drained", json_true())),
                                      NULL)),
                "{\"serial\":2}");
    fake_advance(world.world, 5000);
    g_assert_cmpuint(heard.count, ==, 0);
    assert_says(
        job_commit(&world, 17,
                   changes_of(put("node", NODE2, 2,
                                  with(object_node(NODE2), "master_candidate", json_true())),
                              NULL)),
        "{\"serial\":3}");
    fake_advance(world.world, 5000);
    g_assert_cmpuint(heard.count, >=, 3);
    world_tear_down();
}

/* What was on its way when all of it is said anew does not count for the new one. */
static json_t *hear_signature(const struct rpc_request *request, const char *to_node, void *data,
                              GError **error)
{
    if (!strcmp(to_node, NODE2))
        g_strlcpy(data, json_string_value(json_object_get(request->args, "signature")), 16);
    return json_object();
}

static void test_anew(void)
{
    char heard[16] = "";
    world_set_up();
    fake_script(world.world, NULL, ROLE_NODED, "announce", hear_signature, heard);
    fake_set_delay(world.world, long_way, NULL);
    wconf_take_signature(world.wconf, "old");
    wconf_announce_anew(world.wconf);
    fake_advance(world.world, WAY_MS / 2);
    wconf_take_signature(world.wconf, "new");
    wconf_announce_anew(world.wconf);
    g_assert_false(wconf_node_told(world.wconf, NODE2));
    for (guint i = 0; i < 100 && !wconf_node_told(world.wconf, NODE2); i++)
        fake_advance(world.world, WAY_MS / 6);
    g_assert_true(wconf_node_told(world.wconf, NODE2));
    g_assert_cmpstr(heard, ==, "new");
    fake_set_delay(world.world, NULL, NULL);
    world_tear_down();
}

/* --- a node that refuses this mastership as over (SAF-102) --- */

struct refusal {
    const char *maker; /* of the mastership that it tells of; NULL: node3 */
    guint64 epoch;
    bool begun;
    const char *proof; /* what it shows: "", or of what: "mastership", "candidacy", "nonsense" */
    bool candidate;    /* the node is one */
    const char *down;  /* why the master steps down; "": it does not */
    bool ends;         /* it has ended, for another reason, before it hears the answer */
};

static json_t *refuse_announcement(const struct rpc_request *request, const char *to_node,
                                   void *data, GError **error)
{
    if (strcmp(to_node, NODE2) != 0)
        return json_object();
    fettle_set_error(error, STALE_EPOCH, "the request is of history 5 epoch 1");
    return NULL;
}

static json_t *refuse_promise(const struct rpc_request *request, const char *to_node, void *data,
                              GError **error)
{
    const struct refusal *refusal = data;
    char signature[LIMIT_VOUCHER_CHARS + 1] = "ca/nonsense";
    const char *node = refusal->maker ? refusal->maker : NODE3;
    struct env *maker = fake_process(world.world, node, ROLE_CLI);
    struct stamp stamp = {5, refusal->epoch};
    if (refusal->ends)
        wconf_free(g_steal_pointer(&world.wconf));
    if (refusal->candidate || strcmp(to_node, NODE2) != 0)
        return json_make("{s:b}", "granted", 1);
    maker->authority = fake_authority_of(true);
    if (strcmp(refusal->proof, "nonsense") != 0)
        voucher_sign(maker, CLUSTER, stamp, !strcmp(refusal->proof, "mastership"), signature);
    json_t *answer = json_make("{s:b,s:i,s:I,s:s,s:b}", "granted", 0, "history", 5, "epoch",
                               (json_int_t)refusal->epoch, "node", node, "begun", refusal->begun);
    if (*refusal->proof)
        json_object_set_new(answer, "signature", json_string(signature));
    return answer;
}

#define UNPROVEN                                                                                   \
    "[\"node node2 says that a later mastership has begun, and does not prove it: it counts as "   \
    "silent. If no other node follows that one, let it forget it there: fettle-noded "             \
    "--forget-mastership\"]"

static void refuse(const struct refusal *refusal)
{
    GPtrArray *objects = initial_changes();
    if (refusal->candidate)
        g_ptr_array_add(objects, put("node", NODE2, 1,
                                     with(object_node(NODE2), "master_candidate", json_true())));
    config_world_init(&world, objects);
    fake_script(world.world, NULL, ROLE_NODED, "announce", refuse_announcement, NULL);
    fake_script(world.world, NULL, ROLE_NODED, "promise_epoch", refuse_promise, (void *)refusal);
    world.wconfd->authority = fake_authority_of(true);
    config_world_start(&world);
    fake_advance(world.world, 10000);
    g_assert_cmpstr(world.stepped_down ? world.stepped_down : "", ==, refusal->down);
    if (!*refusal->down && !refusal->ends) {
        assert_says(world_status("nodes_pending"), "[\"" NODE2 "\"]");
        assert_says(world_status("problems"), UNPROVEN);
        /* Nothing waits for it but what concerns it. */
        assert_says(job_locks(&world, 17, "x node/" NODE3, false), GRANTED);
    }
    world_tear_down();
}

/* A candidate's word ends a mastership; that of another node does if it shows a signature over what
 * it says, and that is later. */
static void test_refused(void)
{
    static const struct refusal refusals[] = {
        {.epoch = 9, .begun = true, .proof = "", .down = ""},
        {.epoch = 9, .begun = true, .proof = "nonsense", .down = ""},
        {.epoch = 9, .begun = true, .proof = "candidacy", .down = ""},
        {.epoch = 9, .begun = false, .proof = "mastership", .down = ""},
        {.epoch = 1, .begun = false, .proof = "", .down = ""},
        /* What this master has signed itself, and what is older. */
        {.maker = NODE1, .epoch = 1, .begun = true, .proof = "mastership", .down = ""},
        {.epoch = 0, .begun = true, .proof = "mastership", .down = ""},
        {.epoch = RECORD_NUMBER_MAX, .begun = false, .proof = "", .down = ""},
        {.epoch = 9,
         .begun = true,
         .proof = "mastership",
         .down = "not_master: node node2 follows a later mastership, of node node3"},
        {.epoch = 9,
         .begun = false,
         .proof = "candidacy",
         .down = "not_master: node node2 follows a later mastership, of node node3"},
        {.epoch = 9,
         .begun = true,
         .proof = "",
         .candidate = true,
         .down = "not_master: node node2 says: the request is of history 5 epoch 1"},
        {.epoch = 9, .begun = true, .proof = "mastership", .ends = true, .down = ""},
    };
    for (guint i = 0; i < G_N_ELEMENTS(refusals); i++)
        refuse(&refusals[i]);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/announce/many-nodes#SAF-05,SAF-06", test_many_nodes);
    g_test_add_func("/announce/no-news#WCF-20", test_no_news);
    g_test_add_func("/announce/anew#SAF-94,SAF-102", test_anew);
    g_test_add_func("/announce/refused#SAF-06,SAF-102", test_refused);
    return g_test_run();
}
