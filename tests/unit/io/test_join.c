/*
 * Joining over real TLS: a master's bus, a wconfd that answers what the test says, a real authority
 * and a new host (join.c, bus_join.c, authority.c).
 */
#include "world.h"

#include "io/files.h"
#include "io/net/authority.h"
#include "io/net/bus.h"
#include "io/net/certs.h"
#include "io/net/connection.h"
#include "io/net/join.h"
#include "io/net/rpc_server.h"

#include <gio/gio.h>
#include <glib/gstdio.h>
#include <string.h>

#define TOKEN "77777777-0000-4000-8000-000000000007"
#define SECRET "1234567890abcdef1234567890abcdef1234567890abcdef1234567890abcdef"

static struct master {
    struct node_paths *paths;
    struct node_config *config;
    struct bus *bus;
    struct rpc_server *wconfd;
    struct authority *authority;
    struct task_group *tasks;
    GPtrArray *members;
    GPtrArray *lines;
    const char *role; /* UUID of the master */
    char *fingerprint;
    guint asked;
    char node[37];            /* that the last one who asked is */
    enum fettle_error refuse; /* with this; 0: lets in */
} master;

/* --- a wconfd --- */

static json_t *make_result(const char *certificate, const char *authority)
{
    return json_make("{s:s, s:s, s:{s:s, s:s, s:s, s:s, s:i}, s:{s:i, s:i, s:s, s:s, s:i, s:[{s:s, "
                     "s:s, s:s, s:i}]}}",
                     "certificate", certificate, "authority", authority, "config", "node_uuid",
                     NODE_B, "name", "node2", "cluster_uuid", CLUSTER, "address", "127.0.0.1",
                     "port", 1811, "announcement", "history", 1, "epoch", 3, "cluster", CLUSTER,
                     "master_node", NODE_A, "serial", 9, "members", "uuid", NODE_A, "name", "node1",
                     "address", "127.0.0.1", "port", 1811);
}

static void sign_task(void *data)
{
    struct rpc_request *request = data;
    const char *pem = json_string_value(json_object_get(request->args, "request"));
    g_autoptr(GError) error = NULL;
    g_autofree char *key_hash = NULL, *certificate = NULL, *authority = NULL, *fingerprint = NULL;

    bool ok =
        master.authority->ops->read_request(master.authority, pem, &key_hash, &error) &&
        master.authority->ops->sign(master.authority, pem, CLUSTER, NODE_B, &certificate, &error) &&
        master.authority->ops->show(master.authority, &authority, &fingerprint, &error);
    g_assert_no_error(error);
    g_assert_true(ok);
    rpc_answer(request, make_result(certificate, authority));
}

static void handle_wconfd(struct rpc_request *request, void *data)
{
    master.asked++;
    g_assert_cmpstr(request->name, ==, "join");
    g_assert_cmpstr(request->from_role, ==, ROLE_JOINING);
    g_assert_cmpstr(json_string_value(json_object_get(request->args, "secret")), ==, SECRET);
    const char *node = json_string_value(json_object_get(request->args, "node"));
    g_strlcpy(master.node, node != NULL ? node : "", sizeof master.node);
    if (master.refuse != 0)
        rpc_fail_new(request, master.refuse, "token " TOKEN " is not welcome");
    else
        task_spawn(master.tasks, sign_task, request);
}

/* --- a master --- */

static void handle(struct rpc_request *request, void *data)
{
    g_assert_not_reached();
}

static const GPtrArray *members_cb(void *data)
{
    return master.members;
}

static const char *master_cb(void *data)
{
    return master.role;
}

static bool admit_cb(const char *from, const char *role, const struct method *method,
                     struct stamp stamp, GError **error, void *data)
{
    g_assert_not_reached();
}

static void complain_cb(const char *line, void *data)
{
    world_complain(line, master.lines);
}

