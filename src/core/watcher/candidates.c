/*
 * Too few master candidates (ARP-71): what candidate_pool.h judges is put on record and, where that
 * is safe, done by a job, one node after the other. Nobody is promoted because of a moment: neither
 * a candidate that reboots nor two commands of a person in a row shall leave one more behind. See
 * watcher_private.h.
 */
#include "core/report/faults.h"
#include "core/watcher/candidate_pool.h"
#include "core/watcher/watcher_private.h"

#include <string.h>

#define AUTHOR "watcher/candidates"
#define REQUEST "promote" /* "promote/NODE/VERSION/TRY", the version being that of its record */

struct watcher_promotion {
    gint64 short_since_ms; /* boot clock: since when there are too few; 0: there are enough */
    gint64 after_ms;       /* boot clock: not before, as the last try failed */
    guint tries;           /* that failed, since there were enough */
    guint64 job;           /* the last one; 0: it has ended and was looked at */
    char *node;            /* whom that is to promote */
};

struct watcher_promotion *watcher_promotion_new(void)
{
    return g_new0(struct watcher_promotion, 1);
}

void watcher_promotion_free(struct watcher_promotion *promotion)
{
    g_free(promotion->node);
    g_free(promotion);
}

/* --- what is seen --- */

static gint64 unheard_ms(const struct watcher *watcher, const struct node *node)
{
    const struct node_memory *memory = g_hash_table_lookup(watcher->nodes, node->uuid);
    if (reports_of(watcher->reports, node->uuid) != NULL)
        return 0;
    gint64 since = memory != NULL ? memory->unheard_ms : 0;
    return MAX(since != 0 ? watcher->env->ops->boot_ms(watcher->env) - since : 0, 1);
}

static struct candidate_pool_judgement judge(const struct watcher *watcher)
{
    const struct config *config = follow_config(watcher->follow);
    g_autoptr(GPtrArray) nodes = config_list(config, "node");
    g_autoptr(GArray) all = g_array_new(false, false, sizeof(struct candidate_pool_node));
    for (guint i = 0; i < nodes->len; i++) {
        const struct node *node = nodes->pdata[i];
        const struct node_memory *memory = g_hash_table_lookup(watcher->nodes, node->uuid);
        const struct node_report *report = reports_of(watcher->reports, node->uuid);
        struct candidate_pool_node seen = {
            .node = node,
            .unheard_ms = unheard_ms(watcher, node),
            .disks_failed = memory != NULL && memory->disks.passes > 0,
            .unable = report != NULL ? faults_forbids(report, false) : NULL,
            .faults = report != NULL ? faults_rank(report) : 0,
            .failures = memory != NULL ? memory->promotions : 0,
        };
        g_array_append_val(all, seen);
    }
    return candidate_pool_judge(config, all, watcher_now(watcher));
}

/* --- records --- */

static struct decision *about_cluster(const struct watcher *watcher, enum verdict verdict,
                                      const char *state)
{
    const struct cluster *cluster = watcher_cluster(watcher);
    return decision_about("cluster", cluster->uuid, cluster->name, AUTHOR, verdict, state);
}

static void add_texts(GPtrArray *list, const GPtrArray *texts)
{
    for (guint i = 0; i < texts->len; i++)
        g_ptr_array_add(list, g_strdup(texts->pdata[i]));
}

/* "2 of 3 …": how a summary begins. Free with g_free(). */
static char *count_text(const struct candidate_pool_judgement *pool)
{
    return g_strdup_printf("%u of %u master candidates %s usable (candidate_pool_size)",
                           pool->usable, pool->goal, pool->usable == 1 ? "is" : "are");
}

/* A record that there are too few; its summary is left to the caller. It says nothing that changes
 * from pass to pass, as it would be another record then. */
static struct decision *too_few(const struct watcher *watcher,
                                const struct candidate_pool_judgement *pool, enum verdict verdict)
{
    struct decision *decision =
        about_cluster(watcher, verdict,
                      watcher_shadow(watcher) ? "Too few master candidates, shadow mode"
                                              : "Too few master candidates");
    add_texts(decision->evidence, pool->evidence);
    return decision;
}

