/* `fettle instance|node|network|cluster info`: one object as a person wants to read it, and what
 * can be done next. With -o or --json: its fields as they stand. */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

#include "cli/commands/info.h"
#include "cli/screen.h"

/* --- one object with all its fields --- */

struct object {
    const char *what;
    json_t *cells; /* field -> [status, value] */
};

static void object_clear(struct object *object)
{
    json_decref(object->cells);
}

static GStrv all_fields(struct cli *cli, const char *what, GError **error)
{
    json_autoptr answer = cli_call(cli, "QueryFields", json_make("[sn]", what), error);
    if (answer == NULL)
        return NULL;
    g_autoptr(GStrvBuilder) names = g_strv_builder_new();
    const json_t *fields = json_object_get(answer, "fields");
    for (size_t i = 0; i < json_array_size(fields); i++)
        g_strv_builder_add(names,
                           json_string_value(json_object_get(json_array_get(fields, i), "name")));
    return g_strv_builder_end(names);
}

static json_t *rows_of(struct cli *cli, const char *what, const char *name,
                       const char *const *fields, GError **error)
{
    return cli_query(cli, what, fields,
                     json_make("[s[sss][sss]]", "|", "=", "name", name, "=", "uuid", name), error);
}

static void tell_many(struct cli *cli, const char *what, const char *name, GError **error)
{
    json_autoptr rows = rows_of(cli, what, name, (const char *const[]){"uuid", NULL}, error);
    g_autoptr(GString) uuids = g_string_new(NULL);
    for (size_t i = 0; i < json_array_size(rows); i++)
        g_string_append_printf(uuids, "%s%s", i ? ", " : "",
                               cli_cell_string(json_array_get(rows, i), 0));
    if (rows != NULL)
        fettle_set_error(error, WRONG_INPUT, "%zu %ss are called \"%s\": %s; name one by its UUID",
                         json_array_size(rows), what, name, uuids->str);
}

json_t *info_find(struct cli *cli, const char *what, const char *name, const char *const *fields,
                  GError **error)
{
    json_autoptr rows = rows_of(cli, what, name, fields, error);
    if (rows != NULL && json_array_size(rows) == 1)
        return json_incref(rows);
    if (rows != NULL && json_array_size(rows) == 0)
        fettle_set_error(error, UNKNOWN_ENTITY, "%s \"%s\" does not exist", what, name);
    else if (rows != NULL)
        tell_many(cli, what, name, error);
    return NULL;
}

void cli_print_details(const char *what, const char *const *fields, const json_t *row)
{
    for (size_t i = 0; fields[i] != NULL; i++) {
        g_autofree char *text = cli_cell_text(what, fields[i], json_array_get(row, i));
        printf("%-20s %s\n", fields[i], *text ? text : "-");
    }
}

typedef void (*info_print)(struct cli *cli, const json_t *cells);

static int show(struct cli *cli, const char *what, info_print print, int argc, char **argv,
                GError **error)
{
    g_autofree char *usage = g_strdelimit(g_strdup_printf("%s info NAME", what), "_", '-');
    if (!cli_expect(argc, argv, 1, usage, error))
        return -1;
    g_auto(GStrv) all = all_fields(cli, what, error);
    if (all == NULL)
        return -1;
    /* `-o +a` adds to what is all already. */
    bool choose = cli->fields != NULL && cli->fields[0] != '+';
    g_auto(GStrv) names = choose ? g_strsplit(cli->fields, ",", -1) : g_strdupv(all);
    const char *const *fields = (const char *const *)names;
    if (!cli_check_fields(cli, what, fields, error))
        return -1;
    json_autoptr rows = info_find(cli, what, argv[0], fields, error);
    if (rows == NULL)
        return -1;
    if (cli->json) {
        cli_print_rows(cli, what, fields, rows);
        return 0;
    }
    if (cli->fields != NULL) {
        cli_print_details(what, fields, json_array_get(rows, 0));
        return 0;
    }
    struct object object = {what, json_object()};
    for (size_t i = 0; fields[i] != NULL; i++)
        json_object_set(object.cells, fields[i], json_array_get(json_array_get(rows, 0), i));
    print(cli, object.cells);
    object_clear(&object);
    return 0;
}

