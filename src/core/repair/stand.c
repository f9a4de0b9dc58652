/* See stand.h. */
#include "core/repair/stand.h"

enum repair_stand repair_stand_of(const struct repair_policy *policy, bool failed, bool pending,
                                  const struct repair_plan *plan)
{
    if (policy->kind == REPAIR_POLICY_SUSPENDED)
        return STAND_SUSPENDED;
    if (failed)
        return STAND_FAILED;
    if (pending)
        return STAND_PENDING;
    if (plan->healthy)
        return STAND_HEALTHY;
    if (plan->wait)
        return STAND_COPYING;
    if (plan->left != NULL)
        return STAND_LEFT;
    if (policy->kind == REPAIR_POLICY_ABSENT)
        return STAND_NOT_ENABLED;
    return policy->type < plan->needed ? STAND_ENOPERM : STAND_REPAIR;
}
