/*
 * Promises of epochs (docs/design/mastership.md): what a node grants and refuses, what it refuses
 * from then on, and what is left of it after deaths and power cuts. core/epoch/epoch_fence.c.
 */
#include "helper/node_world.h"

#include "core/config/voucher.h"
#include "helper/fake_authority.h"

#define PROMISE_FILE "node/promise.json"

static struct node_world *nw;

static void set_up(void)
{
    nw = node_world_new(1); /* epoch 1 of node M is announced */
}

static void tear_down(void)
{
    node_world_free(nw);
}

struct asking {
    const char *by;
    guint64 history, epoch, since;
    bool begins;
};

/* What node A answers: "granted", "history/epoch of NODE", with " begun", or "error_name: message".
 */
static char *ask(struct asking asking)
{
    g_autoptr(GError) error = NULL;
    struct env *wconfd = fake_process(nw->world, asking.by, ROLE_WCONFD);
    json_autoptr answer =
        fake_call(wconfd, NODE_A, ROLE_NODED, "promise_epoch",
                  json_make("{s:I,s:I,s:I,s:s,s:b}", "history",
                            (json_int_t)(asking.history ? asking.history : 1), "epoch",
                            (json_int_t)asking.epoch, "since", (json_int_t)asking.since, "node",
                            asking.by, "begins", asking.begins),
                  &error);
    if (!answer)
        return g_strdup_printf("%s: %s", fettle_error_name(error), error->message);
    if (json_is_true(json_object_get(answer, "granted")))
        return g_strdup("granted");
    return g_strdup_printf("%d/%d of %s%s",
                           (int)json_integer_value(json_object_get(answer, "history")),
                           (int)json_integer_value(json_object_get(answer, "epoch")),
                           json_string_value(json_object_get(answer, "node")),
                           json_is_true(json_object_get(answer, "begun")) ? " begun" : "");
}

#define assert_asked(expected, ...)                                                                \
    do {                                                                                           \
        g_autofree char *said_ = ask((struct asking){__VA_ARGS__});                                \
        g_assert_cmpstr(said_, ==, expected);                                                      \
    } while (0)

/* A harmless request of a job of that epoch on a node: "", or "error_name: message". */
static char *act_on(const char *node, guint64 epoch)
{
    struct fake_reply reply;
    nw->job = fake_process(nw->world, node, ROLE_JOB);
    nw_call_start(nw, &nw->a, "image_info", (struct stamp){1, epoch},
                  json_make("{s:s}", "os_type", "tick"), &reply);
    nw_until(nw, reply.done);
    char *said = reply.error ? g_strdup_printf("%s: %s", fettle_error_name(reply.error),
                                               reply.error->message)
                             : g_strdup("");
    fake_reply_clear(&reply);
    return said;
}

static char *act(guint64 epoch)
{
    return act_on(NODE_M, epoch);
}

static char *announce(const char *master, guint64 epoch)
{
    g_autoptr(GError) error = NULL;
    struct env *wconfd = fake_process(nw->world, master, ROLE_WCONFD);
    json_t *args =
        json_make("{s:i,s:I,s:s,s:s,s:i,s:[{s:s,s:s,s:s,s:i,s:b},{s:s,s:s,s:s,s:i,s:b}]}",
                  "history", 1, "epoch", (json_int_t)epoch, "cluster", CLUSTER, "master_node",
                  master, "serial", 9, "members", "uuid", NODE_B, "name", "b", "address",
                  "10.0.0.2", "port", 1811, "master_candidate", true, "uuid", NODE_M, "name", "m",
                  "address", "10.0.0.9", "port", 1811, "master_candidate", true);
    json_autoptr answer = fake_call(wconfd, NODE_A, ROLE_NODED, "announce", args, &error);
    return answer ? g_strdup("")
                  : g_strdup_printf("%s: %s", fettle_error_name(error), error->message);
}

#define assert_text(said, expected)                                                                \
    do {                                                                                           \
        g_autofree char *said_ = (said);                                                           \
        g_assert_cmpstr(said_, ==, expected);                                                      \
    } while (0)

/* --- tests --- */

