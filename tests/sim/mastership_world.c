/* The cluster as a whole: network, clocks, disks, what is in it at first; see mastership.h. */
#include <math.h>
#include <string.h>

#include "helper/fake_private.h"
#include "io/etcd/etcd_kv.h"
#include "mastership.h"
#include "proto/change.h"

#define GROUP "99999999-0000-4000-8000-000000000001"

static struct ms *the_ms;
static struct env_ops ms_ops; /* the fake world's, with this world's clocks, disks and network */
static struct env_ops fake_ops;

/* --- numbers --- */

guint ms_random(struct ms *ms, guint below)
{
    if (ms->theme && ms->theme->plain)
        return 0;
    ms->random += G_GUINT64_CONSTANT(0x9e3779b97f4a7c15);
    guint64 mixed = (ms->random ^ (ms->random >> 30)) * G_GUINT64_CONSTANT(0xbf58476d1ce4e5b9);
    mixed = (mixed ^ (mixed >> 27)) * G_GUINT64_CONSTANT(0x94d049bb133111eb);
    return below ? (guint)((mixed >> 33) % below) : 0;
}

gint64 ms_now(const struct ms *ms)
{
    return fake_now_ms(ms->world);
}

struct ms_host *ms_host_of(struct ms *ms, const char *uuid)
{
    for (guint i = 0; i < ms->hosts_count; i++)
        if (!strcmp(ms->hosts[i].uuid, uuid))
            return &ms->hosts[i];
    return NULL;
}

static struct ms_host *host_of_env(const struct env *env)
{
    return ms_host_of(the_ms, env->node_uuid);
}

void ms_unsteady(struct ms_host *host)
{
    host->steady_ms = ms_now(host->ms);
}

guint ms_timer(struct ms *ms, guint ms_time, void (*fn)(void *data), void *data)
{
    return fake_timer_add(ms->world, NULL, ms_time, fn, data);
}

void ms_timer_remove(struct ms *ms, guint handle)
{
    fake_timer_remove(ms->world, handle);
}

/* --- clocks --- */

gint64 ms_boot_ms(const struct ms_host *host)
{
    gint64 now = host->stopped_ms ? host->stopped_ms : ms_now(host->ms);
    return (gint64)((double)(now - host->stood_ms) * host->rate);
}

static gint64 op_boot_ms(const struct env *env)
{
    return ms_boot_ms(host_of_env(env));
}

static guint op_timer(const struct env *env, guint ms, void (*fn)(void *data), void *data)
{
    guint real = ms ? (guint)ceil((double)ms / host_of_env(env)->rate) : 0;
    return fake_ops.timer(env, real, fn, data);
}

/* --- disks --- */

static guint sync_ms(struct model_store *store, void *data)
{
    struct ms *ms = data;
    const struct ms_host *host = ms_host_of(ms, model_store_node(store));
    return host->sync_ms ? ms_random(ms, host->sync_ms) : ms_random(ms, 3);
}

static guint store_random(guint below, void *data)
{
    return ms_random(data, below);
}

/* What has to be synced takes its time; a process that ends meanwhile has written it or not. */
static bool op_file_write(const struct env *env, enum file_area area, const char *name,
                          const char *data, size_t len, GError **error)
{
    struct ms_host *host = host_of_env(env);
    guint ms = area == FILE_STATE ? sync_ms(host->store, the_ms) : 0;
    if (ms && task_self() && !env_sleep(env, ms) && ms_random(the_ms, 2) == 0) {
        fettle_set_error(error, KILLED, "the process has ended");
        return false;
    }
    return fake_ops.file_write(env, area, name, data, len, error);
}

/* --- network --- */

bool ms_linked(const struct ms *ms, guint from, guint to)
{
    return from == to || (!ms->cut[from][to] && ms->hosts[from].powered && ms->hosts[to].powered);
}

void ms_cut(struct ms *ms, guint from, guint to, bool cut)
{
    if (from == to || ms->cut[from][to] == cut)
        return;
    ms->cut[from][to] = cut;
    ms->linked_ms[from][to] = ms_now(ms);
    model_members_changed(ms);
}

/* Everything between hosts goes through their node daemons. */
static bool passes(const char *from, const char *to, void *data)
{
    struct ms *ms = data;
    const struct ms_host *a = ms_host_of(ms, from), *b = ms_host_of(ms, to);
    if (!strcmp(from, MS_LIAR) || !strcmp(to, MS_LIAR))
        return (a && a->noded) || (b && b->noded);
    return a && b && a->noded && b->noded && ms_linked(ms, a->index, b->index);
}

static guint delay(const char *from, const char *to, void *data)
{
    struct ms *ms = data;
    if (!strcmp(from, MS_LIAR) || !strcmp(to, MS_LIAR))
        return 1;
    return strcmp(from, to) ? ms_random(ms, 2 + ms->delay_ms) : 0;
}

