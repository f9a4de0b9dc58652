/*
 * The call CheckRenewal: whether the member of etcd on a node may leave, to be added anew. What
 * this host's wconfd answers (core/candidate/renewal.h), for those who reach nothing but LUXI.
 */
#pragma once

#include "core/queue/context.h"

/* Takes the request over and answers it later. */
void renewal_call(struct queue_context *context, struct rpc_request *request,
                  const struct luxi_check_renewal_args *args);
