/* What people and fate do to the queue, and the course of a run; see queue_sim.h. */
#include "queue_sim.h"

#include <string.h>

#define ID G_GUINT64_FORMAT
#define REST_MS (2000 * 1000)

struct run {
    struct jq *jq;
    GPtrArray *rules; /* UUIDs, char * */
};

static gboolean may_die(gpointer key, gpointer value, gpointer data)
{
    struct qm_job *job = value;
    if (!qm_final(job->state) && (job->state == QM_ACTIVE || data))
        job->may_end |= QM_SET(QM_ERROR);
    return FALSE;
}

void jq_all_may_die(struct jq *jq)
{
    g_tree_foreach(jq->model->jobs, may_die, jq);
}

/* Which job: mostly one that has not ended. */
struct qm_job *jq_pick_job(struct jq *jq)
{
    const GPtrArray *from = jq_random(jq, 2) ? jq->model->active : jq->model->queued;
    if (from->len > 0 && jq_random(jq, 10) > 0)
        return from->pdata[jq_random(jq, from->len)];
    return jq->model->newest ? qm_find(jq->model, 1 + jq_random(jq, (guint)jq->model->newest))
                             : NULL;
}

/* --- submitting --- */

void jq_keep(struct jq *jq, json_t *ops)
{
    const char *comment = json_string_value(json_object_get(json_array_get(ops, 0), "comment"));
    g_hash_table_insert(jq->pending, g_strdup(comment), json_incref(ops));
}

static void submit(struct run *run)
{
    struct jq *jq = run->jq;
    g_autoptr(GError) error = NULL;
    json_autoptr ops = jq_draw_job(jq, 0);
    guint64 next = jq->model->newest + 1;
    jq->user = jq_draw_user(jq);
    bool refused = qm_refuses(jq->model, next, jq->user, ops), drained = jq->model->drained;
    bool lacks = qm_lacks(jq->model, ops);
    jq_keep(jq, ops);
    json_autoptr answer = jq_call(jq, "SubmitJob", json_make("[O]", ops), &error);
    jq->user = NULL;
    jq->counts->refused += !answer;
    if (jq->rough)
        return;
    if (drained   ? !fettle_error_is(error, TEMPORARY)
        : lacks   ? !fettle_error_is(error, WRONG_STATE)
        : refused ? !fettle_error_is(error, PERMISSION)
                  : json_integer_value(answer) != (json_int_t)next)
        jq_find(jq, "SubmitJob answers %" JSON_INTEGER_FORMAT " (%s), expected was %s %" ID,
                json_integer_value(answer), error ? error->message : "no error",
                drained   ? "the drain"
                : lacks   ? "an archived job that it depends on"
                : refused ? "a rule"
                          : "job",
                next);
}

/* Whether one of them depends on a refused job of the same call. */
static bool on_refused(const json_t *ops, const GArray *refused, guint at)
{
    size_t i, k;
    const json_t *op, *item;
    json_array_foreach(ops, i, op) {
        json_array_foreach(json_object_get(op, "depends"), k, item) {
            json_int_t id = json_integer_value(json_array_get(item, 0));
            if (id < 0 && g_array_index(refused, bool, at - (guint)-id))
                return true;
        }
    }
    return false;
}

static void check_many(struct jq *jq, const json_t *jobs, const json_t *answers, guint64 next)
{
    g_autoptr(GArray) refused = g_array_new(FALSE, FALSE, sizeof(bool));
    for (guint i = 0; i < json_array_size(jobs); i++) {
        const json_t *ops = json_array_get(jobs, i), *answer = json_array_get(answers, i);
        bool no = on_refused(ops, refused, i) || qm_lacks(jq->model, ops) ||
                  qm_refuses(jq->model, next, jq->user, ops);
        g_array_append_val(refused, no);
        if (json_is_true(json_array_get(answer, 0)) == no)
            jq_find(jq, "job %u of a call is %s", i, no ? "accepted" : "refused");
        if (!no && json_integer_value(json_array_get(answer, 1)) != (json_int_t)next++)
            jq_find(jq, "job %u of a call gets another id than %" ID, i, next - 1);
    }
}

