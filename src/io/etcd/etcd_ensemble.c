/* See etcd_ensemble.h. A client is made for each call: changes of members are rare. */
#include "io/etcd/etcd_ensemble.h"

#include "io/engine_file.h"
#include "io/etcd/etcd_compare.h"
#include "io/etcd/etcd_engine.h"
#include "io/etcd/etcd_member.h"

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

/* --- how they are, and whether they hold the same --- */

struct surveyed {
    struct etcd_client *client;
    guint64 revision; /* 0: it is not well */
};

static void surveyed_clear(void *data)
{
    etcd_client_free(((struct surveyed *)data)->client);
}

static struct etcd_client *client_of(const struct etcd_ensemble *ensemble,
                                     const struct engine_member *member, GError **error)
{
    record_autoptr(engine_config) alone = engine_config_new();
    g_ptr_array_add(alone->members, engine_member_copy(member));
    return etcd_ensemble_client(ensemble->paths, ensemble->node_uuid, alone, error);
}

static bool look_at(struct surveyed *one, struct ensemble_seen *seen, GError **error)
{
    record_autoptr(member_status) status = member_status_new();
    if (!etcd_member_ask(one->client, status, error))
        return false;
    g_autoptr(GPtrArray) listed = *status->id ? etcd_members(one->client, NULL) : NULL;
    one->revision = status->healthy ? status->revision : 0;
    *seen = (struct ensemble_seen){
        .healthy = status->healthy, .learner = status->learner, .lists = listed != NULL};
    return true;
}

/* All members; the newest revision that those have who are well. */
static bool look_at_all(const struct etcd_ensemble *ensemble, const struct engine_config *config,
                        GArray *all, struct ensemble_seen *seen, guint64 *ret_revision,
                        GError **error)
{
    *ret_revision = 0;
    for (guint i = 0; i < config->members->len; i++) {
        struct surveyed one = {client_of(ensemble, config->members->pdata[i], error), 0};
        if (one.client == NULL || !look_at(&one, &seen[i], error)) {
            etcd_client_free(one.client);
            return false;
        }
        if (one.revision != 0 && (*ret_revision == 0 || one.revision < *ret_revision))
            *ret_revision = one.revision;
        g_array_append_val(all, one);
    }
    return true;
}

static bool survey(struct ensemble *base, const struct engine_config *config,
                   struct ensemble_seen *ret_seen, enum etcd_verdict *ret_verdict, GError **error)
{
    const struct etcd_ensemble *ensemble = (const struct etcd_ensemble *)base;
    g_autoptr(GArray) all = g_array_new(FALSE, FALSE, sizeof(struct surveyed));
    guint64 revision;
    g_array_set_clear_func(all, surveyed_clear);
    if (!look_at_all(ensemble, config, all, ret_seen, &revision, error))
        return false;
    g_autofree struct etcd_content *contents = g_new0(struct etcd_content, all->len);
    for (guint i = 0; i < all->len; i++) {
        const struct surveyed *one = &g_array_index(all, struct surveyed, i);
        g_autoptr(GError) silent = NULL;
        if (one->revision != 0 && !etcd_content_ask(one->client, revision, &contents[i], &silent) &&
            fettle_error_is(silent, KILLED)) {
            g_propagate_error(error, g_steal_pointer(&silent));
            return false;
        }
    }
    *ret_verdict = etcd_contents_judge(contents, all->len);
    for (guint i = 0; i < all->len; i++)
        ret_seen[i].content = contents[i];
    return true;
}

static char *tell_odd(const struct engine_config *config, const struct ensemble_seen *seen,
                      enum etcd_verdict verdict)
{
    g_autoptr(GString) odd = g_string_new(NULL);
    if (verdict == ETCD_CONTENTS_SAME)
        return NULL;
    if (verdict == ETCD_CONTENTS_UNDECIDED)
        return g_strdup("what the members hold differs, and as many say the one as the other; see "
                        "fettle cluster engine status");
    for (guint i = 0; i < config->members->len; i++)
        if (seen[i].content.odd)
            g_string_append_printf(odd, "%s%s", odd->len > 0 ? ", " : "",
                                   ((const struct engine_member *)config->members->pdata[i])->name);
    return g_strdup_printf("what the member of %s holds is not what most others hold: its data is "
                           "damaged. Give it fresh data: fettle cluster engine renew %s",
                           odd->str, odd->str);
}

static bool compare(struct ensemble *base, const struct engine_config *config, char **ret_odd,
                    GError **error)
{
    g_autofree struct ensemble_seen *seen = g_new0(struct ensemble_seen, config->members->len);
    enum etcd_verdict verdict;
    if (!survey(base, config, seen, &verdict, error))
        return false;
    *ret_odd = tell_odd(config, seen, verdict);
    return true;
}

static const struct ensemble_ops ops = {
    .config_read = config_read,
    .fill = fill,
    .list = list,
    .add = add,
    .promote = promote,
    .survey = survey,
    .compare = compare,
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
