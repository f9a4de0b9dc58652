/*
 * The job runner. See runner.h and architecture.md 6.
 *
 * Every change of the job is in its file before the next step is taken, so whoever reads the file
 * knows how far it came (LUX-30). The final state stands in the file first and is committed then
 * (SAF-30); the lock file goes last, so a job that ended well is never found dead (DTH-17).
 */
#include "core/ops/runner.h"

#include "core/ops/ops_restored.h"
#include "core/ops/runner_private.h"

#include <string.h>

/* --- one opcode --- */

static json_t *failure_result(const GError *error, bool prerequisite, bool changed)
{
    g_autofree char *message = runner_cut(error->message);
    const char *code = fettle_error_name(error);
    /* A refusal comes before any change by its nature. */
    return prerequisite ? json_make("[s, [s, s]]", "OpPrereqError", message, code)
                        : json_make("[s, [s, s, b]]", "OpExecError", message, code, (int)changed);
}

static bool begin(struct runner *runner, GError **error)
{
    runner->row->exec_us = runner_now_us(runner);
    runner_move(runner, JOB_RUNNING, "locks granted");
    runner_save(runner);
    if (!runner->unwritten)
        return true;
    /* Nobody could see what it does. */
    g_propagate_prefixed_error(error, g_error_copy(runner->unwritten), "job file: ");
    return false;
}

/* Locks, unless what it is to finish is over, before them or under them (SAF-83). */
static bool take_locks(struct runner *runner, struct op *op, const struct op_impl *impl,
                       bool *ret_over, GError **error)
{
    const json_t *input = runner->row->input;
    g_autoptr(GError) local = NULL;
    if (!op_task_over(op, input, ret_over, error) || *ret_over)
        return *ret_over;
    if (runner_lock(runner, op, impl, &local))
        return op_task_over(op, input, ret_over, error);
    /* It is gone, and what was to be finished with it. */
    if (fettle_error_is(local, UNKNOWN_ENTITY) && op_task_over(op, input, ret_over, NULL) &&
        *ret_over)
        return true;
    g_propagate_error(error, g_steal_pointer(&local));
    return false;
}

/* By the newest record, the last thing before it acts. */
static bool look_again(struct runner *runner, struct op *op, bool *ret_over, GError **error)
{
    const json_t *input = runner->row->input;
    bool asks = json_string_length(json_object_get(input, "if_task")) > 0;
    return !asks || (runner_refresh(runner, error) && op_task_over(op, input, ret_over, error));
}

static bool run_body(struct runner *runner, struct op *op, const struct op_impl *impl,
                     bool *ret_prerequisite, GError **error)
{
    bool over = false;
    *ret_prerequisite = true;
    if (!take_locks(runner, op, impl, &over, error) ||
        (runner_is_asked(runner) && !op_give_up(error)) || !begin(runner, error))
        return false;
    if (over)
        return true;
    if (!restored_allows(op, impl->id, error) || !impl->check(op, error))
        return false;
    if (op->common->dry_run)
        return true;
    if (!look_again(runner, op, &over, error))
        return false;
    *ret_prerequisite = false;
    return over || impl->exec(op, error);
}

/* `failure` is stolen. */
static void finish(struct runner *runner, struct op *op, enum job_state end, json_t *failure)
{
    struct job_op *row = runner->row;
    json_t *result = end == JOB_SUCCESS ? runner_result(runner, op->result) : failure;
    json_decref(row->result);
    row->result = result;
    row->end_us = runner_now_us(runner);
    runner_move(runner, end, NULL);
}

/* False: the opcode failed, or the process is being killed. */
static bool run_parsed(struct runner *runner, const struct op_common *common, const void *params,
                       bool last)
{
    const struct op_impl *impl = op_impl_find(common->OP_ID);
    struct op op = {.env = runner->env,
                    .follow = runner->follow,
                    .common = common,
                    .params = params,
                    .job = runner->job->id,
                    .owner = runner->owner,
                    .stamp = runner->stamp,
                    .log = runner_log,
                    .progress = runner_progress,
                    .log_data = runner,
                    .asked = &runner->asked};
    g_autoptr(GError) error = NULL;
    bool prerequisite = true, done = false;
    op_init(&op);
    if (impl)
        done = run_body(runner, &op, impl, &prerequisite, &error);
    else
        fettle_set_error(&error, WRONG_INPUT, "%s cannot be run by a job", common->OP_ID);
    if (!task_killed()) {
        g_autoptr(GError) kept = NULL; /* wconfd frees them when this process has ended */
        if (impl && !runner_release(runner, done && !last, &kept))
            runner_log(kept->message, runner);
        finish(runner, &op,
               done                               ? JOB_SUCCESS
               : fettle_error_is(error, CANCELED) ? JOB_CANCELED
                                                  : JOB_ERROR,
               done ? NULL : failure_result(error, prerequisite, op.changed));
    }
    op_clear(&op);
    return done;
}

static bool run_op(struct runner *runner, struct job_op *row, bool last)
{
    runner->row = row;
    row->start_us = runner_now_us(runner);
    runner_move(runner, JOB_WAITING, NULL);
    record_autoptr(op_common) common = NULL;
    void *params = NULL;
    const struct opcode *opcode = NULL;
    g_autoptr(GError) error = NULL;
    if (!opcode_parse_filled(row->input, &common, &params, &opcode, &error)) {
        struct op none = {0};
        finish(runner, &none, JOB_ERROR, failure_result(error, true, false));
        return false;
    }
    bool done = run_parsed(runner, common, params, last);
    record_free(opcode->params, params);
    return done;
}

/* --- the job --- */

