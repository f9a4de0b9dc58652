/* See announced.h. The file is written by core/epoch/epoch_fence.c. */
#include "core/host/announced.h"

#include <string.h>

#include "proto/seal.h"

struct announce_args *announced_read(const struct env *env)
{
    size_t len = 0;
    g_autofree char *text =
        env->ops->file_read(env, FILE_STATE, ANNOUNCED_FILE, LIMIT_FRAME_BYTES, &len, NULL);
    json_autoptr json = text ? seal_from_text(text, len, LIMIT_FRAME_BYTES, NULL) : NULL;
    return json ? announce_args_parse(json, RECORD_LAX, NULL) : NULL;
}

/* NULL: nobody knows. */
static const char *name_of(const struct announce_args *announced, const char *uuid)
{
    for (guint i = 0; announced && i < announced->members->len; i++) {
        const struct member *member = announced->members->pdata[i];
        if (!strcmp(member->uuid, uuid))
            return member->name;
    }
    return NULL;
}

void announced_refuse(const struct env *env, struct rpc_request *request)
{
    record_autoptr(announce_args) announced = announced_read(env);
    const char *master = announced ? name_of(announced, announced->master_node) : NULL;
    const char *self = name_of(announced, env->node_uuid);
    if (announced && !strcmp(announced->master_node, env->node_uuid))
        rpc_fail_new(request, FETTLE_ERROR_NOT_MASTER,
                     "this node is not the master any more, and has not heard of another one");
    else if (master)
        rpc_fail_new(request, FETTLE_ERROR_NOT_MASTER, "%s is not the master; the master is %s",
                     self ? self : "this node", master);
    else
        rpc_fail_new(request, FETTLE_ERROR_NOT_MASTER,
                     "this node is not the master, and has not heard of one yet");
}
