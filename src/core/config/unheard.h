/*
 * Words that a new master does not know (SAF-09). A person's word or a restore makes a master whose
 * configuration may lack what the one before answered. Until a node has told what it runs
 * (wconf_stated.c) its record says from when on that may be so: `node.unheard_since`.
 */
#pragma once

#include "core/config/model.h"

/* The node as an object for the commit that makes such a master; one that has not been heard since
 * an earlier one stays as it is. `since` in seconds since 1970. */
json_t *unheard_node(const struct config *config, const struct node *node, guint64 since);

/* From when on the record of this instance may lack a word that its primary node was answered,
 * which it cannot tell because it is offline; 0: it lacks none, or none that matters: only a
 * replica that is on record as in sync can be promoted wrongly. */
guint64 unheard_since(const struct config *config, const struct instance *instance,
                      const struct replica *replica);

/* Whether its holder has told the master that this generation runs: under this master its guest
 * goes on, so a later generation that the one before gave to another node is over. */
bool instance_is_stated(const struct instance *instance);

/* Seconds since 1970 in words; g_free() it. */
char *unheard_time(guint64 seconds);
