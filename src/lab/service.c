/*
 * Keeping daemons running (service.h).
 */
#include "lab/service.h"

#include "base/error.h"
#include "base/log.h"
#include "io/api_conf.h"
#include "io/api_place.h"
#include "io/rapid_place.h"
#include "lab/net.h"
#include "lab/proc.h"
#include <errno.h>
#include <fcntl.h>
#include <gio/gio.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAUSE_FIRST_MS 50
#define PAUSE_LONGEST_MS 2000
#define GOOD_RUN_US (5 * G_USEC_PER_SEC) /* after this long the next pause is the first again */
#define KILL_TIMEOUT_MS 5000
#define EXIT_CANNOT_START 127
#define API_DAEMON "apid"    /* runs where there is a front end, and listens outside of the lab */
#define MOND_DAEMON "mond"   /* listens there too */
#define RAPID_DAEMON "rapid" /* and so does that one */
#define OUTSIDE_ADDRESS "127.0.0.1"
#define LISTEN_FD 3

struct lab_service {
    struct services *services;
    const struct layout_daemon *daemon;
    guint node;
    char *log;
    char *ready;
    bool wanted; /* the node has power, and the daemon is one for it */
    bool paused;
    pid_t pid; /* 0: does not run */
    int pidfd;
    guint restarts;
    guint pause_ms;
    guint timer;
    guint port; /* of monitoring or REST, outside of the lab; 0: not known yet */
    gint64 started_us;
    GStrv kept; /* variables of each start, until another restart names others; or NULL */
};

struct services {
    const struct layout *layout;
    bool master_enabled;
    GPtrArray *all;     /* struct lab_service * */
    GPtrArray *boot_id; /* char *, by node; NULL without power */
};

static struct lab_service *lab_service_new(struct services *services, guint node,
                                           const struct layout_daemon *daemon)
{
    struct lab_service *service = g_new0(struct lab_service, 1);
    g_autofree char *log = layout_log(services->layout, node);
    g_autofree char *name = node_ready_name(daemon->name);
    g_autofree char *ready = g_build_filename("run", name, NULL);
    service->services = services;
    service->daemon = daemon;
    service->node = node;
    service->log = g_strdup_printf("%s/%s.log", log, daemon->name);
    service->ready = layout_below_root(services->layout, node, ready);
    service->pidfd = -1;
    service->pause_ms = PAUSE_FIRST_MS;
    return service;
}

struct services *services_new(const struct layout *layout)
{
    struct services *services = g_new0(struct services, 1);
    services->layout = layout;
    services->all = g_ptr_array_new();
    services->boot_id = g_ptr_array_new_with_free_func(g_free);
    g_ptr_array_set_size(services->boot_id, (gint)layout->nodes + 1);
    for (guint node = 1; node <= layout->nodes; node++)
        for (guint i = 0; i < layout->daemons->len; i++) {
            const struct layout_daemon *daemon = g_ptr_array_index(layout->daemons, i);
            if (!daemon->master_only || node <= layout->candidates)
                g_ptr_array_add(services->all, lab_service_new(services, node, daemon));
        }
    return services;
}

/* --- starting --- */

static char **with_variable(char **environment, const char *variable)
{
    g_auto(GStrv) parts = g_strsplit(variable, "=", 2);
    return g_environ_setenv(environment, parts[0], parts[1] ? parts[1] : "", TRUE);
}

static char **environment_for(const struct lab_service *service, const char *const *variables)
{
    const struct services *services = service->services;
    g_autofree char *root = layout_root(services->layout, service->node);
    g_autofree char *name = g_strdup_printf("node%u", service->node);
    g_autofree char *programs = layout_programs(services->layout, service->node);
    g_autofree char *path = g_strdup_printf("%s:%s", programs, g_getenv("PATH"));
    char **environment = g_get_environ();
    environment = g_environ_unsetenv(environment, "FETTLE_CRASH_AT");
    environment = g_environ_unsetenv(environment, "FETTLE_CRASH_LOG");
    environment = g_environ_setenv(environment, "FETTLE_ROOT", root, TRUE);
    environment = g_environ_setenv(environment, "FETTLE_NODE", name, TRUE);
    environment = g_environ_setenv(environment, "PATH", path, TRUE);
    environment = g_environ_setenv(environment, "FETTLE_BOOT_ID",
                                   g_ptr_array_index(services->boot_id, service->node), TRUE);
    for (char **kept = service->kept; kept && *kept; kept++)
        environment = with_variable(environment, *kept);
    for (; variables && *variables; variables++)
        if (**variables != '+')
            environment = with_variable(environment, *variables);
    return environment;
}