/* A host's node daemon knows who the master is from what was announced to it. */
static void op_call(const struct env *env, const struct rpc_call *call, rpc_reply_fn done,
                    void *data)
{
    const struct ms_host *host = host_of_env(env);
    struct rpc_call resolved = *call;
    if (call->to_node && !strcmp(call->to_node, NODE_MASTER)) {
        const char *master = host->fence ? epoch_fence_announced(host->fence)->master_node : "";
        resolved.to_node = *master ? master : "00000000-0000-4000-8000-000000000000";
    }
    fake_ops.call(env, &resolved, done, data);
}

/* --- what runs for whom --- */

struct posted {
    struct ms_host *host;
    void (*fn)(void *data);
    void *data;
};

static void posted_run(void *data)
{
    g_autofree struct posted *posted = data;
    ms_current = posted->host;
    posted->fn(posted->data);
}

/* A task of the etcd engine begins as the host that spawned it. */
static void post(void (*fn)(void *data), void *data, void *ctx)
{
    struct posted *posted = g_new(struct posted, 1);
    *posted = (struct posted){ms_current, fn, data};
    fake_post(ctx, posted_run, posted);
}

struct env *ms_process(struct ms_host *host, const char *role)
{
    struct env *env = fake_process(host->ms->world, host->uuid, role);
    env->ops = &ms_ops;
    return env;
}

/* --- the cluster --- */

static json_t *node_object(const struct ms_host *host)
{
    g_autofree char *name = g_strdup_printf("node%u", host->index + 1);
    g_autofree char *address = g_strdup_printf("10.0.0.%u", host->index + 1);
    return json_make("{s:s,s:s,s:s,s:s,s:b}", "uuid", host->uuid, "name", name, "primary_ip",
                     address, "group", GROUP, "master_candidate", 1);
}

static void add(GPtrArray *changes, const char *kind, const char *key, json_t *object)
{
    void *value = record_parse(object_record(kind), object, RECORD_STRICT, NULL);
    json_t *whole = record_to_json(object_record(kind), value);
    record_free(object_record(kind), value);
    json_decref(object);
    g_ptr_array_add(changes, change_make(CHANGE_PUT, kind, key, 1, whole));
}

GPtrArray *ms_objects(const struct ms *ms)
{
    GPtrArray *changes = change_list_new();
    add(changes, "cluster", MS_CLUSTER,
        json_make("{s:s,s:s,s:s,s:i,s:i,s:i,s:b,s:i}", "uuid", MS_CLUSTER, "name", "c1",
                  "master_node", ms->hosts[0].uuid, "commit_copies", (int)ms->copies,
                  "service_down_time", MS_DOWN_S, "report_interval", MS_BEAT_S,
                  "auto_cleanup_enabled", ms->cleans, "auto_cleanup_checks", 2));
    add(changes, "nodegroup", GROUP, json_make("{s:s,s:s}", "uuid", GROUP, "name", "default"));
    for (guint i = 0; i < ms->hosts_count; i++)
        add(changes, "node", ms->hosts[i].uuid, node_object(&ms->hosts[i]));
    add(changes, "node", MS_LIAR,
        json_make("{s:s,s:s,s:s,s:s}", "uuid", MS_LIAR, "name", "liar", "primary_ip", "10.0.0.99",
                  "group", GROUP));
    if (ms->theme)
        ms->theme->add_objects(ms, changes);
    return changes;
}

static void host_init(struct ms *ms, guint index)
{
    struct ms_host *host = &ms->hosts[index];
    struct model_store_events events = ms_store_events(ms);
    events.random = store_random;
    events.sync_ms = sync_ms;
    *host = (struct ms_host){.ms = ms, .index = index, .steady_ms = 0};
    g_snprintf(host->uuid, sizeof host->uuid,
               "%1$u%1$u%1$u%1$u%1$u%1$u%1$u%1$u-0000-4000-8000-00000000000%1$u", index + 1);
    host->rate = ms->theme && ms->theme->plain ? 1 : 0.95 + ms_random(ms, 1001) / 10000.0;
    host->store = model_store_new(host->uuid, &events);
    host->operations = g_ptr_array_new();
    host->authority = fake_authority_new("ca", "ca key");
}

static void clocks_and_disks(struct ms *ms)
{
    ms->world = fake_world_new();
    fake_ops = *fake_process(ms->world, ms->hosts[0].uuid, ROLE_CLI)->ops;
    ms_ops = fake_ops;
    ms_ops.boot_ms = op_boot_ms;
    ms_ops.timer = op_timer;
    ms_ops.file_write = op_file_write;
    ms_ops.call = op_call;
    fake_forget_calls(ms->world);
    fake_set_path(ms->world, passes, ms);
    fake_set_delay(ms->world, delay, ms);
    task_set_poster(post, ms->world);
}

static char *value_of(const struct change *change)
{
    json_autoptr value = json_make("{s:i,s:O}", "version", 1, "object", change->object);
    return json_to_text(value);
}

