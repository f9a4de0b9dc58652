/* Which instances a job's opcodes look at; see op_impl.sees in op.h. */
#include "core/ops/op.h"

#include <string.h>

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
    const char *name = field ? json_string_value(json_object_get(input, field)) : NULL;
    if (name)
        g_ptr_array_add(names, (char *)name);
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
