/* See etcd_member.h. */
#include "io/etcd/etcd_member.h"

#include "base/error.h"
#include "base/limits.h"
#include "base/task.h"
#include "io/etcd/etcd_kv.h"
#include "io/loop.h"

#include <string.h>

/* All questions of a look at a member: who asks a node daemon for it waits no longer (QUICK), and a
 * member without a majority would hold up the change of engine that takes it away. */
#define LOOK_MS 4000

#define MEMBER_LIST "/v3/cluster/member/list"
#define MEMBER_ADD "/v3/cluster/member/add"
#define MEMBER_PROMOTE "/v3/cluster/member/promote"
#define MEMBER_REMOVE "/v3/cluster/member/remove"
#define STATUS "/v3/maintenance/status"
#define ALARM "/v3/maintenance/alarm"
#define DEFRAGMENT "/v3/maintenance/defragment"
#define MOST_ALARMS 8u /* etcd knows two */
#define LONGEST_ALARM 64
#define HEALTH_KEY "/fettle/health" /* never written; only read */

/* --- numbers --- */

/* Ids use all 64 bits, so they are no gint64. */
static guint64 id_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text != NULL ? g_ascii_strtoull(text, NULL, 10) : 0;
}

static json_t *id_json(guint64 id)
{
    g_autofree char *text = g_strdup_printf("%" G_GUINT64_FORMAT, id);
    return json_string(text);
}

char *etcd_id_text(guint64 id)
{
    return g_strdup_printf("%016" G_GINT64_MODIFIER "x", id);
}

guint64 etcd_id_parse(const char *text)
{
    guint64 id = 0;
    return g_ascii_string_to_unsigned(text, 16, 1, G_MAXUINT64, &id, NULL) ? id : 0;
}

/* --- what etcd says --- */

/* Refusals that are over in a moment. */
static bool is_passing(const char *words)
{
    static const char *const passing[] = {
        "unhealthy cluster",          "in sync with leader", "too many learner members",
        "not enough started members", "no leader",           "leader changed",
        "too many requests",
    };
    for (guint i = 0; i < G_N_ELEMENTS(passing); i++)
        if (strstr(words, passing[i]) != NULL)
            return true;
    return false;
}

/* Hands an error on, sorted by etcd's words; `what` was asked for. */
static void refuse(GError *why, const char *what, GError **error)
{
    if (strstr(why->message, "member not found") != NULL)
        fettle_set_error(error, UNKNOWN_ENTITY, "%s: there is no such member", what);
    else if (is_passing(why->message))
        fettle_set_error(error, TEMPORARY, "%s: %s; try again in some seconds", what, why->message);
    else {
        g_propagate_prefixed_error(error, g_error_copy(why), "%s: ", what);
    }
    g_error_free(why);
}

static json_t *ask(struct etcd_client *client, const char *path, json_t *body, guint timeout_ms,
                   GError **error)
{
    return etcd_call_wait(client, path, body, timeout_ms * etcd_patience(), error);
}

/* --- the list --- */

static void listed_free(void *data)
{
    struct etcd_listed *listed = data;
    g_free(listed->name);
    g_free(listed->peer_url);
    g_free(listed->client_url);
    g_free(listed);
}

static char *first_text(const json_t *list)
{
    const char *text = json_string_value(json_array_get(list, 0));
    return g_strdup(text != NULL ? text : "");
}

static struct etcd_listed *listed_of(const json_t *item)
{
    const char *name = json_string_value(json_object_get(item, "name"));
    struct etcd_listed *listed = g_new0(struct etcd_listed, 1);
    listed->id = id_of(item, "ID");
    listed->name = g_strdup(name != NULL ? name : "");
    listed->peer_url = first_text(json_object_get(item, "peerURLs"));
    listed->client_url = first_text(json_object_get(item, "clientURLs"));
    listed->learner = json_is_true(json_object_get(item, "isLearner"));
    return listed;
}

GPtrArray *etcd_members_parse(const json_t *answer, GError **error)
{
    const json_t *items = json_object_get(answer, "members");
    g_autoptr(GPtrArray) members = g_ptr_array_new_with_free_func(listed_free);
    for (size_t i = 0; i < json_array_size(items); i++) {
        struct etcd_listed *listed = listed_of(json_array_get(items, i));
        g_ptr_array_add(members, listed);
        if (listed->id == 0 || *listed->peer_url == '\0') {
            fettle_set_error(error, PROTOCOL, "etcd listed a member without an id or a peer URL");
            return NULL;
        }
    }
    if (members->len > 0)
        return g_steal_pointer(&members);
    fettle_set_error(error, PROTOCOL, "etcd listed no members");
    return NULL;
}

