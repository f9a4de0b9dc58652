/*
 * `fettle repair`: what auto-repair may do (policy, suspend, resume: tags, set by a job). What it
 * has done (history, show) is in repair_show.c; `repair list` is a list like others (list.c),
 * `repair continue` an opcode.
 */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

#include "base/time_text.h"
#include "cli/commands/repair_show.h"
#include "cli/commands/what_next.h"
#include "proto/cli/cli_table.h"
#include "proto/repair_tag.h"

/* --- the object that is meant: cluster, or KIND NAME --- */

struct object {
    const char *kind, *name; /* name "" for the cluster */
};

static bool take_object(int *argc, char ***argv, const char *usage, struct object *ret,
                        GError **error)
{
    const char *kind = *argc > 0 ? (*argv)[0] : "";
    bool cluster = strcmp(kind, "cluster") == 0;
    int words = cluster ? 1 : 2;
    if (strcmp(kind, "group") == 0)
        kind = "nodegroup";
    if (*argc > 0 && !cluster && strcmp(kind, "nodegroup") != 0 && strcmp(kind, "instance") != 0) {
        fettle_set_error(error, WRONG_INPUT,
                         "\"%s\": must be cluster, nodegroup NAME or instance NAME; did you mean "
                         "\"instance %s\"? usage: fettle %s",
                         kind, kind, usage);
        return false;
    }
    if (*argc < words)
        return cli_expect(*argc, *argv, words, usage, error);
    *ret = (struct object){kind, cluster ? "" : (*argv)[1]};
    *argc -= words;
    *argv += words;
    return true;
}

static const char *const policy_fields[] = {"kind", "name",  "policy", "state",
                                            "tags", "until", NULL};
enum { P_KIND, P_NAME, P_POLICY, P_STATE, P_TAGS, P_UNTIL };

/* The rows of one object; UNKNOWN_ENTITY if there is none. */
static json_t *policy_rows(struct cli *cli, const struct object *object, GError **error)
{
    json_t *filter = *object->name ? json_make("[s[sss][sss]]", "&", "=", "kind", object->kind, "=",
                                               "name", object->name)
                                   : json_make("[sss]", "=", "kind", object->kind);
    json_t *rows = cli_query(cli, "policy", policy_fields, filter, error);
    if (rows == NULL || json_array_size(rows) > 0)
        return rows;
    json_decref(rows);
    fettle_set_error(error, UNKNOWN_ENTITY, "%s \"%s\" does not exist", object->kind, object->name);
    return NULL;
}

static char *object_words(const struct object *object)
{
    return *object->name ? g_strdup_printf("%s %s", object->kind, object->name)
                         : g_strdup("cluster");
}

/* Each suspension that counts for the object, its own or of what it is in, by the command that ends
 * it. */
static bool print_ending(struct cli *cli, const struct object *object, GError **error)
{
    json_autoptr list = what_next_ask(cli, object->kind, object->name, error);
    size_t i, k;
    const json_t *one, *command;
    json_array_foreach(list, i, one) {
        if (strcmp(json_string_value(json_object_get(one, "about")), "suspension") != 0)
            continue;
        json_array_foreach(json_object_get(one, "commands"), k, command)
            printf("    to end it:      %s\n", json_string_value(command));
    }
    return list != NULL;
}

/* What counts now, and what to type next. */
static int show_policy(struct cli *cli, const struct object *object, GError **error)
{
    json_autoptr rows = policy_rows(cli, object, error);
    if (rows == NULL)
        return -1;
    if (cli->json) {
        cli_print_rows(cli, "policy", policy_fields, rows);
        return 0;
    }
    const json_t *row = json_array_get(rows, 0);
    g_autofree char *words = object_words(object);
    printf("%s: %s\n", words, cli_cell_string(row, P_POLICY));
    const char *state = cli_cell_string(row, P_STATE);
    if (strcmp(state, "suspended") == 0)
        return print_ending(cli, object, error) ? 0 : -1;
    if (strcmp(state, "none") == 0)
        printf("    to allow some:  fettle repair policy %s "
               "fix-storage|migrate|failover|reinstall\n",
               words);
    return 0;
}

