/*
 * fettle-rapid: REST over HTTPS (docs/guide/rest.md). All thinking is core/rapi's. It is a user of
 * its own without any privilege, and in the cluster it opens LuxiD's two sockets of this node and
 * nothing else (RAP-02): on the master it serves, elsewhere it says who the master is, since LuxiD
 * does.
 */
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "core/rapi/rapi.h"
#include "core/rapi/webhooks.h"
#include "daemons/common/daemon.h"
#include "daemons/rapid/luxid_calls.h"
#include "io/crypto/crypto.h"
#include "io/http/http_server.h"
#include "io/http/post_client.h"
#include "io/http/tls_files.h"
#include "io/loop.h"
#include "io/rapid_place.h"
#include "io/real_env.h"

#define CERTIFICATE_LOOK_MS 500u /* whether it is there by now */

static struct {
    struct env *env;
    struct rapi_luxid *luxid;
    struct crypto *crypto;
    struct rapi_users *users;
    struct rapi *rapi;
    struct webhook_out *out;
    struct webhooks *webhooks;
    char *pem;             /* which file `tls` is of */
    struct tls_files *tls; /* NULL: there is no certificate yet */
    struct http_server *server;
    struct http_server *outside; /* on a socket that it was given; NULL: none */
    guint look;                  /* timer */
} rapid;

/* --- requests --- */

static void answer(struct http_answer *answer, void *data)
{
    http_exchange_answer(data, answer);
}

static void serve(struct http_exchange *exchange, void *data)
{
    rapi_serve(rapid.rapi, http_exchange_request(exchange), answer, exchange);
}

static void complain(const char *line, void *data)
{
    log_warning("", "%s", line);
}

/* --- its certificate --- */

/* The operator's, if there is one; else the one that the node has for it. */
static char *find_pem(void)
{
    const struct node_paths *paths = real_env_paths(rapid.env);
    g_autofree char *given = rapid_pem_path(paths);
    return access(given, F_OK) == 0 ? g_steal_pointer(&given) : rapid_own_pem_path(paths);
}

/* Whether there is another one to show. */
static bool look_at_certificate(GError **error)
{
    g_autofree char *pem = find_pem();
    if (rapid.tls && g_str_equal(pem, rapid.pem))
        return tls_files_look(rapid.tls, error);
    struct tls_files *tls = access(pem, F_OK) == 0 ? tls_files_open(pem, "", error) : NULL;
    if (!tls)
        return false;
    g_clear_pointer(&rapid.tls, tls_files_free);
    rapid.tls = tls;
    g_free(rapid.pem);
    rapid.pem = g_steal_pointer(&pem);
    return true;
}

/* Whoever has renewed it need not start anything anew. */
static void arrives(void *data)
{
    g_autoptr(GError) error = NULL;
    if (look_at_certificate(&error)) {
        http_server_renew(rapid.server, tls_files_certificate(rapid.tls));
        if (rapid.outside)
            http_server_renew(rapid.outside, tls_files_certificate(rapid.tls));
        log_info("", "new connections are shown another certificate: %s", rapid.pem);
    } else if (error) {
        log_warning("", "the certificate has changed, and the one before is shown on: %s",
                    error->message);
    }
}

/* --- listening --- */

static struct http_server *listen_at(const char *address, int fd, GError **error)
{
    static const struct http_server_events events = {
        .arrives = arrives, .serve = serve, .complain = complain};
    const struct http_server_options options = {
        .address = address,
        .port = (guint)real_env_config(rapid.env)->rapid_port,
        .fd = fd,
        .settings = "rapid_address and rapid_port of node.json",
        .certificate = tls_files_certificate(rapid.tls)};
    return http_server_new(&options, &events, NULL, error);
}

/* On all addresses: by IPv6, which takes IPv4 along, or by that alone where the host has no other.
 */
static bool listen_there(GError **error)
{
    const char *address = real_env_config(rapid.env)->rapid_address;
    int given = http_server_given_socket();
    if (given && !(rapid.outside = listen_at("127.0.0.1", given, error)))
        return false;
    if (*address)
        rapid.server = listen_at(address, 0, error);
    else if (!(rapid.server = listen_at("::", 0, NULL)))
        rapid.server = listen_at("0.0.0.0", 0, error);
    return rapid.server;
}

/* A new node has none before a master has heard of it. */
static void look_cb(void *unused)
{
    g_autoptr(GError) error = NULL;
    rapid.look = 0;
    bool found = look_at_certificate(&error);
    if (error || (found && !listen_there(&error)))
        daemon_quit(error);
    else if (!found)
        rapid.look = loop_timer(CERTIFICATE_LOOK_MS, look_cb, NULL);
    else
        log_info("", "it listens, and shows the certificate %s", rapid.pem);
}

/* --- its end --- */

static void quit(void *unused)
{
    daemon_quit(NULL);
}

static void leave(void *unused)
{
    webhooks_stop(rapid.webhooks);
    daemon_quit(NULL);
}

/* What was delivered is put on record first, so that the next one repeats none of it. */
static void terminate(void *unused)
{
    loop_on_terminate(NULL, NULL);
    loop_timer(WEBHOOK_STOP_MS, quit, NULL);
    task_spawn(rapid.env->tasks, leave, NULL);
}

/* --- the daemon --- */

/* Its user may make nothing in folders of root's, and finds its own. */
static struct env *setup(const char *root, GError **error)
{
    const struct real_env_options options = {.folders_made = geteuid() != 0};
    g_autoptr(node_paths_t) paths = node_paths_new(root, error);
    if (!paths || (!options.folders_made && !rapid_place_make(paths, error)))
        return NULL;
    rapid.env = real_env_new(root, ROLE_RAPID, &options, error);
    if (!rapid.env)
        return NULL;
    rapid.luxid = luxid_calls_new(rapid.env);
    rapid.crypto = crypto_open_passwords();
    rapid.users = rapi_users_new(rapid.env, rapid.luxid, rapid.crypto);
    rapid.rapi = rapi_new(
        &(struct rapi_options){.env = rapid.env, .luxid = rapid.luxid, .users = rapid.users},
        error);
    rapid.out = post_client_new(NULL);
    rapid.webhooks = webhooks_new(rapid.env, rapid.luxid, rapid.out);
    return rapid.rapi ? rapid.env : NULL;
}

static bool start(GError **error)
{
    look_cb(NULL);
    webhooks_start(rapid.webhooks);
    loop_on_terminate(terminate, NULL);
    if (rapid.look)
        log_info("", "it waits for its certificate; this node makes one when it knows a master");
    return true;
}

static void stop(void)
{
    loop_timer_cancel(rapid.look);
    g_clear_pointer(&rapid.server, http_server_free);
    g_clear_pointer(&rapid.outside, http_server_free);
    g_clear_pointer(&rapid.tls, tls_files_free);
    g_clear_pointer(&rapid.pem, g_free);
    g_clear_pointer(&rapid.luxid, luxid_calls_free);
    g_clear_pointer(&rapid.rapi, rapi_free);
    g_clear_pointer(&rapid.users, rapi_users_free);
    g_clear_pointer(&rapid.env, real_env_free);
    g_clear_pointer(&rapid.crypto, crypto_close);
}

int main(int argc, char **argv)
{
    umask(0077); /* what others need is given to them by name (SAF-107) */
    static const struct daemon description = {
        .name = ROLE_RAPID,
        .summary = "REST over HTTPS, as Ganeti's RAPI.",
        .setup = setup,
        .start = start,
        .stop = stop,
    };
    return daemon_main(argc, argv, &description);
}
