/*
 * The epoch fence; see fence.h. In memory a new epoch counts at once, so that requests of lower
 * ones are refused from the first moment; on disk it stands before the announcement is answered.
 */
#include "core/guest/fence.h"

#define STATE_FILE "node/state.json"

struct fence {
    const struct env *env;
    char *cluster_uuid;
    struct announce_args *announced;
    GPtrArray *ops;     /* struct fence_op, borrowed */
    GPtrArray *waiters; /* struct promise, owned by the waiting announcements */
    struct task_mutex storing;
    void (*changed)(void *data);
    void *changed_data;
};

struct fence_op {
    struct fence *fence;
    struct stamp stamp;
    char *from_node;
};

int stamp_compare(struct stamp a, struct stamp b)
{
    if (a.history != b.history)
        return a.history < b.history ? -1 : 1;
    if (a.epoch != b.epoch)
        return a.epoch < b.epoch ? -1 : 1;
    return 0;
}

struct fence *fence_new(const struct env *env, const char *cluster_uuid)
{
    struct fence *fence = g_new0(struct fence, 1);
    fence->env = env;
    fence->cluster_uuid = g_strdup(cluster_uuid);
    fence->announced = announce_args_new();
    fence->ops = g_ptr_array_new();
    fence->waiters = g_ptr_array_new();
    g_queue_init(&fence->storing.waiters);
    return fence;
}

void fence_free(struct fence *fence)
{
    if (!fence)
        return;
    g_assert(fence->ops->len == 0);
    g_ptr_array_unref(fence->ops);
    g_ptr_array_unref(fence->waiters);
    announce_args_free(fence->announced);
    g_free(fence->cluster_uuid);
    g_free(fence);
}

void fence_set_changed(struct fence *fence, void (*changed)(void *data), void *data)
{
    fence->changed = changed;
    fence->changed_data = data;
}

struct stamp fence_stamp(const struct fence *fence)
{
    return (struct stamp){fence->announced->history, fence->announced->epoch};
}

const struct announce_args *fence_announced(const struct fence *fence)
{
    return fence->announced;
}

bool fence_load(struct fence *fence, GError **error)
{
    g_autoptr(GError) why = NULL;
    size_t len = 0;
    g_autofree char *text = fence->env->ops->file_read(fence->env, FILE_STATE, STATE_FILE,
                                                       LIMIT_FRAME_BYTES, &len, &why);
    if (!text && fettle_error_is(why, UNKNOWN_ENTITY))
        return true;
    if (!text) {
        g_propagate_prefixed_error(error, g_steal_pointer(&why), "var/" STATE_FILE ": ");
        return false;
    }
    json_autoptr json = json_parse_limited(text, len, LIMIT_FRAME_BYTES, &why);
    struct announce_args *announced = json ? announce_args_parse(json, RECORD_KEEP, &why) : NULL;
    if (!announced) {
        fettle_set_error(error, CORRUPT,
                         "var/" STATE_FILE " is damaged (%s): this node does not know which "
                         "mastership it has seen; remove the file only if no job runs anywhere",
                         why->message);
        return false;
    }
    announce_args_free(fence->announced);
    fence->announced = announced;
    return true;
}

static bool fence_is_member(const struct fence *fence, const char *node)
{
    for (guint i = 0; i < fence->announced->members->len; i++) {
        const struct member *member = fence->announced->members->pdata[i];
        if (strcmp(member->uuid, node) == 0)
            return true;
    }
    return false;
}

static bool fence_check_stamp(const struct fence *fence, struct stamp stamp, GError **error)
{
    struct stamp seen = fence_stamp(fence);
    int order = stamp_compare(stamp, seen);
    if (order < 0) {
        fettle_set_error(error, STALE_EPOCH,
                         "the request is of history %" G_GUINT64_FORMAT " epoch %" G_GUINT64_FORMAT
                         ", this node has seen history %" G_GUINT64_FORMAT
                         " epoch %" G_GUINT64_FORMAT,
                         stamp.history, stamp.epoch, seen.history, seen.epoch);
        return false;
    }
    if (order > 0) {
        fettle_set_error(error, TEMPORARY,
                         "history %" G_GUINT64_FORMAT " epoch %" G_GUINT64_FORMAT
                         " was not announced to this node yet; try again",
                         stamp.history, stamp.epoch);
        return false;
    }
    return true;
}

bool fence_admit(const struct fence *fence, const char *from_node, const struct method *method,
                 struct stamp stamp, GError **error)
{
    bool to_noded = strcmp(method->server, ROLE_NODED) == 0;
    bool announce = to_noded && strcmp(method->name, "announce") == 0;
    bool local = strcmp(from_node, fence->env->node_uuid) == 0;
    bool newborn = fence->announced->members->len == 0;

    if (!local && !(newborn && announce) && !fence_is_member(fence, from_node)) {
        fettle_set_error(error, PERMISSION, "node %s is no member of this cluster%s", from_node,
                         newborn ? ": this node knows no members before the first announcement"
                                 : "");
        return false;
    }
    if (announce || (to_noded && strcmp(method->name, "node_report") == 0))
        return true;
    return fence_check_stamp(fence, stamp, error);
}

