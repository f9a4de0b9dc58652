/*
 * lab_up(): checks first, then the description file, the supervisor, the cluster. Whatever fails
 * after the first trace was left is cleaned up by lab_down(), as after a crash.
 */
#include "lab/lab.h"

#include "base/error.h"
#include "base/limits.h"
#include "io/process.h"
#include "lab/ceph.h"
#include "lab/form.h"
#include "lab/layout.h"
#include "lab/net.h"
#include "lab/tools.h"
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NODES_DEFAULT 3
#define ROOT_MIB_DEFAULT 256
#define ROOT_MIB_ETCD 1024 /* each founding of etcd takes 128 MiB for its log at once */
#define ETCD_CANDIDATES 3
#define DISKS_MIB_DEFAULT 256
#define SMALLEST_MIB 16 /* less does not hold an ext4 with a journal */

static bool check_no_lab(const char *dir, GError **error)
{
    if (!layout_exists(dir))
        return true;
    fettle_set_error(error, ALREADY_EXISTS,
                     "there is a lab in %s already; `fettle lab down --dir %s` removes it", dir,
                     dir);
    return false;
}

static bool check_folder(const char *dir, bool *ret_made, GError **error)
{
    g_autoptr(GError) local = NULL;
    if (!check_no_lab(dir, error))
        return false;
    if (mkdir(dir, 0700) == 0) {
        *ret_made = chmod(dir, 0755) == 0;
        return true;
    }
    int failed = errno;
    g_autoptr(GDir) folder = failed == EEXIST ? g_dir_open(dir, 0, &local) : NULL;
    if (folder && !g_dir_read_name(folder)) {
        *ret_made = false;
        return true;
    }
    if (folder)
        fettle_set_error(error, WRONG_INPUT,
                         "the folder %s is not empty and no lab: a lab needs a folder of its own",
                         dir);
    else
        fettle_set_error(error, WRONG_INPUT, "cannot use %s for a lab: %s", dir,
                         local ? local->message : g_strerror(failed));
    return false;
}

/* Guests run as an unprivileged user, who must be able to reach their images. */
static bool check_passable(const char *dir, bool made, GError **error)
{
    g_autofree char *at = g_strdup(dir);
    struct stat about;
    if (!made && stat(dir, &about) == 0)
        chmod(dir, (about.st_mode & 07777) | S_IXUSR | S_IXGRP | S_IXOTH);
    while (strcmp(at, "/") != 0) {
        if (stat(at, &about) != 0 || !(about.st_mode & S_IXOTH)) {
            fettle_set_error(error, WRONG_INPUT,
                             "guests run as an unprivileged user, who may not pass through %s: "
                             "choose another folder for the lab",
                             at);
            return false;
        }
        char *parent = g_path_get_dirname(at);
        g_free(at);
        at = parent;
    }
    return true;
}

static bool check_sizes(const struct lab_options *options, GError **error)
{
    if (options->nodes > LIMIT_LAB_NODES) {
        fettle_set_error(error, WRONG_INPUT, "a lab has at most %d nodes, not %u", LIMIT_LAB_NODES,
                         options->nodes);
        return false;
    }
    guint nodes = options->nodes ? options->nodes : NODES_DEFAULT;
    if (options->candidates > nodes) {
        fettle_set_error(error, WRONG_INPUT, "a lab of %u nodes has at most %u candidates, not %u",
                         nodes, nodes, options->candidates);
        return false;
    }
    if (options->etcd && options->candidates < ETCD_CANDIDATES) {
        fettle_set_error(error, WRONG_INPUT,
                         "a lab with the engine etcd needs at least %d candidates: --candidates %d",
                         ETCD_CANDIDATES, ETCD_CANDIDATES);
        return false;
    }
    if ((options->root_mib && options->root_mib < SMALLEST_MIB) ||
        (options->disks_mib && options->disks_mib < SMALLEST_MIB)) {
        fettle_set_error(error, WRONG_INPUT, "a node's disk must have at least %d MiB",
                         SMALLEST_MIB);
        return false;
    }
    return true;
}

static bool add_program(struct layout *layout, const char *name, bool master_only, GError **error)
{
    g_autofree char *program = g_strdup_printf("fettle-%s", name);
    g_autofree char *path = program_path(program);
    const char *command[] = {path, NULL};
    if (access(path, X_OK) != 0) {
        fettle_set_error(error, ENVIRONMENT,
                         "the program %s is missing: build and install it first", path);
        return false;
    }
    layout_add_daemon(layout, name, command, master_only);
    return true;
}

