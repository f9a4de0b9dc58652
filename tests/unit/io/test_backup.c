/* Backups: what comes out is what went in; whatever is done to the file is found, and named; a
 * store is copied whole while it is written, and comes back as another history. */
#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

#include "io/files.h"
#include "io/sqlite/backup.h"
#include "io/sqlite/sqlite_backup.h"
#include "io/sqlite/sqlite_copy.h"
#include "io/sqlite/sqlite_store.h"
#include "proto/change.h"

#define CLUSTER "cccccccc-0000-4000-8000-000000000001"
#define NODE "11111111-0000-4000-8000-000000000001"

static char *folder;

static char *in_folder(const char *name)
{
    return g_build_filename(folder, name, NULL);
}

static struct store_backup *make(void)
{
    struct store_backup *backup = store_backup_new();
    struct backup_header *header = backup->header;
    g_free(header->cluster);
    header->cluster = g_strdup(CLUSTER);
    g_free(header->name);
    header->name = g_strdup("c1");
    g_free(header->node);
    header->node = g_strdup(NODE);
    header->history = 3;
    header->epoch = 4;
    header->serial = 5;
    header->taken = 6;
    backup_add(backup, "store.db", g_bytes_new("0123456789", 10));
    backup_add(backup, "etc/ca.key", g_bytes_new("", 0));
    backup_add(backup, "etc/node.json", g_bytes_new("{}\n", 3));
    return backup;
}

static char *refusal(const char *path)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(store_backup_t) backup = backup_read(path, &error);
    return backup ? g_strdup("")
                  : g_strdup_printf("%s: %s", fettle_error_name(error), error->message);
}

static void test_round_trip(void)
{
    g_autofree char *path = in_folder("one");
    g_autoptr(store_backup_t) made = make();
    g_autoptr(GError) error = NULL;
    GStatBuf stat_buffer;
    g_assert_true(backup_write(made, path, &error));
    g_assert_cmpint(g_stat(path, &stat_buffer), ==, 0);
    g_assert_cmpint(stat_buffer.st_mode & 0777, ==, 0600);
    g_autoptr(store_backup_t) read = backup_read(path, &error);
    g_assert_no_error(error);
    g_assert_cmpstr(read->header->name, ==, "c1");
    g_assert_cmpuint(read->header->serial, ==, 5);
    g_assert_cmpuint(g_bytes_get_size(backup_part(read, "etc/ca.key")), ==, 0);
    g_assert_true(g_bytes_equal(backup_part(read, "store.db"), backup_part(made, "store.db")));
    g_assert_null(backup_part(read, "etc/other"));
}

/* Every length, and every bit. */
static void test_every_damage(void)
{
    g_autofree char *path = in_folder("one");
    g_autofree char *other = in_folder("other");
    g_autoptr(store_backup_t) made = make();
    size_t len = 0;
    g_assert_true(backup_write(made, path, NULL));
    g_autofree char *text = files_read_path(path, MIB(1), &len, NULL);
    for (size_t cut = 0; cut < len; cut++) {
        g_assert_true(files_write_path(other, text, cut, 0600, false, NULL));
        g_autofree char *said = refusal(other);
        g_assert_true(g_str_has_prefix(said, "wrong_input: ") ||
                      g_str_has_prefix(said, "corrupt: "));
    }
    for (size_t bit = 0; bit < len * 8; bit++) {
        text[bit / 8] ^= (char)(1 << bit % 8);
        g_assert_true(files_write_path(other, text, len, 0600, false, NULL));
        text[bit / 8] ^= (char)(1 << bit % 8);
        g_autofree char *said = refusal(other);
        g_assert_true(g_str_has_prefix(said, "wrong_input: ") ||
                      g_str_has_prefix(said, "corrupt: "));
    }
}

static void assert_refused(const char *text, size_t len, const char *format)
{
    g_autofree char *path = in_folder("other");
    g_assert_true(files_write_path(path, text, len, 0600, false, NULL));
    g_autoptr(GString) expected = g_string_new(format);
    g_string_replace(expected, "PATH", path, 0);
    g_autofree char *said = refusal(path);
    g_assert_cmpstr(said, ==, expected->str);
}

