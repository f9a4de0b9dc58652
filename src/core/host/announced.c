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

/* "node1 (10.0.0.1)", or "" if nobody knows. */
static char *master_place(const struct announce_args *announced)
{
    for (guint i = 0; announced && i < announced->members->len; i++) {
        const struct member *member = announced->members->pdata[i];
        if (!strcmp(member->uuid, announced->master_node))
            return g_strdup_printf("%s (%s)", member->name, member->address);
    }
    return g_strdup("");
}

void announced_refuse(const struct env *env, struct rpc_request *request)
{
    record_autoptr(announce_args) announced = announced_read(env);
    g_autofree char *master = master_place(announced);
    if (announced && !strcmp(announced->master_node, env->node_uuid))
        rpc_fail_new(request, FETTLE_ERROR_NOT_MASTER,
                     "this node is not the master any more, and has not heard of another one");
    else if (*master)
        rpc_fail_new(request, FETTLE_ERROR_NOT_MASTER, "this node is not the master, %s is",
                     master);
    else
        rpc_fail_new(request, FETTLE_ERROR_NOT_MASTER,
                     "this node is not the master, and has not heard of one yet");
}
