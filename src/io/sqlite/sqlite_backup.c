/* See sqlite_backup.h. */
#include "io/sqlite/sqlite_backup.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <stdio.h>
#include <unistd.h>

#include "io/crash.h"
#include "io/sqlite/sqlite_private.h"

#define BUSY_MS 5000
#define NOTE_CHARS 128

static bool sync_folder_of(const char *path, GError **error)
{
    g_autofree char *folder = g_path_get_dirname(path);
    return store_sync_path(folder, error);
}

static void unlink_with(const char *path, const char *ending)
{
    g_autofree char *name = g_strconcat(path, ending, NULL);
    g_unlink(name);
}

void sqlite_store_remove_traces(const char *path)
{
    unlink_with(path, ".lock");
    unlink_with(path, "-wal");
    unlink_with(path, "-shm");
}

/* --- taking --- */

static bool copy_failed(const char *path, sqlite3 *db, GError **error)
{
    fettle_set_error(error, STORAGE, "%s: cannot be copied: %s", path, sqlite3_errmsg(db));
    return false;
}

static bool copy_pages(const char *from, const char *to, GError **error)
{
    sqlite3 *source = NULL, *target = NULL;
    bool ok = sqlite3_open_v2(from, &source, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK;
    if (!ok)
        copy_failed(from, source, error);
    sqlite3_busy_timeout(source, BUSY_MS);
    if (ok &&
        sqlite3_open_v2(to, &target, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL) != SQLITE_OK)
        ok = copy_failed(to, target, error);
    sqlite3_backup *backup = ok ? sqlite3_backup_init(target, "main", source, "main") : NULL;
    if (backup != NULL) {
        crash_point("backup: copy");
        sqlite3_backup_step(backup, -1);
        ok = sqlite3_backup_finish(backup) == SQLITE_OK || copy_failed(to, target, error);
    } else if (ok) {
        ok = copy_failed(to, target, error);
    }
    sqlite3_close(source);
    sqlite3_close(target);
    return ok;
}

static void note_cluster(const char *kind, const char *key, guint64 version, json_t *object,
                         void *data)
{
    struct store_summary *summary = data;
    const char *name = json_string_value(json_object_get(object, "name"));
    if (strcmp(kind, "cluster") != 0 || name == NULL)
        return;
    g_strlcpy(summary->cluster, key, sizeof summary->cluster);
    g_strlcpy(summary->name, name, sizeof summary->name);
    const char *engine = json_string_value(json_object_get(object, "engine"));
    g_strlcpy(summary->engine, engine != NULL ? engine : "", sizeof summary->engine);
}

/* Opens it as wconfd would: every row against its checksum. */
static bool look_through(const char *path, struct store_summary *ret_summary, GError **error)
{
    struct store_summary summary = {0};
    struct sqlite_store *store = sqlite_store_open(path, error);
    bool ok = store != NULL && sqlite_store_load(store, note_cluster, &summary, error);
    if (ok) {
        summary.history = sqlite_store_history(store);
        summary.epoch = sqlite_store_master(store)->epoch;
        summary.serial = sqlite_store_serial(store);
        summary.role = (enum copy_role)store->meta.role;
        *ret_summary = summary;
    }
    sqlite_store_close(store);
    sqlite_store_remove_traces(path);
    return ok;
}

bool sqlite_store_copy(const char *from, const char *to, struct store_summary *ret_summary,
                       GError **error)
{
    if (!g_file_test(from, G_FILE_TEST_EXISTS)) {
        fettle_set_error(error, UNKNOWN_ENTITY,
                         "there is no %s: this host has no copy of a configuration; give the "
                         "command on the master",
                         from);
        return false;
    }
    g_unlink(to);
    sqlite_store_remove_traces(to);
    bool ok = copy_pages(from, to, error) && g_chmod(to, 0600) == 0 &&
              look_through(to, ret_summary, error) && store_sync_path(to, error);
    if (!ok)
        g_unlink(to);
    return ok;
}

/* --- putting back --- */

static bool renew(struct sqlite_store *store, guint64 history, const GPtrArray *rows,
                  GError **error)
{
    g_autofree char *commit_id = g_uuid_string_random();
    bool refused = false, unknown = false;
    if (!sqlite_store_begin(store, error))
        return false;
    guint64 epoch = store->pending.master.epoch;
    store->pending.history = history;
    store->pending.master = (struct mastership){.epoch = epoch};
    /* It may have been taken from a candidate's copy. No commit of another history is a repeated
     * one of this. */
    store->pending.role = COPY_ENGINE;
    /* Above all that was stored since it was taken: ConfD's clients know nothing of histories. */
    store->pending.serial = engine_leap(store->pending.serial, g_get_real_time()) - 1;
    if (!store_begin_log(store, error) || !store_run(store, "DELETE FROM ids", error))
        return false;
    store->pending_id_rows = 0;
    return sqlite_store_add(store, commit_id, epoch, store->pending.serial + 1, rows, &refused,
                            error) &&
           sqlite_store_finish(store, &unknown, error);
}

bool sqlite_store_renew(const char *path, guint64 history, const GPtrArray *changes, GError **error)
{
    g_autoptr(GPtrArray) rows = store_rows_from_changes(changes);
    struct sqlite_store *store = sqlite_store_open(path, error);
    bool ok = store != NULL && sqlite_store_load(store, NULL, NULL, error) &&
              renew(store, history, rows, error);
    sqlite_store_close(store);
    sqlite_store_remove_traces(path);
    return ok && store_sync_path(path, error);
}

int sqlite_store_reserve(const char *path, GError **error)
{
    g_autofree char *name = g_strconcat(path, ".lock", NULL);
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd >= 0 && fcntl(fd, F_OFD_SETLK, &lock) == 0)
        return fd;
    if (fd >= 0 && (errno == EAGAIN || errno == EACCES))
        fettle_set_error(error, WRONG_STATE,
                         "fettle-wconfd of this node runs and has %s; stop it first: systemctl "
                         "stop fettle.target",
                         path);
    else
        fettle_set_error(error, STORAGE,
                         "cannot lock %s: %s; the store is to be written there: look at the disk, "
                         "and give the command again",
                         name, g_strerror(errno));
    if (fd >= 0)
        close(fd);
    return -1;
}

