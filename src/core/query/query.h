/*
 * Queries: rows of fields of instances, nodes, groups, jobs, repairs, decisions and locks. What
 * fields there are stands in proto/fields.def. Configured values come from luxid's copy of the
 * configuration; live ones are asked of the node daemons concerned, all at once, and only if a
 * field needs them (LUX-03, LUX-04).
 */
#pragma once

#include "core/config/follow.h"
#include "core/report/reports.h"

/* First member of each [status, value] pair, Ganeti's numbers. */
enum query_status {
    QUERY_NORMAL,
    QUERY_UNKNOWN,     /* no such field */
    QUERY_NO_DATA,     /* the object has no such value, or its node answers with an error */
    QUERY_UNAVAILABLE, /* its node does not answer */
    QUERY_OFFLINE,     /* its node is marked offline */
};

enum query_kind {
    QUERY_KIND_TEXT,
    QUERY_KIND_NUMBER, /* an integer */
    QUERY_KIND_FLOAT,
    QUERY_KIND_UNIT, /* MiB */
    QUERY_KIND_BOOL,
    QUERY_KIND_TIMESTAMP, /* seconds since 1970 */
    QUERY_KIND_OTHER,
};

/* Why a queued job has been set aside. */
struct query_held {
    const char *why; /* borrowed; NULL: it has not */
    gint64 since_us; /* wall time; of one that has */
    guint64 by;      /* the job behind which it waits for locks; 0: none */
};

/* The jobs on record, as luxid has them; `data` is what it wants to be given. */
struct query_jobs {
    /* Ids of all, ascending; array of guint64. */
    GArray *(*ids)(void *data);
    bool (*known)(void *data, guint64 id);
    /* The committed record; NULL: there is none. Valid until its next change. */
    const struct job *(*record)(void *data, guint64 id);
    /* What clients see of it: the running job's file if that is ahead of the record. */
    const struct job *(*view)(void *data, guint64 id);
    struct query_held (*held)(void *data, guint64 id);
    /* All that keeps it from starting, as the field `holds`; NULL: it is not queued. */
    json_t *(*holds)(void *data, guint64 id);
    void (*count)(void *data, guint *ret_queued, guint *ret_running);
};

/* What all queries share. Plain values; the first four are the owner's to fill. */
struct queries {
    const struct env *env;
    struct follow *follow;
    const struct query_jobs *jobs;
    void *jobs_data;
    guint most_archived;         /* archived jobs that one query reads: LIMIT_ARCHIVE_ROWS */
    guint slow;                  /* of them under way … */
    struct task_mutex slow_turn; /* … one after the other (query_run.c) */
};

/* What the values are taken from. */
struct query_source {
    const struct queries *queries;
    const struct config *config;
    enum face face;                /* of who asks */
    struct reports *reports;       /* NULL: no field needs it */
    struct cluster_status *status; /* of the master; the same */
    GHashTable *by_node;           /* node uuid -> struct node_instances; made when first needed */
    GHashTable *names;             /* node uuid -> its name as JSON; the same */
};

/* A value, or NULL with a status (QUERY_NO_DATA is preset). */
typedef json_t *query_getter(struct query_source *source, const void *row,
                             enum query_status *ret_status);

struct query_field {
    const char *resource;
    const char *name;
    const char *title;
    enum query_kind kind;
    bool live;
    /* How it is computed; none of these: there is never any data. */
    query_getter *get;
    const char *member; /* of the row's record */
    const struct record *record;
    const char *fixed;  /* JSON */
    query_getter *list; /* its element number `at` */
    guint at;
    const char *doc;
};

/* The whole table, resource by resource. */
const struct query_field *query_field_table(size_t *ret_count);
bool query_resource_exists(const char *resource);
/* NULL for an unknown one. */
const struct query_field *query_field_find(const char *resource, const char *name);
/* All fields of the names; WRONG_INPUT names the unknown ones. For the old calls, which have no
 * status. */
GPtrArray *query_fields_find(const char *resource, const GPtrArray *names, GError **error);
/* The member of the row's record that always is its value; NULL: it is computed, or may have none.
 */
const struct field *query_field_member(const struct query_field *field);
/* Value of a field, in the words of the source's face; never NULL, json null if there is none. */
json_t *query_field_value(const struct query_field *field, struct query_source *source,
                          const void *row, enum query_status *ret_status);
/* What an instance has of Ganeti's settings, which are fields that begin so ("be/"), by their
 * names; NULL: what a new one gets that says nothing. */
json_t *query_settings(struct query_source *source, const char *prefix,
                       const struct instance *instance);
void query_source_clear(struct query_source *source);

/* Whether a job is on record, and not archived. */
bool query_job_known(const struct queries *queries, guint64 id);
/* A job on record, else an archived one, which the caller frees (`ret_archived`); NULL: none. */
const struct job *query_job_find(const struct queries *queries, guint64 id,
                                 struct job **ret_archived);
/* Ids from `least` to `most` of jobs on record, and of the archived ones if wanted; ascending;
 * array of guint64. Of more archived ones than one query reads the newest, with `*ret_more`. */
struct query_ids {
    bool archived;
    gint64 least, most;
};
GArray *query_job_ids(const struct queries *queries, const struct query_ids *wanted, bool *ret_more,
                      GError **error);
/* Between two archived jobs of many, in a task: lets others have their turn now and then. False if
 * the process is killed. */
bool query_job_pause(const struct queries *queries, guint count);
/* Values of a job's fields as a list; all null but `id` for a job that does not exist. */
json_t *query_job_values(const struct queries *queries, enum face face, guint64 id,
                         const GPtrArray *fields);

/* Whole calls. Each takes the request over and answers it, now or later. */
void query_run(struct queries *queries, struct rpc_request *request,
               const struct luxi_query_args *args);
void query_describe_fields(struct rpc_request *request, const struct luxi_query_fields_args *args);
void query_jobs(struct queries *queries, struct rpc_request *request,
                const struct luxi_query_jobs_args *args);
/* The old calls: rows of plain values, of the named objects (by name or UUID) or of all. Unknown
 * names and fields are errors. */
void query_plain(struct queries *queries, struct rpc_request *request, const char *what,
                 const GPtrArray *names, const GPtrArray *fields);
/* QueryClusterInfo, QueryConfigValues and QueryTags. */
void query_cluster_info(struct queries *queries, struct rpc_request *request);
void query_config_values(struct queries *queries, struct rpc_request *request,
                         const struct luxi_query_config_values_args *args);
/* QueryExports: {node: []} of the named nodes, or of all. */
void query_node_exports(struct queries *queries, struct rpc_request *request,
                        const struct luxi_query_exports_args *args);
/* "INSTANCE_STARTUP(web1)"; NULL: the opcode has no name. */
json_t *query_op_summary(const struct job_op *op);
/* QueryRapiUsers. */
void query_rapi_users(struct queries *queries, struct rpc_request *request);
void query_object_tags(struct queries *queries, struct rpc_request *request,
                       const struct luxi_query_tags_args *args);