static void test_granted(void)
{
    assert_asked("granted", NODE_B, .epoch = 2, .since = 1);
    assert_asked("granted", NODE_B, .epoch = 2, .since = 1);
    assert_asked("1/2 of " NODE_B, NODE_M, .epoch = 2, .since = 1);
    assert_asked("1/2 of " NODE_B, NODE_M, .epoch = 1, .since = 1);
    assert_asked("1/2 of " NODE_B, NODE_B, .epoch = 1, .since = 1);
    assert_asked("granted", NODE_M, .epoch = 3, .since = 1);
    assert_asked("1/3 of " NODE_M, NODE_B, .epoch = 2, .since = 1);
    assert_asked("granted", NODE_B, .epoch = 9, .since = 1);
}

/* What is lower than a promise is refused as what is lower than an announcement. */
static void test_refuses(void)
{
    assert_text(act(1), "");
    assert_asked("granted", NODE_B, .epoch = 3, .since = 1);
    assert_text(act(1), "stale_epoch: the request is of history 1 epoch 1, this node has promised "
                        "to follow history 1 epoch 3");
    assert_text(act(3), "resource_not_available: history 1 epoch 3 was not announced to this node "
                        "yet; try again");
    assert_text(announce(NODE_M, 2), "stale_epoch: the request is of history 1 epoch 2, this node "
                                     "has promised to follow history 1 epoch 3");
    assert_text(announce(NODE_M, 3),
                "stale_epoch: epoch 3 is the mastership of node " NODE_B ", not of node " NODE_M);
    assert_text(announce(NODE_B, 3), "");
    assert_text(act_on(NODE_B, 3), "");
    assert_asked("granted", NODE_B, .epoch = 3, .since = 3);
    g_assert_cmpstr(node_core_master(nw->a.core), ==, NODE_B);
}

/* A mastership that has begun is not passed over by who has not seen what it did. */
static void test_begun(void)
{
    assert_asked("1/1 of " NODE_M " begun", NODE_B, .epoch = 2, .since = 0);
    assert_asked("granted", NODE_B, .epoch = 2, .since = 1);
    assert_asked("granted", NODE_B, .epoch = 2, .since = 1, .begins = true);
    assert_asked("1/2 of " NODE_B " begun", NODE_M, .epoch = 3, .since = 1);
    assert_asked("granted", NODE_M, .epoch = 3, .since = 2);
    /* Node M has only been promised it, and takes nothing from node B, which goes higher. */
    assert_asked("1/3 of " NODE_M, NODE_B, .epoch = 2, .since = 2);
    assert_asked("granted", NODE_B, .epoch = 4, .since = 2, .begins = true);
    assert_asked("1/4 of " NODE_B " begun", NODE_M, .epoch = 3, .since = 2, .begins = true);
    assert_asked("granted", NODE_M, .epoch = 5, .since = RECORD_NUMBER_MAX);
}

static void test_bad_input(void)
{
    assert_asked("1/1 of " NODE_M " begun", NODE_B, .epoch = 0, .since = 1);
    assert_asked("granted", NODE_B, .history = 2, .epoch = 1);
    assert_asked("2/1 of " NODE_B, NODE_M, .history = 1, .epoch = 7, .since = 1);
    g_autoptr(GError) error = NULL;
    struct env *wconfd = fake_process(nw->world, NODE_B, ROLE_WCONFD);
    json_t *answer =
        fake_call(wconfd, NODE_A, ROLE_NODED, "promise_epoch",
                  json_make("{s:i,s:i,s:s}", "history", 1, "epoch", 2, "node", NODE_M), &error);
    g_assert_null(answer);
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_PERMISSION);
    g_assert_cmpstr(error->message, ==,
                    "the promise is for node " NODE_M " but is asked for by node " NODE_B);
}

