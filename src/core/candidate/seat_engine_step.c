/*
 * The end of a change of engine from etcd to the store of this node (docs/design/mastership.md,
 * "Change of engine"): the step was done in etcd, by a process of this node that has ended. The
 * copy of this node, which had everything then, becomes the engine.
 */
#include <string.h>

#include "base/log.h"
#include "core/candidate/seat_private.h"
#include "core/wconfd/engine_change.h"

static bool become_engine(struct seat *seat, const struct engine_left *left, GError **error)
{
    struct config *config = seat_known_config(seat, error);
    if (!config)
        return false;
    bool ok = config_history(config) == left->history && config_serial(config) == left->serial;
    g_autoptr(GPtrArray) changes = ok ? engine_change_commit(config, ENGINE_KIND_SQLITE) : NULL;
    const struct copy_batch last = {left->history, left->epoch, left->serial + 1, changes, NULL};
    if (ok)
        ok = seat->copy->ops->set_role(seat->copy, COPY_ENGINE, &last, error);
    else
        fettle_set_error(
            error, CORRUPT,
            "the configuration left etcd for the store of this node at serial "
            "%" G_GUINT64_FORMAT " of history %" G_GUINT64_FORMAT
            ", and that is at serial %" G_GUINT64_FORMAT " of history %" G_GUINT64_FORMAT
            "; restore a backup: etcd still has it below /fettle/",
            left->serial, left->history, config_serial(config), config_history(config));
    config_free(config);
    return ok;
}

bool seat_take_engine(struct seat *seat, GError **error)
{
    struct engine *engine = seat->env->engine;
    struct engine_left left = {.epoch = 0};
    GError *end = NULL;
    if (!engine->ops->left || !engine->ops->left(engine, &left, error) || left.epoch == 0 ||
        strcmp(left.node, seat->env->node_uuid) != 0 || !replication_stop(seat->replication))
        return false;
    if (!become_engine(seat, &left, error)) {
        if (!task_killed())
            replication_start(seat->replication);
        return false;
    }
    log_warning("", "the store of this node is the engine of the cluster now");
    fettle_set_error(&end, TEMPORARY, "the engine is the store of this node now; starting anew");
    seat_end_soon(seat, end);
    return true;
}
