/*
 * The table of all opcode bodies, by their ids, and what it says of whole jobs: which instances
 * they look at (op_impl.sees in op.h), which jobs they ask for.
 */
#include "core/job/job_state.h"
#include "core/ops/ops.h"

#include <string.h>

static const struct op_impl *const families[] = {
    ops_advice,   ops_backend,   ops_cluster, ops_create,         ops_disks,
    ops_evacuate, ops_failover,  ops_join,    ops_migrate,        ops_modify,
    ops_network,  ops_node,      ops_power,   ops_query,          ops_recovery,
    ops_recreate, ops_reinstall, ops_remove,  ops_replace,        ops_settle,
    ops_tags,     ops_test,      ops_verify,  ops_verify_cluster, ops_volume};

const struct op_impl *op_impl_find(const char *id)
{
    for (guint i = 0; i < G_N_ELEMENTS(families); i++) {
        for (const struct op_impl *impl = families[i]; impl->id; impl++) {
            if (!strcmp(impl->id, id))
                return impl;
        }
    }
    return NULL;
}

json_t *op_wanted_jobs(const struct job_op *op)
{
    const char *id = json_string_value(json_object_get(op->input, "OP_ID"));
    const struct op_impl *impl = id ? op_impl_find(id) : NULL;
    json_t *jobs = json_object_get(op->result, "jobs");
    bool asks = impl && impl->submits && job_op_state(op) == JOB_SUCCESS;
    return asks && json_array_size(jobs) > 0 ? jobs : NULL;
}

bool op_wants_jobs(const struct job *job)
{
    bool wants = false;
    for (guint i = 0; job_state_of(job) != JOB_CANCELED && i < job->ops->len; i++)
        wants = wants || op_wanted_jobs(job->ops->pdata[i]) != NULL;
    return wants;
}

/* --- which instances --- */

/* Adds those of one opcode; false: all. */
static bool add_seen(GPtrArray *names, const json_t *input)
{
    const char *id = json_string_value(json_object_get(input, "OP_ID"));
    const struct op_impl *impl = id ? op_impl_find(id) : NULL;
    const char *field = "instance_name";
    if (!impl || impl->sees == SEES_ALL)
        return false;
    if (impl->sees == SEES_TAGGED) {
        const char *kind = json_string_value(json_object_get(input, "kind"));
        const json_t *filter = json_object_get(input, "filter");
        if (filter && !json_is_null(filter))
            return false;
        field = g_strcmp0(kind, "instance") ? NULL : "name";
    }
    const char *const fields[] = {field, "volume"};
    for (guint i = 0; i < G_N_ELEMENTS(fields); i++) {
        const char *name = fields[i] ? json_string_value(json_object_get(input, fields[i])) : NULL;
        if (name && *name)
            g_ptr_array_add(names, (char *)name);
    }
    return true;
}

GPtrArray *op_names_seen(const struct job *job)
{
    g_autoptr(GPtrArray) names = g_ptr_array_new();
    for (guint i = 0; i < job->ops->len; i++) {
        if (!add_seen(names, ((const struct job_op *)job->ops->pdata[i])->input))
            return NULL;
    }
    return g_steal_pointer(&names);
}
