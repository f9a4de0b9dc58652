/*
 * The job runner. See job.h and architecture.md 6.
 *
 * Every change of the job is in its file before the next step is taken, so whoever reads the file
 * knows how far it came (LUX-30). The final state stands in the file first and is committed then
 * (SAF-30); the lock file goes last, so a job that ended well is never found dead (DTH-17).
 */
#include "core/ops/job.h"

#include "core/ops/op.h"
#include "core/ops/ops_restored.h"
#include "core/queue/children.h"
#include "core/queue/job_state.h"

#include <string.h>

struct runner {
    const struct env *env;
    struct follow *follow;
    struct job *job;
    char *file; /* its name in the queue's folder */
    char *key;  /* of its record */
    struct owner owner;
    struct stamp stamp;
    guint64 log_serial; /* of the last entry, over all opcodes */
    struct job_op *row; /* the opcode that is under way */
    bool holding;       /* may have locks */
    bool acquiring;     /* waits for locks */
    bool asked;         /* to give up */
    GError *unwritten;  /* the last write of the job file failed */
};

static guint64 now_us(const struct runner *runner)
{
    return (guint64)runner->env->ops->wall_us(runner->env);
}

/* --- the job file --- */

static void save(struct runner *runner)
{
    json_autoptr json = job_to_json(runner->job);
    g_autofree char *text = json_to_text(json);
    g_clear_error(&runner->unwritten);
    runner->env->ops->file_write(runner->env, FILE_QUEUE, runner->file, text, strlen(text),
                                 &runner->unwritten);
}

static struct job *load(const struct env *env, const char *file, GError **error)
{
    size_t len = 0;
    g_autofree char *text =
        env->ops->file_read(env, FILE_QUEUE, file, LIMIT_JOB_FILE_BYTES, &len, error);
    if (!text)
        return NULL;
    json_autoptr json = json_parse_limited(text, len, LIMIT_JOB_FILE_BYTES, error);
    struct job *job = json ? job_parse(json, RECORD_KEEP, error) : NULL;
    if (!job)
        g_prefix_error(error, "%s: ", file);
    return job;
}

/* The caller saves. */
static void move(struct runner *runner, enum job_state to, const char *why)
{
    struct job_op *row = runner->row;
    g_autofree char *id = NULL;
    unsigned state = job_op_state(row);
    guint index = 0;
    g_ptr_array_find(runner->job->ops, row, &index);
    id = g_strdup_printf("%s/%u", runner->key, index);
    sm_move(&job_op_sm, id, &state, to, why);
    op_set_text(&row->status, sm_name(&job_op_sm, state));
    job_update_status(runner->job);
}

/* The log of the opcode that is under way. */
static json_t *log_of(struct runner *runner)
{
    struct job_op *row = runner->row;
    if (!json_is_array(row->log)) {
        json_decref(row->log);
        row->log = json_array();
    }
    return row->log;
}

/* `message` is stolen. */
static json_t *new_entry(struct runner *runner, const char *type, json_t *message)
{
    guint64 now = now_us(runner);
    return json_make("[I, [I, I], s, o]", (json_int_t)++runner->log_serial,
                     (json_int_t)(now / G_USEC_PER_SEC), (json_int_t)(now % G_USEC_PER_SEC), type,
                     message);
}

static void log_entry(const char *message, void *data)
{
    struct runner *runner = data;
    json_t *log = log_of(runner);
    if (json_array_size(log) >= LIMIT_JOB_LOG_ENTRIES)
        return;
    bool last = json_array_size(log) == LIMIT_JOB_LOG_ENTRIES - 1;
    g_autofree char *valid = g_utf8_make_valid(message, -1);
    json_array_append_new(
        log, new_entry(runner, "message",
                       json_string(last ? "the log is full; nothing more is kept" : valid)));
    save(runner);
}

/* Takes the place of the newest entry if that is about the same, so that the log stays short. */
static void progress_entry(json_t *state, void *data)
{
    struct runner *runner = data;
    json_t *log = log_of(runner);
    size_t size = json_array_size(log);
    const json_t *newest = size ? json_array_get(json_array_get(log, size - 1), 3) : NULL;
    bool same = json_is_object(newest) &&
                json_equal(json_object_get(newest, "what"), json_object_get(state, "what"));
    if (same) {
        json_array_set_new(log, size - 1, new_entry(runner, "progress", state));
    } else if (size + 1 < LIMIT_JOB_LOG_ENTRIES) {
        json_array_append_new(log, new_entry(runner, "progress", state));
    } else {
        json_decref(state);
        return;
    }
    save(runner);
}

/* --- talking to wconfd --- */

static bool pause_until(const struct runner *runner, gint64 deadline)
{
    return runner->env->ops->boot_ms(runner->env) < deadline &&
           env_sleep(runner->env, JOB_RETRY_MS);
}

