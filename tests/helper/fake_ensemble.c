/* See fake_ensemble.h. */
#include "helper/fake_ensemble.h"

#include <string.h>

static struct fake_ensemble *fake_of(struct ensemble *ensemble)
{
    return (struct fake_ensemble *)ensemble;
}

static void free_json(void *data)
{
    json_decref(data);
}

static void free_member(void *data)
{
    struct ensemble_member *member = data;
    g_free(member->peer_url);
    g_free(member);
}

static bool may(struct fake_ensemble *fake, GError **error)
{
    if (fake->pass > 0) {
        fake->pass--;
        return true;
    }
    if (fake->fail == 0)
        return true;
    fake->fail--;
    fettle_set_error(error, UNREACHABLE, "no member answers");
    return false;
}

static struct engine_config *config_read(struct ensemble *ensemble, GError **error)
{
    const struct fake_ensemble *fake = fake_of(ensemble);
    return *fake->config ? engine_config_copy(*fake->config) : engine_config_sqlite();
}

static void take_object(const char *kind, const char *key, guint64 version, json_t *object,
                        void *data)
{
    struct fake_ensemble *fake = data;
    g_hash_table_replace(fake->objects, g_strdup_printf("%s %s", kind, key),
                         json_make("{s:I,s:O}", "version", (json_int_t)version, "object", object));
}

static void take_id(const char *commit_id, guint64 serial, void *data)
{
    struct fake_ensemble *fake = data;
    g_hash_table_replace(fake->ids, g_strdup(commit_id), GUINT_TO_POINTER((guint)serial));
}

static bool fill(struct ensemble *ensemble, const struct engine_config *config,
                 const struct ensemble_content *content, GError **error)
{
    struct fake_ensemble *fake = fake_of(ensemble);
    if (!may(fake, error))
        return false;
    g_string_append(fake->did, " fill");
    g_hash_table_remove_all(fake->objects);
    g_hash_table_remove_all(fake->ids);
    content->objects(take_object, fake, content->source);
    content->ids(take_id, fake, content->source);
    if (fake->fill_ms > 0 && !env_sleep(fake->env, fake->fill_ms)) {
        fettle_set_error(error, KILLED, "the process has ended");
        return false;
    }
    fake->history = content->history;
    fake->serial = content->serial;
    fake->epoch = content->epoch;
    return true;
}

static GPtrArray *list(struct ensemble *ensemble, const struct engine_config *config,
                       GError **error)
{
    struct fake_ensemble *fake = fake_of(ensemble);
    if (!may(fake, error))
        return NULL;
    GPtrArray *copies = g_ptr_array_new_with_free_func(free_member);
    for (guint i = 0; i < fake->members->len; i++) {
        const struct ensemble_member *member = fake->members->pdata[i];
        struct ensemble_member *copy = g_new(struct ensemble_member, 1);
        *copy = *member;
        copy->peer_url = g_strdup(member->peer_url);
        g_ptr_array_add(copies, copy);
    }
    return copies;
}

static struct ensemble_member *find(struct fake_ensemble *fake, guint64 id)
{
    for (guint i = 0; i < fake->members->len; i++) {
        struct ensemble_member *member = fake->members->pdata[i];
        if (member->id == id)
            return member;
    }
    return NULL;
}

static bool add(struct ensemble *ensemble, const struct engine_config *config, const char *peer_url,
                GError **error)
{
    struct fake_ensemble *fake = fake_of(ensemble);
    if (!may(fake, error))
        return false;
    if (fake->dead != 0 && find(fake, fake->dead) != NULL) {
        fettle_set_error(error, TEMPORARY, "unhealthy cluster");
        return false;
    }
    g_string_append_printf(fake->did, " add %s", peer_url);
    fake_ensemble_put(fake, 100 + fake->members->len, peer_url, false, true);
    return true;
}

static bool promote(struct ensemble *ensemble, const struct engine_config *config, guint64 id,
                    GError **error)
{
    struct fake_ensemble *fake = fake_of(ensemble);
    struct ensemble_member *member = find(fake, id);
    if (!may(fake, error))
        return false;
    g_assert_nonnull(member);
    g_string_append_printf(fake->did, " promote %" G_GUINT64_FORMAT, id);
    member->learner = false;
    return true;
}

static bool remove_member(struct ensemble *ensemble, const struct engine_config *config, guint64 id,
                          GError **error)
{
    struct fake_ensemble *fake = fake_of(ensemble);
    if (!may(fake, error))
        return false;
    g_string_append_printf(fake->did, " remove %" G_GUINT64_FORMAT, id);
    g_ptr_array_remove(fake->members, find(fake, id));
    return true;
}

static bool survey(struct ensemble *ensemble, const struct engine_config *config,
                   struct ensemble_seen *ret_seen, enum etcd_verdict *ret_verdict, GError **error)
{
    struct fake_ensemble *fake = fake_of(ensemble);
    guint count = config->members->len;
    g_autofree struct etcd_content *contents = g_new0(struct etcd_content, count);
    if (!may(fake, error))
        return false;
    for (guint i = 0; i < count; i++) {
        bool answers = !g_ascii_isupper(fake->letters[i]);
        contents[i] = (struct etcd_content){.known = answers && fake->letters[i] != '.',
                                            .hash = (guint64)fake->letters[i]};
        ret_seen[i] = (struct ensemble_seen){.healthy = answers, .lists = answers};
    }
    *ret_verdict = etcd_contents_judge(contents, count);
    for (guint i = 0; i < count; i++)
        ret_seen[i].content = contents[i];
    return true;
}

static bool compare(struct ensemble *ensemble, const struct engine_config *config, char **ret_odd,
                    GError **error)
{
    struct fake_ensemble *fake = fake_of(ensemble);
    if (!may(fake, error))
        return false;
    fake->compared++;
    *ret_odd = g_strdup(fake->odd);
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

struct fake_ensemble *fake_ensemble_new(const struct env *env, struct engine_config *const *config)
{
    struct fake_ensemble *fake = g_new0(struct fake_ensemble, 1);
    fake->base.ops = &ops;
    fake->env = env;
    fake->config = config;
    fake->objects = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, free_json);
    fake->ids = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    fake->members = g_ptr_array_new_with_free_func(free_member);
    fake->did = g_string_new(NULL);
    return fake;
}

void fake_ensemble_free(struct fake_ensemble *fake)
{
    g_hash_table_unref(fake->objects);
    g_hash_table_unref(fake->ids);
    g_ptr_array_unref(fake->members);
    g_string_free(fake->did, TRUE);
    g_free(fake);
}

void fake_ensemble_put(struct fake_ensemble *fake, guint64 id, const char *peer_url, bool started,
                       bool learner)
{
    struct ensemble_member *member = g_new(struct ensemble_member, 1);
    *member = (struct ensemble_member){id, g_strdup(peer_url), started, learner};
    g_ptr_array_add(fake->members, member);
}
