/*
 * What ConfD answers from: the configuration of one node's copy at one serial, with the indexes
 * that its questions need, kept up to date change by change. Used by confd.c; filled by
 * fettle-rconfd from the store of its node.
 */
#pragma once

#include "core/config/model.h"
#include "proto/confd.h"

struct confd_copy;

struct confd_copy *confd_copy_new(void);
void confd_copy_free(struct confd_copy *copy);

/* Whether objects of the kind are kept at all; jobs and decisions are nobody's question. */
bool confd_copy_keeps(const char *kind);
/* Puts or deletes one object; `change->version` is the serial that wrote it. WRONG_INPUT as
 * config_apply(); the copy is unchanged then. */
bool confd_copy_apply(struct confd_copy *copy, const struct change *change, GError **error);
void confd_copy_set_position(struct confd_copy *copy, guint64 history, guint64 serial);

/* A copy that is not kept up to date any more. */
void confd_copy_set_retired(struct confd_copy *copy, bool retired);
bool confd_copy_retired(const struct confd_copy *copy);

const struct config *confd_copy_config(const struct confd_copy *copy);
/* NULL if the configuration has none. */
const struct confd_key *confd_copy_key(const struct confd_copy *copy);

/* The key of a node's own monitoring; NULL if the configuration has none. */
struct confd_key *confd_copy_node_key(const struct confd_copy *copy, const struct node *node);
/* The node that has the address, however it is spelled; NULL: none has. */
const struct node *confd_copy_node_at(struct confd_copy *copy, const char *address);

/* UUIDs of the instances that have the node as primary or secondary; a set of char * (keys), NULL
 * if there are none. */
GHashTable *confd_copy_instances_of(const struct confd_copy *copy, const char *node, bool primary);
/* Addresses of instances on a link; keys are the addresses, NULL if there are none. */
GHashTable *confd_copy_addresses_on(const struct confd_copy *copy, const char *link);
/* An instance with that address on the link; NULL: none. */
const struct instance *confd_copy_instance_at(const struct confd_copy *copy, const char *link,
                                              const char *ip);
