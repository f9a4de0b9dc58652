/*
 * `fettle ganeti-root DIR`: a folder in which clients made for Ganeti find what they look for, in
 * the places where they look: links to luxid's socket for them (face.def), to the facts of this
 * node (ssconf) and to ConfD's key. It is their root folder (GANETI_ROOTDIR), so nothing of the
 * host is touched. There are clients that go past LUXI, by ssh or by Ganeti's own daemons: those
 * find neither keys nor configuration nor a place for their locks there, and are named.
 */
#include "cli/cli.h"

#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "io/files.h"

#define USAGE "ganeti-root DIR"
#define SOCKET "var/run/ganeti/socket/ganeti-query"
/* By this file a folder is known to be one of ours. */
#define MARK "README.fettle"
#define MARK_BEGINS "Laid out by `fettle ganeti-root`"

/* Facts that Ganeti has too; what is missing here is missing there. */
static const char *const facts[] = {
    "cluster_name",   "master_node",       "master_ip",        "master_netdev",
    "master_netmask", "master_candidates", "node_primary_ips", "master_candidates_ips",
    "node_list",      "online_nodes",      "offline_nodes",    NULL,
};

/* Commands of gnt-cluster that act beside LUXI, and what does the same here; NULL: nothing. */
static const struct {
    const char *command, *ours;
} beside[] = {
    {"init", "fettle cluster init"},
    {"destroy", NULL},
    {"upgrade", "the packages of the nodes, one node after the other"},
    {"renew-crypto", "fettle cluster renew-keys"},
    {"master-failover", "fettle cluster master-failover"},
    {"copyfile", "scp"},
    {"command", "ssh"},
};

/* --- whether it may be --- */

/* Whoever else owns a folder could have it lead elsewhere. */
static bool is_mine(const char *folder)
{
    struct stat found;
    return stat(folder, &found) == 0 && found.st_uid == geteuid();
}

static bool is_ours(const char *folder)
{
    g_autofree char *path = g_build_filename(folder, MARK, NULL);
    g_autofree char *text = files_read_path(path, 64 * 1024, NULL, NULL);
    return text != NULL && g_str_has_prefix(text, MARK_BEGINS);
}

static bool is_empty(const char *folder)
{
    GDir *dir = g_dir_open(folder, 0, NULL);
    bool empty = dir != NULL && g_dir_read_name(dir) == NULL;
    g_clear_pointer(&dir, g_dir_close);
    return empty;
}

static bool check_folder(const char *folder, GError **error)
{
    size_t room = sizeof((struct sockaddr_un *)NULL)->sun_path - strlen("/" SOCKET) - 1;
    if (strcmp(folder, "/") == 0)
        fettle_set_error(error, WRONG_INPUT,
                         "/ is the host's own folder; name another, as /var/lib/fettle/ganeti");
    else if (strlen(folder) > room)
        fettle_set_error(error, WRONG_INPUT,
                         "%s is too long by %zu characters for the name of a socket below it",
                         folder, strlen(folder) - room);
    else if (g_file_test(folder, G_FILE_TEST_EXISTS) && !g_file_test(folder, G_FILE_TEST_IS_DIR))
        fettle_set_error(error, WRONG_INPUT, "%s is no folder", folder);
    else if (g_file_test(folder, G_FILE_TEST_EXISTS) && !is_mine(folder))
        fettle_set_error(error, WRONG_INPUT, "%s belongs to another user", folder);
    else if (g_file_test(folder, G_FILE_TEST_EXISTS) && !is_empty(folder) && !is_ours(folder))
        fettle_set_error(error, WRONG_INPUT,
                         "%s is not empty, and was not laid out by `fettle ganeti-root`; name one "
                         "that is empty, or not there yet",
                         folder);
    else
        return true;
    return false;
}

/* --- laying it out --- */

/* Whatever is there gives way: a client that acts beside LUXI may have put a file of its own
 * there. */
static bool link_to(const char *folder, const char *name, const char *target, GError **error)
{
    g_autofree char *path = g_build_filename(folder, name, NULL);
    g_autofree char *above = g_path_get_dirname(path);
    g_autofree char *new_path = g_strconcat(path, ".new", NULL);
    if (!files_make_folder(above, 0755, error))
        return false;
    unlink(new_path);
    return (symlink(target, new_path) == 0 && rename(new_path, path) == 0) ||
           files_error("link", path, error);
}

