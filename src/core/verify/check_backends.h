/*
 * Whether back ends of volumes work, from each of their nodes and between them: the LUXI call
 * VerifyBackends, which `fettle backend verify` prints. Each is asked alone first; then those for
 * whom it works together, as one of them holds locks that the others must be refused.
 */
#pragma once

#include "core/query/query.h"

/* Takes the request over and answers it later. */
void check_backends_call(struct queries *queries, struct rpc_request *request,
                         const struct luxi_verify_backends_args *args);