/* Steals the decision. */
static void record(struct watcher *watcher, struct decision *decision)
{
    g_autoptr(GPtrArray) changes = watcher_changes_new();
    watcher_record(watcher, decision, changes);
    watcher_commit(watcher, changes);
}

static void record_over(struct watcher *watcher, const struct candidate_pool_judgement *pool)
{
    struct watcher_promotion *promotion = watcher->promotion;
    promotion->short_since_ms = promotion->after_ms = 0;
    promotion->tries = 0;
    promotion->job = 0;
    if (!decisions_open(watcher->decisions, watcher_cluster(watcher)->uuid, AUTHOR))
        return;
    struct decision *decision = about_cluster(watcher, VERDICT_DONE, "Enough master candidates");
    decision_set(&decision->summary, "There are %u usable master candidates, as there should be.",
                 pool->usable);
    record(watcher, decision);
}

static void record_nobody(struct watcher *watcher, const struct candidate_pool_judgement *pool)
{
    g_autofree char *count = count_text(pool);
    struct decision *decision = too_few(watcher, pool, VERDICT_LEAVE);
    decision_set(&decision->summary,
                 "%s, and no other node can become one. Add a node, bring one back, or say that "
                 "fewer will do: fettle cluster modify --candidate-pool-size %u.",
                 count, pool->usable);
    add_texts(decision->rejected, pool->rejected);
    decision_set(&decision->next_check, "when a node that can become one answers");
    record(watcher, decision);
}

/* What a person can say that the watcher cannot know. Free with g_free(). */
static char *even_text(const struct candidate_pool_judgement *pool)
{
    if (pool->silent == NULL)
        return g_strdup_printf("With %s their number would be even: a majority would need one more "
                               "of them, and the loss of no more could be borne; if you want it: "
                               "fettle node modify %s --master-candidate yes",
                               pool->node->name, pool->node->name);
    return g_strdup_printf(
        "%s still counts: with one more their number would be even, a majority would need one more "
        "of them, and the loss of no more could be borne; if it is dead: fettle node modify %s "
        "--offline yes --statement \"…\"",
        pool->silent->name, pool->silent->name);
}

static void record_even(struct watcher *watcher, const struct candidate_pool_judgement *pool)
{
    g_autofree char *count = count_text(pool);
    g_autofree char *text = even_text(pool);
    struct decision *decision = too_few(watcher, pool, VERDICT_LEAVE);
    decision_set(&decision->summary, "%s. %s.", count, text);
    decision_set(&decision->next_check, "when nodes change");
    record(watcher, decision);
}

static void record_blocked(struct watcher *watcher, const struct candidate_pool_judgement *pool)
{
    g_autofree char *count = count_text(pool);
    struct decision *decision = too_few(watcher, pool, VERDICT_LEAVE);
    decision_set(&decision->summary,
                 "%s. %s could become one, but etcd takes no member in beside one that does not "
                 "answer; if %s is dead: fettle node modify %s --offline yes --statement \"…\".",
                 count, pool->node->name, pool->silent->name, pool->silent->name);
    decision_set(&decision->next_check, "when %s answers, or is said to be dead",
                 pool->silent->name);
    record(watcher, decision);
}

/* --- promotion --- */

/* What the summary says of it, after the count. Free with g_free(). */
static char *promotion_text(const struct candidate_pool_judgement *pool, const char *verb)
{
    g_autoptr(GString) text = g_string_new(NULL);
    g_string_printf(text, "%s %s one", pool->node->name, verb);
    for (guint i = 0; i < pool->replaced->len; i++) {
        const struct node *dead = pool->replaced->pdata[i];
        g_string_append_printf(text, "%s%s", i == 0 ? " in the place of " : " and ", dead->name);
    }
    if (pool->replaced->len == 1)
        g_string_append(text, ", whose member of etcd counts for every majority until then");
    else if (pool->replaced->len > 1)
        g_string_append(text, ", whose members of etcd count for every majority until then");
    return g_strdup(text->str);
}

/* " NAME …; it is taken all the same.": what is wrong with the best that fits (SAF-92); "" if
 * nothing is. Free with g_free(). */
