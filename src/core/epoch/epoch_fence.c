/*
 * The epoch fence; see epoch_fence.h. In memory a new epoch counts at once, so that requests of
 * lower ones are refused from the first moment; on disk it stands before the announcement or the
 * promise is answered.
 */
#include "core/epoch/believe.h"

#include "proto/seal.h"

#define FORGOTTEN                                                                                  \
    "this node does not know which mastership it has seen; remove the file only if no job runs "   \
    "anywhere"

struct epoch_fence_op {
    struct epoch_fence *fence;
    struct stamp stamp;
    char *from_node;
    guint job;
    const char *method;
};

struct epoch_fence *epoch_fence_new(const struct env *env, const char *cluster_uuid)
{
    struct epoch_fence *fence = g_new0(struct epoch_fence, 1);
    fence->env = env;
    fence->cluster_uuid = g_strdup(cluster_uuid);
    fence->announced = announce_args_new();
    fence->promised = epoch_promise_new();
    fence->ops = g_ptr_array_new();
    fence->waiters = g_ptr_array_new();
    fence->doubted = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_queue_init(&fence->storing.waiters);
    return fence;
}

void epoch_fence_free(struct epoch_fence *fence)
{
    if (!fence)
        return;
    g_assert(fence->ops->len == 0);
    g_ptr_array_unref(fence->ops);
    g_ptr_array_unref(fence->waiters);
    announce_args_free(fence->announced);
    epoch_promise_free(fence->promised);
    g_hash_table_unref(fence->doubted);
    g_free(fence->cluster_uuid);
    g_free(fence);
}

void epoch_fence_set_changed(struct epoch_fence *fence, void (*changed)(void *data), void *data)
{
    fence->changed = changed;
    fence->changed_data = data;
}

struct stamp epoch_fence_stamp(const struct epoch_fence *fence)
{
    return (struct stamp){fence->announced->history, fence->announced->epoch};
}

struct stamp epoch_fence_promised(const struct epoch_fence *fence)
{
    return (struct stamp){fence->promised->history, fence->promised->epoch};
}

struct stamp epoch_fence_highest(const struct epoch_fence *fence)
{
    struct stamp announced = epoch_fence_stamp(fence), promised = epoch_fence_promised(fence);
    return stamp_compare(promised, announced) > 0 ? promised : announced;
}

const struct announce_args *epoch_fence_announced(const struct epoch_fence *fence)
{
    return fence->announced;
}

/* One of its files; NULL without an error: there is none. */
static void *load_record(struct epoch_fence *fence, const char *name, const struct record *record,
                         GError **error)
{
    g_autoptr(GError) why = NULL;
    size_t len = 0;
    g_autofree char *text =
        fence->env->ops->file_read(fence->env, FILE_STATE, name, LIMIT_FRAME_BYTES, &len, &why);
    if (!text && fettle_error_is(why, UNKNOWN_ENTITY))
        return NULL;
    if (!text) {
        g_propagate_prefixed_error(error, g_steal_pointer(&why), "var/%s: ", name);
        return NULL;
    }
    json_autoptr json = seal_from_text(text, len, LIMIT_FRAME_BYTES, &why);
    void *value = json ? record_parse(record, json, RECORD_KEEP, &why) : NULL;
    if (!value)
        fettle_set_error(error, CORRUPT, "var/%s is damaged (%s): " FORGOTTEN, name, why->message);
    return value;
}

bool epoch_fence_load(struct epoch_fence *fence, GError **error)
{
    g_autoptr(GError) why = NULL;
    struct announce_args *announced =
        load_record(fence, ANNOUNCED_FILE, &announce_args_record, &why);
    struct epoch_promise *promised =
        why ? NULL : load_record(fence, PROMISE_FILE, &epoch_promise_record, &why);
    if (announced) {
        announce_args_free(fence->announced);
        fence->announced = announced;
    }
    if (promised) {
        epoch_promise_free(fence->promised);
        fence->promised = promised;
    }
    if (!why)
        return true;
    g_propagate_error(error, g_steal_pointer(&why));
    return false;
}

const struct member *epoch_fence_member(const struct epoch_fence *fence, const char *node)
{
    for (guint i = 0; i < fence->announced->members->len; i++) {
        const struct member *member = fence->announced->members->pdata[i];
        if (strcmp(member->uuid, node) == 0)
            return member;
    }
    return NULL;
}