static bool add_daemons(struct layout *layout, const struct lab_options *options, GError **error)
{
    if (!options->daemons)
        return add_program(layout, "noded", false, error) &&
               add_program(layout, "rconfd", false, error) &&
               add_program(layout, "volumed", false, error) &&
               add_program(layout, "apid", false, error) &&
               add_program(layout, "mond", false, error) &&
               add_program(layout, "wconfd", true, error) &&
               add_program(layout, "luxid", true, error) &&
               add_program(layout, "rapid", true, error) &&
               add_program(layout, "watcher", true, error);
    for (const struct lab_daemon *daemon = options->daemons; daemon->name; daemon++)
        layout_add_daemon(layout, daemon->name, daemon->command, daemon->master_only);
    return true;
}

static struct layout *plan(const struct lab_options *options, GError **error)
{
    g_autofree char *dir = layout_resolve(options->dir, error);
    /* Before its namespaces are met, of which one would be told less clearly. */
    if (!dir || !check_no_lab(dir, error) || !check_sizes(options, error))
        return NULL;
    layout_autoptr layout = layout_new(dir, options->nodes ? options->nodes : NODES_DEFAULT);
    layout->candidates = options->candidates ? options->candidates : 1;
    layout->root_mib = options->root_mib ? options->root_mib
                       : options->etcd   ? ROOT_MIB_ETCD
                                         : ROOT_MIB_DEFAULT;
    layout->disks_mib = options->disks_mib ? options->disks_mib : DISKS_MIB_DEFAULT;
    layout->identity = !options->no_identity;
    layout->ipv6 = options->ipv6;
    layout->ceph = options->ceph;
    if (!add_daemons(layout, options, error) || !net_check_free(layout->prefix, error))
        return NULL;
    return g_steal_pointer(&layout);
}

/* --- the supervisor --- */

static void detach_cb(gpointer data)
{
    setsid();
}

/* What the supervisor says about its start; it closes its standard output then. */
static bool read_result(const struct layout *layout, int output, GError **error)
{
    g_autoptr(GByteArray) bytes = g_byte_array_new();
    guint8 chunk[KIB(1)];
    ssize_t len;
    while ((len = read(output, chunk, sizeof(chunk))) > 0 && bytes->len < LIMIT_LAB_FRAME_BYTES)
        g_byte_array_append(bytes, chunk, (guint)len);
    const char *name, *message;
    json_autoptr answer =
        json_parse_limited((const char *)bytes->data, bytes->len, LIMIT_LAB_FRAME_BYTES, NULL);
    if (answer && json_object_get(answer, "result"))
        return true;
    if (answer && json_unpack(answer, "{s:[s, s]}", "error", &name, &message) == 0)
        g_set_error_literal(error, FETTLE_ERROR, (gint)fettle_error_from_name(name), message);
    else
        fettle_set_error(error, INTERNAL, "the supervisor of the lab in %s ended without a word",
                         layout->dir);
    return false;
}

static bool start_supervisor(const struct layout *layout, GError **error)
{
    g_autofree char *program = program_path("fettle-lab");
    char *argv[] = {program, layout->dir, NULL};
    g_autoptr(GError) local = NULL;
    int output;
    if (!g_spawn_async_with_pipes("/", argv, NULL, G_SPAWN_DEFAULT, detach_cb, NULL, NULL, NULL,
                                  &output, NULL, &local)) {
        fettle_set_error(error, ENVIRONMENT, "cannot start the lab's supervisor %s: %s", program,
                         local->message);
        return false;
    }
    bool ok = read_result(layout, output, error);
    close(output);
    return ok;
}

static bool bring_up(const struct layout *layout, const struct lab_options *options, GError **error)
{
    if (!start_supervisor(layout, error) || !lab_wait_ready(layout->dir, NULL, LAB_READY_MS, error))
        return false;
    return options->no_init || options->no_identity || form_cluster(layout, options, error);
}

bool lab_up(const struct lab_options *options, GError **error)
{
    if (!tools_check_root(error) || !tools_check(!options->no_identity, error) ||
        (options->ipv6 && !tools_check_ipv6(error)) || (options->ceph && !ceph_check(error)))
        return false;
    layout_autoptr layout = plan(options, error);
    if (!layout || !check_folder(layout->dir, &layout->made_dir, error))
        return false;
    if (!check_passable(layout->dir, layout->made_dir, error)) {
        if (layout->made_dir)
            rmdir(layout->dir);
        return false;
    }
    if (!layout_save(layout, error))
        return false; /* another lab_up() was first: what is there is its own */
    if (bring_up(layout, options, error))
        return true;
    g_autoptr(GError) second = NULL;
    if (g_getenv("FETTLE_LAB_KEEP"))
        return false;
    if (!lab_down(layout->dir, &second))
        g_prefix_error(error, "(and what was built could not be removed: %s) ", second->message);
    return false;
}
