/* What tests of the copies of other candidates share; see copies_world.h. */
#include "unit/core/world/copies_world.h"

struct env *node2, *node3, *person;

static json_t *promise(const struct rpc_request *request, const char *to_node, void *data,
                       GError **error)
{
    return json_make("{s:b}", "granted", 1);
}

void copies_set_up(void)
{
    static const char *const nodes[] = {NODE1, NODE2, NODE3};
    GPtrArray *objects = initial_changes();
    for (guint i = 0; i < 3; i++)
        g_ptr_array_add(objects, put("node", nodes[i], 1,
                                     with(object_node(nodes[i]), "master_candidate", json_true())));
    config_world_init(&world, objects);
    fake_script(world.world, NULL, ROLE_NODED, "promise_epoch", promise, NULL);
    node2 = fake_process(world.world, NODE2, ROLE_WCONFD);
    node3 = fake_process(world.world, NODE3, ROLE_WCONFD);
    person = fake_process(world.world, NODE1, ROLE_CLI);
    config_world_start(&world);
}

void ask_start_of(struct env *from, guint64 epoch, guint64 history, guint64 serial,
                  const char *digest, guint wait_ms, struct fake_reply *reply)
{
    fake_call_start_stamped(from, 0, (struct stamp){history, epoch}, NODE1, ROLE_WCONFD, "follow",
                            json_make("{s:I,s:I,s:s,s:i}", "history", (json_int_t)history, "serial",
                                      (json_int_t)serial, "digest", digest, "wait_ms", wait_ms),
                            reply);
    fake_settle(world.world);
}

void ask_start(struct env *from, guint64 history, guint64 serial, const char *digest, guint wait_ms,
               struct fake_reply *reply)
{
    ask_start_of(from, world.epoch, history, serial, digest, wait_ms, reply);
}

char *digest(void)
{
    return g_strdup_printf("%" G_GINT64_MODIFIER "x", config_digest(wconf_config(world.wconf)));
}

void commit_start(const char *id, const char *tag, struct fake_reply *reply)
{
    luxid_commit_start(id, changes_of(put_tag(tag), NULL), reply);
}
