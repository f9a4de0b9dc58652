/* The pages of one node and of the cluster; see info.h. */
#include "cli/commands/info.h"

#include <stdio.h>
#include <string.h>

#include "proto/invitation.h"

/* It answers with an error, and so tells nothing else. */
static bool refuses(const json_t *cells)
{
    return info_value(cells, "mtotal") == NULL && json_array_size(info_value(cells, "late")) > 0;
}

static const char *role_word(const json_t *cells)
{
    const char *role = info_string(cells, "role");
    return cli_role_word(role) != NULL ? cli_role_word(role) : role;
}

static void print_role(const json_t *cells)
{
    const char *statement = info_string(cells, "offline_statement");
    g_autofree char *since = cli_time_text(info_number(cells, "offline_since"));
    g_autofree char *rest =
        json_is_true(info_value(cells, "offline"))
            ? g_strdup_printf(" since %s: %s", since, *statement ? statement : "no statement")
            : g_strdup("");
    info_word("Role", role_word(cells), rest);
    info_line("Address", "%s port %" G_GINT64_FORMAT, info_string(cells, "pip"),
              info_number(cells, "port"));
    info_line("Group", "%s", info_string(cells, "group"));
}

static void print_late(const json_t *cells)
{
    size_t i;
    const json_t *part;
    json_array_foreach(info_value(cells, "late"), i, part) {
        g_autofree char *rest = g_strdup_printf(": %s", json_string_value(part));
        info_word("Late", "error", rest);
    }
}

/* Only while it matters. */
static void print_unheard(const json_t *cells)
{
    gint64 since = info_number(cells, "unheard_since");
    g_autofree char *time = cli_time_text(since);
    if (since > 0)
        info_line("Not heard",
                  "what the master before answered it from %s on may not be on record: it has not "
                  "told yet what it runs",
                  time);
}

static void print_node_keys(const json_t *cells)
{
    gint64 ends = info_number(cells, "certificate_ends");
    g_autofree char *end = cli_time_text(ends);
    if (ends > 0)
        info_line("Certificate", "ends %s", end);
    g_autofree char *back = invitation_way_back(
        info_string(cells, "name"), info_string(cells, "pip"), (guint64)info_number(cells, "port"));
    if (json_is_true(info_value(cells, "keys_missed")))
        info_line("Old keys",
                  "the keys of the cluster were renewed while it was offline: nobody believes it; "
                  "invite it again: %s",
                  back);
}

/* Nothing, if it is well, or of a version that does not tell. */
static void print_faults(const json_t *cells)
{
    size_t i;
    const json_t *fault;
    json_array_foreach(info_value(cells, "faults"), i, fault) {
        g_autofree char *text = g_strconcat(": ", json_string_value(fault), NULL);
        info_word(i == 0 ? "Health" : "", "error", text);
    }
}

/* What only the node itself can say. */
static void print_room(const json_t *cells)
{
    if (refuses(cells)) {
        print_late(cells);
        return;
    }
    if (info_value(cells, "mtotal") == NULL) {
        if (!json_is_true(info_value(cells, "offline")))
            info_word("Answers", "no", ": what it has and runs is not known");
        return;
    }
    info_line("Memory", "%" G_GINT64_FORMAT " of %" G_GINT64_FORMAT " MiB free",
              info_number(cells, "mfree"), info_number(cells, "mtotal"));
    print_late(cells);
    if (info_number(cells, "dtotal") == 0 && json_array_size(info_value(cells, "late")) == 0)
        info_word("Disk", "error", ": the folder of its disks cannot be read");
    else
        info_line("Disk", "%" G_GINT64_FORMAT " of %" G_GINT64_FORMAT " MiB free",
                  info_number(cells, "dfree"), info_number(cells, "dtotal"));
    print_faults(cells);
    info_line("Processors", "%" G_GINT64_FORMAT, info_number(cells, "ctotal"));
    info_line("Version", "%s, boot %s", info_string(cells, "version"),
              info_string(cells, "bootid"));
}

/* "0", "0, 2" */
static char *numbers_text(const json_t *numbers)
{
    GString *text = g_string_new(NULL);
    size_t i;
    const json_t *number;
    json_array_foreach(numbers, i, number)
        g_string_append_printf(text, "%s%" JSON_INTEGER_FORMAT, i > 0 ? "," : "",
                               json_integer_value(number));
    return g_string_free(text, FALSE);
}

static guint64 image_space(const json_t *image)
{
    return (guint64)json_integer_value(json_object_get(image, "space"));
}

