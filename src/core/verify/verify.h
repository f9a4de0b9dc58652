/*
 * What is not as it should be, of the whole cluster or only as far as it concerns one node
 * (ARP-70): the LUXI call Verify, which `fettle cluster verify` and `fettle node verify` print.
 * It only asks: the configuration, wconfd, and every node. What lists show too comes from the
 * same fields (core/query), so that it is said once. The check of one instance, which looks at its
 * images and its replica, is a job: OP_INSTANCE_VERIFY.
 */
#pragma once

#include "core/query/query.h"

/* What was found: sentences, in the order in which they are shown. */
struct verified {
    char *node;          /* name of the only one that it is about; NULL: the cluster */
    GPtrArray *problems; /* char *: what is not as it should be */
    GPtrArray *notes;    /* char *: what is worth knowing, and no fault */
};

/* The call: takes the request over and answers it later. */
void verify_call(struct queries *queries, struct rpc_request *request,
                 const struct luxi_verify_args *args);
