/*
 * The write-ahead log of the SQLite engine, which is moved into the file behind the answers of
 * commits (sqlite_engine.c, tidy_log): it stays bounded when there is never a pause, a death at any
 * moment of it loses nothing, and a reader that stays only delays it.
 *
 * Usage: test_io_sqlite_log, or test_io_sqlite_log --commit STORE, which commits for ever and tells
 * each serial on standard output once it is answered.
 */
#include "world.h"

#include "io/sqlite/sqlite_engine.h"
#include "proto/change.h"
#include "proto/records.h"

#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define HISTORY 4
#define KEYS 50
#define TEXT_BYTES 8000
#define PAGE_BYTES (4096 + 24)
#define BUSY_PAGES 4000 /* sqlite_engine.c: then it does not wait for a pause */
#define IN_FLIGHT 64
#define BATCH_PAGES (IN_FLIGHT * 8 + 50)

struct store {
    char *path;
    struct engine *engine;
    struct mastership me;
    guint64 serial;  /* of the newest commit */
    guint64 stored;  /* answered up to here */
    guint64 longest; /* the log was, in bytes */
    guint64 wanted;
    bool tells, full;
};

/* --- the store --- */

static char *text_of(guint64 serial)
{
    char *text = g_strnfill(TEXT_BYTES, 'x');
    g_autofree char *number = g_strdup_printf("%" G_GUINT64_FORMAT " ", serial);
    memcpy(text, number, strlen(number));
    return text;
}

static GPtrArray *put(guint64 serial)
{
    GPtrArray *changes = change_list_new();
    g_autofree char *text = text_of(serial);
    g_autofree char *key = g_strdup_printf("%u", (guint)(serial % KEYS));
    g_ptr_array_add(changes,
                    change_make(CHANGE_PUT, "tag", key, serial, json_make("{s:s}", "text", text)));
    return changes;
}

/* Every object is the newest one that was committed under its key. */
static void each_cb(const char *kind, const char *key, guint64 version, json_t *object, void *data)
{
    guint64 *newest = data;
    const char *text = json_string_value(json_object_get(object, "text"));
    g_assert_cmpuint(g_ascii_strtoull(text, NULL, 10), ==, version);
    g_assert_cmpuint(g_ascii_strtoull(key, NULL, 10), ==, version % KEYS);
    newest[version % KEYS] = version;
}

static void check(guint64 serial, const guint64 *newest)
{
    for (guint64 i = 0; i < KEYS && i < serial; i++)
        g_assert_cmpuint(newest[(serial - i) % KEYS], ==, serial - i);
}

static void store_open(struct store *store)
{
    g_autoptr(GError) error = NULL;
    guint64 history = 0;
    guint64 newest[KEYS] = {0};
    store->engine = sqlite_engine_open(store->path, &error);
    g_assert_no_error(error);
    store->engine->ops->load(store->engine, &history, &store->serial, each_cb, newest, &error);
    g_assert_no_error(error);
    check(store->serial, newest);
    store->me = (struct mastership){.epoch = 0};
    g_strlcpy(store->me.node, NODE_A, sizeof store->me.node);
    g_strlcpy(store->me.boot_id, "boot", sizeof store->me.boot_id);
    g_strlcpy(store->me.journal_id, "journal", sizeof store->me.journal_id);
    store->engine->ops->campaign(store->engine, &store->me, &error);
    g_assert_no_error(error);
}

static void store_close(struct store *store)
{
    store->engine->ops->close(store->engine);
    store->engine = NULL;
}

static struct store *store_new(struct node_paths *paths)
{
    struct store *store = g_new0(struct store, 1);
    g_autoptr(GPtrArray) first = put(1);
    g_autoptr(GError) error = NULL;
    store->path = g_build_filename(paths->var, "store.db", NULL);
    g_assert_true(sqlite_engine_create(store->path, HISTORY, first, &error));
    return store;
}

static void store_free(struct store *store)
{
    g_free(store->path);
    g_free(store);
}

static guint64 log_bytes(const struct store *store)
{
    g_autofree char *path = g_strconcat(store->path, "-wal", NULL);
    struct stat status;
    return stat(path, &status) == 0 ? (guint64)status.st_size : 0;
}

/* --- commits without a pause --- */

static void commit_next(struct store *store);

static void committed(enum engine_result result, const GError *error, void *data)
{
    struct store *store = data;
    g_assert_no_error((GError *)error);
    g_assert_cmpint(result, ==, ENGINE_DONE);
    store->stored++;
    store->longest = MAX(store->longest, log_bytes(store));
    if (store->tells) {
        guint64 serial = store->stored;
        g_assert_cmpint(write(STDOUT_FILENO, &serial, sizeof serial), ==, sizeof serial);
    }
    if (store->serial < store->wanted)
        commit_next(store);
    else
        store->full = store->stored == store->serial;
}

static void commit_next(struct store *store)
{
    guint64 serial = ++store->serial;
    g_autoptr(GPtrArray) changes = put(serial);
    g_autofree char *id = g_strdup_printf("c%" G_GUINT64_FORMAT, serial);
    const struct engine_commit commit = {id, store->me.epoch, serial, changes};
    store->engine->ops->commit(store->engine, &commit, committed, store);
}