/* --- changing tags --- */

/* What the flags of every job say, on a command that makes its opcodes itself. */
struct wishes {
    json_t *common; /* fields of each opcode */
    bool submit;
};

static bool take_wishes(int *argc, char **argv, struct wishes *wishes, GError **error)
{
    if (cli_take_switch(argc, argv, "--submit", &wishes->submit, error))
        wishes->common = cli_common_take(argc, argv, error);
    return wishes->common != NULL;
}

static void add_tags_opcode(json_t *ops, const char *id, const struct object *object, json_t *tags)
{
    if (json_array_size(tags) > 0)
        json_array_append_new(ops, json_make("{ss ss ss sO}", "OP_ID", id, "kind", object->kind,
                                             "name", object->name, "tags", tags));
}

/* In one job: new tags first, so that there is no moment without a policy. `ret_job` 0: there was
 * nothing to change. */
static bool change_tags(struct cli *cli, const struct object *object, json_t *add, json_t *remove,
                        const struct wishes *wishes, guint64 *ret_job, GError **error)
{
    json_t *ops = json_array(), *op;
    size_t i;
    add_tags_opcode(ops, "OP_TAGS_SET", object, add);
    add_tags_opcode(ops, "OP_TAGS_DEL", object, remove);
    json_array_foreach(ops, i, op)
        json_object_update(op, wishes->common);
    *ret_job = 0;
    if (json_array_size(ops) == 0) {
        json_decref(ops);
        return true;
    }
    *ret_job = cli_submit(cli, ops, error);
    return *ret_job != 0 && (wishes->submit || cli_follow_job(cli, *ret_job, true, error) == 0);
}

static const char *tag_rest(const json_t *tag)
{
    const char *text = json_string_value(tag);
    return text != NULL && g_str_has_prefix(text, REPAIR_TAG_PREFIX)
               ? text + strlen(REPAIR_TAG_PREFIX)
               : "";
}

static bool is_suspend(const json_t *tag)
{
    const char *rest = tag_rest(tag);
    return strcmp(rest, "suspend") == 0 || g_str_has_prefix(rest, "suspend:");
}

/* Policy tags of the object: suspensions or enabling ones, but not `keep`. */
static json_t *own_tags(const json_t *rows, bool suspensions, const char *keep)
{
    json_t *tags = json_array();
    const json_t *all = cli_cell_value(json_array_get(rows, 0), P_TAGS);
    for (size_t i = 0; i < json_array_size(all); i++) {
        json_t *tag = json_array_get(all, i);
        if (is_suspend(tag) == suspensions && g_strcmp0(json_string_value(tag), keep) != 0)
            json_array_append(tags, tag);
    }
    return tags;
}

/* `tag` (NULL: none) takes the place of all others of its sort. */
static int replace_tags(struct cli *cli, const struct object *object, bool suspensions,
                        const char *tag, const struct wishes *wishes, GError **error)
{
    guint64 job;
    json_autoptr rows = policy_rows(cli, object, error);
    if (rows == NULL)
        return -1;
    json_autoptr add = tag != NULL ? json_make("[s]", tag) : json_array();
    json_autoptr remove = own_tags(rows, suspensions, tag);
    if (!change_tags(cli, object, add, remove, wishes, &job, error))
        return -1;
    if (job == 0 || !(wishes->submit || json_is_true(json_object_get(wishes->common, "dry_run"))))
        return show_policy(cli, object, error);
    if (wishes->submit)
        return cli_say_submitted(cli, job);
    cli_say(cli, json_make("{sI ss}", "job", (json_int_t)job, "status", "success"),
            "Checked only, nothing was changed: it could be done now.");
    return 0;
}

/* --- suspend, resume, policy --- */

