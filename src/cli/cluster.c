/*
 * `fettle cluster init` and `fettle cluster verify`. Init is the one command that runs before there
 * is a cluster: it makes the identity of this host if it has none, and has fettle-wconfd make the
 * store, which nobody else opens.
 */
#include "cli/cli.h"

#include <gio/gio.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>

#include "io/certs.h"
#include "io/node_config.h"
#include "io/process.h"
#include "proto/cli_table.h"
#include "proto/master_ip.h"

/* Without etc/node.json this host gets a name, a CA and a certificate of its own. */
static bool make_identity(const struct node_paths *paths, const struct op_cluster_init *params,
                          GError **error)
{
    g_autoptr(GError) missing = NULL;
    struct node_config *known = node_config_read(paths, &missing);
    if (known != NULL) {
        node_config_free(known);
        return true;
    }
    if (!fettle_error_is(missing, UNKNOWN_ENTITY)) {
        g_propagate_error(error, g_steal_pointer(&missing));
        return false;
    }
    struct node_config *config = node_config_new();
    g_free(config->node_uuid);
    config->node_uuid = g_uuid_string_random();
    g_free(config->cluster_uuid);
    config->cluster_uuid = g_uuid_string_random();
    g_free(config->name);
    config->name = g_strdup(params->node_name);
    g_free(config->address);
    config->address = g_strdup(params->primary_ip);
    g_autofree char *ca_cert = g_build_filename(paths->etc, "ca.crt", NULL);
    g_autofree char *ca_key = g_build_filename(paths->etc, "ca.key", NULL);
    g_autofree char *cert = g_build_filename(paths->etc, "node.crt", NULL);
    g_autofree char *key = g_build_filename(paths->etc, "node.key", NULL);
    bool ok = node_paths_make(paths, error) &&
              certs_make_ca(ca_cert, ca_key, config->cluster_uuid, error) &&
              certs_make_node(ca_cert, ca_key, config->cluster_uuid, config->node_uuid, cert, key,
                              error) &&
              node_config_write(paths, config, error);
    node_config_free(config);
    return ok;
}

static bool run_bootstrap(const struct node_paths *paths, const json_t *opcode, GError **error)
{
    g_autofree char *program = program_path("fettle-wconfd");
    g_autoptr(GSubprocess) child =
        g_subprocess_new(G_SUBPROCESS_FLAGS_STDIN_PIPE | G_SUBPROCESS_FLAGS_STDERR_PIPE, error,
                         program, "--root", paths->root, "--bootstrap", NULL);
    if (child == NULL)
        return false;
    g_autofree char *text = json_to_text(opcode);
    g_autofree char *complaint = NULL;
    if (!g_subprocess_communicate_utf8(child, text, NULL, NULL, &complaint, error))
        return false;
    if (g_subprocess_get_successful(child))
        return true;
    const char *last = complaint != NULL ? g_strstrip(complaint) : "";
    const char *line = strrchr(last, '\n');
    fettle_set_error(error, WRONG_STATE, "%s", line != NULL ? line + 1 : last);
    return false;
}

/* Said before anything is made. */
static bool has_netdev(const struct op_cluster_init *params, GError **error)
{
    if (*params->master_netdev == '\0')
        return true;
    if (!master_ip_check_netdev(params->master_netdev, error))
        return false;
    if (if_nametoindex(params->master_netdev) != 0)
        return true;
    fettle_set_error(error, ENVIRONMENT,
                     "master_netdev: network device %s does not exist on this node",
                     params->master_netdev);
    return false;
}

