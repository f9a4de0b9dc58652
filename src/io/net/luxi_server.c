/* See luxi_server.h. */
#include "io/net/luxi_server.h"
#include "base/text.h"
#include "io/loop.h"
#include "io/net/channel.h"
#include "io/net/unix_socket.h"
#include "proto/frame.h"
#include "proto/luxi.h"

#include <errno.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

struct luxi_server {
    char *path;
    enum face face;
    char *node_uuid;
    uid_t speaker;
    void (*handle)(struct rpc_request *request, void *data);
    void (*complain)(const char *line, void *data);
    void *data;
    guint patience_ms;
    struct unix_listener *listener;
    GHashTable *clients; /* set */
};

struct client {
    guint refs;                 /* the server, the request under way */
    struct luxi_server *server; /* NULL once the server or the connection has ended */
    struct channel *channel;
    char *user;                 /* NULL: unknown */
    bool speaks;                /* for others */
    struct luxi_request *asked; /* its request that is under way; NULL: none */
};

struct luxi_request {
    struct rpc_request request;
    struct client *client;
};

static void complain(struct luxi_server *server, const char *format, ...) G_GNUC_PRINTF(2, 3);

static void complain(struct luxi_server *server, const char *format, ...)
{
    va_list args;

    if (server->complain == NULL)
        return;
    va_start(args, format);
    g_autofree char *line = g_strdup_vprintf(format, args);
    va_end(args);
    server->complain(line, server->data);
}

static void client_unref(struct client *client)
{
    if (--client->refs > 0)
        return;
    channel_free(client->channel);
    g_free(client->user);
    g_free(client);
}

static void client_end(struct client *client)
{
    if (client->server == NULL)
        return;
    GHashTable *clients = client->server->clients;
    struct luxi_request *asked = client->asked;
    client->server = NULL;
    channel_close(client->channel);
    g_hash_table_remove(clients, client);
    if (asked != NULL)
        rpc_request_gone(&asked->request);
}

/* --- answers --- */

/* The next request is looked at when the answers before it have been taken, but for a little. */
static void go_on(struct client *client)
{
    if (client->asked == NULL && channel_waiting(client->channel) <= LIMIT_UNREAD_BYTES)
        channel_pause(client->channel, false);
}

static void taken_cb(struct channel *channel, void *user)
{
    go_on(user);
}

static void apologize(struct client *client, GError *too_large)
{
    g_prefix_error(&too_large,
                   "the answer is too large; ask for fewer fields, or for fewer rows by "
                   "a filter: ");
    json_autoptr apology = luxi_reply_error(too_large);
    channel_send(client->channel, apology, LIMIT_LUXI_ANSWER_BYTES, NULL, NULL);
}

static void reply(struct client *client, json_t *document)
{
    g_autoptr(GError) too_large = NULL;
    json_autoptr owned = document;

    if (channel_send(client->channel, owned, LIMIT_LUXI_ANSWER_BYTES, NULL, &too_large))
        return;
    apologize(client, too_large);
}

/* What nobody can make sense of is answered with a plain text, and the connection ends. */
static void reply_unparsed(struct client *client, const GError *error)
{
    if (client->server != NULL)
        complain(client->server, "%s: connection ended: %s", client->server->path, error->message);
    reply(client, luxi_reply_unparsed(error));
    client_end(client);
}

static void answer(struct rpc_request *request, json_t *result, const GError *error)
{
    struct client *client = ((struct luxi_request *)request)->client;

    client->asked = NULL;
    if (client->server == NULL) {
        json_decref(result);
    } else if (error != NULL && fettle_error_is(error, PROTOCOL)) {
        reply_unparsed(client, error);
    } else {
        reply(client, error != NULL ? luxi_reply_error(error) : luxi_reply_result(result));
        go_on(client);
    }
    client_unref(client);
    rpc_request_free(request);
}

