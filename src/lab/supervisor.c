/*
 * Commands and state of a lab's supervisor (supervisor.h).
 */
#include "lab/supervisor.h"

#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "lab/ceph_run.h"
#include "lab/net.h"
#include "lab/power.h"
#include "lab/prepare.h"
#include "lab/service.h"
#include "lab/wire.h"
#include <glib-unix.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define COMMAND_TIMEOUT_S 2 /* for a client to say what it wants */

struct machine {
    bool power;
    bool link;
    char *boot_id;
};

struct supervisor {
    const struct layout *layout;
    struct machine *machines; /* by node, from 1 */
    struct services *services;
    struct ceph_run *ceph; /* or NULL */
    int listening;
};

/* --- building --- */

static void start_machine(struct supervisor *supervisor, guint node)
{
    struct machine *machine = &supervisor->machines[node];
    g_free(machine->boot_id);
    machine->boot_id = g_uuid_string_random();
    machine->power = true;
    services_start_node(supervisor->services, node, machine->boot_id);
}

static bool build(struct supervisor *supervisor, GError **error)
{
    const struct layout *layout = supervisor->layout;
    if (!net_make_switch(layout, error) || !power_make_shared(layout, error))
        return false;
    for (guint node = 1; node <= layout->nodes; node++) {
        supervisor->machines[node].link = true;
        if (!power_make_disks(layout, node, error) || !power_on(layout, node, true, error) ||
            (node == 1 && !prepare_authority(layout, error)) || !prepare_node(layout, node, error))
            return false;
    }
    if (layout->ceph)
        supervisor->ceph = ceph_run_new(layout, error);
    if (layout->ceph && !supervisor->ceph)
        return false;
    g_autofree char *path = layout_file(layout, "lab.sock");
    supervisor->listening = wire_listen(path, error);
    if (supervisor->listening < 0)
        return false;
    for (guint node = 1; node <= layout->nodes; node++)
        start_machine(supervisor, node);
    return true;
}

struct supervisor *supervisor_new(const struct layout *layout, GError **error)
{
    struct supervisor *supervisor = g_new0(struct supervisor, 1);
    supervisor->layout = layout;
    supervisor->machines = g_new0(struct machine, layout->nodes + 1);
    supervisor->services = services_new(layout);
    if (build(supervisor, error))
        return supervisor;
    /* The process ends now; services and machines go with it. */
    g_free(supervisor);
    return NULL;
}

/* --- commands --- */

static guint node_of(const struct supervisor *supervisor, json_t *command, GError **error)
{
    const char *name = json_string_value(json_object_get(command, "node"));
    guint node = name ? layout_node_number(name) : 0;
    if (node >= 1 && node <= supervisor->layout->nodes)
        return node;
    fettle_set_error(error, UNKNOWN_ENTITY, "no node %s in this lab; it has node1 to node%u",
                     name ? name : "without a name", supervisor->layout->nodes);
    return 0;
}

static bool flag_of(json_t *command, const char *name, bool *ret_flag, GError **error)
{
    json_t *flag = json_object_get(command, name);
    if (!json_is_boolean(flag)) {
        fettle_set_error(error, WRONG_INPUT, "%s: must be true or false", name);
        return false;
    }
    *ret_flag = json_is_true(flag);
    return true;
}

static json_t *do_status(struct supervisor *supervisor, json_t *command, GError **error)
{
    const struct layout *layout = supervisor->layout;
    json_autoptr nodes = json_array();
    services_reap(supervisor->services);
    for (guint node = 1; node <= layout->nodes; node++) {
        const struct machine *machine = &supervisor->machines[node];
        g_autofree char *name = g_strdup_printf("node%u", node);
        g_autofree char *root = layout_root(layout, node);
        g_autofree char *address = layout_address(layout, node);
        json_array_append_new(
            nodes, json_make("{s:s, s:s, s:s, s:s, s:b, s:b, s:s, s:o}", "name", name, "uuid",
                             (char *)g_ptr_array_index(layout->node_uuids, node - 1), "address",
                             address, "root", root, "power", machine->power, "link", machine->link,
                             "boot_id", machine->power ? machine->boot_id : "", "daemons",
                             services_to_json(supervisor->services, node)));
    }
    json_t *ceph = supervisor->ceph ? ceph_run_to_json(supervisor->ceph) : json_null();
    return json_make("{s:s, s:b, s:o, s:O}", "dir", layout->dir, "supervisor", true, "ceph", ceph,
                     "nodes", nodes);
}

