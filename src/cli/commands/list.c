/* Lists: `fettle NOUN list`, of whatever clients of LUXI can query; tags; fields of queries. */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

#include "cli/commands/list.h"
#include "cli/commands/list_empty.h"
#include "cli/commands/list_faults.h"
#include "cli/filter_text.h"
#include "cli/order.h"
#include "cli/pattern.h"
#include "cli/table_cells.h"

/* What `fettle NOUN list` shows, by kind of row. `key`: the field that words choose rows by; NULL:
 * it takes no words. `named`: whose names these are, if they have to exist; NULL: records are kept
 * of what is no more, and nobody may hold a lock. */
static const struct list {
    const char *what, *fields, *key, *named;
    const char *late;     /* field that says what does not answer; NULL: none */
    const char *pending;  /* field that says what comes with the next start; NULL: none */
    const char *programs; /* what --json and --separator show; NULL: the same */
    const char *silence;  /* field that says for its row that the node says nothing; NULL: none */
    const char *brief;    /* field of which the first letters are enough for people; NULL: none */
} lists[] = {
    {"instance", "name,status,pnode,replica.at,be/memory,be/vcpus,nic.ips", "name", "instance",
     "guest.late", "pending",
     "name,status,pnode,snodes,replica.state,disk_template,be/memory,replica.at,be/vcpus,nic.ips"},
    {"node", "name,role,health,pinst_cnt,sinst_cnt,mfree,dfree,pip", "name", "node", "late", NULL,
     "name,pip,role,pinst_cnt,sinst_cnt,mtotal,mfree,dtotal,dfree,health", "health"},
    {"group", "name,node_cnt,pinst_cnt,tags", "name", "group"},
    {"service", "name,node,role,state,process,since,restarts", "name", "service", NULL, NULL,
     "name,node,role,state,process,known,since,restarts,version", "state"},
    {"advice", "node,advice,author,reason,until", "node", "node"},
    {"network", "name,network,gateway,mode,link,inst_cnt,free_count", "name", "network"},
    {"export", "node,export", "node", "node"},
    {"reservation", "name,job,nodes,ips,since", "name", "reservation", NULL, NULL,
     "name,job,nodes,macs,ips,port,since"},
    {"repair", "instance,type,state,started,jobs,id", "instance", NULL, NULL, NULL,
     "instance,type,state,started,ended,jobs,id", NULL, "id"},
    {"brake", "since,nodes,why", NULL, NULL},
    {"decision", "at,subject_name,state,verdict,summary", "subject_name", NULL},
    {"event", "at,level,subject_name,event,summary", "subject_name", NULL, NULL, NULL,
     "at,level,event,subject_kind,subject_name,task,old,new,rule,host,summary,evidence"},
    {"task", "subject_kind,subject_name,task,owner,owner_state,looks,next", "subject_name", NULL,
     NULL, NULL,
     "subject_kind,subject_name,task,since,owner,owner_state,stuck,looks,why,rule,error_since,"
     "next"},
    {"backend", "name,kind,nodes,up,volume_cnt,promised,free,total", "name", "backend", NULL, NULL,
     "name,kind,place,nodes,up,volume_cnt,size,promised,free,total"},
    {"volume_type", "name,public,extra_specs,volume_cnt", "name", "volume_type", NULL, NULL,
     "name,uuid,public,extra_specs,projects,volume_cnt,description"},
    {"volume", "name,status,size,backend,instance,uuid", "name", "volume", "waits_since", NULL,
     "name,uuid,status,why,size,backend,volume_type,project,instance,host,created,operation,worker,"
     "waits_since,"
     "description"},
    {"snapshot", "name,status,size,backend,volume,uuid", "name", "snapshot", "waits_since", NULL,
     "name,uuid,volume,volume_uuid,status,why,size,backend,project,host,created,operation,worker,"
     "waits_since,description"},
    {"backup", "name,status,size,backend,volume,uuid", "name", "backup", "waits_since", NULL,
     "name,uuid,volume,volume_uuid,status,why,size,backend,host,bytes,sum,created,operation,worker,"
     "waits_since,description"},
    {"image", "name,status,gib,backend,disk_format,uuid", "name", "image", "waits_since", NULL,
     "name,uuid,status,why,disk_format,size,virtual_size,min_disk,visibility,protected,project,"
     "properties,backend,host,checksum,os_hash_value,created,operation,worker,waits_since,"
     "description"},
    {"worker", "id,resource,operation,backend,service,updated", "resource", NULL, NULL, NULL,
     "id,resource_type,resource_id,resource,operation,status,backend,service,claim,created,updated,"
     "was,size,request_id"},
    {"storage_service", "binary,host,state,state_since,disabled,disabled_reason", "host", NULL,
     NULL, NULL,
     "id,binary,host,backend,node,state,state_since,disabled,disabled_reason,worker_cnt,generation,"
     "version"},
    {"lock", "name,mode,owner,pending", "name", NULL},
    {"waiter", "job,locks,priority,since,blockers,nodes", NULL, NULL},
};

