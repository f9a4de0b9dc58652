/* The file of the API's identities: two processes' handles on it, crashes, damage. */
#include "world.h"

#include "io/sqlite/identity_store.h"
#include "proto/change.h"

#include <glib/gstdio.h>
#include <sqlite3.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char *folder, *path;

static GPtrArray *changes_of(const char *first, const char *second)
{
    GPtrArray *changes = change_list_new();
    g_ptr_array_add(changes,
                    change_make(CHANGE_PUT, "api_role", "a", 0, json_make("{s:s}", "name", first)));
    g_ptr_array_add(
        changes, change_make(CHANGE_PUT, "api_role", "b", 0, json_make("{s:s}", "name", second)));
    return changes;
}

static void set_up(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) changes = changes_of("one", "two");
    folder = g_dir_make_tmp("fettle-XXXXXX", NULL);
    path = g_build_filename(folder, "api.db", NULL);
    identity_store_create(path, changes, &error);
    g_assert_no_error(error);
}

static void tear_down(void)
{
    static const char *const ends[] = {"", "-wal", "-shm", ".new", ".new-wal", ".new-shm"};
    for (guint i = 0; i < G_N_ELEMENTS(ends); i++) {
        g_autofree char *file = g_strconcat(path, ends[i], NULL);
        g_unlink(file);
    }
    g_assert_cmpint(g_rmdir(folder), ==, 0);
    g_free(path);
    g_free(folder);
}

static struct identity_store *opened(void)
{
    g_autoptr(GError) error = NULL;
    struct identity_store *store = identity_store_open(path, &error);
    g_assert_no_error(error);
    return store;
}

static void visit(const char *kind, const char *key, json_t *object, void *data)
{
    const char *name = json_string_value(json_object_get(object, "name"));
    g_string_append_printf(data, "%s %s %s;", kind, key, name);
    json_decref(object);
}

/* "VERSION: kind key name;…" */
static char *content(struct identity_store *store)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GString) text = g_string_new(NULL);
    guint64 version, now;
    store->ops->load(store, visit, text, &version, &error);
    g_assert_no_error(error);
    store->ops->version(store, &now, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(now, ==, version);
    return g_strdup_printf("%" G_GUINT64_FORMAT ": %s", version, text->str);
}

#define assert_content(store, expected)                                                            \
    do {                                                                                           \
        g_autofree char *found = content(store);                                                   \
        g_assert_cmpstr(found, ==, expected);                                                      \
    } while (0)

/* --- two of them --- */

static struct identity_store *one, *other;