static gint64 release_deadline(const struct runner *runner)
{
    return runner->env->ops->boot_ms(runner->env) + JOB_RELEASE_MS;
}

static bool refresh_once(void *follow, GError **error)
{
    if (follow_refresh(follow, error))
        return true;
    g_prefix_error(error, "configuration: ");
    return false;
}

static bool refresh(struct runner *runner, GError **error)
{
    return op_insist(runner->env, &runner->asked, refresh_once, runner->follow, error);
}

static const struct job *record_of(const struct runner *runner)
{
    return config_get(follow_config(runner->follow), "job", runner->key, NULL);
}

/* By a signal, or by the wish on record if that did not come. */
static bool is_asked(const struct runner *runner)
{
    const struct job *record = record_of(runner);
    return runner->asked || (record && record->cancel);
}

static void *call_wconfd(struct runner *runner, const char *method, const void *args,
                         guint timeout_ms, GError **error)
{
    return env_call_record(runner->env, NODE_LOCAL, ROLE_WCONFD, method, args, runner->stamp,
                           (guint)runner->job->id, timeout_ms, error);
}

/* --- locks --- */

static void log_blockers(struct op *op, const struct update_locks_result *result)
{
    g_autoptr(GString) who = g_string_new(NULL);
    for (guint i = 0; result->blockers && i < result->blockers->len && i < 8; i++) {
        const struct owner *owner = result->blockers->pdata[i];
        g_string_append_printf(who, "%s%s %s", who->len ? ", " : "",
                               g_ascii_isdigit(*owner->job) ? "job" : "", owner->job);
    }
    for (guint i = 0; result->pending_nodes && i < result->pending_nodes->len && i < 8; i++)
        g_string_append_printf(who, "%snode %s, which has not answered this master yet",
                               who->len ? ", " : "",
                               op_node_name(op, result->pending_nodes->pdata[i]));
    op_log(op, "still waiting for locks: %s", who->len ? who->str : "others hold them");
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
                                     .wait_ms = LOCK_WAIT_MS};
    bool told = false;
    save(runner); /* it waits, for all to see */
    runner->holding = true;
    for (;;) {
        g_autoptr(GError) local = NULL;
        record_autoptr(update_locks_result) result = call_wconfd(
            runner, "update_locks", &args, LOCK_WAIT_MS + TIMEOUT_WAIT_EXTRA_MS, &local);
        if (is_asked(runner))
            return op_give_up(error);
        if (result && result->granted)
            return true;
        if (result && !told)
            log_blockers(op, result);
        told = told || result;
        args.ticket = result ? result->ticket : args.ticket; /* it keeps its place */
        if (!result && (!op_wconfd_away(local) || !env_sleep(runner->env, JOB_RETRY_MS))) {
            g_propagate_prefixed_error(error, g_steal_pointer(&local), "locks: ");
            return false;
        }
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

/* Between opcodes it insists: the next one's request would be out of order. At the end of the job
 * the lock file does it. */
static bool release(struct runner *runner, bool insist, GError **error)
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

/* Somebody wants the job to end: it does at the next point at which nothing is left half done. */
static void asked_cb(void *data)
{
    struct runner *runner = data;
    if (runner->asked)
        return;
    runner->asked = true;
    if (runner->row && !job_state_final(job_op_state(runner->row)) &&
        job_op_state(runner->row) != JOB_QUEUED)
        move(runner, JOB_CANCELING, "asked to give up"); /* on file with what is written next */
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
static bool lock(struct runner *runner, struct op *op, const struct op_impl *impl, GError **error)
{
    g_autoptr(GPtrArray) held = NULL;
    for (guint tries = 0; tries < LIMIT_LOCK_RESTARTS; tries++) {
        if (!declare(op, impl, error))
            return false;
        if (contains(held, op->locks))
            return true;
        if (is_asked(runner))
            return op_give_up(error);
        if (held && !release(runner, true, error))
            return false;
        g_clear_pointer(&held, g_ptr_array_unref);
        if (!acquire(runner, op, impl->urgent, error))
            return false;
        held = g_ptr_array_ref(op->locks);
        if (!refresh(runner, error))
            return false;
    }
    fettle_set_error(error, TEMPORARY,
                     "what the opcode works on changed %d times while it waited for locks",
                     LIMIT_LOCK_RESTARTS);
    return false;
}

/* --- one opcode --- */

static json_t *failure_result(const GError *error, bool prerequisite, bool changed)
{
    g_autofree char *message = g_utf8_make_valid(error->message, -1);
    const char *code = fettle_error_name(error);
    /* A refusal comes before any change by its nature. */
    return prerequisite ? json_make("[s, [s, s]]", "OpPrereqError", message, code)
                        : json_make("[s, [s, s, b]]", "OpExecError", message, code, (int)changed);
}

static bool begin(struct runner *runner, GError **error)
{
    runner->row->exec_us = now_us(runner);
    move(runner, JOB_RUNNING, "locks granted");
    save(runner);
    if (!runner->unwritten)
        return true;
    /* Nobody could see what it does. */
    g_propagate_prefixed_error(error, g_error_copy(runner->unwritten), "job file: ");
    return false;
}

static bool run_body(struct runner *runner, struct op *op, const struct op_impl *impl,
                     bool *ret_prerequisite, GError **error)
{
    *ret_prerequisite = true;
    if (!lock(runner, op, impl, error) || (is_asked(runner) && !op_give_up(error)) ||
        !begin(runner, error) || !restored_allows(op, impl->id, error) || !impl->check(op, error))
        return false;
    if (op->common->dry_run)
        return true;
    *ret_prerequisite = false;
    return impl->exec(op, error);
}

/* `failure` is stolen. */
static void finish(struct runner *runner, struct op *op, enum job_state end, json_t *failure)
{
    struct job_op *row = runner->row;
    json_decref(row->result);
    row->result = end == JOB_SUCCESS ? json_incref(op->result) : failure;
    row->end_us = now_us(runner);
    move(runner, end, NULL);
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
                    .log = log_entry,
                    .progress = progress_entry,
                    .log_data = runner,
                    .asked = &runner->asked};
    g_autoptr(GError) error = NULL;
    bool prerequisite = true, done = false;
    if (impl)
        done = run_body(runner, &op, impl, &prerequisite, &error);
    else
        fettle_set_error(&error, WRONG_INPUT, "%s cannot be run by a job", common->OP_ID);
    if (!task_killed()) {
        g_autoptr(GError) kept = NULL; /* wconfd frees them when this process has ended */
        if (impl && !release(runner, done && !last, &kept))
            log_entry(kept->message, runner);
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
    row->start_us = now_us(runner);
    move(runner, JOB_WAITING, NULL);
    record_autoptr(op_common) common = NULL;
    void *params = NULL;
    const struct opcode *opcode = NULL;
    g_autoptr(GError) error = NULL;
    if (!opcode_parse(row->input, &common, &params, &opcode, &error)) {
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
    const struct job *record = record_of(runner);
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
        bool fresh = refresh(runner, &error);
        if (fresh)
            adopt_priority(runner, i);
        if (fresh && (!is_asked(runner) || op_give_up(&error)) &&
            run_op(runner, ops->pdata[i], last)) {
            if (!last)
                save(runner);
            continue;
        }
        bool canceled =
            fettle_error_is(error, CANCELED) || job_op_state(ops->pdata[i]) == JOB_CANCELED;
        json_autoptr why =
            canceled ? job_error_result(FETTLE_ERROR_CANCELED, "Job canceled by request")
            : error  ? failure_result(error, true, false)
                     : json_make("[s, [s, s, b]]", "OpExecError", "Job aborted", "job_failed", 0);
        if (!task_killed())
            job_end(runner->job, canceled ? JOB_CANCELED : JOB_ERROR, why, now_us(runner));
        return;
    }
}

/* What the store says of this job; false: it is not there, or has a final state already, because
 * somebody took this process for dead. */
static bool may_commit(const struct runner *runner)
{
    const struct job *record = record_of(runner);
    return record && !job_state_final(job_state_of(record));
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

bool job_run(const struct env *env, guint64 job_id, const char *livelock, GError **error)
{
    struct runner runner = {.env = env};
    runner.key = g_strdup_printf("%" G_GUINT64_FORMAT, job_id);
    runner.file = g_strdup_printf("job-%" G_GUINT64_FORMAT, job_id);
    runner.owner =
        (struct owner){.job = g_strdup(runner.key), .livelock = g_strdup(livelock), .pid = 0};
    runner.job = load(env, runner.file, error);
    bool ready = runner.job && check_fresh(runner.job, job_id, error);
    if (ready) {
        runner.stamp = (struct stamp){runner.job->history, runner.job->epoch};
        runner.owner.pid = runner.job->process_id;
        op_set_text(&runner.job->livelock, livelock);
        runner.follow = follow_new(env, NULL, NULL);
        env->ops->on_asked(env, asked_cb, &runner);
        g_autoptr(GPtrArray) seen = op_names_seen(runner.job);
        follow_for_job(runner.follow, job_id, seen);
        run_ops(&runner);
        if (!runner.job->end_us)
            runner.job->end_us = now_us(&runner);
    }
    if (ready && !task_killed()) {
        save(&runner);
        /* luxid commits an end that asks for other jobs, together with them. */
        if (!children_wanted(runner.job))
            commit_end(&runner);
        env->ops->livelock_drop(env, livelock);
    }
    env->ops->on_asked(env, NULL, NULL);
    runner_clear(&runner);
    return ready;
}
