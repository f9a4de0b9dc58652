/*
 * A store from any bytes, most of them one of the format before, of the present one, or one whose
 * last commits are in its write-ahead log (corpus/store): it is refused, or it is read, brought to
 * the present format by its first transaction, and read again as it was. "wal N", and the end of a
 * line, stand before a store of N bytes with its log behind it.
 */
#include "fuzz.h"
#include "io/sqlite/sqlite_store.h"

#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

static char *path;

static void clean_up(void)
{
    static const char *const endings[] = {"", "-wal", "-shm", ".lock"};
    for (guint i = 0; i < G_N_ELEMENTS(endings); i++) {
        g_autofree char *name = g_strconcat(path, endings[i], NULL);
        g_unlink(name);
    }
}

static void remove_folder(void)
{
    g_autofree char *folder = g_path_get_dirname(path);
    clean_up();
    g_rmdir(folder);
    g_free(path);
}

/* In memory, because it is written some thousand times. */
static void make_path(void)
{
    g_autofree char *template = g_strdup("/dev/shm/fettle-fuzz-XXXXXX");
    char *folder = g_mkdtemp(template);
    g_assert_nonnull(folder);
    path = g_build_filename(folder, "store.db", NULL);
    atexit(remove_folder);
}

static void add_object(const char *kind, const char *key, guint64 version, json_t *object,
                       void *text)
{
    g_autofree char *json = json_to_text(object);
    g_string_append_printf(text, "%s %s %" G_GUINT64_FORMAT " %s\n", kind, key, version, json);
}

/* NULL: refused. The store stays open in `ret_store`. */
static char *read_store(struct sqlite_store **ret_store)
{
    g_autoptr(GError) error = NULL;
    GString *text = g_string_new(NULL);
    struct sqlite_store *store = sqlite_store_open(path, &error);
    bool ok = store != NULL && sqlite_store_load(store, add_object, text, &error);
    g_assert_true(ok == (error == NULL));
    if (ok)
        *ret_store = store;
    else
        sqlite_store_close(store);
    char *found = g_string_free(text, !ok);
    return ok ? found : NULL;
}

static void bring_up(struct sqlite_store *store)
{
    g_autoptr(GError) error = NULL;
    bool unknown = false;
    g_assert_true(sqlite_store_begin(store, &error));
    g_assert_true(sqlite_store_finish(store, &unknown, &error));
    g_assert_no_error(error);
    sqlite_store_close(store);
}

/* Sets `*data` and `*len` to the store in it, `*ret_log` to what is behind that. */
static size_t split(const uint8_t **data, size_t *len, const uint8_t **ret_log)
{
    static const char mark[] = "wal ";
    char head[16] = "";
    char *end = NULL;

    if (*len < sizeof head || memcmp(*data, mark, strlen(mark)) != 0)
        return 0;
    memcpy(head, *data, sizeof head - 1);
    guint64 store = g_ascii_strtoull(head + strlen(mark), &end, 10);
    size_t skip = (size_t)(end - head) + 1;
    if (*end != '\n' || store > *len - skip)
        return 0;
    *data += skip;
    size_t rest = *len - skip - (size_t)store;
    *len = (size_t)store;
    *ret_log = *data + store;
    return rest;
}

static void write_store(const uint8_t *data, size_t len)
{
    const uint8_t *log = NULL;
    size_t log_len = split(&data, &len, &log);
    g_autofree char *log_path = g_strconcat(path, "-wal", NULL);

    g_assert_true(g_file_set_contents(path, (const char *)data, (gssize)len, NULL));
    if (log_len > 0)
        g_assert_true(g_file_set_contents(log_path, (const char *)log, (gssize)log_len, NULL));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct sqlite_store *store = NULL;
    if (path == NULL)
        make_path();
    clean_up();
    write_store(data, len);
    g_autofree char *before = read_store(&store);
    if (before == NULL)
        return 0;
    bring_up(store);
    g_autofree char *after = read_store(&store);
    g_assert_cmpstr(before, ==, after);
    sqlite_store_close(store);
    return 0;
}