guint64 sqlite_store_noted_history(int reserved)
{
    char note[NOTE_CHARS] = "";
    guint64 history = 0;
    if (pread(reserved, note, sizeof note - 1, 0) <= 0)
        return 0;
    char *end = strchr(note, ' ');
    if (end != NULL)
        *end = '\0';
    return g_ascii_string_to_unsigned(note, 10, 0, RECORD_NUMBER_MAX, &history, NULL) ? history : 0;
}

/* With its write-ahead log, which may have what the file has not. */
static bool put_aside(const char *path, guint64 history, GError **error)
{
    static const char *const endings[] = {"-wal", ""};
    for (guint i = 0; i < G_N_ELEMENTS(endings); i++) {
        g_autofree char *from = g_strconcat(path, endings[i], NULL);
        g_autofree char *to =
            g_strdup_printf("%s.before-%" G_GUINT64_FORMAT "%s", path, history, endings[i]);
        crash_point("backup: put aside");
        if (g_rename(from, to) == 0 || errno == ENOENT)
            continue;
        fettle_set_error(error, STORAGE, "cannot rename %s to %s: %s", from, to, g_strerror(errno));
        return false;
    }
    unlink_with(path, "-shm");
    return true;
}

bool sqlite_store_replace(int reserved, const char *made, const char *path, guint64 history,
                          GError **error)
{
    if (!put_aside(path, history, error))
        return false;
    /* The note is of the store that was. */
    if (ftruncate(reserved, 0) != 0) {
        fettle_set_error(error, STORAGE, "%s.lock: %s", path, g_strerror(errno));
        return false;
    }
    crash_point("backup: rename");
    if (g_rename(made, path) != 0) {
        fettle_set_error(error, STORAGE, "cannot rename %s to %s: %s", made, path,
                         g_strerror(errno));
        return false;
    }
    return sync_folder_of(path, error);
}
