/*
 * A store of format 1, as an earlier version left it (tests/unit/io/store-format-1.db: a cluster
 * of two nodes, four jobs, serial 17): it is read as it is, is of the present format from the first
 * transaction on, and its damage is found as well. argv[1] names the file.
 */
#include "world.h"

#include "io/sqlite/sqlite_copy.h"
#include "io/sqlite/sqlite_engine.h"
#include "io/sqlite/sqlite_store.h"
#include "proto/change.h"
#include "proto/records.h"

#include <glib/gstdio.h>
#include <sqlite3.h>
#include <string.h>

#define OBJECTS "cluster@1 counter@14 job@5 job@9 job@13 job@17 node@4 node@1 nodegroup@1 tag@8"

static struct node_paths *paths;
static char *path;
static char *old; /* the file's bytes */
static gsize old_len;

/* Without the lock file, which remembers how far the store that was there had come. */
static void put_there(const char *bytes)
{
    g_autofree char *lock = g_strconcat(path, ".lock", NULL);
    g_unlink(lock);
    g_assert_true(g_file_set_contents(path, bytes, (gssize)old_len, NULL));
}

static void add_object(const char *kind, const char *key, guint64 version, json_t *object,
                       void *text)
{
    g_string_append_printf(text, " %s@%" G_GUINT64_FORMAT, kind, version);
}

/* "history/serial: kind@version …", or NULL with the error. */
static char *load(struct engine *engine, GError **error)
{
    g_autoptr(GString) text = g_string_new(NULL);
    guint64 history = 0, serial = 0;
    if (!engine->ops->load(engine, &history, &serial, add_object, text, error))
        return NULL;
    return g_strdup_printf("%d/%d:%s", (int)history, (int)serial, text->str);
}

static char *open_and_load(GError **error)
{
    struct engine *engine = sqlite_engine_open(path, error);
    char *text = engine ? load(engine, error) : NULL;
    if (engine)
        engine->ops->close(engine);
    return text;
}

static int format(void)
{
    sqlite3 *db;
    sqlite3_stmt *statement;
    g_assert_cmpint(sqlite3_open(path, &db), ==, SQLITE_OK);
    g_assert_cmpint(sqlite3_prepare_v2(db, "PRAGMA user_version", -1, &statement, NULL), ==,
                    SQLITE_OK);
    g_assert_cmpint(sqlite3_step(statement), ==, SQLITE_ROW);
    int found = sqlite3_column_int(statement, 0);
    sqlite3_finalize(statement);
    sqlite3_close(db);
    return found;
}

static void committed(enum engine_result result, const GError *error, void *data)
{
    g_assert_no_error(error);
    g_assert_cmpint(result, ==, ENGINE_DONE);
    *(bool *)data = true;
}

static void commit_tag(struct engine *engine, guint64 epoch)
{
    g_autoptr(GPtrArray) changes = change_list_new();
    struct engine_commit commit = {"an-id", epoch, 18, changes};
    bool done = false;
    g_ptr_array_add(changes,
                    change_make(CHANGE_PUT, "tag", "zz", 18, json_make("{s:s}", "text", "new")));
    engine->ops->commit(engine, &commit, committed, &done);
    world_wait(&done);
}

/* Reading changes nothing: the earlier version can go back to it. */
static void test_read(void)
{
    g_autoptr(GError) error = NULL;
    enum copy_role role;
    put_there(old);
    g_autofree char *text = open_and_load(&error);
    g_assert_no_error(error);
    g_assert_cmpstr(text, ==, "1/17: " OBJECTS);
    g_assert_true(sqlite_copy_role(path, &role, &error));
    g_assert_cmpint(role, ==, COPY_ENGINE);
    g_assert_cmpint(format(), ==, 1);
}

static void test_upgrade(void)
{
    g_autoptr(GError) error = NULL;
    struct mastership me = {.node = NODE_A, .boot_id = "boot", .journal_id = "journal"};
    put_there(old);
    struct engine *engine = sqlite_engine_open(path, &error);
    g_assert_no_error(error);
    g_free(load(engine, &error));
    g_assert_true(engine->ops->campaign(engine, &me, &error));
    g_assert_cmpuint(me.epoch, ==, 2);
    g_assert_cmpint(format(), ==, 2);
    commit_tag(engine, me.epoch);
    engine->ops->close(engine);
    g_autofree char *text = open_and_load(&error);
    g_assert_no_error(error);
    g_assert_cmpstr(text, ==, "1/18: " OBJECTS " tag@18");
}

/* Of the version after this one: it says so, and what to do; the file stays as it is. */
static void test_later(void)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *later = g_memdup2(old, old_len), *after = NULL;
    gsize len = 0;
    later[63] = 3; /* PRAGMA user_version */
    put_there(later);
    g_assert_null(open_and_load(&error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_CORRUPT);
    g_assert_nonnull(strstr(error->message,
                            "store.db has format 3, this version of Fettle knows 1 and 2: a later "
                            "one has written it. Nothing was changed: install that one again, or "
                            "restore a backup that this one can read"));
    g_assert_true(g_file_get_contents(path, &after, &len, NULL));
    g_assert_true(len == old_len && memcmp(after, later, len) == 0);
}

/* One bit at a time: either the damage is found or nothing is different. */
static void test_damaged(void)
{
    guint found = 0, harmless = 0;
    for (gsize at = 0; at < old_len; at += 23) {
        g_autofree char *flipped = g_memdup2(old, old_len);
        g_autoptr(GError) error = NULL;
        flipped[at] = (char)(flipped[at] ^ (1 << (at % 8)));
        put_there(flipped);
        g_autofree char *text = open_and_load(&error);
        if (text) {
            g_assert_cmpstr(text, ==, "1/17: " OBJECTS);
            harmless++;
        } else {
            g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_CORRUPT);
            found++;
        }
    }
    g_assert_cmpuint(found, >, 100);
    g_assert_cmpuint(harmless, >, 100); /* in what the file has free */
}

int main(int argc, char **argv)
{
    static const struct {
        const char *title;
        void (*test)(void);
    } tests[] = {{"/sqlite-old/read#FUT-12", test_read},
                 {"/sqlite-old/upgrade#SAF-01", test_upgrade},
                 {"/sqlite-old/later#FUT-12", test_later},
                 {"/sqlite-old/damaged", test_damaged}};
    g_test_init(&argc, &argv, NULL);
    g_assert_cmpint(argc, ==, 2);
    g_assert_true(g_file_get_contents(argv[1], &old, &old_len, NULL));
    loop_init();
    paths = world_new(NODE_A);
    path = g_build_filename(paths->var, "store.db", NULL);
    for (guint i = 0; i < G_N_ELEMENTS(tests); i++)
        g_test_add_func(tests[i].title, tests[i].test);
    int code = g_test_run();
    world_remove(paths);
    g_free(path);
    g_free(old);
    return code;
}