static void make_identity(const struct node_paths *paths, const char *node, char **ret_fingerprint)
{
    g_autofree char *ca = g_build_filename(paths->etc, "ca.crt", NULL);
    g_autofree char *ca_key = g_build_filename(paths->etc, "ca.key", NULL);
    g_autofree char *cert = g_build_filename(paths->etc, "node.crt", NULL);
    g_autofree char *key = g_build_filename(paths->etc, "node.key", NULL);
    g_autoptr(GError) error = NULL;

    g_assert_true(certs_make_ca(ca, ca_key, CLUSTER, &error) &&
                  certs_make_node(ca, ca_key, CLUSTER, node, cert, key, &error));
    g_autofree char *text = files_read_path(ca, MIB(1), NULL, &error);
    *ret_fingerprint = certs_fingerprint(text, &error);
    g_assert_no_error(error);
}

static void master_start(void)
{
    g_autofree char *socket = node_paths_socket(master.paths, ROLE_WCONFD);
    const struct bus_options bus = {.paths = master.paths,
                                    .config = master.config,
                                    .handle = handle,
                                    .members = members_cb,
                                    .master = master_cb,
                                    .admit = admit_cb,
                                    .complain = complain_cb};
    const struct rpc_server_options wconfd = {.path = socket,
                                              .role = ROLE_WCONFD,
                                              .node_uuid = NODE_A,
                                              .handle = handle_wconfd,
                                              .complain = complain_cb};
    g_autoptr(GError) error = NULL;

    master.bus = bus_new(&bus, &error);
    g_assert_no_error(error);
    master.wconfd = rpc_server_new(&wconfd, &error);
    g_assert_no_error(error);
}

static void set_up(void)
{
    g_autoptr(GError) error = NULL;

    master = (struct master){.role = NODE_A};
    master.paths = world_new(NODE_A);
    master.config = node_config_read(master.paths, &error);
    g_assert_no_error(error);
    master.members = g_ptr_array_new_with_free_func((GDestroyNotify)member_free);
    master.lines = g_ptr_array_new_with_free_func(g_free);
    master.authority = authority_new(master.paths, "authority");
    master.tasks = task_group_new();
    make_identity(master.paths, NODE_A, &master.fingerprint);
    master_start();
}

static void tear_down(void)
{
    rpc_server_free(master.wconfd);
    bus_free(master.bus);
    world_pause(20);
    task_group_unref(master.tasks);
    authority_free(master.authority);
    node_config_free(master.config);
    g_ptr_array_unref(master.members);
    g_ptr_array_unref(master.lines);
    world_remove(master.paths);
    g_free(master.fingerprint);
}

/* --- a new host --- */

struct newcomer {
    char *root;
    struct node_paths *paths;
    struct invitation invitation;
    struct node_config *config;
    GError *error;
    bool new_keys, done;
};

static void newcomer_set_up(struct newcomer *host)
{
    g_autoptr(GError) error = NULL;

    *host = (struct newcomer){.root = g_dir_make_tmp("fettle-new-XXXXXX", NULL)};
    host->paths = node_paths_new(host->root, &error);
    g_assert_no_error(error);
    host->invitation = (struct invitation){.address = (char *)"127.0.0.1",
                                           .port = (guint)master.config->port,
                                           .fingerprint = master.fingerprint,
                                           .token = (char *)TOKEN,
                                           .secret = (char *)SECRET,
                                           .expires = 0};
}

static void newcomer_tear_down(struct newcomer *host)
{
    const char *argv[] = {"rm", "-rf", host->root, NULL};

    g_spawn_sync(NULL, (char **)argv, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL, NULL, NULL, NULL,
                 NULL);
    node_config_free(host->config);
    g_clear_error(&host->error);
    node_paths_free(host->paths);
    g_free(host->root);
}

static void join_task(void *data)
{
    struct newcomer *host = data;

    node_config_free(host->config);
    g_clear_error(&host->error);
    host->config = join_cluster(host->paths, &host->invitation, host->new_keys, &host->error);
    host->done = true;
}

static void join(struct newcomer *host)
{
    host->done = false;
    task_spawn(master.tasks, join_task, host);
    world_wait(&host->done);
}

static char *read_etc(const struct newcomer *host, const char *name)
{
    g_autofree char *path = g_build_filename(host->paths->etc, name, NULL);
    return files_read_path(path, MIB(1), NULL, NULL);
}

