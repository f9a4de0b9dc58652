/* An archive with more jobs than one query reads. */
#include "unit/core/world/queue_world.h"

static void put_archived(struct queue_world *w, guint64 id)
{
    g_autofree char *name = g_strdup_printf(
        "queue/archive/%" G_GUINT64_FORMAT "/job-%" G_GUINT64_FORMAT, id / ARCHIVE_FOLDER_JOBS, id);
    json_autoptr job = json_make("{sI, s[{so, ss}], ss}", "id", (json_int_t)id, "ops", "input",
                                 queue_delay(NULL), "status", "success", "status", "success");
    g_autofree char *text = json_to_text(job);

    fake_file_put(w->world, MASTER, FILE_STATE, name, text);
}

/* Ids of an answer of Query, then "more" if it says so. */
static void check_listed(struct queue_world *w, const char *filter, const char *expected)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GString) text = g_string_new(NULL);
    json_t *asked = filter == NULL ? json_null() : json_loads(filter, 0, NULL);
    json_autoptr answer =
        queue_call(w, "Query", json_make("[s, [s, s], o]", "job", "id", "archived", asked), &error);
    const json_t *rows = json_object_get(answer, "data");

    g_assert_no_error(error);
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *id = json_array_get(json_array_get(rows, i), 0);

        g_string_append_printf(text, "%" JSON_INTEGER_FORMAT " ",
                               json_integer_value(json_array_get(id, 1)));
    }
    if (json_is_true(json_object_get(answer, "more")))
        g_string_append(text, "more");
    g_assert_cmpstr(text->str, ==, expected);
}

/* The newest are read, or those between bounds. */
static void test_large(void)
{
    static const guint64 ids[] = {7, 9, 9999, 10000, 10001, 25000, 25001};
    struct queue_world *w = queue_world_new(5);

    luxi_limit_archive(w->luxi, 3);
    for (guint i = 0; i < G_N_ELEMENTS(ids); i++)
        put_archived(w, ids[i]);
    queue_submit(w, NULL);
    check_listed(w, NULL, "1 10001 25000 25001 more");
    check_listed(w, "[\"<\", \"id\", 10001]", "1 9 9999 10000 more");
    check_listed(w, "[\"&\", [\">\", \"id\", 9], [\"<=\", \"id\", 10001]]", "9999 10000 10001 ");
    check_listed(w, "[\"|\", [\"=\", \"id\", 7], [\"=\", \"id\", 25001]]", "7 25001 ");
    check_listed(w, "[\">=\", \"id\", 25000]", "25000 25001 ");
    queue_refuse(
        w, "QueryJobs", json_make("[n, [s, s]]", "id", "archived"), FETTLE_ERROR_LIMIT,
        "more than 3 jobs are archived: ask for them by their ids, or by Query with a filter "
        "that has bounds on id, as [\">\", \"id\", 1000]");
    queue_world_free(w);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/archive-large/newest-or-between-bounds", test_large);
    return g_test_run();
}