static bool fence_check_stamp(const struct epoch_fence *fence, struct stamp stamp, GError **error)
{
    struct stamp seen = epoch_fence_highest(fence);
    if (stamp_compare(stamp, seen) < 0) {
        fettle_set_error(
            error, STALE_EPOCH,
            "the request is of history %" G_GUINT64_FORMAT " epoch %" G_GUINT64_FORMAT
            ", this node has %s history %" G_GUINT64_FORMAT " epoch %" G_GUINT64_FORMAT,
            stamp.history, stamp.epoch,
            stamp_compare(seen, epoch_fence_stamp(fence)) > 0 ? "promised to follow" : "seen",
            seen.history, seen.epoch);
        return false;
    }
    if (stamp_compare(stamp, epoch_fence_stamp(fence)) > 0) {
        fettle_set_error(error, TEMPORARY,
                         "history %" G_GUINT64_FORMAT " epoch %" G_GUINT64_FORMAT
                         " was not announced to this node yet; try again",
                         stamp.history, stamp.epoch);
        return false;
    }
    return true;
}

static bool is_method(const struct method *method, const char *server, const char *name)
{
    return strcmp(method->server, server) == 0 && strcmp(method->name, name) == 0;
}

/* What any member may ask under any epoch: it does nothing here, or looks at epochs itself. */
static bool is_free(const struct method *method)
{
    static const char *const of_wconfd[] = {"commit_ids", "follow",       "snapshot",
                                            "take_over",  "wait_changes", "wait_role"};
    for (guint i = 0; i < G_N_ELEMENTS(of_wconfd); i++)
        if (is_method(method, ROLE_WCONFD, of_wconfd[i]))
            return true;
    return is_method(method, ROLE_NODED, "announce") ||
           is_method(method, ROLE_NODED, "promise_epoch") ||
           is_method(method, ROLE_NODED, "node_alive") ||
           is_method(method, ROLE_NODED, "node_report");
}

static void refuse_place(const struct method *method, const char *name, enum method_place place,
                         GError **error)
{
    if (place == PLACE_MASTER)
        fettle_set_error(error, PERMISSION,
                         "node \"%s\" is not the master; only the master's luxid, jobs and "
                         "watcher may call %s",
                         name, method->name);
    else if (place == PLACE_CANDIDATE)
        fettle_set_error(error, PERMISSION,
                         "node \"%s\" is no master candidate; only candidates may call %s", name,
                         method->name);
    else
        fettle_set_error(error, PERMISSION, "node \"%s\" may not call %s: %s", name, method->name,
                         place == PLACE_STRANGER ? "it is for hosts that are no node yet"
                                                 : "it is for this node's own commands");
}

/* What nobody has announced here yet may make it true. */
static bool check_place(const struct epoch_fence *fence, const struct member *from,
                        const char *role, const struct method *method, struct stamp stamp,
                        GError **error)
{
    enum method_place place = method_place_of(method, role);
    const char *master = fence->announced->master_node;
    if (place == PLACE_MEMBER || (place == PLACE_CANDIDATE && from->master_candidate) ||
        (place == PLACE_MASTER && !strcmp(from->uuid, master)))
        return true;
    bool later = stamp_compare(stamp, epoch_fence_stamp(fence)) > 0 || !*master;
    if (later && (place == PLACE_MASTER || place == PLACE_CANDIDATE))
        fettle_set_error(error, TEMPORARY,
                         "history %" G_GUINT64_FORMAT " epoch %" G_GUINT64_FORMAT
                         " was not announced to this node yet; try again",
                         stamp.history, stamp.epoch);
    else
        refuse_place(method, from->name, place, error);
    return false;
}

bool epoch_fence_admit(const struct epoch_fence *fence, const char *from_node,
                       const char *from_role, const struct method *method, struct stamp stamp,
                       GError **error)
{
    bool announce = is_method(method, ROLE_NODED, "announce");
    bool local = epoch_fence_is_local(fence, from_node);
    bool newborn = fence->announced->members->len == 0;

    const struct member *from = local ? NULL : epoch_fence_member(fence, from_node);
    if (!local && !(newborn && announce) && !from) {
        fettle_set_error(error, PERMISSION, "node %s is no member of this cluster%s", from_node,
                         newborn ? ": this node knows no members before the first announcement"
                                 : "");
        return false;
    }
    return (is_free(method) || fence_check_stamp(fence, stamp, error)) &&
           (!from || check_place(fence, from, from_role, method, stamp, error));
}

struct epoch_fence_op *epoch_fence_enter(struct epoch_fence *fence, struct stamp stamp,
                                         const char *from_node, guint job, const char *method,
                                         GError **error)
{
    if (!fence_check_stamp(fence, stamp, error))
        return NULL;
    if (fence->ops->len >= LIMIT_NODE_OPERATIONS) {
        fettle_set_error(error, LIMIT, "%u operations are under way on this node; try again later",
                         fence->ops->len);
        return NULL;
    }
    struct epoch_fence_op *op = g_new0(struct epoch_fence_op, 1);
    op->fence = fence;
    op->stamp = stamp;
    op->from_node = g_strdup(from_node);
    op->job = job;
    op->method = method;
    g_ptr_array_add(fence->ops, op);
    return op;
}

