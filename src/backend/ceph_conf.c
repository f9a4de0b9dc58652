/* See ceph_conf.h. */
#include "backend/ceph_conf.h"

#include <string.h>

#include "backend/tool.h"
#include "base/limits.h"
#include "io/files.h"

#define ASK_MS 15000u
#define KEY_LETTERS G_CSET_A_2_Z G_CSET_a_2_z G_CSET_DIGITS "+/="
#define KEY_CHARS 20u

/* What a program says that looks at files of this node. */
static char *ask(const char *program, const char *conf, const char *user, const char *option,
                 const char *of, GError **error)
{
    g_autofree char *name = g_strconcat("client.", user, NULL), *said = NULL;
    const char *const argv[] = {program, "--conf", conf, "--name", name, option, of, NULL};
    int code = tool_run(argv, NULL, ASK_MS, &said, error);
    if (code == 0)
        return g_steal_pointer(&said);
    g_autofree char *why = tool_last_words(said ? said : "");
    if (code > 0)
        fettle_set_error(error, ENVIRONMENT, "%s ended with %d: %s", program, code, why);
    return NULL;
}

char **ceph_conf_places(const char *conf, const char *user, GError **error)
{
    g_autofree char *said = ask("ceph-conf", conf, user, "--show-config-value", "keyring", error);
    return said ? g_strsplit_set(g_strchomp(said), ", \n", -1) : NULL;
}

/* What else is said stands on other lines. */
static char *find_key_in(const char *said)
{
    g_auto(GStrv) lines = g_strsplit(said, "\n", -1);
    for (guint i = 0; lines[i]; i++)
        if (strlen(g_strstrip(lines[i])) >= KEY_CHARS &&
            strspn(lines[i], KEY_LETTERS) == strlen(lines[i]))
            return g_strdup(lines[i]);
    return NULL;
}

static char *read_key(const char *conf, const char *user, const char *place, GError **error)
{
    g_autofree char *said = ask("ceph-authtool", conf, user, "--print-key", place, error);
    char *key = said ? find_key_in(said) : NULL;
    if (said && !key)
        fettle_set_error(error, ENVIRONMENT, "there is no key of client.%s in %s", user, place);
    return key;
}

char *ceph_conf_read(const char *conf, const char *user, const char *const *places, bool *ret_key,
                     GError **error)
{
    while (*places && !(**places && g_file_test(*places, G_FILE_TEST_EXISTS)))
        places++;
    g_autofree char *key = *places ? read_key(conf, user, *places, error) : NULL;
    if (*places && !key)
        return NULL;
    g_autofree char *text = files_read_path(conf, LIMIT_TOOL_OUTPUT_BYTES, NULL, error);
    if (!text)
        return NULL;
    *ret_key = key != NULL;
    return key ? g_strdup_printf("%s\n[client.%s]\nkey = %s\n", text, user, key)
               : g_steal_pointer(&text);
}