#define VOLUME_BACKEND 3 /* its place among the fields of volumes, snapshots, backups, images */

/* ["|", ["=", field, name], …], of patterns ["=~", …]; NULL for no names. */
static json_t *names_filter(const char *field, int argc, char **argv)
{
    if (argc == 0)
        return NULL;
    json_t *filter = json_make("[s]", "|");
    for (int i = 0; i < argc; i++)
        json_array_append_new(filter, pattern_filter(field, argv[i]));
    return filter;
}

static bool matches_any(const char *pattern, GHashTable *names)
{
    g_autofree char *regex = pattern_regex(pattern);
    GHashTableIter iter;
    gpointer name;
    g_hash_table_iter_init(&iter, names);
    while (g_hash_table_iter_next(&iter, &name, NULL))
        if (g_regex_match_simple(regex, name, 0, 0))
            return true;
    return false;
}

/* Names that do not exist, and patterns of none, are an error: a shorter list alone would be
 * overlooked. */
static bool names_exist(struct cli *cli, const char *what, int count, char **names, GError **error)
{
    json_autoptr rows = cli_query(cli, what, (const char *const[]){"name", NULL},
                                  names_filter("name", count, names), error);
    if (rows == NULL)
        return false;
    g_autoptr(GHashTable) known = g_hash_table_new(g_str_hash, g_str_equal);
    for (size_t i = 0; i < json_array_size(rows); i++)
        g_hash_table_add(known, (gpointer)cli_cell_string(json_array_get(rows, i), 0));
    for (int i = 0; i < count; i++) {
        bool pattern = pattern_is(names[i]);
        if (pattern ? matches_any(names[i], known) : g_hash_table_contains(known, names[i]))
            continue;
        if (pattern) {
            pattern_set_none(what, names[i], error);
            return false;
        }
        fettle_set_error(error, UNKNOWN_ENTITY, "%s \"%s\" does not exist", what, names[i]);
        return false;
    }
    return true;
}

static const struct list *list_of(const char *what)
{
    const struct list *list = lists;
    while (strcmp(list->what, what) != 0)
        list++;
    return list;
}

/* A table, and below it what does not answer of what it shows. */
struct shown {
    struct cli_table *table;
    json_t *rows;  /* kept until all are there, if they are to be sorted or limited */
    guint keys;    /* index of the cells by which they are sorted */
    guint late;    /* index of the cell that tells; 0: nobody asked */
    guint pending; /* the same */
    guint silence; /* index of the cell that says it; 0: none */
    guint brief;   /* the same, of the cell of which the first letters are shown */
    guint columns; /* that are shown to a person by default; 0: somebody has chosen */
    struct list_faults *faults;
    GString *below; /* its lines */
    guint count;
};

static void keep_row(json_t *row, void *data)
{
    json_array_append(((struct shown *)data)->rows, row);
}

static void set_cell(json_t *row, guint index, const char *text)
{
    json_array_set_new(row, index, json_make("[is]", 0, text));
}

