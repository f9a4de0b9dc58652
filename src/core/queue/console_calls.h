/*
 * ConsoleRead and ConsoleWrite: a guest's serial line, asked of its primary node. luxid passes the
 * bytes on and keeps none.
 */
#pragma once

#include "core/queue/context.h"

/* Each takes the request over and answers it later. UNKNOWN_ENTITY: no such instance; WRONG_STATE:
 * its node is offline, it does not run or has printed nothing there; otherwise what the node says,
 * with its name in front. */
void console_calls_read(struct queue_context *context, struct rpc_request *request,
                        const struct luxi_console_read_args *args);
void console_calls_write(struct queue_context *context, struct rpc_request *request,
                         const struct luxi_console_write_args *args);