static void use_both(void *unused)
{
    g_autoptr(GError) error = NULL;
    guint64 version;
    g_autoptr(GPtrArray) changes = changes_of("uno", "due");
    one->ops->commit(one, changes, 1, &version, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(version, ==, 2);
    assert_content(other, "2: api_role a uno;api_role b due;");
    /* what was decided on what is not there any more is refused as a whole */
    g_autoptr(GPtrArray) late = changes_of("x", "y");
    g_assert_false(other->ops->commit(other, late, 1, &version, &error));
    assert_error(&error, VERSION_CONFLICT, "version 2, not 1");
    assert_content(one, "2: api_role a uno;api_role b due;");
    g_autoptr(GPtrArray) gone = change_list_new();
    g_ptr_array_add(gone, change_make(CHANGE_DELETE, "api_role", "a", 0, NULL));
    other->ops->commit(other, gone, 2, &version, &error);
    g_assert_no_error(error);
    assert_content(one, "3: api_role b due;");
}

/* Of one user those five; the version stays, so nobody reads all of it again. */
static void fail_at_both(void *unused)
{
    g_autoptr(GError) error = NULL;
    gint64 at_us[IDENTITY_FAILURES];
    for (gint64 i = 1; i <= 7; i++) {
        struct identity_store *store = i % 2 ? one : other;
        g_assert_true(store->ops->failures(store, "ann", 100 * i, at_us, &error));
        g_assert_cmpint(at_us[0], ==, 100 * i);
    }
    g_assert_true(other->ops->failures(other, "ann", 0, at_us, &error));
    for (guint i = 0; i < IDENTITY_FAILURES; i++)
        g_assert_cmpint(at_us[i], ==, 700 - 100 * (gint64)i);
    g_assert_true(other->ops->failures(other, "bob", 0, at_us, &error));
    g_assert_cmpint(at_us[0], ==, 0);
    /* A clock that was ahead is set right: those of then do not stand before what is noted now. */
    for (gint64 i = 0; i < IDENTITY_FAILURES; i++)
        g_assert_true(one->ops->failures(one, "eve", 9000 + i, at_us, &error));
    for (gint64 i = 1; i <= IDENTITY_FAILURES; i++) {
        g_assert_true(other->ops->failures(other, "eve", 10 * i, at_us, &error));
        g_assert_cmpint(at_us[0], ==, 10 * i);
    }
    g_assert_cmpint(at_us[IDENTITY_FAILURES - 1], ==, 10);
    assert_content(other, "1: api_role a one;api_role b two;");
}

/* Nobody of that id comes again, and strangers could make as many rows as there were ever users. */
static void delete_who_failed(void *unused)
{
    g_autoptr(GError) error = NULL;
    guint64 version = 0;
    gint64 at_us[IDENTITY_FAILURES];
    static const char *const kinds[] = {"api_role", "api_user"};
    g_assert_true(one->ops->failures(one, "a", 100, at_us, &error));
    for (guint i = 0; i < G_N_ELEMENTS(kinds); i++) {
        g_autoptr(GPtrArray) gone = change_list_new();
        g_ptr_array_add(gone, change_make(CHANGE_DELETE, kinds[i], "a", 0, NULL));
        one->ops->commit(one, gone, 1 + i, &version, &error);
        g_assert_no_error(error);
        g_assert_true(other->ops->failures(other, "a", 0, at_us, &error));
        g_assert_cmpint(at_us[0], ==, i ? 0 : 100);
    }
}

static void test_failures_of_deleted(void)
{
    set_up();
    one = opened();
    other = opened();
    world_in_task(delete_who_failed);
    identity_store_close(one);
    identity_store_close(other);
    tear_down();
}

static void test_failures(void)
{
    set_up();
    one = opened();
    other = opened();
    world_in_task(fail_at_both);
    identity_store_close(one);
    identity_store_close(other);
    tear_down();
}

static void test_two(void)
{
    set_up();
    one = opened();
    other = opened();
    assert_content(one, "1: api_role a one;api_role b two;");
    world_in_task(use_both);
    identity_store_close(one);
    identity_store_close(other);
    one = opened();
    assert_content(one, "3: api_role b due;");
    identity_store_close(one);
    struct stat state;
    g_assert_cmpint(stat(path, &state), ==, 0);
    g_assert_cmpuint(state.st_mode & 07777, ==, 0600);
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) changes = changes_of("x", "y");
    g_assert_false(identity_store_create(path, changes, &error));
    assert_error(&error, ALREADY_EXISTS, "there are identities already");
    tear_down();
}

/* --- crashes --- */

/* A process that does it until it ends at that point; its exit status. */
static int run_child(const char *crash_at, const char *what)
{
    g_autofree char *self = g_file_read_link("/proc/self/exe", NULL);
    const char *argv[] = {self, "child", what, path, NULL};
    g_auto(GStrv) env = g_environ_setenv(g_get_environ(), "FETTLE_CRASH_AT", crash_at, TRUE);
    g_autoptr(GError) error = NULL;
    int status;
    g_spawn_sync(NULL, (char **)argv, env, G_SPAWN_STDOUT_TO_DEV_NULL, NULL, NULL, NULL, NULL,
                 &status, &error);
    g_assert_no_error(error);
    return status;
}

