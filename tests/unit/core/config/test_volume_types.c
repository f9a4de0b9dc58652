/* What a type of volumes asks of a back end. core/config/volume_types.h */
#include "core/config/volume_types.h"

#include "unit/core/world/storage_world.h"

static bool fits(const char *spec, const char *name)
{
    json_autoptr json = object_type(spec);
    record_autoptr(volume_type) type = volume_type_parse(json, RECORD_STRICT, NULL);
    const struct backend backend = {.name = (char *)name};
    return volume_type_fits(type, &backend);
}

static void test_fits(void)
{
    const struct backend backend = {.name = (char *)"dir1"};
    g_assert_true(volume_type_fits(NULL, &backend));
    g_assert_true(fits(NULL, "dir1"));
    g_assert_true(fits("volume_backend_name=dir1", "dir1"));
    g_assert_false(fits("volume_backend_name=dir1", "dir2"));
    g_assert_false(fits("volume_backend_name=dir1", "dir11"));
    /* Of what no back end says anything of, none is; what is scoped is for others. */
    g_assert_false(fits("volume_backend_names=dir1", "dir1"));
    g_assert_false(fits("disks=new", "dir1"));
    g_assert_true(fits("vendor:disks=new", "dir1"));
    g_assert_false(fits("disks=new:er", "dir1"));
}

static void test_spec(void)
{
    json_autoptr json = object_type("volume_backend_name=a=b");
    record_autoptr(volume_type) type = volume_type_parse(json, RECORD_STRICT, NULL);
    g_assert_cmpstr(volume_type_spec(type, "volume_backend_name"), ==, "a=b");
    g_assert_null(volume_type_spec(type, "volume_backend"));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/volume-types/fits", test_fits);
    g_test_add_func("/volume-types/spec", test_spec);
    return g_test_run();
}
