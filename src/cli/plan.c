/* `fettle plan fail|drain NODE`: what auto-repair would do, and what it could not. Changes nothing.
 */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

/* ["node1", "node2"] as "node1 + node2". */
static json_t *nodes_cell(const json_t *nodes)
{
    g_autoptr(GString) text = g_string_new(NULL);
    for (size_t i = 0; i < json_array_size(nodes); i++)
        g_string_append_printf(text, "%s%s", i > 0 ? " + " : "",
                               json_string_value(json_array_get(nodes, i)));
    return json_make("[is]", 0, text->str);
}

static void print_list(const struct cli *cli, const json_t *list, const char *const *keys,
                       const char *const *titles)
{
    json_autoptr rows = json_array();
    for (size_t i = 0; i < json_array_size(list); i++) {
        json_t *row = json_array();
        for (size_t k = 0; keys[k] != NULL; k++) {
            json_t *value = json_object_get(json_array_get(list, i), keys[k]);
            bool nodes = strcmp(keys[k], "from") == 0 || strcmp(keys[k], "to") == 0;
            json_array_append_new(row, nodes ? nodes_cell(value) : json_make("[iO]", 0, value));
        }
        json_array_append_new(rows, row);
    }
    cli_print_rows(cli, NULL, titles, rows);
}

static void print_plan(const struct cli *cli, const json_t *plan)
{
    static const char *const keys[] = {"instance", "from",   "to", "operations",
                                       "type",     "policy", NULL};
    static const char *const blocked_keys[] = {"instance", "from", "type", "reason", NULL};
    const json_t *moves = json_object_get(plan, "moves");
    const json_t *blocked = json_object_get(plan, "blocked");
    const json_t *notes = json_object_get(plan, "notes");
    const char *node = json_string_value(json_object_get(plan, "node"));
    bool fail = strcmp(json_string_value(json_object_get(plan, "event")), "fail") == 0;
    for (size_t i = 0; i < json_array_size(notes); i++)
        printf("%s\n", json_string_value(json_array_get(notes, i)));
    if (json_array_size(moves) > 0)
        print_list(cli, moves, keys, keys);
    if (json_array_size(blocked) > 0) {
        printf("%sBlocked:\n", json_array_size(moves) > 0 ? "\n" : "");
        print_list(cli, blocked, blocked_keys, blocked_keys);
    }
    printf("%sIf %s %s, %zu instances would be repaired and %zu stay as they are.\n",
           json_array_size(moves) + json_array_size(blocked) > 0 ? "\n" : "", node,
           fail ? "failed" : "were drained", json_array_size(moves), json_array_size(blocked));
    if (!fail && json_array_size(moves) > 0)
        printf("To do it: fettle node modify %s --drained yes\n", node);
}

static int plan(struct cli *cli, const char *event, int argc, char **argv, GError **error)
{
    g_autofree char *usage = g_strdup_printf("plan %s NODE", event);
    if (!cli_expect(argc, argv, 1, usage, error))
        return -1;
    json_autoptr answer = cli_call(cli, "PlanNode", json_make("[ss]", argv[0], event), error);
    if (answer == NULL)
        return -1;
    if (cli->json) {
        g_autofree char *text = json_dumps(answer, JSON_INDENT(2));
        printf("%s\n", text);
    } else {
        print_plan(cli, answer);
    }
    return 0;
}

static int plan_fail(struct cli *cli, int argc, char **argv, GError **error)
{
    return plan(cli, "fail", argc, argv, error);
}

static int plan_drain(struct cli *cli, int argc, char **argv, GError **error)
{
    return plan(cli, "drain", argc, argv, error);
}

const struct command plan_commands[] = {
    {"plan", "fail", "NODE", "Tell what auto-repair would do if a node failed.", plan_fail},
    {"plan", "drain", "NODE", "Tell what auto-repair would do if a node were drained.", plan_drain},
    {0},
};
