/*
 * What the rules about steps share (invariants.h): transitions.c has the table of all of them and
 * the plain ones, transitions_move.c those by which an instance gets another primary node,
 * transitions_storage.c those of what is stored.
 */
#pragma once

#include "core/config/invariants.h"

struct step {
    const struct config *after;
    GHashTable *deltas; /* set of const struct config_delta, by kind and key */
    enum invariants_author author;
};

/* The object as it was before the step; NULL if there was none. */
const void *step_before(const struct step *step, const char *kind, const char *key);
const char *step_node_name(const struct step *step, const char *node);
bool step_node_offline(const struct step *step, const char *uuid);

/* A new primary node: by promotion (SAF-16), by migration (SAF-17) or with new disks. */
bool step_primary(const struct step *step, const struct instance *old, const struct instance *after,
                  GError **error);
/* Beginning and end of a migration (SAF-17), and what may not happen in between. */
bool step_migration(const struct step *step, const struct instance *old,
                    const struct instance *after, GError **error);
/* Nothing but the making of new disks itself, or a removal, goes on while its mark stands (SAF-22).
 */
bool step_new_disks(const struct step *step, const struct instance *old,
                    const struct instance *after, GError **error);
/* Disks keep their identity and never shrink, unless they are made anew. */
bool step_disks(const struct step *step, const struct instance *old, const struct instance *after,
                GError **error);

/* A number that only grows. */
bool step_never_less(const char *field, guint64 old, guint64 after, GError **error);

/* Those of transitions_storage.c, for the table. */
bool step_backend(const struct step *step, const struct config_delta *delta, GError **error);
bool step_storage_service(const struct step *step, const struct config_delta *delta,
                          GError **error);
bool step_worker(const struct step *step, const struct config_delta *delta, GError **error);
bool step_resource(const struct step *step, const struct config_delta *delta, GError **error);
bool step_trash(const struct step *step, const struct config_delta *delta, GError **error);
bool step_cleanup(const struct step *step, const struct config_delta *delta, GError **error);
