/* `fettle plan fail|drain NODE`: what auto-repair would do, and what it could not. Changes nothing.
 */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

/* ["node1", "node2"] as "node1 + node2". */
static json_t *joined_cell(const json_t *list, const char *separator)
{
    g_autoptr(GString) text = g_string_new(NULL);
    for (size_t i = 0; i < json_array_size(list); i++)
        g_string_append_printf(text, "%s%s", i > 0 ? separator : "",
                               json_string_value(json_array_get(list, i)));
    return json_make("[is]", 0, text->str);
}

static json_t *cell(const char *key, json_t *value)
{
    if (strcmp(key, "operations") == 0)
        return joined_cell(value, ", ");
    return json_is_array(value) ? joined_cell(value, " + ") : json_make("[iO]", 0, value);
}

static void print_list(const struct cli *cli, const json_t *list, const char *const *keys,
                       const char *const *titles)
{
    json_autoptr rows = json_array();
    for (size_t i = 0; i < json_array_size(list); i++) {
        json_t *row = json_array();
        for (size_t k = 0; keys[k] != NULL; k++) {
            json_array_append_new(row,
                                  cell(keys[k], json_object_get(json_array_get(list, i), keys[k])));
        }
        json_array_append_new(rows, row);
    }
    cli_print_rows(cli, NULL, titles, rows);
}

static bool some_reason(const json_t *blocked, const char *part)
{
    for (size_t i = 0; i < json_array_size(blocked); i++) {
        const char *reason =
            json_string_value(json_object_get(json_array_get(blocked, i), "reason"));
        if (reason != NULL && strstr(reason, part) != NULL)
            return true;
    }
    return false;
}

static void print_blocked(const struct cli *cli, const json_t *blocked)
{
    static const char *const keys[] = {"instance", "from", "type", "reason", NULL};
    printf("Blocked:\n");
    print_list(cli, blocked, keys, keys);
    if (some_reason(blocked, "the policy allows") || some_reason(blocked, "not enabled"))
        printf("To allow more: fettle repair policy instance NAME TYPE\n");
    if (some_reason(blocked, "suspended"))
        printf("To end a suspension: fettle repair resume instance NAME; who has one: fettle "
               "repair policy\n");
}

/* What is done of a repair that comes to no end: the first steps are. */
static size_t print_left(const json_t *moves)
{
    size_t count = 0;
    for (size_t i = 0; i < json_array_size(moves); i++) {
        const json_t *move = json_array_get(moves, i);
        const char *left = json_string_value(json_object_get(move, "left"));
        if (left == NULL)
            continue;
        printf("%s%s goes no further for now: %s\n", count == 0 ? "\n" : "",
               json_string_value(json_object_get(move, "instance")), left);
        count++;
    }
    return count;
}

static void print_sum(const char *node, bool fail, bool held, const size_t counts[3])
{
    const char *event = fail ? "failed" : "were drained";
    size_t moved = counts[0], left = counts[1], stay = counts[2];
    g_autofree char *part =
        left > 0 ? g_strdup_printf(" (%zu of them not to the end)", left) : g_strdup("");
    if (moved + stay == 0)
        printf("If %s %s, nothing would have to be repaired: no instance is there.\n", node, event);
    else
        printf("If %s %s, %zu instance%s would be repaired%s%s, %zu would stay as %s.\n", node,
               event, moved, moved == 1 ? "" : "s", part,
               held && moved > 0 ? " once nothing holds that up any more" : "", stay,
               stay == 1 ? "it is" : "they are");
    if (fail && moved > 0)
        printf("Nobody but you says that it has failed: fettle node modify %s --offline yes "
               "--statement \"…\"\n",
               node);
    else if (moved > 0)
        printf("To do it: fettle node modify %s --drained yes\n", node);
}

static void print_plan(const struct cli *cli, const json_t *plan)
{
    static const char *const keys[] = {"instance", "from",   "to", "operations",
                                       "type",     "policy", NULL};
    const json_t *moves = json_object_get(plan, "moves");
    const json_t *blocked = json_object_get(plan, "blocked");
    const json_t *notes = json_object_get(plan, "notes");
    const char *node = json_string_value(json_object_get(plan, "node"));
    bool fail = strcmp(json_string_value(json_object_get(plan, "event")), "fail") == 0;
    for (size_t i = 0; i < json_array_size(notes); i++)
        printf("%s\n", json_string_value(json_array_get(notes, i)));
    if (json_array_size(moves) > 0)
        print_list(cli, moves, keys, keys);
    size_t left = print_left(moves);
    if (json_array_size(moves) > 0)
        printf("\n");
    if (json_array_size(blocked) > 0) {
        print_blocked(cli, blocked);
        printf("\n");
    }
    const size_t counts[] = {json_array_size(moves), left, json_array_size(blocked)};
    print_sum(node, fail, json_is_true(json_object_get(plan, "held")), counts);
}

static int plan(struct cli *cli, const char *event, int argc, char **argv, GError **error)
{
    g_autofree char *usage = g_strdup_printf("plan %s NODE", event);
    if (!cli_expect(argc, argv, 1, usage, error))
        return -1;
    json_autoptr answer = cli_call(cli, "PlanNode", json_make("[ss]", argv[0], event), error);
    if (answer == NULL)
        return -1;
    if (cli->json)
        cli_print_json(answer);
    else
        print_plan(cli, answer);
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
