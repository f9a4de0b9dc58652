/* `fettle lab …`: a whole cluster on this machine, with power cuts that are real. */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

#include "lab/lab.h"

void cli_join_lab(const struct cli *cli)
{
    const char *root = cli->root != NULL ? cli->root : g_getenv("FETTLE_ROOT");
    if (root != NULL)
        lab_join(root);
}

/* --dir, which every lab command takes. */
static const char *take_dir(int *argc, char **argv, GError **error)
{
    g_autoptr(GError) bad = NULL;
    const char *dir = cli_take_option(argc, argv, "--dir", &bad);
    if (bad != NULL) {
        g_propagate_error(error, g_steal_pointer(&bad));
        return NULL;
    }
    return dir != NULL ? dir : LAB_DEFAULT_DIR;
}

static bool take_number(int *argc, char **argv, const char *name, guint least, guint *number,
                        GError **error)
{
    g_autoptr(GError) bad = NULL;
    guint64 value;
    const char *text = cli_take_option(argc, argv, name, &bad);
    if (bad != NULL) {
        g_propagate_error(error, g_steal_pointer(&bad));
        return false;
    }
    if (text == NULL)
        return true;
    if (!g_ascii_string_to_unsigned(text, 10, 0, G_MAXINT32, &value, NULL)) {
        fettle_set_error(error, WRONG_INPUT, "%s: \"%s\" is no number", name, text);
        return false;
    }
    if (value < least) {
        fettle_set_error(error, WRONG_INPUT, "%s: must be at least %u", name, least);
        return false;
    }
    *number = (guint)value;
    return true;
}

static bool take_engine(int *argc, char **argv, bool *ret_etcd, GError **error)
{
    g_autoptr(GError) bad = NULL;
    const char *text = cli_take_option(argc, argv, "--engine", &bad);
    int kind = text != NULL ? enum_parse(&engine_kind_words, text) : ENGINE_KIND_SQLITE;
    *ret_etcd = kind == ENGINE_KIND_ETCD;
    if (bad != NULL)
        g_propagate_error(error, g_steal_pointer(&bad));
    else if (kind < 0)
        fettle_set_error(error, WRONG_INPUT, "--engine: must be sqlite or etcd, not \"%s\"", text);
    else
        return true;
    return false;
}

/* Where a daemon of a node can be reached; 0: not at all. */
static json_int_t port_of(const json_t *node, const char *name)
{
    size_t i;
    const json_t *daemon;
    json_array_foreach(json_object_get(node, "daemons"), i, daemon)
        if (g_strcmp0(json_string_value(json_object_get(daemon, "name")), name) == 0)
            return json_integer_value(json_object_get(daemon, "port"));
    return 0;
}

static void say_addresses(const struct cli *cli, const char *dir)
{
    json_autoptr status = lab_status(dir, NULL);
    const json_t *first = json_array_get(json_object_get(status, "nodes"), 0);
    json_int_t port = first ? port_of(first, "mond") : 0;
    json_int_t rest = first ? port_of(first, "rapid") : 0;
    if (rest)
        cli_say(
            cli, NULL,
            "REST: https://127.0.0.1:%" JSON_INTEGER_FORMAT
            "/2/info, with the authority %s/node1/etc/ca.crt, for users of: fettle rapi user add "
            "NAME",
            rest, dir);
    if (port)
        cli_say(cli, NULL,
                "Monitoring of node1: http://127.0.0.1:%" JSON_INTEGER_FORMAT
                "/metrics; of the others: fettle lab status --dir %s",
                port, dir);
}

