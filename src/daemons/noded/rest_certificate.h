/*
 * The certificate that this node's REST daemon shows, unless the operator has given it another: of
 * a server, made for that use, in var/rapi for that daemon alone (io/rapid_place.h). The node makes
 * it by itself when it is a candidate, and again when it is of an authority that signs no more,
 * ends soon, or is not for the names and addresses on record: the node's and the cluster's. So
 * nobody has to think of it, and a renewal of the keys covers it. One that is of no use to clients,
 * while there is no other to be had, is a fault of the node (core/node/health.h).
 */
#pragma once

#include "core/node/node.h"
#include "io/node_config.h"

struct rest_certificate;

/* In its own task, from now on; all are borrowed. */
struct rest_certificate *rest_certificate_new(const struct env *env, const struct node_paths *paths,
                                              struct node_core *core);
/* The master, the members, the cluster's names or the authorities have changed. NULL: nothing. */
void rest_certificate_kick(struct rest_certificate *certificate);
/* Nothing of the core is looked at any more. */
void rest_certificate_free(struct rest_certificate *certificate);
