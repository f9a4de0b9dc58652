/*
 * `fettle rapi user add|list|modify|remove`: who may ask the REST daemons of this cluster, beside
 * those of a node's own file (docs/guide/rest.md). On record stands the hash of a password, which
 * is made here: the password itself goes nowhere.
 */
#include "cli/volume/storage_ask.h"
#include "cli/volume/volume_ask.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "io/crypto/crypto.h"
#include "io/files.h"
#include "io/secret_input.h"

#define SEE "fettle rapi user list"
#define PASSWORD_BYTES 511 /* libcrypt takes no longer one */

/* --- the password --- */

/* Of a line: what ends it is none of it. */
static bool cut_line(char *text, GError **error)
{
    size_t len = strlen(text);
    if (len && text[len - 1] == '\n')
        text[--len] = '\0';
    if (len && text[len - 1] == '\r')
        text[--len] = '\0';
    g_autofree char *control = text_control(text);
    if (!len)
        fettle_set_error(error, WRONG_INPUT, "the password is empty");
    else if (control)
        fettle_set_error(error, WRONG_INPUT,
                         "a password is one line without control characters; this one has \"%s\"",
                         control);
    return len && !control;
}

static char *read_once(const char *prompt, GError **error)
{
    g_autofree char *text = secret_input_read(prompt, PASSWORD_BYTES + 2, "a password", error);
    return text && cut_line(text, error) ? g_steal_pointer(&text) : NULL;
}

static char *read_typed(GError **error)
{
    g_autofree char *first = read_once("Password (it is not shown): ", error);
    g_autofree char *second = first ? read_once("Once more: ", error) : NULL;
    if (second && strcmp(first, second) != 0)
        fettle_set_error(error, WRONG_INPUT, "these were two passwords; nothing has changed");
    else if (second)
        return g_steal_pointer(&first);
    return NULL;
}

static char *read_file(const char *path, GError **error)
{
    size_t len = 0;
    g_autofree char *text = files_read_path(path, PASSWORD_BYTES + 2, &len, error);
    if (text && strlen(text) != len)
        fettle_set_error(error, WRONG_INPUT, "%s has a NUL, which no password has", path);
    else if (text && cut_line(text, error))
        return g_steal_pointer(&text);
    return NULL;
}

/* As it stands on record, to be freed. `file`: where the password is; NULL: standard input. */
static char *take_hash(const char *file, GError **error)
{
    g_autofree char *password = file                      ? read_file(file, error)
                                : secret_input_is_typed() ? read_typed(error)
                                                          : read_once("", error);
    if (!password)
        return NULL;
    struct crypto *crypto = crypto_open_passwords();
    char *hash = crypto->ops->password_keep(crypto, password, error);
    crypto_close(crypto);
    return hash;
}

/* --- the commands --- */

static bool ask(struct cli *cli, const char *method, json_t *args, GError **error)
{
    json_autoptr answer = storage_ask(cli, method, args, SEE, error);
    return answer;
}

static int add(struct cli *cli, int argc, char **argv, GError **error)
{
    const char *file;
    bool write = cli_take_flag(&argc, argv, "--write");
    if (!volume_take(&argc, argv, "--password-file", &file, error) ||
        !cli_expect(argc, argv, 1, "rapi user add NAME", error))
        return -1;
    g_autofree char *hash = take_hash(file, error);
    if (!hash ||
        !ask(cli, "add_rapi_user",
             json_make("{ss ss sb}", "name", argv[0], "hash", hash, "write", write), error))
        return -1;
    cli_say(cli, json_make("{ss sb}", "user", argv[0], "write", write),
            "User %s may %s by REST. A node's own file of users goes before it.", argv[0],
            write ? "read and change everything" : "read everything");
    return 0;
}

static int modify(struct cli *cli, int argc, char **argv, GError **error)
{
    const char *file;
    bool password = cli_take_flag(&argc, argv, "--password");
    bool write = cli_take_flag(&argc, argv, "--write"), read = cli_take_flag(&argc, argv, "--read");
    if (!volume_take(&argc, argv, "--password-file", &file, error) ||
        !cli_expect(argc, argv, 1, "rapi user modify NAME", error))
        return -1;
    if (write == read && (write || (!password && !file))) {
        fettle_set_error(error, WRONG_INPUT,
                         write
                             ? "--write and --read exclude each other"
                             : "nothing to change: name at least one flag; see \"fettle rapi user "
                               "modify --help\"");
        return -1;
    }
    g_autofree char *hash = password || file ? take_hash(file, error) : g_strdup("");
    if (!hash || !ask(cli, "change_rapi_user",
                      json_make("{ss ss si}", "user", argv[0], "hash", hash, "write",
                                write  ? 1
                                : read ? 0
                                       : -1),
                      error))
        return -1;
    cli_say(cli, json_make("{ss}", "user", argv[0]), "User %s is changed.", argv[0]);
    return 0;
}

static int take_away(struct cli *cli, int argc, char **argv, GError **error)
{
    if (!cli_expect(argc, argv, 1, "rapi user remove NAME", error) ||
        !ask(cli, "remove_rapi_user", json_make("{ss}", "user", argv[0]), error))
        return -1;
    cli_say(cli, json_make("{ss}", "user", argv[0]), "User %s may not ask REST any more.", argv[0]);
    return 0;
}

/* The hashes are for nobody's eyes. */
static int list(struct cli *cli, int argc, char **argv, GError **error)
{
    if (!cli_expect(argc, argv, 0, "rapi user list", error))
        return -1;
    json_autoptr answer = cli_call(cli, "QueryRapiUsers", json_array(), error);
    if (!answer)
        return -1;
    json_autoptr told = json_array();
    json_autoptr rows = json_array();
    size_t i;
    json_t *user;
    json_array_foreach(json_object_get(answer, "users"), i, user) {
        const char *name = json_string_value(json_object_get(user, "name"));
        bool write = json_is_true(json_object_get(user, "write"));
        json_array_append_new(told, json_make("{ss sb}", "name", name, "write", write));
        json_array_append_new(rows,
                              json_make("[[is][is]]", 0, name, 0, write ? "read, write" : "read"));
    }
    if (cli->json)
        cli_print_json(told);
    else
        cli_print_rows(cli, NULL, (const char *const[]){"user", "may", NULL}, rows);
    return 0;
}

const struct command rapi_commands[] = {
    {"rapi", "user add", "NAME [--write] [--password-file FILE]",
     "Let somebody ask REST, to read or, with --write, to change things too. The password is asked "
     "for twice, or is a line of standard input or of a file.",
     add},
    {"rapi", "user list", "", "Who may ask REST, beside users of a node's own file.", list},
    {"rapi", "user modify", "NAME [--write|--read] [--password] [--password-file FILE]",
     "Give a user of REST other rights, or, with --password, another password.", modify},
    {"rapi", "user remove", "NAME", "From now on this user may not ask REST any more.", take_away},
    {0},
};