static int lab_cmd_up(struct cli *cli, int argc, char **argv, GError **error)
{
    struct lab_options options = {.dir = take_dir(&argc, argv, error)};
    if (options.dir == NULL || !take_number(&argc, argv, "--nodes", 1, &options.nodes, error) ||
        !take_number(&argc, argv, "--candidates", 1, &options.candidates, error) ||
        !take_number(&argc, argv, "--replica-lost-ms", 1, &options.replica_lost_ms, error) ||
        !take_number(&argc, argv, "--watcher-interval-ms", 1, &options.watcher_interval_ms,
                     error) ||
        !take_number(&argc, argv, "--disks-mib", 1, &options.disks_mib, error) ||
        !take_number(&argc, argv, "--root-mib", 1, &options.root_mib, error) ||
        !take_engine(&argc, argv, &options.etcd, error))
        return -1;
    options.no_init = cli_take_flag(&argc, argv, "--no-init");
    options.ipv6 = cli_take_flag(&argc, argv, "--ipv6");
    options.ceph = cli_take_flag(&argc, argv, "--ceph");
    if (!cli_expect(argc, argv, 0,
                    "lab up [--nodes N] [--candidates N] [--engine etcd] [--ipv6] [--ceph] "
                    "[--dir DIR] "
                    "[--no-init]",
                    error) ||
        !lab_up(&options, error))
        return -1;
    guint nodes = options.nodes != 0 ? options.nodes : 3;
    cli_say(cli, json_make("{ss si}", "dir", options.dir, "nodes", (int)nodes),
            "A lab of %u nodes is up in %s. Try: fettle --root %s/node1 node list", nodes,
            options.dir, options.dir);
    say_addresses(cli, options.dir);
    if (options.ceph)
        cli_say(cli, NULL,
                "Its Ceph is a back end with: fettle --root %s/node1 backend add ceph1 --kind rbd "
                "--pool rbd --conf %s/ceph/ceph.conf --nodes NODES",
                options.dir, options.dir);
    return 0;
}

static int lab_cmd_down(struct cli *cli, int argc, char **argv, GError **error)
{
    const char *dir = take_dir(&argc, argv, error);
    bool known = dir != NULL && g_file_test(dir, G_FILE_TEST_EXISTS);
    if (dir == NULL || !cli_expect(argc, argv, 0, "lab down [--dir DIR]", error) ||
        !lab_down(dir, error))
        return -1;
    if (known)
        cli_say(cli, NULL, "The lab in %s is gone.", dir);
    else
        cli_say(cli, NULL,
                "There is no folder %s, so nothing was removed; another lab's is named with --dir.",
                dir);
    return 0;
}

static int lab_cmd_status(struct cli *cli, int argc, char **argv, GError **error)
{
    const char *dir = take_dir(&argc, argv, error);
    if (dir == NULL || !cli_expect(argc, argv, 0, "lab status [--dir DIR]", error))
        return -1;
    json_autoptr status = lab_status(dir, error);
    if (status == NULL)
        return -1;
    if (cli->json) {
        cli_print_json(status);
        return 0;
    }
    json_autoptr rows = json_array();
    size_t i, j;
    const json_t *node, *daemon;
    json_array_foreach(json_object_get(status, "nodes"), i, node) {
        g_autoptr(GString) daemons = g_string_new(NULL);
        json_array_foreach(json_object_get(node, "daemons"), j, daemon)
            g_string_append_printf(daemons, "%s%s:%s", j > 0 ? " " : "",
                                   json_string_value(json_object_get(daemon, "name")),
                                   json_string_value(json_object_get(daemon, "state")));
        if (port_of(node, "mond"))
            g_string_append_printf(daemons, " http://127.0.0.1:%" JSON_INTEGER_FORMAT,
                                   port_of(node, "mond"));
        if (port_of(node, "rapid"))
            g_string_append_printf(daemons, " https://127.0.0.1:%" JSON_INTEGER_FORMAT,
                                   port_of(node, "rapid"));
        json_array_append_new(
            rows,
            json_make("[[is][is][is][is][is]]", 0, json_string_value(json_object_get(node, "name")),
                      0, json_string_value(json_object_get(node, "address")), 0,
                      json_is_true(json_object_get(node, "power")) ? "on" : "off", 0,
                      json_is_true(json_object_get(node, "link")) ? "up" : "down", 0,
                      daemons->str));
    }
    const json_t *ceph = json_object_get(status, "ceph");
    if (json_is_object(ceph))
        json_array_append_new(
            rows, json_make("[[is][is][is][is][is]]", 0, "ceph", 0,
                            json_string_value(json_object_get(ceph, "address")), 0,
                            json_is_true(json_object_get(ceph, "power")) ? "on" : "off", 0, "up", 0,
                            json_is_true(json_object_get(ceph, "paused")) ? "paused" : ""));
    cli_print_rows(cli, NULL,
                   (const char *const[]){"node", "address", "power", "link", "daemons", NULL},
                   rows);
    return 0;
}