void epoch_fence_leave(struct epoch_fence_op *op)
{
    struct epoch_fence *fence = op->fence;
    g_ptr_array_remove_fast(fence->ops, op);
    g_free(op->from_node);
    g_free(op);
    for (guint i = 0; i < fence->waiters->len; i++)
        promise_complete(fence->waiters->pdata[i]);
    g_ptr_array_set_size(fence->waiters, 0);
}

bool epoch_fence_overtaken(const struct epoch_fence_op *op)
{
    return stamp_compare(op->stamp, epoch_fence_highest(op->fence)) < 0;
}

struct stamp epoch_fence_op_stamp(const struct epoch_fence_op *op)
{
    return op->stamp;
}

const char *epoch_fence_op_from(const struct epoch_fence_op *op)
{
    return op->from_node;
}

guint epoch_fence_op_job(const struct epoch_fence_op *op)
{
    return op->job;
}

const char *epoch_fence_op_method(const struct epoch_fence_op *op)
{
    return op->method;
}

static bool fence_check_announcement(const struct epoch_fence *fence, const char *from_node,
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
    if (stamp_compare(stamp, epoch_fence_highest(fence)) < 0)
        return fence_check_stamp(fence, stamp, error);
    const char *owner = stamp_compare(stamp, epoch_fence_stamp(fence)) == 0 ? known->master_node
                        : stamp_compare(stamp, epoch_fence_promised(fence)) == 0
                            ? fence->promised->node
                            : args->master_node;
    if (strcmp(args->master_node, owner) == 0)
        return true;
    fettle_set_error(error, STALE_EPOCH,
                     "epoch %" G_GUINT64_FORMAT " is the mastership of node %s, not of node %s",
                     args->epoch, owner, args->master_node);
    return false;
}

/* Writes what is known now; concurrent writers come one after the other, the last one wins. */
static bool fence_store(struct epoch_fence *fence, const char *name, GError **error)
{
    if (!task_mutex_lock(&fence->storing)) {
        fettle_set_error(error, KILLED, "the node daemon has ended");
        return false;
    }
    json_autoptr json = strcmp(name, ANNOUNCED_FILE) == 0 ? announce_args_to_json(fence->announced)
                                                          : epoch_promise_to_json(fence->promised);
    g_autofree char *text = seal_to_text(json);
    bool ok = fence->env->ops->file_write(fence->env, FILE_STATE, name, text, strlen(text), error);
    task_mutex_unlock(&fence->storing);
    if (!ok)
        g_prefix_error(error, "var/%s: ", name);
    return ok;
}

static bool fence_has_lower(const struct epoch_fence *fence, struct stamp stamp)
{
    for (guint i = 0; i < fence->ops->len; i++) {
        const struct epoch_fence_op *op = fence->ops->pdata[i];
        if (stamp_compare(op->stamp, stamp) < 0)
            return true;
    }
    return false;
}

static bool fence_wait_lower(struct epoch_fence *fence, struct stamp stamp, GError **error)
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
static bool fence_check_again(const struct epoch_fence *fence, const struct announce_args *args,
                              GError **error)
{
    const struct announce_args *known = fence->announced;
    struct stamp stamp = {args->history, args->epoch};
    if (stamp_compare(stamp, epoch_fence_stamp(fence)) == 0 && args->serial == known->serial)
        return true;
    fettle_set_error(error, WRONG_STATE,
                     "this node has members %" G_GUINT64_FORMAT " of epoch %" G_GUINT64_FORMAT
                     ", not %" G_GUINT64_FORMAT " of epoch %" G_GUINT64_FORMAT
                     "; announce them whole",
                     known->serial, known->epoch, args->serial, args->epoch);
    return false;
}

bool epoch_fence_announce(struct epoch_fence *fence, const char *from_node,
                          const struct announce_args *args, GError **error)
{
    /* Twice: others may have come while its signature was looked at. */
    if (!fence_check_announcement(fence, from_node, args, error) ||
        !epoch_fence_believes(fence, from_node, args, error) ||
        !fence_check_announcement(fence, from_node, args, error))
        return false;
    if (args->again)
        return fence_check_again(fence, args, error);
    struct stamp stamp = {args->history, args->epoch};
    bool newer = stamp_compare(stamp, epoch_fence_stamp(fence)) > 0;
    if (newer || args->serial >= fence->announced->serial) {
        announce_args_free(fence->announced);
        fence->announced = announce_args_copy(args);
        fence->announced->asks = false; /* no part of what is remembered */
        g_hash_table_remove_all(fence->doubted);
        if (fence->changed)
            fence->changed(fence->changed_data);
    }
    if (!fence_store(fence, ANNOUNCED_FILE, error) || !fence_wait_lower(fence, stamp, error))
        return false;
    /* Overtaken while it waited: the newer announcement is the one to answer. */
    if (stamp_compare(stamp, epoch_fence_highest(fence)) < 0)
        return fence_check_stamp(fence, stamp, error);
    return true;
}