/* A granted promise survives everything; one that could not be written was not given. */
static void test_survives(void)
{
    assert_asked("granted", NODE_B, .epoch = 2, .since = 1);
    nw_power_cut(nw, &nw->a);
    nw_daemon_start(nw, &nw->a);
    assert_asked("1/2 of " NODE_B, NODE_M, .epoch = 2, .since = 1);
    assert_text(act(1), "stale_epoch: the request is of history 1 epoch 1, this node has promised "
                        "to follow history 1 epoch 2");

    fake_fail_files(nw->world, PROMISE_FILE, 1);
    g_autofree char *failed = ask((struct asking){NODE_M, .epoch = 3, .since = 1});
    g_assert_true(g_str_has_prefix(failed, "storage_error: var/" PROMISE_FILE ": "));
    /* Until it is forgotten it holds, and the repetition is written. */
    assert_asked("1/3 of " NODE_M, NODE_B, .epoch = 3, .since = 1);
    assert_asked("granted", NODE_M, .epoch = 3, .since = 1);
    nw_daemon_kill(nw, &nw->a);
    nw_daemon_start(nw, &nw->a);
    assert_asked("1/3 of " NODE_M, NODE_B, .epoch = 3, .since = 1);

    fake_fail_files(nw->world, PROMISE_FILE, 1);
    g_autofree char *begins = ask((struct asking){NODE_M, .epoch = 3, .since = 1, .begins = true});
    g_assert_true(g_str_has_prefix(begins, "storage_error: "));
    nw_power_cut(nw, &nw->a);
    nw_daemon_start(nw, &nw->a);
    assert_asked("granted", NODE_B, .epoch = 4, .since = 1);
    assert_asked("granted", NODE_B, .epoch = 4, .since = 1, .begins = true);
    nw_power_cut(nw, &nw->a);
    nw_daemon_start(nw, &nw->a);
    assert_asked("1/4 of " NODE_B " begun", NODE_M, .epoch = 5, .since = 1);
}

static void test_damaged(void)
{
    nw_daemon_kill(nw, &nw->a);
    fake_file_put(nw->world, NODE_A, FILE_STATE, PROMISE_FILE, "{\"history\":1,\"epoch\":\"x\"}");
    g_autofree char *why = nw_daemon_refuses(nw, &nw->a);
    g_assert_true(g_str_has_prefix(why, "var/" PROMISE_FILE " is damaged ("));
}

static bool admits(const char *from, const char *role, const struct method *method,
                   struct stamp stamp, GError **error)
{
    return node_core_admit(nw->a.core, from, role, method, stamp, error);
}

/* A candidate may ask under any epoch what looks at epochs itself. */
static void test_free(void)
{
    static const struct {
        const char *server, *method;
    } free_methods[] = {{ROLE_NODED, "announce"},    {ROLE_NODED, "promise_epoch"},
                        {ROLE_NODED, "node_report"}, {ROLE_WCONFD, "follow"},
                        {ROLE_WCONFD, "snapshot"},   {ROLE_WCONFD, "wait_changes"},
                        {ROLE_WCONFD, "wait_role"},  {ROLE_WCONFD, "take_over"}};
    struct stamp old = {1, 0};
    for (guint i = 0; i < G_N_ELEMENTS(free_methods); i++) {
        const struct method *method = method_find(free_methods[i].server, free_methods[i].method);
        g_autoptr(GError) error = NULL;
        g_assert_true(admits(NODE_B, ROLE_WCONFD, method, old, &error));
        g_assert_false(admits(WEB1, ROLE_WCONFD, method, old, &error));
        g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_PERMISSION);
    }
    g_autoptr(GError) error = NULL;
    g_assert_false(admits(NODE_B, ROLE_NODED, method_find(ROLE_WCONFD, "confirm"), old, &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_STALE_EPOCH);
}

/* --- of which node (SAF-100) --- */

#define ORDINARY WEB1 /* a member that is no candidate */

/* Node A's list: B and M are candidates, M is the master, ORDINARY is neither. */
static void announce_all(const char *master)
{
    static const char *const nodes[] = {NODE_A, NODE_B, NODE_M, ORDINARY};
    g_autoptr(GError) error = NULL;
    json_t *members = json_array();
    for (guint i = 0; i < G_N_ELEMENTS(nodes); i++) {
        g_autofree char *name = g_strdup_printf("node%u", i + 1);
        json_array_append_new(members, json_make("{s:s,s:s,s:s,s:i,s:b}", "uuid", nodes[i], "name",
                                                 name, "address", "10.0.0.9", "port", 1811,
                                                 "master_candidate", (int)(i == 1 || i == 2)));
    }
    json_t *args = json_make("{s:i,s:i,s:s,s:s,s:i,s:o}", "history", 1, "epoch", 1, "cluster",
                             CLUSTER, "master_node", master, "serial", 9, "members", members);
    json_autoptr answer = fake_call(nw->master, NODE_A, ROLE_NODED, "announce", args, &error);
    g_assert_no_error(error);
}

static bool one_of(const char *word, const char *words)
{
    g_auto(GStrv) list = g_strsplit(words, " ", -1);
    return g_strv_contains((const char *const *)list, word);
}

/* --- whose word of a mastership counts (SAF-102, 103) --- */

