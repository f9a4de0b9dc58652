/*
 * Where an instance stands: in which order its policy, earlier failures, a repair that has begun
 * and what is broken are asked (requirements-auto-repair.md, section 4). Pure. The watcher acts on
 * it (repair_triage.c), `fettle plan` tells it (forecast.c).
 */
#pragma once

#include "core/repair/plan.h"
#include "core/repair/policy.h"

enum repair_stand {
    STAND_SUSPENDED,
    STAND_FAILED,  /* an earlier repair has, and a person is to look at it */
    STAND_PENDING, /* a repair has begun */
    STAND_HEALTHY,
    STAND_COPYING, /* a copy that runs is waited for */
    STAND_LEFT,    /* no operation can help */
    STAND_NOT_ENABLED,
    STAND_ENOPERM, /* more is needed than the policy allows */
    STAND_REPAIR   /* one may begin */
};

enum repair_stand repair_stand_of(const struct repair_policy *policy, bool failed, bool pending,
                                  const struct repair_plan *plan);