static guint count_files(const char *folder)
{
    g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
    guint count = 0;

    while (dir != NULL && g_dir_read_name(dir) != NULL)
        count++;
    return count;
}

/* --- tests --- */

static void test_joins(void)
{
    struct newcomer host;
    GStatBuf info;
    set_up();
    newcomer_set_up(&host);
    join(&host);
    g_assert_no_error(host.error);
    g_assert_cmpstr(host.config->node_uuid, ==, NODE_B);
    g_autofree char *key = g_build_filename(host.paths->etc, "node.key", NULL);
    g_assert_cmpint(g_stat(key, &info), ==, 0);
    g_assert_cmpuint(info.st_mode & 0777, ==, 0600);
    /* ca.crt, node.crt, node.key, node.json and nothing else. */
    g_assert_cmpuint(count_files(host.paths->etc), ==, 4);
    g_autofree char *state = g_build_filename(host.paths->var, "node/state.json", NULL);
    g_autofree char *text = files_read_path(state, MIB(1), NULL, NULL);
    json_autoptr json = json_parse_limited(text, strlen(text), MIB(1), NULL);
    g_assert_cmpstr(json_string_value(json_object_get(json, "master_node")), ==, NODE_A);
    /* What it got is a certificate that a bus of this cluster takes, for the key that it made. */
    g_autofree char *cert = g_build_filename(host.paths->etc, "node.crt", NULL);
    g_autoptr(GTlsCertificate) own = g_tls_certificate_new_from_files(cert, key, &host.error);
    g_assert_no_error(host.error);
    g_autofree char *cluster = NULL;
    g_autofree char *node = NULL;
    g_autofree char *subject = g_tls_certificate_get_subject_name(own);
    g_assert_true(certs_parse_subject(subject, &cluster, &node, NULL));
    g_assert_cmpstr(node, ==, NODE_B);
    g_assert_cmpstr(cluster, ==, CLUSTER);
    /* Nothing of the work is left at the authority. */
    g_autofree char *desk = g_build_filename(master.paths->run, "authority", NULL);
    g_assert_cmpuint(count_files(desk), ==, 0);

    join(&host);
    g_autofree char *already = g_strdup_printf(
        "this host is node \"node2\" of the cluster " CLUSTER
        " already; if it was removed there, move %s/node.json away first; if the keys "
        "of the cluster were renewed while it was away, add --new-keys",
        host.paths->etc);
    g_assert_cmpuint(master.asked, ==, 1);
    assert_error(&host.error, WRONG_STATE, already);
    newcomer_tear_down(&host);
    tear_down();
}

/* It was away while the keys were renewed: key and certificates are new, the rest is its own. */
static void test_new_keys(void)
{
    struct newcomer host;
    set_up();
    newcomer_set_up(&host);
    host.new_keys = true;
    join(&host);
    assert_error(&host.error, WRONG_STATE, "this host is no node yet: it joins without --new-keys");
    host.new_keys = false;
    join(&host);
    g_assert_no_error(host.error);
    g_autofree char *key = read_etc(&host, "node.key");
    g_autofree char *certificate = read_etc(&host, "node.crt");
    g_autofree char *config = read_etc(&host, "node.json");
    host.new_keys = true;
    join(&host);
    g_assert_no_error(host.error);
    g_autofree char *other_key = read_etc(&host, "node.key");
    g_autofree char *other_certificate = read_etc(&host, "node.crt");
    g_autofree char *same = read_etc(&host, "node.json");
    g_assert_cmpstr(other_key, !=, key);
    g_assert_cmpstr(other_certificate, !=, certificate);
    g_assert_cmpstr(same, ==, config);
    g_assert_cmpuint(count_files(host.paths->etc), ==, 4);
    g_assert_cmpstr(master.node, ==, NODE_B);
    newcomer_tear_down(&host);
    tear_down();
}

