/* See predict_locks.h. */
#include "core/ops/predict_locks.h"

#include "core/ops/op.h"

static void drop_message(const char *message, void *data)
{
}

static void lock_request_unref(void *request)
{
    lock_request_free(request);
}

/* Locks on room are given back as soon as what is taken is on record (FUT-08): nobody waits for
 * them for long. */
static GPtrArray *lasting(const GPtrArray *locks)
{
    GPtrArray *kept = g_ptr_array_new_with_free_func(lock_request_unref);
    for (guint i = 0; i < locks->len; i++) {
        const struct lock_request *request = locks->pdata[i];
        if (!g_str_has_prefix(request->name, "node-res/"))
            g_ptr_array_add(kept, lock_request_copy(request));
    }
    return kept;
}

GPtrArray *predict_locks(const struct env *env, struct follow *follow, const json_t *input)
{
    record_autoptr(op_common) common = NULL;
    void *params = NULL;
    const struct opcode *opcode = NULL;
    if (!opcode_parse_filled(input, &common, &params, &opcode, NULL))
        return NULL;
    const struct op_impl *impl = op_impl_find(common->OP_ID);
    struct op op = {.env = env,
                    .follow = follow,
                    .common = common,
                    .params = params,
                    .log = drop_message,
                    .asks_nobody = true};
    GPtrArray *locks = NULL;
    op_init(&op);
    if (impl && impl->declare(&op, NULL))
        locks = op.locks ? lasting(op.locks) : g_ptr_array_new();
    op_clear(&op);
    record_free(opcode->params, params);
    return locks;
}

bool predict_locks_urgent(const json_t *input)
{
    const char *id = json_string_value(json_object_get(input, "OP_ID"));
    const struct op_impl *impl = id ? op_impl_find(id) : NULL;
    return impl && impl->urgent;
}
