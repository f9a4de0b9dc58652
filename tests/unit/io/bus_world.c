/* See bus_world.h. */
#include "bus_world.h"

#include "io/net/certs.h"

#include <glib/gstdio.h>
#include <string.h>

char *bus_ca_folder, *bus_ca_cert, *bus_ca_key;

void bus_make_authority(void)
{
    g_autoptr(GError) error = NULL;
    struct stat info;

    bus_ca_folder = g_dir_make_tmp("fettle-ca-XXXXXX", &error);
    g_assert_no_error(error);
    bus_ca_cert = g_build_filename(bus_ca_folder, "ca.crt", NULL);
    bus_ca_key = g_build_filename(bus_ca_folder, "ca.key", NULL);
    certs_make_ca(bus_ca_cert, bus_ca_key, CLUSTER, &error);
    g_assert_no_error(error);
    g_assert_cmpint(g_stat(bus_ca_key, &info), ==, 0);
    g_assert_cmpuint(info.st_mode & 0777, ==, 0600);
}

void bus_remove_authority(void)
{
    const char *argv[] = {"rm", "-rf", bus_ca_folder, NULL};

    g_spawn_sync(NULL, (char **)argv, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL, NULL, NULL, NULL,
                 NULL);
    g_free(bus_ca_folder);
    g_free(bus_ca_cert);
    g_free(bus_ca_key);
}

/* --- what the bus asks its node --- */

static void handle(struct rpc_request *request, void *data)
{
    struct host *node = data;

    node->served++;
    g_free(node->served_from);
    node->served_from =
        g_strdup_printf("%s/%s/%u", request->from_node, request->from_role, request->from_job);
    if (strcmp(request->name, "guest_reset") == 0)
        g_ptr_array_add(node->kept, request);
    else
        rpc_answer(request,
                   json_make("{s:s, s:i, s:i, s:i, s:i}", "node", node->uuid, "memory_total", 1,
                             "memory_free", 1, "disk_total", 1, "disk_free", 1));
}

static void handle_wconfd(struct rpc_request *request, void *data)
{
    struct host *node = data;

    text_set(&node->signed_by, request->signed_by ? request->signed_by : "");
    g_free(node->served_from);
    node->served_from =
        g_strdup_printf("%s/%s/%u", request->from_node, request->from_role, request->from_job);
    rpc_answer(request,
               json_make("{s:i, s:i, s:i, s:s}", "history", 1, "epoch", (int)request->stamp.epoch,
                         "serial", 3, "master_node", node->uuid));
}

static const GPtrArray *members_cb(void *data)
{
    return ((struct host *)data)->members;
}

static const char *master_cb(void *data)
{
    return ((struct host *)data)->master;
}

static bool admit_cb(const char *from, const char *role, const struct method *method,
                     struct stamp stamp, GError **error, void *data)
{
    struct host *node = data;

    if (!node->refuse_epoch)
        return true;
    fettle_set_error(error, STALE_EPOCH, "epoch %u of %s is over", (guint)stamp.epoch, from);
    return false;
}

static void master_reachable_cb(void *data)
{
    ((struct host *)data)->master_seen++;
}

static void complain_cb(const char *line, void *data)
{
    world_complain(line, ((struct host *)data)->lines);
}

/* --- nodes --- */

void host_write_certificates(struct host *node, const char *authority, const char *authority_key,
                             const char *cluster, const char *uuid)
{
    g_autofree char *cert = g_build_filename(node->paths->etc, "node.crt", NULL);
    g_autofree char *key = g_build_filename(node->paths->etc, "node.key", NULL);
    g_autofree char *ca = g_build_filename(node->paths->etc, "ca.crt", NULL);
    g_autofree char *text = NULL;
    g_autoptr(GError) error = NULL;

    certs_make_node(authority, authority_key, cluster, uuid, cert, key, &error);
    g_assert_no_error(error);
    g_assert_true(g_file_get_contents(bus_ca_cert, &text, NULL, NULL));
    g_assert_true(g_file_set_contents(ca, text, -1, NULL));
}

struct host *host_new(const char *uuid)
{
    struct host *node = g_new0(struct host, 1);
    g_autoptr(GError) error = NULL;