static void test_words(void)
{
    g_autofree char *path = in_folder("one");
    g_autoptr(store_backup_t) made = make();
    size_t len = 0;
    g_assert_true(backup_write(made, path, NULL));
    g_autofree char *text = files_read_path(path, MIB(1), &len, NULL);
    assert_refused(text, len - 4,
                   "corrupt: PATH is damaged: it is cut off, 4 bytes are missing; nothing was "
                   "changed, take another backup");
    g_autofree char *longer = g_strconcat(text, "xx", NULL);
    assert_refused(longer, len + 2,
                   "corrupt: PATH is damaged: it has 2 bytes behind its end; nothing was changed, "
                   "take another backup");
    text[len - 1] ^= 1;
    assert_refused(text, len,
                   "corrupt: PATH is damaged: its part etc/node.json does not match its checksum; "
                   "nothing was changed, take another backup");
    text[len - 1] ^= 1;
    text[100] ^= 1;
    assert_refused(text, len,
                   "corrupt: PATH is damaged: its header does not match its checksum; nothing was "
                   "changed, take another backup");
    assert_refused("hello", 5,
                   "wrong_input: PATH is no backup of Fettle: it does not begin with "
                   "\"fettle-backup 1\"");
    assert_refused("fettle-backup 2\n", 16,
                   "wrong_input: PATH is a backup of version 2, and this Fettle reads version 1: "
                   "restore it with the newer Fettle that wrote it");
    assert_refused("fettle-backup 1\nabc", 19,
                   "corrupt: PATH is damaged: its header is cut off; nothing was changed, take "
                   "another backup");
}

/* --- stores --- */

static GPtrArray *one_put(const char *key, json_t *object)
{
    GPtrArray *changes = change_list_new();
    g_ptr_array_add(changes, change_make(CHANGE_PUT, "cluster", key, 0, object));
    return changes;
}

static struct sqlite_store *new_store(const char *path)
{
    g_autoptr(GPtrArray) changes =
        one_put(CLUSTER, json_make("{s:s,s:s}", "uuid", CLUSTER, "name", "c1"));
    g_autoptr(GPtrArray) rows = store_rows_from_changes(changes);
    g_autoptr(GError) error = NULL;
    g_assert_true(sqlite_store_create(path, COPY_ENGINE, 7, rows, &error));
    struct sqlite_store *store = sqlite_store_open(path, &error);
    g_assert_true(sqlite_store_load(store, NULL, NULL, &error));
    return store;
}

static void commit_one(struct sqlite_store *store, guint64 epoch)
{
    g_autoptr(GPtrArray) changes =
        one_put(CLUSTER, json_make("{s:s,s:s}", "uuid", CLUSTER, "name", "c2"));
    g_autoptr(GPtrArray) rows = store_rows_from_changes(changes);
    g_autofree char *id = g_uuid_string_random();
    bool refused = false, unknown = false;
    g_assert_true(sqlite_store_begin(store, NULL));
    g_assert_true(
        sqlite_store_add(store, id, epoch, sqlite_store_serial(store) + 1, rows, &refused, NULL));
    g_assert_true(sqlite_store_finish(store, &unknown, NULL));
}

