/* The command's LUXI connection; see cli.h. */
#include "cli/cli.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "cli/foreign.h"
#include "cli/interrupt.h"
#include "io/files.h"
#include "io/node_config.h"
#include "proto/frame.h"

struct luxi_client {
    int fd;
    struct frame_splitter splitter;
};

char *cli_other_master(const struct node_paths *paths)
{
    record_autoptr(node_config) config = node_config_read(paths, NULL);
    size_t len = 0;
    g_autofree char *master =
        files_read(paths, FILE_STATE, "ssconf/master_node", LIMIT_STATE_FILE_BYTES, &len, NULL);
    if (config == NULL || master == NULL || *g_strstrip(master) == '\0')
        return NULL;
    return strcmp(master, config->name) == 0
               ? g_strdup("")
               : g_strdup_printf("This is %s, and the master it last heard of is %s", config->name,
                                 master);
}

/* Where to ask instead, as far as this node's files tell. */
static char *where_else(const struct node_paths *paths)
{
    g_autofree char *lab = g_build_filename(paths->root, "lab.json", NULL);
    g_autofree char *other = cli_other_master(paths);
    if (g_file_test(lab, G_FILE_TEST_EXISTS))
        return g_strdup_printf("This is the folder of a lab: choose a node's, --root %s/node1",
                               paths->root);
    if (other == NULL)
        return g_strdup("Is this the master, and does fettle-luxid run? Another node's folder is "
                        "chosen with --root or FETTLE_ROOT");
    return *other == '\0'
               ? g_strdup("This node is the master, or was: does fettle-luxid run here? See fettle "
                          "cluster master-failover if it was lost")
               : g_strdup_printf("%s: run this there", other);
}

static guint silence_of(const struct cli *cli)
{
    return cli->silence_ms > 0 ? cli->silence_ms : LUXID_SILENCE_MS;
}

/* What a person does about a daemon that runs and stands still. */
static char *how_to_look(const struct cli *cli)
{
    g_autoptr(node_paths_t) paths = node_paths_new(cli->root, NULL);
    record_autoptr(node_config) config = paths ? node_config_read(paths, NULL) : NULL;
    if (paths && strcmp(paths->root, "/") == 0)
        return g_strdup("look at it with: systemctl status fettle-luxid; journalctl -u "
                        "fettle-luxid; and start it anew with: systemctl restart fettle-luxid");
    return g_strdup_printf("look at its log%s%s, and start it anew; in a lab: fettle lab restart "
                           "luxid@%s",
                           paths ? " below " : "", paths ? paths->root : "",
                           config ? config->name : "NODE");
}

static struct luxi_client *luxi_connect(const struct cli *cli, GError **error)
{
    g_autoptr(node_paths_t) paths = node_paths_new(cli->root, error);
    if (paths == NULL)
        return NULL;
    g_autofree char *path = node_paths_socket(paths, "luxid");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    g_strlcpy(address.sun_path, path, sizeof(address.sun_path));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    guint longest = cli->patience_ms > 0 ? cli->patience_ms : 2 * silence_of(cli);
    struct timeval patience = {longest / 1000, longest % 1000 * 1000};
    if (fd >= 0)
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0) {
        int code = errno;
        g_autofree char *hint = where_else(paths);
        if (code == EACCES)
            fettle_set_error(error, PERMISSION, "%s: permission denied; run this as root", path);
        else
            fettle_set_error(error, UNREACHABLE, "luxid does not answer at %s (%s). %s.", path,
                             g_strerror(code), hint);
        if (fd >= 0)
            close(fd);
        return NULL;
    }
    struct luxi_client *client = g_new0(struct luxi_client, 1);
    client->fd = fd;
    frame_splitter_init(&client->splitter, LIMIT_ANSWER_BYTES);
    return client;
}

void cli_disconnect(struct cli *cli)
{
    if (cli->luxi == NULL)
        return;
    close(cli->luxi->fd);
    frame_splitter_clear(&cli->luxi->splitter);
    g_clear_pointer(&cli->luxi, g_free);
}