static void test_wrong_fingerprint(void)
{
    struct newcomer host;
    set_up();
    newcomer_set_up(&host);
    host.invitation.fingerprint = g_strnfill(64, '0');
    g_autofree char *expected =
        g_strdup_printf("127.0.0.1 port %u: the node there is of an authority with the fingerprint "
                        "%s, the token names %s: it belongs to another cluster, or its keys were "
                        "renewed since (make another token), or somebody is in between; nothing "
                        "was sent, nothing was written",
                        host.invitation.port, master.fingerprint, host.invitation.fingerprint);
    join(&host);
    assert_error(&host.error, PERMISSION, expected);
    g_assert_cmpuint(master.asked, ==, 0);
    g_assert_cmpuint(count_files(host.root), ==, 0);
    g_free(host.invitation.fingerprint);
    newcomer_tear_down(&host);
    tear_down();
}

/* The right authority is shown, but the certificate is not signed by it. */
static void test_false_chain(void)
{
    struct newcomer host;
    set_up();
    g_autofree char *ca = g_build_filename(master.paths->etc, "ca.crt", NULL);
    g_autofree char *right = files_read_path(ca, MIB(1), NULL, NULL);
    g_autofree char *other = NULL;
    rpc_server_free(master.wconfd);
    bus_free(master.bus);
    make_identity(master.paths, NODE_A, &other);
    g_assert_true(g_file_set_contents(ca, right, -1, NULL));
    master_start();
    newcomer_set_up(&host);
    join(&host);
    g_assert_nonnull(host.error);
    g_assert_cmpint(host.error->code, ==, FETTLE_ERROR_PERMISSION);
    g_assert_true(g_str_has_suffix(host.error->message, "nothing was sent, nothing was written"));
    g_assert_cmpuint(master.asked, ==, 0);
    g_assert_cmpuint(count_files(host.root), ==, 0);
    newcomer_tear_down(&host);
    tear_down();
}

static void test_refused(void)
{
    struct newcomer host;
    set_up();
    newcomer_set_up(&host);
    master.refuse = FETTLE_ERROR_WRONG_STATE;
    join(&host);
    assert_error(&host.error, WRONG_STATE, "token " TOKEN " is not welcome");
    g_assert_cmpuint(count_files(host.root), ==, 0);
    /* Not the master. */
    master.role = NODE_C;
    join(&host);
    assert_error(&host.error, UNREACHABLE, "this node is not the master");
    g_assert_cmpuint(master.asked, ==, 1);
    g_assert_cmpuint(count_files(host.root), ==, 0);
    /* Nobody there. */
    host.invitation.port = world_free_port();
    join(&host);
    g_autofree char *expected =
        g_strdup_printf("127.0.0.1 port %u: Could not connect to 127.0.0.1: Connection refused; is "
                        "the node daemon of the master running, and may this host reach it? "
                        "Nothing was changed",
                        host.invitation.port);
    assert_error(&host.error, UNREACHABLE, expected);
    g_assert_cmpuint(count_files(host.root), ==, 0);
    newcomer_tear_down(&host);
    tear_down();
}

/* The answer is lost: the key is kept, and the same one asks again. */
static void test_lost_answer(void)
{
    struct newcomer host;
    set_up();
    newcomer_set_up(&host);
    master.refuse = FETTLE_ERROR_UNKNOWN_RESULT;
    join(&host);
    assert_error(&host.error, UNKNOWN_RESULT,
                 "whether this host was let in is unknown; run the same command again: ");
    g_autofree char *kept = read_etc(&host, "join-" TOKEN ".key");
    g_assert_nonnull(kept);
    g_assert_null(read_etc(&host, "node.json"));
    master.refuse = 0;
    join(&host);
    g_assert_no_error(host.error);
    g_autofree char *key = read_etc(&host, "node.key");
    g_assert_cmpstr(key, ==, kept);
    g_assert_cmpuint(count_files(host.paths->etc), ==, 4);
    newcomer_tear_down(&host);
    tear_down();
}

/* --- what else a peer without a certificate tries --- */

struct stranger {
    struct connection *connection;
    GIOStream *stream;
    bool closed;
};

static gboolean take_any_cb(GTlsConnection *connection, GTlsCertificate *certificate,
                            GTlsCertificateFlags flags, gpointer data)
{
    return TRUE;
}

