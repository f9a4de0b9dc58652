/*
 * `fettle cluster backup` and `restore` (docs/guide/backup.md). A backup is taken from the store of
 * this host while everything runs. It is put back by fettle-wconfd, which alone makes stores, on a
 * host where that does not run, after a person has typed the name of the cluster.
 */
#include "cli/cli.h"

#include <gio/gio.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/foreign.h"
#include "io/files.h"
#include "io/loop.h"
#include "io/node_config.h"
#include "io/process.h"
#include "io/sqlite/backup.h"
#include "io/sqlite/sqlite_backup.h"

/* --- backup --- */

static bool add_file(struct store_backup *backup, const char *name, const char *path,
                     GError **error)
{
    size_t len = 0;
    char *text = files_read_path(path, LIMIT_BACKUP_BYTES, &len, error);
    if (text == NULL)
        return false;
    backup_add(backup, name, g_bytes_new_take(text, len));
    return true;
}

static bool add_etc(struct store_backup *backup, const struct node_paths *paths, GError **error)
{
    static const char *const names[] = {"ca.crt", "ca.key", "node.crt", "node.key", "node.json"};
    for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autofree char *path = g_build_filename(paths->etc, names[i], NULL);
        g_autofree char *name = g_strconcat("etc/", names[i], NULL);
        /* Only candidates have the authority's key. */
        if (g_file_test(path, G_FILE_TEST_EXISTS) && !add_file(backup, name, path, error))
            return false;
    }
    return true;
}

/* What it has may be of long ago, and looks as good as any. */
static bool is_kept(const struct store_summary *summary, const char *node, GError **error)
{
    if (summary->role != COPY_RETIRED)
        return true;
    fettle_set_error(error, WRONG_STATE,
                     "the copy of this host (serial %" G_GUINT64_FORMAT
                     ") is not kept up to date any more, since node %s is no master candidate; no "
                     "backup was made, give the command on the master or a candidate",
                     summary->serial, node);
    return false;
}

/* `*ret_copy`: it is no engine, but follows one. */
static bool add_store(struct store_backup *backup, const struct node_paths *paths, const char *node,
                      bool *ret_copy, GError **error)
{
    struct backup_header *header = backup->header;
    struct store_summary summary = {0};
    g_autofree char *store = g_build_filename(paths->var, "store.db", NULL);
    g_autofree char *copy = g_strdup_printf("%s.backup-%d", store, getpid());
    bool ok = sqlite_store_copy(store, copy, &summary, error) && is_kept(&summary, node, error) &&
              add_file(backup, "store.db", copy, error);
    unlink(copy);
    if (!ok)
        return false;
    *ret_copy = summary.role == COPY_FOLLOWS;
    text_set(&header->cluster, summary.cluster);
    text_set(&header->name, summary.name);
    text_set(&header->node_name, node);
    text_set(&header->store, *ret_copy ? "follows" : "engine");
    text_set(&header->engine, summary.engine);
    header->history = summary.history;
    header->epoch = summary.epoch;
    header->serial = summary.serial;
    return true;
}

static struct store_backup *make_backup(const struct node_paths *paths, bool *ret_copy,
                                        GError **error)
{
    record_autoptr(node_config) node = node_config_read(paths, error);
    if (node == NULL)
        return NULL;
    g_autoptr(store_backup_t) backup = store_backup_new();
    struct backup_header *header = backup->header;
    text_set(&header->node, node->node_uuid);
    header->taken = (guint64)(loop_wall_us() / G_USEC_PER_SEC);
    text_set(&header->fettle, FETTLE_VERSION);
    if (!add_store(backup, paths, node->name, ret_copy, error) || !add_etc(backup, paths, error))
        return NULL;
    return g_steal_pointer(&backup);
}

static int cluster_backup(struct cli *cli, int argc, char **argv, GError **error)
{
    static const char usage[] = "cluster backup --to FILE";
    g_autoptr(GError) bad = NULL;
    const char *to = cli_take_option(&argc, argv, "--to", &bad);
    if (bad != NULL) {
        g_propagate_error(error, g_steal_pointer(&bad));
        return -1;
    }
    if (!cli_expect(argc, argv, 0, usage, error))
        return -1;
    if (to == NULL) {
        fettle_set_error(error, WRONG_INPUT, "--to is missing; usage: fettle %s", usage);
        return -1;
    }
    g_autoptr(node_paths_t) paths = node_paths_new(cli->root, error);
    bool copy = false;
    g_autoptr(store_backup_t) backup = paths != NULL ? make_backup(paths, &copy, error) : NULL;
    if (backup == NULL || !backup_write(backup, to, error))
        return -1;
    const struct backup_header *header = backup->header;
    json_t *object = backup_header_to_json(header);
    json_object_set_new(object, "file", json_string(to));
    cli_say(cli, object,
            "The configuration of %s, serial %" G_GUINT64_FORMAT
            "%s is in %s with the cluster's keys; keep it like one.",
            header->name, header->serial, copy ? ", by this host's copy," : ",", to);
    return 0;
}

