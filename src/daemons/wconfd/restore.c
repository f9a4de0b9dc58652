/* See restore.h. The new store is made beside the old one and renamed as the last step; whatever
 * ends this process before that leaves the old one, and the same command can be given again. */
#include "daemons/wconfd/restore.h"

#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "core/config/restored.h"
#include "io/engine_file.h"
#include "io/files.h"
#include "io/loop.h"
#include "io/sqlite/backup.h"
#include "io/sqlite/sqlite_backup.h"
#include "io/sqlite/sqlite_store.h"
#include "proto/engine.h"
#include "proto/horizon.h"

#define STORE_PART "store.db"
#define CONFIG_PART "etc/node.json"
#define AUTHORITY_PART "etc/ca.crt"

/* In this order: the identity last, because it is what a daemon looks for first. */
static const char *const etc_parts[] = {AUTHORITY_PART, "etc/ca.key", "etc/node.crt",
                                        "etc/node.key", CONFIG_PART};

struct restore {
    const struct node_paths *paths;
    struct store_backup *backup;
    struct node_config *node; /* this host's identity, or the backup's if it has none */
    struct config *config;
    char *store, *made;
    bool renewed; /* the keys of the cluster, since the backup was taken */
    int reserved;
};

static void restore_clear(struct restore *restore)
{
    store_backup_free(restore->backup);
    node_config_free(restore->node);
    config_free(restore->config);
    if (restore->made) {
        unlink(restore->made);
        sqlite_store_remove_traces(restore->made);
    }
    g_free(restore->store);
    g_free(restore->made);
    if (restore->reserved >= 0)
        close(restore->reserved);
}

/* --- who this host is --- */

static char *etc_path(const struct restore *restore, const char *part)
{
    return g_build_filename(restore->paths->etc, part + strlen("etc/"), NULL);
}

static struct node_config *identity_of_backup(const struct restore *restore, GError **error)
{
    GBytes *part = backup_part(restore->backup, CONFIG_PART);
    size_t len = 0;
    const char *text = part ? g_bytes_get_data(part, &len) : NULL;
    if (!text) {
        fettle_set_error(error, WRONG_STATE,
                         "this host belongs to no cluster, and the backup has no %s", CONFIG_PART);
        return NULL;
    }
    json_autoptr json = json_parse_limited(text, len, LIMIT_BACKUP_HEADER_BYTES, error);
    record_autoptr(node_config) node = json ? node_config_parse(json, RECORD_KEEP, error) : NULL;
    if (node && g_hostname_is_ip_address(node->address))
        return g_steal_pointer(&node);
    if (node)
        fettle_set_error(error, WRONG_INPUT, "address: \"%s\" is no IP address", node->address);
    g_prefix_error(error, CONFIG_PART " in the backup: ");
    return NULL;
}

/* A host that has an identity keeps it; it must be of this cluster. */
static bool find_identity(struct restore *restore, GError **error)
{
    g_autoptr(GError) missing = NULL;
    const struct backup_header *header = restore->backup->header;
    restore->node = node_config_read(restore->paths, &missing);
    if (!restore->node && fettle_error_is(missing, UNKNOWN_ENTITY))
        restore->node = identity_of_backup(restore, error);
    else if (!restore->node)
        g_propagate_error(error, g_steal_pointer(&missing));
    if (!restore->node)
        return false;
    if (!strcmp(restore->node->cluster_uuid, header->cluster))
        return true;
    fettle_set_error(error, WRONG_STATE,
                     "this host (node %s) belongs to the cluster %s, and the backup is of %s (%s); "
                     "nothing was changed",
                     restore->node->name, restore->node->cluster_uuid, header->name,
                     header->cluster);
    return false;
}