static void handshake_cb(GObject *object, GAsyncResult *result, gpointer data)
{
    struct stranger *stranger = data;
    g_autoptr(GError) error = NULL;

    g_tls_connection_handshake_finish(G_TLS_CONNECTION(object), result, &error);
    g_assert_no_error(error);
    stranger->closed = true;
}

static void closed_cb(struct connection *connection, const GError *why, void *data)
{
    ((struct stranger *)data)->closed = true;
}

static const struct connection_events stranger_events = {.closed = closed_cb};

static struct stranger *stranger_new(const char *node, const char *role)
{
    struct stranger *stranger = g_new0(struct stranger, 1);
    const struct connection_options options = {.what = "the master",
                                               .dials = true,
                                               .node = node,
                                               .role = role,
                                               .events = &stranger_events,
                                               .data = stranger};
    g_autoptr(GSocketClient) client = g_socket_client_new();
    g_autoptr(GError) error = NULL;
    g_autoptr(GSocketConnection) base = g_socket_client_connect_to_host(
        client, "127.0.0.1", (guint16)master.config->port, NULL, &error);
    g_assert_no_error(error);
    stranger->stream = g_tls_client_connection_new(G_IO_STREAM(base), NULL, &error);
    g_assert_no_error(error);
    g_signal_connect(stranger->stream, "accept-certificate", G_CALLBACK(take_any_cb), NULL);
    g_tls_connection_handshake_async(G_TLS_CONNECTION(stranger->stream), G_PRIORITY_DEFAULT, NULL,
                                     handshake_cb, stranger);
    world_wait(&stranger->closed);
    stranger->closed = false;
    stranger->connection = connection_new(&options);
    connection_use(stranger->connection, transport_stream(stranger->stream));
    g_object_unref(stranger->stream);
    return stranger;
}

static void stranger_free(struct stranger *stranger)
{
    connection_abandon(stranger->connection);
    connection_unref(stranger->connection);
    world_pause(10);
    g_free(stranger);
}

static void ask(struct stranger *stranger, const char *role, const char *method, json_t *args,
                struct answer *answer)
{
    const struct rpc_call call = {
        .to_node = NODE_LOCAL, .to_role = role, .method = method, .args = args};
    connection_call(stranger->connection, &call, 30000, answer_cb, answer);
    world_wait(&answer->done);
}

static json_t *join_args_text(const char *request)
{
    return json_make("{s:s, s:s, s:s}", "token", TOKEN, "secret", SECRET, "request", request);
}

/* Neither a node's nor a daemon's part can be played without a certificate. */
static void test_only_join(void)
{
    static const char *const roles[] = {ROLE_NODED, ROLE_WCONFD, ROLE_JOB, ROLE_CLI};
    set_up();
    for (guint i = 0; i < G_N_ELEMENTS(roles); i++) {
        struct answer answer = {0};
        struct stranger *stranger = stranger_new(NODE_A, roles[i]);
        ask(stranger, ROLE_WCONFD, "join", join_args_text("x"), &answer);
        assert_error(&answer.error, UNREACHABLE,
                     "has shown no certificate, without which a host "
                     "can only join");
        stranger_free(stranger);
    }
    static const char *const methods[] = {"cluster_status", "commit", "announce", "node_report"};
    for (guint i = 0; i < G_N_ELEMENTS(methods); i++) {
        struct answer answer = {0};
        struct stranger *stranger = stranger_new(TOKEN, ROLE_JOINING);
        ask(stranger, i < 2 ? ROLE_WCONFD : ROLE_NODED, methods[i], json_object(), &answer);
        assert_error(&answer.error, PERMISSION,
                     "a peer without a certificate may only join, as role joining");
        world_wait(&stranger->closed);
        stranger_free(stranger);
    }
    g_assert_cmpuint(master.asked, ==, 0);
    tear_down();
}