static bool switch_power(struct supervisor *supervisor, guint node, bool on, GError **error)
{
    struct machine *machine = &supervisor->machines[node];
    if (machine->power == on)
        return true;
    if (on) {
        if (!power_on(supervisor->layout, node, machine->link, error))
            return false;
        start_machine(supervisor, node);
        return true;
    }
    services_stop_node(supervisor->services, node);
    machine->power = false;
    bool ok = power_off(supervisor->layout, node, error);
    services_reap(supervisor->services);
    return ok;
}

/* Whether it is said of the lab's Ceph, under `name`; then with an error if there is none. */
static bool is_ceph(const struct supervisor *supervisor, json_t *command, const char *name,
                    GError **error)
{
    bool is = g_strcmp0(json_string_value(json_object_get(command, name)), "ceph") == 0;
    if (is && !supervisor->ceph)
        fettle_set_error(error, UNKNOWN_ENTITY,
                         "this lab has no Ceph; `fettle lab up --ceph` makes one that has");
    return is;
}

static json_t *do_power(struct supervisor *supervisor, json_t *command, GError **error)
{
    bool on;
    if (is_ceph(supervisor, command, "node", error))
        return supervisor->ceph && flag_of(command, "on", &on, error) &&
                       ceph_run_power(supervisor->ceph, on, error)
                   ? json_true()
                   : NULL;
    guint node = node_of(supervisor, command, error);
    if (!node || !flag_of(command, "on", &on, error) || !switch_power(supervisor, node, on, error))
        return NULL;
    return json_true();
}

static json_t *do_link(struct supervisor *supervisor, json_t *command, GError **error)
{
    bool up;
    guint node = node_of(supervisor, command, error);
    if (!node || !flag_of(command, "up", &up, error))
        return NULL;
    struct machine *machine = &supervisor->machines[node];
    if (machine->power && !net_set_link(supervisor->layout, node, up, error))
        return NULL;
    machine->link = up;
    return json_true();
}

static struct lab_service *service_of(struct supervisor *supervisor, json_t *command,
                                      GError **error)
{
    const char *name = json_string_value(json_object_get(command, "daemon"));
    services_reap(supervisor->services);
    return services_find(supervisor->services, name ? name : "", error);
}

static json_t *signal_ceph(struct supervisor *supervisor, const char *word, GError **error)
{
    bool pause = g_strcmp0(word, "pause") == 0;
    if (pause || g_strcmp0(word, "resume") == 0)
        return ceph_run_pause(supervisor->ceph, pause, error) ? json_true() : NULL;
    fettle_set_error(error, WRONG_INPUT, "ceph can be paused and resumed, and its power be cut");
    return NULL;
}

static json_t *do_signal(struct supervisor *supervisor, json_t *command, GError **error)
{
    static const char *const words[] = {
        [LAB_KILL] = "kill", [LAB_PAUSE] = "pause", [LAB_RESUME] = "resume"};
    const char *word = json_string_value(json_object_get(command, "signal"));
    if (is_ceph(supervisor, command, "daemon", error))
        return supervisor->ceph ? signal_ceph(supervisor, word, error) : NULL;
    struct lab_service *service = service_of(supervisor, command, error);
    if (!service)
        return NULL;
    for (guint i = 0; i < G_N_ELEMENTS(words); i++)
        if (g_strcmp0(word, words[i]) == 0)
            return service_signal(service, (enum lab_signal)i, error) ? json_true() : NULL;
    fettle_set_error(error, WRONG_INPUT, "signal: must be kill, pause or resume");
    return NULL;
}

