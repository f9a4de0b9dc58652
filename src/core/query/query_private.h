/* Inside of Query: query.c knows what is asked and its rows, query_run.c answers it,
 * query_archive.c those about jobs that are done one by one: some may be archived, or there are
 * many. */
#pragma once

#include "core/job/filter.h"
#include "core/query/query_rows.h"

/* A cell of a row: where its text stands in the answer. */
struct query_cell {
    guint like; /* the first field that shows the same as this one, or itself */
    gsize at, length;
};

/* One Query under way. */
struct query {
    struct queries *queries;
    struct rpc_request *request;
    char *what;
    GPtrArray *names;   /* char *, as asked for */
    GPtrArray *fields;  /* const struct query_field *; NULL for an unknown one */
    GPtrArray *members; /* const struct field * of the row's record; NULL for what is computed,
                         * or looks different to who asks */
    GString *data;      /* rows of the answer, as text */
    struct query_cell *cells; /* of the row that is being written, one for each field */
    struct filter *filter;
    GPtrArray *wanted;         /* of the old calls: names or UUIDs; NULL: all */
    GPtrArray *rows;           /* all of the resource, or those */
    GPtrArray *matching;       /* those that the filter lets through; borrowed from rows */
    struct lock_states *locks; /* rows of locks live in it */
    struct lock_waiters *waiters;
    struct query_source source;
    bool live_filter;
    bool live_fields;
    bool room;       /* what only the master has heard is asked for */
    bool plain;      /* the answer is rows of values and nothing else */
    bool archived;   /* of jobs: the field `archived` is asked for, so archived ones are too */
    GArray *ids;     /* of jobs: only these can match; NULL: any */
    const void *row; /* the one that the filter looks at */
    guint64 steps;   /* what it has cost: terms looked at, cells and bytes of the answer */
    guint64 next_turn;
    bool slow;               /* it takes long: it lets others have their turn now and then */
    bool counted;            /* among the slow ones */
    bool gone;               /* the client has */
    bool more;               /* of jobs: the archive has older ones, too */
    struct config *snapshot; /* of a slow one: what it works on */
};

/* --- query.c --- */

void query_free(struct query *query);
/* Anew, from what the source has. */
void query_collect_rows(struct query *query);
/* A field as Query and QueryFields tell it; NULL: there is none of that name. */
json_t *query_describe_field(const struct query_field *field, const char *name);

/* --- query_run.c --- */

/* Takes the query over and answers it, now or later. */
void query_start(struct queries *queries, struct rpc_request *request, struct query *query);
/* After each row. False: it ends here, with the error; without one: it is more than may be done at
 * once. In a slow one others have their turn here. */
bool query_go_on(struct query *query, GError **error);
/* Whether the filter lets a row through. */
bool query_match(struct query *query, const void *row);
/* One more row of the answer. */
void query_answer_row(struct query *query, const void *row);
void query_answer(struct query *query);

/* --- query_archive.c --- */

/* Ids of the jobs that a filter names, which are looked up in the archive too; NULL: it does not.
 * Unref it. */
GArray *query_named_jobs(const struct filter *filter);
/* Whether files have to be read. */
bool query_needs_archive(const struct query *query);
/* A task: answers the query about jobs, and frees it. */
void query_jobs_task(void *query);
