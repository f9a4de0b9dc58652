/* See fake_members.h. */
#include "helper/fake_members.h"

static struct fake_members *fake_of(struct members *members)
{
    return (struct fake_members *)members;
}

static void did(struct fake_members *fake, const char *what)
{
    g_string_append_printf(fake->did, " %s", what);
}

static void set_ended(struct members *members, void (*ended)(const char *why, void *data),
                      void *data)
{
    fake_of(members)->ended = ended;
    fake_of(members)->data_of_ended = data;
}

static struct engine_config *config_read(struct members *members, GError **error)
{
    const struct fake_members *fake = fake_of(members);
    return fake->config ? engine_config_copy(fake->config) : engine_config_sqlite();
}

static bool config_write(struct members *members, const struct engine_config *config,
                         GError **error)
{
    struct fake_members *fake = fake_of(members);
    if (config && !engine_config_check(config, error))
        return false;
    struct engine_config *copy = config ? engine_config_copy(config) : NULL;
    engine_config_free(fake->config);
    fake->config = copy;
    return true;
}

static bool prepare(struct members *members, bool anew, char **ret_member, char **ret_client,
                    GError **error)
{
    fake_of(members)->keys = true;
    if (anew)
        text_set(&fake_of(members)->next, "next");
    *ret_member = g_strdup("request of the member");
    *ret_client = g_strdup("request of the client");
    return true;
}

static bool certify(struct members *members, const char *member, const char *client,
                    const char *authority, GError **error)
{
    if (!fake_of(members)->keys) {
        fettle_set_error(error, WRONG_STATE, "the member is to be prepared first");
        return false;
    }
    fake_of(members)->certificates = true;
    text_set(&fake_of(members)->client, client);
    text_set(&fake_of(members)->authority, *authority ? authority : client);
    g_clear_pointer(&fake_of(members)->next, g_free);
    return true;
}

static bool trust(struct members *members, const char *authority, GError **error)
{
    did(fake_of(members), "trust");
    text_set(&fake_of(members)->authority, authority);
    return true;
}

static bool has_data(struct members *members)
{
    return fake_of(members)->data;
}

static bool start(struct members *members, const struct engine_config *config,
                  enum member_initial initial, GError **error)
{
    struct fake_members *fake = fake_of(members);
    did(fake, initial == MEMBER_NEW ? "start-new" : "start-existing");
    if (fake->fail_starts > 0) {
        fake->fail_starts--;
        fettle_set_error(error, ENVIRONMENT, "the program etcd is missing on this node");
        return false;
    }
    fake->running = fake->data = true;
    text_set(&fake->started_with, fake->authority);
    return true;
}

static bool adopt(struct members *members, bool *ret_running, GError **error)
{
    *ret_running = fake_of(members)->running;
    if (*ret_running)
        did(fake_of(members), "adopt");
    return true;
}

static bool running(struct members *members)
{
    return fake_of(members)->running;
}

static bool stop(struct members *members, GError **error)
{
    if (fake_of(members)->running)
        did(fake_of(members), "stop");
    fake_of(members)->running = false;
    return true;
}

static char *digest_of(const char *text)
{
    return text ? g_compute_checksum_for_string(G_CHECKSUM_SHA256, text, -1) : g_strdup("");
}

static bool ask(struct members *members, struct member_status *status, GError **error)
{
    struct fake_members *fake = fake_of(members);
    const struct member_status *says = fake->says;
    fake->asks++;
    g_autofree char *trusts = digest_of(fake->authority);
    g_autofree char *started_with = digest_of(fake->started_with);
    text_set(&status->trusts, trusts);
    text_set(&status->started_with, fake->running ? started_with : "");
    status->by_first =
        fake->authority && fake->client && g_str_has_prefix(fake->authority, fake->client);
    g_free(status->why);
    status->why = g_strdup(fake->running ? says->why : "its process does not run");
    if (!fake->running)
        return true;
    status->pid = 17;
    status->healthy = says->healthy;
    status->leads = says->leads;
    status->revision = says->revision;
    status->store_bytes = says->store_bytes;
    status->used_bytes = says->used_bytes;
    g_free(status->id);
    status->id = g_strdup(says->id);
    for (guint i = 0; i < says->alarms->len; i++)
        g_ptr_array_add(status->alarms, g_strdup(says->alarms->pdata[i]));
    return true;
}

static bool aside(struct members *members, char **ret_folder, GError **error)
{
    struct fake_members *fake = fake_of(members);
    if (fake->running) {
        fettle_set_error(error, WRONG_STATE, "the member runs");
        return false;
    }
    *ret_folder = fake->data ? g_strdup("etcd.aside-1") : NULL;
    if (fake->data)
        did(fake, "aside");
    fake->data = false;
    return true;
}

static bool forget(struct members *members, GError **error)
{
    did(fake_of(members), "forget");
    fake_of(members)->keys = fake_of(members)->certificates = false;
    return true;
}

static bool compact(struct members *members, guint64 revision, GError **error)
{
    did(fake_of(members), "compact");
    fake_of(members)->compacted = revision;
    return true;
}

static bool ask_others(struct members *members, const char *id, struct members_others *ret_others,
                       GError **error)
{
    g_assert_cmpstr(id, ==, fake_of(members)->says->id);
    *ret_others = fake_of(members)->others;
    return true;
}

static bool turn_take(struct members *members, GError **error)
{
    did(fake_of(members), "turn");
    if (fake_of(members)->others_turn)
        fettle_set_error(error, TEMPORARY, "it is the turn of node2");
    return !fake_of(members)->others_turn;
}

static void turn_give(struct members *members)
{
    did(fake_of(members), "give-turn");
}

static bool defragment(struct members *members, GError **error)
{
    struct fake_members *fake = fake_of(members);
    did(fake, "defragment");
    fake->says->store_bytes = fake->says->used_bytes;
    return true;
}

static bool disarm(struct members *members, const char *id, GError **error)
{
    struct fake_members *fake = fake_of(members);
    did(fake, "disarm");
    g_assert_cmpstr(id, ==, fake->says->id);
    g_ptr_array_set_size(fake->says->alarms, 0);
    return true;
}

static void trim_log(struct members *members)
{
}

static const struct members_ops ops = {
    .set_ended = set_ended,
    .config_read = config_read,
    .config_write = config_write,
    .prepare = prepare,
    .certify = certify,
    .trust = trust,
    .has_data = has_data,
    .start = start,
    .adopt = adopt,
    .running = running,
    .stop = stop,
    .ask = ask,
    .aside = aside,
    .forget = forget,
    .compact = compact,
    .ask_others = ask_others,
    .turn_take = turn_take,
    .turn_give = turn_give,
    .defragment = defragment,
    .disarm = disarm,
    .trim_log = trim_log,
};

struct fake_members *fake_members_new(void)
{
    struct fake_members *fake = g_new0(struct fake_members, 1);
    fake->base.ops = &ops;
    fake->base.store_bytes = LIMIT_ETCD_STORE_BYTES;
    fake->says = member_status_new();
    fake->did = g_string_new(NULL);
    return fake;
}

void fake_members_free(struct fake_members *fake)
{
    engine_config_free(fake->config);
    member_status_free(fake->says);
    g_free(fake->authority);
    g_free(fake->started_with);
    g_free(fake->next);
    g_free(fake->client);
    g_string_free(fake->did, TRUE);
    g_free(fake);
}

void fake_members_die(struct fake_members *fake, const char *why)
{
    fake->running = false;
    if (fake->ended)
        fake->ended(why, fake->data_of_ended);
}
