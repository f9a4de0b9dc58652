/*
 * The SQLite engine on a disk that fails in the middle of a commit, and a copy on one that is full:
 * a layer below SQLite (a VFS) fails the next sync, or the next write, of the write-ahead log, or
 * has no room for more of it.
 */
#include "world.h"

#include "io/sqlite/sqlite_copy.h"
#include "io/sqlite/sqlite_engine.h"
#include "proto/change.h"
#include "proto/records.h"

#include <sqlite3.h>
#include <string.h>
#include <sys/stat.h>

/* --- the failing disk --- */

static sqlite3_vfs *below;
static sqlite3_vfs disk;
static int fail_syncs, fail_writes; /* how many of the next ones fail */
static sqlite3_int64 room;          /* for the log; 0: as much as it likes */

struct disk_file {
    sqlite3_file base;
    bool log;
    sqlite3_file *real; /* right behind this struct */
};

static sqlite3_file *real_of(sqlite3_file *file)
{
    return ((struct disk_file *)file)->real;
}

static int disk_close(sqlite3_file *file)
{
    return real_of(file)->pMethods->xClose(real_of(file));
}

static int disk_read(sqlite3_file *file, void *buffer, int len, sqlite3_int64 at)
{
    return real_of(file)->pMethods->xRead(real_of(file), buffer, len, at);
}

static int disk_write(sqlite3_file *file, const void *data, int len, sqlite3_int64 at)
{
    if (((struct disk_file *)file)->log && fail_writes > 0) {
        fail_writes--;
        return SQLITE_IOERR_WRITE;
    }
    if (((struct disk_file *)file)->log && room > 0 && at + len > room)
        return SQLITE_FULL;
    return real_of(file)->pMethods->xWrite(real_of(file), data, len, at);
}

static int disk_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    return real_of(file)->pMethods->xTruncate(real_of(file), size);
}

static int disk_sync(sqlite3_file *file, int flags)
{
    if (((struct disk_file *)file)->log && fail_syncs > 0) {
        fail_syncs--;
        return SQLITE_IOERR_FSYNC;
    }
    return real_of(file)->pMethods->xSync(real_of(file), flags);
}

static int disk_size(sqlite3_file *file, sqlite3_int64 *size)
{
    return real_of(file)->pMethods->xFileSize(real_of(file), size);
}

static int disk_lock(sqlite3_file *file, int level)
{
    return real_of(file)->pMethods->xLock(real_of(file), level);
}

static int disk_unlock(sqlite3_file *file, int level)
{
    return real_of(file)->pMethods->xUnlock(real_of(file), level);
}

static int disk_reserved(sqlite3_file *file, int *result)
{
    return real_of(file)->pMethods->xCheckReservedLock(real_of(file), result);
}

static int disk_control(sqlite3_file *file, int what, void *data)
{
    return real_of(file)->pMethods->xFileControl(real_of(file), what, data);
}

static int disk_sector(sqlite3_file *file)
{
    return real_of(file)->pMethods->xSectorSize(real_of(file));
}

static int disk_traits(sqlite3_file *file)
{
    return real_of(file)->pMethods->xDeviceCharacteristics(real_of(file));
}

static int disk_shm_map(sqlite3_file *file, int page, int size, int extend, void volatile **memory)
{
    return real_of(file)->pMethods->xShmMap(real_of(file), page, size, extend, memory);
}

static int disk_shm_lock(sqlite3_file *file, int offset, int n, int flags)
{
    return real_of(file)->pMethods->xShmLock(real_of(file), offset, n, flags);
}

static void disk_shm_barrier(sqlite3_file *file)
{
    real_of(file)->pMethods->xShmBarrier(real_of(file));
}

static int disk_shm_unmap(sqlite3_file *file, int remove)
{
    return real_of(file)->pMethods->xShmUnmap(real_of(file), remove);
}

static const sqlite3_io_methods disk_methods = {
    .iVersion = 2,
    .xClose = disk_close,
    .xRead = disk_read,
    .xWrite = disk_write,
    .xTruncate = disk_truncate,
    .xSync = disk_sync,
    .xFileSize = disk_size,
    .xLock = disk_lock,
    .xUnlock = disk_unlock,
    .xCheckReservedLock = disk_reserved,
    .xFileControl = disk_control,
    .xSectorSize = disk_sector,
    .xDeviceCharacteristics = disk_traits,
    .xShmMap = disk_shm_map,
    .xShmLock = disk_shm_lock,
    .xShmBarrier = disk_shm_barrier,
    .xShmUnmap = disk_shm_unmap,
};

static int disk_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags,
                     int *ret_flags)
{
    struct disk_file *opened = (struct disk_file *)file;

    *opened = (struct disk_file){.log = (flags & SQLITE_OPEN_WAL) != 0,
                                 .real = (sqlite3_file *)(opened + 1)};
    int result = below->xOpen(below, name, opened->real, flags, ret_flags);
    opened->base.pMethods = result == SQLITE_OK ? &disk_methods : NULL;
    return result;
}

