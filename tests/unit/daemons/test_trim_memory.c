/* Memory that a daemon gives back; see daemons/common/trim_memory.h. */
#include "daemons/common/trim_memory.h"

#include <glib.h>

#include "base/limits.h"

/* Two looks in a row, so that what is used and freed again and again stays. */
static void test_idle(void)
{
    struct spare spare = {0};
    g_assert_false(trim_memory_look(&spare, SPARE_MEMORY_BYTES));
    g_assert_true(trim_memory_look(&spare, SPARE_MEMORY_BYTES));
}

static void test_used_again(void)
{
    struct spare spare = {0};
    for (int i = 0; i < 10; i++)
        g_assert_false(trim_memory_look(&spare, i % 2 == 0 ? MIB(100) : SPARE_MEMORY_BYTES - 1));
}

static void test_little(void)
{
    struct spare spare = {0};
    for (int i = 0; i < 10; i++)
        g_assert_false(trim_memory_look(&spare, SPARE_MEMORY_BYTES - 1));
}

/* Most of what was given back is counted as free for ever: it is not given back again. */
static void test_once(void)
{
    struct spare spare = {0};
    g_assert_false(trim_memory_look(&spare, MIB(50)));
    g_assert_true(trim_memory_look(&spare, MIB(50)));
    spare.kept = MIB(45);
    for (int i = 0; i < 10; i++)
        g_assert_false(trim_memory_look(&spare, MIB(45) + SPARE_MEMORY_BYTES - 1));
    g_assert_true(trim_memory_look(&spare, MIB(60)) || trim_memory_look(&spare, MIB(60)));
}

/* What was taken of it meanwhile and freed is. */
static void test_taken_again(void)
{
    struct spare spare = {.last = MIB(45), .kept = MIB(45)};
    g_assert_false(trim_memory_look(&spare, MIB(10)));
    g_assert_false(trim_memory_look(&spare, MIB(45)));
    g_assert_true(trim_memory_look(&spare, MIB(45)));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/spare/idle", test_idle);
    g_test_add_func("/spare/used-again", test_used_again);
    g_test_add_func("/spare/little", test_little);
    g_test_add_func("/spare/once", test_once);
    g_test_add_func("/spare/taken-again", test_taken_again);
    return g_test_run();
}
