/*
 * Copying a volume that a guest has: as it is at one moment, by the guest's own hypervisor, while
 * it runs (SAF-59); where it does not run, like any other (SAF-120). What it writes into is blank
 * data of this work, by its name, which counts once this member has seen it to stable storage.
 */
#include <string.h>

#include "core/storage/volume_private.h"
#include "proto/env_many.h"

#define LOOK_MS 500           /* between two looks; the first ones come sooner */
#define FIRST_LOOK_MS 50      /* small volumes are copied at once */
#define STILL_MS (120 * 1000) /* no byte more, or no answer, for so long: it hangs */
#define CLOSE_TRIES 5

struct point {
    const struct volume_work *work;
    struct volume_member *member; /* of the back end that it is on */
    char *volume, *node;          /* UUIDs; node: whose guest has it, NULL: none is known */
    GPtrArray *nodes;
    enum resource_type type;
    const char *name;
};

/* --- asking --- */

static bool take_node(struct env_answer *answer, void *data)
{
    const struct point_status *status = answer->record;
    struct point *point = data;
    if (status && status->here && !point->node)
        point->node = g_strdup(answer->node);
    return point->node != NULL;
}

static bool ask_all(struct point *point, const char *method, env_answer_fn fn)
{
    struct point_args args = {.volume = point->volume, .claim = point->work->claim};
    const struct env_question question = {.nodes = point->nodes,
                                          .role = ROLE_NODED,
                                          .method = method,
                                          .args = &args,
                                          .stamp = follow_stamp(point->work->caller->follow),
                                          .limit_ms = TIMEOUT_QUICK_MS};
    return env_many(point->work->caller->env, &question, fn, point);
}

static void *ask(const struct point *point, const char *method, const void *args, GError **error)
{
    return env_call_record(point->work->caller->env, point->node, ROLE_NODED, method, args,
                           follow_stamp(point->work->caller->follow), 0, 0, error);
}

static bool ignore(struct env_answer *answer, void *data)
{
    return false;
}

/* --- one copy --- */

static struct point_status *open_point(const struct point *point, GError **error)
{
    const struct point_open_args args = {.volume = point->volume,
                                         .claim = point->work->claim,
                                         .resource_type = point->type,
                                         .name = (char *)point->name};
    return ask(point, "point_open", &args, error);
}

static struct point_status *look_at(const struct point *point, GError **error)
{
    const struct point_args args = {.volume = point->volume, .claim = point->work->claim};
    return ask(point, "point_look", &args, error);
}

static bool came_to(const struct point_status *status, GError **error)
{
    if (status->state == POINT_FAILED)
        fettle_set_error(error, STORAGE, "the copy under its guest ended: %s", status->why);
    else if (status->state == POINT_NONE)
        fettle_set_error(error, WRONG_STATE,
                         "its guest ended, moved or gave it up while it was copied; ask again");
    return status->state == POINT_COPIED;
}

/* By what has been copied, not by the time: a large one takes long. */
static bool await_copied(const struct point *point, GError **error)
{
    const struct env *env = point->work->caller->env;
    g_autoptr(GError) silent = NULL;
    struct point_status *status = open_point(point, &silent);
    gint64 moved_ms = env->ops->boot_ms(env);
    guint64 done = 0;
    if (!status && !fettle_error_is(silent, UNREACHABLE) && !fettle_error_is(silent, TIMEOUT)) {
        g_propagate_error(error, g_steal_pointer(&silent));
        return false;
    }
    for (guint pause_ms = FIRST_LOOK_MS; !status || status->state == POINT_COPYING;
         pause_ms = MIN(pause_ms * 2, LOOK_MS)) {
        gint64 now = env->ops->boot_ms(env);
        if (status && status->done > done) {
            done = status->done;
            moved_ms = now;
        }
        g_clear_pointer(&status, point_status_free);
        if (now - moved_ms > STILL_MS) {
            fettle_set_error(error, TIMEOUT,
                             "the copy under its guest has stood still for %u s%s%s",
                             STILL_MS / 1000, silent ? ": " : "", silent ? silent->message : "");
            return false;
        }
        if (!env_sleep(env, pause_ms))
            return false;
        g_clear_error(&silent);
        status = look_at(point, &silent);
    }
    bool copied = came_to(status, error);
    point_status_free(status);
    return copied;
}