static char *fault_text(const struct watcher *watcher, const struct node *node)
{
    const struct node_report *report = reports_of(watcher->reports, node->uuid);
    g_autofree char *text = report != NULL ? faults_text(report) : NULL;
    return text != NULL ? g_strdup_printf(" %s %s; it is taken all the same.", node->name, text)
                        : g_strdup("");
}

static guint64 version_of(const struct watcher *watcher, const struct node *node)
{
    guint64 version = 0;
    config_get(follow_config(watcher->follow), "node", node->uuid, &version);
    return version;
}

/* What is asked is what was judged: it is not done to a node that was changed meanwhile. */
static json_t *promotion_opcode(const struct watcher *watcher, const struct node *node,
                                const char *candidate, const char *capable)
{
    return json_make("{ss ss ss ss sI}", "OP_ID", "OP_NODE_SET_PARAMS", "node_name", node->name,
                     "master_candidate", candidate, "master_capable", capable, "if_version",
                     (json_int_t)version_of(watcher, node));
}

/* Takes the dead ones off first: etcd shall never count them and who comes. What a person has said
 * of them stays. */
static json_t *promotion_opcodes(const struct watcher *watcher,
                                 const struct candidate_pool_judgement *pool)
{
    json_t *opcodes = json_array();
    for (guint i = 0; i < pool->replaced->len; i++) {
        const struct node *dead = pool->replaced->pdata[i];
        json_array_append_new(
            opcodes, promotion_opcode(watcher, dead, "no", dead->master_capable ? "yes" : "no"));
    }
    json_array_append_new(opcodes, promotion_opcode(watcher, pool->node, "yes", ""));
    return opcodes;
}

static void wait_longer(struct watcher *watcher)
{
    struct watcher_promotion *promotion = watcher->promotion;
    promotion->tries++;
    promotion->after_ms =
        watcher->env->ops->boot_ms(watcher->env) + watcher_pause_ms(promotion->tries);
}

static void promote(struct watcher *watcher, const struct candidate_pool_judgement *pool)
{
    guint64 tried = 0;
    g_autofree char *prefix = g_strdup_printf(REQUEST "/%s/%" G_GUINT64_FORMAT, pool->node->uuid,
                                              version_of(watcher, pool->node));
    watcher_last_try(watcher, prefix, &tried);
    g_autofree char *request_id = g_strdup_printf("%s/%" G_GUINT64_FORMAT, prefix, tried + 1);
    g_autofree char *node = g_strdup(pool->node->uuid); /* the commit waits */
    g_autofree char *count = count_text(pool);
    g_autofree char *text = promotion_text(pool, "becomes");
    g_autofree char *faults = fault_text(watcher, pool->node);
    struct decision *decision = too_few(watcher, pool, VERDICT_ACT);
    add_texts(decision->rejected, pool->rejected);
    decision_set(&decision->summary, "%s; %s.%s", count, text, faults);
    decision_set(&decision->next_check, "when its job has ended");
    guint64 job = watcher_act(watcher, decision, promotion_opcodes(watcher, pool), request_id, 0);
    if (job == 0) {
        wait_longer(watcher);
        return;
    }
    watcher->promotion->job = job;
    g_free(watcher->promotion->node);
    watcher->promotion->node = g_steal_pointer(&node);
}

/* Somebody can be promoted: unless something holds that up. */
static void try_to_promote(struct watcher *watcher, const struct candidate_pool_judgement *pool)
{
    const char *next = "when shadow mode is switched off";
    g_autofree char *braked = watcher_braked(watcher, &next);
    if (braked == NULL && !watcher_shadow(watcher)) {
        if (watcher->env->ops->boot_ms(watcher->env) >= watcher->promotion->after_ms)
            promote(watcher, pool);
        return;
    }
    g_autofree char *count = count_text(pool);
    g_autofree char *text = promotion_text(pool, "would become");
    struct decision *decision =
        too_few(watcher, pool, braked != NULL ? VERDICT_WAIT : VERDICT_LEAVE);
    decision_set(&decision->summary, "%s%s; %s.%s%s", braked == NULL ? REPAIR_SHADOW : "", count,
                 text, braked != NULL ? " " : "", braked != NULL ? braked : "");
    decision_set(&decision->next_check, "%s", next);
    record(watcher, decision);
}

/* --- its job --- */