/* That a node says nothing is said once in its row. */
static void say_silence_once(json_t *row, const struct shown *shown)
{
    static const char *const words[] = {"silent", "offline"};
    json_int_t status = json_integer_value(json_array_get(json_array_get(row, shown->silence), 0)) -
                        CELL_UNAVAILABLE;
    if (status != 0 && status != 1)
        return;
    for (guint i = 0; i < shown->columns; i++)
        if (json_integer_value(json_array_get(json_array_get(row, i), 0)) >= CELL_UNAVAILABLE)
            json_array_set_new(row, i, json_make("[in]", CELL_NO_DATA));
    set_cell(row, shown->silence, words[status]);
}

/* As people see it by default. */
static void make_plain(json_t *row, const struct shown *shown)
{
    if (shown->silence > 0)
        say_silence_once(row, shown);
    if (shown->faults) {
        g_autofree char *word = list_faults_word(shown->faults, cli_cell_string(row, 0),
                                                 cli_cell_string(row, shown->silence));
        if (cli_cell_value(row, shown->silence) != NULL)
            set_cell(row, shown->silence, word);
    }
    if (shown->brief > 0) {
        g_autofree char *brief =
            g_strndup(cli_cell_string(row, shown->brief), TABLE_SHORT_ID_CHARS);
        set_cell(row, shown->brief, brief);
    }
}

/* Work that nobody has taken up yet. */
static void say_waiting(const json_t *row, const char *name, gint64 since, GString *below)
{
    g_autofree char *at = cli_time_text(since);
    const char *backend = cli_cell_string(row, VOLUME_BACKEND);
    g_string_append_printf(below, "%s: waits for %s%s since %s\n", name,
                           *backend ? "a member of " : "a back end to be chosen", backend, at);
}

static void show_row(json_t *row, void *data)
{
    struct shown *shown = data;
    const json_t *late = shown->late > 0 ? cli_cell_value(row, shown->late) : NULL, *part;
    const char *name = cli_cell_string(row, 0);
    size_t i;
    if (json_is_string(late))
        g_string_append_printf(shown->below, "%s: its guest %s\n", name, json_string_value(late));
    if (json_is_integer(late))
        say_waiting(row, name, json_integer_value(late), shown->below);
    json_array_foreach(late, i, part)
        g_string_append_printf(shown->below, "%s: %s\n", name, json_string_value(part));
    const json_t *pending = shown->pending > 0 ? cli_cell_value(row, shown->pending) : NULL;
    if (json_is_string(pending))
        g_string_append_printf(shown->below, "%s: %s from its next start on\n", name,
                               json_string_value(pending));
    shown->count++;
    make_plain(row, shown);
    cli_table_add(row, shown->table);
}

/* Its index. */
static guint add_field(GPtrArray *asked, const char *field)
{
    g_ptr_array_add(asked, (char *)field);
    return asked->len - 1;
}

static guint index_of(char **fields, const char *field)
{
    guint i = 0;
    while (field != NULL && fields[i] != NULL && strcmp(fields[i], field) != 0)
        i++;
    return field != NULL && fields[i] != NULL ? i : 0;
}

/* A list that is shown as it is if nobody chooses other fields is asked for that too. */
static bool show_rows(struct cli *cli, const struct list *list, const struct order *order,
                      char **fields, json_t *filter, struct shown *shown, GError **error)
{
    g_autofree char *chosen = g_strjoinv(",", fields);
    g_autoptr(GPtrArray) asked = g_ptr_array_new();
    for (guint i = 0; fields[i] != NULL; i++)
        g_ptr_array_add(asked, fields[i]);
    bool usual = !cli->json && cli->separator == NULL && strcmp(chosen, list->fields) == 0;
    if (usual && list->late != NULL)
        shown->late = add_field(asked, list->late);
    if (usual && list->pending != NULL)
        shown->pending = add_field(asked, list->pending);
    if (usual) {
        shown->columns = g_strv_length(fields);
        shown->silence = index_of(fields, list->silence);
        shown->brief = index_of(fields, list->brief);
        shown->faults = strcmp(list->what, "node") == 0 ? list_faults_ask(cli, error) : NULL;
        if (cli->silent)
            return false;
    }
    shown->keys = asked->len;
    for (guint i = 0; order->keys != NULL && order->keys[i] != NULL; i++)
        g_ptr_array_add(asked, order->keys[i]);
    g_ptr_array_add(asked, NULL);
    return cli_query_each(cli, list->what, (const char *const *)asked->pdata, filter,
                          shown->rows != NULL ? keep_row : show_row, shown, error);
}