static int cluster_init(struct cli *cli, int argc, char **argv, GError **error)
{
    const struct cli_command *command = cli_command_find("cluster", "init");
    if (cli_take_flag(&argc, argv, "--help")) {
        g_autofree char *help = cli_command_help(command);
        printf("%s", help);
        return 0;
    }
    argv[argc] = NULL;
    json_autoptr opcode = cli_command_parse(command, (const char *const *)argv, error);
    if (opcode == NULL)
        return -1;
    struct op_common *common = NULL;
    void *params = NULL;
    const struct opcode *kind = NULL;
    if (!opcode_parse(opcode, &common, &params, &kind, error))
        return -1;
    g_autoptr(node_paths_t) paths =
        has_netdev(params, error) ? node_paths_new(cli->root, error) : NULL;
    const char *name = json_string_value(json_object_get(opcode, "cluster_name"));
    bool ok =
        paths != NULL && make_identity(paths, params, error) && run_bootstrap(paths, opcode, error);
    op_common_free(common);
    op_cluster_init_free(params);
    if (!ok)
        return -1;
    cli_say(cli, json_make("{ss}", "cluster", name),
            "Cluster %s is made. Now start fettle-wconfd, fettle-luxid, fettle-noded and "
            "fettle-watcher on this node: systemctl start fettle.target",
            name);
    return 0;
}

/* --- verify --- */

struct findings {
    GPtrArray *lines; /* what is not as it should be */
    GPtrArray *notes; /* what is worth knowing, and no fault */
};

static void find(struct findings *findings, const char *format, ...) G_GNUC_PRINTF(2, 3);
static void find(struct findings *findings, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_ptr_array_add(findings->lines, g_strdup_vprintf(format, args));
    va_end(args);
}

static void note(struct findings *findings, const char *format, ...) G_GNUC_PRINTF(2, 3);
static void note(struct findings *findings, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_ptr_array_add(findings->notes, g_strdup_vprintf(format, args));
    va_end(args);
}

/* Hosts can join as long as the master has the key, whoever that is. */
static void verify_authority(struct findings *findings, const json_t *info)
{
    size_t index;
    const json_t *copy;
    if (!json_is_true(json_object_get(info, "authority_key")))
        find(findings, "master: /etc/fettle/ca.key is missing, so no host can join; put it back "
                       "from a backup or from a node that has it, with mode 0600");
    json_array_foreach(json_object_get(info, "copies"), index, copy)
    {
        bool reachable = json_is_true(json_object_get(copy, "reachable"));
        if (reachable && !json_is_true(json_object_get(copy, "authority")))
            find(findings,
                 "node %s: does not have the key of the cluster's authority, so as master it "
                 "could let no host in; the log of its fettle-wconfd says why",
                 json_string_value(json_object_get(copy, "node")));
    }
}

/* Carried by the master's node, on its device, and nowhere else. */
static void verify_carrier(struct findings *findings, const json_t *info, const json_t *row)
{
    const char *address = json_string_value(json_object_get(info, "master_ip"));
    const char *netdev = json_string_value(json_object_get(info, "master_netdev"));
    const char *master = json_string_value(json_object_get(info, "master"));
    const char *name = cli_cell_string(row, 0);
    const json_t *devices = cli_cell_value(row, 1), *device;
    bool is_master = g_strcmp0(name, master) == 0, carries = false;
    size_t index;
    json_array_foreach(devices, index, device)
    {
        const char *on = json_string_value(device);
        if (is_master && g_strcmp0(on, netdev) == 0)
            carries = true;
        else
            find(findings,
                 "node %s: has the master IP %s on %s%s; remove it there: ip address del "
                 "%s/%" G_GINT64_FORMAT " dev %s",
                 name, address, on,
                 is_master ? ", which is not its device" : ", and is not the master", address,
                 (gint64)json_integer_value(json_object_get(info, "master_netmask")), on);
    }
    if (is_master && devices != NULL && !carries)
        find(findings,
             "node %s: is the master and does not carry the master IP %s on %s; the log of its "
             "fettle-noded says why",
             name, address, netdev != NULL ? netdev : "");
}

static bool verify_master_ip(struct cli *cli, struct findings *findings, GError **error)
{
    static const char *const fields[] = {"name", "master_ip", NULL};
    json_autoptr info = cli_call(cli, "QueryClusterInfo", json_array(), error);
    const char *address = json_string_value(json_object_get(info, "master_ip"));
    if (address == NULL || *address == '\0')
        return info != NULL;
    json_autoptr rows = cli_query(cli, "node", fields, NULL, error);
    for (size_t i = 0; i < json_array_size(rows); i++)
        verify_carrier(findings, info, json_array_get(rows, i));
    return rows != NULL;
}

