/* Accepting jobs; see submit.h. */
#include "core/queue/submit.h"

#include "base/log.h"
#include "core/config/attachments.h"
#include "core/job/archive.h"
#include "core/job/reason.h"
#include "core/queue/calls.h"
#include "core/queue/hold.h"
#include "core/queue/start.h"
#include "proto/luxi.h"
#include "proto/rapi/rapi_route.h"

#include <string.h>

/* One job of a call. */
struct entry {
    struct job *job;     /* as submitted; NULL if it is refused */
    struct job *ready;   /* as it goes into the transaction: with its id, and dependencies by id */
    struct job *earlier; /* that has its request id; NULL: none, or not looked for yet */
    GError *error;
    guint64 id; /* what is answered */
};

struct submission {
    struct queue_context *context;
    struct rpc_request *request;
    bool many;
    bool anyway;        /* also while the queue is drained */
    bool begins;        /* its job goes into the transaction as started */
    GPtrArray *entries; /* of struct entry * */
    size_t bytes;
};

static void entry_free(gpointer data)
{
    struct entry *entry = data;
    job_free(entry->job);
    job_free(entry->ready);
    job_free(entry->earlier);
    g_clear_error(&entry->error);
    g_free(entry);
}

static void set_begins(struct submission *submission, bool begins)
{
    submission->context->begins += (guint)begins - (guint)submission->begins;
    submission->begins = begins;
}

static void submission_free(struct submission *submission)
{
    set_begins(submission, false);
    g_ptr_array_unref(submission->entries);
    g_free(submission);
}

/* --- entries --- */

/* The REST daemon is believed in what it says for whom it is, so it gets no more than what is asked
 * of it can be: whoever has taken it over is nobody else. */
static bool may_queue(const char *user, const struct job *job, GError **error)
{
    for (guint i = 0; g_str_has_prefix(user, LUXI_REST_USER) && i < job->ops->len; i++) {
        const struct job_op *op = job->ops->pdata[i];
        const char *id = json_string_value(json_object_get(op->input, "OP_ID"));
        if (!rapi_routes_queue(id)) {
            fettle_set_error(error, PERMISSION,
                             "ops[%u].OP_ID: %s is not taken of the REST daemon, as no route of "
                             "it queues that; use the command line",
                             i, id);
            return false;
        }
    }
    return true;
}

static void add_entry(struct submission *submission, const json_t *ops)
{
    const char *user = submission->request->user;
    struct entry *entry = g_new0(struct entry, 1);
    entry->job = submit_parse(submission->context, submission->request->face, ops, &entry->error);
    if (entry->job && user && !may_queue(user, entry->job, &entry->error))
        g_clear_pointer(&entry->job, job_free);
    if (entry->job && user) {
        g_free(entry->job->user);
        entry->job->user = g_strdup(user);
    }
    submission->bytes += commit_job_bytes(entry->job);
    g_ptr_array_add(submission->entries, entry);
}

/* --- in the transaction --- */

/* Whether an entry's dependency is that of its earlier job. On one before it in the call: by the
 * id that this one has; without a request id of its own that is another one each time. */
static bool same_dependency(const struct submission *submission, guint at, const json_t *asked,
                            const json_t *recorded)
{
    json_int_t id = json_integer_value(json_array_get(asked, 0));
    if (!json_equal(json_array_get(asked, 1), json_array_get(recorded, 1)))
        return false;
    if (id >= 0)
        return json_equal(asked, recorded);
    if ((guint64)-id > at)
        return false;
    const struct entry *before = submission->entries->pdata[at - (guint)-id];
    return !before->job || before->job->request_id[0] == '\0' ||
           before->id == (guint64)json_integer_value(json_array_get(recorded, 0));
}

static bool same_dependencies(const struct submission *submission, guint at, const json_t *asked,
                              const json_t *recorded)
{
    if (json_array_size(asked) != json_array_size(recorded))
        return false;
    size_t i;
    const json_t *item;
    json_array_foreach(asked, i, item) {
        if (!same_dependency(submission, at, item, json_array_get(recorded, i)))
            return false;
    }
    return true;
}

static bool is_detach(const struct job_op *op)
{
    return !g_strcmp0(json_string_value(json_object_get(op->input, "OP_ID")),
                      "OP_INSTANCE_DETACH_VOLUME");
}

