/* See etcd_ensemble.h. A client is made for each call: changes of members are rare. */
#include "io/etcd_ensemble.h"

#include "io/engine_file.h"
#include "io/etcd_engine.h"
#include "io/etcd_member.h"

struct etcd_ensemble {
    struct ensemble base;
    const struct node_paths *paths;
    char *node_uuid;
};

struct etcd_client *etcd_ensemble_client(const struct node_paths *paths, const char *node_uuid,
                                         const struct engine_config *config, GError **error)
{
    g_autofree char *authority = engine_file_authority(paths);
    g_autofree char *certificate = engine_file_certificate(paths, ENGINE_FILE_CLIENT);
    g_autofree char *key = engine_file_key(paths, ENGINE_FILE_CLIENT);
    g_auto(GStrv) urls = engine_client_urls(config, node_uuid);
    const struct etcd_options options = {
        .urls = (const char *const *)urls, .ca = authority, .certificate = certificate, .key = key};
    return etcd_client_new(&options, error);
}

static struct etcd_client *make_client(struct ensemble *base, const struct engine_config *config,
                                       GError **error)
{
    const struct etcd_ensemble *ensemble = (const struct etcd_ensemble *)base;
    return etcd_ensemble_client(ensemble->paths, ensemble->node_uuid, config, error);
}

static struct engine_config *config_read(struct ensemble *base, GError **error)
{
    return engine_file_read(((struct etcd_ensemble *)base)->paths, error);
}

static bool fill(struct ensemble *base, const struct engine_config *config,
                 const struct ensemble_content *content, GError **error)
{
    const struct etcd_import import = {.history = content->history,
                                       .serial = content->serial,
                                       .epoch_base = content->epoch,
                                       .next = ((struct etcd_ensemble *)base)->node_uuid,
                                       .objects = content->objects,
                                       .ids = content->ids,
                                       .source = content->source};
    struct etcd_client *client = make_client(base, config, error);
    bool ok = client != NULL && etcd_engine_import(client, content->cluster, &import, error);
    etcd_client_free(client);
    return ok;
}

static void free_member(void *data)
{
    struct ensemble_member *member = data;
    g_free(member->peer_url);
    g_free(member);
}

static GPtrArray *list(struct ensemble *base, const struct engine_config *config, GError **error)
{
    struct etcd_client *client = make_client(base, config, error);
    g_autoptr(GPtrArray) listed = client != NULL ? etcd_members(client, error) : NULL;
    etcd_client_free(client);
    if (listed == NULL)
        return NULL;
    GPtrArray *members = g_ptr_array_new_with_free_func(free_member);
    for (guint i = 0; i < listed->len; i++) {
        const struct etcd_listed *one = listed->pdata[i];
        struct ensemble_member *member = g_new(struct ensemble_member, 1);
        *member = (struct ensemble_member){.id = one->id,
                                           .peer_url = g_strdup(one->peer_url),
                                           .started = *one->name != '\0',
                                           .learner = one->learner};
        g_ptr_array_add(members, member);
    }
    return members;
}

static bool add(struct ensemble *base, const struct engine_config *config, const char *peer_url,
                GError **error)
{
    struct etcd_client *client = make_client(base, config, error);
    guint64 id = 0;
    bool ok = client != NULL && etcd_member_add(client, peer_url, &id, error);
    etcd_client_free(client);
    return ok;
}

static bool promote(struct ensemble *base, const struct engine_config *config, guint64 id,
                    GError **error)
{
    struct etcd_client *client = make_client(base, config, error);
    bool ok = client != NULL && etcd_member_promote(client, id, error);
    etcd_client_free(client);
    return ok;
}

static bool remove_member(struct ensemble *base, const struct engine_config *config, guint64 id,
                          GError **error)
{
    struct etcd_client *client = make_client(base, config, error);
    bool ok = client != NULL && etcd_member_remove(client, id, error);
    etcd_client_free(client);
    return ok;
}

static const struct ensemble_ops ops = {
    .config_read = config_read,
    .fill = fill,
    .list = list,
    .add = add,
    .promote = promote,
    .remove = remove_member,
};

struct ensemble *etcd_ensemble_new(const struct node_paths *paths, const char *node_uuid)
{
    struct etcd_ensemble *ensemble = g_new0(struct etcd_ensemble, 1);
    ensemble->base.ops = &ops;
    ensemble->paths = paths;
    ensemble->node_uuid = g_strdup(node_uuid);
    return &ensemble->base;
}

void etcd_ensemble_free(struct ensemble *base)
{
    struct etcd_ensemble *ensemble = (struct etcd_ensemble *)base;
    if (ensemble == NULL)
        return;
    g_free(ensemble->node_uuid);
    g_free(ensemble);
}