struct fence_op *fence_enter(struct fence *fence, struct stamp stamp, const char *from_node,
                             GError **error)
{
    if (!fence_check_stamp(fence, stamp, error))
        return NULL;
    if (fence->ops->len >= LIMIT_NODE_OPERATIONS) {
        fettle_set_error(error, LIMIT, "%u operations are under way on this node; try again later",
                         fence->ops->len);
        return NULL;
    }
    struct fence_op *op = g_new0(struct fence_op, 1);
    op->fence = fence;
    op->stamp = stamp;
    op->from_node = g_strdup(from_node);
    g_ptr_array_add(fence->ops, op);
    return op;
}

void fence_leave(struct fence_op *op)
{
    struct fence *fence = op->fence;
    g_ptr_array_remove_fast(fence->ops, op);
    g_free(op->from_node);
    g_free(op);
    for (guint i = 0; i < fence->waiters->len; i++)
        promise_complete(fence->waiters->pdata[i]);
    g_ptr_array_set_size(fence->waiters, 0);
}

bool fence_overtaken(const struct fence_op *op)
{
    return stamp_compare(op->stamp, fence_stamp(op->fence)) < 0;
}

struct stamp fence_op_stamp(const struct fence_op *op)
{
    return op->stamp;
}

const char *fence_op_from(const struct fence_op *op)
{
    return op->from_node;
}

static bool fence_check_announcement(const struct fence *fence, const char *from_node,
                                     const struct announce_args *args, GError **error)
{
    const struct announce_args *known = fence->announced;
    struct stamp stamp = {args->history, args->epoch};
    if (strcmp(args->cluster, fence->cluster_uuid) != 0) {
        fettle_set_error(error, PERMISSION,
                         "the announcement is of cluster %s, this node belongs to cluster %s",
                         args->cluster, fence->cluster_uuid);
        return false;
    }
    if (strcmp(args->master_node, from_node) != 0) {
        fettle_set_error(error, PERMISSION,
                         "the announcement names node %s as master but comes from node %s",
                         args->master_node, from_node);
        return false;
    }
    if (args->epoch == 0) {
        fettle_set_error(error, WRONG_INPUT, "epoch: must be at least 1");
        return false;
    }
    int order = stamp_compare(stamp, fence_stamp(fence));
    if (order < 0)
        return fence_check_stamp(fence, stamp, error);
    if (order == 0 && strcmp(args->master_node, known->master_node) != 0) {
        fettle_set_error(error, STALE_EPOCH,
                         "epoch %" G_GUINT64_FORMAT " is the mastership of node %s, not of node %s",
                         args->epoch, known->master_node, args->master_node);
        return false;
    }
    return true;
}

/* Writes what is known now; concurrent announcements write one after the other, the last one wins.
 */
static bool fence_store(struct fence *fence, GError **error)
{
    if (!task_mutex_lock(&fence->storing)) {
        fettle_set_error(error, KILLED, "the node daemon has ended");
        return false;
    }
    json_autoptr json = announce_args_to_json(fence->announced);
    g_autofree char *text = json_to_text(json);
    bool ok =
        fence->env->ops->file_write(fence->env, FILE_STATE, STATE_FILE, text, strlen(text), error);
    task_mutex_unlock(&fence->storing);
    if (!ok)
        g_prefix_error(error, "var/" STATE_FILE ": ");
    return ok;
}

static bool fence_has_lower(const struct fence *fence, struct stamp stamp)
{
    for (guint i = 0; i < fence->ops->len; i++) {
        const struct fence_op *op = fence->ops->pdata[i];
        if (stamp_compare(op->stamp, stamp) < 0)
            return true;
    }
    return false;
}

static bool fence_wait_lower(struct fence *fence, struct stamp stamp, GError **error)
{
    while (fence_has_lower(fence, stamp)) {
        struct promise ended = {0};
        g_ptr_array_add(fence->waiters, &ended);
        if (!promise_wait(&ended)) {
            g_ptr_array_remove(fence->waiters, &ended);
            fettle_set_error(error, KILLED, "the node daemon has ended");
            return false;
        }
    }
    return true;
}

/* It is stored already, or it would not have been answered. */
static bool fence_check_again(const struct fence *fence, const struct announce_args *args,
                              GError **error)
{
    const struct announce_args *known = fence->announced;
    struct stamp stamp = {args->history, args->epoch};
    if (stamp_compare(stamp, fence_stamp(fence)) == 0 && args->serial == known->serial)
        return true;
    fettle_set_error(error, WRONG_STATE,
                     "this node has members %" G_GUINT64_FORMAT " of epoch %" G_GUINT64_FORMAT
                     ", not %" G_GUINT64_FORMAT " of epoch %" G_GUINT64_FORMAT
                     "; announce them whole",
                     known->serial, known->epoch, args->serial, args->epoch);
    return false;
}

bool fence_announce(struct fence *fence, const char *from_node, const struct announce_args *args,
                    GError **error)
{
    if (!fence_check_announcement(fence, from_node, args, error))
        return false;
    if (args->again)
        return fence_check_again(fence, args, error);
    struct stamp stamp = {args->history, args->epoch};
    bool newer = stamp_compare(stamp, fence_stamp(fence)) > 0;
    if (newer || args->serial >= fence->announced->serial) {
        announce_args_free(fence->announced);
        fence->announced = announce_args_copy(args);
        if (fence->changed)
            fence->changed(fence->changed_data);
    }
    if (!fence_store(fence, error) || !fence_wait_lower(fence, stamp, error))
        return false;
    /* Overtaken while it waited: the newer announcement is the one to answer. */
    if (stamp_compare(stamp, fence_stamp(fence)) < 0)
        return fence_check_stamp(fence, stamp, error);
    return true;
}
