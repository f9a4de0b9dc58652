/* Lists of instances, nodes, services, networks, repairs, reservations, decisions, locks and tags.
 */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *noun, *what, *fields;
} lists[] = {
    {"instance", "instance", "name,status,pnode,snodes,replica.state,disk_template,be/memory"},
    {"node", "node", "name,pip,role,pinst_cnt,sinst_cnt,mtotal,mfree,dtotal,dfree"},
    {"repair", "repair", "instance,type,state,started,ended,jobs,id"},
    {"lock", "lock", "name,mode,owner,pending"},
    {"waiter", "waiter", "job,locks,priority,since,blockers,nodes"},
    {"network", "network", "name,network,gateway,mode,link,inst_cnt,free_count"},
    {"reservation", "reservation", "name,job,nodes,macs,ips,since"},
    {"service", "service", "name,node,role,state,process,since,restarts,version"},
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

/* Names that do not exist are an error: a shorter list alone would be overlooked. */
static bool names_exist(struct cli *cli, const char *noun, const char *what, int count,
                        char **names, GError **error)
{
    for (int i = 0; i < count; i++) {
        json_autoptr one = cli_query(cli, what, (const char *const[]){"name", NULL},
                                     names_filter("name", 1, names + i), error);
        if (one == NULL)
            return false;
        if (json_array_size(one) == 0) {
            fettle_set_error(error, UNKNOWN_ENTITY, "%s \"%s\" does not exist", noun, names[i]);
            return false;
        }
    }
    return true;
}

static int show_list(struct cli *cli, const char *noun, int argc, char **argv, GError **error)
{
    guint row = 0;
    while (strcmp(lists[row].noun, noun) != 0)
        row++;
    const char *what = lists[row].what;
    g_autofree char *usage = g_strdup_printf("%s list [NAME…]", noun);
    if (!cli_expect(argc, argv, argc, usage, error))
        return -1;
    g_auto(GStrv) fields = cli_choose_fields(cli, lists[row].fields);
    if (!cli_check_fields(cli, what, (const char *const *)fields, error))
        return -1;
    const char *key = strcmp(noun, "repair") == 0     ? "instance"
                      : strcmp(noun, "decision") == 0 ? "subject_name"
                                                      : "name";
    struct cli_table *table = cli_table_new(cli, what, (const char *const *)fields);
    bool fine = cli_query_each(cli, what, (const char *const *)fields,
                               names_filter(key, argc, argv), cli_table_add, table, error);
    /* A service has a row on each node. */
    bool may_lack = cli_table_rows(table) < (guint)argc || strcmp(noun, "service") == 0;
    if (fine && may_lack && key[0] == 'n')
        fine = names_exist(cli, noun, what, argc, argv, error);
    if (fine)
        cli_table_print(table);
    cli_table_free(table);
    return fine ? 0 : -1;
}

static int instance_list(struct cli *cli, int argc, char **argv, GError **error)
{
    return show_list(cli, "instance", argc, argv, error);
}

static int node_list(struct cli *cli, int argc, char **argv, GError **error)
{
    return show_list(cli, "node", argc, argv, error);
}

static int service_list(struct cli *cli, int argc, char **argv, GError **error)
{
    return show_list(cli, "service", argc, argv, error);
}

static int repair_list(struct cli *cli, int argc, char **argv, GError **error)
{
    return show_list(cli, "repair", argc, argv, error);
}

static int lock_list(struct cli *cli, int argc, char **argv, GError **error)
{
    return show_list(cli, "lock", argc, argv, error);
}

static int lock_waiters(struct cli *cli, int argc, char **argv, GError **error)
{
    return cli_expect(argc, argv, 0, "lock waiters", error)
               ? show_list(cli, "waiter", argc, argv, error)
               : -1;
}

static int network_list(struct cli *cli, int argc, char **argv, GError **error)
{
    return show_list(cli, "network", argc, argv, error);
}

static int reservation_list(struct cli *cli, int argc, char **argv, GError **error)
{
    return show_list(cli, "reservation", argc, argv, error);
}

static int decision_list(struct cli *cli, int argc, char **argv, GError **error)
{
    return show_list(cli, "decision", argc, argv, error);
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

/* fettle query-fields RESOURCE: all of them, as luxid tells them. */
static int query_fields(struct cli *cli, int argc, char **argv, GError **error)
{
    if (!cli_expect(argc, argv, 1, "query-fields RESOURCE", error))
        return -1;
    json_autoptr answer = cli_call(cli, "QueryFields", json_make("[sn]", argv[0]), error);
    if (answer == NULL)
        return -1;
    json_autoptr rows = json_array();
    size_t i;
    const json_t *field;
    json_array_foreach(json_object_get(answer, "fields"), i, field)
    {
        json_t *row = json_array();
        const char *const parts[] = {"name", "kind", "title", "doc"};
        for (guint k = 0; k < G_N_ELEMENTS(parts); k++)
            json_array_append_new(row, json_make("[iO]", 0, json_object_get(field, parts[k])));
        json_array_append_new(rows, row);
    }
    cli_print_rows(cli, NULL, (const char *const[]){"name", "kind", "title", "doc", NULL}, rows);
    return 0;
}

const struct command query_commands[] = {
    {"query-fields", NULL, "RESOURCE",
     "List the fields of a kind of object, such as instance, node, job or lock: for -o, and for "
     "clients of LUXI.",
     query_fields},
    {"instance", "list", "[NAME…]", "List instances.", instance_list},
    {"node", "list", "[NAME…]", "List nodes.", node_list},
    {"service", "list", "[NAME…]",
     "List the daemons that the nodes are to run, and how each node says that they are.",
     service_list},
    {"tag", "list", "KIND [NAME]",
     "List the tags of the cluster, a node group, a node or an instance.", tag_list},
    {"repair", "list", "[INSTANCE…]", "List repairs, running and done.", repair_list},
    {"decision", "list", "[NAME…]", "List decision records.", decision_list},
    {"network", "list", "[NAME…]", "List networks and what is left of their addresses.",
     network_list},
    {"reservation", "list", "[INSTANCE…]",
     "List room and addresses that jobs have reserved for instances.", reservation_list},
    {"lock", "list", "", "List locks, their owners and who waits.", lock_list},
    {"lock", "waiters", "", "List who waits for locks, and for whom.", lock_waiters},
    {0},
};