static int instance_info(struct cli *cli, int argc, char **argv, GError **error)
{
    return show(cli, "instance", info_print_instance, argc, argv, error);
}

static int node_info(struct cli *cli, int argc, char **argv, GError **error)
{
    return show(cli, "node", info_print_node, argc, argv, error);
}

static int network_info(struct cli *cli, int argc, char **argv, GError **error)
{
    return show(cli, "network", info_print_network, argc, argv, error);
}

static int volume_info(struct cli *cli, int argc, char **argv, GError **error)
{
    return show(cli, "volume", info_print_volume, argc, argv, error);
}

static int snapshot_info(struct cli *cli, int argc, char **argv, GError **error)
{
    return show(cli, "snapshot", info_print_snapshot, argc, argv, error);
}

static int backup_info(struct cli *cli, int argc, char **argv, GError **error)
{
    return show(cli, "backup", info_print_backup, argc, argv, error);
}

static int volume_type_info(struct cli *cli, int argc, char **argv, GError **error)
{
    return show(cli, "volume_type", info_print_volume_type, argc, argv, error);
}

static int image_info(struct cli *cli, int argc, char **argv, GError **error)
{
    return show(cli, "image", info_print_image, argc, argv, error);
}

/* Who carries the master IP is a question to the nodes, which the cluster's answer leaves out. */
static bool add_carriers(struct cli *cli, json_t *info, GError **error)
{
    static const char *const fields[] = {"name", "master_ip", NULL};
    const char *address = json_string_value(json_object_get(info, "master_ip"));
    if (address == NULL || *address == '\0')
        return true;
    json_autoptr rows = cli_query(cli, "node", fields, NULL, error);
    json_t *names = json_array();
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        if (json_array_size(cli_cell_value(row, 1)) > 0)
            json_array_append_new(names, json_string(cli_cell_string(row, 0)));
    }
    json_object_set_new(info, "master_ip_nodes", names);
    return rows != NULL;
}

static int cluster_info(struct cli *cli, int argc, char **argv, GError **error)
{
    if (!cli_expect(argc, argv, 0, "cluster info", error))
        return -1;
    json_autoptr info = cli_call(cli, "QueryClusterInfo", json_array(), error);
    if (info == NULL || !add_carriers(cli, info, error))
        return -1;
    if (cli->json)
        cli_print_json(info);
    else
        info_print_cluster(info);
    return 0;
}

const struct command info_commands[] = {
    {"instance", "info", "NAME",
     "Show an instance: its state, its parts, the last decisions about it, what to do next.",
     instance_info},
    {"node", "info", "NAME", "Show a node: its role, what it has and runs, what to do next.",
     node_info},
    {"network", "info", "NAME", "Show a network: how cards are connected, who has its addresses.",
     network_info},
    {"volume", "info", "NAME",
     "Show a volume, by name or UUID: what it is, where its data are, what is being done to it.",
     volume_info},
    {"snapshot", "info", "NAME",
     "Show a snapshot, by name or UUID: of what it is, where its data are, what is being done to "
     "it.",
     snapshot_info},
    {"backup", "info", "NAME",
     "Show a backup, by name or UUID: of what it is, where its data are, what is being done to it.",
     backup_info},
    {"volume-type", "info", "NAME",
     "Show a type of volumes, by name or UUID: what a back end must be for it, whose it is.",
     volume_type_info},
    {"image", "info", "NAME",
     "Show an image, by name or UUID: its format, sizes and sums, where its data are, what is "
     "being "
     "done to it.",
     image_info},
    {"cluster", "info", "", "Show what the cluster is, its settings and how its master stands.",
     cluster_info},
    {0},
};