GPtrArray *etcd_members(struct etcd_client *client, GError **error)
{
    json_autoptr answer = ask(client, MEMBER_LIST, json_object(), ETCD_ASK_MS, error);
    return answer != NULL ? etcd_members_parse(answer, error) : NULL;
}

const struct etcd_listed *etcd_members_find(const GPtrArray *members, const char *peer_url)
{
    for (guint i = 0; i < members->len; i++) {
        const struct etcd_listed *listed = members->pdata[i];
        if (strcmp(listed->peer_url, peer_url) == 0)
            return listed;
    }
    return NULL;
}

static const struct etcd_listed *find_id(const GPtrArray *members, guint64 id)
{
    for (guint i = 0; i < members->len; i++) {
        const struct etcd_listed *listed = members->pdata[i];
        if (listed->id == id)
            return listed;
    }
    return NULL;
}

/* --- changes --- */

bool etcd_member_add(struct etcd_client *client, const char *peer_url, guint64 *ret_id,
                     GError **error)
{
    g_autoptr(GError) why = NULL;
    json_autoptr answer =
        ask(client, MEMBER_ADD, json_make("{s:[s], s:b}", "peerURLs", peer_url, "isLearner", true),
            ETCD_CHANGE_MS, &why);
    guint64 id = answer != NULL ? id_of(json_object_get(answer, "member"), "ID") : 0;
    if (id == 0 && why != NULL && !fettle_error_is(why, KILLED)) {
        g_autoptr(GPtrArray) members = etcd_members(client, NULL);
        const struct etcd_listed *there =
            members != NULL ? etcd_members_find(members, peer_url) : NULL;
        id = there != NULL ? there->id : 0;
    }
    if (id != 0) {
        *ret_id = id;
        return true;
    }
    if (why == NULL)
        fettle_set_error(&why, PROTOCOL, "etcd gave the new member no id");
    g_autofree char *what = g_strdup_printf("adding a member at %s", peer_url);
    refuse(g_steal_pointer(&why), what, error);
    return false;
}

bool etcd_member_promote(struct etcd_client *client, guint64 id, GError **error)
{
    g_autoptr(GError) why = NULL;
    json_autoptr answer =
        ask(client, MEMBER_PROMOTE, json_make("{s:o}", "ID", id_json(id)), ETCD_CHANGE_MS, &why);
    if (answer != NULL)
        return true;
    if (!fettle_error_is(why, KILLED)) {
        g_autoptr(GPtrArray) members = etcd_members(client, NULL);
        const struct etcd_listed *there = members != NULL ? find_id(members, id) : NULL;
        if (there != NULL && !there->learner)
            return true;
    }
    g_autofree char *what = g_strdup_printf("giving member %016" G_GINT64_MODIFIER "x a vote", id);
    refuse(g_steal_pointer(&why), what, error);
    return false;
}

bool etcd_member_remove(struct etcd_client *client, guint64 id, GError **error)
{
    g_autoptr(GError) why = NULL;
    json_autoptr answer =
        ask(client, MEMBER_REMOVE, json_make("{s:o}", "ID", id_json(id)), ETCD_CHANGE_MS, &why);
    if (answer != NULL || strstr(why->message, "member not found") != NULL)
        return true;
    g_autofree char *what = g_strdup_printf("removing member %016" G_GINT64_MODIFIER "x", id);
    refuse(g_steal_pointer(&why), what, error);
    return false;
}

/* --- how a member is --- */

static void set_text(char **field, char *stolen)
{
    g_free(*field);
    *field = stolen;
}

/* What a member says goes to other nodes, in a record that takes no more: nonsense in one number
 * must not cost them the rest of the report. */
static guint64 count_of(const json_t *object, const char *name)
{
    return (guint64)CLAMP(etcd_number(object, name), 0, (gint64)RECORD_NUMBER_MAX);
}

static char *first_characters(const char *text, glong most)
{
    return g_utf8_substring(text, 0, MIN(g_utf8_strlen(text, -1), most));
}