static bool send_all(int fd, const char *data, size_t len, GError **error)
{
    while (len > 0) {
        ssize_t sent = send(fd, data, len, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0) {
            fettle_set_error(error, UNKNOWN_RESULT, "%s: %s",
                             errno == EAGAIN ? "luxid does not take a request"
                                             : "the connection to luxid broke while a request was "
                                               "sent",
                             g_strerror(errno));
            return false;
        }
        data += sent;
        len -= (size_t)sent;
    }
    return true;
}

/* What luxid answers at once, whatever else it does, on a connection of its own; what it answers
 * does not matter. */
static bool answers_others(const struct cli *cli, GError **error)
{
    struct cli other = {
        .root = cli->root, .patience_ms = silence_of(cli), .interruptible = cli->interruptible};
    g_autoptr(GError) reason = NULL;
    json_autoptr answer =
        cli_call(&other, "QueryFields", json_make("[s[s]]", "job", "id"), &reason);
    cli_disconnect(&other);
    if (fettle_error_is(reason, DETACHED))
        g_propagate_error(error, g_steal_pointer(&reason));
    return answer || !(fettle_error_is(reason, TIMEOUT) || fettle_error_is(reason, UNREACHABLE));
}

static bool set_silent(struct cli *cli, GError **error)
{
    g_autofree char *hint = how_to_look(cli);
    cli->silent = true;
    fettle_set_error(error, UNREACHABLE,
                     "fettle-luxid of this node has answered nothing for %u s, although it runs: "
                     "what was asked for may still be done when it goes on. It may be stopped or "
                     "stand still: %s. Guests and jobs that run are not touched by that",
                     2 * silence_of(cli) / 1000, hint);
    return false;
}

/* As long as luxid answers others it may take its time over this. */
static bool wait_alive(struct cli *cli, GError **error)
{
    for (;;) {
        g_autoptr(GError) interrupted = NULL;
        int silence = (int)silence_of(cli);
        enum cli_wait got = cli_wait_readable(cli->luxi->fd, silence, cli->interruptible);
        bool alive = got != CLI_WAIT_TIMEOUT || answers_others(cli, &interrupted);
        if (!alive) /* it may have answered just now */
            got = cli_wait_readable(cli->luxi->fd, 0, cli->interruptible);
        if (got == CLI_WAIT_READABLE)
            return true;
        if (!alive && got == CLI_WAIT_TIMEOUT)
            return set_silent(cli, error);
        if (got == CLI_WAIT_INTERRUPTED || interrupted) {
            fettle_set_error(error, DETACHED, "interrupted");
            return false;
        }
    }
}

/* Ctrl-C and patience end the wait for an answer, not what was asked for. */
static bool wait_for_bytes(struct cli *cli, GError **error)
{
    if (cli->patience_ms == 0)
        return wait_alive(cli, error);
    switch (cli_wait_readable(cli->luxi->fd, (int)cli->patience_ms, cli->interruptible)) {
    case CLI_WAIT_READABLE:
        return true;
    case CLI_WAIT_TIMEOUT:
        fettle_set_error(error, TIMEOUT, "luxid did not answer within %u ms", cli->patience_ms);
        return false;
    case CLI_WAIT_INTERRUPTED:
        fettle_set_error(error, DETACHED, "interrupted");
        return false;
    }
    g_assert_not_reached();
}

/* Where a list of an answer goes, whose items are taken one by one. */
struct items {
    const char *const *path;
    json_item_fn give;
    void *data;
};

static void give_shown(json_t *item, void *data)
{
    const struct items *items = data;
    foreign_show(item);
    items->give(item, items->data);
}

/* An answer of luxid; what a person is to read of it is made fit for a terminal. */
static json_t *parse(const struct cli *cli, const char *data, size_t len, const struct items *items,
                     GError **error)
{
    if (items != NULL && cli->json)
        return json_parse_items(data, len, LIMIT_ANSWER_BYTES, items->path, items->give,
                                items->data, error);
    json_t *answer = items != NULL ? json_parse_items(data, len, LIMIT_ANSWER_BYTES, items->path,
                                                      give_shown, (void *)items, error)
                                   : json_parse_limited(data, len, LIMIT_ANSWER_BYTES, error);
    if (!cli->json)
        foreign_show(answer);
    return answer;
}