/* As etcd_engine_import() leaves it. */
static void fill_etcd(struct ms *ms, const GPtrArray *changes)
{
    json_t *puts = json_array();
    for (guint i = 0; i < changes->len; i++) {
        const struct change *change = changes->pdata[i];
        g_autofree char *key = g_strdup_printf(MS_PREFIX "o/%s/%s", change->kind, change->key);
        g_autofree char *value = value_of(change);
        json_array_append_new(puts, etcd_put(key, value, 0));
    }
    json_array_append_new(puts,
                          etcd_put(MS_PREFIX "c/00000000000000000001", "[[\"import\",1]]", 0));
    json_array_append_new(puts, etcd_put(MS_PREFIX "epoch_base", G_STRINGIFY(MS_EPOCH_BASE), 0));
    json_array_append_new(
        puts, etcd_put(MS_PREFIX "head", "{\"history\":5,\"serial\":1,\"batch\":\"import\"}", 0));
    json_autoptr txn = etcd_txn(json_array(), puts, NULL);
    json_decref(model_etcd_run(ms->model, 0, NULL, ETCD_TXN, txn));
}

/* What every node has heard of the master that there was before. */
static void announce_first(struct ms *ms)
{
    json_autoptr members = json_array();
    for (guint i = 0; i < ms->hosts_count; i++) {
        g_autofree char *name = g_strdup_printf("node%u", i + 1);
        g_autofree char *address = g_strdup_printf("10.0.0.%u", i + 1);
        json_array_append_new(members, json_make("{s:s,s:s,s:s,s:i,s:b}", "uuid", ms->hosts[i].uuid,
                                                 "name", name, "address", address, "port", 1811,
                                                 "master_candidate", 1));
    }
    json_array_append_new(members, json_make("{s:s,s:s,s:s,s:i}", "uuid", MS_LIAR, "name", "liar",
                                             "address", "10.0.0.99", "port", 1811));
    json_autoptr announced =
        json_make("{s:i,s:i,s:s,s:s,s:i,s:O}", "history", MS_HISTORY, "epoch", 1, "cluster",
                  MS_CLUSTER, "master_node", ms->hosts[0].uuid, "serial", 1, "members", members);
    g_autofree char *text = json_to_text(announced);
    for (guint i = 0; i < ms->hosts_count; i++)
        fake_file_put(ms->world, ms->hosts[i].uuid, FILE_STATE, ANNOUNCED_FILE, text);
}

struct ms *ms_new(guint64 seed, const struct ms_theme *theme, struct ms_counts *counts,
                  void *theme_counts)
{
    static const guint sizes[] = {3, 3, 3, 5, 3, 2, 3, 5};
    struct ms *ms = g_new0(struct ms, 1);
    the_ms = ms;
    ms->counts = counts;
    ms->theme = theme;
    ms->cleans = seed % 8 > 3;
    ms->random = seed * G_GUINT64_CONSTANT(0x2545f4914f6cdd1d);
    ms->history = MS_HISTORY;
    ms->etcd = seed % 2 == 1 && !(theme && theme->sqlite);
    ms->hosts_count = theme ? 3 : sizes[seed / 2 % G_N_ELEMENTS(sizes)];
    ms->copies = ms->hosts_count == 5 && seed % 3 == 0 ? 2 : 1;
    ms->leader = ms->newest_host = -1;
    ms->leader_rate = 1;
    ms->model = model_etcd_new(ms_saw_write, ms);
    ms_check_init(ms);
    for (guint i = 0; i < ms->hosts_count; i++)
        host_init(ms, i);
    g_autoptr(GPtrArray) changes = ms_objects(ms);
    if (theme)
        theme->begin(ms, theme_counts);
    ms_check_first(ms, changes);
    fill_etcd(ms, changes);
    if (!ms->etcd)
        model_store_fill(ms->hosts[0].store, MS_HISTORY, changes);
    clocks_and_disks(ms);
    announce_first(ms);
    for (guint i = 0; i < ms->hosts_count; i++)
        ms_boot(&ms->hosts[i]);
    if (!theme)
        ms_liar_start(ms, seed);
    return ms;
}

void ms_pass(struct ms *ms, guint time_ms)
{
    gint64 end = ms_now(ms) + time_ms;
    while (!ms->problem && fake_step(ms->world, end))
        ms_check_step(ms);
    ms_check_step(ms);
}

void ms_free(struct ms *ms)
{
    for (guint i = 0; i < ms->hosts_count; i++)
        ms_power_off(&ms->hosts[i]);
    fake_advance(ms->world, 60000); /* what is on its way comes to nobody */
    if (ms->theme)
        ms->theme->end(ms);
    ms->counts->steps += fake_steps(ms->world);
    ms->counts->virtual_s += (guint64)ms_now(ms) / 1000;
    fake_world_free(ms->world);
    for (guint i = 0; i < ms->hosts_count; i++) {
        ms->counts->refills += model_store_refills(ms->hosts[i].store);
        model_store_free(ms->hosts[i].store);
        fake_authority_free(ms->hosts[i].authority);
        g_ptr_array_unref(ms->hosts[i].operations);
    }
    ms_liar_free(ms);
    model_clients_free();
    model_etcd_free(ms->model);
    ms_check_free(ms);
    ms_current = NULL;
    g_free(ms);
}
