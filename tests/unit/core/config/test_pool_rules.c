/* Which pools of a Ceph can be back ends (test_storage_rules.c has what is true of all). */
#include "unit/core/world/storage_world.h"

#define TEXT(text) json_string(text)

static char *check(GPtrArray *setup, GPtrArray *changes)
{
    return check_as(setup, changes, AUTHOR_COMMIT);
}

static json_t *object_pool(const char *uuid)
{
    json_t *pool = with(with(object_backend(uuid), "kind", TEXT("rbd")), "path", TEXT(""));
    pool = with(with(pool, "pool", TEXT("rbd")), "user", TEXT("fettle"));
    return with(with(pool, "conf", TEXT("/etc/ceph/ceph.conf")), "backups", json_false());
}

/* One namespace of one pool of one Ceph is one place, whoever asks for it. */
static void test_pool(void)
{
    assert_says(check(NULL, changes_of(put("backend", DIR2, 9, object_pool(DIR2)), NULL)), "ok");
    assert_says(
        check(changes_of(put("backend", DIR1, 1, object_pool(DIR1)), NULL),
              changes_of(put("backend", DIR2, 9, with(object_pool(DIR2), "user", TEXT("other"))),
                         NULL)),
        "already_exists: backend dir2 (" DIR2 "): pool: rbd is that of back end dir1 "
        "already");
    assert_says(check(changes_of(put("backend", DIR1, 1, object_pool(DIR1)), NULL),
                      changes_of(put("backend", DIR2, 9,
                                     with(object_pool(DIR2), "namespace", TEXT("berlin"))),
                                 NULL)),
                "ok");
    static const char *const fixed[] = {"pool", "namespace", "user"};
    for (guint i = 0; i < G_N_ELEMENTS(fixed); i++) {
        g_autofree char *expected =
            g_strdup_printf("unsafe: backend dir2 (" DIR2 "): %s: never changes", fixed[i]);
        assert_says(check(changes_of(put("backend", DIR2, 1, object_pool(DIR2)), NULL),
                          changes_of(put("backend", DIR2, 9,
                                         with(object_pool(DIR2), fixed[i], TEXT("other"))),
                                     NULL)),
                    expected);
    }
    assert_says(check(NULL, changes_of(put("backend", DIR2, 9,
                                           with(object_pool(DIR2), "backups", json_true())),
                                       NULL)),
                "wrong_input: backend dir2 (" DIR2 "): backups: they are files, which a back end "
                "of kind rbd does not keep; one of kind dir does");
    assert_says(check(NULL, changes_of(put("backend", DIR2, 9,
                                           with(object_pool(DIR2), "images", json_true())),
                                       NULL)),
                "ok");
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/pool_rules/pool", test_pool);
    return g_test_run();
}
