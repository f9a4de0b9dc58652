/*
 * The commands of a lab that runs: most go to its supervisor, those on disks are done here (lab.h).
 */
#include "lab/lab.h"

#include "base/error.h"
#include "lab/disk.h"
#include "lab/layout.h"
#include "lab/net.h"
#include "lab/tools.h"
#include "lab/wire.h"
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#define READY_STEP_US 20000
#define LOG_TAIL_CHARS 300

/* Steals `command`. */
static json_t *ask(const char *dir, json_t *command, GError **error)
{
    json_autoptr owned = command;
    layout_autoptr layout = tools_check_root(error) ? layout_load(dir, error) : NULL;
    if (!layout)
        return NULL;
    g_autofree char *socket = layout_file(layout, "lab.sock");
    return wire_call(socket, owned, error);
}

static bool tell(const char *dir, json_t *command, GError **error)
{
    json_autoptr result = ask(dir, command, error);
    return result != NULL;
}

bool lab_power(const char *dir, const char *node, bool on, GError **error)
{
    return tell(dir, json_make("{s:s, s:s, s:b}", "do", "power", "node", node, "on", on), error);
}

bool lab_link(const char *dir, const char *node, bool up, GError **error)
{
    return tell(dir, json_make("{s:s, s:s, s:b}", "do", "link", "node", node, "up", up), error);
}

bool lab_signal(const char *dir, const char *daemon_at_node, enum lab_signal what, GError **error)
{
    static const char *const words[] = {
        [LAB_KILL] = "kill", [LAB_PAUSE] = "pause", [LAB_RESUME] = "resume"};
    return tell(dir,
                json_make("{s:s, s:s, s:s}", "do", "signal", "daemon", daemon_at_node, "signal",
                          words[what]),
                error);
}

bool lab_restart_with(const char *dir, const char *daemon_at_node, const char *const *variables,
                      GError **error)
{
    json_t *list = json_array();
    for (; *variables; variables++)
        json_array_append_new(list, json_string(*variables));
    return tell(dir,
                json_make("{s:s, s:s, s:o}", "do", "restart_with", "daemon", daemon_at_node,
                          "variables", list),
                error);
}

bool lab_enable_master(const char *dir, GError **error)
{
    return tell(dir, json_make("{s:s}", "do", "enable_master"), error);
}

/* What can be seen without a supervisor. */
static json_t *status_from_outside(const struct layout *layout)
{
    json_autoptr nodes = json_array();
    for (guint node = 1; node <= layout->nodes; node++) {
        g_autofree char *name = g_strdup_printf("node%u", node);
        g_autofree char *root = layout_root(layout, node);
        g_autofree char *address = layout_address(layout, node);
        json_array_append_new(
            nodes, json_make("{s:s, s:s, s:s, s:s, s:b, s:b, s:s, s:[]}", "name", name, "uuid",
                             (char *)g_ptr_array_index(layout->node_uuids, node - 1), "address",
                             address, "root", root, "power", disk_is_mounted(root), "link", false,
                             "boot_id", "", "daemons"));
    }
    return json_make("{s:s, s:b, s:O}", "dir", layout->dir, "supervisor", false, "nodes", nodes);
}

json_t *lab_status(const char *dir, GError **error)
{
    g_autoptr(GError) local = NULL;
    json_t *status = ask(dir, json_make("{s:s}", "do", "status"), &local);
    if (status)
        return status;
    layout_autoptr layout = fettle_error_is(local, WRONG_STATE) ? layout_load(dir, NULL) : NULL;
    if (layout)
        return status_from_outside(layout);
    g_propagate_error(error, g_steal_pointer(&local));
    return NULL;
}

/* --- readiness --- */

/* "noded@node2" of the first daemon that is not ready, NULL if all are. */
static char *first_unready(json_t *status, const char *wanted)
{
    size_t i, j;
    json_t *node, *daemon;
    json_array_foreach(json_object_get(status, "nodes"), i, node) {
        const char *name = json_string_value(json_object_get(node, "name"));
        if (wanted && strcmp(wanted, name) != 0)
            continue;
        if (wanted && !json_is_true(json_object_get(node, "power")))
            return g_strdup(name);
        json_array_foreach(json_object_get(node, "daemons"), j, daemon) {
            if (!json_is_true(json_object_get(daemon, "ready")))
                return g_strdup_printf("%s@%s", json_string_value(json_object_get(daemon, "name")),
                                       name);
        }
    }
    return NULL;
}

static char *log_tail(const char *dir, const char *daemon_at_node)
{
    g_auto(GStrv) parts = g_strsplit(daemon_at_node, "@", 2);
    if (g_strv_length(parts) != 2)
        return g_strdup("it has no power");
    g_autofree char *file = g_strdup_printf("%s.log", parts[0]);
    g_autofree char *path = g_build_filename(dir, "log", parts[1], file, NULL);
    g_autofree char *text = NULL;
    size_t len;
    if (!g_file_get_contents(path, &text, &len, NULL) || len == 0)
        return g_strdup_printf("nothing in %s", path);
    g_autofree char *tail =
        g_utf8_make_valid(text + (len > LOG_TAIL_CHARS ? len - LOG_TAIL_CHARS : 0), -1);
    return g_strdup_printf("%s ends with: %s", path, g_strstrip(tail));
}

