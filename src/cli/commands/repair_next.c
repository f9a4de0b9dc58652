/* See repair_next.h. */
#include "cli/commands/repair_next.h"

#include <stdio.h>
#include <string.h>

#include "proto/repair_tag.h"

#define RESULT REPAIR_TAG_PREFIX "result:"

/* --- tags of an instance --- */

/* Behind the prefix and "result:": TYPE:ID:TIME:WORD:JOBS */
enum { RESULT_TYPE, RESULT_ID, RESULT_TIME, RESULT_WORD, RESULT_PARTS };

/* What the newest repair of it has ended with, and each failure, which stands in the way until it
 * is taken away. */
static void print_results(const char *instance, const json_t *tags)
{
    g_auto(GStrv) newest = NULL;
    for (size_t i = 0; i < json_array_size(tags); i++) {
        const char *tag = json_string_value(json_array_get(tags, i));
        if (!g_str_has_prefix(tag, RESULT))
            continue;
        g_auto(GStrv) parts = g_strsplit(tag + strlen(RESULT), ":", -1);
        if (g_strv_length(parts) < RESULT_PARTS)
            continue;
        if (strcmp(parts[RESULT_WORD], "failure") == 0)
            printf("Nothing more is done for %s until you have looked into the failure and taken "
                   "its tag away:\n    fettle tag remove instance %s %s\n",
                   instance, instance, tag);
        if (newest == NULL || g_ascii_strtoull(parts[RESULT_TIME], NULL, 10) >=
                                  g_ascii_strtoull(newest[RESULT_TIME], NULL, 10)) {
            g_strfreev(newest);
            newest = g_steal_pointer(&parts);
        }
    }
    if (newest != NULL && strcmp(newest[RESULT_WORD], "enoperm") == 0)
        printf("To allow the repair that it needs:\n    fettle repair policy instance %s %s\n",
               instance, newest[RESULT_TYPE]);
}

static const char *const policy_fields[] = {"kind", "name", "tags", NULL};
enum { P_KIND, P_NAME, P_TAGS };

/* Whether it has a suspension (or, if not `suspension`, another policy) of its own. */
static bool has_own(const json_t *row, bool suspension)
{
    const json_t *tags = cli_cell_value(row, P_TAGS);
    for (size_t i = 0; i < json_array_size(tags); i++)
        if (g_str_has_prefix(json_string_value(json_array_get(tags, i)),
                             REPAIR_TAG_PREFIX "suspend") == suspension)
            return true;
    return false;
}

/* The field of the object of this name; free with g_free(). */
static char *ask_field(struct cli *cli, const char *what, const char *name, const char *field,
                       GError **error)
{
    json_autoptr rows = cli_query(cli, what, (const char *const[]){field, NULL},
                                  json_make("[sss]", "=", "name", name), error);
    return rows != NULL ? g_strdup(cli_cell_string(json_array_get(rows, 0), 0)) : NULL;
}

/* Rows of the object and of what it is in: an instance is in the node group of its primary node. */
static json_t *query_policies(struct cli *cli, const char *kind, const char *name, GError **error)
{
    bool instance = strcmp(kind, "instance") == 0;
    g_autofree char *node = instance ? ask_field(cli, "instance", name, "pnode", error) : NULL;
    g_autofree char *group =
        instance ? (node != NULL ? ask_field(cli, "node", node, "group", error) : NULL)
                 : g_strdup(strcmp(kind, "nodegroup") == 0 ? name : "");
    if (group == NULL)
        return NULL;
    return cli_query(cli, "policy", policy_fields,
                     json_make("[s[s[sss][sss]][s[sss][sss]][sss]]", "|", "&", "=", "kind",
                               "instance", "=", "name", instance ? name : "", "&", "=", "kind",
                               "nodegroup", "=", "name", group, "=", "kind", "cluster"),
                     error);
}

/* Of the object of this kind. Returns whether what is farther away does not count, because this one
 * has a policy of its own. */
static bool add_suspension(json_t *commands, const json_t *rows, const char *kind)
{
    bool cluster = strcmp(kind, "cluster") == 0;
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        if (strcmp(cli_cell_string(row, P_KIND), kind) != 0)
            continue;
        g_autofree char *command =
            g_strdup_printf("fettle repair resume %s%s%s", kind, cluster ? "" : " ",
                            cluster ? "" : cli_cell_string(row, P_NAME));
        if (has_own(row, true))
            json_array_append_new(commands, json_string(command));
        return has_own(row, false);
    }
    return false;
}