static json_t *do_restart(struct supervisor *supervisor, json_t *command, GError **error)
{
    struct lab_service *service = service_of(supervisor, command, error);
    g_autoptr(GPtrArray) variables = g_ptr_array_new();
    json_t *list = json_object_get(command, "variables");
    size_t index;
    json_t *item;
    json_array_foreach(list, index, item) {
        const char *text = json_string_value(item);
        if (!text || !strchr(text, '=')) {
            fettle_set_error(error, WRONG_INPUT, "variables[%zu]: must be NAME=value", index);
            return NULL;
        }
        g_ptr_array_add(variables, (void *)text);
    }
    g_ptr_array_add(variables, NULL);
    if (!service || !service_restart_with(service, (const char *const *)variables->pdata, error))
        return NULL;
    return json_true();
}

static json_t *do_enable_master(struct supervisor *supervisor, json_t *command, GError **error)
{
    services_enable_master(supervisor->services);
    return json_true();
}

static const struct {
    const char *name;
    json_t *(*run)(struct supervisor *supervisor, json_t *command, GError **error);
} COMMANDS[] = {
    {"status", do_status}, {"power", do_power},          {"link", do_link},
    {"signal", do_signal}, {"restart_with", do_restart}, {"enable_master", do_enable_master},
};

static json_t *run_command(struct supervisor *supervisor, json_t *command, GError **error)
{
    const char *name = json_string_value(json_object_get(command, "do"));
    for (guint i = 0; i < G_N_ELEMENTS(COMMANDS); i++)
        if (g_strcmp0(name, COMMANDS[i].name) == 0)
            return COMMANDS[i].run(supervisor, command, error);
    fettle_set_error(error, WRONG_INPUT, "do: the supervisor knows no command %s",
                     name ? name : "without a name");
    return NULL;
}

/* --- loop --- */

static void log_command(json_t *command, const GError *error)
{
    g_autofree char *text = json_to_text(command);
    const char *name = json_string_value(json_object_get(command, "do"));
    if (error)
        log_warning("", "%s failed: %s", text, error->message);
    else if (g_strcmp0(name, "status") != 0)
        log_info("", "%s done", text);
}

static void serve_one(struct supervisor *supervisor, int connection)
{
    struct timeval patience = {.tv_sec = COMMAND_TIMEOUT_S};
    g_autoptr(GError) error = NULL;
    json_autoptr result = NULL;
    setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    setsockopt(connection, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
    json_autoptr command = wire_receive(connection, &error);
    if (command) {
        result = run_command(supervisor, command, &error);
        log_command(command, error);
    }
    json_autoptr answer =
        result ? json_make("{s:O}", "result", result)
               : json_make("{s:[s, s]}", "error", fettle_error_name(error), error->message);
    wire_send(connection, answer, NULL);
}

static gboolean accept_cb(gint fd, GIOCondition condition, gpointer data)
{
    int connection = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
    if (connection >= 0) {
        serve_one(data, connection);
        close(connection);
    }
    return G_SOURCE_CONTINUE;
}

static gboolean child_cb(gint fd, GIOCondition condition, gpointer data)
{
    struct supervisor *supervisor = data;
    struct signalfd_siginfo about;
    while (read(fd, &about, sizeof(about)) == (ssize_t)sizeof(about))
        continue;
    services_reap(supervisor->services);
    return G_SOURCE_CONTINUE;
}

void supervisor_run(struct supervisor *supervisor)
{
    sigset_t children;
    sigemptyset(&children);
    sigaddset(&children, SIGCHLD);
    int ended = signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK);
    g_unix_fd_add(ended, G_IO_IN, child_cb, supervisor);
    g_unix_fd_add(supervisor->listening, G_IO_IN, accept_cb, supervisor);
    services_reap(supervisor->services);
    g_autoptr(GMainLoop) loop = g_main_loop_new(NULL, FALSE);
    g_main_loop_run(loop);
    g_assert_not_reached(); /* nobody quits the loop */
}
