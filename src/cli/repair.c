/*
 * `fettle repair`: what auto-repair may do (policy, suspend, resume: tags, set by a job), and what
 * it has done (history, show). `repair list` is a list like others (query.c), `repair continue` an
 * opcode.
 */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

#include "cli/repair_next.h"
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
                         "%s has no repair policy: cluster, nodegroup NAME or instance NAME have; "
                         "usage: fettle %s",
                         kind, usage);
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
        printf("    to end it:      fettle repair resume %s\n", words);
    else if (strcmp(state, "none") == 0)
        printf("    to allow some:  fettle repair policy %s "
               "fix-storage|migrate|failover|reinstall\n",
               words);
    return 0;
}

/* --- changing tags --- */

static void add_tags_opcode(json_t *ops, const char *id, const struct object *object, json_t *tags)
{
    if (json_array_size(tags) > 0)
        json_array_append_new(ops, json_make("{ss ss ss sO}", "OP_ID", id, "kind", object->kind,
                                             "name", object->name, "tags", tags));
}

/* In one job: new tags first, so that there is no moment without a policy. */
static bool change_tags(struct cli *cli, const struct object *object, json_t *add, json_t *remove,
                        GError **error)
{
    json_t *ops = json_array();
    add_tags_opcode(ops, "OP_TAGS_SET", object, add);
    add_tags_opcode(ops, "OP_TAGS_DEL", object, remove);
    if (json_array_size(ops) == 0) {
        json_decref(ops);
        return true;
    }
    json_autoptr answer = cli_call(cli, "SubmitJob", json_make("[o]", ops), error);
    if (answer == NULL)
        return false;
    return cli_follow_job(cli, (guint64)json_integer_value(answer), true, error) == 0;
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
                        const char *tag, GError **error)
{
    json_autoptr rows = policy_rows(cli, object, error);
    if (rows == NULL)
        return -1;
    json_autoptr add = tag != NULL ? json_make("[s]", tag) : json_array();
    json_autoptr remove = own_tags(rows, suspensions, tag);
    if (!change_tags(cli, object, add, remove, error))
        return -1;
    return show_policy(cli, object, error);
}

/* --- suspend, resume, policy --- */