static void commit_begin(struct store *store, guint64 count)
{
    store->stored = store->serial;
    store->wanted = store->serial + count;
    store->full = false;
    for (guint i = 0; i < IN_FLIGHT; i++)
        commit_next(store);
}

static void commit_many(struct store *store, guint64 count)
{
    commit_begin(store, count);
    world_wait(&store->full);
}

/* --- tests --- */

#define MANY 3000 /* some 15,000 pages */

/* The queue is never empty: the log is moved all the same, and begins anew. */
static void test_no_pause(void)
{
    struct node_paths *paths = world_new(NODE_A);
    struct store *store = store_new(paths);
    store_open(store);
    commit_many(store, MANY);
    g_test_message("the log has had %" G_GUINT64_FORMAT " pages at the most",
                   store->longest / PAGE_BYTES);
    g_assert_cmpuint(store->longest, <, (guint64)(BUSY_PAGES + BATCH_PAGES) * PAGE_BYTES);
    g_assert_cmpuint(store->longest, >, (guint64)1000 * PAGE_BYTES);
    store_close(store);
    store_open(store);
    g_assert_cmpuint(store->serial, ==, MANY + 1);
    store_close(store);
    store_free(store);
    world_remove(paths);
}

/* A backup, or rconfd: while it reads nothing can be written over, so the log grows, but no commit
 * waits or fails; when it has gone the log is used anew. */
static void test_reader(void)
{
    struct node_paths *paths = world_new(NODE_A);
    struct store *store = store_new(paths);
    sqlite3 *reader = NULL;
    store_open(store);
    commit_many(store, 200);
    g_assert_cmpint(sqlite3_open(store->path, &reader), ==, SQLITE_OK);
    g_assert_cmpint(sqlite3_exec(reader, "BEGIN; SELECT count(*) FROM objects", NULL, NULL, NULL),
                    ==, SQLITE_OK);
    commit_many(store, MANY / 2);
    guint64 grown = store->longest;
    g_assert_cmpuint(grown, >, (guint64)(BUSY_PAGES + BATCH_PAGES) * PAGE_BYTES);
    g_assert_cmpint(sqlite3_exec(reader, "COMMIT", NULL, NULL, NULL), ==, SQLITE_OK);
    commit_many(store, MANY);
    g_assert_cmpuint(store->longest, <=, grown + (guint64)BATCH_PAGES * PAGE_BYTES);
    g_assert_cmpint(sqlite3_close(reader), ==, SQLITE_OK);
    store_close(store);
    store_free(store);
    world_remove(paths);
}

/* Serials that the process has told; what was cut off counts for nothing. */
static guint64 last_told(int fd)
{
    guint64 serial = 0, last = 0;
    while (read(fd, &serial, sizeof serial) == sizeof serial)
        last = serial;
    return last;
}

/* Processes that are killed while they commit, and move the log, at any moment. */
static void test_killed(void)
{
    enum { ROUNDS = 15 };
    g_autofree char *self = g_file_read_link("/proc/self/exe", NULL);
    struct node_paths *paths = world_new(NODE_A);
    struct store *store = store_new(paths);
    guint moved = 0;
    for (guint i = 0; i < ROUNDS; i++) {
        char *const words[] = {self, (char *)"--commit", store->path, NULL};
        g_autoptr(GError) error = NULL;
        int out = -1, status = 0;
        GPid child = 0;
        g_assert_true(g_spawn_async_with_pipes(NULL, (char **)words, NULL,
                                               G_SPAWN_DO_NOT_REAP_CHILD, NULL, NULL, &child, NULL,
                                               &out, NULL, &error));
        guint64 first = 0;
        g_assert_cmpint(read(out, &first, sizeof first), ==, sizeof first);
        g_usleep((gulong)g_test_rand_int_range(1, 400) * 1000);
        g_assert_cmpint(kill(child, SIGKILL), ==, 0);
        g_assert_cmpint(waitpid(child, &status, 0), ==, child);
        g_assert_true(WIFSIGNALED(status));
        guint64 last = last_told(out);
        guint64 told = MAX(last, first);
        close(out);
        moved += log_bytes(store) > (guint64)1000 * PAGE_BYTES;
        store_open(store); /* looks at every object */
        g_assert_cmpuint(store->serial, >=, told);
        g_assert_cmpuint(store->serial, <=, told + IN_FLIGHT + LIMIT_COMMITS_PER_BATCH);
        store_close(store);
    }
    g_test_message("%u of %u were killed when the log was to be moved", moved, (guint)ROUNDS);
    store_free(store);
    world_remove(paths);
}

/* --- the process that is killed --- */

static int commit_for_ever(char *path)
{
    struct store store = {.path = path, .tells = true};
    store_open(&store);
    commit_begin(&store, G_MAXUINT32);
    world_wait(&store.full);
    return 1;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--commit") == 0) {
        loop_init();
        return commit_for_ever(argv[2]);
    }
    g_test_init(&argc, &argv, NULL);
    loop_init();
    g_test_add_func("/sqlite-log/no-pause#WCF-05", test_no_pause);
    g_test_add_func("/sqlite-log/reader#WCF-05", test_reader);
    g_test_add_func("/sqlite-log/killed#WCF-05,SAF-04", test_killed);
    return g_test_run();
}