void etcd_status_parse(const json_t *answer, struct member_status *status)
{
    const json_t *header = json_object_get(answer, "header");
    const char *version = json_string_value(json_object_get(answer, "version"));
    guint64 id = id_of(header, "member_id"), leader = id_of(answer, "leader");
    set_text(&status->id, etcd_id_text(id));
    set_text(&status->leader, leader != 0 ? etcd_id_text(leader) : g_strdup(""));
    set_text(&status->version, first_characters(version != NULL ? version : "", 32));
    status->leads = leader != 0 && leader == id;
    status->learner = json_is_true(json_object_get(answer, "isLearner"));
    status->term = count_of(answer, "raftTerm");
    status->index = count_of(answer, "raftIndex");
    status->applied = count_of(answer, "raftAppliedIndex");
    status->revision = count_of(header, "revision");
    status->store_bytes = count_of(answer, "dbSize");
    status->used_bytes = count_of(answer, "dbSizeInUse");
}

void etcd_alarms_parse(const json_t *answer, struct member_status *status)
{
    const json_t *alarms = json_object_get(answer, "alarms");
    g_ptr_array_set_size(status->alarms, 0);
    for (size_t i = 0; i < json_array_size(alarms); i++) {
        const json_t *alarm = json_array_get(alarms, i);
        const char *word = json_string_value(json_object_get(alarm, "alarm"));
        g_autofree char *id = etcd_id_text(id_of(alarm, "memberID"));
        if (word != NULL && strcmp(id, status->id) == 0 && status->alarms->len < MOST_ALARMS)
            g_ptr_array_add(status->alarms, first_characters(word, LONGEST_ALARM));
    }
}

static void not_well(struct member_status *status, const GError *why)
{
    status->healthy = false;
    set_text(&status->why, first_characters(why->message, 512));
}

/* One question of several, which together end at `end_ms`. */
static json_t *look(struct etcd_client *client, const char *path, json_t *body, gint64 end_ms,
                    GError **error)
{
    gint64 left = end_ms - loop_boot_ms(), most = (gint64)ETCD_ASK_MS * etcd_patience();
    return etcd_call_wait(client, path, body, (guint)CLAMP(left, 1, most), error);
}

bool etcd_member_ask(struct etcd_client *client, struct member_status *status, GError **error)
{
    g_autoptr(GError) why = NULL;
    gint64 end_ms = loop_boot_ms() + LOOK_MS;
    json_autoptr answer = look(client, STATUS, json_object(), end_ms, &why);
    json_autoptr alarms =
        answer != NULL ? look(client, ALARM, json_make("{s:s}", "action", "GET"), end_ms, &why)
                       : NULL;
    if (answer != NULL)
        etcd_status_parse(answer, status);
    if (alarms != NULL)
        etcd_alarms_parse(alarms, status);
    json_autoptr read = alarms != NULL && !status->learner
                            ? look(client, ETCD_RANGE, etcd_range(HEALTH_KEY), end_ms, &why)
                            : NULL;
    status->healthy = read != NULL || (alarms != NULL && status->learner);
    if (why != NULL && fettle_error_is(why, KILLED)) {
        g_propagate_error(error, g_steal_pointer(&why));
        return false;
    }
    if (why != NULL)
        not_well(status, why);
    return true;
}

/* --- upkeep --- */

bool etcd_alarm_disarm(struct etcd_client *client, guint64 id, const char *alarm, GError **error)
{
    json_autoptr answer = ask(client, ALARM,
                              json_make("{s:s, s:o, s:s}", "action", "DEACTIVATE", "memberID",
                                        id_json(id), "alarm", alarm),
                              ETCD_CHANGE_MS, error);
    return answer != NULL;
}

guint etcd_alarms_count(const json_t *answer, const char *alarm, guint64 id)
{
    const json_t *alarms = json_object_get(answer, "alarms");
    guint count = 0;
    for (size_t i = 0; i < json_array_size(alarms); i++) {
        const json_t *raised = json_array_get(alarms, i);
        const char *word = json_string_value(json_object_get(raised, "alarm"));
        count += word != NULL && strcmp(word, alarm) == 0 && id_of(raised, "memberID") < id;
    }
    return count;
}

