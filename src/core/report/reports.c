/* See reports.h. */
#include "core/report/reports.h"

#include "core/report/faults.h"
#include "core/report/late.h"
#include "core/report/report_lookup.h"
#include "proto/env_many.h"

#include <string.h>

struct reports {
    GPtrArray *list;       /* struct node_report, in the order in which they were asked for */
    GHashTable *answers;   /* node uuid -> struct answer, of each that was to be asked */
    GHashTable *refusals;  /* node uuid -> the error that it answered with */
    const char *last_node; /* that was looked up, with what was found; NULL: none */
    struct answer *last;
};

struct answer {
    enum report_state state;
    const struct node_report *report; /* in the list */
    bool tells_images;
    GHashTable *guests; /* instance -> struct guest_report, of it; made when first needed */
    GHashTable *images; /* replica -> its place in the report's images; the same */
};

static void answer_free(void *data)
{
    struct answer *answer = data;
    g_clear_pointer(&answer->guests, g_hash_table_unref);
    g_clear_pointer(&answer->images, g_hash_table_unref);
    g_free(answer);
}

static void free_report(void *report)
{
    if (report)
        node_report_free(report);
}

static struct reports *reports_new(void)
{
    struct reports *reports = g_new0(struct reports, 1);
    reports->list = g_ptr_array_new_with_free_func(free_report);
    reports->answers = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, answer_free);
    reports->refusals = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    return reports;
}

void reports_free(struct reports *reports)
{
    if (!reports)
        return;
    g_hash_table_unref(reports->answers);
    g_hash_table_unref(reports->refusals);
    g_ptr_array_unref(reports->list);
    g_free(reports);
}

/* --- asking --- */

struct asking {
    struct reports *reports;
    struct faults_round *round;
};

/* Nothing but its silence is the silence of a node. */
static void take_refusal(struct asking *asking, const char *node, enum report_state state,
                         const GError *error)
{
    struct answer *answer = g_hash_table_lookup(asking->reports->answers, node);
    if (env_no_answer(error) || fettle_error_is(error, KILLED))
        return;
    answer->state = state;
    g_hash_table_insert(asking->reports->refusals, g_strdup(node), g_strdup(error->message));
}

static void take_report(struct asking *asking, const struct env_answer *heard,
                        struct node_report *report)
{
    struct answer *answer = g_hash_table_lookup(asking->reports->answers, heard->node);
    asking->reports->list->pdata[heard->index] = report;
    if (!answer->report) { /* a node that was named twice has answered twice */
        answer->state = REPORT_GIVEN;
        answer->report = report;
        answer->tells_images =
            json_object_get(heard->json, "images") && !late_part_of(report, PART_DISKS);
    }
    faults_round_heard(asking->round, report);
}

static bool take_answer(struct env_answer *heard, void *data)
{
    struct asking *asking = data;
    g_autoptr(GError) unread = NULL;
    struct node_report *report =
        heard->json ? node_report_parse(heard->json, RECORD_LAX, &unread) : NULL;
    if (report)
        take_report(asking, heard, report);
    else if (heard->json)
        take_refusal(asking, heard->node, REPORT_UNREADABLE, unread);
    else
        take_refusal(asking, heard->node, REPORT_REFUSED, heard->error);
    return false;
}

/* To be unreffed, borrows. */
static GPtrArray *all_nodes(const struct config *config)
{
    g_autoptr(GPtrArray) nodes = config_list(config, "node");
    GPtrArray *uuids = g_ptr_array_new();
    for (guint i = 0; i < nodes->len; i++)
        g_ptr_array_add(uuids, ((const struct node *)nodes->pdata[i])->uuid);
    return uuids;
}

/* Enters each of the nodes. Returns those that are to be asked: to be unreffed, borrows. */
static GPtrArray *enter(struct reports *reports, const struct config *config,
                        const GPtrArray *nodes)
{
    GPtrArray *asked = g_ptr_array_new();
    for (guint i = 0; i < nodes->len; i++) {
        const struct node *node = config_get(config, "node", nodes->pdata[i], NULL);
        struct answer *answer = g_new0(struct answer, 1);
        answer->state = node && node->offline ? REPORT_OFFLINE : REPORT_SILENT;
        g_hash_table_insert(reports->answers, g_strdup(nodes->pdata[i]), answer);
        if (answer->state == REPORT_SILENT)
            g_ptr_array_add(asked, nodes->pdata[i]);
    }
    return asked;
}