/* NODE and one of two words. */
static int two_words(int argc, char **argv, const char *usage, const char *yes, const char *no,
                     bool *ret_yes, GError **error)
{
    if (!cli_expect(argc, argv, 2, usage, error))
        return -1;
    *ret_yes = strcmp(argv[1], yes) == 0;
    if (*ret_yes || strcmp(argv[1], no) == 0)
        return 0;
    fettle_set_error(error, WRONG_INPUT, "\"%s\": must be %s or %s; usage: fettle %s", argv[1], yes,
                     no, usage);
    return -1;
}

/* The sentence, if it worked; the exit code. */
static int said(const struct cli *cli, bool ok, const char *format, ...) G_GNUC_PRINTF(3, 4);
static int said(const struct cli *cli, bool ok, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_autofree char *text = g_strdup_vprintf(format, args);
    va_end(args);
    if (ok)
        cli_say(cli, NULL, "%s", text);
    return ok ? 0 : -1;
}

static int lab_cmd_power(struct cli *cli, int argc, char **argv, GError **error)
{
    bool on;
    const char *dir = take_dir(&argc, argv, error);
    if (dir == NULL || two_words(argc, argv, "lab power NODE|ceph off|on [--dir DIR]", "on", "off",
                                 &on, error) != 0)
        return -1;
    return said(cli, lab_power(dir, argv[0], on, error), "The power of %s is %s.", argv[0],
                on ? "on" : "cut");
}

static int lab_cmd_link(struct cli *cli, int argc, char **argv, GError **error)
{
    bool up;
    const char *dir = take_dir(&argc, argv, error);
    if (dir == NULL ||
        two_words(argc, argv, "lab link NODE down|up [--dir DIR]", "up", "down", &up, error) != 0)
        return -1;
    return said(cli, lab_link(dir, argv[0], up, error), "The cable of %s is %s.", argv[0],
                up ? "plugged in" : "pulled");
}

static int signal_daemon(const struct cli *cli, int argc, char **argv, const char *usage,
                         enum lab_signal what, GError **error)
{
    static const char *const states[] = {
        [LAB_KILL] = "was killed and is started again",
        [LAB_PAUSE] = "is stopped",
        [LAB_RESUME] = "goes on",
    };
    const char *dir = take_dir(&argc, argv, error);
    bool ok = dir != NULL && cli_expect(argc, argv, 1, usage, error) &&
              lab_signal(dir, argv[0], what, error);
    return said(cli, ok, "%s %s.", ok ? argv[0] : "", states[what]);
}

static int lab_cmd_kill(struct cli *cli, int argc, char **argv, GError **error)
{
    return signal_daemon(cli, argc, argv, "lab kill DAEMON@NODE [--dir DIR]", LAB_KILL, error);
}

static int lab_cmd_pause(struct cli *cli, int argc, char **argv, GError **error)
{
    return signal_daemon(cli, argc, argv, "lab pause DAEMON@NODE|ceph [--dir DIR]", LAB_PAUSE,
                         error);
}

static int lab_cmd_resume(struct cli *cli, int argc, char **argv, GError **error)
{
    return signal_daemon(cli, argc, argv, "lab resume DAEMON@NODE|ceph [--dir DIR]", LAB_RESUME,
                         error);
}

