/*
 * `fettle confd QUERY`: asks the ConfD of all candidates at once and shows the newest answer. It
 * needs no daemon of this host and no master: the candidates are those that the host was told of,
 * or those named by --candidates; the key is that of var/confd.key, or named by --key.
 */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

#include "cli/foreign.h"
#include "io/files.h"
#include "io/net/confd_client.h"

static const char *const verbs[] = {
#define CONFD(number, name, verb, usage, doc) [number] = verb,
#include "proto/confd.def"
#undef CONFD
};

static const char *const usages[] = {
#define CONFD(number, name, verb, usage, doc) [number] = usage,
#include "proto/confd.def"
#undef CONFD
};

struct asking {
    GPtrArray *candidates;
    struct confd_key *key;
    guint timeout_ms;
};

/* --- whom, and with what --- */

static bool take_timeout(const char *text, guint *ret_ms, GError **error)
{
    guint64 ms = CONFD_WAIT_MS;
    if (text && !g_ascii_string_to_unsigned(text, 10, 1, LIMIT_WAIT_S * 1000, &ms, NULL)) {
        fettle_set_error(error, WRONG_INPUT,
                         "--timeout-ms: \"%s\" is no number of milliseconds from 1 to %d", text,
                         LIMIT_WAIT_S * 1000);
        return false;
    }
    *ret_ms = (guint)ms;
    return true;
}

static bool prepare(struct asking *asking, struct cli *cli, int *argc, char **argv, GError **error)
{
    g_autoptr(GError) bad = NULL;
    const char *named = cli_take_option(argc, argv, "--candidates", &bad);
    const char *key = bad ? NULL : cli_take_option(argc, argv, "--key", &bad);
    const char *timeout = bad ? NULL : cli_take_option(argc, argv, "--timeout-ms", &bad);
    if (bad) {
        g_propagate_error(error, g_steal_pointer(&bad));
        return false;
    }
    if (!take_timeout(timeout, &asking->timeout_ms, error))
        return false;
    cli_join_lab(cli);
    g_autoptr(node_paths_t) paths = node_paths_new(cli->root, error);
    if (!paths)
        return false;
    g_autofree char *usual = g_build_filename(paths->var, "confd.key", NULL);
    asking->candidates =
        named ? confd_candidates_parse(named, error) : confd_candidates_known(paths, error);
    asking->key = asking->candidates ? confd_key_read(key ? key : usual, error) : NULL;
    return asking->key != NULL;
}

static void asking_clear(struct asking *asking)
{
    g_clear_pointer(&asking->candidates, g_ptr_array_unref);
    g_clear_pointer(&asking->key, confd_key_free);
}

/* --- what --- */

static bool expect_words(enum confd_type type, int argc, char **argv, int least, int most,
                         GError **error)
{
    for (int i = 0; i < argc; i++)
        if (argv[i][0] == '-') {
            fettle_set_error(error, WRONG_INPUT, "unknown flag \"%s\"; usage: fettle confd %s %s",
                             argv[i], verbs[type], usages[type]);
            return false;
        }
    if (argc >= least && argc <= most)
        return true;
    fettle_set_error(error, WRONG_INPUT, "usage: fettle confd %s%s%s", verbs[type],
                     *usages[type] ? " " : "", usages[type]);
    return false;
}

static json_t *fields_query(int argc, char **argv, GError **error)
{
    json_autoptr list = json_array();
    for (int i = 0; i < argc; i++) {
        guint64 number;
        if (!g_ascii_string_to_unsigned(argv[i], 10, 0, CONFD_FIELD_COUNT - 1, &number, NULL)) {
            fettle_set_error(error, WRONG_INPUT,
                             "\"%s\" is no field of the master: 0 name, 1 address of the cluster, "
                             "2 address of the node",
                             argv[i]);
            return NULL;
        }
        json_array_append_new(list, json_integer((json_int_t)number));
    }
    return argc == 0 ? json_null() : json_make("{sO}", "3", list);
}

static json_t *addresses_query(const char *link, int argc, char **argv)
{
    json_t *list = json_array();
    for (int i = 0; i < argc; i++)
        json_array_append_new(list, json_string(argv[i]));
    json_t *query = json_make("{so}", "2", list);
    if (link)
        json_object_set_new(query, "0", json_string(link));
    return query;
}