static void print_image(const json_t *image)
{
    static const struct {
        const char *role, *text;
    } roles[] = {{"primary", "runs from it"},
                 {"replica", "replica"},
                 {"migration", "of a migration"},
                 {"aside", "kept aside"}};
    const char *role = json_string_value(json_object_get(image, "role"));
    const char *text = "not on record";
    json_int_t generation = json_integer_value(json_object_get(image, "generation"));
    for (size_t i = 0; i < G_N_ELEMENTS(roles); i++)
        text = g_strcmp0(role, roles[i].role) == 0 ? roles[i].text : text;
    g_autofree char *disks = numbers_text(json_object_get(image, "disks"));
    g_autofree char *number = g_strdup_printf("%" JSON_INTEGER_FORMAT, generation);
    printf("  %-33s  %-13s %10s  %5s  %8" G_GUINT64_FORMAT "\n",
           json_string_value(json_object_get(image, "instance")), text,
           generation > 0 ? number : "-", disks, (image_space(image) + MIB(1) - 1) / MIB(1));
}

static gint compare_images(gconstpointer a, gconstpointer b)
{
    const json_t *const *one = a, *const *two = b;
    guint64 first = image_space(*one), second = image_space(*two);
    return first > second ? -1 : first < second ? 1 : 0;
}

/* What takes the space, the most first. */
static void print_images(const json_t *cells)
{
    const json_t *images = info_value(cells, "images");
    g_autoptr(GPtrArray) sorted = g_ptr_array_new();
    size_t i;
    json_t *image;
    if (json_array_size(images) == 0)
        return;
    json_array_foreach(images, i, image)
        g_ptr_array_add(sorted, image);
    g_ptr_array_sort(sorted, compare_images);
    printf("\nImages\n  %-33s  %-13s %10s  %5s  %8s\n", "Of", "Role", "Generation", "Disks",
           "MiB used");
    for (guint at = 0; at < sorted->len && at < LIMIT_SHOWN_IMAGES; at++)
        print_image(sorted->pdata[at]);
    if (sorted->len > LIMIT_SHOWN_IMAGES)
        printf("  … and %u more: fettle node info %s --json\n", sorted->len - LIMIT_SHOWN_IMAGES,
               info_string(cells, "name"));
}

static void print_next(const json_t *cells, const char *name)
{
    gint64 primary = info_number(cells, "pinst_cnt"), secondary = info_number(cells, "sinst_cnt");
    bool offline = json_is_true(info_value(cells, "offline"));
    bool drained = json_is_true(info_value(cells, "drained"));
    bool silent = !offline && info_value(cells, "mtotal") == NULL && !refuses(cells);
    if (!offline && !drained && !silent)
        return;
    printf("\nNext\n");
    if (silent)
        printf("  It does not answer. If it is really dead, say so:\n"
               "      fettle node modify %s --offline yes --statement \"…\"\n",
               name);
    if (offline)
        printf("  When it works again: fettle node modify %s --offline no\n", name);
    if (drained && !offline && primary + secondary > 0)
        printf("  Empty it: fettle node evacuate %s\n", name);
    if (drained && primary + secondary == 0)
        printf("  It is empty and can be switched off. Into use again: fettle node modify %s "
               "--drained no\n",
               name);
}

void info_print_node(struct cli *cli, const json_t *cells)
{
    const char *name = info_string(cells, "name");
    g_autofree char *primary = info_list(cells, "pinst_list");
    g_autofree char *secondary = info_list(cells, "sinst_list");
    g_autofree char *leftovers = info_list(cells, "leftovers");
    g_autofree char *tags = info_list(cells, "tags");
    printf("Node %s\n", name);
    print_role(cells);
    print_unheard(cells);
    print_node_keys(cells);
    print_room(cells);
    info_line("Instances", "%s", primary);
    info_line("Replicas of", "%s", secondary);
    if (json_array_size(info_value(cells, "leftovers")) > 0 &&
        json_array_size(info_value(cells, "images")) == 0)
        info_line("Kept aside", "%s", leftovers);
    info_line("Tags", "%s", tags);
    info_line("UUID", "%s", info_string(cells, "uuid"));
    print_images(cells);
    print_next(cells, name);
}

/* --- the cluster --- */

static const struct {
    const char *head;
    const char *const *keys;
} cluster_groups[] = {
    {"Cluster",
     (const char *const[]){"name", "uuid", "master", "software_version", "enabled_disk_templates",
                           "enabled_hypervisors", "tags", NULL}},
    {"Master",
     (const char *const[]){"history", "epoch", "serial", "nodes_pending", "jobs_queued",
                           "jobs_running", "jobs_newest", "authority_key", "problems", NULL}},
};

