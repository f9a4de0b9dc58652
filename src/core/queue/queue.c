/* Index of the job queue; see queue.h. */
#include "core/queue/queue.h"

struct queue {
    GTree *jobs;          /* id -> struct queue_job, ascending */
    GSequence *ready;     /* queued jobs that may start, in starting order */
    GHashTable *active;   /* set of struct queue_job: starting or running */
    GHashTable *requests; /* request id -> guint64 * */
    GQueue doomed;        /* ids, as guint64 * */
    guint waiting;
};

static gint compare_ids(gconstpointer left, gconstpointer right, gpointer unused)
{
    guint64 a = *(const guint64 *)left, b = *(const guint64 *)right;
    return a < b ? -1 : a > b;
}

static gint compare_id_values(gconstpointer left, gconstpointer right)
{
    return compare_ids(left, right, NULL);
}

static gint compare_ready(gconstpointer left, gconstpointer right, gpointer unused)
{
    const struct queue_job *a = left, *b = right;
    if (a->due_us != b->due_us)
        return a->due_us < b->due_us ? -1 : 1;
    return compare_ids(&a->id, &b->id, NULL);
}

static void queue_job_free(gpointer data)
{
    struct queue_job *job = data;
    g_free(job->livelock);
    g_free(job->doom);
    g_free(job->held);
    g_free(job->request);
    if (job->locks)
        g_ptr_array_unref(job->locks);
    job_free(job->live);
    if (job->dependents)
        g_array_unref(job->dependents);
    g_free(job);
}

struct queue *queue_new(void)
{
    struct queue *queue = g_new0(struct queue, 1);
    queue->jobs = g_tree_new_full(compare_ids, NULL, NULL, queue_job_free);
    queue->ready = g_sequence_new(NULL);
    queue->active = g_hash_table_new(NULL, NULL);
    queue->requests = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    g_queue_init(&queue->doomed);
    return queue;
}

void queue_free(struct queue *queue)
{
    if (!queue)
        return;
    g_queue_clear_full(&queue->doomed, g_free);
    g_hash_table_unref(queue->requests);
    g_hash_table_unref(queue->active);
    g_sequence_free(queue->ready);
    g_tree_destroy(queue->jobs);
    g_free(queue);
}

struct queue_job *queue_find(const struct queue *queue, guint64 id)
{
    return g_tree_lookup(queue->jobs, &id);
}

static gboolean append_id(gpointer key, gpointer value, gpointer ids)
{
    g_array_append_vals(ids, key, 1);
    return FALSE;
}

GArray *queue_ids(const struct queue *queue)
{
    GArray *ids =
        g_array_sized_new(FALSE, FALSE, sizeof(guint64), (guint)g_tree_nnodes(queue->jobs));
    g_tree_foreach(queue->jobs, append_id, ids);
    return ids;
}

GArray *queue_active_ids(const struct queue *queue)
{
    GArray *ids = g_array_new(FALSE, FALSE, sizeof(guint64));
    GHashTableIter iter;
    void *job;
    g_hash_table_iter_init(&iter, queue->active);
    while (g_hash_table_iter_next(&iter, &job, NULL))
        g_array_append_val(ids, ((struct queue_job *)job)->id);
    g_array_sort(ids, compare_id_values);
    return ids;
}

guint queue_active(const struct queue *queue)
{
    return g_hash_table_size(queue->active);
}

guint queue_waiting(const struct queue *queue)
{
    return queue->waiting;
}

guint64 queue_request(const struct queue *queue, const char *request_id)
{
    const guint64 *id = g_hash_table_lookup(queue->requests, request_id);
    return id ? *id : 0;
}

/* --- order of start --- */

static bool may_start(const struct queue_job *job)
{
    return job->phase == JOB_PHASE_QUEUED && job->state == JOB_QUEUED && job->unmet == 0 &&
           !job->doom && !job->held;
}

static void update_ready(struct queue *queue, struct queue_job *job)
{
    if (may_start(job) && !job->ready)
        job->ready = g_sequence_insert_sorted(queue->ready, job, compare_ready, NULL);
    else if (!may_start(job) && job->ready)
        g_clear_pointer(&job->ready, g_sequence_remove);
}

/* A fixed point in time for each job: so the order of two never changes by itself, however long
 * they wait. */
static void set_priority(struct queue_job *job, const struct job *record)
{
    job->priority = job_priority(record);
    job->due_us = (gint64)record->received_us +
                  job->priority * LIMIT_PRIORITY_STEP_S * (gint64)G_USEC_PER_SEC;
}

