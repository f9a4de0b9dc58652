/* Rows of an answer, in its text (core/rapi/rapi_rows.h). */
#include "core/rapi/rapi_rows.h"

#include <string.h>

/* Rows as "a|b" with ";" between, and "!" at the end of what is broken. */
static char *read_rows(const char *text, bool pairs)
{
    struct rapi_rows rows;
    struct rapi_span cells[2];
    g_autoptr(GString) said = g_string_new(NULL);
    rapi_rows_begin(&rows, text, pairs);
    while (rapi_rows_next(&rows, cells, 2)) {
        g_string_append_len(said, cells[0].at, (gssize)cells[0].length);
        g_string_append_c(said, '|');
        g_string_append_len(said, cells[1].at, (gssize)cells[1].length);
        g_string_append_c(said, ';');
    }
    if (rows.broken)
        g_string_append_c(said, '!');
    return g_string_free(g_steal_pointer(&said), FALSE);
}

static void test_rows(void)
{
    static const struct {
        const char *text;
        bool pairs;
        const char *rows;
    } cases[] = {
        {"[]", false, ""},
        {" [ ] ", false, ""},
        {"[[1,\"a\"],[2,null]]", false, "1|\"a\";2|null;"},
        {"[[1,\"a]\\\"[,\"],null,[-2.5e3,{\"b\":[1,{\"c\":\"}\"}]}]]", false,
         "1|\"a]\\\"[,\";-2.5e3|{\"b\":[1,{\"c\":\"}\"}]};"},
        {"[ [ 1 , 2 ] ,\n [ true , false ] ]", false, "1|2;true|false;"},
        {"{\"data\":[[[0,\"x\"],[2,null]]],\"fields\":[]}", true, "\"x\"|null;"},
        {"{\"fields\":[{\"data\":[1]}],\"more\":true,\"data\":[]}", true, ""},
        /* broken */
        {"", false, "!"},
        {"[", false, "!"},
        {"null", false, "!"},
        {"{}", true, "!"},
        {"{\"data\":3}", true, "!"},
        {"[[1,2],", false, "1|2;!"},
        {"[[1,2]", false, "!"},
        {"[[1]]", false, "!"},
        {"[[1,2,3]]", false, "!"},
        {"[[1,2]x]", false, "!"},
        {"[[1,\"2]]", false, "!"},
        {"{\"data\":[[1,2]]}", true, "!"},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *rows = read_rows(cases[i].text, cases[i].pairs);
        g_test_message("%s", cases[i].text);
        g_assert_cmpstr(rows, ==, cases[i].rows);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/rapi-rows/all", test_rows);
    return g_test_run();
}
