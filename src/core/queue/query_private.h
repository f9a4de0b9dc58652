/* Inside of Query: query.c runs it, query_archive.c those about jobs of which some may be archived.
 */
#pragma once

#include "core/queue/filter.h"
#include "core/queue/query_rows.h"

/* One Query under way. */
struct query {
    struct queue_context *context;
    struct rpc_request *request;
    char *what;
    GPtrArray *names;   /* char *, as asked for */
    GPtrArray *fields;  /* const struct query_field *; NULL for an unknown one */
    GPtrArray *members; /* const struct field * of the row's record; NULL for what is computed */
    GString *data;      /* rows of the answer, as text */
    struct filter *filter;
    GPtrArray *rows;           /* all of the resource */
    GPtrArray *matching;       /* those that the filter lets through; borrowed from rows */
    struct lock_states *locks; /* rows of locks live in it */
    struct lock_waiters *waiters;
    struct query_source source;
    bool live_filter;
    bool live_fields;
    bool plain;      /* the answer is rows of values and nothing else */
    bool archived;   /* of jobs: the field `archived` is asked for, so archived ones are too */
    GArray *ids;     /* of jobs: only these can match; NULL: any */
    const void *row; /* the one that the filter looks at */
};

/* --- query.c --- */

void query_free(struct query *query);
/* A value of the row that the filter looks at; none if there is no data or its node does not
 * answer. */
json_t *query_row_value(const void *field, void *query);
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
