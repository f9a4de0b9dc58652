/* Job processes of the simulator: the starter's child, from its lock file to its end; see sim.h. */
#include "sim_private.h"

static void sim_job_free(struct sim_job *job)
{
    g_free(job->livelock);
    g_free(job);
}

static struct sim_job *job_of(const struct sim *sim, guint starter)
{
    for (guint i = 0; i < sim->jobs->len; i++) {
        struct sim_job *job = sim->jobs->pdata[i];
        if (job->starter == starter)
            return job;
    }
    return NULL;
}

static void job_task(void *data)
{
    struct sim_job *job = data;
    g_autoptr(GError) error = NULL;
    runner_run(job->env, job->id, job->livelock, &error);
    job->ended = true;
}

/* The child exists: it makes its lock file and reports the name. */
static void child_born(struct sim *sim, guint index)
{
    struct sim_job *job = g_new0(struct sim_job, 1);
    job->sim = sim;
    job->node = sim->nodes->pdata[0];
    job->starter = index;
    job->id = fake_starter_job(sim->world, index);
    job->env = fake_process(sim->world, job->node->uuid, ROLE_JOB);
    g_autofree char *stem = g_strdup_printf("job-%" G_GUINT64_FORMAT, job->id);
    job->livelock = job->env->ops->livelock_make(job->env, stem, NULL);
    g_ptr_array_add(sim->jobs, job);
    fake_starter_report(sim->world, index, job->livelock);
}

void sim_starter_cb(guint index, bool confirmed, void *data)
{
    struct sim *sim = data;
    const struct sim_node *master = sim->nodes->pdata[0];
    if (!master->powered)
        return;
    if (!confirmed) {
        child_born(sim, index);
        return;
    }
    struct sim_job *job = job_of(sim, index);
    if (job == NULL)
        return;
    job->confirmed = true;
    guint64 *id = g_new(guint64, 1);
    *id = job->id;
    if (!g_hash_table_add(sim->ran, id))
        sim_find(sim, "job %" G_GUINT64_FORMAT " runs a second time", job->id);
    fake_starter_break(sim->world, index); /* exec closes the pipe */
    task_spawn(job->env->tasks, job_task, job);
}

static void end_job(struct sim *sim, guint place)
{
    struct sim_job *job = sim->jobs->pdata[place];
    g_ptr_array_remove_index(sim->jobs, place);
    fake_kill(job->env);
    fake_starter_break(sim->world, job->starter);
    fake_settle(sim->world);
    sim_job_free(job);
}

void sim_jobs_end(struct sim *sim, const struct sim_node *node)
{
    for (guint i = sim->jobs->len; i > 0; i--)
        if (((struct sim_job *)sim->jobs->pdata[i - 1])->node == node)
            end_job(sim, i - 1);
}

void sim_jobs_reap(struct sim *sim, bool orphans)
{
    for (guint i = sim->jobs->len; i > 0; i--) {
        const struct sim_job *job = sim->jobs->pdata[i - 1];
        if (job->ended || (orphans && !job->confirmed))
            end_job(sim, i - 1);
    }
}

bool sim_kill_job(struct sim *sim, guint64 id)
{
    for (guint i = sim->jobs->len; i > 0; i--) {
        const struct sim_job *job = sim->jobs->pdata[i - 1];
        if (job->ended || (id != 0 && job->id != id))
            continue;
        sim_log(sim, "fate: the process of job %" G_GUINT64_FORMAT " is killed", job->id);
        end_job(sim, i - 1);
        return true;
    }
    return false;
}

bool sim_job_runs(const struct sim *sim, guint64 id)
{
    bool runs = false;
    for (guint i = 0; i < sim->jobs->len && !runs; i++) {
        const struct sim_job *job = sim->jobs->pdata[i];
        runs = job->id == id && job->confirmed && !job->ended;
    }
    return runs;
}

/* luxid kills the process of a job. */
void sim_kill_cb(const struct env *env, void *data)
{
    struct sim *sim = data;
    for (guint i = sim->jobs->len; i > 0; i--) {
        const struct sim_job *job = sim->jobs->pdata[i - 1];
        if (job->env == env && !job->ended) {
            end_job(sim, i - 1);
            return;
        }
    }
}

bool sim_stop_job(struct sim *sim)
{
    for (guint i = sim->jobs->len; i > 0; i--) {
        const struct sim_job *job = sim->jobs->pdata[i - 1];
        if (job->ended || fake_paused(job->env))
            continue;
        sim_log(sim, "fate: the process of job %" G_GUINT64_FORMAT " is stopped", job->id);
        fake_pause(job->env);
        return true;
    }
    return false;
}

void sim_continue_jobs(struct sim *sim)
{
    for (guint i = 0; i < sim->jobs->len; i++) {
        const struct sim_job *job = sim->jobs->pdata[i];
        if (!fake_paused(job->env))
            continue;
        sim_log(sim, "fate: the process of job %" G_GUINT64_FORMAT " goes on", job->id);
        fake_resume(job->env);
    }
}

guint sim_running_jobs(const struct sim *sim)
{
    guint count = 0;
    for (guint i = 0; i < sim->jobs->len; i++)
        count += ((struct sim_job *)sim->jobs->pdata[i])->ended ? 0 : 1;
    return count;
}
