/* The daemons of the nodes on record: what is put there, when, and how often at most. */
#include "unit/core/world/watcher_world.h"

#include <string.h>

#define TEST_JOB 17 /* holds the locks of all (watcher_world.h) */

static void tell(struct watcher_world *w, const char *node, const char *name, const char *state,
                 const char *version, guint since)
{
    if (w->services == NULL)
        w->services = json_object();
    if (json_object_get(w->services, node) == NULL)
        json_object_set_new(w->services, node, json_array());
    json_array_append_new(json_object_get(w->services, node),
                          json_make("{ss ss ss si si}", "name", name, "state", state, "version",
                                    version, "since", (int)since, "pid", 77));
}

/* It has begun anew. */
static void tell_again(struct watcher_world *w, const char *node, const char *name,
                       const char *version, guint since)
{
    size_t i;
    json_t *line;
    json_array_foreach(json_object_get(w->services, node), i, line) {
        if (!g_str_equal(json_string_value(json_object_get(line, "name")), name))
            continue;
        json_object_set_new(line, "since", json_integer((json_int_t)since));
        json_object_set_new(line, "version", json_string(version));
    }
}

/* "1.0 since 5"; "nothing" if it is not on record. Free with g_free(). */
static char *known(struct watcher_world *w, const char *node, const char *name)
{
    g_autofree char *key = config_service_key(node, name);
    look(w);
    const struct service *service = config_get(w->view, "service", key, NULL);
    if (service == NULL)
        return g_strdup("nothing");
    g_assert_cmpstr(service->node, ==, node);
    g_assert_cmpstr(service->name, ==, name);
    return g_strdup_printf("%s since %" G_GUINT64_FORMAT, service->version, service->since);
}

static guint64 serial(struct watcher_world *w)
{
    g_autofree char *text = ask_wconf(&w->base, w->base.luxid, "cluster_status", json_object());
    json_autoptr json = json_loads(text, 0, NULL);
    return (guint64)json_integer_value(json_object_get(json, "serial"));
}

static void test_registered(void)
{
    struct watcher_world *w = watcher_world_new();
    passes(w, 3);
    guint64 before = serial(w);
    tell(w, NODE1, "luxid", "running", "1.0", 5);
    tell(w, NODE1, "noded", "running", "1.0", 4);
    tell(w, NODE2, "noded", "running", "1.1", 6);
    tell(w, NODE2, "noded", "running", "1.2", 7); /* the first word counts */
    tell(w, NODE2, "luxid", "stopped", "1.1", 9);
    tell(w, NODE2, "watcher", "restarting", "1.1", 9);
    tell(w, NODE2, "etcd", "running", "", 9);
    passes(w, 3);
    assert_says(known(w, NODE1, "luxid"), "1.0 since 5");
    assert_says(known(w, NODE1, "noded"), "1.0 since 4");
    assert_says(known(w, NODE2, "noded"), "1.1 since 6");
    assert_says(known(w, NODE2, "luxid"), "nothing");
    assert_says(known(w, NODE2, "watcher"), "nothing");
    assert_says(known(w, NODE2, "etcd"), "nothing");
    g_assert_cmpuint(serial(w), ==, before + 1); /* all of them at once … */
    passes(w, 3 * LIMIT_SERVICE_RECORD_S);       /* … and once */
    watcher_world_kill(w);
    watcher_world_start(w);
    passes(w, 3);
    g_assert_cmpuint(serial(w), ==, before + 1);
    /* What one does not say any more stays. */
    json_object_del(w->services, NODE2);
    w->silent = NODE1;
    passes(w, 3);
    assert_says(known(w, NODE1, "luxid"), "1.0 since 5");
    assert_says(known(w, NODE2, "noded"), "1.1 since 6");
    watcher_world_free(w);
}

/* One that falls each second costs a commit a minute, and another node's does not wait for it. */
static void test_flapping(void)
{
    struct watcher_world *w = watcher_world_new();
    tell(w, NODE1, "luxid", "running", "1.0", 5);
    tell(w, NODE2, "noded", "running", "1.0", 5);
    passes(w, 3);
    guint64 before = serial(w);
    tell_again(w, NODE1, "luxid", "1.0", 100);
    passes(w, 3);
    assert_says(known(w, NODE1, "luxid"), "1.0 since 100"); /* the first time at once */
    g_assert_cmpuint(serial(w), ==, before + 1);
    for (guint i = 1; i < 5 * LIMIT_SERVICE_RECORD_S; i++) {
        tell_again(w, NODE1, "luxid", "1.0", 100 + i);
        passes(w, 1);
    }
    guint64 commits = serial(w) - before;
    g_assert_cmpuint(commits, >=, 4);
    g_assert_cmpuint(commits, <=, 8); /* passes of the test last longer than a second */
    tell_again(w, NODE2, "noded", "1.1", 7);
    passes(w, 3);
    assert_says(known(w, NODE2, "noded"), "1.1 since 7");
    /* New ones are put on record at once; and at last all is as it is. */
    tell(w, NODE1, "wconfd", "running", "1.0", 8);
    passes(w, 3);
    assert_says(known(w, NODE1, "wconfd"), "1.0 since 8");
    tell_again(w, NODE1, "luxid", "1.1", 9);
    passes(w, LIMIT_SERVICE_RECORD_S + 3);
    assert_says(known(w, NODE1, "luxid"), "1.1 since 9");
    watcher_world_free(w);
}