/* Whose the volume is that is to be taken back: afterwards only the job can tell. */
static void note_instances(const struct config *config, const struct job *job)
{
    for (guint i = 0; i < job->ops->len; i++) {
        struct job_op *op = job->ops->pdata[i];
        const char *named = json_string_value(json_object_get(op->input, "instance_name"));
        const char *name = json_string_value(json_object_get(op->input, "volume"));
        const struct volume *volume =
            is_detach(op) && !*named ? config_find(config, "volume", name, NULL) : NULL;
        const struct attachment *attachment = volume ? attachment_of(volume) : NULL;
        const struct instance *instance =
            attachment ? config_get(config, "instance", attachment->instance, NULL) : NULL;
        if (!instance)
            continue;
        json_t *input = json_copy(op->input);
        json_object_set_new(input, "instance_name", json_string(instance->name));
        json_decref(op->input);
        op->input = input;
    }
}

/* What of an opcode stays as it was submitted, for the reason trail is no part of the work, people
 * change the priority, and dependencies are compared apart. */
static json_t *lasting_input(const struct job_op *op)
{
    json_t *input = json_copy(op->input);
    json_object_del(input, "reason");
    json_object_del(input, "priority");
    json_object_del(input, "depends");
    if (is_detach(op))
        json_object_del(input, "instance_name"); /* noted by us */
    return input;
}

/* Every version fills in all fields that it knows, so what one of the two does not have is what its
 * version did not know. */
static bool same_as_far_as_known(const json_t *a, const json_t *b)
{
    bool same = json_typeof(a) == json_typeof(b);
    if (!same || !(json_is_object(a) || json_is_array(a)))
        return same && json_equal(a, b);
    const char *key;
    const json_t *value;
    if (json_is_object(a)) {
        json_object_foreach((json_t *)a, key, value) {
            const json_t *other = json_object_get(b, key);
            same = same && (!other || same_as_far_as_known(value, other));
        }
        return same;
    }
    same = json_array_size(a) == json_array_size(b);
    for (size_t i = 0; same && i < json_array_size(a); i++)
        same = same_as_far_as_known(json_array_get(a, i), json_array_get(b, i));
    return same;
}

/* The same work is asked for as the earlier job was submitted for. */
static bool same_work(const struct submission *submission, guint at, const struct job *earlier)
{
    const struct entry *entry = submission->entries->pdata[at];
    if (earlier->ops->len != entry->job->ops->len)
        return false;
    for (guint i = 0; i < earlier->ops->len; i++) {
        const struct job_op *a = entry->job->ops->pdata[i];
        const struct job_op *b = earlier->ops->pdata[i];
        json_autoptr x = lasting_input(a);
        json_autoptr y = lasting_input(b);
        if (!same_as_far_as_known(x, y) ||
            !same_dependencies(submission, at, json_object_get(a->input, "depends"),
                               json_object_get(b->input, "depends")))
            return false;
    }
    return true;
}

/* The job on record, or archived since (SAF-31), that has the entry's request id: a copy, NULL if
 * there is none. */
static struct job *find_earlier(const struct submission *submission, const struct entry *entry)
{
    const struct queue_context *context = submission->context;
    const char *request_id = entry->job->request_id;
    if (request_id[0] == '\0')
        return NULL;
    guint64 id = queue_request(context->queue, request_id);
    const struct job *record = id == 0 ? NULL : context_record(context, id);
    if (record)
        return job_copy(record);
    id = archive_request(context->env, request_id);
    return id == 0 ? NULL : archive_read(context->env, id, NULL);
}

/* Looks for earlier jobs; answers how many entries would be new ones. */
static guint find_all_earlier(const struct submission *submission, const struct commit_batch *batch)
{
    guint fresh = 0;
    for (guint i = 0; i < submission->entries->len; i++) {
        struct entry *entry = submission->entries->pdata[i];
        if (!entry->job)
            continue;
        job_free(entry->earlier);
        entry->earlier = find_earlier(submission, entry);
        if (!entry->earlier && !g_hash_table_contains(batch->requests, entry->job->request_id))
            fresh++;
    }
    return fresh;
}

static void refuse(struct entry *entry, enum fettle_error code, const char *format, ...)
    G_GNUC_PRINTF(3, 4);
static void refuse(struct entry *entry, enum fettle_error code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    entry->error = g_error_new_valist(FETTLE_ERROR, (gint)code, format, args);
    va_end(args);
}

static bool exists(const struct submission *submission, const struct commit_batch *batch,
                   guint before, guint64 id)
{
    for (guint i = 0; i < before; i++)
        if (((const struct entry *)submission->entries->pdata[i])->id == id)
            return true;
    return queue_find(submission->context->queue, id) &&
           !g_hash_table_contains(batch->removed, &id);
}

static void refuse_dependency(const struct submission *submission, guint64 id, struct entry *entry)
{
    record_autoptr(job) archived = archive_read(submission->context->env, id, NULL);
    if (archived)
        refuse(entry, FETTLE_ERROR_WRONG_STATE,
               "depends: job %" G_GUINT64_FORMAT " is archived; it ended in state %s", id,
               archived->status);
    else
        refuse(entry, FETTLE_ERROR_UNKNOWN_ENTITY,
               "depends: job %" G_GUINT64_FORMAT " does not exist", id);
}