/* The store stays open, and has commits in its log that are not in its file yet. */
static void test_copy(void)
{
    g_autofree char *path = in_folder("store.db");
    g_autofree char *copy = in_folder("copy.db");
    struct store_summary summary = {0};
    g_autoptr(GError) error = NULL;
    struct sqlite_store *store = new_store(path);
    struct mastership me = {.node = NODE, .boot_id = "b", .journal_id = "j"};
    g_assert_true(sqlite_store_campaign(store, &me, &error));
    commit_one(store, me.epoch);
    g_assert_true(sqlite_store_copy(path, copy, &summary, &error));
    g_assert_cmpuint(summary.history, ==, 7);
    g_assert_cmpuint(summary.serial, ==, 2);
    g_assert_cmpuint(summary.epoch, ==, me.epoch);
    g_assert_cmpint(summary.role, ==, COPY_ENGINE);
    g_assert_cmpstr(summary.name, ==, "c2");
    g_assert_cmpstr(summary.cluster, ==, CLUSTER);
    static const char *const traces[] = {"copy.db.lock", "copy.db-wal", "copy.db-shm"};
    for (guint i = 0; i < G_N_ELEMENTS(traces); i++) {
        g_autofree char *trace = in_folder(traces[i]);
        g_assert_false(g_file_test(trace, G_FILE_TEST_EXISTS));
    }
    sqlite_store_close(store);
}

static void count_id(const char *id, guint64 serial, void *count)
{
    ++*(guint *)count;
}

/* What was stored in another history is not taken for stored in this one. */
/* Above all that a master of the history before can have come to. */
static void assert_leapt(const struct sqlite_store *store, guint64 digits)
{
    guint64 now = (guint64)(g_get_real_time() / G_USEC_PER_SEC) * LIMIT_SERIALS_PER_SECOND;
    g_assert_cmpuint(sqlite_store_serial(store) % LIMIT_SERIALS_PER_SECOND, ==, digits);
    g_assert_cmpuint(sqlite_store_serial(store), >, now - (guint64)3600 * LIMIT_SERIALS_PER_SECOND);
}

static void test_renew_and_replace(void)
{
    g_autofree char *path = in_folder("store.db");
    g_autofree char *copy = in_folder("copy.db");
    g_autofree char *aside = in_folder("store.db.before-900");
    struct store_summary summary = {0};
    g_autoptr(GError) error = NULL;
    struct sqlite_store *store = new_store(path);
    g_assert_true(sqlite_store_copy(path, copy, &summary, &error));
    g_assert_cmpint(sqlite_store_reserve(path, &error), ==, -1);
    g_assert_true(fettle_error_is(error, WRONG_STATE));
    g_clear_error(&error);
    struct mastership me = {.node = NODE, .boot_id = "b", .journal_id = "j"};
    g_assert_true(sqlite_store_campaign(store, &me, &error));
    commit_one(store, me.epoch);
    sqlite_store_close(store);

    int reserved = sqlite_store_reserve(path, &error);
    g_assert_cmpint(reserved, >=, 0);
    g_assert_cmpuint(sqlite_store_noted_history(reserved), ==, 7);
    g_autoptr(GPtrArray) changes =
        one_put(CLUSTER, json_make("{s:s,s:s}", "uuid", CLUSTER, "name", "c3"));
    g_assert_true(sqlite_store_renew(copy, 900, changes, &error));
    g_assert_true(sqlite_store_replace(reserved, copy, path, 900, &error));
    g_assert_true(g_file_test(aside, G_FILE_TEST_EXISTS));
    close(reserved);

    /* Opens without a word about a store that is behind: it is another history. */
    store = sqlite_store_open(path, &error);
    g_assert_no_error(error);
    g_assert_true(sqlite_store_load(store, NULL, NULL, &error));
    g_assert_cmpuint(sqlite_store_history(store), ==, 900);
    guint known = 0;
    g_assert_true(sqlite_store_each_id(store, count_id, &known, &error));
    g_assert_cmpuint(known, ==, 1); /* of the restoring itself */
    assert_leapt(store, 2);
    g_assert_cmpstr(sqlite_store_master(store)->node, ==, "");
    guint64 before = sqlite_store_master(store)->epoch;
    g_assert_true(sqlite_store_campaign(store, &me, &error));
    g_assert_cmpuint(me.epoch, ==, before + 1);
    sqlite_store_close(store);
}

