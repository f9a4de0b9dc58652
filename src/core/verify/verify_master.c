/* What the master says of itself, of the candidates and of its locks; see verify_look.h. */
#include "core/job/job_file.h"
#include "core/job/job_state.h"
#include "core/query/query_rows.h"
#include "core/verify/verify_look.h"

#include <string.h>

/* Hosts can join as long as the master has the key, whoever that is. */
static void verify_authority(struct look *look)
{
    if (look_concerns(look, look->cluster->master_node) && !look->status->authority)
        look_problem(look, "master: /etc/fettle/ca.key is missing, so no host can join; put it "
                           "back from a backup or from a node that has it, with mode 0600");
    for (guint i = 0; i < look->status->copies->len; i++) {
        const struct copy_status *copy = look->status->copies->pdata[i];
        if (look_concerns(look, copy->node) && copy->reachable && !copy->authority)
            look_problem(look,
                         "node %s: does not have the key of the cluster's authority, so as master "
                         "it could let no host in; the log of its fettle-wconfd says why",
                         look_node_name(look, copy->node));
    }
}

/* "run/queue/bad-job-17-TIME": what luxid could not read, and has set aside (job_file.h). */
static void find_bad_job_file(struct look *look, const char *path)
{
    g_auto(GStrv) words = g_strsplit(strrchr(path, '/') + 1, "-", 4);
    look_problem(look,
                 "job file %s of node %s: is no record of job %s and was set aside; the log of its "
                 "fettle-luxid says why. What became of the job is on record: fettle job info %s. "
                 "Look at the disk and at the file, then remove it",
                 path, look_node_name(look, look->cluster->master_node), words[2], words[2]);
}

void verify_master(struct look *look)
{
    const struct cluster_status *status = look->status;
    g_autoptr(GPtrArray) bad_files = job_file_list_bad(look->queries->env);
    for (guint i = 0; look_whole(look) && i < status->problems->len; i++)
        look_problem(look, "configuration: %s", (const char *)status->problems->pdata[i]);
    for (guint i = 0; i < status->nodes_pending->len; i++) {
        const char *node = status->nodes_pending->pdata[i];
        if (look_concerns(look, node))
            look_problem(look,
                         "node %s: has not answered this epoch yet; no lock that covers it is "
                         "granted",
                         look_node_name(look, node));
    }
    for (guint i = 0; look_concerns(look, look->cluster->master_node) && i < bad_files->len; i++)
        find_bad_job_file(look, bad_files->pdata[i]);
    verify_authority(look);
}

/* --- locks --- */

/* Whether it is a job, and none that is under way. */
static bool has_ended(const struct look *look, const char *owner)
{
    const struct queries *queries = look->queries;
    guint64 id;
    if (!g_ascii_isdigit(*owner) ||
        !g_ascii_string_to_unsigned(owner, 10, 1, G_MAXINT64, &id, NULL))
        return false;
    const struct job *job = queries->jobs->view(queries->jobs_data, id);
    return !job || job_state_final(job_state_of(job));
}

void verify_locks(struct look *look)
{
    g_autofree char *its = look->node ? g_strdup_printf("node/%s", look->node->name) : NULL;
    g_autoptr(GPtrArray) rows = query_lock_rows(look->locks);
    for (guint i = 0; i < rows->len; i++) {
        const struct query_lock *lock = rows->pdata[i];
        for (guint k = 0; (!its || g_str_equal(lock->name, its)) && k < lock->owners->len; k++) {
            const char *owner = ((const struct lock_state *)lock->owners->pdata[k])->owner->job;
            if (has_ended(look, owner))
                look_problem(look, "lock %s: is held by job %s, which has ended", lock->name,
                             owner);
        }
    }
}
