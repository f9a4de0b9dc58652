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
#include "daemons/common/outside.h"
#include "daemons/rapid/luxid_calls.h"
#include "io/crypto/crypto.h"
#include "io/http/http_gzip.h"
#include "io/http/post_client.h"
#include "io/loop.h"
#include "io/rapid_place.h"
#include "io/real_env.h"

static struct {
    struct env *env;
    struct rapi_luxid *luxid;
    struct crypto *crypto;
    struct rapi_users *users;
    struct rapi *rapi;
    struct webhook_out *out;
    struct webhooks *webhooks;
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

/* FETTLE_WEBHOOK_PATIENCE: for labs on a machine that has much else to do. */
static guint webhook_patience(void)
{
    const char *given = g_getenv("FETTLE_WEBHOOK_PATIENCE");
    guint64 times = 1;
    if (given)
        g_ascii_string_to_unsigned(given, 10, 1, 20, &times, NULL);
    return (guint)times;
}

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
        &(struct rapi_options){
            .env = rapid.env, .luxid = rapid.luxid, .users = rapid.users, .gzip = http_gzip},
        error);
    rapid.out = post_client_new(NULL);
    rapid.webhooks = webhooks_new(rapid.env, rapid.luxid, rapid.out);
    webhooks_be_patient(rapid.webhooks, webhook_patience());
    return rapid.rapi ? rapid.env : NULL;
}

/* Its certificate is the operator's, if there is one; else the one that the node has for it. */
static bool start(GError **error)
{
    const struct node_config *config = real_env_config(rapid.env);
    g_autofree char *given = rapid_pem_path(real_env_paths(rapid.env));
    g_autofree char *own = rapid_own_pem_path(real_env_paths(rapid.env));
    webhooks_start(rapid.webhooks);
    loop_on_terminate(terminate, NULL);
    return outside_open(
        &(struct outside_options){.address = config->rapid_address,
                                  .port = (guint)config->rapid_port,
                                  .settings = "rapid_address and rapid_port of node.json",
                                  .certificates = (const char *[]){given, own, NULL},
                                  .key = "",
                                  .without = OUTSIDE_WAITS,
                                  .serve = serve},
        error);
}

static void stop(void)
{
    outside_close();
    g_clear_pointer(&rapid.webhooks, webhooks_free);
    g_clear_pointer(&rapid.out, post_client_free);
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