/* An announcement by that node of the present list, signed for `signed_for` (NULL: not). */
static char *announce_as(const char *from, struct stamp stamp, guint64 serial,
                         const char *signed_for)
{
    g_autoptr(GError) error = NULL;
    struct env *wconfd = fake_process(nw->world, from, ROLE_WCONFD);
    struct env *maker = signed_for ? fake_process(nw->world, signed_for, ROLE_WCONFD) : NULL;
    char signature[LIMIT_VOUCHER_CHARS + 1] = "";
    if (maker) {
        maker->authority = fake_authority_of(true);
        voucher_sign(maker, CLUSTER, stamp, true, signature);
    }
    json_autoptr members = json_array();
    json_array_append_new(members,
                          json_make("{s:s,s:s,s:s,s:i,s:b}", "uuid", NODE_M, "name", "m", "address",
                                    "10.0.0.9", "port", 1811, "master_candidate", true));
    json_array_append_new(members, json_make("{s:s,s:s,s:s,s:i}", "uuid", NODE_B, "name", "b",
                                             "address", "10.0.0.2", "port", 1811));
    json_t *args =
        json_make("{s:I,s:I,s:s,s:s,s:I,s:O,s:s}", "history", (json_int_t)stamp.history, "epoch",
                  (json_int_t)stamp.epoch, "cluster", CLUSTER, "master_node", from, "serial",
                  (json_int_t)serial, "members", members, "signature", signature);
    json_autoptr answer = fake_call(wconfd, NODE_A, ROLE_NODED, "announce", args, &error);
    return answer ? g_strdup("")
                  : g_strdup_printf("%s: %s", fettle_error_name(error), error->message);
}

#define NO_CANDIDATE                                                                               \
    "permission_denied: node \"node4\" is no master candidate; announcements of a mastership are " \
    "taken from candidates only"

static void assert_nothing_moved(void)
{
    g_assert_cmpstr(node_core_master(nw->a.core), ==, NODE_M);
    assert_asked("1/1 of " NODE_M " begun", NODE_B, .epoch = 0);
}

/* One frame of an ordinary node once made any master step down. */
static void test_lying_member(void)
{
    announce_all(NODE_M);
    assert_text(announce_as(ORDINARY, (struct stamp){2, 1}, 9, NULL), NO_CANDIDATE);
    assert_text(announce_as(ORDINARY, (struct stamp){1, 2}, 10, NULL), NO_CANDIDATE);
    /* What a candidate has signed for itself, or for another mastership, proves nothing of it. */
    assert_text(announce_as(ORDINARY, (struct stamp){1, 2}, 10, NODE_B), NO_CANDIDATE);
    assert_text(announce_as(ORDINARY, (struct stamp){9007199254740000, 1}, 9, NULL),
                "wrong_input: history 9007199254740000 is beyond any clock; not believed (from "
                "node4)");
    assert_text(announce_as(NODE_B, (struct stamp){9007199254740000, 1}, 9, NODE_B),
                "wrong_input: history 9007199254740000 is beyond any clock; not believed (from "
                "node2)");
    assert_text(announce_as(NODE_B, (struct stamp){1, 9007199254740000}, 9, NODE_B),
                "wrong_input: epoch 9007199254740000 is beyond any clock; not believed (from "
                "node2)");
    assert_text(announce_as(NODE_M, (struct stamp){1, 1}, 9007199254740000, NODE_M),
                "wrong_input: serial 9007199254740000 is beyond any clock; not believed (from "
                "node3)");
    assert_asked("permission_denied: node \"node4\" is no master candidate; promises are given to "
                 "candidates only",
                 ORDINARY, .epoch = 2, .since = 1);
    assert_asked("wrong_input: epoch 9007199254740000 is beyond any clock; not believed (from "
                 "node2)",
                 NODE_B, .epoch = 9007199254740000, .since = 1);
    /* It is told what is known all the same. */
    assert_asked("1/1 of " NODE_M " begun", ORDINARY, .epoch = 2, .since = 0);
    assert_nothing_moved();
}

