/* The interface, and what a member is asked; see etcd.h. */
#include "backend/members/etcd_private.h"
#include "base/limits.h"
#include "io/engine_file.h"
#include "io/etcd/etcd_member.h"

#include <string.h>

static struct etcd_host *host_of(struct members *members)
{
    return (struct etcd_host *)members;
}

/* --- etc/engine.json --- */

static struct engine_config *config_read(struct members *members, GError **error)
{
    return engine_file_read(host_of(members)->paths, error);
}

static bool config_write(struct members *members, const struct engine_config *config,
                         GError **error)
{
    const struct node_paths *paths = host_of(members)->paths;
    return config != NULL ? engine_file_write(paths, config, error)
                          : engine_file_remove(paths, error);
}

static void set_ended(struct members *members, void (*ended)(const char *why, void *data),
                      void *data)
{
    host_of(members)->ended = ended;
    host_of(members)->data = data;
}

/* --- questions to the member --- */

static struct etcd_client *client_of(struct etcd_host *host, const struct engine_member *member,
                                     guint member_ms, GError **error)
{
    g_autofree char *authority = engine_file_authority(host->paths);
    g_autofree char *certificate = engine_file_certificate(host->paths, ENGINE_FILE_CLIENT);
    g_autofree char *key = engine_file_key(host->paths, ENGINE_FILE_CLIENT);
    const char *urls[] = {member->client_url, NULL};
    const struct etcd_options options = {.urls = urls,
                                         .ca = authority,
                                         .certificate = certificate,
                                         .key = key,
                                         .member_ms = member_ms};
    return etcd_client_new(&options, error);
}

/* A client of this node's member alone. */
static struct etcd_client *make_client(struct etcd_host *host, guint member_ms, GError **error)
{
    record_autoptr(engine_config) config = engine_file_read(host->paths, error);
    const struct engine_member *self =
        config != NULL ? engine_config_member(config, host->config->node_uuid) : NULL;
    if (config == NULL)
        return NULL;
    if (self != NULL)
        return client_of(host, self, member_ms, error);
    fettle_set_error(error, WRONG_STATE, "etc/engine.json has no member for this node");
    return NULL;
}

static void set_why(struct member_status *status, const char *why)
{
    g_free(status->why);
    status->why = g_strndup(why, 512);
}

static bool ask(struct members *members, struct member_status *status, GError **error)
{
    struct etcd_host *host = host_of(members);
    g_autoptr(GError) why = NULL;
    g_autofree char *trusts = etcd_trust_digest(host);
    text_set(&status->trusts, trusts);
    text_set(&status->started_with, host->started_with != NULL ? host->started_with : "");
    status->by_first = etcd_is_by_first(host);
    status->healthy = false;
    if (!etcd_running(members)) {
        set_why(status, "its process does not run");
        return true;
    }
    status->pid = process_pid(host->process);
    status->start_ticks = process_start_ticks(host->process);
    struct etcd_client *client = make_client(host, ETCD_ASK_MS, &why);
    if (client == NULL) {
        set_why(status, why->message);
        return true;
    }
    bool ok = etcd_member_ask(client, status, error);
    etcd_client_free(client);
    return ok;
}

/* --- upkeep --- */

static bool compact(struct members *members, guint64 revision, GError **error)
{
    struct etcd_client *client = make_client(host_of(members), ETCD_UPKEEP_MS, error);
    bool ok = client != NULL && etcd_compact(client, revision, error);
    etcd_client_free(client);
    return ok;
}

/* One that cannot be asked is silent too. */
static bool is_well(struct etcd_host *host, const struct engine_member *member, bool *ret_well,
                    GError **error)
{
    record_autoptr(member_status) status = member_status_new();
    struct etcd_client *client = client_of(host, member, ETCD_ASK_MS, NULL);
    bool ok = client == NULL || etcd_member_ask(client, status, error);
    etcd_client_free(client);
    *ret_well = status->healthy;
    return ok;
}

