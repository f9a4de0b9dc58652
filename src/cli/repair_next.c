/* See repair_next.h. */
#include "cli/repair_next.h"

#include <stdio.h>
#include <string.h>

#include "proto/repair_tag.h"

#define RESULT REPAIR_TAG_PREFIX "result:"

/* --- tags of an instance --- */

/* Behind the prefix and "result:": TYPE:ID:TIME:WORD:JOBS */
static void print_result(const char *instance, const char *tag)
{
    g_auto(GStrv) parts = g_strsplit(tag + strlen(RESULT), ":", -1);
    if (g_strv_length(parts) < 4)
        return;
    if (strcmp(parts[3], "failure") == 0)
        printf("Nothing more is done for %s until you have looked into the failure and taken its "
               "tag away:\n    fettle tag remove instance %s %s\n",
               instance, instance, tag);
    else if (strcmp(parts[3], "enoperm") == 0)
        printf("To allow the repair that it needs:\n    fettle repair policy instance %s %s\n",
               instance, parts[0]);
}

static const char *const policy_fields[] = {"kind", "name", "state", "tags", NULL};
enum { P_KIND, P_NAME, P_STATE, P_TAGS };

static bool suspends(const json_t *row)
{
    const json_t *tags = cli_cell_value(row, P_TAGS);
    for (size_t i = 0; i < json_array_size(tags); i++)
        if (g_str_has_prefix(json_string_value(json_array_get(tags, i)),
                             REPAIR_TAG_PREFIX "suspend"))
            return true;
    return false;
}

/* Of rows of the instance, node groups and the cluster: whose tag it is that suspends. */
static void print_suspension(const char *instance, const json_t *rows)
{
    g_autoptr(GString) words = g_string_new(NULL);
    bool suspended = false;
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        const char *kind = cli_cell_string(row, P_KIND);
        bool cluster = strcmp(kind, "cluster") == 0;
        if (strcmp(kind, "instance") == 0)
            suspended = strcmp(cli_cell_string(row, P_STATE), "suspended") == 0;
        if (suspends(row))
            g_string_append_printf(words, "    fettle repair resume %s%s%s\n", kind,
                                   cluster ? "" : " ", cluster ? "" : cli_cell_string(row, P_NAME));
    }
    if (suspended && words->len > 0)
        printf("Repair of %s goes on when you say:\n%s", instance, words->str);
}

/* The rows that print_suspension() reads. */
static json_t *query_policies(struct cli *cli, const char *instance, const char *node,
                              GError **error)
{
    json_autoptr groups = cli_query(cli, "node", (const char *const[]){"group", NULL},
                                    json_make("[sss]", "=", "name", node), error);
    if (groups == NULL)
        return NULL;
    const char *group = cli_cell_string(json_array_get(groups, 0), 0);
    return cli_query(cli, "policy", policy_fields,
                     json_make("[s[s[sss][sss]][s[sss][sss]][sss]]", "|", "&", "=", "kind",
                               "instance", "=", "name", instance, "&", "=", "kind", "nodegroup",
                               "=", "name", group, "=", "kind", "cluster"),
                     error);
}

bool repair_print_next(struct cli *cli, const char *instance, GError **error)
{
    json_autoptr found = cli_query(cli, "instance", (const char *const[]){"tags", "pnode", NULL},
                                   json_make("[sss]", "=", "name", instance), error);
    const json_t *row = json_array_get(found, 0);
    if (found == NULL || row == NULL)
        return found != NULL;
    json_autoptr rows = query_policies(cli, instance, cli_cell_string(row, 1), error);
    if (rows == NULL)
        return false;
    print_suspension(instance, rows);
    const json_t *tags = cli_cell_value(row, 0);
    for (size_t i = 0; i < json_array_size(tags); i++) {
        const char *tag = json_string_value(json_array_get(tags, i));
        if (g_str_has_prefix(tag, RESULT))
            print_result(instance, tag);
    }
    return true;
}

/* --- nodes --- */

bool repair_print_next_node(struct cli *cli, const char *node, bool *ret_said, GError **error)
{
    static const char *const fields[] = {"offline", "offline_statement", "offline_since", "mtotal",
                                         NULL};
    json_autoptr rows =
        cli_query(cli, "node", fields, json_make("[sss]", "=", "name", node), error);
    const json_t *row = json_array_get(rows, 0);
    bool offline = json_is_true(cli_cell_value(row, 0));
    g_autofree char *since = cli_time_text((gint64)json_number_value(cli_cell_value(row, 2)));
    *ret_said = row != NULL && (offline || cli_cell_value(row, 3) == NULL);
    if (*ret_said && offline)
        printf("%s is offline since %s: %s\nWhen it works again:\n    fettle node modify %s "
               "--offline no\n",
               node, since, cli_cell_string(row, 1), node);
    else if (*ret_said)
        printf("%s does not answer. What runs there may still run, so nothing is done until it "
               "answers, or you say that it is dead:\n"
               "    fettle node modify %s --offline yes --statement \"…\"\n"
               "What would be done then:\n    fettle plan fail %s\n",
               node, node, node);
    return rows != NULL;
}