static void disk_register(void)
{
    below = sqlite3_vfs_find(NULL);
    disk = *below;
    disk.zName = "failing";
    disk.szOsFile = (int)sizeof(struct disk_file) + below->szOsFile;
    disk.xOpen = disk_open;
    g_assert_cmpint(sqlite3_vfs_register(&disk, 1), ==, SQLITE_OK);
}

/* --- the engine on it --- */

struct fixture {
    struct node_paths *paths;
    char *path;
    struct engine *engine;
    struct mastership me;
};

struct outcome {
    bool done;
    enum engine_result result;
    GError *error;
};

static GPtrArray *one_change(const char *key, guint64 version)
{
    GPtrArray *changes = change_list_new();

    g_ptr_array_add(changes,
                    change_make(CHANGE_PUT, "tag", key, version, json_make("{s:s}", "text", key)));
    return changes;
}

static void committed(enum engine_result result, const GError *error, void *data)
{
    struct outcome *outcome = data;

    *outcome = (struct outcome){true, result, error != NULL ? g_error_copy(error) : NULL};
}

static void commit(struct fixture *fixture, const char *id, guint64 serial, struct outcome *outcome)
{
    g_autoptr(GPtrArray) changes = one_change(id, serial);
    const struct engine_commit commit = {id, fixture->me.epoch, serial, changes};

    fixture->engine->ops->commit(fixture->engine, &commit, committed, outcome);
    world_wait(&outcome->done);
}

static void passed(bool still_master, void *data)
{
    *(int *)data = still_master ? 1 : 0;
}

static int barrier(struct fixture *fixture)
{
    int master = -1;

    fixture->engine->ops->barrier(fixture->engine, passed, &master);
    while (master < 0)
        world_pause(1);
    return master;
}

static void each_cb(const char *kind, const char *key, guint64 version, json_t *object, void *data)
{
    (*(guint *)data)++;
}

static guint64 open_engine(struct fixture *fixture)
{
    g_autoptr(GError) error = NULL;
    guint64 history, serial;
    guint objects = 0;

    fixture->engine = sqlite_engine_open(fixture->path, &error);
    g_assert_no_error(error);
    g_assert_true(
        fixture->engine->ops->load(fixture->engine, &history, &serial, each_cb, &objects, &error));
    g_assert_cmpuint(objects, ==, serial);
    fixture->me = (struct mastership){.node = NODE_A, .boot_id = "boot", .journal_id = "journal"};
    g_assert_true(fixture->engine->ops->campaign(fixture->engine, &fixture->me, &error));
    return serial;
}

static void set_up(struct fixture *fixture, gconstpointer unused)
{
    g_autoptr(GPtrArray) changes = one_change("first", 1);
    g_autoptr(GError) error = NULL;

    fixture->paths = world_new(NODE_A);
    fixture->path = g_build_filename(fixture->paths->var, "store.db", NULL);
    g_assert_true(sqlite_engine_create(fixture->path, 1, changes, &error));
    g_assert_cmpuint(open_engine(fixture), ==, 1);
}

static void tear_down(struct fixture *fixture, gconstpointer unused)
{
    fail_syncs = fail_writes = 0;
    room = 0;
    fixture->engine->ops->close(fixture->engine);
    world_pause(1);
    world_remove(fixture->paths);
    g_free(fixture->path);
}

/* Whether the commit is on the disk is unknown: it says so, stops serving as master, and a restart
 * finds out. */
static void test_failed_sync(struct fixture *fixture, gconstpointer unused)
{
    struct outcome before = {0}, failed = {0}, after = {0}, again = {0};

    commit(fixture, "before", 2, &before);
    g_assert_cmpint(before.result, ==, ENGINE_DONE);
    fail_syncs = 1;
    commit(fixture, "failed", 3, &failed);
    g_assert_cmpint(failed.result, ==, ENGINE_UNKNOWN);
    assert_error(&failed.error, STORAGE, "disk I/O error");
    commit(fixture, "after", 4, &after);
    g_assert_cmpint(after.result, ==, ENGINE_REFUSED);
    assert_error(&after.error, STORAGE, "wconfd has to be restarted");
    g_assert_cmpint(barrier(fixture), ==, 0);
    fixture->engine->ops->close(fixture->engine);
    guint64 serial = open_engine(fixture);
    g_assert_cmpuint(fixture->engine->ops->lookup(fixture->engine, "before"), ==, 2);
    g_assert_cmpuint(fixture->engine->ops->lookup(fixture->engine, "failed"), ==,
                     serial == 3 ? 3 : 0);
    g_assert_cmpuint(fixture->engine->ops->lookup(fixture->engine, "after"), ==, 0);
    commit(fixture, "again", serial + 1, &again);
    g_assert_cmpint(again.result, ==, ENGINE_DONE);
    g_assert_cmpint(barrier(fixture), ==, 1);
}

