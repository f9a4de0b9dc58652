/* The back ends that core's tests trust keep what real ones do. */
#include "helper/fake_volumes.h"
#include "unit/backend/volume_suite.h"

static struct fake_world *world;
static struct fake_volumes *volumes;
static struct env *env;
static struct volume_suite suite;

static struct backend *backend(const char *name, const char *uuid)
{
    struct backend *made = backend_new();
    g_free(made->name);
    g_free(made->uuid);
    made->name = g_strdup(name);
    made->uuid = g_strdup(uuid);
    return made;
}

static void set_up(void)
{
    world = fake_world_new();
    env = fake_process(world, "node1", ROLE_VOLUMED);
    volumes = fake_volumes_new();
    suite.driver = fake_volumes_at(volumes, env);
    suite.backups = suite.second;
}

static void tear_down(void)
{
    fake_volumes_free(volumes);
    fake_world_free(world);
}

static void run(void (*fn)(void *data), void *data)
{
    fake_run(env, fn, data);
}

static void put(const struct backend *at, const char *name)
{
    fake_volumes_put(volumes, at->uuid, name, 1, false);
}

static void hang(const struct backend *at, bool hangs)
{
    fake_volumes_hang(volumes, at->uuid, hangs);
}

static void lock(const struct backend *at, const char *name, bool locked)
{
    fake_volumes_lock(volumes, name, locked);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    suite = (struct volume_suite){.cluster = cluster_new(),
                                  .first = backend("dir1", "00000000-0000-4000-8000-0000000000d1"),
                                  .second = backend("dir2", "00000000-0000-4000-8000-0000000000d2"),
                                  .set_up = set_up,
                                  .tear_down = tear_down,
                                  .run = run,
                                  .put = put,
                                  .hang = hang,
                                  .lock = lock};
    g_free(suite.cluster->uuid);
    suite.cluster->uuid = g_strdup("00000000-0000-4000-8000-0000000000c1");
    volume_suite_add("/volume-fake", &suite);
    int code = g_test_run();
    cluster_free(suite.cluster);
    backend_free(suite.first);
    backend_free(suite.second);
    return code;
}