/* `how`: all but whom and what. */
static struct reports *ask(const struct env *env, struct follow *follow, const GPtrArray *nodes,
                           struct env_question how)
{
    struct asking asking = {reports_new(), faults_round_new(env)};
    g_autoptr(GPtrArray) all = nodes ? NULL : all_nodes(follow_config(follow));
    g_autoptr(GPtrArray) asked = enter(asking.reports, follow_config(follow), nodes ? nodes : all);
    g_ptr_array_set_size(asking.reports->list, (gint)asked->len);
    how.nodes = asked;
    how.role = ROLE_NODED;
    how.method = "node_report";
    if (env_many(env, &how, take_answer, &asking)) {
        faults_round_end(asking.round, follow_config(follow));
        while (g_ptr_array_remove(asking.reports->list, NULL))
            continue;
        return asking.reports;
    }
    faults_round_free(asking.round);
    reports_free(asking.reports);
    return NULL;
}

struct reports *reports_ask(const struct env *env, struct follow *follow, const GPtrArray *nodes)
{
    json_autoptr known = late_known();
    const struct env_question how = {
        .json = known, .stamp = follow_stamp(follow), .limit_ms = LIMIT_REPORT_WAIT_MS};
    return ask(env, follow, nodes, how);
}

struct reports *reports_ask_to_act(const struct env *env, struct follow *follow,
                                   const GPtrArray *nodes, struct stamp stamp, guint job)
{
    json_autoptr known = late_known_to_actor();
    const struct env_question how = {.json = known, .stamp = stamp, .job = job};
    return ask(env, follow, nodes, how);
}

/* --- finding --- */

/* Rows of one node mostly stand together. */
static struct answer *answer_of(const struct reports *reports, const char *node)
{
    struct reports *remembers = (struct reports *)reports;
    if (!reports || !*node)
        return NULL;
    if (!reports->last_node || strcmp(reports->last_node, node) != 0) {
        remembers->last_node = NULL;
        remembers->last = NULL;
        g_hash_table_lookup_extended(reports->answers, node, (void **)&remembers->last_node,
                                     (void **)&remembers->last);
    }
    return reports->last;
}

const GPtrArray *reports_list(const struct reports *reports)
{
    return reports ? reports->list : NULL;
}

const struct node_report *reports_of(const struct reports *reports, const char *node)
{
    const struct answer *answer = answer_of(reports, node);
    return answer ? answer->report : NULL;
}

enum report_state reports_state(const struct reports *reports, const char *node)
{
    const struct answer *answer = answer_of(reports, node);
    return answer ? answer->state : REPORT_SILENT;
}

const char *reports_refusal(const struct reports *reports, const char *node)
{
    return reports ? g_hash_table_lookup(reports->refusals, node) : NULL;
}

GHashTable *reports_refusals(const struct reports *reports)
{
    return reports ? reports->refusals : NULL;
}

static GHashTable *index_guests(const struct node_report *report)
{
    GHashTable *guests = g_hash_table_new(g_str_hash, g_str_equal);
    for (guint i = 0; i < report->guests->len; i++) {
        struct guest_report *guest = report->guests->pdata[i];
        if (!g_hash_table_contains(guests, guest->instance))
            g_hash_table_insert(guests, guest->instance, guest);
    }
    return guests;
}

const struct guest_report *reports_guest(const struct reports *reports, const char *node,
                                         const char *instance)
{
    struct answer *answer = answer_of(reports, node);
    if (!answer || !answer->report)
        return NULL;
    if (!answer->guests)
        answer->guests = index_guests(answer->report);
    return g_hash_table_lookup(answer->guests, instance);
}

static GHashTable *index_images(const struct node_report *report)
{
    GHashTable *images = g_hash_table_new(g_str_hash, g_str_equal);
    for (guint i = 0; i < report->images->len; i++) {
        char *blank = strchr(report->images->pdata[i], ' ');
        if (blank)
            g_hash_table_insert(images, blank + 1, GUINT_TO_POINTER(i));
    }
    return images;
}

bool reports_images(const struct reports *reports, const char *node,
                    const struct instance *instance, const char *replica, guint64 *ret_disks)
{
    struct answer *answer = answer_of(reports, node);
    void *at = NULL;
    if (!answer || !answer->tells_images)
        return false;
    if (!answer->images)
        answer->images = index_images(answer->report);
    *ret_disks = 0;
    if (g_hash_table_lookup_extended(answer->images, replica, NULL, &at) &&
        g_str_has_prefix(answer->report->images->pdata[GPOINTER_TO_UINT(at)], instance->uuid))
        *ret_disks = report_images_at(answer->report, GPOINTER_TO_UINT(at));
    return true;
}
