/* The archive of jobs: node daemons that do nothing but keep it, and what may go there; see
 * queue_sim.h. */
#include "queue_sim.h"

#include <string.h>

#include "core/node/archive_calls.h"

#define ID G_GUINT64_FORMAT

struct archive_request {
    struct env *env;
    struct rpc_request *request;
};

static void serve_task(void *data)
{
    static const struct {
        const char *method;
        json_t *(*fn)(struct node_core *, struct epoch_fence_op *, const void *, GError **);
    } calls[] = {{"archive_put", archive_calls_put},
                 {"archive_list", archive_calls_list},
                 {"archive_get", archive_calls_get}};
    g_autofree struct archive_request *asked = data;
    struct rpc_request *request = asked->request;
    struct node_core node = {.env = asked->env};
    g_autoptr(GError) error = NULL;
    void *args = record_parse(request->method->args, request->args, RECORD_LAX, &error);
    json_t *answer = NULL;
    for (guint i = 0; args && i < G_N_ELEMENTS(calls); i++)
        if (!strcmp(request->name, calls[i].method))
            answer = calls[i].fn(&node, NULL, args, &error);
    record_free(request->method->args, args);
    if (answer)
        rpc_answer(request, answer);
    else
        rpc_fail(request, error);
}

static void serve(struct rpc_request *request, void *data)
{
    struct archive_request *asked = g_new(struct archive_request, 1);
    *asked = (struct archive_request){data, request};
    task_spawn(asked->env->tasks, serve_task, asked);
}

void jq_start_noded(struct jq *jq, const char *node)
{
    struct env *noded = fake_process(jq->world, node, ROLE_NODED);
    fake_serve(noded, serve, noded);
    g_hash_table_replace(jq->nodeds, (char *)node, noded);
}

void jq_kill_noded(struct jq *jq, const char *node)
{
    struct env *noded = g_hash_table_lookup(jq->nodeds, node);
    g_hash_table_remove(jq->nodeds, node);
    if (noded)
        fake_kill(noded);
}

void jq_saw_archived(struct jq *jq, guint64 id)
{
    struct qm_job *job = qm_find(jq->model, id);
    jq->counts->archived++;
    jq_tell(jq, "job %" ID " is in the archive", id);
    if (!job || !qm_final(job->state))
        jq_find(jq, "job %" ID " is in the archive, and has not ended", id);
    else if (job->archived)
        jq_find(jq, "job %" ID " goes into the archive again", id);
    else
        job->archived = true;
}

static gboolean check_kept(gpointer key, gpointer value, gpointer data)
{
    const struct qm_job *job = value;
    struct jq *jq = data;
    if (job->archived && qm_is_wanted(jq->model, job->id))
        jq_find(jq, "job %" ID " is in the archive, and a job waits for it", job->id);
    return FALSE;
}

void jq_check_archived(struct jq *jq)
{
    g_tree_foreach(jq->model->jobs, check_kept, jq);
}

/* Whether it may go: nothing that the model knows speaks against it. */
bool jq_may_go(const struct jq *jq, const struct qm_job *job)
{
    return qm_final(job->state) && !job->archived && !qm_is_wanted(jq->model, job->id);
}