/* What the members have would stay in force on the other candidates. */
static bool check_engine(const struct restore *restore, GError **error)
{
    record_autoptr(engine_config) config = engine_file_read(restore->paths, error);
    if (!config)
        return false;
    if (config->kind == ENGINE_KIND_SQLITE)
        return true;
    fettle_set_error(error, WRONG_STATE,
                     "the configuration of this cluster is in etcd (%s/" ENGINE_FILE_NAME
                     "), which a store that is put back does not replace. Go back to the engine "
                     "sqlite first (fettle cluster engine sqlite); if etcd is lost for good, end "
                     "the daemons of all candidates and remove that file there. Nothing was "
                     "changed",
                     restore->paths->etc);
    return false;
}

/* Another authority than the nodes trust would be no use to anybody. A node of this cluster knows
 * better than the backup which one that is; its keys stay as they are. */
static bool check_authority(struct restore *restore, GError **error)
{
    g_autofree char *path = etc_path(restore, AUTHORITY_PART);
    g_autofree char *identity = etc_path(restore, CONFIG_PART);
    GBytes *part = backup_part(restore->backup, AUTHORITY_PART);
    size_t len = 0;
    g_autofree char *here = files_read_path(path, LIMIT_BACKUP_HEADER_BYTES, &len, NULL);
    if (!here || !part)
        return true;
    g_autoptr(GBytes) mine = g_bytes_new(here, len);
    restore->renewed = !g_bytes_equal(mine, part);
    if (!restore->renewed || g_file_test(identity, G_FILE_TEST_EXISTS))
        return true;
    fettle_set_error(error, WRONG_STATE,
                     "%s is another one than that of the backup; nothing was changed", path);
    return false;
}

static bool put_etc_back(const struct restore *restore, GError **error)
{
    for (guint i = 0; i < G_N_ELEMENTS(etc_parts) && !restore->renewed; i++) {
        GBytes *part = backup_part(restore->backup, etc_parts[i]);
        g_autofree char *path = etc_path(restore, etc_parts[i]);
        size_t len = 0;
        const char *data = part ? g_bytes_get_data(part, &len) : NULL;
        if (!part || g_file_test(path, G_FILE_TEST_EXISTS))
            continue;
        if (!files_write_path(path, data, len, 0600, true, error))
            return false;
    }
    return true;
}

/* --- the store --- */

/* As wconfd will read it, when it starts. `header`: whose numbers it must have; NULL: any. */
static bool load_store(const struct restore *restore, struct config *config,
                       const struct backup_header *header, GError **error)
{
    struct config_loading loading = {config, NULL};
    struct sqlite_store *store = sqlite_store_open(restore->made, error);
    bool ok = store && sqlite_store_load(store, config_load_object, &loading, error);
    if (loading.error) {
        g_clear_error(error);
        g_propagate_error(error, loading.error);
        ok = false;
    }
    if (!ok)
        g_prefix_error(error, "the store in the backup is of no use, and nothing was changed: ");
    if (ok && header &&
        (sqlite_store_history(store) != header->history ||
         sqlite_store_master(store)->epoch != header->epoch ||
         sqlite_store_serial(store) != header->serial)) {
        fettle_set_error(error, CORRUPT, "the store in the backup is not the one of its header");
        ok = false;
    }
    sqlite_store_close(store);
    return ok;
}

/* What was read may be at the end of what can be written. */
static bool is_sound(const struct restore *restore, GError **error)
{
    struct config *config = config_new();
    bool ok = load_store(restore, config, NULL, error);
    config_free(config);
    sqlite_store_remove_traces(restore->made);
    return ok;
}

static bool unpack_store(struct restore *restore, GError **error)
{
    GBytes *part = backup_part(restore->backup, STORE_PART);
    size_t len = 0;
    const char *data = part ? g_bytes_get_data(part, &len) : NULL;
    if (!data) {
        fettle_set_error(error, CORRUPT, "the backup has no %s; nothing was changed", STORE_PART);
        return false;
    }
    restore->made = g_strconcat(restore->store, ".restore", NULL);
    restore->config = config_new();
    sqlite_store_remove_traces(restore->made);
    return files_write_path(restore->made, data, len, 0600, true, error) &&
           load_store(restore, restore->config, restore->backup->header, error);
}