json_t *repair_suspensions(struct cli *cli, const char *kind, const char *name, GError **error)
{
    static const char *const nearest_first[] = {"instance", "nodegroup", "cluster"};
    json_autoptr rows = query_policies(cli, kind, name, error);
    if (rows == NULL)
        return NULL;
    json_t *commands = json_array();
    for (size_t i = 0; i < G_N_ELEMENTS(nearest_first); i++)
        if (add_suspension(commands, rows, nearest_first[i]))
            break;
    return commands;
}

/* Whether a suspension counts for the instance, and then whose. */
static bool print_suspension(struct cli *cli, const char *instance, GError **error)
{
    json_autoptr states = cli_query(
        cli, "policy", (const char *const[]){"state", NULL},
        json_make("[s[sss][sss]]", "&", "=", "kind", "instance", "=", "name", instance), error);
    const json_t *row = json_array_get(states, 0);
    if (states == NULL || row == NULL || strcmp(cli_cell_string(row, 0), "suspended") != 0)
        return states != NULL;
    json_autoptr commands = repair_suspensions(cli, "instance", instance, error);
    if (json_array_size(commands) > 0)
        printf("Repair of %s goes on when you say:\n", instance);
    for (size_t i = 0; i < json_array_size(commands); i++)
        printf("    %s\n", json_string_value(json_array_get(commands, i)));
    return commands != NULL;
}

bool repair_print_next(struct cli *cli, const char *instance, GError **error)
{
    json_autoptr found = cli_query(cli, "instance", (const char *const[]){"tags", NULL},
                                   json_make("[sss]", "=", "name", instance), error);
    const json_t *row = json_array_get(found, 0);
    if (found == NULL || row == NULL)
        return found != NULL;
    if (!print_suspension(cli, instance, error))
        return false;
    print_results(instance, cli_cell_value(row, 0));
    return true;
}

/* --- nodes --- */

static void print_faults(const char *node, const json_t *faults)
{
    size_t i;
    const json_t *fault;
    json_array_foreach(faults, i, fault)
        printf("%s %s\n", node, json_string_value(fault));
    printf("While that lasts it is chosen last for guests and replicas. What runs there is left "
           "alone, but for guests whose disks there have failed, if their policy allows it.\n");
}

/* A node that answers with an error has said which; one that says nothing may be dead. */
static void print_unknown(const char *node, bool answers)
{
    if (answers)
        printf("While that lasts it is not known what %s has and runs. It is not dead.\n", node);
    else
        printf("%s does not answer. What runs there may still run, so nothing is done until it "
               "answers, or you say that it is dead:\n"
               "    fettle node modify %s --offline yes --statement \"…\"\n"
               "What would be done then:\n    fettle plan fail %s\n",
               node, node, node);
}

bool repair_print_next_node(struct cli *cli, const char *node, bool *ret_said, GError **error)
{
    static const char *const fields[] = {
        "offline", "offline_statement", "offline_since", "mtotal", "faults", "late", NULL};
    json_autoptr rows =
        cli_query(cli, "node", fields, json_make("[sss]", "=", "name", node), error);
    const json_t *row = json_array_get(rows, 0);
    bool offline = json_is_true(cli_cell_value(row, 0));
    g_autofree char *since = cli_time_text((gint64)json_number_value(cli_cell_value(row, 2)));
    bool faulty = json_array_size(cli_cell_value(row, 4)) > 0;
    *ret_said = row != NULL && (offline || faulty || cli_cell_value(row, 3) == NULL);
    if (faulty)
        print_faults(node, cli_cell_value(row, 4));
    else if (*ret_said && offline)
        printf("%s is offline since %s: %s\nWhen it works again:\n    fettle node modify %s "
               "--offline no\n",
               node, since,
               *cli_cell_string(row, 1) ? cli_cell_string(row, 1)
                                        : "a person's word, without a statement",
               node);
    else if (*ret_said)
        print_unknown(node, json_array_size(cli_cell_value(row, 5)) > 0);
    return rows != NULL;
}
