/* Commands that show: lists and details of instances, nodes, jobs, repairs, tags and the cluster.
 */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

static const struct {
    const char *noun, *what, *fields;
} lists[] = {
    {"instance", "instance", "name,status,pnode,snodes,replica.state,disk_template,be/memory"},
    {"node", "node", "name,pip,role,offline,pinst_cnt,sinst_cnt,mtotal,mfree,dtotal,dfree"},
    {"repair", "repair", "instance,type,state,started,ended,jobs,id"},
    {"lock", "lock", "name,mode,owner,pending"},
    {"decision", "decision", "at,subject_name,state,verdict,summary"},
};

/* ["|", ["=", field, name], …]; NULL for no names. */
static json_t *names_filter(const char *field, int argc, char **argv)
{
    if (argc == 0)
        return NULL;
    json_t *filter = json_make("[s]", "|");
    for (int i = 0; i < argc; i++)
        json_array_append_new(filter, json_make("[sss]", "=", field, argv[i]));
    return filter;
}

static int show_list(struct cli *cli, const char *noun, int argc, char **argv, GError **error)
{
    guint row = 0;
    while (strcmp(lists[row].noun, noun) != 0)
        row++;
    g_autofree char *usage = g_strdup_printf("%s list [NAME…]", noun);
    if (!cli_expect(argc, argv, argc, usage, error))
        return -1;
    g_auto(GStrv) fields = cli_choose_fields(cli, lists[row].fields);
    if (!cli_check_fields(cli, lists[row].what, (const char *const *)fields, error))
        return -1;
    const char *key = strcmp(noun, "repair") == 0     ? "instance"
                      : strcmp(noun, "decision") == 0 ? "subject_name"
                                                      : "name";
    json_autoptr rows = cli_query(cli, lists[row].what, (const char *const *)fields,
                                  names_filter(key, argc, argv), error);
    if (rows == NULL)
        return -1;
    for (int i = 0; i < argc && json_array_size(rows) < (size_t)argc && key[0] == 'n'; i++) {
        json_autoptr one = cli_query(cli, lists[row].what, (const char *const[]){"name", NULL},
                                     names_filter(key, 1, argv + i), error);
        if (one == NULL)
            return -1;
        if (json_array_size(one) == 0) {
            fettle_set_error(error, UNKNOWN_ENTITY, "%s \"%s\" does not exist", noun, argv[i]);
            return -1;
        }
    }
    cli_print_rows(cli, lists[row].what, (const char *const *)fields, rows);
    return 0;
}

static int instance_list(struct cli *cli, int argc, char **argv, GError **error)
{
    return show_list(cli, "instance", argc, argv, error);
}

static int node_list(struct cli *cli, int argc, char **argv, GError **error)
{
    return show_list(cli, "node", argc, argv, error);
}

static int repair_list(struct cli *cli, int argc, char **argv, GError **error)
{
    return show_list(cli, "repair", argc, argv, error);
}

static int lock_list(struct cli *cli, int argc, char **argv, GError **error)
{
    return show_list(cli, "lock", argc, argv, error);
}

static int decision_list(struct cli *cli, int argc, char **argv, GError **error)
{
    return show_list(cli, "decision", argc, argv, error);
}

/* Where `info` begins a new section: the field that comes first in it. */
static const struct {
    const char *what, *field, *head;
} sections[] = {
    {"instance", "status", "What its node says"},
    {"instance", "admin_state", "Configuration"},
    {"instance", "generation", "Generation"},
    {"instance", "replica", "Replica"},
    {"instance", "task_state", "What a job is doing to it"},
    {"node", "pip", "Address"},
    {"node", "offline", "Role"},
    {"node", "pinst_cnt", "Instances"},
    {"node", "mtotal", "What it says"},
    {"node", "tags", "Configuration"},
};

static const char *section_from(const char *what, const char *field)
{
    for (size_t i = 0; i < G_N_ELEMENTS(sections); i++)
        if (strcmp(sections[i].what, what) == 0 && strcmp(sections[i].field, field) == 0)
            return sections[i].head;
    return NULL;
}

