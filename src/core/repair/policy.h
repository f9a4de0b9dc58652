/*
 * Which repairs the administrator allows on an instance: the nearest object with a policy tag
 * counts (instance, node group of the primary, cluster); on one object suspension counts first,
 * then the least destructive enabling tag (ARP-06, ARP-14 to ARP-27, A-1, A-4).
 */
#pragma once

#include "core/config/model.h"
#include "core/repair/tags.h"

enum repair_policy_kind { REPAIR_POLICY_ABSENT, REPAIR_POLICY_ENABLED, REPAIR_POLICY_SUSPENDED };

struct repair_policy {
    enum repair_policy_kind kind;
    enum repair_type type; /* if enabled */
    bool forever;          /* if suspended */
    gint64 until;          /* if suspended, not forever: seconds since 1970 */
    char text[160];        /* for records: "failover, by a tag of the cluster" */
};

/* `now` in seconds since 1970: a suspension that has ended counts as absent, even before its tag is
 * removed. */
struct repair_policy repair_policy_of(const struct config *config, const struct instance *instance,
                                      gint64 now);
/* For a look at many instances while nothing changes: what groups and the cluster say is read once.
 * Borrows `config`. */
struct repair_policies;
struct repair_policies *repair_policies_new(const struct config *config, gint64 now);
void repair_policies_free(struct repair_policies *policies);
/* Whether repair of an instance is suspended. */
bool repair_policies_suspend(struct repair_policies *policies, const struct instance *instance);
/* What counts for an object of any kind that has policies: an instance as above, a node group
 * without the instance's tags, the cluster alone. */
struct repair_policy repair_policy_of_object(const struct config *config, enum tag_kind kind,
                                             const char *uuid, gint64 now);
/* The policy tags of one object as they stand there, sorted: char *, to be unreffed. */
GPtrArray *repair_policy_tags(const struct config *config, enum tag_kind kind, const char *uuid);