static int lab_cmd_restart(struct cli *cli, int argc, char **argv, GError **error)
{
    const char *dir = take_dir(&argc, argv, error);
    if (dir == NULL)
        return -1;
    if (argc < 1) {
        fettle_set_error(error, WRONG_INPUT,
                         "usage: fettle lab restart DAEMON@NODE [VARIABLE=VALUE…] [--dir DIR]");
        return -1;
    }
    argv[argc] = NULL;
    return said(cli, lab_restart_with(dir, argv[0], (const char *const *)argv + 1, error),
                "%s is started again.", argv[0]);
}

static int lab_cmd_disk_fail(struct cli *cli, int argc, char **argv, GError **error)
{
    const char *dir = take_dir(&argc, argv, error);
    bool ok = dir != NULL && cli_expect(argc, argv, 1, "lab disk-fail NODE [--dir DIR]", error) &&
              lab_disk_shutdown(dir, argv[0], error);
    return said(cli, ok, "The disks of %s fail from now on; a power cycle mends them.",
                ok ? argv[0] : "");
}

static int lab_cmd_disk_fill(struct cli *cli, int argc, char **argv, GError **error)
{
    guint leave = 0;
    const char *dir = take_dir(&argc, argv, error);
    bool ok = dir != NULL && take_number(&argc, argv, "--leave", 0, &leave, error) &&
              cli_expect(argc, argv, 1, "lab disk-fill NODE [--leave MIB] [--dir DIR]", error) &&
              lab_disk_fill(dir, argv[0], leave, error);
    return said(cli, ok, "The disks of %s are full.", ok ? argv[0] : "");
}

static int lab_cmd_disk_unfill(struct cli *cli, int argc, char **argv, GError **error)
{
    const char *dir = take_dir(&argc, argv, error);
    bool ok = dir != NULL && cli_expect(argc, argv, 1, "lab disk-unfill NODE [--dir DIR]", error) &&
              lab_disk_unfill(dir, argv[0], error);
    return said(cli, ok, "The disks of %s have their space back.", ok ? argv[0] : "");
}

static int state_fill(struct cli *cli, int argc, char **argv, bool full, GError **error)
{
    const char *dir = take_dir(&argc, argv, error);
    bool ok =
        dir != NULL &&
        cli_expect(argc, argv, 1,
                   full ? "lab state-fill NODE [--dir DIR]" : "lab state-unfill NODE [--dir DIR]",
                   error) &&
        lab_state_fill(dir, argv[0], full, error);
    return full ? said(cli, ok, "The disk with the state of %s is full.", ok ? argv[0] : "")
                : said(cli, ok, "The disk with the state of %s has its space back.",
                       ok ? argv[0] : "");
}

static int lab_cmd_state_fill(struct cli *cli, int argc, char **argv, GError **error)
{
    return state_fill(cli, argc, argv, true, error);
}

static int lab_cmd_state_unfill(struct cli *cli, int argc, char **argv, GError **error)
{
    return state_fill(cli, argc, argv, false, error);
}

static int lab_cmd_state_readonly(struct cli *cli, int argc, char **argv, GError **error)
{
    const char *dir = take_dir(&argc, argv, error);
    bool ok = dir != NULL &&
              cli_expect(argc, argv, 1, "lab state-readonly NODE [--dir DIR]", error) &&
              lab_state_read_only(dir, argv[0], error);
    return said(cli, ok,
                "The disk with the state of %s is read-only from now on; a power cycle mends it.",
                ok ? argv[0] : "");
}

static int lab_cmd_shared(struct cli *cli, int argc, char **argv, GError **error)
{
    static const struct {
        const char *word, *said;
    } ways[] = {
        [LAB_SHARED_OK] = {"ok", "is as it should be"},
        [LAB_SHARED_FULL] = {"full", "is full"},
        [LAB_SHARED_READ_ONLY] = {"read-only", "can only be read"},
        [LAB_SHARED_HANGS] = {"hang", "hangs: whoever writes to it waits"},
    };
    static const char usage[] = "lab shared full|read-only|hang|ok [--dir DIR]";
    const char *dir = take_dir(&argc, argv, error);
    if (!dir || !cli_expect(argc, argv, 1, usage, error))
        return -1;
    for (guint i = 0; i < G_N_ELEMENTS(ways); i++)
        if (strcmp(argv[0], ways[i].word) == 0)
            return said(cli, lab_shared(dir, (enum lab_shared)i, error), "The shared folder %s.",
                        ways[i].said);
    fettle_set_error(error, WRONG_INPUT,
                     "\"%s\": must be full, read-only, hang or ok; usage: fettle %s", argv[0],
                     usage);
    return -1;
}

