/*
 * Making images and bringing a replica up to date. See copy.h.
 */
#include "core/ops/copy.h"

#include <string.h>

/* --- images, with their progress --- */

/* Asks how far the node is while the call that makes the images is under way. It outlives that
 * call only by a question that has not been answered yet. */
struct looker {
    struct op *op; /* NULL: the images are made, or the job is being killed */
    const struct env *env;
    struct stamp stamp;
    guint job;
    char *node, *instance, *what;
    struct task *waiting; /* for the next look */
    guint timer;
    guint references;
};

static void looker_unref(struct looker *looker)
{
    if (--looker->references)
        return;
    g_free(looker->node);
    g_free(looker->instance);
    g_free(looker->what);
    g_free(looker);
}

static void looker_wake(struct looker *looker)
{
    struct task *task = looker->waiting;
    looker->waiting = NULL;
    if (task)
        task_wake(task);
}

static void looker_timer_cb(void *data)
{
    struct looker *looker = data;
    looker->timer = 0;
    looker_wake(looker);
}

/* False: there is nothing to look at any more. */
static bool looker_pause(struct looker *looker)
{
    looker->waiting = task_self();
    looker->timer =
        looker->env->ops->timer(looker->env, IMAGE_PROGRESS_MS, looker_timer_cb, looker);
    bool alive = task_wait();
    looker->waiting = NULL;
    if (looker->timer)
        looker->env->ops->timer_cancel(looker->env, looker->timer);
    looker->timer = 0;
    return alive && looker->op;
}

static void looker_run(void *data)
{
    struct looker *looker = data;
    struct disks_progress_args args = {.instance = looker->instance};
    while (looker->op && looker_pause(looker)) {
        /* A node that does not tell says nothing against the images. */
        g_autoptr(GError) ignored = NULL;
        record_autoptr(disks_progress) progress =
            env_call_record(looker->env, looker->node, ROLE_NODED, "disks_progress", &args,
                            looker->stamp, looker->job, 0, &ignored);
        if (progress && progress->running && looker->op)
            op_progress(looker->op, looker->what, progress->done_mib, progress->total_mib, "MiB");
    }
    looker_unref(looker);
}

static struct looker *looker_start(struct op *op, const char *node,
                                   const struct disks_create_args *args)
{
    struct looker *looker = g_new0(struct looker, 1);
    *looker = (struct looker){.op = op,
                              .env = op->env,
                              .stamp = op->stamp,
                              .job = (guint)op->job,
                              .node = g_strdup(node),
                              .instance = g_strdup(args->instance),
                              .what = g_strdup_printf("image %s", args->os_type),
                              .references = 2};
    task_spawn(op->env->tasks, looker_run, looker);
    return looker;
}

static void looker_stop(struct looker *looker)
{
    looker->op = NULL;
    looker_wake(looker);
    looker_unref(looker);
}

bool copy_make_images(struct op *op, const char *node, const struct disks_create_args *args,
                      GError **error)
{
    bool copies = args->os_type && *args->os_type;
    struct looker *looker = copies ? looker_start(op, node, args) : NULL;
    record_autoptr(nothing) done = op_act(op, node, "disks_create", args, ACT_PATIENCE_MS, error);
    if (looker)
        looker_stop(looker);
    return done != NULL;
}

/* --- under a running guest --- */

struct syncing_call {
    enum task_state mark;
    const char *why;
};

static bool edit_syncing(struct instance_edit *edit, void *data, GError **error)
{
    const struct syncing_call *call = data;
    if (!edit->replica) {
        fettle_set_error(error, WRONG_STATE, "instance \"%s\" has no replica any more",
                         edit->instance->name);
        return false;
    }
    edit_mark(edit, call->mark);
    edit_replica(edit, REPLICA_SYNCING, call->why);
    return true;
}

bool copy_set_syncing(struct op *op, const char *uuid, enum task_state mark, const char *why,
                      GError **error)
{
    struct syncing_call call = {mark, why};
    return instance_edit(op, "change_replica", uuid, edit_syncing, &call, error);
}