static json_t *word_query(enum confd_type type, int argc, char **argv, int least, int most,
                          GError **error)
{
    if (!expect_words(type, argc, argv, least, most, error))
        return NULL;
    return argc > 0 ? json_string(argv[0]) : json_null();
}

static json_t *make_query(enum confd_type type, int *argc, char **argv, GError **error)
{
    g_autoptr(GError) bad = NULL;
    const char *link = NULL;
    switch (type) {
    case CONFD_TYPE_cluster_master:
        return expect_words(type, *argc, argv, 0, CONFD_FIELD_COUNT, error)
                   ? fields_query(*argc, argv, error)
                   : NULL;
    case CONFD_TYPE_node_by_instance_ip:
        link = cli_take_option(argc, argv, "--link", &bad);
        if (bad) {
            g_propagate_error(error, g_steal_pointer(&bad));
            return NULL;
        }
        return expect_words(type, *argc, argv, 1, LIMIT_CONFD_ADDRESSES, error)
                   ? addresses_query(link, *argc, argv)
                   : NULL;
    case CONFD_TYPE_instance_ips:
        return word_query(type, *argc, argv, 0, 1, error);
    case CONFD_TYPE_node_role:
    case CONFD_TYPE_node_drbd:
    case CONFD_TYPE_node_instances:
    case CONFD_TYPE_instance_disks:
    case CONFD_TYPE_config:
        return word_query(type, *argc, argv, 1, 1, error);
    case CONFD_TYPE_ping:
    case CONFD_TYPE_node_ips:
    case CONFD_TYPE_candidate_ips:
    case CONFD_TYPE_data_collectors:
    default:
        return word_query(type, *argc, argv, 0, 0, error);
    }
}

/* --- showing --- */

static const char *name_of(const struct confd_candidate *candidate)
{
    return *candidate->name ? candidate->name : candidate->address;
}

static json_t *describe_heard(const struct confd_heard *heard)
{
    json_t *object =
        json_make("{ss ss sI sb}", "name", heard->from->name, "address", heard->from->address,
                  "port", (json_int_t)heard->from->port, "answered", heard->answered);
    if (heard->answered) {
        json_object_set_new(object, "serial", json_integer((json_int_t)heard->reply.serial));
        json_object_set_new(object, "took_us", json_integer(heard->took_us));
    } else {
        json_object_set_new(object, "why", json_string(heard->why));
    }
    return object;
}

static void show_json(const struct confd_heard *newest, const GPtrArray *heard)
{
    json_autoptr list = json_array();
    for (guint i = 0; i < heard->len; i++)
        json_array_append_new(list, describe_heard(heard->pdata[i]));
    json_autoptr document = json_make("{sO sI ss sO}", "answer", newest->reply.answer, "serial",
                                      (json_int_t)newest->reply.serial, "from",
                                      name_of(newest->from), "candidates", list);
    cli_print_json(document);
}

static void show_text(const struct confd_heard *newest, const GPtrArray *heard)
{
    g_autofree char *silent = confd_silent_text(heard);
    const json_t *answer = newest->reply.answer;
    if (json_is_string(answer))
        printf("%s\n", json_string_value(answer));
    else
        cli_print_json(answer);
    fprintf(stderr, "From %s, serial %" G_GUINT64_FORMAT ".\n", name_of(newest->from),
            newest->reply.serial);
    if (*silent)
        fprintf(stderr, "Not heard: %s.\n", silent);
}

/* The answer is a refusal. */
static void set_refusal(const struct confd_heard *newest, GError **error)
{
    const json_t *answer = newest->reply.answer;
    const char *text = json_string_value(answer);
    bool unknown = json_is_integer(answer) && json_integer_value(answer) == CONFD_UNKNOWN_ENTRY;
    if (!text)
        text = unknown ? "there is no such entry" : "the query is none that it understands";
    if (unknown || strstr(text, "ECodeNoEnt"))
        fettle_set_error(error, UNKNOWN_ENTITY, "%s (serial %" G_GUINT64_FORMAT "): %s",
                         name_of(newest->from), newest->reply.serial, text);
    else
        fettle_set_error(error, WRONG_INPUT, "%s (serial %" G_GUINT64_FORMAT "): %s",
                         name_of(newest->from), newest->reply.serial, text);
}