bool lab_wait_ready(const char *dir, const char *node, guint timeout_ms, GError **error)
{
    gint64 deadline = g_get_monotonic_time() + (gint64)timeout_ms * 1000;
    g_autofree char *unready = NULL;
    do {
        json_autoptr status = ask(dir, json_make("{s:s}", "do", "status"), error);
        if (!status)
            return false;
        g_free(unready);
        unready = first_unready(status, node);
        if (!unready)
            return true;
        g_usleep(READY_STEP_US);
    } while (g_get_monotonic_time() < deadline);
    g_autofree char *tail = log_tail(dir, unready);
    fettle_set_error(error, TIMEOUT, "%s is not ready after %u ms; %s", unready, timeout_ms, tail);
    return false;
}

/* --- disks --- */

/* A folder of a node that has power. */
static char *folder_of(const char *dir, const char *node, const char *folder, GError **error)
{
    layout_autoptr layout = tools_check_root(error) ? layout_load(dir, error) : NULL;
    if (!layout)
        return NULL;
    guint number = layout_node_number(node);
    if (number < 1 || number > layout->nodes) {
        fettle_set_error(error, UNKNOWN_ENTITY, "no node %s in this lab; it has node1 to node%u",
                         node, layout->nodes);
        return NULL;
    }
    g_autofree char *disks = layout_below_root(layout, number, "var/disks");
    if (!disk_is_mounted(disks)) {
        fettle_set_error(error, WRONG_STATE, "%s has no power", node);
        return NULL;
    }
    return layout_below_root(layout, number, folder);
}

/* The mounted var/disks of a node. */
static char *disks_of(const char *dir, const char *node, GError **error)
{
    return folder_of(dir, node, "var/disks", error);
}

bool lab_disk_shutdown(const char *dir, const char *node, GError **error)
{
    g_autofree char *disks = disks_of(dir, node, error);
    return disks && disk_cut(disks, error);
}

bool lab_disk_fill(const char *dir, const char *node, guint leave_mib, GError **error)
{
    g_autofree char *disks = disks_of(dir, node, error);
    return disks && disk_fill(disks, leave_mib, error);
}

bool lab_disk_unfill(const char *dir, const char *node, GError **error)
{
    g_autofree char *disks = disks_of(dir, node, error);
    return disks && disk_unfill(disks, error);
}

bool lab_state_fill(const char *dir, const char *node, bool full, GError **error)
{
    g_autofree char *var = folder_of(dir, node, "var", error);
    return var && (full ? disk_fill(var, 0, error) : disk_unfill(var, error));
}

bool lab_state_read_only(const char *dir, const char *node, GError **error)
{
    g_autofree char *root = folder_of(dir, node, "", error);
    return root && disk_read_only(root, error);
}

bool lab_shared(const char *dir, enum lab_shared how, GError **error)
{
    layout_autoptr layout = tools_check_root(error) ? layout_load(dir, error) : NULL;
    g_autofree char *shared = layout ? layout_shared(layout) : NULL;
    if (shared && !disk_is_mounted(shared)) { /* below it is the machine's own file system */
        fettle_set_error(error, WRONG_STATE, "%s is not mounted: the lab does not run", shared);
        return false;
    }
    if (!shared || !disk_thaw(shared, error) || !disk_set_writable(shared, true, error) ||
        !disk_unfill(shared, error))
        return false;
    switch (how) {
    case LAB_SHARED_FULL:
        return disk_fill(shared, 0, error);
    case LAB_SHARED_READ_ONLY:
        return disk_set_writable(shared, false, error);
    case LAB_SHARED_HANGS:
        return disk_freeze(shared, error);
    case LAB_SHARED_OK:
        break;
    }
    return true;
}

/* --- network --- */

bool lab_exec(const char *dir, const char *where, const char *const *command, GError **error)
{
    layout_autoptr layout = tools_check_root(error) ? layout_load(dir, error) : NULL;
    if (!layout)
        return false;
    guint number = layout_node_number(where);
    if (strcmp(where, "switch") != 0 && (number < 1 || number > layout->nodes)) {
        fettle_set_error(error, UNKNOWN_ENTITY,
                         "no network %s in this lab; it has node1 to node%u, and switch", where,
                         layout->nodes);
        return false;
    }
    g_autofree char *name = number ? layout_netns(layout, number) : layout_switch(layout);
    int space = net_open(name);
    if (space < 0) {
        fettle_set_error(error, WRONG_STATE, "%s has no power", where);
        return false;
    }
    if (setns(space, CLONE_NEWNET) == 0)
        execvp(command[0], (char *const *)command);
    fettle_set_error(error, ENVIRONMENT, "cannot start %s: %s", command[0], g_strerror(errno));
    close(space);
    return false;
}

void lab_join(const char *root)
{
    g_autofree char *resolved = layout_resolve(root, NULL);
    g_autofree char *dir = resolved ? g_path_get_dirname(resolved) : NULL;
    g_autofree char *node = resolved ? g_path_get_basename(resolved) : NULL;
    guint number = node ? layout_node_number(node) : 0;
    if (number == 0 || !layout_exists(dir))
        return;
    g_autofree char *name = lab_node_netns(dir, node);
    int space = net_open(name);
    if (space < 0)
        return;
    setns(space, CLONE_NEWNET); /* only root may; others see what they see from here */
    close(space);
}

/* --- names --- */

char *lab_node_root(const char *dir, const char *node)
{
    g_autofree char *resolved = layout_resolve(dir, NULL);
    return g_build_filename(resolved ? resolved : dir, node, NULL);
}

char *lab_node_netns(const char *dir, const char *node)
{
    g_autofree char *resolved = layout_resolve(dir, NULL);
    g_autofree char *prefix = layout_prefix(resolved ? resolved : dir);
    return g_strdup_printf("%s-n%u", prefix, layout_node_number(node));
}
