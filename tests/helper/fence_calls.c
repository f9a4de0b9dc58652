/* See fence_calls.h. */
#include "helper/fence_calls.h"

#include <string.h>

#include "proto/records.h"

static json_t *announce(struct epoch_fence *fence, const struct rpc_request *request,
                        struct stamp *promised, GError **error)
{
    record_autoptr(announce_args) args = announce_args_parse(request->args, RECORD_LAX, error);
    if (!args || !epoch_fence_announce(fence, request->from_node, args, error))
        return NULL;
    *promised = (struct stamp){args->history, args->epoch};
    return args->asks ? json_pack("{s:b}", "states", 1) : json_object(); /* no guests here */
}

static json_t *promise(struct epoch_fence *fence, const struct rpc_request *request,
                       struct stamp *promised, GError **error)
{
    record_autoptr(promise_epoch_args) args =
        promise_epoch_args_parse(request->args, RECORD_LAX, error);
    record_autoptr(promise_epoch_result) result =
        args ? epoch_fence_promise(fence, request->from_node, args, error) : NULL;
    if (!result)
        return NULL;
    if (result->granted)
        *promised = (struct stamp){args->history, args->epoch};
    return promise_epoch_result_to_json(result);
}

json_t *fence_call(struct epoch_fence *fence, const struct rpc_request *request,
                   struct stamp *ret_promised, GError **error)
{
    struct stamp promised = {0};
    json_t *answer = !strcmp(request->name, "announce") ? announce(fence, request, &promised, error)
                                                        : promise(fence, request, &promised, error);
    if (ret_promised)
        *ret_promised = promised;
    return answer;
}