/* It counts once the hypervisor has closed it. What does not come out here its node ends itself. */
static bool close_point(const struct point *point, GError **error)
{
    const struct point_args args = {.volume = point->volume, .claim = point->work->claim};
    g_autoptr(GError) why = NULL;
    for (guint i = 0; i < CLOSE_TRIES && !task_killed(); i++) {
        g_clear_error(&why);
        void *done = ask(point, "point_close", &args, &why);
        if (done) {
            nothing_free(done);
            return true;
        }
        if (!env_sleep(point->work->caller->env, LOOK_MS))
            return false;
    }
    if (why)
        g_propagate_error(error, g_steal_pointer(&why));
    return false;
}

static bool copy(const struct point *point, guint64 size_gib, GError **error)
{
    struct volume_driver *driver = point->member->service->env->volumes;
    const struct backend *backend = point->member->backend;
    if (!driver->ops->prepare(driver, backend, point->type, point->name, size_gib, error))
        return false;
    bool copied = await_copied(point, error);
    bool closed = !task_killed() && close_point(point, copied ? error : NULL);
    return copied && closed &&
           driver->ops->settle(driver, backend, point->type, point->name, size_gib, error);
}

/* --- whose guest it is --- */

GPtrArray *volume_nodes(const struct volume_member *member)
{
    const struct config *config = volume_member_config(member);
    const struct backend *backend = config_get(config, "backend", member->backend->uuid, NULL);
    GPtrArray *nodes = g_ptr_array_new_with_free_func(g_free);
    for (guint i = 0; backend && i < backend->nodes->len; i++) {
        const struct node *node = config_get(config, "node", backend->nodes->pdata[i], NULL);
        if (node && !node->offline)
            g_ptr_array_add(nodes, g_strdup(node->uuid));
    }
    return nodes;
}

static bool begin(struct point *point, const struct volume_work *work, struct volume_member *member)
{
    const struct work_source *source = work->row->source;
    const struct volume *volume =
        source && source->resource_type == RESOURCE_VOLUME
            ? config_get(volume_member_config(member), "volume", source->resource_id, NULL)
            : NULL;
    if (!volume || !volume->attachments->len)
        return false;
    *point = (struct point){.work = work, .member = member, .volume = g_strdup(volume->uuid)};
    point->nodes = volume_nodes(member);
    return true;
}

static void end(struct point *point)
{
    g_free(point->volume);
    g_free(point->node);
    g_ptr_array_unref(point->nodes);
}

/* What a pool copies is of one moment, whoever writes. A node that does not answer may have its
 * guest, too; then a copy finds QEMU's lock, or at its end another life of the instance (SAF-120).
 */
bool volume_point(const struct volume_work *work, struct volume_member *member,
                  enum resource_type type, const char *name, guint64 size_gib, bool *ret_made,
                  GError **error)
{
    struct point point;
    *ret_made = false;
    if (member->backend->kind == BACKEND_RBD || !begin(&point, work, member))
        return true;
    point.type = type;
    point.name = name;
    bool ok = ask_all(&point, "point_look", take_node);
    if (ok && point.node) {
        ok = copy(&point, size_gib, error);
        *ret_made = ok;
    }
    end(&point);
    return ok;
}

bool volume_point_close(const struct volume_work *work, struct volume_member *member)
{
    struct point point;
    if (!begin(&point, work, member))
        return false;
    ask_all(&point, "point_close", ignore);
    end(&point);
    return true;
}
