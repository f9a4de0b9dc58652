/* See forget.h. What others ask meanwhile is put off. */
#include "daemons/noded/forget.h"

#include <stdio.h>

#include "core/host/announced.h"
#include "core/node/forget.h"
#include "io/loop.h"
#include "io/net/bus.h"
#include "io/output.h"
#include "io/real_env.h"

static struct {
    struct env *env;
    struct announce_args *announced; /* whom this node knows */
    bool alone;
    const char *statement;
    char *done;
    GError *error;
} forgetting;

static void forget_task(void *data)
{
    forgetting.done =
        forget_mastership(forgetting.env, real_env_config(forgetting.env)->cluster_uuid,
                          forgetting.alone, forgetting.statement, &forgetting.error);
    loop_quit(0);
}

static void handle(struct rpc_request *request, void *data)
{
    rpc_fail_new(request, FETTLE_ERROR_TEMPORARY, "the node daemon does not run");
}

static const GPtrArray *members(void *data)
{
    return forgetting.announced ? forgetting.announced->members : NULL;
}

static const char *master(void *data)
{
    return "";
}

static bool admit(const char *from_node, const char *from_role, const struct method *method,
                  struct stamp stamp, GError **error, void *data)
{
    fettle_set_error(error, TEMPORARY, "the node daemon does not run");
    return false;
}

static bool run(GError **error)
{
    const struct bus_options options = {.paths = real_env_paths(forgetting.env),
                                        .config = real_env_config(forgetting.env),
                                        .handle = handle,
                                        .members = members,
                                        .master = master,
                                        .admit = admit};
    struct bus *bus = bus_new(&options, error);
    if (!bus) {
        g_prefix_error(error, "it asks in place of the node daemon, which must not run meanwhile "
                              "(systemctl stop fettle.target): ");
        return false;
    }
    real_env_set_bus(forgetting.env, bus);
    task_spawn(forgetting.env->tasks, forget_task, NULL);
    loop_run();
    bus_free(bus);
    return true;
}

bool noded_forget(const char *root, bool alone, const char *statement, GError **error)
{
    if (!forget_check_statement(statement ? statement : "", error))
        return false;
    loop_init();
    forgetting.alone = alone;
    forgetting.statement = statement ? statement : "";
    forgetting.env = real_env_new(root, ROLE_NODED, NULL, error);
    if (!forgetting.env)
        return false;
    forgetting.announced = announced_read(forgetting.env);
    bool ran = run(error);
    announce_args_free(forgetting.announced);
    real_env_free(forgetting.env);
    if (forgetting.error)
        g_propagate_error(error, forgetting.error);
    else if (ran && !forgetting.done)
        fettle_set_error(error, KILLED, "interrupted; nothing was changed, or run it again");
    if (!forgetting.done)
        return false;
    printf("%s", forgetting.done);
    bool told = output_end(g_strdelimit(g_strchomp(forgetting.done), "\n", ' '), error);
    g_free(forgetting.done);
    return told;
}