static int show(const struct cli *cli, const GPtrArray *heard, guint timeout_ms, GError **error)
{
    const struct confd_heard *newest = confd_newest(heard);
    if (!newest) {
        g_autofree char *silent = confd_silent_text(heard);
        fettle_set_error(error, UNREACHABLE, "no candidate has answered within %u ms: %s",
                         timeout_ms, silent);
        return -1;
    }
    if (newest->reply.status != CONFD_OK) {
        set_refusal(newest, error);
        return -1;
    }
    if (cli->json)
        show_json(newest, heard);
    else
        show_text(newest, heard);
    return 0;
}

/* --- the commands --- */

static int ask(struct cli *cli, enum confd_type type, int argc, char **argv, GError **error)
{
    struct asking asking = {0};
    int code = -1;
    bool ready = prepare(&asking, cli, &argc, argv, error);
    json_autoptr query = ready ? make_query(type, &argc, argv, error) : NULL;
    if (query) {
        g_autoptr(GPtrArray) heard =
            confd_ask(asking.candidates, asking.key, type, query, asking.timeout_ms);
        for (guint i = 0; !cli->json && i < heard->len; i++)
            foreign_show(((struct confd_heard *)heard->pdata[i])->reply.answer);
        code = show(cli, heard, asking.timeout_ms, error);
    }
    asking_clear(&asking);
    return code;
}

#define CONFD(number, name, verb, usage, doc)                                                      \
    static int ask_##name(struct cli *cli, int argc, char **argv, GError **error)                  \
    {                                                                                              \
        return ask(cli, CONFD_TYPE_##name, argc, argv, error);                                     \
    }
#include "proto/confd.def"
#undef CONFD

static void print_status(const json_t *status)
{
    const char *reason, *fault;
    json_t *dropped, *count;
    const char *address = json_string_value(json_object_get(status, "address"));
    reason = json_string_value(json_object_get(status, "why"));
    if (reason && *reason)
        printf("Does not answer: %s.\n", reason);
    else
        printf("Answers at %s port %" JSON_INTEGER_FORMAT ".\n", address ? address : "?",
               json_integer_value(json_object_get(status, "port")));
    static const char *const numbers[] = {"history", "serial", "answered", "failed"};
    for (guint i = 0; i < G_N_ELEMENTS(numbers); i++)
        printf("%-16s %" JSON_INTEGER_FORMAT "\n", numbers[i],
               json_integer_value(json_object_get(status, numbers[i])));
    dropped = json_object_get(status, "dropped");
    json_object_foreach(dropped, fault, count)
        printf("dropped, %-7s %" JSON_INTEGER_FORMAT "\n", fault, json_integer_value(count));
}

/* What fettle-rconfd of this host last wrote about itself. */
static int confd_status(struct cli *cli, int argc, char **argv, GError **error)
{
    g_autoptr(GError) why = NULL;
    size_t len = 0;
    if (!cli_expect(argc, argv, 0, "confd status", error))
        return -1;
    g_autoptr(node_paths_t) paths = node_paths_new(cli->root, error);
    if (!paths)
        return -1;
    g_autofree char *text =
        files_read(paths, FILE_RUN, "rconfd.status", LIMIT_STATE_FILE_BYTES, &len, &why);
    json_autoptr status = text ? json_parse_limited(text, len, LIMIT_STATE_FILE_BYTES, &why) : NULL;
    if (!status) {
        fettle_set_error(error, WRONG_STATE,
                         "%s/rconfd.status: %s; does fettle-rconfd run on this host?", paths->run,
                         why->message);
        return -1;
    }
    if (cli->json)
        cli_print_json(status);
    else
        print_status(status);
    return 0;
}

const struct command confd_commands[] = {
#define CONFD(number, name, verb, usage, doc) {"confd", verb, usage, doc, ask_##name},
#include "proto/confd.def"
#undef CONFD
    {"confd", "status", "", "Whether this host's ConfD answers, and what it has dropped.",
     confd_status},
    {0},
};
