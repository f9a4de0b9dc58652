/* What every daemon's main() shares; see daemon.h. */
#include "daemons/common/daemon.h"

#include <stdio.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "core/host/services.h"
#include "daemons/common/trim_memory.h"
#include "io/loop.h"
#include "io/node_config.h"
#include "io/output.h"

static struct {
    const struct daemon *daemon;
    char *ready_file;
    bool quitting;
    const struct env *env;
    struct own_service *service; /* NULL: not written down (yet) */
    char *why;                   /* it ends; NULL: it was asked to */
} running;

/* Says on standard error why the program ends, and gives its exit code. */
static int complain(const struct daemon *daemon, const GError *error)
{
    fprintf(stderr, "fettle-%s: %s\n", daemon->name, error->message);
    return fettle_error_exit_code(error);
}

static bool parse_options(int *argc, char ***argv, const struct daemon *daemon, char **ret_root,
                          GError **error)
{
    g_autoptr(GError) reason = NULL;
    g_autofree char *root = NULL;
    gboolean version = FALSE;
    const GOptionEntry common[] = {
        {"root", 0, 0, G_OPTION_ARG_FILENAME, &root,
         "Folder of this node (default: FETTLE_ROOT, else /)", "DIR"},
        {"version", 0, 0, G_OPTION_ARG_NONE, &version, "Show the version and exit", NULL},
        {NULL},
    };
    g_autoptr(GOptionContext) context = g_option_context_new(NULL);
    g_option_context_set_summary(context, daemon->summary);
    g_option_context_add_main_entries(context, common, NULL);
    if (daemon->options)
        g_option_context_add_main_entries(context, daemon->options, NULL);
    if (!g_option_context_parse(context, argc, argv, &reason)) {
        fettle_set_error(error, WRONG_INPUT, "%s; see fettle-%s --help", reason->message,
                         daemon->name);
        return false;
    }
    if (*argc > 1) {
        fettle_set_error(error, WRONG_INPUT, "unexpected argument \"%s\"; see fettle-%s --help",
                         (*argv)[1], daemon->name);
        return false;
    }
    if (version) {
        g_print("fettle-%s %s\n", daemon->name, FETTLE_VERSION);
        exit(0);
    }
    *ret_root = g_steal_pointer(&root);
    return true;
}

void daemon_quit(const GError *error)
{
    if (running.quitting)
        return;
    running.quitting = true;
    running.why = error ? g_strdup(error->message) : NULL;
    loop_quit(error ? complain(running.daemon, error) : 0);
}

/* What is seen of it in lists must not keep it from its work. */
static void write_down(void)
{
    g_autoptr(GError) error = NULL;
    running.service = service_begin(running.env, running.daemon->name, (guint64)getpid(), &error);
    if (!running.service && !task_killed())
        log_warning("", "lists of services do not show this process: %s", error->message);
}

static void start_task(void *data)
{
    g_autoptr(GError) error = NULL;
    write_down();
    if (!running.daemon->start(&error)) {
        daemon_quit(error);
        return;
    }
    if (!g_file_set_contents(running.ready_file, "", 0, &error)) {
        daemon_quit(error);
        return;
    }
    fprintf(stderr, "fettle-%s: ready\n", running.daemon->name);
}

static int run_loop(const struct daemon *daemon, const char *root)
{
    g_autoptr(GError) error = NULL;
    int code;
    struct env *env = daemon->setup(root, &error);
    if (env) {
        running.env = env;
        task_spawn(env->tasks, start_task, NULL);
        trim_memory_start();
        code = loop_run();
        trim_memory_stop();
        service_end(g_steal_pointer(&running.service), running.why);
        g_clear_pointer(&running.why, g_free);
    } else {
        code = complain(daemon, error);
    }
    unlink(running.ready_file);
    daemon->stop();
    return code;
}

int daemon_main(int argc, char **argv, const struct daemon *daemon)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *root = NULL;
    g_autofree char *program = g_strdup_printf("fettle-%s", daemon->name);
    bool done = false;
    output_begin(program);
    log_init(program);
    running.daemon = daemon;
    if (!parse_options(&argc, &argv, daemon, &root, &error))
        return complain(daemon, error);
    g_autoptr(node_paths_t) paths = node_paths_new(root, &error);
    if (!paths || (daemon->once && !daemon->once(paths->root, &done, &error)))
        return complain(daemon, error);
    if (done)
        return 0;
    g_autofree char *ready = node_ready_name(daemon->name);
    running.ready_file = g_build_filename(paths->run, ready, NULL);
    unlink(running.ready_file);
    loop_init();
    int code = run_loop(daemon, paths->root);
    g_free(running.ready_file);
    return code;
}