/* All rows are there: what was kept, and what is said below. */
static void print_shown(const struct cli *cli, const struct order *order, struct shown *shown)
{
    size_t left = 0, i;
    json_t *row;
    json_autoptr rows =
        shown->rows != NULL ? order_rows(order, shown->rows, shown->keys, &left) : NULL;
    json_array_foreach(rows, i, row)
        show_row(row, shown);
    cli_table_print(shown->table);
    order_say_left(cli, left);
    if (shown->faults)
        list_faults_say(shown->faults, shown->below);
    printf("%s", shown->below->str);
}

/* Without -o programs get the fields that they ever had, at their places, and new ones behind. */
static GStrv fields_of(const struct cli *cli, const struct list *list)
{
    bool program = (cli->json || cli->separator != NULL) && list->programs != NULL;
    return cli_choose_fields(cli, list->what, program ? list->programs : list->fields);
}

static int show_list(struct cli *cli, const struct list *list, const struct order *order,
                     json_t *filter, json_t *also, int argc, char **argv, GError **error)
{
    json_autoptr owned = filter;
    json_autoptr owned_too = also;
    g_auto(GStrv) fields = fields_of(cli, list);
    if (!cli_check_fields(cli, list->what, (const char *const *)fields, error) ||
        (order->keys != NULL &&
         !cli_fields_exist(cli, "--sort", list->what, (const char *const *)order->keys, error)))
        return -1;
    struct shown shown = {.table = cli_table_new(cli, list->what, (const char *const *)fields),
                          .rows = order_is_asked(order) ? json_array() : NULL,
                          .below = g_string_new(NULL)};
    bool fine =
        show_rows(cli, list, order, fields,
                  filter_text_both(names_filter(list->key, argc, argv),
                                   filter_text_both(json_incref(filter), json_incref(also))),
                  &shown, error);
    if (fine && argc > 0 && list->named != NULL)
        fine = names_exist(cli, list->named, argc, argv, error);
    if (fine)
        print_shown(cli, order, &shown);
    if (fine && filter != NULL && shown.count == 0 && !cli->json)
        fine = list_explain_empty(cli, list->what, filter, error);
    cli_table_free(shown.table);
    list_faults_free(shown.faults);
    json_decref(shown.rows);
    g_string_free(shown.below, TRUE);
    return fine ? 0 : -1;
}

int cli_list(struct cli *cli, const char *noun, const char *verb, const char *what, json_t *also,
             int argc, char **argv, GError **error)
{
    g_autofree char *usage =
        g_strdup_printf("%s %s %s", noun, verb, cli_find_command(noun, verb)->usage);
    const struct list *list = list_of(what);
    g_autoptr(GError) bad = NULL;
    order_auto struct order order = {0};
    json_t *filter = NULL;
    const char *text = NULL;
    if (order_take(&order, &argc, argv, what, &bad))
        text = cli_take_option(&argc, argv, "--filter", &bad);
    if (text != NULL)
        filter = filter_text_parse(text, &bad);
    if (bad == NULL && cli_expect(argc, argv, list->key != NULL ? argc : 0, usage, &bad))
        return show_list(cli, list, &order, filter, also, argc, argv, error);
    json_decref(filter);
    json_decref(also);
    g_propagate_error(error, g_steal_pointer(&bad));
    return -1;
}

