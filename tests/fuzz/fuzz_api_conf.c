/* etc/apid.conf as somebody has written it: what is taken is written, and read as the same again;
 * what is not is refused with the file. */
#include "fuzz.h"

#include "io/api_conf.h"
#include "proto/records.h"

#include <glib/gstdio.h>
#include <string.h>

static void check_written(const struct node_paths *paths, const struct api_conf *conf)
{
    g_autoptr(GError) error = NULL;
    api_conf_write(paths, conf, &error);
    g_assert_no_error(error);
    record_autoptr(api_conf) again = api_conf_read(paths, &error);
    g_assert_no_error(error);
    json_autoptr one = api_conf_to_json(conf);
    json_autoptr other = api_conf_to_json(again);
    g_assert_true(json_equal(one, other));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *folder = g_dir_make_tmp("fettle-XXXXXX", &error);
    g_assert_no_error(error);
    const struct node_paths paths = {.etc = folder};
    g_autofree char *path = api_conf_path(&paths);
    g_file_set_contents_full(path, (const char *)data, (gssize)len, G_FILE_SET_CONTENTS_NONE, 0600,
                             &error);
    g_assert_no_error(error);
    record_autoptr(api_conf) conf = api_conf_read(&paths, &error);
    if (conf)
        check_written(&paths, conf);
    else
        g_assert_nonnull(strstr(error->message, path));
    g_unlink(path);
    g_rmdir(folder);
    return 0;
}
