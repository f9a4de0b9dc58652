/* SAF-23: no guest that runs, and no image set that is whole, goes by anything but a job that was
 * submitted for that. Judged at the moment at which a node ends a process or removes images; see
 * sim.h. */
#include "sim_private.h"

#include <string.h>

/* A request that may take something away, from its arrival to its answer. */
struct taking {
    struct sim *sim;
    const struct sim_node *node;
    char *instance;
    guint64 job;
    void (*answer)(struct rpc_request *request, json_t *result, const GError *error);
    void *carrier;
};

static void taking_free(void *data)
{
    struct taking *taking = data;
    g_free(taking->instance);
    g_free(taking);
}

GHashTable *sim_takings_new(void)
{
    return g_hash_table_new_full(NULL, NULL, taking_free, NULL);
}

/* In between, on its way to the carrier. */
static void answer(struct rpc_request *request, json_t *result, const GError *error)
{
    struct taking *taking = request->carrier;
    request->answer = taking->answer;
    request->carrier = taking->carrier;
    g_hash_table_remove(taking->sim->takings, taking);
    request->answer(request, result, error);
}

void sim_note_taking(struct sim *sim, const struct sim_node *node, struct rpc_request *request)
{
    static const char *const takes[] = {"disks_remove", "disks_undo", "guest_stop", NULL};
    if (!g_strv_contains(takes, request->name))
        return;
    struct taking *taking = g_new0(struct taking, 1);
    *taking = (struct taking){
        .sim = sim,
        .node = node,
        .instance = g_strdup(json_string_value(json_object_get(request->args, "instance"))),
        .job = request->from_job,
        .answer = request->answer,
        .carrier = request->carrier};
    g_hash_table_add(sim->takings, taking);
    request->answer = answer;
    request->carrier = taking;
}

void sim_forget_takings(struct sim *sim, const struct sim_node *node)
{
    GHashTableIter iter;
    void *key;
    g_hash_table_iter_init(&iter, sim->takings);
    while (g_hash_table_iter_next(&iter, &key, NULL)) {
        struct taking *taking = key;
        if (taking->node == node)
            taking->node = NULL; /* its procedure still unwinds, and answers */
    }
}

/* The watcher submits it for a known state, whatever that is. */
static bool only_mends(const struct sim *sim, guint64 id)
{
    g_autofree char *key = g_strdup_printf("%" G_GUINT64_FORMAT, id);
    const struct job *job = config_get(sim->mirror, "job", key, NULL);
    const json_t *input = job != NULL ? ((const struct job_op *)job->ops->pdata[0])->input : NULL;
    const char *op = json_string_value(json_object_get(input, "OP_ID"));
    bool removes =
        g_strcmp0(op, "OP_INSTANCE_REMOVE") == 0 && g_str_has_prefix(job->request_id, "finish/");
    return removes || g_strcmp0(op, "OP_INSTANCE_SETTLE") == 0;
}

/* Whether whatever is taken away on this node now is taken by mending jobs alone; which one. */
static guint64 mending_job(const struct sim *sim, const struct sim_node *node, const char *instance)
{
    GHashTableIter iter;
    void *value;
    guint64 found = 0;
    g_hash_table_iter_init(&iter, sim->takings);
    while (g_hash_table_iter_next(&iter, &value, NULL)) {
        const struct taking *taking = value;
        if (taking->node != node || g_strcmp0(taking->instance, instance) != 0)
            continue;
        if (!only_mends(sim, taking->job))
            return 0;
        found = taking->job;
    }
    return found;
}

static bool has_whole_images(const struct sim *sim, const struct sim_node *node,
                             const struct instance *instance)
{
    const struct replica *replica = config_get(sim->mirror, "replica", instance->replica, NULL);
    const char *name = NULL;
    if (strcmp(instance->primary_node, node->uuid) == 0)
        name = "";
    else if (replica != NULL && replica->state == REPLICA_IN_SYNC &&
             strcmp(replica->node, node->uuid) == 0)
        name = replica->uuid;
    return name != NULL && fake_host_has_disks(node->host, instance->uuid, name) &&
           fake_hosts_whole(sim->hosts, node->uuid, instance->uuid, name);
}

void sim_witness(const char *node_uuid, const char *op, const char *uuid, void *data)
{
    struct sim *sim = data;
    bool kill = strcmp(op, "kill") == 0;
    if (g_hash_table_size(sim->takings) == 0 || (!kill && strcmp(op, "remove") != 0))
        return;
    const struct sim_node *node = sim_node(sim, sim_node_name(sim, node_uuid));
    const struct instance *instance = config_get(sim->mirror, "instance", uuid, NULL);
    guint64 job = mending_job(sim, node, uuid), generation = 0;
    if (job == 0 || instance == NULL)
        return;
    if (kill && fake_host_state(node->host, uuid, &generation) == GUEST_RUNNING)
        sim_find(sim, "%s runs on %s and is ended by job %" G_GUINT64_FORMAT ", which only mends",
                 instance->name, node->name, job);
    else if (!kill && has_whole_images(sim, node, instance))
        sim_find(sim,
                 "whole images of %s on %s are removed by job %" G_GUINT64_FORMAT
                 ", which only mends",
                 instance->name, node->name, job);
}