/* A candidate that was made one while this node was away; a node that knows nobody. */
static void test_signed(void)
{
    announce_all(NODE_M);
    assert_text(announce_as(ORDINARY, (struct stamp){1, 2}, 10, ORDINARY), "");
    g_assert_cmpstr(node_core_master(nw->a.core), ==, ORDINARY);

    nw_daemon_kill(nw, &nw->a);
    g_assert_true(
        nw->a.host_env->ops->file_remove(nw->a.host_env, FILE_STATE, ANNOUNCED_FILE, NULL));
    nw_daemon_start(nw, &nw->a);
    assert_text(announce_as(NODE_M, (struct stamp){1, 3}, 11, NULL),
                "permission_denied: node \"" NODE_M "\" is no master candidate; announcements of a "
                "mastership are taken from candidates only");
    assert_text(announce_as(NODE_M, (struct stamp){1, 3}, 11, NODE_M), "");
    g_assert_cmpstr(node_core_master(nw->a.core), ==, NODE_M);
}

/* What the other candidate than the announcer, node M, tells of an unsigned mastership of node B at
 * epoch 5, which was never promised here. */
struct hearsay {
    bool silent;
    guint64 epoch; /* that its node daemon has seen */
    const char *node;
    bool begun;
    const char *role; /* what its wconfd says; NULL: nothing */
    const char *said; /* what the announcement is answered */
};

static json_t *known_there(const struct rpc_request *request, const char *to_node, void *data,
                           GError **error)
{
    const struct hearsay *hearsay = data;
    if (hearsay->silent) {
        fettle_set_error(error, UNREACHABLE, "no answer");
        return NULL;
    }
    return json_make("{s:b,s:i,s:I,s:s,s:b}", "granted", 0, "history", 1, "epoch",
                     (json_int_t)hearsay->epoch, "node", hearsay->node, "begun", hearsay->begun);
}

static json_t *role_there(const struct rpc_request *request, const char *to_node, void *data,
                          GError **error)
{
    const struct hearsay *hearsay = data;
    if (hearsay->role)
        return json_parse_limited(hearsay->role, strlen(hearsay->role), KIB(1), NULL);
    fettle_set_error(error, UNREACHABLE, "no answer");
    return NULL;
}

#define NOBODY_HEARD                                                                               \
    "resource_not_available: no other candidate has promised or heard of the mastership that "     \
    "node \"node2\" announces; try again"
#define LATER_THERE                                                                                \
    "resource_not_available: another candidate follows a later one than that of the mastership "   \
    "that node \"node2\" announces; try again"

static void test_hearsay(void)
{
    static const struct hearsay all[] = {
        {.silent = true, .said = ""},
        {.epoch = 5, .node = NODE_B, .said = ""}, /* promised there */
        {.epoch = 5, .node = NODE_B, .begun = true, .said = ""},
        {.epoch = 9, .node = NODE_M, .begun = true, .said = LATER_THERE},
        /* An attempt of later on is no mastership; who is master decides. */
        {.epoch = 9, .node = NODE_M, .role = "{\"seat\":\"master\"}", .said = NOBODY_HEARD},
        {.epoch = 9, .node = NODE_M, .role = "{\"seat\":\"none\",\"contact\":false}", .said = ""},
        {.epoch = 1, .node = NODE_M, .begun = true, .said = ""}, /* its wconfd is silent */
        {.epoch = 1, .node = NODE_M, .role = "{\"seat\":\"master\"}", .said = NOBODY_HEARD},
        {.epoch = 1,
         .node = NODE_M,
         .role = "{\"seat\":\"follows\",\"master_node\":\"" NODE_M "\",\"contact_ms\":900}",
         .said = NOBODY_HEARD},
        /* It follows nobody any more, as after a person's word of a master that cannot sign. */
        {.epoch = 1,
         .node = NODE_M,
         .role = "{\"seat\":\"follows\",\"master_node\":\"" NODE_M "\",\"contact_ms\":9000}",
         .said = ""},
        /* In etcd only wconfd sees who is master. */
        {.epoch = 1,
         .node = NODE_M,
         .role = "{\"seat\":\"follows\",\"master_node\":\"" NODE_B "\",\"engine\":\"etcd\"}",
         .said = ""},
        {.epoch = 1,
         .node = NODE_M,
         .role = "{\"seat\":\"follows\",\"master_node\":\"" NODE_M "\",\"engine\":\"etcd\"}",
         .said = NOBODY_HEARD},
    };
    for (guint i = 0; i < G_N_ELEMENTS(all); i++) {
        announce_all(NODE_M);
        fake_script(nw->world, NODE_M, ROLE_NODED, "promise_epoch", known_there, (void *)&all[i]);
        fake_script(nw->world, NODE_M, ROLE_WCONFD, "wait_role", role_there, (void *)&all[i]);
        g_autofree char *said = announce_as(NODE_B, (struct stamp){1, 5}, 10, NULL);
        g_test_message("%u", i);
        g_assert_cmpstr(said, ==, all[i].said);
        g_assert_cmpstr(node_core_master(nw->a.core), ==, *said ? NODE_M : NODE_B);
        tear_down();
        set_up();
    }
}