static bool ask_others(struct members *members, const char *id, struct members_others *ret_others,
                       GError **error)
{
    struct etcd_host *host = host_of(members);
    struct members_others others = {0};
    record_autoptr(engine_config) config = engine_file_read(host->paths, error);
    struct etcd_client *client =
        config != NULL && *id != '\0' ? make_client(host, ETCD_ASK_MS, error) : NULL;
    bool ok = config != NULL && (*id == '\0' || client != NULL) &&
              (client == NULL || etcd_alarms_before(client, ALARM_NOSPACE, etcd_id_parse(id),
                                                    &others.full_before, error));
    etcd_client_free(client);
    for (guint i = 0; ok && i < config->members->len; i++) {
        const struct engine_member *member = config->members->pdata[i];
        bool well = true;
        if (strcmp(member->node, host->config->node_uuid) == 0)
            continue;
        ok = is_well(host, member, &well, error);
        others.count++;
        others.silent += !well;
    }
    *ret_others = others;
    return ok;
}

static char *turn_key(const struct etcd_host *host)
{
    return g_strdup_printf("/fettle/%s/upkeep", host->config->cluster_uuid);
}

static bool turn_take(struct members *members, GError **error)
{
    struct etcd_host *host = host_of(members);
    g_autofree char *key = turn_key(host);
    struct etcd_client *client = make_client(host, ETCD_ASK_MS, error);
    bool ok =
        client != NULL && etcd_turn_take(client, key, host->config->name, UPKEEP_TURN_S, error);
    etcd_client_free(client);
    return ok;
}

static void turn_give(struct members *members)
{
    struct etcd_host *host = host_of(members);
    g_autofree char *key = turn_key(host);
    struct etcd_client *client = make_client(host, ETCD_ASK_MS, NULL);
    if (client != NULL)
        etcd_turn_give(client, key, host->config->name);
    etcd_client_free(client);
}

static bool defragment(struct members *members, GError **error)
{
    struct etcd_client *client = make_client(host_of(members), ETCD_UPKEEP_MS, error);
    bool ok = client != NULL && etcd_defragment(client, error);
    etcd_client_free(client);
    return ok;
}

static bool disarm(struct members *members, const char *id, GError **error)
{
    struct etcd_client *client = make_client(host_of(members), ETCD_UPKEEP_MS, error);
    bool ok = client != NULL && etcd_alarm_disarm(client, etcd_id_parse(id), ALARM_NOSPACE, error);
    etcd_client_free(client);
    return ok;
}

/* --- life --- */

static const struct members_ops ops = {
    .set_ended = set_ended,
    .config_read = config_read,
    .config_write = config_write,
    .prepare = etcd_prepare,
    .certify = etcd_certify,
    .trust = etcd_trust,
    .has_data = etcd_has_data,
    .start = etcd_start,
    .adopt = etcd_adopt,
    .running = etcd_running,
    .stop = etcd_stop,
    .ask = ask,
    .aside = etcd_aside,
    .forget = etcd_forget,
    .compact = compact,
    .ask_others = ask_others,
    .turn_take = turn_take,
    .turn_give = turn_give,
    .defragment = defragment,
    .disarm = disarm,
    .trim_log = etcd_trim_log,
};

/* A test cannot fill a file of the size that is right. */
static guint64 store_bytes(void)
{
    const char *given = g_getenv("FETTLE_ETCD_STORE_BYTES");
    guint64 bytes = 0;
    return given != NULL && g_ascii_string_to_unsigned(given, 10, MIB(1), LIMIT_ETCD_STORE_BYTES,
                                                       &bytes, NULL)
               ? bytes
               : LIMIT_ETCD_STORE_BYTES;
}

struct members *etcd_host_new(const struct node_paths *paths, const struct node_config *config)
{
    struct etcd_host *host = g_new0(struct etcd_host, 1);
    host->base.ops = &ops;
    host->base.store_bytes = store_bytes();
    host->paths = paths;
    host->config = config;
    return &host->base;
}

void etcd_host_free(struct members *members)
{
    if (members == NULL)
        return;
    process_free(host_of(members)->process);
    g_free(host_of(members)->started_with);
    g_free(members);
}
