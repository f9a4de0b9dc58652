/* Objects of one version later and of one version back, at wconfd and at those who follow it. */
#include <string.h>

#include "core/config/follow.h"
#include "unit/core/world/wconf_world.h"

#define NIC1 "88888888-0000-4000-8000-000000000001"

/* db1 as a later version writes it: a member, a card and a member of the card that nobody knows. */
static json_t *later_db1(void)
{
    return with(with(object_db1(), "colour", json_string("blue")), "nics",
                json_make("[{s:s,s:s,s:s,s:{s:i}}]", "uuid", NIC1, "mac", "aa:00:00:00:00:01",
                          "link", "br0", "shaping", "mbit", 100));
}

static void start_with(struct change *change)
{
    GPtrArray *objects = initial_changes();
    for (guint i = 0; i < objects->len; i++) {
        const struct change *old = objects->pdata[i];
        if (!strcmp(old->kind, change->kind) && !strcmp(old->key, change->key))
            g_ptr_array_remove_index(objects, i--);
    }
    g_ptr_array_add(objects, change);
    config_world_init(&world, objects);
    config_world_start(&world);
}

/* The object as wconfd tells it. */
static json_t *told(const char *method, const char *key)
{
    g_autofree char *text =
        ask_wconf(&world, world.luxid, method,
                  !strcmp(method, "snapshot") ? json_object() : json_make("{s:i}", "serial", 0));
    json_autoptr answer = json_loads(text, 0, NULL);
    size_t index;
    json_t *change, *found = NULL;
    g_assert_nonnull(answer);
    json_array_foreach(json_object_get(answer, "changes"), index, change) {
        if (!strcmp(json_string_value(json_object_get(change, "key")), key))
            found = json_object_get(change, "object");
    }
    return json_incref(found);
}

static void assert_kept(const json_t *object)
{
    const json_t *nic = json_array_get(json_object_get(object, "nics"), 0);
    g_assert_cmpstr(json_string_value(json_object_get(object, "colour")), ==, "blue");
    g_assert_cmpint(json_integer_value(json_object_get(json_object_get(nic, "shaping"), "mbit")),
                    ==, 100);
}

/* What a job does: a typed copy of the record, one member changed, written back. */
static struct change *edited(guint64 version, enum task_state mark, bool forget)
{
    json_autoptr now = told("snapshot", DB1);
    record_autoptr(instance) read = instance_parse(now, RECORD_KEEP, NULL);
    record_autoptr(instance) copy = instance_copy(read);
    copy->task_state = mark;
    copy->task_owner = 17;
    json_t *json = instance_to_json(copy);
    if (forget)
        json_object_del(json, "colour");
    return put("instance", DB1, version, json);
}

static void test_unknown_fields_stay(void)
{
    start_with(put("instance", DB1, 1, later_db1()));
    assert_says(job_locks(&world, 17, "x instance/db1", false), GRANTED);
    assert_says(
        job_change(&world, 17, "mark_instance", changes_of(edited(1, TASK_STARTING, false), NULL)),
        "{\"serial\":2}");
    json_autoptr delta = told("wait_changes", DB1);
    json_autoptr piece = told("snapshot", DB1);
    assert_kept(delta);
    assert_kept(piece);
    g_assert_cmpstr(json_string_value(json_object_get(piece, "task_state")), ==, "starting");
    /* A narrow change may not lose them either. */
    assert_says(
        job_change(&world, 17, "mark_instance", changes_of(edited(2, TASK_NONE, true), NULL)),
        "permission_denied: instance db1 (" DB1
        "): mark_instance may not change fields that this version does not know");
    /* They are stored: a restart brings them back. */
    config_world_restart(&world);
    config_world_start(&world);
    json_autoptr again = told("snapshot", DB1);
    assert_kept(again);
    world_tear_down();
}

/* What an earlier version wrote lacks fields: they have their defaults. */
static void test_missing_fields(void)
{
    start_with(put("instance", DB1, 1, object_db1()));
    const struct cluster *cluster = config_cluster(wconf_config(world.wconf));
    const struct instance *db1 = config_get(wconf_config(world.wconf), "instance", DB1, NULL);
    g_assert_cmpint(cluster->lock_coverage, ==, COVERAGE_MANDATORY);
    g_assert_cmpuint(cluster->commit_copies, ==, 1);
    g_assert_cmpuint(cluster->candidate_pool_size, ==, 3);
    const struct node *node1 = config_get(wconf_config(world.wconf), "node", NODE1, NULL);
    g_assert_true(node1->master_capable);
    g_assert_cmpuint(db1->vcpus, ==, 1);
    g_assert_cmpuint(db1->nics->len, ==, 0);
    world_tear_down();
}

/* --- followers of a newer master --- */

struct follower {
    struct follow *follow;
    GError *error;
};

static json_t *newer_changes(const struct rpc_request *request, const char *to_node, void *data,
                             GError **error)
{
    bool first = json_integer_value(json_object_get(request->args, "serial")) == 0;
    json_t *tag = json_make("{s:s,s:s,s:s}", "kind", "cluster", "object", CLUSTER, "tag", "x");
    json_t *changes =
        first ? json_make(
                    "[{s:s,s:s,s:s,s:i,s:{s:s}},{s:s,s:s,s:s,s:i,s:o}]", "op", "put", "kind",
                    "lunar", "key", "v1", "version", 1, "object", "size", "1g", "op", "put", "kind",
                    "nodegroup", "key", GROUP, "version", 1, "object",
                    json_make("{s:s,s:s,s:s}", "uuid", GROUP, "name", "default", "colour", "blue"))
              : json_make("[{s:s,s:s,s:s,s:i},{s:s,s:s,s:s,s:i,s:o}]", "op", "delete", "kind",
                          "lunar", "key", "v1", "version", 2, "op", "put", "kind", "tag", "key",
                          "cluster/" CLUSTER "/x", "version", 2, "object", tag);
    if (first)
        json_decref(tag);
    return json_make("{s:i,s:i,s:i,s:b,s:o,s:s}", "history", 5, "epoch", 9, "serial", first ? 1 : 2,
                     "snapshot", (int)first, "changes", changes, "mood", "fine");
}

static void refresh_task(void *data)
{
    struct follower *follower = data;
    follow_refresh(follower->follow, &follower->error);
}

/* Kinds of objects that it does not know are passed over, in the first copy and in changes. */
static void test_unknown_kinds(void)
{
    struct follower follower = {NULL};
    world_set_up();
    fake_script(world.world, NULL, ROLE_WCONFD, "wait_changes", newer_changes, NULL);
    follower.follow = follow_new(world.luxid, NULL, NULL);
    for (guint64 serial = 1; serial <= 2; serial++) {
        fake_run(world.luxid, refresh_task, &follower);
        g_assert_no_error(follower.error);
        g_assert_cmpuint(config_serial(follow_config(follower.follow)), ==, serial);
    }
    const struct config *copy = follow_config(follower.follow);
    json_autoptr group = config_object_json(copy, "nodegroup", GROUP);
    g_assert_cmpstr(json_string_value(json_object_get(group, "colour")), ==, "blue");
    g_assert_cmpuint(config_count(copy, "tag"), ==, 1);
    g_assert_cmpuint(config_total(copy), ==, 2);
    fake_kill(world.luxid);
    follow_free(follower.follow);
    world_tear_down();
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/versions/unknown-fields#FUT-12", test_unknown_fields_stay);
    g_test_add_func("/versions/missing-fields#FUT-12", test_missing_fields);
    g_test_add_func("/versions/unknown-kinds#FUT-12", test_unknown_kinds);
    return g_test_run();
}