/* --- promises --- */

/* What was heard of a mastership; its texts are the fence's. */
struct word {
    struct stamp stamp;
    const char *node, *signature;
    bool begun;
};

static struct word announced_word(const struct epoch_fence *fence)
{
    return (struct word){epoch_fence_stamp(fence), fence->announced->master_node,
                         fence->announced->signature, true};
}

static struct word promised_word(const struct epoch_fence *fence)
{
    return (struct word){epoch_fence_promised(fence), fence->promised->node,
                         fence->promised->signature, fence->promised->begun};
}

static struct word highest_word(const struct epoch_fence *fence)
{
    bool announced = stamp_compare(epoch_fence_stamp(fence), epoch_fence_promised(fence)) >= 0;
    return announced ? announced_word(fence) : promised_word(fence);
}

/* The highest mastership of another node than `node` that has surely begun; epoch 0: none. */
static struct word begun_elsewhere(const struct epoch_fence *fence, const char *node)
{
    struct word announced = announced_word(fence), promised = promised_word(fence);
    struct word highest = {.node = "", .signature = ""};
    if (strcmp(announced.node, node) != 0)
        highest = announced;
    if (promised.begun && strcmp(promised.node, node) != 0 &&
        stamp_compare(promised.stamp, highest.stamp) > 0)
        highest = promised;
    return highest;
}

/* One that the asker knows nothing of. */
static bool begun_since(const struct epoch_fence *fence, const struct promise_epoch_args *args,
                        struct word *ret_word)
{
    struct stamp since = {args->history, args->since};
    *ret_word = begun_elsewhere(fence, args->node);
    return stamp_compare(ret_word->stamp, since) > 0;
}

static bool may_promise(const struct epoch_fence *fence, const struct promise_epoch_args *args)
{
    struct stamp wanted = {args->history, args->epoch};
    struct word later;
    int order = stamp_compare(wanted, epoch_fence_highest(fence));
    if (args->epoch == 0 || begun_since(fence, args, &later) || order < 0)
        return false;
    return order > 0 || strcmp(highest_word(fence).node, args->node) == 0;
}

static struct promise_epoch_result *promise_refused(const struct epoch_fence *fence,
                                                    const struct promise_epoch_args *args)
{
    struct promise_epoch_result *result = promise_epoch_result_new();
    struct word word = highest_word(fence), later;
    /* A later mastership counts for more than a promise on top of it. */
    if (args->epoch != 0 && begun_since(fence, args, &later))
        word = later;
    result->history = word.stamp.history;
    result->epoch = word.stamp.epoch;
    result->begun = word.begun;
    text_set(&result->node, word.node);
    text_set(&result->signature, word.signature);
    return result;
}

/* Takes it over in memory; whether it has to be written. */
static bool promise_take(struct epoch_fence *fence, const struct promise_epoch_args *args)
{
    struct stamp wanted = {args->history, args->epoch};
    struct epoch_promise *promised = fence->promised;
    bool same = stamp_compare(wanted, epoch_fence_promised(fence)) == 0;
    if (stamp_compare(wanted, epoch_fence_stamp(fence)) == 0)
        return false; /* more than promised: announced */
    if (same && (promised->begun || !args->begins))
        return false;
    promised->history = args->history;
    promised->epoch = args->epoch;
    promised->begun = args->begins;
    text_set(&promised->node, args->node);
    text_set(&promised->signature, args->signature);
    return true;
}

struct promise_epoch_result *epoch_fence_promise(struct epoch_fence *fence, const char *from_node,
                                                 const struct promise_epoch_args *args,
                                                 GError **error)
{
    if (strcmp(args->node, from_node) != 0) {
        fettle_set_error(error, PERMISSION,
                         "the promise is for node %s but is asked for by node %s", args->node,
                         from_node);
        return NULL;
    }
    if (may_promise(fence, args) && !epoch_fence_trusts(fence, from_node, args, error))
        return NULL;
    if (!may_promise(fence, args))
        return promise_refused(fence, args);
    /* A write that has failed left memory ahead of the disk: what is there is written again. */
    fence->unwritten = promise_take(fence, args) || fence->unwritten;
    if (fence->unwritten && !fence_store(fence, PROMISE_FILE, error))
        return NULL;
    fence->unwritten = false;
    struct promise_epoch_result *result = promise_epoch_result_new();
    result->granted = true;
    return result;
}
