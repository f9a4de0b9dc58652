/*
 * What a job has from the configuration daemon: the newest configuration, whether somebody wants it
 * to end, and its locks. See runner_private.h.
 */
#include "core/ops/runner_private.h"

#include <string.h>

static bool refresh_once(void *follow, GError **error)
{
    if (follow_refresh(follow, error))
        return true;
    g_prefix_error(error, "configuration: ");
    return false;
}

bool runner_refresh(struct runner *runner, GError **error)
{
    return op_insist(runner->env, &runner->asked, refresh_once, runner->follow, error);
}

const struct job *runner_record(const struct runner *runner)
{
    return config_get(follow_config(runner->follow), "job", runner->key, NULL);
}

bool runner_is_asked(const struct runner *runner)
{
    const struct job *record = runner_record(runner);
    return runner->asked || (record && record->cancel);
}

static void *call_wconfd(struct runner *runner, const char *method, const void *args,
                         guint timeout_ms, GError **error)
{
    return env_call_record(runner->env, NODE_LOCAL, ROLE_WCONFD, method, args, runner->stamp,
                           (guint)runner->job->id, timeout_ms, error);
}

/* --- locks --- */

#define FIRST_WAIT_MS 3000u /* whoever waits is told by then for what */

static void log_blockers(struct op *op, const struct update_locks_result *result)
{
    g_autoptr(GString) who = g_string_new(NULL);
    for (guint i = 0; result->blockers && i < result->blockers->len && i < 8; i++) {
        const struct owner *owner = result->blockers->pdata[i];
        g_string_append_printf(who, "%s%s %s", who->len ? ", " : "",
                               g_ascii_isdigit(*owner->job) ? "job" : "", owner->job);
    }
    for (guint i = 0; result->pending_nodes && i < result->pending_nodes->len && i < 8; i++)
        g_string_append_printf(who,
                               "%snode %s, which has not answered this master yet (if it is dead: "
                               "fettle node modify %s --offline yes --statement \"…\")",
                               who->len ? ", " : "",
                               op_node_name(op, result->pending_nodes->pdata[i]),
                               op_node_name(op, result->pending_nodes->pdata[i]));
    op_log(op, "still waiting for locks: %s", who->len ? who->str : "others hold them");
}

/* That of the opcode on record, which somebody may have changed meanwhile. */
static gint64 present_priority(struct runner *runner, gint64 asked)
{
    guint index = 0;
    /* Without the newest copy what is known counts. */
    const struct job *record = follow_refresh(runner->follow, NULL) ? runner_record(runner) : NULL;
    g_ptr_array_find(runner->job->ops, runner->row, &index);
    if (!record || index >= record->ops->len)
        return asked;
    return job_op_priority(record->ops->pdata[index]);
}

/* Waits as long as it takes: a request that stays blocked is repeated, and one whose fate is
 * unknown brings the set to the same list again. */
static bool wait_for_locks(struct runner *runner, struct op *op, bool urgent, GError **error)
{
    struct update_locks_args args = {.owner = &runner->owner,
                                     .locks = op->locks,
                                     .wait = true,
                                     .priority =
                                         urgent ? LOCK_PRIORITY_URGENT : op->common->priority,
                                     .wait_ms = FIRST_WAIT_MS};
    bool told = false;
    runner_save(runner); /* it waits, for all to see */
    runner->holding = true;
    for (;;) {
        g_autoptr(GError) local = NULL;
        record_autoptr(update_locks_result) result = call_wconfd(
            runner, "update_locks", &args, (guint)args.wait_ms + TIMEOUT_WAIT_EXTRA_MS, &local);
        if (runner_is_asked(runner))
            return op_give_up(error);
        if (result && result->granted)
            return true;
        if (result && !told)
            log_blockers(op, result);
        told = told || result;
        args.wait_ms = result ? LOCK_WAIT_MS : args.wait_ms;
        args.ticket = result ? result->ticket : args.ticket; /* it keeps its place */
        if (!result && (!op_wconfd_away(local) || !env_sleep(runner->env, JOB_RETRY_MS))) {
            g_propagate_prefixed_error(error, g_steal_pointer(&local), "locks: ");
            return false;
        }
        if (!urgent)
            args.priority = present_priority(runner, args.priority);
    }
}

static bool acquire(struct runner *runner, struct op *op, bool urgent, GError **error)
{
    runner->acquiring = true;
    bool granted = wait_for_locks(runner, op, urgent, error);
    runner->acquiring = false;
    return granted;
}

static bool release_once(void *data, GError **error)
{
    struct runner *runner = data;
    struct owner_args args = {.owner = &runner->owner};
    record_autoptr(nothing) done = call_wconfd(runner, "free_locks", &args, 0, error);
    runner->holding = !done;
    if (!done)
        g_prefix_error(error, "locks: ");
    return done != NULL;
}

bool runner_release(struct runner *runner, bool insist, GError **error)
{
    if (!runner->holding)
        return true;
    return insist ? op_insist(runner->env, NULL, release_once, runner, error)
                  : release_once(runner, error);
}

/* Ends the wait for locks, which is answered then. */
static void end_wait_task(void *data)
{
    struct runner *runner = data;
    struct owner_args args = {.owner = &runner->owner};
    g_autoptr(GError) ignored = NULL; /* the wait ends by itself in time */
    record_autoptr(nothing) done = call_wconfd(runner, "free_locks", &args, 0, &ignored);
}

void runner_asked_cb(void *data)
{
    struct runner *runner = data;
    if (runner->asked)
        return;
    runner->asked = true;
    if (runner->row && !job_state_final(job_op_state(runner->row)) &&
        job_op_state(runner->row) != JOB_QUEUED)
        runner_move(runner, JOB_CANCELING,
                    "asked to give up"); /* on file with what is written next */
    if (runner->acquiring)
        task_spawn(runner->env->tasks, end_wait_task, runner);
}

static bool holds(const GPtrArray *held, const struct lock_request *wanted)
{
    for (guint i = 0; held && i < held->len; i++) {
        const struct lock_request *lock = held->pdata[i];
        if (!strcmp(lock->name, wanted->name) && lock->mode >= wanted->mode)
            return true;
    }
    return false;
}

static bool contains(const GPtrArray *held, const GPtrArray *wanted)
{
    for (guint i = 0; wanted && i < wanted->len; i++) {
        if (!holds(held, wanted->pdata[i]))
            return false;
    }
    return true;
}

static bool declare(struct op *op, const struct op_impl *impl, GError **error)
{
    g_clear_pointer(&op->locks, g_ptr_array_unref);
    return impl->declare(op, error);
}

/* Optimistic locking (FUT-05, LCK-25): what is needed is computed without locks, then with them;
 * if it has grown everything is released and asked for anew. */
bool runner_lock(struct runner *runner, struct op *op, const struct op_impl *impl, GError **error)
{
    g_autoptr(GPtrArray) held = NULL;
    for (guint tries = 0; tries < LIMIT_LOCK_RESTARTS; tries++) {
        if (!declare(op, impl, error))
            return false;
        if (contains(held, op->locks))
            return true;
        if (runner_is_asked(runner))
            return op_give_up(error);
        if (held && !runner_release(runner, true, error))
            return false;
        g_clear_pointer(&held, g_ptr_array_unref);
        if (!acquire(runner, op, impl->urgent, error))
            return false;
        held = g_ptr_array_ref(op->locks);
        if (!runner_refresh(runner, error))
            return false;
    }
    fettle_set_error(error, TEMPORARY,
                     "what the opcode works on changed %d times while it waited for locks",
                     LIMIT_LOCK_RESTARTS);
    return false;
}