static void submit_many(struct run *run)
{
    struct jq *jq = run->jq;
    g_autoptr(GError) error = NULL;
    json_autoptr jobs = json_array();
    guint count = 2 + jq_random(jq, 8);
    bool drained = jq->model->drained;
    for (guint i = 0; i < count; i++) {
        json_array_append_new(jobs, jq_draw_job(jq, i));
        jq_keep(jq, json_array_get(jobs, i));
    }
    jq->user = jq_draw_user(jq);
    json_autoptr answers = jq_call(jq, "SubmitManyJobs", json_make("[O]", jobs), &error);
    if (!jq->rough && drained != fettle_error_is(error, TEMPORARY))
        jq_find(jq, "SubmitManyJobs: %s", error ? error->message : "accepted by a drained queue");
    if (!jq->rough && answers)
        check_many(jq, jobs, answers, jq->model->newest + 1);
    jq->user = NULL;
}

/* --- wishes about jobs --- */

static bool ask(struct jq *jq, const char *method, json_t *args, bool expected, guint64 id)
{
    g_autoptr(GError) error = NULL;
    jq_tell(jq, "%s %" ID, method, id);
    json_autoptr answer = jq_call(jq, method, args, &error);
    bool done = json_is_true(json_array_get(answer, 0));
    if (!jq->rough && done != expected)
        jq_find(jq, "%s of job %" ID ": %s", method, id,
                error ? error->message : json_string_value(json_array_get(answer, 1)));
    return done;
}

void jq_will_cancel(struct jq *jq, struct qm_job *job, bool kill)
{
    if (job->state == QM_QUEUED || jq->rough)
        job->may_end |= QM_SET(QM_CANCELED);
    if (job->state == QM_ACTIVE) /* at its next safe point, which comes before its next success */
        job->may_end = QM_SET(QM_CANCELED) | (job->may_end & QM_SET(QM_ERROR)) |
                       (jq->rough ? QM_SET(QM_SUCCESS) : 0);
    if (kill)
        job->may_end |= QM_SET(QM_ERROR);
    job->asked = true;
    jq->counts->canceled++;
    jq->counts->killed += kill;
}

static void cancel(struct run *run, struct qm_job *job)
{
    struct jq *jq = run->jq;
    bool kill = jq_random(jq, 4) == 0;
    jq_will_cancel(jq, job, kill);
    ask(jq, "CancelJob", json_make("[I, b]", (json_int_t)job->id, (int)kill), !qm_final(job->state),
        job->id);
}

static void change_priority(struct run *run, struct qm_job *job)
{
    struct jq *jq = run->jq;
    gint64 priority = (gint64)jq_random(jq, 40) - 20;
    bool open = !qm_final(job->state);
    jq->counts->priorities++;
    job->wished = &priority;
    if (ask(jq, "ChangeJobPriority", json_make("[I, I]", (json_int_t)job->id, (json_int_t)priority),
            open, job->id))
        qm_set_priority(job, priority);
    job->wished = NULL;
    jq_note(jq);
}

/* --- rules and switches --- */

