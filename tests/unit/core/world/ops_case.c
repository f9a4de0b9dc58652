/* See ops_case.h. */
#include "unit/core/world/ops_case.h"

#include <string.h>

struct ops_case_data {
    void (*fn)(void);
    void (*prepare)(void);
    struct ops_world **world;
};

static void run_case(const void *data)
{
    const struct ops_case_data *test = data;
    *test->world = ops_world_new();
    if (test->prepare)
        test->prepare();
    test->fn();
    g_clear_pointer(test->world, ops_world_free);
}

void ops_case(const char *path, void (*fn)(void), struct ops_world **world, void (*prepare)(void))
{
    struct ops_case_data *test = g_new(struct ops_case_data, 1);
    *test = (struct ops_case_data){fn, prepare, world};
    g_test_add_data_func_full(path, test, run_case, g_free);
}

void ops_expect_refusal(struct ops_world *world, const char *result, const char *message,
                        const char *code)
{
    g_autofree char *quoted = g_strescape(message, NULL);
    g_autofree char *wanted =
        g_strdup_printf("[\"OpPrereqError\", [\"%s\", \"%s\"]]", quoted, code);
    g_assert_cmpstr(result, ==, wanted);
    ops_expect(world, "commit job error\n");
}

static guint one_ms(const char *from, const char *to, void *data)
{
    return 1;
}

static void run_to_be_killed(void *data)
{
    struct ops_world *world = data;
    runner_run(world->env, JOB, LIVELOCK, NULL);
}

bool ops_run_and_kill(struct ops_world *world, json_t *opcodes, guint after_ms)
{
    fake_set_delay(world->world, one_ms, NULL);
    ops_submit(world, opcodes);
    task_spawn(world->env->tasks, run_to_be_killed, world);
    fake_settle(world->world);
    for (guint i = 0; i < after_ms; i++)
        fake_advance(world->world, 1);
    const struct job *record = config_get(world->config, "job", "17", NULL);
    bool alive = !strcmp(record->status, "waiting");
    fake_kill(world->env);
    fake_advance(world->world, 10); /* what was on its way arrives */
    fake_set_delay(world->world, NULL, NULL);
    world->env = fake_process(world->world, NODE1, ROLE_JOB);
    return alive;
}