static bool link_below(const char *folder, const char *name, const char *above, const char *file,
                       GError **error)
{
    g_autofree char *target = g_build_filename(above, file, NULL);
    return link_to(folder, name, target, error);
}

static bool link_facts(const char *folder, const struct node_paths *paths, GError **error)
{
    g_autofree char *ssconf = g_build_filename(paths->var, "ssconf", NULL);
    for (const char *const *fact = facts; *fact != NULL; fact++) {
        g_autofree char *name = g_strconcat("var/lib/ganeti/ssconf_", *fact, NULL);
        if (!link_below(folder, name, ssconf, *fact, error))
            return false;
    }
    return true;
}

/* Their names, each with what there is in its place. */
static char *list_beside(void)
{
    GString *text = g_string_new(NULL);
    for (guint i = 0; i < G_N_ELEMENTS(beside); i++)
        g_string_append_printf(text, "%s    gnt-cluster %s%s%s", i > 0 ? "\n" : "",
                               beside[i].command, beside[i].ours != NULL ? ": " : "",
                               beside[i].ours != NULL ? beside[i].ours : "");
    return g_string_free(text, FALSE);
}

static bool write_mark(const char *folder, GError **error)
{
    g_autofree char *list = list_beside();
    g_autofree char *path = g_build_filename(folder, MARK, NULL);
    g_autofree char *text = g_strdup_printf(
        MARK_BEGINS " (format 1): here clients made for Ganeti find luxid, the facts of this node, "
                    "and ConfD's key.\n"
                    "It may be laid out again at any time, and removed: all of it is links, and "
                    "what such clients log.\n\n"
                    "These act beside LUXI, and are not to be used:\n%s\n",
        list);
    return files_write_path(path, text, strlen(text), 0644, false, error);
}

static bool lay_out(const char *folder, const struct node_paths *paths, GError **error)
{
    g_autofree char *log = g_build_filename(folder, "var/log/ganeti", NULL);
    return files_make_folder(folder, 0755, error) && write_mark(folder, error) &&
           files_make_folder(log, 0700, error) &&
           link_below(folder, SOCKET, paths->run, face_socket(FACE_GANETI), error) &&
           link_below(folder, "var/lib/ganeti/hmac.key", paths->var, "confd.key", error) &&
           /* By a file of this name `gnt-cluster init` knows that there is a cluster. */
           link_below(folder, "var/lib/ganeti/config.data", folder, MARK, error) &&
           link_facts(folder, paths, error);
}

/* --- saying so --- */

static json_t *describe(const char *folder, const char *host)
{
    g_autofree char *socket = g_build_filename(folder, SOCKET, NULL);
    json_t *commands = json_array();
    for (guint i = 0; i < G_N_ELEMENTS(beside); i++)
        json_array_append_new(commands, json_string(beside[i].command));
    return json_make("{ss, ss, ss, so}", "GANETI_ROOTDIR", folder, "GANETI_HOSTNAME", host,
                     "socket", socket, "beside_luxi", commands);
}

static int ganeti_root(struct cli *cli, int argc, char **argv, GError **error)
{
    if (!cli_expect(argc, argv, 1, USAGE, error))
        return -1;
    g_autofree char *folder = g_canonicalize_filename(argv[0], NULL);
    g_autoptr(node_paths_t) paths = node_paths_new(cli->root, error);
    record_autoptr(node_config) config = paths != NULL ? node_config_read(paths, error) : NULL;
    if (config == NULL || !check_folder(folder, error) || !lay_out(folder, paths, error))
        return -1;
    g_autofree char *host = g_path_get_basename(folder);
    g_autofree char *list = list_beside();
    cli_say(cli, describe(folder, host),
            "%s is laid out. Clients made for Ganeti run on this host with\n"
            "    export GANETI_ROOTDIR=%s GANETI_HOSTNAME=%s\n"
            "These act beside LUXI, and are not to be used:\n%s",
            folder, folder, host, list);
    return 0;
}

const struct command ganeti_commands[] = {
    {"ganeti-root", NULL, "DIR",
     "Lay out a folder in which clients made for Ganeti find luxid, the facts of this node and "
     "ConfD's key; it is their GANETI_ROOTDIR.",
     ganeti_root},
    {0},
};
