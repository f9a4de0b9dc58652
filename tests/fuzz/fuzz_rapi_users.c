/* A file of users of REST: whatever stands in it is a user, or a line that is left out. */
#include "base/limits.h"
#include "core/rapi/rapi_users_file.h"
#include "fuzz.h"

#include <string.h>

static void count(const char *line, void *data)
{
    g_assert_true(g_str_has_prefix(line, "rapi/users: line "));
    g_assert_true(g_utf8_validate(line, -1, NULL));
    ++*(guint *)data;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    guint left_out = 0, lines = 1;
    g_autofree char *text = len ? g_strndup((const char *)data, len) : g_strdup("");
    g_autoptr(GHashTable) users = rapi_users_file_parse(text, count, &left_out);
    GHashTableIter iter;
    void *name, *value;
    for (const char *at = text; *at; at++)
        lines += *at == '\n';
    g_assert_cmpuint(g_hash_table_size(users) + left_out, <=, lines);
    g_hash_table_iter_init(&iter, users);
    while (g_hash_table_iter_next(&iter, &name, &value)) {
        const struct rapi_listed *listed = value;
        g_assert_cmpstr(name, ==, listed->name);
        g_assert_true(*listed->name && *listed->kept && !strchr(listed->name, ':'));
        g_assert_cmpint(g_utf8_strlen(listed->name, -1), <=, LIMIT_RAPI_USER);
    }
    return 0;
}
