/*
 * `fettle cluster init`, the one command that runs before there is a cluster: it makes the identity
 * of this host if it has none, and has fettle-wconfd make the store, which nobody else opens.
 */
#include "cli/cli.h"

#include <gio/gio.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/screen.h"
#include "io/files.h"
#include "io/net/certs.h"
#include "io/node_config.h"
#include "io/process.h"
#include "proto/cli/cli_table.h"
#include "proto/master_ip.h"

static const char *const identity_files[] = {"node.json", "ca.crt", "ca.key", "node.crt",
                                             "node.key"};

/* The other nodes come to it. */
static bool has_address(const char *address, GError **error)
{
    g_autoptr(GInetAddress) parsed = g_inet_address_new_from_string(address);
    if (parsed == NULL || g_inet_address_get_is_any(parsed)) {
        fettle_set_error(error, WRONG_INPUT, "primary_ip: \"%s\" is no IP address of a node",
                         address);
        return false;
    }
    g_autoptr(GSocketAddress) here = g_inet_socket_address_new(parsed, 0);
    g_autoptr(GSocket) socket = g_socket_new(g_inet_address_get_family(parsed),
                                             G_SOCKET_TYPE_STREAM, G_SOCKET_PROTOCOL_DEFAULT, NULL);
    if (socket != NULL && g_socket_bind(socket, here, FALSE, NULL))
        return true;
    fettle_set_error(error, ENVIRONMENT,
                     "primary_ip: this host has no address %s; give one of its own, at which the "
                     "other nodes will reach it (see: ip address)",
                     address);
    return false;
}

/* A name or an address that differs is a slip of whoever gave them, or the identity of another
 * cluster. */
static bool is_same(const struct node_paths *paths, const struct node_config *known,
                    const struct op_cluster_init *params, GError **error)
{
    if (strcmp(known->name, params->node_name) == 0 &&
        strcmp(known->address, params->primary_ip) == 0)
        return true;
    fettle_set_error(error, WRONG_STATE,
                     "this host is node \"%s\" at %s by %s/node.json, not \"%s\" at %s; if no "
                     "cluster uses that, remove it with node.* and ca.* beside it",
                     known->name, known->address, paths->etc, params->node_name,
                     params->primary_ip);
    return false;
}

static bool write_identity(const struct node_paths *paths, const struct op_cluster_init *params,
                           GError **error)
{
    record_autoptr(node_config) config = node_config_new();
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
    return node_paths_make(paths, error) &&
           certs_make_ca(ca_cert, ca_key, config->cluster_uuid, error) &&
           certs_make_node(ca_cert, ca_key, config->cluster_uuid, config->node_uuid, cert, key,
                           error) &&
           node_config_write(paths, config, error);
}

/* What another cluster has left, above all the key of its authority, is not written over. */
static bool nothing_is_left(const struct node_paths *paths, GError **error)
{
    for (guint i = 0; i <= G_N_ELEMENTS(identity_files); i++) {
        g_autofree char *path = i < G_N_ELEMENTS(identity_files)
                                    ? g_build_filename(paths->etc, identity_files[i], NULL)
                                    : g_build_filename(paths->var, "store.db", NULL);
        struct stat status;
        if (lstat(path, &status) != 0)
            continue;
        fettle_set_error(error, WRONG_STATE,
                         "%s is there, but no %s/node.json: another cluster has left it; if that "
                         "cluster is over, move it away, else put node.json back",
                         path, paths->etc);
        return false;
    }
    return true;
}

/* Without etc/node.json this host gets a name, a CA and a certificate of its own. */
static bool make_identity(const struct node_paths *paths, const struct op_cluster_init *params,
                          bool *ret_made, GError **error)
{
    g_autoptr(GError) missing = NULL;
    record_autoptr(node_config) known = node_config_read(paths, &missing);
    *ret_made = false;
    if (known != NULL)
        return is_same(paths, known, params, error);
    if (!fettle_error_is(missing, UNKNOWN_ENTITY)) {
        g_propagate_error(error, g_steal_pointer(&missing));
        return false;
    }
    *ret_made = has_address(params->primary_ip, error) && nothing_is_left(paths, error);
    return *ret_made && write_identity(paths, params, error);
}

/* So that the command can be given again, with other words. A store keeps the authority that was
 * made for it. */
static void drop_identity(const struct node_paths *paths)
{
    g_autofree char *store = g_build_filename(paths->var, "store.db", NULL);
    if (g_file_test(store, G_FILE_TEST_EXISTS))
        return;
    for (guint i = 0; i < G_N_ELEMENTS(identity_files); i++) {
        g_autofree char *path = g_build_filename(paths->etc, identity_files[i], NULL);
        files_remove_path(path, true, NULL);
    }
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
        g_autofree char *help = cli_command_help(command, screen_text_columns());
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
    bool made = false;
    bool ok = paths != NULL && make_identity(paths, params, &made, error) &&
              run_bootstrap(paths, opcode, error);
    if (!ok && made)
        drop_identity(paths);
    op_common_free(common);
    op_cluster_init_free(params);
    if (!ok)
        return -1;
    cli_say(cli, json_make("{ss}", "cluster", name),
            "Cluster %s is made. Now start fettle-wconfd, fettle-luxid, fettle-noded, "
            "fettle-rconfd, fettle-watcher and fettle-volumed on this node: systemctl start "
            "fettle.target",
            name);
    return 0;
}

const struct command cluster_commands[] = {
    {"cluster", "init", "NAME …", "Make a cluster of one node, this one.", cluster_init},
    {0},
};