static void test_failed_write(struct fixture *fixture, gconstpointer unused)
{
    struct outcome failed = {0};

    fail_writes = 1;
    commit(fixture, "failed", 2, &failed);
    g_assert_cmpint(failed.result, !=, ENGINE_DONE);
    g_assert_nonnull(failed.error);
    g_clear_error(&failed.error);
    fixture->engine->ops->close(fixture->engine);
    guint64 serial = open_engine(fixture);
    g_assert_cmpuint(fixture->engine->ops->lookup(fixture->engine, "failed"), ==,
                     serial == 2 ? 2 : 0);
}

/* No campaign is won on a disk that does not keep it. */
static void test_failed_campaign(struct fixture *fixture, gconstpointer unused)
{
    struct mastership other = {.node = NODE_A, .boot_id = "other boot", .journal_id = "journal"};
    g_autoptr(GError) error = NULL;

    fail_syncs = 1;
    g_assert_false(fixture->engine->ops->campaign(fixture->engine, &other, &error));
    assert_error(&error, STORAGE, "disk I/O error");
}

/* --- a copy on a full disk --- */

#define PIECES 50

/* Of this many objects of 1 KiB and more in each piece. */
static bool refill(struct copy *copy, guint64 serial, guint objects, GError **error)
{
    const struct copy_batch end = {1, 1, serial, NULL, NULL};
    g_autofree char *text = g_strnfill(KIB(1), 'x');
    bool ok = copy->ops->refill_begin(copy, error);

    for (guint i = 0; ok && i < PIECES; i++) {
        g_autoptr(GPtrArray) changes = change_list_new();
        for (guint k = 0; k < objects; k++) {
            g_autofree char *key = g_strdup_printf("%u-%u", i, k);
            g_ptr_array_add(
                changes, change_make(CHANGE_PUT, "tag", key, 1, json_make("{s:s}", "text", text)));
        }
        ok = copy->ops->refill_piece(copy, changes, error);
    }
    return ok && copy->ops->refill_end(copy, &end, error);
}

static void assert_copy(struct copy *copy, const char *path, guint64 serial, guint objects)
{
    g_autofree char *log = g_strconcat(path, "-wal", NULL);
    struct copy_position at;
    struct stat status;
    guint found = 0;

    copy->ops->position(copy, &at);
    g_assert_cmpuint(at.serial, ==, serial);
    g_assert_true(copy->ops->load(copy, each_cb, &found, NULL));
    g_assert_cmpuint(found, ==, objects);
    g_assert_cmpint(stat(log, &status), ==, 0);
    g_assert_cmpint(status.st_size, ==, 0);
}

/* As a refill of an earlier version that was cut off has left it. */
static void leave_table(const char *path)
{
    sqlite3 *db;

    g_assert_cmpint(sqlite3_open(path, &db), ==, SQLITE_OK);
    g_assert_cmpint(sqlite3_exec(db,
                                 "CREATE TABLE refill(kind TEXT, key TEXT, version INTEGER NOT "
                                 "NULL, json TEXT NOT NULL, PRIMARY KEY(kind, key)) WITHOUT ROWID; "
                                 "INSERT INTO refill VALUES('tag', 'old', 1, '{}')",
                                 NULL, NULL, NULL),
                    ==, SQLITE_OK);
    sqlite3_close(db);
}

/* What a refill took of the disk it gives back, whether it came to its end or not: others need that
 * room, and the next try does. */
static void test_full_refill(struct fixture *fixture, gconstpointer unused)
{
    g_autofree char *path = g_build_filename(fixture->paths->var, "copy.db", NULL);
    g_autoptr(GError) error = NULL;
    struct copy *copy = sqlite_copy_open(path, &error);

    copy->ops->close(copy);
    leave_table(path);
    copy = sqlite_copy_open(path, &error);
    g_assert_no_error(error);
    g_assert_true(refill(copy, 5, 1, &error));
    assert_copy(copy, path, 5, PIECES);
    for (guint i = 0; i < 2; i++) {
        room = KIB(500);
        g_assert_false(refill(copy, 9, 100, &error));
        assert_error(&error, STORAGE, "no space left on its disk");
        assert_copy(copy, path, 5, PIECES);
    }
    room = 0;
    g_assert_true(refill(copy, 9, 100, &error));
    assert_copy(copy, path, 9, PIECES * 100);
    copy->ops->close(copy);
}

#define ADD(path, fn) g_test_add(path, struct fixture, NULL, set_up, fn, tear_down)

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    disk_register();
    ADD("/sqlite-fault/failed-sync#SAF-04,SAF-08", test_failed_sync);
    ADD("/sqlite-fault/failed-write#SAF-04", test_failed_write);
    ADD("/sqlite-fault/failed-campaign#SAF-01", test_failed_campaign);
    ADD("/sqlite-fault/full-refill#SAF-07", test_full_refill);
    return g_test_run();
}