/* "90", "90s", "10m", "2h", "3d" */
static bool parse_duration(const char *text, gint64 *ret_seconds, GError **error)
{
    static const struct {
        char unit;
        gint64 seconds;
    } units[] = {{'\0', 1}, {'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}};
    char *end = NULL;
    guint64 number = g_ascii_isdigit(text[0]) ? g_ascii_strtoull(text, &end, 10) : 0;
    for (size_t i = 0; number > 0 && number < 1000000 && i < G_N_ELEMENTS(units); i++) {
        if (*end != units[i].unit || (*end != '\0' && end[1] != '\0'))
            continue;
        *ret_seconds = (gint64)number * units[i].seconds;
        return true;
    }
    fettle_set_error(error, WRONG_INPUT, "--for: \"%s\" is no duration such as 90s, 10m, 2h or 3d",
                     text);
    return false;
}

/* Seconds since 1970, or local time as 2026-01-31T12:00. */
static bool parse_time(const char *text, gint64 *ret_seconds, GError **error)
{
    if (g_ascii_string_to_signed(text, 10, 1, G_MAXINT32 * G_GINT64_CONSTANT(100), ret_seconds,
                                 NULL))
        return true;
    g_autoptr(GTimeZone) zone = g_time_zone_new_local();
    g_autofree char *full = strlen(text) == 16   ? g_strconcat(text, ":00", NULL)
                            : strlen(text) == 10 ? g_strconcat(text, "T00:00:00", NULL)
                                                 : g_strdup(text);
    g_autoptr(GDateTime) time = g_date_time_new_from_iso8601(full, zone);
    if (time != NULL) {
        *ret_seconds = g_date_time_to_unix(time);
        return true;
    }
    fettle_set_error(error, WRONG_INPUT,
                     "--until: \"%s\" is no time such as 2026-01-31T12:00 or seconds since 1970",
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
    if (bad == NULL && until != NULL && parse_time(until, ret_end, &bad) && *ret_end <= now)
        fettle_set_error(&bad, WRONG_INPUT, "--until: %s has passed", until);
    if (bad == NULL)
        return true;
    g_propagate_error(error, g_steal_pointer(&bad));
    return false;
}

#define SUSPEND_USAGE "repair suspend [--for 2h|--until TIME] cluster|nodegroup NAME|instance NAME"

static int repair_suspend(struct cli *cli, int argc, char **argv, GError **error)
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
    return replace_tags(cli, &object, true, tag, error);
}

static int repair_resume(struct cli *cli, int argc, char **argv, GError **error)
{
    struct object object;
    const char *usage = "repair resume cluster|nodegroup NAME|instance NAME";
    if (!take_object(&argc, &argv, usage, &object, error) ||
        !cli_expect(argc, argv, 0, usage, error))
        return -1;
    return replace_tags(cli, &object, true, NULL, error);
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
    "repair policy [cluster|nodegroup NAME|instance NAME "                                         \
    "[fix-storage|migrate|failover|reinstall|none]]"

static int repair_policy(struct cli *cli, int argc, char **argv, GError **error)
{
    struct object object;
    if (argc == 0)
        return list_policies(cli, error);
    if (!take_object(&argc, &argv, POLICY_USAGE, &object, error) ||
        (argc > 0 && !cli_expect(argc, argv, 1, POLICY_USAGE, error)))
        return -1;
    if (argc == 0)
        return show_policy(cli, &object, error);
    if (strcmp(argv[0], "none") == 0)
        return replace_tags(cli, &object, false, NULL, error);
    if (enum_parse(&repair_type_words, argv[0]) < 0) {
        fettle_set_error(error, WRONG_INPUT,
                         "\"%s\" is no type of repair; from least to most risky: fix-storage, "
                         "migrate, failover, reinstall; none takes the policy away",
                         argv[0]);
        return -1;
    }
    g_autofree char *tag = g_strconcat(REPAIR_TAG_PREFIX, argv[0], NULL);
    return replace_tags(cli, &object, false, tag, error);
}

/* --- history, show --- */

static const char *const repair_fields[] = {"started", "ended", "type",     "state",
                                            "jobs",    "id",    "instance", NULL};
enum { R_STARTED, R_ENDED, R_TYPE, R_STATE, R_JOBS, R_ID, R_INSTANCE };

static bool instance_exists(struct cli *cli, const char *name, GError **error)
{
    json_autoptr rows = cli_query(cli, "instance", (const char *const[]){"name", NULL},
                                  json_make("[sss]", "=", "name", name), error);
    if (rows != NULL && json_array_size(rows) == 0)
        fettle_set_error(error, UNKNOWN_ENTITY, "instance \"%s\" does not exist", name);
    return rows != NULL && json_array_size(rows) > 0;
}

static int repair_history(struct cli *cli, int argc, char **argv, GError **error)
{
    if (!cli_expect(argc, argv, 1, "repair history INSTANCE", error) ||
        !instance_exists(cli, argv[0], error))
        return -1;
    json_autoptr rows = cli_query(cli, "repair", repair_fields,
                                  json_make("[sss]", "=", "instance", argv[0]), error);
    if (rows == NULL)
        return -1;
    if (json_array_size(rows) > 0 || cli->json)
        cli_print_rows(cli, "repair", repair_fields, rows);
    else
        printf("%s has never been repaired, as far as its tags tell.\n", argv[0]);
    if (!cli->json && json_array_size(rows) > 0)
        printf("\nOne of them:  fettle repair show %.8s     What is thought now:  fettle why %s\n",
               cli_cell_string(json_array_get(rows, json_array_size(rows) - 1), R_ID), argv[0]);
    return cli->json || repair_print_next(cli, argv[0], error) ? 0 : -1;
}

/* The repair whose id begins so. */
static const json_t *find_repair(const json_t *rows, const char *id, GError **error)
{
    const json_t *found = NULL;
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        if (!g_str_has_prefix(cli_cell_string(row, R_ID), id))
            continue;
        if (found != NULL && strcmp(cli_cell_string(row, R_ID), id) != 0) {
            fettle_set_error(error, WRONG_INPUT,
                             "several repairs begin with \"%s\": give more of "
                             "the id; see fettle repair list",
                             id);
            return NULL;
        }
        found = row;
    }
    if (found == NULL)
        fettle_set_error(error, UNKNOWN_ENTITY,
                         "there is no repair \"%s\", or its tag is gone; see fettle repair list",
                         id);
    return found;
}

static const char *const step_fields[] = {"at", "state", "summary", "jobs", NULL};
static const char *const job_fields[] = {"id", "status", "summary", "end_ts", NULL};

static json_t *jobs_of(struct cli *cli, const json_t *repair, GError **error)
{
    const json_t *ids = cli_cell_value(repair, R_JOBS);
    if (json_array_size(ids) == 0)
        return json_array();
    json_t *filter = json_make("[s]", "|");
    for (size_t i = 0; i < json_array_size(ids); i++)
        json_array_append_new(filter, json_make("[ssO]", "=", "id", json_array_get(ids, i)));
    return cli_query(cli, "job", job_fields, filter, error);
}

static void print_repair(const struct cli *cli, const json_t *repair, json_t *steps, json_t *jobs)
{
    for (size_t i = 0; repair_fields[i] != NULL; i++) {
        g_autofree char *text =
            cli_cell_text("repair", repair_fields[i], json_array_get(repair, i));
        printf("%-12s %s\n", repair_fields[i], *text ? text : "-");
    }
    printf("\nWhat was decided:\n");
    cli_print_rows(cli, "decision", step_fields, steps);
    printf("\nJobs:\n");
    cli_print_rows(cli, "job", job_fields, jobs);
}

static json_t *rows_as_objects(const char *const *names, const json_t *rows)
{
    json_t *list = json_array();
    for (size_t i = 0; i < json_array_size(rows); i++) {
        json_t *object = json_object();
        for (size_t k = 0; names[k] != NULL; k++) {
            const json_t *value = cli_cell_value(json_array_get(rows, i), k);
            json_object_set_new(object, names[k],
                                value != NULL ? json_deep_copy(value) : json_null());
        }
        json_array_append_new(list, object);
    }
    return list;
}

static void print_repair_json(const json_t *repair, const json_t *steps, const json_t *jobs)
{
    json_autoptr one = json_make("[O]", (json_t *)repair);
    json_autoptr list = rows_as_objects(repair_fields, one);
    json_t *object = json_array_get(list, 0);
    json_object_set_new(object, "decisions", rows_as_objects(step_fields, steps));
    json_object_set_new(object, "job_details", rows_as_objects(job_fields, jobs));
    g_autofree char *text = json_dumps(object, JSON_INDENT(2));
    printf("%s\n", text);
}

static int repair_show(struct cli *cli, int argc, char **argv, GError **error)
{
    if (!cli_expect(argc, argv, 1, "repair show ID", error))
        return -1;
    json_autoptr rows = cli_query(cli, "repair", repair_fields, NULL, error);
    const json_t *repair = rows == NULL ? NULL : find_repair(rows, argv[0], error);
    if (repair == NULL)
        return -1;
    json_autoptr steps =
        cli_query(cli, "decision", step_fields,
                  json_make("[sss]", "=", "repair_id", cli_cell_string(repair, R_ID)), error);
    json_autoptr jobs = steps == NULL ? NULL : jobs_of(cli, repair, error);
    if (jobs == NULL)
        return -1;
    if (cli->json)
        print_repair_json(repair, steps, jobs);
    else
        print_repair(cli, repair, steps, jobs);
    return cli->json || repair_print_next(cli, cli_cell_string(repair, R_INSTANCE), error) ? 0 : -1;
}

const struct command repair_commands[] = {
    {"repair", "history", "INSTANCE",
     "List the repairs of an instance, oldest first; and what waits for you.", repair_history},
    {"repair", "show", "ID",
     "Show one repair, by its id or the beginning of it: what was decided, its jobs, what waits "
     "for you.",
     repair_show},
    {"repair", "suspend", "[--for 2h|--until TIME] cluster|nodegroup NAME|instance NAME",
     "Stop auto-repair of the cluster, a node group or an instance, for a time or until it is "
     "resumed; a repair under way waits as it is.",
     repair_suspend},
    {"repair", "resume", "cluster|nodegroup NAME|instance NAME", "End a suspension of auto-repair.",
     repair_resume},
    {"repair", "policy",
     "[cluster|nodegroup NAME|instance NAME [fix-storage|migrate|failover|reinstall|none]]",
     "Show or set what auto-repair may do: of each type also the less risky ones before it. "
     "Without words: who has a policy.",
     repair_policy},
    {0},
};