/* The same for a result that is written already. */
static void answer_text(struct rpc_request *request, const char *text)
{
    struct client *client = ((struct luxi_request *)request)->client;
    const struct frame_body body = {.text = text};
    g_autoptr(GError) too_large = NULL;

    client->asked = NULL;
    if (client->server != NULL) {
        if (!channel_send_within(client->channel, LUXI_RESULT_BEFORE, &body, LUXI_RESULT_AFTER,
                                 LIMIT_LUXI_ANSWER_BYTES, NULL, &too_large))
            apologize(client, too_large);
        go_on(client);
    }
    client_unref(client);
    rpc_request_free(request);
}

/* --- requests --- */

static void watch_caller(struct rpc_request *request)
{
    channel_watch_end(((struct luxi_request *)request)->client->channel);
}

static void left_cb(struct channel *channel, void *user)
{
    struct client *client = user;

    if (client->asked != NULL)
        rpc_request_gone(&client->asked->request);
}

static bool is_rest_user(const char *whom)
{
    const size_t before = strlen(LUXI_REST_USER);
    g_autofree char *control = text_control(whom);
    return !control && g_str_has_prefix(whom, LUXI_REST_USER) && whom[before] &&
           g_utf8_strlen(whom + before, -1) <= LIMIT_RAPI_USER;
}

/* Whether it may say so, and what it says is a name of its own users. */
static bool may_be_for(const struct client *client, const char *whom, GError **error)
{
    if (!whom)
        return true;
    if (!client->speaks)
        fettle_set_error(error, PERMISSION, "user: only the REST daemon speaks for others");
    else if (!is_rest_user(whom))
        fettle_set_error(error, WRONG_INPUT,
                         "user: must be " LUXI_REST_USER "NAME, a name without control characters "
                         "of at most %d characters",
                         LIMIT_RAPI_USER);
    else
        return true;
    return false;
}

static void frame_cb(struct channel *channel, const char *data, size_t len, void *user)
{
    struct client *client = user;
    struct luxi_server *server = client->server;
    g_autoptr(GError) error = NULL;
    json_t *args = NULL;
    char *method = NULL;
    g_autofree char *whom = NULL;

    if (server == NULL)
        return;
    if (!luxi_request_parse(data, len, &method, &args, &whom, &error)) {
        reply_unparsed(client, error);
        return;
    }
    struct luxi_request *carried = g_new0(struct luxi_request, 1);
    client->refs++;
    carried->client = client;
    carried->request.name = method;
    carried->request.from_node = g_strdup(server->node_uuid);
    carried->request.from_role = g_strdup(ROLE_CLI);
    carried->request.user = g_strdup(whom ? whom : client->user);
    carried->request.is_rest = client->speaks;
    carried->request.face = server->face;
    carried->request.args = args;
    carried->request.answer = answer;
    carried->request.answer_text = answer_text;
    carried->request.watch_caller = watch_caller;
    client->asked = carried;
    channel_pause(channel, true);
    if (may_be_for(client, whom, &error))
        server->handle(&carried->request, server->data);
    else
        rpc_fail(&carried->request, error);
}

static void broken_cb(struct channel *channel, const GError *why, void *user)
{
    struct client *client = user;

    if (why != NULL && fettle_error_is(why, LIMIT)) {
        reply_unparsed(client, why);
        return;
    }
    if (why != NULL && client->server != NULL)
        complain(client->server, "%s: connection ended: %s", client->server->path, why->message);
    client_end(client);
}

static const struct channel_events channel_events = {frame_cb, broken_cb, taken_cb, left_cb};

/* --- the socket --- */

