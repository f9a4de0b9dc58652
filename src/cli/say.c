/* The one line that says what is now true; see cli.h. */
#include "cli/cli.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void cli_say(const struct cli *cli, json_t *object, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_autofree char *text = g_strdup_vprintf(format, args);
    va_end(args);
    json_autoptr document = object != NULL ? object : json_object();
    if (!cli->json) {
        printf("%s\n", text);
        return;
    }
    json_object_set_new(document, "message", json_string(text));
    cli_print_json(document);
}

/*
 * What is true after an opcode: the first row of it whose condition holds counts. `when`: a field
 * and its value, "" for any. {field} is a field of the opcode; {@instance} how the instance is now,
 * {@node} what the node still has: asked of the cluster.
 */
static const struct done {
    const char *op_id, *field, *value, *text;
} done_rows[] = {
    {"OP_CLUSTER_INIT", "", "", "Cluster {cluster_name} is made."},
    {"OP_CLUSTER_SET_PARAMS", "", "", "The cluster has its new settings."},
    {"OP_REPAIR_CONTINUE", "", "", "Auto-repair goes on."},
    {"OP_NODE_ADD", "", "", "Node {node_name} is a member of the cluster."},
    {"OP_NODE_INVITE", "", "",
     "Host {node_name} can join with this token, once: fettle-noded join asks for it"},
    {"OP_NODE_WITHDRAW_INVITATION", "", "",
     "The invitation of {invitation} is withdrawn; its token lets nobody in any more."},
    {"OP_NODE_REMOVE", "", "", "Node {node_name} is no member of the cluster any more."},
    {"OP_NODE_SET_PARAMS", "offline", "yes",
     "Node {node_name} is offline on your word; what ran there may run elsewhere now."},
    {"OP_NODE_SET_PARAMS", "offline", "no", "Node {node_name} is online again."},
    {"OP_NODE_SET_PARAMS", "drained", "yes",
     "Node {node_name} is drained and takes nothing new; {@node}."},
    {"OP_NODE_SET_PARAMS", "drained", "no", "Node {node_name} takes instances again."},
    {"OP_NODE_SET_PARAMS", "", "", "Node {node_name} is changed."},
    {"OP_NODE_MIGRATE", "", "", "Node {node_name}: {@node}."},
    {"OP_NODE_EVACUATE", "", "", "Node {node_name}: {@node}."},
    {"OP_ADVICE_SET", "withdraw", "true", "The advice of {author} on node {node_name} is gone."},
    {"OP_ADVICE_SET", "", "", "Nothing new is placed on node {node_name}, as {author} advises."},
    {"OP_INSTANCE_CREATE", "", "", "{@instance}."},
    {"OP_INSTANCE_REMOVE", "", "", "Instance {instance_name} and its disks are removed."},
    {"OP_INSTANCE_SETTLE", "", "", "{@instance}."},
    {"OP_INSTANCE_SET_PARAMS", "", "", "Instance {instance_name} is changed."},
    {"OP_INSTANCE_STARTUP", "", "", "{@instance}."},
    {"OP_INSTANCE_SHUTDOWN", "", "", "{@instance}."},
    {"OP_INSTANCE_REBOOT", "", "", "{@instance}."},
    {"OP_INSTANCE_FAILOVER", "", "", "{@instance}."},
    {"OP_INSTANCE_MIGRATE", "", "", "{@instance}."},
    {"OP_INSTANCE_REPLACE_DISKS", "", "", "{@instance}."},
    {"OP_INSTANCE_GROW_DISK", "absolute", "true",
     "Disk {disk} of instance {instance_name} has {amount} MiB."},
    {"OP_INSTANCE_GROW_DISK", "", "",
     "Disk {disk} of instance {instance_name} is {amount} MiB larger."},
    {"OP_INSTANCE_ACTIVATE_DISKS", "", "", "The disks of instance {instance_name} are active."},
    {"OP_INSTANCE_DEACTIVATE_DISKS", "", "",
     "Nothing uses the disks of instance {instance_name} any more."},
    {"OP_INSTANCE_RECREATE_DISKS", "", "", "Instance {instance_name} has new, blank disks."},
    {"OP_INSTANCE_REINSTALL", "", "",
     "The first disk of instance {instance_name} is a new copy of its image."},
    {"OP_INSTANCE_VERIFY", "", "", "Instance {instance_name} was checked."},
    {"OP_TAGS_SET", "kind", "cluster", "The cluster has these tags now: {tags}."},
    {"OP_TAGS_SET", "name", "", "The {kind} {name} has these tags now: {tags}."},
    {"OP_TAGS_SET", "", "", "Every {kind} that matches has these tags now: {tags}."},
    {"OP_TAGS_DEL", "kind", "cluster", "The cluster has these tags no more: {tags}."},
    {"OP_TAGS_DEL", "name", "", "The {kind} {name} has these tags no more: {tags}."},
    {"OP_TAGS_DEL", "", "", "No {kind} that matches has these tags any more: {tags}."},
    {"OP_NETWORK_ADD", "", "", "Network {network_name} is made."},
    {"OP_NETWORK_SET_PARAMS", "", "", "Network {network_name} is changed."},
    {"OP_NETWORK_REMOVE", "", "", "Network {network_name} is gone."},
    {"OP_TEST_DELAY", "", "", "Waited for {duration} s."},
};

