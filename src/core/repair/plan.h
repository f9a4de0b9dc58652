/*
 * What is broken on an instance, which operation comes next, and which type of repair is needed to
 * finish: the operations table of requirements-auto-repair.md (ARP-03, ARP-41, ARP-62, ARP-70,
 * Pure: a function of what is seen. The watcher acts on it; `fettle plan` follows it on what
 * would be seen (forecast.h).
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

/* What the nodes say of one instance; all empty if they are not asked. */
struct repair_evidence {
    const struct guest_report *guest; /* of the holder's node; NULL: not known */
    bool replica_broken; /* the secondary's node answered that it lacks images of the replica … */
    guint64 replica_images; /* … and has those of these disks (report_lookup.h) */
    /* How disks have failed, each continuing the node's name ("cannot write to its disks: …"), for
     * long enough to be sure of it; NULL: they are not known to have. */
    const char *primary_failed;   /* those of the primary's node, by its own trial */
    const char *guest_failed;     /* the instance's own, by what its guest was answered there */
    const char *secondary_failed; /* those of the replica's node */
    /* The same of the state of the primary's node, which can start nothing then: of a guest that
     * does nothing, and that another node could run. */
    const char *primary_barred;
    bool no_room; /* it stands still for lack of room, and the node of its replica has some */
    bool told;    /* a person asks for it: his word stands for what nobody can know (SAF-09) */
};

struct repair_plan {
    bool healthy;          /* all nodes online, a replica in sync if its template has one */
    bool wait;             /* not healthy, but on its way: a copy is running */
    enum repair_step step; /* the next operation; NONE if not healthy: see `left` */
    bool elsewhere;        /* a new replica must go to another node: its own is drained, or its
                              disks have failed */
    bool failed;           /* the disks that the guest runs from have failed: what is to be done
                              needs the primary's answer, but none of its disks */
    bool no_room;          /* it stands still for lack of room, and is to be moved as it is */
    bool barred;           /* the same of a guest that does nothing and whose node can start none */
    enum repair_type step_type; /* what that operation needs */
    enum repair_type needed;    /* what finishing needs */
    const char *left;           /* why no operation can help, as a sentence; NULL if one can */
    GPtrArray *evidence;        /* char *: what was seen */
};

/* `replica` is the one that the instance names, NULL for none. */
struct repair_plan repair_plan_of(const struct config *config, const struct instance *instance,
                                  const struct replica *replica,
                                  const struct repair_evidence *sight);
/* Whether nothing comes of the next operation without an answer of the primary's node. */
bool repair_plan_needs_primary(const struct repair_plan *plan, const struct instance *instance);
/* What comes after the next operation if nothing comes of it: why there is no other, as a sentence
 * that names what a person can do. Free with g_free(). */
char *repair_plan_no_other(const struct repair_plan *plan, const struct instance *instance);
/* All that was seen, in one line; free with g_free(). */
char *repair_plan_causes(const struct repair_plan *plan);
void repair_plan_clear(struct repair_plan *plan);

/* Whether the table has a replica's column for this template. */
bool repair_template_mirrored(enum disk_template template);
/* Whether the guest can run on any node, because all reach its data or it has none. */
bool repair_template_shared(enum disk_template template);

/* What a healthy instance has, by its template, as a sentence without its full stop. */
const char *repair_healthy_text(enum disk_template template);

/* Of two steps the one with the lower number goes first; 0: the guest is down until then. */
guint repair_step_urgency(enum repair_step step);
const char *repair_step_name(enum repair_step step); /* in sentences: "replace-disks" */
const char *repair_step_word(enum repair_step step); /* in request ids: one word */
/* The opcodes of the next step, in order, all of one job: a new JSON array. A stopped guest is
 * moved without being started; what was up is started after it was installed anew. */
json_t *repair_plan_opcodes(const struct repair_plan *plan, const struct instance *instance);