bool etcd_alarms_before(struct etcd_client *client, const char *alarm, guint64 id, guint *ret_count,
                        GError **error)
{
    json_autoptr answer =
        ask(client, ALARM, json_make("{s:s}", "action", "GET"), ETCD_ASK_MS, error);
    *ret_count = etcd_alarms_count(answer, alarm, id);
    return answer != NULL;
}

bool etcd_compact(struct etcd_client *client, guint64 revision, GError **error)
{
    g_autoptr(GError) why = NULL;
    json_autoptr answer =
        ask(client, ETCD_COMPACT,
            json_make("{s:o, s:b}", "revision", id_json(revision), "physical", true),
            ETCD_UPKEEP_MS, &why);
    if (answer != NULL || strstr(why->message, "has been compacted") != NULL)
        return true;
    refuse(g_steal_pointer(&why), "compaction", error);
    return false;
}

bool etcd_defragment(struct etcd_client *client, GError **error)
{
    g_autoptr(GError) why = NULL;
    json_autoptr answer = ask(client, DEFRAGMENT, json_object(), ETCD_UPKEEP_MS, &why);
    if (answer != NULL)
        return true;
    refuse(g_steal_pointer(&why), "defragmentation", error);
    return false;
}

/* --- turns --- */

static gint64 grant_lease(struct etcd_client *client, guint seconds, GError **error)
{
    json_autoptr answer =
        ask(client, ETCD_LEASE_GRANT, json_make("{s:i}", "TTL", (int)seconds), ETCD_ASK_MS, error);
    gint64 lease = answer != NULL ? etcd_number(answer, "ID") : 0;
    if (answer != NULL && lease == 0)
        fettle_set_error(error, PROTOCOL, "etcd granted a lease without an id");
    return lease;
}

static void revoke_lease(struct etcd_client *client, gint64 lease)
{
    json_autoptr answer = ask(client, ETCD_LEASE_REVOKE,
                              json_make("{s:I}", "ID", (json_int_t)lease), ETCD_ASK_MS, NULL);
}

void etcd_turn_give(struct etcd_client *client, const char *key, const char *who)
{
    json_autoptr answer = ask(client, ETCD_RANGE, etcd_range(key), ETCD_ASK_MS, NULL);
    g_autoptr(GPtrArray) kvs = answer ? etcd_kvs(answer, NULL, NULL) : NULL;
    const struct etcd_kv *holder = kvs && kvs->len == 1 ? kvs->pdata[0] : NULL;
    if (holder && strcmp(holder->value, who) == 0)
        revoke_lease(client, holder->lease);
}

/* `*ret_left`: the lease of a turn that it has already, of an earlier process. */
static bool try_turn(struct etcd_client *client, const char *key, const char *who, gint64 lease,
                     gint64 *ret_left, GError **error)
{
    json_t *txn =
        etcd_txn(json_make("[o]", etcd_compare(key, ETCD_CREATE_REVISION, 0)),
                 json_make("[o]", etcd_put(key, who, lease)), json_make("[o]", etcd_get(key)));
    json_autoptr answer = ask(client, ETCD_TXN, txn, ETCD_ASK_MS, error);
    if (answer == NULL || etcd_succeeded(answer))
        return answer != NULL;
    g_autoptr(GPtrArray) kvs = etcd_txn_kvs(answer, 0, error);
    if (kvs == NULL)
        return false;
    const struct etcd_kv *holder = kvs->len == 1 ? kvs->pdata[0] : NULL;
    /* The client repeats what was not answered: then it is ours already. */
    if (holder != NULL && holder->lease == lease)
        return true;
    if (holder != NULL && strcmp(holder->value, who) == 0)
        *ret_left = holder->lease;
    fettle_set_error(error, TEMPORARY, "%s is the turn of %s", key,
                     holder != NULL ? holder->value : "nobody any more");
    return false;
}

bool etcd_turn_take(struct etcd_client *client, const char *key, const char *who, guint seconds,
                    GError **error)
{
    g_autoptr(GError) why = NULL;
    gint64 left = 0, lease = grant_lease(client, seconds, error);
    if (lease == 0)
        return false;
    bool ok = try_turn(client, key, who, lease, &left, &why);
    if (left != 0) {
        revoke_lease(client, left);
        g_clear_error(&why);
        ok = try_turn(client, key, who, lease, &left, &why);
    }
    if (ok)
        return true;
    g_propagate_error(error, g_steal_pointer(&why));
    revoke_lease(client, lease);
    return false;
}
