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
    /* What pools say of themselves. */
    g_assert_true(fits("vendor_name=Fettle", "dir1"));
    g_assert_false(fits("vendor_name=other", "dir1"));
    g_assert_true(fits("storage_protocol=file", "dir1"));
    g_assert_false(fits("storage_protocol=ceph", "dir1"));
    g_assert_false(fits("disks=new:er", "dir1"));
}

static void test_spec(void)
{
    json_autoptr json = object_type("volume_backend_name=a=b");
    record_autoptr(volume_type) type = volume_type_parse(json, RECORD_STRICT, NULL);
    g_assert_cmpstr(volume_type_spec(type, "volume_backend_name"), ==, "a=b");
    g_assert_null(volume_type_spec(type, "volume_backend"));
}

static void apply(struct config *config, const char *kind, const char *key, json_t *object)
{
    g_autoptr(GError) error = NULL;
    record_autoptr(change) change = config_put(config, kind, key, object);
    config_apply(config, change, &error);
    g_assert_no_error(error);
}

/* By rows that are to give it to volumes; one whose volume has gone says nothing of the others. */
static void test_volume_of_rows(void)
{
    static const char *const uuids[] = {VOLUME1, VOLUME2};
    struct config *config = config_new();
    apply(config, "volume_type", TYPE1, object_type(NULL));
    for (guint there = 0; there < 2; there++) {
        for (guint i = 0; i < 2; i++) {
            g_autofree char *key = config_work_key(RESOURCE_VOLUME, uuids[i]);
            json_t *row = with(object_row1(), "resource_id", json_string(uuids[i]));
            apply(config, "worker", key, with(row, "volume_type", json_string(TYPE1)));
        }
        g_assert_null(config_volume_of_type(config, TYPE1));
        apply(config, "volume", uuids[there],
              with(object_volume1(), "uuid", json_string(uuids[there])));
        const struct volume *volume = config_volume_of_type(config, TYPE1);
        g_assert_nonnull(volume);
        g_assert_cmpstr(volume->uuid, ==, uuids[there]);
        config_free(config);
        config = config_new();
    }
    config_free(config);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/volume-types/fits", test_fits);
    g_test_add_func("/volume-types/spec", test_spec);
    g_test_add_func("/volume-types/volume-of-rows", test_volume_of_rows);
    return g_test_run();
}
