/*
 * A configuration that was put back from a backup. It is older than reality: instances may have
 * been started, moved, removed since. So nothing is started until a person has let the record be
 * compared with what the nodes have (`fettle repair continue`, core/ops/ops_restored.c): the brake
 * of auto-repair stands, marked `restored`, and while it does no generation begins or ends.
 */
#pragma once

#include "core/config/transitions_private.h"

#define BRAKE_KEY "cluster"

/* The brake if it is of that sort, else NULL. */
const struct repair_brake *restored_brake(const struct config *config);

/* What the cluster looks like to who restores it. */
struct restoring {
    const char *node_uuid;   /* that becomes the master */
    guint64 now;             /* seconds since 1970 */
    guint64 taken;           /* when the backup was */
    const char *record_uuid; /* a new one, for the decision record */
    const char *secret;      /* a new one of ConfD; NULL: that of the backup stays */
};
/* What a restore commits: the brake, who is master, every unfinished job ended, job ids that were
 * given out since passed over, no renewal of keys. GPtrArray of struct change. UNKNOWN_ENTITY: the
 * backup has no such node; CORRUPT: no cluster. */
GPtrArray *restored_changes(const struct config *config, const struct restoring *restoring,
                            GError **error);

/* How a step stands to the brake. */
enum restored_step {
    RESTORED_NOT,   /* there is none of that sort */
    RESTORED_HOLDS, /* it was there and stays */
    RESTORED_ENDS,  /* the step removes it: reality is taken over, the rules about steps of
                       instances and replicas do not apply */
};
enum restored_step restored_step(const struct step *step);
/* The words for everything that is refused until then: WRONG_STATE. */
void restored_set_error(GError **error);
/* WRONG_STATE if the instance takes a step that the brake forbids. */
bool restored_instance_rests(const struct instance *old, const struct instance *new,
                             GError **error);
