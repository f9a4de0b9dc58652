/*
 * `fettle node invite`, and `fettle node add` without --node-uuid, which is the same: a one-time
 * token for a new host. The secret is made here; only its hash goes into the job, so that no job,
 * log or store ever has it, and it is printed once. `fettle node invite --list` shows what is on
 * record of invitations that were not used.
 */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "cli/screen.h"
#include "io/output.h"
#include "proto/cli/cli_table.h"
#include "proto/invitation.h"

static char *make_secret(void)
{
    guint8 bytes[SECRET_BYTES];
    g_assert(getrandom(bytes, sizeof bytes, 0) == (ssize_t)sizeof bytes);
    GString *text = g_string_new(NULL);
    for (size_t i = 0; i < sizeof bytes; i++)
        g_string_append_printf(text, "%02x", bytes[i]);
    return g_string_free(text, FALSE);
}

/* Who is logged in here: "anna@node1". No proof, but a name to ask. */
static char *who_asks(void)
{
    const char *user = g_getenv("SUDO_USER");
    g_autofree char *text = g_strdup_printf(
        "%s@%s", user != NULL && *user ? user : g_get_user_name(), g_get_host_name());
    return g_utf8_validate(text, -1, NULL) && strlen(text) <= 64 ? g_steal_pointer(&text)
                                                                 : g_strdup("");
}

/* The opcode with the hash of this secret. */
static json_t *make_opcode(int argc, char **argv, const char *secret, GError **error)
{
    const struct cli_command *command = cli_command_find("node", "invite");
    g_autofree char *hash = invitation_secret_hash(secret);
    g_autoptr(GPtrArray) words = g_ptr_array_new();
    for (int i = 0; i < argc; i++)
        g_ptr_array_add(words, argv[i]);
    g_ptr_array_add(words, (void *)"--secret-hash");
    g_ptr_array_add(words, hash);
    g_ptr_array_add(words, NULL);
    json_t *opcode = cli_command_parse(command, (const char *const *)words->pdata, error);
    g_autofree char *author = who_asks();
    if (opcode != NULL && json_object_get(opcode, "author") == NULL)
        json_object_set_new(opcode, "author", json_string(author));
    return opcode;
}

/* Runs it as a job; the result of its opcode. */
static json_t *run_job(struct cli *cli, json_t *opcode, GError **error)
{
    guint64 job = cli_submit(cli, json_make("[o]", opcode), error);
    if (job == 0 || cli_follow_job(cli, job, true, error) != 0)
        return NULL;
    json_autoptr results = cli_job_results(cli, job, error);
    return json_incref(json_array_get(results, 0));
}

static char *make_token(const json_t *result, char *secret)
{
    const struct invitation invitation = {
        .address = (char *)json_string_value(json_object_get(result, "address")),
        .port = (guint)json_integer_value(json_object_get(result, "port")),
        .fingerprint = (char *)json_string_value(json_object_get(result, "fingerprint")),
        .token = (char *)json_string_value(json_object_get(result, "token")),
        .secret = secret,
        .expires = json_integer_value(json_object_get(result, "expires")),
    };
    return invitation_format(&invitation);
}

/* One that nobody has seen can be used by nobody either, but it is on record as given out. */
static void print_token(const struct cli *cli, const json_t *result, const char *name,
                        const char *token)
{
    json_int_t expires = json_integer_value(json_object_get(result, "expires"));
    cli_note(cli,
             "The token of %s was made and cannot be shown again; take it back with: fettle node "
             "invite --withdraw %s",
             name, name);
    if (cli->json) {
        json_autoptr object =
            json_make("{s:s, s:s, s:I}", "node", name, "token", token, "expires", expires);
        cli_print_json(object);
        return;
    }
    g_autofree char *when = cli_time_text(expires);
    printf("%s\n", token);
    if (!output_flush(NULL))
        return;
    fprintf(stderr,
            "Run this as root on %s, until %s; the token is shown only now and can be used once:\n"
            "  fettle-noded join\n"
            "and give it the token when it asks for it.\n",
            name, when);
}

static int invite(struct cli *cli, int argc, char **argv, GError **error)
{
    if (cli_take_flag(&argc, argv, "--help")) {
        g_autofree char *help =
            cli_command_help(cli_command_find("node", "invite"), screen_text_columns());
        printf("%s\n", help);
        cli_print_folded("What is open: fettle node invite --list. To take one back: fettle node "
                         "invite --withdraw NODE",
                         0);
        return 0;
    }
    if (cli_take_flag(&argc, argv, "--submit")) {
        fettle_set_error(error, WRONG_INPUT,
                         "--submit: the token is made of what the job answers, so this command "
                         "always waits for it");
        return -1;
    }
    g_autofree char *secret = make_secret();
    json_autoptr opcode = make_opcode(argc, argv, secret, error);
    if (opcode == NULL)
        return -1;
    g_autofree char *name = g_strdup(json_string_value(json_object_get(opcode, "node_name")));
    json_autoptr result = run_job(cli, json_incref(opcode), error);
    if (result == NULL)
        return -1;
    if (json_is_true(json_object_get(opcode, "dry_run"))) {
        g_autofree char *checked = cli_done_text(cli, opcode);
        cli_say(cli, json_make("{ss}", "node", name), "%s", checked);
        return 0;
    }
    g_autofree char *token = make_token(result, secret);
    print_token(cli, result, name, token);
    return 0;
}

/* A host that has a certificate already is named by its UUID. */
static bool has_node_uuid(int argc, char **argv)
{
    for (int i = 0; i < argc; i++)
        if (strcmp(argv[i], "--node-uuid") == 0 || g_str_has_prefix(argv[i], "--node-uuid=") ||
            strcmp(argv[i], "--help") == 0)
            return true;
    return false;
}

static int node_add(struct cli *cli, int argc, char **argv, GError **error)
{
    if (has_node_uuid(argc, argv))
        return cli_run_opcode(cli, "node", "add", argc, argv, error);
    return invite(cli, argc, argv, error);
}

static int invite_list(struct cli *cli, int argc, char **argv, GError **error)
{
    if (!cli_expect(argc, argv, 0, "node invite --list", error))
        return -1;
    g_auto(GStrv) fields = cli_choose_fields(cli, "invitation",
                                             cli->json || cli->separator != NULL
                                                 ? "name,pip,state,author,made,expires,uuid"
                                                 : "name,pip,state,author,expires");
    if (!cli_check_fields(cli, "invitation", (const char *const *)fields, error))
        return -1;
    json_autoptr rows = cli_query(cli, "invitation", (const char *const *)fields,
                                  json_make("[s[sss]]", "!", "=", "state", "used"), error);
    if (rows == NULL)
        return -1;
    cli_print_rows(cli, "invitation", (const char *const *)fields, rows);
    return 0;
}

const struct command node_commands[] = {
    {"node", "invite", "NAME …", "Make a one-time token with which a host can join.", invite},
    {"node", "invite --list", "",
     "List the invitations that were not used: for whom, by whom, until when.", invite_list},
    {"node", "add", "NAME …", "The same; with --node-uuid: add a host that has its certificate.",
     node_add},
    {0},
};