/* Somebody may have changed it since the job began; from its next opcode on it counts. */
static void adopt_priority(struct runner *runner, guint from)
{
    const struct job *record = runner_record(runner);
    for (guint i = from; record && i < runner->job->ops->len && i < record->ops->len; i++) {
        struct job_op *row = runner->job->ops->pdata[i];
        const struct job_op *newer = record->ops->pdata[i];
        json_t *input = json_copy(row->input);
        json_t *priority = json_object_get(newer->input, "priority");
        if (priority)
            json_object_set(input, "priority", priority);
        json_decref(row->input);
        row->input = input;
    }
}

static void run_ops(struct runner *runner)
{
    GPtrArray *ops = runner->job->ops;
    for (guint i = 0; i < ops->len && !task_killed(); i++) {
        g_autoptr(GError) error = NULL;
        /* The copy is read once for each opcode at least; the record's version comes with it. */
        bool last = i + 1 == ops->len;
        bool fresh = runner_refresh(runner, &error);
        if (fresh)
            adopt_priority(runner, i);
        if (fresh && (!runner_is_asked(runner) || op_give_up(&error)) &&
            run_op(runner, ops->pdata[i], last)) {
            if (!last)
                runner_save(runner);
            continue;
        }
        bool canceled =
            fettle_error_is(error, CANCELED) || job_op_state(ops->pdata[i]) == JOB_CANCELED;
        json_autoptr why =
            canceled ? job_error_result(FETTLE_ERROR_CANCELED, "Job canceled by request")
            : error  ? failure_result(error, true, false)
                     : json_make("[s, [s, s, b]]", "OpExecError", "Job aborted", "job_failed", 0);
        if (!task_killed())
            job_end(runner->job, canceled ? JOB_CANCELED : JOB_ERROR, why, runner_now_us(runner));
        return;
    }
}

/* What the store says of this job; false: it is not there, or has a final state already, because
 * somebody took this process for dead. */
static bool may_commit(const struct runner *runner)
{
    const struct job *record = runner_record(runner);
    return record && !job_state_final(job_state_of(record));
}

static bool pause_until(const struct runner *runner, gint64 deadline)
{
    return runner->env->ops->boot_ms(runner->env) < deadline &&
           env_sleep(runner->env, JOB_RETRY_MS);
}

static gint64 release_deadline(const struct runner *runner)
{
    return runner->env->ops->boot_ms(runner->env) + JOB_RELEASE_MS;
}

static void commit_end(struct runner *runner)
{
    gint64 deadline = release_deadline(runner);
    for (;;) {
        g_autoptr(GError) error = NULL;
        if (may_commit(runner)) {
            g_autoptr(GPtrArray) changes = op_changes_new();
            g_ptr_array_add(changes, config_put(follow_config(runner->follow), "job", runner->key,
                                                job_to_json(runner->job)));
            if (follow_commit_last(runner->follow, "end_job", &runner->owner, changes,
                                   runner->stamp, (guint)runner->job->id, &error))
                return;
            if (!op_wconfd_away(error) && !fettle_error_is(error, VERSION_CONFLICT))
                return;
        }
        /* The newest record decides. If there is no way to it in time, luxid finds the final state
         * in the file and commits that (LUX-35). Against a newer version it is tried at once. */
        g_autoptr(GError) away = NULL;
        bool fresh = follow_refresh(runner->follow, &away);
        bool at_once = fresh && fettle_error_is(error, VERSION_CONFLICT);
        if ((fresh && !may_commit(runner)) || (!at_once && !pause_until(runner, deadline)))
            return;
    }
}

static void runner_clear(struct runner *runner)
{
    follow_free(runner->follow);
    job_free(runner->job);
    g_free(runner->file);
    g_free(runner->key);
    g_free(runner->owner.job);
    g_free(runner->owner.livelock);
    g_clear_error(&runner->unwritten);
}

static bool check_fresh(const struct job *job, guint64 job_id, GError **error)
{
    if (job->id != job_id)
        fettle_set_error(error, CORRUPT,
                         "job-%" G_GUINT64_FORMAT " is the file of job %" G_GUINT64_FORMAT, job_id,
                         job->id);
    else if (!job_untouched(job))
        fettle_set_error(error, WRONG_STATE,
                         "job %" G_GUINT64_FORMAT " has run before; it is not run twice", job_id);
    else
        return true;
    return false;
}

bool runner_run(const struct env *env, guint64 job_id, const char *livelock, GError **error)
{
    struct runner runner = {.env = env};
    runner.key = g_strdup_printf("%" G_GUINT64_FORMAT, job_id);
    runner.file = g_strdup_printf("job-%" G_GUINT64_FORMAT, job_id);
    runner.owner =
        (struct owner){.job = g_strdup(runner.key), .livelock = g_strdup(livelock), .pid = 0};
    runner.job = runner_load(env, runner.file, error);
    bool ready = runner.job && check_fresh(runner.job, job_id, error);
    if (ready) {
        runner.stamp = (struct stamp){runner.job->history, runner.job->epoch};
        runner.owner.pid = runner.job->process_id;
        text_set(&runner.job->livelock, livelock);
        runner.follow = follow_new(env, NULL, NULL);
        env->ops->on_asked(env, runner_asked_cb, &runner);
        g_autoptr(GPtrArray) seen = op_names_seen(runner.job);
        follow_for_job(runner.follow, job_id, seen);
        run_ops(&runner);
        if (!runner.job->end_us)
            runner.job->end_us = runner_now_us(&runner);
    }
    if (ready && !task_killed()) {
        runner_save(&runner);
        /* luxid commits an end that asks for other jobs, together with them. */
        if (!op_wants_jobs(runner.job))
            commit_end(&runner);
        env->ops->livelock_drop(env, livelock);
    }
    env->ops->on_asked(env, NULL, NULL);
    runner_clear(&runner);
    return ready;
}
