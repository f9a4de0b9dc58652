/* Copies of a volume that a guest writes to, by members of several lives (SAF-59): what the guest's
 * node says of them, and what is left. */
#include "unit/core/world/volume_world.h"

#include <string.h>

#define ITS_NAME VOLUME1 ".7"
#define GIB(n) ((guint64)(n) << 30)

/* The node of a guest that has VOLUME1. */
struct copying_node {
    const char *state; /* of the copy, once it is asked for; NULL: the guest does not run */
    const char *why;
    guint silent; /* so many looks get no answer, each after a minute */
    guint64 claim, closed;
    bool here;
};

static json_t *answer_point(struct copying_node *node, const char *state)
{
    return json_make("{s:b,s:s,s:s}", "here", node->state != NULL, "state", state, "why",
                     node->why ? node->why : "");
}

static json_t *answer_open(const struct rpc_request *request, const char *to_node, void *data,
                           GError **error)
{
    struct copying_node *node = data;
    const char *name = json_string_value(json_object_get(request->args, "name"));
    node->claim = (guint64)json_integer_value(json_object_get(request->args, "claim"));
    g_assert_true(fake_volumes_has(volumes, name));
    g_assert_false(fake_volumes_whole(volumes, name));
    return answer_point(node, node->state);
}

static json_t *answer_look(const struct rpc_request *request, const char *to_node, void *data,
                           GError **error)
{
    struct copying_node *node = data;
    if (node->claim && node->silent > 0) {
        node->silent--;
        fettle_set_error(error, TIMEOUT, "silent");
        return NULL;
    }
    return answer_point(node, node->claim ? node->state : "none");
}

static json_t *answer_close(const struct rpc_request *request, const char *to_node, void *data,
                            GError **error)
{
    struct copying_node *node = data;
    node->closed = (guint64)json_integer_value(json_object_get(request->args, "claim"));
    return json_object();
}

static struct volumed *with_copying(struct copying_node *node, bool runs)
{
    static const struct {
        const char *method;
        fake_answer answer;
    } script[] = {
        {"point_open", answer_open}, {"point_look", answer_look}, {"point_close", answer_close}};
    json_t *attached = with(object_volume1(), "attachments",
                            json_make("[{s:s,s:s,s:i,s:s}]", "uuid", VOLUME2, "instance", WEB1,
                                      "slot", 30, "state", "attached"));
    json_t *web1 = object_web1();
    if (!runs)
        web1 = with(with(web1, "holder", json_string("")), "admin_state", json_string("down"));
    volumes_set_up(
        changes_of(put("volume", VOLUME1, 1, attached), put("instance", WEB1, 1, web1), NULL));
    fake_volumes_mark(volumes, DIR1, CLUSTER);
    fake_volumes_put(volumes, DIR1, ITS_NAME, GIB(2), true);
    fake_volumes_lock(volumes, ITS_NAME, node->state != NULL);
    static struct copying_node nobody;
    nobody = (struct copying_node){0};
    for (guint i = 0; i < G_N_ELEMENTS(script); i++) {
        fake_script(world.world, NODE1, ROLE_NODED, script[i].method, script[i].answer, &nobody);
        fake_script(world.world, NODE2, ROLE_NODED, script[i].method, script[i].answer, node);
    }
    return volumed_start(1);
}

static const char *ask_copy(bool backup)
{
    return volume_ask_for(
        json_make("{s:s,s:s,s:s}", "resource_type", backup ? "Backup" : "Snapshot", "operation",
                  backup ? "back-up-volume" : "create-snapshot", "source", VOLUME1));
}

static const char *why_of(const char *uuid, bool backup)
{
    const struct config *config = wconf_config(world.wconf);
    return backup
               ? ((const struct backup *)config_get(config, "backup", uuid, NULL))->status_why
               : ((const struct snapshot *)config_get(config, "snapshot", uuid, NULL))->status_why;
}

/* By its node while the guest runs, as any other while it does not; what fails leaves nothing, and
 * its node is told in each case. A backup is made of a copy that goes afterwards. */
static void test_copy_attached(void)
{
    static const struct {
        struct copying_node node;
        const char *why; /* NULL: it is well */
        bool copied;     /* by the member itself */
        bool stopped;
    } cases[] = {
        {{.state = "copied"}, NULL, false},
        {{.state = NULL}, NULL, true, .stopped = true},
        {{.state = NULL}, "volume data1 was written meanwhile", true}, /* it is being started */
        {{.state = "copied", .silent = 1}, NULL, false},
        {{.state = "failed", .why = "No space left on device"},
         "the copy under its guest ended: No space left on device",
         false},
        {{.state = "none"}, "its guest ended, moved or gave it up while it was copied", false},
        {{.state = "copying"}, "has stood still for 120 s", false},
        {{.state = "copying", .silent = 9999}, "has stood still for 120 s: ", false},
    };
    for (guint i = 0; i < 2 * G_N_ELEMENTS(cases); i++) {
        bool backup = i % 2;
        struct copying_node node = cases[i / 2].node;
        with_copying(&node, !cases[i / 2].stopped);
        const char *uuid = ask_copy(backup);
        volumes_work();
        assert_says(volume_said(VOLUME1), "available 2 GiB");
        g_assert_cmpuint(fake_volumes_count_calls(volumes, "copy"), ==,
                         cases[i / 2].copied && !backup);
        g_assert_cmpuint(node.closed, ==, node.claim);
        g_assert_true((node.claim > 0) == (node.state != NULL));
        if (cases[i / 2].why)
            g_assert_nonnull(strstr(why_of(uuid, backup), cases[i / 2].why));
        else
            g_assert_cmpstr(why_of(uuid, backup), ==, "");
        fake_volumes_lock(volumes, ITS_NAME, false);
        volumes_assert_clean();
        g_assert_cmpuint(fake_volumes_count(volumes), ==, cases[i / 2].why ? 1 : 2);
        volumes_tear_down();
    }
}

/* Who cleans for a process that has died in the middle ends the copy of any claim before. */
static void test_copy_attached_dies(void)
{
    for (guint backup = 0; backup < 2; backup++) {
        struct copying_node node = {.state = "copying"};
        struct volumed *process = with_copying(&node, true);
        const char *uuid = ask_copy(backup);
        for (guint i = 0; i < 100 && !node.claim; i++)
            fake_advance(world.world, 100);
        g_assert_cmpuint(node.claim, >, 0);
        volumed_kill(process);
        volumed_start(1);
        volumes_work();
        g_assert_cmpuint(node.closed, >, node.claim);
        g_assert_nonnull(strstr(why_of(uuid, backup), "has ended"));
        assert_says(volume_said(VOLUME1), "available 2 GiB");
        fake_volumes_lock(volumes, ITS_NAME, false);
        volumes_assert_clean();
        g_assert_cmpuint(fake_volumes_count(volumes), ==, 1);
        volumes_tear_down();
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/volume-point/copied-by-its-node#SAF-59", test_copy_attached);
    g_test_add_func("/volume-point/its-member-dies#SAF-59", test_copy_attached_dies);
    return g_test_run();
}