/* One that an earlier watcher has submitted. */
static void find_job(struct watcher *watcher)
{
    g_autoptr(GPtrArray) jobs = config_list(follow_config(watcher->follow), "job");
    for (guint i = 0; i < jobs->len; i++) {
        const struct job *job = jobs->pdata[i];
        if (!g_str_has_prefix(job->request_id, REQUEST "/") || watcher_job_ended(job))
            continue;
        g_auto(GStrv) parts = g_strsplit(job->request_id, "/", 3);
        g_free(watcher->promotion->node);
        watcher->promotion->node = g_strdup(parts[1]);
        watcher->promotion->job = job->id;
        return;
    }
}

/* Another node comes first the next time, if there is one; and not at once. */
static void note_failure(struct watcher *watcher, const struct candidate_pool_judgement *pool,
                         const char *message)
{
    struct watcher_promotion *promotion = watcher->promotion;
    struct node_memory *memory = g_hash_table_lookup(watcher->nodes, promotion->node);
    if (memory != NULL)
        memory->promotions++;
    wait_longer(watcher);
    g_autofree char *count = count_text(pool);
    struct decision *decision = too_few(watcher, pool, VERDICT_WAIT);
    decision_set(&decision->summary,
                 "%s. Job %" G_GUINT64_FORMAT ", which was to make %s one, failed: %s", count,
                 promotion->job, config_node_name(follow_config(watcher->follow), promotion->node),
                 message);
    decision_set(&decision->next_check, "after a pause, which grows with each try");
    promotion->job = 0;
    record(watcher, decision);
}

static bool is_candidate(const struct watcher *watcher, const char *uuid)
{
    const struct node *node = config_get(follow_config(watcher->follow), "node", uuid, NULL);
    return node != NULL && node->master_candidate;
}

/* Whether there is nothing more to do in this pass. */
static bool job_keeps_us(struct watcher *watcher, const struct candidate_pool_judgement *pool)
{
    g_autofree char *message = NULL;
    if (watcher->promotion->job == 0)
        find_job(watcher);
    if (watcher->promotion->job == 0)
        return false;
    switch (watcher_job_outcome(watcher, watcher->promotion->job, &message)) {
    case JOB_UNDER_WAY:
        return true;
    case JOB_SUCCEEDED:
        watcher->promotion->job = 0;
        return false;
    case JOB_LOST: /* it may have ended well long ago, and be in the archive */
        if (is_candidate(watcher, watcher->promotion->node)) {
            watcher->promotion->job = 0;
            return false;
        }
        break;
    case JOB_NO_ROOM:
    case JOB_AWAY:
    case JOB_SAFE:
    case JOB_FAILED:
        break;
    }
    note_failure(watcher, pool, message);
    return true;
}

/* --- the pass --- */

static bool lasts(struct watcher *watcher)
{
    gint64 now_ms = watcher->env->ops->boot_ms(watcher->env);
    if (watcher->promotion->short_since_ms == 0)
        watcher->promotion->short_since_ms = now_ms;
    return now_ms - watcher->promotion->short_since_ms >=
           LIMIT_POOL_PATIENCE_S * G_GINT64_CONSTANT(1000);
}

static void act_on(struct watcher *watcher, const struct candidate_pool_judgement *pool)
{
    if (pool->verdict == POOL_FULL) {
        record_over(watcher, pool);
        return;
    }
    if (!lasts(watcher) || job_keeps_us(watcher, pool))
        return;
    switch (pool->verdict) {
    case POOL_FULL:
    case POOL_UNSURE:
        return;
    case POOL_PROMOTE:
        try_to_promote(watcher, pool);
        return;
    case POOL_EVEN:
        record_even(watcher, pool);
        return;
    case POOL_BLOCKED:
        record_blocked(watcher, pool);
        return;
    case POOL_NOBODY:
        record_nobody(watcher, pool);
        return;
    }
}

void watcher_tend_candidates(struct watcher *watcher)
{
    /* We hear others through our own node daemon: while that is silent, silence says nothing. */
    if (task_killed() || reports_of(watcher->reports, watcher->env->node_uuid) == NULL)
        return;
    struct candidate_pool_judgement pool = judge(watcher);
    act_on(watcher, &pool);
    candidate_pool_judgement_clear(&pool);
}