static void update_priority(struct queue *queue, struct queue_job *job, const struct job *record)
{
    if (job->priority == job_priority(record))
        return;
    set_priority(job, record);
    if (job->ready)
        g_sequence_sort_changed(job->ready, compare_ready, NULL);
}

struct queue_job *queue_next(const struct queue *queue)
{
    GSequenceIter *iter = g_sequence_get_begin_iter(queue->ready);
    /* Jobs with a commit under way stand at most for that long at the head. */
    for (; !g_sequence_iter_is_end(iter); iter = g_sequence_iter_next(iter)) {
        struct queue_job *job = g_sequence_get(iter);
        if (!job->busy)
            return job;
    }
    return NULL;
}

gint queue_place(const struct queue_job *job)
{
    return job->ready ? g_sequence_iter_get_position(job->ready) : -1;
}

void queue_set_held(struct queue *queue, struct queue_job *job, char *why)
{
    g_free(job->held);
    job->held = why;
    job->held_by = 0;
    update_ready(queue, job);
}

struct queue_job *queue_next_doomed(struct queue *queue)
{
    while (!g_queue_is_empty(&queue->doomed)) {
        g_autofree guint64 *id = g_queue_pop_head(&queue->doomed);
        struct queue_job *job = queue_find(queue, *id);
        if (job && job->phase == JOB_PHASE_QUEUED && !job->busy)
            return job;
    }
    return NULL;
}

void queue_set_busy(struct queue *queue, struct queue_job *job, bool busy)
{
    job->busy = busy;
    /* It may have been passed over meanwhile. */
    if (!busy && job->doom && job->phase == JOB_PHASE_QUEUED)
        g_queue_push_tail(&queue->doomed, g_memdup2(&job->id, sizeof(job->id)));
}

void queue_set_phase(struct queue *queue, struct queue_job *job, enum job_phase phase)
{
    if (job->phase == JOB_PHASE_QUEUED && phase != JOB_PHASE_QUEUED)
        queue->waiting--;
    if (job->phase != JOB_PHASE_QUEUED && phase == JOB_PHASE_QUEUED)
        queue->waiting++;
    job->phase = phase;
    if (phase == JOB_PHASE_STARTING || phase == JOB_PHASE_RUNNING)
        g_hash_table_add(queue->active, job);
    else
        g_hash_table_remove(queue->active, job);
    if (phase == JOB_PHASE_ENDED) {
        g_clear_pointer(&job->livelock, g_free);
        g_clear_pointer(&job->live, job_free);
    }
    update_ready(queue, job);
}

/* --- dependencies --- */

/* Somebody waits for a job. */
struct dependent {
    guint64 job;
    guint64 wanted; /* SM_TO() of the states it wants */
};

static guint64 wanted_states(const json_t *words)
{
    guint64 wanted = 0;
    size_t i;
    const json_t *word;
    json_array_foreach(words, i, word) {
        unsigned state;
        if (json_is_string(word) && sm_parse(&job_sm, json_string_value(word), &state))
            wanted |= SM_TO(state);
    }
    return wanted == 0 ? G_MAXUINT64 : wanted;
}

void queue_doom(struct queue *queue, struct queue_job *job, enum job_state state, char *why)
{
    if (job->doom) {
        g_free(why);
        return;
    }
    job->doom = why;
    job->doom_state = state;
    g_queue_push_tail(&queue->doomed, g_memdup2(&job->id, sizeof(job->id)));
    update_ready(queue, job);
}

static void doom(struct queue *queue, struct queue_job *job, guint64 on, enum job_state state,
                 const char *what)
{
    queue_doom(queue, job, state,
               g_strdup_printf("it depends on job %" G_GUINT64_FORMAT ", which %s", on, what));
}

/* `on` has ended: was it as `job` wants it? */
static void judge_dependency(struct queue *queue, struct queue_job *job, const struct queue_job *on,
                             guint64 wanted)
{
    if (wanted & SM_TO(on->state))
        return;
    g_autofree char *what = g_strdup_printf("ended in state %s", sm_name(&job_sm, on->state));
    doom(queue, job, on->id, on->state == JOB_CANCELED ? JOB_CANCELED : JOB_ERROR, what);
}

