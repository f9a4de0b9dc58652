/*
 * A member of etcd in memory (proto/members.h): a host on which it starts, ends, answers and loses
 * its data as a test says. The test reads and writes the fields; what the node daemon did is in
 * `did`, one word each, with a space before it.
 */
#pragma once

#include "proto/members.h"

struct fake_members {
    struct members base;
    struct engine_config *config; /* NULL: no etc/engine.json */
    bool keys, certificates, data, running;
    char *authority, *started_with; /* whom it trusts, as its file says it and when it was started;
                                       NULL: nobody */
    char *next;                     /* prepared anew, and not certified: "next" */
    char *client;                   /* its certificate, as it came */
    struct member_status *says;     /* what a running member answers */
    guint asks;                     /* how the member is */
    guint fail_starts;              /* so many starts fail */
    bool others_turn;               /* it is another member's turn */
    struct members_others others;
    guint64 compacted; /* by the last compaction */
    GString *did;
    void (*ended)(const char *why, void *data);
    void *data_of_ended;
};

struct fake_members *fake_members_new(void);
void fake_members_free(struct fake_members *fake);
/* The process dies, which is told. */
void fake_members_die(struct fake_members *fake, const char *why);
