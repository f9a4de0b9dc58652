/*
 * OP_TEST_DELAY: waits, with or without locks; for tests of the queue.
 */
#include "core/ops/ops.h"

static bool delay_declare(struct op *op, GError **error)
{
    const struct op_test_delay *params = op->params;
    if (params->no_locks)
        return true;
    for (guint i = 0; params->on_instances && i < params->on_instances->len; i++)
        op_lock_instance(op, params->on_instances->pdata[i]);
    for (guint i = 0; params->on_nodes && i < params->on_nodes->len; i++) {
        const struct node *node = op_find_node(op, params->on_nodes->pdata[i], error);
        if (!node)
            return false;
        op_lock_node(op, node->uuid, LOCK_SHARED);
    }
    return true;
}

static bool delay_check(struct op *op, GError **error)
{
    return true;
}

/* In steps, so that its progress can be followed. */
static bool wait_ms(struct op *op, guint ms, GError **error)
{
    for (guint done = 0; done < ms;) {
        guint step = MIN(ms - done, 2 * PROGRESS_PAUSE_MS);
        if (!env_sleep(op->env, step)) {
            fettle_set_error(error, KILLED, "the process ended while it waited");
            return false;
        }
        if (op->asked && *op->asked)
            return op_give_up(error);
        done += step;
        if (ms >= 2 * PROGRESS_PAUSE_MS)
            op_progress(op, "wait", done / 1000, ms / 1000, "s");
    }
    return true;
}

static bool delay_exec(struct op *op, GError **error)
{
    const struct op_test_delay *params = op->params;
    guint ms = (guint)(params->duration * 1000);
    guint64 rounds = MAX(params->repeat, 1);
    for (guint64 i = 0; i < rounds; i++) {
        if (params->repeat)
            op_log(op, "round %" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT, i + 1, rounds);
        if (!wait_ms(op, ms, error))
            return false;
    }
    return true;
}

const struct op_impl ops_test[] = {
    {"OP_TEST_DELAY", delay_declare, delay_check, delay_exec, SEES_NAMED},
    {NULL},
};