static bool verify_master(struct cli *cli, struct findings *findings, GError **error)
{
    json_autoptr info = cli_call(cli, "QueryClusterInfo", json_array(), error);
    if (info == NULL)
        return false;
    size_t index;
    const json_t *value;
    json_array_foreach(json_object_get(info, "problems"), index, value)
        find(findings, "configuration: %s", json_string_value(value));
    json_array_foreach(json_object_get(info, "nodes_pending"), index, value) find(
        findings, "node %s: has not answered this epoch yet; no lock that covers it is granted",
        json_string_value(value));
    verify_authority(findings, info);
    return true;
}

/* Images that a returned node keeps aside (SAF-19) are no fault; a person should know of them. */
static void note_leftovers(struct findings *findings, const char *node, const json_t *leftovers)
{
    size_t i;
    const json_t *image;
    json_array_foreach(leftovers, i, image)
        note(findings,
             "node %s: keeps images aside of %s (instance, generation); they go when it holds an "
             "in-sync replica again, or remove them from var/disks/aside",
             node, json_string_value(image));
}

static bool verify_nodes(struct cli *cli, struct findings *findings, GError **error)
{
    static const char *const fields[] = {"name", "offline", "mfree", "dtotal", "leftovers", NULL};
    json_autoptr rows = cli_query(cli, "node", fields, NULL, error);
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        const char *name = cli_cell_string(row, 0);
        if (json_is_true(cli_cell_value(row, 1))) {
            find(findings, "node %s: is offline", name);
            continue;
        }
        if (cli_cell_value(row, 2) == NULL)
            find(findings, "node %s: does not answer", name);
        else if (json_integer_value(cli_cell_value(row, 3)) == 0)
            find(findings, "node %s: the folder of its disks cannot be read", name);
        note_leftovers(findings, name, cli_cell_value(row, 4));
    }
    return rows != NULL;
}

static bool verify_instances(struct cli *cli, struct findings *findings, GError **error)
{
    static const char *const fields[] = {"name",          "status",     "disk_template",
                                         "replica.state", "task_state", "task_owner",
                                         "replica.why",   NULL};
    json_autoptr rows = cli_query(cli, "instance", fields, NULL, error);
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        const char *name = cli_cell_string(row, 0), *status = cli_cell_string(row, 1);
        if (strcmp(status, "running") != 0 && strcmp(status, "ADMIN_down") != 0)
            find(findings, "instance %s: status is %s", name, *status ? status : "unknown");
        if (*cli_cell_string(row, 4))
            find(findings, "instance %s: job %" G_GINT64_FORMAT " is or was %s it", name,
                 (gint64)json_integer_value(cli_cell_value(row, 5)), cli_cell_string(row, 4));
        if (strcmp(cli_cell_string(row, 2), "mirror") != 0)
            continue;
        const char *state = cli_cell_string(row, 3), *why = cli_cell_string(row, 6);
        if (*state == '\0')
            find(findings, "instance %s: has no replica", name);
        else if (strcmp(state, "in-sync") != 0)
            find(findings, "instance %s: its replica is %s%s%s", name, state, *why ? ": " : "",
                 why);
    }
    return rows != NULL;
}

/* An invitation is no fault; a person should know of one that nobody uses, or that somebody tries
 * to guess. */
static bool note_invitations(struct cli *cli, struct findings *findings, GError **error)
{
    static const char *const fields[] = {"name", "state", "expires", "wrong_secrets", NULL};
    json_autoptr rows = cli_query(cli, "invitation", fields,
                                  json_make("[s[sss]]", "!", "=", "state", "used"), error);
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        const char *name = cli_cell_string(row, 0), *state = cli_cell_string(row, 1);
        g_autofree char *when = cli_time_text(json_integer_value(cli_cell_value(row, 2)));
        int wrong = (int)json_integer_value(cli_cell_value(row, 3));
        if (strcmp(state, "expired") == 0)
            note(findings,
                 "invitation of %s: ended at %s and was not used; forget it with: fettle node "
                 "invite --withdraw %s",
                 name, when, name);
        if (wrong > 0)
            note(
                findings,
                "invitation of %s: hosts came with a wrong secret %d time%s%s; if that was none of "
                "yours: fettle node invite --withdraw %s",
                name, wrong, wrong == 1 ? "" : "s",
                strcmp(state, "void") == 0 ? ", so it is void" : "", name);
    }
    return rows != NULL;
}

