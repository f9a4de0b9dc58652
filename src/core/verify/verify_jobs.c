/* Jobs: locks that none may hold any more, and what a silent node holds up; see verify_look.h. */
#include "core/job/job_state.h"
#include "core/query/query_rows.h"
#include "core/verify/verify_look.h"

static const struct job *job_of(const struct look *look, const char *owner)
{
    const struct queries *queries = look->queries;
    guint64 id;
    return g_ascii_string_to_unsigned(owner, 10, 1, G_MAXINT64, &id, NULL)
               ? queries->jobs->view(queries->jobs_data, id)
               : NULL;
}

/* Whether it is a job, and none that is under way. */
static bool has_ended(const struct look *look, const char *owner)
{
    const struct job *job = job_of(look, owner);
    return g_ascii_isdigit(*owner) && (!job || job_state_final(job_state_of(job)));
}

bool verify_locks_are_stale(const struct look *look)
{
    for (guint i = 0; i < look->locks->locks->len; i++) {
        const struct lock_state *lock = look->locks->locks->pdata[i];
        if (!lock->waiting && has_ended(look, lock->owner->job))
            return true;
    }
    return false;
}

/* The node of that lock, if it is to answer and does not; else NULL. */
static const struct node *silent_node(const struct look *look, const char *lock)
{
    const struct node *node = g_str_has_prefix(lock, "node/")
                                  ? config_find(look->config, "node", lock + strlen("node/"), NULL)
                                  : NULL;
    return node && reports_state(look->reports, node->uuid) == REPORT_SILENT && !node->offline
               ? node
               : NULL;
}

static void verify_lock(struct look *look, const struct query_lock *lock)
{
    const struct node *silent = silent_node(look, lock->name);
    for (guint i = 0; i < lock->owners->len; i++) {
        const char *owner = ((const struct lock_state *)lock->owners->pdata[i])->owner->job;
        if (has_ended(look, owner))
            look_problem(look, "lock %s: is held by job %s, which has ended", lock->name, owner);
        else if (silent && job_of(look, owner))
            look_problem(look,
                         "job %s: acts on node %s, which does not answer, and may wait for it: "
                         "fettle why %s",
                         owner, silent->name, owner);
    }
}

/* Began under a mastership that is over: it is ended when all nodes have said that nothing of it is
 * under way any more (SAF-06). */
static bool is_of_lost_master(const struct look *look, const struct job *job)
{
    return job->started && !job_state_final(job_state_of(job)) && job->epoch < look->status->epoch;
}

static void verify_lost_jobs(struct look *look)
{
    if (!look->status->nodes_pending->len)
        return;
    g_autoptr(GArray) ids = look->queries->jobs->ids(look->queries->jobs_data);
    g_autoptr(GString) text = g_string_new(NULL), nodes = g_string_new(NULL);
    for (guint i = 0; i < ids->len && look_pause(look); i++) {
        const struct job *job =
            look->queries->jobs->view(look->queries->jobs_data, g_array_index(ids, guint64, i));
        if (job && is_of_lost_master(look, job))
            g_string_append_printf(text, "%s%" G_GUINT64_FORMAT, text->len ? ", " : "", job->id);
    }
    for (guint i = 0; i < look->status->nodes_pending->len; i++)
        g_string_append_printf(nodes, "%s%s", nodes->len ? ", " : "",
                               look_node_name(look, look->status->nodes_pending->pdata[i]));
    if (text->len)
        look_problem(look,
                     "jobs that began under a master before this one: %s; they end, and what waits "
                     "for them goes on, when every node has answered this master. Missing: %s. "
                     "Whoever of them is dead: fettle node modify NODE --offline yes --statement "
                     "\"…\"",
                     text->str, nodes->str);
}

void verify_jobs(struct look *look)
{
    g_autofree char *its = look->node ? g_strdup_printf("node/%s", look->node->name) : NULL;
    g_autoptr(GPtrArray) rows = query_lock_rows(look->locks);
    for (guint i = 0; i < rows->len; i++) {
        const struct query_lock *lock = rows->pdata[i];
        if (!its || g_str_equal(lock->name, its))
            verify_lock(look, lock);
    }
    if (look_whole(look))
        verify_lost_jobs(look);
}
