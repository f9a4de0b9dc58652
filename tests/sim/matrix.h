/*
 * Situations of a simulated cluster: how each comes about, what `fettle cluster verify`, `why`,
 * lists and `plan` have to say of it, and what happens when the node that `plan` was asked about is
 * lost, or drained. matrix.c asks and compares, test_matrix.c has the table.
 */
#pragma once

#include "script.h"

struct situation {
    const char *name;    /* of the test, with the ids of what it proves */
    guint nodes;         /* node1 is the master */
    const char *cluster; /* settings of the cluster as JSON; NULL: the usual ones */
    const char *script;  /* that makes it (script.h) */
    const char *verify;  /* each line that it finds, as a pattern, one a line; notes begin with
                            "note: ". "": all is as it should be */
    const char *why;   /* "SUBJECT STATE: SUMMARY" of the newest decision, as a pattern; "SUBJECT "
                          alone: there is none; NULL: it does not matter */
    const char *list;  /* "RESOURCE NAME FIELD VALUE" */
    const char *event; /* what plan is asked about: "fail node2", "drain node2" */
    const char *plan;  /* one line each, as a pattern: "held"; "web1 to node3 node4 by failover,
                          replace-disks"; that, and " left REASON"; "web1 blocked REASON" */
    const char *happens; /* script in place of the event itself; NULL: the node's power is cut and
                            it is said to be dead, or it is drained */
};

/* Fails the test with every difference. */
void matrix_run(const struct situation *situation);
