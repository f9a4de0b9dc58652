/*
 * Where a guest or a replica can go. Pure: the answer follows from the configuration and from what
 * the nodes reported. Used by jobs, auto-repair and what tells beforehand.
 *
 * Room on a node is the smaller of two figures. By report: what is free now, minus what the
 * configuration promises to instances whose guest does not run there yet (memory), or whose images
 * are not made yet (disk, generation 0). By configuration: all that the node has, minus all that is
 * promised, so that memory a guest has not touched yet and holes of sparse images are not given
 * away twice. "All that the node has" is multiplied by the cluster's memory_ratio and disk_ratio:
 * nothing else overcommits. A migration under way counts on both nodes; images of template
 * sharedfile take no space of a node. Reservations count as instances whose guest does not run and
 * whose images are not made.
 */
#pragma once

#include "core/config/allocated.h"

/* What is promised on each node, counted when it is first asked for and kept: for callers that
 * place many instances, one after the other, of one configuration. Borrows `config` and `reports`.
 */
struct placement_sums;
struct placement_sums *placement_sums_new(const struct config *config, const GPtrArray *reports);
/* The same from what the configuration daemon has counted: `promised` of struct node_promised, one
 * for each report in the same order; CORRUPT if they are of other nodes. */
struct placement_sums *placement_sums_given(const GPtrArray *reports, const GPtrArray *promised,
                                            GError **error);
void placement_sums_free(struct placement_sums *sums);
/* An instance that was counted on other nodes, or on none (NULL), is counted as `after` says; NULL:
 * no more. */
void placement_sums_move(struct placement_sums *sums, const struct instance *before,
                         const struct instance *after);

struct placement_room {
    gint64 memory;       /* MiB; negative: more is promised than there is */
    gint64 disk;         /* MiB */
    gint64 spare_memory; /* by configuration alone: does not jitter, so it ranks nodes */
    gint64 spare_disk;
};

/* `sums` NULL: counted anew. */
void placement_room(const struct config *config, const struct node_report *report,
                    struct placement_sums *sums, struct placement_room *ret_room);

struct placement_need {
    const char *what;        /* "the primary node of web1", for the message */
    guint64 memory;          /* MiB; 0: none is needed */
    guint64 disk;            /* MiB */
    const char *excluded[4]; /* node UUIDs that are out, "" or NULL for none … */
    const char *because[4];  /* … and why: "is its primary node" */
    const char *prefer;      /* node that is taken if it fits, and none is healthier; NULL: none */
    bool only_copy;          /* what is needed is there and nowhere else: no fault refuses it */
    bool rank_by_disk;       /* most disk first; else most memory first */
    const GPtrArray *nics;   /* of struct nic: their bridges must be there; NULL: none */
    const char *files[3];    /* that must lie in its var/images, "" or NULL for none */
    const char *shared;      /* folder that must be mounted there; NULL or "": none */
    const char *volumes_of;  /* UUID of the instance whose volumes it must serve; NULL: of none */
    const char *qemu_from;   /* of the guest that goes there as it runs; NULL or "": none does */
    GHashTable *lacking;     /* node UUID -> why it is out, as `because`; NULL: none is */
    GHashTable *refused;     /* node UUID -> the error it answered with, no report; NULL: none */
    guint64 now;             /* seconds since 1970, for advice that ends */
    struct placement_sums *sums; /* NULL: counted anew, with every instance */
};

/* The only advice there is so far: nothing new is placed on the node. */
#define ADVICE_AVOID "avoid"
/* Continues the node's name: "is to be avoided until …, says ops: …"; NULL: nobody advises against
 * it at `now` (seconds since 1970). Free with g_free(). */
char *placement_why_avoided(const struct config *config, const char *node, guint64 now);

/* Whether one node fits: not excluded, not offline, not drained, answering (report not NULL), able
 * to, with its bridges and room. Advice is for choices, not for nodes that somebody has named. If
 * not, `ret_why` (may be NULL; free with g_free) continues the node's name: "is offline". */
bool placement_fits(const struct config *config, const struct node *node,
                    const struct node_report *report, const struct placement_need *need,
                    char **ret_why);

/* Why a node that was asked has given no report, by who has answered with an error (op->refused;
 * may be NULL): continues its name. Free with g_free(). */
char *placement_no_report(GHashTable *refused, const char *node);
/* Whether a node can keep the replica that it has: it answers, and its disks and its state work
 * (disks that fail have no space at all). */
bool placement_keeps_replica(const struct node_report *report);
/* Nothing more fits on its disks, so that what it has may not be brought up to date: another node
 * is better, if there is one. */
bool placement_is_full(const struct node_report *report);

/* The first bridge that a card wants and the node does not have; NULL: all are there. */
const char *placement_missing_bridge(const struct node_report *report, const GPtrArray *nics);

/* Of files that lie in var/images of nodes, as source_name.h names them. A node that does not tell
 * what it has is taken to have it; a node that does not answer, or does not tell, is no witness. */
bool placement_lacks_file(const struct node_report *report, const char *name);
bool placement_file_is_known(const GPtrArray *reports, const char *name);

/* The folder in which the images of an instance of that template are, as reports name it: what
 * `holder` says (may be ""), else what any node says. "": the template has none, or nobody says. */
const char *placement_shared(const GPtrArray *reports, enum disk_template disk_template,
                             const char *holder);
/* Its disks, if they are needed and do not answer; NULL: they do, as far as is known. */
const struct late_part *placement_late_disks(const struct node_report *report,
                                             const struct placement_need *need);
/* Continues the node's name: "does not mount the shared folder"; NULL: it does, or need not. */
const char *placement_unshared(const struct node_report *report, const char *shared);

/* Of two versions of QEMU such as 7.2.22: a machine's state is understood by the one that wrote it,
 * and by newer ones. What follows the numbers does not count; "" is older than all. */
bool placement_is_older(const char *version, const char *than);

/* The best node that nobody advises to avoid (ARP-69): one with faults only if no other fits, and
 * none whose fault makes it impossible (faults_forbids, SAF-92); ties go to the one with fewer
 * instances, then by name. `reports`: GPtrArray of struct node_report. NO_RESOURCES with one
 * sentence that says of each node why it does not fit. */
const struct node *placement_choose(const struct config *config, const GPtrArray *reports,
                                    const struct placement_need *need, GError **error);
