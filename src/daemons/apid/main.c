/*
 * fettle-apid: a front end of the API on this node (docs/design/api.md). All thinking is
 * core/api's; here it gets its cell, its identities, its secrets, and its port. It asks the
 * master's configuration daemon through this node's noded.
 */
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "core/api/api.h"
#include "daemons/apid/audit.h"
#include "daemons/common/daemon.h"
#include "daemons/common/outside.h"
#include "io/api_conf.h"
#include "io/api_place.h"
#include "io/crypto/crypto.h"
#include "io/image_pipe.h"
#include "io/real_env.h"
#include "io/sqlite/identity_store.h"

static struct {
    struct env *env;
    struct api_conf *conf;
    struct audit *audit;
    struct identity_store *identity;
    struct crypto *crypto;
    struct cell *cell;
    struct api *api;
} apid;

/* --- requests --- */

static void answer(struct http_answer *answer, void *data)
{
    http_exchange_answer(data, answer);
}

static void serve(struct http_exchange *exchange, void *data)
{
    api_serve(apid.api, http_exchange_request(exchange), answer, exchange);
}

static bool streams(const struct http_request *request, void *data)
{
    return api_wants_stream(request);
}

static void write_audit(const char *line, void *data)
{
    audit_write(apid.audit, line);
}

/* --- its parts --- */

static bool open_files(const struct node_paths *paths, GError **error)
{
    g_autofree char *log = api_audit_path(paths);
    g_autofree char *store = api_store_path(paths);
    g_autofree char *keys = api_keys_path(paths);
    apid.conf = api_conf_read(paths, error);
    apid.crypto = apid.conf ? crypto_open(keys, error) : NULL;
    apid.identity = apid.crypto ? identity_store_open(store, error) : NULL;
    apid.audit = apid.identity ? audit_open(log, apid.conf->audit_mib * 1024 * 1024, error) : NULL;
    return apid.audit;
}

static bool make_api(GError **error)
{
    apid.cell = cell_new(apid.env);
    apid.api = api_new(&(struct api_options){.env = apid.env,
                                             .cell = apid.cell,
                                             .identity = apid.identity,
                                             .crypto = apid.crypto,
                                             .images = image_pipe_nbd(),
                                             .public_url = apid.conf->public_url,
                                             .region = apid.conf->region,
                                             .address = apid.conf->listen,
                                             .audit = write_audit},
                       error);
    return apid.api;
}

static bool listen_there(GError **error)
{
    const struct api_conf *conf = apid.conf;
    const char *const certificates[] = {conf->certificate, NULL};
    return outside_open(
        &(struct outside_options){.address = conf->listen,
                                  .port = (guint)conf->port,
                                  .settings = "listen and port of apid.conf",
                                  .certificates = *conf->certificate ? certificates : NULL,
                                  .key = conf->key,
                                  .without = OUTSIDE_FAILS,
                                  .given_alone = true,
                                  .streams = streams,
                                  .serve = serve},
        error);
}

/* Its user may make nothing in folders of root's, and finds its own. */
static struct env *setup(const char *root, GError **error)
{
    static const struct api_owner nobody = {0};
    const struct real_env_options options = {.folders_made = geteuid() != 0};
    g_autoptr(node_paths_t) paths = node_paths_new(root, error);
    if (!paths || !api_place_check(paths, error) ||
        (!options.folders_made && !api_place_make(paths, &nobody, error)))
        return NULL;
    apid.env = real_env_new(root, ROLE_APID, &options, error);
    if (!apid.env || !open_files(real_env_paths(apid.env), error) || !make_api(error) ||
        !listen_there(error))
        return NULL;
    return apid.env;
}

static bool start(GError **error)
{
    cell_start(apid.cell);
    return true;
}

static void stop(void)
{
    outside_close();
    g_clear_pointer(&apid.api, api_free);
    g_clear_pointer(&apid.cell, cell_free);
    g_clear_pointer(&apid.env, real_env_free);
    g_clear_pointer(&apid.identity, identity_store_close);
    g_clear_pointer(&apid.crypto, crypto_close);
    g_clear_pointer(&apid.audit, audit_free);
    g_clear_pointer(&apid.conf, api_conf_free);
}

int main(int argc, char **argv)
{
    umask(0077); /* what others need is given to them by name (SAF-107) */
    static const struct daemon description = {
        .name = "apid",
        .summary = "The front end of the API on this node.",
        .setup = setup,
        .start = start,
        .stop = stop,
    };
    return daemon_main(argc, argv, &description);
}
