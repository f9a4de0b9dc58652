/* See candidate_pool.h. */
#include "core/watcher/candidate_pool.h"

#include "core/placement/placement.h"

#include <string.h>

/* What is counted before it is judged. */
struct pool {
    const struct config *config;
    const struct cluster *cluster;
    gint64 now;
    guint silent;   /* candidates that count for a majority, and do not answer for long */
    GPtrArray *off; /* candidates that are offline */
    const struct candidate_pool_node *best;
    guint fit; /* nodes that can become one */
};

static gint by_name(gconstpointer a, gconstpointer b)
{
    const struct candidate_pool_node *left = a, *right = b;
    return strcmp(left->node->name, right->node->name);
}

static bool is_master(const struct pool *pool, const struct node *node)
{
    return strcmp(node->uuid, pool->cluster->master_node) == 0;
}

static bool silent_for(const struct candidate_pool_node *seen, gint64 seconds)
{
    return seen->unheard_ms >= seconds * 1000;
}

/* --- those that are candidates --- */

/* The master serves, so it is usable whatever else is said of it. */
static void count_candidate(struct pool *pool, struct candidate_pool_judgement *judgement,
                            const struct candidate_pool_node *seen)
{
    const struct node *node = seen->node;
    bool silent = silent_for(seen, LIMIT_CANDIDATE_SILENT_S);
    if (is_master(pool, node) || (!node->offline && !node->drained && !silent)) {
        judgement->usable++;
        return;
    }
    const char *why = node->offline   ? "is offline on record"
                      : node->drained ? "is drained"
                                      : "does not answer any more";
    g_ptr_array_add(judgement->evidence, g_strdup_printf("candidate %s %s", node->name, why));
    if (node->offline) {
        g_ptr_array_add(pool->off, (void *)node);
    } else if (silent) {
        judgement->silent = judgement->silent != NULL ? judgement->silent : node;
        pool->silent++;
    }
}

/* --- those that could become one --- */

/* Why it cannot; NULL: it can, or perhaps in the next pass. Free with g_free(). */
static char *why_unfit(const struct pool *pool, const struct candidate_pool_node *seen)
{
    const struct node *node = seen->node;
    g_autofree char *avoided = placement_why_avoided(pool->config, node->uuid, (guint64)pool->now);
    if (!node->master_capable)
        return g_strdup_printf("%s shall be none (master_capable is no)", node->name);
    if (node->offline)
        return g_strdup_printf("%s is offline on record", node->name);
    if (node->drained)
        return g_strdup_printf("%s is drained", node->name);
    if (silent_for(seen, LIMIT_REPAIR_SILENT_S))
        return g_strdup_printf("%s does not answer", node->name);
    if (seen->unable != NULL) /* of a candidate its own state is the copy */
        return g_strdup_printf("%s %s", node->name, seen->unable);
    if (seen->disks_failed)
        return g_strdup_printf("the disks of %s fail", node->name);
    return avoided == NULL ? NULL : g_strdup_printf("%s %s", node->name, avoided);
}

/* Health before what was tried: SAF-92. */
static bool is_better(const struct candidate_pool_node *seen,
                      const struct candidate_pool_node *best)
{
    return seen->faults != best->faults ? seen->faults < best->faults
                                        : seen->failures < best->failures;
}

static void count_other(struct pool *pool, struct candidate_pool_judgement *judgement,
                        const struct candidate_pool_node *seen)
{
    char *why = why_unfit(pool, seen);
    if (why != NULL) {
        g_ptr_array_add(judgement->rejected, why);
        return;
    }
    pool->fit++;
    if (pool->best == NULL || is_better(seen, pool->best))
        pool->best = seen;
}

/* --- together --- */

/* A cluster that is smaller than its pool is not told so for ever, and two nodes are left as they
 * were made: two candidates bear the loss of none, and neither starts without the other. */
static guint goal_of(const struct pool *pool, guint nodes)
{
    guint size = (guint)pool->cluster->candidate_pool_size;
    if (nodes >= size)
        return size;
    return nodes % 2 == 0 ? nodes - 1 : nodes;
}

/* A majority of four is three, of three two: one more that makes an even number bears no more
 * losses, and has to be there for every majority. So an even number is not where it ends, unless
 * it was asked for. */
static bool ends_well(const struct pool *pool, const struct candidate_pool_judgement *judgement)
{
    guint missing = judgement->goal - judgement->usable;
    guint more = MIN(missing, pool->fit);
    guint voters = judgement->usable + pool->silent + more;
    return voters % 2 == 1 || voters == judgement->goal || more > 1;
}

static void choose(const struct pool *pool, struct candidate_pool_judgement *judgement)
{
    if (judgement->usable >= judgement->goal) {
        judgement->verdict = POOL_FULL;
        return;
    }
    if (pool->best == NULL) {
        judgement->verdict = POOL_NOBODY;
        return;
    }
    judgement->node = pool->best->node;
    bool etcd = pool->cluster->engine == ENGINE_KIND_ETCD;
    if (etcd && pool->silent > 0) {
        judgement->verdict = POOL_BLOCKED;
        return;
    }
    /* A dead member of etcd counts for every majority until it is taken out, and keeps others from
     * coming in: all of them go. */
    for (guint i = 0; etcd && i < pool->off->len; i++)
        g_ptr_array_add(judgement->replaced, pool->off->pdata[i]);
    bool well = judgement->replaced->len > 0 || ends_well(pool, judgement);
    judgement->verdict = !well                         ? POOL_EVEN
                         : pool->best->unheard_ms != 0 ? POOL_UNSURE
                                                       : POOL_PROMOTE;
}

struct candidate_pool_judgement candidate_pool_judge(const struct config *config, GArray *nodes,
                                                     gint64 now)
{
    g_autoptr(GPtrArray) off = g_ptr_array_new();
    struct pool pool = {
        .config = config, .cluster = config_cluster(config), .now = now, .off = off};
    struct candidate_pool_judgement judgement = {.replaced = g_ptr_array_new(),
                                                 .evidence = g_ptr_array_new_with_free_func(g_free),
                                                 .rejected =
                                                     g_ptr_array_new_with_free_func(g_free)};
    g_array_sort(nodes, by_name);
    for (guint i = 0; i < nodes->len; i++) {
        const struct candidate_pool_node *seen =
            &g_array_index(nodes, struct candidate_pool_node, i);
        bool candidate = seen->node->master_candidate || is_master(&pool, seen->node);
        if (candidate)
            count_candidate(&pool, &judgement, seen);
        else
            count_other(&pool, &judgement, seen);
    }
    judgement.goal = goal_of(&pool, nodes->len);
    choose(&pool, &judgement);
    return judgement;
}

void candidate_pool_judgement_clear(struct candidate_pool_judgement *judgement)
{
    g_clear_pointer(&judgement->replaced, g_ptr_array_unref);
    g_clear_pointer(&judgement->evidence, g_ptr_array_unref);
    g_clear_pointer(&judgement->rejected, g_ptr_array_unref);
}