/* --- restore --- */

/* Which store of which node; "" if the version that wrote it did not say. Free with g_free(). */
static char *origin(const struct backup_header *header)
{
    if (*header->store == '\0')
        return g_strdup("");
    bool copy = strcmp(header->store, "engine") != 0;
    return g_strdup_printf(" on node %s from its %s%s%s", header->node_name,
                           copy ? "copy, which may have been behind the master"
                                : "store, which was the master's",
                           *header->engine != '\0' ? "; the engine was " : "", header->engine);
}

static void print_what(const struct backup_header *header, const char *file)
{
    g_autofree char *taken = cli_time_text((gint64)header->taken);
    g_autofree char *place = origin(header), *from = foreign_text(place);
    fprintf(stderr,
            "%s has the configuration of %s, history %" G_GUINT64_FORMAT
            ", epoch %" G_GUINT64_FORMAT ", serial %" G_GUINT64_FORMAT ", taken %s%s.\n"
            "It takes the place of the store of this host, which becomes the master. What has "
            "changed since is lost to the record; disks and guests are not touched. Nothing "
            "starts, stops or moves until you have compared record and nodes and said: fettle "
            "repair continue\n",
            file, header->name, header->history, header->epoch, header->serial, taken, from);
}

static bool typed_name(const struct cli *cli, const struct backup_header *header,
                       const char *confirmed, GError **error)
{
    char typed[LIMIT_NAME_CHARS + 2] = "";
    if (confirmed == NULL && isatty(STDIN_FILENO) && !cli->json) {
        fprintf(stderr, "Type the name of the cluster to go on: ");
        if (fgets(typed, sizeof typed, stdin) != NULL)
            confirmed = g_strchomp(typed);
    }
    if (confirmed != NULL && strcmp(confirmed, header->name) == 0)
        return true;
    if (confirmed == NULL)
        fettle_set_error(error, WRONG_INPUT,
                         "restoring needs a person's word: give --confirm with the name of the "
                         "cluster (%s)",
                         header->name);
    else
        fettle_set_error(error, CANCELED,
                         "\"%s\" is not the name of the cluster (%s); nothing was changed",
                         confirmed, header->name);
    return false;
}

static bool run_restore(const char *root, const char *file, GError **error)
{
    g_autofree char *program = program_path("fettle-wconfd");
    g_autoptr(GSubprocess) child = g_subprocess_new(G_SUBPROCESS_FLAGS_STDERR_PIPE, error, program,
                                                    "--root", root, "--restore", file, NULL);
    g_autofree char *complaint = NULL;
    if (child == NULL || !g_subprocess_communicate_utf8(child, NULL, NULL, NULL, &complaint, error))
        return false;
    if (g_subprocess_get_successful(child))
        return true;
    if (g_subprocess_get_if_signaled(child)) {
        fettle_set_error(error, KILLED,
                         "the restore was ended by signal %d before it was done; give the same "
                         "command again",
                         g_subprocess_get_term_sig(child));
        return false;
    }
    const char *last = complaint != NULL ? g_strstrip(complaint) : "";
    const char *line = strrchr(last, '\n');
    line = line != NULL ? line + 1 : last;
    if (g_str_has_prefix(line, "fettle-wconfd: "))
        line += strlen("fettle-wconfd: ");
    fettle_set_error(error, WRONG_STATE, "%s", line);
    return false;
}

static int cluster_restore(struct cli *cli, int argc, char **argv, GError **error)
{
    g_autoptr(GError) bad = NULL;
    const char *confirmed = cli_take_option(&argc, argv, "--confirm", &bad);
    if (bad != NULL) {
        g_propagate_error(error, g_steal_pointer(&bad));
        return -1;
    }
    if (!cli_expect(argc, argv, 1, "cluster restore FILE [--confirm NAME]", error))
        return -1;
    g_autoptr(node_paths_t) paths = node_paths_new(cli->root, error);
    g_autoptr(store_backup_t) backup = paths != NULL ? backup_read(argv[0], error) : NULL;
    if (backup == NULL)
        return -1;
    print_what(backup->header, argv[0]);
    if (!typed_name(cli, backup->header, confirmed, error) ||
        !run_restore(paths->root, argv[0], error))
        return -1;
    cli_say(cli, backup_header_to_json(backup->header),
            "The configuration of %s is back. Start the daemons (systemctl start fettle.target), "
            "look at `fettle cluster verify`, then say: fettle repair continue",
            backup->header->name);
    return 0;
}

const struct command backup_commands[] = {
    {"cluster", "backup", "--to FILE",
     "Write a backup of the configuration with its history, secrets and keys, while everything "
     "runs.",
     cluster_backup},
    {"cluster", "restore", "FILE [--confirm NAME]",
     "Put a backup back on a node whose daemons are stopped; then nothing starts until a person "
     "has compared it with the nodes.",
     cluster_restore},
    {0},
};