static int lab_cmd_exec(struct cli *cli, int argc, char **argv, GError **error)
{
    const char *dir = take_dir(&argc, argv, error);
    if (dir == NULL)
        return -1;
    if (argc < 3 || strcmp(argv[1], "--") != 0) {
        fettle_set_error(error, WRONG_INPUT,
                         "usage: fettle lab exec NODE|switch [--dir DIR] -- COMMAND…");
        return -1;
    }
    lab_exec(dir, argv[0], (const char *const *)argv + 2, error);
    return -1;
}

const struct command lab_commands[] = {
    {"lab", "up",
     "[--nodes N] [--candidates N] [--engine sqlite|etcd] [--ipv6] [--ceph] [--root-mib MIB] "
     "[--disks-mib MIB] [--replica-lost-ms MS] "
     "[--watcher-interval-ms "
     "MS] [--no-init] "
     "[--dir DIR]",
     "Build a lab: nodes are network namespaces with disks of their own.", lab_cmd_up},
    {"lab", "down", "[--dir DIR]", "Remove every trace of the lab.", lab_cmd_down},
    {"lab", "status", "[--dir DIR]", "Show nodes, power, links and daemons.", lab_cmd_status},
    {"lab", "power", "NODE|ceph off|on [--dir DIR]", "Cut a node's power, or give it back.",
     lab_cmd_power},
    {"lab", "link", "NODE down|up [--dir DIR]", "Unplug a node's cable, or plug it in.",
     lab_cmd_link},
    {"lab", "kill", "DAEMON@NODE [--dir DIR]", "Kill a daemon; it is started again.", lab_cmd_kill},
    {"lab", "pause", "DAEMON@NODE|ceph [--dir DIR]", "Stop a daemon with SIGSTOP.", lab_cmd_pause},
    {"lab", "resume", "DAEMON@NODE|ceph [--dir DIR]", "Let a stopped daemon go on.",
     lab_cmd_resume},
    {"lab", "restart", "DAEMON@NODE [VAR=VALUE…] [--dir DIR]",
     "Restart a daemon, once with these variables; +VAR=VALUE: later starts have it too.",
     lab_cmd_restart},
    {"lab", "exec", "NODE|switch [--dir DIR] -- COMMAND…",
     "Run a command in the network of a node, or of the switch between them.", lab_cmd_exec},
    {"lab", "disk-fail", "NODE [--dir DIR]", "Let a node's disks fail; a power cycle mends them.",
     lab_cmd_disk_fail},
    {"lab", "disk-fill", "NODE [--leave MIB] [--dir DIR]", "Fill a node's disks.",
     lab_cmd_disk_fill},
    {"lab", "disk-unfill", "NODE [--dir DIR]", "Give the space back.", lab_cmd_disk_unfill},
    {"lab", "state-fill", "NODE [--dir DIR]", "Fill the disk with the state of a node's daemons.",
     lab_cmd_state_fill},
    {"lab", "state-unfill", "NODE [--dir DIR]", "Give that space back.", lab_cmd_state_unfill},
    {"lab", "state-readonly", "NODE [--dir DIR]",
     "Let that disk go read-only, as after an error; a power cycle mends it.",
     lab_cmd_state_readonly},
    {"lab", "shared", "full|read-only|hang|ok [--dir DIR]",
     "Break the folder that all nodes share in one of these ways, or mend it.", lab_cmd_shared},
    {0},
};
