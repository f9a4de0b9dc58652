/* See ops_case.h. */
#include "ops_case.h"

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