/* In the child, between fork and exec: system calls only. Its working folder is the node's root, so
 * that one path, /proc/self/cwd/…, can be another place on each node. */
G_GNUC_NORETURN static void become_daemon(int space, int log, int listening, const char *root,
                                          const struct api_owner *user, char *const *command,
                                          char *const *environment)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    setsid();
    int input = open("/dev/null", O_RDONLY);
    if (setns(space, CLONE_NEWNET) == 0 && chdir(root) == 0 && dup2(input, STDIN_FILENO) >= 0 &&
        dup2(log, STDOUT_FILENO) >= 0 && dup2(log, STDERR_FILENO) >= 0 &&
        (!user->uid ||
         (setgroups(0, NULL) == 0 && setresgid(user->gid, user->gid, user->gid) == 0 &&
          setresuid(user->uid, user->uid, user->uid) == 0))) {
        close(input);
        if (listening >= 0 && dup2(listening, LISTEN_FD) == listening) /* it was that already */
            fcntl(LISTEN_FD, F_SETFD, 0);
        execvpe(command[0], command, environment);
    }
    dprintf(log, "cannot start %s: %s\n", command[0], strerror(errno));
    _exit(EXIT_CANNOT_START);
}

static void service_died(struct lab_service *service, const char *how);
static bool service_belongs(const struct lab_service *service);

static bool is_api(const struct lab_service *service)
{
    return strcmp(service->daemon->name, API_DAEMON) == 0;
}

static bool is_mond(const struct lab_service *service)
{
    return strcmp(service->daemon->name, MOND_DAEMON) == 0;
}

static bool is_rapid(const struct lab_service *service)
{
    return strcmp(service->daemon->name, RAPID_DAEMON) == 0;
}

/* What its node says of its front end; NULL: it has none, or that cannot be read, which the daemon
 * says itself. */
static struct api_conf *front_end_of(const struct lab_service *service)
{
    g_autofree char *root = layout_root(service->services->layout, service->node);
    g_autoptr(node_paths_t) paths = node_paths_new(root, NULL);
    return paths ? api_conf_read(paths, NULL) : NULL;
}

/* A socket of this machine, not of the node's network: clients are outside. */
static GSocket *listen_on(const char *text, guint port, GError **error)
{
    g_autoptr(GSocketAddress) address = g_inet_socket_address_new_from_string(text, port);
    g_autoptr(GSocket) socket =
        address ? g_socket_new(g_socket_address_get_family(address), G_SOCKET_TYPE_STREAM,
                               G_SOCKET_PROTOCOL_TCP, error)
                : NULL;
    bool ok =
        socket && g_socket_bind(socket, address, TRUE, error) && g_socket_listen(socket, error);
    return ok ? g_steal_pointer(&socket) : NULL;
}

static GSocket *listen_for_api(const struct lab_service *service)
{
    record_autoptr(api_conf) conf = front_end_of(service);
    g_autoptr(GError) error = NULL;
    GSocket *socket = conf ? listen_on(conf->listen, (guint)conf->port, &error) : NULL;
    if (conf && !socket)
        log_warning("", "%s@node%u cannot listen on %s port %u of this machine: %s",
                    service->daemon->name, service->node, conf->listen, (guint)conf->port,
                    error ? error->message : "no IP address");
    return socket;
}

/* On any free port, and then on the same one as long as nobody else has it. */
static GSocket *listen_anywhere(struct lab_service *service)
{
    g_autoptr(GError) error = NULL;
    GSocket *socket = listen_on(OUTSIDE_ADDRESS, service->port, NULL);
    if (!socket)
        socket = listen_on(OUTSIDE_ADDRESS, 0, &error);
    g_autoptr(GSocketAddress) address = socket ? g_socket_get_local_address(socket, NULL) : NULL;
    service->port = address ? g_inet_socket_address_get_port(G_INET_SOCKET_ADDRESS(address)) : 0;
    if (!socket)
        log_warning("", "%s@node%u cannot listen on " OUTSIDE_ADDRESS " of this machine: %s",
                    service->daemon->name, service->node, error->message);
    return socket;
}

/* NULL: the daemon listens by itself alone. */
static GSocket *listen_outside(struct lab_service *service)
{
    return is_api(service)                         ? listen_for_api(service)
           : is_mond(service) || is_rapid(service) ? listen_anywhere(service)
                                                   : NULL;
}

