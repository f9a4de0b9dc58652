/*
 * A store from any bytes, most of them one of the format before (corpus/store): it is refused, or
 * it is read, brought to the present format by its first transaction, and read again as it was.
 */
#include "fuzz.h"
#include "io/sqlite_store.h"

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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct sqlite_store *store = NULL;
    if (path == NULL)
        make_path();
    clean_up();
    g_assert_true(g_file_set_contents(path, (const char *)data, (gssize)len, NULL));
    g_autofree char *before = read_store(&store);
    if (before == NULL)
        return 0;
    bring_up(store);
    g_autofree char *after = read_store(&store);
    g_assert_cmpstr(before, ==, after);
    sqlite_store_close(store);
    return 0;
}
