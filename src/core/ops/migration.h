/*
 * The ends of a live migration (SAF-17; docs/design/procedures.md, "Migration"): what its own job
 * and the one that settles it after a death have in common. Every function can be cut off after any
 * call and repeated; as long as the migration is not over it stays on record, with its mark.
 *
 * There are two ends. The guest has gone over: the record says so since set_migrated, and the other
 * node is made to run it. Or it has not: what waits on the other node is ended, its exit seen, and
 * only then the migration is cleared.
 */
#pragma once

#include "core/ops/instance.h"

/* How it ended, as far as that is known. */
struct migration_end {
    bool moved;
    bool canceled; /* because somebody wanted it so */
    char *why;     /* of a failure; NULL: none is known */
};
void migration_end_clear(struct migration_end *end);

/* Waits for the end on the node that the guest leaves, with its progress in the job's log; a wish
 * to cancel the job is passed on. False: that node can tell nothing, or the process is being
 * killed. */
bool migration_follow(struct op *op, const struct instance *instance, struct migration_end *ret_end,
                      GError **error);

/* Finds out how the migration on record ended, ending it if it is still under way, and does what is
 * left to do for that end. Nothing on record: only a mark left behind is cleared. */
bool migration_settle(struct op *op, const char *uuid, struct migration_end *ret_end,
                      GError **error);
/* The guest has gone over: lets it run there, gives it its mirror to the node that it came from,
 * clears the record. `source`: that node, whose images of template file are removed; NULL: it is
 * not known any more, and keeps them aside by itself. */
bool migration_finish(struct op *op, const char *uuid, const char *source, GError **error);
/* It has not: ends what waits on the target and clears the record; a replica that became stale is
 * attached again. */
bool migration_abandon(struct op *op, const char *uuid, GError **error);

/* Ends what waits on the target, its exit seen, if a migration is under way; for whoever clears it
 * from the record by himself. A target that is offline needs no end. */
bool migration_end_target(struct op *op, const struct instance *instance, GError **error);