/* Whose its front end is, or who REST is on this machine; all others are root's. */
static struct api_owner user_of(const struct lab_service *service)
{
    g_autofree char *root = layout_root(service->services->layout, service->node);
    g_autoptr(node_paths_t) paths = node_paths_new(root, NULL);
    struct api_owner user = {0};
    const struct rapid_owner rest = rapid_user();
    if (is_api(service) && paths)
        api_user_of(paths, &user);
    return is_rapid(service) ? (struct api_owner){rest.uid, rest.gid} : user;
}

static void service_start(struct lab_service *service, const char *const *variables)
{
    const struct api_owner user = user_of(service);
    g_autofree char *name = layout_netns(service->services->layout, service->node);
    g_autoptr(GSocket) outside = listen_outside(service);
    g_auto(GStrv) environment = environment_for(service, variables);
    g_autofree char *root = layout_root(service->services->layout, service->node);
    if (outside)
        environment =
            g_environ_setenv(environment, "FETTLE_LISTEN_FD", G_STRINGIFY(LISTEN_FD), TRUE);
    int space = net_open(name);
    int log = open(service->log, O_CREAT | O_APPEND | O_WRONLY | O_CLOEXEC, 0600);
    unlink(service->ready);
    service->started_us = g_get_monotonic_time();
    service->paused = false;
    pid_t pid = space >= 0 && log >= 0 ? fork() : -1;
    if (pid == 0)
        become_daemon(space, log, outside ? g_socket_get_fd(outside) : -1, root, &user,
                      service->daemon->command, environment);
    if (pid > 0) {
        service->pid = pid;
        service->pidfd = proc_open(pid);
    }
    if (space >= 0)
        close(space);
    if (log >= 0)
        close(log);
    if (pid < 0)
        service_died(service, "could not be started");
}

static gboolean service_start_cb(gpointer data)
{
    struct lab_service *service = data;
    service->timer = 0;
    service->restarts++;
    service_start(service, NULL);
    return G_SOURCE_REMOVE;
}

static void cancel_timer(struct lab_service *service)
{
    if (service->timer)
        g_source_remove(service->timer);
    service->timer = 0;
}

static void forget_process(struct lab_service *service)
{
    if (service->pidfd >= 0)
        close(service->pidfd);
    service->pidfd = -1;
    service->pid = 0;
    service->paused = false;
}

static void service_died(struct lab_service *service, const char *how)
{
    g_autofree char *fields =
        g_strdup_printf("DAEMON=%s NODE=node%u", service->daemon->name, service->node);
    bool good_run = g_get_monotonic_time() - service->started_us > GOOD_RUN_US;
    forget_process(service);
    service->wanted = service->wanted && service_belongs(service);
    if (!service->wanted)
        return;
    unlink(service->ready);
    if (good_run)
        service->pause_ms = PAUSE_FIRST_MS;
    log_info(fields, "daemon %s; next start in %u ms", how, service->pause_ms);
    cancel_timer(service);
    service->timer = g_timeout_add(service->pause_ms, service_start_cb, service);
    service->pause_ms = MIN(service->pause_ms * 2, PAUSE_LONGEST_MS);
}

/* --- nodes --- */

static bool service_belongs(const struct lab_service *service)
{
    g_autofree char *conf =
        layout_below_root(service->services->layout, service->node, "etc/apid.conf");
    return is_api(service) ? access(conf, F_OK) == 0
                           : !service->daemon->master_only || service->services->master_enabled;
}

static void service_want(struct lab_service *service)
{
    if (service->wanted || !service_belongs(service))
        return;
    service->wanted = true;
    service->pause_ms = PAUSE_FIRST_MS;
    service_start(service, NULL);
}

void services_start_node(struct services *services, guint node, const char *boot_id)
{
    g_free(services->boot_id->pdata[node]);
    services->boot_id->pdata[node] = g_strdup(boot_id);
    for (guint i = 0; i < services->all->len; i++) {
        struct lab_service *service = g_ptr_array_index(services->all, i);
        if (service->node == node)
            service_want(service);
    }
}

void services_stop_node(struct services *services, guint node)
{
    g_clear_pointer(&services->boot_id->pdata[node], g_free);
    for (guint i = 0; i < services->all->len; i++) {
        struct lab_service *service = g_ptr_array_index(services->all, i);
        if (service->node != node)
            continue;
        service->wanted = false;
        cancel_timer(service);
    }
}

void services_enable_master(struct services *services)
{
    services->master_enabled = true;
    for (guint i = 0; i < services->all->len; i++) {
        struct lab_service *service = g_ptr_array_index(services->all, i);
        if (service->daemon->master_only && services->boot_id->pdata[service->node])
            service_want(service);
    }
}

