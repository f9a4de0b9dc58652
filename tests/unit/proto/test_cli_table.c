/* Tests of proto/cli/cli_table.h: words and flags as opcodes, each mistake by name, help of every
 * command. */
#include "base/json.h"
#include "proto/cli/cli_table.h"

#include <string.h>

static json_t *parse(const char *line, GError **error)
{
    g_auto(GStrv) words = g_strsplit(line, " ", -1);
    /* A verb of two words is written with a unit separator in between. */
    const struct cli_command *command =
        cli_command_find(words[0], g_strdelimit(words[1], "\x1f", ' '));
    g_assert_nonnull(command);
    return cli_command_parse(command, (const char *const *)words + 2, error);
}

static void becomes(const char *line, const char *expected)
{
    g_autoptr(GError) error = NULL;
    json_autoptr opcode = parse(line, &error);
    g_assert_no_error(error);
    g_autofree char *text = json_to_text(opcode);
    g_assert_cmpstr(text, ==, expected);
}

static void refused(const char *line, const char *message)
{
    g_autoptr(GError) error = NULL;
    g_assert_null(parse(line, &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_WRONG_INPUT);
    g_assert_cmpstr(error->message, ==, message);
}

static void test_flags(void)
{
    becomes(
        "instance create web1 --disk-template mirror --disks size=64 --disks=size=128 "
        "--no-start --memory=512 --priority -5 --tags a --tags b",
        "{\"OP_ID\":\"OP_INSTANCE_CREATE\",\"disk_template\":\"mirror\",\"disks\":[{\"size\":64},"
        "{\"size\":128}],\"instance_name\":\"web1\",\"memory\":512,\"priority\":-5,\"start\":"
        "false,\"tags\":[\"a\",\"b\"]}");
    becomes("instance create --start --disk-template=diskless web1",
            "{\"OP_ID\":\"OP_INSTANCE_CREATE\",\"disk_template\":\"diskless\",\"instance_name\":"
            "\"web1\",\"start\":true}");
    becomes(
        "instance shutdown web1 --force=no --timeout 0 --dry-run",
        "{\"OP_ID\":\"OP_INSTANCE_SHUTDOWN\",\"dry_run\":true,\"force\":false,\"instance_name\":"
        "\"web1\",\"timeout\":0}");
    becomes("node modify node3 --offline yes --statement=dead",
            "{\"OP_ID\":\"OP_NODE_SET_PARAMS\",\"node_name\":\"node3\",\"offline\":\"yes\","
            "\"statement\":\"dead\"}");
    becomes("instance create a --disk-template file --disk size=10G,format=qcow2 --disks size=1.5T "
            "--net mac=auto,link=br1 --memory 2G --tag x",
            "{\"OP_ID\":\"OP_INSTANCE_CREATE\",\"disk_template\":\"file\",\"disks\":[{\"format\":"
            "\"qcow2\",\"size\":10240},{\"size\":1572864}],\"instance_name\":\"a\",\"memory\":2048,"
            "\"nics\":[{\"link\":\"br1\",\"mac\":\"auto\"}],\"tags\":[\"x\"]}");
    becomes("test delay 0.5", "{\"OP_ID\":\"OP_TEST_DELAY\",\"duration\":0.5}");
}

/* What is a list on the wire is plain words on a command line. */
static void test_plain_words(void)
{
    becomes("test delay 1 --depends 12:success,15 --priority high",
            "{\"OP_ID\":\"OP_TEST_DELAY\",\"depends\":[[12,[\"success\"]],[15,[\"success\"]]],"
            "\"duration\":1.0,\"priority\":-10}");
    becomes(
        "test delay 1 --depends 12:error+canceled,7:any --priority 3",
        "{\"OP_ID\":\"OP_TEST_DELAY\",\"depends\":[[12,[\"error\",\"canceled\"]],[7,[\"success\","
        "\"error\",\"canceled\"]]],\"duration\":1.0,\"priority\":3}");
    becomes("test delay 1 --depends [[3,[]]]",
            "{\"OP_ID\":\"OP_TEST_DELAY\",\"depends\":[[3,[]]],\"duration\":1.0}");
    g_autoptr(GError) error = NULL;
    json_autoptr opcode = parse("test delay 1 --reason upgrade", &error);
    g_assert_no_error(error);
    const json_t *reason = json_array_get(json_object_get(opcode, "reason"), 0);
    g_assert_cmpstr(json_string_value(json_array_get(reason, 0)), ==, "fettle:client");
    g_assert_cmpstr(json_string_value(json_array_get(reason, 1)), ==, "upgrade");
    g_assert_cmpint(json_integer_value(json_array_get(reason, 2)), >, 1600000000000000000);

    refused(
        "test delay 1 --depends x",
        "--depends: must be job ids, each with the states that are wanted if it is not success, "
        "such as 12,15:success+error; not \"x\"");
    refused(
        "test delay 1 --depends 12,",
        "--depends: must be job ids, each with the states that are wanted if it is not success, "
        "such as 12,15:success+error; not \"\"");
    refused(
        "test delay 1 --depends 12:done",
        "--depends: \"done\" is no state that a job ends in; it must be success, error, canceled "
        "or any");
    refused("test delay 1 --priority urgent", "--priority: must be a whole number, not \"urgent\"");
    refused("node modify node2 --offline maybe", "--offline: must be yes or no, not \"maybe\"");
    refused("instance modify web1 --memory 0",
            "--memory: must be at least 1; without the flag it stays as it is");
    refused("instance modify web1 --vcpus=0 --memory 1G",
            "--vcpus: must be at least 1; without the flag it stays as it is");
    refused("instance modify web1", "nothing to change: name at least one flag; see \"fettle "
                                    "instance modify --help\"");
    refused("instance modify web1 --reason x --priority high --kernel-path=",
            "nothing to change: name at least one flag; see \"fettle instance modify --help\"");
    refused("node modify node2",
            "nothing to change: name at least one flag; see \"fettle node modify --help\"");
    refused("network modify lan",
            "nothing to change: name at least one flag; see \"fettle network modify --help\"");
    refused("cluster modify",
            "nothing to change: name at least one flag; see \"fettle cluster modify --help\"");
    refused("node modify node2 --drained=1", "--drained: must be yes or no, not \"1\"");
}

static void test_sizes(void)
{
#define NO_SIZE ": must be a size in whole MiB, such as 512, 512M, 10G or 1T, not "
    becomes(
        "instance grow-disk a 0 1024k",
        "{\"OP_ID\":\"OP_INSTANCE_GROW_DISK\",\"amount\":1,\"disk\":0,\"instance_name\":\"a\"}");
    becomes(
        "instance grow-disk a 0 3gib",
        "{\"OP_ID\":\"OP_INSTANCE_GROW_DISK\",\"amount\":3072,\"disk\":0,\"instance_name\":\"a\"}");
    refused("instance grow-disk a 0 512K", "AMOUNT" NO_SIZE "\"512K\"");
    refused("instance grow-disk a 0 10X", "AMOUNT" NO_SIZE "\"10X\"");
    refused("instance grow-disk a 0 -1", "AMOUNT" NO_SIZE "\"-1\"");
    refused("instance grow-disk a 0 inf", "AMOUNT" NO_SIZE "\"inf\"");
    refused("instance grow-disk a 0 1e300", "AMOUNT" NO_SIZE "\"1e300\"");
    refused("instance grow-disk a 0 65T", "AMOUNT: must be at most 67108864 (MiB)");
    refused("instance create a --disk-template file --disk size=x",
            "--disk.size" NO_SIZE "\"x\"; as in --disk size=10G");
}

static void test_words(void)
{
    becomes("tag add instance web1 a b",
            "{\"OP_ID\":\"OP_TAGS_SET\",\"kind\":\"instance\",\"name\":\"web1\",\"tags\":[\"a\","
            "\"b\"]}");
    becomes("tag add cluster a b",
            "{\"OP_ID\":\"OP_TAGS_SET\",\"kind\":\"cluster\",\"tags\":[\"a\",\"b\"]}");
    becomes("node invite\x1f--withdraw host4",
            "{\"OP_ID\":\"OP_NODE_WITHDRAW_INVITATION\",\"invitation\":\"host4\"}");
    refused("node invite\x1f--withdraw",
            "INVITATION: is missing; see \"fettle node invite --withdraw --help\"");
    becomes("tag remove node n1 -- --odd -- x",
            "{\"OP_ID\":\"OP_TAGS_DEL\",\"kind\":\"node\",\"name\":\"n1\",\"tags\":[\"--odd\","
            "\"--\",\"x\"]}");
}

static void test_mistakes(void)
{
#define SEE_CREATE "; see \"fettle instance create --help\""
    refused("instance create", "INSTANCE-NAME: is missing" SEE_CREATE);
    refused("instance create web1", "--disk-template: is missing" SEE_CREATE);
    refused("instance create web1 web2 --disk-template mirror",
            "\"web2\": one word too many" SEE_CREATE);
    refused("instance create web1 --colour red", "--colour: unknown flag" SEE_CREATE);
    refused("instance create web1 --disk_template mirror",
            "--disk_template: unknown flag; did you mean --disk-template? see "
            "\"fettle instance create --help\"");
    refused("instance create web1 --no-memory",
            "--no-memory: unknown flag; did you mean --memory? see "
            "\"fettle instance create --help\"");
    refused("instance create --instance-name web1", "--instance-name: unknown flag" SEE_CREATE);
    refused("instance create web1 --OP-ID x", "--OP-ID: unknown flag" SEE_CREATE);
    refused("instance create web1 --memory", "--memory: needs a value");
    refused("instance create web1 --memory much",
            "--memory: must be a size in whole MiB, such as 512, 512M, 10G or 1T, not \"much\"");
    refused("instance create web1 --memory 0", "--memory: must be at least 1 (MiB)");
    refused("instance create web1 --memory 1 --memory 2", "--memory: is given twice");
    refused("instance create web1 --start --no-start", "--no-start: is given twice");
    refused("instance create web1 --no-start=true", "--no-start: takes no value");
    refused("instance create web1 --start=maybe", "--start: must be true or false, not \"maybe\"");
    refused(
        "instance create web1 --disk-template drbd",
        "--disk-template: must be one of diskless, mirror, file, sharedfile; drbd is mirror here");
    refused(
        "instance create web1 --disk-template plain",
        "--disk-template: must be one of diskless, mirror, file, sharedfile; plain is file here");
    refused("instance create web1 -t diskless",
            "-t: unknown flag; did you mean --disk-template? see "
            "\"fettle instance create --help\"");
    refused("instance create -t diskless web1",
            "-t: unknown flag; did you mean --disk-template? see "
            "\"fettle instance create --help\"");
    refused("instance remove web1 -f",
            "-f: unknown flag; did you mean --yes? see \"fettle instance remove --help\"");
    refused("instance startup web1 -x", "-x: unknown flag; see \"fettle instance startup --help\"");
    refused("instance create web1 --disk-template mirror --disks 64",
            "--disks: must be NAME=VALUE,..., not \"64\"; as in --disks size=10G");
    refused("instance create web1 --disk-template mirror --disks size=1 --disks size=0",
            "--disks 2: size: must be at least 1 (MiB); as in --disks size=10G");
    refused("instance create Web1",
            "INSTANCE-NAME: must be a name: 1 to 63 of a-z, 0-9, '.' and '-' "
            "(no upper case), the first a letter or digit");
    refused("tag add cluster", "TAGS: is missing; see \"fettle tag add --help\"");
    refused("tag add planet x", "KIND: must be one of cluster, nodegroup, node, instance");
    refused("cluster init c --node-name n1 --primary-ip 127.0.0.1 --dry-run",
            "--dry-run: unknown flag; see \"fettle cluster init --help\"");
    refused("test delay 1 2", "\"2\": one word too many; see \"fettle test delay --help\"");
}

/* What luxid or a job says of a field is told with the flag that was typed. */
static void explained_as(int code, const char *line, const char *message, const char *expected)
{
    g_auto(GStrv) words = g_strsplit(line, " ", -1);
    GError *error = g_error_new_literal(FETTLE_ERROR, code, message);
    cli_command_explain(cli_command_find(words[0], words[1]), (const char *const *)words + 2,
                        &error);
    g_assert_cmpstr(error->message, ==, expected);
    g_error_free(error);
}

static void explained(const char *line, const char *message, const char *expected)
{
    explained_as(FETTLE_ERROR_WRONG_INPUT, line, message, expected);
}

static void test_explained(void)
{
    explained_as(FETTLE_ERROR_ALREADY_EXISTS, "instance create a --net ip=1.2.3.4",
                 "nics[0].ip: 1.2.3.4 is taken by web (job 7)",
                 "--net: ip: 1.2.3.4 is taken by web (job 7)"); /* its form is right */
    explained("instance create a --nics mac=auto --nics mac=auto", "nics[1].mac: x",
              "--nics 2: mac: x; as in --nics mac=auto,link=br0");
    explained("instance create a --os-type tik", "os_type: image \"tik\" does not exist",
              "--os-type: image \"tik\" does not exist");
    explained("network modify lan --release 10.0.0.1", "remove_reserved_ips: no",
              "--release: no; as in --release 192.0.2.1-192.0.2.9");
    explained("cluster modify --max-running-jobs 0", "max_running_jobs: no",
              "--max-running-jobs: no");
    explained("instance startup a", "node3: it is silent", "node3: it is silent");
    explained("instance startup a", "instance \"a\" does not exist",
              "instance \"a\" does not exist");
    explained("instance startup a", "", "");
}

/* Words for several objects, of the commands that take them. */
static void test_many(void)
{
    g_autoptr(GPtrArray) names = NULL;
    g_autoptr(GError) error = NULL;
    static const char *const words[] = {"web1", "--timeout", "5", "db*", NULL};
    static const char *const long_words[] = {
        "web1", "0123456789012345678901234567890123456789012345678901234567890123", NULL};
    json_autoptr opcode =
        cli_command_parse_many(cli_command_find("instance", "shutdown"), words, &names, &error);
    g_assert_no_error(error);
    g_autofree char *all = g_strjoinv(" ", (char **)names->pdata);
    g_assert_cmpstr(all, ==, "web1 db*");
    g_assert_cmpstr(json_string_value(json_object_get(opcode, "instance_name")), ==, "web1");
    g_assert_null(cli_command_parse_many(cli_command_find("instance", "shutdown"), long_words,
                                         &names, &error));
    g_assert_cmpstr(error->message, ==, "INSTANCE-NAME: must have at most 63 characters, has 64");
    size_t count;
    const struct cli_command *table = cli_command_table(&count);
    for (size_t i = 0; i < count; i++)
        g_assert_true((cli_command_many(&table[i]) != NULL) ==
                      (strchr(table[i].words, '*') != NULL));
    refused("instance grow-disk a b", "DISK: must be a whole number, not \"b\"");
}

/* What stands for "as it is" on the wire is no value that a person can mean, of any setting. */
static void test_settings(void)
{
    const struct cli_command *modify = cli_command_find("cluster", "modify");
    for (const struct field *field = op_cluster_set_params_record.fields(); field->name; field++) {
        g_autofree char *flag = g_strdelimit(g_strconcat("--", field->name, NULL), "_", '-');
        const char *const words[] = {flag, "-1", NULL};
        g_autoptr(GError) error = NULL;
        if (g_strcmp0(field->def, "-1") != 0)
            continue;
        g_assert_null(cli_command_parse(modify, words, &error));
        g_autofree char *start = g_strconcat(flag, ": must be at least ", NULL);
        g_assert_true(g_str_has_prefix(error->message, start));
        g_assert_nonnull(record_field(&cluster_record, field->name));
    }
    static const char *const usual[][2] = {{"recovery_interval_period", "60"},
                                           {"recovery_stale_period", "600"},
                                           {"recovery_resync_count", "5"},
                                           {"recovery_resync_interval", "60"}};
    for (guint i = 0; i < G_N_ELEMENTS(usual); i++)
        g_assert_cmpstr(record_field(&cluster_record, usual[i][0])->def, ==, usual[i][1]);
    refused("cluster modify --max-running-jobs -1", "--max-running-jobs: must be at least 1");
    refused("cluster modify --recovery-stale-period -1",
            "--recovery-stale-period: must be at least 1 (s)");
    refused("cluster modify --recovery-stale-period 0",
            "--recovery-stale-period: must be at least 1 (s)");
    refused("cluster modify --recovery-stale-period 604801",
            "--recovery-stale-period: must be at most 604800 (s)");
    refused("cluster modify --recovery-interval-period 2d",
            "--recovery-interval-period: must be at most 86400 (s)");
    refused("cluster modify --recovery-stale-period x",
            "--recovery-stale-period: must be a whole number of seconds, or a time such as 90s, "
            "10m, 2h or 3d, not \"x\"");
    refused("cluster modify --recovery-resync-count x",
            "--recovery-resync-count: must be a whole number, not \"x\"");
    refused("cluster modify --recovery-rectify-unstable some",
            "--recovery-rectify-unstable: must be one of no, jobs, all, not \"some\"");
    refused("cluster modify --memory-ratio -1", "--memory-ratio: must be at least 0.1");
}

/* Help as one line, as it was before it was folded. */
static char *flattened(const char *help)
{
    GString *flat = g_string_new(NULL);
    for (; *help != '\0'; help++) {
        bool space = g_ascii_isspace(*help);
        if (!space || (flat->len > 0 && flat->str[flat->len - 1] != ' '))
            g_string_append_c(flat, space ? ' ' : *help);
    }
    return g_string_free(flat, FALSE);
}

/* No line is longer than the width, unless one word is, and nothing is told of the wire. */
static void test_help_widths(void)
{
    static const int widths[] = {60, 80};
    size_t count;
    const struct cli_command *table = cli_command_table(&count);
    for (size_t n = 0; n < count * G_N_ELEMENTS(widths); n++) {
        int width = widths[n % G_N_ELEMENTS(widths)];
        g_autofree char *help = cli_command_help(&table[n / G_N_ELEMENTS(widths)], width);
        g_auto(GStrv) lines = g_strsplit(help, "\n", -1);
        for (char **line = lines; *line != NULL; line++)
            if (g_utf8_strlen(*line, -1) > width && (width == 80 || strchr(g_strchug(*line), ' ')))
                g_error("%s %s, %d: %s", table[n / 2].noun, table[n / 2].verb, width, *line);
        g_assert_null(strstr(help, "wire"));
        g_assert_null(strstr(help, "Default: -1"));
        g_assert_null(strstr(help, "Default: 0"));
    }
}

static void test_every_command(void)
{
    size_t count;
    const struct cli_command *table = cli_command_table(&count);
    for (size_t i = 0; i < count; i++) {
        g_assert_true(cli_command_find(table[i].noun, table[i].verb) == &table[i]);
        g_assert_nonnull(opcode_find(table[i].op_id));
        g_assert_cmpstr(cli_command_doc(&table[i]), ==, opcode_find(table[i].op_id)->doc);
        g_autofree char *help = cli_command_help(&table[i], 80);
        const struct record *params = opcode_find(table[i].op_id)->params;
        g_autofree char *flat = flattened(help);
        for (const struct field *field = params->fields(); field->name != NULL; field++) {
            g_autofree char *told = record_doc(field->doc);
            bool hidden = g_str_has_prefix(told, "Accepted for Ganeti's clients");
            g_assert_true((strstr(flat, told) != NULL) != hidden);
        }
    }
    g_assert_null(cli_command_find("instance", "fly"));
}

/* What all jobs have is taken by every command, in words that people type, and told by its help;
 * what is wrong with it is said before a word that is missing. */
static void test_common_flags(void)
{
    static const struct {
        const char *word, *message;
    } mistakes[] = {
        {"--priority=soon", "--priority: must be a whole number, not \"soon\""},
        {"--depends=x", "--depends: must be job ids, each with the states that are wanted if it is "
                        "not success, such as 12,15:success+error; not \"x\""},
        {"--dry-run=maybe", "--dry-run: must be true or false, not \"maybe\""},
    };
    static const char *const shown[] = {"--[no-]dry-run", "--priority", "--reason",
                                        "--depends",      "--comment",  "--request-id"};
    size_t count;
    const struct cli_command *table = cli_command_table(&count);
    for (size_t i = 0; i < count; i++) {
        g_autofree char *help = cli_command_help(&table[i], 80);
        if (!cli_command_is_job(&table[i])) {
            g_assert_cmpstr(table[i].op_id, ==, "OP_CLUSTER_INIT");
            g_assert_null(strstr(help, "Flags of every job"));
            continue;
        }
        for (size_t n = 0; n < G_N_ELEMENTS(shown); n++)
            g_assert_nonnull(strstr(help, shown[n]));
        for (size_t n = 0; n < G_N_ELEMENTS(mistakes); n++) {
            const char *const words[] = {mistakes[n].word, NULL};
            g_autoptr(GError) error = NULL;
            g_assert_null(cli_command_parse(&table[i], words, &error));
            g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_WRONG_INPUT);
            g_assert_cmpstr(error->message, ==, mistakes[n].message);
        }
    }
}

