/*
 * `fettle cluster renew-keys`: asks fettle-wconfd of the master to renew the keys of the cluster,
 * and says what it waits for until it is done. The renewal goes on without this command, also under
 * another master; given again, it follows the one that is under way.
 */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/foreign.h"
#include "cli/screen.h"
#include "cli/wconfd.h"
#include "io/loop.h"
#include "proto/cli/cli_table.h"
#include "proto/invitation.h"
#include "proto/key_table.h"
#include "proto/rpc.h"

#define LOOK_MS 500
#define KEYS_COLUMN 12 /* letters of a heading before what it is about */

static bool is_sure(const struct cli *cli, bool yes, GError **error)
{
    if (yes || cli->json || !isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
        return true;
    return cli_is_sure("The cluster gets a new authority, each node a new key and certificate, and "
                       "ConfD a new key. Instances and jobs run on. Nodes that are offline have to "
                       "be invited again afterwards, open invitations are withdrawn, and tools "
                       "that ask ConfD need its new key.",
                       error);
}

static const char *const phase_words[] = {
    [RENEWAL_NONE] = "",
    [RENEWAL_SPREAD] = "All nodes are told the new authority.",
    [RENEWAL_REISSUE] = "The new authority signs; each node gets a key and a certificate.",
    [RENEWAL_DROP] = "The old authority is forgotten; what it has signed is refused.",
};

struct talk {
    struct cli *cli;
    struct wconfd_line *line;
    enum renewal_phase phase;
    char *waits; /* as they were said last */
};

static void say(const struct talk *talk, const char *text)
{
    if (talk->cli->json)
        return;
    printf("%s\n", text);
    fflush(stdout);
}

static char *joined(const GPtrArray *texts)
{
    GString *all = g_string_new(NULL);
    for (guint i = 0; i < texts->len; i++)
        g_string_append_printf(all, "%s\n", (const char *)texts->pdata[i]);
    return g_string_free(all, FALSE);
}

/* Only what is still so at the next look is worth a word. */
static void show_waits(struct talk *talk, const struct keys_progress *progress, char **seen)
{
    g_autofree char *now = joined(progress->waits);
    bool news = strcmp(now, *seen) == 0 && strcmp(now, talk->waits) != 0;
    for (guint i = 0; news && i < progress->waits->len; i++) {
        g_autofree char *shown = foreign_text(progress->waits->pdata[i]);
        g_autofree char *line = g_strdup_printf("  waits for %s", shown);
        say(talk, line);
    }
    if (news) {
        g_free(talk->waits);
        talk->waits = g_strdup(now);
    }
    g_free(*seen);
    *seen = g_steal_pointer(&now);
}

static struct keys_progress *ask(const struct talk *talk, const char *method, GError **error)
{
    json_autoptr answer = wconfd_call(talk->line, method, json_object(), error);
    return answer != NULL ? keys_progress_parse(answer, RECORD_LAX, error) : NULL;
}

/* Until none is under way; the last answer. */
static struct keys_progress *follow(struct talk *talk, GError **error)
{
    g_autofree char *seen = g_strdup("");
    bool never = false;
    for (;;) {
        struct keys_progress *progress = ask(talk, "keys_progress", error);
        if (progress == NULL) {
            g_prefix_error(error, "the renewal goes on without this command; follow it on the "
                                  "master with `fettle cluster renew-keys`: ");
            return NULL;
        }
        if (progress->phase == RENEWAL_NONE)
            return progress;
        if (progress->phase != (guint64)talk->phase)
            say(talk, phase_words[progress->phase]);
        talk->phase = (enum renewal_phase)progress->phase;
        show_waits(talk, progress, &seen);
        keys_progress_free(progress);
        loop_run_until(&never, LOOK_MS);
    }
}

static void say_missed(struct cli *cli, const char *node)
{
    json_autoptr rows = cli_query(cli, "node", (const char *const[]){"pip", "port", NULL},
                                  json_make("[sss]", "=", "name", node), NULL);
    const json_t *row = json_array_get(rows, 0);
    g_autofree char *back =
        row ? invitation_way_back(node, cli_cell_string(row, 0),
                                  (guint64)json_integer_value(cli_cell_value(row, 1)))
            : g_strdup_printf("fettle node info %s", node); /* nobody can tell now */
    printf("node %s was offline and has the old keys: nobody believes it. When it is back: %s\n",
           node, back);
}

/* Names of nodes; what is on their disks is not looked at. */
static json_t *front_ends(struct cli *cli)
{
    json_autoptr rows = cli_query(cli, "service", (const char *const[]){"node", NULL},
                                  json_make("[sss]", "=", "name", "apid"), NULL);
    json_t *nodes = json_array();
    for (size_t i = 0; i < json_array_size(rows); i++)
        json_array_append_new(nodes, json_string(cli_cell_string(json_array_get(rows, i), 0)));
    return nodes;
}

static void say_front_ends(const json_t *nodes)
{
    for (size_t i = 0; i < json_array_size(nodes); i++)
        printf("node %s has a front end of the API, which shows the certificate that it had. If "
               "that is of the cluster's authority: fettle api renew-certificate there, and give "
               "its clients the new ca.crt\n",
               json_string_value(json_array_get(nodes, i)));
}

static void finish(struct cli *cli, const struct keys_progress *progress)
{
    g_autofree char *ends = cli_time_text((gint64)progress->ends);
    json_t *fronts = front_ends(cli);
    json_t *missed = json_array();
    for (guint i = 0; i < progress->missed->len; i++)
        json_array_append_new(missed, json_string(progress->missed->pdata[i]));
    for (guint i = 0; !cli->json && i < progress->missed->len; i++)
        say_missed(cli, progress->missed->pdata[i]);
    if (!cli->json)
        say_front_ends(fronts);
    cli_say(cli,
            json_make("{sI so so}", "authority_ends", (json_int_t)progress->ends, "missed", missed,
                      "front_ends", fronts),
            "The keys of the cluster are new; the authority's certificate ends %s. Tools that ask "
            "ConfD need the new var/confd.key of a candidate.",
            ends);
}

static int renew_keys(struct cli *cli, int argc, char **argv, GError **error)
{
    bool yes = cli_take_flag(&argc, argv, "--yes");
    if (!cli_expect(argc, argv, 0, "cluster renew-keys [--yes]", error) ||
        !is_sure(cli, yes, error))
        return -1;
    g_autoptr(wconfd_line_t) line = wconfd_open(cli, error);
    struct talk talk = {.cli = cli, .line = line, .waits = g_strdup("")};
    record_autoptr(keys_progress) begun = line != NULL ? ask(&talk, "renew_keys", error) : NULL;
    record_autoptr(keys_progress) last = begun != NULL ? follow(&talk, error) : NULL;
    g_free(talk.waits);
    if (last == NULL)
        return -1;
    finish(cli, last);
    return 0;
}

/* For a person: sentences, each of which may have several lines. */
static void print_keys(void)
{
    g_autoptr(GString) text = g_string_new(NULL);
    int width = screen_text_columns();
    for (const struct key_holder *key = key_holders; key->name != NULL; key++) {
        g_string_append_printf(text, "%s\n", key->name);
        cli_help_row(text, "opens", KEYS_COLUMN, key->opens, width);
        cli_help_row(text, "held by", KEYS_COLUMN, key->holders, width);
        cli_help_row(text, "made anew by", KEYS_COLUMN, key->renewed, width);
    }
    printf("%s", text->str);
}

/* The table, whatever the cluster is like. */
static int list_keys(struct cli *cli, int argc, char **argv, GError **error)
{
    static const char *const names[] = {"key", "opens", "made anew by", NULL};
    if (!cli_expect(argc, argv, 0, "cluster keys", error))
        return -1;
    json_autoptr list = json_array();
    json_autoptr rows = json_array();
    for (const struct key_holder *key = key_holders; key->name != NULL; key++) {
        json_array_append_new(list,
                              json_make("{ss, ss, ss, ss, ss, ss}", "key", key->name, "files",
                                        key->files, "holders", key->holders, "opens", key->opens,
                                        "renewed", key->renewed, "waits", key->waits));
        json_array_append_new(
            rows, json_make("[[is], [is], [is]]", 0, key->name, 0, key->opens, 0, key->renewed));
    }
    if (cli->json)
        cli_print_json(list);
    else if (cli->separator != NULL)
        cli_print_rows(cli, NULL, names, rows);
    else
        print_keys();
    return 0;
}

const struct command renew_keys_commands[] = {
    {"cluster", "renew-keys", "[--yes]",
     "Give the cluster a new authority, all nodes new keys and certificates, and ConfD a new key, "
     "while instances run; and wait until nothing old is accepted any more. Given again, it "
     "follows the renewal that is under way.",
     renew_keys},
    {"cluster", "keys", "", "List what certificates and secrets there are, and what each opens.",
     list_keys},
    {0},
};