bool copy_attach(struct op *op, const char *uuid, bool since, GError **error)
{
    record_autoptr(instance) instance = instance_now(op, uuid, error);
    if (!instance)
        return false;
    const struct replica *replica = op_replica_of(op, instance);
    guint64 sync = replica ? replica->sync : 0;
    struct replica_open_args open = {.instance = instance->uuid,
                                     .replica = instance->replica,
                                     .generation = instance->generation,
                                     .disks = instance->disks};
    record_autoptr(export_target) target =
        op_act(op, instance->secondary_node, "replica_open", &open, ACT_PATIENCE_MS, error);
    if (!target)
        return false;
    struct mirror_attach_args args = {.instance = instance->uuid,
                                      .generation = instance->generation,
                                      .target = target,
                                      .sync = sync,
                                      .since = since};
    record_autoptr(nothing) done =
        op_act(op, instance->holder, "mirror_attach", &args, ACT_PATIENCE_MS, error);
    return done != NULL;
}

/* --- at rest --- */

bool copy_at_rest(struct op *op, const char *uuid, enum task_state mark, GError **error)
{
    struct instance_start start = {.mark = mark};
    struct instance_stop stop = {.mark = mark, .after = mark};
    GError *failure = NULL;
    if (!instance_start(op, uuid, &start, error))
        return false;
    if (instance_wait_mirror(op, uuid, &failure))
        return instance_stop(op, uuid, &stop, error);
    g_autoptr(GError) ignored = NULL; /* the mark, or the next start, mends what stays paused */
    if (!fettle_error_is(failure, KILLED))
        instance_stop(op, uuid, &stop, &ignored);
    g_propagate_error(error, failure);
    return false;
}

/* --- conditions --- */

#define ALL_DISKS G_MAXUINT64

static guint64 disks_of(const struct instance *instance)
{
    return (G_GUINT64_CONSTANT(1) << instance->disks->len) - 1;
}

guint64 copy_images(const struct node_report *report, const struct instance *instance,
                    const char *replica)
{
    g_autofree char *name = g_strdup_printf("%s%s%s", instance->uuid, *replica ? " " : "", replica);
    guint at = 0;
    if (!report || !report->images ||
        !g_ptr_array_find_with_equal_func(report->images, name, g_str_equal, &at))
        return 0;
    return copy_images_at(report, at);
}

guint64 copy_images_at(const struct node_report *report, guint set)
{
    bool told = report->image_sets && report->image_sets->len == report->images->len;
    return told ? ((const struct image_set *)report->image_sets->pdata[set])->disks : ALL_DISKS;
}

bool copy_is_whole(const struct instance *instance, guint64 disks)
{
    return (disks_of(instance) & ~disks) == 0;
}

bool copy_has_images(const struct node_report *report, const struct instance *instance,
                     const char *replica)
{
    return copy_is_whole(instance, copy_images(report, instance, replica));
}

char *copy_missing(const struct instance *instance, guint64 disks)
{
    guint64 missing = disks_of(instance) & ~disks;
    g_autoptr(GString) numbers = g_string_new(NULL);
    guint count = 0;
    if (missing == disks_of(instance))
        return g_strdup("the images");
    for (guint i = 0; i < instance->disks->len; i++)
        if (missing & G_GUINT64_CONSTANT(1) << i)
            g_string_append_printf(numbers, "%s%u", count++ ? ", " : "", i);
    return g_strdup_printf(count == 1 ? "the image of disk %s" : "the images of disks %s",
                           numbers->str);
}

bool copy_need_replica(struct op *op, const struct instance *instance, const char *what,
                       GError **error)
{
    if (!*instance->replica)
        return true;
    if (!instance_need_node(op, instance, instance->secondary_node, "secondary", error)) {
        g_prefix_error(error, "its replica %s: ", what);
        return false;
    }
    guint64 disks =
        copy_images(op_report(op, instance->secondary_node), instance, instance->replica);
    if (copy_is_whole(instance, disks))
        return true;
    g_autofree char *missing = copy_missing(instance, disks);
    fettle_set_error(error, WRONG_STATE,
                     "%s does not have %s of the replica of instance \"%s\"; give it another "
                     "first: fettle instance replace-disks %s",
                     op_node_name(op, instance->secondary_node), missing, instance->name,
                     instance->name);
    return false;
}
