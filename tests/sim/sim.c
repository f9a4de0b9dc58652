/* The cluster of the simulator: its nodes, its time, its operator, its birth and end; see sim.h. */
#include "sim_private.h"

#include <string.h>

#include "base/sm.h"
#include "proto/change.h"

/* --- numbers and lines --- */

guint sim_random(struct sim *sim, guint below)
{
    sim->random_state += G_GUINT64_CONSTANT(0x9e3779b97f4a7c15);
    guint64 mixed = sim->random_state;
    mixed = (mixed ^ (mixed >> 30)) * G_GUINT64_CONSTANT(0xbf58476d1ce4e5b9);
    mixed = (mixed ^ (mixed >> 27)) * G_GUINT64_CONSTANT(0x94d049bb133111eb);
    return (guint)((mixed ^ (mixed >> 31)) % below);
}

void sim_log(struct sim *sim, const char *format, ...)
{
    if (sim->options.log == NULL)
        return;
    va_list args;
    va_start(args, format);
    g_autofree char *text = g_strdup_vprintf(format, args);
    va_end(args);
    gint64 now = sim_now_ms(sim);
    g_autofree char *line =
        g_strdup_printf("%5d.%03d %s", (int)(now / 1000), (int)(now % 1000), text);
    sim->options.log(line, sim->options.log_data);
}

static void sm_line(const char *line, void *ctx)
{
    sim_log(ctx, "%s", line);
}

void sim_find(struct sim *sim, const char *format, ...)
{
    if (sim->problem != NULL)
        return;
    va_list args;
    va_start(args, format);
    g_autofree char *text = g_strdup_vprintf(format, args);
    va_end(args);
    sim->problem = g_strdup_printf("at %d.%03d s: %s", (int)(sim_now_ms(sim) / 1000),
                                   (int)(sim_now_ms(sim) % 1000), text);
    sim_log(sim, "PROBLEM %s", text);
}

const char *sim_problem(const struct sim *sim)
{
    return sim->problem;
}

gint64 sim_now_ms(const struct sim *sim)
{
    return fake_now_ms(sim->world) - 1000; /* the world's clock begins at 1 s */
}

guint64 sim_steps(const struct sim *sim)
{
    return fake_steps(sim->world);
}

/* --- nodes --- */

struct sim_node *sim_node(const struct sim *sim, const char *name)
{
    /* Both a name and a UUID begin with the number. */
    bool is_name = *name == 'n';
    const char *digits = is_name && g_str_has_prefix(name, "node") ? name + strlen("node") : name;
    guint number = 0;
    while (g_ascii_isdigit(*digits))
        number = number * 10 + (guint)(*digits++ - '0');
    if (number == 0 || number > sim->nodes->len)
        return NULL;
    struct sim_node *node = sim->nodes->pdata[number - 1];
    return strcmp(is_name ? node->name : node->uuid, name) == 0 ? node : NULL;
}

bool sim_has_node(const struct sim *sim, const char *node)
{
    return sim_node(sim, node) != NULL;
}

bool sim_powered(const struct sim *sim, const char *node)
{
    return sim_node(sim, node)->powered;
}

bool sim_linked(const struct sim *sim, const char *node)
{
    return sim_node(sim, node)->linked;
}

struct fake_host *sim_host(struct sim *sim, const char *node)
{
    return sim_node(sim, node)->host;
}

struct fake_hosts *sim_hosts(struct sim *sim)
{
    return sim->hosts;
}

const char *sim_node_uuid(const struct sim *sim, const char *node)
{
    return sim_node(sim, node)->uuid;
}

const char *sim_node_name(const struct sim *sim, const char *uuid)
{
    const struct sim_node *node = *uuid != '\0' ? sim_node(sim, uuid) : NULL;
    return node != NULL ? node->name : "nobody";
}

/* Whether something gets from one node to another. */
static bool way_passes(const char *from, const char *to, void *data)
{
    const struct sim_node *a = sim_node(data, from), *b = sim_node(data, to);
    return a == b || (a->powered && b->powered && a->linked && b->linked &&
                      !g_ptr_array_find(a->unheard_by, b, NULL));
}

