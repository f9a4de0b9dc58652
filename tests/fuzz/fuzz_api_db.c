/* The store of identities as anybody may have left it: a whole file, or rows of it (a line for the
 * kind, one for the key, one for the object). What is taken can be listed and looked for. */
#include "fuzz.h"

#include "core/api/identity_model.h"
#include "helper/fake_identity.h"
#include "io/sqlite/identity_store.h"
#include "proto/records.h"

#include <glib/gstdio.h>
#include <string.h>

static void use(struct identity_store *store)
{
    static const char *const kinds[] = {"api_user",       "api_role",  "api_project",
                                        "api_assignment", "api_quota", "api_credential",
                                        "api_revoked"};
    g_autoptr(GError) error = NULL;
    struct identity *identity = identity_new(store, &error);
    g_assert_true(identity || fettle_error_is(error, CORRUPT) || fettle_error_is(error, STORAGE));
    for (guint i = 0; identity && i < G_N_ELEMENTS(kinds); i++) {
        g_autoptr(GPtrArray) list = identity_list(identity, kinds[i]);
        identity_named(identity, kinds[i], "x");
    }
    if (identity)
        identity_free(identity);
}

static void read_file(const char *data, size_t len)
{
    static char *path;
    static const char *const ends[] = {"", "-wal", "-shm"};
    if (!path) {
        g_autofree char *folder = g_dir_make_tmp("fettle-XXXXXX", NULL);
        path = g_build_filename(folder, "api.db", NULL);
    }
    g_autoptr(GError) error = NULL;
    g_file_set_contents_full(path, data, (gssize)len, G_FILE_SET_CONTENTS_NONE, 0600, NULL);
    struct identity_store *store = identity_store_open(path, &error);
    g_assert_true(store || error->domain == FETTLE_ERROR);
    if (store) {
        use(store);
        identity_store_close(store);
    }
    for (guint i = 0; i < G_N_ELEMENTS(ends); i++) {
        g_autofree char *file = g_strconcat(path, ends[i], NULL);
        g_unlink(file);
    }
}

static void read_rows(const char *text)
{
    struct fake_identity *fake = fake_identity_new();
    g_auto(GStrv) lines = g_strsplit(text, "\n", 64);
    for (guint i = 0; i + 2 < g_strv_length(lines); i += 3) {
        json_t *object = json_parse_limited(lines[i + 2], strlen(lines[i + 2]), 4096, NULL);
        if (object && !strchr(lines[i], '/'))
            fake_identity_put(fake, lines[i], lines[i + 1], object);
        else
            json_decref(object);
    }
    use(&fake->store);
    fake_identity_free(fake);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    if (len == 0)
        return 0;
    g_autofree char *text = g_strndup((const char *)data, len);
    if (g_str_has_prefix(text, "SQLite"))
        read_file((const char *)data, len);
    else
        read_rows(text);
    return 0;
}
