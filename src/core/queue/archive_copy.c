/* The archives of candidates: written alike, and made equal when one comes new or back; see
 * archiver.h. Files in them never change, so that each gets what only the other has. */
#include "core/queue/archiver.h"

#include "core/job/archive.h"

#define ID G_GUINT64_FORMAT

static const struct node *node_of(const struct archiver *archiver, const char *uuid)
{
    return config_get(follow_config(archiver->context->follow), "node", uuid, NULL);
}

static bool counts(const struct archiver *archiver, const char *uuid)
{
    const struct node *node = node_of(archiver, uuid);
    return node && node->master_candidate && !node->offline;
}

GPtrArray *archiver_candidates(const struct archiver *archiver)
{
    const char *self = archiver->context->env->node_uuid;
    g_autoptr(GPtrArray) nodes = config_list(follow_config(archiver->context->follow), "node");
    GPtrArray *candidates = g_ptr_array_new_with_free_func(g_free);
    g_ptr_array_add(candidates, g_strdup(self));
    for (guint i = 0; i < nodes->len; i++) {
        const struct node *node = nodes->pdata[i];
        if (counts(archiver, node->uuid) && !g_str_equal(node->uuid, self))
            g_ptr_array_add(candidates, g_strdup(node->uuid));
    }
    return candidates;
}

/* --- calls of node daemons --- */

/* Errors name the node, and what a person can do if it does not answer. */
static void *ask(const struct archiver *archiver, const char *node, const char *method,
                 const void *args, GError **error)
{
    const struct queue_context *context = archiver->context;
    g_autoptr(GError) why = NULL;
    void *answer = env_call_record(context->env, node, ROLE_NODED, method, args,
                                   follow_stamp(context->follow), 0, 0, &why);
    if (answer)
        return answer;
    g_propagate_prefixed_error(error, g_steal_pointer(&why),
                               "jobs stay on record until candidate %s has them in its "
                               "archive, or is marked offline: ",
                               config_node_name(follow_config(context->follow), node));
    return NULL;
}

bool archiver_put(const struct archiver *archiver, const char *node, json_t *jobs, GError **error)
{
    const struct archive_jobs args = {.jobs = jobs};
    record_autoptr(nothing) done = ask(archiver, node, "archive_put", &args, error);
    return done != NULL;
}

static GArray *numbers_from(const json_t *list)
{
    GArray *numbers = g_array_new(FALSE, FALSE, sizeof(guint64));
    size_t i;
    const json_t *item;
    json_array_foreach(list, i, item) {
        guint64 number = (guint64)MAX(json_integer_value(item), 0);
        g_array_append_val(numbers, number);
    }
    return numbers;
}

/* `folder` -1: the numbers of all folders. */
static GArray *list_of(const struct archiver *archiver, const char *node, gint64 folder,
                       GError **error)
{
    const struct archive_list_args args = {.folder = folder};
    record_autoptr(archive_list_result) list = ask(archiver, node, "archive_list", &args, error);
    if (!list)
        return NULL;
    return numbers_from(folder < 0 ? list->folders : list->ids);
}

/* --- copying --- */

/* From one node's archive to another's; both are asked through their node daemons. */
static bool copy_step(const struct archiver *archiver, const char *from, const char *to,
                      json_t *ids, GError **error)
{
    const struct archive_get_args args = {.ids = ids};
    record_autoptr(archive_jobs) jobs = ask(archiver, from, "archive_get", &args, error);
    return jobs && archiver_put(archiver, to, jobs->jobs, error);
}

/* What is in `have` and not in `other`, both ascending. A step whose answer was cut short leaves
 * the rest to the next comparison. */
static bool copy_missing(const struct archiver *archiver, const char *from, const GArray *have,
                         const char *to, const GArray *other, GError **error)
{
    json_autoptr ids = json_array();
    guint k = 0;
    for (guint i = 0; i < have->len; i++) {
        guint64 id = g_array_index(have, guint64, i);
        while (k < other->len && g_array_index(other, guint64, k) < id)
            k++;
        if (k == other->len || g_array_index(other, guint64, k) != id)
            json_array_append_new(ids, json_integer((json_int_t)id));
        if (json_array_size(ids) < LIMIT_ARCHIVE_STEP && i + 1 < have->len)
            continue;
        if (json_array_size(ids) > 0 && !copy_step(archiver, from, to, ids, error))
            return false;
        json_array_clear(ids);
    }
    return true;
}

static bool compare_folder(const struct archiver *archiver, const char *node, guint64 folder,
                           GError **error)
{
    const char *self = archiver->context->env->node_uuid;
    g_autoptr(GArray) ours = list_of(archiver, self, (gint64)folder, error);
    g_autoptr(GArray) theirs = ours ? list_of(archiver, node, (gint64)folder, error) : NULL;
    return theirs && copy_missing(archiver, self, ours, node, theirs, error) &&
           copy_missing(archiver, node, theirs, self, ours, error);
}

static bool compare_with(const struct archiver *archiver, const char *node, GError **error)
{
    const char *self = archiver->context->env->node_uuid;
    g_autoptr(GArray) ours = list_of(archiver, self, -1, error);
    g_autoptr(GArray) theirs = ours ? list_of(archiver, node, -1, error) : NULL;
    guint i = 0, k = 0;
    if (!theirs)
        return false;
    while (i < ours->len || k < theirs->len) {
        guint64 a = i < ours->len ? g_array_index(ours, guint64, i) : G_MAXUINT64;
        guint64 b = k < theirs->len ? g_array_index(theirs, guint64, k) : G_MAXUINT64;
        if (!compare_folder(archiver, node, MIN(a, b), error))
            return false;
        i += a <= b;
        k += b <= a;
    }
    return true;
}

static gboolean counts_no_more(gpointer uuid, gpointer unused, gpointer archiver)
{
    return !counts(archiver, uuid);
}

void archiver_nodes_changed(struct archiver *archiver)
{
    g_hash_table_foreach_remove(archiver->equal, counts_no_more, archiver);
    env_pause_end(&archiver->pause);
}

/* In turn with steps: what is archived meanwhile goes to the new one, too. */
static bool compare_in_turn(struct archiver *archiver, const char *node, GError **error)
{
    if (!task_mutex_lock(&archiver->turn)) {
        fettle_set_error(error, KILLED, "luxid has ended");
        return false;
    }
    bool equal = compare_with(archiver, node, error);
    task_mutex_unlock(&archiver->turn);
    return equal;
}

bool archiver_make_equal(struct archiver *archiver, GError **error)
{
    g_autoptr(GPtrArray) nodes = archiver_candidates(archiver);
    for (guint i = 1; i < nodes->len; i++) {
        const char *node = nodes->pdata[i];
        if (g_hash_table_contains(archiver->equal, node))
            continue;
        /* Before, so that it is taken out again if it goes away meanwhile. */
        g_hash_table_add(archiver->equal, g_strdup(node));
        if (!compare_in_turn(archiver, node, error)) {
            g_hash_table_remove(archiver->equal, node);
            return false;
        }
    }
    return true;
}