/* Negative ids become those of earlier jobs of the call; false: there is no such job. */
static bool resolve_dependency(const struct submission *submission, struct commit_batch *batch,
                               guint at, json_t *item, struct entry *entry)
{
    json_int_t id = json_integer_value(json_array_get(item, 0));
    if (id < 0 && (guint64)-id > at) {
        refuse(entry, FETTLE_ERROR_WRONG_INPUT,
               "depends: %" JSON_INTEGER_FORMAT " goes back before the first job of the call", id);
        return false;
    }
    if (id < 0) {
        const struct entry *earlier = submission->entries->pdata[at - (guint)-id];
        if (earlier->error) {
            refuse(entry, FETTLE_ERROR_WRONG_INPUT,
                   "depends: the job that it depends on is refused");
            return false;
        }
        id = (json_int_t)earlier->id;
        json_array_set_new(item, 0, json_integer(id));
    }
    if (exists(submission, batch, at, (guint64)id)) {
        commit_note_id(batch->wanted, (guint64)id);
        return true;
    }
    refuse_dependency(submission, (guint64)id, entry);
    return false;
}

static bool resolve_dependencies(const struct submission *submission, struct commit_batch *batch,
                                 guint at, struct entry *entry)
{
    for (guint i = 0; i < entry->ready->ops->len; i++) {
        const struct job_op *op = entry->ready->ops->pdata[i];
        size_t k;
        json_t *item;
        json_array_foreach(json_object_get(op->input, "depends"), k, item)
            if (!resolve_dependency(submission, batch, at, item, entry))
                return false;
    }
    return true;
}

/* The job gets its id, unless a rule of operators refuses it under that. */
static bool take_id(const struct submission *submission, struct commit_batch *batch,
                    struct entry *entry)
{
    entry->ready->id = commit_job_id(batch);
    reason_add_submitted(entry->ready);
    const struct rule *rule = holds_rejected(submission->context->holds, entry->ready);
    if (!rule) {
        entry->id = entry->ready->id;
        return true;
    }
    batch->last_id--; /* the next one gets it */
    g_autofree char *name = holds_rule_name(rule);
    refuse(entry, FETTLE_ERROR_PERMISSION, "the job is not accepted: %s rejects it", name);
    return false;
}

static bool has_dependencies(const struct job *job)
{
    for (guint i = 0; i < job->ops->len; i++) {
        const struct job_op *op = job->ops->pdata[i];
        if (json_array_size(json_object_get(op->input, "depends")) > 0)
            return true;
    }
    return false;
}

/* Whether the scheduler would pick the job as soon as it is on record: then it is started in the
 * transaction that submits it. Nobody else is in line, so until that is stored nobody takes the
 * slot or the locks: jobs only come with later transactions, and what stands in this one behind it
 * is not started by it. */
static bool starts_at_once(const struct submission *submission, const struct commit_batch *batch,
                           const struct job *job)
{
    const struct queue_context *context = submission->context;
    return submission->entries->len == 1 && batch->changes->len == 0 && !context->ends &&
           queue_waiting(context->queue) == 0 &&
           queue_active(context->queue) < context_slots(context) && !has_dependencies(job) &&
           holds_allow_new(context->holds, job);
}

/* The entry is answered with that job, unless it asks for something else. */
static void join_earlier(const struct submission *submission, guint at, const struct job *earlier)
{
    struct entry *entry = submission->entries->pdata[at];
    if (same_work(submission, at, earlier))
        entry->id = earlier->id;
    else
        refuse(entry, FETTLE_ERROR_ALREADY_EXISTS,
               "request id \"%s\" belongs to job %" G_GUINT64_FORMAT
               ", which asks for something else",
               entry->job->request_id, earlier->id);
}

/* True if the entry adds a job to the transaction, or rests on one that does: it is answered when
 * that is on record. */
static bool build_entry(struct submission *submission, struct commit_batch *batch, guint at)
{
    struct entry *entry = submission->entries->pdata[at];
    if (entry->error)
        return false;
    const struct job *beside = g_hash_table_lookup(batch->requests, entry->job->request_id);
    if (beside || entry->earlier) {
        join_earlier(submission, at, beside ? beside : entry->earlier);
        return beside && !entry->error;
    }
    job_free(entry->ready);
    entry->ready = job_copy(entry->job);
    note_instances(follow_config(submission->context->follow), entry->ready);
    if (!resolve_dependencies(submission, batch, at, entry) || !take_id(submission, batch, entry))
        return false;
    set_begins(submission, starts_at_once(submission, batch, entry->ready));
    if (submission->begins)
        start_mark(submission->context, batch, entry->ready);
    commit_put_job(batch, entry->ready);
    if (entry->ready->request_id[0] != '\0')
        g_hash_table_insert(batch->requests, entry->ready->request_id, entry->ready);
    return true;
}