/* A candidate's copy, which may have gaps in its log: put back it is an engine. */
static void test_of_a_copy(void)
{
    g_autofree char *path = in_folder("store.db");
    g_autofree char *taken = in_folder("copy.db");
    struct store_summary summary = {0};
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) all =
        one_put(CLUSTER, json_make("{s:s,s:s}", "uuid", CLUSTER, "name", "c1"));
    ((struct change *)all->pdata[0])->version = 4;
    struct copy *copy = sqlite_copy_open(path, &error);
    g_assert_no_error(error);
    g_assert_true(copy->ops->refill_begin(copy, &error) &&
                  copy->ops->refill_piece(copy, all, &error) &&
                  copy->ops->refill_end(copy, &(struct copy_batch){7, 2, 4, NULL, NULL}, &error));
    struct copy_batch batch = {7, 2, 9, all, NULL};
    g_assert_true(copy->ops->apply(copy, &batch, &error));
    g_assert_true(sqlite_store_copy(path, taken, &summary, &error));
    copy->ops->close(copy);
    g_assert_cmpuint(summary.serial, ==, 9);
    g_assert_cmpint(summary.role, ==, COPY_FOLLOWS);

    g_autoptr(GPtrArray) changes =
        one_put(CLUSTER, json_make("{s:s,s:s}", "uuid", CLUSTER, "name", "c3"));
    enum copy_role role = COPY_FOLLOWS;
    g_assert_true(sqlite_store_renew(taken, 900, changes, &error));
    g_assert_true(sqlite_copy_role(taken, &role, &error));
    g_assert_cmpint(role, ==, COPY_ENGINE);
    struct sqlite_store *store = sqlite_store_open(taken, &error);
    g_assert_true(sqlite_store_load(store, NULL, NULL, &error));
    assert_leapt(store, 10);
    sqlite_store_close(store);
}

static void test_damaged_store_is_not_copied(void)
{
    g_autofree char *path = in_folder("store.db");
    g_autofree char *copy = in_folder("copy.db");
    struct store_summary summary = {0};
    g_autoptr(GError) error = NULL;
    sqlite_store_close(new_store(path));
    size_t len = 0;
    g_autofree char *text = files_read_path(path, MIB(1), &len, NULL);
    char *name = g_strstr_len(text, -1, "SQLite") ? memmem(text, len, "\"name\":\"c1\"", 11) : NULL;
    g_assert_nonnull(name);
    name[9] ^= 1;
    g_assert_true(files_write_path(path, text, len, 0600, false, NULL));
    bool copied = sqlite_store_copy(path, copy, &summary, &error);
    g_assert_false(copied);
    g_assert_true(fettle_error_is(error, CORRUPT) || fettle_error_is(error, STORAGE));
    g_assert_false(g_file_test(copy, G_FILE_TEST_EXISTS));
    g_autofree char *none = in_folder("none.db");
    g_clear_error(&error);
    g_assert_false(sqlite_store_copy(none, copy, &summary, &error));
    g_assert_true(fettle_error_is(error, UNKNOWN_ENTITY));
}

static void each(void (*test)(void))
{
    folder = g_dir_make_tmp("fettle-backup-XXXXXX", NULL);
    test();
    g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
    const char *name;
    while ((name = g_dir_read_name(dir))) {
        g_autofree char *path = in_folder(name);
        g_unlink(path);
    }
    g_rmdir(folder);
    g_clear_pointer(&folder, g_free);
}

static void run_test(const void *data)
{
    each(*(void (*const *)(void))data);
}

int main(int argc, char **argv)
{
    static void (*const tests[])(void) = {test_round_trip,
                                          test_every_damage,
                                          test_words,
                                          test_copy,
                                          test_of_a_copy,
                                          test_renew_and_replace,
                                          test_damaged_store_is_not_copied};
    static const char *const names[] = {"/backup/round-trip",   "/backup/every-damage",
                                        "/backup/words",        "/backup/copy-while-open",
                                        "/backup/of-a-copy",    "/backup/renew",
                                        "/backup/damaged-store"};
    g_test_init(&argc, &argv, NULL);
    for (guint i = 0; i < G_N_ELEMENTS(tests); i++)
        g_test_add_data_func(names[i], &tests[i], run_test);
    return g_test_run();
}
