/*
 * Rows and getters of queries, for the files query_*.c, core/verify and what watches changes
 * (core/queue/watch_changes.h) only: the getters that proto/fields.def names, and the rows that are
 * no objects of the configuration.
 */
#pragma once

#include "core/query/query.h"

#define MEMBER(resource, record, name, title, kind, member, doc)
#define GETTER(resource, name, title, kind, source, function, doc)                                 \
    query_getter query_get_##resource##_##function;
#define FIXED(resource, name, title, kind, value, doc)
#define ELEMENT(resource, name, title, kind, function, index, doc)                                 \
    query_getter query_get_##resource##_##function;
#define NONE(resource, name, title, kind, doc)
#include "proto/fields.def"
#undef MEMBER
#undef GETTER
#undef FIXED
#undef ELEMENT
#undef NONE

/* A repair, as the tags of its instance tell it. */
struct query_repair {
    char *id;
    char *instance; /* name */
    const char *type;
    const char *state;
    gint64 started; /* 0: not known any more */
    gint64 ended;   /* 0: not yet */
    GStrv jobs;
};

/* What auto-repair may do for an object, and its own tags that say so. */
struct query_policy {
    enum tag_kind kind;
    const char *uuid, *name; /* borrowed */
};

/* A lock with its owners and waiters. */
struct query_lock {
    const char *name;
    GPtrArray *owners;  /* of const struct lock_state *, held */
    GPtrArray *waiting; /* of const struct lock_state *, wanted */
};

/* All rows of a resource, in the order of the answer; free with g_ptr_array_unref(). */
GPtrArray *query_repair_rows(const struct config *config);
GPtrArray *query_policy_rows(const struct config *config);
GPtrArray *query_decision_rows(const struct config *config);
GPtrArray *query_event_rows(const struct config *config);
/* By instance. */
GPtrArray *query_task_rows(const struct config *config);
/* By node, then author. */
GPtrArray *query_advice_rows(const struct config *config);
GPtrArray *query_invitation_rows(const struct config *config);
/* In the order in which they are asked. */
GPtrArray *query_filter_rows(const struct config *config);
/* `states` must outlive the rows. */
GPtrArray *query_lock_rows(const struct lock_states *states);
/* Rows of waiters are borrowed from `waiters`. */
GPtrArray *query_waiter_rows(const struct lock_waiters *waiters);

/* In the order in which they were made, and registered first. */
GPtrArray *query_worker_rows(const struct config *config);
GPtrArray *query_storage_service_rows(const struct config *config);
/* By node; each node's services in the order of the table in query_service.c. */
GPtrArray *query_service_rows(const struct config *config);
/* One of them, by the key of what is on record of it; NULL: there is none. Free with g_free(). */
void *query_service_row(const struct config *config, const char *key);
/* The node of such a row. */
const struct node *query_service_node(const void *row);
/* Nobody needs it: a person may have stopped it for good. */
bool query_service_may_stop(const void *row);

/* Instances of a node, by their records; both lists sorted by name. */
struct node_instances {
    GPtrArray *primary; /* of const struct instance * */
    GPtrArray *secondary;
};
const struct node_instances *query_node_instances(struct query_source *source, const char *node);

/* What an instance may be, as Ganeti's clients ask for it (query_ipolicy.c); in our words. */
json_t *query_ipolicy(enum face face);

/* Shared by getters. */
/* Of an instance; NULL: it is not in ERROR. */
const struct fault *query_instance_fault(const struct query_source *source, const void *row);
/* What a node says; NULL with the status if that is nothing. */
const struct node_report *query_node_report(const struct query_source *source, const char *node,
                                            enum query_status *ret_status);
json_t *query_strings(const GPtrArray *texts);
json_t *query_tags(const struct query_source *source, enum tag_kind kind, const char *object);
json_t *query_serial_no(const struct query_source *source, const char *kind, const char *key);