/* What these tell in a job, for clients made for Ganeti, a command asks for without one. */
static bool only_tells(const char *opcode)
{
    static const char *const opcodes[] = {"OP_CLUSTER_VERIFY",
                                          "OP_CLUSTER_VERIFY_CONFIG",
                                          "OP_CLUSTER_VERIFY_GROUP",
                                          "OP_CLUSTER_VERIFY_DISKS",
                                          "OP_GROUP_VERIFY_DISKS",
                                          "OP_INSTANCE_QUERY_DATA",
                                          NULL};
    return g_strv_contains(opcodes, opcode);
}

/* Nothing that a job can do is out of the reach of an operator. */
static void test_every_opcode(void)
{
    size_t opcode_count, command_count;
    const struct opcode *opcodes = opcode_table(&opcode_count);
    const struct cli_command *commands = cli_command_table(&command_count);
    for (size_t i = 0; i < opcode_count; i++) {
        bool found = false;
        for (size_t n = 0; n < command_count; n++)
            found = found || strcmp(commands[n].op_id, opcodes[i].id) == 0;
        g_assert_false(found && only_tells(opcodes[i].id));
        if (!found && !only_tells(opcodes[i].id))
            g_error("cli.def: no command for %s", opcodes[i].id);
    }
}

static void test_help(void)
{
    g_autofree char *help = cli_command_help(cli_command_find("tag", "add"), 80);
    const char *start =
        "Usage: fettle tag add KIND [NAME] TAGS… [flags]\n\n"
        "Add tags to an object.\n\n"
        "  KIND                     Kind of the object. One of: cluster, nodegroup, node,\n"
        "                           instance.\n"
        "  NAME                     Name or UUID of the object; the cluster needs none.\n"
        "  TAGS                     Tags. One or more.\n\n"
        "Flags:\n"
        "  --filter JSON            In place of a name: all instances that match this\n"
        "                           filter of Query (ARP-72).\n\n"
        "Flags of every job:\n"
        "  --reason TEXT            ";
    g_assert_true(g_str_has_prefix(help, start));
    g_autofree char *create = cli_command_help(cli_command_find("instance", "create"), 80);
    g_assert_nonnull(strstr(create, "  --[no-]start             Start it. Default: yes.\n"));
    g_assert_nonnull(strstr(create, "  --memory SIZE            Memory (MiB). Default: 128.\n"));
    g_autofree char *flat = flattened(create);
    g_assert_nonnull(strstr(flat, "One of: diskless, mirror, file, sharedfile. Required."));
    g_autofree char *settings = cli_command_help(cli_command_find("cluster", "modify"), 80);
    g_assert_true(g_str_has_prefix(settings, "Usage: fettle cluster modify [flags]\n\nChange "
                                             "settings of the cluster.\n\nFlags:\n"));
}