/* `fettle WHAT list`. */
static int list_command(struct cli *cli, const char *what, int argc, char **argv, GError **error)
{
    return cli_list(cli, what, "list", what, NULL, argc, argv, error);
}

static int instance_list(struct cli *cli, int argc, char **argv, GError **error)
{
    return list_command(cli, "instance", argc, argv, error);
}

static int node_list(struct cli *cli, int argc, char **argv, GError **error)
{
    return list_command(cli, "node", argc, argv, error);
}

static int group_list(struct cli *cli, int argc, char **argv, GError **error)
{
    return list_command(cli, "group", argc, argv, error);
}

static int service_list(struct cli *cli, int argc, char **argv, GError **error)
{
    return list_command(cli, "service", argc, argv, error);
}

static int advice_list(struct cli *cli, int argc, char **argv, GError **error)
{
    return list_command(cli, "advice", argc, argv, error);
}

static int network_list(struct cli *cli, int argc, char **argv, GError **error)
{
    return list_command(cli, "network", argc, argv, error);
}

static int backend_list(struct cli *cli, int argc, char **argv, GError **error)
{
    return list_command(cli, "backend", argc, argv, error);
}

static int volume_type_list(struct cli *cli, int argc, char **argv, GError **error)
{
    return cli_list(cli, "volume-type", "list", "volume_type", NULL, argc, argv, error);
}

static int volume_list(struct cli *cli, int argc, char **argv, GError **error)
{
    return list_command(cli, "volume", argc, argv, error);
}

static int snapshot_list(struct cli *cli, int argc, char **argv, GError **error)
{
    return list_command(cli, "snapshot", argc, argv, error);
}

static int backup_list(struct cli *cli, int argc, char **argv, GError **error)
{
    return list_command(cli, "backup", argc, argv, error);
}

static int image_list(struct cli *cli, int argc, char **argv, GError **error)
{
    return list_command(cli, "image", argc, argv, error);
}

static int worker_list(struct cli *cli, int argc, char **argv, GError **error)
{
    return list_command(cli, "worker", argc, argv, error);
}

static int storage_service_list(struct cli *cli, int argc, char **argv, GError **error)
{
    return cli_list(cli, "storage-service", "list", "storage_service", NULL, argc, argv, error);
}

static int export_list(struct cli *cli, int argc, char **argv, GError **error)
{
    return list_command(cli, "export", argc, argv, error);
}

static int reservation_list(struct cli *cli, int argc, char **argv, GError **error)
{
    return list_command(cli, "reservation", argc, argv, error);
}

static int repair_list(struct cli *cli, int argc, char **argv, GError **error)
{
    int code = list_command(cli, "repair", argc, argv, error);
    return code == 0 && !cli->json && !cli_print_brake(cli, error) ? -1 : code;
}

static int brake_list(struct cli *cli, int argc, char **argv, GError **error)
{
    return list_command(cli, "brake", argc, argv, error);
}

static int decision_list(struct cli *cli, int argc, char **argv, GError **error)
{
    return list_command(cli, "decision", argc, argv, error);
}

static int lock_list(struct cli *cli, int argc, char **argv, GError **error)
{
    return list_command(cli, "lock", argc, argv, error);
}

static int lock_waiters(struct cli *cli, int argc, char **argv, GError **error)
{
    return cli_list(cli, "lock", "waiters", "waiter", NULL, argc, argv, error);
}