static void add_dependency(struct queue *queue, struct queue_job *job, guint64 on, guint64 wanted)
{
    struct queue_job *other = queue_find(queue, on);
    struct dependent dependent = {job->id, wanted};
    if (!other) {
        doom(queue, job, on, JOB_ERROR, "does not exist any more");
        return;
    }
    if (job_state_final((enum job_state)other->state)) {
        judge_dependency(queue, job, other, wanted);
        return;
    }
    if (!other->dependents)
        other->dependents = g_array_new(FALSE, FALSE, sizeof(struct dependent));
    g_array_append_val(other->dependents, dependent);
    job->unmet++;
}

static void add_dependencies(struct queue *queue, struct queue_job *job, const struct job *record)
{
    for (guint i = 0; i < record->ops->len; i++) {
        const struct job_op *op = record->ops->pdata[i];
        size_t at;
        const json_t *item;
        json_array_foreach(json_object_get(op->input, "depends"), at, item)
            add_dependency(queue, job, (guint64)json_integer_value(json_array_get(item, 0)),
                           wanted_states(json_array_get(item, 1)));
    }
}

static void release_dependents(struct queue *queue, struct queue_job *ended)
{
    for (guint i = 0; ended->dependents && i < ended->dependents->len; i++) {
        const struct dependent *dependent = &g_array_index(ended->dependents, struct dependent, i);
        struct queue_job *job = queue_find(queue, dependent->job);
        if (!job)
            continue;
        job->unmet--;
        judge_dependency(queue, job, ended, dependent->wanted);
        update_ready(queue, job);
    }
    g_clear_pointer(&ended->dependents, g_array_unref);
}

/* --- records --- */

/* Moves the visible state where the table allows it; a final state stays (SAF-30). */
static bool move_state(struct queue_job *job, enum job_state to)
{
    if (job->state == to || !sm_may_move(&job_sm, job->state, to))
        return false;
    char id[24];
    g_snprintf(id, sizeof(id), "%" G_GUINT64_FORMAT, job->id);
    sm_move(&job_sm, id, &job->state, to, NULL);
    return true;
}

static struct queue_job *add_job(struct queue *queue, const struct job *record)
{
    struct queue_job *job = g_new0(struct queue_job, 1);
    job->id = record->id;
    job->state = job_state_of(record);
    set_priority(job, record);
    g_tree_insert(queue->jobs, &job->id, job);
    if (record->request_id[0] != '\0') {
        job->request = g_strdup(record->request_id);
        g_hash_table_replace(queue->requests, g_strdup(record->request_id),
                             g_memdup2(&record->id, sizeof(record->id)));
    }
    queue->waiting++;
    if (job_state_final((enum job_state)job->state))
        queue_set_phase(queue, job, JOB_PHASE_ENDED);
    else if (record->started)
        queue_set_phase(queue, job, JOB_PHASE_RUNNING);
    else
        add_dependencies(queue, job, record);
    update_ready(queue, job);
    return job;
}

bool queue_put(struct queue *queue, const struct job *record)
{
    struct queue_job *job = queue_find(queue, record->id);
    enum job_state state = job_state_of(record);
    if (!job) {
        add_job(queue, record);
        return true;
    }
    update_priority(queue, job, record);
    /* A running job's file is ahead of its record until the record is final. */
    if (job->live && !job_state_final(state))
        return false;
    bool moved = move_state(job, state);
    if (moved && job_state_final(state)) {
        g_clear_pointer(&job->live, job_free);
        if (job->phase == JOB_PHASE_QUEUED)
            queue_set_phase(queue, job, JOB_PHASE_ENDED);
        release_dependents(queue, job);
    }
    update_ready(queue, job);
    return moved;
}

void queue_forget(struct queue *queue, guint64 id)
{
    struct queue_job *job = queue_find(queue, id);
    if (!job)
        return;
    /* Whoever waited for it is looked at as if it had ended otherwise than wanted. */
    for (guint i = 0; job->dependents && i < job->dependents->len; i++) {
        struct queue_job *other =
            queue_find(queue, g_array_index(job->dependents, struct dependent, i).job);
        if (other)
            doom(queue, other, id, JOB_ERROR, "does not exist any more");
    }
    if (job->request && queue_request(queue, job->request) == id)
        g_hash_table_remove(queue->requests, job->request);
    queue_set_phase(queue, job, JOB_PHASE_ENDED);
    g_tree_remove(queue->jobs, &id);
}

bool queue_put_live(struct queue *queue, struct queue_job *job, struct job *file)
{
    enum job_state state = job_state_of(file);
    if (job_state_final(state) || job_state_final((enum job_state)job->state)) {
        job_free(file);
        return false;
    }
    job_free(job->live);
    job->live = file;
    move_state(job, state);
    return true;
}
