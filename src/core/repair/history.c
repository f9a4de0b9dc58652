/* See history.h. */
#include "core/repair/history.h"

void repair_find_lost_jobs(struct watcher *watcher, struct repair_tag *tag)
{
    const GArray *ids = watcher_repair_jobs(watcher, tag->id);
    for (guint i = 0; ids != NULL && i < ids->len; i++) {
        g_autofree char *id = g_strdup_printf("%" G_GUINT64_FORMAT, g_array_index(ids, guint64, i));
        if (g_strv_contains((const char *const *)tag->jobs, id))
            continue;
        guint count = g_strv_length(tag->jobs);
        tag->jobs = g_renew(char *, tag->jobs, count + 2);
        tag->jobs[count] = g_steal_pointer(&id);
        tag->jobs[count + 1] = NULL;
    }
}

static const struct job *job_of(const struct watcher *watcher, guint64 id)
{
    g_autofree char *key = g_strdup_printf("%" G_GUINT64_FORMAT, id);
    return config_get(follow_config(watcher->follow), "job", key, NULL);
}

/* What such a job leaves may look healthy and be empty. */
static bool left_blank(const struct watcher *watcher, const struct repair_history *history)
{
    return g_strcmp0(history->step, repair_step_word(REPAIR_STEP_REINSTALL)) == 0 &&
           watcher_job_broke_off(watcher, history->job);
}

/* What the record of the last job says. Without the time of its end it says at least since when the
 * job was known. */
static void add_last(const struct watcher *watcher, struct repair_history *history)
{
    const struct job *job = job_of(watcher, history->job);
    if (job == NULL)
        return;
    history->ended_us = (gint64)MAX(job->end_us, MAX(job->start_us, job->received_us));
    history->step = watcher_request_step(job->request_id);
    history->blank = left_blank(watcher, history);
}

/* "node3", or a refusal of it: "node "node3" cannot …". */
static bool begins_with(const char *part, const char *node)
{
    g_autofree char *refused = g_strdup_printf("node \"%s\" ", node);
    return g_str_equal(part, node) || g_str_has_prefix(part, refused);
}

/* The node that the message of an error begins with, as those of calls to nodes do ("node3: cannot
 * write …"), also behind what was done there; NULL: none. */
static const struct node *node_of_message(const struct watcher *watcher, const char *message)
{
    g_auto(GStrv) parts = g_strsplit(message != NULL ? message : "", ": ", 4);
    g_autoptr(GPtrArray) nodes = config_list(follow_config(watcher->follow), "node");
    for (guint part = 0; part < 3 && parts[part] != NULL && parts[part + 1] != NULL; part++)
        for (guint i = 0; i < nodes->len; i++) {
            const struct node *node = nodes->pdata[i];
            if (begins_with(parts[part], node->name))
                return node;
        }
    return NULL;
}

static void note_failure(const struct watcher *watcher, struct repair_history *history,
                         const char *message)
{
    const struct node *node = node_of_message(watcher, message);
    history->node_failed = node != NULL;
    if (node != NULL)
        g_hash_table_replace(history->failed_on, g_strdup(node->uuid),
                             g_strdup_printf("failed in job %" G_GUINT64_FORMAT, history->job));
}

struct repair_history repair_history_read(const struct watcher *watcher,
                                          const struct repair_tag *tag)
{
    struct repair_history history = {.last = JOB_SUCCEEDED};
    history.failed_on = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    for (guint i = 0; tag->jobs[i] != NULL; i++) {
        g_autofree char *message = NULL;
        history.job = g_ascii_strtoull(tag->jobs[i], NULL, 10);
        history.last = watcher_job_outcome(watcher, history.job, &message);
        history.under_way |= history.last == JOB_UNDER_WAY;
        bool vain = history.last == JOB_NO_ROOM || history.last == JOB_AWAY;
        history.vain = vain ? history.vain + 1 : 0;
        if (history.last == JOB_SUCCEEDED) {
            history.steps++;
            history.failures = history.tries = 0;
        } else if (history.last != JOB_UNDER_WAY) {
            history.failures++;
            history.tries += !vain;
            if (!vain)
                note_failure(watcher, &history, message);
            g_free(history.message);
            history.message = g_steal_pointer(&message);
        }
    }
    add_last(watcher, &history);
    return history;
}

void repair_history_clear(struct repair_history *history)
{
    g_clear_pointer(&history->step, g_free);
    g_clear_pointer(&history->message, g_free);
    g_clear_pointer(&history->failed_on, g_hash_table_unref);
}
