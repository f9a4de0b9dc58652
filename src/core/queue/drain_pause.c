/* SetDrainFlag and SetWatcherPause; see calls.h. */
#include "core/queue/calls.h"

#define KEY "switches"

struct switching {
    struct queue_context *context;
    struct rpc_request *request;
    struct switches wanted; /* what the call names; the rest is as it was */
    bool drain;             /* SetDrainFlag, else SetWatcherPause */
    json_t *answer;
};

static void switching_done(const GError *error, void *data)
{
    struct switching *switching = data;
    if (error)
        rpc_fail(switching->request, error);
    else
        rpc_answer(switching->request, json_incref(switching->answer));
    json_decref(switching->answer);
    g_free(switching);
}

static bool build_switches(struct commit_batch *batch, void *data, GError **error)
{
    const struct switching *switching = data;
    const struct switches *now = config_switches(batch->config);
    record_autoptr(switches) switches = now ? switches_copy(now) : switches_new();
    if (!switching->drain) {
        switches->watcher_paused_until = switching->wanted.watcher_paused_until;
    } else if (switches->drained != switching->wanted.drained) {
        switches->drained = switching->wanted.drained;
        switches->drained_since =
            switches->drained ? context_now_us(switching->context) / (guint64)G_USEC_PER_SEC : 0;
    }
    g_ptr_array_add(batch->changes,
                    config_put(batch->config, KEY, KEY, switches_to_json(switches)));
    return true;
}

static void change_switches(const struct switching *from)
{
    const struct commit_item item = {.build = build_switches,
                                     .done = switching_done,
                                     .data = g_memdup2(from, sizeof(*from)),
                                     .changes = 1,
                                     .bytes = 256};
    committer_add(from->context->committer, &item);
}

void call_set_drain_flag(struct queue_context *context, struct rpc_request *request,
                         const struct luxi_set_drain_flag_args *args)
{
    const struct switching switching = {.context = context,
                                        .request = request,
                                        .wanted = {.drained = args->drained},
                                        .drain = true,
                                        .answer = json_true()};
    change_switches(&switching);
}

void call_set_watcher_pause(struct queue_context *context, struct rpc_request *request,
                            const struct luxi_set_watcher_pause_args *args)
{
    guint64 now = context_now_us(context) / (guint64)G_USEC_PER_SEC;
    guint64 until = (guint64)args->until > now ? (guint64)args->until : 0;
    const struct switching switching = {.context = context,
                                        .request = request,
                                        .wanted = {.watcher_paused_until = until},
                                        .answer = until == 0 ? json_null()
                                                             : json_integer((json_int_t)until)};
    change_switches(&switching);
}