/* The signature that a question of node B's is answered with: of the mastership that is told, or
 * "". Epoch 0: of the highest. */
static char *shown(guint64 epoch, guint64 since)
{
    g_autoptr(GError) error = NULL;
    json_autoptr answer =
        fake_call(fake_process(nw->world, NODE_B, ROLE_WCONFD), NODE_A, ROLE_NODED, "promise_epoch",
                  json_make("{s:i,s:I,s:I,s:s}", "history", 1, "epoch", (json_int_t)epoch, "since",
                            (json_int_t)since, "node", NODE_B),
                  &error);
    g_assert_no_error(error);
    g_assert_false(json_is_true(json_object_get(answer, "granted")));
    const json_t *signature = json_object_get(answer, "signature");
    return g_strdup(signature ? json_string_value(signature) : "");
}

static char *signed_by(const char *maker, guint64 epoch, bool begun)
{
    char signature[LIMIT_VOUCHER_CHARS + 1];
    struct env *wconfd = fake_process(nw->world, maker, ROLE_WCONFD);
    wconfd->authority = fake_authority_of(true);
    voucher_sign(wconfd, CLUSTER, (struct stamp){1, epoch}, begun, signature);
    return g_strdup(signature);
}

static void assert_shown(guint64 epoch, guint64 since, const char *expected)
{
    g_autofree char *said = shown(epoch, since);
    g_assert_cmpstr(said, ==, expected);
}

/* Who is refused is shown the signature of the mastership that he is told of: what is announced, or
 * what was promised; it outlives the daemon. */
static void test_shows(void)
{
    g_autofree char *second = signed_by(NODE_M, 2, true);
    g_autofree char *wish = signed_by(NODE_M, 3, false), *begun = signed_by(NODE_M, 3, true);
    g_autoptr(GError) error = NULL;
    announce_all(NODE_M);
    assert_shown(0, 0, "");
    assert_text(announce_as(NODE_M, (struct stamp){1, 2}, 10, NODE_M), "");
    assert_shown(0, 0, second);
    assert_shown(1, 1, second);
    for (guint i = 0; i < 2; i++) {
        json_autoptr answer = fake_call(
            fake_process(nw->world, NODE_M, ROLE_WCONFD), NODE_A, ROLE_NODED, "promise_epoch",
            json_make("{s:i,s:i,s:i,s:s,s:b,s:s}", "history", 1, "epoch", 3, "since", 2, "node",
                      NODE_M, "begins", (int)i, "signature", i ? begun : wish),
            &error);
        g_assert_no_error(error);
        nw_daemon_kill(nw, &nw->a);
        nw_daemon_start(nw, &nw->a);
        assert_shown(0, 0, i ? begun : wish);
        /* A mastership counts for more than a promise on top of it. */
        assert_shown(2, 1, i ? begun : second);
    }
}

/* The rule, in words of its own: what a role may ask of which node. */
static bool may(const char *node, const char *role, const struct method *method)
{
    bool candidate = !strcmp(node, NODE_B) || !strcmp(node, NODE_M);
    if (one_of(method->name, "follow ca_info promise_epoch wait_role announce"))
        return true;
    if (!strcmp(method->name, "node_report"))
        return candidate;
    if (one_of(role, "luxid job watcher"))
        return !strcmp(node, NODE_M);
    if (one_of(role, "wconfd scheduler"))
        return candidate;
    return one_of(role, "noded apid");
}

