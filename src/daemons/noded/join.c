/* See join.h. */
#include "daemons/noded/join.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "base/task.h"
#include "base/text.h"
#include "daemons/noded/token.h"
#include "io/loop.h"
#include "io/net/join.h"
#include "io/output.h"

struct joining {
    struct node_paths *paths;
    struct invitation *invitation;
    struct node_config *config;
    GError *error;
};

static void join_task(void *data)
{
    struct joining *joining = data;
    joining->config = join_cluster(joining->paths, joining->invitation, &joining->error);
    loop_quit(0);
}

/* The words that are no options are the token: a terminal may have broken it, also before dashes.
 * What stands behind its mark is never repeated: it may be a part of the secret. */
static char *token_of(char **words, GError **error)
{
    g_autofree char *token = g_strjoinv(" ", words);
    bool dashes = false;
    for (bool begun = false; *words; words++) {
        begun = begun || g_str_has_prefix(*words, INVITATION_MARK);
        if (!begun && **words == '-') {
            fettle_set_error(error, WRONG_INPUT, "Unknown option %s; see fettle-noded join --help",
                             *words);
            return NULL;
        }
        dashes = dashes || g_str_has_prefix(*words, "--");
    }
    g_autoptr(invitation_t) whole = dashes ? invitation_parse(token, NULL) : NULL;
    if (!dashes || whole)
        return g_steal_pointer(&token);
    fettle_set_error(error, WRONG_INPUT,
                     "what begins with -- behind the token is neither an option nor a part of it; "
                     "see fettle-noded join --help");
    return NULL;
}

/* No option has a short form: a piece of a token that begins with a dash would be read as some.
 */
static char *parse(int argc, char **argv, char **ret_root, GError **error)
{
    g_autoptr(GError) reason = NULL;
    gboolean help = FALSE;
    const GOptionEntry entries[] = {
        {"help", 0, 0, G_OPTION_ARG_NONE, &help, "Show this help", NULL},
        {"root", 0, 0, G_OPTION_ARG_FILENAME, ret_root,
         "Folder of this node (default: FETTLE_ROOT, else /)", "DIR"},
        {NULL},
    };
    g_autoptr(GOptionContext) context = g_option_context_new("[TOKEN]");
    g_option_context_set_summary(context,
                                 "Makes this host a node of a cluster, with a one-time token of "
                                 "`fettle node invite`. The token is a secret: it is read from "
                                 "standard input unless it is given as an argument.");
    g_option_context_add_main_entries(context, entries, NULL);
    g_option_context_set_help_enabled(context, false);
    g_option_context_set_ignore_unknown_options(context, true);
    if (!g_option_context_parse(context, &argc, &argv, &reason)) {
        fettle_set_error(error, WRONG_INPUT, "%s; see fettle-noded join --help", reason->message);
        return NULL;
    }
    if (help || (argc == 2 && g_str_equal(argv[1], "-h"))) {
        g_autofree char *text = g_option_context_get_help(context, true, NULL);
        g_print("%s", text);
        exit(0);
    }
    if (argc < 2)
        return token_read(error);
    return token_of(argv + 1, error);
}

static bool prepare(struct joining *joining, int argc, char **argv, GError **error)
{
    g_autofree char *root = NULL;
    g_autofree char *token = parse(argc, argv, &root, error);
    joining->invitation = token ? invitation_parse(token, error) : NULL;
    joining->paths = joining->invitation ? node_paths_new(root, error) : NULL;
    if (!joining->paths)
        return false;
    if (geteuid() == 0 || access(joining->paths->root, W_OK) == 0)
        return true;
    fettle_set_error(error, ENVIRONMENT, "joining writes into %s: run it as root",
                     joining->paths->etc);
    return false;
}

static void run(struct joining *joining)
{
    loop_init();
    struct task_group *tasks = task_group_new();
    task_spawn(tasks, join_task, joining);
    loop_run();
    task_group_unref(tasks);
}

static bool tell(const struct joining *joining, GError **error)
{
    const char *root = joining->paths->root;
    g_autofree char *start = g_str_equal(root, "/")
                                 ? g_strdup("systemctl restart fettle.target")
                                 : g_strdup_printf("fettle-noded --root %s", root);
    g_autofree char *text =
        g_strdup_printf("This host is node \"%s\" of the cluster %s now (%s port %" G_GUINT64_FORMAT
                        ").\nStart its daemon, anew if it runs: %s",
                        joining->config->name, joining->config->cluster_uuid,
                        joining->config->address, joining->config->port, start);
    printf("%s\n", text);
    return output_end(g_strdelimit(text, "\n", ' '), error);
}

int noded_join(int argc, char **argv)
{
    struct joining joining = {0};
    int code = 0;
    g_auto(GStrv) words = token_hide(argc, argv);
    g_autofree char **left = g_memdup2(words, ((gsize)argc + 1) * sizeof *words);
    output_begin("fettle-noded");
    log_init("fettle-noded");
    if (prepare(&joining, argc, left, &joining.error))
        run(&joining);
    if (joining.config && tell(&joining, &joining.error)) {
        code = 0;
    } else if (joining.error) {
        g_autofree char *shown = text_shown(joining.error->message); /* the master's words */
        fprintf(stderr, "fettle-noded: %s\n", shown ? shown : joining.error->message);
        code = fettle_error_exit_code(joining.error);
    } else {
        fprintf(stderr, "fettle-noded: interrupted; run the same command again\n");
        code = 130;
    }
    invitation_free(joining.invitation);
    node_paths_free(joining.paths);
    node_config_free(joining.config);
    g_clear_error(&joining.error);
    return code;
}
