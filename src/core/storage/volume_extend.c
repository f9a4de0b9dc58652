/* Making a volume larger, by what can make nothing smaller (SAF-53), and having its guest told. */
#include "core/storage/volume_private.h"
#include "proto/env_many.h"

#define TELL_TRIES 3
#define TELL_PAUSE_MS 5000

/* --- its guest --- */

static bool take_word(struct env_answer *answer, void *all)
{
    *(bool *)all = *(bool *)all && answer->record;
    return false;
}

/* False: not each node that may have its guest has answered, or can right now. */
static bool tell_grown(const struct volume_work *work)
{
    const struct config *config = volume_member_config(work->member);
    const struct volume *volume = work->resource.type == RESOURCE_VOLUME
                                      ? config_get(config, "volume", work->row->resource_id, NULL)
                                      : NULL;
    bool all = true;
    if (!volume || !volume->attachments->len)
        return true;
    g_autoptr(GPtrArray) nodes = volume_nodes(work->member);
    struct volume_grown_args args = {.volume = work->row->resource_id};
    const struct env_question question = {.nodes = nodes,
                                          .role = ROLE_NODED,
                                          .method = "volume_grown",
                                          .args = &args,
                                          .stamp = follow_stamp(work->caller->follow),
                                          .limit_ms = TIMEOUT_QUICK_MS};
    return env_many(work->caller->env, &question, take_word, &all) && all;
}

/* --- the operation --- */

/* As large as it is to be; why it is not. */
static bool is_so_large(const struct volume_work *work, GError **error)
{
    struct volume_driver *driver = work->member->service->env->volumes;
    struct volume_data *data = driver->ops->look(driver, work->member->backend, RESOURCE_VOLUME,
                                                 work->resource.data, error);
    bool large = data && data->bytes >= work->row->size * 1024 * MIB(1);
    if (data && !large)
        fettle_set_error(error, STORAGE,
                         "%s: %s is shorter than it was made, as its guest's hypervisor has cut it "
                         "or others have; extend it again",
                         work->member->backend->name, work->resource.data);
    g_clear_pointer(&data, volume_data_free);
    return large;
}

static bool grow(const struct volume_work *work, GError **error)
{
    struct volume_driver *driver = work->member->service->env->volumes;
    return driver->ops->grow(driver, work->member->backend, work->resource.data, work->row->size,
                             error);
}

/* A hypervisor cuts the file to what it is told, which may be what its node has seen for the
 * extension before this one. Once it knows this size it does not any more: so it is told, then
 * looked whether anything was cut. Where nobody answers the next start opens what is there. */
static bool grow_and_tell(const struct volume_work *work, GError **error)
{
    for (guint i = 0; grow(work, error); i++) {
        g_autoptr(GError) short_of = NULL;
        bool last = i == TELL_TRIES, told = tell_grown(work);
        bool large = is_so_large(work, &short_of);
        if (task_killed() || (large && (told || last)))
            return true;
        if (last) {
            g_propagate_error(error, g_steal_pointer(&short_of));
            return false;
        }
        env_sleep(work->caller->env, TELL_PAUSE_MS);
    }
    return false;
}

enum work_done volume_extend(const struct volume_work *work, struct work_end *end, GError **error)
{
    enum work_done done = volume_done(grow_and_tell(work, error));
    end->size = done == WORK_IS_DONE ? work->row->size : 0;
    return done;
}