static void test_limits(void)
{
    struct stranger *many[LIMIT_JOINERS + 1];
    struct answer answer = {0};
    set_up();
    /* A second question. */
    master.refuse = FETTLE_ERROR_PERMISSION;
    struct stranger *twice = stranger_new(TOKEN, ROLE_JOINING);
    ask(twice, ROLE_WCONFD, "join", join_args_text("x"), &answer);
    assert_error(&answer.error, PERMISSION, "token " TOKEN " is not welcome");
    answer_clear(&answer);
    ask(twice, ROLE_WCONFD, "join", join_args_text("x"), &answer);
    assert_error(&answer.error, LIMIT, "a connection without a certificate has one question");
    answer_clear(&answer);
    stranger_free(twice);
    g_assert_cmpuint(master.asked, ==, 1);
    /* Too many bytes. */
    g_autofree char *long_text = g_strnfill(LIMIT_JOIN_BYTES, 'x');
    struct stranger *large = stranger_new(TOKEN, ROLE_JOINING);
    ask(large, ROLE_WCONFD, "join", join_args_text(long_text), &answer);
    g_assert_nonnull(answer.error);
    answer_clear(&answer);
    world_wait_line(master.lines, "4096");
    stranger_free(large);
    /* Too many hosts. */
    for (guint i = 0; i < G_N_ELEMENTS(many); i++)
        many[i] = stranger_new(TOKEN, ROLE_JOINING);
    world_wait_line(master.lines, "refused: too many hosts are joining already");
    world_wait(&many[LIMIT_JOINERS]->closed);
    for (guint i = 0; i < G_N_ELEMENTS(many); i++)
        stranger_free(many[i]);
    g_assert_cmpuint(master.asked, ==, 1);
    tear_down();
}

/* --- the authority alone --- */

struct signing {
    const char *request;
    char *certificate, *key_hash;
    GError *error;
    bool done;
};

static void signing_task(void *data)
{
    struct signing *signing = data;
    struct authority *authority = master.authority;

    g_clear_error(&signing->error);
    g_clear_pointer(&signing->key_hash, g_free);
    if (authority->ops->read_request(authority, signing->request, &signing->key_hash,
                                     &signing->error))
        authority->ops->sign(authority, signing->request, CLUSTER, NODE_B, &signing->certificate,
                             &signing->error);
    signing->done = true;
}

static void do_sign(struct signing *signing, const char *request)
{
    signing->request = request;
    signing->done = false;
    g_clear_pointer(&signing->certificate, g_free);
    task_spawn(master.tasks, signing_task, signing);
    world_wait(&signing->done);
}

static void test_authority(void)
{
    struct signing signing = {0};
    g_autoptr(GError) error = NULL;
    set_up();
    g_autofree char *key = g_build_filename(master.paths->etc, "other.key", NULL);
    g_autofree char *path = g_build_filename(master.paths->etc, "other.request", NULL);
    g_assert_true(certs_make_key(key, &error) && certs_make_request(key, path, &error));
    g_autofree char *request = files_read_path(path, MIB(1), NULL, &error);
    do_sign(&signing, request);
    g_assert_no_error(signing.error);
    g_autofree char *hash = g_strdup(signing.key_hash);
    do_sign(&signing, request);
    g_assert_cmpstr(signing.key_hash, ==, hash);
    do_sign(&signing, "no request");
    assert_error(&signing.error, WRONG_INPUT, "request: is no certificate request");
    /* Signed by nobody: one character of the signature is another. */
    g_autofree char *forged = g_strdup(request);
    char *end = strstr(forged, "\n-----END") - 12;
    *end = *end == 'A' ? 'B' : 'A';
    do_sign(&signing, forged);
    g_assert_nonnull(signing.error);
    g_assert_null(signing.certificate);
    g_autofree char *ca_key = g_build_filename(master.paths->etc, "ca.key", NULL);
    g_unlink(ca_key);
    do_sign(&signing, request);
    assert_error(&signing.error, STORAGE, "the key of the cluster's authority is not here");
    g_free(signing.key_hash);
    tear_down();
}

/* --- its key, on its way between candidates --- */

enum keeping_what { READ_KEY, TAKE_KEY, DROP_KEY };

struct keeping {
    enum keeping_what what;
    const char *give;
    char *key;
    GError *error;
    bool done;
};

