/*
 * The call WhatNext: what a person can do about an object (core/repair/what_next.h), by luxid's
 * copy of the configuration and, of a node, by what nodes say now.
 */
#pragma once

#include "core/queue/context.h"

/* Takes the request over and answers it, now or later. */
void what_next_call(struct queue_context *context, struct rpc_request *request,
                    const struct luxi_what_next_args *args);