static bool parse_duration(const char *text, gint64 *ret_seconds, GError **error)
{
    gint64 ms;
    if (time_text_duration(text, 1000, &ms) && ms >= 1000) {
        *ret_seconds = ms / 1000;
        return true;
    }
    fettle_set_error(error, WRONG_INPUT, "--for: \"%s\" is no duration such as 90s, 10m, 2h or 3d",
                     text);
    return false;
}

static bool parse_time(const char *text, gint64 now, gint64 *ret_seconds, GError **error)
{
    if (time_text_moment(text, now, ret_seconds))
        return true;
    fettle_set_error(error, WRONG_INPUT,
                     "--until: must be a time from now on, such as 2h or 3d, or a date such as "
                     "2026-12-01 or \"2026-12-01 08:00\", not \"%s\"",
                     text);
    return false;
}

/* When the suspension ends; 0: when it is resumed. */
static bool take_end(int *argc, char **argv, gint64 *ret_end, GError **error)
{
    g_autoptr(GError) bad = NULL;
    gint64 now = g_get_real_time() / G_USEC_PER_SEC, length = 0;
    const char *duration = cli_take_option(argc, argv, "--for", &bad);
    const char *until = bad == NULL ? cli_take_option(argc, argv, "--until", &bad) : NULL;
    *ret_end = 0;
    if (bad == NULL && duration != NULL && until != NULL)
        fettle_set_error(&bad, WRONG_INPUT, "--for and --until exclude each other");
    if (bad == NULL && duration != NULL && parse_duration(duration, &length, &bad))
        *ret_end = now + length;
    if (bad == NULL && until != NULL && parse_time(until, now, ret_end, &bad) && *ret_end <= now)
        fettle_set_error(&bad, WRONG_INPUT, "--until: %s has passed", until);
    if (bad == NULL)
        return true;
    g_propagate_error(error, g_steal_pointer(&bad));
    return false;
}

#define SUSPEND_USAGE                                                                              \
    "repair suspend [--for TIME|--until WHEN] (cluster|nodegroup NAME|instance NAME)"

static int suspend(struct cli *cli, const struct wishes *wishes, int argc, char **argv,
                   GError **error)
{
    struct object object;
    gint64 end;
    if (!take_end(&argc, argv, &end, error) ||
        !take_object(&argc, &argv, SUSPEND_USAGE, &object, error) ||
        !cli_expect(argc, argv, 0, SUSPEND_USAGE, error))
        return -1;
    g_autofree char *tag =
        end == 0 ? g_strdup(REPAIR_TAG_PREFIX "suspend")
                 : g_strdup_printf(REPAIR_TAG_PREFIX "suspend:%" G_GINT64_FORMAT, end);
    return replace_tags(cli, &object, true, tag, wishes, error);
}

static int resume(struct cli *cli, const struct wishes *wishes, int argc, char **argv,
                  GError **error)
{
    struct object object;
    const char *usage = "repair resume (cluster|nodegroup NAME|instance NAME)";
    if (!take_object(&argc, &argv, usage, &object, error) ||
        !cli_expect(argc, argv, 0, usage, error))
        return -1;
    return replace_tags(cli, &object, true, NULL, wishes, error);
}

/* Everything that has policy tags of its own, and the cluster. */
static int list_policies(struct cli *cli, GError **error)
{
    static const char *const table_fields[] = {"kind", "name", "state", "type", "until", NULL};
    const char *const *shown = cli->json ? policy_fields : table_fields;
    json_autoptr rows =
        cli_query(cli, "policy", shown,
                  json_make("[s[sss][ss]]", "|", "=", "kind", "cluster", "?", "tags"), error);
    if (rows == NULL)
        return -1;
    cli_print_rows(cli, "policy", shown, rows);
    if (!cli->json)
        printf("\nThe nearest counts: an instance's own, else its node group's, else the "
               "cluster's.\n");
    return 0;
}