/* Every row that there is, of every role that it has, from every kind of node. */
static void test_places(void)
{
    static const char *const nodes[] = {NODE_B, NODE_M, ORDINARY};
    static const char *const roles[] = {ROLE_LUXID,     ROLE_JOB, ROLE_WATCHER, ROLE_WCONFD,
                                        ROLE_NODED,     ROLE_CLI, ROLE_JOINING, ROLE_RCONFD,
                                        ROLE_SCHEDULER, ROLE_APID};
    size_t count = 0;
    guint admitted = 0, refused = 0;
    const struct method *table = method_table(&count);
    announce_all(NODE_M);
    for (guint i = 0; i < count * G_N_ELEMENTS(nodes) * G_N_ELEMENTS(roles); i++) {
        const struct method *method = &table[i % count];
        const char *role = roles[i / count % G_N_ELEMENTS(roles)];
        const char *node = nodes[i / count / G_N_ELEMENTS(roles)];
        g_autoptr(GError) error = NULL;
        if (!method_allows(method, role))
            continue;
        bool admitted_now = admits(node, role, method, nw->stamp, &error);
        g_test_message("%s of %s calls %s/%s: %s", role, node, method->server, method->name,
                       error ? error->message : "admitted");
        g_assert_true(admitted_now == may(node, role, method));
        g_assert_true(admitted_now || fettle_error_is(error, PERMISSION));
        *(admitted_now ? &admitted : &refused) += 1;
    }
    g_assert_cmpuint(admitted, >, 100);
    g_assert_cmpuint(refused, >, 100);
}

static void assert_not_admitted(const char *from, const char *role, const char *server,
                                const char *name, struct stamp stamp, const char *expected)
{
    g_autoptr(GError) error = NULL;
    g_assert_false(admits(from, role, method_find(server, name), stamp, &error));
    g_autofree char *said = g_strdup_printf("%s: %s", fettle_error_name(error), error->message);
    g_assert_cmpstr(said, ==, expected);
}

static void test_place_words(void)
{
    struct stamp later = {1, 2};
    announce_all(NODE_M);
    assert_not_admitted(ORDINARY, ROLE_JOB, ROLE_NODED, "disks_remove", nw->stamp,
                        "permission_denied: node \"node4\" is not the master; only the master's "
                        "luxid, jobs and watcher may call disks_remove");
    assert_not_admitted(ORDINARY, ROLE_WCONFD, ROLE_WCONFD, "authority_key", nw->stamp,
                        "permission_denied: node \"node4\" is no master candidate; only candidates "
                        "may call authority_key");
    assert_not_admitted(NODE_M, ROLE_CLI, ROLE_WCONFD, "write_config", nw->stamp,
                        "permission_denied: node \"node3\" may not call write_config: it is for "
                        "this node's own commands");
    assert_not_admitted(NODE_B, ROLE_JOINING, ROLE_WCONFD, "join", nw->stamp,
                        "permission_denied: node \"node2\" may not call join: it is for hosts that "
                        "are no node yet");
    /* What this node has not heard yet is no refusal for good. */
    assert_not_admitted(
        ORDINARY, ROLE_LUXID, ROLE_NODED, "node_report", later,
        "resource_not_available: history 1 epoch 2 was not announced to this node yet; try "
        "again");
    assert_not_admitted(
        NODE_B, ROLE_JOB, ROLE_NODED, "disks_remove", later,
        "resource_not_available: history 1 epoch 2 was not announced to this node yet; try "
        "again");
}

static void run(const void *test)
{
    void (*const *fn)(void) = test;
    set_up();
    (*fn)();
    tear_down();
}

int main(int argc, char **argv)
{
    static const struct {
        const char *title;
        void (*test)(void);
    } tests[] = {
        {"/fence/promise-granted#SAF-05", test_granted},
        {"/fence/promise-refuses#SAF-05", test_refuses},
        {"/fence/promise-begun#SAF-05,SAF-07", test_begun},
        {"/fence/promise-bad-input#SAF-02,SAF-05", test_bad_input},
        {"/fence/promise-survives#SAF-05", test_survives},
        {"/fence/promise-damaged#SAF-05", test_damaged},
        {"/fence/free-methods#SAF-05", test_free},
        {"/fence/places#SAF-100", test_places},
        {"/fence/place-words#SAF-100", test_place_words},
        {"/fence/lying-member#SAF-102,SAF-103", test_lying_member},
        {"/fence/signed#SAF-102", test_signed},
        {"/fence/hearsay#SAF-102", test_hearsay},
        {"/fence/shows-the-signature#SAF-102", test_shows},
    };
    g_test_init(&argc, &argv, NULL);
    for (guint i = 0; i < G_N_ELEMENTS(tests); i++)
        g_test_add_data_func(tests[i].title, &tests[i].test, run);
    return g_test_run();
}