static guint message_delay(const char *from, const char *to, void *data)
{
    struct sim *sim = data;
    guint most = MAX(sim->options.max_delay_ms,
                     MAX(sim_node(sim, from)->congested_ms, sim_node(sim, to)->congested_ms));
    return most == 0 ? 0 : strcmp(from, to) == 0 ? sim_random(sim, 2) : sim_random(sim, most + 1);
}

/* --- time --- */

void sim_pass(struct sim *sim, guint ms)
{
    gint64 limit = fake_now_ms(sim->world) + ms;
    while (sim->problem == NULL && fake_step(sim->world, limit)) {
        sim_restart_failed(sim);
        sim_jobs_reap(sim, false);
        sim_check(sim);
        sim_lost_word_passes(sim);
    }
    sim_restart_failed(sim);
    sim_check(sim);
}

const struct config *sim_config(struct sim *sim)
{
    return sim->mirror;
}

/* --- as an operator --- */

guint64 sim_submit(struct sim *sim, json_t *opcode, GError **error)
{
    json_autoptr answer = fake_call(sim->operator, sim_node_uuid(sim, "node1"), ROLE_LUXID,
                                    "SubmitJob", json_make("[[o]]", opcode), error);
    if (answer == NULL)
        return 0;
    guint64 job = (guint64)json_integer_value(answer);
    g_array_append_val(sim->accepted, job);
    return job;
}

json_t *sim_ask(struct sim *sim, const char *method, json_t *args, GError **error)
{
    return fake_call(sim->operator, sim_node_uuid(sim, "node1"), ROLE_LUXID, method, args, error);
}

bool sim_cancel(struct sim *sim, guint64 job)
{
    json_autoptr answer = fake_call(sim->operator, sim_node_uuid(sim, "node1"), ROLE_LUXID,
                                    "CancelJob", json_make("[I]", (json_int_t)job), NULL);
    return json_is_true(json_array_get(answer, 0));
}

const char *sim_job_final(struct sim *sim, guint64 id)
{
    g_autofree char *key = g_strdup_printf("%" G_GUINT64_FORMAT, id);
    const struct job *job = config_get(sim->mirror, "job", key, NULL);
    if (job == NULL)
        return sim_job_archived(sim, id);
    return sim_is_final(job->status) ? job->status : NULL;
}

/* --- birth --- */

static void add_node(struct sim *sim, guint number)
{
    struct sim_node *node = g_new0(struct sim_node, 1);
    node->sim = sim;
    node->name = g_strdup_printf("node%u", number);
    node->uuid = g_strdup_printf("%08u-0000-4000-8000-000000000000", number);
    node->powered = node->linked = true;
    node->unheard_by = g_ptr_array_new();
    node->held = g_ptr_array_new();
    node->host_env = fake_process(sim->world, node->uuid, "host");
    node->host = fake_host_add(sim->hosts, node->uuid, node->host_env);
    g_ptr_array_add(sim->nodes, node);
}

static void sim_node_free(void *data)
{
    struct sim_node *node = data;
    g_free(node->name);
    g_free(node->uuid);
    g_ptr_array_unref(node->unheard_by);
    g_ptr_array_unref(node->held);
    g_free(node);
}

/* The objects of `cluster init`, and the other nodes as `node add` leaves them. */
static GPtrArray *first_objects(const struct sim *sim)
{
    record_autoptr(op_cluster_init) params = op_cluster_init_new();
    const struct sim_node *master = sim->nodes->pdata[0];
    g_free(params->cluster_name);
    params->cluster_name = g_strdup("sim");
    g_free(params->node_name);
    params->node_name = g_strdup(master->name);
    g_free(params->primary_ip);
    params->primary_ip = g_strdup(master->name);
    params->candidate_pool_size = 1; /* candidates are what few scenarios are about */
    GPtrArray *changes =
        wconf_bootstrap_changes(params, SIM_CLUSTER, master->uuid, 1811, SIM_GROUP);
    for (guint i = 0; i < changes->len && sim->options.cluster != NULL; i++) {
        struct change *change = changes->pdata[i];
        if (g_str_equal(change->kind, "cluster"))
            json_object_update(change->object, (json_t *)sim->options.cluster);
    }
    for (guint i = 1; i < sim->nodes->len; i++) {
        const struct sim_node *node = sim->nodes->pdata[i];
        json_t *object = json_make("{ss ss ss ss}", "uuid", node->uuid, "name", node->name,
                                   "primary_ip", node->name, "group", SIM_GROUP);
        g_ptr_array_add(changes, change_make(CHANGE_PUT, "node", node->uuid, 0, object));
    }
    return changes;
}