#define POLICY_USAGE                                                                               \
    "repair policy [(cluster|nodegroup NAME|instance NAME) "                                       \
    "[fix-storage|migrate|failover|reinstall|none]]"

/* Shows the policies, or that of the object. */
static int tell_policy(struct cli *cli, const struct object *object, const struct wishes *wishes,
                       GError **error)
{
    if (!wishes->submit && json_object_size(wishes->common) == 0)
        return object == NULL ? list_policies(cli, error) : show_policy(cli, object, error);
    fettle_set_error(error, WRONG_INPUT,
                     "the flags of every job are for a change of the policy, and none is given; "
                     "usage: fettle " POLICY_USAGE);
    return -1;
}

static int policy(struct cli *cli, const struct wishes *wishes, int argc, char **argv,
                  GError **error)
{
    struct object object;
    if (argc == 0)
        return tell_policy(cli, NULL, wishes, error);
    if (!take_object(&argc, &argv, POLICY_USAGE, &object, error) ||
        (argc > 0 && !cli_expect(argc, argv, 1, POLICY_USAGE, error)))
        return -1;
    if (argc == 0)
        return tell_policy(cli, &object, wishes, error);
    if (strcmp(argv[0], "none") == 0)
        return replace_tags(cli, &object, false, NULL, wishes, error);
    if (enum_parse(&repair_type_words, argv[0]) < 0) {
        fettle_set_error(error, WRONG_INPUT,
                         "\"%s\" is no type of repair; from least to most risky: fix-storage, "
                         "migrate, failover, reinstall; none takes the policy away",
                         argv[0]);
        return -1;
    }
    g_autofree char *tag = g_strconcat(REPAIR_TAG_PREFIX, argv[0], NULL);
    return replace_tags(cli, &object, false, tag, wishes, error);
}

static int with_wishes(struct cli *cli, int argc, char **argv,
                       int (*command)(struct cli *cli, const struct wishes *wishes, int argc,
                                      char **argv, GError **error),
                       GError **error)
{
    struct wishes wishes = {0};
    int code =
        take_wishes(&argc, argv, &wishes, error) ? command(cli, &wishes, argc, argv, error) : -1;
    json_decref(wishes.common);
    return code;
}

static int repair_suspend(struct cli *cli, int argc, char **argv, GError **error)
{
    return with_wishes(cli, argc, argv, suspend, error);
}

static int repair_resume(struct cli *cli, int argc, char **argv, GError **error)
{
    return with_wishes(cli, argc, argv, resume, error);
}

static int repair_policy(struct cli *cli, int argc, char **argv, GError **error)
{
    return with_wishes(cli, argc, argv, policy, error);
}

#define TAKES_JOB_FLAGS                                                                            \
    "Takes --dry-run, --submit, --priority, --reason and --depends, as every job does."

const struct command repair_commands[] = {
    {"repair", "history", "INSTANCE",
     "List the repairs of an instance, oldest first; and what waits for you.", repair_history},
    {"repair", "show", "ID",
     "Show one repair, by its id or the beginning of it: what was decided, its jobs, what waits "
     "for you.",
     repair_show},
    {"repair", "suspend", "[--for TIME|--until WHEN] (cluster|nodegroup NAME|instance NAME)",
     "Stop auto-repair of the cluster, a node group or an instance, for a time or until it is "
     "resumed; a repair under way waits as it is. " TAKES_JOB_FLAGS,
     repair_suspend},
    {"repair", "resume", "(cluster|nodegroup NAME|instance NAME)",
     "End a suspension of auto-repair. " TAKES_JOB_FLAGS, repair_resume},
    {"repair", "policy",
     "[(cluster|nodegroup NAME|instance NAME) [fix-storage|migrate|failover|reinstall|none]]",
     "Show or set what auto-repair may do: of each type also the less risky ones before it. "
     "Without words: who has a policy. " TAKES_JOB_FLAGS,
     repair_policy},
    {0},
};