/* That flag of the line is that number of the opcode. */
static void accepted(const char *line, const char *field, json_int_t number)
{
    g_autoptr(GError) error = NULL;
    json_autoptr opcode = parse(line, &error);
    g_assert_no_error(error);
    g_assert_cmpint(json_integer_value(json_object_get(opcode, field)), ==, number);
}

/* Times in the words of people: of how long, and of when. */
static void test_times(void)
{
    accepted("instance shutdown a --timeout 2m", "timeout", 120);
    accepted("instance shutdown a --timeout 90", "timeout", 90);
    accepted("instance migrate a --downtime-ms 1.5s", "downtime_ms", 1500);
    accepted("node invite n --primary-ip 1 --secret-hash "
             "0000000000000000000000000000000000000000000000000000000000000000 --expires-s 1d",
             "expires_s", 86400);
    accepted("cluster modify --job-archive-age-s 1w", "job_archive_age_s", 604800);
    accepted("cluster modify --recovery-stale-period 10m", "recovery_stale_period", 600);
    accepted("instance modify a --memory 2G", "memory", 2048);
    accepted("node advise n --author me --until 1800000000", "until", 1800000000);
    refused(
        "instance shutdown a --timeout soon",
        "--timeout: must be a whole number of seconds, or a time such as 90s, 10m, 2h or 3d, not "
        "\"soon\"");
    refused(
        "instance shutdown a --timeout 1500ms",
        "--timeout: must be a whole number of seconds, or a time such as 90s, 10m, 2h or 3d, not "
        "\"1500ms\"");
    refused("instance shutdown a --timeout 2d", "--timeout: must be at most 86400");
    refused("instance migrate a --downtime-ms x",
            "--downtime-ms: must be a whole number of milliseconds, or a time such as 300ms, 10s "
            "or 5m, "
            "not \"x\"");
    refused("node advise n --author me --until tomorrow",
            "--until: must be a time from now on, such as 2h or 3d, or a date such as 2026-12-01 "
            "or \"2026-12-01 08:00\", not \"tomorrow\"");
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/cli_table/flags", test_flags);
    g_test_add_func("/cli_table/plain-words", test_plain_words);
    g_test_add_func("/cli_table/sizes", test_sizes);
    g_test_add_func("/cli_table/words", test_words);
    g_test_add_func("/cli_table/mistakes", test_mistakes);
    g_test_add_func("/cli_table/every-command", test_every_command);
    g_test_add_func("/cli_table/common-flags", test_common_flags);
    g_test_add_func("/cli_table/every-opcode", test_every_opcode);
    g_test_add_func("/cli_table/help", test_help);
    g_test_add_func("/cli_table/help-widths", test_help_widths);
    g_test_add_func("/cli_table/times", test_times);
    g_test_add_func("/cli_table/explained", test_explained);
    g_test_add_func("/cli_table/many", test_many);
    g_test_add_func("/cli_table/settings#RCV-43", test_settings);
    return g_test_run();
}