static struct lab_service *service_of_pid(const struct services *services, pid_t pid)
{
    for (guint i = 0; i < services->all->len; i++) {
        struct lab_service *service = g_ptr_array_index(services->all, i);
        if (service->pid == pid)
            return service;
    }
    return NULL;
}

void services_reap(struct services *services)
{
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        struct lab_service *service = service_of_pid(services, pid);
        if (!service)
            continue; /* an orphan of some daemon: it only had to be collected */
        g_autofree char *how = WIFSIGNALED(status)
                                   ? g_strdup_printf("was killed by signal %d", WTERMSIG(status))
                                   : g_strdup_printf("ended with %d", WEXITSTATUS(status));
        service_died(service, how);
    }
}

/* --- commands --- */

struct lab_service *services_find(struct services *services, const char *daemon_at_node,
                                  GError **error)
{
    g_auto(GStrv) parts = g_strsplit(daemon_at_node, "@", 2);
    guint node = g_strv_length(parts) == 2 ? layout_node_number(parts[1]) : 0;
    for (guint i = 0; node && i < services->all->len; i++) {
        struct lab_service *service = g_ptr_array_index(services->all, i);
        if (service->node == node && strcmp(service->daemon->name, parts[0]) == 0)
            return service;
    }
    fettle_set_error(error, UNKNOWN_ENTITY,
                     "no daemon %s in this lab; it is written like noded@node2", daemon_at_node);
    return NULL;
}

static bool check_runs(const struct lab_service *service, GError **error)
{
    if (service->pid)
        return true;
    fettle_set_error(error, WRONG_STATE, "%s@node%u does not run (%s)", service->daemon->name,
                     service->node,
                     service->wanted            ? "it is about to be started again"
                     : service_belongs(service) ? "the node has no power"
                     : is_api(service)          ? "it has no front end of the API"
                                                : "there is no cluster yet");
    return false;
}

static bool service_kill(struct lab_service *service, GError **error)
{
    proc_signal(service->pidfd, SIGKILL);
    if (!proc_wait(service->pidfd, KILL_TIMEOUT_MS)) {
        fettle_set_error(error, TIMEOUT, "%s@node%u was killed and has not ended yet",
                         service->daemon->name, service->node);
        return false;
    }
    services_reap(service->services);
    return true;
}

bool service_signal(struct lab_service *service, enum lab_signal what, GError **error)
{
    if (!check_runs(service, error))
        return false;
    switch (what) {
    case LAB_KILL:
        return service_kill(service, error);
    case LAB_PAUSE:
        service->paused = proc_stop(service->pidfd, KILL_TIMEOUT_MS);
        return true;
    case LAB_RESUME:
        proc_signal(service->pidfd, SIGCONT);
        service->paused = false;
        return true;
    }
    g_assert_not_reached();
}

static void keep_variables(struct lab_service *service, const char *const *variables)
{
    g_autoptr(GPtrArray) kept = g_ptr_array_new();
    for (; *variables; variables++)
        if (**variables == '+')
            g_ptr_array_add(kept, g_strdup(*variables + 1));
    g_ptr_array_add(kept, NULL);
    g_strfreev(service->kept);
    service->kept = (GStrv)g_ptr_array_steal(kept, NULL);
}

bool service_restart_with(struct lab_service *service, const char *const *variables, GError **error)
{
    if (!service->wanted && !(is_api(service) && service->services->boot_id->pdata[service->node] &&
                              service_belongs(service)))
        return check_runs(service, error);
    service->wanted = true;
    if (service->pid && !service_kill(service, error))
        return false;
    cancel_timer(service);
    service->pause_ms = PAUSE_FIRST_MS;
    service->restarts++;
    keep_variables(service, variables);
    service_start(service, variables);
    return true;
}

json_t *services_to_json(const struct services *services, guint node)
{
    json_t *list = json_array();
    for (guint i = 0; i < services->all->len; i++) {
        const struct lab_service *service = g_ptr_array_index(services->all, i);
        if (service->node != node || !service->wanted)
            continue;
        const char *state = !service->pid ? "waiting" : service->paused ? "paused" : "running";
        json_t *daemon =
            json_make("{s:s, s:s, s:i, s:i, s:b}", "name", service->daemon->name, "state", state,
                      "pid", (int)service->pid, "restarts", (int)service->restarts, "ready",
                      service->pid && access(service->ready, F_OK) == 0);
        if (service->port)
            json_object_set_new(daemon, "port", json_integer(service->port));
        json_array_append_new(list, daemon);
    }
    return list;
}