/* An upgrade: the store gets no object that a candidate, as the next master, could not load. */
static void test_older_candidate(void)
{
    struct watcher_world *w = watcher_world_new();
    change_object(w, "node", NODE2, json_make("{sb}", "master_candidate", 1));
    tell(w, NODE1, "noded", "running", FETTLE_VERSION, 5);
    tell(w, NODE2, "wconfd", "running", "0.0.1", 5);
    tell(w, NODE3, "wconfd", "running", "0.0.1", 5); /* no candidate */
    passes(w, 3);
    assert_says(known(w, NODE1, "noded"), "nothing");
    tell_again(w, NODE2, "wconfd", FETTLE_VERSION, 6);
    passes(w, 3);
    assert_says(known(w, NODE1, "noded"), FETTLE_VERSION " since 5");
    assert_says(known(w, NODE2, "wconfd"), FETTLE_VERSION " since 6");
    /* It has some now: nothing is lost by more. */
    tell_again(w, NODE2, "wconfd", "0.0.1", 7);
    passes(w, 3);
    assert_says(known(w, NODE2, "wconfd"), "0.0.1 since 7");
    watcher_world_free(w);
}

/* The job that removes it knows nothing of them. */
static void test_node_removed(void)
{
    struct watcher_world *w = watcher_world_new();
    add_node4(w);
    tell(w, NODE4, "noded", "running", "1.0", 5);
    tell(w, NODE4, "rconfd", "running", "1.0", 5);
    tell(w, NODE2, "noded", "running", "1.0", 5);
    passes(w, 3);
    assert_says(known(w, NODE4, "rconfd"), "1.0 since 5");
    g_autofree char *said = job_change(&w->base, TEST_JOB, "remove_node",
                                       changes_of(config_delete(w->view, "node", NODE4), NULL));
    g_assert_nonnull(strstr(said, "serial"));
    assert_says(known(w, NODE4, "noded"), "nothing");
    assert_says(known(w, NODE4, "rconfd"), "nothing");
    assert_says(known(w, NODE2, "noded"), "1.0 since 5");
    watcher_world_free(w);
}

/* The configuration daemon with a refusal of its own; the world's wconf does the rest. */
struct refusing {
    struct watcher_world *world;
    enum fettle_error code; /* of the next `left` commits of services */
    guint left, refused;
};

static void serve_refusing(struct rpc_request *request, void *data)
{
    struct refusing *refusing = data;
    if (refusing->left == 0 || !g_str_equal(request->name, "register_services")) {
        wconf_handle(refusing->world->base.wconf, request);
        return;
    }
    refusing->left--;
    refusing->refused++;
    rpc_fail_new(request, refusing->code, "the test refuses this");
}

/* Somebody was first, or a node has just gone: what is new is stored a pass later, and is not kept
 * back for a minute. */
static void test_overtaken(void)
{
    static const enum fettle_error codes[] = {FETTLE_ERROR_VERSION_CONFLICT,
                                              FETTLE_ERROR_UNKNOWN_ENTITY};
    for (guint i = 0; i < G_N_ELEMENTS(codes); i++) {
        struct watcher_world *w = watcher_world_new();
        struct refusing refusing = {.world = w, .code = codes[i]};
        fake_serve(w->base.wconfd, serve_refusing, &refusing);
        tell(w, NODE1, "luxid", "running", "1.0", 5);
        passes(w, 3);
        refusing.left = 1;
        tell_again(w, NODE1, "luxid", "1.1", 9);
        passes(w, 5);
        g_assert_cmpuint(refusing.refused, ==, 1);
        assert_says(known(w, NODE1, "luxid"), "1.1 since 9");
        watcher_world_free(w);
    }
}

/* A refusal that the next pass would meet again is asked for once a minute, and in the end heard
 * no more. */
static void test_refused(void)
{
    struct watcher_world *w = watcher_world_new();
    struct refusing refusing = {.world = w, .code = FETTLE_ERROR_PERMISSION, .left = 2};
    fake_serve(w->base.wconfd, serve_refusing, &refusing);
    tell(w, NODE1, "luxid", "running", "1.0", 5);
    passes(w, LIMIT_SERVICE_RECORD_S / 2);
    g_assert_cmpuint(refusing.refused, ==, 1);
    passes(w, LIMIT_SERVICE_RECORD_S);
    g_assert_cmpuint(refusing.refused, ==, 2);
    assert_says(known(w, NODE1, "luxid"), "nothing");
    passes(w, LIMIT_SERVICE_RECORD_S);
    assert_says(known(w, NODE1, "luxid"), "1.0 since 5");
    watcher_world_free(w);
}

/* Nobody but the watcher, and nothing but services. */
static void test_change(void)
{
    struct watcher_world *w = watcher_world_new();
    tell(w, NODE2, "noded", "running", "1.0", 5);
    passes(w, 3);
    look(w);
    g_autofree char *key = config_service_key(NODE2, "noded");
    json_t *object = config_object_json(w->view, "service", key);
    assert_says(job_change(&w->base, TEST_JOB, "register_services",
                           changes_of(config_put(w->view, "service", key, object), NULL)),
                "permission_denied: role job may not call wconfd.register_services");
    watcher_world_free(w);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/watcher/services/registered#FUT-12", test_registered);
    g_test_add_func("/watcher/services/flapping", test_flapping);
    g_test_add_func("/watcher/services/older-candidate#FUT-12", test_older_candidate);
    g_test_add_func("/watcher/services/node-removed", test_node_removed);
    g_test_add_func("/watcher/services/overtaken", test_overtaken);
    g_test_add_func("/watcher/services/refused", test_refused);
    g_test_add_func("/watcher/services/change#WCF-22", test_change);
    return g_test_run();
}
