/* See etcd_side.h. */
#include "etcd_side.h"
#include "world.h"

#include "io/engine_file.h"
#include "io/files.h"
#include "io/net/certs.h"
#include "io/process.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>

char *etcd_side_path(const struct node_paths *paths, const char *name)
{
    return g_build_filename(paths->etc, name, NULL);
}

/* A session of libsoup that goes while a connection still closes, whose member was killed, says so;
 * it closes all the same. The handler holds for one test. */
static gboolean is_fatal_cb(const char *domain, GLogLevelFlags level, const char *message,
                            gpointer data)
{
    return g_strcmp0(domain, "libsoup") != 0 || strstr(message, "get_num_conns") == NULL;
}

/* --- certificates --- */

/* `name`.key and `name`.crt in etc/, by this authority. */
static void make_certificate(const struct node_paths *paths, struct authority *authority,
                             const char *name, const char *address)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *stem = etcd_side_path(paths, name);
    g_autofree char *key = g_strconcat(stem, ".key", NULL);
    g_autofree char *request = g_strconcat(stem, ".request", NULL);
    g_autofree char *crt = g_strconcat(stem, ".crt", NULL);
    g_autofree char *pem = NULL;
    char *certificate = NULL;

    g_assert_true(certs_make_key(key, &error) && certs_make_request(key, request, &error));
    pem = files_read_path(request, LIMIT_PEM_CHARS, NULL, &error);
    g_assert_no_error(error);
    g_assert_true(
        authority->ops->sign_etcd(authority, pem, CLUSTER, address, &certificate, &error));
    g_assert_no_error(error);
    g_assert_true(files_write_path(crt, certificate, strlen(certificate), 0644, false, &error));
    /* Whom all of them trust stands behind it. */
    g_autofree char *trusted = etcd_side_path(paths, "authority.crt");
    const char *issuer = strstr(certificate + 1, "-----BEGIN");
    g_assert_nonnull(issuer);
    g_assert_true(files_write_path(trusted, issuer, strlen(issuer), 0644, false, &error));
    g_free(certificate);
}

void etcd_side_certificates(const struct node_paths *paths, struct authority *authority)
{
    make_certificate(paths, authority, "member", "127.0.0.1");
    make_certificate(paths, authority, "client", NULL);
}

/* --- processes --- */

void etcd_side_init(struct etcd_side *side, const struct node_paths *paths, guint index)
{
    *side = (struct etcd_side){
        .name = g_strdup_printf("node%u", index + 1),
        .data = g_strdup_printf("%s/etcd%u", paths->var, index + 1),
        .client_url = engine_url("127.0.0.1", world_free_port()),
        .peer_url = engine_url("127.0.0.1", world_free_port()),
    };
}

static char *flag(const char *name, const char *value)
{
    return g_strdup_printf("--%s=%s", name, value);
}

static char *file_flag(const struct node_paths *paths, const char *name, const char *file)
{
    g_autofree char *path = etcd_side_path(paths, file);
    return flag(name, path);
}

static void add_tls(GPtrArray *words, const struct node_paths *paths, const char *stem)
{
    g_autofree char *crt = g_strconcat(stem, ".crt", NULL);
    g_autofree char *key = g_strconcat(stem, ".key", NULL);
    g_ptr_array_add(words, file_flag(paths, "cert-file", crt));
    g_ptr_array_add(words, file_flag(paths, "key-file", key));
    g_ptr_array_add(words, file_flag(paths, "trusted-ca-file", "authority.crt"));
    g_ptr_array_add(words, g_strdup("--client-cert-auth"));
    g_ptr_array_add(words, file_flag(paths, "peer-cert-file", crt));
    g_ptr_array_add(words, file_flag(paths, "peer-key-file", key));
    g_ptr_array_add(words, file_flag(paths, "peer-trusted-ca-file", "authority.crt"));
    g_ptr_array_add(words, g_strdup("--peer-client-cert-auth"));
    g_ptr_array_add(words, flag("peer-cert-allowed-cn", CERTS_ETCD_MEMBER));
}

void etcd_side_start(const struct node_paths *paths, struct etcd_side *sides, guint index,
                     guint count, const char *initial, const char *stem)
{
    struct etcd_side *side = &sides[index];
    g_test_log_set_fatal_handler(is_fatal_cb, NULL);
    g_autoptr(GPtrArray) words = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GString) cluster = g_string_new(NULL);
    g_autoptr(GError) error = NULL;
    for (guint i = 0; i < count; i++)
        g_string_append_printf(cluster, "%s%s=%s", i > 0 ? "," : "", sides[i].name,
                               sides[i].peer_url);
    const char *fixed[] = {"etcd",
                           "--logger=zap",
                           "--log-outputs=stderr",
                           "--heartbeat-interval=50",
                           "--election-timeout=500",
                           "--max-txn-ops=8192",
                           "--max-request-bytes=33554432"};
    for (guint i = 0; i < G_N_ELEMENTS(fixed); i++)
        g_ptr_array_add(words, g_strdup(fixed[i]));
    g_ptr_array_add(words, flag("name", side->name));
    g_ptr_array_add(words, flag("data-dir", side->data));
    g_ptr_array_add(words, flag("listen-client-urls", side->client_url));
    g_ptr_array_add(words, flag("advertise-client-urls", side->client_url));
    g_ptr_array_add(words, flag("listen-peer-urls", side->peer_url));
    g_ptr_array_add(words, flag("initial-advertise-peer-urls", side->peer_url));
    g_ptr_array_add(words, flag("initial-cluster", cluster->str));
    g_ptr_array_add(words, flag("initial-cluster-state", initial));
    add_tls(words, paths, stem);
    g_ptr_array_add(words, NULL);
    g_auto(GStrv) bound = process_bound((const char *const *)words->pdata);
    g_spawn_async(NULL, bound, NULL,
                  G_SPAWN_SEARCH_PATH | G_SPAWN_DO_NOT_REAP_CHILD | G_SPAWN_STDOUT_TO_DEV_NULL |
                      G_SPAWN_STDERR_TO_DEV_NULL,
                  NULL, NULL, &side->pid, &error);
    g_assert_no_error(error);
}

void etcd_side_stop(struct etcd_side *side)
{
    g_test_log_set_fatal_handler(is_fatal_cb, NULL);
    if (side->pid == 0)
        return;
    kill(side->pid, SIGKILL);
    waitpid(side->pid, NULL, 0);
    side->pid = 0;
}

void etcd_side_clear(struct etcd_side *side)
{
    etcd_side_stop(side);
    g_free(side->name);
    g_free(side->data);
    g_free(side->client_url);
    g_free(side->peer_url);
}

struct etcd_client *etcd_side_client(const struct node_paths *paths, const char *const *urls,
                                     const char *stem, const char *ca, guint member_ms)
{
    g_autofree char *authority = etcd_side_path(paths, ca);
    g_autofree char *base = etcd_side_path(paths, stem);
    g_autofree char *crt = g_strconcat(base, ".crt", NULL);
    g_autofree char *key = g_strconcat(base, ".key", NULL);
    g_autoptr(GError) error = NULL;
    const struct etcd_options options = {
        .urls = urls, .ca = authority, .certificate = crt, .key = key, .member_ms = member_ms};
    struct etcd_client *client = etcd_client_new(&options, &error);
    g_assert_no_error(error);
    return client;
}
