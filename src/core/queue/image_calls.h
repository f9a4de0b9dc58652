/*
 * ReceiveImage, FinishImage, SendImage: where the bytes of an image come in or go out, asked of the
 * volume service that works on it, or of one that serves its back end. The bytes go past luxid.
 */
#pragma once

#include "core/queue/context.h"

/* Each takes the request over and answers it later. UNKNOWN_ENTITY: no such image; WRONG_STATE: it
 * is not received, or not active; TEMPORARY: nobody is there yet, or has time; otherwise what the
 * volume service says, with the name of its node in front. */
void image_calls_receive(struct queue_context *context, struct rpc_request *request,
                         const struct luxi_receive_image_args *args);
void image_calls_finish(struct queue_context *context, struct rpc_request *request,
                        const struct luxi_finish_image_args *args);
void image_calls_send(struct queue_context *context, struct rpc_request *request,
                      const struct luxi_send_image_args *args);