/* The address, and which node carries it. */
static void print_master_ip(json_t *left)
{
    const char *address = json_string_value(json_object_get(left, "master_ip"));
    const char *netdev = json_string_value(json_object_get(left, "master_netdev"));
    const json_t *carriers = json_object_get(left, "master_ip_nodes");
    if (address != NULL && *address != '\0') {
        g_autoptr(GString) nodes = g_string_new(NULL);
        size_t i;
        const json_t *node;
        json_array_foreach(carriers, i, node)
            g_string_append_printf(nodes, "%s%s", i > 0 ? ", " : "", json_string_value(node));
        printf("  %-25s %s/%" G_GINT64_FORMAT " on %s, carried by %s\n", "master_ip", address,
               (gint64)json_integer_value(json_object_get(left, "master_netmask")),
               netdev != NULL ? netdev : "-", nodes->len > 0 ? nodes->str : "no node");
    }
    static const char *const keys[] = {"master_ip", "master_netmask", "master_netdev",
                                       "master_ip_nodes"};
    for (size_t i = 0; i < G_N_ELEMENTS(keys); i++)
        json_object_del(left, keys[i]);
}

static void print_key(json_t *info, const char *key)
{
    json_autoptr cell = json_make("[iO]", 0, json_object_get(info, key));
    g_autofree char *text = cli_cell_text(NULL, key, cell);
    printf("  %-25s %s\n", key, *text ? text : "-");
}

/* Other candidates, each with its copy. */
static void print_copies(json_t *left)
{
    json_autoptr copies = json_incref(json_object_get(left, "copies"));
    size_t i;
    json_t *copy;
    json_object_del(left, "copies");
    if (json_array_size(copies) > 0)
        printf("\nCopies\n");
    json_array_foreach(copies, i, copy) {
        gint64 serial = (gint64)json_integer_value(json_object_get(copy, "serial"));
        bool reachable = json_is_true(json_object_get(copy, "reachable"));
        bool key = json_is_true(json_object_get(copy, "authority"));
        bool filling = json_is_true(json_object_get(copy, "filling"));
        printf("  %-25s serial %" G_GINT64_FORMAT "%s%s\n",
               json_string_value(json_object_get(copy, "node")), serial,
               reachable     ? ""
               : filling     ? ", is being filled anew: no change waits for it until it is whole"
               : serial == 0 ? ", has not been heard of"
                             : ", out of reach: no change waits for it",
               reachable && !key
                   ? ", without the authority's key: as master it could let no host in"
                   : "");
    }
}

/* How far a renewal is, what it waits for, and when the authority ends. */
static void print_keys(json_t *left)
{
    json_autoptr keys = json_incref(json_object_get(left, "keys"));
    const char *phase = json_string_value(json_object_get(keys, "renewal"));
    json_int_t ends = json_integer_value(json_object_get(keys, "authority_ends"));
    g_autofree char *end = ends > 0 ? cli_time_text(ends) : g_strdup("not known");
    json_object_del(left, "keys");
    if (phase == NULL)
        return;
    printf("\nKeys (fettle cluster renew-keys)\n  %-25s %s\n", "authority ends", end);
    if (strcmp(phase, "none") != 0)
        printf("  %-25s %s\n", "renewal", phase);
    size_t i;
    json_t *text;
    json_array_foreach(json_object_get(keys, "waits"), i, text)
        printf("  %-25s %s\n", "waits for", json_string_value(text));
    json_array_foreach(json_object_get(keys, "missed"), i, text)
        printf("  %-25s node %s: invite it again when it is back\n", "has old keys",
               json_string_value(text));
}

void info_print_cluster(const json_t *info)
{
    json_autoptr left = json_copy((json_t *)info);
    for (size_t i = 0; i < G_N_ELEMENTS(cluster_groups); i++) {
        printf("%s%s\n", i > 0 ? "\n" : "", cluster_groups[i].head);
        for (const char *const *key = cluster_groups[i].keys; *key != NULL; key++) {
            if (json_object_get(left, *key) == NULL)
                continue;
            print_key(left, *key);
            json_object_del(left, *key);
        }
    }
    print_master_ip(left);
    print_copies(left);
    print_keys(left);
    static const char *const for_clients[] = {
#define TOLD(name, function, doc)
#define CLIENTS(name, function, doc) #name,
#define FIXED(name, value, doc) #name,
#include "proto/cluster_info.def"
#undef TOLD
#undef CLIENTS
#undef FIXED
    };
    for (size_t i = 0; i < G_N_ELEMENTS(for_clients); i++)
        json_object_del(left, for_clients[i]);
    printf("\nSettings (fettle cluster modify)\n");
    const char *key;
    json_t *value;
    json_object_foreach(left, key, value)
        print_key(left, key);
}