    node->uuid = uuid;
    node->dead_ms = PATIENT_MS;
    node->paths = world_new(uuid);
    node->config = node_config_read(node->paths, &error);
    g_assert_no_error(error);
    node->members = g_ptr_array_new_with_free_func((GDestroyNotify)member_free);
    node->lines = g_ptr_array_new_with_free_func(g_free);
    node->kept = g_ptr_array_new();
    node->master = "";
    host_write_certificates(node, bus_ca_cert, bus_ca_key, CLUSTER, uuid);
    return node;
}

struct bus_options host_options(struct host *node)
{
    return (struct bus_options){
        .paths = node->paths,
        .config = node->config,
        .ping_ms = PING_MS,
        .dead_ms = node->dead_ms,
        .handshakes = MOST_HANDSHAKES,
        .handle = handle,
        .members = members_cb,
        .master = master_cb,
        .admit = admit_cb,
        .master_reachable = master_reachable_cb,
        .complain = complain_cb,
        .data = node,
    };
}

void host_start(struct host *node)
{
    const struct bus_options options = host_options(node);
    g_autofree char *path = node_paths_socket(node->paths, ROLE_WCONFD);
    const struct rpc_server_options wconfd = {path, ROLE_WCONFD, node->uuid, handle_wconfd,
                                              NULL, complain_cb, node};
    g_autoptr(GError) error = NULL;

    node->bus = bus_new(&options, &error);
    g_assert_no_error(error);
    node->wconfd = rpc_server_new(&wconfd, &error);
    g_assert_no_error(error);
    node->job = rpc_client_new(node->paths, node->uuid, ROLE_JOB);
}

void host_stop(struct host *node)
{
    g_clear_pointer(&node->job, rpc_client_free);
    g_clear_pointer(&node->wconfd, rpc_server_free);
    g_clear_pointer(&node->bus, bus_free);
    for (guint i = 0; i < node->kept->len; i++)
        rpc_answer(node->kept->pdata[i], NULL);
    g_ptr_array_set_size(node->kept, 0);
}

void host_free(struct host *node)
{
    host_stop(node);
    world_pause(20);
    node_config_free(node->config);
    g_ptr_array_unref(node->members);
    g_ptr_array_unref(node->lines);
    g_ptr_array_unref(node->kept);
    g_free(node->served_from);
    g_free(node->signed_by);
    world_remove(node->paths);
    g_free(node);
}

void host_introduce(struct host *node, const struct host *other)
{
    struct member *member = member_new();

    g_free(member->uuid);
    g_free(member->name);
    g_free(member->address);
    member->uuid = g_strdup(other->uuid);
    member->name = g_strdup(other->config->name);
    member->address = g_strdup("127.0.0.1");
    member->port = other->config->port;
    g_ptr_array_add(node->members, member);
    if (node->bus != NULL)
        bus_members_changed(node->bus);
}

void pair_set_up(struct pair *pair, gconstpointer dead_ms)
{
    pair->a = host_new(NODE_A);
    pair->b = host_new(NODE_B);
    struct host *nodes[] = {pair->a, pair->b};
    for (int i = 0; i < 2; i++) {
        if (dead_ms)
            nodes[i]->dead_ms = GPOINTER_TO_UINT(dead_ms);
        host_start(nodes[i]);
        host_introduce(nodes[i], pair->a);
        host_introduce(nodes[i], pair->b);
    }
}

void pair_tear_down(struct pair *pair, gconstpointer unused)
{
    host_free(pair->a);
    host_free(pair->b);
}

void host_call(struct host *from, const char *to, const char *role, const char *method,
               json_t *args, struct answer *answer)
{
    const struct rpc_call call = {
        .to_node = to, .to_role = role, .method = method, .args = args, .stamp = {1, 6}, .job = 12};
    rpc_client_call(from->job, &call, answer_cb, answer);
}

void host_ask_report(struct host *from, const char *to, struct answer *answer)
{
    host_call(from, to, ROLE_NODED, "node_report", json_object(), answer);
}

json_t *host_guest_args(void)
{
    return json_make("{s:s, s:i}", "instance", NODE_C, "generation", 1);
}
