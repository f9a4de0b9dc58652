/*
 * Inside of verify: what one look has to go by, and what it finds. verify.c gathers it, the other
 * files of this folder say what is wrong with a part of it.
 */
#pragma once

#include "core/verify/verify.h"

/* What the wconfd of another candidate says of itself. */
struct candidate {
    struct role_status *role; /* NULL: it has said nothing … */
    char *refusal;            /* … but this; NULL: it does not answer */
};

struct look {
    struct queries *queries;
    const struct node *node;       /* only what concerns it is found; NULL: all */
    const struct nodegroup *group; /* only what concerns its nodes; NULL: all */
    bool no_node;                  /* only what concerns no node */
    struct config *config;         /* as it was when all had answered */
    const struct cluster *cluster;
    struct reports *reports;
    struct query_source source;
    struct cluster_status *status;
    GPtrArray *stored;      /* what members of back ends have said; verify_stored.c's */
    GHashTable *candidates; /* node UUID -> struct candidate: others that are not offline */
    struct lock_states *locks;
    struct verified *found;
    guint rows;       /* looked at so far */
    const bool *gone; /* whether who asked has */
    bool stopped;     /* the look is given up: what is found is told to nobody */
};

/* Whether what is found of a node (UUID) is wanted. */
bool look_concerns(const struct look *look, const char *node);
/* Whether what belongs to no node is. */
bool look_whole(const struct look *look);
const char *look_node_name(const struct look *look, const char *node);
void look_problem(struct look *look, const char *format, ...) G_GNUC_PRINTF(2, 3);
void look_note(struct look *look, const char *format, ...) G_GNUC_PRINTF(2, 3);
/* A field of a row as text, as lists show it; "" if it has no value. Free with g_free(). */
char *look_field(struct look *look, const char *resource, const char *name, const void *row);
/* Local time; free with g_free(). */
char *look_time_text(gint64 seconds);
/* Before or after each of many rows: lets others have their turn now and then. False once the look
 * is given up: the process ends, or nobody waits for it any more. */
bool look_pause(struct look *look);

/* --- verify_master.c: what the master says of itself --- */
void verify_master(struct look *look);
/* Tags of auto-repair that cannot be read, and do nothing (ARP-24). */
void verify_tags(struct look *look);

/* --- verify_jobs.c --- */
/* Whether some lock is held by a job that has ended. It may have ended just now. */
bool verify_locks_are_stale(const struct look *look);
/* Locks of jobs that have ended: none may outlive its owner. Jobs that a silent node holds up.
 * Right after the locks were asked for: a job that ended between would seem to hold them still. */
void verify_jobs(struct look *look);

/* --- verify_candidates.c --- */
/* Asks the other candidates. False: the process is killed. */
bool candidates_ask(struct look *look);
/* Daemons of all nodes, and what each candidate could do as master. */
void verify_services(struct look *look);
void verify_candidates(struct look *look);

/* --- verify_strays.c: what is on nodes and not on record --- */
void verify_strays(struct look *look);

/* --- verify_nodes.c --- */
void verify_nodes(struct look *look);
void verify_master_ip(struct look *look);

/* --- verify_backends.c: nodes whose volume service does not serve a back end of theirs --- */
void verify_backends(struct look *look);

/* --- verify_stored.c: where back ends and record differ --- */
/* Asks their members. False: the process is killed. */
bool stored_ask(struct look *look);
void verify_stored(struct look *look);
/* --- verify_resources.c: volumes and the like in an error status --- */
void verify_resources(struct look *look);

/* --- verify_keys.c --- */
void verify_keys(struct look *look);

/* --- verify_instances.c --- */
void verify_instances(struct look *look);

/* --- verify_notes.c: nothing is wrong with what is there, and a person should know --- */
void verify_notes(struct look *look);