static void keeping_task(void *data)
{
    struct keeping *keeping = data;
    struct authority *authority = master.authority;
    if (keeping->what == READ_KEY)
        authority->ops->read_key(authority, &keeping->key, &keeping->error);
    else if (keeping->what == TAKE_KEY)
        authority->ops->take_key(authority, keeping->give, &keeping->error);
    else
        authority->ops->drop_key(authority, &keeping->error);
    keeping->done = true;
}

/* The key that was read, or NULL; free with g_free(). */
static char *do_keep(struct keeping *keeping, enum keeping_what what, const char *give)
{
    g_clear_error(&keeping->error);
    keeping->what = what;
    keeping->give = give;
    keeping->key = NULL;
    keeping->done = false;
    task_spawn(master.tasks, keeping_task, keeping);
    world_wait(&keeping->done);
    return keeping->key;
}

static void test_authority_key(void)
{
    struct keeping keeping = {0};
    struct stat about;
    g_autoptr(GError) error = NULL;
    set_up();
    struct authority *authority = master.authority;
    g_autofree char *path = g_build_filename(master.paths->etc, "ca.key", NULL);
    g_autofree char *folder = g_build_filename(master.paths->run, "authority", NULL);
    g_autofree char *key = do_keep(&keeping, READ_KEY, NULL);
    g_assert_no_error(keeping.error);
    g_assert_nonnull(strstr(key, "PRIVATE KEY"));

    do_keep(&keeping, DROP_KEY, NULL);
    do_keep(&keeping, DROP_KEY, NULL); /* once more is no error */
    g_assert_no_error(keeping.error);
    g_assert_false(authority->ops->has_key(authority));
    g_assert_null(do_keep(&keeping, READ_KEY, NULL));
    assert_error(&keeping.error, STORAGE, "the key of the cluster's authority is not here: there");

    /* What does not fit is never kept, and nothing of it is said. */
    g_autofree char *other = g_build_filename(master.paths->etc, "other.key", NULL);
    g_assert_true(certs_make_key(other, &error));
    g_autofree char *wrong = files_read_path(other, LIMIT_PEM_CHARS, NULL, &error);
    do_keep(&keeping, TAKE_KEY, wrong);
    assert_error(&keeping.error, WRONG_INPUT, "the key does not fit the authority's certificate ");
    do_keep(&keeping, TAKE_KEY, "-----BEGIN PRIVATE KEY-----\nsecret\n");
    g_assert_null(strstr(keeping.error->message, "secret"));
    assert_error(&keeping.error, WRONG_INPUT,
                 "the key cannot be read, and so does not fit the authority's certificate ");
    g_assert_false(authority->ops->has_key(authority));

    do_keep(&keeping, TAKE_KEY, key);
    g_assert_no_error(keeping.error);
    g_assert_cmpint(g_stat(path, &about), ==, 0);
    g_assert_cmpint(about.st_mode & 07777, ==, 0600);
    g_autofree char *again = do_keep(&keeping, READ_KEY, NULL);
    g_assert_cmpstr(again, ==, key);

    g_assert_true(files_write_path(path, wrong, strlen(wrong), 0600, false, &error));
    g_assert_null(do_keep(&keeping, READ_KEY, NULL));
    g_assert_error(keeping.error, FETTLE_ERROR, FETTLE_ERROR_CORRUPT);
    g_clear_error(&keeping.error);
    g_autoptr(GDir) desk = g_dir_open(folder, 0, &error);
    g_assert_no_error(error);
    g_assert_null(g_dir_read_name(desk)); /* nothing of it is left */
    tear_down();
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    loop_init();
    g_test_add_func("/join-io/joins", test_joins);
    g_test_add_func("/join-io/new-keys#SAF-96", test_new_keys);
    g_test_add_func("/join-io/wrong-fingerprint", test_wrong_fingerprint);
    g_test_add_func("/join-io/false-chain", test_false_chain);
    g_test_add_func("/join-io/refused", test_refused);
    g_test_add_func("/join-io/lost-answer", test_lost_answer);
    g_test_add_func("/join-io/only-join", test_only_join);
    g_test_add_func("/join-io/limits", test_limits);
    g_test_add_func("/join-io/authority", test_authority);
    g_test_add_func("/join-io/authority-key", test_authority_key);
    return g_test_run();
}
