/* See places.h. */
#include "places.h"

#include "base/limits.h"
#include "io/engine_file.h"
#include "io/files.h"
#include "io/net/certs.h"
#include "world.h"

#include <glib/gstdio.h>
#include <string.h>

struct place nodes[NODES];
struct authority *authority;

/* --- nodes --- */

static void ended_cb(const char *why, void *data)
{
    struct place *node = data;
    node->ended++;
    g_free(node->why);
    node->why = g_strdup(why);
}

void places_open(struct place *node)
{
    node->members = etcd_host_new(node->paths, node->config);
    node->members->ops->set_ended(node->members, ended_cb, node);
}

static void make_node(guint index)
{
    struct place *node = &nodes[index];
    g_autoptr(GError) error = NULL;
    g_autofree char *root = g_strdup_printf("%s/m%u", world_folder(), index + 1);
    g_assert_cmpint(g_mkdir_with_parents(root, 0755), ==, 0);
    node->paths = node_paths_new(root, &error);
    g_assert_true(node_paths_make(node->paths, &error));
    node->config = node_config_new();
    g_free(node->config->node_uuid);
    g_free(node->config->name);
    g_free(node->config->cluster_uuid);
    node->config->node_uuid = g_strdup_printf("aaaaaaaa-0000-4000-8000-00000000000%u", index + 1);
    node->config->name = g_strdup_printf("node%u", index + 1);
    node->config->cluster_uuid = g_strdup(CLUSTER);
    places_open(node);
}

void places_make(void)
{
    g_autoptr(GError) error = NULL;
    for (guint i = 0; i < NODES; i++)
        make_node(i);
    g_autofree char *ca = g_build_filename(nodes[0].paths->etc, "ca.crt", NULL);
    g_autofree char *key = g_build_filename(nodes[0].paths->etc, "ca.key", NULL);
    if (!g_file_test(ca, G_FILE_TEST_EXISTS))
        g_assert_true(certs_make_ca(ca, key, CLUSTER, &error));
    g_autofree char *text = files_read_path(ca, LIMIT_PEM_CHARS, NULL, &error);
    for (guint i = 1; i < NODES; i++) {
        g_autofree char *copy = g_build_filename(nodes[i].paths->etc, "ca.crt", NULL);
        g_assert_true(files_write_path(copy, text, strlen(text), 0644, false, &error));
    }
    authority = authority_new(nodes[0].paths, "authority");
}

void places_remove(void)
{
    for (guint i = 0; i < NODES; i++) {
        g_assert_true(nodes[i].members->ops->stop(nodes[i].members, NULL));
        etcd_host_free(nodes[i].members);
        g_autofree char *root = g_strdup(nodes[i].paths->root);
        node_paths_free(nodes[i].paths);
        node_config_free(nodes[i].config);
        g_free(nodes[i].why);
        nodes[i] = (struct place){0};
        const char *argv[] = {"rm", "-rf", root, NULL};
        g_spawn_sync(NULL, (char **)argv, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL, NULL, NULL, NULL,
                     NULL);
    }
    authority_free(authority);
}

/* A configuration of the first `count` nodes, each at 127.0.0.1 with ports of its own. */
struct engine_config *places_config(guint count, guint base_port)
{
    struct engine_config *config = engine_config_new();
    config->kind = ENGINE_KIND_ETCD;
    config->state = ENGINE_PREPARING;
    g_free(config->token);
    config->token = g_strdup(TOKEN);
    for (guint i = 0; i < count; i++) {
        struct engine_member *member = engine_member_new();
        g_free(member->node);
        g_free(member->name);
        g_free(member->peer_url);
        g_free(member->client_url);
        member->node = g_strdup(nodes[i].config->node_uuid);
        member->name = g_strdup(nodes[i].config->name);
        member->peer_url = engine_url("127.0.0.1", base_port + 2 * i);
        member->client_url = engine_url("127.0.0.1", base_port + 2 * i + 1);
        g_ptr_array_add(config->members, member);
    }
    return config;
}

void places_certify(guint index)
{
    struct members *members = nodes[index].members;
    g_autofree char *member = NULL;
    g_autofree char *client = NULL;
    g_autofree char *member_crt = NULL;
    g_autofree char *client_crt = NULL;
    g_autoptr(GError) error = NULL;
    g_assert_true(members->ops->prepare(members, false, &member, &client, &error));
    g_assert_true(
        authority->ops->sign_etcd(authority, member, CLUSTER, "127.0.0.1", &member_crt, &error));
    g_assert_true(authority->ops->sign_etcd(authority, client, CLUSTER, NULL, &client_crt, &error));
    g_assert_true(members->ops->certify(members, member_crt, client_crt, "", &error));
    g_assert_no_error(error);
}

/* Founds etcd on all nodes. */
void places_found(struct engine_config *config)
{
    g_autoptr(GError) error = NULL;
    for (guint i = 0; i < config->members->len; i++) {
        struct members *members = nodes[i].members;
        places_certify(i);
        g_assert_true(members->ops->config_write(members, config, &error));
        g_assert_true(members->ops->start(members, config, MEMBER_NEW, &error));
        g_assert_no_error(error);
    }
}

struct member_status *places_ask(guint index)
{
    struct member_status *status = member_status_new();
    g_assert_true(nodes[index].members->ops->ask(nodes[index].members, status, NULL));
    return status;
}

bool places_healthy(guint index)
{
    record_autoptr(member_status) status = places_ask(index);
    return status->healthy;
}