static void change_rules(struct run *run)
{
    struct jq *jq = run->jq;
    g_autoptr(GError) error = NULL;
    guint known = run->rules->len;
    guint at = known ? jq_random(jq, known) : 0;
    jq->counts->rules++;
    if (known > 3 || (known > 0 && jq_random(jq, 3) == 0)) {
        json_autoptr gone =
            jq_call(jq, "DeleteFilter", json_make("[s]", run->rules->pdata[at]), &error);
        if (gone)
            g_ptr_array_remove_index(run->rules, at);
        return;
    }
    bool anew = known == 0 || jq_random(jq, 3) > 0;
    json_t *action, *predicates = jq_draw_rule(jq, &action);
    json_autoptr uuid = jq_call(jq, "ReplaceFilter",
                                json_make("[s, i, o, o, []]", anew ? "" : run->rules->pdata[at],
                                          (int)jq_random(jq, 5), predicates, action),
                                &error);
    if (uuid && anew)
        g_ptr_array_add(run->rules, g_strdup(json_string_value(uuid)));
    else if (!uuid && !jq->rough)
        jq_find(jq, "ReplaceFilter: %s", error->message);
}

static void set_drain(struct run *run, bool drained)
{
    run->jq->counts->drains++;
    json_decref(jq_call(run->jq, "SetDrainFlag", json_make("[b]", (int)drained), NULL));
}

/* --- fate --- */

static void start_luxid_cb(void *data)
{
    struct jq *jq = data;
    if (!jq->luxid)
        jq_start_luxid(jq);
}

static void start_wconfd_cb(void *data)
{
    struct jq *jq = data;
    if (!jq->wconfd)
        jq_start_wconfd(jq);
}

static void luxid_dies(struct run *run)
{
    struct jq *jq = run->jq;
    jq->counts->restarts++;
    if (jq->rough)
        g_tree_foreach(jq->model->jobs, may_die, jq);
    jq_kill_luxid(jq);
    for (guint i = 0; i < jq->model->queued->len; i++)
        ((struct qm_job *)jq->model->queued->pdata[i])->stuck_ms = 0;
    jq->client->ops->timer(jq->client, JQ_SLOT_MS * jq_random(jq, 10), start_luxid_cb, jq);
}

static void wconfd_dies(struct run *run)
{
    struct jq *jq = run->jq;
    g_tree_foreach(jq->model->jobs, may_die, jq);
    jq_kill_wconfd(jq);
    jq->client->ops->timer(jq->client, jq_random(jq, 3000), start_wconfd_cb, jq);
}

static void master_changes(struct run *run)
{
    struct jq *jq = run->jq;
    jq->counts->masters++;
    g_tree_foreach(jq->model->jobs, may_die, jq->rough ? jq : NULL);
    jq_change_master(jq);
    jq_start_luxid(jq);
}

static void job_dies(struct run *run)
{
    struct jq *jq = run->jq;
    const GPtrArray *processes = jq->processes;
    const struct jq_process *process =
        processes->len ? processes->pdata[jq_random(jq, processes->len)] : NULL;
    struct qm_job *job = process && !process->ended ? qm_find(jq->model, process->id) : NULL;
    if (!job)
        return;
    jq->counts->deaths++;
    job->may_end = QM_SET(QM_ERROR) | (jq->rough ? job->may_end : 0);
    jq_tell(jq, "the process of job %" ID " dies", job->id);
    jq_kill_job(jq, job->id);
}

static void fate_acts(struct run *run)
{
    guint what = jq_random(run->jq, 12);
    if (what < 6)
        job_dies(run);
    else if (what < 10)
        luxid_dies(run);
    else if (what < 11 && run->jq->rough)
        wconfd_dies(run);
    else if (what < 11)
        master_changes(run);
}

static void person_acts(struct run *run)
{
    struct jq *jq = run->jq;
    guint what = jq_random(jq, jq->theme == JQ_CROWD ? 86 : 100);
    struct qm_job *job = jq_pick_job(jq);
    if (what < 55)
        submit(run);
    else if (what < 68)
        submit_many(run);
    else if (what < 75 && job)
        cancel(run, job);
    else if (what < 86 && job)
        change_priority(run, job);
    else if (what < 97)
        change_rules(run);
    else
        set_drain(run, !jq->model->drained);
}

/* --- the course --- */