static json_t *receive(struct cli *cli, const struct items *items, GError **error)
{
    struct luxi_client *client = cli->luxi;
    const char *data;
    size_t len;
    while (!frame_next(&client->splitter, &data, &len)) {
        char buffer[65536];
        if (!wait_for_bytes(cli, error))
            return NULL;
        ssize_t got = recv(client->fd, buffer, sizeof(buffer), 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            fettle_set_error(error, UNKNOWN_RESULT,
                             "luxid closed the connection before it answered. What was asked for "
                             "may have been done: "
                             "look at `fettle job list`.");
            return NULL;
        }
        if (!frame_push(&client->splitter, buffer, (size_t)got, error))
            return NULL;
    }
    return parse(cli, data, len, items, error);
}

/* {"success":false,"result":"text" or [class,[message,code…]]} as an error. */
static void set_refusal(const json_t *result, GError **error)
{
    const json_t *args = json_array_get(result, 1);
    const char *message = json_is_string(result) ? json_string_value(result)
                                                 : json_string_value(json_array_get(args, 0));
    const char *code = json_string_value(json_array_get(args, 1));
    enum fettle_error number =
        code != NULL ? fettle_error_from_name(code) : FETTLE_ERROR_WRONG_INPUT;
    g_set_error_literal(error, FETTLE_ERROR, (int)number,
                        message != NULL ? message : "luxid refused without a reason");
}

bool cli_send(struct cli *cli, const char *method, json_t *args, GError **error)
{
    json_autoptr request = json_make("{ssso}", "method", method, "args", args);
    cli->silent = false;
    if (cli->luxi == NULL && (cli->luxi = luxi_connect(cli, error)) == NULL)
        return false;
    size_t len;
    g_autofree char *frame = frame_encode(request, LIMIT_LUXI_FRAME_BYTES, &len, error);
    if (frame != NULL && send_all(cli->luxi->fd, frame, len, error))
        return true;
    cli_disconnect(cli);
    return false;
}

static json_t *receive_result(struct cli *cli, const struct items *items, GError **error)
{
    json_autoptr reply = receive(cli, items, error);
    if (reply == NULL) {
        /* A late answer would be taken for that to the next question, and none comes to a broken
         * connection. */
        cli_disconnect(cli);
        return NULL;
    }
    json_t *result = json_object_get(reply, "result");
    if (!json_is_true(json_object_get(reply, "success")) || result == NULL) {
        set_refusal(result, error);
        return NULL;
    }
    cli->answered = true;
    return json_incref(result);
}

json_t *cli_receive(struct cli *cli, GError **error)
{
    return receive_result(cli, NULL, error);
}

int cli_descriptor(const struct cli *cli)
{
    return cli->luxi->fd;
}

json_t *cli_call(struct cli *cli, const char *method, json_t *args, GError **error)
{
    return cli_send(cli, method, args, error) ? cli_receive(cli, error) : NULL;
}

static json_t *query_args(const char *what, const char *const *fields, json_t *filter)
{
    json_t *names = json_array();
    for (; *fields != NULL; fields++)
        json_array_append_new(names, json_string(*fields));
    return json_make("[soo]", what, names, filter != NULL ? filter : json_null());
}

json_t *cli_query(struct cli *cli, const char *what, const char *const *fields, json_t *filter,
                  GError **error)
{
    json_autoptr result = cli_call(cli, "Query", query_args(what, fields, filter), error);
    return result == NULL ? NULL : json_incref(json_object_get(result, "data"));
}

bool cli_query_each(struct cli *cli, const char *what, const char *const *fields, json_t *filter,
                    json_item_fn give, void *data, GError **error)
{
    static const char *const path[] = {"result", "data", NULL};
    const struct items rows = {path, give, data};
    if (!cli_send(cli, "Query", query_args(what, fields, filter), error))
        return false;
    json_autoptr result = receive_result(cli, &rows, error);
    return result != NULL;
}
