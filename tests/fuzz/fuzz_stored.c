/* What is read of a back end as text: names of data, the marker of a directory, what says that data
 * is whole, and what children say. Whoever can write to the directory has written it. */
#include "fuzz.h"

#include "backend/volume/dir_text.h"

#include <string.h>

/* One spelling: what is taken for a name of data is the name that such data has. */
static void read_name(const char *text)
{
    enum resource_type type;
    const char *name = text;
    g_autofree char *uuid = NULL;
    guint64 claim;
    if (dir_name_parse(text, &type, &name))
        g_assert_true(g_str_has_prefix(text, dir_folder(type)) && name[-1] == '/');
    if (!volume_data_parse(name, &uuid, &claim))
        return;
    g_autofree char *again = volume_data_name(uuid, claim);
    g_assert_cmpstr(name, ==, again);
    g_assert_cmpuint(claim, >, 0);
}

static void read_list(const char *text)
{
    g_autoptr(GPtrArray) list = dir_list_parse(text);
    for (guint i = 0; i < list->len; i++) {
        const struct volume_data *data = list->pdata[i];
        g_autofree char *uuid = NULL;
        guint64 claim;
        g_assert_cmpuint(data->type, <, DIR_FOLDERS);
        g_assert_true(volume_data_parse(data->name, &uuid, &claim));
    }
}

static void read_marker(const char *text)
{
    struct dir_marker marker;
    if (!dir_marker_parse(text, &marker))
        return;
    g_assert_true(*marker.backend && *marker.cluster && *marker.name);
    for (const char *at = marker.name; *at; at++) /* goes into messages */
        g_assert_true(g_ascii_isgraph(*at));
}

static void read_answers(const char *text)
{
    char sum[DIR_SUM_CHARS + 1];
    guint64 number, other;
    g_autoptr(GError) error = NULL;
    struct volume_check check = {.problems = g_ptr_array_new_with_free_func(g_free),
                                 .notes = g_ptr_array_new_with_free_func(g_free)};
    dir_space_parse(text, &number, &other);
    if (dir_sum_parse(text, &number, sum))
        g_assert_cmpuint(strspn(sum, "0123456789abcdef"), ==, DIR_SUM_CHARS);
    dir_check_parse(text, &check);
    dir_failure_parse(1, text, &error);
    g_assert_nonnull(error);
    g_assert_true(error->domain == FETTLE_ERROR && error->message);
    g_ptr_array_unref(check.problems);
    g_ptr_array_unref(check.notes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    if (len == 0)
        return 0;
    g_autofree char *text = g_strndup((const char *)data, len);
    g_autofree char *said = g_utf8_make_valid(text, -1); /* as tool_output() */
    read_name(text);
    read_marker(text);
    /* Only of its own claim, and of no more than there is. */
    if (dir_whole_parse(text, "11111111-0000-4000-8000-000000000001.17", 1 << 30))
        g_assert_true(g_ascii_strtoull(text, NULL, 10) == 17);
    read_list(said);
    read_answers(said);
    return 0;
}