/* Every field that the resource has, one a line, in sections. */
static int show_details(struct cli *cli, const char *what, int argc, char **argv, GError **error)
{
    g_autofree char *usage = g_strdup_printf("%s info NAME", what);
    if (!cli_expect(argc, argv, 1, usage, error))
        return -1;
    json_autoptr all = cli_call(cli, "QueryFields", json_make("[sn]", what), error);
    if (all == NULL)
        return -1;
    g_autoptr(GPtrArray) names = g_ptr_array_new();
    const json_t *fields = json_object_get(all, "fields");
    for (size_t i = 0; i < json_array_size(fields); i++)
        g_ptr_array_add(
            names, (char *)json_string_value(json_object_get(json_array_get(fields, i), "name")));
    g_ptr_array_add(names, NULL);
    const char *const *chosen = (const char *const *)names->pdata;
    /* `-o +a` adds to what is all already. */
    bool choose = cli->fields != NULL && cli->fields[0] != '+';
    g_auto(GStrv) own = choose ? g_strsplit(cli->fields, ",", -1) : NULL;
    if (own != NULL)
        chosen = (const char *const *)own;
    if (!cli_check_fields(cli, what, chosen, error))
        return -1;
    json_autoptr rows = cli_query(cli, what, chosen, names_filter("name", argc, argv), error);
    if (rows == NULL)
        return -1;
    if (json_array_size(rows) == 0) {
        fettle_set_error(error, UNKNOWN_ENTITY, "%s \"%s\" does not exist", what, argv[0]);
        return -1;
    }
    if (cli->json) {
        cli_print_rows(cli, what, chosen, rows);
        return 0;
    }
    for (size_t i = 0; chosen[i] != NULL; i++) {
        g_autofree char *text =
            cli_cell_text(what, chosen[i], json_array_get(json_array_get(rows, 0), i));
        const char *head = choose ? NULL : section_from(what, chosen[i]);
        if (head != NULL)
            printf("\n%s:\n", head);
        printf("%-20s %s\n", chosen[i], *text ? text : "-");
    }
    return 0;
}

static int instance_info(struct cli *cli, int argc, char **argv, GError **error)
{
    return show_details(cli, "instance", argc, argv, error);
}

static int node_info(struct cli *cli, int argc, char **argv, GError **error)
{
    return show_details(cli, "node", argc, argv, error);
}

static int cluster_info(struct cli *cli, int argc, char **argv, GError **error)
{
    if (!cli_expect(argc, argv, 0, "cluster info", error))
        return -1;
    json_autoptr info = cli_call(cli, "QueryClusterInfo", json_array(), error);
    if (info == NULL)
        return -1;
    if (cli->json) {
        g_autofree char *text = json_dumps(info, JSON_INDENT(2));
        printf("%s\n", text);
        return 0;
    }
    const char *key;
    json_t *value;
    json_object_foreach(info, key, value)
    {
        json_autoptr cell = json_make("[iO]", 0, value);
        g_autofree char *text = cli_cell_text(NULL, key, cell);
        printf("%-22s %s\n", key, *text ? text : "-");
    }
    return 0;
}

/* fettle tag list KIND [NAME] */
static int tag_list(struct cli *cli, int argc, char **argv, GError **error)
{
    if (!cli_expect(argc, argv, argc == 1 ? 1 : 2,
                    "tag list cluster|nodegroup|node|instance [NAME]", error))
        return -1;
    json_autoptr tags =
        cli_call(cli, "QueryTags", json_make("[ss]", argv[0], argc == 2 ? argv[1] : ""), error);
    if (tags == NULL)
        return -1;
    json_autoptr rows = json_array();
    for (size_t i = 0; i < json_array_size(tags); i++)
        json_array_append_new(rows, json_make("[[iO]]", 0, json_array_get(tags, i)));
    cli_print_rows(cli, NULL, (const char *const[]){"tag", NULL}, rows);
    return 0;
}

const struct command query_commands[] = {
    {"instance", "list", "[NAME…]", "List instances.", instance_list},
    {"instance", "info", "NAME", "Show everything about an instance.", instance_info},
    {"node", "list", "[NAME…]", "List nodes.", node_list},
    {"node", "info", "NAME", "Show everything about a node.", node_info},
    {"cluster", "info", "", "Show what the cluster is and how its master stands.", cluster_info},
    {"tag", "list", "KIND [NAME]",
     "List the tags of the cluster, a node group, a node or an instance.", tag_list},
    {"repair", "list", "[INSTANCE…]", "List repairs, running and done.", repair_list},
    {"decision", "list", "[NAME…]", "List decision records.", decision_list},
    {"lock", "list", "", "List locks, their owners and who waits.", lock_list},
    {0},
};