static void accepted_cb(int fd, void *data)
{
    struct luxi_server *server = data;

    if (g_hash_table_size(server->clients) >= LIMIT_CONNECTIONS) {
        complain(server, "%s: a connection is refused: there are %d already", server->path,
                 LIMIT_CONNECTIONS);
        close(fd);
        return;
    }
    struct client *client = g_new0(struct client, 1);
    client->refs = 1;
    client->server = server;
    client->speaks = unix_peer_uid(fd) == server->speaker;
    /* What the REST daemon asks for nobody is REST's, too. */
    client->user = client->speaks && server->speaker != geteuid() ? g_strdup(LUXI_REST_USER)
                                                                  : unix_peer_user(fd);
    client->channel =
        channel_new(transport_fd(fd), LIMIT_LUXI_FRAME_BYTES, &channel_events, client);
    channel_expect_reader(client->channel, server->patience_ms);
    g_hash_table_add(server->clients, client);
}

static void complain_cb(const char *line, void *data)
{
    complain(data, "%s", line);
}

static bool may_come(uid_t uid, void *data)
{
    return uid == ((const struct luxi_server *)data)->speaker;
}

static const struct unix_listener_events listener_events = {
    .accepted = accepted_cb, .may_come = may_come, .complain = complain_cb};

/* One more user reaches it. Not its group: a daemon without capabilities gives nothing away, but
 * may say who else opens what is its own. */
static bool let_in(const char *path, uid_t uid)
{
    enum { RW = ACL_READ | ACL_WRITE };
    const guint32 none = GUINT32_TO_LE((guint32)ACL_UNDEFINED_ID);
    const struct {
        struct posix_acl_xattr_header header;
        struct posix_acl_xattr_entry entries[5];
    } list = {{GUINT32_TO_LE(POSIX_ACL_XATTR_VERSION)},
              {{GUINT16_TO_LE(ACL_USER_OBJ), GUINT16_TO_LE(RW), none},
               {GUINT16_TO_LE(ACL_USER), GUINT16_TO_LE(RW), GUINT32_TO_LE(uid)},
               {GUINT16_TO_LE(ACL_GROUP_OBJ), 0, none},
               {GUINT16_TO_LE(ACL_MASK), GUINT16_TO_LE(RW), none},
               {GUINT16_TO_LE(ACL_OTHER), 0, none}}};
    return lsetxattr(path, "system.posix_acl_access", &list, sizeof list, 0) == 0;
}

/* The others are served all the same. Who comes is looked at, too. */
static void open_to_speaker(struct luxi_server *server)
{
    if (server->speaker != geteuid() && !let_in(server->path, server->speaker))
        complain(server,
                 "%s cannot be opened to the REST daemon, user %u: %s; REST does not work on this "
                 "host, all else does; its file system has to take access control lists",
                 server->path, (guint)server->speaker, g_strerror(errno));
}

static void client_drop(void *data)
{
    client_unref(data);
}

struct luxi_server *luxi_server_new(const struct luxi_server_options *options, GError **error)
{
    struct luxi_server *server = g_new0(struct luxi_server, 1);

    server->path = g_strdup(options->path);
    server->face = options->face;
    server->node_uuid = g_strdup(options->node_uuid);
    server->speaker = options->speaker;
    server->handle = options->handle;
    server->complain = options->complain;
    server->data = options->data;
    server->patience_ms = options->patience_ms > 0 ? options->patience_ms : LIMIT_SLOW_READER_MS;
    server->clients = g_hash_table_new_full(NULL, NULL, client_drop, NULL);
    server->listener = unix_listener_new(options->path, &listener_events, server, error);
    if (server->listener)
        open_to_speaker(server);
    else
        g_clear_pointer(&server, luxi_server_free);
    return server;
}

void luxi_server_free(struct luxi_server *server)
{
    GHashTableIter iter;
    void *data;

    if (server == NULL)
        return;
    unix_listener_free(server->listener); /* NULL: it has failed to begin */
    g_hash_table_iter_init(&iter, server->clients);
    while (g_hash_table_iter_next(&iter, &data, NULL)) {
        struct client *client = data;
        client->server = NULL;
        channel_close(client->channel);
    }
    g_hash_table_unref(server->clients);
    g_free(server->path);
    g_free(server->node_uuid);
    g_free(server);
}

guint luxi_server_connections(const struct luxi_server *server)
{
    return g_hash_table_size(server->clients);
}