static int be_child(const char *what)
{
    g_autoptr(GPtrArray) changes = changes_of("uno", "due");
    guint64 version;
    if (!strcmp(what, "create"))
        return identity_store_create(path, changes, NULL) ? 0 : 1;
    struct identity_store *store = identity_store_open(path, NULL);
    return store && store->ops->commit(store, changes, 1, &version, NULL) ? 0 : 1;
}

static void test_crashes(void)
{
    set_up();
    g_assert_true(WIFSIGNALED(run_child("identity: commit", "commit")));
    one = opened();
    assert_content(one, "1: api_role a one;api_role b two;");
    identity_store_close(one);
    g_assert_true(WIFSIGNALED(run_child("identity: committed", "commit")));
    one = opened();
    assert_content(one, "2: api_role a uno;api_role b due;");
    identity_store_close(one);
    g_unlink(path);
    g_assert_true(WIFSIGNALED(run_child("identity: link", "create")));
    g_assert_false(g_file_test(path, G_FILE_TEST_EXISTS));
    g_assert_cmpint(run_child("0", "create"), ==, 0);
    one = opened();
    assert_content(one, "1: api_role a uno;api_role b due;");
    identity_store_close(one);
    tear_down();
}

/* --- damage --- */

static void sql(const char *words)
{
    sqlite3 *db;
    g_assert_cmpint(sqlite3_open(path, &db), ==, SQLITE_OK);
    g_assert_cmpint(sqlite3_exec(db, words, NULL, NULL, NULL), ==, SQLITE_OK);
    sqlite3_close(db);
}

static void check_refused(enum fettle_error code, const char *words)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GString) text = g_string_new(NULL);
    guint64 version;
    struct identity_store *store = identity_store_open(path, &error);
    if (store && !store->ops->load(store, visit, text, &version, &error)) {
        identity_store_close(store);
        store = NULL;
    }
    g_assert_null(store);
    assert_error_at(&error, code, words, G_STRLOC);
}

static void test_damage(void)
{
    set_up();
    sql("PRAGMA user_version=7");
    check_refused(FETTLE_ERROR_CORRUPT, "of format 7, and this version knows format 1");
    sql("PRAGMA user_version=1; UPDATE objects SET object='{\"name\":\"ome\"}' WHERE key='a'");
    check_refused(FETTLE_ERROR_CORRUPT, "a row of it is damaged");
    sql("PRAGMA application_id=5");
    check_refused(FETTLE_ERROR_CORRUPT, "no identities of the API");
    g_autofree char *bytes = NULL;
    gsize len;
    g_file_get_contents(path, &bytes, &len, NULL);
    g_file_set_contents(path, bytes, (gssize)len / 2, NULL);
    check_refused(FETTLE_ERROR_CORRUPT, "put it back from a copy");
    g_file_set_contents(path, "", 0, NULL);
    check_refused(FETTLE_ERROR_CORRUPT, "no identities of the API");
    memset(bytes, 'x', 100);
    g_file_set_contents(path, bytes, (gssize)len, NULL);
    check_refused(FETTLE_ERROR_CORRUPT, "not a database");
    g_unlink(path);
    check_refused(FETTLE_ERROR_UNKNOWN_ENTITY, "run `fettle api init`");
    tear_down();
}

int main(int argc, char **argv)
{
    if (argc == 4 && !strcmp(argv[1], "child")) {
        path = argv[3];
        return be_child(argv[2]);
    }
    g_test_init(&argc, &argv, NULL);
    loop_init();
    g_test_add_func("/identity store/two processes", test_two);
    g_test_add_func("/identity store/failures", test_failures);
    g_test_add_func("/identity store/failures of a deleted user", test_failures_of_deleted);
    g_test_add_func("/identity store/crashes", test_crashes);
    g_test_add_func("/identity store/damage", test_damage);
    return g_test_run();
}