static guint64 number_in(const struct restore *restore, const char *name, const char *field)
{
    g_autofree char *path = g_build_filename(restore->paths->var, "node", name, NULL);
    size_t len = 0;
    g_autofree char *text = files_read_path(path, LIMIT_FRAME_BYTES, &len, NULL);
    json_autoptr json = text ? json_parse_limited(text, len, LIMIT_FRAME_BYTES, NULL) : NULL;
    json_int_t number = json_integer_value(json_object_get(json, field));
    return number > 0 ? (guint64)number : 0;
}

/* SAF-02, SAF-103. The history above all that is known here; and the time, so that two restores of
 * one backup on two hosts, which know nothing of each other, do not make the same. Epoch and serial
 * go on from those of the backup, whoever wrote them. */
static bool new_history(const struct restore *restore, guint64 *ret_history, GError **error)
{
    const struct backup_header *header = restore->backup->header;
    gint64 now = loop_wall_us();
    guint64 seen = MAX(number_in(restore, "state.json", "history"),
                       number_in(restore, "promise.json", "history"));
    guint64 known = MAX(MAX(header->history, seen), sqlite_store_noted_history(restore->reserved));
    guint64 history = MAX(known + 1, (guint64)(now / G_USEC_PER_SEC));
    if (!horizon_check(HORIZON_HISTORY, history, seen, now, error) ||
        !horizon_check(HORIZON_EPOCH, header->epoch + 1, number_in(restore, "state.json", "epoch"),
                       now, error) ||
        !horizon_check(HORIZON_SERIAL, engine_leap(header->serial, now),
                       number_in(restore, "state.json", "serial"), now, error)) {
        g_prefix_error(error,
                       "no other node would believe this restore, and nothing was changed: ");
        return false;
    }
    *ret_history = history;
    return true;
}

static char *new_secret(void)
{
    guint8 bytes[32];
    GString *text = g_string_new(NULL);
    g_assert(getrandom(bytes, sizeof bytes, 0) == (ssize_t)sizeof bytes);
    for (guint i = 0; i < sizeof bytes; i++)
        g_string_append_printf(text, "%02x", bytes[i]);
    return g_string_free(text, FALSE);
}

/* What was made anew with the keys does not become the old one again. */
static bool put_store_back(struct restore *restore, GError **error)
{
    g_autofree char *secret = restore->renewed ? new_secret() : NULL;
    g_autofree char *record = g_uuid_string_random();
    const struct restoring restoring = {.node_uuid = restore->node->node_uuid,
                                        .now = (guint64)(loop_wall_us() / G_USEC_PER_SEC),
                                        .taken = restore->backup->header->taken,
                                        .record_uuid = record,
                                        .secret = secret};
    g_autoptr(GPtrArray) changes = restored_changes(restore->config, &restoring, error);
    guint64 history = 0;
    return changes && new_history(restore, &history, error) &&
           sqlite_store_renew(restore->made, history, changes, error) && is_sound(restore, error) &&
           put_etc_back(restore, error) &&
           sqlite_store_replace(restore->reserved, restore->made, restore->store, history, error);
}

bool wconfd_restore(const struct node_paths *paths, const char *file, GError **error)
{
    struct restore restore = {.paths = paths, .reserved = -1};
    restore.store = g_build_filename(paths->var, STORE_PART, NULL);
    restore.backup = backup_read(file, error);
    bool ok = restore.backup && find_identity(&restore, error) && check_engine(&restore, error) &&
              check_authority(&restore, error) && node_paths_make(paths, error);
    if (ok)
        restore.reserved = sqlite_store_reserve(restore.store, error);
    ok = ok && restore.reserved >= 0 && unpack_store(&restore, error) &&
         put_store_back(&restore, error);
    restore_clear(&restore);
    return ok;
}
