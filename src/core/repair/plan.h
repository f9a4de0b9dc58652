/*
 * What is broken on an instance, which operation comes next, and which type of repair is needed to
 * finish: the operations table of requirements-auto-repair.md (ARP-03, ARP-41, ARP-62, A-14). Pure:
 * a function of what is seen.
 */
#pragma once

#include "core/config/model.h"
#include "core/repair/tags.h"

enum repair_step {
    REPAIR_STEP_NONE,
    REPAIR_STEP_REPLACE_DISKS,
    REPAIR_STEP_MIGRATE,
    REPAIR_STEP_FAILOVER,
    REPAIR_STEP_REINSTALL
};

struct repair_plan {
    bool healthy;               /* all nodes online, replica in sync */
    bool wait;                  /* not healthy, but on its way: a copy is running */
    enum repair_step step;      /* the next operation */
    enum repair_type step_type; /* what that operation needs */
    enum repair_type needed;    /* what finishing needs */
    GPtrArray *evidence;        /* char *: what was seen */
};

/* `report`: what the holder's node says of the guest; NULL if it is not known. */
struct repair_plan repair_plan_of(const struct config *config, const struct instance *instance,
                                  const struct guest_report *report);
void repair_plan_clear(struct repair_plan *plan);

const char *repair_step_name(enum repair_step step); /* "replace-disks" */
/* Why a step is left to a person, as the rest of a sentence; only for steps without an opcode. */
const char *repair_step_by_hand(enum repair_step step);
/* The opcode of a step, NULL for one that this cluster cannot do by itself. */
const char *repair_step_opcode(enum repair_step step);