/* Locks of jobs that have ended: none may outlive its owner. */
static bool verify_locks(struct cli *cli, struct findings *findings, GError **error)
{
    json_autoptr locks =
        cli_query(cli, "lock", (const char *const[]){"name", "owner", NULL}, NULL, error);
    json_autoptr jobs =
        locks == NULL
            ? NULL
            : cli_query(cli, "job", (const char *const[]){"id", "status", NULL}, NULL, error);
    if (jobs == NULL)
        return false;
    g_autoptr(GHashTable) live = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    for (size_t i = 0; i < json_array_size(jobs); i++) {
        const json_t *row = json_array_get(jobs, i);
        const char *status = cli_cell_string(row, 1);
        if (strcmp(status, "success") != 0 && strcmp(status, "error") != 0 &&
            strcmp(status, "canceled") != 0)
            g_hash_table_add(live,
                             g_strdup_printf("%" G_GINT64_FORMAT,
                                             (gint64)json_integer_value(cli_cell_value(row, 0))));
    }
    for (size_t i = 0; i < json_array_size(locks); i++) {
        const json_t *row = json_array_get(locks, i);
        const json_t *owners = cli_cell_value(row, 1), *owner;
        size_t index;
        json_array_foreach(owners, index, owner)
        {
            const char *text = json_string_value(owner);
            if (text != NULL && g_ascii_isdigit(text[0]) && !g_hash_table_contains(live, text))
                find(findings, "lock %s: is held by job %s, which has ended",
                     cli_cell_string(row, 0), text);
        }
    }
    return true;
}

static json_t *texts(const GPtrArray *lines)
{
    json_t *list = json_array();
    for (guint i = 0; i < lines->len; i++)
        json_array_append_new(list, json_string(lines->pdata[i]));
    return list;
}

static void print_findings(const struct cli *cli, const struct findings *findings)
{
    guint count = findings->lines->len;
    for (guint i = 0; i < count && !cli->json; i++)
        printf("%s\n", (const char *)findings->lines->pdata[i]);
    for (guint i = 0; i < findings->notes->len && !cli->json; i++)
        printf("note: %s\n", (const char *)findings->notes->pdata[i]);
    json_t *object =
        json_make("{so so}", "problems", texts(findings->lines), "notes", texts(findings->notes));
    if (count == 0)
        cli_say(cli, object, "The cluster is as it should be.");
    else
        cli_say(cli, object, "%u thing%s not as it should be.", count,
                count == 1 ? " is" : "s are");
}

static int cluster_verify(struct cli *cli, int argc, char **argv, GError **error)
{
    if (!cli_expect(argc, argv, 0, "cluster verify", error))
        return -1;
    g_autoptr(GPtrArray) lines = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GPtrArray) notes = g_ptr_array_new_with_free_func(g_free);
    struct findings findings = {lines, notes};
    if (!verify_master(cli, &findings, error) || !verify_nodes(cli, &findings, error) ||
        !verify_master_ip(cli, &findings, error) || !verify_instances(cli, &findings, error) ||
        !verify_locks(cli, &findings, error) || !note_invitations(cli, &findings, error))
        return -1;
    print_findings(cli, &findings);
    return lines->len == 0 ? 0 : 1;
}

const struct command cluster_commands[] = {
    {"cluster", "init", "NAME …", "Make a cluster of one node, this one.", cluster_init},
    {"cluster", "verify", "", "Say what is not as it should be; exit code 1 if anything is.",
     cluster_verify},
    {0},
};