static bool is_drained(const struct submission *submission)
{
    const struct switches *switches = config_switches(follow_config(submission->context->follow));
    return !submission->anyway && switches && switches->drained;
}

/* Whether the queue takes so many more beside those that the transaction has already. */
static bool has_room(const struct submission *submission, const struct commit_batch *batch,
                     guint jobs, GError **error)
{
    guint waiting = queue_waiting(submission->context->queue) + batch->changes->len;
    if (jobs == 0)
        return true;
    if (is_drained(submission))
        fettle_set_error(error, TEMPORARY,
                         "the queue is drained: it takes no jobs until `fettle queue undrain`");
    else if (waiting + jobs > submission->context->most_queued)
        fettle_set_error(error, TEMPORARY,
                         "the queue is full: %u of at most %u jobs are queued, and %u more are too "
                         "many; try again when some have ended",
                         waiting, submission->context->most_queued, jobs);
    else
        return true;
    return false;
}

static bool build_submission(struct commit_batch *batch, void *data, GError **error)
{
    struct submission *submission = data;
    bool any = false;
    if (!has_room(submission, batch, find_all_earlier(submission, batch), error))
        return false;
    for (guint i = 0; i < submission->entries->len; i++)
        any = build_entry(submission, batch, i) || any;
    return any;
}

/* --- the answer --- */

static json_t *entry_answer(const struct entry *entry)
{
    if (entry->error)
        return json_make("[b, s]", 0, entry->error->message);
    return json_make("[b, I]", 1, (json_int_t)entry->id);
}

static void answer_submission(const struct submission *submission)
{
    const struct entry *only = submission->entries->pdata[0];
    if (!submission->many && only->error) {
        rpc_fail(submission->request, only->error);
    } else if (!submission->many) {
        rpc_answer(submission->request, json_integer((json_int_t)only->id));
    } else {
        json_t *answers = json_array();
        for (guint i = 0; i < submission->entries->len; i++)
            json_array_append_new(answers, entry_answer(submission->entries->pdata[i]));
        rpc_answer(submission->request, answers);
    }
}

static void submission_done(const GError *error, void *data)
{
    struct submission *submission = data;
    if (error)
        rpc_fail(submission->request, error);
    else
        answer_submission(submission);
    submission_free(submission);
}

/* --- the calls --- */

static struct submission *submission_new(struct queue_context *context, struct rpc_request *request,
                                         bool many)
{
    struct submission *submission = g_new0(struct submission, 1);
    submission->context = context;
    submission->request = request;
    submission->many = many;
    submission->entries = g_ptr_array_new_with_free_func(entry_free);
    return submission;
}

static void refuse_all(struct submission *submission, enum fettle_error code, const char *message)
{
    rpc_fail_new(submission->request, code, "%s", message);
    submission_free(submission);
}

static void commit_submission(struct submission *submission)
{
    struct queue_context *context = submission->context;
    guint jobs = submission->entries->len;
    const struct commit_item item = {.build = build_submission,
                                     .done = submission_done,
                                     .data = submission,
                                     .changes = jobs,
                                     .bytes = submission->bytes};
    if (submission->bytes > LIMIT_COMMIT_BYTES)
        refuse_all(submission, FETTLE_ERROR_LIMIT, "jobs: they are too large for one call");
    else
        committer_add(context->committer, &item);
}

void submit_job(struct queue_context *context, struct rpc_request *request, const json_t *ops,
                bool anyway)
{
    struct submission *submission = submission_new(context, request, false);
    submission->anyway = anyway;
    add_entry(submission, ops);
    const struct entry *only = submission->entries->pdata[0];
    if (only->error)
        submission_done(NULL, submission);
    else
        commit_submission(submission);
}

void submit_many_jobs(struct queue_context *context, struct rpc_request *request,
                      const json_t *jobs)
{
    struct submission *submission = submission_new(context, request, true);
    if (!json_is_array(jobs) || json_array_size(jobs) > LIMIT_JOBS_PER_CALL) {
        refuse_all(submission, FETTLE_ERROR_WRONG_INPUT,
                   "SubmitManyJobs: jobs: must be a list of at most " G_STRINGIFY(
                       LIMIT_JOBS_PER_CALL) " jobs");
        return;
    }
    size_t i;
    const json_t *ops;
    json_array_foreach(jobs, i, ops)
        add_entry(submission, ops);
    commit_submission(submission);
}