bool cli_done_known(const char *op_id)
{
    for (size_t i = 0; i < G_N_ELEMENTS(done_rows); i++)
        if (strcmp(done_rows[i].op_id, op_id) == 0 && *done_rows[i].field == '\0')
            return true;
    return false;
}

static char *field_text(const json_t *opcode, const char *name)
{
    const json_t *value = json_object_get(opcode, name);
    if (json_is_boolean(value))
        return g_strdup(json_is_true(value) ? "true" : "false");
    if (json_is_real(value))
        return g_strdup_printf("%g", json_real_value(value));
    json_autoptr cell = value != NULL ? json_make("[iO]", 0, value) : NULL;
    return cell != NULL ? cli_cell_text(NULL, name, cell) : g_strdup("");
}

static bool holds(const struct done *row, const json_t *opcode)
{
    g_autofree char *text = field_text(opcode, row->field);
    return *row->field == '\0' || (*row->value == '\0' && *text != '\0') ||
           (*row->value != '\0' && strcmp(text, row->value) == 0);
}

static const struct done *find_row(const json_t *opcode)
{
    const char *op_id = json_string_value(json_object_get(opcode, "OP_ID"));
    for (size_t i = 0; i < G_N_ELEMENTS(done_rows); i++)
        if (strcmp(done_rows[i].op_id, op_id) == 0 && holds(&done_rows[i], opcode))
            return &done_rows[i];
    return NULL;
}

/* --- asked of the cluster --- */

/* The row of an object by name or UUID; NULL if it is not there, or nobody answers. */
static json_t *ask_row(struct cli *cli, const char *what, const char *name,
                       const char *const *fields)
{
    json_autoptr rows =
        cli_query(cli, what, fields,
                  json_make("[s[sss][sss]]", "|", "=", "name", name, "=", "uuid", name), NULL);
    return json_incref(json_array_get(rows, 0));
}

/* "Instance web1 runs on node2; its replica on node3 is in-sync" */
static char *instance_now(struct cli *cli, const json_t *opcode)
{
    static const char *const fields[] = {"name",   "status",        "pnode",
                                         "snodes", "replica.state", NULL};
    g_autofree char *name = field_text(opcode, "instance_name");
    json_autoptr row = ask_row(cli, "instance", name, fields);
    if (row == NULL)
        return g_strdup_printf("Instance %s: done", name);
    const char *status = cli_cell_string(row, 1), *replica = cli_cell_string(row, 4);
    const char *node = cli_cell_string(row, 2);
    GString *text = g_string_new(NULL);
    if (strcmp(status, "running") == 0)
        g_string_printf(text, "Instance %s runs on %s", cli_cell_string(row, 0), node);
    else if (strcmp(status, "ADMIN_down") == 0)
        g_string_printf(text, "Instance %s is stopped; its disks are on %s",
                        cli_cell_string(row, 0), node);
    else
        g_string_printf(text, "Instance %s on %s is %s", cli_cell_string(row, 0), node, status);
    const char *second = json_string_value(json_array_get(cli_cell_value(row, 3), 0));
    if (second != NULL)
        g_string_append_printf(text, "; its replica on %s is %s", second, replica);
    return g_string_free(text, FALSE);
}

/* "it has 2 primary and 1 secondary instances" */
static char *node_now(struct cli *cli, const json_t *opcode)
{
    static const char *const fields[] = {"pinst_cnt", "sinst_cnt", NULL};
    g_autofree char *name = field_text(opcode, "node_name");
    json_autoptr row = ask_row(cli, "node", name, fields);
    if (row == NULL)
        return g_strdup("done");
    json_int_t primary = json_integer_value(cli_cell_value(row, 0));
    json_int_t secondary = json_integer_value(cli_cell_value(row, 1));
    if (primary == 0 && secondary == 0)
        return g_strdup("it has no instances and no replicas");
    return g_strdup_printf("it has %d primary and %d secondary instances", (int)primary,
                           (int)secondary);
}

/* --- putting it together --- */

static char *fill_in(struct cli *cli, const json_t *opcode, const char *name)
{
    if (strcmp(name, "@instance") == 0)
        return instance_now(cli, opcode);
    if (strcmp(name, "@node") == 0)
        return node_now(cli, opcode);
    return field_text(opcode, name);
}

char *cli_done_text(struct cli *cli, const json_t *opcode)
{
    const struct done *row = find_row(opcode);
    if (json_is_true(json_object_get(opcode, "dry_run")))
        return g_strdup("Checked only, nothing was changed: it could be done now.");
    GString *text = g_string_new(NULL);
    const char *rest = row != NULL ? row->text : "Done.", *open, *close;
    while ((open = strchr(rest, '{')) != NULL && (close = strchr(open, '}')) != NULL) {
        g_autofree char *name = g_strndup(open + 1, (size_t)(close - open - 1));
        g_autofree char *value = fill_in(cli, opcode, name);
        g_string_append_len(text, rest, open - rest);
        g_string_append(text, value);
        rest = close + 1;
    }
    g_string_append(text, rest);
    return g_string_free(text, FALSE);
}