struct sim *sim_new(const struct sim_options *options)
{
    struct sim *sim = g_new0(struct sim, 1);
    sim->options = *options;
    sim->random_state = options->seed * 7919 + 1;
    sim->world = fake_world_new();
    sim->hosts = fake_hosts_new(options->seed);
    sim->nodes = g_ptr_array_new_with_free_func(sim_node_free);
    sim->jobs = g_ptr_array_new();
    sim->failed = g_ptr_array_new();
    sim->restarts = g_ptr_array_new_with_free_func(g_free);
    sim->accepted = g_array_new(FALSE, FALSE, sizeof(guint64));
    sim->takings = sim_takings_new();
    sim->questions = g_hash_table_new_full(NULL, NULL, g_free, NULL);
    fake_hosts_set_witness(sim->hosts, sim_witness, sim);
    sim->ran = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
    sim->lost = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    sim->seen = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, g_free);
    sim->healthy = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    sim->mirror = config_new();
    sim->recovery = sim_recovery_new();
    sim->replicas =
        g_hash_table_new_full(g_str_hash, g_str_equal, g_free, (GDestroyNotify)g_hash_table_unref);
    sim->checks_all = sim_checks_all();
    sm_set_sink(sm_line, sim);
    for (guint i = 1; i <= options->nodes; i++)
        add_node(sim, i);
    fake_set_path(sim->world, way_passes, sim);
    fake_hosts_set_path(sim->hosts, way_passes, sim);
    fake_set_delay(sim->world, message_delay, sim);
    fake_set_starter_hook(sim->world, sim_starter_cb, sim);
    fake_set_kill_hook(sim->world, sim_kill_cb, sim);
    if (options->log == NULL) {
        fake_forget_calls(sim->world);
        fake_hosts_forget_calls(sim->hosts);
    }
    g_autoptr(GPtrArray) changes = first_objects(sim);
    sim->engine = fake_engine_new(1, changes);
    const struct sim_node *master = sim->nodes->pdata[0];
    fake_world_set_master(sim->world, master->uuid);
    sim->operator= fake_process(sim->world, master->uuid, ROLE_CLI);
    for (guint i = 0; i < sim->nodes->len; i++)
        sim_start_daemons(sim, sim->nodes->pdata[i]);
    return sim;
}

void sim_free(struct sim *sim)
{
    for (guint i = 0; i < sim->nodes->len; i++) {
        struct sim_node *node = sim->nodes->pdata[i];
        sim_drop_requests(node);
        for (guint role = 0; role < SIM_ROLES; role++)
            sim_process_end(sim, node, (enum sim_role)role);
        sim_jobs_end(sim, node);
    }
    sim_restart_failed(sim);
    fake_settle(sim->world);
    sm_set_sink(NULL, NULL);
    fake_hosts_free(sim->hosts);
    fake_world_free(sim->world);
    fake_engine_free(sim->engine);
    g_ptr_array_unref(sim->nodes);
    g_ptr_array_unref(sim->jobs);
    g_ptr_array_unref(sim->failed);
    g_ptr_array_unref(sim->restarts);
    g_array_unref(sim->accepted);
    g_hash_table_unref(sim->takings);
    g_hash_table_unref(sim->questions);
    g_hash_table_unref(sim->ran);
    g_hash_table_unref(sim->lost);
    g_hash_table_unref(sim->seen);
    g_hash_table_unref(sim->healthy);
    g_hash_table_unref(sim->replicas);
    config_free(sim->mirror);
    sim_recovery_free(sim->recovery);
    g_clear_pointer(&sim->word_before, replica_free);
    g_free(sim->problem);
    g_free(sim);
}
