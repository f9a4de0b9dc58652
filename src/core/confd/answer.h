/* The answers of ConfD, by type of request (proto/confd.def); used by confd.c. */
#pragma once

#include "core/confd/copy.h"

/* Computed from the copy alone. `ret_reply->answer` is a new reference; its serial is that of the
 * copy. The copy has a cluster. `monitored`: the node whose monitoring asks, with its own key;
 * NULL: who has the cluster's. */
void confd_answer(const struct confd_copy *copy, const struct confd_request *request,
                  const struct node *monitored, struct confd_reply *ret_reply);