/* fettle tag list KIND [NAME] */
static int tag_list(struct cli *cli, int argc, char **argv, GError **error)
{
    if (!cli_expect(argc, argv, argc == 1 ? 1 : 2,
                    "tag list cluster|nodegroup|node|instance [NAME]", error))
        return -1;
    static const char *const kinds[] = {"cluster", "nodegroup", "node", "instance", NULL};
    if (!g_strv_contains(kinds, argv[0])) {
        fettle_set_error(error, WRONG_INPUT,
                         "\"%s\": must be cluster, nodegroup, node or instance; usage: fettle tag "
                         "list cluster|nodegroup|node|instance [NAME]",
                         argv[0]);
        return -1;
    }
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
    json_array_foreach(json_object_get(answer, "fields"), i, field) {
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
    {"instance", "list", "[--filter FILTER] " ORDER_USAGE " [NAME…]", "List instances.",
     instance_list},
    {"node", "list", "[--filter FILTER] " ORDER_USAGE " [NAME…]", "List nodes.", node_list},
    {"group", "list", "[--filter FILTER] " ORDER_USAGE " [NAME…]", "List node groups.", group_list},
    {"service", "list", "[--filter FILTER] " ORDER_USAGE " [NAME…]",
     "List the daemons that the nodes are to run, and how each node says that they are.",
     service_list},
    {"advice", "list", "[--filter FILTER] " ORDER_USAGE " [NODE…]",
     "List the advice that stands about nodes: whose it is, why, and until when. See fettle node "
     "advise.",
     advice_list},
    {"tag", "list", "KIND [NAME]",
     "List the tags of the cluster, a node group, a node or an instance.", tag_list},
    {"repair", "list", "[--filter FILTER] " ORDER_USAGE " [INSTANCE…]",
     "List repairs, running and done.", repair_list},
    {"brake", "list", "[--filter FILTER] " ORDER_USAGE,
     "Show the storm brake of auto-repair, if it is on: since when, and why.", brake_list},
    {"decision", "list", "[--filter FILTER] " ORDER_USAGE " [NAME…]", "List decision records.",
     decision_list},
    {"network", "list", "[--filter FILTER] " ORDER_USAGE " [NAME…]",
     "List networks and what is left of their addresses.", network_list},
    {"volume", "list", "[--filter FILTER] " ORDER_USAGE " [NAME…]",
     "List volumes, and below them whose work waits for a volume service.", volume_list},
    {"snapshot", "list", "[--filter FILTER] " ORDER_USAGE " [NAME…]",
     "List snapshots of volumes, and below them whose work waits for a volume service.",
     snapshot_list},
    {"backup", "list", "[--filter FILTER] " ORDER_USAGE " [NAME…]",
     "List backups of volumes, and below them whose work waits for a volume service.", backup_list},
    {"image", "list", "[--filter FILTER] " ORDER_USAGE " [NAME…]",
     "List images that volumes are made of, and below them whose work waits for a volume service.",
     image_list},
    {"backend", "list", "[--filter FILTER] " ORDER_USAGE " [NAME…]",
     "List back ends of volumes, and which of their nodes serve them now.", backend_list},
    {"volume-type", "list", "[--filter FILTER] " ORDER_USAGE " [NAME…]",
     "List types of volumes: what a back end must be for them, and how many volumes have them.",
     volume_type_list},
    {"worker", "list", "[--filter FILTER] " ORDER_USAGE " [VOLUME…]",
     "List work that is asked for and not done yet, and which service has it.", worker_list},
    {"storage-service", "list", "[--filter FILTER] " ORDER_USAGE " [HOST…]",
     "List the services that work on what is stored: each with its host, as NODE@BACKEND, and "
     "whether it gives signs of life.",
     storage_service_list},
    {"export", "list", "[--filter FILTER] " ORDER_USAGE " [NODE…]",
     "List exports of instances, as clients of Ganeti ask for them: no node has any here.",
     export_list},
    {"reservation", "list", "[--filter FILTER] " ORDER_USAGE " [INSTANCE…]",
     "List room and addresses that jobs have reserved for instances.", reservation_list},
    {"lock", "list", "[--filter FILTER] " ORDER_USAGE " [NAME…]",
     "List locks, their owners and who waits.", lock_list},
    {"lock", "waiters", "[--filter FILTER] " ORDER_USAGE, "List who waits for locks, and for whom.",
     lock_waiters},
    {"query-fields", NULL, "RESOURCE",
     "List the fields of a kind of object, such as instance, node, job or lock: for -o, and for "
     "clients of LUXI.",
     query_fields},
    {0},
};