/* Lets time pass up to the end of a slot, and compares after each. */
void jq_pass_to(struct jq *jq, gint64 until_ms)
{
    while (!jq->problem && fake_now_ms(jq->world) < until_ms) {
        gint64 slot_end = (fake_now_ms(jq->world) / JQ_SLOT_MS + 1) * JQ_SLOT_MS - 1;
        gint64 limit = MIN(MAX(slot_end, fake_now_ms(jq->world) + 1), until_ms);
        while (!jq->problem && fake_step(jq->world, limit)) {
            jq_look(jq);
            jq_hear(jq);
            jq_reap(jq, false);
        }
        jq_look(jq);
        if (limit == slot_end)
            jq_compare(jq);
    }
}

/* Something happens, in a slot of its own or at any moment. */
static void one_round(struct run *run)
{
    struct jq *jq = run->jq;
    guint ms = jq_random(jq, jq_random(jq, 10) == 0 ? 20000 : 1500);
    jq_pass_to(jq, jq->rough ? fake_now_ms(jq->world) + ms : jq_take_slot(jq, ms));
    for (guint i = 0; jq->rough && i < jq_random(jq, 6); i++)
        fake_step(jq->world, fake_now_ms(jq->world) + 50);
    jq_look(jq);
    if (jq->problem || !jq->luxid)
        return;
    if (jq_random(jq, jq->theme == JQ_CROWD ? 400 : 14) == 0)
        fate_acts(run);
    else if (jq->theme == JQ_TOGETHER && jq_random(jq, 2) == 0)
        jq_meet(jq, run->rules);
    else
        person_acts(run);
    jq_look(jq);
}

/* Rules of which nobody was told that they were made. */
static void forget_lost_rules(struct jq *jq)
{
    const char *uuid;
    jq_look(jq);
    for (guint i = 0; i < 100 && (uuid = qm_any_rule(jq->model)); i++) {
        json_decref(jq_call(jq, "DeleteFilter", json_make("[s]", uuid), NULL));
        jq_look(jq);
    }
}

/* Whatever holds jobs back is taken away. */
static void come_to_rest(struct run *run)
{
    struct jq *jq = run->jq;
    gint64 end = fake_now_ms(jq->world) + REST_MS;
    jq->calm = true;
    jq_pass_to(jq, jq_take_slot(jq, 15000));
    for (guint i = 0; i < run->rules->len; i++)
        json_decref(jq_call(jq, "DeleteFilter", json_make("[s]", run->rules->pdata[i]), NULL));
    forget_lost_rules(jq);
    set_drain(run, false);
    jq_look(jq);
    while (!jq->problem && fake_now_ms(jq->world) < end &&
           jq->model->active->len + jq->model->queued->len > 0)
        jq_pass_to(jq, jq_take_slot(jq, 1000));
    jq_pass_to(jq, jq_take_slot(jq, 60000));
    if (!jq->problem)
        jq_compare_end(jq);
}

char *jq_run(guint64 seed, struct jq_counts *counts)
{
    enum jq_theme theme = (enum jq_theme)(seed / JQ_THEME);
    bool crowd = theme == JQ_CROWD;
    guint jobs = crowd ? 360 : 60 + (guint)(seed % 5) * 30;
    guint slots = 1 + (guint)(seed % 6) + (crowd && seed % 6 > 0 ? 3 : 0);
    struct run run = {jq_new(seed, !crowd && seed % 4 == 3, slots, counts),
                      g_ptr_array_new_with_free_func(g_free)};
    struct jq *jq = run.jq;
    jq->theme = theme;
    if (theme == JQ_TOGETHER)
        jq_serve_archives(jq);
    counts->runs++;
    jq_pass_to(jq, jq_take_slot(jq, 4000));
    while (!jq->problem && jq->submitted < jobs)
        one_round(&run);
    if (!jq->problem)
        come_to_rest(&run);
    char *why = g_strdup(jq->problem);
    g_ptr_array_unref(run.rules);
    jq_free(jq);
    return why;
}
